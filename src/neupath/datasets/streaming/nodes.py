"""Nodes of a stream: which ids are integers, and how tables of nodes are written, some rows at a time."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neupath.datasets.assemble import INTEGERS
from neupath.datasets.sources import Part, Selection
from neupath.datasets.streaming.joining import StagedType
from neupath.datasets.streaming.staging import StagedNodes, Staging
from neupath.store import Filling, fetch, node_table


def staged_type(
    staging: Staging, node_type: str, query: str, staged: StagedNodes, *, typed: bool, named: bool
) -> StagedType:
    """Describe the nodes of a type; ids that all read as integers are integers, unless their table is typed."""
    kind = staged.kinds["id"]
    guessed = pa.types.is_string(kind) and not typed
    whole = f"count(*) FILTER (WHERE regexp_full_match(id, '{INTEGERS}'))" if guessed else "0"
    ((count, integers),) = staging.run(f"SELECT count(*), {whole} FROM {query}")  # noqa: S608
    return StagedType(node_type, query, kind, count, 0 < count == integers, named, staged.attributes)


def write_named(filling: Filling, number: int, node_type: StagedType) -> None:
    """Write the nodes of a type of which only ids are known."""
    with filling.writing_nodes(number, _schema(node_type)) as out:
        first = 0
        for batch in fetch(filling.connection, f"SELECT id FROM {node_type.query} ORDER BY key"):  # noqa: S608
            ids = _ids(batch.column(0), node_type)
            out.write_table(node_table(ids, None, pa.table({}), first))
            first += len(ids)


def write_selected(filling: Filling, staging: Staging, selection: Selection, types: Mapping[int, StagedType]) -> None:
    """Write the nodes of a file under the number of their type: the one that their row says, or the only one."""
    attributes = next(iter(types.values())).attributes
    kinds = {name: attributes.field(name).type for name in selection.guessed}
    firsts = dict.fromkeys(types, 0)
    with ExitStack() as stack:
        out = {n: stack.enter_context(filling.writing_nodes(n, _schema(types[n]))) for n in types}
        for part in staging.read("writing", selection, kinds):
            for number, rows in _rows_by_type(part, types):
                names = part.columns.get("name")
                ids = _ids(part.columns["id"].take(rows), types[number])
                table = node_table(
                    ids, None if names is None else names.take(rows), part.attributes.take(rows), firsts[number]
                )
                out[number].write_table(table)
                firsts[number] += len(ids)


def _rows_by_type(part: Part, types: Mapping[int, StagedType]) -> Iterator[tuple[int, pa.Array]]:
    """Yield the number of each type that stands in a part, with its rows."""
    if "type" not in part.columns:
        yield next(iter(types)), pa.array(np.arange(len(part)))
        return
    for number, node_type in types.items():
        rows = np.flatnonzero(pc.equal(part.columns["type"], node_type.node_type).to_numpy(zero_copy_only=False))
        if len(rows):
            yield number, pa.array(rows)


def _ids(ids: pa.Array, node_type: StagedType) -> pa.Array:
    return ids.cast(pa.int64() if node_type.integers else node_type.kind)


def _schema(node_type: StagedType) -> pa.Schema:
    ids = _ids(pa.array([], node_type.kind), node_type)
    return node_table(ids, None, node_type.attributes.empty_table()).schema
