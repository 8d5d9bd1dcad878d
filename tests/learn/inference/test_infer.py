"""What is inferred from labels that a known measure, a mixture, noise, or people made."""

import numpy as np
import pytest

import neupath as npth
from neupath import HIN, NeuPathError
from neupath.engine.scorer import Scorer
from neupath.graph.metapath import Relation, enumerate_metapaths
from neupath.learn.evaluation import evaluate_pairs
from neupath.learn.inference import infer
from neupath.learn.labels import Pairs, draw_pairs
from neupath.measures import PCRW, Combination, JoinSim, Part, PathCount, measure_named
from tests.graphs import graph_of, shop_graph


@pytest.fixture(scope="module")
def hin() -> HIN:
    rng = np.random.default_rng(5)
    nodes = {"user": users(150), "item": 80, "tag": [f"t{i}" for i in range(15)], "town": [f"o{i}" for i in range(9)]}
    edges = {
        "user -buys-> item": np.c_[rng.integers(0, 149, 500), rng.integers(0, 80, 500)],
        "user -likes-> item": np.c_[rng.integers(0, 149, 300), rng.integers(0, 80, 300)],
        "item -has-> tag": np.c_[rng.integers(0, 80, 130), rng.integers(0, 15, 130)],
        "user -in-> town": np.c_[np.arange(149), rng.integers(0, 9, 149)],
    }
    return graph_of(nodes, edges)


def users(count: int) -> list[str]:
    return [f"u{i}" for i in range(count)]


def labels(scorer: Scorer, queries: int = 10, noise: float = 0.0) -> Pairs:
    pairs = draw_pairs(scorer, users(queries), seed=1)
    scores = pairs.scores + np.random.default_rng(2).normal(0, noise, len(pairs)) if noise else pairs.scores
    return Pairs(pairs.node_type, pairs.queries, pairs.targets, scores)


BUYS = "user -buys-> item <-buys- user"
TAGS = "user -buys-> item-tag-item <-buys- user"


@pytest.mark.parametrize("measure", ["pathsim", "joinsim", "hetesim", "pcrw"])
@pytest.mark.parametrize("path", [BUYS, TAGS, "user-item-user", "user-item-tag-item-user", "user-town-user"])
@pytest.mark.slow
def test_path_and_measure_are_found(hin: HIN, path: str, measure: str) -> None:
    teacher = measure_named(measure, path).fit(hin)
    found = infer(hin, labels(teacher))
    named = [(found.measure, tuple((part.metapath, part.weight) for part in found.parts))]
    named += [(other.measure, other.weights) for other in found.alternatives]
    assert (measure, ((teacher.metapath_text, pytest.approx(1.0)),)) in named
    assert found.exact
    assert found.rmse == pytest.approx(0.0, abs=1e-9)
    if measure == "pathsim":
        assert (found.measure, found.parts[0].metapath) == ("pathsim", teacher.metapath_text)
    unseen = np.arange(100, 140)
    if not found.alternatives:
        np.testing.assert_allclose(found.scorer.score_rows(unseen), teacher.score_rows(unseen), atol=1e-9)


@pytest.mark.slow
def test_counts_above_1_are_labels_too(hin: HIN) -> None:
    teacher = PathCount(TAGS).fit(hin)
    scores = teacher.score_rows(np.arange(5))[:, 50:60].ravel()
    pairs = Pairs("user", np.repeat(np.arange(5), 10), np.tile(np.arange(50, 60), 5), scores)
    assert scores.max() > 1
    found = infer(hin, pairs)
    assert (found.measure, found.parts[0].metapath) == ("pathcount", teacher.metapath_text)


@pytest.mark.parametrize(("noise", "allowed"), [(0.0, 0.001), (0.03, 0.08)])
@pytest.mark.slow
def test_a_mixture_is_taken_apart(hin: HIN, noise: float, allowed: float) -> None:
    weights = {BUYS: 0.5, "user-town-user": 0.3, "user-item-tag-item-user": 0.2}
    teacher = Combination([Part("pathsim", path, weight) for path, weight in weights.items()]).fit(hin)
    found = infer(hin, labels(teacher, 40, noise))
    got = {part.metapath: part.weight for part in found.parts}
    assert got == pytest.approx(weights, abs=allowed)
    for part in found.parts:
        assert part.low - 1e-9 <= part.high
        assert part.low <= weights[part.metapath] + allowed
        assert part.high >= weights[part.metapath] - allowed


@pytest.mark.parametrize("path", [BUYS, TAGS, "user-town-user"])
@pytest.mark.slow
def test_noise_leaves_the_path_first(hin: HIN, path: str) -> None:
    found = infer(hin, labels(npth.PathSim(path).fit(hin), noise=0.05))
    assert found.parts[0].metapath == path
    assert not found.exact
    assert found.held_out_r2 > 0.8
    assert "explained well, not exactly" in found.verdict


@pytest.mark.slow
def test_labels_that_no_path_explains(hin: HIN) -> None:
    pairs = labels(npth.PathSim(TAGS).fit(hin), 40)
    random = Pairs("user", pairs.queries, pairs.targets, np.random.default_rng(0).random(len(pairs)))
    found = infer(hin, random)
    assert not found.explains
    assert found.r2 == pytest.approx(0.0, abs=0.05)
    assert all(part.low == pytest.approx(0.0, abs=0.02) for part in found.parts)
    assert "no combination of paths explains these labels" in found.verdict


@pytest.mark.slow
def test_what_labels_cannot_tell_apart_is_named_and_a_pair_suggested(hin: HIN) -> None:
    teacher = npth.PathSim("user-town-user").fit(hin)
    top = draw_pairs(teacher, users(6), "paper", per_query=5)
    assert set(top.scores.tolist()) == {1.0}
    found = infer(hin, top)
    assert found.parts[0].metapath == "user-town-user"
    others = [str(other) for other in found.alternatives]
    assert "user-town-user-town-user by pathsim" in others
    joinsim = next(i for i, text in enumerate(others) if text == "user-town-user by joinsim")
    assert joinsim >= 0
    for pair in found.suggest_pairs(3):
        row, column = hin.row("user", pair.query), hin.row("user", pair.target)
        assert row != column
        assert (row, column) not in set(zip(top.queries.tolist(), top.targets.tolist(), strict=True))
        assert pair.scores[0] == pytest.approx(teacher.score(pair.query, pair.target))
        assert max(pair.scores) > min(pair.scores)


@pytest.mark.slow
def test_a_suggested_label_tells_alternatives_apart(hin: HIN) -> None:
    teacher = JoinSim(TAGS).fit(hin)
    pairs = draw_pairs(teacher, users(1), per_query=2, seed=3)
    found = infer(hin, pairs, measures=["pathsim", "joinsim"])
    rounds = 0
    while (suggested := found.suggest_pairs(1)) and rounds < 30:
        query, target = (hin.row("user", node) for node in (suggested[0].query, suggested[0].target))
        pairs = Pairs(
            "user",
            np.append(pairs.queries, query),
            np.append(pairs.targets, target),
            np.append(pairs.scores, teacher.score_rows(np.array([query]))[0, target]),
        )
        found, rounds = infer(hin, pairs, measures=["pathsim", "joinsim"]), rounds + 1
    assert rounds <= 10
    assert (found.measure, found.parts[0].metapath, found.parts[0].weight) == ("joinsim", TAGS, 1.0)


def test_all_labels_0(hin: HIN) -> None:
    found = infer(hin, [("u0", "u149", 0.0), ("u1", "u149", 0.0)])
    assert "all labels are 0" in found.verdict
    assert found.parts[0].weight == 1.0
    assert found.alternatives


def similar_pairs(hin: HIN, count: int, *, negatives: bool) -> list[tuple[object, ...]]:
    """Users of one town are similar."""
    rng = np.random.default_rng(1)
    towns = hin.matrices[Relation("user", "in", "town")].indices
    found: list[tuple[object, ...]] = []
    for query in range(count):
        same, other = np.flatnonzero(towns == towns[query]), np.flatnonzero(towns != towns[query])
        found += [(f"u{query}", f"u{t}", 1) for t in rng.choice(same[same != query], 3, replace=False)]
        if negatives:
            found += [(f"u{query}", f"u{t}", 0) for t in rng.choice(other, 3, replace=False)]
    return found if negatives else [pair[:2] for pair in found]


@pytest.mark.parametrize("negatives", [True, False])
@pytest.mark.slow
def test_yes_no_labels_and_examples_alone(hin: HIN, negatives: bool) -> None:
    pairs = similar_pairs(hin, 30, negatives=negatives)
    noisy = [*pairs, ("u0", "u1", 1)] if negatives else [*pairs, ("u0", "u1")]  # not of one town: no exact fit
    found = infer(hin, noisy)
    assert found.kind == "ranking"
    assert found.parts[0].metapath == "user-town-user"
    assert sum(part.weight for part in found.parts) == pytest.approx(1.0, abs=0.02)
    assert found.held_out_auc > 0.9
    assert found.explains
    assert found.top_k("u5", 1)[0].score > 0


@pytest.mark.slow
def test_one_way_paths(hin: HIN) -> None:
    path = "user -likes-> item <-buys- user"
    teacher = PCRW(path).fit(hin)
    pairs = labels(teacher)
    assert infer(hin, pairs).parts[0].metapath != path
    found = infer(hin, pairs, asymmetric=True, max_length=4)
    assert (found.measure, found.parts[0].metapath, found.parts[0].weight) == ("pcrw", path, 1.0)
    np.testing.assert_allclose(found.scorer.scores("u3"), teacher.scores("u3"))


@pytest.mark.slow
def test_the_same_pairs_give_the_same_result(hin: HIN) -> None:
    pairs = labels(npth.PathSim(TAGS).fit(hin), 40, 0.05)
    first, second = infer(hin, pairs, seed=3), infer(hin, pairs, seed=3)
    assert first.to_dict() == second.to_dict()
    order = np.random.default_rng(0).permutation(len(pairs))
    shuffled = Pairs("user", pairs.queries[order], pairs.targets[order], pairs.scores[order])
    assert infer(hin, shuffled, seed=3).parts[0].metapath == first.parts[0].metapath


@pytest.mark.slow
def test_a_budget_stops_the_search_and_says_so(hin: HIN) -> None:
    pairs = labels(npth.PathSim(BUYS).fit(hin), noise=0.05)
    whole, part = infer(hin, pairs), infer(hin, pairs, budget=20_000)
    assert whole.searched.tried == whole.searched.total
    assert whole.searched.stopped is None
    assert 0 < part.searched.tried < part.searched.total
    assert part.searched.stopped == "the budget of work is spent"
    with pytest.raises(NeuPathError, match="the budget of 1 multiplications is too small for the first step"):
        infer(hin, pairs, budget=1)


@pytest.mark.slow
def test_many_labels_are_searched_by_a_sample_and_fitted_whole(hin: HIN) -> None:
    teacher = npth.PathSim(TAGS).fit(hin)
    found = infer(hin, draw_pairs(teacher, users(149)))
    assert (found.parts[0].metapath, found.parts[0].weight) == (TAGS, 1.0)
    assert found.rmse == pytest.approx(0.0, abs=1e-12)


@pytest.mark.slow
def test_explanations_add_up(hin: HIN) -> None:
    teacher = Combination([Part("pathsim", BUYS, 0.5), Part("pathsim", "user-town-user", 0.5)]).fit(hin)
    found = infer(hin, labels(teacher, 20))
    hit = found.top_k("u3", 1)[0]
    why = found.explain("u3", hit.id)
    assert why.score == pytest.approx(hit.score)
    assert sum(part.share for part in why.parts) == pytest.approx(hit.score)
    for part in why.parts:
        shares = [instance.share for instance in part.explanation.instances]
        assert part.weight * (sum(shares) + part.explanation.hidden_share) == pytest.approx(part.share)


@pytest.mark.slow
def test_found_is_saved_as_readable_json(hin: HIN, tmp_path) -> None:
    found = infer(hin, labels(npth.PathSim(BUYS).fit(hin)))
    again = npth.load_scorer(found.save(tmp_path), hin)
    assert BUYS in (tmp_path / "config.json").read_text()
    np.testing.assert_array_equal(again.scores("u2"), found.scorer.scores("u2"))
    (tmp_path / "config.json").write_text('{"scorer": "combination", "params": {"parts": [{"measure": "pathsim"}]}}')
    with pytest.raises(NeuPathError, match="holds a combination that cannot be used: .* give measure"):
        npth.load_scorer(tmp_path, hin)


@pytest.mark.parametrize(
    ("pairs", "options", "message"),
    [
        ([], {}, "there are no pairs to learn from"),
        ([("u0", "nobody", 1.0)], {}, "no node type has all targets of the pairs"),
        ([("u0", "t1", 1.0)], {"measures": ["pathsim"]}, "pathsim compare nodes of one type, and these pairs go from"),
        ([("u0", "o1", 1.0), ("u0", "t1", 1.0)], {}, "no node type has all targets of the pairs"),
        ([("u0", "u1", "much")], {}, r"pair 1 \('u0', 'u1'\) has the score 'much'; scores are finite numbers"),
        ([("u0", "u1", float("inf"))], {}, "has the score inf; scores are finite numbers"),
        (
            [("u0", "u1", 1.0), ("u0", "u2", 0.5), ("u0", "u1", 0.0)],
            {},
            r"pair 1 \('u0', 'u1'\) has the score 1, and pair 3 \('u0', 'u1'\) has 0; keep one of the two",
        ),
        ([("u0", "u1", 1.0)], {"max_length": 1}, "max_length is 1; give a whole number from 2 to 20"),
        ([("u0", "u1", -1.0)], {}, "no label is above 0; paths add to a score"),
        ([("u0", "u1", 1e300)], {}, "a label is 1e[+]300; scale labels down"),
        ([("u0", "u1", 1.0)], {"measures": []}, "give a list of some of pathsim"),
        ([("u0", "u1", 1.0)], {"seed": -1}, "seed is -1"),
        (None, {}, "pairs are None; give a CSV file"),
        ([("u0", "u1", 1.0)], {"measures": ["simrank"]}, "'simrank' cannot be inferred; pathsim, joinsim"),
    ],
)
def test_bad_input(hin: HIN, pairs, options, message: str) -> None:
    with pytest.raises(NeuPathError, match=message):
        infer(hin, pairs, **options)


@pytest.mark.parametrize("measure", ["hetesim", "pcrw", "pathcount"])
def test_labels_across_types_are_explained_by_one_way_paths(hin: HIN, measure: str, tmp_path) -> None:
    path = "user -buys-> item-tag"
    teacher = measure_named(measure, path).fit(hin)
    scores = teacher.score_rows(np.arange(12))
    rows = [(f"u{q}", f"t{t}", float(scores[q, t])) for q in range(12) for t in range(15)]
    found = infer(hin, rows, max_length=3)
    assert (found.pairs.node_type, found.pairs.target_type) == ("user", "tag")
    named = [(found.measure, tuple((part.metapath, part.weight) for part in found.parts))]
    named += [(other.measure, other.weights) for other in found.alternatives]
    assert (measure, ((teacher.metapath_text, pytest.approx(1.0)),)) in named
    assert found.exact
    assert found.top_k("u3", 3).scores == pytest.approx(teacher.top_k("u3", 3).scores)
    hit = found.top_k("u3", 1)[0]
    assert found.explain("u3", hit.id).score == pytest.approx(hit.score)
    again = npth.load_scorer(found.save(tmp_path), hin)
    assert (again.source_type, again.target_type) == ("user", "tag")
    assert evaluate_pairs(again, rows).rmse == pytest.approx(0.0, abs=1e-9)


def test_similar_pairs_across_types_are_ranked(hin: HIN) -> None:
    bought = hin.matrices[next(r for r in hin.schema.relations if r.name == "buys")]
    rows = [(f"u{q}", int(t)) for q in range(20) for t in bought[[q]].indices]
    found = infer(hin, rows, max_length=2)
    assert found.kind == "ranking"
    assert found.explains
    for pair in found.suggest_pairs(3):
        assert str(pair.query).startswith("u")
        assert isinstance(pair.target, int)


def test_types_without_a_path_between_them() -> None:
    apart = graph_of({"a": ["x"], "b": ["y"]}, {"a -r-> a": [(0, 0)]})
    with pytest.raises(NeuPathError, match="no meta-path of up to 6 steps leads from a to b nodes"):
        infer(apart, [("x", "y", 1.0)])
    with pytest.raises(NeuPathError, match="no relation joins a nodes to others, so there is no path to infer"):
        infer(graph_of({"a": ["x", "y"]}, {}), [("x", "y", 1.0)])


@pytest.mark.slow
def test_the_scale_of_labels_does_not_matter(hin: HIN) -> None:
    pairs = labels(npth.PathSim(TAGS).fit(hin))
    for scale in (1e-9, 1e9):
        found = infer(hin, Pairs("user", pairs.queries, pairs.targets, pairs.scores * scale))
        assert found.exact
        assert [(part.metapath, part.weight) for part in found.parts] == [(TAGS, pytest.approx(scale))]


@pytest.mark.slow
def test_coin_flips_are_rarely_taken_for_a_meaning(hin: HIN) -> None:
    believed = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        queries, targets = np.repeat(rng.choice(149, 12, replace=False), 6), rng.integers(0, 149, 72)
        distinct = np.unique(np.stack([queries, targets], axis=1)[queries != targets], axis=0)
        pairs = Pairs("user", distinct[:, 0], distinct[:, 1], rng.integers(0, 2, len(distinct)).astype(float))
        believed += infer(hin, pairs, max_length=4).explains
    assert believed <= 1


def test_extreme_weights_are_no_traceback() -> None:
    for weight in (1e-160, 1e160):
        edges = [(row, row // 2, weight) for row in range(4)]
        hin = graph_of({"a": list("wxyz"), "b": 2}, {"a -r-> b": edges})
        assert infer(hin, [("w", "x", 1.0), ("w", "y", 0.2)]).parts


@pytest.mark.slow
def test_one_way_candidates_are_counted_and_budgeted(hin: HIN) -> None:
    pairs = labels(npth.PathSim(BUYS).fit(hin), noise=0.05)
    whole = infer(hin, pairs, asymmetric=True, max_length=3).searched
    one_way = [p for p in enumerate_metapaths(hin.schema, "user", 3, symmetric=False) if p.target == "user"]
    assert whole.total > len(one_way), "steps over several relations count, too"
    assert whole.tried == whole.total
    cut = infer(hin, pairs, asymmetric=True, max_length=6, budget=300_000).searched
    assert cut.stopped == "the budget of work is spent"
    assert cut.tried < cut.total


def test_ratings_on_another_scale_are_explained(toy: HIN) -> None:
    teacher = npth.PathSim("APVPA").fit(toy)
    ids = toy.nodes["author"].ids.to_pylist()
    labels = [(a, b, 1 + 4 * teacher.score(a, b)) for a in ids for b in ids if a < b]
    explanation = infer(toy, labels, max_length=4)
    assert [(p.metapath, round(p.weight, 6)) for p in explanation.parts] == [("author-paper-venue-paper-author", 4.0)]
    assert explanation.offset == pytest.approx(1.0)
    assert explanation.exact
    assert "a pair without paths has the label 1" in explanation.verdict


@pytest.mark.slow
def test_paths_that_count_against_a_pair() -> None:
    shop = shop_graph()
    ids = shop.nodes["user"].ids.to_pylist()[:24]
    near, far = (npth.PathSim(path).fit(shop) for path in ("user-item-user", "user-item-tag-item-user"))
    labels = [(a, b, near.score(a, b) - 0.5 * far.score(a, b)) for a in ids[:12] for b in ids if a != b]
    explanation = infer(shop, labels, max_length=4)
    weights = {part.metapath: round(part.weight, 6) for part in explanation.parts}
    assert weights == {"user-item-user": 1.0, "user-item-tag-item-user": -0.5}
    assert "negative weights" in explanation.verdict
    assert explanation.score(ids[0], ids[1]) == pytest.approx(labels[0][2])


def test_one_label_is_not_called_explained(toy: HIN) -> None:
    explanation = infer(toy, [("Mike", "Bob", 5.9)], max_length=4)
    assert not explanation.exact
    assert explanation.verdict.startswith("1 label, and as many weights, which would fit anything")


def test_labels_that_count_more(toy: HIN) -> None:
    """Contradicting opinions: the heavier ones decide."""
    labels = [
        ("Mike", "Bob", 1.0, 9.0),
        ("Mike", "Mary", 0.8, 9.0),
        ("Mike", "Jim", 0.9, 1e-6),
        ("Mary", "Ann", 2 / 7, 9.0),
    ]
    explanation = infer(toy, labels, max_length=4)
    assert explanation.parts[0].metapath == "author-paper-venue-paper-author"
    assert explanation.score("Mike", "Mary") == pytest.approx(0.8, abs=0.02)
