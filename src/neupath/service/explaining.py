"""Explaining: the paths behind one score, as the same JSON that the command line prints."""

from neupath.errors import QueryError, listed
from neupath.explanation import Explanation
from neupath.explanation import explain as explain_pair
from neupath.inference import CombinedExplanation, LookedAt, explain_combination, explain_model
from neupath.live.scorer import LiveScorer
from neupath.measures import GRAPH_MEASURES, MEASURES, Combination, GraphMeasure, Part, PathMeasure
from neupath.service.catalogue import Catalogue, Ready
from neupath.service.requests import ExplainCombination, ExplainOne
from neupath.service.searching import ready_for

Explained = Explanation | CombinedExplanation | LookedAt


def explain_one(catalogue: Catalogue, graph: str, asked: ExplainOne) -> dict[str, object]:
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


def explain_parts(catalogue: Catalogue, graph: str, asked: ExplainCombination) -> dict[str, object]:
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
    if asked.model is None and asked.metapath is None and asked.measure.lower() in GRAPH_MEASURES:
        raise QueryError(
            f"{asked.measure.lower()} looks at the whole graph, not along a meta-path, so it has no paths to show; "
            f"explain one of {listed(MEASURES)} with a metapath"
        )
