"""Attacks through connections: pipelines that nobody reads, bodies that never end, and mutated requests."""

import re
import selectors
import socket
import struct
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, sleep
from typing import Any
from urllib.parse import quote

import numpy as np

import neupath as npth
from neupath.store import check, write_store
from tests.attacks.mutation import mutate
from tests.attacks.observed import observe_service
from tests.patience import PATIENCE

# ---- Floods --------------------------------------------------------------------------------------
PIPELINED = {"no_host": b"GET / HTTP/1.1\r\n\r\n", "host": b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"}
SLOW_BODY = b"POST /api/jobs HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000\r\n\r\n{"


def attack_by_pipelining(connections: int, seconds: float, requests: int = 34_000) -> dict[str, Any]:
    """Send many requests over each of many connections, and read no answer; watch a service meanwhile."""
    figures: dict[str, Any] = {}
    for name, request in PIPELINED.items():
        with observe_service("toy") as service:
            flood(service.address, request * requests, connections, seconds)
            figures[name] = service.figures()
    return {"connections": connections, "requests": requests, **figures}


def attack_by_slow_bodies(connections: int, files: int, seconds: float, rounds: int = 3) -> dict[str, Any]:
    """Begin many bodies at once and end none, again and again, at a service that may open few files."""
    with observe_service("toy", files=files) as service:
        for _ in range(rounds):
            flood(service.address, SLOW_BODY, connections, seconds)
        return {"connections": connections, "files": files, "rounds": rounds, **service.figures()}


def flood(address: tuple[str, int], content: bytes, connections: int, seconds: float) -> None:
    """Send content over many connections as fast as it is taken, and hold them for some seconds."""
    until = monotonic() + seconds
    with ExitStack() as stack, selectors.DefaultSelector() as selector:
        for _ in range(connections):
            connection = stack.enter_context(socket.socket())
            connection.setblocking(False)
            connection.connect_ex(address)
            selector.register(connection, selectors.EVENT_WRITE, memoryview(content))
        while selector.get_map() and (left := until - monotonic()) > 0:
            for key, _ in selector.select(left):
                _send_part(selector, key)
        sleep(max(0.0, until - monotonic()))


def _send_part(selector: selectors.BaseSelector, key: selectors.SelectorKey) -> None:
    connection: Any = key.fileobj
    try:
        unsent = key.data[connection.send(key.data) :]
    except BlockingIOError:
        return
    except OSError:  # the service has closed it
        unsent = key.data[:0]
    if unsent:
        selector.modify(connection, selectors.EVENT_WRITE, unsent)
    else:
        selector.unregister(connection)


# ---- Mutated requests ----------------------------------------------------------------------------
_BODIES = {
    "/api/graphs/toy/search": b'{"queries": ["Mike", "Jim"], "metapath": "APVPA", "k": 3, "where": ["id != Bob"]}',
    "/api/graphs/toy/explain": b'{"query": "Mike", "target": "Bob", "combination": '
    b'[{"measure": "pathsim", "metapath": "APVPA", "weight": 1.0}]}',
    "/api/graphs/toy/infer": b'{"pairs": [{"query": "Mike", "target": "Bob", "score": 0.9}], "max_length": 2}',
    "/api/graphs/live/updates": b'{"add_edges": [{"relation": "writes", "source": "Mike", "target": "Ann-KDD-2"}]}',
    "/api/jobs": b'{"kind": "join", "graph": "toy", "metapath": "APA", "k": 1}',
}
_PATHS = (
    "/", "/api/health", "/api/metrics", "/api/graphs", "/api/graphs/toy", "/api/graphs/toy/schema", "/api/jobs",
    "/api/measures", "/api/models", "/api/openapi.json", "/api/jobs/x/events", "/api/jobs/x/result",
    "/api/graphs/toy/nodes?node_type=author&text=Mi&limit=3", "/api/graphs/toy/metapaths?prefix=author-",
    "/api/graphs/toy/search?query=Mike&metapath=APVPA&k=3", "/api/graphs/live/search?query=Mike&metapath=APA&as_of=0",
    "/api/graphs/toy/search?query=Mike&measure=ppr&where=id+%21%3D+Bob",
    "/api/graphs/toy/explain?query=Mike&target=Bob&metapath=APVPA&limit=2&by=paper&paths=2&k=1",
    "/api/graphs/toy/relate?query=Mike&target=SIGMOD&max_steps=3&target_type=venue",
)  # fmt: skip
_LAST = b"GET /api/health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
"""Follows each damaged request, so that the service closes the connection when it has answered both."""
_AT_ONCE = 16  # connections
DOCUMENTED = (503, 504, 507)
"""Statuses of 500 or more that the service may answer, because the documentation names them."""


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nhost: localhost\r\naccept: */*\r\n\r\n".encode()


def post(path: str, body: bytes, is_chunked: bool = False) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n".encode()
    if not is_chunked:
        return head + b"content-length: %d\r\n\r\n%s" % (len(body), body)
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (body[:9], body[9:]) if part)
    return head + b"transfer-encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n"


def damaged_request(rng: np.random.Generator) -> bytes:
    """Return a request whose bytes are damaged, or whose body or query string is, within a head that is right."""
    is_chunked = bool(rng.random() < 0.5)
    if rng.random() < 0.5:
        path, body = list(_BODIES.items())[int(rng.integers(len(_BODIES)))]
        if rng.random() < 0.5:
            return post(path, mutate(body, rng)[1], is_chunked)
        return mutate(post(path, body, is_chunked) + get(_PATHS[0]), rng)[1]
    path, _, query_string = _PATHS[int(rng.integers(len(_PATHS)))].partition("?")
    if query_string and rng.random() < 0.7:
        return get(f"{path}?{quote(mutate(query_string.encode(), rng)[1], safe='=&+%')}")
    return mutate(get(f"{path}?{query_string}") + post(*next(iter(_BODIES.items()))), rng)[1]


def attack_by_mutated_requests(count: int, seed: int) -> dict[str, Any]:
    """Send damaged requests; count the answers by status, tracebacks of the service, and problems of its store."""
    rng = np.random.default_rng(seed)
    damaged = [damaged_request(rng) + _LAST for _ in range(count)]
    are_aborted = rng.random(count) < 0.1
    limits = [text for limit in ("body_seconds=0.2", "idle_seconds=2") for text in ("--limit", limit)]
    with TemporaryDirectory() as folder:
        store = write_store(npth.load("toy"), Path(folder) / "live")
        with observe_service("toy", store, "--writable", *limits) as service, ThreadPoolExecutor(_AT_ONCE) as pool:
            answers = pool.map(partial(send_raw, service.address), damaged, are_aborted.tolist())
            statuses = Counter(chain.from_iterable(answers))
            figures = {"health_after": service.ask_health(), "log": service.read_log()[-2000:], **service.figures()}
        problems = len(check(store).problems)
    wrong = sum(number for status, number in statuses.items() if is_failure(status))
    counts = {"tried": count, "wrong": wrong, "statuses": dict(sorted(statuses.items())), "store_problems": problems}
    return counts | figures


def is_failure(status: str) -> bool:
    """Whether an answer is an error of the service that its documentation does not name."""
    return status.isdigit() and int(status) >= 500 and int(status) not in DOCUMENTED


def send_raw(address: tuple[str, int], content: bytes, is_aborted: bool = False) -> list[str]:
    """Send bytes and read until the service closes; return the status of each answer, or why there is none.

    With `is_aborted` the connection is reset while the service answers.
    """
    answer = b""
    with socket.create_connection(address, timeout=PATIENCE) as connection:
        try:
            connection.sendall(content)
            if is_aborted:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return ["aborted"]
            while part := connection.recv(1 << 16):
                answer += part
        except ConnectionError:
            return ["reset"]
    return [line.decode() for line in re.findall(rb"HTTP/1\.1 (\d+) ", answer)] or ["none"]
