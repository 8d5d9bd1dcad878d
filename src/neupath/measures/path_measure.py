"""PathMeasure: the base class of measures over a meta-path, each a normalised product of sparse matrices."""

import json
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from hashlib import sha256
from typing import ClassVar, NamedTuple, Self

import numpy as np
from scipy.sparse import csr_array, diags_array

from neupath.engine import gpu
from neupath.engine.cache import cached
from neupath.engine.formula import Formula, Normalisation, formula_of
from neupath.engine.hits import Hits, Search, hits_of_rows
from neupath.engine.products import Chain, Halves, Product, adjacency, identity, link_matrix, symmetric_product
from neupath.engine.scorer import Scorer
from neupath.engine.topk import (
    HitLists,
    Ranking,
    range_of_product,
    score_product,
    score_set,
    score_targets,
    top_k_of_product,
    top_k_of_row,
    top_k_of_set,
)
from neupath.errors import GraphError
from neupath.graph.hin import HIN, Csr, Floats, check_graph, freeze
from neupath.graph.metapath import MetaPath, Step
from neupath.graph.nodes import Mask, NodeRef, Nodes, Rows


# ---- Legs: the factors of a product --------------------------------------------------------------
@dataclass(frozen=True)
class Leg:
    """One factor of a product along a path: the weights A of a step, rows and columns scaled by powers of their sums.

    Leg[u,v] = A[u,v] · (Σ A[u,:])^row_power · (Σ A[:,v])^column_power
    """

    step: Step
    row_power: float = 0.0
    column_power: float = 0.0

    @property
    def is_scaled(self) -> bool:
        return bool(self.row_power or self.column_power)

    def reversed(self) -> "Leg":
        """Return the leg walked the other way, whose matrix is the transposed one."""
        return Leg(self.step.reversed(), self.column_power, self.row_power)

    def matrix(self, hin: HIN) -> Csr:
        """Return the step's weights with rows and columns scaled; a sum of 0 stays 0, and rows stay sorted."""
        weights = scaled = adjacency(hin, self.step)
        if self.row_power:
            scaled = csr_array(diags_array(_power(checked_sums(weights, axis=1), self.row_power)) @ scaled)
        if self.column_power:
            scaled = csr_array(scaled @ diags_array(_power(checked_sums(weights, axis=0), self.column_power)))
        return freeze(scaled) if self.is_scaled else weights


def reversed_legs(legs: Sequence[Leg]) -> list[Leg]:
    """Return legs as they are walked from their other end."""
    return [leg.reversed() for leg in reversed(legs)]


def checked_sums(weights: Csr, axis: int) -> Floats:
    """Return the sums of a matrix's columns (axis 0) or rows (axis 1); raise if a float cannot hold one."""
    with np.errstate(over="ignore"):
        sums: Floats = weights.sum(axis=axis)
    if not np.isfinite(sums).all():
        raise GraphError("the weights of a node add up to more than a float can hold; scale the weights down")
    return sums


def _power(sums: Floats, power: float) -> Floats:
    result = sums.copy()
    positive = sums > 0
    result[positive] = sums[positive] ** power
    return result


# ---- PathMeasure ---------------------------------------------------------------------------------
class PathMeasure(Scorer):
    """A measure over the instances of one meta-path.

    The score of x and y is entry [x,y] of the product of the `legs` along the path, normalised. A path instance
    contributes the product of the entries it passes through, so that a score splits exactly over its instances.

    A subclass declares its formula by class attributes: `normalisation`, the powers `row_power` and `column_power` of
    each leg, and `symmetric_only`. It overrides `legs` where the legs differ along the path. How the measure factorises
    follows from there, and search, joins, the live graph and inference read it from `half_legs` and `meets_at_nodes`.

    Parameters
    ----------
    metapath
        The meta-path, as a text such as "author-paper-author" or as a `MetaPath`.
    device
        "cuda" ranks many queries, as in a join, on a GPU; needs the extra `gpu`. Hits and scores are the same.
    """

    exact = True
    normalisation: ClassVar[Normalisation] = Normalisation.NONE
    symmetric_only: ClassVar[bool] = False  # whether the measure is defined only on meta-paths H·H⁻¹
    counts_walks: ClassVar[bool] = True  # whether every walk along the path counts, also one that repeats a node
    bounded: ClassVar[bool] = True  # whether scores lie between 0 and 1
    inferred_by_default: ClassVar[bool] = True  # whether `infer` tries the measure where none are named
    settings: ClassVar[tuple[str, ...]] = ()  # the parameters of the constructor besides the meta-path
    row_power: float = 0.0  # the power of its sum by which each row of a leg is scaled
    column_power: float = 0.0  # the power of its sum by which each column of a leg is scaled
    metapath_: MetaPath
    factors_: Product
    _prepared: "_Prepared | None" = None

    def __init__(self, metapath: str | MetaPath, *, device: str = "cpu") -> None:
        self.metapath, self.device = metapath, device if device == "cpu" else gpu.check_device(device)
        self.formula: Formula = formula_of(self.normalisation)

    # -- Fitting
    def fit(self, hin: HIN) -> Self:
        if self.device == "cuda":
            gpu.cuda_device()  # raises if the machine has no GPU
        check_graph(hin)
        self.hin_, self.metapath_ = hin, self._metapath_in(hin)
        self.factors_ = self._product(hin, self.metapath_)
        return self

    def bind(self, hin: HIN) -> Self:
        bound = super().bind(hin)
        bound.device = self.device
        return bound

    def resolve(self, hin: HIN) -> Self:
        """Return a copy with the graph and its meta-path but no product, for engines that multiply elsewhere."""
        resolved = copy(self)
        resolved.__dict__.pop("factors_", None)
        resolved.hin_, resolved.metapath_ = hin, self._metapath_in(hin)
        return resolved

    def _metapath_in(self, hin: HIN) -> MetaPath:
        metapath = self.metapath
        if not isinstance(metapath, MetaPath) or metapath.schema != hin.schema:
            metapath = hin.metapath(str(metapath) if isinstance(metapath, MetaPath) else metapath)
        self.check(metapath)
        return metapath

    def check(self, metapath: MetaPath) -> None:
        """Raise a MetaPathError if the measure is not defined on a meta-path."""
        if self.symmetric_only:
            metapath.require_round_trip(type(self).__name__)

    # -- How the measure factorises
    def legs(self, metapath: MetaPath) -> list[Leg]:
        """Return one leg per step; the product of their matrices is the numerator of the score."""
        return [Leg(step, self.row_power, self.column_power) for step in metapath.steps]

    def half_legs(self, metapath: MetaPath) -> tuple[list[Leg], list[Leg] | None]:
        """Cut the legs in the middle of the path, both halves in the order of the path.

        The second half is None where it is the first one walked back: then M = W·Wᵀ. `reversed_legs` turns a second
        half into the legs from the target to the middle.
        """
        legs = self.legs(metapath)
        middle = max(1, len(legs) // 2)
        lefts, rights = legs[:middle], legs[middle:]
        return lefts, None if lefts == reversed_legs(rights) else rights

    def meets_at_nodes(self, metapath: MetaPath) -> bool:
        """Whether both halves have a leg and are products of legs alone, so that they meet at nodes of the graph."""
        return len(metapath) > 1

    def step_matrices(self, hin: HIN, metapath: MetaPath) -> Sequence[Csr]:
        return [leg.matrix(hin) for leg in self.legs(metapath)]

    def halves(self, hin: HIN, metapath: MetaPath) -> Halves:
        """Return the matrices of both halves, not yet multiplied."""
        lefts, rights = self.half_legs(metapath)
        left = [leg.matrix(hin) for leg in lefts]
        if rights is None:
            return Halves(left)
        return Halves(left, [leg.matrix(hin) for leg in rights] or [identity(left[-1].shape[1])])

    def _product(self, hin: HIN, metapath: MetaPath) -> Product:
        """Return the cached product; measures that scale nothing share W·Wᵀ."""
        lefts, rights = self.half_legs(metapath)
        if rights is None and not any(leg.is_scaled for leg in lefts):
            return symmetric_product(hin, metapath)
        key = (self.name, json.dumps(self.params()), metapath)
        return cached(hin, key, lambda: self.halves(hin, metapath).product())

    # -- The contract of Scorer
    @property
    def source_type(self) -> str:
        self._fitted()
        return self.metapath_.source

    @property
    def target_type(self) -> str:
        self._fitted()
        return self.metapath_.target

    @property
    def metapath_text(self) -> str:
        self._fitted()
        return str(self.metapath_)

    def params(self) -> dict[str, object]:
        metapath = {"metapath": str(getattr(self, "metapath_", self.metapath))}
        return metapath | {name: getattr(self, name) for name in self.settings}

    def fingerprint(self) -> str:
        """Mark scores of propagated rows, whose last digits may differ, and conditions by the edges that they keep.

        Conditions depend on attributes, which the digest of a graph leaves out.
        """
        product, path = getattr(self, "factors_", None), getattr(self, "metapath_", None)
        mark = "propagated" if isinstance(product, Chain) and not product.is_exact else ""
        if path is None or not path.is_filtered:
            return mark
        content = sha256()
        for link in (link for link in path.links if link.is_filtered):
            matrix = link_matrix(self.hin_, link)
            for part in (matrix.indptr, matrix.indices, matrix.data):
                content.update(np.ascontiguousarray(part).data)
        return f"{mark} {content.hexdigest()}".strip()

    def score_rows(self, queries: Rows) -> Floats:
        return score_product(self.factors_, self.formula, queries)

    def rank_rows(self, queries: Rows, skipped: Rows, k: int, candidates: Mask | None, threads: int | None) -> Ranking:
        ranking = None
        if self.device == "cuda" and candidates is None:
            ranking = gpu.rank_on_gpu(self.factors_, self.formula, queries, skipped, k, threads)
        if ranking is not None:
            return ranking
        return top_k_of_product(self.factors_, self.formula, queries, skipped, k, candidates, threads)

    def rank_row(self, row: int, skipped: int, k: int) -> tuple[list[int], list[float]]:
        best = top_k_of_row(self.factors_, self.formula, row, skipped, k)
        return super().rank_row(row, skipped, k) if best is None else best

    def score_targets(self, row: int, targets: Rows) -> Floats:
        return score_targets(self.factors_, self.formula, row, targets)

    def set_scores(self, members: Rows, weights: Floats) -> Floats:
        return score_set(self.factors_, self.formula, members, weights)

    def rank_set(
        self, members: Rows, weights: Floats, left_out: Rows, k: int, candidates: Mask | None
    ) -> tuple[Rows, Floats]:
        return top_k_of_set(self.factors_, self.formula, members, weights, left_out, k, candidates)

    def _top_k_at_once(self, query: NodeRef, k: int) -> Hits | None:
        prepared = self._prepared
        if (
            prepared is None or prepared.k != k
            or prepared.hin is not self.hin_ or prepared.metapath is not self.metapath_  # it was fitted again
        ):  # fmt: skip
            if not hasattr(self, "factors_") or k < 1:
                return None
            prepared = self._prepared = _Prepared.of(self, k)
        row = prepared.queries.look_up(query)
        if row is None:
            return None
        rows, scores = self.rank_row(row, row if prepared.skips_query else -1, k)
        return hits_of_rows(prepared.queries.id(row), prepared.search, rows, scores)

    def range_rows(self, queries: Rows, skipped: Rows, min_score: float, threads: int | None = None) -> HitLists:
        if self.device == "cuda":
            gpu.log_refusal("a GPU ranks the k best hits, and no k is given")
        if isinstance(self.factors_, Chain) or min_score <= 0 or not self.factors_.bounds_are_safe:
            return super().range_rows(queries, skipped, min_score, threads)
        return range_of_product(self.factors_, self.formula, queries, skipped, min_score, threads)


class _Prepared(NamedTuple):
    """What all searches of a fitted measure for k hits share."""

    hin: HIN
    metapath: MetaPath
    k: int
    queries: Nodes
    skips_query: bool
    search: Search

    @classmethod
    def of(cls, measure: PathMeasure, k: int) -> "_Prepared":
        hin, metapath = measure.hin_, measure.metapath_
        skips_query = metapath.source == metapath.target
        targets = hin.nodes[metapath.target]
        search = Search(
            str(metapath), measure.name, measure.exact, targets, metapath.target, len(targets) - skips_query, k
        )
        return cls(hin, metapath, k, hin.nodes[metapath.source], skips_query, search)
