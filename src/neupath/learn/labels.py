"""Labels: scored pairs of nodes to learn from, read from a user or drawn from an exact measure."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
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
TYPE_COLUMNS = ("query_type", "target_type")
NodeTypes = str | tuple[str, str] | None
"""The type of all nodes of some pairs, or that of the queries and that of the targets; None to find them by the ids."""
_YES_NO = {"yes": 1.0, "y": 1.0, "true": 1.0, "no": 0.0, "n": 0.0, "false": 0.0}


@dataclass(frozen=True)
class Pairs:
    """Labelled pairs of nodes as rows; shape (pairs,) each."""

    node_type: str
    """The type of the queries."""
    queries: Rows
    targets: Rows
    scores: Floats
    scored: bool = True
    """Whether the scores were given; if not, each pair is an example of a similar one."""
    target_type: str = ""
    """The type of the targets; that of the queries unless given."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "target_type", self.target_type or self.node_type)

    def __len__(self) -> int:
        return len(self.queries)

    @property
    def is_across_types(self) -> bool:
        return self.target_type != self.node_type

    def of_queries(self, queries: Iterable[int]) -> "Pairs":
        return self.take(np.flatnonzero(np.isin(self.queries, list(queries))))

    def take(self, places: Rows) -> "Pairs":
        return replace(self, queries=self.queries[places], targets=self.targets[places], scores=self.scores[places])

    def plus(self, query: int, target: int, score: float) -> "Pairs":
        queries, targets = np.append(self.queries, query), np.append(self.targets, target)
        return replace(self, queries=queries, targets=targets, scores=np.append(self.scores, score))


def check_one_type(pairs: Pairs, learner: str) -> None:
    """Raise if pairs join two types, for a learner that ranks the nodes of one."""
    if pairs.is_across_types:
        raise QueryError(
            f"a {learner} model ranks the nodes of one type, and these pairs go from {pairs.node_type} to "
            f"{pairs.target_type} nodes; infer learns from such pairs"
        )


# ---- Reading -------------------------------------------------------------------------------------
def read_pairs(
    hin: HIN, source: Any, node_type: NodeTypes = None, *, bounded: bool = True, examples: bool = False
) -> Pairs:
    """Read labelled pairs: a table file with the header query,target,score, a table, or (query, target, score) tuples.

    A table may also have the columns query_type and target_type, for ids that several types share. `bounded` scores lie
    between 0 and 1, others may be any finite number; yes and no are 1 and 0. With `examples`, the scores may be left
    out, which makes each pair one that is similar.

    >>> from neupath import load
    >>> read_pairs(load("toy"), [("Mike", "Bob", 1.0), ("Mike", "Jim", 0.08)]).node_type
    'author'
    """
    if isinstance(source, Pairs):
        return source
    pairs = _read_columns(source, examples, bounded)
    if not pairs.queries:
        raise QueryError("there are no pairs to learn from; give at least one query, target and score")
    query_type, target_type = _choose_types(hin, pairs, node_type)
    queries = hin.nodes[query_type].find_many(pairs.queries)
    targets = hin.nodes[target_type].find_many(pairs.targets)
    _refuse_contradictions(pairs, queries, targets)
    scores = np.array(pairs.scores, dtype=np.float64)
    return Pairs(query_type, queries, targets, scores, pairs.scored, target_type)


@dataclass(frozen=True)
class _NamedPairs:
    """Pairs of ids or names, before they are looked up."""

    queries: list[Id]
    targets: list[Id]
    scores: list[float]
    scored: bool
    types: tuple[str | None, str | None]
    """The type of the queries and of the targets, where the pairs say it."""
    file: Path | None

    def place(self, number: int) -> str:
        return f"pair {number + 1}" if self.file is None else TableFile(self.file).place(number)

    def describe(self, number: int) -> str:
        return f"{self.place(number)} ({self.queries[number]!r}, {self.targets[number]!r})"


def _choose_types(hin: HIN, pairs: _NamedPairs, node_type: NodeTypes) -> tuple[str, str]:
    """Return the type of the queries and of the targets: as told, or else the only one that has all of them."""
    told = (node_type, node_type) if node_type is None or isinstance(node_type, str) else node_type
    choices: list[list[str]] = []
    for column, own, other, ids in zip(TYPE_COLUMNS, pairs.types, told, (pairs.queries, pairs.targets), strict=True):
        types = [hin.schema.node_type(name) for name in (own, other) if name is not None]
        if len(set(types)) > 1:
            raise QueryError(
                f"{column} of the pairs is {types[0]}, but {types[1]} nodes are asked for; leave out this column if "
                f"that is right",
                parameter="node_type",
            )
        side = "queries" if column == "query_type" else "targets"
        choices.append(types[:1] or hin.types_with(ids, f"all {side} of the pairs"))
    if all(len(types) == 1 for types in choices):
        return choices[0][0], choices[1][0]
    queries, targets = (" or ".join(types) for types in choices)
    what = f"the queries could be of type {queries}, and the targets of type {targets}"
    if choices[0] == choices[1]:
        what = f"the pairs could be of type {queries}"
    raise QueryError(
        f"{what}; say which with ‹node_type›, or write {' and '.join(TYPE_COLUMNS)} beside each pair",
        parameter="node_type",
        allowed=dict.fromkeys(choices[0] + choices[1]),
    )


def _refuse_contradictions(pairs: _NamedPairs, queries: Rows, targets: Rows) -> None:
    first: dict[tuple[int, int], int] = {}
    for number, pair in enumerate(zip(queries.tolist(), targets.tolist(), strict=True)):
        other = first.setdefault(pair, number)
        if pairs.scores[other] != pairs.scores[number]:
            raise QueryError(
                f"{pairs.describe(other)} has the score {pairs.scores[other]:g}, and {pairs.describe(number)} has "
                f"{pairs.scores[number]:g}; keep one of the two"
            )


def _read_columns(source: Any, examples: bool, bounded: bool) -> _NamedPairs:
    file = Path(source) if isinstance(source, str | Path) else None
    table = source if file is None else _read_file(file)
    rows, types = _rows_of_table(table, file, examples) if _is_table(table) else (_rows_of_tuples(table), [])
    scored = not (examples and rows and all(isinstance(row, tuple | list) and len(row) == 2 for row in rows))
    pairs = _NamedPairs([], [], [], scored, _types_of_columns(types), file)
    for number, row in enumerate(rows):
        try:
            query, target, score = row if scored else (*row, 1.0)
        except (TypeError, ValueError) as error:
            raise QueryError(f"{pairs.place(number)} is {row!r}; it must be a query, a target and a score") from error
        pairs.queries.append(query)
        pairs.targets.append(target)
        pairs.scores.append(_read_score(pairs, number, score, bounded))
    return pairs


def _read_score(pairs: _NamedPairs, number: int, score: Any, bounded: bool) -> float:
    allowed = "lie between 0 and 1" if bounded else "are finite numbers"
    try:
        value = parse_score(score)
    except (TypeError, ValueError):
        value = math.nan
    if not (0 <= value <= 1 if bounded else math.isfinite(value)):
        given = "no score" if score is None or score == "" else f"the score {score!r}"
        raise QueryError(f"{pairs.describe(number)} has {given}; scores {allowed}, and may be yes or no")
    return value


def parse_score(score: Any) -> float:
    """Return a score as a number, 1 for yes and 0 for no; raise TypeError or ValueError for anything else.

    >>> parse_score("0.25"), parse_score("Yes"), parse_score(False)
    (0.25, 1.0, 0.0)
    """
    return (
        _YES_NO[score.strip().lower()] if isinstance(score, str) and score.strip().lower() in _YES_NO else float(score)
    )


def _is_table(table: Any) -> bool:
    return isinstance(table, Mapping) or hasattr(table, "column_names") or hasattr(table, "columns")


def _rows_of_table(table: Any, file: Path | None, examples: bool) -> tuple[list[Any], list[list[Any]]]:
    """Return the pairs of a table, and its columns of types, each None if the table lacks it."""
    names = list(table if isinstance(table, Mapping) else getattr(table, "column_names", None) or table.columns)
    wanted = COLUMNS[:2] if examples and "score" not in names else COLUMNS
    typed = [column for column in TYPE_COLUMNS if column in names]
    if any(names.count(column) != 1 for column in (*wanted, *typed)):
        hint = "" if file is None else f"; name them in the first line of {file}"
        raise SourceError(
            f"a table of pairs has the columns {', '.join(COLUMNS)}, and this has {listed(map(str, names))}{hint}"
        )

    def values(name: str) -> list[Any]:
        column = table[name]
        return list(column.to_pylist() if hasattr(column, "to_pylist") else column)

    types = [values(column) if column in names else [] for column in TYPE_COLUMNS]
    return list(zip(*map(values, wanted), strict=True)), types


def _rows_of_tuples(pairs: Any) -> list[Any]:
    try:
        return list(pairs)
    except TypeError as error:
        raise QueryError(f"pairs are {pairs!r}; give a CSV file, a table, or (query, target, score) tuples") from error


def _types_of_columns(columns: Sequence[Sequence[Any]]) -> tuple[str | None, str | None]:
    """Return the one type that each column names, None for one that is empty."""
    types: list[str | None] = []
    for column, values in zip(TYPE_COLUMNS, columns or ((), ()), strict=True):
        distinct = list(dict.fromkeys(values))
        if len(distinct) > 1:
            raise QueryError(
                f"{column} is {listed(map(repr, distinct), 3)} in these pairs; all of them must be of one type: keep "
                f"the pairs of each type apart"
            )
        types.append(str(distinct[0]) if distinct and distinct[0] not in (None, "") else None)
    return types[0], types[1]


def _read_file(path: Path) -> pa.Table:
    file = TableFile(path)
    wanted = [column for column in file.columns if column in (*COLUMNS, *TYPE_COLUMNS)] or file.columns
    return file.read(wanted, dict.fromkeys(wanted, pa.string()))


def write_pairs(hin: HIN, pairs: Pairs) -> str:
    """Return pairs as a CSV text that `read_pairs` reads back, with their types if the ids do not tell them."""
    sides = zip(COLUMNS, (pairs.node_type, pairs.target_type), (pairs.queries, pairs.targets), strict=False)
    columns = {column: hin.nodes[node_type].ids.take(pa.array(rows)) for column, node_type, rows in sides}
    if pairs.scored or (pairs.scores != 1).any():
        columns["score"] = pa.array(pairs.scores)
    for column, own, ids in zip(
        TYPE_COLUMNS, (pairs.node_type, pairs.target_type), list(columns.values()), strict=False
    ):
        if hin.types_with(ids.to_pylist(), "all the pairs") != [own]:
            columns[column] = pa.array([own] * len(pairs))
    sink = pa.BufferOutputStream()
    pa.csv.write_csv(pa.table(columns), sink)
    return str(sink.getvalue().to_pybytes().decode("utf-8"))


# ---- Drawing from a measure ----------------------------------------------------------------------
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
