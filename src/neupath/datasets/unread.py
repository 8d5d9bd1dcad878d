"""Unread: what lies in the tables of a graph and the folders they are in, and is not read, said in notes."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path

from neupath.datasets.parts import is_cut, parquet_files
from neupath.datasets.sources import EdgeSource, NodeSource
from neupath.datasets.tables import TableFile, is_data_file
from neupath.datasets.words import is_id
from neupath.errors import SourceError, listed


def folder_names(files: Iterable[TableFile]) -> list[str]:
    """Say which tables are cut into folders by a column that their files do not have; refuse where it names nodes."""
    notes = []
    for file in files:
        missing = [key for key in _cut_by(file) if key not in file.columns]
        ids = [key for key in missing if is_id(key)]
        if ids:
            raise SourceError(
                f"{file.path} is cut into folders by {ids[0]}, and the names of folders are not read; "
                f"write {ids[0]} as a column of its files, too"
            )
        if missing:
            notes.append(f"{file.path.name} is cut into folders by {listed(missing)}: what their names say is not read")
    return notes


def comments_above(files: Iterable[TableFile]) -> list[str]:
    """Say how many lines above the tables were skipped as comments."""
    counts = {file.path.name: file.comments for file in files if file.comments}
    return [
        f"of {name}, {count} comment line{'s' * (count != 1)} above the table {'were' if count != 1 else 'was'} skipped"
        for name, count in counts.items()
    ]


def _cut_by(file: TableFile) -> list[str]:
    """Return the columns by which a table is cut into folders such as year=2020."""
    inner = {folder for part in file.parts if part != file.path for folder in part.relative_to(file.path).parents}
    return sorted({folder.name.partition("=")[0] for folder in inner if folder.name})


def without_data_files(paths: Sequence[Path]) -> tuple[list[Path], list[str]]:
    """Return the tables of a folder without .dat files beside others, and say which were left out."""
    others = [path for path in paths if not is_data_file(path)]
    if not others:
        return list(paths), []
    left_out = [path for path in paths if is_data_file(path)]
    return others, [
        f"{path.name} was left out: a .dat file may be anything, so that beside other tables it is read only if "
        f"graph.toml names it"
        for path in left_out
    ]


def too_deep(folder: Path, ignored: Sequence[str]) -> list[str]:
    """Say which Parquet files lie deeper in a folder than parts of its tables do."""
    kept = [path for path in _folders(folder) if not any(fnmatch(path.name, pattern) for pattern in ignored)]
    found = [inner for path in kept for inner in _folders(path) if not is_cut(inner) and _holds_parquet(inner)]
    return [
        f"{inner.relative_to(folder)} was left out: parts of a table lie in its folder, or in some named as year=2020"
        for inner in found
    ]


def _holds_parquet(folder: Path) -> bool:
    with suppress(PermissionError):  # of a folder that is not read anyway
        return bool(parquet_files(folder))
    return False


def _folders(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith(("_", ".")))


def unread_columns(edges: Sequence[EdgeSource], nodes: Sequence[NodeSource]) -> list[str]:
    """Say which columns of relations are not read: ratings without their stars are another graph."""
    files = {edge.selection.file.path: edge.selection.file for edge in edges}
    selections = [*(edge.selection for edge in edges), *(node.selection for node in nodes)]
    read = {(s.file.path, column) for s in selections for column in (*s.columns.values(), *s.attributes)}
    weighted = {edge.selection.file.path for edge in edges if "weight" in edge.selection.columns}
    told = []
    for path, file in files.items():
        others = [column for column in file.columns if column and (path, column) not in read]
        if others:
            what = f"the columns {listed(others, 4)} were" if others[1:] else f"the column {others[0]} was"
            hint = "" if path in weighted else "; if one is the weight, name it in graph.toml"
            told.append(f"of {path.name}, {what} left out{hint}")
    return told
