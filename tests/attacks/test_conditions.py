from tests.attacks.conditions import attack_conditions


def test_random_conditions_are_read_or_refused() -> None:
    outcomes = attack_conditions(500, seed=0)
    assert outcomes["failures"] == []
    assert outcomes["not one sentence"] == 0
    assert outcomes["read"] > 50
    assert outcomes["refused"] > 50
