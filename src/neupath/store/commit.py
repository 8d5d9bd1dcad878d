"""Updates: batches as versions of the database, and as the changes that a graph in memory follows."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from neupath.errors import GraphError, listed
from neupath.graph.nodes import Id, Nodes, Rows
from neupath.graph.schema import Relation, Schema
from neupath.store.database import VersionFacts, insert_rows, insert_table, run, transaction, write_facts
from neupath.store.edge_matrices import add, edge_sum, one_node_sum
from neupath.store.update import Batch, Draft, EdgeChange, EdgeLine, NodeLine, Pair
from neupath.store.versions import Head, node_columns, to_nodes

# ---- Resolving


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

    def __init__(self, standing: Head) -> None:
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


# ---- Updates


_FEW = 64
"""Changed edges that are written as values; more are written as a table."""


@dataclass(frozen=True)
class Change:
    """What one batch did: the changed edges by relation number, and by type new nodes with their keys; types some left.

    Rows of a type that a node left are others from then on.
    """

    facts: VersionFacts
    edges: Mapping[int, EdgeChange]
    grown: Mapping[str, Nodes]
    keys: Mapping[str, Rows]
    shrunk: tuple[str, ...]

    @property
    def version(self) -> int:
        return self.facts.version


def write_batches(
    connection: Any, folder: Path, standing: Head, batches: Sequence[Batch]
) -> list[Change | BaseException]:
    """Write batches in one transaction, each a version of its own, or an error for each that is refused.

    When this returns, they are on disk. Where it fails, `standing` knows more than the database, and is of no use.
    """
    drafts: list[Draft] = []
    outcomes: list[Change | BaseException] = []
    for batch in batches:
        try:
            drafts.append(draft(standing, batch))
        except Exception as error:
            outcomes.append(error)
        else:
            standing.follow(drafts[-1])
            outcomes.append(_change(standing, drafts[-1]))
    if drafts:
        with transaction(connection, folder):
            _write(connection, drafts)
    return outcomes


def draft(standing: Head, batch: Batch) -> Draft:
    """Return the rows that a batch makes the next version by; one with bad lines is refused, naming them."""
    found = Resolver(standing).resolve(batch)
    edges = {
        number: _edge_change(standing, number, found)
        for number in range(len(standing.layout.schema.relations))
        if number in found.added or number in found.removed
    }
    _find_dangling(standing, found, edges)
    found.refuse_problems()
    version = standing.facts.version + 1
    born = {
        number: pa.Table.from_pylist([row.columns(version) for row in rows], schema=standing.columns(number))
        for number, rows in sorted(found.new_nodes.items())
    }
    dead = {number: list(keys) for number, keys in sorted(found.dead_nodes.items())}
    return Draft(_facts(standing, found, edges), edges, born, dead)


def _edge_change(standing: Head, number: int, found: Resolved) -> EdgeChange:
    """Return the weights before and after; an edge to remove that is not there is a problem."""
    added, removed = found.added.get(number, {}), found.removed.get(number, {})
    pairs = list(dict.fromkeys([*removed, *added]))
    before = [standing.weight(number, pair) for pair in pairs]
    after = [(0.0 if p in removed else old) + added.get(p, 0.0) for p, old in zip(pairs, before, strict=True)]
    for pair, old in zip(pairs, before, strict=True):
        if pair in removed and not old:
            found.problems.append(f"{removed[pair]}: there is no such edge to remove")
    relation = standing.layout.schema.relations[number]
    found.problems += [f"the weight of an edge of '{relation}' would be {w}" for w in after if not np.isfinite(w)]
    keys = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return EdgeChange(keys[:, 0], keys[:, 1], np.array(before), np.array(after))


def _find_dangling(standing: Head, found: Resolved, edges: Mapping[int, EdgeChange]) -> None:
    """Note every node that would go while an edge still leads to it."""
    schema = standing.layout.schema
    for number, dead in found.dead_nodes.items():
        node_type = schema.node_types[number]
        for relation_number, relation in enumerate(schema.relations):
            after = _weights_after(edges.get(relation_number))
            for place in (place for place, end in enumerate((relation.source, relation.target)) if end == node_type):
                pairs = standing.pairs_at(relation_number, place, dead) | after.keys()
                joined = {p for p in pairs if (after[p] if p in after else standing.weight(relation_number, p)) > 0}
                found.problems += [
                    f"{dead[key]}{node_type} {standing.node(number, key)[0]!r} cannot be removed: edges of "
                    f"'{relation}' lead to it; remove these as well"
                    for key in sorted(dead.keys() & {pair[place] for pair in joined})
                ]


def _weights_after(change: EdgeChange | None) -> dict[tuple[int, int], float]:
    if change is None:
        return {}
    pairs = zip(change.sources.tolist(), change.targets.tolist(), strict=True)
    return dict(zip(pairs, change.after.tolist(), strict=True))


def _facts(standing: Head, found: Resolved, edges: Mapping[int, EdgeChange]) -> VersionFacts:
    """Return what will be true of the next version."""
    facts = standing.facts
    nodes, node_total, count, total = facts.nodes, facts.node_sum, facts.edges, facts.edge_sum
    for number, rows in found.new_nodes.items():
        nodes += len(rows)
        node_total += sum(one_node_sum(number, row.key, row.id, row.name) for row in rows)
    for number, dead in found.dead_nodes.items():
        nodes -= len(dead)
        node_total -= sum(one_node_sum(number, key, *standing.node(number, key)) for key in dead)
    for number, change in edges.items():
        count += int(np.count_nonzero(change.after)) - int(np.count_nonzero(change.before))
        for weights, sign in ((change.after, 1), (change.before, -1)):
            kept = weights > 0
            total = add(total, sign * edge_sum(number, change.sources[kept], change.targets[kept], weights[kept]))
    return replace(facts, version=facts.version + 1, nodes=nodes, edges=count, node_sum=node_total, edge_sum=total)


def _write(connection: Any, drafts: Sequence[Draft]) -> None:
    """Write the rows of all drafts; nodes come before any goes, since one may come and go in the same group."""
    tables = [_change_table(made.facts.version, *change) for made in drafts for change in made.edges.items()]
    changed = pa.concat_tables(tables) if tables else pa.table({})
    if 0 < len(changed) <= _FEW:
        insert_rows(connection, "changes", list(zip(*(column.to_pylist() for column in changed.columns), strict=True)))
    elif len(changed):
        insert_table(connection, "changes", changed)
    for made in drafts:
        for number, table in made.born.items():
            insert_table(connection, f"nodes_{number}", table)
    for made in drafts:
        for number, keys in made.dead.items():
            _bury(connection, number, keys, made.facts.version)
    write_facts(connection, *(made.facts for made in drafts))


def _change_table(version: int, number: int, change: EdgeChange) -> pa.Table:
    size = len(change.sources)
    return pa.table(
        {
            "version": np.full(size, version, np.int64), "relation": np.full(size, number, np.int32),
            "source": change.sources, "target": change.targets, "before": change.before, "after": change.after,
        }
    )  # fmt: skip


def _bury(connection: Any, number: int, keys: list[int], version: int) -> None:
    connection.register("dead", pa.table({"key": np.array(keys, dtype=np.int64)}))
    update = f"UPDATE nodes_{number} SET died = ? WHERE key IN (SELECT key FROM dead)"  # noqa: S608
    run(connection, update, [version])
    connection.unregister("dead")


def _change(standing: Head, made: Draft) -> Change:
    layout = standing.layout
    types = layout.schema.node_types
    born = {types[n]: (n, table) for n, table in made.born.items()}
    return Change(
        made.facts,
        made.edges,
        {t: to_nodes(layout, n, table, np.ones(len(table), dtype=np.bool_)) for t, (n, table) in born.items()},
        {t: table["key"].to_numpy() for t, (_, table) in born.items()},
        tuple(types[number] for number in made.dead),
    )
