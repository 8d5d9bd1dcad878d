from pathlib import Path

import pyarrow as pa
import pytest

import neupath as npth
from neupath import NeuPathError
from tests.tables import FREEBASE, shape, write


def test_a_file_of_triples_without_header(tmp_path: Path) -> None:
    hin = npth.load(write(tmp_path / "g", kg__txt=FREEBASE) / "kg.txt")
    assert shape(hin) == {"entity -/film/actor-> entity": 2, "entity -/film/genre-> entity": 1}
    path = "entity -/film/actor-> entity <-/film/actor- entity"
    assert npth.PathSim(path).fit(hin).top_k("/m/1").ids == ("/m/3",)


def test_train_valid_test_are_one_graph(tmp_path: Path) -> None:
    folder = write(
        tmp_path / "g", train__txt=FREEBASE, valid__txt="/m/9\t/film/actor\t/m/2\n", test__txt="/m/1\tx\t/m/9\n"
    )
    assert shape(npth.load(folder)) == {
        "entity -x-> entity": 1,
        "entity -/film/actor-> entity": 3,
        "entity -/film/genre-> entity": 1,
    }


def test_headers_and_weights(tmp_path: Path) -> None:
    text = "entity1,relation,entity2,weight\na,likes,x,0.5\nb,likes,x,2\n"
    hin = npth.load(write(tmp_path / "g", kg__csv=text) / "kg.csv")
    assert shape(hin) == {"entity -likes-> entity": 2}
    assert next(iter(hin.matrices.values())).data.tolist() == [0.5, 2.0]


def test_columns_are_found_by_their_names(tmp_path: Path) -> None:
    text = "relation,head_id,tail_id\nlikes,a,x\n"
    hin = npth.load(write(tmp_path / "g", kg__csv=text) / "kg.csv")
    assert shape(hin) == {"entity -likes-> entity": 1}
    beside = write(tmp_path / "h", train__txt=FREEBASE, entity2id__txt="/m/1\t0\n")
    assert len(shape(npth.load(beside))) == 2


def test_the_same_file_twice(tmp_path: Path) -> None:
    folder = write(tmp_path / "g", kg__csv="h,r,t\n", graph__toml='[triples]\nfiles = ["kg.csv", "kg.csv"]')
    with pytest.raises(NeuPathError, match="are the same table"):
        npth.load(folder)


def test_a_type_map(tmp_path: Path) -> None:
    folder = write(
        tmp_path / "g",
        kg__tsv="head\trelation\ttail\na\tknows\tb\na\tlikes\tx\n",
        kinds__tsv="entity\ttype\tname\na\tuser\tAnn\nb\tuser\tBob\nx\titem\tPie\n",
        graph__toml='[triples]\nfiles = ["kg.tsv"]\ntypes = "kinds.tsv"\n',
    )
    hin = npth.load(folder)
    assert shape(hin) == {"user -knows-> user": 1, "user -likes-> item": 1}
    assert hin.find("user", "Bob") == 1
    with pytest.raises(
        NeuPathError, match="kg.tsv, line 2: the edge leads to node 'b', which is not in the nodes table"
    ):
        write(folder, kinds__tsv="entity\ttype\na\tuser\nx\titem\n")
        npth.load(folder)


def test_one_type_with_another_name(tmp_path: Path) -> None:
    folder = write(tmp_path / "g", kg__csv="h,r,t\na,r,b\n", graph__toml='[triples]\ntype = "thing"\n')
    assert list(shape(npth.load(folder))) == ["thing -r-> thing"]


def test_in_python() -> None:
    table = pa.table({"h": ["a", "a"], "r": ["likes", "knows"], "t": ["x", "b"]})
    hin = npth.from_triples(table, {"a": "user", "b": "user", "x": "item"})
    assert shape(hin) == {"user -likes-> item": 1, "user -knows-> user": 1}
    assert shape(npth.load(table)) == {"entity -likes-> entity": 1, "entity -knows-> entity": 1}
    with pytest.raises(NeuPathError, match="a table of triples needs three columns, but this one has only h, r"):
        npth.load(table.select(["h", "r"]))


def test_bad_triples(tmp_path: Path) -> None:
    with pytest.raises(NeuPathError, match=r"two.tsv has 2 columns \(1, 2\), but triples have three: head, relation"):
        npth.load(write(tmp_path / "g", two__tsv="a\tb\n") / "two.tsv")
    with pytest.raises(NeuPathError, match="kg.txt, line 2: expected 3 columns .*, got 2"):
        npth.load(write(tmp_path / "g", kg__txt="a\tr\tb\na\tr\n") / "kg.txt")
    with pytest.raises(NeuPathError, match="kg.txt, line 1: the edge has an empty node id"):
        npth.load(write(tmp_path / "g", kg__txt="\tr\tb\n") / "kg.txt")
