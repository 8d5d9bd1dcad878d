"""Autocomplete: find nodes by a text that begins their name or id, is part of it, or is spelled like it."""

from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from neupath.graph.nodes import Id, Nodes, Rows

Match = Literal["any", "prefix", "inside", "spelling"]

_BUCKETS = 1 << 18
_MOST_BY_SPELLING = 50
_ENOUGH = 10  # nodes that match exactly, from which on spelling is not tried
_LEAST_DICE = 0.3  # the Dice coefficient of letter triples from which on two texts are spelled alike
_AMBIGUOUS = -1
_MOST_UNSORTED = 1000  # new nodes, or a tenth of all, from which on everything is sorted again
_MOST_LETTERS = 200  # letters of a text that spelling compares


@dataclass(frozen=True)
class NameMatch:
    """One page of the nodes that match a text, how each matches, and how many there are in all."""

    total: int
    rows: list[int]
    matches: list[Match]


class NameIndex:
    """The names and ids of one node type, case-folded and sorted on first use."""

    def __init__(self, nodes: Nodes) -> None:
        self.nodes = nodes
        self._building = Lock()

    @cached_property
    def ids(self) -> list[Id]:
        return list(self.nodes.ids.to_pylist())

    @cached_property
    def names(self) -> list[str | None]:
        return [None] * len(self.nodes) if self.nodes.names is None else list(self.nodes.names.to_pylist())

    def labels(self, rows: list[int]) -> tuple[tuple[Id, ...], tuple[str | None, ...]]:
        ids, names = self.ids, self.names
        return tuple([ids[row] for row in rows]), tuple([names[row] for row in rows])

    @cached_property
    def _rows_by_id(self) -> dict[Id, int]:
        return {node_id: row for row, node_id in enumerate(self.ids)}

    @cached_property
    def _rows_by_name(self) -> dict[str, int]:
        rows: dict[str, int] = {}
        for row, name in enumerate(self.names):
            if name is not None:
                rows[name] = _AMBIGUOUS if name in rows else row
        return rows

    def find_row(self, query: Id) -> int | None:
        """Return the row that `Nodes.find` returns for an id or a name; None where that raises an error."""
        key = self.nodes.as_id(query)
        row = None if key is None else self._row_of_id(key)
        if row is not None:
            return row
        named = self._row_of_name(str(query))
        return None if named == _AMBIGUOUS else named

    def _row_of_id(self, key: Id) -> int | None:
        return self._rows_by_id.get(key)

    def _row_of_name(self, name: str) -> int | None:
        return self._rows_by_name.get(name)

    def grown(self, nodes: Nodes) -> "NameIndex":
        """Return an index of more nodes, of which these are the first; only the others are sorted now."""
        return self if nodes is self.nodes else GrownNameIndex(self, nodes)

    def prepare(self) -> None:
        """Build everything, so that the first look-up is as fast as the others."""
        with self._building:
            self._rows_by_id, self._rows_by_name, self._sorted, self._triples  # noqa: B018

    def find(self, text: str, limit: int, offset: int = 0) -> NameMatch:
        """Return a page of the nodes whose name or id begins with a text, contains it, or is spelled like it."""
        folded = text.encode("utf-8", "replace").decode().strip().casefold()
        if not folded:
            rows = list(range(offset, min(offset + limit, len(self.nodes))))
            return NameMatch(len(self.nodes), rows, ["any"] * len(rows))
        matching = np.empty(0, dtype=np.int64)
        ends: list[tuple[int, Match]] = []
        for match in get_args(Match)[1:]:
            if match == "spelling" and len(matching) >= _ENOUGH:
                break
            more = self._search(folded, match)
            matching = np.concatenate([matching, more[~np.isin(more, matching)]])
            ends.append((len(matching), match))
        page = range(offset, min(offset + limit, len(matching)))
        matches = [next(match for end, match in ends if place < end) for place in page]
        return NameMatch(len(matching), matching[offset : offset + limit].tolist(), matches)

    def _search(self, folded: str, match: Match) -> Rows:
        if match == "prefix":
            return self._by_prefix(folded)
        return self._inside(folded) if match == "inside" else self._by_spelling(folded)

    @cached_property
    def _texts(self) -> pa.Array:
        """The case-folded names of all nodes, if they have names, then their ids."""
        labels = [] if self.nodes.names is None else self.names
        return pa.array([(text or "").casefold() for text in (*labels, *map(str, self.ids))], pa.large_string())

    def _rows(self, places: NDArray[np.integer]) -> Rows:
        """Return the rows of texts, each once, in order."""
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
        """Return the rows whose text contains another: those that contain it early first, then the short ones."""
        places = np.flatnonzero(pc.match_substring(self._texts, folded))
        texts = self._texts.take(pa.array(places))
        starts, lengths = pc.find_substring(texts, folded).to_numpy(), pc.utf8_length(texts).to_numpy()
        return self._rows(places[np.lexsort((places, lengths, starts))])

    @cached_property
    def _triples(self) -> tuple[Rows, NDArray[np.int32], NDArray[np.int64]]:
        """An inverted index of letter triples: offsets by bucket, places of texts, and triples of each text."""
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
        """Return the rows with the highest Dice coefficient of letter triples."""
        bounds, places, counts = self._triples
        letters = np.frombuffer(f"  {folded[:_MOST_LETTERS]} ".encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
        buckets = np.unique(_bucket(letters[:-2], letters[1:-1], letters[2:]))
        postings = np.concatenate([places[:0], *(places[bounds[b] : bounds[b + 1]] for b in buckets)])
        dice = 2 * np.bincount(postings, minlength=len(counts)) / (len(buckets) + counts)
        alike = np.flatnonzero(dice >= _LEAST_DICE)
        return self._rows(alike[np.lexsort((alike, -dice[alike]))])[:_MOST_BY_SPELLING]


class GrownNameIndex(NameIndex):
    """An index in two parts: the nodes sorted before, and those added since, which rank after them."""

    def __init__(self, older: NameIndex, nodes: Nodes) -> None:
        super().__init__(nodes)
        base: NameIndex = older._older if isinstance(older, GrownNameIndex) else older
        start = len(base.nodes)
        are_many = len(nodes) - start > max(_MOST_UNSORTED, start // 10)
        self._older: NameIndex = NameIndex(nodes) if are_many else base
        self._start = len(self._older.nodes)
        names = None if nodes.names is None else nodes.names.slice(self._start)
        self._newer = NameIndex(Nodes(nodes.node_type, nodes.ids.slice(self._start), names, distinct=True))

    def labels(self, rows: list[int]) -> tuple[tuple[Id, ...], tuple[str | None, ...]]:
        places = [(self._older, row) if row < self._start else (self._newer, row - self._start) for row in rows]
        return tuple([part.ids[at] for part, at in places]), tuple([part.names[at] for part, at in places])

    def _row_of_id(self, key: Id) -> int | None:
        row = self._older._row_of_id(key)
        return self._shifted(self._newer._row_of_id(key)) if row is None else row

    def _row_of_name(self, name: str) -> int | None:
        older, newer = self._older._row_of_name(name), self._shifted(self._newer._row_of_name(name))
        return _AMBIGUOUS if older is not None and newer is not None else newer if older is None else older

    def _shifted(self, row: int | None) -> int | None:
        return row if row is None or row == _AMBIGUOUS else row + self._start

    def _search(self, folded: str, match: Match) -> Rows:
        return np.concatenate([self._older._search(folded, match), self._newer._search(folded, match) + self._start])

    def prepare(self) -> None:
        self._older.prepare()
        self._newer.prepare()


def _bucket(
    first: NDArray[np.uint32], second: NDArray[np.uint32], third: NDArray[np.uint32]
) -> NDArray[np.unsignedinteger]:
    mixed = (first * np.uint32(2654435761)) ^ (second * np.uint32(2246822519)) ^ (third * np.uint32(3266489917))
    buckets: NDArray[np.unsignedinteger] = (mixed >> np.uint32(14)) % np.uint32(_BUCKETS)
    return buckets
