"""A service on a real socket, in a thread of its own."""

import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, fields
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import httpx
import pyarrow as pa
import pytest

import neupath as npth
from neupath import HIN
from neupath.graph.nodes import Nodes
from neupath.live import LiveStore
from neupath.service.app import Service, make_app, make_service
from neupath.service.graph_registry import GraphHandle, StoreHandle
from neupath.service.limits import Limits
from neupath.service.middleware import allowed_hosts
from neupath.service.server import GracefulServer, address_of, bind, make_server
from neupath.store import write_store
from tests.graphs import graph_of
from tests.patience import PATIENCE, wait_until

if TYPE_CHECKING:
    from tests.service.browser import Browser, Explorer

HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "x" * 10_000,
    "\u202eלהתראות\u202c",
    "nul\x00and\x1bescape",
    "a/b?c=d&e#f%20+",
    '"\\\n,',
    "ü💥",
)


def hostile_graph() -> HIN:
    """Return a graph whose nodes and types are called what nobody should be."""
    users = Nodes("<b>user", pa.array(HOSTILE), pa.array([name[::-1] for name in HOSTILE]))
    return graph_of({"<b>user": users, "tag": [1]}, {"<b>user -has-> tag": [(row, 0) for row in range(len(HOSTILE))]})


@dataclass
class Running:
    """A service that runs: where, and its parts."""

    url: str
    service: Service
    server: GracefulServer
    thread: Thread
    client: httpx.Client = field(init=False)

    def __post_init__(self) -> None:
        self.client = httpx.Client(base_url=self.url, timeout=PATIENCE)

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.client.get(path, **options)

    def post(self, path: str, content: object, **options: Any) -> httpx.Response:
        return self.client.post(path, json=content, **options)

    def connect(self, receive_buffer: int | None = None) -> socket.socket:
        """Open a connection of one's own, to send what no client would."""
        host, _, port = self.url.removeprefix("http://").rpartition(":")
        connection = socket.socket()
        if receive_buffer is not None:  # a buffer that shrinks when connected may drop what the other side confirms
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        connection.settimeout(PATIENCE)
        try:
            connection.connect((host, int(port)))
        except OSError:
            connection.close()
            raise
        return connection

    def stop(self) -> None:
        self.client.close()
        self.server.should_exit = True
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive(), "the service does not stop"


Start = Callable[..., Running]
TIME_LIMITS = {field.name: PATIENCE for field in fields(Limits) if field.name.endswith("seconds")}
"""Every time limit of a service, long enough for a busy machine; a test about one of them sets it."""


def read_all(connection: socket.socket) -> bytes:
    """Read until the service closes the connection."""
    return b"".join(iter(lambda: connection.recv(65536), b""))


def start_service(
    state: Path,
    graphs: Mapping[str, HIN | LiveStore],
    token: str | None = None,
    models: dict[str, Path] | None = None,
    port: int = 0,
    **limits: Any,
) -> Running:
    served = {n: StoreHandle(n, g) if isinstance(g, LiveStore) else GraphHandle(n, g) for n, g in graphs.items()}
    service = make_service(served, models or {}, state, Limits(**TIME_LIMITS | limits))
    bound = bind("127.0.0.1", port)
    url = address_of(bound)
    started = Event()
    server = make_server(make_app(service, token, allowed_hosts("127.0.0.1")), service, started.set)
    thread = Thread(target=server.run, args=([bound],))
    thread.start()
    wait_until(lambda: started.is_set() or not thread.is_alive(), "the service does not start")
    assert started.is_set(), "the service ended before it had started"
    return Running(url, service, server, thread)


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service with the toy graph and a hostile one."""
    graphs = {"toy": npth.load("toy"), "hostile": hostile_graph()}
    models = {"saved": npth.PathSim("APVPA").fit(graphs["toy"]).save(tmp_path_factory.mktemp("saved"))}
    service = start_service(tmp_path_factory.mktemp("state"), graphs, models=models)
    yield service
    service.stop()


@pytest.fixture(scope="session")
def writable(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service with the toy graph as a store that takes updates."""
    with LiveStore(write_store(npth.load("toy"), tmp_path_factory.mktemp("stores") / "live")) as live:
        service = start_service(tmp_path_factory.mktemp("writable"), {"live": live})
        yield service
        service.stop()


@pytest.fixture(scope="session")
def explored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service to explore with a browser: the standard library, the toy graph, a hostile one, and a saved model."""
    graphs = {"stdlib": npth.load("stdlib"), "toy": npth.load("toy"), "hostile": hostile_graph()}
    by_base = npth.PathSim("class-base-class").fit(graphs["stdlib"]).save(tmp_path_factory.mktemp("by-base"))
    service = start_service(tmp_path_factory.mktemp("explored"), graphs, models={"by-base": by_base})
    yield service
    service.stop()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start services of one's own, stopped at the end of the test."""
    with ExitStack() as stack:

        def begin(**options: Any) -> Running:
            options.setdefault("graphs", {"toy": npth.load("toy")})
            options.setdefault("state", tmp_path / "state")
            service = start_service(**options)
            stack.callback(service.stop)
            return service

        yield begin


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    from tests.service.browser import open_browser

    with open_browser() as chromium:
        yield chromium


@pytest.fixture
def explorer(browser: "Browser", explored: Running) -> Iterator["Explorer"]:
    """A window on a desk, at the service to explore."""
    from tests.service.browser import explore

    with explore(browser, explored.url, viewport={"width": 1280, "height": 900}) as window:
        yield window
