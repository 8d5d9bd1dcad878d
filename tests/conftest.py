"""Fixtures of all tests: the toy graph, real graphs if NEUPATH_DATA is set, a temporary cache; the list of skips."""

import gc
import os
import signal
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

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
def _interruptible() -> None:
    """Let SIGINT interrupt this process and those it starts; a shell starts background jobs with it ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of real graphs; tests that need it are skipped where there is none."""
    root = os.environ.get("NEUPATH_DATA")
    if not root or not Path(root).is_dir():
        pytest.skip("NEUPATH_DATA names no folder of real graphs; CONTRIBUTING.md says which graphs it must hold")
    return Path(root)


@pytest.fixture(scope="session")
def endpoint() -> Iterator[str]:
    """The address of a server of S3."""
    from tests.object_stores import moto_server

    with moto_server() as address:
        yield address


@pytest.fixture
def bucket(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The bucket `graphs`, and an environment that leads there."""
    from pyarrow import fs

    from tests.object_stores import set_s3

    set_s3(monkeypatch, endpoint)
    store = fs.S3FileSystem(endpoint_override=endpoint, region="us-east-1", allow_bucket_creation=True)
    store.create_dir("graphs")
    return store


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


def pytest_configure(config: pytest.Config) -> None:
    """Give all processes of a run one temporary cache, never the user's; workers of xdist inherit the variable."""
    pytest.register_assert_rewrite("tests.tables")  # its checks say how what they compare differs
    gc.set_threshold(100_000, 50, 100)  # with all that tests import, looking for cycles took a twentieth of the time
    if not hasattr(config, "workerinput"):
        cache = TemporaryDirectory(prefix="neupath-tests-")
        os.environ["NEUPATH_CACHE"] = cache.name
        config.add_cleanup(cache.cleanup)


ORDER = (
    # what compiles different kernels; those that later tests share, and the processes that they start, are then cached
    *("live/test_live_graph.py", "evidence/test_counterfactuals.py", "measures/test_graph_measures.py"),
    *("engine/test_index.py", "live", "evidence", "engine", "measures"),
    # what takes longest, so that nobody waits for it at the end; doctests of src/ are short, and come last
    *(
        "test_contract.py",
        "learn/inference",
        "cluster",
        "service",
        "learn",
        "",
        "attacks",
        "cli",
        "store",
        "io",
        "graph",
    ),
)
"""Files and folders in the order in which their tests run: workers of xdist take one file after the other."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort tests by `ORDER`, which saves time and nothing else: every test runs alone, too."""
    here = Path(__file__).parent
    places = {here / name: place for place, name in enumerate(ORDER)}

    def place_of(item: pytest.Item) -> int:
        return next((places[path] for path in (item.path, *item.path.parents) if path in places), len(ORDER))

    items.sort(key=place_of)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List what was skipped by reason, with the next step that the reason names after its first semicolon."""
    places: dict[str, list[str]] = defaultdict(list)
    for report in terminalreporter.stats.get("skipped", []):
        reason = report.longrepr[2].removeprefix("Skipped: ")
        places[reason].append(report.nodeid.partition("::")[0])
    if places:
        terminalreporter.section("skipped: why, and how to run it")
    for reason, files in sorted(places.items(), key=lambda item: -len(item[1])):
        why, _, how = reason.partition("; ")
        if why.startswith("could not import"):
            how = "pip install -e '.[dev]'"
        terminalreporter.line(f"{len(files)} skipped: {why}")
        terminalreporter.line(f"    to run: {how}")
        terminalreporter.line(f"    in: {', '.join(sorted(set(files)))}")
