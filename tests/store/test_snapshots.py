"""The files of a snapshot: both widths of indices."""

import numpy as np
import pyarrow as pa
import pytest

from neupath import PathSim
from neupath.graph.edges import index_type
from neupath.graph.metapath import Relation, Schema
from neupath.store import StoreLayout, node_table, snapshots
from neupath.store.database import VersionFacts
from neupath.store.versions import to_hin

SCHEMA = Schema(("a", "b"), (Relation("a", "r", "b"),))
EDGES = np.array([0, 0, 1, 2, 2]), np.array([0, 1, 1, 0, 1]), np.array([1.0, 2.0, 1.0, 3.0, 1.0])


@pytest.mark.parametrize(
    ("shape", "entries", "bits"),
    [((5, 5), 2**31 - 1, 32), ((5, 5), 2**31, 64), ((2**31 - 1, 5), 1, 32), ((2**31, 5), 1, 64), ((5, 2**31), 1, 64)],
)
def test_indices_are_as_wide_as_the_largest_number(shape: tuple[int, int], entries: int, bits: int) -> None:
    assert index_type(shape, entries).itemsize * 8 == bits


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.slow
def test_a_snapshot_of_either_width_is_searched(tmp_path, monkeypatch: pytest.MonkeyPatch, index: type) -> None:
    monkeypatch.setattr(snapshots, "index_type", lambda *_: np.dtype(index))
    snapshots.write_matrix(tmp_path, 0, (3, 2), 5, [tuple(part[:2] for part in EDGES), tuple(p[2:] for p in EDGES)])
    for number, count in enumerate((3, 2)):
        table = node_table(pa.array(np.arange(count)), None, pa.table({}))
        with snapshots.writing_table(snapshots.node_file(tmp_path, number), table.schema) as out:
            out.write_table(table)
    facts = VersionFacts(0, 5, 5, 0, 0)
    snapshots.seal(tmp_path, facts)
    layout = StoreLayout(SCHEMA, (False, False), (pa.schema([]), pa.schema([])))
    hin = to_hin(layout, snapshots.map_snapshot(tmp_path, layout, facts, verify=True))
    (matrix,) = hin.matrices.values()
    assert matrix.indices.dtype == matrix.indptr.dtype == index
    assert matrix.toarray().tolist() == [[1.0, 2.0], [0.0, 1.0], [3.0, 1.0]]
    hits = PathSim("a-b-a").fit(hin).top_k(0)
    assert [(hit.id, hit.score) for hit in hits] == [(1, 2 * 2 / (5 + 1)), (2, 2 * 5 / (5 + 10))]
