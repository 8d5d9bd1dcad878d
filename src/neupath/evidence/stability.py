"""Stability: how far the ranks of hits depend on few edges, or on one node."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from neupath._runtime.progress import Progress, check_cancelled, no_progress
from neupath.engine.formula import rank_of
from neupath.engine.hits import Hits, check_whole
from neupath.engine.scorer import Scorer
from neupath.errors import QueryError, listed
from neupath.evidence.counterfactuals import ranks_without_each
from neupath.evidence.significance import permutable, relations_of
from neupath.graph.hin import HIN, Floats
from neupath.graph.metapath import MetaPath, Relation
from neupath.graph.nodes import Rows
from neupath.measures import PathMeasure

SAMPLES, SHARE = 100, 0.1
_TAIL = 0.05  # of the samples lie below, and as many above, an interval


@dataclass(frozen=True)
class Stability:
    """The interval of ranks of each hit, best and worst; the worst is None where the hit may lose every path."""

    intervals: tuple[tuple[int | None, int | None], ...]
    by: str
    """ "edges", of which a share is removed at random, or the type of the nodes that are removed one by one."""
    samples: int
    """How many graphs the ranks come from; for nodes, the most that any hit has."""
    share: float | None
    seed: int

    def columns(self) -> dict[str, tuple[object, ...]]:
        """Return what is known of each hit, by name."""
        return {"ranks": tuple(list(interval) for interval in self.intervals)}

    def to_dict(self) -> dict[str, object]:
        return {"by": self.by, "samples": self.samples, "share": self.share, "seed": self.seed}


def stability(
    scorer: Scorer,
    hits: Hits,
    *,
    by: str | None = None,
    share: float = SHARE,
    samples: int = SAMPLES,
    seed: int = 0,
    progress: Progress = no_progress,
) -> Stability:
    """Return the interval in which the rank of each hit stays when edges, or single nodes, are missing.

    Without `by`, each edge of the relations on the meta-path is left out with the probability `share`, in `samples`
    graphs, and the interval holds nine tenths of the ranks. With a node type, each of its nodes on a walk of the query
    or the hit is left out in turn (a jackknife), and the interval holds all ranks.

    Parameters
    ----------
    scorer
        A fitted exact measure.
    hits
        The hits of a query, as `scorer.top_k` returns them without filters, zeros and the query itself: ranks are
        those among all targets.
    by
        A node type on the meta-path, to leave out its nodes one by one.
    share
        The share of edges to leave out, above 0 and below 1.
    samples
        How many graphs to draw.
    seed
        The seed of the draws.
    progress
        Called with the number of graphs, or of hits, that are done.

    >>> from neupath import PathSim, load
    >>> scorer = PathSim("APVPA").fit(load("toy"))
    >>> stability(scorer, scorer.top_k("Mike", k=2), by="paper").intervals
    ((1, 2), (1, 2))
    """
    check_stability(scorer, by)
    check_whole("seed", seed, 0)
    check_whole("samples", samples, 1)
    if not 0 < share < 1:
        raise QueryError(f"‹share› is {share}; give a share of the edges above 0 and below 1", parameter="share")
    if len(hits) and hits.ids != scorer.top_k(hits.query_id, len(hits)).ids:
        raise QueryError(
            f"these are not the {len(hits):,} best hits of {hits.query!r} by {scorer.name}, and stability ranks all "
            f"targets; search without filters, zeros and the query itself"
        )
    query = scorer.hin_.row(scorer.source_type, hits.query_id)
    targets = scorer.hin_.rows(scorer.target_type, hits.ids)
    if by is not None and isinstance(scorer, PathMeasure):
        return _jackknife(scorer, hits, by, progress)
    rng, ranks = np.random.default_rng(seed), np.zeros((samples, len(targets)))
    relations = relations_of(scorer)
    for number in range(samples):
        check_cancelled()
        progress("sampling", number, samples)
        ranks[number] = _ranks(scorer.bind(thinned(scorer.hin_, relations, share, rng)), query, targets)
    progress("sampling", samples, samples)
    ranks.sort(axis=0)
    tail = int(_TAIL * samples)
    low, high = ranks[tail], ranks[samples - 1 - tail]
    return Stability(_intervals(low, high), "edges", samples, share, seed)


def check_stability(scorer: Scorer, by: str | None) -> None:
    """Raise unless the stability of hits can be found, also without each node of a type."""
    permutable(scorer)
    if by is None:
        return
    if not isinstance(scorer, PathMeasure):
        raise QueryError(f"{scorer.name} follows no single meta-path; remove edges at random instead of nodes")
    type_on_path(scorer.metapath_, by)


def type_on_path(path: MetaPath, by: str) -> str:
    """Return the node type on a meta-path that a word names."""
    node_type = path.schema.node_type(by)
    if node_type not in path.node_types:
        raise QueryError(f"{node_type} is not on {path}; give one of {listed(dict.fromkeys(path.node_types))}")
    return node_type


def _jackknife(scorer: PathMeasure, hits: Hits, by: str, progress: Progress) -> Stability:
    by = type_on_path(scorer.metapath_, by)
    low, high, most = np.zeros(len(hits)), np.zeros(len(hits)), 0
    for place, hit in enumerate(hits):
        check_cancelled()
        progress("removing", place, len(hits))
        ranks = np.append(ranks_without_each(scorer, hits.query_id, hit.id, by), hit.rank)
        low[place], high[place], most = ranks.min(), ranks.max(), max(most, len(ranks) - 1)
    progress("removing", len(hits), len(hits))
    return Stability(_intervals(low, high), by, most, None, 0)


def _ranks(scorer: Scorer, query: int, targets: Rows) -> list[float]:
    """Return the rank of each target among the hits of a query; infinity for a target that is no hit."""
    scores, left_out = scorer.score_rows(np.array([query]))[0], scorer.own_targets(np.array([query]))
    ranks = [rank_of(scores, target, left_out)[0] for target in targets.tolist()]
    return [np.inf if rank is None else rank for rank in ranks]


def _intervals(low: Floats, high: Floats) -> tuple[tuple[int | None, int | None], ...]:
    ends = [[int(rank) if rank < 2**53 else None for rank in side] for side in (low, high)]
    return tuple(zip(*ends, strict=True))


def thinned(hin: HIN, relations: Sequence[Relation], share: float, rng: np.random.Generator) -> HIN:
    """Return a graph without a random share of the edges of some relations."""
    pairs = (hin.pairs(relation) for relation in relations)
    return hin.with_pairs(each.take(rng.random(len(each)) >= share) for each in pairs)
