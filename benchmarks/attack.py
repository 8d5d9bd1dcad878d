"""Attack a service, stores, saved files and the readers, and print what came of it, one JSON line per attack.

`python benchmarks/attack.py` runs every attack at length; `python benchmarks/attack.py NAME …` some of them;
`--count N` sets how many damaged files or requests each attack tries, `--seed` which ones. `--formats A,B` limits
`readers` to some formats; it prints a line for each as it is finished. `--data FOLDER` names the folder of real graphs,
which the attacks on memory and time need. The suite runs short forms of them
(`tests/attacks/`); `python benchmarks/crash.py` kills processes that write to a store.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from tempfile import gettempdir
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.attacks import connections, overload, saved_files, stores
from tests.attacks.assistant import attack_tools, measure_answers
from tests.attacks.conditions import attack_conditions
from tests.attacks.damage import attack
from tests.attacks.dirty_tables import attack_dirty_tables
from tests.attacks.indices import attack_indices
from tests.attacks.layouts import attack_layouts
from tests.attacks.readers import FORMATS

Attack = Callable[[argparse.Namespace], dict[str, Any]]
"""Takes the options `count`, `seed`, `formats` and `data`, and returns figures by name."""


def attack_files(module: str, names: Iterable[str], options: argparse.Namespace) -> dict[str, Any]:
    return attack(f"tests.attacks.{module}", list(names), options.count, options.seed)


ATTACKS: dict[str, Attack] = {
    "readers": lambda options: attack_files("readers", options.formats, options),
    "layouts": lambda options: attack_layouts(options.count, options.seed),
    "dirty": lambda options: attack_dirty_tables(options.count, options.seed, Path(gettempdir()) / "dirty-tables"),
    "conditions": lambda options: attack_conditions(options.count, options.seed),
    "tools": lambda options: attack_tools(2 * options.count, options.seed) | {"characters": measure_answers()},
    "stores": lambda options: attack_files("stores", stores.TARGETS, options),
    "models": lambda options: attack_files("saved_files", saved_files.MODELS, options),
    "joins": lambda options: attack_files("saved_files", saved_files.JOINS, options),
    "index": lambda options: attack_indices(options.count, options.seed),
    "pipelining": lambda _: connections.attack_by_pipelining(250, seconds=35),
    "slow-bodies": lambda _: connections.attack_by_slow_bodies(600, files=400, seconds=10),
    "memory": lambda options: overload.attack_memory(options.data),
    "freeze": lambda options: overload.attack_time(options.data),
    "jobs": lambda _: overload.attack_jobs(5, overload.TRAIN),
    "requests": lambda options: connections.attack_by_mutated_requests(20 * options.count, options.seed),
}


def run(name: str, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Run an attack and yield its figures; those of the readers by format, since all of them take hours."""
    formats = options.formats if name == "readers" else [None]
    for each in formats:
        yield ATTACKS[name](argparse.Namespace(**vars(options) | {"formats": [each]}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"attacks to run: {', '.join(ATTACKS)}; default: all")
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--formats", help=f"of `readers`: some of {', '.join(FORMATS)}; default: all")
    parser.add_argument("--data", type=Path, default=os.environ.get("NEUPATH_DATA"))
    options = parser.parse_args()
    if unknown := set(options.names) - set(ATTACKS):
        parser.error(f"no attack is called {', '.join(sorted(unknown))}; there are {', '.join(ATTACKS)}")
    if options.formats and "readers" not in options.names:
        parser.error("--formats is of `readers`; name that attack, or leave it out")
    options.formats = options.formats.split(",") if options.formats else list(FORMATS)
    if unknown := set(options.formats) - set(FORMATS):
        parser.error(f"no format is called {', '.join(sorted(unknown))}; there are {', '.join(FORMATS)}")
    for name in options.names or ATTACKS:
        for figures in run(name, options):
            print(json.dumps({"attack": name, **figures}), flush=True)


if __name__ == "__main__":
    main()
