"""Inferring: what labelled pairs in a request mean; small ones at once, large ones as a job."""

from neupath.errors import QueryError
from neupath.graph import HIN
from neupath.inference import Inferred, infer
from neupath.inference.candidates import BUDGET, Progress
from neupath.labels import Pairs, read_pairs
from neupath.service.limits import Limits
from neupath.service.refusals import Refusal
from neupath.service.requests import Infer

AT_ONCE = 500
"""Labelled pairs that are explained while the client waits."""
_BUDGET_AT_ONCE = BUDGET // 20


def infer_at_once(hin: HIN, asked: Infer, limits: Limits) -> dict[str, object]:
    """Find what a few pairs mean, under a budget that a client can wait for."""
    if len(asked.pairs) > AT_ONCE:
        raise Refusal(
            413, f"{len(asked.pairs):,} pairs take too long to wait for, up to {AT_ONCE} do not; "
            f"start a job of the kind 'infer' with them",
        )  # fmt: skip
    found = find(hin, labels_of(hin, asked, limits), asked, budget=_BUDGET_AT_ONCE)
    return found.report(asked.suggest, asked.skip)


def labels_of(hin: HIN, asked: Infer, limits: Limits) -> Pairs:
    """Read the pairs of a request as rows, refusing what cannot be learned from."""
    limits.check_pairs(len(asked.pairs))
    if len({pair.score is None for pair in asked.pairs}) > 1:
        raise QueryError("some pairs have a score and some have none; give all a score, or none")
    return read_pairs(hin, asked.tuples(), asked.node_type, bounded=False, examples=True)


def find(hin: HIN, labels: Pairs, asked: Infer, budget: int = BUDGET, progress: Progress = lambda *_: None) -> Inferred:
    """Find what pairs mean."""
    return infer(
        hin, labels, max_length=asked.max_length, measures=asked.measures, asymmetric=asked.asymmetric, budget=budget,
        seed=asked.seed, progress=progress,
    )  # fmt: skip
