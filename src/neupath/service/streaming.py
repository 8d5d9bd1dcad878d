"""Streaming: what a job tells, as server-sent events that a client can resume."""

import asyncio
import json
from collections.abc import AsyncIterator

from neupath.service.job import Job

HEARTBEAT = 10.0
"""Seconds of silence after which a comment shows that the connection is alive."""


async def stream_events(job: Job, after: int = 0, heartbeat: float = HEARTBEAT) -> AsyncIterator[bytes]:
    """Yield the events of a job with a number above `after`, those to come as well, until its end.

    The last is always `end`: also to who has heard it before, or heard an earlier service.
    """
    newest = job.events[-1][0] if job.events else 0
    last, name = after if after <= newest else 0, ""
    yield b"retry: 1000\n\n"
    while True:
        changed = job.changed
        for number, event, content in [entry for entry in job.events if entry[0] > last]:
            last, name = number, event
            yield encode_event(number, event, content)
        if job.is_over:
            if name != "end":
                yield encode_event(last + 1, "end", job.to_dict())
            return
        try:
            await asyncio.wait_for(changed.wait(), heartbeat)
        except TimeoutError:
            yield b": alive\n\n"


def encode_event(number: int, event: str, content: dict[str, object]) -> bytes:
    r"""Return one event as the protocol writes it.

    >>> encode_event(3, "progress", {"done": 1})
    b'id: 3\nevent: progress\ndata: {"done": 1}\n\n'
    """
    return f"id: {number}\nevent: {event}\ndata: {json.dumps(content)}\n\n".encode("ascii")


def last_event(given: str | None) -> int:
    """Read the number of the last event a client has seen; what is no number means none.

    >>> last_event("7"), last_event(None), last_event("x")
    (7, 0, 0)
    """
    return int(given) if given and given.isascii() and given.isdecimal() and len(given) < 19 else 0
