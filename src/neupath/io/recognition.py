"""Recognition: where a source is, and whether it is a name, a path, a URL, a list of files, or an object in memory."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from neupath._runtime.progress import Progress
from neupath.errors import SourceError, did_you_mean, listed
from neupath.graph.hin import HIN, Duplicates
from neupath.io.assemble import read_tables
from neupath.io.datasets import PUBLIC, fetched_folder
from neupath.io.detect import recognise_files
from neupath.io.formats.database_drivers import is_database_url
from neupath.io.formats.databases import TableChoice, read_database
from neupath.io.graph_toml import Config, read_config
from neupath.io.interop import load_object
from neupath.io.load import BUILT_IN
from neupath.io.object_stores import is_object_url, local_copy
from neupath.io.plan import Plan
from neupath.io.registry import Request, find_format, no_database, refuse_options
from neupath.io.sources import refuse_twice
from neupath.io.table_files import is_table
from neupath.store import is_store, open_store


def load_source(  # noqa: PLR0911  one for each kind of source
    source: Any,
    *,
    config: str | Path | None,
    duplicates: Duplicates | None,
    data: str | Path | None,
    choice: TableChoice,
    as_of: int | None,
    progress: Progress,
) -> HIN:
    """Load a graph; the parameters are those of `load`."""
    if _is_url(source) and is_object_url(source):
        options: dict[str, Any] = {"config": config, "duplicates": duplicates, "as_of": as_of, "choice": choice}
        return _load_objects(str(source), options, progress)
    if as_of is not None:
        refuse_options(source, config, duplicates)
        return _load_version(source, as_of, data)
    if _is_url(source) and is_database_url(source):
        return read_tables(read_database(str(source), choice, _read_optional(config), duplicates, progress))
    if isinstance(source, str | os.PathLike) and source not in BUILT_IN and str(source).strip():
        with _system_errors(source):
            request = Request(locate(Path(source), data), config, duplicates, choice, progress)
            graph = find_format(request).read(request)
            return graph if isinstance(graph, HIN) else read_tables(graph)
    if choice != TableChoice():
        raise no_database(source)
    if isinstance(source, list | tuple) and not any(isinstance(item, tuple | list) for item in source):
        return read_tables(_recognise_list(source, config, duplicates))
    if not isinstance(source, str | os.PathLike):
        return load_object(source, config, duplicates)
    if not str(source).strip():
        raise SourceError(f"no graph is named; give a folder, a file, or a built-in graph: {listed(BUILT_IN)}")
    if config is not None:
        raise SourceError(f"{source} is built in and takes no graph.toml, but {config} was given; leave it out")
    return BUILT_IN[str(source)][1](progress)


def find_tables(
    source: str | os.PathLike[str], config: str | Path | None, duplicates: Duplicates | None, data: str | Path | None
) -> Plan | None:
    """Return the tables of a source without reading them, or None if it is something else than tables."""
    if source in BUILT_IN or not str(source).strip():
        return None
    if _is_url(source) and (is_object_url(source) or is_database_url(source)):
        return None
    with _system_errors(source):
        request = Request(locate(Path(source), data), config, duplicates)
        found = find_format(request)
        return cast(Plan, found.read(request)) if found.is_streamed else None


def is_imported(source: object, data: str | Path | None) -> bool:
    """Whether a source is a store, whose notes were shown when it was imported."""
    if not isinstance(source, str | os.PathLike):
        return False
    with suppress(SourceError):  # it is a URL
        return is_store(locate(Path(source), data))
    return False


def locate(path: Path, data: str | Path | None) -> Path:
    """Return the path of a graph: as it is, or by name in the data folder or among the fetched graphs."""
    if path.exists():
        return path
    if re.match(r"https?:/", str(path), re.IGNORECASE):
        address = re.sub(r"^(\w+):/+", r"\1://", str(path))
        raise SourceError(f"{address} is a web address, and neupath reads files; download it with curl -LO {address}")
    root = data or os.environ.get("NEUPATH_DATA")
    places = [Path(root) / path] if root else []
    places += [fetched_folder(str(path))] if str(path) in PUBLIC else []
    for place in places:
        if place.exists():
            return place
    if str(path) in PUBLIC:
        raise SourceError(
            f"the public graph {str(path)!r} is not here yet; run: neupath datasets get {path} "
            f"(or set NEUPATH_DATA to a folder that holds it)"
        )
    raise SourceError(
        f"no such file or folder: {path} (the built-in graphs are {listed(BUILT_IN)})"
        f"{did_you_mean(str(path), [*BUILT_IN, *PUBLIC])}"
    )


def _is_url(source: object) -> bool:
    return isinstance(source, str) and ":/" in source


def _read_optional(config: str | Path | None) -> Config:
    return Config() if config is None else read_config(Path(config))


def _load_objects(url: str, options: Mapping[str, Any], progress: Progress) -> HIN:
    """Load a graph from a copy of the objects of a store."""
    with local_copy(url, progress) as path:
        hin = load_source(path, **options, data=None, progress=progress)
        return replace(hin, notes=tuple(note.replace(str(path), url.rstrip("/")) for note in hin.notes))


def _load_version(source: object, as_of: int, data: str | Path | None) -> HIN:
    by_path = isinstance(source, str | os.PathLike) and source not in BUILT_IN and not is_database_url(source)
    place = locate(Path(cast(str, source)), data) if by_path else None
    if place is None or not is_store(place):
        raise SourceError(
            f"{str(source)[:200]} is not a store, so it has no earlier versions; leave out ‹as_of› {as_of}"
        )
    return open_store(place).hin(as_of)


def _recognise_list(paths: Sequence[Any], config: str | Path | None, duplicates: Duplicates | None) -> Plan:
    """Recognise a list of table files."""
    for path in paths:
        if not isinstance(path, str | os.PathLike):
            raise SourceError(
                f"a list of sources holds table files, but this one holds a {type(path).__name__}; give tables as a "
                f'mapping, such as {{("user", "item"): table}}, and triples as (head, relation, tail) tuples'
            )
    if not paths:
        raise SourceError("the list of table files is empty; give at least one relation, such as movie_actor.csv")
    files = [Path(path) for path in paths]
    refuse_twice(files)
    for file in files:
        if not is_table(file):
            raise SourceError(f"{file} is not a table file" if file.exists() else f"no such file: {file}")
    return recognise_files(files, files[0].parent, _read_optional(config), duplicates)


@contextmanager
def _system_errors(source: object) -> Iterator[None]:
    """Turn the errors of the system about a source into a SourceError."""
    try:
        yield
    except PermissionError as error:
        raise SourceError(f"no permission to read {error.filename or source}") from error
    except (OSError, ValueError) as error:
        raise SourceError(f"cannot read {str(source)[:200]!r}: {getattr(error, 'strerror', None) or error}") from error
