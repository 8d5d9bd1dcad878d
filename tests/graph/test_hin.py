import datetime as dt
import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

from neupath import HIN, PathSim, load
from neupath.errors import GraphError, MetaPathError, QueryError, SchemaError, SourceWarning
from neupath.graph.hin import Edges, digest
from neupath.graph.metapath import Relation
from neupath.graph.nodes import Nodes
from tests.graphs import graph_of, hins

LIKES = Relation("user", "likes", "item")
KNOWS = Relation("user", "knows", "user", directed=False)


def build(sources, targets, weights=None, *, relation=LIKES, **options) -> HIN:
    edges = Edges(relation, np.array(sources), np.array(targets), None if weights is None else np.array(weights))
    return HIN.build([Nodes("user", pa.array(["u", "v"])), Nodes("item", pa.array([1, 2, 3]))], [edges], **options)


def test_parallel_edges_count_are_dropped_or_refused() -> None:
    assert build([0, 0, 1], [2, 2, 0]).matrices[LIKES].toarray().tolist() == [[0, 0, 2], [1, 0, 0]]
    dropped = build([0, 0], [2, 2], [0.5, 4.0], duplicates="drop")
    assert dropped.matrices[LIKES].toarray().tolist() == [[0, 0, 0.5], [0, 0, 0]]
    with pytest.raises(
        GraphError, match=r"has the edge 'u' to 3 more than once \(edge number 2\); set duplicates to 'count'"
    ):
        build([0, 0], [2, 2], duplicates="error")
    with pytest.raises(QueryError, match="duplicates is 'sum'; it can be 'count', 'drop' or 'error'"):
        build([0], [2], duplicates="sum")


def test_an_undirected_relation_is_its_own_reverse() -> None:
    hin = build([1, 0], [0, 0], relation=KNOWS)
    assert hin.matrices[KNOWS].toarray().tolist() == [[1, 1], [1, 0]]
    assert hin.num_edges(KNOWS) == hin.num_edges("knows") == hin.num_edges(str(KNOWS)) == 2
    with pytest.raises(SchemaError, match="no relation 'know' in this graph \\(it has"):
        hin.num_edges("know")
    for other in (3, Relation("person", "unknown", "person")):
        with pytest.raises(SchemaError, match="no relation .* in this graph"):
            hin.num_edges(other)  # type: ignore[arg-type]
    with pytest.raises(QueryError, match="text is NodeMatch.*; give a text to search for"):
        hin.find(hin.find("")[0])  # type: ignore[arg-type]
    listed_both_ways = build([1, 0], [0, 1], relation=KNOWS, duplicates="drop")
    assert listed_both_ways.matrices[KNOWS].toarray().tolist() == [[0, 1], [1, 0]]


@given(hins())
@pytest.mark.slow
def test_reverse_is_the_transpose(hin: HIN) -> None:
    for relation in hin.schema.relations:
        for link in hin.schema.links(relation.source, relation.target):
            forward, backward = hin.matrix(link).toarray(), hin.matrix(link.reversed()).toarray()
            np.testing.assert_array_equal(forward, backward.T)


def test_a_graph_cannot_be_changed() -> None:
    hin = build([0], [2])
    with pytest.raises(ValueError, match="read-only"):
        hin.matrices[LIKES].data[0] = 9
    with pytest.raises(TypeError):
        hin.nodes["x"] = hin.nodes["user"]
    with pytest.raises(TypeError):
        hin.matrices[LIKES] = hin.matrices[LIKES]
    with pytest.raises(AttributeError):
        hin.notes = ("x",)


def test_a_graph_can_be_sent_to_another_process(toy: HIN) -> None:
    again = pickle.loads(pickle.dumps(toy))
    assert again.schema == toy.schema
    assert PathSim("APVPA").fit(again).top_k("Mike") == PathSim("APVPA").fit(toy).top_k("Mike")
    with pytest.raises(ValueError, match="read-only"):
        next(iter(again.matrices.values())).data[0] = 9


def test_a_graph_of_many_relations_is_sent_without_its_empty_rows() -> None:
    hin = graph_of({"entity": 2000}, {f"entity -r{n}-> entity": [(5, 5 + n)] for n in range(100)})
    sent = pickle.dumps(hin)
    assert len(sent) < 200_000  # each matrix with all of its rows would take 8,000 bytes
    again = pickle.loads(sent)
    assert all((again.matrices[relation] != hin.matrices[relation]).nnz == 0 for relation in hin.schema.relations)
    with pytest.raises(ValueError, match="read-only"):
        next(iter(again.matrices.values())).data[0] = 9


def test_types_without_nodes_and_isolated_nodes() -> None:
    hin = graph_of({"a": 0, "b": 1}, {})
    assert hin.num_nodes("a") == 0
    assert hin.num_nodes("B") == 1


def test_candidates(toy: HIN) -> None:
    assert toy.candidates("author") is None
    mask = toy.candidates("author", among=["Jim", "Ann"], where="id ~ n")
    assert mask is not None
    assert mask.tolist() == [False, False, False, False, True]


def test_a_repeated_type_is_refused() -> None:
    with pytest.raises(GraphError, match="nodes of type 'a' are given twice"):
        HIN.build([Nodes("a", pa.array(["x"])), Nodes("a", pa.array(["y"]))], [])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0, 1], [2]), "has 2 sources but 1 targets"),
        (([5], [0]), "names user row 5, but there are 2 rows"),
        (([0], [-1]), "names item row -1, but there are 3 rows"),
        (([0], [0], [float("nan")]), "edge number 1: weight nan is not allowed"),
        (
            ([0, 0], [0, 1], [1.0, -2.0]),
            "edge number 2: weight -2.0 is not allowed; weights are finite numbers, 0 or more",
        ),
        (([0], [0], [float("inf")]), "weight inf is not allowed"),
        (([0], [0], [1.0, 1.0]), "has 2 weights for 1 edges"),
    ],
)
def test_refuses(arguments, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        build(*arguments)


def _rated(duplicates="count") -> HIN:
    nodes = [Nodes("user", pa.array(["u", "v"])), Nodes("film", pa.array(["f", "g"]))]
    rates = Edges(
        Relation("user", "rates", "film"), np.array([0, 0, 1, 1]), np.array([0, 0, 0, 1]), np.array([1.0, 2, 0, 4]),
        pa.table({"rating": [5, None, 3, 2]}),
    )  # fmt: skip
    return HIN.build(nodes, [rates], duplicates=duplicates)


def test_a_relation_with_attributes_keeps_its_single_edges() -> None:
    hin = _rated()
    (table,) = hin.edge_tables.values()
    assert table.sources.tolist() == [0, 0, 1]  # the edge of weight 0 is none
    assert table.targets.tolist() == [0, 0, 1]
    assert table.weights is not None
    assert table.weights.tolist() == [1, 2, 4]
    assert table.attributes.to_pydict() == {"rating": [5, None, 2]}
    (dropped,) = _rated("drop").edge_tables.values()
    assert dropped.attributes.to_pydict() == {"rating": [5, 2]}
    (copied,) = pickle.loads(pickle.dumps(hin)).edge_tables.values()
    assert copied.attributes.equals(table.attributes)


def test_a_changed_relation_has_no_edge_table() -> None:
    hin = _rated()
    (relation,) = hin.matrices
    assert not hin.with_matrices({relation: hin.matrices[relation]}).edge_tables
    assert hin.with_matrices({}).edge_tables == hin.edge_tables


def test_attributes_that_do_not_fit_the_edges() -> None:
    nodes, relation = [Nodes("a", pa.array(["x"]))], Relation("a", "r", "a")
    one = np.array([0])
    with pytest.raises(GraphError, match="attributes of 2 edges for 1 edges"):
        HIN.build(nodes, [Edges(relation, one, one, None, pa.table({"since": [1, 2]}))])
    with pytest.raises(GraphError, match="called 'weight'"):
        HIN.build(nodes, [Edges(relation, one, one, None, pa.table({"weight": [1]}))])


def test_a_meta_path_over_an_attribute_says_so(tmp_path: Path) -> None:
    (tmp_path / "orders.csv").write_text("Order ID,Customer,Tags\n1,Ann,a;b\n2,Ann,b;c\n3,Bob,a;c\n")
    with pytest.warns(SourceWarning, match="its cells split at ;"):
        hin = load(tmp_path / "orders.csv")
    with pytest.raises(MetaPathError, match="leads to Tag; 'Customer' is an attribute of Order, and 'A column of a"):
        hin.metapath("Order-customer-Order")
    with pytest.raises(MetaPathError, match="no node type 'Client' .* leads to Tag$"):
        hin.metapath("Order-Client-Order")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (pa.array([1, None]), pa.array([1, 2])),
        (pa.array([1.5, 2.5], pa.float32()), pa.array([1.5, 2.0], pa.float32())),
        (pa.array(["x", "y"]), pa.array(["x", "z"])),
        (pa.array(["x", "y"], pa.large_string()), pa.array(["x", "z"], pa.large_string())),
        (pa.array([[1], [2]]), pa.array([[1], [3]])),
        (pa.array([1, 2], pa.uint64()), pa.array([1, 2**63 + 1], pa.uint64())),
        (pa.array([True, False]), pa.array([True, None])),
        (pa.array([dt.date(2020, 1, 1)] * 2), pa.array([dt.date(2020, 1, 1), dt.date(2020, 1, 2)])),
        (pa.array(["x", "y"]).dictionary_encode(), pa.array(["x", "z"]).dictionary_encode()),
    ],
)
def test_the_digest_tells_attributes_of_nodes_apart(one: pa.Array, other: pa.Array) -> None:
    def graph(values: pa.Array) -> HIN:
        return HIN.build([Nodes("a", pa.array(["a0", "a1"]), attributes=pa.table({"year": values}))], [])

    assert digest(graph(one)) == digest(graph(one))
    assert digest(graph(one)) != digest(graph(other))


def test_the_digest_tells_names_apart() -> None:
    graphs = [HIN.build([Nodes("a", pa.array(["a0"]), pa.array([name]))], []) for name in ("Ann", "Bob")]
    assert digest(graphs[0]) != digest(graphs[1])


def test_of_equal_names_the_one_with_more_edges_is_found_first() -> None:
    people = Nodes("person", pa.array([10, 11, 12, 13]), pa.array(["Ng", "Ng", "Ng Lee", "Ng"]))
    wrote = [(0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2), (3, 2)]
    hin = graph_of({"person": people, "paper": ["p", "q", "Ng"]}, {"person -wrote-> paper": wrote})
    assert [(node.id, node.degree) for node in hin.find("ng")] == [(11, 2), ("Ng", 2), (10, 1), (13, 1), (12, 3)]
    assert [node.id for node in hin.find("ng", 1, node_type="person")] == [11]
    assert [node.id for node in hin.find("", 2)] == [10, 11]


def test_degrees_count_the_edges_of_all_relations() -> None:
    edges = {"person -knows- person": [(0, 1), (1, 2)], "person -follows-> person": [(0, 2)]}
    hin = graph_of({"person": 3}, edges)
    assert hin.degrees("person").tolist() == [2, 2, 2]
