"""Fixtures of all tests: the toy graph, the real graphs if NEUPATH_DATA is set, and a temporary cache."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

import neupath as npth
from neupath import HIN
from tests.command_line import Result, Run

settings.register_profile("neupath", deadline=None, print_blob=True)
settings.load_profile("neupath")


@pytest.fixture(scope="session")
def toy() -> HIN:
    return npth.load("toy")


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    os.environ["NEUPATH_CACHE"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of real graphs; tests that need it are skipped where there is none."""
    root = os.environ.get("NEUPATH_DATA")
    if not root or not Path(root).is_dir():
        pytest.skip("NEUPATH_DATA does not name a folder of real graphs")
    return Path(root)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command in this process; return its exit code and what it printed."""
    from neupath.cli import main

    def call(*arguments: object) -> Result:
        with pytest.raises(SystemExit) as stop:
            main([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        return Result(int(stop.value.code or 0), printed.out, printed.err)

    return call
