"""Following: what a learned scorer offers to a live graph, which knows neither the models nor torch."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self, TypedDict, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from neupath._runtime.files import write_text
from neupath.engine.hits import Hits, check_k, describe_shortfall, labels_of
from neupath.engine.topk import (
    HitLists,
    Ranking,
    check_threads,
    range_of_scores,
    stacked,
    top_k_of_scores,
    with_unrelated,
)
from neupath.errors import QueryError, SourceError
from neupath.graph.hin import HIN, Floats
from neupath.graph.nodes import Id, Mask, Nodes, Rows
from neupath.graph.schema import Relation

# ---- Scorer --------------------------------------------------------------------------------------
FILE = "config.json"
_QUERIES_AT_ONCE = 64
"""Queries whose scores with every target are held at once."""
Many = list[Id] | list[str] | list[int] | tuple[Id, ...] | NDArray[Any]


class SearchOptions(TypedDict, total=False):
    """What `Scorer.top_k` may be told besides the query and k."""

    include_query: bool
    zeros: bool
    among: Sequence[Id] | None
    where: str | Sequence[str]
    threads: int | None


EdgeWeight = tuple[Relation, int, int, float]
"""The new weight of an edge: relation, source row, target row, weight; 0 removes the edge."""
Binding = Callable[[HIN], "Scorer"]
"""Returns the scorer over the version of a graph for which it was made."""


class Updater(ABC):
    """What a learned scorer computes from a live graph, updated where a change reaches it."""

    @abstractmethod
    def apply(self, hin: HIN, edges: Sequence[EdgeWeight]) -> None:
        """Update to a graph with these edges changed, and perhaps new nodes at the end of their types."""

    @abstractmethod
    def snapshot(self) -> Binding:
        """Return what makes the scorer of this version, whatever changes later."""


@dataclass(frozen=True)
class PathSims:
    """A learned scorer that needs nothing of a graph but PathSim along some meta-paths."""

    metapaths: tuple[str, ...]
    over: Callable[[HIN, Sequence["Scorer"]], "Scorer"]
    """Returns the scorer over a graph, given PathSim along each meta-path over it."""


class Scorer(ABC):
    """Scores how similar targets are to a query, once fitted to a graph.

    Methods take and return ids, and names work as well where they are unambiguous; `score_rows` and `rank_rows` take
    and return rows.
    """

    name: ClassVar[str]
    """What the command line and the JSON call it."""
    exact: ClassVar[bool]
    """Whether scores follow a formula (true) or are learned (false)."""
    hin_: HIN
    """The graph it was fitted to."""

    @abstractmethod
    def fit(self, hin: HIN) -> Self:
        """Prepare to answer queries over a graph; return itself."""

    def bind(self, hin: HIN) -> Self:
        """Return a new, ready scorer with the same parameters, and weights where it has learned, over another graph.

        This scorer stays as it is. A model that has learned needs a graph with the same schema.
        """
        return type(self)(**self.params()).fit(hin)

    @property
    @abstractmethod
    def source_type(self) -> str:
        """The node type of queries."""

    @property
    @abstractmethod
    def target_type(self) -> str:
        """The node type of targets."""

    @property
    @abstractmethod
    def metapath_text(self) -> str | None:
        """The meta-path in its canonical spelling, or nothing for a scorer that was not told one."""

    @abstractmethod
    def params(self) -> dict[str, object]:
        """Return the constructor's arguments as JSON can hold them."""

    @abstractmethod
    def score_rows(self, queries: Rows) -> Floats:
        """Return the score of each query with every target; shape (queries, targets)."""

    def rank_rows(
        self,
        queries: Rows,
        skipped: Rows,
        k: int,
        candidates: Mask | None,
        threads: int | None,  # noqa: ARG002
    ) -> Ranking:
        """Return the k best targets of each query, leaving out the skipped one of each (-1: none).

        By all scores, of some queries at a time; a measure that relates few targets to a query has a shorter way.
        """
        blocks = [slice(at, at + _QUERIES_AT_ONCE) for at in range(0, len(queries), _QUERIES_AT_ONCE)]
        return stacked([top_k_of_scores(self.score_rows(queries[b]), skipped[b], k, candidates) for b in blocks])

    def range_rows(self, queries: Rows, skipped: Rows, least: float, threads: int | None = None) -> HitLists:  # noqa: ARG002
        """Return the targets whose score with each query is at least `least`, leaving out the skipped one of each."""
        return range_of_scores(self.score_rows(queries), skipped, least)

    def score(self, query: Id, target: Id) -> float:
        """Return the score of one pair."""
        return float(self.scores(query)[self._targets.find(target)])

    def scores(self, query: Id) -> Floats:
        """Return the score of a query with every target, in node order; shape (targets,)."""
        row: Floats = self.score_rows(self._queries.find_many([query]))[0]
        return row

    @overload
    def top_k(self, query: Id, k: int = 10, **options: Unpack[SearchOptions]) -> Hits: ...
    @overload
    def top_k(self, query: Many, k: int = 10, **options: Unpack[SearchOptions]) -> list[Hits]: ...
    def top_k(self, query: Id | Many, k: int = 10, **options: Unpack[SearchOptions]) -> Hits | list[Hits]:
        """Return the k targets most similar to a query, best first, ties in node order; a list of queries gives a list.

        Options: `include_query` ranks the query itself, too; `zeros` fills up with targets that no path reaches;
        `among` restricts the targets to some ids or names; `where` by their attributes, such as "year >= 2000";
        `threads` is one a core unless said.
        """
        if isinstance(query, str) or not isinstance(query, Iterable):
            return self.top_k_rows(self._queries.find_many([query]), k, **options)[0]
        return self.top_k_rows(self._queries.find_many(list(query)), k, **options)

    def top_k_rows(
        self,
        rows: Rows,
        k: int,
        *,
        include_query: bool = False,
        zeros: bool = False,
        among: Sequence[Id] | None = None,
        where: str | Sequence[str] = (),
        threads: int | None = None,
    ) -> list[Hits]:
        """Return the hits of queries given as rows; the options are those of `top_k`."""
        asked = check_k(k)
        check_threads(threads)
        keeps_query = include_query or self.source_type != self.target_type
        skipped = np.full(len(rows), -1, dtype=np.int64) if keeps_query else rows
        candidates = self.hin_.candidates(self.target_type, among=among, where=where)
        ranking = self.rank_rows(rows, skipped, asked, candidates, threads)
        if zeros:
            ranking = with_unrelated(ranking, skipped, asked, len(self._targets), candidates)
        eligible = np.full(len(rows), len(self._targets) if candidates is None else int(candidates.sum()))
        if not keeps_query:
            eligible -= 1 if candidates is None else candidates[rows]
        metapath, target_type = self.metapath_text, self.target_type
        found = []
        for q, row in enumerate(rows):
            size = int(ranking.sizes[q])
            ids, names = labels_of(self._targets, ranking.rows[q, :size])
            scores = tuple(ranking.scores[q, :size].tolist())
            shortfall = describe_shortfall(size, asked, int(eligible[q]), target_type, zeros, metapath is not None)
            found.append(Hits(self._queries.id(row), metapath, self.name, self.exact, ids, names, scores, shortfall))
        return found

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
        """Return what tells its scores from others' with the same parameters: nothing, unless it has learned."""
        return ""

    @property
    def identity(self) -> object | None:
        """What copies share that have learned the same; None for a scorer that learns nothing, which is fitted."""
        return None

    def updater(self, hin: HIN) -> Updater | None:  # noqa: ARG002
        """Return what keeps this scorer up to date with a live graph; None where it must be bound to each version."""
        return None

    def as_pathsims(self) -> PathSims | None:
        """Return the PathSims that this scorer consists of; None where it does not."""
        return None

    def save(self, folder: str | Path) -> Path:
        """Write the scorer, without its graph, to a folder; `load_scorer` reads it back."""
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        content = {"scorer": self.name, "params": self.params()}
        write_text(target / FILE, json.dumps(content, indent=2, ensure_ascii=False) + "\n")
        return target


def read_saved(folder: str | Path) -> tuple[str, dict[str, object]]:
    """Read the name and parameters of a saved scorer."""
    path = Path(folder) / FILE
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return str(content["scorer"]), dict(content["params"])
    except FileNotFoundError as error:
        raise SourceError(f"no saved scorer in {folder}: it has no {FILE}") from error
    except OSError as error:
        raise SourceError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise SourceError(f"{path} is not a saved scorer: {error}") from error
