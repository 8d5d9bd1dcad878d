"""NeuPath: the encoder over classes against a plain pass over all nodes and edges, T-max pooling, attention paths."""

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("torch")

import torch

import neupath as npth
from neupath import HIN, NeuPathError
from neupath.evidence.model_explanation import AttentionExplanation, explain_model
from neupath.learn.evaluation import evaluate
from neupath.learn.labels import Pairs
from neupath.learn.models import NeuPath
from neupath.learn.models.class_table import ClassTable, Stage, build_batch
from neupath.learn.models.flat_graph import FlatGraph
from neupath.learn.models.improved_neupath import Features
from neupath.learn.models.neupath import find_tmax_torch
from tests.graphs import hins
from tests.learn.models.plain_neupath import (
    assert_same_scores_and_gradients,
    by_classes,
    network,
    score_all,
    score_pairs,
)
from tests.learn.models.small_graphs import library, users


@settings(max_examples=20)
@given(hin=hins(), layers=st.integers(1, 3), slots=st.integers(1, 3), seed=st.integers(0, 1000))
@pytest.mark.slow
def test_scores_and_gradients_equal_the_plain_forward(hin: HIN, layers: int, slots: int, seed: int) -> None:
    encoder, decoder, graph = network(hin, 6, layers, slots, seed)
    if not len(graph.types):
        return
    query = seed % len(graph.types)
    scores, expected = by_classes(encoder, decoder, graph, query), score_all(encoder, decoder, graph, query)
    assert_same_scores_and_gradients(scores, expected, [*encoder.parameters(), *decoder.parameters()])


@settings(max_examples=15)
@given(
    hin=hins(),
    types=st.tuples(st.sampled_from("abc"), st.sampled_from("abc")),
    layers=st.integers(1, 4),
    channels=st.sampled_from([0, 1, 3]),
    features=st.sampled_from(["all", "counts", "ratio"]),
    shared=st.booleans(),
    seed=st.integers(0, 1000),
)
@pytest.mark.slow
def test_the_improved_variant_equals_the_plain_forward(
    hin: HIN,
    types: tuple[str, str],
    layers: int,
    channels: int,
    features: Features,
    shared: bool,
    seed: int,
) -> None:
    """Scores and gradients, with edge weights, between nodes of one type or of two."""
    queries, targets = (hin.num_nodes(name) for name in types)
    if not queries or not targets:
        return
    model = NeuPath(
        dim=4, layers=layers, paths=2, channels=channels, features=features if channels else "all", shared=shared,
        seed=seed, device="cpu",
    )  # fmt: skip
    model.node_type_, model.target_type_ = types
    model._set_network(hin)
    rows = np.array([seed % queries, seed % queries, 0]), np.array([0, targets - 1, seed % targets])
    pairs = Pairs(types[0], *rows, np.array([0.1, 0.5, 1.0]), target_type=types[1])
    (batch,) = model._batches(pairs)
    scores = model._score_batch(batch)
    expected = torch.cat([score_pairs(model, int(q), int(t)) for q, t in zip(*rows, strict=True)])
    torch.testing.assert_close(scores, expected, rtol=1e-4, atol=1e-4)
    every = model._score_rows(rows[0])  # of cold queries, too, whose scores no search shows
    np.testing.assert_allclose(every[np.arange(3), rows[1]], scores.detach().numpy(), rtol=1e-4, atol=1e-4)
    parameters = list(model.network_.parameters())
    ours = torch.autograd.grad((scores**2).sum(), parameters, allow_unused=True)
    theirs = torch.autograd.grad((expected**2).sum(), parameters, allow_unused=True)
    for mine, plain, parameter in zip(ours, theirs, parameters, strict=True):
        gradient, wanted = (torch.zeros_like(parameter) if g is None else g for g in (mine, plain))
        torch.testing.assert_close(gradient, wanted, rtol=1e-3, atol=1e-3 * max(1.0, float(wanted.abs().max())))


def test_models_saved_before_variants_are_the_papers(hin: HIN, teacher: npth.PathSim, tmp_path: Path) -> None:
    model = NeuPath(dim=8, epochs=1, variant="paper", device="cpu").fit(hin, teacher=teacher, queries=users(9))
    config = model.save(tmp_path) / "config.json"
    content = json.loads(config.read_text())
    for name in ("variant", "channels", "shared"):
        del content["params"][name]
    config.write_text(json.dumps({"scorer": content["scorer"], "params": content["params"]}))  # as they were saved
    loaded = npth.load_scorer(tmp_path, hin, device="cpu")
    assert isinstance(loaded, NeuPath)
    assert loaded.variant == "paper"
    np.testing.assert_array_equal(loaded.scores("u1"), model.scores("u1"))


def test_shared_matrices_are_saved_once(hin: HIN, teacher: npth.PathSim, tmp_path: Path) -> None:
    """The paper's exact configuration: T = 2, 10 epochs, one set of matrices for all layers."""
    model = NeuPath(dim=8, layers=4, epochs=1, variant="paper", shared=True, device="cpu")
    model.fit(hin, teacher=teacher, queries=users(9))
    assert len(model.network_.encoder.layers) == 1
    loaded = npth.load_scorer(model.save(tmp_path), hin, device="cpu")
    np.testing.assert_array_equal(loaded.scores("u1"), model.scores("u1"))


def test_pairs_of_two_types(hin: HIN, tmp_path: Path) -> None:
    labels = [(f"u{u}", i, float(hin.matrices[hin.schema.relations[0]][u, i] > 0)) for u in range(9) for i in range(9)]
    model = NeuPath(dim=8, epochs=3, device="cpu").fit(hin, labels)
    hits = model.top_k("u1", k=3)
    assert (model.source_type, model.target_type, len(hits)) == ("user", "item", 3)
    reloaded = npth.load_scorer(model.save(tmp_path), hin, device="cpu")
    np.testing.assert_array_equal(reloaded.scores("u1"), model.scores("u1"))
    assert model.attention_paths("u1", hits[0].id)[0].nodes[-1].node_type == "item"


@pytest.mark.parametrize(("layers", "slots"), [(2, 2), (4, 3)])
@pytest.mark.slow
def test_scores_equal_the_plain_forward_on_a_larger_graph(layers: int, slots: int) -> None:
    """Of a hundred nodes, of which many have more neighbours than slots."""
    encoder, decoder, graph = network(library(users=30), 8, layers, slots, 0)
    for query in (0, 17):
        expected = score_all(encoder, decoder, graph, query)
        torch.testing.assert_close(by_classes(encoder, decoder, graph, query), expected, rtol=1e-5, atol=1e-5)


# ---- T-max pooling -------------------------------------------------------------------------------
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
@pytest.mark.slow
def test_winners_are_the_first_of_the_sorted_candidates(hin, slots: int, seed: int) -> None:
    stage = stage_of(hin, slots)
    if stage is None:
        return
    source, target, edge = values_for(stage, seed)
    tmax = find_tmax_torch(source, target, edge, stage)
    every = source[stage.source] + target[stage.target] + edge[stage.kind]
    for k, (begin, end) in enumerate(zip(stage.indptr, stage.indptr[1:], strict=False)):
        candidates = stage.candidates[begin:end]
        best = every[candidates].sort(dim=0, descending=True).values[:slots]
        here = tmax[k, : len(best)]
        torch.testing.assert_close(every.gather(0, here), best)
        assert (tmax[k, len(best) :] == len(stage.source)).all()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device; run the tests on a machine with one")
@given(hin=hins(), slots=st.integers(1, 4), seed=st.integers(0, 1000))
def test_the_cuda_kernel_agrees_to_the_last_index(hin, slots: int, seed: int) -> None:
    pytest.importorskip("triton", reason="Triton is not installed; install a CUDA build of torch")
    from neupath.learn.models.cuda_kernels import find_tmax_cuda

    stage = stage_of(hin, slots)
    if stage is None:
        return
    values = [value.cuda() for value in values_for(stage, seed)]
    names = ("source", "target", "kind", "candidates", "indptr", "filled")
    there = replace(stage, **{name: getattr(stage, name).cuda() for name in names})
    expected = find_tmax_torch(*(value.cpu() for value in values), stage)
    torch.testing.assert_close(find_tmax_cuda(*values, there).cpu(), expected)


# ---- Learning and attention ----------------------------------------------------------------------
@pytest.mark.parametrize("variant", ["improved", "paper"])
@pytest.mark.slow
def test_learns(hin: HIN, teacher: npth.PathSim, variant: str) -> None:
    model = NeuPath(dim=64, layers=2, paths=2, epochs=40, learning_rate=2e-3, variant=variant, device="cpu")
    model.fit(hin, teacher=teacher, queries=users(50))
    evaluation = evaluate(model, teacher, users(55, 79))
    assert evaluation.ndcg is not None
    assert evaluation.ndcg > 0.9
    assert model.log_[-1].train_rmse < 0.3 * model.log_[0].train_rmse


@pytest.mark.parametrize("features", ["counts", "ratio"])
def test_a_decoder_that_sees_a_part_trains(hin: HIN, teacher: npth.PathSim, features: str) -> None:
    model = NeuPath(dim=8, epochs=1, device="cpu", features=features).fit(hin, teacher=teacher, queries=users(20))
    assert np.isfinite(model.scores("u1")).all()


def test_the_ratio_alone_sees_no_paths(hin: HIN, teacher: npth.PathSim) -> None:
    model = NeuPath(dim=8, epochs=1, features="ratio", device="cpu").fit(hin, teacher=teacher, queries=users(9))
    with pytest.raises(NeuPathError, match="sees only the ratio of its count channels picks no paths"):
        model.attention_paths("u1", "u2")
    with pytest.raises(NeuPathError, match="features is 'ratio'; .*, and without count channels only 'all'"):
        NeuPath(channels=0, features="ratio")


@pytest.mark.slow
def test_shows_the_paths_behind_a_score(hin: HIN, teacher: npth.PathSim) -> None:
    model = NeuPath(dim=32, layers=2, paths=2, epochs=20, learning_rate=2e-3, device="cpu")
    model.fit(hin, teacher=teacher, queries=users(50))
    pairs = [(f"u{q}", str(teacher.top_k(f"u{q}", k=1)[0].id)) for q in range(55, 70) if len(teacher.top_k(f"u{q}"))]
    for query, target in pairs:
        paths = model.attention_paths(query, target, limit=10_000)
        assert sum(path.weight for path in paths) == pytest.approx(1.0, abs=1e-3)
        weights = [path.weight for path in paths]
        assert weights == sorted(weights, reverse=True)
        for path in paths:
            assert path.nodes[-1].id == target
            assert path.from_query == (path.nodes[0].id == query)
            for link, (here, there) in zip(path.links, pairwise(path.nodes), strict=True):
                assert joined(hin, here, there), f"{here} {link} {there} is no edge"
        why = explain_model(model, query, target, limit=10_000)
        assert isinstance(why, AttentionExplanation)
        assert sum(group.paths for group in why.groups) == len(paths)
        assert sum(group.share for group in why.groups) == pytest.approx(sum(path.weight for path in paths))
        through = {(node.node_type, node.id) for path in paths for node in path.nodes}
        assert {(group.node.node_type, group.node.id) for group in why.groups} <= through
        assert why.summary.startswith("The model attends to paths")
    used = model.used_metapaths(pairs)
    assert sum(share for _, share in used) == pytest.approx(1.0)
    assert used[0][0] == "user -buys-> item <-buys- user"


def joined(hin: HIN, here, there) -> bool:
    rows = hin.row(here.node_type, here.id), hin.row(there.node_type, there.id)
    return any(hin.matrix(link)[rows] > 0 for link in hin.schema.links(here.node_type, there.node_type))
