"""Killing a process that works on a store, at a random moment, and looking at what is left."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from neupath.graph.hin import digest
from neupath.store import check, is_store, open_store, write_store
from tests.store import crashes


def kill_once(verb: str, folder: Path, rng: np.random.Generator) -> list[str]:
    """Let a process work, kill it with SIGKILL, and return what is wrong then; the folder goes on to the next time."""
    if verb != "import" and not is_store(folder):
        write_store(crashes.graph(2000), folder)
    command = [sys.executable, "-m", "tests.store.crashes", verb, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]) as process:
        assert process.stdout is not None
        begun = process.stdout.readline()  # it has started, and in an import written the first store
        time.sleep(float(rng.uniform(0.0, 0.6 if verb == "import" else 0.25)))
        process.send_signal(signal.SIGKILL)
        printed = [begun.strip(), *process.stdout.read().split()]
    wrong = {"import": _wrong_imports, "group": _wrong_groups}.get(verb, _wrong_versions)
    return wrong(folder, printed)


def _wrong_imports(folder: Path, printed: list[str]) -> list[str]:
    """Every store that was acknowledged is there, and every one that is there is sound."""
    missing = [
        f"s{number} was acknowledged and is not there" for number in printed if not is_store(folder / f"s{number}")
    ]
    there = [path for path in folder.iterdir() if not path.name.startswith(".")]
    return missing + [f"{path.name}: {problem}" for path in there[-2:] for problem in check(path).problems]


def _wrong_versions(folder: Path, printed: list[str]) -> list[str]:
    """The last version is the one acknowledged or the one after it, and all of its batch is there."""
    problems = list(check(folder).problems)
    acknowledged = max((int(word) for word in printed if word.isdecimal()), default=0)
    store = open_store(folder)
    if acknowledged and store.version not in (acknowledged, acknowledged + 1):
        problems.append(f"version {acknowledged} was acknowledged, and {store.version} is there")
    expected = expected_edges(store.version)
    found = int(store.hin().matrices[store.hin().schema.relations[0]].nnz)
    if found - crashes.graph(2000).num_edges(crashes.graph(2000).schema.relations[0]) != expected:
        problems.append(f"version {store.version} should have {expected} new edges")
    if store.version and digest(store.hin(store.version)) != digest(store.hin()):
        problems.append("the last version is not the graph")
    return problems


def _wrong_groups(folder: Path, printed: list[str]) -> list[str]:
    """Every batch that was acknowledged is there, and every one that is there is a version, with all of its edges."""
    problems = list(check(folder).problems)
    hin = open_store(folder).hin()
    there = {str(name): row for row, name in enumerate(hin.nodes["a"].ids.to_pylist()) if str(name).startswith("g")}
    problems += [f"{name} was acknowledged and is not there" for name in printed[1:] if name not in there]
    degrees = np.diff(hin.matrices[hin.schema.relations[0]].indptr)
    problems += [f"{name} has {degrees[row]} edges" for name, row in there.items() if degrees[row] != 3]
    if open_store(folder).version != len(there):
        problems.append(f"{len(there)} batches are there, and the version is {open_store(folder).version}")
    return problems


def expected_edges(version: int) -> int:
    """Count the edges that batches have left: those of odd versions go with the next one."""
    return 3 * (version // 2 + version % 2)
