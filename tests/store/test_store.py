"""A store is written whole, read back the same, changed all or nothing, and says what is wrong with it."""

import os
import resource
import sys
from dataclasses import replace
from pathlib import Path
from subprocess import run as run_process
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

import neupath as npth
from neupath import HIN
from neupath.errors import GraphError, MissingExtraError, SourceError, WriteError
from neupath.graph.hin import Edges, digest
from neupath.graph.metapath import Relation
from neupath.graph.nodes import Nodes
from neupath.store import Edge, Node, Store, Update, check, open_store, read_update, snapshots, write_store
from neupath.store import store as store_module
from neupath.store.database import duckdb
from tests.graphs import graph_of, hins
from tests.store.stores import EDGE, NEW, change_database, weight


@settings(max_examples=15, deadline=None)
@given(hins())
@pytest.mark.slow
def test_a_graph_survives_the_round_trip(tmp_path_factory: pytest.TempPathFactory, hin: HIN) -> None:
    path = write_store(hin, tmp_path_factory.mktemp("parent") / "s")
    back = npth.load(path)
    assert digest(back) == digest(hin)
    assert back.schema == hin.schema
    assert not check(path).problems


def test_names_attributes_and_integer_ids_survive_the_round_trip(tmp_path: Path) -> None:
    attributes = pa.table({"year": pa.array([1999, None], pa.int16()), "of": pa.array([["x"], None])})
    movies = Nodes("movie", pa.array([7, 3]), pa.array(["Se7en", None]), attributes)
    hin = HIN.build([movies], [Edges(Relation("movie", "near", "movie", False), np.array([0]), np.array([1]))])
    back = npth.load(write_store(hin, tmp_path / "s")).nodes["movie"]
    assert (back.ids, back.names, back.attributes) == (movies.ids, movies.names, movies.attributes)


def test_updates_add_to_weights_or_replace_them(store: Store) -> None:
    mike, jim = EDGE, Edge("writes", "Jim", EDGE.target)
    store.update(Update(add_edges=[Edge("author -writes-> paper", "Mike", EDGE.target, 2.0), jim]))
    assert (weight(store.hin(), mike), weight(store.hin(), jim)) == (3.0, 1.0)
    store.update(Update(add_edges=[replace(mike, weight=0.5)], remove_edges=[mike]))
    assert weight(store.hin(), mike) == 0.5
    change = store.update(Update(remove_edges=[mike]))
    assert weight(store.hin(), mike) == 0.0
    assert (change.version, store.version) == (3, 3)
    assert [weight(store.hin(as_of), mike) for as_of in range(4)] == [1.0, 3.0, 0.5, 0.0]
    assert not store.check().problems


def test_nodes_are_added_and_removed(store: Store) -> None:
    fresh = Update(add_nodes=[Node("author", "Zoe")], add_edges=[Edge("writes", "Zoe", "Jim-SIGMOD-1")])
    store.update(fresh)
    store.update(Update(remove_nodes=[Node("author", "Zoe")], remove_edges=[Edge("writes", "Zoe", "Jim-SIGMOD-1")]))
    store.update(fresh)
    assert [store.hin(v).num_nodes("author") for v in range(4)] == [5, 6, 5, 6]
    assert digest(store.hin(1)) == digest(store.hin(3))
    assert digest(store.hin(0)) == digest(store.hin(2)) == digest(npth.load("toy"))
    store.compact(retained=1)
    assert digest(store.hin(2)) == digest(npth.load("toy"))
    with pytest.raises(SourceError, match="version 1 is not kept; the store has versions 2 to 3"):
        store.hin(1)
    assert not store.check().problems


def test_an_update_is_refused_whole_with_every_bad_line(store: Store, tmp_path: Path) -> None:
    edges = tmp_path / "edges.csv"
    edges.write_text(
        "relation,source,target,weight\nwrites,Mike,Jim-SIGMOD-1,1\nwrite,Mike,Jim-SIGMOD-1,1\nwrites,Nobody,Jim-SIGMOD-1,1\n"
        "writes,Mike,Jim-SIGMOD-1,-2\nwrites,Mike,Jim-SIGMOD-1,much\n"
    )
    nodes = tmp_path / "nodes.csv"
    nodes.write_text("type,id\nauthor,Mike\ncity,Rome\n")
    gone = tmp_path / "gone.csv"
    gone.write_text("type,id\nvenue,KDD\nvenue,Nowhere\n")
    lost = tmp_path / "lost.csv"
    lost.write_text("relation,source,target\nwrites,Mike,Jim-SIGMOD-1\n")
    with pytest.raises(GraphError) as caught:
        store.update(read_update([edges, nodes], [gone, lost]))
    text = str(caught.value)
    for message in (
        f"{edges}, line 3: no relation 'write' in this graph",
        f"{edges}, line 4: no author with the id 'Nobody'",
        f"{edges}, line 5: weight -2.0 is not allowed",
        f"{edges}, line 6: weight 'much' is not allowed",
        f"{nodes}, line 2: author 'Mike' is there already",
        f"{nodes}, line 3: no node type 'city' in this graph (it has author, paper, venue)",
        f"{gone}, line 2: venue 'KDD' cannot be removed: it still has edges of 'paper -appears_at-> venue'",
        f"{gone}, line 3: no venue with the id 'Nowhere' to remove",
        f"{lost}, line 2: 'author -writes-> paper' from 'Mike' to 'Jim-SIGMOD-1': there is no such edge to remove",
    ):
        assert message in text
    assert digest(store.hin()) == digest(npth.load("toy"))
    assert store.version == 0


def test_an_error_lists_at_most_twenty_bad_lines(store: Store) -> None:
    with pytest.raises(GraphError, match="and 80 more bad lines"):
        store.update(Update(add_edges=[Edge("writes", f"nobody {i}", "Jim-SIGMOD-1") for i in range(100)]))


def test_a_store_opens_without_its_snapshot(store: Store) -> None:
    store.update(Update(add_edges=[NEW]))
    before = digest(store.hin())
    (snapshot,) = store.folder.glob("snapshot-*")
    for file in snapshot.iterdir():
        file.unlink()
    snapshot.rmdir()
    assert digest(store.hin()) == before
    store.compact()
    assert digest(store.hin()) == before
    assert [path.name for path in store.folder.glob("snapshot-*")] == ["snapshot-1"]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ("DELETE FROM edges_0 WHERE source = 0", "where 162 were counted"),
        ("UPDATE edges_0 SET weight = 7 WHERE source = 0", "checksum of the edges"),
        ("UPDATE nodes_0 SET id = 'Max' WHERE key = 0", "checksum of the nodes"),
        ("UPDATE nodes_0 SET died = 0 WHERE key = 0", "ends of edges of 'author -writes-> paper'"),
        ("INSERT INTO changes VALUES (9, 0, 0, 0, 0, 1)", "1 changes belong to no version"),
        ("UPDATE versions SET version = 5", "versions 0 to 5 should be there, and 1 are"),
    ],
)
@pytest.mark.slow
def test_check_finds_damage(store: Store, damage: str, message: str) -> None:
    change_database(store.folder, damage)
    assert message in " ".join(check(store.folder).problems)


def test_errors_say_what_to_do(tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SourceError, match="is not a store; make one with 'neupath import'"):
        open_store(tmp_path)
    with pytest.raises(WriteError, match="exists already"):
        write_store(npth.load("toy"), store.folder)
    with pytest.raises(SourceError, match="is a store, and config and duplicates took effect when it was imported"):
        npth.load(store.folder, duplicates="drop")
    (store.folder / "store.json").write_text('{"format": 99}')
    with pytest.raises(SourceError, match="has format 99, and this neupath reads formats 1 and 2"):
        open_store(store.folder)
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[store\]'"):
        write_store(npth.load("toy"), tmp_path / "other")


def test_a_read_only_store_is_read_and_not_written(store: Store) -> None:
    store.close()
    files = [store.folder, *store.folder.rglob("*")]
    for path in files:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        if os.access(store.folder, os.W_OK):
            pytest.skip("root may write everywhere; run the tests as another user")
        assert digest(store.hin()) == digest(npth.load("toy"))
        with pytest.raises(WriteError, match="no permission"):
            store.update(Update(add_edges=[NEW]))
    finally:
        for path in files:
            path.chmod(0o755 if path.is_dir() else 0o644)


FULL_DISK = """
import resource, signal, sys
from neupath.store import Update, Edge, open_store
store = open_store(sys.argv[1])
store.version
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
for _ in range(1000):
    store.update(Update(add_edges=[Edge("writes", "Mike", "Jim-SIGMOD-1")]))
    print("ok", flush=True)
"""


@pytest.mark.slow
def test_a_full_disk_is_an_error_and_loses_nothing(store: Store) -> None:
    size = (store.folder / "graph.duckdb").stat().st_size
    command = [sys.executable, "-c", FULL_DISK, str(store.folder), str(min(size, 20_000))]
    done = run_process(command, capture_output=True, text=True, check=False)
    assert "WriteError: cannot write to the store" in done.stderr
    found = check(store.folder)
    assert not found.problems
    assert found.version >= done.stdout.count("ok")
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY


@pytest.mark.parametrize("fails", ["write_snapshot", "rebuild"])
@pytest.mark.slow
def test_compacted_changes_are_not_lost_without_a_snapshot(
    store: Store, fails: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    papers = store.hin().nodes["paper"].ids.to_pylist()[-6:]
    for paper in papers:
        store.update(Update(add_edges=[Edge("writes", "Mike", paper)]))
    before = digest(store.hin())
    called = getattr(store_module, fails)

    def fail(*given: Any) -> Any:
        if fails == "rebuild" and given[-1] < 6:
            return called(*given)
        raise duckdb().IOException("no space left") if fails == "rebuild" else OSError(28, "no space left")

    with monkeypatch.context() as patched:
        patched.setattr(store_module, fails, fail)
        with pytest.raises(WriteError, match="no space left"):
            store.compact(retained=2)
    assert digest(store.hin()) == before
    store.update(Update(add_edges=[Edge("writes", "Mike", papers[0])]))
    assert weight(store.hin(), Edge("writes", "Mike", papers[0])) == 2
    assert not store.check().problems
    store.compact()
    assert not store.check().problems


def test_a_kill_while_removing_a_snapshot_leaves_no_part_of_it(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.update(Update(add_edges=[NEW]))
    for _ in range(2):  # of an older version, and of the same
        with monkeypatch.context() as patched:
            patched.setattr(snapshots.shutil, "rmtree", _remove_one_file)
            store.compact()
        assert not store.check().problems
        assert weight(store.hin(0), NEW) == 0
    store.compact()
    assert [path.name for path in store.folder.glob("*snapshot-*")] == ["snapshot-1"]


def _remove_one_file(path: Path, *, ignore_errors: bool = False) -> None:  # noqa: ARG001
    for file in sorted(path.glob("*"))[:1]:
        file.unlink()


def test_nodes_of_an_undirected_relation_are_removed_with_their_edges(tmp_path: Path) -> None:
    people = graph_of({"person": ["a", "b", "c"]}, {"person -knows- person": [(0, 1), (1, 2)]})
    with open_store(write_store(people, tmp_path / "people.store")) as store:
        with pytest.raises(GraphError, match="person 'b' cannot be removed: it still has edges of"):
            store.update(Update(remove_edges=[Edge("knows", "b", "a")], remove_nodes=[Node("person", "b")]))
        store.update(Update(remove_edges=[Edge("knows", "b", "a")], remove_nodes=[Node("person", "a")]))
        store.update(Update(remove_edges=[Edge("knows", "b", "c")]))
        store.update(Update(remove_nodes=[Node("person", "c")]))
        assert store.hin().nodes["person"].ids.to_pylist() == ["b"]
        assert not store.check().problems


def test_a_version_too_large_for_the_database_is_an_error(store: Store) -> None:
    for held in (False, True):
        if held:
            store.hold()
        with pytest.raises(SourceError, match="is not kept; the store has versions 0 to 0"):
            store.hin(10**40)
    store.close()


def test_a_damaged_database_is_not_taken_for_a_locked_one(store: Store) -> None:
    file = store.folder / "graph.duckdb"
    content = file.read_bytes()
    file.write_bytes(content[:4096] + b"\xff" * 8192 + content[3 * 4096 :])
    with pytest.raises(SourceError, match="cannot open the store"):
        store.hin()


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("relation,source,target,source\nwrites,Mike,p1,2\n", "source appears twice"),
        ("type,id,name,name\nauthor,Zoe,,\n", "name appears twice"),
        (
            'relation,source,target\nwrites,Mike,p1\nwrites,"Jim,p1\nwrites,Ann,p1\n',
            "edges.csv, line 3: unexpected end of data; check the quotes there",
        ),
    ],
)
def test_tables_of_updates_that_are_refused(tmp_path: Path, table: str, message: str) -> None:
    (tmp_path / "edges.csv").write_text(table)
    with pytest.raises(SourceError, match=message):
        read_update([tmp_path / "edges.csv"])


_FULL_LOG = """
import logging, resource, signal, sys
from neupath.store import Update, Edge, Node, check, database, open_store
logging.basicConfig()
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
database.LOG_BYTES = 1 << 12
store = open_store(sys.argv[1])
store.hold()
((most,),) = database.run(store._writer, "SELECT current_setting('wal_autocheckpoint')")
assert "GiB" in most, most  # it never empties the log within a commit
size = (store.folder / database.DATABASE).stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
for number in range(8):
    new = [Node("author", f"{number} {i} {'x' * 500}") for i in range(200)]
    assert store.update(Update(add_nodes=new)).version == number + 1
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
assert store.hin().num_nodes("author") == 5 + 8 * 200
assert not store.check().problems
"""


def test_updates_are_read_from_tsv(tmp_path: Path) -> None:
    tabs = tmp_path / "edges.tsv"
    tabs.write_text("relation\tsource\ttarget\nwrites\tMike\tp, 1\n")
    assert read_update([tabs]).add_edges[0].target == "p, 1"


@pytest.mark.slow
def test_a_failed_checkpoint_does_not_fail_the_update(store: Store) -> None:
    done = run_process(
        [sys.executable, "-c", _FULL_LOG, str(store.folder)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "its maintenance failed" in done.stderr
