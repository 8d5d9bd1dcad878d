"""Damage to files: each try damages one file of something that was written, uses it, and says what came of it.

The tries run one after another in a child process (`python -m tests.attacks.damage`), which is started again at the
next try when a damaged file kills it. The outcomes: what the use returns, such as `right`; `refused` with one sentence;
`wrong`; `failed` with another error; `crashed`.
"""

import json
import resource
import shutil
import signal
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from neupath.errors import NeuPathError
from tests.attacks.mutation import mutate
from tests.processes import run_process

MEMORY, SECONDS = 2 << 30, 60
"""What a try may take beyond what the process has: bytes of address space, seconds of processor time."""


@dataclass(frozen=True)
class Target:
    """Something that is damaged: what writes it to a folder, which of its files are meant, and how it is used."""

    write: Callable[[Path], object]
    use: Callable[[Path, int], str]
    """Takes the folder and the number of the try, and returns the outcome, perhaps with more words behind a colon."""
    files: str = "**/*"


def attack(module: str, names: Sequence[str], count: int, seed: int = 0) -> dict[str, dict[str, Any]]:
    """Damage each of a module's `TARGETS` so often; return how often each outcome came, and what is wrong."""
    tries = [(name, number) for name in names for number in range(count)]
    outcomes: list[tuple[str, str]] = []
    while len(outcomes) < len(tries):
        command = [sys.executable, "-m", "tests.attacks.damage", module, str(seed)]
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        with run_process(command, cwd=Path(__file__).parents[2], **pipes) as child:
            printed, said = child.communicate(json.dumps(tries[len(outcomes) :]))
        outcomes += [tuple(json.loads(line)) for line in printed.splitlines() if line.startswith("[")]
        if len(outcomes) < len(tries):
            assert child.returncode < 0, said
            outcomes.append(("crashed", signal.Signals(-child.returncode).name))
    figures: dict[str, dict[str, Any]] = {}
    for (name, number), (outcome, what) in zip(tries, outcomes, strict=True):
        own = figures.setdefault(name, Counter())
        own[outcome] += 1
        if what:
            own.setdefault("bad", []).append(f"{number}: {outcome}: {what}")
    return {name: dict(own) | ({"bad": own["bad"][:20]} if "bad" in own else {}) for name, own in figures.items()}


# ---- In the child --------------------------------------------------------------------------------
def run_tries(targets: Mapping[str, Target], tries: Sequence[tuple[str, int]], seed: int) -> Iterator[tuple[str, str]]:
    """Damage a file and use what it belongs to, once per try; yield each outcome with what is wrong, if anything is."""
    with TemporaryDirectory() as parent:
        whole, damaged, used = Path(parent) / "whole", Path(parent) / "damaged", set()
        for name in dict.fromkeys(name for name, _ in tries):
            (whole / name).mkdir(parents=True)
            targets[name].write(whole / name)
            if targets[name].use in used:
                continue
            used.add(targets[name].use)
            shutil.copytree(whole / name, damaged)
            outcome = targets[name].use(damaged, 0)  # what is imported on first use is imported before the limit
            assert outcome in ("right", "read"), f"{name} is {outcome} though nothing is damaged"
            shutil.rmtree(damaged)
        limit_memory()
        for name, number in tries:
            rng = np.random.default_rng([seed, number])
            shutil.copytree(whole / name, damaged)
            files = sorted(path for path in damaged.glob(targets[name].files) if path.is_file())
            file = files[int(rng.integers(len(files)))]
            file.write_bytes(mutate(file.read_bytes(), rng)[1])
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            yield try_one(targets[name], damaged, number)
            shutil.rmtree(damaged)


def limit_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    limit = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def try_one(target: Target, folder: Path, number: int) -> tuple[str, str]:
    try:
        outcome, _, what = target.use(folder, number).partition(": ")
    except NeuPathError as error:
        return ("refused", "") if is_sentence(str(error)) else ("failed", repr(str(error)))
    except Exception as error:
        return "failed", f"{type(error).__name__}: {error}"[:300]
    return outcome, what or ("wrong" if outcome == "wrong" else "")


def is_sentence(message: str) -> bool:
    """Whether a message is one line; a graph.toml that it proposes may follow, and must be one."""
    sentence, _, proposed = message.partition("\n")
    if not proposed:
        return bool(sentence)
    try:
        return sentence.endswith("such as:") and bool(tomllib.loads(proposed))
    except tomllib.TOMLDecodeError:
        return False


if __name__ == "__main__":
    for result in run_tries(import_module(sys.argv[1]).TARGETS, json.load(sys.stdin), int(sys.argv[2])):
        print(json.dumps(result), flush=True)
