"""Prepare an index: multiply the half paths of a measure out of core, and write what a search reads into files.

The work happens in a folder `building` beside the data of the version before, and each file gets its name when it is
whole. So a preparation that was killed goes on with the files that are there, and readers see the new version when its
manifest replaces the one before.
"""

import json
import logging
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.sparse import csr_array

from neupath._runtime.files import check_folder, locked, sync, write_text, write_whole
from neupath._runtime.object_stores import ObjectFolder, is_object_url
from neupath._runtime.progress import Progress, check_cancelled, no_progress
from neupath.engine.files import (
    MANIFEST,
    ArrayFacts,
    IndexFiles,
    NewerFormatError,
    create,
    is_sealed,
    map_array,
    open_files,
    parse_manifest,
    read_manifest,
    seal,
    write_array,
    write_manifest,
)
from neupath.engine.index import index_of
from neupath.engine.prepared import INDEX_ARRAYS, open_index, text_parts, words_of
from neupath.engine.products import (
    HEAVY_ENOUGH_FOR_INDEX,
    Factors,
    check_smallest,
    column_norms,
    contract,
    multiplications,
    row_norms,
    tidy,
    transpose_into,
)
from neupath.engine.scorer import Scorer
from neupath.engine.tasks import Each, in_this_process
from neupath.errors import NotEnoughMemoryError, QueryError, SourceError, WriteError
from neupath.graph.edges import index_type
from neupath.graph.hin import HIN, Csr, digest, freeze
from neupath.graph.nodes import Mask, Nodes
from neupath.measures.path_measure import PathMeasure

logger = logging.getLogger("neupath")
_BLOCK_WORK = 1 << 26  # multiplications of a block of rows of a product
_BUILDING, _REQUEST = "building", "request.json"
_DATA = re.compile("data-[0-9a-f]{12}")
_NOT_DESCRIBED = ("format", "version", "shapes", "widest", "data", "arrays", "sha256")  # fields of a manifest


# ---- Matrices in files ---------------------------------------------------------------------------
@dataclass(frozen=True)
class DiskMatrix:
    """A sparse matrix in the files NAME.indptr, NAME.indices and NAME.data of a folder."""

    folder: Path
    name: str
    shape: tuple[int, int]
    kind: str
    """The type of its indices."""

    def path(self, part: str) -> Path:
        return self.folder / f"{self.name}.{part}"

    def map(self) -> Csr:
        """Map it into memory."""
        indptr, indices = map_array(self.path("indptr"), self.kind), map_array(self.path("indices"), self.kind)
        matrix = csr_array((map_array(self.path("data"), np.float64), indices, indptr), shape=self.shape, copy=False)
        matrix.has_sorted_indices = True
        return freeze(matrix)

    @classmethod
    def write(cls, folder: Path, name: str, matrix: Csr) -> "DiskMatrix":
        """Write a matrix to its files."""
        kind = index_type(matrix.shape, matrix.nnz)
        own = cls(folder, name, matrix.shape, np.dtype(kind).name)
        _write(own.path("indptr"), matrix.indptr.astype(kind, copy=False))
        _write(own.path("indices"), matrix.indices.astype(kind, copy=False))
        _write(own.path("data"), matrix.data)
        return own


def multiply_rows(left: DiskMatrix, right: DiskMatrix, first: int, last: int, part: Path) -> None:
    """Write some rows of a product to a file: the length of each, then the columns and values of all."""
    try:
        factors = left.map()[first:last], right.map()
    except FileNotFoundError as error:
        raise SourceError(
            f"a worker does not see {left.folder}; prepare the index in a folder that all machines share"
        ) from error
    product = tidy(csr_array(factors[0] @ factors[1]))

    def write(path: Path) -> None:
        with path.open("wb") as file:
            file.write(np.diff(product.indptr).astype("<i8").data)
            file.write(product.indices.astype("<i8").data)
            file.write(product.data.astype("<f8").data)

        sync(path)  # whoever goes on takes the part as it is

    write_whole(part, write)


def _multiply(
    left: DiskMatrix, right: DiskMatrix, folder: Path, name: str, each: Each, report: Callable[[int, int], object]
) -> DiskMatrix:
    """Multiply two matrices by blocks of rows, each a task of its own, and join the blocks."""
    done = folder / f"{name}.done"
    if done.is_file():
        facts = json.loads(done.read_text("utf-8"))
        return DiskMatrix(folder, name, (left.shape[0], right.shape[1]), facts["kind"])
    bounds = _bounds(left.map(), right.map())
    parts = [folder / f"{name}-{number:06}.part" for number in range(len(bounds) - 1)]
    tasks = [
        (left, right, first, last, part)
        for (first, last), part in zip(pairwise(bounds), parts, strict=True)
        if not part.is_file()
    ]
    finished = len(parts) - len(tasks)
    report(finished, len(parts))

    def on_done(_: int) -> None:
        nonlocal finished
        finished += 1
        report(finished, len(parts))

    each(multiply_rows, tasks, on_done)
    product = _join_parts(folder, name, (left.shape[0], right.shape[1]), bounds, parts)
    write_text(done, json.dumps({"kind": product.kind}))
    for part in parts:
        part.unlink()
    return product


def _bounds(left: Csr, right: Csr) -> list[int]:
    """Cut the rows of a product into blocks of about equal work."""
    lengths = np.diff(right.indptr).astype(np.int64)
    work, blocks, step = [], [0], 1 << 16
    for first in range(0, left.shape[0], step):
        indptr = left.indptr[first : min(first + step, left.shape[0]) + 1].astype(np.int64)
        sums = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths[left.indices[indptr[0] : indptr[-1]]])])
        work.append(sums[indptr[1:] - indptr[0]] - sums[indptr[:-1] - indptr[0]])
    numbers = np.cumsum(np.concatenate([np.zeros(0, np.int64), *work]) + 1) // _BLOCK_WORK
    blocks += (np.flatnonzero(np.diff(numbers)) + 1).tolist()
    return [*blocks, left.shape[0]] if left.shape[0] else [0, 0]


def _join_parts(
    folder: Path, name: str, shape: tuple[int, int], bounds: Sequence[int], parts: Sequence[Path]
) -> DiskMatrix:
    """Concatenate the blocks of a product; they are removed when all is written."""
    stretches = list(zip(parts, pairwise(bounds), strict=True))
    counts = [(part.stat().st_size - 8 * (last - first)) // 16 for part, (first, last) in stretches]
    total = sum(counts)
    kind = index_type(shape, total)
    product = DiskMatrix(folder, name, shape, np.dtype(kind).name)
    indptr = create(product.path("indptr"), kind, shape[0] + 1)
    indices, data = create(product.path("indices"), kind, total), create(product.path("data"), np.float64, total)
    end = 0
    for count, (part, (first, last)) in zip(counts, stretches, strict=True):
        check_cancelled()
        rows = last - first
        lengths = np.fromfile(part, "<i8", rows)
        indptr[first + 1 : last + 1] = end + np.cumsum(lengths)
        indices[end : end + count] = np.fromfile(part, "<i8", count, offset=8 * rows)
        data[end : end + count] = np.fromfile(part, "<f8", count, offset=8 * (rows + count))
        end += count
    return product


def _multiply_chain(matrices: Sequence[Csr], folder: Path, name: str, each: Each, progress: Progress) -> DiskMatrix:
    """Multiply a chain, in the order in which a search of the graph does; see `products.multiply_chain`."""
    check_smallest(matrices)
    if len(matrices) == 1:
        return DiskMatrix.write(folder, name, matrices[0])
    chain = [DiskMatrix.write(folder, f"{name}-step{at}", matrix) for at, matrix in enumerate(matrices)]
    count = len(chain)

    def multiply(at: int, _work: int) -> DiskMatrix:
        final = len(chain) == 2  # the last product is the factor
        own = name if final else f"{name}-product{len(chain)}"
        stage = f"multiplying step {count - len(chain) + 1} of {count - 1}"
        return _multiply(chain[at], chain[at + 1], folder, own, each, lambda done, total: progress(stage, done, total))

    contract(chain, lambda at: multiplications(chain[at].map(), chain[at + 1].map()), multiply)
    return chain[0]


# ---- The index -----------------------------------------------------------------------------------
def prepare(
    hin: HIN,
    scorer: Scorer,
    to: str | Path,
    *,
    where: str | Sequence[str] = (),
    each: Each = in_this_process,
    progress: Progress = no_progress,
) -> str:
    """Write the index of a measure along a meta-path, and return its address.

    What `open_index` opens is searched without the graph. To prepare an index again replaces it at once; processes
    that have it open go on with the version before. An interrupted preparation goes on where it was.

    Parameters
    ----------
    hin
        The graph.
    scorer
        A measure along a meta-path.
    to
        A folder, or an address of an object store such as s3://bucket/prefix.
    where
        Conditions on the attributes of targets, such as "year >= 2000": the index ranks those that fit.
    each
        What runs the products' blocks of rows: this process by default, or an engine of `neupath.cluster`.
    progress
        Called with the stage of the work, how much of it is done, and of how much.
    """
    measure = _measure_of(hin, scorer)
    chosen = hin.candidates(measure.target_type, where=where)
    description = describe(hin, measure) | ({} if chosen is None else {"where": _texts(where)})
    if not is_object_url(to):
        with _claimed(Path(to), str(to)) as folder:
            _prepare_folder(hin, measure, folder, description, chosen, each, progress)
        return str(to)
    objects = ObjectFolder(str(to))
    _check_manifest(lambda: parse_manifest(objects.read(MANIFEST), objects.url), objects.url, objects.names())
    with _claimed(_staging_folder(description, objects.url), objects.url) as staging:
        _prepare_folder(hin, measure, staging, description, chosen, each, progress)
        _upload(staging, objects, progress)
        shutil.rmtree(staging)
    return objects.url


def describe(hin: HIN, measure: PathMeasure) -> dict[str, Any]:
    """Return what the manifest says an index is of: the graph, the meta-path and the measure."""
    path = measure.metapath_
    return {
        "measure": measure.name, "metapath": str(path), "params": measure.params(), "formula": list(measure.formula),
        "fingerprint": measure.fingerprint(), "symmetric": measure.half_legs(path)[1] is None,
        "graph": {"digest": digest(hin), "version": getattr(hin, "version", None)},
        "sides": _sides(measure),
    }  # fmt: skip


def _sides(measure: PathMeasure) -> dict[str, str]:
    """Return the types of queries and targets, and of the nodes in which both halves meet, unless these are edges."""
    path = measure.metapath_
    ends = {"source": path.source, "target": path.target}
    if not measure.meets_at_nodes(path):
        return ends
    return ends | {"middle": path.node_types[len(measure.half_legs(path)[0])]}


def _texts(where: str | Sequence[str]) -> list[str]:
    return [str(where)] if isinstance(where, str) else [str(each) for each in where]


def _measure_of(hin: HIN, scorer: Scorer) -> PathMeasure:
    if not isinstance(scorer, PathMeasure) or not scorer.counts_walks:
        raise QueryError(
            f"an index holds the product of a measure along a meta-path, such as pathsim, and {scorer.name} has none; "
            f"choose such a measure"
        )
    return scorer.resolve(hin)  # without a product, since one that is propagated has a fingerprint of its own


@contextmanager
def _claimed(folder: Path, place: str) -> Iterator[Path]:
    """Make a folder for an index unless it is there, and lock out other preparations of the same place."""
    _check_target(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = folder.absolute().with_name(f"{folder.absolute().name}.lock")
        with locked(lock, f"another process prepares {place}; wait until it is done"):
            yield folder
    except OSError as error:
        raise WriteError(f"cannot write {folder}: {error.strerror or error}; the same command goes on") from error


def _check_target(folder: Path) -> None:
    """Raise if a folder holds something else than an index, finished or not."""
    check_folder(folder)
    if folder.is_dir():
        _check_manifest(lambda: read_manifest(folder), str(folder), [path.name for path in folder.iterdir()])


def _check_manifest(read: Callable[[], object], place: str, names: Sequence[str]) -> None:
    """Raise if a place has an index of a newer version, or what is no index; a damaged index is replaced."""
    if not names:
        return
    try:
        read()
    except NewerFormatError:
        raise
    except SourceError as error:
        own = [name for name in names if name == _BUILDING or _DATA.fullmatch(name)]
        if not own:
            raise WriteError(f"{place} has files in it and is no index; give the name of a new folder") from error


def _staging_folder(description: dict[str, Any], url: str) -> Path:
    """Return the folder in which an index for an object store is written first, the same one when it is resumed."""
    user = os.getuid() if hasattr(os, "getuid") else 0
    own = sha256(json.dumps([description, url, user]).encode()).hexdigest()
    folder = Path(tempfile.gettempdir()) / f"neupath-prepare-{own[:16]}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise WriteError(f"cannot write {folder}: {error.strerror}; set TMPDIR to another folder") from error
    if folder.is_symlink() or (hasattr(os, "getuid") and folder.stat().st_uid != user):
        raise WriteError(f"{folder} is another user's; set TMPDIR to another folder")
    return folder


def _is_prepared(folder: Path, description: dict[str, Any]) -> bool:
    """Whether a folder holds the index already, and all of it is whole."""
    try:
        manifest = read_manifest(folder)
        files = open_files(folder, manifest)
    except SourceError:
        return False
    own = {name: value for name, value in manifest.items() if name not in _NOT_DESCRIBED}
    return own == json.loads(json.dumps(description)) and all(
        is_sealed(folder / files.data / name, array.facts) for name, array in files.arrays.items()
    )


def _prepare_folder(
    hin: HIN, measure: PathMeasure, folder: Path, description: dict[str, Any], chosen: Mask | None, each: Each,
    progress: Progress,
) -> None:  # fmt: skip
    if _is_prepared(folder, description):
        return
    building = folder / _BUILDING
    building.mkdir(exist_ok=True)
    request = building / _REQUEST
    wanted = json.dumps(description, sort_keys=True, indent=1)
    if not request.is_file() or request.read_text("utf-8") != wanted:
        shutil.rmtree(building)
        building.mkdir()
        write_text(request, wanted)
    types: dict[str, str] = {}
    if chosen is not None:
        _save(building, "targets.chosen", chosen.astype(np.uint8), types)
    facts, shapes, widest = _write_arrays(hin, measure, building.absolute(), types, each, progress)
    content = description | {"shapes": shapes, "widest": widest}
    checks = {name: (own.type, own.length, own.crc) for name, own in facts.items()}
    data = f"data-{sha256(json.dumps([content, checks], sort_keys=True).encode()).hexdigest()[:12]}"
    for file in building.iterdir():
        if file.name.removesuffix(".crc") not in facts:
            file.unlink()
        else:
            sync(file)
    before = _data_before(folder)
    shutil.rmtree(folder / data, ignore_errors=True)  # damaged, or of the version before the last
    building.rename(folder / data)
    sync(folder)
    write_text(folder / MANIFEST, write_manifest(content, data, facts))
    for other in folder.iterdir():
        if _DATA.fullmatch(other.name) and other.name not in (data, before):
            shutil.rmtree(other, ignore_errors=True)


def _data_before(folder: Path) -> str | None:
    """Return the data folder of the version so far, which its readers go on with."""
    try:
        return str(read_manifest(folder)["data"])
    except SourceError:
        return None


def _write_arrays(
    hin: HIN, measure: PathMeasure, folder: Path, types: dict[str, str], each: Each, progress: Progress
) -> tuple[dict[str, ArrayFacts], dict[str, tuple[int, int]], int]:
    """Write all arrays of an index; return what the manifest says of them, and the shapes and widest row of factors."""
    halves = measure.halves(hin, measure.metapath_)
    left = _multiply_chain(halves.lefts, folder, "left", each, progress)
    matrix = left.map()
    norms = row_norms(matrix)
    _save(folder, "left_norms", norms, types)
    if halves.rights is None:
        right, right_norms = _transpose(left, folder, progress), norms
    else:
        right = _multiply_chain(halves.rights, folder, "right", each, progress)
        right_norms = column_norms(right.map())
        _save(folder, "right_norms", right_norms, types)
    for own in (left, right):
        types |= {f"{own.name}.indptr": own.kind, f"{own.name}.indices": own.kind, f"{own.name}.data": "float64"}
    progress("writing nodes", 0, None)
    _write_nodes(hin, _sides(measure), folder, types)
    widest = _write_index(Factors(matrix, right.map(), norms, right_norms), folder, types, progress)
    names = sorted(types)
    facts = {}
    for number, name in enumerate(names):
        progress("computing checksums", number, len(names))
        facts[name] = seal(folder / name, types[name])
    progress("computing checksums", len(names), len(names))
    return facts, {"left": left.shape, "right": right.shape}, widest


def _write(path: Path, array: NDArray[Any]) -> None:
    write_whole(path, lambda temporary: write_array(temporary, array))


def _save(folder: Path, name: str, array: NDArray[Any], types: dict[str, str]) -> None:
    _write(folder / name, array)
    types[name] = array.dtype.name


def _transpose(left: DiskMatrix, folder: Path, progress: Progress) -> DiskMatrix:
    """Write the transpose of a matrix, by bands of columns that fit into memory."""
    matrix = left.map()
    kind = index_type((left.shape[1], left.shape[0]), matrix.nnz)
    right = DiskMatrix(folder, "right", (left.shape[1], left.shape[0]), np.dtype(kind).name)
    done = folder / "right.done"
    if done.is_file():
        return right
    indices, data = create(right.path("indices"), kind, matrix.nnz), create(right.path("data"), np.float64, matrix.nnz)
    indptr = transpose_into(matrix, indices, data, lambda at, total: progress("transposing", at, total))
    write_array(right.path("indptr"), indptr.astype(kind))
    write_text(done, "{}")
    return right


def _write_nodes(hin: HIN, sides: dict[str, str], folder: Path, types: dict[str, str]) -> None:
    """Write ids and names of each type once, under its first side, and the table by which they are found."""
    first_side: dict[str, str] = {}
    for side, node_type in sides.items():
        if first_side.setdefault(node_type, side) != side:
            continue
        nodes: Nodes = hin.nodes[node_type]
        if pa.types.is_int64(nodes.ids.type):
            _save(folder, f"{side}.ids", nodes.ids.to_numpy(), types)
        else:
            _save_texts(folder, f"{side}.ids", nodes.ids, types)
        if nodes.names is not None:
            _save_texts(folder, f"{side}.names", nodes.names.cast(pa.string()), types)
        starts, words = words_of(nodes)
        _save(folder, f"{side}.words.starts", starts, types)
        _save(folder, f"{side}.words", words, types)


def _save_texts(folder: Path, name: str, texts: pa.Array, types: dict[str, str]) -> None:
    if texts.null_count:
        missing = texts.is_null().to_numpy(zero_copy_only=False)
        _save(folder, f"{name}.missing", missing.astype(np.uint8), types)
        texts = texts.fill_null("")
    starts, content = text_parts(texts)
    first = int(starts[0])
    _save(folder, f"{name}.starts", (starts - first).astype(np.int32), types)
    _save(folder, f"{name}.text", content[first : int(starts[-1])], types)


def _write_index(factors: Factors, folder: Path, types: dict[str, str], progress: Progress) -> int:
    """Write the index for many queries where the path is heavy; return the most entries of a row, 0 without one."""
    if factors.work < HEAVY_ENOUGH_FOR_INDEX or not factors.bounds_are_safe:
        return 0
    progress("building the index of a heavy path", 0, None)
    try:
        index = index_of(factors)
    except NotEnoughMemoryError as error:
        logger.warning("%s; a search of this index takes longer without it", error)
        return 0
    arrays = (
        index.group_of, *index.left, index.left_norms, *index.postings, index.norms, index.first_rows, *index.members,
        index.label_of,
    )  # fmt: skip
    for name, array in zip(INDEX_ARRAYS, arrays, strict=True):
        _save(folder, f"index.{name}", array, types)
    return index.widest


# ---- Object stores -------------------------------------------------------------------------------
def _upload(folder: Path, objects: ObjectFolder, progress: Progress) -> None:
    """Copy an index to an object store, its manifest last; keep the data of the version before for its readers."""
    files: IndexFiles = open_files(folder)
    before = objects.read(MANIFEST)
    paths = sorted((folder / files.data).iterdir())
    total, done = sum(path.stat().st_size for path in paths), 0
    for path in paths:
        progress("uploading", done, total)
        objects.write(f"{files.data}/{path.name}", path)
        done += path.stat().st_size
    progress("uploading", total, total)
    objects.write(MANIFEST, (folder / MANIFEST).read_bytes())
    kept = {files.data, _named_in(before)}
    for name in objects.names():
        if _DATA.fullmatch(name) and name not in kept:
            objects.remove_folder(name)


def _named_in(manifest: bytes | None) -> str | None:
    try:
        return None if manifest is None else str(json.loads(manifest)["data"])
    except (ValueError, KeyError, TypeError):
        return None


__all__ = ["open_index", "prepare"]
