"""Client: every call of a service as a method."""

from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any, overload
from urllib.parse import quote, urlencode

import pyarrow as pa

from neupath.client.calls import Calls
from neupath.client.jobs import RemoteJob
from neupath.errors import QueryError
from neupath.nodes import Id
from neupath.search import Hits

Line = Sequence[Any] | Mapping[str, Any]
_ARROW = "application/vnd.apache.arrow.stream"


class Client:
    """Calls one service; one thread at a time may use it."""

    def __init__(self, url: str = "http://127.0.0.1:8000", token: str | None = None, timeout: float = 60.0) -> None:
        self._calls = Calls(url, token, timeout)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; the next call opens another."""
        self._calls.close()

    def health(self) -> dict[str, Any]:
        return self._calls.read_object("GET", "/api/health")

    def graphs(self) -> list[dict[str, Any]]:
        """List the graphs that are served."""
        return self._calls.read_list("GET", "/api/graphs")

    def describe(self, graph: str) -> dict[str, Any]:
        """Return what `neupath info --json` prints of a graph."""
        return self._calls.read_object("GET", _path(graph))

    def schema(self, graph: str) -> dict[str, Any]:
        """Return the types, the relations, and every step a meta-path can take."""
        return self._calls.read_object("GET", _path(graph, "schema"))

    def nodes(self, graph: str, node_type: str, text: str = "", limit: int = 20, offset: int = 0) -> dict[str, Any]:
        """Look up nodes by what they begin with, hold, or are spelled like."""
        asked = {"type": node_type, "q": text, "limit": limit, "offset": offset}
        return self._calls.read_object("GET", _path(graph, "nodes", asked))

    def metapaths(
        self, graph: str, prefix: str | None = None, source: str | None = None, target: str | None = None, **more: int
    ) -> dict[str, Any]:
        """Say what a meta-path typed so far means and what can follow, and suggest some from a type."""
        asked = {"prefix": prefix, "from": source, "to": target, **more}
        return self._calls.read_object("GET", _path(graph, "metapaths", asked))

    def measures(self) -> list[dict[str, Any]]:
        return self._calls.read_list("GET", "/api/measures")

    def models(self) -> list[dict[str, Any]]:
        return self._calls.read_list("GET", "/api/models")

    @overload
    def search(self, graph: str, query: Id, **options: Any) -> Hits: ...
    @overload
    def search(self, graph: str, query: Sequence[Id], **options: Any) -> list[Hits]: ...
    def search(self, graph: str, query: Id | Sequence[Id], **options: Any) -> Hits | list[Hits]:
        """Find the nodes most similar to one, or to each of a list.

        Options: `metapath` and `measure`, `measure` and `type`, `model`, or `combination`; `k`, `where`,
        `among`, `include_query`, `zeros`; `as_of`, an earlier version of a store.
        """
        found = self._calls.read_list("POST", _path(graph, "search"), _search_body(query, options))
        hits = [_to_hits(content) for content in found]
        return hits[0] if _is_one(query) else hits

    def search_table(self, graph: str, query: Id | Sequence[Id], **options: Any) -> pa.Table:
        """Find the nodes most similar to each query, as one Arrow table: query, rank, id, name, score."""
        body = self._calls.read_bytes("POST", _path(graph, "search"), _search_body(query, options), _ARROW)
        with pa.ipc.open_stream(body) as stream:
            return stream.read_all()

    def explain(self, graph: str, query: Id, target: Id, **options: Any) -> dict[str, Any]:
        """Return the paths behind one score.

        Options: `metapath` and `measure`, `model`, or `combination`; `limit`; `as_of`.
        """
        asked = {"query": query, "target": target, **options}
        if "combination" in options:
            return self._calls.read_object("POST", _path(graph, "explain"), asked)
        return self._calls.read_object("GET", _path(graph, "explain", asked))

    def update(
        self,
        graph: str,
        add_edges: Iterable[Line] = (),
        remove_edges: Iterable[Line] = (),
        add_nodes: Iterable[Line] = (),
        remove_nodes: Iterable[Line] = (),
    ) -> int:
        """Change a store, all or nothing, and return the new version, which is on disk then.

        Edges are (relation, source, target), with a weight after it to add one; nodes are (type, id), with a name after
        it to add one that has any. Each may be an object as the service takes it, for attributes.
        """
        edge, node = ("relation", "source", "target", "weight"), ("type", "id", "name")
        given = {"add_edges": (add_edges, edge), "remove_edges": (remove_edges, edge[:3])}
        given |= {"add_nodes": (add_nodes, node), "remove_nodes": (remove_nodes, node[:2])}
        body = {name: [_to_line(line, words) for line in lines] for name, (lines, words) in given.items()}
        return int(self._calls.read_object("POST", _path(graph, "edges"), body)["version"])

    def infer(self, graph: str, pairs: Iterable[Sequence[Any]], **options: Any) -> dict[str, Any]:
        """Find what labelled pairs mean: (query, target, score), or (query, target) for similar ones."""
        return self._calls.read_object("POST", _path(graph, "infer"), {"pairs": _to_objects(pairs), **options})

    def start(self, kind: str, graph: str, **options: Any) -> RemoteJob:
        """Start a job: infer, join or train; its options are those of POST /api/jobs."""
        asked = {"kind": kind, "graph": graph, **options}
        if asked.get("pairs") is not None:
            asked["pairs"] = _to_objects(asked["pairs"])
        return self.job(self._calls.read_object("POST", "/api/jobs", asked)["id"])

    def jobs(self) -> list[dict[str, Any]]:
        """List the jobs that wait, run, or are over."""
        return self._calls.read_list("GET", "/api/jobs")

    def job(self, job_id: str) -> RemoteJob:
        """Return a job that was started before."""
        return RemoteJob(self._calls, job_id)


def _path(graph: str, what: str = "", asked: dict[str, Any] | None = None) -> str:
    """Return the path of a call, with its query string.

    >>> _path("my graph", "nodes", {"type": "author", "q": None, "limit": 2})
    '/api/graphs/my%20graph/nodes?type=author&limit=2'
    """
    words = {name: _to_word(value) for name, value in (asked or {}).items() if value is not None}
    path = f"/api/graphs/{quote(graph, safe='')}" + (f"/{what}" if what else "")
    return f"{path}?{urlencode(words)}" if words else path


def _to_word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _search_body(query: Id | Sequence[Id], options: dict[str, Any]) -> dict[str, Any]:
    alone = {name: [options[name]] for name in ("where", "among") if isinstance(options.get(name), str)}
    return {"queries": [query] if _is_one(query) else list(query), **options, **alone}  # type: ignore[arg-type]


def _is_one(query: Id | Sequence[Id]) -> bool:
    return isinstance(query, str | Integral)


def _to_line(line: Line, words: Sequence[str]) -> dict[str, Any]:
    """Return a node or an edge as the service reads it.

    >>> _to_line(("author", "Mike"), ("type", "id", "name"))
    {'type': 'author', 'id': 'Mike'}
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
