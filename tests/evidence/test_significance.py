"""Significance: permuted graphs keep degrees, and p-values are uniform where nothing but degrees matters."""

import re
import sys
from collections import Counter
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from scipy.stats import chisquare, kstest

import neupath as npth
from neupath import HIN, Combination, Part, PathSim, significance
from neupath._runtime.disk_cache import Arrays
from neupath.engine.cache import LIMIT_VARIABLE, bytes_of, graph_cache
from neupath.errors import QueryError
from neupath.evidence import permutation
from neupath.evidence.permutation import Permutations
from neupath.evidence.significance import add_p_values, adjusted, degree_classes, hits_with, null_model
from neupath.graph.hin import Edges
from neupath.graph.metapath import Relation
from neupath.graph.nodes import Nodes
from neupath.measures import SCAN, DWPCNoRepeats
from neupath.store import open_store, write_store
from tests.graphs import graph_of, hins

WRITES = Relation("author", "writes", "paper")
NEAR = Relation("gene", "near", "gene", directed=False)


def random_graph(seed: int, authors: int = 60, papers: int = 80, edges: int = 300) -> HIN:
    places = np.random.default_rng(seed).choice(authors * papers, edges, replace=False)
    return authors_of(authors, papers, np.c_[places // papers, places % papers])


def authors_of(authors: int, papers: int, edges: Any) -> HIN:
    return graph_of({"author": authors, "paper": papers}, {"author -writes-> paper": edges})


def degrees(hin: HIN, relation: Relation) -> tuple[list[int], list[int]]:
    dense = hin.matrices[relation].toarray() > 0
    return dense.sum(axis=0).tolist(), dense.sum(axis=1).tolist()


@settings(max_examples=30)
@given(hins())
@pytest.mark.slow
def test_permuted_graphs_keep_degrees_weights_of_sources_and_symmetry(hin: HIN) -> None:
    for graph in Permutations(hin, hin.schema.relations, 1, seed=3):
        for relation in hin.schema.relations:
            assert degrees(graph, relation) == degrees(hin, relation)
            before, after = hin.matrices[relation].toarray(), graph.matrices[relation].toarray()
            assert sorted(before.ravel()) == pytest.approx(sorted(after.ravel()))
            if relation.directed:
                assert np.sort(before, axis=1) == pytest.approx(np.sort(after, axis=1))
            else:
                np.testing.assert_array_equal(after, after.T)


def test_permutations_follow_the_seed_and_are_mixed() -> None:
    hin = random_graph(1)
    first, again, other = (Permutations(hin, [WRITES], 3, seed) for seed in (5, 5, 6))
    texts = [[graph.matrices[WRITES].indices.tolist() for graph in each] for each in (first, again, other, first)]
    assert texts[0] == texts[1] == texts[3]
    assert texts[0] != texts[2]
    assert texts[0][0] != texts[0][1]
    [mixing] = first.mixing
    assert mixing.is_mixed
    assert mixing.shared < 0.3
    with pytest.raises(QueryError, match="permutations is 0"):
        Permutations(hin, [WRITES], 0)


def test_swaps_reach_every_graph_of_the_same_degrees_equally_often() -> None:
    hin = authors_of(3, 3, [(0, 0), (0, 1), (1, 1), (1, 2), (2, 0)])
    graphs = Counter(entries(graph, WRITES) for graph in Permutations(hin, [WRITES], 2000, 0))
    assert len(graphs) == 5  # by hand: the third author has one of three papers, the others share what is left
    assert min(graphs.values()) > 300
    assert max(graphs.values()) < 500


def entries(hin: HIN, relation: Relation) -> tuple[int, ...]:
    """Return which entries of the matrix of a relation are there, row by row."""
    return tuple((hin.matrices[relation].toarray() > 0).astype(int).ravel().tolist())


def test_undirected_swaps_reach_every_graph_equally_often() -> None:
    hin = graph_of({"gene": 4}, {"gene -near- gene": [(0, 1), (2, 3)]})
    graphs = Counter(entries(graph, NEAR) for graph in Permutations(hin, [NEAR], 900, 0))
    assert len(graphs) == 3
    assert min(graphs.values()) > 200


CITES = Relation("paper", "cites", "paper")


def realisations(out_degrees: list[int], in_degrees: list[int]) -> set[tuple[int, ...]]:
    """List every directed graph without loops that has these degrees, row by row."""
    size = len(out_degrees)
    choices = [list(combinations([v for v in range(size) if v != u], out_degrees[u])) for u in range(size)]
    matrices = set()
    for rows in product(*choices):
        matrix = np.zeros((size, size), int)
        for u, targets in enumerate(rows):
            matrix[u, list(targets)] = 1
        if matrix.sum(axis=0).tolist() == in_degrees:
            matrices.add(tuple(matrix.ravel().tolist()))
    return matrices


@pytest.mark.parametrize(
    "ends",
    [
        [(0, 1), (1, 2), (2, 0)],  # no two of these edges can be swapped
        [(0, 1), (1, 2), (2, 0), (3, 0), (3, 1), (3, 2)],
        [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 2)],
    ],
)
def test_directed_edges_within_a_type_reach_every_graph_equally_often(ends: list[tuple[int, int]]) -> None:
    sources, targets = np.array(ends).T
    size = max(map(max, ends)) + 1
    hin = graph_of({"paper": size}, {"paper -cites-> paper": ends})
    every = realisations(np.bincount(sources, minlength=size).tolist(), np.bincount(targets, minlength=size).tolist())
    count = 200 * len(every)
    graphs = Counter(entries(graph, CITES) for graph in Permutations(hin, [CITES], count, seed=1))
    assert set(graphs) == every
    assert len(every) > 1
    assert chisquare(list(graphs.values())).pvalue > 0.001


@pytest.mark.parametrize("ends", [[(0, 1), (1, 0)], [(0, 1), (0, 2), (0, 3)]])
def test_a_note_says_where_swaps_change_nothing(ends: list[tuple[int, int]]) -> None:
    hin = graph_of({"paper": 4}, {"paper -cites-> paper": ends})
    [mixing] = Permutations(hin, [CITES], 1).mixing
    assert mixing.is_mixed
    assert mixing.note == "swaps leave 100% of the edges of paper -cites-> paper in place; its p-values say little"
    assert mixing.to_dict()["note"] == mixing.note
    assert Permutations(random_graph(1), [WRITES], 1).mixing[0].note is None


def test_a_null_model_keeps_few_scores_and_computes_what_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    scorer = PathSim("APA").fit(random_graph(5))
    lists = scorer.top_k(list(range(20)), k=1)
    expected = [each.p_values for each in significance(scorer, lists, permutations=9)]
    most = 300  # too few for all targets of one query
    monkeypatch.setattr(sys.modules[null_model.__module__], "_MOST_SCORES", most)
    scorer = PathSim("APA").fit(random_graph(5))
    for hits, p_values in zip(lists, expected, strict=True):
        assert significance(scorer, [hits], permutations=9)[0].p_values == p_values
        assert 0 < null_model(scorer, 9, 0).num_bytes <= 8 * most
    with pytest.raises(QueryError, match="ask for fewer queries or permutations"):
        significance(scorer, lists, permutations=9)


def test_the_cache_counts_null_scores_that_are_added(monkeypatch: pytest.MonkeyPatch) -> None:
    hin = random_graph(5)
    scorer = PathSim("APA").fit(hin)
    null_model(scorer, 9, 0)
    limit = bytes_of(graph_cache(hin).values())
    monkeypatch.setenv(LIMIT_VARIABLE, str(limit))
    [result] = significance(scorer, [scorer.top_k(3, k=2)], permutations=9)
    kept = graph_cache(hin).values()
    assert null_model(scorer, 9, 0) is kept[-1]
    assert bytes_of(kept) <= limit or len(kept) == 1
    assert significance(scorer, [scorer.top_k(3, k=2)], permutations=9) == [result]


def test_a_store_opened_again_has_permuted_graphs_and_null_scores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_store(npth.load("toy"), tmp_path / "toy.store")
    chains, bound = [], []
    make, bind = permutation._Chain.__init__, PathSim.bind
    monkeypatch.setattr(permutation._Chain, "__init__", lambda *a: (chains.append(a), make(*a))[1])
    monkeypatch.setattr(PathSim, "bind", lambda *a: (bound.append(a), bind(*a))[1])

    def ask(query: str, measure: npth.Scorer) -> tuple[object, int, int]:
        chains.clear(), bound.clear()
        scorer = measure.fit(open_store(folder).hin())
        return significance(scorer, [scorer.top_k(query, k=2)], permutations=9), len(chains), len(bound)

    first = ask("Mike", PathSim("APVPA"))
    assert first[1:] == (2, 9)  # two relations
    assert ask("Mike", PathSim("APVPA")) == (first[0], 0, 0)  # null scores from disk
    other, again = ask("Jim", PathSim("APVPA")), ask("Mike-SIGMOD-1", PathSim("PVP"))
    assert other[1:] == (0, 9)  # of other degrees: permuted graphs from disk
    assert again[1:] == (0, 9)  # a measure of one of the relations
    monkeypatch.setenv("NEUPATH_DISK_CACHE_BYTES", "0")
    in_memory = npth.load("toy")
    for (expected, *_), query, path in (
        (first, "Mike", "APVPA"),
        (other, "Jim", "APVPA"),
        (again, "Mike-SIGMOD-1", "PVP"),
    ):
        scorer = PathSim(path).fit(in_memory)
        assert significance(scorer, [scorer.top_k(query, k=2)], permutations=9) == expected


def test_permuted_edges_on_disk_that_do_not_fit_are_made_again(tmp_path: Path) -> None:
    hin = graph_of({"gene": [f"g{i}" for i in range(5)]}, {"gene -near- gene": [(0, 1), (2, 3), (4, 4)]})
    folder = write_store(hin, tmp_path / "genes.store")
    expected = [graph.matrices[NEAR].toarray().tolist() for graph in Permutations(hin, [NEAR], 5)]
    for change in (None, lambda ends: ends + 5, lambda ends: ends[:, 1:], lambda ends: ends.astype(np.int64)):
        stored = open_store(folder).hin()
        key = repr(("permutations", NEAR, 5, 0))
        if change is not None:
            entry = stored.disk_cache.find(key)
            stored.disk_cache.remove(key)
            changed = {name: change(array) for name, array in entry.arrays.items()}
            stored.disk_cache.put(key, Arrays(changed, entry.facts))
        graphs = [graph.matrices[NEAR].toarray().tolist() for graph in Permutations(stored, [NEAR], 5)]
        assert graphs == expected


@pytest.mark.slow
def test_p_values_are_uniform_in_a_permuted_graph() -> None:
    """With ties broken at random, p-values of pairs in a graph drawn from the null model are uniform."""
    [observed] = Permutations(random_graph(2), [WRITES], 1, seed=99)
    scorer = PathSim("APA").fit(observed)
    rng = np.random.default_rng(0)
    queries, targets = rng.integers(0, 60, (2, 600))
    pairs = queries != targets
    queries, targets = queries[pairs], targets[pairs]
    scores = np.array([scorer.score_rows(np.array([x]))[0, y] for x, y in zip(queries, targets, strict=True)])
    above, equal, total = null_model(scorer, 100, 7).count(queries, targets, scores)
    p_values = (above + rng.random(len(above)) * (equal + 1)) / (total + 1)
    assert kstest(p_values, "uniform").pvalue > 0.01


def test_planted_pairs_are_significant_and_others_are_not() -> None:
    hin = random_graph(4, authors=40, papers=400, edges=200)
    ends = [np.append(hin.matrices[WRITES].tocoo().row, [0] * 6 + [1] * 6)]
    ends.append(np.append(hin.matrices[WRITES].tocoo().col, [*range(6), *range(6)]))
    planted = HIN.build(hin.nodes.values(), [Edges(WRITES, *ends)], duplicates="drop")
    scorer = PathSim("APA").fit(planted)
    hits = scorer.top_k(0, k=5)
    [result] = significance(scorer, [hits], permutations=99)
    assert hits.ids[0] == 1
    assert result.p_values[0] == result.resolution == 0.01
    assert all(q >= p for p, q in zip(result.p_values, result.q_values, strict=True))
    assert significance(scorer, [hits], permutations=99) == [result]


def test_results_do_not_depend_on_which_hits_are_asked_for_together() -> None:
    hin = random_graph(5)
    lists = PathSim("APA").fit(hin).top_k([3, 7, 9, 12, 20, 31], k=4)
    together = significance(PathSim("APA").fit(hin), lists, permutations=20, seed=2)
    again = HIN.build(hin.nodes.values(), [Edges(WRITES, *hin.matrices[WRITES].nonzero())])
    alone = [significance(PathSim("APA").fit(again), [hits], permutations=20, seed=2)[0] for hits in lists[:2]]
    assert [each.p_values for each in together[:2]] == [each.p_values for each in alone]


def test_nodes_are_alike_by_degrees_and_by_the_weights_that_stay() -> None:
    ends = np.array([(0, 0), (1, 1), (2, 2), (3, 0), (3, 1)])
    plain, weighted = authors_of(4, 3, ends), authors_of(4, 3, np.c_[ends, [1.0, 2.0, 1.0, 1.0, 1.0]])
    assert degree_classes(plain, "author", [WRITES]).tolist() == [0, 0, 0, 1]
    classes = degree_classes(weighted, "author", [WRITES])
    assert classes[0] == classes[2] != classes[1]
    assert degree_classes(weighted, "paper", [WRITES]).tolist() == [1, 1, 0]


class Learned(npth.Scorer):
    name, exact = "learned", False
    source_type = "author"

    def fit(self, _: HIN) -> "Learned":
        return self

    def params(self) -> dict[str, object]:
        return {}

    def score_rows(self, queries: np.ndarray) -> np.ndarray:
        return np.zeros((len(queries), 5))


def test_combinations_measures_of_the_graph_and_what_is_refused(toy: HIN) -> None:
    combination = Combination([Part("pathsim", "APVPA", 0.5), Part("pathsim", "APA", 0.5)]).fit(toy)
    for scorer in (combination, SCAN("author").fit(toy), DWPCNoRepeats("APVPA").fit(toy)):
        [result] = significance(scorer, [scorer.top_k("Mike", k=2)], permutations=9)
        assert all(0.1 <= p <= 1 for p in result.p_values)
    assert significance(combination, []) == []
    with pytest.raises(QueryError, match="is learned, and would have to be trained again"):
        null_model(Learned(), 9, 0)


def test_the_query_itself_and_parts_of_permutations_are_refused(toy: HIN) -> None:
    scorer = PathSim("APVPA").fit(toy)
    with pytest.raises(QueryError, match="'Mike' is among its own hits"):
        significance(scorer, [scorer.top_k("Mike", include_query=True)], permutations=9)
    hits = scorer.top_k("Mike", k=3)
    for options in ({"permutations": 2.5}, {"permutations": True}, {"seed": 1.5}, {"seed": -1}):
        with pytest.raises(QueryError, match="; give a whole number of at least"):
            significance(scorer, [hits], **options)  # type: ignore[arg-type]
    [every] = significance(scorer, [hits], permutations=9)
    [filtered] = significance(scorer, [scorer.top_k("Mike", among=["Jim", "Ann"])], permutations=9)
    assert filtered.p_values == every.p_values[2:]  # a p-value is that of a pair


def test_the_correction_equals_the_definition() -> None:
    rng = np.random.default_rng(0)
    p_values = rng.random(30).round(2)
    order = np.argsort(p_values, kind="stable")
    expected = [min(1.0, *(p_values[j] * 30 / (r + 1) for r, j in enumerate(order) if r >= i)) for i in range(30)]
    np.testing.assert_allclose(adjusted(p_values)[order], expected)
    assert len(adjusted(np.zeros(0))) == 0


def test_json_of_hits_and_columns_of_a_join(toy: HIN, tmp_path) -> None:
    scorer = PathSim("APVPA").fit(toy)
    hits = scorer.top_k("Mike", k=2)
    [result] = significance(scorer, [hits], permutations=9)
    content = hits_with(hits, significance=result, stability=None)
    assert [hit["p_value"] for hit in content["hits"]] == list(result.p_values)  # type: ignore[index, union-attr]
    assert content["significance"]["resolution"] == 0.1  # type: ignore[index]
    assert {key: value for key, value in content.items() if key not in ("hits", "significance")} == {
        key: value for key, value in hits.to_dict().items() if key != "hits"
    }
    for name in ("top.parquet", "top.csv"):
        joined = npth.join(toy, scorer, tmp_path / name, k=2)
        add_p_values(joined, scorer, permutations=9)
        table = joined.to_table()
        assert table.column_names[:4] == ["query", "rank", "target", "score"]
        of_mike = [row["p_value"] for row in table.to_pylist() if row["query"] == "Mike"]
        assert of_mike == list(result.p_values)
    with pytest.raises(QueryError, match="is a folder; give a name in .parquet or .csv"):
        add_p_values(npth.join(toy, scorer, tmp_path / "folder", k=2), scorer)


def test_p_values_keep_what_a_csv_file_has(tmp_path: Path) -> None:
    names = pa.array(["A", None, "", 'q"u'])
    nodes = {"author": Nodes("author", pa.array(["007", "7", "NA", "x\ny"]), names), "paper": ["p0", "p1"]}
    hin = graph_of(nodes, {"author -writes-> paper": [(0, 0), (1, 0), (2, 0), (3, 0), (0, 1)]})
    scorer = PathSim("APA").fit(hin)
    joined = npth.join(hin, scorer, tmp_path / "top.csv", k=3)
    before = joined.path.read_text()
    add_p_values(joined, scorer, permutations=9)
    after = joined.path.read_text()
    assert '"A",,' in after
    assert re.sub(r"(,\"p_value\",\"q_value\"|,[\d.]+,[\d.]+)\n", "\n", after) == before
