"""State: a base graph, and everything that follows its changes; one writer, and views for any number of readers."""

import json
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from neupath.engine.scorer import Binding, Scorer, Updater
from neupath.errors import GraphError
from neupath.graph.hin import HIN
from neupath.graph.nodes import Id, Nodes
from neupath.graph.schema import Relation
from neupath.live.append_arrays import GrowingNodes, HalfArrays
from neupath.live.live_product import LiveHalf, plan_of
from neupath.live.live_scorer import LiveScorer
from neupath.live.propagation import Adjacency, LiveMatrices, Put, pairs_of
from neupath.measures import PathSim
from neupath.measures.path_measure import PathMeasure

Key = tuple[str, str]


@dataclass(frozen=True)
class RowChange:
    """What one version changes: the new weight of edges by row, and new nodes at the end of their types."""

    version: int
    edges: Sequence[tuple[Relation, int, int, float]]
    nodes: Mapping[str, Nodes] = field(default_factory=dict)
    distinct: bool = False
    """Whether the ids of the nodes are known to be new, as those of a store are; else all of a type are hashed once."""


@dataclass(frozen=True)
class View:
    """One version of a live graph, which stays as it is while others are written."""

    version: int
    hin: HIN
    halves: Mapping[Key, tuple[HalfArrays, HalfArrays]]
    models: Mapping[object, Binding] = field(default_factory=dict)

    def fit(self, measure: Scorer) -> Scorer:
        """Return a measure or a trained model over this version: at once where it is followed, else from scratch."""
        if measure.identity is not None:
            return self._bind(measure)
        if not isinstance(measure, PathMeasure) or (key := key_of(measure, self.hin)) not in self.halves:
            return measure.fit(self.hin)
        return LiveScorer(_placed(measure, self.hin), self.hin, self.halves[key], self.version, key)

    def renew(self, scorer: LiveScorer) -> LiveScorer | None:
        """Return a scorer of another version at this one, sooner than `fit` does; nothing where it is not followed."""
        if scorer.key not in self.halves:
            return None
        measure = copy(scorer.measure)
        measure.hin_ = self.hin
        return LiveScorer(measure, self.hin, self.halves[scorer.key], self.version, scorer.key)

    def _bind(self, model: Scorer) -> Scorer:
        if model.identity in self.models:
            return self.models[model.identity](self.hin)
        parts = model.as_pathsims()
        if parts is None:
            return model.bind(self.hin)
        return parts.over(self.hin, [self.fit(PathSim(metapath)) for metapath in parts.metapaths])


class State:
    """The base, the live adjacency, and the halves of the measures that are followed."""

    def __init__(self, hin: HIN, version: int) -> None:
        self._base = hin
        self._nodes = {node_type: GrowingNodes.over(nodes) for node_type, nodes in hin.nodes.items()}
        self._ids: dict[str, set[Id]] = {}
        """By type: all ids, where somebody had to know."""
        self._num_edges = sum(int(matrix.nnz) for matrix in hin.matrices.values())
        self._log: list[Put] = []
        self._adjacency = Adjacency(hin, version, self._log)
        self._halves: dict[Key, tuple[LiveHalf, LiveHalf]] = {}
        self.measures: dict[Key, PathMeasure] = {}
        self._followers: dict[object, Updater] = {}
        self.models: dict[object, Scorer] = {}
        self.view = View(version, hin, MappingProxyType({}))

    @property
    def share(self) -> float:
        """The largest share of records in any half, or of changed edges in all."""
        changed = len(self._log) / max(1, self._num_edges)
        return max(changed, *(half.share for halves in self._halves.values() for half in halves), 0.0)

    def follow(self, measure: PathMeasure) -> None:
        """Build the halves of a measure over the graph as it is, to change with it from now on."""
        key = key_of(measure, self.view.hin)
        if key in self._halves:
            return
        try:
            fitted = _copied(measure).fit(self.view.hin)
        except GraphError:  # of numbers that no float holds; `View.fit` tells whoever asks
            return
        plan = plan_of(fitted, fitted.metapath_)
        halves = None if plan is None else plan.build(fitted, self._adjacency)
        if halves is not None:
            self._halves[key] = halves
            self.measures[key] = measure
            self._publish(self.view.version, self.view.hin)

    def followed(self) -> set[object]:
        """Return the keys of measures and the identities of models that are followed."""
        return {*self.measures, *self.models}

    def forget(self, key: object) -> None:
        """Follow a measure or a model no longer, where it is."""
        followed: tuple[dict[Any, Any], ...] = self._halves, self.measures, self._followers, self.models
        for known in followed:
            known.pop(key, None)
        self._publish(self.view.version, self.view.hin)

    def apply(self, change: RowChange) -> None:
        """Follow one change; readers see it all at once when it is done."""
        if change.nodes:
            self._grow(change)
        self._log += change.edges
        pairs = [self._adjacency.put(pair, weight) for pair, weight in pairs_of(change.edges)]
        for left, right in self._halves.values():
            for half in (left,) if left is right else (left, right):
                half.follow(pairs, change.version)
        self._drop_overflown()
        matrices = LiveMatrices(self._base.matrices, self._log, len(self._log), self._adjacency.sizes)
        hin = HIN(self._base.schema, MappingProxyType(self._nodes_now()), matrices, self._base.notes)
        for follower in self._followers.values():
            follower.apply(hin, change.edges)
        self._publish(change.version, hin)

    def _drop_overflown(self) -> None:
        """Follow no longer what has outgrown the floats: to fit it from scratch says what is wrong."""
        for key in [key for key, halves in self._halves.items() if not all(half.is_held for half in halves)]:
            del self._halves[key], self.measures[key]

    def follow_model(self, model: Scorer) -> None:
        """Build what a trained model needs over the graph as it is, to change with it from now on."""
        parts = model.as_pathsims()
        for metapath in parts.metapaths if parts else ():
            self.follow(PathSim(metapath))
        follower = None if parts or model.identity in self.models else model.updater(self.view.hin)
        if follower is not None:
            self._followers[model.identity], self.models[model.identity] = follower, model
            self._publish(self.view.version, self.view.hin)

    def _publish(self, version: int, hin: HIN) -> None:
        views = {key: (left.arrays, right.arrays) for key, (left, right) in self._halves.items()}
        models = {identity: follower.snapshot() for identity, follower in self._followers.items()}
        self.view = View(version, hin, views, models)

    def _grow(self, change: RowChange) -> None:
        new = {node_type: nodes.ids.to_pylist() for node_type, nodes in change.nodes.items()}
        if not change.distinct:
            for node_type, ids in new.items():
                self._refuse_known(node_type, ids)
        self._nodes |= {node_type: self._nodes[node_type].append(nodes) for node_type, nodes in change.nodes.items()}
        for node_type in new.keys() & self._ids.keys():
            self._ids[node_type].update(new[node_type])
        self._adjacency.grow({node_type: len(grown.nodes) for node_type, grown in self._nodes.items()})
        sizes = self._adjacency.sizes
        for halves in self._halves.values():
            for half in halves:
                half.grow(sizes[half.steps[0].step.source], sizes[half.steps[-1].step.target])

    def _nodes_now(self) -> dict[str, Nodes]:
        return {node_type: grown.nodes for node_type, grown in self._nodes.items()}

    def _refuse_known(self, node_type: str, ids: list[Id]) -> None:
        """Refuse nodes that are there already, before anything changes."""
        if node_type not in self._ids:
            self._ids[node_type] = set(self._nodes[node_type].nodes.ids.to_pylist())
        repeated = next((new for new in ids if new in self._ids[node_type]), None)
        if repeated is not None:
            raise GraphError(f"{node_type} id {repeated!r} is given 2 times; node ids must be unique")


def key_of(measure: PathMeasure, hin: HIN) -> Key:
    """Return a text that is the same for measures that score the same."""
    return measure.name, json.dumps(_placed(measure, hin).params())


def _copied(measure: PathMeasure) -> PathMeasure:
    own = dict(measure.params())
    return type(measure)(**own)  # type: ignore[arg-type]


def _placed(measure: PathMeasure, hin: HIN) -> PathMeasure:
    """Return the measure with its meta-path read over a graph's schema, but without the products."""
    placed = _copied(measure)
    placed.metapath_ = hin.metapath(str(measure.metapath))
    placed.check(placed.metapath_)
    placed.hin_ = hin
    return placed
