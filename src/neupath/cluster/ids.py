"""Ids: those of the nodes of one type, in files of which a task reads the rows it needs."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from neupath.files import write_whole
from neupath.nodes import Rows


@dataclass(frozen=True)
class Ids:
    """The ids of a node type in node order; file f has those of the rows starts[f] to starts[f+1]."""

    kind: pa.DataType
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
        together = pa.concat_arrays(found) if found else pa.array([], self.kind)
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
