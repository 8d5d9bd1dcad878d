"""Copy the objects under s3://bucket/folder or gs://bucket/folder into a temporary folder, to be read from there."""

import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

from neupath._runtime.progress import Progress
from neupath.errors import NeuPathError, SourceError, first_line

SCHEMES = ("s3://", "gs://")
_BLOCK, _THREADS, _MOST_OBJECTS = 1 << 23, 8, 100_000
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
    scheme, place = url.strip()[:5].lower(), url.strip()[5:].strip("/")
    bucket, settings = place.partition("/")[0], " and ".join(_SETTINGS[scheme])
    if not bucket or "@" in bucket or "?" in place:
        raise SourceError(
            f"give an object store as {scheme}bucket/folder, without keys or settings in it; those are taken from the "
            f"environment, such as {settings}"
        )
    with TemporaryDirectory(prefix="neupath-") as folder:
        local = Path(folder) / PurePosixPath(place).name
        try:
            _copy_objects(*_find_readable(scheme, place, url), local, url, progress)
        except OSError as error:
            raise SourceError(
                f"cannot read {url}: {first_line(error)[:300]}; check the name of the bucket, the network, and "
                f"{settings} in the environment"
            ) from error
        try:
            yield local
        except NeuPathError as error:
            error.args = (str(error.args[0]).replace(str(local), url.rstrip("/")), *error.args[1:])
            raise


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
