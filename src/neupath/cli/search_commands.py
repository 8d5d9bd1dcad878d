"""info, paths, search and explain: what a graph holds, what is similar in it, and why."""

from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from neupath.cli.terminal import (
    AnyMeasure,
    AsOf,
    ConfigFile,
    Data,
    DuplicatesOption,
    Graph,
    Json,
    Measure,
    MetaPathOption,
    Model,
    TypeOption,
    load_graph,
    note,
    note_relations,
    out,
    print_json,
    render_combined,
    render_description,
    render_explanation,
    render_hits,
    render_looks,
    required_path,
)
from neupath.errors import QueryError, listed
from neupath.explain.explanation import AttentionExplanation, explain_model
from neupath.explain.explanation import explain as explain_pair
from neupath.graph.hin import HIN
from neupath.graph.metapath import enumerate_metapaths
from neupath.graph.nodes import Id, Nodes
from neupath.graph.summary import summarise
from neupath.learn.registry import load_scorer, make_scorer
from neupath.store import is_store, open_store


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
    description = summarise(load_graph(graph, config, duplicates, data))
    facts = open_store(graph).facts() if is_store(Path(graph)) else None
    if as_json:
        print_json(description.to_dict() | ({} if facts is None else {"version": facts.version}))
        return
    out.print(render_description(description, graph))
    if facts is not None:
        print(f"a store, version {facts.version}: {facts.nodes:,} nodes, {facts.edges:,} edges")


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
    hin = load_graph(graph, config, duplicates, data)
    starts = hin.schema.node_types if node_type is None else (hin.schema.node_type(node_type),)
    found: dict[str, list[str]] = {}
    for start in starts:
        every = enumerate_metapaths(hin.schema, start, max_length, symmetric=not asymmetric)
        found[start] = [str(path) for path in islice(every, limit + 1)]
    if as_json:
        print_json({start: listed_paths[:limit] for start, listed_paths in found.items()})
    else:
        for listed_paths in found.values():
            for path in listed_paths[:limit]:
                print(path)
    for start, listed_paths in found.items():
        if len(listed_paths) > limit:
            note(f"only the first {limit:,} meta-paths from {start} are listed; raise --limit to see more")


def search(
    graph: Graph,
    query: Annotated[
        list[str], typer.Argument(metavar="QUERY...", help="An id or a name; several are searched one after the other.")
    ],
    metapath: MetaPathOption = None,
    k: Annotated[int, typer.Option("-k", help="How many hits.")] = 10,
    measure: AnyMeasure = None,
    node_type: TypeOption = None,
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
    as_of: AsOf = None,
    as_json: Json = False,
) -> None:
    """Find the entities most similar to QUERY.

    Examples:
      neupath search toy Mike --metapath author-paper-venue-paper-author

      neupath search stdlib ArgumentParser --metapath class-method-class -k 5 --measure joinsim

      neupath search toy Mike --measure simrank

    With --json, one JSON object a query, one a line.

    """
    hin = load_graph(graph, config, duplicates, data, as_of)
    scorer = make_scorer(hin, metapath=metapath, measure=measure, node_type=node_type, model=model, queries=query)
    if scorer.metapath_text is not None:
        note_relations(hin.metapath(scorer.metapath_text).all_relations_steps())
    how = scorer.metapath_text + ", " + scorer.name if scorer.metapath_text else scorer.name
    how = how if model is None else f"the {how} model in {model}"
    found = scorer.top_k(query, k, include_query=include_query, zeros=zeros, among=among or None, where=where or ())
    for asked, hits in zip(query, found, strict=True):
        if as_json:
            print(hits.to_json())
        elif len(hits):
            told = _told(scorer.hin_.nodes[scorer.source_type], asked, hits.query)
            out.print(render_hits(hits, f"{scorer.target_type} nodes most similar to {told} by {how}"))
        else:
            out.print(f"{asked}: nothing found by {how}", highlight=False, markup=False)
        if hits.shortfall:
            note(f"{asked}: {hits.shortfall}")


def _told(nodes: Nodes, asked: str, found: Id) -> str:
    """Say which node a query was understood as, and which others bear its id as their name."""
    row = nodes.find(found)
    others = nodes.also_named(asked, row)
    if others:
        note(f"{asked} is read as an id; it is also the name of {listed(map(nodes.describe, others), 3)}")
    known = str(found) if str(found) != asked else nodes.name(row)
    return f"{asked} ({known})" if known and known != asked else asked


def explain(
    graph: Graph,
    query: Annotated[str, typer.Argument(metavar="A", help="An id or a name.")],
    target: Annotated[str, typer.Argument(metavar="B", help="An id or a name.")],
    metapath: MetaPathOption = None,
    measure: Measure = "pathsim",
    model: Model = None,
    limit: Annotated[int, typer.Option("--limit", help="How many paths to show.")] = 10,
    draw: Annotated[Path | None, typer.Option("--draw", help="Draw the paths to this .svg, .png or .pdf file.")] = None,
    config: ConfigFile = None,
    duplicates: DuplicatesOption = None,
    data: Data = None,
    as_of: AsOf = None,
    as_json: Json = False,
) -> None:
    """Show the paths that make A and B similar, heaviest first, each with its exact share of the score.

    Example:  neupath explain toy Mike Mary --metapath author-paper-venue-paper-author --draw why.svg
    """
    hin = load_graph(graph, config, duplicates, data, as_of)
    if model is not None:
        if metapath is not None or draw is not None:
            raise QueryError(
                "with --model, leave out --metapath and --draw: a model shows the paths it looked at as a tree"
            )
        _explain_model(hin, model, query, target, limit, as_json)
        return
    explanation = explain_pair(hin, required_path(hin.schema, metapath), query, target, measure=measure, limit=limit)
    note_relations(hin.metapath(explanation.metapath).all_relations_steps())
    if draw is not None:
        from neupath.explain.drawing import draw_explanation

        draw_explanation(explanation, draw)
    if as_json:
        print_json(explanation.to_dict())
    else:
        out.print(render_explanation(explanation))
    if draw is not None:
        note(f"drawn to {draw}")


def _explain_model(hin: HIN, folder: Path, query: str, target: str, limit: int, as_json: bool) -> None:
    """Show what a saved NeuPath looked at, or the parts of a saved combination."""
    found = explain_model(load_scorer(folder, hin), query, target, limit)
    if as_json:
        print_json(found.to_dict())
    elif isinstance(found, AttentionExplanation):
        out.print(render_looks(found.paths, f"{query} and {target}: {found.measure} = {found.score:.4f}"))
    else:
        out.print(render_combined(found))
