"""Reports: what each part makes of its results, as CSV, Markdown and a figure."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from neupath.experiments import printed
from neupath.experiments.figures import draw_curves, draw_tables
from neupath.experiments.guesses import GUESSES
from neupath.experiments.parts import LEARNED, VARIANTS, Question
from neupath.experiments.runs import CLASSICAL, INFERRED
from neupath.experiments.tables import Cell, Result, Table, collect, make_table, to_csv
from neupath.files import write_text

NDCG = "ndcg@20"
_PAPER = "the paper's protocol"


def report_rmse(results: Sequence[Result], question: Question, folder: Path) -> list[Path]:
    """Write how near scores come."""
    rows = (*LEARNED, INFERRED)
    paper = _compared(results, question, rows, "paper", "rmse_top", f"RMSE on the top 10, {_PAPER}", printed.RMSE)
    every = _compared(results, question, rows, "strict", "rmse_all", "RMSE over all pairs, strict")
    nonzero = _compared(results, question, rows, "strict", "rmse_nonzero", "RMSE over related pairs, strict")
    draw_tables([nonzero, paper], ["related pairs, strict", f"top 10, {_PAPER}"], folder / "rmse.svg", "RMSE")
    return _write(folder, "rmse", {"paper": paper, "strict_all": every, "strict_related": nonzero})


def report_ndcg(results: Sequence[Result], question: Question, folder: Path) -> list[Path]:
    """Write how good rankings are."""
    rows = (*LEARNED, INFERRED, *CLASSICAL)
    paper = _compared(
        results, question, rows, "paper", "ndcg_released", f"nDCG as released, {_PAPER}", printed.NDCG, free=True
    )
    strict = _compared(results, question, rows, "strict", NDCG, "nDCG@20, strict", free=True)
    draw_tables([strict, paper], ["nDCG@20, strict", f"nDCG as released, {_PAPER}"], folder / "ndcg.svg", "nDCG")
    return _write(folder, "ndcg", {"paper": paper, "strict": strict})


def _compared(
    results: Sequence[Result],
    question: Question,
    rows: Sequence[str],
    protocol: str,
    metric: str,
    title: str,
    numbers: dict[tuple[str, str], float] | None = None,
    free: bool = False,
) -> Table:
    """Compare models on all columns; those `free` of labels are the same under any protocol."""
    kept = [r for r in results if r["protocol"] == protocol or (free and r["model"] in CLASSICAL)]
    if metric == "rmse_nonzero":
        kept = [r if r["ranked_queries"] else {**r, metric: None} for r in kept]  # over no pairs there is no error
    columns = [column.path for column in question.columns]
    return make_table(title, "model", rows, columns, collect(kept, metric, _model, _path), numbers, "rmse" in metric)


def report_ablation(results: Sequence[Result], question: Question, folder: Path) -> list[Path]:
    """Write what NeuPath loses without its parts."""
    names = {tuple(sorted(settings)): name for name, settings in VARIANTS.items()}

    def variant(result: Result) -> str:
        settings: Any = result["settings"]
        return names[tuple(sorted(settings.items()))]

    columns = [column.path for column in question.ablated]
    wanted = {
        "paper_rmse": ("paper", "rmse_top", f"RMSE on the top 10, {_PAPER}", printed.ABLATION_RMSE),
        "paper_ndcg": ("paper", "ndcg_released", f"nDCG as released, {_PAPER}", printed.ABLATION_NDCG),
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


def report_paths(results: Sequence[Result], question: Question, folder: Path) -> list[Path]:
    """Write how NeuPath does with T paths."""
    usual = {column.path: column.paths for column in question.columns}

    def paths(result: Result) -> str:
        settings: Any = result["settings"]
        return str(settings.get("paths", usual[str(result["path"])]))

    rows = [str(t) for t in range(1, question.scale.most_paths + 1)]
    tables = _focused(results, question, "T", rows, paths)
    _draw_focused(tables, rows, folder / "paths.svg", "T, the path instances kept")
    return _write(folder, "paths", tables)


def report_labels(results: Sequence[Result], question: Question, folder: Path) -> list[Path]:
    """Write how models do with few training queries."""
    models = [model for model in ("neupath", "countpath") if any(r["model"] == model for r in results)]
    rows = [f"{share:.2%}" for share in question.scale.shares]
    tables: dict[str, Table] = {}
    for model in models:
        own = [result for result in results if result["model"] == model]
        found = _focused(own, question, "training queries", rows, lambda r: f"{float(str(r['share'])):.2%}")
        tables |= {f"{model}_{name}": table for name, table in found.items()}
    curves = {
        column.path: {
            model: {
                100 * share: tables[f"{model}_ndcg"].cells.get((f"{share:.2%}", column.path), Cell(()))
                for share in question.scale.shares
            }
            for model in models
        }
        for column in question.focus
    }
    draw_curves(
        curves,
        folder / "labels.svg",
        f"share of {question.scale.queries[0]} training queries",
        "nDCG@20, strict",
        log="x",
        tick="{:.3g} %",
    )
    return _write(folder, "labels", tables)


def _focused(
    results: Sequence[Result], question: Question, corner: str, rows: Sequence[str], row_of: Callable[[Result], str]
) -> dict[str, Table]:
    columns = [column.path for column in question.focus]
    metrics = {"ndcg": (NDCG, "nDCG@20, strict"), "rmse": ("rmse_nonzero", "RMSE over related pairs, strict")}
    who = f"{results[0]['model']}: " if results else ""
    return {
        name: make_table(
            who + title, corner, rows, columns, collect(results, metric, row_of, _path), None, "rmse" in metric
        )
        for name, (metric, title) in metrics.items()
    }


def _draw_focused(tables: dict[str, Table], rows: Sequence[str], path: Path, x_label: str) -> None:
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


def report_runtime(results: Sequence[Result], question: Question, folder: Path) -> list[Path]:
    """Write the time that scoring takes against the number of test nodes."""
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
    title = f"milliseconds to score test nodes against all targets, {question.focus[0].title}"
    table = make_table(title, "model", list(points), [f"{n:g}" for n in counts], cells, None, True, 2)
    curves = {model: {n: cells[model, f"{n:g}"] for n in counts} for model in points}
    draw_curves({question.focus[0].title: curves}, folder / "runtime.svg", "test nodes", "milliseconds", log="xy")
    return _write(folder, "runtime", {"runtime": table})


def report_chance(results: Sequence[Result], question: Question, folder: Path) -> list[Path]:
    """Write what each metric gives to rankings that know nothing, or all."""
    columns = [column.path for column in question.columns]
    metrics = {
        "ndcg_released": ("ndcg_released", "nDCG as released"),
        "ndcg_strict": (NDCG, "nDCG@20, strict"),
        "rmse_top": ("rmse_top", "RMSE on the top 10"),
        "rmse_all": ("rmse_all", "RMSE over all pairs"),
    }
    tables = {
        name: make_table(
            title, "ranking", list(GUESSES), columns, collect(results, metric, _model, _path), None, "rmse" in metric
        )
        for name, (metric, title) in metrics.items()
    }
    shown = [tables["ndcg_strict"], tables["ndcg_released"]]
    draw_tables(shown, ["nDCG@20, strict", "nDCG as released"], folder / "chance.svg", "nDCG")
    return _write(folder, "chance", tables)


def _write(folder: Path, name: str, tables: dict[str, Table]) -> list[Path]:
    write_text(folder / f"{name}.md", "\n\n".join(table.to_markdown() for table in tables.values()) + "\n")
    write_text(folder / f"{name}.csv", to_csv(tables))
    return [folder / f"{name}{suffix}" for suffix in (".md", ".csv", ".svg")]


def _model(result: Result) -> str:
    return str(result["model"])


def _path(result: Result) -> str:
    return str(result["path"])


REPORTS: dict[str, Callable[[Sequence[Result], Question, Path], list[Path]]] = {
    "rmse": report_rmse,
    "ndcg": report_ndcg,
    "ablation": report_ablation,
    "paths": report_paths,
    "labels": report_labels,
    "runtime": report_runtime,
    "chance": report_chance,
}
