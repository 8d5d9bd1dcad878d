"""Prepared indices: each answers as the measure that it was made of, to the bit."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neupath import HIN, PathSim, join, load, open_index, prepare
from neupath.engine import prepared, products, topk
from neupath.engine.prepared import PreparedIndex, number_hashes, text_hashes
from neupath.errors import NodeError, QueryError
from neupath.graph.hin import Edges
from neupath.graph.metapath import Relation
from neupath.graph.nodes import Nodes
from neupath.measures import MEASURES, HeteSim, PathMeasure, measure_named, walk_measures
from neupath.measures import prepare as preparing
from tests.conditioned import Case
from tests.graphs import hins_with_path, shop_graph
from tests.prepared_index import WAYS, assert_same_answers, prepare_and_open, searching

UITIU = "user-item-tag-item-user"
ANY_PATH = tuple(name for name in walk_measures() if not MEASURES[name].symmetric_only)


@pytest.fixture(scope="module")
def shop() -> HIN:
    return shop_graph()


@pytest.fixture(scope="module")
def measure(shop: HIN) -> PathMeasure:
    return PathSim(UITIU).fit(shop)


@pytest.fixture(scope="module")
def index(shop: HIN, measure: PathMeasure, tmp_path_factory: pytest.TempPathFactory) -> PreparedIndex:
    return prepare_and_open(shop, measure, tmp_path_factory.mktemp("index"))


# ---- The same answers ----------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("name", walk_measures())
@settings(max_examples=20)
@given(st.data())
def test_an_index_answers_as_its_measure(name: str, data: st.DataObject) -> None:
    hin, path = data.draw(hins_with_path(symmetric=name not in ANY_PATH))
    with TemporaryDirectory() as folder:
        measure = measure_named(name, path).fit(hin)
        assert_same_answers(prepare_and_open(hin, measure, Path(folder)), measure)


@pytest.mark.parametrize("name", walk_measures())
@pytest.mark.parametrize("seed", range(5))
def test_conditions_and_weights_in_the_path(name: str, seed: int, tmp_path: Path) -> None:
    case = Case(seed)
    measure = measure_named(name, case.path(symmetric=name not in ANY_PATH)).fit(case.hin)
    assert_same_answers(prepare_and_open(case.hin, measure, tmp_path), measure)


@pytest.mark.parametrize("name", ["pathsim", "hetesim", "tversky:alpha=0.9,beta=0.1", "dwpc:damping=0.2"])
@pytest.mark.parametrize("path", [UITIU, "user-item-user", "item-user-item"])
def test_settings_of_measures(shop: HIN, name: str, path: str, tmp_path: Path) -> None:
    measure = measure_named(name, path).fit(shop)
    index = prepare_and_open(shop, measure, tmp_path)
    assert_same_answers(index, measure)
    assert (index.name, index.params(), index.metapath_text) == (measure.name, measure.params(), measure.metapath_text)


def test_both_types_of_indices(shop: HIN, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in (UITIU, "user-item-tag"):
        measure, folder = HeteSim(path).fit(shop), tmp_path / path
        with monkeypatch.context() as patch:
            for module in (preparing, prepared, products):
                patch.setattr(module, "index_type", lambda *_: np.dtype(np.int64))
            wide = prepare_and_open(shop, measure, folder / "wide")
            assert_same_answers(wide, measure)
        narrow = prepare_and_open(shop, measure, folder / "narrow")
        assert [index.files["left.indices"].facts.type for index in (wide, narrow)] == ["int64", "int32"]
        assert_same_answers(wide, measure)


@pytest.mark.parametrize("name", ["pathsim", "joinsim", "pathcount"])
def test_a_heavy_path_is_searched_by_the_index_that_is_stored_with_it(
    shop: HIN, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preparing, "HEAVY_ENOUGH_FOR_INDEX", 0)
    for limit in ("_HEAVY", "_BUILD", "HEAVY_ENOUGH_FOR_INDEX"):
        monkeypatch.setattr(topk, limit, 0)
    measure = measure_named(name, UITIU).fit(shop)
    index = prepare_and_open(shop, measure, tmp_path)
    assert "index.postings.starts" in index.files
    rows = np.arange(40)
    with monkeypatch.context() as patch:  # the one that is stored is used, and none is built
        patch.setattr("neupath.engine.index._build_index", None, raising=False)
        with searching("whole"):
            ranking = index.rank_rows(rows, rows, 5, None, 1)
            assert index._whole is not None
            assert index._whole.index is not None
    assert np.array_equal(ranking.scores, measure.rank_rows(rows, rows, 5, None, 1).scores)
    assert_same_answers(index, measure)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "options",
    [
        {"include_query": True},
        {"zeros": True},
        {"zeros": True, "among": ["u3", "u39", "User 5"]},
        {"among": ["u3", "u4", "u5", "User 6"]},
        {"diverse": 0.5},
        {"together": True},
        {"k": 1000},
    ],
)
def test_options_of_a_search(measure: PathMeasure, index: PreparedIndex, way: str, options: dict) -> None:
    with searching(way):
        for query in ("u0", "User 7", "u39", ["u0", "u1", "u39"], {"u0": 1.0, "u3": -0.5}):
            ours, theirs = index.top_k(query, **options), measure.top_k(query, **options)
            assert ours == theirs
            for own, other in zip(
                *(hits if isinstance(hits, list) else [hits] for hits in (ours, theirs)), strict=True
            ):
                assert own.shortfall == other.shortfall
                assert own.to_dict() == other.to_dict()


def test_options_that_need_the_graph_are_refused(index: PreparedIndex) -> None:
    with pytest.raises(
        QueryError, match="an index has no edges and no other meta-path; leave out unless, or search the graph"
    ):
        index.top_k("u0", unless="user-item-user")
    with pytest.raises(QueryError, match="price"):
        index.top_k("u0", where="price > 3")
    with pytest.raises(QueryError, match="is an index of a graph already; prepare another one for another graph"):
        index.fit(load("toy"))
    with pytest.raises(QueryError, match="is an index of a graph already"):
        index.bind(load("toy"))


def test_conditions_on_what_an_index_has(measure: PathMeasure, index: PreparedIndex) -> None:
    for where in ("name ~ 1", "id = u4"):
        assert index.top_k("u0", 20, where=where) == measure.top_k("u0", 20, where=where)


# ---- Nodes ---------------------------------------------------------------------------------------
LONG = "x" * 70_000  # more than a block of a file
NAMES = [None, "Ann", "Ann", "BOB", "a4", "Zoë", "名前", "", LONG, "a1", "7"]


def named_graph(ids: list, names: list | None) -> HIN:
    """Each of some nodes is linked to the item of its row, and all of them to one more."""
    rows = np.arange(len(ids))
    edges = np.concatenate([rows, rows]), np.concatenate([rows, np.full(len(ids), len(ids))])
    column = None if names is None else pa.array(names, pa.string())
    return HIN.build(
        [Nodes("a", pa.array(ids), column), Nodes("b", pa.array(np.arange(len(ids) + 1)))],
        [Edges(Relation("a", "r", "b"), *edges)],
    )


TEXTS = [f"a{i}" for i in range(9)] + ["7", LONG + "y"]
NUMBERS = [5, -3, 7, 2**62, 0, 11, 12, 13, -(2**62), 15, 16]


@pytest.mark.parametrize("ids", [TEXTS, NUMBERS])
@pytest.mark.parametrize("names", [NAMES, None, [None] * 11, ["same"] * 11])
def test_nodes_are_found_as_in_the_graph(ids: list, names: list | None, tmp_path: Path) -> None:
    hin = named_graph(ids, names)
    index = prepare_and_open(hin, PathSim("a-b-a"), tmp_path)
    ours, theirs = index.hin_.nodes["a"], hin.nodes["a"]
    rows = np.array([3, 0, 3, 10])
    assert len(ours) == len(theirs)
    assert ours.id_type == theirs.id_type
    assert ours.ids.equals(theirs.ids)
    assert ours.take_ids(rows).equals(theirs.take_ids(rows))
    assert ours.has_names == theirs.has_names
    if theirs.names is not None:
        assert ours.names.equals(theirs.names)
        assert ours.take_names(rows).equals(theirs.take_names(rows))
    assert [ours.name(row) for row in range(11)] == [theirs.name(row) for row in range(11)]
    queries = [*ids, *map(str, ids), *filter(None, NAMES), "ann", "bob", "ZOE", "zoe", "nobody", "", " ", 7, 7.0, True]
    for query in [*queries, np.int64(5), "\ud800", "same", 2**70, -1, 1.5, None]:
        assert outcome(ours, query) == outcome(theirs, query), query
    found = [query for query in queries if isinstance(outcome(theirs, query), int)]
    assert np.array_equal(ours.find_many(found), theirs.find_many(found))


def outcome(nodes: Nodes, query: object) -> object:
    """Return the row of a query, or the sentence that says why it has none."""
    try:
        return nodes.find(query)  # type: ignore[arg-type]
    except NodeError as error:
        return str(error)


def test_an_unknown_name_among_many_nodes(index: PreparedIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepared, "_MOST_NAMED", 3)
    assert index.top_k("User 7").query == "u7"
    with pytest.raises(
        NodeError, match=r"no user with the id or name 'user 7' among 40; the ids look like 'u0', "
    ) as no:
        index.top_k("user 7")
    assert no.value.query == "user 7"


@given(st.lists(st.text() | st.text("a", max_size=40)), st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_equal_texts_have_equal_hashes_and_others_do_not(texts: list[str], numbers: list[int]) -> None:
    encoded = [text.encode("utf-8", "replace") for text in texts]
    starts = np.cumsum([0, *map(len, encoded)])
    hashes = text_hashes(starts, np.frombuffer(b"".join(encoded), np.uint8)).tolist()
    assert len(set(zip(encoded, hashes, strict=True))) == len(set(encoded)) == len(set(hashes))
    assert len(set(number_hashes(np.array(numbers, np.int64)).tolist())) == len(set(numbers))


@pytest.mark.parametrize("ids", [pa.string(), pa.int64()])
def test_a_graph_without_nodes_or_edges(ids: pa.DataType, tmp_path: Path) -> None:
    none, nobody = np.zeros(0, np.int64), pa.array([], ids)
    for size in (0, 2):
        nodes = [
            Nodes("a", nobody, pa.array([], pa.string())),
            Nodes("b", pa.array([f"b{i}" for i in range(size)], pa.string())),
        ]
        hin = HIN.build(nodes, [Edges(Relation("a", "r", "b"), none, none)])
        for path in ("a-b-a", "b-a-b", "a-b"):
            measure = HeteSim(path).fit(hin)
            assert_same_answers(prepare_and_open(hin, measure, tmp_path / f"{size}{path}"), measure)


# ---- Explanations --------------------------------------------------------------------------------
@pytest.mark.parametrize("name", walk_measures())
def test_the_shares_of_an_explanation_add_up_to_the_score(shop: HIN, name: str, tmp_path: Path) -> None:
    measure = measure_named(name, UITIU).fit(shop)
    index = prepare_and_open(shop, measure, tmp_path)
    for hit in measure.top_k("u0", 5):
        shared = index.explain("u0", hit.id, limit=100)
        assert shared.score == hit.score
        assert len(shared.groups) == shared.num_groups > 0
        assert sum(group.score for group in shared.groups) == pytest.approx(hit.score)
        assert sum(group.share for group in shared.groups) == pytest.approx(1)
        assert {group.node_type for group in shared.groups} == {"tag"}
        assert [group.share for group in shared.groups] == sorted((g.share for g in shared.groups), reverse=True)


def test_explanations_at_the_edges(shop: HIN, index: PreparedIndex, tmp_path: Path) -> None:
    unrelated = index.explain("u0", "u39")
    assert (unrelated.score, unrelated.num_groups, unrelated.groups) == (0.0, 0, ())
    assert len(index.explain("u0", "u0", limit=1).groups) == 1
    with pytest.raises(QueryError, match="limit is 0; list at least 1 node"):
        index.explain("u0", "u1", limit=0)
    odd = prepare_and_open(shop, HeteSim("user-item-tag-item"), tmp_path)
    hit = odd.top_k("u0", 1)[0]
    meeting = odd.explain("u0", hit.id)
    assert meeting.score == hit.score
    assert meeting.num_groups > 0
    assert meeting.groups == ()
    assert repr(index.explain("u0", "u1")).startswith("u0 and u1 score ")
    assert index.explain("u0", "u1").to_dict()["measure"] == "pathsim"


def test_an_index_is_sent_to_another_process_by_its_address(index: PreparedIndex) -> None:
    import pickle

    copy = pickle.loads(pickle.dumps(index))
    assert copy.url == index.url
    assert copy.top_k("u0") == index.top_k("u0")
    assert repr(index).startswith("<PreparedIndex: pathsim along user")
    assert open_index(index.url).top_k("u0", 3) == index.top_k("u0", 3)
    assert prepare is preparing.prepare


# ---- Some targets --------------------------------------------------------------------------------
@pytest.mark.parametrize("way", WAYS)
def test_an_index_of_some_targets(shop: HIN, measure: PathMeasure, way: str, tmp_path: Path) -> None:
    """Every search and join leaves out the others; prepared again without the condition, the index has them all."""
    url = prepare(shop, PathSim(UITIU), tmp_path / "index", where="name ~ 1")
    index, chosen = open_index(url), [f"u{i}" for i in range(40) if "1" in str(i)]
    with searching(way):
        for options in ({}, {"among": ["u1", "u2", "u10"]}, {"where": "name ~ 2"}, {"include_query": True}):
            among = [own for own in options.get("among", chosen) if own in chosen]
            rest = {name: value for name, value in options.items() if name != "among"}
            ours = index.top_k(["u0", "u1", "u39"], 20, **options)
            assert ours == measure.top_k(["u0", "u1", "u39"], 20, among=among, **rest)
        index.join(tmp_path / "ours.parquet", 5)
        join(shop, measure, tmp_path / "theirs.parquet", 5, among=chosen)
    assert (tmp_path / "ours.parquet").read_bytes() == (tmp_path / "theirs.parquet").read_bytes()
    whole = open_index(prepare(shop, PathSim(UITIU), url))
    assert whole.top_k("u0", 20) == measure.top_k("u0", 20)
