"""import, update, export and check on the command line."""

from pathlib import Path

import pytest

import neupath as npth
from neupath.graph.hin import digest
from tests.command_line import Run
from tests.tables import CAST, MOVIES, write


@pytest.fixture
def store(tmp_path: Path, run: Run) -> Path:
    result = run("import", "toy", "--to", tmp_path / "toy.store", "--json")
    assert result.json == {"store": str(tmp_path / "toy.store"), "version": 0, "nodes": 90, "edges": 162}
    return tmp_path / "toy.store"


def test_a_store_is_a_graph_to_every_command(run: Run, store: Path) -> None:
    path = ("--metapath", "author-paper-venue-paper-author", "--json")
    assert run("search", store, "Mike", *path).json == run("search", "toy", "Mike", *path).json
    assert run("explain", store, "Mike", "Bob", *path).json == run("explain", "toy", "Mike", "Bob", *path).json
    assert run("info", store, "--json").json == run("info", "toy", "--json").json | {"version": 0}
    assert "a store, version 0: 90 nodes, 162 edges" in run("info", store).out


def test_update_changes_search_results(run: Run, store: Path, tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("type,id\nauthor,Zoe\n")
    (tmp_path / "edges.csv").write_text("relation,source,target\nwrites,Zoe,Mike-SIGMOD-1\n")
    result = run("update", store, "--add", tmp_path / "nodes.csv", "--add", tmp_path / "edges.csv")
    assert result.out == "version 1: 91 nodes, 163 edges\n"
    answer = run("search", store, "Zoe", "--metapath", "author-paper-author", "--json").json
    assert [hit["id"] for hit in answer["hits"]] == ["Mike"]
    earlier = run("search", store, "Zoe", "--metapath", "author-paper-author", "--as-of", 0)
    assert (earlier.code, "no author with the id 'Zoe'" in earlier.err) == (2, True)
    why = run("explain", store, "Mike", "Zoe", "--metapath", "author-paper-author", "--as-of", 1, "--json").json
    assert len(why["instances"]) == 1
    gone = run("update", store, "--remove", tmp_path / "edges.csv", "--remove", tmp_path / "nodes.csv", "--compact")
    assert gone.out == "version 2: 90 nodes, 162 edges\n"
    assert run("check", store).out == f"{store} is sound: 90 nodes, 162 edges, version 2, kept from 0\n"
    assert digest(npth.load(store)) == digest(npth.load("toy"))


@pytest.mark.slow
def test_export_imports_back_the_same(run: Run, store: Path, tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text("relation,source,target,weight\nwrites,Mike,Jim-SIGMOD-1,2.5\n")
    run("update", store, "--add", tmp_path / "edges.csv")
    run("export", store, "--to", tmp_path / "tables")
    run("import", tmp_path / "tables", "--to", tmp_path / "again")
    assert digest(npth.load(tmp_path / "again")) == digest(npth.load(store)) != digest(npth.load("toy"))
    run("export", store, "--to", tmp_path / "before", "--as-of", 0)
    assert digest(npth.load(tmp_path / "before")) == digest(npth.load("toy"))


def test_tables_are_imported_in_parts(run: Run, tmp_path: Path) -> None:
    folder = write(tmp_path / "movies", movies__tsv=MOVIES, movie_actor__tsv=CAST)
    result = run("import", folder, "--to", tmp_path / "s", "--memory-limit", "200MiB")
    assert result.out == f"5 nodes and 3 edges written to {tmp_path / 's'}, version 0\n"
    assert digest(npth.load(tmp_path / "s")) == digest(npth.load(folder))


def test_check_fails_on_a_damaged_store(run: Run, store: Path, caplog: pytest.LogCaptureFixture) -> None:
    (store / "snapshot-0" / "manifest.json").write_text("{}")
    result = run("check", store)
    assert result.code == 1
    assert "snapshot-0 is damaged (manifest.json does not list the files of this store)" in result.out
    assert run("check", store, "--json").code == 1
    assert run("check", store, "--accept-loss").code == 1  # it lost no updates
    assert run("info", store).code == 0
    assert "it was rebuilt from the database" in caplog.text
    assert run("check", store).code == 0


def test_bad_calls(run: Run, store: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text("from,to\na,b\n")
    for arguments, message in (
        (("update", store), "nothing to change; give --add FILE, --remove FILE or --compact"),
        (("update", store, "--add", tmp_path / "bad.csv"), "has the columns from, to; a table of edges needs relation"),
        (("update", store, "--add", tmp_path / "none.csv"), "no such file"),
        (("update", tmp_path, "--compact"), "is not a store"),
        (("check", tmp_path), "is not a store"),
        (
            ("export", store, "--to", tmp_path / "x", "--as-of", 7),
            "version 7 is not kept; the store has versions 0",
        ),
        (
            ("search", store, "Mike", "--metapath", "APA", "--as-of", 7),
            "version 7 is not kept; the store has versions 0",
        ),
        (
            ("search", "toy", "Mike", "--metapath", "APA", "--as-of", 0),
            "toy is not a store, so it has no earlier versions",
        ),
        (("import", "toy", "--to", store), "exists already"),
        (
            ("import", "toy", "--to", tmp_path / "y", "--memory-limit", "1GiB"),
            "toy is not read in batches, so --memory-limit has no effect",
        ),
    ):
        result = run(*arguments)
        assert result.code == 2
        assert message in result.err
