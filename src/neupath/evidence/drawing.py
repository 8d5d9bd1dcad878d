"""Drawings: an explanation as bars of its groups above columns of nodes with paths between them; learning curves."""

import textwrap
import warnings
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from neupath._runtime.files import write_whole
from neupath.engine.hits import score_text
from neupath.errors import MissingExtraError, QueryError
from neupath.evidence.comparison import RankComparison
from neupath.evidence.explanation import Explanation
from neupath.evidence.groups import PathInstance, PathNode, counted, percent, shortened

try:
    from matplotlib import rc_context
    from matplotlib.axes import Axes
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path as Curve
    from matplotlib.ticker import FuncFormatter
except ModuleNotFoundError as error:
    raise MissingExtraError("matplotlib", "neupath[plot]") from error

FORMATS = (".svg", ".png", ".pdf")
_COLUMN_WIDTH, _ROW_HEIGHT, _BAR_HEIGHT, _LEAST_WIDTH = 2.4, 0.5, 0.28, 7.2  # inches
_COLOURS = ("#3b6fb6", "#c4573a", "#3f8f5f", "#8a5fb0", "#b08a2e", "#4f8f96", "#a34f7c", "#6b6b6b")
_SETTINGS: Any = {"svg.fonttype": "none", "svg.hashsalt": "neupath", "font.size": 9, "text.parse_math": False}

Spot = tuple[int, PathNode]  # a node at a position of the path; a node can stand at several


# ---- Explanations --------------------------------------------------------------------------------
def draw_explanation(explanation: Explanation, path: str | Path) -> Path:
    """Draw the groups of an explanation as bars, and the heaviest paths of each below; thicker lines carry more.

    Parameters
    ----------
    explanation
        What `explain` returns.
    path
        The file to write, ending in .svg, .png or .pdf; `html_report.write_html` writes pages that unfold.
    """
    return _write(lambda: _draw(explanation), path)


def _draw(explanation: Explanation) -> Figure:
    columns = _columns(explanation)
    tallest = max(len(column) for column in columns)
    heights = [_BAR_HEIGHT * len(explanation.groups) + 0.5, _ROW_HEIGHT * (tallest + 1) + 1.0]
    size = (max(_COLUMN_WIDTH * len(columns), _LEAST_WIDTH), sum(heights) + 1.0)
    figure = _figure(size)
    bars, paths = figure.subplots(2, 1, height_ratios=heights)
    distinct = dict.fromkeys(explanation.node_types)
    colours = {node_type: _COLOURS[i % len(_COLOURS)] for i, node_type in enumerate(distinct)}
    _draw_groups(bars, explanation, colours)
    _draw_paths(paths, explanation, columns, colours)
    title = (
        f"{_short(explanation.query.label)} and {_short(explanation.target.label)}: "
        f"{explanation.measure} = {explanation.calculation}"
    )
    figure.suptitle(_wrapped(title, size[0]), fontsize=11)
    return figure


def _draw_groups(axes: Axes, explanation: Explanation, colours: Mapping[str, str]) -> None:
    """Draw one bar per group, heaviest on top, with its share and number of paths."""
    groups = explanation.groups
    axes.set_axis_off()
    width = axes.get_figure(root=True).get_figwidth()  # type: ignore[union-attr]
    axes.set_title(_wrapped(_clean(explanation.summary), width), fontsize=9, color="#333333")
    if not groups:
        return
    largest = groups[0].share
    axes.set_xlim(0, 2.2 * largest)  # bars take the middle: their labels stand to the left, what they mean to the right
    axes.set_ylim(len(groups) - 0.4, -0.6)
    axes.barh(
        range(len(groups)), [group.share for group in groups], left=0.7 * largest, height=0.6,
        color=[colours[group.node.node_type] for group in groups],
    )  # fmt: skip
    for place, group in enumerate(groups):
        axes.text(0.68 * largest, place, _short(group.node.label), ha="right", va="center")
        about = f"{percent(group.share)}, {counted(group.paths, 'path')}"
        axes.text(0.72 * largest + group.share, place, about, ha="left", va="center", color="#555555")


def _draw_paths(
    axes: Axes, explanation: Explanation, columns: Sequence[Sequence[PathNode]], colours: Mapping[str, str]
) -> None:
    """Draw the nodes of the heaviest paths in columns, and the paths between them."""
    tallest = max(len(column) for column in columns)
    axes.set_axis_off()
    axes.set_xlim(-0.5, len(columns) - 0.5)
    axes.set_ylim(-tallest / 2 - 0.7, tallest / 2 + 0.6)
    places = {
        (position, node): (position, (len(column) - 1) / 2 - row)
        for position, column in enumerate(columns)
        for row, node in enumerate(column)
    }
    for (start, end), share in _edges(explanation).items():
        _draw_edge(axes, places[start], places[end], share / explanation.score if explanation.score else 0.0)
    for (_, node), place in places.items():
        axes.text(
            *place, _short(node.label), ha="center", va="center", color="white", zorder=3,
            bbox={"boxstyle": "round,pad=0.45", "facecolor": colours[node.node_type], "edgecolor": "white"},
        )  # fmt: skip
    for position, node_type in enumerate(explanation.node_types):
        place = position, tallest / 2 + 0.35
        axes.text(*place, _short(node_type), ha="center", va="center", color=colours[node_type], weight="bold")
    axes.text(
        (len(columns) - 1) / 2, -tallest / 2 - 0.45, _caption(explanation), ha="center", va="center", color="#555555"
    )


def _drawn(explanation: Explanation) -> Sequence[PathInstance]:
    """Return the heaviest paths of each group, or of all where there is one group or its paths were not asked for."""
    of_groups = [instance for group in explanation.groups for instance in group.instances]
    return of_groups if of_groups and explanation.num_groups > 1 else explanation.instances


def _columns(explanation: Explanation) -> list[list[PathNode]]:
    """List the nodes at each position, heaviest path first."""
    columns: list[dict[PathNode, None]] = [{} for _ in explanation.node_types]
    columns[0][explanation.query] = None
    columns[-1][explanation.target] = None
    for instance in _drawn(explanation):
        for column, node in zip(columns, instance.nodes, strict=True):
            column[node] = None
    return [list(column) for column in columns]


def _edges(explanation: Explanation) -> dict[tuple[Spot, Spot], float]:
    """Sum, for each pair of neighbouring spots, the shares of the paths through both."""
    shares: dict[tuple[Spot, Spot], float] = defaultdict(float)
    for instance in _drawn(explanation):
        for start, end in pairwise(enumerate(instance.nodes)):
            shares[start, end] += instance.share
    return shares


def _draw_edge(axes: Axes, start: tuple[float, float], end: tuple[float, float], share: float) -> None:
    (x0, y0), (x1, y1) = start, end
    middle = (x0 + x1) / 2
    curve = Curve([(x0, y0), (middle, y0), (middle, y1), (x1, y1)], [Curve.MOVETO, *[Curve.CURVE4] * 3])
    axes.add_patch(
        PathPatch(
            curve, fill=False, linewidth=0.8 + 7 * share, edgecolor="#8899aa", alpha=0.65, zorder=1, capstyle="round"
        )
    )


def _caption(explanation: Explanation) -> str:
    if not explanation.num_instances:
        return "no path joins them"
    drawn = _drawn(explanation)
    shown = f"{len(drawn)} of {explanation.num_instances:,} paths"
    rest = max(0.0, explanation.score - sum(instance.share for instance in drawn))
    hidden = f"; the others carry {score_text(rest)} of the score" if len(drawn) < explanation.num_instances else ""
    return f"{_clean(explanation.metapath)}: {shown}{hidden}"


def _wrapped(text: str, inches: float) -> str:
    return "\n".join(textwrap.wrap(text, int(10 * inches)))


def _clean(text: str) -> str:
    return "".join(character if character.isprintable() else " " for character in text)


def _short(text: str) -> str:
    return shortened(_clean(text), 28)


# ---- Comparisons ---------------------------------------------------------------------------------
def draw_comparison(compared: RankComparison, path: str | Path) -> Path:
    """Draw each node as a line through its ranks, the best on top; ranks beyond k share the line at the bottom.

    Parameters
    ----------
    compared
        What `comparison.compare` returns.
    path
        The file to write, ending in .svg, .png or .pdf.
    """
    return _write(lambda: _draw_ranks(compared), path)


def _draw_ranks(compared: RankComparison) -> Figure:
    last, width = compared.k + 1, len(compared.rankings)
    figure = _figure((max(_LEAST_WIDTH, 2.0 * width + 2.0), 0.32 * last + 1.4))
    axes = figure.subplots()
    for number, node in enumerate(compared.nodes):
        ranks = [last if rank is None else min(rank, last) for rank in node.ranks]
        colour = _COLOURS[number % len(_COLOURS)]
        axes.plot(range(width), ranks, marker="o", markersize=4, linewidth=1.4, color=colour)
        label = shortened(node.node.label, 24)
        for at, align, shift in ((0, "right", -0.06), (width - 1, "left", 0.06)):
            if ranks[at] < last:
                axes.text(at + shift, ranks[at], label, ha=align, va="center", fontsize=7, color=colour)
        best = ranks.index(min(ranks))
        if min(ranks[0], ranks[-1]) == last:  # only between the ends is it among the best
            axes.text(best, ranks[best] - 0.12, label, ha="center", va="bottom", fontsize=7, color=colour)
    names = [measure if path is None else f"{shortened(path, 30)}\n{measure}" for path, measure in compared.rankings]
    axes.set_xticks(range(width), names, fontsize=7)
    axes.set_yticks(range(1, last + 1), [*map(str, range(1, last)), "lower"])
    axes.set_xlim(-0.9, width - 0.1)
    axes.invert_yaxis()
    axes.set_title(f"ranks of the hits of {shortened(compared.query_label, 40)}")
    for side in ("top", "right", "bottom"):
        axes.spines[side].set_visible(False)
    return figure


# ---- Learning curves -----------------------------------------------------------------------------
def draw_curve(log: Sequence[Mapping[str, float]], path: str | Path) -> Path:
    """Draw training and validation errors over the epochs of a log to an SVG, PNG or PDF file."""
    return _write(lambda: _draw_errors(log), path)


def _draw_errors(log: Sequence[Mapping[str, float]]) -> Figure:
    figure = _figure((6, 3.6))
    axes = figure.subplots()
    epochs = [entry["epoch"] for entry in log]
    for name, colour in (("train_rmse", _COLOURS[0]), ("validation_rmse", _COLOURS[1])):
        axes.plot(epochs, [entry[name] for entry in log], color=colour, label=name.replace("_rmse", ""), marker=".")
    positive = all(entry[name] > 0 for entry in log for name in ("train_rmse", "validation_rmse"))
    axes.set(xlabel="epoch", ylabel="RMSE", yscale="log" if positive else "linear")
    for axis_formatter in (axes.yaxis.set_major_formatter, axes.yaxis.set_minor_formatter):
        axis_formatter(FuncFormatter(lambda value, _: f"{value:.3g}"))  # math text is off
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    return figure


# ---- Figures and files ---------------------------------------------------------------------------
def _figure(size: tuple[float, float]) -> Figure:
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _write(draw: Callable[[], Figure], path: str | Path) -> Path:
    """Write what a function draws to a file of the format that its name says."""
    target = Path(path)
    if target.suffix.lower() not in FORMATS:
        raise QueryError(f"cannot draw to {target}; the name must end in {', '.join(FORMATS)}")
    metadata: Any = {"Date": None} if target.suffix.lower() == ".svg" else {}
    with rc_context(_SETTINGS), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # names may be in scripts that the font lacks
        figure = draw()
        write_whole(target, lambda temporary: figure.savefig(temporary, metadata=metadata, dpi=160, facecolor="white"))
    return target
