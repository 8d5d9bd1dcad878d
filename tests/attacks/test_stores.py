"""A damaged file of a store is rebuilt or refused: it never gives another graph, and never ends the process."""

from argparse import Namespace

import pytest

from tests.attacks.stores import KINDS, attack_stores

pytestmark = pytest.mark.slow


def test_damaged_stores_are_rebuilt_or_refused() -> None:
    outcomes = attack_stores(Namespace(count=2, seed=1))
    assert outcomes.keys() == KINDS.keys()
    for kind, counts in outcomes.items():
        assert set(counts) <= {"right", "rebuilt", "refused"}, f"{kind}: {counts}"
        assert sum(counts.values()) == 2
