"""Labels: pairs of nodes with a score, given by a user or drawn from an exact measure, to learn from."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.csv

from neupath.errors import NodeError, QueryError, SourceError, listed
from neupath.graph import HIN, Floats
from neupath.nodes import Id, Rows
from neupath.scorer import Scorer

Protocol = Literal["paper", "strict"]
PROTOCOLS: tuple[Protocol, ...] = ("paper", "strict")
COLUMNS = ("query", "target", "score")


@dataclass(frozen=True)
class Pairs:
    """Labelled pairs of nodes of one type, as rows; shape (pairs,) each."""

    node_type: str
    queries: Rows
    targets: Rows
    scores: Floats

    def __len__(self) -> int:
        return len(self.queries)

    def of_queries(self, queries: Iterable[int]) -> "Pairs":
        """Return the pairs whose query is one of those given."""
        kept = np.flatnonzero(np.isin(self.queries, list(queries)))
        return Pairs(self.node_type, self.queries[kept], self.targets[kept], self.scores[kept])


def read_pairs(hin: HIN, source: Any, node_type: str | None = None) -> Pairs:
    """Read labelled pairs: a CSV file with the header query,target,score, a table, or (query, target, score) tuples.

    >>> from neupath import load
    >>> read_pairs(load("toy"), [("Mike", "Bob", 1.0), ("Mike", "Jim", 0.08)]).node_type
    'author'
    """
    if isinstance(source, Pairs):
        return source
    queries, targets, scores = _columns(source)
    if not queries:
        raise QueryError("there are no pairs to learn from; give at least one query, target and score")
    for number, score in enumerate(scores, 1):
        if not 0 <= score <= 1:
            pair = f"pair {number} ({queries[number - 1]!r}, {targets[number - 1]!r})"
            raise QueryError(f"{pair} has the score {score}; scores lie between 0 and 1")
    chosen = hin.schema.node_type(node_type) if node_type else _find_type(hin, [*queries, *targets])
    nodes = hin.nodes[chosen]
    return Pairs(chosen, nodes.find_many(queries), nodes.find_many(targets), np.array(scores, dtype=np.float64))


def _columns(source: Any) -> tuple[list[Id], list[Id], list[float]]:
    if isinstance(source, str | Path):
        return _columns(_read_csv(Path(source)))
    if hasattr(source, "column_names") or hasattr(source, "columns"):
        names = list(getattr(source, "column_names", None) or source.columns)
        if any(column not in names for column in COLUMNS):
            raise SourceError(
                f"a table of pairs has the columns {', '.join(COLUMNS)}, and this has {listed(map(str, names))}"
            )
        queries, targets, scores = (source[column] for column in COLUMNS)
        rows: Iterable[tuple[Any, ...]] = zip(*(_as_list(column) for column in (queries, targets, scores)), strict=True)
    else:
        rows = list(source)
    found: tuple[list[Id], list[Id], list[float]] = ([], [], [])
    for number, row in enumerate(rows, 1):
        try:
            query, target, score = row
            found[2].append(float(score))
        except (TypeError, ValueError) as error:
            raise QueryError(
                f"pair {number} is {row!r}; it must be a query, a target and a score that is a number"
            ) from error
        found[0].append(query)
        found[1].append(target)
    return found


def _as_list(column: Any) -> list[Any]:
    result: list[Any] = column.to_pylist() if hasattr(column, "to_pylist") else list(column)
    return result


def _read_csv(path: Path) -> pa.Table:
    try:
        options = pa.csv.ConvertOptions(column_types=dict.fromkeys(COLUMNS, pa.string()))
        return pa.csv.read_csv(path, convert_options=options)
    except FileNotFoundError as error:
        raise SourceError(f"no such file: {path}") from error
    except (pa.ArrowException, OSError) as error:
        raise SourceError(f"cannot read the pairs in {path}: {str(error).splitlines()[0]}") from error


def _find_type(hin: HIN, ids: Sequence[Id]) -> str:
    """Find the one node type that knows all the ids."""
    distinct = list(dict.fromkeys(ids))
    fitting, reasons = [], []
    for name, nodes in hin.nodes.items():
        try:
            nodes.find_many(distinct)
            fitting.append(name)
        except NodeError as error:
            reasons.append(str(error))
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise QueryError(f"the pairs could be of type {' or '.join(fitting)}; say which with node_type")
    raise NodeError(f"no node type knows all nodes of the pairs: {listed(reasons, 2)}")


def draw_pairs(
    teacher: Scorer, queries: Rows, protocol: Protocol = "strict", per_query: int = 10, seed: int = 0
) -> Pairs:
    """Draw labels from an exact measure: each query's best targets (`paper`), or half best, half random (`strict`).

    The query itself is never its own label. Where all best scores are near 1, only random targets say what 0 is.
    """
    if protocol not in PROTOCOLS:
        raise QueryError(f"protocol is {protocol!r}; it can be {' or '.join(PROTOCOLS)}")
    if teacher.source_type != teacher.target_type:
        raise QueryError(
            f"{teacher.metapath_text} ranks {teacher.target_type} nodes for a {teacher.source_type}; "
            f"a model learns from pairs of one type"
        )
    if not len(queries):
        raise QueryError("there are no queries to draw labels for")
    rng = np.random.default_rng(seed)
    best = per_query if protocol == "paper" else per_query // 2
    found: list[tuple[Rows, Rows, Floats]] = []
    for query in np.asarray(queries, dtype=np.int64):
        scores = teacher.score_rows(np.array([query]))[0]
        ranked = np.lexsort((np.arange(len(scores)), -scores))
        top = ranked[ranked != query][:best]
        others = np.setdiff1d(np.arange(len(scores)), np.append(top, query))
        random = (
            rng.choice(others, min(per_query - len(top), len(others)), replace=False)
            if protocol == "strict"
            else top[:0]
        )
        targets = np.concatenate([top, random])
        found.append((np.full(len(targets), query), targets, scores[targets]))
    queried, targets, scores = (np.concatenate(column) for column in zip(*found, strict=True))
    if scores.max(initial=0.0) > 1 + 1e-9:
        raise QueryError(
            f"{teacher.name} gives scores up to {scores.max():.4g}; "
            f"a model learns scores between 0 and 1, such as pathsim's"
        )
    return Pairs(teacher.source_type, queried, targets, scores)
