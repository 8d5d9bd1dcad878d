"""Room: how much of a join a task may hold at once, by the memory of its worker."""

from dataclasses import dataclass

from neupath.blocks import Job
from neupath.errors import QueryError

_BASE = 320 << 20
"""Bytes of a worker before it has any work: Python, the kernels, and what they compile."""
_AN_ENTRY = 96
"""Bytes that a task takes at its peak for each entry of a strip: its copies by row, by column and in the index."""
_A_HIT = 128
"""Bytes that a task takes at its peak for each hit: in two rankings that are merged, with its ids, and as written."""
_FEWEST = 1 << 18
_MOST_HITS = 1 << 22


@dataclass(frozen=True)
class Room:
    """What a task may hold at once: entries of a factor, and hits."""

    entries: int
    hits: int


def room_in(memory: int, job: Job | None = None) -> Room:
    """Return what a task may hold in the memory of a worker, which must have room for the hits of a block."""
    free = memory - _BASE
    a_block = job.most_hits if job is not None else 0
    asked = a_block * job.count if job is not None else 0
    hits = max(a_block, min(asked, _MOST_HITS, free // 4 // _A_HIT))
    entries = (free - hits * _A_HIT) // _AN_ENTRY
    if entries >= _FEWEST:
        return Room(entries, hits)
    least = (_BASE + _FEWEST * _AN_ENTRY + a_block * _A_HIT) >> 20
    told = f"a worker has {memory >> 20} MiB of memory, and needs at least {least}"
    if job is None or a_block * _A_HIT < _BASE // 10:
        raise QueryError(f"{told}; give it more")
    raise QueryError(
        f"{told} for a block of {job.step:,} queries with {a_block // job.step:,} hits each; give it more, or give a "
        f"smaller --block"
    )
