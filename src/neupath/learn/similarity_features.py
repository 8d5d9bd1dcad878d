"""SimilarityFeatures: similarities to known nodes as features, a transformer for pipelines of scikit-learn."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from neupath.errors import MissingExtraError, QueryError, listed
from neupath.graph.hin import HIN, Floats
from neupath.graph.metapath import MetaPath
from neupath.graph.nodes import Id
from neupath.learn.registry import DEFAULT_MEASURE
from neupath.measures import PathMeasure, measure_named

try:
    from sklearn.base import BaseEstimator, TransformerMixin  # type: ignore[import-untyped]
    from sklearn.utils.validation import check_is_fitted  # type: ignore[import-untyped]
except ModuleNotFoundError as error:
    raise MissingExtraError("scikit-learn", "scikit-learn>=1.4") from error


class SimilarityFeatures(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Turn node ids into their scores with reference nodes, one column for each meta-path and reference.

    It is a transformer of scikit-learn: its input is one column of ids or names, its output a matrix of shape
    (ids, meta-paths · references). The score of a node with itself is 0, so that a node of the training set looks like
    a new one. Needs scikit-learn 1.4 or newer.

    Parameters
    ----------
    hin
        The graph that has the nodes.
    metapaths
        One meta-path, or several, all between the same two node types.
    measure
        A measure along a meta-path by name, as in `--measure`.
    references
        The nodes to compare with; by default the ids that `fit` is given. Meta-paths between two types need them.
    sparse_output
        Whether the matrix is sparse (CSR) or dense.

    Attributes
    ----------
    references_
        The ids of the reference nodes, each once.
    scorers_
        The fitted measure of each meta-path.

    >>> from neupath import load
    >>> features = SimilarityFeatures(load("toy"), "APVPA", references=["Bob", "Mary"], sparse_output=False)
    >>> features.fit_transform(["Mike", "Mary"]).tolist()
    [[1.0, 0.8], [0.8, 0.0]]
    >>> features.get_feature_names_out().tolist()
    ['author-paper-venue-paper-author: Bob', 'author-paper-venue-paper-author: Mary']

    """

    references_: tuple[Id, ...]
    scorers_: tuple[PathMeasure, ...]

    def __init__(
        self,
        hin: HIN,
        metapaths: str | MetaPath | Sequence[str | MetaPath],
        *,
        measure: str = DEFAULT_MEASURE,
        references: Sequence[Id] | None = None,
        sparse_output: bool = True,
    ) -> None:
        self.hin, self.metapaths, self.measure = hin, metapaths, measure
        self.references, self.sparse_output = references, sparse_output

    def fit(self, X: Any, y: object = None) -> Self:  # noqa: ARG002, N803  scikit-learn's names
        """Fit the measures, and take the references, or the ids in X, as nodes to compare with."""
        ids = self._ids(X)
        paths = [self.metapaths] if isinstance(self.metapaths, str | MetaPath) else list(self.metapaths)
        if not paths:
            raise QueryError("‹metapaths› is empty; give at least one meta-path", parameter="metapaths")
        scorers = tuple(measure_named(self.measure, path).fit(self.hin) for path in paths)
        ends = {(scorer.source_type, scorer.target_type) for scorer in scorers}
        if len(ends) > 1:
            pairs = listed(f"{source} to {target}" for source, target in sorted(ends))
            raise QueryError(f"the meta-paths lead from {pairs}; give some between the same two types")
        ((source, target),) = ends
        if self.references is None and source != target:
            raise QueryError(f"the meta-paths lead from {source} to {target}; give {target} nodes as ‹references›")
        names = ids if self.references is None else list(self.references)
        if not names:
            raise QueryError("there are no ‹references› to compare with; give some, or fit with some ids")
        rows = np.array(list(dict.fromkeys(self.hin.rows(target, names).tolist())), dtype=np.int64)
        self.scorers_, self._rows = scorers, rows
        self.references_ = tuple(self.hin.nodes[target].ids_at(rows.tolist()))
        self.n_features_in_ = 1
        return self

    def transform(self, X: Any) -> Any:  # noqa: N803
        """Return the scores of ids with the references; shape (ids, meta-paths · references)."""
        check_is_fitted(self)
        queries = self.hin.rows(self.scorers_[0].source_type, self._ids(X))
        shape = len(queries), len(self._rows) * len(self.scorers_)
        lines = (np.concatenate([self._row_scores(own, row) for own in self.scorers_]) for row in queries.tolist())
        if not self.sparse_output:
            dense = np.empty(shape)
            for q, line in enumerate(lines):
                dense[q] = line
            return dense
        columns, scores = [np.empty(0, dtype=np.int32)], [np.empty(0)]
        for line in lines:
            columns.append(np.flatnonzero(line).astype(np.int32))
            scores.append(line[columns[-1]])
        ends = np.cumsum([len(each) for each in columns], dtype=np.int32)
        return csr_array((np.concatenate(scores), np.concatenate(columns), ends), shape=shape)

    def get_feature_names_out(self, input_features: object = None) -> NDArray[Any]:  # noqa: ARG002
        """Return the meta-path and the reference of each column."""
        check_is_fitted(self)
        names = [f"{scorer.metapath_text}: {id}" for scorer in self.scorers_ for id in self.references_]
        return np.array(names, dtype=object)

    def _row_scores(self, scorer: PathMeasure, row: int) -> Floats:
        scores = scorer.score_targets(row, self._rows).copy()
        if scorer.source_type == scorer.target_type:
            scores[self._rows == row] = 0.0
        return scores

    def _ids(self, X: Any) -> list[Id]:  # noqa: N803
        column = np.asarray(X, dtype=object) if isinstance(X, list | tuple) else np.asarray(X)
        if column.ndim != 1 and column.shape[1:] != (1,):
            raise QueryError(f"X has the shape {column.shape}; give one column of ids, as ColumnTransformer chooses it")
        ids: list[Id] = column.reshape(-1).tolist()
        return ids

    def __sklearn_clone__(self) -> Self:
        """Return an unfitted copy that shares the graph, which does not change."""
        return type(self)(**self.get_params(deep=False))
