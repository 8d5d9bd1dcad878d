"""SCAN's structural similarity."""

from scipy.sparse import csr_array, eye_array

from neupath._runtime.progress import Progress
from neupath.engine.formula import Normalisation
from neupath.engine.products import symmetric_factors
from neupath.engine.topk import Ranking, score_product, top_k_of_product
from neupath.graph.hin import Floats, freeze
from neupath.graph.nodes import Mask, Rows
from neupath.measures.graph_measure import GraphMeasure


class SCAN(GraphMeasure):
    """Count shared neighbours, relative to how many both have.

        σ(x, y) = |Γ(x) ∩ Γ(y)| / √(|Γ(x)|·|Γ(y)|),    Γ(v) the neighbours of v of any type, and v itself

    It is the cosine of two rows of A + I with all weights 1, so the engine ranks it as fast as a path.
    Xu, Yuruk, Feng, Schweiger, KDD 2007.

    >>> from neupath import load
    >>> round(SCAN("paper").fit(load("toy")).score("Mike-SIGMOD-1", "Mike-SIGMOD-2"), 4)
    0.6667
    """

    name = "scan"

    def _prepare(self, progress: Progress) -> float:  # noqa: ARG002
        adjacency = self._adjacency()
        neighbours = csr_array(adjacency + eye_array(adjacency.shape[0], format="csr"))[self.rows_]
        neighbours.data[:] = 1.0
        self.factors_ = symmetric_factors(freeze(csr_array(neighbours)))
        return 0.0

    def _score_nodes(self, nodes: Rows) -> Floats:
        return score_product(self.factors_, Normalisation.COSINE, nodes - self.rows_.start)

    def rank_rows(self, queries: Rows, skipped: Rows, k: int, candidates: Mask | None, threads: int | None) -> Ranking:
        return top_k_of_product(self.factors_, Normalisation.COSINE, queries, skipped, k, candidates, threads)
