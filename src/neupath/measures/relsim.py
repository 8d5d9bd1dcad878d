"""RelSim: one weighted Dice coefficient over several meta-paths."""

from collections.abc import Sequence
from typing import Self

import numpy as np
from scipy.sparse import csr_array, hstack

from neupath.engine.cache import cached
from neupath.engine.formula import Normalisation
from neupath.engine.products import Factors, Product, symmetric_factors
from neupath.engine.topk import Ranking, score_product, score_set, top_k_of_product, top_k_of_set
from neupath.errors import QueryError
from neupath.graph.hin import HIN, Floats, freeze
from neupath.graph.metapath import MetaPath
from neupath.graph.nodes import Mask, Rows
from neupath.measures.combination import Combination, equal_parts


class RelSim(Combination):
    """Count the paths between two nodes along several meta-paths, relative to how connected each is to itself.

        s(x, y) = 2·Σ w_p·M_p[x,y] / Σ w_p·(M_p[x,x] + M_p[y,y]),    M_p = W_p·W_pᵀ along each meta-path p

    It is RelSim's weighted Dice coefficient with path counts, and PathSim over the half-path rows √w_p·W_p set side by
    side. A `Combination` of PathSims lets every meta-path count by its weight, however few paths it has; here one with
    many paths counts for more. Wang, Sun, Song, Han, Song, Wang, Zhang, SDM 2016.

    Parameters
    ----------
    metapaths
        Symmetric meta-paths of even length from one node type, as texts or `MetaPath`.
    weights
        One for each, 0 or more; all equal by default.

    >>> from neupath import load
    >>> round(RelSim(["APVPA", "APA"], [2, 1]).fit(load("toy")).score("Mike", "Mary"), 4)
    0.6154
    """

    name = "relsim"
    factors_: Factors

    def __init__(self, metapaths: Sequence[str | MetaPath], weights: Sequence[float] | None = None) -> None:
        super().__init__(
            equal_parts([metapaths] if isinstance(metapaths, str | MetaPath) else list(metapaths), weights)
        )
        for part in self.parts:
            if part.weight < 0:
                raise QueryError(
                    f"the weight of {part.metapath} is {part.weight:g}; relsim takes weights of 0 and more: use "
                    f"pathsim, whose weighted sum takes others",
                    parameter="weights",
                )

    def params(self) -> dict[str, object]:
        return {
            "metapaths": [str(part.metapath) for part in self.parts], "weights": [part.weight for part in self.parts]
        }  # fmt: skip

    def fit(self, hin: HIN) -> Self:
        super().fit(hin)
        weights = [part.weight for part in self.parts]
        key = (self.name, *zip([measure.metapath_ for measure in self.measures_], weights, strict=True))
        self.factors_ = cached(hin, key, self._side_by_side)
        return self

    def _side_by_side(self) -> Factors:
        rows = [
            np.sqrt(part.weight) * _left_of(measure.factors_, str(part.metapath))
            for part, measure in zip(self.parts, self.measures_, strict=True)
        ]
        left = csr_array(hstack(rows, format="csr"))
        left.eliminate_zeros()  # of parts with a weight of 0
        return symmetric_factors(freeze(left))

    def pair_weights(self, x: int, y: int) -> list[float]:
        norms = [
            part.weight * float(measure.factors_.left_norms[x] + measure.factors_.left_norms[y])
            for part, measure in zip(self.parts, self.measures_, strict=True)
        ]
        total = sum(norms)
        return [norm / total if total else 0.0 for norm in norms]

    def score_rows(self, queries: Rows) -> Floats:
        self._fitted()
        return score_product(self.factors_, Normalisation.DICE, queries)

    def rank_rows(self, queries: Rows, skipped: Rows, k: int, candidates: Mask | None, threads: int | None) -> Ranking:
        return top_k_of_product(self.factors_, Normalisation.DICE, queries, skipped, k, candidates, threads)

    def set_scores(self, members: Rows, weights: Floats) -> Floats:
        return score_set(self.factors_, Normalisation.DICE, members, weights)

    def rank_set(
        self, members: Rows, weights: Floats, left_out: Rows, k: int, candidates: Mask | None
    ) -> tuple[Rows, Floats]:
        return top_k_of_set(self.factors_, Normalisation.DICE, members, weights, left_out, k, candidates)


def _left_of(product: Product, metapath: str) -> csr_array:
    if isinstance(product, Factors):
        return product.left
    raise QueryError(
        f"the half-paths of {metapath} do not fit into memory; leave it out, or combine by another measure"
    )
