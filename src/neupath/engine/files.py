"""Files of a prepared index: raw arrays in blocks with checksums, and a manifest, in a folder or an object store.

    index.json                  the manifest: format and version, what the index is of, and its arrays; written last
    data-1a2b3c4d/left.data     one array, little-endian numbers without a header
    data-1a2b3c4d/left.data.crc the CRC-32 of each of its blocks of 64 KiB; the manifest has that of this file

A reader follows the manifest that it has read: a new version has another data folder, and `index.json` is replaced at
once. No block is used before it is verified. Nothing in these files is ever executed.
"""

import json
import mmap
import os
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from neupath._runtime.object_stores import ObjectFolder, is_object_url
from neupath._runtime.resources import count_cores
from neupath.errors import SourceError
from neupath.graph.nodes import Rows

FORMAT, VERSION, MANIFEST = "neupath index", 1, "index.json"
BLOCK = 1 << 16
"""Bytes of a block, the least that is read and verified."""
_TYPES = {"int32": "<i4", "int64": "<i8", "float32": "<f4", "float64": "<f8", "uint8": "|u1", "uint32": "<u4"}
_LARGEST_MANIFEST = 1 << 24
_CACHED_BYTES = 1 << 28  # of blocks that were read from an object store
_THREADS = 16  # that read from an object store at once
_NEAR = 4  # blocks between two wanted ones that are read along rather than by a request of their own


@dataclass(frozen=True)
class ArrayFacts:
    """What the manifest says of an array: the type and number of its elements, and the CRC-32 of its checksums."""

    type: str
    length: int
    crc: int

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(_TYPES[self.type])

    @property
    def size(self) -> int:
        """Its bytes."""
        return self.length * self.dtype.itemsize

    @property
    def num_blocks(self) -> int:
        return -(-self.size // BLOCK)


# ---- Writing -------------------------------------------------------------------------------------
def create(path: Path, dtype: Any, length: int) -> NDArray[Any]:
    """Create a file for an array, and map it into memory to be written.

    Its space on the disk is reserved: to write to a mapped page for which none is left would kill the process.
    """
    dtype = np.dtype(dtype)
    with path.open("wb") as file:
        if length and hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, length * dtype.itemsize)
        file.truncate(length * dtype.itemsize)
    if not length:
        return np.zeros(0, dtype)
    mapped: NDArray[Any] = np.memmap(path, dtype.newbyteorder("<"), "r+", shape=(length,))
    return mapped


def write_array(path: Path, array: NDArray[Any]) -> None:
    """Write an array to a file, little-endian."""
    with path.open("wb") as file:
        for start in range(0, len(array), BLOCK):
            part = array[start : start + BLOCK].astype(_TYPES[array.dtype.name], copy=False)
            file.write(np.ascontiguousarray(part).data)


def map_array(path: Path, dtype: Any) -> NDArray[Any]:
    """Map an array of a file into memory, to be read."""
    if not path.stat().st_size:
        return np.zeros(0, dtype)
    mapped: NDArray[Any] = np.memmap(path, np.dtype(dtype).newbyteorder("<"), "r")
    return mapped.view(np.ndarray)


def seal(path: Path, type_name: str) -> ArrayFacts:
    """Write the checksums of an array's blocks beside its file, and return what the manifest says of it."""
    sums = _checksums(map_array(path, np.uint8))
    path.with_name(f"{path.name}.crc").write_bytes(sums)
    return ArrayFacts(type_name, path.stat().st_size // np.dtype(_TYPES[type_name]).itemsize, crc32(sums))


def is_sealed(path: Path, facts: ArrayFacts) -> bool:
    """Whether the file of an array, and the checksums beside it, are what the manifest says."""
    try:
        sums, content = path.with_name(f"{path.name}.crc").read_bytes(), map_array(path, np.uint8)
        return crc32(sums) == facts.crc and len(content) == facts.size and _checksums(content) == sums
    except OSError:
        return False


def _checksums(content: NDArray[np.uint8]) -> bytes:
    """Return the checksums of all blocks."""
    sums = np.zeros(-(-len(content) // BLOCK), dtype="<u4")
    _each_part(len(sums), lambda block: sums.__setitem__(block, crc32(_block_of(content, block))))
    return sums.tobytes()


def write_manifest(content: dict[str, Any], data: str, arrays: dict[str, ArrayFacts]) -> str:
    """Return the text of a manifest."""
    facts = {name: {"type": own.type, "length": own.length, "crc": own.crc} for name, own in sorted(arrays.items())}
    manifest = {"format": FORMAT, "version": VERSION, **content, "data": data, "arrays": facts}
    return json.dumps(manifest | {"sha256": _digest(manifest)}, indent=1, ensure_ascii=False) + "\n"


def _digest(manifest: dict[str, Any]) -> str:
    own = {name: value for name, value in manifest.items() if name != "sha256"}
    return sha256(json.dumps(own, sort_keys=True).encode()).hexdigest()


def _block_of(content: NDArray[Any], block: int) -> memoryview:
    return content[block * BLOCK : (block + 1) * BLOCK].data


def _each_part(count: int, work: Callable[[int], object]) -> None:
    """Run some work for each number below `count`; on threads where it is much."""
    if count < 256:
        for number in range(count):
            work(number)
        return
    bounds = np.linspace(0, count, 4 * count_cores() + 1).astype(np.int64).tolist()

    def run(bound: tuple[int, int]) -> None:
        for number in range(*bound):
            work(number)

    with ThreadPoolExecutor(count_cores()) as pool:
        list(pool.map(run, pairwise(bounds)))


# ---- Reading -------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class StoredArray:
    """An array of an index, of which only what is asked for is read and verified."""

    name: str
    facts: ArrayFacts
    files: "IndexFiles"

    def __len__(self) -> int:
        return self.facts.length

    def stretch(self, start: int, stop: int) -> NDArray[Any]:
        """Return neighbouring elements."""
        return self.gather(np.array([start]), np.array([stop]))

    def take(self, places: Rows) -> NDArray[Any]:
        """Return some elements."""
        return self._elements(np.asarray(places, dtype=np.int64))

    def gather(self, starts: Rows, stops: Rows) -> NDArray[Any]:
        """Return several stretches of elements, one after the other."""
        return self._elements(stretches(starts, stops))

    def whole(self) -> NDArray[Any]:
        """Return all elements."""
        return self.files.whole(self)

    def _elements(self, places: Rows) -> NDArray[Any]:
        if not len(places):
            return np.zeros(0, dtype=self.facts.dtype)
        per_block = BLOCK // self.facts.dtype.itemsize
        blocks, place_of = np.unique(places // per_block, return_inverse=True)
        return self.files.elements(self, places, blocks, place_of.ravel())


def stretches(starts: Rows, stops: Rows) -> Rows:
    """Return the numbers of several stretches, one after the other.

    >>> stretches(np.array([5, 0]), np.array([7, 1])).tolist()
    [5, 6, 0]
    """
    sizes = stops - starts
    ends = np.cumsum(sizes)
    total = int(ends[-1]) if len(ends) else 0
    places: Rows = np.arange(total) + np.repeat(starts - ends + sizes, sizes)
    return places


class IndexFiles(ABC):
    """The files of one version of an index, as its manifest lists them."""

    is_local: ClassVar[bool]

    def __init__(self, url: str, manifest: dict[str, Any]) -> None:
        self.url, self.manifest = url, manifest
        self.data = str(manifest["data"])
        self.arrays = {name: StoredArray(name, facts, self) for name, facts in _facts(manifest).items()}
        self.bytes_read = 0
        """Bytes that were read from the files, or verified of mapped ones."""
        self._sums: dict[str, NDArray[Any]] = {}

    def __getitem__(self, name: str) -> StoredArray:
        return self.arrays[name]

    def __contains__(self, name: str) -> bool:
        return name in self.arrays

    @property
    def size(self) -> int:
        """The bytes of all arrays."""
        return sum(array.facts.size for array in self.arrays.values())

    @abstractmethod
    def elements(self, array: StoredArray, places: Rows, blocks: Rows, block_of: Rows) -> NDArray[Any]:
        """Return some elements of an array, whose blocks are `blocks`, ascending, that of each by its place there."""

    @abstractmethod
    def whole(self, array: StoredArray) -> NDArray[Any]:
        """Return all elements of an array."""

    @abstractmethod
    def _content(self, name: str) -> bytes:
        """Return the content of a file."""

    def sums_of(self, array: StoredArray) -> NDArray[Any]:
        """Return the checksums of an array's blocks."""
        sums = self._sums.get(array.name)
        if sums is None:
            content = self._content(f"{array.name}.crc")
            self.bytes_read += len(content)
            if len(content) != 4 * array.facts.num_blocks or crc32(content) != array.facts.crc:
                raise self.damaged(f"{array.name}.crc")
            sums = self._sums[array.name] = np.frombuffer(content, dtype="<u4")
        return sums

    def damaged(self, name: str) -> SourceError:
        """Return the error of a file that does not fit its checksum, or is missing."""
        return SourceError(
            f"{self.url}/{self.data}/{name} is missing or damaged; prepare the index again, or open it anew if it was "
            f"prepared again meanwhile"
        )


class FolderFiles(IndexFiles):
    """The files of a folder, mapped into memory when they are opened: all readers of a machine share their pages."""

    is_local = True

    def __init__(self, url: str, manifest: dict[str, Any]) -> None:
        super().__init__(url, manifest)
        self._maps = {name: self._map(array) for name, array in self.arrays.items()}
        self._verified = {name: np.zeros(array.facts.num_blocks, np.bool_) for name, array in self.arrays.items()}
        for array in self.arrays.values():
            self.sums_of(array)  # while the files are there: the folder goes when a newer version is prepared

    def _map(self, array: StoredArray) -> NDArray[Any]:
        try:
            with (Path(self.url) / self.data / array.name).open("rb") as file:
                if os.fstat(file.fileno()).st_size != array.facts.size:
                    raise self.damaged(array.name)
                if not array.facts.size:
                    return np.zeros(0, dtype=array.facts.dtype)
                mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except OSError as error:
            raise self.damaged(array.name) from error
        return np.frombuffer(mapped, dtype=array.facts.dtype)

    def elements(self, array: StoredArray, places: Rows, blocks: Rows, block_of: Rows) -> NDArray[Any]:  # noqa: ARG002
        self._verify(array, blocks)
        taken: NDArray[Any] = self._maps[array.name][places]
        return taken

    def whole(self, array: StoredArray) -> NDArray[Any]:
        self._verify(array, np.arange(array.facts.num_blocks))
        return self._maps[array.name]

    def _verify(self, array: StoredArray, blocks: Rows) -> None:
        verified = self._verified[array.name]
        missing = blocks[~verified[blocks]]
        if not len(missing):
            return
        sums, content = self.sums_of(array), self._maps[array.name].view(np.uint8)
        fits = np.zeros(len(missing), np.bool_)
        _each_part(
            len(missing), lambda at: fits.__setitem__(at, crc32(_block_of(content, missing[at])) == sums[missing[at]])
        )
        if not fits.all():
            raise self.damaged(array.name)
        verified[missing] = True
        self.bytes_read += len(missing) * BLOCK

    def _content(self, name: str) -> bytes:
        try:
            return (Path(self.url) / self.data / name).read_bytes()
        except OSError as error:
            raise self.damaged(name) from error


class ObjectFiles(IndexFiles):
    """The files under an address of an object store: blocks are read as they are needed, and the last ones cached."""

    is_local = False

    def __init__(self, folder: ObjectFolder, manifest: dict[str, Any]) -> None:
        super().__init__(folder.url, manifest)
        self._folder = folder
        self._cache: OrderedDict[tuple[str, int], bytes] = OrderedDict()
        self._cached = 0
        self._lock = Lock()

    def elements(self, array: StoredArray, places: Rows, blocks: Rows, block_of: Rows) -> NDArray[Any]:
        per_block = BLOCK // array.facts.dtype.itemsize
        content = np.frombuffer(b"".join(self._blocks(array, blocks.tolist())), dtype=array.facts.dtype)
        taken: NDArray[Any] = content[block_of * per_block + places % per_block]
        return taken

    def whole(self, array: StoredArray) -> NDArray[Any]:
        content = b"".join(self._blocks(array, list(range(array.facts.num_blocks))))
        return np.frombuffer(content, dtype=array.facts.dtype)

    def _blocks(self, array: StoredArray, blocks: list[int]) -> list[bytes]:
        """Return some blocks, in ascending order; those that are not cached are read, near ones by one request."""
        with self._lock:
            known = {block: self._cache.get((array.name, block)) for block in blocks}
            for block in blocks:
                if known[block] is not None:
                    self._cache.move_to_end((array.name, block))
        missing = [block for block in blocks if known[block] is None]
        if missing:
            self.sums_of(array)
            runs = list(_runs(missing))
            with ThreadPoolExecutor(min(_THREADS, len(runs))) as pool:
                for read in pool.map(lambda run: self._read(array, *run), runs):
                    known.update((block, content) for block, content in read.items() if block in known)
        return [content for content in known.values() if content is not None]

    def _read(self, array: StoredArray, first: int, last: int) -> dict[int, bytes]:
        """Read and verify neighbouring blocks, and cache them."""
        size = min(array.facts.size, (last + 1) * BLOCK) - first * BLOCK
        content = self._folder.read_range(f"{self.data}/{array.name}", first * BLOCK, size)
        if content is None or len(content) != size:
            raise self.damaged(array.name)
        sums = self.sums_of(array)
        read = {
            block: content[(block - first) * BLOCK : (block - first + 1) * BLOCK] for block in range(first, last + 1)
        }
        if any(crc32(own) != sums[block] for block, own in read.items()):
            raise self.damaged(array.name)
        with self._lock:
            self.bytes_read += size
            for block, own in read.items():
                if (array.name, block) not in self._cache:
                    self._cache[array.name, block] = own
                    self._cached += len(own)
            while self._cached > _CACHED_BYTES:
                self._cached -= len(self._cache.popitem(last=False)[1])
        return read

    def _content(self, name: str) -> bytes:
        content = self._folder.read(f"{self.data}/{name}")
        if content is None:
            raise self.damaged(name)
        return content


def _runs(blocks: Iterable[int]) -> Iterable[tuple[int, int]]:
    """Join blocks that are near each other: the first and the last of each run."""
    first = last = None
    for block in blocks:
        if first is not None and last is not None and block - last <= _NEAR:
            last = block
            continue
        if first is not None and last is not None:
            yield first, last
        first = last = block
    if first is not None and last is not None:
        yield first, last


# ---- The manifest --------------------------------------------------------------------------------
class NewerFormatError(SourceError):
    """An index was prepared by a version of neupath that writes a newer format."""


def open_files(url: str | Path, manifest: dict[str, Any] | None = None) -> IndexFiles:
    """Open an index as its manifest describes it now, or as one did that was read before."""
    manifest = read_manifest(url) if manifest is None else manifest
    return ObjectFiles(ObjectFolder(str(url)), manifest) if is_object_url(url) else FolderFiles(str(url), manifest)


def read_manifest(url: str | Path) -> dict[str, Any]:
    """Return the manifest of an index; raise unless it is whole and of a version that can be read."""
    if is_object_url(url):
        folder = ObjectFolder(str(url))
        return parse_manifest(folder.read(MANIFEST), folder.url)
    path = Path(url)
    try:
        with (path / MANIFEST).open("rb") as file:
            content: bytes | None = file.read(_LARGEST_MANIFEST)
    except (FileNotFoundError, NotADirectoryError):
        content = None
    except OSError as error:
        raise SourceError(f"cannot read {path / MANIFEST}: {error.strerror}") from error
    return parse_manifest(content, str(path))


def is_index(source: object) -> bool:
    """Whether a source is a folder with a prepared index."""
    return isinstance(source, str | Path) and not is_object_url(source) and (Path(source) / MANIFEST).is_file()


def parse_manifest(content: bytes | None, url: str) -> dict[str, Any]:
    """Return the manifest that a file holds; raise unless it is whole and of a version that can be read."""
    if content is None:
        raise SourceError(f"{url} has no {MANIFEST}, so it is no prepared index; `neupath prepare` makes one")
    try:
        manifest: dict[str, Any] = json.loads(content)
        if manifest["format"] != FORMAT or not isinstance(manifest["version"], int):
            raise ValueError(f"its format is {manifest['format']!r}")
        if manifest["version"] > VERSION:
            raise NewerFormatError(
                f"{url} was prepared by a newer version of neupath, in version {manifest['version']} of the format, "
                f"and this one reads versions up to {VERSION}; upgrade neupath, or prepare an index in another folder"
            )
        if manifest["sha256"] != _digest(manifest):
            raise SourceError(f"{url}/{MANIFEST} is damaged: it does not fit its checksum; prepare the index again")
        _facts(manifest)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise SourceError(f"{url}/{MANIFEST} is no manifest of an index ({error}); prepare the index again") from error
    return manifest


def _facts(manifest: dict[str, Any]) -> dict[str, ArrayFacts]:
    arrays = {name: ArrayFacts(own["type"], own["length"], own["crc"]) for name, own in manifest["arrays"].items()}
    for name, own in arrays.items():
        if own.type not in _TYPES or own.length < 0 or Path(name).name != name:
            raise ValueError(f"it lists an array {name!r} of type {own.type!r} and length {own.length!r}")
    if Path(str(manifest["data"])).name != manifest["data"]:
        raise ValueError(f"its data are in {manifest['data']!r}")
    return arrays
