"""infer: find the meta-paths behind labelled pairs, with a dialogue that asks for more labels."""

from collections.abc import Callable, Sequence
from pathlib import Path
from shlex import quote
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from neupath import requests
from neupath._runtime.files import check_folder, write_text
from neupath.answers import given
from neupath.cli.program import printable
from neupath.cli.terminal import (
    GraphSource,
    OutputFlags,
    ProgressBars,
    bar,
    note,
    plain_table,
    print_json,
    stdout,
    takes_options,
    titled,
)
from neupath.errors import QueryError
from neupath.evidence.groups import counted
from neupath.graph.hin import HIN
from neupath.graph.nodes import Id
from neupath.learn.inference import Inferred, Suggestion
from neupath.learn.inference import infer as infer_paths
from neupath.learn.labels import Pairs, join_types, parse_score, read_pairs, write_pairs


@takes_options
def infer(source: GraphSource, asked: requests.Infer, output: OutputFlags) -> None:
    """Find the meta-paths, their weights, and the measure behind labelled pairs.

    Scores may come from another system or from people, on any scale; yes/no
    labels (or 1 and 0), and pairs without scores, are explained as a ranking.
    PAIRS.csv may have a rank instead of a score, and columns weight and rater.
    The result is a search: save it with --out, then use search --model.

    Where several node types share ids, as integers often are, say which type
    the pairs are of with --node-type, or with --query-type and --target-type,
    or in columns query_type and target_type of PAIRS.csv. These two may differ:
    pairs of users and items are explained by paths from user to item.

    Examples:
      neupath infer stdlib pairs.csv
      neupath infer stdlib pairs.csv --ask --save-pairs more.csv --out meaning
      neupath search stdlib argparse.ArgumentParser --model meaning
    """
    _check_options(asked, output)
    out, save_pairs = asked.out, asked.save_pairs
    for folder in (out, save_pairs and save_pairs.parent):
        if folder is not None:
            check_folder(folder)
    hin = source.load()

    def infer_from(labels: Pairs) -> Inferred:
        options = given(asked, "max_length", "asymmetric", "conditions", "budget", "seed")
        with ProgressBars() as bars:
            return infer_paths(hin, labels, measures=asked.measures or None, progress=bars, **options)

    types = join_types(asked.node_type, asked.query_type, asked.target_type)
    labels = read_pairs(hin, asked.pairs, types, bounded=False, examples=True)
    inferred = infer_from(labels)
    if asked.ask:
        inferred = _ask(hin, inferred, labels, infer_from, save_pairs)
    if output.is_text and not asked.ask:
        stdout.print(render_inferred(inferred))
    if out is not None:
        inferred.save(out)
        note(f"saved to {out}; neupath search {quote(source.graph)} QUERY --model {quote(str(out))} uses it")
    rows = []
    if asked.compare:
        from neupath.learn.training_run import compare_models

        rows = [row.to_dict() for row in compare_models(inferred, asked.max_length, asked.seed)]
    if not output.is_text:
        _print_inferred(inferred, output, asked.suggest, {"compared": rows} if asked.compare else {})
        return
    if inferred.alternatives and asked.suggest and not asked.ask:
        suggestions = inferred.suggest_pairs(asked.suggest)
        agree = "These explanations agree on every candidate pair, so no label can distinguish them."
        stdout.print(_render_suggestions(suggestions) if suggestions else agree)
    if rows:
        stdout.print(_render_comparison(rows))


def _check_options(asked: requests.Infer, output: OutputFlags) -> None:
    """Raise if an option would be ignored."""
    if asked.suggest < 0:
        raise QueryError(f"‹suggest› is {asked.suggest}; suggest 0 pairs or more")
    if asked.ask and not output.is_text:
        raise QueryError("--ask is a dialogue, and --json, --csv and --tsv are for programs; use one of the two")
    if asked.compare and output.is_table:
        raise QueryError("--csv and --tsv print the meta-paths alone; leave out --compare, or use --json")
    if asked.save_pairs is not None and not asked.ask:
        raise QueryError("--save-pairs keeps the answers of --ask; give both, or neither")


def _print_inferred(inferred: Inferred, output: OutputFlags, suggest: int, compared: dict[str, Any]) -> None:
    """Print the explanation for programs: all of it as JSON, or its meta-paths as a table."""
    if output.as_json:
        print_json(inferred.report(suggest) | compared)
        return
    parts = [{"measure": inferred.measure, **vars(part)} for part in inferred.parts]
    output.print_table(("metapath", "weight", "low", "high", "measure"), parts)
    note(inferred.verdict)


# ---- The dialogue --------------------------------------------------------------------------------
def _ask(
    hin: HIN, inferred: Inferred, labels: Pairs, infer_from: Callable[[Pairs], Inferred], save_pairs: Path | None
) -> Inferred:
    """Show a pair, read its score and infer again, until no pair is left or the user stops."""
    skipped: list[tuple[Id, Id]] = []
    highest = max(1.0, float(labels.scores.max()))
    stdout.print(render_inferred(inferred))
    while True:
        suggestions = inferred.suggest_pairs(1, skipped)
        if not suggestions:
            stdout.print("No question is left: no other candidate pair would distinguish the explanations.")
            break
        pair = suggestions[0]
        answer = _answer(pair, highest)
        if answer is None:
            break
        if answer == "skip":
            skipped.append((pair.query, pair.target))
            continue
        rows = hin.row(labels.node_type, pair.query), hin.row(labels.target_type, pair.target)
        labels = labels.plus(*rows, float(answer))
        if save_pairs is not None:
            write_text(save_pairs, write_pairs(hin, labels))
        inferred = infer_from(labels)
        stdout.print(render_inferred(inferred))
    if save_pairs is not None:
        write_text(save_pairs, write_pairs(hin, labels))
        note(f"{len(labels):,} pairs saved to {save_pairs}")
    return inferred


def _answer(pair: Suggestion, highest: float) -> float | str | None:
    """Read a score from 0 to the highest label, yes or no; "skip", or None at the end of the dialogue."""
    query, target = map(printable, pair.labels)
    while True:
        stdout.print(f"\nHow similar are {query} and {target}?", highlight=False, markup=False)
        try:
            text = input(f"0 to {highest:g}, y, n, s to skip, q to stop: ").strip().lower()
        except EOFError:
            return None
        if text in ("q", "quit", ""):
            return None
        if text in ("s", "skip"):
            return "skip"
        try:
            score = parse_score(text)
        except ValueError:
            score = -1.0
        if 0 <= score <= highest:
            return score
        stdout.print(f"{text!r} is not a score from 0 to {highest:g}.", highlight=False, markup=False)


# ---- Rendering -----------------------------------------------------------------------------------
def render_inferred(inferred: Inferred, most: int = 6) -> Group:
    """Show the explanation of labelled pairs, how certain it is, and the alternatives."""
    table = plain_table("meta-path", ">weight", ">9 in 10 resamples", "")
    table.columns[0].overflow = "fold"
    heaviest = max(abs(part.weight) for part in inferred.parts) or 1.0
    for part in inferred.parts:
        interval = "-" if part.low is None else f"{part.low:.3f} to {part.high:.3f}"
        table.add_row(Text(printable(part.metapath)), f"{part.weight:.3f}", interval, bar(abs(part.weight) / heaviest))
    verdict = Text(inferred.verdict, style="green" if inferred.explains else "yellow")
    lines: list[RenderableType] = [Text(f"measure: {inferred.measure}"), table, verdict]
    if inferred.kind == "scores":
        lines.append(Text(f"on these labels RMSE {inferred.rmse:.4g}, R² {inferred.r2:.4f}"))
    searched = inferred.searched
    extent = f"searched {searched.tried:,} of {searched.total:,} meta-paths"
    extent += f"; {searched.too_large:,} reach too many nodes" if searched.too_large else ""
    extent += f"; {searched.leading_nowhere:,} lead nowhere from these nodes" if searched.leading_nowhere else ""
    extent += f"; stopped: {searched.stopped}" if searched.stopped else ""
    lines.append(Text(extent, style="dim"))
    if inferred.alternatives:
        lines.append(Text("these labels cannot tell it from:", style="bold"))
        lines += [Text(f"  {printable(str(other))}") for other in inferred.alternatives[:most]]
        more = len(inferred.alternatives) - most
        lines += [Text(f"  and {more:,} more", style="dim")] if more > 0 else []
    types = " and ".join(dict.fromkeys((inferred.pairs.node_type, inferred.pairs.target_type)))
    pairs, mean = counted(len(inferred.pairs), "labelled pair"), "means" if len(inferred.pairs) == 1 else "mean"
    return titled(f"what {pairs} of {types} nodes {mean}", *lines)


def _render_suggestions(suggestions: Sequence[Suggestion]) -> Group:
    table = plain_table("query", "target", ">explanations say")
    for column in table.columns[:2]:
        column.overflow = "fold"
    for pair in suggestions:
        interval = f"{min(pair.scores):.3f} to {max(pair.scores):.3f}"
        table.add_row(*(Text(printable(label)) for label in pair.labels), interval)
    return titled("a label for one of these would tell most:", table)


def _render_comparison(rows: Sequence[dict[str, Any]]) -> Table:
    errors = {"rmse": ">held-out RMSE", "r2": ">held-out R²"}
    if any(row["auc"] is not None for row in rows):
        errors = {"auc": ">held-out AUC"}
    table = plain_table("model", *errors.values(), ">seconds")
    for row in rows:
        if row["reason"]:
            table.add_row(row["model"], *("-" for _ in errors), Text(f"left out: {row['reason']}", style="dim"))
        else:
            table.add_row(row["model"], *(f"{row[key]:.4f}" for key in errors), f"{row['seconds']:.1f}")
    return table
