"""Find nodes by name: the first search in a process, the best of the next ones, and names misspelled by rule.

Times are those of the processor, one core, so that other work on the machine does not count.

python benchmarks/find.py --data DATA           on hetionet, with 20 misspelled names
python benchmarks/find.py --names 1000000       on made-up names, by prefix, inside and by spelling
"""

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

import neupath as npth
from neupath import HIN
from neupath.graph.nodes import Nodes

MISSPELLED = 20


def misspell(name: str, rng: np.random.Generator) -> str:
    """Drop, double, swap or replace one letter, and in a long name two."""
    for _ in range(1 if len(name) < 12 else 2):
        at = int(rng.integers(1, len(name) - 2))
        kinds: list[Callable[[], str]] = [
            lambda: name[:at] + name[at + 1 :],  # noqa: B023
            lambda: name[:at] + name[at] + name[at:],  # noqa: B023
            lambda: name[:at] + name[at + 1] + name[at] + name[at + 2 :],  # noqa: B023
            lambda: name[:at] + "aeiourst"[int(rng.integers(8))] + name[at + 1 :],  # noqa: B023
        ]
        name = kinds[int(rng.integers(4))]()
    return name.lower()


def misspellings(hin: HIN, count: int, seed: int = 0) -> list[tuple[str, str]]:
    """Return real names of at least 6 letters, with a misspelling that no node is called."""
    rng = np.random.default_rng(seed)
    names = [name for nodes in hin.nodes.values() if nodes.names is not None for name in nodes.names.to_pylist()]
    known = {name.lower() for name in names if name}
    pairs: list[tuple[str, str]] = []
    while len(pairs) < count:
        name = names[int(rng.integers(len(names)))] or ""
        typed = misspell(name, rng) if len(name) >= 6 else name
        if typed.lower() not in known and name.isascii():
            pairs.append((name, typed))
    return pairs


def measure(hin: HIN, text: str, repeats: int = 20) -> float:
    times = []
    for _ in range(repeats):
        began = time.process_time()
        hin.find(text)
        times.append(time.process_time() - began)
    return 1e3 * min(times)


def run_graph(folder: Path) -> None:
    hin = npth.load(folder)
    pairs = misspellings(hin, MISSPELLED)
    began = time.process_time()
    hin.find(pairs[0][1])
    cold = 1e3 * (time.process_time() - began)
    print(f"{folder.name}: {sum(map(len, hin.nodes.values())):,} nodes; the first search {cold:.0f} ms")
    for what, text in (("exact", "breast cancer"), ("prefix", "breast"), ("inside", "receptor"), ("none", "xqzvbn")):
        print(f"{what:<9} {text:<20} {measure(hin, text):6.1f} ms, {len(hin.find(text, 10**6)):,} found")
    ranks = []
    for name, typed in pairs:
        found = [node.name for node in hin.find(typed)]
        ranks.append(found.index(name) + 1 if name in found else None)
        print(f"spelling  {typed[:60]:<60} rank {ranks[-1]}, {measure(hin, typed, 3):6.1f} ms: {name[:60]}")
    hits = [rank for rank in ranks if rank is not None]
    print(f"{len(hits)} of {len(ranks)} misspelled names found in the first 10, {hits.count(1)} of them first")


def run_names(count: int) -> None:
    rng = np.random.default_rng(0)
    syllables = np.array(["ka", "lo", "mi", "ren", "tos", "vu", "shi", "dra", "el", "an", "gor", "pe", "qui", "zan"])
    words = ["".join(syllables[word]) for word in rng.integers(0, len(syllables), (min(count, 100_000), 3))]
    texts = [" ".join(words[at] for at in row) for row in rng.integers(0, len(words), (count, 3)).tolist()]
    hin = HIN.build([Nodes("person", pa.array([f"p{i}" for i in range(count)]), pa.array(texts))], [])
    began = time.process_time()
    hin.find("x" + texts[11][:7] + "y" + texts[11][9:])
    print(f"{count:,} names; the first search {1e3 * (time.process_time() - began):.0f} ms")
    for what, text in (
        ("exact", texts[7]), ("prefix", texts[7][:4]), ("inside", texts[9][3:9]),
        ("spelling", "x" + texts[11][:7] + "y" + texts[11][9:]),
    ):  # fmt: skip
        print(f"{what:<9} {text:<30} {measure(hin, text, 5):6.1f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("NEUPATH_DATA"))
    parser.add_argument("--names", type=int, help="so many made-up names instead of a graph")
    given = parser.parse_args()
    if given.names:
        run_names(given.names)
    elif given.data is None:
        sys.exit("give --data, the folder that holds hetionet, or --names")
    else:
        run_graph(Path(given.data) / "hetionet")


if __name__ == "__main__":
    main()
