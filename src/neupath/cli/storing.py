"""import, update, export and check: graphs that stay on disk and change."""

from pathlib import Path
from typing import Annotated, Any

import typer

from neupath.cli.console import StoppedError, err, print_json
from neupath.cli.options import AsOf, ConfigFile, Data, DuplicatesOption, Graph, Json
from neupath.datasets import import_store, write_folder
from neupath.errors import QueryError
from neupath.progress import ProgressBars
from neupath.store import Store, open_store, read_batch
from neupath.store import check as check_store

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
    bars = ProgressBars(err)
    with bars.stages() as stages:
        store = import_store(
            source, to, config=config, duplicates=choice, data=data, memory_limit=memory_limit,
            progress=bars.over, stages=stages,
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
        batch = read_batch(add or (), remove or ())
        if len(batch):
            opened.update(batch)
        facts = opened.facts()
        if compact:
            _compact(opened, facts.version)
    if as_json:
        print_json({"version": facts.version, "nodes": facts.nodes, "edges": facts.edges, "lines": len(batch)})
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
