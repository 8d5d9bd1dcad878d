"""A matrix reads at every version as it was written, and what an edge reaches is what a rebuild gives."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

import neupath as npth
from neupath.graph.edges import edge_counts
from neupath.graph.hin import Edges, freeze
from neupath.graph.metapath import Relation
from neupath.graph.nodes import Nodes
from neupath.live import LiveGraph, live_product, overlay
from neupath.live.overlay import Overlay
from neupath.measures import DWPC, PathCount
from tests.live.comparison import assert_equal, rebuilt, set_edges

VALUES = st.sampled_from([0.0, 1.0, 3.0, 0.1, 0.7])
HEIGHT, WIDTH = 4, 3
CELLS = st.tuples(st.integers(0, HEIGHT + 1), st.integers(0, WIDTH))  # some beyond the base
WRITES = st.dictionaries(CELLS, VALUES, min_size=1)


def assert_reads(matrix: Overlay, dense: np.ndarray) -> None:
    assert matrix.matrix().toarray().tolist() == dense.tolist()
    assert matrix.matrix().nnz == np.count_nonzero(dense)
    order = np.arange(len(dense))[::-1].repeat(2)
    assert matrix.take(order).toarray().tolist() == dense[order].tolist()
    for number, wanted in enumerate(dense):
        columns, values, _ = matrix.row(number)
        assert columns.tolist() == np.flatnonzero(wanted).tolist()
        assert values.tolist() == wanted[wanted > 0].tolist()


@settings(max_examples=60, deadline=None)
@given(
    first=st.lists(VALUES, min_size=HEIGHT * WIDTH, max_size=HEIGHT * WIDTH),
    changes=st.lists(WRITES, max_size=8),
    ratio=st.sampled_from([0, 1, 16]),
)
def test_every_version_reads_as_it_was_written(
    first: list[float], changes: list[dict[tuple[int, int], float]], ratio: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(overlay, "_RATIO", ratio)
        base = np.array(first).reshape(HEIGHT, WIDTH)
        dense = np.zeros((HEIGHT + 2, WIDTH + 1))
        dense[:HEIGHT, :WIDTH] = base
        matrix = Overlay.over(freeze(csr_array(base))).grown(HEIGHT + 2, WIDTH + 1)
        versions = [(matrix, dense)]
        for change in changes:
            rows: dict[int, dict[int, float]] = {}
            dense = dense.copy()
            for (row, column), value in change.items():
                rows.setdefault(row, {})[column] = value
                dense[row, column] = value
            matrix = matrix.with_entries(rows)
            versions.append((matrix, dense))
    for matrix, wanted in versions:
        assert_reads(matrix, wanted)


def test_a_version_shares_what_has_not_changed() -> None:
    base = freeze(csr_array(np.ones((90, 3))))
    before = Overlay.over(base).with_entries({row: {0: 2.0} for row in range(80)})
    after = before.with_entries({85: {1: 5.0}})
    assert after.base is before.base is base
    assert after.blocks[0] is before.blocks[0]
    assert after.with_entries({86: {1: 5.0}}).blocks[1].rows[85] is after.blocks[1].rows[85]
    assert after.row(86).columns.tolist() == [0, 1, 2]


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
@pytest.mark.parametrize("searches", [0, 1000])  # after which a block is searched by its transpose
def test_many_edges_at_hubs_give_what_a_rebuild_gives(
    whole: bool, searches: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overlay, "_MANY_SEARCHES", searches)
    monkeypatch.setattr(overlay, "_LIGHT_ENTRIES", 0)
    monkeypatch.setattr(live_product, "_ROWS_AT_ONCE", 7)
    rng = np.random.default_rng(0)
    live = LiveGraph(crowd(rng, whole=whole), compaction_share=float("inf"))
    measures = [kind(path) for kind in (PathCount, npth.PathSim, DWPC) for path in ("APA", "APVPA")]
    for measure in measures:
        live.attach(measure)
    for relation in live.view().hin.schema.relations * 60:
        ends = (live.view().hin.num_nodes(end) * rng.random() ** 2 for end in (relation.source, relation.target))
        weight = float(rng.integers(0, 3)) if whole else float(rng.random() * rng.integers(0, 2))
        set_edges(live, [(relation, *map(int, ends), weight)])
    view = live.view()
    scratch = rebuilt(view.hin)
    for measure in measures:
        for k in (3, 40):
            assert_equal(view.scorer(measure), type(measure)(str(measure.metapath)).fit(scratch), 60, k)
    for relation, matrix in scratch.matrices.items():
        counts = view.hin.matrices.edge_counts(relation)  # type: ignore[attr-defined]
        assert [each.tolist() for each in counts] == [each.tolist() for each in edge_counts(matrix)]
