"""Every measure over meta-paths with conditions, weights and pinned nodes, against walks listed one by one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neupath.measures import MEASURES, DWPCNoRepeats
from tests.conditioned import Case
from tests.walks import Walker, by_walks, every_score

SEEDS = st.integers(0, 2**32)
ANY_PATH = ("pathcount", "hetesim", "pcrw", "dwpc")


@pytest.mark.slow
@settings(max_examples=40)
@given(seed=SEEDS)
def test_equals_the_walks_on_symmetric_paths(seed: int) -> None:
    case = Case(seed)
    path = case.path(symmetric=True)
    assert path.is_round_trip
    for name in MEASURES:
        own, walked = every_score(name, case.hin, path), by_walks(name, case.hin, path)
        np.testing.assert_allclose(own, walked, rtol=1e-9, atol=1e-12, err_msg=f"{name} {path}")
    assert case.hin.metapath(str(path)) == path, "what is printed reads back"


@pytest.mark.slow
@settings(max_examples=40)
@given(seed=SEEDS)
def test_equals_the_walks_on_any_path(seed: int) -> None:
    case = Case(seed)
    path = case.path(symmetric=False, max_length=3)
    for name in ANY_PATH:
        own, walked = every_score(name, case.hin, path), by_walks(name, case.hin, path)
        np.testing.assert_allclose(own, walked, rtol=1e-9, atol=1e-12, err_msg=f"{name} {path}")
    walker, scorer = Walker(case.hin, path), DWPCNoRepeats(path, 0.4).fit(case.hin)
    rows, columns = case.hin.num_nodes(path.source), case.hin.num_nodes(path.target)
    walked = [[walker.dwpc(x, y, 0.4, repeats=False) for y in range(columns)] for x in range(rows)]
    np.testing.assert_allclose(scorer.score_rows(np.arange(rows)), walked, rtol=1e-9, atol=1e-12)
    assert case.hin.metapath(str(path)) == path
    assert path.reversed().reversed() == path
