"""Hits: the ranked targets of one query, with ids, names and scores."""

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from json.encoder import encode_basestring as quoted
from typing import overload

import pyarrow as pa

from neupath.errors import QueryError
from neupath.graph.nodes import Id, Nodes, Rows


@dataclass(frozen=True)
class Hit:
    """One result of a search."""

    rank: int
    id: Id
    name: str | None
    score: float


@dataclass(frozen=True)
class Hits(Sequence[Hit]):
    """The most similar targets of one query, best first, ties in node order.

    >>> from neupath import PathSim, load
    >>> hits = PathSim("APVPA").fit(load("toy")).top_k("Mike", k=2)
    >>> hits[0].id, hits.scores
    ('Bob', (1.0, 0.8))
    """

    query: Id
    metapath: str | None
    measure: str
    exact: bool
    ids: tuple[Id, ...]
    names: tuple[str | None, ...]
    scores: tuple[float, ...]
    shortfall: str | None = None
    """Why there are fewer than k hits, as a sentence."""

    @overload
    def __getitem__(self, index: int) -> Hit: ...
    @overload
    def __getitem__(self, index: slice) -> list[Hit]: ...
    def __getitem__(self, index: int | slice) -> Hit | list[Hit]:
        return list(self)[index]

    def __iter__(self) -> Iterator[Hit]:
        ranked = enumerate(zip(self.ids, self.names, self.scores, strict=True), 1)
        return (Hit(rank, node_id, name, score) for rank, (node_id, name, score) in ranked)

    def __len__(self) -> int:
        return len(self.ids)

    def to_dict(self) -> dict[str, object]:
        """Return what `search --json` prints."""
        return {
            "query": self.query,
            "metapath": self.metapath,
            "measure": self.measure,
            "exact": self.exact,
            "hits": [vars(hit) for hit in self],
        }

    def to_json(self) -> str:
        """Return `to_dict` as one line of JSON, faster than the standard encoder."""
        hits = ", ".join(
            f'{{"rank": {rank}, "id": {_json_of(node_id)}, "name": {_json_of(name)}, "score": {score!r}}}'
            for rank, (node_id, name, score) in enumerate(zip(self.ids, self.names, self.scores, strict=True), 1)
        )
        return (
            f'{{"query": {_json_of(self.query)}, "metapath": {_json_of(self.metapath)}, "measure": "{self.measure}", '
            f'"exact": {"true" if self.exact else "false"}, "hits": [{hits}]}}'
        )

    def to_arrow(self) -> pa.Table:
        """Return a table with the columns rank, id, name, score."""
        columns = pa.array(self.ids), pa.array(self.names, pa.string()), pa.array(self.scores, pa.float64())
        ranks = pa.array(range(1, len(self) + 1), pa.int64())
        return pa.table([ranks, *columns], names=["rank", "id", "name", "score"])


def _json_of(label: Id | None) -> str:
    if isinstance(label, str):
        text: str = quoted(label)
        return text
    return "null" if label is None else str(label)


def check_k(k: int) -> int:
    """Return k as an int; raise if it is not a whole number of at least 1."""
    try:
        count = operator.index(k)
    except TypeError as error:
        raise QueryError(f"‹k› is {k!r}; give a whole number of hits, 1 or more", parameter="k") from error
    if isinstance(k, bool) or count < 1:
        raise QueryError(f"‹k› is {k}; ask for at least 1 hit", parameter="k")
    return count


def describe_shortfall(
    count: int, k: int, eligible: int, target_type: str, zeros: bool, by_path: bool = True
) -> str | None:
    """Say why a search for k hits returned only `count`; None where it returned k."""
    if count >= k:
        return None
    if eligible < k and (zeros or count == eligible):
        if not eligible:
            return f"no {target_type} node is left to rank"
        return f"k = {k:,} is more than the {eligible:,} {target_type} nodes there are to rank; all are listed"
    related = "related by this path" if by_path else "related"
    return f"{count:,} of {eligible:,} {target_type} nodes are {related}; the others have score 0"


def labels_of(nodes: Nodes, rows: Rows) -> tuple[tuple[Id, ...], tuple[str | None, ...]]:
    """Return the ids and names of some rows."""
    taken = pa.array(rows)
    ids = tuple(nodes.ids.take(taken).to_pylist())
    names = (None,) * len(rows) if nodes.names is None else tuple(nodes.names.take(taken).to_pylist())
    return ids, names
