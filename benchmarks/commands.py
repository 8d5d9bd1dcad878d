"""Measure whole commands on real folders, from start to end, beside other versions of neupath, in turns.

    python benchmarks/commands.py --data DATA [--others NAME=SRC ...] [--repeats 9] [--only TEXT] [--empty-cache]

Each run is a process of its own. The table has medians of its processor time with all its threads, of the time until it
ends, and of its peak memory. A round runs each command once with each version; the first round writes bytecode and
compiled kernels, and does not count. `--empty-cache` gives each run an empty cache of kernels, as an installation has.
Others are the `src` folders of other versions, such as BEFORE=../before/src.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

COMMANDS = {
    "import numpy, scipy.sparse": ["-c", "import numpy, scipy.sparse"],
    "info imdb": ["-m", "neupath.cli", "info", "{data}/imdb"],
    "search imdb (MAM)": ["-m", "neupath.cli", "search", "{data}/imdb", "75", "-p", "MAM"],
    "search kg20c (APCPA)": ["-m", "neupath.cli", "search", "{data}/kg20c", "7DC2D174", "-p", "APCPA"],
    "explain imdb": ["-m", "neupath.cli", "explain", "{data}/imdb", "75", "76", "-p", "MAM"],
    "whatif toy": ["-m", "neupath.cli", "whatif", "toy", "Mike", "Mary", "-p", "APVPA"],
    "join imdb (AMA)": ["-m", "neupath.cli", "join", "{data}/imdb", "-p", "AMA", "--out", "{out}/pairs.parquet"],
    "join 198,000 edges": ["-m", "neupath.cli", "join", "{out}/shop", "-p", "UIU", "--out", "{out}/shop.parquet"],
}


def write_shop(folder: Path) -> None:
    """Write 198,000 edges between users and items, of which few are popular."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.csv

    rng = np.random.default_rng(0)
    users, items = rng.integers(20_000, size=198_000), (30_000 * rng.random(198_000) ** 2).astype(np.int64)
    folder.mkdir()
    pyarrow.csv.write_csv(pa.table({"user_id": users, "item_id": items}), folder / "user_item.csv")


def measure(arguments: list[str], tree: str, cache: str | None) -> tuple[float, float, float]:
    """Return the processor seconds, the elapsed seconds and the peak MiB of a command that must succeed."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"PYTHONPATH": tree, "COLUMNS": "120"} | ({} if cache is None else {"NUMBA_CACHE_DIR": cache})
    began = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment
    ) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    elapsed = time.perf_counter() - began
    if process.returncode:
        raise SystemExit(f"{' '.join(arguments)} ended with {process.returncode} in {tree}")
    return usage.ru_utime + usage.ru_stime, elapsed, usage.ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("NEUPATH_DATA"), help="the folder of the graphs")
    parser.add_argument("--others", nargs="*", default=[], metavar="NAME=SRC", help="other versions of neupath")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--only", default="", help="only commands whose line below has this text")
    parser.add_argument("--empty-cache", action="store_true", help="each run has to compile what it needs")
    options = parser.parse_args()
    trees = {"neupath": str(Path(__file__).parents[1] / "src")} | dict(each.split("=", 1) for each in options.others)
    runs: dict[tuple[str, str], list[tuple[float, float, float]]] = {}
    with TemporaryDirectory() as out:
        write_shop(Path(out) / "shop")
        for number in range(options.repeats + 1):
            for name, arguments in COMMANDS.items():
                if options.only not in name or ("{data}" in " ".join(arguments) and options.data is None):
                    continue
                line = [argument.format(data=options.data, out=out) for argument in arguments]
                for version, tree in trees.items():
                    for written in Path(out).glob("*.parquet"):
                        written.unlink()
                    with TemporaryDirectory() as cache:
                        measured = measure(line, tree, cache if options.empty_cache else None)
                    if number or options.repeats == 0:
                        runs.setdefault((name, version), []).append(measured)
    print("| command | version | CPU, s (least to most) | elapsed, s | peak MiB |\n|---|---|---:|---:|---:|")
    for (name, version), values in runs.items():
        cpu, elapsed, mib = (statistics.median(column) for column in zip(*values, strict=True))
        spread = f"{min(value[0] for value in values):.2f} to {max(value[0] for value in values):.2f}"
        print(f"| {name} | {version} | {cpu:.2f} ({spread}) | {elapsed:.2f} | {mib:,.0f} |")


if __name__ == "__main__":
    main()
