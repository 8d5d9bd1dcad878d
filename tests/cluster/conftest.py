from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("distributed")
pytest.importorskip("cryptography")

from neupath import HIN
from neupath.cluster import dask_engine as engine
from neupath.graph.hin import Edges
from neupath.graph.metapath import Relation
from neupath.graph.nodes import Nodes
from tests.cluster.clusters import InlineWorkers


@pytest.fixture
def inline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the tasks of the engine in this process."""

    @contextmanager
    def connect(*_: object) -> Iterator[InlineWorkers]:
        yield InlineWorkers()

    monkeypatch.setattr(engine, "connect", connect)


@pytest.fixture(scope="session")
def weighted() -> HIN:
    """Authors, some with a name, papers and venues: fractional weights, ties, a hub, and nodes without edges."""
    rng = np.random.default_rng(5)
    sizes = {"author": 300, "paper": 400, "venue": 12}
    authors, papers = rng.integers(0, 290, 1500), rng.integers(0, 390, 1500)
    authors[:150] = 7  # a tenth of the edges
    names = {"author": pa.array([f"Author {i}" if i % 3 else None for i in range(300)])}
    return HIN.build(
        [Nodes(kind, pa.array([f"{kind}{i}" for i in range(size)]), names.get(kind)) for kind, size in sizes.items()],
        [
            Edges(Relation("author", "writes", "paper"), authors, papers, rng.choice([0.1, 0.7, 1.0, 3.3], 1500)),
            Edges(Relation("paper", "at", "venue"), np.arange(390), rng.integers(0, 12, 390)),
        ],
    )
