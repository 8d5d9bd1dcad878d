"""What every command does with a graph and a terminal: load, note, print."""

import json
from pathlib import Path
from typing import Any

from rich.console import Console

from neupath.datasets import load
from neupath.errors import QueryError, listed
from neupath.graph import HIN
from neupath.metapath import enumerate_metapaths
from neupath.progress import ProgressBars
from neupath.rendering import printable
from neupath.schema import Schema

out = Console()
err = Console(stderr=True)


class StoppedError(Exception):
    """The user stopped a command, which says what it leaves behind."""


def load_graph(
    graph: str,
    config: Path | None = None,
    duplicates: str | None = None,
    data: Path | None = None,
    as_of: int | None = None,
) -> HIN:
    """Read the graph a command was given, with progress on the terminal."""
    choice: Any = duplicates
    return load(graph, config=config, duplicates=choice, data=data, as_of=as_of, progress=ProgressBars(err).over)


def required_path(schema: Schema, path: str | None) -> str:
    """Return the meta-path a command was given, or say which ones there are."""
    if path is not None:
        return path
    some = [next(enumerate_metapaths(schema, t, 2)) for t in schema.node_types if schema.neighbours(t)]
    raise QueryError(
        f"no meta-path is given; say what makes two nodes similar with --path, such as {listed(map(str, some), 4)}"
    )


def note_relations(told: list[str]) -> None:
    """Say which steps of a meta-path follow several relations."""
    for line in told:
        note(line)


def note(text: str) -> None:
    """Say something beside the result, on standard error."""
    err.print(f"note: {printable(text)}", style="dim", highlight=False, markup=False, soft_wrap=True)


def print_json(content: object) -> None:
    """Print a result as one line of JSON."""
    print(json.dumps(content, ensure_ascii=False))
