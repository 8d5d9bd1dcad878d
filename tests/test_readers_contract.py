"""One contract for two readers: memory and disk read the same nodes, edges and attributes, or raise the same error."""

from collections.abc import Callable, Mapping
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import neupath as npth
from neupath import NeuPathError
from neupath.graph.edge_attributes import edge_kinds
from neupath.io import import_store, out_of_core
from neupath.io.formats import parquet
from neupath.store import check

Graph = tuple[dict[str, list[object]], dict[str, list[list[object]]]]
"""The ids of each node type in order, and the row pointers, columns and weights of each relation's matrix."""


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut tables into batches of a few rows, so that everything continues in the next one."""
    monkeypatch.setattr(parquet, "_BATCH_ROWS", 2)
    monkeypatch.setattr(out_of_core, "BATCH_ROWS", 3)


def read_in_memory(folder: Path, _: Path, **options: Any) -> Graph:
    hin = npth.load(folder, **options)
    ids = {node_type: nodes.ids.to_pylist() for node_type, nodes in hin.nodes.items()}
    matrices = {str(r): [m.indptr.tolist(), m.indices.tolist(), m.data.tolist()] for r, m in hin.matrices.items()}
    return ids, matrices


def read_out_of_core(folder: Path, work: Path, **options: Any) -> Graph:
    return read_in_memory(import_store(folder, work / "store", memory_limit="200MiB", **options), work)


AUTHORS = {"author_id": ["b", "a", "z"], "name": ["Bob", "Ann", "Zoe"]}
PARALLEL = {
    "author_id": ["a", "b", "a", "c", "a", "b", "a"],
    "paper_id": [2, 1, 2, 1, 3, 1, 2],
    "weight": [0.1, 1.0, 0.7, 0.0, 1e-5, 3.3, 0.2],
}
GOOD: dict[str, Mapping[str, Mapping[str, list[Any]]]] = {
    "ids in order of appearance": {
        "author_paper": {"author_id": ["c", "a", "b", "a"], "paper_id": [9, 7, 9, 8]},
        "paper_venue": {"paper_id": [8, 5], "venue_id": ["v", "u"]},
    },
    "node tables decide the order": {"authors": AUTHORS, "author_paper": {"author_id": ["a", "b"], "paper_id": [2, 1]}},
    "texts that are integers": {"author_paper": {"author_id": ["10", "9", "10"], "paper_id": ["x", "1", "1"]}},
    "integers here and texts there": {
        "author_paper": {"author_id": ["a", "b"], "paper_id": ["8", "9"]},
        "paper_venue": {"paper_id": [9, 7], "venue_id": [1, 2]},
    },
    "parallel edges with weights": {"author_paper": PARALLEL},
    "a type to itself": {"paper_cites_paper": {"paper_id": [1, 2, 1, 3], "cited_paper_id": [2, 1, 2, 3]}},
    "no edges": {"authors": AUTHORS, "author_paper": {"author_id": ["a"] * 0, "paper_id": [1] * 0}},
}
BAD: dict[str, tuple[Mapping[str, Mapping[str, list[Any]]], str]] = {
    "an edge to an unknown node": (
        {"authors": AUTHORS, "author_paper": {"author_id": ["a", "b", "x", "y"], "paper_id": [1, 2, 3, 4]}},
        r"author_paper.parquet, row 3: the edge leads to author 'x', which is not in the node table of author \(2 such",
    ),
    "an edge to a node whose id differs only by case or spaces": (
        {
            "authors": {"author_id": ["z", "Al  B"]},
            "author_paper": {"author_id": ["z", "al b "], "paper_id": [1, 2]},
        },
        r"author_paper.parquet, row 2: the edge leads to author 'al b ', which is not in the node table of author "
        r"\(1 such edge ends in all\); did you mean 'Al  B'\? the ids differ only by case or spaces, and fold_ids = tr",
    ),
    "a repeated node": (
        {"authors": {"author_id": ["a", "b", "a", "b"]}, "author_paper": {"author_id": ["a"], "paper_id": [1]}},
        "authors.parquet, row 3: node id 'a' is repeated",
    ),
    "a node without an id": (
        {"authors": {"author_id": ["a", None]}, "author_paper": {"author_id": ["a"], "paper_id": [1]}},
        "authors.parquet, row 2: the node has an empty id",
    ),
    "an edge without an end": (
        {"author_paper": {"author_id": ["a", "", "c"], "paper_id": [1, 2, 3]}},
        "author_paper.parquet, row 2: the edge has an empty author id",
    ),
    "a negative weight": (
        {"author_paper": {"author_id": ["a", "b"], "paper_id": [1, 2], "weight": [1.0, -1.0]}},
        r"author_paper.parquet, row 2: weight '-1' is not allowed",
    ),
    "weights that add up to infinity": (
        {"author_paper": {"author_id": ["a", "a"], "paper_id": [1, 1], "weight": [1.1e308, 1.1e308]}},
        "weights of parallel edges of 'author -author_paper-> paper' add up to more than a float",
    ),
}


def write_folder(folder: Path, tables: Mapping[str, Mapping[str, list[Any]]]) -> Path:
    folder.mkdir()
    for name, columns in tables.items():
        kinds = {"paper_id": pa.int64()} if name == "author_paper" and not columns["paper_id"] else {}
        arrays = {column: pa.array(values, kinds.get(column)) for column, values in columns.items()}
        arrays = {c: a.cast(pa.string()) if pa.types.is_null(a.type) else a for c, a in arrays.items()}
        pq.write_table(pa.table(arrays), folder / f"{name}.parquet", row_group_size=2)
    return folder


@pytest.mark.parametrize("duplicates", ["count", "drop"])
@pytest.mark.parametrize("case", list(GOOD))
@pytest.mark.slow
def test_both_readers_read_the_same_graph(tmp_path: Path, case: str, duplicates: str) -> None:
    folder = write_folder(tmp_path / "tables", GOOD[case])
    expected = read_in_memory(folder, tmp_path, duplicates=duplicates)
    assert read_out_of_core(folder, tmp_path, duplicates=duplicates) == expected
    assert any(expected[0].values())


def test_both_readers_read_undirected_relations_alike(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "tables", GOOD["a type to itself"])
    (folder / "graph.toml").write_text('undirected = ["cites"]\n')
    expected = read_in_memory(folder, tmp_path)
    assert read_out_of_core(folder, tmp_path) == expected
    ((matrix,),) = (expected[1].values(),)
    assert matrix == [[0, 1, 2, 3], [1, 0, 2], [3.0, 3.0, 1.0]]


@pytest.mark.parametrize("read", [read_in_memory, read_out_of_core])
@pytest.mark.parametrize("case", list(BAD))
def test_both_readers_raise_the_same_error(tmp_path: Path, case: str, read: Callable[..., Graph]) -> None:
    tables, message = BAD[case]
    folder = write_folder(tmp_path / "tables", tables)
    with pytest.raises(NeuPathError, match=message) as raised:
        read(folder, tmp_path)
    with pytest.raises(type(raised.value)) as in_memory:
        npth.load(folder)
    assert str(raised.value) == str(in_memory.value)


# ---- Attributes of edges -------------------------------------------------------------------------
KINDS = {
    "author_id": ["a", "b", "a", "c", "a"],
    "paper_id": [2, 1, 2, 1, 3],
    "rating": [4, None, 5, 3, 1],
    "share": [0.5, 1.5, float("nan"), None, 2.0],
    "is_first": [True, None, False, True, True],
    "note": ["x", None, "y", "x", ""],
    "day": [date(2020, 1, 1), None, date(1969, 7, 20), date(2020, 1, 1), date(2021, 2, 3)],
    "at": [datetime(2020, 1, 1, 12), None, datetime(2020, 1, 1, 12, 0, 0, 7), None, datetime(1969, 1, 1)],
    "written": ["2020-01-01", None, "2021-03-31", "2020-02-29", "1999-12-31"],
    "timestamp": [964982703, 964982931, None, 1445714994, 1445714996],
    "ts": [2403311200, 2403311201, 2403311202, 2403311203, 2403311204],
    "members": [["a"], [], ["b"], None, ["c"]],
}
TRIPLES = """head,relation,tail,score,since,how
a,knows,b,0.5,2001-01-01,
b,knows,a,,2001-01-02,by mail
a,likes,b,3,,x
a,knows,b,007,2001-01-03,by mail
c,hates,a,,,
"""
MORE_TRIPLES = "head,relation,tail,score,place\nc,likes,a,high,here\nc,knows,c,1,there\n"
RATINGS = (
    "user_id,movie_id,rating,timestamp\n1,10,4.5,964982703\n1,10,0,964982931\n2,10,3,964982400\n1,10,2,964982401\n"
)


def described(source: Path, **options: Any) -> tuple[dict[str, list[Any]], tuple[str, ...]]:
    """Return the single edges of each relation with attributes, and the notes."""
    hin = npth.load(source, **options)
    return {
        str(relation): [
            *(part.tolist() for part in (table.sources, table.targets, table.weights)),
            table.attributes.to_pydict(),
            edge_kinds(hin.edge_tables, relation),
        ]
        for relation, table in hin.edge_tables.items()
    }, hin.notes


@pytest.mark.slow
@pytest.mark.parametrize(
    ("duplicates", "files"),
    [
        ("drop", {"author_paper.parquet": KINDS}),
        ("drop", {"kg.csv": TRIPLES}),
        ("count", {"train.csv": TRIPLES, "test.csv": MORE_TRIPLES}),
        ("count", {"kg.csv": TRIPLES, "graph.toml": 'undirected = ["knows"]\n[triples]\ncolumns = ["head", "relation", '
         '"tail"]\nattribute_types = {score = "text", since = "time"}\n'}),
        ("count", {"user_movie.csv": RATINGS, "graph.toml": '[[edges]]\nname = "rates"\nfile = "user_movie.csv"\n'
         'source = "user"\ntarget = "movie"\nweight = "rating"\nattribute_types = {timestamp = "unix"}\n'}),
        ("count", {"user_movie.csv": RATINGS.replace(",964982401", ",")}),
    ],
)  # fmt: skip
def test_memory_and_disk_read_the_same_attributes(tmp_path: Path, duplicates: Any, files: Mapping[str, Any]) -> None:
    folder = tmp_path / "tables"
    folder.mkdir()
    for name, content in files.items():
        if name.endswith(".parquet"):
            pq.write_table(pa.table(content), folder / name, row_group_size=2)
        else:
            (folder / name).write_text(content)
    expected = described(folder, duplicates=duplicates)
    store = import_store(folder, tmp_path / "store", memory_limit="200MiB", duplicates=duplicates)
    assert described(store) == expected
    assert expected[0]
    assert not check(store).problems


def test_attributes_get_the_kinds_that_their_values_have(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "tables", {"author_paper": KINDS})
    ((table,), notes) = described(folder)[0].values(), described(folder)[1]
    assert table[4] == {
        "rating": "integer", "share": "number", "is_first": "boolean", "note": "text", "day": "date", "at": "time",
        "written": "date", "timestamp": "time", "ts": "integer",
    }  # fmt: skip
    assert table[3]["share"] == [0.5, 1.5, None, None, 2.0]
    assert table[3]["timestamp"][:3] == [datetime(2000, 7, 30, 18, 45, 3), datetime(2000, 7, 30, 18, 48, 51), None]
    assert table[3]["at"] == KINDS["at"]
    assert any("members was left out: its values are of type list" in note for note in notes)
    assert any("timestamp was read as times" in note for note in notes)


def test_bad_values_of_declared_attributes_raise_the_same_error(tmp_path: Path) -> None:
    folder = tmp_path / "tables"
    folder.mkdir()
    (folder / "user_movie.csv").write_text("user_id,movie_id,when\n1,10,2020-01-01\n2,10,soon\n")
    (folder / "graph.toml").write_text(
        '[[edges]]\nname = "rates"\nfile = "user_movie.csv"\nsource = "user"\ntarget = "movie"\n'
        'attribute_types = {when = "time"}\n'
    )
    message = "user_movie.csv, line 3: when is 'soon', and attribute_types in graph.toml says it is 'time'"
    for read in (read_in_memory, read_out_of_core):
        with pytest.raises(NeuPathError, match=message):
            read(folder, tmp_path)


def test_parallel_edges_are_merged_in_the_order_of_the_table(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "tables", GOOD["parallel edges with weights"])
    ids, matrices = read_in_memory(folder, tmp_path)
    assert ids == {"author": ["a", "b", "c"], "paper": [2, 1, 3]}
    assert matrices == {"author -author_paper-> paper": [[0, 2, 3, 3], [0, 2, 1], [0.1 + 0.7 + 0.2, 1e-5, 1.0 + 3.3]]}


def test_memory_and_disk_note_the_same_ids_and_read_them_as_graph_toml_says(tmp_path: Path) -> None:
    folder = tmp_path / "tables"
    folder.mkdir()
    rows = "Ann,tea,1\nBo,NULL,2\nann ,tea,3\nBO,-,4\nEve,NULL,5\nÉva  K,x,6\néva k,x,7\n"
    (folder / "user_item.csv").write_text("user_id,item_id,stars\n" + rows)
    (folder / "item_shop.csv").write_text("item_id,shop_id\nNULL,s\ntea,S\n")
    for number, (toml, known) in enumerate([
        ("", 8),
        ('missing_ids = ["NULL", "-"]', 4),
        ("fold_ids = true", 4),
        ('missing_ids = ["NULL", "-"]\nfold_ids = true', 2),
    ]):  # fmt: skip
        (folder / "graph.toml").write_text(toml)
        hin = npth.load(folder)
        store = import_store(folder, tmp_path / f"store-{number}")
        assert hin.num_nodes("user") + hin.num_nodes("shop") - 1 == known
        assert npth.load(store).notes == hin.notes
        assert read_in_memory(folder, tmp_path) == read_in_memory(store, tmp_path)
