"""Kernels in Python and as machine code, the types that they take, the thread that loads them, and their files."""

import logging
import os
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from threading import Event
from typing import Any

import numba
import numpy as np
import pytest

from neupath._runtime import kernels
from neupath._runtime.kernels import LIGHT_STEPS, kernel, load_in_background, part
from tests.patience import PATIENCE, wait_until

ROWS = np.array([3, 1, 2], dtype=np.int32)


@part
def twice(number):
    return number + number


@kernel("const ?[:]", "float64[:]", variants=("int32", "int64"))
def add_twice(numbers, sums):
    for i in range(len(numbers)):
        sums[i] += twice(numbers[i])
    return len(numbers)


@kernel("const ?[:]", "float64[:]", variants=("int32", "int64"))
def add_four_times(numbers, sums):
    add_twice(numbers, sums)
    return add_twice(numbers, sums)


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    for each in (add_twice, add_four_times):
        monkeypatch.setattr(each, "code", {})
        monkeypatch.setattr(each, "_steps", 0)
    monkeypatch.setattr(kernels, "_asked", {})


def sums_of(numbers: Any, run: Any) -> list[float]:
    sums = np.zeros(3)
    assert run(numbers, sums) == 3
    return sums.tolist()


def test_python_and_machine_code_do_the_same_with_what_they_call() -> None:
    by_python = sums_of(ROWS, add_four_times.interpret)
    assert not add_four_times.code
    assert not add_twice.code, "what a kernel calls is run by Python, too"
    assert by_python == sums_of(ROWS, add_four_times) == [12.0, 4.0, 8.0]
    assert list(add_four_times.code) == ["int32"]
    assert sums_of(ROWS.astype(np.int64), add_four_times) == by_python
    assert list(add_four_times.code) == ["int32", "int64"]


def test_arrays_that_may_be_written_and_others_take_the_same_code() -> None:
    frozen = ROWS.copy()
    frozen.flags.writeable = False
    assert sums_of(frozen, add_twice) == sums_of(ROWS, add_twice)
    assert len(add_twice.code["int32"].signatures) == 1  # type: ignore[attr-defined]


def test_few_steps_are_run_by_python_and_many_by_machine_code() -> None:
    assert sums_of(ROWS, lambda *arguments: add_twice.run(3, *arguments)) == [6.0, 2.0, 4.0]
    assert not add_twice.code
    assert sums_of(ROWS, lambda *arguments: add_twice.run(LIGHT_STEPS + 1, *arguments)) == [6.0, 2.0, 4.0]
    assert add_twice.code


def test_after_many_calls_of_few_steps_a_thread_loads_the_kernel() -> None:
    for _ in range(3):
        add_twice.run(LIGHT_STEPS / 2, ROWS, np.zeros(3))
    wait_until(lambda: "int32" in add_twice.code, "the kernel is not loaded")


def test_a_kernel_that_cannot_be_loaded_is_a_warning_and_the_thread_goes_on(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(add_twice, "_load", lambda _: [].pop())  # an IndexError, which nobody expects
    with caplog.at_level(logging.WARNING, "neupath.compilation"):
        failed = load_in_background([(add_twice, "int32")])
        later = load_in_background([(add_four_times, "int32")])
        assert failed is not None
        assert later is not None
        assert failed.wait(PATIENCE)
        assert later.wait(PATIENCE)
    assert not failed.is_loaded
    assert later.is_loaded
    assert "kernels cannot be compiled, and slower code answers: IndexError" in caplog.text
    assert load_in_background([(add_twice, "int32")]) is failed, "what has failed is not tried again"


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_waits_for_the_kernel_at_hand_and_loads_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, ended = Event(), []

    def load(variant: str) -> None:
        with kernels._loading:
            begun.set()
            ended.append(variant)

    monkeypatch.setattr(add_twice, "_load", load)
    assert load_in_background([(add_twice, "int32")]) is not None
    assert begun.wait(PATIENCE)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        loading = load_in_background([(add_twice, "int64")])
        os.write(write, b"loaded" if loading is not None and loading.wait(PATIENCE) else b"waits")
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert (os.read(read, 10), ended) == (b"loaded", ["int32"])


SLOW = """
import logging, sys, time
from neupath._runtime import kernels
from neupath._runtime.kernels import kernel
logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
kernels.NOTE_AFTER, kernels._WATCH = 0.0, 0.001

@kernel("int64")
def double(number):
    return number + number

print(double(4))
"""


@pytest.mark.slow
def test_whoever_waits_is_told_what_is_compiled_but_not_what_is_read_from_the_cache(tmp_path: Path) -> None:
    (tmp_path / "slow_kernels.py").write_text(SLOW)
    variables = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", f"import sys; sys.path.append({str(tmp_path)!r}); import slow_kernels"]
    first, second = (
        subprocess.run(command, capture_output=True, text=True, check=True, env=variables).stdout for _ in range(2)
    )
    assert first == "compiling slow kernels for the first use on this machine, which takes some seconds\n8\n"
    assert second == "8\n"


@pytest.mark.slow
def test_processes_that_compile_at_the_same_time_keep_their_code_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "doubling.py"
    path.write_text(
        "from neupath._runtime.kernels import numba_function\n@numba_function\ndef double(x):\n    return x + x\n"
    )
    spec = spec_from_file_location("doubling", path)
    assert spec is not None
    assert spec.loader is not None

    def in_a_new_process() -> Any:
        module = module_from_spec(spec)
        monkeypatch.setitem(sys.modules, "doubling", module)
        spec.loader.exec_module(module)
        return module.double

    first, second, third = (in_a_new_process() for _ in range(3))
    first(np.int64(1))
    index = Path(first._cache._cache_file._index_path)
    seen_by_third = index.read_bytes()
    monkeypatch.setattr(second._cache._cache_file, "_load_index", dict)  # it looked before the first had written
    second(np.float64(1))
    index.write_bytes(seen_by_third)
    assert third(np.int64(2**60 + 1)) == 2**61 + 2  # which a float cannot hold
    assert (third.stats.cache_hits, third.stats.cache_misses) == ({(numba.int64,): 1}, {})
