"""Read graph.toml, which describes what names and headers of a folder's tables do not show.

Every key is optional; neupath detects the rest. docs/graphs.md has a whole graph.toml.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from neupath.errors import SourceError, did_you_mean, listed
from neupath.io.text_files import Dialect, refuse_special

C = TypeVar("C")
GRAPH_TOML = "graph.toml"
_MOST_LETTERS = 1 << 24


@dataclass(frozen=True)
class NodesConfig:
    """[nodes.TYPE]: the file and columns of the nodes of one type."""

    file: str
    id: str | None = None
    name: str | None = None
    attributes: list[str] | None = None
    attribute_types: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class EdgesConfig:
    """[[edges]]: the file and columns of the edges of one relation."""

    name: str
    file: str
    source: str
    target: str
    columns: list[str] | None = None
    weight: str | None = None
    attributes: list[str] | None = None
    attribute_types: Mapping[str, str] = field(default_factory=dict)
    split: str | None = None
    optional: bool = False
    undirected: bool = False


@dataclass(frozen=True)
class PairConfig:
    """[pair]: the table of all nodes, the table of all edges, and their columns."""

    nodes: str | None = None
    edges: str | None = None
    id: str | None = None
    name: str | None = None
    type: str | None = None
    source: str | None = None
    relation: str | None = None
    target: str | None = None
    weight: str | None = None
    attributes: list[str] | None = None
    attribute_types: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class TriplesConfig:
    """[triples]: the files and columns of the triples of a knowledge graph."""

    files: list[str] | None = None
    columns: list[str] | None = None
    head_type: str | None = None
    tail_type: str | None = None
    head_name: str | None = None
    tail_name: str | None = None
    weight: str | None = None
    attributes: list[str] | None = None
    attribute_types: Mapping[str, str] = field(default_factory=dict)
    types: str | None = None
    type: str | None = None


@dataclass(frozen=True)
class RdfConfig:
    """[rdf]: which property gives types, whether owl:sameAs merges nodes, and the language of names and attributes."""

    type: str | None = None
    same_as: str | None = None
    language: str = "en"


@dataclass(frozen=True)
class Config:
    """A checked graph.toml."""

    delimiter: str | None = None
    quote: str | None = None
    header: bool | None = None
    duplicates: str | None = None
    take: list[str] = field(default_factory=list)
    undirected: list[str] = field(default_factory=list)
    ignore: list[str] = field(default_factory=list)
    abbreviations: Mapping[str, str] = field(default_factory=dict)
    missing_ids: list[str] | None = None
    fold_ids: bool | None = None
    nodes: Mapping[str, NodesConfig] = field(default_factory=dict)
    edges: list[EdgesConfig] = field(default_factory=list)
    pair: PairConfig | None = None
    triples: TriplesConfig | None = None
    rdf: RdfConfig | None = None

    @property
    def names_tables(self) -> bool:
        """Whether it names files of nodes or edges."""
        return bool(self.nodes or self.edges or self.pair or self.triples)

    @property
    def files(self) -> list[str]:
        """The files that it names."""
        pair, triples = self.pair or PairConfig(), self.triples or TriplesConfig()
        tables = [*(nodes.file for nodes in self.nodes.values()), *(edges.file for edges in self.edges)]
        others = [pair.nodes, pair.edges, triples.types, *(triples.files or ())]
        return [name for name in (*tables, *others) if name]

    @property
    def dialect(self) -> Dialect:
        return Dialect(self.delimiter, self.quote, self.header, comments=self.header is None)


def read_config(path: Path) -> Config:
    """Read a graph.toml; raise at an unknown key or a value of the wrong type."""
    refuse_special(path)
    try:
        with path.open(encoding="utf-8") as stream:
            text = stream.read(_MOST_LETTERS + 1)
        if len(text) > _MOST_LETTERS:
            raise SourceError(f"{path} is longer than {_MOST_LETTERS:,} characters; it does not look like a graph.toml")
    except FileNotFoundError as error:
        raise SourceError(f"no such file: {path}") from error
    except OSError as error:
        raise SourceError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SourceError(f"{path} is not valid TOML: {error}") from error
    return parse_config(text, path)


def parse_config(text: str, path: Path | str = GRAPH_TOML) -> Config:
    """Check the text of a graph.toml, which errors call `path`."""
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SourceError(f"{path} is not valid TOML: {error}") from error
    except RecursionError as error:
        raise SourceError(
            f"{path} is nested too deeply; a graph.toml has tables of texts and lists of texts"
        ) from error
    nodes, edges = content.pop("nodes", {}), content.pop("edges", [])
    if not isinstance(nodes, dict) or not isinstance(edges, list):
        raise SourceError(f"{path}: write node tables as [nodes.TYPE] and relations as [[edges]]")
    nested: dict[str, Any] = {
        "nodes": {name: _checked(NodesConfig, table, path, f"[nodes.{name}]") for name, table in nodes.items()},
        "edges": [_checked(EdgesConfig, table, path, f"[[edges]] number {n}") for n, table in enumerate(edges, 1)],
    }
    for key, kind in (("pair", PairConfig), ("triples", TriplesConfig), ("rdf", RdfConfig)):
        if key in content:
            nested[key] = _checked(kind, content.pop(key), path, f"[{key}]")
    if "rdf" in nested and nested["rdf"].same_as not in (None, "merge", "relation"):
        raise SourceError(f'{path}: same_as = {nested["rdf"].same_as!r} in [rdf] can be "merge" or "relation"')
    for key in ("delimiter", "quote"):
        if len(str(content.get(key, " "))) > 1 or (content.get(key) == "" and key == "delimiter"):
            raise SourceError(f"{path}: {key} = {content[key]!r} must be one character")
    return _checked(Config, content, path, "the top level", nested)


def read_own_config(path: Path) -> Config:
    """Read the graph.toml of a folder; the files that it names must be in the folder, which may come from anyone."""
    config = read_config(path)
    for name in config.files:
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise SourceError(
                f"{path} names the file {name!r}, which is outside its folder; move the file into the folder or link "
                f"to it there, or give the graph.toml as ‹config› if you trust it"
            )
    return config


def checked_options(kind: type[C], options: Mapping[str, Any], key: str) -> C:
    """Check the options that stand beside a table in a mapping, which are the keys of graph.toml."""
    return _checked(kind, dict(options), "the options", f"those of {key}")


def _checked(kind: type[C], table: object, path: Path | str, where: str, nested: dict[str, Any] | None = None) -> C:
    if not isinstance(table, dict):
        raise SourceError(f"{path}: {where} must be a table of keys, got {table!r}")
    hints = get_type_hints(kind)
    known = [f.name for f in fields(kind)]  # type: ignore[arg-type]
    for key, value in table.items():
        if key not in known:
            meant = _meant(key, value, known)
            raise SourceError(f"{path}: {where} has no key {key!r} (it can have {listed(known, len(known))}){meant}")
        if not _fits(value, hints[key]):
            raise SourceError(f"{path}: {key} = {value!r} in {where} must be {_type_name(hints[key])}")
    try:
        return kind(**table, **(nested or {}))
    except TypeError as error:
        needed = [f.name for f in fields(kind) if f.default is f.default_factory is MISSING]  # type: ignore[arg-type]
        missing = [key for key in needed if key not in table]
        raise SourceError(
            f"{path}: {where} has no {listed(missing)}; add what is missing, or, for tables in files, remove it "
            f"and let `neupath init` write one with all keys"
        ) from error


def _meant(key: str, value: object, known: Sequence[str]) -> str:
    """Return the end of a sentence that names the key or the section that was perhaps meant, or nothing."""
    sections = [name for name in ("nodes", "edges", "pair", "triples", "rdf") if name in known]
    plural = next((name for name in sections if name.rstrip("s") == key.lower().rstrip("s")), None)
    hint = "" if plural else did_you_mean(key, known)
    section = plural or next((name for name in sections if f"{name!r}" in hint), None)
    if section is None or not isinstance(value, dict | list):
        return hint if plural is None else f"; did you mean {plural!r}?"
    node_type = next(iter(value), "TYPE") if isinstance(value, dict) else "TYPE"
    written = {"nodes": f"[nodes.{node_type}]", "edges": "[[edges]]"}.get(section, f"[{section}]")
    return f"; did you mean {written}?"


def _fits(value: object, hint: object) -> bool:
    text = str(hint)
    if isinstance(value, bool):
        return "bool" in text
    if isinstance(value, str):
        return "list" not in text and "Mapping" not in text and "str" in text
    if isinstance(value, list):
        return "list" in text and all(isinstance(item, str) for item in value)
    return isinstance(value, dict) and "Mapping" in text and all(isinstance(v, str) for v in value.values())


def _type_name(hint: object) -> str:
    text = str(hint)
    if "list" in text:
        return "a list of texts"
    if "Mapping" in text:
        return "a table of texts"
    return "true or false" if "bool" in text else "a text"
