"""One contract for three readers: memory, disk and cluster read the same ids and edges, or raise the same error."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import neupath as npth
from neupath import NeuPathError
from neupath.io import import_store, out_of_core
from neupath.io import tables as table_files

Graph = tuple[dict[str, list[object]], dict[str, list[list[object]]]]
"""The ids of each node type in order, and the row pointers, columns and weights of each relation's matrix."""


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut tables into batches of a few rows, so that everything continues in the next one."""
    monkeypatch.setattr(table_files, "_BATCH_ROWS", 2)
    monkeypatch.setattr(out_of_core, "BATCH_ROWS", 3)


class InlineWorkers:
    """Runs the tasks of a cluster in this process."""

    count, memory = 2, 1 << 34

    def each(self, work: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], *_: object) -> list[Any]:
        return [work(*values) for values in arguments]


def read_in_memory(folder: Path, _: Path, **options: Any) -> Graph:
    hin = npth.load(folder, **options)
    ids = {node_type: nodes.ids.to_pylist() for node_type, nodes in hin.nodes.items()}
    matrices = {str(r): [m.indptr.tolist(), m.indices.tolist(), m.data.tolist()] for r, m in hin.matrices.items()}
    return ids, matrices


def read_out_of_core(folder: Path, work: Path, **options: Any) -> Graph:
    return read_in_memory(import_store(folder, work / "store", memory_limit="200MiB", **options), work)


def read_on_cluster(folder: Path, work: Path, **options: Any) -> Graph:
    pytest.importorskip("distributed")
    from neupath.cluster import plan_folder
    from neupath.cluster.ingestion import ingest

    plan = plan_folder(folder, **options)
    assert plan is not None
    workers: Any = InlineWorkers()
    graph = ingest(plan, set(plan.schema.relations), work / "tiles", workers, 3)
    ids = {node_type: ids.take(np.arange(len(ids))).to_pylist() for node_type, ids in graph.ids.items()}
    matrices = {}
    for relation, tiles in graph.tiles.items():
        strips = [tiles.row_strip(number) for number in range(tiles.shape[0])]
        lengths = np.concatenate([np.diff(strip.indptr) for strip in strips])
        columns, weights = (np.concatenate([getattr(s, part) for s in strips]) for part in ("indices", "data"))
        matrices[str(relation)] = [
            np.concatenate([[0], np.cumsum(lengths)]).tolist(),
            columns.tolist(),
            weights.tolist(),
        ]
    return ids, matrices


OTHER_READERS = [read_out_of_core, read_on_cluster]
AUTHORS = {"author_id": ["b", "a", "z"], "name": ["Bob", "Ann", "Zoe"]}
PARALLEL = {
    "author_id": ["a", "b", "a", "c", "a", "b", "a"],
    "paper_id": [2, 1, 2, 1, 3, 1, 2],
    "weight": [0.1, 1.0, 0.7, 0.0, 1e-5, 3.3, 0.2],
}
GOOD: dict[str, Mapping[str, Mapping[str, list[Any]]]] = {
    "ids in order of appearance": {
        "author_paper": {"author_id": ["c", "a", "b", "a"], "paper_id": [9, 7, 9, 8]},
        "paper_venue": {"paper_id": [8, 5], "venue_id": ["v", "u"]},
    },
    "node tables decide the order": {"authors": AUTHORS, "author_paper": {"author_id": ["a", "b"], "paper_id": [2, 1]}},
    "texts that are integers": {"author_paper": {"author_id": ["10", "9", "10"], "paper_id": ["x", "1", "1"]}},
    "integers here and texts there": {
        "author_paper": {"author_id": ["a", "b"], "paper_id": ["8", "9"]},
        "paper_venue": {"paper_id": [9, 7], "venue_id": [1, 2]},
    },
    "parallel edges with weights": {"author_paper": PARALLEL},
    "a type to itself": {"paper_cites_paper": {"paper_id": [1, 2, 1, 3], "cited_paper_id": [2, 1, 2, 3]}},
    "no edges": {"authors": AUTHORS, "author_paper": {"author_id": ["a"] * 0, "paper_id": [1] * 0}},
}
BAD: dict[str, tuple[Mapping[str, Mapping[str, list[Any]]], str]] = {
    "an edge to an unknown node": (
        {"authors": AUTHORS, "author_paper": {"author_id": ["a", "b", "x", "y"], "paper_id": [1, 2, 3, 4]}},
        r"author_paper.parquet, row 3: the edge leads to author 'x', which is not in the node table of author \(2 such",
    ),
    "a repeated node": (
        {"authors": {"author_id": ["a", "b", "a", "b"]}, "author_paper": {"author_id": ["a"], "paper_id": [1]}},
        "authors.parquet, row 3: node id 'a' is repeated",
    ),
    "a node without an id": (
        {"authors": {"author_id": ["a", None]}, "author_paper": {"author_id": ["a"], "paper_id": [1]}},
        "authors.parquet, row 2: the node has an empty id",
    ),
    "an edge without an end": (
        {"author_paper": {"author_id": ["a", "", "c"], "paper_id": [1, 2, 3]}},
        "author_paper.parquet, row 2: the edge has an empty author id",
    ),
    "a negative weight": (
        {"author_paper": {"author_id": ["a", "b"], "paper_id": [1, 2], "weight": [1.0, -1.0]}},
        r"author_paper.parquet, row 2: weight '-1' is not allowed",
    ),
    "weights that add up to infinity": (
        {"author_paper": {"author_id": ["a", "a"], "paper_id": [1, 1], "weight": [1.1e308, 1.1e308]}},
        "weights of parallel edges of 'author -author_paper-> paper' add up to more than a float",
    ),
}


def write_folder(folder: Path, tables: Mapping[str, Mapping[str, list[Any]]]) -> Path:
    folder.mkdir()
    for name, columns in tables.items():
        kinds = {"paper_id": pa.int64()} if name == "author_paper" and not columns["paper_id"] else {}
        arrays = {column: pa.array(values, kinds.get(column)) for column, values in columns.items()}
        arrays = {c: a.cast(pa.string()) if pa.types.is_null(a.type) else a for c, a in arrays.items()}
        pq.write_table(pa.table(arrays), folder / f"{name}.parquet", row_group_size=2)
    return folder


@pytest.mark.parametrize("read", OTHER_READERS)
@pytest.mark.parametrize("duplicates", ["count", "drop"])
@pytest.mark.parametrize("case", list(GOOD))
@pytest.mark.slow
def test_all_readers_read_the_same_graph(
    tmp_path: Path, case: str, duplicates: str, read: Callable[..., Graph]
) -> None:
    folder = write_folder(tmp_path / "tables", GOOD[case])
    expected = read_in_memory(folder, tmp_path, duplicates=duplicates)
    assert read(folder, tmp_path, duplicates=duplicates) == expected
    assert any(expected[0].values())


@pytest.mark.parametrize("read", OTHER_READERS)
def test_all_readers_read_undirected_relations_alike(tmp_path: Path, read: Callable[..., Graph]) -> None:
    folder = write_folder(tmp_path / "tables", GOOD["a type to itself"])
    (folder / "graph.toml").write_text('undirected = ["cites"]\n')
    expected = read_in_memory(folder, tmp_path)
    assert read(folder, tmp_path) == expected
    ((matrix,),) = (expected[1].values(),)
    assert matrix == [[0, 1, 2, 3], [1, 0, 2], [3.0, 3.0, 1.0]]


@pytest.mark.parametrize("read", [read_in_memory, *OTHER_READERS])
@pytest.mark.parametrize("case", list(BAD))
def test_all_readers_raise_the_same_error(tmp_path: Path, case: str, read: Callable[..., Graph]) -> None:
    tables, message = BAD[case]
    folder = write_folder(tmp_path / "tables", tables)
    with pytest.raises(NeuPathError, match=message) as raised:
        read(folder, tmp_path)
    with pytest.raises(type(raised.value)) as in_memory:
        npth.load(folder)
    assert str(raised.value) == str(in_memory.value)


def test_parallel_edges_are_merged_in_the_order_of_the_table(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "tables", GOOD["parallel edges with weights"])
    ids, matrices = read_in_memory(folder, tmp_path)
    assert ids == {"author": ["a", "b", "c"], "paper": [2, 1, 3]}
    assert matrices == {"author -author_paper-> paper": [[0, 2, 3, 3], [0, 2, 1], [0.1 + 0.7 + 0.2, 1e-5, 1.0 + 3.3]]}
