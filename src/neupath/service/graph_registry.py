"""The graphs and models that are served, by name, and the cache of scorers fitted to them."""

import gc
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from threading import Event, Lock, Thread

from neupath.engine import topk
from neupath.engine.cache import LRU, bytes_of
from neupath.engine.scorer import Scorer, read_saved
from neupath.errors import NeuPathError, QueryError, did_you_mean, listed
from neupath.graph.hin import HIN
from neupath.graph.metapath import Relation, arrow
from neupath.graph.name_search import Match, search_types
from neupath.graph.nodes import Nodes
from neupath.graph.summary import Summary, summarise
from neupath.learn.registry import choose_measure, load_scorer
from neupath.live import LiveScorer, LiveStore, View
from neupath.measures import Combination, GraphMeasure, Part, PathMeasure
from neupath.service.autocomplete import NameIndex
from neupath.service.limits import Limits
from neupath.service.measure_process import ProcessScorer, needs_process
from neupath.service.schemas import NodesRequest, RequestError
from neupath.store import Update

# ---- Before the start ----------------------------------------------------------------------------
_warming_up = Event()


@contextmanager
def frozen_garbage_collection() -> Iterator[None]:
    """Exempt every object that exists now from garbage collection.

    A full collection over the libraries' objects takes a tenth of a second, in which no request is answered, and
    updates would trigger one every few seconds.
    """
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


# ---- Graph handles -------------------------------------------------------------------------------
class GraphHandle:
    """One version of a served graph; the version of a graph that is not a store is None."""

    def __init__(
        self, name: str, hin: HIN, view: View | None = None, names: Mapping[str, NameIndex] | None = None
    ) -> None:
        self.name, self.hin, self.view = name, hin, view
        self.names = names or {node_type: NameIndex(nodes) for node_type, nodes in hin.nodes.items()}

    @property
    def version(self) -> int | None:
        return None if self.view is None else self.view.version

    def fit(self, scorer: Scorer) -> "FittedScorer":
        return FittedScorer(self, scorer.fit(self.hin) if self.view is None else self.view.scorer(scorer))

    def at(self, as_of: int | None = None) -> "GraphHandle":
        if as_of is not None:
            raise QueryError(
                f"as_of is {as_of}, but the graph {self.name!r} is not a store and has no versions; leave as_of out"
            )
        return self

    def is_newest(self, handle: "GraphHandle") -> bool:
        return handle is self

    def attach(self, scorer: Scorer) -> "FittedScorer":
        return self.fit(scorer)

    def update(self, update: Update) -> int:  # noqa: ARG002
        raise RequestError(
            409, f"the graph {self.name!r} is no store, and takes no updates; make one with 'neupath import', "
            f"and serve that as writable",
        )  # fmt: skip

    @cached_property
    def summary(self) -> Summary:
        return summarise(self.hin)

    def schema(self) -> dict[str, object]:
        schema = self.hin.schema
        return {
            "node_types": [_describe_type(nodes) for nodes in self.hin.nodes.values()],
            "relations": [_describe_relation(self.hin, relation) for relation in schema.relations],
            "steps": [
                {"source": node_type, "target": link.target, "relation": link.relation.name, "link": arrow((link,))}
                for node_type in schema.node_types
                for link in schema.links_from(node_type)
            ],
        }

    def find_nodes(self, request: NodesRequest, limits: Limits) -> dict[str, object]:
        """Return a page of the nodes whose name or id matches a text, as `HIN.find` does."""
        if request.limit > limits.page:
            raise QueryError(f"limit is {request.limit}; this service lists at most {limits.page} nodes at a time")
        chosen = None if request.node_type is None else self.hin.schema.node_type(request.node_type)
        parts = {kind: names.searches for kind, names in self.names.items() if chosen in (None, kind)}
        degrees = self.hin.degrees
        total, page = search_types(parts, request.text, request.limit, request.offset, degrees=degrees)
        matches = [self.hin.matched(kind, row, match).to_dict() for kind, row, match in page]
        for place, differing in self._tell_apart(page, matches).items():
            matches[place]["differs"] = differing
        return {"node_type": chosen, "total": total, "offset": request.offset, "nodes": matches}

    def _tell_apart(
        self, page: Sequence[tuple[str, int, Match]], matches: Sequence[dict[str, object]]
    ) -> dict[int, dict[str, str]]:
        """Return, of each match with namesakes, the attribute that tells most of them apart."""
        namesakes: dict[tuple[object, object], list[int]] = {}
        for place, match in enumerate(matches):
            if match["name"] is not None:
                namesakes.setdefault((match["node_type"], match["name"]), []).append(place)
        told: dict[int, dict[str, str]] = {}
        for (kind, _), places in namesakes.items():
            attributes = self.hin.nodes[str(kind)].attributes
            if len(places) == 1 or not attributes.column_names:
                continue
            rows = [page[place][1] for place in places]
            columns = {
                name: [str(attributes[name][row].as_py() or "") for row in rows] for name in attributes.column_names
            }
            best = max(columns, key=lambda name: (len(set(columns[name])), -max(map(len, columns[name]))))
            if len(set(columns[best])) > 1:
                known = ((place, value) for place, value in zip(places, columns[best], strict=True) if value)
                told |= {place: {"attribute": best, "value": value} for place, value in known}
        return told

    def to_dict(self) -> dict[str, object]:
        nodes = sum(len(nodes) for nodes in self.hin.nodes.values())
        return _to_dict(self, nodes, sum(self.hin.num_edges(relation) for relation in self.hin.schema.relations))


class StoreHandle:
    """A store under the name it is served by; `at` returns a handle of one version, the newest unless given."""

    def __init__(self, name: str, live: LiveStore) -> None:
        self.name, self._live = name, live
        self._graph = live.graph
        self._newest = GraphHandle(name, live.view().hin, live.view())
        self._lock = Lock()

    def at(self, as_of: int | None = None) -> GraphHandle:
        if as_of is not None:
            view = self._live.view(as_of)
            return GraphHandle(self.name, view.hin, view)
        with self._lock:  # an older view must not take over the names of a newer one
            graph = self._live.graph
            view = graph.view()
            if view is not self._newest.view:
                names = None
                if graph is self._graph:  # another graph has other row numbers
                    names = {kind: self._newest.names[kind].grown(nodes) for kind, nodes in view.hin.nodes.items()}
                self._graph, self._newest = graph, GraphHandle(self.name, view.hin, view, names)
            return self._newest

    def is_newest(self, handle: GraphHandle) -> bool:
        return handle.version == self._live.graph.view().version

    def attach(self, scorer: Scorer) -> "FittedScorer":
        """Let a scorer follow updates from now on, and return it at the newest version.

        While the kernels of updates are compiled, it is fitted to that version alone.
        """
        if _warming_up.is_set():
            return self.at().fit(scorer)
        attached, handle = self._live.attach(scorer), self.at()
        is_newest = attached.hin_ is handle.hin  # another update may come between the two
        return FittedScorer(handle, attached) if is_newest else handle.fit(scorer)

    def update(self, update: Update) -> int:
        """Write an update to disk, and return the version that it makes."""
        if self._live.read_only:
            message = f"the store {self.name!r} is served read-only; start the service as writable to update it"
            raise RequestError(403, message)
        return self._live.update(update)

    def to_dict(self) -> dict[str, object]:
        facts = self._live.facts
        versions = {"version": facts.version, "writable": not self._live.read_only}
        return _to_dict(self._newest, facts.nodes, facts.edges) | versions


def _to_dict(handle: GraphHandle, nodes: int, edges: int) -> dict[str, object]:
    relations = [str(relation) for relation in handle.hin.schema.relations]
    counts = {"name": handle.name, "nodes": nodes, "edges": edges}
    return counts | {"node_types": list(handle.hin.schema.node_types), "relations": relations}


def _describe_type(nodes: Nodes) -> dict[str, object]:
    about = {"node_type": nodes.node_type, "nodes": len(nodes), "named": nodes.names is not None}
    return about | {"attributes": nodes.attributes.column_names}


def _describe_relation(hin: HIN, relation: Relation) -> dict[str, object]:
    attributes = hin.edge_kinds(relation)
    return asdict(relation) | {"edges": hin.num_edges(relation), "attributes": attributes}


# ---- Registry and cache --------------------------------------------------------------------------
_INDEXED_AT_START = 200_000
"""Types with at most this many nodes have their names indexed at the start, larger ones at the first look-up."""
_PAST_SCORERS = 4  # cached scorers of earlier versions, each of which may hold a whole graph
_WHOLE_SCORERS = 4  # cached measures over the whole graph
_Key = tuple[str, str, str | None, str | None, int | None]
"""Graph, measure or "model NAME", meta-path, node type, and the version that the request names."""


@dataclass(eq=False)
class FittedScorer:
    """A scorer, and the version of a graph that it is fitted to."""

    handle: GraphHandle
    scorer: Scorer

    @property
    def bytes(self) -> int:
        """Bytes of arrays that the scorer holds besides its graph, or of its process."""
        if isinstance(self.scorer, ProcessScorer):
            return self.scorer.num_bytes
        return bytes_of([value for name, value in vars(self.scorer).items() if name != "hin_"])

    @property
    def is_usable(self) -> bool:
        return not isinstance(self.scorer, ProcessScorer) or self.scorer.is_alive

    def renew(self, handle: GraphHandle) -> "FittedScorer | None":
        """Return the scorer at a newer version where that takes no time, or None."""
        if not isinstance(self.scorer, LiveScorer) or handle.view is None:
            return None
        scorer = handle.view.renew(self.scorer)
        return None if scorer is None else FittedScorer(handle, scorer)


@dataclass(frozen=True)
class SavedModel:
    """A model that is served: its folder, the graphs that it fits, and what a list of models says of it."""

    folder: Path
    graphs: list[str]
    about: dict[str, object]


@dataclass
class GraphRegistry:
    """Everything that is served. A model is a saved scorer, bound to each graph whose schema it fits.

    Fitted measures and bound models are cached: at most `Limits.scorers`, of `Limits.scorer_bytes`.
    One leaves the cache when others are used more recently, when an update makes a newer version that it cannot follow,
    and when memory runs out (`clear_cache`). Scorers at versions that a request names by `as_of` have their own cache,
    and so have measures over the whole graph, which may have a process each.
    """

    graphs: Mapping[str, GraphHandle | StoreHandle]
    limits: Limits
    models: dict[str, SavedModel] = field(default_factory=dict)
    cache: LRU[_Key, FittedScorer] = field(init=False)
    _past_cache: LRU[_Key, FittedScorer] = field(init=False)
    _whole_cache: LRU[_Key, FittedScorer] = field(init=False)

    def __post_init__(self) -> None:
        self.cache = LRU(self.limits.scorers, self.limits.scorer_bytes, lambda fitted: fitted.bytes)
        self._past_cache = LRU(_PAST_SCORERS, self.limits.scorer_bytes, lambda fitted: fitted.bytes)
        self._whole_cache = LRU(_WHOLE_SCORERS, self.limits.scorer_bytes, lambda fitted: fitted.bytes)

    def handle(self, name: str) -> GraphHandle | StoreHandle:
        handle = self.graphs.get(name)
        if handle is None:
            hint = did_you_mean(name[:200], self.graphs)
            raise RequestError(404, f"no graph {name[:200]!r} is served (there are {listed(self.graphs)}){hint}")
        return handle

    def graph(self, name: str, as_of: int | None = None) -> GraphHandle:
        """Return the newest version of a graph, or an earlier one."""
        return self.handle(name).at(as_of)

    def cached_measure(self, graph: str, measure: str, metapath: str) -> FittedScorer | None:
        """Return a measure from the cache where it is of the newest version, or can follow to it in no time."""
        key = graph, measure, metapath, None, None
        fitted = self.cache.find(key)
        if fitted is None or self.handle(graph).is_newest(fitted.handle):
            return fitted
        renewed = fitted.renew(self.graph(graph))
        return None if renewed is None else self.cache.put(key, renewed)

    def measure(
        self, graph: str, measure: str, metapath: str | None, node_type: str | None = None, as_of: int | None = None
    ) -> FittedScorer:
        """Return a measure along a meta-path, or over the whole graph between nodes of a type; fit it on first use."""
        self.limits.check_text("the meta-path", metapath)

        def fit() -> FittedScorer:
            handle, hin = self.handle(graph), self.graph(graph, as_of).hin
            path = None if metapath is None else self.limits.check_metapath(hin.metapath(metapath))
            scorer = choose_measure(hin.schema, metapath=path, measure=measure, node_type=node_type)
            if as_of is None and path is not None:
                return handle.attach(scorer)
            return self._fit(handle.at(as_of), scorer)

        if as_of is None and node_type is None and metapath is not None:
            cached = self.cached_measure(graph, measure, metapath)
            if cached is not None:
                return cached
        return self._get((graph, measure, metapath, node_type, as_of), fit)

    def _fit(self, handle: GraphHandle, scorer: Scorer) -> FittedScorer:
        """Fit a measure to a version, in a process of its own where it may take long and cannot be stopped."""
        if isinstance(scorer, GraphMeasure) and needs_process(scorer, handle.hin):
            return FittedScorer(handle, ProcessScorer(scorer, self.limits.job_bytes).fit(handle.hin))
        return handle.fit(scorer)

    def _get(self, key: _Key, fit: Callable[[], FittedScorer]) -> FittedScorer:
        handle = self.handle(key[0])
        if key[-1] is not None:
            return self._past_cache.get(key, fit, lambda fitted: fitted.is_usable)
        cache = self._whole_cache if key[3] is not None else self.cache
        return cache.get(key, fit, lambda fitted: handle.is_newest(fitted.handle) and fitted.is_usable)

    def combination(self, graph: str, parts: list[Part], as_of: int | None = None) -> FittedScorer:
        """Return a weighted sum of measures; only their parts' matrices are cached, in `engine.cache`."""
        handle, most = self.graph(graph, as_of), self.limits.steps
        if len(parts) > most:
            raise QueryError(
                f"a combination of {len(parts)} parts is given; this service adds at most {most} (the limit steps)"
            )
        for part in parts:
            self.limits.check_text("the meta-path", part.metapath)
            self.limits.check_metapath(handle.hin.metapath(str(part.metapath)))
        return FittedScorer(handle, Combination(parts).fit(handle.hin))

    def model(self, graph: str, name: str, as_of: int | None = None) -> FittedScorer:
        """Return a saved model bound to a version of a graph; bind it again where it cannot follow updates."""
        handle, model = self.handle(graph), self.models.get(name)
        if model is None:
            known = f"there are {listed(self.models)}" if self.models else "there are none"
            hint = did_you_mean(name[:200], self.models)
            raise RequestError(404, f"no model {name[:200]!r} is served ({known}){hint}")
        if graph not in model.graphs:
            reason = f"does not fit the graph {graph!r}, whose schema is another; it fits {listed(model.graphs)}"
            raise RequestError(422, f"the model {name!r} {reason}")
        key = _model_key(graph, name, as_of)

        def bind() -> FittedScorer:
            earlier = None if as_of is not None else self.cache.find(key)  # bound to an earlier version
            if earlier is not None and earlier.scorer.identity is not None:
                return handle.attach(earlier.scorer)
            version = handle.at(as_of)
            return FittedScorer(version, load_scorer(model.folder, version.hin))

        return self._get(key, bind)

    def add_model(
        self, name: str, folder: Path, graphs: list[str] | None = None, origin: Mapping[str, object] | None = None
    ) -> None:
        """Bind a saved model to every graph that it fits, of those given; refuse one that fits none.

        `origin` is the title of a model that a job of the service has made, and when.
        """
        read_saved(folder)
        bound, reasons = {}, []
        for handle in map(self.graph, self.graphs if graphs is None else graphs):
            try:
                bound[handle.name] = FittedScorer(handle, load_scorer(folder, handle.hin))
            except NeuPathError as error:
                reasons.append(str(error))
        if not bound:
            raise QueryError(f"the model {name!r} fits no graph that is served: {listed(reasons, 1)}")
        self.models[name] = SavedModel(folder, list(bound), _describe(name, bound) | dict(origin or {}))
        for graph, fitted in bound.items():
            self.cache.put(_model_key(graph, name), fitted)

    def drop_model(self, name: str) -> None:
        self.models.pop(name, None)
        for cache in (self.cache, self._past_cache):
            cache.drop(lambda key: key[1] == f"model {name}")

    def describe_models(self) -> list[dict[str, object]]:
        return [model.about | self._describe_members(name, model) for name, model in self.models.items()]

    def _describe_members(self, name: str, model: SavedModel) -> dict[str, object]:
        """Say which members of a learned stack do not fit the graphs, as they are now or were at the last search."""
        left_out = {}
        for graph in model.graphs:
            fitted = self.cache.find(_model_key(graph, name))
            if fitted is not None and (missing := getattr(fitted.scorer, "left_out", ())):
                left_out[graph] = list(missing)
        return {"left_out": left_out} if left_out else {}

    def warm_up(self) -> None:
        """Index the names, and load the kernels on a thread, which after an installation takes half a minute."""
        for handle in map(self.graph, self.graphs):
            for names in handle.names.values():
                if len(names.nodes) <= _INDEXED_AT_START:
                    names.prepare()
        _warming_up.set()
        Thread(target=self._load_kernels, name="neupath-warm-up", daemon=True).start()

    def _load_kernels(self) -> None:
        try:
            topk.load_kernels()
        finally:
            _warming_up.clear()
            self.cache.clear()  # measures of stores that do not follow updates

    def exit_if_warming_up(self) -> None:
        if _warming_up.is_set():
            os._exit(0)

    def clear_cache(self) -> None:
        for cache in (self.cache, self._past_cache, self._whole_cache):
            cache.clear()


def _model_key(graph: str, name: str, as_of: int | None = None) -> _Key:
    return graph, f"model {name}", None, None, as_of


def _describe(name: str, bound: dict[str, FittedScorer]) -> dict[str, object]:
    scorer = next(iter(bound.values())).scorer
    shows_paths = hasattr(scorer, "attention_paths") or hasattr(scorer, "as_combination")
    explains = shows_paths or isinstance(scorer, Combination | PathMeasure)
    return {
        "name": name, "title": name, "created": None, "graphs": list(bound), "measure": scorer.name,
        "exact": scorer.exact,
        "source_type": scorer.source_type, "target_type": scorer.target_type, "metapath": scorer.metapath_text,
        "explains": explains,
    }  # fmt: skip
