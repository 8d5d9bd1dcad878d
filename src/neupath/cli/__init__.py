"""The command line: one command a verb; parse, one library call, render."""

import os
import sys
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from neupath.cli.demo import demo
from neupath.cli.infer_command import infer
from neupath.cli.join_command import join
from neupath.cli.search_commands import explain, info, paths, search
from neupath.cli.serve_command import serve
from neupath.cli.store_commands import check, datasets_app, export, import_, update
from neupath.cli.terminal import CommandError, StoppedError, printable
from neupath.cli.train_commands import evaluate, reproduce, train
from neupath.errors import NeuPathError

_INTERRUPTED = 130


class _Group(TyperGroup):
    """Renders an error of the library in the words of the command that caused it."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except NeuPathError as error:
            command = self.commands.get(ctx.invoked_subcommand, self)
            raise CommandError(error.render(partial(_spell, command))) from error


def _spell(command: Any, parameter: str) -> str:
    """Return the flag or the argument of a command that sets a parameter, or its name where the command has none."""
    for option in command.params:
        if option.name == parameter:
            return option.opts[0] if option.opts[0].startswith("-") else str(option.metavar).rstrip(".")
    return parameter


app = typer.Typer(
    cls=_Group,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="\n\n".join(
        (
            "Find the most similar entities in a typed graph, and see why.",
            "GRAPH is a built-in name (toy, stdlib), a folder of tables (CSV, TSV, Parquet; one file a relation, or "
            "nodes + edges), a file of triples, a .mat or GraphML file, or a store ([bold]neupath import[/bold]).",
            "A meta-path says what makes two entities similar: [bold]movie-actor-movie[/bold] means sharing actors. "
            "Initials do where they are clear (MAM). Where the types don't decide, name the relation and its "
            "direction: [bold]paper -cites-> paper <-cites- paper[/bold].",
            "Start with:  [bold]neupath demo[/bold]",
        )
    ),
)
for command in (
    demo,
    info,
    paths,
    search,
    explain,
    infer,
    join,
    train,
    evaluate,
    reproduce,
    serve,
    update,
    export,
    check,
):
    app.command()(command)
app.command("import")(import_)
app.add_typer(datasets_app, name="datasets")


@app.callback(invoke_without_command=True)
def _root(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        from neupath import __version__

        print(f"neupath {__version__}")
        raise typer.Exit


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command; an error a user can mend is one line and exit code 2."""
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # torch's threads leave the cores to others while they wait
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal that cannot show a character still shows the rest
    try:
        code = app(args=None if arguments is None else list(arguments), prog_name="neupath", standalone_mode=False)
        sys.stdout.flush()
    except CommandError as error:
        _fail(str(error), 2)
    except StoppedError as stop:
        _fail(str(stop), _INTERRUPTED)
    except (KeyboardInterrupt, typer.Abort):
        _fail("interrupted", _INTERRUPTED)
    except BrokenPipeError:  # whoever read the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        _fail(f"cannot write the output: {error.strerror or error}", 1)
    except Exception as error:
        if not hasattr(error, "format_message"):  # what the command-line parser says of a wrong call
            raise
        _fail(f"{error.format_message()} (neupath --help teaches)", 2)
    if code == _INTERRUPTED:  # which is all that the command-line parser makes of Ctrl-C
        _fail("interrupted", _INTERRUPTED)
    sys.exit(code if isinstance(code, int) else 0)


def _fail(message: str, code: int) -> None:
    print(f"error: {printable(message)}", file=sys.stderr)
    sys.exit(code)
