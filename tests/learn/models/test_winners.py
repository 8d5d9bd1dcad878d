"""The winning candidates: the torch search against sorting, the CUDA kernel against the torch search."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch", reason="the learn extra is not installed")

from neupath.learn.models.class_table import (  # noqa: E402
    ClassTable,
    Stage,
    build_batch,
)
from neupath.learn.models.flat_graph import FlatGraph  # noqa: E402
from neupath.learn.models.neupath import find_tmax_torch  # noqa: E402
from tests.graphs import hins  # noqa: E402


def stage_of(hin, slots: int) -> Stage | None:
    """The last stage of a forward pass over a whole graph."""
    graph = FlatGraph.of(hin)
    if not len(graph.types):
        return None
    table = ClassTable(len(hin.schema.node_types), 2, slots)
    stage = build_batch(table, np.unique(table.background(graph)[-1]), slots).stages[-1]
    return stage if len(stage.source) else None


def values_for(stage: Stage, seed: int, dim: int = 5) -> list:
    """Random values with many ties for sources, targets and kinds of edges."""
    generator = torch.Generator().manual_seed(seed)
    sizes = (int(part.max()) + 1 for part in (stage.source, stage.target, stage.kind))
    return [torch.randint(0, 3, (size, dim), generator=generator).float() for size in sizes]


@given(hin=hins(), slots=st.integers(1, 4), seed=st.integers(0, 1000))
def test_winners_are_the_first_of_the_sorted_candidates(hin, slots: int, seed: int) -> None:
    stage = stage_of(hin, slots)
    if stage is None:
        return
    source, target, edge = values_for(stage, seed)
    found = find_tmax_torch(source, target, edge, stage)
    every = source[stage.source] + target[stage.target] + edge[stage.kind]
    for k, (begin, end) in enumerate(zip(stage.indptr, stage.indptr[1:], strict=False)):
        candidates = stage.candidates[begin:end]
        best = every[candidates].sort(dim=0, descending=True).values[:slots]
        here = found[k, : len(best)]
        torch.testing.assert_close(every.gather(0, here), best)
        assert (found[k, len(best) :] == len(stage.source)).all()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
@given(hin=hins(), slots=st.integers(1, 4), seed=st.integers(0, 1000))
def test_the_cuda_kernel_agrees_to_the_last_index(hin, slots: int, seed: int) -> None:
    pytest.importorskip("triton", reason="Triton is not installed")
    from neupath.learn.models.tmax_cuda import find_tmax_cuda

    stage = stage_of(hin, slots)
    if stage is None:
        return
    values = [value.cuda() for value in values_for(stage, seed)]
    names = ("source", "target", "kind", "candidates", "indptr", "filled")
    there = replace(stage, **{name: getattr(stage, name).cuda() for name in names})
    expected = find_tmax_torch(*(value.cpu() for value in values), stage)
    torch.testing.assert_close(find_tmax_cuda(*values, there).cpu(), expected)
