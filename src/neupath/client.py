"""A client of the service: every endpoint as a method, and jobs as objects."""

import contextlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from inspect import Parameter, Signature, signature
from numbers import Integral
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from typing import Any, Literal, TypeVar, overload
from urllib.parse import SplitResult, quote, urlencode, urlsplit

import numpy as np
import pyarrow as pa

from neupath._runtime.files import write_whole
from neupath.engine.hits import Hits, QuerySet
from neupath.errors import NeuPathError, QueryError
from neupath.graph.nodes import HasId, Id, NodeRef, id_of
from neupath.requests import Counterfactual, Explain, Infer, Question, Relate, Search, TestedSearch, options_of

# ---- HTTP ----------------------------------------------------------------------------------------
JSON = "application/json"


class ServiceError(NeuPathError):
    """An error that the service answered, with its HTTP status."""

    def __init__(self, status: int, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status, self.retry_after = status, retry_after  # seconds after which to try again, if the service says so


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
        return HttpSession(*self._arguments)

    def close(self) -> None:
        self._connection.close()

    def read_object(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        return dict(self._read_json(method, path, body))

    def read_list(self, method: str, path: str, body: object = None) -> list[dict[str, Any]]:
        return list(self._read_json(method, path, body))

    def _read_json(self, method: str, path: str, body: object) -> Any:
        content = self.read_bytes(method, path, body)
        try:
            return json.loads(content)
        except ValueError as error:
            message = f"what answers at {self._where} is no neupath service; check the address"
            raise ServiceError(502, message) from error

    def read_bytes(self, method: str, path: str, body: object = None, accept: str = JSON) -> bytes:
        try:
            return self.open(method, path, body, accept).read()
        except (HTTPException, OSError) as error:
            self.close()
            raise ServiceError(503, f"the answer of {self._where} broke off ({error}); try again") from error

    def open(
        self, method: str, path: str, body: object = None, accept: str = JSON, more: dict[str, str] | None = None
    ) -> HTTPResponse:
        """Return a response whose body is not read yet; raise the service's error."""
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
    try:
        parts = urlsplit(url)
        if parts.scheme in ("http", "https") and parts.hostname:
            return parts, parts.port
    except ValueError:  # a port that is no number, or too large
        pass
    raise QueryError(f"{url!r} is no address of a service; give one such as http://127.0.0.1:8000")


def _to_plain(value: object) -> object:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, HasId):
        return value.id
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
_PAUSE = 1.0  # seconds before a stream that broke off is opened again
_MOST_FAILURES = 30  # attempts in a row to reach a service that is away or busy


@dataclass(frozen=True)
class Event:
    """An event of a job; its name is state, progress or end."""

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
        """Return what `GET /api/jobs/{job}` answers."""
        return self._session.read_object("GET", self._path)

    def events(self, after: int = 0) -> Iterator[Event]:
        """Yield events until the job ends, over a separate connection, which is opened again if it breaks."""
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
        more = {"last-event-id": str(after)} if after else {}
        with contextlib.closing(self._session.another()) as session, contextlib.suppress(HTTPException, OSError):
            yield from read_events(session.open("GET", f"{self._path}/events", accept="text/event-stream", more=more))

    def wait(self) -> dict[str, Any]:
        """Wait until the job ends, and return its status; raise an error if it failed or was cancelled."""
        end = next(event for event in self.events() if event.name == "end")
        if end.data["state"] != "done":
            because = f": {end.data['error']}" if end.data["error"] else ""
            raise ServiceError(409, f"the job {self.id} is {end.data['state']}{because}")
        return end.data

    def result(self) -> dict[str, Any]:
        """Wait for a job other than a join, and return its result."""
        self.wait()
        return self._session.read_object("GET", f"{self._path}/result")

    def save(self, path: str | Path) -> Path:
        """Wait for the job, and write its result to a file: the Parquet file of a join, or JSON."""
        self.wait()
        content = self._session.read_bytes("GET", f"{self._path}/result")
        write_whole(Path(path), lambda temporary: temporary.write_bytes(content))
        return Path(path)

    def cancel(self) -> dict[str, Any]:
        """Cancel the job, and return its status; a finished job keeps its result."""
        return self._session.read_object("POST", f"{self._path}/cancel")

    def remove(self) -> dict[str, Any]:
        """Remove a finished job with its result; return its last status."""
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


F = TypeVar("F", bound=Callable[..., Any])


def _takes(kind: type[Question]) -> Callable[[F], F]:
    """Show the fields of a question as the options of a method, to `help` and to the tab key."""

    def make(method: F) -> F:
        own = [each for each in signature(method).parameters.values() if each.kind is not Parameter.VAR_KEYWORD]
        names = {each.name for each in own}
        options = [
            Parameter(each.name, Parameter.KEYWORD_ONLY, default=each.default, annotation=each.type)
            for each, _ in options_of(kind, "http")
            if each.name not in names
        ]
        method.__signature__ = Signature([*own, *options])  # type: ignore[attr-defined]
        return method

    return make


_ARROW = "application/vnd.apache.arrow.stream"


class Client:
    """A client of one service, for one thread at a time.

    Parameters
    ----------
    url : the address that `neupath serve` prints.
    token : the token of the service, if it has one.
    timeout : seconds to wait for an answer.
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
        return self._session.read_list("GET", "/api/graphs")

    def describe(self, graph: str) -> dict[str, Any]:
        """Return what `neupath info --json` prints of a graph."""
        return self._session.read_object("GET", _path(graph))

    def schema(self, graph: str) -> dict[str, Any]:
        """Return the node types, the relations, and every step that a meta-path can take."""
        return self._session.read_object("GET", _path(graph, "schema"))

    def nodes(
        self, graph: str, node_type: str | None = None, text: str = "", limit: int = 20, offset: int = 0
    ) -> dict[str, Any]:
        """Look up nodes of a type, or of all, by a text that is their name or id, part of it, or spelled like it."""
        parameters = {"node_type": node_type, "text": text, "limit": limit, "offset": offset}
        return self._session.read_object("GET", _path(graph, "nodes", parameters))

    def metapaths(
        self, graph: str, prefix: str | None = None, *, source_type: str | None = None, target_type: str | None = None,
        max_length: int = 4, limit: int = 20,
    ) -> dict[str, Any]:  # fmt: skip
        """Complete the beginning of a meta-path, and suggest meta-paths between two node types."""
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
    def search(self, graph: str, query: NodeRef, **options: Any) -> Hits: ...
    @overload
    def search(self, graph: str, query: Mapping[Any, float], **options: Any) -> Hits: ...
    @overload
    def search(self, graph: str, query: Sequence[NodeRef], *, together: Literal[True], **options: Any) -> Hits: ...
    @overload
    def search(self, graph: str, query: Sequence[NodeRef], **options: Any) -> list[Hits]: ...
    @_takes(Search)
    def search(
        self, graph: str, query: NodeRef | Sequence[NodeRef] | Mapping[Any, float], *, together: bool = False,
        **options: Any,
    ) -> Hits | list[Hits]:  # fmt: skip
        """Find the nodes most similar to one, to each of a list, or to a set.

        Parameters
        ----------
        graph
            Its name in the service.
        query
            An id or a name, or a list of them. A dictionary of nodes with weights is a set: one query.
        together
            Whether a list is a set, too: that of its mean.
        options
            The fields of `neupath.requests.Search`, such as `metapath`, `measure`, `k`, `where` and `half_life`; or a
            `combination` of {"measure", "metapath", "weight"}.

        """
        body = _search_body(query, options) | ({"together": True} if together else {})
        results = self._session.read_list("POST", _path(graph, "search"), body)
        hits = [_to_hits(result) for result in results]
        return hits[0] if _is_one(query) or together else hits

    @_takes(Search)
    def search_table(self, graph: str, query: NodeRef | Sequence[NodeRef], **options: Any) -> pa.Table:
        """Search as `search` does, and return one Arrow table: query, rank, id, name, score."""
        body = self._session.read_bytes("POST", _path(graph, "search"), _search_body(query, options), _ARROW)
        with pa.ipc.open_stream(body) as stream:
            return stream.read_all()

    @_takes(Explain)
    def explain(
        self, graph: str, query: NodeRef | Sequence[NodeRef] | Mapping[Any, float], target: NodeRef, **options: Any
    ) -> dict[str, Any]:
        """Return the groups and paths behind one score, by default at most 10 (`limit`), and why it is no hit.

        A list of nodes, or a dictionary of nodes with weights, is a set, whose score is split over its members, too.
        """
        parameters: dict[str, Any] = {"target": id_of(target), **options}
        if isinstance(query, str | int | Integral | HasId):
            parameters["query"] = id_of(query)
        else:
            parameters |= _set_body(query)
        if "combination" in options or "queries" in parameters:
            grouped = {"by": str(options["by"])} if "by" in options else {}
            return self._session.read_object("POST", _path(graph, "explain"), parameters | grouped)
        return self._session.read_object("GET", _path(graph, "explain", parameters))

    @_takes(Relate)
    def relate(self, graph: str, query: NodeRef, target: NodeRef, **options: Any) -> dict[str, Any]:
        """Return the meta-paths that join two nodes, by default at most 20 (`limit`) of up to 4 steps (`max_steps`)."""
        return self._session.read_object(
            "GET", _path(graph, "relate", {"query": id_of(query), "target": id_of(target), **options})
        )

    def update(
        self, graph: str, add_edges: Iterable[Line] = (), remove_edges: Iterable[Line] = (),
        add_nodes: Iterable[Line] = (), remove_nodes: Iterable[Line] = (),
    ) -> int:  # fmt: skip
        """Update a store, all or nothing, and return the new version, which is then on disk.

        An edge is (relation, source, target), and may have a weight and a mapping of attributes if it is added. A node
        is (node_type, id), and may have a name if it is added. Each may also be an object as the service reads it.
        """
        edge, node = ("relation", "source", "target", "weight", "attributes"), ("node_type", "id", "name")
        body = {
            "add_edges": [_to_line(line, edge) for line in add_edges],
            "remove_edges": [_to_line(line, edge[:3]) for line in remove_edges],
            "add_nodes": [_to_line(line, node) for line in add_nodes],
            "remove_nodes": [_to_line(line, node[:2]) for line in remove_nodes],
        }
        return int(self._session.read_object("POST", _path(graph, "updates"), body)["version"])

    @_takes(Infer)
    def infer(self, graph: str, pairs: Iterable[Sequence[Any] | Mapping[str, Any]], **options: Any) -> dict[str, Any]:
        """Infer meta-paths from labelled pairs: (query, target, score), or (query, target) for similar ones.

        A pair may also be a mapping with these keys, and query_type and target_type for ids that several types have.
        """
        return self._session.read_object("POST", _path(graph, "infer"), {"pairs": _to_pairs(pairs), **options})

    @_takes(Counterfactual)
    def what_if(self, graph: str, query: NodeRef, target: NodeRef, **options: Any) -> dict[str, Any]:
        """Return what `neupath whatif --json` prints; it runs as a job, and this waits for it."""
        return self.start("whatif", graph, query=query, target=target, **options).result()

    @_takes(TestedSearch)
    def significance(self, graph: str, queries: Sequence[Id], **options: Any) -> list[dict[str, Any]]:
        """Return what `neupath search --significance --json` prints of each query; it runs as a job."""
        return list(self.start("significance", graph, queries=list(queries), **options).result()["results"])

    def start(self, kind: str, graph: str, **options: Any) -> RemoteJob:
        """Start a job.

        Parameters
        ----------
        kind
            infer, join, train, whatif or significance.
        graph
            Its name in the service.
        options
            The fields of the question in `neupath.requests`: `Infer`, `Join`, `Train`, `Counterfactual` or
            `TestedSearch`.

        """
        body = {"kind": kind, "graph": graph, **options}
        if body.get("pairs") is not None:
            body["pairs"] = _to_pairs(body["pairs"])
        return self.job(self._session.read_object("POST", "/api/jobs", body)["id"])

    def jobs(self) -> list[dict[str, Any]]:
        return self._session.read_list("GET", "/api/jobs")

    def job(self, job_id: str) -> RemoteJob:
        """Return a job that is in the service already."""
        return RemoteJob(self._session, job_id)


def _path(graph: str, endpoint: str = "", parameters: Mapping[str, Any] | None = None) -> str:
    """Return the path of an endpoint, with its query string.

    >>> _path("my graph", "nodes", {"node_type": "author", "text": None, "limit": 2})
    '/api/graphs/my%20graph/nodes?node_type=author&limit=2'
    """
    texts = {
        name: str(value).lower() if isinstance(value, bool) else value
        for name, value in (parameters or {}).items()
        if value is not None
    }
    path = f"/api/graphs/{quote(graph, safe='')}" + (f"/{endpoint}" if endpoint else "")
    return f"{path}?{urlencode(texts, doseq=True)}" if texts else path


_LISTS = [each.name for each, _ in options_of(Search, "http") if each.default == ()]


def _search_body(query: NodeRef | Sequence[NodeRef] | Mapping[Any, float], options: dict[str, Any]) -> dict[str, Any]:
    alone = {name: [options[name]] for name in _LISTS if isinstance(options.get(name), str)}
    return {**_set_body(query), **options, **alone}


def _set_body(query: NodeRef | Sequence[NodeRef] | Mapping[Any, float]) -> dict[str, Any]:
    if isinstance(query, Mapping):
        return {"queries": list(query), "weights": list(query.values())}
    return {"queries": [query] if isinstance(query, str | int | Integral | HasId) else list(query)}


def _is_one(query: NodeRef | Sequence[NodeRef] | Mapping[Any, float]) -> bool:
    return isinstance(query, str | Integral | Mapping | HasId)


def _to_line(line: Line, names: Sequence[str]) -> dict[str, Any]:
    """Return a node or an edge of an update as the service reads it.

    >>> _to_line(("author", "Mike"), ("node_type", "id", "name"))
    {'node_type': 'author', 'id': 'Mike'}
    """
    if isinstance(line, Mapping):
        return dict(line)
    least = 3 if "source" in names else 2
    if isinstance(line, str) or not least <= len(line) <= len(names):
        raise QueryError(f"{line!r} is no line of an update; give ({', '.join(names)})")
    return dict(zip(names, line, strict=False))


def _to_pairs(pairs: Iterable[Sequence[Any] | Mapping[str, Any]]) -> list[dict[str, Any]]:
    objects = []
    for pair in pairs:
        if isinstance(pair, Mapping):  # which may also have a query_type and a target_type
            objects.append(dict(pair))
            continue
        if isinstance(pair, str) or not 2 <= len(pair) <= 3:
            raise QueryError(f"{pair!r} is no labelled pair; give (query, target, score), or (query, target)")
        objects.append(dict(zip(("query", "target", "score"), pair, strict=False)))
    return objects


def _to_hits(result: dict[str, Any]) -> Hits:
    ids, names, scores = (tuple(hit[key] for hit in result["hits"]) for key in ("id", "name", "score"))
    query = result["query"]
    if isinstance(query, list):
        query = QuerySet(tuple(node["id"] for node in query), tuple(node["weight"] for node in query))
    return Hits(query, result["metapath"], result["measure"], result["exact"], ids, names, scores)
