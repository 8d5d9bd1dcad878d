"""Load a graph from whatever holds it: a name, a file, a folder, a store, or an object of another library."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from neupath._runtime.progress import Progress, no_progress
from neupath.errors import SourceError, did_you_mean, listed
from neupath.graph.hin import HIN, Duplicates, check_duplicates
from neupath.io.assembly import read_tables
from neupath.io.config import Config, read_config
from neupath.io.datasets import PUBLIC, fetched_folder, stdlib, toy
from neupath.io.detection import (
    find_triples,
    is_relation,
    options_of,
    read_settings,
    recognise_files,
    recognise_folder,
    refuse_twice,
    with_notes,
)
from neupath.io.formats.hgb import LINKS, NODES, read_hgb
from neupath.io.formats.matlab import read_mat
from neupath.io.interop import GRAPH_SUFFIXES, from_networkx, from_pyg, from_tables, from_triples, read_graph_file
from neupath.io.sources import TableSource
from neupath.io.tables import TABLE_SUFFIXES, TableFile, is_data_file, is_table
from neupath.store import is_store, open_store

BUILT_IN: dict[str, tuple[str, Callable[[Progress], HIN]]] = {
    "toy": ("the worked example of the PathSim paper: authors, papers, venues", lambda _: toy()),
    "stdlib": ("Python's own standard library: modules, classes, methods, bases, imports", stdlib),
}
"""Graphs that come with neupath: a name -> what it is, and the function that makes it."""


def load(
    source: Any,
    *,
    config: str | Path | None = None,
    duplicates: Duplicates | None = None,
    data: str | Path | None = None,
    as_of: int | None = None,
    progress: Progress = no_progress,
) -> HIN:
    """Load a graph.

    Parameters
    ----------
    source
        One of: the name of a built-in graph (toy, stdlib), of a fetched one, or of one in the folder `data`; a store;
        a folder of tables; a list of table files; one file of triples; a .mat, GraphML, GEXF or GML file; a mapping
        of pandas or Arrow tables, or one such table of triples; a NetworkX graph; a PyTorch Geometric HeteroData.
    config
        A graph.toml that describes a folder or file, instead of the one in the folder.
    duplicates
        What parallel edges mean: "count" (the default) adds their weights, "drop" takes the first, "error" raises.
    data
        A folder of graphs that can be loaded by name; by default the environment variable NEUPATH_DATA.
    as_of
        An earlier version of a store.
    progress
        Called with the stage, how much of it is done, and how much there is.

    >>> load("toy").schema.node_types
    ('author', 'paper', 'venue')

    """
    check_duplicates(duplicates or "count")
    if as_of is not None:
        _refuse_options(source, config, duplicates)
        return _load_version(source, as_of, data)
    if isinstance(source, HIN):
        return source
    if isinstance(source, list | tuple):
        return _load_files(source, config, duplicates)
    if not isinstance(source, str | os.PathLike):
        return _load_object(source, duplicates or "count")
    if not str(source).strip():
        raise SourceError(f"no graph is named; give a folder, a file, or a built-in graph: {listed(BUILT_IN)}")
    if source in BUILT_IN:
        if config is not None:
            raise SourceError(f"{source} is built in and takes no graph.toml, but {config} was given; leave it out")
        return BUILT_IN[str(source)][1](progress)
    with _system_errors(source):
        return _load_path(_locate(Path(source), data), config, duplicates)


def find_tables(
    source: str | os.PathLike[str], config: str | Path | None, duplicates: Duplicates | None, data: str | Path | None
) -> TableSource | None:
    """Return the tables of a source without reading them, or None if it is something else than tables."""
    if source in BUILT_IN or not str(source).strip():
        return None
    with _system_errors(source):
        path = _locate(Path(source), data)
        return _recognise(path, config, duplicates) if _format_of(path, config) == "tables" else None


# ---- What a path holds ---------------------------------------------------------------------------
Format = Literal["store", "matlab", "graph file", "benchmark", "tables"]


def _locate(path: Path, data: str | Path | None) -> Path:
    """Return the path of a graph: as it is, or by name in the data folder or among the fetched graphs."""
    if path.exists():
        return path
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


def _format_of(path: Path, config: str | Path | None) -> Format | None:
    """Recognise the format of a file or folder; None means that neupath cannot read it."""
    if is_store(path):
        return "store"
    if _matlab_file(path) is not None:
        return "matlab"
    if path.is_file() and path.name.lower().removesuffix(".gz").endswith(GRAPH_SUFFIXES):
        return "graph file"
    if (path / NODES).is_file() and (path / LINKS).is_file():
        # graph.toml may say that these are ordinary tables
        return "tables" if read_settings(path, config).names_tables else "benchmark"
    return "tables" if path.is_dir() or is_table(path) else None


def _matlab_file(path: Path) -> Path | None:
    """Return the .mat file that a source is, or that is alone in its folder."""
    if not path.is_dir():
        return path if path.suffix.lower() == ".mat" else None
    files = sorted(path.glob("*.mat"))
    tables = [file for file in path.iterdir() if is_table(file) and file.is_file() and not is_data_file(file)]
    return files[0] if len(files) == 1 and not tables else None


def _recognise(path: Path, config: str | Path | None, duplicates: Duplicates | None) -> TableSource:
    if path.is_dir():
        return recognise_folder(path, config, duplicates)
    settings = _read_optional(config)
    if settings.triples is None and (settings.names_tables or is_relation(TableFile(path, settings.dialect))):
        return recognise_files([path], path.parent, settings, duplicates)
    return with_notes(find_triples([path], path.parent, settings, options_of(settings, duplicates)))


def _read_optional(config: str | Path | None) -> Config:
    return Config() if config is None else read_config(Path(config))


# ---- Loading each kind of source -----------------------------------------------------------------
def _load_path(path: Path, config: str | Path | None, duplicates: Duplicates | None) -> HIN:
    match _format_of(path, config):
        case "store":
            _refuse_options(path, config, duplicates)
            return open_store(path).hin()
        case "matlab":
            return read_mat(_matlab_file(path) or path, _read_optional(config), duplicates)
        case "graph file":
            if config is not None:
                raise SourceError(f"{path} describes itself and takes no graph.toml, but {config} was given")
            return read_graph_file(path, duplicates or "count")
        case "benchmark":
            return read_hgb(path, options_of(read_settings(path, config), duplicates))
        case "tables":
            return read_tables(_recognise(path, config, duplicates))
    raise SourceError(
        f"{path} is not a graph that neupath can read; give a folder of tables, a file of triples "
        f"({', '.join(TABLE_SUFFIXES)}, also gzipped), {', '.join(GRAPH_SUFFIXES)} or .mat, or read it in Python and "
        f"give neupath.load the NetworkX graph, the HeteroData or the data frames"
    )


def _load_version(source: object, as_of: int, data: str | Path | None) -> HIN:
    place = _locate(Path(source), data) if isinstance(source, str | os.PathLike) and source not in BUILT_IN else None
    if place is None or not is_store(place):
        raise SourceError(
            f"{str(source)[:200]} is not a store, so it has no earlier versions; leave out ‹as_of› {as_of}"
        )
    return open_store(place).hin(as_of)


def _load_files(paths: Sequence[Any], config: str | Path | None, duplicates: Duplicates | None) -> HIN:
    for path in paths:
        if not isinstance(path, str | os.PathLike):
            raise SourceError(
                f"a list of sources holds table files, but this one holds a {type(path).__name__}; give tables as a "
                f'mapping, such as {{("user", "item"): table}}, and triples as one table of three columns'
            )
    if not paths:
        raise SourceError("the list of table files is empty; give at least one relation, such as movie_actor.csv")
    files = [Path(path) for path in paths]
    refuse_twice(files)
    for file in files:
        if not is_table(file):
            raise SourceError(f"{file} is not a table file" if file.exists() else f"no such file: {file}")
    return read_tables(recognise_files(files, files[0].parent, _read_optional(config), duplicates))


def _load_object(source: object, duplicates: Duplicates) -> HIN:
    library = type(source).__module__.split(".")[0]
    if isinstance(source, Mapping):
        return from_tables(source, duplicates=duplicates)
    if library == "networkx":
        return from_networkx(source, duplicates=duplicates)  # type: ignore[arg-type]
    if library == "torch_geometric" and hasattr(source, "edge_types"):
        return from_pyg(source, duplicates=duplicates)
    if library in ("pandas", "pyarrow", "polars"):
        return from_triples(source, duplicates=duplicates)
    raise SourceError(
        f"cannot load a graph from a {type(source).__name__}; help(neupath.load) lists what can be loaded"
    )


def _refuse_options(store: object, config: object, duplicates: object) -> None:
    if config is not None or duplicates is not None:
        raise SourceError(
            f"{store} is a store, and ‹config› and ‹duplicates› took effect when it was imported; leave them out"
        )


@contextmanager
def _system_errors(source: object) -> Iterator[None]:
    """Turn the errors of the system about a source into a SourceError."""
    try:
        yield
    except PermissionError as error:
        raise SourceError(f"no permission to read {error.filename or source}") from error
    except (OSError, ValueError) as error:
        raise SourceError(f"cannot read {str(source)[:200]!r}: {getattr(error, 'strerror', None) or error}") from error
