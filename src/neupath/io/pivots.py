"""Tables whose header holds nodes, as in a matrix or a pivot table: refused with what writes a row for each edge."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import pairwise

from neupath.errors import SourceError, listed
from neupath.graph.metapath import Relation
from neupath.graph.notations import quoted
from neupath.io.columns import find_ends, holds_marks, is_unique
from neupath.io.plan import EdgePlan, Plan
from neupath.io.sources import Source
from neupath.io.tables import Table
from neupath.io.text_files import is_number
from neupath.io.words import MARKS, are_alike, entity, is_key, is_measure

LIKE_MATRIX = (
    "looks like a matrix, whose columns are nodes; write a row for each edge, as pandas' stack does (see "
    '"A matrix" in docs/your-data.md)'
)


# ---- What a header holds -------------------------------------------------------------------------
def looks_like_matrix(table: Table) -> bool:
    """Whether the header of a table that no rule reads names nodes: those of its first column, or others."""
    first, *others = table.columns
    if len(others) < 2:
        return False
    if not table.has_header:
        return _has_numbers_above(table)
    if 2 * len({*others} & {*table.sample[first]}) >= len(others):
        return True
    cells = [cell.replace(",", ".") for column in others for cell in table.sample[column] if cell]
    if not all(map(is_number, cells)):
        return holds_marks(table, others) and is_unique(table, first)
    if not first.strip():
        return not any(map(is_number, table.sample[first]))
    is_list = is_unique(table, first) and len(table.sample[first]) > 1
    return is_list and not any(is_key(column) or is_measure(column) for column in others)


def _has_numbers_above(table: Table) -> bool:
    """Whether the first row names nodes by numbers, such as u,101,102 above 1,2,0 and product,2019,2020,2021."""
    first, *others = table.columns
    corner, *rows = table.sample[first] or [""]
    above = [table.sample[column][0] for column in others] if rows else []
    if is_number(corner) or not above or not all(map(is_number, above)) or len({*above}) < len(above):
        return False
    steps = {float(after) - float(before) for before, after in pairwise(above)}
    return all(map(is_number, rows)) or (len(above) > 2 and len(steps) == 1 and not any(map(is_number, rows)))


def _header_nodes(edge: EdgePlan, known: Collection[str]) -> list[str]:
    """Return the columns whose names are nodes, if one is read as the target of edges; `known` are ids of nodes."""
    table, relation = edge.selection.table, edge.relation
    source, target = edge.selection.columns["source"], edge.selection.columns["target"]
    word, ends = entity(target), (relation.source, relation.target)
    others = [c for c in table.columns if c not in table.index and (c != source or "" in table.index)]
    if find_ends(table) is not None or is_key(target) or (word and any(are_alike(word, end) for end in ends)):
        return []
    if table.header_holds:
        return others if target in others else []
    if not table.has_header or len(others) < 2 or any(map(is_measure, others)):
        return []
    cells = [cell.replace(",", ".").lower() for column in others for cell in table.sample[column]]
    if not all(is_number(cell) or cell in MARKS for cell in cells if cell):
        return []
    if 2 * len({*others} & {*known, *table.sample[source]}) >= len(others) or all(map(is_number, others)):
        return others
    blank = any(not cell or cell in MARKS or not float(cell) for cell in cells)
    elsewhere = {cell for column in others if column != target for cell in table.sample[column]}
    shared = 2 * sum(cell in elsewhere for cell in table.sample[target]) >= len(table.sample[target]) > 1
    rows = "" in table.index or is_unique(table, source)
    return others if rows and (blank or shared) and len(table.sample[target]) > 1 else []


# ---- Refusals and notes --------------------------------------------------------------------------
def refuse_pivots(plan: Plan, source: Source) -> Plan:
    """Raise if the header of a table of edges holds nodes; note the node tables whose header does."""
    chosen = [(source.find(entry.file), entry.columns) for entry in source.settings.edges if entry.columns]
    ids = {node.node_type: set(node.selection.table.sample[node.selection.columns["id"]]) for node in plan.nodes}
    every = set().union(*ids.values())
    for edge in plan.edges:
        table, columns, relation = edge.selection.table, edge.selection.columns, edge.relation
        ends = (columns["source"], columns["target"])
        if edge.selection.split or edge.selection.optional or any(t is table and set(c) == {*ends} for t, c in chosen):
            continue
        if not table.has_header and looks_like_matrix(table):
            raise SourceError(f"{table.title} {LIKE_MATRIX}")
        held = _header_nodes(edge, every)
        if held:
            raise _pivot_error(table, held, ends, relation)
    notes = list(plan.options.notes)
    described = {source.find(entry.file) for entry in source.settings.nodes.values() if entry.attributes is not None}
    for node in plan.nodes:
        table, names = node.selection.table, node.selection.attributes
        other = next((t for t, own in ids.items() if t != node.node_type and len(own & {*names}) > 1), None)
        if other is not None and table not in described and 2 * len(ids[other] & {*names}) >= len(names):
            notes.append(
                f"{table.label}: {listed(names, 4)} were read as attributes of {node.node_type}, and they are ids of "
                f"{other}; a table with a row for each edge would join them, and attributes = [{quoted(names[0])}, …] "
                f"under [nodes.{node.node_type}] in graph.toml says that they are meant so"
            )
    return replace(plan, options=replace(plan.options, notes=notes))


def _pivot_error(table: Table, held: Sequence[str], ends: tuple[str, str], relation: Relation) -> SourceError:
    """Return the error of a table whose header holds nodes, with the line of pandas that writes a row for each edge."""
    id_columns = [name for name in table.index if name] or [column for column in table.columns if column not in held]
    target = table.header_holds if table.header_holds.isidentifier() else relation.target
    target = target if target not in id_columns else f"{target}_id"
    numbers = all(map(table.has_numbers, held))
    cells = list(dict.fromkeys(cell for column in held for cell in table.sample[column] if cell))
    rows = table.in_python or f"pandas.{'read_parquet' if table.typed else 'read_csv'}({quoted(table.label)})"
    if not id_columns:
        id_columns = [relation.source if relation.source != target else f"{relation.source}_id"]
        rows = f"{rows}.rename_axis({quoted(id_columns[0])}).reset_index()"
    first = quoted(id_columns[0]) if len(id_columns) == 1 else f"[{', '.join(map(quoted, id_columns))}]"
    keep = '.query("weight > 0")' if numbers else ".dropna()"
    weight = "weight" if numbers else "cell"
    line = f"{rows}.melt({first}, var_name={quoted(target)}, value_name={quoted(weight)}){keep}"
    used = f'load({{("{relation.source}", "{relation.target}"): {line}}})'
    if not table.in_python:
        out = quoted(f"{relation.source}_{relation.target}_edges.csv")
        used = (
            f"{line}.to_csv({out}, index=False), and in graph.toml under [[edges]] file = {out} and columns = "
            f"[{quoted(id_columns[0])}, {quoted(target)}]"
        )
    return SourceError(
        f"{table.title} looks like a pivot table: its header holds nodes ({listed(held, 4)}), and the cells below them "
        f"({listed(cells, 4)}) would be read as {relation.target} ids; write a row for each edge, with {used}; if "
        f"{ends[0]} and {ends[1]} do hold ids, say so with columns = [{quoted(ends[0])}, {quoted(ends[1])}]"
    )
