"""Read JSON records as tables: OpenAlex-like nested records, records with foreign keys, and nodes with edges.

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
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from sys import intern
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from neupath._runtime.progress import Progress, no_progress
from neupath.errors import GraphError, MissingExtraError, SourceError, first_line, listed
from neupath.graph.hin import MOST_KINDS
from neupath.io.assemble import BIOLINK, GENERAL_CLASSES
from neupath.io.columns import choose_columns
from neupath.io.formats.json_values import Collection, Record, json_errors, read_collections
from neupath.io.ids import all_read_as_integers, bad_weight, repeated_id
from neupath.io.plan import EdgePlan, NodePlan, Plan, ReadOptions, Selection, existing
from neupath.io.tables import ArrowTable
from neupath.io.text_files import open_raw
from neupath.io.words import (
    ID_SUFFIX,
    KEYS,
    LIKE_ITSELF,
    NAMES,
    RECORD_ENDS,
    RECORD_IDS,
    RECORD_TYPES,
    RELATIONS,
    WEAK_RELATIONS,
    WRAPPERS,
    is_own_role,
    singular,
)

if TYPE_CHECKING:
    import networkx as nx

_FIRST = 1000
"""How many ids are looked at to see how they are written."""
_FEW_TEXTS, _LONG_TEXT = 100, 200
"""After so many texts under a key of edges, they are prose if they have more than so many letters on average."""
_TRANSPARENT = ("data", "properties", "attributes")
"""Objects whose content belongs to the record itself, unless both have the same key."""
_NOTHING = ("", "None", "null")
_LONGEST_ID, _FEW_WORDS, _CACHED = 500, 8, 1 << 14
_IRI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+")
UNTYPED = "entity"
_MOST_KEYS = 256
"""An object without an id that has more keys than this, over all records, is a table by words or numbers."""
_ID, _NAME, _SOURCE, _TARGET, _WEIGHT = "<id>", "<name>", "<source>", "<target>", "<weight>"
"""The columns of tables that are no attributes."""
Scalar = str | int | float | bool


# ---- Words and ids -------------------------------------------------------------------------------
def _last_word(name: str) -> str:
    return singular(name.rpartition("_")[2].lower())


@lru_cache(_CACHED)
def _entity(key: str) -> str | None:
    """Return the type that a foreign key names: user for user_id, userId and user_ids; None for other keys."""
    return (singular(ID_SUFFIX.sub("", key)) or None) if ID_SUFFIX.search(key) else None


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


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _ids_of(values: Iterable[Any]) -> set[str]:
    return {id for value in values if (id := _as_id(value)) is not None}


def _may_lead(key: str, value: Any) -> bool:
    """Whether a value is a foreign key or an IRI."""
    return bool(_entity(key) or _IRI.fullmatch(str(value)))


def _own_id_key(record: Record, name: str) -> str | None:
    """Return the key of an object's own id: id, or one named after the object itself."""
    keys = (*RECORD_IDS[:5], f"{name}_id", f"{name}Id", f"{name}ID")
    return next((key for key in keys if key in record and _as_id(record[key]) is not None), None)


# ---- Nodes and edges as they are collected -------------------------------------------------------
@dataclass
class _Kind:
    """The nodes of one type, by their ids, and what is known of each."""

    name: str
    ids: dict[str, bool] = field(default_factory=dict)
    """Each id, and whether there is a record of it."""
    names: dict[str, str] = field(default_factory=dict)
    values: defaultdict[str, dict[str, Any]] = field(default_factory=lambda: defaultdict(dict))
    """The keys that lead to a value -> what nodes have there: scalars, or lists of them."""
    loose: set[str] = field(default_factory=set)
    """Keys of foreign keys and IRIs of objects in lists, which may lead to nodes."""
    renamed: dict[str, str] = field(default_factory=dict)
    """Other names by which nodes without a record are mentioned."""
    differing: set[str] = field(default_factory=set)
    """Keys whose values differ from mention to mention of one node."""

    @property
    def has_records(self) -> bool:
        return any(self.ids.values())

    def add(self, id: str) -> str:
        """Add a node that is mentioned, if it is not there."""
        self.ids.setdefault(id, False)
        return id

    def set_name(self, id: str, name: str) -> None:
        if self.ids[id]:
            self.names[id] = name
        elif self.names.setdefault(id, name) != name:
            self.renamed.setdefault(id, name)

    def set_value(self, id: str, path: str, value: Any) -> None:
        column = self.values[path]
        if self.ids[id] or isinstance(value, list):
            column[id] = value
        elif column.setdefault(id, value) != value:
            self.differing.add(path)

    def merge(self, other: "_Kind") -> None:
        """Take over the nodes of another type; a record of a node says more than what mentions it."""
        if any(is_record and self.ids.get(id) for id, is_record in other.ids.items()):
            raise SourceError(
                f"an id is that of a {self.name} and of a {other.name}; give each record once, or name the files alike"
            )
        mine = {id for id, is_record in self.ids.items() if is_record}
        for id, is_record in other.ids.items():
            self.ids[id] = is_record or id in mine
        self.names = other.names | self.names
        self.loose |= other.loose
        self.differing |= other.differing
        for path, column in other.values.items():
            for id in (id for id in column if id not in mine):
                self.set_value(id, path, column[id])


Key = tuple[str, str, str]
"""Source type, relation, target type."""


@dataclass
class _RelationEdges:
    """The edges of one relation: the ids at their ends, and what is said of each."""

    sources: list[str] = field(default_factory=list)
    targets: list[str] = field(default_factory=list)
    columns: dict[str, list[Scalar | None]] = field(default_factory=dict)
    """Weights and attributes; a column may be shorter than there are edges."""
    numbers: "array[int]" = field(default_factory=lambda: array("q"))
    """The records that edges of a collection are."""
    mentioned: dict[tuple[str, str], None] = field(default_factory=dict)
    """Edges from nodes that are only mentioned, once however often they are."""
    directed: bool = False
    """Whether at least one of them has a direction."""

    def add(self, source: str, target: str, values: Mapping[str, Scalar], directed: bool = True) -> None:
        for key, value in values.items():
            self._column(key).append(value)
        self.sources.append(intern(source))
        self.targets.append(intern(target))
        self.directed |= directed

    def extend(self, other: "_RelationEdges", rows: Sequence[int]) -> None:
        """Add some edges of others."""
        for key, column in other.columns.items():
            self._column(key).extend(column[row] for row in rows if row < len(column))
        self.sources.extend(other.sources[row] for row in rows)
        self.targets.extend(other.targets[row] for row in rows)
        self.mentioned |= other.mentioned
        self.directed |= other.directed

    def _column(self, key: str) -> list[Scalar | None]:
        """Return a column as long as there are edges."""
        column = self.columns.setdefault(key, [])
        column += [None] * (len(self.sources) - len(column))
        return column


class _Graph:
    """Nodes and edges as they are collected."""

    def __init__(self) -> None:
        self.kinds: dict[str, _Kind] = {}
        self.edges: defaultdict[Key, _RelationEdges] = defaultdict(_RelationEdges)
        self.unresolved: defaultdict[tuple[Collection, str | None, str, str | None], _RelationEdges] = defaultdict(
            _RelationEdges
        )
        """Edges of a collection whose ends may not say their types."""
        self.left_out: set[str] = set()
        self.notes: list[str] = []
        self.prose: dict[tuple[str, str], tuple[int, int]] = {}
        """How many texts are under a key of edges, and how many letters they have."""
        self._item: dict[str, Scalar] = {}  # what the object of a list that is being read says of its edges
        self._links = 0
        self._keys: defaultdict[tuple[str, str], set[str]] = defaultdict(set)

    def kind(self, name: str) -> _Kind:
        if name not in self.kinds and len(self.kinds) >= MOST_KINDS:
            raise GraphError(f"the records name more than {MOST_KINDS:,} node types; check which key holds the types")
        return self.kinds.setdefault(name, _Kind(name))

    def add_record(self, kind: _Kind, id: str, content: Record, place: Callable[[], str]) -> None:
        """Add a record as a node, with all that is in it."""
        if kind.ids.get(id):
            raise repeated_id(place(), id)
        kind.ids[id] = True
        kind.names.pop(id, None)
        self._describe(kind, id, content)

    def edge_values(self, name: str, record: Record, keys: Iterable[str]) -> dict[str, Scalar]:
        """Return the attributes among some keys of an edge; note nested values and long texts as left out."""
        values: dict[str, Scalar] = {}
        for key in keys:
            value = record[key]
            if value is None or value in ("", {}, []):
                continue
            if key in _TRANSPARENT and isinstance(value, dict):
                values |= self.edge_values(name, value, value.keys() - set(keys))
            elif not isinstance(value, str | int | float) or key.lower() == "weight" or self.is_prose(name, key):
                self.left_out.add(f"{name}.{key}")
            else:
                values[key] = value
                if isinstance(value, str):
                    count, letters = self.prose.get((name, key), (0, 0))
                    self.prose[name, key] = count + 1, letters + len(value)
        return values

    def is_prose(self, name: str, key: str) -> bool:
        """Whether the texts under a key of edges are too long to keep."""
        count, letters = self.prose.get((name, key), (0, 0))
        return count > _FEW_TEXTS and letters > _LONG_TEXT * count

    def _describe(self, kind: _Kind, id: str, record: Record, prefix: str = "", in_list: bool = False) -> None:
        """Add what a record, or an object in it, says of a node; `prefix` are the keys that lead to the object."""
        name_key = None if prefix else next((key for key in NAMES if isinstance(record.get(key), str)), None)
        if name_key is not None:
            kind.set_name(id, record[name_key])
        for key, raw in record.items():
            value, path = _plain(raw), prefix + key
            if key == name_key or value is None:
                continue
            if isinstance(value, dict):
                if key in _TRANSPARENT and not value.keys() & record.keys():
                    self._describe(kind, id, value, prefix, in_list)
                else:
                    self._describe_object(kind, id, key, value, path, in_list)
            elif isinstance(value, list):
                self._describe_list(kind, id, key, [_plain(item) for item in value], path, in_list)
            elif not in_list:
                kind.set_value(id, path, value)
            elif _as_id(value) is not None and _may_lead(key, value):
                kind.loose.add(path)
                kind.values[path].setdefault(id, []).append(value)
            elif key not in self._item:
                self.left_out.add(f"{kind.name}.{path}")

    def _describe_list(self, kind: _Kind, id: str, key: str, items: list[Any], path: str, in_list: bool) -> None:
        if items and all(isinstance(item, dict) for item in items):
            for item in items:
                self._describe_object(kind, id, key, item, path, in_list=True)
        elif any(isinstance(item, dict | list) for item in items):
            self.left_out.add(f"{kind.name}.{path}")
        else:
            before = _listed(kind.values[path].get(id, [])) if in_list else []
            kind.set_value(id, path, [*before, *(item for item in items if item is not None)])

    def _describe_object(self, kind: _Kind, id: str, key: str, value: Record, path: str, in_list: bool) -> None:
        """Follow an object: to a node if it has an id, else through it."""
        name = singular(key)
        id_key = _own_id_key(value, name)
        if id_key is not None:
            target = self.kind(name)
            target_id = target.add(str(_as_id(value[id_key])))
            self._links += 1
            edges = self.edges[kind.name, path, name]
            if kind.ids[id]:
                edges.add(id, target_id, self._item)
            else:
                edges.mentioned[id, target_id] = None
            if not target.ids[target_id]:  # else its record says it all
                self._describe(target, target_id, {k: v for k, v in value.items() if k != id_key})
            return
        keys = self._keys[kind.name, path]
        if len(keys) > _MOST_KEYS:
            return
        keys.update(value)
        if len(keys) > _MOST_KEYS:
            self._leave_out_table(kind, path)
        elif in_list and kind.ids[id]:
            self._describe_item(kind, id, value, path)
        else:
            self._describe(kind, id, value, f"{path}.", in_list)

    def _describe_item(self, kind: _Kind, id: str, value: Record, path: str) -> None:
        """Follow an object of a list that has no id: what it says besides belongs to the edges that lead through it."""
        plain = {key: _plain(each) for key, each in value.items()}
        own = [k for k, each in plain.items() if isinstance(each, str | int | float) and not _may_lead(k, each)]
        outer, links = self._item, self._links
        self._item = self.edge_values(f"{kind.name}.{path}", plain, own)
        self._describe(kind, id, value, f"{path}.", in_list=True)
        if self._links == links:  # it leads nowhere
            self.left_out.update(f"{kind.name}.{path}.{key}" for key in self._item)
        self._item = outer

    def _leave_out_table(self, kind: _Kind, path: str) -> None:
        """Forget what was read of an object whose keys are words or numbers."""
        for inner in [each for each in kind.values if each.startswith(f"{path}.")]:
            del kind.values[inner]
        start = f"{kind.name}.{path}"
        self.left_out = {each for each in self.left_out if not each.startswith(f"{start}.")} | {start}


# ---- Collections ---------------------------------------------------------------------------------
Adder = Callable[[Record], None]
"""Adds a record of a collection to the graph."""


def _read_collection(graph: _Graph, collection: Collection, name: str) -> None:
    """Add the records of one collection, by what its first ones look like."""
    sample = [record for record in collection.sample if isinstance(record, dict)]
    if not sample and collection.key is not None:
        graph.notes.append(f"{collection.file.name}: {collection.key} left out, which is not a list of records")
        return
    if collection.key == "@graph" or any("@context" in record or "@type" in record for record in sample):
        raise _is_json_ld(collection.file)
    add: Adder | None = None
    for record in collection.records():
        add = add or _adder_of(graph, collection, name, sample)
        add(record)


def _adder_of(graph: _Graph, collection: Collection, name: str, sample: Sequence[Record]) -> Adder:
    if all(record.get("type") in ("node", "relationship") for record in sample):
        return _add_exported(graph, collection, name)
    if (ends := _end_keys(sample)) is not None:
        named = (key for key in (*RELATIONS, *WEAK_RELATIONS) if _are_words(sample, key, few=key in WEAK_RELATIONS))
        return _add_edges_of(graph, collection, name, ends, next(named, None))
    if _last_word(name) in ("node", "vertex", "entity"):
        return _add_typed_nodes(graph, collection, sample)
    kind_name, id_key = _find_own_id(sample, name)
    if id_key is not None:
        return _add_nodes(graph, collection, id_key, default=kind_name)
    keys = [key for key in sample[0] if (_entity(key) or key in KEYS) and _are_ids_in(sample, key)]
    if len(keys) >= 2:
        return _add_foreign_keys(graph, collection, name, keys)
    raise SourceError(
        f"{collection.place()}: the records have no id; they have {listed(sample[0])}, and an id is called id, _id or "
        f"{singular(name)}_id"
    )


def _is_json_ld(file: Path) -> SourceError:
    return SourceError(f"{file} is JSON-LD, which is RDF; give it a name that ends in .jsonld")


def _are_ids_in(sample: Sequence[Record], key: str) -> bool:
    """Whether each of some records has an id under a key."""
    return all(_as_id(record.get(key)) is not None for record in sample)


def _are_words(sample: Sequence[Record], key: str, few: bool) -> bool:
    """Whether the values of a key may be types or relations: words, and if asked, few different ones."""
    values = [record[key] for record in sample if record.get(key)]
    if not values or not all(isinstance(value, str | list) for value in values):
        return False
    return not few or len(set(map(str, values))) <= max(_FEW_WORDS, len(sample) // 10)


def _end_keys(sample: Sequence[Record]) -> tuple[str, str] | None:
    """Return the keys of the two ends if the records are edges."""
    for pair in RECORD_ENDS:
        dates = pair == ("start", "end") and not all(isinstance(record.get("start"), dict) for record in sample)
        if all(record.get(key) is not None for record in sample for key in pair) and not dates:
            return pair
    return None


def _word(value: Any) -> str:
    """Return a type or relation as a word: the first of several that says something, without KGX's prefix."""
    words = [str(item).removeprefix(BIOLINK).removeprefix(":").strip() for item in _listed(value) if item]
    return next((word for word in words if word not in GENERAL_CLASSES), words[0] if words else "")


def _add_edges_of(
    graph: _Graph, collection: Collection, name: str, ends: tuple[str, str], relation_key: str | None
) -> Adder:
    """Add records with two ends as edges."""
    taken = {*ends, relation_key, "weight", "id", "direction", "directed"}

    def add(record: Record) -> None:
        relation = name if relation_key is None else _word(record.get(relation_key))
        if not relation:
            raise SourceError(f"{collection.place()}: the edge has no {relation_key!r}, as others have")
        (source, start), (target, end) = (_end(record.get(key), key, collection) for key in ends)
        values = graph.edge_values(name, record, record.keys() - taken)
        if (weight := record.get("weight")) is not None:
            if not isinstance(weight, int | float) or isinstance(weight, bool) or not 0 <= weight < 2**1000:
                raise bad_weight(collection.place(), weight)
            values[_WEIGHT] = weight
        edges = graph.unresolved[collection, source, relation, target]
        edges.add(start, end, values, record.get("direction") != "both" and record.get("directed") is not False)
        edges.numbers.append(collection.number)

    return add


def _end(value: Any, key: str, collection: Collection) -> tuple[str | None, str]:
    """Return the type, if it is there, and the id of one end: an id, [type, id], or an object with an id."""
    if isinstance(value, dict) and (id_key := _own_id_key(value, "")) is not None:
        return next((_word(value[key]) for key in RECORD_TYPES if key in value), None), str(_as_id(value[id_key]))
    is_typed = key.endswith("_id") and isinstance(value, list) and len(value) == 2 and isinstance(value[0], str)
    kind, id = (value[0], _as_id(value[1])) if is_typed else (None, _as_id(value))
    if id is None:
        raise SourceError(f"{collection.place()}: {key!r} is {str(value)[:40]!r}, but the end of an edge is an id")
    return kind, id


def _add_typed_nodes(graph: _Graph, collection: Collection, sample: Sequence[Record]) -> Adder:
    """Add nodes that may say their own type."""
    id_key = next((key for key in RECORD_IDS if _are_ids_in(sample, key)), None)
    if id_key is None:
        raise SourceError(f"{collection.place()}: nodes need an id, but have {listed(sample[0])}")
    in_all = (key for key in RECORD_TYPES if all(record.get(key) is not None for record in sample))
    type_key = next((key for key in in_all if _are_words(sample, key, few=key == "label")), None)
    if type_key == "label" and 2 * len({record["label"] for record in sample}) > len(sample):
        type_key = None  # what nodes are called, each differently
    return _add_nodes(graph, collection, id_key, type_key, UNTYPED if type_key is None else "")


def _add_nodes(
    graph: _Graph, collection: Collection, id_key: str, type_key: str | None = None, default: str = UNTYPED
) -> Adder:
    """Add records with an id as nodes; `default` is the type of those that do not say theirs."""

    def add(record: Record) -> None:
        kind = (_word(record.get(type_key)) if type_key else "") or default
        id = _as_id(record.get(id_key))
        if id is None:
            given = f"{record[id_key]!r:.40} is no id" if record.get(id_key) is not None else "it is missing"
            raise SourceError(f"{collection.place()}: every record needs its id in {id_key!r}, but {given}")
        if not kind:
            raise SourceError(f"{collection.place()}: the node has no {type_key!r}, as others have")
        content = {key: value for key, value in record.items() if key not in (id_key, type_key)}
        graph.add_record(graph.kind(kind), id, content, collection.place)

    return add


def _add_exported(graph: _Graph, collection: Collection, name: str) -> Adder:
    """Add nodes and relationships as Neo4j exports them, in one file."""
    add_node = _add_nodes(graph, collection, "id", "labels")
    add_edge = _add_edges_of(graph, collection, name, ("start", "end"), "label")

    def add(record: Record) -> None:
        content = {key: value for key, value in record.items() if key != "type"}
        (add_edge if record.get("type") == "relationship" else add_node)(content)

    return add


def _find_own_id(sample: Sequence[Record], name: str) -> tuple[str, str | None]:
    """Return the type of the records, and the key of their ids: id, one named after the file, or the only one."""
    for key in RECORD_IDS[:5]:
        if _are_ids_in(sample, key):
            return singular(name), key
    keys = [key for key in sample[0] if _entity(key) and _are_ids_in(sample, key)]
    codes = [key for key in KEYS if _are_ids_in(sample, key)]
    own = [key for key in keys if singular(name).lower().endswith(str(_entity(key)).lower())]
    if not own and len(keys) + len(codes) == 1:
        own = [key for key in keys + codes if len({record[key] for record in sample}) == len(sample)]
    if own:
        return _entity(own[0]) or own[0], own[0]
    others = [key for key in RECORD_IDS if _are_ids_in(sample, key)]
    return singular(name), others[0] if others and not keys else None


def _add_foreign_keys(graph: _Graph, collection: Collection, name: str, keys: Sequence[str]) -> Adder:
    """Add records without an id as edges from the first of their foreign keys to the others."""
    kinds = [graph.kind(_entity(key) or key) for key in keys]
    names = [name] if len(keys) == 2 else [kind.name for kind in kinds[1:]]
    relations = [(kinds[0].name, relation, kind.name) for relation, kind in zip(names, kinds[1:], strict=True)]
    name_keys = [(f"{_entity(key) or key}Name", f"{_entity(key) or key}_name") for key in keys]  # reviewerName
    taken = {*keys, *chain.from_iterable(name_keys)}

    def add(record: Record) -> None:
        ids = []
        for key, kind, own_names in zip(keys, kinds, name_keys, strict=True):
            id = _as_id(record.get(key))
            if id is None:
                raise SourceError(f"{collection.place()}: the record has no {key!r}, as others have")
            ids.append(kind.add(id))
            if label := next((record[each] for each in own_names if isinstance(record.get(each), str)), None):
                kind.names.setdefault(id, label)
        values = graph.edge_values(name, record, record.keys() - taken)
        for relation, id in zip(relations, ids[1:], strict=True):
            graph.edges[relation].add(ids[0], id, values)

    graph.notes.append(f"{collection.file.name}: its records have no id and are edges between {listed(keys)}")
    return add


def _name_of(collection: Collection) -> str:
    """Return what records are called: their key, or the name of the file without numbers, and without `part` behind."""
    stem = re.sub(r"(\.(jsonl|ndjson|json))?(\.gz)?$", "", collection.file.name, flags=re.IGNORECASE)
    words = re.findall(r"[^\W\d_]+", stem)
    while len(words) > 1 and words[-1].lower() in WRAPPERS:
        words.pop()
    names = (collection.key or "", "_".join(words))
    return next((name for name in names if name.lower() not in WRAPPERS), "record")


# ---- The graph -----------------------------------------------------------------------------------
def read_json(files: Sequence[Path], options: ReadOptions, progress: Progress = no_progress) -> "Plan | nx.Graph[Any]":
    """Return the tables of JSON files, or the graph of NetworkX that a file holds."""
    graph = _Graph()
    for done, file in enumerate(files):
        progress("reading", done, len(files))
        header: Record = {}
        with json_errors(file):
            for collection in read_collections(file, header):
                _read_collection(graph, collection, _name_of(collection))
        if header.get("multigraph") is not None:
            return _read_node_link(file)
        _check_header(graph, file, header)
    _refuse_local_ids(graph)
    _resolve(graph)
    _merge_kinds(graph)
    for kind in list(graph.kinds.values()):
        _find_relations(graph, kind)
    if not any(edges.sources or edges.mentioned for edges in graph.edges.values()):
        keys = [f"{kind.name}.{path}" for kind in graph.kinds.values() for path in kind.values]
        raise SourceError(
            f"{listed(map(str, files), 3)}: no key leads from one record to another, so there are no edges (the keys "
            f"are {listed(keys, 8)}); relations are objects with an id, lists of texts, and keys such as user_id"
        )
    return _make_plan(graph, options)


def _check_header(graph: _Graph, file: Path, header: Record) -> None:
    """Note the values of a document that are not records; raise if it is a record itself, or has none."""
    if "@context" in header:
        raise _is_json_ld(file)
    if any(_as_id(header.get(key)) is not None for key in RECORD_IDS[:5]):
        raise SourceError(f"{file} holds one record; write a list of records, or a record per line")
    if not graph.kinds and not graph.unresolved:
        raise SourceError(
            f"{file} has no records: its keys are {listed(header) or 'none'}, and none holds a list of objects; a "
            f'graph in JSON is {{"nodes": […], "edges": […]}}, a list of records, or a record per line'
        )
    if objects := [key for key, value in header.items() if isinstance(value, dict)]:
        graph.notes.append(f"{file.name}: {listed(objects)} left out, which is not a list of records")


def _read_node_link(file: Path) -> "nx.Graph[Any]":
    """Read what NetworkX writes as node-link data."""
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
    return graph


def _refuse_local_ids(graph: _Graph) -> None:
    """Raise if numbers that are unique only within a record would make one node of several."""
    for kind in graph.kinds.values():
        if kind.has_records or not all(id.isdigit() for id in islice(kind.ids, _FIRST)):
            continue
        if kind.renamed:
            id, name = next(iter(kind.renamed.items()))
            facts = f"is called {kind.names[id]!r} and {name!r}"
        elif not kind.names and kind.differing and kind.differing >= kind.values.keys():
            id, facts = next(iter(kind.ids)), f"has different values of {listed(kind.values, 4)}"
        else:
            continue
        raise SourceError(
            f"{kind.name} {id} {facts} in different records, so its id seems to be unique within one record only; make "
            f"the ids of {kind.name} unique"
        )


def _resolve(graph: _Graph) -> None:
    """Give the ends of edges their types: the one that the record names, or that of the node with this id."""
    known: dict[str, str] = {}
    for kind in graph.kinds.values():
        for id in kind.ids:
            known[id] = "" if id in known else kind.name  # several types have it
    for (collection, source, name, target), edges in graph.unresolved.items():
        rows: defaultdict[Key, list[int]] = defaultdict(list)
        ends = zip(edges.sources, edges.targets, edges.numbers, strict=True)
        for row, (start, end, number) in enumerate(ends):
            both = []
            for given, id in ((source, start), (target, end)):
                kind_name = given or (known.get(id, "") if known else UNTYPED)
                if not known:
                    graph.kind(kind_name).add(id)
                elif kind_name not in graph.kinds or id not in graph.kinds[kind_name].ids:
                    raise _unknown_node(graph, collection.place(number), id)
                both.append(kind_name)
            rows[both[0], name, both[1]].append(row)
        for key, own in rows.items():
            graph.edges[key].extend(edges, own)
    graph.unresolved.clear()


def _unknown_node(graph: _Graph, place: str, id: str) -> SourceError:
    owners = [kind.name for kind in graph.kinds.values() if id in kind.ids]
    if owners:
        return SourceError(f"{place}: the id {id!r} is that of a {' and of a '.join(owners)}; edges need unique ids")
    return SourceError(
        f"{place}: the edge leads to {id!r}, which is not the id of a node; add the node, or leave it out"
    )


def _merge_kinds(graph: _Graph) -> None:
    """Make one type of those that share an IRI, such as primary_topic and topics: that of records, or the shortest."""
    owner: dict[str, _Kind] = {}
    for kind in sorted(graph.kinds.values(), key=lambda kind: (not kind.has_records, len(kind.name), kind.name)):
        iris = [id for id in kind.ids if _IRI.fullmatch(id)]
        first, named = next((owner[id] for id in iris if id in owner), None), graph.kinds.get(_last_word(kind.name))
        if first is None and named not in (None, kind) and not kind.has_records:
            first = named if named.has_records and _share(kind.ids, named) >= 0.5 else None
        if first is not None:
            first.merge(graph.kinds.pop(kind.name))
            _lead_to(graph, kind.name, first.name)
            graph.notes.append(f"{kind.name} and {first.name} share ids and are one type, {first.name}")
        owner.update(dict.fromkeys(iris, first or kind))


def _lead_to(graph: _Graph, old: str, new: str) -> None:
    """Lead the edges of one type to another."""
    for key in [key for key in graph.edges if old in (key[0], key[2])]:
        edges = graph.edges.pop(key)
        renamed = (new if key[0] == old else key[0], key[1], new if key[2] == old else key[2])
        graph.edges[renamed].extend(edges, range(len(edges.sources)))


# ---- Keys whose values are ids -------------------------------------------------------------------
def _find_relations(graph: _Graph, kind: _Kind) -> None:
    """Turn the lists of nodes of a type, and the values of foreign keys, into edges."""
    in_lists = [path for path, column in kind.values.items() if any(isinstance(v, list) for v in column.values())]
    for path in sorted(in_lists, key=kind.loose.__contains__):
        column = kind.values.pop(path)
        single = path not in kind.differing  # one value stands for a list of one
        lists = {id: _listed(value) for id, value in column.items() if single or isinstance(value, list)}
        find = _foreign_target if path in kind.loose else _list_target
        target = find(graph, kind, path, list(chain.from_iterable(lists.values())))
        if target is not None:
            _add_edges(graph, kind, path, target, lists)
        elif any(lists.values()):
            graph.left_out.add(f"{kind.name}.{path}")
    for path in [path for path in kind.values if path not in kind.differing]:
        if all(value == id and not id.isdigit() for id, value in kind.values[path].items()):
            del kind.values[path]  # the id of its own record once more
            graph.left_out.add(f"{kind.name}.{path}")
        else:
            _read_values(graph, kind, path, kind.values[path])


def _read_values(graph: _Graph, kind: _Kind, path: str, column: Mapping[str, Scalar]) -> None:
    """Make edges of values that are ids of nodes, or lists of such ids in one text; leave others as attributes."""
    ids = _ids_of(column.values())
    linked = [graph.kinds[key[2]] for key in graph.edges if key[:2] == (kind.name, path)]
    target = next((each for each in linked if ids and ids <= each.ids.keys()), None)
    target = target or _foreign_target(graph, kind, path, list(column.values()))
    lists: dict[str, list[Any]] = {id: [value] for id, value in column.items()}
    if target is None:
        if linked:
            graph.notes.append(f"{path} of {kind.name} leads to nodes in some records and is an attribute in others")
        lists = _split_ids(column)
        target = _target_of(graph, kind, path, _ids_of(chain.from_iterable(lists.values())))
    if target is not None:
        _add_edges(graph, kind, path, target, lists)
        del kind.values[path]
    elif _entity(path) and ids:
        graph.notes.append(f"{path} of {kind.name} is an attribute: no two records share a value")


def _list_target(graph: _Graph, kind: _Kind, path: str, items: Sequence[Any]) -> _Kind | None:
    """Return the type that the items of lists are ids of: a new one for texts, None if they are something else."""
    ids, key = _ids_of(items), path.rpartition(".")[2]
    target = _target_of(graph, kind, path, ids)
    are_texts = all(isinstance(item, str) and len(item) <= _LONG_TEXT and "\n" not in item for item in items)
    if target is not None or not ids or not are_texts:
        return target
    free = (name for name in (singular(ID_SUFFIX.sub("", key) or key), key) if name not in graph.kinds)
    return graph.kind(next(free, f"{kind.name}_{singular(key)}"))


def _foreign_target(graph: _Graph, kind: _Kind, path: str, values: Sequence[Any]) -> _Kind | None:
    """Return the type that a key with one value leads to, or None if it is an attribute."""
    ids, key = _ids_of(values), path.rpartition(".")[2]
    entity = _entity(key)
    if not ids or any(_as_id(value) is None for value in values):
        return None
    if entity is not None:
        words = (entity.lower(), _last_word(entity))
        named = next((kind for kind in graph.kinds.values() if kind.name.lower() in words), None)
        recurs = len(ids) < len(values)
        return named or _target_of(graph, kind, path, ids) or (graph.kind(entity) if recurs else None)
    target = _target_of(graph, kind, path, ids) if all(_IRI.fullmatch(id) for id in ids) else None
    return target if target is not None and all(id in target.ids or _shape(id) for id in ids) else None


def _target_of(graph: _Graph, kind: _Kind, path: str, ids: set[str]) -> _Kind | None:
    """Return the type whose ids the values of a key are: the one that the key names, or the only one that fits."""
    if not ids:
        return None
    key = path.rpartition(".")[2]
    word = singular(ID_SUFFIX.sub("", key) or key).lower()
    fitting = [other for other in graph.kinds.values() if _are_ids(ids, other)]
    named = [other for other in fitting if other.name.lower() in (word, _last_word(word))]
    if len(named) == 1:
        return named[0]
    if (is_own_role(_last_word(word)) or _last_word(word) in LIKE_ITSELF) and not ids.isdisjoint(kind.ids):
        return kind
    only = len(fitting) == 1 and not all(id.lstrip("-").isdigit() for id in ids)
    return fitting[0] if only else None


def _share(ids: set[str] | dict[str, bool], kind: _Kind) -> float:
    """Return the share of some ids that are those of a type."""
    return sum(map(kind.ids.__contains__, ids)) / len(ids)


def _are_ids(values: set[str], kind: _Kind) -> bool:
    """Whether values are ids of a type: half of them, or they are written like the ids of that type."""
    if _share(values, kind) >= 0.5:
        return True
    shapes = {_shape(id) for id in islice(kind.ids, _FIRST)}
    own = {_shape(value) for value in islice(values, _FIRST)}
    return len(shapes) <= 8 and None not in own and own <= shapes


def _shape(id: str) -> str | None:
    """Return an IRI or a code such as W123 with its digits replaced, or None for other ids."""
    shape = re.sub(r"\d+", "#", id)
    return shape if shape != id and (_IRI.fullmatch(id) or re.fullmatch("[A-Za-z]{1,4}#", shape)) else None


def _split_ids(column: Mapping[str, Scalar]) -> dict[str, list[Any]]:
    """Return the parts of texts such as "u1, u2", if there are commas in the first of them."""
    texts = {id: value for id, value in column.items() if isinstance(value, str)}
    if not any("," in text for text in islice(texts.values(), _FIRST)):
        return {}
    return {id: [part for part in re.split(r"\s*,\s*", text) if part not in _NOTHING] for id, text in texts.items()}


def _add_edges(graph: _Graph, kind: _Kind, path: str, target: _Kind, lists: Mapping[str, list[Any]]) -> None:
    before = len(target.ids)
    edges = graph.edges[kind.name, path, target.name]
    for source, items in lists.items():
        for item in items:
            if (id := _as_id(item)) is not None:
                edges.add(source, target.add(id), {})
    more = len(target.ids) - before
    added = f"; {more:,} of them have no record" if more and target.has_records else ""
    graph.notes.append(f"{path} of {kind.name} is a relation: its values are ids of type {target.name}{added}")


# ---- Tables --------------------------------------------------------------------------------------
def _make_plan(graph: _Graph, options: ReadOptions) -> Plan:
    for key, edges_of in graph.edges.items():
        for start, stop in edges_of.mentioned:
            if not graph.kinds[key[0]].ids[start]:
                edges_of.add(start, stop, {})
    nodes = [NodePlan(kind.name, _select_nodes(graph, kind)) for kind in graph.kinds.values() if kind.ids]
    types = {node.node_type: node.selection.declared_types[_ID] for node in nodes}
    options.check_names(list(dict.fromkeys(name for _, name, _ in graph.edges)))
    edges = []
    for key in list(graph.edges):
        own, relation = graph.edges.pop(key), options.relation(*key)
        if relation is not None and own.sources:
            directed = relation.directed and (own.directed or key[0] != key[2])
            edges.append(EdgePlan(replace(relation, directed=directed), _select_edges(graph, key, own, types)))
    why = "nested values and long texts of edges, nested lists, and values that differ between mentions of one node"
    left_out = [f"left out, as {why}: {listed(sorted(graph.left_out), 8)}"] if graph.left_out else []
    return Plan(nodes, edges, replace(options, notes=[*options.notes, *graph.notes, *left_out]))


def _select_nodes(graph: _Graph, kind: _Kind) -> Selection:
    ids = pa.array(kind.ids, pa.string())
    ends = {_ID: ids.cast(pa.int64()) if all_read_as_integers(ids) else ids}
    if kind.names:
        ends[_NAME] = pa.array([kind.names.get(id) for id in kind.ids], pa.string())
    graph.left_out |= {f"{kind.name}.{path}" for path in kind.differing if path in kind.values}
    columns = {
        f"{path}_" if path in ("id", "name") else path: _as_column([column.get(id) for id in kind.ids])
        for path, column in kind.values.items()
        if column and path not in kind.differing
    }
    table = ArrowTable(pa.table({**ends, **columns}), kind.name, kind.name)
    return Selection(table, existing(id=_ID, name=_NAME if kind.names else None), list(columns))


def _select_edges(graph: _Graph, key: Key, edges: _RelationEdges, types: Mapping[str, pa.DataType]) -> Selection:
    source, name, target = key
    columns = {
        column: _as_column([*values, *[None] * (len(edges.sources) - len(values))])
        for column, values in sorted(edges.columns.items())
        if not any(graph.is_prose(*path) for path in graph.prose if path[1] == column)
    }
    weights = columns.pop(_WEIGHT, None)
    chosen = choose_columns(ArrowTable(pa.table(columns), name, name), ())
    graph.notes += chosen.notes(name)
    ends = {_SOURCE: pa.array(edges.sources, pa.string()).cast(types[source])}
    ends[_TARGET] = pa.array(edges.targets, pa.string()).cast(types[target])
    if weights is not None:
        ends[_WEIGHT] = pc.fill_null(weights, pa.scalar(1, weights.type))
    roles = existing(source=_SOURCE, target=_TARGET, weight=None if weights is None else _WEIGHT)
    table = ArrowTable(pa.table({**ends, **columns}), name, name)
    return Selection(table, roles, chosen.columns, kinds=chosen.kinds)


def _as_column(values: list[Scalar | None]) -> pa.Array:
    """Return values as numbers or booleans if all are, else as texts."""
    kinds = {type(value) for value in values if value is not None}
    if kinds in ({int}, {float}, {bool}, {int, float}):
        with suppress(pa.ArrowInvalid, OverflowError):
            return pa.array(values, pa.float64() if float in kinds else None)
    texts = [value if value is None or isinstance(value, str) else json.dumps(value) for value in values]
    return pa.array(texts, pa.string())
