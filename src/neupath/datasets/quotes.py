"""Quotes that are opened and not closed: a reader takes all lines behind one for a part of its cell, in silence."""

import re
from collections.abc import Iterable
from typing import Any

import numpy as np


class QuoteWatch:
    """A stream of bytes that is looked at while it is read: can a line end inside a pair of quotes?

    Where every quote is closed in its line, no cell has two lines. That is nearly every table, so that nothing else
    has to be looked at.
    """

    def __init__(self, stream: Any, quote: str) -> None:
        self._stream = stream
        self._quote = ord(quote)
        self._open = 0
        self.spans_lines = False
        """Whether a quoted cell may have a line end in it, or be cut off by the end of the text."""

    def read(self, size: int = -1) -> bytes:
        """Read on."""
        found: bytes = self._stream.read(size)
        if found:
            self._look(found)
        else:
            self.spans_lines |= bool(self._open)
        return found

    def _look(self, block: bytes) -> None:
        count = block.count(self._quote)
        if not self.spans_lines and (count or self._open):
            values = np.frombuffer(block, dtype=np.uint8)
            before = np.searchsorted(np.flatnonzero(values == self._quote), np.flatnonzero(values == ord("\n")))
            self.spans_lines = bool(((before + self._open) % 2).any())
        self._open = (self._open + count) % 2

    @property
    def closed(self) -> bool:
        """Whether the stream is closed, as Arrow asks."""
        return bool(self._stream.closed)

    def close(self) -> None:
        """Close the stream."""
        self._stream.close()


def find_unclosed(lines: Iterable[str], delimiter: str, quote: str) -> int | None:
    """Return the line at which a record begins whose quote is not closed, or nothing.

    A quote is not closed where the text ends first, or where it is closed some lines below by a quote with more text
    than blanks behind it, which is one that opens another cell. A cell of one line with quotes inside is only untidy.
    No cell is put together: one that is not closed holds all lines behind it, of a file of any size.

    >>> find_unclosed(["a,b", 'c,"two', 'lines" ,d', 'e,"f'], ",", '"')
    4
    """
    behind = re.compile(rf"[ \t]*({re.escape(delimiter)}|[\r\n]|$)")
    begins, opened = 1, 0
    for number, line in enumerate(lines, start=1):
        begins, at = begins if opened else number, 0
        while True:
            if not opened:
                at = _find_opening(line, at, delimiter, quote)
                opened = number if at else 0
            closing = _find_closing(line, at, quote) if opened else -1
            if closing < 0:
                break
            if opened < number and not behind.match(line, closing + 1):
                return begins
            opened, at = 0, closing + 1
    return begins if opened else None


def _find_opening(line: str, at: int, delimiter: str, quote: str) -> int:
    """Return the place behind the quote with which the next quoted cell begins, or 0."""
    if at == 0 and line.startswith(quote):
        return 1
    found = line.find(delimiter + quote, at)
    return found + 2 if found >= 0 else 0


def _find_closing(line: str, at: int, quote: str) -> int:
    """Return the place of the quote that closes a cell, or -1; two of them are a character of the cell."""
    found = line.find(quote, at)
    while found >= 0 and line.startswith(quote, found + 1):
        found = line.find(quote, found + 2)
    return found
