"""Text files, gzipped or not: how they are opened, how a table in one is written, and errors about them."""

import csv
import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from neupath._runtime.files import bounded_lines
from neupath.errors import SourceError, first_line

COMMENT_MARKS = ("# ", "% ")
_GZIP_MAGIC = b"\x1f\x8b"


@dataclass(frozen=True)
class Dialect:
    """How a text table is written; None means that the file decides."""

    delimiter: str | None = None
    quote: str | None = None
    header: bool | None = None
    comments: bool = True
    """Whether the lines above a table may be comments."""


def unmarked(cell: str) -> str:
    """Return the first cell of a header without its comment mark, if it has one."""
    return cell[2:] if cell.startswith(COMMENT_MARKS) else cell


def is_number(cell: str) -> bool:
    """Whether a cell reads as a number."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


# ---- Opening a file, and errors about it ---------------------------------------------------------
_MOST_UNZIPPED, _MOST_RATIO = 1 << 26, 200
"""A gzip file may unzip to so many bytes, or to so many times its own size; tables shrink to a tenth, rarely less."""


def open_raw(path: Path) -> BinaryIO:
    """Open a file and unzip it if it is gzipped, whatever its name says."""
    refuse_special(path)
    return io.BufferedReader(BoundedGzip(path), 1 << 16) if is_gzipped(path) else path.open("rb")


def is_gzipped(path: Path) -> bool:
    """Whether a file is gzipped, whatever its name says."""
    with path.open("rb") as stream:
        return stream.read(2) == _GZIP_MAGIC


class BoundedGzip(io.RawIOBase):
    """A gzip file that raises once it unzips to far more than a table does: it may be made to fill the memory."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._zipped = pa.OSFile(str(path))
        self._unzipped = pa.CompressedInputStream(self._zipped, "gzip")
        self._size = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        block = self._unzipped.read(len(buffer))
        buffer[: len(block)] = block
        self._size += len(block)
        if self._size > max(_MOST_UNZIPPED, _MOST_RATIO * self.zipped):
            raise SourceError(
                f"{self._path} unzips to more than {_MOST_RATIO} times its size ({self._size >> 20:,} MiB from "
                f"{self.zipped >> 10:,} KiB so far); if that is right, unzip it with gunzip and read the plain file"
            )
        return len(block)

    @property
    def zipped(self) -> int:
        """How many bytes of the file are read."""
        return int(self._zipped.tell())

    def close(self) -> None:
        self._zipped.close()
        super().close()


def refuse_special(path: Path) -> None:
    """Raise if a path is a pipe, a socket or a device, which would be waited for or read without end."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise SourceError(f"{path} is a pipe, a socket or a device; write its content to a file and give that")


@contextmanager
def open_lines(path: Path, *, newline: str | None = None, errors: str = "strict") -> Iterator[Iterator[str]]:
    """Open a text, gzipped or not, and yield its lines; raise at one that is too long to be a row of a table."""
    with open_raw(path) as raw, io.TextIOWrapper(raw, "utf-8-sig", errors, newline) as text:
        yield bounded_lines(text, path)


def not_utf8(error: UnicodeDecodeError) -> str:
    """Name the byte that is not UTF-8, and the next step."""
    byte = f"{error.object[error.start]:#04x}"
    return f"is not UTF-8 text (byte {byte}); convert it, for example with iconv -f WINDOWS-1252 -t UTF-8"


@contextmanager
def file_errors(path: Path) -> Iterator[None]:
    """Turn the errors of the system and of Arrow about a file into a SourceError that names it."""
    try:
        yield
    except FileNotFoundError as error:
        raise SourceError(f"no such file: {path}") from error
    except PermissionError as error:
        raise SourceError(f"no permission to read {path}") from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise SourceError(f"{path} is a damaged gzip file ({error}); compress it or download it again") from error
    except (pa.ArrowException, csv.Error) as error:
        raise SourceError(f"{path} cannot be read: {first_line(error)}") from error
    except OSError as error:
        raise SourceError(f"{path} cannot be read, it may be cut short: {first_line(error)}") from error
