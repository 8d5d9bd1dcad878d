"""Snapshots: the edges of one version as memory-mapped arrays, and its nodes, beside the database.

A snapshot is a cache: it can be deleted at any time and made again from the database. Its arrays are plain .npy files
and its nodes Arrow files, neither of which can carry code.
"""

import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.ipc

from neupath.errors import SourceError
from neupath.files import write_whole_folder
from neupath.graph import Csr
from neupath.store.layout import SNAPSHOT, sync
from neupath.store.matrices import to_matrix

_MANIFEST = "manifest.json"
_PARTS = ("indptr", "indices", "data")


@dataclass(frozen=True)
class Snapshot:
    """The edges of a version by key, a matrix a relation, and the rows of each table of nodes."""

    version: int
    matrices: tuple[Csr, ...]
    nodes: tuple[pa.Table, ...]


def write_snapshot(folder: Path, snapshot: Snapshot) -> Path:
    """Write a snapshot whole, and remove the older ones."""
    target = folder / f"{SNAPSHOT}{snapshot.version}"
    if target.exists():
        shutil.rmtree(target)
    write_whole_folder(target, lambda temporary: _fill(temporary, snapshot))
    for version, older in versions_of(folder).items():
        if version < snapshot.version:
            shutil.rmtree(older, ignore_errors=True)
    return target


def _fill(folder: Path, snapshot: Snapshot) -> None:
    for number, matrix in enumerate(snapshot.matrices):
        for part in _PARTS:
            np.save(folder / f"edges-{number}-{part}.npy", getattr(matrix, part), allow_pickle=False)
    for number, table in enumerate(snapshot.nodes):
        with pa.OSFile(str(folder / f"nodes-{number}.arrow"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as out:
            out.write_table(table)
    files = sorted(folder.iterdir())
    shapes = [[int(size) for size in matrix.shape] for matrix in snapshot.matrices]
    manifest = {"shapes": shapes, "nodes": len(snapshot.nodes), "files": {path.name: _digest(path) for path in files}}
    (folder / _MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
    for path in (*files, folder / _MANIFEST):
        sync(path)


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        digest = sha256()
        while block := stream.read(1 << 22):
            digest.update(block)
    return digest.hexdigest()


def versions_of(folder: Path) -> Mapping[int, Path]:
    """Return the snapshots of a store by version, ascending."""
    found = {int(p.name[len(SNAPSHOT) :]): p for p in folder.iterdir() if re.fullmatch(SNAPSHOT + r"\d+", p.name)}
    return dict(sorted(found.items()))


def read_snapshot(path: Path) -> Snapshot:
    """Map a snapshot into memory."""
    try:
        manifest = json.loads((path / _MANIFEST).read_text(encoding="utf-8"))
        matrices = []
        for number, shape in enumerate(manifest["shapes"]):
            files = (path / f"edges-{number}-{part}.npy" for part in _PARTS)
            indptr, indices, data = (np.asarray(np.load(file, mmap_mode="r", allow_pickle=False)) for file in files)
            matrices.append(to_matrix(indptr, indices, data, (shape[0], shape[1])))
        nodes = [_read_nodes(path / f"nodes-{number}.arrow") for number in range(manifest["nodes"])]
        return Snapshot(int(path.name[len(SNAPSHOT) :]), tuple(matrices), tuple(nodes))
    except (OSError, ValueError, KeyError, pa.ArrowException) as error:
        raise SourceError(f"the snapshot {path} is damaged ({error}); delete it, the store does without") from error


def _read_nodes(path: Path) -> pa.Table:
    with pa.memory_map(str(path)) as source:
        return pa.ipc.open_file(source).read_all()


def damaged_files(path: Path) -> list[str]:
    """Return the files of a snapshot whose checksum is not the one that was written down."""
    manifest = json.loads((path / _MANIFEST).read_text(encoding="utf-8"))
    return [name for name, digest in manifest["files"].items() if _digest(path / name) != digest]
