"""After a kill, everything acknowledged is on disk and complete, and every folder marked as a store is one."""

from pathlib import Path

import numpy as np
import pytest

from tests.store.crash_check import kill_once


@pytest.mark.parametrize(("verb", "times"), [("import", 2), ("update", 4), ("compact", 4), ("group", 4)])
@pytest.mark.slow
def test_a_killed_process_loses_nothing_acknowledged(verb: str, times: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    folder = tmp_path / "s"
    for number in range(times):
        if verb == "import":
            folder = tmp_path / f"s{number}"
            folder.mkdir()
        assert not kill_once(verb, folder, rng)
