"""What a worker does of a join: some blocks of queries against every block of targets, merged exactly."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array, vstack

from neupath.cluster.ids import Ids
from neupath.cluster.kept_block import keep_last
from neupath.cluster.room import Room
from neupath.cluster.tiles import Tiles
from neupath.graph import Csr, Floats, freeze
from neupath.halfpath import Factors, mirrored
from neupath.hit_tables import Found, found_of, write_hits
from neupath.nodes import Rows
from neupath.ranking import Ranking, score_product, top_k_of_product
from neupath.thresholds import Reached, reached_of_product, reached_of_scores

QUERIES, LEFT_NORMS, RIGHT_NORMS = "queries.npy", "left-norms.npy", "right-norms.npy"


@dataclass(frozen=True)
class Order:
    """What is to be joined, as a worker needs to know it; arrays are files of the folder `work`."""

    work: Path
    parts: Path
    left: Tiles
    right: Tiles | None
    """Nothing where it is `left` transposed."""
    blocks: tuple[range, ...]
    """The strips of targets that are taken at once."""
    room: Room
    sources: Ids
    targets: Ids
    normalisation: int
    step: int
    limit: int | None
    min_score: float
    leaves_itself_out: bool

    @property
    def fits(self) -> bool:
        """Whether a worker can hold the product as a whole."""
        return self.right is None and len(self.blocks) == 1

    def strips(self) -> tuple[int, ...]:
        """Where the strips of targets begin and end."""
        return self.left.rows if self.right is None else self.right.columns


@dataclass(frozen=True)
class _Block:
    """Some targets, from the row `first` on."""

    first: int
    right: Csr
    norms: Floats


@dataclass(frozen=True)
class _Meeting:
    """Some queries against some targets: rows of a product, the target each leaves out, and the first target's row."""

    factors: Factors
    rows: Rows
    skipped: Rows
    first: int


def rank_parts(order: Order, numbers: tuple[int, ...]) -> None:
    """Write the hits of some blocks of queries."""
    every = np.load(order.work / QUERIES, mmap_mode="r")
    asked = [np.array(every[n * order.step : (n + 1) * order.step]) for n in numbers]
    found = (_reach if order.limit is None else _rank)(order, np.concatenate(asked))
    ends = np.concatenate([[0], np.cumsum(found.sizes)])
    first = 0
    for number, rows in zip(numbers, asked, strict=True):
        last = first + len(rows)
        hits = slice(ends[first], ends[last])
        own = Found(found.sizes[first:last], found.rows[hits], found.scores[hits])
        ids = order.sources.take(rows), order.targets.take(own.rows)
        written = order.work / f"{number:06}.parquet"
        write_hits(written, *ids, own)
        written.replace(order.parts / written.name)  # unless the join is over, and its folder gone
        first = last


def _meetings(order: Order, queries: Rows) -> Iterator[_Meeting]:
    """Yield some queries against each block of targets; a product that fits as a whole is kept with its index."""
    nobody = np.full(len(queries), -1)
    if order.fits:
        factors = keep_last(order.work, lambda: mirrored(order.left.rows_in(order.blocks[0])))
        yield _Meeting(factors, queries, queries if order.leaves_itself_out else nobody, 0)
        return
    left, norms = _left_rows(order, queries), np.load(order.work / LEFT_NORMS, mmap_mode="r")[queries]
    for strips in order.blocks:
        block = keep_last((order.work, strips), lambda strips=strips: _read_block(order, strips))  # type: ignore[misc]
        own = queries - block.first
        inside = (own >= 0) & (own < len(block.norms)) & order.leaves_itself_out
        factors = Factors(left, block.right, norms, block.norms)
        yield _Meeting(factors, factors.every_query, np.where(inside, own, -1), block.first)


def _left_rows(order: Order, queries: Rows) -> Csr:
    """Read the rows of the left factor that some queries have, from the strips they lie in."""
    cut = np.array(order.left.rows)
    strips = np.searchsorted(cut, queries, side="right") - 1
    places = np.argsort(strips, kind="stable")
    needed, starts = np.unique(strips[places], return_index=True)
    taken = [
        order.left.row_strip(int(strip))[queries[own] - cut[strip]]
        for strip, own in zip(needed, np.split(places, starts[1:]), strict=True)
    ]
    rows = csr_array(vstack(taken, format="csr"))
    if np.any(np.diff(places) < 0):
        rows = rows[np.argsort(places)]
    return freeze(rows)


def _rank(order: Order, queries: Rows) -> Found:
    """Keep the best targets of each query, block by block; at equal scores the earlier block's stay in front."""
    width = 0 if order.limit is None else order.limit
    best = Ranking(np.zeros((len(queries), 0), np.int64), np.zeros((len(queries), 0)), np.zeros(len(queries), np.int64))
    for meeting in _meetings(order, queries):
        found = top_k_of_product(meeting.factors, order.normalisation, meeting.rows, meeting.skipped, width, threads=1)
        if len(order.blocks) == 1:
            return found_of(found, order.min_score)
        rows = np.where(found.rows < 0, -1, found.rows + meeting.first)
        best = merge_rankings(best, replace(found, rows=rows), width)
    return found_of(best, order.min_score)


def _reach(order: Order, queries: Rows) -> Found:
    """Find all targets that reach the least score, block by block."""
    places, rows, scores = [], [], []
    for meeting in _meetings(order, queries):
        found = _reached(order, meeting)
        places.append(np.repeat(np.arange(len(queries)), np.diff(found.starts)))
        rows.append(found.rows + meeting.first)
        scores.append(found.scores)
    place, row, score = np.concatenate(places), np.concatenate(rows), np.concatenate(scores)
    ordered = np.lexsort((row, -score, place))
    return Found(np.bincount(place, minlength=len(queries)), row[ordered], score[ordered])


def _reached(order: Order, meeting: _Meeting) -> Reached:
    factors, rows, skipped = meeting.factors, meeting.rows, meeting.skipped
    if factors.is_moderate:
        return reached_of_product(factors, order.normalisation, rows, skipped, order.min_score, 1)
    return reached_of_scores(score_product(factors, order.normalisation, rows), skipped, order.min_score)


def merge_rankings(best: Ranking, other: Ranking, k: int) -> Ranking:
    """Return the k best of two rankings of the same queries, where all rows of the second come after the first's."""
    rows = np.concatenate([best.rows, other.rows], axis=1)
    scores = np.concatenate([best.scores, other.scores], axis=1)
    filled = np.concatenate([np.arange(r.rows.shape[1]) < r.sizes[:, None] for r in (best, other)], axis=1)
    order = np.argsort(np.where(filled, -scores, np.inf), axis=1, kind="stable")[:, :k]
    sizes = np.minimum(best.sizes + other.sizes, k)
    return Ranking(np.take_along_axis(rows, order, axis=1), np.take_along_axis(scores, order, axis=1), sizes)


def _read_block(order: Order, strips: range) -> _Block:
    cut = order.strips()
    if order.right is None:
        right = freeze(csr_array(order.left.rows_in(strips).T.tocsr()))
    else:
        right = order.right.columns_in(strips)
    first, last = cut[strips.start], cut[strips.stop]
    norms = np.array(np.load(order.work / RIGHT_NORMS, mmap_mode="r")[first:last])
    return _Block(first, right, norms)
