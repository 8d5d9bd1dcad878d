"""Kill processes with SIGKILL while they import, update or compact a store, and check that nothing is lost.

In `group`, several threads update at a time, and their updates are committed to disk together.

`python benchmarks/crash.py` kills 200 processes; its temporary folder is removed.
"""

import argparse
import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.store.crash_check import kill_once

SHARES = {"import": 0.1, "update": 0.3, "compact": 0.3, "group": 0.3}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    with TemporaryDirectory() as parent:
        for verb, share in SHARES.items():
            times, problems = round(options.times * share), []
            for number in range(times):
                folder = Path(parent) / (f"{verb}-{number}" if verb == "import" else verb)
                if verb == "import":
                    folder.mkdir()
                problems += kill_once(verb, folder, rng)
            print(json.dumps({"verb": verb, "kills": times, "problems": problems}), flush=True)


if __name__ == "__main__":
    main()
