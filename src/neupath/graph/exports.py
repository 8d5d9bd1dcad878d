"""A graph as other libraries take it: NetworkX, PyTorch Geometric and DGL."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from neupath.errors import GraphError, MissingExtraError
from neupath.graph.edges import Edges, Floats
from neupath.graph.hin import HIN
from neupath.graph.nodes import Rows

if TYPE_CHECKING:
    import networkx as nx
    from torch_geometric.data import HeteroData


def to_networkx(hin: HIN) -> "nx.MultiDiGraph[Any]":
    """Return the graph as a NetworkX graph with (type, id) as nodes; `from_networkx` reads it back.

    >>> from neupath import load
    >>> to_networkx(load("toy")).number_of_nodes()
    90
    """
    try:
        import networkx as nx
    except ModuleNotFoundError as error:
        raise MissingExtraError("networkx", "networkx") from error
    graph: nx.MultiDiGraph[Any] = nx.MultiDiGraph(written_by="neupath")  # so that no attribute is taken for another
    for kind, nodes in hin.nodes.items():
        _refuse_names(nodes.attributes.column_names, ("type", "id", "name"), f"{kind} nodes", "NetworkX graph")
        columns = {name: nodes.attributes[name].to_pylist() for name in nodes.attributes.column_names}
        for row, node_id in enumerate(nodes.ids.to_pylist()):
            name, values = nodes.name(row), {column: own[row] for column, own in columns.items()}
            values |= {"type": kind, "id": node_id} | ({} if name is None else {"name": name})
            graph.add_nodes_from([((kind, node_id), values)])
    for relation in hin.schema.relations:
        sources, targets = hin.nodes[relation.source].ids.to_pylist(), hin.nodes[relation.target].ids.to_pylist()
        edges = hin.edges(relation)
        _refuse_names(edges.attributes.column_names, ("relation", "directed"), f"'{relation}'", "NetworkX graph")
        parts = edges.sources.tolist(), edges.targets.tolist(), edges.known_weights.tolist()
        rows = edges.attributes.to_pylist() if edges.attributes.num_columns else [{}] * len(edges.sources)
        for row, column, weight, own in zip(*parts, rows, strict=True):
            values = {name: value for name, value in own.items() if value is not None}
            values |= {"relation": relation.name, "weight": weight, "directed": relation.directed}
            graph.add_edges_from([((relation.source, sources[row]), (relation.target, targets[column]), values)])
    return graph


def _refuse_names(attributes: Sequence[str], taken: Sequence[str], owner: str, where: str) -> None:
    """Raise if an attribute has a name that means something else in the graph of another library."""
    for name in taken:
        if name in attributes:
            raise GraphError(
                f"the attribute {name!r} of {owner} cannot be written to a {where}, where neupath keeps its own "
                f"{name!r}; rename it in the source of the graph"
            )


def _attribute_arrays(edges: Edges) -> dict[str, NDArray[Any]]:
    """Return the attributes of edges as NumPy arrays: missing numbers are nan, missing texts None."""
    arrays = {}
    for name in edges.attributes.column_names:
        column = edges.attributes[name].combine_chunks()
        arrays[name] = _to_numpy(column.dictionary_decode() if pa.types.is_dictionary(column.type) else column)
    return arrays


def to_pyg(hin: HIN) -> "HeteroData":
    """Return the graph as a `torch_geometric.data.HeteroData`, with `edge_weight` unless all weights are 1.

    The `ids` of each node type, and its `names` if it has any, are NumPy arrays in the order of the nodes; `load` reads
    them back. Attributes of edges are tensors under their names, or NumPy arrays if they are texts, dates or times.
    """
    try:
        import torch
        from torch_geometric.data import HeteroData
    except ModuleNotFoundError as error:
        raise MissingExtraError("torch_geometric", "torch_geometric") from error
    data, parts = HeteroData(), to_dgl_dict(hin)
    for kind, count in parts["num_nodes_dict"].items():
        data[kind].num_nodes, data[kind].ids = count, parts["ids"][kind]
        if kind in parts["names"]:
            data[kind].names = parts["names"][kind]
    for relation, (key, ends) in zip(hin.schema.relations, parts["data_dict"].items(), strict=True):
        store, weights, arrays = data[key], parts["weights"][key], parts["attributes"][key]
        store.edge_index = torch.from_numpy(np.stack(ends))
        _refuse_names(list(arrays), ("edge_index", "edge_weight"), f"'{relation}'", "HeteroData")
        if arrays or np.any(weights != 1):  # with attributes always: one of them could be taken for the weight
            store.edge_weight = torch.from_numpy(weights)
        for name, array in arrays.items():
            store[name] = torch.from_numpy(array) if array.dtype.kind in "bif" else array
    return data


class DGLDict(TypedDict):
    """What `dgl.heterograph` takes, `data_dict` and `num_nodes_dict`, and what belongs to its nodes and edges."""

    data_dict: dict[tuple[str, str, str], tuple[Rows, Rows]]
    num_nodes_dict: dict[str, int]
    weights: dict[tuple[str, str, str], Floats]
    attributes: dict[tuple[str, str, str], dict[str, NDArray[Any]]]
    ids: dict[str, NDArray[Any]]
    names: dict[str, NDArray[Any]]


def to_dgl_dict(hin: HIN) -> DGLDict:
    """Return the graph as dictionaries for DGL: `dgl.heterograph(parts["data_dict"], parts["num_nodes_dict"])`.

    The edges of each relation are the rows of their ends; weights and attributes are in the order of the edges, ids and
    names in that of the nodes. An undirected relation has each edge in both directions.

    >>> from neupath import load
    >>> parts = to_dgl_dict(load("toy"))
    >>> parts["num_nodes_dict"]["author"], len(parts["data_dict"]["author", "writes", "paper"][0])
    (5, 81)
    """
    parts = DGLDict(data_dict={}, num_nodes_dict={}, weights={}, attributes={}, ids={}, names={})
    for kind, nodes in hin.nodes.items():
        parts["num_nodes_dict"][kind], parts["ids"][kind] = len(nodes), _to_numpy(nodes.ids)
        if nodes.names is not None:
            parts["names"][kind] = _to_numpy(nodes.names)
    for relation in hin.schema.relations:
        edges, key = hin.edges(relation).both_ways(), (relation.source, relation.name, relation.target)
        parts["data_dict"][key] = edges.sources, edges.targets
        parts["weights"][key] = edges.known_weights.copy()
        parts["attributes"][key] = _attribute_arrays(edges)
    return parts


def _to_numpy(values: pa.Array) -> NDArray[Any]:
    array: NDArray[Any] = values.to_numpy(zero_copy_only=False).copy()
    return array
