"""Object stores, s3://bucket/folder or gs://bucket/folder: copied into a temporary folder, or used in parts."""

import logging
import os
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import timedelta
from io import BytesIO
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from time import sleep
from typing import Any

from neupath._runtime.progress import Progress
from neupath.errors import NeuPathError, SourceError, first_line

logger = logging.getLogger("neupath")
SCHEMES = ("s3://", "gs://")
_BLOCK, _THREADS, _MOST_OBJECTS = 1 << 23, 8, 100_000
_PAUSES = (0.0, 0.5, 2.0)  # seconds until a read is tried again
_CONNECT_SECONDS, _REQUEST_SECONDS, _GCS_SECONDS = 5, 60, 5
_SETTINGS = {
    "s3://": ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_REGION", "AWS_ENDPOINT_URL"),
    "gs://": ("GOOGLE_APPLICATION_CREDENTIALS", "CLOUD_STORAGE_EMULATOR_ENDPOINT"),
}
"""The variables of the environment that lead to a store, the keys first."""


def is_object_url(source: object) -> bool:
    """Whether a source is the address of an object store."""
    return isinstance(source, str) and source.strip().lower().startswith(SCHEMES)


@contextmanager
def local_copy(url: str, progress: Progress) -> Iterator[Path]:
    """Copy an object, or all under a prefix, while the block runs; errors name the address and not the copy."""
    scheme, place = _parse(url)
    with TemporaryDirectory(prefix="neupath-") as folder:
        local = Path(folder) / PurePosixPath(place).name
        with _naming(scheme, url, "read"):
            _copy_objects(*_find_readable(scheme, place, url), local, url, progress)
        try:
            yield local
        except NeuPathError as error:
            error.args = (str(error.args[0]).replace(str(local), url.rstrip("/")), *error.args[1:])
            raise


def _parse(url: str) -> tuple[str, str]:
    """Return the scheme of an address, and the bucket with the path in it."""
    scheme, place = url.strip()[:5].lower(), url.strip()[5:].strip("/")
    if not place.partition("/")[0] or "@" in place.partition("/")[0] or "?" in place:
        settings = " and ".join(_SETTINGS[scheme])
        raise SourceError(
            f"give an object store as {scheme}bucket/folder, without keys or settings in it; those are taken from the "
            f"environment, such as {settings}"
        )
    return scheme, place


@contextmanager
def _naming(scheme: str, url: str, action: str) -> Iterator[None]:
    """Say of what a store refuses which address it was about, and what to check."""
    try:
        yield
    except OSError as error:
        settings = " and ".join(_SETTINGS[scheme])
        raise SourceError(
            f"cannot {action} {url}: {first_line(error)[:300]}; check the name of the bucket, the network, and "
            f"{settings} in the environment"
        ) from error


class ObjectFolder:
    """The objects under an address, read and written one by one.

    A read that fails is tried again, several times where the store answers; without a key in the environment, as anyone
    may read a public bucket.
    """

    def __init__(self, url: str) -> None:
        self.url = url.strip().rstrip("/")
        self._scheme, self._place = _parse(url)
        with _naming(self._scheme, self.url, "open"):
            self._store = _open_store(self._scheme, self._place)
        self._files: dict[str, Any] = {}  # open for reading: each asks the store for its size once

    def read(self, name: str) -> bytes | None:
        """Return the content of an object, or None if no object has this name."""
        return self._try_again(lambda: self._read(name), name)

    def read_range(self, name: str, start: int, size: int) -> bytes | None:
        """Return a part of an object's content, shorter at its end, or None if no object has this name."""
        return self._try_again(lambda: self._read_range(name, start, size), name)

    def write(self, name: str, source: Path | bytes) -> None:
        """Write a file, or bytes, to an object; it is seen when it is whole."""
        with (
            _naming(self._scheme, self.url, "write"),
            self._store.open_output_stream(self._path(name)) as sink,
            BytesIO(source) if isinstance(source, bytes) else source.open("rb") as content,
        ):
            shutil.copyfileobj(content, sink, _BLOCK)

    def names(self) -> list[str]:
        """Return the names of the objects and folders directly under the address."""
        from pyarrow import fs

        with _naming(self._scheme, self.url, "list"):
            listing = self._store.get_file_info(fs.FileSelector(self._place, allow_not_found=True))
        return [each.base_name for each in listing]

    def remove_folder(self, name: str) -> None:
        """Remove a folder with all its objects."""
        with _naming(self._scheme, self.url, "remove"):
            self._store.delete_dir(self._path(name))

    def _path(self, name: str) -> str:
        return f"{self._place}/{name}"

    def _read(self, name: str) -> bytes:
        with self._store.open_input_stream(self._path(name), compression=None) as stream:
            return bytes(stream.read())

    def _read_range(self, name: str, start: int, size: int) -> bytes:
        file = self._files.get(name)
        if file is None:
            file = self._files[name] = self._store.open_input_file(self._path(name))
        return bytes(file.read_at(size, start))

    def _try_again(self, read: Callable[[], bytes], name: str) -> bytes | None:
        with _naming(self._scheme, self.url, "read"):
            for pause in (*_PAUSES, None):
                try:
                    return read()
                except FileNotFoundError:
                    return None
                except OSError as error:
                    answers = "HTTP status" in str(error)  # else it has waited for long already
                    if pause is None or (pause and not answers):
                        raise
                    logger.info("%s/%s: %s; trying again", self.url, name, first_line(error)[:200])
                sleep(pause)
                self._files.clear()
                if _SETTINGS[self._scheme][0] not in os.environ:
                    self._store = _open_store(self._scheme, self._place, anonymous=True)
        return None


def _find_readable(scheme: str, place: str, url: str) -> tuple[Any, dict[str, Any]]:
    """Return the store and its objects; without a key in the environment, the bucket may be one that anyone reads."""
    try:
        return _find_objects(_open_store(scheme, place), place, url)
    except OSError:
        if _SETTINGS[scheme][0] not in os.environ:
            with suppress(OSError):
                return _find_objects(_open_store(scheme, place, anonymous=True), place, url)
        raise


def _open_store(scheme: str, place: str, anonymous: bool = False) -> Any:
    """Open a store with the settings of the environment; one that does not answer fails within seconds."""
    from pyarrow import fs

    if scheme == "gs://":
        return fs.GcsFileSystem(anonymous=anonymous, retry_time_limit=timedelta(seconds=_GCS_SECONDS))
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    region = region or ("us-east-1" if endpoint else fs.resolve_s3_region(place.partition("/")[0]))
    seconds = {"connect_timeout": _CONNECT_SECONDS, "request_timeout": _REQUEST_SECONDS}
    return fs.S3FileSystem(region=region, endpoint_override=endpoint, anonymous=anonymous, **seconds)


def _find_objects(store: Any, place: str, url: str) -> tuple[Any, dict[str, Any]]:
    """Return a store and the objects to copy by their path below the place; an empty path is the place itself."""
    from pyarrow import fs

    info = store.get_file_info(place)
    if info.type == fs.FileType.File:
        return store, {"": info}
    listing = store.get_file_info(fs.FileSelector(place, recursive=True, allow_not_found=True))
    objects = {}
    for each in listing:
        path = each.path[len(place) + 1 :]
        parts = path.split("/")
        if each.type != fs.FileType.File or not path:
            continue
        if {"", ".", ".."}.intersection(parts):
            raise SourceError(f"{url} has an object called {path!r}, which cannot be the name of a file; rename it")
        if not any(part.startswith(".") for part in parts):
            objects[path] = each
    if not 0 < len(objects) <= _MOST_OBJECTS:
        raise SourceError(
            f"there are {len(objects) or 'no'} objects under {url}; name a folder with 1 to {_MOST_OBJECTS:,} of them"
        )
    return store, objects


def _copy_objects(store: Any, objects: dict[str, Any], local: Path, url: str, progress: Progress) -> None:
    total, free = sum(info.size for info in objects.values()), shutil.disk_usage(local.parent).free
    if total > free:
        raise SourceError(
            f"{url} has {total >> 20:,} MiB, but {local.parent.parent} has {free >> 20:,} MiB left; set TMPDIR to a "
            f"folder on a larger disk, or name a part of the objects"
        )

    def copy(name: str) -> int:
        info, path = objects[name], local / name
        path.parent.mkdir(parents=True, exist_ok=True)
        # Arrow would unzip .gz otherwise
        with store.open_input_stream(info.path, compression=None) as stream, path.open("wb") as file:
            shutil.copyfileobj(stream, file, _BLOCK)
        if (size := path.stat().st_size) != info.size:
            raise SourceError(f"{url}: {info.path} was cut short at {size:,} of {info.size:,} bytes; try again")
        return size

    done = 0
    progress("downloading", done, total)
    with ThreadPoolExecutor(_THREADS) as pool:
        try:
            for size in pool.map(copy, objects):
                done += size
                progress("downloading", done, total)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
