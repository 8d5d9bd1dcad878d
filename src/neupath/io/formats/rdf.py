"""Read RDF as a graph: types by rdf:type, names by labels, attributes by literals, all other statements as edges."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy.sparse import coo_array

from neupath._runtime.progress import Progress, no_progress
from neupath.errors import GraphError, MissingExtraError, SourceError, did_you_mean, listed
from neupath.graph.hin import HIN, Edges, check_counts
from neupath.graph.nodes import Nodes, Rows
from neupath.io.formats.rdf_statements import Codes, Links, Statements, Values, read_statements
from neupath.io.graph_toml import RdfConfig
from neupath.io.plan import ReadOptions
from neupath.io.values import undeclared_attributes

RDF, RDFS = "http://www.w3.org/1999/02/22-rdf-syntax-ns#", "http://www.w3.org/2000/01/rdf-schema#"
OWL, XSD = "http://www.w3.org/2002/07/owl#", "http://www.w3.org/2001/XMLSchema#"
SKOS = "http://www.w3.org/2004/02/skos/core#"
RDF_TYPE, SAME_AS, WIKIDATA_TYPE = f"{RDF}type", f"{OWL}sameAs", "http://www.wikidata.org/prop/direct/P31"
NAME_PROPERTIES = (
    f"{RDFS}label", f"{SKOS}prefLabel", "http://schema.org/name", "https://schema.org/name",
    "http://xmlns.com/foaf/0.1/name", "http://purl.org/dc/terms/title", "http://purl.org/dc/elements/1.1/title",
)  # fmt: skip
"""The properties that give names, the best first."""
GENERAL_TYPES = {
    f"{OWL}Thing", f"{OWL}NamedIndividual", f"{RDFS}Resource", "http://wikiba.se/ontology#Item",
    "http://wikiba.se/ontology#Property",
}  # fmt: skip
"""Types that say nothing of a node that has another one."""
_WIKIDATA_TYPES = ("http://wikiba.se/ontology#", "http://schema.org/Dataset", "http://schema.org/Article")
"""How the types of rdf:type begin in Wikidata, where they are not what a node is an instance of."""
UNTYPED = "entity"
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S")
_PREFIXES = {
    RDF: "rdf", RDFS: "rdfs", OWL: "owl", XSD: "xsd", SKOS: "skos", "http://xmlns.com/foaf/0.1/": "foaf",
    "http://schema.org/": "schema", "https://schema.org/": "schema", "http://purl.org/dc/elements/1.1/": "dc",
    "http://purl.org/dc/terms/": "dcterms", "http://dbpedia.org/ontology/": "dbo",
    "http://dbpedia.org/property/": "dbp",
    "http://www.wikidata.org/entity/": "wd", "http://www.wikidata.org/prop/direct/": "wdt",
}  # fmt: skip


# ---- Types, names and attributes -----------------------------------------------------------------
@dataclass(frozen=True)
class _Types:
    """The type of each node, -1 if it has no type; `names` are the IRIs of the types."""

    iris: list[str]
    of_node: Codes
    notes: list[str] = field(default_factory=list)


def _choose_types(statements: Statements, properties: Sequence[str]) -> _Types:
    """Give each node the type that most nodes have among its own, by the first property that gives it one."""
    of_node = np.full(len(statements.nodes), -1, dtype=np.int32)
    iris: dict[int, int] = {}
    notes = []
    for iri in properties:
        links = statements.links.where(statements.links.predicates == _position(statements.predicates, iri))
        pairs = np.unique(np.stack([links.subjects, links.objects], axis=1).astype(np.int64), axis=0)
        pairs = pairs[of_node[pairs[:, 0]] < 0]
        classes, members, counts = np.unique(pairs[:, 1], return_inverse=True, return_counts=True)
        texts = statements.nodes.take(pa.array(classes)).to_pylist()
        order = sorted(range(len(texts)), key=lambda at: (_is_general(texts[at]), -counts[at], texts[at]))
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        by_rank = pairs[np.lexsort((rank[members], pairs[:, 0]))]
        nodes, firsts, numbers = np.unique(by_rank[:, 0], return_index=True, return_counts=True)
        chosen = by_rank[firsts, 1]
        used = [int(classes[at]) for at in order if classes[at] in set(chosen.tolist())]
        iris |= {code: len(iris) + at for at, code in enumerate(code for code in used if code not in iris)}
        of_node[nodes] = [iris[code] for code in chosen.tolist()]
        if np.any(numbers > 1):
            passed_over = [texts[at] for at in order if int(classes[at]) not in set(used)]
            notes.append(_note_several(int(np.sum(numbers > 1)), passed_over))
    return _Types(statements.nodes.take(pa.array(list(iris), pa.int64())).to_pylist(), of_node, notes)


def _is_general(iri: str) -> bool:
    return iri in GENERAL_TYPES or iri.startswith("_:")


def _note_several(count: int, passed_over: Sequence[str]) -> str:
    without = f"; no node is left with {listed(map(local_name, passed_over), 4)}" if passed_over else ""
    several = _counted(count, "node has", "nodes have")
    return f"{several} several types; of these the one with most nodes counts{without}"


def _counted(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"


def _position(texts: Sequence[str], text: str) -> int:
    return texts.index(text) if text in texts else -1


def _choose_properties(statements: Statements, settings: RdfConfig) -> tuple[list[str], list[str]]:
    """Return the type properties, the best first, and notes."""
    if settings.type is not None:
        if settings.type not in statements.predicates:
            raise SourceError(
                f"no statement has the type property {settings.type!r} of [rdf] in graph.toml (the properties are "
                f"{listed(statements.predicates)}){did_you_mean(settings.type, statements.predicates)}"
            )
        return [settings.type, RDF_TYPE], []
    if WIKIDATA_TYPE not in statements.predicates:
        return [RDF_TYPE], []
    links = statements.links.where(statements.links.predicates == _position(statements.predicates, RDF_TYPE))
    types = statements.nodes.take(pa.array(np.unique(links.objects))).to_pylist()
    if not all(iri in GENERAL_TYPES or iri.startswith(_WIKIDATA_TYPES) for iri in types):
        return [RDF_TYPE], []
    note = f"types are read from {WIKIDATA_TYPE}, as in Wikidata; [rdf] type = … in graph.toml names another property"
    return [WIKIDATA_TYPE, RDF_TYPE], [note]


def _merge_same(statements: Statements) -> tuple[Statements, list[str]]:
    """Make one node of all nodes that owl:sameAs joins: the first of their IRIs by alphabet."""
    from scipy.sparse.csgraph import connected_components

    links = statements.links
    is_same = links.predicates == _position(statements.predicates, SAME_AS)
    same, size = links.where(is_same), len(statements.nodes)
    matrix = coo_array((np.ones(len(same.subjects)), (same.subjects, same.objects)), shape=(size, size))
    _, groups = connected_components(matrix, directed=False)
    involved = np.unique(np.concatenate([same.subjects, same.objects]))
    ids = statements.nodes.take(pa.array(involved)).to_pylist()
    order = sorted(range(len(ids)), key=lambda at: (ids[at].startswith("_:"), ids[at]), reverse=True)
    chosen = np.zeros(size, dtype=np.int32)
    chosen[groups[involved[order]]] = involved[order]  # the last to be written is the first by alphabet
    to = np.arange(size, dtype=np.int32)
    to[involved] = chosen[groups[involved]]
    others, values = links.where(~is_same), statements.values
    merged = replace(
        statements,
        links=Links(to[others.subjects], others.predicates, to[others.objects]),
        values=replace(values, subjects=to[values.subjects]),
    )
    gone = int(np.sum(to[involved] != involved))
    return merged, [f"owl:sameAs merged {len(involved):,} nodes into {len(involved) - gone:,}"]


def _expand_lists(statements: Statements) -> tuple[Statements, list[str]]:
    """Lead statements about an RDF list to its members, and leave out the nodes that the list is made of."""
    links, values = statements.links, statements.values
    first, rest = (_position(statements.predicates, f"{RDF}{name}") for name in ("first", "rest"))
    if rest < 0:
        return statements, []
    rests, firsts = links.where(links.predicates == rest), links.where(links.predicates == first)
    following = dict(zip(rests.subjects.tolist(), rests.objects.tolist(), strict=True))
    texts = np.flatnonzero(values.predicates == first)
    members = dict(zip(firsts.subjects.tolist(), firsts.objects.tolist(), strict=True))
    members |= dict(zip(values.subjects[texts].tolist(), (~texts).tolist(), strict=True))  # negative: a text
    if len(following) < len(rests.subjects) or len(members) < len(firsts.subjects) + len(texts):
        return statements, ["rdf:first and rdf:rest are relations, because they do not make proper lists"]
    cells = np.zeros(len(statements.nodes), dtype=np.bool_)
    cells[np.fromiter(following, dtype=np.int64)] = True
    leads = links.where(cells[links.objects] & ~cells[links.subjects])
    added = [
        (subject, predicate, member)
        for subject, predicate, head in zip(*(each.tolist() for each in leads.columns), strict=True)
        for member in _list_members(head, following, members)
    ]
    nil = pc.equal(statements.nodes, f"{RDF}nil").to_numpy(zero_copy_only=False)
    links = links.where(~cells[links.subjects] & ~cells[links.objects] & ~nil[links.objects])
    values = values.where(~cells[values.subjects])
    note = f"{_counted(len(leads.subjects), 'list is', 'lists are')} read as relations to all members"
    expanded = replace(statements, links=links.append([each for each in added if each[2] >= 0]))
    new = [each for each in added if each[2] < 0]
    return replace(expanded, values=values.append(new, statements.values)), [note]


def _list_members(head: int, following: Mapping[int, int], members: Mapping[int, int]) -> Iterator[int]:
    """Yield the members of a list, and those of the lists in it."""
    seen: set[int] = set()
    waiting = [head]
    while waiting:
        cell = waiting.pop()
        if cell in seen or cell not in following:  # rdf:nil ends a list
            continue
        seen.add(cell)
        waiting.append(following[cell])
        member = members.get(cell)
        if member is not None and member in following:
            waiting.append(member)
        elif member is not None:
            yield member


@dataclass(frozen=True)
class _Languages:
    """Which of several literals is taken: one in the language, or without any, before one in another."""

    language: str
    tags: Sequence[str]

    @property
    def others(self) -> NDArray[np.bool_]:
        """Whether each tag is another language."""
        return np.array([tag.startswith("@") and not self._is_own(tag) for tag in self.tags], dtype=np.bool_)

    @property
    def ranks(self) -> NDArray[np.int64]:
        """The rank of each tag: the language itself, none, its variants, then the others by alphabet."""
        order = {tag: at for at, tag in enumerate(sorted(self.tags), 3)}
        own = f"@{self.language}"
        ranks = [
            0 if tag == own else order[tag] if tag.startswith("@") and not self._is_own(tag) else 1 + self._is_own(tag)
            for tag in self.tags
        ]
        return np.array(ranks, dtype=np.int64)

    def _is_own(self, tag: str) -> bool:
        return tag == f"@{self.language}" or tag.startswith(f"@{self.language}-")


def _first_of_each(keys: Rows, ranks: Rows, texts: pa.Array) -> Rows:
    """Return the position of one text per key: of the lowest rank, then the shortest, then the first by alphabet."""
    order = np.lexsort((ranks, keys))
    _, starts = np.unique(keys[order], return_index=True)
    best = np.repeat(ranks[order[starts]], np.diff(np.append(starts, len(order))))
    left = order[ranks[order] == best]
    _, starts, counts = np.unique(keys[left], return_index=True, return_counts=True)
    single = left[starts[counts == 1]]
    tied = left[np.repeat(counts > 1, counts)]
    if not len(tied):
        return np.sort(single)
    candidates = texts.take(pa.array(tied))
    table = pa.table({"key": keys[tied], "length": pc.utf8_length(candidates), "text": candidates})
    by_text = tied[pc.sort_indices(table, [(name, "ascending") for name in table.column_names]).to_numpy()]
    _, firsts = np.unique(keys[by_text], return_index=True)
    return np.sort(np.concatenate([single, by_text[firsts]]))


def _choose_names(statements: Statements, languages: _Languages) -> tuple[pa.Array, list[str]]:
    """Name each node by its best label, or else by the end of its IRI; blank nodes without a label have no name."""
    codes = [_position(statements.predicates, iri) for iri in NAME_PROPERTIES]
    labels = statements.values.where(np.isin(statements.values.predicates, [code for code in codes if code >= 0]))
    names = _local_names(statements.nodes)
    if not len(labels.subjects):
        return names, []
    place = np.zeros(len(statements.predicates), dtype=np.int64)
    place[[code for code in codes if code >= 0]] = [at for at, code in enumerate(codes) if code >= 0]
    size = len(languages.tags) + 4
    ranks = (
        languages.others[labels.tags].astype(np.int64) * len(codes) + place[labels.predicates]
    ) * size + languages.ranks[labels.tags]
    chosen = _first_of_each(labels.subjects.astype(np.int64), ranks, labels.texts)
    at = np.full(len(names), -1, dtype=np.int64)
    at[labels.subjects[chosen]] = chosen
    labelled = labels.texts.take(pa.array(at, mask=at < 0))
    used = sorted({int(code) for code in np.unique(labels.predicates[chosen])}, key=lambda code: place[code])
    notes = [f"names are the values of {listed(short_name(statements.predicates[code], {}) for code in used)}"]
    return pc.coalesce(labelled, names), notes


def _local_names(ids: pa.Array) -> pa.Array:
    """Return the ends of IRIs, as `local_name` does, and None for blank nodes."""
    ends = pc.replace_substring_regex(pc.replace_substring_regex(ids, r"[/#]+$", ""), r"^.*[/#:]", "")
    escaped = np.flatnonzero(pc.match_substring(ends, "%").to_numpy(zero_copy_only=False))
    if len(escaped):
        texts = pa.array([unquote(text) for text in ends.take(pa.array(escaped)).to_pylist()], pa.large_string())
        mask = np.zeros(len(ends), dtype=np.bool_)
        mask[escaped] = True
        ends = pc.replace_with_mask(ends, pa.array(mask), texts)
    nothing = pc.or_(pc.starts_with(ids, "_:"), pc.equal(ends, ""))
    return pc.if_else(nothing, pa.scalar(None, pa.large_string()), ends)


def local_name(iri: str) -> str:
    """Return the end of an IRI, after its last /, # or colon.

    >>> [local_name(iri) for iri in ("http://xmlns.com/foaf/0.1/Person", "http://a.org/onto#Caf%C3%A9/", "urn:x:y")]
    ['Person', 'Café', 'y']
    """
    if not _SCHEME.match(iri):
        return iri.strip() or iri
    return unquote(re.split("[/#:]", iri.rstrip("/#"))[-1]).strip() or iri


def short_name(iri: str, prefixes: Mapping[str, str]) -> str:
    """Return an IRI with a prefix for its namespace: the file's own, a usual one, or the last word of the namespace.

    >>> short_name("http://xmlns.com/foaf/0.1/name", {}), short_name("http://a.org/films/name", {})
    ('foaf:name', 'films:name')
    """
    namespace = iri[: len(iri.rstrip("/#")) - len(re.split("[/#:]", iri.rstrip("/#"))[-1])]
    prefix = _PREFIXES.get(namespace) or prefixes.get(namespace) or local_name(namespace)
    return f"{prefix}:{local_name(iri)}"


def _unique_names(
    iris: Sequence[str], prefixes: Mapping[str, str], taken: Iterable[str] = ()
) -> tuple[list[str], list[str]]:
    """Return the local name of each IRI, with a prefix or whole where two share one, and notes on those."""
    names = [local_name(iri) for iri in iris]
    for longer in (lambda iri: short_name(iri, prefixes), str):
        counts = Counter([*names, *taken])
        names = [longer(iri) if counts[name] > 1 else name for iri, name in zip(iris, names, strict=True)]
    changed = [(iri, name) for iri, name in zip(iris, names, strict=True) if name != local_name(iri)]
    return names, [f"{iri} is called {name}, because {local_name(iri)} has other meanings" for iri, name in changed]


# ---- Attributes ----------------------------------------------------------------------------------
_INTEGERS = {
    f"{XSD}{name}"
    for name in (
        "integer", "int", "long", "short", "byte", "nonNegativeInteger", "positiveInteger", "nonPositiveInteger",
        "negativeInteger", "unsignedLong", "unsignedInt", "unsignedShort", "unsignedByte", "gYear",
    )
}  # fmt: skip
_NUMBERS = _INTEGERS | {f"{XSD}decimal", f"{XSD}double", f"{XSD}float"}
_RESERVED = ("id", "name")
"""Names that conditions such as `name ~ Ann` already have a meaning for."""


def _choose_values(statements: Statements, languages: _Languages) -> tuple[Values, list[str]]:
    """Return one value per node and property, without labels."""
    labels = [_position(statements.predicates, iri) for iri in NAME_PROPERTIES]
    values = statements.values.where(~np.isin(statements.values.predicates, labels))
    keys = values.predicates.astype(np.int64) * len(statements.nodes) + values.subjects
    chosen = np.zeros(len(keys), dtype=np.bool_)
    chosen[_first_of_each(keys, languages.ranks[values.tags], values.texts)] = True
    if chosen.all():
        return values, []
    left_out = values.where(~chosen)
    foreign = int(np.sum(languages.others[left_out.tags]))
    properties = [statements.predicates[code] for code in np.unique(left_out.predicates)]
    note = (
        f"{_counted(len(left_out.subjects), 'value', 'values')} of {listed(map(local_name, properties), 4)} left out"
        f"{f', {foreign:,} in other languages than {languages.language}' if foreign else ''}: of several values of "
        f"a node the shortest counts"
    )
    return values.where(chosen), [note]


def _as_column(values: Values, tags: Sequence[str]) -> pa.Array:
    """Return the values of one property as integers, numbers or booleans if all are declared so, else as texts."""
    kinds = {tags[code] for code in np.unique(values.tags)}
    wanted = (
        pa.int64() if kinds <= _INTEGERS
        else pa.float64() if kinds <= _NUMBERS
        else pa.bool_() if kinds == {f"{XSD}boolean"}
        else pa.string()
    )  # fmt: skip
    try:
        return pc.cast(pc.utf8_trim_whitespace(values.texts) if wanted != pa.string() else values.texts, wanted)
    except pa.ArrowInvalid:
        return pc.cast(values.texts, pa.string())


# ---- The graph -----------------------------------------------------------------------------------
def read_rdf(
    files: Sequence[Path], settings: RdfConfig | None, options: ReadOptions, progress: Progress = no_progress
) -> HIN:
    """Read RDF files as one graph; the same statement twice is one edge unless the options count parallel edges."""
    try:
        import pyoxigraph as _  # noqa: F401
    except ModuleNotFoundError as error:
        raise MissingExtraError("pyoxigraph", "neupath[io]") from error
    rdf = settings or RdfConfig()
    statements = read_statements(files, rdf.type, progress)
    if not len(statements.nodes):
        raise SourceError(
            f"{listed(map(str, files), 4)}: there are no statements; RDF has one per edge, such as <a> <b> <c> ."
        )
    statements, lists = _expand_lists(statements)
    notes = [*statements.notes, *lists]
    if rdf.same_as == "merge":
        statements, merged = _merge_same(statements)
        notes += merged
    properties, chosen = _choose_properties(statements, rdf)
    return _build(statements, properties, rdf, replace(options, notes=[*options.notes, *notes, *chosen]))


def _build(statements: Statements, properties: Sequence[str], rdf: RdfConfig, options: ReadOptions) -> HIN:
    languages = _Languages(rdf.language.lower(), statements.tags)
    types = _choose_types(statements, properties)
    names, name_notes = _choose_names(statements, languages)
    values, value_notes = _choose_values(statements, languages)
    type_codes = [_position(statements.predicates, iri) for iri in properties]
    edges = statements.links.where(~np.isin(statements.links.predicates, type_codes))
    type_names, type_notes = _unique_names(types.iris, statements.prefixes, [UNTYPED])
    check_counts(len(type_names), 0)
    members = _Members.of(statements, edges, types.of_node, [*type_names, UNTYPED])
    attributes, attribute_notes = _attributes(statements, values, members)
    nodes = [
        Nodes(
            node_type,
            _as_strings(statements.nodes.take(pa.array(rows)), node_type),
            _as_strings(names.take(pa.array(rows)), node_type),
            attributes.get(node_type, pa.table({})),
            distinct=True,
        )
        for node_type, rows in members.rows.items()
    ]
    relations, relation_notes = _relations(statements, edges, members, options)
    untyped = len(members.rows.get(UNTYPED, ()))
    notes = [
        *options.notes,
        *types.notes,
        *([f"{_counted(untyped, 'node has', 'nodes have')} no type: {UNTYPED}"] if untyped and type_names else []),
        *type_notes, *name_notes, *value_notes, *attribute_notes, *relation_notes,
    ]  # fmt: skip
    hin = HIN.build(nodes, relations, duplicates=options.duplicates, abbreviations=options.abbreviations, notes=notes)
    repeats = sum(len(each.sources) for each in relations) - sum(map(hin.num_edges, hin.matrices))
    if repeats and options.duplicates == "drop":
        return replace(
            hin,
            notes=(
                *notes,
                f"{_counted(repeats, 'statement is', 'statements are')} given more than once, and counted once",
            ),
        )
    return hin


@dataclass(frozen=True)
class _Members:
    """The nodes of each type, in order of appearance."""

    names: list[str]
    rows: Mapping[str, Rows]
    of_node: Codes
    """The type of each node; the last type is that of nodes without one, and -1 means that it is not a node."""
    row_of_node: Codes

    @classmethod
    def of(cls, statements: Statements, edges: Links, of_node: Codes, names: list[str]) -> "_Members":
        """Take as nodes all subjects, and the objects of edges; types are not nodes."""
        used = np.zeros(len(of_node), dtype=np.bool_)
        for codes in (statements.links.subjects, statements.values.subjects, edges.objects):
            used[codes] = True
        types = np.where(used, np.where(of_node < 0, len(names) - 1, of_node), -1).astype(np.int32)
        order = np.argsort(types, kind="stable")
        ends = np.searchsorted(types[order], np.arange(-1, len(names)), side="right")
        rows = {
            name: order[start:end] for name, start, end in zip(names, ends[:-1], ends[1:], strict=True) if end > start
        }
        row_of_node = np.full(len(of_node), -1, dtype=np.int32)
        for members in rows.values():
            row_of_node[members] = np.arange(len(members), dtype=np.int32)
        return cls(names, rows, types, row_of_node)


def _attributes(statements: Statements, values: Values, members: _Members) -> tuple[dict[str, pa.Table], list[str]]:
    """Return the attributes of the nodes of each type: those that at least one of them has."""
    codes = np.unique(values.predicates).tolist()
    names, notes = _unique_names([statements.predicates[code] for code in codes], statements.prefixes, _RESERVED)
    columns: dict[str, dict[str, pa.Array]] = {}
    for code, name in zip(codes, names, strict=True):
        own = values.where(values.predicates == code)
        column = _as_column(own, statements.tags)
        for node_type, rows in _groups(members.of_node[own.subjects]):
            label = members.names[node_type]
            places = np.full(len(members.rows[label]), -1, dtype=np.int64)
            places[members.row_of_node[own.subjects[rows]]] = rows
            columns.setdefault(label, {})[name] = column.take(pa.array(places, mask=places < 0))
    tables = {}
    for label, own_columns in columns.items():
        tables[label], more = undeclared_attributes(own_columns, label)
        notes = [*notes, *more]
    return tables, notes


def _relations(
    statements: Statements, links: Links, members: _Members, options: ReadOptions
) -> tuple[list[Edges], list[str]]:
    """Return the edges of each property and each pair of types."""
    codes, places = np.unique(links.predicates, return_inverse=True)
    names, notes = _unique_names([statements.predicates[code] for code in codes], statements.prefixes)
    options.check_names(names)
    shape = (max(1, len(names)), len(members.names), len(members.names))
    kinds = np.ravel_multi_index((places, members.of_node[links.subjects], members.of_node[links.objects]), shape)
    groups = list(_groups(kinds))
    check_counts(0, len(groups))
    edges = []
    for kind, rows in groups:
        name, source, target = np.unravel_index(kind, shape)
        relation = options.relation(members.names[source], names[name], members.names[target])
        if relation is not None:
            sources, targets = (members.row_of_node[ends[rows]] for ends in (links.subjects, links.objects))
            edges.append(Edges(relation, sources.astype(np.int64), targets.astype(np.int64)))
    return edges, notes


def _groups(codes: NDArray[Any]) -> Iterator[tuple[int, Rows]]:
    """Yield each distinct code, ascending, with its positions, ascending."""
    order = np.argsort(codes, kind="stable")
    distinct, starts = np.unique(codes[order], return_index=True)
    yield from zip(distinct.tolist(), np.split(order, starts[1:]), strict=True) if len(order) else ()


def _as_strings(texts: pa.Array, node_type: str) -> pa.Array:
    try:
        return pc.cast(texts, pa.string())
    except pa.ArrowInvalid as error:
        raise GraphError(
            f"the ids or names of type {node_type} take more than 2 GiB; read a part of the graph"
        ) from error
