"""import, update, export and check a store; datasets lists the known graphs and fetches them."""

from pathlib import Path
from typing import Annotated

import typer
from rich.progress import DownloadColumn

from neupath.cli.terminal import (
    INTERRUPTED,
    AsOfOption,
    CommandError,
    CommandGroup,
    GraphSource,
    JsonOption,
    ProgressBars,
    print_json,
    reads_graph,
    stdout,
)
from neupath.errors import QueryError
from neupath.io import BUILT_IN, PUBLIC, fetch, import_store, public_dataset, write_folder
from neupath.store import check as check_store
from neupath.store import open_store, read_update

# ---- import, update, export and check ------------------------------------------------------------
Folder = Annotated[Path, typer.Argument(metavar="STORE", help="The folder of a store, made by 'neupath import'.")]


@reads_graph
def import_(
    source: GraphSource,
    to: Annotated[Path, typer.Option("--to", help="The folder of the new store.")],
    memory_limit: Annotated[
        str | None,
        typer.Option(
            "--memory-limit",
            help="For tables: memory for sorting and joining, such as 2GiB, before the disk is used; by default half "
            "of the machine's. The whole process needs about half a GiB more.",
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
        print(f"{facts.nodes:,} nodes and {facts.edges:,} edges written to {to}, version {facts.version}")


def update(
    store: Folder,
    add: Annotated[
        list[Path] | None,
        typer.Option("--add", help="A CSV of edges (relation,source,target,weight) or nodes (type,id,name), or a TSV."),
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
    and added has the new weight. When the command ends, the change is on disk.

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
        print(f"version {facts.version}: {facts.nodes:,} nodes, {facts.edges:,} edges")


def export(
    store: Folder,
    to: Annotated[Path, typer.Option("--to", help="A new folder for the tables.")],
    as_of: AsOfOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write a store as a folder of Parquet tables, which imports back as the same graph.

    Example:  neupath export library.store --to tables
    """
    folder = write_folder(open_store(store).hin(as_of), to)
    if as_json:
        print_json({"folder": str(folder)})
    else:
        print(folder)


def check(store: Folder, as_json: JsonOption = False) -> None:
    """Check a store: checksums, counts, ends of edges, and that snapshots agree with the database.

    The exit code is 1 if something is wrong.

    Example:  neupath check library.store
    """
    report = check_store(store)
    if as_json:
        print_json(report.to_dict())
    elif not report.problems:
        versions = f"version {report.version}, kept from {report.oldest}"
        print(f"{store} is sound: {report.nodes:,} nodes, {report.edges:,} edges, {versions}")
    for problem in report.problems if not as_json else ():
        print(f"wrong: {problem}")
    if report.problems:
        raise typer.Exit(1)


# ---- datasets ------------------------------------------------------------------------------------
datasets_app = typer.Typer(cls=CommandGroup)


@datasets_app.callback(invoke_without_command=True)
def datasets(context: typer.Context, as_json: JsonOption = False) -> None:
    """List the built-in and the known public graphs; fetch a public one with 'get'."""
    if context.invoked_subcommand is not None:
        return
    built_in = [{"name": name, "about": about, "origin": "built in"} for name, (about, _) in BUILT_IN.items()]
    if as_json:
        public = [{"name": d.name, "about": d.about, "origin": d.origin, "licence": d.licence} for d in PUBLIC.values()]
        print_json({"built_in": built_in, "public": public})
        return
    for entry in built_in:
        _print_entry(entry["name"], entry["about"], "built in")
    for dataset in PUBLIC.values():
        how = f"neupath datasets get {dataset.name}" if dataset.files else dataset.by_hand
        _print_entry(dataset.name, dataset.about, f"{dataset.origin}; licence: {dataset.licence}; {how}")
    print("\nAlso: any folder of CSV, TSV or Parquet tables, a file of triples, a .mat or GraphML file.")


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
        print(folder)
