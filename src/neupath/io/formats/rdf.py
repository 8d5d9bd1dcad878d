"""Read RDF as a graph: types by rdf:type, names by labels, attributes by literals, all other statements as edges."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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
from neupath.io.formats.rdf_statements import XSD, Codes, Statements, Triples, change_some, read_statements
from neupath.io.graph_toml import RdfConfig
from neupath.io.plan import ReadOptions
from neupath.io.values import undeclared_attributes

RDF, RDFS = "http://www.w3.org/1999/02/22-rdf-syntax-ns#", "http://www.w3.org/2000/01/rdf-schema#"
OWL, SKOS = "http://www.w3.org/2002/07/owl#", "http://www.w3.org/2004/02/skos/core#"
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


# ---- What statements mean together ---------------------------------------------------------------
def _merge_same(statements: Statements) -> tuple[Statements, list[str]]:
    """Make one node of all nodes that owl:sameAs joins: the first of their IRIs by alphabet."""
    from scipy.sparse.csgraph import connected_components

    same, triples, size = statements.having(SAME_AS), statements.triples, len(statements.nodes)
    matrix = coo_array((np.ones(len(same.subjects)), (same.subjects, same.objects)), shape=(size, size))
    _, groups = connected_components(matrix, directed=False)
    involved = np.unique(np.concatenate([same.subjects, same.objects]))
    ids = statements.nodes.take(pa.array(involved)).to_pylist()
    order = sorted(range(len(ids)), key=lambda at: (ids[at].startswith("_:"), ids[at]), reverse=True)
    chosen = np.zeros(size, dtype=np.int32)
    chosen[groups[involved[order]]] = involved[order]  # the last to be written is the first by alphabet
    to = np.arange(size, dtype=np.int32)
    to[involved] = chosen[groups[involved]]
    triples = triples.where(triples.predicates != statements.predicate(SAME_AS))
    objects = triples.objects.copy()
    objects[objects >= 0] = to[objects[objects >= 0]]  # the others are values
    merged = replace(statements, triples=Triples(to[triples.subjects], triples.predicates, objects))
    gone = int(np.sum(to[involved] != involved))
    return merged, [f"owl:sameAs merged {len(involved):,} nodes into {len(involved) - gone:,}"]


def _expand_lists(statements: Statements) -> tuple[Statements, list[str]]:
    """Lead statements about an RDF list to its members, and leave out the nodes that the list is made of."""
    triples, rests, firsts = statements.triples, statements.having(f"{RDF}rest"), statements.having(f"{RDF}first")
    if not len(rests.subjects):
        return statements, []
    following = dict(zip(rests.subjects.tolist(), rests.objects.tolist(), strict=True))
    members = dict(zip(firsts.subjects.tolist(), firsts.objects.tolist(), strict=True))
    if len(following) < len(rests.subjects) or len(members) < len(firsts.subjects):
        return statements, ["rdf:first and rdf:rest are relations, because they do not make proper lists"]
    is_cell = np.zeros(len(statements.nodes), dtype=np.bool_)
    is_cell[np.fromiter(following, dtype=np.int64)] = True
    nil = pc.equal(statements.nodes, f"{RDF}nil").to_numpy(zero_copy_only=False)
    is_link = triples.objects >= 0
    objects = np.where(is_link, triples.objects, 0)  # values are no nodes: their numbers are negative
    leads = triples.where(is_link & is_cell[objects] & ~is_cell[triples.subjects])
    added = [
        (subject, predicate, member)
        for subject, predicate, head in zip(leads.subjects.tolist(), leads.predicates, leads.objects, strict=True)
        for member in _list_members(int(head), following, members)
    ]
    others = triples.where(~is_cell[triples.subjects] & ~(is_link & (is_cell | nil)[objects]))
    note = f"{_counted(len(leads.subjects), 'list is', 'lists are')} read as relations to all members"
    return replace(statements, triples=others.append(added)), [note]


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


# ---- Types ---------------------------------------------------------------------------------------
def _choose_properties(statements: Statements, settings: RdfConfig) -> tuple[list[str], list[str]]:
    """Return the type properties, the best first, and notes."""
    if settings.type is not None:
        if settings.type not in statements.predicates:
            raise SourceError(
                f"no statement has the type property {settings.type!r} of [rdf] in graph.toml (the properties are "
                f"{listed(statements.predicates)}){did_you_mean(settings.type, statements.predicates)}"
            )
        return [settings.type, RDF_TYPE], []
    types = statements.nodes.take(pa.array(np.unique(statements.having(RDF_TYPE).objects))).to_pylist()
    others = [iri for iri in types if iri not in GENERAL_TYPES and not iri.startswith(_WIKIDATA_TYPES)]
    if others or WIKIDATA_TYPE not in statements.predicates:
        return [RDF_TYPE], []
    note = f"types are read from {WIKIDATA_TYPE}, as in Wikidata; [rdf] type = … in graph.toml names another property"
    return [WIKIDATA_TYPE, RDF_TYPE], [note]


def _choose_types(statements: Statements, properties: Sequence[str]) -> tuple[list[str], Codes, list[str]]:
    """Return the IRIs of the types, the type of each node or -1 if it has none, and notes.

    A node has the type that most nodes have among its own, by the first property that gives it one.
    """
    of_node = np.full(len(statements.nodes), -1, dtype=np.int64)
    used: list[int] = []
    notes = []
    for iri in properties:
        links = statements.having(iri)
        pairs = np.unique(np.stack([links.subjects, links.objects], axis=1), axis=0)
        pairs = pairs[of_node[pairs[:, 0]] < 0]
        classes, members, counts = np.unique(pairs[:, 1], return_inverse=True, return_counts=True)
        texts = statements.nodes.take(pa.array(classes)).to_pylist()
        is_general = [iri in GENERAL_TYPES or iri.startswith("_:") for iri in texts]
        order = sorted(range(len(texts)), key=lambda at: (is_general[at], -counts[at], texts[at]))
        best_first = pairs[np.lexsort((np.argsort(order)[members], pairs[:, 0]))]
        nodes, firsts, numbers = np.unique(best_first[:, 0], return_index=True, return_counts=True)
        of_node[nodes] = best_first[firsts, 1]
        chosen = set(best_first[firsts, 1].tolist())
        used += [classes[at] for at in order if classes[at] in chosen]
        if np.any(numbers > 1):
            passed_over = [local_name(texts[at]) for at in order if classes[at] not in chosen]
            several = _counted(int(np.sum(numbers > 1)), "node has", "nodes have")
            without = f"; no node is left with {listed(passed_over, 4)}" if passed_over else ""
            notes.append(f"{several} several types; of these the one with most nodes counts{without}")
    distinct = np.array(list(dict.fromkeys(used)), dtype=np.int64)
    number_of = np.full(len(statements.nodes) + 1, -1, dtype=np.int32)  # the last for nodes without a type
    number_of[distinct] = np.arange(len(distinct))
    return statements.nodes.take(pa.array(distinct)).to_pylist(), number_of[of_node], notes


def _counted(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"


# ---- One of several literals ---------------------------------------------------------------------
_FOREIGN = 3
"""From this rank on, a literal is in another language."""


def _language_ranks(tags: Sequence[str], language: str) -> NDArray[np.int64]:
    """Rank tags: the language itself, none, its variants such as en-GB, then the others by alphabet."""
    own = f"@{language}"
    others = sorted(tag for tag in tags if tag.startswith("@") and tag != own and not tag.startswith(f"{own}-"))
    ranks = {tag: at for at, tag in enumerate(others, _FOREIGN)} | {own: 0}
    return np.array([ranks.get(tag, 2 if tag.startswith("@") else 1) for tag in tags], dtype=np.int64)


def _best_of_each(keys: NDArray[Any], ranks: Rows, texts: pa.Array) -> Rows:
    """Return the position of one text per key: of the lowest rank, then the shortest, then the first by alphabet."""
    _, groups = np.unique(keys, return_inverse=True)
    lowest = np.full(len(keys), np.iinfo(np.int64).max)
    np.minimum.at(lowest, groups, ranks)
    left = np.flatnonzero(ranks == lowest[groups])
    is_tied = np.bincount(groups[left])[groups[left]] > 1
    tied = left[is_tied]
    columns = {
        "key": keys[tied],
        "length": pc.utf8_length(texts.take(pa.array(tied))),
        "text": texts.take(pa.array(tied)),
    }
    by_text = tied[pc.sort_indices(pa.table(columns), [(name, "ascending") for name in columns]).to_numpy()]
    _, firsts = np.unique(keys[by_text], return_index=True)
    return np.sort(np.concatenate([left[~is_tied], by_text[firsts]]))


def _choose_names(statements: Statements, labels: Triples, place: Rows, ranks: Rows) -> tuple[pa.Array, list[str]]:
    """Name each node by its best label, or else by the end of its IRI; blank nodes without a label have no name."""
    names = _local_names(statements.nodes)
    if not len(labels.subjects):
        return names, []
    literals, own_ranks = ~labels.objects, ranks[~labels.objects]
    by_property = (own_ranks >= _FOREIGN) * len(NAME_PROPERTIES) + place[labels.predicates]
    texts = statements.literals.take(pa.array(literals))
    chosen = _best_of_each(labels.subjects, by_property * (own_ranks.max() + 1) + own_ranks, texts)
    at = np.full(len(names), -1, dtype=np.int64)
    at[labels.subjects[chosen]] = chosen
    used = sorted(np.unique(labels.predicates[chosen]).tolist(), key=lambda code: int(place[code]))
    notes = [f"names are the values of {listed(short_name(statements.predicates[code], {}) for code in used)}"]
    return pc.coalesce(texts.take(pa.array(at, mask=at < 0)), names), notes


def _choose_values(statements: Statements, values: Triples, ranks: Rows, language: str) -> tuple[Triples, list[str]]:
    """Return one value per node and property."""
    keys = values.predicates.astype(np.int64) * len(statements.nodes) + values.subjects
    chosen = np.zeros(len(keys), dtype=np.bool_)
    chosen[_best_of_each(keys, ranks[~values.objects], statements.literals.take(pa.array(~values.objects)))] = True
    if chosen.all():
        return values, []
    left_out = values.where(~chosen)
    foreign = int(np.sum(ranks[~left_out.objects] >= _FOREIGN))
    properties = [local_name(statements.predicates[code]) for code in np.unique(left_out.predicates)]
    note = (
        f"{_counted(len(left_out.subjects), 'value', 'values')} of {listed(properties, 4)} left out"
        f"{f', {foreign:,} in other languages than {language}' if foreign else ''}: of several values of "
        f"a node the shortest counts"
    )
    return values.where(chosen), [note]


# ---- Names of IRIs -------------------------------------------------------------------------------
def _local_names(ids: pa.Array) -> pa.Array:
    """Return the ends of IRIs, as `local_name` does, and None for blank nodes."""
    ends = pc.replace_substring_regex(pc.replace_substring_regex(ids, r"[/#]+$", ""), r"^.*[/#:]", "")
    ends = change_some(ends, pc.match_substring(ends, "%"), lambda texts: map(unquote, texts))
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


# ---- The graph -----------------------------------------------------------------------------------
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
    notes = [*options.notes, *statements.notes, *lists]
    if rdf.same_as == "merge":
        statements, merged = _merge_same(statements)
        notes += merged
    return _build(statements, rdf, replace(options, notes=notes))


def _build(statements: Statements, rdf: RdfConfig, options: ReadOptions) -> HIN:
    properties, property_notes = _choose_properties(statements, rdf)
    iris, type_of_node, several = _choose_types(statements, properties)
    type_names, type_notes = _unique_names(iris, statements.prefixes, [UNTYPED])
    check_counts(len(type_names), 0)
    triples = statements.triples
    ranks = _language_ranks(statements.tags, rdf.language.lower())[statements.tag_of_literal]
    values = triples.where(triples.objects < 0)
    place_of = {iri: place for place, iri in enumerate(NAME_PROPERTIES)}
    place = np.array([place_of.get(iri, -1) for iri in statements.predicates], dtype=np.int64)
    is_label = place[values.predicates] >= 0
    names, name_notes = _choose_names(statements, values.where(is_label), place, ranks)
    chosen, value_notes = _choose_values(statements, values.where(~is_label), ranks, rdf.language.lower())
    is_type = np.isin(triples.predicates, [statements.predicate(iri) for iri in properties])
    links = triples.where((triples.objects >= 0) & ~is_type)
    members = _Members.of([triples.subjects, links.objects], type_of_node, [*type_names, UNTYPED])
    attributes, attribute_notes = _attributes(statements, chosen, members)
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
    relations, relation_notes = _relations(statements, links, members, options)
    untyped = len(members.rows.get(UNTYPED, ()))
    notes = [
        *options.notes, *property_notes, *several,
        *([f"{_counted(untyped, 'node has', 'nodes have')} no type: {UNTYPED}"] if untyped and type_names else []),
        *type_notes, *name_notes, *value_notes, *attribute_notes, *relation_notes,
    ]  # fmt: skip
    hin = HIN.build(nodes, relations, duplicates=options.duplicates, abbreviations=options.abbreviations, notes=notes)
    repeats = sum(len(each.sources) for each in relations) - sum(map(hin.num_edges, hin.matrices))
    if repeats and options.duplicates == "drop":
        repeated = _counted(repeats, "statement is", "statements are")
        return replace(hin, notes=(*notes, f"{repeated} given more than once, and counted once"))
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
    def of(cls, ends: Sequence[Codes], of_node: Codes, names: list[str]) -> "_Members":
        """Take as nodes the ends of statements; types are not nodes."""
        used = np.zeros(len(of_node), dtype=np.bool_)
        for codes in ends:
            used[codes] = True
        types = np.where(used, np.where(of_node < 0, len(names) - 1, of_node), -1).astype(np.int32)
        rows = {names[code]: members for code, members in _groups(types) if code >= 0}
        row_of_node = np.full(len(of_node), -1, dtype=np.int32)
        for members in rows.values():
            row_of_node[members] = np.arange(len(members), dtype=np.int32)
        return cls(names, rows, types, row_of_node)


def _attributes(statements: Statements, values: Triples, members: _Members) -> tuple[dict[str, pa.Table], list[str]]:
    """Return the attributes of the nodes of each type: those that at least one of them has."""
    codes = np.unique(values.predicates).tolist()
    names, notes = _unique_names([statements.predicates[code] for code in codes], statements.prefixes, _RESERVED)
    columns: dict[str, dict[str, pa.Array]] = {}
    for code, name in zip(codes, names, strict=True):
        own = values.where(values.predicates == code)
        column = _as_column(statements, ~own.objects)
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


def _as_column(statements: Statements, literals: Codes) -> pa.Array:
    """Return the literals of one property as integers, numbers or booleans if all are declared so, else as texts."""
    kinds = {statements.tags[code] for code in np.unique(statements.tag_of_literal[literals])}
    wanted = (
        pa.int64() if kinds <= _INTEGERS
        else pa.float64() if kinds <= _NUMBERS
        else pa.bool_() if kinds == {f"{XSD}boolean"}
        else pa.string()
    )  # fmt: skip
    texts = statements.literals.take(pa.array(literals))
    try:
        return pc.cast(pc.utf8_trim_whitespace(texts) if wanted != pa.string() else texts, wanted)
    except pa.ArrowInvalid:
        return pc.cast(texts, pa.string())


def _relations(
    statements: Statements, links: Triples, members: _Members, options: ReadOptions
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
