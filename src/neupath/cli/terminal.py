"""What commands share: options, the graph to read, progress bars and printing."""

import csv
import json
import logging
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, is_dataclass
from functools import wraps
from importlib import import_module
from inspect import Parameter, signature
from io import StringIO
from pathlib import Path
from textwrap import wrap
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

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
from neupath.errors import QueryError, SourceWarning, spell_parameters
from neupath.evidence.groups import shortened
from neupath.graph.hin import HIN
from neupath.graph.metapath import MetaPath
from neupath.io import load
from neupath.measures import GRAPH_MEASURES, MEASURES
from neupath.requests import Option, Question, option, options_of

# ---- Options: the fields of a question as flags and arguments --------------------------------------
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


class _Names(dict[str, str]):
    """What the braces of a help text stand for: measures, and architectures by what they learn from."""

    def __missing__(self, name: str) -> str:
        if name.endswith("_measures"):
            return ", ".join((GRAPH_MEASURES if name == "graph_measures" else MEASURES).built_in)
        from neupath.learn.registry import learning_from

        return ", ".join(learning_from(name.removeprefix("from_")))


def takes_options(command: Callable[..., None]) -> Callable[..., None]:
    """Replace each parameter of a command that is a question, or a part of one, by flags and arguments.

    Those of the first parameter come last: they say how to read GRAPH.
    """
    hints = get_type_hints(command, include_extras=True)
    kinds: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    every = {name: dict(options_of(kind, "cli")) for name, kind in kinds.items()}
    made = {name: [(about, _parameter(each, about, own)) for each, about in own.items()] for name, own in every.items()}
    others = [each for name, each in signature(command).parameters.items() if name not in kinds]
    arguments = [each for own in made.values() for about, each in own if about.argument is not None]
    first, *rest = ([pair for pair in own if pair[0].argument is None] for own in made.values())
    asked = [pair for own in rest or [first] for pair in own]
    asked.sort(key=lambda pair: (pair[1].default is not Parameter.empty, _place_in_help(pair[0])))
    options = [*(each for _, each in asked), *others, *(each for _, each in first if rest)]
    parameters = [each.replace(kind=Parameter.KEYWORD_ONLY) for each in (*arguments, *options)]

    @wraps(command)
    def run(**values: Any) -> None:
        for name, kind in kinds.items():
            given = {each: values.pop(each.name) for each in every[name]}
            values[name] = kind(**{each.name: _read(each, value) for each, value in given.items() if value is not None})
        command(**values)

    run.__annotations__ = {each.name: hints.get(each.name, each.annotation) for each in parameters}
    run.__signature__ = signature(command).replace(parameters=parameters)  # type: ignore[attr-defined]
    return run


_FIRST = ("-p", "-m", "-k")


def _place_in_help(about: Option) -> int:
    return next((place for place, flag in enumerate(_FIRST) if flag in about.flags), len(_FIRST))


def _parameter(each: Field[Any], about: Option, every: Mapping[Field[Any], Option]) -> Parameter:
    """Return the flag or argument that takes a field; its help names others as they are typed."""
    spellings = {other.name: _spelling(other, option) for other, option in every.items()}
    help = spell_parameters(about.help.format_map(_Names()), lambda name: spellings.get(name, name))
    annotation = _flag_type(each.type)
    default = None if each.default == () else each.default
    if about.default_from is not None:
        module, _, name = about.default_from.partition(":")
        default = getattr(import_module(module), name)
    shown = about.default_text or True
    info: Any
    if about.argument is not None:
        info = typer.Argument(metavar=about.argument, help=help, show_default=shown)
    else:
        help = f"{help.removesuffix('.')}; repeat for more." if annotation == list[str] | None else help
        info = typer.Option(
            *(about.flags or (_spelling(each, about),)), help=help, show_default=shown, envvar=about.env,
            metavar=about.metavar, hidden=about.hidden,
        )  # fmt: skip
    empty = Parameter.empty if default is MISSING else default
    return Parameter(each.name, Parameter.KEYWORD_ONLY, default=empty, annotation=Annotated[annotation, info])


def _spelling(each: Field[Any], option: Option) -> str:
    """Return how users write a field: its first flag, or its argument."""
    if option.argument is not None:
        return option.argument.strip("[].")
    return option.flags[0] if option.flags else f"--{each.name.replace('_', '-')}"


def _flag_type(hint: Any) -> Any:
    """Return the type by which a flag takes a field: a list where it may be given several times."""
    parts = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    if any(get_origin(part) is Sequence for part in parts):
        return str | None if _is_numbers(hint) else list[str] | None
    base = Path if hint is Any or Path in parts else str if str in parts else hint
    return base | None if hint is Any or NoneType in parts else base


def _is_numbers(hint: Any) -> bool:
    return Sequence[float] in (hint, *get_args(hint))


def _read(each: Field[Any], value: Any) -> Any:
    """Return the value of a field; numbers stand in one text with commas between them."""
    if not _is_numbers(each.type):
        return value
    try:
        return [float(number) for number in value.split(",")]
    except ValueError:
        raise QueryError(
            f"‹{each.name}› is {value!r}; give numbers with commas between them, such as 2,1", parameter=each.name
        ) from None


# ---- Options that many commands have -------------------------------------------------------------
class OutputFlags(Question):
    """The options that print a table for programs, instead of for people."""

    as_json: bool = option("Print JSON.", "--json", default=False)
    as_csv: bool = option("Print the table as CSV, with all digits.", "--csv", default=False)
    as_tsv: bool = option("The same with tabs between the columns.", "--tsv", default=False)

    def check(self) -> None:
        """Raise if two ways are given."""
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


# ---- The graph to read ---------------------------------------------------------------------------
class DataFolder(Question):
    """Where graphs may be named."""

    data: Path | None = option("A folder in which GRAPH may be named.", default=None, env="NEUPATH_DATA")


class GraphSource(DataFolder):
    """GRAPH, and the options for reading it."""

    graph: str = option(
        "A built-in name, a folder of tables, a file of triples, RDF, JSON, a .mat or GraphML file, a store, "
        "or a database: postgresql://host/name, a SQLite or a DuckDB file. Files may be at s3:// or gs://.",
        argument="GRAPH",
    )
    config: Path | None = option("A graph.toml for what cannot be detected: columns, types, relations.", default=None)
    duplicates: str | None = option("Parallel edges: count (each is a path), drop, or error.", default=None)
    schema: str | None = option("Of a database: the schema of its tables, if not its own.", default=None)
    tables: str | None = option("Of a database: the tables to read, such as users,orders.", default=None)

    def load(self, as_of: int | None = None, *, with_notes: bool = True) -> HIN:
        """Read the graph, with progress bars, and print notes on how it was read."""
        with ProgressBars() as bars, warnings.catch_warnings():
            if not with_notes:
                warnings.simplefilter("ignore", SourceWarning)
            return load(self.graph, **self.options(), as_of=as_of, progress=bars)

    def options(self) -> dict[str, Any]:
        """Return how to read the graph, as the library's parameters."""
        return {name: value for name, value in vars(self).items() if name != "graph"}


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
