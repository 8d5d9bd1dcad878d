"""What this process may use, as the system tells it, and what of it is reserved."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from neupath._runtime import resources as machine
from neupath._runtime.resources import free_memory, one_blas_thread, reserve_memory, total_memory
from neupath.errors import NotEnoughMemoryError

_MOUNT = "35 31 0:32 {root} /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
_MOUNT_2 = "36 31 0:33 {root} /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw,nsdelegate\n"


def _write(root: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The root of a machine with 8 GB available, whose files the test writes."""
    monkeypatch.setattr(machine, "_ROOT", tmp_path)
    _write(tmp_path, {"proc/meminfo": "MemTotal: 9000000 kB\nMemAvailable: 8000000 kB\n"})
    return tmp_path


def test_cores_and_memory_of_this_machine() -> None:
    assert machine.count_cores() >= 1
    assert 0 < free_memory() <= total_memory()
    assert machine.resident_bytes(os.getpid()) > 1_000_000


def test_nested_groups_of_version_2_allow_the_least_of_them(root: Path) -> None:
    group = "sys/fs/cgroup"
    _write(root, {
        "proc/self/cgroup": "0::/user.slice/app.service/worker\n", "proc/self/mountinfo": _MOUNT_2.format(root="/"),
        f"{group}/user.slice/memory.max": "5000000\n", f"{group}/user.slice/memory.current": "3000000\n",
        f"{group}/user.slice/app.service/memory.max": "max\n",
        f"{group}/user.slice/app.service/worker/memory.max": "6000000\n",
        f"{group}/user.slice/app.service/worker/memory.current": "5000000\n",
    })  # fmt: skip
    assert (total_memory(), free_memory()) == (5_000_000, 1_000_000)


def test_a_group_of_version_1_is_read(root: Path) -> None:
    group = "sys/fs/cgroup/memory/docker/abc"
    _write(root, {
        "proc/self/cgroup": "5:cpu:/other\n4:memory:/docker/abc\n0::/\n",
        "proc/self/mountinfo": _MOUNT.format(root="/"),
        "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
        f"{group}/memory.limit_in_bytes": "5000000\n", f"{group}/memory.usage_in_bytes": "3000000\n",
        f"{group}/memory.stat": "cache 900000\ninactive_file 1\ntotal_inactive_file 700000\n",
    })  # fmt: skip
    assert (total_memory(), free_memory()) == (5_000_000, 2_700_000)  # files that were read can be dropped


@pytest.mark.parametrize("path", ["/docker/abc", "/", "/../..", "/elsewhere"])
def test_a_container_sees_its_own_group_at_the_top(root: Path, path: str) -> None:
    _write(root, {
        "proc/self/cgroup": f"0::{path}\n", "proc/self/mountinfo": _MOUNT_2.format(root="/docker/abc"),
        "sys/fs/cgroup/memory.max": "5000000\n", "sys/fs/cgroup/memory.current": "3000000\n",
    })  # fmt: skip
    assert (total_memory(), free_memory()) == (5_000_000, 2_000_000)


def test_no_group_has_a_limit(root: Path) -> None:
    _write(root, {
        "proc/self/cgroup": "0::/app\n", "proc/self/mountinfo": _MOUNT_2.format(root="/") + "odd line\n",
        "sys/fs/cgroup/app/memory.max": "max\n",
    })  # fmt: skip
    assert total_memory() == machine._machine_memory()
    assert free_memory() == 8_000_000 * 1024


def test_a_reservation_counts_until_its_memory_is_taken(root: Path) -> None:
    free = free_memory()
    with reserve_memory(free - 1000, "a product") as reservation:
        assert free_memory() == 1000
        with pytest.raises(NotEnoughMemoryError, match=r"a matrix may take 1.0 GiB of memory, and 0 MiB are free"):
            reserve_memory(2**30, "a matrix").__enter__()
        reservation.taken += free
        assert free_memory() == free  # the system counts what is taken
        _write(root, {"proc/77/statm": "9000 1 0 0 0 0 0\n"})
        reservation.process = 77
        assert free_memory() == 1000 + os.sysconf("SC_PAGE_SIZE")  # so it does for another process
    assert free_memory() == free


def _blas_threads() -> set[int]:
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@pytest.fixture
def _three_blas_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let BLAS use three threads."""
    import scipy.linalg  # noqa: F401 - it loads a BLAS of its own

    monkeypatch.setattr(machine, "_blas_limit", machine._BlasLimit())  # threads of other tests may ask for it, too
    with threadpool_limits(3, user_api="blas"):
        assert _blas_threads() == {3}
        yield


@pytest.mark.usefixtures("_three_blas_threads")
def test_blas_has_one_thread_until_all_that_asked_for_it_are_done() -> None:
    first, second = one_blas_thread(), one_blas_thread()
    with first:
        assert _blas_threads() == {1}
        second.__enter__()
    assert _blas_threads() == {1}
    second.__exit__(None, None, None)
    assert _blas_threads() == {3}


@pytest.mark.usefixtures("_three_blas_threads")
def test_blas_gets_its_threads_back_from_another_thread_than_took_them() -> None:
    limited = one_blas_thread()
    with ThreadPoolExecutor(1) as pool:  # its thread goes on
        pool.submit(limited.__enter__).result()
        assert _blas_threads() == {1}
        limited.__exit__(None, None, None)
        assert _blas_threads() == {3}
        pool.submit(one_blas_thread()(_blas_threads)).result()
        with one_blas_thread():
            assert _blas_threads() == {1}
    assert _blas_threads() == {3}
