"""Labels: scored pairs of nodes to learn from, read from a user or drawn from an exact measure."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.csv

from neupath.engine.scorer import Scorer
from neupath.errors import QueryError, SourceError, listed
from neupath.graph.hin import HIN, Floats
from neupath.graph.nodes import Id, Rows
from neupath.io.tables import TableFile

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
    scored: bool = True
    """Whether the scores were given; if not, each pair is an example of a similar one."""

    def __len__(self) -> int:
        return len(self.queries)

    def of_queries(self, queries: Iterable[int]) -> "Pairs":
        chosen = np.flatnonzero(np.isin(self.queries, list(queries)))
        return Pairs(self.node_type, self.queries[chosen], self.targets[chosen], self.scores[chosen], self.scored)

    def plus(self, query: int, target: int, score: float) -> "Pairs":
        queries, targets = np.append(self.queries, query), np.append(self.targets, target)
        return Pairs(self.node_type, queries, targets, np.append(self.scores, score), self.scored)


def read_pairs(
    hin: HIN, source: Any, node_type: str | None = None, *, bounded: bool = True, examples: bool = False
) -> Pairs:
    """Read labelled pairs: a table file with the header query,target,score, a table, or (query, target, score) tuples.

    `bounded` scores lie between 0 and 1, others may be any finite number. With `examples`, the scores may be left out,
    which makes each pair one that is similar.

    >>> from neupath import load
    >>> read_pairs(load("toy"), [("Mike", "Bob", 1.0), ("Mike", "Jim", 0.08)]).node_type
    'author'
    """
    if isinstance(source, Pairs):
        return source
    pairs = _read_columns(source, examples)
    if not pairs.queries:
        raise QueryError("there are no pairs to learn from; give at least one query, target and score")
    for number, score in enumerate(pairs.scores):
        if not (0 <= score <= 1 if bounded else math.isfinite(score)):
            allowed = "lie between 0 and 1" if bounded else "are finite numbers"
            raise QueryError(f"{pairs.describe(number)} has the score {score}; scores {allowed}")
    ids = [*pairs.queries, *pairs.targets]
    chosen = hin.schema.node_type(node_type) if node_type else hin.find_type(ids, "the pairs")
    nodes = hin.nodes[chosen]
    queries, targets = nodes.find_many(pairs.queries), nodes.find_many(pairs.targets)
    _refuse_contradictions(pairs, queries, targets)
    return Pairs(chosen, queries, targets, np.array(pairs.scores, dtype=np.float64), pairs.scored)


@dataclass(frozen=True)
class _NamedPairs:
    """Pairs of ids or names, before they are looked up."""

    queries: list[Id]
    targets: list[Id]
    scores: list[float]
    scored: bool
    file: Path | None

    def place(self, number: int) -> str:
        return f"pair {number + 1}" if self.file is None else TableFile(self.file).place(number)

    def describe(self, number: int) -> str:
        return f"{self.place(number)} ({self.queries[number]!r}, {self.targets[number]!r})"


def _refuse_contradictions(pairs: _NamedPairs, queries: Rows, targets: Rows) -> None:
    first: dict[tuple[int, int], int] = {}
    for number, pair in enumerate(zip(queries.tolist(), targets.tolist(), strict=True)):
        other = first.setdefault(pair, number)
        if pairs.scores[other] != pairs.scores[number]:
            raise QueryError(
                f"{pairs.describe(other)} has the score {pairs.scores[other]:g}, and {pairs.describe(number)} has "
                f"{pairs.scores[number]:g}; keep one of the two"
            )


def _read_columns(source: Any, examples: bool) -> _NamedPairs:
    file = Path(source) if isinstance(source, str | Path) else None
    table = source if file is None else _read_file(file)
    if hasattr(table, "column_names") or hasattr(table, "columns"):
        names = list(getattr(table, "column_names", None) or table.columns)
        wanted = COLUMNS[:2] if examples and "score" not in names else COLUMNS
        if any(names.count(column) != 1 for column in wanted):
            hint = "" if file is None else f"; name them in the first line of {file}"
            raise SourceError(
                f"a table of pairs has the columns {', '.join(COLUMNS)}, and this has {listed(map(str, names))}{hint}"
            )
        columns = (table[column] for column in wanted)
        lists = (column.to_pylist() if hasattr(column, "to_pylist") else column for column in columns)
        rows: list[Any] = list(zip(*lists, strict=True))
    else:
        try:
            rows = list(table)
        except TypeError as error:
            raise QueryError(
                f"pairs are {table!r}; give a CSV file, a table, or (query, target, score) tuples"
            ) from error
    scored = not (examples and rows and all(isinstance(row, tuple | list) and len(row) == 2 for row in rows))
    pairs = _NamedPairs([], [], [], scored, file)
    for number, row in enumerate(rows):
        try:
            query, target, score = row if scored else (*row, 1.0)
            pairs.scores.append(float(score))
        except (TypeError, ValueError) as error:
            raise QueryError(
                f"{pairs.place(number)} is {row!r}; it must be a query, a target and a score that is a number"
            ) from error
        pairs.queries.append(query)
        pairs.targets.append(target)
    return pairs


def _read_file(path: Path) -> pa.Table:
    file = TableFile(path)
    wanted = [column for column in file.columns if column in COLUMNS] or file.columns
    return file.read(wanted, dict.fromkeys(wanted, pa.string()))


def write_pairs(hin: HIN, pairs: Pairs) -> str:
    """Return pairs as a CSV text that `read_pairs` reads back."""
    nodes = hin.nodes[pairs.node_type]
    columns = {"query": nodes.ids.take(pa.array(pairs.queries)), "target": nodes.ids.take(pa.array(pairs.targets))}
    if pairs.scored or (pairs.scores != 1).any():
        columns["score"] = pa.array(pairs.scores)
    sink = pa.BufferOutputStream()
    pa.csv.write_csv(pa.table(columns), sink)
    return str(sink.getvalue().to_pybytes().decode("utf-8"))


def draw_pairs(
    teacher: Scorer, queries: Sequence[Id], protocol: Protocol = "strict", per_query: int = 10, seed: int = 0
) -> Pairs:
    """Draw labels from an exact measure: best targets alone ("paper"), or half best and half random ones ("strict").

    A query is never its own label. Where all best scores are near 1, only random targets show what a score of 0 is.

    >>> from neupath import PathSim, load
    >>> pairs = draw_pairs(PathSim("APVPA").fit(load("toy")), ["Mike"], "paper", per_query=2)
    >>> pairs.scores.tolist()
    [1.0, 0.8]
    """
    check_protocol(protocol)
    if teacher.source_type != teacher.target_type:
        raise QueryError(
            f"{teacher.metapath_text} ranks {teacher.target_type} nodes for a {teacher.source_type}; "
            f"a model learns from pairs of one type"
        )
    if not len(queries):
        raise QueryError("there are no queries to draw labels for")
    rng = np.random.default_rng(seed)
    best = per_query if protocol == "paper" else per_query // 2
    labels: list[tuple[Rows, Rows, Floats]] = []
    for query in teacher.hin_.nodes[teacher.source_type].find_many(list(queries)):
        scores = teacher.score_rows(np.array([query]))[0]
        ranked = np.lexsort((np.arange(len(scores)), -scores))
        targets = ranked[ranked != query][:best]
        if protocol == "strict":
            others = np.setdiff1d(np.arange(len(scores)), np.append(targets, query))
            drawn = rng.choice(others, min(per_query - len(targets), len(others)), replace=False)
            targets = np.concatenate([targets, drawn])
        labels.append((np.full(len(targets), query), targets, scores[targets]))
    rows, targets, scores = (np.concatenate(column) for column in zip(*labels, strict=True))
    if scores.max(initial=0.0) > 1 + 1e-9:
        raise QueryError(
            f"{teacher.name} gives scores up to {scores.max():.4g}; "
            f"a model learns scores between 0 and 1, such as pathsim's"
        )
    return Pairs(teacher.source_type, rows, targets, scores)


def check_protocol(protocol: str) -> None:
    """Raise if a protocol is neither "paper" nor "strict"."""
    if protocol not in PROTOCOLS:
        raise QueryError(
            f"‹protocol› is {protocol!r}; it can be {' or '.join(PROTOCOLS)}", parameter="protocol", allowed=PROTOCOLS
        )
