"""Tables whose ids all nodes of a graph share: one of nodes and one of edges, triples, and those of neo4j-admin."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from neupath.errors import SourceError, listed
from neupath.graph.metapath import Relation
from neupath.io.columns import (
    Ends,
    choose_columns,
    declared_in,
    few_types,
    find_ends,
    has_prefixed_ids,
    holds_categories,
    look_like_triples,
    node_kinds,
    note_weight,
    weight_column,
)
from neupath.io.graph_toml import PairConfig, TriplesConfig
from neupath.io.plan import EdgePlan, NodePlan, Plan, ReadOptions, Selection, SharedIds, existing
from neupath.io.proposals import UnrecognisedError, propose_triples
from neupath.io.sources import Source, refuse_twice
from neupath.io.tables import Table, TableFile
from neupath.io.words import (
    EDGE_TABLES,
    EDGE_WORDS,
    NAMES,
    NODE_TABLES,
    ROLES_IN_TABLES,
    SPLIT_TABLES,
    WEAK_EDGE_TABLES,
    is_measure,
    is_weak_relation,
    snake,
)


def _shared_plan(
    nodes: Sequence[Selection],
    edges: Sequence[Selection],
    options: ReadOptions,
    shared: SharedIds,
    relation: str | None = None,
) -> Plan:
    """Return the plan of tables whose ids are shared; edges without a name have that of their table."""
    kind = shared.node_type
    names = [relation or each.table.name.strip() or "edge" for each in edges]
    return Plan(
        [NodePlan(each.spaces.get("id") or kind, each) for each in nodes],
        [EdgePlan(Relation(kind, name, kind), each) for name, each in zip(names, edges, strict=True)],
        options,
        shared,
    )


def _note_others(source: Source, used: Sequence[Table]) -> list[str]:
    """Note the tables that are not read because others hold the whole graph."""
    names = " and ".join(table.label for table in used)
    others = [table.label for table in source.tables if table not in used and source.settings.triples is None]
    return [f"{label} was left out: the graph is read from {names}" for label in others]


def _select_edges(
    table: Table,
    columns: Mapping[str, str],
    entry: PairConfig | TriplesConfig,
    section: str | None,
    others: Iterable[str] = (),
    *,
    all_text: bool = False,
) -> tuple[Selection, list[str]]:
    """Select edges with weight and attributes, which are not the columns `others`; note what is left out."""
    weight = table.column(entry.weight, "weight") if entry.weight else weight_column(table, columns.values())
    roles = {**columns, **existing(weight=weight)}
    chosen = choose_columns(table, {*roles.values(), *others}, weight, entry.attributes, entry.attribute_types)
    place = "" if section is None else declared_in(table, section)
    selection = Selection(table, roles, chosen.columns, all_text=all_text, kinds=chosen.kinds, declared_in=place)
    notes = [] if entry.attributes is not None else note_weight(selection, section)
    return selection, [*chosen.notes(table.label), *notes]


def _last_word(table: Table) -> str:
    return table.name.lower().replace("-", "_").rsplit("_", 1)[-1]


# ---- One table of all nodes and one of all edges -------------------------------------------------
def plan_pair(source: Source) -> Plan | str:
    """Read a table of all nodes and one of all edges, named by graph.toml or by the last word of their names."""
    settings = source.settings
    if settings.pair is not None and settings.pair.nodes and settings.pair.edges:
        return _plan_pair(source, source.find(settings.pair.nodes), source.find(settings.pair.edges))
    nodes = [table for table in source.tables if _last_word(table) in NODE_TABLES]
    if not nodes or settings.nodes or settings.edges or settings.triples:
        return ""
    others = [table for table in source.tables if table not in nodes and has_triple_header(table)]
    edges = _edge_tables(source.tables) or others
    if len(nodes) > 1 or len(edges) != 1:
        names = listed((table.label for table in (*nodes, *edges)), 6)
        return f"{names}: this is not one table of all nodes and one of all edges"
    return _plan_pair(source, nodes[0], edges[0])


def _edge_tables(tables: Sequence[Table]) -> list[Table]:
    """Find the tables of all edges by clear names, or else by less clear names and their columns."""

    def has_edges(table: Table) -> bool:
        return all(_usual_column(table, end) for end in ("source", "relation", "target"))

    named = [table for table in tables if _last_word(table) in EDGE_TABLES]
    return named or [table for table in tables if _last_word(table) in WEAK_EDGE_TABLES and has_edges(table)]


def _plan_pair(source: Source, nodes: Table, edges: Table) -> Plan:
    """Choose the columns of a table of all nodes and of one of all edges."""
    pair, options = source.settings.pair or PairConfig(), source.options
    id_ = _pair_id(nodes, edges, pair)
    type_ = nodes.column(pair.type, "type") if pair.type else _type_column(nodes, edges, id_)
    numbers = [column for column in nodes.columns if any(nodes.sample[column]) and nodes.has_numbers(column)]
    usual_name = _usual_column(nodes, "name", (id_, type_ or "", *numbers))
    own = existing(id=id_, type=type_, name=nodes.column(pair.name, "name") if pair.name else usual_name)
    attributes = [column for column in nodes.columns if column not in own.values()]
    of_nodes = {c: word for c, word in pair.attribute_types.items() if c in attributes}
    of_edges = {c: word for c, word in pair.attribute_types.items() if c not in of_nodes or c in edges.columns}
    place = declared_in(nodes, "[pair]")
    chosen = Selection(nodes, own, attributes, kinds=node_kinds(nodes, of_nodes, own), declared_in=place)
    ends, direction = _pair_ends(edges, pair)
    entry = replace(pair, attribute_types=of_edges)
    triples, edge_notes = _select_edges(edges, ends, entry, "[pair]", existing(direction=direction).values())
    labels = None if type_ is None else _label_delimiter(nodes, type_)
    notes = [*_note_others(source, [nodes, edges]), *options.notes]
    if type_ is None:
        notes.append(f"{nodes.label}: no column is known to hold types, so all nodes were read as one type, node")
    else:
        notes += _note_labels(nodes, type_, labels)
    has_relations = "relation" in ends
    words = [column for column in triples.attributes if holds_categories(edges, column)]
    if words and not (has_relations or direction):
        unnamed = f"no column is known to hold relations, so {listed(words)} is an attribute of edges"
        notes.append(f"{edges.label}: {unnamed}")
    options = replace(options, notes=[*notes, *edge_notes])
    if has_relations or type_ is not None:
        shared = SharedIds("node", labels=labels)
        return _shared_plan([chosen], [triples], options, shared, None if has_relations else "edge")
    is_undirected = direction is not None and edges.sample[direction][0].lower() == "undirected"
    one = Relation("node", "edge", "node", directed=not (is_undirected or "edge" in options.undirected))
    return Plan([NodePlan("node", chosen)], [EdgePlan(one, triples)], options)


def _pair_ends(edges: Table, pair: PairConfig) -> tuple[dict[str, str], str | None]:
    """Return the columns of source, target and perhaps relation, and that of Gephi which says if edges are directed."""
    ends = find_ends(edges)
    if ends is None or pair.source or pair.relation or pair.target:
        return {role: _pair_column(edges, pair, role) for role in ("source", "relation", "target")}, None
    _refuse_rivals(edges, ends)
    columns = existing(source=ends.ids[0], relation=ends.relation, target=ends.ids[1])
    directions = set() if ends.relation is None else {cell.lower() for cell in edges.sample[ends.relation]}
    if not directions or not directions <= {"directed", "undirected"}:
        return columns, None
    if len(directions) > 1:
        raise SourceError(
            f"{edges.title} has directed and undirected edges in {ends.relation}; write them to two tables, or leave "
            f"the column out to read all as directed"
        )
    return columns, columns.pop("relation")


def _pair_id(nodes: Table, edges: Table, pair: PairConfig) -> str:
    """Return the id column of the nodes: the one that is called like the ends of edges, as node_index is x_index."""
    ends = find_ends(edges)
    if pair.id is None and ends is not None:
        suffix = snake(ends.ids[0]).rpartition("_")[2]
        same = [column for column in nodes.columns if snake(column) == f"node_{suffix}"]
        if same:
            return same[0]
    return _pair_column(nodes, pair, "id")


def _type_column(nodes: Table, edges: Table, id_: str) -> str | None:
    """Return the column of types; a `label` is one only in tables of a property graph, elsewhere a class or a name."""
    usual = _usual_column(nodes, "type", (id_,))
    label = _usual_column(nodes, "label", (id_,))
    if usual or label is None or _last_word(edges) not in WEAK_EDGE_TABLES:
        return usual
    return label if _usual_column(nodes, "name", (id_, label)) and not nodes.has_numbers(label) else None


def _pair_column(table: Table, pair: PairConfig, purpose: str) -> str:
    if getattr(pair, purpose) is not None:
        return table.column(getattr(pair, purpose), purpose)
    usual = _usual_column(table, purpose)
    if usual is None:
        raise SourceError(
            f"{table.title} has no column for the {purpose} (it has {listed(table.columns)}); "
            f'call it {purpose!r}, or name it in graph.toml under [pair] as {purpose} = "…"'
        )
    return usual


def _usual_column(table: Table, purpose: str, taken: Sequence[str] = ()) -> str | None:
    by_lower = {column.lower(): column for column in table.columns if column not in taken}
    return next((by_lower[name] for name in ROLES_IN_TABLES[purpose] if name in by_lower), None)


def _label_delimiter(table: Table, column: str) -> str | None:
    """Return what is between several types of a node: a bar in Biolink's categories, a semicolon in Neo4j's labels."""
    cells = table.sample[column]
    if any("|" in cell or cell.startswith("biolink:") for cell in cells):
        return "|"
    is_label = column.lower().endswith(":label")
    return ";" if is_label and any(";" in cell for cell in cells) else None


def _note_labels(table: Table, column: str, labels: str | None) -> list[str]:
    if labels is None:
        return []
    prefix = "the prefix biolink: was left out" if any("biolink:" in cell for cell in table.sample[column]) else ""
    several = any(labels in cell for cell in table.sample[column])
    first = f"of several types in {column}, with {labels} between them, the first that is not a general class was read"
    changes = [text for text in (prefix, first if several else "") if text]
    return [f"{table.label}: {'; '.join(changes)}"] if changes else []


# ---- Tables of neo4j-admin -----------------------------------------------------------------------
_NEO4J_COLUMN = re.compile(r".*:(?P<role>ID|LABEL|TYPE|START_ID|END_ID|IGNORE)(?:\((?P<space>.*)\))?", re.IGNORECASE)


def plan_neo4j(source: Source) -> Plan | str:
    """Choose the columns of tables with the header of neo4j-admin, some of nodes and some of edges."""
    roles = {table: _neo4j_roles(table) for table in source.tables if not source.settings.names_tables}
    nodes = [_neo4j_nodes(table, columns) for table, columns in roles.items() if "ID" in columns]
    found = [_neo4j_edges(table, columns) for table, columns in roles.items() if {"START_ID", "END_ID"} <= {*columns}]
    edges = [selection for selection, _ in found]
    if not nodes or not edges:
        half = next((table for table, own in roles.items() if {*own} & {"ID", "START_ID", "END_ID"}), None)
        if half is None:
            return ""
        missing = "but there is no table of nodes with :ID and one of edges with :START_ID and :END_ID"
        return f"{half.title} has columns of neo4j-admin ({listed(half.columns)}), {missing}"
    typed = [each for each in nodes if "type" in each.columns]
    several = any(";" in cell for each in typed for cell in each.table.sample[each.columns["type"]])
    labels = ";" if several else None
    notes = [*_note_others(source, [each.table for each in (*nodes, *edges)]), *source.notes]
    notes += [note for each in typed for note in _note_labels(each.table, each.columns["type"], labels)]
    notes += [
        f"{each.table.label}: no column is called :LABEL, so its name or the space of its ids is the type"
        for each in nodes
        if each not in typed
    ]
    notes += [
        f"{each.table.label}: no column is called :TYPE, so all its edges are of one type, {each.table.name}"
        for each in edges
        if "relation" not in each.columns
    ]
    notes += [note for _, own in found for note in own]
    return _shared_plan(nodes, edges, replace(source.options, notes=notes), SharedIds("node", labels=labels))


def _neo4j_roles(table: Table) -> dict[str, tuple[str, str]]:
    """Return the column and the id space of each role that the header of a table names."""
    columns = table.columns if table.has_header else []
    matches = {column: match for column in columns if (match := _NEO4J_COLUMN.fullmatch(column))}
    return {match["role"].upper(): (column, match["space"] or "") for column, match in matches.items()}


def _is_ignored(column: str) -> bool:
    return column.upper().endswith(":IGNORE")


def _neo4j_nodes(table: Table, roles: Mapping[str, tuple[str, str]]) -> Selection:
    id_, space = roles["ID"]
    plain = {column.partition(":")[0].lower(): column for column in reversed(table.columns) if column[0] != ":"}
    name = next((plain[word] for word in NAMES if word in plain and plain[word] != id_), None)
    label = roles["LABEL"][0] if "LABEL" in roles else None
    others = [column for column in table.columns if column not in (id_, name, label) and not _is_ignored(column)]
    return Selection(table, existing(id=id_, type=label, name=name), others, spaces=existing(id=space or None))


def _neo4j_edges(table: Table, roles: Mapping[str, tuple[str, str]]) -> tuple[Selection, list[str]]:
    (source, source_space), (target, target_space) = roles["START_ID"], roles["END_ID"]
    relation = roles["TYPE"][0] if "TYPE" in roles else None
    weight = next((column for column in table.columns if column.partition(":")[0].lower() == "weight"), None)
    columns = existing(source=source, relation=relation, target=target)
    ignored = filter(_is_ignored, table.columns)
    selection, notes = _select_edges(table, columns, TriplesConfig(weight=weight), None, ignored)
    spaces = existing(source=source_space or None, target=target_space or None)
    return replace(selection, spaces=spaces), notes


# ---- Triples of a knowledge graph: head, relation, tail ------------------------------------------
def plan_triples(source: Source, is_relation: Callable[[Table], bool]) -> Plan | str:
    """Read the tables of triples, named by graph.toml or found, which are one graph.

    `is_relation` says whether a lone table is rather one relation, whose edges have an attribute such as `type`.
    """
    if source.settings.triples is not None:
        tables = [source.find(name) for name in source.settings.triples.files or ()] or list(source.tables)
        refuse_twice(table.path for table in tables if isinstance(table, TableFile))
    else:
        tables = [] if source.settings.names_tables else _triple_tables(source.tables, is_relation)
    headed = [table.label for table in source.tables if has_triple_header(table)]
    near = f"{listed(headed, 4)} may hold triples, but stands among other tables" if headed else ""
    return _plan_triples(source, tables) if tables else near


def _triple_tables(tables: Sequence[Table], is_relation: Callable[[Table], bool]) -> list[Table]:
    """Find the tables of a knowledge graph: train, valid and test, or tables whose headers name a relation and ends."""
    splits = [table for table in tables if table.name.lower() in SPLIT_TABLES and not table.is_folder]
    if splits and (any(table.name.lower() == "train" for table in splits) or len(splits) == len(tables)):
        named = all(map(has_triple_header, splits))
        return splits if named or look_like_triples(splits, is_split=True) else []
    if len(tables) == 1:
        return list(tables) if _is_all_triples(tables[0], is_relation) else []
    headed = [table for table in tables if has_triple_header(table)]
    typed = [table for table in headed if (ends := find_ends(table)) and ends.types]
    if headed and len(headed) == len(tables):
        return headed
    if typed:
        return typed
    edges = _edge_tables(tables)
    alone = len(edges) == 1 and not any(_last_word(table) in NODE_TABLES for table in tables)
    return edges if alone and _is_edge_list(edges[0]) else []


def has_triple_header(table: Table) -> bool:
    """Whether the header of a table names a relation and the two ends of an edge."""
    ends = find_ends(table)
    return ends is not None and ends.relation is not None and not is_weak_relation(ends.relation)


def _is_all_triples(table: Table, is_relation: Callable[[Table], bool]) -> bool:
    ends = find_ends(table)
    if ends is not None and ends.relation is not None:
        clear = ends.types is not None or not is_weak_relation(ends.relation)
        return clear or not is_relation(table)
    return look_like_triples([table]) or (_last_word(table) in EDGE_TABLES and _is_edge_list(table))


def _is_edge_list(table: Table) -> bool:
    """Whether a table of edges has a relation column, with known names or between the two ends."""
    ends = find_ends(table)
    if ends is not None:
        return ends.relation is not None
    relation = _usual_column(table, "relation")
    if relation is None or relation not in table.columns[1:2] or len(table.columns) < 3:
        return False
    outer = (table.columns[0], table.columns[2])
    return not any(is_measure(column) or snake(column) in EDGE_WORDS for column in outer)


def _plan_triples(source: Source, tables: Sequence[Table]) -> Plan:
    """Choose the columns of tables of triples."""
    triples = source.settings.triples or TriplesConfig()
    edges, notes = list[Selection](), list[str]()
    for table in tables:
        columns, others = _triple_columns(table, triples)
        selection, own_notes = _select_edges(table, columns, triples, "[triples]", others, all_text=True)
        edges.append(selection)
        if others:
            ids = f"{columns['source']} and {columns['target']} were read as the ids"
            notes.append(f"{table.label}: {ids}, not {listed(others)}")
        notes += own_notes
    types = [] if triples.types is None else [_select_types(source.find(triples.types))]
    typed = [each for each in edges if "source_type" in each.columns]
    prefixed = not (types or triples.type or typed) and all(
        has_prefixed_ids(each.table, [each.columns["source"], each.columns["target"]]) for each in edges
    )
    for each in edges:
        if prefixed:
            notes.append(f"{each.table.label}: the types of nodes were read from their ids, before '::'")
        elif "source_name" in each.columns and each not in typed:
            notes.append(f"{each.table.label}: no columns name the types of nodes, so all have one type")
    delimiters = {_label_delimiter(e.table, e.columns[f"{end}_type"]) for e in typed for end in ("source", "target")}
    labels = next(iter(delimiters - {None}), None)
    notes += [note for each in typed for note in _note_labels(each.table, each.columns["source_type"], labels)]
    notes = [*_note_others(source, tables), *notes, *source.notes]
    shared = SharedIds(triples.type or "entity", prefixed, labels)
    return _shared_plan(types, edges, replace(source.options, notes=notes), shared)


def _triple_columns(table: Table, triples: TriplesConfig) -> tuple[dict[str, str], list[str]]:
    """Return the columns of triples with the types and names of their ends, and the id columns that are not read."""
    ends = find_ends(table)
    by_header = triples.columns is None and ends is not None and ends.relation is not None
    if ends is not None and by_header:
        _refuse_rivals(table, ends)
        names = [ends.ids[0], ends.relation or "", ends.ids[1]]
    else:
        names = [table.column(column, "triples") for column in triples.columns or table.columns]
    if len(names) != 3:
        count = len(table.columns)
        raise UnrecognisedError(
            f"{table.title} has {count} column{'s' * (count != 1)} ({listed(table.columns)}), "
            f"but triples have three: head, relation, tail; name them under [triples] in a graph.toml (‹config›)",
            [propose_triples(table)],
        )
    columns = dict(zip(("source", "relation", "target"), names, strict=True))
    if ends is not None and by_header:
        for what, both in (("type", ends.types), ("name", ends.names)):
            columns |= {} if both is None else {f"source_{what}": both[0], f"target_{what}": both[1]}
    for role, word in (("source", "head"), ("target", "tail")):
        for what in ("type", "name"):
            named = getattr(triples, f"{word}_{what}")
            columns |= {} if named is None else {f"{role}_{what}": table.column(named, f"{what}s")}
    for what in ("type", "name"):
        if (f"source_{what}" in columns) != (f"target_{what}" in columns):
            raise SourceError(
                f"{table.title}: [triples] in graph.toml names the {what}s of one end only; name both head_{what} and "
                f"tail_{what}, or neither"
            )
    types = [columns[role] for role in ("source_type", "target_type") if role in columns]
    if types and not few_types(table, types):
        raise UnrecognisedError(
            f"{table.title} has too many different values in {listed(types)} to be types of nodes; name the columns "
            f"under [triples] in a graph.toml (‹config›)",
            [propose_triples(table)],
        )
    others = [column for both in ends.other_ids for column in both] if ends is not None and by_header else []
    return columns, others


def _refuse_rivals(table: Table, ends: Ends) -> None:
    """Raise if a header names the type of one end only, or several pairs of ends."""
    if ends.half_typed is not None:
        raise UnrecognisedError(
            f"{table.title} has the types of one end in {ends.half_typed}, but none for the other (it has "
            f'{listed(table.columns)}); add them, or set type = "entity" and columns under [triples] in a graph.toml '
            f"(‹config›) to read all nodes as one type",
            [propose_triples(table)],
        )
    if ends.rivals:
        raise UnrecognisedError(
            f"the edges of {table.title} could lead from {ends.ids[0]} to {ends.ids[1]}, or between "
            f"{' and '.join(ends.rivals[:2])}; say which in a graph.toml (‹config›)",
            [propose_triples(table)],
        )


def _select_types(table: Table) -> Selection:
    """Choose the columns of a table of types: entity, type and, if there is a third column, the name."""
    if len(table.columns) < 2:
        raise SourceError(f"{table.title} has one column; a table of types has two: entity, type")
    return Selection(table, dict(zip(("id", "type", "name"), table.columns, strict=False)))
