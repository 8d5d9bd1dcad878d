"""Edge encoding on workers: the edges of a relation become rows, chunk by chunk, and then tiles of its matrix.

A chunk is numbered as a whole, wherever its edges lead, so the edges of a hub are spread over the tasks like others. A
strip of rows is then gathered from all chunks, each row in the order of the table. So parallel edges add up in the same
order as in `load`, and to the same bits.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
from scipy.sparse import coo_array

from neupath.cluster.id_encoding import Chunk, Counts, Stretch, dictionary_of, ids_of_nodes, read_numbers
from neupath.cluster.tiles import Array, Cut, Tiles, cut_evenly, read_arrays, write_arrays
from neupath.cluster.workers import Workers
from neupath.errors import GraphError
from neupath.graph.hin import Duplicates, Floats, check_sums, first_of_each, freeze, summed_in_order
from neupath.graph.metapath import Relation
from neupath.graph.nodes import Rows
from neupath.io.plan import empty_end, missing_ids, similar_id, to_weights, unknown_end
from neupath.io.tables import TableFile

_BINS = 1 << 14  # the number of bins of consecutive nodes in which edges are counted; strips are cut between bins
_EMPTY, _DANGLING, _WEIGHT = "empty", "dangling", "weight"


@dataclass(frozen=True)
class Fault:
    """What is wrong with a column of a chunk: the first bad row, the value there, and the number of bad rows."""

    kind: str
    column: str
    row: int
    value: object
    count: int


@dataclass(frozen=True)
class End:
    """One end of a relation in one chunk: the column, and where the rows of its ids stand."""

    column: str
    as_text: bool
    num_nodes: int
    folder: Path
    chunk: int  # the number of the chunk among all that name nodes of the type
    stretches: tuple[Stretch, ...]

    def number(self, ids: pa.Array) -> tuple[Rows, list[Fault]]:
        """Return the row of each id, and what is wrong with some."""
        codes, keys = dictionary_of(ids, self.as_text)
        numbers = np.append(read_numbers(self.folder, self.chunk, self.stretches, len(keys)), -1)[codes]
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
    """A chunk of a relation's table, and the files of its edges."""

    chunk: Chunk
    source: End
    target: End
    weight: str | None
    directed: bool
    out: Path
    back: Path  # the edges of an undirected relation in the other direction


@dataclass(frozen=True)
class EdgeChunks:
    """All chunks of a relation's table."""

    relation: Relation
    file: TableFile
    chunks: Sequence[EdgeChunk]


# ---- From ids to rows ----------------------------------------------------------------------------
@dataclass(frozen=True)
class EdgeCounts:
    """The number of a chunk's edges by bin of their source, of their source in the other direction, of their target."""

    out: Counts
    back: Counts
    to: Counts
    faults: Sequence[Fault] = ()


def number_chunks(edges: EdgeChunks, workers: Workers) -> list[EdgeCounts]:
    """Number the edges of a relation, on the workers; raise what `load` raises for the first fault it would find."""
    counts = workers.each(number_edges, [(chunk,) for chunk in edges.chunks])
    faults = [(chunk, fault) for chunk, own in zip(edges.chunks, counts, strict=True) for fault in own.faults]
    if faults:
        _raise_first(edges, faults)
    return counts


def number_edges(edges: EdgeChunk) -> EdgeCounts:
    """Write the edges of a chunk as rows, sorted by source, edges of one source in the order of the table."""
    names = [edges.source.column, edges.target.column, *([edges.weight] if edges.weight else [])]
    table = edges.chunk.read(list(dict.fromkeys(names)))
    sources, faults = edges.source.number(table[edges.source.column].combine_chunks())
    targets, target_faults = edges.target.number(table[edges.target.column].combine_chunks())
    faults += target_faults
    weights = None
    if edges.weight is not None:
        try:
            weights = to_weights(table[edges.weight].combine_chunks(), lambda _: "")
        except GraphError:
            faults.append(Fault(_WEIGHT, edges.weight, 0, None, 1))
    if faults:
        none = np.zeros(0, np.int64)
        return EdgeCounts(none, none, none, faults)
    rows, columns = sources, targets
    back = rows[:0]
    if not edges.directed:
        rows, columns = np.minimum(sources, targets), np.maximum(sources, targets)
        other_way = rows != columns
        back = columns[other_way]
        _write_sorted(edges.back, back, rows[other_way], None if weights is None else weights[other_way])
    _write_sorted(edges.out, rows, columns, weights)
    to = columns if edges.directed else np.concatenate([rows, back])
    num_sources, num_targets = edges.source.num_nodes, edges.target.num_nodes
    return EdgeCounts(_count(rows, num_sources), _count(back, num_sources), _count(to, num_targets))


def _write_sorted(path: Path, rows: Rows, columns: Rows, weights: Floats | None) -> None:
    order = np.argsort(rows, kind="stable")
    write_arrays(path, rows[order], columns[order], *([] if weights is None else [weights[order]]))


def _raise_first(edges: EdgeChunks, faults: Sequence[tuple[EdgeChunk, Fault]]) -> None:
    relation, first = edges.relation, edges.chunks[0]
    for node_type, end in ((relation.source, first.source), (relation.target, first.target)):
        for kind in (_EMPTY, _DANGLING):
            own = [(c, fault) for c, fault in faults if (fault.kind, fault.column) == (kind, end.column)]
            if own:
                place = edges.file.place(own[0][0].chunk.first + own[0][1].row)
                if kind == _EMPTY:
                    raise empty_end(place, node_type)
                count, value = sum(fault.count for _, fault in own), own[0][1].value
                similar = (similar_id(value, ids) for ids in ids_of_nodes(end.folder))
                raise unknown_end(place, node_type, value, count, similar=next(filter(None, similar), None))
    chunk, fault = faults[0]
    weights = chunk.chunk.read([fault.column])[fault.column].combine_chunks()
    to_weights(weights, lambda row: edges.file.place(chunk.chunk.first + row))


# ---- From rows to tiles --------------------------------------------------------------------------
Stretches = Sequence[tuple[Path, Stretch]]  # files, and the edges of a strip in each


def cut_edges(
    edges: EdgeChunks, counts: Sequence[EdgeCounts], folder: Path, most: int, duplicates: Duplicates, workers: Workers
) -> Tiles:
    """Write the numbered edges of a relation as tiles, with about `most` edges in a strip."""
    out, back, to = (np.array([getattr(own, name) for own in counts]) for name in ("out", "back", "to"))
    strips = max(workers.count, -(-int(out.sum() + back.sum()) // most))
    bins = cut_evenly((out + back).sum(axis=0).astype(np.float64), strips)
    across = cut_evenly(to.sum(axis=0).astype(np.float64), strips)
    source, target = edges.chunks[0].source, edges.chunks[0].target
    tiles = Tiles(folder / "tiles", _in_nodes(bins, source.num_nodes), _in_nodes(across, target.num_nodes))
    tiles.folder.mkdir()
    outs, backs = [chunk.out for chunk in edges.chunks], [chunk.back for chunk in edges.chunks]
    tasks = [
        (edges.relation, tiles, strip, _stretches(outs, out, own), _stretches(backs, back, own), duplicates)
        for strip, own in enumerate(pairwise(bins))
    ]
    workers.each(write_strip, tasks)
    for chunk in edges.chunks:
        chunk.out.unlink()
        chunk.back.unlink(missing_ok=True)
    return tiles


def write_strip(
    relation: Relation, tiles: Tiles, strip: int, out: Stretches, back: Stretches, duplicates: Duplicates
) -> None:
    """Gather some rows of a relation's matrix from all chunks, and write them as tiles."""
    first, last = tiles.rows[strip : strip + 2]
    width = tiles.columns[-1]
    gathered = [_gather(files, first, width, duplicates) for files in (out, back)]
    rows, columns, weights = (np.concatenate(parts) for parts in zip(*gathered, strict=True))
    matrix = coo_array((weights, (rows, columns)), shape=(last - first, width)).tocsr()
    matrix.eliminate_zeros()
    check_sums(relation, matrix.data)
    tiles.write_strip(strip, freeze(matrix))


def _gather(files: Stretches, first: int, width: int, duplicates: Duplicates) -> list[Array]:
    """Return the rows, from `first` on, the columns and the weights of some edges, in the order of the table."""
    edges = [read_arrays(path, *stretch) for path, stretch in files]
    rows = np.concatenate([np.zeros(0, np.int64), *(arrays[0] - first for arrays in edges)])
    columns = np.concatenate([np.zeros(0, np.int64), *(arrays[1] for arrays in edges)])
    ones = [np.ones(len(arrays[0])) if len(arrays) == 2 else arrays[2] for arrays in edges]
    weights = np.concatenate([np.zeros(0), *ones])
    if duplicates == "drop":
        kept = first_of_each(rows, columns, width)
        return [rows[kept], columns[kept], weights[kept]]
    return list(summed_in_order(rows, columns, weights))


def _width(nodes: int) -> int:
    return max(1, -(-nodes // _BINS))


def _count(rows: Rows, nodes: int) -> Counts:
    """Count the edges of each bin of nodes."""
    return np.bincount(rows // _width(nodes), minlength=-(-nodes // _width(nodes)))


def _in_nodes(bins: Cut, nodes: int) -> Cut:
    return tuple(min(at * _width(nodes), nodes) for at in bins)


def _stretches(files: Sequence[Path], counts: Counts, bins: Stretch) -> Stretches:
    """Return where the edges of some bins stand in each chunk's file that has any."""
    first = counts[:, : bins[0]].sum(axis=1)
    last = first + counts[:, bins[0] : bins[1]].sum(axis=1)
    return [(path, (int(a), int(b))) for path, a, b in zip(files, first, last, strict=True) if a < b]
