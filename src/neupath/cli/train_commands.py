"""reproduce: the paper's tables and figures, made anew."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from neupath.cli.terminal import (
    ConfigFile,
    Data,
    DuplicatesOption,
    Graph,
    Json,
    Measure,
    MetaPathOption,
    ProgressBars,
    ProtocolOption,
    err,
    load_graph,
    out,
    print_json,
    render_evaluation,
    render_shares,
    required_path,
)
from neupath.engine.scorer import Scorer
from neupath.errors import QueryError
from neupath.graph.hin import HIN
from neupath.graph.nodes import Id
from neupath.learn.evaluation import Evaluation, split_queries
from neupath.learn.evaluation import evaluate as compare
from neupath.learn.labels import Protocol
from neupath.learn.registry import learning_from, load_scorer
from neupath.measures import measure_named


# ---- train and evaluate --------------------------------------------------------------------------
def train(
    graph: Graph,
    out_folder: Annotated[Path, typer.Option("--out", help="The folder to save the model to.")],
    metapath: MetaPathOption = None,
    pairs: Annotated[
        Path | None,
        typer.Option("--pairs", help="A table of labels with the header query,target,score."),
    ] = None,
    architecture: Annotated[
        str,
        typer.Option(
            "--architecture",
            help="neupath; countpath, which counts paths; a baseline: "
            f"{', '.join(learning_from('labels', baseline=True))}; or, without labels, "
            f"{' or '.join(learning_from('node_type'))} (with --node-type) or "
            f"{' or '.join(learning_from('metapath'))} (along --metapath).",
        ),
    ] = "neupath",
    node_type: Annotated[str | None, typer.Option("--node-type", help="The type that node2vec ranks.")] = None,
    measure: Measure = "pathsim",
    protocol: ProtocolOption = "strict",
    layers: Annotated[
        int | None, typer.Option("--layers", help="The longest path it can see (countpath: half); 2 by default.")
    ] = None,
    paths_kept: Annotated[
        int | None, typer.Option("--paths", help="How many path instances NeuPath keeps, T; 2 by default.")
    ] = None,
    dim: Annotated[
        int | None, typer.Option("--dim", help="The width of its vectors; by default the model's own, mostly 256.")
    ] = None,
    epochs: Annotated[
        int | None, typer.Option("--epochs", help="The most epochs; by default the model's own, mostly 30.")
    ] = None,
    learning_rate: Annotated[float | None, typer.Option("--learning-rate", help="The first learning rate.")] = None,
    seed: Annotated[int, typer.Option("--seed", help="Decides the split, the labels and the weights.")] = 0,
    device: Annotated[str | None, typer.Option("--device", help="cpu or cuda; by default what there is.")] = None,
    processes: Annotated[
        int, typer.Option("--processes", help="Processes that share the queries of each batch; for neupath.")
    ] = 1,
    config: ConfigFile = None,
    duplicates: DuplicatesOption = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Learn similarity from labelled pairs, or from labels that an exact measure gives for 400 queries.

    The model is never told the meta-path: --metapath only makes the labels. A run that was interrupted goes on from its
    last epoch when the same command is given again.

    Examples:
      neupath train stdlib --metapath class-method-class --out model

      neupath train my-tables/ --pairs labels.csv --out model

      neupath train stdlib --metapath class-method-class --architecture nbfnet --out rival

    """
    if out_folder.exists() and not out_folder.is_dir():
        raise QueryError(f"--out {out_folder} is a file; give a folder to save the model to")
    options = {"layers": layers, "paths": paths_kept, "dim": dim, "epochs": epochs, "learning_rate": learning_rate}
    settings: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    settings["device"] = device
    if architecture in learning_from("metapath", "node_type"):
        if pairs is not None:
            raise QueryError(f"{architecture} learns without labels; leave out --pairs")
        hin = load_graph(graph, config, duplicates, data)
        _embed(hin, architecture, metapath, node_type, out_folder, settings | {"seed": seed}, as_json)
        return
    if node_type is not None:
        raise QueryError(f"--node-type is for node2vec; a {architecture} model takes it from the labels")
    if (metapath is None) == (pairs is None):
        raise QueryError("give either --metapath, to draw labels from a measure, or --pairs, a file of labels")
    hin = load_graph(graph, config, duplicates, data)
    from neupath.learn.training_run import learn

    with ProgressBars(err).epochs(f"training {architecture}") as bar:
        learned = learn(
            hin, architecture, metapath, pairs, out_folder, measure=measure, protocol=protocol, seed=seed,
            settings=settings, on_epoch=bar, processes=processes,
        )  # fmt: skip
    if as_json:
        print_json(learned.to_dict())
        return
    error = f"training RMSE {learned.train_rmse:.4f}, too few queries to keep some for validation"
    if learned.validation_rmse is not None:
        error = f"validation RMSE {learned.validation_rmse:.4f}"
    print(f"saved to {out_folder}: {error}, best of {learned.epochs} epochs")
    for text, weight in learned.metapaths:
        print(f"it reads as {text} with weight {weight:.3f}")
    if architecture == "countpath" and not learned.metapaths:
        print("no path explains the labels better than a score of 0 for every pair")


def _embed(
    hin: HIN,
    architecture: str,
    path: str | None,
    node_type: str | None,
    folder: Path,
    settings: dict[str, Any],
    as_json: bool,
) -> None:
    """Learn from walks alone, and say where the model went."""
    from neupath.learn.training_run import embed

    embedded = embed(hin, architecture, path, node_type, folder, settings)
    if as_json:
        print_json(embedded.to_dict())
    else:
        print(f"saved to {folder}: vectors of {embedded.node_type} nodes, learned in {embedded.seconds:.1f} s")


def evaluate(
    graph: Graph,
    model: Annotated[Path, typer.Option("--model", help="A folder with a saved model.")],
    metapath: MetaPathOption = None,
    measure: Measure = "pathsim",
    protocol: Annotated[
        Protocol, typer.Option("--protocol", help="What the model was trained by, to name it; all numbers are given.")
    ] = "strict",
    queries: Annotated[int, typer.Option("--queries", help="How many unseen queries to test on.")] = 400,
    used_paths: Annotated[
        int, typer.Option("--used-paths", help="Also show the meta-paths NeuPath looks at, over this many best hits.")
    ] = 0,
    seed: Annotated[int, typer.Option("--seed", help="The split's seed; that of training keeps queries unseen.")] = 0,
    config: ConfigFile = None,
    duplicates: DuplicatesOption = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Compare a saved model with an exact measure, on unseen queries against all targets.

    Examples:
      neupath evaluate stdlib --model model --metapath class-method-class

      neupath evaluate stdlib --model model --metapath class-method-class --used-paths 50

    """
    if used_paths < 0:
        raise QueryError(f"used-paths is {used_paths}; look at 0 pairs or more")
    hin = load_graph(graph, config, duplicates, data)
    teacher = measure_named(measure, required_path(hin.schema, metapath)).fit(hin)
    scorer = load_scorer(model, hin)
    found = compare_on_test(hin, scorer, teacher, protocol, queries, seed)
    used = _used_metapaths(scorer, _test_queries(hin, teacher, used_paths, seed)) if used_paths else []
    if as_json:
        shares = [{"metapath": text, "share": share} for text, share in used]
        print_json(found.to_dict() | ({"used_metapaths": shares} if used_paths else {}))
        return
    out.print(render_evaluation(found, f"{scorer.name} against {measure} on {found.metapath}, {found.queries} queries"))
    if used:
        out.print(render_shares(used, f"what it looks at, over the best hits of {used_paths} queries"))


def _used_metapaths(scorer: Scorer, queries: Sequence[Id]) -> list[tuple[str, float]]:
    """Add up what a model looks at over the best hit of each query."""
    if not hasattr(scorer, "used_metapaths"):
        raise QueryError(f"a {scorer.name} looks at no paths of its own; leave out --used-paths")
    hits = scorer.top_k(list(queries), k=1)
    found: list[tuple[str, float]] = scorer.used_metapaths([(hit.query, hit[0].id) for hit in hits])
    return found


def _test_queries(hin: HIN, teacher: Scorer, most: int, seed: int) -> tuple[Id, ...]:
    return split_queries(hin, teacher.source_type, seed=seed, most_test=most).test


def compare_on_test(
    hin: HIN, scorer: Scorer, teacher: Scorer, protocol: Protocol, queries: int, seed: int
) -> Evaluation:
    """Compare two scorers on queries that the split of training leaves for tests, up to a number of them."""
    if queries < 1:
        raise QueryError(f"queries is {queries}; test on at least 1")
    return compare(scorer, teacher, _test_queries(hin, teacher, queries, seed), protocol)


# ---- reproduce -----------------------------------------------------------------------------------
_FOLDER = Path("reproduced")


def reproduce(
    parts: Annotated[list[str] | None, typer.Argument(metavar="[PART]...", help="Which parts; all by default.")] = None,
    folder: Annotated[Path, typer.Option("--out", help="The folder for results, tables and figures.")] = _FOLDER,
    data: Annotated[
        Path | None, typer.Option("--data", envvar="NEUPATH_DATA", help="A folder with imdb, and kg20c or ACM.mat.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A minute's version on the built-in graph.")] = False,
    seeds: Annotated[
        int | None, typer.Option("--seeds", help="How many seeds, which bars in figures are over; 3, or 1 if quick.")
    ] = None,
    architectures: Annotated[
        list[str] | None,
        typer.Option("--architectures", help="Only these models and measures, with commas between or one at a time."),
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", help="Runs carried out side by side.")] = 1,
    device: Annotated[str | None, typer.Option("--device", help="cpu or cuda; by default what there is.")] = None,
    as_json: Json = False,
) -> None:
    """Make the paper's tables and figures anew: every model on every column, and what the paper's protocol hides.

    Parts: rmse and ndcg (all models on all columns), ablation, paths (T), labels (how few do), runtime, chance (the
    audit of the metrics). Each writes CSV, Markdown and a figure, with the paper's printed numbers beside ours.

    --data names a folder with imdb, and kg20c or ACM.mat. Every run is kept as it is done: the same command goes on
    where it was interrupted, and a part that shares runs with another does not repeat them.

    Examples:
      neupath reproduce --quick --out quick

      neupath reproduce rmse ndcg --data graphs --out results --device cuda --jobs 12

    """
    from neupath.learn.reproduce import PARTS
    from neupath.learn.reproduce import reproduce as carry_out

    chosen = [name.strip() for given in architectures or () for name in given.split(",")]
    with ProgressBars(err).counter("runs") as bar:
        found = carry_out(
            parts or (), folder, data=data, quick=quick, seeds=seeds, architectures=chosen or None,
            jobs=jobs, device=device, progress=lambda _stage, done, total: bar(done, total or done),
        )  # fmt: skip
    if as_json:
        print_json(found.to_dict())
        return
    before = f", {found.resumed:,} of them done before" if found.resumed else ""
    out.print(f"{found.runs:,} runs{before}, {found.seconds:,.0f} s")
    for part in parts or PARTS:
        out.print(f"{part}: {PARTS[part][0]}", highlight=False)
        print(f"  {folder / part}.md, .csv, .svg")
