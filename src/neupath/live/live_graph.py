"""Live: a graph in memory that follows its changes, and answers exactly at once."""

import math
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from threading import Lock, RLock, Thread
from typing import Self

import numpy as np
import pyarrow as pa

from neupath._runtime.group_commit import GroupCommit
from neupath.engine.scorer import Scorer
from neupath.errors import GraphError, WriteError
from neupath.graph.hin import HIN
from neupath.graph.nodes import Nodes, Rows
from neupath.graph.schema import Relation
from neupath.live.append_arrays import GrowingColumn, HalfArrays, in_one_piece
from neupath.live.propagation import LiveMatrices
from neupath.live.state import RowChange, State, View, key_of
from neupath.measures import PathSim
from neupath.measures.path_measure import PathMeasure
from neupath.store import Change, Update, open_store


# ---- Strangers -----------------------------------------------------------------------------------
def refuse_strangers(hin: HIN, change: RowChange) -> None:
    """Refuse relations, types and rows that are not there, and weights that are none."""
    for node_type, nodes in change.nodes.items():
        _refuse_columns(hin.nodes[hin.schema.node_type(node_type)], nodes)
    for relation, row, column, weight in change.edges:
        if relation not in hin.schema.relations:
            raise GraphError(f"no relation {str(relation)!r} in this graph (it has {hin.schema.relations})")
        _refuse_row(hin, change, relation, relation.source, row)
        _refuse_row(hin, change, relation, relation.target, column)
        if not (math.isfinite(weight) and weight >= 0):
            raise GraphError(f"weight {weight} is not allowed; weights are finite numbers above 0, and 0 takes it away")


def _refuse_columns(nodes: Nodes, new: Nodes) -> None:
    """Refuse nodes that have other columns than those there are; names and attributes that these lack are left out."""
    for what, own, given in (
        ("ids", str(nodes.ids.type), str(new.ids.type)),
        ("names", *("" if names is None else str(names.type) for names in (nodes.names, new.names))),
        ("attributes", _columns(nodes), _columns(new)),
    ):
        if own and own != given:
            raise GraphError(
                f"{what} of {nodes.node_type} are {own}, and {given or 'none'} are given; the columns of new nodes are "
                f"those of the others"
            )


def _columns(nodes: Nodes) -> str:
    return ", ".join(f"{field.name}: {field.type}" for field in nodes.attributes.schema)


def _refuse_row(hin: HIN, change: RowChange, relation: Relation, node_type: str, row: int) -> None:
    count = len(hin.nodes[node_type]) + (len(change.nodes[node_type]) if node_type in change.nodes else 0)
    if not 0 <= row < count:
        raise GraphError(f"an edge of '{relation}' names row {row} of {node_type}, which has {count:,} nodes")


# ---- Recent --------------------------------------------------------------------------------------
RECENT = 100
"""Versions of a store whose views are kept in memory."""
BYTES = 1 << 28
"""What these may hold that the newest does not: where nodes come or go, or the base is made anew, that is much."""

Parts = dict[int, int]
"""By what tells a part of a view from others for as long as the view is kept: its bytes."""


class Recent:
    """Views by version, each of which shares most of what it holds with the next."""

    def __init__(self) -> None:
        self._views: dict[int, View] = {}
        self._own: dict[int, int] = {}
        """By version: the bytes that no later view holds."""
        self._newest: Parts = {}

    def __len__(self) -> int:
        return len(self._views)

    def keep(self, view: View) -> None:
        """Keep the newest view, and let the oldest go where they are too many or too large."""
        parts = _parts(view, self._newest)
        if self._views:
            last = next(reversed(self._views))
            self._own[last] = sum(size for part, size in self._newest.items() if part not in parts)
        self._views[view.version], self._newest = untouched(view), parts
        while len(self._views) > RECENT or sum(self._own.values()) > BYTES:
            oldest = next(iter(self._views))
            self._views.pop(oldest)
            self._own.pop(oldest, None)

    def find(self, version: int) -> View | None:
        """Return the view of a version, where it is kept."""
        found = self._views.get(version)
        return None if found is None else untouched(found)


def untouched(view: View) -> View:
    """Return the same view with none of its matrices made, so that those who keep it keep little."""
    if not isinstance(view.hin.matrices, LiveMatrices):
        return view
    matrices = copy(view.hin.matrices)
    matrices._made = {}
    return replace(view, hin=HIN(view.hin.schema, view.hin.nodes, matrices, view.hin.notes))


def _parts(view: View, known: Parts) -> Parts:
    """Return the bytes of what views share or do not: nodes of a type, the base of all edges, and of each half.

    Those that are `known` of the view before, which is kept, are not counted again.
    """
    matrices = view.hin.matrices
    base = matrices.base if isinstance(matrices, LiveMatrices) else matrices
    found = {place: size for nodes in view.hin.nodes.values() for place, size in _bytes_of_nodes(nodes, known).items()}
    found[id(base)] = sum(m.data.nbytes + m.indices.nbytes + m.indptr.nbytes for m in base.values())
    return found | {id(half.rows.data): _bytes_of_half(half) for halves in view.halves.values() for half in halves}


def _bytes_of_nodes(nodes: Nodes, known: Parts) -> Parts:
    """Return the bytes of ids and names by where they lie, since one array may begin like another; and of the rest."""
    columns = [column for column in (nodes.ids, nodes.names) if column is not None]
    placed = ((column.buffers()[-1], column) for column in columns)
    found = {buffer.address: int(column.nbytes) for buffer, column in placed if buffer is not None}
    return found | {id(nodes): known[id(nodes)] if id(nodes) in known else int(nodes.attributes.nbytes)}


def _bytes_of_half(half: HalfArrays) -> int:
    return sum(array.nbytes for part in (half.rows, half.columns, half.norms) for array in part)


# ---- Live ----------------------------------------------------------------------------------------
SHARE = 0.05
"""Entries changed for each one of the base from which the base is made anew; docs/live.md says how it was measured."""
FOLLOWED = 16
"""Measures of a store that follow its changes."""


class LiveGraph:
    """A graph whose edges change while it is searched: one writer at a time, any number of readers.

    >>> from neupath import PathSim, load
    >>> live = LiveGraph(load("toy"))
    >>> live.follow(PathSim("author-paper-author"))
    >>> before = live.view()
    >>> writes = before.hin.schema.relations[0]
    >>> live.put([(writes, 0, 3, 1.0)])  # Mike joins a paper of Jim
    1
    >>> [view.fit(PathSim("author-paper-author")).top_k("Mike").ids for view in (before, live.view())]
    [(), ('Jim',)]
    """

    def __init__(self, hin: HIN, version: int = 0, share: float = SHARE) -> None:
        self._state = State(hin, version)
        self._share = share
        self._writing, self._compacting = RLock(), Lock()
        self._since: list[RowChange] = []

    def view(self) -> View:
        """Return the graph as it is now; the view never changes."""
        return self._state.view

    @property
    def share(self) -> float:
        """Entries changed for each one of the base, in the half-path matrix that has most."""
        return self._state.share

    def follow(self, measure: PathMeasure) -> None:
        """Keep what a measure needs up to date from now on."""
        with self._writing:
            self._state.follow(measure)

    def forget(self, key: object) -> None:
        """Follow the measure of a key, or the model of an identity, no longer; views that know it go on to."""
        with self._writing:
            self._state.forget(key)

    def fit(self, measure: Scorer) -> Scorer:
        """Return a measure or a trained model over the graph as it is, followed from now on where it can be."""
        if measure.identity is not None:
            self.follow_model(measure)
        if isinstance(measure, PathMeasure):
            self.follow(measure)
        return self.view().fit(measure)

    def follow_model(self, model: Scorer) -> None:
        """Keep what a trained model needs up to date from now on."""
        with self._writing:
            self._state.follow_model(model)

    def put(self, edges: Sequence[tuple[object, int, int, float]], nodes: Mapping[str, Nodes] | None = None) -> int:
        """Set the weights of edges by relation and rows (0 takes one away), and add nodes; return the new version."""
        with self._writing:
            change = RowChange(self._state.view.version + 1, edges, nodes or {})  # type: ignore[arg-type]
            refuse_strangers(self._state.view.hin, change)
            self.apply(change)
            return change.version

    def apply(self, change: RowChange) -> None:
        """Follow one change, and make the base anew in the background where too much has changed."""
        with self._writing:
            self._state.apply(change)
            self._since.append(change)
        if self._state.share > self._share and not self._compacting.locked():
            Thread(target=self.compact, daemon=True).start()

    def compact(self) -> None:
        """Make the base anew while readers and the writer go on, and then take it up."""
        with self._compacting:
            with self._writing:
                view, measures, done = self._state.view, list(self._state.measures.values()), len(self._since)
                models = list(self._state.models.values())
            fresh = State(_materialised(view.hin), view.version)
            for measure in measures:
                fresh.follow(measure)
            for model in models:
                fresh.follow_model(model)
            with self._writing:
                for change in self._since[done:]:
                    fresh.apply(change)
                for model in self._state.models.values():
                    fresh.follow_model(model)
                for measure in self._state.measures.values():
                    fresh.follow(measure)
                for key in fresh.followed() - self._state.followed():
                    fresh.forget(key)
                self._state, self._since = fresh, self._since[done:]


def _materialised(hin: HIN) -> HIN:
    nodes = {node_type: in_one_piece(nodes) for node_type, nodes in hin.nodes.items()}
    return HIN(hin.schema, nodes, dict(hin.matrices), hin.notes)


class LiveStore:
    """A store and its graph in memory: an update is on disk first, and in the next view then.

    It keeps other processes from opening the store, unless it is read-only. Of the measures and models that were
    fitted, the last `followed` ones follow the changes; each one costs every update a little.
    """

    def __init__(
        self, path: str | Path, share: float = SHARE, *, followed: int = FOLLOWED, read_only: bool = False
    ) -> None:
        self.store = open_store(path)
        self.read_only = read_only
        self._share, self._followed = share, followed
        self._fitted: dict[object, Scorer] = {}
        self._following = Lock()
        self._recent = Recent()
        self._grouped: GroupCommit[Update, int] = GroupCommit(self._update_many)
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
        """Let other processes have the store; views can still be read."""
        self.store.close()

    def _open(self) -> None:
        """Read the graph from the store, with the keys of its nodes."""
        facts, hin, keys = self.store.keyed()
        self._keys = {node_type: GrowingColumn(pa.array(found)) for node_type, found in keys.items()}
        graph = LiveGraph(hin, facts.version, self._share)
        with self._following:
            for fitted in self._fitted.values():
                graph.follow(fitted) if isinstance(fitted, PathMeasure) else graph.follow_model(fitted)
            self.graph, self.facts = graph, facts
        self._recent.keep(self.view())

    def view(self, as_of: int | None = None) -> View:
        """Return the graph as it is now, or as it was at a version; a view never changes.

        The last versions are in memory; an older one that the store has retained is read from disk.
        """
        newest = self.graph.view()
        if as_of is None or as_of == newest.version:
            return newest
        return self._recent.find(as_of) or View(as_of, self.store.hin(as_of), {})

    def fit(self, scorer: Scorer) -> Scorer:
        """Return a measure or a trained model over the graph as it is, followed from now on where it can be."""
        self.follow(scorer)
        return self.view().fit(scorer)

    def follow(self, scorer: Scorer) -> None:
        """Keep what a measure or a model needs up to date from now on, where that can be done."""
        if self.read_only:
            return
        if isinstance(scorer, PathMeasure):
            self._follow(key_of(scorer, self.view().hin), scorer)
        elif (parts := scorer.as_pathsims()) is not None:
            for metapath in parts.metapaths:
                self.follow(PathSim(metapath))
        elif scorer.identity is not None:
            self._follow(scorer.identity, scorer)

    def _follow(self, key: object, fitted: Scorer) -> None:
        """Follow what is asked for, and let go what was asked for longest ago."""
        with self._following:
            self.graph.fit(fitted)
            view = self.view()
            if key not in view.halves and key not in view.models:  # it has to be fitted anew to each version
                return
            self._fitted[key] = self._fitted.pop(key, fitted)
            while len(self._fitted) > self._followed:
                oldest = next(iter(self._fitted))
                del self._fitted[oldest]
                self.graph.forget(oldest)

    def update(self, update: Update) -> int:
        """Write an update, all or nothing, and follow it; return the new version.

        Batches of threads that wait for each other go to disk together, each as a version of its own.
        """
        if self.read_only:
            raise WriteError(f"the store {self.store.folder} was opened to be read only; nothing was changed")
        return self._grouped(update)

    def _update_many(self, updates: list[Update]) -> list[int | BaseException]:
        outcomes = self.store.update_many(updates)
        for change in outcomes:
            if isinstance(change, Change):
                self._follow_change(change)
        return [change.version if isinstance(change, Change) else change for change in outcomes]

    def _follow_change(self, change: Change) -> None:
        newest = self.view().version
        if change.version <= newest:  # it was read together with one before it
            return
        if change.removed_nodes or change.version > newest + 1:  # rows behind a node that went are others
            self._open()
        else:
            self.graph.apply(self._by_row(change))
            self.facts = change.facts
            self._recent.keep(self.view())

    def _by_row(self, change: Change) -> RowChange:
        for node_type, keys in change.keys().items():
            self._keys[node_type] = self._keys[node_type].append(pa.array(keys))
        relations = self.graph.view().hin.schema.relations
        edges = []
        for number, changed in change.edges.items():
            relation = relations[number]
            sources = self._rows(relation.source, changed.sources).tolist()
            targets = self._rows(relation.target, changed.targets).tolist()
            edges += [(relation, *edge) for edge in zip(sources, targets, changed.after.tolist(), strict=True)]
        return RowChange(change.version, edges, change.nodes(), distinct=True)

    def _rows(self, node_type: str, keys: Rows) -> Rows:
        return np.searchsorted(self._keys[node_type].array.to_numpy(), keys)
