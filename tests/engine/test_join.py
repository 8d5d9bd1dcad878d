"""join: the same as searching each query, in any blocks, resumed after a kill to the same byte."""

import re
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest
from pyarrow.dataset import dataset

import neupath as npth
from neupath import HIN, Edges, NeuPathError
from neupath.engine import products
from neupath.engine.join import Joined, JoinEngine, LocalEngine, ResultFile, join
from tests.command_line import Run
from tests.processes import run_process

PATH = "class-method-class"


@pytest.fixture(scope="module")
def hin() -> HIN:
    return npth.load("stdlib")


@pytest.mark.parametrize("measure", [npth.PathSim, npth.HeteSim, npth.PCRW])
@pytest.mark.parametrize("block", [7, 4096])
def test_a_join_equals_the_search_of_every_query(hin: HIN, tmp_path: Path, measure, block: int) -> None:
    scorer = measure(PATH).fit(hin)
    joined = join(hin, scorer, tmp_path / "top.parquet", k=5, block=block)
    table = pq.read_table(joined.path)
    assert table.column_names == ["query", "rank", "target", "score"]
    ids = hin.nodes["class"].ids.to_pylist()
    expected = [
        (query, hit.rank, hit.id, hit.score)
        for query, hits in zip(ids, scorer.top_k(ids, k=5), strict=True)
        for hit in hits
    ]
    assert list(zip(*(column.to_pylist() for column in table.columns), strict=True)) == expected
    assert joined.pairs == len(expected)
    assert list(tmp_path.iterdir()) == [joined.path]


def test_some_queries_and_a_minimal_score(hin: HIN, tmp_path: Path) -> None:
    scorer = npth.PathSim(PATH).fit(hin)
    rows = np.array([40, 3, 200])
    ids = hin.nodes["class"].ids.take(rows).to_pylist()
    table = pq.read_table(join(hin, scorer, tmp_path / "a.parquet", None, queries=ids, min_score=0.4).path)
    assert list(dict.fromkeys(table["query"].to_pylist())) == [ids[0], ids[2]]  # the other has no hit
    scores = scorer.score_rows(rows)
    scores[np.arange(3), rows] = 0
    assert table.num_rows == int((scores >= 0.4).sum()) > 0
    assert min(table["score"].to_pylist()) >= 0.4


def test_targets_of_another_type_and_integer_ids(tmp_path: Path) -> None:
    hin = npth.load("toy")
    table = pq.read_table(join(hin, npth.PCRW("author-paper-venue"), tmp_path / "a.parquet", 1).path)
    assert table["target"].to_pylist()[0] == "SIGMOD"


def test_a_killed_join_resumes_to_the_same_file(tmp_path: Path) -> None:
    whole = tmp_path / "whole.parquet"
    join(npth.load("stdlib"), npth.PathSim(PATH), whole, k=3, block=2)
    out = tmp_path / "out.parquet"
    command = [sys.executable, "-m", "neupath.cli", "join", "stdlib", "--metapath", PATH, "-k", "3", "--block", "2"]
    parts = tmp_path / "out.parquet.parts"
    with run_process([*command, "--out", out], stdout=subprocess.DEVNULL) as process:
        while len(list(parts.glob("0*.parquet")) if parts.is_dir() else []) < 5:
            assert process.poll() is None, "it ended before it could be killed"
            time.sleep(0.01)
        process.kill()
    assert not out.exists()
    finished = {part.name: part.stat().st_mtime_ns for part in parts.glob("0*.parquet")}
    joined = join(npth.load("stdlib"), npth.PathSim(PATH), out, k=3, block=2)
    assert 5 <= joined.resumed <= len(finished) < joined.blocks
    assert out.read_bytes() == whole.read_bytes()
    assert not parts.exists()


def stop(_: str, done: int, __: int | None) -> None:
    if done > 10:
        raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("other", "difference"),
    [
        ({"k": 4}, "k (3)"),
        ({"k": None, "min_score": 0.5}, "k (3), min_score (0.0)"),
        ({"min_score": 0.5}, "min_score (0.0)"),
        ({"block": 6}, "block (5)"),
        ({"queries": ["collections.OrderedDict", "collections.UserDict"]}, "queries"),
        ({"measure": npth.JoinSim}, "measure"),
        ({"path": "class-module-class"}, "meta-path or parameter"),
        ({"graph": "changed"}, "graph"),
    ],
)
def test_blocks_of_another_join_are_not_mixed_in(hin: HIN, tmp_path: Path, other: dict, difference: str) -> None:
    def join_as(measure=npth.PathSim, path=PATH, graph="stdlib", progress=lambda *_: None, **options) -> Joined:
        chosen = hin if graph == "stdlib" else with_one_edge_less(hin)
        terms = {"k": 3, "block": 5} | options
        return join(chosen, measure(path), tmp_path / "a.parquet", **terms, progress=progress)

    with pytest.raises(KeyboardInterrupt):
        join_as(progress=stop)
    with pytest.raises(
        NeuPathError, match=re.escape(f"holds blocks of another join, with another {difference}; finish that join,")
    ):
        join_as(**other)
    assert join_as().resumed == 3


def with_one_edge_less(hin: HIN) -> HIN:
    edges = []
    for relation, matrix in hin.matrices.items():
        entries = matrix.tocoo()
        edges.append(
            Edges(relation, entries.row[1:].astype(np.int64), entries.col[1:].astype(np.int64), entries.data[1:])
        )
    return HIN.build(hin.nodes.values(), edges)


def test_rows_that_were_propagated_are_not_mixed_with_others(hin: HIN, tmp_path: Path, monkeypatch) -> None:
    path = "class-module-class-module-class"
    with monkeypatch.context() as patched:
        patched.setattr(products, "_SMALL", 0)
        patched.setattr(products, "free_memory", lambda: 10)
        measures = {
            name: measure(path).fit(npth.load("stdlib")) for name, measure in (("a", npth.PCRW), ("b", npth.PathSim))
        }
    for name, measure in measures.items():
        with pytest.raises(KeyboardInterrupt):
            join(measure.hin_, measure, tmp_path / f"{name}.parquet", k=3, block=5, progress=stop)
    with pytest.raises(NeuPathError, match="with another model or way to multiply"):
        join(hin, npth.PCRW(path), tmp_path / "a.parquet", k=3, block=5)
    assert join(hin, npth.PathSim(path), tmp_path / "b.parquet", k=3, block=5).resumed == 3  # of whole numbers


def test_two_joins_to_one_file_are_refused(hin: HIN, tmp_path: Path) -> None:
    refused = []

    def join_again(_: str, done: int, __: int | None) -> None:
        if done == 100:
            with pytest.raises(NeuPathError, match="another join writes to .*a.parquet; wait until it is done"):
                join(hin, scorer, tmp_path / "a.parquet", k=3, block=50)
            refused.append(done)

    scorer = npth.PathSim(PATH).fit(hin)
    join(hin, scorer, tmp_path / "a.parquet", k=3, block=50, progress=join_again)
    assert refused == [100]
    join(hin, scorer, tmp_path / "b.parquet", k=3, block=50)
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.parquet", "b.parquet"]


def test_the_lock_of_a_killed_join_is_released(hin: HIN, tmp_path: Path) -> None:
    (tmp_path / "a.parquet.lock").touch()
    (tmp_path / "a.parquet.parts" / "work-killed").mkdir(parents=True)
    joined = join(hin, npth.PathSim(PATH), tmp_path / "a.parquet", k=3)
    assert list(tmp_path.iterdir()) == [joined.path]


@pytest.mark.parametrize(
    ("blocks", "message"), [(0, "interrupted before a block was"), (3, "3 finished blocks are kept")]
)
def test_ctrl_c_says_what_is_kept(run: Run, tmp_path: Path, monkeypatch, blocks: int, message: str) -> None:
    whole = LocalEngine.run

    def stop(engine: LocalEngine, scorer, job, missing, on_block) -> None:
        whole(engine, scorer, job, missing[:blocks], on_block)
        raise KeyboardInterrupt

    command = ("join", "toy", "--metapath", "APVPA", "-k", 2, "--block", 1, "--out", tmp_path / "top.parquet")
    with monkeypatch.context() as patched:
        patched.setattr(LocalEngine, "run", stop)
        stopped = run(*command)
    assert stopped.code == 130
    assert message in stopped.err
    assert run(*command, "--json").json["resumed"] == blocks


def test_a_join_that_did_nothing_leaves_nothing(hin: HIN, tmp_path: Path) -> None:
    class Broken(JoinEngine):
        def run(self, *_: object) -> None:
            raise NeuPathError("no")

    scorer, out = npth.PathSim(PATH).fit(hin), tmp_path / "a.parquet"
    with pytest.raises(NeuPathError, match="no"):
        join(hin, scorer, out, k=3, engine=Broken())
    assert not list(tmp_path.iterdir())
    (tmp_path / "a.parquet.parts").mkdir()
    (tmp_path / "a.parquet.parts" / "join.json").write_text("of another join, killed before its first block")
    assert join(hin, scorer, out, k=4).resumed == 0


@pytest.mark.parametrize("name", ["a.parquet", "a"])
def test_an_incomplete_file_is_not_moved_to_its_name(hin: HIN, tmp_path: Path, name: str) -> None:
    class Lazy(LocalEngine):
        def run(self, scorer, job, missing, on_block) -> None:
            super().run(scorer, job, missing[:2], on_block)

    with pytest.raises(NeuPathError, match=f"cannot write .*{name}: .*"):
        join(hin, npth.PathSim(PATH), tmp_path / name, k=3, block=50, engine=Lazy())
    assert [path.name for path in tmp_path.iterdir()] == [f"{name}.parts"]


def test_a_name_without_an_ending_becomes_a_folder(hin: HIN, tmp_path: Path) -> None:
    scorer = npth.PathSim(PATH).fit(hin)
    with pytest.raises(KeyboardInterrupt):
        join(hin, scorer, tmp_path / "top", k=3, block=5, progress=stop)
    assert not (tmp_path / "top").exists()
    (tmp_path / "top.parts" / ".000002-killed.parquet").write_text("half")
    joined = join(hin, scorer, tmp_path / "top", k=3, block=5)
    assert joined.resumed == 3
    whole = pq.read_table(join(hin, scorer, tmp_path / "top.parquet", k=3, block=5).path)
    assert dataset(joined.path).to_table().equals(whole)
    assert joined.pairs == len(whole) == duckdb.sql(f"SELECT count(*) FROM '{joined.path}/*.parquet'").fetchall()[0][0]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["top", "top.parquet"]
    nobody = join(hin, scorer, tmp_path / "nobody", k=3, queries=[])
    assert dataset(nobody.path).to_table().equals(whole.slice(0, 0))
    with pytest.raises(NeuPathError, match="top: a folder of that name exists"):
        join(hin, scorer, tmp_path / "top", k=3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"out": "a.csv"}, "cannot join to a.csv; the name must end in .parquet"),
        ({"out": "/proc/none/a.parquet"}, "cannot write"),
        ({"k": 0}, "k is 0; ask for at least 1 hit"),
        ({"block": 0}, "block is 0"),
        ({"min_score": -1.0}, "min_score is -1.0"),
        ({"k": None}, "without k, give a min_score above 0"),
        ({"queries": ["collections.UserDict", "collections.UserDict"]}, "queries names a node twice"),
        ({"queries": ["nobody"]}, "no class with the id or name 'nobody'"),
    ],
)
def test_bad_input(hin: HIN, options, message: str) -> None:
    arguments = {"out": "a.parquet"} | options
    with pytest.raises(NeuPathError, match=message):
        join(hin, npth.PathSim(PATH), **arguments)


def test_the_command(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "top.parquet"
    result = run("join", "toy", "--metapath", "APVPA", "-k", 2, "--out", out)
    assert result.code == 0
    assert "pairs of 5 queries written to" in result.out
    assert run("join", "toy", "--metapath", "APVPA", "--min-score", 0.9, "--out", out, "--json").json["pairs"] == 2
    assert "the name must end in .parquet" in run("join", "toy", "--metapath", "APVPA", "--out", "x.csv").err


def test_blocks_without_a_manifest_are_removed(tmp_path: Path) -> None:
    """Left over where removing the blocks of a finished join was broken off."""
    hin, scorer = npth.load("toy"), npth.PathSim("APVPA")
    wanted = join(hin, scorer, tmp_path / "a.parquet", 2).path.read_bytes()
    parts = tmp_path / "a.parquet.parts"
    parts.mkdir()
    table = pq.read_table(tmp_path / "a.parquet").slice(0, 0)
    pq.write_table(table, parts / "000000.parquet")
    joined = join(hin, scorer, tmp_path / "a.parquet", 2)
    assert joined.resumed == 0
    assert joined.path.read_bytes() == wanted


def test_blocks_of_a_model_that_learned_something_else_are_refused(tmp_path: Path, monkeypatch) -> None:
    from neupath.learn.models import MLP

    hin = npth.load("toy")
    labels = [("Mike", "Bob", 1.0), ("Mike", "Ann", 0.0), ("Mary", "Ann", 0.5)]
    one, other = (MLP(dim=4, epochs=2).fit(hin, some) for some in (labels, labels[:2]))
    with monkeypatch.context() as broken, pytest.raises(KeyboardInterrupt):
        broken.setattr(ResultFile, "finish", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        join(hin, one, tmp_path / "a.parquet", 2, block=2)
    with pytest.raises(NeuPathError, match="holds blocks of another join"):
        join(hin, other, tmp_path / "a.parquet", 2, block=2)
    assert join(hin, one, tmp_path / "a.parquet", 2, block=2).resumed == 3


def test_k_may_be_any_integer(tmp_path: Path) -> None:
    hin, scorer = npth.load("toy"), npth.PathSim("APVPA")
    assert join(hin, scorer, tmp_path / "a.parquet", np.int64(2)).blocks == 1
    assert join(hin, scorer, tmp_path / "b.parquet", 10**9).blocks == 1
