"""Scorer: the contract of every measure and model, and the protocols by which learned ones follow a live graph."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from inspect import signature
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, TypedDict, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from neupath._runtime.files import checksum, write_text
from neupath._runtime.progress import check_cancelled
from neupath.engine.hits import Hit, Hits, QuerySet, Search, check_whole, hits_of_rows
from neupath.engine.products import adjacencies
from neupath.engine.topk import (
    HitLists,
    Ranking,
    best_of,
    check_threads,
    is_one_node,
    range_of_scores,
    stacked,
    top_k_of_scores,
    with_unrelated,
    without,
)
from neupath.engine.walk import walk_rows
from neupath.errors import QueryError, SourceError, did_you_mean, listed
from neupath.graph.hin import HIN, Floats
from neupath.graph.metapath import MetaPath, Relation
from neupath.graph.nodes import Id, Mask, NodeMatch, NodeRef, Nodes, Rows

FILE = "config.json"
_QUERIES_PER_BLOCK = 64
_FEW_EXCLUDED = 118  # targets that a query may leave out by ranking as many more: with k = 10, by the index
_BEYOND, _FURTHER = 100, 10  # how many more hits are looked at for ties, and by how much more each time
_POOL, _POOL_PER_HIT, _LARGEST_POOL = 100, 10, 10_000
Many = list[Id] | list[str] | list[int] | list[NodeMatch] | Sequence[Hit] | tuple[Id, ...] | NDArray[Any]


# ---- Following a live graph ----------------------------------------------------------------------
# The live graph calls `Scorer.updater`, so it needs to know neither the models nor torch.
RowEdge = tuple[Relation, int, int, float]  # source and target row, and the new weight; 0 removes the edge


@dataclass(frozen=True)
class RowChange:
    """One version of a live graph by rows: the new weights of edges, and new nodes at the end of their types.

    It is the third and last shape of an update; see `neupath.store.update`.
    """

    version: int
    edges: Sequence[RowEdge]
    nodes: Mapping[str, Nodes] = field(default_factory=dict)


Binding = Callable[[HIN], "Scorer"]  # returns the scorer over the version of a graph for which the binding was made


class Updater(ABC):
    """What a learned scorer computes from a live graph, updated where a change reaches it."""

    @abstractmethod
    def apply(self, hin: HIN, change: RowChange) -> None:
        """Update to a graph after a change."""

    @abstractmethod
    def snapshot(self) -> Binding:
        """Return a binding to this version, which later changes do not affect."""


# ---- The contract --------------------------------------------------------------------------------
class SearchOptions(TypedDict, total=False):
    """The options of `Scorer.top_k`."""

    include_query: bool
    zeros: bool
    among: Sequence[NodeRef] | None
    where: str | Sequence[str]
    unless: "MetaPaths"
    diverse: float | None
    threads: int | None


MetaPaths = str | MetaPath | Sequence[str | MetaPath]
"""A meta-path, or several."""


class Scorer(ABC):
    """Scores how similar targets are to a query, once fitted to a graph.

    Public methods take ids, or names where they are unambiguous, and return ids. Methods that end in `_rows` take and
    return rows, the positions of nodes within their type.
    """

    name: ClassVar[str]
    """Its name on the command line and in JSON."""
    exact: bool
    """Whether scores are those of the formula but for rounding, neither learned nor estimated."""
    others: ClassVar[str] = "have score 0"
    """What to say of targets that are no hits."""
    is_signed: bool = False
    """Whether it gives scores below 0 to targets that a search does not list."""
    ranks_only: ClassVar[bool] = False
    """Whether its scores only order targets, and are no estimates of labels."""
    saved_files: ClassVar[tuple[str, ...]] = ()
    """What `save` writes besides its description."""
    _shown: ClassVar[tuple[str, ...]] = (
        "bind", "count_ties", "exact", "fit", "get_params", "metapath_text", "name", "params", "save", "score",
        "scores", "set_params", "source_type", "target_type", "top_k",
    )  # fmt: skip
    """What `dir` lists besides the parameters and what `fit` sets; subclasses add to it."""
    hin_: HIN
    """The graph it is fitted to."""

    @abstractmethod
    def fit(self, hin: HIN) -> Self:
        """Prepare to answer queries over a graph; return self."""

    def bind(self, hin: HIN) -> Self:
        """Return a new scorer, ready to search, with the same parameters and learned weights over another graph.

        This scorer does not change. A trained model needs a graph with the same schema.
        """
        return type(self)(**self.params()).fit(hin)

    @property
    @abstractmethod
    def source_type(self) -> str:
        """The node type of queries."""

    @property
    def target_type(self) -> str:
        """The node type of targets."""
        return self.source_type

    @property
    def metapath_text(self) -> str | None:
        """The meta-path in its canonical spelling; None for a scorer without one."""
        return None

    @abstractmethod
    def params(self) -> dict[str, object]:
        """Return the constructor's arguments as JSON values."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002
        """Return the constructor's arguments, as scikit-learn's `clone` and `Pipeline` ask for them."""
        names = [name for name in signature(type(self)).parameters if name != "self"]
        return {name: getattr(self, name) for name in names if hasattr(self, name)}

    def set_params(self, **params: Any) -> Self:
        """Set arguments of the constructor; the scorer must be fitted again."""
        known = self.get_params()
        for name in params:
            if name not in known:
                raise QueryError(
                    f"{type(self).__name__} has no parameter {name!r} (it has {listed(known)})"
                    f"{did_you_mean(name, known)}"
                )
        self.__init__(**(known | params))  # type: ignore[misc]
        return self

    def __dir__(self) -> list[str]:
        """List what users call and read, for completion. Methods that joins and live graphs call are left out."""
        shown = {name for kind in type(self).__mro__ for name in vars(kind).get("_shown", ())}
        return sorted(shown | {name for name in vars(self) if not name.startswith("_")})

    def __repr__(self) -> str:
        params = ", ".join(f"{name}={value!r}" for name, value in self.params().items())
        return f"{type(self).__name__}({params})"

    @abstractmethod
    def score_rows(self, queries: Rows) -> Floats:
        """Return the score of each query with every target; shape (queries, targets)."""

    def rank_rows(self, queries: Rows, skipped: Rows, k: int, candidates: Mask | None, threads: int | None) -> Ranking:  # noqa: ARG002
        """Return the k best targets of each query, leaving out the skipped one of each (-1: none).

        This computes the scores of all targets; measures that relate few targets to a query override it.
        """
        blocks = [slice(at, at + _QUERIES_PER_BLOCK) for at in range(0, len(queries), _QUERIES_PER_BLOCK)]

        def rank(block: slice) -> Ranking:
            check_cancelled()
            return top_k_of_scores(self.score_rows(queries[block]), skipped[block], k, candidates)

        return stacked([rank(block) for block in blocks])

    def rank_row(self, row: int, skipped: int, k: int) -> tuple[list[int], list[float]]:
        """Return the rows and scores of the k best targets of one query, leaving out the skipped one (-1: none)."""
        ranking = self.rank_rows(np.array([row]), np.array([skipped]), k, None, None)
        size = int(ranking.sizes[0])
        return ranking.rows[0, :size].tolist(), ranking.scores[0, :size].tolist()

    def range_rows(self, queries: Rows, skipped: Rows, min_score: float, threads: int | None = None) -> HitLists:  # noqa: ARG002
        """Return all targets with at least a score, leaving out the skipped one of each query (-1: none)."""
        return range_of_scores(self.score_rows(queries), skipped, min_score)

    def score(self, query: NodeRef, target: NodeRef) -> float:
        """Return the score of one pair."""
        hin = self._fitted()
        row, column = hin.row(self.source_type, query), hin.row(self.target_type, target)
        return float(self.score_targets(row, np.array([column]))[0])

    def scores(self, query: NodeRef, targets: Sequence[NodeRef] | None = None) -> Floats:
        """Return the score of a query with each of some targets, or with every target in node order; shape (targets,).

        >>> from neupath import PathSim, load
        >>> PathSim("APVPA").fit(load("toy")).scores("Mike", ["Mary", "Bob"]).tolist()
        [0.8, 1.0]
        """
        row = self._fitted().row(self.source_type, query)
        if targets is None:
            every: Floats = self.score_rows(np.array([row]))[0]
            return every
        names = [targets] if isinstance(targets, str) else list(targets)
        return self.score_targets(row, self._fitted().rows(self.target_type, names))

    def score_targets(self, row: int, targets: Rows) -> Floats:
        """Return the score of one query with some targets, all given as rows; shape (targets,).

        This computes the scores of all targets; measures that can score few in less time override it.
        """
        scores: Floats = self.score_rows(np.array([row]))[0][targets]
        return scores

    def set_scores(self, members: Rows, weights: Floats) -> Floats:
        """Return the score of every target with a set of nodes, given as rows with weights; shape (targets,)."""
        if is_one_node(weights):
            scores: Floats = self.score_rows(members)[0]
            return scores
        raise QueryError(
            f"{self.name} compares nodes one by one, and has no rows to add up for a set; search for one node at a "
            f"time, or by a measure along a meta-path"
        )

    def own_targets(self, members: Rows) -> Rows:
        """Return the members of a query that are targets, too, and that a search leaves out."""
        return members if self.source_type == self.target_type else members[:0]

    def rank_set(
        self, members: Rows, weights: Floats, left_out: Rows, k: int, candidates: Mask | None
    ) -> tuple[Rows, Floats]:
        """Return the rows and scores of the k best targets of a set, with scores above 0, without some rows."""
        return best_of(self.set_scores(members, weights), left_out, k, candidates)

    @overload
    def top_k(self, query: Mapping[Any, float], k: int = 10, **options: Unpack[SearchOptions]) -> Hits: ...
    @overload
    def top_k(
        self, query: NodeRef | Many, k: int = 10, *, together: Literal[True], **options: Unpack[SearchOptions]
    ) -> Hits: ...
    @overload
    def top_k(self, query: NodeRef, k: int = 10, **options: Unpack[SearchOptions]) -> Hits: ...
    @overload
    def top_k(self, query: Many, k: int = 10, **options: Unpack[SearchOptions]) -> list[Hits]: ...
    def top_k(
        self,
        query: NodeRef | Many | Mapping[Any, float],
        k: int = 10,
        *,
        together: bool = False,
        **options: Unpack[SearchOptions],
    ) -> Hits | list[Hits]:
        """Return the k targets most similar to a query, best first, ties in node order; a list of queries gives a list.

        Parameters
        ----------
        query
            An id or unambiguous name, or what has an id, such as a hit or a match of `hin.find`; or several of these. A
            dictionary of nodes with weights is one query, a set: the measure compares the weighted sum of their
            half-path rows with each target. Its members are left out, and so are targets that score 0 or less, as with
            negative weights.
        k
            The number of hits.
        together
            Whether several nodes are one set: that of their mean, so that a set of equals scores like one of them.
        include_query
            Whether to rank the query itself, too.
        zeros
            Whether to fill up with targets of score 0.
        among
            The ids or names of the only targets to rank.
        where
            Conditions on the attributes of targets, such as "year >= 2000".
        unless
            A meta-path, or several: targets that one of them relates to the query are left out.
        diverse
            λ, above 0 and at most 1: choose the hits one by one, each time the target y with the highest
            λ·s(query, y) - (1 - λ)·max s(z, y), z the hits so far, from the 10·k best: at least 100, at most 10,000
            unless k is more.
        threads
            The number of threads; one per core by default.

        >>> from neupath import PathSim, load
        >>> pathsim = PathSim("APVPA").fit(load("toy"))
        >>> pathsim.top_k("Mike", k=2, among=["Jim", "Mary"]).ids
        ('Mary', 'Jim')
        >>> pathsim.top_k({"Mary": 1, "Jim": -0.01}, k=1).ids
        ('Mike',)
        """
        if not options and not together and type(k) is int and isinstance(query, str | int | np.integer):
            hits = self._top_k_at_once(query, k)
            if hits is not None:
                return hits
        if together or isinstance(query, Mapping):
            return self._top_k_of_set(query, k, **options)
        if isinstance(query, str) or not isinstance(query, Iterable):
            return self.top_k_rows(self._find_rows([query]), k, **options)[0]
        return self.top_k_rows(self._find_rows(list(query)), k, **options)

    def _top_k_at_once(self, query: NodeRef, k: int) -> Hits | None:  # noqa: ARG002
        """Return the hits of an id or name where all is prepared for it; None where it is not."""
        return None

    def find_set(self, query: Mapping[Any, float] | Iterable[NodeRef] | QuerySet) -> tuple[QuerySet, Rows, Floats]:
        """Return a set by the ids of its members, and their rows and weights."""
        given = query if isinstance(query, QuerySet) else QuerySet.read(query)
        rows = self._find_rows(given.ids)
        return QuerySet(self._queries.ids_at(rows.tolist()), given.weights).checked(), rows, np.array(given.weights)

    def _find_rows(self, queries: Sequence[NodeRef]) -> Rows:
        return self._fitted().rows(self.source_type, queries)

    def top_k_rows(self, rows: Rows, k: int, **options: Unpack[SearchOptions]) -> list[Hits]:
        """Return the hits of queries given as rows; the options are those of `top_k`."""
        request = self._request(rows, k, options)
        k, keeps_query, candidates, excluded = request.k, request.keeps_query, request.candidates, request.excluded
        skipped = np.full(len(rows), -1, dtype=np.int64) if keeps_query else rows
        ranking = self.rank_filtered(rows, skipped, request.wanted, candidates, excluded, request.threads)
        if request.zeros:
            below = [np.flatnonzero(scores < 0) for scores in self.score_rows(rows)] if self.is_signed else []
            both = [np.concatenate(own) for own in zip(excluded, below, strict=True)] if excluded and below else []
            ranking = with_unrelated(ranking, skipped, k, len(self._targets), candidates, both or excluded or below)
        eligible = np.full(len(rows), request.search.eligible)
        if not keeps_query:
            eligible -= 1 if candidates is None else candidates[rows]
        return [
            self._hits(
                request, self._queries.id(row), int(eligible[q]), ranking.rows[q, :size], ranking.scores[q, :size],
                excluded[q][excluded[q] != skipped[q]] if excluded else None,
            )
            for q, (row, size) in enumerate(zip(rows.tolist(), ranking.sizes.tolist(), strict=True))
        ]  # fmt: skip

    def _top_k_of_set(self, nodes: Any, k: int, **options: Unpack[SearchOptions]) -> Hits:
        """Return the hits of a set; the options are those of `top_k`."""
        query, members, weights = self.find_set(nodes)
        request = self._request(members, k, options)
        k, candidates, excluded = request.k, request.candidates, request.excluded
        own = members[:0] if request.keeps_query else members
        left_out = np.unique(np.concatenate([own, *excluded]))
        rows, scores = self.rank_set(members, weights, left_out, request.wanted, candidates)
        if request.zeros and len(rows) < k:
            allowed = self.set_scores(members, weights) == 0
            allowed[left_out] = False
            fill = np.flatnonzero(allowed if candidates is None else allowed & candidates)[: k - len(rows)]
            rows, scores = np.concatenate([rows, fill]), np.concatenate([scores, np.zeros(len(fill))])
        eligible = request.search.eligible - (len(own) if candidates is None else int(candidates[own].sum()))
        others = np.setdiff1d(np.concatenate(excluded), own) if excluded else None
        return self._hits(request, query, eligible, rows, scores, others)

    def _hits(
        self, request: "_Request", query: Id | QuerySet, eligible: int, rows: Rows, scores: Floats,
        excluded: Rows | None,
    ) -> Hits:  # fmt: skip
        """Return the hits of a query, a node or a set, from its ranking and what it leaves out besides itself."""
        if request.diverse is not None:
            rows, scores = self._diversified(rows, scores, request.k, request.diverse)
        search = request.search._replace(eligible=eligible)
        if isinstance(query, QuerySet) and min(query.weights) < 0:
            search = search._replace(signed=True)
        if excluded is not None:
            count = len(excluded) if request.candidates is None else int(request.candidates[excluded].sum())
            search = search._replace(eligible=eligible - count, excluded=count, unless=request.unless)
        return hits_of_rows(query, search, rows.tolist(), scores.tolist())

    def count_ties(self, hits: Hits, k: int, **options: Unpack[SearchOptions]) -> int:
        """Return how many targets score as the last of the k hits does, itself included, whether they are hits or not.

        `hits` are those of `top_k` with the same k and options.

        >>> from neupath import PathSim, load
        >>> pathsim = PathSim("APVPA").fit(load("toy"))
        >>> pathsim.count_ties(pathsim.top_k("Mike", k=2), 2)
        1
        """
        if not len(hits):
            return 0
        query = hits.query.as_dict() if isinstance(hits.query, QuerySet) else hits.query
        wanted, last, scores = k, hits.scores[-1], hits.scores
        while len(scores) == wanted and scores[-1] == last:
            wanted = wanted + _BEYOND if wanted == k else wanted * _FURTHER
            scores = self.top_k(query, wanted, **options).scores
        return scores.count(last)

    def _request(self, rows: Rows, k: int, options: SearchOptions) -> "_Request":
        """Check the options of a search from some rows, and find what they leave out."""
        check_names("top_k", options, ["k", "together", *SearchOptions.__annotations__])
        k, zeros, diverse = check_whole("k", k, 1), options.get("zeros", False), options.get("diverse")
        threads, unless = options.get("threads"), options.get("unless", ())
        check_threads(threads)
        candidates = self.hin_.candidates(self.target_type, among=options.get("among"), where=options.get("where", ()))
        eligible = len(self._targets) if candidates is None else int(candidates.sum())
        search = Search(
            self.metapath_text, self.name, self.exact, self._targets, self.target_type, eligible, k, zeros, self.others,
            signed=self.is_signed,
        )  # fmt: skip
        return _Request(
            search=search,
            k=k,
            wanted=k if diverse is None else self._check_diverse(diverse, zeros, k),
            keeps_query=options.get("include_query", False) or self.source_type != self.target_type,
            zeros=zeros,
            candidates=candidates,
            excluded=self.excluded_rows(rows, unless),
            unless=" or ".join(map(str, metapath_list(unless))),
            diverse=diverse,
            threads=threads,
        )

    # -- Filters of a search and of a join
    def excluded_rows(self, rows: Rows, unless: MetaPaths) -> list[Rows]:
        """Return the targets that one of some meta-paths relates to each query; an empty list without meta-paths."""
        hin = self._fitted()
        texts = metapath_list(unless)
        paths = [path if isinstance(path, MetaPath) else hin.metapath(path) for path in texts]
        for path in paths:
            if (path.source, path.target) != (self.source_type, self.target_type):
                raise QueryError(
                    f"‹unless› is {path}, which leads from {path.source} to {path.target}; this search leads from "
                    f"{self.source_type} to {self.target_type}, so give a meta-path that does as well",
                    parameter="unless",
                )
        related = [walk_rows(adjacencies(hin, path), rows) for path in paths]
        return [
            np.unique(np.concatenate([each.indices[each.indptr[q] : each.indptr[q + 1]] for each in related]))
            for q in range(len(rows) if paths else 0)
        ]

    def rank_filtered(
        self, rows: Rows, skipped: Rows, k: int, candidates: Mask | None, excluded: Sequence[Rows], threads: int | None
    ) -> Ranking:
        """Return the k best targets of each query, as `rank_rows` does, without those excluded for it.

        A query that excludes few ranks as many more, and one that excludes many has candidates of its own.
        """
        if not excluded:
            return self.rank_rows(rows, skipped, k, candidates, threads)
        sizes = np.array([len(own) for own in excluded])
        few, many = np.flatnonzero(sizes <= _FEW_EXCLUDED), np.flatnonzero(sizes > _FEW_EXCLUDED)
        more = int(sizes[few].max(initial=0))
        ranking = self.rank_rows(rows[few], skipped[few], k + more, candidates, threads)
        shorter = without(ranking, [excluded[q] for q in few.tolist()], k)
        parts = dict(zip(few.tolist(), _each(shorter), strict=True))
        for q in many.tolist():
            allowed = np.ones(len(self._targets), dtype=np.bool_) if candidates is None else candidates.copy()
            allowed[excluded[q]] = False
            parts[q] = self.rank_rows(rows[[q]], skipped[[q]], k, allowed, threads)
        return stacked([parts[q] for q in range(len(rows))])

    def _check_diverse(self, diverse: float, zeros: bool, k: int) -> int:
        """Return the size of the pool that diverse hits are chosen from; raise if they cannot be."""
        if isinstance(diverse, bool) or not isinstance(diverse, int | float) or not 0 < diverse <= 1:
            raise QueryError(
                f"‹diverse› is {diverse!r}; give a number above 0, where hits differ most, up to 1, the plain ranking",
                parameter="diverse",
            )
        if zeros:
            raise QueryError("‹diverse› chooses among related targets, and ‹zeros› adds others; leave out one of them")
        if self.source_type != self.target_type:
            raise QueryError(
                f"‹diverse› compares hits with each other, but {self.name} here compares {self.source_type} with "
                f"{self.target_type} nodes; leave it out, or use a meta-path that ends where it begins",
                parameter="diverse",
            )
        return max(k, _POOL, min(_POOL_PER_HIT * k, _LARGEST_POOL))

    def _diversified(self, pool: Rows, scores: Floats, k: int, share: float) -> tuple[Rows, Floats]:
        """Choose k of a ranked pool by maximal marginal relevance (Carbonell, Goldstein, SIGIR 1998)."""
        nearest, left, chosen = np.zeros(len(pool)), np.ones(len(pool), dtype=np.bool_), []
        for _ in range(min(k, len(pool))):
            check_cancelled()
            at = int(np.argmax(np.where(left, share * scores - (1 - share) * nearest, -np.inf)))
            left[at] = False
            chosen.append(at)
            nearest = np.maximum(nearest, self.score_targets(int(pool[at]), pool))
        return pool[chosen], scores[chosen]

    @property
    def _queries(self) -> Nodes:
        return self._fitted().nodes[self.source_type]

    @property
    def _targets(self) -> Nodes:
        return self._fitted().nodes[self.target_type]

    def _fitted(self) -> HIN:
        if not hasattr(self, "hin_"):
            raise QueryError(f"this {type(self).__name__} has no graph yet; call fit(hin) first")
        return self.hin_

    def fingerprint(self) -> str:
        """Return what distinguishes it from scorers with the same parameters: nothing unless it has learned."""
        return ""

    @property
    def identity(self) -> object | None:
        """An object that all bound copies of a trained model share; None for a scorer that learns nothing."""
        return None

    def updater(self, hin: HIN) -> Updater | None:  # noqa: ARG002
        """Return what updates this scorer with a live graph; None where it must be bound to each version."""
        return None

    def save(self, folder: str | Path) -> Path:
        """Write the scorer, without its graph, to a folder; `load_scorer` reads it back."""
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        checksums = {name: checksum(target / name, name) for name in self.saved_files}
        content = {"scorer": self.name, "params": self.params(), "files": checksums}
        content = content | {"sha256": _digest(content)}
        write_text(target / FILE, json.dumps(content, indent=2, ensure_ascii=False) + "\n")
        return target


class LearnedScorer(Scorer):
    """Base class of scorers that learn: `_score_rows` scores the queries that something is known of.

    A query from which no path leads to any target but itself has no hits, and the score 0 with every target: whatever
    a model computes for it says nothing of how similar anything is.
    """

    exact = False
    _shown = ("is_cold",)
    lists_zeros: ClassVar[bool] = True
    """Whether a target with the score 0 can be a hit; it cannot where 0 is the score of all that nothing relates."""

    @abstractmethod
    def _score_rows(self, queries: Rows) -> Floats:
        """Return the score of each of some queries, none of them cold, with every target; (queries, targets)."""

    def score_rows(self, queries: Rows) -> Floats:
        cold = self._cold(queries)
        if not cold.any():
            return self._score_rows(queries)
        scores = np.zeros((len(queries), len(self._targets)))
        if not cold.all():
            scores[~cold] = self._score_rows(queries[~cold])
        return scores

    def rank_rows(self, queries: Rows, skipped: Rows, k: int, candidates: Mask | None, threads: int | None) -> Ranking:
        ranking = super().rank_rows(queries, skipped, k, candidates, threads)
        sizes = ranking.sizes.copy()
        if not self.lists_zeros:
            is_hit = (ranking.scores > 0) & (np.arange(ranking.scores.shape[1]) < sizes[:, None])
            sizes = is_hit.sum(axis=1)  # the others are last
        unscored = np.array([at for at in np.flatnonzero(sizes) if ranking.scores[at, 0] == 0], dtype=np.int64)
        sizes[unscored[self._cold(queries[unscored])]] = 0
        return replace(ranking, sizes=sizes)

    def is_cold(self, query: NodeRef) -> bool:
        """Whether no path of any length leads from a query to a target other than itself."""
        return bool(self._cold(np.array([self._fitted().row(self.source_type, query)]))[0])

    def _cold(self, queries: Rows) -> Mask:
        hin, ends = self._fitted(), (self.source_type, self.target_type)
        return np.array([not _reaches_any(hin, *ends, query) for query in queries.tolist()], dtype=np.bool_)


_FIRST_ROWS = 16


def _reaches_any(hin: HIN, source_type: str, target_type: str, query: int) -> bool:
    """Whether a path of any length leads from a query to some target other than itself.

    It follows a few nodes at a time, and twice as many each time, since nearly all queries reach one at once.
    """
    visited = {source_type: np.zeros(hin.num_nodes(source_type), dtype=np.bool_)}
    visited[source_type][query] = True
    pending, most = [(source_type, np.array([query]))], _FIRST_ROWS
    while pending:
        own_type, rows = pending.pop()
        if len(rows) > most:
            pending.append((own_type, rows[most:]))
        for link in hin.schema.links_from(own_type):
            seen = visited.setdefault(link.target, np.zeros(hin.num_nodes(link.target), dtype=np.bool_))
            matrix = hin.matrix(link)
            ends = np.concatenate([matrix.indices[matrix.indptr[r] : matrix.indptr[r + 1]] for r in rows[:most]])
            new = np.unique(ends[~seen[ends]])
            if len(new) and link.target == target_type:
                return True
            if len(new):
                seen[new] = True
                pending.append((link.target, new))
        most *= 2
    return False


def check_names(function: str, options: Iterable[str], known: Sequence[str]) -> None:
    """Raise a TypeError if a function was given an option that it does not know."""
    for name in options:
        if name not in known:
            hint = did_you_mean(name, known)
            raise TypeError(
                f"{function}() got an unexpected keyword argument {name!r} (it takes {listed(known)}){hint}"
            )


def metapath_list(unless: MetaPaths | None) -> list[str | MetaPath]:
    """Return one meta-path, or several, as a list."""
    if unless is None or isinstance(unless, str | MetaPath):
        return [] if unless is None else [unless]
    if not isinstance(unless, Iterable):
        raise QueryError(f"‹unless› is {unless!r}; give a meta-path, or a list of them", parameter="unless")
    return list(unless)


@dataclass(frozen=True)
class _Request:
    """What a search asks for, from its options."""

    search: Search
    """What its hits say of it; its number of eligible targets still counts the query."""
    k: int
    wanted: int
    """How many targets to rank: more than k where diverse hits are chosen from them."""
    keeps_query: bool
    zeros: bool
    candidates: Mask | None
    excluded: list[Rows]
    """The targets that ‹unless› leaves out for each query; empty without it."""
    unless: str
    diverse: float | None
    threads: int | None


def _each(ranking: Ranking) -> list[Ranking]:
    return [Ranking(ranking.rows[[q]], ranking.scores[[q]], ranking.sizes[[q]]) for q in range(len(ranking.sizes))]


def read_saved(folder: str | Path) -> tuple[str, dict[str, object]]:
    """Read the name and parameters of a saved scorer; raise if a file of it does not fit its checksum.

    Scorers that were saved by earlier versions have no checksums, and are not checked.
    """
    path = Path(folder) / FILE
    try:
        for file in path.parent.iterdir():
            if not (file.is_file() or file.is_dir()):  # to read a pipe or a device may never end
                raise SourceError(f"{file} of the saved scorer is no file; restore it from a copy, or save it again")
        content = json.loads(path.read_text(encoding="utf-8"))
        name, params = str(content["scorer"]), dict(content["params"])
        _check_files(path, content)
        return name, params
    except FileNotFoundError as error:
        raise SourceError(f"no saved scorer in {folder}: it has no {FILE}") from error
    except OSError as error:
        raise SourceError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise SourceError(f"{path} is not a saved scorer: {error}") from error


def _check_files(path: Path, content: dict[str, Any]) -> None:
    if set(content) == {"scorer", "params"}:
        return  # as earlier versions saved it
    if set(content) != {"scorer", "params", "files", "sha256"}:
        raise ValueError(f"it has the fields {listed(content)}")
    if content["sha256"] != _digest(content):
        raise SourceError(f"{path} is damaged: it does not fit its checksum; restore it from a copy, or save it again")
    for name, expected in content["files"].items():
        file = path.parent / Path(name).name
        if not file.is_file() or checksum(file, name) != expected:
            raise SourceError(
                f"{file} is missing or damaged: it does not fit its checksum in {path.name}; restore it from a copy, "
                f"or save it again"
            )


def _digest(content: dict[str, Any]) -> str:
    described = json.dumps([content["scorer"], content["params"], content["files"]], sort_keys=True)
    return sha256(described.encode()).hexdigest()
