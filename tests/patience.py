"""How long tests wait for what must happen, before they call it a failure."""

import os
from collections.abc import Callable
from time import monotonic, sleep
from typing import TypeVar

PATIENCE = float(os.environ.get("NEUPATH_TEST_PATIENCE", "600"))
"""Seconds. A cold or busy machine may take minutes; a test that passes never waits longer than it has to."""
T = TypeVar("T")


def wait_until(condition: Callable[[], T], reason: str, patience: float = PATIENCE) -> T:
    """Call a condition until it is true, and return what it returned; fail with a reason when patience has run out."""
    give_up, pause = monotonic() + patience, 0.01
    while not (result := condition()):
        assert monotonic() < give_up, f"waited {patience:g} seconds: {reason}"
        sleep(pause)
        pause = min(1.2 * pause, 0.25)  # asking takes processor time, too
    return result
