"""Preparing an index: out of core, resumed, atomically visible, and never over what is no index."""

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from neupath import HIN, NeuPathError, PathSim, load, open_index, prepare
from neupath._runtime.files import locked
from neupath.engine import files
from neupath.engine.tasks import in_this_process
from neupath.errors import GraphError, QueryError, SourceError, WriteError
from neupath.graph.hin import Edges
from neupath.graph.metapath import Relation
from neupath.graph.nodes import Nodes
from neupath.measures import PPR, Combination, DWPCNoRepeats, HeteSim, Part
from neupath.measures import prepare as preparing
from tests.graphs import shop_graph
from tests.patience import PATIENCE
from tests.prepared_index import assert_same_answers
from tests.processes import run_process

UITIU = "user-item-tag-item-user"


@pytest.fixture(scope="module")
def shop() -> HIN:
    return shop_graph()


@pytest.fixture
def in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut products into blocks of a row or two."""
    monkeypatch.setattr(preparing, "_BLOCK_WORK", 8)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


class Tasks:
    """Runs tasks here, counts them, and ends in an error after some of them."""

    def __init__(self, most: int = 1 << 30, error: BaseException | None = None) -> None:
        self.done, self.most, self.error = 0, most, error

    def __call__(self, task: Callable[..., object], arguments: list[tuple], on_done: Callable[[int], object]) -> None:
        for number, own in enumerate(arguments):
            if self.done == self.most and self.error:
                raise self.error
            task(*own)
            self.done += 1
            on_done(number)


# ---- Out of core ---------------------------------------------------------------------------------
@pytest.mark.parametrize("path", [UITIU, "user-item-tag", "user-item-tag-item-user-item-tag-item-user"])
@pytest.mark.parametrize("work", [1, 8, 1 << 26])
def test_blocks_of_bounded_work_make_the_same_index(
    shop: HIN, path: str, work: int, tmp_path: Path, monkeypatch
) -> None:
    measure, tasks = HeteSim(path).fit(shop), Tasks()
    whole = prepare(shop, measure, tmp_path / "whole")
    monkeypatch.setattr(preparing, "_BLOCK_WORK", work)
    blocks = prepare(shop, measure, tmp_path / "blocks", each=tasks)
    assert contents(Path(whole)) == contents(Path(blocks))
    assert (tasks.done > 9) == (work < 10 and path != "user-item-tag")  # whose halves are one matrix each
    assert_same_answers(open_index(blocks), measure)


def test_no_block_takes_more_work_than_its_budget(shop: HIN, tmp_path: Path, monkeypatch) -> None:
    """A block ends with the row that reaches the budget."""
    monkeypatch.setattr(preparing, "_BLOCK_WORK", 50)
    works = []

    def each(task, arguments, on_done) -> None:
        for left, right, first, last, _ in arguments:
            lengths = np.diff(right.map().indptr)
            work = [int(lengths[left.map()[[row]].indices].sum()) for row in range(first, last)]
            works.append((sum(work), max(work)))
        in_this_process(task, arguments, on_done)

    prepare(shop, PathSim(UITIU), tmp_path / "index", each=each)
    assert len(works) > 3
    assert all(total <= 50 + largest for total, largest in works)


@pytest.mark.usefixtures("in_blocks")
def test_progress_counts_up(shop: HIN, tmp_path: Path) -> None:
    steps: list[tuple[str, int, int | None]] = []
    prepare(shop, PathSim(UITIU), tmp_path / "index", progress=lambda *step: steps.append(step))
    stages = list(dict.fromkeys(stage for stage, _, _ in steps))
    assert stages == [
        "multiplying step 1 of 1", "transposing", "writing nodes", "computing checksums"
    ]  # fmt: skip
    for stage in stages:
        own = [(done, total) for name, done, total in steps if name == stage]
        assert own == sorted(own, key=lambda step: step[0])
    assert steps[-1][1] == steps[-1][2]


# ---- Resumed -------------------------------------------------------------------------------------
@pytest.mark.usefixtures("in_blocks")
@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("a bug"), OSError(28, "No space left on device")])
def test_an_interrupted_preparation_goes_on(shop: HIN, error: BaseException, tmp_path: Path) -> None:
    prepare(shop, HeteSim(UITIU), tmp_path / "whole", each=(every := Tasks()))
    for most in (0, 1, 7, every.done - 1):
        folder = tmp_path / f"resumed{most}"
        kind = WriteError if isinstance(error, OSError) else type(error)
        message = r"cannot write .*: No space left on device; the same" if kind is WriteError else None
        with pytest.raises(kind, match=message):
            prepare(shop, HeteSim(UITIU), folder, each=Tasks(most, error))
        with pytest.raises(SourceError, match="has no index.json, so it is no prepared index"):
            open_index(folder)
        prepare(shop, HeteSim(UITIU), folder, each=(rest := Tasks()))
        assert rest.done == every.done - most
        assert contents(folder) == contents(tmp_path / "whole")


KILLED = """
import os, signal, sys
from neupath import PathSim, prepare
from neupath.measures import prepare as preparing
from neupath.engine import tasks
from tests.graphs import shop_graph

preparing._BLOCK_WORK = 8
stage, number = sys.argv[2], int(sys.argv[3])

def kill(name, done, total):
    if name == stage and done >= number:
        os.kill(os.getpid(), signal.SIGKILL)

prepare(shop_graph(), PathSim("user-item-tag-item-user"), sys.argv[1], progress=kill)
"""


@pytest.mark.slow
@pytest.mark.usefixtures("in_blocks")
@pytest.mark.parametrize(
    ("stage", "done"),
    [("multiplying step 1 of 1", 5), ("transposing", 0), ("writing nodes", 0), ("computing checksums", 4)],
)
def test_a_killed_preparation_goes_on(shop: HIN, stage: str, done: int, tmp_path: Path) -> None:
    out, root = tmp_path / "index", Path(__file__).parent.parent.parent
    with run_process([sys.executable, "-c", KILLED, out, stage, str(done)], cwd=root) as process:
        assert process.wait(PATIENCE) == -signal.SIGKILL
    assert (out / "building").is_dir()
    prepare(shop, PathSim(UITIU), tmp_path / "whole", each=(every := Tasks()))
    prepare(shop, PathSim(UITIU), out, each=(rest := Tasks()))
    assert rest.done < every.done
    assert contents(out) == contents(tmp_path / "whole")


@pytest.mark.usefixtures("in_blocks")
def test_what_is_left_of_another_preparation_is_not_used(shop: HIN, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        prepare(shop, HeteSim(UITIU), tmp_path / "index", each=Tasks(5, KeyboardInterrupt()))
    prepare(shop, PathSim(UITIU), tmp_path / "index")
    prepare(shop, PathSim(UITIU), tmp_path / "other")
    assert contents(tmp_path / "index") == contents(tmp_path / "other")


# ---- Versions ------------------------------------------------------------------------------------
def graph_of(version: int) -> HIN:
    rng = np.random.default_rng(version)
    nodes = [Nodes("a", pa.array([f"a{i}" for i in range(30)])), Nodes("b", pa.array(np.arange(10)))]
    return HIN.build(nodes, [Edges(Relation("a", "r", "b"), rng.integers(0, 30, 90), rng.integers(0, 10, 90))])


def test_readers_go_on_while_an_index_is_prepared_again(tmp_path: Path) -> None:
    """Also when their data are gone, as they are from the third preparation on."""
    folder, readers = tmp_path / "index", []
    for version in range(4):
        measure = PathSim("a-b-a").fit(graph_of(version))
        prepare(measure.hin_, measure, folder)
        readers.append((open_index(folder), measure))
        for index, own in readers:
            assert_same_answers(index, own)
        data = {path.name for path in folder.iterdir()} - {"index.json"}
        assert data == {index.files.data for index, _ in readers[-2:]}


def test_a_preparation_becomes_visible_at_its_end(tmp_path: Path) -> None:
    folder, measure = tmp_path / "index", PathSim("a-b-a").fit(graph_of(0))
    prepare(measure.hin_, measure, folder)

    def look(*_: object) -> None:
        assert open_index(folder).top_k("a1") == measure.top_k("a1")

    prepare(graph_of(1), PathSim("a-b-a"), folder, progress=look)
    assert open_index(folder).top_k("a1") == PathSim("a-b-a").fit(graph_of(1)).top_k("a1")


def test_what_is_prepared_already_is_not_prepared_again(tmp_path: Path, monkeypatch) -> None:
    prepare(graph_of(0), PathSim("a-b-a"), tmp_path / "index")
    before = contents(tmp_path / "index")
    with monkeypatch.context() as patch:
        patch.setattr(preparing, "_write_arrays", None)
        prepare(graph_of(0), PathSim("a-b-a").fit(graph_of(0)), tmp_path / "index")
    assert contents(tmp_path / "index") == before


@pytest.mark.parametrize("damage", ["manifest", "array", "checksums", "missing"])
def test_a_damaged_index_is_prepared_again(damage: str, tmp_path: Path) -> None:
    folder = Path(prepare(graph_of(0), PathSim("a-b-a"), tmp_path / "index"))
    before = contents(folder)
    data = folder / open_index(folder).files.data
    file = {"manifest": folder / "index.json", "checksums": data / "left.data.crc"}.get(damage, data / "left.data")
    if damage == "missing":
        file.unlink()
    else:
        file.write_bytes(bytes([file.read_bytes()[0] ^ 1]) + file.read_bytes()[1:])
    with pytest.raises(SourceError, match="prepare the index again"):
        open_index(folder).files["left.data"].whole()
    prepare(graph_of(0), PathSim("a-b-a"), folder)
    assert contents(folder) == before


def test_two_preparations_at_once(shop: HIN, tmp_path: Path) -> None:
    folder = tmp_path / "index"

    def prepare_too(*_: object) -> None:
        with pytest.raises(WriteError, match=f"another process prepares {folder}; wait until it is done"):
            prepare(shop, PathSim(UITIU), folder)

    prepare(shop, PathSim(UITIU), folder, progress=prepare_too)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["index"]


# ---- Bad input -----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("scorer", "message"),
    [
        (PPR("user"), "an index holds the product of a measure along a meta-path, such as pathsim, and ppr has none"),
        (Combination([Part("pathsim", UITIU, 1.0)]), "an index holds the product .* and combination has none"),
        (DWPCNoRepeats(UITIU), "an index holds the product .* and dwpc-no-repeats has none; choose"),
    ],
)
def test_measures_without_a_product_are_refused(shop: HIN, scorer, message: str, tmp_path: Path) -> None:
    with pytest.raises(QueryError, match=message):
        prepare(shop, scorer, tmp_path / "index")
    assert not list(tmp_path.glob("index/*"))


def test_weights_whose_product_a_float_cannot_hold_are_refused(tmp_path: Path) -> None:
    ends, weights = np.arange(2), np.full(2, 1e-200)
    nodes = [Nodes(node_type, pa.array([f"{node_type}{i}" for i in ends])) for node_type in "apv"]
    hin = HIN.build(nodes, [Edges(Relation(*r), ends, ends, weights) for r in (("a", "w", "p"), ("p", "at", "v"))])
    with pytest.raises(GraphError, match="may have the weight 1e-401"):
        prepare(hin, PathSim("a-p-v-p-a"), tmp_path / "index")


def write_manifest_of(**changes: object) -> Callable[[Path], object]:
    """Prepare an index, and change what its manifest says."""

    def write(folder: Path) -> None:
        prepare(load("toy"), PathSim("APVPA"), folder)
        manifest = json.loads((folder / "index.json").read_text()) | changes
        (folder / "index.json").write_text(json.dumps(manifest))

    return write


def put(name: str, text: str) -> Callable[[Path], object]:
    return lambda folder: (folder.mkdir(), (folder / name).write_text(text))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda folder: folder.write_text("x"), "is a file; give a folder"),
        (put("notes.txt", "x"), "has files in it and is no index; give the name of a new folder"),
        (put("index.json", '{"name": "a web page"}'), "has files in it and is no index; give the name of a new folder"),
        (write_manifest_of(version=2), r"was prepared by a newer version of neupath, in version 2 of the format, and "),
    ],
)
def test_what_is_no_index_of_ours_is_left_alone(make, message: str, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    make(folder)
    before = contents(tmp_path)
    with pytest.raises(NeuPathError, match=message):
        prepare(load("toy"), PathSim("APVPA"), folder)
    assert contents(tmp_path) == before


def test_folders_that_are_missing_or_here(tmp_path: Path, monkeypatch) -> None:
    assert open_index(prepare(load("toy"), PathSim("APVPA"), tmp_path / "a" / "b" / "index")).top_k("Mike", 1).ids == (
        "Bob",
    )
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert prepare(load("toy"), PathSim("APVPA"), ".") == "."
    assert open_index(".").top_k("Mike", 1).ids == ("Bob",)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "here"]
    (tmp_path / "file").touch()
    with pytest.raises(WriteError, match=r"file is a file; give a folder"):
        prepare(load("toy"), PathSim("APVPA"), tmp_path / "file" / "index")


FULL = """
import resource, sys
from neupath import NeuPathError, PathSim, prepare
from tests.graphs import shop_graph

hin = shop_graph()
PathSim("user-item-tag-item-user").fit(hin)  # its kernels are cached in files as well
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
try:
    prepare(hin, PathSim("user-item-tag-item-user"), sys.argv[1])
except NeuPathError as error:
    sys.exit(str(error))
"""


@pytest.mark.slow
@pytest.mark.parametrize("size", [0, 100, 600, 2000])
def test_a_full_disk_is_one_sentence_and_the_same_command_goes_on(shop: HIN, size: int, tmp_path: Path) -> None:
    out, root = tmp_path / "index", Path(__file__).parent.parent.parent
    with run_process([sys.executable, "-c", FULL, out, str(size)], cwd=root, stderr=subprocess.PIPE) as process:
        message = process.communicate(timeout=PATIENCE)[1]
    assert process.returncode == 1, message
    assert message.count("\n") == 1, message
    assert message.startswith("cannot write")
    assert "File too large" in message
    prepare(shop, PathSim(UITIU), out)
    assert_same_answers(open_index(out), PathSim(UITIU).fit(shop))


def test_a_folder_that_may_not_be_written_to(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("neupath._runtime.files.os.access", lambda *_: False)  # root may write anywhere
    with pytest.raises(WriteError, match="cannot write to .*index: no permission to write in "):
        prepare(load("toy"), PathSim("APVPA"), tmp_path / "index")


def test_workers_that_do_not_see_the_folder(shop: HIN, tmp_path: Path) -> None:
    def elsewhere(task, arguments, on_done) -> None:
        for file in (tmp_path / "index/building").iterdir():
            file.unlink()
        in_this_process(task, arguments, on_done)

    with pytest.raises(SourceError, match=r"a worker does not see .*building; prepare the index in a folder that all"):
        prepare(shop, PathSim(UITIU), tmp_path / "index", each=elsewhere)


def test_an_index_that_is_copied_or_moved_opens(tmp_path: Path) -> None:
    prepare(load("toy"), PathSim("APVPA"), tmp_path / "index")
    shutil.move(shutil.copytree(tmp_path / "index", tmp_path / "copy"), tmp_path / "moved")
    assert open_index(tmp_path / "moved").top_k("Mike", 2) == open_index(tmp_path / "index").top_k("Mike", 2)
    assert files.VERSION == 1
    with locked(tmp_path / "moved.lock", "a reader needs no lock"):
        open_index(tmp_path / "moved")
