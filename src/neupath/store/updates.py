"""Updates: batches as versions of the database, and as the changes that a graph in memory follows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from neupath.nodes import Nodes, Rows
from neupath.store.batch import Batch
from neupath.store.database import VersionFacts, insert_rows, insert_table, run, transaction, write_facts
from neupath.store.drafts import Draft, EdgeChange
from neupath.store.reading import to_nodes
from neupath.store.resolving import Resolved, Resolver
from neupath.store.standing import Standing
from neupath.store.sums import add, edge_sum, one_node_sum

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
    connection: Any, folder: Path, standing: Standing, batches: Sequence[Batch]
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


def draft(standing: Standing, batch: Batch) -> Draft:
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


def _edge_change(standing: Standing, number: int, found: Resolved) -> EdgeChange:
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


def _find_dangling(standing: Standing, found: Resolved, edges: Mapping[int, EdgeChange]) -> None:
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


def _facts(standing: Standing, found: Resolved, edges: Mapping[int, EdgeChange]) -> VersionFacts:
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


def _change(standing: Standing, made: Draft) -> Change:
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
