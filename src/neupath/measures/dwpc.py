"""DWPC, the degree-weighted path count, over walks or over paths without repeated nodes."""

from collections.abc import Sequence

import numpy as np

from neupath._runtime.progress import check_cancelled
from neupath.engine.cache import cached
from neupath.engine.products import Chain, Halves, Product
from neupath.engine.scorer import Scorer
from neupath.engine.topk import HitLists, Ranking, related
from neupath.errors import QueryError
from neupath.graph.hin import HIN, Csr, Floats
from neupath.graph.metapath import MetaPath
from neupath.graph.nodes import Mask, Rows
from neupath.measures.path_measure import PathMeasure


class DWPC(PathMeasure):
    """Count paths, each worth less the more it runs through hubs; any meta-path.

        s(x, y) = (D1·D2·…·Dn)[x,y],    Di[u,v] = Ai[u,v]·(deg u · deg v)^-damping

    Degrees are those within the relation of the step. Himmelstein, Baranzini, PLOS Computational Biology 2015.

    Every walk along the meta-path counts, even one that visits a node twice. Hetnet tools call that the walk count
    (DWWC), and their DWPC leaves such walks out. With `repeats=False` so does this one: it lists the paths of each
    query, which takes longer where there are many. The two agree where a path is too short to visit a node twice.

    Parameters
    ----------
    metapath
        Any meta-path, as a text or a `MetaPath`.
    damping
        How much hubs are discounted, from 0 (not at all) to 1.
    repeats
        Whether walks that visit a node twice count.
    device
        "cuda" ranks many queries on a GPU, as for every `PathMeasure`.

    >>> from neupath import load
    >>> hin = load("toy")
    >>> round(DWPC("author-paper-venue", damping=0.5).fit(hin).score("Mike", "SIGMOD"), 4)
    0.1543
    >>> walks, paths = DWPC("APAPV", damping=0).fit(hin), DWPC("APAPV", damping=0, repeats=False).fit(hin)
    >>> walks.score("Mike", "SIGMOD"), paths.score("Mike", "SIGMOD")
    (6.0, 0.0)
    """

    name = "dwpc"
    bounded = False
    settings = ("damping", "repeats")

    def __init__(
        self, metapath: str | MetaPath, damping: float = 0.4, repeats: bool = True, *, device: str = "cpu"
    ) -> None:
        super().__init__(metapath, device=device)
        if not 0 <= damping <= 1:
            raise QueryError(f"damping is {damping}; give a number from 0 (hubs count in full) to 1")
        self.damping, self.repeats = float(damping), bool(repeats)
        self.row_power = self.column_power = -self.damping
        self.counts_walks = self.repeats

    # -- Paths without repeated nodes are no product of matrices
    def meets_at_nodes(self, metapath: MetaPath) -> bool:
        return self.repeats and super().meets_at_nodes(metapath)

    def halves(self, hin: HIN, metapath: MetaPath) -> Halves:
        self._require_repeats("multiply matrices")
        return super().halves(hin, metapath)

    def step_matrices(self, hin: HIN, metapath: MetaPath) -> Sequence[Csr]:
        self._require_repeats("be explained")
        return super().step_matrices(hin, metapath)

    def _require_repeats(self, what: str) -> None:
        if not self.repeats:
            raise QueryError(f"dwpc without repeated nodes cannot {what}; use DWPC with repeats=True")

    def _product(self, hin: HIN, metapath: MetaPath) -> Product:
        if self.repeats:
            return super()._product(hin, metapath)
        legs = self.legs(metapath)
        matrices = cached(hin, ("steps", self.name, self.damping, metapath), lambda: [leg.matrix(hin) for leg in legs])
        return Chain(matrices, np.zeros(matrices[0].shape[0]), np.zeros(matrices[-1].shape[1]))

    def score_rows(self, queries: Rows) -> Floats:
        if self.repeats:
            return super().score_rows(queries)
        from neupath.measures.dwpc_kernels import add_paths

        assert isinstance(self.factors_, Chain)
        matrices = self.factors_.matrices
        types = [self.metapath_.schema.node_types.index(node_type) for node_type in self.metapath_.node_types]
        steps = tuple((matrix.indptr, matrix.indices, matrix.data) for matrix in matrices)
        scores = np.zeros((len(queries), matrices[-1].shape[1]))
        for query, row in zip(queries.tolist(), scores, strict=True):
            check_cancelled()
            add_paths(steps, np.array(types), query, row)
        return scores

    def set_scores(self, members: Rows, weights: Floats) -> Floats:
        return super().set_scores(members, weights) if self.repeats else np.asarray(weights @ self.score_rows(members))

    def rank_set(
        self, members: Rows, weights: Floats, left_out: Rows, k: int, candidates: Mask | None
    ) -> tuple[Rows, Floats]:
        if self.repeats:
            return super().rank_set(members, weights, left_out, k, candidates)
        return Scorer.rank_set(self, members, weights, left_out, k, candidates)

    def rank_rows(self, queries: Rows, skipped: Rows, k: int, candidates: Mask | None, threads: int | None) -> Ranking:
        if self.repeats:
            return super().rank_rows(queries, skipped, k, candidates, threads)
        return related(Scorer.rank_rows(self, queries, skipped, k, candidates, threads))

    def rank_row(self, row: int, skipped: int, k: int) -> tuple[list[int], list[float]]:
        return super().rank_row(row, skipped, k) if self.repeats else Scorer.rank_row(self, row, skipped, k)

    def score_targets(self, row: int, targets: Rows) -> Floats:
        return super().score_targets(row, targets) if self.repeats else Scorer.score_targets(self, row, targets)

    def range_rows(self, queries: Rows, skipped: Rows, min_score: float, threads: int | None = None) -> HitLists:
        if self.repeats:
            return super().range_rows(queries, skipped, min_score, threads)
        return Scorer.range_rows(self, queries, skipped, min_score, threads)
