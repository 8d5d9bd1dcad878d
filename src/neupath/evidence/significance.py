"""Significance: how often pairs with the same degrees score as high in permuted graphs, by chance.

In graphs whose edges are permuted with all degrees kept, two nodes of a type with the same degrees in every permuted
relation are alike: relabelling one as the other changes nothing. So the null scores of a pair are those of all pairs
with the same degrees, pooled over all permuted graphs. Where weights differ, nodes are alike if also the weights agree
that permutations keep.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from neupath._runtime.disk_cache import Arrays
from neupath._runtime.files import write_whole
from neupath._runtime.progress import Progress, check_cancelled, no_progress
from neupath.engine.cache import cached, graph_cache
from neupath.engine.hits import Hits, check_whole
from neupath.engine.prepared import PreparedIndex
from neupath.engine.scorer import Scorer
from neupath.errors import QueryError
from neupath.evidence.permutation import Mixing, Permutations
from neupath.graph.edges import end_weights, mix64
from neupath.graph.hin import HIN, Floats, check_graph
from neupath.graph.metapath import MetaPath, Relation
from neupath.graph.nodes import Rows
from neupath.measures import Combination, GraphMeasure, PathMeasure

if TYPE_CHECKING:
    from neupath.engine.join import Joined

PERMUTATIONS = 200
_PER_GRAPH = 5  # null scores of a pair of classes that one permuted graph adds
_ROWS_AT_A_TIME = 64
_FEW_CLASSES = 4  # up to so many classes of queries, null scores with all targets are kept
_MOST_SCORES = 1 << 27  # of one question, and that a model keeps
_EQUAL = 1 - 1e-12  # scores of alike pairs may differ in the last digits
Counts = NDArray[np.int64]


# ---- Results -------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Significance:
    """The p-value of each hit of a query, and what it rests on."""

    p_values: tuple[float, ...]
    """How probable a score of at least the hit's is for a pair with these degrees in a permuted graph."""
    q_values: tuple[float, ...]
    """The p-values after the correction of Benjamini and Hochberg over the hits of this query."""
    permutations: int
    seed: int
    mixing: tuple[Mixing, ...]

    @property
    def resolution(self) -> float:
        """The smallest p-value that so many permutations can show."""
        return 1 / (self.permutations + 1)

    def columns(self) -> dict[str, tuple[object, ...]]:
        """Return what is known of each hit, by name."""
        return {"p_value": self.p_values, "q_value": self.q_values}

    def to_dict(self) -> dict[str, object]:
        mixing = [each.to_dict() for each in self.mixing]
        return {
            "permutations": self.permutations, "seed": self.seed, "resolution": self.resolution, "mixing": mixing
        }  # fmt: skip


def significance(
    scorer: Scorer,
    hits: Sequence[Hits],
    *,
    permutations: int = PERMUTATIONS,
    seed: int = 0,
    progress: Progress = no_progress,
) -> list[Significance]:
    """Return the p-value of every hit: the probability of its score by chance, given the degrees of both nodes.

    p = (1 + null scores of at least the hit's) / (1 + null scores), and never below 1 / (1 + permutations). The null
    scores are those of pairs with the same degrees in graphs whose edges are permuted within each relation. They are
    computed for the degrees that are needed, and cached with the graph; of a graph in a store also on disk.

    The correction takes the hits of one query as the tests that were made. They were chosen by their scores among all
    targets, so it is no bound on false hits among all targets.

    Parameters
    ----------
    scorer
        A fitted exact measure, also a combination or one over the whole graph.
    hits
        The hits of some queries, as `scorer.top_k` returns them, also with filters, but without the query itself.
    permutations
        How many permuted graphs.
    seed
        The seed of the permutations.
    progress
        Called with the number of relations that are permuted, then of permuted graphs that are compared.

    >>> from neupath import PathSim, load
    >>> scorer = PathSim("APVPA").fit(load("toy"))
    >>> [result] = significance(scorer, [scorer.top_k("Mike", k=2)], permutations=99)
    >>> result.resolution, len(result.p_values)
    (0.01, 2)
    """
    if isinstance(hits, Hits):
        raise QueryError("‹hits› is the hits of one query; give those of each query, such as [hits]", parameter="hits")
    model = null_model(scorer, permutations, seed)
    hin = scorer.hin_
    queries = [np.full(len(each), hin.row(scorer.source_type, each.query_id)) for each in hits]
    targets = [hin.rows(scorer.target_type, each.ids) for each in hits]
    if scorer.source_type == scorer.target_type:
        for each, query, ranked in zip(hits, queries, targets, strict=True):
            if np.any(query == ranked):
                raise QueryError(
                    f"{each.query!r} is among its own hits, and a node has no p-value with itself; search without the "
                    f"query itself"
                )
    scores = [np.array(each.scores) for each in hits]
    none = np.zeros(0, np.int64)
    p_values = model.p_values(
        np.concatenate([none, *queries]), np.concatenate([none, *targets]), np.concatenate([np.zeros(0), *scores]),
        progress,
    )  # fmt: skip
    ends = np.cumsum([len(each) for each in hits])
    return [
        Significance(tuple(p.tolist()), tuple(adjusted(p).tolist()), permutations, seed, model.mixing)
        for p in np.split(p_values, ends[:-1])
    ] if hits else []  # fmt: skip


def add_p_values(
    joined: "Joined",
    scorer: Scorer,
    *,
    permutations: int = PERMUTATIONS,
    seed: int = 0,
    progress: Progress = no_progress,
) -> None:
    """Add the columns p_value and q_value to the file of a join, which are those of `significance` for each query.

    Parameters
    ----------
    joined
        A finished join to a Parquet or CSV file.
    scorer
        The fitted exact measure that it ranked by.
    permutations
        How many permuted graphs.
    seed
        The seed of the permutations.
    progress
        Called with the number of relations that are permuted, then of permuted graphs that are compared.

    >>> from tempfile import TemporaryDirectory
    >>> from neupath import PathSim, join, load
    >>> hin = load("toy")
    >>> scorer = PathSim("APVPA").fit(hin)
    >>> with TemporaryDirectory() as folder:
    ...     joined = join(hin, scorer, f"{folder}/top.parquet", k=2)
    ...     add_p_values(joined, scorer, permutations=9)
    ...     joined.to_table().column_names[-2:]
    ['p_value', 'q_value']
    """
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet as pq

    check_single_file(joined.path)
    model, table = null_model(scorer, permutations, seed), joined.to_table()
    queries, targets = joined.rows_of(table)
    p_values = model.p_values(queries, targets, table["score"].to_numpy(), progress)
    starts = np.flatnonzero(np.diff(queries, prepend=-1))  # the pairs of a query stand together
    q_values = np.concatenate([np.zeros(0), *(adjusted(p) for p in np.split(p_values, starts[1:]) if len(p))])
    table = table.append_column("p_value", pa.array(p_values)).append_column("q_value", pa.array(q_values))
    write = pa.csv.write_csv if joined.path.suffix == ".csv" else pq.write_table
    write_whole(joined.path, lambda temporary: write(table, temporary))


def check_single_file(out: Path) -> None:
    """Raise unless p-values can be added to the result of a join."""
    if out.suffix not in (".parquet", ".csv"):
        raise QueryError(f"p-values are columns of one file, and {out} is a folder; give a name in .parquet or .csv")


def adjusted(p_values: Floats) -> Floats:
    """Return p-values after the correction of Benjamini and Hochberg, JRSS B 1995.

    >>> adjusted(np.array([0.01, 0.04, 0.03])).round(3).tolist()
    [0.03, 0.04, 0.04]
    """
    count = len(p_values)
    order = np.argsort(p_values, kind="stable")
    scaled = p_values[order] * count / np.arange(1, count + 1)
    result = np.empty(count)
    result[order] = np.minimum(1.0, np.minimum.accumulate(scaled[::-1])[::-1])
    return result


# ---- The null model ------------------------------------------------------------------------------
def null_model(scorer: Scorer, permutations: int, seed: int) -> "NullModel":
    """Return the null model of a scorer, cached with its graph."""
    check_significance(scorer, permutations, seed)
    hin, relations = scorer.hin_, relations_of(scorer)
    key = ("null scores", scorer.name, str(scorer.params()), permutations, seed)
    return cached(hin, key, lambda: NullModel(scorer, Permutations(hin, relations, permutations, seed), key))


def check_significance(scorer: Scorer, permutations: int, seed: int) -> None:
    """Raise unless a null model can be made of these."""
    check_whole("permutations", permutations, 1)
    check_whole("seed", seed, 0)
    permutable(scorer)


def permutable(scorer: Scorer) -> None:
    """Raise if a scorer is learned, since it would have to be trained again on every changed graph."""
    if isinstance(scorer, PreparedIndex):
        check_graph(scorer.hin_)
    if not isinstance(scorer, PathMeasure | GraphMeasure | Combination):
        raise QueryError(
            f"{scorer.name} is learned, and would have to be trained again on every changed graph; use an exact measure"
        )
    for path in _paths_of(scorer):
        path.require_plain_edges("this", scorer.hin_.parallel_relations)


def _paths_of(scorer: Scorer) -> list[MetaPath]:
    measures = scorer.measures_ if isinstance(scorer, Combination) else [scorer]
    return [measure.metapath_ for measure in measures if isinstance(measure, PathMeasure)]


def relations_of(scorer: Scorer) -> list[Relation]:
    """Return the relations from which a scorer computes its scores."""
    on_paths = dict.fromkeys(link.relation for path in _paths_of(scorer) for link in path.links)
    return list(on_paths or scorer.hin_.schema.relations)


def degree_classes(
    hin: HIN, node_type: str, relations: Sequence[Relation], paths: Sequence[MetaPath] = ()
) -> Rows:  # fmt: skip
    """Number the nodes of a type so that nodes which permutations treat alike have the same number.

    Where the meta-paths of a measure have conditions on such nodes, only nodes that meet the same ones are alike.
    """
    columns = [np.zeros(hin.num_nodes(node_type), np.int64)]
    for relation in relations:
        matrix = hin.matrices[relation]
        if relation.source == node_type:
            columns.append(np.diff(matrix.indptr).astype(np.int64))
            if relation.directed and matrix.nnz and np.ptp(matrix.data):
                columns.append(_digests(matrix.data, matrix.indptr))
        if relation.target == node_type and relation.directed:
            columns.append(np.bincount(matrix.indices, minlength=matrix.shape[1]).astype(np.int64))
    positions = [end for path in paths for end in zip(path.node_types, path.filters, strict=True)]
    here = dict.fromkeys(own for at, own in positions if at == node_type and own is not None)
    met = (end_weights(own, hin.nodes[node_type]) for own in here)
    columns += [np.unique(weights, return_inverse=True)[1].astype(np.int64) for weights in met]
    return np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _digests(weights: Floats, starts: NDArray[Any]) -> Rows:
    """Return a number per row that depends on its weights, in any order."""
    with np.errstate(over="ignore"):
        hashes = mix64(weights.view(np.uint64) + np.uint64(1))
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(hashes, dtype=np.uint64)])
        digests: Rows = (sums[starts[1:]] - sums[starts[:-1]]).view(np.int64)
        return digests


@dataclass(frozen=True)
class _ClassMembers:
    """The nodes of each class: those of class c are rows[starts[c]:starts[c+1]]."""

    classes: Rows
    rows: Rows
    starts: Rows

    @classmethod
    def of(cls, classes: Rows) -> "_ClassMembers":
        counts = np.bincount(classes)
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return cls(classes, np.argsort(classes, kind="stable").astype(np.int64), starts)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def size(self, which: Any) -> Any:
        return self.starts[which + 1] - self.starts[which]


class NullModel:
    """The null scores of a measure by the classes of both nodes, computed for the classes that are asked for."""

    def __init__(self, scorer: Scorer, permutations: Permutations, key: tuple[Hashable, ...]) -> None:
        self._scorer, self._permutations, self._key = scorer, permutations, key
        hin, relations = permutations.hin, permutations.relations
        self._sources = _ClassMembers.of(degree_classes(hin, scorer.source_type, relations, _paths_of(scorer)))
        self._targets = _ClassMembers.of(degree_classes(hin, scorer.target_type, relations, _paths_of(scorer)))
        self._scores: dict[int, Floats] = {}

    @cached_property
    def mixing(self) -> tuple[Mixing, ...]:
        return self._permutations.mixing

    @property
    def num_bytes(self) -> int:
        return sum(scores.nbytes for scores in self._scores.values())

    def p_values(self, queries: Rows, targets: Rows, scores: Floats, progress: Progress = no_progress) -> Floats:
        """Return the p-value of each pair of rows with its score."""
        above, equal, total = self.count(queries, targets, scores, progress)
        floor = 1 / (len(self._permutations) + 1)
        return np.maximum(floor, (1 + above + equal) / (1 + total))

    def count(
        self, queries: Rows, targets: Rows, scores: Floats, progress: Progress = no_progress
    ) -> tuple[Counts, Counts, Counts]:
        """Count the null scores above and at each pair's score, and all of them."""
        keys = self._sources.classes[queries] * len(self._targets) + self._targets.classes[targets]
        result = np.zeros((3, len(keys)), np.int64)
        if not len(keys):
            return result[0], result[1], result[2]
        known = self._fill(np.unique(keys), progress)
        order = np.argsort(keys, kind="stable")
        distinct, starts = np.unique(keys[order], return_index=True)
        for key, places in zip(distinct.tolist(), np.split(order, starts[1:]), strict=True):
            null = known[key]
            above = len(null) - np.searchsorted(null, scores[places] / _EQUAL, side="right")
            reached = len(null) - np.searchsorted(null, scores[places] * _EQUAL)
            result[:, places] = above, reached - above, np.full(len(places), len(null))
        return result[0], result[1], result[2]

    def _fill(self, keys: Rows, progress: Progress) -> dict[int, Floats]:
        """Return the null scores of pairs of classes, and compute those that are neither in memory nor on disk."""
        missing = np.array([key for key in keys.tolist() if key not in self._scores], np.int64)
        sources = np.unique(missing // len(self._targets))
        are_few = len(sources) <= _FEW_CLASSES
        if are_few and (read := self._read(sources)):
            self._scores |= read
            self._fit_in_cache()
        known = {key: self._scores[key] for key in keys.tolist() if key in self._scores}
        missing = np.setdiff1d(keys, list(known))
        if not len(missing):
            return known
        sources = np.unique(missing // len(self._targets))
        each = len(self._permutations) * _PER_GRAPH
        if len(sources) * len(self._targets) * each <= _MOST_SCORES and are_few:
            # Other targets of the same queries are asked for next, as a rule.
            every = (sources[:, None] * len(self._targets) + np.arange(len(self._targets))).ravel()
            missing = np.setdiff1d(every, list(self._scores))
        size = len(missing) * each
        if size > _MOST_SCORES:
            raise QueryError(
                f"{len(missing):,} pairs of degrees need {size:,} null scores; ask for fewer queries or ‹permutations›",
                parameter="permutations",
            )
        parts: list[list[Floats]] = [[] for _ in missing]
        for number, graph in enumerate(self._permutations.graphs(progress)):
            check_cancelled()
            progress("comparing", number, len(self._permutations))
            self._score(number, self._scorer.bind(graph), missing, parts)
        progress("comparing", len(self._permutations), len(self._permutations))
        found = {key: np.sort(np.concatenate(part)) for key, part in zip(missing.tolist(), parts, strict=True)}
        self._scores |= found
        if are_few:
            self._write(sources)
        self._fit_in_cache()
        return known | found

    def _fit_in_cache(self) -> None:
        """Drop the oldest scores above the limit, and let the cache of the graph count the bytes again."""
        size = sum(map(len, self._scores.values()))
        while size > _MOST_SCORES:
            size -= len(self._scores.pop(next(iter(self._scores))))
        if self.mixing:  # which is cached, too, and before the model: the newest entry stays, however large
            graph_cache(self._permutations.hin).put(self._key, self)

    # -- On disk: one entry per class of queries, with all classes of targets
    def _write(self, sources: Rows) -> None:
        disk, count = self._permutations.hin.disk_cache, len(self._targets)
        if disk is None:
            return
        for source in sources.tolist():
            every = range(source * count, (source + 1) * count)
            if all(key in self._scores for key in every):
                scores = [self._scores[key] for key in every]
                starts = np.cumsum([0, *map(len, scores)])
                disk.put(repr((*self._key, source)), Arrays({"scores": np.concatenate(scores), "starts": starts}))

    def _read(self, sources: Rows) -> dict[int, Floats]:
        disk, count = self._permutations.hin.disk_cache, len(self._targets)
        scores: dict[int, Floats] = {}
        if disk is None:
            return scores
        for source in sources.tolist():
            entry = disk.find(repr((*self._key, source)))
            if entry is not None and entry.arrays["starts"].shape == (count + 1,):
                parts = np.split(entry.arrays["scores"], entry.arrays["starts"][1:-1])
                scores |= {source * count + target: part for target, part in enumerate(parts)}
        return scores

    def _score(self, number: int, scorer: Scorer, keys: Rows, parts: list[list[Floats]]) -> None:
        """Add the scores of one permuted graph: of a random node of each source class with some of each target class.

        What is random depends on the seed, the number of the graph and the classes alone, not on which are asked for.
        """
        source_of_key, target_of_key = np.divmod(keys, len(self._targets))
        sources, first = np.unique(source_of_key, return_index=True)  # keys are sorted
        sizes = self._sources.size(sources)
        chosen = self._sources.rows[self._sources.starts[sources] + self._random(number, sources, 0) % sizes]
        is_same_type = scorer.source_type == scorer.target_type
        bounds = np.append(first, len(keys))
        for start in range(0, len(sources), _ROWS_AT_A_TIME):
            block = slice(start, start + _ROWS_AT_A_TIME)
            rows = scorer.score_rows(chosen[block])
            for at, (query, scores) in enumerate(zip(chosen[block].tolist(), rows, strict=True), start):
                places = np.arange(bounds[at], bounds[at + 1])
                targets = target_of_key[places]
                for place, picked in zip(places.tolist(), self._pick(number, keys[places], targets), strict=True):
                    parts[place].append(scores[picked[picked != query] if is_same_type else picked])

    def _pick(self, number: int, keys: Rows, targets: Rows) -> list[Rows]:
        """Return some nodes of each target class: all of a small one, random ones of others."""
        starts, sizes = self._targets.starts[targets], self._targets.size(targets)
        offsets = np.stack([self._random(number, keys, 1 + i) % sizes for i in range(_PER_GRAPH)], axis=1)
        rows = self._targets.rows
        return [
            rows[start : start + size] if size <= _PER_GRAPH + 1 else rows[start + np.unique(places)]
            for start, size, places in zip(starts.tolist(), sizes.tolist(), offsets, strict=True)
        ]

    def _random(self, number: int, keys: Rows, salt: int) -> Rows:
        with np.errstate(over="ignore"):
            base = np.uint64(
                mix64(np.array([(self._permutations.seed * 8191 + number * 31 + salt) % 2**64], np.uint64))[0]
            )
            numbers: Rows = (mix64(mix64(keys.astype(np.uint64) + base) + base) >> np.uint64(2)).astype(np.int64)
            return numbers


# ---- Hits with what is known of them -------------------------------------------------------------
def hits_with(hits: Hits, **evidence: Any) -> dict[str, object]:
    """Return hits as JSON with more fields, such as p-values, and what these rest on.

    Parameters
    ----------
    hits
        The hits of a query.
    evidence
        By its name in the result, a `Significance` or a `Stability` of these hits; None is left out.

    >>> from neupath import PathSim, load
    >>> scorer = PathSim("APVPA").fit(load("toy"))
    >>> hits = scorer.top_k("Mike", k=1)
    >>> [result] = significance(scorer, [hits], permutations=9)
    >>> sorted(hits_with(hits, significance=result)["hits"][0])
    ['id', 'name', 'p_value', 'q_value', 'rank', 'score']
    """
    content = hits.to_dict()
    rows: Any = content.pop("hits")
    for name, known in evidence.items():
        if known is not None:
            content[name] = known.to_dict()
            for column, values in known.columns().items():
                rows = [row | {column: value} for row, value in zip(rows, values, strict=True)]
    return content | {"hits": rows}
