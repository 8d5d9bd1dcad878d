"""The commands prepare and join: an index takes the place of a graph, and a join is cut into parts or estimated."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.command_line import Result, Run


def succeeded(result: Result) -> Result:
    assert result.code == 0, result.err
    return result


@pytest.fixture
def index(run: Run, tmp_path: Path) -> Path:
    """An index of the toy graph."""
    succeeded(run("prepare", "toy", "-p", "APVPA", "--to", tmp_path / "authors.index"))
    return tmp_path / "authors.index"


@pytest.mark.parametrize(
    "options",
    [
        ["-k", 2],
        ["--include-query", "--zeros"],
        ["--among", "Mary", "--among", "Ann"],
        ["--with", "Bob"],
        ["--without", "Jim=0.1"],
        ["--diverse", 0.5],
    ],
)
def test_an_index_is_searched_as_the_graph_is(run: Run, index: Path, options: list[object]) -> None:
    expected = succeeded(run("search", "toy", "Mike", "-p", "APVPA", "--json", *options))
    assert succeeded(run("search", index, "Mike", "--json", *options)).out == expected.out
    assert succeeded(run("search", index, "Mike", "-m", "pathsim", "--json", *options)).out == expected.out


def test_prepare_says_what_it_wrote(run: Run, tmp_path: Path) -> None:
    printed = succeeded(run("prepare", "toy", "-p", "APA", "-m", "joinsim", "--to", tmp_path / "x", "--json"))
    said = json.loads(printed.out)
    assert said == {
        "index": str(tmp_path / "x"),
        "bytes": said["bytes"],
        "metapath": "author-paper-author",
        "measure": "joinsim",
    }
    assert (
        "an index of joinsim along author-paper-author, which answers nothing else"
        in succeeded(run("info", tmp_path / "x")).out
    )


def test_explain_names_the_nodes_in_the_middle(run: Run, index: Path) -> None:
    printed = succeeded(run("explain", index, "Mike", "Jim")).out
    assert "pathsim = 2 × 120 / (5 + 2900) = 0.0826" in printed
    assert printed.index("SIGMOD") < printed.index("VLDB")
    explained = json.loads(succeeded(run("explain", index, "Mike", "Jim", "--json")).out)
    assert sum(group["share"] for group in explained["groups"]) == pytest.approx(1)
    table = succeeded(run("explain", index, "Mike", "Jim", "--csv", "--limit", 1)).out.splitlines()
    assert table[1].startswith("author-paper-venue-paper-author,venue,SIGMOD,")


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["search", "INDEX", "Mike", "-p", "APA"], "answers nothing else; leave out --metapath, or ask the graph"),
        (["search", "INDEX", "Mike", "-m", "ppr", "--node-type", "author"], "leave out --measure"),
        (["search", "INDEX", "Mike", "--unless", "APA"], "leave out --unless"),
        (["search", "INDEX", "Mike", "--significance"], "has no edges for anything else"),
        (["search", "INDEX", "Mike", "--stability"], "has no edges for anything else"),
        (["search", "INDEX", "Mike", "--where", "year > 2000"], "author has no attribute 'year'"),
        (["search", "INDEX", "Nobody"], "no author with the id 'Nobody' among 5"),
        (["explain", "INDEX", "Mike", "Jim", "--draw", "x.svg"], "leave out --draw"),
        (["explain", "INDEX", "Mike", "Jim", "--by", "paper"], "leave out --by"),
        (["relate", "INDEX", "Mike", "Jim"], "has no edges for anything else"),
        (["whatif", "INDEX", "Mike", "Jim"], "has no edges for anything else"),
        (["compare", "INDEX", "Mike"], "has no edges for anything else"),
        (["paths", "INDEX"], "has no edges for anything else"),
        (["import", "INDEX", "--to", "store"], "has no edges for anything else"),
        (["prepare", "INDEX", "-p", "APA", "--to", "other"], "this is an index already"),
        (["prepare", "toy", "--to", "other"], "no meta-path is given"),
        (["prepare", "toy", "-p", "APA", "--to", "README"], "README is a file; give a folder"),
        (["prepare", "toy", "-p", "APA", "--to", "other", "--workers", "2"], "--workers is for workers; give --engine"),
        (["join", "INDEX", "--index", "INDEX", "--out", "x.parquet"], "give either a graph or --index"),
        (["join", "--out", "x.parquet"], "give either a graph or --index"),
        (["join", "INDEX", "--part", "4/3", "--out", "x.parquet"], "--part is '4/3'; give a number and how many"),
        (["join", "INDEX", "--part", "1/3", "--engine", "dask", "--out", "x.parquet"], "leave out --threads, --device"),
        (["join", "INDEX", "--into", "r.txt", "--out", "x.parquet"], "is no database to write to"),
        (["join", "INDEX", "--into", "r.duckdb", "--out", "x.csv"], "--into needs the pairs in Parquet, whole"),
        (["join", "INDEX", "--table", "t", "--out", "x.parquet"], "--table is for --into"),
        (["join", "INDEX", "-p", "APA", "--out", "x.parquet"], "answers nothing else; leave out --metapath"),
        (["search", "nowhere.index", "Mike"], "nowhere.index"),
    ],
)
def test_what_an_index_cannot_answer_is_refused(
    run: Run, index: Path, monkeypatch: pytest.MonkeyPatch, command: list[str], message: str
) -> None:
    monkeypatch.chdir(index.parent)
    Path("README").touch()
    before = sorted(index.parent.iterdir())
    refused = run(*(index if word == "INDEX" else word for word in command))
    assert refused.code == 2
    assert message in refused.err
    assert sorted(index.parent.iterdir()) == before


def test_parts_of_a_join_make_the_same_file(run: Run, index: Path, tmp_path: Path) -> None:
    succeeded(run("join", "toy", "-p", "APVPA", "--block", 1, "--out", tmp_path / "whole.parquet"))
    out = tmp_path / "parts.parquet"
    for number in (3, 1):
        said = succeeded(run("join", "--index", index, "--block", 1, "--out", out, "--part", f"{number}/3")).out
        assert "blocks of other parts are not yet" in said
        assert not out.exists()
    other = run("join", "--index", index, "--block", 1, "-k", 3, "--out", out, "--part", "2/3")
    assert "holds blocks of another join, with another k" in other.err
    said = succeeded(run("join", "--index", index, "--block", 1, "--out", out, "--part", "2/3", "--json")).out
    assert json.loads(said) == {"file": str(out), "queries": 5, "pairs": 14, "blocks": 5, "resumed": 0}
    assert out.read_bytes() == (tmp_path / "whole.parquet").read_bytes()
    assert not list(tmp_path.glob("parts.parquet.*"))


def test_an_estimate_writes_nothing(run: Run, index: Path, tmp_path: Path) -> None:
    before = sorted(tmp_path.iterdir())
    said = succeeded(run("join", index, "--out", tmp_path / "x.parquet", "--estimate")).out
    assert said.startswith("about 14 pairs of 5 queries, less than 1 MiB, ")
    estimate = json.loads(succeeded(run("join", index, "--out", tmp_path / "x.parquet", "--estimate", "--json")).out)
    assert (estimate["queries"], estimate["pairs"]) == (5, 14)
    assert sorted(tmp_path.iterdir()) == before


def test_a_join_of_many_queries_says_first_what_it_takes(
    run: Run, index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("neupath.engine.join._MANY_QUERIES", 5)
    printed = succeeded(run("join", index, "--out", tmp_path / "x.parquet"))
    assert "this join takes about 14 pairs of 5 queries" in printed.err


def test_pairs_go_into_a_database(run: Run, index: Path, tmp_path: Path) -> None:
    import duckdb

    out, database = tmp_path / "x.parquet", tmp_path / "r.duckdb"
    succeeded(run("join", index, "--out", out, "--into", database, "--table", "near"))
    with duckdb.connect(str(database)) as connection:
        rows = connection.execute("SELECT * FROM near").fetchall()
    assert rows == list(zip(*pq.read_table(out).to_pydict().values(), strict=True))
