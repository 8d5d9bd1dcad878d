"""List what comes of every source of the corpus: `python -m tests.io.corpus`."""

import sys
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.io.corpus import SOURCES
from tests.io.corpus.frame import outcome


def main() -> None:
    counts = {"read": 0, "refused": 0, "wrong": 0}
    for name, each in SOURCES.items():
        if missing := [package for package in each.needs if find_spec(package) is None]:
            print(f"skipped  {name}: {', '.join(missing)} is not installed")
            continue
        with TemporaryDirectory() as folder:
            sample = each.write(Path(folder))
            kind, lines = outcome(sample)
            as_expected = kind == "refused" if sample.refused is not None else kind == "read" and not lines
            counts[kind if as_expected else "wrong"] += 1
            print(f"{kind if as_expected else 'WRONG: ' + kind:8} {name}")
            for line in lines:
                print(f"         {line.replace(folder + '/', '')}")
    print(", ".join(f"{number} {kind}" for kind, number in counts.items()))
    sys.exit(bool(counts["wrong"]))


if __name__ == "__main__":
    main()
