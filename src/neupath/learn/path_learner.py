"""PathLearner: the base class of learners that see a pair by measures along the candidate meta-paths of `infer`."""

import copy
from abc import abstractmethod
from functools import cached_property
from pathlib import Path
from typing import Any, Self, TypedDict, Unpack

import numpy as np

from neupath.engine.hits import check_whole
from neupath.engine.scorer import LearnedScorer, check_names
from neupath.errors import QueryError, SourceError, first_line
from neupath.evidence.explanation import explain
from neupath.evidence.model_explanation import AttentionPath, Contribution
from neupath.graph.hin import HIN, Floats, check_graph
from neupath.graph.metapath import MetaPath
from neupath.graph.nodes import Id, Rows
from neupath.learn.inference.features import compute_features
from neupath.learn.inference.infer import feature_table
from neupath.learn.labels import LabelOptions, Pairs, collect_labels
from neupath.measures import PathMeasure, measure_named

NORMALISED = ("pathsim", "hetesim", "pcrw")
"""The measures whose scores are normalised: the higher, the more similar."""
COUNT = "pathcount"


def measures_along(metapath: MetaPath) -> tuple[str, ...]:
    """Return the measures that describe a pair along a meta-path; the first is above 0 where a path joins it."""
    return ("pathsim" if metapath.is_round_trip else "hetesim", "pcrw", COUNT)


class PathLearnerOptions(TypedDict, total=False):
    """What the constructor of every path learner takes."""

    candidates: int  # the most targets of a query that are ranked: those with the largest path features; 5,000
    seed: int  # decides what is held out, and what is drawn; 0
    device: str | None  # "cpu" or None; there is no other
    learned: dict[str, Any] | None  # what a saved model has learned


class PathLearner(LearnedScorer):
    """Base class of learners that rank the targets that paths reach by what measures along these paths say.

        s(q, t) = 1 / (1 + exp(-margin(x_qt)))

    x_qt are the features of the pair, those along paths first. Targets that no path reaches have the score 0. A
    subclass learns in `_learn`, and computes margins, and the share of each feature in one, from a matrix of features.
    """

    lists_zeros = False
    param_names: tuple[str, ...] = ("max_length", "candidates", "seed")

    def __init__(self, max_length: int = 4, **options: Unpack[PathLearnerOptions]) -> None:
        check_names(type(self).__name__, options, sorted(PathLearnerOptions.__annotations__))
        if options.get("device") not in (None, "cpu"):
            raise QueryError(
                f"‹device› is {options['device']!r}; {self.name} runs on the CPU alone", parameter="device"
            )
        self.max_length, self.candidates = check_whole("max_length", max_length, 1), options.get("candidates", 5000)
        self.seed, self.learned_ = options.get("seed", 0), options.get("learned")
        self._identity: object | None = None

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002
        return {name: getattr(self, name) for name in self.param_names}

    def params(self) -> dict[str, object]:
        return self.get_params() | {"learned": self.learned_}

    def __repr__(self) -> str:
        params = ", ".join(f"{name}={value!r}" for name, value in self.get_params().items())
        return f"{type(self).__name__}({params})"

    @property
    def learned(self) -> dict[str, Any]:
        """What was learned, as it is saved."""
        assert self.learned_ is not None
        return self.learned_

    @property
    def rounds_(self) -> int:
        """How many rounds it learned in: one, unless it adds something up round by round."""
        return 1

    # ---- Learning --------------------------------------------------------------------------------
    def fit(self, hin: HIN, pairs: Any = None, **options: Unpack[LabelOptions]) -> Self:
        """Learn from labelled pairs, or from labels that an exact measure gives to some queries.

        Parameters
        ----------
        hin
            The graph.
        pairs
            A CSV file, a table, or tuples of (query, target, score); `read_pairs` says which labels it takes.
        options
            The fields of `LabelOptions`.
        """
        check_graph(hin)
        labels = collect_labels(hin, pairs, self.seed, **options)
        if np.ptp(labels.scores) == 0:
            raise QueryError(
                f"all labels are {labels.scores[0]:g}, which leaves nothing to learn; add pairs that are more or less "
                f"similar"
            )
        _, metapaths = feature_table(hin, labels, node_type=None, max_length=max(2, self.max_length), seed=self.seed)
        self.learned_ = {
            "node_types": [labels.node_type, labels.target_type],
            "metapaths": [str(metapath) for metapath in metapaths],
        }
        self._set_graph(hin)
        self._learn(labels)
        self._identity = object()
        return self

    @abstractmethod
    def _learn(self, labels: Pairs) -> None:
        """Learn from labels, and write to `learned` what is saved: in "used", which features the margins depend on."""

    @abstractmethod
    def _margins(self, matrix: Floats) -> Floats:
        """Return the margin of each pair, given its features; shape (pairs,)."""

    @abstractmethod
    def _shares(self, features: Floats) -> Floats:
        """Return what each feature of one pair adds to its margin, and last what is there without any."""

    # ---- Features --------------------------------------------------------------------------------
    def _set_graph(self, hin: HIN) -> None:
        self.hin_ = hin
        for name in ("measures_", "feature_names_"):
            self.__dict__.pop(name, None)
        self.metapaths_: list[MetaPath] = [hin.metapath(text) for text in self.learned["metapaths"]]

    @property
    def source_type(self) -> str:
        self._fitted()
        return self._types[0]

    @property
    def target_type(self) -> str:
        return self._types[1]

    @property
    def _types(self) -> tuple[str, str]:
        return tuple(self.learned["node_types"])

    @cached_property
    def measures_(self) -> list[PathMeasure]:
        """The measures behind the path features."""
        return [measure_named(name, path).fit(self.hin_) for path in self.metapaths_ for name in measures_along(path)]

    @cached_property
    def feature_names_(self) -> tuple[str, ...]:
        """The name of each feature, those along paths first."""
        return tuple(f"{name} {path}" for path in self.metapaths_ for name in measures_along(path))

    def _describe(self, paths: Floats, queries: Rows, targets: Rows) -> Floats:  # noqa: ARG002
        """Return the features of pairs, given their scores by the measures along paths; shape (pairs, features)."""
        return paths

    def _features_of(self, labels: Pairs) -> Floats:
        """Return the features of labelled pairs; shape (pairs, features)."""
        columns = []
        for metapath, scores in zip(self.metapaths_, compute_features(self.hin_, self.metapaths_, labels), strict=True):
            columns += [scores.get(name, np.zeros(len(labels))) for name in measures_along(metapath)]
        return self._describe(np.stack(columns, axis=1), labels.queries, labels.targets)

    def _candidates_of(self, query: int) -> tuple[Rows, Floats]:
        """Return the targets that paths reach, and their features; the strongest where there are too many."""
        used = set(self.learned["used"])
        paths = np.zeros((self.hin_.num_nodes(self.target_type), len(self.measures_)))
        for column, measure in enumerate(self.measures_):
            if column in used or column % len(measures_along(measure.metapath_)) == 0:  # the first finds candidates
                paths[:, column] = measure.score_rows(np.array([query]))[0]
        bounded = paths[:, [column for column, measure in enumerate(self.measures_) if measure.bounded]]
        strength = bounded.sum(axis=1)
        found = np.flatnonzero(strength > 0)
        if len(found) > self.candidates:
            found = np.sort(found[np.lexsort((found, -strength[found]))[: self.candidates]])
        return found, self._describe(paths[found], np.full(len(found), query), found)

    # ---- Scoring ---------------------------------------------------------------------------------
    def _score_rows(self, queries: Rows) -> Floats:
        scores = np.zeros((len(queries), self.hin_.num_nodes(self.target_type)))
        for number, query in enumerate(queries.tolist()):
            found, matrix = self._candidates_of(query)
            if len(found):
                scores[number, found] = 1 / (1 + np.exp(-np.clip(self._margins(matrix), -700, 700)))
        return scores

    def contributions(self, query: Id, target: Id) -> list[Contribution]:
        """Return what each meta-path, or whatever else it sees, adds to the margin of a pair; the largest first.

        There are none if the target is not ranked, whose score is 0 then.
        """
        margin = self.split_margin(query, target)
        return [] if margin is None else margin[1]

    def split_margin(self, query: Id, target: Id) -> tuple[float, list[Contribution]] | None:
        """Return the margin before anything is known of a pair, and all that is added to it, the largest first.

        The score is 1 / (1 + exp(-margin)) of their sum. It is None if the target is not ranked.
        """
        row, column = self._fitted().row(self.source_type, query), self.hin_.row(self.target_type, target)
        found, matrix = self._candidates_of(row)
        places = np.flatnonzero(found == column)
        if not len(places):
            return None
        *shares, base = self._shares(matrix[places[0]]).tolist()
        names = [str(measure.metapath_) for measure in self.measures_]
        total: dict[str, float] = {}
        for name, value in zip([*names, *self.feature_names_[len(names) :]], shares, strict=True):
            total[name] = total.get(name, 0.0) + value
        ordered = sorted(total.items(), key=lambda item: (-abs(item[1]), item[0]))
        return base, [Contribution(name, value) for name, value in ordered if value]

    def attention_paths(self, query: Id, target: Id, limit: int = 10) -> list[AttentionPath]:
        """Return the path instances along the meta-paths that raise the score, by what these add; heaviest first."""
        known = {str(metapath): metapath for metapath in self.metapaths_}
        raising = {c.name: c.value for c in self.contributions(query, target) if c.name in known and c.value > 0}
        total = sum(raising.values())
        paths = []
        for text, value in raising.items():
            measure = measures_along(known[text])[0]
            why = explain(self.hin_, known[text], query, target, measure=measure, limit=limit, k=None)
            paths += [
                AttentionPath(path.nodes, path.links, value / total * path.share / why.score, from_query=True)
                for path in why.instances
            ]
        return sorted(paths, key=lambda path: -path.weight)[:limit]

    # ---- Saving ----------------------------------------------------------------------------------
    def bind(self, hin: HIN) -> Self:
        self._fitted()
        bound = copy.copy(self)
        bound._set_graph(hin)
        return bound

    @property
    def identity(self) -> object | None:
        return self._identity

    @classmethod
    def from_folder(cls, folder: Path, params: dict[str, Any], hin: HIN, device: str | None = None) -> Self:
        """Read a saved model with these parameters and bind it to a graph."""
        try:
            model = cls(**params, device=None if device == "cpu" else device)
            learned = model.learned_ or {}
            if [type(learned.get(name)) for name in ("node_types", "metapaths", "used")] != [list] * 3:
                raise ValueError("config.json does not say what was learned")
            model._set_graph(hin)
            model._read(folder)
        except (OSError, TypeError, ValueError) as error:
            raise SourceError(f"{folder} holds no {cls.name} model that can be read: {first_line(error)}") from error
        model._identity = object()
        return model

    @abstractmethod
    def _read(self, folder: Path) -> None:
        """Take what was learned from `learned` or from a folder, and check that it fits the graph."""
