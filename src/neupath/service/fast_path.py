"""The fast path: light searches are answered without a thread, and on their connection without the application.

A search is light where its number of additions is known beforehand and takes less time than handing it to a thread. The
answers are the same to the byte. `python benchmarks/service.py fast-path` measures both steps in turns with neither, on
IMDB movie-actor-movie, top 10. Medians on two cores, in requests per second:

    connections   neither   no thread   no thread, no application
              1     1,703       3,038                       6,006
              8     1,829       3,233                       6,361
             64     1,751       2,114                       4,495
"""

from functools import cached_property
from time import perf_counter
from typing import ClassVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from neupath.engine.hits import Hits, Search
from neupath.engine.products import Factors
from neupath.errors import NeuPathError
from neupath.live import LiveScorer
from neupath.service.connections import Connection
from neupath.service.graph_registry import FittedScorer, GraphRegistry
from neupath.service.handlers import to_json
from neupath.service.middleware import JSON_HEADER, SECURITY_HEADERS, GuardMiddleware
from neupath.service.schemas import RequestError, SearchOne, read_query

# ---- Without a thread ----------------------------------------------------------------------------
_LIGHT = 20_000  # additions that take less time than handing a query to a thread
_NEVER_INDEXED = 2000  # additions of a mean query below which the engine never stops to build an index for it


def search_light(registry: GraphRegistry, graph: str, request: SearchOne) -> str | None:
    """Return the JSON of a light search over a measure that is cached, or None for any other."""
    if request.metapath is None or request.k > registry.limits.k or request.has_filters or request.among:
        return None
    fitted = registry.cached_measure(graph, request.measure, request.metapath)
    if fitted is None:
        return None
    searcher = _searchers.get(fitted)
    if searcher is None:
        searcher = _searchers[fitted] = LightSearcher(fitted)
    row = searcher.queries.find_row(request.query)
    if row is None or not searcher.is_light(row):
        return None
    return to_json(searcher.top_k(row, request.k, request.include_query), fitted.handle.version)


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
        return Hits.of_rows(query, search, rows, scores)

    def is_light(self, row: int) -> bool:
        if isinstance(self.scorer, LiveScorer):
            additions = self.scorer.additions(row)
            return additions is not None and additions <= _LIGHT / 2  # the changes since come on top
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

# ---- Without the application ---------------------------------------------------------------------
SEARCH = "/api/graphs/{graph}/search"
_EXCLUDED_HEADERS = frozenset((b"content-length", b"transfer-encoding", b"upgrade", b"expect"))
_HEAD = b"".join([*(b"%s: %s\r\n" % header for header in (JSON_HEADER, *SECURITY_HEADERS)), b"content-length: "])


class FastConnection(Connection):
    """A connection that refuses clients and answers light searches itself, in the call that parses their headers."""

    guard: ClassVar[GuardMiddleware]
    registry: ClassVar[GraphRegistry]
    graphs: ClassVar[dict[str, str]]  # the graph of each path that is a search
    _is_answered = False

    def dispatch(self) -> None:
        answer = None if self._has_open_cycle() else self._answer()
        self._is_answered = answer is not None
        if answer is None:
            super().dispatch()
            return
        date = b"".join([b"%s: %s\r\n" % header for header in self.server_state.default_headers])
        self.transport.write(b"HTTP/1.1 200 OK\r\n%s%s" % (date, answer))

    def on_message_complete(self) -> None:
        if not self._is_answered:
            super().on_message_complete()
            return
        self._is_answered = self._in_body = False
        self.on_response_complete()

    def _answer(self) -> bytes | None:
        """Return all of the answer but its first line and date; None where the application has to answer."""
        path, _, query_string = self.url.partition(b"?")
        text_path, method = path.decode("ascii", "replace"), self.parser.get_method()
        self._check(text_path, method)
        graph = self.graphs.get(text_path)
        if graph is None or method != b"GET" or not self._is_plain():
            return None
        began = perf_counter()
        try:
            text = search_light(self.registry, graph, read_query(SearchOne, query_string))
        except NeuPathError:  # the application says it
            return None
        if text is None:
            return None
        body = text.encode()
        self.guard.metrics.count("GET", SEARCH, 200, perf_counter() - began)
        return b"%s%d\r\n\r\n%s" % (_HEAD, len(body), body)

    def _check(self, path: str, method: bytes) -> None:
        """Refuse a client that is not let in, before its request costs more; the guard checks the others again."""
        try:
            self.guard.check(path, self.headers)
        except RequestError as error:
            if method == b"HEAD":  # the application leaves the body out
                return
            self.guard.metrics.count(method.decode("ascii"), "other", error.status, 0.0)
            self.refuse(error)
            raise  # stops the parser

    def _is_plain(self) -> bool:
        """Whether this is a request of HTTP/1.1 without a body, for JSON, on a connection that stays open."""
        if self.parser.get_http_version() != "1.1" or not self.parser.should_keep_alive():
            return False
        for name, value in self.headers:
            if name in _EXCLUDED_HEADERS or (name == b"accept" and (b"csv" in value or b"arrow" in value)):
                return False
        return True


def fast_connections(guard: GuardMiddleware, registry: GraphRegistry) -> type[FastConnection]:
    """Return the class of the connections to a service."""
    connection = FastConnection.limited(registry.limits)
    connection.guard, connection.registry = guard, registry
    connection.graphs = {SEARCH.format(graph=name): name for name in registry.graphs}
    return connection
