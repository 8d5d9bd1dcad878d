"""The command line: one command a verb; parse, one library call, render."""

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer
from rich.console import Console

from neupath.datasets import BUILT_IN, PUBLIC, fetch, load, public_dataset
from neupath.description import describe
from neupath.errors import MissingExtraError, NeuPathError, QueryError, listed
from neupath.evaluation import Evaluation, split_queries
from neupath.evaluation import evaluate as compare
from neupath.explanation import explain as explain_pair
from neupath.graph import HIN
from neupath.labels import Protocol
from neupath.measures import MEASURES, measure_named
from neupath.metapath import enumerate_metapaths
from neupath.nodes import Id, Nodes
from neupath.rendering import (
    ProgressBars,
    printable,
    render_description,
    render_evaluation,
    render_explanation,
    render_hits,
    render_looks,
)
from neupath.saved import load_scorer
from neupath.scorer import Scorer

out = Console()
err = Console(stderr=True)
app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="\n\n".join(
        (
            "Find the most similar entities in a typed graph, and see why.",
            "GRAPH is a built-in name (toy, stdlib), a folder of tables (CSV, TSV, Parquet; one file a relation, or "
            "nodes + edges), a file of triples, or a .mat file.",
            "A meta-path says what makes two entities similar: [bold]movie-actor-movie[/bold] means sharing actors. "
            "Initials do where they are clear (MAM). Where the types don't decide, name the relation and its "
            "direction: [bold]paper -cites-> paper <-cites- paper[/bold].",
            "Start with:  [bold]neupath demo[/bold]",
        )
    ),
)
datasets_app = typer.Typer(help="List the built-in and the known public graphs; fetch a public one with 'get'.")
app.add_typer(datasets_app, name="datasets")

Graph = Annotated[
    str, typer.Argument(metavar="GRAPH", help="A built-in name, a folder of tables, a file of triples, or a .mat file.")
]
MetaPathOption = Annotated[
    str | None, typer.Option("--path", "-p", help="The meta-path, such as movie-actor-movie or MAM.")
]
Measure = Annotated[str, typer.Option("--measure", "-m", help=f"One of {', '.join(MEASURES)}.")]
Model = Annotated[
    Path | None, typer.Option("--model", help="A folder with a saved model or measure, instead of --path.")
]
ConfigFile = Annotated[
    Path | None, typer.Option("--config", help="A graph.toml for what cannot be detected: columns, types, relations.")
]
DuplicatesOption = Annotated[
    str | None, typer.Option("--duplicates", help="Parallel edges: count (each is a path), drop, or error.")
]
Data = Annotated[
    Path | None, typer.Option("--data", envvar="NEUPATH_DATA", help="A folder in which GRAPH may be named.")
]
ProtocolOption = Annotated[
    Protocol, typer.Option("--protocol", help="Labels: strict (5 best, 5 random a query) or paper (the 10 best).")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.callback(invoke_without_command=True)
def _root(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        from neupath import __version__

        print(f"neupath {__version__}")
        raise typer.Exit


@app.command()
def demo(as_json: Json = False) -> None:
    """Run the main job, end to end, on Python's own standard library as a graph."""
    path, query = "class-method-class", "argparse.ArgumentParser"
    hin = _load("stdlib")
    description = describe(hin)
    hits = measure_named("pathsim", path).fit(hin).top_k(query)
    why = explain_pair(hin, path, query, hits[0].id, limit=5)
    imports = measure_named("pathsim", "module-import-module").fit(hin).top_k("json.decoder", k=5)
    if as_json:
        searches = [hits.to_dict(), imports.to_dict()]
        _print_json({"info": description.to_dict(), "search": searches, "explain": why.to_dict()})
        return
    _say("neupath info stdlib")
    out.print(render_description(description, "stdlib"))
    _say(f"neupath search stdlib {query} --path {path}")
    out.print(render_hits(hits, f"classes most similar to {query} by {path}: they share method names"))
    _say(f"neupath explain stdlib {query} {hits[0].id} --path {path} --limit 5")
    out.print(render_explanation(why))
    _say(f"neupath search stdlib {imports.query} --path {imports.metapath} -k 5")
    out.print(render_hits(imports, f"modules that import what {imports.query} does"))
    _demo_learning(hin, path, query)
    out.print("\nNow your own tables: [bold]neupath info FOLDER[/bold], then search and explain as above.")


def _demo_learning(hin: HIN, path: str, query: str) -> None:
    """Train both models on labels alone, where torch is installed, and show what they found."""
    try:
        from neupath.learning import learn
    except MissingExtraError as error:
        out.print(f"\nLearning from examples is left out: {error}", highlight=False, markup=False, soft_wrap=True)
        return
    with TemporaryDirectory() as parent:
        for model, settings in (("neupath", {"dim": 128}), ("countpath", {})):
            folder = Path(parent) / model
            _say(f"neupath train stdlib --path {path} --model {model} --out {model}")
            learned = learn(
                hin, model, path, None, folder, measure="pathsim", protocol="strict", layers=2, epochs=20, seed=0,
                device="cpu", settings=settings, bars=ProgressBars(err),
            )  # fmt: skip
            for text, weight in learned.metapaths:
                out.print(f"found, from labelled pairs alone: {text} with weight {weight:.3f}", highlight=False)
            _say(f"neupath evaluate stdlib --model {model} --path {path}")
            teacher, scorer = measure_named("pathsim", path).fit(hin), load_scorer(folder, hin)
            found = _compare(hin, scorer, teacher, "strict", 400, 0)
            out.print(render_evaluation(found, f"{model} against pathsim, on {found.queries} unseen queries"))
            if model == "neupath":
                _say(f"neupath search stdlib {query} --model {model} -k 5")
                out.print(
                    render_hits(scorer.top_k(query, k=5), f"classes most similar to {query}, as NeuPath learned it")
                )


def _say(command: str) -> None:
    out.print(f"\n[bold green]$[/bold green] [bold]{command}[/bold]\n", highlight=False, soft_wrap=True)


@app.command()
def info(
    graph: Graph,
    config: ConfigFile = None,
    duplicates: DuplicatesOption = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Describe a graph: types, relations, degrees, and the meta-paths to search with.

    Example:  neupath info stdlib
    """
    description = describe(_load(graph, config, duplicates, data))
    if as_json:
        _print_json(description.to_dict())
    else:
        out.print(render_description(description, graph))


@app.command()
def paths(
    graph: Graph,
    node_type: Annotated[
        str | None, typer.Argument(metavar="TYPE", help="The type to start from; all types if left out.")
    ] = None,
    max_length: Annotated[int, typer.Option("--max-length", help="The most steps a path may have.")] = 4,
    asymmetric: Annotated[bool, typer.Option("--asymmetric", help="List every path, not only symmetric ones.")] = False,
    limit: Annotated[int, typer.Option("--limit", help="The most paths to list of each type.")] = 1000,
    config: ConfigFile = None,
    duplicates: DuplicatesOption = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """List the meta-paths of a graph, shortest first.

    Example:  neupath paths stdlib class --max-length 4
    """
    if limit < 1:
        raise QueryError(f"limit is {limit}; list at least 1 meta-path")
    hin = _load(graph, config, duplicates, data)
    starts = hin.schema.node_types if node_type is None else (hin.schema.node_type(node_type),)
    found: dict[str, list[str]] = {}
    for start in starts:
        every = enumerate_metapaths(hin.schema, start, max_length, symmetric=not asymmetric)
        found[start] = [str(path) for path in islice(every, limit + 1)]
    if as_json:
        _print_json({start: listed_paths[:limit] for start, listed_paths in found.items()})
    else:
        for listed_paths in found.values():
            for path in listed_paths[:limit]:
                print(path)
    for start, listed_paths in found.items():
        if len(listed_paths) > limit:
            _note(f"only the first {limit:,} meta-paths from {start} are listed; raise --limit to see more")


@app.command()
def search(
    graph: Graph,
    query: Annotated[
        list[str], typer.Argument(metavar="QUERY...", help="An id or a name; several are searched one after the other.")
    ],
    path: MetaPathOption = None,
    k: Annotated[int, typer.Option("-k", help="How many hits.")] = 10,
    measure: Measure = "pathsim",
    model: Model = None,
    where: Annotated[
        list[str] | None, typer.Option("--where", help="Keep targets whose attribute fits, such as 'year >= 2000'.")
    ] = None,
    among: Annotated[list[str] | None, typer.Option("--among", help="Keep only this target (repeat for more).")] = None,
    include_query: Annotated[bool, typer.Option("--include-query", help="Rank the query itself, too.")] = False,
    zeros: Annotated[bool, typer.Option("--zeros", help="Fill up with targets of score 0.")] = False,
    config: ConfigFile = None,
    duplicates: DuplicatesOption = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Find the entities most similar to QUERY.

    Examples:
      neupath search toy Mike --path author-paper-venue-paper-author

      neupath search stdlib ArgumentParser --path class-method-class -k 5 --measure joinsim

    With --json, one JSON object a query, one a line.

    """
    hin = _load(graph, config, duplicates, data)
    if model is not None and path is not None:
        raise QueryError("a saved model knows what similar means; give either --model or --path")
    scorer: Scorer = load_scorer(model, hin) if model else measure_named(measure, _required_path(hin, path)).fit(hin)
    if scorer.metapath_text is not None:
        _note_relations(hin.metapath(scorer.metapath_text).all_relations_steps())
    how = scorer.metapath_text + ", " + scorer.name if scorer.metapath_text else f"the {scorer.name} model in {model}"
    found = scorer.top_k(query, k, include_query=include_query, zeros=zeros, among=among or None, where=where or ())
    for asked, hits in zip(query, found, strict=True):
        if as_json:
            _print_json(hits.to_dict())
        elif len(hits):
            told = _told(scorer.hin_.nodes[scorer.source_type], asked, hits.query)
            out.print(render_hits(hits, f"{scorer.target_type} nodes most similar to {told} by {how}"))
        else:
            out.print(f"{asked}: nothing found by {how}", highlight=False, markup=False)
        if hits.shortfall:
            _note(f"{asked}: {hits.shortfall}")


def _told(nodes: Nodes, asked: str, found: Id) -> str:
    """Say which node a query was understood as, and which others bear its id as their name."""
    row = nodes.find(found)
    others = nodes.also_named(asked, row)
    if others:
        _note(f"{asked} is read as an id; it is also the name of {listed(map(nodes.describe, others), 3)}")
    known = str(found) if str(found) != asked else nodes.name(row)
    return f"{asked} ({known})" if known and known != asked else asked


@app.command()
def explain(
    graph: Graph,
    query: Annotated[str, typer.Argument(metavar="A", help="An id or a name.")],
    target: Annotated[str, typer.Argument(metavar="B", help="An id or a name.")],
    path: MetaPathOption = None,
    measure: Measure = "pathsim",
    model: Model = None,
    limit: Annotated[int, typer.Option("--limit", help="How many paths to show.")] = 10,
    draw: Annotated[Path | None, typer.Option("--draw", help="Draw the paths to this .svg, .png or .pdf file.")] = None,
    config: ConfigFile = None,
    duplicates: DuplicatesOption = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Show the paths that make A and B similar, heaviest first, each with its exact share of the score.

    Example:  neupath explain toy Mike Mary --path author-paper-venue-paper-author --draw why.svg
    """
    hin = _load(graph, config, duplicates, data)
    if model is not None:
        _explain_model(hin, model, query, target, limit, as_json)
        return
    explanation = explain_pair(hin, _required_path(hin, path), query, target, measure=measure, limit=limit)
    _note_relations(hin.metapath(explanation.metapath).all_relations_steps())
    if draw is not None:
        from neupath.drawing import draw_explanation

        draw_explanation(explanation, draw)
    if as_json:
        _print_json(explanation.to_dict())
    else:
        out.print(render_explanation(explanation))
    if draw is not None:
        _note(f"drawn to {draw}")


def _explain_model(hin: HIN, folder: Path, query: str, target: str, limit: int, as_json: bool) -> None:
    """Show what a saved NeuPath looked at."""
    scorer: Any = load_scorer(folder, hin)
    if not hasattr(scorer, "looked_at"):
        raise QueryError(f"the {scorer.name} in {folder} shows no paths of its own; explain its meta-path with --path")
    score, looks = scorer.score(query, target), scorer.looked_at(query, target, limit)
    if as_json:
        paths = [asdict(look) | {"metapath": look.metapath} for look in looks]
        _print_json({"query": query, "target": target, "measure": scorer.name, "score": score, "paths": paths})
    else:
        out.print(render_looks(looks, f"{query} and {target}: {scorer.name} = {score:.4f}"))


@app.command()
def train(
    graph: Graph,
    out_folder: Annotated[Path, typer.Option("--out", help="The folder to save the model to.")],
    path: MetaPathOption = None,
    pairs: Annotated[
        Path | None, typer.Option("--pairs", help="A CSV file of labels with the header query,target,score.")
    ] = None,
    model: Annotated[str, typer.Option("--model", help="neupath, or countpath, which counts paths.")] = "neupath",
    measure: Measure = "pathsim",
    protocol: ProtocolOption = "strict",
    layers: Annotated[int, typer.Option("--layers", help="The longest path it can see (countpath: half of it).")] = 2,
    paths_kept: Annotated[int, typer.Option("--paths", help="How many path instances NeuPath keeps, T.")] = 2,
    dim: Annotated[int, typer.Option("--dim", help="The width of NeuPath's embeddings.")] = 256,
    epochs: Annotated[int, typer.Option("--epochs", help="The most epochs.")] = 30,
    learning_rate: Annotated[float | None, typer.Option("--learning-rate", help="The first learning rate.")] = None,
    seed: Annotated[int, typer.Option("--seed", help="Decides the split, the labels and the weights.")] = 0,
    device: Annotated[str | None, typer.Option("--device", help="cpu or cuda; by default what there is.")] = None,
    config: ConfigFile = None,
    duplicates: DuplicatesOption = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Learn similarity from labelled pairs, or from labels that an exact measure gives for 400 queries.

    The model is never told the meta-path: --path only makes the labels. A run that was interrupted goes on from its
    last epoch when the same command is given again.

    Examples:
      neupath train stdlib --path class-method-class --out model

      neupath train my-tables/ --pairs labels.csv --out model

    """
    if (path is None) == (pairs is None):
        raise QueryError("give either --path, to draw labels from a measure, or --pairs, a file of labels")
    hin = _load(graph, config, duplicates, data)
    from neupath.learning import learn

    settings: dict[str, Any] = {"dim": dim, "paths": paths_kept} if model == "neupath" else {}
    settings |= {} if learning_rate is None else {"learning_rate": learning_rate}
    learned = learn(
        hin, model, path, pairs, out_folder, measure=measure, protocol=protocol, layers=layers, epochs=epochs,
        seed=seed, device=device, settings=settings, bars=ProgressBars(err),
    )  # fmt: skip
    if as_json:
        _print_json(learned.to_dict())
        return
    print(f"saved to {out_folder}: best validation RMSE {learned.validation_rmse:.4f} after {learned.epochs} epochs")
    for text, weight in learned.metapaths:
        print(f"it reads as {text} with weight {weight:.3f}")


@app.command()
def evaluate(
    graph: Graph,
    model: Annotated[Path, typer.Option("--model", help="A folder with a saved model.")],
    path: MetaPathOption = None,
    measure: Measure = "pathsim",
    protocol: ProtocolOption = "strict",
    queries: Annotated[int, typer.Option("--queries", help="How many unseen queries to test on.")] = 400,
    seed: Annotated[int, typer.Option("--seed", help="The split's seed; that of training keeps queries unseen.")] = 0,
    config: ConfigFile = None,
    duplicates: DuplicatesOption = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Compare a saved model with an exact measure, on unseen queries against all targets.

    Example:  neupath evaluate stdlib --model model --path class-method-class
    """
    hin = _load(graph, config, duplicates, data)
    teacher = measure_named(measure, _required_path(hin, path)).fit(hin)
    scorer = load_scorer(model, hin)
    found = _compare(hin, scorer, teacher, protocol, queries, seed)
    if as_json:
        _print_json(found.to_dict())
    else:
        out.print(
            render_evaluation(found, f"{scorer.name} against {measure} on {found.metapath}, {found.queries} queries")
        )


def _compare(hin: HIN, scorer: Scorer, teacher: Scorer, protocol: Protocol, queries: int, seed: int) -> Evaluation:
    """Compare two scorers on the test queries of a split."""
    test = split_queries(hin.num_nodes(teacher.source_type), (400, 100, queries), seed).test
    return compare(scorer, teacher, test, protocol)


@datasets_app.callback(invoke_without_command=True)
def datasets(context: typer.Context, as_json: Json = False) -> None:
    """List the built-in and the known public graphs; fetch a public one with 'get'."""
    if context.invoked_subcommand is not None:
        return
    built_in = [{"name": name, "about": about, "origin": "built in"} for name, (about, _) in BUILT_IN.items()]
    if as_json:
        public = [{"name": d.name, "about": d.about, "origin": d.origin, "licence": d.licence} for d in PUBLIC.values()]
        _print_json({"built_in": built_in, "public": public})
        return
    for entry in built_in:
        _print_entry(entry["name"], entry["about"], "built in")
    for dataset in PUBLIC.values():
        how = f"neupath datasets get {dataset.name}" if dataset.files else dataset.by_hand
        _print_entry(dataset.name, dataset.about, f"{dataset.origin}; licence: {dataset.licence}; {how}")
    print("\nAlso: any folder of CSV, TSV or Parquet tables, a file of triples, a .mat file.")


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
        _print_json({"name": name, "folder": str(folder)})
    else:
        print(folder)


def _load(graph: str, config: Path | None = None, duplicates: str | None = None, data: Path | None = None) -> HIN:
    choice: Any = duplicates
    return load(graph, config=config, duplicates=choice, data=data, progress=ProgressBars(err).over)


def _required_path(hin: HIN, path: str | None) -> str:
    if path is not None:
        return path
    some = [next(enumerate_metapaths(hin.schema, t, 2)) for t in hin.schema.node_types if hin.schema.neighbours(t)]
    raise QueryError(
        f"no meta-path is given; say what makes two nodes similar with --path, such as {listed(map(str, some), 4)}"
    )


def _note_relations(told: list[str]) -> None:
    for line in told:
        _note(line)


def _note(text: str) -> None:
    err.print(f"note: {printable(text)}", style="dim", highlight=False, markup=False, soft_wrap=True)


def _print_json(content: object) -> None:
    print(json.dumps(content, ensure_ascii=False))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command; an error a user can mend is one line and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal that cannot show a character still shows the rest
    try:
        code = app(args=None if arguments is None else list(arguments), prog_name="neupath", standalone_mode=False)
        sys.stdout.flush()
    except NeuPathError as error:
        _fail(str(error), 2)
    except (KeyboardInterrupt, typer.Abort):
        _fail("interrupted", 130)
    except BrokenPipeError:  # whoever read the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        _fail(f"cannot write the output: {error.strerror or error}", 1)
    except Exception as error:
        if not hasattr(error, "format_message"):  # what the command-line parser says of a wrong call
            raise
        _fail(f"{error.format_message()} (neupath --help teaches)", 2)
    sys.exit(code if isinstance(code, int) else 0)


def _fail(message: str, code: int) -> None:
    print(f"error: {printable(message)}", file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    main()
