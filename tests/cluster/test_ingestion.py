"""Tables read by the workers: the same nodes, edges, files and sentences as when `load` reads them."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import neupath as npth
from neupath import NeuPathError, join
from neupath.cluster import Dask, join_folder, join_plan, plan_folder
from neupath.cluster import id_encoding as chunks
from neupath.cluster.id_encoding import hash_ids
from neupath.cluster.ingestion import ingest
from neupath.engine.join import JoinOptions
from neupath.io.tables import TableFile
from neupath.measures import measure_named, walk_measures
from tests.cluster.clusters import InlineWorkers
from tests.cluster.table_folders import (
    edges,
    number_id,
    same_from_tables,
    text_id,
    text_of_number,
    write_parts,
    write_tables,
)
from tests.command_line import Run

APVPA = "author-paper-venue-paper-author"


def assert_same_graph(folder: Path, work: Path, most: int, **options) -> None:
    """Compare ids and matrices with those that `load` makes, to the bit."""
    hin = npth.load(folder, **options)
    plan = plan_folder(folder, **options)
    assert plan is not None
    assert plan.schema == hin.schema
    graph = ingest(plan, set(hin.schema.relations), work, InlineWorkers(), most)
    for node_type, nodes in hin.nodes.items():
        ids = graph.ids[node_type]
        assert ids.type == nodes.ids.type
        assert len(ids) == len(nodes)
        assert ids.take(np.arange(len(nodes))).equals(nodes.ids)
    for relation, matrix in hin.matrices.items():
        tiles = graph.tiles[relation]
        strips = [tiles.row_strip(i) for i in range(tiles.shape[0])]
        assert np.array_equal(np.concatenate([np.diff(strip.indptr) for strip in strips]), np.diff(matrix.indptr))
        assert np.array_equal(np.concatenate([strip.indices for strip in strips]), matrix.indices)
        assert np.array_equal(np.concatenate([strip.data for strip in strips]), matrix.data)


@pytest.mark.parametrize("kind", [text_id, number_id, text_of_number])
@pytest.mark.parametrize("most", [300, 10**6])
@pytest.mark.slow
def test_the_graph_equals_that_of_load(tmp_path: Path, kind: Callable[[str, int], object], most: int) -> None:
    assert_same_graph(write_tables(tmp_path / "tables", kind, 3), tmp_path / "work", most)


@pytest.mark.parametrize("kind", [text_id, number_id])
@pytest.mark.parametrize("duplicates", ["count", "drop"])
@pytest.mark.slow
def test_node_tables_and_parallel_edges(tmp_path: Path, kind: Callable, duplicates: str) -> None:
    folder = write_tables(tmp_path / "tables", kind, 2)
    order = np.random.default_rng(1).permutation(200)
    authors = pa.table({"author_id": [kind("a", int(i)) for i in order], "name": [f"n{i}" for i in order]})
    write_parts(folder, "authors", authors, 2)
    write_parts(folder, "papers", pa.table({"paper_id": [kind("p", i) for i in range(180)]}), 1)
    assert_same_graph(folder, tmp_path / "work", 400, duplicates=duplicates)


def test_ids_that_are_integers_in_one_table_and_texts_in_another(tmp_path: Path) -> None:
    pq.write_table(pa.table({"author_id": [3, 1, 3], "paper_id": ["9", "8", "x"]}), tmp_path / "author_paper.parquet")
    pq.write_table(pa.table({"paper_id": [8, 9], "venue_id": [1, 1]}), tmp_path / "paper_venue.parquet")
    assert_same_graph(tmp_path, tmp_path / "work", 100)
    (tmp_path / "papers.parquet").unlink(missing_ok=True)
    pq.write_table(pa.table({"author_id": ["1", "3"]}), tmp_path / "authors.parquet")
    assert_same_graph(tmp_path, tmp_path / "again", 100)


@pytest.mark.slow
def test_columns_named_in_graph_toml(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    folder = npth.write_folder(npth.load("toy"), tmp_path / "toy")
    assert_same_graph(folder, tmp_path / "work", 3)
    links = {"a": rng.integers(0, 40, 300), "b": rng.integers(0, 40, 300), "weight": rng.random(300)}
    (tmp_path / "g").mkdir()
    pq.write_table(pa.table(links), tmp_path / "g" / "cites.parquet", row_group_size=50)
    pq.write_table(pa.table(links), tmp_path / "g" / "other.parquet")
    (tmp_path / "g" / "graph.toml").write_text(
        'take = ["cites"]\n[[edges]]\nname = "cites"\nfile = "cites.parquet"\nsource = "paper"\ntarget = "paper"\n'
        'undirected = true\n[[edges]]\nname = "other"\nfile = "other.parquet"\nsource = "x"\ntarget = "y"\n'
    )
    for number, duplicates in enumerate(["count", "drop"]):
        assert_same_graph(tmp_path / "g", tmp_path / f"cites-{number}", 60, duplicates=duplicates)


@pytest.mark.parametrize("most", [100, 333, 999, 1000, 1999])
@pytest.mark.slow
def test_a_row_group_larger_than_a_task_is_cut(tmp_path: Path, monkeypatch, most: int) -> None:
    monkeypatch.setattr(chunks, "_BATCH_ROWS", 70)
    folder = tmp_path / "tables"
    folder.mkdir()
    for name, table in edges(text_id).items():
        write_parts(folder, name, table, 1, row_group=2000)
    cut = chunks.cut_table(TableFile(folder / "author_paper.parquet"), ["author_id"], most)
    assert len(cut) == -(-2000 // most)
    assert max(chunk.rows for chunk in cut) <= most
    assert_same_graph(folder, tmp_path / "work", most)


def test_parts_in_folders_named_after_a_value(tables: Path, tmp_path: Path) -> None:
    for number, part in enumerate(sorted((tables / "author_paper").glob("*.parquet"))):
        folder = tables / "author_paper" / f"year={number % 2}"
        folder.mkdir(exist_ok=True)
        part.rename(folder / part.name)
    assert_same_graph(tables, tmp_path / "work", 300)


def test_tables_without_rows(tmp_path: Path) -> None:
    none = pa.table({"author_id": pa.array([], pa.string()), "paper_id": pa.array([], pa.string())})
    pq.write_table(none, tmp_path / "author_paper.parquet")
    pq.write_table(pa.table({"paper_id": ["p"], "venue_id": ["v"]}), tmp_path / "paper_venue.parquet")
    assert_same_graph(tmp_path, tmp_path / "work", 100)


@pytest.mark.usefixtures("inline")
@pytest.mark.parametrize(("measure", "strip"), [*((measure, 400) for measure in walk_measures()), ("pathsim", None)])
@pytest.mark.slow
def test_the_result_equals_that_of_one_process(tables: Path, tmp_path: Path, measure: str, strip: int | None) -> None:
    assert same_from_tables(measure, APVPA, tables, tmp_path, Dask(strip=strip), JoinOptions(5, block=32))


@pytest.mark.usefixtures("inline")
@pytest.mark.parametrize("measure", ["hetesim", "pathcount", "pcrw", "dwpc"])
@pytest.mark.slow
def test_targets_of_another_type(tables: Path, tmp_path: Path, measure: str) -> None:
    path = "author-paper-author-paper-venue" if measure == "hetesim" else "author-paper-venue"
    assert same_from_tables(measure, path, tables, tmp_path, Dask(strip=2000), JoinOptions(5))


@pytest.mark.usefixtures("inline")
@pytest.mark.parametrize("kind", [text_id, number_id])
@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.slow
def test_names_of_node_tables(tmp_path: Path, kind: Callable, parts: int) -> None:
    folder = tmp_path / "tables"
    folder.mkdir()
    for name, table in edges(kind).items():
        write_parts(folder, name, table, parts)
    people = {"author_id": [kind("a", i) for i in range(150)], "name": [f"N{i}" if i % 4 else None for i in range(150)]}
    write_parts(folder, "authors", pa.table(people), parts, row_group=40)
    here, there = tmp_path / "here.parquet", tmp_path / "there.parquet"
    hin = npth.load(folder)
    assert hin.nodes["author"].names is not None
    join(hin, npth.PathSim("author-paper-author"), here, 3)
    join_folder(npth.PathSim("author-paper-author"), folder, there, 3)
    assert pq.read_schema(here).names[4:] == ["query_name", "target_name"]
    assert here.read_bytes() == there.read_bytes()


@pytest.mark.usefixtures("inline")
@pytest.mark.slow
def test_a_step_over_several_relations(tmp_path: Path) -> None:
    folder = write_tables(tmp_path / "tables", text_id, 2)
    likes = edges(text_id)["author_paper"].slice(500, 700)
    pq.write_table(likes, folder / "author_likes_paper.parquet", row_group_size=100)
    for measure in ("pathsim", "dwpc"):
        assert same_from_tables(measure, APVPA, folder, tmp_path, Dask(strip=500), JoinOptions(5))


@pytest.mark.usefixtures("inline")
@pytest.mark.slow
def test_an_interrupted_join_resumes(tables: Path, tmp_path: Path) -> None:
    def stop(_: str, done: int, __: int | None) -> None:
        if done > 50:
            raise KeyboardInterrupt

    plan, measure, terms = plan_folder(tables), measure_named("pathsim", APVPA), JoinOptions(5, block=10)
    assert plan is not None
    with pytest.raises(KeyboardInterrupt):
        join_plan(measure, plan, tmp_path / "there.parquet", terms, engine=Dask(strip=300), progress=stop)
    joined = join_plan(measure, plan, tmp_path / "there.parquet", terms, engine=Dask(strip=400))
    assert 0 < joined.resumed < joined.blocks
    join(npth.load(tables), measure, tmp_path / "here.parquet", 5, block=10)
    assert (tmp_path / "here.parquet").read_bytes() == (tmp_path / "there.parquet").read_bytes()


@pytest.mark.usefixtures("inline")
def test_blocks_of_other_columns_are_not_mixed_in(tmp_path: Path) -> None:
    def stop(_: str, done: int, __: int | None) -> None:
        if done > 3:
            raise KeyboardInterrupt

    rng, folder = np.random.default_rng(0), tmp_path / "g"
    folder.mkdir()
    columns = {"a": rng.integers(0, 20, 80), "b": rng.integers(0, 20, 80), "x": rng.random(80), "y": rng.random(80)}
    pq.write_table(pa.table(columns), folder / "cites.parquet")
    text = '[[edges]]\nname = "cites"\nfile = "cites.parquet"\nsource = "author"\ntarget = "paper"\nweight = "{}"\n'
    out, terms, measure = tmp_path / "top.parquet", JoinOptions(5, block=2), npth.PathSim("author-paper-author")
    (folder / "graph.toml").write_text(text.format("x"))
    with pytest.raises(KeyboardInterrupt):
        join_plan(measure, plan_folder(folder), out, terms, engine=Dask(), progress=stop)
    (folder / "graph.toml").write_text(text.format("y"))
    with pytest.raises(NeuPathError, match="holds blocks of another join"):
        join_plan(measure, plan_folder(folder), out, terms, engine=Dask())


@pytest.mark.usefixtures("inline")
def test_a_folder_of_files(tables: Path, tmp_path: Path) -> None:
    here = join(npth.load(tables), npth.PathSim(APVPA), tmp_path / "here", 5, block=20).path
    there = join_folder(npth.PathSim(APVPA), tables, tmp_path / "there", 5, block=20, engine=Dask()).path
    names = sorted(path.name for path in here.iterdir())
    assert names == sorted(path.name for path in there.iterdir())
    assert all((here / name).read_bytes() == (there / name).read_bytes() for name in names)
    assert sorted(tmp_path.iterdir()) == [here, tables, there]


@pytest.mark.usefixtures("inline")
def test_a_missing_folder(tables: Path, tmp_path: Path) -> None:
    with pytest.raises(NeuPathError, match=r"cannot write .*none/a.parquet.lock: No such file"):
        join_plan(npth.PathSim(APVPA), plan_folder(tables), tmp_path / "none" / "a.parquet", engine=Dask())


BAD = {
    "dangling": ("author_paper", {"author_id": ["a", "b", "a"], "paper_id": ["p", "zz", "zz"]}),
    "dangling source": ("author_paper", {"author_id": ["a", "q", "a"], "paper_id": ["p", "p", "zz"]}),
    "empty end": ("author_paper", {"author_id": ["a", "b", ""], "paper_id": ["p", "p", "zz"]}),
    "no end": ("author_paper", {"author_id": ["a", "b", "a"], "paper_id": ["p", None, "p"]}),
    "weight": ("author_paper", {"author_id": ["a", "b"], "paper_id": ["p", "p"], "weight": [1.0, -2.5]}),
    "repeated": ("papers", {"paper_id": ["p", "o", "q", "o", "p"]}),
    "empty id": ("papers", {"paper_id": ["p", "o", "p", None]}),
}


@pytest.mark.usefixtures("inline")
@pytest.mark.parametrize("case", BAD)
def test_bad_tables_raise_the_errors_of_load(tmp_path: Path, case: str) -> None:
    folder = tmp_path / "g"
    folder.mkdir()
    content = {
        "author_paper": {"author_id": ["a", "b"], "paper_id": ["p", "p"]},
        "authors": {"author_id": ["b", "a"]},
        "papers": {"paper_id": ["p", "o"]},
    } | {BAD[case][0]: BAD[case][1]}
    for name, columns in content.items():
        write_parts(folder, name, pa.table(columns), 2, row_group=1)
    with pytest.raises(NeuPathError) as here:
        npth.load(folder)
    plan = plan_folder(folder)
    assert plan is not None
    with pytest.raises(NeuPathError) as there:
        join_plan(npth.PathSim("author-paper-author"), plan, tmp_path / "there.parquet")
    assert str(there.value) == str(here.value)
    assert not list(tmp_path.glob("there*"))


def test_tables_that_workers_cannot_read_are_read_here(tmp_path: Path) -> None:
    (tmp_path / "author_paper.csv").write_text("author_id,paper_id\n1,2\n")
    assert plan_folder(tmp_path) is None
    with pytest.raises(NeuPathError, match="is not a folder of Parquet tables, .* load it in this process"):
        join_folder(npth.PathSim("author-paper-author"), tmp_path, tmp_path / "top.parquet")
    assert plan_folder("toy") is None
    folder = npth.write_folder(npth.load("toy"), tmp_path / "toy")
    assert plan_folder(folder, duplicates="error") is None


@pytest.mark.slow
def test_the_command(run: Run, tmp_path: Path) -> None:
    folder = npth.write_folder(npth.load("toy"), tmp_path / "toy")
    out, here = tmp_path / "there.parquet", tmp_path / "here.parquet"
    options = ["--metapath", "APVPA", "--engine", "dask", "--workers", 1]
    assert run("join", folder, *options, "--out", out).code == 0
    join(npth.load("toy"), npth.PathSim("APVPA"), here, 10)
    assert out.read_bytes() == here.read_bytes()
    result = run("join", "toy", *options, "--ingest", "cluster", "--out", out)
    assert result.code == 2
    assert "toy is not a folder of Parquet tables" in result.err
    result = run("join", folder, "--metapath", "APVPA", "--ingest", "local", "--out", out)
    assert "--ingest only works with a cluster" in result.err
    options = ["--metapath", "AP", *options[2:], "--measure", "hetesim", "--ingest", "cluster"]
    result = run("join", folder, *options, "--out", out)
    assert "hetesim along 'author-paper' is made of more than" in result.err


def test_ids_are_spread_over_buckets() -> None:
    for ids in (pa.array([f"author/{i}" for i in range(10_000)]), pa.array(np.arange(10_000) * 64)):
        sizes = np.bincount(hash_ids(ids) % np.uint64(16), minlength=16)
        assert sizes.max() < 2 * sizes.mean()
