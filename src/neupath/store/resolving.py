"""Resolving: the ids of a batch as keys, and everything that is wrong with it at once."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real

import pyarrow as pa

from neupath.errors import GraphError, listed
from neupath.nodes import Id
from neupath.schema import Relation, Schema
from neupath.store.batch import Batch, EdgeLine, NodeLine
from neupath.store.drafts import Pair
from neupath.store.reading import node_columns
from neupath.store.standing import Standing

_SHOWN = 20
_LETTERS = 100


@dataclass(frozen=True)
class NewNode:
    """A node that comes, with its attributes as the columns of its table."""

    key: int
    id: Id
    name: str | None
    attributes: Mapping[str, object]

    def columns(self, version: int) -> dict[str, object]:
        """Return its row of the table, born with a version."""
        return {"key": self.key, "born": version, "id": self.id, "name": self.name, **self.attributes}


@dataclass
class Resolved:
    """A batch by keys: for each relation the weights to add and the pairs to remove, for each type the nodes."""

    added: dict[int, dict[Pair, float]] = field(default_factory=dict)
    removed: dict[int, dict[Pair, str]] = field(default_factory=dict)
    new_nodes: dict[int, list[NewNode]] = field(default_factory=dict)
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

    def __init__(self, standing: Standing) -> None:
        self._standing = standing
        self._layout = standing.layout
        self._own: dict[int, dict[Id, int]] = {}
        """The nodes that this batch adds."""
        self.found = Resolved()

    def resolve(self, batch: Batch) -> Resolved:
        """Return the batch by keys; its problems are listed, not raised."""
        for edge in batch.remove_edges:
            self._edge(edge, "remove")
        for line in batch.remove_nodes:
            self._remove_node(line)
        for line in batch.add_nodes:
            self._add_node(line)
        for edge in batch.add_edges:
            self._edge(edge, "add")
        return self.found

    def _as_id(self, number: int, id_: Id) -> Id | None:
        """Return an id as the type's ids are, or nothing where it cannot be one."""
        if not isinstance(id_, str | Integral):
            return None
        if not self._standing.has_numbers(number):
            return str(id_) if _is_text(str(id_)) else None
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
            self._problem(line, f"no {line.node_type} with the id {_told(line.id)} to remove")
        elif key in self.found.dead_nodes.setdefault(number, {}):
            self._problem(line, f"{line.node_type} {_told(line.id)} is removed a second time")
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
            problem = f"{_told(line.id)} cannot be the id of a {line.node_type}"
        elif known is not None and known not in self.found.dead_nodes.get(number, {}):
            problem = f"{line.node_type} {_told(line.id)} is there already"
        elif unknown:
            problem = f"{line.node_type} has no attribute {listed(unknown)} (it has {listed(schema.names) or 'none'})"
        elif line.name is not None and not self._layout.named[number]:
            problem = f"nodes of type {line.node_type} have no names, and {_told(line.name)} is given"
        elif line.name is not None and not (isinstance(line.name, str) and _is_text(line.name)):
            problem = f"{_told(line.name)} is not valid text, and cannot be the name of a {line.node_type}"
        values = None if problem else self._attributes(schema, line)
        if problem or values is None or id_ is None:
            self._problem(
                line, problem or f"its attributes {dict(line.attributes)} are not of the types {schema.types}"
            )
            return
        rows = self.found.new_nodes.setdefault(number, [])
        key = self._standing.next_key(number) + len(rows)
        rows.append(NewNode(key, id_, line.name, values))
        self._own.setdefault(number, {})[id_] = key

    def _attributes(self, schema: pa.Schema, line: NodeLine) -> dict[str, object] | None:
        try:
            columns = zip(node_columns(len(schema)), schema, strict=True)
            given = {column: (pa.scalar(line.attributes.get(f.name)), f.type) for column, f in columns}
            return {column: value.cast(wanted).as_py() for column, (value, wanted) in given.items()}
        except (pa.ArrowException, UnicodeError, OverflowError):
            return None

    def _edge(self, line: EdgeLine, verb: str) -> None:
        relation = self._find_relation(line.relation)
        if not isinstance(relation, Relation):
            self._problem(line, relation)
            return
        if verb == "add" and not _is_weight(line.weight):
            self._problem(line, f"weight {_told(line.weight)} is not allowed; weights are finite numbers above 0")
            return
        number = self._layout.schema.relations.index(relation)
        source = self._end(line, relation.source, line.source)
        target = self._end(line, relation.target, line.target)
        if source is None or target is None:
            return
        pair = (source, target) if relation.directed or source <= target else (target, source)
        if verb == "add":
            weights = self.found.added.setdefault(number, {})
            weights[pair] = weights.get(pair, 0.0) + float(line.weight)
        elif pair in self.found.removed.setdefault(number, {}):
            self._problem(line, f"the edge from {_told(line.source)} to {_told(line.target)} is removed a second time")
        else:
            self.found.removed[number][pair] = (
                f"{_place(line)}'{relation}' from {_told(line.source)} to {_told(line.target)}"
            )

    def _end(self, line: EdgeLine, node_type: str, id_: Id) -> int | None:
        key = self._key(self._layout.schema.node_types.index(node_type), id_)
        if key is None:
            self._problem(line, f"no {node_type} with the id {_told(id_)}")
        return key

    def _key(self, number: int, id_: Id) -> int | None:
        wanted = self._as_id(number, id_)
        if wanted is None:
            return None
        own = self._own.get(number, {}).get(wanted)
        return self._standing.key(number, wanted) if own is None else own

    def _type_number(self, line: NodeLine) -> int | None:
        if line.node_type in self._layout.schema.node_types:
            return self._layout.schema.node_types.index(line.node_type)
        types = listed(self._layout.schema.node_types)
        self._problem(line, f"no node type {_told(line.node_type)} in this graph (it has {types})")
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
        return f"relation {_told(text)} could be {' or '.join(names)}; write it in full"
    return f"no relation {_told(text)} in this graph (it has {listed(names)})"


def _is_weight(given: object) -> bool:
    """Whether an edge can have this weight; a whole number may be beyond all floats."""
    try:
        return isinstance(given, Real) and math.isfinite(given) and float(given) > 0
    except OverflowError:
        return False


def _is_text(text: str) -> bool:
    """Whether a text can be written down; half of a surrogate pair, which JSON may hold, cannot."""
    return text.isprintable() or not any("\ud800" <= letter <= "\udfff" for letter in text)


def _told(given: object) -> str:
    """Return what was given as an error shows it, cut where it is long."""
    text = repr(given)
    return text if len(text) <= _LETTERS else f"{text[:_LETTERS]}…"


def _place(line: EdgeLine | NodeLine) -> str:
    return f"{line.place}: " if line.place else ""
