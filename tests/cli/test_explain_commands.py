"""whatif, and hits with p-values and intervals of ranks, as a user types them."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import neupath as npth
from tests.command_line import Run


def test_whatif_prints_what_the_library_finds(run: Run) -> None:
    arguments = ("whatif", "toy", "Mike", "Mary", "-p", "APVPA", "-k", "2", "--remove", "paper", "--limit", "1")
    answer = npth.what_if(npth.load("toy"), "APVPA", "Mike", "Mary", k=2, remove="paper", limit=1)
    assert run(*arguments, "--json").json == answer.to_dict()
    lines = run(*arguments).out.splitlines()
    assert lines[1:3] == [
        "now: rank 2, score 0.8000",
        "without these 2 paper nodes: no path is left (no smaller set does it)",
    ]
    assert "Mary-SIGMOD-1" in lines[3]


def test_whatif_says_what_it_cannot_do(run: Run) -> None:
    out = run("whatif", "toy", "Mike", "Bob", "-p", "APVPA", "--add", "edges").out
    assert "Bob is among the 10 best of Mike already, at rank 1" in out
    result = run("whatif", "toy", "Mike", "Bob", "-p", "APVPA", "--remove", "edges", "--add", "edges")
    assert (result.code, result.err) == (2, "error: give either --remove or --add, not both\n")
    open_proof = run("whatif", "toy", "Mike", "Mary", "-p", "APVPA", "-k", "2", "--remove", "edges", "--budget", "1000")
    assert "(a smaller set needs at least 1)" in open_proof.out
    added = run("whatif", "toy", "Mike", "Ann", "-p", "APVPA", "-k", "2", "--add", "paper")
    assert "with these 2 paper nodes: rank 2 (no smaller set of the additions tried does it)" in added.out
    measure = run("whatif", "toy", "Mike", "Mary", "-p", "APVPA", "-m", "simrank")
    assert (measure.code, "use one of pathsim, joinsim" in measure.err) == (2, True)
    assert run("whatif", "toy", "Mike", "Mary", "-p", "APVPA", "-k", "100000000000").code == 0


def test_search_shows_p_values_and_intervals_of_ranks(run: Run) -> None:
    arguments = ("search", "toy", "Mike", "Bob", "-p", "APVPA", "-k", "2", "--significance", "--permutations", "9")
    plain = run("search", "toy", "Mike", "Bob", "-p", "APVPA", "-k", "2", "--json").out.splitlines()
    tested = run(*arguments, "--stability-by", "paper", "--json").out.splitlines()
    for before, after in zip(map(json.loads, plain), map(json.loads, tested), strict=True):
        hits = [{key: hit[key] for key in ("rank", "id", "name", "score")} for hit in after["hits"]]
        assert hits == before["hits"]
        assert all(0.1 <= hit["p_value"] <= hit["q_value"] <= 1 for hit in after["hits"])
        assert all(hit["ranks"][0] <= hit["rank"] for hit in after["hits"])
        assert after["significance"]["permutations"] == 9
        assert after["stability"]["by"] == "paper"
    result = run(*arguments, "--stability")
    assert "ranks" in result.out.splitlines()[1]
    assert "from 9 permuted graphs, not below 0.1" in result.err
    assert "nine tenths of 100 graphs without 10% of the edges" in result.err


SEARCH = ("search", "toy", "Mike", "-p", "APVPA", "-k", "3")


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (
            ("--stability", "--among", "Jim", "--zeros"),
            "--stability ranks all targets with a path; leave out --among, --zeros",
        ),
        (("--stability-by", "paper", "--where", "id != Ann"), "--stability-by ranks all targets with a path; leave"),
        (("--stability", "--include-query"), "--stability ranks all targets with a path; leave out --include-query"),
        (("--significance", "--include-query"), "no p-value of a node with itself; leave out --include-query"),
        (("--permutations", "7"), "--permutations is for --significance; give it, too"),
        (("--stability", "--stability-by", "paper"), "give either --stability, for edges, or --stability-by"),
        (("--seed", "7", "--stability-by", "paper"), "--seed is for --significance and --stability"),
        (("--significance", "--permutations", "0"), "--permutations is 0; give a whole number of at least 1"),
        (("--significance", "--permutations", "9", "--stability-by", "x"), "no node type 'x' in this graph"),
    ],
)
def test_options_that_do_not_go_together_are_refused(run: Run, options: tuple[str, ...], error: str) -> None:
    result = run(*SEARCH, *options)
    assert (result.code, result.out) == (2, "")
    assert error in result.err


def test_filtered_hits_have_the_p_values_of_their_pairs(run: Run) -> None:
    tests = ("--significance", "--permutations", "9", "--json")
    every = {hit["id"]: hit["p_value"] for hit in run(*SEARCH, *tests).json["hits"]}
    for hit in run(*SEARCH, *tests, "--among", "Jim", "--among", "Ann", "--zeros").json["hits"]:
        assert hit["p_value"] == every.get(hit["id"], 1.0)


@pytest.mark.parametrize("width", ["80", "120"])
def test_tables_fit_the_terminal(run: Run, monkeypatch: pytest.MonkeyPatch, width: str) -> None:
    monkeypatch.setenv("COLUMNS", width)
    out = run("search", "toy", "Mike", "-p", "APVPA", "--significance", "--permutations", "9", "--stability").out
    out += run("whatif", "toy", "Mike", "Mary", "-p", "APVPA", "-k", "2").out
    assert max(map(len, out.splitlines())) <= int(width)


def test_join_adds_columns(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "top.parquet"
    arguments = ("join", "toy", "-p", "APVPA", "-k", "2", "--out", str(out))
    assert run(*arguments, "--significance", "--permutations", "9").code == 0
    rows = [row for row in pq.read_table(out).to_pylist() if row["query"] == "Mike"]
    hits = run(
        "search", "toy", "Mike", "-p", "APVPA", "-k", "2", "--significance", "--permutations", "9", "--json"
    ).json["hits"]
    assert [(row["p_value"], row["q_value"]) for row in rows] == [(hit["p_value"], hit["q_value"]) for hit in hits]
    folder = run("join", "toy", "-p", "APVPA", "--out", str(tmp_path / "folder"), "--significance")
    assert folder.code == 2
    assert "is a folder; give a name in .parquet or .csv" in folder.err
    early = tmp_path / "early.csv"
    for options in (("--significance", "--permutations", "0"), ("--significance", "--seed", "-1"), ("--seed", "1")):
        assert run("join", "toy", "-p", "APVPA", "--out", str(early), *options).code == 2
        assert not early.exists()
    dask = run(*arguments, "--significance", "--engine", "dask")
    assert "--significance needs an exact measure and --engine local" in dask.err
