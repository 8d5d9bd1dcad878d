"""Attached models score after any sequence of changes as models bound to a graph built from scratch."""

import copy
import threading
import weakref
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

pytest.importorskip("torch")

import neupath as npth
from neupath import HIN, NeuPathError
from neupath.graph.hin import Edges
from neupath.graph.nodes import Nodes
from neupath.learn.models import NeuPath, neupath_updates
from neupath.learn.models.class_table import ClassTable, LayerClasses
from neupath.learn.models.flat_graph import FlatGraph
from neupath.live import LiveGraph, LiveStore, View
from neupath.store import Edge, Node, Update, write_store
from tests.graphs import RELATIONS, hins
from tests.live.comparison import rebuilt, set_edges

WEIGHTS = st.sampled_from([0.0, 0.0, 0.5, 1.0, 3.0])
LABELS = [(f"a{i}", f"a{j}", (i + j) % 3 / 2) for i in range(5) for j in range(5, 8)]


def grown_up() -> HIN:
    """A graph with the schema of the random ones, to learn from."""
    rng = np.random.default_rng(0)
    ends = ((relation, rng.integers(0, 9, 14), rng.integers(0, 9, 14)) for relation in RELATIONS)
    return HIN.build([Nodes(t, pa.array([f"{t}{i}" for i in range(9)])) for t in "abc"], [Edges(*e) for e in ends])


@cache
def trained() -> list[NeuPath]:
    """Train the models once, when the first test needs them: not while tests are collected."""
    hin = grown_up()
    variants = (
        {"layers": 2, "paths": 2, "variant": "paper"},
        {"layers": 4, "paths": 3},
    )
    return [NeuPath(dim=6, epochs=1, device="cpu", **settings).fit(hin, LABELS) for settings in variants]


@pytest.fixture(scope="module", autouse=True)
def little_room() -> Iterator[None]:
    """So little that it runs out and records are folded within a few changes."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("_SPARE_NODES", 2), ("_MAX_GROWTH", 1), ("_MAX_CHANGES", 3)):
            patch.setattr(neupath_updates, name, value)
        yield


def assert_same(view: View, model: NeuPath, scratch: HIN) -> None:
    """Check for the same classes under other numbers, and the same scores up to rounding."""
    found, wanted = view.scorer(model), model.bind(scratch)
    for ours, theirs in zip(found.background_, wanted.background_, strict=True):
        pairs = set(zip(flat(found, ours).tolist(), flat(wanted, theirs).tolist(), strict=True))
        assert len({a for a, _ in pairs}) == len({b for _, b in pairs}) == len(pairs)
    rows = np.arange(scratch.num_nodes("a"))
    if len(rows):
        np.testing.assert_allclose(found.score_rows(rows), wanted.score_rows(rows), rtol=1e-5, atol=1e-5)


def flat(model: NeuPath, classes: np.ndarray) -> np.ndarray:
    """The classes of the existing nodes, without the spare room."""
    sizes = [len(nodes) for nodes in model.hin_.nodes.values()]
    return np.concatenate([classes[at : at + n] for at, n in zip(model.graph_.numbering.starts, sizes, strict=False)])


class LearnedChanges(RuleBasedStateMachine):
    """Edges are added, removed and reweighted, nodes are added, versions are kept, and the base is rebuilt."""

    @initialize(hin=hins())
    def start(self, hin: HIN) -> None:
        self.live = LiveGraph(hin, compaction_share=float("inf"))
        for model in trained():
            self.live.attach(model)
        self.old: list[View] = []

    @rule(data=st.data(), number=st.integers(1, 4))
    def change_edges(self, data: st.DataObject, number: int) -> None:
        hin, edges = self.live.view().hin, {}
        for _ in range(number):
            relation = data.draw(st.sampled_from(RELATIONS))
            sizes = hin.num_nodes(relation.source), hin.num_nodes(relation.target)
            if all(sizes):
                ends = [data.draw(st.integers(0, size - 1)) for size in sizes]
                edges[relation, *(ends if relation.directed else sorted(ends))] = data.draw(WEIGHTS)
        changes = [(*edge, weight) for edge, weight in edges.items()]
        set_edges(self.live, changes[:2])
        if number > 2:
            self.old.append(self.live.view())  # nothing is computed from it before the next change
            set_edges(self.live, changes[2:])

    @rule(node_type=st.sampled_from("abc"), number=st.integers(1, 3))
    def add_nodes_with_an_edge(self, node_type: str, number: int) -> None:
        hin = self.live.view().hin
        count, relation = hin.num_nodes(node_type), next(r for r in RELATIONS if node_type in (r.source, r.target))
        ids = [f"{node_type}{count + i}" for i in range(number)]
        ends = [count if node_type == end else hin.num_nodes(end) - 1 for end in (relation.source, relation.target)]
        edges = [(relation, *ends, 1.0)] if min(ends) >= 0 else []
        set_edges(self.live, edges, {node_type: Nodes(node_type, pa.array(ids, pa.string()))})

    @rule()
    def keep_view(self) -> None:
        self.old.append(self.live.view())

    @rule()
    def compact(self) -> None:
        self.live.compact()

    @invariant()
    def scores_as_from_scratch(self) -> None:
        if hasattr(self, "live"):
            self.check(self.live.view())

    def check(self, view: View) -> None:
        scratch = rebuilt(view.hin)
        for model in trained():
            assert_same(view, model, scratch)

    def teardown(self) -> None:
        for view in getattr(self, "old", []):
            self.check(view)


TestLearnedChanges = pytest.mark.slow(LearnedChanges.TestCase)
TestLearnedChanges.settings = settings(
    max_examples=8,
    stateful_step_count=7,
    deadline=None,
    phases=(Phase.explicit, Phase.generate),  # shrinking a failure takes minutes
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def model() -> NeuPath:
    return NeuPath(dim=6, layers=2, epochs=1, device="cpu").fit(grown_up(), LABELS)


def test_classes_that_a_change_does_not_reach_are_not_computed_again(
    model: NeuPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(neupath_updates, "_MAX_CHANGES", 100)
    live = LiveGraph(many_stars(50))
    live.attach(model)
    refined: list[int] = []
    refine = ClassTable.refine

    def counted(
        self: ClassTable, graph: FlatGraph, layer: LayerClasses, nodes: np.ndarray, classes: np.ndarray
    ) -> np.ndarray:
        refined.append(len(nodes))
        return refine(self, graph, layer, nodes, classes)

    monkeypatch.setattr(ClassTable, "refine", counted)
    set_edges(live, [(RELATIONS[0], 0, 2, 1.0)])
    assert refined == [2, 3], "both ends, and then the neighbours of one: a fourth neighbour is no difference if T is 2"
    set_edges(live, [(RELATIONS[0], 0, 2, 5.0)])
    assert refined[2:] == [0, 0], "to a NeuPath a weight is no difference"


def many_stars(number: int) -> HIN:
    """Nodes of type b with three of type a each."""
    sizes = {"a": 3 * number, "b": number, "c": 0}
    ends = {RELATIONS[0]: np.arange(3 * number)}
    rows = [ends.get(relation, np.zeros(0, dtype=np.int64)) for relation in RELATIONS]
    nodes = [Nodes(t, pa.array([f"{t}{i}" for i in range(size)], pa.string())) for t, size in sizes.items()]
    return HIN.build(nodes, [Edges(r, own, own // 3) for r, own in zip(RELATIONS, rows, strict=True)])


def test_old_versions_keep_no_unused_arrays() -> None:
    numbers = neupath_updates.VersionedArray(np.arange(1000))
    old = []
    for number in range(3):
        numbers.put(np.array([number]), np.array([-1]))
        old.append(numbers.version)
    arrays = [weakref.ref(version.array) for version in old]
    assert [array() is None for array in arrays] == [True, True, False]
    used = old[0].array
    assert old[0].array is used
    assert [int((version.array == -1).sum()) for version in old] == [1, 2, 3]


def test_a_retrained_model_is_not_mistaken_for_the_old_one(model: NeuPath) -> None:
    hin = grown_up()
    other = copy.copy(model)
    live = LiveGraph(hin)
    live.attach(other)
    assert live.view().scorer(other).network_ is model.network_
    other.fit(hin, [(a, b, 1 - score) for a, b, score in LABELS])
    scores = live.view().scorer(other).scores("a0")
    np.testing.assert_allclose(scores, other.scores("a0"), rtol=1e-6, atol=1e-6)
    assert np.abs(scores - model.scores("a0")).max() > 1e-4


def test_a_model_needs_to_be_trained_on_the_schema(model: NeuPath) -> None:
    with pytest.raises(NeuPathError, match=r"has no graph yet; call fit\(hin\) first"):
        LiveGraph(grown_up()).attach(NeuPath(device="cpu"))
    with pytest.raises(NeuPathError, match="does not have the schema the model was trained on"):
        LiveGraph(npth.load("toy")).attach(model)


@pytest.mark.slow
def test_readers_beside_a_writer_see_their_version(model: NeuPath) -> None:
    live, done = LiveGraph(grown_up(), compaction_share=float("inf")), threading.Event()
    live.attach(model)
    first, second = (RELATIONS[0], 0, 5), (RELATIONS[4], 5, 7)
    states = [[(*first, 0.0), (*second, 0.0)], [(*first, 1.0), (*second, 1.0)], [(*second, 0.0)]]
    expected = {}
    for state in states:
        version = set_edges(live, state)
        expected[version % 3] = model.bind(rebuilt(live.view().hin)).score_rows(np.arange(9))
    assert not np.allclose(expected[1], expected[2])

    def write() -> None:
        while not done.is_set():
            for state in states:
                set_edges(live, state)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        view = live.view()
        reads = 0
        while reads < 60 or view.version <= 10:
            assert writer.is_alive()
            view = live.view()
            reads += 1
            np.testing.assert_allclose(
                view.scorer(model).score_rows(np.arange(9)), expected[view.version % 3], atol=1e-6
            )
    finally:
        done.set()
        writer.join()


def test_a_store_binds_models_again_when_nodes_are_removed(tmp_path: Path) -> None:
    labels = [("Mike", "Bob", 1.0), ("Mike", "Mary", 0.8), ("Mike", "Ann", 0.0), ("Mary", "Ann", 2 / 7)]
    hin = npth.load("toy")
    model = NeuPath(dim=6, layers=2, epochs=1, device="cpu").fit(hin, labels)
    zoe, own = Node("author", "Zoe"), Edge("writes", "Zoe", "Jim-SIGMOD-1")
    updates = [Update(add_nodes=[zoe], add_edges=[own]), Update(remove_nodes=[zoe], remove_edges=[own])]
    with LiveStore(write_store(hin, tmp_path / "s")) as live:
        live.attach(model)
        for update in updates:
            live.update(update)
            scratch = model.bind(rebuilt(live.view().hin)).score_rows(np.arange(5))
            np.testing.assert_allclose(live.view().scorer(model).score_rows(np.arange(5)), scratch, atol=1e-6)
