"""Where things lie in a store's folder: the marker that makes it a store, the database, the snapshots."""

import json
import os
from pathlib import Path

from neupath.errors import SourceError

MARKER = "store.json"
DATABASE = "graph.duckdb"
SNAPSHOT = "snapshot-"
FORMAT = 1


def is_store(path: Path) -> bool:
    """Whether a folder is a store."""
    return (path / MARKER).is_file()


def check_marker(folder: Path) -> None:
    """Refuse a folder that is no store, or one of another format."""
    try:
        found = json.loads((folder / MARKER).read_text(encoding="utf-8"))
        written = found["format"]
    except FileNotFoundError as error:
        raise SourceError(f"{folder} is not a store; make one with: neupath import SOURCE --to NEW_FOLDER") from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SourceError(f"{folder / MARKER} cannot be read: {error}; the store is damaged") from error
    if written != FORMAT:
        raise SourceError(f"the store {folder} has format {written!r}, and this neupath reads format {FORMAT}")


def write_marker(folder: Path) -> None:
    """Make a folder a store, as the last thing that is written into it."""
    (folder / MARKER).write_text(json.dumps({"format": FORMAT}) + "\n", encoding="utf-8")
    sync(folder / MARKER)


def sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
