"""The program: its commands, each imported when it is run, and how errors are reported."""

import codecs
import errno
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from importlib.abc import MetaPathFinder
from typing import Annotated, Any, NoReturn
from unicodedata import category

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

from neupath._runtime.plugins import Plugins, Registry
from neupath.errors import NeuPathError, PluginWarning, SourceWarning, hide_password

_COMMANDS = {
    "demo": (
        "neupath.cli.demo:demo",
        "Run the main commands, end to end, on Python's own standard library as a graph.",
    ),
    "init": (
        "neupath.cli.store_commands:init",
        "Look at tables, say what neupath would make of each column, and write a commented graph.toml.",
    ),
    "info": (
        "neupath.cli.search_commands:info",
        "Describe a graph: types, relations, degrees, and the meta-paths to search with.",
    ),
    "paths": ("neupath.cli.search_commands:paths", "List the meta-paths of a graph, shortest first."),
    "find": (
        "neupath.cli.search_commands:find",
        "Find nodes by name or id, whatever the case and accents, also if they are misspelled.",
    ),
    "search": ("neupath.cli.search_commands:search", "Find the entities most similar to QUERY."),
    "explain": (
        "neupath.cli.search_commands:explain",
        "Show what makes A and B similar: the nodes that their paths run through, each with its exact share of the "
        "score.",
    ),
    "compare": (
        "neupath.cli.search_commands:compare",
        "Set the hits of QUERY by several meta-paths or measures side by side, with their moves in rank.",
    ),
    "relate": (
        "neupath.cli.search_commands:relate",
        "Show every meta-path that joins A and B: edges first, then by length, then by the rank of B.",
    ),
    "whatif": (
        "neupath.cli.explain_commands:whatif",
        "Find the fewest edges or nodes that decide whether B is among the best hits of A.",
    ),
    "infer": (
        "neupath.cli.infer_command:infer",
        "Find the meta-paths, their weights, and the measure behind labelled pairs.",
    ),
    "prepare": (
        "neupath.cli.join_command:prepare",
        "Write an index of a measure along a meta-path, which any process opens and searches without the graph.",
    ),
    "join": (
        "neupath.cli.join_command:join",
        "Find the most similar targets of every node, and write them to a Parquet or CSV file.",
    ),
    "train": (
        "neupath.cli.train_commands:train",
        "Learn similarity from labelled pairs, or from labels that an exact measure gives for 400 queries.",
    ),
    "evaluate": (
        "neupath.cli.train_commands:evaluate",
        "Compare a saved model with an exact measure, on unseen queries against all targets, or with labelled pairs.",
    ),
    "serve": ("neupath.cli.serve_command:serve", "Serve graphs over HTTP, with an explorer page for a browser."),
    "mcp": (
        "neupath.cli.serve_command:mcp",
        "Offer graphs to an assistant as MCP tools: describe, find, neighbours, search, explain, relate, infer.",
    ),
    "update": (
        "neupath.cli.store_commands:update",
        "Change a store: everything that is given or, if one line is wrong, nothing.",
    ),
    "export": (
        "neupath.cli.store_commands:export",
        "Write a store as a folder of Parquet tables, which imports back as the same graph.",
    ),
    "check": (
        "neupath.cli.store_commands:check",
        "Check a store: checksums, counts, ends of edges, and that snapshots agree with the database.",
    ),
    "import": (
        "neupath.cli.store_commands:import_",
        "Write a graph as a store: a folder that takes updates, keeps versions, and works as GRAPH everywhere.",
    ),
    "datasets": (
        "neupath.cli.store_commands:datasets_app",
        "List the built-in and the known public graphs; fetch a public one with 'get'.",
    ),
}
"""Where each command is, and its summary: the first sentence of its help, for `neupath --help` to import none."""


def _check_plugin(_name: str, value: Any) -> str | None:
    is_pair = isinstance(value, tuple) and len(value) == 2 and all(isinstance(part, str) for part in value)
    return None if is_pair else 'a command is a pair of texts: "module:function", and its summary'


COMMANDS: Registry[tuple[str, str]] = Registry(_COMMANDS, Plugins("neupath.commands", _check_plugin, _COMMANDS))
"""All commands; those of plug-ins are looked for where a name is not built in, or all are listed."""
BAD_INPUT, INTERRUPTED = 2, 130


class CommandError(Exception):
    """A command fails with one line and an exit code."""

    def __init__(self, message: str, exit_code: int = BAD_INPUT) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class CommandGroup(TyperGroup):
    """Commands that report an error of the library in the words of the command that was run."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except NeuPathError as error:
            command = self.commands.get(ctx.invoked_subcommand, self)
            raise CommandError(error.render(partial(spell_parameter, command))) from error


class Command(TyperCommand):
    """A command whose help shows no type beside flags: they take no value."""

    def get_params(self, ctx: Any) -> Any:
        parameters = super().get_params(ctx)
        for parameter in parameters:
            if getattr(parameter, "is_flag", False):
                parameter.metavar = ""
        return parameters


class Program(CommandGroup):
    """All commands: their summaries, until one is run."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = {name: TyperCommand(name, help=summary) for name, (_, summary) in _COMMANDS.items()}

    def list_commands(self, ctx: Any) -> list[str]:
        for name, (_, summary) in COMMANDS.items():
            self.commands.setdefault(name, TyperCommand(name, help=summary))
        return super().list_commands(ctx)

    def load(self, name: str) -> Any:
        """Import a command, in place of its summary, and return it."""
        module, _, attribute = (_COMMANDS.get(name) or COMMANDS[name])[0].partition(":")
        command = getattr(import_module(module), attribute)
        alone = typer.Typer(rich_markup_mode="rich")
        if isinstance(command, typer.Typer):
            alone.add_typer(command, name=name)
        else:
            alone.command(name, cls=Command)(command)
        self.commands[name] = get_group(alone).commands[name]
        return self.commands[name]

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] in _COMMANDS or args[0] in COMMANDS:
            from neupath._runtime import log_to_stderr  # commands load logging, the help does not

            self.load(args[0])
            log_to_stderr()
            from neupath.cli.terminal import note_compilation  # commands load it, the help does not

            note_compilation()
        return super().resolve_command(ctx, args)


def spell_parameter(command: Any, parameter: str) -> str:
    """Return the flag or argument by which a command takes a parameter, or the parameter's name if it has none."""
    for option in command.params:
        if option.name == parameter:
            return option.opts[0] if option.opts[0].startswith("-") else str(option.metavar).strip("[].")
    return parameter


app = typer.Typer(
    cls=Program,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="\n\n".join(
        (
            "Find the most similar entities in a typed graph, and see why.",
            "GRAPH is a built-in name (toy, stdlib), a folder of tables (CSV, TSV or Parquet: one file per relation, "
            "or nodes + edges), a file of triples, RDF, JSON, a .mat or GraphML file, a database "
            "(postgresql://host/name, SQLite or DuckDB files), or a store ([bold]neupath import[/bold]); files and "
            "folders may be at s3:// or gs://.",
            "A meta-path says what makes two entities similar: [bold]movie-actor-movie[/bold] means sharing actors. "
            "Initials are enough where they are clear (MAM). Where the types don't decide, name the relation and its "
            "direction: [bold]paper -cites-> paper <-cites- paper[/bold].",
            "Start with:  [bold]neupath demo[/bold]",
        )
    ),
)


@app.callback(invoke_without_command=True)
def _root(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        from neupath import __version__

        print(f"neupath {__version__}")
        raise typer.Exit


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command. An error that the user can fix is one line and exit code 2."""
    _prepare(is_own_process=arguments is None)
    try:
        with _notes_on_sources():
            code = app(args=None if arguments is None else list(arguments), prog_name="neupath", standalone_mode=False)
        sys.stdout.flush()
    except CommandError as error:
        _fail(str(error), error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        _fail("interrupted", INTERRUPTED)
    except BrokenPipeError:  # the reader of the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        if shortage := _shortage(error):
            _fail(shortage, BAD_INPUT)
        _fail(f"cannot write the output: {error.strerror or error}", 1)
    except Exception as error:
        if shortage := _shortage(error):
            _fail(shortage, BAD_INPUT)
        if not hasattr(error, "format_message"):  # only errors of the command-line parser have it
            raise
        if message := error.format_message():  # without a command, the help is printed already
            command = getattr(getattr(error, "ctx", None), "command_path", "neupath")
            _fail(f"{message} ({command} --help says more)", BAD_INPUT)
        sys.exit(BAD_INPUT)
    if code == INTERRUPTED:  # the command-line parser turns Ctrl-C into an exit code
        _fail("interrupted", INTERRUPTED)
    sys.exit(code if isinstance(code, int) else 0)


def _prepare(*, is_own_process: bool) -> None:
    """Prepare the output, and what loads libraries."""
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # torch's threads leave the cores to others while they wait
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=_STAND_INS)  # a terminal that cannot show a character still shows the rest
    if is_own_process:
        sys.meta_path.insert(0, _PandasOnlyForPlugins())


class _PandasOnlyForPlugins(MetaPathFinder):
    """Keeps pyarrow from importing pandas, 0.2 s, to ask whether a list or a text is of pandas: here none is.

    Where plug-ins are installed it is imported, since pyarrow asks but once.
    """

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> None:  # noqa: ARG002
        if fullname == "pandas" and _importing_package() in ("neupath", "pyarrow") and not _has_plugins():
            raise ModuleNotFoundError("no command needs pandas", name=fullname)


def _importing_package() -> str:
    """Return the package of the code that imports a module, or that calls compiled code that does."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_filename.startswith("<frozen importlib"):
        frame = frame.f_back
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def _has_plugins() -> bool:
    from importlib.metadata import entry_points  # takes a while to import

    every = entry_points()
    others = (entry for group in every.groups if group.startswith("neupath.") for entry in every.select(group=group))
    return any(entry.dist is None or entry.dist.name != "neupath" for entry in others)


_NO_MEMORY = (
    "this needs more memory than there is; free some, raise the limit of the process (ulimit -v) if it has one, or "
    "use a smaller graph"
)


_NO_FILES = "this needs more open files than the system allows; raise the limit, as by 'ulimit -n 4096'"
_SHORT_OF_MEMORY = ("cannot allocate memory", "failed to map segment", "can't start new thread", "out of memory")
"""What libraries say that could not have memory: on loading them, for a thread, or on a GPU."""


def _shortage(error: BaseException | None) -> str | None:
    """Return what the machine lacks, if an error or one that it came of says so."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
            return _NO_FILES
        speaks_of_memory = any(word in str(error).lower() for word in _SHORT_OF_MEMORY)
        if isinstance(error, MemoryError) or (
            isinstance(error, ImportError | RuntimeError | OSError) and speaks_of_memory
        ):
            return _NO_MEMORY
        error = error.__cause__ or error.__context__
    return None


_MOST_NOTES = 3
"""Notes on a graph that a command prints before its result; `info` prints all."""


@contextmanager
def _notes_on_sources() -> Iterator[None]:
    """Print notes on a graph that a command reads, on standard error; `python -W error` does not turn them off."""
    show = warnings.showwarning

    def show_notes(message: Warning | str, *details: Any) -> None:
        if isinstance(message, SourceWarning):
            from neupath.cli import terminal

            shown = message.notes if len(message.notes) <= _MOST_NOTES else message.notes[: _MOST_NOTES - 1]
            for line in shown:
                terminal.note(line)
            if more := len(message.notes) - len(shown):
                terminal.note(f"and {more} more notes on how {message.source} was read; neupath info lists them")
        elif isinstance(message, PluginWarning):
            from neupath.cli import terminal

            terminal.note(str(message))
        else:
            show(message, *details)

    with warnings.catch_warnings():
        warnings.simplefilter("always", SourceWarning)
        warnings.simplefilter("always", PluginWarning)
        warnings.showwarning = show_notes  # type: ignore[assignment]
        yield


def _fail(message: str, code: int) -> NoReturn:
    sentence, colon, toml = message.partition(":\n")  # a graph.toml to paste
    print(f"error: {printable(sentence)}{colon}{printable_lines(toml)}", file=sys.stderr)
    sys.exit(code)


def printable(text: str) -> str:
    """Replace characters that would move the cursor or ring the bell, and hide passwords of URLs."""
    shown = hide_password(text) if ":/" in text else text
    if shown.isprintable():
        return shown
    return "".join(each if is_harmless(each) else "�" for each in shown)


def is_harmless(character: str) -> bool:
    """Whether a terminal shows a character rather than act on it; spaces of all widths are shown."""
    return character.isprintable() or category(character) == "Zs"


def printable_lines(text: str) -> str:
    """Return a text of several lines, of which each is `printable`."""
    return "\n".join(map(printable, text.split("\n")))


# ---- Output in ASCII -----------------------------------------------------------------------------
_IN_ASCII = {
    **dict.fromkeys("█▉▊▋▌", "#"), **dict.fromkeys("▍▎▏", "-"), **dict.fromkeys("—–─", "-"), **dict.fromkeys("×·", "*"),
    "▲": "+", "▼": "-", "…": "...", "²": "2", "√": "sqrt", "→": "->", "←": "<-", "≥": ">=",
    "≤": "<=", "│": "|", "├": "+", "└": "`",
}  # fmt: skip
_TRANSLATION = str.maketrans(_IN_ASCII)
_STAND_INS = "neupath.stand-ins"


def in_ascii(text: str) -> str:
    """Replace the signs that commands print by ASCII ones that look alike; names stay as they are.

    >>> in_ascii("2 × 5 — ███▏")
    '2 * 5 - ###-'
    """
    return text.translate(_TRANSLATION)


def _stand_in(error: UnicodeError) -> tuple[str, int]:
    """Replace what an output's encoding lacks: signs by ASCII ones, letters by a question mark."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(_IN_ASCII.get(c, "?") for c in error.object[error.start : error.end]), error.end


codecs.register_error(_STAND_INS, _stand_in)
