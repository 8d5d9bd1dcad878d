"""Conditions on the attributes of nodes and edges, and expressions for the weight of an edge: one notation for both.

    condition   = conjunction {"or" conjunction}            conjunction = part {"and" part}
    part        = "not" part | "(" condition ")" | predicate
    predicate   = attribute ("=" | "==" | "!=" | "<" | "<=" | ">" | ">=" | "~") value
                | attribute ["not"] "in" "(" value {"," value} ")"
                | attribute "is" ["not"] "missing"
    expression  = term {("+" | "-") term}                   term = factor {("*" | "/") factor}
    factor      = "-" factor | number | attribute | "(" expression ")" | function "(" expression {"," expression} ")"

An attribute is a word, or any text in quotes. A value is text in quotes, or bare up to the next `and`, `or` or closing
bracket; it is compared as the number, date or text that the attribute holds. A quote within quotes is written twice.
Texts are never compared as if they were numbers or dates: what would do so is refused.

A missing value meets no comparison and no negated one (three-valued logic, as in SQL): only `is missing` finds it.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from functools import cached_property, partial, reduce
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, NoReturn, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from neupath._runtime.lazy_module import LazyModule
from neupath.errors import NeuPathError, QueryError, dash_hint, did_you_mean, excerpt, listed
from neupath.graph.edge_attributes import decimals_to_floats, without_nan

if TYPE_CHECKING:
    from neupath.graph.nodes import Nodes

Mask = NDArray[np.bool_]
Value = str | int | float | bool | date
Column = Any  # pa.Array | pa.ChunkedArray

MOST_CHARACTERS = 8192
"""The most characters of a condition, or of a meta-path with all of its conditions."""
MOST_NESTED = 32
"""The most brackets, negations or functions within each other."""
MOST_TERMS = 100
"""The most operators of an expression."""

_LONGEST_NODE = 500  # characters of the id or name of a pinned node
_BAD_VALUE = (pa.ArrowException, ValueError, OverflowError)
pc = LazyModule("pyarrow.compute")  # takes longer to import than most look-ups
_COMPARISONS = {
    "=": "equal", "!=": "not_equal", "<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal",
    "~": "match_substring",
}  # fmt: skip
_SIGNS = ("==", "!=", "<=", ">=", "=", "<", ">", "~")
_FIRST_OF_SIGNS = ("=", "!", "<", ">", "~")
_KEYWORDS = frozenset({"and", "or", "not", "in", "is", "missing"})
_WORD = re.compile(r"""[^\s=!<>~()\[\]{}"',;]+""")
_PLAIN_WORD = re.compile(r"[^\W\d]\w*")
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_UNSIGNED = re.compile(r"(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_PLAIN_VALUE = re.compile(rf"(?:{_NUMBER.pattern}|\d{{4}}-\d\d-\d\d(?:T[\d:.]+Z?)?)")
_DURATION = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*(us|ms|s|min|h|d|w|y)")
_WEIGHT = re.compile(r"weight\s*:")
_CONJUNCTION = re.compile(r"\s+(and|or)\b", re.IGNORECASE)
_MICROSECONDS = {
    "us": 1, "ms": 1000, "s": 10**6, "min": 60 * 10**6, "h": 3600 * 10**6, "d": 86_400 * 10**6,
    "w": 7 * 86_400 * 10**6, "y": 31_557_600 * 10**6,
}  # fmt: skip


class Records(Protocol):
    """What conditions are about: the nodes of a type, or the edges of a relation."""

    @property
    def title(self) -> str:
        """What errors call them, such as `paper` or `relation 'rates'`."""

    def __len__(self) -> int: ...

    def column_names(self) -> list[str]: ...

    def column(self, name: str) -> Column: ...

    def describe(self, row: int) -> str: ...

    def among(self, ids: Sequence[Any]) -> Mask: ...


class Origin(NamedTuple):
    """Where something was read: what the text is called in errors, the text, and the position in it."""

    what: str
    text: str
    at: int

    def refuse(self, problem: str, error: type[NeuPathError] | None = None) -> NoReturn:
        raise (error or QueryError)(
            f"{self.what} {excerpt(self.text, self.at)!r}, at character {self.at + 1}: {problem}{dash_hint(self.text)}"
        )


def _refuse(origin: Origin | None, problem: str) -> NoReturn:
    if origin is None:
        raise QueryError(problem)
    origin.refuse(problem)


# ---- Conditions ----------------------------------------------------------------------------------
class Term:
    """A condition or an expression, or a part of one."""

    binds: ClassVar[int] = 3  # how tightly it holds together in a text

    def attributes(self) -> Iterator[str]:
        """Yield the names of the attributes that it is about."""
        if "attribute" in vars(self):
            yield vars(self)["attribute"]
        for value in vars(self).values():
            for part in value if isinstance(value, tuple) else (value,):
                if isinstance(part, Term):
                    yield from part.attributes()


class Condition(Term, ABC):
    """What is said about a node or an edge. Combine conditions with `&`, `|` and `~`.

    >>> condition = Comparison("year", ">=", 2020) & ~OneOf("venue", ("KDD", "ICDE"))
    >>> str(condition)
    'year >= 2020 and not venue in ("KDD", "ICDE")'
    >>> parse_condition("year >= 2020 and venue not in (KDD, ICDE)") == condition
    True
    """

    def __and__(self, other: "Condition") -> "Condition":
        return All((self, other))

    def __or__(self, other: "Condition") -> "Condition":
        return AnyOf((self, other))

    def __invert__(self) -> "Condition":
        return Not(self)

    def mask(self, records: Records) -> Mask:
        """Mark the records that meet the condition; shape (number of records,)."""
        return _to_numpy(pc.fill_null(self.evaluate(records), False))

    @abstractmethod
    def evaluate(self, records: Records) -> Column:
        """Return whether each record meets the condition; null where that depends on a missing value."""


def _text_of(value: Value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return value.isoformat()
    return value.isoformat() if isinstance(value, date) else str(value)


@dataclass(frozen=True)
class Comparison(Condition):
    """An attribute compared with a value by one of = != < <= > >=, or ~ for "contains", whatever its case."""

    attribute: str
    sign: str
    value: Value
    origin: Origin | None = field(default=None, compare=False, repr=False)
    value_origin: Origin | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.sign not in (*_COMPARISONS, "=="):
            _refuse(self.origin, f"{self.sign!r} is no comparison; use one of = != < <= > >= ~")
        object.__setattr__(self, "sign", "=" if self.sign == "==" else self.sign)
        object.__setattr__(self, "value", _text_of(self.value))

    def __str__(self) -> str:
        return f"{quote_attribute(self.attribute)} {self.sign} {quote_value(str(self.value))}"

    def evaluate(self, records: Records) -> Column:
        values = Values(records, self.attribute, self.origin)
        return values.compared(str(self.value), self.sign, self.value_origin, getattr(pc, _COMPARISONS[self.sign]))


@dataclass(frozen=True)
class OneOf(Condition):
    """An attribute that has one of several values."""

    attribute: str
    values: tuple[Value, ...]
    origin: Origin | None = field(default=None, compare=False, repr=False)
    value_origins: tuple[Origin, ...] = field(default=(), compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", tuple(map(_text_of, self.values)))

    def __str__(self) -> str:
        return f"{quote_attribute(self.attribute)} in ({', '.join(quote_value(str(value)) for value in self.values)})"

    def evaluate(self, records: Records) -> Column:
        values = Values(records, self.attribute, self.origin)
        by_type: dict[pa.DataType, tuple[Column, list[Any]]] = {}  # whole numbers and fractions, dates and times
        origins = self.value_origins or (None,) * len(self.values)
        for text, origin in zip(map(str, self.values), origins, strict=True):
            compared, scalar = values.compared(text, "in", origin)
            by_type.setdefault(scalar.type, (compared, []))[1].append(scalar.as_py())
        met: Column = pa.scalar(False)
        for kind, (compared, members) in by_type.items():
            column = compared.cast(kind) if pa.types.is_floating(kind) else compared
            met = pc.or_(met, pc.is_in(column, value_set=pa.array(members, type=kind)))
        return pc.if_else(values.column.is_valid(), met, None)


@dataclass(frozen=True)
class Missing(Condition):
    """An attribute that has no value."""

    attribute: str
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{quote_attribute(self.attribute)} is missing"

    def evaluate(self, records: Records) -> Column:
        return Values(records, self.attribute, self.origin).column.is_null()


@dataclass(frozen=True)
class Pinned(Condition):
    """A node that is one of some nodes, given by id or name; only nodes can be pinned."""

    nodes: tuple[str | int, ...]
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "nodes", tuple(map(str, self.nodes)))

    def __str__(self) -> str:
        return "{" + ", ".join(quote_node(str(node)) for node in self.nodes) + "}"

    def evaluate(self, records: Records) -> Column:
        try:
            return pa.array(records.among(self.nodes))
        except NeuPathError as error:
            if self.origin is None:
                raise
            self.origin.refuse(str(error), type(error))


@dataclass(frozen=True)
class Not(Condition):
    """The negation of a condition; a missing value does not meet it either."""

    part: Condition
    binds: ClassVar[int] = 2

    def __str__(self) -> str:
        if isinstance(self.part, Missing):
            return f"{quote_attribute(self.part.attribute)} is not missing"
        return f"not {_within(self.part, 2)}"

    def evaluate(self, records: Records) -> Column:
        return pc.invert(self.part.evaluate(records))


@dataclass(frozen=True)
class _Several(Condition):
    """Conditions joined by `word`; those joined by the same word within each other are one."""

    parts: tuple[Condition, ...]
    word: ClassVar[str]
    kleene: ClassVar[str]
    """The function of Arrow that joins truth values with missing ones."""

    def __post_init__(self) -> None:
        parts = (each.parts if isinstance(each, type(self)) else (each,) for each in self.parts)
        object.__setattr__(self, "parts", tuple(part for own in parts for part in own))

    def __str__(self) -> str:
        return f" {self.word} ".join(_within(part, self.binds + 1) for part in self.parts)

    def evaluate(self, records: Records) -> Column:
        return reduce(getattr(pc, self.kleene), (part.evaluate(records) for part in self.parts))


class All(_Several):
    """Conditions that all hold."""

    binds, word, kleene = 1, "and", "and_kleene"


class AnyOf(_Several):
    """Conditions of which at least one holds."""

    binds, word, kleene = 0, "or", "or_kleene"


def all_of(conditions: Sequence[Condition]) -> Condition | None:
    """Return the condition that all of some hold; None if there are none."""
    return All(tuple(conditions)) if len(conditions) > 1 else next(iter(conditions), None)


def _within(condition: Condition, binds: int) -> str:
    return str(condition) if condition.binds >= binds else f"({condition})"


def quote_attribute(name: str) -> str:
    """Write the name of an attribute as a condition has it."""
    is_plain = _PLAIN_WORD.fullmatch(name) and name.lower() not in _KEYWORDS and name not in _FUNCTIONS
    return name if is_plain else _quoted(name)


def quote_value(text: str) -> str:
    """Write a value as a condition has it: numbers and dates bare, all else in quotes."""
    return text if _PLAIN_VALUE.fullmatch(text) else _quoted(text)


def quote_node(text: str) -> str:
    """Write a node within braces: bare unless it has characters of the notation or spaces around it."""
    return text if text and text == text.strip() and not re.search(r"""[,{}"']""", text) else _quoted(text)


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


# ---- The values of an attribute ------------------------------------------------------------------
class Values:
    """The values of an attribute of some records; it raises for what cannot be compared with them.

    Texts that are compared as if they were numbers, dates or truths would be wrong in silence, so that is refused too.
    Exact texts such as 01234 are found by = and in, unless the column writes the same number or date in other ways.
    """

    def __init__(self, records: Records, attribute: str, origin: Origin | None = None) -> None:
        columns = records.column_names()
        if attribute not in columns:
            has, hint = f"(it has {listed(columns) or 'none'})", did_you_mean(attribute, columns)
            _refuse(origin, f"{records.title} has no attribute {excerpt(attribute, 0)!r} {has}{hint}")
        self._records, self.attribute, self.origin = records, attribute, origin
        self.column = plain_values(records.column(attribute))

    @property
    def kind(self) -> pa.DataType:
        return self.column.type

    @property
    def is_text(self) -> bool:
        kind = self.kind
        return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or str(kind) == "string_view")

    @cached_property
    def whole(self) -> Column:
        """The values of all records, where only some are selected."""
        records = self._records
        while isinstance(records, Selected):
            records = records.records
        return plain_values(records.column(self.attribute))

    def compared(
        self, text: str, sign: str, origin: Origin | None, compare: Callable[..., Any] = lambda *both: both
    ) -> Any:
        """Return what a function makes of the values and of a text as a value of their type, by default both."""
        if sign not in ("~", "decay"):
            self._check_text(text, sign, origin)
        try:
            if sign == "~":
                return pc.match_substring(self.column.cast(pa.string()), text, ignore_case=True)
            return compare(*_comparable(self.column, text))
        except _BAD_VALUE:
            problem = f", and {excerpt(text, 0)!r} cannot be compared with them by {sign}{self._advice(text)}"
            self.refuse(problem, origin)

    def refuse(self, problem: str, origin: Origin | None = None) -> NoReturn:
        _refuse(origin or self.origin, f"attribute {self.attribute!r} holds {_kind(self.whole.type)}{problem}")

    def _advice(self, text: str) -> str:
        """Return what to do where numbers are compared with a date, or times of day with anything; perhaps nothing."""
        from neupath.graph.notations import toml_key, words_of_value

        def declared(word: str) -> str:
            return f'attribute_types = {{{toml_key(self.attribute)} = "{word}"}} in graph.toml'

        values, kind = self.whole, self.kind
        if pa.types.is_time(kind) or pa.types.is_duration(kind):
            return f"; {declared('text')} reads texts, which = and in compare"
        is_date = re.match(r"\d{4}-\d\d", text.strip()) or _are_dates(words_of_value(text) or ("text",))
        if not (pa.types.is_integer(kind) and is_date) or values.null_count == len(values):
            return ""
        least, greatest = pc.min_max(values).values()
        if (word := _word_for_days(values)) is None:
            return f"; give a whole number, such as {greatest}"
        return f"; its values, such as {least}, become {'times' if word == 'unix' else 'dates'} with {declared(word)}"

    # -- Texts that are numbers or dates
    @property
    def _texts(self) -> Column:
        return self.whole.cast(pa.string())

    def _check_text(self, text: str, sign: str, origin: Origin | None) -> None:
        """Raise if texts are compared as if they were numbers, dates or truths."""
        if not self.is_text or isinstance(self._records, AddedNodes):
            return
        from neupath.graph.notations import holds_values, words_of_value  # most conditions need none of it

        words, is_order = words_of_value(text), sign in ("<", "<=", ">", ">=")
        is_truth = not is_order and text.strip().lower() in ("true", "false")
        if not (words or is_order or is_truth):
            return
        texts = self._texts
        if texts.null_count == len(texts):
            return
        problem = f"and {excerpt(text, 0)!r} cannot be compared with text by {sign}"
        if is_order:
            is_wrong = bool(words) or holds_values(texts)
        elif is_truth:
            is_wrong = not pc.any(pc.equal(texts, text), min_count=0).as_py()
            problem = f"and {excerpt(text, 0)!r} is not one of its values"
        else:
            is_wrong = _is_written_otherwise(texts, text, words, may_be_other=self.attribute in ("id", "name"))
        if is_wrong:
            self.refuse_text(problem, origin, is_truth=is_truth, is_date=bool(words) and _are_dates(words))

    def refuse_text(
        self, problem: str, origin: Origin | None = None, *, is_truth: bool = False, is_date: bool = False
    ) -> NoReturn:
        """Raise with a text of the column, and what to write into graph.toml so that it holds numbers or dates."""
        from neupath.graph.notations import find_fit, unlike_texts, without_empty_words

        texts = self._texts
        first = next((text for text in texts.to_pylist() if text is not None and text.strip()), "")
        if self.attribute in ("id", "name"):
            advice = "ids and names are read as texts here; compare them by = or ~, or keep the numbers in an attribute"
        elif is_truth:
            advice = f"compare it with one of them, such as {excerpt(first, 0)!r}"
        elif (fit := find_fit([texts])) is not None:
            if is_date and not fit.are_dates and (word := _word_for_days(without_empty_words(texts))):
                fit = replace(fit, words=(word,))
            advice = f"{fit.advice(self.attribute)}; then load the source again, or import it again if it is a store"
        elif (unlike := unlike_texts(texts)) is not None:
            advice = (
                f"its values are not all written in one way, such as {excerpt(unlike[0], 0)!r} and "
                f"{excerpt(unlike[1], 0)!r}; write them alike, or compare by =, in or ~"
            )
        else:
            advice = (
                f"its values, such as {excerpt(first, 0)!r}, are numbers or dates in no way that attribute_types in "
                f"graph.toml can say; take currency signs, units and words out of them first, or compare by =, in or ~"
            )
        _refuse(origin or self.origin, f"attribute {self.attribute!r} holds text, {problem}; {advice}")

    def check_times(self) -> None:
        """Raise if the attribute is to hold times and holds text."""
        if self.is_text and self.whole.null_count < len(self.whole):
            self.refuse_text("which are no times", is_date=True)


def plain_values(values: Column) -> Column:
    """Return categories as the values they stand for, decimal fractions as floats, and NaN as a missing value."""
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    return without_nan(decimals_to_floats(values) if pa.types.is_decimal(values.type) else values)


def _to_numpy(values: Column) -> NDArray[Any]:
    whole = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    return np.asarray(whole.to_numpy(zero_copy_only=False))


def _comparable(values: Column, text: str) -> tuple[Column, pa.Scalar]:
    """Return a column and a value that can be compared: the text as the column's type, or both as a wider one."""
    kind = values.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return values, _number(text, whole=pa.types.is_integer(kind))
    if pa.types.is_date(kind) and not re.fullmatch(r"\d{4}-\d\d-\d\d", text.strip()):
        kind = pa.timestamp("us")
        values = values.cast(kind)
    if pa.types.is_timestamp(kind):
        return values, pa.scalar(_instant(text, kind.tz is not None)).cast(kind)
    return values, pa.scalar(text).cast(kind)


def _number(text: str, *, whole: bool) -> pa.Scalar:
    if not _NUMBER.fullmatch(text.strip()):
        raise ValueError(text)
    if whole and re.fullmatch(r"[+-]?\d+", text.strip()):
        return pa.scalar(int(text), pa.int64())
    return pa.scalar(float(text), pa.float64())


def _instant(text: str, has_zone: bool) -> datetime:
    """Return a date or time as ISO 8601 writes it; without a zone it is UTC where the values have one."""
    if not re.match(r"\s*\d{4}-\d\d-\d\d", text):
        raise ValueError(text)
    instant = datetime.fromisoformat(text.strip())
    if instant.tzinfo is None or has_zone:
        return instant.replace(tzinfo=UTC) if has_zone and instant.tzinfo is None else instant
    raise ValueError(text)


def _kind(kind: pa.DataType) -> str:
    """Return what a column holds in words."""
    names: list[tuple[Callable[[Any], bool], str]] = [
        (pa.types.is_boolean, "true or false"), (pa.types.is_integer, "whole numbers"),
        (pa.types.is_floating, "numbers"), (pa.types.is_date, "dates, such as 2020-01-31"),
        (pa.types.is_timestamp, "times, such as 2020-01-31 or 2020-01-31T12:00"), (pa.types.is_string, "text"),
    ]  # fmt: skip
    return next((name for is_kind, name in names if is_kind(kind)), f"values of type {kind}")


def _are_dates(words: Sequence[str]) -> bool:
    from neupath.graph.notations import kind_named

    return bool(pa.types.is_temporal(kind_named(words[0])))


def _word_for_days(values: Column) -> str | None:
    """Return the word of `attribute_types` for days or seconds written as whole numbers, if these look like some."""
    ends = [str(end) for end in pc.min_max(values).values()]
    if all(re.fullmatch(r"(1\d|20)\d\d(0[1-9]|1[0-2])([0-2]\d|3[01])", end) for end in ends):
        return "%Y%m%d"
    return "unix" if all(re.fullmatch(r"[1-9]\d{8,9}", end) for end in ends) else None


def _is_written_otherwise(whole: Column, text: str, words: Sequence[str], *, may_be_other: bool) -> bool:
    """Whether a column has a number or date in another spelling than a text does; 007 is not 7, as it may be a code.

    A date that is sought among numbers is refused too, as it would be if they were no texts, unless `may_be_other`.
    """
    from neupath.graph.notations import are_amounts, find_fit, holds_values, read_notation

    is_there = pc.any(pc.equal(whole, text), min_count=0).as_py()
    if is_there and not holds_values(whole):
        return False
    fit = find_fit([whole])
    if fit is None and not are_amounts(whole):
        return False
    if fit is not None and fit.are_dates != _are_dates(words):
        return not is_there and not may_be_other
    if not is_there and (fit is None or fit.words[0] not in words):
        return True
    others = pc.unique(pc.utf8_trim_whitespace(whole.drop_null()))
    others = others.filter(pc.not_equal(others, text.strip()))
    if is_there and not _are_dates(words):
        others = others.filter(pc.invert(pc.match_substring_regex(others, _CODE)))
        if re.match(_CODE, text.strip()):
            return False
    value = pa.array([text.strip()])
    read = [word for word in words if fit is None or word in fit.words or word in ("integer", "number")]
    return any(
        pc.any(pc.equal(read_notation(others, word), read_notation(value, word)[0]), min_count=0).as_py()
        for word in read
    )


_CODE = r"^[+-]?0[0-9]"


# ---- Expressions ---------------------------------------------------------------------------------
Floats = NDArray[np.float64]


class Expression(Term, ABC):
    """A number for each record, such as `log1p(count)` or `rating - 2.5`."""

    def evaluate(self, records: Records) -> tuple[Floats, Mask]:
        """Return the numbers, and mark the records for which they are known: all attributes have a value."""
        with np.errstate(all="ignore"):
            return self._evaluate(records)

    @abstractmethod
    def _evaluate(self, records: Records) -> tuple[Floats, Mask]: ...

    def weights(self, records: Records) -> Floats:
        """Return the numbers as weights: below 0 they are 0, and those of records with missing values as well.

        It raises for the first record whose number is infinite or not defined.
        """
        values, known = self.evaluate(records)
        bad = np.flatnonzero(known & ~np.isfinite(values))
        if len(bad):
            raise QueryError(
                f"the weight '{self}' is {values[bad[0]]} for {records.describe(int(bad[0]))}, the first of "
                f"{len(bad):,}; weights are finite numbers: leave it out by a condition, or change the weight"
            )
        return np.maximum(np.where(known, values, 0.0), 0.0)


@dataclass(frozen=True)
class Number(Expression):
    """The same number for every record."""

    value: float

    def __str__(self) -> str:
        return str(int(self.value)) if self.value == int(self.value) and abs(self.value) < 1e15 else repr(self.value)

    def _evaluate(self, records: Records) -> tuple[Floats, Mask]:
        return np.full(len(records), self.value), np.ones(len(records), dtype=np.bool_)


@dataclass(frozen=True)
class Attribute(Expression):
    """The number that an attribute holds."""

    attribute: str
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return quote_attribute(self.attribute)

    def _evaluate(self, records: Records) -> tuple[Floats, Mask]:
        values = Values(records, self.attribute, self.origin)
        is_number = pa.types.is_integer(values.kind) or pa.types.is_floating(values.kind)
        if values.is_text:
            values.refuse_text("which are no numbers")
        if not is_number and not pa.types.is_boolean(values.kind):
            is_time = pa.types.is_temporal(values.kind)
            hint = f"; use decay({quote_attribute(self.attribute)}, 2020-01-31, 365d)" if is_time else ""
            values.refuse(f", which are no numbers{hint}")
        return _to_numpy(pc.fill_null(values.column.cast(pa.float64()), 0.0)), _to_numpy(values.column.is_valid())


@dataclass(frozen=True)
class Arithmetic(Expression):
    """Two expressions added, subtracted, multiplied or divided."""

    left: Expression
    sign: str
    right: Expression

    @property
    def binds(self) -> int:  # type: ignore[override]
        return 1 if self.sign in "+-" else 2

    def __str__(self) -> str:
        left = str(self.left) if self.left.binds >= self.binds else f"({self.left})"
        right = str(self.right) if self.right.binds > self.binds else f"({self.right})"
        return f"{left} {self.sign} {right}"

    def _evaluate(self, records: Records) -> tuple[Floats, Mask]:
        operation = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}[self.sign]
        (left, left_known), (right, right_known) = self.left._evaluate(records), self.right._evaluate(records)
        return operation(left, right), left_known & right_known


@dataclass(frozen=True)
class Call(Expression):
    """A function of one or more expressions."""

    function: str
    arguments: tuple[Expression, ...]

    def __str__(self) -> str:
        return f"{self.function}({', '.join(map(str, self.arguments))})"

    def _evaluate(self, records: Records) -> tuple[Floats, Mask]:
        values, known = zip(*(argument._evaluate(records) for argument in self.arguments), strict=True)
        return np.asarray(_FUNCTIONS[self.function][1](*values), dtype=np.float64), np.logical_and.reduce(known)


@dataclass(frozen=True)
class Decay(Expression):
    """2^(-(reference - time) / half_life) of an attribute that holds times or numbers; 1 at the reference.

    The half-life of times is a number with a unit (us, ms, s, min, h, d, w, y = 365.25 d); that of numbers is one.
    """

    attribute: str
    reference: str
    half_life: str
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"decay({quote_attribute(self.attribute)}, {quote_value(self.reference)}, {self.half_life})"

    def _evaluate(self, records: Records) -> tuple[Floats, Mask]:
        values = Values(records, self.attribute, self.origin)
        kind, known = values.kind, _to_numpy(values.column.is_valid())
        if values.is_text:
            values.refuse_text("which are no times")
        column, reference = values.compared(self.reference, "decay", self.origin)
        if pa.types.is_temporal(kind):
            micros = pa.timestamp("us", getattr(column.type, "tz", None))
            numbers = _to_numpy(pc.fill_null(column.cast(micros, safe=False).cast(pa.int64()), 0))
            ages = (reference.cast(micros, safe=False).cast(pa.int64()).as_py() - numbers).astype(np.float64)
        elif pa.types.is_integer(kind) or pa.types.is_floating(kind):
            ages = reference.as_py() - _to_numpy(pc.fill_null(column, 0)).astype(np.float64)
        else:
            values.refuse(", which are no times")
        return np.exp2(-ages / self._half_life_of(values)), known

    def _half_life_of(self, values: Values) -> float:
        is_time = pa.types.is_temporal(values.kind)
        written = (_DURATION if is_time else _UNSIGNED).fullmatch(self.half_life)
        number = float(written[1] if is_time else written[0]) if written else 0.0
        if not 0 < number < np.inf:
            units = "with a unit: us, ms, s, min, h, d, w or y, such as 365d"
            right = units if is_time else "in the unit of the attribute, such as 2"
            _refuse(
                self.origin,
                f"the half-life of attribute {self.attribute!r} is {excerpt(self.half_life, 0)!r}; it holds "
                f"{_kind(values.kind)}, so give a number above 0 {right}",
            )
        return number * _MICROSECONDS[written[2]] if written and is_time else number


_FUNCTIONS: dict[str, tuple[int, Any]] = {
    "log1p": (1, np.log1p), "log": (1, np.log), "sqrt": (1, np.sqrt), "exp": (1, np.exp),
    "min": (2, np.minimum), "max": (2, np.maximum),
    "clip": (3, lambda x, low, high: np.minimum(np.maximum(x, low), high)),
    "decay": (3, None),
}  # fmt: skip


# ---- Filters -------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Filter:
    """What a meta-path says of a node or an edge on it: the condition that it meets, and its weight."""

    where: Condition | None = None
    weight: Expression | None = None

    def __str__(self) -> str:
        """Write the brackets behind a node type or a relation."""
        pinned = [part for part in self._conditions() if isinstance(part, Pinned)]
        others = all_of([part for part in self._conditions() if not isinstance(part, Pinned)])
        weight = None if self.weight is None else f"weight: {self.weight}"
        inner = [str(part) for part in (others, weight) if part is not None]
        return "".join(map(str, pinned)) + (f"[{'; '.join(inner)}]" if inner else "")

    def _conditions(self) -> tuple[Condition, ...]:
        return () if self.where is None else self.where.parts if isinstance(self.where, All) else (self.where,)

    def attributes(self) -> set[str]:
        return {name for part in (self.where, self.weight) if part is not None for name in part.attributes()}

    def weights(self, records: Records) -> "Floats":
        """Return the weight of each record: 0 where it does not meet the condition."""
        if self.where is None:
            return np.ones(len(records)) if self.weight is None else self.weight.weights(records)
        met = self.where.mask(records)
        if self.weight is None:
            return met.astype(np.float64)
        weights = np.zeros(len(records))
        weights[met] = self.weight.weights(Selected(records, np.flatnonzero(met)))
        return weights

    def check(self, records: Records) -> None:
        """Raise if it names attributes or values that the records cannot have, or nodes that they are not."""
        for condition in self._conditions():
            condition.mask(records if isinstance(condition, Pinned) else Selected(records, slice(0, 0)))
        if self.weight is not None:
            self.weight.evaluate(Selected(records, slice(0, 0)))


def narrowed(own: Filter | None, extra: Filter) -> Filter:
    """Return a filter with one more condition, and a weight in place of its own or times it."""
    if own is None:
        return extra
    where = own.where & extra.where if own.where and extra.where else own.where or extra.where
    weight = Arithmetic(own.weight, "*", extra.weight) if own.weight and extra.weight else own.weight or extra.weight
    return Filter(where, weight)


@dataclass(frozen=True)
class Selected:
    """Some of the records; pinned nodes are looked up among all of them."""

    records: Records
    rows: "NDArray[np.int64] | slice"

    @property
    def title(self) -> str:
        return self.records.title

    def __len__(self) -> int:
        return len(range(*self.rows.indices(len(self.records)))) if isinstance(self.rows, slice) else len(self.rows)

    def column_names(self) -> list[str]:
        return self.records.column_names()

    def column(self, name: str) -> Column:
        values = self.records.column(name)
        return values[self.rows] if isinstance(self.rows, slice) else values.take(pa.array(self.rows))

    def describe(self, row: int) -> str:
        return self.records.describe(int(np.arange(len(self.records))[self.rows][row]))

    def among(self, ids: Sequence[Any]) -> Mask:
        return self.records.among(ids)[self.rows]


@dataclass(frozen=True)
class AddedNodes(Selected):
    """Nodes behind those among which the pinned ones were found, so that none of them is pinned.

    It raises where a pinned text may mean one of them: then it has to be looked up among all nodes again.
    """

    records: "Nodes"
    rows: slice

    def among(self, ids: Sequence[Any]) -> Mask:
        for each in ids:
            if self.records.may_mean(each, self.rows):
                raise QueryError(f"{excerpt(str(each), 0)!r} may mean a {self.title} that was added")
        return np.zeros(len(self), dtype=np.bool_)


# ---- The reader ----------------------------------------------------------------------------------
def parse_condition(text: str, names: Sequence[str] = ()) -> Condition:
    """Read a condition; `names` are attributes that may have spaces and signs in them without being quoted.

    >>> print(parse_condition("year>=2020 and not (country = Korea or country is missing)"))
    year >= 2020 and not (country = "Korea" or country is missing)
    """
    reader = Reader("condition", text, names=names)
    condition = reader.read_condition()
    reader.expect_end()
    return condition


def parse_expression(text: str) -> Expression:
    """Read the expression of a weight.

    >>> print(parse_expression("2*(rating-2.5)"))
    2 * (rating - 2.5)
    """
    reader = Reader("weight", text)
    expression = reader.read_expression()
    reader.expect_end()
    return expression


class Reader:
    """A cursor over a text that has conditions in it; each method reads one part and moves on.

    Parameters
    ----------
    what
        What the text is called in errors.
    text
        The text.
    at
        Where to begin.
    closings
        The characters that end a bare value, besides those of the grammar.
    names
        Attributes that may have spaces and signs in them without being quoted.
    error
        What to raise.
    """

    def __init__(
        self,
        what: str,
        text: str,
        at: int = 0,
        *,
        closings: str = "",
        names: Sequence[str] = (),
        error: type[NeuPathError] = QueryError,
    ) -> None:
        self.what, self.text, self.at, self._closings, self._error = what, text, at, closings, error
        self._names = sorted((name for name in names if not _PLAIN_WORD.fullmatch(name)), key=len, reverse=True)
        self._nested = self._in_list = self._terms = 0
        self.has_weight = False
        check_length(what, text)

    # -- Characters
    def refuse(self, problem: str, at: int | None = None) -> NoReturn:
        self.origin(at).refuse(problem, self._error)

    def origin(self, at: int | None = None) -> Origin:
        return Origin(self.what, self.text, self.at if at is None else at)

    def skip_spaces(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def here(self) -> str:
        """Return the next character that is no space, or nothing at the end."""
        self.skip_spaces()
        return self.text[self.at : self.at + 1]

    def take(self, token: str) -> bool:
        self.skip_spaces()
        if not self.text.startswith(token, self.at):
            return False
        self.at += len(token)
        return True

    def expect(self, token: str, opened: int) -> None:
        if not self.take(token):
            rest = self._shown()
            self.refuse(f"expected {token!r} to close {self.text[opened]!r} of character {opened + 1}, got {rest}")

    def expect_end(self) -> None:
        if self.here():
            self.refuse(f"expected 'and', 'or' or the end, got {self._shown()}")

    def _shown(self) -> str:
        self.skip_spaces()
        rest = self.text[self.at : self.at + 20]
        return repr(rest) if rest else "the end"

    def _word(self) -> str:
        self.skip_spaces()
        word = _WORD.match(self.text, self.at)
        return word[0] if word else ""

    def _take_word(self, word: str) -> bool:
        if self._word().lower() != word:
            return False
        self.at += len(word)
        return True

    def quoted(self) -> str | None:
        """Read a text in quotes; None if no quote stands here."""
        mark = self.here()
        if mark not in ("'", '"'):
            return None
        opened, parts, at = self.at, [], self.at + 1
        while True:
            closing = self.text.find(mark, at)
            if closing < 0:
                self.refuse(f"the quote is not closed; add {mark} at its end", opened)
            parts.append(self.text[at:closing])
            at = closing + 1
            if not self.text.startswith(mark, at):
                break
            parts.append(mark)
            at += 1
        self.at = at
        return "".join(parts)

    @contextmanager
    def _deeper(self, at: int) -> Iterator[None]:
        if self._nested >= MOST_NESTED:
            self.refuse(f"it is nested more than {MOST_NESTED} deep; write it with fewer brackets", at)
        self._nested += 1
        yield
        self._nested -= 1

    # -- Conditions
    def read_condition(self) -> Condition:
        return self._read_several(AnyOf, partial(self._read_several, All, self._read_part))

    def _read_several(self, kind: type[_Several], read: Callable[[], Condition]) -> Condition:
        parts = [read()]
        while self._take_word(kind.word):
            parts.append(read())
        return parts[0] if len(parts) == 1 else kind(tuple(parts))

    def _read_part(self) -> Condition:
        self.skip_spaces()
        opened = self.at
        if self._known_name() is None:
            if self._word().lower() == "not" and not self._is_attribute():
                with self._deeper(opened):
                    self.at += len("not")
                    return Not(self._read_part())
            if self.take("("):
                with self._deeper(opened):
                    condition = self.read_condition()
                    self.expect(")", opened)
                    return condition
        return self._read_predicate()

    def _read_predicate(self) -> Condition:
        self.skip_spaces()
        origin = self.origin()
        attribute = self._read_attribute()
        self.skip_spaces()
        sign = next((sign for sign in _SIGNS if self.text.startswith(sign, self.at)), None)
        if sign is not None:
            self.at += len(sign)
            value, value_origin = self._read_value(sign)
            return Comparison(attribute, sign, value, origin, value_origin)
        at, is_negated = self.at, self._take_word("not")
        if self._take_word("in"):
            condition: Condition = self._read_list(attribute, origin)
            return Not(condition) if is_negated else condition
        self.at = at
        if self._take_word("is"):
            is_negated = self._take_word("not")
            if self._take_word("missing"):
                return Not(Missing(attribute, origin)) if is_negated else Missing(attribute, origin)
            self.refuse(f"expected 'missing' or 'not missing' after 'is', got {self._shown()}")
        return self.refuse(
            f"expected a comparison after {excerpt(attribute, 0)!r}, one of = != < <= > >= ~, 'in (…)' or "
            f"'is missing', got {self._shown()}"
        )

    def _known_name(self) -> str | None:
        """Return the attribute with an unusual name that stands here."""
        self.skip_spaces()
        return next((name for name in self._names if self.text.startswith(name, self.at)), None)

    def _read_attribute(self) -> str:
        known = self._known_name()
        if known is not None:
            self.at += len(known)
            return known
        quoted = self.quoted()
        if quoted is not None:
            return quoted
        end = self._end_of_attribute()
        name = self.text[self.at : end].strip()
        if not name:
            self.refuse(f"expected the name of an attribute, got {self._shown()}")
        self.at = end
        return name

    def _end_of_attribute(self) -> int:
        """Return where the bare words end that can name an attribute here."""
        end = self.at
        for number, word in enumerate(_words(self.text, self.at)):
            if number and word[0].lower() in ("in", "is", "and", "or", "not"):
                break
            end = word.end()
        return end

    def _is_attribute(self) -> bool:
        """Whether the word here is compared with something, so that it names an attribute."""
        word = _WORD.match(self.text, self.at)
        return word is not None and self.text[word.end() :].lstrip()[:1] in _FIRST_OF_SIGNS

    def _begins_condition(self, at: int) -> bool:
        """Whether what stands here begins a condition, rather than going on with a bare value."""
        reader = Reader(self.what, self.text, at, names=self._names)
        if reader.here() in ("(", "'", '"') or reader._known_name() is not None or reader._word().lower() == "not":
            return True
        reader.at = reader._end_of_attribute()
        return reader.here() in _FIRST_OF_SIGNS or reader._word().lower() in ("in", "is", "not")

    def _read_value(self, after: str) -> tuple[str, Origin]:
        self.skip_spaces()
        origin = self.origin()
        quoted = self.quoted()
        if quoted is not None:
            return quoted, origin
        end = self._end_of_value()
        value = self.text[self.at : end].strip()
        if not value:
            self.refuse(f'expected a value after {after!r}, got {self._shown()}; write an empty text as ""')
        self.at = end
        return value, origin

    def _end_of_value(self) -> int:
        """Return where a bare value ends; brackets that it opens and closes belong to it."""
        at, depth = self.at, 0
        while at < len(self.text):
            character = self.text[at]
            if depth == 0 and (character in self._closings or character == ")" or (character == "," and self._in_list)):
                break
            if character.isspace() and depth == 0:
                word = _CONJUNCTION.match(self.text, at)
                if word and self._begins_condition(word.end()):
                    break
            depth += (character == "(") - (character == ")")
            at += 1
        return at

    def _read_list(self, attribute: str, origin: Origin) -> OneOf:
        if not self.take("("):
            self.refuse(f"expected '(' after 'in', as in 'venue in (KDD, ICDE)', got {self._shown()}")
        opened = self.at - 1
        values: list[str] = []
        origins: list[Origin] = []
        self._in_list += 1
        while True:
            value, value_origin = self._read_value("(" if not values else ",")
            values.append(value)
            origins.append(value_origin)
            if not self.take(","):
                break
        self._in_list -= 1
        self.expect(")", opened)
        return OneOf(attribute, tuple(values), origin, tuple(origins))

    def read_pinned(self) -> Pinned:
        """Read the nodes within braces, the opening one of which is read already."""
        opened, nodes = self.at - 1, []
        self.skip_spaces()
        origin = self.origin()
        while True:
            node = self.quoted()
            if node is None:
                end = min((p for p in (self.text.find(c, self.at) for c in ",}") if p >= 0), default=len(self.text))
                node = self.text[self.at : end].strip()
                if not node:
                    self.refuse(f"expected the id or name of a node, got {self._shown()}")
                self.at = end
            if len(node) > _LONGEST_NODE:
                self.refuse(f"a node is named by at most {_LONGEST_NODE:,} characters, got {len(node):,}", origin.at)
            nodes.append(node)
            if not self.take(","):
                break
            self.skip_spaces()
        self.expect("}", opened)
        return Pinned(tuple(nodes), origin)

    # -- Expressions
    def takes_weight(self) -> bool:
        """Read `weight:`, which stands before an expression; whether it stood here."""
        self.skip_spaces()
        word = _WEIGHT.match(self.text, self.at)
        self.at = word.end() if word else self.at
        self.has_weight = word is not None
        return self.has_weight

    def read_expression(self) -> Expression:
        expression = self._read_term()
        while sign := self._take_sign("+", "-"):
            expression = Arithmetic(expression, sign, self._read_term())
        return expression

    def _take_sign(self, *signs: str) -> str:
        sign = self.here()
        if sign not in signs:
            return ""
        self._terms += 1
        if self._terms > MOST_TERMS:
            self.refuse(f"it has more than {MOST_TERMS} operators; shorten it")
        self.at += 1
        return sign

    def _read_term(self) -> Expression:
        expression = self._read_factor()
        while sign := self._take_sign("*", "/"):
            self.skip_spaces()
            at, factor = self.at, self._read_factor()
            if sign == "/" and factor == Number(0.0):
                self.refuse("this divides by 0", at)
            expression = Arithmetic(expression, sign, factor)
        return expression

    def _read_factor(self) -> Expression:
        self.skip_spaces()
        opened = self.at
        if self.take("-"):
            with self._deeper(opened):
                return Arithmetic(Number(0.0), "-", self._read_factor())
        if self.take("("):
            with self._deeper(opened):
                expression = self.read_expression()
                self.expect(")", opened)
                return expression
        number = _UNSIGNED.match(self.text, self.at)
        if number:
            self.at = number.end()
            if not np.isfinite(float(number[0])):
                self.refuse(f"{number[0][:20]} is more than a float can hold", opened)
            return Number(float(number[0]))
        origin, name = self.origin(), self.quoted()
        if name is not None:
            return Attribute(name, origin)
        word = _PLAIN_WORD.match(self.text, self.at)
        if word is None:
            self.refuse(f"expected a number, an attribute or a function, got {self._shown()}")
        self.at = word.end()
        return self._read_call(word[0], opened) if self.here() == "(" else Attribute(word[0], origin)

    def _read_call(self, function: str, at: int) -> Expression:
        opened = self.at
        if function not in _FUNCTIONS:
            names = listed(_FUNCTIONS)
            self.refuse(
                f"there is no function {function!r} (there are {names}){did_you_mean(function, _FUNCTIONS)}", at
            )
        self.take("(")
        count = _FUNCTIONS[function][0]
        with self._deeper(at):
            if function == "decay":
                call: Expression = self._read_decay(at)
            else:
                arguments = [self.read_expression()]
                while self.take(","):
                    arguments.append(self.read_expression())
                if len(arguments) != count:
                    self.refuse(f"{function} takes {count} values, got {len(arguments)}", at)
                call = Call(function, tuple(arguments))
            self.expect(")", opened)
        return call

    def _read_decay(self, at: int) -> Decay:
        origin, attribute = self.origin(at), self.quoted()
        if attribute is None:
            word = _PLAIN_WORD.match(self.text, self.at)
            attribute = word[0] if word else ""
            self.at += len(attribute)
        texts = []
        self._in_list += 1
        while self.take(","):
            texts.append(self._read_value(",")[0])
        self._in_list -= 1
        if not attribute or len(texts) != 2:
            self.refuse("decay takes an attribute, a reference time and a half-life: decay(date, 2020-01-31, 365d)", at)
        return Decay(attribute, texts[0], texts[1], origin)


def _words(text: str, at: int) -> Iterator[re.Match[str]]:
    """Yield the words from a position on that have only spaces between them."""
    while True:
        while at < len(text) and text[at].isspace():
            at += 1
        word = _WORD.match(text, at)
        if word is None:
            return
        yield word
        at = word.end()


def check_length(what: str, text: str) -> None:
    """Raise if a text is longer than conditions may be."""
    if len(text) > MOST_CHARACTERS:
        raise QueryError(
            f"the {what} has {len(text):,} characters, and at most {MOST_CHARACTERS:,} are read: it goes on at "
            f"character {MOST_CHARACTERS + 1:,} with {text[MOST_CHARACTERS : MOST_CHARACTERS + 20]!r}; shorten it"
        )
