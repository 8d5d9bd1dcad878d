"""Rendering: results as a terminal shows them, tables, trees and bars."""

from collections.abc import Sequence
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from neupath.description import Description
from neupath.evaluation import Evaluation
from neupath.explanation import Explanation, PathInstance
from neupath.inference import CombinedExplanation, Inferred, Suggestion
from neupath.search import Hits

_BAR = 10
_ERRORS = [("rmse", "held-out RMSE"), ("r2", "held-out R²")]


def render_hits(hits: Hits, title: str) -> Group:
    """Show hits as a ranked table with a bar for each score, the longest for the best."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    show_names = any(hit.name and hit.name != hit.id for hit in hits)
    table.add_column("", justify="right", style="dim")
    if show_names:
        table.add_column("name", max_width=40, overflow="ellipsis", no_wrap=True)
    table.add_column("id", style="dim" if show_names else "", overflow="fold")
    table.add_column("score", justify="right")
    table.add_column("")
    best = max(hits.scores, default=0.0)
    for hit in hits:
        name = [Text(printable(hit.name or ""))] if show_names else []
        bar = _bar(hit.score / best if best > 0 else 0.0)
        table.add_row(str(hit.rank), *name, Text(printable(str(hit.id))), f"{hit.score:.4f}", Text(bar, style="cyan"))
    return Group(Text(printable(title), style="bold"), table)


def _bar(share: float) -> str:
    eighths = round(share * _BAR * 8)
    return "█" * (eighths // 8) + ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")[eighths % 8]


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
    named = " " in explanation.metapath  # the canonical path names relations only where types don't decide
    for position, node in enumerate(instance.nodes):
        if position:
            link = instance.links[position - 1]
            line.append(f" {link} " if named or "|" in link else " — ", style="dim")
        line.append(printable(node.label))
    return line


def render_combined(combined: CombinedExplanation) -> Group:
    """Show why a combination scores two nodes as it does: the share of each meta-path, then the paths behind it."""
    first = combined.parts[0].explanation
    query, target = printable(first.query.label), printable(first.target.label)
    head = Text.assemble((query, "bold"), " and ", (target, "bold"), ": ", (f"{combined.score:.4f}", "bold cyan"))
    trees: list[Text | Tree] = []
    for part in combined.parts:
        why = part.explanation
        told = f"{why.metapath} adds {part.share:.4f}, {_percent(part.share, combined.score).strip()} of the score: "
        trees += [Text(f"{told}{part.weight:.4g} × {why.measure}", style="bold"), render_explanation(why)]
    return Group(head, *trees)


def render_inferred(found: Inferred, title: str, most: int = 6) -> Group:
    """Show what labelled pairs mean, how sure that is, and what else they could mean."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("meta-path", overflow="fold")
    for column in ("weight", "9 in 10 resamples"):
        table.add_column(column, justify="right")
    table.add_column("")
    heaviest = max(part.weight for part in found.parts) or 1.0
    for part in found.parts:
        between = "-" if part.low is None else f"{part.low:.3f} to {part.high:.3f}"
        table.add_row(
            Text(printable(part.metapath)), f"{part.weight:.3f}", between, Text(_bar(part.weight / heaviest), "cyan")
        )
    lines: list[Text | Table] = [Text(printable(title), style="bold"), Text(f"measure: {found.measure}"), table]
    style = "green" if found.explains else "yellow"
    lines.append(Text(found.verdict, style=style))
    if found.kind == "scores":
        lines.append(Text(f"on these labels RMSE {found.rmse:.4g}, R² {found.r2:.4f}"))
    searched = found.searched
    told = f"searched {searched.tried:,} of {searched.total:,} meta-paths"
    told += f"; {searched.too_large:,} reach too many nodes" if searched.too_large else ""
    told += f"; {searched.leading_nowhere:,} lead nowhere from these nodes" if searched.leading_nowhere else ""
    told += f"; stopped: {searched.stopped}" if searched.stopped else ""
    lines.append(Text(told, style="dim"))
    if found.alternatives:
        lines.append(Text("these labels cannot tell it from:", style="bold"))
        lines += [Text(f"  {printable(str(other))}") for other in found.alternatives[:most]]
        left = len(found.alternatives) - most
        lines += [Text(f"  and {left:,} more", style="dim")] if left > 0 else []
    return Group(*lines)


def render_suggestions(suggestions: Sequence[Suggestion]) -> Group:
    """Show pairs worth labelling, and between what the explanations put their score."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in ("query", "target"):
        table.add_column(column, overflow="fold")
    table.add_column("explanations say", justify="right")
    for pair in suggestions:
        table.add_row(
            *(Text(printable(label)) for label in pair.labels), f"{min(pair.scores):.3f} to {max(pair.scores):.3f}"
        )
    return Group(Text("a label for one of these would tell most:", style="bold"), table)


def render_comparison(rows: Sequence[dict[str, Any]]) -> Table:
    """Show models side by side by their held-out error."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("model")
    shown = [("auc", "held-out AUC")] if any(row["auc"] is not None for row in rows) else _ERRORS
    for _, column in (*shown, ("", "seconds")):
        table.add_column(column, justify="right")
    for row in rows:
        if row["reason"]:
            table.add_row(row["model"], *("-" for _ in shown), Text(f"left out: {row['reason']}", style="dim"))
        else:
            table.add_row(row["model"], *(f"{row[key]:.4f}" for key, _ in shown), f"{row['seconds']:.1f}")
    return table


def render_looks(looks: Sequence[Any], title: str) -> Tree:
    """Show the paths a model looked at, each with its share of the model's attention."""
    tree = Tree(Text(printable(title), style="bold"))
    for look in looks:
        line = Text.assemble((f"{100 * look.weight:5.1f} %", "cyan"), "  ")
        line.append("", style="" if look.from_query else "dim")
        for position, node in enumerate(look.nodes):
            line.append(f" {look.links[position - 1]} " if position else "", style="dim")
            line.append(printable(node.name or str(node.id)), style="" if look.from_query else "dim")
        tree.add(line)
    tree.add(Text("bright: paths from the query; dim: what the model sees of the target itself", style="dim"))
    return tree


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:5.1f} %" if whole else "    - %"


def render_description(description: Description, title: str) -> Group:
    """Show a graph's types, relations and candidate meta-paths."""
    types = Table(box=None, padding=(0, 2, 0, 0))
    for column, justify in (
        ("node type", "left"),
        ("nodes", "right"),
        ("isolated", "right"),
        ("known of each", "left"),
    ):
        types.add_column(column, justify=justify)  # type: ignore[arg-type]
    for kind in description.node_types:
        known = ", ".join(["id", *(["name"] if kind.named else []), *kind.attributes])
        types.add_row(Text(kind.node_type), f"{kind.nodes:,}", f"{kind.isolated:,}", Text(printable(known)))
    relations = Table(box=None, padding=(0, 2, 0, 0))
    relations.add_column("relation")
    for column in ("edges", "a source has", "at most", "a target has", "at most"):
        relations.add_column(column, justify="right")
    for r in description.relations:
        name = f"{r.source} -{r.name}{'->' if r.directed else '-'} {r.target}"
        name += f" (weight {r.weight:,.6g})" if r.weight != r.edges else ""
        relations.add_row(
            Text(printable(name)), f"{r.edges:,}", f"{r.source_degree_mean:.1f}", f"{r.source_degree_max:,}",
            f"{r.target_degree_mean:.1f}", f"{r.target_degree_max:,}",
        )  # fmt: skip
    paths = Table(box=None, padding=(0, 2, 0, 0))
    paths.add_column("to search for")
    paths.add_column("symmetric meta-paths, shortest first")
    for node_type, found in description.metapaths.items():
        paths.add_row(Text(node_type), Text("\n".join(found)))
    notes = [Text(f"note: {printable(note)}", style="yellow") for note in description.notes]
    return Group(Text(printable(title), style="bold"), types, "", relations, "", paths, *notes)


def render_evaluation(evaluation: Evaluation, title: str) -> Group:
    """Show how near a scorer comes to an exact measure."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("metric")
    table.add_column("value", justify="right")
    for name, value in evaluation.to_dict().items():
        if isinstance(value, float):
            table.add_row(name, f"{value:.4f}" if name != "seconds_per_query" else f"{value:.6f}")
        elif name not in ("metapath", "protocol"):
            table.add_row(name, "-" if value is None else str(value))
    return Group(Text(printable(title), style="bold"), table)


def render_shares(shares: Sequence[tuple[str, float]], title: str, most: int = 10) -> Group:
    """Return shares of 1 as a histogram, one row each."""
    table = Table(show_header=True, header_style="bold", box=None, pad_edge=False)
    table.add_column("meta-path")
    table.add_column("share", justify="right")
    table.add_column("")
    for text, share in shares[:most]:
        table.add_row(printable(text), f"{share:.3f}", "█" * max(1, round(40 * share)))
    left = sum(share for _, share in shares[most:])
    if left > 0:
        table.add_row(f"{len(shares) - most:,} more", f"{left:.3f}", "")
    return Group(Text(printable(title), style="bold"), table)


def printable(text: str) -> str:
    """Replace characters that would move the cursor or ring the bell."""
    return "".join(character if character.isprintable() else "�" for character in text)
