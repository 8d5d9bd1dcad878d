"""Stack: several learned scorers together, added up by what their ranks say."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from neupath.engine.scorer import LearnedScorer, Scorer, read_saved
from neupath.errors import OtherNodesError, QueryError, SourceError, SourceWarning, listed
from neupath.evidence.model_explanation import AttentionPath
from neupath.graph.hin import HIN, Floats
from neupath.graph.nodes import Id, Rows
from neupath.learn.registry import is_network, load_scorer
from neupath.measures import Combination

MEMBERS = "members"


def score_ranks(scores: Floats) -> Floats:
    """Return 1 - log(rank) / log(n) of each of n targets, equal ones with the last rank of them; (queries, targets).

    >>> score_ranks(np.array([[0.9, 0.3, 0.0, 0.0]])).tolist()
    [[1.0, 0.5, 0.0, 0.0]]
    """
    ranked = np.empty_like(scores, dtype=np.float64)
    for number, row in enumerate(scores):
        ascending = np.sort(row)
        ranks = len(row) - np.searchsorted(ascending, row, "left")
        ranked[number] = 1 - np.log(ranks) / np.log(max(2, len(row)))
    return ranked


@dataclass(eq=False)
class _Identity:
    """What all copies of one stack share."""

    has_warned: bool = False


class Stack(LearnedScorer):
    """Add up what the ranks of several learned scorers say, on a logarithmic scale.

        s(q, t) = Σ_m weight_m·(1 - log rank_m(q, t) / log n)

    rank_m(q, t) is how many of the n targets the member scores at least as high as t for the query: 1 for its best one,
    n for all those at the bottom, which have nothing from it. A query from which no path leads to any target has the
    score 0 with all of them. Over a graph with other nodes than the one it was trained on, members that know each node
    by features of its own are left out, and the weights of the others are scaled up; a `SourceWarning` says so once.

    Parameters
    ----------
    members
        The weight of each member; the members themselves come with `of`, or from a folder.

    """

    name = "stack"
    lists_zeros = False
    ranks_only = True

    def __init__(self, members: Sequence[dict[str, float]]) -> None:
        self.members = [{"weight": float(member["weight"])} for member in members]
        if not self.members:
            raise QueryError("a stack needs at least one member")
        self.scorers_: list[Scorer] = []
        self.left_out: tuple[str, ...] = ()
        """The members that do not fit the graph."""
        self._identity = _Identity()

    @classmethod
    def of(cls, scorers: Sequence[Scorer], members: Sequence[dict[str, float]]) -> Self:
        """Return a stack of fitted scorers."""
        stack = cls(members)
        stack.scorers_, stack.hin_ = list(scorers), scorers[0].hin_
        return stack

    def params(self) -> dict[str, object]:
        return {"members": self.members}

    def fit(self, hin: HIN) -> Self:  # noqa: ARG002
        raise QueryError("a stack is made by training with the architecture auto; bind(hin) moves it to another graph")

    def bind(self, hin: HIN) -> Self:
        self._fitted()
        names = [scorer.name for scorer in self.scorers_]
        return self._of_those_that_fit(names, lambda number: self.scorers_[number].bind(hin))

    def _of_those_that_fit(self, names: Sequence[str], bind: Callable[[int], Scorer]) -> Self:
        """Return the stack of the members that can be bound to a graph, which `bind` does by number."""
        scorers: list[Scorer] = []
        members: list[dict[str, float]] = []
        missing: list[str] = []
        for number, (name, member) in enumerate(zip(names, self.members, strict=True)):
            try:
                scorers.append(bind(number))
                members.append(member)
            except OtherNodesError:
                missing.append(name)
        what = f"{listed(missing)} {'know' if len(missing) > 1 else 'knows'} each node by features of its own"
        if not scorers:
            raise OtherNodesError(
                f"no member of this stack fits the graph: {what}, and this graph has other nodes than the one it was "
                f"trained on; train it on this graph"
            )
        total = sum(member["weight"] for member in members) if missing else 1.0
        bound = self.of(scorers, [{"weight": member["weight"] / total} for member in members])
        bound._identity, bound.left_out = self._identity, (*self.left_out, *missing)
        if missing and not self._identity.has_warned:
            self._identity.has_warned = True
            note = (
                f"{listed(missing)} of the stack {' + '.join(names)} {'are' if len(missing) > 1 else 'is'} left out, "
                f"and the weights of the others are scaled up: {what}, and this graph has other nodes than the one it "
                f"was trained on"
            )
            advice = "train on this graph to have all of them"
            warnings.warn(SourceWarning("a learned stack", [note], advice), stacklevel=3)
        return bound

    @property
    def source_type(self) -> str:
        self._fitted()
        return self.scorers_[0].source_type

    @property
    def target_type(self) -> str:
        return self.scorers_[0].target_type

    def _score_rows(self, queries: Rows) -> Floats:
        total = np.zeros((len(queries), self.hin_.num_nodes(self.target_type)))
        for member, scorer in zip(self.members, self.scorers_, strict=True):
            total += member["weight"] * score_ranks(scorer.score_rows(queries))
        return total

    def fingerprint(self) -> str:
        return "".join(scorer.fingerprint() for scorer in self.scorers_)

    @property
    def identity(self) -> object:
        return self._identity

    def parts_of_score(self, query: Id, target: Id) -> list[tuple[str, float, float, float]]:
        """Return the name and weight of each member, its own score of a pair, and what it adds to that of the stack."""
        row, column = self._fitted().row(self.source_type, query), self.hin_.row(self.target_type, target)
        is_cold, parts = self.is_cold(query), []
        for scorer, member in zip(self.scorers_, self.members, strict=True):
            name = "infer" if isinstance(scorer, Combination) else scorer.name
            scores = scorer.score_rows(np.array([row]))
            added = 0.0 if is_cold else member["weight"] * float(score_ranks(scores)[0, column])
            parts.append((name, member["weight"], float(scores[0, column]), added))
        return parts

    def as_combination(self) -> Combination | None:
        """Return the heaviest member that says which paths it follows, if that is a sum of measures."""
        heaviest = self._explaining()
        return heaviest if isinstance(heaviest, Combination) else None

    def attention_paths(self, query: Id, target: Id, limit: int = 10) -> list[AttentionPath]:
        """Return the path instances behind the score of the heaviest member that can tell them."""
        heaviest = self._explaining()
        if heaviest is None or isinstance(heaviest, Combination):
            raise QueryError("no member of this stack tells the paths behind its scores")
        paths: list[AttentionPath] = heaviest.attention_paths(query, target, limit)  # type: ignore[attr-defined]
        return paths

    def _explaining(self) -> Scorer | None:
        order = np.argsort([-member["weight"] for member in self.members], kind="stable")
        scorers = [self.scorers_[number] for number in order]
        return next((s for s in scorers if isinstance(s, Combination) or hasattr(s, "attention_paths")), None)

    def save(self, folder: str | Path) -> Path:
        target = Path(folder)
        for number, scorer in enumerate(self.scorers_):
            scorer.save(target / MEMBERS / str(number))
        return super().save(target)

    @classmethod
    def from_folder(cls, folder: Path, params: dict[str, Any], hin: HIN, device: str | None = None) -> Self:
        """Read a saved stack and bind its members to a graph; `device` is that of its networks."""
        try:
            members = list(params["members"])
            stack = cls(members)
        except (KeyError, TypeError, ValueError) as error:
            raise SourceError(f"{folder} holds a stack whose members cannot be read: {error}") from error
        paths = [folder / MEMBERS / str(number) for number in range(len(members))]
        names = [read_saved(path)[0] for path in paths]

        def load(number: int) -> Scorer:
            return load_scorer(paths[number], hin, device if is_network(names[number]) else None)

        return stack._of_those_that_fit(names, load)
