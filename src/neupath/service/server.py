"""The server: a socket, and uvicorn on it until a signal stops it."""

import socket
from collections.abc import Callable

from uvicorn import Server
from uvicorn.config import Config

from neupath.errors import QueryError
from neupath.service.app import Service
from neupath.service.fast_path import fast_connections
from neupath.service.middleware import GuardMiddleware

_BACKLOG = 4096


class GracefulServer(Server):
    """A server that finishes running requests when it stops, and ends event streams, which would never finish."""

    def __init__(self, config: Config, service: Service, on_start: Callable[[], None]) -> None:
        super().__init__(config)
        self._service, self._on_start = service, on_start

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_start()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._service.jobs.stop()
        await super().shutdown(sockets)


def bind(host: str, port: int) -> socket.socket:
    """Return a socket bound to a port; port 0 takes a free one."""
    if not 0 <= port < 2**16:
        raise QueryError(f"‹port› is {port}; it must lie between 0 and 65535", parameter="port")
    bound: socket.socket | None = None
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        bound = socket.socket(family, kind, protocol)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except OSError as error:
        if bound is not None:
            bound.close()
        reason = (error.strerror or str(error)).lower()
        raise QueryError(f"cannot serve at {host} port {port}: {reason}; choose another ‹port›") from error
    bound.setblocking(False)
    return bound


def address_of(bound: socket.socket) -> str:
    """Return the address of a socket as a browser takes it."""
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def make_server(app: GuardMiddleware, service: Service, on_start: Callable[[], None] = lambda: None) -> GracefulServer:
    """Make a server; its `run` serves at sockets until a signal, and then finishes running requests."""
    limits = service.limits
    config = Config(
        app, http=fast_connections(app, service.registry), loop="uvloop", ws="none", lifespan="on", log_level="error",
        access_log=False, server_header=False, proxy_headers=False, backlog=_BACKLOG,
        timeout_keep_alive=int(limits.idle_seconds), timeout_graceful_shutdown=int(limits.seconds) + 5,
    )  # fmt: skip
    return GracefulServer(config, service, on_start)
