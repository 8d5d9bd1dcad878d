"""Folders of Parquet tables, and what a cluster makes of them."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import neupath as npth
from neupath import join
from neupath.cluster import Dask, join_plan, plan_folder
from neupath.engine.join import JoinOptions
from neupath.measures import measure_named


def write_parts(folder: Path, name: str, table: pa.Table, parts: int, row_group: int = 250) -> None:
    """Write a table as a folder of parts, or as one file."""
    if parts == 1:
        pq.write_table(table, folder / f"{name}.parquet", row_group_size=row_group)
        return
    (folder / name).mkdir()
    (folder / name / "_SUCCESS").write_text("")
    for part, at in enumerate(np.array_split(np.arange(len(table)), parts)):
        pq.write_table(table.take(at), folder / name / f"part-{part:03}.parquet", row_group_size=row_group)


def edges(kind: Callable[[str, int], object]) -> dict[str, pa.Table]:
    """Authors, papers and venues: parallel edges, a hub with a tenth of them, weights that are no round numbers."""
    rng = np.random.default_rng(3)
    authors, papers = rng.integers(0, 150, 2000), rng.integers(0, 180, 2000)
    authors[rng.permutation(2000)[:200]] = 7
    papers[authors == 7] = rng.integers(0, 30, (authors == 7).sum())  # the hub's edges are parallel many times over
    columns = {
        "author_id": [kind("a", int(i)) for i in authors],
        "paper_id": [kind("p", int(i)) for i in papers],
    }
    columns["weight"] = rng.choice([0.1, 0.7, 1.0, 3.3, 0.0, 1e-5], 2000).tolist()
    places = rng.integers(0, 9, 170)
    at = {"paper_id": [kind("p", i) for i in range(170)], "venue_id": [kind("v", int(i)) for i in places]}
    return {"author_paper": pa.table(columns), "paper_venue": pa.table(at)}


def text_id(letter: str, number: int) -> str:
    return f"{letter}{number}-é"


def number_id(_: str, number: int) -> int:
    return number * 1_000_003 - 500


def text_of_number(_: str, number: int) -> str:
    return str(number)


def write_tables(folder: Path, kind: Callable[[str, int], object], parts: int) -> Path:
    folder.mkdir()
    for name, table in edges(kind).items():
        write_parts(folder, name, table, parts)
    return folder


def same_from_tables(measure: str, path: str, folder: Path, out: Path, engine: Dask, terms: JoinOptions) -> bool:
    """Whether a join of tables that workers read writes the very file that one of the loaded graph does."""
    here, there = out / "here.parquet", out / "there.parquet"
    join(npth.load(folder), measure_named(measure, path), here, terms.k, block=terms.block)
    plan = plan_folder(folder)
    assert plan is not None
    join_plan(measure_named(measure, path), plan, there, terms, engine=engine)
    assert not list(out.glob("*.parts"))
    return here.read_bytes() == there.read_bytes()
