"""Id encoding on workers: the ids of a node type, spread over chunks of tables, become row numbers in files.

1. A chunk of a column writes its distinct ids into buckets by a hash (`split_ids`).
2. A bucket finds where each of its ids stands first (`gather_bucket`).
3. Sorted by that place, chunk by chunk, the ids are the nodes in the order of `load` (`order_ids`).
4. Buckets look up the rows of their ids (`number_bucket`), and chunks read those of theirs (`read_numbers`).

A chunk lists an id once, however many edges name it, so a hub is no more work than any other id.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import file_digest
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from neupath._runtime.files import write_whole
from neupath.cluster.tiles import group, read_arrays, write_arrays
from neupath.cluster.workers import Workers
from neupath.graph.hin import mix64
from neupath.graph.nodes import Rows
from neupath.io.plan import all_read_as_integers, empty_id, missing_ids, repeated_id
from neupath.io.tables import TableFile, cast_columns, check_parts
from neupath.io.text_files import file_errors

# ---- Chunks of tables ----------------------------------------------------------------------------
_MOST_ROWS = 1 << 20
_BATCH_ROWS, _BATCH_BYTES = 1 << 16, 1 << 20


@dataclass(frozen=True)
class Chunk:
    """Consecutive row groups of a Parquet file, or consecutive rows of one row group; row `first` of the table on."""

    path: Path
    groups: range
    first: int
    rows: int
    skipped: int | None = None  # the rows of the row group before these; None where all rows of the groups are taken

    def read(self, columns: Sequence[str]) -> pa.Table:
        """Read some columns as `load` does: as integers or as texts."""
        with file_errors(self.path):
            if self.skipped is None:
                table = pq.ParquetFile(self.path).read_row_groups(self.groups, list(columns), use_threads=False)
            else:
                table = self._read_rows(columns, self.skipped)
            return cast_columns(table, columns, dict.fromkeys(columns, pa.string())).combine_chunks()

    def _read_rows(self, columns: Sequence[str], skipped: int) -> pa.Table:
        file = pq.ParquetFile(self.path, pre_buffer=False, buffer_size=_BATCH_BYTES)
        batches, at = [], 0
        for batch in file.iter_batches(_BATCH_ROWS, list(self.groups), list(columns), use_threads=False):
            if at + len(batch) > skipped:
                batches.append(batch.slice(max(0, skipped - at), skipped + self.rows - max(at, skipped)))
            at += len(batch)
            if at >= skipped + self.rows:
                break
        return pa.Table.from_batches(batches)


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
    """Cut a row group with more rows than a task may hold; others stay whole, since a piece reads all before it."""
    step = -(-chunk.rows // max(1, -(-chunk.rows // most)))
    if step >= chunk.rows:
        return [chunk]
    return [
        replace(chunk, first=chunk.first + at, rows=min(step, chunk.rows - at), skipped=at)
        for at in range(0, chunk.rows, step)
    ]


def digest_part(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with file_errors(path), path.open("rb") as stream:
        return file_digest(stream, "sha256").hexdigest()


# ---- Id files ------------------------------------------------------------------------------------
@dataclass(frozen=True)
class IdFiles:
    """The ids of a node type in node order; file f holds those of the rows starts[f] to starts[f+1]."""

    type: pa.DataType
    files: tuple[Path, ...]
    starts: tuple[int, ...]

    def __len__(self) -> int:
        return self.starts[-1]

    def take(self, rows: Rows) -> pa.Array:
        if len(self.files) == 1:
            return read_batch(self.files[0], 0)["id"].take(pa.array(rows))
        distinct, place = np.unique(rows, return_inverse=True)
        bounds = np.searchsorted(distinct, self.starts)
        ids = [
            read_batch(path, 0)["id"].take(pa.array(distinct[bounds[f] : bounds[f + 1]] - self.starts[f]))
            for f, path in enumerate(self.files)
            if bounds[f] < bounds[f + 1]
        ]
        return pa.concat_arrays(ids or [pa.array([], self.type)]).take(pa.array(place.reshape(-1)))


def write_ids(path: Path, ids: pa.Array) -> IdFiles:
    """Write ids that this process holds."""
    write_batches(path, [pa.record_batch({"id": ids})])
    return IdFiles(ids.type, (path,), (0, len(ids)))


def copy_names(chunk: Chunk, column: str, path: Path) -> None:
    """Write the names in a chunk of a node table as `load` reads them."""
    names = chunk.read([column])[column].combine_chunks().cast(pa.string())
    write_batches(path, [pa.record_batch({"id": names})])


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


# ---- Id columns ----------------------------------------------------------------------------------
Counts = NDArray[np.int64]
Stretch = tuple[int, int]  # where a range begins in a file, and where it ends


@dataclass(frozen=True)
class IdColumn:
    """A column with the ids of one node type: of its node table, or of one end of a relation."""

    file: TableFile
    name: str
    chunks: tuple[Chunk, ...]
    end: tuple[int, int] | None = None  # of a relation: its number, and 0 (source) or 1 (target)

    def value(self, row: int) -> object:
        chunk = next(chunk for chunk in reversed(self.chunks) if chunk.first <= row)
        return chunk.read([self.name])[self.name][row - chunk.first].as_py()


@dataclass(frozen=True)
class IdColumns:
    """All columns with the ids of one node type, in the order in which they number its nodes."""

    columns: tuple[IdColumn, ...]
    has_table: bool  # whether the first column is that of a node table, which lists all nodes
    kind: pa.DataType  # the type of the ids; without a node table, texts that all read as integers become integers
    as_text: bool  # whether ids are compared as texts, because some columns hold integers and others do not

    @property
    def chunks(self) -> list[tuple[str, Chunk]]:
        return [(column.name, chunk) for column in self.columns for chunk in column.chunks]

    def first_chunk(self, end: tuple[int, int]) -> int:
        """Return the number, among all chunks, of the first one of an end's column."""
        at = next(number for number, column in enumerate(self.columns) if column.end == end)
        return sum(len(column.chunks) for column in self.columns[:at])


@dataclass(frozen=True)
class NumberedIds:
    """The nodes of a type in order, and for every chunk of its columns the rows of the ids it lists."""

    folder: Path
    ids: IdFiles
    listed: Counts  # shape (buckets, chunks + 1): the ids that chunk c lists stand in bucket b from [b, c] to [b, c+1]

    def stretches(self, chunk: int) -> tuple[Stretch, ...]:
        """Return where the ids that a chunk lists stand in each bucket."""
        return tuple((int(row[chunk]), int(row[chunk + 1])) for row in self.listed)


def dictionary_of(ids: pa.Array, as_text: bool) -> tuple[Rows, pa.Array]:
    """Return the code of each id, -1 for a null, and the distinct ids in order of appearance."""
    encoded = (pc.cast(ids, pa.string()) if as_text else ids).dictionary_encode()
    codes: Rows = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    return codes, encoded.dictionary


# ---- Numbering -----------------------------------------------------------------------------------
def number_ids(columns: IdColumns, folder: Path, num_buckets: int, workers: Workers) -> NumberedIds:
    """Number the ids of a node type, on the workers."""
    folder.mkdir()
    chunks = columns.chunks
    tasks = [
        (chunk, name, columns.as_text, num_buckets, _file(folder, "split", c)) for c, (name, chunk) in enumerate(chunks)
    ]
    sizes, missing, repeated = zip(*workers.each(split_ids, tasks), strict=True)
    starts = np.concatenate([[0], np.cumsum([chunk.rows for _, chunk in chunks])]).astype(np.int64)
    num_defining = len(columns.columns[0].chunks) if columns.has_table else len(chunks)
    buckets = workers.each(gather_bucket, [(folder, b, starts, num_defining) for b in range(num_buckets)])
    first_counts, repeated_places, all_integers = zip(*buckets, strict=True)
    if columns.has_table:
        _check_table(columns.columns[0], missing, repeated, repeated_places)
    firsts = np.array(first_counts)[:, :num_defining]
    first_row = np.concatenate([[0], np.cumsum(firsts.sum(axis=0))])
    as_integers = not columns.has_table and first_row[-1] > 0 and all(all_integers)
    kind = pa.int64() if as_integers else columns.kind
    in_bucket, in_chunk = _cumulated(firsts, axis=1), _cumulated(firsts, axis=0)
    filled = [c for c in range(num_defining) if first_row[c] < first_row[c + 1]]
    workers.each(order_ids, [(folder, c, kind, int(first_row[c]), in_bucket[:, c : c + 2]) for c in filled])
    stretches = [[(c, *in_chunk[b : b + 2, c]) for c in filled] for b in range(num_buckets)]
    workers.each(number_bucket, [(folder, b, stretches[b]) for b in range(num_buckets)])
    files = tuple(_file(folder, "ids", c) for c in filled)
    ids = IdFiles(kind, files, (*(int(first_row[c]) for c in filled), int(first_row[-1])))
    return NumberedIds(folder, ids, _cumulated(np.array(sizes).T, axis=1))


def split_ids(chunk: Chunk, column: str, as_text: bool, num_buckets: int, path: Path) -> tuple[Counts, int, int]:
    """Write the distinct ids of a chunk, in order of appearance, one batch per bucket.

    Returns the number of ids in each bucket, and the first row with an empty id and with a repeated one, or -1.
    """
    codes, keys = dictionary_of(chunk.read([column])[column].combine_chunks(), as_text)
    is_first = _is_first(codes)
    is_id = np.ones(len(keys) + 1, dtype=np.bool_)
    is_id[[*missing_ids(keys), -1]] = False
    known = np.flatnonzero(is_id)
    bucket = hash_ids(keys.take(pa.array(known))) % np.uint64(num_buckets)
    ordered = known[np.argsort(bucket, kind="stable")]
    sizes = np.bincount(bucket.astype(np.int64), minlength=num_buckets)
    rows = np.flatnonzero(is_first)[ordered].astype(np.int32)
    batch = pa.record_batch({"id": keys.take(pa.array(ordered)), "code": ordered.astype(np.int32), "row": rows})
    ends = np.cumsum(sizes)
    write_batches(path, [batch.slice(end - size, size) for end, size in zip(ends, sizes, strict=True)])
    missing = np.flatnonzero(~is_id[codes])
    repeated = np.flatnonzero(~is_first & (codes >= 0))
    return sizes, _first(missing), _first(repeated)


def gather_bucket(folder: Path, bucket: int, starts: Rows, num_defining: int) -> tuple[Counts, int, bool]:
    """Find the distinct ids of a bucket and where each stands first; nodes come from the first `num_defining`.

    Returns how many ids stand first in each chunk, the first place where a node table repeats one (or -1), and whether
    all ids are integers.
    """
    batches = [read_batch(_file(folder, "split", chunk), bucket) for chunk in range(len(starts) - 1)]
    places = np.concatenate([start + batch["row"].to_numpy() for start, batch in zip(starts, batches, strict=False)])
    codes, keys = dictionary_of(pa.concat_arrays([batch["id"] for batch in batches]), as_text=False)
    is_first = _is_first(codes)
    first, again = places[is_first], places[~is_first]
    write_batches(_file(folder, "bucket", bucket), [pa.record_batch({"id": keys})])
    write_arrays(_file(folder, "places", bucket), first)
    write_arrays(_file(folder, "codes", bucket), codes)
    firsts = np.bincount(np.searchsorted(starts, first, side="right") - 1, minlength=len(starts) - 1)
    all_integers = not pa.types.is_string(keys.type) or all_read_as_integers(keys)
    return firsts, _first(again[again < starts[num_defining]]), all_integers


def order_ids(folder: Path, chunk: int, kind: pa.DataType, first_row: int, stretches: Counts) -> None:
    """Write the ids that stand first in a chunk in order, and their rows in the order of the buckets."""
    places = np.concatenate([read_arrays(_file(folder, "places", b), *map(int, s))[0] for b, s in enumerate(stretches)])
    ids = [
        read_batch(_file(folder, "bucket", b), 0)["id"].slice(first, last - first)
        for b, (first, last) in enumerate(stretches)
    ]
    order = np.argsort(places)
    ordered = pc.cast(pa.concat_arrays(ids).take(pa.array(order)), kind)
    write_batches(_file(folder, "ids", chunk), [pa.record_batch({"id": ordered})])
    numbers = np.empty(len(order), dtype=np.int64)
    numbers[order] = first_row + np.arange(len(order))
    write_arrays(_file(folder, "numbers-of-chunk", chunk), numbers)


def number_bucket(folder: Path, bucket: int, stretches: Sequence[tuple[int, int, int]]) -> None:
    """Write the row of every id that chunks list in a bucket; -1 for an id that is not a node."""
    codes = read_arrays(_file(folder, "codes", bucket))[0]
    numbers = np.full(int(codes.max(initial=-1)) + 1, -1, dtype=np.int64)
    at = 0
    for chunk, first, last in stretches:
        path = _file(folder, "numbers-of-chunk", chunk)
        numbers[at : at + last - first] = read_arrays(path, int(first), int(last))[0]
        at += last - first
    write_arrays(_file(folder, "numbers", bucket), numbers[codes])


def read_numbers(folder: Path, chunk: int, stretches: Sequence[Stretch], num_ids: int) -> Rows:
    """Return the row of each distinct id of a chunk, by its code; -1 for an id that is empty or not a node."""
    numbers = np.full(num_ids, -1, dtype=np.int64)
    for bucket, (first, last) in enumerate(stretches):
        if first < last:
            codes = read_batch(_file(folder, "split", chunk), bucket)["code"].to_numpy()
            numbers[codes] = read_arrays(_file(folder, "numbers", bucket), first, last)[0]
    return numbers


def ids_of_nodes(folder: Path) -> Iterator[pa.Array]:
    """Yield the ids of the nodes that were numbered into a folder, file by file."""
    yield from (read_batch(path, 0)["id"] for path in sorted(folder.glob("ids-*")))


def _is_first(codes: Rows) -> NDArray[np.bool_]:
    """Mark where each code stands first; codes ascend in order of appearance."""
    return np.diff(np.maximum.accumulate(codes), prepend=-1) > 0


def _first(rows: Rows) -> int:
    return int(rows.min()) if len(rows) else -1


def _cumulated(counts: Counts, axis: int) -> Counts:
    return np.insert(np.cumsum(counts, axis=axis), 0, 0, axis=axis)


def _check_table(column: IdColumn, missing: Sequence[int], repeated: Sequence[int], places: Sequence[int]) -> None:
    """Raise as `load` does if a node table has an empty id, or a repeated one within a chunk or across chunks."""
    empty = [chunk.first + row for chunk, row in zip(column.chunks, missing, strict=False) if row >= 0]
    again = [chunk.first + row for chunk, row in zip(column.chunks, repeated, strict=False) if row >= 0]
    again += [place for place in places if place >= 0]
    if empty:
        raise empty_id(column.file.place(min(empty)))
    if again:
        raise repeated_id(column.file.place(min(again)), column.value(min(again)))


def _file(folder: Path, name: str, number: int) -> Path:
    return folder / f"{name}-{number:06}"


# ---- Hashing -------------------------------------------------------------------------------------
_POWERS = np.cumprod(np.full(1024, 0x100000001B3, dtype=np.uint64))
_HASHED_AT_ONCE = 1 << 16


def hash_ids(ids: pa.Array) -> NDArray[np.uint64]:
    """Return a hash of each id, the same in every process."""
    if not pa.types.is_string(ids.type):
        return mix64(ids.to_numpy(zero_copy_only=False).astype(np.uint64))  # type: ignore[no-any-return]
    blocks = [ids.slice(at, _HASHED_AT_ONCE) for at in range(0, len(ids), _HASHED_AT_ONCE)]
    return np.concatenate([np.zeros(0, np.uint64), *(mix64(_hash_texts(block)) for block in blocks)])


def _hash_texts(texts: pa.Array) -> NDArray[np.uint64]:
    """Add up the bytes of each text, each times a number that depends on its place; no text may be empty."""
    _, offsets, content = texts.buffers()
    ends = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
    letters = np.frombuffer(content, np.uint8)[ends[0] : ends[-1]]
    starts = ends[:-1] - ends[0]
    place = np.arange(len(letters)) - np.repeat(starts, np.diff(ends))
    return np.add.reduceat(letters * _POWERS[np.minimum(place, len(_POWERS) - 1)], starts)
