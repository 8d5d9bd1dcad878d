"""The pair nodes + edges: one table of the nodes of all types, and one of the edges of all relations."""

import re
from pathlib import Path

from neupath.datasets.assemble import Choices
from neupath.datasets.config import Config, PairConfig
from neupath.datasets.detection import weight_column
from neupath.datasets.sources import Selection, TripleTables, present
from neupath.datasets.tables import TableFile, stem
from neupath.datasets.triples import has_triples
from neupath.errors import SourceError, listed

_NODES = ("nodes", "node", "vertices", "entities")
_EDGES = ("edges", "edge", "links", "relations", "triples")
_PERHAPS_EDGES = ("link", "relationships")
"""What a table of one relation is called, too: user_item_link."""
_COLUMN_NAMES = {
    "id": ("id", ":id", "node_id", "identifier", "entity", "key"),
    "name": ("name", "title", "label"),
    "type": ("type", "kind", "node_type", "category", "class", ":label"),
    "label": ("labels", "label"),
    "source": ("source", "src", "head", "from", "start", "subject", "source_id", ":start_id", "start_id"),
    "relation": ("relation", "metaedge", "rel", "edge_type", "type", ":type", "predicate", "kind", "label"),
    "target": ("target", "dst", "dest", "tail", "to", "end", "object", "target_id", ":end_id", "end_id"),
}
_NEO4J_ROLE = re.compile(r"^.*(:(?:id|label|type|start_id|end_id))(?:\(.*\))?$")
"""A column as neo4j-admin writes it: personId:ID(Person), :START_ID."""


def find_pair(paths: list[Path], folder: Path, settings: Config) -> tuple[Path, Path] | None:
    """Find the nodes table and the edges table, by configuration or by the end of their names."""
    if settings.pair is not None and settings.pair.nodes and settings.pair.edges:
        return folder / settings.pair.nodes, folder / settings.pair.edges
    nodes = [path for path in paths if _last_word(path) in _NODES]
    edges = _edge_tables(paths, settings)
    if len(nodes) == 1 and len(edges) == 1 and not settings.nodes and not settings.edges:
        return nodes[0], edges[0]
    return None


def find_lone_edges(paths: list[Path], settings: Config) -> list[Path]:
    """Find the table of all edges that is there without one of nodes, and names the relation of each."""
    edges = _edge_tables(paths, settings)
    alone = len(edges) == 1 and not any(_last_word(path) in _NODES for path in paths)
    return edges if alone and _is_edge_list(TableFile(edges[0], settings.dialect)) else []


def _edge_tables(paths: list[Path], settings: Config) -> list[Path]:
    """Find the tables of all edges by their names, or else by names that are less clear and their columns."""
    named = [path for path in paths if _last_word(path) in _EDGES]
    return named or [path for path in paths if _last_word(path) in _PERHAPS_EDGES and _has_ends(path, settings)]


def _has_ends(path: Path, settings: Config) -> bool:
    file = TableFile(path, settings.dialect)
    return all(_usual_column(file, purpose, ()) for purpose in ("source", "relation", "target"))


def _is_edge_list(file: TableFile) -> bool:
    """Whether a table of edges names the relation of each, under known names or between its ends."""
    relation = _usual_column(file, "relation", ())
    return relation is not None and (has_triples(file) or relation in file.columns[1:2])


def _last_word(path: Path) -> str:
    return stem(path).lower().replace("-", "_").rsplit("_", 1)[-1]


def as_pair(nodes_path: Path, edges_path: Path, settings: Config, choices: Choices) -> TripleTables:
    """Settle the columns of both tables."""
    wanted = settings.pair or PairConfig()
    nodes_file, edges_file = (TableFile(path, settings.dialect) for path in (nodes_path, edges_path))
    id_ = _pair_column(nodes_file, wanted, "id")
    type_ = nodes_file.column(wanted.type, "type") if wanted.type else _type_column(nodes_file, edges_file, id_)
    usual_name = _usual_column(nodes_file, "name", (id_, type_ or ""))
    name = nodes_file.column(wanted.name, "name") if wanted.name else usual_name
    attributes = [c for c in nodes_file.columns if c not in (id_, type_, name)]
    ends = [_pair_column(edges_file, wanted, purpose) for purpose in ("source", "relation", "target")]
    weight = edges_file.column(wanted.weight, "weight") if wanted.weight else weight_column(edges_file, ends)
    nodes = Selection(nodes_file, present(id=id_, type=type_, name=name), attributes)
    edges = Selection(edges_file, present(source=ends[0], relation=ends[1], target=ends[2], weight=weight))
    return TripleTables(nodes, "node", [edges], choices)


def _type_column(nodes: TableFile, edges: TableFile, id_: str) -> str | None:
    """Return the column of types; a label is one in the tables of a property graph alone, else a class or a name."""
    usual = _usual_column(nodes, "type", (id_,))
    label = _usual_column(nodes, "label", (id_,))
    if usual or label is None or _last_word(edges.path) not in _PERHAPS_EDGES:
        return usual
    return label if _usual_column(nodes, "name", (id_, label)) and not nodes.has_numbers(label) else None


def _pair_column(file: TableFile, wanted: PairConfig, purpose: str) -> str:
    given = getattr(wanted, purpose)
    if given is not None:
        return file.column(given, purpose)
    usual = _usual_column(file, purpose, ())
    if usual is None:
        raise SourceError(
            f"{file.path} has no column for the {purpose} (it has {listed(file.columns)}); "
            f'call it {purpose!r}, or name it in graph.toml under [pair] as {purpose} = "…"'
        )
    return usual


def _usual_column(file: TableFile, purpose: str, taken: tuple[str, ...]) -> str | None:
    by_lower = {_NEO4J_ROLE.sub(r"\1", column.lower()): column for column in file.columns if column not in taken}
    return next((by_lower[name] for name in _COLUMN_NAMES[purpose] if name in by_lower), None)
