"""Every example in the README and the docs runs and prints the output shown."""

import contextlib
import io
import re
import shlex
import sys
import tomllib
from pathlib import Path

import pytest

from neupath.cli.program import Program
from neupath.io.graph_toml import Config, read_config
from tests.command_line import Result, Run

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def write_files(page: Path, folder: Path) -> None:
    """Write the files that a page shows: blocks that begin with ```csv shop/orders.csv."""
    text = page.read_text(encoding="utf-8")
    for name, content in re.findall(r"^```\w+ (\S+)\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        assert not path.exists(), f"{page.name} shows two files {name}"
        path.write_text(content, encoding="utf-8")


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=lambda page: page.name)
@pytest.mark.slow
def test_python_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("networkx")
    write_files(page, tmp_path)
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        for code in blocks(page, "python"):
            exec(compile(code, str(page), "exec"), namespace)
    if page.name == "README.md" and sys.version_info[:2] == (3, 11):  # what it shows is the library of Python 3.11
        assert printed.getvalue() in blocks(page, "text")


def commands() -> list[tuple[Path, str, str]]:
    examples = []
    for page in PAGES:
        for block in blocks(page, "console"):
            for part in re.split(r"^\$ neupath ", block, flags=re.MULTILINE)[1:]:
                command, _, output = part.partition("\n")
                examples.append((page, command, output))
    return examples


@pytest.mark.parametrize(("page", "command", "output"), commands(), ids=lambda part: str(part)[-40:].split("\n")[0])
def test_commands_print_what_is_shown(
    page: Path, command: str, output: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(page, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")  # as in a terminal: pages show no longer lines
    assert_prints(run(*shlex.split(command)), output)


def assert_prints(result: Result, output: str) -> None:
    assert result.code == 0, result.err
    assert [line.rstrip() for line in result.out.splitlines()] == output.splitlines()


def lines_of_commands() -> list[str]:
    """Return the commands that pages only list, because they need a server or a graph that is not here."""
    texts = [block for page in PAGES for block in (*blocks(page, "text"), *blocks(page, "sh"))]
    return [line for text in texts for line in text.splitlines() if line.startswith("neupath ")]


@pytest.mark.parametrize("line", lines_of_commands(), ids=lambda line: line[8:48])
def test_commands_that_are_only_listed_take_these_options(line: str) -> None:
    name, *arguments = shlex.split(line, comments=True)[1:]
    command = Program(name="neupath").load(name)
    if hasattr(command, "commands"):
        command = command.commands[arguments.pop(0)]
    values, rest, _ = command.make_parser(command.context_class(command)).parse_args(arguments)
    assert values
    assert not rest


@pytest.mark.parametrize("block", blocks(ROOT / "docs" / "graphs.md", "toml"), ids=lambda block: block[:20])
def test_a_graph_toml_that_is_shown_can_be_read(block: str, tmp_path: Path) -> None:
    (tmp_path / "graph.toml").write_text(block, encoding="utf-8")
    assert read_config(tmp_path / "graph.toml") != Config()


def test_the_settings_of_a_service_that_are_shown_are_options() -> None:
    (block,) = blocks(ROOT / "docs" / "operations.md", "toml")
    assert set(tomllib.loads(block)) <= {option.name for option in Program(name="neupath").load("serve").params}


def test_there_are_examples() -> None:
    assert len(commands()) >= 3
    assert sum(len(blocks(page, "python")) for page in PAGES) >= 3


def stories() -> list[tuple[str, str]]:
    """Return the commands of docs/stories.md over public graphs, and what each prints."""
    parts = [part for block in blocks(ROOT / "docs" / "stories.md", "data") for part in block.split("$ neupath ")[1:]]
    return [(command, output) for command, _, output in (part.partition("\n") for part in parts)]


@pytest.mark.parametrize("command", [command for command, _ in stories()], ids=lambda command: command[:40])
@pytest.mark.slow
def test_stories_print_what_is_shown(command: str, data: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEUPATH_DATA", str(data))
    monkeypatch.setenv("COLUMNS", "80")
    assert_prints(run(*shlex.split(command)), dict(stories())[command])
