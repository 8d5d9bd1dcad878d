"""Graphs with a name: the standard library of the running Python, and public graphs to download."""

import ast
import builtins
import json
import os
import platform
import sys
import sysconfig
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import numpy as np
import pyarrow as pa

from neupath._runtime.files import whole_folder, write_text
from neupath._runtime.lazy_module import LazyModule
from neupath._runtime.progress import Progress, no_progress, track
from neupath.errors import SourceError, WriteError, did_you_mean, listed
from neupath.graph.hin import HIN, Edges
from neupath.graph.metapath import Relation
from neupath.graph.nodes import Nodes, Rows, text_array

pc = LazyModule("pyarrow.compute")

# ---- The standard library of the running Python --------------------------------------------------
_NOT_LIBRARY = {
    "site-packages", "dist-packages", "__pycache__", "test", "tests", "idlelib", "lib2to3", "turtledemo",
}  # fmt: skip
_FORMAT = 2
"""Increased when the reader of the sources changes, so that older caches are not used."""


Links = dict[str, list[Sequence[str]]]
"""The name of a relation -> the ids of the two ends of each edge; an edge may be there several times."""
_MODULES = "modules"
"""Where links have the names of all modules, which lead nowhere: some define, import and contain nothing."""
_STDLIB = (
    Relation("module", "defines", "class"), Relation("module", "imports", "import"), Relation("class", "has", "method"),
    Relation("class", "extends", "base"),
)  # fmt: skip


def stdlib(progress: Progress = no_progress) -> HIN:
    """Return the standard library of the running Python: modules, classes, method names, base classes and imports.

    Its sources are read once for each Python; the links found in them are kept in the cache folder.
    """
    root = Path(sysconfig.get_paths()["stdlib"])
    mark = sha256(f"{root}|{sys.version}|{_FORMAT}".encode()).hexdigest()[:12]
    file = cache_folder() / f"stdlib-{platform.python_version()}-{mark}.json"
    try:
        links = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # not cached yet, or damaged
        links = find_links(root, progress)
        with suppress(OSError, WriteError):  # a cache that cannot be written only costs time
            file.parent.mkdir(parents=True, exist_ok=True)
            write_text(file, json.dumps(links))
    return build_stdlib(links)


def find_links(root: Path, progress: Progress = no_progress) -> Links:
    """Read the source files below a folder."""
    files = sorted(path for path in root.rglob("*.py") if not _NOT_LIBRARY.intersection(path.relative_to(root).parts))
    if not files:
        raise SourceError(f"no Python sources in {root}: this Python comes without its standard library's source files")
    links: Links = {name: [] for name in (_MODULES, *(relation.name for relation in _STDLIB))}
    for path in track(files, "reading the standard library", progress):
        try:
            tree = ast.parse(path.read_bytes())
        except (SyntaxError, ValueError):
            continue  # a few files are broken on purpose, to test parsers
        parts = path.relative_to(root).with_suffix("").parts
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        links[_MODULES].append((module, ""))
        _SourceReader(module, path.name == "__init__.py", links).read(tree)
    return links


class _SourceReader:
    """Collects what one module defines and imports."""

    def __init__(self, module: str, is_package: bool, links: Links) -> None:
        self.module, self.is_package, self.links = module, is_package, links
        self.meaning: dict[str, str] = {}  # a name in this module -> the class or import it means

    def read(self, tree: ast.Module) -> None:
        statements: deque[ast.AST] = deque([tree])
        while statements:
            node = statements.popleft()
            statements.extend(_inner_statements(node))
            if isinstance(node, ast.Import):
                for alias in node.names:
                    self.links["imports"].append((self.module, alias.name))
                    first = alias.name.split(".")[0]
                    self.meaning |= {alias.asname: alias.name} if alias.asname else {first: first}
            elif isinstance(node, ast.ImportFrom):
                origin = self._absolute(node)
                self.links["imports"].append((self.module, origin))
                self.meaning |= {alias.asname or alias.name: f"{origin}.{alias.name}" for alias in node.names}
        classes = list(self._classes(tree, self.module))
        self.meaning |= {name.removeprefix(self.module + "."): name for name, _ in classes}
        for name, node in classes:
            self.links["defines"].append((self.module, name))
            methods = [item for item in node.body if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef)]
            self.links["has"] += [(name, item.name) for item in methods]
            bases = filter(None, map(_dotted, node.bases))
            self.links["extends"] += [(name, self._resolve(dotted)) for dotted in bases]

    def _absolute(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        parts = self.module.split(".")
        package = parts[: len(parts) - node.level + self.is_package]
        return ".".join([*package, *([node.module] if node.module else [])])

    def _classes(self, node: ast.AST, scope: str) -> Iterator[tuple[str, ast.ClassDef]]:
        for child in _inner_statements(node):
            name = f"{scope}.{child.name}" if isinstance(child, ast.ClassDef) else scope
            if isinstance(child, ast.ClassDef):
                yield name, child
            yield from self._classes(child, name)

    def _resolve(self, dotted: str) -> str:
        """Return the class that the name of a base means: of this module, imported, or built in."""
        first, _, rest = dotted.partition(".")
        meaning = self.meaning.get(dotted) or self.meaning.get(first)
        if meaning is None:
            return dotted if hasattr(builtins, first) else f"{self.module}.{dotted}"
        return meaning if dotted in self.meaning or not rest else f"{meaning}.{rest}"


def _inner_statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what is directly inside a statement but for expressions, which hold neither imports nor classes."""
    for block in ("body", "handlers", "orelse", "finalbody", "cases"):
        yield from getattr(node, block, ())


def _dotted(node: ast.expr) -> str | None:
    """Return `a.b.C` as text, and Generic for a subscript such as Generic[T]; None for anything else."""
    if isinstance(node, ast.Subscript):
        return _dotted(node.value)
    if isinstance(node, ast.Attribute):
        inner = _dotted(node.value)
        return None if inner is None else f"{inner}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else None


def build_stdlib(links: Links) -> HIN:
    """Build the graph of modules and what links them."""
    modules = dict.fromkeys(name for name, _ in links[_MODULES])
    rows: dict[str, dict[str, int]] = {"module": {name: row for row, name in enumerate(modules)}}
    edges = []
    for relation in _STDLIB:
        pairs = list(dict.fromkeys(map(tuple, links[relation.name])))
        ends = []
        for end, node_type in enumerate((relation.source, relation.target)):
            row_of = rows.setdefault(node_type, {})
            ends.append(np.array([row_of.setdefault(pair[end], len(row_of)) for pair in pairs], dtype=np.int64))
        edges.append(Edges(relation, ends[0], ends[1]))
    nodes = []
    for node_type, row_of in rows.items():
        # ArgumentParser finds argparse.ArgumentParser
        names = [name.rsplit(".", 1)[-1] for name in row_of] if node_type in ("class", "base") else None
        nodes.append(Nodes(node_type, text_array(list(row_of)), None if names is None else text_array(names)))
    return HIN.build(nodes, edges)


# ---- Public graphs -------------------------------------------------------------------------------
_GITHUB = "https://raw.githubusercontent.com"
_GITHUB_LARGE = "https://media.githubusercontent.com/media"
_HETIONET = "hetio/hetionet/38873689199f81b0e6e11554d9803b94f0c4a12c/hetnet/tsv/hetionet-v1.0"
_TIMEOUT = 30
_CHUNK = 1 << 16


@dataclass(frozen=True)
class PublicDataset:
    """A public graph: what it is, where it comes from, and its files."""

    name: str
    about: str
    origin: str
    licence: str
    files: Mapping[str, str] = field(default_factory=dict)
    """The address of each file -> its SHA-256 checksum."""
    prepare: Callable[[Path], object] | None = None
    """Turns the downloaded files of a folder into tables, in place; None leaves the files as they are."""
    by_hand: str = ""
    """How to get the graph if no checksum of its files is known."""


def _prepare_imdb(folder: Path) -> None:
    from neupath.io.export import write_tables

    raw = folder / "movie_metadata.csv"
    write_tables(build_imdb(raw), folder)
    raw.unlink()


PUBLIC = {
    dataset.name: dataset
    for dataset in (
        PublicDataset(
            "imdb",
            "movies, actors, directors, genres, keywords; the IMDB network of the papers on HAN and NeuPath",
            "github.com/Jhy1993/HAN",
            "none stated",
            {
                f"{_GITHUB}/Jhy1993/HAN/3aafeef71fac20ae8d3409fdf5c4a19ea4d0ed2b/data/imdb/movie_metadata.csv": (
                    "74e4a9af314eea255147a6d48a5678ad7d0be3cb8ba3fdb819ef6edddb36e2ca"
                ),
            },
            _prepare_imdb,
        ),
        PublicDataset(
            "acm",
            "papers, authors, conferences, affiliations; the ACM network of the NeuPath paper (ACM.mat)",
            "data.dgl.ai/dataset/ACM.mat",
            "none stated",
            {
                "https://data.dgl.ai/dataset/ACM.mat": (
                    "0ccd838e545e8f16e3dc84356da2f51dfd2290c32e37a784e374dd510c76578d"
                ),
            },
        ),
        PublicDataset(
            "hetionet",
            "genes, diseases, compounds and eight more types; 47,031 nodes, 2.25 million edges",
            "github.com/hetio/hetionet",
            "CC0, parts under their sources' licences",
            {
                f"{_GITHUB}/{_HETIONET}-nodes.tsv": "f8a88e2bc21c576aa813c096fdef318e4502723ec4b7a97decb7c755c86cbc09",
                f"{_GITHUB_LARGE}/{_HETIONET}-edges.sif.gz": (
                    "611f0411ac666be4e0270e54bbca67407e14720bfc3099311f0f5eec25c5a947"
                ),
            },
        ),
        PublicDataset(
            "kg20c",
            "papers, authors, affiliations, conferences, domains of 20 computer science conferences",
            "github.com/tranhungnghiep/KG20C",
            "research use",
            by_hand="clone the repository and load its folder of train, valid and test triples",
        ),
    )
}


def public_dataset(name: str) -> PublicDataset:
    """Return the public graph of a name.

    >>> public_dataset("acm").origin
    'data.dgl.ai/dataset/ACM.mat'
    """
    if name not in PUBLIC:
        raise SourceError(f"no public graph named {name!r} (there are {listed(PUBLIC)}){did_you_mean(name, PUBLIC)}")
    return PUBLIC[name]


def fetched_folder(name: str) -> Path:
    """Return the folder of a fetched graph in the cache."""
    return cache_folder() / "data" / name


def fetch(dataset: PublicDataset, folder: Path | None = None, progress: Progress = no_progress) -> Path:
    """Download a public graph and verify its checksums, unless it is in the cache already.

    Parameters
    ----------
    dataset
        The graph, from `public_dataset`.
    folder
        A new folder to put it in; by default one in the cache, so that `load` finds the graph by name.
    progress
        Called with the name of a file, its downloaded bytes, and its size.

    Returns
    -------
    Path
        The folder; it appears whole or not at all.

    """
    target = folder or fetched_folder(dataset.name)
    if target.exists():
        if folder is not None:
            raise WriteError(f"{target} exists already; give a new folder to fetch {dataset.name} to")
        return target
    if not dataset.files:
        raise SourceError(
            f"{dataset.name} cannot be fetched, because no checksum of its files is known; "
            f"{dataset.by_hand} ({dataset.origin})"
        )
    with whole_folder(target) as temporary:
        for url, checksum in dataset.files.items():
            _download(url, checksum, temporary, progress)
        if dataset.prepare is not None:
            dataset.prepare(temporary)
    return target


def _download(url: str, checksum: str, folder: Path, progress: Progress) -> None:
    import http.client
    import urllib.error
    import urllib.parse
    import urllib.request

    address = urllib.parse.urlparse(url)
    name = Path(address.path).name
    digest = sha256()
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT) as answer, (folder / name).open("wb") as out:  # noqa: S310
            total = int(answer.headers.get("Content-Length") or 0) or None
            done = 0
            while chunk := answer.read(_CHUNK):
                out.write(chunk)
                digest.update(chunk)
                done += len(chunk)
                progress(name, done, total)
    except urllib.error.HTTPError as error:
        raise SourceError(f"{url} answered {error.code} {error.reason}; nothing was saved") from error
    except (urllib.error.URLError, TimeoutError, ConnectionError, http.client.HTTPException) as error:
        what = f"cannot reach {address.hostname}: {getattr(error, 'reason', error)}"
        raise SourceError(f"{what}; is there a network? nothing was saved") from error
    if digest.hexdigest() != checksum:
        raise SourceError(
            f"{name} has the checksum {digest.hexdigest()[:12]}…, expected {checksum[:12]}…; "
            f"the file has changed or was damaged in transit; nothing was saved"
        )


# ---- IMDB as in the papers on HAN and NeuPath ----------------------------------------------------
_ACTORS = ("actor_1_name", "actor_2_name", "actor_3_name")
_COMPLETE = (*_ACTORS, "director_name", "plot_keywords", "country")
"""Rows that lack one of these are left out, which gives the papers' 4,780 movies, 5,841 actors, 2,269 directors."""


def build_imdb(path: Path) -> HIN:
    """Read movie_metadata.csv; every complete row is a movie with its actors, director, genres and plot keywords."""
    from neupath.io.table_files import open_table
    from neupath.io.text_files import Dialect

    file = open_table(path, Dialect(delimiter=",", quote='"', header=True))
    columns = [*_COMPLETE, "movie_title", "title_year", "imdb_score", "genres"]
    table = file.read(columns, dict.fromkeys(columns, pa.string()))
    for column in _COMPLETE:
        table = table.filter(pc.not_equal(table[column], ""))

    def trimmed(column: str) -> pa.Array:
        return pc.utf8_trim_whitespace(table[column]).combine_chunks()

    def numbers(column: str, kind: pa.DataType) -> pa.Array:
        return pc.cast(pc.if_else(pc.equal(table[column], ""), None, table[column]), kind)

    def split(column: str) -> tuple[list[str], Rows]:
        lists = [list(dict.fromkeys(filter(None, text.split("|")))) for text in table[column].to_pylist()]
        return [word for words in lists for word in words], np.repeat(every, list(map(len, lists)))

    every = np.arange(len(table))
    attributes = {"year": numbers("title_year", pa.int64()), "country": table["country"]}
    attributes |= {"imdb_score": numbers("imdb_score", pa.float64())}
    nodes = [Nodes("movie", pa.array(every), trimmed("movie_title"), pa.table(attributes))]
    cast = zip(*(trimmed(column).to_pylist() for column in _ACTORS), strict=True)
    parts = {
        "actor": ([name for names in cast for name in names], np.repeat(every, len(_ACTORS))),
        "director": (trimmed("director_name"), every),
        "genre": split("genres"),
        "keyword": split("plot_keywords"),
    }
    edges = []
    for node_type, (words, rows) in parts.items():
        codes = pa.array(words).dictionary_encode()
        by_number = node_type in ("actor", "director")
        ids = pa.array(np.arange(len(codes.dictionary))) if by_number else codes.dictionary
        nodes.append(Nodes(node_type, ids, codes.dictionary if by_number else None))
        relation = Relation("movie", f"movie_{node_type}", node_type)
        edges.append(Edges(relation, rows, codes.indices.to_numpy().astype(np.int64)))
    return HIN.build(nodes, edges)


# ---- The cache folder ----------------------------------------------------------------------------
def cache_folder() -> Path:
    """Return NEUPATH_CACHE, or neupath in the user's cache folder."""
    folder = os.environ.get("NEUPATH_CACHE")
    if folder:
        return Path(folder)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "neupath"
