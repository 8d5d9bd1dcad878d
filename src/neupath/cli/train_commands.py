"""train and evaluate: learned similarity, and how good it is."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Group

from neupath import answers, requests
from neupath.cli.program import printable
from neupath.cli.terminal import (
    GraphSource,
    JsonOption,
    OutputFlags,
    ProgressBars,
    bar,
    note,
    plain_table,
    print_json,
    print_text,
    stdout,
    takes_options,
    titled,
)
from neupath.engine.scorer import Scorer
from neupath.errors import QueryError
from neupath.evidence.groups import counted
from neupath.learn.evaluation import Evaluation, LabelEvaluation, evaluate_pairs, split_queries
from neupath.learn.evaluation import evaluate as compare
from neupath.learn.labels import NodeTypes, Protocol, join_types, read_pairs, too_few
from neupath.learn.registry import choose_measure, is_network, learning_from, load_scorer

if TYPE_CHECKING:
    from neupath.learn.auto import AutoReport


# ---- train ---------------------------------------------------------------------------------------
@takes_options
def train(source: GraphSource, asked: requests.Train, as_json: JsonOption = False) -> None:
    """Learn similarity from labelled pairs, or from labels that an exact measure gives for 400 queries.

    The model never sees the meta-path: --metapath only makes the labels. An
    interrupted run resumes from its last epoch when the same command is run
    again.

    Labels in --pairs are numbers on any scale, words such as yes and no, ranks
    (a column rank), or none, which makes each pair an example. Columns weight
    and rater say how much a label counts and who gave it. Where several node
    types share ids, as integers often are, say which type the pairs are of with
    --node-type, or with --query-type and --target-type, which may differ, or in
    columns query_type and target_type of the file.

    With --pairs, auto tries closed forms, boosted trees and networks on held-out
    queries within --budget seconds, and keeps a mix of them, or one.

    Examples:
      neupath train my-tables/ --pairs labels.csv --node-type movie --out model
      neupath train stdlib --metapath class-method-class --out model
      neupath train stdlib -p class-method-class --architecture nbfnet --out rival
    """
    architecture, pairs, out = asked.chosen_architecture, asked.pairs, asked.out
    _check_folder(out, source)
    settings = answers.settings_of(asked)
    if architecture in learning_from("metapath", "node_type"):
        _embed(source, asked, settings | {"device": asked.device, "seed": asked.seed}, as_json)
        return
    answers.check_training(asked)
    types = join_types(asked.node_type, asked.query_type, asked.target_type)
    if architecture == "auto":
        _train_auto(source, asked, types, as_json)
        return
    hin = source.load()
    known = None if pairs is None else read_pairs(hin, pairs, types, examples=True)
    if known is not None and (few := too_few(known)) is not None:
        note(few)
    from neupath.learn.training_run import DrawnLabels, learn

    drawn = DrawnLabels(str(asked.metapath), asked.measure, asked.protocol)
    settings |= {"device": asked.device, "seed": asked.seed}
    with ProgressBars() as bars:
        learned = learn(hin, architecture, drawn if known is None else known, out, settings, bars.show_epoch)
    if as_json:
        print_json(learned.to_dict())
        return
    error = f"training RMSE {learned.train_rmse:.4f}"
    if is_network(architecture):
        error += ", too few queries to keep some for validation"
        error = error if learned.validation_rmse is None else f"validation RMSE {learned.validation_rmse:.4f}"
        error += f", best of {learned.epochs} epochs"
    print_text(f"saved to {out}: {error}")
    for text, weight in learned.metapaths or ():
        print_text(f"it reads as {text} with weight {weight:.3f}")
    if learned.metapaths == []:
        print_text("no path explains the labels better than a score of 0 for every pair")


def _check_folder(out: Path, source: GraphSource) -> None:
    if out.exists() and not out.is_dir():
        raise QueryError(f"--out {out} is a file; give a folder to save the model to")
    if out.is_dir() and Path(source.graph).is_dir() and out.samefile(source.graph):
        raise QueryError(f"--out {out} is the folder of the graph; give another folder to save the model to")


def _embed(source: GraphSource, asked: requests.Train, settings: dict[str, Any], as_json: bool) -> None:
    if asked.pairs is not None:
        raise QueryError(f"{asked.architecture} learns without labels; leave out --pairs")
    from neupath.learn.training_run import embed

    embedded = embed(source.load(), asked.chosen_architecture, asked.metapath, asked.node_type, asked.out, settings)
    if as_json:
        print_json(embedded.to_dict())
    else:
        print_text(f"saved to {asked.out}: vectors of {embedded.node_type} nodes, learned in {embedded.seconds:.1f} s")


def _train_auto(source: GraphSource, asked: requests.Train, types: NodeTypes, as_json: bool) -> None:
    from neupath.learn.auto import train_auto

    hin = source.load()
    labels = read_pairs(hin, asked.pairs, types, examples=True)
    with ProgressBars() as bars:
        report = train_auto(hin, labels, asked.out, **answers.given(asked, "budget", "seed", "device"), progress=bars)
    if (few := too_few(labels)) is not None and few not in report.reason:
        note(few)
    if as_json:
        print_json(report.to_dict())
    else:
        stdout.print(render_auto(report))
        print_text(f"saved to {asked.out}")


def render_auto(report: "AutoReport") -> Group:
    """Show what auto tried, how well each did on held-out queries, and what it chose."""
    columns = "learner", f">held-out {report.metric}", ">95 % interval", ">nDCG@20", ">seconds", ">weight", ""
    table = plain_table(*columns)
    for each in (*report.tried, *([report.mix] if report.mix else [])):
        score = "-" if each.score is None else f"{each.score:.4f}"
        interval = "-" if each.low is None else f"{each.low:.3f} to {each.high:.3f}"
        top = "-" if each.ndcg is None else f"{each.ndcg:.3f}"
        weight = f"{each.weight:.2f}" if each.weight else "-"
        table.add_row(each.learner, score, interval, top, f"{each.seconds:.1f}", weight, printable(each.note))
    queries = f"{report.queries:,} {'query' if report.queries == 1 else 'queries'}"
    title = f"{counted(report.labels, 'label')} of {queries}: {' + '.join(report.chosen)}"
    notes = [report.unlabelled] if report.unlabelled else []
    return titled(title, table, f"{report.reason}; {report.seconds:.0f} s of {report.budget:.0f}", *notes)


# ---- evaluate ------------------------------------------------------------------------------------
@takes_options
def evaluate(source: GraphSource, asked: requests.Evaluate, output: OutputFlags) -> None:
    """Compare a saved model with an exact measure, on unseen queries against all targets, or with labelled pairs.

    The model knows the node types, so the ids of --pairs may be shared by
    several. Labels are numbers, or yes and no.

    Examples:
      neupath evaluate stdlib --model model --metapath class-method-class
      neupath evaluate my-tables/ --model model --pairs held-out.csv
      neupath evaluate stdlib --model model -p class-method-class --used-paths 50
    """
    used_paths = asked.used_paths
    if used_paths < 0:
        raise QueryError(f"--used-paths is {used_paths}; it must be 0 or more")
    if used_paths and output.is_table:
        raise QueryError("--csv and --tsv print the metrics alone; leave out --used-paths, or use --json")
    if asked.pairs is not None:
        _evaluate_labels(source, asked, asked.pairs, output)
        return
    hin = source.load()
    teacher = choose_measure(hin.schema, metapath=asked.metapath, measure=asked.measure).fit(hin)
    scorer = load_scorer(asked.model, hin)
    evaluation = compare_on_test(scorer, teacher, asked.protocol, asked.queries, asked.seed)
    shares: list[tuple[str, float]] = []
    if used_paths:
        if not hasattr(scorer, "used_metapaths"):
            raise QueryError(f"a {scorer.name} model has no attention paths; leave out --used-paths")
        unseen = split_queries(hin, teacher.source_type, seed=asked.seed, most_test=used_paths).test
        shares = scorer.used_metapaths([(hits.query, hits[0].id) for hits in scorer.top_k(list(unseen), k=1)])
    if output.as_json:
        used = [{"metapath": text, "share": share} for text, share in shares]
        print_json(evaluation.to_dict() | ({"used_metapaths": used} if used_paths else {}))
        return
    if output.is_table:
        _print_evaluation(output, evaluation)
        return
    title = f"{scorer.name} against {asked.measure} on {evaluation.metapath}, {evaluation.queries} queries"
    stdout.print(render_evaluation(evaluation, title))
    if shares:
        stdout.print(_render_shares(shares, f"what it attends to, over the best hits of {used_paths} queries"))


def _evaluate_labels(source: GraphSource, asked: requests.Evaluate, pairs: Path, output: OutputFlags) -> None:
    if asked.metapath is not None or asked.used_paths:
        raise QueryError("--pairs compares with labels alone; leave out --metapath and --used-paths")
    scorer = load_scorer(asked.model, source.load())
    evaluation = evaluate_pairs(scorer, pairs)
    if output.as_json:
        print_json(evaluation.to_dict())
    elif output.is_table:
        _print_evaluation(output, evaluation)
    else:
        queries = "1 query" if evaluation.queries == 1 else f"{evaluation.queries:,} queries"
        title = f"{scorer.name} against {counted(evaluation.pairs, 'label')} of {queries} in {pairs}"
        stdout.print(render_evaluation(evaluation, title))


def _print_evaluation(output: OutputFlags, evaluation: Evaluation | LabelEvaluation) -> None:
    rows = [{"metric": name, "value": value} for name, value in evaluation.to_dict().items()]
    output.print_table(("metric", "value"), rows)


def compare_on_test(scorer: Scorer, teacher: Scorer, protocol: Protocol, queries: int, seed: int) -> Evaluation:
    """Compare two scorers on at most `queries` queries that training with this seed did not use."""
    if queries < 1:
        raise QueryError(f"‹queries› is {queries}; test on at least 1")
    unseen = split_queries(teacher.hin_, teacher.source_type, seed=seed, most_test=queries).test
    return compare(scorer, teacher, unseen, protocol)


def render_evaluation(evaluation: Evaluation | LabelEvaluation, title: str) -> Group:
    """Show how close a scorer comes to an exact measure or to labels."""
    table = plain_table("metric", ">value")
    for name, value in evaluation.to_dict().items():
        if isinstance(value, float):
            table.add_row(name, f"{value:.4f}" if name != "seconds_per_query" else f"{value:.6f}")
        elif name not in ("metapath", "protocol", "note"):
            table.add_row(name, "-" if value is None else str(value))
    note = getattr(evaluation, "note", None)
    return titled(title, table, *([note] if note else []))


def _render_shares(shares: Sequence[tuple[str, float]], title: str, most: int = 10) -> Group:
    table = plain_table("meta-path", ">share", "")
    for text, share in shares[:most]:
        table.add_row(printable(text), f"{share:.3f}", bar(share, width=40))
    rest = sum(share for _, share in shares[most:])
    if rest > 0:
        table.add_row(f"{len(shares) - most:,} more", f"{rest:.3f}", "")
    return titled(title, table)
