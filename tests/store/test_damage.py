"""What was damaged is rebuilt from what is sound, or refused in a sentence; nothing acknowledged is lost in silence."""

import json
import os
import re
import shutil
import subprocess
import sys
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from zlib import crc32

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pytest

import neupath as npth
from neupath.errors import NeuPathError, SourceError
from neupath.graph.hin import digest
from neupath.store import Edge, Store, Update, check, database, open_store, read_update, write_store
from neupath.store.database import connect, run
from tests.graphs import graph_of
from tests.store.stores import ADD, change_database, flip_last_byte, weight


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
    (problem,) = check(store.folder).problems
    assert "the next reading or update rebuilds it" in problem
    assert file in problem or file == "manifest.json"
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
    schema = npth.load("toy").schema
    first = {str(relation): [(0, 0)] for relation in schema.relations}
    other = write_store(graph_of(dict.fromkeys(schema.node_types, 1), first), tmp_path / "other.store")
    shutil.rmtree(store.folder / "snapshot-0")
    shutil.copytree(other / "snapshot-0", store.folder / "snapshot-0")
    assert "is of another graph" in check(store.folder).problems[0]
    assert digest(store.hin()) == digest(npth.load("toy"))


def test_a_snapshot_and_a_database_that_are_both_damaged_are_refused(store: Store) -> None:
    change_database(store.folder, "UPDATE edges_0 SET weight = 7 WHERE source = 0")
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
    change_database(store.folder, f"DELETE FROM {table}")
    for use in (check, npth.load, lambda path: open_store(path).update(ADD)):
        with pytest.raises(SourceError, match=f"lost its {lost}; restore the store from a copy"):
            use(store.folder)


def test_a_store_without_nodes_or_edges_is_sound(tmp_path: Path) -> None:
    empty = graph_of({"a": 0, "b": 0}, {"a -r-> b": []})
    assert not check(write_store(empty, tmp_path / "empty.store")).problems


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


# ---- A store that somebody else made ---------------------------------------------------------------
HOSTILE = {
    "a view that reads a file": """
        ALTER TABLE nodes_0 RENAME TO own;
        CREATE VIEW nodes_0 AS SELECT key, born, died, id, (SELECT content FROM read_text('{file}')) AS name FROM own
    """,
    "a view of plain columns": """
        ALTER TABLE edges_0 RENAME TO own; CREATE VIEW edges_0 AS SELECT * FROM own
    """,
    "a view in another schema": "CREATE SCHEMA other; CREATE VIEW other.nodes_0 AS SELECT 1 AS key",
    "a macro in place of a function": "CREATE MACRO md5_number_lower(x) AS 0",
    "a macro in place of a catalog": """
        CREATE MACRO duckdb_views() AS TABLE SELECT 'x' AS view_name, true AS internal WHERE false;
        CREATE MACRO duckdb_functions() AS TABLE SELECT 'x' AS function_name, true AS internal WHERE false
    """,
    "a generated column": """
        ALTER TABLE edges_0 RENAME TO own; CREATE TABLE edges_0 (source BIGINT, target BIGINT, weight DOUBLE
        GENERATED ALWAYS AS (source + 1)); INSERT INTO edges_0 SELECT source, target FROM own; DROP TABLE own
    """,
    "a default": "ALTER TABLE changes ALTER COLUMN \"after\" SET DEFAULT random()",
    "a table that no store has": "CREATE TABLE extra (a BIGINT)",
    "a column that no store has": "ALTER TABLE edges_0 ADD COLUMN extra BIGINT",
    "a column of another type": "ALTER TABLE nodes_0 ALTER COLUMN born TYPE VARCHAR",
    "a sequence": "CREATE SEQUENCE numbers",
    "a type": "CREATE TYPE colour AS ENUM ('red')",
    "an index": "CREATE INDEX by_source ON edges_0 (source)",
    "no table of nodes": "DROP TABLE nodes_1",
    "no schema": "DROP TABLE facts",
    "a schema that is no JSON": "UPDATE facts SET content = '{{'",
}  # fmt: skip
"""What somebody may do to the database of a store before giving it away."""


@pytest.mark.parametrize("with_snapshot", [True, False])
@pytest.mark.parametrize("trick", HOSTILE)
def test_a_database_with_more_than_plain_tables_is_refused(
    store: Store, tmp_path: Path, trick: str, with_snapshot: bool
) -> None:
    (tmp_path / "secret.txt").write_text("the secret")
    change_database(store.folder, HOSTILE[trick].format(file=tmp_path / "secret.txt"))
    if not with_snapshot:
        shutil.rmtree(store.folder / "snapshot-0")
    with pytest.raises(NeuPathError, match=r"restore the store from a copy"):
        digest(npth.load(store.folder))
    with pytest.raises(NeuPathError):
        store.update(ADD)


def test_a_store_reads_and_writes_no_other_file(store: Store, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("the secret")
    for write in (False, True):
        connection = connect(store.folder, write=write)
        for statement in (
            "SET enable_external_access = true", f"SELECT * FROM read_text('{tmp_path}/secret.txt')",
            f"ATTACH '{tmp_path}/other.duckdb'", f"COPY facts TO '{tmp_path}/facts.csv'",
        ):  # fmt: skip
            with pytest.raises(duckdb.Error):
                run(connection, statement)
        connection.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["secret.txt", "toy.store"]


def test_a_rebuilt_version_must_have_the_sums_written_with_it(store: Store) -> None:
    change_database(store.folder, "UPDATE nodes_0 SET name = 'another'")
    shutil.rmtree(store.folder / "snapshot-0")
    with pytest.raises(SourceError, match="the checksum of the nodes differs"):
        npth.load(store.folder)
    with pytest.raises(SourceError, match="the checksum of the nodes differs"):
        store.compact()


def test_edges_beyond_all_nodes_are_refused(store: Store) -> None:
    change_database(store.folder, "UPDATE edges_0 SET target = 1000000 WHERE source = 0")
    shutil.rmtree(store.folder / "snapshot-0")
    with pytest.raises(SourceError, match="the database of the store is damaged: .*; restore the store from a copy"):
        npth.load(store.folder)


def replace_in_snapshot(store: Store, name: str, content: bytes) -> None:
    """Put another file into the snapshot, with its checksum; it is not used."""
    (store.folder / "snapshot-0" / name).write_bytes(content)
    manifest = store.folder / "snapshot-0" / "manifest.json"
    described = json.loads(manifest.read_text())
    described["files"][name] = f"{crc32(content):08x}"
    manifest.write_text(json.dumps(described))
    assert digest(store.hin()) == digest(npth.load("toy"))  # the snapshot is rebuilt


@pytest.mark.parametrize(
    ("part", "values"),
    [
        ("indices", [1_000_000]), ("indices", [-1]), ("indices", [0.0]),
        ("indptr", [-5]), ("indptr", [1_000_000]), ("data", [1]),
    ],
)  # fmt: skip
def test_arrays_that_point_outside_of_the_graph_are_not_used(store: Store, part: str, values: list[float]) -> None:
    array = np.load(store.folder / "snapshot-0" / f"edges-0-{part}.npy")
    changed = array.astype(type(values[0])) if isinstance(values[0], float) or part == "data" else array.copy()
    changed[1] = values[0]
    file = BytesIO()
    np.save(file, changed)
    replace_in_snapshot(store, f"edges-0-{part}.npy", file.getvalue())


def test_nodes_whose_texts_point_outside_of_their_file_or_that_lack_columns_are_not_used(store: Store) -> None:
    path = store.folder / "snapshot-0" / "nodes-0.arrow"
    table = pa.ipc.open_file(path).read_all()
    ids = table["id"].combine_chunks()
    offsets = np.frombuffer(ids.buffers()[1], np.int32).copy()
    offsets[2] = 1 << 30
    wild = pa.Array.from_buffers(pa.string(), len(ids), [None, pa.py_buffer(offsets), ids.buffers()[2]])
    without_others = pa.table({"id": ["x"]})
    for nodes in (table.set_column(table.column_names.index("id"), "id", wild), without_others):
        out = pa.BufferOutputStream()
        with pa.ipc.new_file(out, nodes.schema) as writer:
            writer.write_table(nodes)
        replace_in_snapshot(store, "nodes-0.arrow", out.getvalue().to_pybytes())


@pytest.mark.parametrize(
    "link",
    ["acknowledged", "cache", "graph.duckdb.wal.damaged", ".repair.lock", "snapshot-0/nodes-0.arrow", "store.json"],
)
def test_a_store_with_a_link_out_of_its_folder_is_refused(store: Store, tmp_path: Path, link: str) -> None:
    other = tmp_path / "other"
    if link == "cache":
        (other / "kept").mkdir(parents=True)
    else:
        other.write_text("do not touch")
    (store.folder / link).unlink(missing_ok=True)
    (store.folder / link).symlink_to(other)
    for use in (npth.load, open_store, check):
        with pytest.raises(SourceError, match="is a symbolic link, and a store is read and written in its own folder"):
            use(store.folder)
    with pytest.raises(SourceError, match="is a symbolic link"):
        check(store.folder, accept_loss=True)
    assert (other / "kept").is_dir() if link == "cache" else other.read_text() == "do not touch"


def test_a_store_may_be_given_by_a_link(store: Store, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(store.folder)
    assert digest(npth.load(tmp_path / "link")) == digest(npth.load("toy"))


def test_a_store_that_memory_does_not_suffice_for_is_not_called_damaged(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise duckdb.OutOfMemoryException("Out of Memory Error: failed to allocate block of 32768 bytes")

    monkeypatch.setattr(database, "open_duckdb", fail)
    with pytest.raises(SourceError, match=r"allocate block of 32768 bytes; free some memory, or raise the limit"):
        connect(store.folder)


@pytest.mark.slow
def test_who_writes_to_a_store_is_said_with_what_helps(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """To try again does not help while a service holds the store."""
    monkeypatch.setattr(database, "PATIENCE", 0.0)
    hold = "import sys, duckdb; held = duckdb.connect(sys.argv[1]); print('held', flush=True); input()"
    command = [sys.executable, "-c", hold, str(store.folder / database.DATABASE)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline()
        try:
            with pytest.raises(
                SourceError, match="such as neupath serve --writable; ask that service, or try again when"
            ):
                connect(store.folder)
        finally:
            holder.kill()
