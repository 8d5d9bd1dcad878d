"""Test whether baselines need more steps or a higher learning rate: nDCG@20 on IMDB's MAM under `strict`.

    python benchmarks/baseline_budget.py --data DATA

Width 64, one seed, on the CPU; all other settings are those of `neupath reproduce`. GTN is also trained with its gates
at the learning rate of its weights. Takes half an hour on one core.
"""

import argparse
import os
from pathlib import Path

from neupath_paper import metapath_gnns
from neupath_paper.protocol import FULL, IMDB
from neupath_paper.runs import Run, execute

MODELS = ("gcn", "gat", "rgcn", "hgt", "gtn")
BUDGETS: dict[str, tuple[tuple[str, object], ...]] = {
    "as in `reproduce`": (),
    "five times the steps (batches of 8)": (("batch_size", 8),),
    "ten times the learning rate": (("learning_rate", 1e-2),),
}


def measure(model: str, settings: tuple[tuple[str, object], ...], data: Path) -> float:
    """Train and test one model."""
    (column,) = (column for column in IMDB if column.metapath == "MAM")
    score = execute(Run(model, column, "strict", 0, (("dim", 64), *settings)), FULL, data, "cpu")["ndcg@20"]
    assert isinstance(score, float)
    return score


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("NEUPATH_DATA"))
    data = Path(parser.parse_args().data)
    print("| | " + " | ".join(model.upper() for model in MODELS) + " |")
    print("|---|" + "---:|" * len(MODELS))
    for name, settings in BUDGETS.items():
        print(f"| {name} |", end="", flush=True)
        for model in MODELS:
            print(f" {measure(model, settings, data):.3f} |", end="", flush=True)
        print()
    metapath_gnns.GATE_PACE = 1
    print(f"| gates at the learning rate of the weights | | | | | {measure('gtn', (), data):.3f} |")


if __name__ == "__main__":
    main()
