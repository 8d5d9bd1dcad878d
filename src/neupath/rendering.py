"""Rendering: results as a terminal shows them, tables, trees and bars."""

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from rich.console import Console, Group
from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from neupath.description import Description
from neupath.evaluation import Evaluation
from neupath.explanation import Explanation, PathInstance
from neupath.search import Hits

T = TypeVar("T")
_BAR = 10


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


class ProgressBars:
    """Progress bars on a console, gone when the work is done; nothing where the console is not a terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def over(self, items: Sequence[T], title: str, /) -> Iterable[T]:
        """Go through items with a bar and the time left."""
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with self._progress(*columns) as progress:
            yield from progress.track(items, description=title)

    def epochs(self, title: str) -> "EpochBar":
        """Return a bar for training, to be used with `with`."""
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        return EpochBar(self._progress(*columns), title)

    def download(self) -> "DownloadBar":
        """Return a bar for downloads, to be used with `with`."""
        return DownloadBar(self._progress(TextColumn("{task.description}"), BarColumn(), DownloadColumn()))

    def _progress(
        self, *columns: TextColumn | BarColumn | MofNCompleteColumn | TimeRemainingColumn | DownloadColumn
    ) -> Progress:
        return Progress(*columns, console=self._console, transient=True, disable=not self._console.is_terminal)


class EpochBar:
    """A bar over epochs with the errors of the last one."""

    def __init__(self, progress: Progress, title: str) -> None:
        self._progress = progress
        self._title = title
        self._task = progress.add_task(title, total=None)

    def __enter__(self) -> "EpochBar":
        self._progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._progress.stop()

    def __call__(self, epoch: Any, total: int) -> None:
        told = f"{self._title}: RMSE {epoch.train_rmse:.4f}, validation {epoch.validation_rmse:.4f}"
        self._progress.update(self._task, completed=epoch.epoch, total=total, description=told)


class DownloadBar:
    """One bar a file of a download."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._tasks: dict[str, int] = {}

    def __enter__(self) -> "DownloadBar":
        self._progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._progress.stop()

    def __call__(self, name: str, done: int, total: int) -> None:
        if name not in self._tasks:
            self._tasks[name] = self._progress.add_task(name, total=total or None)
        self._progress.update(self._tasks[name], completed=done)  # type: ignore[arg-type]
