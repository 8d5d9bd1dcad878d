"""A live graph answers after any sequence of changes as one built from scratch."""

import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from scipy.sparse import csr_array

import neupath as npth
from neupath import HIN
from neupath.engine.scorer import Scorer
from neupath.errors import GraphError, MetaPathError, SourceError, WriteError
from neupath.graph.hin import Edges, digest
from neupath.graph.metapath import Relation
from neupath.graph.nodes import Nodes
from neupath.live import LiveGraph, LiveScorer, LiveStore
from neupath.live import live_graph as live_module
from neupath.live.live_graph import VersionCache
from neupath.measures import DWPC, PCRW, PPR, SCAN, HeteSim, JoinSim, PathCount
from neupath.store import Edge, Node, Update, check, write_store
from tests.graphs import RELATIONS, hins
from tests.live.comparison import assert_equal, assert_same, rebuilt, set_edges
from tests.patience import PATIENCE

SYMMETRIC = ("a-b-a", "a-b-c-b-a", "c -t-> b -near- b -near- b <-t- c", "a -cites-> a <-cites- a", "b-a-b")
ANY = (*SYMMETRIC, "a-b-c", "c-b-a-b", "a -cites-> a -r-> b", "a -r-> b")
WEIGHTS = st.sampled_from([0.0, 0.25, 0.5, 1.0, 2.0, 3.0])


def measures() -> list[Scorer]:
    found: list[Scorer] = [kind(path) for kind in (npth.PathSim, JoinSim) for path in SYMMETRIC]
    found += [kind(path) for kind in (PathCount, PCRW, DWPC, HeteSim) for path in ANY]
    return [*found, SCAN("b"), PPR("a")]


class Changes(RuleBasedStateMachine):
    """Edges change and nodes are added, in any order; now and then the base is rebuilt."""

    measures = staticmethod(measures)
    compare = staticmethod(assert_same)
    weights = WEIGHTS

    @initialize(hin=hins())
    def start(self, hin: HIN) -> None:
        self.live = LiveGraph(hin, compaction_share=float("inf"))
        for measure in self.measures():
            self.live.attach(measure)
        self.old = [(self.live.view(), digest(hin))]

    @rule(relation=st.sampled_from(RELATIONS), data=st.data())
    def change_edges(self, relation: Relation, data: st.DataObject) -> None:
        hin = self.live.view().hin
        rows, columns = hin.num_nodes(relation.source), hin.num_nodes(relation.target)
        if not rows or not columns:
            return
        pair = st.tuples(st.integers(0, rows - 1), st.integers(0, columns - 1))
        pairs = data.draw(st.lists(pair, min_size=1, max_size=3, unique_by=lambda p: (min(p), max(p))))
        edges = [(relation, *p, data.draw(self.weights)) for p in pairs]
        set_edges(self.live, edges)

    @rule(node_type=st.sampled_from("abc"), number=st.integers(1, 2))
    def add_nodes(self, node_type: str, number: int) -> None:
        count = self.live.view().hin.num_nodes(node_type)
        ids = [f"{node_type}{count + i}" for i in range(number)]
        set_edges(self.live, [], {node_type: Nodes(node_type, pa.array(ids, pa.string()))})

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
        degrees = {node_type: view.hin.degrees(node_type).tolist() for node_type in view.hin.nodes}
        scratch = rebuilt(view.hin)
        assert digest(view.hin) == digest(scratch)
        assert degrees == {node_type: scratch.degrees(node_type).tolist() for node_type in scratch.nodes}
        for ours, theirs in zip(self.measures(), self.measures(), strict=True):
            scorer = view.scorer(ours)
            self.compare(scorer, theirs.fit(scratch), scratch.num_nodes(scorer.source_type))

    def teardown(self) -> None:
        for view, before in getattr(self, "old", []):
            scratch = rebuilt(view.hin)
            assert digest(scratch) == before
            for path in SYMMETRIC:
                scorer = view.scorer(npth.PathSim(path))
                self.compare(scorer, npth.PathSim(path).fit(scratch), scratch.num_nodes(scorer.source_type))


class WholeChanges(Changes):
    """Weights are whole numbers, so that norms follow by difference, and nothing rounds."""

    measures = staticmethod(lambda: [kind(path) for kind in (npth.PathSim, JoinSim) for path in SYMMETRIC])
    compare = staticmethod(assert_equal)
    weights = st.sampled_from([0.0, 1.0, 2.0, 3.0])

    @initialize(hin=hins(weighted=False))
    def start(self, hin: HIN) -> None:
        super().start(hin)


def test_degrees_follow_changes_and_stay_with_their_versions() -> None:
    people = Nodes("person", pa.array(["a", "b", "c"]))
    knows, likes = (
        Relation("person", "knows", "person", directed=False),
        Relation("person", "likes", "person"),
    )
    none = np.zeros(0, dtype=np.int64)
    edges = [Edges(knows, np.array([0, 1]), np.array([1, 1])), Edges(likes, none, none)]
    live = LiveGraph(HIN.build([people], edges), compaction_share=float("inf"))
    changes = [
        [(knows, 1, 0, 5.0), (likes, 0, 2, 1.0)], [(knows, 1, 0, 0.0), (knows, 2, 1, 1.0)], [(knows, 1, 1, 0.0)],
        [(likes, 0, 2, 0.0), (likes, 2, 2, 1.0), (knows, 0, 1, 1.0)], [(knows, 0, 1, 0.0), (knows, 0, 2, 0.0)],
    ]  # fmt: skip
    views = [live.view()]
    for number, change in enumerate(changes):
        set_edges(live, change, {"person": Nodes("person", pa.array(["d"]))} if number == 2 else None)
        views.append(live.view())
    expected = [[1, 2, 0], [2, 2, 1], [1, 2, 2], [1, 1, 2, 0], [1, 2, 3, 0], [0, 1, 3, 0]]
    assert [view.hin.degrees("person").tolist() for view in views[::-1]] == expected[::-1]
    assert live.view().hin.degrees("person").tolist() == expected[-1]
    assert [rebuilt(view.hin).degrees("person").tolist() for view in views] == expected


TestChanges, TestWholeChanges = pytest.mark.slow(Changes.TestCase), pytest.mark.slow(WholeChanges.TestCase)
TestChanges.settings = TestWholeChanges.settings = settings(
    max_examples=8,
    stateful_step_count=6,
    deadline=None,
    phases=(Phase.explicit, Phase.generate),  # shrinking a failure takes minutes
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.slow
def test_most_measures_follow_updates() -> None:
    live = LiveGraph(npth.load("toy"))
    followed = [type(live.attach(kind("APVPA"))) for kind in (npth.PathSim, JoinSim, HeteSim, DWPC)]
    followed += [type(live.attach(kind("APV"))) for kind in (PathCount, PCRW, HeteSim, DWPC)]
    assert followed == [LiveScorer] * 8


def test_a_store_and_its_live_graph_stay_equal(tmp_path: Path) -> None:
    path = write_store(npth.load("toy"), tmp_path / "s")
    measure = npth.PathSim("APVPA")
    zoe, paper = Node("author", "Zoe"), Node("paper", "Zoe-KDD-1")
    own = [Edge("writes", "Zoe", "Zoe-KDD-1"), Edge("appears_at", "Zoe-KDD-1", "KDD")]
    with LiveStore(path) as live:
        live.attach(measure)
        assert live.update(Update(add_nodes=[zoe, paper], add_edges=own)) == 1
        assert live.view().scorer(measure).top_k("Zoe", k=1).ids == ("Ann",)
        assert digest(live.view().hin) == digest(live.store.hin())
        live.update(Update(remove_nodes=[zoe], remove_edges=own[:1]))
        assert digest(live.view().hin) == digest(live.store.hin())
        live.update(Update(add_nodes=[zoe], add_edges=own[:1]))
        assert digest(live.view().hin) == digest(live.store.hin())
        scratch = npth.PathSim("APVPA").fit(rebuilt(live.store.hin()))
        assert live.view().scorer(measure).top_k("Zoe").to_dict() == scratch.top_k("Zoe").to_dict()
        assert isinstance(live.view().scorer(measure), LiveScorer)
    assert not check(path).problems


def test_a_measure_is_attached_once_and_the_oldest_is_detached(tmp_path: Path) -> None:
    with LiveStore(write_store(npth.load("toy"), tmp_path / "s"), max_attached=2) as live:
        for _ in range(3):
            for path in ("APA", "author-paper-author", "APVPA"):
                live.attach(npth.PathSim(path))
        assert len(live.view().bindings) == 2
        live.attach(npth.PathSim("VPV"))
        live.update(Update([Edge("writes", "Mike", "Jim-SIGMOD-1")]))
        view = live.view()
        followed = [isinstance(view.scorer(npth.PathSim(path)), LiveScorer) for path in ("APA", "APVPA", "VPV")]
        assert followed == [False, True, True]
        with pytest.raises(MetaPathError):
            live.attach(npth.PathSim("AXA"))
        live.update(Update(add_nodes=[Node("author", "Zoe")]))
        live.update(Update(remove_nodes=[Node("author", "Zoe")]))  # this reads the graph again
        assert len(live.view().bindings) == 2


def test_an_older_version_is_read_from_memory_or_from_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neupath.live.live_graph.MAX_VERSIONS", 2)
    measure, path = PathCount("APA"), write_store(npth.load("toy"), tmp_path / "s")
    with LiveStore(path) as live:
        live.attach(measure)
        for _ in range(4):
            live.update(Update([Edge("writes", "Mike", "Jim-SIGMOD-1")]))
        views = [live.view(as_of) for as_of in range(5)]
        assert [view.version for view in views] == list(range(5))
        assert [view.scorer(measure).score("Mike", "Jim") for view in views] == [0.0, 1.0, 2.0, 3.0, 4.0]
        assert [bool(view.bindings) for view in views] == [False, False, False, True, True]
        with pytest.raises(SourceError, match="version 5 is not kept; the store has versions 0 to 4"):
            live.view(5)
    with LiveStore(path, read_only=True) as live:
        assert live.attach(measure).score("Mike", "Jim") == 4.0
        assert live.view(1).scorer(measure).score("Mike", "Jim") == 1.0
        with pytest.raises(WriteError, match="was opened read-only; nothing was changed"):
            live.update(Update([Edge("writes", "Mike", "Jim-SIGMOD-1")]))


def test_a_graph_without_attached_measures_is_compacted_too() -> None:
    hin = npth.load("toy")
    live = LiveGraph(hin, compaction_share=float("inf"))
    for number in range(50):
        set_edges(live, [(hin.schema.relations[0], number % 5, number, 2.0)])
    assert live.changed_share > 0.05
    live.compact()
    assert live.changed_share == 0.0
    assert live.view().version == 50


def test_an_undirected_edge_is_the_same_from_either_end() -> None:
    near = Relation("b", "near", "b", directed=False)
    hin = HIN.build([Nodes("b", pa.array(["x", "y"]))], [Edges(near, np.array([0]), np.array([1]))])
    live = LiveGraph(hin)
    set_edges(live, [(near, 0, 1, 3.0)])
    set_edges(live, [(near, 1, 0, 0.5)])
    assert live.view().hin.matrices[near].toarray().tolist() == [[0.0, 0.5], [0.5, 0.0]]


def test_queries_are_answered_during_compaction(monkeypatch: pytest.MonkeyPatch) -> None:
    hin, measure = npth.load("toy"), npth.PathSim("APA")
    live = LiveGraph(hin, compaction_share=float("inf"))
    live.attach(measure)
    begun, go_on = threading.Event(), threading.Event()

    def slowly(graph: HIN) -> HIN:
        begun.set()
        assert go_on.wait(PATIENCE)
        return materialised(graph)

    materialised = live_module._materialised
    monkeypatch.setattr(live_module, "_materialised", slowly)
    compacting = threading.Thread(target=live.compact)
    compacting.start()
    assert begun.wait(PATIENCE)
    for number in range(20):
        set_edges(live, [(hin.schema.relations[0], number % 5, number, float(number % 3))])
        view = live.view()
        assert isinstance(view.scorer(measure), LiveScorer)
        assert_equal(view.scorer(measure), npth.PathSim("APA").fit(rebuilt(view.hin)), 5)
    assert live.changed_share > 0
    assert compacting.is_alive()
    go_on.set()
    compacting.join(PATIENCE)
    later = live.view()
    assert later.version == 20
    assert_equal(later.scorer(measure), npth.PathSim("APA").fit(rebuilt(later.hin)), 5)
    assert digest(later.hin) == digest(rebuilt(view.hin))


def test_compaction_applies_changes_made_meanwhile() -> None:
    hin = npth.load("toy")
    live, measure = LiveGraph(hin, compaction_share=0.01), npth.PathSim("APA")
    live.attach(measure)
    writes = hin.schema.relations[0]
    for number in range(200):
        set_edges(live, [(writes, number % 5, (number * 7) % 81, float(number % 3))])
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and "compact" in thread.name:
            thread.join(PATIENCE)
    view = live.view()
    assert view.version == 200
    assert_same(view.scorer(measure), npth.PathSim("APA").fit(rebuilt(view.hin)), 5)


@pytest.mark.parametrize(
    ("update", "message"),
    [
        (Update([Edge("writes", "Zed", "Jim-SIGMOD-1")]), r"add_edges\[1\]: no author with the id 'Zed'"),
        (Update([Edge("likes", "Zoe", "Jim-SIGMOD-1")]), "no relation 'likes' in this graph"),
        (Update([Edge("writes", "Zoe", "Jim-SIGMOD-1", float("nan"))]), "weight nan is not allowed"),
        (Update([Edge("writes", "Zoe", "Jim-SIGMOD-1", -1.0)]), "weight -1.0 is not allowed"),
        (Update(remove_edges=[Edge("writes", "Mike", "Jim-SIGMOD-1")]), "there is no such edge to remove"),
        (Update(add_nodes=[Node("venue", "KDD")]), "venue 'KDD' is there already"),
    ],
)
def test_an_update_with_a_bad_line_changes_nothing(update: Update, message: str) -> None:
    live = LiveGraph(npth.load("toy"))
    live.attach(npth.PathSim("author-paper-author"))
    zoe, edge = Node("author", "Zoe"), Edge("writes", "Zoe", "Mike-VLDB-3")
    bad = Update([edge, *update.add_edges], update.remove_edges, [zoe, *update.add_nodes])
    with pytest.raises(GraphError, match=message):
        live.update(bad)
    assert digest(live.view().hin) == digest(npth.load("toy"))
    assert live.update(Update([edge], add_nodes=[zoe])) == 1
    assert live.view().hin.row("author", "Zoe") == 5


def test_nodes_of_a_graph_without_a_store_cannot_be_removed() -> None:
    live = LiveGraph(npth.load("toy"))
    live.update(Update(add_nodes=[Node("author", "Zoe")]))
    with pytest.raises(GraphError, match="nothing was changed: .* cannot remove nodes; use a LiveStore"):
        live.update(Update(remove_nodes=[Node("author", "Zoe")]))
    assert live.view().version == 1


def test_an_update_by_ids_is_the_change_by_rows() -> None:
    live, writes = LiveGraph(npth.load("toy")), Edge("writes", "Mike", "Jim-SIGMOD-1")
    relation = live.view().hin.schema.relations[0]
    row, column = live.view().hin.row("author", "Mike"), live.view().hin.row("paper", "Jim-SIGMOD-1")

    def weight() -> float:
        return float(live.view().hin.matrices[relation][row, column])

    live.update(Update([writes]))
    live.update(Update([writes]))
    assert weight() == 2.0, "an edge that is there gains weight"
    set_edges(live, [(relation, row, column, 7.0)])
    live.update(Update([writes]))
    assert weight() == 8.0, "a change by rows is known to the next update"
    live.compact()
    live.update(Update([Edge("writes", "Mike", "Jim-SIGMOD-1", 0.5)], [writes]))
    assert (weight(), live.view().version) == (0.5, 5)


def test_a_store_that_cannot_be_read_is_not_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_store(npth.load("toy"), tmp_path / "toy.store")

    def fail(*_: object) -> None:
        raise SourceError("damaged")

    with monkeypatch.context() as patched:
        patched.setattr(LiveStore, "_open", fail)
        with pytest.raises(SourceError, match="damaged"):
            LiveStore(path)
    with LiveStore(path) as live:
        assert live.view().version == 0
    assert not check(path).problems


@pytest.mark.slow
def test_versions_that_share_little_are_not_all_kept_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, measure = write_store(npth.load("toy"), tmp_path / "s"), PathCount("APA")
    monkeypatch.setattr("neupath.live.live_graph.MAX_BYTES", 40_000)
    with LiveStore(path, compaction_share=float("inf")) as live:
        live.attach(measure)
        for _ in range(30):
            live.update(Update([Edge("writes", "Mike", "Jim-SIGMOD-1")]))
        assert len(live._recent) == 31
        for number in range(30):
            live.update(Update(add_nodes=[Node("paper", f"new{number}")]))
            live.update(Update(remove_nodes=[Node("paper", f"new{number}")]))
        assert len(live._recent) < 20
        found = {live.view(as_of).scorer(measure).score("Mike", "Jim") for as_of in range(30, 91)}
        assert found == {30.0}


def test_a_new_node_of_a_store_is_not_compared_with_all_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with LiveStore(write_store(npth.load("toy"), tmp_path / "s")) as live:
        monkeypatch.setattr(Nodes, "_refuse_repeated_ids", lambda nodes: pytest.fail(f"{len(nodes)} were compared"))
        live.update(Update(add_nodes=[Node("author", "Zoe")]))
        assert live.view().hin.row("author", "Zoe") == 5


@pytest.mark.parametrize("weight", [1e200, 1e-200])
def test_an_overflow_raises_as_from_scratch_and_stops_nothing(tmp_path: Path, weight: float) -> None:
    measure = npth.PathSim("author-paper-author")
    heavy = Edge("writes", "Zoe", "new", weight)
    with LiveStore(write_store(npth.load("toy"), tmp_path / "s"), compaction_share=float("inf")) as live:
        live.attach(measure)
        live.update(Update(add_nodes=[Node("author", "Zoe"), Node("paper", "new"), Node("paper", "odd")]))
        live.update(Update([heavy]))
        for change in (Update(remove_nodes=[Node("paper", "odd")]), Update(add_nodes=[Node("paper", "odd")])):
            with pytest.raises(GraphError, match="than a float can hold"):
                live.view().scorer(measure)
            live.update(change)
            live.graph.compact()
        live.update(Update(remove_edges=[heavy]))
        assert live.attach(measure).score("Jim", "Mary") == measure.fit(npth.load("toy")).score("Jim", "Mary")
        live.update(Update([Edge("writes", "Zoe", "new")]))
        assert isinstance(live.view().scorer(measure), LiveScorer)


# ---- Columns of new nodes ------------------------------------------------------------------------
def shop() -> npth.HIN:
    return npth.HIN.build(
        [Nodes("item", pa.array(["x"]), pa.array(["X"]), pa.table({"year": [2000]})), Nodes("tag", pa.array([1]))],
        [Edges(Relation("item", "has", "tag"), np.array([0]), np.array([0]))],
    )


def test_attributes_of_new_nodes_are_merged() -> None:
    live = LiveGraph(shop())
    for number in range(200):
        live.update(Update(add_nodes=[Node("item", f"i{number}", "I", {"year": number})]))
    years = live.view().hin.nodes["item"].attributes["year"]
    assert years.num_chunks <= 9
    live.compact()
    compacted = live.view().hin.nodes["item"]
    assert compacted.attributes["year"].num_chunks == 1
    assert compacted.attributes["year"].to_pylist() == [2000, *range(200)] == years.to_pylist()
    assert compacted.find("i7") == 8


def test_the_bytes_of_shared_attributes_are_counted_once() -> None:
    asked: list[int] = []

    class Counted:
        """A table that notes who asks for its size, which takes as long as it has chunks."""

        def __init__(self, table: pa.Table) -> None:
            self._table = table

        def __getattr__(self, name: str) -> object:
            return getattr(self._table, name)

        @property
        def nbytes(self) -> int:
            asked.append(1)
            return int(self._table.nbytes)

    hin = shop()
    object.__setattr__(hin.nodes["item"], "attributes", Counted(hin.nodes["item"].attributes))
    live, recent = LiveGraph(hin), VersionCache()
    for number in range(20):
        set_edges(live, [(hin.schema.relations[0], 0, 0, float(number + 1))])
        recent.add(live.view())
    assert len(recent) == 20
    assert len(asked) == 1


def test_new_nodes_are_not_compared_with_all_others(monkeypatch: pytest.MonkeyPatch) -> None:
    live = LiveGraph(npth.load("toy"))
    monkeypatch.setattr(Nodes, "_refuse_repeated_ids", lambda nodes: pytest.fail(f"{len(nodes)} were compared"))
    assert [live.update(Update(add_nodes=[Node("author", name)])) for name in ("Zoe", "Ida")] == [1, 2]
    for name in ("Zoe", "Mike"):
        with pytest.raises(GraphError, match=f"author '{name}' is there already"):
            live.update(Update(add_nodes=[Node("author", name)]))
        live.compact()
    assert live.view().hin.nodes["author"].ids.to_pylist()[5:] == ["Zoe", "Ida"]


def test_new_nodes_get_the_columns_of_the_others() -> None:
    live = LiveGraph(shop())
    with pytest.raises(GraphError, match="'a' cannot be the id of a tag"):
        live.update(Update(add_nodes=[Node("tag", "a")]))
    with pytest.raises(GraphError, match="item has no attribute colour"):
        live.update(Update(add_nodes=[Node("item", "y", "Y", {"colour": 1})]))
    assert live.view().version == 0
    assert live.update(Update(add_nodes=[Node("item", "y", "Y", {"year": "2001"}), Node("item", 3)])) == 1
    items = live.view().hin.nodes["item"]
    assert items.ids.to_pylist() == ["x", "y", "3"]
    assert items.names.to_pylist() == ["X", "Y", None]
    assert items.attributes["year"].to_pylist() == [2000, 2001, None]


def test_a_scorer_of_a_live_graph_is_joined_over_another_graph(tmp_path: Path) -> None:
    hin, measure = npth.load("toy"), npth.PathSim("author-paper-author")
    live = LiveGraph(hin)
    live.attach(measure)
    live.update(Update(add_edges=[Edge("writes", "Mike", "Jim-SIGMOD-1")]))
    scorer = live.view().scorer(measure)
    assert npth.join(hin, scorer, tmp_path / "before.parquet").pairs == 0
    assert npth.join(scorer.hin_, scorer, tmp_path / "after.parquet").pairs == 2
    assert scorer.bind(hin).top_k("Mike").ids == ()


def test_an_edge_is_added_to_a_row_whose_columns_are_not_sorted() -> None:
    hin = npth.load("toy")
    writes = hin.schema.relations[0]
    matrix = hin.matrices[writes].copy()
    for start, end in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True):
        matrix.indices[start:end] = matrix.indices[start:end][::-1].copy()
    live = LiveGraph(HIN(hin.schema, hin.nodes, {**hin.matrices, writes: csr_array(matrix)}))
    paper = str(hin.nodes["paper"].id(int(hin.matrices[writes].indices[0])))
    live.update(Update(add_edges=[Edge("writes", str(hin.nodes["author"].id(0)), paper)]))
    assert live.view().hin.matrices[writes].sorted_indices().data[0] == 2.0
