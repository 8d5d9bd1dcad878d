"""Load a graph from whatever holds it: a name, such as toy, a file, a folder, a store, or an object of a library."""

import os
import warnings
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from neupath._runtime.progress import Progress, no_progress
from neupath.errors import SourceWarning, hide_password
from neupath.graph.edges import check_duplicates
from neupath.graph.hin import HIN, Duplicates, Edges
from neupath.graph.metapath import Relation
from neupath.graph.nodes import Nodes, text_array
from neupath.io.datasets import stdlib

# ---- The worked example of the PathSim paper -----------------------------------------------------
VENUES = ("SIGMOD", "VLDB", "ICDE", "KDD")
PAPERS_AT = {
    "Mike": (2, 1, 0, 0),
    "Jim": (50, 20, 0, 0),
    "Mary": (2, 0, 1, 0),
    "Bob": (2, 1, 0, 0),
    "Ann": (0, 0, 1, 1),
}
"""The number of papers of each author at each venue; every paper has one author."""


def toy() -> HIN:
    """Return five authors, their papers and four venues (Sun et al., VLDB 2011).

    >>> toy().num_nodes("paper")
    81
    """
    authors = np.array([a for a, row in enumerate(PAPERS_AT.values()) for papers in row for _ in range(papers)])
    venues = np.array([v for row in PAPERS_AT.values() for v, papers in enumerate(row) for _ in range(papers)])
    papers = np.arange(len(authors))
    people = list(PAPERS_AT)
    numbers = {author: count(1) for author in people}
    paper_ids = [f"{people[a]}-{VENUES[v]}-{next(numbers[people[a]])}" for a, v in zip(authors, venues, strict=True)]
    return HIN.build(
        [
            Nodes("author", text_array(people)),
            Nodes("paper", text_array(paper_ids)),
            Nodes("venue", text_array(VENUES)),
        ],
        [
            Edges(Relation("author", "writes", "paper"), authors, papers),
            Edges(Relation("paper", "appears_at", "venue"), papers, venues),
        ],
    )


# ---- Loading -------------------------------------------------------------------------------------
BUILT_IN: dict[str, tuple[str, Callable[[Progress], HIN]]] = {
    "toy": ("the worked example of the PathSim paper: authors, papers, venues", lambda _: toy()),
    "stdlib": ("Python's own standard library: modules, classes, methods, bases, imports", stdlib),
}
"""Graphs that come with neupath: a name -> what it is, and the function that makes it."""


def load(
    source: Any,
    *,
    config: str | Path | None = None,
    duplicates: Duplicates | None = None,
    data: str | Path | None = None,
    schema: str | None = None,
    tables: str | Sequence[str] | None = None,
    as_of: int | None = None,
    progress: Progress = no_progress,
) -> HIN:
    """Load a graph; a `SourceWarning` says what was left out and what a rule decided, as `HIN.notes` does.

    Parameters
    ----------
    source
        One of: the name of a built-in graph (toy, stdlib), of a fetched one, or of one in the folder `data`; a store;
        a folder of tables; a table file, or a list of them; RDF or JSON, one file or a folder; a .mat, GraphML, GEXF or
        GML file; the URL of a database (postgresql://host/shop, sqlite:///shop.db), or a SQLite or DuckDB file; a
        pandas, polars or Arrow table, or a mapping of them as in `from_tables`, which also takes matrices; a list of
        (head, relation, tail) tuples; a NetworkX graph; a PyTorch Geometric HeteroData. Files and folders may be in an
        object store (s3://bucket/folder, gs://bucket/folder).
    config
        A graph.toml that describes a folder, a file or tables, instead of the one in the folder.
    duplicates
        What parallel edges mean: "count" (the default) adds their weights, "drop" takes the first, "error" raises.
    data
        A folder of graphs that can be loaded by name; by default the environment variable NEUPATH_DATA.
    schema, tables
        Of a database: the schema, by default its own, and the tables, by default all; as names, or a text with commas.
    as_of
        An earlier version of a store.
    progress
        Called with the stage, how much of it is done, and how much there is.

    >>> load("toy").schema.node_types
    ('author', 'paper', 'venue')

    """
    check_duplicates(duplicates or "count")
    if isinstance(source, str) and source in BUILT_IN and (config, schema, tables, as_of) == (None, None, None, None):
        return BUILT_IN[source][1](progress)
    from neupath.io.formats.databases import TableChoice
    from neupath.io.registry import load_source

    options: dict[str, Any] = {"config": config, "duplicates": duplicates, "data": data, "progress": progress}
    hin, is_imported = load_source(source, as_of=as_of, choice=TableChoice(schema, tables), **options)
    if not (isinstance(source, HIN) or is_imported):
        show_notes(source, hin.notes)
    return hin


def show_notes(source: object, notes: Sequence[str], stacklevel: int = 3) -> None:
    """Issue one warning with the notes on a source; `stacklevel` is that of the user's call."""
    if notes:
        name = hide_password(str(source)) if isinstance(source, str | os.PathLike) else f"the {type(source).__name__}"
        warnings.warn(SourceWarning(name, notes), stacklevel=stacklevel)
