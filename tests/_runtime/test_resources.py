"""What this process may use, as the system tells it."""

from pathlib import Path

import pytest

from neupath._runtime import resources as machine


def test_cores_and_memory_of_this_machine() -> None:
    assert machine.count_cores() >= 1
    assert 0 < machine.free_memory() <= machine.total_memory()


def test_a_control_group_may_have_less_than_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_GROUP", tmp_path)
    (tmp_path / "memory.max").write_text("5000000\n")
    (tmp_path / "memory.current").write_text("3000000\n")
    assert machine.total_memory() == 5_000_000
    assert machine.free_memory() == 2_000_000


@pytest.mark.parametrize("limit", ["max\n", None])
def test_a_control_group_without_a_limit_has_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str | None
) -> None:
    monkeypatch.setattr(machine, "_GROUP", tmp_path)
    if limit is not None:
        (tmp_path / "memory.max").write_text(limit)
    assert machine.total_memory() == machine._machine_memory()
