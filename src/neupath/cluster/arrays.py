"""Several arrays in one file, one after the other in NumPy's own format, of which a stretch can be read alone."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from neupath.files import write_whole

Array = NDArray[Any]


def write_arrays(path: Path, *arrays: Array) -> None:
    """Write arrays of one dimension to a file, whole or not at all."""

    def write(temporary: Path) -> None:
        with temporary.open("wb") as stream:
            for array in arrays:
                npy.write_array(stream, array, version=(1, 0), allow_pickle=False)

    write_whole(path, write)


def read_arrays(path: Path, first: int = 0, last: int | None = None) -> list[Array]:
    """Read all arrays of a file, or the same stretch of each."""
    with path.open("rb") as stream:
        return list(_read(stream, path.stat().st_size, first, last))


def _read(stream: BinaryIO, size: int, first: int, last: int | None) -> Iterator[Array]:
    while stream.tell() < size:
        npy.read_magic(stream)
        (count,), _, kind = npy.read_array_header_1_0(stream)
        begins = stream.tell()
        stream.seek(begins + first * kind.itemsize)
        yield np.fromfile(stream, kind, (count if last is None else last) - first)
        stream.seek(begins + count * kind.itemsize)
