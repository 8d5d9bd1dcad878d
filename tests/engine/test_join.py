"""join: the same as searching each query, in any blocks, resumed after a kill to the same byte."""

import itertools
import json
import re
import subprocess
import sys
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.dataset import dataset

import neupath as npth
from neupath import HIN, NeuPathError
from neupath._runtime import resources
from neupath.engine import join as module
from neupath.engine import products
from neupath.engine.join import Joined, JoinEngine, LocalEngine, join
from neupath.engine.join_results import ResultFile
from neupath.graph.hin import Edges
from neupath.graph.metapath import Relation
from neupath.graph.nodes import Nodes
from neupath.measures import PCRW, HeteSim, JoinSim, PathCount
from tests.command_line import Run
from tests.patience import wait_until
from tests.processes import run_process

PATH = "class-method-class"


@pytest.fixture(scope="module")
def hin() -> HIN:
    return npth.load("stdlib")


@pytest.mark.parametrize("measure", [npth.PathSim, HeteSim, PCRW])
@pytest.mark.parametrize("block", [7, 4096])
@pytest.mark.slow
def test_a_join_equals_the_search_of_every_query(hin: HIN, tmp_path: Path, measure, block: int) -> None:
    scorer = measure(PATH).fit(hin)
    joined = join(hin, scorer, tmp_path / "top.parquet", k=5, block=block)
    table = pq.read_table(joined.path)
    assert table.column_names == ["query", "rank", "target", "score", "query_name", "target_name"]
    ids, names = hin.nodes["class"].ids.to_pylist(), hin.nodes["class"].names.to_pylist()
    expected = [
        (query, hit.rank, hit.id, hit.score, name, hit.name)
        for query, name, hits in zip(ids, names, scorer.top_k(ids, k=5), strict=True)
        for hit in hits
    ]
    assert list(zip(*(column.to_pylist() for column in table.columns), strict=True)) == expected
    assert joined.pairs == len(expected)
    assert list(tmp_path.iterdir()) == [joined.path]


def test_some_queries_and_a_minimal_score(hin: HIN, tmp_path: Path) -> None:
    scorer = npth.PathSim(PATH).fit(hin)
    scores = scorer.score_rows(np.arange(300))
    np.fill_diagonal(scores, 0)
    has_hits = (scores >= 0.4).any(axis=1)
    first, *_, last = np.flatnonzero(has_hits)  # other classes in each version of Python
    rows = np.array([last, np.flatnonzero(~has_hits)[0], first])
    ids = hin.nodes["class"].ids.take(rows).to_pylist()
    table = pq.read_table(join(hin, scorer, tmp_path / "a.parquet", None, queries=ids, min_score=0.4).path)
    assert list(dict.fromkeys(table["query"].to_pylist())) == [ids[0], ids[2]]  # the other has no hit
    assert table.num_rows == int((scores[rows] >= 0.4).sum())
    assert min(table["score"].to_pylist()) >= 0.4


def test_targets_of_another_type_and_integer_ids(tmp_path: Path) -> None:
    hin = npth.load("toy")
    table = pq.read_table(join(hin, PCRW("author-paper-venue"), tmp_path / "a.parquet", 1).path)
    assert table["target"].to_pylist()[0] == "SIGMOD"


STALLS = """
import itertools, sys, threading
from importlib import import_module
from neupath.cli import main

module, calls = import_module("neupath.engine.join"), itertools.count()
write_hits = module.write_hits
module.write_hits = lambda *hits: write_hits(*hits) if next(calls) < 50 else threading.Event().wait()
main(sys.argv[1:])
"""


@pytest.mark.slow
def test_a_killed_join_resumes_to_the_same_file(tmp_path: Path) -> None:
    whole = tmp_path / "whole.parquet"
    join(npth.load("stdlib"), npth.PathSim(PATH), whole, k=3, block=10)
    out = tmp_path / "out.parquet"
    command = [sys.executable, "-c", STALLS, "join", "stdlib", "--metapath", PATH, "-k", "3", "--block", "10"]
    parts = tmp_path / "out.parquet.parts"
    with run_process([*command, "--out", out], stdout=subprocess.DEVNULL) as process:
        wait_until(
            lambda: len(list(parts.glob("0*.parquet"))) >= 5 or process.poll() is not None, "no blocks are written"
        )
        assert process.poll() is None, "it ended before it could be killed"
        process.kill()
    assert not out.exists()
    finished = {part.name: part.stat().st_mtime_ns for part in parts.glob("0*.parquet")}
    joined = join(npth.load("stdlib"), npth.PathSim(PATH), out, k=3, block=10)
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
        ({"measure": JoinSim}, "measure"),
        ({"path": "class-module-class"}, "meta-path or parameter"),
        ({"graph": "changed"}, "graph"),
    ],
)
def test_blocks_of_another_join_are_not_mixed_in(hin: HIN, tmp_path: Path, other: dict, difference: str) -> None:
    def join_as(measure=npth.PathSim, path=PATH, graph="stdlib", progress=lambda *_: None, **options) -> Joined:
        chosen = hin if graph == "stdlib" else with_one_edge_less(hin)
        terms = {"k": 3, "block": 5, "queries": hin.nodes["class"].ids[:60].to_pylist()} | options
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


@pytest.mark.slow
def test_rows_that_were_propagated_are_not_mixed_with_others(hin: HIN, tmp_path: Path, monkeypatch) -> None:
    path = "class-module-class-module-class"
    with monkeypatch.context() as patched:
        patched.setattr(products, "_SMALL", 0)
        patched.setattr(resources, "free_memory", lambda: 10)
        measures = {
            name: measure(path).fit(npth.load("stdlib")) for name, measure in (("a", PCRW), ("b", npth.PathSim))
        }
    for name, measure in measures.items():
        with pytest.raises(KeyboardInterrupt):
            join(measure.hin_, measure, tmp_path / f"{name}.parquet", k=3, block=5, progress=stop)
    with pytest.raises(NeuPathError, match="with another model or way to multiply"):
        join(hin, PCRW(path), tmp_path / "a.parquet", k=3, block=5)
    assert join(hin, npth.PathSim(path), tmp_path / "b.parquet", k=3, block=5).resumed == 3  # of whole numbers


def cut_off(part: Path) -> None:
    part.write_bytes(part.read_bytes()[:-9])


def drop_a_row(part: Path) -> None:
    pq.write_table(pq.read_table(part).slice(1), part)


def swap_rows(part: Path) -> None:
    table = pq.read_table(part)
    pq.write_table(table.take([1, 0, *range(2, len(table))]), part)


def swap_with_another(part: Path) -> None:
    for suffix in (".parquet", ".sha256"):
        first, second = (part.with_name(f"00000{number}{suffix}") for number in (0, 1))
        content = first.read_bytes()
        first.write_bytes(second.read_bytes())
        second.write_bytes(content)


def lose_the_checksum(part: Path) -> None:
    part.with_suffix(".sha256").unlink()


@pytest.mark.parametrize("damage", [cut_off, drop_a_row, swap_rows, swap_with_another, lose_the_checksum])
@pytest.mark.parametrize("name", ["a.parquet", "a"])
@pytest.mark.slow
def test_damaged_blocks_are_ranked_again(hin: HIN, tmp_path: Path, caplog, damage, name: str) -> None:
    def stop(_: str, done: int, __: int | None) -> None:
        if done >= 800:
            raise KeyboardInterrupt

    scorer = npth.PathSim(PATH).fit(hin)
    join(hin, scorer, tmp_path / "whole.parquet", 3, block=400)
    with pytest.raises(KeyboardInterrupt):
        join(hin, scorer, tmp_path / name, 3, block=400, progress=stop)
    parts = tmp_path / f"{name}.parts"
    damage(parts / "000000.parquet")
    joined = join(hin, scorer, tmp_path / name, 3, block=400)
    damaged = 2 if damage is swap_with_another else 1
    assert joined.resumed == 2 - damaged
    assert f"{damaged} of 2 finished blocks in {parts} do not fit their checksums and are ranked again" in caplog.text
    assert pq.read_table(tmp_path / name).equals(pq.read_table(tmp_path / "whole.parquet"))
    assert not parts.exists()


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


def test_a_join_removes_nothing_by_a_link(hin: HIN, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "mine.parquet").write_bytes(b"mine")
    (tmp_path / "out.parquet.parts").symlink_to(other)
    with pytest.raises(NeuPathError, match=r"out\.parquet\.parts is a symbolic link"):
        join(hin, npth.PathSim(PATH).fit(hin), tmp_path / "out.parquet", 2)
    assert (other / "mine.parquet").read_bytes() == b"mine"


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


@pytest.mark.slow
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
        ({"out": "a.txt"}, "cannot join to a.txt; the name must end in .parquet or .csv, or have no ending"),
        ({"out": "a.csv", "format": "neo4j"}, "format is neo4j, and a.csv is for csv; give a name without an ending"),
        ({"out": "a", "format": "csv"}, "format is csv, and a is for parquet; give a name that ends in .csv"),
        ({"out": "a", "format": "json"}, "format is 'json'; it can be parquet, csv, neo4j"),
        ({"out": "/proc/none/a.parquet"}, "cannot write"),
        ({"k": 0}, "k is 0; give a whole number of at least 1"),
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
    assert "the name must end in .parquet" in run("join", "toy", "--metapath", "APVPA", "--out", "x.txt").err


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


@pytest.mark.slow
def test_blocks_of_a_model_that_learned_something_else_are_refused(tmp_path: Path, monkeypatch) -> None:
    from neupath.learn.models import RGCN

    hin = npth.load("toy")
    labels = [("Mike", "Bob", 1.0), ("Mike", "Ann", 0.0), ("Mary", "Ann", 0.5)]
    one, other = (RGCN(dim=4, epochs=2).fit(hin, some) for some in (labels, labels[:2]))
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


# ---- Names and other formats ---------------------------------------------------------------------
@pytest.fixture
def named() -> HIN:
    """People who like films: both have names, one of them none, and one with a comma and quotes."""
    people = Nodes("person", pa.array([7, 8, 9]), pa.array(["Ann", None, 'O"Hara, "Zoë"']))
    films = Nodes("film", pa.array(["f1", "f2"]), pa.array(["Up", "Heat"]))
    likes = Edges(Relation("person", "likes", "film"), np.array([0, 1, 2, 2]), np.array([0, 0, 0, 1]))
    return HIN.build([people, films], [likes])


NAMED = [
    (7, 1, 8, 1.0, "Ann", None),
    (7, 2, 9, 2 / 3, "Ann", 'O"Hara, "Zoë"'),
    (8, 1, 7, 1.0, None, "Ann"),
    (8, 2, 9, 2 / 3, None, 'O"Hara, "Zoë"'),
    (9, 1, 7, 2 / 3, 'O"Hara, "Zoë"', "Ann"),
    (9, 2, 8, 2 / 3, 'O"Hara, "Zoë"', None),
]


@pytest.mark.parametrize("out", ["top.parquet", "top", "top.csv"])
@pytest.mark.parametrize("block", [1, 4096])
def test_names_stand_beside_ids(named: HIN, tmp_path: Path, out: str, block: int) -> None:
    joined = join(named, npth.PathSim("person-film-person"), tmp_path / out, block=block)
    table = joined.to_table()
    assert table.column_names == ["query", "rank", "target", "score", "query_name", "target_name"]
    rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    if out.endswith(".csv"):  # which has no nulls of texts
        rows = [(*row[:4], *(name or None for name in row[4:])) for row in rows]
    assert rows == NAMED
    assert joined.to_pandas()["target_name"][2] == "Ann"


def test_targets_alone_have_names(named: HIN, tmp_path: Path) -> None:
    bare = HIN.build(
        [Nodes("person", named.nodes["person"].ids), named.nodes["film"]],
        [Edges(next(iter(named.matrices)), np.array([0, 2]), np.array([0, 1]))],
    )
    table = join(bare, PathCount("person-film"), tmp_path / "top.parquet").to_table()
    assert table.column_names == ["query", "rank", "target", "score", "target_name"]
    assert table["target_name"].to_pylist() == ["Up", "Heat"]


def interrupt_join(hin: HIN, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin a join of single queries, and interrupt it at the second."""
    write, calls = module.write_hits, itertools.count()

    def interrupt(*hits: object) -> None:
        if next(calls) == 1:
            raise KeyboardInterrupt
        write(*hits)

    monkeypatch.setattr(module, "write_hits", interrupt)
    with pytest.raises(KeyboardInterrupt):
        join(hin, npth.PathSim("person-film-person"), out, block=1)


def test_a_csv_file_is_the_same_after_an_interruption(named: HIN, tmp_path: Path, monkeypatch) -> None:
    whole = join(named, npth.PathSim("person-film-person"), tmp_path / "whole.csv", block=1).path.read_bytes()
    assert whole.splitlines()[0] == b'"query","rank","target","score","query_name","target_name"'
    interrupt_join(named, tmp_path / "top.csv", monkeypatch)
    joined = join(named, npth.PathSim("person-film-person"), tmp_path / "top.csv", block=1)
    assert joined.resumed == 1
    assert joined.path.read_bytes() == whole
    assert sorted(path.name for path in tmp_path.iterdir()) == ["top.csv", "whole.csv"]


def test_files_for_neo4j(named: HIN, tmp_path: Path) -> None:
    joined = join(named, HeteSim("person-film-person"), tmp_path / "graph", k=1, format="neo4j")
    assert sorted(path.name for path in joined.path.iterdir()) == [
        "load.cypher",
        "nodes-person.csv",
        "relationships.csv",
    ]
    assert (joined.path / "nodes-person.csv").read_text().splitlines() == [
        "id:ID(person),name,:LABEL", '7,"Ann","person"', '8,,"person"', '9,"O""Hara, ""Zoë""","person"'
    ]  # fmt: skip
    lines = (joined.path / "relationships.csv").read_text().splitlines()
    assert lines[:2] == [":START_ID(person),:END_ID(person),score:double,rank:long,:TYPE", '7,8,1,1,"SIMILAR"']
    assert len(lines) == 4
    join(named, PathCount("person-film"), tmp_path / "two", format="neo4j")
    assert sorted(path.name for path in (tmp_path / "two").iterdir()) == [
        "load.cypher", "nodes-film.csv", "nodes-person.csv", "relationships.csv"
    ]  # fmt: skip
    with pytest.raises(NeuPathError, match="holds files for Neo4j; join to Parquet or CSV to read the result back"):
        joined.to_table()


def test_pairs_become_an_edge_index(named: HIN, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    for out in ("top.parquet", "top.csv"):
        joined = join(named, npth.PathSim("person-film-person"), tmp_path / out)
        edge_index, edge_weight = joined.to_pyg()
        assert edge_index.tolist() == [[0, 0, 1, 1, 2, 2], [1, 2, 0, 2, 0, 1]]
        assert edge_weight.tolist() == pytest.approx([row[3] for row in NAMED])


def test_texts_that_look_like_numbers_stay_texts_in_csv(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    ids, names = pa.array(["007", "7", "1e3"]), pa.array(["one\nline", "two", None])
    likes = Edges(Relation("a", "likes", "b"), np.array([0, 1, 2]), np.array([0, 0, 0]))
    hin = HIN.build([Nodes("a", ids, names), Nodes("b", pa.array(["x"]))], [likes])
    joined = join(hin, npth.PathSim("aba"), tmp_path / "top.csv")
    assert joined.to_table()["query_name"].to_pylist()[:3] == ["one\nline", "one\nline", "two"]
    assert joined.to_table()["query"].to_pylist() == ["007", "007", "7", "7", "1e3", "1e3"]
    assert joined.to_pyg()[0].tolist() == [[0, 0, 1, 1, 2, 2], [1, 2, 0, 2, 0, 1]]
    joined.path.write_text(joined.path.read_text().replace("007", "008"))
    with pytest.raises(NeuPathError, match="has ids that are not in this graph"):
        joined.to_pyg()


def test_blocks_of_an_earlier_version_without_names_are_not_mixed_in(named: HIN, tmp_path: Path, monkeypatch) -> None:
    interrupt_join(named, tmp_path / "top.parquet", monkeypatch)
    manifest = tmp_path / "top.parquet.parts" / "join.json"
    content = json.loads(manifest.read_text())
    del content["names"]
    manifest.write_text(json.dumps(content))
    with pytest.raises(NeuPathError, match="another set of names, as joins of earlier versions have none"):
        join(named, npth.PathSim("person-film-person"), tmp_path / "top.parquet", block=1)


def test_the_command_writes_other_formats(run: Run, tmp_path: Path) -> None:
    assert run("join", "toy", "-p", "APVPA", "-k", 2, "--out", tmp_path / "top.csv").code == 0
    assert (tmp_path / "top.csv").read_text().splitlines()[:2] == [
        '"query","rank","target","score"',
        '"Mike",1,"Bob",1',
    ]
    assert run("join", "toy", "-p", "APVPA", "--format", "neo4j", "--out", tmp_path / "graph").code == 0
    assert (tmp_path / "graph" / "relationships.csv").is_file()
    refused = run("join", "toy", "-p", "APVPA", "--format", "neo4j", "--out", tmp_path / "graph.csv")
    assert (refused.code, "--format is neo4j, and" in refused.err) == (2, True)
