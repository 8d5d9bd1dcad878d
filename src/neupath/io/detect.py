"""Detect what tables hold: an ordered list of rules gives a `Plan`, or a refusal with a graph.toml that reads them.

Tables in files and in memory follow the same rules. graph.toml, the names of tables and columns, and the first rows of
a table decide; the tables are not read yet.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from filecmp import cmp
from functools import partial
from pathlib import Path

from neupath.errors import SourceError, listed
from neupath.graph.hin import Duplicates
from neupath.graph.metapath import Relation
from neupath.graph.notations import are_perhaps_thousands, toml_key
from neupath.io.columns import (
    ChosenColumns,
    choose_columns,
    declared_in,
    end_columns,
    find_ends,
    find_split,
    holds_categories,
    holds_fractions,
    holds_marks,
    holds_measures,
    is_sampled_whole,
    is_unique,
    may_end_edges,
    names_entities,
    node_kinds,
    note_weight,
    type_in_column,
    weight_column,
)
from neupath.io.graph_toml import Config, NodesConfig
from neupath.io.knowledge_graphs import plan_neo4j, plan_pair, plan_triples
from neupath.io.pivots import refuse_pivots
from neupath.io.plan import LISTS, NULLS, EdgePlan, NodePlan, Plan, Selection, existing
from neupath.io.proposals import (
    UnrecognisedError,
    no_relation,
    refuse_repeated_ids,
    with_proposal,
)
from neupath.io.sources import Source, read_settings, source_of_files, source_of_folder
from neupath.io.tables import Table, TableFile
from neupath.io.type_names import TypeNames, edge_plan, relation_of, share_ids
from neupath.io.words import (
    EDGE_WORDS,
    KINDS,
    NAMES,
    are_alike,
    describes,
    entity,
    is_id,
    is_identifier,
    is_key,
    is_measure,
    is_own_role,
    singular,
    snake,
    usual_name,
)


# ---- The rules -----------------------------------------------------------------------------------
@dataclass(frozen=True)
class Rule:
    """A way to read the tables of a source; the first that gives a plan reads them."""

    name: str
    looks_at: str
    plan: Callable[[Source], Plan | str]
    """Return the plan, or how near the rule came, which is empty if it is not about such tables."""
    example: str
    """A source of tests/io/corpus that it reads or refuses."""


def recognise(source: Source) -> Plan:
    """Return the plan of the first rule that gives one; raise with a graph.toml that would read the tables."""
    try:
        return _recognise(source)
    except UnrecognisedError as error:
        raise with_proposal(error, source, _recognise) from None


def recognise_folder(folder: Path, config: str | Path | None = None, duplicates: Duplicates | None = None) -> Plan:
    """Recognise the tables of a folder, with its own graph.toml or another one."""
    return recognise(source_of_folder(folder, read_settings(folder, config), duplicates))


def recognise_files(
    paths: Sequence[Path],
    folder: Path,
    settings: Config,
    duplicates: Duplicates | None,
    where: Path | None = None,
) -> Plan:
    """Recognise some table files as one graph; the parameters are those of `source_of_files`."""
    return recognise(source_of_files(paths, folder, settings, duplicates, where))


def _recognise(source: Source) -> Plan:
    plan = next(plan for rule in RULES if isinstance(plan := rule.plan(source), Plan))
    if plan.shared is None:
        plan = refuse_pivots(plan, source)
    tables = list({id(table): table for table in plan.tables}.values())
    notes = [*plan.options.notes, *_note_partitions(tables), *_note_content(tables, plan.edges)]
    return _with_settings(replace(plan, options=replace(plan.options, notes=notes)), source.settings)


def explain_rules(source: Source) -> list[tuple[str, str, str]]:
    """Return the rules that are tried in turn: the name, what each looks at, and what comes of it."""
    outcomes = []
    for rule in RULES:
        try:
            plan = rule.plan(source)
        except SourceError as error:
            plan = f"refuses them: {str(error.args[0]).partition(';')[0]}"
        outcome = "reads them" if isinstance(plan, Plan) else plan or "is not about such tables"
        outcomes.append((rule.name, rule.looks_at, outcome))
        if outcome.startswith(("reads", "refuses")):
            break
    return outcomes


_IN_OWN, _IN_WRITTEN = "in graph.toml", "in graph.toml, which `neupath init` writes"


def _with_settings(plan: Plan, settings: Config) -> Plan:
    """Let all selections read ids as graph.toml says, and say where it stands if it names no tables yet."""

    def clean(selection: Selection) -> Selection:
        place = selection.declared_in
        if not settings.names_tables and place.endswith(_IN_OWN):
            place = place.removesuffix(_IN_OWN) + _IN_WRITTEN
        missing, is_folded = plan.options.missing_ids or (), bool(plan.options.fold_ids)
        return replace(selection, missing_ids=missing, fold_ids=is_folded, declared_in=place)

    nodes = [replace(node, selection=clean(node.selection)) for node in plan.nodes]
    edges = [replace(edge, selection=clean(edge.selection)) for edge in plan.edges]
    return replace(plan, nodes=nodes, edges=edges)


class SortedTables:
    """The tables of a source: those of nodes, those of edges, and notes on the others."""

    def __init__(self, tables: Sequence[Table], known: Iterable[str] = ()) -> None:
        self.types = types = TypeNames(tables, known)
        self.nodes: list[NodePlan] = []
        self.edges: list[EdgePlan] = []
        self.notes: list[str] = []
        for table in tables:
            own = types.of_node_table(table) or types.of_described_nodes(table)
            relation = relation_of(table, types) if own is None else None
            if own is None and relation is None:
                own = types.of_described_nodes(table, is_relation=False)
            if own is not None:
                self.nodes.append(_node_plan(table, NodesConfig(table.label, own[1]), own[0]))
            elif relation is not None:
                self.edges.append(relation)
            else:
                self.notes.append(
                    f"{table.label} was left out: neither its name nor its first columns "
                    f"({', '.join(table.columns[:2])}) name node types; name them in graph.toml"
                )


def _node_plan(table: Table, entry: NodesConfig, node_type: str) -> NodePlan:
    """Choose the columns of a node table: by default the first for the id and one called name for the name."""
    id_ = table.column(entry.id, "id") if entry.id else table.columns[0]
    others = [column for column in table.columns if column != id_]
    texts = [column for column in others if not (any(table.sample[column]) and table.has_numbers(column))]
    name = usual_name(texts, node_type)
    if entry.name is not None:
        name = table.column(entry.name, "name") if entry.name else None
    elif name is None and not table.has_header and texts[:1] == others[:1]:
        name = next(iter(others), None)
    attributes = [column for column in others if column != name]
    if entry.attributes is not None:
        attributes = [table.column(column, "attributes") for column in entry.attributes]
    own = existing(id=id_, name=name)
    kinds, place = node_kinds(table, entry.attribute_types, own), declared_in(table, f"[nodes.{toml_key(node_type)}]")
    return NodePlan(node_type, Selection(table, own, attributes, kinds=kinds, declared_in=place))


# ---- Columns that hold further edges -------------------------------------------------------------
def _relation_in_column(
    node: NodePlan, column: str, types: TypeNames, tables: Mapping[str, Table]
) -> EdgePlan | str | None:
    """Return the relation in a column of a node table, or why a likely column holds none, or None for any other."""
    table, split = node.selection.table, find_split(node.selection.table, column)
    word = singular(entity(column) or column) if split else entity(column) or column
    target = node.node_type if is_own_role(word) else types.known(word)
    if is_id(column) or re.search(r"(?:_ids|Ids|IDs)$", column):
        reason = _why_no_key(node, column, word, is_new=target is None and split is None)
        if reason is not None:
            return reason
    elif split is None:
        other = tables.get(target or "")
        if other is None or other is table or not are_alike(word, target or "") or not _leads_to(table, column, other):
            return None
    elif not any(table.sample[column]):
        return None
    target = target or word
    name = f"{node.node_type}_{target}" if are_alike(word, target) and target != node.node_type else word
    ends = (node.selection.columns["id"], column)
    return edge_plan(table, (node.node_type, target), name, ends, split=split, optional=True)


def _why_no_key(node: NodePlan, column: str, word: str, is_new: bool) -> str | None:
    """Return why an id column of a node table is no foreign key, or None if it is; `is_new` if its type is unknown."""
    table = node.selection.table
    if is_identifier(word):
        return "it names identifiers of another system"
    if are_alike(word, node.node_type):
        return "it is another id of the same nodes"
    if not any(table.sample[column]):
        return "it is empty in the first rows"
    if is_new and is_unique(table, column):
        return "its values are all different, as those of an identifier are"
    return None


def _leads_to(table: Table, column: str, other: Table) -> bool:
    """Whether the first values of a column are ids of another table that is small enough to know all of its ids."""
    ids = set(other.sample[other.columns[0]])
    cells = {cell for cell in table.sample[column] if cell}
    return bool(cells) and is_sampled_whole(other) and cells <= ids


def _relations_in_columns(
    nodes: Sequence[NodePlan], open_nodes: Sequence[NodePlan], edges: Sequence[EdgePlan], types: TypeNames
) -> tuple[list[NodePlan], list[EdgePlan], list[str]]:
    """Find the relations in columns of node tables, except where graph.toml chooses the columns.

    Return the node tables without these columns, the relations, and notes on likely columns that stay attributes.
    """
    tables = {node.node_type: node.selection.table for node in nodes}
    taken = {(edge.selection.table, column) for edge in edges for column in edge.selection.columns.values()}
    joined = {frozenset((edge.relation.source, edge.relation.target)) for edge in edges}
    left, held, notes = [], [], []
    for node in nodes:
        table, kept = node.selection.table, []
        for column in node.selection.attributes:
            is_open = node in open_nodes and table.has_header and (table, column) not in taken
            found = _relation_in_column(node, column, types, tables) if is_open else None
            if isinstance(found, EdgePlan) and found.selection.split is not None:
                relation = found.relation
                if frozenset((relation.source, relation.target)) in joined:
                    found = f"another table joins {relation.source} and {relation.target}"
            if isinstance(found, EdgePlan):
                held.append(found)
                continue
            kept.append(column)
            if found is not None:
                notes.append(f"{table.label}: {column} was read as an attribute, not as a relation: {found}")
        left.append(replace(node, selection=replace(node.selection, attributes=kept)))
    return left, held, notes


def _other_keys(
    edges: Sequence[EdgePlan], nodes: Sequence[NodePlan], types: TypeNames
) -> tuple[list[EdgePlan], list[str]]:
    """Return the relations to the other foreign keys of a table of edges, as of order_id, customer_id and product_id.

    A column is such a key if it is called an id, its type has a table of nodes, and its first values are in that
    table. The second list notes the columns called ids that are no keys.
    """
    of_type = {node.node_type: node.selection for node in nodes}
    found, notes = [], []
    for edge in edges:
        table, relation = edge.selection.table, edge.relation
        columns = table.columns if table.has_header and edge.selection.split is None else []
        for column in filter(is_id, columns):
            word, kind = entity(column), types.known(entity(column) or "")
            if word is None or column in edge.selection.columns.values() or kind in (relation.source, relation.target):
                continue
            if kind is None or kind not in of_type:
                if may_end_edges(table, column) and not is_unique(table, column):
                    notes.append(
                        f"{table.label}: {column} was read as an attribute of {relation.name}, as no table holds its "
                        f"ids; another [[edges]] in graph.toml, which `neupath init` writes, can join it"
                    )
                continue
            others = of_type[kind].table
            ids = set(others.sample[of_type[kind].columns["id"]])
            outside = next((cell for cell in table.sample[column] if cell and cell not in ids), None)
            if outside is not None and is_sampled_whole(others):
                reason = f"{outside!r} is no id in {others.label}"
                notes.append(f"{table.label}: {column} was read as an attribute, not as a relation: {reason}")
                continue
            name = f"{relation.source}_{kind}" if are_alike(word, kind) else word
            ends = (edge.selection.columns["source"], column)
            found.append(edge_plan(table, (relation.source, kind), name, ends, optional=True))
    return found, notes


def _note_relation(edge: EdgePlan) -> str:
    selection = edge.selection
    column, split = selection.columns["target"], selection.split
    how = "" if split is None else ", its cells split as lists" if split == LISTS else f", its cells split at {split}"
    nulls = [null for null in NULLS if selection.optional and null in selection.table.sample[column]]
    how += f", where {' and '.join(nulls)} is no edge" if nulls else ""
    arrow = f"{edge.relation.source} -{edge.relation.name}-> {edge.relation.target}"
    return f"{selection.table.label}: {column} was read as the relation {arrow}{how}"


# ---- One table for each relation -----------------------------------------------------------------
def _relations(source: Source) -> Plan | str:
    """Choose the columns of one table for each relation, and of the node tables beside them."""
    half = plan_neo4j(source)  # no rule before this one reads the tables
    if isinstance(half, str) and half:
        raise SourceError(f"{half}; add them, or name the columns in graph.toml (‹config›)")
    settings = source.settings
    configured = [source.find(name) for name in settings.files]
    explicit = [*settings.nodes, *(end for entry in settings.edges for end in (entry.source, entry.target))]
    tables = SortedTables(_not_named(source.tables, configured), explicit)
    named = [_node_plan(source.find(entry.file), entry, kind) for kind, entry in settings.nodes.items()]
    open_nodes = [*tables.nodes, *(node for node in named if settings.nodes[node.node_type].attributes is None)]
    _refuse_copies(tables.edges)
    keys, key_notes = _other_keys(tables.edges, [*tables.nodes, *named], tables.types)
    own = _configured(source)
    nodes, held, held_notes = _relations_in_columns(
        [*tables.nodes, *named], open_nodes, [*tables.edges, *keys, *own], tables.types
    )
    edges = [*tables.edges, *keys, *own, *held]
    if not edges and not nodes and len(source.tables) == 1 and not settings.names_tables:
        return "; ".join(tables.notes)
    if not edges:
        refuse_repeated_ids(nodes)
        _note_partitions(source.tables)  # raises if ids are in the names of folders
        raise no_relation(source, nodes, [*tables.notes, *held_notes, *key_notes, *source.options.notes])
    _refuse_two_node_tables(nodes)
    refuse_repeated_ids(nodes)
    by_rule = [edge for edge in tables.edges if edge.selection.split is not None]
    notes = [*tables.notes, *map(_note_relation, (*by_rule, *keys, *held)), *held_notes, *key_notes]
    attributes = {id(edge): entry.attributes for edge, entry in zip(own, settings.edges, strict=True)}
    return _plan_relations(
        source, nodes, edges, notes, {key: names for key, names in attributes.items() if names is not None}
    )


def _not_named(tables: Sequence[Table], configured: Sequence[Table]) -> list[Table]:
    """Return the tables that graph.toml does not name, nor files in them."""
    paths = [table.path.resolve() for table in configured if isinstance(table, TableFile)]
    named = {place for path in paths for place in (path, *path.parents)}
    return [
        table
        for table in tables
        if (table.path.resolve() not in named if isinstance(table, TableFile) else table not in configured)
    ]


def _configured(source: Source) -> list[EdgePlan]:
    """Return the relations that graph.toml describes."""
    seen: dict[tuple[object, ...], str] = {}
    edges = []
    for entry in source.settings.edges:
        table = source.find(entry.file)
        names = entry.columns or _columns_of_types(table, entry.source, entry.target)
        if len(names) != 2:
            raise SourceError(
                f"relation {entry.name!r} in graph.toml needs two id columns, but has {listed(names) or 'none'}"
            )
        first, second = (table.column(column, "edges") for column in names)
        key = (table.path.resolve() if isinstance(table, TableFile) else table, first, second)
        if key in seen:
            raise SourceError(
                f"relations {seen[key]!r} and {entry.name!r} in graph.toml both use the columns {first}, {second} of "
                f"{entry.file}; leave one out, or its edges count twice"
            )
        seen[key] = entry.name
        weight = table.column(entry.weight, "weight") if entry.weight else weight_column(table, names)
        roles = existing(source=first, target=second, weight=weight)
        split = entry.split or (LISTS if table.is_list(second) else None)
        relation = Relation(entry.source, entry.name, entry.target, directed=not entry.undirected)
        selection = Selection(table, roles, split=split, optional=entry.optional, kinds=entry.attribute_types)
        edges.append(EdgePlan(relation, selection))
    return edges


def _columns_of_types(table: Table, source: str, target: str) -> list[str]:
    """Return the columns that are called like the two types of a relation, or else the first two."""
    first, second = (
        [column for column in table.columns if (word := entity(column)) and are_alike(word, end)]
        for end in (source, target)
    )
    if len(first) == len(second) == 1 and first != second:
        return [*first, *second]
    return list(table.columns[:2])


def _plan_relations(
    source: Source,
    nodes: Sequence[NodePlan],
    edges: Sequence[EdgePlan],
    notes: Sequence[str],
    attributes: Mapping[int, Sequence[str]] | None = None,
) -> Plan:
    """Return the plan of relations: choose the attributes of their edges, and note what is not read.

    `attributes` maps the `id` of an edge plan to attributes that are chosen already. The edges of other plans have all
    columns beside the ends as attributes, unless the table holds nodes, which these columns then describe.
    """
    options, named = source.options, attributes or {}
    options.check_names([edge.relation.name for edge in edges])
    taken: dict[Table, set[str]] = {}
    for edge in edges:
        taken.setdefault(edge.selection.table, set()).update(edge.selection.columns.values())
    node_tables = {node.selection.table for node in nodes}
    finished, unread = [], list[str]()
    for edge in edges:
        selection, table, name = edge.selection, edge.selection.table, edge.relation.name
        if options.take and name not in options.take:
            continue
        chosen = ChosenColumns()
        if id(edge) in named or table not in node_tables:
            weight = selection.columns.get("weight")
            chosen = choose_columns(table, taken[table], weight, named.get(id(edge)), selection.kinds)
        unread += [note for note in chosen.notes(table.label) if note not in unread]
        relation = replace(edge.relation, directed=edge.relation.directed and name not in options.undirected)
        place = declared_in(table, "[[edges]]")
        read = replace(selection, attributes=chosen.columns, kinds=chosen.kinds, declared_in=place)
        finished.append(EdgePlan(relation, read))
    settings = source.settings
    settled = {source.find(each.file) for each in settings.nodes.values() if each.attributes is not None}
    settled |= {source.find(each.file) for each in settings.edges if each.attributes is not None}
    notes = [*notes, *_note_lone_nodes(source, nodes, finished), *unread]
    notes += _note_unread(finished, nodes, settled, unread, source.in_files)
    return Plan(nodes, finished, replace(options, notes=[*notes, *options.notes]))


def _note_lone_nodes(source: Source, nodes: Sequence[NodePlan], edges: Sequence[EdgePlan]) -> list[str]:
    joined = {end for edge in edges for end in (edge.relation.source, edge.relation.target)}
    if source.settings.names_tables or source.options.take:
        return []
    return [f"{n.selection.table.label}: no relation leads to its nodes" for n in nodes if n.node_type not in joined]


def _note_unread(
    edges: Sequence[EdgePlan],
    nodes: Sequence[NodePlan],
    settled: Collection[Table],
    noted: Sequence[str],
    in_files: bool,
) -> list[str]:
    """Note the columns of tables of edges that are not read, and the attributes that may rather be the weight."""
    selections = {edge.selection.table: edge.selection for edge in edges if edge.selection.table not in settled}
    read = {
        (each.table, column)
        for each in (*(edge.selection for edge in edges), *(node.selection for node in nodes))
        for column in (*each.columns.values(), *each.attributes)
    }
    weighted = {edge.selection.table for edge in edges if "weight" in edge.selection.columns}
    notes = []
    for table, selection in selections.items():
        others = [column for column in table.columns if column and (table, column) not in read]
        if others and not any(note.startswith(f"{table.label}: ") for note in noted):
            columns = f"the columns {listed(others, 4)} were" if others[1:] else f"the column {others[0]} was"
            notes.append(f"{table.label}: {columns} left out")
        notes += [] if table in weighted else note_weight(selection, "[[edges]]" if in_files else None, in_files)
    return notes


# ---- A lone table --------------------------------------------------------------------------------
def _wide(source: Source) -> Plan | str:
    """Read a lone table whose header names entities, such as movie, actor, director, as relations of the first.

    The first column is read as it is; each other column is a relation if its texts occur again. A row may repeat what
    another row says of the first column, so parallel edges are dropped. Of two columns, both repeat some texts.
    """
    (table,) = source.tables
    first, *others = table.columns
    columns = [column for column in others if names_entities(table, column)]
    is_pair = len(others) == 1
    targets = [type_in_column(table, column) for column in columns]
    if not _has_plain_header(table):
        return ""
    if len({*targets}) < max(len(targets), 1 if is_pair else 2):
        return f"{listed(columns) or 'no column'} beside {first} may name entities, which is too little"
    described = [column for column in others for other in table.columns if describes(column, other)]
    if described:
        return f"{listed(described)} may describe other columns rather than be nodes"
    texts = [column for column in others if not (table.has_numbers(column) or holds_fractions(table, column))]
    if columns != texts or holds_marks(table, columns) or any(share_ids(table, (first, other)) for other in columns):
        return (
            f"{listed(column for column in texts if column not in columns) or first} may be something else than nodes"
        )
    if is_pair and not all(_is_plain_entity(table, column) for column in table.columns):
        return f"{first} or {others[0]} may describe something rather than be nodes"
    kind = entity(first) or first
    edges = [
        edge_plan(table, (kind, target), f"{kind}_{target}", (first, column), split=split, optional=not is_pair)
        for column, target in zip(columns, targets, strict=True)
        for split in (find_split(table, column),)
    ]
    notes = [*map(_note_relation, edges)]
    if not (source.duplicates or source.settings.duplicates):
        source = replace(source, duplicates="drop")
        dropped = f'{table.label}: edges that several rows repeat were read once; duplicates = "count" counts them'
        notes += [] if is_unique(table, first) else [dropped]
    return _plan_relations(source, [], edges, notes, dict.fromkeys(map(id, edges), ()))


def _has_plain_header(table: Table) -> bool:
    """Whether each column is called by one word that may be a type, and the first holds what the others describe."""
    first = table.columns[0]
    plain = all(re.fullmatch(r"[^\W\d]{2,}", column) and snake(column) not in EDGE_WORDS for column in table.columns)
    if not (table.has_header and plain) or any(map(is_key, table.columns)) or find_ends(table) is not None:
        return False
    return not (is_measure(first) or holds_measures(table, first) or first.lower() in (*NAMES, *KINDS))


def _is_plain_entity(table: Table, column: str) -> bool:
    """Whether a column is one of two that name entities, such as customer and product, and repeats some."""
    is_role = is_own_role(column) or is_measure(column) or column.lower() in (*NAMES, *KINDS)
    is_one_text = not holds_measures(table, column) and find_split(table, column) is None
    return not is_role and is_one_text and holds_categories(table, column)


def _edge_list(source: Source) -> Plan | str:
    """Read a table of edges between nodes of one type: columns such as source and target, or two that share ids."""
    (table,) = source.tables
    columns, ends = end_columns(table), find_ends(table)
    if columns is None or (ends is None and (table.has_header or len(table.columns) != 2)):
        return ""
    if ends is not None and (ends.types or ends.half_typed or ends.rivals or ends.relation):
        return ""
    if ends is None and not share_ids(table, columns):
        return ""
    edge = edge_plan(table, ("node", "node"), "edge", columns, weight_column(table, columns))
    return _plan_relations(source, [], [edge], [f"{table.label}: all nodes were read as one type, node"])


def _refuse(source: Source) -> Plan:
    _note_partitions(source.tables)  # raises if ids are in the names of folders
    raise no_relation(source, [], [*SortedTables(source.tables).notes, *source.notes])


def _triples(source: Source) -> Plan | str:
    return plan_triples(source, lambda table: bool(SortedTables([table]).edges))


RULES = (
    Rule("neo4j-admin", "headers such as id:ID, :START_ID and :END_ID", plan_neo4j, "neo4j_admin_files"),
    Rule(
        "nodes and edges", "a table called nodes and one called edges, or with the header of triples", plan_pair, "kgx"
    ),
    Rule("triples", "headers or rows of head, relation and tail", _triples, "drkg"),
    Rule("relations", "the names of tables, and which columns are called ids", _relations, "movielens"),
    Rule("wide table", "a lone table whose header names types, such as movie, actor", _wide, "wide_table"),
    Rule("edge list", "a lone table of two columns that share ids", _edge_list, "snap_edge_list"),
    Rule("nothing", "which graph.toml could read the tables", _refuse, "amazon_ratings"),
)
"""The rules, in the order in which they are tried."""


# ---- Tables that are given twice -----------------------------------------------------------------
def _refuse_two_node_tables(nodes: Sequence[NodePlan]) -> None:
    names: dict[str, str] = {}
    for node in nodes:
        name = node.selection.table.label
        if node.node_type in names:
            raise SourceError(
                f"{names[node.node_type]} and {name} both hold the nodes of type {node.node_type!r}; "
                f'leave one out with ignore = ["{name}"] in graph.toml'
            )
        names[node.node_type] = name


def _refuse_copies(edges: Sequence[EdgePlan]) -> None:
    """Raise if two relations have files of the same content."""
    by_start: dict[object, list[Table]] = {}
    for table in dict.fromkeys(edge.selection.table for edge in edges):
        starts = tuple((part.stat().st_size, _first_bytes(part)) for part in table.parts)
        others = by_start.setdefault(starts, []) if starts and any(table.sample.values()) else []
        for other in others:
            if all(map(partial(cmp, shallow=False), table.parts, other.parts)):
                raise SourceError(
                    f"{other.title} and {table.label} have the same content, so their edges would count twice; "
                    f'leave one out with ignore = ["{table.label}"] in graph.toml'
                )
        others.append(table)


def _first_bytes(path: Path) -> bytes:
    with path.open("rb") as stream:
        return stream.read(1 << 12)


# ---- Notes on what is not read -------------------------------------------------------------------
def _note_partitions(tables: Iterable[Table]) -> list[str]:
    """Note the columns that only the names of partition folders give; raise if such a column holds ids."""
    notes = []
    for table in (table for table in tables if isinstance(table, TableFile)):
        inner = {part for each in table.parts if each != table.path for part in each.relative_to(table.path).parents}
        keys = {folder.name.partition("=")[0] for folder in inner if folder.name}
        missing = sorted(keys.difference(table.columns))
        ids = [key for key in missing if is_id(key)]
        if ids:
            raise SourceError(
                f"{table.title} is partitioned into folders by {ids[0]}, and folder names are not read; "
                f"write {ids[0]} as a column of its files too"
            )
        if missing:
            notes.append(f"{table.label} is partitioned into folders by {listed(missing)}: folder names are not read")
    return notes


def _note_content(tables: Sequence[Table], edges: Sequence[EdgePlan]) -> list[str]:
    """Note lines of comments, what a file has beside its table, and weights such as 1.200, perhaps with thousands."""
    counts = {table.label: table.comments for table in tables if table.comments}
    notes = [f"{name}: skipped {n} comment line{'s' * (n != 1)} above the table" for name, n in counts.items()]
    notes += dict.fromkeys(note for table in tables for note in table.skipped)
    for selection in (edge.selection for edge in edges if "weight" in edge.selection.columns):
        cells = selection.table.sample[selection.columns["weight"]]
        if not selection.table.typed and are_perhaps_thousands(cells):
            sample = next(cell for cell in cells if "." in cell).strip()
            notes.append(
                f"{selection.table.label}: weight {sample} is read as {float(sample):g}; write "
                f"{sample.replace('.', '')} if it means that, or else {float(sample):g}"
            )
    return list(dict.fromkeys(notes))
