"""infer finds conditions that it is told to try."""

import numpy as np
import pyarrow as pa
import pytest

import neupath as npth
from neupath import HIN
from neupath.errors import NeuPathError, QueryError
from neupath.graph.hin import Edges
from neupath.graph.metapath import Relation
from neupath.graph.nodes import Nodes


@pytest.fixture(scope="module")
def films() -> HIN:
    rng = np.random.default_rng(0)
    nodes = [
        Nodes("user", pa.array([f"u{i}" for i in range(10)])),
        Nodes("film", pa.array([f"f{i}" for i in range(14)]), attributes=pa.table({"year": 2000 + np.arange(14)})),
    ]
    return HIN.build(
        nodes, [Edges(Relation("user", "rates", "film"), rng.integers(0, 10, 50), rng.integers(0, 14, 50))]
    )


def _labels(hin: npth.HIN, metapath: str) -> list[tuple[str, str, float]]:
    scorer = npth.PathSim(metapath).fit(hin)
    ids = hin.nodes[scorer.source_type].ids.to_pylist()
    return [(x, y, score) for x in ids for y, score in zip(ids, scorer.scores(x, ids), strict=True) if x < y]


def test_a_condition_behind_the_labels_is_found(films: HIN) -> None:
    hin, truth = films, "user-film[year >= 2007]-user"
    labels = _labels(hin, truth)
    assert any(0 < score < 1 for *_, score in labels)
    found = npth.infer(hin, labels, max_length=4, conditions=["film: year >= 2007"], measures=["pathsim"])
    assert [part.metapath for part in found.parts] == [truth]
    assert found.rmse == pytest.approx(0, abs=1e-9)
    without = npth.infer(hin, labels, max_length=4, measures=["pathsim"])
    assert without.searched.total < found.searched.total
    assert all("[" not in part.metapath for part in without.parts)


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("year >= 2", "names no node type; write it as 'paper: year >= 2020'"),
        ("book: year >= 2", "no node type 'book' in this graph"),
        ("film: yeer >= 2", "at character 2: film has no attribute 'yeer'"),
        ("film: year >=", "expected a value after '>='"),
    ],
)
def test_bad_conditions(films: HIN, condition: str, message: str) -> None:
    with pytest.raises(NeuPathError, match=message):
        npth.infer(films, [("u0", "u1", 1.0), ("u0", "u2", 0.0)], conditions=[condition])
    with pytest.raises(QueryError, match="go from one type to another"):
        npth.infer(films, [("u0", "f1", 1.0)], conditions=["film: year >= 2"])
