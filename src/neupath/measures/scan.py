"""The structural similarity of SCAN (Xu, Yuruk, Feng, Schweiger, KDD 2007), over the whole graph."""

from scipy.sparse import csr_array, eye_array

from neupath.engine.products import Normalisation, mirrored
from neupath.engine.topk import Ranking, score_product, top_k_of_product
from neupath.graph.hin import Csr, Floats, freeze
from neupath.graph.nodes import Mask, Rows
from neupath.measures.graph_measure import GraphMeasure


class SCAN(GraphMeasure):
    """Count shared neighbours, relative to how many both have.

    σ(x, y) = |Γ(x) ∩ Γ(y)| / √(|Γ(x)|·|Γ(y)|),  Γ(v) the neighbours of v, whatever their types, and v itself.

    It is the cosine of two rows of A + I with all weights 1, and so ranked as fast as any path.

    >>> from neupath import load
    >>> round(SCAN("paper").fit(load("toy")).score("Mike-SIGMOD-1", "Mike-SIGMOD-2"), 4)
    0.6667
    """

    name = "scan"

    def _prepare(self, adjacency: Csr) -> None:
        joined = csr_array(adjacency + eye_array(adjacency.shape[0], format="csr"))[self.rows_]
        joined.data[:] = 1.0
        self.factors_ = mirrored(freeze(csr_array(joined)))

    def _score_nodes(self, nodes: Rows) -> Floats:
        return score_product(self.factors_, Normalisation.COSINE, nodes - self.rows_.start)

    def rank_rows(self, queries: Rows, skipped: Rows, k: int, candidates: Mask | None, threads: int | None) -> Ranking:
        """Return the k best related targets of each query, through the exact engine."""
        return top_k_of_product(self.factors_, Normalisation.COSINE, queries, skipped, k, candidates, threads)
