"""Figures: tables as dots with error bars, and curves, in colours that everybody can tell apart."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from neupath.experiments.tables import Cell, Table
from neupath.files import write_whole

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's colours, which the colour-blind can tell apart."""
_MARKS = "osD^vPX"
_STEP = 0.2
_RANKED = -0.03, 1.03
"""What is shown of nDCG, which is from 0 to 1 also where deviations are not."""
_SETTINGS: Any = {"svg.fonttype": "none", "svg.hashsalt": "neupath", "font.size": 9, "text.parse_math": False}


def draw_tables(tables: Sequence[Table], labels: Sequence[str], path: Path, unit: str) -> None:
    """Draw one panel a column: a line for each row, a dot with its deviation for each table, the paper's as a ring."""
    columns, rows = tables[0].columns, tables[0].rows
    with rc_context(_SETTINGS):
        across = min(4, len(columns))
        down = -(-len(columns) // across)
        figure = Figure(figsize=(3.1 * across + 0.8, down * (0.24 * len(rows) + 1.1) + 0.5), layout="constrained")
        FigureCanvasAgg(figure)
        panels = figure.subplots(down, across, squeeze=False, sharey=True).ravel()
        for axes, column in zip(panels, columns, strict=False):
            for number, table in enumerate(tables):
                _dots(axes, [table.cells.get((row, column), Cell(())) for row in rows], number, labels[number])
            _rings(axes, tables, column)
            axes.set_title(column)
            axes.set_xlabel(unit)
            axes.set_yticks(range(len(rows)), rows)
            axes.set_xlim(*(_RANKED if "nDCG" in unit else (-0.02 * axes.get_xlim()[1], None)))
            if not any(table.cells[row, column].values for table in tables for row in table.rows):
                axes.text(0.5, 0.5, "no query has a related\ntarget to rank", transform=axes.transAxes, ha="center")
            axes.grid(axis="x", alpha=0.3)
        for axes in panels[len(columns) :]:
            axes.set_visible(False)
        panels[0].set_ylim(len(rows) - 0.5, -0.5)
        handles, names = panels[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside upper center", ncols=3, frameon=False)
        _save(figure, path)


def _rings(axes: Axes, tables: Sequence[Table], column: str) -> None:
    """Draw the paper's own numbers around the dots they are to be compared with."""
    for number, table in enumerate(tables):
        known = [
            (table.printed[row, column], y + _STEP * number)
            for y, row in enumerate(table.rows)
            if (row, column) in table.printed
        ]
        if known:
            x, y = zip(*known, strict=True)
            axes.plot(x, y, "o", mfc="none", mec=COLOURS[number], ms=8, label="printed in the paper")


def _dots(axes: Axes, cells: Sequence[Cell], number: int, label: str) -> None:
    known = [(cell.mean, y + _STEP * number, cell.deviation) for y, cell in enumerate(cells) if cell.mean is not None]
    if not known:
        return
    x, y, deviations = zip(*known, strict=True)
    axes.errorbar(x, y, xerr=deviations, fmt=_MARKS[number], ms=4, color=COLOURS[number], capsize=2, label=label)


def draw_curves(
    panels: Mapping[str, Mapping[str, Mapping[float, Cell]]],
    path: Path,
    x_label: str,
    y_label: str,
    *,
    log: str = "",
    tick: str = "{:g}",
) -> None:
    """Draw one panel a title, one curve a name, with deviations as bars; `log` names the axes that are logarithmic."""
    with rc_context(_SETTINGS):
        figure = Figure(figsize=(4.2 * len(panels) + 0.4, 3.6), layout="constrained")
        FigureCanvasAgg(figure)
        every = figure.subplots(1, len(panels), squeeze=False)[0]
        for axes, (title, curves) in zip(every, panels.items(), strict=True):
            for number, (name, points) in enumerate(curves.items()):
                _curve(axes, points, number, name)
            _scale(axes, sorted({x for points in curves.values() for x in points}), log, tick)
            if "nDCG" in y_label:
                axes.set_ylim(*_RANKED)
            axes.set_title(title)
            axes.set_xlabel(x_label)
            axes.set_ylabel(y_label)
            axes.grid(alpha=0.3)
        handles, names = every[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside upper center", ncols=1 + 2 * len(panels), frameon=False)
        _save(figure, path)


def _curve(axes: Axes, points: Mapping[float, Cell], number: int, name: str) -> None:
    known = [(x, cell.mean, cell.deviation) for x, cell in sorted(points.items()) if cell.mean is not None]
    if known:
        x, y, deviations = zip(*known, strict=True)
        colour, mark = COLOURS[number % len(COLOURS)], _MARKS[number % len(_MARKS)]
        axes.errorbar(x, y, yerr=deviations, ms=4, capsize=2, label=name, color=colour, marker=mark)


def _scale(axes: Axes, places: Sequence[float], log: str, tick: str) -> None:
    """Mark the places that were measured; powers of ten are written out, for text is not read as mathematics."""
    if "x" in log:
        axes.set_xscale("log")
    axes.set_xticks(places, [tick.format(x) for x in places])
    axes.xaxis.set_minor_formatter(NullFormatter())
    if "y" in log:
        axes.set_yscale("log", nonpositive="clip")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter(NullFormatter())


def _save(figure: Figure, path: Path) -> None:
    figure.set_layout_engine("constrained", w_pad=0.12)  # fonts where it is looked at may be wider than here
    write_whole(path, lambda temporary: figure.savefig(temporary, metadata={"Date": None}, facecolor="white"))
