"""Server: a service on a socket, from its start to its orderly end."""

import socket
from collections.abc import Callable

from uvicorn import Config, Server

from neupath.errors import QueryError
from neupath.service.connections import limited
from neupath.service.guard import Guard
from neupath.service.service import Service

_BACKLOG = 4096


class GracefulServer(Server):
    """A server that finishes running requests when it stops, and ends streams, which would never finish."""

    def __init__(self, config: Config, service: Service, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._service, self._when_started = service, started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._when_started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._service.jobs.stop()
        await super().shutdown(sockets)


def bind(host: str, port: int) -> socket.socket:
    """Take a port, or say why it cannot be taken."""
    if not 0 <= port < 2**16:
        raise QueryError(f"port is {port}; it must lie between 0 and 65535")
    bound: socket.socket | None = None
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        bound = socket.socket(family, kind, protocol)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except OSError as error:
        if bound is not None:
            bound.close()
        raise QueryError(
            f"cannot serve at {host} port {port}: {(error.strerror or str(error)).lower()}; choose another with --port"
        ) from error
    bound.setblocking(False)
    return bound


def address_of(bound: socket.socket) -> str:
    """Return the address of a socket as a browser takes it."""
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def make_server(app: Guard, service: Service, started: Callable[[], None] = lambda: None) -> GracefulServer:
    """Make a server whose `run` serves at sockets until a signal says to stop, and then finishes what is running."""
    limits = service.limits
    config = Config(
        app, http=limited(limits, app.answer_at_once), loop="uvloop", ws="none", lifespan="on", log_level="error",
        access_log=False, server_header=False, proxy_headers=False, backlog=_BACKLOG,
        timeout_keep_alive=int(limits.idle_seconds), timeout_graceful_shutdown=int(limits.seconds) + 5,
    )  # fmt: skip
    return GracefulServer(config, service, started)
