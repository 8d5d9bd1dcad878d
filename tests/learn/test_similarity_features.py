"""SimilarityFeatures is a transformer as scikit-learn expects it, and its columns are the scores of the measure."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import neupath as npth
from neupath import HIN, NeuPathError
from neupath.learn.similarity_features import SimilarityFeatures
from neupath.measures import HeteSim

sklearn = pytest.importorskip("sklearn", reason="scikit-learn is not installed; run: pip install scikit-learn")
from sklearn.base import clone  # noqa: E402
from sklearn.compose import make_column_transformer  # noqa: E402
from sklearn.exceptions import NotFittedError  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402
from sklearn.model_selection import GridSearchCV, cross_val_score  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402

PATHS = ["APA", "APVPA"]


@pytest.mark.parametrize("measure", ["pathsim", "tversky:alpha=0.9,beta=0.1", "pcrw"])
def test_columns_are_scores_and_a_node_has_none_with_itself(toy: HIN, measure: str) -> None:
    features = SimilarityFeatures(toy, PATHS, measure=measure).fit(["Mike", "Mary", "Mike"])
    assert features.references_ == ("Mike", "Mary")
    matrix = features.transform(np.array([["Bob"], ["Mary"]]))
    assert matrix.shape == (2, 4)
    scorers = [npth.measures.measure_named(measure, path).fit(toy) for path in PATHS]
    of_bob = [scorer.score("Bob", reference) for scorer in scorers for reference in ("Mike", "Mary")]
    np.testing.assert_allclose(matrix.toarray()[0], of_bob)
    of_mary = [scorers[0].score("Mary", "Mike"), 0, scorers[1].score("Mary", "Mike"), 0]
    np.testing.assert_allclose(matrix.toarray()[1], of_mary)
    dense = SimilarityFeatures(toy, PATHS, measure=measure, sparse_output=False).fit(["Mike", "Mary"])
    np.testing.assert_array_equal(dense.transform(["Bob", "Mary"]), matrix.toarray())


def test_it_takes_frames_and_names_its_columns(toy: HIN) -> None:
    frame = pd.DataFrame({"author": ["Mike", "Mary", "Bob"], "papers": [2, 2, 1]})
    features = SimilarityFeatures(toy, "APVPA", references=["Jim"], sparse_output=False).set_output(transform="pandas")
    assert features.fit_transform(frame[["author"]]).columns.tolist() == ["author-paper-venue-paper-author: Jim"]
    both = make_column_transformer((features, ["author"]), ("passthrough", ["papers"]))
    assert both.fit_transform(frame).shape == (3, 2)


def test_clones_share_the_graph_and_are_not_fitted(toy: HIN) -> None:
    features = SimilarityFeatures(toy, PATHS, measure="joinsim").fit(["Mike"])
    copy = clone(features)
    assert copy.hin is toy
    assert copy.get_params() == features.get_params()
    with pytest.raises(NotFittedError):
        copy.transform(["Mike"])
    assert copy.set_params(measure="pathsim").measure == "pathsim"


@pytest.mark.slow
def test_a_pipeline_learns_from_it() -> None:
    people = np.arange(60)
    edges = [(int(person), f"t{person % 2}-{step}") for person in people for step in range(1 + person % 3)]
    hin = npth.from_tables({("user", "tag"): edges})
    team = people % 2
    pipeline = make_pipeline(SimilarityFeatures(hin, "user-tag-user"), LogisticRegression())
    assert cross_val_score(pipeline, people[:, None], team, cv=3).tolist() == [1.0, 1.0, 1.0]
    search = GridSearchCV(pipeline, {"similarityfeatures__measure": ["pathsim", "pcrw"]}, cv=3)
    assert search.fit(people[:, None], team).best_score_ == 1.0


def test_across_types_it_needs_references(toy: HIN) -> None:
    features = SimilarityFeatures(toy, "author-paper-venue", measure="hetesim", references=["SIGMOD"])
    expected = HeteSim("author-paper-venue").fit(toy).score("Mike", "SIGMOD")
    assert features.fit_transform(["Mike"]).toarray() == [[pytest.approx(expected)]]
    with pytest.raises(NeuPathError, match="lead from author to venue; give venue nodes as references"):
        SimilarityFeatures(toy, "author-paper-venue", measure="hetesim").fit(["Mike"])


@pytest.mark.parametrize(
    ("arguments", "column", "sentence"),
    [
        ({"metapaths": []}, ["Mike"], "metapaths is empty"),
        ({"metapaths": ["APA", "VPV"]}, ["Mike"], "lead from author to author, venue to venue"),
        ({"metapaths": "APA", "references": []}, ["Mike"], "no references to compare with"),
        ({"metapaths": "APA"}, [["Mike", "Bob"]], r"X has the shape \(1, 2\); give one column of ids"),
        ({"metapaths": "APA"}, ["Mikey"], "Mikey"),
    ],
)
def test_what_cannot_be_is_said(toy: HIN, arguments, column, sentence: str) -> None:
    with pytest.raises(NeuPathError, match=sentence):
        SimilarityFeatures(toy, **arguments).fit(column)


@pytest.mark.slow
def test_without_scikit_learn_the_command_that_installs_it_is_named() -> None:
    room = "neupath.learn.similarity_features"
    code = f"import sys; sys.modules['sklearn'] = None; import {room} as room; room.SimilarityFeatures"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert process.stderr.strip().endswith("not installed; run: pip install 'scikit-learn>=1.4'")
