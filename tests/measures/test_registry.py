"""A new measure is one class and one line of the registry: everything else reads its formula from the class.

`tests/test_plugins.py` asks the commands and the service for a measure that was added so.
"""

from pathlib import Path

import numpy as np
import pytest

import neupath as npth
from neupath import HIN, NeuPathError
from neupath.engine.formula import Normalisation
from neupath.learn.registry import choose_measure, make_scorer
from neupath.live import LiveGraph
from neupath.measures import MEASURES, Combination, Part, PathMeasure
from neupath.measures.path_measure import Leg, reversed_legs
from tests.live.comparison import rebuilt, set_edges
from tests.walks import hub_scores

PATH = "author-paper-venue-paper-author"


class HubSim(PathMeasure):
    """PathSim with every step divided by the square root of the degree that it leads to."""

    name = "hubsim"
    normalisation = Normalisation.DICE
    symmetric_only = True

    def legs(self, metapath):
        forward = [Leg(step, column_power=-0.5) for step in metapath.steps[: len(metapath) // 2]]
        return [*forward, *reversed_legs(forward)]


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MEASURES, HubSim.name, HubSim)


def test_search_follows_the_formula(toy: HIN, tmp_path: Path) -> None:
    scorer = make_scorer(toy, metapath=PATH, measure="hubsim")
    rows = np.arange(toy.num_nodes("author"))
    np.testing.assert_allclose(scorer.score_rows(rows), hub_scores(toy, PATH), atol=1e-12)
    loaded = npth.load_scorer(scorer.save(tmp_path), toy)
    assert loaded.top_k("Mike", k=3) == scorer.top_k("Mike", k=3)
    assert choose_measure(toy.schema, metapath=PATH, measure="HubSim").name == "hubsim"
    with pytest.raises(NeuPathError, match=r"no measure 'hubsin' .*; did you mean 'hubsim'\?"):
        make_scorer(toy, metapath=PATH, measure="hubsin")


def test_a_live_graph_keeps_it_up_to_date(toy: HIN) -> None:
    live = LiveGraph(toy)
    live.attach(HubSim(PATH))
    relation = toy.schema.relations[0]
    set_edges(live, [(relation, 0, 3, 2.0), (relation, 1, 0, 0.0)])
    view = live.view()
    rows = np.arange(toy.num_nodes("author"))
    scores = view.scorer(HubSim(PATH)).score_rows(rows)
    np.testing.assert_allclose(scores, HubSim(PATH).fit(rebuilt(view.hin)).score_rows(rows), rtol=1e-12)


def test_a_combination_mixes_it(toy: HIN) -> None:
    mixed = Combination([Part("hubsim", PATH, 0.6), Part("pathsim", PATH, 0.4)]).fit(toy)
    single = [make_scorer(toy, metapath=PATH, measure=name).scores("Mike") for name in ("hubsim", "pathsim")]
    np.testing.assert_allclose(mixed.scores("Mike"), 0.6 * single[0] + 0.4 * single[1], atol=1e-12)


def test_inference_finds_it(toy: HIN) -> None:
    authors, scores = toy.nodes["author"].ids.to_pylist(), hub_scores(toy, PATH)
    labels = [(authors[q], authors[t], scores[q, t]) for q in range(len(authors)) for t in range(q)]
    inferred = npth.infer(toy, labels, max_length=4, measures=["pathsim", "hubsim"])
    assert (inferred.measure, [part.metapath for part in inferred.parts]) == ("hubsim", [PATH])
    assert inferred.exact
    ends = toy.row("author", "Mike"), toy.row("author", "Mary")
    assert inferred.score("Mike", "Mary") == pytest.approx(scores[ends])
