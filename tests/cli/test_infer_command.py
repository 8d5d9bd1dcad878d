"""infer as a user types it, including the dialogue."""

import io
import sys
from pathlib import Path

import pytest

import neupath as npth
from neupath.learn.labels import draw_pairs, write_pairs
from tests.command_line import Run

PATH = "class-method-class"


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    hin = npth.load("stdlib")
    path = tmp_path / "pairs.csv"
    queries = hin.nodes["class"].ids.to_pylist()[0:200:20]
    path.write_text(write_pairs(hin, draw_pairs(npth.PathSim(PATH).fit(hin), queries)))
    return path


@pytest.mark.slow
def test_infer_prints_saves_and_is_searched(run: Run, pairs: Path, tmp_path: Path) -> None:
    folder = tmp_path / "meaning"
    result = run("infer", "stdlib", pairs, "--out", folder)
    assert result.code == 0
    assert "class-method-class   1.000" in result.out
    assert "explained exactly, and by nothing else that was tried" in result.out
    assert "searched 17 of 17 meta-paths" in result.out
    answer = run("search", "stdlib", "argparse.ArgumentParser", "--model", folder, "-k", 3, "--json").json
    exact = run("search", "stdlib", "argparse.ArgumentParser", "--metapath", PATH, "-k", 3, "--json").json
    assert [(hit["id"], hit["score"]) for hit in answer["hits"]] == [(hit["id"], hit["score"]) for hit in exact["hits"]]
    assert (answer["measure"], answer["exact"], answer["metapath"]) == ("combination", True, PATH)
    hit = exact["hits"][0]["id"]
    why = run("explain", "stdlib", "argparse.ArgumentParser", hit, "--model", folder, "--json").json
    assert why["score"] == pytest.approx(exact["hits"][0]["score"])
    assert why["parts"][0]["metapath"] == PATH
    report = run("explain", "stdlib", "argparse.ArgumentParser", hit, "--model", folder)
    assert "class-method-class adds" in report.out
    assert "100.0 % of the score" in report.out


def test_infer_json(run: Run, pairs: Path) -> None:
    report = run("infer", "stdlib", pairs, "--json").json
    assert report["metapaths"] == [
        {"metapath": PATH, "weight": 1.0, "low": pytest.approx(1.0), "high": pytest.approx(1.0)}
    ]
    assert (report["measure"], report["rmse"], report["r2"], report["alternatives"]) == (
        "pathsim",
        pytest.approx(0),
        1.0,
        [],
    )
    assert report["searched"] == {"tried": 17, "candidates": 17, "too_large": 0, "leading_nowhere": 0, "stopped": None}


def test_the_dialogue_asks_until_one_explanation_is_left(
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    few = tmp_path / "few.csv"
    few.write_text("query,target,score\nMike,Bob,1\nMike,Ann,0\n")
    monkeypatch.setattr(sys, "stdin", io.StringIO("what\n2\ns\n0.8\nq\n"))
    more = tmp_path / "more.csv"
    result = run("infer", "toy", few, "--ask", "--save-pairs", more, "--max-length", 4)
    assert result.code == 0
    assert "How similar are" in result.out
    assert "'what' is not a score from 0 to 1." in result.out
    assert "'2' is not a score from 0 to 1." in result.out
    lines = more.read_text().splitlines()
    assert len(lines) == 4
    assert lines[-1].endswith(",0.8")


@pytest.mark.slow
def test_no_question_if_one_explanation_is_left(run: Run, pairs: Path) -> None:
    assert "No question is left" in run("infer", "stdlib", pairs, "--ask").out


@pytest.mark.slow
def test_compare_lists_the_learned_models(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    labels = tmp_path / "pairs.csv"
    labels.write_text("query,target,score\nMike,Bob,1\nMike,Mary,0.8\nMary,Ann,0.2857142857\nJim,Ann,0\n")
    report = run("infer", "toy", labels, "--compare", "--max-length", 4, "--json").json
    assert [row["model"] for row in report["compared"]] == ["infer", "pathboost", "neupath"]
    assert all(row["rmse"] >= 0 or row["reason"] for row in report["compared"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "pairs.csv is empty; a table has at least a header line"),
        ("query,target,score\nMike,Bob,0,5\n", "pairs.csv, line 2: expected 3 columns .*, got 4"),
        (
            "Mike,Bob,0.5\n",
            "query, target, score, and this has no names of columns; name them in the first line of .*pairs.csv",
        ),
        ("query,target,score\n", "there are no pairs to learn from"),
        ("query,goal,score\nMike,Bob,1\n", "a table of pairs has the columns query, target, score"),
        (
            "query,target,score\nMike,Bob,high\n",
            r"pairs.csv, line 2 \('Mike', 'Bob'\) has the score 'high'; scores are",
        ),
        (
            "query,target,score\nMike,Bob,1\nMike,Bob,0\n",
            r"line 2 .* has the score 1, and .* line 3 .* has 0; keep",
        ),
        ("query,target,score\nMike,SIGMOD,1\nMike,Bob,1\n", "no node type has all targets of the pairs"),
        ("query,target,score\nMike,Nobody,1\n", "no node type has all targets of the pairs"),
    ],
)
def test_bad_pairs(run: Run, tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text(content)
    failed = run("infer", "toy", path)
    assert failed.code == 2
    assert failed.err.startswith("error: ")
    assert failed.err.count("\n") == 1
    assert __import__("re").search(message, failed.err)


@pytest.mark.slow
def test_pairs_across_types_and_yes_or_no(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    rows = [("Mike", "SIGMOD", "yes"), ("Mike", "KDD", "no"), ("Mary", "SIGMOD", "Yes"), ("Ann", "SIGMOD", "no")]
    path.write_text("query,target,score\n" + "".join(f"{','.join(row)}\n" for row in rows))
    result = run("infer", "toy", path, "--max-length", 3, "--out", tmp_path / "m")
    assert "what 4 labelled pairs of author and venue nodes mean" in result.out
    assert "author-paper-venue" in result.out
    hits = run("search", "toy", "Mike", "--model", tmp_path / "m", "--json").json["hits"]
    assert hits[0]["id"] == "SIGMOD"
    assert run("evaluate", "toy", "--model", tmp_path / "m", "--pairs", path, "--json").json["pairs"] == 4


def test_examples_stay_examples_through_the_dialogue(
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    examples = tmp_path / "examples.csv"
    examples.write_text("query,target\nMike,Bob\nMike,Mary\n")
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\nq\n"))
    more = tmp_path / "more.csv"
    result = run("infer", "toy", examples, "--ask", "--save-pairs", more, "--max-length", 4)
    assert result.code == 0
    assert "what 2 labelled pairs" in result.out
    assert "RMSE" not in result.out
    assert more.read_text().splitlines()[0] == '"query","target"'


@pytest.mark.slow
def test_bad_options(run: Run, pairs: Path) -> None:
    assert "--save-pairs keeps the answers of --ask" in run("infer", "stdlib", pairs, "--save-pairs", "x.csv").err
    assert "--seed is -1" in run("infer", "stdlib", pairs, "--seed", -1).err
    assert (
        "--max-length is 100000; give a whole number from 2 to 20"
        in run("infer", "stdlib", pairs, "--max-length", 100000).err
    )
    assert "suggest is -1" in run("infer", "stdlib", pairs, "--suggest", -1).err
    assert "--ask is a dialogue" in run("infer", "stdlib", pairs, "--ask", "--json").err
    assert "is a file; give a folder" in run("infer", "stdlib", pairs, "--out", pairs).err
    assert "'dwpc' cannot be inferred" in run("infer", "stdlib", pairs, "--measure", "dwpc").err
