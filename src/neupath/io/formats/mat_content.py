"""A script that reads a MATLAB file in a process of its own: scipy's reader crashes on some damaged files.

It takes a file, a folder, limits of memory and seconds, and the keys to take, and writes matrices and names into the
folder. It imports neither neupath nor pyarrow, so that the process starts quickly.
"""

import json
import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import coo_array, issparse

ACM_KEYS = ("PvsA", "PvsC", "AvsF")
KEY = re.compile(r"^([A-Za-z0-9]+?)(?:_?vs_?|_to_|_2_|2|_)([A-Za-z0-9]+)$")


def main(path: Path, folder: Path, memory: int, seconds: int, *keys: str) -> None:
    """Write header.json and matrices.npz."""
    import scipy.io

    with suppress(ImportError, ValueError, OSError):  # not on Windows; a lower limit is set already; not on macOS
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 10))
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    with path.open("rb") as stream:
        content: dict[str, Any] = scipy.io.loadmat(stream)  # type: ignore[arg-type]
    content = {key: value for key, value in content.items() if not key.startswith("__")}
    relations = [key for key, value in content.items() if KEY.match(key) and _is_matrix(value) and not _is_list(value)]
    if all(key in content for key in ACM_KEYS):
        relations = list(ACM_KEYS)
    matrices = {key: _as_coo(content[key]) for key in keys or relations if _is_matrix(content.get(key))}
    parts = {
        f"{part}-{key}": getattr(matrix, part) for key, matrix in matrices.items() for part in ("row", "col", "data")
    }
    np.savez(folder / "matrices.npz", **parts)
    sizes = {size for matrix in matrices.values() for size in matrix.shape}
    texts = {key: value for key, value in content.items() if isinstance(value, np.ndarray) and value.dtype.kind in "OU"}
    header = {
        "keys": list(content),
        "relations": relations,
        "shapes": {key: matrix.shape for key, matrix in matrices.items()},
        "names": {
            key: [str(np.ravel(cell)[0]) if np.size(cell) else "" for cell in value.ravel()]
            for key, value in texts.items()
            if value.size in sizes
        },
    }
    (folder / "header.json").write_text(json.dumps(header), encoding="ascii")


def _is_matrix(value: object) -> bool:
    return len(getattr(value, "shape", ())) == 2 and getattr(value, "dtype", np.dtype("O")).kind in "biuf"


def _is_list(value: Any) -> bool:
    """Whether a matrix is a plain vector, such as a list of indices."""
    return not issparse(value) and 1 in value.shape


def _as_coo(value: Any) -> "coo_array[np.float64]":
    if hasattr(value, "check_format"):
        value.check_format(full_check=True)  # scipy does not check what it reads: rows may be out of range
    matrix = coo_array(value, dtype=np.float64)
    matrix.eliminate_zeros()
    return matrix


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), *sys.argv[5:])
