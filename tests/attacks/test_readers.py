"""Damaged sources give a graph or one sentence; `benchmarks/attack.py readers` tries thousands."""

import pytest

from tests.attacks.readers import FORMATS, attack_readers

pytestmark = pytest.mark.slow


def test_damaged_sources_give_a_graph_or_one_sentence() -> None:
    figures = attack_readers(list(FORMATS), count=2)
    assert all(set(outcomes) <= {"read", "refused"} for outcomes in figures.values()), figures
