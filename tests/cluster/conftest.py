import gc
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from neupath import HIN
from neupath.cluster import Cluster
from neupath.graph.hin import Edges
from neupath.graph.metapath import Relation
from neupath.graph.nodes import Nodes
from tests.cluster.engines import KINDS, need, running


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the engines themselves warn."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore"))


@pytest.fixture(scope="module", autouse=True)
def _collected() -> Iterator[None]:
    """Free what engines leave open, which would warn in a later test."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    need(request.param)
    return str(request.param)


@pytest.fixture(scope="module")
def engine(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """An engine that runs already, with two workers."""
    with running(kind, tmp_path_factory.mktemp(kind)) as started:
        yield started


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
