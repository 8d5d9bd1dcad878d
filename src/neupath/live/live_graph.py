"""The live graph: one writer changes it, any number of readers search versions of it that never change.

`LiveStore.update` writes an update to disk, or `LiveGraph.update` checks it in memory; either way it becomes a `Change`
by keys, then a `RowChange`. `LiveGraph.apply` brings attached measures and models up to date, and publishes a `View`.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock, RLock, Thread
from time import monotonic
from types import MappingProxyType
from typing import Self

import numpy as np
import pyarrow as pa

from neupath._runtime.group_commit import GroupCommit
from neupath.engine.scorer import Binding, RowChange, RowEdge, Scorer, Updater
from neupath.errors import GraphError, NeuPathError, QueryError, WriteError
from neupath.graph.hin import HIN, Csr, Edges
from neupath.graph.metapath import Relation, Schema
from neupath.graph.nodes import Nodes, Rows
from neupath.live.append_arrays import AppendColumn, AppendNodes, in_one_piece
from neupath.live.live_edges import LiveChange, LiveEdgeTables, NewestEdges
from neupath.live.live_product import (
    Adjacency,
    LiveMatrices,
    LiveProduct,
    LiveScorer,
    ProductBinding,
    key_of,
)
from neupath.measures.path_measure import PathMeasure
from neupath.store import Change, Head, RowsChange, Update, Validator, open_store


# ---- One version ---------------------------------------------------------------------------------
@dataclass(frozen=True)
class View:
    """One version of a live graph. It never changes, so that readers need no lock.

    Parameters
    ----------
    version : its number; every update makes the next one.
    hin : the graph at this version.
    bindings : by the key of each attached measure or the identity of each attached model, what binds it to this
        version.
    """

    version: int
    hin: HIN
    bindings: Mapping[object, Binding] = field(default_factory=dict)

    def scorer(self, scorer: Scorer) -> Scorer:
        """Return a measure or a trained model over this version: at once if it is attached, else from scratch."""
        key = key_of(scorer, self.hin) if isinstance(scorer, PathMeasure) else scorer.identity
        if key in self.bindings:
            return self.bindings[key](self.hin)
        return copy(scorer).fit(self.hin) if scorer.identity is None else scorer.bind(self.hin)

    def renew(self, scorer: LiveScorer) -> Scorer | None:
        """Return the scorer at this version; None if it is not attached."""
        binding = self.bindings.get(key_of(scorer.measure, self.hin))
        return None if binding is None else binding(self.hin)


def _followers_of(scorer: Scorer, hin: HIN) -> dict[object, Scorer]:
    """Return, by key, what follows the changes for a scorer: itself, or nothing where it learns nothing."""
    if isinstance(scorer, PathMeasure):
        return {key_of(scorer, hin): scorer}
    return {} if scorer.identity is None else {scorer.identity: scorer}


# ---- State of the writer -------------------------------------------------------------------------
class _State:
    """A base graph, what has changed since, and all that follows the changes."""

    def __init__(self, hin: HIN, version: int) -> None:
        self._growing = {node_type: AppendNodes.over(nodes) for node_type, nodes in hin.nodes.items()}
        self._edge_log: list[tuple[Relation, RowsChange]] = []
        self._described: Mapping[Relation, Edges] = hin.edge_tables  # those that all changes tell of
        self.newest_edges = NewestEdges(self._described, self._edge_log)
        self._adjacency = Adjacency(hin, self.newest_edges)
        self._updaters: dict[object, Updater] = {}
        self.attached: dict[object, Scorer] = {}  # by the key of a measure or the identity of a model
        self.view = View(version, hin)

    @property
    def _products(self) -> dict[object, LiveProduct]:
        return {key: updater for key, updater in self._updaters.items() if isinstance(updater, LiveProduct)}

    @property
    def changed_share(self) -> float:
        """Entries of changed rows per entry of the base, the largest of all products and the graph."""
        shares = (product.changed_share for product in self._products.values())
        return max(self._adjacency.changed_share, *shares, 0.0)

    def attach(self, scorer: Scorer) -> None:
        """Build what a measure or a model needs over the newest version; it follows all later changes."""
        for key, follower in _followers_of(scorer, self.view.hin).items():
            updater = None if key in self.attached else self._updater_of(follower)
            if updater is not None:
                self._updaters[key], self.attached[key] = updater, follower
                self._publish(self.view.version, self.view.hin)

    def attach_if_possible(self, scorer: Scorer) -> None:
        """Attach a scorer unless the graph, as it is now, cannot have it: then `View.scorer` says why."""
        with suppress(NeuPathError):  # a node that its meta-path names is gone, say
            self.attach(scorer)

    def _updater_of(self, scorer: Scorer) -> Updater | None:
        if not isinstance(scorer, PathMeasure):
            return scorer.updater(self.view.hin)
        try:
            fitted = scorer.bind(self.view.hin)
        except (GraphError, QueryError):  # a norm overflows; `View.scorer` raises it to whoever wants the scores
            return None
        return LiveProduct(fitted, self._adjacency, self.view.version) if LiveProduct.can_follow(fitted) else None

    def detach(self, key: object) -> None:
        self._updaters.pop(key, None)
        self.attached.pop(key, None)
        self._publish(self.view.version, self.view.hin)

    def apply(self, change: RowChange) -> None:
        """Follow one change; readers see all of it at once, when the next view is published."""
        nodes, tables = self.view.hin.nodes, self.view.hin.edge_tables
        if change.nodes:
            self._growing |= {
                node_type: self._growing[node_type].append(own) for node_type, own in change.nodes.items()
            }
            nodes = MappingProxyType({node_type: grown.nodes for node_type, grown in self._growing.items()})
            self._adjacency.grow(nodes)
        if self._described:
            tables = self._follow_edge_rows(change, tables)
        self._adjacency.put(change.edges)
        base = self.view.hin
        self._adjacency.hin = hin = HIN(base.schema, nodes, self._adjacency.matrices(), base.notes, tables)
        for updater in self._updaters.values():
            updater.apply(hin, change)
        unsound = [self._drop(key) for key, product in self._products.items() if not product.is_sound]
        self._publish(change.version, hin)
        for measure in unsound:
            self.attach_if_possible(measure)

    def _drop(self, key: object) -> Scorer:
        """Return a measure that has to be fitted from scratch, which may say what is wrong.

        A norm overflows, a weight is not finite, or a node that it pins may now be another.
        """
        del self._updaters[key]
        return self.attached.pop(key)

    def _follow_edge_rows(self, change: RowChange, tables: Mapping[Relation, Edges]) -> Mapping[Relation, Edges]:
        """Follow the single edges that a change ends and brings; a table of edges it does not tell of is dropped."""
        rows = change.edge_rows if isinstance(change, LiveChange) else {}
        for relation, changed in rows.items():
            self._edge_log.append((relation, changed))
            self.newest_edges.advance(relation, changed)
        lost = {edge[0] for edge in change.edges} & self._described.keys() - rows.keys()
        if lost:
            self._described = {relation: self._described[relation] for relation in self._described.keys() - lost}
            self.newest_edges.keep(self._described)
        return LiveEdgeTables(self._described, self._edge_log, len(self._edge_log)) if rows or lost else tables

    def _publish(self, version: int, hin: HIN) -> None:
        self.view = View(version, hin, {key: updater.snapshot() for key, updater in self._updaters.items()})


# ---- The live graph ------------------------------------------------------------------------------
COMPACTION_SHARE = 0.05
"""Entries of changed rows per entry of the base at which compaction begins; docs/live.md says how it was measured."""
_REST = 9
"""Compaction rests for so many times as long as the last one took, so that it takes a tenth of a core at most."""


class LiveGraph:
    """A graph in memory whose edges change while it is searched: one writer at a time, any number of readers.

    The rows that changes reach are stored beside an immutable base; compaction makes a new base, in the background.

    Parameters
    ----------
    hin : the graph to begin with.
    version : its number.
    compaction_share : entries of changed rows per entry of the base at which compaction begins.

    >>> from neupath import PathSim, load
    >>> from neupath.store import Edge, Update
    >>> measure, live = PathSim("author-paper-author"), LiveGraph(load("toy"))
    >>> before = live.attach(measure)
    >>> live.update(Update(add_edges=[Edge("writes", "Mike", "Jim-SIGMOD-1")]))
    1
    >>> before.top_k("Mike").ids, live.view().scorer(measure).top_k("Mike").ids
    ((), ('Jim',))
    """

    def __init__(self, hin: HIN, version: int = 0, compaction_share: float = COMPACTION_SHARE) -> None:
        self._state = _State(hin, version)
        self._compaction_share = compaction_share
        self._writing, self._compacting = RLock(), Lock()
        self._rests_until = 0.0  # the compaction
        self._since: list[RowChange] = []  # the changes since the base
        self._head: Head | None = None  # by keys, which are rows here; None if it is not up to date

    def view(self) -> View:
        return self._state.view

    @property
    def changed_share(self) -> float:
        return self._state.changed_share

    def attach(self, scorer: Scorer) -> Scorer:
        """Let a measure or a trained model follow all later changes; return it, ready, over the newest version.

        A scorer that cannot follow changes is fitted or bound from scratch to each view instead.
        """
        self._attach(scorer)
        return self.view().scorer(scorer)

    def _attach(self, scorer: Scorer) -> None:
        with self._writing:
            self._state.attach(scorer)

    def _detach(self, key: object) -> None:
        with self._writing:
            self._state.detach(key)

    def update(self, update: Update) -> int:
        """Change edges and add nodes by id, all of it or nothing; return the new version.

        Nodes cannot be removed, since the rows of later nodes would change; a `LiveStore` can.
        """
        if update.remove_nodes:
            raise GraphError("nothing was changed: a live graph without a store cannot remove nodes; use a LiveStore")
        with self._writing:
            head = self._head or Head.of(self.view().hin, self.view().version)
            change = Validator(head).check(update)
            self.apply(_by_rows(change, self.view().hin.schema, lambda _, keys: keys))
            head.advance(change)
            self._head = head
            return change.version

    def apply(self, change: RowChange) -> None:
        """Follow one checked change, and start compaction in the background when much has changed."""
        with self._writing:
            self._state.apply(change)
            self._since.append(change)
            self._head = None
        if monotonic() < self._rests_until or self._compacting.locked():
            return
        if self._state.changed_share > self._compaction_share:
            Thread(target=self.compact, daemon=True).start()

    def compact(self) -> None:
        """Build a new base while readers and the writer go on, then switch to it."""
        with self._compacting:
            began = monotonic()
            with self._writing:
                view, attached, done = self._state.view, list(self._state.attached.values()), len(self._since)
            fresh = _State(_materialised(view.hin), view.version)
            for scorer in attached:
                fresh.attach_if_possible(scorer)
            with self._writing:
                for change in self._since[done:]:
                    fresh.apply(change)
                for scorer in self._state.attached.values():
                    fresh.attach_if_possible(scorer)
                for key in fresh.attached.keys() - self._state.attached.keys():
                    fresh.detach(key)
                self._state, self._since = fresh, self._since[done:]
                self._head = None  # it would keep the old base in memory
            self._rests_until = monotonic() + _REST * (monotonic() - began)


def _materialised(hin: HIN) -> HIN:
    nodes = {node_type: in_one_piece(nodes) for node_type, nodes in hin.nodes.items()}
    return HIN(hin.schema, nodes, dict(hin.matrices), hin.notes, dict(hin.edge_tables))


def _by_rows(change: Change, schema: Schema, rows_of: Callable[[str, Rows], Rows]) -> RowChange:
    """Return a change by rows; its relations are objects of `schema`, which compare fastest with themselves."""
    edges: list[RowEdge] = []
    for number, changed in change.edges.items():
        relation = schema.relations[number]
        sources = rows_of(relation.source, changed.sources).tolist()
        targets = rows_of(relation.target, changed.targets).tolist()
        edges += [(relation, *edge) for edge in zip(sources, targets, changed.after.tolist(), strict=True)]
    edge_rows = {
        schema.relations[number]: RowsChange(
            *(_with_row_ends(rows, schema.relations[number], rows_of) for rows in (changed.removed, changed.added))
        )
        for number, changed in change.edge_rows.items()
    }
    return LiveChange(change.version, edges, change.nodes(), edge_rows)


def _with_row_ends(edges: pa.Table, relation: Relation, rows_of: Callable[[str, Rows], Rows]) -> pa.Table:
    """Return single edges with rows instead of keys as their ends."""
    for column, node_type in (("source", relation.source), ("target", relation.target)):
        rows = pa.array(rows_of(node_type, edges[column].to_numpy()), pa.int64())
        edges = edges.set_column(edges.column_names.index(column), column, rows)
    return edges


# ---- Cache of recent versions --------------------------------------------------------------------
MAX_VERSIONS = 100  # versions of a store whose views are kept in memory
MAX_BYTES = 1 << 28
"""Most bytes that cached views may hold beyond what they share with the newest one."""

Sizes = dict[int, int]
"""Bytes by part of a view; a part is known by its address, which is unique while the view is kept."""


class VersionCache:
    """The views of recent versions. Unlike `engine.cache.LRU`, it counts the bytes that no later view shares."""

    def __init__(self) -> None:
        self._views: dict[int, View] = {}
        self._own_bytes: dict[int, int] = {}  # by version: the bytes that no later view holds
        self._newest: Sizes = {}

    def __len__(self) -> int:
        return len(self._views)

    def add(self, view: View) -> None:
        """Add the newest view, and drop the oldest ones while they are too many or too large."""
        sizes = _part_sizes(view, self._newest)
        if self._views:
            last = next(reversed(self._views))
            self._own_bytes[last] = sum(size for part, size in self._newest.items() if part not in sizes)
        self._views[view.version], self._newest = _without_matrices(view), sizes
        while len(self._views) > MAX_VERSIONS or sum(self._own_bytes.values()) > MAX_BYTES:
            oldest = next(iter(self._views))
            del self._views[oldest]
            self._own_bytes.pop(oldest, None)

    def find(self, version: int) -> View | None:
        view = self._views.get(version)
        return None if view is None else _without_matrices(view)


def _without_matrices(view: View) -> View:
    """Return the view without the matrices it has computed, so that a cached view holds little."""
    hin, tables = view.hin, view.hin.edge_tables
    matrices = hin.matrices.fresh() if isinstance(hin.matrices, LiveMatrices) else hin.matrices
    fresh = tables.fresh() if isinstance(tables, LiveEdgeTables) else tables
    bindings = {
        key: binding.fresh() if isinstance(binding, ProductBinding) else binding
        for key, binding in view.bindings.items()
    }
    return View(view.version, HIN(hin.schema, hin.nodes, matrices, hin.notes, fresh), bindings)


def _part_sizes(view: View, known: Sizes) -> Sizes:
    """Return the bytes of all parts of a view; those `known` from the view before are not counted again."""
    sizes = {part: size for nodes in view.hin.nodes.values() for part, size in _node_sizes(nodes, known).items()}
    matrices = view.hin.matrices
    overlays = list(matrices.overlays.values()) if isinstance(matrices, LiveMatrices) else []
    parts: list[Csr] = [] if overlays else list(matrices.values())
    for factors in (own.factors for own in view.bindings.values() if isinstance(own, ProductBinding)):
        overlays += [factors.left, factors.right]
        parts += [factors.base.left, factors.base.right]
    parts += [overlay.base for overlay in overlays]
    sizes |= {id(part): part.data.nbytes + part.indices.nbytes + part.indptr.nbytes for part in parts}
    return sizes | {id(block): block.num_bytes for overlay in overlays for block in overlay.blocks}


def _node_sizes(nodes: Nodes, known: Sizes) -> Sizes:
    """Return the bytes of ids and names by their address, since arrays share buffers; and of the attributes."""
    columns = ((column.buffers()[-1], column) for column in (nodes.ids, nodes.names) if column is not None)
    sizes = {buffer.address: int(column.nbytes) for buffer, column in columns if buffer is not None}
    return sizes | {id(nodes): known[id(nodes)] if id(nodes) in known else int(nodes.attributes.nbytes)}


# ---- The live graph of a store -------------------------------------------------------------------
MAX_ATTACHED = 16


class LiveStore:
    """A store and its live graph: an update goes to disk first, then into the next view.

    Unless it is read-only, it keeps other processes from opening the store.

    Parameters
    ----------
    path : the folder of the store.
    compaction_share : as for `LiveGraph`.
    max_attached : how many measures and models follow the updates; attaching more detaches the oldest.
    read_only : take no updates, and let other processes open the store.

    >>> from tempfile import TemporaryDirectory
    >>> from neupath import PathSim, load
    >>> from neupath.store import write_store
    >>> with TemporaryDirectory() as parent, LiveStore(write_store(load("toy"), parent + "/toy.store")) as live:
    ...     live.attach(PathSim("APVPA")).top_k("Mike", k=1).ids
    ('Bob',)
    """

    def __init__(
        self,
        path: str | Path,
        compaction_share: float = COMPACTION_SHARE,
        *,
        max_attached: int = MAX_ATTACHED,
        read_only: bool = False,
    ) -> None:
        self.store = open_store(path)
        self.read_only = read_only
        self._compaction_share, self._max_attached = compaction_share, max_attached
        self._attached: dict[object, Scorer] = {}
        self._attaching = Lock()
        self._recent = VersionCache()
        self._commit: GroupCommit[Update, int] = GroupCommit(self._update_many)  # groups disk and memory as one
        try:
            if not read_only:
                self.store.hold()
            self._open()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Let other processes open the store. Views stay readable."""
        self.store.close()

    def _open(self) -> None:
        facts, hin, keys = self.store.keyed()
        self._keys = {node_type: AppendColumn(pa.array(own)) for node_type, own in keys.items()}
        graph = LiveGraph(hin, facts.version, self._compaction_share)
        with self._attaching:
            for scorer in self._attached.values():
                graph._state.attach_if_possible(scorer)
            self.graph, self.facts = graph, facts
        self._recent.add(self.view())

    def view(self, as_of: int | None = None) -> View:
        """Return the newest version, or the one numbered `as_of`: from memory if it is recent, else from disk."""
        newest = self.graph.view()
        if as_of is None or as_of == newest.version:
            return newest
        return self._recent.find(as_of) or View(as_of, self.store.hin(as_of))

    def attach(self, scorer: Scorer) -> Scorer:
        """Let a measure or a trained model follow all later updates; return it, ready, over the newest version."""
        if not self.read_only:
            for key, follower in _followers_of(scorer, self.view().hin).items():
                self._attach(key, follower)
        return self.view().scorer(scorer)

    def _attach(self, key: object, scorer: Scorer) -> None:
        with self._attaching:
            self.graph._attach(scorer)
            view = self.view()
            if key not in view.bindings:  # it cannot follow changes
                return
            self._attached[key] = self._attached.pop(key, scorer)
            while len(self._attached) > self._max_attached:
                oldest = next(iter(self._attached))
                del self._attached[oldest]
                self.graph._detach(oldest)

    def update(self, update: Update) -> int:
        """Write an update, all of it or nothing, and follow it; return the new version.

        It is durable when this returns. Updates of concurrent threads share one commit, each as its own version.
        """
        if self.read_only:
            raise WriteError(f"the store {self.store.folder} was opened read-only; nothing was changed")
        return self._commit(update)

    def _update_many(self, updates: list[Update]) -> list[int | BaseException]:
        outcomes = self.store.update_many(updates)
        for change in outcomes:
            if isinstance(change, Change):
                self._follow(change)
        return [change.version if isinstance(change, Change) else change for change in outcomes]

    def _follow(self, change: Change) -> None:
        newest = self.view().version
        if change.version <= newest:  # an earlier change of the group has read the store, with this one in it
            return
        if change.removed_nodes or change.version > newest + 1:  # removing a node moves the rows behind it
            self._open()
            return
        for node_type, keys in change.keys().items():
            self._keys[node_type] = self._keys[node_type].append(pa.array(keys))
        self.graph.apply(_by_rows(change, self.view().hin.schema, self._rows))
        self.facts = change.facts
        self._recent.add(self.view())

    def _rows(self, node_type: str, keys: Rows) -> Rows:
        return np.searchsorted(self._keys[node_type].array.to_numpy(), keys)
