"""Snapshots: a version of a store as memory-mapped files. Also the matrices and checksums of its nodes and edges.

A snapshot is a cache: it can be deleted at any time and built again from the database. Its edges are .npy files and its
nodes Arrow files, neither of which can carry code. Each file is verified by its checksum before it is used.
"""

import json
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from hashlib import md5, sha256
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, TypeVar
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.ipc
from numpy.typing import NDArray
from scipy.sparse import csr_array

from neupath._runtime.files import quick_checksum, sync, whole_folder
from neupath._runtime.lazy_mapping import LazyMapping
from neupath.errors import SourceError
from neupath.graph.edge_attributes import value_hashes
from neupath.graph.edges import index_type, mix64
from neupath.graph.hin import Csr, Edges, Floats, freeze
from neupath.graph.nodes import Id, Mask, Rows
from neupath.store.database import SNAPSHOT, StoreLayout, VersionFacts, attribute_columns, edge_row_schema, run

Triplets = tuple[Rows, Rows, Floats]  # rows, columns and values of entries; or sources, targets and weights of edges
Key = TypeVar("Key")
Value = TypeVar("Value")

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


ALIVE = "born <= $1 AND (died IS NULL OR died > $1)"
"""The nodes and single edges of version $1, in a statement."""


def alive_nodes(table: pa.Table, version: int) -> Mask:
    """Mark the nodes that are alive at a version."""
    died = table["died"]
    if died.null_count == len(died):
        return np.ones(len(died), dtype=np.bool_)
    return np.asarray(died.fill_null(version + 1).to_numpy() > version)


def facts_of(connection: Any, layout: StoreLayout, state: "Snapshot") -> VersionFacts:
    """Count a version, and return its checksums; those of its nodes are the database's."""
    edges, edge_sum = 0, 0
    for number, relation in enumerate(layout.schema.relations):
        pairs = Edges.of(relation, state.matrices[number])
        edges += len(pairs)
        edge_sum = add_checksums(edge_sum, edge_checksum(number, *pairs.triplets))
    for number, rows in state.edge_rows.items():
        edge_sum = add_checksums(edge_sum, row_checksum(number, rows))
    nodes = sum(int(np.count_nonzero(alive_nodes(table, state.version))) for table in state.nodes.values())
    node_sum = sum(node_checksum(connection, number, ALIVE, [state.version]) for number in state.nodes)
    return VersionFacts(state.version, nodes, edges, node_sum, edge_sum)


# ---- Matrices of edges ---------------------------------------------------------------------------
def _to_matrix(indptr: NDArray[np.integer], indices: NDArray[np.integer], data: Floats, shape: tuple[int, int]) -> Csr:
    """Return a matrix over sorted arrays, which may be memory-mapped, without a copy."""
    if len(indptr) != shape[0] + 1 or len(indices) != len(data) or int(indptr[-1]) != len(data):
        raise ValueError(f"arrays of {len(indptr)}, {len(indices)} and {len(data)} do not make a matrix of {shape}")
    matrix = csr_array((data, indices, indptr), shape=shape, copy=False)
    matrix.has_sorted_indices = True
    return matrix


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
_INDEX_TYPES = (np.int32, np.int64)
_VERIFYING_THREADS = 4
_LONGEST_HEADER = 1 << 10  # of a .npy file; numpy pads those of one-dimensional arrays to 128 bytes
_FEW_BYTES = 1 << 20  # a thread takes as long to start as so many bytes take to verify


@dataclass(frozen=True)
class Snapshot:
    """One version by key: the matrix of each relation, and the table of each node type, with the nodes that died.

    Relations whose edges have attributes also have the table of their single edges. All are by number, and may be
    a `LazyMapping`.
    """

    version: int
    matrices: Mapping[int, Csr]
    nodes: Mapping[int, pa.Table]
    edge_rows: Mapping[int, pa.Table] = field(default_factory=dict)

    def loaded(self) -> "Snapshot":
        """Return the snapshot with all its parts made."""
        return Snapshot(self.version, dict(self.matrices), dict(self.nodes), dict(self.edge_rows))


def write_snapshot(folder: Path, snapshot: Snapshot, facts: VersionFacts) -> Path:
    """Write a snapshot of the version with these facts, complete or not at all; remove older ones and remains."""
    for left in folder.glob(f".{SNAPSHOT}*"):
        shutil.rmtree(left, ignore_errors=True)
    target = snapshot_path(folder, snapshot.version)
    if target.exists():
        _remove(target)
    with whole_folder(target) as temporary:
        for number, matrix in snapshot.matrices.items():
            for part in _PARTS:
                np.save(_edge_file(temporary, number, part), getattr(matrix, part), allow_pickle=False)
        for number, table in snapshot.nodes.items():
            with writing_table(node_file(temporary, number), table.schema) as out:
                out.write_table(table)
        for number, table in snapshot.edge_rows.items():
            with writing_table(row_file(temporary, number), table.schema) as out:
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
def writing_table(file: Path, schema: pa.Schema) -> Iterator[Any]:
    """Lend a writer for an Arrow file: the nodes of a type, or the single edges of a relation."""
    with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_file(sink, schema) as out:
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


def node_file(folder: Path, number: int) -> Path:
    """Return where a snapshot has the nodes of a type."""
    return folder / f"nodes-{number}.arrow"


def row_file(folder: Path, number: int) -> Path:
    """Return where a snapshot has the single edges of a relation."""
    return folder / f"edge-rows-{number}.arrow"


def snapshot_path(folder: Path, version: int) -> Path:
    """Return where the snapshot of a version is."""
    return folder / f"{SNAPSHOT}{version}"


def snapshots_of(folder: Path) -> Mapping[int, Path]:
    """Return the snapshots of a store by version, ascending."""
    paths = [path for path in folder.iterdir() if re.fullmatch(SNAPSHOT + r"\d+", path.name)]
    return dict(sorted((int(path.name[len(SNAPSHOT) :]), path) for path in paths))


def map_snapshot(path: Path, layout: StoreLayout, facts: VersionFacts, *, verify: bool) -> Snapshot:
    """Map a snapshot of the version with these facts into memory; raise SourceError if it is damaged.

    All of it is verified now if `verify`, else each part when it is first asked for.
    """
    files = _MappedFiles(path, layout, facts)
    if not verify:
        return files.snapshot(facts.version)
    files.verify(*files.names)
    return files.snapshot(facts.version).loaded()


class _MappedFiles:
    """The files of a snapshot, mapped into memory at once, so that none is lost or replaced before it is verified.

    Parameters
    ----------
    path
        The folder of the snapshot.
    layout
        What the database says the store holds.
    facts
        What the database says about the version of the snapshot.
    """

    def __init__(self, path: Path, layout: StoreLayout, facts: VersionFacts) -> None:
        self._path, self._layout = path, layout
        with self._raising_damage():
            self._checksums = _read_manifest(path, layout, facts)
            self._contents = {name: _map(path / name) for name in self._checksums}
        self._verified: set[str] = set()
        self._nodes = LazyMapping(range(len(layout.schema.node_types)), self._read_nodes)

    @property
    def names(self) -> Iterable[str]:
        return self._checksums

    def snapshot(self, version: int) -> Snapshot:
        relations = range(len(self._layout.schema.relations))
        rows = LazyMapping(self._layout.described_relations, self._read_rows)
        return Snapshot(version, LazyMapping(relations, self._read_matrix), self._nodes, rows)

    def verify(self, *names: str) -> list[pa.Buffer]:
        """Return the contents of some files; raise SourceError unless each has its checksum."""
        new = [name for name in names if name not in self._verified]
        with self._raising_damage():
            for name, matches in zip(new, self._compare(new), strict=True):
                if not matches:
                    raise ValueError(f"{name} differs from its checksum")
        self._verified.update(new)
        return [self._contents[name] for name in names]

    def _compare(self, names: list[str]) -> list[bool]:
        if sum(self._contents[name].size for name in names) <= _FEW_BYTES:
            return list(map(self._matches, names))
        with ThreadPoolExecutor(_VERIFYING_THREADS) as pool:  # which hash without the lock of the interpreter
            return list(pool.map(self._matches, names))

    def _matches(self, name: str) -> bool:
        content, checksum = self._contents[name], self._checksums[name]
        if len(checksum) < 64:
            return f"{crc32(content):08x}" == checksum
        return sha256(content).hexdigest() == checksum  # snapshots had SHA-256 before

    def _read_nodes(self, number: int) -> pa.Table:
        columns = ["key", "born", "died", "id", "name", *attribute_columns(len(self._layout.attributes[number]))]
        return self._read_table(node_file(self._path, number).name, lambda schema: schema.names == columns)

    def _read_rows(self, number: int) -> pa.Table:
        expected = edge_row_schema(self._layout.edge_attributes[number])
        return self._read_table(row_file(self._path, number).name, lambda schema: schema == expected)

    def _read_table(self, name: str, fits: Callable[[pa.Schema], bool]) -> pa.Table:
        """Return the table of an Arrow file, without a copy; raise if its texts lie outside of it."""
        (content,) = self.verify(name)
        with self._raising_damage():
            table = pa.ipc.open_file(content).read_all()
            table.validate(full=True)
            if not fits(table.schema):
                raise ValueError(f"{name} has other columns than the database")
            return table

    def _read_matrix(self, number: int) -> Csr:
        contents = self.verify(*(_edge_file(self._path, number, part).name for part in _PARTS))
        rows, columns = (len(self._nodes[end]) for end in self._layout.ends(number))
        with self._raising_damage():
            indptr, indices, data = map(_to_array, contents)
            if not (indptr.dtype in _INDEX_TYPES and indices.dtype in _INDEX_TYPES and data.dtype == np.float64):
                raise ValueError(f"arrays of {indptr.dtype}, {indices.dtype} and {data.dtype} do not make a matrix")
            matrix = _to_matrix(indptr, indices, data, (rows, columns))
            is_inside = not len(indices) or (indices.min() >= 0 and indices.max() < columns)
            if indptr[0] != 0 or (np.diff(indptr) < 0).any() or not is_inside:
                raise ValueError("edges lead beyond all nodes")  # compiled code would follow them anywhere
            return matrix

    @contextmanager
    def _raising_damage(self) -> Iterator[None]:
        try:
            yield
        except (OSError, ValueError, TypeError, RecursionError, pa.ArrowException) as error:
            raise SourceError(f"the snapshot {self._path} is damaged ({error})") from error


def _map(file: Path) -> pa.Buffer:
    """Map a file into memory; unlike `mmap`, Arrow keeps no file open for it."""
    with pa.memory_map(str(file)) as source:
        return source.read_buffer()


def _to_array(content: pa.Buffer) -> NDArray[Any]:
    """Return the array of a mapped .npy file, without a copy."""
    start = BytesIO(content[:_LONGEST_HEADER])
    if np.lib.format.read_magic(start) != (1, 0):
        raise ValueError("an array has another format than this neupath writes")
    shape, _, kind = np.lib.format.read_array_header_1_0(start)
    return np.ndarray(shape, kind, content, start.tell())


def map_nodes(folder: Path, number: int) -> pa.Table:
    """Map the nodes of a type into memory."""
    return pa.ipc.open_file(_map(node_file(folder, number))).read_all()


def _read_manifest(path: Path, layout: StoreLayout, facts: VersionFacts) -> dict[str, str]:
    """Return the checksum of each file; raise ValueError unless they are those of this store, and of this version."""
    manifest = json.loads((path / _MANIFEST).read_text(encoding="utf-8"))
    files = manifest.get("files") if isinstance(manifest, dict) else None
    types, relations = range(len(layout.schema.node_types)), range(len(layout.schema.relations))
    edge_files = (_edge_file(path, number, part).name for number in relations for part in _PARTS)
    node_files = (node_file(path, number).name for number in types)
    row_files = (row_file(path, number).name for number in layout.described_relations)
    if not isinstance(files, dict) or files.keys() != {*edge_files, *node_files, *row_files}:
        raise ValueError(f"{_MANIFEST} does not list the files of this store")
    if not all(isinstance(checksum, str) for checksum in files.values()):
        raise ValueError(f"{_MANIFEST} has a checksum that is no text")
    if manifest.get("facts", asdict(facts)) != asdict(facts):  # manifests from before have none
        raise ValueError(f"{_MANIFEST} is of another graph than version {facts.version} of the database")
    return files
