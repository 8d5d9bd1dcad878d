"""The pairs of a join as a table of DuckDB and of PostgreSQL."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from neupath import HIN, PathSim, join
from neupath.errors import NeuPathError
from neupath.io.database_export import write_pairs
from tests.graphs import shop_graph
from tests.postgres import MISSING, Server, find_programs, run_postgres


@pytest.fixture(scope="module")
def postgres() -> Iterator[Server]:
    if find_programs() is None:
        pytest.skip(MISSING)
    with run_postgres() as server:
        yield server


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pairs of users, with names."""
    return join(shop_graph(), PathSim("user-item-user"), tmp_path_factory.mktemp("join") / "top.parquet", k=3).path


def rows_of(path: Path) -> list[tuple[object, ...]]:
    return list(zip(*pq.read_table(path).to_pydict().values(), strict=True))


def test_a_duckdb_file_is_made_and_replaced(pairs: Path, toy: HIN, tmp_path: Path) -> None:
    import duckdb

    seen: list[tuple[str, int, int | None]] = []
    database = tmp_path / "results.duckdb"
    assert write_pairs(pairs, database, progress=lambda *step: seen.append(step)) == len(rows_of(pairs))
    assert seen[-1] == ("writing pairs", len(rows_of(pairs)), len(rows_of(pairs)))
    others = join(toy, PathSim("APVPA"), tmp_path / "folder").path
    write_pairs(others, database)
    write_pairs(pairs, database, "users' friends")
    with duckdb.connect(str(database)) as connection:
        assert connection.execute('SELECT * FROM "users\' friends"').fetchall() == rows_of(pairs)
        assert connection.execute("SELECT count(*) FROM similar_pairs").fetchone() == (pq.read_table(others).num_rows,)


def test_a_table_that_no_join_wrote_stays(pairs: Path, tmp_path: Path) -> None:
    import duckdb

    database = tmp_path / "results.duckdb"
    with duckdb.connect(str(database)) as connection:
        connection.execute("CREATE TABLE similar_pairs AS SELECT 1 AS a, 2 AS b")
    with pytest.raises(NeuPathError, match="with the columns a, b, which no join wrote; give another name"):
        write_pairs(pairs, database)
    with duckdb.connect(str(database)) as connection:
        assert connection.execute("SELECT * FROM similar_pairs").fetchall() == [(1, 2)]


@pytest.mark.slow
def test_a_table_of_postgresql(postgres: Server, pairs: Path, tmp_path: Path) -> None:
    url = postgres.create("CREATE TABLE taken (a int)")
    for _ in range(2):
        write_pairs(pairs, url)
    awkward = tmp_path / "awkward.parquet"
    values = {"query": ["a\tb\\", "ü\n"], "rank": [1, 2], "target": ["", "\\N"], "score": [0.1, 1e-300]}
    pq.write_table(pa.table(values | {"target_name": pa.array([None, "x"])}), awkward)
    write_pairs(awkward, url, "Awkward")
    with postgres.connect(url.rpartition("/")[2]) as connection:
        assert connection.execute("SELECT * FROM similar_pairs ORDER BY ctid").fetchall() == rows_of(pairs)
        assert connection.execute('SELECT * FROM "Awkward"').fetchall() == rows_of(awkward)
    with pytest.raises(NeuPathError, match="has a table 'taken' already, with the columns a"):
        write_pairs(pairs, url, "taken")
    with pytest.raises(NeuPathError, match=r"cannot (open|write).*(password|authentication)") as failed:
        write_pairs(pairs, postgres.url(password="wrong secret"))
    assert "wrong" not in str(failed.value)


@pytest.mark.parametrize("database", ["results.txt", "mysql://host/x"])
def test_other_databases_are_refused(pairs: Path, tmp_path: Path, database: str) -> None:
    with pytest.raises(NeuPathError, match=r"a DuckDB file, and mysql is neither|no database to write to"):
        write_pairs(pairs, database if "://" in database else tmp_path / database)
