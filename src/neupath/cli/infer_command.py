"""infer: what labelled pairs mean, as meta-paths, with a dialogue to tell explanations apart."""

from collections.abc import Callable
from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from neupath._runtime.files import check_folder, write_text
from neupath.cli.terminal import (
    ConfigFile,
    Data,
    DuplicatesOption,
    Graph,
    Json,
    ProgressBars,
    err,
    load_graph,
    note,
    out,
    print_json,
    printable,
    render_comparison,
    render_inferred,
    render_suggestions,
)
from neupath.errors import QueryError
from neupath.graph.hin import HIN
from neupath.graph.nodes import Id
from neupath.learn.inference import Inferred, Suggestion
from neupath.learn.inference import infer as infer_paths
from neupath.learn.inference.candidates import BUDGET
from neupath.learn.labels import Pairs, read_pairs, write_pairs
from neupath.learn.training_run import compare_models

_SUGGESTED = 3


def infer(
    graph: Graph,
    pairs: Annotated[
        Path,
        typer.Argument(
            metavar="PAIRS.csv", help="Pairs with the header query,target,score; without scores, each is a similar one."
        ),
    ],
    max_length: Annotated[int, typer.Option("--max-length", help="The most steps a meta-path may have.")] = 6,
    measure: Annotated[
        list[str] | None, typer.Option("--measure", "-m", help="Only this measure (repeat for more); by default any.")
    ] = None,
    asymmetric: Annotated[
        bool, typer.Option("--asymmetric", help="Also try paths that are not walked out and back.")
    ] = False,
    node_type: Annotated[
        str | None, typer.Option("--node-type", help="The type of the nodes, where their ids fit several.")
    ] = None,
    suggest: Annotated[
        int, typer.Option("--suggest", help="How many pairs to suggest for labelling, where explanations differ.")
    ] = _SUGGESTED,
    ask: Annotated[bool, typer.Option("--ask", help="Ask for the labels that would tell explanations apart.")] = False,
    save_pairs: Annotated[
        Path | None, typer.Option("--save-pairs", help="With --ask: write all pairs, old and new, to this CSV file.")
    ] = None,
    compare: Annotated[
        bool, typer.Option("--compare", help="Compare with learned models by their error on held-out queries.")
    ] = False,
    out_folder: Annotated[
        Path | None, typer.Option("--out", help="Save what was found, for search --model and explain --model.")
    ] = None,
    budget: Annotated[
        int, typer.Option("--budget", help="The most multiplications of the search; what it tried is told.")
    ] = BUDGET,
    seed: Annotated[int, typer.Option("--seed", help="Decides folds, resamples and negatives.")] = 0,
    config: ConfigFile = None,
    duplicates: DuplicatesOption = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Find the meta-paths, their weights, and the measure that labelled pairs mean.

    Scores may come from another system or from people; yes/no labels (1 and 0), and pairs without scores, are explained
    as a ranking. What is found is a search: save it with --out, then use search --model.

    Examples:
      neupath infer stdlib pairs.csv

      neupath infer stdlib pairs.csv --ask --save-pairs more.csv --out meaning

      neupath search stdlib argparse.ArgumentParser --model meaning

    """
    if suggest < 0:
        raise QueryError(f"suggest is {suggest}; suggest 0 pairs or more")
    if ask and as_json:
        raise QueryError("--ask is a dialogue, and --json is for programs; use one of the two")
    if save_pairs is not None and not ask:
        raise QueryError("--save-pairs keeps the answers of --ask; give both, or neither")
    for target in (out_folder, save_pairs and save_pairs.parent):
        if target is not None:
            check_folder(target)
    hin = load_graph(graph, config, duplicates, data)

    def find(labels: Pairs) -> Inferred:
        with ProgressBars(err).counter("searching meta-paths") as bar:
            return infer_paths(
                hin, labels, max_length=max_length, measures=measure or None, asymmetric=asymmetric, budget=budget,
                seed=seed, progress=lambda _stage, done, total: bar(done, total or done),
            )  # fmt: skip

    labels = read_pairs(hin, pairs, node_type, bounded=False, examples=True)
    found = find(labels)
    if ask:
        found = _ask(hin, found, labels, find, save_pairs)
    if not (ask or as_json):
        out.print(render_inferred(found, _title(found)))
    if out_folder is not None:
        found.save(out_folder)
        note(f"saved to {out_folder}; neupath search {quote(graph)} QUERY --model {quote(str(out_folder))} uses it")
    rows = [row.to_dict() for row in compare_models(found, max_length, seed)] if compare else []
    if as_json:
        print_json(found.report(suggest) | ({"compared": rows} if compare else {}))
        return
    suggestions = found.suggest_pairs(suggest) if suggest and found.alternatives and not ask else []
    if suggestions:
        out.print(render_suggestions(suggestions))
    elif found.alternatives and suggest and not ask:
        out.print("These explanations agree on every pair looked at, so no label tells them apart.")
    if rows:
        out.print(render_comparison(rows))


def _title(found: Inferred) -> str:
    return f"what {len(found.pairs):,} labelled pairs of {found.pairs.node_type} nodes mean"


def _ask(
    hin: HIN, found: Inferred, labels: Pairs, find: Callable[[Pairs], Inferred], save_pairs: Path | None
) -> Inferred:
    """Show a pair, take its score, infer anew, until nothing is left to ask or the user stops."""
    skipped: list[tuple[Id, Id]] = []
    most = max(1.0, float(labels.scores.max()))
    out.print(render_inferred(found, _title(found)))
    while True:
        waiting = found.suggest_pairs(1, skipped)
        if not waiting:
            out.print("Nothing is left to ask: no other pair looked at would tell explanations apart.")
            break
        answer = _answer(waiting[0], most)
        if answer is None:
            break
        if answer == "skip":
            skipped.append((waiting[0].query, waiting[0].target))
            continue
        nodes = hin.nodes[labels.node_type]
        labels = labels.plus(nodes.find(waiting[0].query), nodes.find(waiting[0].target), float(answer))
        if save_pairs is not None:
            write_text(save_pairs, write_pairs(hin, labels))
        found = find(labels)
        out.print(render_inferred(found, _title(found)))
    if save_pairs is not None:
        write_text(save_pairs, write_pairs(hin, labels))
        note(f"{len(labels):,} pairs saved to {save_pairs}")
    return found


def _answer(pair: Suggestion, most: float) -> float | str | None:
    """Take a score from 0 to the highest label, yes or no; 'skip', or nothing at the end of the dialogue."""
    query, target = map(printable, pair.labels)
    while True:
        out.print(f"\nHow similar are {query} and {target}?", highlight=False, markup=False)
        try:
            text = input(f"0 to {most:g}, y, n, s to skip, q to stop: ").strip().lower()
        except EOFError:
            return None
        if text in ("q", "quit", ""):
            return None
        if text in ("s", "skip"):
            return "skip"
        known = {"y": 1.0, "yes": 1.0, "n": 0.0, "no": 0.0}.get(text)
        try:
            score = float(text) if known is None else known
        except ValueError:
            score = -1.0
        if 0 <= score <= most:
            return score
        out.print(f"{text!r} is no score from 0 to {most:g}.", highlight=False, markup=False)
