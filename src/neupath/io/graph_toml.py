"""Write a graph.toml: what neupath would make of the tables of a source, with the choices that are open."""

import glob
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa

from neupath.errors import SourceError
from neupath.graph.notations import Fit, find_fit, may_be_values, toml_key
from neupath.io.columns import likely_weight
from neupath.io.config import GRAPH_TOML
from neupath.io.detection import check_readable, is_table_file
from neupath.io.edge_columns import is_text
from neupath.io.export import quoted
from neupath.io.plan import LISTS, EdgePlan, NodePlan, Plan, Selection, TableSource, TripleTables
from neupath.io.recognition import find_tables, locate
from neupath.io.tables import Table, TableFile, is_in_parts

_SHOWN = 3
"""First values of a column that are shown."""


@dataclass(frozen=True)
class ColumnUse:
    """A column of a table: some of its values, and what it is read as."""

    column: str
    values: Sequence[str]
    use: str


@dataclass(frozen=True)
class Question:
    """What a rule decides and a user may want otherwise; each choice changes the draft, the first leaves it."""

    text: str
    choices: Sequence[str]
    apply: Callable[["Draft", int], "Draft"]


@dataclass(frozen=True)
class Draft:
    """What neupath would make of a source, and the graph.toml that says so.

    Either its tables are recognised, or `suggestion` is a graph.toml that would read one of them, and `refusal` says
    why it is needed.
    """

    source: Path
    tables: TableSource | None
    refusal: str = ""
    suggestion: str = ""

    @property
    def folder(self) -> Path:
        """Where the files are that graph.toml names."""
        return self.source if self.source.is_dir() else self.source.parent

    @property
    def default_out(self) -> Path:
        """The graph.toml of a folder, or a file of that kind beside a table."""
        return self.source / GRAPH_TOML if self.source.is_dir() else self.source.with_name(f"{self.source.name}.toml")

    def columns(self) -> dict[str, list[ColumnUse]]:
        """Return the columns of each table."""
        if self.tables is None:
            files = [self.source]
            if self.source.is_dir() and not is_in_parts(self.source):
                files = sorted(filter(is_table_file, self.source.iterdir()))
            return {path.name: _uses_of(TableFile(path), {}) for path in files}
        tables = {table.label: table for table in self.tables.tables}
        uses: dict[str, dict[str, list[str]]] = {}
        for selection, words in _described(self.tables):
            own = uses.setdefault(selection.table.label, {})
            for column, word in words:
                own.setdefault(column, []).append(word)
        return {label: _uses_of(table, uses[label]) for label, table in tables.items()}

    def questions(self) -> list[Question]:
        if self.tables is None:
            return [Question(f"{self.refusal}\nRead it so?\n{self.suggestion}", ("yes", "no"), _accept)]
        return [*_key_questions(self.tables), *_weight_questions(self.tables)]

    def to_toml(self) -> str:
        """Return a commented graph.toml, which `load` reads as it reads the source without one."""
        if self.tables is None:
            return f"{_header(self.source)}\n{self.suggestion}\n"
        lines = _triples_lines(self.tables) if isinstance(self.tables, TripleTables) else _relation_lines(self.tables)
        text = "\n".join([_header(self.source), *_note_lines(self.tables), *_option_lines(self), *lines]) + "\n"
        if _signature(read_with(self.source, text)) == _signature(self.tables):
            return text
        if _signature(find_tables(self.source, None, None, None)) != _signature(self.tables):
            raise SourceError(
                f"a graph.toml cannot say these choices for {self.source}; take the first ones, and edit it"
            )
        # what graph.toml cannot say is left to the rules
        return "".join(line if line.startswith("#") else f"# {line}".rstrip() + "\n" for line in text.splitlines(True))


def draft_of(source: str, data: str | Path | None = None) -> Draft:
    """Look at a folder of tables or a table file; raise if it is something else, or cannot be a graph."""
    try:
        tables = find_tables(source, None, None, data)
    except SourceError as error:
        message = str(error.args[0]).replace(" (‹config›)", "")
        refusal, found, suggestion = message.partition(", such as:\n")
        draft = Draft(locate(Path(source), data), None, refusal, suggestion)
        if not found:
            raise
        return draft
    if tables is None:
        raise SourceError(
            f"{source} needs no graph.toml, which describes tables in files; neupath info {source} shows how it is read"
        )
    return Draft(locate(Path(source), data), tables)


def check_draft(draft: Draft) -> None:
    """Raise if the graph.toml of a draft does not read its source; of large files, the first rows are tried."""
    tables = read_with(draft.source, draft.to_toml())
    assert tables is not None
    check_readable(tables)


def read_with(source: Path, toml: str) -> TableSource | None:
    """Recognise a source with the text of a graph.toml."""
    with TemporaryDirectory() as folder:
        config = Path(folder) / GRAPH_TOML
        config.write_text(toml, encoding="utf-8")
        return find_tables(source, config, None, None)


# ---- What columns are read as --------------------------------------------------------------------
def _described(tables: TableSource) -> Iterator[tuple[Selection, list[tuple[str, str]]]]:
    """Yield each selection with its columns and what they are."""
    if isinstance(tables, Plan):
        for node in tables.nodes:
            yield node.selection, _node_words(node.selection, node.node_type)
        for edge in tables.edges:
            yield edge.selection, _edge_words(edge)
        return
    for nodes in [tables.nodes] if tables.nodes is not None else tables.node_tables:
        yield nodes, _node_words(nodes, "the node")
    words = {"source": "id of the head", "relation": "relation", "target": "id of the tail", "weight": "weight"}
    words |= {f"{end}_{what}": f"{what} of the {word}" for end, word in _ENDS.items() for what in ("type", "name")}
    for edges in tables.edges:
        roles = [(column, words[role]) for role, column in edges.columns.items()]
        yield edges, [*roles, *((column, "attribute of the edge") for column in edges.attributes)]


_ENDS = {"source": "head", "target": "tail"}


def _node_words(selection: Selection, node_type: str) -> list[tuple[str, str]]:
    roles = [(column, f"{role} of {node_type}") for role, column in selection.columns.items()]
    return [*roles, *((column, f"attribute of {node_type}") for column in selection.attributes)]


def _edge_words(edge: EdgePlan) -> list[tuple[str, str]]:
    relation, columns = edge.relation, edge.selection.columns
    arrow = f"{relation.source} -{relation.name}-> {relation.target}"
    split = "" if edge.selection.split is None else ", its cells split"
    words = {"source": f"start of {arrow}", "target": f"end of {arrow}{split}", "weight": f"weight of {arrow}"}
    roles = [(column, words[role]) for role, column in columns.items()]
    return [*roles, *((column, f"attribute of {arrow}") for column in edge.selection.attributes)]


def _uses_of(table: Table, uses: dict[str, list[str]]) -> list[ColumnUse]:
    return [
        ColumnUse(column, table.sample[column][:_SHOWN], "; ".join(uses.get(column, ["left out"])))
        for column in table.columns
    ]


# ---- Questions -----------------------------------------------------------------------------------
def _key_questions(tables: TableSource) -> list[Question]:
    """Ask for each column that a rule reads as a relation."""
    if not isinstance(tables, Plan):
        return []
    questions = []
    for edge in tables.edges:
        node = next((node for node in tables.nodes if node.selection.table is edge.selection.table), None)
        if not edge.selection.optional:
            continue
        other = "leave it out" if node is None else f"an attribute of {node.node_type}"
        column, label = edge.selection.columns["target"], edge.selection.table.label
        arrow = f"{edge.relation.source} -{edge.relation.name}-> {edge.relation.target}"
        choices = (f"the relation {arrow}", other)
        questions.append(Question(f"{label}: what is {column}?", choices, _without_relation(edge, node)))
    return questions if len(tables.edges) > 1 else []


def _without_relation(edge: EdgePlan, node: NodePlan | None) -> Callable[[Draft, int], Draft]:
    column = edge.selection.columns["target"]

    def apply(draft: Draft, choice: int) -> Draft:
        if choice == 0 or not isinstance(draft.tables, Plan):
            return draft
        edges = [each for each in draft.tables.edges if each is not edge]
        nodes = [
            replace(each, selection=replace(each.selection, attributes=[*each.selection.attributes, column]))
            if node is not None and each.node_type == node.node_type
            else each
            for each in draft.tables.nodes
        ]
        return replace(draft, tables=replace(draft.tables, nodes=nodes, edges=edges))

    return apply


def _weight_questions(tables: TableSource) -> list[Question]:
    """Ask for each column of numbers that may be the weight of the edges beside it."""
    selections = tables.edges if isinstance(tables, TripleTables) else [edge.selection for edge in tables.edges]
    questions = []
    for at, selection in enumerate(selections):
        weight = None if "weight" in selection.columns else likely_weight(selection.table, selection.attributes)
        if weight is not None:
            text = f"{selection.table.label}: is {weight} the weight of the edges?"
            choices = ("no, an attribute", "yes, and an attribute")
            questions.append(Question(text, choices, _with_weight(at, selection, weight)))
    return questions


def _with_weight(at: int, selection: Selection, weight: str) -> Callable[[Draft, int], Draft]:
    weighted = replace(selection, columns={**selection.columns, "weight": weight})

    def apply(draft: Draft, choice: int) -> Draft:
        tables = draft.tables
        if choice == 0 or tables is None:
            return draft
        if isinstance(tables, TripleTables):
            return replace(draft, tables=replace(tables, edges=_put(tables.edges, at, weighted)))
        places = [n for n, edge in enumerate(tables.edges) if edge.selection.table is selection.table]
        place = at if at < len(tables.edges) and at in places else places[0]
        edge = replace(tables.edges[place], selection=weighted)
        return replace(draft, tables=replace(tables, edges=_put(tables.edges, place, edge)))

    return apply


def _put(items: Sequence[Any], at: int, item: Any) -> list[Any]:
    return [item if n == at else each for n, each in enumerate(items)]


def _accept(draft: Draft, choice: int) -> Draft:
    if choice:
        raise SourceError(draft.refusal)
    return draft


# ---- The text ------------------------------------------------------------------------------------
def _header(source: Path) -> str:
    name = _one_line(source.name or source.resolve().name)
    how = f"neupath info {name}" if source.is_dir() else f"neupath info {name} --config THIS_FILE"
    return f"# How neupath reads {name}: check it with {how}.\n# Every key is optional; docs/graphs.md has all of them."


def _note_lines(tables: TableSource) -> list[str]:
    return [*(f"# note: {_one_line(note)}" for note in tables.options.notes), ""]


def _option_lines(draft: Draft) -> list[str]:
    tables = draft.tables
    assert tables is not None
    lines = []
    if draft.source.is_dir() and not is_in_parts(draft.source):
        used = {table.label for table in tables.tables}
        others = [path.name for path in sorted(filter(is_table_file, draft.folder.iterdir())) if path.name not in used]
        lines += [f"ignore = {_listed(map(glob.escape, others))}   # files of no relation"] if others else []
    if tables.options.missing_ids is not None:
        lines.append(f"missing_ids = {_listed(tables.options.missing_ids)}   # rows with one are left out")
    if tables.options.fold_ids is not None:
        lines.append(f"fold_ids = {str(tables.options.fold_ids).lower()}   # whether Ann and ann are one")
    if tables.options.duplicates != "count":
        lines.append(f"duplicates = {quoted(tables.options.duplicates)}   # an edge that is there twice counts once")
    return [*lines, ""] if lines else []


def _relation_lines(tables: Plan) -> list[str]:
    lines = []
    for node in tables.nodes:
        selection = node.selection
        lines += [
            *_sample_lines(selection.table),
            f"[nodes.{quoted(node.node_type)}]",
            f"file = {quoted(selection.table.label)}",
            f"id = {quoted(selection.columns['id'])}",
            f"name = {quoted(selection.columns.get('name', ''))}   # what people call it" if "name" in selection.columns
            else 'name = ""   # no column has names',
            f"attributes = {_listed(selection.attributes)}   # for conditions such as --where 'year >= 2000'",
            *_type_lines(selection),
            "",
        ]  # fmt: skip
    shown = {id(node.selection.table) for node in tables.nodes}
    for edge in tables.edges:
        lines += [] if id(edge.selection.table) in shown else _sample_lines(edge.selection.table)
        shown.add(id(edge.selection.table))
        lines += _edge_lines(edge)
    return lines


def _edge_lines(edge: EdgePlan) -> list[str]:
    relation, selection = edge.relation, edge.selection
    columns = selection.columns
    lines = [
        "[[edges]]",
        f"name = {quoted(relation.name)}",
        f"file = {quoted(selection.table.label)}",
        f"source = {quoted(relation.source)}",
        f"target = {quoted(relation.target)}",
        f"columns = {_listed([columns['source'], columns['target']])}",
    ]
    if "weight" in columns:
        lines.append(f"weight = {quoted(columns['weight'])}")
    lines += _attribute_lines(selection)
    if selection.split is not None:
        how = "cells are lists" if selection.split == LISTS else "several targets in one cell"
        lines.append(f"split = {quoted(selection.split)}   # {how}")
    if selection.optional:
        lines.append("optional = true   # rows without a target are skipped")
    if not relation.directed:
        lines.append("undirected = true")
    return [*lines, ""]


def _attribute_lines(edges: Selection) -> list[str]:
    if not edges.attributes:
        return []
    lines = [f"attributes = {_listed(edges.attributes)}   # of edges, for conditions along a meta-path"]
    return [*lines, *_type_lines(edges)]


def _type_lines(selection: Selection) -> list[str]:
    """Return what attributes are declared to be, and as comments what texts could be read as."""
    if selection.kinds:
        kinds = ", ".join(f"{quoted(column)} = {quoted(word)}" for column, word in selection.kinds.items())
        return [f"attribute_types = {{{kinds}}}"]
    texts = [column for column in selection.attributes if may_be_values(selection.table.sample[column])]
    fits = {column: fit for column in texts if (fit := _fit_of(selection, column)) is not None and fit.is_notation}
    whole = {column: fit for column, fit in fits.items() if fit.misfit is None}
    kinds = ", ".join(f"{toml_key(column)} = {quoted(fit.words[0])}" for column, fit in whole.items())
    lines = [f"# attribute_types = {{{kinds}}}   # reads texts as numbers or dates"] if whole else []
    for column, fit in fits.items():
        if fit.misfit is not None or len(fit.words) > 1:
            lines.append(f"# {_one_line(column)}: {_one_line(fit.advice(column, 'here'))}")
    return lines


def _fit_of(selection: Selection, column: str) -> Fit | None:
    """Return what nearly all texts of a column are; None if it holds no texts."""
    table = selection.table
    if table.typed and not is_text(table.declared_types([column], {})[column]):
        return None
    batches = table.batches([column], {} if table.typed else {column: pa.string()})
    return find_fit(batch[column] for batch in batches)


def _triples_lines(tables: TripleTables) -> list[str]:
    if tables.nodes is not None:
        return _pair_lines(tables, tables.nodes)
    if tables.node_tables:
        return ["# The headers of these files say what they hold, and there is nothing to set."]
    lines = [*_sample_lines(tables.edges[0].table), "[triples]"]
    lines.append(f"files = {_listed(edges.table.label for edges in tables.edges)}")
    columns = tables.edges[0].columns
    if all(edges.columns == columns for edges in tables.edges):
        lines.append(f"columns = {_listed(columns[role] for role in ('source', 'relation', 'target'))}")
        names = {f"{end}_{what}": f"{word}_{what}" for end, word in _ENDS.items() for what in ("type", "name")}
        names["weight"] = "weight"
        lines += [f"{key} = {quoted(columns[role])}" for role, key in names.items() if role in columns]
        if all(edges.attributes == tables.edges[0].attributes for edges in tables.edges):
            lines += _attribute_lines(tables.edges[0])
    if not tables.prefixed and "source_type" not in columns:
        lines.append(f"type = {quoted(tables.node_type)}   # the type of all nodes")
    return lines


def _pair_lines(tables: TripleTables, nodes: Selection) -> list[str]:
    edges = tables.edges[0]
    lines = [*_sample_lines(nodes.table), *_sample_lines(edges.table), "[pair]"]
    lines += [f"nodes = {quoted(nodes.table.label)}", f"edges = {quoted(edges.table.label)}"]
    lines += [f"{role} = {quoted(column)}" for role, column in nodes.columns.items()]
    if "relation" in edges.columns:
        lines += [f"{role} = {quoted(column)}" for role, column in edges.columns.items()]
    return [*lines, *_attribute_lines(edges)]


def _sample_lines(table: Table) -> list[str]:
    """Show the header and the first row of a table as comments."""
    row = [values[0][:40] if (values := table.sample[column]) else "" for column in table.columns]
    columns = ", ".join(table.columns) if table.has_header else f"{len(table.columns)} columns without a header"
    return [f"# {_one_line(table.label)}: {_one_line(columns)[:200]}", f"#   {_one_line(' | '.join(row))[:200]}"]


def _listed(texts: Any) -> str:
    return f"[{', '.join(map(quoted, texts))}]"


def _one_line(text: str) -> str:
    return re.sub(r"[^\S ]|[^\x20-\x7e\xa0-\U0010ffff]", " ", text)


# ---- Comparison ----------------------------------------------------------------------------------
def _signature(tables: TableSource | None) -> list[object]:
    """Return all that decides which graph is read from tables."""
    if tables is None:
        return []
    if isinstance(tables, TripleTables):
        parts = [*([tables.nodes] if tables.nodes else tables.node_tables), *tables.edges]
        kind = [tables.node_type, tables.prefixed, tables.labels, tables.relation]
        return [*kind, _options(tables), *map(_selected, parts)]
    nodes = [(node.node_type, _selected(node.selection)) for node in tables.nodes]
    edges = [(str(edge.relation), edge.relation.directed, _selected(edge.selection)) for edge in tables.edges]
    return [nodes, edges, _options(tables)]


def _options(tables: TableSource) -> tuple[object, ...]:
    options = tables.options
    missing = None if options.missing_ids is None else list(options.missing_ids)
    return options.duplicates, missing, options.fold_ids


def _selected(selection: Selection) -> tuple[object, ...]:
    columns, kinds = sorted(selection.columns.items()), sorted(selection.kinds.items())
    how = (selection.split, selection.optional, selection.all_text)
    return selection.table.label, columns, list(selection.attributes), kinds, *how
