"""Attacks through connections, in short."""

import pytest

from tests.attacks.connections import PIPELINED, SLOW_BODY, attack_by_mutated_requests, flood
from tests.attacks.observed import observe_service

pytestmark = pytest.mark.slow


def test_mutated_requests_leave_the_service_sound() -> None:
    figures = attack_by_mutated_requests(count=150, seed=0)
    assert (figures["wrong"], figures["tracebacks"], figures["log"], figures["store_problems"]) == (0, 0, "", 0)
    assert (figures["alive"], figures["health_after"], figures["health_unanswered"]) == (True, 200, 0)


def test_floods_leave_memory_and_health() -> None:
    with observe_service("toy", files=300) as service:
        for request in PIPELINED.values():
            flood(service.address, request * 34_000, connections=20, seconds=1)
        flood(service.address, SLOW_BODY, connections=400, seconds=1)
        assert service.ask_health() == 200
        assert service.most_bytes - service.first_bytes < 100 << 20
        assert (service.unanswered, service.read_log()) == (0, "")
