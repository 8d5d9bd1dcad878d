"""A half-path matrix reads at every version as it was written, and what an edge reaches is what a rebuild gives."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

import neupath as npth
from neupath.graph.hin import Edges, freeze
from neupath.graph.metapath import Relation
from neupath.graph.nodes import Nodes
from neupath.live import LiveGraph, live_kernels
from neupath.live.live_kernels import NEVER, ProductArrays, line_at, norm_at
from neupath.live.live_product import LiveProduct, MvccNorms
from neupath.measures import PathCount
from tests.live.comparison import assert_equal, rebuilt, set_edges

VALUES = st.sampled_from([0.0, 1.0, 3.0, 0.1, 0.7, 2.0**26, 2.0**26 + 1, 2.0**27 + 1])
SHAPE = 4, 3
writes = st.dictionaries(st.tuples(st.integers(0, SHAPE[0] - 1), st.integers(0, SHAPE[1] - 1)), VALUES, min_size=1)


def half_of(dense: np.ndarray) -> LiveProduct:
    base = freeze(csr_array(dense))
    norms = np.array([added_up(row) for row in dense])
    return LiveProduct([], base, freeze(csr_array(dense.T)), norms, 7)


def added_up(values: np.ndarray) -> float:
    total = 0.0
    for value in values.tolist():
        total += value * value
    return total


def assert_reads(arrays: ProductArrays, dense: np.ndarray, since: int) -> None:
    for lines, matrix in ((arrays.rows, dense), (arrays.columns, dense.T)):
        for line, wanted in enumerate(matrix):
            places, values = line_at(lines, line, since)
            assert places.tolist() == np.flatnonzero(wanted).tolist()
            assert values.tolist() == wanted[wanted > 0].tolist()
    assert [norm_at(arrays.norms, row, since) for row in range(SHAPE[0])] == [added_up(row) for row in dense]


@settings(max_examples=60, deadline=None)
@given(
    first=st.lists(VALUES, min_size=12, max_size=12),
    changes=st.lists(writes, max_size=8),
    most=st.sampled_from([1, 5, 1024]),
)
@pytest.mark.slow
def test_every_version_reads_as_it_was_written(
    first: list[float], changes: list[dict[tuple[int, int], float]], most: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("neupath.live.live_product._MAX_NORMS", most)
        patch.setattr("neupath.live.live_product._INITIAL_ROOM", most)
        check_versions(np.array(first).reshape(SHAPE), changes)


def check_versions(dense: np.ndarray, changes: list[dict[tuple[int, int], float]]) -> None:
    half = half_of(dense)
    versions = [(half.arrays, dense)]
    for version, change in enumerate(changes, start=8):
        cells = sorted(change)
        rows, columns = np.array(cells).T.copy()
        half.write(rows, columns, np.array([change[cell] for cell in cells]), version)
        dense = dense.copy()
        dense[rows, columns] = [change[cell] for cell in cells]
        versions.append((half.arrays, dense))
        for since, (arrays, wanted) in enumerate(versions):
            assert_reads(arrays, wanted, since)


def test_norms_are_updated_by_difference_only_if_that_is_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    put = MvccNorms.put
    monkeypatch.setattr(MvccNorms, "put", lambda self, *given: (put(self, *given), found.append(self._whole.tolist())))
    half = half_of(np.ones(SHAPE))
    for version, value in ((8, 2.0), (9, 0.5), (10, 2.0), (11, 2.0**26 + 1), (12, 2.0**27), (13, 1.0)):
        half.write(np.array([1]), np.array([2]), np.array([value]), version)
    assert [whole[1] for whole in found] == [True, False, True, True, False, True]
    assert all(whole[0] for whole in found)


def test_more_versions_than_fit_an_entry_are_refused() -> None:
    half = half_of(np.ones(SHAPE))
    with pytest.raises(OverflowError, match="compact the live graph"):
        half.write(np.array([0]), np.array([0]), np.array([2.0]), 7 + NEVER)


def crowd(rng: np.random.Generator, *, whole: bool) -> npth.HIN:
    """Authors, papers and venues with hubs among all of them."""
    sizes = {"author": 60, "paper": 120, "venue": 25}
    nodes = [Nodes(name, pa.array(np.arange(size))) for name, size in sizes.items()]

    def edges(source: str, name: str, target: str, count: int) -> Edges:
        rows, columns = ((sizes[end] * rng.random(count) ** 2).astype(np.int64) for end in (source, target))
        weights = rng.integers(1, 4, count).astype(float) if whole else rng.random(count) + 0.1
        return Edges(Relation(source, name, target), rows, columns, weights)

    return npth.HIN.build(nodes, [edges("author", "writes", "paper", 500), edges("paper", "at", "venue", 300)])


@pytest.mark.parametrize("whole", [True, False])
def test_many_edges_at_hubs_give_what_a_rebuild_gives(whole: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    live = LiveGraph(crowd(rng, whole=whole), compaction_share=float("inf"))
    chosen = []
    decide = live_kernels.is_whole_cheaper

    def noted(*given: object) -> bool:
        chosen.append(bool(decide(*given)))
        return chosen[-1]

    monkeypatch.setattr(live_kernels, "is_whole_cheaper", noted)
    measures = [PathCount(path) for path in ("APA", "APVPA")] + [npth.PathSim(path) for path in ("APA", "APVPA")]
    for measure in measures:
        live.attach(measure)
    for relation in live.view().hin.schema.relations * 60:
        ends = (live.view().hin.num_nodes(end) * rng.random() ** 2 for end in (relation.source, relation.target))
        weight = float(rng.integers(0, 3)) if whole else float(rng.random() * rng.integers(0, 2))
        set_edges(live, [(relation, *map(int, ends), weight)])
    view = live.view()
    scratch = rebuilt(view.hin)
    compared = measures if whole else measures[:2]  # norms of fractions may differ in the last digit
    for measure in compared:
        for k in (3, 40):
            assert_equal(view.scorer(measure), type(measure)(str(measure.metapath)).fit(scratch), 60, k)
    assert {True, False} <= set(chosen)
