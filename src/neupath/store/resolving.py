"""Resolving: the ids of a batch as keys, and everything that is wrong with it at once."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from neupath.errors import GraphError, listed
from neupath.nodes import Id
from neupath.schema import Relation, Schema
from neupath.store.batch import Batch, EdgeLine, NodeLine
from neupath.store.database import Layout, run
from neupath.store.reading import node_columns

_SHOWN = 20
Pair = tuple[int, int]


@dataclass
class Resolved:
    """A batch by keys: for each relation the weights to add and the pairs to remove, for each type the nodes."""

    added: dict[int, dict[Pair, float]] = field(default_factory=dict)
    removed: dict[int, dict[Pair, str]] = field(default_factory=dict)
    new_nodes: dict[int, list[dict[str, object]]] = field(default_factory=dict)
    dead_nodes: dict[int, dict[int, str]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def refuse_problems(self) -> None:
        """Raise one error that names every bad line."""
        if self.problems:
            raise GraphError(f"nothing was changed: {'; '.join(_cut(self.problems))}")


def _cut(problems: list[str]) -> list[str]:
    more = len(problems) - _SHOWN
    return problems if more <= 0 else [*problems[:_SHOWN], f"and {more:,} more bad lines"]


class Resolver:
    """Looks up the names and ids of one batch, and collects what it does not find."""

    def __init__(self, connection: Any, layout: Layout) -> None:
        self._connection = connection
        self._layout = layout
        self._keys: dict[int, dict[Id, int]] = {}
        self._types: dict[int, pa.DataType] = {}
        self.found = Resolved()

    def resolve(self, batch: Batch) -> Resolved:
        """Return the batch by keys; its problems are listed, not raised."""
        self._look_up(batch)
        for line in batch.remove_nodes:
            self._remove_node(line)
        for line in batch.add_nodes:
            self._add_node(line)
        for edge in batch.remove_edges:
            self._edge(edge, "remove")
        for edge in batch.add_edges:
            self._edge(edge, "add")
        return self.found

    def _look_up(self, batch: Batch) -> None:
        """Find the keys of all ids that the batch names, one query a type."""
        wanted: dict[int, set[Id]] = {}
        for line in (*batch.add_nodes, *batch.remove_nodes):
            self._want(wanted, line.node_type, line.id)
        for edge in (*batch.add_edges, *batch.remove_edges):
            relation = self._find_relation(edge.relation)
            if isinstance(relation, Relation):
                self._want(wanted, relation.source, edge.source)
                self._want(wanted, relation.target, edge.target)
        for number, ids in wanted.items():
            self._keys[number] = self._find_keys(number, ids)

    def _want(self, wanted: dict[int, set[Id]], node_type: str, id_: Id) -> None:
        if node_type in self._layout.schema.node_types:
            number = self._layout.schema.node_types.index(node_type)
            key = self._as_id(number, id_)
            if key is not None:
                wanted.setdefault(number, set()).add(key)

    def _find_keys(self, number: int, ids: Iterable[Id]) -> dict[Id, int]:
        given = pa.table({"id": pa.array(list(ids), self._id_type(number))})
        self._connection.register("wanted", given)
        query = f"SELECT n.id, n.key FROM nodes_{number} n JOIN wanted USING (id) WHERE n.died IS NULL"  # noqa: S608
        found: dict[Id, int] = dict(run(self._connection, query))
        self._connection.unregister("wanted")
        return found

    def _id_type(self, number: int) -> pa.DataType:
        if number not in self._types:
            schema = self._connection.sql(f"SELECT id FROM nodes_{number} LIMIT 0").to_arrow_table().schema  # noqa: S608
            self._types[number] = pa.int64() if pa.types.is_int64(schema.field("id").type) else pa.string()
        return self._types[number]

    def _as_id(self, number: int, id_: Id) -> Id | None:
        """Return an id as the type's ids are, or nothing where it cannot be one."""
        if pa.types.is_string(self._id_type(number)):
            return str(id_)
        try:
            value = int(id_)
        except ValueError:
            return None
        return value if abs(value) < 2**63 and str(value) == str(id_).strip() else None

    def _remove_node(self, line: NodeLine) -> None:
        number = self._type_number(line)
        if number is None:
            return
        key = self._key(number, line.id)
        if key is None:
            self._problem(line, f"no {line.node_type} with the id {line.id!r} to remove")
        elif key in self.found.dead_nodes.setdefault(number, {}):
            self._problem(line, f"{line.node_type} {line.id!r} is removed a second time")
        else:
            self.found.dead_nodes[number][key] = _place(line)

    def _add_node(self, line: NodeLine) -> None:
        number = self._type_number(line)
        if number is None:
            return
        id_ = self._as_id(number, line.id)
        schema, problem = self._layout.attributes[number], None
        unknown = [name for name in line.attributes if name not in schema.names]
        known = self._key(number, line.id)
        if id_ in (None, ""):
            problem = f"{line.id!r} cannot be the id of a {line.node_type}"
        elif known is not None and known not in self.found.dead_nodes.get(number, {}):
            problem = f"{line.node_type} {line.id!r} is there already"
        elif unknown:
            problem = f"{line.node_type} has no attribute {listed(unknown)} (it has {listed(schema.names) or 'none'})"
        elif line.name is not None and not self._layout.named[number]:
            problem = f"nodes of type {line.node_type} have no names, and {line.name!r} is given"
        values = None if problem else self._attributes(schema, line)
        if problem or values is None or id_ is None:
            self._problem(
                line, problem or f"its attributes {dict(line.attributes)} are not of the types {schema.types}"
            )
            return
        rows = self.found.new_nodes.setdefault(number, [])
        key = self._next_key(number) + len(rows)
        rows.append({"key": key, "id": id_, "name": line.name} | values)
        self._keys.setdefault(number, {})[id_] = key

    def _attributes(self, schema: pa.Schema, line: NodeLine) -> dict[str, object] | None:
        try:
            columns = zip(node_columns(len(schema)), schema, strict=True)
            given = {column: (pa.scalar(line.attributes.get(f.name)), f.type) for column, f in columns}
            return {column: value.cast(wanted).as_py() for column, (value, wanted) in given.items()}
        except pa.ArrowException:
            return None

    def _next_key(self, number: int) -> int:
        ((found,),) = run(self._connection, f"SELECT coalesce(max(key), -1) + 1 FROM nodes_{number}")  # noqa: S608
        return int(found)

    def _edge(self, line: EdgeLine, verb: str) -> None:
        relation = self._find_relation(line.relation)
        if not isinstance(relation, Relation):
            self._problem(line, relation)
            return
        if verb == "add" and not (math.isfinite(line.weight) and line.weight > 0):
            self._problem(line, f"weight {line.weight} is not allowed; weights are finite numbers above 0")
            return
        number = self._layout.schema.relations.index(relation)
        source = self._end(line, relation.source, line.source)
        target = self._end(line, relation.target, line.target)
        if source is None or target is None:
            return
        pair = (source, target) if relation.directed or source <= target else (target, source)
        if verb == "add":
            weights = self.found.added.setdefault(number, {})
            weights[pair] = weights.get(pair, 0.0) + line.weight
        elif pair in self.found.removed.setdefault(number, {}):
            self._problem(line, f"the edge from {line.source!r} to {line.target!r} is removed a second time")
        else:
            self.found.removed[number][pair] = f"{_place(line)}'{relation}' from {line.source!r} to {line.target!r}"

    def _end(self, line: EdgeLine, node_type: str, id_: Id) -> int | None:
        key = self._key(self._layout.schema.node_types.index(node_type), id_)
        if key is None:
            self._problem(line, f"no {node_type} with the id {id_!r}")
        return key

    def _key(self, number: int, id_: Id) -> int | None:
        wanted = self._as_id(number, id_)
        return None if wanted is None else self._keys.get(number, {}).get(wanted)

    def _type_number(self, line: NodeLine) -> int | None:
        if line.node_type in self._layout.schema.node_types:
            return self._layout.schema.node_types.index(line.node_type)
        types = listed(self._layout.schema.node_types)
        self._problem(line, f"no node type {line.node_type!r} in this graph (it has {types})")
        return None

    def _find_relation(self, text: str) -> Relation | str:
        return find_relation(self._layout.schema, text)

    def _problem(self, line: EdgeLine | NodeLine, text: str) -> None:
        self.found.problems.append(_place(line) + text)


def find_relation(schema: Schema, text: str) -> Relation | str:
    """Return the relation of a name or in its full spelling, or say why there is none."""
    fitting = [relation for relation in schema.relations if text in (relation.name, str(relation))]
    if len(fitting) == 1:
        return fitting[0]
    names: Sequence[str] = [str(relation) for relation in fitting or schema.relations]
    if fitting:
        return f"relation {text!r} could be {' or '.join(names)}; write it in full"
    return f"no relation {text!r} in this graph (it has {listed(names)})"


def _place(line: EdgeLine | NodeLine) -> str:
    return f"{line.place}: " if line.place else ""
