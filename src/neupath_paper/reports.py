"""Reports: the tables and the figure of each part, as CSV, Markdown and SVG."""

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from neupath._runtime.files import write_text, write_whole
from neupath_paper.protocol import PRINTED_ABLATION_NDCG, PRINTED_ABLATION_RMSE, PRINTED_NDCG, PRINTED_RMSE
from neupath_paper.runs import CLASSICAL, INFERRED, LEARNED, REFERENCE_RANKINGS, VARIANTS, Study

# ---- Tables --------------------------------------------------------------------------------------
Result = Mapping[str, Any]
Numbers = Mapping[tuple[str, str], float]
"""The paper's numbers, by row and column."""


@dataclass(frozen=True)
class Cell:
    """A metric of runs that differ only in their seed."""

    values: tuple[float, ...]

    @property
    def mean(self) -> float | None:
        return fmean(self.values) if self.values else None

    @property
    def deviation(self) -> float:
        """The sample standard deviation, 0 for one value."""
        return stdev(self.values) if len(self.values) > 1 else 0.0

    def text(self, decimals: int) -> str:
        """Return the mean and, where it is not 0 to as many decimals, the deviation."""
        if self.mean is None:
            return "-"
        spread = f" ± {self.deviation:.{decimals}f}" if self.deviation >= 0.5 * 10**-decimals else ""
        return f"{self.mean:.{decimals}f}{spread}"


@dataclass(frozen=True)
class ResultTable:
    """Cells by row and column; `printed` has the paper's own numbers."""

    title: str
    corner: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: Mapping[tuple[str, str], Cell]
    printed: Numbers
    lower_is_better: bool
    decimals: int = 4

    def cell(self, row: str, column: str) -> Cell:
        """Return a cell; a missing run is an empty one."""
        return self.cells.get((row, column), Cell(()))

    def best(self, column: str) -> float | None:
        """Return the best mean of a column."""
        means = [mean for row in self.rows if (mean := self.cell(row, column).mean) is not None]
        return (min(means) if self.lower_is_better else max(means)) if means else None

    def to_markdown(self) -> str:
        """Return the table; the best of each column is bold, the paper's number stands in brackets."""
        lines = [f"**{self.title}**", "", f"| {self.corner} | " + " | ".join(self.columns) + " |"]
        lines.append("|---|" + "---:|" * len(self.columns))
        lines += [
            f"| {row} | " + " | ".join(self._text(row, column) for column in self.columns) + " |" for row in self.rows
        ]
        return "\n".join(lines)

    def _text(self, row: str, column: str) -> str:
        cell, printed = self.cell(row, column), self.printed.get((row, column))
        best = self.best(column)
        is_best = cell.mean is not None and best is not None and abs(cell.mean - best) < 0.5 * 10**-self.decimals
        text = cell.text(self.decimals)
        text = f"**{text}**" if is_best else text
        return text if printed is None else f"{text} ({printed:.4f})"


def make_table(
    title: str,
    results: Iterable[Result],
    metric: str,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    row_of: Callable[[Result], str] = lambda result: str(result["model"]),
    corner: str = "model",
    printed: Numbers | None = None,
) -> ResultTable:
    """Make a table of a metric: one column per meta-path, and those rows that have any result."""
    values: dict[tuple[str, str], list[float]] = {}
    for result in results:
        own = values.setdefault((row_of(result), str(result["path"])), [])
        if isinstance(result.get(metric), int | float):
            own.append(float(result[metric]))
    cells = {key: Cell(tuple(own)) for key, own in values.items()}
    kept = tuple(row for row in rows if any((row, column) in cells for column in columns))
    lower_is_better = not metric.startswith("ndcg")
    return ResultTable(title, corner, kept, tuple(columns), cells, printed or {}, lower_is_better)


def to_csv(tables: Mapping[str, ResultTable]) -> str:
    """Return tables as one CSV with a line per cell."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["table", "row", "column", "mean", "deviation", "seeds", "printed"])
    for name, table in tables.items():
        for row in table.rows:
            for column in table.columns:
                cell, printed = table.cell(row, column), table.printed.get((row, column), "")
                mean = "" if cell.mean is None else f"{cell.mean:.6g}"
                writer.writerow([name, row, column, mean, f"{cell.deviation:.6g}", len(cell.values), printed])
    return text.getvalue()


# ---- Figures -------------------------------------------------------------------------------------
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""The colour-blind safe palette of Okabe and Ito."""
_MARKS = "osD^vPX"
_STEP = 0.2
_RANKED = -0.03, 1.03
"""The axis limits of nDCG."""
_SETTINGS: Any = {"svg.fonttype": "none", "svg.hashsalt": "neupath", "font.size": 9, "text.parse_math": False}


@contextmanager
def _panels(path: Path, shape: tuple[int, int], size: tuple[float, float], sharey: bool, ncols: int) -> Iterator[Any]:
    """Yield the panels of a figure to draw into; then add the legend and write it."""
    with rc_context(_SETTINGS):
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)
        panels = figure.subplots(*shape, squeeze=False, sharey=sharey).ravel()
        yield panels
        handles, names = panels[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside upper center", ncols=ncols, frameon=False)
        figure.set_layout_engine("constrained", w_pad=0.12)  # the fonts of a viewer may be wider
        write_whole(path, lambda temporary: figure.savefig(temporary, metadata={"Date": None}, facecolor="white"))


def draw_tables(tables: Sequence[ResultTable], path: Path, unit: str) -> None:
    """Draw one panel a column: a line for each row, a dot with its deviation for each table, the paper's as a ring."""
    columns, rows = tables[0].columns, tables[0].rows
    across = min(4, len(columns))
    down = -(-len(columns) // across)
    size = 3.1 * across + 0.8, down * (0.24 * len(rows) + 1.1) + 0.5
    with _panels(path, (down, across), size, sharey=True, ncols=3) as panels:
        for axes, column in zip(panels, columns, strict=False):
            for number, table in enumerate(tables):
                _dots(axes, table, rows, column, number)
            for number, table in enumerate(tables):
                _rings(axes, table, column, number)
            axes.set_title(column)
            axes.set_xlabel(unit)
            axes.set_yticks(range(len(rows)), rows)
            axes.set_xlim(*(_RANKED if unit == "nDCG" else (-0.02 * axes.get_xlim()[1], None)))
            if not any(table.cell(row, column).values for table in tables for row in table.rows):
                axes.text(0.5, 0.5, "no query has a related\ntarget to rank", transform=axes.transAxes, ha="center")
            axes.grid(axis="x", alpha=0.3)
        for axes in panels[len(columns) :]:
            axes.set_visible(False)
        panels[0].set_ylim(len(rows) - 0.5, -0.5)


def _dots(axes: Axes, table: ResultTable, rows: Sequence[str], column: str, number: int) -> None:
    cells = [(y + _STEP * number, table.cell(row, column)) for y, row in enumerate(rows)]
    known = [(cell.mean, y, cell.deviation) for y, cell in cells if cell.mean is not None]
    if known:
        x, y, deviations = zip(*known, strict=True)
        label = table.title.removeprefix("RMSE over ").removeprefix("RMSE on the ")
        axes.errorbar(x, y, xerr=deviations, fmt=_MARKS[number], ms=4, color=COLOURS[number], capsize=2, label=label)


def _rings(axes: Axes, table: ResultTable, column: str, number: int) -> None:
    """Draw the paper's own numbers around the dots they are to be compared with."""
    places = {row: y + _STEP * number for y, row in enumerate(table.rows) if (row, column) in table.printed}
    if places:
        x = [table.printed[row, column] for row in places]
        axes.plot(x, [*places.values()], "o", mfc="none", mec=COLOURS[number], ms=8, label="printed in the paper")


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
    size = 4.2 * len(panels) + 0.4, 3.6
    with _panels(path, (1, len(panels)), size, sharey=False, ncols=1 + 2 * len(panels)) as every:
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


def _curve(axes: Axes, points: Mapping[float, Cell], number: int, name: str) -> None:
    known = [(x, cell.mean, cell.deviation) for x, cell in sorted(points.items()) if cell.mean is not None]
    if known:
        x, y, deviations = zip(*known, strict=True)
        colour, mark = COLOURS[number % len(COLOURS)], _MARKS[number % len(_MARKS)]
        axes.errorbar(x, y, yerr=deviations, ms=4, capsize=2, label=name, color=colour, marker=mark)


def _scale(axes: Axes, places: Sequence[float], log: str, tick: str) -> None:
    """Put ticks at the measured places; numbers are written out, because mathtext is off."""
    if "x" in log:
        axes.set_xscale("log")
    axes.set_xticks(places, [tick.format(x) for x in places])
    axes.xaxis.set_minor_formatter(NullFormatter())
    if "y" in log:
        axes.set_yscale("log", nonpositive="clip")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter(NullFormatter())


# ---- Reports -------------------------------------------------------------------------------------
NDCG, NDCG_TITLE = "ndcg@20", "nDCG@20, strict"
_PAPER = "the paper's protocol"
_RELATED_TITLE = "RMSE over related pairs, strict"


def report_rmse(results: Sequence[Result], study: Study, folder: Path) -> list[Path]:
    """Report how near scores come."""
    rows, columns = (*LEARNED, INFERRED), _metapaths(study)
    paper, strict = ([r for r in results if r["protocol"] == protocol] for protocol in ("paper", "strict"))
    related = [r if r["ranked_queries"] else {**r, "rmse_nonzero": None} for r in strict]  # no related pairs, no error
    title = f"RMSE on the top 10, {_PAPER}"
    tables = {
        "paper": make_table(title, paper, "rmse_top", rows, columns, printed=PRINTED_RMSE),
        "strict_all": make_table("RMSE over all pairs, strict", strict, "rmse_all", rows, columns),
        "strict_related": make_table(_RELATED_TITLE, related, "rmse_nonzero", rows, columns),
    }
    draw_tables([tables["strict_related"], tables["paper"]], folder / "rmse.svg", "RMSE")
    return _write(folder, "rmse", tables)


def report_ndcg(results: Sequence[Result], study: Study, folder: Path) -> list[Path]:
    """Report how good rankings are; what learns nothing from labels has the same results under both protocols."""
    rows, columns = (*LEARNED, INFERRED, *CLASSICAL), _metapaths(study)
    paper, strict = (
        [r for r in results if r["protocol"] == protocol or r["model"] in CLASSICAL] for protocol in ("paper", "strict")
    )
    title = f"nDCG as released, {_PAPER}"
    tables = {
        "paper": make_table(title, paper, "ndcg_released", rows, columns, printed=PRINTED_NDCG),
        "strict": make_table(NDCG_TITLE, strict, NDCG, rows, columns),
    }
    draw_tables([tables["strict"], tables["paper"]], folder / "ndcg.svg", "nDCG")
    return _write(folder, "ndcg", tables)


def report_ablation(results: Sequence[Result], study: Study, folder: Path) -> list[Path]:
    """Report what NeuPath loses without its parts."""
    names = {tuple(sorted(settings)): name for name, settings in VARIANTS.items()}
    wanted: dict[str, tuple[str, str, str, Numbers]] = {
        "paper_rmse": ("paper", "rmse_top", f"RMSE on the top 10, {_PAPER}", PRINTED_ABLATION_RMSE),
        "paper_ndcg": ("paper", "ndcg_released", f"nDCG as released, {_PAPER}", PRINTED_ABLATION_NDCG),
        "strict_rmse": ("strict", "rmse_nonzero", _RELATED_TITLE, {}),
        "strict_ndcg": ("strict", NDCG, NDCG_TITLE, {}),
    }
    tables = {
        name: make_table(
            title, [r for r in results if r["protocol"] == protocol], metric, list(VARIANTS),
            [column.metapath for column in study.ablated],
            row_of=lambda r: names[tuple(sorted(r["settings"].items()))], corner="variant", printed=numbers,
        )
        for name, (protocol, metric, title, numbers) in wanted.items()
    }  # fmt: skip
    draw_tables([tables["strict_ndcg"], tables["paper_ndcg"]], folder / "ablation.svg", "nDCG")
    return _write(folder, "ablation", tables)


def report_paths(results: Sequence[Result], study: Study, folder: Path) -> list[Path]:
    """Report how NeuPath does with T paths."""
    usual = {column.metapath: column.paths for column in study.columns}
    rows = {str(t): float(t) for t in range(1, study.preset.most_paths + 1)}
    tables = _focused(results, study, "T", list(rows), lambda r: str(r["settings"].get("paths", usual[r["path"]])))
    curves = _curves({table.title.partition(": ")[2]: table for table in tables.values()}, rows)
    draw_curves(curves, folder / "paths.svg", "T, the path instances kept", "nDCG@20 and RMSE")
    return _write(folder, "paths", tables)


def report_labels(results: Sequence[Result], study: Study, folder: Path) -> list[Path]:
    """Report how models do with few training queries."""
    models = [model for model in ("neupath-paper", "neupath", "countpath") if any(r["model"] == model for r in results)]
    rows = {f"{share:.2%}": 100 * share for share in study.preset.shares}
    tables: dict[str, ResultTable] = {}
    for model in models:
        own = [result for result in results if result["model"] == model]
        focused = _focused(own, study, "training queries", list(rows), lambda r: f"{float(r['share']):.2%}")
        tables |= {f"{model}_{name}": table for name, table in focused.items()}
    curves = _curves({model: tables[f"{model}_ndcg"] for model in models}, rows)
    x_label = f"share of {study.preset.queries[0]} training queries"
    draw_curves(curves, folder / "labels.svg", x_label, NDCG_TITLE, log="x", tick="{:.3g} %")
    return _write(folder, "labels", tables)


def _focused(
    results: Sequence[Result], study: Study, corner: str, rows: Sequence[str], row_of: Callable[[Result], str]
) -> dict[str, ResultTable]:
    columns = [column.metapath for column in study.focus]
    metrics = {"ndcg": (NDCG, NDCG_TITLE), "rmse": ("rmse_nonzero", _RELATED_TITLE)}
    model = f"{results[0]['model']}: " if results else ""
    return {
        name: make_table(model + title, results, metric, rows, columns, row_of=row_of, corner=corner)
        for name, (metric, title) in metrics.items()
    }


def _curves(tables: Mapping[str, ResultTable], rows: Mapping[str, float]) -> dict[str, dict[str, dict[float, Cell]]]:
    """Return the rows of tables as curves, a panel a column; `rows` has the place of each row on the x axis."""
    columns = next(iter(tables.values())).columns
    return {
        column: {name: {x: table.cell(row, column) for row, x in rows.items()} for name, table in tables.items()}
        for column in columns
    }


def report_runtime(results: Sequence[Result], study: Study, folder: Path) -> list[Path]:
    """Report how scoring time grows with the number of test nodes."""
    timings = [
        {"model": result["model"], "path": f"{count:g}", "milliseconds": 1000 * float(seconds)}
        for result in results
        for count, seconds in result["timings"]
    ]
    counts = sorted({count for result in results for count, _ in result["timings"]})
    models = list(dict.fromkeys(str(result["model"]) for result in results))
    title = f"milliseconds to score test nodes against all targets, {study.focus[0].title}"
    table = replace(make_table(title, timings, "milliseconds", models, [f"{n:g}" for n in counts]), decimals=2)
    curves = {model: {float(n): table.cell(model, f"{n:g}") for n in counts} for model in models}
    draw_curves({study.focus[0].title: curves}, folder / "runtime.svg", "test nodes", "milliseconds", log="xy")
    return _write(folder, "runtime", {"runtime": table})


def report_chance(results: Sequence[Result], study: Study, folder: Path) -> list[Path]:
    """Report what each metric gives the reference rankings."""
    metrics = {
        "ndcg_released": ("ndcg_released", "nDCG as released"),
        "ndcg_strict": (NDCG, NDCG_TITLE),
        "rmse_top": ("rmse_top", "RMSE on the top 10"),
        "rmse_all": ("rmse_all", "RMSE over all pairs"),
    }
    tables = {
        name: make_table(title, results, metric, list(REFERENCE_RANKINGS), _metapaths(study), corner="ranking")
        for name, (metric, title) in metrics.items()
    }
    draw_tables([tables["ndcg_strict"], tables["ndcg_released"]], folder / "chance.svg", "nDCG")
    return _write(folder, "chance", tables)


def _metapaths(study: Study) -> list[str]:
    return [column.metapath for column in study.columns]


def _write(folder: Path, name: str, tables: dict[str, ResultTable]) -> list[Path]:
    write_text(folder / f"{name}.md", "\n\n".join(table.to_markdown() for table in tables.values()) + "\n")
    write_text(folder / f"{name}.csv", to_csv(tables))
    return [folder / f"{name}{suffix}" for suffix in (".md", ".csv", ".svg")]


REPORTS: dict[str, Callable[[Sequence[Result], Study, Path], list[Path]]] = {
    "rmse": report_rmse,
    "ndcg": report_ndcg,
    "ablation": report_ablation,
    "paths": report_paths,
    "labels": report_labels,
    "runtime": report_runtime,
    "chance": report_chance,
}
