"""What was damaged is rebuilt from what is sound, or refused in a sentence; nothing acknowledged is lost in silence."""

import json
import os
import re
import shutil
from hashlib import sha256
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import neupath as npth
from neupath import HIN, Edges, Nodes, Relation
from neupath.errors import SourceError
from neupath.graph.hin import digest
from neupath.store import Edge, Store, Update, check, database, open_store, read_update, write_store
from neupath.store.database import connect, run

ADD = Update(add_edges=[Edge("writes", "Mike", "Mike-SIGMOD-1")])


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(write_store(npth.load("toy"), tmp_path / "toy.store"))


def flip_last_byte(file: Path) -> None:
    content = file.read_bytes()
    file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))


def weight(hin: HIN) -> float:
    (writes, _) = hin.schema.relations
    return float(hin.matrices[writes][hin.row("author", "Mike"), hin.row("paper", "Mike-SIGMOD-1")])


def copy_while_open(store: Store, target: Path) -> Path:
    """Return the store as a kill would leave it: with the last updates in the database's log alone."""
    shutil.copytree(store.folder, target)
    store.close()
    return target


# ---- Snapshots -----------------------------------------------------------------------------------
@pytest.mark.parametrize("file", ["edges-0-indptr.npy", "edges-0-data.npy", "nodes-0.arrow", "manifest.json"])
@pytest.mark.slow
def test_a_damaged_snapshot_is_rebuilt(store: Store, file: str, caplog: pytest.LogCaptureFixture) -> None:
    flip_last_byte(store.folder / "snapshot-0" / file)
    assert "the next reading or update rebuilds it" in check(store.folder).problems[0]
    assert digest(npth.load(store.folder)) == digest(npth.load("toy"))
    (record,) = caplog.records
    assert "snapshot-0 is damaged" in record.message
    assert record.message.endswith("it was rebuilt from the database")
    assert not check(store.folder).problems


def test_an_update_does_not_build_on_a_damaged_snapshot(store: Store) -> None:
    data = store.folder / "snapshot-0" / "edges-0-data.npy"
    np.save(data, np.full_like(np.load(data), 7.0))
    store.update(ADD)
    assert weight(store.hin()) == 2.0
    assert not store.check().problems


def test_a_snapshot_that_cannot_be_written_again_is_done_without(
    store: Store, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    flip_last_byte(store.folder / "snapshot-0" / "edges-0-data.npy")

    def refuse(*_: object) -> None:
        raise PermissionError(13, "no permission")

    monkeypatch.setattr("neupath.store.snapshots.write_snapshot", refuse)
    assert digest(store.hin()) == digest(npth.load("toy"))
    assert "the database was read instead" in caplog.text


def test_a_snapshot_of_another_graph_is_not_used(store: Store, tmp_path: Path) -> None:
    names = [nodes.node_type for nodes in npth.load("toy").nodes.values()]
    other = write_store(_same_schema(names), tmp_path / "other.store")
    shutil.rmtree(store.folder / "snapshot-0")
    shutil.copytree(other / "snapshot-0", store.folder / "snapshot-0")
    assert "is of another graph" in check(store.folder).problems[0]
    assert digest(store.hin()) == digest(npth.load("toy"))


def _same_schema(names: list[str]) -> HIN:
    nodes = [Nodes(name, pa.array(["x"])) for name in names]
    relations = npth.load("toy").schema.relations
    return HIN.build(nodes, [Edges(relation, np.array([0]), np.array([0])) for relation in relations])


def test_a_snapshot_and_a_database_that_are_both_damaged_are_refused(store: Store) -> None:
    connection = connect(store.folder, write=True)
    run(connection, "UPDATE edges_0 SET weight = 7 WHERE source = 0")
    connection.close()
    flip_last_byte(store.folder / "snapshot-0" / "edges-0-data.npy")
    with pytest.raises(SourceError, match="and so is the database: the checksum of the edges differs"):
        weight(store.hin())
    with pytest.raises(SourceError, match="restore the store from a copy"):
        store.update(ADD)


def test_a_store_from_before_opens_and_is_protected_from_its_first_update_on(store: Store) -> None:
    snapshot = store.folder / "snapshot-0"
    files = {path.name: sha256(path.read_bytes()).hexdigest() for path in snapshot.glob("*-*")}
    (snapshot / "manifest.json").write_text(json.dumps({"shapes": [], "nodes": 3, "files": files}))
    assert not check(store.folder).problems
    assert not (store.folder / "acknowledged").exists()
    with store:
        store.update(ADD)
    assert (store.folder / "acknowledged").read_text().startswith("1 ")
    flip_last_byte(snapshot / "edges-0-data.npy")
    assert weight(store.hin()) == 2.0


# ---- The database and its log --------------------------------------------------------------------
def test_updates_lost_with_the_log_are_noticed(store: Store, tmp_path: Path) -> None:
    for _ in range(3):
        store.update(ADD)
    folder = copy_while_open(store, tmp_path / "copy.store")
    assert open_store(folder).version == 3
    log = folder / "graph.duckdb.wal"
    os.truncate(log, log.stat().st_size // 2)
    lost = "lost updates: version 3 was acknowledged, and its database ends at version [012];"
    for use in (check, npth.load, lambda path: open_store(path).update(ADD)):
        with pytest.raises(SourceError, match=lost):
            use(folder)
    version = check(folder, accept_loss=True).version
    assert version < 3
    with open_store(folder) as left:
        left.update(ADD)
    assert check(folder).version == version + 1


@pytest.mark.slow
def test_a_log_that_cannot_be_read_is_refused_until_its_loss_is_accepted(
    store: Store, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        store.update(ADD)
    folder = copy_while_open(store, tmp_path / "copy.store")
    log = folder / "graph.duckdb.wal"
    flip_last_byte(log)
    content = log.read_bytes()
    with pytest.raises(SourceError, match="cannot open the store .*--accept-loss"):
        npth.load(folder)
    assert check(folder, accept_loss=True).version == 2  # what comes before the damage is still there
    assert caplog.messages == [f"versions 3 to 3 of the store {folder} were acknowledged and are lost"]
    assert weight(npth.load(folder)) == 3.0
    assert (folder / "graph.duckdb.wal.damaged").read_bytes() == content


def test_a_log_is_left_out_as_a_whole_where_nothing_says_how_far_it_is_sound(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.update(ADD)
    store.update(ADD)
    folder = copy_while_open(store, tmp_path / "copy.store")
    flip_last_byte(folder / "graph.duckdb.wal")
    monkeypatch.setattr(database, "_DAMAGED_ENTRY", re.compile("in other words, at (.*)"))
    assert check(folder, accept_loss=True).version == 0
    assert digest(npth.load(folder)) == digest(npth.load("toy"))


def test_a_marker_that_cannot_be_read_is_refused(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(SourceError, match="file is not a store; make one"):
        check(file)
    (store.folder / "store.json").write_text("[" * 100_000)
    with pytest.raises(SourceError, match="the store is damaged"):
        check(store.folder)


def test_a_kill_between_commit_and_acknowledgement_is_no_loss(store: Store) -> None:
    with store:
        store.update(ADD)
        acknowledged = (store.folder / "acknowledged").read_bytes()
        store.update(ADD)
    (store.folder / "acknowledged").write_bytes(acknowledged)
    assert open_store(store.folder).version == 2


def test_a_database_of_another_store_is_refused(store: Store, tmp_path: Path) -> None:
    other = open_store(write_store(npth.load("toy"), tmp_path / "other.store"))
    for each, paper in ((store, "Mike-SIGMOD-1"), (other, "Jim-SIGMOD-1")):
        with each:
            each.update(Update(add_edges=[Edge("writes", "Mike", paper)]))
    shutil.copy(other.folder / "graph.duckdb", store.folder / "graph.duckdb")
    with pytest.raises(SourceError, match="is not the one that was acknowledged"):
        npth.load(store.folder)


def test_a_damaged_acknowledgement_is_told_and_written_again(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    with store:
        store.update(ADD)
    (store.folder / "acknowledged").write_bytes(b"\xff\x00")
    assert store.version == 1
    assert "cannot tell whether updates are lost" in caplog.text
    caplog.clear()
    with store:
        store.update(ADD)
    assert open_store(store.folder).version == 2
    assert len(caplog.records) == 1  # when it was opened for the update


@pytest.mark.parametrize(("table", "lost"), [("facts", "schema"), ("versions", "versions")])
def test_a_database_with_an_empty_table_is_refused(store: Store, table: str, lost: str) -> None:
    connection = connect(store.folder, write=True)
    run(connection, f"DELETE FROM {table}")
    connection.close()
    for use in (check, npth.load, lambda path: open_store(path).update(ADD)):
        with pytest.raises(SourceError, match=f"lost its {lost}; restore the store from a copy"):
            use(store.folder)


def test_a_store_without_nodes_or_edges_is_sound(tmp_path: Path) -> None:
    empty = [Nodes(name, pa.array([], pa.string())) for name in ("a", "b")]
    edges = [Edges(Relation("a", "r", "b"), np.array([], dtype=np.int64), np.array([], dtype=np.int64))]
    assert not check(write_store(HIN.build(empty, edges), tmp_path / "empty.store")).problems


# ---- Tables of an update -------------------------------------------------------------------------
def test_tables_that_do_not_end_are_refused(tmp_path: Path) -> None:
    pipe, line, columns = tmp_path / "pipe", tmp_path / "line.csv", tmp_path / "columns.csv"
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/zero")):
        with pytest.raises(SourceError, match="is not a file; write the table to one"):
            read_update([path])
    line.write_text("relation,source,target\n" + "x" * (1 << 25))
    with pytest.raises(SourceError, match="line 2: the line is longer than 16,777,216 characters"):
        read_update([line])
    columns.write_text("type,id," + ",".join(map(str, range(100_000))))
    assert not len(read_update([columns]))
