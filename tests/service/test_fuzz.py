"""Generated requests over the OpenAPI document: whatever is asked, no error of the service's own.

NEUPATH_FUZZ=130 makes more than 5,000 of them.
"""

import os
import warnings
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, given, settings

import neupath as npth
from tests.service.conftest import Running, hostile_graph, start_service

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of libraries that it loads
    schemathesis = pytest.importorskip("schemathesis")

EXAMPLES = int(os.environ.get("NEUPATH_FUZZ", "6"))
"""Requests of each call and mode."""
CALLS = 20


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    graphs = {"toy": npth.load("toy"), "hostile": hostile_graph()}
    found = start_service(tmp_path_factory.mktemp("fuzzed"), graphs, waiting_jobs=1)
    yield found
    found.stop()


@pytest.mark.parametrize("mode", ["positive", "negative"])
@pytest.mark.parametrize("number", range(CALLS))
def test_no_request_is_an_error_of_the_services_own(fuzzed: Running, number: int, mode: str) -> None:
    schema = schemathesis.openapi.from_url(f"{fuzzed.url}/api/openapi.json")
    calls = [found.ok() for found in schema.get_all_operations()]
    assert len(calls) == CALLS
    call = calls[number]
    asked = []

    @given(case=call.as_strategy(generation_mode=schemathesis.GenerationMode(mode)))
    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
    def ask(case: object) -> None:
        path = getattr(case, "path_parameters", None)
        if path and "graph" in path and len(asked) % 3:
            path["graph"] = ("toy", "hostile")[len(asked) % 2]  # names of graphs are not guessed
        answer = case.call(timeout=30)  # type: ignore[attr-defined]
        asked.append(answer.status_code)
        assert answer.status_code < 500, (answer.status_code, answer.text, case)
        if answer.status_code >= 400 and answer.headers["content-type"] == ["application/json"]:
            assert list(answer.json()) == ["error"]

    try:
        ask()
        print(f"{len(asked)} requests, statuses {sorted(set(asked))}")
    except BaseException as error:
        if type(error).__name__ != "Unsatisfiable":
            raise
    assert asked or mode == "negative"  # a call without parameters cannot be called wrongly
