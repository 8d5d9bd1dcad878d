"""info, paths, find, search and explain: what a graph holds, what is similar in it, and why."""

from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from neupath.cli.terminal import (
    AnyMeasureOption,
    AsOfOption,
    GraphSource,
    JsonOption,
    MeasureOption,
    MetaPathOption,
    ModelOption,
    ProgressBars,
    bar,
    note,
    note_relations,
    plain_table,
    print_json,
    printable,
    reads_graph,
    stdout,
    titled,
)
from neupath.engine.hits import Hits
from neupath.errors import QueryError, listed
from neupath.explain.explanation import (
    AttentionExplanation,
    CombinedExplanation,
    Explanation,
    PathInstance,
    explain_model,
)
from neupath.explain.explanation import explain as explain_pair
from neupath.graph.metapath import enumerate_metapaths
from neupath.graph.nodes import Id, NodeMatch, Nodes
from neupath.graph.summary import Summary, summarise
from neupath.learn.registry import check_model_alone, load_scorer, make_scorer, required_metapath
from neupath.store import is_store, open_store


# ---- info and paths ------------------------------------------------------------------------------
@reads_graph
def info(source: GraphSource, as_json: JsonOption = False) -> None:
    """Describe a graph: types, relations, degrees, and the meta-paths to search with.

    Example:  neupath info stdlib
    """
    summary = summarise(source.load(with_notes=False))  # it shows them itself
    facts = open_store(source.graph).facts() if is_store(Path(source.graph)) else None
    if as_json:
        print_json(summary.to_dict() | ({} if facts is None else {"version": facts.version}))
        return
    stdout.print(render_summary(summary, source.graph))
    if facts is not None:
        print(f"a store, version {facts.version}: {facts.nodes:,} nodes, {facts.edges:,} edges")


def render_summary(summary: Summary, title: str) -> Group:
    """Show a graph's types, relations and candidate meta-paths."""
    types = plain_table("node type", ">nodes", ">isolated", "known of each")
    for kind in summary.node_types:
        known = ", ".join(["id", *(["name"] if kind.named else []), *kind.attributes])
        types.add_row(Text(kind.node_type), f"{kind.nodes:,}", f"{kind.isolated:,}", Text(printable(known)))
    relations = plain_table("relation", ">edges", ">a source has", ">at most", ">a target has", ">at most")
    for r in summary.relations:
        name = f"{r.source} -{r.name}{'->' if r.directed else '-'} {r.target}"
        name += f" (weight {r.weight:,.6g})" if r.weight != r.edges else ""
        relations.add_row(
            Text(printable(name)), f"{r.edges:,}", f"{r.source_degree_mean:.1f}", f"{r.source_degree_max:,}",
            f"{r.target_degree_mean:.1f}", f"{r.target_degree_max:,}",
        )  # fmt: skip
    metapaths = plain_table("to search for", "symmetric meta-paths, shortest first")
    for node_type, texts in summary.metapaths.items():
        metapaths.add_row(Text(node_type), Text("\n".join(texts)))
    notes = [Text(f"note: {printable(line)}", style="yellow") for line in summary.notes]
    return titled(title, types, "", relations, "", metapaths, *notes)


@reads_graph
def paths(
    source: GraphSource,
    node_type: Annotated[
        str | None, typer.Argument(metavar="NODE_TYPE", help="The type to start from; by default every type.")
    ] = None,
    max_length: Annotated[int, typer.Option("--max-length", help="The most steps of a meta-path.")] = 4,
    asymmetric: Annotated[bool, typer.Option("--asymmetric", help="Also list paths that are not symmetric.")] = False,
    limit: Annotated[int, typer.Option("--limit", help="The most meta-paths to list from each type.")] = 1000,
    as_json: JsonOption = False,
) -> None:
    """List the meta-paths of a graph, shortest first.

    Example:  neupath paths stdlib class --max-length 4
    """
    if limit < 1:
        raise QueryError(f"‹limit› is {limit}; list at least 1 meta-path")
    schema = source.load().schema
    metapaths = {
        start: list(islice(enumerate_metapaths(schema, start, max_length, symmetric=not asymmetric), limit + 1))
        for start in (schema.node_types if node_type is None else (schema.node_type(node_type),))
    }
    texts = {start: [str(metapath) for metapath in every[:limit]] for start, every in metapaths.items()}
    if as_json:
        print_json(texts)
    else:
        print("".join(f"{text}\n" for every in texts.values() for text in every), end="")
    for start, every in metapaths.items():
        if len(every) > limit:
            note(f"only the first {limit:,} meta-paths from {start} are listed; raise --limit to see more")


# ---- find ----------------------------------------------------------------------------------------
_HOW = {"exact": "", "prefix": "begins so", "inside": "contains it", "spelling": "spelled alike", "any": ""}


@reads_graph
def find(
    source: GraphSource,
    text: Annotated[list[str], typer.Argument(metavar="TEXT...", help="A name or an id, or a part of one.")],
    node_type: Annotated[
        str | None, typer.Option("--node-type", help="Look among the nodes of this type only.")
    ] = None,
    k: Annotated[int, typer.Option("-k", help="How many nodes.")] = 10,
    as_of: AsOfOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find nodes by name or id, whatever the case and accents, also if they are misspelled.

    First come the nodes that are called TEXT, then those whose name or id
    begins with it, contains it and, if these are few, is spelled like it.
    search, explain and the other commands take an id as it is printed here, or
    a name; a name in lower case is enough if only one node has it.

    Examples:
      neupath find toy mike
      neupath find stdlib argumentparser --node-type class
      neupath find stdlib ordred dict
    """
    typed, hin = " ".join(text), source.load(as_of)
    nodes = hin.find(typed, k, node_type=node_type)
    if as_json:
        print_json({"text": typed, "nodes": [node.to_dict() for node in nodes]})
    elif nodes:
        stdout.print(render_matches(nodes))
    else:
        count = hin.num_nodes(node_type) if node_type else sum(map(len, hin.nodes.values()))
        print(f"no name or id is like {typed!r} among {count:,} nodes")


def render_matches(nodes: Sequence[NodeMatch]) -> Table:
    """Show nodes that match a text, with what tells them apart."""
    named = any(node.name is not None and node.name != node.id for node in nodes)
    table = plain_table("node type", "id", *(["name"] if named else []), "")
    for node in nodes:
        labels = [str(node.id), *([node.name or ""] if named else [])]
        how = Text(_HOW[node.match], style="dim")
        table.add_row(Text(node.node_type), *(Text(printable(label), overflow="fold") for label in labels), how)
    return table


# ---- search --------------------------------------------------------------------------------------
@reads_graph
def search(
    source: GraphSource,
    query: Annotated[list[str], typer.Argument(metavar="QUERY...", help="Ids or names, each searched for in turn.")],
    metapath: MetaPathOption = None,
    k: Annotated[int, typer.Option("-k", help="How many hits.")] = 10,
    measure: AnyMeasureOption = None,
    node_type: Annotated[
        str | None, typer.Option("--node-type", help="The type of QUERY, for a measure over the whole graph.")
    ] = None,
    model: ModelOption = None,
    where: Annotated[
        list[str] | None, typer.Option("--where", help="Keep targets whose attribute fits, such as 'year >= 2000'.")
    ] = None,
    among: Annotated[list[str] | None, typer.Option("--among", help="Keep only this target (repeat for more).")] = None,
    include_query: Annotated[bool, typer.Option("--include-query", help="Rank the query itself, too.")] = False,
    zeros: Annotated[bool, typer.Option("--zeros", help="Fill up with targets of score 0.")] = False,
    as_of: AsOfOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find the entities most similar to QUERY.

    Examples:
      neupath search toy Mike --metapath author-paper-venue-paper-author
      neupath search stdlib ArgumentParser -p class-method-class -k 5 -m joinsim
      neupath search toy Mike --measure simrank

    With --json, one JSON object per query, each on its own line.
    """
    hin = source.load(as_of)
    with ProgressBars() as bars:
        scorer = make_scorer(
            hin, metapath=metapath, measure=measure, node_type=node_type, model=model, queries=query, progress=bars
        )
    note_relations(getattr(scorer, "metapath_", None))
    method = f"{scorer.metapath_text}, {scorer.name}" if scorer.metapath_text else scorer.name
    method = method if model is None else f"the {method} model in {model}"
    results = scorer.top_k(query, k, include_query=include_query, zeros=zeros, among=among or None, where=where or ())
    for text, hits in zip(query, results, strict=True):
        if as_json:
            print(hits.to_json())
        elif len(hits):
            label = _label_query(scorer.hin_.nodes[scorer.source_type], text, hits.query)
            stdout.print(render_hits(hits, f"{scorer.target_type} nodes most similar to {label} by {method}"))
        else:
            stdout.print(f"{text}: nothing found by {method}", highlight=False, markup=False)
        if hits.shortfall:
            note(f"{text}: {hits.shortfall}")
    if error := getattr(scorer, "error_", 0.0):
        note(f"each score differs by at most {error:.2g} from its exact value")


def _label_query(nodes: Nodes, text: str, query: Id) -> str:
    """Show a query with the id or name of its node, and note which other nodes have the query as their name."""
    row = nodes.find(query)
    others = nodes.also_named(text, row)
    if others:
        note(f"{text} is read as an id; it is also the name of {listed(map(nodes.describe, others), 3)}")
    other_label = str(query) if str(query) != text else nodes.name(row)
    return f"{text} ({other_label})" if other_label and other_label != text else text


def render_hits(hits: Hits, title: str) -> Group:
    """Show hits as a ranked table with a bar for each score, the longest for the best."""
    table = plain_table(">")
    table.columns[0].style = "dim"
    show_names = any(hit.name and hit.name != hit.id for hit in hits)
    if show_names:
        table.add_column("name", max_width=40, overflow="ellipsis", no_wrap=True)
    table.add_column("id", style="dim" if show_names else "", overflow="fold")
    table.add_column("score", justify="right")
    table.add_column("")
    best = max(hits.scores, default=0.0)
    for hit in hits:
        name = [Text(printable(hit.name or ""))] if show_names else []
        length = bar(hit.score / best if best > 0 else 0.0)
        table.add_row(str(hit.rank), *name, Text(printable(str(hit.id))), f"{hit.score:.4f}", length)
    return titled(title, table)


# ---- explain -------------------------------------------------------------------------------------
@reads_graph
def explain(
    source: GraphSource,
    query: Annotated[str, typer.Argument(metavar="A", help="An id or a name.")],
    target: Annotated[str, typer.Argument(metavar="B", help="An id or a name.")],
    metapath: MetaPathOption = None,
    measure: MeasureOption = "pathsim",
    model: ModelOption = None,
    limit: Annotated[int, typer.Option("--limit", help="How many paths to show.")] = 10,
    draw: Annotated[Path | None, typer.Option("--draw", help="Draw the paths to this .svg, .png or .pdf file.")] = None,
    as_of: AsOfOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the paths that make A and B similar, heaviest first, each with its exact share of the score.

    Example:  neupath explain toy Mike Mary -p APVPA --draw why.svg
    """
    hin = source.load(as_of)
    if model is not None:
        check_model_alone(metapath=metapath)
        if draw is not None:
            raise QueryError("--draw draws the paths of a meta-path; with --model, leave it out to see them as a tree")
        result = explain_model(load_scorer(model, hin), query, target, limit)
        if as_json:
            print_json(result.to_dict())
        elif isinstance(result, AttentionExplanation):
            stdout.print(render_attention(result, f"{query} and {target}: {result.measure} = {result.score:.4f}"))
        else:
            stdout.print(render_combined(result))
        return
    parsed = hin.metapath(str(required_metapath(hin.schema, metapath)))
    note_relations(parsed)
    explanation = explain_pair(hin, parsed, query, target, measure=measure, limit=limit)
    if draw is not None:
        from neupath.explain.drawing import draw_explanation

        draw_explanation(explanation, draw)
    if as_json:
        print_json(explanation.to_dict())
    else:
        stdout.print(render_explanation(explanation))
    if draw is not None:
        note(f"drawn to {draw}")


def render_explanation(explanation: Explanation) -> Tree:
    """Show an explanation as a tree: the score, then the paths that make it up."""
    query, target = printable(explanation.query.label), printable(explanation.target.label)
    head = Text.assemble(
        (query, "bold"), " and ", (target, "bold"), f": {explanation.measure} = ",
        f"{explanation.formula} = " if explanation.formula != f"{explanation.score:.6g}" else "",
        (f"{explanation.score:.4f}", "bold cyan"),
    )  # fmt: skip
    tree = Tree(head)
    if not explanation.num_instances:
        tree.add(Text(f"no {explanation.metapath} path joins them", style="dim"))
    for instance in explanation.instances:
        tree.add(_render_instance(instance, explanation))
    if explanation.num_hidden:
        more = f"and {explanation.num_hidden:,} more, together {explanation.hidden_share:.4f} of the score"
        tree.add(Text(more, style="dim"))
    return tree


def _render_instance(instance: PathInstance, explanation: Explanation) -> Text:
    line = Text.assemble((f"{instance.share:.4f}", "cyan"), f"  {_percent(instance.share, explanation.score)}  ")
    if instance.weight != 1 and float(instance.weight).is_integer():
        line.append(f"×{instance.weight:.0f} ", style="yellow")
    names_relations = " " in explanation.metapath  # the canonical text names them only where types don't decide
    for position, node in enumerate(instance.nodes):
        if position:
            link = instance.links[position - 1]
            line.append(f" {link} " if names_relations or "|" in link else " — ", style="dim")
        line.append(printable(node.label))
    return line


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:5.1f} %" if whole else "    - %"


def render_combined(combined: CombinedExplanation) -> Group:
    """Show the score of a combination: the share of each meta-path, then the paths behind it."""
    first = combined.parts[0].explanation
    query, target = printable(first.query.label), printable(first.target.label)
    head = Text.assemble((query, "bold"), " and ", (target, "bold"), ": ", (f"{combined.score:.4f}", "bold cyan"))
    lines: list[RenderableType] = [head]
    for part in combined.parts:
        why, percent = part.explanation, _percent(part.share, combined.score).strip()
        share = f"{why.metapath} adds {part.share:.4f}, {percent} of the score: {part.weight:.4g} × {why.measure}"
        lines += [Text(share, style="bold"), render_explanation(why)]
    return Group(*lines)


def render_attention(explanation: AttentionExplanation, title: str) -> Tree:
    """Show the paths that a model attends to, each with its share of the attention."""
    tree = Tree(Text(printable(title), style="bold"))
    for path in explanation.paths:
        style = "" if path.from_query else "dim"
        line = Text.assemble((f"{100 * path.weight:5.1f} %", "cyan"), "  ")
        for position, node in enumerate(path.nodes):
            line.append(f" {path.links[position - 1]} " if position else "", style="dim")
            line.append(printable(node.name or str(node.id)), style=style)
        tree.add(line)
    tree.add(Text("bright: paths from the query; dim: what the model sees of the target itself", style="dim"))
    return tree
