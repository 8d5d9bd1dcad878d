"""Reports: the tables and the figure of each part, as CSV, Markdown and SVG."""

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from neupath._runtime.files import write_text, write_whole
from neupath.learn.reproduce import paper_numbers
from neupath.learn.reproduce.runs import CLASSICAL, INFERRED, LEARNED, REFERENCE_RANKINGS, VARIANTS, Study

# ---- Tables --------------------------------------------------------------------------------------
Result = Mapping[str, object]


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
    printed: Mapping[tuple[str, str], float]
    lower_is_better: bool
    decimals: int

    def best(self, column: str) -> float | None:
        """Return the best mean of a column."""
        means = [self.cells[row, column].mean for row in self.rows]
        known = [mean for mean in means if mean is not None]
        return (min(known) if self.lower_is_better else max(known)) if known else None

    def to_markdown(self) -> str:
        """Return the table; the best of each column is bold, the paper's number stands in brackets."""
        lines = [f"**{self.title}**", "", f"| {self.corner} | " + " | ".join(self.columns) + " |"]
        lines.append("|---|" + "---:|" * len(self.columns))
        lines += [
            f"| {row} | " + " | ".join(self._text(row, column) for column in self.columns) + " |" for row in self.rows
        ]
        return "\n".join(lines)

    def _text(self, row: str, column: str) -> str:
        cell, printed = self.cells[row, column], self.printed.get((row, column))
        best = self.best(column)
        is_best = cell.mean is not None and best is not None and abs(cell.mean - best) < 0.5 * 10**-self.decimals
        text = cell.text(self.decimals)
        text = f"**{text}**" if is_best else text
        return text if printed is None else f"{text} ({printed:.4f})"


def collect(
    results: Iterable[Result],
    metric: str,
    row_of: Callable[[Result], str],
    column_of: Callable[[Result], str],
) -> dict[tuple[str, str], Cell]:
    """Collect the values of a metric by row and column."""
    values_of: dict[tuple[str, str], list[float]] = {}
    for result in results:
        values = values_of.setdefault((row_of(result), column_of(result)), [])
        value = result.get(metric)
        if isinstance(value, (int, float)):
            values.append(float(value))
    return {key: Cell(tuple(values)) for key, values in values_of.items()}


def make_table(
    title: str,
    corner: str,
    rows: Sequence[str],
    columns: Sequence[str],
    cells: Mapping[tuple[str, str], Cell],
    printed: Mapping[tuple[str, str], float] | None = None,
    lower_is_better: bool = False,
    decimals: int = 4,
) -> ResultTable:
    """Make a table of the rows that have any cell; missing runs are empty cells."""
    kept = tuple(row for row in rows if any((row, column) in cells for column in columns))
    filled = {(row, column): cells.get((row, column), Cell(())) for row in kept for column in columns}
    return ResultTable(title, corner, kept, tuple(columns), filled, printed or {}, lower_is_better, decimals)


def to_csv(tables: Mapping[str, ResultTable]) -> str:
    """Return tables as one CSV with a line per cell."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["table", "row", "column", "mean", "deviation", "seeds", "printed"])
    for name, table in tables.items():
        for (row, column), cell in table.cells.items():
            mean = "" if cell.mean is None else f"{cell.mean:.6g}"
            printed = table.printed.get((row, column), "")
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


def draw_tables(tables: Sequence[ResultTable], labels: Sequence[str], path: Path, unit: str) -> None:
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


def _rings(axes: Axes, tables: Sequence[ResultTable], column: str) -> None:
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
    """Put ticks at the measured places; numbers are written out, because mathtext is off."""
    if "x" in log:
        axes.set_xscale("log")
    axes.set_xticks(places, [tick.format(x) for x in places])
    axes.xaxis.set_minor_formatter(NullFormatter())
    if "y" in log:
        axes.set_yscale("log", nonpositive="clip")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter(NullFormatter())


def _save(figure: Figure, path: Path) -> None:
    figure.set_layout_engine("constrained", w_pad=0.12)  # the fonts of a viewer may be wider
    write_whole(path, lambda temporary: figure.savefig(temporary, metadata={"Date": None}, facecolor="white"))


# ---- Reports -------------------------------------------------------------------------------------
NDCG = "ndcg@20"
_PAPER = "the paper's protocol"


def report_rmse(results: Sequence[Result], study: Study, folder: Path) -> list[Path]:
    """Report how near scores come."""
    rows = (*LEARNED, INFERRED)
    paper = _compared(results, study, rows, "paper", "rmse_top", f"RMSE on the top 10, {_PAPER}", paper_numbers.RMSE)
    every = _compared(results, study, rows, "strict", "rmse_all", "RMSE over all pairs, strict")
    nonzero = _compared(results, study, rows, "strict", "rmse_nonzero", "RMSE over related pairs, strict")
    draw_tables([nonzero, paper], ["related pairs, strict", f"top 10, {_PAPER}"], folder / "rmse.svg", "RMSE")
    return _write(folder, "rmse", {"paper": paper, "strict_all": every, "strict_related": nonzero})


def report_ndcg(results: Sequence[Result], study: Study, folder: Path) -> list[Path]:
    """Report how good rankings are."""
    rows = (*LEARNED, INFERRED, *CLASSICAL)
    paper = _compared(
        results, study, rows, "paper", "ndcg_released", f"nDCG as released, {_PAPER}", paper_numbers.NDCG, free=True
    )
    strict = _compared(results, study, rows, "strict", NDCG, "nDCG@20, strict", free=True)
    draw_tables([strict, paper], ["nDCG@20, strict", f"nDCG as released, {_PAPER}"], folder / "ndcg.svg", "nDCG")
    return _write(folder, "ndcg", {"paper": paper, "strict": strict})


def _compared(
    results: Sequence[Result],
    study: Study,
    rows: Sequence[str],
    protocol: str,
    metric: str,
    title: str,
    numbers: dict[tuple[str, str], float] | None = None,
    free: bool = False,
) -> ResultTable:
    """Compare models on all columns; models that are `free` of labels have the same results under both protocols."""
    kept = [r for r in results if r["protocol"] == protocol or (free and r["model"] in CLASSICAL)]
    if metric == "rmse_nonzero":
        kept = [r if r["ranked_queries"] else {**r, metric: None} for r in kept]  # no related pairs, no error
    columns = [column.metapath for column in study.columns]
    return make_table(title, "model", rows, columns, collect(kept, metric, _model, _path), numbers, "rmse" in metric)


def report_ablation(results: Sequence[Result], study: Study, folder: Path) -> list[Path]:
    """Report what NeuPath loses without its parts."""
    names = {tuple(sorted(settings)): name for name, settings in VARIANTS.items()}

    def variant(result: Result) -> str:
        settings: Any = result["settings"]
        return names[tuple(sorted(settings.items()))]

    columns = [column.metapath for column in study.ablated]
    wanted = {
        "paper_rmse": ("paper", "rmse_top", f"RMSE on the top 10, {_PAPER}", paper_numbers.ABLATION_RMSE),
        "paper_ndcg": ("paper", "ndcg_released", f"nDCG as released, {_PAPER}", paper_numbers.ABLATION_NDCG),
        "strict_rmse": ("strict", "rmse_nonzero", "RMSE over related pairs, strict", {}),
        "strict_ndcg": ("strict", NDCG, "nDCG@20, strict", {}),
    }
    tables = {}
    for name, (protocol, metric, title, numbers) in wanted.items():
        cells = collect([r for r in results if r["protocol"] == protocol], metric, variant, _path)
        tables[name] = make_table(title, "variant", list(VARIANTS), columns, cells, numbers, "rmse" in metric)
    shown, labels = [tables["strict_ndcg"], tables["paper_ndcg"]], ["nDCG@20, strict", f"nDCG as released, {_PAPER}"]
    draw_tables(shown, labels, folder / "ablation.svg", "nDCG")
    return _write(folder, "ablation", tables)


def report_paths(results: Sequence[Result], study: Study, folder: Path) -> list[Path]:
    """Report how NeuPath does with T paths."""
    usual = {column.metapath: column.paths for column in study.columns}

    def paths(result: Result) -> str:
        settings: Any = result["settings"]
        return str(settings.get("paths", usual[str(result["path"])]))

    rows = [str(t) for t in range(1, study.preset.most_paths + 1)]
    tables = _focused(results, study, "T", rows, paths)
    _draw_focused(tables, rows, folder / "paths.svg", "T, the path instances kept")
    return _write(folder, "paths", tables)


def report_labels(results: Sequence[Result], study: Study, folder: Path) -> list[Path]:
    """Report how models do with few training queries."""
    models = [model for model in ("neupath", "countpath") if any(r["model"] == model for r in results)]
    rows = [f"{share:.2%}" for share in study.preset.shares]
    tables: dict[str, ResultTable] = {}
    for model in models:
        own = [result for result in results if result["model"] == model]
        found = _focused(own, study, "training queries", rows, lambda r: f"{float(str(r['share'])):.2%}")
        tables |= {f"{model}_{name}": table for name, table in found.items()}
    curves = {
        column.metapath: {
            model: {
                100 * share: tables[f"{model}_ndcg"].cells.get((f"{share:.2%}", column.metapath), Cell(()))
                for share in study.preset.shares
            }
            for model in models
        }
        for column in study.focus
    }
    draw_curves(
        curves,
        folder / "labels.svg",
        f"share of {study.preset.queries[0]} training queries",
        "nDCG@20, strict",
        log="x",
        tick="{:.3g} %",
    )
    return _write(folder, "labels", tables)


def _focused(
    results: Sequence[Result], study: Study, corner: str, rows: Sequence[str], row_of: Callable[[Result], str]
) -> dict[str, ResultTable]:
    columns = [column.metapath for column in study.focus]
    metrics = {"ndcg": (NDCG, "nDCG@20, strict"), "rmse": ("rmse_nonzero", "RMSE over related pairs, strict")}
    who = f"{results[0]['model']}: " if results else ""
    return {
        name: make_table(
            who + title, corner, rows, columns, collect(results, metric, row_of, _path), None, "rmse" in metric
        )
        for name, (metric, title) in metrics.items()
    }


def _draw_focused(tables: dict[str, ResultTable], rows: Sequence[str], path: Path, x_label: str) -> None:
    curves = {
        column: {
            tables[name].title.partition(": ")[2]: {
                float(row): tables[name].cells.get((row, column), Cell(())) for row in rows
            }
            for name in tables
        }
        for column in tables["ndcg"].columns
    }
    draw_curves(curves, path, x_label, "nDCG@20 and RMSE")


def report_runtime(results: Sequence[Result], study: Study, folder: Path) -> list[Path]:
    """Report how scoring time grows with the number of test nodes."""
    points: dict[str, dict[float, list[float]]] = {}
    for result in results:
        timings: Any = result["timings"]
        for count, seconds in timings:
            points.setdefault(_model(result), {}).setdefault(float(count), []).append(float(seconds))
    counts = sorted({count for by_count in points.values() for count in by_count})
    cells = {
        (model, f"{n:g}"): Cell(tuple(1000 * seconds for seconds in by_count.get(n, [])))
        for model, by_count in points.items()
        for n in counts
    }
    title = f"milliseconds to score test nodes against all targets, {study.focus[0].title}"
    table = make_table(title, "model", list(points), [f"{n:g}" for n in counts], cells, None, True, 2)
    curves = {model: {n: cells[model, f"{n:g}"] for n in counts} for model in points}
    draw_curves({study.focus[0].title: curves}, folder / "runtime.svg", "test nodes", "milliseconds", log="xy")
    return _write(folder, "runtime", {"runtime": table})


def report_chance(results: Sequence[Result], study: Study, folder: Path) -> list[Path]:
    """Report what each metric gives the reference rankings."""
    columns = [column.metapath for column in study.columns]
    metrics = {
        "ndcg_released": ("ndcg_released", "nDCG as released"),
        "ndcg_strict": (NDCG, "nDCG@20, strict"),
        "rmse_top": ("rmse_top", "RMSE on the top 10"),
        "rmse_all": ("rmse_all", "RMSE over all pairs"),
    }
    tables = {
        name: make_table(
            title,
            "ranking",
            list(REFERENCE_RANKINGS),
            columns,
            collect(results, metric, _model, _path),
            None,
            "rmse" in metric,
        )
        for name, (metric, title) in metrics.items()
    }
    shown = [tables["ndcg_strict"], tables["ndcg_released"]]
    draw_tables(shown, ["nDCG@20, strict", "nDCG as released"], folder / "chance.svg", "nDCG")
    return _write(folder, "chance", tables)


def _write(folder: Path, name: str, tables: dict[str, ResultTable]) -> list[Path]:
    write_text(folder / f"{name}.md", "\n\n".join(table.to_markdown() for table in tables.values()) + "\n")
    write_text(folder / f"{name}.csv", to_csv(tables))
    return [folder / f"{name}{suffix}" for suffix in (".md", ".csv", ".svg")]


def _model(result: Result) -> str:
    return str(result["model"])


def _path(result: Result) -> str:
    return str(result["path"])


REPORTS: dict[str, Callable[[Sequence[Result], Study, Path], list[Path]]] = {
    "rmse": report_rmse,
    "ndcg": report_ndcg,
    "ablation": report_ablation,
    "paths": report_paths,
    "labels": report_labels,
    "runtime": report_runtime,
    "chance": report_chance,
}
