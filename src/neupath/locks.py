"""Locks: one process at a time writes to a place; a lock goes with the process that holds it, however that ends."""

import errno
import fcntl
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from neupath.errors import WriteError

logger = logging.getLogger("neupath")
_WITHOUT_LOCKS = (errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK)


@contextmanager
def locked(path: Path, refusal: str) -> Iterator[None]:
    """Hold a lock, a file that is there for as long; where another holds it, raise an error that says `refusal`."""
    descriptor = _take(path, refusal)
    try:
        yield
    finally:
        _release(descriptor, path)


def _take(path: Path, refusal: str) -> int:
    while True:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise WriteError(f"cannot write {path}: {error.strerror}{_advice(error, path)}") from error
        try:
            _lock(descriptor, path, refusal)
            if _is_at(descriptor, path):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # of one who was done in between


def _advice(error: OSError, path: Path) -> str:
    if not isinstance(error, PermissionError) or not os.access(path, os.F_OK):
        return ""
    return "; this lock is another user's: remove it if nobody writes there any more"


def _release(descriptor: int, path: Path) -> None:
    try:
        path.unlink(missing_ok=True)  # while it is held: who opened it meanwhile sees that it is gone
    except OSError as error:  # the file alone keeps nobody out
        logger.warning("cannot remove the lock %s: %s", path, error.strerror)
    finally:
        os.close(descriptor)


def _lock(descriptor: int, path: Path, refusal: str) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
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
