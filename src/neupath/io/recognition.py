"""Recognition: what a source is, a file, a folder, a database, a store or an object, and the reader that fits it."""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal, cast

from neupath._runtime.plugins import Plugins, Registry
from neupath._runtime.progress import Progress
from neupath.errors import NeuPathError, SourceError, did_you_mean, first_line, listed
from neupath.graph.hin import HIN, Duplicates
from neupath.io.assemble import read_tables
from neupath.io.datasets import PUBLIC, fetched_folder
from neupath.io.detection import (
    is_table_file,
    options_of,
    read_settings,
    recognise_files,
    recognise_folder,
    refuse_twice,
)
from neupath.io.formats.database_drivers import DATABASE_SUFFIXES, database_format, is_database_url
from neupath.io.formats.databases import TableChoice, read_database
from neupath.io.formats.dblp import is_dblp, read_dblp
from neupath.io.formats.hgb import LINKS, NODES, read_hgb
from neupath.io.formats.json_records import read_json
from neupath.io.formats.json_values import JSON_SUFFIXES, json_files
from neupath.io.formats.matlab import read_mat
from neupath.io.formats.rdf import read_rdf
from neupath.io.formats.rdf_statements import RDF_SUFFIXES, rdf_files
from neupath.io.graph_toml import Config, read_config
from neupath.io.interop import (
    GRAPH_SUFFIXES,
    from_networkx,
    from_pyg,
    from_table,
    from_tables,
    from_tuples,
    read_graph_file,
)
from neupath.io.load import BUILT_IN
from neupath.io.object_stores import is_object_url, local_copy
from neupath.io.plan import TableSource
from neupath.io.table_files import TABLE_SUFFIXES, is_data_file, is_table
from neupath.io.text_files import open_lines
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
        _refuse_options(source, config, duplicates)
        return _load_version(source, as_of, data)
    if (database := _find_database(source, data)) is not None:
        return read_tables(read_database(database, choice, _read_optional(config), duplicates, progress))
    if choice.schema is not None or choice.tables is not None:
        raise SourceError(
            f"{str(source)[:200]} is not a database, and ‹schema› and ‹tables› choose tables of one; leave them out"
        )
    if isinstance(source, list | tuple) and not any(isinstance(item, tuple | list) for item in source):
        return _load_files(source, config, duplicates)
    if not isinstance(source, str | os.PathLike):
        return _load_object(source, config, duplicates)
    if not str(source).strip():
        raise SourceError(f"no graph is named; give a folder, a file, or a built-in graph: {listed(BUILT_IN)}")
    if source in BUILT_IN:
        if config is not None:
            raise SourceError(f"{source} is built in and takes no graph.toml, but {config} was given; leave it out")
        return BUILT_IN[str(source)][1](progress)
    with _system_errors(source):
        return _load_path(locate(Path(source), data), config, duplicates, progress)


def find_tables(
    source: str | os.PathLike[str], config: str | Path | None, duplicates: Duplicates | None, data: str | Path | None
) -> TableSource | None:
    """Return the tables of a source without reading them, or None if it is something else than tables."""
    if source in BUILT_IN or not str(source).strip() or (_is_url(source) and is_object_url(source)):
        return None
    if _find_database(source, data) is not None:
        return None
    with _system_errors(source):
        path = locate(Path(source), data)
        kind = _format_of(path, config)
        if kind is None:
            raise _unreadable(path)
        return _recognise(path, config, duplicates) if kind == "tables" else None


def is_imported(source: object, data: str | Path | None) -> bool:
    """Whether a source is a store, whose notes were shown when it was imported."""
    if not isinstance(source, str | os.PathLike):
        return False
    with suppress(SourceError):  # it is a URL
        return is_store(locate(Path(source), data))
    return False


# ---- Readers of installed packages ---------------------------------------------------------------
Reader = Callable[[Path], HIN]
_TAKEN = (*TABLE_SUFFIXES, *RDF_SUFFIXES, *JSON_SUFFIXES, *GRAPH_SUFFIXES, *DATABASE_SUFFIXES, ".mat", ".gz")


def _check_plugin(name: str, reader: Any) -> str | None:
    if not callable(reader):
        return "it is no function that takes a path"
    return "the name is the ending of a file, without a dot" if "." in name else None


READERS: Registry[Reader] = Registry(
    {}, Plugins("neupath.readers", _check_plugin, [suffix.removeprefix(".") for suffix in _TAKEN])
)
"""Functions of plug-ins that read a file, by its ending, such as "gdf"; neupath's own formats come first."""


def _suffix(path: Path) -> str:
    return path.suffix.lower().removeprefix(".")


def _read_by_plugin(path: Path, config: str | Path | None, duplicates: Duplicates | None) -> HIN:
    package = READERS.package_of(_suffix(path))
    if config is not None or duplicates is not None:
        raise SourceError(f"{path} is read by the package {package}, without ‹config› and ‹duplicates›; leave them out")
    try:
        hin = READERS[_suffix(path)](path)
    except (NeuPathError, MemoryError):
        raise
    except Exception as error:
        reason = f"{type(error).__name__}: {first_line(error)}"
        raise SourceError(f"{path} cannot be read by the package {package}: {reason}") from error
    if not isinstance(hin, HIN):
        raise SourceError(f"the package {package} read {path} as a {type(hin).__name__} and not as a HIN; update it")
    return hin


# ---- What a path holds ---------------------------------------------------------------------------
Format = Literal["store", "matlab", "graph file", "benchmark", "dblp", "rdf", "json", "tables", "plug-in"]


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


def _find_database(source: object, data: str | Path | None) -> str | Path | None:
    """Return the URL or the file of a database, or None if the source is something else."""
    if not isinstance(source, str | os.PathLike) or source in BUILT_IN or not str(source).strip():
        return None
    if _is_url(source) and is_database_url(source):
        return str(source)
    with _system_errors(source):
        path = locate(Path(source), data)
        return path if path.is_file() and database_format(path) else None


def _is_url(source: object) -> bool:
    return isinstance(source, str) and ":/" in source


def _format_of(path: Path, config: str | Path | None) -> Format | None:  # noqa: PLR0911  one for each format
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
    is_markup = is_dblp(path) or rdf_files(path) or json_files(path)
    if is_markup and not (path.is_dir() and _has_tables(path, config)):
        return _markup_of(path, config)
    if path.is_dir() or is_table(path):
        return "tables"
    return "plug-in" if _suffix(path) in READERS else None


def _markup_of(path: Path, config: str | Path | None) -> Literal["dblp", "rdf", "json"]:
    """Return whether a file, or the files of a folder, are RDF or JSON, or the file is DBLP's XML."""
    if is_dblp(path):
        return "dblp"
    ignore = _settings_of(path, config).ignore
    rdf, records = rdf_files(path, ignore), json_files(path, ignore)
    if rdf and records:
        raise SourceError(
            f"{path} has RDF ({rdf[0].name}) and JSON ({records[0].name}); put each into a folder of its own, or name "
            f"the files to skip under ignore in graph.toml"
        )
    return "rdf" if rdf else "json"


def _has_tables(folder: Path, config: str | Path | None) -> bool:
    """Whether a folder is read as tables: it has some, or graph.toml names some."""
    return any(map(is_table_file, folder.iterdir())) or read_settings(folder, config).names_tables


def _matlab_file(path: Path) -> Path | None:
    """Return the .mat file that a source is, or that is alone in its folder."""
    if not path.is_dir():
        return path if path.suffix.lower() == ".mat" else None
    files = sorted(path.glob("*.mat"))
    tables = [file for file in path.iterdir() if is_table(file) and file.is_file() and not is_data_file(file)]
    return files[0] if len(files) == 1 and not tables else None


def _recognise(path: Path, config: str | Path | None, duplicates: Duplicates | None) -> TableSource:
    if path.is_dir():
        source = recognise_folder(path, config, duplicates)
        others = _note_others(path, read_settings(path, config).ignore)
        return replace(source, options=replace(source.options, notes=[*source.options.notes, *others]))
    return recognise_files([path], path.parent, _read_optional(config), duplicates, where=path)


def _note_others(folder: Path, ignore: list[str]) -> list[str]:
    return [
        f"{file.name} was left out: the graph is read from the tables beside it"
        for file in (*rdf_files(folder, ignore), *json_files(folder, ignore))
    ]


def _settings_of(path: Path, config: str | Path | None) -> Config:
    return read_settings(path, config) if path.is_dir() else _read_optional(config)


def _read_optional(config: str | Path | None) -> Config:
    return Config() if config is None else read_config(Path(config))


_UNPACK = {".bz2": "bunzip2", ".xz": "unxz", ".zst": "unzstd", ".zip": "unzip", ".7z": "7z x", ".tar": "tar -xf"}
"""Suffixes of packed files that are not read, and what unpacks them."""


# ---- Loading each kind of source -----------------------------------------------------------------
def _load_path(  # noqa: PLR0911  one for each format
    path: Path, config: str | Path | None, duplicates: Duplicates | None, progress: Progress
) -> HIN:
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
        case "rdf" | "json" | "dblp":
            return _load_statements(path, config, duplicates, progress)
        case "tables":
            return read_tables(_recognise(path, config, duplicates))
        case "plug-in":
            return _read_by_plugin(path, config, duplicates)
    raise _unreadable(path)


_IN_PYTHON = {
    **dict.fromkeys((".xlsx", ".xls", ".xlsm", ".xlsb", ".ods"), ("a spreadsheet", "pandas.read_excel")),
    **dict.fromkeys((".h5", ".hdf5", ".hdf"), ("an HDF5 file", "pandas.read_hdf")),
    **dict.fromkeys((".feather", ".arrow", ".ipc"), ("an Arrow file", "pandas.read_feather")),
    ".orc": ("an ORC file", "pandas.read_orc"),
    ".dta": ("a Stata file", "pandas.read_stata"),
    ".sav": ("an SPSS file", "pandas.read_spss"),
    ".net": ("a Pajek file", "networkx.read_pajek"),
    ".paj": ("a Pajek file", "networkx.read_pajek"),
}
"""What a file is by its suffix, and the function of Python that reads it."""
_TEXTS = {
    ".bib": "holds BibTeX; export it as CSV with one row for each paper and author, as Zotero and JabRef do",
    ".gmt": "has a list of genes in each line; write a table with one row for each set and gene, such as set_gene.csv",
    **dict.fromkeys(
        (".pkl", ".pickle", ".joblib"),
        "is a pickle, which can run code when it is opened, so neupath opens none; if you trust it, open it in Python "
        "and give neupath.load the data frame or the graph",
    ),
}
"""What is to be done with a file by its suffix."""


def _unreadable(path: Path) -> SourceError:
    suffix = path.suffix.lower()
    if tool := _UNPACK.get(suffix):
        return SourceError(f"{path} is packed; unpack it with {tool}, or pack it with gzip, which is read as it is")
    if known := _IN_PYTHON.get(suffix):
        text = " save each sheet as CSV, or" if known[0] == "a spreadsheet" else ""
        return SourceError(
            f"{path} is {known[0]};{text} read it in Python with {known[1]} and give neupath.load what that returns"
        )
    if advice := _TEXTS.get(suffix):
        return SourceError(f"{path} {advice}")
    if columns := _columns_of_text(path):
        ending = "csv" if columns[1] in ",;" else "tsv"
        return SourceError(
            f"{path} is not known by its ending, but looks like a text table with {columns[0]} columns; rename it to "
            f"{path.name}.{ending}, or name it in a graph.toml"
        )
    return SourceError(
        f"{path} is not a graph that neupath can read; give a folder of tables, a database, a file of triples "
        f"({', '.join(TABLE_SUFFIXES)}, also gzipped), RDF ({', '.join(RDF_SUFFIXES)}), JSON "
        f"({', '.join(JSON_SUFFIXES)}), DBLP's XML, "
        f"{', '.join((*GRAPH_SUFFIXES, *(f'.{name}' for name in READERS)))} or .mat, or read it in Python and "
        f"give neupath.load the NetworkX graph, the HeteroData or the data frames"
    )


def _columns_of_text(path: Path) -> tuple[int, str] | None:
    """Return how many columns the first lines of a file have and what is between them, or None if it is no table."""
    try:
        with open_lines(path) as lines:
            first = [line for line in islice(lines, 20) if line.strip()]
    except (UnicodeDecodeError, SourceError, OSError):
        return None
    counts = {mark: {line.count(mark) for line in first} for mark in "\t,;|"}
    marks = [mark for mark, found in counts.items() if len(first) > 1 and len(found) == 1 and found != {0}]
    return (first[0].count(marks[0]) + 1, marks[0]) if marks and not any("\0" in line for line in first) else None


def _load_statements(path: Path, config: str | Path | None, duplicates: Duplicates | None, progress: Progress) -> HIN:
    """Read RDF or JSON, a file or a folder, or DBLP's XML."""
    settings = _settings_of(path, config)
    markup = _markup_of(path, config)
    if settings.names_tables or (settings.rdf is not None and markup != "rdf"):
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
    if markup == "dblp":
        return read_dblp(path, options_of(settings, duplicates), progress)
    if markup == "json":
        return read_json(
            json_files(path, settings.ignore), replace(options_of(settings, duplicates), in_tables=False), progress
        )
    # the same statement twice is one statement
    once = "drop" if duplicates is None and settings.duplicates is None else duplicates
    return read_rdf(rdf_files(path, settings.ignore), settings.rdf, options_of(settings, once), progress)


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


def _load_files(paths: Sequence[Any], config: str | Path | None, duplicates: Duplicates | None) -> HIN:
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
    return read_tables(recognise_files(files, files[0].parent, _read_optional(config), duplicates))


def _load_object(source: object, config: str | Path | None, duplicates: Duplicates | None) -> HIN:
    library = type(source).__module__.split(".")[0]
    if isinstance(source, HIN):
        return source
    if isinstance(source, Mapping):
        return from_tables(source, config=_read_optional(config), duplicates=duplicates)
    if library in ("pandas", "pyarrow", "polars"):
        return from_table(source, config=_read_optional(config), duplicates=duplicates)
    if isinstance(source, list | tuple):
        return from_tuples(source, config=_read_optional(config), duplicates=duplicates)
    if config is not None:
        raise SourceError(f"a {type(source).__name__} takes no graph.toml, but {config} was given; leave it out")
    if library == "networkx":
        return from_networkx(source, duplicates=duplicates or "count")  # type: ignore[arg-type]
    if library == "torch_geometric" and hasattr(source, "edge_types"):
        return from_pyg(source, duplicates=duplicates or "count")
    matrix = library in ("scipy", "numpy") and hasattr(source, "shape")
    hint = 'give a matrix under the types that it joins: {("user", "item"): matrix}' if matrix else ""
    raise SourceError(
        f"cannot load a graph from {type(source).__name__}; {hint or 'help(neupath.load) lists what can be loaded'}"
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
