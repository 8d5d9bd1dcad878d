"""Write a graph as a folder of Parquet tables with a graph.toml, which `load` reads back as the same graph."""

import json
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from neupath._runtime.files import whole_folder
from neupath.errors import WriteError
from neupath.graph.edge_attributes import edge_kinds, kept_type
from neupath.graph.hin import HIN, Edges
from neupath.graph.metapath import Relation


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
    toml = []
    if hin.schema.abbreviations:
        toml += ["[abbreviations]", *(f"{quoted(k)} = {quoted(v)}" for k, v in hin.schema.abbreviations.items()), ""]
    for number, (node_type, nodes) in enumerate(hin.nodes.items()):
        file = f"nodes-{number:02d}-{_safe(node_type)}.parquet"
        others = nodes.attributes.column_names
        id_column, name_column = _free("id", others), _free("name", others)
        columns = {id_column: nodes.ids} | ({} if nodes.names is None else {name_column: nodes.names})
        columns |= {name: nodes.attributes[name] for name in others}
        pa.parquet.write_table(pa.table(columns), folder / file)
        toml += [f"[nodes.{quoted(node_type)}]", f'file = "{file}"', f'id = "{id_column}"']
        toml += [f'name = "{name_column if nodes.names is not None else ""}"', f"attributes = {json.dumps(others)}"]
        texts = [name for name in others if pa.types.is_string(nodes.attributes[name].type)]  # also 2020-01-31
        if texts:
            types = ", ".join(f'{quoted(name)} = "text"' for name in texts)
            toml.append(f"attribute_types = {{{types}}}")
        toml.append("")
    for number, relation in enumerate(hin.schema.relations):
        file = f"edges-{number:02d}-{_safe(relation.name)}.parquet"
        pa.parquet.write_table(_edge_table(hin, relation), folder / file)
        kinds = edge_kinds(hin.edge_tables, relation)
        source, target, weight = (_free(name, list(kinds)) for name in ("source", "target", "weight"))
        toml += [
            "[[edges]]",
            f"name = {quoted(relation.name)}",
            f'file = "{file}"',
            f"source = {quoted(relation.source)}",
            f"target = {quoted(relation.target)}",
            f'columns = ["{source}", "{target}"]',
            f"undirected = {str(not relation.directed).lower()}",
        ]
        if kinds:
            types = ", ".join(f"{quoted(name)} = {quoted(kind)}" for name, kind in kinds.items())
            toml.append(f'weight = "{weight}"')
            toml += [f"attributes = [{', '.join(map(quoted, kinds))}]", f"attribute_types = {{{types}}}"]
        toml.append("")
    (folder / "graph.toml").write_text("\n".join(toml), encoding="utf-8")


def _edge_table(hin: HIN, relation: Relation) -> pa.Table:
    if relation in hin.edge_tables:
        return _single_edges(hin, hin.edge_tables[relation])
    matrix = hin.matrices[relation].tocoo()
    entries = np.arange(matrix.nnz) if relation.directed else np.flatnonzero(matrix.row <= matrix.col)
    columns = {
        "source": hin.nodes[relation.source].ids.take(pa.array(matrix.row[entries])),
        "target": hin.nodes[relation.target].ids.take(pa.array(matrix.col[entries])),
    }
    if np.any(matrix.data != 1):
        columns["weight"] = pa.array(matrix.data[entries])
    return pa.table(columns)


def _single_edges(hin: HIN, edges: Edges) -> pa.Table:
    """Return the edges of a relation with their attributes, parallel ones apart."""
    names = edges.attributes.column_names
    for name in names:
        if kept_type(edges.attributes[name].type) is None:
            kind = edges.attributes[name].type
            raise WriteError(f"the attribute {name!r} of '{edges.relation}' holds {kind} values; leave it out")
    columns = {
        _free("source", names): hin.nodes[edges.relation.source].ids.take(pa.array(edges.sources)),
        _free("target", names): hin.nodes[edges.relation.target].ids.take(pa.array(edges.targets)),
        _free("weight", names): pa.array(edges.weights, pa.float64()),
    }
    return pa.table(columns | {name: edges.attributes[name] for name in names})


def _free(name: str, taken: list[str]) -> str:
    return name if name not in taken else _free(f"{name}_", taken)


def quoted(text: str) -> str:
    """Return a text as TOML writes it."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _safe(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "_", text)
