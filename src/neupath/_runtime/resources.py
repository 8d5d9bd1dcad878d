"""The cores and the memory that this process may use; a container may have less than the machine."""

import os
from pathlib import Path

_A_LOT = 1 << 62
_GROUP = Path("/sys/fs/cgroup")


def count_cores() -> int:
    """Return how many cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def total_memory() -> int:
    """Return the bytes of memory of the machine, or of the control group of this process."""
    return min(_machine_memory(), _group_field("max"))


def free_memory() -> int:
    """Return how many bytes this process can still take: of the machine, its control group, its own limit."""
    return min(_read_field("/proc/meminfo", "MemAvailable"), _group_memory(), _own_memory())


def _machine_memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # not every system tells
        return _A_LOT


def _group_memory() -> int:
    most = _group_field("max")
    return _A_LOT if most == _A_LOT else max(0, most - _group_field("current"))


def _group_field(name: str) -> int:
    try:
        return int((_GROUP / f"memory.{name}").read_text(encoding="ascii"))
    except (OSError, ValueError):  # no control groups, or "max": no limit
        return _A_LOT


def _own_memory() -> int:
    try:
        import resource
    except ImportError:  # a system without such limits
        return _A_LOT
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return _A_LOT if limit == resource.RLIM_INFINITY else max(0, limit - _read_field("/proc/self/status", "VmSize"))


def _read_field(path: str, name: str) -> int:
    """Read a number of kilobytes in one of the system's tables, as bytes."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))
    except (OSError, StopIteration, ValueError):
        return _A_LOT
