"""Copy the objects under s3://bucket/folder or gs://bucket/folder into a temporary folder, to be read from there."""

import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

from neupath._runtime.progress import Progress
from neupath.errors import NeuPathError, SourceError, first_line

SCHEMES = ("s3://", "gs://")
_BLOCK, _THREADS = 1 << 23, 8
_CONNECT_SECONDS, _REQUEST_SECONDS, _GCS_SECONDS, _ATTEMPTS = 5, 60, 5, 3
_MOST_OBJECTS = 100_000


def is_object_url(source: object) -> bool:
    """Whether a source is the address of an object store."""
    return isinstance(source, str) and source.strip().lower().startswith(SCHEMES)


@contextmanager
def local_copy(url: str, progress: Progress) -> Iterator[Path]:
    """Copy an object, or all under a prefix, while the block runs; errors name the address and not the copy."""
    scheme, place = _split(url)
    with TemporaryDirectory(prefix="neupath-") as folder:
        with _store_errors(url):
            store, objects = _open(scheme, place, url)
            local = Path(folder) / PurePosixPath(place).name
            _copy_all(store, objects, local, url, progress)
        try:
            yield local
        except NeuPathError as error:
            error.args = (str(error.args[0]).replace(str(local), url.rstrip("/")), *error.args[1:])
            raise


def _split(url: str) -> tuple[str, str]:
    """Return the scheme of an address, and its bucket and key."""
    scheme, place = url.strip()[:5].lower(), url.strip()[5:].strip("/")
    bucket = place.partition("/")[0]
    if not bucket or "@" in bucket or "?" in place:
        raise SourceError(
            f"give an object store as {scheme}bucket/folder, without keys or settings in it; those are taken from the "
            f"environment, such as AWS_ACCESS_KEY_ID, AWS_REGION and AWS_ENDPOINT_URL"
        )
    return scheme, place


# ---- Stores --------------------------------------------------------------------------------------
def _open(scheme: str, place: str, url: str) -> tuple[Any, dict[str, Any]]:
    """Return the store and its objects; without any keys, a bucket that denies access is tried without signing."""
    open_store = _open_gcs if scheme == "gs://" else _open_s3
    bucket = place.partition("/")[0]
    store = open_store(bucket)
    try:
        return store, _find_objects(store, place, url)
    except OSError as error:
        key = "GOOGLE_APPLICATION_CREDENTIALS" if scheme == "gs://" else "AWS_ACCESS_KEY_ID"
        if key in os.environ or not _is_denied(str(error)):
            raise
    store = open_store(bucket, anonymous=True)
    return store, _find_objects(store, place, url)


def _open_s3(bucket: str, anonymous: bool = False) -> Any:
    """Open S3 with the usual environment."""
    from pyarrow import fs

    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    return fs.S3FileSystem(
        region=region or ("us-east-1" if endpoint else fs.resolve_s3_region(bucket)),
        endpoint_override=endpoint,
        anonymous=anonymous,
        connect_timeout=_CONNECT_SECONDS,
        request_timeout=_REQUEST_SECONDS,
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=_ATTEMPTS),
    )


def _open_gcs(_bucket: str, anonymous: bool = False) -> Any:
    from pyarrow import fs

    return fs.GcsFileSystem(anonymous=anonymous, retry_time_limit=timedelta(seconds=_GCS_SECONDS))


@contextmanager
def _store_errors(url: str) -> Iterator[None]:
    """Turn the errors of a store into a sentence with the next step."""
    try:
        yield
    except OSError as error:
        reason = first_line(error)
        raise SourceError(f"cannot read {url}: {_advice(reason, url[:2].lower())}") from error


def _is_denied(reason: str) -> bool:
    return any(
        word in reason for word in ("ACCESS_DENIED", "ACCESS_KEY", "SIGNATURE", "TOKEN", "access token", "PERMISSION")
    )


def _advice(reason: str, store: str) -> str:
    """Return what is wrong and what to do, by the words of Arrow's message."""
    keys = (
        "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE" if store == "s3"
        else "GOOGLE_APPLICATION_CREDENTIALS"
    )  # fmt: skip
    place = "AWS_ENDPOINT_URL and AWS_REGION" if store == "s3" else "CLOUD_STORAGE_EMULATOR_ENDPOINT"
    if any(word in reason for word in ("NO_SUCH_BUCKET", "bucket does not exist", "Bucket not found", "RESOURCE_NOT")):
        return "there is no such bucket, or it is in another region; check its name and AWS_REGION"
    if _is_denied(reason):
        return f"access is denied, or there are no keys; set {keys}"
    if any(word in reason for word in ("NETWORK", "CURL", "curl", "UNAVAILABLE", "imeout", "timed out")):
        return f"the store cannot be reached; check the network, {place}"
    return reason[:300]


# ---- Objects -------------------------------------------------------------------------------------
def _find_objects(store: Any, place: str, url: str) -> dict[str, Any]:
    """Return the objects to copy by their path below the place; an empty path is the place itself."""
    from pyarrow import fs

    info = store.get_file_info(place)
    if info.type == fs.FileType.File:
        return {"": info}
    found = store.get_file_info(fs.FileSelector(place, recursive=True, allow_not_found=True))
    objects = {
        each.path[len(place) + 1 :]: each for each in found if each.type == fs.FileType.File and each.path != place
    }
    for path in objects:
        if any(part in ("", ".", "..") for part in path.split("/")):
            raise SourceError(f"{url} has an object called {path!r}, which cannot be the name of a file; rename it")
    visible = {path: each for path, each in objects.items() if not any(p.startswith(".") for p in path.split("/"))}
    if not visible:
        raise SourceError(f"there are no objects under {url}; check the name of the folder")
    if len(visible) > _MOST_OBJECTS:
        raise SourceError(
            f"{url} has {len(visible):,} objects; at most {_MOST_OBJECTS:,} are read, so name a part of it"
        )
    return visible


def _copy_all(store: Any, objects: dict[str, Any], local: Path, url: str, progress: Progress) -> None:
    total = sum(info.size for info in objects.values())
    free = shutil.disk_usage(local.parent).free
    if total > free:
        raise SourceError(
            f"{url} has {total >> 20:,} MiB, but {local.parent.parent} has {free >> 20:,} MiB left; set TMPDIR to a "
            f"folder on a larger disk, or name a part of the objects"
        )
    done = 0
    progress("downloading", done, total)
    with ThreadPoolExecutor(_THREADS) as pool:
        try:
            for info in pool.map(lambda pair: _copy(store, pair[1], local / pair[0], url), objects.items()):
                done += info.size
                progress("downloading", done, total)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _copy(store: Any, info: Any, path: Path, url: str) -> Any:
    path.parent.mkdir(parents=True, exist_ok=True)
    copied = 0
    # Arrow would unzip .gz otherwise
    with store.open_input_stream(info.path, compression=None) as stream, path.open("wb") as copy:
        while block := stream.read(_BLOCK):
            copied += copy.write(block)
    if copied != info.size:
        raise SourceError(f"{url}: {info.path} was cut short at {copied:,} of {info.size:,} bytes; try again")
    return info
