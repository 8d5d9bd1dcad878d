"""Jobs of a service: what they tell, and what they come to."""

import contextlib
import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import quote

from neupath.client.calls import Calls, ServiceError
from neupath.files import write_whole

_PAUSE = 1.0
"""Seconds before a stream that broke off is opened again."""
_MOST_FAILURES = 30
"""Times in a row that a service may be away, or busy, before it is given up."""


@dataclass(frozen=True)
class Event:
    """What a job tells: `state`, `progress` or `end`."""

    number: int
    name: str
    data: dict[str, Any]


class RemoteJob:
    """A job that a service does."""

    def __init__(self, calls: Calls, job_id: str) -> None:
        self._calls = calls
        self._path = f"/api/jobs/{quote(job_id, safe='')}"
        self.id = job_id

    def status(self) -> dict[str, Any]:
        """Say how far the job is."""
        return self._calls.read_object("GET", self._path)

    def events(self, after: int = 0) -> Iterator[Event]:
        """Yield what the job tells until it ends, over a connection of its own, opened again where it breaks."""
        last, failures = after, 0
        while True:
            try:
                for event in self._listen(last):
                    last, failures = event.number, 0
                    yield event
                    if event.name == "end":
                        return
            except ServiceError as error:
                if error.status != 503 or last == after or failures >= _MOST_FAILURES:
                    raise
            failures += 1
            time.sleep(_PAUSE)

    def _listen(self, after: int) -> Iterator[Event]:
        """Yield what comes over one connection until it ends or breaks."""
        calls = self._calls.another()
        more = {"last-event-id": str(after)} if after else {}
        try:
            with contextlib.suppress(HTTPException, OSError):
                yield from read_events(calls.open("GET", f"{self._path}/events", accept="text/event-stream", more=more))
        finally:
            calls.close()

    def wait(self) -> dict[str, Any]:
        """Wait for the job's end and return its status; one that failed or was cancelled is an error."""
        end = next(event for event in self.events() if event.name == "end")
        if end.data["state"] != "done":
            because = f": {end.data['error']}" if end.data["error"] else ""
            raise ServiceError(409, f"the job {self.id} is {end.data['state']}{because}")
        return end.data

    def result(self) -> dict[str, Any]:
        """Wait for an infer or a train job, and return what it came to."""
        self.wait()
        return self._calls.read_object("GET", f"{self._path}/result")

    def save(self, path: str | Path) -> Path:
        """Wait for the job, and write its result to a file: the Parquet file of a join, or JSON."""
        self.wait()
        content = self._calls.read_bytes("GET", f"{self._path}/result")
        write_whole(Path(path), lambda temporary: temporary.write_bytes(content))
        return Path(path)

    def cancel(self) -> dict[str, Any]:
        """Stop the job and say how it stands; one that is over stays as it is, with its result."""
        return self._calls.read_object("POST", f"{self._path}/cancel")

    def remove(self) -> dict[str, Any]:
        """Let the service forget the job, which is over, with its result; return how it stood."""
        return self._calls.read_object("DELETE", self._path)


def read_events(lines: Iterable[bytes]) -> Iterator[Event]:
    r"""Read server-sent events.

    >>> list(read_events([b"id: 2\n", b"event: progress\n", b'data: {"done": 1}\n', b"\n"]))
    [Event(number=2, name='progress', data={'done': 1})]
    """
    fields: dict[str, str] = {}
    for line in lines:
        text = line.decode().rstrip("\r\n")
        name, _, value = text.partition(": ")
        if text:
            fields[name] = value
        elif "data" in fields:
            yield Event(int(fields["id"]), fields["event"], json.loads(fields["data"]))
            fields = {}
