"""Read GraphML, GEXF and GML with NetworkX."""

import io
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import iterparse

from neupath.errors import MissingExtraError, SourceError, first_line
from neupath.graph.hin import Duplicates
from neupath.io.interop import networkx_plan
from neupath.io.plan import Plan
from neupath.io.text_files import file_errors, open_raw, refuse_special

GRAPH_SUFFIXES = (".graphml", ".gexf", ".gml")


def is_graph_file(path: Path) -> bool:
    """Whether a file is one of these by its name."""
    return _plain_name(path).endswith(GRAPH_SUFFIXES) and path.is_file()


def _plain_name(path: Path) -> str:
    return path.name.lower().removesuffix(".gz")


def read_graph_file(path: Path, duplicates: Duplicates = "count") -> Plan:
    """Read a file with NetworkX, and return what its attributes say of its nodes and edges."""
    try:
        import networkx as nx
    except ModuleNotFoundError as error:
        raise MissingExtraError("networkx", "networkx") from error
    kind = Path(_plain_name(path)).suffix[1:]
    refuse_special(path)
    try:
        with file_errors(path), open_raw(path) as stream:
            content = io.BytesIO(stream.read())
            if kind == "gml":
                graph = _read_gml(content)
            else:
                _check_ends(path, content)
                graph = (nx.read_graphml if kind == "graphml" else nx.read_gexf)(content)
    except RecursionError as error:
        raise SourceError(f"{path} is nested too deeply to be a graph") from error
    except (nx.NetworkXException, ArithmeticError, SyntaxError, LookupError, TypeError, ValueError) as error:
        raise SourceError(f"{path} cannot be read as {kind}: {first_line(error)}") from error
    return networkx_plan(graph, duplicates=duplicates)


def _check_ends(path: Path, content: io.BytesIO) -> None:
    """Raise if two nodes of an XML file have the same id, or if an edge leads to a node that the file does not have.

    NetworkX would take the last of the nodes, and add a node without a type.
    """
    nodes: set[str] = set()
    ends: dict[str, str] = {}
    for _, element in iterparse(content):  # noqa: S314  expat stops entities that grow, and opens no files
        kind, get = element.tag.rpartition("}")[2], element.attrib.get
        if kind == "node" and (node := get("id")) is not None:
            if node in nodes:
                raise SourceError(f"{path}: node id {node!r} is repeated; node ids must be unique")
            nodes.add(node)
        elif kind == "edge":
            edge = f"the edge from {get('source')!r} to {get('target')!r}"
            ends |= {end: edge for end in (get("source"), get("target")) if end is not None and end not in ends}
        element.clear()
    for end, edge in ends.items():
        if end not in nodes:
            raise SourceError(f"{path}: {edge} leads to {end!r}, which is not a node of the file; add it there")
    content.seek(0)


def _read_gml(content: io.BytesIO) -> Any:
    """Read GML by the ids of its nodes; labels, which may be missing or repeated, become names."""
    import networkx as nx

    graph = nx.read_gml(content, label="id")
    for _, data in graph.nodes(data=True):
        if "label" in data and "name" not in data:
            data["name"] = data.pop("label")
    return graph
