"""Conversion of tables, NetworkX graphs, PyTorch Geometric graphs and graph files to a HIN and back."""

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings

import neupath as npth
from neupath import HIN, NeuPathError
from neupath.errors import SourceWarning
from neupath.graph.hin import Edges
from neupath.graph.metapath import Relation
from neupath.graph.nodes import Nodes
from neupath.io import from_networkx, to_networkx, to_pyg
from tests.graphs import hins
from tests.tables import HOSTILE_TEXTS, check_read, observed, shape

nx = pytest.importorskip("networkx")


def test_pandas_and_arrow_tables() -> None:
    movies = pd.DataFrame({"id": [1, 2], "name": ["Up", "Heat"], "year": [2009, 1995]})
    acts = pa.table({"movie": [1, 2, 2], "actor": ["x", "x", "y"], "weight": [1.0, 2.0, 1.0]})
    hin = npth.load({"movie": movies, ("movie", "stars", "actor"): acts})
    assert shape(hin) == {"movie -stars-> actor": 3}
    assert npth.PathSim("MAM").fit(hin).top_k("Up", where="year < 2000").ids == (2,)
    categorical = acts.to_pandas().astype({"actor": "category"})
    assert shape(npth.from_tables({("movie", "actor"): categorical})) == {"movie -movie_actor-> actor": 3}


FRAME = pd.DataFrame


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({}, "the mapping is empty; give at least the edges of one relation"),
        ({("a", "b"): FRAME({"x": [1.5], "y": ["b"]})}, "'x' holds double values, but ids are texts or integers"),
        ({("a", "b"): pa.table({"x": [["l"]], "y": [1]})}, "'x' holds list.* values, but ids are texts or integers"),
        ({("a", "b"): FRAME({"x": [1]})}, "has one column; it needs two, the ids of both ends"),
        ({("a",): FRAME({"x": [1], "y": [1]})}, r"expected the name of a table, \(source, target\) or"),
        ({5: FRAME({"x": [1], "y": [1]})}, "expected the name of a table, .* as the key, got 5"),
        ({("a", "b"): FRAME({"x": [1, None], "y": [1, 2]})}, "row 2: the edge has an empty a id"),
        ({"a": FRAME({"id": ["x", "x"]}), ("a", "a"): [("x", "x")]}, "the table of a, row 2: node id 'x' is repeated"),
        (
            {"a": FRAME({"id": ["x"]}), ("a", "b"): FRAME({"s": ["y"], "t": [1]})},
            r"the table of relation \('a', 'b'\), row 1: the edge leads to a 'y'",
        ),
        ({("a", "b"): FRAME({"s": ["y"], "t": [1], "weight": [-1.0]})}, "row 1: weight -1.0 is not allowed"),
        ({("a", "b"): pa.table({"x": ["a"], "y": [1], "weight": [["w"]]})}, "weights of type list.* are not numbers"),
        ({"a": 3}, "cannot read a int as a table"),
        ({"a": FRAME()}, "the table 'a' has no columns"),
        ([FRAME({"a": [1]})], "a list of sources holds table files, but this one holds a DataFrame"),
        ([], "the list of table files is empty"),
        (nx.Graph([("a", "b", {"weight": "heavy"})]), "the weight of the edge from 'a' to 'b' must be a number, got"),
    ],
)  # fmt: skip
def test_bad_objects(source, message: str) -> None:
    with pytest.raises(NeuPathError, match=message):
        npth.load(source)


def test_an_index_with_a_name_is_the_first_column() -> None:
    likes = pd.DataFrame({"user": [1, 2], "item": ["x", "x"]}).set_index("user")
    users = pd.DataFrame({"name": ["Ann", "Bob"]}, index=pd.Index([1, 2], name="id"))
    hin = npth.load({"user": users, ("user", "item"): likes})
    assert npth.PathSim("UIU").fit(hin).top_k("Ann").names == ("Bob",)


@pytest.mark.parametrize(("node_key", "edge_key"), [("node_type", "edge_type"), ("kind", "label"), ("labels", "type")])
def test_networkx_types_under_other_names(node_key: str, edge_key: str) -> None:
    graph = nx.DiGraph()
    graph.add_node("ann", **{node_key: ":user" if node_key == "labels" else "user"})
    graph.add_node("x", **{node_key: "item"})
    graph.add_edge("ann", "x", **{edge_key: "likes"})
    assert shape(npth.load(graph)) == {"user -likes-> item": 1}
    assert shape(from_networkx(graph, node_type="none", relation="none")) == {"node -edge-> node": 1}
    assert npth.load(graph).notes == (
        f"types were read from the attribute {node_key!r}; from_networkx(graph, node_type='type') ignores it",
        f"relations were read from the attribute {edge_key!r}; from_networkx(graph, relation='relation') ignores it",
    )
    usual = from_networkx(graph, node_type="type", relation="relation")
    assert (shape(usual), usual.notes) == ({"node -edge-> node": 1}, ())


@pytest.mark.parametrize(
    ("of", "key", "values"),
    [
        ("edges", "label", ["red", "blue"]), ("edges", "kind", [f"street {number}" for number in range(100)]),
        ("edges", "type", [1.5]), ("edges", "type", ["road", "road", None]), ("nodes", "category", ["red", "blue"]),
        ("nodes", "kind", [["x"]]), ("nodes", "kind", [" "]),
        ("nodes", "node_type", [f"person {number}" for number in range(100)]),
    ],
)  # fmt: skip
def test_networkx_attributes_that_are_not_types(of: str, key: str, values: list) -> None:
    graph = nx.DiGraph()
    for number in range(100):
        carried = {key: values[number % len(values)]}
        graph.add_node(number, **(carried if of == "nodes" else {}))
        graph.add_edge(number, (number + 1) % 100, **(carried if of == "edges" else {}))
    hin = npth.load(graph)
    assert (shape(hin), hin.notes) == ({"node -edge-> node": 100}, ())
    assert hin.nodes["node"].attributes.column_names == [key] * (of == "nodes")


def test_networkx_usual_names_are_taken_whatever_they_hold() -> None:
    graph = nx.DiGraph()
    graph.add_node("a", type=1.5, kind="user")
    graph.add_node("b", kind="user")
    graph.add_edge("a", "b", relation=7, type="likes")
    hin = npth.load(graph)
    assert (shape(hin), hin.notes) == ({"1.5 -7-> node": 1}, ())
    graph["a"]["b"].clear()
    graph["a"]["b"]["label"] = "likes"
    assert shape(npth.load(graph)) == {"1.5 -edge-> node": 1}


def test_networkx_directed_and_not() -> None:
    graph = nx.Graph()
    graph.add_node("p1", type="paper", name="One", year=2001)
    graph.add_node("p2", type="paper", year=2002)
    graph.add_node("ann", type="author")
    graph.add_edge("ann", "p1", relation="writes")
    graph.add_edge("p2", "ann", relation="writes", weight=2.0)
    graph.add_edge("p1", "p2", relation="near")
    hin = npth.load(graph)
    assert shape(hin) == {"paper -writes-> author": 2, "paper -near- paper": 2}
    assert observed(hin)["paper.attributes"] == {"year": [2001, 2002]}
    directed = nx.MultiDiGraph([(1, 2), (1, 2), (3, 2)])
    assert next(iter(npth.load(directed).matrices.values())).toarray().tolist() == [[0, 2, 0], [0, 0, 0], [0, 1, 0]]


@settings(max_examples=30)
@given(hins())
def test_networkx_round_trip(hin: HIN) -> None:
    reloaded = from_networkx(to_networkx(hin))
    for node_type, nodes in hin.nodes.items():
        if len(nodes):
            assert reloaded.nodes[node_type].ids.to_pylist() == nodes.ids.to_pylist()
    for relation, matrix in hin.matrices.items():
        if matrix.nnz:
            assert (reloaded.matrices[relation] != matrix).nnz == 0


ATTRIBUTE_NAMES = [
    *HOSTILE_TEXTS, "key", "keys", "label", "title", "kind", "predicate", "edge_type", "edge_index", "edge_weight",
    "edge_attr", "relation", "directed", "u_for_edge", "v_for_edge", "node_for_adding", "attr", "self", "num_nodes",
    "ids", "names", "ptr", "batch", "_store", "__class__", "adj_t", "node_type", "labels", "bipartite", "timestamp",
]  # fmt: skip


def with_attributes(name: str, *, of_nodes: bool) -> HIN:
    """Two types and parallel edges, with attributes of this name of many kinds."""
    node_values, edge_values = ({}, {}), ({}, {})
    if of_nodes:
        node_values = {name: pa.array([1, 2**63], pa.uint64()), f"{name}2": ["x", None]}, {name: [0.5]}
    elif name != "weight":  # no attribute of edges is called so
        times = [1600000000, 1600000001, 1600000002]
        edge_values = {name: ["k", "k", "k"], f"{name}2": times}, {name: [7, 9, 2**60 + 1]}
    nodes = [
        Nodes(node_type, pa.array(ids), attributes=pa.table(values))
        for node_type, ids, values in zip(("user", "item"), (["u", "v"], [5]), node_values, strict=True)
    ]
    ends, weights = (np.array([0, 0, 1]), np.array([0, 0, 0])), np.array([2.0, 3.0, 1.0])
    relations = Relation("user", "buys", "item"), Relation("user", "knows", "user", directed=False)
    edges = [Edges(r, *ends, weights, pa.table(v)) for r, v in zip(relations, edge_values, strict=True)]
    return HIN.build(nodes, edges)


def refused_or_read_back(write, hin: HIN, name: str) -> HIN | None:
    try:
        written = write(hin)
    except NeuPathError as error:
        assert f"the attribute {name!r} of " in str(error)
        return None
    return npth.load(written)


@pytest.mark.parametrize("of_nodes", [True, False])
@pytest.mark.parametrize("name", ATTRIBUTE_NAMES)
def test_networkx_attributes_of_any_name_come_back_or_are_refused(name: str, of_nodes: bool) -> None:
    hin = with_attributes(name, of_nodes=of_nodes)
    again = refused_or_read_back(to_networkx, hin, name)
    if again is None:
        assert name in (("id", "name", "type") if of_nodes else ("relation", "directed"))
        return
    assert again.schema == hin.schema
    for node_type, nodes in hin.nodes.items():
        assert again.nodes[node_type].ids == nodes.ids
        assert again.nodes[node_type].names is None
        assert again.nodes[node_type].attributes.to_pydict() == nodes.attributes.to_pydict()
    for relation, matrix in hin.matrices.items():
        assert (again.matrices[relation] != matrix).nnz == 0
        if relation in hin.edge_tables:
            ours, theirs = hin.edge_tables[relation], again.edge_tables[relation]
            assert theirs.attributes.to_pydict() == ours.attributes.to_pydict()
            assert np.asarray(theirs.weights).tolist() == np.asarray(ours.weights).tolist()


@pytest.mark.filterwarnings("ignore:.*torch.*:UserWarning")
class TestHeteroData:
    @pytest.fixture(autouse=True)
    def _needs_pyg(self) -> None:
        pytest.importorskip("torch_geometric")

    @pytest.mark.parametrize("name", ATTRIBUTE_NAMES)
    def test_attributes_of_any_name_come_back_or_are_refused(self, name: str) -> None:
        hin = with_attributes(name, of_nodes=False)
        again = refused_or_read_back(to_pyg, hin, name)
        if again is None:
            assert name in ("edge_index", "edge_weight")
            return
        for relation, matrix in hin.matrices.items():
            one_way = Relation(relation.source, relation.name, relation.target)
            np.testing.assert_array_equal(again.matrices[one_way].toarray(), matrix.toarray())
            if relation.directed and relation in hin.edge_tables:
                ours, theirs = hin.edge_tables[relation].attributes, again.edge_tables[one_way].attributes
                assert theirs.column_names == ours.column_names
                assert theirs[name].to_pylist() == ours[name].to_pylist()

    @settings(max_examples=20)
    @given(hin=hins())
    def test_there_and_back(self, hin: HIN) -> None:
        reloaded = npth.load(to_pyg(hin))
        assert reloaded.schema.node_types == hin.schema.node_types
        for relation, matrix in hin.matrices.items():
            one_way = Relation(relation.source, relation.name, relation.target)
            np.testing.assert_array_equal(reloaded.matrices[one_way].toarray(), matrix.toarray())

    def test_a_type_without_a_count(self) -> None:
        import torch
        from torch_geometric.data import HeteroData

        data = HeteroData()
        data["a"].num_nodes = 2
        data["a", "to", "b"].edge_index = torch.tensor([[0, 1], [0, 0]])
        with pytest.raises(NeuPathError, match=r"how many nodes 'b' has; set data\['b'\].num_nodes"):
            npth.load(data)

    def test_reverse_edges_are_left_out(self, toy: HIN) -> None:
        from torch_geometric.transforms import ToUndirected

        hin = npth.load(ToUndirected()(to_pyg(toy)))
        assert shape(hin) == shape(toy)
        assert len(hin.notes) == 2
        assert npth.PathSim("APVPA").fit(hin).top_k("Mike") == npth.PathSim("APVPA").fit(toy).top_k("Mike")

    def test_ids_and_names_come_along(self) -> None:
        nodes = Nodes("user", pa.array([7, 9]), pa.array(["Ann", None])), Nodes("item", pa.array(["soap"]))
        bought = Edges(Relation("user", "bought", "item"), np.array([0, 1]), np.array([0, 0]), np.array([1.0, 2]))
        hin = HIN.build(nodes, [bought])
        data = hin.to_pyg()
        assert (data["user"].ids.tolist(), data["user"].names.tolist()) == ([7, 9], ["Ann", None])
        assert "names" not in data["item"]
        again = npth.load(data)
        assert [each.ids for each in again.nodes.values()] == [each.ids for each in nodes]
        assert again.nodes["user"].names.to_pylist() == ["Ann", None]
        parts = hin.to_dgl_dict()
        rows, columns = parts["data_dict"]["user", "bought", "item"]
        assert (rows.tolist(), columns.tolist(), parts["num_nodes_dict"]) == ([0, 1], [0, 0], {"user": 2, "item": 1})
        assert parts["weights"]["user", "bought", "item"].tolist() == [1.0, 2.0]
        assert (parts["ids"]["item"].tolist(), parts["names"]["user"].tolist()) == (["soap"], ["Ann", None])
        assert hin.to_networkx().nodes["user", 7]["name"] == "Ann"


@pytest.mark.parametrize("suffix", ["graphml", "gml", "gexf"])
def test_files_of_networkx_are_read(tmp_path: Path, suffix: str) -> None:
    shop = nx.MultiDiGraph([("ann", "bob", {"relation": "knows"})])
    for user in ("ann", "bob"):
        shop.add_node(user, type="user")
        shop.add_edge(user, "soap", relation="bought", weight=2.0)
    shop.add_node("soap", type="item")
    path, zipped = tmp_path / f"shop.{suffix}", tmp_path / f"shop.{suffix}.gz"
    getattr(nx, f"write_{suffix}")(shop, path)
    zipped.write_bytes(gzip.compress(path.read_bytes()))
    for source in (path, zipped):
        hin = npth.load(source)
        assert shape(hin) == {"user -bought-> item": 2, "user -knows-> user": 1}
        assert observed(hin)["bought.weights"] == [2.0, 2.0]


@pytest.mark.parametrize("suffix", ["graphml", "gexf", "gml"])
def test_bad_graph_files_and_a_config_are_refused(tmp_path: Path, suffix: str) -> None:
    name = f"bad.{suffix}"
    for content in (b"", b"<graphml><graph", b"graph [ node [ ", b"\xff\xfe\x00"):
        check_read(tmp_path, {name: content}, rf"{name} cannot be read", {"load": name})
    with pytest.raises(NeuPathError, match=rf"{name} describes itself and takes no graph.toml"):
        npth.load(tmp_path / name, config=tmp_path / "graph.toml")


def test_gml_nodes_have_ids_and_perhaps_labels(tmp_path: Path) -> None:
    nodes = 'node [ id 7 ] node [ id 8 label "Ann" ] node [ id 9 label "Ann" name "Ann B." ]'
    files = {"people.gml": f"graph [ {nodes} edge [ source 7 target 8 ] edge [ source 8 target 9 ] ]"}
    more = {"load": "people.gml", "node.ids": [7, 8, 9], "node.names": [None, "Ann", "Ann B."]}
    check_read(tmp_path, files, {"node -edge- node": 4}, more)


def test_ids_that_look_empty_are_noted_and_a_graph_toml_leaves_them_out(tmp_path: Path) -> None:
    bought = pd.DataFrame({"user": ["ann", "bob", "cem"], "item": ["tea", "nan", "nan"]})
    config = tmp_path / "graph.toml"
    config.write_text('missing_ids = ["nan"]')
    triples = pd.DataFrame({"head": bought["user"], "relation": "buys", "tail": bought["item"]})
    for source in ({("user", "item"): bought}, triples, list(triples.itertuples(index=False, name=None))):
        with pytest.warns(SourceWarning, match=r"the id 'nan' \(2 edges\) looks like an empty cell"):
            npth.load(source)
        hin = npth.load(source, config=config)
        assert [sum(matrix.nnz for matrix in hin.matrices.values()), hin.notes] == [1, ()]


# ---- Pivot tables --------------------------------------------------------------------------------
SOLD = pd.DataFrame({"u": ["ann", "ann", "bob", "cem"], "m": ["tea", "cup", "tea", "pen"], "q": [2, 1, 3, 1]})
RATED = pd.DataFrame({"u": [1, 1, 2, 3], "m": [101, 102, 101, 205], "q": [2, 1, 3, 1]})
PIVOTS = {
    "filled": lambda table: table.pivot_table(index="u", columns="m", values="q", fill_value=0),
    "with blanks": lambda table: table.pivot_table(index="u", columns="m", values="q"),
    "counts": lambda table: pd.crosstab(table["u"], table["m"]),
    "without an index": lambda table: table.pivot_table(index="u", columns="m", values="q").reset_index(),
    "without names": lambda table: PIVOTS["without an index"](table).rename_axis(columns=None),
    "with columns of a level above": lambda table: table.pivot_table(index="u", columns="m", values=["q"]),
}


@pytest.mark.parametrize("table", [SOLD, RATED], ids=["texts", "numbers"])
@pytest.mark.parametrize("pivot", [*PIVOTS, "polars", "without any names"])
def test_a_pivot_table_is_refused_with_a_line_that_reads_it(pivot: str, table: pd.DataFrame) -> None:
    if pivot == "polars":
        pivoted = pytest.importorskip("polars").DataFrame(table.to_dict("list")).pivot("m", index="u", values="q")
    elif pivot == "without any names":
        pivoted = PIVOTS["filled"](SOLD).rename_axis(index=None, columns=None)
    else:
        pivoted = PIVOTS[pivot](table)
    with pytest.raises(NeuPathError, match="its header holds nodes") as error:
        npth.load({("user", "item"): pivoted})
    line = str(error.value).partition("with load(")[2].partition("; if ")[0]
    hin = eval(f"load({line}", {"load": npth.load, "table": pivoted})
    if pivot != "without any names":
        expected = npth.load({("user", "item"): table.rename(columns={"q": "weight"})})
        assert hin.num_nodes("item") == expected.num_nodes("item")
        assert shape(hin) == shape(expected)
    assert hin.num_nodes("user") == 3


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"who": ["ann", "bob"], "item": [0, 1], "rows": [1, 0]}),
        pd.DataFrame({"u": [1, 2, 2], "m": [0, 1, 0], "q": [1, 1, 2]}),
        pd.DataFrame({"u": ["a", "b", "c"], "m": [7, 8, 9], "q": [0.5, 0.25, 2]}),
        pd.DataFrame({"u": ["a", "b"], "v": [0, 1], "rating": [1, 0]}),
        pd.DataFrame({"u": ["a", "a"], "v": ["x1", "x2"], "kind": ["p", "q"], "n": [1, 2]}).pivot_table(
            index=["u", "v"], columns="kind", values="n"
        ),
    ],
    ids=["named as the type", "repeated", "ids of their own", "a measure", "both ends in the index"],
)
def test_tables_of_edges_that_resemble_pivot_tables_are_read(table: pd.DataFrame) -> None:
    assert sum(shape(npth.load({("user", "item"): table})).values()) > 1


def test_a_stacked_pivot_table_is_read_as_edges() -> None:
    frame = pd.DataFrame({"u": ["ann", "ann", "bob"], "m": ["tea", "cup", "tea"]})
    hin = npth.load({("user", "item"): pd.crosstab(frame.u, frame.m).stack()})
    assert hin.nodes["user"].ids.to_pylist() == ["ann", "bob"]
    assert hin.nodes["item"].ids.to_pylist() == ["cup", "tea"]
