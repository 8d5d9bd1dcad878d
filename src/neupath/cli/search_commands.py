"""info, paths, find, search, explain, relate and compare: what a graph holds, what is similar in it, and why."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from neupath import answers
from neupath.cli.explain_commands import evidence_columns, note_evidence
from neupath.cli.program import printable
from neupath.cli.terminal import (
    GraphSource,
    OutputFlags,
    ProgressBars,
    Sentence,
    bar,
    drawn,
    label_text,
    note,
    note_relations,
    plain_table,
    print_json,
    print_text,
    stdout,
    takes_options,
    titled,
)
from neupath.engine.hits import Hits, QuerySet, score_text
from neupath.engine.prepared import SharedNodes
from neupath.engine.scorer import Scorer
from neupath.errors import QueryError, listed
from neupath.evidence.comparison import RankComparison
from neupath.evidence.explanation import Explanation, SetExplanation, WhyNot
from neupath.evidence.groups import PathGroup, PathInstance, counted, percent
from neupath.evidence.model_explanation import (
    AttentionExplanation,
    CombinedExplanation,
    ModelExplanation,
    StackExplanation,
    signed,
)
from neupath.evidence.relate import Related
from neupath.evidence.relate import relate as relate_pair
from neupath.graph.hin import check_graph
from neupath.graph.metapath import enumerate_metapaths, without_brackets
from neupath.graph.nodes import Id, NodeMatch, Nodes
from neupath.graph.summary import Summary, summarise
from neupath.measures import Combination
from neupath.requests import Compare, Explain, Find, Paths, Relate, Search

# ---- info and paths ------------------------------------------------------------------------------
_OF_A_GRAPH = (
    "kind", "name", "nodes", "isolated", "source", "target", "directed", "edges", "weight", "source_degree_mean",
    "source_degree_max", "target_degree_mean", "target_degree_max",
)  # fmt: skip


@takes_options
def info(source: GraphSource, output: OutputFlags) -> None:
    """Describe a graph: types, relations, degrees, and the meta-paths to search with.

    Example:  neupath info stdlib
    """
    from neupath.store import is_store, open_store

    hin = source.load(with_notes=False)  # the summary shows them
    summary = summarise(hin)
    facts = open_store(source.graph).facts() if is_store(Path(source.graph)) else None
    if output.as_json:
        print_json(summary.to_dict() | ({} if facts is None else {"version": facts.version}))
        return
    if output.is_table:
        relations = [{"kind": "relation", **vars(relation)} for relation in summary.relations]
        types = [{"kind": "node type", "name": kind.node_type, **vars(kind)} for kind in summary.node_types]
        output.print_table(_OF_A_GRAPH, [*types, *relations])
        return
    stdout.print(render_summary(summary, source.graph))
    if facts is not None:
        print_text(f"a store, version {facts.version}: {facts.nodes:,} nodes, {facts.edges:,} edges")


def render_summary(summary: Summary, title: str) -> Group:
    """Show a graph's types, relations and candidate meta-paths."""
    types = plain_table("node type", ">nodes", ">isolated", "known of each")
    for kind in summary.node_types:
        attributes = [f"{name} ({word})" for name, word in kind.attribute_types.items()]
        known = ", ".join(["id", *(["name"] if kind.named else []), *attributes])
        types.add_row(Text(printable(kind.node_type)), f"{kind.nodes:,}", f"{kind.isolated:,}", Text(printable(known)))
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
        metapaths.add_row(Text(printable(node_type)), Text("\n".join(map(printable, texts))))
    notes = [Text(f"note: {printable(line)}", style="yellow") for line in summary.notes]
    described = plain_table("relation", "known of each edge besides its weight")
    for r in summary.relations:
        known = ", ".join(f"{name} ({kind})" for name, kind in r.attributes.items())
        if known:
            described.add_row(Text(printable(r.name)), Text(printable(known)))
    edges = Group(described, "") if described.row_count else Group()
    return titled(title, types, "", relations, "", edges, metapaths, *notes)


@takes_options
def paths(source: GraphSource, asked: Paths, output: OutputFlags) -> None:
    """List the meta-paths of a graph, shortest first.

    Example:  neupath paths stdlib class --max-length 4
    """
    if asked.limit < 1:
        raise QueryError(f"‹limit› is {asked.limit}; list at least 1 meta-path")
    hin, limit, symmetric = source.load(), asked.limit, not asked.asymmetric
    check_graph(hin)
    schema = hin.schema
    types = schema.node_types if asked.node_type is None else (schema.node_type(asked.node_type),)
    metapaths = {
        start: list(islice(enumerate_metapaths(schema, start, asked.max_length, symmetric=symmetric), limit + 1))
        for start in types
    }
    texts = {start: [str(metapath) for metapath in every[:limit]] for start, every in metapaths.items()}
    if output.as_json:
        print_json(texts)
    elif output.is_table:
        rows = [{"node_type": start, "metapath": text} for start, every in texts.items() for text in every]
        output.print_table(("node_type", "metapath"), rows)
    else:
        for text in chain.from_iterable(texts.values()):
            print_text(text)
    for start, every in metapaths.items():
        if len(every) > limit:
            note(f"only the first {limit:,} meta-paths from {start} are listed; raise --limit to see more")


# ---- find ----------------------------------------------------------------------------------------
_HOW = {"exact": "", "prefix": "begins so", "inside": "contains it", "spelling": "spelled alike", "any": ""}


@takes_options
def find(source: GraphSource, asked: Find, output: OutputFlags) -> None:
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
    typed, hin = " ".join(asked.text), source.load(asked.as_of)
    nodes = hin.find(typed, asked.k, node_type=asked.node_type)
    if output.as_json:
        print_json({"text": typed, "nodes": [node.to_dict() for node in nodes]})
    elif output.is_table:
        output.print_table(("node_type", "id", "name", "match"), [node.to_dict() for node in nodes])
    elif nodes:
        stdout.print(render_matches(nodes))
    else:
        count = hin.num_nodes(asked.node_type) if asked.node_type else sum(map(len, hin.nodes.values()))
        print_text(f"no name or id is like {typed!r} among {count:,} nodes")


_REST_OF_MATCH = 26  # columns that a name, how it matches and the gaps need


def render_matches(nodes: Sequence[NodeMatch]) -> Table:
    """Show nodes that match a text, with what tells them apart."""
    named = any(node.name is not None and node.name != node.id for node in nodes)
    table = plain_table("node type", "id", *(["name"] if named else []), "")
    types, ids = (max(len(str(getattr(node, field))) for node in nodes) for field in ("node_type", "id"))
    table.columns[1].no_wrap = types + ids + _REST_OF_MATCH <= stdout.width  # names give way to ids
    for node in nodes:
        labels = [str(node.id), *([node.name or ""] if named else [])]
        how = Text(_HOW[node.match], style="dim")
        table.add_row(
            Text(printable(node.node_type)), *(Text(printable(label), overflow="fold") for label in labels), how
        )
    return table


# ---- search --------------------------------------------------------------------------------------
@takes_options
def search(source: GraphSource, asked: Search, output: OutputFlags) -> None:
    """Find the entities most similar to QUERY.

    Examples:
      neupath search toy Mike --metapath author-paper-venue-paper-author
      neupath search stdlib ArgumentParser -p class-method-class -k 5 -m joinsim
      neupath search toy Mike --measure simrank
      neupath search toy Mike -p APVPA --with Bob --without Jim
      neupath search toy Mike -p APVPA -p APA --weights 2,1
      neupath search toy Mike -p APVPA --unless APA
      neupath search toy Mike -p 'author-paper-venue{SIGMOD}-paper-author'
      neupath search stdlib ArgumentParser -p class-method-class --significance

    With --json, one JSON object per query, each on its own line.
    """
    hin = source.load(asked.as_of)
    with ProgressBars() as bars:
        answer = answers.search(hin, asked, bars)
    scorer, method = answer.scorer, _describe_method(answer.scorer, asked.model)
    note_relations(getattr(scorer, "metapath_", None))
    contents = answer.to_dicts()
    if output.is_table:
        _print_hits(output, answer.labels, contents)
    for text, hits, known, ties, content in zip(
        answer.labels, answer.results, answer.evidence, answer.ties, contents, strict=True
    ):
        if output.as_json:
            print_json(content | ({} if asked.diverse is not None else {"ties": ties}))
        elif output.is_text:
            _print_found(scorer, text, hits, method, known)
        shown = hits.scores.count(hits.scores[-1]) if len(hits) else 0
        if ties > shown and not output.as_json:
            tie = f"{ties:,} {scorer.target_type} nodes tie at {score_text(hits.scores[-1])}; {shown:,} of them"
            note(f"{text}: {tie} {'is' if shown == 1 else 'are'} shown, in file order")
        if hits.shortfall:
            note(f"{text}: {hits.shortfall}")
    if error := getattr(scorer, "error_", 0.0):
        note(f"each score differs by at most {error:.2g} from its exact value")


def _print_found(scorer: Scorer, text: str, hits: Hits, method: str, known: Mapping[str, Any]) -> None:
    """Print the hits of one query as a table, with the evidence for them."""
    if not len(hits):
        stdout.print(f"{text}: nothing found by {method}", highlight=False, markup=False)
        return
    of_set = isinstance(hits.query, QuerySet)
    label = text if of_set else _label_query(scorer.hin_.nodes[scorer.source_type], text, hits.query_id)
    title = f"{scorer.target_type} nodes most similar to {label} by {method}"
    stdout.print(render_hits(hits, title, evidence_columns(known) if known else None), crop=False)
    if known:
        note_evidence(known)


def _describe_method(scorer: Scorer, model: str | Path | None) -> str:
    """Say by which meta-paths and which measure, or by which saved model, a search ranks."""
    method = f"{scorer.metapath_text}, {scorer.name}" if scorer.metapath_text else scorer.name
    if isinstance(scorer, Combination) and len(scorer.parts) > 1 and scorer.metapath_text is None:
        sum_of = " + ".join(f"{part.weight:.4g} × {part.metapath}" for part in scorer.parts)
        method = f"{sum_of}, {scorer.parts[0].measure if type(scorer) is Combination else scorer.name}"
    if model is None:
        return method
    return f"the {method} model in {model}" if method == scorer.name else f"{method}, saved in {model}"


def _print_hits(output: OutputFlags, queries: Sequence[str], contents: Sequence[Mapping[str, Any]]) -> None:
    """Print the hits of all queries as one table, with the evidence for them."""
    of_queries = zip(queries, contents, strict=True)
    rows = [{"query": query, **hit} for query, content in of_queries for hit in content["hits"]]
    evidence = ["p_value", "q_value"] * any("significance" in content for content in contents)
    if any("stability" in content for content in contents):
        rows = [row | dict(zip(("best_rank", "worst_rank"), row["ranks"], strict=True)) for row in rows]
        evidence += ["best_rank", "worst_rank"]
    output.print_table(("query", "rank", "id", "name", "score", *evidence), rows)


def _label_query(nodes: Nodes, text: str, query: Id) -> str:
    """Show a query with the id or name of its node, and note which other nodes have the query as their name."""
    row = nodes.find(query)
    others = nodes.also_named(text, row)
    if others:
        note(f"{text} is read as an id; it is also the name of {listed(map(nodes.describe, others), 3)}")
    other_label = str(query) if str(query) != text else nodes.name(row)
    return f"{text} ({other_label})" if other_label and other_label != text else text


_REST_OF_HIT = 32  # columns that rank, score, bar and the gaps take
_NARROWEST = -6  # columns left for a name and a bar below which the table gives way to lines


def render_hits(hits: Hits, title: str, columns: Mapping[str, Sequence[str]] | None = None) -> Group:
    """Show hits as a ranked table with a bar for each score, the longest for the best, and with more columns."""
    table = plain_table(">")
    table.columns[0].style = "dim"
    show_names = any(hit.name and hit.name != hit.id for hit in hits)
    id_width = max((len(str(hit.id)) for hit in hits), default=0)
    more = columns or {}
    extra = sum(2 + max(map(len, (column, *values))) for column, values in more.items())
    left = stdout.width - id_width - extra - _REST_OF_HIT
    if left < _NARROWEST:
        return titled(title, *_hit_lines(hits, more))
    if show_names:  # names give way to ids, which are copied and must stay whole
        widest = min(40, max(10, left)) if stdout.is_bounded else None
        table.add_column("name", max_width=widest, overflow="ellipsis", no_wrap=True)
    table.add_column("id", style="dim" if show_names else "", no_wrap=True)
    table.add_column("score", justify="right", no_wrap=True)
    for column in more:
        table.add_column(column, justify="right", no_wrap=True)
    if left >= (10 if show_names else 0):
        table.add_column("", no_wrap=True, min_width=10, overflow="crop")
    best = max(hits.scores, default=0.0)
    for hit in hits:
        name = [Text(printable(hit.name or ""))] if show_names else []
        length = bar(hit.score / best if best > 0 else 0.0)
        cells = (values[hit.rank - 1] for values in more.values())
        row: tuple[str | Text, ...] = (
            str(hit.rank),
            *name,
            Text(printable(str(hit.id))),
            score_text(hit.score),
            *cells,
            length,
        )
        table.add_row(*row[: len(table.columns)])
    return titled(title, table)


def _hit_lines(hits: Hits, columns: Mapping[str, Sequence[str]]) -> list[Text]:
    """Show hits where a table has no room: a line for each, which ends with its whole id."""
    lines = []
    for hit in hits:
        evidence = [f"{name} {values[hit.rank - 1]}" for name, values in columns.items()]
        line = [f"{hit.rank:>2}", score_text(hit.score), *evidence, printable(str(hit.id))]
        lines.append(Text("  ".join(line), no_wrap=True, overflow="ignore"))
    return lines


# ---- explain -------------------------------------------------------------------------------------
AnyExplanation = SharedNodes | Explanation | ModelExplanation | SetExplanation
_PATHS, _PATHS_OF_A_PAGE = 1, 10  # paths below each group
_SHORT_NODE, _SHORT_END = 40, 20  # letters of a node between the ends of a path, and of its ends


@takes_options
def explain(source: GraphSource, asked: Explain, output: OutputFlags) -> None:
    """Show what makes A and B similar: the nodes that their paths run through, each with its exact share of the score.

    If B is not among the most similar to A, it says what is missing, and which
    meta-path would bring it in. An HTML file unfolds each group to its paths.

    Examples:
      neupath explain toy Mike Jim -p APVPA
      neupath explain toy Mike Jim -p APVPA --by paper --paths 3
      neupath explain toy Mike Mary -p APVPA --with Bob
      neupath explain toy Mike Mary -p APVPA --draw why.html
    """
    draw = asked.draw
    is_page = draw is not None and draw.suffix.lower() == ".html"
    if draw is not None and (asked.added or asked.removed):
        raise QueryError("‹draw› draws the paths of one node; leave it out, or ‹added› and ‹removed›")
    if draw is not None and (asked.model is not None or answers.is_sum(asked)) and not is_page:
        raise QueryError(
            "‹draw› draws the paths of one meta-path; with ‹model›, write an .html file, as with several ‹metapath›, "
            "or leave it out"
        )
    if asked.paths is None:
        asked = replace(asked, paths=_PATHS_OF_A_PAGE if is_page else _PATHS)
    result = answers.explain(source.load(asked.as_of), asked)
    if draw is not None:
        _draw(result, draw)
    _print_explanation(result, output, f"{asked.query} and {asked.target}")
    if draw is not None:
        note(f"drawn to {draw}")


_OF_A_GROUP = ("metapath", "node_type", "id", "name", "paths", "score", "share")


def _print_explanation(result: AnyExplanation, output: OutputFlags, ends: str) -> None:
    if output.as_json:
        print_json(result.to_dict())
    elif output.is_table:
        output.print_table(_OF_A_GROUP, _group_rows(result))
    elif isinstance(result, SetExplanation):
        stdout.print(render_set(result))
    elif isinstance(result, Explanation):
        stdout.print(render_explanation(result))
    elif isinstance(result, SharedNodes):
        stdout.print(render_shared(result))
    else:
        stdout.print(render_model(result, ends))


def _group_rows(result: AnyExplanation) -> list[dict[str, object]]:
    """Return the groups of an explanation, of each meta-path in turn, as the rows of a table."""
    if isinstance(result, SharedNodes):
        return [{"metapath": result.metapath} | vars(group) for group in result.groups]
    if isinstance(result, StackExplanation):
        return [row for each in result.learners if each.explanation for row in _group_rows(each.explanation)]
    if isinstance(result, CombinedExplanation):
        parts = [(part.explanation.metapath, part.groups(result.score)) for part in result.parts]
    else:
        parts = [(getattr(result, "metapath", ""), result.groups)]
    return [{"metapath": metapath, **group.to_dict()} for metapath, groups in parts for group in groups]


def _draw(result: AnyExplanation, path: Path) -> None:
    if path.suffix.lower() == ".html":
        from neupath.evidence.html_report import write_html

        write_html(result, path)  # type: ignore[arg-type]  # what has no drawing was refused
    elif isinstance(result, Explanation):
        from neupath.evidence.drawing import draw_explanation

        draw_explanation(result, path)


def render_explanation(explanation: Explanation) -> Group:
    """Show an explanation: the score and what it means in a sentence, then the groups that make it up, as a tree."""
    query, target = (label_text(node.label) for node in (explanation.query, explanation.target))
    lines: list[RenderableType] = [
        Text.assemble(
            *_titled_ends(query, target), f"{explanation.measure} = ",
            f"{explanation.formula} = " if explanation.formula != f"{explanation.score:.6g}" else "",
            (score_text(explanation.score), "bold cyan"),
            f", rank {explanation.rank:,} of {explanation.num_targets:,}" if explanation.rank else "",
        ),
        Sentence(explanation.summary),
    ]  # fmt: skip
    if explanation.num_instances:
        if explanation.cost:
            lines.append(Sentence(explanation.cost, "dim"))
        lines.append(_render_groups(explanation, explanation.groups, explanation.score, explanation.score))
    if explanation.why_not is not None:
        lines += _render_why_not(explanation.why_not, target)
    return Group(*lines)


def render_shared(explanation: SharedNodes) -> Group:
    """Show how a score of an index splits over the nodes in the middle of the paths."""
    ends = _titled_ends(label_text(str(explanation.query)), label_text(str(explanation.target)))
    score = score_text(explanation.score)
    head = Text.assemble(*ends, f"{explanation.measure} = {explanation.formula} = ", (score, "bold cyan"))
    tree = Tree(Text(f"{counted(explanation.num_groups, 'node')} in the middle of the paths", style="dim"))
    for group in explanation.groups:
        label = (label_text(group.label), "bold")
        tree.add(Text.assemble((score_text(group.score), "cyan"), f"  {_percent(group.share)}  ", label))
    hidden = explanation.num_groups - len(explanation.groups)
    if hidden and explanation.groups:
        tree.add(Text(f"and {counted(hidden, 'more node')}", style="dim"))
    return Group(head, tree)


def render_set(explanation: SetExplanation) -> Group:
    """Show the explanation of a set: its score, then the members and the nodes between that make it up, as trees."""
    target = label_text(explanation.target.label)
    rank = f", rank {explanation.rank:,} of {explanation.num_targets:,}" if explanation.rank else ""
    head = Text.assemble(
        (label_text(explanation.query.label), "bold"), " and ", (target, "bold"),
        f": {explanation.measure} = {explanation.formula} = ", (f"{explanation.score:.4f}", "bold cyan"), rank,
    )  # fmt: skip
    names_relations = " " in explanation.metapath
    members = Tree(Text("by member", style="dim"))
    for member in explanation.members:
        about = (f"  {counted(member.paths, 'path')}, weight {member.weight:.4g}", "dim")
        label = (label_text(member.node.label), "bold")
        branch = members.add(
            Text.assemble((score_text(member.score), "cyan"), f"  {_percent(member.share)}  ", label, about)
        )
        for group in member.groups:
            line = Text.assemble((score_text(group.score or 0.0), "cyan"), f"  {_percent(group.share)}  ")
            line.append(label_text(group.node.label)).append(f"  {counted(group.paths, 'path')}", style="dim")
            own = branch.add(line)
            for instance in group.instances:
                own.add(_render_path(instance, names_relations))
        if member.num_groups > len(member.groups):
            branch.add(Text(f"and {counted(member.num_groups - len(member.groups), 'more node')}", style="dim"))
    nodes = Tree(Text(printable(f"by {explanation.node_types[explanation.step]}"), style="dim"))
    for group in explanation.groups:
        label = (label_text(group.node.label), "bold")
        paths = (f"  {counted(group.paths, 'path')}", "dim")
        nodes.add(Text.assemble((score_text(group.score or 0.0), "cyan"), f"  {_percent(group.share)}  ", label, paths))
    if explanation.num_groups > len(explanation.groups):
        nodes.add(Text(f"and {counted(explanation.num_groups - len(explanation.groups), 'more node')}", style="dim"))
    return Group(head, Text(printable(explanation.summary)), members, nodes)


def _titled_ends(query: str, target: str) -> tuple[str | tuple[str, str], ...]:
    """Begin a title with two nodes; what follows is on a line of its own if they take most of this one."""
    after = ": " if len(query) + len(target) < stdout.width // 2 else ":\n"
    return (query, "bold"), " and ", (target, "bold"), after


def _render_groups(explanation: Explanation, groups: Sequence[PathGroup], score: float, total: float) -> Tree:
    """Show groups as a tree with their paths, given what all groups add to a score, and the whole score."""
    by = f" by {explanation.node_types[explanation.step]}" if explanation.node_types else ""
    tree = Tree(Text(printable(f"{counted(explanation.num_instances, 'path')}{by}"), style="dim"))
    largest = max((abs(group.share) for group in groups), default=0.0)
    names_relations = " " in without_brackets(
        explanation.metapath
    )  # the canonical text names them only where types don't decide
    for group in groups:
        head = Text.assemble((score_text(group.score or 0.0), "cyan"), f"  {_percent(group.share)}  ")
        if group.paths == len(group.instances) == 1:
            tree.add(head.append_text(_render_path(group.instances[0], names_relations)))
            continue
        label = (label_text(group.node.label), "bold")
        about = (f"  {counted(group.paths, 'path')}  ", "dim")
        branch = tree.add(Text.assemble(head, label, about, bar(abs(group.share) / largest if largest else 0.0)))
        for instance in group.instances:
            fraction = instance.share / total if total else 0.0
            share = Text.assemble((score_text(instance.share), "cyan"), f"  {_percent(fraction)}  ")
            branch.add(share.append_text(_render_path(instance, names_relations)))
        if group.instances and group.paths > len(group.instances):
            branch.add(Text(f"and {counted(group.paths - len(group.instances), 'more path')}", style="dim"))
    hidden = explanation.num_groups - len(groups)
    if hidden:
        rest = score - sum(group.score or 0.0 for group in groups)
        rest = 0.0 if rest * score < 0 else rest  # by rounding
        tree.add(Text(f"and {counted(hidden, 'more node')}, together {score_text(rest)} of the score", style="dim"))
    return tree


def _render_path(instance: PathInstance, names_relations: bool) -> Text:
    line = Text()
    if instance.weight != 1 and float(instance.weight).is_integer():
        line.append(drawn(f"×{instance.weight:.0f} "), style="yellow")
    for position, node in enumerate(instance.nodes):
        if position:
            link = instance.links[position - 1]
            line.append(f" {link} " if names_relations or "|" in link else drawn(" — "), style="dim")
        is_end = position in (0, len(instance.nodes) - 1)  # which the first line names in full
        line.append(label_text(node.label, _SHORT_END if is_end else _SHORT_NODE))
    return line


def _render_why_not(why_not: WhyNot, target: str) -> list[RenderableType]:
    """Say why a target is not among the best, and along which meta-paths it is."""
    best = "the best" if why_not.k == 1 else f"among the {why_not.k:,} best"
    lines: list[RenderableType] = [Sentence(f"Not {best}. {why_not.sentence}")]
    lines += [
        Sentence(f"Along {path.metapath}, {target} ranks {path.rank:,} of {path.targets:,}.")
        for path in why_not.metapaths
    ]
    if not why_not.metapaths and why_not.complete is not None:
        known = "No meta-path of up to 4 steps, each over one relation, brings it in." if why_not.complete else (
            "No meta-path that was tried brings it in; neupath relate tries more."
        )  # fmt: skip
        lines.append(Sentence(known, "dim"))
    return lines


def _percent(share: float) -> str:
    return " <0.1 %" if 0 < share < 0.0005 else f"{100 * share + 0.0:5.1f} %"


def render_combined(combined: CombinedExplanation) -> Group:
    """Show the score of a combination: the share of each meta-path, then the groups and paths behind it."""
    first = combined.parts[0].explanation
    query, target = (label_text(node.label) for node in (first.query, first.target))
    rank = f", rank {combined.rank:,} of {combined.num_targets:,}" if combined.rank else ""
    head = Text.assemble(*_titled_ends(query, target), (score_text(combined.score), "bold cyan"), rank)
    lines: list[RenderableType] = [head, Sentence(combined.summary)]
    for part in combined.parts:
        why = part.explanation
        percent = _percent(part.share / combined.score).strip() if combined.score else "0 %"
        share = (
            f"{why.metapath} adds {score_text(part.share)}, {percent} of the score: {part.weight:.4g} × {why.measure}"
        )
        lines.append(Text(printable(share), style="bold"))
        if why.num_instances:
            lines.append(_render_groups(why, part.groups(combined.score), part.share, combined.score))
        else:
            lines.append(Text("no path joins them", style="dim"))
    return Group(*lines)


def render_model(result: ModelExplanation, ends: str) -> Group:
    """Show the explanation of a combination, a stack or another learned model."""
    if isinstance(result, StackExplanation):
        return render_stack(result, ends)
    return render_combined(result) if isinstance(result, CombinedExplanation) else render_attention(result, ends)


def render_stack(stack: StackExplanation, ends: str) -> Group:
    """Show the score of a stack, what each learner adds to it, and the explanations of those that show paths."""
    lines: list[RenderableType] = []
    for learner in stack.learners:
        own = f"{learner.name}, weight {learner.weight:.2f}, adds {signed(learner.share)}"
        lines.append(Text(printable(f"{own}: its own score is {score_text(learner.score)}"), style="bold"))
        why = learner.explanation
        lines.append(Text("it shows no paths", style="dim") if why is None else render_model(why, ends))
    return titled(_title(stack, ends), Sentence(stack.shares_text), *lines)


def _title(result: AttentionExplanation | StackExplanation, ends: str) -> str:
    place = f", rank {result.rank:,} of {result.num_targets:,}" if result.rank else ""
    return f"{ends}: {result.measure} = {score_text(result.score)}{place}"


_LISTED_CONTRIBUTIONS = 20


def _render_contributions(explanation: AttentionExplanation) -> Tree:
    """Show what raises and lowers the margin that is squashed to the score, the largest first."""
    assert explanation.base is not None
    assert explanation.margin is not None
    every = explanation.contributions
    sums = f"{signed(explanation.base)} for any pair, and these, add up to {signed(explanation.margin)}"
    tree = Tree(Text(printable(f"{sums}; squashed to 0 to 1: {score_text(explanation.score)}"), style="dim"))
    for each in every[:_LISTED_CONTRIBUTIONS]:
        tree.add(Text.assemble((f"{signed(each.value):>6}", "cyan"), "  ", label_text(each.name)))
    rest = every[_LISTED_CONTRIBUTIONS:]
    if rest:
        tree.add(Text(f"and {len(rest)} more, together {signed(sum(each.value for each in rest))}", style="dim"))
    return tree


def render_attention(explanation: AttentionExplanation, ends: str) -> Group:
    """Show what a model adds up, if it tells, and the nodes in the middle of the paths that it attends to."""
    lines: list[RenderableType] = [Sentence(explanation.summary)]
    if explanation.base is not None:
        lines.append(_render_contributions(explanation))
    if explanation.groups:
        lines.append(_render_attended(explanation))
    return titled(_title(explanation, ends), *lines)


def _render_attended(explanation: AttentionExplanation) -> Tree:
    """Show the nodes in the middle of the paths that a model attends to, and paths, with shares of the attention."""
    tree = Tree(Text("paths by their middle node", style="dim"))
    for group in explanation.groups:
        branch = tree.add(
            Text.assemble(
                (_percent(group.share), "cyan"), "  ", (label_text(group.node.label), "bold"),
                (f"  {counted(group.paths, 'path')}", "dim"),
            )
        )  # fmt: skip
        for instance in group.instances:
            branch.add(Text.assemble((_percent(instance.share), "cyan"), "  ", _render_path_of_model(instance)))
    hidden = explanation.num_groups - len(explanation.groups)
    if hidden:
        tree.add(Text(f"and {counted(hidden, 'more node')}", style="dim"))
    return tree


def _render_path_of_model(instance: PathInstance) -> Text:
    line = Text(label_text(instance.nodes[0].label))
    for link, node in zip(instance.links, instance.nodes[1:], strict=True):
        line.append(f" {link} ", style="dim")
        line.append(label_text(node.label))
    return line


# ---- relate --------------------------------------------------------------------------------------
@takes_options
def relate(source: GraphSource, asked: Relate, output: OutputFlags) -> None:
    """Show every meta-path that joins A and B: edges first, then by length, then by the rank of B.

    Examples:
      neupath relate toy Mike Jim
      neupath relate stdlib ArgumentParser OptionParser
    """
    options = answers.given(asked, "max_steps", "measure", "query_type", "target_type", "limit", "budget")
    related = relate_pair(source.load(asked.as_of), asked.query, asked.target, **options)
    if output.as_json:
        print_json(related.to_dict())
    elif output.is_table:
        through = [{"through": path.group.node.id, "share": path.group.share} for path in related.metapaths]
        rows = [path.to_dict() | group for path, group in zip(related.metapaths, through, strict=True)]
        output.print_table(_OF_A_RELATED_PATH, rows)
    else:
        stdout.print(render_related(related))


_OF_A_RELATED_PATH = (
    "metapath", "measure", "score", "rank", "targets", "percentile", "paths", "through", "share",
)  # fmt: skip


def render_related(related: Related) -> Group:
    """Show the meta-paths that join two nodes, each with what it says of them in a line below."""
    lines: list[RenderableType] = [Sentence(related.summary)]
    table = Table(box=None, padding=(0, 1, 0, 0), show_header=False)
    table.add_column(justify="right", style="dim")
    table.add_column()
    for number, path in enumerate(related.metapaths, 1):
        group = path.group
        facts = (
            f"rank {path.rank:,} of {path.targets:,} (percentile {path.percentile:.1f}), "
            f"{path.measure} {path.score:.4g}, {counted(path.paths, 'path')}, {percent(group.share)} through "
        )
        node = (label_text(group.node.label), "bold")
        table.add_row(str(number), Text.assemble(printable(path.metapath), "\n", (facts, "dim"), node))
    if related.metapaths:
        lines.append(table)
    if related.left_out:
        lines.append(Text(printable(related.left_out), style="dim"))
    return Group(*lines)


# ---- compare -------------------------------------------------------------------------------------
_LETTERS = "ABCDEFGH"


@takes_options
def compare(source: GraphSource, asked: Compare, output: OutputFlags) -> None:
    """Set the hits of QUERY by several meta-paths or measures side by side, with their moves in rank.

    Every -p is ranked by every -m that goes along a meta-path. A rank beyond
    the k best is shown, too, and so is how far it is from the rank under A.

    Examples:
      neupath compare toy Mike -p APVPA -m pathsim -m pathcount
      neupath compare toy Mike --with Bob -p APVPA -m pathsim -m joinsim
      neupath compare stdlib ArgumentParser -p class-method-class -p CBC -k 5
    """
    compared, plot = answers.compare(source.load(asked.as_of), asked), asked.plot
    if plot is not None:
        from neupath.evidence.drawing import draw_comparison

        draw_comparison(compared, plot)
    if output.as_json:
        print_json(compared.to_dict())
    elif output.is_table:
        methods = [", ".join(filter(None, ranking)) for ranking in compared.rankings]
        rows = [node.to_dict() | dict(zip(methods, node.ranks, strict=True)) for node in compared.nodes]
        output.print_table(("id", "name", *methods), rows)
    else:
        stdout.print(render_comparison(compared, compared.query_label if asked.added or asked.removed else asked.query))
    if plot is not None:
        note(f"drawn to {plot}")


def render_comparison(compared: RankComparison, query: str) -> Group:
    """Show rankings side by side: a rank in each and, in green or red, how far it moved from the first."""
    legend = plain_table("", "", "")
    legend.show_header = False
    for letter, (metapath, measure), shared in zip(_LETTERS, compared.rankings, compared.shared, strict=False):
        method = measure if metapath is None else f"{metapath}, {measure}"
        about = "" if letter == "A" else f"{shared} of A's best {compared.k}"
        legend.add_row(Text(letter, style="bold"), Text(printable(method), overflow="fold"), Text(about, style="dim"))
    table = plain_table(f"{compared.target_type}", *(f">{letter}" for letter in _LETTERS[: len(compared.rankings)]))
    room = max(12, 78 - 2 - 9 * len(compared.rankings))
    for node in compared.nodes:
        cells = [_render_rank(rank, move, compared.k) for rank, move in zip(node.ranks, node.moves, strict=True)]
        table.add_row(Text(label_text(node.node.label, room)), *cells)
    return titled(f"hits of {query}, side by side", legend, "", table)


def _render_rank(rank: int | None, move: int | None, k: int) -> Text:
    if rank is None:
        return Text(drawn("–"), style="dim")
    text = Text(f"{rank:,}", style="dim" if rank > k else "")
    if move:
        text.append(drawn(f" {'▲' if move > 0 else '▼'}{abs(move):,}"), style="green" if move > 0 else "red")
    return text
