"""Explanations, counterfactuals and significance of meta-paths with conditions."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import neupath as npth
from neupath import HIN, explain
from neupath.errors import MetaPathError, QueryError
from neupath.evidence.counterfactuals import what_if
from neupath.evidence.significance import degree_classes, significance
from neupath.evidence.stability import stability
from neupath.graph.hin import Edges
from neupath.graph.metapath import Relation
from neupath.graph.nodes import Nodes
from tests.conditioned import Case
from tests.walks import Walker


@settings(max_examples=15)
@given(seed=st.integers(0, 2**32))
def test_groups_and_paths_are_those_of_the_walks(seed: int) -> None:
    case = Case(seed)
    path = case.path(symmetric=True)
    walker, nodes = Walker(case.hin, path), case.hin.nodes[path.source]
    x, y = (int(row) for row in case.rng.integers(len(nodes), size=2))
    why = explain(case.hin, path, nodes.id(x), nodes.id(y), limit=1000)
    walks = [walk for walk in walker.walks(x) if walk.rows[-1] == y]
    assert why.num_instances == len(walks)
    assert why.score == pytest.approx(walker.pathsim(x, y), rel=1e-9)
    assert sum(group.score for group in why.groups) == pytest.approx(why.score, rel=1e-12)
    assert sum(instance.share for instance in why.instances) == pytest.approx(why.score, rel=1e-12)
    listed = sorted(tuple(node.id for node in instance.nodes) for instance in why.instances)
    types = path.node_types
    assert listed == sorted(
        tuple(case.hin.nodes[t].id(row) for t, row in zip(types, walk.rows, strict=True)) for walk in walks
    )


@pytest.mark.slow
@settings(max_examples=8)
@given(seed=st.integers(0, 2**32))
def test_what_if_is_true_of_the_changed_graph(seed: int) -> None:
    case = Case(seed, edge_tables=False)
    path = case.path(symmetric=True)
    scorer = npth.PathSim(path).fit(case.hin)
    for query in case.hin.nodes[path.source].ids.to_pylist():
        hits = scorer.top_k(query, 1)
        if len(hits):
            answer = what_if(case.hin, path, query, hits[0].id, k=1, remove="edges")  # verifies what it finds
            assert answer.rank == 1
            assert answer.smallest is None or answer.smallest.rank != 1


def _films() -> HIN:
    rng = np.random.default_rng(0)
    users = Nodes("user", pa.array([f"u{i}" for i in range(12)]), attributes=pa.table({"age": np.arange(12) % 2}))
    films = Nodes("film", pa.array([f"f{i}" for i in range(15)]), attributes=pa.table({"year": 2000 + np.arange(15)}))
    relation = Relation("user", "rates", "film")
    ends = rng.integers(0, 12, 60), rng.integers(0, 15, 60)
    table = pa.table({"rating": rng.integers(1, 6, 60)})
    return HIN.build([users, films], [Edges(relation, *ends, None, table)], duplicates="drop")


def test_alike_nodes_meet_the_same_conditions() -> None:
    hin = _films()
    path = hin.metapath("user[age = 1]-film-user[age = 1]")
    relations = list(hin.schema.relations)
    ages = hin.nodes["user"].attributes["age"].to_numpy()
    classes = degree_classes(hin, "user", relations, [path])
    assert len(np.unique(classes)) > len(np.unique(degree_classes(hin, "user", relations)))
    assert all(len(np.unique(ages[classes == each])) == 1 for each in np.unique(classes))


def test_significance_of_a_path_with_conditions() -> None:
    scorer = npth.PathSim("user-film[year >= 2007]-user").fit(_films())
    hits = scorer.top_k("u0", 5)
    (tested,) = significance(scorer, [hits], permutations=20)
    assert all(0 < p <= 1 for p in tested.p_values)


def test_changed_edges_have_no_attributes() -> None:
    hin = _films()
    path = "user -rates[rating >= 3]-> film <-rates[rating >= 3]- user"
    scorer = npth.PathSim(path).fit(hin)
    hits = scorer.top_k("u0", 3)
    message = "changes edges, which then have a weight alone, and .* needs the attribute 'rating' of the edges of rates"
    for ask in (
        lambda: significance(scorer, [hits], permutations=5),
        lambda: stability(scorer, hits, samples=2),
        lambda: what_if(hin, path, "u0", hits[0].id),
    ):
        with pytest.raises(MetaPathError, match=message):
            ask()
    with pytest.raises(QueryError, match="a new film has no attributes, so that it cannot meet the condition 'film"):
        what_if(hin, "user-film[year > 2003]-user", "u0", "u1", k=1, add="film")
