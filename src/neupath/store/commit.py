"""Committing updates: each is checked against the newest version, becomes a change by keys, and is written."""

import math
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from neupath.errors import GraphError, listed
from neupath.graph.metapath import Relation, Schema
from neupath.graph.nodes import Id
from neupath.store.database import (
    ROWS_PER_INSERT,
    VersionFacts,
    insert_rows,
    insert_table,
    node_columns,
    run_on,
    transaction,
    write_facts,
)
from neupath.store.edge_matrices import add_checksums, checksum_of_node, edge_checksum
from neupath.store.update import Edge, Node, Update
from neupath.store.versions import Change, EdgeChange, Head, Pair

_MAX_PROBLEMS = 20
_MAX_LETTERS = 100


# ---- Writing -------------------------------------------------------------------------------------
def write_updates(connection: Any, folder: Path, head: Head, updates: Sequence[Update]) -> list[Change | BaseException]:
    """Write updates in one transaction, each as its own version; an update that is refused gives its error instead.

    When this returns, the others are on disk. Where it raises, `head` is ahead of the database and must be dropped.
    """
    outcomes: list[Change | BaseException] = []
    for update in updates:
        try:
            change = Validator(head).check(update)
        except Exception as error:
            outcomes.append(error)
        else:
            head.advance(change)
            outcomes.append(change)
    changes = [outcome for outcome in outcomes if isinstance(outcome, Change)]
    if changes:
        with transaction(connection, folder):
            _write(connection, changes)
    return outcomes


def _write(connection: Any, changes: Sequence[Change]) -> None:
    """Insert all new nodes before removing any: a node may come and go within one group of changes."""
    tables = [_change_table(change.version, *edges) for change in changes for edges in change.edges.items()]
    edges = pa.concat_tables(tables) if tables else pa.table({})
    if 0 < len(edges) <= ROWS_PER_INSERT:
        insert_rows(connection, "changes", list(zip(*(column.to_pylist() for column in edges.columns), strict=True)))
    elif len(edges):
        insert_table(connection, "changes", edges)
    for change in changes:
        for number, table in change.new_nodes.items():
            insert_table(connection, f"nodes_{number}", table)
    for change in changes:
        for number, keys in change.removed_nodes.items():
            _remove_nodes(connection, number, keys, change.version)
    write_facts(connection, *(change.facts for change in changes))


def _change_table(version: int, number: int, change: EdgeChange) -> pa.Table:
    size = len(change.sources)
    return pa.table(
        {
            "version": np.full(size, version, np.int64), "relation": np.full(size, number, np.int32),
            "source": change.sources, "target": change.targets, "before": change.before, "after": change.after,
        }
    )  # fmt: skip


def _remove_nodes(connection: Any, number: int, keys: Sequence[int], version: int) -> None:
    given = pa.table({"key": np.array(keys, dtype=np.int64)})
    run_on(connection, given, f"UPDATE nodes_{number} SET died = {version} WHERE key IN (SELECT key FROM given)")  # noqa: S608


# ---- Checking ------------------------------------------------------------------------------------
class Validator:
    """Checks one update against the newest version: looks up relations, types and ids, and collects all problems."""

    def __init__(self, head: Head) -> None:
        self._head, self._layout = head, head.layout
        self._added: dict[int, dict[Pair, float]] = {}
        """By relation number: the weight to add to each pair."""
        self._removed: dict[int, dict[Pair, str]] = {}
        """By relation number: the pairs to remove, each with its description for errors."""
        self._new: dict[int, list[dict[str, Any]]] = {}
        """By type number: the new rows of its table."""
        self._new_keys: dict[int, dict[Id, int]] = {}
        self._dead: dict[int, dict[int, str]] = {}
        """By type number: the keys that are removed, each with its place."""
        self._problems: list[str] = []

    def check(self, update: Update) -> Change:
        """Return the update as a change by keys, or raise one error that names every bad line."""
        for place, edge in update.located("remove_edges"):
            self._remove_edge(place, edge)
        for place, node in update.located("remove_nodes"):
            self._remove_node(place, node)
        for place, node in update.located("add_nodes"):
            self._add_node(place, node)
        for place, edge in update.located("add_edges"):
            self._add_edge(place, edge)
        edges = {
            number: self._edge_change(number)
            for number in range(len(self._layout.schema.relations))
            if number in self._added or number in self._removed
        }
        self._find_dangling(edges)
        if self._problems:
            raise GraphError(f"nothing was changed: {'; '.join(_cut(self._problems))}")
        new = {
            number: pa.Table.from_pylist(rows, schema=self._head.columns(number))
            for number, rows in sorted(self._new.items())
        }
        removed = {number: list(keys) for number, keys in sorted(self._dead.items())}
        return Change(self._next_facts(edges), edges, new, removed, self._layout)

    def _problem(self, place: str, text: str) -> None:
        self._problems.append(f"{place}: {text}")

    # Nodes

    def _remove_node(self, place: str, node: Node) -> None:
        number = self._type_number(place, node)
        if number is None:
            return
        key = self._key(number, node.id)
        if key is None:
            self._problem(place, f"no {node.node_type} with the id {_shown(node.id)} to remove")
        elif key in self._dead.setdefault(number, {}):
            self._problem(place, f"{node.node_type} {_shown(node.id)} is removed a second time")
        else:
            self._dead[number][key] = place

    def _add_node(self, place: str, node: Node) -> None:
        number = self._type_number(place, node)
        if number is None:
            return
        id_ = self._as_id(number, node.id)
        problem = self._node_problem(number, node, id_)
        attributes = None if problem else self._attributes(number, node)
        if problem or attributes is None or id_ is None:
            types = self._layout.attributes[number].types
            self._problem(place, problem or f"its attributes {dict(node.attributes)} are not of the types {types}")
            return
        rows = self._new.setdefault(number, [])
        key, version = self._head.next_key(number) + len(rows), self._head.facts.version + 1
        rows.append({"key": key, "born": version, "id": id_, "name": node.name, **attributes})
        self._new_keys.setdefault(number, {})[id_] = key

    def _node_problem(self, number: int, node: Node, id_: Id | None) -> str | None:
        known, names = self._key(number, node.id), self._layout.attributes[number].names
        unknown = [name for name in node.attributes if name not in names]
        if id_ in (None, ""):
            return f"{_shown(node.id)} cannot be the id of a {node.node_type}"
        if known is not None and known not in self._dead.get(number, {}):
            return f"{node.node_type} {_shown(node.id)} is there already"
        if unknown:
            return f"{node.node_type} has no attribute {listed(unknown)} (it has {listed(names) or 'none'})"
        if node.name is not None and not self._layout.named[number]:
            return f"nodes of type {node.node_type} have no names, and {_shown(node.name)} is given"
        if node.name is not None and not (isinstance(node.name, str) and _is_text(node.name)):
            return f"{_shown(node.name)} is not valid text, and cannot be the name of a {node.node_type}"
        return None

    def _attributes(self, number: int, node: Node) -> dict[str, object] | None:
        """Return the attributes by column, cast to its type; None where one cannot be."""
        schema = self._layout.attributes[number]
        try:
            return {
                column: pa.scalar(node.attributes.get(field.name)).cast(field.type).as_py()
                for column, field in zip(node_columns(len(schema)), schema, strict=True)
            }
        except (pa.ArrowException, UnicodeError, OverflowError):
            return None

    def _type_number(self, place: str, node: Node) -> int | None:
        types = self._layout.schema.node_types
        if node.node_type in types:
            return types.index(node.node_type)
        self._problem(place, f"no node type {_shown(node.node_type)} in this graph (it has {listed(types)})")
        return None

    def _key(self, number: int, id_: Id) -> int | None:
        """Return the key of a node of the graph or of this update, or None."""
        cast_id = self._as_id(number, id_)
        if cast_id is None:
            return None
        own = self._new_keys.get(number, {}).get(cast_id)
        return self._head.key(number, cast_id) if own is None else own

    def _as_id(self, number: int, id_: Id) -> Id | None:
        """Return an id in the type of the other ids of its node type, or None where it cannot be cast."""
        if not isinstance(id_, str | Integral):
            return None
        if not self._head.has_integer_ids(number):
            return str(id_) if _is_text(str(id_)) else None
        try:
            value = int(id_)
        except ValueError:
            return None
        return value if abs(value) < 2**63 and str(value) == str(id_).strip() else None

    # Edges

    def _add_edge(self, place: str, edge: Edge) -> None:
        relation = find_relation(self._layout.schema, edge.relation)
        if isinstance(relation, Relation) and not _is_weight(edge.weight):
            relation = f"weight {_shown(edge.weight)} is not allowed; weights are finite numbers above 0"
        if isinstance(relation, str):
            self._problem(place, relation)
        elif (pair := self._pair(place, edge, relation)) is not None:
            weights = self._added.setdefault(self._layout.schema.relations.index(relation), {})
            weights[pair] = weights.get(pair, 0.0) + float(edge.weight)

    def _remove_edge(self, place: str, edge: Edge) -> None:
        relation = find_relation(self._layout.schema, edge.relation)
        if isinstance(relation, str):
            self._problem(place, relation)
        elif (pair := self._pair(place, edge, relation)) is not None:
            removed = self._removed.setdefault(self._layout.schema.relations.index(relation), {})
            if pair in removed:
                ends = f"from {_shown(edge.source)} to {_shown(edge.target)}"
                self._problem(place, f"the edge {ends} is removed a second time")
            else:
                removed[pair] = f"{place}: '{relation}' from {_shown(edge.source)} to {_shown(edge.target)}"

    def _pair(self, place: str, edge: Edge, relation: Relation) -> Pair | None:
        """Return the keys of both ends, ascending where the relation has no direction."""
        source = self._end(place, relation.source, edge.source)
        target = self._end(place, relation.target, edge.target)
        if source is None or target is None:
            return None
        return (source, target) if relation.directed or source <= target else (target, source)

    def _end(self, place: str, node_type: str, id_: Id) -> int | None:
        key = self._key(self._layout.schema.node_types.index(node_type), id_)
        if key is None:
            self._problem(place, f"no {node_type} with the id {_shown(id_)}")
        return key

    def _edge_change(self, number: int) -> EdgeChange:
        """Return the weights before and after; removing an edge that does not exist is a problem."""
        added, removed = self._added.get(number, {}), self._removed.get(number, {})
        pairs = list(dict.fromkeys([*removed, *added]))
        before = [self._head.weight(number, pair) for pair in pairs]
        after = [(0.0 if p in removed else old) + added.get(p, 0.0) for p, old in zip(pairs, before, strict=True)]
        for pair, old in zip(pairs, before, strict=True):
            if pair in removed and not old:
                self._problems.append(f"{removed[pair]}: there is no such edge to remove")
        relation = self._layout.schema.relations[number]
        self._problems += [f"the weight of an edge of '{relation}' would be {w}" for w in after if not np.isfinite(w)]
        keys = np.array(pairs, dtype=np.int64).reshape(-1, 2)
        return EdgeChange(keys[:, 0], keys[:, 1], np.array(before), np.array(after))

    def _find_dangling(self, edges: Mapping[int, EdgeChange]) -> None:
        """Report every removed node that an edge would still lead to."""
        head, schema = self._head, self._layout.schema
        for number, dead in self._dead.items():
            node_type = schema.node_types[number]
            for relation_number, relation in enumerate(schema.relations):
                after = edges[relation_number].weights_after() if relation_number in edges else {}
                for end in (end for end, name in enumerate((relation.source, relation.target)) if name == node_type):
                    pairs = head.pairs_at(relation_number, end, dead) | after.keys()
                    joined = {p for p in pairs if (after[p] if p in after else head.weight(relation_number, p)) > 0}
                    self._problems += [
                        f"{dead[key]}: {node_type} {head.node(number, key)[0]!r} cannot be removed: edges of "
                        f"'{relation}' lead to it; remove these as well"
                        for key in sorted(dead.keys() & {pair[end] for pair in joined})
                    ]

    def _next_facts(self, edges: Mapping[int, EdgeChange]) -> VersionFacts:
        """Return the counts and checksums of the next version, from those of the newest."""
        facts = self._head.facts
        nodes, node_total, count, total = facts.nodes, facts.node_checksum, facts.edges, facts.edge_checksum
        for number, rows in self._new.items():
            nodes += len(rows)
            node_total += sum(checksum_of_node(number, row["key"], row["id"], row["name"]) for row in rows)
        for number, dead in self._dead.items():
            nodes -= len(dead)
            node_total -= sum(checksum_of_node(number, key, *self._head.node(number, key)) for key in dead)
        for number, change in edges.items():
            count += int(np.count_nonzero(change.after)) - int(np.count_nonzero(change.before))
            for weights, sign in ((change.after, 1), (change.before, -1)):
                there = weights > 0
                summed = edge_checksum(number, change.sources[there], change.targets[there], weights[there])
                total = add_checksums(total, sign * summed)
        return VersionFacts(facts.version + 1, nodes, count, node_total, total)


def find_relation(schema: Schema, text: str) -> Relation | str:
    """Return the relation of a name or of a full spelling, or a sentence that says why there is none."""
    matches = [relation for relation in schema.relations if text in (relation.name, str(relation))]
    if len(matches) == 1:
        return matches[0]
    names = [str(relation) for relation in matches or schema.relations]
    if matches:
        return f"relation {_shown(text)} could be {' or '.join(names)}; write it in full"
    return f"no relation {_shown(text)} in this graph (it has {listed(names)})"


def _is_weight(value: object) -> bool:
    """Whether a value is a finite number above 0; an integer may be beyond all floats."""
    try:
        return isinstance(value, Real) and math.isfinite(value) and float(value) > 0
    except OverflowError:
        return False


def _is_text(text: str) -> bool:
    """Whether a text can be encoded; half of a surrogate pair, which JSON may hold, cannot."""
    return text.isprintable() or not any("\ud800" <= letter <= "\udfff" for letter in text)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _MAX_LETTERS else f"{text[:_MAX_LETTERS]}…"


def _cut(problems: list[str]) -> list[str]:
    more = len(problems) - _MAX_PROBLEMS
    return problems if more <= 0 else [*problems[:_MAX_PROBLEMS], f"and {more:,} more bad lines"]
