"""Features of labelled pairs against the measures themselves."""

import numpy as np
import pytest
from hypothesis import given, settings

from neupath import HIN
from neupath.graph.metapath import MetaPath
from neupath.learn.inference.features import compute_features
from neupath.learn.labels import Pairs
from neupath.measures import measure_named
from tests.graphs import hins_with_path


def every_pair(count: int) -> Pairs:
    queries, targets = np.divmod(np.arange(count * count), count)
    return Pairs("a", queries, targets, np.zeros(count * count))


@settings(max_examples=60)
@given(hins_with_path(symmetric=True))
@pytest.mark.slow
def test_features_of_symmetric_paths_are_the_measures(hin_and_path: tuple[HIN, MetaPath]) -> None:
    check(*hin_and_path, {"pathsim", "joinsim", "hetesim", "pcrw", "pathcount", "jaccard", "overlap"})


@settings(max_examples=60)
@given(hins_with_path(symmetric=False, max_length=3))
def test_features_of_other_paths_are_the_measures(hin_and_path: tuple[HIN, MetaPath]) -> None:
    hin, path = hin_and_path
    if path.source == path.target and not path.is_round_trip:
        check(hin, path, {"pcrw", "pathcount"} if len(path) % 2 else {"pcrw", "pathcount", "hetesim"})


def check(hin: HIN, path: MetaPath, measures: set[str]) -> None:
    count = hin.num_nodes(path.source)
    if not count:
        return
    pairs = every_pair(count)
    pairs = Pairs(path.source, pairs.queries, pairs.targets, pairs.scores)
    (features,) = compute_features(hin, [path], pairs)
    assert set(features) == measures
    for measure, values in features.items():
        expected = measure_named(measure, path).fit(hin).score_rows(np.arange(count))
        np.testing.assert_allclose(values.reshape(count, count), expected, rtol=1e-9, atol=1e-12)
