"""The cores and the memory that this process may use; a container may have less than the machine.

Work that takes much memory reserves it first (`reserve_memory`), so that several threads do not count on the same.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

from neupath.errors import NotEnoughMemoryError

_A_LOT = 1 << 62
_ROOT = Path("/")


def count_cores() -> int:
    """Return how many cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass
class _BlasLimit:
    """How many of this process's threads ask for one thread of BLAS, and how many its libraries had before."""

    lock: Lock = field(default_factory=Lock)
    users: int = 0
    before: list[tuple[Any, int]] = field(default_factory=list)


_blas_limit = _BlasLimit()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let BLAS use one thread: many small products spend most of their time on waking and awaiting the others.

    The number holds for the whole process, so it is restored when the last thread that asked for one is done.
    """
    import scipy.linalg  # noqa: F401 - a library of BLAS that is loaded later is not limited
    from threadpoolctl import ThreadpoolController

    limit = _blas_limit
    with limit.lock:
        limit.users += 1
        if limit.users == 1:
            libraries = ThreadpoolController().select(user_api="blas").lib_controllers
            limit.before = [(library, library.num_threads) for library in libraries]
            for library in libraries:
                _set_threads(library, 1)
    try:
        yield
    finally:
        with limit.lock:
            limit.users -= 1
            if not limit.users:
                for library, number in limit.before:
                    _set_threads(library, number)


def _set_threads(library: Any, number: int) -> None:
    """Set how many threads a library of BLAS uses, whichever thread of this process has set it before.

    From 3.8 on, threadpoolctl ignores all threads but the first one until that has released the library, or has ended.
    """
    release = getattr(library, "clear_controlling_thread", None)
    if release is not None:
        release(force=True)
    library.set_num_threads(number)
    if release is not None:
        release(force=True)


def total_memory() -> int:
    """Return the bytes of memory of the machine, or of the control groups of this process where these allow less."""
    return min([_machine_memory(), *(group.limit for group in _memory_groups())])


def free_memory() -> int:
    """Return how many bytes this process can still take, besides those that are reserved.

    The machine, a control group or the process itself may be the one with the least left.
    """
    available = _read_field(_ROOT / "proc/meminfo", "MemAvailable")
    left = min([available, _own_memory(), *(group.limit - group.used for group in _memory_groups())])
    return max(0, left - sum(reservation.outstanding for reservation in tuple(_reservations)))


def limit_memory(size: int) -> None:
    """Let this process take so many bytes more than it has now; what exceeds them raises MemoryError.

    Counted are private, writable bytes, also those never touched. A system without such limits sets none.
    """
    with suppress(ImportError, OSError, ValueError):
        import resource

        has = _read_field(_ROOT / "proc/self/status", "VmData")
        most = resource.getrlimit(resource.RLIMIT_DATA)[1]
        if has < _A_LOT and (most == resource.RLIM_INFINITY or has + size < most):
            resource.setrlimit(resource.RLIMIT_DATA, (has + size, most))


def resident_bytes(process: int) -> int:
    """Return how many bytes of memory another process has, 0 if it has ended."""
    try:
        fields = (_ROOT / f"proc/{process}/statm").read_text(encoding="ascii").split()
        return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):
        return 0


# ---- Reservations --------------------------------------------------------------------------------
@dataclass(eq=False)
class Reservation:
    """Bytes that some work will take. What it has taken already is no longer outstanding: the system counts it."""

    size: int
    taken: int = 0
    process: int | None = None  # the process that takes them, if it is not this one

    @property
    def outstanding(self) -> int:
        taken = self.taken if self.process is None else resident_bytes(self.process)
        return max(0, self.size - taken)


_reservations: dict[Reservation, None] = {}
_reserving = Lock()


@contextmanager
def reserve_memory(size: int, what: str) -> Iterator[Reservation]:
    """Reserve bytes of memory while a block runs; raise NotEnoughMemoryError where not so many are free.

    >>> with reserve_memory(1000, "a small matrix") as reservation:
    ...     reservation.taken += 600
    ...     reservation.outstanding
    400
    """
    reservation = Reservation(size)
    with _reserving:
        free = free_memory()
        if size > free:
            raise NotEnoughMemoryError(
                f"{what} may take {_in_words(size)} of memory, and {_in_words(free)} are free; try again later, or ask "
                f"for less"
            )
        _reservations[reservation] = None
    try:
        yield reservation
    finally:
        del _reservations[reservation]


def _in_words(size: int) -> str:
    return f"{size / 2**30:.1f} GiB" if size >= 2**29 else f"{size / 2**20:.0f} MiB"


# ---- What the system says ------------------------------------------------------------------------
@dataclass(frozen=True)
class _MemoryGroup:
    """A control group that limits memory; `used` leaves out file contents that the system can drop."""

    limit: int
    used: int


def _memory_groups() -> Iterator[_MemoryGroup]:
    """Yield the control groups of this process that limit its memory: its own and those above it, of both versions."""
    own = [line.split(":", 2) for line in _lines(_ROOT / "proc/self/cgroup")]
    for line in _lines(_ROOT / "proc/self/mountinfo"):
        mount, _, system = line.partition(" - ")
        kind, _, options = (*system.split(" "), "", "", "")[:3]
        is_second = kind == "cgroup2"
        if not is_second and not (kind == "cgroup" and "memory" in options.split(",")):
            continue
        root, point = mount.split(" ")[3:5]
        for _, controllers, path in own:
            if (controllers == "") if is_second else ("memory" in controllers.split(",")):
                yield from _groups_up(_ROOT / point.lstrip("/"), _relative(path, root), is_second)


def _relative(path: str, root: str) -> str:
    """Return the path of a group below a mount whose top is the group `root`; the top for a path that is not below."""
    inside = path.removeprefix(root.rstrip("/"))
    return "" if (inside == path and root != "/") or ".." in path else inside.strip("/")


def _groups_up(top: Path, path: str, is_second: bool) -> Iterator[_MemoryGroup]:
    """Yield the groups with a limit from a group up to the top of its mount."""
    limit_name, used_name = (
        ("memory.max", "memory.current") if is_second else ("memory.limit_in_bytes", "memory.usage_in_bytes")
    )
    folder = top / path
    for group in (folder, *folder.parents):
        limit = _read_number(group / limit_name, _A_LOT)
        if limit < _A_LOT:
            cached = _read_stat(group / "memory.stat", "inactive_file" if is_second else "total_inactive_file")
            yield _MemoryGroup(limit, max(0, _read_number(group / used_name, 0) - cached))
        if group == top:
            return


def _machine_memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # not every system tells
        return _A_LOT


def _own_memory() -> int:
    try:
        import resource
    except ImportError:  # a system without such limits
        return _A_LOT
    left = _A_LOT
    for limit_name, name in ((resource.RLIMIT_AS, "VmSize"), (resource.RLIMIT_DATA, "VmData")):
        limit = resource.getrlimit(limit_name)[0]
        if limit != resource.RLIM_INFINITY:
            left = min(left, limit - _read_field(_ROOT / "proc/self/status", name))
    return max(0, left)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:  # not every system has it
        return []


def _read_number(path: Path, default: int) -> int:
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):  # no such group, or "max": no limit
        return default


def _read_stat(path: Path, name: str) -> int:
    return next((int(line.split()[1]) for line in _lines(path) if line.startswith(f"{name} ")), 0)


def _read_field(path: Path, name: str) -> int:
    """Read a number of kilobytes in one of the system's tables, as bytes."""
    try:
        return next(int(line.split()[1]) * 1024 for line in _lines(path) if line.startswith(f"{name}:"))
    except (StopIteration, ValueError):
        return _A_LOT
