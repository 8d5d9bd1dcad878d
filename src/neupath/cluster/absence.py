"""Absence: a scheduler whose workers are all gone keeps tasks for ever; who waits for it says so, and gives up."""

import logging
from collections.abc import Sequence
from concurrent.futures import CancelledError
from threading import Event, Thread
from time import monotonic
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from distributed import Client, Future

logger = logging.getLogger("neupath")
PATIENCE = 120.0
"""Seconds without any worker after which a join gives up."""
_BETWEEN_LOOKS = 1.0
_TO_ANSWER = 5.0


class Absence:
    """Looks every second, while tasks are waited for, whether there are workers; without any for long, cancels them."""

    def __init__(self, client: "Client", futures: "Sequence[Future[Any]]", patience: float) -> None:
        self.too_long = False
        self._client, self._futures, self._patience = client, futures, patience
        self._over = Event()
        self._thread = Thread(target=self._watch, name="neupath-absence", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(_TO_ANSWER)  # no longer than it may wait for an answer

    def _watch(self) -> None:
        since: float | None = None
        while not self._over.wait(_BETWEEN_LOOKS):
            if self._is_anyone_there():
                since = None
            elif since is None:
                since = monotonic()
                logger.warning("all workers are gone; waiting %.0f seconds for others", self._patience)
            elif monotonic() - since >= self._patience:
                self.too_long = True
                self._client.cancel(self._futures)
                return

    def _is_anyone_there(self) -> bool:
        try:
            return bool(self._client.nthreads(callback_timeout=_TO_ANSWER))
        except TimeoutError:  # a scheduler that hangs gives nobody work
            return False
        except (OSError, CancelledError):  # one that is gone itself ends the tasks
            return True
