"""Blocks: the finished blocks of a join, files in a folder beside its result, until it is whole."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa

from neupath.errors import SourceError, WriteError, listed
from neupath.files import write_text
from neupath.locks import locked
from neupath.nodes import Rows

MANIFEST = "join.json"
_SHOWN = ("k", "min_score", "block")
_WORDS = {"scorer": "measure", "params": "path or parameter", "learned": "model or way to multiply", "tables": "graph"}
_WORK, _DISCARDED = "work-", "discarded-"


@dataclass(frozen=True)
class Sides:
    """Between what a join finds pairs: how many nodes there are, and what their ids are given as."""

    sources: int
    targets: int
    source_kind: pa.DataType
    target_kind: pa.DataType
    are_one: bool
    """Whether queries are targets, too, and each is left out of its own hits."""


@dataclass(frozen=True)
class Job:
    """What a join is to find, and where its blocks go."""

    queries: Rows
    limit: int | None
    """How many hits a query; nothing for all that reach `min_score`."""
    min_score: float
    step: int
    """Queries in a block."""
    target: Path
    sides: Sides

    @property
    def folder(self) -> Path:
        """Where finished blocks lie until the result is whole."""
        return parts_of(self.target)

    @property
    def count(self) -> int:
        """How many blocks there are."""
        return -(-len(self.queries) // self.step)

    @property
    def most_hits(self) -> int:
        """How many hits a block has at most; none are counted where it is all that reach a score, mostly few."""
        return 0 if self.limit is None else self.step * min(self.limit, self.sides.targets)

    def block(self, number: int) -> Rows:
        return self.queries[number * self.step : (number + 1) * self.step]

    def part(self, number: int) -> Path:
        """Where the hits of a block go."""
        return self.folder / f"{number:06}.parquet"

    def missing(self) -> list[int]:
        """Return the blocks that are not there yet."""
        return [number for number in range(self.count) if not self.part(number).is_file()]

    def describe(self, about: dict[str, object]) -> dict[str, object]:
        """Return what a join is of: finished blocks of another must not be mixed with its own."""
        return about | {
            "k": self.limit, "min_score": self.min_score, "block": self.step,
            "queries": sha256(self.queries.tobytes()).hexdigest(),
        }  # fmt: skip


def parts_of(target: Path) -> Path:
    """Return where the finished blocks of a join lie until its file is whole."""
    return target.with_name(f"{target.name}.parts")


def count_finished(target: Path) -> int:
    """Return how many blocks of a join are finished, while its file is not."""
    return sum(1 for _ in parts_of(target).glob("[0-9]*.parquet"))


@contextmanager
def claimed(target: Path) -> Iterator[None]:
    """Let no other join write to a target, and no task of an earlier one that still runs somewhere."""
    lock = target.with_name(f"{target.name}.lock")
    with locked(lock, f"another join writes to {target}; wait until it is done, or give another name"):
        for left_over in parts_of(target).glob(f"{_WORK}*"):
            discard(left_over)
        yield


def make_parts(parts: Path) -> None:
    """Make the folder of finished blocks, unless it is there."""
    try:
        parts.mkdir(exist_ok=True)
    except OSError as error:
        raise WriteError(f"cannot write {parts}: {error.strerror}") from error


def make_work(parts: Path, name: str) -> Path:
    """Make a folder for what a join needs as long as it runs; a block is written there, and then moved to the others.

    So a task that outlives its join, whose folder is gone, writes no block into another one's.
    """
    work = (parts / f"{_WORK}{name}").absolute()
    work.mkdir()
    return work


def discard(folder: Path) -> None:
    """Remove a folder to which others may still write: they no longer find it."""
    if folder.is_dir():
        shutil.rmtree(folder.rename(folder.with_name(f"{_DISCARDED}{folder.name}")), ignore_errors=True)


def open_parts(parts: Path, description: dict[str, object]) -> None:
    """Make the folder of finished blocks, or see that those in it are of the same join."""
    make_parts(parts)
    manifest = parts / MANIFEST
    if not manifest.is_file():
        for part in parts.glob("*.parquet"):
            part.unlink()  # what is left of a join that was done
    elif any(parts.glob("[0-9]*.parquet")):
        _check_same(parts, _read(manifest), json.loads(json.dumps(description)))
        return
    write_text(manifest, json.dumps(description, indent=2) + "\n")


def _read(manifest: Path) -> dict[str, Any]:
    try:
        found = json.loads(manifest.read_text(encoding="utf-8"))
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {}


def _check_same(parts: Path, theirs: dict[str, Any], ours: dict[str, Any]) -> None:
    """Refuse to go on with blocks of another join, and say in what it differs."""
    others = [name for name in {**ours, **theirs} if theirs.get(name) != ours.get(name)]
    if not others:
        return
    told = [f"{name} ({theirs.get(name)})" if name in _SHOWN else _WORDS.get(name, name) for name in others]
    if ("tables" in theirs) != ("tables" in ours):
        told = ["reader of the graph (--ingest)"]
    raise SourceError(
        f"{parts} holds blocks of another join, of which this is no part: it had another {listed(told)}; "
        f"finish that, or remove it"
    )


def remove_parts(parts: Path) -> None:
    """Remove finished blocks, what they are of last: without it, nobody takes them for their own."""
    for part in parts.glob("*.parquet"):
        part.unlink()
    if parts.is_dir():  # as a result that is a folder, it has another name
        shutil.rmtree(parts)
