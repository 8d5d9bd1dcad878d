"""Attributes of edges from every kind of source, and back: which columns they are, and what notes say."""

import sqlite3
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import neupath as npth
from neupath import HIN
from neupath.graph.hin import Edges, digest
from neupath.graph.metapath import Relation
from neupath.graph.nodes import Nodes
from neupath.io import write_folder
from neupath.io.draft import draft_of
from tests.command_line import Run
from tests.tables import Case, check_read, edges_toml, write

CODES = {"user_movie__csv": "user_id,movie_id,code,ts,when,extra\n1,2,007,964982703,2020-01-01T00:00:00Z,x\n2,2,,,,y\n"}
TWICE = {"user_movie__csv": "user_id,movie_id,rating,weight\n1,2,4,9\n1,2,3,8\n"}
LONG = {"user_movie__parquet": {
    "user_id": [1], "movie_id": [2], "review": ["long " * 50], "tags": [["x"]], "place": [{"x": 1}]}}  # fmt: skip
STREAMED = {"user_movie__csv": "user,movies,when\na,x|y,2020-01-01\nb,y,2021-01-01\n"}


def rates(more: str, suffix: str = "csv") -> dict[str, str]:
    return {"graph__toml": edges_toml("rates", f"user_movie.{suffix}", "user", "movie", more)}


RATES, CALLED = {"user -rates-> movie": 1}, {"user -user_movie-> movie": 1}
CASES: dict[str, Case] = {
    "the weight is an attribute under the name of its column": (
        TWICE | rates('weight = "rating"'), RATES,
        {"rates.attributes": {"rating": [4.0, 3.0]}, "rates.weights": [7.0], "notes": [
            "user_movie.csv: the column weight was left out: weight is the name of the weight itself, and that is "
            "another column",
        ]},
    ),
    "the weight by its name": (
        TWICE, CALLED, {"user_movie.attributes": {"rating": [4, 3]}, "user_movie.weights": [17.0]}
    ),
    "kinds by what the cells hold": (
        CODES, {"user -user_movie-> movie": 2}, {"user_movie.attributes": {
            "code": [7, None], "ts": [datetime(2000, 7, 30, 18, 45, 3), None],
            "when": [datetime(2020, 1, 1), None], "extra": ["x", "y"]}},
    ),
    "kinds by graph.toml": (
        CODES | rates('attributes = ["code", "ts", "when"]\n'
                      'attribute_types = {code = "text", ts = "integer", when = "date"}'),
        {"user -rates-> movie": 2}, {"rates.attributes": {
            "code": ["007", None], "ts": [964982703, None], "when": [date(2020, 1, 1), None]}},
    ),
    "no attributes by graph.toml": (
        CODES | rates("attributes = []"), {"user -rates-> movie": 2}, {"rates.attributes": {}}
    ),
    **{f"graph.toml: {line}": (CODES | rates(line), message) for line, message in (
        ('attributes = ["cod"]', "has no column 'cod' for the attributes .* did you mean 'code'"),
        ('attribute_types = {code = "txt"}', "says that code is 'txt'; it can be integer, .* did you mean 'text'"),
        ('attribute_types = {extra = "number"}', "line 2: extra is 'x', and attribute_types .* says it is 'number'"),
        ('attribute_types = {ts = "time"}', "line 2: ts is '964982703', .* can be .* unix"),
    )},
    "long texts and nested values are left out": (
        LONG, CALLED, {"user_movie.attributes": {}, "notes": [
            "user_movie.parquet: the column review was left out: its texts are long; attributes in graph.toml would",
            "user_movie.parquet: the column tags was left out: its values are of type list<element: string>",
            "user_movie.parquet: the column place was left out: its values are of type struct<x: int64>",
        ]},
    ),
    "long texts by graph.toml": (
        LONG | rates('attributes = ["review"]', "parquet"), RATES, {"rates.attributes": {"review": ["long " * 50]}}
    ),
    "columns without a header are named by position": (
        {"user_item__tsv": "u1\ti1\t5\nu2\ti1\t3\n"}, {"user -user_item-> item": 2},
        {"user_item.attributes": {"column_3": [5, 3]}},
    ),
    "several targets in a cell share the attributes of their row": (
        STREAMED, {"user -user_movie-> movie": 3},
        {"user_movie.attributes": {"when": [date(2020, 1, 1), date(2020, 1, 1), date(2021, 1, 1)]}},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_columns_beside_the_ends(tmp_path: Path, case: str) -> None:
    check_read(tmp_path / "g", *CASES[case])


def attributes(hin: HIN) -> dict[str, Any]:
    """Return the attributes of the only relation that has any."""
    ((_, table),) = hin.edge_tables.items()
    columns: dict[str, Any] = table.attributes.to_pydict()
    return columns


def kinds(hin: HIN) -> dict[str, str]:
    (relation,) = hin.edge_tables
    return hin.edge_kinds(relation)


def everything() -> HIN:
    """Return a graph whose edges have attributes of every kind, parallel edges, missing values and two relations."""
    people, works = Nodes("person", pa.array(["a", "b", "c"])), Nodes("work", pa.array([7, 8]))
    known = {
        "n": pa.array([1, None, 3, 4]), "share": [0.5, None, 1.5, -2.0], "is_new": [True, False, None, True],
        "note": ["x", None, "2020-01-01", ""], "day": [date(2020, 1, 1), None, date(1969, 1, 2), None],
        "at": [datetime(2020, 1, 1, 1, 2, 3, 4), None, None, datetime(1969, 1, 1)],
        "timestamp": [964982703, 964982704, 964982705, 964982706], "source": ["u", "v", "u", None],
        "a name": [1.0, 2.0, 3.0, 4.0],
    }  # fmt: skip
    ends = np.array([0, 0, 2, 1]), np.array([1, 1, 0, 0])
    knows = Relation("person", "knows", "person", directed=False)
    return HIN.build(
        [people, works],
        [
            Edges(Relation("person", "wrote", "work"), *ends, np.array([0.1, 0.7, 1.0, 2.0]), pa.table(known)),
            Edges(knows, np.array([2, 0, 1]), np.array([0, 1, 1]), None, pa.table({"since": [1999, 2000, 2001]})),
            Edges(Relation("person", "saw", "work"), *ends),
        ],
    )


def test_a_draft_of_graph_toml_keeps_the_attributes(tmp_path: Path) -> None:
    folder = write(tmp_path / "g", user_movie__csv="user_id,movie_id,stars,note\n1,2,4,x\n1,3,3,y\n")
    draft = draft_of(str(folder))
    (folder / "graph.toml").write_text(draft.to_toml())
    assert 'attributes = ["stars", "note"]' in draft.to_toml()
    assert attributes(npth.load(folder)) == {"stars": [4, 3], "note": ["x", "y"]}
    (uses,) = draft.columns().values()
    assert uses[2][-1] == "attribute of user -user_movie-> movie"


# ---- Other sources -------------------------------------------------------------------------------
def test_frames() -> None:
    frame = pd.DataFrame({
        "user": [1, 2], "movie": [3, 3], "at": pd.to_datetime(["2020-01-01", None]), "day": ["2020-01-01", None],
        "kind": pd.Categorical(["x", "y"]), "share": [1.5, None], "ok": [True, False],
    })  # fmt: skip
    expected = {"at": "time", "day": "date", "kind": "text", "share": "number", "ok": "boolean"}
    assert kinds(npth.load({("user", "movie"): frame})) == expected
    typed = npth.load({("user", "movie"): (frame, {"attributes": ["day"], "attribute_types": {"day": "text"}})})
    assert attributes(typed) == {"day": ["2020-01-01", None]}
    polars = pytest.importorskip("polars")
    assert kinds(npth.load({("user", "movie"): polars.from_pandas(frame)})) == expected


def test_databases(tmp_path: Path) -> None:
    pytest.importorskip("sqlalchemy")
    with sqlite3.connect(tmp_path / "shop.db") as connection:
        connection.executescript(
            "create table users(id integer primary key); create table items(id integer primary key);"
            "create table ratings(user_id integer references users(id), item_id integer references items(id), "
            "stars integer, at timestamp, note text);"
            "insert into users values(1),(2); insert into items values(1);"
            "insert into ratings values(1,1,5,'2020-01-01 10:00:00','x'),(2,1,3,null,null),(1,null,1,null,'y')"
        )
    connection.close()
    hin = npth.load(tmp_path / "shop.db")
    assert attributes(hin) == {"stars": [5, 3], "at": [datetime(2020, 1, 1, 10), None], "note": ["x", None]}
    assert "ratings: stars, at, note are attributes of edges, and each edge weighs 1" in hin.notes[0]


# ---- Back and forth ------------------------------------------------------------------------------
def test_folders_read_back_as_the_same_graph(tmp_path: Path) -> None:
    hin = everything()
    again = npth.load(write_folder(hin, tmp_path / "saved"))
    assert digest(again) == digest(hin)
    assert [again.edge_kinds(r) for r in again.matrices] == [hin.edge_kinds(r) for r in hin.matrices]


@pytest.mark.slow
def test_pyg_and_dgl_have_the_attributes_of_each_edge() -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch_geometric")
    hin = everything()
    store = hin.to_pyg()["person", "wrote", "work"]
    assert torch.equal(store.edge_weight, torch.tensor([0.1, 0.7, 1.0, 2.0], dtype=torch.float64))
    assert store["timestamp"].tolist() == [964982703, 964982704, 964982705, 964982706]
    again = npth.load(hin.to_pyg())
    (wrote,) = (relation for relation in again.matrices if relation.name == "wrote")
    table = again.edge_tables[wrote].attributes
    assert table["at"].to_pylist() == [datetime(2020, 1, 1, 1, 2, 3, 4), None, None, datetime(1969, 1, 1)]
    assert table["share"].to_pylist() == [0.5, None, 1.5, -2.0]
    parts = hin.to_dgl_dict()
    knows = parts["attributes"]["person", "knows", "person"]["since"].tolist()
    rows = parts["data_dict"]["person", "knows", "person"][0].tolist()
    assert (knows, rows) == ([1999, 2000, 2001, 1999, 2000], [2, 0, 1, 0, 1])


def test_info_lists_the_attributes_of_edges(tmp_path: Path, run: Run) -> None:
    shown = run("info", write(tmp_path / "g", user_movie__csv="user_id,movie_id,stars,note\n1,2,4,x\n"))
    assert shown.code == 0
    assert "stars (integer), note (text)" in shown.out
    assert "left out" not in shown.out
