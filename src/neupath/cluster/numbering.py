"""Numbering: ids become rows in the order in which `load` numbers them, by tasks that each hold a share of the ids.

A chunk of a column lists its distinct ids in buckets, by a hash (`split_ids`). A bucket finds where each of its ids
stands first (`gather_bucket`). Sorted by that place, chunk by chunk, they are the nodes in order (`order_ids`). Buckets
then learn the numbers of their ids (`number_bucket`), and with them chunks those of the ids they listed. An id that
many edges name is listed once a chunk: a hub is no more work than any other id.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from neupath.cluster.arrays import read_arrays, write_arrays
from neupath.cluster.chunks import Chunk, as_keys
from neupath.cluster.ids import Ids, read_batch, write_batches
from neupath.cluster.workers import Workers
from neupath.datasets.assemble import all_read_as_integers, missing_ids
from neupath.datasets.faults import empty_id, repeated_id
from neupath.datasets.tables import TableFile
from neupath.nodes import Rows

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
class Split:
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


def split_ids(chunk: Chunk, column: str, as_text: bool, buckets: int, path: Path) -> Split:
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
    return Split(sizes, _first(missing), _first(repeated))


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


def _check_table(column: IdColumn, splits: Sequence[Split], gathered: Sequence[Gathered]) -> None:
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
