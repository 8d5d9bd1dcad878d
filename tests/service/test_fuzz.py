"""Generated requests over the OpenAPI document: whatever is asked, no error of the service's own.

NEUPATH_FUZZ=250 makes more than 5,000 of them, and tells how many of which status.
"""

import os
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import cycle
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable

import neupath as npth
from neupath.live import LiveStore
from neupath.store import check, write_store
from tests.patience import PATIENCE
from tests.service.conftest import HOSTILE, Running, hostile_graph, start_service

pytestmark = pytest.mark.slow
EXAMPLES = int(os.environ.get("NEUPATH_FUZZ", "6"))
"""Requests of each call and mode."""
CALLS = 27
KNOWN = {
    "graph": ("toy", "live", "hostile"),
    "query": ("Mike", "Mary", HOSTILE[0]),
    "target": ("Bob", "Ann", HOSTILE[1]),
    "metapath": ("APVPA", "author-paper-author", "<b>user-tag-<b>user"),
    "measure": ("pathsim", "pcrw", "dwpc", "dwpc-no-repeats"),
    "node_type": ("author", "venue", "<b>user"),
    "source_type": ("author", "paper", "tag"),
    "kind": ("infer", "join", "train"),
    "relation": ("writes", "appears_at", "has"),
    "source": ("Mike", "Mike-VLDB-3", HOSTILE[2]),
    "weight": (1.0, 0.5, 1e-300),
    "as_of": (0, 1, 2),
}
"""What a generator does not guess."""
statuses: Counter[int] = Counter()


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    stores = tmp_path_factory.mktemp("stores")
    graphs = {"live": npth.load("toy"), "hostile": hostile_graph()}
    with ExitStack() as stack:
        live = {n: stack.enter_context(LiveStore(write_store(hin, stores / n))) for n, hin in graphs.items()}
        served = {"toy": npth.load("toy"), **live}
        running = start_service(tmp_path_factory.mktemp("fuzzed"), served, waiting_jobs=1, epochs=1, width=8)
        yield running
        running.stop()
    assert not [problem for name in graphs for problem in check(stores / name).problems]
    sys.stderr.write(f"\n{statuses.total():,} generated requests by status: {dict(sorted(statuses.items()))}\n")


def season(content: Any, number: int) -> None:
    """Put what is known into a request, all of it or every other word, so that more than its form is tried."""
    if isinstance(content, list):
        for part in content:
            season(part, number)
    elif isinstance(content, dict):
        for place, (name, values) in enumerate(KNOWN.items()):
            if name in content and (number + place) % 3:
                content[name] = values[number % len(values)]
        if "queries" in content and number % 2:
            content["queries"] = list(KNOWN["query"][: 1 + number % 3])
        for name in ("pairs", "combination", "add_edges", "remove_edges", "add_nodes", "remove_nodes"):
            season(content.get(name), number)


@pytest.fixture(scope="module")
def schemathesis() -> Any:
    """The generator of requests, imported where it is used: that takes half a second."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of libraries that it loads
        return pytest.importorskip("schemathesis")


@pytest.fixture(scope="module")
def calls(schemathesis: Any, fuzzed: Running) -> list[Any]:
    schema = schemathesis.openapi.from_url(f"{fuzzed.url}/api/openapi.json")
    return [operation.ok() for operation in schema.get_all_operations()]


@pytest.mark.parametrize("mode", ["positive", "negative"])
@pytest.mark.parametrize("number", range(CALLS))
def test_no_generated_request_is_an_internal_error(schemathesis: Any, calls: list, number: int, mode: str) -> None:
    assert len(calls) == CALLS
    turns = cycle(range(12))

    @given(case=calls[number].as_strategy(generation_mode=schemathesis.GenerationMode(mode)))
    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
    def ask(case: Any) -> None:
        turn = next(turns)
        for part in (case.path_parameters, case.query, case.body) if turn else ():
            season(part, turn)
        answer = case.call(timeout=PATIENCE)
        statuses[answer.status_code] += 1
        assert answer.status_code < 500, (answer.status_code, answer.text, case)
        if answer.status_code >= 400 and answer.headers["content-type"] == ["application/json"]:
            assert list(answer.json()) == ["error"]

    try:
        ask()
    except Unsatisfiable:
        assert mode == "negative"  # a call without parameters cannot be called wrongly
