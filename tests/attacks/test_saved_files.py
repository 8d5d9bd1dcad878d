"""Damaged files of saved scorers and of unfinished joins are refused or rebuilt, never wrong."""

import pytest

from tests.attacks.saved_files import attack_joins, attack_models

pytestmark = pytest.mark.slow


def test_damaged_blocks_of_a_join() -> None:
    for kind, outcomes in attack_joins(count=5).items():
        assert set(outcomes) <= {"right", "rebuilt", "refused"}, kind
        assert sum(outcomes.values()) == 5


def test_damaged_saved_scorers() -> None:
    for kind, outcomes in attack_models(count=15, kinds=("combination",)).items():
        assert set(outcomes) <= {"right", "refused"}, kind
        assert sum(outcomes.values()) == 15
