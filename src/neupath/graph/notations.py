"""Notations: how texts write numbers and dates, what `attribute_types` calls that, and which one fits a column."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from neupath._runtime.lazy_module import LazyModule
from neupath.errors import excerpt
from neupath.graph.edge_attributes import KINDS, TIME, from_unix, kept_type, to_attribute, to_times

Mask = NDArray[np.bool_]
pc = LazyModule("pyarrow.compute")  # takes longer to import than most searches

# ---- What graph.toml can say that an attribute is ------------------------------------------------
UNIX_KINDS = {"unix": "s", "unix_ms": "ms", "unix_us": "us"}
DECIMALS = ("decimal comma", "decimal point")
KIND_WORDS = (*KINDS, *DECIMALS, *UNIX_KINDS)
"""Besides formats such as %d.%m.%Y. unix, unix_ms and unix_us are integers that count time since 1970."""
EMPTY_WORDS = (
    "", "null", "(null)", "<null>", "none", "(none)", "nil", "nan", "na", "<na>", "n/a", "n.a.", "#n/a", "#na", "\\n",
    "-", "--", "\N{EN DASH}", "\N{EM DASH}", "?", "??", ".", "(blank)", "(empty)",
)  # fmt: skip
"""Texts that stand for an empty cell, in lower case: for a missing value where a number or a date is declared."""
UNKNOWN_WORDS = ("undefined", "unknown", "(unknown)")
"""Texts that stand for an id that nobody knows, besides `EMPTY_WORDS`; as a value they may mean something."""


def kind_named(word: str) -> pa.DataType:
    """Return how an attribute is kept that graph.toml calls so.

    >>> kind_named("decimal comma"), kind_named("%d.%m.%Y"), kind_named("%d.%m.%Y %H:%M")
    (DataType(double), DataType(date32[day]), TimestampType(timestamp[us]))
    """
    if "%" in word:
        return TIME if _format(word).has_time else pa.date32()
    return TIME if word in UNIX_KINDS else pa.float64() if word in DECIMALS else KINDS[word]


def format_problem(text: str) -> str | None:
    """Return why a text is no format of dates, or None if it is one.

    >>> format_problem("%d.%m")
    'it has no year (%Y or %y)'
    """
    try:
        _format(text)
    except ValueError as error:
        return str(error)
    return None


def cast_values(values: pa.Array, word: str) -> pa.Array:
    """Return values as the attribute that graph.toml says they are; raise ArrowInvalid if one is something else.

    In texts, spaces around a value do not count, and words of `EMPTY_WORDS` are missing values.

    >>> cast_values(pa.array(["1.200,00", "9,99", "N/A"]), "decimal comma").to_pylist()
    [1200.0, 9.99, None]
    """
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pa.types.is_large_string(values.type):
        values = values.cast(pa.string())
    if word == "text":
        if pa.types.is_string(values.type):
            values = pc.if_else(pc.equal(values, ""), pa.scalar(None, pa.string()), values)
        return _kept(values.cast(pa.string()))
    if is_notation(word) and not pa.types.is_string(values.type):
        if not pa.types.is_integer(values.type):
            raise pa.ArrowInvalid(f"{values.type} is no text")
        values = values.cast(pa.string())
    if pa.types.is_string(values.type):
        values = without_empty_words(values)
        return _read_strictly(values, word) if is_notation(word) else _cast_texts(values, word)
    if word in UNIX_KINDS:
        return from_unix(values.cast(pa.int64()), UNIX_KINDS[word])
    if word == "time":
        if pa.types.is_integer(values.type):
            raise pa.ArrowInvalid("integers are times only as unix or unix_ms")
        return _kept(values) if kept_type(values.type) == TIME else values.cast(TIME)
    return _kept(values.cast(KINDS[word]))


def is_notation(word: str) -> bool:
    """Whether a word says how texts write numbers or dates, rather than what they are."""
    return word in DECIMALS or "%" in word


def without_empty_words(texts: pa.Array) -> pa.Array:
    """Return texts without spaces around them, and null where a word means that there is no value."""
    trimmed = pc.utf8_trim_whitespace(texts)
    return pc.if_else(_are_empty_words(trimmed), pa.scalar(None, pa.string()), trimmed)


def count_empty_words(texts: pa.Array) -> dict[str, int]:
    """Count the words that are no empty cells but mean that there is no value, as they are written."""
    if pa.types.is_dictionary(texts.type):
        texts = texts.dictionary_decode()
    if not pa.types.is_string(texts.type):
        return {}
    trimmed = pc.utf8_trim_whitespace(texts)
    words = trimmed.filter(pc.and_(_are_empty_words(trimmed), pc.not_equal(trimmed, "")))
    return {count["values"]: count["counts"] for count in words.value_counts().to_pylist()}


def _are_empty_words(trimmed: pa.Array) -> pa.Array:
    return pc.is_in(pc.utf8_lower(trimmed), value_set=pa.array(EMPTY_WORDS))


def _kept(values: pa.Array) -> pa.Array:
    attribute = to_attribute(values)
    if attribute is None:
        raise pa.ArrowInvalid(f"{values.type} cannot be kept")
    return attribute


def _cast_texts(texts: pa.Array, word: str) -> pa.Array:
    if word in UNIX_KINDS:
        return from_unix(texts.cast(pa.float64()).cast(pa.int64()), UNIX_KINDS[word])
    if word in ("date", "time"):
        return to_times(texts) if word == "time" else to_times(texts).cast(pa.date32(), safe=False)
    return _kept((pc.utf8_lower(texts) if word == "boolean" else texts).cast(KINDS[word]))


def _read_strictly(texts: pa.Array, word: str) -> pa.Array:
    encoded = texts.dictionary_encode()
    values = read_notation(encoded.dictionary, word)
    if values.null_count > encoded.dictionary.null_count:
        raise pa.ArrowInvalid(f"not all texts are written as {word}")
    return values.take(encoded.indices)


# ---- Texts in a notation -------------------------------------------------------------------------
_SPACE = r"[ \x{A0}\x{202F}]"
_DECIMAL_PATTERNS = {
    "decimal comma": rf"^[+-]?(?:[0-9]+|[1-9][0-9]{{0,2}}(?:(?:\.[0-9]{{3}})+|(?:{_SPACE}[0-9]{{3}})+))(?:,[0-9]+)?$",
    "decimal point": (
        rf"^[+-]?(?:[0-9]+|[1-9][0-9]{{0,2}}(?:(?:,[0-9]{{3}})+|(?:{_SPACE}[0-9]{{3}})+|(?:['’][0-9]{{3}})+))"
        r"(?:\.[0-9]+)?$"
    ),
}
"""A thousands mark stands before each group of three digits, and is the same throughout a number."""
_PLAIN_PATTERNS = {
    "integer": r"^[+-]?[0-9]{1,18}$",
    "number": r"^[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,2})?$",
}
_ISO_TIME = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?$"
)
_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
_DIRECTIVES = {
    "Y": "[0-9]{4}", "y": "[0-9]{2}", "m": "[0-9]{1,2}", "d": "[0-9]{1,2}", "H": "[0-9]{1,2}", "I": "[0-9]{1,2}",
    "M": "[0-9]{1,2}", "S": "[0-9]{1,2}", "f": "[0-9]{1,6}", "p": "(?i:am|pm)",
    "b": f"(?i:{'|'.join(month[:3] for month in _MONTHS)})", "B": f"(?i:{'|'.join(_MONTHS)})",
}  # fmt: skip
_MEANS = {"y": "Y", "b": "m", "B": "m", "I": "H"}
"""Directives that say the same as another."""


class _Format(NamedTuple):
    pattern: str
    directives: frozenset[str]

    @property
    def has_time(self) -> bool:
        return bool(self.directives & {"H", "I"})


@cache
def _format(text: str) -> _Format:
    """Read a format as `strptime` takes it; raise ValueError with the reason if it is not one."""
    pattern, directives, at = "", [], 0
    for match in re.finditer(r"%(.?)|\s+|[^%\s]+", text, re.DOTALL):
        if not match[0].startswith("%"):
            pattern += r"\s+" if match[0].isspace() else re.escape(match[0])
        elif match[1] == "%":
            pattern += "%"
        elif match[1] not in _DIRECTIVES:
            known = " ".join(f"%{each}" for each in _DIRECTIVES)
            raise ValueError(f"it has {match[0]}, and can have {known} (not at character {at + 1})")
        else:
            directives.append(match[1])
            pattern += f"(?P<{match[1]}>{_DIRECTIVES[match[1]]})"
        at = match.end()
    meanings = [_MEANS.get(each, each) for each in directives]
    for meaning, names in (("Y", "year (%Y or %y)"), ("m", "month (%m, %b or %B)"), ("d", "day (%d)")):
        if meaning not in meanings:
            raise ValueError(f"it has no {names}")
    for meaning in meanings:
        if meanings.count(meaning) > 1:
            raise ValueError(f"it has %{meaning} twice, or what says the same")
    for later, earlier in (("M", "H"), ("S", "M"), ("f", "S"), ("p", "H")):
        if later in meanings and earlier not in meanings:
            raise ValueError(f"it has %{later} without %{earlier}")
    if ("I" in directives) != ("p" in directives):
        raise ValueError("it has one of %I and %p without the other")
    return _Format(f"^{pattern}$", frozenset(directives))


def read_notation(texts: pa.Array, word: str) -> pa.Array:
    """Return texts as a word reads them, and null where it does not.

    >>> read_notation(pa.array(["31.12.2019", "31.2.2019", "soon"]), "%d.%m.%Y").to_pylist()
    [datetime.date(2019, 12, 31), None, None]
    """
    if "%" in word:
        return _read_dates(texts, _format(word))
    if word == "date":
        return _read_dates(pc.if_else(pc.match_substring_regex(texts, _ISO_DAY), texts, None), _format("%Y-%m-%d"))
    if word == "time":
        return _read_iso_times(texts)
    pattern = _DECIMAL_PATTERNS.get(word) or _PLAIN_PATTERNS[word]
    numbers = pc.if_else(pc.match_substring_regex(texts, pattern), texts, None)
    if word in DECIMALS:
        marks = r"[.\s\x{A0}\x{202F}]" if word == "decimal comma" else r"[,'’\s\x{A0}\x{202F}]"
        numbers = pc.replace_substring(pc.replace_substring_regex(numbers, marks, ""), ",", ".")
    return pc.utf8_ltrim(numbers, "+").cast(pa.int64() if word == "integer" else pa.float64())


_ISO_DAY = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"


def _read_iso_times(texts: pa.Array) -> pa.Array:
    shaped = pc.if_else(pc.match_substring_regex(texts, _ISO_TIME), texts, None)
    values = []
    for text in shaped.to_pylist():
        try:
            values.append(None if text is None else to_times(pa.scalar(text)).as_py())
        except pa.ArrowException:
            values.append(None)
    return pa.array(values, TIME)


def _read_dates(texts: pa.Array, form: _Format) -> pa.Array:
    kind = TIME if form.has_time else pa.date32()
    if not len(texts):
        return pa.array([], kind)
    groups = pc.extract_regex(texts, form.pattern)
    valid = groups.is_valid().to_numpy(zero_copy_only=False)

    def number(name: str) -> NDArray[np.int64]:
        if name not in form.directives:
            return np.zeros(len(texts), dtype=np.int64)
        values = pc.struct_field(groups, name).fill_null("0").cast(pa.int64())
        return np.asarray(values.to_numpy(zero_copy_only=False))

    year, month, day, hour, minute, second = map(number, "YmdHMS")
    if "y" in form.directives:  # as POSIX and Python read it
        year = number("y")
        year = year + np.where(year < 69, 2000, 1900)
    for name in form.directives & {"b", "B"}:
        words = pc.utf8_lower(pc.struct_field(groups, name))
        names = pa.array([each[:3] if name == "b" else each for each in _MONTHS])
        month = (
            pc.fill_null(pc.index_in(words, value_set=names), -1).to_numpy(zero_copy_only=False).astype(np.int64) + 1
        )
    if "I" in form.directives:
        hour = number("I")
        valid &= (hour >= 1) & (hour <= 12)
        is_late = pc.fill_null(pc.equal(pc.utf8_lower(pc.struct_field(groups, "p")), "pm"), False)
        hour = hour % 12 + 12 * is_late.to_numpy(zero_copy_only=False).astype(np.int64)
    valid &= (year >= 1) & (month >= 1) & (month <= 12) & (hour < 24) & (minute < 60) & (second < 60)
    months = ((np.where(valid, year, 1970) - 1970) * 12 + np.where(valid, month, 1) - 1).astype("datetime64[M]")
    days = months.astype("datetime64[D]") + (day - 1).astype("timedelta64[D]")
    valid &= (day >= 1) & (days.astype("datetime64[M]") == months)
    if not form.has_time:
        return pa.array(days, kind, mask=~valid)
    micros = (hour * 3600 + minute * 60 + second) * 1_000_000
    if "f" in form.directives:
        digits = pc.utf8_rpad(pc.struct_field(groups, "f").fill_null("0"), 6, "0").cast(pa.int64())
        micros = micros + digits.to_numpy(zero_copy_only=False)
    return pa.array(days.astype("datetime64[us]") + micros.astype("timedelta64[us]"), kind, mask=~valid)


# ---- Which notation fits a column ----------------------------------------------------------------
_NEARLY_ALL = 0.9
_GATE_CELLS, _FIRST_VALUES = 64, 256
_DAYS = [
    *(order.replace("-", mark) for mark in "./-" for order in ("%d-%m-%Y", "%m-%d-%Y", "%d-%m-%y", "%m-%d-%y")),
    "%Y/%m/%d", "%Y.%m.%d", "%y-%m-%d", "%y/%m/%d", "%y.%m.%d", "%d %b %Y", "%d %B %Y", "%d. %B %Y", "%b %d, %Y",
    "%B %d, %Y", "%d-%b-%Y", "%d-%b-%y",
]  # fmt: skip
_HOURS = (" %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p", ", %H:%M", ", %H:%M:%S", "T%H:%M:%S")
_DATE_WORDS = ("date", "time", *_DAYS, *(day + hour for day in _DAYS for hour in _HOURS))
_NUMBER_WORDS = ("integer", "number", *DECIMALS)
_MONTH_NAME = rf"(?:{'|'.join(month[:3] for month in _MONTHS)})[a-z]*"
_LOOKS = re.compile(
    rf"[+-]?\d[\d.,'’ \u00a0\u202f]*|(?:\d{{1,4}}[./-]\d{{1,2}}[./-]\d{{1,4}}"
    rf"|\d{{1,2}}[. -]+{_MONTH_NAME}[. ,-]+\d{{2,4}}|{_MONTH_NAME} \d{{1,2}}, \d{{4}})(?:[T ,].*)?",
    re.IGNORECASE,
)


_IN_CONFIG = "in graph.toml, which `neupath init` writes for tables in files, or beside a data frame"


@dataclass(frozen=True)
class Fit:
    """What nearly all texts of a column are.

    Parameters
    ----------
    words
        The words of `attribute_types` that read most of them; several if they read them differently.
    values, misfits
        How many values there are, and how many of them the words do not read.
    sample, misfit
        One text that they read, and the first that they do not.

    """

    words: tuple[str, ...]
    values: int
    misfits: int
    sample: str
    misfit: str | None

    @property
    def are_dates(self) -> bool:
        return kind_named(self.words[0]) in (TIME, pa.date32())

    @property
    def is_notation(self) -> bool:
        """Whether the texts are read right only if `attribute_types` says how they are written."""
        return all(is_notation(word) for word in self.words)

    @property
    def what(self) -> str:
        return "dates" if self.are_dates else "numbers"

    def advice(self, attribute: str, where: str = _IN_CONFIG) -> str:
        """Return the sentence on what makes the column numbers or dates.

        >>> print(find_fit([pa.array(["9,99"])]).advice("price", "under [nodes.item]"))
        its values, such as '9,99', become numbers with attribute_types = {price = "decimal comma"} under [nodes.item]
        """
        choice = "" if len(self.words) == 1 else f" ({'both' if len(self.words) == 2 else 'all'} fit: choose)"
        declared = f"attribute_types = {' or '.join(self.declarations(attribute))}{choice} {where}".rstrip()
        plain = "2020-01-31" if self.are_dates else "9.99"
        if not where:
            return f"its values, such as {self.sample!r}, become {self.what} if they are written as {plain}"
        such = f"its values, such as {self.sample!r}, become {self.what} with"
        if self.misfit is None:
            return f"{such} {declared}"
        others = f"{self.misfits:,} of its {self.values:,} values, such as {excerpt(self.misfit, 0)!r}"
        return f"correct or empty {others}; then {such} {declared}"

    def declarations(self, attribute: str) -> list[str]:
        """Return what `attribute_types` says of the attribute, once for each word."""
        return [f"{{{toml_key(attribute)} = {json.dumps(word)}}}" for word in self.words]


def toml_key(name: str) -> str:
    """Return a key as TOML writes it.

    >>> toml_key("price"), toml_key("page count")
    ('price', '"page count"')
    """
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else quoted(name)


def quoted(text: str) -> str:
    r"""Return a text in double quotes, as TOML, JSON and Python read it.

    >>> print(quoted("a\tb"))
    "a\tb"
    """
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def are_perhaps_thousands(cells: Sequence[str]) -> bool:
    """Whether all cells with a point have three digits behind it, as thousands do and few fractions.

    >>> are_perhaps_thousands(["1.200", "950", "15.000"]), are_perhaps_thousands(["0.125", "1.200"])
    (True, False)
    """
    filled = [cell.strip() for cell in cells if cell.strip().lower() not in EMPTY_WORDS]
    with_point = [cell for cell in filled if "." in cell]
    return bool(with_point) and all(re.fullmatch(r"[+-]?[1-9]\d{0,2}(?:\.\d{3})?|0", cell) for cell in filled)


def may_be_values(cells: Sequence[str]) -> bool:
    """Whether the first cells of a column look like numbers or dates, so that it pays to look at all.

    >>> may_be_values(["31.12.2019", "", "soon"]), may_be_values(["9,99"]), may_be_values(["Desk 2"])
    (False, True, False)
    """
    filled = (cell for cell in cells if cell.strip().lower() not in EMPTY_WORDS)
    some = [cell for cell, _ in zip(filled, range(_GATE_CELLS), strict=False)]
    return bool(some) and sum(_LOOKS.fullmatch(cell.strip()) is not None for cell in some) >= 0.8 * len(some)


def find_fit(arrays: Iterable[Any]) -> Fit | None:
    """Return what nearly all texts of a column are, given in one or several arrays, or None.

    >>> find_fit([pa.array(["01/02/2026", "03/04/2026"])]).words
    ('%d/%m/%Y', '%m/%d/%Y')
    """
    counts: dict[str, int] = {}
    for array in arrays:
        for chunk in array.chunks if isinstance(array, pa.ChunkedArray) else [array]:
            for count in _count_texts(chunk).to_pylist():
                if count["values"] is not None:
                    counts[count["values"]] = counts.get(count["values"], 0) + count["counts"]
    if not counts:
        return None
    texts, rows = pa.array(list(counts), pa.string()), np.array(list(counts.values()))
    first = texts.slice(0, _FIRST_VALUES)
    likely = [
        word for word in _words_like(first.to_pylist()) if 2 * read_notation(first, word).null_count <= len(first)
    ]
    readings: dict[str, pa.Array] = {word: read_notation(texts, word) for word in likely}
    shares = {word: int(rows[_are_valid(values)].sum()) for word, values in readings.items()}
    most = max(shares.values(), default=0)
    if most < _NEARLY_ALL * rows.sum():
        return None
    words: list[str] = []
    for word in (word for word in likely if shares[word] == most):
        if not any(_read_alike(readings[word], readings[other]) for other in words):
            words.append(word)
    read = _are_valid(readings[words[0]])
    misfit = texts[int(np.flatnonzero(~read)[0])].as_py() if not read.all() else None
    sample = texts[int(np.flatnonzero(read)[0])].as_py()
    return Fit(tuple(words), int(rows.sum()), int(rows.sum()) - most, sample, misfit)


def are_amounts(texts: Any) -> bool:
    """Whether nearly all texts of a column are numbers with a currency sign or a unit, which no word reads.

    >>> are_amounts(pa.array(["$9.99", "1.200,00 EUR"])), are_amounts(pa.array(["Desk 2"]))
    (True, False)
    """
    plain = pc.drop_null(pc.utf8_trim_whitespace(texts.cast(pa.string())))
    values = plain.filter(
        pc.fill_null(pc.invert(pc.is_in(pc.utf8_lower(plain), value_set=pa.array(EMPTY_WORDS))), False)
    )
    amounts = pc.sum(pc.match_substring_regex(values, _AMOUNT)).as_py() or 0
    return bool(amounts and amounts >= _NEARLY_ALL * len(values))


_UNIT = r"(?:\p{Sc}|%|[A-Z]{3})"
_AMOUNT = rf"^[+-]?{_UNIT}?[\s\x{{A0}}]?[+-]?[0-9][0-9.,'’\x{{A0}}\x{{202F}} ]*{_UNIT}?$"


def holds_values(texts: Any) -> bool:
    """Whether texts of a column are numbers, dates or amounts, as far as its first values show."""
    first = texts.drop_null().slice(0, _FIRST_VALUES)
    return may_be_values(first.to_pylist()) or are_amounts(first)


def unlike_texts(texts: Any) -> tuple[str, str] | None:
    """Return two texts of a column that no word reads both, of which the first is a number or a date; None if none is.

    >>> unlike_texts(pa.array(["31.12.2019", "1.1.2020", "2020-01-31"]))
    ('31.12.2019', '2020-01-31')
    """
    distinct = without_empty_words(texts.cast(pa.string()).unique()).drop_null()
    words = {text: set(words_of_value(text)) for text in distinct.slice(0, _FIRST_VALUES).to_pylist()}
    pairs = ((one, other) for one in words if words[one] for other in words)
    return next(((one, other) for one, other in pairs if not words[one] & words[other]), None)


def _count_texts(texts: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(texts.type):
        texts = texts.dictionary_decode()
    return without_empty_words(texts.cast(pa.string())).value_counts()


def _are_valid(values: pa.Array) -> Mask:
    return np.asarray(values.is_valid().to_numpy(zero_copy_only=False), dtype=np.bool_)


def _read_alike(one: pa.Array, other: pa.Array) -> bool:
    """Whether two words read the same values in the same texts."""
    same = pa.float64() if kept_type(one.type) in (pa.int64(), pa.float64()) else TIME
    if (same == TIME) != (kept_type(other.type) in (TIME, pa.date32())):
        return False
    return bool(one.cast(same).equals(other.cast(same)))


def words_of_value(text: str) -> tuple[str, ...]:
    """Return the words that read one text: none if it is neither a number nor a date.

    >>> words_of_value("9,99"), words_of_value("31.12.2019"), words_of_value("tea")
    (('decimal comma',), ('%d.%m.%Y',), ())
    """
    plain = re.sub("[\N{HYPHEN}-\N{EM DASH}\N{MINUS SIGN}]", "-", text.strip())
    if _LOOKS.fullmatch(plain) is None and not re.fullmatch(_PLAIN_PATTERNS["number"], plain):
        return ()
    value = pa.array([plain])
    return tuple(word for word in _words_like([plain]) if read_notation(value, word).null_count == 0)


def _words_like(texts: Sequence[str]) -> list[str]:
    """Return the words of numbers, and those of dates whose shape at least half of some texts have."""
    half = len(texts) / 2
    dates = [word for word in _DATE_WORDS if sum(_shape(word).match(text) is not None for text in texts) >= half]
    return [*_NUMBER_WORDS, *dates]


@cache
def _shape(word: str) -> re.Pattern[str]:
    pattern = _ISO_DAY if word == "date" else _ISO_TIME if word == "time" else _format(word).pattern
    return re.compile(pattern)
