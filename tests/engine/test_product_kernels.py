"""The kernel without an index against all scores sorted: many targets per query, so that its bounds matter.

And the files in which machine code is kept.
"""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neupath.engine import topk
from neupath.engine.formula import Formula, Normalisation
from neupath.engine.products import symmetric_factors
from tests.engine.matrices import FORMULAS, KINDS, expected, matrix


@settings(max_examples=60, deadline=None)
@given(KINDS, st.integers(0, 99), FORMULAS, st.sampled_from([1, 3, 16, 17, 40, 500]))
@pytest.mark.slow
def test_the_best_targets_in_order(kind: str, seed: int, normalisation: int | Formula, k: int) -> None:
    factors = symmetric_factors(matrix(kind, seed))
    factors.work = 0.0  # so light that no index is built
    every = np.arange(factors.left.shape[0])
    ranking = topk.top_k_of_product(factors, normalisation, every, every, k, threads=1)
    assert factors.index is None
    assert [
        list(zip(rows[:size].tolist(), scores[:size].tolist(), strict=True))
        for rows, scores, size in zip(ranking.rows, ranking.scores, ranking.sizes, strict=True)
    ] == expected(factors, normalisation, k)
    for rows, scores, size in zip(ranking.rows, ranking.scores, ranking.sizes, strict=True):
        assert (rows[size:] == -1).all()
        assert (scores[size:] == 0).all()


def test_only_candidates_count() -> None:
    factors = symmetric_factors(matrix("counts", 5))
    every = np.arange(300)
    allowed = every % 3 == 0
    ranking = topk.top_k_of_product(factors, Normalisation.DICE, every, every, 8, allowed)
    for row, wanted in zip(ranking.rows, expected(factors, Normalisation.DICE, 300), strict=True):
        assert row.tolist() == [y for y, _ in wanted if allowed[y]][:8]


@pytest.mark.slow
def test_processes_that_compile_at_the_same_time_keep_their_code_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "doubling.py"
    path.write_text(
        "from neupath.engine.product_kernels import compiled\n@compiled\ndef double(x):\n    return x + x\n"
    )
    spec = spec_from_file_location("doubling", path)
    assert spec is not None
    assert spec.loader is not None

    def in_a_new_process() -> Any:
        module = module_from_spec(spec)
        monkeypatch.setitem(sys.modules, "doubling", module)
        spec.loader.exec_module(module)
        return module.double

    first, second, third = (in_a_new_process() for _ in range(3))
    first(np.int64(1))
    index = Path(first._cache._cache_file._index_path)
    seen_by_third = index.read_bytes()
    monkeypatch.setattr(second._cache._cache_file, "_load_index", dict)  # it looked before the first had written
    second(np.float64(1))
    index.write_bytes(seen_by_third)
    assert third(np.int64(2**60 + 1)) == 2**61 + 2  # which a float cannot hold
    assert (third.stats.cache_hits, third.stats.cache_misses) == ({(numba.int64,): 1}, {})
