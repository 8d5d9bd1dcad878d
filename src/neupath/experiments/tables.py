"""Tables: results of runs as means and deviations over seeds, in CSV and Markdown."""

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

Result = Mapping[str, object]


@dataclass(frozen=True)
class Cell:
    """A metric of some runs that differ in their seed alone."""

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
class Table:
    """Cells by row and column; `printed` are the paper's own numbers, by the same."""

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
    """Put the values of a metric together by row and column."""
    found: dict[tuple[str, str], list[float]] = {}
    for result in results:
        values = found.setdefault((row_of(result), column_of(result)), [])
        value = result.get(metric)
        if isinstance(value, (int, float)):
            values.append(float(value))
    return {key: Cell(tuple(values)) for key, values in found.items()}


def make_table(
    title: str,
    corner: str,
    rows: Sequence[str],
    columns: Sequence[str],
    cells: Mapping[tuple[str, str], Cell],
    printed: Mapping[tuple[str, str], float] | None = None,
    lower_is_better: bool = False,
    decimals: int = 4,
) -> Table:
    """Make a table of the rows that have any cell; what was not run is empty."""
    kept = tuple(row for row in rows if any((row, column) in cells for column in columns))
    filled = {(row, column): cells.get((row, column), Cell(())) for row in kept for column in columns}
    return Table(title, corner, kept, tuple(columns), filled, printed or {}, lower_is_better, decimals)


def to_csv(tables: Mapping[str, Table]) -> str:
    """Return tables as one long CSV: a line a cell."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["table", "row", "column", "mean", "deviation", "seeds", "printed"])
    for name, table in tables.items():
        for (row, column), cell in table.cells.items():
            mean = "" if cell.mean is None else f"{cell.mean:.6g}"
            printed = table.printed.get((row, column), "")
            writer.writerow([name, row, column, mean, f"{cell.deviation:.6g}", len(cell.values), printed])
    return text.getvalue()
