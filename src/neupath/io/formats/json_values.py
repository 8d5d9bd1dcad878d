"""The records of JSON files: lines, arrays, and the arrays of a document, read one value at a time."""

import io
import json
import re
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any, TextIO

from neupath._runtime.files import LONGEST_LINE
from neupath.errors import SourceError, first_line
from neupath.io.text_files import file_errors, not_utf8, open_lines, open_raw

JSON_SUFFIXES = (".jsonl", ".ndjson", ".json")
_BLOCK, _LARGEST = 1 << 20, 1 << 28
"""How many characters are read at a time, and how many one value may have."""
_MOST_KEYS, _SAMPLE = 1000, 1000
_NO_SPACE = re.compile(r"\S")
Record = dict[str, Any]


class Collection:
    """Records of one kind: the lines of a file, or an array; `key` is what a document calls the array."""

    def __init__(self, file: Path, key: str | None, values: Iterator[tuple[int, Any]], *, by_line: bool) -> None:
        self.file, self.key, self._by_line = file, key, by_line
        first = list(islice(values, _SAMPLE))
        self.sample = [value for _, value in first]
        """The first records."""
        self.number = 1
        """The number of the record that is read: its line, or its position in the array."""
        self._values = chain(first, values)

    def records(self) -> Iterator[Record]:
        """Yield the records; raise if a value is no record."""
        for number, value in self._values:
            self.number = number
            if not isinstance(value, dict):
                raise SourceError(
                    f"{self.place()}: expected an object with keys, got {str(value)[:40]!r}; a graph in JSON has "
                    f'records such as {{"id": …, "name": …}}, or nodes and edges'
                )
            yield value

    def place(self, number: int | None = None) -> str:
        """Return where a record is, by default the one that is read, for error messages."""
        number = self.number if number is None else number
        of_key = f" of {self.key}" if self.key else ""
        return f"{self.file}, line {number}" if self._by_line else f"{self.file}, item {number}{of_key}"

    def skip(self) -> None:
        """Read what is left."""
        deque(self._values, maxlen=0)


def read_collections(file: Path, header: Record) -> Iterator[Collection]:
    """Yield the collections of a file, within `json_errors`; the other values of a document come into `header`."""
    if _has_lines(file):
        yield Collection(file, None, _lines(file), by_line=True)
        return
    with open_raw(file) as raw, io.TextIOWrapper(raw, "utf-8-sig") as text:
        scanner = _Scanner(file, text)
        for key in scanner.members() if scanner.peek() == "{" else [None]:
            if scanner.peek() == "[":
                collection = Collection(file, key, scanner.items(), by_line=False)
                yield collection
                collection.skip()
            elif key is None:
                found = f"{str(scanner.value())[:40]!r}" if scanner.peek() else "nothing"
                raise SourceError(f"{file} holds {found}; a graph in JSON is an object, an array or lines of objects")
            elif len(header) < _MOST_KEYS:
                header[key] = scanner.value()
            else:
                raise SourceError(
                    f"{file} has more than {_MOST_KEYS:,} keys; write a list of records with ids instead, or a record "
                    f"per line"
                )
        if scanner.peek():
            raise scanner.error("expected the end of the document")


def is_json(path: Path) -> bool:
    """Whether a file is JSON by its name."""
    name = path.name.lower().removesuffix(".gz")
    return name.endswith(JSON_SUFFIXES) and not name.startswith(".") and path.is_file()


@contextmanager
def json_errors(file: Path) -> Iterator[None]:
    """Turn errors of the parser and of the system about a file into a SourceError."""
    try:
        with file_errors(file):
            yield
    except UnicodeDecodeError as error:
        raise SourceError(f"{file} {not_utf8(error)}") from error
    except RecursionError as error:
        raise SourceError(f"{file} is nested too deeply; records have some levels, not hundreds") from error
    except ValueError as error:  # such as an integer of thousands of digits
        raise SourceError(f"{file} cannot be read as JSON: {first_line(error)}") from error


# ---- Lines ---------------------------------------------------------------------------------------
def _has_lines(file: Path) -> bool:
    """Whether a file holds a value per line: by its name, or because its first line is an object and not the last."""
    if not file.name.lower().removesuffix(".gz").endswith(".json"):
        return True
    with open_raw(file) as raw, io.TextIOWrapper(raw, "utf-8-sig") as text:
        filled = filter(str.strip, iter(lambda: text.readline(LONGEST_LINE), ""))
        first, second = next(filled, ""), next(filled, None)
    try:
        return second is not None and first.endswith("\n") and isinstance(json.loads(first), dict)
    except ValueError:
        return False


def _lines(file: Path) -> Iterator[tuple[int, Any]]:
    with open_lines(file) as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                try:
                    yield number, json.loads(line)
                except json.JSONDecodeError as error:
                    raise SourceError(f"{file}, line {number}: not valid JSON: {error.msg}") from error


# ---- Documents -----------------------------------------------------------------------------------
class _Scanner:
    """A cursor over a document that keeps only the value at hand in memory."""

    def __init__(self, file: Path, stream: TextIO) -> None:
        self._file, self._stream = file, stream
        self._text, self._at, self._lines = "", 0, 1
        self._decoder = json.JSONDecoder()

    def peek(self) -> str:
        """Return the next character that is not a space, or nothing at the end."""
        while (found := _NO_SPACE.search(self._text, self._at)) is None:
            self._at = len(self._text)
            if not self._more():
                return ""
        self._at = found.start()
        return found[0]

    def members(self) -> Iterator[str]:
        """Yield the keys of an object; the value of each must be read before the next."""
        for _ in self._each("{", "}"):
            key = self.value()
            if not isinstance(key, str):
                raise self.error("expected a key")
            self._take(":")
            yield key

    def items(self) -> Iterator[tuple[int, Any]]:
        """Yield the numbered items of an array."""
        return ((number, self.value()) for number in self._each("[", "]"))

    def value(self) -> Any:
        """Read one whole value."""
        self.peek()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                is_cut = error.msg.startswith("Unterminated") or error.pos > len(self._text) - 16
                described = self.error(error.msg, error.pos)
                if not is_cut or not self._more():
                    raise described from error
                continue
            if end == len(self._text) and self._more():
                continue  # a number may go on
            self._at = end
            return value

    def error(self, reason: str, position: int | None = None) -> SourceError:
        line = self._lines + self._text.count("\n", 0, self._at if position is None else position)
        return SourceError(f"{self._file}, line {line}: not valid JSON: {reason}")

    def _each(self, opening: str, closing: str) -> Iterator[int]:
        self._take(opening)
        number = 0
        while self.peek() != closing if number == 0 else self.peek() == ",":
            if number:
                self._take(",")
            number += 1
            yield number
        self._take(closing)

    def _take(self, char: str) -> None:
        if self.peek() != char:
            raise self.error(f"expected {char!r}")
        self._at += 1

    def _more(self) -> bool:
        """Read on; what is behind the cursor is forgotten."""
        left = len(self._text) - self._at
        if left > _LARGEST:
            raise self.error(f"one value has more than {_LARGEST:,} characters, the most that is read")
        block = self._stream.read(max(_BLOCK, left))
        self._lines += self._text.count("\n", 0, self._at)
        self._text, self._at = self._text[self._at :] + block, 0
        return bool(block)
