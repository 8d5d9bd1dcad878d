"""train, evaluate and search --model as a user types them."""

import json
import re
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

pytest.importorskip("torch")

import neupath as npth
from neupath.cli.train_commands import render_auto
from neupath.learn.auto import AutoReport, Tried
from neupath.learn.registry import make_model
from neupath.learn.stack import Stack
from neupath.live import LiveStore
from neupath.store import Node, Update, write_store
from tests.command_line import Run
from tests.tables import write

PATH = "class-method-class"


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.mark.slow
def test_train_evaluate_search_with_countpath(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    trained = run(
        "train", "stdlib", "--metapath", PATH, "--architecture", "countpath", "--out", folder, "--device", "cpu"
    )
    assert trained.code == 0
    assert "it reads as class-method-class with weight 1.000" in trained.out
    assert {path.name for path in folder.iterdir()} == {"config.json", "weights.safetensors", "log.jsonl", "curve.svg"}
    report = run("evaluate", "stdlib", "--model", folder, "--metapath", PATH, "--queries", 50, "--json").json
    assert report["ndcg@20"] == pytest.approx(1.0)
    assert set(report) >= {"metapath", "protocol", "rmse_top", "rmse_all", "rmse_nonzero", "ndcg_released", "recall@20"}
    answer = run("search", "stdlib", "argparse.ArgumentParser", "--model", folder, "-k", 3, "--json").json
    assert (answer["measure"], answer["exact"], answer["metapath"]) == ("countpath", False, None)
    exact = run("search", "stdlib", "argparse.ArgumentParser", "--metapath", PATH, "-k", 3, "--json").json
    assert [hit["id"] for hit in answer["hits"]] == [hit["id"] for hit in exact["hits"]]


@pytest.mark.slow
def test_train_evaluate_search_with_neupath(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    arguments = ["--layers", 4, "--dim", 16, "--epochs", 3, "--device", "cpu"]
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("query,target,score\nMike,Bob,1\nMike,Mary,0.8\nJim,Mike,0.0826\nMary,Ann,0.2857\nBob,Ann,0\n")
    refused = run("train", "toy", "--pairs", pairs, "--out", folder, *arguments)
    assert "auto chooses the settings of what it tries; leave out --layers" in refused.err
    arguments += ["--architecture", "neupath"]
    trained = run("train", "toy", "--pairs", pairs, "--out", folder, *arguments, "--json")
    assert trained.json["epochs"] == 3
    assert "5 labels of 4 queries: too few to train a model on" in trained.err
    result = run("evaluate", "toy", "--model", folder, "--metapath", "APVPA", "--queries", 2)
    assert result.code == 2, "five authors are too few for a split"
    searched = run("search", "toy", "Mike", "--model", folder)
    assert re.search(r"most similar to Mike by the neupath model in ", searched.out)
    assert len((folder / "log.jsonl").read_text().splitlines()) == 3
    assert json.loads((folder / "config.json").read_text())["params"]["dim"] == 16


@pytest.mark.slow
def test_evaluate_shows_the_meta_paths_a_model_uses(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    settings = ["--dim", 16, "--epochs", 2, "--device", "cpu"]
    assert run("train", "stdlib", "--metapath", PATH, "--out", folder, *settings).code == 0
    arguments = ("evaluate", "stdlib", "--model", folder, "--metapath", PATH, "--queries", 5, "--used-paths", 5)
    used = run(*arguments, "--json").json["used_metapaths"]
    assert sum(part["share"] for part in used) == pytest.approx(1.0)
    assert all(part["metapath"].startswith("class ") for part in used)
    assert "what it attends to, over the best hits of 5 queries" in run(*arguments).out


@pytest.mark.parametrize("architecture", ["gcn", "nbfnet"])
@pytest.mark.slow
def test_baselines_are_trained_and_searched_like_any_model(run: Run, tmp_path: Path, architecture: str) -> None:
    settings = ["--dim", 8, "--epochs", 2, "--device", "cpu", "--architecture", architecture]
    if architecture == "gcn":
        labels = ["--metapath", PATH, "--attributes"]
    else:  # few pairs: it passes over the whole graph for each query
        pairs = tmp_path / "pairs.csv"
        pairs.write_text(
            "query,target,score\nargparse.ArgumentParser,optparse.OptionParser,1\noptparse.OptionParser,optparse.Option,0\n"
        )
        labels = ["--pairs", pairs]
    trained = run("train", "stdlib", *labels, "--out", tmp_path, *settings, "--json").json
    assert (trained["architecture"], trained["epochs"], trained["metapaths"]) == (architecture, 2, [])
    report = run("evaluate", "stdlib", "--model", tmp_path, "--metapath", PATH, "--queries", 5, "--json").json
    assert report["queries"] == 5
    answer = run("search", "stdlib", "argparse.ArgumentParser", "--model", tmp_path, "-k", 3, "--json").json
    assert (answer["measure"], len(answer["hits"])) == (architecture, 3)
    params = json.loads((tmp_path / "config.json").read_text())["params"]
    assert params.get("attributes") == (True if architecture == "gcn" else None)


def test_embeddings_are_learned_without_labels(run: Run, tmp_path: Path) -> None:
    settings = ["--dim", 8, "--epochs", 1, "--device", "cpu"]
    trained = run(
        "train", "toy", "--architecture", "node2vec", "--node-type", "author", "--out", tmp_path / "n", *settings
    )
    assert "vectors of author nodes, learned in " in trained.out
    along = run(
        "train",
        "toy",
        "--architecture",
        "metapath2vec",
        "--metapath",
        "APA",
        "--out",
        tmp_path / "m",
        *settings,
        "--json",
    )
    assert along.json["node_type"] == "author"
    assert (
        "most similar to Mike by the node2vec model in" in run("search", "toy", "Mike", "--model", tmp_path / "n").out
    )
    answer = run("search", "toy", "Mike", "--model", tmp_path / "m", "--json").json
    assert (answer["measure"], answer["metapath"]) == ("metapath2vec", "author-paper-author")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("train", "toy", "--out", "m"), "give either --metapath, to draw labels from a measure, or --pairs"),
        (("train", "toy", "--out", "m", "--metapath", "APVPA", "--pairs", "x.csv"), "give either --metapath"),
        (("train", "toy", "--out", "m", "--pairs", "nowhere.csv"), "no such file: nowhere.csv"),
        (
            ("train", "toy", "--out", "m", "--metapath", "APVPA", "--architecture", "neupaht"),
            "no architecture 'neupaht'",
        ),
        (("train", "toy", "--out", "m", "--metapath", "APVPA"), "5 nodes are too few to split"),
        (("train", "toy", "--out", "m", "--metapath", "APVPA", "--dim", 0), "dim is 0"),
        (
            ("train", "toy", "--out", "m", "--metapath", "APVPA", "--architecture", "countpath", "--paths", 3),
            "a countpath model has no paths; it has batch_size, channels, device, epochs, layers",
        ),
        (
            ("train", "toy", "--out", "m", "--metapath", "APVPA", "--architecture", "nbfnet", "--attributes"),
            "a nbfnet model has no attributes; it has aggregation",
        ),
        (
            ("train", "toy", "--out", "m", "--metapath", "APVPA", "--node-type", "author"),
            "the labels take their node type from --metapath; leave out --node-type",
        ),
        (
            ("train", "toy", "--out", "m", "--architecture", "node2vec"),
            "node2vec learns from walks, and needs --node-type alone",
        ),
        (("train", "toy", "--out", "m", "--architecture", "metapath2vec"), "and needs --metapath alone to know which"),
        (
            ("train", "toy", "--out", "m", "--architecture", "node2vec", "--node-type", "author", "--paths", 2),
            "a node2vec model has no paths; it has device, dim",
        ),
        (
            ("train", "toy", "--out", "m", "--architecture", "node2vec", "--pairs", "x.csv"),
            "node2vec learns without labels; leave out --pairs",
        ),
        (("evaluate", "toy", "--model", "nowhere", "--metapath", "APVPA"), "no saved scorer in nowhere"),
        (("search", "toy", "Mike", "--model", "nowhere"), "no saved scorer in nowhere"),
        (("search", "toy", "Mike", "--model", "nowhere", "-p", "APVPA"), "give either --model or --metapath"),
    ],
)
def test_bad_input(run: Run, arguments: tuple[object, ...], message: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(*arguments)
    assert result.code == 2
    assert len(result.err.splitlines()) == 1
    assert message in result.err
    assert not (tmp_path / "m").exists()


def test_one_label_is_one(run: Run, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("query,target,score\nMike,Bob,1\n")
    measure = npth.PathSim("APVPA").fit(npth.load("toy")).save(tmp_path / "model")
    shown = run("evaluate", "toy", "--model", measure, "--pairs", pairs).out
    assert "pathsim against 1 label of 1 query in" in shown


def test_a_model_is_not_saved_among_the_tables_of_its_graph(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Later commands took its files for parts of the graph."""
    films = write(tmp_path / "films", film_actor__csv="film,actor\nHeat,Pacino\nHeat,Kilmer\nRonin,Kilmer\n")
    (tmp_path / "pairs.csv").write_text("query,target,score\nHeat,Ronin,1\n")
    monkeypatch.chdir(tmp_path)
    refused = run("train", "films", "--pairs", "pairs.csv", "--out", films)
    assert refused.code == 2
    assert refused.err == f"error: --out {films} is the folder of the graph; give another folder to save the model to\n"
    assert [path.name for path in films.iterdir()] == ["film_actor.csv"]


def test_help_and_errors_name_every_architecture(run: Run) -> None:
    from neupath.learn.registry import ARCHITECTURES
    from neupath_paper import runs

    assert set(ARCHITECTURES) <= {*runs.LEARNED, *runs.CLASSICAL}
    help_text = run("train", "--help").out
    assert [name for name in ARCHITECTURES if name not in help_text] == []


def test_pairs_whose_ids_fit_two_types_need_a_node_type(run: Run, tmp_path: Path) -> None:
    folder = write(tmp_path / "graph", a_b__csv="a,b\nx,x\ny,y\nx,y\nz,x\nv,z\nw,v\n")
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("query,target,score\nx,y,1\ny,x,1\nx,z,0.5\n")
    settings = ("--architecture", "countpath", "--epochs", 1, "--device", "cpu", "--out", tmp_path / "model")
    refused = run("train", folder, "--pairs", pairs, *settings)
    assert "could be of type a or b; say which with --node-type" in refused.err
    assert "or write query_type and target_type beside each pair" in refused.err
    assert run("train", folder, "--pairs", pairs, *settings, "--node-type", "b").code == 0
    assert run("search", folder, "x", "--model", tmp_path / "model").code == 0
    typed = tmp_path / "typed.csv"
    typed.write_text("query,target,score,query_type,target_type\nx,y,yes,b,b\ny,x,yes,b,b\nx,z,no,b,b\n")
    assert run("train", folder, "--pairs", typed, *settings).code == 0
    assert run("evaluate", folder, "--model", tmp_path / "model", "--pairs", pairs, "--json").json["pairs"] == 3
    shown = run("evaluate", folder, "--model", tmp_path / "model", "--pairs", typed).out
    assert "countpath against 3 labels of 2 queries" in shown
    both = run("evaluate", folder, "--model", tmp_path / "model", "--pairs", typed, "--metapath", "aba")
    assert (both.code, "--pairs compares with labels alone; leave out --metapath" in both.err) == (2, True)
    typed.write_text("query,target,score,query_type,target_type\nx,y,1,a,b\n")
    across = run("train", folder, "--pairs", typed, *settings)
    assert across.code == 2
    assert "a countpath model ranks the nodes of one type, and these pairs go from a to b nodes; neupath" in across.err


def test_auto_is_the_default_for_pairs(run: Run, tmp_path: Path) -> None:
    pairs, model = tmp_path / "pairs.csv", tmp_path / "model"
    pairs.write_text("query,target,score\nMike,Bob,5\nMike,Mary,4\nMike,Jim,1\nMary,Ann,2\n")
    trained = run("train", "toy", "--pairs", pairs, "--out", model)
    assert trained.code == 0, trained.err
    assert "4 labels of 2 queries: infer" in trained.out
    assert (trained.out + trained.err).count("too few to train a model on") == 1
    assert "Bob" in run("search", "toy", "Mike", "--model", model).out
    assert "Mike" in run("explain", "toy", "Mike", "Bob", "--model", model).out
    assert (
        "auto judges learners by labels of your own"
        in run("train", "toy", "-p", "APVPA", "--architecture", "auto", "--out", model).err
    )
    assert (
        "--budget is for auto, and the architecture is countpath"
        in run("train", "toy", "--pairs", pairs, "--architecture", "countpath", "--budget", 5, "--out", model).err
    )
    across = tmp_path / "across.csv"
    across.write_text("query,target,score\nMike,SIGMOD,yes\nMike,KDD,no\nMary,SIGMOD,yes\nAnn,SIGMOD,no\n")
    arguments = ("train", "toy", "--pairs", across, "--out", model, "--query-type", "author", "--target-type", "venue")
    assert run(*arguments).code == 0
    assert run("search", "toy", "Mike", "--model", model, "-k", 1, "--json").json["hits"][0]["id"] == "SIGMOD"


@pytest.mark.slow
def test_a_stack_over_a_changed_store_says_what_is_left_out(run: Run, tmp_path: Path) -> None:
    """Once per command; where nothing fits, it is one error."""
    toy = npth.load("toy")
    labels = [("Mike", "Bob", 1.0), ("Mike", "Mary", 0.8), ("Mike", "Ann", 0.0)]
    network = make_model("rgcn", dim=4, epochs=1, device="cpu").fit(toy, labels)
    parts = [{"weight": 0.5, "mean": 0.0, "spread": 1.0}] * 2
    model = Stack.of([npth.PathSim("APVPA").fit(toy), network], parts).save(tmp_path / "model")
    alone = Stack.of([network], parts[:1]).save(tmp_path / "alone")
    store = write_store(toy, tmp_path / "store")
    search = ("search", store, "Mike", "-k", 1)
    assert run(*search, "--model", model).err == ""
    with LiveStore(store) as live:
        live.update(Update(add_nodes=[Node("venue", "WWW")]))
    answer = run(*search, "--model", model, "--json")
    assert answer.json["hits"][0]["id"] == "Bob"
    assert answer.err.count("rgcn of the stack pathsim + rgcn is left out") == 1
    refused = run(*search, "--model", alone)
    assert refused.code != 0
    assert "no member of this stack fits the graph: rgcn knows each node" in refused.err
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("query,target,score\nMike,Bob,1\nMike,Ann,0\n")
    evaluated = run("evaluate", store, "--model", model, "--pairs", pairs)
    assert "the scores of a stack come from ranks" in evaluated.out


def test_auto_prints_the_mix_beside_its_members() -> None:
    members = [Tried(name, 0.7, 0.6, 0.8, 0.5, 1.0, 0.5) for name in ("pathboost", "infer")]
    mix = Tried("mix", 0.75, 0.6, 0.8, 0.5, 2.0, 1.0)
    report = AutoReport("", "AUC", 1, 1, tuple(members), mix, ("pathboost", "infer"), "why", "what is 0", 2.0, 9.0)
    console = Console(file=StringIO(), record=True, width=120)
    console.print(render_auto(report))
    shown = console.export_text()
    assert re.search(r"^mix +0\.7500 +0\.600 to 0\.800 ", shown, re.MULTILINE)
    assert "1 label of 1 query: pathboost + infer" in shown
    assert "what is 0" in shown
