"""Auto: try the learners on some labels, judge them on held-out queries, and train a mix of them.

No learner is first everywhere: closed forms are where labels follow paths, embeddings where they follow communities,
trees where several things must hold at once. Two learners together are often better than either, and which of several
is best on a few dozen queries is partly luck. So `auto` starts from a standard mix (`STANDARD_MIX`, of what finished),
and departs from it as far as the evidence is clear.

Each learner is fitted to two thirds of the queries at a time and ranks the labels of the others; a label that was given
in both directions is never learned from in one while it is held out in the other. A mix is judged by the mean of two
metrics: AUC (for labels other than yes and no: how often the higher of two labels of a query gets the higher score) and
the nDCG@20 of the labels, since a search shows the top of a ranking. Where at least as many labels are 0.5 or less as
are more, the nDCG is among the labels alone; elsewhere it is among random targets, which count as 0, and the report
says so. A learner whose AUC is not above chance by a standard error over the held-out queries has no weight, and
networks take no part below 15 queries. The rival of the standard mix is the mean of the mixes that are best on
bootstrap samples of the queries (bagged ensemble selection, Caruana et al. 2004, over weights in fifths). If it leads
by z standard errors of the difference by query, the weights move towards it by 1 - (2 / z)², and not at all if z is
below 2 (the shrinkage of James and Stein 1961). A learner without a mistake on the held-out labels of 15 queries or
more is taken alone. All that is finished is kept in the output folder, so that a run that was killed continues.
"""

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from pathlib import Path
from shutil import rmtree
from time import perf_counter
from typing import Any

import numpy as np

from neupath._runtime.files import write_text
from neupath._runtime.progress import Progress, no_progress
from neupath.engine.scorer import Scorer
from neupath.errors import MissingExtraError, NeuPathError, QueryError, listed
from neupath.graph.hin import HIN, Floats
from neupath.graph.nodes import Rows
from neupath.learn.held_out import HeldOut, Metric
from neupath.learn.inference.fitting import folds_of, rest_of
from neupath.learn.inference.infer import infer_scorer
from neupath.learn.labels import FEWEST_QUERIES, NodeTypes, Pairs, fingerprint, read_pairs, too_few
from neupath.learn.registry import ARCHITECTURES, is_network, make_model
from neupath.learn.stack import MEMBERS, Stack, score_ranks

BUDGET = 600.0
STATE, REPORT = "auto-state.json", "auto.json"
_FOLDS = 3
_MOST_EDGES = 200_000
"""Edges beyond which models that pass over the graph see paths of 2 steps instead of 4."""
_SECONDS_PER_EDGE = {"cpu": 1e-4, "cuda": 1e-5}
"""About how long learners that pass over all edges take to train on one part of the queries, on 2 cores or a GPU."""
_FINAL_SHARE = 0.25
"""The share of the budget that is kept to train what was chosen."""
_FEWEST_TO_TELL = 15
"""Queries with labels below which networks learn these by heart, and a learner without a mistake may be lucky."""
_NO_NETWORKS = "left out: networks take labels of"
_FOR_FEW_LABELS = "infer"
"""What is trained where too few labels leave nothing to hold out."""
STANDARD_MIX = {"pathboost": 0.4, "infer": 0.15, "linear": 0.15, "neupath": 0.2, "rgcn": 0.1}
"""Of eight mixes without `linear`, the best by both metrics together over the development queries of `neupath reproduce
real`; the share of `linear` is the best of three on the development sets of benchmarks/few_labels.py."""
_CLEAR = 2.0
"""Standard errors by which another mix must be better than the standard one to count."""
_PARTS = 5
"""Weights of the mixes that are judged are multiples of one over this."""
_RESAMPLES = 200
_LEAST_WEIGHT = 0.05
"""A learner with a smaller weight is left out: each one costs time in every search."""
_MOST_JUDGED = 400
"""Queries beyond which mixes are judged on a random sample of them."""


# ---- Learners ------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Allowance:
    """What a learner may use: a seed, some seconds, and a device that `find_device` returned."""

    seed: int
    seconds: float
    device: str = "cpu"


Fit = Callable[[HIN, Pairs, Allowance], Scorer]
"""Fits a learner to labels."""


def _infer(hin: HIN, pairs: Pairs, allowed: Allowance) -> Scorer:
    return infer_scorer(hin, pairs, max_length=4, seed=allowed.seed, budget=max(1, int(1e8 * allowed.seconds)))


def learner(architecture: str, **settings: Any) -> Fit:
    """Return what fits a model with some settings; a network until an epoch ends after the seconds it is allowed."""

    def fit(hin: HIN, pairs: Pairs, allowed: Allowance) -> Scorer:
        own, options = settings | {"seed": allowed.seed}, {}
        if is_network(architecture):
            from neupath.learn.models.training import stop_after

            own |= {"layers": 4 if _count_edges(hin) <= _MOST_EDGES else 2, "device": allowed.device}
            options = {"on_epoch": stop_after(allowed.seconds)}
        fitted: Scorer = make_model(architecture, **own).fit(hin, pairs, **options)
        return fitted

    return fit


def _count_edges(hin: HIN) -> int:
    return sum(matrix.nnz for matrix in hin.matrices.values())


LEARNERS: dict[str, Fit] = {
    "pathboost": learner("pathboost"),
    "infer": _infer,
    "linear": learner("linear"),
    "neupath": learner("neupath", dim=32, paths=2, epochs=20),
    "nbfnet": learner("nbfnet", dim=16, epochs=20),
    "rgcn": learner("rgcn", dim=64, epochs=40, attributes=True),
}
"""What is tried, in this order: first what is cheap and most often best, since the first always finishes."""


def find_device(device: str | None, learners: Collection[str]) -> str:
    """Return the device of the networks among some learners: CUDA if there is one, unless `device` names another."""
    if device is None and not any(map(is_network, learners)):
        return "cpu"
    try:
        from neupath.learn.models.model import choose_device
    except MissingExtraError:  # networks are left out, and the report says why
        return "cpu"
    return str(choose_device(device))


def takes_too_long(name: str, hin: HIN, allowed: Allowance) -> bool:
    """Whether a learner that passes over all edges would take much longer than it may."""
    seconds = _SECONDS_PER_EDGE[allowed.device.partition(":")[0]] * _count_edges(hin)
    return is_network(name) and seconds > allowed.seconds


# ---- Mixes ---------------------------------------------------------------------------------------
def list_mixes(count: int, parts: int = _PARTS) -> Floats:
    """Return all weights of some learners in multiples of 1 / parts, those of fewer learners first; (mixes, learners).

    >>> list_mixes(2, parts=2).tolist()
    [[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]
    """
    counts = np.array([row for row in product(range(parts, -1, -1), repeat=count) if sum(row) == parts])
    return counts[np.argsort((counts > 0).sum(axis=1), kind="stable")] / parts


def average_best_mix(mixes: Floats, quality: Floats, seed: int) -> Floats:
    """Return the mean, over bootstrap samples of the queries, of the mix that is best on each; shape (learners,).

    Parameters
    ----------
    mixes
        Weights of learners; shape (mixes, learners). Of equally good ones the first is taken.
    quality
        How well each mix ranks each query; shape (mixes, queries).
    seed
        Decides the samples.

    >>> average_best_mix(np.eye(2), np.array([[0.9, 0.8], [0.1, 0.2]]), seed=0).tolist()
    [1.0, 0.0]

    """
    rng = np.random.default_rng(seed)
    queries = quality.shape[1]
    draws = rng.multinomial(queries, np.full(queries, 1 / queries), size=_RESAMPLES)
    return np.asarray(mixes[np.argmax(np.round(quality @ draws.T, 9), axis=0)].mean(axis=0))


def shrink_lead(lead: float, error: float) -> float:
    """Return how much of a lead to believe: 1 - (2 / z)² for z standard errors, and 0 below two.

    >>> shrink_lead(0.01, 0.01), shrink_lead(0.04, 0.01), shrink_lead(0.04, 0.0)
    (0.0, 0.75, 1.0)
    """
    return 0.0 if lead <= max(_CLEAR * error, 1e-9) else 1 - (_CLEAR * error / lead) ** 2


def _drop_small(weights: Floats) -> Floats:
    """Leave out learners with small weights, and let the rest sum to 1."""
    kept = np.where(weights < min(_LEAST_WEIGHT, weights.max()), 0.0, weights)
    return np.asarray(kept / kept.sum())


def _standard_mix(learners: Sequence[str]) -> Floats:
    """Return the weights of learners without any evidence; the first alone if none of them has a standard weight."""
    weights = np.array([STANDARD_MIX.get(name, 0.0) for name in learners])
    weights[0] += weights.sum() == 0
    return np.asarray(weights / weights.sum())


def _describe_mix(learners: Sequence[str], weights: Floats) -> str:
    """Return a mix in words.

    >>> _describe_mix(["pathboost", "infer", "rgcn"], np.array([0.8, 0.2, 0.0])), _describe_mix(["rgcn"], np.ones(1))
    ('0.80 pathboost + 0.20 infer', 'rgcn alone')
    """
    parts = [(weight, name) for name, weight in zip(learners, weights.tolist(), strict=True) if weight]
    return f"{parts[0][1]} alone" if len(parts) == 1 else " + ".join(f"{weight:.2f} {name}" for weight, name in parts)


# ---- What was tried ------------------------------------------------------------------------------
@dataclass(frozen=True)
class Tried:
    """One learner: how well it ranks the labels of held-out queries, or why it was left out."""

    learner: str
    score: float | None
    low: float | None
    high: float | None
    """The 95 % interval of the score, by bootstrap over queries."""
    ndcg: float | None
    """The nDCG@20 of the labels of held-out queries among random targets."""
    seconds: float
    weight: float
    """Its weight in what was chosen; 0 if it was not."""
    note: str = ""

    @classmethod
    def judged(
        cls, held_out: HeldOut, scores: Floats | None, learner: str, seconds: float, weight: float, note: str = ""
    ) -> "Tried":
        """Judge the scores of held-out labels, if the learner gave any."""
        if scores is None:
            return cls(learner, None, None, None, None, seconds, weight, note)
        low, high = held_out.interval(scores)
        return cls(learner, held_out.order(scores), low, high, held_out.ndcg(scores), seconds, weight, note)

    def to_dict(self) -> dict[str, object]:
        return dict(vars(self))


@dataclass(frozen=True)
class AutoReport:
    """What `auto` tried and what it chose."""

    folder: str
    metric: Metric
    labels: int
    queries: int
    tried: tuple[Tried, ...]
    mix: Tried | None
    """Several learners that were chosen, judged together; None for one. The weights come from the same labels."""
    chosen: tuple[str, ...]
    reason: str
    unlabelled: str
    """Which targets without a label counted as dissimilar; empty if none did."""
    seconds: float
    budget: float
    architecture: str = "auto"

    def to_dict(self) -> dict[str, object]:
        mix = None if self.mix is None else self.mix.to_dict()
        tried = [each.to_dict() for each in self.tried]
        return vars(self) | {"tried": tried, "mix": mix, "chosen": list(self.chosen)}


@dataclass
class _AutoState:
    """What is finished, as it is kept on disk."""

    fingerprint: str
    seconds: dict[str, float] = field(default_factory=dict)
    predicted: dict[str, list[float | None]] = field(default_factory=dict)
    """Of each learner, what its held-out rank of each label and other target is worth; None where not known yet."""
    folds: dict[str, int] = field(default_factory=dict)
    """Of each learner, how many folds are finished."""
    notes: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path, fingerprint: str) -> "_AutoState":
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            state = cls(**content)
        except (OSError, ValueError, TypeError):
            return cls(fingerprint)
        return state if state.fingerprint == fingerprint else cls(fingerprint)

    def write(self, path: Path) -> None:
        write_text(path, json.dumps(vars(self)))


# ---- Auto ----------------------------------------------------------------------------------------
def train_auto(
    hin: HIN,
    pairs: Any,
    folder: str | Path,
    *,
    node_type: NodeTypes = None,
    budget: float = BUDGET,
    learners: Sequence[str] | None = None,
    seed: int = 0,
    device: str | None = None,
    progress: Progress = no_progress,
) -> AutoReport:
    """Try learners on labelled pairs, train a mix of them, or one, and save it.

    Parameters
    ----------
    hin
        The graph.
    pairs
        A CSV file, a table, or tuples of (query, target, score); `read_pairs` says which labels it takes.
    folder
        Where to save the scorer and the report. A run that was killed continues from what it finished.
    node_type
        The type of the nodes in `pairs`, where their ids fit several; or that of the queries and that of the targets.
    budget
        About how many seconds it may take.
    learners
        Names in `LEARNERS`; all unless given.
    seed
        Decides folds, negatives and weights.
    device
        "cpu" or "cuda", for the networks; CUDA where there is one, unless given.
    progress
        Receives which learner is tried.

    >>> from tempfile import TemporaryDirectory
    >>> from neupath import load
    >>> labels = [("Mike", "Bob", 1.0), ("Mike", "Mary", 0.8), ("Mike", "Jim", 0.08), ("Mary", "Ann", 2 / 7)]
    >>> with TemporaryDirectory() as folder:
    ...     train_auto(load("toy"), labels, folder, learners=["infer"]).chosen
    ('infer',)

    """
    if not budget > 0:
        raise QueryError(f"‹budget› is {budget}; it must be more than 0 seconds", parameter="budget")
    wanted = list(LEARNERS if learners is None else learners)
    for name in wanted:
        if name not in LEARNERS:
            raise QueryError(f"auto knows no learner {name!r}; it tries {', '.join(LEARNERS)}", parameter="learners")
    allowed = Allowance(seed, budget, find_device(device, wanted))
    labels = read_pairs(hin, pairs, node_type, examples=True)
    run = _AutoRun(hin, labels, Path(folder), wanted, allowed, progress)
    return run.carry_out()


class _AutoRun:
    def __init__(
        self, hin: HIN, given: Pairs, folder: Path, learners: list[str], allowed: Allowance, progress: Progress
    ) -> None:
        self.given, self.queries = given, len(np.unique(given.queries))
        self.held_out = HeldOut.of(given, hin.num_nodes(given.target_type), allowed.seed)
        self.hin, self.labels, self.folder, self.learners = hin, self.held_out.labels, folder, learners
        self.allowed, self.budget, self.progress = allowed, allowed.seconds, progress
        self.folds = folds_of(self.labels.queries, allowed.seed, _FOLDS)
        folder.mkdir(parents=True, exist_ok=True)
        settings = {"learners": learners, "allowed": vars(allowed), "others": len(self.held_out.others)}
        self.state = _AutoState.read(folder / STATE, fingerprint(hin, [self.labels], settings))

    def carry_out(self) -> AutoReport:
        can_judge = self.queries >= FEWEST_QUERIES and np.ptp(self.labels.scores) > 0
        if can_judge:
            for number, name in enumerate(self.learners):
                self.progress(f"trying {name}", number, len(self.learners))
                self._try(name, len(self.learners) - number)
            members, reason = self._choose()
        elif not self.labels.scores.any():
            raise QueryError("all labels are 0, and none says what is similar; add pairs that are more similar")
        else:
            first = _FOR_FEW_LABELS if _FOR_FEW_LABELS in self.learners else self.learners[0]
            cause = too_few(self.given) or "all labels are equal"
            members, reason = {first: 1.0}, f"{cause}, so nothing could be held out: {first} it is"
        chosen, members = self._train(members)
        chosen.save(self.folder)
        report = self._report(members, reason)
        write_text(self.folder / REPORT, json.dumps(report.to_dict(), indent=2) + "\n")
        (self.folder / STATE).unlink(missing_ok=True)  # the run is over; the same command again starts a new one
        return report

    # ---- Cross-validation ------------------------------------------------------------------------
    def _try(self, name: str, left: int) -> None:
        """Fit a learner to each part of the queries and predict the rest; keep each part as it is finished."""
        state = self.state
        if name in state.notes:
            return
        reason = self._cannot(name, self._left() / left)
        if reason is not None:
            state.notes[name] = reason
            return
        predicted = state.predicted.setdefault(name, [None] * len(self.held_out))
        share = self._left() / left / len(self.folds)
        for number in range(state.folds.get(name, 0), len(self.folds)):
            if number and self._finished() and self._left() < state.seconds[name] / number:
                state.notes[name] = f"left out: {number} of {len(self.folds)} parts took {state.seconds[name]:.0f} s"
                break
            began = perf_counter()
            try:
                self._predict(name, self.folds[number], predicted, max(1.0, share))
            except NeuPathError as error:
                state.notes[name] = f"left out: {error}"
                break
            finally:
                state.seconds[name] = state.seconds.get(name, 0.0) + perf_counter() - began
            state.folds[name] = number + 1
            state.write(self.folder / STATE)
        state.write(self.folder / STATE)

    def _left(self) -> float:
        """Return the seconds left to try learners."""
        return max(0.0, (1 - _FINAL_SHARE) * self.budget - sum(self.state.seconds.values()))

    def _cannot(self, name: str, seconds: float) -> str | None:
        """Return why a learner cannot be tried in some seconds, if so."""
        if self.labels.is_across_types and name in ARCHITECTURES and not ARCHITECTURES[name].two_types:
            return "left out: it ranks the nodes of one type"
        if is_network(name) and self.queries < _FEWEST_TO_TELL:
            return f"{_NO_NETWORKS} {_FEWEST_TO_TELL} queries or more, and these are of {self.queries}"
        if self._finished() and not self._left():
            return "left out: the budget was spent"
        if takes_too_long(name, self.hin, replace(self.allowed, seconds=seconds)):
            return f"left out: the graph has too many edges for a budget of {self.budget:g} s"
        return None

    def _predict(self, name: str, fold: Rows, predicted: list[float | None], seconds: float) -> None:
        rest = rest_of(fold, self.labels.queries, self.labels.partners)
        if not len(rest):
            raise QueryError(
                "the labels held out are the others in the other direction, so none are left to learn from"
            )
        scorer = LEARNERS[name](self.hin, self.labels.take(rest), replace(self.allowed, seconds=seconds))
        for query in np.unique(self.labels.queries[fold]):
            own = np.flatnonzero(self.held_out.queries == query)
            scores = score_ranks(scorer.score_rows(np.array([query])))[0][self.held_out.targets[own]]
            for place, score in zip(own.tolist(), scores.tolist(), strict=True):
                predicted[place] = score

    # ---- Choice ----------------------------------------------------------------------------------
    def _finished(self) -> dict[str, Floats]:
        """Return the ranks that learners which finished all parts give to held-out targets, as a stack adds them up."""
        done = [name for name in self.learners if self.state.folds.get(name, 0) == len(self.folds)]
        return {name: np.array(self.state.predicted[name], dtype=np.float64) for name in done}

    def _choose(self) -> tuple[dict[str, float], str]:
        """Return the weights of the learners that are worth it, the largest first, and why."""
        finished = self._finished()
        if not finished:
            if all(note.startswith(_NO_NETWORKS) for note in self.state.notes.values()):
                raise QueryError(
                    f"the labels are of {self.queries} queries, and networks such as {listed(self.learners)} take "
                    f"{_FEWEST_TO_TELL} or more; label more queries, or try pathboost or infer",
                    parameter="learners",
                )
            reasons = "; ".join(f"{name} {note}" for name, note in self.state.notes.items())
            raise QueryError(
                f"no learner finished within {self.budget:g} s ({reasons}); raise ‹budget›", parameter="budget"
            )
        if len(finished) == 1:
            return {next(iter(finished)): 1.0}, f"{next(iter(finished))} alone finished"
        by_chance = [name for name, scores in finished.items() if not self.held_out.beats_chance(scores)]
        for name in by_chance:
            prefix = "" if len(by_chance) == len(finished) else "no weight: "
            self.state.notes[name] = f"{prefix}{self.held_out.metric} not above chance by a standard error"
        if len(by_chance) == len(finished):
            known = [name for name in finished if not is_network(name)] or list(finished)
            prior = _standard_mix(known)
            chosen = {name: weight for name, weight in zip(known, prior.tolist(), strict=True) if weight}
            reason = (
                f"no learner ranks held-out labels better than chance by a standard error, so they do not tell which "
                f"to take: {_describe_mix(known, prior)}"
            )
            return dict(sorted(chosen.items(), key=lambda item: -item[1])), reason
        finished = {name: scores for name, scores in finished.items() if name not in by_chance}
        if len(finished) == 1:
            return {next(iter(finished)): 1.0}, f"{next(iter(finished))} alone ranks held-out labels better than chance"
        faultless = [name for name, scores in finished.items() if self.held_out.is_faultless(scores, _FEWEST_TO_TELL)]
        if faultless:  # such as the formula behind the labels: to mix in another could only blur it
            best = max(faultless, key=lambda name: self.held_out.ndcg(finished[name]))
            return {best: 1.0}, (
                f"{best} makes no mistake on held-out labels" if self.given.scored
                else f"{best} ranks all held-out examples above random targets"
            )  # fmt: skip
        mixes, (sample, places) = list_mixes(len(finished)), self.held_out.sample(_MOST_JUDGED)
        scores, judge = np.stack(list(finished.values()))[:, places], sample.quality_by_query
        quality = np.stack([judge(weights @ scores) for weights in mixes])
        rival = _drop_small(average_best_mix(mixes, quality[:, np.isfinite(quality).all(axis=0)], self.allowed.seed))
        standard = _standard_mix(list(finished))
        leads = judge(rival @ scores) - judge(standard @ scores)
        leads = leads[np.isfinite(leads)]
        lead, error = float(leads.mean()), float(leads.std(ddof=1) / np.sqrt(len(leads))) if len(leads) > 1 else 0.0
        share = shrink_lead(lead, error)
        weights = _drop_small(share * rival + (1 - share) * standard)
        order = [at for at in np.argsort(-weights, kind="stable") if weights[at] > 0]
        judged, usual = f"in the mean of {self.held_out.metric} and nDCG@20", _describe_mix(list(finished), standard)
        if share == 0:
            reason = f"{usual}: no other mix is better on held-out queries by two standard errors {judged}"
        else:
            reason = (
                f"{share:.0%} of the way from {usual} to the mix that is best on held-out queries, which leads by "
                f"{lead:.3f} ± {error:.3f} {judged}"
            )
        return {list(finished)[at]: float(weights[at]) for at in order}, reason

    def _train(self, members: dict[str, float]) -> tuple[Scorer, dict[str, float]]:
        """Fit what was chosen to all labels; what the quick learners leave of their shares is for the others.

        Members that fail, as on a GPU that is full, are left out; the weights of the others are returned beside them.
        """
        left, began = max(_FINAL_SHARE * self.budget, self.budget - sum(self.state.seconds.values())), perf_counter()
        scorers: dict[str, Scorer] = {}
        names = [name for name in self.learners if name in members]
        for number, name in enumerate(names):
            self.progress(f"training {name}", len(self.learners) + number, len(self.learners) + len(names))
            share = (left - (perf_counter() - began)) / (len(names) - number)
            try:
                scorers[name] = LEARNERS[name](self.hin, self.labels, replace(self.allowed, seconds=max(1.0, share)))
            except NeuPathError as error:
                if not scorers and number + 1 == len(names):
                    raise
                self.state.notes[name] = f"left out: {error}"
        rmtree(self.folder / MEMBERS, ignore_errors=True)
        total = sum(members[name] for name in scorers)
        weights = {name: weight / total for name, weight in members.items() if name in scorers}
        if len(scorers) == 1:
            return next(iter(scorers.values())), weights
        return Stack.of(list(scorers.values()), [{"weight": weights[name]} for name in scorers]), weights

    def _report(self, members: dict[str, float], reason: str) -> AutoReport:
        finished, state, judge = self._finished(), self.state, partial(Tried.judged, self.held_out)
        rows = [
            judge(finished.get(name), name, state.seconds.get(name, 0.0), members.get(name, 0.0),
                  state.notes.get(name, ""))
            for name in self.learners
        ]  # fmt: skip
        spent, mix = sum(state.seconds.values()), None
        if len(members) > 1:
            together = np.sum([weight * finished[name] for name, weight in members.items()], axis=0)
            mix = judge(together, "mix", spent, 1.0)
        return AutoReport(
            str(self.folder), self.held_out.metric, len(self.given), self.queries, tuple(rows), mix,
            tuple(members), reason, self._describe_unlabelled() if finished else "", spent, self.budget,
        )  # fmt: skip

    def _describe_unlabelled(self) -> str:
        """Say which targets without a label count as dissimilar."""
        drawn, others = len(self.labels) - len(self.given), len(self.held_out.others)
        parts = [f"{drawn:,} beside the examples, in training and in AUC"] if drawn else []
        parts += [f"{others:,} among which the nDCG@20 ranks the labels"] if others else []
        return f"random targets without a label count as dissimilar: {' and '.join(parts)}" if parts else ""
