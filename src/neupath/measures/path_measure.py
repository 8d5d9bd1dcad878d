"""PathMeasure: an exact scorer that is a normalised product of sparse matrices along one meta-path."""

import json
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Self

from scipy.sparse import csr_array, diags_array

from neupath.engine.cache import cached
from neupath.engine.products import Chain, Halves, Normalisation, Product, adjacency, identity
from neupath.engine.scorer import Scorer
from neupath.engine.topk import RangeHits, Ranking, range_of_product, score_product, top_k_of_product
from neupath.graph.hin import HIN, Csr, Floats, freeze
from neupath.graph.metapath import MetaPath, Step
from neupath.graph.nodes import Mask, Rows


@dataclass(frozen=True)
class Leg:
    """One factor of a product along a path: the weights of a step, rows and columns times their sums to a power."""

    step: Step
    row_power: float = 0.0
    column_power: float = 0.0

    def matrix(self, hin: HIN) -> Csr:
        weights = adjacency(hin, self.step)
        rows, columns = (partial(weights.sum, axis=axis) for axis in (1, 0))
        return scale(weights, self.row_power, self.column_power, rows, columns)


class PathMeasure(Scorer):
    """A measure over the instances of one meta-path.

    The score of x and y is the product of the `step_matrices` along the path, read at [x,y] and normalised: so every
    path instance has its own share of it, the product of the entries it walks over.
    """

    exact = True
    normalisation: ClassVar[Normalisation]
    mirrors: ClassVar[bool] = True
    """Whether the way back along a path walked out and back is the way out, transposed."""
    metapath_: MetaPath
    factors_: Product

    def __init__(self, metapath: str | MetaPath) -> None:
        self.metapath = metapath

    def fit(self, hin: HIN) -> Self:
        path = self.bind(hin).metapath_
        key = (self.name, json.dumps(self.params()), path)
        self.factors_ = cached(hin, key, lambda: self.factors(hin, path))
        return self

    def bind(self, hin: HIN) -> Self:
        """Take a graph without the product along the meta-path, for an engine that makes it elsewhere."""
        given = self.metapath
        path = given if isinstance(given, MetaPath) and given.schema == hin.schema else hin.metapath(str(given))
        self.check(path)
        self.hin_, self.metapath_ = hin, path
        return self

    def check(self, metapath: MetaPath) -> None:
        """Refuse a meta-path the measure is not defined on."""

    @abstractmethod
    def legs(self, metapath: MetaPath) -> list[Leg]:
        """Return one leg a step; the product of their matrices is the numerator of the score."""

    def step_matrices(self, hin: HIN, metapath: MetaPath) -> Sequence[Csr]:
        """Return the matrix of each leg."""
        return [leg.matrix(hin) for leg in self.legs(metapath)]

    def half_legs(self, metapath: MetaPath) -> tuple[list[Leg], list[Leg] | None]:
        """Cut the legs in the middle of the path; without the second half, it is the first one transposed."""
        legs = self.legs(metapath)
        middle = max(1, len(legs) // 2)
        return legs[:middle], None if self.mirrors and metapath.is_round_trip else legs[middle:]

    def meets_at_nodes(self, metapath: MetaPath) -> bool:
        """Whether both halves are products of legs, and of nothing else."""
        return len(metapath) > 1

    def halves(self, hin: HIN, metapath: MetaPath) -> Halves:
        """Return the same product as the two factors that are searched, each yet to be multiplied."""
        lefts, rights = self.half_legs(metapath)
        left = [leg.matrix(hin) for leg in lefts]
        if rights is None:
            return Halves(left)
        return Halves(left, [leg.matrix(hin) for leg in rights] or [identity(left[-1].shape[1])])

    def factors(self, hin: HIN, metapath: MetaPath) -> Product:
        """Return the product as it is searched, with the norms that normalise it."""
        return self.halves(hin, metapath).product()

    @property
    def source_type(self) -> str:
        return self._path().source

    @property
    def target_type(self) -> str:
        return self._path().target

    @property
    def metapath_text(self) -> str:
        return str(self._path())

    def _path(self) -> MetaPath:
        self._fitted()
        return self.metapath_

    def params(self) -> dict[str, object]:
        return {"metapath": str(getattr(self, "metapath_", self.metapath))}

    def fingerprint(self) -> str:
        """Tell scores of rows that were propagated, whose last digits may differ from those of factors."""
        product = getattr(self, "factors_", None)
        return "propagated" if isinstance(product, Chain) and not product.is_exact else ""

    def score_rows(self, queries: Rows) -> Floats:
        return score_product(self.factors_, self.normalisation, queries)

    def rank_rows(self, queries: Rows, skipped: Rows, k: int, candidates: Mask | None, threads: int | None) -> Ranking:
        return top_k_of_product(self.factors_, self.normalisation, queries, skipped, k, candidates, threads)

    def reach_rows(self, queries: Rows, skipped: Rows, least: float, threads: int | None = None) -> RangeHits:
        if isinstance(self.factors_, Chain) or least <= 0 or not self.factors_.is_moderate:
            return super().reach_rows(queries, skipped, least, threads)
        return range_of_product(self.factors_, self.normalisation, queries, skipped, least, threads)


def scale(
    matrix: Csr,
    row_power: float,
    column_power: float,
    row_sums: Callable[[], Floats],
    column_sums: Callable[[], Floats],
) -> Csr:
    """Multiply each row and each column by its sum to a power; a sum of 0 stays 0. Rows stay sorted.

    Sums are asked for where they are needed, and need not be those of the matrix: some rows of one do not know them.
    """
    result = matrix
    if row_power:
        result = csr_array(diags_array(_power(row_sums(), row_power)) @ result)
    if column_power:
        result = csr_array(result @ diags_array(_power(column_sums(), column_power)))
    return freeze(result) if row_power or column_power else result


def _power(sums: Floats, power: float) -> Floats:
    result = sums.copy()
    positive = sums > 0
    result[positive] = sums[positive] ** power
    return result
