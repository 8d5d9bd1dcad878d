"""Tables imported in batches give the same store as tables read into memory, or the same error."""

import sys
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from subprocess import run as run_process
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import neupath as npth
from neupath import HIN, NeuPathError
from neupath.errors import QueryError, WriteError
from neupath.graph.hin import digest
from neupath.io import import_store, out_of_core, write_folder
from neupath.io.formats import parquet, text
from neupath.io.values import ColumnType
from neupath.store import bulk_writer as filling
from neupath.store import check, database, open_store, write_store
from neupath.store.database import run
from tests.graphs import hins
from tests.tables import BAD_FOLDERS, CAST, FREEBASE, MOVIES, write


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut tables into parts of a few rows, so that everything goes on in the next part."""
    monkeypatch.setattr(parquet, "_BATCH_ROWS", 2)
    monkeypatch.setattr(text, "_BATCH_BYTES", 256)
    monkeypatch.setattr(out_of_core, "BATCH_ROWS", 3)
    monkeypatch.setattr(filling, "BATCH_ROWS", 2048)


def assert_same(source: Path, parent: Path, **options: object) -> HIN:
    """Import a source in parts and whole, and compare all that the two stores hold."""
    whole = write_store(npth.load(source, **options), parent / "whole")  # type: ignore[arg-type]
    parts = import_store(source, parent / "parts", memory_limit="200MiB", **options)  # type: ignore[arg-type]
    one, other = npth.load(whole), npth.load(parts)
    assert digest(one) == digest(other)
    assert (one.schema, one.notes, described(one)) == (other.schema, other.notes, described(other))
    for node_type, nodes in one.nodes.items():
        other_nodes = other.nodes[node_type]
        assert (nodes.ids, nodes.names) == (other_nodes.ids, other_nodes.names)
        assert nodes.attributes.equals(other_nodes.attributes)
        assert nodes.attributes.schema.equals(other_nodes.attributes.schema)
    assert open_store(whole).facts() == open_store(parts).facts()
    assert not check(parts).problems
    assert sorted(p.name for p in parts.rglob("*")) == sorted(p.name for p in whole.rglob("*"))
    return other


def described(hin: HIN) -> dict[str, list[Any]]:
    """Return the single edges of each relation with attributes."""
    return {
        str(relation): [
            *(part.tolist() for part in (table.sources, table.targets, table.weights)),
            table.attributes.to_pydict(),
            hin.edge_kinds(relation),
        ]
        for relation, table in hin.edge_tables.items()
    }


def matrices(hin: HIN) -> dict[str, list[list[float]]]:
    return {str(r): [m.indptr.tolist(), m.indices.tolist(), m.data.tolist()] for r, m in hin.matrices.items()}


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


TYPES = (
    "movie_id,title,year,score,seen,on,at,when,fine,nothing,mixed,raw\n"
    + "".join(f"m{n},T{n},{1990 + n},{n}.5,true,2020-01-0{n},10:0{n}:00,2020-01-01 00:00:0{n},"
              f"2020-01-01 00:00:00.{n},,{n},text {n}\n" for n in range(1, 9))
    + 'm9,"a ""quoted"", name",,7,false,,,,,NULL,none,"two\nlines"\n'
)  # fmt: skip
FILES: dict[str, Mapping[str, Any]] = {
    "nodes and relations": {
        "movies__tsv": MOVIES,
        "movie_actor__tsv__gz": CAST,
        "movie_genre__csv": "movie_id,genre\n1,War\n",
    },
    "attributes of all types": {"movies__csv": TYPES, "movie_actor__csv": "movie_id,actor_id\nm1,1\nm9,-7\nm9,010\n"},
    "parallel edges with weights": {
        "a_b__csv": "a_id,b_id,weight\n" + "".join(f"x{n % 3},y{n % 2},{n / 7}\n" for n in range(60)) + "x9,y1,0\n"
    },
    "no edges": {"a_b__csv": "a_id,b_id\n", "as__csv": "a_id\n1\n"},
    "undirected": {
        "paper_cites_paper__csv": "paper_id,cited_paper_id,weight\n"
        + "".join(f"p{n % 4},p{n * n % 5},{n / 3}\n" for n in range(40)),
        "graph__toml": 'undirected = ["cites"]\n[abbreviations]\nQ = "paper"\n',
    },
    "configured": {
        "m__csv": "key;label;year\n1;One;\n2;Two;1999\n",
        "cast__csv": "who;what;minutes\nz;1;2.5\ny;2;1\nz;1;1.25\n",
        "other_thing__csv": "other_id;thing_id\n1;2\n",
        "graph__toml": 'delimiter = ";"\ntake = ["acts"]\n[nodes.movie]\nfile = "m.csv"\nid = "key"\nname = "label"\n'
        'attributes = ["year", "label"]\n[[edges]]\nname = "acts"\nfile = "cast.csv"\nsource = "actor"\n'
        'target = "movie"\ncolumns = ["who", "what"]\nweight = "minutes"\n',
    },
    "pair": {
        "nodes__tsv": "id\tname\tkind\tsize\n"
        "G1\tABC\tGene\t1\n7\tflu\tDisease\t\nG2\tXYZ\tGene\t2.5\n8\t\tDisease\t3\n",
        "edges__tsv": "source\tmetaedge\ttarget\tscore\n"
        "7\tDaG\tG1\t0.5\nG1\tGiG\tG2\t1\nG2\tGiG\tG1\t.1\n7\tGiG\tG2\t1\n",
        "metaedges__tsv": "x\ty\n1\t2\n",
        "graph__toml": 'undirected = ["GiG"]\n[pair]\nweight = "score"\n',
    },
    "triples in parts": {"train__txt": FREEBASE, "valid__txt": "/m/9\t/film/actor\t/m/2\n", "test__txt": "1\tx\t2\n"},
    "triples with types": {
        "kg__csv": "head,relation,tail,weight\n" + "".join(f"{n % 7},r{n % 3},{n % 5},{n / 9}\n" for n in range(50)),
        "types__tsv": "entity\ttype\tname\n" + "".join(f"{n}\tt{n % 3}\tname {n}\n" for n in range(7)),
        "graph__toml": '[triples]\nfiles = ["kg.csv"]\ntypes = "types.tsv"\n',
    },
    "no triples": {"train__tsv": "head\trelation\ttail\n"},
    "folded ids": {
        "user_item__csv": "user_id,item_id,stars\nAnn,tea,1\nBo,NULL,2\nann ,tea,3\nBO,-,4\nÉva  K,x,6\néva k,x,7\n",
        "users__csv": "user_id,name\nBo,B\nAnn,A\nANN,Z\nÉva K,E\n",
        "graph__toml": 'missing_ids = ["NULL", "-"]\nfold_ids = true',
    },
    "ids that look alike or empty": {
        "user_item__csv": "user_id,item_id,stars\nAnn,tea,1\nBo,NULL,2\nann ,tea,3\nBO,-,4\nEve,NULL,5\n",
        "item_shop__csv": "item_id,shop_id\nNULL,s\ntea,S\n1.0,1\n1,2\n",
    },
    "ids in order of appearance": {
        "author_paper": {"author_id": ["c", "a", "b", "a"], "paper_id": [9, 7, 9, 8]},
        "paper_venue": {"paper_id": [8, 5], "venue_id": ["v", "u"]},
    },
    "integers here and texts there": {
        "author_paper": {"author_id": ["a", "b"], "paper_id": ["8", "9"]},
        "paper_venue": {"paper_id": [9, 7], "venue_id": ["10", "9"]},
    },
    "a type to itself": {
        "paper_cites_paper": {"paper_id": [1, 2, 1, 3, 9], "cited_paper_id": [2, 7, 9, 3, 8]},
        "graph__toml": 'undirected = ["cites"]\n',
    },
    "Parquet": {
        "movies": {"movie_id": [3, 1, 2], "name": ["x", None, "z"], "tags": [["a"], None, []]},
        "movie_actor": {"movie_id": ["1", "2", "1", "1"], "actor_id": [7, 8, 7, 9], "weight": [0.1, 0.2, 0.7, 3.0]},
        "movie_liked_actor": {"movie_id": [1], "actor_id": ["8"]},
    },
    "Parquet without edges": {"authors": {"author_id": ["b", "a"]}, "author_paper": {"author_id": [], "paper_id": []}},
    "relations and types that are numbers": {
        "nodes": {"id": [1, 2, 3], "type": [7, 8, 7]},
        "edges": {"source": [1, 2, 3], "relation": [5, 5, 6], "target": [2, 3, 1]},
    },
}


@pytest.mark.parametrize("case", list(FILES))
@pytest.mark.slow
def test_tables(tmp_path: Path, case: str) -> None:
    assert_same(write(tmp_path / "g", **FILES[case]), tmp_path)


@pytest.mark.parametrize(
    "case", ["parallel edges with weights", "undirected", "triples with types", "a type to itself"]
)
@pytest.mark.slow
def test_parallel_edges_are_dropped(tmp_path: Path, case: str) -> None:
    assert_same(write(tmp_path / "g", **FILES[case]), tmp_path, duplicates="drop")


@pytest.mark.parametrize("name", ["a_b.csv", "kg.tsv"])
@pytest.mark.slow
def test_single_files(tmp_path: Path, name: str) -> None:
    assert_same(write(tmp_path / "g", a_b__csv="a_id,b_id\n1,2\n", kg__tsv=FREEBASE) / name, tmp_path)


@settings(max_examples=5, deadline=None)
@given(hin=hins())
@pytest.mark.slow
def test_exported_graphs(tmp_path_factory: pytest.TempPathFactory, hin: HIN) -> None:
    parent = tmp_path_factory.mktemp("parent")
    assert digest(assert_same(write_folder(hin, parent / "g"), parent)) == digest(hin)


def test_ids_are_in_order_of_appearance_and_parallel_edges_add_up_in_that_of_the_table(tmp_path: Path) -> None:
    columns = {"author_id": ["a", "b", "a", "c", "a", "b", "a"], "paper_id": [2, 1, 2, 1, 3, 1, 2]}
    weights = [0.1, 1.0, 0.7, 0.0, 1e-5, 3.3, 0.2]
    hin = assert_same(write(tmp_path / "g", **{"author_paper": {**columns, "weight": weights}}), tmp_path)
    assert [nodes.ids.to_pylist() for nodes in hin.nodes.values()] == [["a", "b", "c"], [2, 1, 3]]
    expected = [[0, 2, 3, 3], [0, 2, 1], [0.1 + 0.7 + 0.2, 1e-5, 1.0 + 3.3]]
    assert matrices(hin) == {"author -author_paper-> paper": expected}


def test_the_targets_of_a_type_to_itself_come_after_all_of_its_sources(tmp_path: Path) -> None:
    hin = assert_same(write(tmp_path / "g", **FILES["a type to itself"]), tmp_path)
    assert hin.nodes["paper"].ids.to_pylist() == [1, 2, 3, 9, 7, 8]


def test_a_dictionary_column_is_read(tmp_path: Path) -> None:
    kinds = pa.array(["x", "y", "x"]).dictionary_encode()
    tables = {"movies": {"movie_id": [1, 2, 3], "kind": kinds}, "movie_actor": {"movie_id": [1, 3], "actor_id": [7, 8]}}
    folder = write(tmp_path / "g", **tables)
    with pytest.raises(QueryError, match="is not read in batches, so memory_limit has no effect; leave it out"):
        import_store(folder, tmp_path / "s", memory_limit="1GiB")
    assert digest(npth.load(import_store(folder, tmp_path / "s"))) == digest(npth.load(folder))


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

ATTRIBUTES: dict[str, tuple[str, Mapping[str, Any]]] = {
    "all kinds": ("drop", {"author_paper": KINDS}),
    "triples": ("drop", {"kg__csv": TRIPLES}),
    "triples in parts": ("count", {"train__csv": TRIPLES, "test__csv": MORE_TRIPLES,
        "valid__csv": "head,relation,tail\nc,likes,b\n"}),
    "declared": ("count", {"kg__csv": TRIPLES, "graph__toml": 'undirected = ["knows"]\n[triples]\ncolumns = ["head", '
        '"relation", "tail"]\nattribute_types = {score = "text", since = "time"}\n'}),
    "a weight": ("count", {"user_movie__csv": RATINGS, "graph__toml": '[[edges]]\nname = "rates"\nfile = '
        '"user_movie.csv"\nsource = "user"\ntarget = "movie"\nweight = "rating"\nattribute_types = {timestamp = '
        '"unix"}\n'}),
    "no time": ("count", {"user_movie__csv": RATINGS.replace(",964982401", ",")}),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("case", list(ATTRIBUTES))
def test_attributes_of_edges(tmp_path: Path, case: str) -> None:
    duplicates, files = ATTRIBUTES[case]
    hin = assert_same(write(tmp_path / "g", **files), tmp_path, duplicates=duplicates)
    assert described(hin)
    if case != "all kinds":
        return
    (table,) = described(hin).values()
    assert table[4] == {
        "rating": "integer", "share": "number", "is_first": "boolean", "note": "text", "day": "date", "at": "time",
        "written": "date", "timestamp": "time", "ts": "integer",
    }  # fmt: skip
    assert table[3]["share"] == [0.5, 1.5, None, 2.0]
    assert table[3]["timestamp"][:2] == [datetime(2000, 7, 30, 18, 45, 3), datetime(2000, 7, 30, 18, 48, 51)]
    assert table[3]["at"] == [KINDS["at"][row] for row in (0, 1, 3, 4)]
    assert any("members was left out: its values are of type list" in note for note in hin.notes)
    assert any("timestamp was read as times" in note for note in hin.notes)


# ---- Errors --------------------------------------------------------------------------------------
AUTHORS = {"author_id": ["z", "Al  B"]}
BAD: dict[str, tuple[Mapping[str, Any], str]] = {
    **BAD_FOLDERS,
    "parallel": ({"a_b__csv": "a_id,b_id\n1,2\n1,3\n2,2\n1,3\n1,2\n"}, "edge number 4"),
    "parallel, undirected": (
        {"a_likes_a__csv": "a_id,liked_a_id\nx,y\ny,z\ny,x\n", "graph__toml": 'undirected = ["likes"]'},
        "edge number 3",
    ),
    "parallel triples": ({"train__txt": "a\tr\tb\na\ts\tb\nb\tr\tb\na\ts\tb\na\tr\tb\n"}, "edge number"),
    "unknown relation of triples": ({"train__txt": FREEBASE, "graph__toml": 'take = ["c"]'}, "no relation named 'c'"),
    "empty relation": ({"kg__csv": "head,relation,tail\na,r,b\na,,b\n"}, "kg.csv, line 3: the relation is empty"),
    "late weight": (
        {"a_b__csv": "a_id,b_id,weight\n" + "x,y,1\n" * 100 + "x,y,1e999\nx,y,z\n"}, "line 102: weight '1e999'",
    ),
    "ids before weights": ({"a_b__csv": "a_id,b_id,weight\nx,y,z\n,y,1\n"}, "line 3: the edge has an empty a id"),
    "weights in one part": (
        {"train__csv": "head,relation,tail,weight\na,r,b,1\n", "test__csv": "head,relation,tail\na,r,c\n"},
        "test.csv, line 2: weight None",
    ),
    "repeats": (
        {"as__csv": "a_id\nx\ny\nz\ny\nx\n", "a_b__csv": "a_id,b_id\nx,y\n"}, "line 5: node id 'y' is repeated",
    ),
    "bad abbreviation": (
        {"a_b__csv": "a_id,b_id\nx,y\n", "graph__toml": '[abbreviations]\nX = "nothing"'}, "nothing",
    ),
    "many lost": (
        {"authors": AUTHORS, "author_paper": {"author_id": ["z", "z", "x", "y"], "paper_id": [1, 2, 3, 4]}},
        r"author_paper.parquet, row 3: the edge leads to author 'x', which is not in the node table of author \(2 such",
    ),
    "a lost id that differs only by case or spaces": (
        {"authors": AUTHORS, "author_paper": {"author_id": ["z", "al b "], "paper_id": [1, 2]}},
        r"row 2: the edge leads to author 'al b ', .* \(1 such edge ends in all\); did you mean 'Al  B'\? the ids "
        r"differ only by case or spaces, and fold_ids = true in graph.toml makes them one",
    ),
    "a node that is null": (
        {"authors": {"author_id": ["a", None]}, "author_paper": {"author_id": ["a"], "paper_id": [1]}},
        "authors.parquet, row 2: the node has an empty id",
    ),
    "a value that is not declared": (
        {"user_movie__csv": "user_id,movie_id,when\n1,10,2020-01-01\n2,10,soon\n",
         "graph__toml": '[[edges]]\nname = "rates"\nfile = "user_movie.csv"\nsource = "user"\ntarget = "movie"\n'
         'attribute_types = {when = "time"}\n'},
        "user_movie.csv, line 3: when is 'soon', and attribute_types in graph.toml says it is 'time'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", list(BAD))
def test_errors_are_the_same(tmp_path: Path, case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    files, message = BAD[case]
    if case == "not UTF-8, late":
        monkeypatch.undo()
    folder = write(tmp_path / "g", **files)
    duplicates: Any = None if case in BAD_FOLDERS else "error"
    with pytest.raises(NeuPathError, match=message) as whole:
        npth.load(folder, duplicates=duplicates)
    with pytest.raises(type(whole.value)) as parts:
        import_store(folder, tmp_path / "s", duplicates=duplicates)
    assert str(parts.value) == str(whole.value)
    assert names(tmp_path) == ["g"]


def test_parallel_edges_whose_sum_overflows_are_refused(tmp_path: Path) -> None:
    folder = write(tmp_path / "g", a_b__csv="a_id,b_id,weight\nx,y,1e308\nx,y,1e308\nx,z,0.5\n")
    for read in (npth.load, lambda folder: import_store(folder, tmp_path / "s")):
        with pytest.raises(NeuPathError, match="weights of parallel edges of 'a -a_b-> b' add up to more than a float"):
            read(folder)
    assert names(tmp_path) == ["g"]


def test_large_whole_numbers_are_added_up_in_the_same_order(tmp_path: Path) -> None:
    lines = "".join(f"x,y,{weight}\n" for weight in (2**53, 1, 1, 1, 2**54, 1, 3))
    folder = write(tmp_path / "g", a_b__csv=f"a_id,b_id,weight\n{lines}")
    assert digest(npth.load(import_store(folder, tmp_path / "s"))) == digest(npth.load(folder))


words = st.sampled_from(["1", "2", "02", "-3", "x", "y ", '"', "é", ""])
numbers = st.sampled_from(["1", "0.1", "0.7", " 2 ", "0", "1e-3", "-1", ""])


def rows(draw: st.DrawFn, *cells: st.SearchStrategy[str]) -> str:
    """Draw lines of cells, all of them quoted."""
    drawn = draw(st.lists(st.tuples(*cells), max_size=12))
    return "".join(",".join('"{}"'.format(cell.replace('"', '""')) for cell in row) + "\n" for row in drawn)


@st.composite
def folders(draw: st.DrawFn) -> dict[str, str]:
    """A folder of tables, of which many have something wrong with them."""
    if draw(st.booleans()):
        relations = st.sampled_from(["r", "s"])
        files = {"edges__csv": "source,relation,target,weight\n" + rows(draw, words, relations, words, numbers)}
        typed = "id,type,year\n" + rows(draw, words, st.sampled_from(["t", "u"]), words)
        return files | ({"nodes__csv": typed} if draw(st.booleans()) else {})
    files = {"a_b__csv": "a_id,b_id,weight\n" + rows(draw, words, words, numbers)}
    files["a_likes_a__csv"] = "a_id,liked_a_id\n" + rows(draw, words, words)
    return files | ({"as__csv": "a_id,name,year\n" + rows(draw, words, words, words)} if draw(st.booleans()) else {})


@settings(max_examples=25, deadline=None)
@given(files=folders(), duplicates=st.sampled_from(["count", "drop", "error"]))
@pytest.mark.slow
def test_any_tables(tmp_path_factory: pytest.TempPathFactory, files: dict[str, str], duplicates: str) -> None:
    parent = tmp_path_factory.mktemp("parent")
    folder = write(parent / "g", **files)
    try:
        npth.load(folder, duplicates=duplicates)  # type: ignore[arg-type]
    except NeuPathError as whole:
        with pytest.raises(type(whole)) as parts:
            import_store(folder, parent / "s", duplicates=duplicates)  # type: ignore[arg-type]
        assert str(parts.value) == str(whole)
    else:
        assert_same(folder, parent, duplicates=duplicates)


CELLS = [
    "", "NULL", "1", "0", "-7", "1.5", "1e3", "nan", "true", "False", "2020-01-02", "10:11:12", "2020-01-02 03:04:05",
    "2020-01-02T03:04:05.25", "2020-01-02T03:04:05Z", "2020-01-02T03:04:05.5Z", "text", " 3", "99999999999999999999",
]  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(CELLS), max_size=6))
@pytest.mark.slow
def test_types_are_those_of_arrow(cells: list[str]) -> None:
    written = pa.py_buffer(("c\n" + "".join(f'"{cell}"\n' for cell in cells)).encode())
    column = ColumnType()
    for cell in cells:
        column.update(pa.array([cell.encode()]))
    assert column.type == pa.csv.read_csv(written).schema.field("c").type


@pytest.mark.slow
def test_bytes_that_are_not_text(tmp_path: Path) -> None:
    movies = b"movie_id\tplot\n" + b"".join(b"%d\tabout %d\n" % (n, n) for n in range(3000)) + b"9999\tJ\xf6rg\n"
    folder = write(tmp_path / "g", movies__tsv=movies, movie_actor__tsv="movie_id\tactor_id\n9999\t1\n")
    assert assert_same(folder, tmp_path).nodes["movie"].attributes.schema.field("plot").type == pa.binary()


@pytest.mark.parametrize("limit", ["much", "-1GiB", "1", "2GiB; DROP TABLE x"])
def test_a_limit_is_a_size(tmp_path: Path, limit: str) -> None:
    folder = write(tmp_path / "g", movie_actor__tsv=CAST)
    with pytest.raises(QueryError, match="is no size; write it as 512MiB or 2GiB"):
        import_store(folder, tmp_path / "s", memory_limit=limit)
    assert names(tmp_path) == ["g"]


def test_too_little_memory_is_one_sentence(tmp_path: Path) -> None:
    folder = write(tmp_path / "g", a_b__csv="a_id,b_id\n" + "".join(f"{n},{n}\n" for n in range(5000)))
    with pytest.raises(WriteError, match="100KiB of memory are not enough for this; give more"):
        import_store(folder, tmp_path / "s", memory_limit="100KiB")
    assert names(tmp_path) == ["g"]


def test_an_existing_file_and_an_interruption(tmp_path: Path) -> None:
    folder = write(tmp_path / "g", movie_actor__tsv=CAST)
    (tmp_path / "file").write_text("x")
    with pytest.raises(WriteError, match=r"cannot write .*file/s: (File exists|Not a directory)"):
        import_store(folder, tmp_path / "file" / "s")

    def interrupt(_stage: str, _done: int, _total: int | None) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_store(folder, tmp_path / "s", progress=interrupt)
    assert names(tmp_path) == ["file", "g"]


class Interrupted:
    """A connection on which Ctrl-C is pressed while it works, as DuckDB tells of it."""

    def execute(self, _statement: str, _values: list[object]) -> None:
        raise RuntimeError("Query interrupted")


def test_an_interrupted_statement_is_an_interruption() -> None:
    with pytest.raises(KeyboardInterrupt):
        run(Interrupted(), "SELECT 1")


FULL_DISK = """
import resource, signal, sys
from neupath import NeuPathError
from neupath.io import import_store
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
import duckdb
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), int(sys.argv[3])))
try:
    import_store(sys.argv[1], sys.argv[2])
except NeuPathError as error:
    print(type(error).__name__, error)
"""


@pytest.mark.parametrize("size", [5_000, 200_000, 600_000])
@pytest.mark.slow
def test_a_full_disk_is_one_sentence_and_leaves_nothing(tmp_path: Path, size: int) -> None:
    lines = "".join(f"author number {n % 9000},paper number {n}\n" for n in range(40_000))
    folder = write(tmp_path / "g", a_b__csv="a_id,b_id\n" + lines)
    command = [sys.executable, "-c", FULL_DISK, str(folder), str(tmp_path / "s"), str(size)]
    process = run_process(command, capture_output=True, text=True, check=True)
    assert process.stdout.startswith(f"WriteError cannot write {tmp_path / 's'}: ")
    assert process.stdout.count("\n") == 1
    assert names(tmp_path) == ["g"]


# ---- Many relations ------------------------------------------------------------------------------
@pytest.mark.parametrize("edges_per_transaction", [1 << 18, 10])
@pytest.mark.slow
def test_small_relations_share_transactions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, edges_per_transaction: int
) -> None:
    """Each commit waits for the disk, so that many relations would take minutes."""
    statements: list[str] = []
    run_statement = database.run

    def recorded(connection: Any, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        statements.append(statement)
        return run_statement(connection, statement, values)

    rows = "".join(f"a{number}\tr{number}\tb{number % 7}\n" for number in range(60))
    path = write(tmp_path / "g", kg__txt=f"head\trelation\ttail\n{rows}") / "kg.txt"
    with monkeypatch.context() as patch:
        for module in (filling, database):
            patch.setattr(module, "run", recorded)
        patch.setattr(filling, "BATCH_ROWS", edges_per_transaction)
        import_store(path, tmp_path / "store")
    assert digest(npth.load(tmp_path / "store")) == digest(npth.load(path))
    transactions = -(-60 // edges_per_transaction)
    assert [statements.count(word) for word in ("BEGIN TRANSACTION", "COMMIT")] == [transactions, transactions]
    assert sum(statement.startswith("INSERT INTO edges_") for statement in statements) == 60


def test_names_without_attributes_are_imported_where_rows_are_left_out(tmp_path: Path) -> None:
    folder = tmp_path / "g"
    folder.mkdir()
    (folder / "venues.csv").write_text("venue_id,name\nv1,VLDB\nv2,KDD\nNULL,none\n")
    (folder / "paper_venue.csv").write_text("paper_id,venue_id\np1,v1\np2,v2\np3,NULL\n")
    (folder / "graph.toml").write_text('missing_ids = ["NULL"]\n')
    assert digest(npth.load(import_store(folder, tmp_path / "store"))) == digest(npth.load(folder))
