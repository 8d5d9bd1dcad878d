"""Explaining: the paths behind one score, as the same JSON that the command line prints."""

from neupath.errors import QueryError
from neupath.explanation import Explanation
from neupath.explanation import explain as explain_pair
from neupath.inference import CombinedExplanation, LookedAt, explain_combination, explain_model
from neupath.measures import Combination, Part, PathMeasure
from neupath.service.catalogue import Catalogue
from neupath.service.requests import ExplainCombination, ExplainOne
from neupath.service.searching import ready_for

Explained = Explanation | CombinedExplanation | LookedAt


def explain_one(catalogue: Catalogue, graph: str, asked: ExplainOne) -> Explained:
    """Find the paths behind the score of one pair under a measure or a saved model."""
    _check(catalogue, asked.limit)
    ready = ready_for(catalogue, graph, asked)
    if isinstance(ready.scorer, PathMeasure):
        hin, path = ready.served.hin, ready.scorer.metapath_
        return explain_pair(hin, path, asked.query, asked.target, measure=ready.scorer, limit=asked.limit)
    return explain_model(ready.scorer, asked.query, asked.target, asked.limit)


def explain_parts(catalogue: Catalogue, graph: str, asked: ExplainCombination) -> CombinedExplanation:
    """Find the paths behind the score of one pair under a combination."""
    _check(catalogue, asked.limit)
    parts = [Part(part.measure, part.metapath, part.weight) for part in asked.combination]
    scorer = catalogue.combination(graph, parts).scorer
    assert isinstance(scorer, Combination)
    return explain_combination(scorer, asked.query, asked.target, asked.limit)


def _check(catalogue: Catalogue, limit: int) -> None:
    if limit > catalogue.limits.paths:
        raise QueryError(f"limit is {limit}; this service lists at most {catalogue.limits.paths:,} paths")
