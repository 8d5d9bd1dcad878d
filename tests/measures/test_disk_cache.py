"""What measures over the whole graph prepare is kept beside a store, and prepared again only where it must be."""

import sys
from pathlib import Path

import numpy as np
import pytest

import neupath as npth
from neupath import HIN
from neupath._runtime.disk_cache import Arrays
from neupath.engine.cache import FileForm, cached, is_cached
from neupath.measures import PPR, CommuteTime, GraphMeasure, SimRank, commutetime, restart_walk, simrank
from neupath.store import Edge, Store, Update, open_store, write_store
from tests.processes import run_process

MEASURES = [
    PPR("author"), SimRank("author"), CommuteTime("author"), pytest.param(CommuteTime("author"), id="sketch"),
]  # fmt: skip


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(write_store(npth.load("toy"), tmp_path / "toy.store"))


@pytest.fixture(autouse=True)
def preparations(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> list[str]:
    """The names of the functions that prepared something."""
    calls: list[str] = []

    def count(owner: object, name: str) -> None:
        prepare = getattr(owner, name)

        def counting(*arguments: object) -> object:
            calls.append(name)
            return prepare(*arguments)

        monkeypatch.setattr(owner, name, counting)

    count(restart_walk, "normalised_adjacency")
    count(simrank, "_walk_matrices")
    count(SimRank, "_find_correction")
    count(CommuteTime, "_factor_or_sketch")
    if "sketch" in request.node.name:
        monkeypatch.setattr(commutetime, "_MOST_CORE", -1)
    return calls


def scores(measure: GraphMeasure, hin: HIN) -> tuple[list[list[float]], float]:
    fitted = measure.fit(hin)
    return fitted.score_rows(np.arange(5)).tolist(), fitted.error_


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.slow
def test_a_store_opened_again_has_what_was_prepared(store: Store, measure: GraphMeasure, preparations: list) -> None:
    first = scores(measure, store.hin())
    assert preparations
    preparations.clear()
    assert scores(measure, open_store(store.folder).hin()) == first
    assert not preparations
    assert first == scores(measure, npth.load("toy"))


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.slow
def test_what_does_not_fit_the_graph_is_prepared_again(
    store: Store, measure: GraphMeasure, preparations: list, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Checksums guard against damage; arrays of another length would let kernels read beyond them."""
    small = open_store(write_store(store.hin().with_matrices({}), store.folder.with_name("other")))
    first = scores(measure, small.hin())
    for module, name in ((restart_walk, "_unpack"), (simrank, "_unpack_walks"), (commutetime, "_unpack")):
        unpack = getattr(module, name)
        monkeypatch.setattr(module, name, lambda entry, size, unpack=unpack: unpack(entry, size + 1))
    preparations.clear()
    assert scores(measure, small.hin()) == first
    assert preparations


def test_another_version_is_prepared_anew_and_compaction_removes_the_older_one(
    store: Store, preparations: list
) -> None:
    measure = SimRank("author")
    before = scores(measure, store.hin())
    store.update(Update(add_edges=[Edge("writes", "Mike", "Jim-SIGMOD-1")]))
    preparations.clear()
    after = scores(measure, store.hin())
    assert after != before
    assert preparations
    preparations.clear()
    assert scores(measure, store.hin(as_of=0)) == before
    assert not preparations
    assert len(list((store.folder / "cache").iterdir())) == 4
    store.compact()
    store.close()
    assert len(list((store.folder / "cache").iterdir())) == 2
    assert scores(measure, store.hin()) == after
    assert not preparations


def test_damage_is_noticed_and_mended(store: Store, preparations: list, caplog: pytest.LogCaptureFixture) -> None:
    first = scores(CommuteTime("author"), store.hin())
    (path,) = store.folder.glob("cache/*/core.npy")
    content = bytearray(path.read_bytes())
    content[-3] ^= 8
    path.write_bytes(content)
    for times in (2, 2):
        assert scores(CommuteTime("author"), store.hin()) == first
        assert preparations == ["_factor_or_sketch"] * times
    assert "core.npy differs from its checksum" in caplog.text


def test_a_prepared_measure_expects_no_wait(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    measure = CommuteTime("author")
    monkeypatch.setattr(CommuteTime, "_expected_seconds", lambda *_: 7.0)
    assert measure.expected_seconds(store.hin()) == 7.0
    measure.fit(store.hin())
    assert measure.expected_seconds(store.hin()) == 0.0


def test_graphs_that_differ_from_the_store_do_not_use_its_cache(store: Store) -> None:
    hin = store.hin()
    (writes, _) = hin.schema.relations
    assert hin.with_matrices({writes: hin.matrices[writes] * 2}).disk_cache is None
    assert npth.load("toy").disk_cache is None


def test_a_key_without_a_form_stays_in_memory(store: Store) -> None:
    hin = store.hin()
    cached(hin, "in memory", lambda: 1)
    assert is_cached(hin, "in memory")
    assert not is_cached(store.hin(), "in memory")
    form = FileForm[float](lambda value: Arrays({}, {"value": value}), lambda entry: float(entry.facts["value"]))
    assert cached(store.hin(), ("a", 1.5), lambda: 0.1, form) == 0.1
    assert cached(store.hin(), ("a", 1.5), lambda: 0.2, form) == 0.1


FRESH = """
import sys
from neupath.cli.program import main
from neupath.measures import CommuteTime, SimRank
def prepare(*_):
    raise SystemExit("prepared again")
CommuteTime._factor_or_sketch = SimRank._find_correction = prepare
main(sys.argv[1:])
"""


@pytest.mark.slow
def test_the_command_line_prepares_once_for_all_processes(store: Store) -> None:
    scores(CommuteTime("author"), store.hin())
    command = [sys.executable, "-c", FRESH, "search", store.folder, "Mike", "--measure"]
    for measure, code in (("commutetime", 0), ("simrank", 1)):
        with run_process([*command, measure, "--node-type", "author"], stdout=-1, stderr=-1) as process:
            _, errors = process.communicate()
            assert (process.returncode, "prepared again" in errors) == (code, code == 1), errors
