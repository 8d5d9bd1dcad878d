"""Disk cache of arrays that took long to compute, in a folder beside the data that they were computed from.

One folder per entry holds its arrays as .npy files, which can carry no code, and a manifest with their checksums.
An entry is a cache: it can be deleted at any time, and a damaged one is. It is written whole or not at all, so several
processes may use a folder; where one cannot write there, nothing is cached. The least recently used entries go when
all together exceed the byte limit: NEUPATH_DISK_CACHE_BYTES, by default 8 GiB; 0 turns the cache off.
"""

import json
import logging
import os
import re
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neupath._runtime.files import quick_checksum, whole_folder
from neupath.errors import QueryError, WriteError

LIMIT_VARIABLE = "NEUPATH_DISK_CACHE_BYTES"
"""The environment variable that limits one folder, in bytes."""
GENERATION = 1
"""Part of all keys. Raise it when a change of the code makes other arrays under the same key."""
_LIMIT = 8 << 30
_MANIFEST = "manifest.json"
_ENTRY = re.compile(r"[0-9a-f]{32}")
_HIDDEN = re.compile(r"\.[0-9a-f]{32}-[0-9a-f]+")  # an entry that is being written or removed
_NAME = re.compile(r"[a-z0-9_.]+")
_ABANDONED = 3600.0  # seconds after which a hidden folder is what a killed process left
_DAMAGES = (
    OSError,
    ValueError,
    TypeError,
    KeyError,
    AttributeError,
    RecursionError,
)  # what reading a damaged one raises
_log = logging.getLogger("neupath")


@dataclass(frozen=True)
class Arrays:
    """One entry: arrays by name (small letters, digits, `_` and `.`), and facts about them that JSON can hold."""

    arrays: Mapping[str, NDArray[Any]]
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class DiskCache:
    """The entries in a folder that were computed from one version of the data beside it.

    Parameters
    ----------
    folder
        Where the entries are; it is made when needed, the folder that it is in is not.
    version
        A text that differs between versions of the data.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     cache = DiskCache(Path(folder) / "cache", "version 1")
    ...     cache.put("squares", Arrays({"values": np.arange(4) ** 2}, {"error": 0.0}))
    ...     found = DiskCache(Path(folder) / "cache", "version 1").find("squares")
    ...     found.arrays["values"].tolist(), DiskCache(Path(folder) / "cache", "version 2").find("squares")
    ([0, 1, 4, 9], None)
    """

    folder: Path
    version: str

    def has(self, key: str) -> bool:
        """Whether there is an entry, which may be damaged."""
        return self._is_own() and (self._place(key) / _MANIFEST).exists()

    def find(self, key: str) -> Arrays | None:
        """Verify an entry and map its arrays into memory, read-only; return None if it is missing or damaged."""
        place = self._place(key)
        if not self.has(key):
            return None
        try:
            entry = self._read(place, key)
        except _DAMAGES as error:
            if not isinstance(error, FileNotFoundError):  # as where another process removes it meanwhile
                _log.warning("%s is damaged (%s); it is computed again", place, error)
            self.remove(key)
            return None
        with suppress(OSError):
            os.utime(place / _MANIFEST)  # marks it as used
        return entry

    def put(self, key: str, entry: Arrays) -> None:
        """Write an entry, unless it is too large, there is one already, or the folder cannot be written to."""
        size = sum(array.nbytes for array in entry.arrays.values())
        limit, place = _limit(), self._place(key)
        try:
            if size > limit or self.has(key) or not self.folder.parent.is_dir() or not self._is_own():
                return
            _remove(place)  # without its manifest
            self.folder.mkdir(exist_ok=True)
            if 2 * size > shutil.disk_usage(self.folder).free:
                return
            with whole_folder(place) as temporary:
                self._write(temporary, key, entry)
        except (OSError, WriteError) as error:  # also where another process was faster
            _log.debug("%s is not cached: %s", place, error)
            return
        self._trim(limit, place)

    def remove(self, key: str) -> None:
        """Remove an entry, also one that is damaged."""
        if self._is_own():
            _remove(self._place(key))

    def remove_other_versions(self) -> None:
        """Remove the entries of all versions but this one."""
        for place in list(self._entries()):
            if _version_of(place) != self.version:
                _remove(place)

    def _is_own(self) -> bool:
        """Whether the folder is no link: entries are written and removed there, and it may come with the data."""
        return not self.folder.is_symlink()

    def _place(self, key: str) -> Path:
        return self.folder / sha256(self._title(key).encode()).hexdigest()[:32]

    def _title(self, key: str) -> str:
        return json.dumps([GENERATION, self.version, key])

    def _write(self, folder: Path, key: str, entry: Arrays) -> None:
        checksums = {}
        for name, array in entry.arrays.items():
            if not _NAME.fullmatch(name):
                raise ValueError(f"{name!r} is no name of an array")
            np.save(folder / f"{name}.npy", array, allow_pickle=False)
            checksums[name] = quick_checksum(folder / f"{name}.npy")
        content = {"title": self._title(key), "version": self.version, "arrays": checksums, "facts": dict(entry.facts)}
        manifest = {"content": content, "checksum": _checksum_of(content)}
        (folder / _MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")

    def _read(self, place: Path, key: str) -> Arrays:
        content = _read_manifest(place)
        if content["title"] != self._title(key):
            raise ValueError(f"{_MANIFEST} is of another entry")
        arrays = {}
        for name, checksum in content["arrays"].items():
            path = place / f"{name}.npy"
            if not _NAME.fullmatch(name) or quick_checksum(path) != checksum:
                raise ValueError(f"{name}.npy differs from its checksum")
            arrays[name] = np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
        return Arrays(arrays, content["facts"])

    def _entries(self) -> Iterator[Path]:
        with suppress(OSError):
            yield from (path for path in self.folder.iterdir() if self._is_own() and _ENTRY.fullmatch(path.name))

    def _trim(self, limit: int, newest: Path) -> None:
        """Remove the least recently used entries above the limit, and what killed processes left."""
        sizes = {place: _size(place) for place in self._entries()}
        total = sum(sizes.values())
        for place in sorted(sizes, key=_last_use):
            if total <= limit:
                break
            if place != newest:
                _remove(place)
                total -= sizes[place]
        for hidden in list(self.folder.glob(".*")):
            with suppress(OSError):
                if _HIDDEN.fullmatch(hidden.name) and time.time() - hidden.stat().st_mtime > _ABANDONED:
                    shutil.rmtree(hidden, ignore_errors=True)


def _checksum_of(content: Mapping[str, Any]) -> str:
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _read_manifest(place: Path) -> Mapping[str, Any]:
    manifest = json.loads((place / _MANIFEST).read_text(encoding="utf-8"))
    content: Mapping[str, Any] = manifest["content"]
    if manifest["checksum"] != _checksum_of(content):
        raise ValueError(f"{_MANIFEST} differs from its checksum")
    return content


def _version_of(place: Path) -> object:
    try:
        return _read_manifest(place)["version"]
    except _DAMAGES:
        return None


def _size(place: Path) -> int:
    with suppress(OSError):
        return sum(path.stat().st_size for path in place.iterdir())
    return 0


def _last_use(place: Path) -> float:
    with suppress(OSError):
        return (place / _MANIFEST).stat().st_mtime
    return 0.0


def _remove(place: Path) -> None:
    """Rename an entry, then remove it: nobody finds a part of it. Who has its arrays mapped keeps them."""
    hidden = place.with_name(f".{place.name}-{os.getpid()}")
    with suppress(OSError):
        place.rename(hidden)
        shutil.rmtree(hidden, ignore_errors=True)


def _limit() -> int:
    text = os.environ.get(LIMIT_VARIABLE)
    if text is None:
        return _LIMIT
    if not text.isdecimal():
        raise QueryError(f"{LIMIT_VARIABLE} is {text!r}; give a number of bytes, such as 8000000000, or 0 for no cache")
    return int(text)
