"""GraphML, GEXF and GML files are read as NetworkX reads them."""

import gzip
from pathlib import Path

import pytest

import neupath as npth
from neupath.errors import NeuPathError
from tests.tables import shape

nx = pytest.importorskip("networkx")


@pytest.fixture
def shop() -> "nx.MultiDiGraph":
    graph = nx.MultiDiGraph()
    for user in ("ann", "bob"):
        graph.add_node(user, type="user")
        graph.add_edge(user, "soap", relation="bought", weight=2.0)
    graph.add_node("soap", type="item")
    graph.add_edge("ann", "bob", relation="knows")
    return graph


@pytest.mark.parametrize(
    ("suffix", "write"), [("graphml", "write_graphml"), ("gml", "write_gml"), ("gexf", "write_gexf")]
)
def test_what_networkx_writes_is_read(tmp_path: Path, shop: "nx.MultiDiGraph", suffix: str, write: str) -> None:
    path = tmp_path / f"shop.{suffix}"
    getattr(nx, write)(shop, path)
    hin = npth.load(path)
    assert shape(hin) == {"user -bought-> item": 2, "user -knows-> user": 1}
    assert hin.matrices[npth.Relation("user", "bought", "item")].data.tolist() == [2.0, 2.0]
    zipped = tmp_path / f"shop.{suffix}.gz"
    zipped.write_bytes(gzip.compress(path.read_bytes()))
    assert shape(npth.load(zipped)) == shape(hin)


def test_gml_nodes_have_ids_and_perhaps_labels(tmp_path: Path) -> None:
    path = tmp_path / "people.gml"
    path.write_text(
        'graph [ node [ id 7 ] node [ id 8 label "Ann" ] node [ id 9 label "Ann" name "Ann B." ] '
        "edge [ source 7 target 8 ] edge [ source 8 target 9 ] ]"
    )
    hin = npth.load(path)
    assert shape(hin) == {"node -edge- node": 4}
    assert hin.nodes["node"].ids.to_pylist() == [7, 8, 9]
    assert hin.nodes["node"].names.to_pylist() == [None, "Ann", "Ann B."]


@pytest.mark.parametrize("suffix", ["graphml", "gexf", "gml"])
@pytest.mark.parametrize("content", [b"", b"<graphml><graph", b"graph [ node [ ", b"\xff\xfe\x00"])
def test_bad_files(tmp_path: Path, suffix: str, content: bytes) -> None:
    path = tmp_path / f"bad.{suffix}"
    path.write_bytes(content)
    with pytest.raises(NeuPathError, match=rf"bad.{suffix} cannot be read"):
        npth.load(path)


def test_they_take_no_configuration(tmp_path: Path, shop: "nx.MultiDiGraph") -> None:
    nx.write_graphml(shop, tmp_path / "shop.graphml")
    with pytest.raises(NeuPathError, match="shop.graphml describes itself and takes no graph.toml"):
        npth.load(tmp_path / "shop.graphml", config=tmp_path / "graph.toml")
