"""The options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

from neupath.labels import Protocol
from neupath.measures import GRAPH_MEASURES, MEASURES

Graph = Annotated[
    str,
    typer.Argument(
        metavar="GRAPH",
        help="A built-in name, a folder of tables, a file of triples, a .mat or GraphML file, or a store.",
    ),
]
MetaPathOption = Annotated[
    str | None, typer.Option("--path", "-p", help="The meta-path, such as movie-actor-movie or MAM.")
]
Measure = Annotated[str, typer.Option("--measure", "-m", help=f"One of {', '.join(MEASURES)}.")]
AnyMeasure = Annotated[
    str,
    typer.Option(
        "--measure",
        "-m",
        help=f"One of {', '.join(MEASURES)}; or, over the whole graph, without --path: {', '.join(GRAPH_MEASURES)}.",
    ),
]
TypeOption = Annotated[
    str | None, typer.Option("--type", help="The type of QUERY, for a measure without --path; found where it is clear.")
]
Model = Annotated[
    Path | None, typer.Option("--model", help="A folder with a saved model or measure, instead of --path.")
]
ConfigFile = Annotated[
    Path | None, typer.Option("--config", help="A graph.toml for what cannot be detected: columns, types, relations.")
]
DuplicatesOption = Annotated[
    str | None, typer.Option("--duplicates", help="Parallel edges: count (each is a path), drop, or error.")
]
AsOf = Annotated[int | None, typer.Option("--as-of", help="An earlier version of a store; the last one by default.")]
Data = Annotated[
    Path | None, typer.Option("--data", envvar="NEUPATH_DATA", help="A folder in which GRAPH may be named.")
]
ProtocolOption = Annotated[
    Protocol, typer.Option("--protocol", help="Labels: strict (5 best, 5 random a query) or paper (the 10 best).")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
