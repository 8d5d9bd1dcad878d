"""Attributes of edges in a store: every version equals a plain model, also after compaction, recovery and damage."""

import json
import shutil
from collections.abc import Sequence
from datetime import date, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neupath import HIN, load
from neupath.errors import GraphError, SourceError
from neupath.graph.hin import Edges, digest
from neupath.graph.metapath import Relation
from neupath.graph.nodes import Nodes
from neupath.live import LiveStore
from neupath.store import Edge, Node, Update, check, open_store, read_update, write_store
from tests.store.stores import change_database, flip_last_byte

RATES = Relation("user", "rates", "movie")
KNOWS = Relation("user", "knows", "user", directed=False)
SEES = Relation("user", "sees", "movie")
USERS, MOVIES = ("u0", "u1", "u2"), ("m0", "m1")
ATTRIBUTES: dict[str, list[Any]] = {
    "rating": [4.5, None], "count": [1, 2], "is_new": [True, None], "note": ["x", ""],
    "day": [date(2020, 1, 1), None], "at": [datetime(2020, 1, 1, 12), None],
}  # fmt: skip
Row = tuple[str, str, float, tuple[Any, ...]]
"""A single edge: the ids of its ends, its weight and its attributes."""


def graph() -> HIN:
    ends = np.array([0, 1]), np.array([0, 0])
    return HIN.build(
        [Nodes("user", pa.array(USERS)), Nodes("movie", pa.array(MOVIES))],
        [
            Edges(RATES, *ends, np.array([0.1, 1.0]), pa.table(ATTRIBUTES)),
            Edges(KNOWS, np.array([2, 0]), np.array([1, 2]), None, pa.table({"since": [2001, None]})),
            Edges(SEES, *ends),
        ],
    )


def rows_of(hin: HIN, relation: Relation) -> list[Row]:
    table = hin.edge_tables[relation]
    sources, targets = hin.nodes[relation.source].ids.to_pylist(), hin.nodes[relation.target].ids.to_pylist()
    values = zip(*(table.attributes[name].to_pylist() for name in table.attributes.column_names), strict=True)
    ends = zip(table.sources.tolist(), table.targets.tolist(), np.asarray(table.weights).tolist(), values, strict=True)
    return [(sources[row], targets[column], weight, own) for row, column, weight, own in ends]


def weights_of(rows: Sequence[Row], relation: Relation) -> dict[tuple[str, str], float]:
    weights: dict[tuple[str, str], float] = {}
    for source, target, weight, _ in rows:
        pair = (source, target) if relation.directed else (min(source, target), max(source, target))
        weights[pair] = weights.get(pair, 0.0) + weight
    return weights


def assert_is(hin: HIN, model: dict[Relation, list[Row]]) -> None:
    """Compare single edges, and the matrix, whose weights are their sums in order."""
    assert set(hin.edge_tables) == {RATES, KNOWS}
    for relation, rows in model.items():
        assert rows_of(hin, relation) == rows
        matrix = hin.matrices[relation].tocoo()
        ids = hin.nodes[relation.source].ids.to_pylist(), hin.nodes[relation.target].ids.to_pylist()
        read = {
            (ids[0][row], ids[1][column]): weight
            for row, column, weight in zip(matrix.row.tolist(), matrix.col.tolist(), matrix.data.tolist(), strict=True)
        }
        if not relation.directed:
            read = {pair: weight for pair, weight in read.items() if pair[0] <= pair[1]}
        assert read == weights_of(rows, relation)


# ---- Updates -------------------------------------------------------------------------------------
_VALUES = {
    "rating": st.none() | st.floats(-5, 5), "count": st.none() | st.integers(-3, 3),
    "is_new": st.none() | st.booleans(),
    "note": st.none() | st.sampled_from(["x", "y", "a\tb", "ü"]),
    "day": st.none() | st.dates(date(1900, 1, 1), date(2100, 1, 1)),
    "at": st.none() | st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1)),
}  # fmt: skip
_ADDED = st.one_of(
    st.tuples(
        st.just(RATES), st.sampled_from(USERS), st.sampled_from(MOVIES), st.sampled_from([0.1, 0.7, 2.0]),
        st.fixed_dictionaries({}, optional=_VALUES),
    ),
    st.tuples(
        st.just(KNOWS), st.sampled_from(USERS), st.sampled_from(USERS), st.sampled_from([0.3, 1.0]),
        st.fixed_dictionaries({}, optional={"since": st.none() | st.integers(1900, 2000)}),
    ),
)  # fmt: skip
_STEPS = st.lists(
    st.tuples(st.lists(_ADDED, max_size=3), st.lists(st.integers(0, 9), max_size=2), st.sampled_from("rcdl-")),
    min_size=1, max_size=6,
)  # fmt: skip


def to_update(added: Sequence[Any], removed: Sequence[int], model: dict[Relation, list[Row]]) -> Update:
    """Return an update and apply it to the model; numbers choose which pairs it removes."""
    gone = []
    for number in removed:
        relation = (RATES, KNOWS)[number % 2]
        pairs = list(weights_of(model[relation], relation))
        if pairs:
            pair = pairs[number % len(pairs)]
            gone.append(Edge(relation.name, *pair))
            model[relation] = [row for row in model[relation] if pair not in weights_of([row], relation)]
    new = []
    for relation, source, target, weight, values in added:
        new.append(Edge(relation.name, source, target, weight, values))
        names = ATTRIBUTES if relation is RATES else ("since",)
        model[relation].append((source, target, weight, tuple(values.get(name) for name in names)))
    return Update(add_edges=new, remove_edges=gone)


@pytest.mark.slow
@settings(max_examples=4, deadline=None)
@given(_STEPS)
def test_every_version_equals_a_plain_model(steps: Sequence[Any]) -> None:
    with TemporaryDirectory() as parent:
        folder = write_store(graph(), Path(parent) / "store")
        model = {relation: rows_of(graph(), relation) for relation in (RATES, KNOWS)}
        versions = [{relation: list(rows) for relation, rows in model.items()}]
        live = LiveStore(folder)
        try:
            for added, removed, after in steps:
                live.update(to_update(added, removed, model))
                versions.append({relation: list(rows) for relation, rows in model.items()})
                assert_is(live.view().hin, model)
                if after == "c":
                    live.store.compact(1)
                elif after == "l":
                    live.graph.compact()
                elif after in "rd":
                    live.close()
                    if after == "d":
                        for snapshot in folder.glob("snapshot-*"):
                            shutil.rmtree(snapshot)
                    live = LiveStore(folder)
                    assert_is(live.view().hin, model)
            live.close()
            report = check(folder)
            assert not report.problems
            for version in range(report.oldest, report.version + 1):
                assert_is(live.view(version).hin, versions[version])
        finally:
            live.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_store(graph(), tmp_path / "store")


def test_updates_in_one_commit_follow_each_other(folder: Path) -> None:
    with open_store(folder) as store:
        new = Edge("rates", "u2", "m1", 2.0, {"note": "short"})
        store.update_many([Update(add_edges=[new]), Update(remove_edges=[Edge("rates", "u2", "m1")])])
        assert [row[3][3] for row in rows_of(store.hin(1), RATES)] == ["x", "", "short"]
        assert rows_of(store.hin(2), RATES) == rows_of(store.hin(0), RATES)
        assert not store.check().problems


def test_removed_nodes_leave_the_rows_of_the_others(folder: Path) -> None:
    with LiveStore(folder) as live:
        ended = [Edge("rates", "u0", "m0"), Edge("knows", "u0", "u2"), Edge("sees", "u0", "m0")]
        live.update(Update(remove_edges=ended, remove_nodes=[Node("user", "u0")]))
        assert [row[:2] for row in rows_of(live.view().hin, RATES)] == [("u1", "m0")]
        assert [row[:2] for row in rows_of(live.view().hin, KNOWS)] == [("u2", "u1")]
        assert rows_of(live.view(0).hin, RATES) == rows_of(graph(), RATES)


def test_tables_of_edges_have_attributes(folder: Path, tmp_path: Path) -> None:
    table = tmp_path / "new.csv"
    table.write_text(
        "relation,source,target,rating,at,is_new,since\n"
        "rates,u1,m1,3.5,2021-05-06T07:08:09Z,true,\nrates,u1,m1,,1700000000,,\nknows,u0,u1,,,,1999\n"
    )
    with open_store(folder) as store:
        store.update(read_update(add=[table]))
        last = [dict(zip(ATTRIBUTES, own, strict=True)) for *_, own in rows_of(store.hin(), RATES)[2:]]
        assert [(row["rating"], row["at"], row["is_new"]) for row in last] == [
            (3.5, datetime(2021, 5, 6, 7, 8, 9), True),
            (None, datetime(2023, 11, 14, 22, 13, 20), None),
        ]
        assert rows_of(store.hin(), KNOWS)[-1] == ("u0", "u1", 1.0, (1999,))


@pytest.mark.parametrize(
    ("edge", "message"),
    [
        (Edge("rates", "u0", "m0", 1.0, {"ratng": 1}), r"'user -rates-> movie' have no attribute 'ratng' \(they have .*"
         r"did you mean 'rating'"),
        (Edge("sees", "u0", "m0", 1.0, {"wieght": "2"}), r"'user -sees-> movie' have no attribute 'wieght' \(they have "
         r"none\); did you mean 'weight'"),
        (Edge("rates", "u0", "m0", 1.0, {"rating": "good"}), "the attribute rating of 'user -rates-> movie' must "
         "be a number, not 'good'"),
        (Edge("rates", "u0", "m0", 1.0, {"count": 1.5}), "count of .* must be an integer, not 1.5"),
        (Edge("rates", "u0", "m0", 1.0, {"count": True}), "count of .* must be an integer, not True"),
        (Edge("rates", "u0", "m0", 1.0, {"rating": float("nan")}), "rating of .* must be a number, not nan"),
        (Edge("rates", "u0", "m0", 1.0, {"day": "2020-02-31"}), "day of .* must be a date, not '2020-02-31'"),
        (Edge("rates", "u0", "m0", 1.0, {"at": 12}), "at of .* must be a time, not 12"),
        (Edge("rates", "u0", "m0", 1.0, {"note": ["x"]}), "note of .* must be a text"),
        (Edge("rates", "u0", "m0", 1.0, {"note": "\ud800"}), "note of .* must be a text"),
    ],
)  # fmt: skip
@pytest.mark.slow
def test_bad_attributes_change_nothing(folder: Path, edge: Edge, message: str) -> None:
    good = Edge("rates", "u2", "m1", 1.0, {"rating": 1})
    with open_store(folder) as store, pytest.raises(GraphError, match=message):
        store.update(Update(add_edges=[good, edge]))
    assert rows_of(load(folder), RATES) == rows_of(graph(), RATES)


# ---- Files ---------------------------------------------------------------------------------------
def test_a_store_says_by_its_format_that_edges_have_attributes(folder: Path, tmp_path: Path) -> None:
    plain = write_store(load("toy"), tmp_path / "plain")
    assert [json.loads((each / "store.json").read_text())["format"] for each in (folder, plain)] == [2, 1]
    assert not load(plain).edge_tables


@pytest.mark.parametrize("file", ["edge-rows-0.arrow", "edge-rows-1.arrow"])
@pytest.mark.parametrize("is_cut", [False, True])
@pytest.mark.slow
def test_damaged_files_of_attributes_are_rebuilt(folder: Path, file: str, is_cut: bool) -> None:
    path = folder / "snapshot-0" / file
    flip_last_byte(path)
    if is_cut:
        path.write_bytes(path.read_bytes()[:-7])
    assert "the next reading or update rebuilds it" in check(folder).problems[0]
    assert digest(load(folder)) == digest(graph())
    assert not check(folder).problems


def test_attributes_that_are_wrong_in_the_database_are_found(folder: Path) -> None:
    change_database(folder, "UPDATE edge_rows_0 SET a3 = 'z' WHERE row = 0")
    assert "the checksum of the edges differs from the one written with them" in check(folder).problems
    (folder / "snapshot-0" / "edge-rows-0.arrow").unlink()
    with pytest.raises(SourceError, match="and so is the database: the checksum of the edges differs"):
        load(folder)


def test_tables_of_edges_are_made_when_they_are_asked_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hin = load(folder)
    monkeypatch.setattr("neupath.store.versions._rows_of_keys", lambda *_: pytest.fail("made"))
    assert RATES in hin.edge_tables
    assert len(hin.edge_tables) == 2
    assert hin.metapath("user-movie-user").source == "user"
    assert hin.matrices[RATES].nnz == 2
