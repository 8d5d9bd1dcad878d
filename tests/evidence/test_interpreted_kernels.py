"""What Python and what machine code make of the same kernels: equal to the bit."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import neupath as npth
from neupath._runtime import kernels
from neupath.evidence import counterfactual_kernels, permutation_kernels
from neupath.evidence.permutation import Permutations
from neupath.graph.metapath import MetaPath
from neupath.learn.inference import feature_kernels
from neupath.learn.inference.features import compute_features
from neupath.learn.labels import Pairs
from neupath.measures import dwpc_kernels
from tests.graphs import graph_of

MODULES = counterfactual_kernels, permutation_kernels, feature_kernels, dwpc_kernels


def permuted() -> list[Any]:
    """Permuted edges: between two types, of one type with a direction, and without."""
    rng = np.random.default_rng(0)
    edges = {name: sorted({(x, y) for x, y in rng.integers(30, size=(90, 2)).tolist()})
             for name in ("author -knows- author", "author -cites-> author", "author -writes-> paper")}  # fmt: skip
    edges["author -knows- author"] = [(x, y) for x, y in edges["author -knows- author"] if x < y]
    hin = graph_of({"author": 30, "paper": 30}, edges)
    relations = hin.schema.relations
    return [graph.pairs(each).targets.tolist() for graph in Permutations(hin, relations, 3, 5) for each in relations]


def features() -> list[Any]:
    hin = npth.load("toy")
    every = np.arange(4)
    pairs = Pairs("author", np.repeat(every, 4), np.tile(every, 4), np.zeros(16), np.ones(16))
    path = MetaPath.parse(hin.schema, "APVPA")
    return [(name, scores.tolist()) for found in compute_features(hin, [path], pairs) for name, scores in found.items()]


@pytest.mark.parametrize(
    "compute",
    [
        lambda: npth.what_if(npth.load("toy"), "APVPA", "Mike", "Mary", k=2, remove="edges", budget=30_000).to_dict(),
        lambda: npth.what_if(
            npth.load("toy"), "APVPA", "Jim", "Mary", k=1, remove="edges", measure="hetesim", budget=30_000
        ).to_dict(),
        lambda: npth.what_if(
            npth.load("toy"), "APA", "Mike", "Jim", k=1, remove="paper", measure="dwpc", budget=30_000
        ).to_dict(),
        lambda: npth.measures.measure_named("dwpc-no-repeats", "APVPA").fit(npth.load("toy")).top_k("Mike").scores,
        permuted,
        features,
    ],
)
def test_python_and_machine_code_agree(compute: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    every = [each for module in MODULES for each in vars(module).values() if isinstance(each, kernels.Kernel)]
    monkeypatch.setattr(kernels, "LIGHT_STEPS", -1)
    by_machine_code = compute()
    for each in every:
        monkeypatch.setattr(each, "code", {})
        monkeypatch.setattr(each, "_load", lambda _: pytest.fail("a kernel is loaded"))
    monkeypatch.setattr(kernels, "LIGHT_STEPS", float("inf"))
    assert compute() == by_machine_code
