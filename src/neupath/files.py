"""Writing files and folders so that nobody ever sees half of one: under a temporary name beside it, then renamed."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

from neupath.errors import WriteError


def check_folder(folder: Path) -> None:
    """Refuse a folder that could not be written to, before work is done that ends in it."""
    nearest = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
    if not nearest.is_dir():
        raise WriteError(f"cannot write to {folder}: {nearest} is a file; give a folder")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise WriteError(f"cannot write to {folder}: no permission to write in {nearest}")


def write_text(path: Path, text: str) -> None:
    """Write a text file whole or not at all."""
    write_whole(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a temporary file with the same suffix, then give it its name."""
    temporary = _temporary(path)
    try:
        write(temporary)
        temporary.replace(path)
    except OSError as error:
        raise WriteError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        temporary.unlink(missing_ok=True)


def write_whole_folder(folder: Path, write: Callable[[Path], object]) -> Path:
    """Let `write` fill a temporary folder, then give it its name; a folder of that name must not be there yet."""
    temporary = _temporary(folder)
    try:
        temporary.mkdir(parents=True)
        write(temporary)
        temporary.rename(folder)
    except OSError as error:
        raise WriteError(f"cannot write {folder}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return folder


def _temporary(path: Path) -> Path:
    return path.parent / f".{path.stem}-{uuid4().hex[:8]}{path.suffix}"
