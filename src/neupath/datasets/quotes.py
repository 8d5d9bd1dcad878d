"""Quotes that are opened and not closed: a reader takes all lines behind one for a part of its cell, in silence."""

import csv
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


def find_unclosed(records: Any) -> int | None:
    """Return the line at which a record begins whose quote is not closed, or nothing.

    `records` is a strict reader of the csv module. A quote is not closed where the text ends first, or where it is
    closed some lines below by a quote with more text behind it, which is one that opens another cell. A cell of one
    line with quotes inside is only untidy.
    """
    begins = 1
    while True:
        try:
            next(records)
        except StopIteration:
            return None
        except csv.Error as error:
            if records.line_num > begins or "end of data" in str(error):
                return begins
        begins = int(records.line_num) + 1
