"""Numbered edges: those of a relation as rows, chunk by chunk in the order of their table, then as tiles of a matrix."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import file_digest
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray
from scipy.sparse import coo_array

from neupath._runtime.files import write_whole
from neupath.cluster.tiles import Array, Cut, Tiles, cut_evenly, group, read_arrays, write_arrays
from neupath.cluster.workers import Workers
from neupath.errors import GraphError
from neupath.graph.hin import Duplicates, Floats, first_of_each, freeze, summed_in_order
from neupath.graph.nodes import Rows
from neupath.graph.schema import Relation
from neupath.io.sources import (
    all_read_as_integers,
    empty_end,
    empty_id,
    missing_ids,
    repeated_id,
    to_weights,
    unknown_end,
)
from neupath.io.tables import TableFile, cast_columns, check_parts
from neupath.io.text_files import file_errors

# ---- Chunks --------------------------------------------------------------------------------------
_MOST_ROWS = 1 << 20
_BATCH_ROWS, _BATCH_BYTES = 1 << 16, 1 << 20


@dataclass(frozen=True)
class Chunk:
    """Some neighbouring row groups of a part of a table, or some rows of one, from the table's row `first` on."""

    path: Path
    groups: range
    first: int
    rows: int
    skipped: int | None = None
    """Rows of the group that stand before these; nothing where all rows of the groups are taken."""

    def read(self, columns: Sequence[str]) -> pa.Table:
        """Read some columns as `load` does, with texts for what are no integers."""
        with file_errors(self.path):
            table = self._read_groups(columns) if self.skipped is None else self._read_rows(columns, self.skipped)
            return cast_columns(table, columns, dict.fromkeys(columns, pa.string())).combine_chunks()

    def _read_groups(self, columns: Sequence[str]) -> pa.Table:
        return pq.ParquetFile(self.path).read_row_groups(self.groups, columns=list(columns), use_threads=False)

    def _read_rows(self, columns: Sequence[str], skipped: int) -> pa.Table:
        """Read a row group a batch at a time, and keep the rows from `skipped` on."""
        file = pq.ParquetFile(self.path, pre_buffer=False, buffer_size=_BATCH_BYTES)
        kept, at = [], 0
        for batch in file.iter_batches(_BATCH_ROWS, list(self.groups), list(columns), use_threads=False):
            if at + len(batch) > skipped:
                kept.append(batch.slice(max(0, skipped - at), skipped + self.rows - max(at, skipped)))
            at += len(batch)
            if at >= skipped + self.rows:
                break
        return pa.Table.from_batches(kept)


def cut_table(file: TableFile, columns: Sequence[str], most: int) -> tuple[Chunk, ...]:
    """Cut a table into chunks of at most so many rows; a row group is cut where a task could not hold it."""
    chunks: list[Chunk] = []
    first = 0
    check_parts(file.parts, columns, dict.fromkeys(columns, pa.string()))
    for part in file.parts:
        metadata = pq.read_metadata(part)
        sizes = [metadata.row_group(at).num_rows for at in range(metadata.num_row_groups)]
        for groups in group(sizes, min(most, _MOST_ROWS)):
            rows = sum(sizes[at] for at in groups)
            chunks += _cut_group(Chunk(part.absolute(), groups, first, rows), most)
            first += rows
    return tuple(chunks) or (Chunk(file.parts[0].absolute(), range(0), 0, 0),)


def _cut_group(chunk: Chunk, most: int) -> list[Chunk]:
    """Cut a row group that has more rows than a task may hold; others stay whole, since a piece reads all before it."""
    step = -(-chunk.rows // max(1, -(-chunk.rows // most)))
    if step >= chunk.rows:
        return [chunk]
    return [
        replace(chunk, first=chunk.first + at, rows=min(step, chunk.rows - at), skipped=at)
        for at in range(0, chunk.rows, step)
    ]


def key_type(file: TableFile, column: str) -> pa.DataType:
    """Return the type that the ids of a column are read as, the same in all parts."""
    return file.declared_types([column], {column: pa.string()})[column]


def as_keys(ids: pa.Array, as_text: bool) -> pa.Array:
    """Return ids as they are compared: as texts, where one column of their type holds texts and another integers."""
    return pc.cast(ids, pa.string()) if as_text else ids


def digest_part(path: Path) -> str:
    """Return a text that differs between files of different content."""
    with file_errors(path), path.open("rb") as stream:
        return file_digest(stream, "sha256").hexdigest()


# ---- Ids -----------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Ids:
    """The ids of a node type in node order; file f has those of the rows starts[f] to starts[f+1]."""

    type: pa.DataType
    files: tuple[Path, ...]
    starts: tuple[int, ...]

    def __len__(self) -> int:
        return self.starts[-1]

    def take(self, rows: Rows) -> pa.Array:
        """Return the ids of some rows, in the order of the rows."""
        if len(self.files) == 1:
            return read_batch(self.files[0], 0)["id"].take(pa.array(rows))
        distinct, place = np.unique(rows, return_inverse=True)
        bounds = np.searchsorted(distinct, self.starts)
        found = [
            read_batch(path, 0)["id"].take(pa.array(distinct[bounds[f] : bounds[f + 1]] - self.starts[f]))
            for f, path in enumerate(self.files)
            if bounds[f] < bounds[f + 1]
        ]
        together = pa.concat_arrays(found) if found else pa.array([], self.type)
        return together.take(pa.array(place.reshape(-1)))


def write_ids(folder: Path, ids: pa.Array) -> Ids:
    """Write ids that are at hand."""
    path = folder.with_suffix(".arrow")
    write_batches(path, [pa.record_batch({"id": ids})])
    return Ids(ids.type, (path,), (0, len(ids)))


def write_batches(path: Path, batches: Sequence[pa.RecordBatch]) -> None:
    """Write batches of the same columns, so that each can be mapped into memory alone."""

    def write(temporary: Path) -> None:
        with pa.OSFile(str(temporary), "wb") as sink, pa.ipc.new_file(sink, batches[0].schema) as writer:
            for batch in batches:
                writer.write_batch(batch)

    write_whole(path, write)


def read_batch(path: Path, number: int) -> pa.RecordBatch:
    """Map one batch of a file into memory."""
    with pa.memory_map(str(path)) as source:
        return pa.ipc.open_file(source).get_batch(number)


# ---- Numbering -----------------------------------------------------------------------------------
# A chunk of a column lists its distinct ids in buckets, by a hash (`split_ids`). A bucket finds where each of its ids
# stands first (`gather_bucket`). Sorted by that place, chunk by chunk, they are the nodes in order (`order_ids`). Buckets
# then learn the numbers of their ids (`number_bucket`), and with them chunks those of the ids they listed. An id that
# many edges name is listed once a chunk: a hub is no more work than any other id.
_MIX = np.uint64(0x9E3779B97F4A7C15)
_POWERS = np.cumprod(np.full(1024, 0x100000001B3, dtype=np.uint64))
_HASHED_AT_ONCE = 1 << 16
Counts = NDArray[np.int64]
Stretch = tuple[int, int]
"""Where something begins in a file, and where it ends."""


@dataclass(frozen=True)
class IdColumn:
    """A column with the ids of one node type: of its own table, or of one end of a relation."""

    file: TableFile
    name: str
    chunks: tuple[Chunk, ...]
    end: tuple[int, int] | None = None
    """The number of the relation, and 0 for its source or 1 for its target; nothing for a node table."""

    def value(self, row: int) -> object:
        """Return the id in a row of the table."""
        chunk = next(chunk for chunk in reversed(self.chunks) if chunk.first <= row)
        return chunk.read([self.name])[self.name][row - chunk.first].as_py()


@dataclass(frozen=True)
class IdColumns:
    """All columns with the ids of one node type, in the order in which they number its nodes."""

    columns: tuple[IdColumn, ...]
    has_table: bool
    """Whether the first column is that of a node table, which then names all nodes."""
    kind: pa.DataType
    """What the ids are given as; texts that all read as integers become such where there is no table."""
    as_text: bool
    """Whether ids are compared as texts, because some columns hold integers and others do not."""

    @property
    def chunks(self) -> list[tuple[str, Chunk]]:
        return [(column.name, chunk) for column in self.columns for chunk in column.chunks]

    def first_chunk(self, end: tuple[int, int]) -> int:
        """Return the number, among all chunks, of the first one of an end's column."""
        at = next(number for number, column in enumerate(self.columns) if column.end == end)
        return sum(len(column.chunks) for column in self.columns[:at])


@dataclass(frozen=True)
class NumberedIds:
    """The nodes of a type in order, and for every chunk of its columns the numbers of the ids it lists."""

    folder: Path
    ids: Ids
    listed: Counts
    """Where the ids that chunk c lists lie among those of bucket b: from [b, c] to [b, c+1]."""

    def stretches(self, chunk: int) -> tuple[Stretch, ...]:
        """Return where the ids that a chunk lists lie in each bucket."""
        return tuple((int(row[chunk]), int(row[chunk + 1])) for row in self.listed)


@dataclass(frozen=True)
class IdSplit:
    """What a chunk lists: how many ids in each bucket, and the first rows that are empty or repeat an id, or -1."""

    sizes: Counts
    missing: int
    repeated: int


@dataclass(frozen=True)
class Gathered:
    """What a bucket holds: how many ids stand first in each chunk, and the first place where a table repeats one."""

    firsts: Counts
    repeated: int
    integers: bool


def number_ids(columns: IdColumns, folder: Path, buckets: int, workers: Workers) -> NumberedIds:
    """Number the ids of a node type, on the workers."""
    folder.mkdir()
    chunks = columns.chunks
    splits = workers.each(
        split_ids,
        [(chunk, name, columns.as_text, buckets, _file(folder, "split", c)) for c, (name, chunk) in enumerate(chunks)],
    )
    starts = np.concatenate([[0], np.cumsum([chunk.rows for _, chunk in chunks])]).astype(np.int64)
    own = len(columns.columns[0].chunks) if columns.has_table else len(chunks)
    gathered = workers.each(gather_bucket, [(folder, b, starts, own) for b in range(buckets)])
    if columns.has_table:
        _check_table(columns.columns[0], splits, gathered)
    firsts = np.array([found.firsts for found in gathered])[:, :own]
    starts_of = np.concatenate([[0], np.cumsum(firsts.sum(axis=0))])
    as_integers = not columns.has_table and starts_of[-1] > 0 and all(found.integers for found in gathered)
    kind = pa.int64() if as_integers else columns.kind
    in_bucket, in_chunk = _cumulated(firsts, axis=1), _cumulated(firsts, axis=0)
    filled = [c for c in range(own) if starts_of[c] < starts_of[c + 1]]
    workers.each(order_ids, [(folder, c, kind, int(starts_of[c]), in_bucket[:, c : c + 2]) for c in filled])
    workers.each(number_bucket, [(folder, b, [(c, *in_chunk[b : b + 2, c]) for c in filled]) for b in range(buckets)])
    files = tuple(_file(folder, "ids", c) for c in filled)
    ids = Ids(kind, files, (*(int(starts_of[c]) for c in filled), int(starts_of[-1])))
    return NumberedIds(folder, ids, _cumulated(np.array([split.sizes for split in splits]).T, axis=1))


def split_ids(chunk: Chunk, column: str, as_text: bool, buckets: int, path: Path) -> IdSplit:
    """Write the distinct ids of a chunk, in order of appearance, a batch a bucket."""
    encoded = as_keys(chunk.read([column])[column].combine_chunks(), as_text).dictionary_encode()
    codes, keys = codes_of(encoded), encoded.dictionary
    is_first = _is_first(codes)
    is_id = np.ones(len(keys) + 1, dtype=np.bool_)
    is_id[[*missing_ids(keys), -1]] = False
    kept = np.flatnonzero(is_id)
    bucket = hash_ids(keys.take(pa.array(kept))) % np.uint64(buckets)
    ordered = kept[np.argsort(bucket, kind="stable")]
    sizes = np.bincount(bucket.astype(np.int64), minlength=buckets)
    batch = pa.record_batch(
        {
            "id": keys.take(pa.array(ordered)),
            "code": ordered.astype(np.int32),
            "row": np.flatnonzero(is_first)[ordered].astype(np.int32),
        }
    )
    ends = np.cumsum(sizes)
    write_batches(path, [batch.slice(end - size, size) for end, size in zip(ends, sizes, strict=True)])
    missing = np.flatnonzero(~is_id[codes])
    repeated = np.flatnonzero(~is_first & (codes >= 0))
    return IdSplit(sizes, _first(missing), _first(repeated))


def gather_bucket(folder: Path, bucket: int, starts: Rows, own: int) -> Gathered:
    """Find the distinct ids of a bucket and where each stands first; the chunks of a node table are the `own` first."""
    batches = [read_batch(_file(folder, "split", chunk), bucket) for chunk in range(len(starts) - 1)]
    encoded = pa.concat_arrays([batch["id"] for batch in batches]).dictionary_encode()
    places = np.concatenate([start + batch["row"].to_numpy() for start, batch in zip(starts, batches, strict=False)])
    codes = codes_of(encoded)
    is_first = _is_first(codes)
    first = places[is_first]
    write_batches(_file(folder, "bucket", bucket), [pa.record_batch({"id": encoded.dictionary})])
    write_arrays(_file(folder, "places", bucket), first)
    write_arrays(_file(folder, "codes", bucket), codes)
    firsts = np.bincount(np.searchsorted(starts, first, side="right") - 1, minlength=len(starts) - 1)
    again = places[~is_first]
    keys = encoded.dictionary
    integers = not pa.types.is_string(keys.type) or all_read_as_integers(keys)
    return Gathered(firsts, _first(again[again < starts[own]]), integers)


def order_ids(folder: Path, chunk: int, kind: pa.DataType, number: int, stretches: Counts) -> None:
    """Write the ids that stand first in a chunk in order, and for each bucket the numbers of its own among them."""
    places = np.concatenate([read_arrays(_file(folder, "places", b), *map(int, s))[0] for b, s in enumerate(stretches)])
    ids = [
        read_batch(_file(folder, "bucket", b), 0)["id"].slice(first, last - first)
        for b, (first, last) in enumerate(stretches)
    ]
    ordered = np.argsort(places)
    found = pc.cast(pa.concat_arrays(ids).take(pa.array(ordered)), kind)
    write_batches(_file(folder, "ids", chunk), [pa.record_batch({"id": found})])
    numbers = np.empty(len(ordered), dtype=np.int64)
    numbers[ordered] = number + np.arange(len(ordered))
    write_arrays(_file(folder, "numbers-of-chunk", chunk), numbers)


def number_bucket(folder: Path, bucket: int, stretches: Sequence[tuple[int, int, int]]) -> None:
    """Write the number of every id that chunks list in a bucket; -1 for what is not among the nodes."""
    codes = read_arrays(_file(folder, "codes", bucket))[0]
    numbers = np.full(int(codes.max(initial=-1)) + 1, -1, dtype=np.int64)
    at = 0
    for chunk, first, last in stretches:
        numbers_there = _file(folder, "numbers-of-chunk", chunk)
        numbers[at : at + last - first] = read_arrays(numbers_there, int(first), int(last))[0]
        at += last - first
    write_arrays(_file(folder, "numbers", bucket), numbers[codes])


def read_numbers(folder: Path, chunk: int, stretches: Sequence[Stretch], keys: int) -> Rows:
    """Return the number of each distinct id of a chunk, by its code; -1 for what is empty or not among the nodes."""
    numbers = np.full(keys, -1, dtype=np.int64)
    for bucket, (first, last) in enumerate(stretches):
        if first < last:
            codes = read_batch(_file(folder, "split", chunk), bucket)["code"].to_numpy()
            numbers[codes] = read_arrays(_file(folder, "numbers", bucket), first, last)[0]
    return numbers


def codes_of(encoded: pa.Array) -> Rows:
    """Return the codes of a dictionary, -1 for what is missing."""
    codes: Rows = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    return codes


def hash_ids(ids: pa.Array) -> NDArray[np.uint64]:
    """Return a number for each id that looks like chance."""
    if not pa.types.is_string(ids.type):
        return _mixed(ids.to_numpy(zero_copy_only=False).astype(np.uint64))
    blocks = [ids.slice(at, _HASHED_AT_ONCE) for at in range(0, len(ids), _HASHED_AT_ONCE)]
    return np.concatenate([np.zeros(0, np.uint64), *(_mixed(_hash_texts(block)) for block in blocks)])


def _hash_texts(texts: pa.Array) -> NDArray[np.uint64]:
    """Add up the bytes of each text, times a number that depends on their place; no text may be empty."""
    _, offsets, content = texts.buffers()
    ends = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
    letters = np.frombuffer(content, np.uint8)[ends[0] : ends[-1]]
    starts = ends[:-1] - ends[0]
    place = np.arange(len(letters)) - np.repeat(starts, np.diff(ends))
    return np.add.reduceat(letters * _POWERS[np.minimum(place, len(_POWERS) - 1)], starts)


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    return (values * _MIX) >> np.uint64(32)


def _is_first(codes: Rows) -> NDArray[np.bool_]:
    """Mark where each code stands first; codes are given in order of appearance."""
    return np.diff(np.maximum.accumulate(codes), prepend=-1) > 0


def _first(rows: Rows) -> int:
    return int(rows.min()) if len(rows) else -1


def _cumulated(counts: Counts, axis: int) -> Counts:
    return np.insert(np.cumsum(counts, axis=axis), 0, 0, axis=axis)


def _check_table(column: IdColumn, splits: Sequence[IdSplit], gathered: Sequence[Gathered]) -> None:
    """Refuse a node table with an empty or a repeated id, as `load` does."""
    rows = list(zip(column.chunks, splits, strict=False))
    missing = [chunk.first + split.missing for chunk, split in rows if split.missing >= 0]
    repeated = [chunk.first + split.repeated for chunk, split in rows if split.repeated >= 0]
    repeated += [found.repeated for found in gathered if found.repeated >= 0]
    if missing:
        raise empty_id(column.file.place(min(missing)))
    if repeated:
        raise repeated_id(column.file.place(min(repeated)), column.value(min(repeated)))


def _file(folder: Path, what: str, number: int) -> Path:
    """Return where something of a chunk or of a bucket lies."""
    return folder / f"{what}-{number:06}"


# ---- Numbered edges ------------------------------------------------------------------------------
# A chunk is numbered whole, wherever its edges lead, so that the edges of a hub are spread over the tasks as those of any
# other node are. A strip of rows is then gathered from all chunks, each row in the order of the table: parallel edges
# add up in the order in which `load` adds them, and are the same to the bit.
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
                raise unknown_end(place, node_type, own[0][1].value, count)
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
