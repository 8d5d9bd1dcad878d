"""What no rule recognises: the refusal, and the graph.toml that would read it, tried before it is shown."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from neupath.errors import GraphError, NeuPathError, SourceError, listed
from neupath.graph.notations import quoted
from neupath.io.assemble import read_tables
from neupath.io.columns import (
    end_columns,
    end_entities,
    find_ends,
    find_split,
    holds_fractions,
    holds_measures,
    is_unique,
    likely_weight,
    may_end_edges,
    names_entities,
    table_words,
    type_in_column,
)
from neupath.io.graph_toml import Config, EdgesConfig, NodesConfig, TriplesConfig, first_row, toml_sections
from neupath.io.ids import empty_end, empty_id, first_repeat, missing_ids, repeated_id, to_weights
from neupath.io.pivots import LIKE_MATRIX, looks_like_matrix
from neupath.io.plan import NodePlan, Plan, Selection
from neupath.io.sources import Source
from neupath.io.table_files import open_table, stem
from neupath.io.tables import Table, TableFile
from neupath.io.words import NAMES, OTHER_IDS, entity, is_id, is_key, is_plural, names_no_end, singular, snake

_TRIED_BYTES, _TRIED_ROWS = 1 << 25, 1 << 17
"""Tables up to this size are read whole to try a graph.toml; of larger ones, so many first rows are."""
_MOST_TRIED = 12


class UnrecognisedError(SourceError):
    """A refusal, and graph.tomls that may read the tables, the likeliest first; none is tried yet."""

    def __init__(self, message: str, proposals: Iterable[Config], lead: str = "") -> None:
        super().__init__(message)
        self.proposals, self.lead = list(proposals), lead


# ---- Trying a graph.toml -------------------------------------------------------------------------
def with_proposal(error: UnrecognisedError, source: Source, recognise: Callable[[Source], Plan]) -> SourceError:
    """Return a refusal with the first graph.toml that reads the tables, or with the reason why none does."""
    message, settings, reasons = str(error.args[0]), source.settings, []
    distinct = [each for n, each in enumerate(error.proposals) if each not in error.proposals[:n]]
    for proposal in distinct[:_MOST_TRIED]:
        merged = replace(
            settings,
            header=settings.header if proposal.header is None else proposal.header,
            nodes={**settings.nodes, **proposal.nodes},
            edges=[*settings.edges, *proposal.edges],
            triples=proposal.triples or settings.triples,
        )
        try:
            check_readable(recognise(_with_settings(source, merged)))
        except NeuPathError as reason:
            reasons.append(str(reason.args[0]).partition(", such as:\n")[0])
            continue
        return SourceError(f"{message}{error.lead}, such as:\n{_text_of(proposal, source)}")
    if not reasons:
        return SourceError(message)
    tried = f"{len(reasons)}, none of which reads the data" if reasons[1:] else "one, which does not read the data"
    return SourceError(f"{message}; neupath tried {tried}: {reasons[0]}")


def _with_settings(source: Source, config: Config) -> Source:
    """Return a source with a graph.toml, which may say that its tables have no header."""
    files = [table for table in source.tables if isinstance(table, TableFile)]
    again = {table.label: open_table(table.path, config.dialect) for table in files}
    tables = list(again.values()) or source.tables
    return replace(source, settings=config, tables=tables, find=lambda name: again.get(name) or source.find(name))


def _text_of(proposal: Config, source: Source) -> str:
    """Return the text of a graph.toml, with a comment on the likely weight of a lone relation."""
    lines = toml_sections(proposal)
    if len(proposal.edges) == 1 and not proposal.nodes:
        table, ends = source.find(proposal.edges[0].file), proposal.edges[0].columns or ()
        weight = likely_weight(table, [column for column in table.columns if column not in ends])
        lines += [f"# weight = {quoted(weight)}"] if weight else []
    return "\n".join(lines)


def check_readable(plan: Plan) -> None:
    """Raise if tables cannot be read as a graph; of large files, only ids and weights of the first rows are checked."""
    parts = {part for table in plan.tables for part in table.parts}
    if sum(part.stat().st_size * (8 if part.suffix == ".gz" else 1) for part in parts) <= _TRIED_BYTES:
        read_tables(plan)
        return
    for selection in plan.selections:
        _check_first_rows(replace(selection, attributes=()))


def _check_first_rows(selection: Selection) -> None:
    """Raise if an id among the first rows is empty, or that of a node repeated, or a weight is no number."""
    columns = _first_rows(selection)
    for role in ("id", "source", "target"):
        if role in columns and len(missing := missing_ids(columns[role])):
            place = selection.place(int(missing[0]))
            raise empty_id(place) if role == "id" else empty_end(place, role)
    if "id" in columns and not selection.spaces and (error := _find_repeated(selection, columns["id"])) is not None:
        raise error
    to_weights(columns.get("weight"), selection.place)


def _first_rows(selection: Selection) -> dict[str, pa.Array]:
    batches, count = [], 0
    for rows in selection.read_batches({}):
        batches.append(pa.table(dict(rows.columns)))
        count += len(rows)
        if count >= _TRIED_ROWS:
            break
    whole = pa.concat_tables(batches, promote_options="permissive")
    return {role: whole[role].combine_chunks() for role in whole.column_names}


def _find_repeated(nodes: Selection, ids: pa.Array) -> GraphError | None:
    """Return the error of the first row whose id another row above has, or None."""
    row = first_repeat(ids)
    return None if row is None else repeated_id(nodes.place(row), ids[row].as_py())


# ---- Refusals ------------------------------------------------------------------------------------
def refuse_repeated_ids(nodes: Sequence[NodePlan]) -> None:
    """Raise if the first rows of a table of nodes repeat an id, as where each row is a line of an order."""
    for node in nodes:
        selection, table = replace(node.selection, attributes=()), node.selection.table
        if isinstance(table, TableFile) and not is_unique(table, selection.columns["id"]):
            ids = _first_rows(selection)["id"]
            error = _find_repeated(selection, ids)
            if error is not None and not len(missing_ids(ids)):
                raise UnrecognisedError(str(error.args[0]), _propose_for_nodes(table, node))


def no_relation(source: Source, nodes: Sequence[NodePlan], notes: Sequence[str]) -> SourceError:
    """Return the error of tables among which no relation is recognised, with a graph.toml that reads the first."""
    labels = [node.selection.table.label for node in nodes]
    reason = listed(notes, 3) or f"{listed(labels)} hold{'s' * (len(nodes) == 1)} nodes"
    others = [table for table in source.tables if not table.is_folder] or list(source.tables)
    joining = [table for table in others if len(_linked_columns(table, others)) > 1]
    tables = [*joining, *([node.selection.table for node in nodes] or others)]
    seen = f" {_describe(tables[0])};" if tables else ""
    if not source.in_files:
        hint = _mapping_hint(tables[0]) if tables else ""
        return SourceError(
            f"no relation was recognised in {source.where}:{seen} {reason}; give "
            f"edges under the two types that they join, such as {hint}"
        )
    one = bool(tables) and source.where == tables[0].title
    is_database = bool(tables) and not isinstance(tables[0], TableFile)
    thing = "table" if is_database else "file"
    what = f"{source.where} is not recognised" if one else f"no {thing} of {source.where} is a relation"
    if tables and looks_like_matrix(tables[0]):
        return SourceError(f"{what}:{seen} it {LIKE_MATRIX}")
    for table in tables:
        cells = [cell for cell in first_row(table) if cell.strip()]
        if not table.has_header and len(cells) == 1 and len(table.columns) > 2:
            return SourceError(
                f"{what}: the first row of {table.label} has one cell, {cells[0][:40]!r}, as a title has; remove the "
                f"rows above the header"
            )
    why = "" if one and not nodes else f" {reason};"
    first = "give a file such as movie_actor.csv whose first two columns are ids"
    first = "declare its foreign keys" if is_database else first
    possible = (
        "it could hold the edges of a relation (two columns of ids), triples (head, relation, tail) or nodes; say which"
        if one
        else f"{first}, or name two columns of any {thing}"
    )
    proposals = [each for table in joining for each in _propose_rows(table, _linked_columns(table, others))]
    proposals += [each for table in tables for each in _propose(table, nodes)]
    message = f"{what}:{seen}{why} {possible} in graph.toml (‹config›)"
    return UnrecognisedError(message, proposals, "" if is_database else ", which `neupath init` writes")


def _linked_columns(table: Table, tables: Sequence[Table]) -> list[str]:
    """Return the columns that are called like the first column of another table, as customer_id of orders may be."""
    first = {snake(other.columns[0]) for other in tables if other is not table and other.has_header and other.columns}
    return [column for column in table.columns if table.has_header and snake(column) in first]


def _describe(table: Table) -> str:
    """Return the columns and the first row of a table in words."""
    row = first_row(table)
    first = f", first row: {listed((cell[:40] for cell in row), 8)}" if any(row) else ", no rows"
    header = "" if table.has_header else "no header, "
    count = f"{len(table.columns)} column{'s' * (len(table.columns) != 1)}"
    return f"{table.label} has {count} ({header}{listed(table.columns, 8)}{first})"


def _mapping_hint(table: Table) -> str:
    """Return the call of `load` that reads two columns of a data frame as edges."""
    columns = end_columns(table) or (*table.columns, "item", "item")[:2]
    source, target = (entity(column) or word for column, word in zip(columns, ("user", "item"), strict=True))
    if columns[0].lower() in NAMES:  # names of nodes of the type that the table is given under
        source = table.label if table.label.isidentifier() else "item"
    return f'load({{("{source}", "{target}"): table[["{columns[0]}", "{columns[1]}"]]}})'


# ---- What may read a table -----------------------------------------------------------------------
def _propose(table: Table, nodes: Sequence[NodePlan]) -> Iterator[Config]:
    """Yield graph.tomls that may read a table as one relation or several, the likeliest first."""
    own = next((node for node in nodes if node.selection.table is table), None)
    if own is not None:
        yield from _propose_for_nodes(table, own)
    elif len(table.columns) > 1:
        columns = end_columns(table) if table.has_header else _likely_ends(table)
        if columns is not None:
            yield _propose_relations(table, columns)
        entities = [column for column in table.columns if may_end_edges(table, column)]
        yield from _propose_rows(table, entities if len(entities) > 1 else table.columns[:2])


def _propose_relations(table: Table, columns: tuple[str, str]) -> Config:
    """Return a graph.toml that joins all keys of a table, or all that its first column has, or else two columns."""
    (source, target), (first, *others) = _end_types(table, columns), table.columns
    described = [column for column in others if names_entities(table, column)]
    keys = [column for column in table.columns if table.has_header and is_key(column) and may_end_edges(table, column)]
    if len(keys) > 2 and columns[0] == keys[0]:
        return _join(table, source, keys[0], keys[1:])
    if table.has_header and len(described) > 1 and columns[0] == first and is_unique(table, first):
        return _join(table, singular(stem(Path(table.label))) if first.lower() in NAMES else source, first, described)
    return _config(table, [_edge(table, source, columns, target)])


def _propose_for_nodes(table: Table, node: NodePlan) -> Iterator[Config]:
    """Yield graph.tomls that may read a table of nodes, whose ids may be repeated."""
    node_type, id_ = node.node_type, node.selection.columns["id"]
    others = [column for column in table.columns if column not in node.selection.columns.values()]
    entities = [column for column in others if may_end_edges(table, column)]
    if is_unique(table, id_):
        texts = [column for column in others if not table.has_numbers(column)] or others
        if texts:
            described = min(texts, key=lambda column: not names_entities(table, column))
            yield _join(table, node_type, id_, [described], NodesConfig(table.label))
        return
    for column in others:
        if (is_key(column) or snake(column) in OTHER_IDS) and all(table.sample[column]) and is_unique(table, column):
            ends = [each for each in entities if each != column and not is_id(each)]
            yield _join(table, node_type, column, ends, NodesConfig(table.label, column))
    yield from _propose_rows(table, entities)
    if entities:
        yield _join(table, node_type, id_, entities)


def _propose_rows(table: Table, entities: Sequence[str]) -> Iterator[Config]:
    """Yield a graph.toml for each column without empty cells: its values are joined to the other entities of a row."""
    for first in entities:
        others = [column for column in entities if column != first]
        if others and all(table.sample[first]):
            yield _join(table, _end_types(table, (first, others[0]))[0], first, others)


def propose_triples(table: Table) -> Config:
    """Return a graph.toml that reads three columns of a table as triples."""
    ends = find_ends(table)
    columns = list(table.columns[:3])
    if ends is not None:
        others = [column for column in table.columns if column not in ends.ids]
        columns = [ends.ids[0], ends.relation or (others or table.columns)[0], ends.ids[1]]
    return replace(_config(table, []), triples=TriplesConfig([table.label], columns, type="entity"))


def _join(table: Table, source: str, first: str, others: Sequence[str], nodes: NodesConfig | None = None) -> Config:
    """Return a graph.toml that reads each of some columns as a relation from the first."""
    edges = [_edge(table, source, (first, column), type_in_column(table, column)) for column in others]
    return replace(_config(table, edges), nodes={} if nodes is None else {source: nodes})


def _config(table: Table, edges: list[EdgesConfig]) -> Config:
    """Return a graph.toml that also says if there is no header; with it, comments above the table would be rows."""
    return Config(header=None if table.has_header or table.comments else False, edges=edges)


def _edge(table: Table, source: str, columns: tuple[str, str], target: str) -> EdgesConfig:
    """Return the entry that reads two columns as a relation, with lists and empty cells if there are."""
    name = f"{source}_{target}" if source != target else "edge"
    split = find_split(table, columns[1]) if type_in_column(table, columns[1]) == target else None
    optional = not all(table.sample[columns[1]])
    return EdgesConfig(name, table.label, source, target, list(columns), split=split, optional=optional)


def _likely_ends(table: Table) -> tuple[str, str]:
    """Return the first two columns without fractions, dates, and other names of the first; the table has no header."""

    def holds_dates(column: str) -> bool:
        return holds_measures(table, column) and not table.has_numbers(column)

    ids = [column for column in table.columns if not (holds_fractions(table, column) or holds_dates(column))]
    first, *others = ids or table.columns
    for column in others:
        kinds = [len(set(cells)) for cells in (table.sample[first], table.sample[column])]
        pairs = set(zip(table.sample[first], table.sample[column], strict=True))
        if not len(table.sample[first]) > len(pairs) == kinds[0] == kinds[1]:
            return first, column
    return table.columns[0], table.columns[1]


def _end_types(table: Table, columns: tuple[str, str]) -> tuple[str, str]:
    """Return the types that two columns hold, as they or the name of their table say: user and movie of user_movie."""
    source, target = end_entities(table, columns) if table.has_header else (None, None)
    if source is None and target is None:
        words = table_words(table)
        plural = [word for word in words if is_plural(word)]
        first, *_, last = plural if len(plural) == 2 else words if len(words) > 1 else ("graph", "graph")
        if not (names_no_end(first) or names_no_end(last)):
            source, target = singular(first), singular(last)
    return source or "node", target or "node"
