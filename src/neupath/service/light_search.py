"""Light searches, which are answered on the event loop: without a thread, and before the application's routes.

A search is light where its number of additions is known beforehand and takes less time than handing it to a thread. The
answers are the same to the byte. `python benchmarks/service.py light` measures both steps.
"""

from functools import cached_property
from operator import itemgetter
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from starlette.types import ASGIApp, Receive, Scope, Send

from neupath import requests
from neupath.engine.hits import Hits, Search, hits_of_rows
from neupath.engine.products import Factors
from neupath.errors import NeuPathError
from neupath.live import LiveScorer
from neupath.service.graph_registry import FittedScorer, GraphRegistry
from neupath.service.handlers import is_table, to_json
from neupath.service.middleware import JSON_HEADER
from neupath.service.schemas import SearchOne, read_query

_LIGHT = 20_000  # additions that take less time than handing a query to a thread
_NEVER_INDEXED = 2000  # additions of a mean query below which the engine never stops to build an index for it


def search_light(registry: GraphRegistry, graph: str, request: SearchOne) -> str | None:
    """Return the JSON of a light search over a measure that is cached, or None for any other."""
    path = request.one_metapath
    if path is None or request.k > registry.limits.k or not _is_plain(request):
        return None
    fitted = registry.cached_measure(graph, request.chosen_measure, path)
    if fitted is None:
        return None
    searcher = _searchers.get(fitted)
    if searcher is None:
        searcher = _searchers[fitted] = LightSearcher(fitted)
    row = searcher.queries.find_row(request.query)
    if row is None or not searcher.is_light(row):
        return None
    return to_json(searcher.top_k(row, request.k, request.include_query), fitted.handle.version)


_OF_LIGHT = ("query", "k", "metapath", "measure", "include_query")
_MORE = [each for each, _ in requests.options_of(requests.Search, "http") if each.name not in _OF_LIGHT]
_more_of = itemgetter(*(each.name for each in _MORE))
_NO_MORE: tuple[Any, ...] = tuple([] if each.default == () else each.default for each in _MORE)


def _is_plain(request: SearchOne) -> bool:
    """Whether a request is for the k best along a meta-path at the newest version, and no more."""
    return bool(_more_of(vars(request)) == _NO_MORE)


class LightSearcher:
    """Searches one query at a time, by the names of a graph that may grow."""

    def __init__(self, fitted: FittedScorer) -> None:
        self.scorer = scorer = fitted.scorer
        self.queries, self.targets = fitted.handle.names[scorer.source_type], fitted.handle.names[scorer.target_type]
        self._is_same_type = scorer.source_type == scorer.target_type
        self._described = scorer.metapath_text, scorer.name, scorer.exact, self.targets, scorer.target_type

    def top_k(self, row: int, k: int, include_query: bool) -> Hits:
        """Return what `Scorer.top_k` returns for the node at a row."""
        skips_query = self._is_same_type and not include_query
        rows, scores = self.scorer.rank_row(row, row if skips_query else -1, k)
        (query,) = self.queries.ids_at([row])
        search = Search(*self._described, eligible=len(self.targets.nodes) - skips_query, k=k)
        return hits_of_rows(query, search, rows, scores)

    def is_light(self, row: int) -> bool:
        if isinstance(self.scorer, LiveScorer):
            return self.scorer.additions(row) <= _LIGHT / 2  # the changes since come on top
        if self._additions is None or self._additions[row] > _LIGHT:
            return False
        factors: Factors = self.scorer.factors_  # type: ignore[attr-defined]
        return factors.work < _NEVER_INDEXED or factors.index is not None

    @cached_property
    def _additions(self) -> NDArray[np.float64] | None:
        """The exact number of additions of each query, shape (queries,); None where the scorer has no factors."""
        factors = getattr(self.scorer, "factors_", None)
        if not isinstance(factors, Factors):
            return None
        lengths = np.diff(factors.right.indptr)[factors.left.indices].astype(np.float64)
        total = np.concatenate([[0.0], np.cumsum(lengths)])
        additions: NDArray[np.float64] = total[factors.left.indptr[1:]] - total[factors.left.indptr[:-1]]
        return additions


_searchers: WeakKeyDictionary[FittedScorer, LightSearcher] = WeakKeyDictionary()

SEARCH = "/api/graphs/{graph}/search"


class LightSearchMiddleware:
    """Answers light searches for JSON, and leaves every other request, errors included, to the application."""

    def __init__(self, app: ASGIApp, registry: GraphRegistry, route: object) -> None:
        self._app, self._registry, self._route = app, registry, route
        self._graphs = {SEARCH.format(graph=name): name for name in registry.graphs}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        text = self._answer(scope)
        if text is None:
            await self._app(scope, receive, send)
            return
        scope["route"] = self._route  # which the metrics count
        body = text.encode()
        headers = [(b"content-length", b"%d" % len(body)), JSON_HEADER]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def _answer(self, scope: Scope) -> str | None:
        graph = self._graphs.get(scope["path"]) if scope["type"] == "http" and scope["method"] == "GET" else None
        if graph is None:
            return None
        for name, value in scope["headers"]:
            if name == b"accept" and is_table(value.decode("latin-1")):
                return None
        try:
            return search_light(self._registry, graph, read_query(SearchOne, scope["query_string"]))
        except NeuPathError:  # the application says it
            return None
