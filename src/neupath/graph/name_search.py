"""Name search: nodes whose name or id equals a text, begins with it, contains it, or is spelled like it.

Case and accents are ignored. There is no index to build but the folded texts and a signature of 64 bits for each: scans
take some milliseconds per 100,000 names.
"""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Literal, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from neupath._runtime.lazy_module import LazyModule

pc = LazyModule("pyarrow.compute")
Match = Literal["exact", "prefix", "inside", "spelling", "any"]
"""How a name or an id matches a text; "any" where the text is empty."""
_EXACT, _PREFIX, _INSIDE, _SPELLING, _ANY = range(5)
_ENOUGH = 10  # nodes that match to the letter, from which on spelling is not tried
_MOST_BY_SPELLING = 50
_FEW_LETTERS = 5
_MOST_LETTERS = 64  # of a text that spelling compares: the bits of a word
_LONGEST = 200  # letters of a name that spelling looks at
_CHUNK = 8192  # names whose spelling is compared at once
_MOST_COMPARED = 20_000  # names of a type whose spelling is compared at all
Ints = NDArray[np.int64]
Words = NDArray[np.uint64]


# ---- Folding -------------------------------------------------------------------------------------
def fold(texts: pa.Array) -> pa.Array:
    """Return texts without case and accents; nothing for a null.

    >>> fold(pa.array(["Straße", "İstanbul", "Čapek", None])).to_pylist()
    ['strasse', 'istanbul', 'capek', '']
    """
    if texts.offset:  # Arrow lowers a slice wrongly after a cast
        texts = texts.take(pa.array(np.arange(len(texts))))
    texts = pc.fill_null(texts.cast(pa.string()), "")
    plain = pc.string_is_ascii(texts)
    folded = pc.ascii_lower(texts)
    if pc.all(plain).as_py() is not False:
        return folded
    others = pc.utf8_normalize(texts.filter(pc.invert(plain)), form="NFKD")
    others = pc.utf8_lower(pc.replace_substring_regex(others, r"\p{M}+", ""))
    for letter, written in (("ß", "ss"), ("ς", "σ")):
        others = pc.replace_substring(others, letter, written)
    return pc.replace_with_mask(folded, pc.invert(plain), others)


def fold_text(text: str) -> str:
    """Return one text without case, accents and spaces around it.

    >>> fold_text(" Čapek ")
    'capek'
    """
    valid = text.encode("utf-8", "replace").decode().strip()
    return str(fold(pa.array([valid]))[0].as_py())


# ---- Matches -------------------------------------------------------------------------------------
_ROW_BITS, _LENGTH_BITS, _PLACE_BITS = 34, 13, 13


@dataclass(frozen=True)
class Matches:
    """The rows that match a text, in no order, each with what ranks it, packed into one number; shape (matches,).

    From the highest bits on: the kind of match; where the text begins in the name, or how many letters differ; the
    length of the name; the row.
    """

    keys: Ints

    @classmethod
    def of(cls, rows: Ints, kind: Ints | int, places: Ints | int = 0, lengths: Ints | int = 0) -> "Matches":
        keys = np.asarray(kind, dtype=np.int64)
        for values, bits in ((places, _PLACE_BITS), (lengths, _LENGTH_BITS)):
            keys = (keys << bits) | np.minimum(values, (1 << bits) - 1)
        return cls((keys << _ROW_BITS) | rows)

    @classmethod
    def join(cls, parts: "Sequence[Matches]") -> "Matches":
        """Put matches of different rows together."""
        return cls(np.concatenate([np.empty(0, dtype=np.int64), *(part.keys for part in parts)]))

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def rows(self) -> Ints:
        return self.keys & ((1 << _ROW_BITS) - 1)

    def has_exact(self) -> bool:
        return bool((self.keys < 1 << (_PLACE_BITS + _LENGTH_BITS + _ROW_BITS)).any())

    def shifted(self, by: int) -> "Matches":
        """Return the same matches with higher row numbers."""
        return Matches(self.keys + by)

    def best(
        self, count: int, offset: int = 0, degrees: Callable[[Ints], Ints] | None = None
    ) -> list[tuple[int, Match]]:
        """Return some rows and how they match, the best first; of equally good ones, those of higher degrees."""
        end = min(offset + count, len(self))
        if degrees is None or not end:
            keys = self.keys if end == len(self) else np.partition(self.keys, end)[:end]
            page = np.sort(keys)[offset:]
        else:
            ranks = self.keys >> _ROW_BITS
            near = Matches(self.keys[ranks <= np.partition(ranks, end - 1)[end - 1]])
            order = np.lexsort((near.keys, -degrees(near.rows), near.keys >> _ROW_BITS))
            page = near.keys[order[offset:end]]
        kinds = page >> (_PLACE_BITS + _LENGTH_BITS + _ROW_BITS)
        names = get_args(Match)
        return [(row, names[kind]) for row, kind in zip(Matches(page).rows.tolist(), kinds.tolist(), strict=True)]


def search_names(parts: "Sequence[NameSearch]", text: str) -> Matches:
    """Search several lists of nodes, whose rows are numbered one after the other.

    Spelling is tried only where few nodes match to the letter, and none exactly.

    >>> names = NameSearch(pa.array(["m1", "m2"]), pa.array(["Dark City", "The Dark Knight"]))
    >>> search_names([names], "dark").best(10)
    [(0, 'prefix'), (1, 'inside')]
    """
    folded = fold_text(text)
    starts = np.cumsum([0, *(len(part) for part in parts)]).tolist()
    if not folded:
        return Matches.of(np.arange(starts[-1]), _ANY)
    places = list(zip(parts, starts, strict=False))
    literal = Matches.join([part.literal(folded).shifted(start) for part, start in places])
    if len(literal) >= _ENOUGH or literal.has_exact():
        return literal
    found = literal
    for whole in (True, False):
        spelled = Matches.join([part.spelled(folded, whole=whole).shifted(start) for part, start in places])
        others = spelled.keys[~np.isin(spelled.rows, found.rows)]
        found = Matches.join([found, Matches(np.sort(others)[:_MOST_BY_SPELLING])])
        if len(spelled) and len(folded) > _FEW_LETTERS:  # which are spelled like many a name
            break
    return found


def search_types(
    types: "Mapping[str, Sequence[NameSearch]]",
    text: str,
    count: int,
    offset: int = 0,
    *,
    degrees: Callable[[str], Ints],
) -> tuple[int, list[tuple[str, int, Match]]]:
    """Search node types, each in one list or several; return how many nodes match, and the best with type and row.

    `degrees` returns those of the nodes of a type: of equally good matches, those with more edges come first.
    """
    starts = [0, *accumulate(sum(map(len, parts)) for parts in types.values())]
    matches = search_names([part for parts in types.values() for part in parts], text)
    names, found = list(types), []

    def degrees_of(rows: Ints) -> Ints:
        kinds, of_rows = np.searchsorted(starts, rows, side="right") - 1, np.zeros(len(rows), dtype=np.int64)
        for kind in np.unique(kinds).tolist():
            own = kinds == kind
            of_rows[own] = degrees(names[kind])[rows[own] - starts[kind]]
        return of_rows

    for row, match in matches.best(count, offset, degrees_of if text.strip() else None):
        at = bisect_right(starts, row) - 1
        found.append((names[at], row - starts[at], match))
    return len(matches), found


class NameSearch:
    """The names and ids of some nodes, folded on first use."""

    def __init__(self, ids: pa.Array, names: pa.Array | None = None) -> None:
        self._ids, self._names = ids, names

    def __len__(self) -> int:
        return len(self._ids)

    @cached_property
    def _columns(self) -> list["_Texts"]:
        """The ids, and the names if there are any."""
        ids = _Texts(self._ids, are_words=not pa.types.is_integer(self._ids.type))
        return [ids] if self._names is None else [ids, _Texts(self._names)]

    def prepare(self) -> None:
        """Fold all texts now, so that the first search is as fast as the others."""
        for texts in self._columns:
            texts.lengths, texts.signatures  # noqa: B018

    def equal(self, text: str) -> Ints:
        """Return the rows whose id is a text but for case and accents, or else those whose name is."""
        folded = fold_text(text)
        for texts in self._columns:
            rows = np.flatnonzero(pc.equal(texts.folded, folded)).astype(np.int64)
            if folded and len(rows):
                return rows
        return np.empty(0, dtype=np.int64)

    def literal(self, folded: str) -> Matches:
        """Return the nodes whose name or id equals a folded text, begins with it, or contains it."""
        return self._best_of([texts.literal(folded) for texts in self._columns])

    def spelled(self, folded: str, *, whole: bool) -> Matches:
        """Return the nodes whose name (the id, if there are none) is spelled like a folded text, or has such a part."""
        *_, labels = self._columns
        return labels.spelled(folded, whole=whole) if labels.are_words else Matches.join([])

    def _best_of(self, columns: Sequence[Matches]) -> Matches:
        """Return each row once, as its name or its id matches better."""
        filled = [matches for matches in columns if len(matches)]
        if len(filled) < 2:
            return Matches.join(filled)
        best = np.full(len(self), np.iinfo(np.int64).max)
        for matches in filled:
            best[matches.rows] = np.minimum(best[matches.rows], matches.keys)
        return Matches(best[best < np.iinfo(np.int64).max])


class _Texts:
    """One folded column of names or ids; numbers are not compared by spelling."""

    def __init__(self, column: pa.Array, are_words: bool = True) -> None:
        self.column, self.are_words = column, are_words

    @cached_property
    def folded(self) -> pa.Array:
        return fold(self.column)

    @cached_property
    def lengths(self) -> Ints:
        return np.asarray(pc.utf8_length(self.folded).to_numpy(), dtype=np.int64)

    def literal(self, folded: str) -> Matches:
        starts = pc.find_substring(self.folded, folded).to_numpy()
        rows = np.flatnonzero(starts >= 0)
        places, lengths = starts[rows].astype(np.int64), self.lengths[rows]
        kinds = np.where(places > 0, _INSIDE, np.where(lengths > len(folded), _PREFIX, _EXACT))
        return Matches.of(rows, kinds, places, lengths)

    # ---- Spelling --------------------------------------------------------------------------------
    @cached_property
    def signatures(self) -> Words:
        """Which bytes, modulo 64, each text has, as bits; shape (texts,)."""
        offsets = np.frombuffer(self.folded.buffers()[1] or b"\0" * 4, dtype=np.int32).astype(np.int64)
        content = np.frombuffer(self.folded.buffers()[2] or b"", dtype=np.uint8)
        signatures = np.zeros(len(self.folded), dtype=np.uint64)
        for start in range(0, len(self.folded), _CHUNK):
            bounds = offsets[start : min(start + _CHUNK, len(self.folded)) + 1]
            bits = np.left_shift(np.uint64(1), (content[bounds[0] : bounds[-1]] & 63).astype(np.uint64))
            filled = np.flatnonzero(np.diff(bounds))
            if len(filled):
                signatures[start + filled] = np.bitwise_or.reduceat(bits, bounds[:-1][filled] - bounds[0])
        return signatures

    def spelled(self, folded: str, *, whole: bool) -> Matches:
        """Return the texts, or those with a part, that few edits turn into a folded text; the nearest rank first."""
        pattern = folded[:_MOST_LETTERS]
        most = min(6, (len(pattern) + 1) // 4) if whole else min(4, (len(pattern) + 1) // 5)
        candidates = self._candidates(pattern, most, whole=whole)
        candidates = candidates[np.argsort(self.lengths[candidates], kind="stable")]
        near = []
        for start in range(0, len(candidates), _CHUNK):
            rows = candidates[start : start + _CHUNK]
            positions = _positions(pattern, _letters(self.folded.take(pa.array(rows)).to_pylist()))
            edits = _count_edits(pattern, positions, self.lengths[rows], whole=whole)
            kept = np.flatnonzero(edits <= most)
            places = 2 * edits[kept] + (not whole)  # of equally near ones, whole texts rank before parts
            near.append(Matches.of(rows[kept], _SPELLING, places, self.lengths[rows[kept]]))
        return Matches.join(near)

    def _candidates(self, pattern: str, most: int, *, whole: bool) -> Ints:
        """Return the texts that may be within so many edits, by their lengths, letters and pieces."""
        if not most:
            return np.empty(0, dtype=np.int64)
        missing = len(pattern) - self.lengths
        rows = np.flatnonzero(np.abs(missing) <= most if whole else missing <= most)
        rows = self._with_letters(pattern, most, rows)
        return self._with_a_piece(pattern, most + 2, rows)  # an edit changes one piece, and one swap may change two

    def _with_a_piece(self, pattern: str, pieces: int, rows: Ints) -> Ints:
        """Return the texts with a piece of a pattern; if these are too many, those with the most pieces."""
        texts = self.folded.take(pa.array(rows))
        counts = np.zeros(len(rows), dtype=np.int8)
        for start, end in pairwise(np.linspace(0, len(pattern), pieces + 1).round().astype(int).tolist()):
            counts += np.asarray(pc.match_substring(texts, pattern[start:end]))
        some = np.flatnonzero(counts)
        if len(some) > _MOST_COMPARED:
            some = some[np.argsort(-counts[some], kind="stable")[:_MOST_COMPARED]]
        return rows[some]

    def _with_letters(self, pattern: str, most: int, rows: Ints) -> Ints:
        encoded = [letter.encode() for letter in pattern]
        wanted = np.bitwise_or.reduce([np.uint64(1 << (byte & 63)) for letter in encoded for byte in letter])
        missing = _count_bits(wanted & ~self.signatures[rows])
        return rows[missing <= most * max(map(len, encoded))]


_BITS_OF_BYTE = np.array([number.bit_count() for number in range(256)], dtype=np.uint8)


def _count_bits(words: Words) -> NDArray[np.unsignedinteger]:
    bits: NDArray[np.unsignedinteger] = _BITS_OF_BYTE[words.view(np.uint8)].reshape(-1, 8).sum(axis=1)
    return bits


def _letters(texts: Sequence[str]) -> NDArray[np.uint32]:
    """Return the first letters of texts as code points, 0 where a text has ended; shape (letters, texts)."""
    width = max(1, min(_LONGEST, max(map(len, texts), default=1)))
    padded = "".join(text[:width].ljust(width, "\0") for text in texts)
    letters = np.frombuffer(padded.encode("utf-32-le"), dtype=np.uint32).reshape(len(texts), width)
    return np.ascontiguousarray(letters.T)


def _positions(pattern: str, letters: NDArray[np.uint32]) -> Words:
    """Return at which places of a pattern each letter stands, as bits; shape (letters, texts)."""
    codes = np.unique([ord(letter) for letter in pattern]).astype(np.uint32)
    bits = [sum(1 << place for place, letter in enumerate(pattern) if ord(letter) == code) for code in codes]
    at = np.minimum(np.searchsorted(codes, letters), len(codes) - 1)
    words: Words = np.where(codes[at] == letters, np.array(bits, dtype=np.uint64)[at], np.uint64(0))
    return words


def _count_edits(pattern: str, positions: Words, lengths: Ints, *, whole: bool) -> Ints:
    """Count the edits between a pattern and each text, or the part of the text that is nearest to it.

    An edit adds, drops or replaces a letter, or swaps two neighbours. The columns of the table of distances are bits
    of a word, for all texts at once (Hyyrö, Prague Stringology Conference 2003, after Myers, J. ACM 1999).

    >>> positions = _positions("avtaar", _letters(["avatar", "the avatar", "up"]))
    >>> [_count_edits("avtaar", positions, np.array([6, 10, 2]), whole=whole).tolist() for whole in (True, False)]
    [[1, 5, 6], [1, 1, 6]]
    """
    one, last = np.uint64(1), np.uint64(1 << (len(pattern) - 1))
    size = positions.shape[1]
    up = np.full(size, np.uint64(2**64 - 1))  # where the distance grows downwards, and where it falls
    down, diagonal, before = (np.zeros(size, dtype=np.uint64) for _ in range(3))
    distance = np.full(size, len(pattern), dtype=np.int64)
    edits = distance.copy()  # from an empty text, or an empty part
    for place, here in enumerate(positions):
        swaps = ((~diagonal & here) << one) & before
        diagonal = (((here & up) + up) ^ up) | here | down | swaps
        right, left = down | ~(diagonal | up), diagonal & up
        distance += (right & last) != 0
        distance -= (left & last) != 0
        right, left = (right << one) | np.uint64(whole), left << one
        up, down, before = left | ~(diagonal | right), diagonal & right, here
        edits = np.where(lengths == place + 1, distance, edits) if whole else np.minimum(edits, distance)
    return edits
