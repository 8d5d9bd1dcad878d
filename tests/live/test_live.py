"""A live graph answers after any sequence of changes as one made from scratch."""

import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import neupath as npth
from neupath import HIN, Nodes
from neupath.engine.scorer import Scorer
from neupath.errors import GraphError, MetaPathError, SourceError, WriteError
from neupath.graph.hin import digest
from neupath.live import LiveGraph, LiveStore
from neupath.live import live_graph as live_module
from neupath.live.live_scorer import LiveScorer
from neupath.store import Edge, Node, Update, check, write_store
from tests.graphs import RELATIONS, hins

SYMMETRIC = ("a-b-a", "a-b-c-b-a", "c -t-> b -near- b -near- b <-t- c", "a -cites-> a <-cites- a", "b-a-b")
ANY = (*SYMMETRIC, "a-b-c", "c-b-a-b", "a -cites-> a -r-> b", "a -r-> b")
WEIGHTS = st.sampled_from([0.0, 0.25, 0.5, 1.0, 2.0, 3.0])


def measures() -> list[Scorer]:
    found: list[Scorer] = [kind(path) for kind in (npth.PathSim, npth.JoinSim) for path in SYMMETRIC]
    found += [kind(path) for kind in (npth.PathCount, npth.PCRW, npth.DWPC, npth.HeteSim) for path in ANY]
    return [*found, npth.SCAN("b"), npth.PPR("a")]


def rebuilt(hin: HIN) -> HIN:
    """The same graph with nothing in common."""
    edges = []
    for relation, matrix in hin.matrices.items():
        entries = matrix.tocoo()
        kept = np.arange(entries.nnz) if relation.directed else np.flatnonzero(entries.row <= entries.col)
        edges.append(
            npth.Edges(
                relation, entries.row[kept].astype(np.int64), entries.col[kept].astype(np.int64), entries.data[kept]
            )
        )
    return HIN.build([Nodes(t, nodes.ids) for t, nodes in hin.nodes.items()], edges)


def assert_equal(live: Scorer, scratch: Scorer, count: int, k: int = 3) -> None:
    """To the last bit."""
    rows, nobody = np.arange(count), np.full(count, -1)
    assert live.score_rows(rows).tolist() == scratch.score_rows(rows).tolist()
    found, wanted = (s.rank_rows(rows, nobody, k, None, 1) for s in (live, scratch))
    assert found.sizes.tolist() == wanted.sizes.tolist()
    for q, size in enumerate(found.sizes):
        assert found.rows[q, :size].tolist() == wanted.rows[q, :size].tolist()
        assert found.scores[q, :size].tolist() == wanted.scores[q, :size].tolist()


def assert_same(live: Scorer, scratch: Scorer, count: int) -> None:
    rows = np.arange(count)
    np.testing.assert_allclose(live.score_rows(rows), scratch.score_rows(rows), rtol=1e-12, atol=1e-300)
    nobody = np.full(count, -1)
    found, wanted = (s.rank_rows(rows, nobody, 3, None, 1) for s in (live, scratch))
    assert found.sizes.tolist() == wanted.sizes.tolist()
    for q, size in enumerate(found.sizes):
        np.testing.assert_allclose(found.scores[q, :size], wanted.scores[q, :size], rtol=1e-12)


class Changes(RuleBasedStateMachine):
    """Edges change and nodes come, in any order, while the base is now and then made anew."""

    measures = staticmethod(measures)
    compare = staticmethod(assert_same)
    weights = WEIGHTS

    @initialize(hin=hins())
    def start(self, hin: HIN) -> None:
        self.live = LiveGraph(hin, share=float("inf"))
        for measure in self.measures():
            self.live.fit(measure)
        self.old = [(self.live.view(), digest(hin))]

    @rule(relation=st.sampled_from(RELATIONS), data=st.data())
    def change_edges(self, relation: npth.Relation, data: st.DataObject) -> None:
        hin = self.live.view().hin
        rows, columns = hin.num_nodes(relation.source), hin.num_nodes(relation.target)
        if not rows or not columns:
            return
        pair = st.tuples(st.integers(0, rows - 1), st.integers(0, columns - 1))
        pairs = data.draw(st.lists(pair, min_size=1, max_size=3, unique_by=lambda p: (min(p), max(p))))
        edges = [(relation, *p, data.draw(self.weights)) for p in pairs]
        self.live.put(edges)

    @rule(node_type=st.sampled_from("abc"), number=st.integers(1, 2))
    def add_nodes(self, node_type: str, number: int) -> None:
        count = self.live.view().hin.num_nodes(node_type)
        ids = [f"{node_type}{count + i}" for i in range(number)]
        self.live.put([], {node_type: Nodes(node_type, pa.array(ids, pa.string()))})

    @rule()
    def compact(self) -> None:
        self.live.compact()

    @rule()
    def keep_view(self) -> None:
        view = self.live.view()
        self.old.append((view, digest(rebuilt(view.hin))))

    @invariant()
    def answers_as_from_scratch(self) -> None:
        if not hasattr(self, "live"):
            return
        view = self.live.view()
        scratch = rebuilt(view.hin)
        assert digest(view.hin) == digest(scratch)
        for ours, theirs in zip(self.measures(), self.measures(), strict=True):
            scorer = view.fit(ours)
            self.compare(scorer, theirs.fit(scratch), scratch.num_nodes(scorer.source_type))

    def teardown(self) -> None:
        for view, before in getattr(self, "old", []):
            scratch = rebuilt(view.hin)
            assert digest(scratch) == before
            for path in SYMMETRIC:
                scorer = view.fit(npth.PathSim(path))
                self.compare(scorer, npth.PathSim(path).fit(scratch), scratch.num_nodes(scorer.source_type))


class WholeChanges(Changes):
    """Weights are whole numbers, so that norms follow by difference, and nothing rounds."""

    measures = staticmethod(lambda: [kind(path) for kind in (npth.PathSim, npth.JoinSim) for path in SYMMETRIC])
    compare = staticmethod(assert_equal)
    weights = st.sampled_from([0.0, 1.0, 2.0, 3.0])

    @initialize(hin=hins(weighted=False))
    def start(self, hin: HIN) -> None:
        super().start(hin)


TestChanges, TestWholeChanges = Changes.TestCase, WholeChanges.TestCase
TestChanges.settings = TestWholeChanges.settings = settings(
    max_examples=8,
    stateful_step_count=6,
    deadline=None,
    phases=(Phase.explicit, Phase.generate),  # to shrink a failure takes minutes
    suppress_health_check=list(HealthCheck),
)


def test_most_measures_are_followed() -> None:
    live = LiveGraph(npth.load("toy"))
    followed = [type(live.fit(kind("APVPA"))) for kind in (npth.PathSim, npth.JoinSim, npth.HeteSim, npth.DWPC)]
    followed += [type(live.fit(kind("APV"))) for kind in (npth.PathCount, npth.PCRW, npth.HeteSim, npth.DWPC)]
    assert followed == [LiveScorer] * 8


def test_a_store_and_its_live_graph_go_together(tmp_path: Path) -> None:
    path = write_store(npth.load("toy"), tmp_path / "s")
    measure = npth.PathSim("APVPA")
    zoe, paper = Node("author", "Zoe"), Node("paper", "Zoe-KDD-1")
    own = [Edge("writes", "Zoe", "Zoe-KDD-1"), Edge("appears_at", "Zoe-KDD-1", "KDD")]
    with LiveStore(path) as live:
        live.fit(measure)
        assert live.update(Update(add_nodes=[zoe, paper], add_edges=own)) == 1
        assert live.view().fit(measure).top_k("Zoe", k=1).ids == ("Ann",)
        assert digest(live.view().hin) == digest(live.store.hin())
        live.update(Update(remove_nodes=[zoe], remove_edges=own[:1]))
        assert digest(live.view().hin) == digest(live.store.hin())
        live.update(Update(add_nodes=[zoe], add_edges=own[:1]))
        assert digest(live.view().hin) == digest(live.store.hin())
        scratch = npth.PathSim("APVPA").fit(rebuilt(live.store.hin()))
        assert live.view().fit(measure).top_k("Zoe").to_dict() == scratch.top_k("Zoe").to_dict()
        assert isinstance(live.view().fit(measure), LiveScorer)
    assert not check(path).problems


def test_a_measure_is_followed_once_and_only_the_last_ones_are(tmp_path: Path) -> None:
    with LiveStore(write_store(npth.load("toy"), tmp_path / "s"), followed=2) as live:
        for _ in range(3):
            for path in ("APA", "author-paper-author", "APVPA"):
                live.fit(npth.PathSim(path))
        assert len(live.view().halves) == 2
        live.fit(npth.PathSim("VPV"))
        live.update(Update([Edge("writes", "Mike", "Jim-SIGMOD-1")]))
        view = live.view()
        followed = [isinstance(view.fit(npth.PathSim(path)), LiveScorer) for path in ("APA", "APVPA", "VPV")]
        assert followed == [False, True, True]
        with pytest.raises(MetaPathError):
            live.fit(npth.PathSim("AXA"))
        live.update(Update(add_nodes=[Node("author", "Zoe")]))
        live.update(Update(remove_nodes=[Node("author", "Zoe")]))  # which reads the graph anew
        assert len(live.view().halves) == 2


def test_an_older_version_is_answered_from_memory_or_from_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neupath.live.live_graph.RECENT", 2)
    measure, path = npth.PathCount("APA"), write_store(npth.load("toy"), tmp_path / "s")
    with LiveStore(path) as live:
        live.fit(measure)
        for _ in range(4):
            live.update(Update([Edge("writes", "Mike", "Jim-SIGMOD-1")]))
        views = [live.view(as_of) for as_of in range(5)]
        assert [view.version for view in views] == list(range(5))
        assert [view.fit(measure).score("Mike", "Jim") for view in views] == [0.0, 1.0, 2.0, 3.0, 4.0]
        assert [bool(view.halves) for view in views] == [False, False, False, True, True]
        with pytest.raises(SourceError, match="version 5 is not kept; the store has versions 0 to 4"):
            live.view(5)
    with LiveStore(path, read_only=True) as live:
        assert live.fit(measure).score("Mike", "Jim") == 4.0
        assert live.view(1).fit(measure).score("Mike", "Jim") == 1.0
        with pytest.raises(WriteError, match="was opened to be read only; nothing was changed"):
            live.update(Update([Edge("writes", "Mike", "Jim-SIGMOD-1")]))


def test_a_graph_that_follows_no_measure_is_compacted_too() -> None:
    hin = npth.load("toy")
    live = LiveGraph(hin, share=float("inf"))
    for number in range(50):
        live.put([(hin.schema.relations[0], number % 5, number, 2.0)])
    assert live.share > 0.05
    live.compact()
    assert live.share == 0.0
    assert live.view().version == 50


def test_an_undirected_edge_is_the_same_from_either_end() -> None:
    near = npth.Relation("b", "near", "b", directed=False)
    hin = HIN.build([Nodes("b", pa.array(["x", "y"]))], [npth.Edges(near, np.array([0]), np.array([1]))])
    live = LiveGraph(hin)
    live.put([(near, 0, 1, 3.0)])
    live.put([(near, 1, 0, 0.5)])
    assert live.view().hin.matrices[near].toarray().tolist() == [[0.0, 0.5], [0.5, 0.0]]


def test_queries_are_answered_while_the_base_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    hin, measure = npth.load("toy"), npth.PathSim("APA")
    live = LiveGraph(hin, share=float("inf"))
    live.fit(measure)
    begun, go_on = threading.Event(), threading.Event()

    def slowly(graph: HIN) -> HIN:
        begun.set()
        assert go_on.wait(60)
        return materialised(graph)

    materialised = live_module._materialised
    monkeypatch.setattr(live_module, "_materialised", slowly)
    compacting = threading.Thread(target=live.compact)
    compacting.start()
    assert begun.wait(60)
    for number in range(20):
        live.put([(hin.schema.relations[0], number % 5, number, float(number % 3))])
        view = live.view()
        assert isinstance(view.fit(measure), LiveScorer)
        assert_equal(view.fit(measure), npth.PathSim("APA").fit(rebuilt(view.hin)), 5)
    assert live.share > 0
    assert compacting.is_alive()
    go_on.set()
    compacting.join(60)
    later = live.view()
    assert later.version == 20
    assert_equal(later.fit(measure), npth.PathSim("APA").fit(rebuilt(later.hin)), 5)
    assert digest(later.hin) == digest(rebuilt(view.hin))


def test_compaction_goes_on_behind_changes() -> None:
    hin = npth.load("toy")
    live, measure = LiveGraph(hin, share=0.01), npth.PathSim("APA")
    live.fit(measure)
    writes = hin.schema.relations[0]
    for number in range(200):
        live.put([(writes, number % 5, (number * 7) % 81, float(number % 3))])
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and "compact" in thread.name:
            thread.join()
    view = live.view()
    assert view.version == 200
    assert_same(view.fit(measure), npth.PathSim("APA").fit(rebuilt(view.hin)), 5)


@pytest.mark.parametrize(
    ("edge", "told"),
    [
        ((99, 0, 1.0), "names row 99 of author, which has 6 nodes"),
        ((0, -1, 1.0), "names row -1 of paper"),
        ((0, 0, float("nan")), "weight nan is not allowed"),
        ((0, 0, -1.0), "weight -1.0 is not allowed"),
    ],
)
def test_what_is_not_there_is_refused_before_anything_changes(edge: tuple[int, int, float], told: str) -> None:
    live = LiveGraph(npth.load("toy"))
    live.fit(npth.PathSim("author-paper-author"))
    writes = live.view().hin.schema.relations[0]
    new = {"author": Nodes("author", pa.array(["Zoe"]))}
    with pytest.raises(GraphError, match=told):
        live.put([(writes, 5, 0, 1.0), (writes, *edge)], new)
    with pytest.raises(GraphError, match="no relation 'author -likes-> paper' in this graph"):
        live.put([(npth.Relation("author", "likes", "paper"), 0, 0, 1.0)])
    with pytest.raises(GraphError, match="must be unique"):
        live.put([], new | {"venue": Nodes("venue", pa.array(["KDD"]))})
    assert digest(live.view().hin) == digest(npth.load("toy"))
    assert live.put([(writes, 5, 0, 1.0)], new) == 1


def test_a_store_that_cannot_be_read_is_not_held(tmp_path: Path) -> None:
    path = write_store(npth.load("toy"), tmp_path / "toy.store")
    (path / "snapshot-0" / "edges-0-data.npy").unlink()
    with pytest.raises(SourceError, match="damaged"):
        LiveStore(path)
    assert check(path).problems


def test_versions_that_share_little_are_not_all_kept_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, measure = write_store(npth.load("toy"), tmp_path / "s"), npth.PathCount("APA")
    monkeypatch.setattr("neupath.live.live_graph.BYTES", 40_000)
    with LiveStore(path, share=float("inf")) as live:
        live.fit(measure)
        for _ in range(30):
            live.update(Update([Edge("writes", "Mike", "Jim-SIGMOD-1")]))
        assert len(live._recent) == 31
        for number in range(30):
            live.update(Update(add_nodes=[Node("paper", f"new{number}")]))
            live.update(Update(remove_nodes=[Node("paper", f"new{number}")]))
        assert len(live._recent) < 20
        found = {live.view(as_of).fit(measure).score("Mike", "Jim") for as_of in range(30, 91)}
        assert found == {30.0}


def test_a_new_node_of_a_store_is_not_compared_with_all_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with LiveStore(write_store(npth.load("toy"), tmp_path / "s")) as live:
        monkeypatch.setattr(Nodes, "_refuse_repeated_ids", lambda nodes: pytest.fail(f"{len(nodes)} were compared"))
        live.update(Update(add_nodes=[Node("author", "Zoe")]))
        assert live.view().hin.find("author", "Zoe") == 5


@pytest.mark.parametrize("weight", [1e200, 1e-200])
def test_what_floats_cannot_hold_is_refused_as_from_scratch_and_stops_nothing(tmp_path: Path, weight: float) -> None:
    measure = npth.PathSim("author-paper-author")
    heavy = Edge("writes", "Zoe", "new", weight)
    with LiveStore(write_store(npth.load("toy"), tmp_path / "s"), share=float("inf")) as live:
        live.fit(measure)
        live.update(Update(add_nodes=[Node("author", "Zoe"), Node("paper", "new"), Node("paper", "odd")]))
        live.update(Update([heavy]))
        for change in (Update(remove_nodes=[Node("paper", "odd")]), Update(add_nodes=[Node("paper", "odd")])):
            with pytest.raises(GraphError, match="than a float can hold"):
                live.view().fit(measure)
            live.update(change)
            live.graph.compact()
        live.update(Update(remove_edges=[heavy]))
        assert live.fit(measure).score("Jim", "Mary") == measure.fit(npth.load("toy")).score("Jim", "Mary")
        live.update(Update([Edge("writes", "Zoe", "new")]))
        assert isinstance(live.view().fit(measure), LiveScorer)
