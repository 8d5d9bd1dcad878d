"""Files of a snapshot are verified when they are first used: whatever way leads there, damage gives no other graph."""

import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from zlib import crc32

import numpy as np
import pyarrow as pa
import pytest

import neupath as npth
from neupath import HIN, PathSim
from neupath.errors import SourceError
from neupath.evidence.explanation import explain
from neupath.graph.hin import Edges, digest
from neupath.graph.metapath import Relation
from neupath.graph.nodes import Nodes
from neupath.graph.summary import summarise
from neupath.live import LiveGraph, LiveStore
from neupath.store import Store, check, open_store, snapshots, write_store
from tests.command_line import Run
from tests.store.stores import ADD, damage

FILES = ["edges-0-indptr.npy", "edges-0-indices.npy", "edges-0-data.npy", "nodes-0.arrow"]  # all that APA walks


def search(hin: HIN) -> object:
    return [(hit.id, hit.score) for hit in PathSim("APA").fit(hin).top_k("Mike")]


WHEN = ("after", "before")
USES: dict[str, Callable[[HIN], object]] = {
    "search": search,
    "explain": lambda hin: explain(hin, "APVPA", "Mike", "Jim").to_dict(),
    "describe": lambda hin: summarise(hin).to_dict(),
    "find": lambda hin: hin.find("mike"),
    "count": lambda hin: [hin.num_edges(relation) for relation in hin.schema.relations],
    "transpose": lambda hin: hin.matrix(hin.metapath("PAP").steps[0].links[0]).toarray().tolist(),
    "export to NetworkX": lambda hin: sorted(map(str, hin.to_networkx().edges(data=True))),
    "export to DGL": lambda hin: str(hin.to_dgl_dict()),
    "pickle": lambda hin: digest(pickle.loads(pickle.dumps(hin))),
    "change a relation": lambda hin: digest(hin.with_matrices({})),
    "follow": lambda hin: digest(LiveGraph(hin).view().hin),
    "compare": digest,
}


@pytest.mark.parametrize(
    ("use", "file", "when"),
    [(use, FILES[(2 * place + at) % 4], when) for place, use in enumerate(USES) for at, when in enumerate(WHEN)],
)
@pytest.mark.slow
def test_no_use_of_a_graph_sees_damage(store: Store, use: str, file: str, when: str) -> None:
    """A file that is damaged before the graph is opened, or after that and before it is used."""
    if when == "before":
        damage(store, file)
    hin = store.hin()
    if when == "after":
        damage(store, file)
    assert USES[use](hin) == USES[use](npth.load("toy"))
    assert digest(hin) == digest(npth.load("toy"))
    assert not check(store.folder).problems  # it was rebuilt


COMMANDS = {
    "info": ["--json"],
    "search": ["Mike", "-p", "APA", "--json"],
    "explain": ["Mike", "Jim", "-p", "APA", "--json"],
    "relate": ["Mike", "Jim", "--json"],
    "find": ["mike", "--json"],
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("file", ["edges-0-data.npy", "nodes-0.arrow"])
@pytest.mark.slow
def test_no_command_prints_damage(store: Store, run: Run, command: str, file: str) -> None:
    arguments = (command, store.folder, *COMMANDS[command])
    sound = run(*arguments)
    damage(store, file)
    damaged = run(*arguments)
    assert (damaged.code, damaged.json) == (0, sound.json)


@pytest.mark.parametrize("file", FILES)
@pytest.mark.slow
def test_no_file_is_written_of_damage(store: Store, run: Run, tmp_path: Path, file: str) -> None:
    for command, arguments, target in (
        ("join", ("-p", "APA", "--out"), "{}.csv"),
        ("export", ("--to",), "{}"),
        ("import", ("--to",), "{}.store"),
    ):
        written = [tmp_path / command / target.format(state) for state in ("sound", "damaged")]
        written[0].parent.mkdir()
        assert run(command, store.folder, *arguments, written[0]).code == 0
        damage(store, file)
        assert run(command, store.folder, *arguments, written[1]).code == 0
        if command == "join":
            assert written[1].read_text() == written[0].read_text()
        else:
            assert digest(npth.load(written[1])) == digest(npth.load(written[0]))


@pytest.mark.parametrize("name", ["edges-1-data.npy", "nodes-2.arrow"])
def test_what_is_not_used_is_not_verified(store: Store, name: str, caplog: pytest.LogCaptureFixture) -> None:
    damage(store, name)
    assert search(store.hin()) == search(npth.load("toy"))
    assert not caplog.records
    assert check(store.folder).problems


def test_a_file_is_verified_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    contents = []
    monkeypatch.setattr(snapshots, "crc32", lambda content: contents.append(bytes(content)) or crc32(content))
    hin = store.hin()
    assert not contents
    for _ in range(2):
        digest(hin)
    snapshot = [path.read_bytes() for path in (store.folder / "snapshot-0").glob("*-*")]
    assert sorted(contents) == sorted(snapshot)


@pytest.mark.parametrize("name", ["edges-1-data.npy", "nodes-2.arrow"])
@pytest.mark.slow
def test_an_update_and_a_live_graph_verify_all(store: Store, name: str, caplog: pytest.LogCaptureFixture) -> None:
    """They build on the snapshot, so they also verify the files of relations that they do not name."""
    damage(store, name)
    with store:
        store.update(ADD)
    assert "it was rebuilt from the database" in caplog.text
    assert not check(store.folder).problems
    damage(store, name)
    caplog.clear()
    with LiveStore(store.folder) as live:
        assert "it was rebuilt from the database" in caplog.text
        expected = digest(live.view().hin)
    assert digest(store.hin()) == expected


@pytest.mark.parametrize("file", FILES)
@pytest.mark.slow
def test_versions_after_and_before_a_damaged_snapshot_are_right(store: Store, file: str) -> None:
    """The store has its snapshot, changes since in the database, and a writer."""
    with store:
        store.update(ADD)
        expected = [digest(store.hin(version)) for version in (0, 1)]
        graphs = [store.hin(version) for version in (0, 1)]
        damage(store, file)
        assert list(map(digest, graphs)) == expected  # read again with the connection of the writer
    damage(store, file)
    assert [digest(store.hin(version)) for version in (0, 1)] == expected


def test_single_edges_are_verified_when_they_are_used(tmp_path: Path) -> None:
    rates = Relation("user", "rates", "film")
    nodes = [Nodes("user", pa.array(["u"])), Nodes("film", pa.array(["f", "g"]))]
    edges = Edges(rates, np.array([0, 0, 0]), np.array([0, 0, 1]), None, pa.table({"stars": [1, 4, 5]}))
    store = open_store(write_store(HIN.build(nodes, [edges]), tmp_path / "films.store"))
    hin = store.hin()
    damage(store, "edge-rows-0.arrow")
    assert hin.edge_tables[rates].attributes["stars"].to_pylist() == [1, 4, 5]
    assert not check(store.folder).problems


def test_a_graph_outlives_the_snapshot_that_it_was_opened_from(store: Store) -> None:
    hin = store.hin()
    with store:
        store.update(ADD)
        store.compact(retained=0)
    assert not (store.folder / "snapshot-0").exists()
    assert digest(hin) == digest(npth.load("toy"))


def test_a_damaged_version_that_is_not_kept_any_more_is_refused(store: Store) -> None:
    hin = store.hin()
    damage(store, "edges-0-data.npy")
    with store:
        store.update(ADD)
        damaged = store.hin(0)
        store.compact(retained=0)
    assert digest(damaged) == digest(npth.load("toy"))  # the update rebuilt the snapshot first
    for _ in range(2):  # it is not forgotten
        with pytest.raises(SourceError, match="cannot be rebuilt: version 0 is not kept"):
            search(hin)


def test_a_store_that_was_replaced_is_not_read_instead(store: Store, tmp_path: Path) -> None:
    hin = store.hin()
    other = write_store(npth.load("toy").with_matrices({}), tmp_path / "other.store")
    with open_store(other) as replacement:
        replacement.update(ADD)
        replacement.compact(retained=0)
    damage(store, "edges-0-data.npy")
    store.folder.rename(tmp_path / "moved.store")
    with pytest.raises(SourceError, match="cannot be rebuilt"):
        search(hin)
    other.rename(store.folder)
    with pytest.raises(SourceError, match="cannot be rebuilt"):
        search(hin)


def test_threads_that_find_the_same_damage_get_the_same_graph(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    hin = store.hin()
    for file in FILES:
        damage(store, file)
    with ThreadPoolExecutor(8) as pool:
        assert {str(hits) for hits in pool.map(search, [hin] * 16)} == {str(search(npth.load("toy")))}
    assert len(caplog.records) == 1
