"""DWPC, the degree-weighted path count, over walks or over paths without repeated nodes."""

from typing import ClassVar

import numpy as np

from neupath._runtime.progress import check_cancelled
from neupath.engine import gpu
from neupath.engine.cache import cached
from neupath.engine.products import Chain, Halves, Product
from neupath.engine.scorer import Scorer
from neupath.engine.topk import Ranking, without_zeros
from neupath.errors import QueryError
from neupath.graph.hin import HIN, Floats
from neupath.graph.metapath import MetaPath
from neupath.graph.nodes import Mask, Rows
from neupath.measures.dwpc_kernels import add_paths, count_walks, steps_and_types
from neupath.measures.path_measure import PathMeasure

_MOST_WALKS = 1_000_000_000  # some ten seconds


class DWPC(PathMeasure):
    """Count paths, each worth less the more it runs through hubs; any meta-path.

        s(x, y) = (D1·D2·…·Dn)[x,y],    Di[u,v] = Ai[u,v]·(deg u · deg v)^-damping

    Degrees are those within the relation of the step. Himmelstein, Baranzini, PLOS Computational Biology 2015.

    Every walk along the meta-path counts, even one that visits a node twice. Hetnet tools call that the walk count
    (DWWC), and their DWPC is `DWPCNoRepeats`. The two agree where a path is too short to visit a node twice.

    Parameters
    ----------
    metapath
        Any meta-path, as a text or a `MetaPath`.
    damping
        How much hubs are discounted, from 0 (not at all) to 1.
    device
        "cuda" ranks many queries on a GPU, as for every `PathMeasure`.

    >>> from neupath import load
    >>> round(DWPC("author-paper-venue", damping=0.5).fit(load("toy")).score("Mike", "SIGMOD"), 4)
    0.1543
    """

    name = "dwpc"
    bounded = False
    settings = ("damping",)

    def __init__(self, metapath: str | MetaPath, damping: float = 0.4, *, device: str = "cpu") -> None:
        super().__init__(metapath, device=device)
        if isinstance(damping, bool) or not isinstance(damping, int | float | np.number) or not 0 <= damping <= 1:
            raise QueryError(
                f"damping is {damping!r}; give a number from 0 (hubs count in full) to 1", parameter="damping"
            )
        self.damping = float(damping)
        self.row_power = self.column_power = -self.damping


class DWPCNoRepeats(DWPC):
    """Count paths that visit no node twice, each worth less the more it runs through hubs; any meta-path.

        s(x, y) = Σ over paths x = v0, v1, …, vn = y without repeated nodes of Π Di[v(i-1),vi],    Di as in `DWPC`

    This is DWPC as its authors define it. Such paths are no product of matrices: the paths of each query are listed,
    which takes long where there are many. So it needs the graph in memory, and neither a cluster nor a GPU helps.

    Parameters
    ----------
    metapath
        Any meta-path, as a text or a `MetaPath`.
    damping
        How much hubs are discounted, from 0 (not at all) to 1.
    device
        It ranks on the CPU, whatever is given.

    >>> from neupath import load
    >>> hin = load("toy")
    >>> walks, paths = (measure("APAPV", damping=0).fit(hin) for measure in (DWPC, DWPCNoRepeats))
    >>> walks.score("Mike", "SIGMOD"), paths.score("Mike", "SIGMOD")
    (6.0, 0.0)
    """

    name = "dwpc-no-repeats"
    counts_walks: ClassVar[bool] = False

    def meets_at_nodes(self, metapath: MetaPath) -> bool:  # noqa: ARG002
        return False

    def halves(self, hin: HIN, metapath: MetaPath) -> Halves:  # noqa: ARG002
        raise QueryError(f"{self.name} lists paths instead of multiplying matrices, which this needs; use dwpc")

    def _product(self, hin: HIN, metapath: MetaPath) -> Product:
        key = ("steps", self.name, self.damping, metapath)
        matrices = cached(hin, key, lambda: self.step_matrices(hin, metapath))
        return Chain(list(matrices), np.zeros(matrices[0].shape[0]), np.zeros(matrices[-1].shape[1]))

    def score_rows(self, queries: Rows) -> Floats:
        assert isinstance(self.factors_, Chain)
        matrices = self.factors_.matrices
        self._check_walks(queries)
        key = ("steps put together", self.name, self.damping, self.metapath_)
        steps, types = cached(self.hin_, key, lambda: steps_and_types(matrices, self.metapath_.node_types))
        walks = self._count_walks()
        scores = np.zeros((len(queries), matrices[-1].shape[1]))
        for query, row in zip(queries.tolist(), scores, strict=True):
            check_cancelled()
            add_paths.run(3 * len(matrices) * walks[query], steps, types, query, len(matrices), row)
        return scores

    def set_scores(self, members: Rows, weights: Floats) -> Floats:
        return np.asarray(weights @ self.score_rows(members))

    def _count_walks(self) -> Floats:
        key = ("walk counts", self.metapath_)
        return cached(self.hin_, key, lambda: count_walks(self.step_matrices(self.hin_, self.metapath_)))

    def _check_walks(self, queries: Rows) -> None:
        """Raise if a query has more walks than can be followed one by one; those with repeated nodes are a part."""
        counts = self._count_walks()
        most = int(queries[np.argmax(counts[queries])]) if len(queries) else 0
        if len(queries) and counts[most] > _MOST_WALKS:
            raise QueryError(
                f"{self._queries.id(most)!r} has {counts[most]:,.0f} walks along {self.metapath_}, and {self.name} "
                f"follows them one by one, at most {_MOST_WALKS:,} of a query; use dwpc, or a shorter meta-path"
            )

    def rank_rows(self, queries: Rows, skipped: Rows, k: int, candidates: Mask | None, threads: int | None) -> Ranking:
        if self.device == "cuda":
            gpu.log_refusal(f"{self.name} lists paths, which a GPU does not")
        return without_zeros(Scorer.rank_rows(self, queries, skipped, k, candidates, threads))

    # Paths that are listed make no product, which the base class ranks by.
    rank_row, rank_set = Scorer.rank_row, Scorer.rank_set
    score_targets, range_rows = Scorer.score_targets, Scorer.range_rows
