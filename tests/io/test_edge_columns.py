"""Attributes of edges from every kind of source, and back: which columns they are, and what notes say."""

import sqlite3
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import neupath as npth
from neupath import HIN, NeuPathError
from neupath.cli import main
from neupath.graph.hin import Edges, digest
from neupath.graph.metapath import Relation
from neupath.graph.nodes import Nodes
from neupath.io import write_folder
from neupath.io.draft import draft_of
from tests.tables import write

RATES = '[[edges]]\nname = "rates"\nfile = "user_movie.csv"\nsource = "user"\ntarget = "movie"\n'


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


# ---- Which columns -------------------------------------------------------------------------------
def test_the_weight_is_an_attribute_under_the_name_of_its_column(tmp_path: Path) -> None:
    folder = write(tmp_path / "g", user_movie__csv="user_id,movie_id,rating,weight\n1,2,4,9\n1,2,3,8\n")
    (folder / "graph.toml").write_text(f'{RATES}weight = "rating"\n')
    hin = npth.load(folder)
    assert attributes(hin) == {"rating": [4.0, 3.0]}
    assert next(iter(hin.matrices.values())).data.tolist() == [7.0]
    assert hin.notes == (
        "user_movie.csv: the column weight was left out: weight is the name of the weight itself, and that is another "
        "column",
    )
    (folder / "graph.toml").unlink()
    assert attributes(npth.load(folder)) == {"rating": [4, 3]}
    assert next(iter(npth.load(folder).matrices.values())).data.tolist() == [17.0]


def test_graph_toml_names_and_types_attributes(tmp_path: Path) -> None:
    rows = "user_id,movie_id,code,ts,when,extra\n1,2,007,964982703,2020-01-01T00:00:00Z,x\n2,2,,,,y\n"
    folder = write(tmp_path / "g", user_movie__csv=rows)
    assert kinds(npth.load(folder)) == {"code": "integer", "ts": "time", "when": "time", "extra": "text"}
    (folder / "graph.toml").write_text(
        f'{RATES}attributes = ["code", "ts", "when"]\n'
        'attribute_types = {code = "text", ts = "integer", when = "date"}\n'
    )
    assert attributes(npth.load(folder)) == {
        "code": ["007", None], "ts": [964982703, None], "when": [date(2020, 1, 1), None],
    }  # fmt: skip
    (folder / "graph.toml").write_text(f"{RATES}attributes = []\n")
    assert not npth.load(folder).edge_tables
    for line, message in (
        ('attributes = ["cod"]', "has no column 'cod' for the attributes .* did you mean 'code'"),
        ('attribute_types = {code = "txt"}', "says that code is 'txt'; it can be integer, .* did you mean 'text'"),
        ('attribute_types = {extra = "number"}', "line 2: extra is 'x', and attribute_types .* says it is 'number'"),
        ('attribute_types = {ts = "time"}', "line 2: ts is '964982703', .* can be .* unix"),
    ):
        (folder / "graph.toml").write_text(f"{RATES}{line}\n")
        with pytest.raises(NeuPathError, match=message):
            npth.load(folder)


def test_long_texts_and_nested_values_are_left_out_with_a_note(tmp_path: Path) -> None:
    folder = tmp_path / "g"
    folder.mkdir()
    table = pa.table({"user_id": [1], "movie_id": [2], "review": ["long " * 50], "tags": [["x"]], "place": [{"x": 1}]})
    pq.write_table(table, folder / "user_movie.parquet")
    hin = npth.load(folder)
    assert not hin.edge_tables
    assert [note.partition(" was left out: ")[::2] for note in hin.notes] == [
        ("user_movie.parquet: the column review", "its texts are long; attributes in graph.toml would read it"),
        ("user_movie.parquet: the column tags", "its values are of type list<element: string>"),
        ("user_movie.parquet: the column place", "its values are of type struct<x: int64>"),
    ]
    (folder / "graph.toml").write_text(RATES.replace("csv", "parquet") + 'attributes = ["review"]\n')
    assert attributes(npth.load(folder)) == {"review": ["long " * 50]}


def test_tables_without_a_header_name_their_columns_by_position(tmp_path: Path) -> None:
    hin = npth.load(write(tmp_path / "g", user_item__tsv="u1\ti1\t5\nu2\ti1\t3\n"))
    assert attributes(hin) == {"column_3": [5, 3]}


def test_several_targets_in_a_cell_share_the_attributes_of_their_row(tmp_path: Path) -> None:
    folder = write(tmp_path / "g", user_movie__csv="user,movies,when\na,x|y,2020-01-01\nb,y,2021-01-01\n")
    hin = npth.load(folder)
    ((_, table),) = hin.edge_tables.items()
    assert table.attributes["when"].to_pylist() == [date(2020, 1, 1), date(2020, 1, 1), date(2021, 1, 1)]


def test_a_draft_of_graph_toml_keeps_the_attributes(tmp_path: Path) -> None:
    folder = write(tmp_path / "g", user_movie__csv="user_id,movie_id,stars,note\n1,2,4,x\n1,3,3,y\n")
    draft = draft_of(str(folder))
    (folder / "graph.toml").write_text(draft.to_toml())
    assert 'attributes = ["stars", "note"]' in draft.to_toml()
    assert attributes(npth.load(folder)) == {"stars": [4, 3], "note": ["x", "y"]}
    (uses,) = draft.columns().values()
    assert uses[2][-1] == "attribute of user -user_movie-> movie"


# ---- Sources -------------------------------------------------------------------------------------
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
    assert (knows, parts["data_dict"]["person", "knows", "person"][0].tolist()) == (
        [1999, 2000, 2001, 1999, 2000],
        [2, 0, 1, 0, 1],
    )


def test_info_lists_the_attributes_of_edges(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write(tmp_path / "g", user_movie__csv="user_id,movie_id,stars,note\n1,2,4,x\n")
    with pytest.raises(SystemExit) as left:
        main(["info", str(folder)])
    assert left.value.code == 0
    out = capsys.readouterr().out
    assert "stars (integer), note (text)" in out
    assert "left out" not in out
