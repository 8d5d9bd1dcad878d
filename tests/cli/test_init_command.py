"""init as a user types it: what it shows, asks and writes."""

import io
import sys
from pathlib import Path

import pytest

from tests.command_line import Run
from tests.tables import write

RATINGS = "userId,movieId,rating,timestamp\n1,10,4.5,99\n2,10,3,98\n"


def test_init_shows_columns_and_writes_a_file(run: Run, tmp_path: Path) -> None:
    papers = "paper_id,title,venue_id\np1,On Foo,v1\np2,Bar,\np3,Baz,v1\n"
    folder = write(tmp_path / "t", papers__csv=papers, author_paper__csv="author_id,paper_id\na,p1\nb,p2\n")
    result = run("init", folder, "--yes")
    assert result.code == 0
    assert "end of paper -paper_venue-> venue" in result.out
    assert f"written to {folder / 'graph.toml'}; neupath info {folder} shows the graph" in result.err
    assert run("info", folder, "--json").json["relations"][1]["name"] == "paper_venue"
    again = run("init", folder, "--yes")
    assert (again.code, "graph.toml exists and stays as it is; remove it, or give another name" in again.err) == (
        2,
        True,
    )


def test_init_asks(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "t", ratings__csv=RATINGS) / "ratings.csv"
    monkeypatch.setattr(sys, "stdin", io.StringIO("what\n9\nyes\n"))
    result = run("init", path)
    assert "is rating the weight of the edges?" in result.out
    assert "'what' is not a choice; give a number from 1 to 2." in result.out
    config = path.with_name("ratings.csv.toml")
    assert 'weight = "rating"' in config.read_text()
    assert run("info", path, "--config", config, "--json").json["relations"][0]["weight"] == 7.5
    monkeypatch.setattr(sys, "stdin", io.StringIO("\nn\n"))
    assert "exists and stays as it is" in run("init", path).err
    monkeypatch.setattr(sys, "stdin", io.StringIO("\ny\n"))
    assert run("init", path).code == 0
    assert 'weight = "rating"' not in [line for line in config.read_text().splitlines() if not line.startswith("#")]


def test_init_explains_which_rule_reads_tables_and_which_came_near(run: Run, tmp_path: Path) -> None:
    folder = write(tmp_path / "g", nodes__csv="id,name\n1,Ann\n", movie_actor__csv="movie_id,actor_id\nm,a\n")
    out = run("init", folder, "--explain").out
    rows = {line.split("  ")[0]: line for line in out.splitlines()}
    assert "nodes.csv: this is" in rows["nodes and edges"]
    assert rows["relations"].rstrip().endswith("reads them")
    assert not (folder / "graph.toml").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nowhere",), "no such file or folder: nowhere"),
        (("toy",), "toy needs no graph.toml"),
        (("toy", "--explain"), "toy needs no graph.toml"),
        (("nowhere", "--explain"), "no such file or folder: nowhere"),
        (("{path}", "--out", "{folder}"), "is a folder; give the name of a file with --out"),
        (("{path}", "--yes", "--out", "{folder}/none/x.toml"), "none"),
        (("{path}",), "the answers ended before the questions; --yes takes the first choice of each"),
        (("{folder}/binary.csv", "--yes"), "binary.csv"),
    ],
)
def test_bad_input(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], message: str
) -> None:
    folder = write(tmp_path / "t", ratings__csv=RATINGS, binary__csv=bytes(range(256)))
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    words = {"folder": folder, "path": folder / "ratings.csv"}
    failed = run("init", *(argument.format(**words) for argument in arguments))
    assert failed.code == 2
    assert failed.err.startswith("error: ")
    assert failed.err.count("\n") == 1
    assert message in failed.err


def test_what_no_rule_reads_is_said_with_yes(run: Run, tmp_path: Path) -> None:
    path = write(tmp_path / "t", who__csv="alpha,beta,gamma\nx,y,1\nz,y,2\n") / "who.csv"
    result = run("init", path, "--yes", "--out", tmp_path / "g.toml")
    assert result.code == 0
    assert "who.csv is not recognised" in result.err
    assert "this reads it as the first choice, so check it" in result.err
    assert run("info", path, "--config", tmp_path / "g.toml").code == 0
