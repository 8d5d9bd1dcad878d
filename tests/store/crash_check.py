"""Kill a process that works on a store at a random moment, and check the store."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from neupath.graph.hin import digest
from neupath.store import check, is_store, open_store, write_store
from tests.processes import run_process
from tests.store import crash_worker


def kill_once(verb: str, folder: Path, rng: np.random.Generator) -> list[str]:
    """Start a worker, kill it with SIGKILL, and return the problems of the store, which the next call continues."""
    if verb != "import" and not is_store(folder):
        write_store(crash_worker.graph(2000), folder)
    command = [sys.executable, "-m", "tests.store.crash_worker", verb, str(folder)]
    with run_process(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]) as process:
        assert process.stdout is not None
        first_line = process.stdout.readline()  # it is ready, or has imported its first store
        time.sleep(float(rng.uniform(0.0, 0.6 if verb == "import" else 0.25)))
        process.send_signal(signal.SIGKILL)
        printed = [first_line.strip(), *process.stdout.read().split()]
    find_problems = {"import": _import_problems, "group": _group_problems}.get(verb, _version_problems)
    return find_problems(folder, printed)


def _import_problems(folder: Path, printed: list[str]) -> list[str]:
    """Check that every acknowledged store exists, and that existing ones are sound."""
    missing = [
        f"s{number} was acknowledged and is missing" for number in printed if not is_store(folder / f"s{number}")
    ]
    stores = [path for path in folder.iterdir() if not path.name.startswith(".")]
    return missing + [f"{path.name}: {problem}" for path in stores[-2:] for problem in check(path).problems]


def _version_problems(folder: Path, printed: list[str]) -> list[str]:
    """Check that the newest version is the acknowledged one or the next, and that it is complete."""
    problems = list(check(folder).problems)
    acknowledged = max((int(word) for word in printed if word.isdecimal()), default=0)
    store = open_store(folder)
    if acknowledged and store.version not in (acknowledged, acknowledged + 1):
        problems.append(f"version {acknowledged} was acknowledged, and {store.version} is the newest")
    expected = expected_edges(store.version)
    edges = int(store.hin().matrices[store.hin().schema.relations[0]].nnz)
    if edges - crash_worker.graph(2000).num_edges(crash_worker.graph(2000).schema.relations[0]) != expected:
        problems.append(f"version {store.version} should have {expected} new edges")
    (table,) = store.hin().edge_tables.values()
    single = [version for version in table.attributes["version"].to_pylist() if version]
    if single != [
        version for version in range(1, store.version + 1) for _ in range(3) if _is_left(version, store.version)
    ]:
        problems.append(f"version {store.version} has the single edges of versions {sorted(set(single))}")
    if store.version and digest(store.hin(store.version)) != digest(store.hin()):
        problems.append("the newest version differs from the graph")
    return problems


def _group_problems(folder: Path, printed: list[str]) -> list[str]:
    """Check that every acknowledged update exists, and that each existing one is a complete version."""
    problems = list(check(folder).problems)
    hin = open_store(folder).hin()
    rows = {str(name): row for row, name in enumerate(hin.nodes["a"].ids.to_pylist()) if str(name).startswith("g")}
    problems += [f"{name} was acknowledged and is missing" for name in printed[1:] if name not in rows]
    degrees = np.diff(hin.matrices[hin.schema.relations[0]].indptr)
    problems += [f"{name} has {degrees[row]} edges" for name, row in rows.items() if degrees[row] != 3]
    if open_store(folder).version != len(rows):
        problems.append(f"{len(rows)} updates exist, and the version is {open_store(folder).version}")
    return problems


def _is_left(version: int, newest: int) -> bool:
    """Whether the edges of a version are left at the newest one."""
    return version % 2 == 0 or version == newest


def expected_edges(version: int) -> int:
    """Count the edges that updates have added and not removed: an even version removes those of the one before."""
    return 3 * (version // 2 + version % 2)
