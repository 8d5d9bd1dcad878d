"""load: whatever a graph is given as, a HIN."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from neupath._runtime.progress import Progress, no_progress
from neupath.errors import SourceError, did_you_mean, listed
from neupath.graph.hin import HIN, Duplicates, Edges, check_duplicates
from neupath.graph.nodes import Nodes
from neupath.graph.schema import Relation
from neupath.io.config import Config, read_config
from neupath.io.datasets import PUBLIC, fetched_folder, stdlib
from neupath.io.detection import is_relation
from neupath.io.folder import (
    choices_of,
    find_triples,
    recognise_files,
    recognise_folder,
    refuse_twice,
    settings_of,
    with_notes,
)
from neupath.io.formats.hgb import is_hgb, read_hgb
from neupath.io.formats.matlab import read_mat
from neupath.io.interop import (
    GRAPH_SUFFIXES,
    from_networkx,
    from_pyg,
    from_tables,
    from_triples,
    is_graph_file,
    read_graph_file,
)
from neupath.io.sources import TableSource, read_tables
from neupath.io.tables import TABLE_SUFFIXES, TableFile, is_data_file, is_table
from neupath.store import is_store, open_store

# ---- toy


VENUES = ("SIGMOD", "VLDB", "ICDE", "KDD")
PAPERS_AT = {
    "Mike": (2, 1, 0, 0),
    "Jim": (50, 20, 0, 0),
    "Mary": (2, 0, 1, 0),
    "Bob": (2, 1, 0, 0),
    "Ann": (0, 0, 1, 1),
}
"""How many papers each author has at each venue; every paper has one author."""


def toy() -> HIN:
    """Return five authors, their papers and four venues.

    >>> toy().num_nodes("paper")
    81
    """
    authors = np.array([a for a, row in enumerate(PAPERS_AT.values()) for papers in row for _ in range(papers)])
    venues = np.array([v for row in PAPERS_AT.values() for v, papers in enumerate(row) for _ in range(papers)])
    papers = np.arange(len(authors))
    people = list(PAPERS_AT)
    numbers = {author: count(1) for author in people}
    paper_ids = [f"{people[a]}-{VENUES[v]}-{next(numbers[people[a]])}" for a, v in zip(authors, venues, strict=True)]
    return HIN.build(
        [Nodes("author", pa.array(people)), Nodes("paper", pa.array(paper_ids)), Nodes("venue", pa.array(VENUES))],
        [
            Edges(Relation("author", "writes", "paper"), authors, papers),
            Edges(Relation("paper", "appears_at", "venue"), papers, venues),
        ],
    )


# ---- load


BUILT_IN: dict[str, tuple[str, Callable[[Progress], HIN]]] = {
    "toy": ("the worked example of the PathSim paper: authors, papers, venues", lambda _: toy()),
    "stdlib": ("Python's own standard library: modules, classes, methods, bases, imports", stdlib),
}


def load(
    source: Any,
    *,
    config: str | Path | None = None,
    duplicates: Duplicates | None = None,
    data: str | Path | None = None,
    as_of: int | None = None,
    progress: Progress = no_progress,
) -> HIN:
    """Read a graph.

    `source` is a built-in name (toy, stdlib); the name of a graph that lies in the folder `data` or NEUPATH_DATA, or
    was fetched; a store; a folder of tables; a list of table files; one file of triples; a .mat, GraphML, GEXF or GML
    file; or an object: a mapping of pandas or Arrow tables, one such table of triples, a NetworkX graph, a PyTorch
    Geometric HeteroData. `config` is a graph.toml for a folder or file. `duplicates` says what parallel edges mean:
    "count" (the default), "drop", "error". `as_of` is an earlier version of a store.

    >>> load("toy").schema.node_types
    ('author', 'paper', 'venue')
    """
    check_duplicates(duplicates or "count")
    if as_of is not None:
        _refuse_choices(source, config, duplicates)
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
    with _explained(source):
        return _load_path(_locate(Path(source), data), config, duplicates)


@contextmanager
def _explained(source: object) -> Iterator[None]:
    """Turn what the system says of a source into a sentence."""
    try:
        yield
    except PermissionError as error:
        raise SourceError(f"no permission to read {error.filename or source}") from error
    except (OSError, ValueError) as error:
        raise SourceError(f"cannot read {str(source)[:200]!r}: {getattr(error, 'strerror', None) or error}") from error


def _refuse_choices(store: object, config: object, duplicates: object) -> None:
    if config is not None or duplicates is not None:
        raise SourceError(f"{store} is a store, which was read when it was made; leave out config and duplicates")


def _load_version(source: object, as_of: int, data: str | Path | None) -> HIN:
    """Read a store as it was in an earlier version."""
    place = _locate(Path(source), data) if isinstance(source, str | os.PathLike) and source not in BUILT_IN else None
    if place is None or not is_store(place):
        raise SourceError(f"{str(source)[:200]} is no store, so it has no earlier versions; leave out as_of {as_of}")
    return open_store(place).hin(as_of)


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
        f"cannot read a graph from a {type(source).__name__}; see help(neupath.load) for what can be read"
    )


def _locate(path: Path, data: str | Path | None) -> Path:
    """Return the path of a graph: as given, or by name in the data folder or among the fetched ones."""
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
    names = [*BUILT_IN, *PUBLIC]
    raise SourceError(
        f"no such file or folder: {path} (and the built-in graphs are {listed(BUILT_IN)})"
        f"{did_you_mean(str(path), names)}"
    )


def find_tables(
    source: str | os.PathLike[str], config: str | Path | None, duplicates: Duplicates | None, data: str | Path | None
) -> TableSource | None:
    """Return what the tables of a source are, or nothing where it is something else than tables."""
    if source in BUILT_IN or not str(source).strip():
        return None
    with _explained(source):
        return _recognise(_locate(Path(source), data), config, duplicates)


def _load_path(path: Path, config: str | Path | None, duplicates: Duplicates | None) -> HIN:
    if is_store(path):
        _refuse_choices(path, config, duplicates)
        return open_store(path).hin()
    matlab = _matlab_file(path)
    if matlab is not None:
        return read_mat(matlab, _settings(config), duplicates)
    if is_graph_file(path):
        if config is not None:
            raise SourceError(f"{path} says itself what it holds and takes no graph.toml, but {config} was given")
        return read_graph_file(path, duplicates or "count")
    benchmark = _benchmark_settings(path, config)
    if benchmark is not None:
        return read_hgb(path, choices_of(benchmark, duplicates))
    tables = _recognise(path, config, duplicates)
    if tables is not None:
        return read_tables(tables)
    raise SourceError(
        f"{path} is not a graph I can read; give a folder of tables, a file of triples ({', '.join(TABLE_SUFFIXES)}, "
        f"also gzipped), {', '.join(GRAPH_SUFFIXES)} or .mat, or read it in Python and give neupath.load the NetworkX "
        f"graph, the HeteroData or the data frames"
    )


def _matlab_file(path: Path) -> Path | None:
    """Return the .mat file that a source is, or that is alone in its folder."""
    if not path.is_dir():
        return path if path.suffix.lower() == ".mat" else None
    found = sorted(path.glob("*.mat"))
    tables = [file for file in path.iterdir() if is_table(file) and file.is_file() and not is_data_file(file)]
    return found[0] if len(found) == 1 and not tables else None


def _benchmark_settings(path: Path, config: str | Path | None) -> Config | None:
    """Return what graph.toml says of a benchmark's folder, or nothing where it is other tables, or says that it is."""
    if not is_hgb(path):
        return None
    settings = settings_of(path, None if config is None else Path(config))
    return None if settings.names_tables else settings


def _recognise(path: Path, config: str | Path | None, duplicates: Duplicates | None) -> TableSource | None:
    if is_store(path) or _matlab_file(path) is not None or _benchmark_settings(path, config) is not None:
        return None
    if path.is_dir():
        return recognise_folder(path, None if config is None else Path(config), duplicates)
    if not is_table(path):
        return None
    settings = _settings(config)
    if settings.triples is None and (settings.names_tables or is_relation(TableFile(path, settings.dialect))):
        return recognise_files([path], path.parent, settings, duplicates)
    return with_notes(find_triples([path], path.parent, settings, choices_of(settings, duplicates)))


def _settings(config: str | Path | None) -> Config:
    return Config() if config is None else read_config(Path(config))


def _load_files(given: Sequence[Any], config: str | Path | None, duplicates: Duplicates | None) -> HIN:
    for one in given:
        if not isinstance(one, str | os.PathLike):
            raise SourceError(
                f"a list of sources holds table files, and this has a {type(one).__name__}; give tables as a mapping, "
                f'such as {{("user", "item"): table}}, and triples as one table of three columns'
            )
    if not given:
        raise SourceError("the list of table files is empty; give at least one relation, such as movie_actor.csv")
    paths = [Path(path) for path in given]
    refuse_twice(paths)
    for path in paths:
        if not is_table(path):
            raise SourceError(f"{path} is not a table file" if path.exists() else f"no such file: {path}")
    settings = _settings(config)
    return read_tables(recognise_files(paths, paths[0].parent, settings, duplicates))
