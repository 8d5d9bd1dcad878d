"""Job: one piece of long work: what it is, how far it is, and the record of it on disk."""

import asyncio
import json
import logging
import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from neupath.errors import SourceError, WriteError
from neupath.files import write_text
from neupath.service.work import REPORT, TABLE

State = Literal["waiting", "running", "done", "failed", "cancelled"]
RECORD = "job.json"
_MOST_EVENTS = 1000
_RESULTS = {"infer": REPORT, "train": REPORT, "join": TABLE}
_log = logging.getLogger("neupath.service")


@dataclass
class Job:
    """One piece of long work: what it is, how far it is, and what has been told of it."""

    id: str
    kind: str
    graph: str
    folder: Path
    created: float
    state: State = "waiting"
    started: float | None = None
    ended: float | None = None
    progress: dict[str, object] | None = None
    summary: dict[str, object] | None = None
    error: str | None = None
    events: list[tuple[int, str, dict[str, object]]] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    _number: int = 0

    @property
    def is_over(self) -> bool:
        return self.state in ("done", "failed", "cancelled")

    @property
    def result(self) -> Path:
        return self.folder / _RESULTS[self.kind]

    def to_dict(self) -> dict[str, object]:
        return {
            "id": self.id, "kind": self.kind, "graph": self.graph, "state": self.state, "created": self.created,
            "started": self.started, "ended": self.ended, "progress": self.progress, "summary": self.summary,
            "error": self.error,
        }  # fmt: skip

    def tell(self, event: str, content: dict[str, object]) -> None:
        """Record an event, and wake those who listen."""
        self._number += 1
        self.events.append((self._number, event, content))
        del self.events[:-_MOST_EVENTS]
        awake, self.changed = self.changed, asyncio.Event()
        awake.set()

    def enter(self, state: State) -> None:
        """Change the state, keep it on disk, and tell."""
        self.state = state
        if state == "running":
            self.started = time.time()
        if self.is_over:
            self.ended = time.time()
        try:
            write_text(self.folder / RECORD, json.dumps(self.to_dict(), ensure_ascii=False))
        except WriteError as error:  # the job goes on; a service that starts again will not know of it
            _log.warning("the job %s is %s, which cannot be kept: %s", self.id, state, error)
        self.tell("end" if self.is_over else "state", self.to_dict())

    def tidy(self) -> None:
        """Remove what was half done; what cannot be is told in the log."""
        try:
            for path in self.folder.iterdir() if self.folder.is_dir() else ():
                if path.is_dir():
                    shutil.rmtree(path, ignore_errors=True)
                elif path.name != RECORD:
                    path.unlink(missing_ok=True)
        except OSError as error:
            _log.warning("what the job %s had half done cannot be removed: %s", self.id, error)


def read_jobs(folder: Path) -> list[Job]:
    """Read the jobs that an earlier service left in a folder; those it did not finish have failed."""
    found = []
    for record in sorted(folder.glob(f"*/{RECORD}")):
        try:
            content = json.loads(record.read_text(encoding="utf-8"))
            job = Job(**(content | {"folder": record.parent}))
        except (ValueError, TypeError, OSError) as error:
            raise SourceError(f"{record} is not the record of a job ({error}); remove its folder") from error
        if not job.is_over:
            job.error = "the service ended before the job did"
            job.enter("failed")
        found.append(job)
    return sorted(found, key=lambda job: job.created)
