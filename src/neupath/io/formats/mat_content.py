"""Read the content of a MATLAB file, in a process of its own: scipy's reader crashes on some damaged files.

As a script, it takes a file, a folder and the keys to take; it writes the matrices and names into the folder, where
`MatContent.read` finds them. It imports neither neupath nor pyarrow, so that the process starts quickly.
"""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from scipy.sparse import coo_array, issparse

ACM_KEYS = ("PvsA", "PvsC", "AvsF")
KEY = re.compile(r"^([A-Za-z0-9]+?)(?:_?vs_?|_to_|_2_|2|_)([A-Za-z0-9]+)$")
_LEAST_MEMORY, _MEMORY_PER_BYTE = 2 << 30, 64
_LEAST_SECONDS, _BYTES_PER_SECOND = 120, 1 << 20
"""What reading may take: bytes of memory and seconds of processor time, more for larger files."""
_OUT_OF_MEMORY = ("MemoryError", "bad_alloc", "zlib.error: Error -4")
"""How Python, C++ and zlib end where there is no more memory."""


class ReadingLimitError(Exception):
    """Reading a file took more memory or time than it may."""


@dataclass(frozen=True)
class MatContent:
    """What a .mat file holds."""

    keys: Sequence[str]
    relations: Sequence[str]
    """The keys to read unless others are asked for."""
    matrices: Mapping[str, "coo_array[np.float64]"]
    """The matrices of `relations`, or of the keys that are asked for."""
    names: Mapping[str, Sequence[str]]
    """Cell arrays of texts."""

    @staticmethod
    def read(path: Path, keys: Sequence[str]) -> "MatContent":
        """Read a file in a child process; raise ValueError if it is damaged, ReadingLimitError if it costs much."""
        with TemporaryDirectory() as folder:
            command = [sys.executable, "-P", __file__, str(path), folder, *keys]
            child = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
            try:
                header = json.loads((Path(folder) / "header.json").read_text(encoding="ascii"))
                with np.load(Path(folder) / "matrices.npz", allow_pickle=False) as arrays:
                    matrices = {key: _restore(arrays, at, *shape) for at, (key, shape) in enumerate(header["shapes"])}
            except FileNotFoundError as error:
                raise _failure(child, path) from error
        return MatContent(header["keys"], header["relations"], matrices, header["names"])


def _restore(arrays: Any, at: int, rows: int, columns: int) -> "coo_array[np.float64]":
    return coo_array((arrays[f"data{at}"], (arrays[f"row{at}"], arrays[f"col{at}"])), shape=(rows, columns))


def _failure(child: "subprocess.CompletedProcess[str]", path: Path) -> ValueError | ReadingLimitError:
    """Say why a child could not read a file."""
    memory, seconds = _limits(path)
    lines = child.stderr.strip().splitlines() or ["the reader ended without a word"]
    ended_by = signal.Signals(-child.returncode).name if child.returncode < 0 else ""
    if ended_by == "SIGXCPU":
        return ReadingLimitError(f"takes more than {seconds:,} seconds to read; convert it to tables")
    if any(word in lines[-1] or word in lines[0] for word in _OUT_OF_MEMORY):
        return ReadingLimitError(f"takes more than {memory / 2**30:,.1f} GiB of memory to read; convert it to tables")
    if ended_by == "SIGKILL":
        return ReadingLimitError(
            f"could not be read: the system killed the reader, as it does when memory runs out (it may take "
            f"{memory / 2**30:,.1f} GiB); free some memory and try again, or convert the file to tables"
        )
    if ended_by:
        return ValueError(f"its reader crashed ({ended_by}), so the file is damaged")
    return ValueError(lines[-1])


# ---- In the child --------------------------------------------------------------------------------
def main(path: Path, folder: Path, keys: Sequence[str]) -> None:
    """Read a file, and write what is needed of it into a folder."""
    import scipy.io

    _limit(path)
    with path.open("rb") as stream:
        content: dict[str, Any] = scipy.io.loadmat(stream)  # type: ignore[arg-type]
    content = {key: value for key, value in content.items() if not key.startswith("__")}
    acm = all(key in content for key in ACM_KEYS)
    relations = ACM_KEYS if acm else [key for key, value in content.items() if KEY.match(key) and _is_relation(value)]
    chosen = {key: content[key] for key in keys or relations if key in content and _is_matrix(content[key])}
    matrices = {key: _as_coo(value) for key, value in chosen.items()}
    np.savez(folder / "matrices.npz", **{
        f"{part}{at}": getattr(matrix, part)
        for at, matrix in enumerate(matrices.values())
        for part in ("row", "col", "data")
    })  # fmt: skip
    sizes = {size for matrix in matrices.values() for size in matrix.shape}
    header = {
        "keys": list(content),
        "relations": list(relations),
        "shapes": [(key, matrix.shape) for key, matrix in matrices.items()],
        "names": {key: _texts(value) for key, value in content.items() if _is_texts(value) and value.size in sizes},
    }
    (folder / "header.json").write_text(json.dumps(header), encoding="ascii")


def _limits(path: Path) -> tuple[int, int]:
    size = path.stat().st_size
    return _LEAST_MEMORY + _MEMORY_PER_BYTE * size, _LEAST_SECONDS + size // _BYTES_PER_SECOND


def _limit(path: Path) -> None:
    try:
        import resource
    except ImportError:  # Windows has no such limits
        return
    memory, seconds = _limits(path)
    limits = {
        resource.RLIMIT_AS: (memory, memory),
        resource.RLIMIT_CPU: (seconds, seconds + 10),
        resource.RLIMIT_CORE: (0, 0),
    }
    for limit, values in limits.items():
        with suppress(ValueError, OSError):  # a lower one is set already, or macOS does not take it
            resource.setrlimit(limit, values)


def _is_matrix(value: object) -> bool:
    shape = getattr(value, "shape", ())
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    return len(shape) == 2 and kind in "biuf"


def _is_relation(value: object) -> bool:
    """Whether a value is a matrix and not a plain vector, such as a list of indices."""
    return _is_matrix(value) and (issparse(value) or 1 not in getattr(value, "shape", ()))


def _as_coo(value: Any) -> "coo_array[np.float64]":
    if hasattr(value, "check_format"):
        value.check_format(full_check=True)  # scipy does not check what it reads: rows may be out of range
    matrix = coo_array(value, dtype=np.float64)
    matrix.eliminate_zeros()
    return matrix


def _is_texts(value: object) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in "OU"


def _texts(value: Any) -> list[str]:
    return [str(np.ravel(cell)[0]) if np.size(cell) else "" for cell in value.ravel()]


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
