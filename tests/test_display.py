"""How objects look in a session and a notebook, and how they become data frames and scikit-learn estimators."""

import re
import sys
from pathlib import Path

import pytest

import neupath as npth
from neupath import HIN
from neupath.engine.hits import Hits
from neupath.errors import MissingExtraError, QueryError
from neupath.evidence.explanation import explain_set
from neupath.graph.metapath import enumerate_metapaths
from neupath.measures import DWPC, JoinSim, PathCount
from tests.graphs import steering, steering_graph
from tests.service.conftest import hostile_graph


def test_reprs_are_short(toy: HIN) -> None:
    assert repr(toy) == "<HIN: author 5, paper 81, venue 4; 2 relations>"
    assert repr(toy.nodes["author"]) == "<Nodes: 5 of type author>"
    assert repr(toy.metapath("APA")) == "MetaPath('author-paper-author')"
    assert repr(npth.PathSim("APA")) == "PathSim(metapath='APA')"
    assert repr(npth.load({("user", "film"): [("u", "f")]})).endswith("; 1 relation>")


def test_hits_are_a_table(toy: HIN) -> None:
    hits = npth.PathSim("APVPA").fit(toy).top_k("Mike", k=2)
    assert repr(hits).splitlines() == [
        "Hits: most similar to Mike by author-paper-venue-paper-author, pathsim",
        "   1  1.0000  Bob",
        "   2  0.8000  Mary",
    ]


def test_hits_with_names_show_their_ids() -> None:
    hits = Hits("q", None, "pathsim", True, ("m1", "m2", "Up"), ("Heat", "Heat", "Up"), (1.0, 0.5, 0.25))
    assert [line.split(maxsplit=2)[2] for line in repr(hits).splitlines()[1:]] == ["Heat (m1)", "Heat (m2)", "Up"]
    assert "Heat (m2)" in hits._repr_html_()


def test_a_what_if_is_its_sentence_and_changes(toy: HIN) -> None:
    answer = npth.what_if(toy, "APVPA", "Mike", "Mary", k=2, remove="paper")
    assert repr(answer).splitlines() == [
        "WhatIf: Mary among the 2 best of Mike by author-paper-venue-paper-author, pathsim",
        "  now: rank 2, score 0.8000",
        "without these 2 paper nodes: no path is left (no smaller set does it)",
        "  Mary-SIGMOD-1",
        "  Mary-SIGMOD-2",
    ]
    never = npth.what_if(toy, "APVPA", "Mike", "Bob", k=4, add="edges")
    assert repr(never).splitlines()[2] == never.reason


def test_an_explanation_is_its_sentence_and_groups(toy: HIN) -> None:
    lines = repr(npth.explain(toy, "APVPA", "Mike", "Jim")).splitlines()
    assert lines[0] == "Mike and Jim: pathsim = 2 × 120 / (5 + 2900) = 0.0826"
    assert lines[2].split() == ["83", "%", "SIGMOD"]


def test_other_results_are_short(toy: HIN) -> None:
    related = npth.relate(toy, "Mike", "Jim")
    assert repr(related).splitlines() == [
        "Related: Jim ranks 3 of 3 targets of Mike along author-paper-venue-paper-author.",
        "  rank 3 of 3  pathsim 0.08262  author-paper-venue-paper-author",
    ]
    compared = npth.compare([npth.PathSim("APVPA").fit(toy), PathCount("APVPA").fit(toy)], "Mike", k=2)
    assert repr(compared).splitlines() == [
        "RankComparison of the hits of Mike, author nodes:",
        "  1  author-paper-venue-paper-author, pathsim",
        "  2  author-paper-venue-paper-author, pathcount",
        "     1     2  Bob",
        "     2     3  Mary",
        "  and 1 more",
    ]
    pairs = [("Mike", "Bob", 1.0), ("Mike", "Mary", 0.8), ("Mike", "Jim", 0.0826), ("Mike", "Ann", 0.0)]
    first, *parts = repr(npth.infer(toy, pairs)).splitlines()
    assert first.startswith("Inferred from 4 labels, by ")
    assert len(parts) <= 5


def test_notebooks_show_hostile_names_as_text() -> None:
    hin = hostile_graph()
    path = "<b>user-tag-<b>user"
    hits = npth.PathSim(path).fit(hin).top_k("ü💥")
    why = npth.explain(hin, path, "ü💥", hits[0].id)
    related = npth.relate(hin, "ü💥", hits[0].id)
    compared = npth.compare([npth.PathSim(path).fit(hin), PathCount(path).fit(hin)], "ü💥")
    results = (hits, hin, why, related, compared, npth.infer(hin, [("ü💥", hits[0].id, 1.0)]))
    for page in (result._repr_html_() for result in results):
        assert "<img" not in page
        assert "<b>user" not in page
        assert not re.search(r"[\x00-\x08\x1b]", page)
    assert "\x1b" not in repr(hits) + repr(why) + repr(related) + repr(compared)


def test_hits_become_frames_and_pictures(toy: HIN, tmp_path: object) -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    hits = npth.PathSim("APVPA").fit(toy).top_k("Mike", k=2)
    expected = {"rank": [1, 2], "id": ["Bob", "Mary"], "score": [1.0, 0.8]}
    assert hits.to_pandas()[list(expected)].equals(pandas.DataFrame(expected))
    assert hits.to_polars().select(list(expected)).to_dict(as_series=False) == expected
    assert polars.DataFrame(hits).shape == (2, 4)  # through the Arrow interface
    hits.plot(f"{tmp_path}/hits.svg")


def test_without_matplotlib_the_extra_is_named(toy: HIN, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"this needs matplotlib, .*\[plot\]'"):
        npth.PathSim("APVPA").fit(toy).top_k("Mike").plot()


def test_tabs_list_what_users_call(toy: HIN) -> None:
    fitted = npth.PathSim("APVPA").fit(toy)
    assert {"fit", "hin_", "metapath_", "save", "scores", "top_k"} <= {*dir(fitted)}
    assert len(dir(fitted)) < 25
    assert not [name for name in dir(fitted) if name.endswith("_rows")]
    assert {name for name in dir(fitted.top_k("Mike")) if not name.startswith("_")} >= {"ids", "scores", "to_pandas"}


def test_scikit_learn_clones_scorers(toy: HIN) -> None:
    clone = pytest.importorskip("sklearn.base").clone
    fitted = DWPC("APA", damping=0.3).fit(toy)
    copied = clone(fitted)
    assert copied.get_params() == {"metapath": "APA", "damping": 0.3} | {
        name: value for name, value in fitted.get_params().items() if name not in ("metapath", "damping")
    }
    assert not hasattr(copied, "hin_")
    assert copied.set_params(damping=0.5).damping == 0.5
    with pytest.raises(QueryError, match="DWPC has no parameter 'dampin'.*did you mean 'damping'"):
        copied.set_params(dampin=0.5)


def test_reprs_do_not_steer_a_terminal(tmp_path: Path) -> None:
    graph = steering_graph(tmp_path)
    _, user = graph.schema.node_types
    path = next(iter(enumerate_metapaths(graph.schema, user, 2, symmetric=True)))
    fitted = npth.PathSim(path).fit(graph)
    results = [
        graph, *graph.nodes.values(), graph.schema, path, fitted, fitted.top_k("u0"), graph.find("film"),
        npth.explain(graph, path, "u0", "u3"), npth.relate(graph, "u0", "u3"), npth.what_if(graph, path, "u0", "u3"),
        npth.compare([fitted, JoinSim(path).fit(graph)], "u0"),
        npth.infer(graph, [("u0", "u3", 1.0), ("u0", "u1", 0.0), ("u1", "u2", 0.0)]),
        explain_set(graph, path, ["u0", "u1"], "u3"),
    ]  # fmt: skip
    for result in results:
        assert not steering(repr(result)), type(result)
