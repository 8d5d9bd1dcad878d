"""PathBoost: gradient-boosted trees over path features, attributes and degrees (LightGBM).

Closed forms add up paths; trees also see what holds of several at once: "many shared genes, and of the same decade". A
pair is described by three measures along each candidate meta-path of `infer`, by the attributes of its nodes and by
their degrees. Yes/no labels are learned by binary boosting, graded ones by LambdaMART (Burges 2010) over the labels of
each query. A score cannot fall when a normalised path feature rises. Candidates are the targets that some path reaches;
the trees rank them, and the others have the score 0.
"""

import copy
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np

from neupath._runtime.files import write_text
from neupath.engine.scorer import LearnedScorer, Scorer
from neupath.errors import MissingExtraError, QueryError, SourceError, first_line
from neupath.evidence.explanation import explain
from neupath.evidence.model_explanation import Contribution
from neupath.graph.hin import HIN, Floats, check_graph
from neupath.graph.metapath import MetaPath, arrow
from neupath.graph.nodes import Id, Rows
from neupath.learn.attention import AttentionNode, AttentionPath
from neupath.learn.attributes import PairAttributes
from neupath.learn.inference.features import compute_features
from neupath.learn.inference.fitting import folds_of, rest_of
from neupath.learn.inference.infer import feature_table
from neupath.learn.labels import NodeTypes, Pairs, Protocol, draw_pairs, join_types, read_pairs, with_negatives
from neupath.measures import PathMeasure, measure_named

TREES = "trees.txt"
_THREADS = 1
"""LightGBM gives the same trees for one number of threads alone."""
_GRADES = 30
"""The highest grade for LambdaMART; a grade is its own gain."""
_LEAST_QUERIES = 5
"""Queries of which a fifth is set apart to choose the number of trees."""


def lightgbm() -> Any:
    """Return LightGBM, imported on first use."""
    try:
        import lightgbm as package
    except ModuleNotFoundError as error:
        raise MissingExtraError("LightGBM", "neupath[learn]") from error
    return package


class PathBoost(LearnedScorer):
    """Rank the targets that paths reach by boosted trees.

        s(q, t) = 1 / (1 + exp(-Σ_trees f(x_qt))),  x_qt: path features, attributes and degrees of the pair

    Parameters
    ----------
    max_length
        The most steps of a meta-path.
    trees
        The most trees; fewer are kept if held-out queries say so.
    leaves
        The most leaves of a tree.
    learning_rate
        How much each tree adds.
    attributes
        Whether it sees the attributes of nodes.
    candidates
        The most targets of a query that the trees rank: those with the largest path features.
    seed
        Decides the held-out queries and the features that each tree sees.
    device
        "cpu" or None; it has no other.

    >>> from neupath import load
    >>> names = ["Mike", "Jim", "Mary", "Bob"]
    >>> labels = [(a, b, float((a, b) in {("Mike", "Bob"), ("Bob", "Mike")})) for a in names for b in names if a != b]
    >>> model = PathBoost(max_length=4, trees=5).fit(load("toy"), labels)
    >>> model.top_k("Mike", k=1).ids
    ('Bob',)
    """

    name = "pathboost"
    lists_zeros = False
    saved_files = (TREES,)

    def __init__(
        self,
        max_length: int = 4,
        trees: int = 300,
        leaves: int = 15,
        learning_rate: float = 0.05,
        *,
        attributes: bool = True,
        candidates: int = 5000,
        seed: int = 0,
        device: str | None = None,
        learned: dict[str, Any] | None = None,
    ) -> None:
        for name, value, least in (("max_length", max_length, 1), ("trees", trees, 1), ("leaves", leaves, 2)):
            if value < least:
                raise QueryError(f"‹{name}› is {value}; it must be at least {least}", parameter=name)
        if device not in (None, "cpu"):
            raise QueryError(f"‹device› is {device!r}; pathboost runs on the CPU alone", parameter="device")
        self.max_length, self.trees, self.leaves, self.learning_rate = max_length, trees, leaves, learning_rate
        self.attributes, self.candidates, self.seed = attributes, candidates, seed
        self.learned_ = learned

    def params(self) -> dict[str, object]:
        names = ("max_length", "trees", "leaves", "learning_rate", "attributes", "candidates", "seed")
        return {name: getattr(self, name) for name in names} | {"learned": self.learned_}

    # ---- Learning --------------------------------------------------------------------------------
    def fit(
        self,
        hin: HIN,
        pairs: Any = None,
        *,
        node_type: NodeTypes = None,
        query_type: str | None = None,
        target_type: str | None = None,
        teacher: Scorer | None = None,
        queries: Any = None,
        protocol: Protocol = "strict",
    ) -> Self:
        """Learn from labelled pairs, or from labels that an exact measure gives to some queries.

        Parameters
        ----------
        hin
            The graph.
        pairs
            A CSV file, a table, or tuples of (query, target, score); `read_pairs` says which labels it takes.
        node_type
            The type of the nodes in `pairs`, where their ids fit several.
        query_type, target_type
            The types of the queries and of the targets instead, which may differ.
        teacher, queries, protocol
            A fitted measure to draw labels from, instead of `pairs`, for which queries, and which labels.
        """
        check_graph(hin)
        if (pairs is None) == (teacher is None):
            raise QueryError("give either labelled pairs or a teacher to draw labels from")
        if teacher is not None:
            labels = draw_pairs(teacher, queries, protocol, seed=self.seed)
        else:
            labels = read_pairs(hin, pairs, join_types(node_type, query_type, target_type), examples=True)
        if not labels.scored:
            labels = with_negatives(labels, hin.num_nodes(labels.target_type), self.seed)
        if np.ptp(labels.scores) == 0:
            raise QueryError(
                f"all labels are {labels.scores[0]:g}, which leaves nothing to learn; add pairs that are more or less "
                f"similar"
            )
        _, metapaths = feature_table(hin, labels, node_type=None, max_length=max(2, self.max_length), seed=self.seed)
        is_graded = not bool(np.isin(labels.scores, (0.0, 1.0)).all())
        self.learned_ = {
            "node_types": [labels.node_type, labels.target_type],
            "metapaths": [str(metapath) for metapath in metapaths],
            "objective": "lambdarank" if is_graded else "binary",
            "used": [],
        }
        self._set_graph(hin)
        self.booster_ = self._boost(labels)
        self.learned_["used"] = np.flatnonzero(self.booster_.feature_importance() > 0).tolist()
        return self

    def _boost(self, labels: Pairs) -> Any:
        labels = labels.take(np.argsort(labels.queries, kind="stable"))
        matrix = self._features_of(labels)
        rounds = self.trees
        folds = folds_of(labels.queries, self.seed)
        rest = rest_of(folds[0], labels.queries, labels.partners)
        can_stop = len(np.unique(labels.queries)) >= _LEAST_QUERIES and len(rest) > 0
        if can_stop and np.ptp(labels.scores[folds[0]]) > 0:
            held_out = self._dataset(matrix, labels, folds[0])
            stop = lightgbm().early_stopping(30, verbose=False)
            tried = lightgbm().train(
                self._settings(len(rest)), self._dataset(matrix, labels, rest), self.trees,
                valid_sets=[held_out], callbacks=[stop],
            )  # fmt: skip
            rounds = max(1, tried.best_iteration)
        else:
            rounds = min(rounds, 50)
        everything = np.arange(len(labels))
        return lightgbm().train(self._settings(len(labels)), self._dataset(matrix, labels, everything), rounds)

    def _settings(self, count: int) -> dict[str, Any]:
        assert self.learned_ is not None
        return {
            "objective": self.learned_["objective"], "num_leaves": self.leaves, "learning_rate": self.learning_rate,
            "min_data_in_leaf": int(np.clip(count // 40, 1, 20)), "feature_fraction": 0.7, "lambda_l2": 1.0,
            "monotone_constraints": [int(name.startswith(_RISING)) for name in self.feature_names_],
            "seed": self.seed % 2**31, "deterministic": True, "force_row_wise": True, "num_threads": _THREADS,
            "label_gain": list(range(_GRADES + 1)), "verbosity": -1,
        }  # fmt: skip

    def _dataset(self, matrix: Floats, labels: Pairs, rows: Rows) -> Any:
        part = labels.take(rows)
        scores, group = part.scores, None
        if self.learned_ is not None and self.learned_["objective"] == "lambdarank":
            scores = np.round(_GRADES * scores)
            group = np.unique(part.queries, return_counts=True)[1]
        return lightgbm().Dataset(matrix[rows], scores, weight=part.weights, group=group, free_raw_data=False)

    # ---- Features --------------------------------------------------------------------------------
    def _set_graph(self, hin: HIN) -> None:
        assert self.learned_ is not None
        self.hin_ = hin
        for name in ("measures_", "pair_attributes_", "degrees_", "feature_names_"):
            self.__dict__.pop(name, None)
        self.metapaths_: list[MetaPath] = [hin.metapath(text) for text in self.learned_["metapaths"]]

    @property
    def source_type(self) -> str:
        self._fitted()
        return self._types[0]

    @property
    def target_type(self) -> str:
        return self._types[1]

    @property
    def _types(self) -> tuple[str, str]:
        assert self.learned_ is not None
        return tuple(self.learned_["node_types"])

    @cached_property
    def pair_attributes_(self) -> PairAttributes | None:
        return PairAttributes(*(self.hin_.nodes[name] for name in self._types)) if self.attributes else None

    @cached_property
    def degrees_(self) -> tuple[Floats, Floats]:
        """The logarithm of 1 + the degree of each query and of each target, by kind of edge; (nodes, kinds) each."""
        sides = []
        for node_type in self._types:
            counts = [np.diff(self.hin_.matrix(link).indptr) for link in self.hin_.schema.links_from(node_type)]
            sides.append(
                np.log1p(np.stack(counts, axis=1)) if counts else np.zeros((self.hin_.num_nodes(node_type), 0))
            )
        return sides[0], sides[1]

    @cached_property
    def feature_names_(self) -> tuple[str, ...]:
        schema = self.hin_.schema
        names = [f"{measure} {metapath}" for metapath in self.metapaths_ for measure in _measures_along(metapath)]
        for side, node_type in zip(("query", "target"), self._types, strict=True):
            names += [f"degree of the {side} {arrow((link,))} {link.target}" for link in schema.links_from(node_type)]
        return (*names, *(self.pair_attributes_.names if self.pair_attributes_ else ()))

    @cached_property
    def measures_(self) -> list[PathMeasure]:
        """The measures behind the path features."""
        return [measure_named(name, path).fit(self.hin_) for path in self.metapaths_ for name in _measures_along(path)]

    def _features_of(self, labels: Pairs) -> Floats:
        """Return the features of labelled pairs; shape (pairs, features)."""
        columns = []
        for metapath, scores in zip(self.metapaths_, compute_features(self.hin_, self.metapaths_, labels), strict=True):
            columns += [scores.get(name, np.zeros(len(labels))) for name in _measures_along(metapath)]
        return np.concatenate([np.stack(columns, axis=1), self._other_features(labels.queries, labels.targets)], axis=1)

    def _other_features(self, queries: Rows, targets: Rows) -> Floats:
        parts = [self.degrees_[0][queries], self.degrees_[1][targets]]
        if self.pair_attributes_ is not None:
            parts.append(self.pair_attributes_.of_pairs(queries, targets))
        return np.concatenate(parts, axis=1)

    def _candidates_of(self, query: int) -> tuple[Rows, Floats]:
        """Return the targets that paths reach, and their features; the strongest where there are too many."""
        assert self.learned_ is not None
        used = set(self.learned_["used"])
        paths = np.zeros((self.hin_.num_nodes(self.target_type), len(self.measures_)))
        for column, measure in enumerate(self.measures_):
            if column in used or column % len(_measures_along(measure.metapath_)) == 0:  # the first finds candidates
                paths[:, column] = measure.score_rows(np.array([query]))[0]
        bounded = paths[:, [column for column, measure in enumerate(self.measures_) if measure.bounded]]
        strength = bounded.sum(axis=1)
        found = np.flatnonzero(strength > 0)
        if len(found) > self.candidates:
            found = np.sort(found[np.lexsort((found, -strength[found]))[: self.candidates]])
        queries = np.full(len(found), query)
        return found, np.concatenate([paths[found], self._other_features(queries, found)], axis=1)

    # ---- Scoring ---------------------------------------------------------------------------------
    def _score_rows(self, queries: Rows) -> Floats:
        scores = np.zeros((len(queries), self.hin_.num_nodes(self.target_type)))
        for number, query in enumerate(queries.tolist()):
            found, matrix = self._candidates_of(query)
            if len(found):
                raw = self.booster_.predict(matrix, raw_score=True, num_threads=_THREADS)
                scores[number, found] = 1 / (1 + np.exp(-np.clip(raw, -700, 700)))
        return scores

    def contributions(self, query: Id, target: Id) -> list[Contribution]:
        """Return what each meta-path, attribute and degree adds to the score of a pair; the largest first.

        There are none if the trees do not rank the target, whose score is 0 then.
        """
        margin = self.split_margin(query, target)
        return [] if margin is None else margin[1]

    def split_margin(self, query: Id, target: Id) -> tuple[float, list[Contribution]] | None:
        """Return the margin before anything is known of a pair, and all that is added to it, the largest first.

        The score is 1 / (1 + exp(-margin)) of their sum. It is None if the trees do not rank the target.
        """
        row, column = self._fitted().row(self.source_type, query), self.hin_.row(self.target_type, target)
        found, matrix = self._candidates_of(row)
        places = np.flatnonzero(found == column)
        if not len(places):
            return None
        shares = self.booster_.predict(matrix[places], pred_contrib=True, num_threads=_THREADS)[0].tolist()
        names = [str(measure.metapath_) for measure in self.measures_]
        total: dict[str, float] = {}
        for name, value in zip([*names, *self.feature_names_[len(names) :]], shares[:-1], strict=True):
            total[name] = total.get(name, 0.0) + value
        ordered = sorted(total.items(), key=lambda item: (-abs(item[1]), item[0]))
        return shares[-1], [Contribution(name, value) for name, value in ordered if value]

    def attention_paths(self, query: Id, target: Id, limit: int = 10) -> list[AttentionPath]:
        """Return the path instances along the meta-paths that raise the score, by what these add; heaviest first."""
        known = {str(metapath): metapath for metapath in self.metapaths_}
        raising = {c.name: c.value for c in self.contributions(query, target) if c.name in known and c.value > 0}
        total = sum(raising.values())
        paths = []
        for text, value in raising.items():
            measure = _measures_along(known[text])[0]
            why = explain(self.hin_, known[text], query, target, measure=measure, limit=limit, k=None)
            paths += [
                AttentionPath(
                    tuple(AttentionNode(node.node_type, node.id, node.name) for node in path.nodes), path.links,
                    value / total * path.share / why.score, from_query=True,
                )
                for path in why.instances
            ]  # fmt: skip
        return sorted(paths, key=lambda path: -path.weight)[:limit]

    # ---- Saving ----------------------------------------------------------------------------------
    def bind(self, hin: HIN) -> Self:
        self._fitted()
        bound = copy.copy(self)
        bound._set_graph(hin)
        return bound

    @property
    def identity(self) -> object | None:
        return getattr(self, "booster_", None)

    def fingerprint(self) -> str:
        return str(self.booster_.model_to_string())

    def save(self, folder: str | Path) -> Path:
        self._fitted()
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        write_text(target / TREES, self.booster_.model_to_string())
        return super().save(target)

    @classmethod
    def from_folder(cls, folder: Path, params: dict[str, Any], hin: HIN, device: str | None = None) -> Self:
        """Read a saved model with these parameters and bind it to a graph."""
        path = folder / TREES
        try:
            model = cls(**params, device=None if device == "cpu" else device)
            learned = model.learned_ or {}
            if [type(learned.get(name)) for name in ("node_types", "metapaths", "used")] != [list] * 3:
                raise ValueError("config.json does not say what was learned")
            text = path.read_text(encoding="utf-8")
        except (OSError, TypeError, ValueError) as error:
            raise SourceError(f"{folder} holds no pathboost model that can be read: {first_line(error)}") from error
        model._set_graph(hin)
        package = lightgbm()
        try:
            model.booster_ = package.Booster(model_str=text)
        except package.basic.LightGBMError as error:
            raise SourceError(f"{path} holds no trees that LightGBM can read: {first_line(error)}") from error
        if model.booster_.num_feature() != len(model.feature_names_):
            raise SourceError(
                f"{path} has trees over {model.booster_.num_feature()} features, and this graph has "
                f"{len(model.feature_names_)} for them: its attributes or relations are not those of the graph it was "
                f"trained on; train it on this graph"
            )
        return model


_RISING = ("pathsim", "hetesim", "pcrw")
"""The measures whose scores are normalised: the higher, the more similar."""


def _measures_along(metapath: MetaPath) -> tuple[str, ...]:
    return ("pathsim" if metapath.is_round_trip else "hetesim", "pcrw", "pathcount")
