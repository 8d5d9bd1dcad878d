"""Searches of prepared indices in SQL, by DuckDB."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from neupath import HIN, PathSim, load, prepare
from neupath.errors import MissingExtraError
from neupath.graph.hin import Edges
from neupath.graph.metapath import Relation
from neupath.graph.nodes import Nodes

duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed; pip install 'neupath[store]'")
from neupath.duckdb import register  # noqa: E402


@pytest.fixture
def connection():
    with duckdb.connect() as own:
        register(own)
        yield own


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> str:
    return prepare(load("toy"), PathSim("APVPA"), tmp_path_factory.mktemp("toy") / "index")


def numbered_graph(version: int = 0) -> HIN:
    """Users with integer ids, one in three with a name."""
    rng = np.random.default_rng(version)
    names = pa.array([f"User {i}" if i % 3 else None for i in range(3000)])
    nodes = [Nodes("user", pa.array(np.arange(3000) * 10), names), Nodes("item", pa.array(np.arange(500)))]
    ends = rng.integers(0, 3000, 9000), rng.integers(0, 500, 9000)
    return HIN.build(nodes, [Edges(Relation("user", "buys", "item"), *ends)])


def test_one_query(connection, index: str) -> None:
    hits = PathSim("APVPA").fit(load("toy")).top_k("Mike", 2)
    rows = connection.execute("SELECT * FROM neupath_similar(?, 'Mike', 2)", [index])
    assert [column[0] for column in rows.description] == ["rank", "id", "name", "score"]
    assert rows.fetchall() == [
        (rank, *row) for rank, row in enumerate(zip(hits.ids, hits.names, hits.scores, strict=True), 1)
    ]
    count = "SELECT count(*) FROM neupath_similar(?, 'Mike'{})"
    whole = len(PathSim("APVPA").fit(load("toy")).top_k("Mike"))
    assert connection.execute(count.format(""), [index]).fetchone() == (whole,)
    assert connection.execute(count.format(", k := 1"), [index]).fetchone() == (1,)


def test_a_column_of_queries(connection, tmp_path: Path) -> None:
    """More of them than DuckDB hands over at once."""
    measure = PathSim("user-item-user").fit(numbered_graph())
    index = prepare(measure.hin_, measure, tmp_path / "index")
    connection.execute("CREATE TABLE people AS SELECT 10 * range AS id FROM range(3000)")
    rows = connection.execute(
        "SELECT people.id, hits.rank, hits.id, hits.score FROM people, neupath_similar(?, people.id, 3) AS hits "
        "ORDER BY 1, 2",
        [index],
    ).fetchall()
    expected = [
        (hits.query, rank, str(hit.id), hit.score)
        for hits in measure.top_k(list(range(0, 30_000, 10)), 3)
        for rank, hit in enumerate(hits, 1)
    ]
    assert rows == expected
    assert connection.execute("SELECT id FROM neupath_similar(?, 'User 7', 1)", [index]).fetchone() is not None


def test_queries_that_are_missing_have_no_hits(connection, index: str) -> None:
    rows = connection.execute(
        "SELECT who, hits.id FROM (VALUES ('Mike'), (NULL), ('Jim')) AS own(who), neupath_similar(?, who, 1) AS hits",
        [index],
    ).fetchall()
    assert sorted(who for who, _ in rows) == ["Jim", "Mike"]
    for arguments in ("NULL, 'Mike', 3", "?, NULL, 3", "?, 'Mike', NULL"):
        given = [index] if "?" in arguments else []
        assert connection.execute(f"SELECT * FROM neupath_similar({arguments})", given).fetchall() == []
    assert (
        connection.execute("SELECT * FROM (SELECT 'x' AS who WHERE false), neupath_similar(?, who)", [index]).fetchall()
        == []
    )


@pytest.mark.parametrize(
    ("query", "k", "message"),
    [
        ("Nobody", 3, "no author with the id or name 'Nobody'|no author with the id 'Nobody'"),
        ("Mike", 0, "k is 0; give a whole number of at least 1"),
        ("Mike", -3, "k is -3"),
    ],
)
def test_what_is_wrong_is_an_error_of_duckdb(connection, index: str, query: str, k: int, message: str) -> None:
    with pytest.raises(duckdb.Error, match=message):
        connection.execute("SELECT * FROM neupath_similar(?, ?, ?)", [index, query, k]).fetchall()


def test_a_folder_that_is_no_index(connection, tmp_path: Path) -> None:
    with pytest.raises(
        duckdb.Error, match=r"has no index.json, so it is no prepared index; `neupath prepare` makes one"
    ):
        connection.execute("SELECT * FROM neupath_similar(?, 'Mike', 3)", [str(tmp_path)]).fetchall()


def test_register_twice(connection, index: str) -> None:
    register(connection)
    register(connection.cursor())
    assert connection.execute("SELECT count(*) FROM neupath_similar(?, 'Mike', 2)", [index]).fetchone() == (2,)
    assert connection.cursor().execute("SELECT 1").fetchone() == (1,)


def test_an_index_that_is_prepared_again_is_seen_by_the_next_query(connection, tmp_path: Path) -> None:
    seen = []
    for version in range(3):
        measure = PathSim("user-item-user").fit(numbered_graph(version))
        index = prepare(measure.hin_, measure, tmp_path / "index")
        rows = connection.execute("SELECT id, score FROM neupath_similar(?, 50, 5)", [index]).fetchall()
        assert rows == [(str(hit.id), hit.score) for hit in measure.top_k(50, 5)]
        seen.append(rows)
    assert seen[0] != seen[1] != seen[2]


def test_hits_are_written_back(connection, index: str, tmp_path: Path) -> None:
    connection.execute(f"CREATE TABLE hits AS SELECT * FROM neupath_similar('{index}', 'Mike', 3)")
    connection.execute(f"COPY hits TO '{tmp_path}/hits.parquet'")
    assert connection.execute(f"SELECT count(*) FROM '{tmp_path}/hits.parquet'").fetchone() == (3,)


def test_duckdb_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "duckdb", None)
    with pytest.raises(MissingExtraError, match=r"this needs DuckDB, .*\[store\]"):
        register(None)  # type: ignore[arg-type]
