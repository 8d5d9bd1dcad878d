"""What commands share: options, the graph to read, progress bars and printing."""

import csv
import json
import logging
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from inspect import Parameter, signature
from io import StringIO
from pathlib import Path
from textwrap import wrap
from typing import Annotated, Any, Literal, get_type_hints

import typer
from rich.console import Console, ConsoleDimensions, ConsoleOptions, Group, RenderableType, RenderResult
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from neupath.cli.program import in_ascii, is_harmless, printable, printable_lines
from neupath.engine.hits import QuerySet
from neupath.errors import QueryError, SourceWarning
from neupath.evidence.groups import shortened
from neupath.graph.hin import HIN
from neupath.graph.metapath import MetaPath
from neupath.graph.nodes import Nodes
from neupath.io import load
from neupath.measures import GRAPH_MEASURES, MEASURES

# ---- Options that several commands share ---------------------------------------------------------
MetaPathOption = Annotated[
    str | None, typer.Option("--metapath", "-p", help="The meta-path, such as movie-actor-movie or MAM.")
]
MetaPathsOption = Annotated[
    list[str] | None,
    typer.Option("--metapath", "-p", help="The meta-path, such as movie-actor-movie or MAM; repeat to add up several."),
]
WeightsOption = Annotated[
    str | None, typer.Option("--weights", help="A weight for each -p, such as 2,1.", show_default="their mean")
]
WhereOption = Annotated[
    list[str] | None, typer.Option("--where", help="Keep targets whose attribute fits, such as 'year >= 2000'.")
]
UnlessOption = Annotated[
    list[str] | None, typer.Option("--unless", help="Leave out targets that this meta-path relates to the query.")
]
AmongOption = Annotated[list[str] | None, typer.Option("--among", help="Keep only this target (repeat for more).")]
AmongFileOption = Annotated[
    str | None, typer.Option("--among-file", help="Keep only targets in this file, one id or name a line; - for stdin.")
]
WithOption = Annotated[
    list[str] | None, typer.Option("--with", help="Search for this node together with QUERY; B=2 weighs it by 2.")
]
WithoutOption = Annotated[
    list[str] | None, typer.Option("--without", help="The same with a negative weight: less like this node.")
]
MeasureOption = Annotated[str, typer.Option("--measure", "-m", help=f"One of {', '.join(MEASURES.built_in)}.")]
AnyMeasureOption = Annotated[
    str | None,
    typer.Option(
        "--measure",
        "-m",
        help=f"Along --metapath: {', '.join(MEASURES.built_in)}, avgsim, relsim; "
        f"settings follow as in tversky:alpha=1,beta=0. Over the whole graph: {', '.join(GRAPH_MEASURES.built_in)}.",
        show_default="pathsim",
    ),
]
ModelOption = Annotated[
    Path | None, typer.Option("--model", help="A folder with a saved model or measure, instead of --metapath.")
]
DeviceOption = Annotated[str | None, typer.Option("--device", help="cpu or cuda; by default CUDA if there is one.")]
DataOption = Annotated[
    Path | None, typer.Option("--data", envvar="NEUPATH_DATA", help="A folder in which GRAPH may be named.")
]
AsOfOption = Annotated[
    int | None, typer.Option("--as-of", help="An earlier version of a store; by default the last one.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@dataclass(frozen=True)
class OutputFlags:
    """The options that print a table for programs, instead of for people."""

    as_json: JsonOption = False
    as_csv: Annotated[bool, typer.Option("--csv", help="Print the table as CSV, with all digits.")] = False
    as_tsv: Annotated[bool, typer.Option("--tsv", help="The same with tabs between the columns.")] = False

    def __post_init__(self) -> None:
        flags = {"--json": self.as_json, "--csv": self.as_csv, "--tsv": self.as_tsv}
        if sum(flags.values()) > 1:
            given = " and ".join(flag for flag, is_given in flags.items() if is_given)
            raise QueryError(f"{given} are given, but the result is printed once; give one of them")

    @property
    def is_table(self) -> bool:
        """Whether to print a table for programs."""
        return self.as_csv or self.as_tsv

    @property
    def is_text(self) -> bool:
        """Whether to print for people."""
        return not (self.as_json or self.is_table)

    def print_table(self, columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> None:
        """Print a header and, of each row, the values of these columns; a missing value is empty."""
        text = StringIO()
        writer = csv.writer(text, delimiter="," if self.as_csv else "\t", lineterminator="\n")
        writer.writerow(columns)
        for row in rows:
            values = (row.get(column) for column in columns)
            writer.writerow([str(value).lower() if isinstance(value, bool) else value for value in values])
        if not _can_print(text.getvalue()):
            raise QueryError(
                f"the output is in {sys.stdout.encoding}, which lacks characters of this table; set "
                f"PYTHONIOENCODING=utf-8, or use --json"
            )
        print(text.getvalue(), end="")


def read_weights(text: str | None) -> list[float] | None:
    """Read the numbers of --weights."""
    if text is None:
        return None
    try:
        return [float(number) for number in text.split(",")]
    except ValueError:
        raise QueryError(
            f"‹weights› is {text!r}; give numbers with commas between them, such as 2,1", parameter="weights"
        ) from None


def read_among(names: list[str] | None, file: str | None) -> list[str] | None:
    """Return the only targets to rank: those of --among, and the lines of the file of --among-file; None for all."""
    if file is None:
        return names or None
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text in UTF-8"
        raise QueryError(f"cannot read {file}: {reason}; give a text file with one id or name a line") from error
    lines = [line for line in (line.strip() for line in text.splitlines()) if line]
    if not lines:
        raise QueryError(f"{file} names no target; write one id or name a line", parameter="among_file")
    return [*(names or ()), *lines]


def read_set(hin: HIN, node_type: str, query: str, added: list[str] | None, removed: list[str] | None) -> QuerySet:
    """Return the set that QUERY, --with and --without describe: of equal weights, or of the weights after a "="."""
    parts = [(1.0, query), *((1.0, text) for text in added or ()), *((-1.0, text) for text in removed or ())]
    members: dict[str, float] = {}
    weights: list[float | None] = [None]
    for sign, text in parts[1:]:
        name, equals, number = text.rpartition("=")
        weight = _as_number(number) if equals and not _is_node(hin.nodes[node_type], text) else None
        weights.append(weight)
        name = text if weight is None else name
        if weight is not None and weight <= 0:
            raise QueryError(
                f"{text!r} weighs {weight:g}; give a weight above 0, and --without to count against a node"
            )
        if name in members or name == query:
            raise QueryError(f"{name!r} is named twice; name it once, with its whole weight")
        members[name] = sign * (1.0 if weight is None else weight)
    share = 1.0 if any(weight is not None for weight in weights) else 1.0 / len(parts)
    return QuerySet.read({name: weight * share for name, weight in {query: 1.0, **members}.items()})


def _is_node(nodes: Nodes, text: str) -> bool:
    return nodes.look_up(text) is not None or len(nodes.name_search.equal(text)) > 0


def _as_number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


# ---- The graph to read ---------------------------------------------------------------------------
@dataclass(frozen=True)
class GraphSource:
    """GRAPH, and the options for reading it."""

    graph: Annotated[
        str,
        typer.Argument(
            metavar="GRAPH",
            help="A built-in name, a folder of tables, a file of triples, RDF, JSON, a .mat or GraphML file, a store, "
            "or a database: postgresql://host/name, a SQLite or a DuckDB file. Files may be at s3:// or gs://.",
        ),
    ]
    config: Annotated[
        Path | None,
        typer.Option("--config", help="A graph.toml for what cannot be detected: columns, types, relations."),
    ] = None
    duplicates: Annotated[
        str | None, typer.Option("--duplicates", help="Parallel edges: count (each is a path), drop, or error.")
    ] = None
    data: DataOption = None
    schema: Annotated[
        str | None, typer.Option("--schema", help="Of a database: the schema of its tables, if not its own.")
    ] = None
    tables: Annotated[
        str | None, typer.Option("--tables", help="Of a database: the tables to read, such as users,orders.")
    ] = None

    def load(self, as_of: int | None = None, *, with_notes: bool = True) -> HIN:
        """Read the graph, with progress bars, and print notes on how it was read."""
        with ProgressBars() as bars, warnings.catch_warnings():
            if not with_notes:
                warnings.simplefilter("ignore", SourceWarning)
            return load(self.graph, **self.options(), as_of=as_of, progress=bars)

    def options(self) -> dict[str, Any]:
        """Return how to read the graph, as the library's parameters."""
        return {
            "config": self.config, "duplicates": self.duplicates, "data": self.data, "schema": self.schema,
            "tables": self.tables,
        }  # fmt: skip


@dataclass(frozen=True)
class RefinementFlags:
    """The options that put weights and a time window into a meta-path."""

    weight: Annotated[
        list[str] | None,
        typer.Option("--weight", help="The weight of a relation's edges, such as 'rates=rating - 2.5' (repeat)."),
    ] = None
    time: Annotated[
        str | None, typer.Option("--time", help="The attribute that holds times, of edges or of nodes on the way.")
    ] = None
    since: Annotated[str | None, typer.Option("--since", help="The first time that counts.")] = None
    until: Annotated[str | None, typer.Option("--until", help="The last time that counts.")] = None
    now: Annotated[str | None, typer.Option("--now", help="Leave out what is later, and count ages from here.")] = None
    half_life: Annotated[
        str | None, typer.Option("--half-life", help="The age at which things count half, such as 365d.")
    ] = None

    def options(self) -> dict[str, Any]:
        """Return the options that were given, as the parameters of `HIN.metapath`."""
        options = {name: value for name, value in vars(self).items() if value is not None and name != "weight"}
        if not self.weight:
            return options
        from neupath.graph.refinement import parse_weights  # takes a while to import

        return options | {"weights": parse_weights(self.weight)}

    def refine(self, hin: HIN, metapath: str | Sequence[str] | None) -> MetaPath | list[MetaPath] | None:
        """Read one meta-path, or several, with these weights and times."""
        if metapath is None and self.options():
            raise QueryError(f"‹{next(iter(self.options()))}› changes a meta-path; give ‹metapath›, too")
        if metapath is None or isinstance(metapath, str):
            return None if metapath is None else hin.metapath(metapath, **self.options())
        return [hin.metapath(text, **self.options()) for text in metapath]


def reads_graph(command: Callable[..., None]) -> Callable[..., None]:
    """Replace the parameter `source` of a command by GRAPH and the options for reading it."""
    return _with_options(command, "source", GraphSource, num_first=1)


def refines_metapath(command: Callable[..., None]) -> Callable[..., None]:
    """Replace the parameter `refinement` of a command by the options for weights and times."""
    return _with_options(command, "refinement", RefinementFlags, num_first=0)


def prints_table(command: Callable[..., None]) -> Callable[..., None]:
    """Replace the parameter `output` of a command by --json, --csv and --tsv."""
    return _with_options(command, "output", OutputFlags, num_first=0)


def _with_options(
    command: Callable[..., None], name: str, kind: type[Any], num_first: int
) -> Callable[..., None]:  # fmt: skip
    """Replace a parameter of a command by the fields of its class, the first ones before all other parameters."""
    hints = getattr(command, "__annotations__", {}) if hasattr(command, "__signature__") else {}
    hints = hints or get_type_hints(command, include_extras=True)
    own_hints = get_type_hints(kind, include_extras=True)
    others = [parameter for each, parameter in signature(command).parameters.items() if each != name]
    own = list(signature(kind).parameters.values())
    in_order = (*own[:num_first], *others, *own[num_first:])
    parameters = [each.replace(kind=Parameter.KEYWORD_ONLY) for each in in_order]

    @wraps(command)
    def run(**arguments: Any) -> None:
        value = kind(**{each: arguments.pop(each) for each in own_hints})
        command(**{name: value}, **arguments)

    run.__annotations__ = {each: hint for each, hint in (own_hints | hints).items() if each != name}
    run.__signature__ = signature(command).replace(parameters=parameters)  # type: ignore[attr-defined]
    return run


# ---- Progress bars -------------------------------------------------------------------------------
class ProgressBars:
    """One bar per stage on standard error, removed when the work is done; none if that is not a terminal.

    Parameters
    ----------
    amount
        The column that says how much is done.
    """

    def __init__(self, amount: ProgressColumn | None = None) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), amount or MofNCompleteColumn(), TimeRemainingColumn())
        self._progress = Progress(*columns, console=stderr, transient=True, disable=not stderr.is_terminal)
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> "ProgressBars":
        return self

    def __exit__(self, *error: object) -> None:
        self._progress.stop()

    def __call__(self, stage: str, done: int, total: int | None, title: str | None = None) -> None:
        if stage not in self._tasks:
            self._progress.start()  # not before: work without stages shows nothing
            self._tasks[stage] = self._progress.add_task(stage, total=total)
        self._progress.update(self._tasks[stage], completed=done, total=total, description=title or stage)

    def show_epoch(self, epoch: Any, total: int) -> None:
        """Show the errors of an epoch of training."""
        title = f"training: RMSE {epoch.train_rmse:.4f}, validation {epoch.validation_rmse:.4f}"
        self("training", epoch.epoch, total, title)


# ---- Printing ------------------------------------------------------------------------------------
_WIDEST = 1_000_000  # columns: more than any line has


class OutputConsole(Console):
    """A console that neither wraps nor cuts what goes into a file or a pipe, and draws in ASCII on a dumb terminal.

    Whatever it is given to print, no character of a text moves the cursor, rings the bell or turns the line around.
    """

    @property
    def is_bounded(self) -> bool:
        """Whether lines end at a width: that of a terminal, or of COLUMNS."""
        return self.is_terminal or "COLUMNS" in os.environ

    @property  # type: ignore[misc]  # it is never set
    def size(self) -> ConsoleDimensions:
        return super().size if self.is_bounded else ConsoleDimensions(_WIDEST, super().size.height)

    @property
    def encoding(self) -> str:
        return "ascii" if self.is_dumb_terminal else super().encoding

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        for segment in super().render(renderable, options):
            is_safe = segment.control or segment.text.isprintable()
            yield segment if is_safe else Segment(printable_lines(segment.text), segment.style)


stdout = OutputConsole()
stderr = OutputConsole(stderr=True)


def note(text: str) -> None:
    """Print a note on standard error, apart from the result."""
    stderr.print(f"note: {printable(text)}", style="dim", highlight=False, markup=False, soft_wrap=True)


class _NoteHandler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        note(record.getMessage())


def note_compilation() -> None:
    """Print a note when kernels are compiled, if standard error is a terminal, where somebody waits."""
    log = logging.getLogger("neupath.compilation")
    if stderr.is_terminal and not log.handlers:
        log.addHandler(_NoteHandler())
        log.setLevel(logging.INFO)


def note_relations(metapath: MetaPath | None) -> None:
    """Print a note for each step of a meta-path that follows several relations."""
    for line in () if metapath is None else metapath.all_relations_steps():
        note(line)


def print_text(text: object) -> None:
    """Print lines for people as they are, neither wrapped nor styled."""
    print(printable_lines(str(text)))


def print_json(content: object) -> None:
    """Print a result as one line of JSON; characters that the output lacks, or acts on, are escaped."""
    text = json.dumps(content, ensure_ascii=False)
    print(json_text(text) if _can_print(text) else json.dumps(content))


def json_text(text: str) -> str:
    """Return JSON with every character escaped that a terminal would act on; they all stand within its texts."""
    if text.isprintable():
        return text
    return "".join(each if is_harmless(each) else json.dumps(each)[1:-1] for each in text)


def _can_print(text: str) -> bool:
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def drawn(text: str) -> str:
    """Return bars and lines as the output can show them: in ASCII where it has no others."""
    return text if stdout.encoding.startswith("utf") else in_ascii(text)


def label_text(label: str, most: int | None = None) -> str:
    """Return a node's label to print; where lines have a width, a long one is cut in the middle."""
    if not stdout.is_bounded:
        return printable(label)
    return printable(shortened(label) if most is None else shortened(label, most))


def plain_table(*columns: str) -> Table:
    """Return a table without lines; a title that begins with ">" aligns its column to the right."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    for title in columns:
        justify: Literal["left", "right"] = "right" if title.startswith(">") else "left"
        table.add_column(title.removeprefix(">"), justify=justify, overflow="fold")  # nothing is cut
    return table


def titled(title: str, *parts: RenderableType) -> Group:
    """Return a title above a table or tree, to be printed."""
    return Group(Text(printable(title), style="bold"), *parts)


class Sentence:
    """Text that is wrapped between words alone: rich also breaks between a number and its % sign."""

    def __init__(self, text: str, style: str = "") -> None:
        self._text, self._style = printable(text), style

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        kept = re.sub(r"(?<=\d) %", "\N{NO-BREAK SPACE}%", self._text)
        lines = wrap(kept, max(1, options.max_width), break_on_hyphens=False)
        yield Text("\n".join(lines).replace("\N{NO-BREAK SPACE}%", " %"), style=self._style)


def bar(share: float, width: int = 10) -> Text:
    """Return a bar of up to `width` characters."""
    eighths = round(share * width * 8)
    return Text(drawn("█" * (eighths // 8) + ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")[eighths % 8]), style="cyan")
