"""Read JSON records as a graph: OpenAlex-like nested records, records with foreign keys, and nodes with edges.

The rules, which docs/graphs.md explains with examples:

- A record with an id is a node; its type is the file's name, the key of its array, or the key that holds it.
- An object with an id inside a record is a node, and the key that leads there is a relation. An object without an id
  is passed through: `authorships[].author` is a relation from the work to the author.
- A list of texts, and a key such as `user_id` or `referenced_works`, is a relation if its values are ids of nodes.
- All other texts, numbers and booleans are attributes.
- Records with two ends (`subject` and `object`, `source` and `target`, …), or with foreign keys and no id, are edges.
"""

import json
import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from neupath._runtime.progress import Progress, no_progress
from neupath.errors import GraphError, MissingExtraError, SourceError, first_line, listed
from neupath.graph.hin import HIN, MOST_KINDS
from neupath.io.assembly import BIOLINK, GENERAL_CLASSES, EdgeTable, NodeTable, RawAttributes, assemble
from neupath.io.edge_columns import undeclared_attributes
from neupath.io.formats.json_values import Collection, Document, Record, json_errors, sampled
from neupath.io.interop import from_networkx
from neupath.io.plan import Place, ReadOptions, bad_weight, repeated_id
from neupath.io.text_files import open_raw

_SAMPLE = 1000
_INNER = ("data", "properties", "attributes")
"""Keys under which edges have their attributes as an object of its own."""
_FEW_TEXTS, _LONG_TEXT = 100, 200
"""After so many texts under a key of edges, they are prose if they have more than so many letters on average."""
_ID_KEYS = ("id", "_id", "@id", "ID", "Id", "identifier", "uid", "uri", "key")
_NAME_KEYS = ("display_name", "name", "title", "label")
_END_KEYS = (
    ("subject", "object"), ("source_id", "target_id"), ("source", "target"), ("head", "tail"), ("from", "to"),
    ("_from", "_to"), ("src", "dst"), ("start", "end"), ("start_id", "end_id"), ("from_id", "to_id"),
)  # fmt: skip
_RELATION_KEYS = (
    "predicate",
    "relation",
    "relation_type",
    "edge_type",
    "rel_type",
    "metaedge",
    "kind",
    "label",
    "type",
)
_TYPE_KEYS = ("category", "kind", "type", "node_type", "labels", "label")
_GENERIC = {
    "", "data", "results", "items", "records", "rows", "docs", "hits", "elements", "content", "export", "dump", "part",
    "output", "file", "graph", "train", "valid", "test", "full", "sample",
}  # fmt: skip
_OTHER_IDS = ("asin", "isbn", "sku")
"""Keys of ids whose names do not say so."""
_TRANSPARENT = ("data", "properties", "attributes")
"""Objects whose content belongs to the record itself, unless both have the same key."""
_NOTHING = ("", "None", "null")
_LIKE_ITSELF = {
    "reference", "citation", "cited", "cite", "related", "similar", "parent", "child", "children", "ancestor", "friend",
    "follower", "followee", "following", "neighbor", "neighbour", "sibling", "successor", "predecessor", "alike",
}  # fmt: skip
"""Words for nodes of the record's own type."""
_ID_SUFFIX = re.compile(r"(?:[_\s-](?:ids?|Ids?|IDs?)|(?<=[a-z0-9])(?:Ids?|IDs?))$")
_LONGEST_ID, _FEW_WORDS, _CACHED = 500, 8, 1 << 14
_IRI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+")
_UNCHANGED = ("series", "species", "news")
_IRREGULAR = {"children": "child", "people": "person", "vertices": "vertex", "indices": "index", "men": "man"}
_PLURALS = ("movies", "cookies", "calories", "zombies", "selfies", "ties", "pies")
"""Plurals in -ies whose singular ends in -ie."""
UNTYPED = "entity"
_MOST_KEYS = 256
"""An object without an id that has more keys than this, over all records, is a table by words or numbers."""
Scalar = str | int | float | bool
_Objects = Iterator[tuple[int, Record]]
"""Records, each with its number."""


# ---- Words ---------------------------------------------------------------------------------------
@lru_cache(_CACHED)
def singular(word: str) -> str:
    """Return the singular of a name's last word.

    >>> [singular(word) for word in ("works", "movies", "sub_categories", "business", "boxes", "status")]
    ['work', 'movie', 'sub_category', 'business', 'box', 'status']
    """
    low = word.lower()
    irregular = next((plural for plural in _IRREGULAR if re.search(rf"(^|_){plural}$", low)), None)
    if irregular is not None:
        return word[: -len(irregular)] + _IRREGULAR[irregular]
    if low.endswith(("ss", "us", "is", *_UNCHANGED)) or not low.endswith("s"):
        return word
    if low.endswith("ies") and not low.endswith(_PLURALS):
        return word[:-3] + "y"
    return word[:-2] if low.endswith(("sses", "xes", "ches", "shes", "zes")) else word[:-1] or word


@lru_cache(_CACHED)
def _entity(key: str) -> str | None:
    """Return the type that a foreign key names: user for user_id, userId and user_ids; None for other keys."""
    return (singular(_ID_SUFFIX.sub("", key)) or None) if _ID_SUFFIX.search(key) else None


def _as_id(value: Any) -> str | None:
    """Return an id as a text, or None if a value cannot be an id."""
    plain = _plain(value)
    if isinstance(plain, str):
        return plain if 0 < len(plain) <= _LONGEST_ID and "\n" not in plain else None
    if isinstance(plain, float) and plain.is_integer():
        plain = int(plain)  # pandas writes integers so if one is missing
    return str(plain) if isinstance(plain, int) and not isinstance(plain, bool) else None


def _plain(value: Any) -> Any:
    """Return what MongoDB writes as {"$oid": …} as the value itself."""
    if isinstance(value, dict) and len(value) == 1:
        key, inner = next(iter(value.items()))
        return inner if key.startswith("$") else value
    return value


def _own_id_key(record: Record, name: str) -> str | None:
    """Return the key of an object's own id: id, or one named after the object itself."""
    for key in (*_ID_KEYS[:5], f"{name}_id", f"{name}Id", f"{name}ID"):
        if key in record and _as_id(record[key]) is not None:
            return key
    return None


# ---- Nodes of one type, and everything -----------------------------------------------------------
@dataclass
class _Kind:
    """The nodes of one type: rows by id, and what is known of each."""

    name: str
    rows: dict[str, int] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    values: defaultdict[str, dict[int, Scalar]] = field(default_factory=lambda: defaultdict(dict))
    lists: defaultdict[str, dict[int, list[Scalar]]] = field(default_factory=lambda: defaultdict(dict))
    loose: defaultdict[str, dict[int, list[Scalar]]] = field(default_factory=lambda: defaultdict(dict))
    """Foreign keys and IRIs of objects in lists, which may lead to nodes."""
    records: set[int] = field(default_factory=set)
    """The rows that have a record of their own."""
    renamed: dict[int, str] = field(default_factory=dict)
    """Other names by which nodes without a record are mentioned."""
    differing: set[str] = field(default_factory=set)
    """Keys whose values differ from mention to mention of one node."""

    def row(self, id: str) -> int:
        return self.rows.setdefault(id, len(self.rows))

    def set_name(self, row: int, name: str, is_record: bool) -> None:
        if is_record:
            self.names[row] = name
        elif self.names.setdefault(row, name) != name and row not in self.records:
            self.renamed.setdefault(row, name)

    def set_value(self, row: int, path: str, value: Scalar, is_record: bool) -> None:
        column = self.values[path]
        if is_record:
            column[row] = value
        elif row not in self.records and column.setdefault(row, value) != value:
            self.differing.add(path)


Key = tuple[str, str, str]
"""Source type, relation, target type."""


@dataclass
class _Ends:
    """The edges of one relation, as rows, with their weights (None: 1)."""

    sources: "array[int]" = field(default_factory=lambda: array("q"))
    targets: "array[int]" = field(default_factory=lambda: array("q"))
    weights: list[float | None] = field(default_factory=list)
    directed: bool = False
    """Whether at least one of them has a direction."""
    values: dict[str, dict[int, Scalar]] = field(default_factory=dict)
    """Attributes: the value of each edge that has one, by the number of the edge."""

    def add(
        self,
        source: int,
        target: int,
        weight: float | None = None,
        directed: bool = True,
        values: Mapping[str, Scalar] = MappingProxyType({}),
    ) -> None:
        for key, value in values.items():
            self.values.setdefault(key, {})[len(self.sources)] = value
        self.sources.append(source)
        self.targets.append(target)
        self.weights.append(weight)
        self.directed |= directed


@dataclass
class _RawEdges:
    """Edges of one collection between ids whose types are not known yet; an end is its type, if given, and its id."""

    collection: Collection
    numbers: "array[int]" = field(default_factory=lambda: array("q"))
    sources: list[tuple[str | None, str]] = field(default_factory=list)
    relations: list[str] = field(default_factory=list)
    targets: list[tuple[str | None, str]] = field(default_factory=list)
    weights: list[float | None] = field(default_factory=list)
    directed: bytearray = field(default_factory=bytearray)
    values: list[Mapping[str, Scalar]] = field(default_factory=list)

    def add(
        self, number: int, record: Record, keys: tuple[str, str], relation: str, values: Mapping[str, Scalar]
    ) -> None:
        """Add the edge of a record, whose ends are under the two keys, and which has these attributes."""
        for column, key in zip((self.sources, self.targets), keys, strict=True):
            column.append(_end(record.get(key), key, self.collection, number))
        self.numbers.append(number)
        self.relations.append(relation)
        self.weights.append(_weight(record.get("weight"), self.collection, number))
        self.directed.append(record.get("direction") != "both" and record.get("directed") is not False)
        self.values.append(values)


def _weight(value: Any, collection: Collection, number: int) -> float | None:
    if value is None:
        return None
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 2**1000
    if not is_number:
        raise bad_weight(collection.place(number), value)
    return float(value)


class _Graph:
    """Nodes and edges as they are collected."""

    def __init__(self) -> None:
        self.kinds: dict[str, _Kind] = {}
        self.ends: defaultdict[Key, _Ends] = defaultdict(_Ends)
        self.mentioned: defaultdict[Key, dict[tuple[int, int], None]] = defaultdict(dict)
        """Edges from nodes that are only mentioned, once however often they are."""
        self.raw_edges: list[_RawEdges] = []
        self.left_out: Counter[str] = Counter()
        self._lengths: dict[tuple[str, str], tuple[int, int]] = {}  # of the texts that are attributes of edges
        self.prose: set[tuple[str, str]] = set()  # attributes of edges whose texts are too long to keep
        self._item: dict[str, Scalar] = {}  # what the object of a list that is being read says of its edges
        self._links = 0
        self.tables: set[tuple[str, str]] = set()
        self._keys: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        self.notes: list[str] = []

    def values_of_edge(self, name: str, record: Record, keys: Iterable[str]) -> dict[str, Scalar]:
        """Return the attributes among some keys of an edge; note nested values and long texts as left out."""
        values: dict[str, Scalar] = {}
        for key in keys:
            value, path = record[key], (name, key)
            if key in _INNER and isinstance(value, dict):
                values |= self.values_of_edge(name, value, value.keys() - set(keys))
                continue
            if isinstance(value, str) and path not in self.prose:
                count, letters = self._lengths.get(path, (0, 0))
                self._lengths[path] = count, letters = count + 1, letters + len(value)
                if count >= _FEW_TEXTS and letters > _LONG_TEXT * count:
                    self.prose.add(path)
            if value in (None, "", {}, []):
                continue
            if path in self.prose or not isinstance(value, str | int | float) or key.lower() == "weight":
                self.left_out[f"{name}.{key}"] += 1
            else:
                values[key] = value
        return values

    def kind(self, name: str) -> _Kind:
        if name not in self.kinds and len(self.kinds) >= MOST_KINDS:
            raise GraphError(f"the records name more than {MOST_KINDS:,} node types; check which key holds the types")
        return self.kinds.setdefault(name, _Kind(name))

    def add_record(
        self, kind: _Kind, record: Record, where: tuple[Collection, int], id_key: str, type_key: str | None = None
    ) -> None:
        """Add a record as a node, with all that is in it."""
        own_id = str(_as_id(record[id_key]))
        row = kind.row(own_id)
        if row in kind.records:
            raise repeated_id(where[0].place(where[1]), own_id)
        kind.records.add(row)
        kind.names.pop(row, None)
        content = {key: value for key, value in record.items() if key not in (id_key, type_key)}
        self._describe(_Owner(kind, row, True), content, "")

    def _describe(self, owner: "_Owner", record: Record, prefix: str, in_list: bool = False) -> None:
        """Add what a record, or an object in it, says of a node; `prefix` are the keys that lead to the object."""
        name_key = None if prefix else next((key for key in _NAME_KEYS if isinstance(record.get(key), str)), None)
        if name_key is not None:
            owner.kind.set_name(owner.row, record[name_key], owner.is_record)
        for key, raw in record.items():
            value = _plain(raw)
            if key in _TRANSPARENT and isinstance(value, dict) and not value.keys() & record.keys():
                self._describe(owner, value, prefix, in_list)
            elif key != name_key and value is not None:
                self._describe_value(owner, key, value, prefix, in_list)

    def _describe_value(self, owner: "_Owner", key: str, value: Any, prefix: str, in_list: bool) -> None:
        path = prefix + key
        if (owner.kind.name, path) in self.tables:
            return
        if isinstance(value, dict):
            self._describe_object(owner, key, value, prefix, in_list)
        elif isinstance(value, list) and value and all(isinstance(_plain(item), dict) for item in value):
            for item in value:
                self._describe_object(owner, key, item, prefix, in_list=True)
        elif isinstance(value, list) and not any(isinstance(_plain(item), dict | list) for item in value):
            items = [_plain(item) for item in value if item is not None]
            before = owner.kind.lists[path].get(owner.row, []) if in_list else []
            owner.kind.lists[path][owner.row] = [*before, *items]
        elif in_list and _as_id(value) is not None and (_entity(key) or _IRI.fullmatch(str(value))):
            owner.kind.loose[path].setdefault(owner.row, []).append(value)
        elif in_list and key in self._item:
            return
        elif in_list or isinstance(value, list):
            self.left_out[f"{owner.kind.name}.{path}"] += 1
        else:
            owner.kind.set_value(owner.row, path, value, owner.is_record)

    def _describe_object(self, owner: "_Owner", key: str, value: Record, prefix: str, in_list: bool) -> None:
        """Follow an object: to a node if it has an id, else through it."""
        path, name = prefix + key, singular(key)
        id_key = _own_id_key(value, name)
        if id_key is not None:
            target = self.kind(name)
            row = target.row(str(_as_id(value[id_key])))
            self._link((owner.kind.name, path, target.name), owner, row)
            self._describe(_Owner(target, row, False), {k: v for k, v in value.items() if k != id_key}, "")
            return
        keys = self._keys[owner.kind.name, path]
        keys.update(value)
        if len(keys) > _MOST_KEYS:
            self._leave_out_table(owner.kind, path)
        elif in_list and owner.is_record:
            self._describe_item(owner, value, path)
        else:
            self._describe(owner, value, f"{path}.", in_list)

    def _describe_item(self, owner: "_Owner", value: Record, path: str) -> None:
        """Follow an object of a list that has no id: what it says besides belongs to the edges that lead through it."""
        plain = {key: _plain(each) for key, each in value.items()}
        own = [
            key
            for key, each in plain.items()
            if isinstance(each, str | int | float) and not (_entity(key) or _IRI.fullmatch(str(each)))
        ]
        outer, links = self._item, self._links
        self._item = self.values_of_edge(f"{owner.kind.name}.{path}", plain, own)
        self._describe(owner, value, f"{path}.", in_list=True)
        if self._links == links:  # it leads nowhere
            self.left_out.update(f"{owner.kind.name}.{path}.{key}" for key in self._item)
        self._item = outer

    def _leave_out_table(self, kind: _Kind, path: str) -> None:
        """Forget what was read of an object whose keys are words or numbers, and read no more of it."""
        self.tables.add((kind.name, path))
        for columns in (kind.values, kind.lists, kind.loose):
            for inner in [each for each in columns if each.startswith(f"{path}.")]:
                del columns[inner]
        for inner in [each for each in self.left_out if each.startswith(f"{kind.name}.{path}.")]:
            del self.left_out[inner]

    def _link(self, key: Key, owner: "_Owner", target: int) -> None:
        self._links += 1
        if owner.is_record:
            self.ends[key].add(owner.row, target, values=self._item)
        elif owner.row not in owner.kind.records:
            self.mentioned[key][owner.row, target] = None


@dataclass(frozen=True)
class _Owner:
    """The node that values belong to, and whether they come from a record of its own."""

    kind: _Kind
    row: int
    is_record: bool


# ---- Collections ---------------------------------------------------------------------------------
def _read_collection(graph: _Graph, collection: Collection, name: str) -> None:
    """Add the records of one collection, by what its first ones look like."""
    sample, records = sampled(collection.records, _SAMPLE)
    if collection.key is not None and not any(isinstance(record, dict) for record in sample):
        for _ in records:
            pass
        graph.notes.append(f"{collection.file.name}: {collection.key} left out, which is not a list of records")
        return
    for number, record in enumerate(sample, 1):
        if not isinstance(record, dict):
            raise SourceError(
                f"{collection.place(number)}: expected an object with keys, got {str(record)[:40]!r}; a graph in JSON "
                f'has records such as {{"id": …, "name": …}}, or nodes and edges'
            )
    if not sample:
        return
    if collection.key == "@graph" or any("@context" in record or "@type" in record for record in sample):
        raise _is_json_ld(collection.file)
    objects, ends = _objects(collection, records), _end_keys(sample)
    if all(record.get("type") in ("node", "relationship") for record in sample):
        _read_exported(graph, collection, objects)
    elif ends is not None:
        _read_edges(graph, collection, objects, name, ends, sample)
    elif _last_word(name) in ("node", "vertex", "entity"):
        _read_typed_nodes(graph, collection, objects, sample)
    else:
        _read_records(graph, collection, objects, name, sample)


def _is_json_ld(file: Path) -> SourceError:
    return SourceError(f"{file} is JSON-LD, which is RDF; give it a name that ends in .jsonld")


def _objects(collection: Collection, records: Iterator[tuple[int, Any]]) -> Iterator[tuple[int, Record]]:
    for number, record in records:
        if not isinstance(record, dict):
            place = collection.place(number)
            raise SourceError(f"{place}: expected an object with keys as before, got {str(record)[:40]!r}")
        yield number, record


def _in_all(sample: Sequence[Record], key: str) -> bool:
    return all(record.get(key) is not None for record in sample)


def _are_scalars(sample: Sequence[Record], key: str) -> bool:
    """Whether each of some records has an id under a key."""
    return all(_as_id(record.get(key)) is not None for record in sample)


def _are_words(sample: Sequence[Record], key: str, few: bool) -> bool:
    """Whether the values of a key may be types or relations: words, and if asked, few different ones."""
    values = [record[key] for record in sample if record.get(key)]
    if not values or not all(isinstance(value, str | list) for value in values):
        return False
    return not few or len(set(map(str, values))) <= max(_FEW_WORDS, len(sample) // 10)


def _shared_keys(sample: Sequence[Record]) -> list[str]:
    return [key for key in sample[0] if all(key in record for record in sample)]


def _end_keys(sample: Sequence[Record]) -> tuple[str, str] | None:
    """Return the keys of the two ends if the records are edges."""
    for pair in _END_KEYS:
        dates = pair == ("start", "end") and not all(isinstance(record.get("start"), dict) for record in sample)
        if all(_in_all(sample, key) for key in pair) and not dates:
            return pair
    return None


def _read_edges(
    graph: _Graph, collection: Collection, objects: _Objects, name: str, ends: tuple[str, str], sample: Sequence[Record]
) -> None:
    edges = _RawEdges(collection)
    graph.raw_edges.append(edges)
    relation_key = next((key for key in _RELATION_KEYS if _are_words(sample, key, few=key in ("label", "type"))), None)
    for number, record in objects:
        relation = name if relation_key is None else _word(record.get(relation_key))
        if not relation:
            raise SourceError(f"{collection.place(number)}: the edge has no {relation_key!r}, as others have")
        others = record.keys() - {*ends, relation_key, "weight", "id", "direction", "directed"}
        edges.add(number, record, ends, relation, graph.values_of_edge(name, record, others))


def _end(value: Any, key: str, collection: Collection, number: int) -> tuple[str | None, str]:
    """Return the type, if it is there, and the id of one end: an id, [type, id], or an object with an id."""
    if isinstance(value, dict) and (id_key := _own_id_key(value, "")) is not None:
        kind = next((_word(value[key]) for key in _TYPE_KEYS if key in value), None)
        return kind, str(_as_id(value[id_key]))
    is_typed = key.endswith("_id") and isinstance(value, list) and len(value) == 2
    if is_typed and isinstance(value[0], str) and _as_id(value[1]) is not None:
        return value[0], str(_as_id(value[1]))
    if (plain := _as_id(value)) is None:
        place = collection.place(number)
        raise SourceError(f"{place}: {key!r} is {str(value)[:40]!r}, but the end of an edge is an id")
    return None, plain


def _word(value: Any) -> str:
    """Return a type or relation as a word: the first of several that says something, without KGX's prefix."""
    items = value if isinstance(value, list) else [value]
    words = [str(item).removeprefix(BIOLINK).removeprefix(":").strip() for item in items if item]
    return next((word for word in words if word not in GENERAL_CLASSES), words[0] if words else "")


def _read_typed_nodes(graph: _Graph, collection: Collection, objects: _Objects, sample: Sequence[Record]) -> None:
    """Add nodes that say their own type."""
    id_key = next((key for key in _ID_KEYS if _are_scalars(sample, key)), None)
    if id_key is None:
        raise SourceError(f"{collection.place(1)}: nodes need an id, but have {listed(sample[0])}")
    type_key = next(
        (key for key in _TYPE_KEYS if _in_all(sample, key) and _are_words(sample, key, key == "label")), None
    )
    if type_key == "label" and 2 * len({record["label"] for record in sample}) > len(sample):
        type_key = None  # what nodes are called, each differently
    for number, record in objects:
        kind = UNTYPED if type_key is None else _word(record.get(type_key))
        if not kind or _as_id(record.get(id_key)) is None:
            missing = id_key if kind else type_key
            raise SourceError(f"{collection.place(number)}: the node has no {missing!r}, as others have")
        graph.add_record(graph.kind(kind), record, (collection, number), id_key, type_key)


def _read_records(
    graph: _Graph, collection: Collection, objects: _Objects, name: str, sample: Sequence[Record]
) -> None:
    """Add records with an id as nodes, and records with several foreign keys and no id as edges."""
    kind_name, id_key = _find_own_id(sample, name)
    foreign = [key for key in _shared_keys(sample) if (_entity(key) or key in _OTHER_IDS) and _are_scalars(sample, key)]
    if id_key is None and len(foreign) >= 2:
        _read_foreign_keys(graph, collection, objects, name, foreign)
        return
    if id_key is None:
        raise SourceError(
            f"{collection.place(1)}: the records have no id; they have {listed(sample[0])}, and an id is called id, "
            f"_id or {singular(name)}_id"
        )
    kind = graph.kind(kind_name)
    for number, record in objects:
        if _as_id(record.get(id_key)) is None:
            given = f"{record[id_key]!r:.40} is no id" if record.get(id_key) is not None else "it is missing"
            raise SourceError(f"{collection.place(number)}: every record needs its id in {id_key!r}, but {given}")
        graph.add_record(kind, record, (collection, number), id_key)


def _find_own_id(sample: Sequence[Record], name: str) -> tuple[str, str | None]:
    """Return the type of the records, and the key of their ids: id, one named after the file, or the only one."""
    for key in _ID_KEYS[:5]:
        if _are_scalars(sample, key):
            return singular(name), key
    keys = [key for key in _shared_keys(sample) if _entity(key) and _are_scalars(sample, key)]
    own = [key for key in keys if singular(name).lower().endswith(str(_entity(key)).lower())]
    if not own and len(keys) == 1 and not any(key in sample[0] for key in _OTHER_IDS):
        own = keys if len({record[keys[0]] for record in sample}) == len(sample) else []
    if own:
        return str(_entity(own[0])), own[0]
    codes = [key for key in _OTHER_IDS if _are_scalars(sample, key) and len({r[key] for r in sample}) == len(sample)]
    if len(codes) == 1 and not keys:
        return codes[0], codes[0]
    others = [key for key in _ID_KEYS[5:] if _are_scalars(sample, key)]
    return singular(name), others[0] if others and not keys else None


def _read_foreign_keys(
    graph: _Graph, collection: Collection, objects: _Objects, name: str, keys: Sequence[str]
) -> None:
    """Add records without an id as edges from the first of their foreign keys to the others."""
    kinds = [graph.kind(_entity(key) or key) for key in keys]
    names = [name] if len(keys) == 2 else [kind.name for kind in kinds[1:]]
    for number, record in objects:
        ids = [_as_id(record.get(key)) for key in keys]
        if None in ids:
            raise SourceError(
                f"{collection.place(number)}: the record has no {keys[ids.index(None)]!r}, as others have"
            )
        rows = [kind.row(str(each)) for kind, each in zip(kinds, ids, strict=True)]
        named = {each for key in keys for each in _name_keys(key)}
        values = graph.values_of_edge(name, record, record.keys() - set(keys) - named)
        for relation, kind, row in zip(names, kinds[1:], rows[1:], strict=True):
            graph.ends[kinds[0].name, relation, kind.name].add(rows[0], row, values=values)
        for key, kind, row in zip(keys, kinds, rows, strict=True):
            label = next((record[each] for each in _name_keys(key) if isinstance(record.get(each), str)), None)
            if label:
                kind.names.setdefault(row, label)
    graph.notes.append(f"{collection.file.name}: its records have no id and are edges between {listed(keys)}")


def _name_keys(key: str) -> tuple[str, str]:
    """Return the keys that may hold the name beside an id: reviewerName and reviewer_name for reviewerID."""
    return f"{_entity(key) or key}Name", f"{_entity(key) or key}_name"


def _read_exported(graph: _Graph, collection: Collection, objects: _Objects) -> None:
    """Add nodes and relationships as Neo4j exports them, in one file."""
    edges = _RawEdges(collection)
    graph.raw_edges.append(edges)
    for number, record in objects:
        if record.get("type") == "node" and _as_id(record.get("id")) is not None:
            content = {"id": record["id"], "properties": record.get("properties")}
            graph.add_record(graph.kind(_word(record.get("labels")) or UNTYPED), content, (collection, number), "id")
        elif record.get("type") == "relationship" and _word(record.get("label")):
            label, properties = _word(record["label"]), record.get("properties")
            own = properties if isinstance(properties, dict) else {}
            edges.add(number, record, ("start", "end"), label, graph.values_of_edge(label, own, own.keys()))
        else:
            raise SourceError(f"{collection.place(number)}: neither a node with an id nor a relationship with a label")


# ---- Names of collections ------------------------------------------------------------------------
def _file_name(file: Path) -> str:
    """Return what the records of a file are called: its name without numbers, and without `part` at its end."""
    stem = re.sub(r"(\.(jsonl|ndjson|json))?(\.gz)?$", "", file.name, flags=re.IGNORECASE)
    words = re.findall(r"[^\W\d_]+", stem)
    while len(words) > 1 and words[-1].lower() in _GENERIC:
        words.pop()
    return "_".join(words)


def _last_word(name: str) -> str:
    return singular(name.rpartition("_")[2].lower())


def _name_of(collection: Collection, file_name: str) -> str:
    for name in (collection.key or "", file_name):
        if name.lower() not in _GENERIC:
            return name
    return "record"


# ---- The graph -----------------------------------------------------------------------------------
def read_json(files: Sequence[Path], options: ReadOptions, progress: Progress = no_progress) -> HIN:
    """Read JSON files as one graph."""
    graph = _Graph()
    for done, file in enumerate(files):
        progress("reading", done, len(files))
        document = Document(file)
        with json_errors(file):
            for collection in document.collections():
                _read_collection(graph, collection, _name_of(collection, _file_name(file)))
        if document.header.get("multigraph") is not None:
            return _read_node_link(file, options)
        _check_header(graph, document)
    _refuse_local_ids(graph)
    _resolve(graph)
    _merge_kinds(graph)
    _find_relations(graph)
    if not any(ends.sources for ends in graph.ends.values()) and not any(graph.mentioned.values()):
        raise _no_relations(graph, files)
    return _assemble(graph, options)


def _refuse_local_ids(graph: _Graph) -> None:
    """Raise if numbers that are unique only within a record would make one node of several."""
    for kind in graph.kinds.values():
        numbers = all(id.isdigit() for id in islice(kind.rows, _SAMPLE))
        if kind.records or not numbers:
            continue
        ids = list(kind.rows)
        if kind.renamed:
            row, name = next(iter(kind.renamed.items()))
            facts = f"is called {kind.names[row]!r} and {name!r}"
        elif not kind.names and kind.values and set(kind.values) <= kind.differing:
            row, facts = 0, f"has different values of {listed(kind.values, 4)}"
        else:
            continue
        raise SourceError(
            f"{kind.name} {ids[row]} {facts} in different records, so its id seems to be unique within one record "
            f"only; make the ids of {kind.name} unique"
        )


def _no_relations(graph: _Graph, files: Sequence[Path]) -> SourceError:
    keys = [f"{kind.name}.{path}" for kind in graph.kinds.values() for path in kind.values]
    return SourceError(
        f"{listed(map(str, files), 3)}: no key leads from one record to another, so there are no edges (the keys are "
        f"{listed(keys, 8)}); relations are objects with an id, lists of texts, and keys such as user_id"
    )


def _check_header(graph: _Graph, document: Document) -> None:
    """Note the values of a document that are not records; raise if it is a record itself, or has none."""
    if "@context" in document.header:
        raise _is_json_ld(document.file)
    if any(_as_id(document.header.get(key)) is not None for key in _ID_KEYS[:5]):
        raise SourceError(f"{document.file} holds one record; write a list of records, or a record per line")
    objects = [key for key, value in document.header.items() if isinstance(value, dict)]
    if not graph.kinds and not graph.raw_edges:
        raise SourceError(
            f"{document.file} has no records: its keys are {listed(document.header) or 'none'}, and none holds a list "
            f'of objects; a graph in JSON is {{"nodes": […], "edges": […]}}, a list of records, or a record per line'
        )
    if objects:
        graph.notes.append(f"{document.file.name}: {listed(objects)} left out, which is not a list of records")


def _read_node_link(file: Path, options: ReadOptions) -> HIN:
    """Read what NetworkX writes as node-link data, by the rules for NetworkX graphs."""
    try:
        import networkx as nx
    except ModuleNotFoundError as error:
        raise MissingExtraError("networkx", "networkx") from error
    with json_errors(file), open_raw(file) as stream:
        content = json.load(stream)
        key = "links" if "links" in content else "edges"
        try:
            ids = [node["id"] for node in content["nodes"]]
            unknown = {end for link in content[key] for end in (link["source"], link["target"])} - set(ids)
            graph = nx.node_link_graph(content, edges=key)
        except (nx.NetworkXException, LookupError, TypeError, AttributeError) as error:
            raise SourceError(f"{file} cannot be read as node-link data: {first_line(error)}") from error
        if unknown:
            raise SourceError(f"{file}: an edge leads to {min(map(str, unknown))!r}, which is not the id of a node")
        if len(set(ids)) < len(ids):
            raise SourceError(f"{file}: node id {Counter(ids).most_common(1)[0][0]!r} is repeated; ids must be unique")
    return from_networkx(graph, duplicates=options.duplicates)


def _resolve(graph: _Graph) -> None:
    """Give the ends of edges their types: the one that the record names, or that of the node with this id."""
    known: dict[str, str | None] = {}
    for kind in graph.kinds.values():
        for id in kind.rows:
            known[id] = None if id in known else kind.name  # None: several types have it
    for edges in graph.raw_edges:
        for at, number in enumerate(edges.numbers):
            source, start = _node_of(graph, known, edges.sources[at], edges.collection, number)
            target, end = _node_of(graph, known, edges.targets[at], edges.collection, number)
            directed = bool(edges.directed[at]) or source != target
            ends = graph.ends[source, edges.relations[at], target]
            ends.add(start, end, edges.weights[at], directed, edges.values[at])
    graph.raw_edges = []


def _node_of(
    graph: _Graph, known: Mapping[str, str | None], end: tuple[str | None, str], collection: Collection, number: int
) -> tuple[str, int]:
    """Return the type and the row of an end; without any nodes, all ends are nodes of one type."""
    name, id = end[0] or (known.get(end[1]) if known else UNTYPED), end[1]
    if name is None or (known and (name not in graph.kinds or id not in graph.kinds[name].rows)):
        raise _unknown_node(graph, collection.place(number), id)
    return name, graph.kind(name).row(id)


def _unknown_node(graph: _Graph, place: str, id: str) -> SourceError:
    owners = [kind.name for kind in graph.kinds.values() if id in kind.rows]
    if owners:
        return SourceError(f"{place}: the id {id!r} is that of a {' and of a '.join(owners)}; edges need unique ids")
    return SourceError(
        f"{place}: the edge leads to {id!r}, which is not the id of a node; add the node, or leave it out"
    )


# ---- Types under several keys --------------------------------------------------------------------
def _merge_kinds(graph: _Graph) -> None:
    """Make one type of those that share an IRI, such as primary_topic and topics: that of records, or the shortest."""
    owner: dict[str, str] = {}
    same = {name: name for name in graph.kinds}

    def root(name: str) -> str:
        while same[name] != name:
            name = same[name]
        return name

    for kind in graph.kinds.values():
        for id in kind.rows:
            if _IRI.fullmatch(id):
                one, other = root(owner.setdefault(id, kind.name)), root(kind.name)
                if one != other:
                    same[other] = one
        named = graph.kinds.get(_last_word(kind.name))
        if (
            named is not None
            and named.records
            and not kind.records
            and 2 * sum(map(named.rows.__contains__, kind.rows)) >= len(kind.rows)
        ):
            same[root(kind.name)] = root(named.name)
    groups: defaultdict[str, list[_Kind]] = defaultdict(list)
    for name, kind in graph.kinds.items():
        groups[root(name)].append(kind)
    for kinds in groups.values():
        if len(kinds) > 1:
            _merge(graph, sorted(kinds, key=lambda kind: (not kind.records, len(kind.name), kind.name)))


def _merge(graph: _Graph, kinds: Sequence[_Kind]) -> None:
    first = kinds[0]
    for other in kinds[1:]:
        rows = np.array([first.row(id) for id in other.rows], dtype=np.int64)
        if any(int(rows[row]) in first.records for row in other.records):
            raise SourceError(
                f"an id is that of a {first.name} and of a {other.name}; give each record once, or name the files alike"
            )
        for row, name in other.names.items():
            first.names.setdefault(int(rows[row]), name)
        first.records |= {int(rows[row]) for row in other.records}
        first.differing |= other.differing
        for path, column in other.values.items():
            for row, value in column.items():
                first.set_value(int(rows[row]), path, value, False)
        for own, others in ((first.lists, other.lists), (first.loose, other.loose)):
            for path, lists in others.items():
                for row, items in lists.items():
                    own[path].setdefault(int(rows[row]), items)
        _rename(graph, other.name, first.name, rows)
        del graph.kinds[other.name]
    names = listed(kind.name for kind in kinds[1:])
    graph.notes.append(f"{names} and {first.name} share ids and are one type, {first.name}")


def _rename(graph: _Graph, old: str, new: str, rows: NDArray[np.int64]) -> None:
    """Lead the edges of one type to another, whose rows are given."""
    for key in [key for key in graph.ends if old in (key[0], key[2])]:
        ends = graph.ends.pop(key)
        merged = graph.ends[new if key[0] == old else key[0], key[1], new if key[2] == old else key[2]]
        for path, values in ends.values.items():
            merged.values.setdefault(path, {}).update({at + len(merged.sources): v for at, v in values.items()})
        merged.sources.extend(rows[ends.sources].tolist() if key[0] == old else ends.sources)
        merged.targets.extend(rows[ends.targets].tolist() if key[2] == old else ends.targets)
        merged.weights += ends.weights
        merged.directed |= ends.directed
    for key in [key for key in graph.mentioned if old in (key[0], key[2])]:
        pairs = graph.mentioned.pop(key)
        column = graph.mentioned[new if key[0] == old else key[0], key[1], new if key[2] == old else key[2]]
        for source, target in pairs:
            ends_of = int(rows[source]) if key[0] == old else source, int(rows[target]) if key[2] == old else target
            column[ends_of] = None


# ---- Keys whose values are ids -------------------------------------------------------------------
def _find_relations(graph: _Graph) -> None:
    """Turn lists, and the values of foreign keys, into edges."""
    for kind in list(graph.kinds.values()):
        for path in list(kind.lists):
            lists = kind.lists.pop(path)
            single = kind.values.pop(path, {}) if path not in kind.differing else {}
            _read_lists(graph, kind, path, lists | {row: [value] for row, value in single.items()})
        for path, lists in kind.loose.items():
            _read_loose(graph, kind, path, lists)
        for path, column in list(kind.values.items()):
            if path not in kind.differing and not _repeats_id(graph, kind, path, column):
                _read_foreign(graph, kind, path, column)


def _read_lists(graph: _Graph, kind: _Kind, path: str, lists: Mapping[int, list[Scalar]]) -> None:
    """Make edges of lists of ids or texts; leave out others."""
    values = {row: [item for item in items if _as_id(item) is not None] for row, items in lists.items()}
    distinct = {str(_as_id(item)) for items in values.values() for item in items}
    target = _target_of(graph, kind, path, distinct)
    if target is None and any(_is_no_text(item) for items in lists.values() for item in items):
        graph.left_out[f"{kind.name}.{path}"] += len(lists)
    elif distinct:
        _add_edges(graph, kind, path, target or _new_kind(graph, kind, path), values)


def _read_loose(graph: _Graph, kind: _Kind, path: str, lists: Mapping[int, list[Scalar]]) -> None:
    """Make edges of the foreign keys of objects in lists, such as `items[].product_id`; leave out others."""
    key = path.rpartition(".")[2]
    entity = _entity(key)
    named = [
        each for each in graph.kinds.values() if entity and each.name.lower() in (entity.lower(), _last_word(entity))
    ]
    ids = {str(_as_id(item)) for items in lists.values() for item in items}
    target = named[0] if named else _target_of(graph, kind, path, ids)
    if target is None and (entity is None or len(ids) == sum(map(len, lists.values()))):
        graph.left_out[f"{kind.name}.{path}"] += len(lists)
    else:
        _add_edges(graph, kind, path, target or graph.kind(str(entity)), lists)


def _read_foreign(graph: _Graph, kind: _Kind, path: str, column: Mapping[int, Scalar]) -> None:
    """Make edges of values that are ids of nodes, or lists of such ids in one text; leave others as attributes."""
    ids = {str(_as_id(value)) for value in column.values() if _as_id(value) is not None}
    linked = [graph.kinds[key[2]] for key in (*graph.ends, *graph.mentioned) if key[:2] == (kind.name, path)]
    target = next((each for each in linked if ids and all(id in each.rows for id in ids)), None)
    target = target or _foreign_target(graph, kind, path, column, ids)
    if linked and target is None:
        graph.notes.append(f"{path} of {kind.name} leads to nodes in some records and is an attribute in others")
    split = None if target else _split_ids(graph, kind, path, column)
    if target is not None:
        _add_edges(graph, kind, path, target, {row: [value] for row, value in column.items()})
    elif split is not None:
        _add_edges(graph, kind, path, *split)
    elif _entity(path) and ids:
        graph.notes.append(f"{path} of {kind.name} is an attribute: no two records share a value")
    if target or split:
        del kind.values[path]


def _repeats_id(graph: _Graph, kind: _Kind, path: str, column: dict[int, Scalar]) -> bool:
    """Whether a key only gives the id of its own record once more; then it is left out. Numbers may agree by chance."""
    ids = list(kind.rows)
    if any(not isinstance(value, str) or value.isdigit() or value != ids[row] for row, value in column.items()):
        return False
    graph.left_out[f"{kind.name}.{path}"] += len(column)
    column.clear()
    return True


def _is_no_text(item: Scalar) -> bool:
    """Whether an item of a list cannot be what a node is called: a number, a boolean or a long text."""
    return not isinstance(item, str) or len(item) > 200 or "\n" in item


def _new_kind(graph: _Graph, kind: _Kind, path: str) -> _Kind:
    """Return a new type for the texts of a list: the key's own word, or more if that is taken."""
    key = path.rpartition(".")[2]
    free = [name for name in (singular(_ID_SUFFIX.sub("", key) or key), key) if name not in graph.kinds]
    return graph.kind(free[0] if free else f"{kind.name}_{singular(key)}")


def _target_of(graph: _Graph, kind: _Kind, path: str, ids: set[str]) -> _Kind | None:
    """Return the type whose ids the values of a key are: the one that the key names, or the only one that fits."""
    if not ids:
        return None
    key = path.rpartition(".")[2]
    words = {name.lower() for name in (_entity(key) or "", singular(key), _last_word(singular(key))) if name}
    fitting = [other for other in graph.kinds.values() if _are_ids(ids, other)]
    named = [other for other in fitting if other.name.lower() in words]
    if len(named) == 1:
        return named[0]
    if _last_word(singular(key)) in _LIKE_ITSELF and any(id in kind.rows for id in ids):
        return kind
    if len(fitting) == 1 and not all(id.lstrip("-").isdigit() for id in ids):
        return fitting[0]
    return None


def _are_ids(values: set[str], kind: _Kind) -> bool:
    """Whether values are ids of a type: half of them, or they are written like the ids of that type."""
    if 2 * sum(value in kind.rows for value in values) >= len(values):
        return True
    shapes = {_shape(id) for id in islice(kind.rows, _SAMPLE)}
    own = {_shape(value) for value in islice(values, _SAMPLE)}
    return len(shapes) <= 8 and None not in own and own <= shapes


def _shape(id: str) -> str | None:
    """Return an IRI or a code such as W123 with its digits replaced, or None for other ids."""
    shape = re.sub(r"\d+", "#", id)
    return shape if shape != id and (_IRI.fullmatch(id) or re.fullmatch("[A-Za-z]{1,4}#", shape)) else None


def _foreign_target(graph: _Graph, kind: _Kind, path: str, column: Mapping[int, Scalar], ids: set[str]) -> _Kind | None:
    """Return the type that a key with one value leads to, or None if it is an attribute."""
    key = path.rpartition(".")[2]
    entity = _entity(key)
    if not ids or any(_as_id(value) is None for value in column.values()):
        return None
    if entity is not None and key.lower() != "id":
        named = [other for other in graph.kinds.values() if other.name.lower() in (entity.lower(), _last_word(entity))]
        own = [kind] if all(id in kind.rows for id in ids) else []
        recurring = [graph.kind(entity)] if not named and not own and len(ids) < len(column) else []
        return next(iter([*named, *own, *recurring]), None)
    target = _target_of(graph, kind, path, ids) if all(_IRI.fullmatch(id) for id in ids) else None
    return target if target is not None and all(id in target.rows or _shape(id) for id in ids) else None


def _split_ids(
    graph: _Graph, kind: _Kind, path: str, column: Mapping[int, Scalar]
) -> tuple[_Kind, dict[int, list[Scalar]]] | None:
    """Return the type and the ids if texts such as "u1, u2" are lists of ids."""
    texts = {row: value for row, value in column.items() if isinstance(value, str)}
    if not any("," in text for text in islice(texts.values(), _SAMPLE)):
        return None
    parts = {row: [part for part in re.split(r"\s*,\s*", text) if part not in _NOTHING] for row, text in texts.items()}
    target = _target_of(graph, kind, path, {part for items in parts.values() for part in items})
    return None if target is None else (target, {row: list(items) for row, items in parts.items()})


def _add_edges(graph: _Graph, kind: _Kind, path: str, target: _Kind, values: Mapping[int, Sequence[Scalar]]) -> None:
    before = len(target.rows)
    ends = graph.ends[kind.name, path, target.name]
    for row, items in values.items():
        for item in items:
            ends.add(row, target.row(str(_as_id(item))))
    added = (
        f"; {len(target.rows) - before:,} of them have no record"
        if target.records and len(target.rows) > before
        else ""
    )
    graph.notes.append(f"{path} of {kind.name} is a relation: its values are ids of type {target.name}{added}")


# ---- Tables --------------------------------------------------------------------------------------
def _assemble(graph: _Graph, options: ReadOptions) -> HIN:
    nodes = [_node_table(graph, kind) for kind in graph.kinds.values() if kind.rows]
    for key, pairs in graph.mentioned.items():
        for start, stop in pairs:
            if start not in graph.kinds[key[0]].records:
                graph.ends[key].add(start, stop)
    ids = {table.node_type: table.ids for table in nodes}
    options.check_names(list(dict.fromkeys(name for _, name, _ in graph.ends)))
    edges = []
    for (source, name, target), ends in graph.ends.items():
        relation = options.relation(source, name, target)
        if relation is not None and ends.sources:
            relation = replace(relation, directed=relation.directed and (ends.directed or source != target))
            starts = ids[source].take(pa.array(ends.sources, pa.int64()))
            stops = ids[target].take(pa.array(ends.targets, pa.int64()))
            prose = {key for _, key in graph.prose}
            attributes = _attributes(
                name, {key: own for key, own in ends.values.items() if key not in prose}, len(starts)
            )
            edges.append(EdgeTable(relation, starts, stops, _place_of(name), _weights(ends), attributes))
    return assemble(nodes, edges, replace(options, notes=[*options.notes, *graph.notes, *_note_left_out(graph)]))


def _place_of(what: str) -> Place:
    return lambda row: f"{what} {row + 1}"


def _weights(ends: _Ends) -> pa.Array | None:
    if all(weight is None for weight in ends.weights):
        return None
    return pa.array([1.0 if weight is None else weight for weight in ends.weights], pa.float64())


def _attributes(name: str, values: Mapping[str, Mapping[int, Scalar]], count: int) -> RawAttributes:
    columns = {key: _as_column([column.get(at) for at in range(count)]) for key, column in sorted(values.items())}
    return RawAttributes.of(pa.table(columns), name)


def _node_table(graph: _Graph, kind: _Kind) -> NodeTable:
    size = len(kind.rows)
    names = pa.array([kind.names.get(row) for row in range(size)], pa.string()) if kind.names else None
    columns = {}
    for path, column in kind.values.items():
        if not column:
            continue
        if path in kind.differing:
            graph.left_out[f"{kind.name}.{path}"] += len(column)
        else:
            columns[f"{path}_" if path in ("id", "name") else path] = _as_column(
                [column.get(row) for row in range(size)]
            )
    ids = pa.array(list(kind.rows), pa.string())
    attributes, notes = undeclared_attributes(columns, kind.name)
    graph.notes += notes
    return NodeTable(kind.name, ids, _place_of(kind.name), names, attributes)


def _as_column(values: list[Scalar | None]) -> pa.Array:
    """Return values as numbers or booleans if all are, else as texts."""
    kinds = {type(value) for value in values if value is not None}
    if kinds in ({int}, {float}, {bool}, {int, float}):
        try:
            return pa.array(values, pa.float64() if float in kinds else None)
        except (pa.ArrowInvalid, OverflowError):
            pass
    return pa.array(
        [None if value is None else value if isinstance(value, str) else json.dumps(value) for value in values],
        pa.string(),
    )


def _note_left_out(graph: _Graph) -> list[str]:
    paths = sorted({*graph.left_out, *(f"{name}.{path}" for name, path in graph.tables)})
    reason = "nested values and long texts of edges, nested lists, and values that differ between mentions of one node"
    return [f"left out, as {reason}: {listed(paths, 8)}"] if paths else []
