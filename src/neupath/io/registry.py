"""Find a source and its format, and read it: `load_source` gives the graph, `find_tables` the tables and their Plan.

A new format is a file in `formats`, and a line of `FORMATS`. These are asked in their order, and the first that
recognises a file or folder reads it.
"""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from neupath._runtime.object_stores import ObjectFolder, is_object_url, local_copy
from neupath._runtime.plugins import Plugins, Registry
from neupath._runtime.progress import Progress, no_progress
from neupath.engine.files import MANIFEST, is_index
from neupath.errors import NeuPathError, SourceError, did_you_mean, first_line, listed
from neupath.graph.hin import HIN, Duplicates
from neupath.io.assemble import read_tables
from neupath.io.datasets import PUBLIC, fetched_folder
from neupath.io.detect import recognise_files, recognise_folder
from neupath.io.formats.apoc import KEYS, keys_of, read_exports
from neupath.io.formats.database_drivers import DATABASE_SUFFIXES, database_format, is_database_url
from neupath.io.formats.databases import TableChoice, read_database
from neupath.io.formats.dblp import is_dblp, read_dblp
from neupath.io.formats.graph_files import GRAPH_SUFFIXES, is_graph_file, read_graph_file
from neupath.io.formats.hgb import LINKS, NODES, read_hgb
from neupath.io.formats.json_records import read_json
from neupath.io.formats.json_values import JSON_SUFFIXES, is_json
from neupath.io.formats.matlab import read_mat
from neupath.io.formats.rdf import read_rdf
from neupath.io.formats.rdf_statements import RDF_SUFFIXES, is_rdf
from neupath.io.graph_toml import Config, read_config
from neupath.io.interop import load_object, networkx_plan
from neupath.io.load import BUILT_IN
from neupath.io.plan import Plan, ReadOptions
from neupath.io.sources import is_table_file, not_ignored, options_of, read_settings, refuse_twice
from neupath.io.table_files import TABLE_SUFFIXES, is_data_file, is_table, is_text_table
from neupath.store import is_store, open_store


@dataclass(frozen=True)
class Request:
    """A file or folder to read, and the user's settings for it."""

    path: Path
    config: str | Path | None = None
    duplicates: Duplicates | None = None
    choice: TableChoice = field(default_factory=TableChoice)
    as_of: int | None = None
    progress: Progress = no_progress

    @cached_property
    def settings(self) -> Config:
        """The graph.toml that was given, or else that of the folder."""
        return read_settings(self.path, self.config) if self.path.is_dir() else _read_optional(self.config)

    @property
    def options(self) -> ReadOptions:
        """The options of the graph.toml and of the caller."""
        return options_of(self.settings, self.duplicates)


@dataclass(frozen=True)
class Format:
    """A format of files or folders."""

    name: str
    recognises: Callable[[Request], Any]
    """Whether a path is of this format, or the files of it that the path holds."""
    read: Callable[[Request, Any], Plan | HIN]
    """Takes what `recognises` returned, and returns tables with their plan; a store and a plug-in may give a graph."""
    suffixes: Sequence[str] = ()
    """The endings of its files."""
    is_streamed: bool = False
    """Whether its tables are read only when they are needed, so that `import` streams them and `init` shows them."""


def _read_optional(config: str | Path | None) -> Config:
    return Config() if config is None else read_config(Path(config))


# ---- Any source ----------------------------------------------------------------------------------
def load_source(
    source: Any,
    *,
    config: str | Path | None,
    duplicates: Duplicates | None,
    data: str | Path | None,
    choice: TableChoice,
    as_of: int | None,
    progress: Progress,
) -> tuple[HIN, bool]:
    """Load a graph, and say whether it is a store, whose notes were shown at its import; for parameters see `load`."""
    if is_object_url(source):
        return _load_objects(str(source), Request(Path(), config, duplicates, choice, as_of, progress))
    is_address = is_database_url(source)
    if isinstance(source, str | os.PathLike) and source not in BUILT_IN and str(source).strip() and not is_address:
        with _system_errors(source):
            return _load_path(Request(locate(Path(source), data), config, duplicates, choice, as_of, progress))
    if as_of is not None:
        raise _no_version(source, as_of)
    if choice != TableChoice() and not is_address:
        raise _no_database(source)
    if is_address:
        return read_tables(read_database(str(source), choice, _read_optional(config), duplicates, progress)), False
    if not isinstance(source, str | os.PathLike):
        if isinstance(source, list | tuple) and not any(isinstance(item, tuple | list) for item in source):
            return read_tables(_recognise_list(source, config, duplicates)), False
        return load_object(source, config, duplicates), False
    if not str(source).strip():
        raise SourceError(f"no graph is named; give a folder, a file, or a built-in graph: {listed(BUILT_IN)}")
    if config is not None:
        raise SourceError(f"{source} is built in and takes no graph.toml, but {config} was given; leave it out")
    return BUILT_IN[str(source)][1](progress), False


def _load_objects(url: str, request: Request) -> tuple[HIN, bool]:
    """Load what an object store has: an index in place, anything else from a copy."""
    if ObjectFolder(url).read(MANIFEST) is not None:
        return _nodes_of_index(url), True
    with local_copy(url, request.progress) as path, _system_errors(url):
        hin, is_imported = _load_path(replace(request, path=path))
        return replace(hin, notes=tuple(note.replace(str(path), url.rstrip("/")) for note in hin.notes)), is_imported


def _nodes_of_index(source: str | Path) -> HIN:
    """Return the nodes of a prepared index, a graph without edges that is searched by the index."""
    from neupath.engine.prepared import open_index  # takes a while to import

    return open_index(source).hin_


def _load_path(request: Request) -> tuple[HIN, bool]:
    format_, files = find_format(request)
    graph = format_.read(request, files)
    return graph if isinstance(graph, HIN) else read_tables(graph), format_.name in ("store", "index")


def find_tables(
    source: str | os.PathLike[str], config: str | Path | None, duplicates: Duplicates | None, data: str | Path | None
) -> Plan | None:
    """Return the tables of a source without reading them, or None if it is something else than tables."""
    if source in BUILT_IN or not str(source).strip() or is_object_url(source) or is_database_url(source):
        return None
    with _system_errors(source):
        request = Request(locate(Path(source), data), config, duplicates)
        format_, files = find_format(request)
        return cast(Plan, format_.read(request, files)) if format_.is_streamed else None


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


# ---- Databases, stores and files that describe themselves ----------------------------------------
def _read_database(request: Request, _: object) -> Plan:
    return read_database(request.path, request.choice, request.settings, request.duplicates, request.progress)


def _read_store(request: Request, _: object) -> HIN:
    if request.config is not None or request.duplicates is not None:
        raise SourceError(
            f"{request.path} is a store, and ‹config› and ‹duplicates› took effect when it was imported; leave them out"
        )
    return open_store(request.path).hin(request.as_of)


def _matlab_file(request: Request) -> Path | None:
    """Return the .mat file that a source is, or that is alone in its folder."""
    path = request.path
    if not path.is_dir():
        return path if path.suffix.lower() == ".mat" else None
    files = sorted(path.glob("*.mat"))
    tables = [file for file in path.iterdir() if is_table(file) and file.is_file() and not is_data_file(file)]
    return files[0] if len(files) == 1 and not tables else None


def _read_matlab(request: Request, file: Path) -> HIN:
    settings = _read_optional(request.config)  # that of a folder is for its tables
    return read_mat(file, settings, request.duplicates)


def _read_graph_file(request: Request, _: object) -> Plan:
    if request.config is not None:
        raise SourceError(f"{request.path} describes itself and takes no graph.toml, but {request.config} was given")
    return read_graph_file(request.path, request.duplicates or "count")


def _is_benchmark(request: Request) -> bool:
    both = (request.path / NODES).is_file() and (request.path / LINKS).is_file()
    return both and not request.settings.names_tables  # graph.toml may say that these are ordinary tables


def _exports(request: Request) -> list[Path]:
    """Return the files of apoc.export.csv that a path holds, none if graph.toml says that they are ordinary tables."""
    tables = [table for table in _files(request, is_text_table) if table == request.path or is_table_file(table)]
    keys = {table: keys_of(table) for table in tables if not request.settings.names_tables}
    return [table for table in keys if keys[table]] if set().union(*keys.values()) == {*KEYS} else []


def _read_exports(request: Request, files: Sequence[Path]) -> Plan:
    others = [file for file in _files(request, is_text_table) if file not in files and is_table_file(file)]
    return read_exports(files, replace(request.options, notes=_left_out(others, files[0].name)))


def _left_out(files: Sequence[Path], read: str) -> list[str]:
    return [f"{file.name} was left out: the graph is read from {read}" for file in files]


# ---- RDF, JSON and DBLP's XML --------------------------------------------------------------------
def _files(request: Request, is_kind: Callable[[Path], bool]) -> list[Path]:
    """Return the files of a kind that a path holds: the file itself, or those of a folder without the ignored ones."""
    if not request.path.is_dir():
        return [request.path] if is_kind(request.path) else []
    return not_ignored(sorted(filter(is_kind, request.path.iterdir())), request.settings)


def _files_without_tables(request: Request, is_kind: Callable[[Path], bool]) -> list[Path]:
    """Return the files of a kind that a path holds, none if it is a folder that is read as tables."""
    files = _files(request, is_kind)
    if files and request.path.is_dir():
        has_tables = any(map(is_table_file, request.path.iterdir())) or request.settings.names_tables
        return [] if has_tables else files
    return files


def _statement_options(request: Request, *, takes_rdf: bool = False) -> ReadOptions:
    """Return the options for what is no table; raise if the graph.toml has keys for tables."""
    path, settings = request.path, request.settings
    if settings.names_tables or (settings.rdf is not None and not takes_rdf):
        keys = "[nodes], [[edges]], [pair] and [triples]" if settings.names_tables else "[rdf]"
        raise SourceError(
            f"the graph.toml has {keys}, which describe {'tables' if settings.names_tables else 'RDF'}, but {path} "
            f"is not; leave them out"
        )
    if settings.missing_ids or settings.fold_ids:
        key = "fold_ids = true" if settings.fold_ids else f"missing_ids = {settings.missing_ids}"
        raise SourceError(
            f"the graph.toml has {key}, which is for ids in tables and databases, and {path} is neither; change the "
            f"ids in the file"
        )
    return request.options


def _read_rdf(request: Request, files: Sequence[Path]) -> HIN:
    if records := _files(request, is_json):
        raise SourceError(
            f"{request.path} has RDF ({files[0].name}) and JSON ({records[0].name}); put each into a folder of its "
            f"own, or name the files to skip under ignore in graph.toml"
        )
    options = _statement_options(request, takes_rdf=True)
    if request.duplicates is None and request.settings.duplicates is None:
        options = replace(options, duplicates="drop")  # the same statement twice is one statement
    return read_rdf(files, request.settings.rdf, options, request.progress)


def _read_json(request: Request, files: Sequence[Path]) -> Plan:
    options = replace(_statement_options(request), in_tables=False)
    content = read_json(files, options, request.progress)
    return content if isinstance(content, Plan) else networkx_plan(content, duplicates=options.duplicates)


# ---- Tables --------------------------------------------------------------------------------------
def _read_tables(request: Request, _: object) -> Plan:
    path = request.path
    if not path.is_dir():
        return recognise_files([path], path.parent, request.settings, request.duplicates, where=path)
    plan = recognise_folder(path, request.config, request.duplicates)
    notes = _left_out([*_files(request, is_rdf), *_files(request, is_json)], "the tables beside it")
    return replace(plan, options=replace(plan.options, notes=[*plan.options.notes, *notes]))


# ---- Readers of installed packages ---------------------------------------------------------------
Reader = Callable[[Path], Plan | HIN]


def _check_plugin(name: str, reader: Any) -> str | None:
    if not callable(reader):
        return "it is no function that takes a path"
    return "the name is the ending of a file, without a dot" if "." in name else None


def _suffix(path: Path) -> str:
    return path.suffix.lower().removeprefix(".")


def _read_by_plugin(request: Request, _: object) -> Plan | HIN:
    path, package = request.path, READERS.package_of(_suffix(request.path))
    if request.config is not None or request.duplicates is not None:
        raise SourceError(f"{path} is read by the package {package}, without ‹config› and ‹duplicates›; leave them out")
    try:
        graph = READERS[_suffix(path)](path)
    except (NeuPathError, MemoryError):
        raise
    except Exception as error:
        reason = f"{type(error).__name__}: {first_line(error)}"
        raise SourceError(f"{path} cannot be read by the package {package}: {reason}") from error
    if not isinstance(graph, Plan | HIN):
        raise SourceError(f"the package {package} read {path} as a {type(graph).__name__} and not as a HIN; update it")
    return graph


# ---- All formats ---------------------------------------------------------------------------------
FORMATS: tuple[Format, ...] = (
    Format("database", lambda request: database_format(request.path), _read_database, DATABASE_SUFFIXES),
    Format("store", lambda request: is_store(request.path), _read_store),
    Format("index", lambda request: is_index(request.path), lambda request, _: _nodes_of_index(request.path)),
    Format("MATLAB", _matlab_file, _read_matlab, (".mat",)),
    Format("graph file", lambda request: is_graph_file(request.path), _read_graph_file, GRAPH_SUFFIXES),
    Format("HGB", _is_benchmark, lambda request, _: read_hgb(request.path, request.options)),
    Format("apoc.export.csv", _exports, _read_exports),
    Format(
        "DBLP",
        lambda request: is_dblp(request.path),
        lambda request, _: read_dblp(request.path, _statement_options(request), request.progress),
    ),
    Format("RDF", lambda request: _files_without_tables(request, is_rdf), _read_rdf, RDF_SUFFIXES),
    Format("JSON", lambda request: _files_without_tables(request, is_json), _read_json, JSON_SUFFIXES),
    Format(
        "tables",
        lambda request: request.path.is_dir() or is_table(request.path),
        _read_tables,
        TABLE_SUFFIXES,
        is_streamed=True,
    ),
    Format("plug-in", lambda request: _suffix(request.path) in READERS, _read_by_plugin),
)

_SUFFIXES = [suffix.removeprefix(".") for each in FORMATS for suffix in each.suffixes]
READERS: Registry[Reader] = Registry({}, Plugins("neupath.readers", _check_plugin, ["gz", *_SUFFIXES]))
"""Functions of plug-ins that read a file, by its ending, such as "gdf"; neupath's own formats come first."""


def find_format(request: Request) -> tuple[Format, Any]:
    """Return the format of a path and its files; raise if neupath cannot read it, or not with these options."""
    for format_ in FORMATS:
        if files := format_.recognises(request):
            if request.choice != TableChoice() and format_.name != "database":
                raise _no_database(request.path)
            if request.as_of is not None and format_.name != "store":
                raise _no_version(request.path, request.as_of)
            return format_, files
    raise _unreadable(request.path)


def _no_database(source: object) -> SourceError:
    what = "is not a database, and ‹schema› and ‹tables› choose tables of one; leave them out"
    return SourceError(f"{str(source)[:200]} {what}")


def _no_version(source: object, as_of: int) -> SourceError:
    what = f"is not a store, so it has no earlier versions; leave out ‹as_of› {as_of}"
    return SourceError(f"{str(source)[:200]} {what}")


# ---- What is not read ----------------------------------------------------------------------------
_UNPACK = {".bz2": "bunzip2", ".xz": "unxz", ".zst": "unzstd", ".zip": "unzip", ".7z": "7z x", ".tar": "tar -xf"}
_IN_PYTHON = {
    ".xls .xlsb .ods": ("a spreadsheet; save it as .xlsx, or", "pandas.read_excel"),
    ".h5 .hdf5 .hdf": ("an HDF5 file;", "pandas.read_hdf"),
    ".feather .arrow .ipc": ("an Arrow file;", "pandas.read_feather"),
    ".net .paj": ("a Pajek file;", "networkx.read_pajek"),
    ".orc": ("an ORC file;", "pandas.read_orc"),
    ".dta": ("a Stata file;", "pandas.read_stata"),
    ".sav": ("an SPSS file;", "pandas.read_spss"),
}
_ADVICE = {
    ".bib": "holds BibTeX; export it as CSV with one row for each paper and author, as Zotero and JabRef do",
    ".gmt": "has a list of genes in each line; write a table with one row for each set and gene, such as set_gene.csv",
    ".pkl .pickle .joblib": "is a pickle, which can run code when it is opened, so neupath opens none; if you trust "
    "it, open it in Python and give neupath.load the data frame or the graph",
}


def _unreadable(path: Path) -> SourceError:
    """Return the error about a file that no format reads, with what is to be done with it."""
    advice = {suffix: f"is packed; unpack it with {tool}, or pack it with gzip" for suffix, tool in _UNPACK.items()}
    for suffixes, (what, function) in _IN_PYTHON.items():
        sentence = f"is {what} read it in Python with {function} and give neupath.load what that returns"
        advice |= dict.fromkeys(suffixes.split(), sentence)
    for suffixes, sentence in _ADVICE.items():
        advice |= dict.fromkeys(suffixes.split(), sentence)
    if path.suffix.lower() in advice:
        return SourceError(f"{path} {advice[path.suffix.lower()]}")
    others = ", ".join((*GRAPH_SUFFIXES, *(f".{name}" for name in READERS)))
    return SourceError(
        f"{path} is not a graph that neupath can read; if it is a text table, rename it to {path.name}.csv; otherwise "
        f"give tables or triples, a database, RDF, JSON, DBLP's XML, {others} or .mat, or read it in Python and give "
        f"neupath.load the NetworkX graph, the HeteroData or the data frames"
    )
