"""Live: a graph in memory that follows its changes, and answers exactly at once."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Lock, RLock, Thread
from typing import Self

import numpy as np

from neupath.following import Learned
from neupath.graph import HIN
from neupath.live.state import RowChange, State, View
from neupath.measures.path_measure import PathMeasure
from neupath.nodes import Nodes, Rows
from neupath.scorer import Scorer
from neupath.store import Batch, Change, open_store

SHARE = 0.2
"""Entries of records for each one of the base from which the base is made anew; see benchmarks/live.py."""


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
        """Entries of records for each one of the base, in the half-path matrix that has most."""
        return self._state.share

    def follow(self, measure: PathMeasure) -> None:
        """Keep what a measure needs up to date from now on."""
        with self._writing:
            self._state.follow(measure)

    def fit(self, measure: Scorer) -> Scorer:
        """Return a measure or a trained model over the graph as it is, followed from now on where it can be."""
        if isinstance(measure, Learned):
            self.follow_model(measure)
        if isinstance(measure, PathMeasure):
            self.follow(measure)
        return self.view().fit(measure)

    def follow_model(self, model: Learned) -> None:
        """Keep what a trained model needs up to date from now on."""
        with self._writing:
            self._state.follow_model(model)

    def put(self, edges: Sequence[tuple[object, int, int, float]], nodes: Mapping[str, Nodes] | None = None) -> int:
        """Set the weights of edges by relation and rows (0 takes one away), and add nodes; return the new version."""
        with self._writing:
            change = RowChange(self._state.view.version + 1, edges, nodes or {})  # type: ignore[arg-type]
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
                self._state, self._since = fresh, self._since[done:]


def _materialised(hin: HIN) -> HIN:
    return HIN(hin.schema, hin.nodes, dict(hin.matrices), hin.notes)


class LiveStore:
    """A store and its graph in memory: an update is on disk first, and in the next view then."""

    def __init__(self, path: str | Path, share: float = SHARE) -> None:
        self.store = open_store(path)
        self._share = share
        self._writing = RLock()
        self._measures: list[PathMeasure] = []
        self._open()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.store.close()

    def _open(self) -> None:
        """Read the graph from the store, with the keys of its nodes."""
        version, hin, self._keys = self.store.keyed()
        self.graph = LiveGraph(hin, version, self._share)
        for measure in self._measures:
            self.graph.follow(measure)

    def view(self) -> View:
        """Return the graph as it is now; the view never changes."""
        return self.graph.view()

    def fit(self, measure: Scorer) -> Scorer:
        """Return a measure over the graph as it is, followed from now on where it can be."""
        if isinstance(measure, PathMeasure):
            self._measures.append(measure)
        return self.graph.fit(measure)

    def update(self, batch: Batch) -> int:
        """Write a batch, all or nothing, and follow it; return the new version."""
        with self._writing:
            change = self.store.update(batch)
            if change.shrunk:  # rows behind a node that went are others
                self._open()
            else:
                self.graph.apply(self._by_row(change))
            return change.version

    def _by_row(self, change: Change) -> RowChange:
        for node_type, keys in change.keys.items():
            self._keys[node_type] = np.concatenate([self._keys[node_type], keys])
        relations = self.graph.view().hin.schema.relations
        edges = []
        for number, changed in change.edges.items():
            relation = relations[number]
            sources = self._rows(relation.source, changed.sources).tolist()
            targets = self._rows(relation.target, changed.targets).tolist()
            edges += [(relation, *edge) for edge in zip(sources, targets, changed.after.tolist(), strict=True)]
        return RowChange(change.version, edges, change.grown)

    def _rows(self, node_type: str, keys: Rows) -> Rows:
        return np.searchsorted(self._keys[node_type], keys)
