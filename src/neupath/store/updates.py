"""Updates: one batch as one transaction of the database, and as the changes that a graph in memory follows."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from neupath.graph import Floats
from neupath.nodes import Nodes, Rows
from neupath.store.batch import Batch
from neupath.store.database import Layout, VersionFacts, read_facts, read_layout, run, transaction, write_facts
from neupath.store.reading import to_nodes
from neupath.store.resolving import Pair, Resolved, Resolver
from neupath.store.sums import add, edge_sum, node_sum


@dataclass(frozen=True)
class EdgeChange:
    """What became of some edges of one relation: keys of their ends, and weights before and after (0: not there)."""

    sources: Rows
    targets: Rows
    before: Floats
    after: Floats


@dataclass(frozen=True)
class Change:
    """What one batch did: the changed edges by relation number, and by type new nodes with their keys; types some left.

    Rows of a type that a node left are others from then on.
    """

    version: int
    edges: Mapping[int, EdgeChange]
    grown: Mapping[str, Nodes]
    keys: Mapping[str, Rows]
    shrunk: tuple[str, ...]


def apply_batch(connection: Any, folder: Path, batch: Batch) -> Change:
    """Write a batch, all or nothing; when this returns, it is on disk."""
    with transaction(connection, folder):
        layout, facts = read_layout(connection), read_facts(connection)
        found = Resolver(connection, layout).resolve(batch)
        edges = {
            number: _edge_change(connection, number, found)
            for number in range(len(layout.schema.relations))
            if number in found.added or number in found.removed
        }
        _find_dangling(connection, layout, found, edges)
        found.refuse_problems()
        version = facts.version + 1
        node_count, node_total = _write_nodes(connection, found, version)
        edge_count, edge_total = _write_edges(connection, edges, version)
        total = VersionFacts(
            version,
            facts.nodes + node_count,
            facts.edges + edge_count,
            facts.node_sum + node_total,
            add(facts.edge_sum, edge_total),
        )
        write_facts(connection, total)
        grown = {number: _new_nodes(connection, number, version) for number in sorted(found.new_nodes)}
    types = layout.schema.node_types
    return Change(
        version,
        edges,
        {types[n]: to_nodes(layout, n, table, np.ones(len(table), dtype=np.bool_)) for n, table in grown.items()},
        {types[n]: table["key"].to_numpy() for n, table in grown.items()},
        tuple(types[number] for number in sorted(found.dead_nodes)),
    )


def _new_nodes(connection: Any, number: int, version: int) -> pa.Table:
    query = f"SELECT * FROM nodes_{number} WHERE born = ? ORDER BY key"  # noqa: S608
    return connection.sql(query, params=[version]).to_arrow_table()


def _edge_change(connection: Any, number: int, found: Resolved) -> EdgeChange:
    """Return the weights before and after; an edge to remove that is not there is a problem."""
    added, removed = found.added.get(number, {}), found.removed.get(number, {})
    pairs = list(dict.fromkeys([*removed, *added]))
    before = current_weights(connection, number, pairs)
    for pair, told in removed.items():
        if pair not in before:
            found.problems.append(f"{told}: there is no such edge to remove")
    kept = {pair: 0.0 if pair in removed else before.get(pair, 0.0) for pair in pairs}
    keys = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return EdgeChange(
        keys[:, 0],
        keys[:, 1],
        np.array([before.get(pair, 0.0) for pair in pairs]),
        np.array([kept[pair] + added.get(pair, 0.0) for pair in pairs]),
    )


def current_weights(connection: Any, number: int, pairs: list[Pair]) -> dict[Pair, float]:
    """Return the weights of those of some pairs that are joined: as changed last, or else as folded."""
    keys = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    given = pa.table({"source": keys[:, 0], "target": keys[:, 1]})
    connection.register("asked", given)
    base = f"SELECT source, target, weight FROM edges_{number} JOIN asked USING (source, target)"  # noqa: S608
    later = f"""
        SELECT source, target, arg_max("after", version) FROM changes JOIN asked USING (source, target)
        WHERE relation = {number} GROUP BY source, target
    """  # noqa: S608
    found = {(s, t): w for query in (base, later) for s, t, w in run(connection, query)}
    connection.unregister("asked")
    return {pair: weight for pair, weight in found.items() if weight > 0}


def _find_dangling(connection: Any, layout: Layout, found: Resolved, edges: Mapping[int, EdgeChange]) -> None:
    """Note every node that would go while an edge still leads to it."""
    for number, dead in found.dead_nodes.items():
        node_type = layout.schema.node_types[number]
        for relation_number, relation in enumerate(layout.schema.relations):
            for end, column in ((relation.source, "source"), (relation.target, "target")):
                if end != node_type:
                    continue
                left = _edges_at(connection, relation_number, column, list(dead))
                change = edges.get(relation_number)
                if change is not None:
                    pairs = zip(change.sources.tolist(), change.targets.tolist(), strict=True)
                    left |= {p: float(w) for p, w in zip(pairs, change.after, strict=True)}
                ends = {pair[column == "target"] for pair, weight in left.items() if weight > 0}
                found.problems += [
                    f"{dead[key]}{node_type} cannot be removed: edges of '{relation}' lead to it; remove these as well"
                    for key in dead
                    if key in ends
                ]


def _edges_at(connection: Any, number: int, column: str, keys: list[int]) -> dict[Pair, float]:
    """Return the edges at some nodes with their weights, 0 for those that are gone."""
    connection.register("asked", pa.table({column: np.array(keys, dtype=np.int64)}))
    base = f"SELECT source, target, weight FROM edges_{number} JOIN asked USING ({column})"  # noqa: S608
    later = f"""
        SELECT source, target, arg_max("after", version) FROM changes JOIN asked USING ({column})
        WHERE relation = {number} GROUP BY source, target
    """  # noqa: S608
    found = {(s, t): w for query in (base, later) for s, t, w in run(connection, query)}
    connection.unregister("asked")
    return found


def _write_nodes(connection: Any, found: Resolved, version: int) -> tuple[int, int]:
    """Write the nodes that go and come; return by how much their number and their sum grow."""
    count, total = 0, 0
    for number, dead in found.dead_nodes.items():
        connection.register("dead", pa.table({"key": np.array(list(dead), dtype=np.int64)}))
        where = "key IN (SELECT key FROM dead)"
        total -= node_sum(connection, number, where, [])
        run(connection, f"UPDATE nodes_{number} SET died = ? WHERE {where}", [version])  # noqa: S608
        connection.unregister("dead")
        count -= len(dead)
    for number, rows in found.new_nodes.items():
        names = list(rows[0])
        marks = ", ".join("?" for _ in names)
        insert = f"INSERT INTO nodes_{number} (born, {', '.join(names)}) VALUES ({version}, {marks})"  # noqa: S608
        connection.executemany(insert, [[row[name] for name in names] for row in rows])
        total += node_sum(connection, number, "born = ?", [version])
        count += len(rows)
    return count, total


def _write_edges(connection: Any, edges: Mapping[int, EdgeChange], version: int) -> tuple[int, int]:
    """Write the changes of edges; return by how much their number and their sum grow."""
    count, total = 0, 0
    for number, change in edges.items():
        size = len(change.sources)
        columns = {
            "version": np.full(size, version), "relation": np.full(size, number, np.int32),
            "source": change.sources, "target": change.targets, "before": change.before, "after": change.after,
        }  # fmt: skip
        connection.register("given", pa.table(columns))
        run(connection, "INSERT INTO changes SELECT * FROM given")
        connection.unregister("given")
        count += int(np.count_nonzero(change.after)) - int(np.count_nonzero(change.before))
        for weights, sign in ((change.after, 1), (change.before, -1)):
            kept = weights > 0
            total += sign * edge_sum(number, change.sources[kept], change.targets[kept], weights[kept])
    return count, total
