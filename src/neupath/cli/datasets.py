"""datasets: which graphs are built in or known, and how to fetch one."""

from pathlib import Path
from typing import Annotated

import typer

from neupath.cli.console import err, out, print_json
from neupath.cli.options import Json
from neupath.datasets import BUILT_IN, PUBLIC, fetch, public_dataset
from neupath.progress import ProgressBars

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
        folder = fetch(public_dataset(name), bar, to)
    if as_json:
        print_json({"name": name, "folder": str(folder)})
    else:
        print(folder)
