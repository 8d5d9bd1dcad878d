"""Snapshots: a version of a store as memory-mapped files. Also the matrices and checksums of its nodes and edges.

A snapshot is a cache: it can be deleted at any time and built again from the database. Its edges are .npy files and its
nodes Arrow files, neither of which can carry code. Whoever reads one verifies the checksum of each file first.
"""

import json
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from hashlib import file_digest, md5
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.ipc
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

from neupath._runtime.files import quick_checksum, sync, whole_folder
from neupath.errors import SourceError
from neupath.graph.edge_attributes import value_hashes
from neupath.graph.hin import Csr, Floats, freeze, index_type, mix64
from neupath.graph.nodes import Id, Mask, Rows
from neupath.store.database import SNAPSHOT, StoreLayout, VersionFacts, edge_row_schema, run

Triplets = tuple[Rows, Rows, Floats]  # rows, columns and values of entries; or sources, targets and weights of edges

# ---- Checksums -----------------------------------------------------------------------------------
# A checksum is a sum of hashes (modulo 2⁶⁴ for edges): any order gives the same, and an update costs what it changes.


def edge_checksum(relation: int, sources: Rows, targets: Rows, weights: Floats) -> int:
    """Return the checksum of some edges of a relation.

    >>> one, two = np.array([1]), np.array([2])
    >>> edge_checksum(0, one, two, np.array([1.0])) == edge_checksum(0, two, one, np.array([1.0]))
    False
    """
    mixed = np.full(len(sources), relation, dtype=np.uint64)
    bits = np.asarray(weights, dtype=np.float64).view(np.uint64)
    with np.errstate(over="ignore"):
        for part in (sources.astype(np.uint64), targets.astype(np.uint64), bits):
            mixed = mix64(mixed + np.uint64(0x9E3779B97F4A7C15) ^ part)
        return int(mixed.sum(dtype=np.uint64))


def row_checksum(relation: int, rows: pa.Table) -> int:
    """Return the checksum of some single edges of a relation, rows of `edge_row_table`, with all their attributes."""
    mixed = np.full(len(rows), relation, dtype=np.uint64) ^ np.uint64(0xA24BAED4963EE407)  # unlike `edge_checksum`
    with np.errstate(over="ignore"):
        for column in rows.columns:
            mixed = mix64(mixed + np.uint64(0x9E3779B97F4A7C15) ^ value_hashes(column))
        return int(mixed.sum(dtype=np.uint64))


def add_checksums(total: int, more: int) -> int:
    """Add to a checksum of edges, or subtract where `more` is negative."""
    return (total + more) % 2**64


def node_checksum(connection: Any, node_type: int, where: str, values: list[Any]) -> int:
    """Return the checksum of some nodes: 64 bits of the MD5 of type, key, id and name each."""
    row = f"concat_ws('\x1f', '{node_type}', key, id, name)"
    query = f"SELECT coalesce(sum(md5_number_lower({row})), 0)::VARCHAR FROM nodes_{node_type} WHERE {where}"  # noqa: S608
    return int(run(connection, query, values)[0][0])


def checksum_of_node(node_type: int, key: int, id_: Id, name: str | None) -> int:
    """Return what one node adds to `node_checksum`."""
    parts = (str(node_type), str(key), str(id_), *(() if name is None else (name,)))
    digest = md5("\x1f".join(parts).encode(), usedforsecurity=False).digest()
    return int.from_bytes(digest[8:], "little")


# ---- Matrices of edges ---------------------------------------------------------------------------
def _to_matrix(indptr: NDArray[np.integer], indices: NDArray[np.integer], data: Floats, shape: tuple[int, int]) -> Csr:
    """Return a matrix over sorted arrays, which may be memory-mapped, without a copy."""
    if len(indptr) != shape[0] + 1 or len(indices) != len(data) or int(indptr[-1]) != len(data):
        raise ValueError(f"arrays of {len(indptr)}, {len(indices)} and {len(data)} do not make a matrix of {shape}")
    matrix = csr_array((data, indices, indptr), shape=shape, copy=False)
    matrix.has_sorted_indices = True
    return matrix


def from_edges(sources: Rows, targets: Rows, weights: Floats, shape: tuple[int, int], directed: bool) -> Csr:
    """Return the matrix of edges, each listed once; those of an undirected relation go both ways."""
    rows, columns, values = in_both_directions(sources, targets, weights, directed)
    return freeze(coo_array((values, (rows, columns)), shape=shape).tocsr())


def in_both_directions(sources: Rows, targets: Rows, weights: Floats, directed: bool) -> Triplets:
    """Return edges, those of an undirected relation in both directions."""
    if directed:
        return sources, targets, weights
    other = sources != targets
    rows, columns = np.concatenate([sources, targets[other]]), np.concatenate([targets, sources[other]])
    return rows, columns, np.concatenate([weights, weights[other]])


def edges_of(matrix: Csr, directed: bool) -> Triplets:
    """List the edges of a matrix in order, those of an undirected relation once."""
    entries = matrix.tocoo()
    rows, columns, weights = entries.row.astype(np.int64), entries.col.astype(np.int64), entries.data
    if directed:
        return rows, columns, weights
    kept = rows <= columns
    return rows[kept], columns[kept], weights[kept]


def enlarged(matrix: Csr, shape: tuple[int, int]) -> Csr:
    """Return the matrix with empty rows and columns added at its end."""
    if matrix.shape == shape:
        return matrix
    indptr = np.concatenate([matrix.indptr, np.full(shape[0] - matrix.shape[0], matrix.indptr[-1])])
    return _to_matrix(indptr.astype(matrix.indptr.dtype), matrix.indices, matrix.data, shape)


def overlaid(matrix: Csr, rows: Rows, columns: Rows, weights: Floats) -> Csr:
    """Return the matrix with some entries replaced, each listed once; weight 0 removes an entry."""
    if not len(rows):
        return matrix
    pattern = csr_array((np.ones(len(rows)), (rows, columns)), shape=matrix.shape)
    cleared = csr_array(matrix - matrix.multiply(pattern))
    result = csr_array(cleared + csr_array((weights, (rows, columns)), shape=matrix.shape))
    result.eliminate_zeros()
    return freeze(result)


def restricted(matrix: Csr, rows: Mask, columns: Mask) -> Csr:
    """Return the matrix of the marked rows and columns."""
    if not rows.all():
        matrix = csr_array(matrix[np.flatnonzero(rows)])
    if not columns.all():
        matrix = csr_array(matrix[:, np.flatnonzero(columns)])
    return freeze(matrix) if matrix.data.flags.writeable else matrix


# ---- Snapshot files ------------------------------------------------------------------------------
_MANIFEST = "manifest.json"
_PARTS = ("indptr", "indices", "data")
_VERIFYING_THREADS = 4


@dataclass(frozen=True)
class Snapshot:
    """One version by key: a matrix per relation, and the table of each node type, with the nodes that died.

    Relations whose edges have attributes also have the table of their single edges, by number.
    """

    version: int
    matrices: tuple[Csr, ...]
    nodes: tuple[pa.Table, ...]
    edge_rows: Mapping[int, pa.Table] = field(default_factory=dict)


def write_snapshot(folder: Path, snapshot: Snapshot, facts: VersionFacts) -> Path:
    """Write a snapshot of the version with these facts, complete or not at all; remove older ones and remains."""
    for left in folder.glob(f".{SNAPSHOT}*"):
        shutil.rmtree(left, ignore_errors=True)
    target = folder / f"{SNAPSHOT}{snapshot.version}"
    if target.exists():
        _remove(target)
    with whole_folder(target) as temporary:
        for number, matrix in enumerate(snapshot.matrices):
            for part in _PARTS:
                np.save(_edge_file(temporary, number, part), getattr(matrix, part), allow_pickle=False)
        for number, table in enumerate(snapshot.nodes):
            with writing_nodes(temporary, number, table.schema) as out:
                out.write_table(table)
        for number, table in snapshot.edge_rows.items():
            with writing_edge_rows(temporary, number, table.schema) as out:
                out.write_table(table.combine_chunks())  # the dictionary of a text column is the same in all batches
        seal(temporary, facts)
    for version, older in snapshots_of(folder).items():
        if version < snapshot.version:
            _remove(older)
    return target


def _remove(path: Path) -> None:
    """Rename a snapshot, then remove it: a process killed meanwhile leaves no incomplete one under its name."""
    hidden = path.with_name(f".{path.name}")
    shutil.rmtree(hidden, ignore_errors=True)
    path.rename(hidden)
    shutil.rmtree(hidden, ignore_errors=True)


@contextmanager
def writing_nodes(folder: Path, number: int, schema: pa.Schema) -> Iterator[Any]:
    """Lend a writer for the nodes of a type."""
    with pa.OSFile(str(_node_file(folder, number)), "wb") as sink, pa.ipc.new_file(sink, schema) as out:
        yield out


@contextmanager
def writing_edge_rows(folder: Path, number: int, schema: pa.Schema) -> Iterator[Any]:
    """Lend a writer for the single edges of a relation."""
    with pa.OSFile(str(_row_file(folder, number)), "wb") as sink, pa.ipc.new_file(sink, schema) as out:
        yield out


def seal(folder: Path, facts: VersionFacts) -> None:
    """Write the manifest with checksums and the facts of the version, and wait until all files are on disk."""
    files = sorted(folder.iterdir())
    with ThreadPoolExecutor(_VERIFYING_THREADS) as pool:
        checksums = dict(zip((path.name for path in files), pool.map(quick_checksum, files), strict=True))
        manifest = {"facts": asdict(facts), "files": checksums}
        (folder / _MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
        for _ in pool.map(sync, (*files, folder / _MANIFEST)):  # the disk writes what several wait for at once
            pass


def write_matrix(folder: Path, number: int, shape: tuple[int, int], entries: int, batches: Iterable[Triplets]) -> None:
    """Write the matrix of a relation from batches of its entries, in order, to the same files as `write_snapshot`."""
    kind = index_type(shape, entries)
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
    header = {"descr": np.lib.format.dtype_to_descr(kind), "fortran_order": False, "shape": (length,)}
    with _edge_file(folder, number, part).open("wb") as out:
        np.lib.format.write_array_header_1_0(out, header)
        yield out


def _edge_file(folder: Path, number: int, part: str) -> Path:
    return folder / f"edges-{number}-{part}.npy"


def _node_file(folder: Path, number: int) -> Path:
    return folder / f"nodes-{number}.arrow"


def _row_file(folder: Path, number: int) -> Path:
    return folder / f"edge-rows-{number}.arrow"


def _matches(path: Path, checksum: str) -> bool:
    if len(checksum) < 64:
        return quick_checksum(path) == checksum
    with path.open("rb") as stream:  # snapshots had SHA-256 before
        return file_digest(stream, "sha256").hexdigest() == checksum


def snapshots_of(folder: Path) -> Mapping[int, Path]:
    """Return the snapshots of a store by version, ascending."""
    paths = [path for path in folder.iterdir() if re.fullmatch(SNAPSHOT + r"\d+", path.name)]
    return dict(sorted((int(path.name[len(SNAPSHOT) :]), path) for path in paths))


def read_snapshot(path: Path, layout: StoreLayout, facts: VersionFacts) -> Snapshot:
    """Verify a snapshot of the version with these facts, and map it into memory; raise SourceError if it is damaged."""
    try:
        _verify(path, layout, facts)
        nodes = tuple(map_nodes(path, number) for number in range(len(layout.schema.node_types)))
        sizes = dict(zip(layout.schema.node_types, map(len, nodes), strict=True))
        matrices = []
        for number, relation in enumerate(layout.schema.relations):
            files = (_edge_file(path, number, part) for part in _PARTS)
            indptr, indices, data = (np.asarray(np.load(file, mmap_mode="r", allow_pickle=False)) for file in files)
            matrices.append(_to_matrix(indptr, indices, data, (sizes[relation.source], sizes[relation.target])))
        rows = {number: _map_table(_row_file(path, number)) for number in layout.described_relations}
        for number, table in rows.items():
            if table.schema != edge_row_schema(layout.edge_attributes[number]):
                raise ValueError(f"{_row_file(path, number).name} has other columns than the database")
        return Snapshot(facts.version, tuple(matrices), nodes, rows)
    except (OSError, ValueError, TypeError, RecursionError, pa.ArrowException) as error:
        raise SourceError(f"the snapshot {path} is damaged ({error})") from error


def map_nodes(folder: Path, number: int) -> pa.Table:
    """Map the nodes of a type into memory."""
    return _map_table(_node_file(folder, number))


def _map_table(file: Path) -> pa.Table:
    with pa.memory_map(str(file)) as source:
        return pa.ipc.open_file(source).read_all()


def _verify(path: Path, layout: StoreLayout, facts: VersionFacts) -> None:
    """Raise ValueError unless the snapshot has the right files with their checksums, and is of this version."""
    manifest = json.loads((path / _MANIFEST).read_text(encoding="utf-8"))
    files = manifest.get("files") if isinstance(manifest, dict) else None
    types, relations = range(len(layout.schema.node_types)), range(len(layout.schema.relations))
    edge_files = (_edge_file(path, number, part).name for number in relations for part in _PARTS)
    node_files = (_node_file(path, number).name for number in types)
    row_files = (_row_file(path, number).name for number in layout.described_relations)
    if not isinstance(files, dict) or files.keys() != {*edge_files, *node_files, *row_files}:
        raise ValueError(f"{_MANIFEST} does not list the files of this store")
    if manifest.get("facts", asdict(facts)) != asdict(facts):  # manifests from before have none
        raise ValueError(f"{_MANIFEST} is of another graph than version {facts.version} of the database")
    with ThreadPoolExecutor(_VERIFYING_THREADS) as pool:
        for name, matches in zip(files, pool.map(lambda name: _matches(path / name, files[name]), files), strict=True):
            if not matches:
                raise ValueError(f"{name} differs from its checksum")
