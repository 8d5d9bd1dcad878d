"""PathMeasure: an exact scorer that is a normalised product of sparse matrices along one meta-path."""

import json
from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Self

from scipy.sparse import csr_array, diags_array

from neupath.graph import HIN, Csr, Floats, freeze
from neupath.halfpath import Chain, Halves, Product
from neupath.kept import cached
from neupath.metapath import MetaPath
from neupath.nodes import Mask, Rows
from neupath.normalisation import Normalisation
from neupath.ranking import Ranking, score_product, top_k_of_product
from neupath.scorer import Scorer
from neupath.thresholds import Reached, reached_of_product


class PathMeasure(Scorer):
    """A measure over the instances of one meta-path.

    The score of x and y is the product of the `step_matrices` along the path, read at [x,y] and normalised: so every
    path instance has its own share of it, the product of the entries it walks over.
    """

    exact = True
    normalisation: ClassVar[Normalisation]
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
    def step_matrices(self, hin: HIN, metapath: MetaPath) -> Sequence[Csr]:
        """Return one matrix a step, whose product is the numerator of the score."""

    @abstractmethod
    def halves(self, hin: HIN, metapath: MetaPath) -> Halves:
        """Return the same product as the two factors that are searched, each yet to be multiplied."""

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

    def score_rows(self, queries: Rows) -> Floats:
        return score_product(self.factors_, self.normalisation, queries)

    def rank_rows(self, queries: Rows, skipped: Rows, k: int, candidates: Mask | None, threads: int | None) -> Ranking:
        return top_k_of_product(self.factors_, self.normalisation, queries, skipped, k, candidates, threads)

    def reach_rows(self, queries: Rows, skipped: Rows, least: float, threads: int | None = None) -> Reached:
        if isinstance(self.factors_, Chain) or least <= 0 or not self.factors_.is_moderate:
            return super().reach_rows(queries, skipped, least, threads)
        return reached_of_product(self.factors_, self.normalisation, queries, skipped, least, threads)


def scaled(matrix: Csr, power: float, *, rows: bool = False, columns: bool = False) -> Csr:
    """Multiply each row, each column, or both by its sum to a power; a sum of 0 stays 0. Rows stay sorted."""
    result = matrix
    if rows:
        result = csr_array(diags_array(_power(matrix.sum(axis=1), power)) @ result)
    if columns:
        result = csr_array(result @ diags_array(_power(matrix.sum(axis=0), power)))
    return freeze(result) if rows or columns else result


def _power(sums: Floats, power: float) -> Floats:
    result = sums.copy()
    positive = sums > 0
    result[positive] = sums[positive] ** power
    return result
