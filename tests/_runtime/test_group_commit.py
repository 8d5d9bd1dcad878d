"""Group commit: batches form while one is processed, and neither errors nor interrupts affect other items."""

import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from neupath._runtime.group_commit import GroupCommit, _Ticket
from tests.patience import PATIENCE, wait_until


def test_items_that_arrive_during_a_batch_form_the_next_batch() -> None:
    began, go_on = threading.Event(), threading.Event()
    calls: list[list[int]] = []

    def work(items: list[int]) -> list[int | BaseException]:
        calls.append(sorted(items))
        began.set()
        assert go_on.wait(PATIENCE)
        return [ValueError("odd") if item == 3 else item * 10 for item in items]

    grouped: GroupCommit[int, int] = GroupCommit(work)
    with ThreadPoolExecutor(4) as pool:
        results = [pool.submit(grouped, 1)]
        assert began.wait(PATIENCE)
        results += [pool.submit(grouped, item) for item in (2, 3, 4)]
        wait_until(lambda: len(grouped._waiting) == 3, "the items do not wait for the next batch")
        go_on.set()
        assert [results[place].result(PATIENCE) for place in (0, 1, 3)] == [10, 20, 40]
        with pytest.raises(ValueError, match="odd"):
            results[2].result(PATIENCE)
    assert calls == [[1], [2, 3, 4]]


def test_a_failed_batch_does_not_block_the_next() -> None:
    grouped: GroupCommit[int, int] = GroupCommit(lambda items: [1 // item for item in items])
    with pytest.raises(ZeroDivisionError):
        grouped(0)
    assert grouped(1) == 1


def test_an_item_interrupted_while_it_waits_is_never_processed() -> None:
    began, go_on = threading.Event(), threading.Event()
    calls: list[list[int]] = []

    def work(items: list[int]) -> list[int | BaseException]:
        calls.append(items)
        began.set()
        assert go_on.wait(PATIENCE)
        return list(items)

    grouped: GroupCommit[int, int] = GroupCommit(work)

    def interrupt() -> None:
        wait_until(lambda: grouped._waiting, "the item does not wait")
        signal.siginterrupt(signal.SIGINT, False)  # as Polars does
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(grouped, 1)
        assert began.wait(PATIENCE)
        pool.submit(interrupt)
        with pytest.raises(KeyboardInterrupt):
            grouped(2)
        go_on.set()
        assert first.result(PATIENCE) == 1
        assert pool.submit(grouped, 3).result(PATIENCE) == 3
    assert calls == [[1], [3]]


def test_the_main_thread_processes_only_its_own_item() -> None:
    calls: list[list[int]] = []

    def work(items: list[int]) -> list[int | BaseException]:
        calls.append(items)
        if 1 in items:
            raise KeyboardInterrupt
        return list(items)

    grouped: GroupCommit[int, int] = GroupCommit(work)
    other: _Ticket[int, int] = _Ticket(2)
    grouped._waiting.append(other)
    with pytest.raises(KeyboardInterrupt):
        grouped(1)
    assert other.outcome is None  # an interrupt fails no other item
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(grouped, 3).result(PATIENCE) == 3
    assert other.outcome == 2
    assert calls == [[1], [2, 3]]


def test_an_interrupt_before_the_work_lets_other_threads_work(monkeypatch: pytest.MonkeyPatch) -> None:
    grouped: GroupCommit[int, int] = GroupCommit(list)

    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(grouped, "_process", interrupt)
        with pytest.raises(KeyboardInterrupt):
            grouped(1)
    assert grouped(2) == 2
