"""Names: nodes found by what a person types, by prefix first, then inside, then by spelling."""

from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from neupath.nodes import Id, Nodes, Rows

Match = Literal["any", "prefix", "inside", "spelling"]

_BUCKETS = 1 << 18
_SPELLED_ALIKE = 50
"""Nodes that spelling finds at most."""
_ENOUGH = 10
"""Nodes found by prefix or inside that make spelling needless."""
_ALIKE = 0.3
"""The share of letter triples two texts must have in common."""
_MOST_LETTERS = 200
"""Letters of a text that spelling looks at."""


@dataclass(frozen=True)
class Found:
    """Some of the nodes that a text leads to, and how many there are in all."""

    total: int
    rows: list[int]
    matches: list[Match]


class Names:
    """The names and ids of one node type, folded and sorted once."""

    def __init__(self, nodes: Nodes) -> None:
        self.nodes = nodes
        self._building = Lock()

    @cached_property
    def ids(self) -> list[Id]:
        """The ids in node order."""
        found: list[Id] = self.nodes.ids.to_pylist()
        return found

    @cached_property
    def names(self) -> list[str | None]:
        """The names in node order."""
        found: list[str | None] = [None] * len(self.nodes) if self.nodes.names is None else self.nodes.names.to_pylist()
        return found

    def labels(self, rows: list[int]) -> tuple[tuple[Id, ...], tuple[str | None, ...]]:
        """Turn rows into ids and names."""
        ids, names = self.ids, self.names
        return tuple([ids[row] for row in rows]), tuple([names[row] for row in rows])

    @cached_property
    def _rows_by_id(self) -> dict[Id, int]:
        return {node_id: row for row, node_id in enumerate(self.ids)}

    @cached_property
    def _rows_by_name(self) -> dict[str, int]:
        """The row of each name, -1 where several nodes share it."""
        found: dict[str, int] = {}
        for row, name in enumerate(self.names):
            if name is not None:
                found[name] = -1 if name in found else row
        return found

    def row_at_once(self, query: Id) -> int | None:
        """Return the row that `Nodes.find` finds where no search is needed, or nothing."""
        key = self.nodes.as_id(query)
        row = None if key is None else self._rows_by_id.get(key)
        return _known(self._rows_by_name.get(str(query))) if row is None else row

    def prepare(self) -> None:
        """Make all that lookups need, so that the first is as quick as the others."""
        with self._building:
            self._rows_by_id, self._rows_by_name, self._sorted, self._triples  # noqa: B018

    def find(self, text: str, limit: int, offset: int = 0) -> Found:
        """Return a page of the nodes whose name or id begins with a text, holds it, or is spelled like it."""
        folded = text.encode("utf-8", "replace").decode().strip().casefold()
        if not folded:
            rows = list(range(offset, min(offset + limit, len(self.nodes))))
            return Found(len(self.nodes), rows, ["any"] * len(rows))
        found = self._by_prefix(folded)
        bounds: list[tuple[int, Match]] = [(len(found), "prefix")]
        for match, search in (("inside", self._inside), ("spelling", self._by_spelling)):
            if match == "spelling" and len(found) >= _ENOUGH:
                break
            more = search(folded)
            found = np.concatenate([found, more[~np.isin(more, found)]])
            bounds.append((len(found), match))  # type: ignore[arg-type]
        page = range(offset, min(offset + limit, len(found)))
        matches = [next(match for end, match in bounds if at < end) for at in page]
        return Found(len(found), found[offset : offset + limit].tolist(), matches)

    @cached_property
    def _texts(self) -> pa.Array:
        """Every text a node is known by, folded: all names, then all ids."""
        labels = [] if self.nodes.names is None else self.names
        return pa.array([(text or "").casefold() for text in (*labels, *map(str, self.ids))], pa.large_string())

    def _rows(self, places: NDArray[np.integer]) -> Rows:
        """Return the rows of texts, each once, in their order."""
        rows: Rows = places.astype(np.int64) % max(1, len(self.nodes))
        _, first = np.unique(rows, return_index=True)
        return rows[np.sort(first)]

    @cached_property
    def _sorted(self) -> tuple[list[str], Rows]:
        texts = self._texts.to_pylist()
        order = sorted(range(len(texts)), key=texts.__getitem__)
        return [texts[at] for at in order], np.array(order, dtype=np.int64)

    def _by_prefix(self, folded: str) -> Rows:
        texts, order = self._sorted
        start = bisect_left(texts, folded)
        end = bisect_left(texts, folded + "\U0010ffff", lo=start)
        return self._rows(order[start:end])

    def _inside(self, folded: str) -> Rows:
        """Return the rows whose text holds another, those that hold it early and are short first."""
        places = np.flatnonzero(pc.match_substring(self._texts, folded))
        held = self._texts.take(pa.array(places))
        early, short = pc.find_substring(held, folded).to_numpy(), pc.utf8_length(held).to_numpy()
        return self._rows(places[np.lexsort((places, short, early))])

    @cached_property
    def _triples(self) -> tuple[Rows, NDArray[np.int32], NDArray[np.int64]]:
        """Postings of letter triples: starts by bucket, the places of texts, and how many triples each text has."""
        texts = [f"  {text[:_MOST_LETTERS]} " for text in self._texts.to_pylist()]
        lengths = np.array([len(text) for text in texts], dtype=np.int64)
        letters = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
        place = np.repeat(np.arange(len(texts), dtype=np.int32), lengths)
        inside = np.arange(len(letters)) - np.repeat(np.cumsum(lengths) - lengths, lengths) < np.repeat(
            lengths - 2, lengths
        )
        starts_at = np.flatnonzero(inside)
        buckets = _bucket(letters[starts_at], letters[starts_at + 1], letters[starts_at + 2])
        order = np.argsort(buckets, kind="stable")
        bounds = np.searchsorted(buckets[order], np.arange(_BUCKETS + 1))
        return bounds, place[starts_at][order], lengths - 2

    def _by_spelling(self, folded: str) -> Rows:
        """Return the rows whose text shares the most letter triples with another, by the Dice coefficient."""
        bounds, places, counts = self._triples
        letters = np.frombuffer(f"  {folded[:_MOST_LETTERS]} ".encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
        asked = np.unique(_bucket(letters[:-2], letters[1:-1], letters[2:]))
        hit = np.concatenate([places[:0], *(places[bounds[b] : bounds[b + 1]] for b in asked)])
        shared = np.bincount(hit, minlength=len(counts))
        alike = 2 * shared / (len(asked) + counts)
        near = np.flatnonzero(alike >= _ALIKE)
        return self._rows(near[np.lexsort((near, -alike[near]))])[:_SPELLED_ALIKE]


def _known(row: int | None) -> int | None:
    return None if row == -1 else row


def _bucket(
    first: NDArray[np.uint32], second: NDArray[np.uint32], third: NDArray[np.uint32]
) -> NDArray[np.unsignedinteger]:
    mixed = (first * np.uint32(2654435761)) ^ (second * np.uint32(2246822519)) ^ (third * np.uint32(3266489917))
    buckets: NDArray[np.unsignedinteger] = (mixed >> np.uint32(14)) % np.uint32(_BUCKETS)
    return buckets
