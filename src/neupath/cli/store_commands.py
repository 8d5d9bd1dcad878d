"""init describes a source; import, update, export and check work on stores; datasets lists and fetches known graphs."""

from pathlib import Path
from typing import Annotated

import typer
from rich.progress import DownloadColumn
from rich.text import Text

from neupath._runtime.files import check_folder, write_text
from neupath.cli.program import INTERRUPTED, CommandError, CommandGroup, printable
from neupath.cli.terminal import (
    DataFolder,
    GraphSource,
    JsonOption,
    OutputFlags,
    ProgressBars,
    note,
    plain_table,
    print_json,
    print_text,
    stdout,
    takes_options,
    titled,
)
from neupath.errors import QueryError
from neupath.io import BUILT_IN, PUBLIC, fetch, import_store, public_dataset, write_folder
from neupath.io.draft import Draft, DraftQuestion, check_draft, draft_of, explain_source
from neupath.requests import AsOf
from neupath.store import check as check_store
from neupath.store import open_store, read_update

# ---- import, update, export and check ------------------------------------------------------------
Folder = Annotated[Path, typer.Argument(metavar="STORE", help="The folder of a store, made by 'neupath import'.")]


@takes_options
def import_(
    source: GraphSource,
    to: Annotated[Path, typer.Option("--to", help="The folder of the new store.")],
    memory_limit: Annotated[
        str | None,
        typer.Option(
            "--memory-limit",
            help="For tables: memory for sorting edges, such as 2GiB, before the disk is used; by default half of the "
            "machine's. The whole process needs about half a GiB more, and some 100 bytes for each node.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Write a graph as a store: a folder that takes updates, keeps versions, and works as GRAPH everywhere.

    Tables are read in batches and may be larger than memory; other sources are
    read whole.

    Examples:
      neupath import stdlib --to library.store
      neupath import tables/ --to graph.store --memory-limit 2GiB
    """
    with ProgressBars() as bars:
        store = import_store(source.graph, to, **source.options(), memory_limit=memory_limit, progress=bars)
    facts = open_store(store).facts()
    if as_json:
        print_json({"store": str(to), "version": facts.version, "nodes": facts.nodes, "edges": facts.edges})
    else:
        print_text(f"{facts.nodes:,} nodes and {facts.edges:,} edges written to {to}, version {facts.version}")


def update(
    store: Folder,
    add: Annotated[
        list[Path] | None,
        typer.Option(
            "--add",
            help="A CSV or TSV of edges (relation,source,target,weight) or nodes (type,id,name), and attributes.",
        ),
    ] = None,
    remove: Annotated[
        list[Path] | None, typer.Option("--remove", help="A table of edges or nodes to remove, as for --add.")
    ] = None,
    compact: Annotated[
        bool, typer.Option("--compact", help="Merge old changes into the tables and write a new snapshot.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Change a store: everything that is given or, if one line is wrong, nothing.

    Adding an edge that exists adds to its weight; an edge that is both removed
    and added has the new weight. Where edges have attributes, each added edge is
    kept with its own. When the command ends, the change is on disk.

    Examples:
      neupath update library.store --add nodes.csv --add edges.csv
      neupath update library.store --remove old-edges.csv
      neupath update library.store --compact
    """
    if not add and not remove and not compact:
        raise QueryError("nothing to change; give --add FILE, --remove FILE or --compact")
    with open_store(store) as opened:
        change = read_update(add or (), remove or ())
        if len(change):
            opened.update(change)
        facts = opened.facts()
        if compact:
            try:
                opened.compact()
            except KeyboardInterrupt as stop:
                message = f"interrupted; version {facts.version} is written, and the store is not compacted"
                raise CommandError(message, INTERRUPTED) from stop
    if as_json:
        print_json({"version": facts.version, "nodes": facts.nodes, "edges": facts.edges, "lines": len(change)})
    else:
        print_text(f"version {facts.version}: {facts.nodes:,} nodes, {facts.edges:,} edges")


@takes_options
def export(
    store: Folder,
    to: Annotated[Path, typer.Option("--to", help="A new folder for the tables.")],
    version: AsOf,
    as_json: JsonOption = False,
) -> None:
    """Write a store as a folder of Parquet tables, which imports back as the same graph.

    Example:  neupath export library.store --to tables
    """
    folder = write_folder(open_store(store).hin(version.as_of), to)
    if as_json:
        print_json({"folder": str(folder)})
    else:
        print_text(folder)


def check(
    store: Folder,
    accept_loss: Annotated[
        bool,
        typer.Option(
            "--accept-loss", help="Go on with what is left of a store that lost updates or whose log is damaged."
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Check a store: checksums, counts, ends of edges, and that snapshots agree with the database.

    The exit code is 1 if something is wrong.

    Example:  neupath check library.store
    """
    report = check_store(store, accept_loss=accept_loss)
    if as_json:
        print_json(report.to_dict())
    elif not report.problems:
        versions = f"version {report.version}, kept from {report.oldest}"
        print_text(f"{store} is sound: {report.nodes:,} nodes, {report.edges:,} edges, {versions}")
    for problem in report.problems if not as_json else ():
        print_text(f"wrong: {problem}")
    if report.problems:
        raise typer.Exit(1)


# ---- datasets ------------------------------------------------------------------------------------
datasets_app = typer.Typer(cls=CommandGroup)


@datasets_app.callback(invoke_without_command=True)
@takes_options
def datasets(context: typer.Context, output: OutputFlags) -> None:
    """List the built-in and the known public graphs; fetch a public one with 'get'."""
    if context.invoked_subcommand is not None:
        return
    built_in = [{"name": name, "about": about, "origin": "built in"} for name, (about, _) in BUILT_IN.items()]
    if not output.is_text:
        public = [{"name": d.name, "about": d.about, "origin": d.origin, "licence": d.licence} for d in PUBLIC.values()]
        if output.as_json:
            print_json({"built_in": built_in, "public": public})
        else:
            output.print_table(("name", "about", "origin", "licence"), [*built_in, *public])
        return
    for entry in built_in:
        _print_entry(entry["name"], entry["about"], "built in")
    for dataset in PUBLIC.values():
        how = f"neupath datasets get {dataset.name}" if dataset.files else dataset.by_hand
        _print_entry(dataset.name, dataset.about, f"{dataset.origin}; licence: {dataset.licence}; {how}")
    print_text(
        "\nAlso: any folder of CSV, TSV or Parquet tables, a file of triples, RDF, JSON, a .mat or GraphML file."
    )


def _print_entry(name: str, about: str, origin: str) -> None:
    stdout.print(f"[bold]{name:<10}[/bold] {about}", highlight=False, soft_wrap=True)
    stdout.print(f"           [dim]{origin}[/dim]", highlight=False, soft_wrap=True)


@datasets_app.command()
def get(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The graph's name, as 'neupath datasets' lists it.")],
    to: Annotated[Path | None, typer.Option("--to", help="A new folder; by default one in the cache.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Fetch a public graph, verify its checksum, and cache it, so that its name works as GRAPH."""
    with ProgressBars(DownloadColumn()) as bars:
        folder = fetch(public_dataset(name), to, bars)
    if as_json:
        print_json({"name": name, "folder": str(folder)})
    else:
        print_text(folder)


# ---- init ----------------------------------------------------------------------------------------
@takes_options
def init(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="A folder of tables, or a table file.")],
    out: Annotated[
        Path | None, typer.Option("--out", help="The file to write; graph.toml in the folder, or FILE.toml.")
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Ask nothing: take the first choice of every question.")
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show which rule reads the tables and which came near; write nothing.")
    ] = False,
    *,
    folder: DataFolder,
) -> None:
    """Look at tables, say what neupath would make of each column, and write a commented graph.toml.

    It shows the first values of each column and what they are read as, asks
    where a rule decides and you may want otherwise, and writes what follows:
    edit that file if something is still wrong. A folder's graph.toml is read by
    every command; for a single file, give it with --config.

    Examples:
      neupath init my-tables/
      neupath init ratings.csv --yes --out ratings.toml
      neupath init ratings.csv --explain
      neupath info ratings.csv --config ratings.toml
    """
    if explain:
        table = plain_table("rule", "looks at", "outcome")
        for row in explain_source(source, folder.data):
            table.add_row(*(Text(printable(cell)) for cell in row))
        stdout.print(titled(f"How neupath recognises {source}", table, ""))
        return
    draft = draft_of(source, folder.data)
    target = draft.default_out if out is None else out
    check_folder(target.parent)
    if target.is_dir():
        raise QueryError(f"{target} is a folder; give the name of a file with --out")
    if yes and target.exists():
        raise _taken(target)
    render_draft(draft)
    if yes and draft.refusal:
        note(f"{draft.refusal}; this reads it as the first choice, so check it")
    for question in draft.questions():
        draft = question.apply(draft, 0 if yes else _ask(question))
    check_draft(draft)
    text = draft.to_toml()
    if target.exists() and _read_line(f"{target} exists; replace it? [y/N] ").lower() not in ("y", "yes"):
        raise _taken(target)
    write_text(target, text)
    option = "" if target == draft.default_out and draft.source.is_dir() else f" --config {target}"
    note(f"written to {target}; neupath info {source}{option} shows the graph")


def render_draft(draft: Draft) -> None:
    """Show the tables of a source: each column with its first values and what it is read as."""
    for label, columns in draft.columns().items():
        table = plain_table("column", "first values", "read as")
        for column in table.columns:
            column.overflow = "fold"
        for name, values, use in columns:
            shown = ", ".join(value[:30] for value in values)
            table.add_row(Text(printable(name)), Text(printable(shown), style="dim"), Text(printable(use)))
        stdout.print(titled(label, table, ""))


def _ask(question: DraftQuestion) -> int:
    """Print a question with its choices; return the number of the chosen one, the first at an empty answer."""
    stdout.print("\n".join(map(printable, question.text.splitlines())), highlight=False, markup=False)
    for number, choice in enumerate(question.choices, 1):
        stdout.print(f"  {number}  {printable(choice)}", highlight=False, markup=False)
    while True:
        answer = _read_line("1: ").lower()
        matching = [n for n, choice in enumerate(question.choices) if answer and choice.lower().startswith(answer)]
        if not answer:
            return 0
        if answer.isdecimal() and 1 <= int(answer) <= len(question.choices):
            return int(answer) - 1
        if len(matching) == 1:
            return matching[0]
        stdout.print(f"{answer!r} is not a choice; give a number from 1 to {len(question.choices)}.", markup=False)


def _taken(target: Path) -> QueryError:
    return QueryError(f"{target} exists and stays as it is; remove it, or give another name with --out")


def _read_line(prompt: str) -> str:
    try:
        return input(prompt).strip()
    except EOFError as error:
        raise CommandError("the answers ended before the questions; --yes takes the first choice of each") from error
