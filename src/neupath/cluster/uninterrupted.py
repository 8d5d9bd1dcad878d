"""Starting processes that Ctrl-C in a terminal does not reach: it is for the command, which ends them itself."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from threading import current_thread, main_thread


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Put off Ctrl-C while a cluster is started, and keep it from the processes and threads that this starts."""
    resource_tracker.ensure_running()  # which would let the signal through when the first process is started
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        with _put_off():
            yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


@contextmanager
def _put_off() -> Iterator[None]:
    """Hear of the signal, which another thread may let through, and pass it on at the end."""
    if current_thread() is not main_thread():
        yield
        return
    heard: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if heard:
            signal.raise_signal(signal.SIGINT)
