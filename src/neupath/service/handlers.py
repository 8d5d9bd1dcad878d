"""The handlers: what the routes of `app.py` call to search, explain, infer, update and suggest meta-paths."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from starlette.responses import Response

from neupath._runtime.progress import Progress, no_progress
from neupath.answers import given
from neupath.engine.hits import Hits, QuerySet
from neupath.engine.prepared import IndexedGraph, PreparedIndex
from neupath.engine.scorer import Scorer, SearchOptions
from neupath.errors import QueryError, listed
from neupath.evidence.explanation import explain, explain_set
from neupath.evidence.model_explanation import explain_combination, explain_model
from neupath.evidence.promising import similar
from neupath.evidence.relate import BUDGET as RELATE_BUDGET
from neupath.evidence.relate import relate
from neupath.graph.browsing import describe_node as describe
from neupath.graph.browsing import hubs, look_up
from neupath.graph.hin import HIN
from neupath.graph.metapath import MetaPath
from neupath.graph.nodes import Id
from neupath.learn.inference import Inferred, infer
from neupath.learn.inference.candidates import BUDGET
from neupath.learn.labels import Pairs, join_types, read_pairs
from neupath.learn.registry import check_model_alone, find_node_type, required_metapath
from neupath.live import LiveScorer
from neupath.measures import MEASURES, Combination, GraphMeasure, PathMeasure, is_graph_measure
from neupath.measures.completion import complete
from neupath.requests import Explain, Search, Similarity
from neupath.service import schemas
from neupath.service.graph_registry import FittedScorer, GraphHandle, GraphRegistry
from neupath.service.limits import Limits
from neupath.store import Update

# ---- Search --------------------------------------------------------------------------------------
JSON, ARROW, CSV = "application/json", "application/vnd.apache.arrow.stream", "text/csv; charset=utf-8"
PARQUET = "application/vnd.apache.parquet"


@dataclass(frozen=True)
class SearchResult:
    """The hits of each query, the version of the graph, where it has versions, and what was asked of which graph."""

    hits: list[Hits]
    version: int | None
    graph: str
    request: Search
    parts: list[dict[str, object]] | None = None
    """Of a combination: the measures that it adds up."""


def search(registry: GraphRegistry, graph: str, request: Search) -> SearchResult:
    """Find the hits of each query of a request."""
    queries = request.all_queries
    registry.limits.check_k(request.k, len(queries))
    fitted = fitted_scorer(registry, graph, request, queries)
    scorer, members = fitted.scorer, request.query_set if isinstance(request, schemas.SearchMany) else None
    for text in request.unless:
        registry.limits.check_text("the meta-path", text)
    options: SearchOptions = {
        "include_query": request.include_query, "zeros": request.zeros, "among": list(request.among) or None,
        "where": request.where, "diverse": request.diverse,
        "unless": [registry.limits.check_metapath(fitted.handle.hin.metapath(text)) for text in request.unless],
    }  # fmt: skip
    parts = scorer.described_parts() if isinstance(scorer, Combination) else None
    if members is None:
        hits = scorer.top_k(list(queries), request.k, **options)
    else:
        hits = [scorer.top_k(members.as_dict(), request.k, **options)]
    return SearchResult(hits, fitted.handle.version, graph, request, parts)


def fitted_scorer(
    registry: GraphRegistry, graph: str, request: Search | Explain, queries: Sequence[Id]
) -> FittedScorer:
    """Return the scorer that a request describes: a measure, a combination of some, or a saved model."""
    parts = request.combination if isinstance(request, schemas.SearchMany) else None
    others = given(request, "metapath", "measure", "node_type") | request.refinement
    handle = registry.graph(graph, request.as_of)
    if isinstance(handle.hin, IndexedGraph):
        return FittedScorer(handle, handle.hin.answer(**others, model=request.model, combination=parts))
    if request.model is not None:
        check_model_alone(**others, combination=parts)
        return registry.model(graph, str(request.model), request.as_of)
    if parts is not None:
        for parameter in others:
            raise QueryError(f"each part of a combination has its own measure and meta-path; leave out ‹{parameter}›")
        return registry.combination(graph, [part.to_part() for part in parts], request.as_of)
    node_type = request.node_type
    if node_type is None and request.metapath is None and is_graph_measure(request.measure):
        node_type = find_node_type(registry.graph(graph, request.as_of).hin, queries)
    metapath = request.one_metapath
    if request.refinement:
        registry.limits.check_text("the meta-path", metapath)
        metapath = str(refined(registry.graph(graph, request.as_of).hin, request))
    return registry.measure(graph, request.chosen_measure, metapath, node_type, request.as_of)


def refined(hin: HIN, request: Similarity) -> MetaPath:
    """Return the meta-path of a request with its weights and times, or raise an error that lists some."""
    return hin.metapath(str(required_metapath(hin.schema, request.one_metapath)), **request.refinement)


def to_json(hits: Hits, version: int | None, parts: list[dict[str, object]] | None = None) -> str:
    """Return hits as the command line prints them but for ties, after the version of a graph that has versions."""
    text = hits.to_json()
    text = text if parts is None else f'{text[:-1]}, "parts": {json.dumps(parts, ensure_ascii=False)}}}'
    return text if version is None else f'{{"version": {version}, {text[1:]}'


def encode_hits(result: SearchResult, accept: str) -> Response:
    """Answer in the format that a client accepts; a table has no place for the version, so a header holds it."""
    if not is_table(accept):
        text = f"[{', '.join(to_json(hits, result.version, result.parts) for hits in result.hits)}]"
        return Response(text, media_type=JSON)
    table, stream_bytes = _to_table(result.hits), pa.BufferOutputStream()
    if "parquet" in accept:
        media_type = PARQUET
        pa.parquet.write_table(table.replace_schema_metadata(_provenance(result)), stream_bytes)
    elif "arrow" in accept:
        media_type = ARROW
        with pa.ipc.new_stream(stream_bytes, table.schema) as stream:
            stream.write_table(table)
    else:
        media_type = CSV
        pa.csv.write_csv(table, stream_bytes)
    headers = {} if result.version is None else {"neupath-version": str(result.version)}
    return Response(stream_bytes.getvalue().to_pybytes(), headers=headers, media_type=media_type)


def is_table(accept: str) -> bool:
    """Whether a client accepts Arrow, Parquet or CSV rather than JSON."""
    return "arrow" in accept or "parquet" in accept or "text/csv" in accept


def _provenance(result: SearchResult) -> dict[str, str]:
    """Say in the metadata of a file which search it is of, of which graph and version, and when it was made."""
    first, version = result.hits[0], {} if result.version is None else {"version": result.version}
    origin = {"graph": result.graph, **version, "time": datetime.now(UTC).isoformat(timespec="seconds")}
    origin |= schemas.dump(result.request, {"query", "queries"})
    return {"neupath": json.dumps(origin | {"metapath": first.metapath, "measure": first.measure})}


def _to_table(results: Sequence[Hits]) -> pa.Table:
    """Return the hits of all queries as one table with the columns query, rank, id, name, score."""
    queries = [hits.query.label if isinstance(hits.query, QuerySet) else hits.query for hits in results]
    query_type = _id_type(queries[0])
    target_type = next((_id_type(hits.ids[0]) for hits in results if hits.ids), query_type)
    return pa.table(
        {
            "query": pa.array([q for q, hits in zip(queries, results, strict=True) for _ in hits.ids], query_type),
            "rank": pa.array([rank for hits in results for rank in range(1, len(hits) + 1)], pa.int64()),
            "id": pa.array([node_id for hits in results for node_id in hits.ids], target_type),
            "name": pa.array([name for hits in results for name in hits.names], pa.string()),
            "score": pa.array([score for hits in results for score in hits.scores], pa.float64()),
        }
    )


def _id_type(node_id: Id) -> pa.DataType:
    return pa.int64() if isinstance(node_id, int) else pa.string()


# ---- Explain -------------------------------------------------------------------------------------
def _paths(request: Explain) -> int:
    return 1 if request.paths is None else request.paths


def explain_one(registry: GraphRegistry, graph: str, request: schemas.ExplainOne) -> dict[str, object]:
    """Show the nodes and paths behind one score, heaviest first, each with its exact share, and why not."""
    registry.limits.check_groups(request.limit, _paths(request))
    if request.model is None and request.metapath is None and is_graph_measure(request.measure):
        raise QueryError(
            f"{request.chosen_measure.lower()} looks at the whole graph, not along a meta-path, so it has no paths to "
            f"show; explain one of {listed(MEASURES)} with a metapath"
        )
    fitted = fitted_scorer(registry, graph, request, [request.query])
    return _with_version(fitted.handle, _explain(fitted, request))


def _explain(fitted: FittedScorer, request: schemas.ExplainOne) -> dict[str, object]:
    scorer = fitted.scorer.measure if isinstance(fitted.scorer, LiveScorer) else fitted.scorer
    query, target, limit, by, paths = request.query, request.target, request.limit, request.by, _paths(request)
    if isinstance(scorer, PreparedIndex):
        return scorer.explain(query, target, max(1, limit)).to_dict()
    if isinstance(scorer, PathMeasure):
        return explain(
            fitted.handle.hin, scorer.metapath_, query, target, measure=scorer, by=by, limit=limit, paths=paths,
            k=request.k,
        ).to_dict()  # fmt: skip
    if isinstance(scorer, GraphMeasure):
        raise QueryError(f"the model {request.model!r} is {scorer.name} over the whole graph; it has no paths to show")
    return explain_model(scorer, query, target, limit, by=by, paths=paths).to_dict()


def explain_combined(registry: GraphRegistry, graph: str, request: schemas.ExplainCombination) -> dict[str, object]:
    """Show the meta-paths and paths behind one score of a combination."""
    registry.limits.check_groups(request.limit, _paths(request))
    if (request.combination is None) == (request.queries is None) or (request.queries is None) != (
        request.query is not None
    ):
        raise QueryError("give either query and combination, for one node, or queries and metapath, for a set of nodes")
    if request.queries is not None:
        return _explain_set(registry, graph, request)
    if request.metapath is not None or request.weights is not None:
        raise QueryError("each part of a combination has its own meta-path and weight; leave out metapath and weights")
    assert request.combination is not None
    assert request.query is not None
    fitted = registry.combination(graph, [part.to_part() for part in request.combination], request.as_of)
    assert isinstance(fitted.scorer, Combination)
    explanation = explain_combination(
        fitted.scorer, request.query, request.target, request.limit, by=request.by, paths=_paths(request)
    )
    return _with_version(fitted.handle, explanation.to_dict())


def _explain_set(registry: GraphRegistry, graph: str, request: schemas.ExplainCombination) -> dict[str, object]:
    handle, limits = registry.graph(graph, request.as_of), registry.limits
    assert request.queries is not None
    limits.check_k(1, len(request.queries))
    limits.check_text("the meta-path", request.metapath)
    path = limits.check_metapath(refined(handle.hin, request))
    members = schemas.read_query_set(request.queries, request.weights)
    explanation = explain_set(
        handle.hin, path, members, request.target, measure=request.chosen_measure, by=request.by,
        limit=request.limit, paths=_paths(request),
    )  # fmt: skip
    return _with_version(handle, explanation.to_dict())


_RELATE_BUDGET = RELATE_BUDGET // 2  # how much a client waits for


def relate_nodes(registry: GraphRegistry, graph: str, request: schemas.RelateRequest) -> dict[str, object]:
    """Show every meta-path that joins two nodes: edges first, then by length, then by the rank of the target."""
    registry.limits.check_paths(request.limit)
    registry.limits.check_steps(request.max_steps)
    handle = registry.graph(graph, request.as_of)
    options = given(request, "max_steps", "measure", "query_type", "target_type", "limit")
    related = relate(handle.hin, request.query, request.target, **options, budget=_RELATE_BUDGET)
    return _with_version(handle, related.to_dict())


def _with_version(handle: GraphHandle, content: dict[str, object]) -> dict[str, object]:
    return content if handle.version is None else {"version": handle.version, **content}


# ---- Nodes ---------------------------------------------------------------------------------------
def find_nodes(registry: GraphRegistry, graph: str, request: schemas.NodesRequest) -> dict[str, object]:
    """Look up nodes by a text: those that equal it, begin with it, contain it, then that are spelled alike."""
    return registry.graph(graph).find_nodes(request, registry.limits)


def look_up_nodes(registry: GraphRegistry, graph: str, request: schemas.NodesLookup) -> dict[str, object]:
    """Find many nodes of a type by their ids or names, with their attributes; null for one that is not there."""
    registry.limits.check_k(len(request.ids))
    hin = registry.graph(graph).hin
    return look_up(hin, hin.schema.node_type(request.node_type), request.ids)


def describe_node(registry: GraphRegistry, graph: str, request: schemas.NodeRequestedById) -> dict[str, object]:
    """Show a node: its attributes, and of each relation its degree and heaviest neighbours."""
    registry.limits.check_paths(request.limit)
    handle = registry.graph(graph)
    described = describe(handle.hin, request.id, request.node_type, request.limit)
    return _with_version(handle, described.to_dict())


def find_hubs(registry: GraphRegistry, graph: str, request: schemas.HubsRequest) -> dict[str, object]:
    """List the best connected nodes of each type, to start from."""
    registry.limits.check_paths(request.limit)
    return {"nodes": hubs(registry.graph(graph).hin, request.limit)}


def find_similar(registry: GraphRegistry, graph: str, request: schemas.SimilarRequest) -> dict[str, object]:
    """Search along the promising meta-paths of a node, those first whose hits tell most."""
    registry.limits.check_k(request.k)
    registry.limits.check_paths(request.limit)
    handle = registry.graph(graph)

    def fit(measure: PathMeasure) -> Scorer:
        return handle.fit(measure).scorer  # must not push others from the cache

    found = similar(handle.hin, request.node_type, request.query, request.k, request.limit, fit)
    return _with_version(handle, found)


# ---- Infer ---------------------------------------------------------------------------------------
_PAIRS_WITHOUT_JOB = 500  # labelled pairs that are inferred from while the client waits
_BUDGET_WITHOUT_JOB = BUDGET // 20  # how much a client waits for; jobs have the whole budget


def infer_without_job(registry: GraphRegistry, graph: str, request: schemas.InferRequest) -> dict[str, object]:
    """Find the meta-paths, weights and measure that explain labelled pairs; many pairs need a job."""
    hin = registry.graph(graph).hin
    if len(request.pairs) > _PAIRS_WITHOUT_JOB:
        raise schemas.RequestError(
            413, f"{len(request.pairs):,} pairs are given, and this call takes at most {_PAIRS_WITHOUT_JOB}; "
            f"start a job of the kind 'infer' for more",
        )  # fmt: skip
    inferred = infer_from(hin, read_labels(hin, request, registry.limits), request, budget=_BUDGET_WITHOUT_JOB)
    return inferred.report(request.suggest, request.skip)


def read_labels(hin: HIN, request: schemas.InferRequest, limits: Limits) -> Pairs:
    """Read the pairs of a request; refuse pairs that nothing can be inferred from."""
    limits.check_pairs(len(request.pairs))
    if len({pair.score is None and pair.rank is None for pair in request.pairs}) > 1:
        raise QueryError("some pairs have a score and some have none; give all a score, or none")
    types = join_types(request.node_type, request.query_type, request.target_type)
    return read_pairs(hin, schemas.label_columns(request.pairs), types, bounded=False, examples=True)


def infer_from(
    hin: HIN, labels: Pairs, request: schemas.InferRequest, budget: int = BUDGET, progress: Progress = no_progress
) -> Inferred:
    """Infer with the options of a request."""
    options = given(request, "max_length", "measures", "asymmetric", "conditions", "seed")
    return infer(hin, labels, **options, budget=budget, progress=progress)


# ---- Update --------------------------------------------------------------------------------------
def update_graph(registry: GraphRegistry, graph: str, update: Update) -> dict[str, object]:
    """Add and remove nodes and edges of a store, all or nothing; when this answers, they are on disk."""
    registry.limits.check_lines(len(update))
    if not len(update):
        raise QueryError("nothing to change; give add_edges, remove_edges, add_nodes or remove_nodes")
    return {"version": registry.handle(graph).update(update), "lines": len(update)}


# ---- Suggest meta-paths --------------------------------------------------------------------------
def complete_metapath(registry: GraphRegistry, graph: str, request: schemas.MetapathsRequest) -> dict[str, object]:
    """Say what a meta-path typed so far means and what can follow, and suggest some from a node type."""
    registry.limits.check_paths(request.limit)
    options = given(request, "prefix", "source_type", "target_type", "max_length", "limit")
    return complete(registry.graph(graph).hin, **options)
