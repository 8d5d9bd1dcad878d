"""Answers: what the library says to a question of `requests.py`, for whichever interface asks it."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neupath._runtime.progress import Progress, no_progress
from neupath.engine.hits import Hits, QuerySet
from neupath.engine.prepared import IndexedGraph, SharedNodes
from neupath.engine.scorer import Scorer, SearchOptions
from neupath.errors import QueryError
from neupath.graph.hin import HIN, check_graph
from neupath.graph.metapath import MetaPath
from neupath.graph.nodes import Id, Nodes
from neupath.learn.registry import (
    DEFAULT_MEASURE,
    check_model_alone,
    choose_measure,
    is_combined,
    make_scorer,
    required_metapath,
    suggested_type,
)
from neupath.measures import Combination, is_graph_measure
from neupath.requests import (
    Compare,
    Engine,
    Evidence,
    Explain,
    Join,
    Prepare,
    Search,
    SetOfNodes,
    Similarity,
    Targets,
    Train,
)

if TYPE_CHECKING:
    from neupath.cluster import Cluster
    from neupath.engine.join import Joined, JoinEstimate
    from neupath.evidence.comparison import RankComparison
    from neupath.evidence.explanation import Explanation, SetExplanation
    from neupath.evidence.model_explanation import ModelExplanation

# Evidence is imported where it is asked for: most searches show none.


def given(question: object, *names: str) -> dict[str, Any]:
    """Return some fields of a question, without those that are left to the library."""
    return {name: value for name in names if (value := getattr(question, name)) is not None}


# ---- Search --------------------------------------------------------------------------------------
@dataclass(frozen=True)
class SearchAnswer:
    """The hits of each query, the label of each, the evidence for them, and how many targets tie with the last."""

    scorer: Scorer
    labels: Sequence[str]
    results: Sequence[Hits]
    evidence: Sequence[Mapping[str, Any]]
    ties: Sequence[int]

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return what JSON says of each query, but for ties."""
        parts = {"parts": self.scorer.described_parts()} if isinstance(self.scorer, Combination) else {}
        return [_to_dict(hits, known) | parts for hits, known in zip(self.results, self.evidence, strict=True)]


def _to_dict(hits: Hits, known: Mapping[str, Any]) -> dict[str, Any]:
    if not known:
        return hits.to_dict()
    from neupath.evidence.significance import hits_with

    return hits_with(hits, **known)


def search(hin: HIN, asked: Search, progress: Progress = no_progress) -> SearchAnswer:
    """Find the nodes most similar to each query, or to a set, with the evidence that is asked for."""
    scorer = scorer_of(hin, asked, asked.all_queries, progress)
    options: SearchOptions = {
        "include_query": asked.include_query, "zeros": asked.zeros, "diverse": asked.diverse, "where": asked.where,
        "unless": asked.unless, "among": read_among(asked),
    }  # fmt: skip
    if asked.added or asked.removed:
        if len(asked.all_queries) > 1:
            raise QueryError(
                f"‹added› and ‹removed› add to one ‹query›, and {len(asked.all_queries)} are given; give one"
            )
        members = read_set(hin, scorer.source_type, str(asked.all_queries[0]), asked)
        labels, results = [members.label], [scorer.top_k(members.as_dict(), asked.k, **options)]
    else:
        labels, results = (
            [str(query) for query in asked.all_queries],
            scorer.top_k(asked.all_queries, asked.k, **options),
        )
    evidence = find_evidence(scorer, results, asked, progress) if asked.wants_evidence else [{} for _ in results]
    ties = [0 if asked.diverse is not None else scorer.count_ties(hits, asked.k, **options) for hits in results]
    return SearchAnswer(scorer, labels, results, evidence, ties)


def scorer_of(
    hin: HIN, asked: Similarity, queries: Sequence[Id] = (), progress: Progress = no_progress, **more: Any
) -> Scorer:
    """Make the scorer that a question describes, fitted to a graph; an index answers as it was prepared."""
    if isinstance(hin, IndexedGraph):
        names = ("weights", "measure", "node_type", "model")
        return hin.answer(metapath=asked.metapath or None, **given(asked, *names), **asked.refinement)
    return make_scorer(
        hin, metapath=asked.refine(hin, asked.metapath), weights=asked.weights, measure=asked.measure,
        node_type=asked.node_type, model=asked.model, queries=queries, progress=progress, **more,
    )  # fmt: skip


def is_sum(asked: Similarity) -> bool:
    """Whether a question adds up scores along several meta-paths."""
    return asked.weights is not None or len(asked.metapaths) > 1 or is_combined(asked.measure)


def read_metapath(hin: HIN, metapath: str | None, query: Id, **refinement: Any) -> MetaPath:
    """Return the meta-path that is given, or raise an error that lists some for the query."""
    check_graph(hin)
    text = metapath or str(required_metapath(hin.schema, None, suggested_type(hin, [query])))
    return hin.metapath(text, **refinement)


def read_among(asked: Targets) -> list[Id] | None:
    """Return the only targets to rank, with the lines of the file of such; None for all."""
    file = asked.among_file
    if file is None:
        return list(asked.among) or None
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text in UTF-8"
        raise QueryError(f"cannot read {file}: {reason}; give a text file with one id or name a line") from error
    lines = [line for line in (line.strip() for line in text.splitlines()) if line]
    if not lines:
        raise QueryError(f"{file} names no target; write one id or name a line", parameter="among_file")
    return [*asked.among, *lines]


def read_set(hin: HIN, node_type: str, query: str, asked: SetOfNodes) -> QuerySet:
    """Return the set of a query with what is added and removed: of equal weights, or of those after a "="."""
    parts = [(1.0, query), *((1.0, text) for text in asked.added), *((-1.0, text) for text in asked.removed)]
    members: dict[str, float] = {}
    weights: list[float | None] = [None]
    for sign, text in parts[1:]:
        name, equals, number = text.rpartition("=")
        weight = _as_number(number) if equals and not _is_node(hin.nodes[node_type], text) else None
        weights.append(weight)
        name = text if weight is None else name
        if weight is not None and weight <= 0:
            raise QueryError(
                f"{text!r} weighs {weight:g}; give a weight above 0, and ‹removed› to count against a node"
            )
        if name in members or name == query:
            raise QueryError(f"{name!r} is named twice; name it once, with its whole weight")
        members[name] = sign * (1.0 if weight is None else weight)
    share = 1.0 if any(weight is not None for weight in weights) else 1.0 / len(parts)
    return QuerySet.read({name: weight * share for name, weight in {query: 1.0, **members}.items()})


def _is_node(nodes: Nodes, text: str) -> bool:
    return nodes.look_up(text) is not None or len(nodes.name_search.equal(text)) > 0


def _as_number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def find_evidence(
    scorer: Scorer, results: Sequence[Hits], asked: Evidence, progress: Progress = no_progress
) -> list[dict[str, Any]]:
    """Return the significance and the stability of the hits of each query, where they are asked for."""
    from neupath.evidence.significance import significance
    from neupath.evidence.stability import check_stability, stability

    if asked.wants_stability:
        check_stability(scorer, asked.stability_by)
    evidence: list[dict[str, Any]] = [{} for _ in results]
    seed = asked.seed or 0
    if asked.significance:
        found = significance(scorer, results, **given(asked, "permutations"), seed=seed, progress=progress)
        for known, each in zip(evidence, found, strict=True):
            known["significance"] = each
    if asked.wants_stability:
        for known, hits in zip(evidence, results, strict=True):
            known["stability"] = stability(scorer, hits, by=asked.stability_by, seed=seed, progress=progress)
    return evidence


# ---- Explain and compare -------------------------------------------------------------------------
def explain(hin: HIN, asked: Explain) -> "Explanation | SetExplanation | ModelExplanation | SharedNodes":
    """Find the nodes and paths behind the score of two nodes, or of a set and a node; an index knows no paths."""
    if isinstance(hin, IndexedGraph):
        others = given(asked, "metapath", "measure", "weights", "model", "by", "draw")
        index = hin.answer(**others, added=asked.added, removed=asked.removed, **asked.refinement)
        return index.explain(asked.query, asked.target, max(1, asked.limit))
    from neupath.evidence.explanation import explain as explain_pair
    from neupath.evidence.explanation import explain_set
    from neupath.evidence.model_explanation import explain_model

    options = given(asked, "by", "limit", "paths")
    is_set = bool(asked.added or asked.removed)
    if asked.model is not None or is_sum(asked):
        if is_set:
            raise QueryError(
                "‹added› and ‹removed› are explained along one meta-path; give one ‹metapath›, and neither ‹weights› "
                "nor ‹model›"
            )
        return explain_model(scorer_of(hin, asked), asked.query, asked.target, **options)
    path = read_metapath(hin, asked.one_metapath, asked.query, **asked.refinement)
    options["measure"] = asked.chosen_measure
    if is_set:
        members = read_set(hin, path.source, str(asked.query), asked)
        return explain_set(hin, path, members, asked.target, **options)
    return explain_pair(hin, path, asked.query, asked.target, k=asked.k, **options)


def compare(hin: HIN, asked: Compare) -> "RankComparison":
    """Rank the hits of a query by every measure along every meta-path, side by side."""
    from neupath.evidence.comparison import compare as compare_rankings

    paths, scorers = list(asked.metapath), []
    for measure in asked.measure or [DEFAULT_MEASURE]:
        if is_graph_measure(measure):
            own_type = asked.node_type or (hin.metapath(paths[0]).source if paths else None)
            scorers.append(make_scorer(hin, measure=measure, node_type=own_type, queries=[asked.query]))
        else:
            chosen = paths or [str(read_metapath(hin, None, asked.query))]
            scorers += [make_scorer(hin, metapath=path, measure=measure) for path in chosen]
    is_set = asked.added or asked.removed
    members = read_set(hin, scorers[0].source_type, asked.query, asked) if is_set else None
    return compare_rankings(scorers, asked.query if members is None else members.as_dict(), asked.k)


# ---- Train ---------------------------------------------------------------------------------------
SETTINGS = ("layers", "paths", "dim", "epochs", "learning_rate")


def settings_of(asked: Train) -> dict[str, Any]:
    """Return the settings of an architecture that are given."""
    return given(asked, *SETTINGS) | ({"attributes": True} if asked.attributes else {})


def check_training(asked: Train) -> None:
    """Raise if an option of training from labels would be ignored, or needs another."""
    architecture = asked.chosen_architecture
    if (asked.metapath is None) == (asked.pairs is None):
        raise QueryError("give either ‹metapath›, to draw labels from a measure, or ‹pairs›, the labels themselves")
    if asked.pairs is None and given(asked, "node_type", "query_type", "target_type"):
        raise QueryError("the labels take their node type from ‹metapath›; leave out ‹node_type›")
    if architecture == "auto":
        if asked.pairs is None:
            raise QueryError("auto judges learners by labels of your own; give ‹pairs›, or another ‹architecture›")
        for name in settings_of(asked):
            raise QueryError(
                f"auto chooses the settings of what it tries; leave out ‹{name}›, or give an ‹architecture›"
            )
    elif asked.budget is not None:
        raise QueryError(f"‹budget› is for auto, and the architecture is {architecture}; leave it out")


# ---- Join ----------------------------------------------------------------------------------------
def check_join(asked: Join) -> None:
    """Raise if an option of a join would be ignored, before the graph is read."""
    if asked.model is not None:
        check_model_alone(
            metapath=asked.metapath or None, **given(asked, "weights", "measure", "node_type"), **asked.refinement
        )
    combines, is_local = is_sum(asked), asked.engine == "local"
    if asked.significance:
        from neupath.evidence.significance import check_single_file

        check_single_file(asked.out)
        is_filtered = any((asked.where_query, asked.where, asked.unless, asked.among, asked.among_file))
        is_other = not is_local or asked.model is not None or asked.format == "neo4j" or asked.part is not None
        if is_other or combines or is_filtered:
            raise QueryError("‹significance› needs an exact measure and ‹engine› local; leave out the other options")
    if not is_local:
        if given(asked, "threads", "model", "device", "part"):
            raise QueryError(
                f"‹engine› {asked.engine} ranks by a measure or an index, on ‹workers›; leave out ‹threads›, ‹device›, "
                f"‹model› and ‹part›"
            )
        if combines:
            raise QueryError(
                f"‹engine› {asked.engine} joins along one meta-path; leave out ‹weights› and the other meta-paths"
            )
    if asked.table is not None and asked.into is None:
        raise QueryError("‹table› is for ‹into›; give a database, too", parameter="table")
    if asked.into is not None:
        from neupath.io.database_export import check_database

        check_database(asked.into)
    if asked.into is not None and (asked.out.suffix == ".csv" or asked.format == "neo4j" or asked.part is not None):
        raise QueryError("‹into› needs the pairs in Parquet, whole; give another ‹out›, and leave out ‹part›")


def join(
    hin: HIN,
    asked: Join,
    progress: Progress = no_progress,
    show: Callable[[MetaPath], None] = lambda _: None,
    on_estimate: "Callable[[JoinEstimate], None] | None" = None,
) -> "Joined":
    """Write the most similar targets of every node to a file; `show` gets the meta-path before the work begins."""
    from neupath.engine.join import join as join_all
    from neupath.evidence.significance import PERMUTATIONS, add_p_values, check_significance

    scorer, options = _join_options(hin, asked, progress, show)
    tests = {"permutations": PERMUTATIONS, "seed": 0} | given(asked, "permutations", "seed")
    if asked.significance:
        check_significance(scorer, **tests)
    if asked.engine != "local":
        options["engine"] = _cluster_of(asked)
    options |= {"progress": progress, "on_estimate": on_estimate} | given(asked, "part")
    joined = join_all(hin, scorer, asked.out, asked.chosen_k, **options)
    if asked.significance:
        add_p_values(joined, scorer, progress=progress, **tests)
    if asked.into is not None:
        from neupath.io.database_export import write_pairs

        write_pairs(joined.path, asked.into, progress=progress, **given(asked, "table"))
    return joined


def estimate_join(hin: HIN, asked: Join, progress: Progress = no_progress) -> "JoinEstimate":
    """Say by a sample of the queries what a join will take."""
    from neupath.engine.join import estimate_join as estimate

    scorer, options = _join_options(hin, asked, progress, lambda _: None)
    return estimate(hin, scorer, asked.out, asked.chosen_k, **options)


def _join_options(
    hin: HIN, asked: Join, progress: Progress, show: Callable[[MetaPath], None]
) -> tuple[Scorer, dict[str, Any]]:
    """Return the scorer of a join, fitted where this process ranks, and what it leaves out."""
    options = given(asked, "min_score", "where_query", "where", "unless", "block", "format", "threads")
    options["among"] = read_among(asked)
    if isinstance(hin, IndexedGraph):
        return scorer_of(hin, asked), options
    path = asked.refine(hin, asked.metapaths if is_sum(asked) else asked.one_metapath)
    if isinstance(path, MetaPath):
        show(path)
    names = ("weights", "measure", "node_type", "model", "device")
    if asked.engine == "local":
        return make_scorer(hin, metapath=path, **given(asked, *names), progress=progress), options
    one = path if isinstance(path, MetaPath) else None  # a cluster multiplies elsewhere
    return choose_measure(hin.schema, metapath=one, **given(asked, "measure", "node_type")), options


def _cluster_of(asked: Engine) -> "Cluster":
    from neupath.cluster import connect

    return connect(asked.engine, asked.address, asked.workers)


# ---- Prepare -------------------------------------------------------------------------------------
def prepare(
    hin: HIN, asked: Prepare, progress: Progress = no_progress, show: Callable[[MetaPath], None] = lambda _: None
) -> str:
    """Write an index of a measure along a meta-path, and return its address."""
    from neupath.measures.prepare import prepare as prepare_index

    if isinstance(hin, IndexedGraph):
        raise QueryError("this is an index already; prepare another one from the graph")
    path = hin.metapath(str(required_metapath(hin.schema, asked.metapath)), **asked.refinement)
    show(path)
    measure = choose_measure(hin.schema, metapath=path, measure=asked.measure)
    if asked.engine == "local":
        return prepare_index(hin, measure, asked.to, where=asked.where, progress=progress)
    with _cluster_of(asked).each() as each:
        return prepare_index(hin, measure, asked.to, where=asked.where, each=each, progress=progress)
