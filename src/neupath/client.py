"""A client of the service: every endpoint as a method, and jobs as objects."""

import contextlib
import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from numbers import Integral
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from typing import Any, TypedDict, Unpack, overload
from urllib.parse import SplitResult, quote, urlencode, urlsplit

import numpy as np
import pyarrow as pa

from neupath._runtime.files import write_whole
from neupath.engine.hits import Hits
from neupath.errors import NeuPathError, QueryError
from neupath.graph.nodes import Id

# ---- HTTP ----------------------------------------------------------------------------------------
JSON = "application/json"


class ServiceError(NeuPathError):
    """An error that the service answered, with its HTTP status."""

    def __init__(self, status: int, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after
        """Seconds after which to try again, where the service says so."""


class HttpSession:
    """A connection that stays open between calls, and is opened again where it was closed."""

    def __init__(self, url: str, token: str | None, timeout: float) -> None:
        parts, port = _split(url)
        if token is not None and not (token and token.isascii() and token.isprintable()):
            raise QueryError("the token has characters that no header can hold; give that of the service")
        self._arguments = url, token, timeout
        self._root = parts.path.rstrip("/")
        self._headers = {} if token is None else {"authorization": f"Bearer {token}"}
        make = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        self._connection = make(str(parts.hostname), port, timeout=timeout)

    def another(self) -> "HttpSession":
        """Return another connection to the same service."""
        return HttpSession(*self._arguments)

    def close(self) -> None:
        """Close the connection; the next call opens it again."""
        self._connection.close()

    def read_object(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        """Return an answer that is a JSON object."""
        content: dict[str, Any] = self._read_json(method, path, body)
        return content

    def read_list(self, method: str, path: str, body: object = None) -> list[dict[str, Any]]:
        """Return an answer that is a list of JSON objects."""
        content: list[dict[str, Any]] = self._read_json(method, path, body)
        return content

    def _read_json(self, method: str, path: str, body: object) -> Any:
        content = self.read_bytes(method, path, body)
        try:
            return json.loads(content)
        except ValueError as error:
            raise ServiceError(
                502, f"what answers at {self._where} is no neupath service; check the address"
            ) from error

    def read_bytes(self, method: str, path: str, body: object = None, accept: str = JSON) -> bytes:
        """Return the bytes of an answer."""
        try:
            return self.open(method, path, body, accept).read()
        except (HTTPException, OSError) as error:
            self.close()
            raise ServiceError(503, f"the answer of {self._where} broke off ({error}); try again") from error

    def open(
        self, method: str, path: str, body: object = None, accept: str = JSON, more: dict[str, str] | None = None
    ) -> HTTPResponse:
        """Call the service and return its response, whose body is not read yet; raise its error."""
        self._close_if_dropped()
        was_open = self._connection.sock is not None
        try:
            return _checked(self._send(method, path, body, {"accept": accept, **(more or {})}))
        except (HTTPException, ConnectionError) as error:
            self.close()
            if not was_open or method == "POST":
                raise self._unreachable(error) from error
        except OSError as error:
            self.close()
            raise self._unreachable(error) from error
        return self.open(method, path, body, accept, more)  # the service had closed the connection meanwhile

    def _close_if_dropped(self) -> None:
        """Close a connection that the service has closed, because a POST that fails may not be sent twice."""
        if self._connection.sock is None:
            return
        with DefaultSelector() as selector:
            selector.register(self._connection.sock, EVENT_READ)
            if selector.select(0):  # between two answers, nothing is to be read but the end
                self.close()

    def _send(self, method: str, path: str, body: object, headers: dict[str, str]) -> HTTPResponse:
        content = None if body is None else json.dumps(body, default=_to_plain).encode()
        kind: dict[str, str] = {} if content is None else {"content-type": JSON}
        self._connection.request(method, self._root + path, content, self._headers | headers | kind)
        return self._connection.getresponse()

    @property
    def _where(self) -> str:
        return f"{self._connection.host}:{self._connection.port}"

    def _unreachable(self, error: Exception) -> ServiceError:
        return ServiceError(503, f"no service answers at {self._where} ({error}); is neupath serve running there?")


def _split(url: str) -> tuple[SplitResult, int | None]:
    """Return the parts of an address, and its port."""
    try:
        parts = urlsplit(url)
        if parts.scheme in ("http", "https") and parts.hostname:
            return parts, parts.port
    except ValueError:  # a port that is no number, or too large
        pass
    raise QueryError(f"{url!r} is no address of a service; give one such as http://127.0.0.1:8000")


def _to_plain(value: object) -> object:
    """Return a NumPy number or array as JSON has it."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise QueryError(f"{value!r} cannot be sent; give texts, numbers, or lists of them")


def _checked(response: HTTPResponse) -> HTTPResponse:
    if response.status < 400:
        return response
    body = response.read()
    try:
        message = str(json.loads(body)["error"])
    except (ValueError, KeyError, TypeError):
        message = f"the service answered {response.status} {response.reason}"
    wait = response.headers.get("retry-after", "")
    raise ServiceError(response.status, message, float(wait) if wait.isdecimal() else None)


# ---- Jobs ----------------------------------------------------------------------------------------
_PAUSE = 1.0
"""Seconds before a stream that broke off is opened again."""
_MOST_FAILURES = 30
"""Attempts in a row to reach a service that is away or busy."""


@dataclass(frozen=True)
class Event:
    """An event of a job: `state`, `progress` or `end`."""

    number: int
    name: str
    data: dict[str, Any]


class RemoteJob:
    """A job of a service."""

    def __init__(self, session: HttpSession, job_id: str) -> None:
        self._session = session
        self._path = f"/api/jobs/{quote(job_id, safe='')}"
        self.id = job_id

    def status(self) -> dict[str, Any]:
        """Return the job as `GET /api/jobs/{job}` shows it."""
        return self._session.read_object("GET", self._path)

    def events(self, after: int = 0) -> Iterator[Event]:
        """Yield events until the job ends, over a connection of its own that is opened again where it breaks."""
        last, failures = after, 0
        while True:
            try:
                for event in self._listen(last):
                    last, failures = event.number, 0
                    yield event
                    if event.name == "end":
                        return
            except ServiceError as error:
                if error.status != 503 or last == after or failures >= _MOST_FAILURES:
                    raise
            failures += 1
            time.sleep(_PAUSE)

    def _listen(self, after: int) -> Iterator[Event]:
        """Yield the events of one connection until it ends or breaks."""
        session = self._session.another()
        more = {"last-event-id": str(after)} if after else {}
        try:
            with contextlib.suppress(HTTPException, OSError):
                yield from read_events(
                    session.open("GET", f"{self._path}/events", accept="text/event-stream", more=more)
                )
        finally:
            session.close()

    def wait(self) -> dict[str, Any]:
        """Wait until the job ends, and return its status; raise an error if it failed or was cancelled."""
        end = next(event for event in self.events() if event.name == "end")
        if end.data["state"] != "done":
            because = f": {end.data['error']}" if end.data["error"] else ""
            raise ServiceError(409, f"the job {self.id} is {end.data['state']}{because}")
        return end.data

    def result(self) -> dict[str, Any]:
        """Wait for an infer or a train job, and return its result."""
        self.wait()
        return self._session.read_object("GET", f"{self._path}/result")

    def save(self, path: str | Path) -> Path:
        """Wait for the job, and write its result to a file: the Parquet file of a join, or JSON."""
        self.wait()
        content = self._session.read_bytes("GET", f"{self._path}/result")
        write_whole(Path(path), lambda temporary: temporary.write_bytes(content))
        return Path(path)

    def cancel(self) -> dict[str, Any]:
        """Cancel the job, and return its status; one that is over keeps its result."""
        return self._session.read_object("POST", f"{self._path}/cancel")

    def remove(self) -> dict[str, Any]:
        """Remove the job, which must be over, with its result; return its last status."""
        return self._session.read_object("DELETE", self._path)


def read_events(lines: Iterable[bytes]) -> Iterator[Event]:
    r"""Read server-sent events.

    >>> list(read_events([b"id: 2\n", b"event: progress\n", b'data: {"done": 1}\n', b"\n"]))
    [Event(number=2, name='progress', data={'done': 1})]
    """
    fields: dict[str, str] = {}
    for line in lines:
        text = line.decode().rstrip("\r\n")
        name, _, value = text.partition(": ")
        if text:
            fields[name] = value
        elif "data" in fields:
            yield Event(int(fields["id"]), fields["event"], json.loads(fields["data"]))
            fields = {}


# ---- Client --------------------------------------------------------------------------------------
Line = Sequence[Any] | Mapping[str, Any]


class ScorerOptions(TypedDict, total=False):
    """What similar means.

    Give `metapath`, with or without `measure`; or a `measure` over the whole graph, with `node_type` where nodes of
    several types match the query; or a saved `model`; or a `combination` of {"measure", "metapath", "weight"}.
    `as_of` is an earlier version of a store.
    """

    metapath: str
    measure: str
    node_type: str
    model: str
    combination: Sequence[Mapping[str, Any]]
    as_of: int


class SearchOptions(ScorerOptions, total=False):
    """How to search: what similar means, how many hits, and which targets."""

    k: int
    where: str | Sequence[str]
    among: Id | Sequence[Id]
    include_query: bool
    zeros: bool


class ExplainOptions(ScorerOptions, total=False):
    """What to explain: what similar means, and how many paths to list."""

    limit: int


class InferOptions(TypedDict, total=False):
    """How to infer: see `neupath.infer`; `suggest` pairs to label next, none of them in `skip`."""

    node_type: str
    max_length: int
    measures: Sequence[str]
    asymmetric: bool
    suggest: int
    skip: Sequence[tuple[Id, Id]]
    seed: int


_ARROW = "application/vnd.apache.arrow.stream"


class Client:
    """A client of one service, for one thread at a time.

    Parameters
    ----------
    url
        The address that `neupath serve` prints.
    token
        The token of the service, if it has one.
    timeout
        Seconds to wait for an answer.

    """

    def __init__(self, url: str = "http://127.0.0.1:8000", token: str | None = None, timeout: float = 60.0) -> None:
        self._session = HttpSession(url, token, timeout)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; the next call opens another."""
        self._session.close()

    def health(self) -> dict[str, Any]:
        return self._session.read_object("GET", "/api/health")

    def graphs(self) -> list[dict[str, Any]]:
        """List the graphs that are served."""
        return self._session.read_list("GET", "/api/graphs")

    def describe(self, graph: str) -> dict[str, Any]:
        """Return what `neupath info --json` prints of a graph."""
        return self._session.read_object("GET", _path(graph))

    def schema(self, graph: str) -> dict[str, Any]:
        """Return the types, the relations, and every step a meta-path can take."""
        return self._session.read_object("GET", _path(graph, "schema"))

    def nodes(self, graph: str, node_type: str, text: str = "", limit: int = 20, offset: int = 0) -> dict[str, Any]:
        """Look up nodes by a text that begins their name or id, is part of it, or is spelled like it."""
        parameters = {"node_type": node_type, "text": text, "limit": limit, "offset": offset}
        return self._session.read_object("GET", _path(graph, "nodes", parameters))

    def metapaths(
        self,
        graph: str,
        prefix: str | None = None,
        *,
        source_type: str | None = None,
        target_type: str | None = None,
        max_length: int = 4,
        limit: int = 20,
    ) -> dict[str, Any]:
        """Say what a meta-path typed so far means and what can follow, and suggest some from a node type."""
        parameters = {
            "prefix": prefix, "source_type": source_type, "target_type": target_type, "max_length": max_length,
            "limit": limit,
        }  # fmt: skip
        return self._session.read_object("GET", _path(graph, "metapaths", parameters))

    def measures(self) -> list[dict[str, Any]]:
        return self._session.read_list("GET", "/api/measures")

    def models(self) -> list[dict[str, Any]]:
        return self._session.read_list("GET", "/api/models")

    @overload
    def search(  # type: ignore[overload-overlap]  # a text is a sequence of texts
        self, graph: str, query: Id, **options: Unpack[SearchOptions]
    ) -> Hits: ...
    @overload
    def search(self, graph: str, query: Sequence[Id], **options: Unpack[SearchOptions]) -> list[Hits]: ...
    def search(self, graph: str, query: Id | Sequence[Id], **options: Unpack[SearchOptions]) -> Hits | list[Hits]:
        """Find the nodes most similar to one, or to each of a list.

        Parameters
        ----------
        graph
            The name it is served by.
        query
            An id or a name, or a list of them.
        metapath, measure, node_type, model, combination, as_of
            What similar means: see `ScorerOptions`.
        k
            How many hits; 10 unless given.
        where
            Conditions on targets, such as "year >= 2000".
        among
            Rank only these targets.
        include_query
            Rank the query itself, too.
        zeros
            Fill up with targets of score 0.

        """
        answer = self._session.read_list("POST", _path(graph, "search"), _search_body(query, options))
        hits = [_to_hits(content) for content in answer]
        return hits[0] if _is_one(query) else hits

    def search_table(self, graph: str, query: Id | Sequence[Id], **options: Unpack[SearchOptions]) -> pa.Table:
        """Search as `search` does, and return one Arrow table: query, rank, id, name, score."""
        body = self._session.read_bytes("POST", _path(graph, "search"), _search_body(query, options), _ARROW)
        with pa.ipc.open_stream(body) as stream:
            return stream.read_all()

    def explain(self, graph: str, query: Id, target: Id, **options: Unpack[ExplainOptions]) -> dict[str, Any]:
        """Return the paths behind one score; `limit` says how many are listed, 10 unless given."""
        parameters = {"query": query, "target": target, **options}
        if "combination" in options:
            return self._session.read_object("POST", _path(graph, "explain"), parameters)
        return self._session.read_object("GET", _path(graph, "explain", parameters))

    def update(
        self,
        graph: str,
        add_edges: Iterable[Line] = (),
        remove_edges: Iterable[Line] = (),
        add_nodes: Iterable[Line] = (),
        remove_nodes: Iterable[Line] = (),
    ) -> int:
        """Update a store, all or nothing, and return the new version, which is then on disk.

        Edges are (relation, source, target), with a weight after it to add one; nodes are (node_type, id), with a name
        after it to add one that has any. Each may be an object as the service takes it, for attributes.
        """
        edge, node = ("relation", "source", "target", "weight"), ("node_type", "id", "name")
        given = {"add_edges": (add_edges, edge), "remove_edges": (remove_edges, edge[:3])}
        given |= {"add_nodes": (add_nodes, node), "remove_nodes": (remove_nodes, node[:2])}
        body = {name: [_to_line(line, words) for line in lines] for name, (lines, words) in given.items()}
        return int(self._session.read_object("POST", _path(graph, "updates"), body)["version"])

    def infer(self, graph: str, pairs: Iterable[Sequence[Any]], **options: Unpack[InferOptions]) -> dict[str, Any]:
        """Infer meta-paths from labelled pairs: (query, target, score), or (query, target) for similar ones."""
        return self._session.read_object("POST", _path(graph, "infer"), {"pairs": _to_objects(pairs), **options})

    def start(self, kind: str, graph: str, **options: Any) -> RemoteJob:
        """Start a job.

        Parameters
        ----------
        kind
            infer, join or train.
        graph
            The name it is served by.
        options
            The other fields of `POST /api/jobs`: for infer `pairs` and those of `infer`; for join `metapath` and
            `measure`, or `model`, `k` and `min_score`; for train `architecture`, `metapath` and `measure`, or `pairs`,
            `protocol`, `layers`, `paths`, `dim`, `epochs`, `learning_rate` and `seed`.

        """
        body = {"kind": kind, "graph": graph, **options}
        if body.get("pairs") is not None:
            body["pairs"] = _to_objects(body["pairs"])
        return self.job(self._session.read_object("POST", "/api/jobs", body)["id"])

    def jobs(self) -> list[dict[str, Any]]:
        """List the jobs that wait, run, or are over."""
        return self._session.read_list("GET", "/api/jobs")

    def job(self, job_id: str) -> RemoteJob:
        """Return a job that was started before."""
        return RemoteJob(self._session, job_id)


def _path(graph: str, endpoint: str = "", parameters: Mapping[str, Any] | None = None) -> str:
    """Return the path of a call, with its query string.

    >>> _path("my graph", "nodes", {"node_type": "author", "text": None, "limit": 2})
    '/api/graphs/my%20graph/nodes?node_type=author&limit=2'
    """
    given = {name: value for name, value in (parameters or {}).items() if value is not None}
    texts = {name: str(value).lower() if isinstance(value, bool) else value for name, value in given.items()}
    path = f"/api/graphs/{quote(graph, safe='')}" + (f"/{endpoint}" if endpoint else "")
    return f"{path}?{urlencode(texts)}" if texts else path


def _search_body(query: Id | Sequence[Id], options: SearchOptions) -> dict[str, Any]:
    alone = {name: [options[name]] for name in ("where", "among") if isinstance(options.get(name), str)}
    return {"queries": [query] if _is_one(query) else list(query), **options, **alone}  # type: ignore[arg-type]


def _is_one(query: Id | Sequence[Id]) -> bool:
    return isinstance(query, str | Integral)


def _to_line(line: Line, words: Sequence[str]) -> dict[str, Any]:
    """Return a node or an edge as the service reads it.

    >>> _to_line(("author", "Mike"), ("node_type", "id", "name"))
    {'node_type': 'author', 'id': 'Mike'}
    """
    if isinstance(line, Mapping):
        return dict(line)
    least = 3 if "source" in words else 2
    if isinstance(line, str) or not least <= len(line) <= len(words):
        raise QueryError(f"{line!r} is no line of an update; give ({', '.join(words)})")
    return dict(zip(words, line, strict=False))


def _to_objects(pairs: Iterable[Sequence[Any]]) -> list[dict[str, Any]]:
    return [_to_object(pair) for pair in pairs]


def _to_object(pair: Sequence[Any]) -> dict[str, Any]:
    """Return a pair as the service reads it.

    >>> _to_object(("Mike", "Bob", 1.0))
    {'query': 'Mike', 'target': 'Bob', 'score': 1.0}
    """
    if isinstance(pair, str) or not 2 <= len(pair) <= 3:
        raise QueryError(f"{pair!r} is no labelled pair; give (query, target, score), or (query, target)")
    return dict(zip(("query", "target", "score"), pair, strict=False))


def _to_hits(content: dict[str, Any]) -> Hits:
    ids, names, scores = (tuple(hit[key] for hit in content["hits"]) for key in ("id", "name", "score"))
    return Hits(content["query"], content["metapath"], content["measure"], content["exact"], ids, names, scores)
