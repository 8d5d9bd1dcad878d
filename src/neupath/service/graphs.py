"""Catalogue: the graphs and models that are served, and the scorers that are ready to answer."""

import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from neupath.engine.cache import LRU, bytes_of
from neupath.engine.hits import Hits
from neupath.engine.products import Factors
from neupath.engine.scorer import Scorer, read_saved
from neupath.errors import NeuPathError, QueryError, did_you_mean, listed
from neupath.graph.hin import HIN
from neupath.graph.metapath import arrow
from neupath.graph.summary import Summary, summarise
from neupath.io import load
from neupath.learn.registry import choose_measure, load_scorer
from neupath.live import LiveGraph, LiveScorer, LiveStore, View
from neupath.measures import Combination, Part, PathMeasure, PathSim
from neupath.service.autocomplete import NameIndex
from neupath.service.limits import Limits
from neupath.service.responses import RequestError
from neupath.service.schemas import NodesQuery
from neupath.store import Edge, Update


# ---- Warming -------------------------------------------------------------------------------------
def load_kernels() -> None:
    """Search the smallest graph, and change it, so that no request waits for the kernels."""
    hin, measure = load("toy"), PathSim("author-paper-author")
    measure.fit(hin).top_k("Mike")
    live = LiveGraph(hin)
    live.attach(measure)
    live.update(Update(add_edges=[Edge("writes", "Mike", "Jim-SIGMOD-1")]))
    live.view().scorer(measure).top_k("Mike")


@contextmanager
def collecting_little() -> Iterator[None]:
    """Keep Python's collector of garbage away from all that is there already.

    The libraries alone are so many objects that to look at them all takes a tenth of a second, in which nobody is
    answered; updates leave enough behind for that to happen every few seconds.
    """
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


# ---- Served --------------------------------------------------------------------------------------
class GraphHandle:
    """One version of a graph under the name it is served by; a graph that is no store has no other."""

    def __init__(
        self, name: str, hin: HIN, view: View | None = None, names: Mapping[str, NameIndex] | None = None
    ) -> None:
        self.name, self.hin, self.view = name, hin, view
        self.names = names or {node_type: NameIndex(nodes) for node_type, nodes in hin.nodes.items()}

    @property
    def version(self) -> int | None:
        return None if self.view is None else self.view.version

    def fit(self, measure: Scorer) -> Scorer:
        """Fit a measure, at once where it follows the changes of a store."""
        return measure.fit(self.hin) if self.view is None else self.view.scorer(measure)

    def at(self, as_of: int | None = None) -> "GraphHandle":
        """Return the graph as it is now, or as it was at a version."""
        if as_of is not None:
            raise QueryError(f"as_of is {as_of}, and the graph {self.name!r} is no store: it has no versions")
        return self

    def is_newest(self, served: "GraphHandle") -> bool:
        """Whether there is nothing newer than what was served."""
        return served is self

    def follow(self, measure: Scorer) -> "GraphHandle":  # noqa: ARG002
        """Return the graph as it is now, for a measure that will be asked for again."""
        return self

    def update(self, update: Update) -> int:  # noqa: ARG002
        """Refuse to change."""
        raise RequestError(
            409, f"the graph {self.name!r} is no store, and takes no updates; make one with 'neupath import', "
            f"and serve that as writable",
        )  # fmt: skip

    @cached_property
    def description(self) -> Summary:
        return summarise(self.hin)

    def schema(self) -> dict[str, object]:
        """Return the node types, the relations, and every step a meta-path can take."""
        schema = self.hin.schema
        return {
            "node_types": [
                {
                    "node_type": node_type,
                    "nodes": len(nodes),
                    "named": nodes.names is not None,
                    "attributes": nodes.attributes.column_names,
                }
                for node_type, nodes in self.hin.nodes.items()
            ],
            "relations": [asdict(relation) | {"edges": self.hin.num_edges(relation)} for relation in schema.relations],
            "steps": [
                {"source": node_type, "target": link.target, "relation": link.relation.name, "link": arrow((link,))}
                for node_type in schema.node_types
                for link in schema.links_from(node_type)
            ],
        }

    def find_nodes(self, asked: NodesQuery, limits: Limits) -> dict[str, object]:
        """Return a page of the nodes that a text leads to."""
        if asked.limit > limits.page:
            raise QueryError(f"limit is {asked.limit}; this service lists at most {limits.page} nodes at a time")
        node_type = self.hin.schema.node_type(asked.node_type)
        nodes = self.hin.nodes[node_type]
        found = self.names[node_type].find(asked.text, asked.limit, asked.offset)
        listed_nodes = [
            {"id": nodes.id(row), "name": nodes.name(row), "match": match}
            for row, match in zip(found.rows, found.matches, strict=True)
        ]
        return {"node_type": node_type, "total": found.total, "offset": asked.offset, "nodes": listed_nodes}

    def to_dict(self) -> dict[str, object]:
        nodes = sum(len(nodes) for nodes in self.hin.nodes.values())
        return _to_dict(self, nodes, sum(self.hin.num_edges(relation) for relation in self.hin.schema.relations))


class StoreHandle:
    """A store under the name it is served by: every call is answered at the newest version, or at one it asks for."""

    def __init__(self, name: str, live: LiveStore) -> None:
        self.name, self._live = name, live
        self._graph = live.graph
        self._newest = GraphHandle(name, live.view().hin, live.view())
        self._renewing = Lock()

    def at(self, as_of: int | None = None) -> GraphHandle:
        """Return the graph as it is now, or as it was at a version."""
        if as_of is not None:
            view = self._live.view(as_of)
            return GraphHandle(self.name, view.hin, view)
        with self._renewing:  # so that none is made from the names of a later one
            graph = self._live.graph
            view = graph.view()
            if view is not self._newest.view:
                names = self._names(view) if graph is self._graph else None  # else its rows are others
                self._graph, self._newest = graph, GraphHandle(self.name, view.hin, view, names)
            return self._newest

    def _names(self, view: View) -> Mapping[str, NameIndex]:
        """Return the names known so far, with those of nodes that came."""
        return {node_type: self._newest.names[node_type].grown(nodes) for node_type, nodes in view.hin.nodes.items()}

    def is_newest(self, served: GraphHandle) -> bool:
        """Whether there is nothing newer than what was served."""
        return served.version == self._live.graph.view().version

    def follow(self, measure: Scorer) -> GraphHandle:
        """Let a measure or a model follow the changes from now on, and return the graph as it is now."""
        self._live.attach(measure)
        return self.at()

    def update(self, update: Update) -> int:
        """Write an update to disk, and return the version that it makes."""
        if self._live.read_only:
            raise RequestError(
                403, f"the store {self.name!r} is served read-only; start the service as writable to update it"
            )
        return self._live.update(update)

    def to_dict(self) -> dict[str, object]:
        facts = self._live.facts
        versions = {"version": facts.version, "writable": not self._live.read_only}
        return _to_dict(self._newest, facts.nodes, facts.edges) | versions


def _to_dict(served: GraphHandle, nodes: int, edges: int) -> dict[str, object]:
    schema = served.hin.schema
    return {
        "name": served.name,
        "nodes": nodes,
        "edges": edges,
        "node_types": list(schema.node_types),
        "relations": [str(relation) for relation in schema.relations],
    }


# ---- Catalogue -----------------------------------------------------------------------------------
_LIGHT = 20_000
"""Additions of a query that take less time than handing it to a thread."""
_PREPARED = 200_000
"""Nodes of a type that are made ready for lookups before the service starts; more are when they are first asked for."""
_PAST = 4
"""Measures of earlier versions that are kept ready."""
_NONE = np.array([-1])
_Key = tuple[str, str, str | None, str | None, int | None]
"""A graph, a measure, what it looks at (a meta-path, or a node type of the whole graph), and the version asked for."""
_NEVER_INDEXED = 500
"""Additions of a mean query below which the engine never stops to build an index."""


@dataclass
class Ready:
    """A scorer fitted to a graph, and which of its queries are light enough to be answered at once."""

    served: GraphHandle
    scorer: Scorer

    @cached_property
    def names(self) -> NameIndex:
        return self.served.names[self.scorer.source_type]

    @cached_property
    def _targets(self) -> NameIndex:
        return self.served.names[self.scorer.target_type]

    @cached_property
    def _metapath(self) -> str | None:
        return self.scorer.metapath_text

    @cached_property
    def _ranks_query(self) -> bool:
        return self.scorer.source_type != self.scorer.target_type

    def answer(self, row: int, k: int, include_query: bool) -> Hits:
        """Return the hits of one query without the general case's preparations; they are the same as `top_k`'s."""
        queries = np.array([row])
        skipped = _NONE if include_query or self._ranks_query else queries
        found = self.scorer.rank_rows(queries, skipped, k, None, 1)
        rows, scores = found.rows[0, : found.sizes[0]].tolist(), found.scores[0, : found.sizes[0]].tolist()
        ids, names = self._targets.labels(rows)
        ((query,), _) = self.names.labels([row])
        return Hits(query, self._metapath, self.scorer.name, self.scorer.exact, ids, names, tuple(scores))

    @cached_property
    def _additions(self) -> NDArray[np.float64] | None:
        """How many additions each query takes; nothing where that is not known beforehand."""
        factors = getattr(self.scorer, "factors_", None)
        return additions_of(factors) if isinstance(factors, Factors) else None

    def renewed(self, served: GraphHandle) -> "Ready | None":
        """Return the same at another version, where that takes no time."""
        if not isinstance(self.scorer, LiveScorer) or served.view is None:
            return None
        scorer = served.view.renew(self.scorer)
        return None if scorer is None else Ready(served, scorer)

    def is_light(self, row: int) -> bool:
        if isinstance(self.scorer, LiveScorer):
            additions = self.scorer.additions(row)
            return additions is not None and additions <= _LIGHT / 2  # and what changed comes on top
        if self._additions is None or self._additions[row] > _LIGHT:
            return False
        factors: Factors = self.scorer.factors_  # type: ignore[attr-defined]
        return factors.work < _NEVER_INDEXED or factors.index is not None


def additions_of(factors: Factors) -> NDArray[np.float64]:
    """Return the exact number of additions that each query takes."""
    lengths = np.diff(factors.right.indptr)[factors.left.indices].astype(np.float64)
    total = np.concatenate([[0.0], np.cumsum(lengths)])
    additions: NDArray[np.float64] = total[factors.left.indptr[1:]] - total[factors.left.indptr[:-1]]
    return additions


@dataclass
class ScorerRegistry:
    """All that is served; models are saved scorers, each for the graphs whose schema it fits."""

    graphs: Mapping[str, GraphHandle | StoreHandle]
    limits: Limits
    models: dict[str, dict[str, Ready]] = field(default_factory=dict)
    folders: dict[str, Path] = field(default_factory=dict)
    """Where each model lies."""
    _ready: LRU[_Key, Ready] = field(init=False)
    _past: LRU[_Key, Ready] = field(init=False)
    """Those of earlier versions, each of which may hold a whole graph."""

    def __post_init__(self) -> None:
        self._ready = LRU(self.limits.scorers, self.limits.scorer_bytes, lambda ready: bytes_held(ready.scorer))
        self._past = LRU(_PAST, self.limits.scorer_bytes, lambda ready: bytes_held(ready.scorer))

    def source(self, name: str) -> GraphHandle | StoreHandle:
        """Return what is served under a name."""
        found = self.graphs.get(name)
        if found is None:
            raise RequestError(
                404, f"no graph {name[:200]!r} is served (there are {listed(self.graphs)})"
                f"{did_you_mean(name[:200], self.graphs)}",
            )  # fmt: skip
        return found

    def graph(self, name: str, as_of: int | None = None) -> GraphHandle:
        """Return a graph as it is now, or as it was at a version."""
        return self.source(name).at(as_of)

    def ready_at_once(self, graph: str, measure: str, metapath: str) -> Ready | None:
        """Return a measure that is fitted already to the newest version, or nothing."""
        key = graph, measure, metapath, None, None
        ready = self._ready.find(key)
        if ready is None or self.source(graph).is_newest(ready.served):
            return ready
        renewed = ready.renewed(self.graph(graph))
        return None if renewed is None else self._ready.put(key, renewed)

    def measure(
        self, graph: str, measure: str, metapath: str | None, node_type: str | None = None, as_of: int | None = None
    ) -> Ready:
        """Return a measure along a meta-path, or over the whole graph between nodes of a type; fit it on first use."""
        self.limits.check_text("the meta-path", metapath)

        def fit() -> Ready:
            source, hin = self.source(graph), self.graph(graph).hin
            path = None if metapath is None else self.limits.check_metapath(hin.metapath(metapath))
            scorer = choose_measure(hin.schema, metapath=path, measure=measure, node_type=node_type)
            is_followed = as_of is None and path is not None
            return _fitted(source.follow(scorer) if is_followed else source.at(as_of), scorer)

        is_light = as_of is None and node_type is None and metapath is not None
        ready = self.ready_at_once(graph, measure, metapath) if is_light and metapath is not None else None
        return ready or self._get((graph, measure, metapath, node_type, as_of), fit)

    def _get(self, key: _Key, fit: Callable[[], Ready]) -> Ready:
        """Return what is ready, unless the graph has changed since and no version was asked for."""
        source = self.source(key[0])
        if key[-1] is not None:
            return self._past.get(key, fit)
        return self._ready.get(key, fit, lambda ready: source.is_newest(ready.served))

    def combination(self, graph: str, parts: list[Part], as_of: int | None = None) -> Ready:
        """Return a weighted sum of measures over meta-paths of a graph."""
        served = self.graph(graph, as_of)
        if len(parts) > self.limits.steps:
            raise QueryError(f"a combination of {len(parts)} parts is given; this service adds at most "
                             f"{self.limits.steps}")  # fmt: skip
        for part in parts:
            self.limits.check_text("the meta-path", part.metapath)
            self.limits.check_metapath(served.hin.metapath(str(part.metapath)))
        return Ready(served, Combination(parts).fit(served.hin))

    def model(self, graph: str, name: str, as_of: int | None = None) -> Ready:
        """Return a saved model bound to a graph; it follows the graph where it can, and is else bound anew."""
        source, bound = self.source(graph), self.models.get(name)
        if bound is None:
            known = f"there are {listed(self.models)}" if self.models else "there are none"
            raise RequestError(
                404, f"no model {name[:200]!r} is served ({known}){did_you_mean(name[:200], self.models)}"
            )
        if source.name not in bound:
            raise RequestError(
                422, f"the model {name!r} does not fit the graph {graph!r}, whose schema is another; "
                f"it fits {listed(bound)}",
            )  # fmt: skip
        ready = bound[source.name]
        if as_of is None and source.is_newest(ready.served):
            return ready
        return self._get((graph, f"model {name}", None, None, as_of), lambda: self._bind(source, name, as_of))

    def _bind(self, source: GraphHandle | StoreHandle, name: str, as_of: int | None = None) -> Ready:
        known = self.models[name].get(source.name) if name in self.models else None
        if known is not None and known.scorer.identity is not None and as_of is None:
            return _fitted(source.follow(known.scorer), known.scorer)
        served = source.at(as_of)
        return Ready(served, load_scorer(self.folders[name], served.hin))

    def add_model(self, name: str, folder: Path, graphs: list[str] | None = None) -> None:
        """Bind a saved model to every graph that it fits, or to those given; refuse one that fits none."""
        read_saved(folder)
        bound, reasons = {}, []
        for served in map(self.graph, self.graphs if graphs is None else graphs):
            try:
                bound[served.name] = Ready(served, load_scorer(folder, served.hin))
            except NeuPathError as error:
                reasons.append(str(error))
        if not bound:
            raise QueryError(f"the model {name!r} fits no graph that is served: {listed(reasons, 1)}")
        self.models[name], self.folders[name] = bound, folder

    def drop_model(self, name: str) -> None:
        """Serve a model no longer, where it was."""
        self.models.pop(name, None)
        self.folders.pop(name, None)

    def describe_models(self) -> list[dict[str, object]]:
        return [
            {"name": name, "graphs": list(bound), **_describe(next(iter(bound.values())).scorer)}
            for name, bound in self.models.items()
        ]

    def warm_up(self) -> None:
        """Load the kernels and sort the names, so that the first request does not wait for them."""
        load_kernels()
        for served in map(self.graph, self.graphs):
            for names in served.names.values():
                if len(names.nodes) <= _PREPARED:
                    names.prepare()

    def known_scorers(self) -> int:
        return len(self._ready)

    def known_bytes(self) -> int:
        return self._ready.bytes

    def relieve(self) -> None:
        """Let go of the scorers that are ready, where memory is short; they are fitted anew when asked for."""
        self._ready.clear()
        self._past.clear()


def _fitted(served: GraphHandle, scorer: Scorer) -> Ready:
    return Ready(served, served.fit(scorer))


def bytes_held(scorer: Scorer) -> int:
    """Return how many bytes of arrays a fitted scorer holds besides its graph."""
    return bytes_of([value for name, value in vars(scorer).items() if name != "hin_"])


def _describe(scorer: Scorer) -> dict[str, object]:
    return {
        "measure": scorer.name,
        "exact": scorer.exact,
        "source_type": scorer.source_type,
        "target_type": scorer.target_type,
        "metapath": scorer.metapath_text,
        "explains": isinstance(scorer, Combination | PathMeasure) or hasattr(scorer, "attention_paths"),
    }
