"""Writing files so that nobody ever sees half of one: to a temporary name beside it, then renamed."""

import os
from collections.abc import Callable
from pathlib import Path
from tempfile import NamedTemporaryFile

from neupath.errors import SourceError


def write_text(path: Path, text: str) -> None:
    """Write a text file whole or not at all."""
    write_whole(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a temporary file with the same suffix, then give it its name."""
    try:
        with NamedTemporaryFile(dir=path.parent, prefix=".", suffix=path.suffix, delete=False) as made:
            temporary = Path(made.name)
    except OSError as error:
        raise SourceError(f"cannot write {path}: {error.strerror or error}") from error
    try:
        write(temporary)
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    except OSError as error:
        raise SourceError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        temporary.unlink(missing_ok=True)


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
