"""Attacks by overload: searches that take all memory, measures that take all time, and jobs one after another."""

import http.client
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Event, Thread
from time import perf_counter
from typing import Any
from urllib.parse import quote

import numpy as np

from tests.attacks.observed import INTERVAL, ObservedService, observe_service
from tests.patience import PATIENCE, wait_until

_RELATIONS = (("AeG", "AeG"), ("AeG", "AuG"), ("AuG", "AeG"), ("AeG", "AdG"))
_GENES = ("Gene::1", "Gene::10", "Gene::100")


def attack_memory(data: Path | None) -> dict[str, Any]:
    """Search four 5-type meta-paths of hetionet at once, each of whose products takes gigabytes."""
    return _overload_hetionet(data, HEAVY_PATHS)


def attack_time(data: Path | None) -> dict[str, Any]:
    """Search hetionet by commute time three times and by SimRank at once, each of which prepares for long."""
    return _overload_hetionet(data, HEAVY_MEASURES)


def _overload_hetionet(data: Path | None, urls: Sequence[str]) -> dict[str, Any]:
    if data is None:
        return {"skipped": "it needs hetionet; give --data FOLDER or set NEUPATH_DATA"}
    return overload(f"h={data / 'hetionet'}", urls, "/api/graphs/h/nodes?node_type=Gene&text=a")


def overload(graph: str, urls: Sequence[str], look_up: str, *options: str) -> dict[str, Any]:
    """Ask for some URLs at once, and look nodes up meanwhile; return statuses, times of look-ups, health and memory."""
    with observe_service(graph, *options) as service:
        with look_ups(service, look_up) as answers, ThreadPoolExecutor(len(urls)) as pool:
            statuses = Counter(pool.map(lambda url: ask(service, "GET", url)[0], urls))
        busy = service.memory()
        wait_until(lambda: _busy_workers(service) == 0, "threads are busy after their requests were answered")
        times = np.array([seconds for _, seconds in answers]) * 1000
        return {
            "statuses": dict(statuses),
            "look_ups": dict(Counter(status for status, _ in answers)),
            "look_up_ms": {"p99": round(float(np.percentile(times, 99)), 1), "max": round(float(times.max()), 1)},
            **service.figures(),
            "memory_at_answer_mb": busy >> 20,
            "memory_after_mb": service.memory() >> 20,
        }


def attack_jobs(count: int, body: dict[str, object], *options: str) -> dict[str, Any]:
    """Run jobs on the standard library one after another; return how they ended, and the memory after each."""
    with observe_service("stdlib", *options) as service:
        states, memory = Counter[str](), []
        for _ in range(count):
            job = json.loads(ask(service, "POST", "/api/jobs", body)[1])["id"]
            states[str(wait_until(partial(_end_of, service, job), f"the job {job} does not end"))] += 1
            memory.append(service.memory() >> 20)
        return {"jobs": dict(states), "memory_after_each_mb": memory, **service.figures()}


def ask(service: ObservedService, method: str, url: str, body: object = None) -> tuple[int, bytes]:
    """Send one request over a new connection; return the status and the body of the answer."""
    connection = http.client.HTTPConnection(*service.address, timeout=PATIENCE)
    try:
        content = None if body is None else json.dumps(body)
        connection.request(method, url, content, {"content-type": "application/json"})
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


@contextmanager
def look_ups(service: ObservedService, url: str) -> Iterator[list[tuple[int, float]]]:
    """Look something up again and again while a block runs; yields the status and seconds of each."""
    answers: list[tuple[int, float]] = []
    over = Event()

    def look() -> None:
        while True:
            began = perf_counter()
            answers.append((ask(service, "GET", url)[0], perf_counter() - began))
            if over.wait(INTERVAL):
                return

    thread = Thread(target=look)
    thread.start()
    try:
        yield answers
    finally:
        over.set()
        thread.join()


def _busy_workers(service: ObservedService) -> float:
    lines = ask(service, "GET", "/api/metrics")[1].decode().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith("neupath_busy_workers "))


def _end_of(service: ObservedService, job: str) -> str | None:
    state: str = json.loads(ask(service, "GET", f"/api/jobs/{job}")[1])["state"]
    return state if state in ("done", "failed", "cancelled") else None


def _search(**parameters: str) -> str:
    return "/api/graphs/h/search?k=5&" + "&".join(f"{name}={quote(value)}" for name, value in parameters.items())


def _gene_path(first: str, second: str) -> str:
    half = f"Gene <-{first}- Anatomy -{second}-> Gene"
    return f"{half} <-{second}- Anatomy -{first}-> Gene"


HEAVY_PATHS = [_search(query="Gene::1", metapath=_gene_path(*relations)) for relations in _RELATIONS]
HEAVY_MEASURES = [
    *(_search(query=gene, measure="commutetime", node_type="Gene") for gene in _GENES),
    _search(query="Gene::1", measure="simrank", node_type="Gene"),
]
TRAIN = {
    "kind": "train", "graph": "stdlib", "architecture": "countpath", "metapath": "class-base-class", "epochs": 1,
}  # fmt: skip
