"""Sources from strangers: small files that would cost much, files that never end, files outside a folder."""

import gzip
import os
import pickle
import weakref
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import neupath as npth
from neupath import NeuPathError
from neupath._runtime import files
from neupath.graph.hin import Edges, digest
from neupath.graph.metapath import Relation
from neupath.graph.nodes import Nodes
from neupath.io import import_store, text_files
from neupath.store import read_update
from tests.tables import shape, write

EDGES = '[[edges]]\nname = "r"\nfile = "{}"\nsource = "a"\ntarget = "b"\n'


# ---- Bounds --------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["a_b.csv", "a_b.tsv.gz", "kg.txt"])
@pytest.mark.parametrize("after", [0, 300])
def test_a_line_that_never_ends_is_refused(
    tmp_path: Path, name: str, after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "LONGEST_LINE", 1 << 18)
    line = "x\tr\ty\n" if name == "kg.txt" else "1\t2\n" if ".tsv" in name else "1,2\n"
    text = (line * after + "x" * (3 << 20) + "\n").encode()
    (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    for read in (npth.load, lambda path: import_store(path, tmp_path / "store", memory_limit="256MiB")):
        with pytest.raises(NeuPathError, match=rf"line {after + 1}: the line is longer than 262,144 characters"):
            read(tmp_path / name)
    assert not (tmp_path / "store").exists()


def test_a_gzip_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_files, "_MOST_UNZIPPED", 1 << 20)
    bomb = gzip.compress(b"a_id,b_id\n" + b"1,2\n" * (1 << 20))
    for name, content in (("a_b.csv.gz", bomb), ("a_b.tsv.gz", bomb.replace(b",", b"\t")), ("a.graphml.gz", bomb)):
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(NeuPathError, match=r"unzips to more than 200 times its size .*; if that is right, unzip"):
            npth.load(path)


def test_many_columns_are_refused(tmp_path: Path) -> None:
    names = ",".join(["a_id", "b_id", *(f"c{number}" for number in range(20_000))])
    with pytest.raises(NeuPathError, match=r"a_b.csv has 20,002 columns, and at most 20,000 are read"):
        npth.load(write(tmp_path / "g", a_b__csv=f"{names}\n"))


def test_many_relations_are_refused(tmp_path: Path) -> None:
    triples = "head\trelation\ttail\n" + "".join(f"a\tr{number}\tb\n" for number in range(20_001))
    path = write(tmp_path / "g", kg__txt=triples) / "kg.txt"
    for read in (npth.load, lambda path: import_store(path, tmp_path / "store")):
        with pytest.raises(NeuPathError, match=r"has 20,001 relations, and at most 20,000 can be read; check that"):
            read(path)


def test_relations_with_few_edges_take_little_memory(tmp_path: Path) -> None:
    rows = "".join(f"h{number}\tr{max(0, number - 699)}\tt{number}\n" for number in range(705))
    triples = "head\trelation\ttail\n" + rows
    hin = npth.load(write(tmp_path / "g", kg__txt=triples) / "kg.txt")
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


# ---- Files that are not files --------------------------------------------------------------------
@pytest.mark.parametrize("name", ["a.mat", "a.graphml", "pipe", "g/graph.toml", "g/a_b.csv"])
def test_pipes_are_refused(tmp_path: Path, name: str) -> None:
    write(tmp_path / "g", graph__toml=EDGES.format("a_b.csv"))
    (tmp_path / name).unlink(missing_ok=True)
    os.mkfifo(tmp_path / name)
    source = tmp_path / "g" if name.startswith("g/") else tmp_path / name
    with pytest.raises(NeuPathError, match="is a pipe, a socket or a device|is not a graph that neupath can read"):
        npth.load(source)
    with pytest.raises(NeuPathError):
        npth.load(write(tmp_path / "h", a_b__csv="a_id,b_id\n1,2\n"), config="/dev/zero")


def test_links_to_themselves_end(tmp_path: Path) -> None:
    folder = write(tmp_path / "g", a_b__csv="a_id,b_id\n1,2\n")
    parts = folder / "c_d"
    parts.mkdir()
    pq.write_table(pa.table({"c_id": [1], "d_id": [2]}), parts / "0.parquet")
    (parts / "x=1").symlink_to(parts)
    (parts / "y=1").symlink_to(parts)
    (folder / "loop.csv").symlink_to(folder / "loop.csv")
    assert shape(npth.load(folder)) == {"a -a_b-> b": 1, "c -c_d-> d": 1}


@pytest.mark.parametrize("name", ["../a_b.csv", "/etc/passwd", "x/../../a_b.csv"])
def test_the_graph_toml_of_a_folder_names_only_files_in_it(tmp_path: Path, name: str) -> None:
    write(tmp_path, a_b__csv="a_id,b_id\n1,2\n")
    folder = write(tmp_path / "g", graph__toml=EDGES.format(name))
    with pytest.raises(NeuPathError, match=r"which is outside its folder; move the file into the folder or link"):
        npth.load(folder)
    (folder / "x").mkdir()
    if name != "/etc/passwd":  # whoever gives a graph.toml may name any file in it
        assert shape(npth.load(folder, config=folder / "graph.toml")) == {"a -r-> b": 1}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("graph.toml", "a = " + "[" * 100_000),
        ("info.dat", "[" * 100_000),
        ("g.gml", "graph [ a " + "[ a " * 100_000),
    ],
)
def test_deep_nesting_is_refused(tmp_path: Path, name: str, text: str) -> None:
    folder = write(tmp_path / "g", node__dat="0\tA\t0\n", link__dat="0\t0\t0\n")
    (folder / name).write_text(text)
    with pytest.raises(NeuPathError, match="nested too deeply|does not name the types"):
        npth.load(folder / name if name == "g.gml" else folder)


def test_quotes_in_tabbed_updates_are_ordinary_characters_as_in_tables(tmp_path: Path) -> None:
    write(tmp_path, a_b__tsv='a_id\tb_id\n"x"\ty"\n', new__tsv='relation\tsource\ttarget\na_b\t"x"\ty"\n')
    update = read_update(add=[tmp_path / "new.tsv"])
    nodes = npth.load(tmp_path / "a_b.tsv").nodes
    assert (update.add_edges[0].source, update.add_edges[0].target) == (nodes["a"].id(0), nodes["b"].id(0))


# ---- Values that would become something else -----------------------------------------------------
def test_texts_of_parquet_that_are_not_utf8_are_refused(tmp_path: Path) -> None:
    raw = pa.Array.from_buffers(pa.string(), 1, [None, *pa.array([b"\xff\xfe"]).buffers()[1:]])
    pq.write_table(pa.table({"a_id": raw, "b_id": ["x"]}), tmp_path / "a_b.parquet")
    with pytest.raises(NeuPathError, match="a_b.parquet cannot be read: .*UTF8"):
        npth.load(tmp_path / "a_b.parquet")


def test_an_id_that_is_not_a_number_is_missing(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a_id": [1.0, float("nan")], "b_id": ["x", "y"]}), tmp_path / "a_b.parquet")
    with pytest.raises(NeuPathError, match="row 2: the edge has an empty a id"):
        npth.load(tmp_path / "a_b.parquet")


def test_an_integer_weight_that_no_float_holds_is_named(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a_id": [1, 2], "b_id": [1, 2], "weight": [1, 2**53 + 1]}), tmp_path / "a_b.parquet")
    with pytest.raises(NeuPathError, match="row 2: weight 9007199254740993 cannot be held exactly, because weights"):
        npth.load(tmp_path / "a_b.parquet")


def test_a_second_byte_order_mark_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NeuPathError, match="begins with two byte-order marks"):
        npth.load(write(tmp_path / "g", a_b__csv="\ufeff\ufeffa_id,b_id\n1,2\n"))


@pytest.mark.parametrize("suffix", ["graphml", "gexf"])
def test_nodes_given_twice_and_edges_to_nowhere_are_refused(tmp_path: Path, suffix: str) -> None:
    graph = "<{0}><graph>{1}<edge id='e' source='a' target='{2}'/></graph></{0}>"
    path = tmp_path / f"g.{suffix}"
    path.write_text(graph.format(suffix, "<node id='a'/><node id='a'/>", "a"))
    with pytest.raises(NeuPathError, match="node id 'a' is repeated; node ids must be unique"):
        npth.load(path)
    path.write_text(graph.format(suffix, "<node id='a'/>", "z"))
    with pytest.raises(NeuPathError, match="the edge from 'a' to 'z' leads to 'z', which is not a node of the file"):
        npth.load(path)


def test_an_attribute_given_twice_is_no_traceback(tmp_path: Path) -> None:
    edge = "edge [ source 0 target 0 directed 1 directed 1 ]"
    (tmp_path / "g.gml").write_text(f'graph [ directed 1 node [ id 0 label "a" ] {edge} ]')
    assert shape(npth.load(tmp_path / "g.gml")) == {"node -edge-> node": 1}
