"""Joins on Dask, Ray and Spark: the same to the byte as in one process, whatever is killed or interrupted."""

from pathlib import Path

import pytest

import neupath as npth
from neupath import HIN, NeuPathError, join, open_index, prepare
from neupath.cluster import Cluster, joining
from neupath.measures import prepare as preparing
from tests.cluster.engines import killing_a_worker

pytestmark = pytest.mark.slow
APVPA = "author-paper-venue-paper-author"
YOUNG = [f"author{i}" for i in range(0, 300, 7)]


@pytest.fixture(scope="module")
def index(weighted: HIN, tmp_path_factory: pytest.TempPathFactory) -> npth.engine.prepared.PreparedIndex:
    return open_index(prepare(weighted, npth.PathSim(APVPA), tmp_path_factory.mktemp("index") / "authors"))


OPTIONS = {
    "k": {"k": 5, "block": 64},
    "one block": {"k": 3},
    "min_score": {"k": None, "min_score": 0.4, "block": 50},
    "both": {"k": 7, "min_score": 0.4, "block": 100, "format": "csv"},
    "chosen": {"k": 5, "block": 10, "queries": YOUNG[::-1], "among": YOUNG},
    "where": {"k": 5, "block": 64, "where": "name ~ 1", "where_query": "name ~ 2"},
    "folder": {"k": 5, "block": 64, "format": "neo4j"},
}


def contents(path: Path) -> dict[str, bytes]:
    return {own.name: own.read_bytes() for own in (sorted(path.iterdir()) if path.is_dir() else [path])}


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("case", OPTIONS)
def test_a_join_is_the_same_to_the_byte(engine: Cluster, weighted: HIN, index, case: str, tmp_path: Path) -> None:
    options = dict(OPTIONS[case])
    suffix = {"csv": ".csv", "neo4j": ""}.get(str(options.get("format")), ".parquet")
    files = {}
    for place, scorer, own in (
        ("here", npth.PathSim(APVPA), None),
        ("graph", npth.PathSim(APVPA), engine),
        ("index", index, engine),
    ):
        folder = tmp_path / place
        folder.mkdir()
        steps: list[tuple[str, int, int | None]] = []
        hin = index.hin_ if scorer is index else weighted
        joined = join(
            hin,
            scorer,
            folder / f"top{suffix}",
            engine=own,
            progress=lambda *step, own=steps: own.append(step),
            **options,
        )
        files[place] = contents(joined.path)
        assert names(folder) == [f"top{suffix}"]
        counts = [done for stage, done, _ in steps if stage == "joining"]
        assert counts == sorted(counts)
        assert (counts[0], counts[-1]) == (0, joined.queries)
        assert len(counts) > joined.blocks
    assert files["here"] == files["graph"] == files["index"]


@pytest.mark.parametrize("measure", ["hetesim", "pathcount"])
def test_targets_of_another_type(engine: Cluster, weighted: HIN, measure: str, tmp_path: Path) -> None:
    scorer = npth.measures.measure_named(measure, "author-paper-venue-paper")
    for place, own in (("here", None), ("there", engine)):
        join(weighted, scorer, tmp_path / f"{place}.parquet", 5, block=100, engine=own)
    assert (tmp_path / "here.parquet").read_bytes() == (tmp_path / "there.parquet").read_bytes()


def test_a_preparation_is_the_same_to_the_byte(engine: Cluster, weighted: HIN, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(preparing, "_BLOCK_WORK", 100)
    steps: list[int] = []
    with engine.each() as each:
        prepare(
            weighted,
            npth.PathSim(APVPA),
            tmp_path / "there",
            each=each,
            progress=lambda _, done, __: steps.append(done),
        )
    prepare(weighted, npth.PathSim(APVPA), tmp_path / "here")
    assert steps[:4] == [0, 1, 2, 3]
    data = {place: contents(next((tmp_path / place).glob("data-*"))) for place in ("here", "there")}
    assert data["here"] == data["there"]


def test_a_killed_worker_loses_nothing_but_time(
    engine: Cluster, kind: str, weighted: HIN, index, tmp_path: Path, monkeypatch
) -> None:
    join(weighted, npth.PathSim(APVPA), tmp_path / "here.parquet", 5, block=30)
    (tmp_path / "events").mkdir()
    with killing_a_worker(kind, tmp_path / "events", monkeypatch) as killed:
        join(index.hin_, index, tmp_path / "there.parquet", 5, block=30, engine=engine)
    assert killed
    assert (tmp_path / "here.parquet").read_bytes() == (tmp_path / "there.parquet").read_bytes()
    assert names(tmp_path) == ["events", "here.parquet", "there.parquet"]


def test_an_interrupted_join_resumes(engine: Cluster, weighted: HIN, index, tmp_path: Path) -> None:
    def stop(_: str, done: int, __: int | None) -> None:
        if done > 100:
            raise KeyboardInterrupt

    for scorer in (npth.PathSim(APVPA), index):
        hin, out = (index.hin_ if scorer is index else weighted), tmp_path / f"{type(scorer).__name__}.parquet"
        with pytest.raises(KeyboardInterrupt):
            join(hin, scorer, out, 5, block=10, engine=engine, progress=stop)
        joined = join(hin, scorer, out, 5, block=10, engine=engine)
        assert 0 < joined.resumed < joined.blocks
    join(weighted, npth.PathSim(APVPA), tmp_path / "here.parquet", 5, block=10)
    assert len({path.read_bytes() for path in tmp_path.glob("*.parquet")}) == 1
    assert len(names(tmp_path)) == 3


def test_a_join_begun_on_an_engine_ends_in_this_process(engine: Cluster, index, tmp_path: Path) -> None:
    def stop(_: str, done: int, __: int | None) -> None:
        if done > 100:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        join(index.hin_, index, tmp_path / "there.parquet", 5, block=10, engine=engine, progress=stop)
    assert join(index.hin_, index, tmp_path / "there.parquet", 5, block=10).resumed > 0


FAILURES = {
    "a sentence": "^the weights are gone; look for them$",
    "a bug": r"^a task on \w+ failed \(.*'x'.*\); run it again: it resumes with what is missing$",
}


@pytest.mark.parametrize("failure", FAILURES)
def test_a_task_that_fails_is_one_sentence(engine: Cluster, index, failure: str, tmp_path: Path, monkeypatch) -> None:
    def fail(*arguments: object) -> object:
        if arguments[1] == 3:
            if failure == "a sentence":
                from neupath import NeuPathError

                raise NeuPathError("the weights are gone; look for them")
            return {}["x"]
        return whole(*arguments)

    whole = joining.write_block
    with monkeypatch.context() as patch:
        patch.setattr(joining, "write_block", fail)
        with pytest.raises(NeuPathError, match=FAILURES[failure]) as refused:
            join(index.hin_, index, tmp_path / "there.parquet", 5, block=30, engine=engine)
    assert "\n" not in str(refused.value)
    join(index.hin_, index, tmp_path / "there.parquet", 5, block=30, engine=engine)
    join(index.hin_, index, tmp_path / "here.parquet", 5, block=30)
    assert (tmp_path / "here.parquet").read_bytes() == (tmp_path / "there.parquet").read_bytes()


def test_workers_that_do_not_see_the_folder(engine: Cluster, index, tmp_path: Path, monkeypatch) -> None:
    class Elsewhere(joining.BlockSpec):
        """What a worker on another machine finds: another folder."""

        @classmethod
        def write(cls, *arguments):
            spec = joining_write(*arguments)
            return joining_spec(**vars(spec) | {"work": Path("/nowhere/work")})

    joining_write, joining_spec = joining.BlockSpec.write, joining.BlockSpec
    monkeypatch.setattr(joining, "BlockSpec", Elsewhere)
    with pytest.raises(NeuPathError, match="a worker does not see /nowhere/work; give an out in a folder that all"):
        join(index.hin_, index, tmp_path / "there.parquet", 5, engine=engine)
    assert names(tmp_path) == []


def test_an_index_that_is_prepared_again_meanwhile(engine: Cluster, weighted: HIN, tmp_path: Path) -> None:
    """All blocks are of the version that the join has opened."""
    folder = tmp_path / "index"
    index = open_index(prepare(weighted, npth.PathSim(APVPA), folder))
    join(index.hin_, index, tmp_path / "here.parquet", 5, block=30)

    def prepare_again(_: str, done: int, __: int | None) -> None:
        if not done:
            prepare(weighted, npth.PathSim("author-paper-author"), folder)

    join(index.hin_, index, tmp_path / "there.parquet", 5, block=30, engine=engine, progress=prepare_again)
    assert (tmp_path / "here.parquet").read_bytes() == (tmp_path / "there.parquet").read_bytes()
