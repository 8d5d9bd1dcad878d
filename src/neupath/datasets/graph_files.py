"""GraphML, GEXF and GML files, as NetworkX reads them."""

from pathlib import Path
from typing import Any

from neupath.datasets.faults import explained
from neupath.datasets.interop import from_networkx
from neupath.errors import MissingExtraError, SourceError
from neupath.graph import HIN, Duplicates

GRAPH_SUFFIXES = (".graphml", ".gexf", ".gml")


def is_graph_file(path: Path) -> bool:
    """Whether a file's name says that NetworkX can read it."""
    return path.is_file() and path.name.lower().removesuffix(".gz").endswith(GRAPH_SUFFIXES)


def read_graph_file(path: Path, duplicates: Duplicates = "count") -> HIN:
    """Read a file as a NetworkX graph, and that as a graph of types and relations."""
    return from_networkx(_read(path), duplicates=duplicates)


def _read(path: Path) -> Any:
    try:
        import networkx as nx
    except ImportError as error:
        raise MissingExtraError("networkx", "networkx") from error
    name = path.name.lower().removesuffix(".gz")
    read = nx.read_graphml if name.endswith(".graphml") else nx.read_gexf if name.endswith(".gexf") else _read_gml
    try:
        with explained(path):
            return read(path)
    except (nx.NetworkXException, SyntaxError, LookupError, TypeError, ValueError) as error:
        raise SourceError(f"{path} cannot be read as {Path(name).suffix[1:]}: {error}") from error


def _read_gml(path: Path) -> Any:
    """Read GML by the ids that all of its nodes have; labels, which may be missing or the same, are names."""
    import networkx as nx

    graph = nx.read_gml(path, label="id")
    for _, data in graph.nodes(data=True):
        if "label" in data and "name" not in data:
            data["name"] = data.pop("label")
    return graph
