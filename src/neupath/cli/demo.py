"""demo: the main job, end to end, on the built-in graph."""

from pathlib import Path
from tempfile import TemporaryDirectory


from neupath.cli.terminal import (
    Json,
    ProgressBars,
    err,
    load_graph,
    out,
    print_json,
    render_description,
    render_evaluation,
    render_explanation,
    render_hits,
    render_inferred,
)
from neupath.cli.train_commands import compare_on_test
from neupath.errors import MissingExtraError
from neupath.explain.explanation import explain as explain_pair
from neupath.graph.hin import HIN
from neupath.graph.summary import summarise
from neupath.learn.inference import infer
from neupath.learn.labels import draw_pairs
from neupath.learn.registry import load_scorer
from neupath.measures import measure_named


def demo(as_json: Json = False) -> None:
    """Run the main job, end to end, on Python's own standard library as a graph."""
    path, query = "class-method-class", "argparse.ArgumentParser"
    hin = load_graph("stdlib")
    description = summarise(hin)
    hits = measure_named("pathsim", path).fit(hin).top_k(query)
    why = explain_pair(hin, path, query, hits[0].id, limit=5)
    imports = measure_named("pathsim", "module-import-module").fit(hin).top_k("json.decoder", k=5)
    if as_json:
        searches = [hits.to_dict(), imports.to_dict()]
        print_json({"info": description.to_dict(), "search": searches, "explain": why.to_dict()})
        return
    _say("neupath info stdlib")
    out.print(render_description(description, "stdlib"))
    _say(f"neupath search stdlib {query} --metapath {path}")
    out.print(render_hits(hits, f"classes most similar to {query} by {path}: they share method names"))
    _say(f"neupath explain stdlib {query} {hits[0].id} --metapath {path} --limit 5")
    out.print(render_explanation(why))
    _say(f"neupath search stdlib {imports.query} --metapath {imports.metapath} -k 5")
    out.print(render_hits(imports, f"modules that import what {imports.query} does"))
    _demo_inference(hin, path)
    _demo_learning(hin, path, query)
    out.print("\nNow your own tables: [bold]neupath info FOLDER[/bold], then search and explain as above.")
    out.print("In a browser: [bold]neupath serve stdlib[/bold], then open http://127.0.0.1:8000 for the explorer.")


def _demo_inference(hin: HIN, path: str) -> None:
    """Find the meta-path from the scores of 100 pairs."""
    teacher = measure_named("pathsim", path).fit(hin)
    pairs = draw_pairs(teacher, hin.nodes[teacher.source_type].ids.to_pylist()[0:200:20])
    _say("neupath infer stdlib pairs.csv")
    out.print("pairs.csv holds 10 classes with 10 scored targets each, and no meta-path", style="dim")
    out.print(render_inferred(infer(hin, pairs), "what 100 labelled pairs of class nodes mean"))


def _demo_learning(hin: HIN, path: str, query: str) -> None:
    """Train both models on labels alone, where torch is installed, and show what they found."""
    try:
        from neupath.learn.training_run import learn
    except MissingExtraError as error:
        out.print(f"\nLearning from examples is left out: {error}", highlight=False, markup=False, soft_wrap=True)
        return
    with TemporaryDirectory() as parent:
        for model, settings in (("neupath", {"dim": 128, "epochs": 20}), ("countpath", {"epochs": 20})):
            folder = Path(parent) / model
            options = " ".join(f"--{name} {value}" for name, value in settings.items())
            _say(f"neupath train stdlib --metapath {path} --architecture {model} {options} --device cpu --out {model}")
            with ProgressBars(err).epochs(f"training {model}") as bar:
                learned = learn(
                    hin, model, path, None, folder, measure="pathsim", protocol="strict", seed=0,
                    settings={**settings, "device": "cpu"}, on_epoch=bar,
                )  # fmt: skip
            for text, weight in learned.metapaths:
                out.print(f"found, from labelled pairs alone: {text} with weight {weight:.3f}", highlight=False)
            _say(f"neupath evaluate stdlib --model {model} --metapath {path}")
            teacher, scorer = measure_named("pathsim", path).fit(hin), load_scorer(folder, hin)
            found = compare_on_test(hin, scorer, teacher, "strict", 400, 0)
            out.print(render_evaluation(found, f"{model} against pathsim, on {found.queries} unseen queries"))
            if model == "neupath":
                _say(f"neupath search stdlib {query} --model {model} -k 5")
                out.print(
                    render_hits(scorer.top_k(query, k=5), f"classes most similar to {query}, as NeuPath learned it")
                )


def _say(command: str) -> None:
    out.print(f"\n[bold green]$[/bold green] [bold]{command}[/bold]\n", highlight=False, soft_wrap=True)
