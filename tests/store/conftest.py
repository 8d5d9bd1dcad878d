"""The toy graph in a store."""

from pathlib import Path

import pytest

import neupath as npth
from neupath.store import Store, open_store, write_store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(write_store(npth.load("toy"), tmp_path / "toy.store"))
