"""graph.toml: says what names and headers of tables do not show. Its entries, and reading, checking and writing it.

Every key is optional; neupath detects the rest. docs/graphs.md has a whole graph.toml.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

import pyarrow as pa

from neupath.errors import SourceError, did_you_mean, listed
from neupath.graph.notations import Fit, find_fit, may_be_values, quoted, toml_key
from neupath.io.plan import LISTS, EdgePlan, Plan, Selection, SharedIds
from neupath.io.tables import Table
from neupath.io.text_files import Dialect, file_errors, refuse_special
from neupath.io.values import is_text

C = TypeVar("C")
GRAPH_TOML = "graph.toml"
_MOST_BYTES = 1 << 24


# ---- Entries: a field is a key -------------------------------------------------------------------
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


Entry = Config | NodesConfig | EdgesConfig | PairConfig | TriplesConfig | RdfConfig
_SECTIONS = ("nodes", "edges", "pair", "triples", "rdf")


# ---- Reading -------------------------------------------------------------------------------------
def read_config(path: Path) -> Config:
    """Read a graph.toml; raise at an unknown key or a value of the wrong type."""
    refuse_special(path)
    if path.is_dir():
        raise SourceError(f"cannot read {path}: it is a folder; give the graph.toml in it")
    with file_errors(path), path.open("rb") as stream:
        raw = stream.read(_MOST_BYTES + 1)
    if len(raw) > _MOST_BYTES:
        raise SourceError(f"{path} is longer than {_MOST_BYTES:,} bytes; it does not look like a graph.toml")
    try:
        return parse_config(raw.decode(), path)
    except UnicodeDecodeError as error:
        raise SourceError(f"{path} is not valid TOML: {error}") from error


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


def parse_config(text: str, path: Path | str = GRAPH_TOML) -> Config:
    """Check the text of a graph.toml, which errors call `path`.

    >>> parse_config('duplicates = "drop"').duplicates
    'drop'
    """
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


def checked_options(kind: type[C], options: Mapping[str, Any], key: str) -> C:
    """Check the options that stand beside a table in a mapping, which are the keys of graph.toml."""
    return _checked(kind, dict(options), "the options", f"those of {key}")


def _checked(kind: type[C], table: object, path: Path | str, where: str, nested: dict[str, Any] | None = None) -> C:
    if not isinstance(table, dict):
        raise SourceError(f"{path}: {where} must be a table of keys, got {table!r}")
    hints = get_type_hints(kind)
    for key, value in table.items():
        if key not in hints:
            meant = _meant(key, value, list(hints))
            raise SourceError(f"{path}: {where} has no key {key!r} (it can have {listed(hints, len(hints))}){meant}")
        fits, allowed = _check_type(value, str(hints[key]))
        if not fits:
            raise SourceError(f"{path}: {key} = {value!r} in {where} must be {allowed}")
    required = [f.name for f in fields(kind) if f.default is f.default_factory is MISSING]  # type: ignore[arg-type]
    missing = [key for key in required if key not in table]
    if missing:
        raise SourceError(
            f"{path}: {where} has no {listed(missing)}; add what is missing, or, for tables in files, remove it "
            f"and let `neupath init` write one with all keys"
        )
    return kind(**table, **(nested or {}))


def _meant(key: str, value: object, known: Sequence[str]) -> str:
    """Return the end of a sentence that names the key or the section that was perhaps meant, or nothing."""
    sections = [name for name in _SECTIONS if name in known]
    plural = next((name for name in sections if name.rstrip("s") == key.lower().rstrip("s")), None)
    hint = "" if plural else did_you_mean(key, known)
    section = plural or next((name for name in sections if f"{name!r}" in hint), None)
    if section is None or not isinstance(value, dict | list):
        return hint if plural is None else f"; did you mean {plural!r}?"
    node_type = next(iter(value), "TYPE") if isinstance(value, dict) else "TYPE"
    written = {"nodes": f"[nodes.{node_type}]", "edges": "[[edges]]"}.get(section, f"[{section}]")
    return f"; did you mean {written}?"


def _check_type(value: object, hint: str) -> tuple[bool, str]:
    """Return whether a value is of the type of a key, and what errors call that type."""
    if "list" in hint:
        return isinstance(value, list) and all(isinstance(item, str) for item in value), "a list of texts"
    if "Mapping" in hint:
        return isinstance(value, dict) and all(isinstance(v, str) for v in value.values()), "a table of texts"
    if "bool" in hint:
        return isinstance(value, bool), "true or false"
    return isinstance(value, str), "a text"


# ---- Writing -------------------------------------------------------------------------------------
_COMMENTS = {
    (Config, "duplicates"): "an edge that is there twice counts once",
    (Config, "ignore"): "files of no relation",
    (Config, "missing_ids"): "rows with one are left out",
    (Config, "fold_ids"): "whether Ann and ann are one",
    (NodesConfig, "name"): "what people call it",
    (NodesConfig, "attributes"): "for conditions such as --where 'year >= 2000'",
    (EdgesConfig, "attributes"): "of edges, for conditions along a meta-path",
    (EdgesConfig, "split"): "several targets in one cell",
    (EdgesConfig, "optional"): "rows without a target are skipped",
    (PairConfig, "attributes"): "of edges, for conditions along a meta-path",
    (TriplesConfig, "attributes"): "of edges, for conditions along a meta-path",
    (TriplesConfig, "type"): "the type of all nodes",
}
_COMMENTS_ON_VALUES = {("name", ""): "no column has names", ("split", LISTS): "cells are lists"}


def toml_sections(config: Config, tables: Iterable[Table] | None = None) -> list[str]:
    r"""Return the text of a graph.toml by sections, which the caller joins.

    Parameters
    ----------
    config
        What the text says; keys with their default are left out.
    tables
        The tables that it names: comments show their first rows, what keys mean, and how texts could be read as numbers
        or dates. None leaves out all comments.

    >>> print("\n".join(toml_sections(Config(header=False, nodes={"movie": NodesConfig("films.csv", id="1")}))))
    header = false
    [nodes.movie]
    file = "films.csv"
    id = "1"

    """
    known = {} if tables is None else {table.label: table for table in tables}
    shown: set[str] = set()
    sections = []
    for header, files, entry in _entries(config):
        lines = [line for file in files if file in known and file not in shown for line in _sample_lines(known[file])]
        shown.update(files)
        table = known.get(files[-1]) if files else None
        keys = list(_key_lines(entry, table, commented=tables is not None))
        sections += ["\n".join([*lines, *header, *keys])] if header or keys else []
    return sections


def _entries(config: Config) -> Iterator[tuple[list[str], list[str], Entry]]:
    """Yield the entries in the order of a graph.toml: the line above their keys, their tables, and the entry."""
    yield [], [], config
    for node_type, nodes in config.nodes.items():
        yield [f"[nodes.{toml_key(node_type)}]"], [nodes.file], nodes
    for edges in config.edges:
        yield ["[[edges]]"], [edges.file], edges
    if config.pair is not None:
        yield ["[pair]"], [file for file in (config.pair.nodes, config.pair.edges) if file], config.pair
    if config.triples is not None:
        yield ["[triples]"], (config.triples.files or [])[:1], config.triples
    if config.rdf is not None:
        yield ["[rdf]"], [], config.rdf


def _key_lines(entry: Entry, table: Table | None, commented: bool) -> Iterator[str]:
    """Yield a line for each key of an entry whose value is not the default; `table` gives hints on its attributes."""
    for key in fields(entry):
        value = getattr(entry, key.name)
        default = key.default if key.default_factory is MISSING else key.default_factory()
        if value != default and not (key.name in _SECTIONS and isinstance(entry, Config)):
            comment = _COMMENTS_ON_VALUES.get((key.name, str(value))) or _COMMENTS.get((type(entry), key.name))
            yield f"{key.name} = {_value(value)}{f'   # {comment}' if comment and commented else ''}"
        elif key.name == "attribute_types" and table is not None:
            yield from _hints_on_types(table, getattr(entry, "attributes", None) or ())


def _hints_on_types(table: Table, attributes: Sequence[str]) -> list[str]:
    """Return comments on the attributes of texts that could be read as numbers or dates."""
    texts = [column for column in attributes if may_be_values(table.sample[column])]
    fits = {column: fit for column in texts if (fit := _fit_of(table, column)) is not None and fit.is_notation}
    whole = {column: fit.words[0] for column, fit in fits.items() if fit.misfit is None}
    lines = [f"# attribute_types = {_value(whole)}   # reads texts as numbers or dates"] if whole else []
    for column, fit in fits.items():
        if fit.misfit is not None or len(fit.words) > 1:
            lines.append(f"# {one_line(column)}: {one_line(fit.advice(column, 'here'))}")
    return lines


def _fit_of(table: Table, column: str) -> Fit | None:
    """Return what nearly all texts of a column are; None if it holds no texts."""
    if table.typed and not is_text(table.declared_types([column], {})[column]):
        return None
    batches = table.batches([column], {} if table.typed else {column: pa.string()})
    return find_fit(batch[column] for batch in batches)


def _sample_lines(table: Table) -> list[str]:
    """Show the header and the first row of a table as comments."""
    row = (cell[:40] for cell in first_row(table))
    columns = ", ".join(table.columns) if table.has_header else f"{len(table.columns)} columns without a header"
    return [f"# {one_line(table.label)}: {one_line(columns)[:200]}", f"#   {one_line(' | '.join(row))[:200]}"]


def first_row(table: Table) -> list[str]:
    """Return the cells of the first row of a table, empty texts if it has none."""
    return [table.sample[column][0] if table.sample[column] else "" for column in table.columns]


def one_line(text: str) -> str:
    """Return a text without what a comment cannot hold: line breaks and control characters."""
    return re.sub(r"[^\S ]|[^\x20-\x7e\xa0-\U0010ffff]", " ", text)


def _value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{toml_key(key)} = {quoted(text)}' for key, text in value.items())}}}"
    return quoted(value) if isinstance(value, str) else f"[{', '.join(map(quoted, value))}]"  # type: ignore[call-overload]


# ---- Describing tables as they are read ----------------------------------------------------------
ENDS = {"source": "head", "target": "tail"}
"""What the two ends of an edge are called among triples."""


def config_of(plan: Plan, settings: Config) -> Config:
    """Return `settings` with entries that say how tables are read.

    There are none for several tables of nodes that share ids, and for what else the headers of neo4j-admin say.
    """
    options = plan.options
    described = replace(
        settings,
        duplicates=None if options.duplicates == "count" else options.duplicates,
        missing_ids=None if options.missing_ids is None else list(options.missing_ids),
        fold_ids=options.fold_ids,
        nodes={},
        edges=[],
        pair=None,
        triples=None,
    )
    if plan.shared is None:
        nodes = {node.node_type: _nodes_config(node.selection) for node in plan.nodes}
        return replace(described, nodes=nodes, edges=list(map(_edges_config, plan.edges)), take=[], undirected=[])
    if all(edge.selection.all_text for edge in plan.edges):
        return replace(described, triples=_triples_config(plan, plan.shared))
    if _is_pair(plan):
        return replace(described, pair=_pair_config(plan.nodes[0].selection, plan.edges[0]))
    return described


def _nodes_config(nodes: Selection) -> NodesConfig:
    columns = nodes.columns
    return NodesConfig(nodes.table.label, columns["id"], columns.get("name", ""), list(nodes.attributes), nodes.kinds)


def _edges_config(edge: EdgePlan) -> EdgesConfig:
    relation, selection, columns = edge.relation, edge.selection, edge.selection.columns
    return EdgesConfig(
        relation.name,
        selection.table.label,
        relation.source,
        relation.target,
        [columns["source"], columns["target"]],
        columns.get("weight"),
        list(selection.attributes) or None,
        selection.kinds,
        selection.split,
        selection.optional,
        undirected=not relation.directed,
    )


def _is_pair(plan: Plan) -> bool:
    """Whether [pair] can say all of a plan with shared ids: where types are, and that all columns of nodes are read."""
    nodes, edge = plan.nodes[0].selection, plan.edges[0]
    is_whole = {*nodes.columns.values(), *nodes.attributes} == {*nodes.table.columns}
    is_named = "type" in nodes.columns and ("relation" in edge.selection.columns or edge.relation.name == "edge")
    return len(plan.nodes) == len(plan.edges) == 1 and not nodes.spaces and is_whole and is_named


def _pair_config(nodes: Selection, edge: EdgePlan) -> PairConfig:
    edges = edge.selection
    others = {*edges.table.columns}.difference(edges.columns.values())
    return PairConfig(
        nodes.table.label,
        edges.table.label,
        **nodes.columns,
        **(edges.columns if "relation" in edges.columns else {}),
        attributes=list(edges.attributes) if others else None,
        attribute_types={**nodes.kinds, **edges.kinds},
    )


def _triples_config(plan: Plan, shared: SharedIds) -> TriplesConfig:
    edges = [edge.selection for edge in plan.edges]
    columns, attributes = edges[0].columns, edges[0].attributes
    keys = dict[str, Any](types=plan.nodes[0].selection.table.label if plan.nodes else None)
    if not (shared.prefixed or "source_type" in columns):
        keys["type"] = shared.node_type
    if all(each.columns == columns for each in edges):
        keys["columns"] = [columns[role] for role in ("source", "relation", "target")]
        names = {f"{end}_{what}": f"{word}_{what}" for end, word in ENDS.items() for what in ("type", "name")}
        names["weight"] = "weight"
        keys |= {key: columns[role] for role, key in names.items() if role in columns}
        if attributes and all(each.attributes == attributes for each in edges):
            keys |= {"attributes": list(attributes), "attribute_types": edges[0].kinds}
    return TriplesConfig([each.table.label for each in edges], **keys)
