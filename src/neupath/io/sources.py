"""Sources of tables, before detection looks at them: a folder, files or tables in memory, and what the user says."""

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from functools import cached_property
from pathlib import Path
from typing import cast

from neupath.errors import SourceError, listed
from neupath.graph.edges import check_duplicates
from neupath.graph.hin import Duplicates
from neupath.io.formats.parquet import is_partition, parquet_files
from neupath.io.graph_toml import GRAPH_TOML, Config, read_config, read_own_config
from neupath.io.plan import ReadOptions
from neupath.io.table_files import TABLE_SUFFIXES, is_data_file, is_in_parts, is_table, open_table, open_tables, stem
from neupath.io.tables import Table

_PROSE = re.compile(r"(readme|licen[cs]e|copying|changelog|notes?|about|citation)\b.*\.txt$", re.IGNORECASE)


@dataclass(frozen=True)
class Source:
    """Tables to recognise, and what the user says of them."""

    tables: Sequence[Table]
    find: Callable[[str], Table]
    """Find a table by the name that graph.toml gives it."""
    where: str
    """What errors call the source."""
    settings: Config
    duplicates: Duplicates | None = None
    """What the caller says of parallel edges, which graph.toml may say too."""
    notes: Sequence[str] = ()
    """What is left out before any table is looked at."""
    in_files: bool = True
    """Whether the tables are in files or a database, not objects of Python: errors then propose a graph.toml."""

    @cached_property
    def options(self) -> ReadOptions:
        """The options of graph.toml and of the caller, with the notes."""
        return replace(options_of(self.settings, self.duplicates), notes=self.notes)


def options_of(settings: Config, duplicates: Duplicates | None) -> ReadOptions:
    """Return the options of a graph.toml; `duplicates` overrides its own."""
    chosen = duplicates or settings.duplicates or "count"
    check_duplicates(chosen)
    return ReadOptions(
        duplicates=cast(Duplicates, chosen),
        take=settings.take,
        undirected=settings.undirected,
        abbreviations=settings.abbreviations,
        missing_ids=settings.missing_ids,
        fold_ids=settings.fold_ids,
    )


def is_table_file(path: Path) -> bool:
    """Whether a path of a folder is a table; a readme is not."""
    return is_table(path) and not _PROSE.match(path.name)


def read_settings(folder: Path, config: str | Path | None) -> Config:
    """Read the graph.toml `config`, or else that of the folder, or else return the defaults."""
    own = folder / GRAPH_TOML
    if config is not None:
        return read_config(Path(config))
    return read_own_config(own) if own.exists() and not own.is_dir() else Config()


def source_of_folder(folder: Path, settings: Config, duplicates: Duplicates | None = None) -> Source:
    """Return the tables of a folder; notes name the files that are left out."""
    if is_in_parts(folder) and not any((folder / name).exists() for name in settings.files):
        whole = folder.resolve() if folder.name in ("", "..") else folder  # its name is that of the table
        return source_of_files([whole], whole.parent, settings, duplicates, where=whole)
    paths = not_ignored(sorted(filter(is_table_file, folder.iterdir())), settings)
    tables = [path for path in paths if not is_data_file(path)] or paths
    notes = [
        f"{path.name} was left out: a .dat file can hold anything, so next to other tables it is read only if "
        f"graph.toml names it"
        for path in paths
        if path not in tables
    ]
    source = source_of_files(tables, folder, settings, duplicates)
    notes += _note_deep_folders(folder, settings)
    return source if settings.names_tables else replace(source, notes=notes)


def source_of_files(
    paths: Sequence[Path],
    folder: Path,
    settings: Config,
    duplicates: Duplicates | None = None,
    where: Path | None = None,
) -> Source:
    """Return the tables in some files; graph.toml names files in `folder`, and errors call the source `where`."""
    used = not_ignored(paths, settings)
    refuse_twice(used)
    if not used and not settings.names_tables:
        content = listed((path.name for path in sorted(folder.iterdir()) if not path.name.startswith(".")), 4)
        raise SourceError(
            f"{folder} has no tables{f' (it has {content})' if content else ''}; put one file per relation there, such "
            f"as movie_actor.csv, or nodes and edges ({', '.join(TABLE_SUFFIXES)}, also gzipped), or name the files in "
            f"graph.toml"
        )
    opened = {table.path: table for path in used for table in open_tables(path, settings.dialect)}
    files = {path: opened[path] for path in not_ignored(opened, settings)}

    def find(name: str) -> Table:
        path = folder / name
        return files.get(path) or files.setdefault(path, open_table(path, settings.dialect))

    return Source(list(files.values()), find, str(where or folder), settings, duplicates)


def not_ignored(paths: Iterable[Path], settings: Config) -> list[Path]:
    """Return the paths whose names no `ignore` of graph.toml matches."""
    return [path for path in paths if not any(fnmatch(path.name, pattern) for pattern in settings.ignore)]


def refuse_twice(paths: Iterable[Path]) -> None:
    """Raise if the same file is given twice, under one name or two: its edges would count twice."""
    seen: dict[object, tuple[int, Path]] = {}
    for number, path in enumerate(path for path in paths if path.exists()):
        for key in (path.resolve(), (path.parent.resolve(), stem(path).lower())):
            first, other = seen.setdefault(key, (number, path))
            if first != number:
                raise SourceError(f"{other} and {path} are the same table; leave one out, or its edges count twice")


def _note_deep_folders(folder: Path, settings: Config) -> list[str]:
    """Note the Parquet files that are too deep in a folder to be parts of its tables."""
    return [
        f"{inner.relative_to(folder)} was left out: the parts of a table must be in its folder, or in folders such as "
        f"year=2020"
        for path in not_ignored(_folders(folder), settings)
        for inner in _folders(path)
        if not is_partition(inner) and _holds_parquet(inner)
    ]


def _holds_parquet(folder: Path) -> bool:
    with suppress(PermissionError):  # the folder is not read anyway
        return bool(parquet_files(folder))
    return False


def _folders(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith(("_", ".")))
