"""Promising meta-paths: those along which a search from one node tells most, for a user who names no meta-path."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from neupath._runtime.progress import check_cancelled
from neupath.engine.hits import Hits
from neupath.engine.products import multiplications
from neupath.engine.scorer import Scorer
from neupath.graph.browsing import describe_row
from neupath.graph.hin import HIN, check_graph
from neupath.graph.metapath import MetaPath, Schema, Step
from neupath.graph.nodes import Id
from neupath.measures import PathSim

_RANKED = 100  # hits by which a meta-path is judged
_CANDIDATES = 40  # meta-paths that are judged at most
_SIMILAR_WORK = 100_000_000  # multiplications that all their half-paths may take together


@dataclass(frozen=True)
class PromisingPath:
    """A meta-path out and back, and the best hits along it, by which it was judged."""

    metapath: MetaPath
    hits: Hits

    def to_dict(self, k: int) -> dict[str, object]:
        """Return what JSON says of it, with its k best hits."""
        scores = self.hits.scores
        return {
            "metapath": str(self.metapath), "node_types": list(self.metapath.node_types),
            "measure": self.hits.measure, "targets": len(scores), "more": len(scores) == _RANKED,
            "ties": scores.count(scores[0]), "hits": [vars(hit) for hit in islice(self.hits, k)],
        }  # fmt: skip


def promising_metapaths(
    hin: HIN, node_type: str, row: int, fit: Callable[[PathSim], Scorer] | None = None
) -> tuple[list[PromisingPath], int]:
    """Search along meta-paths out and back from a node; those come first whose hits tell most.

    A meta-path tells much if it fills a list, and gives the nodes of the list different scores. Of two that tell
    equally much, the shorter comes first. Also returns how many were left out, since they take too much work.

    Parameters
    ----------
    hin
        The graph.
    node_type, row
        The node.
    fit
        Fits a measure to the graph; a service has its own way.

    >>> from neupath import load
    >>> paths, _ = promising_metapaths(load("toy"), "author", 0)
    >>> [str(path.metapath) for path in paths]
    ['author-paper-venue-paper-author']
    """
    query, judged, work, too_large = hin.nodes[node_type].id(row), [], 0, 0
    for metapath in islice(_promising(hin.schema, node_type), _CANDIDATES):
        check_cancelled()
        cost = _half_path_work(hin, metapath)
        if work + cost > _SIMILAR_WORK:
            too_large += 1
            continue
        work += cost
        scorer = PathSim(metapath).fit(hin) if fit is None else fit(PathSim(metapath))
        hits = scorer.top_k(query, _RANKED)
        if hits.scores:
            judged.append((_tells(hits.scores) / len(metapath) ** 0.5, PromisingPath(metapath, hits)))
    judged.sort(key=lambda each: -each[0])
    return [path for _, path in judged], too_large


def similar(
    hin: HIN, node_type: str, query: Id, k: int, limit: int, fit: Callable[[PathSim], Scorer] | None = None
) -> dict[str, object]:
    """Return a node, and its k best hits along each of some promising meta-paths, as JSON can hold them.

    >>> from neupath import load
    >>> similar(load("toy"), "author", "Mike", k=1, limit=1)["metapaths"][0]["hits"]
    [{'rank': 1, 'id': 'Bob', 'name': None, 'score': 1.0}]
    """
    check_graph(hin)
    chosen = hin.schema.node_type(node_type)
    row = hin.row(chosen, query)
    paths, too_large = promising_metapaths(hin, chosen, row, fit)
    cards = [path.to_dict(k) for path in paths[:limit]]
    return {"query": describe_row(hin, chosen, row), "metapaths": cards, "too_large": too_large}


def _tells(scores: Sequence[float]) -> float:
    """Return how much hits tell, from 0 to 1: coverage times the mean share of different scores.

    Coverage is how much of a list of ten they fill. The shares are those among the best ten and among all hits, so that
    ties count most where they are seen first.

    >>> _tells([0.9, 0.8, 0.7]) > _tells([1.0, 1.0, 1.0]), _tells([1.0] * 10 + [0.5]) < _tells([1.0] + [0.5] * 10)
    (True, True)
    """
    listed = scores[:10]
    coverage = len(listed) / 10
    return coverage * (len(set(listed)) / len(listed) + len(set(scores)) / len(scores)) / 2


def _promising(schema: Schema, source: str) -> Iterator[MetaPath]:
    """List meta-paths out and back by one type, then by two; all relations between two types count together."""
    for half in _walks(schema, source, 1):
        yield MetaPath(schema, (*half, *(step.reversed() for step in reversed(half))))
    for half in _walks(schema, source, 2):
        if half[-1].target != source:
            yield MetaPath(schema, (*half, *(step.reversed() for step in reversed(half))))


def _walks(schema: Schema, source: str, length: int) -> Iterator[tuple[Step, ...]]:
    for node_type in schema.neighbours(source):
        links = schema.links(source, node_type)
        for step in [Step(links)] if node_type != source else [Step((link,)) for link in links]:
            if length == 1:
                yield (step,)
            else:
                yield from ((step, *rest) for rest in _walks(schema, node_type, length - 1))


def _half_path_work(hin: HIN, metapath: MetaPath) -> int:
    """Count the multiplications that the matrix of a half-path of at most two steps takes."""
    steps = metapath.half().steps
    if len(steps) == 1:
        return 0
    pairs = ((a, b) for a in steps[0].links for b in steps[1].links)
    return sum(multiplications(hin.matrix(a), hin.matrix(b)) for a, b in pairs)
