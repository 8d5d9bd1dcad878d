from neupath import HIN
from neupath.graph.summary import summarise
from tests.graphs import graph_of


def test_counts_of_the_toy_graph(toy: HIN) -> None:
    summary = summarise(toy).to_dict()
    assert [(t["node_type"], t["nodes"], t["isolated"]) for t in summary["node_types"]] == [
        ("author", 5, 0),
        ("paper", 81, 0),
        ("venue", 4, 0),
    ]
    writes = summary["relations"][0]
    assert (writes["edges"], writes["source_degree_mean"], writes["source_degree_max"]) == (81, 16.2, 70)
    assert (writes["target_degree_mean"], writes["target_degree_max"], writes["weight"]) == (1.0, 1, 81.0)
    assert summary["metapaths"]["author"] == [
        "author-paper-author",
        "author-paper-author-paper-author",
        "author-paper-venue-paper-author",
    ]


def test_empty_types_and_isolated_nodes() -> None:
    summary = summarise(graph_of({"a": 2, "b": 0}, {"a -r-> b": []}, notes=["hello"]))
    assert [t.isolated for t in summary.node_types] == [2, 0]
    assert summary.relations[0].target_degree_mean == 0.0
    assert summary.notes == ["hello"]
