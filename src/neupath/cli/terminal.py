"""What every command does with a graph and a terminal: load, note, print."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Console, Group
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from neupath.engine.hits import Hits
from neupath.errors import QueryError, listed
from neupath.explain.explanation import CombinedExplanation, Explanation, PathInstance
from neupath.graph.hin import HIN
from neupath.graph.metapath import enumerate_metapaths
from neupath.graph.schema import Schema
from neupath.graph.summary import Summary
from neupath.io import load
from neupath.learn.evaluation import Evaluation
from neupath.learn.inference import Inferred, Suggestion
from neupath.learn.labels import Protocol
from neupath.measures import GRAPH_MEASURES, MEASURES

# ---- Progress ------------------------------------------------------------------------------------
T = TypeVar("T")


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

    def counter(self, title: str) -> "CountBar":
        """Return a bar that is told how many of how many are done, to be used with `with`."""
        return CountBar(self._progress(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()), title)

    def download(self) -> "DownloadBar":
        """Return a bar for downloads, to be used with `with`."""
        return DownloadBar(self._progress(TextColumn("{task.description}"), BarColumn(), DownloadColumn()))

    def stages(self) -> "StageBar":
        """Return a bar for work in stages, to be used with `with`."""
        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
        return StageBar(self._progress(*columns))

    def _progress(self, *columns: ProgressColumn) -> Progress:
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


class CountBar:
    """A bar over things that are counted as they are done."""

    def __init__(self, progress: Progress, title: str) -> None:
        self._progress = progress
        self._task = progress.add_task(title, total=None)

    def __enter__(self) -> "CountBar":
        self._progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._progress.stop()

    def __call__(self, done: int, total: int) -> None:
        self._progress.update(self._task, completed=done, total=total)


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

    def __call__(self, name: str, done: int, total: int | None) -> None:
        if name not in self._tasks:
            self._tasks[name] = self._progress.add_task(name, total=total or None)
        self._progress.update(self._tasks[name], completed=done)  # type: ignore[arg-type]


class StageBar:
    """One bar a stage, by the share of it that is done; shown from the first one on."""

    def __init__(self, progress: Progress) -> None:
        self._bars = DownloadBar(progress)
        self._shown = False

    def __enter__(self) -> "StageBar":
        return self

    def __exit__(self, *error: object) -> None:
        if self._shown:
            self._bars.__exit__(*error)

    def __call__(self, title: str, done: int, total: int | None) -> None:
        if not self._shown:
            self._bars.__enter__()
            self._shown = True
        self._bars(title, done, total)


# ---- Rendering -----------------------------------------------------------------------------------
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


def render_description(description: Summary, title: str) -> Group:
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


# ---- The options that several commands share -----------------------------------------------------
Graph = Annotated[
    str,
    typer.Argument(
        metavar="GRAPH",
        help="A built-in name, a folder of tables, a file of triples, a .mat or GraphML file, or a store.",
    ),
]
MetaPathOption = Annotated[
    str | None, typer.Option("--metapath", "-p", help="The meta-path, such as movie-actor-movie or MAM.")
]
Measure = Annotated[str, typer.Option("--measure", "-m", help=f"One of {', '.join(MEASURES)}.")]
AnyMeasure = Annotated[
    str | None,
    typer.Option(
        "--measure",
        "-m",
        help=f"Along --metapath: {', '.join(MEASURES)}. Over the whole graph: {', '.join(GRAPH_MEASURES)}.",
        show_default="pathsim",
    ),
]
TypeOption = Annotated[
    str | None,
    typer.Option("--node-type", help="The type of QUERY, for a measure without --metapath; found where it is clear."),
]
Model = Annotated[
    Path | None, typer.Option("--model", help="A folder with a saved model or measure, instead of --metapath.")
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


# ---- What every command does with a graph and a terminal -----------------------------------------
out = Console()
err = Console(stderr=True)


class CommandError(Exception):
    """An error of the library, rendered for the command line."""


class StoppedError(Exception):
    """The user stopped a command, which says what it leaves behind."""


def load_graph(
    graph: str,
    config: Path | None = None,
    duplicates: str | None = None,
    data: Path | None = None,
    as_of: int | None = None,
) -> HIN:
    """Read the graph a command was given, with progress on the terminal."""
    choice: Any = duplicates
    with ProgressBars(err).stages() as progress:
        return load(graph, config=config, duplicates=choice, data=data, as_of=as_of, progress=progress)


def required_path(schema: Schema, path: str | None) -> str:
    """Return the meta-path a command was given, or say which ones there are."""
    if path is not None:
        return path
    some = [next(enumerate_metapaths(schema, t, 2)) for t in schema.node_types if schema.neighbours(t)]
    raise QueryError(
        f"no meta-path is given; say what makes two nodes similar with --metapath, such as {listed(map(str, some), 4)}"
    )


def note_relations(told: list[str]) -> None:
    """Say which steps of a meta-path follow several relations."""
    for line in told:
        note(line)


def note(text: str) -> None:
    """Say something beside the result, on standard error."""
    err.print(f"note: {printable(text)}", style="dim", highlight=False, markup=False, soft_wrap=True)


def print_json(content: object) -> None:
    """Print a result as one line of JSON."""
    print(json.dumps(content, ensure_ascii=False))
