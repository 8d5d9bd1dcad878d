"""datasets: which graphs are built in or known, and how to fetch one."""

from pathlib import Path
from typing import Annotated, Any

import typer

from neupath.cli.terminal import (
    AsOf,
    ConfigFile,
    Data,
    DuplicatesOption,
    Graph,
    Json,
    ProgressBars,
    StoppedError,
    err,
    out,
    print_json,
)
from neupath.errors import QueryError
from neupath.io import BUILT_IN, PUBLIC, fetch, import_store, public_dataset, write_folder
from neupath.store import Store, open_store, read_update
from neupath.store import check as check_store

# ---- import, update, export and check ------------------------------------------------------------
Folder = Annotated[Path, typer.Argument(metavar="STORE", help="The folder of a store, made by 'neupath import'.")]


def import_(
    source: Graph,
    to: Annotated[Path, typer.Option("--to", help="The folder of the new store.")],
    config: ConfigFile = None,
    duplicates: DuplicatesOption = None,
    data: Data = None,
    memory_limit: Annotated[
        str | None,
        typer.Option(
            "--memory-limit",
            help="For tables: memory for sorting and joining, such as 2GiB, beyond which the disk is used; half of the "
            "machine's by default. The process as a whole needs about half a GiB more.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write a graph as a store: a folder that takes updates, keeps versions, and works as GRAPH everywhere.

    Tables are read in parts and may be larger than memory; other sources are read whole.

    Examples:
      neupath import stdlib --to library.store

      neupath import tables/ --to graph.store --memory-limit 2GiB

    """
    choice: Any = duplicates
    with ProgressBars(err).stages() as progress:
        store = import_store(
            source, to, config=config, duplicates=choice, data=data, memory_limit=memory_limit,
            progress=progress,
        )  # fmt: skip
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
        list[Path] | None, typer.Option("--remove", help="A CSV of edges or nodes to remove; edges and nodes as above.")
    ] = None,
    compact: Annotated[
        bool, typer.Option("--compact", help="Fold old changes into the tables and write a new snapshot.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Change a store: all that is given or, where one line is wrong, nothing.

    An edge that is there gets heavier by the weight added; one that is both removed and added has the new weight. When
    the command ends, the change is on disk.

    Examples:
      neupath update library.store --add new-nodes.csv --add new-edges.csv --remove old-edges.csv

      neupath update library.store --compact

    """
    if not add and not remove and not compact:
        raise QueryError("nothing to change; give --add FILE, --remove FILE or --compact")
    with open_store(store) as opened:
        update = read_update(add or (), remove or ())
        if len(update):
            opened.update(update)
        facts = opened.facts()
        if compact:
            _compact(opened, facts.version)
    if as_json:
        print_json({"version": facts.version, "nodes": facts.nodes, "edges": facts.edges, "lines": len(update)})
    else:
        print(f"version {facts.version}: {facts.nodes:,} nodes, {facts.edges:,} edges")


def _compact(store: Store, version: int) -> None:
    try:
        store.compact()
    except KeyboardInterrupt as stop:
        raise StoppedError(f"interrupted; version {version} is written, and the store is not compacted") from stop


def export(
    store: Folder,
    to: Annotated[Path, typer.Option("--to", help="A new folder for the tables.")],
    as_of: AsOf = None,
    as_json: Json = False,
) -> None:
    """Write a store as a folder of Parquet tables, which imports back as the same graph.

    Example:  neupath export library.store --to tables
    """
    folder = write_folder(open_store(store).hin(as_of), to)
    if as_json:
        print_json({"folder": str(folder)})
    else:
        print(folder)


def check(store: Folder, as_json: Json = False) -> None:
    """Check a store: checksums, counts, ends of edges, and that snapshots are what the database gives.

    The exit code is 1 where something is wrong.

    Example:  neupath check library.store
    """
    found = check_store(store)
    if as_json:
        print_json(found.to_dict())
    elif not found.problems:
        kept = f"version {found.version}, kept from {found.oldest}"
        print(f"{store} is sound: {found.nodes:,} nodes, {found.edges:,} edges, {kept}")
    for problem in found.problems if not as_json else ():
        print(f"wrong: {problem}")
    if found.problems:
        raise typer.Exit(1)


# ---- datasets ------------------------------------------------------------------------------------
datasets_app = typer.Typer(help="List the built-in and the known public graphs; fetch a public one with 'get'.")


@datasets_app.callback(invoke_without_command=True)
def datasets(context: typer.Context, as_json: Json = False) -> None:
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
    out.print(f"[bold]{name:<10}[/bold] {about}", highlight=False, soft_wrap=True)
    out.print(f"           [dim]{origin}[/dim]", highlight=False, soft_wrap=True)


@datasets_app.command()
def get(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The graph's name, as 'neupath datasets' lists it.")],
    to: Annotated[Path | None, typer.Option("--to", help="A new folder; by default it goes to the cache.")] = None,
    as_json: Json = False,
) -> None:
    """Fetch a public graph, check its checksum, and keep it, so that its name works as GRAPH."""
    with ProgressBars(err).download() as bar:
        folder = fetch(public_dataset(name), to, bar)
    if as_json:
        print_json({"name": name, "folder": str(folder)})
    else:
        print(folder)
