"""Hooks of the site: pages that are made of the program itself, and nothing loaded from other hosts."""

import json
import os
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mkdocs.structure.files import File, Files

from neupath import load
from neupath.cli.program import COMMANDS, Program
from neupath.service.app import make_app, make_service
from neupath.service.graph_registry import GraphHandle

_NOTEBOOKS = Path(__file__).parents[2] / "examples"
_SHIM = "https://unpkg.com/iframe-worker/shim"  # with it the search works in pages opened from a folder


def on_files(files: Files, config: Any) -> Files:
    """Add the generated pages."""
    for path, content in (("reference/cli.md", command_line()), ("reference/http.md", http_api())):
        files.append(File.generated(config, path, content=content))
    for notebook in sorted(_NOTEBOOKS.glob("*.ipynb")):
        files.append(File.generated(config, f"notebooks/{notebook.stem}.md", content=notebook_page(notebook)))
        files.append(File.generated(config, f"notebooks/{notebook.name}", abs_src_path=str(notebook)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Show the name of a file that a block holds, as in "```csv films/movies.csv", above the block."""
    return re.sub(r"^```(\w+) ([^\s=]+)$", r'```\1 title="\2"', markdown, flags=re.MULTILINE)


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Load the shim of the search from the site itself."""
    return output.replace(_SHIM, "../" * page.url.count("/") + "vendor/iframe-worker.js")


# ---- Notebooks -----------------------------------------------------------------------------------
def notebook_page(path: Path) -> str:
    """Return a notebook as a page: its texts and its code."""
    parts = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
    download = f"[Download this notebook]({path.name}), or open `examples/{path.name}` of the repository."
    return "\n\n".join([*parts, download])


# ---- Command line --------------------------------------------------------------------------------
def command_line() -> str:
    """Return a page with every command: its help, arguments and options."""
    os.environ["TERMINAL_WIDTH"] = "100"
    program = Program(name="neupath")
    sections = [_command(f"neupath {name}", program.load(name)) for name in sorted(COMMANDS)]
    about = (
        "Every command prints this with `--help`. `--json` prints one line of JSON where a command has it, `--csv` and "
        "`--tsv` the rows of its table ([output](../searching.md#output-for-people-and-programs))."
    )
    return "\n\n".join(["# Command line", about, *sections])


def _command(name: str, command: Any) -> str:
    parts = [f"## {name}", _help(command.help or "")]
    if hasattr(command, "commands"):
        return "\n\n".join([*parts, *(_command(f"{name} {sub}", each) for sub, each in command.commands.items())])
    rows = [_row(parameter) for parameter in command.params if not getattr(parameter, "hidden", False)]
    table = ["| parameter | meaning | default |", "|---|---|---|", *rows]
    return "\n\n".join([*parts, "\n".join(table)])


def _help(text: str) -> str:
    """Return a help text, its examples as a block of code."""
    about, _, examples = text.partition("Examples:")
    if not examples:
        about, _, examples = text.partition("Example:")
    lines = "\n".join(line.strip() for line in examples.strip().splitlines())
    return about.strip() + (f"\n\n```text\n{lines}\n```" if lines else "")


def _row(parameter: Any) -> str:
    is_option = parameter.param_type_name == "option"
    words = [*parameter.opts, *parameter.secondary_opts] if is_option else [parameter.metavar or parameter.name.upper()]
    default = parameter.default if is_option and not callable(parameter.default) else None
    shown = "" if default in (None, False, True) else f"`{default}`"
    needed = "required" if parameter.required else shown
    return f"| {', '.join(f'`{word}`' for word in words)} | {_cell(parameter.help)} | {needed} |"


def _cell(text: str | None) -> str:
    return " ".join((text or "").split()).replace("|", "\\|").replace("<", "&lt;")


# ---- HTTP ----------------------------------------------------------------------------------------
def http_api() -> str:
    """Return a page with every call of the HTTP API."""
    with TemporaryDirectory() as folder:
        service = make_service({"toy": GraphHandle("toy", load("toy"))}, {}, Path(folder))
        document: dict[str, Any] = make_app(service)._app.openapi()  # type: ignore[attr-defined]
        service.close()
    lines = [
        "# HTTP API",
        "The service describes itself at `/api/openapi.json`; this page is made of it. "
        "[The service](../service.md) has examples of every call.",
    ]
    for path, methods in document["paths"].items():
        for method, call in methods.items():
            lines += [f"## {method.upper()} {path}", call.get("description", ""), _parameters(document, call)]
    return "\n\n".join(line for line in lines if line)


def _parameters(document: dict[str, Any], call: dict[str, Any]) -> str:
    """Return the table of a call's parameters and of the fields of its body."""
    rows = [
        f"| `{each['name']}` | {each['in']} | {_kind(each.get('schema', {}))} | {_cell(each.get('description'))} |"
        for each in call.get("parameters", ())
    ]
    body = call.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    for schema in _resolved(document, body):
        rows += [
            f"| `{name}` | body | {_kind(field)} | {_cell(field.get('description'))} |"
            for name, field in schema.get("properties", {}).items()
        ]
    return "\n".join(["| parameter | in | type | meaning |", "|---|---|---|---|", *rows]) if rows else ""


def _resolved(document: dict[str, Any], schema: dict[str, Any]) -> list[dict[str, Any]]:
    if "$ref" in schema:
        return _resolved(document, document["components"]["schemas"][schema["$ref"].rpartition("/")[2]])
    if "oneOf" in schema:
        return [each for part in schema["oneOf"] for each in _resolved(document, part)]
    return [schema]


def _kind(schema: dict[str, Any]) -> str:
    kinds = [each.get("type", "object") for each in schema.get("anyOf", [schema])]
    return " or ".join(kind for kind in kinds if kind != "null")
