"""Plans: which half-path matrices a measure multiplies, so that they can follow the edges."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from neupath.engine.products import Chain
from neupath.graph.hin import Csr, Floats, freeze
from neupath.graph.metapath import MetaPath, Step
from neupath.graph.nodes import Rows
from neupath.live import version_kernels as kernels
from neupath.live.append_arrays import ENTRY, NEVER, NORM, VERSION, HalfArrays, LineArrays, NormArrays, grown
from neupath.live.propagation import Adjacency, LiveStep, Pair, StepScaling, reach_of
from neupath.measures import DWPC, PCRW, HeteSim, JoinSim, PathCount, PathSim
from neupath.measures.path_measure import PathMeasure

# ---- LiveLines -----------------------------------------------------------------------------------
_FIRST = 64
"""Entries that there is room for at first."""
_EMPTY = np.array((0, 0.0, NEVER, NEVER), dtype=ENTRY)


class LiveLines:
    """Lines that one writer changes while any number of readers read `arrays`, each as of its own version."""

    def __init__(self, base: Csr) -> None:
        frozen = freeze(base)
        spans = np.full(base.shape[0], -1, dtype=np.int64)
        matrix = frozen.indptr, frozen.indices, frozen.data, np.full(base.nnz, NEVER, dtype=VERSION)
        self._used = 0
        self._take(LineArrays(*matrix, spans, np.full(_FIRST, _EMPTY)), spans.copy())

    def _take(self, written: LineArrays, spans: Rows) -> None:
        """Go on with some arrays; `spans` are those that readers see, who are not disturbed by what is written."""
        self._written, self.fields = written, tuple(written)
        self.arrays = written._replace(spans=spans)

    def grow(self, count: int) -> None:
        """Make room for new lines, which are empty yet."""
        written = self._written._replace(spans=grown(self._written.spans, count, -1))
        self._take(written, grown(self.arrays.spans, count, -1))

    def put(self, lines: Rows, places: Rows, values: Floats, version: int) -> tuple[Floats, int]:
        """Set entries by line and place, both ascending, from a version on; 0 takes one away.

        Returns what they were, and how many were others.
        """
        old = np.empty(len(lines))
        done, changed = 0, 0
        while done < len(lines):
            done, self._used, more = kernels.write(self.fields, self._used, lines, places, values, old, version, done)
            changed += more
            if done < len(lines):
                self._lengthen()
        self.arrays.spans[lines] = self._written.spans[lines]
        return old, changed

    def differences(self, line: int, places: Rows, values: Floats) -> tuple[Rows, Floats]:
        """Return where a line is to be another than it is, with the new values."""
        changed, wanted = kernels.differences(self._written, line, places, values)
        return changed, wanted

    def _lengthen(self) -> None:
        """Go on in longer arrays, and in a copy of the spans: the old must not lead readers past their arrays' end."""
        longer = grown(self._written.entries, 2 * len(self._written.entries), _EMPTY)
        self._take(self._written._replace(entries=longer), self.arrays.spans.copy())


# ---- LiveNorms -----------------------------------------------------------------------------------
_MOST = 1024
"""Norms beside the base; more would be far apart in memory, and a new base costs little for each of so many."""


class LiveNorms:
    """Norms that one writer changes with the entries of their rows, while any number of readers read `arrays`."""

    def __init__(self, base: Floats, rows: LineArrays) -> None:
        self._take(_without_changes(base.copy(), _MOST))
        self._used = 0
        self.are_held = True
        """Whether floats have held all norms so far; where they have not, a measure refuses to be fitted."""
        self._whole = kernels.find_whole(rows.indptr, rows.data, base)

    def _take(self, arrays: NormArrays) -> None:
        """Go on with some arrays, of which readers are not disturbed by what is written."""
        self.arrays, self._fields = arrays, tuple(arrays)

    def grow(self, count: int) -> None:
        """Make room for new rows, which are empty yet."""
        base, heads = grown(self.arrays.base, count, 0), grown(self.arrays.heads, count, -1)
        self._take(self.arrays._replace(base=base, heads=heads))
        self._whole = grown(self._whole, count, 1)

    def put(self, fields: tuple[object, ...], rows: Rows, old: Floats, new: Floats, version: int) -> None:
        """Follow entries that changed, by row, from a version on; `fields` are those of the rows as they are now."""
        if self._used + len(rows) > len(self.arrays.since):
            self._fold(len(rows))
        written, held = kernels.renew(self._fields, self._whole, fields, rows, old, new, self._used, version)
        self.are_held &= held
        self.arrays.heads[written] = np.arange(self._used, self._used + len(written))
        self._used += len(written)

    def _fold(self, wanted: int) -> None:
        """Take all norms as they are for a new base; readers of older versions keep theirs."""
        self._take(_without_changes(kernels.newest(self.arrays), max(_MOST, wanted)))
        self._used = 0


def _without_changes(base: Floats, room: int) -> NormArrays:
    return NormArrays(base, np.full(len(base), -1, dtype=np.int32), np.zeros(room, dtype=NORM))


# ---- LiveHalf ------------------------------------------------------------------------------------
class LiveHalf:
    """W = S1·S2·…·Sl over live steps: what an edge reaches is computed anew, and what differs is kept as entries.

    Nothing is ever computed from an older value where that could round, so that no rounding adds up.
    """

    def __init__(self, steps: Sequence[LiveStep], base: Csr, transposed: Csr, norms: Floats, version: int) -> None:
        self.steps, self._version = steps, version
        self._size, self._written = max(1, base.nnz), 0
        self._rows, self._columns = LiveLines(base), LiveLines(transposed)
        self._norms = LiveNorms(norms, self._rows.arrays)
        self._reach = reach_of(steps)

    @property
    def arrays(self) -> HalfArrays:
        """What readers need, as it is now; what is written later does not disturb them."""
        return HalfArrays(self._rows.arrays, self._columns.arrays, self._norms.arrays, self._version)

    @property
    def share(self) -> float:
        """How many entries were written for each entry of the base."""
        return self._written / self._size

    @property
    def is_held(self) -> bool:
        """Whether floats have held all that was written so far."""
        return self._norms.are_held

    def grow(self, num_rows: int, num_columns: int) -> None:
        """Make room for new nodes at either end."""
        self._rows.grow(num_rows)
        self._columns.grow(num_columns)
        self._norms.grow(num_rows)

    def follow(self, pairs: Sequence[Pair], version: int) -> None:
        """Bring up to date what some edges reach: entries where these can be computed alone, and else rows."""
        if self._reach is not None:
            entries = self._reach.entries(pairs)
            if entries is not None:
                self.write(*entries, version)
            return
        for row in self._affected(pairs).tolist():
            columns, values = self.steps[0].row(row)
            for step in self.steps[1:]:
                columns, values = step.multiply(columns, values)
            changed, wanted = self._rows.differences(row, columns, values)
            self.write(np.full(len(changed), row), changed, wanted, version)

    def write(self, rows: Rows, columns: Rows, values: Floats, version: int) -> None:
        """Set entries, ascending, from a version on; those that are so already are left alone."""
        since = version - self._version
        if since >= NEVER:
            raise OverflowError(f"{since:,} versions since the base was made; compact the live graph before it goes on")
        old, number = self._rows.put(rows, columns, values, since)
        if not number:
            return
        if number < len(rows):
            changed = np.flatnonzero(old != values)
            rows, columns, values, old = rows[changed], columns[changed], values[changed], old[changed]
        order = np.lexsort((rows, columns)) if number > 1 else slice(None)
        self._columns.put(columns[order], rows[order], values[order], since)
        self._norms.put(self._rows.fields, rows, old, values, since)
        self._written += number

    def _affected(self, pairs: Sequence[Pair]) -> Rows:
        """Return the rows that may change with some edges: those from which a path leads over one of them."""
        rows = np.empty(0, dtype=np.int64)
        for step in reversed(self.steps):
            through = step.reaching(rows) if len(rows) else rows
            rows = np.union1d(through, step.changed_rows(pairs))
        return rows


# ---- Plans ---------------------------------------------------------------------------------------
Planned = tuple[tuple[Step, StepScaling], ...]


@dataclass(frozen=True)
class LiveFactors:
    """The steps from the queries to the middle, and from the targets to it; none where both are the same."""

    left: Planned
    right: Planned | None

    def build(self, measure: PathMeasure, adjacency: Adjacency) -> tuple[LiveHalf, LiveHalf] | None:
        """Return both halves over the factors of a fitted measure; nothing where these don't fit into memory."""
        factors = measure.factors_
        if isinstance(factors, Chain):
            return None
        steps = [LiveStep(adjacency, step, scaling) for step, scaling in self.left]
        if self.right is None:
            half = LiveHalf(steps, factors.left, factors.right, factors.left_norms, adjacency.version)
            return half, half
        others = [LiveStep(adjacency, step, scaling) for step, scaling in self.right]
        left = LiveHalf(steps, factors.left, factors.left.T.tocsr(), factors.left_norms, adjacency.version)
        return left, LiveHalf(others, factors.right.T.tocsr(), factors.right, factors.right_norms, adjacency.version)


def plan_of(measure: PathMeasure, metapath: MetaPath) -> LiveFactors | None:
    """Return the plan of a measure, or nothing for one that has to be fitted anew when the graph changes."""
    steps = metapath.steps
    middle = len(steps) // 2
    if isinstance(measure, PathSim | JoinSim) or (isinstance(measure, PathCount | DWPC) and metapath.is_round_trip):
        return LiveFactors(_planned(steps[:middle], _scaling(measure)), None)
    if isinstance(measure, HeteSim) and len(steps) % 2 == 0:
        left = _planned(steps[:middle], StepScaling(rows=-1.0))
        return LiveFactors(
            left, None if metapath.is_round_trip else _mirrored(steps[middle:], StepScaling(columns=-1.0))
        )
    if isinstance(measure, PathCount | PCRW | DWPC) and middle:
        return LiveFactors(_planned(steps[:middle], _scaling(measure)), _mirrored(steps[middle:], _scaling(measure)))
    return None


def _scaling(measure: PathMeasure) -> StepScaling:
    if isinstance(measure, DWPC):
        return StepScaling(-measure.damping, -measure.damping)
    return StepScaling(rows=-1.0) if isinstance(measure, PCRW) else StepScaling()


def _planned(steps: tuple[Step, ...], scaling: StepScaling) -> Planned:
    return tuple((step, scaling) for step in steps)


def _mirrored(steps: tuple[Step, ...], scaling: StepScaling) -> Planned:
    """Return steps as they are walked from the targets."""
    return tuple((step.reversed(), scaling.reversed()) for step in reversed(steps))
