"""PathBoost: gradient-boosted trees over path features, attributes and degrees (LightGBM).

Closed forms add up paths; trees also see what holds of several at once: "many shared genes, and of the same decade". A
pair is described by three measures along each candidate meta-path of `infer`, by the attributes of its nodes and by
their degrees. Yes/no labels are learned by binary boosting, graded ones by LambdaMART (Burges 2010) over the labels of
each query. A score cannot fall when a normalised path feature rises. Candidates are the targets that some path reaches;
the trees rank them, and the others have the score 0.
"""

from functools import cached_property
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from neupath._runtime.files import write_text
from neupath.engine.hits import check_whole
from neupath.errors import MissingExtraError, SourceError, first_line
from neupath.graph.hin import HIN, Floats
from neupath.graph.metapath import arrow
from neupath.graph.nodes import Rows
from neupath.learn.attributes import PairAttributes
from neupath.learn.inference.fitting import folds_of, rest_of
from neupath.learn.labels import Pairs
from neupath.learn.path_learner import NORMALISED, PathLearner, PathLearnerOptions

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


class PathBoost(PathLearner):
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
    options
        The fields of `PathLearnerOptions`. The seed decides the held-out queries and the features that each tree sees.

    >>> from neupath import load
    >>> names = ["Mike", "Jim", "Mary", "Bob"]
    >>> labels = [(a, b, float((a, b) in {("Mike", "Bob"), ("Bob", "Mike")})) for a in names for b in names if a != b]
    >>> model = PathBoost(max_length=4, trees=5).fit(load("toy"), labels)
    >>> model.top_k("Mike", k=1).ids
    ('Bob',)
    """

    name = "pathboost"
    param_names = ("max_length", "trees", "leaves", "learning_rate", "attributes", "candidates", "seed")
    saved_files = (TREES,)

    def __init__(
        self,
        max_length: int = 4,
        trees: int = 300,
        leaves: int = 15,
        learning_rate: float = 0.05,
        *,
        attributes: bool = True,
        **options: Unpack[PathLearnerOptions],
    ) -> None:
        super().__init__(max_length, **options)
        self.trees, self.leaves = check_whole("trees", trees, 1), check_whole("leaves", leaves, 2)
        self.learning_rate, self.attributes = learning_rate, attributes

    # ---- Learning --------------------------------------------------------------------------------
    def _learn(self, labels: Pairs) -> None:
        is_graded = not bool(np.isin(labels.scores, (0.0, 1.0)).all())
        self.learned["objective"] = "lambdarank" if is_graded else "binary"
        self.booster_ = self._boost(labels)
        self.learned["used"] = np.flatnonzero(self.booster_.feature_importance() > 0).tolist()

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
        return {
            "objective": self.learned["objective"], "num_leaves": self.leaves, "learning_rate": self.learning_rate,
            "min_data_in_leaf": int(np.clip(count // 40, 1, 20)), "feature_fraction": 0.7, "lambda_l2": 1.0,
            "monotone_constraints": [int(name.startswith(NORMALISED)) for name in self.feature_names_],
            "seed": self.seed % 2**31, "deterministic": True, "force_row_wise": True, "num_threads": _THREADS,
            "label_gain": list(range(_GRADES + 1)), "verbosity": -1,
        }  # fmt: skip

    def _dataset(self, matrix: Floats, labels: Pairs, rows: Rows) -> Any:
        part = labels.take(rows)
        scores, group = part.scores, None
        if self.learned["objective"] == "lambdarank":
            scores = np.round(_GRADES * scores)
            group = np.unique(part.queries, return_counts=True)[1]
        return lightgbm().Dataset(matrix[rows], scores, weight=part.weights, group=group, free_raw_data=False)

    @property
    def rounds_(self) -> int:
        """The number of trees."""
        return int(self.booster_.num_trees())

    def _margins(self, matrix: Floats) -> Floats:
        margins: Floats = self.booster_.predict(matrix, raw_score=True, num_threads=_THREADS)
        return margins

    def _shares(self, features: Floats) -> Floats:
        """Return the SHAP value of each feature, and the expected margin."""
        shares: Floats = self.booster_.predict(features[None], pred_contrib=True, num_threads=_THREADS)[0]
        return shares

    # ---- Features --------------------------------------------------------------------------------
    def _set_graph(self, hin: HIN) -> None:
        super()._set_graph(hin)
        for name in ("pair_attributes_", "degrees_"):
            self.__dict__.pop(name, None)

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
        """The name of each feature: those along paths, degrees, and attributes."""
        names: list[str] = []
        for side, node_type in zip(("query", "target"), self._types, strict=True):
            links = self.hin_.schema.links_from(node_type)
            names += [f"degree of the {side} {arrow((link,))} {link.target}" for link in links]
        attributes = self.pair_attributes_.names if self.pair_attributes_ else ()
        return (*super().feature_names_, *names, *attributes)

    def _describe(self, paths: Floats, queries: Rows, targets: Rows) -> Floats:
        parts = [paths, self.degrees_[0][queries], self.degrees_[1][targets]]
        if self.pair_attributes_ is not None:
            parts.append(self.pair_attributes_.of_pairs(queries, targets))
        return np.concatenate(parts, axis=1)

    # ---- Saving ----------------------------------------------------------------------------------
    def fingerprint(self) -> str:
        return str(self.booster_.model_to_string())

    def save(self, folder: str | Path) -> Path:
        self._fitted()
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        write_text(target / TREES, self.booster_.model_to_string())
        return super().save(target)

    def _read(self, folder: Path) -> None:
        path = folder / TREES
        package, text = lightgbm(), path.read_text(encoding="utf-8")
        try:
            self.booster_ = package.Booster(model_str=text)
        except package.basic.LightGBMError as error:
            raise SourceError(f"{path} holds no trees that LightGBM can read: {first_line(error)}") from error
        if self.booster_.num_feature() != len(self.feature_names_):
            raise SourceError(
                f"{path} has trees over {self.booster_.num_feature()} features, and this graph has "
                f"{len(self.feature_names_)} for them: its attributes or relations are not those of the graph it was "
                f"trained on; train it on this graph"
            )
