"""Numbered edges: those of a relation as rows, chunk by chunk in the order of their table, then as tiles of a matrix.

A chunk is numbered whole, wherever its edges lead, so that the edges of a hub are spread over the tasks as those of any
other node are. A strip of rows is then gathered from all chunks, each row in the order of the table: parallel edges
add up in the order in which `load` adds them, and are the same to the bit.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
from scipy.sparse import coo_array

from neupath.cluster.arrays import Array, read_arrays, write_arrays
from neupath.cluster.chunks import Chunk, as_keys
from neupath.cluster.numbering import Counts, Stretch, codes_of, read_numbers
from neupath.cluster.tiles import Cut, Tiles, cut_evenly
from neupath.cluster.workers import Workers
from neupath.datasets.assemble import missing_ids, to_weights
from neupath.datasets.faults import empty_end, lost_end, table_of
from neupath.datasets.tables import TableFile
from neupath.errors import GraphError
from neupath.graph import Duplicates, Floats, first_of_each, freeze, summed_in_order
from neupath.nodes import Rows
from neupath.schema import Relation

_BINS = 1 << 14
"""Into how many stretches of nodes edges are counted; strips are cut between them."""
_EMPTY, _DANGLING, _WEIGHT = "empty", "dangling", "weight"


@dataclass(frozen=True)
class End:
    """One end of a relation as a task needs it: the column, and where the numbers of its ids lie."""

    column: str
    as_text: bool
    nodes: int
    folder: Path
    chunk: int
    """The number of the chunk among all that name nodes of the type."""
    stretches: tuple[Stretch, ...]

    def number(self, ids: pa.Array) -> tuple[Rows, list["Fault"]]:
        """Return the row of each id, and what is wrong with some."""
        encoded = as_keys(ids, self.as_text).dictionary_encode()
        known = read_numbers(self.folder, self.chunk, self.stretches, len(encoded.dictionary))
        numbers = np.append(known, -1)[codes_of(encoded)]
        missing = missing_ids(ids)
        dangling = np.setdiff1d(np.flatnonzero(numbers < 0), missing)
        faults = [
            Fault(kind, self.column, int(rows[0]), ids[int(rows[0])].as_py(), len(rows))
            for kind, rows in ((_EMPTY, missing), (_DANGLING, dangling))
            if len(rows)
        ]
        return numbers, faults


@dataclass(frozen=True)
class EdgeChunk:
    """A chunk of a relation's table, and where its edges go."""

    chunk: Chunk
    source: End
    target: End
    weight: str | None
    directed: bool
    out: Path
    back: Path
    """Where the edges of an undirected relation go the other way."""


@dataclass(frozen=True)
class EdgeChunks:
    """All of a relation's table."""

    relation: Relation
    file: TableFile
    chunks: Sequence[EdgeChunk]


@dataclass(frozen=True)
class Fault:
    """What is wrong with a column: the first row of a table where it is, the value there, and how many others."""

    kind: str
    column: str
    row: int
    value: object
    count: int


@dataclass(frozen=True)
class Numbered:
    """How many edges of a chunk lead from each stretch of nodes, back, and to each; or what is wrong with some."""

    out: Counts
    back: Counts
    to: Counts
    faults: Sequence[Fault] = ()


def number_chunks(edges: EdgeChunks, workers: Workers) -> list[Numbered]:
    """Number the edges of a relation, or say what is wrong with them."""
    numbered = workers.each(number_edges, [(chunk,) for chunk in edges.chunks])
    _refuse_faults(edges, numbered)
    return numbered


def cut_edges(
    edges: EdgeChunks, numbered: Sequence[Numbered], folder: Path, most: int, duplicates: Duplicates, workers: Workers
) -> Tiles:
    """Write the numbered edges of a relation as tiles, with about `most` edges in a strip."""
    out, back, to = (np.array([getattr(found, name) for found in numbered]) for name in ("out", "back", "to"))
    strips = max(workers.count, -(-int(out.sum() + back.sum()) // most))
    ends = edges.chunks[0].source.nodes, edges.chunks[0].target.nodes
    bins = cut_evenly((out + back).sum(axis=0).astype(np.float64), strips)
    across = cut_evenly(to.sum(axis=0).astype(np.float64), strips)
    tiles = Tiles(folder / "tiles", _in_nodes(bins, ends[0]), _in_nodes(across, ends[1]))
    tiles.folder.mkdir()
    outs, backs = [chunk.out for chunk in edges.chunks], [chunk.back for chunk in edges.chunks]
    tasks = [
        (tiles, strip, _stretches(outs, out, own), _stretches(backs, back, own), duplicates)
        for strip, own in enumerate(pairwise(bins))
    ]
    workers.each(write_strip, tasks)
    for chunk in edges.chunks:
        chunk.out.unlink()
        chunk.back.unlink(missing_ok=True)
    return tiles


def _width(nodes: int) -> int:
    return max(1, -(-nodes // _BINS))


def _count(rows: Rows, nodes: int) -> Counts:
    """Count the edges of each stretch of nodes."""
    return np.bincount(rows // _width(nodes), minlength=-(-nodes // _width(nodes)))


def _in_nodes(bins: Cut, nodes: int) -> Cut:
    return tuple(min(at * _width(nodes), nodes) for at in bins)


def _stretches(files: Sequence[Path], counts: Counts, bins: Stretch) -> list[tuple[Path, Stretch]]:
    """Return where the edges of some bins lie in each chunk's file that has any."""
    first = counts[:, : bins[0]].sum(axis=1)
    last = first + counts[:, bins[0] : bins[1]].sum(axis=1)
    return [(path, (int(a), int(b))) for path, a, b in zip(files, first, last, strict=True) if a < b]


def number_edges(edges: EdgeChunk) -> Numbered:
    """Write the edges of a chunk as rows, sorted by their source, those of one source in the order of the table."""
    names = [edges.source.column, edges.target.column, *([edges.weight] if edges.weight else [])]
    table = edges.chunk.read(list(dict.fromkeys(names)))
    sources, faults = edges.source.number(table[edges.source.column].combine_chunks())
    targets, more = edges.target.number(table[edges.target.column].combine_chunks())
    weights = None
    if edges.weight is not None:
        try:
            weights = to_weights(table[edges.weight].combine_chunks(), lambda _: "")
        except GraphError:
            more.append(Fault(_WEIGHT, edges.weight, 0, None, 1))
    if faults or more:
        none = np.zeros(0, np.int64)
        return Numbered(none, none, none, [*faults, *more])
    rows, columns = sources, targets
    back = rows[:0]
    if not edges.directed:
        rows, columns = np.minimum(sources, targets), np.maximum(sources, targets)
        other_way = rows != columns
        back = columns[other_way]
        _write_sorted(edges.back, back, rows[other_way], None if weights is None else weights[other_way])
    _write_sorted(edges.out, rows, columns, weights)
    to = columns if edges.directed else np.concatenate([rows, back])
    return Numbered(_count(rows, edges.source.nodes), _count(back, edges.source.nodes), _count(to, edges.target.nodes))


def _write_sorted(path: Path, rows: Rows, columns: Rows, weights: Floats | None) -> None:
    order = np.argsort(rows, kind="stable")
    write_arrays(path, rows[order], columns[order], *([] if weights is None else [weights[order]]))


def _refuse_faults(edges: EdgeChunks, numbered: Sequence[Numbered]) -> None:
    """Say what `load` says of the first fault it would find."""
    found = [(chunk, fault) for chunk, told in zip(edges.chunks, numbered, strict=True) for fault in told.faults]
    if not found:
        return
    relation, first = edges.relation, edges.chunks[0]
    for node_type, end in ((relation.source, first.source), (relation.target, first.target)):
        for kind in (_EMPTY, _DANGLING):
            own = [(c, fault) for c, fault in found if (fault.kind, fault.column) == (kind, end.column)]
            if own:
                place = edges.file.place(own[0][0].chunk.first + own[0][1].row)
                if kind == _EMPTY:
                    raise empty_end(place, node_type)
                count = sum(fault.count for _, fault in own)
                raise lost_end(place, node_type, own[0][1].value, table_of(node_type), count)
    chunk, fault = found[0]
    weights = chunk.chunk.read([fault.column])[fault.column].combine_chunks()
    to_weights(weights, lambda row: edges.file.place(chunk.chunk.first + row))


def write_strip(
    tiles: Tiles,
    strip: int,
    out: Sequence[tuple[Path, Stretch]],
    back: Sequence[tuple[Path, Stretch]],
    duplicates: Duplicates,
) -> None:
    """Gather some rows of a relation's matrix from all chunks, and write them as tiles."""
    first, last = tiles.rows[strip : strip + 2]
    width = tiles.columns[-1]
    gathered = [_gather(files, first, width, duplicates) for files in (out, back)]
    rows, columns, weights = (np.concatenate(parts) for parts in zip(*gathered, strict=True))
    matrix = coo_array((weights, (rows, columns)), shape=(last - first, width)).tocsr()
    matrix.eliminate_zeros()
    tiles.write_strip(strip, freeze(matrix))


def _gather(files: Sequence[tuple[Path, Stretch]], first: int, width: int, duplicates: Duplicates) -> list[Array]:
    """Return the rows, from `first` on, the columns and the weights of some edges, in the order of the table."""
    read = [read_arrays(path, *stretch) for path, stretch in files]
    rows = np.concatenate([np.zeros(0, np.int64), *(arrays[0] - first for arrays in read)])
    columns = np.concatenate([np.zeros(0, np.int64), *(arrays[1] for arrays in read)])
    ones = [np.ones(len(arrays[0])) if len(arrays) == 2 else arrays[2] for arrays in read]
    weights = np.concatenate([np.zeros(0), *ones])
    if duplicates == "drop":
        kept = first_of_each(rows, columns, width)
        return [rows[kept], columns[kept], weights[kept]]
    return list(summed_in_order(rows, columns, weights))
