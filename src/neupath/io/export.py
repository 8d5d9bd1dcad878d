"""Write a graph as a folder of Parquet tables with a graph.toml, which `load` reads back as the same graph."""

import re
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from neupath._runtime.files import whole_folder
from neupath.errors import WriteError
from neupath.graph.edge_attributes import kept_type
from neupath.graph.hin import HIN
from neupath.graph.metapath import Relation
from neupath.io.graph_toml import GRAPH_TOML, Config, EdgesConfig, NodesConfig, toml_sections


def write_folder(hin: HIN, folder: str | Path) -> Path:
    """Write one table per node type and one per relation; the folder appears whole or not at all.

    Parameters
    ----------
    hin
        The graph.
    folder
        The folder to write; it must not exist yet.

    >>> from tempfile import TemporaryDirectory
    >>> from neupath import load
    >>> with TemporaryDirectory() as parent:
    ...     load(write_folder(load("toy"), parent + "/saved")).num_nodes("author")
    5

    """
    target = Path(folder)
    if target.exists():
        raise WriteError(f"{target} exists already; give a new folder, or remove it first")
    with whole_folder(target) as temporary:
        write_tables(hin, temporary)
    return target


def write_tables(hin: HIN, folder: Path) -> None:
    """Write the tables and the graph.toml of a graph into an existing folder."""
    nodes, edges = {}, []
    for number, (node_type, own) in enumerate(hin.nodes.items()):
        file = f"nodes-{number:02d}-{_safe(node_type)}.parquet"
        others = own.attributes.column_names
        id_, name = _free("id", others), _free("name", others)
        columns = {id_: own.ids} | ({} if own.names is None else {name: own.names})
        pa.parquet.write_table(pa.table(columns | {each: own.attributes[each] for each in others}), folder / file)
        texts = [each for each in others if pa.types.is_string(own.attributes[each].type)]  # also 2020-01-31
        nodes[node_type] = NodesConfig(file, id_, name if name in columns else "", others, dict.fromkeys(texts, "text"))
    for number, relation in enumerate(hin.schema.relations):
        file = f"edges-{number:02d}-{_safe(relation.name)}.parquet"
        table = _edge_table(hin, relation)
        pa.parquet.write_table(table, folder / file)
        kinds = hin.edge_kinds(relation)
        weight = table.column_names[2] if kinds else None
        entry = EdgesConfig(relation.name, file, relation.source, relation.target, table.column_names[:2], weight)
        entry = replace(entry, undirected=not relation.directed, attributes=list(kinds) or None, attribute_types=kinds)
        edges.append(entry)
    config = Config(abbreviations=hin.schema.abbreviations, nodes=nodes, edges=edges)
    (folder / GRAPH_TOML).write_text("\n\n".join(toml_sections(config)) + "\n", encoding="utf-8")


def _edge_table(hin: HIN, relation: Relation) -> pa.Table:
    """Return the ends of the edges of a relation, their weights if one is not 1 or there are attributes, and these."""
    edges = hin.edges(relation)
    attributes = {name: edges.attributes[name] for name in edges.attributes.column_names}
    for name, values in attributes.items():
        if kept_type(values.type) is None:
            raise WriteError(f"the attribute {name!r} of '{relation}' holds {values.type} values; leave it out")
    columns = {
        _free("source", attributes): hin.nodes[relation.source].ids.take(pa.array(edges.sources)),
        _free("target", attributes): hin.nodes[relation.target].ids.take(pa.array(edges.targets)),
    }
    if attributes or np.any(edges.weights != 1):
        columns[_free("weight", attributes)] = pa.array(edges.weights, pa.float64())
    return pa.table(columns | attributes)


def _free(name: str, taken: Collection[str]) -> str:
    return name if name not in taken else _free(f"{name}_", taken)


def _safe(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "_", text)
