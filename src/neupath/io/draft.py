"""The draft of a graph.toml that `neupath init` shows, asks about and writes."""

import glob
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from neupath.errors import SourceError
from neupath.io.columns import likely_weight
from neupath.io.detect import explain_rules
from neupath.io.graph_toml import ENDS, GRAPH_TOML, Config, EdgesConfig, config_of, one_line, toml_sections
from neupath.io.plan import Plan, Selection
from neupath.io.proposals import check_readable
from neupath.io.registry import find_tables, locate
from neupath.io.sources import Source, is_table_file, read_settings, source_of_files, source_of_folder
from neupath.io.table_files import is_table

_SHOWN_VALUES = 3
_ABOUT_KEYS = "# Every key is optional; docs/graphs.md has all of them."


@dataclass(frozen=True)
class DraftQuestion:
    """What a rule decides and a user may want otherwise: the first of two choices keeps it, the second changes it."""

    text: str
    choices: Sequence[str]
    change: Callable[[Config], Config]

    def apply(self, draft: "Draft", choice: int) -> "Draft":
        """Return the draft with a choice, 0 or 1."""
        return replace(draft, config=self.change(draft.config)) if choice else draft


@dataclass(frozen=True)
class Draft:
    """What neupath makes of a source, and the graph.toml that says so.

    Either `plan` says what its tables hold and `config` says the same, or `proposal` is the text of a graph.toml that
    reads them, and `refusal` says why it is needed.
    """

    source: Path
    plan: Plan | None
    config: Config = field(default_factory=Config)
    refusal: str = ""
    proposal: str = ""

    @property
    def default_out(self) -> Path:
        """The graph.toml of a folder, or a file of that kind beside a table."""
        return self.source / GRAPH_TOML if self.source.is_dir() else self.source.with_name(f"{self.source.name}.toml")

    def columns(self) -> dict[str, list[tuple[str, Sequence[str], str]]]:
        """Return the columns of each table: the name, the first values, and what it is read as."""
        plan = self.plan or self.read()
        tables = self.plan.tables if self.plan else _source_of(self.source).tables
        uses: dict[tuple[str, str], list[str]] = {}
        for label, column, use in _describe_columns(plan):
            uses.setdefault((label, column), []).append(use)
        return {
            table.label: [
                (column, table.sample[column][:_SHOWN_VALUES], "; ".join(uses.get((table.label, column), ["left out"])))
                for column in table.columns
            ]
            for table in tables
        }

    def read(self) -> Plan:
        """Return what the graph.toml of this draft makes of its source."""
        with TemporaryDirectory() as folder:
            config = Path(folder) / GRAPH_TOML
            config.write_text(self.to_toml(), encoding="utf-8")
            return cast(Plan, find_tables(self.source, config, None, None))

    def questions(self) -> list[DraftQuestion]:
        """Return what a user may want otherwise."""
        if self.plan is None:
            return [DraftQuestion(f"{self.refusal}\nRead it so?\n{self.proposal}", ("yes", "no"), self._refuse)]
        return [*_relation_questions(self.config), *_weight_questions(self.plan, self.config)]

    def _refuse(self, _: Config) -> Config:
        raise SourceError(self.refusal)

    def to_toml(self) -> str:
        """Return a commented graph.toml, which `load` reads as it reads the source without one."""
        name = one_line(self.source.name or self.source.resolve().name)
        how = f"neupath info {name}" if self.source.is_dir() else f"neupath info {name} --config THIS_FILE"
        header = [f"# How neupath reads {name}: check it with {how}.", _ABOUT_KEYS]
        if self.plan is None:
            return "\n".join([*header, self.proposal, ""])
        header += [f"# note: {one_line(note)}" for note in self.plan.options.notes]
        if not self.config.names_tables:
            header.append("# The headers of these files say what they hold, and there is nothing to set.")
        return "\n\n".join(["\n".join(header), *toml_sections(self.config, self.plan.tables)]) + "\n"


def draft_of(source: str, data: str | Path | None = None) -> Draft:
    """Look at a folder of tables or a table file; raise if it is something else, or cannot be a graph."""
    try:
        plan = find_tables(source, None, None, data)
    except SourceError as error:
        message = str(error.args[0]).replace(" (‹config›)", "")
        refusal, found, proposal = message.partition(", such as:\n")
        draft = Draft(locate(Path(source), data), None, refusal=refusal, proposal=proposal)
        if not found:
            raise
        return draft
    if plan is None:
        raise SourceError(
            f"{source} needs no graph.toml, which describes tables in files; neupath info {source} shows how it is read"
        )
    path = locate(Path(source), data)
    tables = _source_of(path)
    used = {table.label for table in plan.tables}
    others = [glob.escape(table.label) for table in tables.tables if table.label not in used]
    settings = replace(tables.settings, ignore=[*tables.settings.ignore, *others])
    return Draft(path, plan, config_of(plan, settings))


def explain_source(source: str, data: str | Path | None = None) -> list[tuple[str, str, str]]:
    """Return which rules of detection are tried on tables: the name, what each looks at, and what comes of it."""
    try:
        return explain_rules(_source_of(draft_of(source, data).source))
    except SourceError:
        path = Path(source) if Path(source).exists() else None
        if path is None or not (is_table(path) or (path.is_dir() and any(map(is_table_file, path.iterdir())))):
            raise
        return explain_rules(_source_of(path))


def check_draft(draft: Draft) -> None:
    """Raise if the graph.toml of a draft does not read its source so; of large files, the first rows are tried."""
    plan = draft.read()
    check_readable(plan)
    if draft.plan is not None and _normalised(config_of(plan, draft.config)) != _normalised(draft.config):
        raise SourceError(f"a graph.toml cannot say these choices for {draft.source}; take the first ones, and edit it")


def _normalised(config: Config) -> Config:
    """Return a graph.toml for comparisons: edges without attributes may be said in two ways."""
    return replace(config, edges=[replace(each, attributes=each.attributes or None) for each in config.edges])


def _source_of(path: Path) -> Source:
    if path.is_dir():
        return source_of_folder(path, read_settings(path, None))
    return source_of_files([path], path.parent, Config(), where=path)


# ---- What columns are read as --------------------------------------------------------------------
def _describe_columns(plan: Plan) -> Iterator[tuple[str, str, str]]:
    """Yield the columns that are read, after the names of their tables, and what they are."""
    described: list[tuple[Selection, str, dict[str, str]]] = []
    described += [(node.selection, "the node" if plan.shared else node.node_type, {}) for node in plan.nodes]
    for edge in plan.edges:
        arrow = f"{edge.relation.source} -{edge.relation.name}-> {edge.relation.target}"
        split = "" if edge.selection.split is None else ", its cells split"
        uses = {"source": f"start of {arrow}", "target": f"end of {arrow}{split}"}
        if plan.shared:
            uses = {"source": "id of the head", "relation": "relation", "target": "id of the tail", "weight": "weight"}
            uses |= {
                f"{end}_{what}": f"{what} of the {name}" for end, name in ENDS.items() for what in ("type", "name")
            }
        described.append((edge.selection, "the edge" if plan.shared else arrow, uses))
    for selection, what, uses in described:
        for role, column in selection.columns.items():
            yield selection.table.label, column, uses.get(role, f"{role} of {what}")
        for column in selection.attributes:
            yield selection.table.label, column, f"attribute of {what}"


# ---- Questions -----------------------------------------------------------------------------------
def _relation_questions(config: Config) -> Iterator[DraftQuestion]:
    """Ask for each column that a rule reads as a relation, if there are others."""
    for edges in config.edges if len(config.edges) > 1 else ():
        if edges.optional and edges.columns:
            node_type = next((name for name, nodes in config.nodes.items() if nodes.file == edges.file), None)
            yield DraftQuestion(
                f"{edges.file}: what is {edges.columns[1]}?",
                (
                    f"the relation {edges.source} -{edges.name}-> {edges.target}",
                    "leave it out" if node_type is None else f"an attribute of {node_type}",
                ),
                _leave_out(edges, edges.columns[1], node_type),
            )


def _leave_out(edges: EdgesConfig, column: str, node_type: str | None) -> Callable[[Config], Config]:
    def change(config: Config) -> Config:
        nodes, left = dict(config.nodes), [each for each in config.edges if not _are_same(each, edges)]
        if node_type is None:  # the other edges of its table must not take it as an attribute either
            left = [
                replace(each, attributes=each.attributes or []) if each.file == edges.file else each for each in left
            ]
        else:
            own = nodes[node_type]
            nodes[node_type] = replace(own, attributes=[*(own.attributes or ()), column])
        return replace(config, nodes=nodes, edges=left)

    return change


def _weight_questions(plan: Plan, config: Config) -> Iterator[DraftQuestion]:
    """Ask for each column of numbers that may be the weight of the edges beside it."""
    for at, selection in enumerate(edge.selection for edge in plan.edges):
        weight = None if "weight" in selection.columns else likely_weight(selection.table, selection.attributes)
        if weight is not None:
            text = f"{selection.table.label}: is {weight} the weight of the edges?"
            edges = config.edges[at] if config.edges else None
            yield DraftQuestion(text, ("no, an attribute", "yes, and an attribute"), _set_weight(edges, weight))


def _set_weight(edges: EdgesConfig | None, weight: str) -> Callable[[Config], Config]:
    def weighted(entry: Any) -> Any:
        return entry and replace(entry, weight=weight)

    def change(config: Config) -> Config:
        if edges is None:
            return replace(config, pair=weighted(config.pair), triples=weighted(config.triples))
        return replace(config, edges=[weighted(each) if _are_same(each, edges) else each for each in config.edges])

    return change


def _are_same(edges: EdgesConfig, other: EdgesConfig) -> bool:
    """Whether two entries are of the same columns, also after a choice changed one."""
    return (edges.file, edges.columns) == (other.file, other.columns)
