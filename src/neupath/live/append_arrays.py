"""Append-only columns and tables of nodes: new values go behind those that readers see, and nothing is copied."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from neupath.errors import GraphError
from neupath.graph.nodes import Nodes

_MOST_BYTES = np.iinfo(np.int32).max  # bytes of text that one Arrow array can hold


def grown(array: NDArray[Any], wanted: int, fill: Any = None) -> NDArray[Any]:
    """Return the array, or, if it has fewer than `wanted` entries, one at least twice as long, filled with `fill`.

    >>> grown(np.array([1, 2]), 3, -1)
    array([ 1,  2, -1, -1])
    """
    if wanted <= len(array):
        return array
    longer = np.empty(max(wanted, 2 * len(array)), dtype=array.dtype)
    longer[: len(array)] = array
    if fill is not None:
        longer[len(array) :] = fill
    return longer


class AppendColumn:
    """An Arrow array of integers or texts with room behind it, which the columns appended to it share.

    >>> column = AppendColumn(pa.array(["Mike", None]))
    >>> column.append(pa.array(["Zoe"])).array.to_pylist()
    ['Mike', None, 'Zoe']
    """

    def __init__(self, array: pa.Array, room: "_Room | None" = None) -> None:
        self.array, self._room = array, room

    def append(self, more: pa.Array) -> "AppendColumn":
        """Return the column with some values appended; this one stays as it is."""
        is_whole = pa.types.is_int64(more.type) and not self.array.null_count and not more.null_count
        if more.type != self.array.type or not (pa.types.is_string(more.type) or is_whole):
            return AppendColumn(pa.concat_arrays([self.array, more]))
        room = self._room
        if room is None or room.size != len(self.array):  # values were appended to it already
            room = _Room(self.array)
        room.append(more)
        return AppendColumn(room.array(), room)


class _Room:
    """Buffers of an Arrow array with room behind it; one writer appends, and never touches what is used."""

    def __init__(self, array: pa.Array) -> None:
        self._type, self._is_text = array.type, pa.types.is_string(array.type)
        self.size, self._nulls = 0, 0
        self._values: NDArray[Any] = np.empty(0, dtype=np.uint8 if self._is_text else np.int64)
        self._ends = np.zeros(1, dtype=np.int32)
        self._valid = np.zeros(0, dtype=np.uint8)
        self.append(array)

    def append(self, more: pa.Array) -> None:
        values, ends = _texts_of(more) if self._is_text else (more.to_numpy(), self._ends[:0])
        start, size = self._used, self.size + len(more)
        if self._is_text and start + len(values) > _MOST_BYTES:
            raise GraphError(f"the texts of a column would have {start + len(values):,} bytes; 2 GiB is the most")
        self._values = grown(self._values, start + len(values))
        self._values[start : start + len(values)] = values
        self._ends = grown(self._ends, size + 1)
        self._ends[self.size + 1 : self.size + 1 + len(ends)] = start + ends
        self._valid = grown(self._valid, size // 8 + 1, 0)
        there = self.size + np.flatnonzero(more.is_valid())
        np.bitwise_or.at(self._valid, there // 8, (1 << there % 8).astype(np.uint8))
        self.size, self._nulls = size, self._nulls + more.null_count

    @property
    def _used(self) -> int:
        return int(self._ends[self.size]) if self._is_text else self.size

    def array(self) -> pa.Array:
        """Return what is used as an array, without a copy."""
        valid = pa.py_buffer(self._valid[: self.size // 8 + 1]) if self._nulls else None
        ends = [pa.py_buffer(self._ends[: self.size + 1])] if self._is_text else []
        values = pa.py_buffer(self._values[: self._used])
        return pa.Array.from_buffers(self._type, self.size, [valid, *ends, values], self._nulls)


def _texts_of(array: pa.Array) -> tuple[NDArray[np.uint8], NDArray[np.int32]]:
    """Return the bytes of all texts, and where each ends."""
    if not len(array):
        return np.empty(0, dtype=np.uint8), np.empty(0, dtype=np.int32)
    _, offsets, content = array.buffers()
    bounds = np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array) + 1]
    letters = np.empty(0, dtype=np.uint8) if content is None else np.frombuffer(content, np.uint8)
    return letters[bounds[0] : bounds[-1]], bounds[1:] - bounds[0]


@dataclass(frozen=True)
class AppendTable:
    """A table in parts, each longer than the next, so that parts are few and rows are rarely copied.

    >>> table = AppendTable((pa.table({"year": [1999] * 100}),))
    >>> for year in range(2000, 2007):
    ...     table = table.append(pa.table({"year": [year]}))
    >>> [len(part) for part in table.parts]
    [100, 4, 2, 1]
    """

    parts: tuple[pa.Table, ...]

    def append(self, more: pa.Table) -> "AppendTable":
        """Return the table with some rows appended; this one stays as it is."""
        kept, size = len(self.parts), len(more)
        while kept and len(self.parts[kept - 1]) <= size:
            kept -= 1
            size += len(self.parts[kept])
        joined = pa.concat_tables([*self.parts[kept:], more]).combine_chunks()
        return AppendTable((*self.parts[:kept], joined))

    def table(self) -> pa.Table:
        """Return all rows, without a copy."""
        return pa.concat_tables(self.parts)


@dataclass(frozen=True)
class AppendNodes:
    """The nodes of a type, to which others can be appended."""

    nodes: Nodes
    ids: AppendColumn
    names: AppendColumn | None
    attributes: AppendTable | None

    @classmethod
    def over(cls, nodes: Nodes) -> "AppendNodes":
        names = None if nodes.names is None else AppendColumn(nodes.names)
        attributes = AppendTable((nodes.attributes,)) if nodes.attributes.num_columns else None
        return cls(nodes, AppendColumn(nodes.ids), names, attributes)

    def append(self, more: Nodes) -> "AppendNodes":
        """Return the nodes with others of the same type appended; their ids must be new."""
        ids, names = self.ids.append(more.ids), None if self.names is None else self.names.append(more.names)
        attributes = None if self.attributes is None else self.attributes.append(more.attributes)
        table = self.nodes.attributes if attributes is None else attributes.table()
        nodes = Nodes(self.nodes.node_type, ids.array, None if names is None else names.array, table, distinct=True)
        return AppendNodes(nodes, ids, names, attributes)


def in_one_piece(nodes: Nodes) -> Nodes:
    """Return the same nodes with their attributes in one part."""
    if all(column.num_chunks <= 1 for column in nodes.attributes.columns):
        return nodes
    return replace(nodes, attributes=nodes.attributes.combine_chunks(), distinct=True)
