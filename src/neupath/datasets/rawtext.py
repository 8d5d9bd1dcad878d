"""The raw text of a table: opened whether gzipped or not, cut into cells, and what a cell looks like."""

import csv
import gzip
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO, cast

GZIP_MAGIC = b"\x1f\x8b"
HEADER_WORDS = {
    "id", "name", "title", "type", "kind", "weight", "source", "target", "src", "dst", "head", "tail", "subject",
    "object", "relation", "predicate", "metaedge", "from", "to", "start", "end", "entity", "entity1", "entity2",
}  # fmt: skip


def csv_reader(lines: Iterable[str], delimiter: str, quote: str | None) -> Any:
    """Read lines as records of cells; no quote means that quotes are characters like others."""
    csv.field_size_limit(2**31 - 1)
    if quote:
        return csv.reader(lines, delimiter=delimiter, quotechar=quote)
    return csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE)


def open_raw(path: Path) -> BinaryIO:
    """Open a file, unzipping it where it is gzipped, whatever its name says."""
    stream = path.open("rb")
    zipped = stream.peek(2)[:2] == GZIP_MAGIC
    if not zipped:
        return stream
    stream.close()
    return cast(BinaryIO, gzip.open(path, "rb"))


def read_start(path: Path) -> bytes:
    """Return the first bytes of a file, unzipped."""
    with open_raw(path) as stream:
        return stream.read(4096)


def names_a_column(cell: str, name: str) -> bool:
    """Whether a cell of the first line is a word that headers have: an id, a usual name, or the file's own name."""
    word = cell.strip().lower()
    own = {part.removesuffix("s") for part in re.split(r"[_\-\s.]+", name.lower())}
    return word in HEADER_WORDS or word.endswith("_id") or cell.strip().endswith(("Id", "ID")) or word in own


def is_number(cell: str) -> bool:
    """Whether a cell reads as a number."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def not_utf8(error: UnicodeDecodeError) -> str:
    """Say which byte is not text, and what to do."""
    return f"is not UTF-8 text (byte {error.object[error.start]:#04x}); convert it, for example with iconv -t UTF-8"
