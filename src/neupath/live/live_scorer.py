"""LiveScorer: a measure at one version of a live graph, over the base and the records beside it."""

from typing import Self

import numpy as np

from neupath.engine.scorer import Scorer
from neupath.engine.topk import Ranking, borrow_scratch, in_blocks, return_scratch
from neupath.errors import QueryError
from neupath.graph.hin import HIN, Floats
from neupath.graph.nodes import Mask, Rows
from neupath.live.append_arrays import HalfArrays
from neupath.measures.path_measure import PathMeasure

_WORK = 500.0
"""Additions that a mean query is taken to need; counting them would cost more than a guess does."""
_ALL = np.zeros(0, dtype=np.bool_)


class LiveScorer(Scorer):
    """Scores as the measure it follows, fitted to this version from scratch, would."""

    exact = True

    def __init__(
        self, measure: PathMeasure, hin: HIN, halves: tuple[HalfArrays, HalfArrays], version: int, key: tuple[str, str]
    ) -> None:
        self.name = measure.name  # type: ignore[misc]
        self.hin_, self.version, self.key = hin, version, key
        self._measure = measure
        left, right = halves
        self._rows, self._columns = left.rows, right.columns
        self._fields = tuple(tuple(part) for part in (left.rows, right.columns, left.norms, right.norms))
        self._since_base = version - left.version

    def fit(self, hin: HIN) -> Self:
        if hin is not self.hin_:
            raise QueryError(f"this {self.name} belongs to version {self.version} of a live graph; fit a new one")
        return self

    @property
    def measure(self) -> PathMeasure:
        """The measure it follows, with its meta-path but without the product along it."""
        return self._measure

    def additions(self, row: int) -> float | None:
        """Return about how many additions a query takes, or nothing for one whose row has changed since the base."""
        rows, columns = self._rows, self._columns
        if row + 1 >= len(rows.indptr) or rows.spans[row] >= 0:
            return None
        met = rows.indices[rows.indptr[row] : rows.indptr[row + 1]]
        return float((columns.indptr[met + 1] - columns.indptr[met]).sum())

    @property
    def source_type(self) -> str:
        return self._measure.source_type

    @property
    def target_type(self) -> str:
        return self._measure.target_type

    @property
    def metapath_text(self) -> str:
        return self._measure.metapath_text

    def params(self) -> dict[str, object]:
        return self._measure.params()

    def score_rows(self, queries: Rows) -> Floats:
        from neupath.live import query_kernels as kernels

        scores = np.zeros((len(queries), len(self._targets)))
        normalisation = int(self._measure.normalisation)
        kernels.score_rows(self._fields, normalisation, self._since_base, queries, scores)
        return scores

    def rank_rows(self, queries: Rows, skipped: Rows, k: int, candidates: Mask | None, threads: int | None) -> Ranking:
        from neupath.live import query_kernels as kernels

        count = len(self._targets)
        shape = len(queries), min(k, count)
        best = Ranking(np.empty(shape, dtype=np.int64), np.empty(shape), np.empty(len(queries), dtype=np.int64))
        mask = _ALL if candidates is None else np.array(candidates)
        normalisation = int(self._measure.normalisation)

        def search(block: slice) -> None:
            scratch = borrow_scratch(count)
            best.sizes[block] = kernels.top_k(
                self._fields, normalisation, self._since_base, queries[block], skipped[block], mask, scratch,
                best.rows[block], best.scores[block],
            )  # fmt: skip
            return_scratch(scratch)

        in_blocks(search, len(queries), threads, _WORK)
        return best
