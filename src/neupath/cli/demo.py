"""demo: search, explain, infer, train and evaluate, end to end, on the built-in graph."""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from neupath.cli.infer_command import render_inferred
from neupath.cli.search_commands import render_explanation, render_hits, render_summary
from neupath.cli.terminal import GraphSource, JsonOption, ProgressBars, print_json, stdout
from neupath.cli.train_commands import compare_on_test, render_auto, render_evaluation
from neupath.errors import MissingExtraError
from neupath.evidence.explanation import explain
from neupath.graph.hin import HIN
from neupath.graph.summary import summarise
from neupath.learn.auto import train_auto
from neupath.learn.inference import infer
from neupath.learn.labels import draw_pairs
from neupath.learn.registry import load_scorer, make_scorer


def demo(as_json: JsonOption = False) -> None:
    """Run the main commands, end to end, on Python's own standard library as a graph."""
    metapath, query = "class-method-class", "argparse.ArgumentParser"
    hin = GraphSource(graph="stdlib").load()
    summary = summarise(hin)
    hits = make_scorer(hin, metapath=metapath).top_k(query)
    why = explain(hin, metapath, query, hits[0].id, limit=5)
    imports = make_scorer(hin, metapath="module-import-module").top_k("json.decoder", k=5)
    if as_json:
        searches = [hits.to_dict(), imports.to_dict()]
        print_json({"info": summary.to_dict(), "search": searches, "explain": why.to_dict()})
        return
    _show_command("neupath info stdlib")
    stdout.print(render_summary(summary, "stdlib"))
    _show_command(f"neupath search stdlib {query} --metapath {metapath}")
    stdout.print(
        render_hits(hits, f"classes most similar to {query} by {metapath}: they share method names"), crop=False
    )
    _show_command(f"neupath explain stdlib {query} {hits[0].id} --metapath {metapath} --limit 5")
    stdout.print(render_explanation(why))
    _show_command(f"neupath search stdlib {imports.query} --metapath {imports.metapath} -k 5")
    stdout.print(render_hits(imports, f"modules that import what {imports.query} does"), crop=False)
    _infer(hin, metapath)
    _auto(hin, metapath)
    _learn(hin, metapath, query)
    stdout.print("\nNow your own tables: [bold]neupath info FOLDER[/bold], then search and explain as above.")
    stdout.print("In a browser: [bold]neupath serve stdlib[/bold], then open http://127.0.0.1:8000 for the explorer.")


def _infer(hin: HIN, metapath: str) -> None:
    """Find the meta-path from the scores of 100 pairs."""
    teacher = make_scorer(hin, metapath=metapath)
    pairs = draw_pairs(teacher, hin.nodes[teacher.source_type].ids.to_pylist()[0:200:20])
    _show_command("neupath infer stdlib pairs.csv")
    stdout.print(
        "pairs.csv, which the demo keeps in memory, holds 10 classes with 10 scored targets each, and no meta-path",
        style="dim",
    )
    stdout.print(render_inferred(infer(hin, pairs)))


def _auto(hin: HIN, metapath: str) -> None:
    """Let auto choose a learner for yes/no labels, within some seconds."""
    teacher = make_scorer(hin, metapath=metapath)
    drawn = draw_pairs(teacher, hin.nodes[teacher.source_type].ids.to_pylist()[0:200:10], per_query=8)
    labels = replace(drawn, scores=(drawn.scores > 0).astype(np.float64))
    _show_command("neupath train stdlib --pairs similar.csv --budget 20 --out chosen")
    stdout.print(
        "similar.csv, which the demo keeps in memory, says yes or no of 20 classes with 8 targets each", style="dim"
    )
    with TemporaryDirectory() as folder, ProgressBars() as bars:
        report = train_auto(hin, labels, folder, budget=20, learners=["infer", "pathboost"], progress=bars)
    stdout.print(render_auto(report))


def _learn(hin: HIN, metapath: str, query: str) -> None:
    """Train NeuPath on labels alone, if torch is installed, and show what it learned."""
    try:
        from neupath.learn.training_run import DrawnLabels, learn
    except MissingExtraError as error:
        stdout.print(f"\nLearning from examples is left out: {error}", highlight=False, markup=False, soft_wrap=True)
        return
    _show_command(f"neupath train stdlib --metapath {metapath} --epochs 10 --device cpu --out model")
    with TemporaryDirectory() as folder, ProgressBars() as bars:
        settings = {"epochs": 10, "device": "cpu"}
        learn(hin, "neupath", DrawnLabels(metapath), Path(folder), settings, bars.show_epoch)
        model = load_scorer(folder, hin)
    _show_command(f"neupath evaluate stdlib --model model --metapath {metapath}")
    evaluation = compare_on_test(model, make_scorer(hin, metapath=metapath), "strict", 400, 0)
    title = f"neupath against pathsim, on {evaluation.queries} unseen queries"
    stdout.print(render_evaluation(evaluation, title))
    _show_command(f"neupath search stdlib {query} --model model -k 5")
    title = f"classes most similar to {query}, as NeuPath learned it"
    stdout.print(render_hits(model.top_k(query, k=5), title), crop=False)


def _show_command(command: str) -> None:
    stdout.print(f"\n[bold green]$[/bold green] [bold]{command}[/bold]\n", highlight=False, soft_wrap=True)
