"""Files and folders that are written whole or not at all, texts read line by line, and locks between processes."""

import errno
import logging
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from itertools import count
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import TextIO
from uuid import uuid4
from zlib import crc32

from neupath.errors import SourceError, WriteError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


# ---- Atomic writes -------------------------------------------------------------------------------
def check_folder(folder: Path) -> None:
    """Raise if a folder cannot be written to, before the work whose result goes there."""
    nearest = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
    if not nearest.is_dir():
        raise WriteError(f"cannot write to {folder}: {nearest} is a file; give a folder")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise WriteError(f"cannot write to {folder}: no permission to write in {nearest}")


def write_text(path: Path, text: str) -> None:
    """Write a text file whole or not at all."""
    write_whole(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a temporary file with the same suffix, then rename it."""
    temporary = _temporary(path)
    try:
        write(temporary)
        temporary.replace(path)
    except OSError as error:
        raise WriteError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        temporary.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Wait until a file, or the file names of a folder, are on disk.

    A file that is renamed before its content is on disk may be empty after a power failure.
    """
    is_windows = os.name == "nt"  # which opens no folders, and flushes files that are open for writing only
    if is_windows and path.is_dir():
        return
    descriptor = os.open(path, os.O_RDWR if is_windows else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def checksum(path: Path, name: str) -> str:
    """Return the SHA-256 of a name and the content of a file."""
    digest = sha256(name.encode())
    with path.open("rb") as stream:
        while chunk := stream.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def quick_checksum(path: Path) -> str:
    """Return the CRC-32 of a file that is not empty: opening it must not wait long for this."""
    with path.open("rb") as stream, mmap(stream.fileno(), 0, access=ACCESS_READ) as content:
        return f"{crc32(content):08x}"


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder, then rename it; a folder of that name must not exist yet."""
    temporary = _temporary(folder)
    try:
        temporary.mkdir(parents=True)
        yield temporary
        temporary.rename(folder)
    except OSError as error:
        raise WriteError(f"cannot write {folder}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _temporary(path: Path) -> Path:
    return path.parent / f".{path.stem}-{uuid4().hex[:8]}{path.suffix}"


# ---- Reading -------------------------------------------------------------------------------------
LONGEST_LINE = 1 << 24
"""Letters of the longest line that is read; a text without line ends would otherwise be held whole, many times over."""


def bounded_lines(text: TextIO, path: Path) -> Iterator[str]:
    """Yield the lines of a text; raise at one that is too long to be a row of a table."""
    for number in count(1):
        line = text.readline(LONGEST_LINE + 1)
        if not line:
            return
        if len(line) > LONGEST_LINE:
            raise SourceError(
                f"{path}, line {number}: the line is longer than {LONGEST_LINE:,} characters, the most that is read; "
                f"check that the file is a table with one row per line"
            )
        yield line


# ---- Locks ---------------------------------------------------------------------------------------
logger = logging.getLogger("neupath")
_WITHOUT_LOCKS = (errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK)


@contextmanager
def locked(path: Path, refusal: str, shared: bool = False) -> Iterator[None]:
    """Hold a lock file, or raise an error with the message `refusal` if another process holds it.

    Several processes can hold a shared lock, and none of them while one holds it alone. The lock ends with the process
    that holds it, however that ends.
    """
    descriptor = _take(path, refusal, shared)
    try:
        yield
    finally:
        if shared:
            os.close(descriptor)  # others may hold the file
        else:
            _release(descriptor, path)


def _take(path: Path, refusal: str, shared: bool) -> int:
    while True:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise WriteError(f"cannot write {path}: {error.strerror}{_advice(error, path)}") from error
        try:
            _lock(descriptor, path, refusal, shared)
            if _is_at(descriptor, path):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # its holder removed it in between


def _advice(error: OSError, path: Path) -> str:
    if not isinstance(error, PermissionError) or not os.access(path, os.F_OK):
        return ""
    return "; this lock is another user's: remove it if nobody writes there any more"


def _release(descriptor: int, path: Path) -> None:
    try:
        path.unlink(missing_ok=True)  # while it is held: a process that opened it meanwhile sees that it is gone
    except OSError as error:  # the file alone locks nobody out
        logger.warning("cannot remove the lock %s: %s", path, error.strerror)
    finally:
        os.close(descriptor)


def _lock(descriptor: int, path: Path, refusal: str, shared: bool) -> None:
    try:
        if fcntl is None:
            raise OSError(errno.ENOSYS, "this system has no such locks")
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError) as error:
        raise WriteError(refusal) from error
    except OSError as error:
        if error.errno not in _WITHOUT_LOCKS:
            raise WriteError(f"cannot lock {path}: {error.strerror}") from error
        logger.warning("the file system of %s has no locks; see that nobody else writes there", path.parent)


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
