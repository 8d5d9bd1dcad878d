"""Snapshots: one version of a store as memory-mapped files beside the database.

A snapshot is a cache: it can be deleted at any time and built again from the database. Its edges are .npy files and its
nodes Arrow files, neither of which can carry code.
"""

import json
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.ipc

from neupath._runtime.files import whole_folder
from neupath.errors import SourceError
from neupath.graph.hin import Csr
from neupath.store.database import SNAPSHOT, sync
from neupath.store.edge_matrices import Triplets, to_matrix

_MANIFEST = "manifest.json"
_PARTS = ("indptr", "indices", "data")


@dataclass(frozen=True)
class Snapshot:
    """One version by key: a matrix per relation, and the table of each node type, with the nodes that died."""

    version: int
    matrices: tuple[Csr, ...]
    nodes: tuple[pa.Table, ...]


def write_snapshot(folder: Path, snapshot: Snapshot) -> Path:
    """Write a snapshot, complete or not at all; remove older ones, and what killed processes left."""
    for left in folder.glob(f".{SNAPSHOT}*"):
        shutil.rmtree(left, ignore_errors=True)
    target = folder / f"{SNAPSHOT}{snapshot.version}"
    if target.exists():
        _remove(target)
    with whole_folder(target) as temporary:
        _fill(temporary, snapshot)
    for version, older in versions_of(folder).items():
        if version < snapshot.version:
            _remove(older)
    return target


def _remove(path: Path) -> None:
    """Rename a snapshot, then remove it: a process killed meanwhile leaves no incomplete one under its name."""
    hidden = path.with_name(f".{path.name}")
    shutil.rmtree(hidden, ignore_errors=True)
    path.rename(hidden)
    shutil.rmtree(hidden, ignore_errors=True)


def _fill(folder: Path, snapshot: Snapshot) -> None:
    for number, matrix in enumerate(snapshot.matrices):
        for part in _PARTS:
            np.save(_edge_file(folder, number, part), getattr(matrix, part), allow_pickle=False)
    for number, table in enumerate(snapshot.nodes):
        with writing_nodes(folder, number, table.schema) as out:
            out.write_table(table)
    seal(folder, [matrix.shape for matrix in snapshot.matrices], len(snapshot.nodes))


@contextmanager
def writing_nodes(folder: Path, number: int, schema: pa.Schema) -> Iterator[Any]:
    """Lend a writer for the nodes of a type."""
    with pa.OSFile(str(_node_file(folder, number)), "wb") as sink, pa.ipc.new_file(sink, schema) as out:
        yield out


def seal(folder: Path, shapes: Sequence[tuple[int, ...]], types: int) -> None:
    """Write the manifest with checksums, and wait until all files are on disk."""
    files = sorted(folder.iterdir())
    sizes = [[int(size) for size in shape] for shape in shapes]
    manifest = {"shapes": sizes, "nodes": types, "files": {path.name: _digest(path) for path in files}}
    (folder / _MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
    for path in (*files, folder / _MANIFEST):
        sync(path)


def write_matrix(folder: Path, number: int, shape: tuple[int, int], entries: int, batches: Iterable[Triplets]) -> None:
    """Write the matrix of a relation from batches of its entries, in order.

    The files equal those of a matrix in memory; indices have 32 bits where they fit.
    """
    kind = np.dtype(np.int32 if max(*shape, entries) < 2**31 else np.int64)
    with (
        _writing_array(folder, number, "indptr", kind, shape[0] + 1) as starts,
        _writing_array(folder, number, "indices", kind, entries) as indices,
        _writing_array(folder, number, "data", np.dtype(np.float64), entries) as data,
    ):
        row, done = 0, 0
        for rows, columns, weights in batches:
            if not len(rows):
                continue
            next_row = int(rows[-1]) + 1
            starts.write((np.searchsorted(rows, np.arange(row, next_row)) + done).astype(kind).tobytes())
            indices.write(columns.astype(kind).tobytes())
            data.write(weights.tobytes())
            row, done = next_row, done + len(rows)
        starts.write(np.full(shape[0] + 1 - row, done, kind).tobytes())


@contextmanager
def _writing_array(folder: Path, number: int, part: str, kind: np.dtype[Any], length: int) -> Iterator[BinaryIO]:
    """Lend a .npy file whose header is written."""
    header = {"descr": np.lib.format.dtype_to_descr(kind), "fortran_order": False, "shape": (length,)}
    with _edge_file(folder, number, part).open("wb") as out:
        np.lib.format.write_array_header_1_0(out, header)
        yield out


def _edge_file(folder: Path, number: int, part: str) -> Path:
    return folder / f"edges-{number}-{part}.npy"


def _node_file(folder: Path, number: int) -> Path:
    return folder / f"nodes-{number}.arrow"


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return file_digest(stream, "sha256").hexdigest()


def versions_of(folder: Path) -> Mapping[int, Path]:
    """Return the snapshots of a store by version, ascending."""
    paths = [path for path in folder.iterdir() if re.fullmatch(SNAPSHOT + r"\d+", path.name)]
    return dict(sorted((int(path.name[len(SNAPSHOT) :]), path) for path in paths))


def read_snapshot(path: Path) -> Snapshot:
    """Map a snapshot into memory."""
    try:
        manifest = json.loads((path / _MANIFEST).read_text(encoding="utf-8"))
        matrices = []
        for number, shape in enumerate(manifest["shapes"]):
            files = (_edge_file(path, number, part) for part in _PARTS)
            indptr, indices, data = (np.asarray(np.load(file, mmap_mode="r", allow_pickle=False)) for file in files)
            matrices.append(to_matrix(indptr, indices, data, (shape[0], shape[1])))
        nodes = [map_nodes(path, number) for number in range(manifest["nodes"])]
        return Snapshot(int(path.name[len(SNAPSHOT) :]), tuple(matrices), tuple(nodes))
    except (OSError, ValueError, KeyError, pa.ArrowException) as error:
        raise SourceError(f"the snapshot {path} is damaged ({error}); delete it, the store does without") from error


def map_nodes(folder: Path, number: int) -> pa.Table:
    """Map the nodes of a type into memory."""
    with pa.memory_map(str(_node_file(folder, number))) as source:
        return pa.ipc.open_file(source).read_all()


def damaged_files(path: Path) -> list[str]:
    """Return the files of a snapshot whose checksum differs from the manifest's."""
    manifest = json.loads((path / _MANIFEST).read_text(encoding="utf-8"))
    return [name for name, digest in manifest["files"].items() if _digest(path / name) != digest]
