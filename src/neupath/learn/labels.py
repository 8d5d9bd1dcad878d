"""Labels: scored pairs of nodes to learn from, as people give them or drawn from an exact measure.

People give numbers on some scale, yes and no, ranks, several opinions, opinions they are more or less sure of, or
examples of similar pairs alone. All become `Pairs`: rows, one score per pair, and a weight.
"""

import json
import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

import numpy as np
import pyarrow as pa
import pyarrow.csv

from neupath.engine.scorer import Scorer, check_names
from neupath.errors import QueryError, SourceError, SourceWarning, listed
from neupath.graph.hin import HIN, Floats, check_graph, digest
from neupath.graph.nodes import Id, Rows, id_of
from neupath.io.table_files import open_table

Protocol = Literal["paper", "strict"]
PROTOCOLS: tuple[Protocol, ...] = ("paper", "strict")
COLUMNS = ("query", "target", "score")
TYPE_COLUMNS = ("query_type", "target_type")
OPINION_COLUMNS = ("rank", "weight", "rater")
"""Columns that a table of pairs may have besides: a rank instead of a score, how sure the label is, who gave it."""
ALL_COLUMNS = (*COLUMNS, *OPINION_COLUMNS, *TYPE_COLUMNS)
NodeTypes = str | tuple[str | None, str | None] | None
"""The type of all nodes of some pairs, or that of the queries and that of the targets; None to find them by the ids."""
NEGATIVES = 5
"""Random targets drawn against each example of a similar pair."""
_YES = ("yes", "y", "true", "similar", "like", "relevant", "+")
_NO = ("no", "n", "false", "dissimilar", "dislike", "irrelevant", "-")
_WORDS = dict.fromkeys(_YES, 1.0) | dict.fromkeys(_NO, 0.0)


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
    weights: Floats = field(default_factory=lambda: np.zeros(0))
    """How much each label counts; 1 unless given."""
    scale: tuple[float, float] = (0.0, 1.0)
    """The labels that became the scores 0 and 1."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "target_type", self.target_type or self.node_type)
        if len(self.weights) != len(self.queries):
            object.__setattr__(self, "weights", np.ones(len(self.queries)))

    def __len__(self) -> int:
        return len(self.queries)

    @property
    def is_across_types(self) -> bool:
        return self.target_type != self.node_type

    @property
    def partners(self) -> Rows:
        """The target of each pair where it could be a query, else -1."""
        return np.full(len(self), -1) if self.is_across_types else self.targets

    def of_queries(self, queries: Iterable[int]) -> "Pairs":
        return self.take(np.flatnonzero(np.isin(self.queries, list(queries))))

    def take(self, places: Rows) -> "Pairs":
        columns = ("queries", "targets", "scores", "weights")
        return replace(self, **{name: getattr(self, name)[places] for name in columns})

    def plus(self, query: int, target: int, score: float) -> "Pairs":
        queries, targets = np.append(self.queries, query), np.append(self.targets, target)
        scores, weights = np.append(self.scores, score), np.append(self.weights, 1.0)
        return replace(self, queries=queries, targets=targets, scores=scores, weights=weights)


def fingerprint(hin: HIN, labels: Sequence[Pairs], settings: Mapping[str, object]) -> str:
    """Return a digest of a graph, labels and settings: of all that decides what a run learns."""
    combined = sha256(json.dumps([digest(hin), [pairs.node_type for pairs in labels], dict(settings)]).encode())
    for pairs in labels:
        for column in (pairs.queries, pairs.targets, pairs.scores, pairs.weights):
            combined.update(np.ascontiguousarray(column).tobytes())
    return combined.hexdigest()


def check_one_type(pairs: Pairs, learner: str) -> None:
    """Raise if pairs join two types, for a learner that ranks the nodes of one."""
    if pairs.is_across_types:
        raise QueryError(
            f"a {learner} model ranks the nodes of one type, and these pairs go from {pairs.node_type} to "
            f"{pairs.target_type} nodes; neupath, nbfnet, pathboost, linear and infer learn from such pairs"
        )


def join_types(node_type: NodeTypes, query_type: str | None, target_type: str | None) -> NodeTypes:
    """Return the types of some pairs, given as one for all nodes or as one for each side.

    >>> join_types("movie", None, None), join_types(None, "user", "movie")
    ('movie', ('user', 'movie'))
    """
    if query_type is None and target_type is None:
        return node_type
    if node_type is not None:
        given = "query_type" if query_type is not None else "target_type"
        raise QueryError(
            f"‹node_type› is {node_type!r} and ‹{given}› is given as well; give ‹node_type› for pairs of one type, or "
            f"‹query_type› and ‹target_type›",
            parameter="node_type",
        )
    return query_type, target_type


# ---- Reading -------------------------------------------------------------------------------------
def read_pairs(
    hin: HIN, source: Any, node_type: NodeTypes = None, *, bounded: bool = True, examples: bool = False
) -> Pairs:
    """Read labelled pairs: a table file with the header query,target,score, a table, or (query, target, score) tuples.

    Scores are finite numbers, or words such as yes and no for 1 and 0. Where `bounded`, numbers on another scale than
    0 to 1 are moved to it, the lowest label to 0 and the highest to 1. With `examples`, the scores may be left out,
    which makes each pair one that is similar. A table may have more columns: query_type and target_type, for ids that
    several types share; rank, instead of score, with 1 for a query's most similar target; weight, how much a label
    counts; and rater, which lets a pair be labelled several times: its score is the weighted mean.

    >>> from neupath import load
    >>> read_pairs(load("toy"), [("Mike", "Bob", 1.0), ("Mike", "Jim", 0.08)]).node_type
    'author'
    >>> rated = {"query": ["Mike"] * 3, "target": ["Bob", "Bob", "Jim"], "score": [5, 4, 1], "rater": ["x", "y", "x"]}
    >>> read_pairs(load("toy"), rated).scores.tolist()
    [1.0, 0.0]
    """
    check_graph(hin)
    if isinstance(source, Pairs):
        return source
    pairs = _read_columns(source, examples)
    if not pairs.queries:
        raise QueryError("there are no pairs to learn from; give at least one query, target and score")
    query_type, target_type = _choose_types(hin, pairs, node_type)
    queries = hin.nodes[query_type].find_many(pairs.queries)
    targets = hin.nodes[target_type].find_many(pairs.targets)
    _refuse_contradictions(pairs, queries, targets)
    scores, weights = np.array(pairs.scores, dtype=np.float64), np.array(pairs.weights, dtype=np.float64)
    if pairs.ranked:
        scores = _scores_of_ranks(scores, queries)
    if pairs.raters:
        queries, targets, scores, weights = _average(queries, targets, scores, weights)
    labelled = Pairs(query_type, queries, targets, scores, pairs.scored, target_type, weights)
    return _to_unit_scale(labelled) if bounded else labelled


def _scores_of_ranks(ranks: Floats, queries: Rows) -> Floats:
    """Return 1 for a query's first rank, and evenly less for later ones, down to 1/n for its last rank n."""
    last = np.zeros(int(queries.max()) + 1)
    np.maximum.at(last, queries, ranks)
    return 1 - (ranks - 1) / last[queries]


def _average(queries: Rows, targets: Rows, scores: Floats, weights: Floats) -> tuple[Rows, Rows, Floats, Floats]:
    """Return each pair once, with the weighted mean of its scores and the mean of its weights."""
    distinct, first, which = np.unique(
        np.stack([queries, targets], axis=1), axis=0, return_index=True, return_inverse=True
    )
    which = which.ravel()
    totals = np.bincount(which, weights)
    means = np.bincount(which, weights * scores) / totals
    order = np.argsort(first)
    return distinct[order, 0], distinct[order, 1], means[order], (totals / np.bincount(which))[order]


def _to_unit_scale(pairs: Pairs) -> Pairs:
    """Move scores on another scale to 0 to 1."""
    low, high = float(pairs.scores.min()), float(pairs.scores.max())
    if low >= 0 and high <= 1:
        return pairs
    if math.isclose(low, high):
        raise QueryError(
            f"all labels are {low:g}, which says nothing of a scale; give labels from 0 to 1, or pairs of lower and of "
            f"higher scores"
        )
    return replace(pairs, scores=(pairs.scores - low) / (high - low), scale=(low, high))


@dataclass(frozen=True)
class _NamedPairs:
    """Pairs of ids or names, before they are looked up."""

    queries: list[Id]
    targets: list[Id]
    scores: list[float]
    weights: list[float]
    scored: bool
    ranked: bool
    """Whether the scores are ranks."""
    raters: list[Any]
    """Who gave each label; empty if that is not said."""
    types: tuple[str | None, str | None]
    """The type of the queries and of the targets, where the pairs say it."""
    file: Path | None

    def place(self, number: int) -> str:
        return f"pair {number + 1}" if self.file is None else open_table(self.file).place(number)

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
    first: dict[tuple[Any, ...], int] = {}
    raters = pairs.raters or [None] * len(queries)
    for number, label in enumerate(zip(queries.tolist(), targets.tolist(), raters, strict=True)):
        other = first.setdefault(label, number)
        if pairs.scores[other] != pairs.scores[number]:
            what = "rank" if pairs.ranked else "score"
            advice = (
                "keep one of the two" if pairs.raters else "keep one of the two, or say who gave each in a column rater"
            )
            raise QueryError(
                f"{pairs.describe(other)} has the {what} {pairs.scores[other]:g}, and {pairs.describe(number)} has "
                f"{pairs.scores[number]:g}; {advice}"
            )


def _read_columns(source: Any, examples: bool) -> _NamedPairs:
    file = Path(source) if isinstance(source, str | Path) else None
    table = source if file is None else _read_file(file)
    columns = _columns_of_table(table, file, examples) if _is_table(table) else _columns_of_tuples(table, examples)
    scored, ranked = "score" in columns or "rank" in columns, "rank" in columns
    types = _types_of_columns([columns.get(name, []) for name in TYPE_COLUMNS])
    queries, targets = ([id_of(node) for node in columns[end]] for end in ("query", "target"))
    pairs = _NamedPairs(queries, targets, [], [], scored, ranked, columns.get("rater", []), types, file)
    for number in range(len(pairs.queries)):
        _check_ends(pairs, number)
        given = columns["rank" if ranked else "score"][number] if scored else 1.0
        pairs.scores.append(_read_rank(pairs, number, given) if ranked else _read_score(pairs, number, given))
        pairs.weights.append(_read_weight(pairs, number, columns["weight"][number]) if "weight" in columns else 1.0)
        if pairs.raters and pairs.raters[number] in (None, ""):
            raise QueryError(f"{pairs.describe(number)} has no rater, and others have one; say who gave each label")
    if "score" in columns:
        _refuse_words_on_a_scale(pairs, columns["score"])
    return pairs


def _refuse_words_on_a_scale(pairs: _NamedPairs, given: Sequence[Any]) -> None:
    """Raise if some scores are words and others numbers between or beyond 0 and 1: yes has no place on their scale."""
    word = next((number for number, score in enumerate(given) if _is_word(score)), None)
    other = next((number for number, score in enumerate(pairs.scores) if score not in (0.0, 1.0)), None)
    if word is not None and other is not None:
        raise QueryError(
            f"{pairs.describe(word)} has the score {given[word]!r}, and {pairs.describe(other)} has "
            f"{pairs.scores[other]:g}; give words or numbers, not both"
        )


def _check_ends(pairs: _NamedPairs, number: int) -> None:
    for side, value in (("query", pairs.queries[number]), ("target", pairs.targets[number])):
        if value is None or value == "" or (isinstance(value, float) and not math.isfinite(value)):
            raise QueryError(f"{pairs.place(number)} has no {side}; write its id")
        if not isinstance(value, str | int | np.integer | float):
            raise QueryError(f"{pairs.place(number)} has the {side} {value!r}; an id is a text or a whole number")


def _read_score(pairs: _NamedPairs, number: int, score: Any) -> float:
    value = _as_number(score, parse_score)
    if not math.isfinite(value):
        raise _bad_field(pairs, number, "score", score, "scores are finite numbers, or words such as yes and no")
    return value


def _read_rank(pairs: _NamedPairs, number: int, rank: Any) -> float:
    value = _as_number(rank, float)
    if not (math.isfinite(value) and value >= 1 and value == int(value)):
        rule = "ranks are 1 for the most similar target, then 2 and so on"
        raise _bad_field(pairs, number, "rank", rank, rule)
    return value


def _read_weight(pairs: _NamedPairs, number: int, weight: Any) -> float:
    value = _as_number(weight, float)
    if not 0 < value < math.inf:
        rule = "a weight says how much a label counts, and is more than 0"
        raise _bad_field(pairs, number, "weight", weight, rule)
    return value


def _as_number(given: Any, parse: Callable[[Any], float]) -> float:
    try:
        return parse(given)
    except (TypeError, ValueError):
        return math.nan


def _bad_field(pairs: _NamedPairs, number: int, field: str, given: Any, rule: str) -> QueryError:
    has = f"no {field}" if given is None or given == "" else f"the {field} {given!r}"
    return QueryError(f"{pairs.describe(number)} has {has}; {rule}")


def parse_score(score: Any) -> float:
    """Return a score as a number, 1 for yes and 0 for no; raise TypeError or ValueError for anything else.

    >>> parse_score("0.25"), parse_score("Yes"), parse_score(False)
    (0.25, 1.0, 0.0)
    """
    word = score.strip().lower() if isinstance(score, str) else None
    return _WORDS[word] if word in _WORDS else float(score)


def _is_word(score: Any) -> bool:
    """Whether a score says yes or no, in a word or as a truth value."""
    return isinstance(score, bool | np.bool_) or (isinstance(score, str) and score.strip().lower() in _WORDS)


def _is_table(table: Any) -> bool:
    return isinstance(table, Mapping) or hasattr(table, "column_names") or hasattr(table, "columns")


def _columns_of_table(table: Any, file: Path | None, examples: bool) -> dict[str, list[Any]]:
    """Return the columns of a table that say something of pairs."""
    names = list(table if isinstance(table, Mapping) else getattr(table, "column_names", None) or table.columns)
    known = [name for name in ALL_COLUMNS if name in names]
    least = COLUMNS[:2] if examples or "rank" in names else COLUMNS
    if not set(least) <= set(known) or any(names.count(name) > 1 for name in known):
        hint = "" if file is None else f"; name them in the first line of {file}"
        numbered = file is not None and names == [str(number + 1) for number in range(len(names))]
        this = "no names of columns" if numbered else listed(map(str, names))
        raise SourceError(f"a table of pairs has the columns {', '.join(COLUMNS)}, and this has {this}{hint}")
    if "rank" in names and "score" in names:
        raise SourceError("a table of pairs has either a score or a rank for each, and this has both; leave one out")
    _check_unused(names, "the table of pairs")

    def values(name: str) -> list[Any]:
        column = table[name]
        cells = column.to_pylist() if hasattr(column, "to_pylist") else column
        return [None if _is_missing(cell) else cell for cell in cells]

    columns = {name: values(name) for name in known}
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise SourceError(
            f"the columns of the pairs are of different lengths: {listed(f'{n} {c}' for n, c in lengths.items())}"
        )
    return columns


def _is_missing(cell: Any) -> bool:
    """Whether a cell of a data frame has no value: None, NaN, or the NA and NaT of pandas."""
    is_nan = isinstance(cell, float) and math.isnan(cell)
    return cell is None or is_nan or type(cell).__name__ in ("NAType", "NaTType")


def _columns_of_tuples(pairs: Any, examples: bool) -> dict[str, list[Any]]:
    """Return tuples of a query, a target, a score and a weight as columns; the last one or two may be missing."""
    try:
        rows = list(pairs)
    except TypeError as error:
        raise QueryError(f"pairs are {pairs!r}; give a CSV file, a table, or (query, target, score) tuples") from error
    sizes = {len(row) for row in rows if isinstance(row, tuple | list)}
    size = min(sizes, default=3)
    for number, row in enumerate(rows):
        if not isinstance(row, tuple | list) or len(row) != size or not (2 if examples else 3) <= size <= 4:
            raise QueryError(f"pair {number + 1} is {row!r}; it must be a query, a target and a score")
    names = ("query", "target", "score", "weight")[: size if rows else 3]
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)) if rows else {name: [] for name in names}


def _types_of_columns(columns: Sequence[Sequence[Any]]) -> tuple[str | None, str | None]:
    """Return the one type that each column names, None for one that is empty."""
    types: list[str | None] = []
    for column, values in zip(TYPE_COLUMNS, columns, strict=True):
        distinct = list(dict.fromkeys(values))
        if len(distinct) > 1:
            raise QueryError(
                f"{column} is {listed(map(repr, distinct), 3)} in these pairs; all of them must be of one type: keep "
                f"the pairs of each type apart"
            )
        types.append(str(distinct[0]) if distinct and distinct[0] not in (None, "") else None)
    return types[0], types[1]


def _read_file(path: Path) -> pa.Table:
    file = open_table(path)
    wanted = [column for column in file.columns if column in ALL_COLUMNS]
    if set(COLUMNS[:2]) <= set(wanted):
        _check_unused(file.columns, str(path))
    else:
        wanted = list(file.columns)  # what is wrong with them is said later
    return file.read(wanted, dict.fromkeys(wanted, pa.string()))


def _check_unused(columns: Sequence[Any], source: str) -> None:
    """Raise if an unused column is misspelled by case or spaces alone, and warn of the others."""
    unused = [str(name) for name in columns if name not in ALL_COLUMNS and str(name).strip()]
    for name in unused:
        if (meant := name.strip().casefold()) in ALL_COLUMNS and meant not in columns:
            raise SourceError(f"{source} has a column {name!r}; write it {meant!r}")
    if unused:
        unscored = not {"score", "rank"} & set(columns)
        so = "; without a score or rank, each pair is an example of a similar one" if unscored else ""
        names = ", ".join(ALL_COLUMNS)
        note = f"not used in {source}: {listed(map(repr, unused), 5)}; the columns of labels are {names}{so}"
        warnings.warn(SourceWarning(source, [note], "rename or remove such columns"), stacklevel=2)


def write_pairs(hin: HIN, pairs: Pairs) -> str:
    """Return pairs as a CSV text that `read_pairs` reads back, with their types if the ids do not tell them."""
    sides = zip(COLUMNS, (pairs.node_type, pairs.target_type), (pairs.queries, pairs.targets), strict=False)
    columns = {column: hin.nodes[node_type].ids.take(pa.array(rows)) for column, node_type, rows in sides}
    ends = list(columns.values())
    if pairs.scored or (pairs.scores != 1).any():
        columns["score"] = pa.array(pairs.scores)
    if (pairs.weights != 1).any():
        columns["weight"] = pa.array(pairs.weights)
    for column, own, ids in zip(TYPE_COLUMNS, (pairs.node_type, pairs.target_type), ends, strict=True):
        if hin.types_with(ids.to_pylist(), "all the pairs") != [own]:
            columns[column] = pa.array([own] * len(pairs))
    sink = pa.BufferOutputStream()
    pa.csv.write_csv(pa.table(columns), sink)
    return str(sink.getvalue().to_pybytes().decode("utf-8"))


# ---- Examples alone ------------------------------------------------------------------------------
def with_negatives(pairs: Pairs, count: int, seed: int) -> Pairs:
    """Add random targets with the label 0 to examples of similar pairs; `count` is how many targets there are."""
    rng = np.random.default_rng(seed)
    known = set(zip(pairs.queries.tolist(), pairs.targets.tolist(), strict=True))
    if not pairs.is_across_types:
        known |= {(target, query) for query, target in known}
    drawn: list[tuple[int, int]] = []
    for query in np.unique(pairs.queries[pairs.scores > 0.5]).tolist():
        wanted = NEGATIVES * int((pairs.queries[pairs.scores > 0.5] == query).sum())
        for target in rng.integers(0, count, 4 * wanted + 20).tolist():
            if wanted and (target != query or pairs.is_across_types) and (query, target) not in known:
                known.add((query, target))
                drawn.append((query, target))
                wanted -= 1
    new = np.array(drawn, dtype=np.int64).reshape(-1, 2)
    queries, targets = np.concatenate([pairs.queries, new[:, 0]]), np.concatenate([pairs.targets, new[:, 1]])
    scores, weights = np.append(pairs.scores, np.zeros(len(new))), np.append(pairs.weights, np.ones(len(new)))
    return replace(pairs, queries=queries, targets=targets, scores=scores, weights=weights, scored=True)


# ---- Too few labels ------------------------------------------------------------------------------
FEWEST_LABELS, FEWEST_QUERIES = 50, 5
"""Below these, a model with many weights learns the labels by heart."""


def too_few(pairs: Pairs) -> str | None:
    """Say that there are too few labels to train a model on, and what can be done with them; None if there are enough.

    >>> from neupath import load
    >>> too_few(read_pairs(load("toy"), [("Mike", "Bob", 1.0)])).partition(",")[0]
    '1 label of 1 query: too few to train a model on'
    """
    queries = len(np.unique(pairs.queries))
    if len(pairs) >= FEWEST_LABELS and queries >= FEWEST_QUERIES:
        return None
    labels = f"{len(pairs):,} label{'s' * (len(pairs) != 1)} of {queries:,} {'query' if queries == 1 else 'queries'}"
    return (
        f"{labels}: too few to train a model on, which takes some {FEWEST_LABELS} labels of {FEWEST_QUERIES} queries "
        f"or more; infer finds the paths behind a few labels, and says which to give next"
    )


# ---- What learners are given ---------------------------------------------------------------------
class LabelOptions(TypedDict, total=False):
    """Which labels to learn from; the `fit` of every learner takes these beside the graph and the pairs."""

    node_type: NodeTypes  # the type of the nodes in the pairs, where their ids fit several
    query_type: str | None  # the type of the queries instead,
    target_type: str | None  # and that of the targets, which may differ
    teacher: Scorer | None  # a fitted measure to draw labels from, instead of pairs
    queries: Sequence[Id] | None  # the ids of the queries to draw the teacher's labels for
    protocol: Protocol  # which targets of a query the teacher labels; "strict" unless given


def collect_labels(hin: HIN, pairs: Any, seed: int, **options: Unpack[LabelOptions]) -> Pairs:
    """Read labelled pairs, with random negatives beside examples alone, or draw labels from a teacher."""
    check_names("fit", options, sorted(LabelOptions.__annotations__))
    teacher = options.get("teacher")
    if (pairs is None) == (teacher is None):
        raise QueryError("give either labelled pairs or a teacher to draw labels from")
    if teacher is not None:
        queries = options.get("queries")
        if queries is None:
            raise QueryError("a teacher needs the ids of the queries to draw labels for")
        return draw_pairs(teacher, queries, options.get("protocol", "strict"), seed=seed)
    types = join_types(options.get("node_type"), options.get("query_type"), options.get("target_type"))
    labels = read_pairs(hin, pairs, types, examples=True)
    return labels if labels.scored else with_negatives(labels, hin.num_nodes(labels.target_type), seed)


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
