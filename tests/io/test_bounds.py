"""Sources from strangers: small files that would cost much, files that never end, files outside a folder."""

import os
import pickle
import weakref
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import neupath as npth
from neupath import NeuPathError
from neupath._runtime import files
from neupath.graph.hin import Edges, digest
from neupath.graph.metapath import Relation
from neupath.graph.nodes import Nodes
from neupath.io import import_store, text_files
from neupath.store import read_update
from tests.tables import Case, check_read, edges_toml, shape, write


# ---- Bounds --------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["a_b.csv", "a_b.tsv.gz", "kg.txt"])
@pytest.mark.parametrize("after", [0, 300])
def test_a_line_that_never_ends_is_refused(
    tmp_path: Path, name: str, after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "LONGEST_LINE", 1 << 18)
    line = "x\tr\ty\n" if name == "kg.txt" else "1\t2\n" if ".tsv" in name else "1,2\n"
    path = write(tmp_path, **{name: line * after + "x" * (3 << 20) + "\n"}) / name
    for read in (npth.load, lambda path: import_store(path, tmp_path / "store", memory_limit="256MiB")):
        with pytest.raises(NeuPathError, match=rf"line {after + 1}: the line is longer than 262,144 characters"):
            read(path)
    assert not (tmp_path / "store").exists()


def test_many_relations_are_refused(tmp_path: Path) -> None:
    triples = "head\trelation\ttail\n" + "".join(f"a\tr{number}\tb\n" for number in range(20_001))
    path = write(tmp_path / "g", kg__txt=triples) / "kg.txt"
    for read in (npth.load, lambda path: import_store(path, tmp_path / "store")):
        with pytest.raises(NeuPathError, match=r"has 20,001 relations, and at most 20,000 can be read; check that"):
            read(path)


def test_relations_with_few_edges_take_little_memory(tmp_path: Path) -> None:
    rows = "".join(f"h{number}\tr{max(0, number - 699)}\tt{number}\n" for number in range(705))
    hin = npth.load(write(tmp_path / "g", kg__txt=f"head\trelation\ttail\n{rows}") / "kg.txt")
    relation = hin.schema.relations[3]
    assert hin.matrices[relation].shape == (1410, 1410)
    assert hin.matrices[relation].tocoo().coords[0].tolist() == [702]
    reference = weakref.ref(hin.matrices[relation])
    assert reference() is None
    matrix = hin.matrices[relation]
    assert hin.matrices[relation] is matrix
    assert not matrix.data.flags.writeable
    assert hin.num_edges(relation) == 1
    stored = npth.load(import_store(tmp_path / "g" / "kg.txt", tmp_path / "store"))
    assert digest(stored) == digest(hin) == digest(pickle.loads(pickle.dumps(hin)))


def test_a_matrix_without_its_empty_rows_is_the_same_matrix() -> None:
    rng = np.random.default_rng(0)
    relation = Relation("a", "r", "b", directed=True)
    nodes = [Nodes("a", pa.array(range(5000))), Nodes("b", pa.array(range(40)))]
    for count in (0, 1, 300, 2000):
        rows, columns, weights = rng.integers(5000, size=count), rng.integers(40, size=count), rng.random(count)
        expected = np.zeros((5000, 40))
        np.add.at(expected, (rows, columns), weights)
        hin = npth.HIN.build(nodes, [Edges(relation, rows, columns, weights)])
        assert np.array_equal(hin.matrices[relation].toarray(), expected)
        assert hin.matrices[relation].indptr.dtype == np.int32


# ---- One source, one sentence --------------------------------------------------------------------
BOMB = b"a_id,b_id\n" + b"1,2\n" * (1 << 20)
UNZIPS = r"unzips to more than 200 times its size .*; if that is right, unzip"
HGB = {"node__dat": "0\tA\t0\n", "link__dat": "0\t0\t0\n"}
NOT_UTF8 = pa.Array.from_buffers(pa.string(), 1, [None, *pa.array([b"\xff\xfe"]).buffers()[1:]])
XML = "<{0}><graph>{1}<edge id='e' source='a' target='{2}'/></graph></{0}>"
EDGE = "edge [ source 0 target 0 directed 1 directed 1 ]"
CASES: dict[str, Case] = {
    **{f"a gzip bomb: {name}": ({name: content}, UNZIPS, {"load": name}) for name, content in (
        ("a_b.csv.gz", BOMB), ("a_b.tsv.gz", BOMB.replace(b",", b"\t")), ("a.graphml.gz", BOMB),
    )},
    "many columns": (
        {"a_b__csv": ",".join(["a_id", "b_id", *(f"c{number}" for number in range(20_000))]) + "\n"},
        r"a_b.csv has 20,002 columns, and at most 20,000 are read",
    ),
    "deep nesting of graph.toml": (HGB | {"graph__toml": "a = " + "[" * 100_000}, "nested too deeply"),
    "deep nesting of info.dat": (HGB | {"info__dat": "[" * 100_000}, "nested too deeply|does not name the types"),
    "deep nesting of GML": ({"g.gml": "graph [ a " + "[ a " * 100_000}, "nested too deeply", {"load": "g.gml"}),
    # ---- Values that would become something else -------------------------------------------------
    "texts of Parquet that are not UTF-8": (
        {"a_b.parquet": {"a_id": NOT_UTF8, "b_id": ["x"]}}, "a_b.parquet cannot be read: .*UTF8",
        {"load": "a_b.parquet"},
    ),
    "an id that is not a number is missing": (
        {"a_b.parquet": {"a_id": [1.0, float("nan")], "b_id": ["x", "y"]}}, "row 2: the edge has an empty a id",
    ),
    "an integer weight that no float holds": (
        {"a_b.parquet": {"a_id": [1, 2], "b_id": [1, 2], "weight": [1, 2**53 + 1]}},
        "row 2: weight 9007199254740993 cannot be held exactly, because weights",
    ),
    "a second byte-order mark": ({"a_b__csv": "\ufeff\ufeffa_id,b_id\n1,2\n"}, "begins with two byte-order marks"),
    **{f"{what} of {suffix}": (
        {f"g.{suffix}": XML.format(suffix, nodes, target)}, message, {"load": f"g.{suffix}"}
    ) for suffix in ("graphml", "gexf") for what, nodes, target, message in (
        ("a node given twice", "<node id='a'/><node id='a'/>", "a",
         "node id 'a' is repeated; node ids must be unique"),
        ("an edge to nowhere", "<node id='a'/>", "z",
         "the edge from 'a' to 'z' leads to 'z', which is not a node of the file"),
    )},
    "an attribute of GML given twice is no traceback": (
        {"g.gml": f'graph [ directed 1 node [ id 0 label "a" ] {EDGE} ]'}, {"node -edge-> node": 1}, {"load": "g.gml"}
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_sources(tmp_path: Path, case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_files, "_MOST_UNZIPPED", 1 << 20)
    check_read(tmp_path / "g", *CASES[case])


# ---- Files that are not files --------------------------------------------------------------------
@pytest.mark.parametrize("name", ["a.mat", "a.graphml", "pipe", "g/graph.toml", "g/a_b.csv"])
def test_pipes_are_refused(tmp_path: Path, name: str) -> None:
    write(tmp_path / "g", graph__toml=edges_toml("r", "a_b.csv", "a", "b"))
    (tmp_path / name).unlink(missing_ok=True)
    os.mkfifo(tmp_path / name)
    source = tmp_path / "g" if name.startswith("g/") else tmp_path / name
    with pytest.raises(NeuPathError, match="is a pipe, a socket or a device|is not a graph that neupath can read"):
        npth.load(source)
    with pytest.raises(NeuPathError):
        npth.load(write(tmp_path / "h", a_b__csv="a_id,b_id\n1,2\n"), config="/dev/zero")


def test_links_to_themselves_end(tmp_path: Path) -> None:
    files = {"a_b__csv": "a_id,b_id\n1,2\n", "c_d/0__parquet": {"c_id": [1], "d_id": [2]}}
    folder = write(tmp_path / "g", **files)
    for name in ("x=1", "y=1"):
        (folder / "c_d" / name).symlink_to(folder / "c_d")
    (folder / "loop.csv").symlink_to(folder / "loop.csv")
    check_read(folder, {}, {"a -a_b-> b": 1, "c -c_d-> d": 1})


@pytest.mark.parametrize("name", ["../a_b.csv", "/etc/passwd", "x/../../a_b.csv"])
def test_the_graph_toml_of_a_folder_names_only_files_in_it(tmp_path: Path, name: str) -> None:
    write(tmp_path, a_b__csv="a_id,b_id\n1,2\n")
    files = {"graph__toml": edges_toml("r", name, "a", "b")}
    check_read(tmp_path / "g", files, r"which is outside its folder; move the file into the folder or link")
    (tmp_path / "g" / "x").mkdir()
    if name != "/etc/passwd":  # whoever gives a graph.toml may name any file in it
        assert shape(npth.load(tmp_path / "g", config=tmp_path / "g" / "graph.toml")) == {"a -r-> b": 1}


def test_quotes_in_tabbed_updates_are_ordinary_characters_as_in_tables(tmp_path: Path) -> None:
    write(tmp_path, a_b__tsv='a_id\tb_id\n"x"\ty"\n', new__tsv='relation\tsource\ttarget\na_b\t"x"\ty"\n')
    update = read_update(add=[tmp_path / "new.tsv"])
    nodes = npth.load(tmp_path / "a_b.tsv").nodes
    assert (update.add_edges[0].source, update.add_edges[0].target) == (nodes["a"].id(0), nodes["b"].id(0))
