"""import_store: any source as a store, its tables in streams where they make the very store that memory would."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from neupath._runtime.progress import Progress, no_progress
from neupath.errors import QueryError
from neupath.graph.hin import Duplicates, Floats, check_sums
from neupath.graph.nodes import Rows
from neupath.graph.schema import Relation, Schema
from neupath.io.load import find_tables, load
from neupath.io.out_of_core.staging import Staging
from neupath.io.out_of_core.streams import KeyedEdges, RelationStream, TripleStream, refuse_parallel
from neupath.io.sources import RelationTables, Selection, TableSource
from neupath.store import BulkWriter, Entries, StoreLayout, fetch_entries, new_store, write_store

# ---- Parallel edges become one, in a stream of edges that is sorted by their ends


def merge(batches: Iterable[Entries], duplicates: Duplicates) -> Iterator[Entries]:
    """Yield every pair of ends once: with the sum of its weights (`count`), or the first of them.

    Sums run in the order of the stream. An edge of weight 0 is none, and is left out.

    >>> ends, weights = np.array([3, 3]), np.array([0.5, 1.0])
    >>> [w.tolist() for _, _, w in merge([(ends, ends, weights), (ends, ends, weights)], "count")]
    [[], [], [3.0]]
    """
    held: Entries = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    for batch in batches:
        sources, targets, weights = (np.concatenate(both) for both in zip(held, batch, strict=True))
        if not len(sources):
            continue
        new = np.ones(len(sources), dtype=np.bool_)
        new[1:] = (sources[1:] != sources[:-1]) | (targets[1:] != targets[:-1])
        summed = duplicates == "count"
        each = np.bincount(np.cumsum(new) - 1, weights=weights).astype(float) if summed else weights[new]
        sources, targets = sources[new], targets[new]
        held = sources[-1:], targets[-1:], each[-1:]  # its edges may go on in the next batch
        yield _kept(sources[:-1], targets[:-1], each[:-1])
    yield _kept(*held)


def _kept(sources: Rows, targets: Rows, weights: Floats) -> Entries:
    kept = weights > 0
    return sources[kept], targets[kept], weights[kept]


# ---- import_store


def import_store(
    source: Any,
    to: str | Path,
    *,
    config: str | Path | None = None,
    duplicates: Duplicates | None = None,
    data: str | Path | None = None,
    memory_limit: str | None = None,
    progress: Progress = no_progress,
) -> Path:
    """Write a graph as a store, given as `load` takes it; the store is the one that `write_store` makes of that.

    Tables are read in parts, by a database that uses the disk beyond `memory_limit` (such as 2GiB; by default half of
    the machine's memory; the process itself needs about half a GiB more). Other sources, and tables that this cannot
    read as `load` does, are read whole.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as parent:
    ...     load(import_store("toy", parent + "/store")).num_nodes("author")
    5
    """
    tables = find_tables(source, config, duplicates, data) if isinstance(source, str | os.PathLike) else None
    if tables is None or not can_stream(tables):
        if memory_limit is not None:
            raise QueryError(f"{source} cannot be read in parts, so no memory limit can be kept; leave it out")
        hin = load(source, config=config, duplicates=duplicates, data=data, progress=progress)
        return write_store(hin, to, progress)
    with new_store(Path(to), memory_limit) as writer:
        stream_tables(tables, writer, progress)
    return Path(to)


def can_stream(source: TableSource) -> bool:
    """Whether the tables of a source make the same store in parts as they do whole.

    They do not where attributes of Parquet have dictionaries, which differ from part to part, or where types and
    relations are called by numbers.
    """
    if isinstance(source, RelationTables):
        return not any(_has_dictionary(node.selection) for node in source.nodes)
    nodes = [source.nodes] if source.nodes is not None else []
    words = [(edges, "relation") for edges in source.edges] + [(n, "type") for n in nodes if "type" in n.columns]
    return not any(map(_has_dictionary, nodes)) and all(
        selection.all_text or pa.types.is_string(selection.told_types[selection.columns[word]])
        for selection, word in words
    )


def _has_dictionary(selection: Selection) -> bool:
    types = selection.told_types
    return any("dictionary" in str(types[name]) for name in selection.attributes if name in types)


def stream_tables(source: TableSource, writer: BulkWriter, progress: Progress) -> None:
    """Write the tables of a source into a store in the making."""
    staging = Staging(writer.connection, progress)
    stream: RelationStream | TripleStream
    stream = RelationStream(staging, source) if isinstance(source, RelationTables) else TripleStream(staging, source)
    types, edges = stream.stage()
    choices = source.choices
    schema = Schema(tuple(t.node_type for t in types), tuple(e.relation for e in edges), choices.abbreviations)
    stream.write_nodes(writer, types)
    for number, joined in enumerate(edges):
        if choices.duplicates == "error":
            refuse_parallel(staging, joined, {t.node_type: t for t in types})
        merged = merge(_entries(staging, joined), choices.duplicates)
        writer.write_edges(number, _checked(joined.relation, merged))
    named, attributes = tuple(t.named for t in types), tuple(t.attributes for t in types)
    writer.finish(StoreLayout(schema, named, attributes, tuple(choices.notes)))


def _checked(relation: Relation, batches: Iterable[Entries]) -> Iterator[Entries]:
    """Pass edges on, of which the weights have been added up."""
    for entries in batches:
        check_sums(relation, entries[2])
        yield entries


def _entries(staging: Staging, joined: KeyedEdges) -> Iterator[Entries]:
    """Go through the sorted edges of a relation, showing how far it is."""
    done = 0
    for entries in fetch_entries(staging.connection, f"SELECT source, target, weight FROM {joined.query}"):  # noqa: S608
        yield entries
        done += len(entries[0])
        staging.progress(f"writing {joined.relation.name}", done, joined.rows)
