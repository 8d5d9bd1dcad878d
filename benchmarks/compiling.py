"""Measure what users wait for where no kernel is compiled yet: the first answer of a service, and searches meanwhile.

    python benchmarks/compiling.py [--others NAME=SRC ...] [--seconds 45]

Each service starts with an empty cache of kernels, as an installation has. One client searches from the command on, ten
times a second. `python benchmarks/commands.py --empty-cache --only whatif` does the same for whole commands.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

SEARCH = {"metapath": "class-method-class", "queries": ["argparse.ArgumentParser"]}


def free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


def search_from_start(tree: str, seconds: float) -> list[tuple[float, float]]:
    """Return when each search ended after the command, and how long it took, in seconds."""
    port, searches = free_port(), []
    url, body = f"http://127.0.0.1:{port}/api/graphs/stdlib/search", json.dumps(SEARCH).encode()
    request = urllib.request.Request(url, body, {"content-type": "application/json"})
    with TemporaryDirectory() as cache:
        environment = os.environ | {"PYTHONPATH": tree, "NUMBA_CACHE_DIR": cache}
        command = [sys.executable, "-m", "neupath.cli", "serve", "stdlib", "--port", str(port)]
        began = time.perf_counter()
        with subprocess.Popen(
            command, env=environment, cwd=cache, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as service:
            while time.perf_counter() - began < seconds:
                asked = time.perf_counter()
                with suppress(ConnectionError, urllib.error.URLError), urllib.request.urlopen(request) as answer:  # noqa: S310
                    answer.read()
                    searches.append((time.perf_counter() - began, time.perf_counter() - asked))
                time.sleep(0.1 if searches else 0.02)
            service.kill()
    return searches


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--others", nargs="*", default=[], metavar="NAME=SRC", help="other versions of neupath")
    parser.add_argument("--seconds", type=float, default=45)
    options = parser.parse_args()
    trees = {"neupath": str(Path(__file__).parents[1] / "src")} | dict(each.split("=", 1) for each in options.others)
    print("| version | first answer, s | median, ms | 99th of 100, ms | longest, ms |\n|---|---:|---:|---:|---:|")
    for version, tree in trees.items():
        searches = search_from_start(tree, options.seconds)
        if not searches:
            raise SystemExit(f"{version} answered no search within {options.seconds:g} seconds")
        taken = sorted(1000 * seconds for _, seconds in searches)
        spread = f"{median(taken):.1f} | {taken[int(0.99 * len(taken))]:.0f} | {taken[-1]:.0f}"
        print(f"| {version} | {searches[0][0]:.2f} | {spread} |")


if __name__ == "__main__":
    main()
