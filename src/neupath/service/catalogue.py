"""Catalogue: the graphs and models that are served, and the scorers that are ready to answer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from neupath.errors import NeuPathError, QueryError, did_you_mean, listed
from neupath.following import Learned
from neupath.halfpath import Factors
from neupath.kept import bytes_of
from neupath.live.scorer import LiveScorer
from neupath.measures import Combination, Part, PathMeasure, graph_measure_named, measure_named
from neupath.saved import load_scorer
from neupath.scorer import Scorer, read_saved
from neupath.search import Hits
from neupath.service.limits import Limits
from neupath.service.names import Names
from neupath.service.refusals import Refusal
from neupath.service.served import Served, ServedStore
from neupath.service.shelf import Shelf
from neupath.service.warming import load_kernels

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

    served: Served
    scorer: Scorer

    @cached_property
    def names(self) -> Names:
        return self.served.names[self.scorer.source_type]

    @cached_property
    def _targets(self) -> Names:
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

    def renewed(self, served: Served) -> "Ready | None":
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
class Catalogue:
    """All that is served; models are saved scorers, each for the graphs whose schema it fits."""

    graphs: Mapping[str, Served | ServedStore]
    limits: Limits
    models: dict[str, dict[str, Ready]] = field(default_factory=dict)
    folders: dict[str, Path] = field(default_factory=dict)
    """Where each model lies."""
    _ready: Shelf[_Key, Ready] = field(init=False)
    _past: Shelf[_Key, Ready] = field(init=False)
    """Those of earlier versions, each of which may hold a whole graph."""

    def __post_init__(self) -> None:
        self._ready = Shelf(self.limits.scorers, self.limits.scorer_bytes, lambda ready: bytes_held(ready.scorer))
        self._past = Shelf(_PAST, self.limits.scorer_bytes, lambda ready: bytes_held(ready.scorer))

    def source(self, name: str) -> Served | ServedStore:
        """Return what is served under a name."""
        found = self.graphs.get(name)
        if found is None:
            raise Refusal(
                404, f"no graph {name[:200]!r} is served (there are {listed(self.graphs)})"
                f"{did_you_mean(name[:200], self.graphs)}",
            )  # fmt: skip
        return found

    def graph(self, name: str, as_of: int | None = None) -> Served:
        """Return a graph as it is now, or as it was at a version."""
        return self.source(name).at(as_of)

    def ready_at_once(self, graph: str, measure: str, metapath: str) -> Ready | None:
        """Return a measure that is fitted already to the newest version, or nothing."""
        key = graph, measure, metapath, None, None
        ready = self._ready.find(key)
        if ready is None or self.source(graph).is_newest(ready.served):
            return ready
        renewed = ready.renewed(self.graph(graph))
        return None if renewed is None else self._ready.keep(key, renewed)

    def measure(self, graph: str, measure: str, metapath: str, as_of: int | None = None) -> Ready:
        """Return a measure over a meta-path of a graph, fitting it the first time."""
        self.limits.check_text("the meta-path", metapath)

        def fit() -> Ready:
            source = self.source(graph)
            path = self.limits.check_metapath(self.graph(graph).hin.metapath(metapath))
            scorer = measure_named(measure, path)
            return _fitted(source.follow(scorer) if as_of is None else source.at(as_of), scorer)

        ready = self.ready_at_once(graph, measure, metapath) if as_of is None else None
        return ready or self._get((graph, measure, metapath, None, as_of), fit)

    def graph_measure(self, graph: str, measure: str, node_type: str, as_of: int | None = None) -> Ready:
        """Return a measure over the whole of a graph, between nodes of a type, fitting it the first time."""
        return self._get(
            (graph, measure, None, node_type, as_of),
            lambda: _fitted(self.graph(graph, as_of), graph_measure_named(measure, node_type)),
        )

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
            raise Refusal(404, f"no model {name[:200]!r} is served ({known}){did_you_mean(name[:200], self.models)}")
        if source.name not in bound:
            raise Refusal(
                422, f"the model {name!r} does not fit the graph {graph!r}, whose schema is another; "
                f"it fits {listed(bound)}",
            )  # fmt: skip
        ready = bound[source.name]
        if as_of is None and source.is_newest(ready.served):
            return ready
        return self._get((graph, f"model {name}", None, None, as_of), lambda: self._bind(source, name, as_of))

    def _bind(self, source: Served | ServedStore, name: str, as_of: int | None = None) -> Ready:
        known = self.models[name].get(source.name) if name in self.models else None
        if known is not None and isinstance(known.scorer, Learned) and as_of is None:
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


def _fitted(served: Served, scorer: Scorer) -> Ready:
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
        "explains": isinstance(scorer, Combination | PathMeasure) or hasattr(scorer, "looked_at"),
    }
