"""Dirty tables are read right, noted or refused; `benchmarks/attack.py dirty --count 2000` tries more."""

import pytest

from tests.attacks.dirty_tables import attack_dirty_tables


@pytest.mark.slow
def test_dirty_tables_are_never_wrong_in_silence() -> None:
    figures = attack_dirty_tables(count=40, seed=6)
    assert figures["silent"] == figures["crashed"] == 0, figures
    assert "bad" not in figures, figures
    assert min(figures["noted"], figures["refused"], figures["with the proposed graph.toml"]["right"]) > 0, figures
