"""Errors name the flags of the command, and --help shows commands that work."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

import neupath
from neupath.cli import app, program
from neupath.cli.program import spell_parameter
from tests.command_line import Run


def commands(program: Any) -> Iterator[Any]:
    for name in program.commands:
        command = program.load(name)
        yield command
        yield from getattr(command, "commands", {}).values()


COMMANDS = {command.name: command for command in commands(typer.main.get_command(app))}


@pytest.mark.parametrize("name", program.COMMANDS)
def test_the_summary_of_a_command_is_the_first_sentence_of_its_help(name: str) -> None:
    assert COMMANDS[name].help.split("\n\n")[0].replace("\n", " ") == program.COMMANDS[name][1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "absent"),
    [
        (["--help"], ("numpy", "scipy", "pyarrow", "neupath.cli.search_commands")),
        (["search", "toy", "Mike", "-p", "APVPA"], ("numba", "pyarrow.compute", "pyarrow.parquet", "neupath.store")),
        (["explain", "toy", "Mike", "Mary", "-p", "APVPA"], ("numba", "pyarrow.compute", "pyarrow.parquet")),
    ],
)
def test_a_command_imports_only_what_it_needs(arguments: list[str], absent: tuple[str, ...]) -> None:
    code = (
        "import sys\nfrom neupath.cli import main\n"
        f"try:\n    main({arguments!r})\n"
        f"finally:\n    print('imported:', [name for name in {absent!r} if name in sys.modules])"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout.splitlines()[-1] == "imported: []"


@pytest.mark.parametrize(
    ("command", "parameter", "spelling"),
    [
        ("search", "metapath", "--metapath"),
        ("search", "node_type", "--node-type"),
        ("search", "k", "-k"),
        ("search", "graph", "GRAPH"),
        ("search", "query", "QUERY"),
        ("paths", "node_type", "NODE_TYPE"),
        ("reproduce", "parts", "PART"),
        ("get", "to", "--to"),
        ("info", "metapath", "metapath"),
    ],
)
def test_parameters_are_spelled_as_the_command_takes_them(command: str, parameter: str, spelling: str) -> None:
    assert spell_parameter(COMMANDS[command], parameter) == spelling


def test_no_command_prints_the_help_alone(run: Run) -> None:
    result = run()
    assert (result.code, "error" in result.err) == (2, False)


def test_errors_of_the_library_name_flags(run: Run) -> None:
    assert run("search", "toy", "Mike", "-p", "APA", "-k", 0).err == "error: -k is 0; ask for at least 1 hit\n"


def test_no_room_below_spells_a_flag() -> None:
    root = Path(neupath.__file__).parent
    for source in root.rglob("*.py"):
        if source.parent != root / "cli":
            messages = re.findall(r"(?:Error|_error)\((.*?)\n", source.read_text(encoding="utf-8"))
            assert not [message for message in messages if re.search(r"\s--[a-z]", message)], source


@pytest.mark.parametrize("name", COMMANDS)
def test_help_fits_into_80_columns(name: str) -> None:
    for line in (COMMANDS[name].help or "").splitlines()[1:]:
        assert len(line) <= 78, line


def examples() -> list[str]:
    return [
        line.strip().removeprefix("Example:").strip()
        for command in COMMANDS.values()
        for line in (command.help or "").splitlines()
        if re.match(r"\s*(Example:)?\s*neupath ", line)
    ]


@pytest.mark.parametrize("example", examples())
def test_examples_of_the_help_are_commands(example: str) -> None:
    _, name, *arguments = shlex.split(example)
    if "--config" in arguments:  # a file that is read at once
        arguments = ["toy", *arguments[arguments.index("--config") + 2 :]]
    with COMMANDS[name].make_context(name, arguments) as context:
        assert context.params
