"""stdlib: Python's standard library as a network, read by parsing its source files, never by importing them."""

import ast
import builtins
import platform
import shutil
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import numpy as np
import pyarrow as pa

from neupath.datasets.cache import cache_folder
from neupath.datasets.folder import recognise_folder
from neupath.datasets.reading import read_tables
from neupath.datasets.writing import write_folder
from neupath.errors import NeuPathError, SourceError, WriteError
from neupath.graph import HIN, Edges
from neupath.headway import Progress, silent
from neupath.nodes import Nodes
from neupath.schema import Relation

_NOT_LIBRARY = {
    "site-packages", "dist-packages", "__pycache__", "test", "tests", "idlelib", "lib2to3", "turtledemo",
}  # fmt: skip
_FORMAT = 1
"""Raised when what is read from the sources changes, so that older caches are not used."""


@dataclass
class _Facts:
    """What the sources say: pairs of ids, a list a relation."""

    defines: list[tuple[str, str]] = field(default_factory=list)
    imports: list[tuple[str, str]] = field(default_factory=list)
    methods: list[tuple[str, str]] = field(default_factory=list)
    bases: list[tuple[str, str]] = field(default_factory=list)
    modules: list[str] = field(default_factory=list)


def stdlib(progress: Progress = silent) -> HIN:
    """Return the standard library of the running Python: modules, classes, method names, base classes and imports.

    It is built once a Python and kept in the cache folder.
    """
    root = Path(sysconfig.get_paths()["stdlib"])
    mark = sha256(f"{root}|{sys.version}|{_FORMAT}".encode()).hexdigest()[:12]
    folder = cache_folder() / f"stdlib-{platform.python_version()}-{mark}"
    try:
        return read_tables(recognise_folder(folder))
    except (NeuPathError, OSError):  # not there yet, or damaged
        shutil.rmtree(folder, ignore_errors=True)
    hin = build_stdlib(root, progress)
    with suppress(WriteError):  # a cache that cannot be written costs time, never the answer
        write_folder(hin, folder)
    return hin


def build_stdlib(root: Path, progress: Progress = silent) -> HIN:
    """Read the network off the source files below a folder."""
    files = _source_files(root)
    if not files:
        raise SourceError(f"no Python sources in {root}: this Python comes without its standard library's source files")
    facts = _Facts()
    for path in progress(files, "reading the standard library"):
        try:
            tree = ast.parse(path.read_bytes())
        except (SyntaxError, ValueError):
            continue  # a few files are broken on purpose, to test parsers
        module = _module_name(path.relative_to(root))
        facts.modules.append(module)
        _Reader(module, path.name == "__init__.py", tree, facts).read()
    return _to_graph(facts)


def _source_files(root: Path) -> list[Path]:
    return sorted(path for path in root.rglob("*.py") if not _NOT_LIBRARY.intersection(path.relative_to(root).parts))


def _module_name(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


class _Reader:
    """Collects the facts of one module."""

    def __init__(self, module: str, is_package: bool, tree: ast.Module, facts: _Facts) -> None:
        self.module = module
        self.is_package = is_package
        self.tree = tree
        self.facts = facts
        self.meaning: dict[str, str] = {}  # what a name in this module stands for: a class of it, or something imported

    def read(self) -> None:
        for node in ast.walk(self.tree):
            for name, origin in self._imported(node):
                self.meaning[name] = origin
        classes = list(self._classes(self.tree, self.module))
        self.meaning.update({name.removeprefix(self.module + "."): name for name, _ in classes})
        for name, node in classes:
            self._read_class(name, node)

    def _imported(self, node: ast.AST) -> Iterator[tuple[str, str]]:
        """Yield (name here, what it stands for) and note the module imported."""
        if isinstance(node, ast.Import):
            for alias in node.names:
                self.facts.imports.append((self.module, alias.name))
                yield (alias.asname, alias.name) if alias.asname else (alias.name.split(".")[0],) * 2
        elif isinstance(node, ast.ImportFrom):
            origin = self._absolute(node)
            self.facts.imports.append((self.module, origin))
            for alias in node.names:
                yield alias.asname or alias.name, f"{origin}.{alias.name}"

    def _absolute(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        parts = self.module.split(".")
        package = parts[: len(parts) - node.level + self.is_package]
        return ".".join([*package, *([node.module] if node.module else [])])

    def _classes(self, node: ast.AST, scope: str) -> Iterator[tuple[str, ast.ClassDef]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef):
                name = f"{scope}.{child.name}"
                yield name, child
                yield from self._classes(child, name)
            else:
                yield from self._classes(child, scope)

    def _read_class(self, name: str, node: ast.ClassDef) -> None:
        self.facts.defines.append((self.module, name))
        for item in node.body:
            if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef):
                self.facts.methods.append((name, item.name))
        for base in node.bases:
            if (dotted := _dotted(base)) is not None:
                self.facts.bases.append((name, self._resolve(dotted)))

    def _resolve(self, dotted: str) -> str:
        """Say which class a base's name means: one of this module, an imported one, or a built-in."""
        first, _, rest = dotted.partition(".")
        meaning = self.meaning.get(dotted) or self.meaning.get(first)
        if meaning is None:
            return dotted if hasattr(builtins, first) else f"{self.module}.{dotted}"
        return meaning if dotted in self.meaning or not rest else f"{meaning}.{rest}"


def _dotted(node: ast.expr) -> str | None:
    """Return `a.b.C` as text; a subscript such as Generic[T] counts as Generic, anything else as nothing."""
    if isinstance(node, ast.Subscript):
        return _dotted(node.value)
    if isinstance(node, ast.Attribute):
        inner = _dotted(node.value)
        return None if inner is None else f"{inner}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else None


def _to_graph(facts: _Facts) -> HIN:
    links = {
        Relation("module", "defines", "class"): facts.defines,
        Relation("module", "imports", "import"): facts.imports,
        Relation("class", "has", "method"): facts.methods,
        Relation("class", "extends", "base"): facts.bases,
    }
    ids: dict[str, dict[str, int]] = {"module": {name: row for row, name in enumerate(facts.modules)}}
    for relation, pairs in links.items():
        for end, node_type in ((0, relation.source), (1, relation.target)):
            known = ids.setdefault(node_type, {})
            for pair in pairs:
                known.setdefault(pair[end], len(known))
    edges = []
    for relation, pairs in links.items():
        distinct = dict.fromkeys(pairs)
        sources = np.array([ids[relation.source][source] for source, _ in distinct], dtype=np.int64)
        targets = np.array([ids[relation.target][target] for _, target in distinct], dtype=np.int64)
        edges.append(Edges(relation, sources, targets))
    return HIN.build([_to_nodes(node_type, list(known)) for node_type, known in ids.items()], edges)


def _to_nodes(node_type: str, ids: Sequence[str]) -> Nodes:
    """Name classes and bases by their last part, so that ArgumentParser finds argparse.ArgumentParser."""
    names = pa.array([name.rsplit(".", 1)[-1] for name in ids], pa.string()) if node_type in ("class", "base") else None
    return Nodes(node_type, pa.array(ids, pa.string()), names)
