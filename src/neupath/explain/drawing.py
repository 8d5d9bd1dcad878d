"""Drawings: an explanation as columns of nodes with paths between them, and the learning curve of a model."""

import textwrap
import warnings
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path as Curve
from matplotlib.ticker import FuncFormatter

from neupath._runtime.files import write_whole
from neupath.errors import QueryError
from neupath.explain.explanation import Explanation
from neupath.explain.groups import PathNode

FORMATS = (".svg", ".png", ".pdf")
_COLUMN_WIDTH, _ROW_HEIGHT = 2.4, 0.5  # inches
_COLOURS = ("#3b6fb6", "#c4573a", "#3f8f5f", "#8a5fb0", "#b08a2e", "#4f8f96", "#a34f7c", "#6b6b6b")
_SETTINGS: Any = {"svg.fonttype": "none", "svg.hashsalt": "neupath", "font.size": 9, "text.parse_math": False}

Spot = tuple[int, PathNode]  # a node at a position of the path; a node can stand at several


# ---- Explanations --------------------------------------------------------------------------------
def draw_explanation(explanation: Explanation, path: str | Path) -> Path:
    """Draw the path instances of an explanation; thicker lines carry more of the score.

    Parameters
    ----------
    explanation
        What `explain` returns.
    path
        The file to write, ending in .svg, .png or .pdf.
    """
    target = Path(path)
    if target.suffix.lower() not in FORMATS:
        raise QueryError(f"cannot draw to {target}; the name must end in {', '.join(FORMATS)}")
    with rc_context(_SETTINGS), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # names may be in scripts that the font lacks
        return _write(_draw(explanation), target)


def _draw(explanation: Explanation) -> Figure:
    columns = _columns(explanation)
    tallest = max(len(column) for column in columns)
    size = (_COLUMN_WIDTH * len(columns), _ROW_HEIGHT * (tallest + 1) + 1.5)
    figure, axes = _figure(size)
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
    distinct = dict.fromkeys(explanation.node_types)
    colours = {node_type: _COLOURS[i % len(_COLOURS)] for i, node_type in enumerate(distinct)}
    for (_, node), place in places.items():
        axes.text(
            *place, _short(node.label), ha="center", va="center", color="white", zorder=3,
            bbox={"boxstyle": "round,pad=0.45", "facecolor": colours[node.node_type], "edgecolor": "white"},
        )  # fmt: skip
    for position, node_type in enumerate(explanation.node_types):
        place = position, tallest / 2 + 0.35
        axes.text(*place, node_type, ha="center", va="center", color=colours[node_type], weight="bold")
    axes.text(
        (len(columns) - 1) / 2, -tallest / 2 - 0.45, _caption(explanation), ha="center", va="center", color="#555555"
    )
    figure.suptitle(
        f"{_short(explanation.query.label)} and {_short(explanation.target.label)}: "
        f"{explanation.measure} = {explanation.formula} = {explanation.score:.4f}",
        fontsize=11,
    )
    return figure


def _columns(explanation: Explanation) -> list[list[PathNode]]:
    """List the nodes at each position, heaviest path first."""
    columns: list[dict[PathNode, None]] = [{} for _ in explanation.node_types]
    columns[0][explanation.query] = None
    columns[-1][explanation.target] = None
    for instance in explanation.instances:
        for column, node in zip(columns, instance.nodes, strict=True):
            column[node] = None
    return [list(column) for column in columns]


def _edges(explanation: Explanation) -> dict[tuple[Spot, Spot], float]:
    """Sum, for each pair of neighbouring spots, the shares of the paths through both."""
    shares: dict[tuple[Spot, Spot], float] = defaultdict(float)
    for instance in explanation.instances:
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
    shown = f"{len(explanation.instances)} of {explanation.num_instances:,} paths"
    hidden = f"; the others carry {explanation.hidden_share:.4f} of the score" if explanation.num_hidden else ""
    return f"{explanation.metapath}: {shown}{hidden}"


def _short(text: str) -> str:
    clean = "".join(character if character.isprintable() else " " for character in text)
    return textwrap.shorten(clean, 28, placeholder="…") if " " in clean else clean[:27] + "…" * (len(clean) > 27)


# ---- Learning curves -----------------------------------------------------------------------------
def draw_curve(log: Sequence[Mapping[str, float]], path: str | Path) -> Path:
    """Draw training and validation errors over the epochs of a log to an SVG, PNG or PDF file."""
    figure, axes = _figure((6, 3.6))
    epochs = [entry["epoch"] for entry in log]
    for name, colour in (("train_rmse", _COLOURS[0]), ("validation_rmse", _COLOURS[1])):
        axes.plot(epochs, [entry[name] for entry in log], color=colour, label=name.replace("_rmse", ""), marker=".")
    positive = all(entry[name] > 0 for entry in log for name in ("train_rmse", "validation_rmse"))
    axes.set(xlabel="epoch", ylabel="RMSE", yscale="log" if positive else "linear")
    for axis_formatter in (axes.yaxis.set_major_formatter, axes.yaxis.set_minor_formatter):
        axis_formatter(FuncFormatter(lambda value, _: f"{value:.3g}"))  # math text is off
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    with rc_context(_SETTINGS):
        return _write(figure, Path(path))


# ---- Figures and files ---------------------------------------------------------------------------
def _figure(size: tuple[float, float]) -> tuple[Figure, Axes]:
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.add_subplot()


def _write(figure: Figure, target: Path) -> Path:
    metadata: Any = {"Date": None} if target.suffix.lower() == ".svg" else {}
    write_whole(target, lambda temporary: figure.savefig(temporary, metadata=metadata, dpi=160, facecolor="white"))
    return target
