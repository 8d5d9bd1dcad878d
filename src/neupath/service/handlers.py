"""Suggesting: what a meta-path typed so far means, what can follow, and which ones there are for a type."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from urllib.parse import unquote_plus

import pyarrow as pa
import pyarrow.csv

from neupath._runtime.progress import Progress, no_progress
from neupath.engine.hits import Hits
from neupath.engine.scorer import Scorer
from neupath.errors import MetaPathError, NeuPathError, QueryError, listed
from neupath.explain.explanation import (
    AttentionExplanation,
    CombinedExplanation,
    Explanation,
    explain_combination,
    explain_model,
)
from neupath.explain.explanation import explain as explain_pair
from neupath.graph.hin import HIN
from neupath.graph.metapath import MetaPath, Step, arrow, enumerate_metapaths
from neupath.graph.nodes import Id
from neupath.graph.schema import Link, Schema
from neupath.learn.inference import Inferred, infer
from neupath.learn.inference.candidates import BUDGET
from neupath.learn.labels import Pairs, read_pairs
from neupath.learn.registry import check_model_alone, find_node_type, is_graph_measure
from neupath.live import LiveScorer
from neupath.measures import GRAPH_MEASURES, MEASURES, Combination, GraphMeasure, Part, PathMeasure
from neupath.service.graphs import Ready, ScorerRegistry
from neupath.service.limits import Limits
from neupath.service.responses import RequestError
from neupath.service.schemas import (
    AnyMeaning,
    ExplainCombination,
    ExplainOne,
    Infer,
    SearchMany,
    SearchOne,
    SearchRequest,
)
from neupath.store import Update

# ---- Searching -----------------------------------------------------------------------------------
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


def answer_at_once(catalogue: ScorerRegistry, graph: str, asked: SearchOne) -> str | None:
    """Answer a light query over a measure that is ready, or nothing where it needs a thread."""
    if (
        asked.metapath is None
        or asked.node_type is not None
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
class SearchResult:
    """The hits of each query, and the version of the graph that they are of, where it has versions."""

    hits: list[Hits]
    version: int | None


def search_one(catalogue: ScorerRegistry, graph: str, asked: SearchOne) -> SearchResult:
    """Find the hits of one query."""
    catalogue.limits.check_k(asked.k)
    return _search(ready_for(catalogue, graph, asked, [asked.query]), [asked.query], asked, asked.among)


def search_many(catalogue: ScorerRegistry, graph: str, asked: SearchMany) -> SearchResult:
    """Find the hits of many queries."""
    catalogue.limits.check_k(asked.k, len(asked.queries))
    return _search(ready_for(catalogue, graph, asked, asked.queries), asked.queries, asked, asked.among)


def _search(ready: Ready, queries: Sequence[Id], asked: SearchRequest, among: Sequence[Id]) -> SearchResult:
    hits = ready.scorer.top_k(
        list(queries), asked.k, include_query=asked.include_query, zeros=asked.zeros, among=list(among) or None,
        where=asked.where,
    )  # fmt: skip
    return SearchResult(hits, ready.served.version)


def to_json(hits: Hits, version: int | None) -> str:
    """Return hits as the command line prints them, with the version of the graph before, where it has versions."""
    text = hits.to_json()
    return text if version is None else f'{{"version": {version}, {text[1:]}'


def ready_for(catalogue: ScorerRegistry, graph: str, asked: AnyMeaning, queries: Sequence[Id]) -> Ready:
    """Return the scorer that a request describes: a measure, a combination of some, or a saved model."""
    parts = asked.combination if isinstance(asked, SearchMany) else None
    measure = asked.measure if "measure" in asked.model_fields_set else None
    others = {"metapath": asked.metapath, "measure": measure, "node_type": asked.node_type}
    if asked.model is not None:
        check_model_alone(**others, combination=parts)
        return catalogue.model(graph, asked.model, asked.as_of)
    if parts is not None:
        for parameter, value in others.items():
            if value is not None:
                raise QueryError(f"a combination names its meta-paths; give either ‹combination› or ‹{parameter}›")
        given = [Part(part.measure, part.metapath, part.weight) for part in parts]
        return catalogue.combination(graph, given, asked.as_of)
    node_type = asked.node_type
    if node_type is None and asked.metapath is None and is_graph_measure(asked.measure):
        node_type = find_node_type(catalogue.graph(graph).hin, queries)
    return catalogue.measure(graph, asked.measure, asked.metapath, node_type, asked.as_of)


def encode_hits(found: SearchResult, accept: str) -> tuple[bytes, str]:
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


# ---- Explaining ----------------------------------------------------------------------------------
Explained = Explanation | CombinedExplanation | AttentionExplanation


def explain_one(catalogue: ScorerRegistry, graph: str, asked: ExplainOne) -> dict[str, object]:
    """Find the paths behind the score of one pair under a measure or a saved model."""
    catalogue.limits.check_paths(asked.limit)
    _check_has_paths(asked)
    ready = ready_for(catalogue, graph, asked, [asked.query])
    return _tell(_explain(ready, asked), ready)


def _explain(ready: Ready, asked: ExplainOne) -> Explained:
    scorer = ready.scorer.measure if isinstance(ready.scorer, LiveScorer) else ready.scorer
    if isinstance(scorer, PathMeasure):
        hin, path = ready.served.hin, scorer.metapath_
        return explain_pair(hin, path, asked.query, asked.target, measure=scorer, limit=asked.limit)
    if isinstance(scorer, GraphMeasure):
        raise QueryError(f"the model {asked.model!r} is {scorer.name} over the whole graph; it has no paths to show")
    return explain_model(scorer, asked.query, asked.target, asked.limit)


def explain_parts(catalogue: ScorerRegistry, graph: str, asked: ExplainCombination) -> dict[str, object]:
    """Find the paths behind the score of one pair under a combination."""
    catalogue.limits.check_paths(asked.limit)
    parts = [Part(part.measure, part.metapath, part.weight) for part in asked.combination]
    ready = catalogue.combination(graph, parts, asked.as_of)
    assert isinstance(ready.scorer, Combination)
    return _tell(explain_combination(ready.scorer, asked.query, asked.target, asked.limit), ready)


def _tell(found: Explained, ready: Ready) -> dict[str, object]:
    """Return what was found, with the version of the graph before, where it has versions."""
    version = ready.served.version
    return found.to_dict() if version is None else {"version": version, **found.to_dict()}


def _check_has_paths(asked: ExplainOne) -> None:
    if asked.model is None and asked.metapath is None and is_graph_measure(asked.measure):
        raise QueryError(
            f"{asked.measure.lower()} looks at the whole graph, not along a meta-path, so it has no paths to show; "
            f"explain one of {listed(MEASURES)} with a metapath"
        )


# ---- Inferring -----------------------------------------------------------------------------------
AT_ONCE = 500
"""Labelled pairs that are explained while the client waits."""
_BUDGET_AT_ONCE = BUDGET // 20


def infer_at_once(hin: HIN, asked: Infer, limits: Limits) -> dict[str, object]:
    """Find what a few pairs mean, under a budget that a client can wait for."""
    if len(asked.pairs) > AT_ONCE:
        raise RequestError(
            413, f"{len(asked.pairs):,} pairs take too long to wait for, up to {AT_ONCE} do not; "
            f"start a job of the kind 'infer' with them",
        )  # fmt: skip
    found = find(hin, labels_of(hin, asked, limits), asked, budget=_BUDGET_AT_ONCE)
    return found.report(asked.suggest, asked.skip)


def labels_of(hin: HIN, asked: Infer, limits: Limits) -> Pairs:
    """Read the pairs of a request as rows, refusing what cannot be learned from."""
    limits.check_pairs(len(asked.pairs))
    if len({pair.score is None for pair in asked.pairs}) > 1:
        raise QueryError("some pairs have a score and some have none; give all a score, or none")
    return read_pairs(hin, asked.tuples(), asked.node_type, bounded=False, examples=True)


def find(hin: HIN, labels: Pairs, asked: Infer, budget: int = BUDGET, progress: Progress = no_progress) -> Inferred:
    """Find what pairs mean."""
    return infer(
        hin, labels, max_length=asked.max_length, measures=asked.measures, asymmetric=asked.asymmetric, budget=budget,
        seed=asked.seed, progress=progress,
    )  # fmt: skip


# ---- Updating ------------------------------------------------------------------------------------
def update_graph(catalogue: ScorerRegistry, graph: str, update: Update) -> dict[str, object]:
    """Write what a request adds and removes; when this returns, it is on disk, and searches know it."""
    catalogue.limits.check_lines(len(update))
    if not len(update):
        raise QueryError("nothing to change; give add_edges, remove_edges, add_nodes or remove_nodes")
    return {"version": catalogue.source(graph).update(update), "lines": len(update)}


# ---- Suggesting ----------------------------------------------------------------------------------
def read_prefix(hin: HIN, text: str) -> dict[str, object]:
    """Say whether a text is a meta-path, how it is read, and which steps can follow it.

    >>> from neupath import load
    >>> told = read_prefix(load("toy"), "author-pa")
    >>> told["valid"], [step["metapath"] for step in told["next"]]
    (False, ['author-paper'])
    """
    path, error = _parse(hin, text)
    if path is not None:
        types = [] if "-" in text else _starts(hin.schema, text.strip())  # initials may be a type's first letters
        return _describe(text, path) | {"next": types + _next(hin.schema, path, path.target, "")}
    head, begun = _head(hin, text)
    end = head.target if isinstance(head, MetaPath) else head
    following = _starts(hin.schema, begun) if end is None else _next(hin.schema, head, end, begun)
    return {
        "text": text, "valid": False, "metapath": None, "node_types": [], "symmetric": False, "round_trip": False,
        "measures": [], "error": error, "next": following,
    }  # fmt: skip


def suggest_metapaths(
    schema: Schema, source: str, target: str | None, max_length: int, limit: int
) -> list[dict[str, object]]:
    """List meta-paths from a type, out and back, or to another type; shortest first."""
    start = schema.node_type(source)
    end = start if target is None else schema.node_type(target)
    symmetric = start == end
    if not schema.neighbours(start) or (symmetric and max_length < 2):
        return []
    every = enumerate_metapaths(schema, start, max_length, symmetric=symmetric)
    fitting = (path for path in islice(every, 100 * limit) if path.target == end)
    return [_describe(str(path), path) for path in islice(fitting, limit)]


def describe_measures() -> list[dict[str, object]]:
    """List the measures, and which meta-paths each is defined on; those over the whole graph take none."""
    over_paths = [
        _describe_measure(measure, "symmetric" if measure.symmetric_only else "any") for measure in MEASURES.values()
    ]
    return over_paths + [_describe_measure(measure, "none") for measure in GRAPH_MEASURES.values()]


def _describe_measure(measure: type[Scorer], metapaths: str) -> dict[str, object]:
    about = (measure.__doc__ or "").strip().splitlines()[0]
    return {"name": measure.name, "about": about, "metapaths": metapaths}


def _parse(hin: HIN, text: str) -> tuple[MetaPath | None, str | None]:
    try:
        return hin.metapath(text), None
    except MetaPathError as error:
        return None, str(error)


def _describe(text: str, path: MetaPath) -> dict[str, object]:
    return {
        "text": text,
        "valid": True,
        "metapath": str(path),
        "node_types": list(path.node_types),
        "symmetric": path.is_symmetric,
        "round_trip": path.is_round_trip,
        "measures": [name for name, measure in MEASURES.items() if _is_defined(measure, path)],
        "error": None,
    }


def _is_defined(measure: type[PathMeasure], path: MetaPath) -> bool:
    try:
        measure(path).check(path)
    except NeuPathError:
        return False
    return True


def _head(hin: HIN, text: str) -> tuple[MetaPath | str | None, str]:
    """Cut a text that is no meta-path into what can be read, a path or a single type, and the word begun after it."""
    types = {node_type.casefold(): node_type for node_type in hin.schema.node_types}
    cut = text.strip()
    begun = ""
    while cut:
        path, _ = _parse(hin, cut)
        if path is not None:
            return path, begun
        if cut.casefold() in types:
            return types[cut.casefold()], begun
        head, dash, word = cut.rpartition("-")
        if not dash:
            break
        begun = begun or word.strip(" <>")
        cut = head.rstrip(" -<>")
    return None, text.strip()


def _starts(schema: Schema, begun: str) -> list[dict[str, object]]:
    return [
        {"node_type": node_type, "link": None, "metapath": node_type}
        for node_type in schema.node_types
        if node_type.casefold().startswith(begun.casefold()) or not begun
    ]


def _next(schema: Schema, head: MetaPath | str | None, end: str, begun: str) -> list[dict[str, object]]:
    """List the steps that can follow: all relations to each type at once, and each alone where there are several."""
    steps: list[tuple[Link, ...]] = []
    for node_type in schema.neighbours(end):
        links = schema.links(end, node_type)
        if len(links) > 1 and end != node_type:
            steps.append(links)
        steps += [(link,) for link in links]
    walked = head.steps if isinstance(head, MetaPath) else ()
    return [
        {
            "node_type": links[0].target,
            "link": arrow(links),
            "metapath": str(MetaPath(schema, (*walked, Step(links)))),
        }
        for links in steps
        if _fits(links, begun)
    ]


def _fits(links: tuple[Link, ...], begun: str) -> bool:
    words = (links[0].target, *(link.relation.name for link in links))
    return not begun or any(word.casefold().startswith(begun.casefold()) for word in words)
