"""The prepared index of one measure along one meta-path: written once, opened by any process, searched without a graph.

A query reads its own row of the left factor, the rows of the right factor that this one names, and the norms of the
targets that they reach. These parts are factors as well, small ones, and are searched like any others: middle nodes and
targets keep their order, so that hits and scores are those of the graph, to the bit.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.sparse import csr_array

from neupath._runtime.progress import check_cancelled
from neupath._runtime.resources import free_memory
from neupath.engine.files import IndexFiles, open_files
from neupath.engine.formula import Formula, write_formula
from neupath.engine.index import Index
from neupath.engine.products import Factors
from neupath.engine.scorer import MetaPaths, Scorer
from neupath.engine.topk import (
    HitLists,
    Ranking,
    concatenated,
    range_of_product,
    range_of_scores,
    score_product,
    score_set,
    score_targets,
    stacked,
    top_k_of_product,
    top_k_of_set,
)
from neupath.errors import NodeError, QueryError, excerpt
from neupath.graph.edges import index_type, mix64
from neupath.graph.hin import HIN, Csr, Floats, check_graph, freeze
from neupath.graph.metapath import MetaPath, Schema
from neupath.graph.nodes import Id, Mask, NodeRef, Nodes, Rows

_MANY_QUERIES = 64  # from so many at once on, the whole product takes less time than its parts
_MOST_GATHERED = 1 << 24  # entries of a part of the product
_DENSE = 1 << 22  # scores of some queries at once
_MOST_NAMED = 1 << 20  # nodes up to which a name that nobody has is compared with all names
_HASHED_AT_ONCE = 1 << 20  # texts
_EMPTY = np.zeros(0, dtype=np.int64)


# ---- Nodes ---------------------------------------------------------------------------------------
def text_hashes(starts: NDArray[np.integer], text: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Return a number for each text of UTF-8 bytes; text i is `text[starts[i]:starts[i + 1]]`.

    >>> first, second, third = text_hashes(np.array([0, 1, 2, 3]), np.frombuffer(b"aab", np.uint8)).tolist()
    >>> first == second, second == third
    (True, False)
    """
    padded = np.concatenate([text[int(starts[0]) : int(starts[-1])], np.zeros(8, dtype=np.uint8)])
    words = np.ndarray((len(padded) - 7,), dtype="<u8", buffer=padded, strides=(1,))
    begins, lengths = starts[:-1].astype(np.int64) - int(starts[0]), np.diff(starts).astype(np.int64)
    hashes: NDArray[np.uint64] = mix64(lengths.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15))
    some, at = np.flatnonzero(lengths), 0
    while len(some):  # eight bytes of each text that has so many
        left = np.minimum(lengths[some] - at, 8)
        mask = np.uint64(0xFFFFFFFFFFFFFFFF) >> (np.uint64(64) - np.uint64(8) * left.astype(np.uint64))
        hashes[some] = mix64(hashes[some] ^ (words[begins[some] + at] & mask))
        some, at = some[left == 8], at + 8
        some = some[lengths[some] > at]
    return hashes


def number_hashes(numbers: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return a number for each integer id."""
    hashes: NDArray[np.uint64] = mix64(numbers.astype(np.int64).view(np.uint64))
    return hashes


@dataclass(frozen=True)
class StoredTexts:
    """The ids or names of nodes in the files of an index: integers, or texts with where each begins."""

    files: IndexFiles
    name: str

    @property
    def are_numbers(self) -> bool:
        return self.name in self.files

    def __len__(self) -> int:
        return len(self.files[self.name]) if self.are_numbers else len(self.files[f"{self.name}.starts"]) - 1

    def take(self, rows: Rows) -> pa.Array:
        """Return those of some rows."""
        if self.are_numbers:
            return pa.array(self.files[self.name].take(rows), pa.int64())
        starts = self.files[f"{self.name}.starts"]
        begins, ends = starts.take(rows).astype(np.int64), starts.take(rows + 1).astype(np.int64)
        content = self.files[f"{self.name}.text"].gather(begins, ends)
        offsets = np.zeros(len(rows) + 1, dtype=np.int32)
        np.cumsum(ends - begins, out=offsets[1:])
        return _texts(offsets, content, self._missing(rows))

    def whole(self) -> pa.Array:
        """Return those of all rows; those of a folder stay in their files."""
        if self.are_numbers:
            return pa.array(self.files[self.name].whole(), pa.int64())
        starts, content = self.files[f"{self.name}.starts"].whole(), self.files[f"{self.name}.text"].whole()
        missing = self.files[f"{self.name}.missing"].whole() if f"{self.name}.missing" in self.files else None
        return _texts(starts, content, missing)

    def _missing(self, rows: Rows) -> NDArray[Any] | None:
        name = f"{self.name}.missing"
        return self.files[name].take(rows) if name in self.files else None


def _texts(starts: NDArray[Any], content: NDArray[Any], missing: NDArray[Any] | None) -> pa.Array:
    valid = None if missing is None else pa.py_buffer(np.packbits(missing == 0, bitorder="little"))
    buffers = [valid, pa.py_buffer(np.ascontiguousarray(starts)), pa.py_buffer(np.ascontiguousarray(content))]
    texts = pa.Array.from_buffers(pa.string(), len(starts) - 1, buffers)
    texts.validate(full=True)  # that all is UTF-8, and starts ascend
    return texts


class StoredNodes(Nodes):
    """The nodes of one type in an index: ids and names are read as they are needed, and found by their hashes."""

    def __init__(self, files: IndexFiles, side: str, node_type: str) -> None:
        own = self.__dict__
        own["node_type"], own["attributes"], own["_scans"] = node_type, pa.table({}), []
        own["files"], own["side"] = files, side
        own["stored_ids"] = StoredTexts(files, f"{side}.ids")
        has_names = f"{side}.names.starts" in files
        own["stored_names"] = StoredTexts(files, f"{side}.names") if has_names else None
        if not has_names:
            own["names"] = None

    files: IndexFiles
    side: str
    stored_ids: StoredTexts
    stored_names: StoredTexts | None

    def __len__(self) -> int:
        return len(self.stored_ids)

    @cached_property
    def ids(self) -> pa.Array:
        """All ids."""
        return self.stored_ids.whole()

    @cached_property
    def names(self) -> pa.Array | None:
        """All names."""
        return None if self.stored_names is None else self.stored_names.whole()

    @property
    def id_type(self) -> pa.DataType:
        return pa.int64() if self.stored_ids.are_numbers else pa.string()

    @property
    def has_names(self) -> bool:
        return self.stored_names is not None

    def take_ids(self, rows: Rows) -> pa.Array:
        return self.stored_ids.take(rows)

    def take_names(self, rows: Rows) -> pa.Array:
        assert self.stored_names is not None
        return self.stored_names.take(rows)

    def id(self, row: int) -> Id:
        return cast(Id, self.take_ids(np.array([row]))[0].as_py())

    def name(self, row: int) -> str | None:
        return None if self.stored_names is None else self.take_names(np.array([row]))[0].as_py()

    def ids_at(self, rows: Sequence[int]) -> tuple[Id, ...]:
        return tuple(self.take_ids(np.array(rows, dtype=np.int64)).to_pylist())

    def names_at(self, rows: Sequence[int]) -> tuple[str | None, ...]:
        if self.stored_names is None:
            return (None,) * len(rows)
        return tuple(self.take_names(np.array(rows, dtype=np.int64)).to_pylist())

    @cached_property
    def _ids_are_texts(self) -> bool:
        return not self.stored_ids.are_numbers

    def look_up(self, query: NodeRef) -> int | None:
        if not isinstance(query, str | int | np.integer) or isinstance(query, bool):
            return None
        key = self.as_id(query)
        row = -1 if key is None else self._find_id(key)
        if row >= 0:
            return row
        rows = self.named(str(query))
        return rows[0] if len(rows) == 1 else None

    def _find_id(self, key: Id) -> int:
        return int(self._find_ids([key])[0])

    def find_many(self, queries: Sequence[NodeRef], *, exact: bool = False) -> Rows:
        asked = [self._own_id(query) for query in queries]
        self._check_texts(asked)
        keys = [None if isinstance(query, bool) else self.as_id(query) for query in asked]
        known = [at for at, key in enumerate(keys) if key is not None]
        rows = np.full(len(queries), -1, dtype=np.int64)
        rows[known] = self._find_ids([cast(Id, keys[at]) for at in known])
        for at in np.flatnonzero(rows < 0).tolist():
            rows[at] = self._find_by_name(str(asked[at]), exact)
        return rows

    def named(self, name: str) -> list[int]:
        if self.stored_names is None or not _is_text(name):
            return []
        rows, owners = self._bucketed(_hashes_of([name]), 1)
        return [] if not len(rows) else rows[_equal(self.take_names(rows), [name], owners)].tolist()

    def _find_ids(self, keys: Sequence[Id]) -> Rows:
        """Return the row of each id, or -1 for an unknown one."""
        result = np.full(len(keys), -1, dtype=np.int64)
        valid = np.array([at for at, key in enumerate(keys) if not isinstance(key, str) or _is_text(key)], np.int64)
        chosen = [keys[at] for at in valid.tolist()]
        hashes = _hashes_of(chosen) if self._ids_are_texts else number_hashes(np.array(chosen, dtype=np.int64))
        rows, owners = self._bucketed(hashes, 0)
        fits = _equal(self.take_ids(rows), chosen, owners)
        result[valid[owners[fits]]] = rows[fits]
        return result

    def _bucketed(self, hashes: NDArray[np.uint64], kind: int) -> tuple[Rows, Rows]:
        """Return the rows in the buckets of some hashes, there by their id (0) or name (1), and the hash of each."""
        starts, words = self.files[f"{self.side}.words.starts"], self.files[f"{self.side}.words"]
        if not len(words) or not len(hashes):
            return _EMPTY, _EMPTY
        buckets = (hashes & np.uint64(len(starts) - 2)).astype(np.int64)
        begins, ends = starts.take(buckets).astype(np.int64), starts.take(buckets + 1).astype(np.int64)
        codes = words.gather(begins, ends).astype(np.int64)
        owners = np.repeat(np.arange(len(hashes)), ends - begins)
        own = codes & 1 == kind
        return codes[own] >> 1, owners[own]

    def _find_by_name(self, query: str, exact: bool) -> int:
        if len(self) <= _MOST_NAMED or len(self.named(query)) > 0:
            return super()._find_by_name(query, exact)
        some = ", ".join(repr(self.id(row)) for row in range(min(3, len(self))))
        error = NodeError(
            f"no {self.node_type} with the id or name {excerpt(query, 0)!r} among {len(self):,}; the ids look like "
            f"{some}, and among so many an index finds names only as they are written"
        )
        error.query = query
        raise error


def _is_text(text: str) -> bool:
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def _hashes_of(texts: Sequence[Any]) -> NDArray[np.uint64]:
    """Return the hashes of some texts."""
    if not texts:
        return np.zeros(0, dtype=np.uint64)
    return next(column_hashes(pa.array(texts, pa.string())))


def column_hashes(texts: pa.Array) -> Iterator[NDArray[np.uint64]]:
    """Yield the hashes of a column of texts, part by part."""
    for first in range(0, len(texts), _HASHED_AT_ONCE):
        starts, content = text_parts(texts.slice(first, _HASHED_AT_ONCE))
        yield text_hashes(starts, content)


def text_parts(texts: pa.Array) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """Return where each text of an Arrow array begins, and the end of the last; and the bytes of all."""
    _, offsets, content = texts.buffers()
    starts = np.frombuffer(offsets, np.int32, len(texts) + 1, 4 * texts.offset)
    return starts, np.zeros(0, np.uint8) if content is None else np.frombuffer(content, np.uint8)


def _equal(values: pa.Array, wanted: Sequence[Any], owners: Rows) -> Rows:
    """Return the places of the values that are the one wanted by their owner."""
    own = values.to_pylist()
    return np.array([at for at, owner in enumerate(owners.tolist()) if own[at] == wanted[owner]], dtype=np.int64)


def words_of(nodes: Nodes) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the table by which ids and names are found: where each bucket begins, and what is in it.

    A node is in the bucket of its id as twice its row, and in that of its name as one more.
    """
    ids = nodes.ids
    hashes = [number_hashes(ids.to_numpy())] if pa.types.is_int64(ids.type) else list(column_hashes(ids))
    codes = [2 * np.arange(len(ids))]
    if nodes.names is not None:
        rows = np.flatnonzero(nodes.names.is_valid().to_numpy(zero_copy_only=False))
        hashes += column_hashes(nodes.names.take(pa.array(rows)))
        codes.append(2 * rows + 1)
    all_codes, all_hashes = np.concatenate(codes), np.concatenate([np.zeros(0, np.uint64), *hashes])
    count = 1 << max(0, len(all_codes) - 1).bit_length()
    buckets = (all_hashes & np.uint64(count - 1)).astype(np.int64)
    starts = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.bincount(buckets, minlength=count), out=starts[1:])
    words = all_codes[np.argsort(buckets, kind="stable")]
    kind = index_type((2 * len(ids) + 1, 1), len(words))
    return starts.astype(kind), words.astype(kind)


# ---- Explanations --------------------------------------------------------------------------------
@dataclass(frozen=True)
class SharedNode:
    """A middle node of the paths between two nodes, and what they add to the score."""

    node_type: str
    id: Id
    name: str | None
    score: float
    share: float

    @property
    def label(self) -> str:
        return self.name or str(self.id)


@dataclass(frozen=True)
class SharedNodes:
    """How a score of an index splits over the nodes in the middle of the paths, the largest share first."""

    query: Id
    target: Id
    metapath: str
    measure: str
    score: float
    formula: str
    """The score as a calculation."""
    num_groups: int
    groups: tuple[SharedNode, ...]
    """Empty where the halves of the path meet in edges."""

    @property
    def summary(self) -> str:
        """The largest shares in a sentence."""
        if not self.num_groups:
            return "No path of the index joins them."
        shares = ", ".join(f"{group.label} {100 * group.share:.1f} %" for group in self.groups)
        return f"Their paths meet in {self.num_groups:,} nodes{': ' + shares if shares else ''}."

    def to_dict(self) -> dict[str, object]:
        return vars(self) | {"summary": self.summary, "groups": [vars(group) for group in self.groups]}

    def __repr__(self) -> str:
        lines = [f"{100 * group.share:>5.1f} %  {group.label}" for group in self.groups]
        shown = f"{self.query} and {self.target} score {self.score:.4f} = {self.formula} by {self.metapath}"
        return "\n".join([shown, *lines])


# ---- The scorer ----------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False, repr=False)
class IndexedGraph(HIN):
    """The nodes of an index as a graph without edges, which is searched by the index alone."""

    index: "PreparedIndex | None" = None

    def answer(self, **asked: object) -> "PreparedIndex":
        """Return the index; raise if something else is asked for than what it holds, such as another meta-path."""
        assert self.index is not None
        held = {"metapath": self.index.metapath_text, "measure": self.index.measure}
        for parameter, value in asked.items():
            if value not in (None, (), [], held.get(parameter), [held.get(parameter)]):
                raise self._other(parameter)
        return self.index

    @property
    def without_edges(self) -> str:
        assert self.index is not None
        return (
            f"{self.index.url} is an index of {self.index.measure} along {self.index.metapath_text}: it is searched, "
            f"joined and explained, and has no edges for anything else; ask the graph"
        )

    def metapath(self, text: str, **options: Any) -> MetaPath:  # noqa: ARG002
        raise self._other("metapath")

    def candidates(
        self, node_type: str, *, among: Sequence[NodeRef] | None = None, where: str | Sequence[str] = ()
    ) -> Mask | None:
        """Mark the nodes that a filter leaves, among those that the index was prepared for."""
        mask = super().candidates(node_type, among=among, where=where)
        if self.index is None or node_type != self.index.target_type or "targets.chosen" not in self.index.files:
            return mask
        chosen = self.index.files["targets.chosen"].whole().astype(np.bool_)
        return chosen if mask is None else mask & chosen

    def _other(self, parameter: str) -> QueryError:
        assert self.index is not None
        return QueryError(
            f"{self.index.url} is an index of {self.index.measure} along {self.index.metapath_text}, and answers "
            f"nothing else; leave out ‹{parameter}›, or ask the graph",
            parameter=parameter,
        )


@dataclass(frozen=True)
class _Part:
    """The part of a product that some queries need: factors over the targets that they reach."""

    factors: Factors
    targets: Rows

    def places_of(self, rows: Rows) -> Rows:
        """Return the columns of some targets, -1 where none of the queries reaches them."""
        places = np.searchsorted(self.targets, rows)
        known = places < len(self.targets)
        known[known] = self.targets[places[known]] == rows[known]
        return np.where(known, places, -1)


class PreparedIndex(Scorer):
    """A `Scorer` over the files of an index, with the nodes of the graph and without its edges.

    `open_index` makes one.

    >>> from tempfile import TemporaryDirectory
    >>> from neupath import PathSim, load, open_index, prepare
    >>> with TemporaryDirectory() as folder:
    ...     index = open_index(prepare(load("toy"), PathSim("APVPA"), f"{folder}/index"))
    ...     index.top_k("Mike", 2).ids, index.explain("Mike", "Mary").groups[0].label
    (('Bob', 'Mary'), 'SIGMOD')
    """

    name = "index"
    exact = True
    _shown = ("explain", "join", "measure", "url")

    def __init__(self, files: IndexFiles) -> None:
        manifest = files.manifest
        self.files, self.url = files, files.url
        self.measure = str(manifest["measure"])
        self.name = self.measure  # type: ignore[misc]  # hits say by which measure they are ranked
        self.formula: Formula = cast(Formula, tuple(manifest["formula"]))
        self.is_symmetric = bool(manifest["symmetric"])
        self.graph_digest = str(manifest["graph"]["digest"])
        sides: dict[str, str] = manifest["sides"]
        nodes: dict[str, Nodes] = {}
        for side, node_type in sides.items():
            if node_type not in nodes:
                nodes[node_type] = StoredNodes(files, side, node_type)
        self._sides = sides
        about = f"an index of {self.measure} along {manifest['metapath']}, which answers nothing else"
        self.hin_ = IndexedGraph(Schema(tuple(nodes), ()), nodes, {}, (about,), index=self)
        self._norms = files["left_norms"], files["left_norms" if self.is_symmetric else "right_norms"]
        self._whole: Factors | None = None
        self._gathered_entries = 0

    # -- What it is of
    @classmethod
    def open(cls, url: str | Path) -> Self:
        return cls(open_files(url))

    def fit(self, hin: HIN) -> Self:  # noqa: ARG002
        raise QueryError(f"{self.url} is an index of a graph already; prepare another one for another graph")

    def bind(self, hin: HIN) -> Self:
        check_graph(hin)
        return self.fit(hin)

    @property
    def source_type(self) -> str:
        return self._sides["source"]

    @property
    def target_type(self) -> str:
        return self._sides.get("target", self.source_type)

    @property
    def metapath_text(self) -> str:
        return str(self.files.manifest["metapath"])

    def params(self) -> dict[str, object]:
        return dict(self.files.manifest["params"])

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002
        return self.params()

    def __repr__(self) -> str:
        return f"<PreparedIndex: {self.measure} along {self.metapath_text}, {len(self._queries):,} queries, {self.url}>"

    def fingerprint(self) -> str:
        return str(self.files.manifest["fingerprint"])

    def excluded_rows(self, rows: Rows, unless: MetaPaths) -> list[Rows]:
        if unless:
            raise QueryError(
                "an index has no edges and no other meta-path; leave out ‹unless›, or search the graph itself",
                parameter="unless",
            )
        return super().excluded_rows(rows, unless)

    # -- Parts of the product
    def _rows_of(self, factor: str, rows: Rows) -> tuple[Rows, NDArray[Any], Floats]:
        """Return the lengths, columns and values of some rows of a factor."""
        starts = self.files[f"{factor}.indptr"]
        begins, ends = starts.take(rows).astype(np.int64), starts.take(rows + 1).astype(np.int64)
        columns = self.files[f"{factor}.indices"].gather(begins, ends)
        values = self.files[f"{factor}.data"]
        return ends - begins, columns, values.gather(begins, ends).astype(np.float64, copy=False)

    def _part(self, queries: Rows) -> _Part:
        check_cancelled()
        lengths, middles, values = self._rows_of("left", queries)
        distinct, places = np.unique(middles, return_inverse=True)
        distinct = distinct.astype(np.int64)
        widths, targets, weights = self._rows_of("right", distinct)
        reached, columns = np.unique(targets, return_inverse=True)
        reached = reached.astype(np.int64)
        self._gathered_entries += len(values) + len(weights)
        left = _csr(values, places.ravel(), lengths, len(distinct))
        right = _csr(weights, columns.ravel(), widths, len(reached))
        norms = self._norms
        return _Part(Factors(left, right, norms[0].take(queries), norms[1].take(reached), is_cut=True), reached)

    def _blocks(self, queries: Rows) -> Iterator[tuple[slice, _Part]]:
        """Yield parts for some queries each, so that none has too many entries."""
        starts = self.files["left.indptr"]
        sizes = (starts.take(queries + 1) - starts.take(queries)).astype(np.float64)
        average = len(self.files["right.data"]) / max(1, len(self.files["right.indptr"]) - 1)
        numbers = np.cumsum(sizes * average) // _MOST_GATHERED
        ends = [*(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(queries)]
        first = 0
        for last in ends:
            if last > first:
                yield slice(first, last), self._part(queries[first:last])
            first = last

    def _whole_product(self, queries: int) -> Factors | None:
        """Return the whole product where many queries are asked at once, or were, and it is at hand."""
        total = len(self.files["left.data"]) + len(self.files["right.data"])
        if self._whole is None and (queries >= _MANY_QUERIES or self._gathered_entries > total):
            if not self.files.is_local and 4 * self.files.size > free_memory():
                return None
            left, right = self._matrix("left"), self._matrix("right")
            norms = self._norms[0].whole()
            others = norms if self.is_symmetric else self._norms[1].whole()
            self._whole = Factors(left, right, norms, others, index=self._stored_index())
        return self._whole

    def _matrix(self, factor: str) -> Csr:
        rows, columns = self.files.manifest["shapes"][factor]
        parts = (self.files[f"{factor}.{part}"].whole() for part in ("data", "indices", "indptr"))
        matrix = csr_array(tuple(parts), shape=(rows, columns), copy=False)
        matrix.has_sorted_indices = True
        return freeze(matrix)

    def _stored_index(self) -> Index | None:
        """Return the index for many queries, if the path is so heavy that it was prepared."""
        if "index.group_of" not in self.files:
            return None
        own = {name: self.files[f"index.{name}"].whole() for name in INDEX_ARRAYS}
        return Index(
            group_of=own["group_of"],
            left=(own["left.indptr"], own["left.indices"], own["left.data"]),
            left_norms=own["left_norms"],
            postings=(own["postings.starts"], own["postings.labels"], own["postings.values"]),
            norms=own["norms"],
            first_rows=own["first_rows"],
            members=(own["members.starts"], own["members.rows"]),
            label_of=own["label_of"],
            widest=int(self.files.manifest["widest"]),
        )

    # -- The contract of Scorer
    def rank_rows(self, queries: Rows, skipped: Rows, k: int, candidates: Mask | None, threads: int | None) -> Ranking:
        whole = self._whole_product(len(queries))
        if whole is not None:
            return top_k_of_product(whole, self.formula, queries, skipped, k, candidates, threads)
        width = len(self._targets)
        none = [Ranking(np.full((0, 0), -1), np.zeros((0, 0)), _EMPTY)]
        parts = [
            self._rank_part(part, skipped[block], min(k, width), candidates, threads)
            for block, part in self._blocks(queries)
        ]
        return stacked(parts or none)

    def _rank_part(self, part: _Part, skipped: Rows, k: int, candidates: Mask | None, threads: int | None) -> Ranking:
        own = None if candidates is None else candidates[part.targets]
        places = part.places_of(skipped)
        ranking = top_k_of_product(part.factors, self.formula, part.factors.all_rows, places, k, own, threads)
        filled = np.arange(ranking.rows.shape[1]) < ranking.sizes[:, None]
        rows = np.where(filled, ranking.rows, 0)
        targets = part.targets[rows] if len(part.targets) else rows
        return Ranking(np.where(filled, targets, -1), ranking.scores, ranking.sizes)

    def range_rows(self, queries: Rows, skipped: Rows, min_score: float, threads: int | None = None) -> HitLists:
        whole = self._whole_product(len(queries))
        if whole is not None and min_score > 0 and whole.bounds_are_safe:
            return range_of_product(whole, self.formula, queries, skipped, min_score, threads)
        if whole is not None or min_score <= 0:
            return super().range_rows(queries, skipped, min_score, threads)
        return concatenated([self._range_part(part, skipped[own], min_score) for own, part in self._blocks(queries)])

    def _range_part(self, part: _Part, skipped: Rows, min_score: float) -> HitLists:
        places, step = part.places_of(skipped), max(1, _DENSE // max(1, len(part.targets)))
        rows = part.factors.all_rows
        hits = concatenated([
            range_of_scores(score_product(part.factors, self.formula, rows[own]), places[own], min_score)
            for own in (slice(at, at + step) for at in range(0, len(skipped), step))
        ])  # fmt: skip
        return HitLists(hits.starts, part.targets[hits.rows], hits.scores)

    def score_rows(self, queries: Rows) -> Floats:
        scores = np.zeros((len(queries), len(self._targets)))
        for block, part in self._blocks(queries):
            scores[block, part.targets] = score_product(part.factors, self.formula, part.factors.all_rows)
        return scores

    def score_targets(self, row: int, targets: Rows) -> Floats:
        part = self._part(np.array([row]))
        places, scores = part.places_of(targets), np.zeros(len(targets))
        reached = places >= 0
        scores[reached] = score_targets(part.factors, self.formula, 0, places[reached])
        return scores

    def set_scores(self, members: Rows, weights: Floats) -> Floats:
        part, scores = self._part(members), np.zeros(len(self._targets))
        scores[part.targets] = score_set(part.factors, self.formula, part.factors.all_rows, weights)
        return scores

    def rank_set(
        self, members: Rows, weights: Floats, left_out: Rows, k: int, candidates: Mask | None
    ) -> tuple[Rows, Floats]:
        part = self._part(members)
        places = part.places_of(left_out)
        own = None if candidates is None else candidates[part.targets]
        rows, scores = top_k_of_set(
            part.factors, self.formula, part.factors.all_rows, weights, places[places >= 0], k, own
        )
        return part.targets[rows], scores

    # -- Explanations
    def explain(self, query: NodeRef, target: NodeRef, limit: int = 10) -> SharedNodes:
        """Split a score over the nodes in the middle of the paths, and return the largest shares.

        Parameters
        ----------
        query, target
            Ids or unambiguous names.
        limit
            How many middle nodes to list.
        """
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
            raise QueryError(f"‹limit› is {limit!r}; list at least 1 node", parameter="limit")
        x, y = self.hin_.row(self.source_type, query), self.hin_.row(self.target_type, target)
        _, middles, left = self._rows_of("left", np.array([x]))
        right = np.array([self._entry(int(middle), y) for middle in middles])
        products = left * right
        shared = np.flatnonzero(products)
        total = float(products.sum())
        score = float(self.score_targets(x, np.array([y]))[0])
        order = shared[np.argsort(-products[shared], kind="stable")][:limit]
        shares = products[order] / total if total else products[order]
        nodes = self.hin_.nodes.get(self._sides.get("middle", ""))
        dx, dy = float(self._norms[0].take(np.array([x]))[0]), float(self._norms[1].take(np.array([y]))[0])
        return SharedNodes(
            query=self._queries.id(x),
            target=self._targets.id(y),
            metapath=self.metapath_text,
            measure=self.measure,
            score=score,
            formula=write_formula(self.formula, total, dx, dy),
            num_groups=len(shared),
            groups=tuple(
                SharedNode(nodes.node_type, nodes.id(middle), nodes.name(middle), score * share, share)
                for middle, share in zip(middles[order].tolist(), shares.tolist(), strict=True)
            )
            if nodes is not None
            else (),
        )

    def _entry(self, middle: int, target: int) -> float:
        """Return one entry of the right factor; a row of it is ascending, and bisected by a few reads."""
        starts, columns = self.files["right.indptr"], self.files["right.indices"]
        first, last = (int(at) for at in starts.take(np.array([middle, middle + 1])))
        end = last
        while first < last:
            half = (first + last) // 2
            if int(columns.take(np.array([half]))[0]) < target:
                first = half + 1
            else:
                last = half
        if first == end or int(columns.take(np.array([first]))[0]) != target:
            return 0.0
        return float(self.files["right.data"].take(np.array([first]))[0])

    def join(self, out: str | Path, k: int | None = 10, **options: Any) -> Any:
        """Write the k most similar targets of each query to a file; the options are those of `neupath.join`."""
        from neupath.engine.join import join

        return join(self.hin_, self, out, k, **options)

    def __reduce__(self) -> tuple[Callable[[str], "PreparedIndex"], tuple[str]]:
        return open_index, (self.url,)


INDEX_ARRAYS = (
    "group_of", "left.indptr", "left.indices", "left.data", "left_norms", "postings.starts", "postings.labels",
    "postings.values", "norms", "first_rows", "members.starts", "members.rows", "label_of",
)  # fmt: skip
"""The arrays of the index for many queries, in the files `index.NAME`."""


def _csr(values: Floats, columns: NDArray[Any], lengths: Rows, width: int) -> Csr:
    indptr = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=indptr[1:])
    kind = index_type((len(lengths), width), len(values))
    matrix = csr_array((values, columns.astype(kind), indptr.astype(kind)), shape=(len(lengths), width))
    matrix.has_sorted_indices = True
    return freeze(matrix)


def open_index(url: str | Path) -> PreparedIndex:
    """Open a prepared index, a folder or an address such as s3://bucket/prefix.

    A folder is mapped into memory, of an object store only the parts that queries need are read; either way each block
    is verified before its first use. Several processes can open an index, also while a newer version is prepared: they
    go on with the version that they have opened.

    >>> open_index("nowhere")
    Traceback (most recent call last):
    neupath.errors.SourceError: nowhere has no index.json, so it is no prepared index; `neupath prepare` makes one
    """
    return PreparedIndex.open(url)
