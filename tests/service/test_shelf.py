"""The shelf of fitted scorers: bounded in bytes, a key built once, and nobody waits for another's."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import neupath as npth
from neupath.engine.cache import LRU
from neupath.service.graphs import GraphHandle, ScorerRegistry, bytes_held
from neupath.service.limits import Limits
from tests.service.conftest import Start


def test_bytes_are_bounded() -> None:
    shelf: LRU[str, bytes] = LRU(100, 10, len)
    for name, size in (("a", 4), ("b", 4), ("c", 4)):
        shelf.get(name, lambda size=size: b"x" * size)  # type: ignore[misc]
    assert (shelf.find("a"), shelf.find("b"), shelf.bytes) == (None, b"xxxx", 8)
    assert shelf.get("huge", lambda: b"x" * 11) == b"x" * 11  # answered with, not kept
    assert (shelf.find("huge"), len(shelf)) == (None, 2)
    shelf.clear()
    assert (len(shelf), shelf.bytes) == (0, 0)


def test_a_key_is_built_once_and_others_do_not_wait() -> None:
    shelf: LRU[str, str] = LRU(9, 99, len)
    began, go_on = threading.Event(), threading.Event()
    built: list[str] = []

    def slow() -> str:
        built.append("slow")
        began.set()
        assert go_on.wait(20)
        return "slow"

    with ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(shelf.get, "slow", slow) for _ in range(2)]
        assert began.wait(20)
        assert shelf.get("quick", lambda: "quick") == "quick"
        go_on.set()
        assert [one.result(20) for one in asked] == ["slow", "slow"]
    assert built == ["slow"]


def test_a_build_that_fails_can_be_tried_again() -> None:
    shelf: LRU[str, str] = LRU(9, 99, len)
    with pytest.raises(ZeroDivisionError):
        shelf.get("a", lambda: str(1 / 0))
    assert shelf.get("a", lambda: "a") == "a"


def test_the_catalogue_keeps_as_many_bytes_as_it_may() -> None:
    toy = GraphHandle("toy", npth.load("toy"))
    one = bytes_held(npth.PathSim("APA").fit(toy.hin))
    assert one > 0
    catalogue = ScorerRegistry({"toy": toy}, Limits(scorer_bytes=one))
    catalogue.measure("toy", "pathsim", "APA")
    assert (catalogue.known_scorers(), catalogue.known_bytes()) == (1, one)
    catalogue.measure("toy", "pathsim", "APVPA")
    assert catalogue.known_bytes() <= one


def test_too_little_memory_is_a_sentence_and_makes_room(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    running = start()
    assert running.get("/api/graphs/toy/search?query=Mike&metapath=APA").status_code == 200
    assert running.service.catalogue.known_scorers() == 1

    def fail(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("neupath.service.app.search_one", fail)
    found = running.get("/api/graphs/toy/search?query=Mike&metapath=APVPA")
    assert (found.status_code, found.headers["retry-after"]) == (503, "5")
    assert found.json() == {"error": "there is not enough memory for this now; try again, or ask for less"}
    assert running.service.catalogue.known_scorers() == 0
