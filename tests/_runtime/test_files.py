"""Locks: what is said of one that cannot be taken or removed, and that none is held afterwards."""

import os
from pathlib import Path

import pytest

from neupath._runtime.files import locked
from neupath.errors import WriteError


def take_and_leave(path: Path) -> None:
    with locked(path, "another writes there"):
        assert path.exists()


@pytest.mark.parametrize("left", [True, False])
def test_a_lock_of_another_user_is_told_with_the_next_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: bool
) -> None:
    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    path = tmp_path / "a.lock"
    if left:
        path.touch()
    with monkeypatch.context() as patch, pytest.raises(WriteError) as refused:
        patch.setattr("neupath._runtime.files.os.open", refuse)  # a test may run as root, who may open anything
        take_and_leave(path)
    advice = "; this lock is another user's: remove it if nobody writes there any more" if left else ""
    assert str(refused.value) == f"cannot write {path}: Permission denied{advice}"


def test_a_lock_that_cannot_be_removed_is_let_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    path, closed, close = tmp_path / "a.lock", [], os.close
    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", refuse)
        patch.setattr("neupath._runtime.files.os.close", lambda descriptor: closed.append(close(descriptor)))
        take_and_leave(path)
    assert len(closed) == 1
    assert caplog.messages == [f"cannot remove the lock {path}: Permission denied"]
    take_and_leave(path)
    assert not path.exists()
