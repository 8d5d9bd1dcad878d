"""The cache of fitted scorers: bounded in bytes, and emptied where memory is short."""

import pytest

import neupath as npth
from neupath.service.graphs import GraphHandle, ScorerRegistry, bytes_held
from neupath.service.limits import Limits
from tests.service.conftest import Start


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
