"""Searching: one query or many, as the same JSON that the command line prints, as Arrow, or as CSV."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import unquote_plus

import pyarrow as pa
import pyarrow.csv

from neupath.errors import QueryError, listed
from neupath.measures import GRAPH_MEASURES, Part
from neupath.metapath import enumerate_metapaths
from neupath.nodes import Id
from neupath.search import Hits
from neupath.service.catalogue import Catalogue, Ready
from neupath.service.requests import AnyMeaning, Meaning, Search, SearchMany, SearchOne

JSON, ARROW, CSV = "application/json", "application/vnd.apache.arrow.stream", "text/csv; charset=utf-8"
_LISTS = frozenset({"where", "among"})


def read_query_string(query_string: bytes) -> dict[str, str | list[str]]:
    """Read a query string; a word given twice is refused where only one makes sense.

    >>> read_query_string(b"query=Mike&k=3&where=year+%3E+2000")
    {'query': 'Mike', 'k': '3', 'where': ['year > 2000']}
    """
    found: dict[str, str | list[str]] = {}
    for part in query_string.decode("latin-1").split("&"):
        name, _, value = part.partition("=")
        if "%" in part or "+" in part:
            name, value = unquote_plus(name), unquote_plus(value)
        if not part:
            continue
        if name in _LISTS:
            found.setdefault(name, []).append(value)  # type: ignore[union-attr]
        elif name in found:
            raise QueryError(f"{name[:100]!r} is given twice; give it once")
        else:
            found[name] = value
    return found


def answer_at_once(catalogue: Catalogue, graph: str, asked: SearchOne) -> str | None:
    """Answer a light query over a measure that is ready, or nothing where it needs a thread."""
    if (
        asked.metapath is None
        or asked.type is not None
        or asked.k > catalogue.limits.k
        or asked.is_special
        or asked.among
    ):
        return None
    ready = catalogue.ready_at_once(graph, asked.measure, asked.metapath)
    row = None if ready is None else ready.names.row_at_once(asked.query)
    if ready is None or row is None or not ready.is_light(row):
        return None
    return to_json(ready.answer(row, asked.k, asked.include_query), ready.served.version)


@dataclass(frozen=True)
class Found:
    """The hits of each query, and the version of the graph that they are of, where it has versions."""

    hits: list[Hits]
    version: int | None


def search_one(catalogue: Catalogue, graph: str, asked: SearchOne) -> Found:
    """Find the hits of one query."""
    catalogue.limits.check_k(asked.k)
    return _search(ready_for(catalogue, graph, asked, [asked.query]), [asked.query], asked, asked.among)


def search_many(catalogue: Catalogue, graph: str, asked: SearchMany) -> Found:
    """Find the hits of many queries."""
    catalogue.limits.check_k(asked.k, len(asked.queries))
    return _search(ready_for(catalogue, graph, asked, asked.queries), asked.queries, asked, asked.among)


def _search(ready: Ready, queries: Sequence[Id], asked: Search, among: Sequence[Id]) -> Found:
    hits = ready.scorer.top_k(
        list(queries), asked.k, include_query=asked.include_query, zeros=asked.zeros, among=list(among) or None,
        where=asked.where,
    )  # fmt: skip
    return Found(hits, ready.served.version)


def to_json(hits: Hits, version: int | None) -> str:
    """Return hits as the command line prints them, with the version of the graph before, where it has versions."""
    text = hits.to_json()
    return text if version is None else f'{{"version": {version}, {text[1:]}'


def ready_for(catalogue: Catalogue, graph: str, asked: AnyMeaning, queries: Sequence[Id]) -> Ready:
    """Return the scorer that a request names: a measure, a combination of some, or a saved model."""
    parts = asked.combination if isinstance(asked, SearchMany) else None
    check_alone(asked, parts is not None)
    if asked.model is not None:
        return catalogue.model(graph, asked.model, asked.as_of)
    if parts is not None:
        given = [Part(part.measure, part.metapath, part.weight) for part in parts]
        return catalogue.combination(graph, given, asked.as_of)
    whole_graph = asked.measure.lower() in GRAPH_MEASURES
    if not whole_graph and asked.type is not None:
        raise QueryError(
            f"{asked.measure[:100]} takes its types from the metapath; type is for measures over the whole graph: "
            f"{listed(GRAPH_MEASURES)}"
        )
    if not whole_graph or asked.metapath is not None:
        return catalogue.measure(graph, asked.measure, required_metapath(catalogue, graph, asked), asked.as_of)
    node_type = asked.type or _type_of(catalogue, graph, queries)
    return catalogue.graph_measure(graph, asked.measure, node_type, asked.as_of)


def check_alone(asked: Meaning, combines: bool = False) -> None:
    """Refuse what a saved model or a combination would leave unused."""
    if asked.model is None and not combines:
        return
    given = {"metapath": asked.metapath is not None, "measure": asked.names_measure}
    given |= {"type": getattr(asked, "type", None) is not None, "combination": combines and asked.model is not None}
    unused = next((name for name, is_given in given.items() if is_given), None)
    if unused is not None:
        raise QueryError(f"a saved model or a combination knows what similar means; give it alone, without a {unused}")


def _type_of(catalogue: Catalogue, graph: str, queries: Sequence[Id]) -> str:
    """Return the one type that knows all queries."""
    hin = catalogue.graph(graph).hin
    asked = "the query" if len(queries) == 1 else "the queries"
    try:
        return hin.find_type(queries, asked)
    except QueryError as error:  # in the words of this place
        told = str(error).partition(";")[0]
        raise QueryError(f"{told}; say which with type") from error


def required_metapath(catalogue: Catalogue, graph: str, asked: Meaning) -> str:
    """Return the meta-path a request names, or say which there are."""
    if asked.metapath is not None:
        return asked.metapath
    schema = catalogue.graph(graph).hin.schema
    some = (next(enumerate_metapaths(schema, t, 2)) for t in schema.node_types if schema.neighbours(t))
    raise QueryError(f"no metapath is given; say what makes two nodes similar, such as metapath={next(some, 'A-B-A')}")


def encode_hits(found: Found, accept: str) -> tuple[bytes, str]:
    """Return the hits of many queries in the format that a client accepts, and its name."""
    if "arrow" in accept:
        return _to_arrow(found.hits), ARROW
    if "text/csv" in accept:
        sink = io.BytesIO()
        pa.csv.write_csv(_to_table(found.hits), sink)
        return sink.getvalue(), CSV
    return f"[{', '.join(to_json(hits, found.version) for hits in found.hits)}]".encode(), JSON


def _to_arrow(found: Sequence[Hits]) -> bytes:
    table = _to_table(found)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def _to_table(found: Sequence[Hits]) -> pa.Table:
    """Return all hits as one table with the columns query, rank, id, name, score."""
    kind = pa.int64() if found and isinstance(found[0].query, int) else pa.string()
    hit_kind = next((pa.int64() if isinstance(hits.ids[0], int) else pa.string() for hits in found if hits.ids), kind)
    return pa.table(
        {
            "query": pa.array([hits.query for hits in found for _ in hits.ids], kind),
            "rank": pa.array([rank for hits in found for rank in range(1, len(hits) + 1)], pa.int64()),
            "id": pa.array([node_id for hits in found for node_id in hits.ids], hit_kind),
            "name": pa.array([name for hits in found for name in hits.names], pa.string()),
            "score": pa.array([score for hits in found for score in hits.scores], pa.float64()),
        }
    )
