"""The middleware that every request passes first (host, origin, token, size, time), and the metrics it counts."""

import asyncio
import logging
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable
from hmac import compare_digest
from ipaddress import ip_address
from time import perf_counter
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from neupath.errors import NeuPathError
from neupath.service.limits import Limits, receiving
from neupath.service.schemas import RequestError, error_response

# ---- Metrics -------------------------------------------------------------------------------------
# Written by hand: the format is a dozen lines, and a counter here is one addition on the one thread that serves, while
# the Prometheus client takes a lock for each.
BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
Sample = tuple[dict[str, str], float]
Headers = Iterable[tuple[bytes, bytes]]


class Metrics:
    """Counts and times of requests, as Prometheus reads them."""

    def __init__(self) -> None:
        self.requests: dict[tuple[str, str, int], int] = defaultdict(int)
        self.times: dict[str, list[float]] = defaultdict(lambda: [0.0] * (len(BOUNDS) + 2))
        self.active = 0

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        self.requests[method, route, status] += 1
        times = self.times[route]
        times[bisect_left(BOUNDS, seconds)] += 1
        times[-1] += seconds

    def lines(self) -> Iterable[str]:
        requests: list[Sample] = [
            ({"method": method, "route": route, "status": str(status)}, count)
            for (method, route, status), count in self.requests.items()
        ]
        yield from metric("neupath_requests_total", "counter", "Answers by route and status.", requests)
        yield from metric("neupath_active_requests", "gauge", "Requests worked on now.", [({}, self.active)])
        name = "neupath_request_seconds"
        yield from (f"# HELP {name} Seconds to an answer.", f"# TYPE {name} histogram")
        for route, times in self.times.items():
            total = 0.0
            for bound, count in zip((*map(str, BOUNDS), "+Inf"), times[:-1], strict=True):
                total += count
                yield sample(f"{name}_bucket", {"route": route, "le": bound}, total)
            yield sample(f"{name}_sum", {"route": route}, times[-1])
            yield sample(f"{name}_count", {"route": route}, total)


def metric(name: str, kind: str, about: str, samples: Iterable[Sample]) -> Iterable[str]:
    """Yield the lines of one metric."""
    yield f"# HELP {name} {about}"
    yield f"# TYPE {name} {kind}"
    for labels, value in samples:
        yield sample(name, labels, value)


def sample(name: str, labels: dict[str, str], value: float) -> str:
    r"""Write one sample.

    >>> sample("requests", {"route": 'a"b'}, 2)
    'requests{route="a\\"b"} 2'
    """
    escape = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
    pairs = ",".join(f'{label}="{text.translate(escape)}"' for label, text in labels.items())
    number = repr(int(value)) if float(value).is_integer() else repr(float(value))
    return f"{name}{{{pairs}}} {number}" if pairs else f"{name} {number}"


# ---- Bodies --------------------------------------------------------------------------------------
class BodyReader:
    """Reads the whole body before the request counts as active, so that a slow sender holds up nobody."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._buffered = 0  # bytes of bodies that have not come to their end

    async def read(self, scope: Scope, receive: Receive) -> bytes:
        length = content_length(scope["headers"])
        if length is None and not any(name == b"transfer-encoding" for name, _ in scope["headers"]):
            return b""
        if (length or 0) > self._limits.body:
            raise self._too_large()
        try:
            async with asyncio.timeout(self._limits.body_seconds):
                return await self._collect(receive)
        except TimeoutError:
            message = f"the request's body did not come within {self._limits.body_seconds:g} seconds"
            raise RequestError(408, message, Connection="close") from None

    async def _collect(self, receive: Receive) -> bytes:
        """Join the parts of a body; count them as they come, because its headers may lie."""
        body, is_more = bytearray(), True
        try:
            while is_more:
                message = await receive()
                if message["type"] != "http.request":
                    raise RequestError(400, "the request's body broke off")
                part, is_more = message.get("body", b""), message.get("more_body", False)
                body += part
                self._buffered += len(part)
                if len(body) > self._limits.body:
                    raise self._too_large()
                if self._buffered > self._limits.bodies:
                    reason = "too much is sent to the service at a time; try again soon"
                    raise RequestError(503, reason, Retry_After="2")
        finally:
            self._buffered -= len(body)
        return bytes(body)

    def _too_large(self) -> RequestError:
        most = self._limits.body
        return RequestError(413, f"the request's body is larger than {most:,} bytes, the most this service reads")


def content_length(headers: Headers) -> int | None:
    """Return the length of a request's body where its headers say it, in any number of digits.

    >>> content_length([(b"content-length", b"0" * 5000 + b"7")])
    7
    """
    length = next((value for name, value in headers if name == b"content-length"), None)
    return None if length is None else int(length.strip().lstrip(b"0") or b"0")


def with_body(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that gives the application a body that was read before, then what `receive` gives."""
    unread = [body]

    async def receive_body() -> Message:
        return {"type": "http.request", "body": unread.pop(), "more_body": False} if unread else await receive()

    return receive_body


# ---- Middleware ----------------------------------------------------------------------------------
_LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
_NEVER_BUSY = ("/api/health", "/api/metrics")  # answered however many requests are active, as the page's own files are
_WITHOUT_TOKEN = ("/api/health",)  # besides the page's own files, which hold no data
SECURITY_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
        b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
]
_CHECKED = frozenset((b"host", b"origin", b"authorization"))
JSON_HEADER = (b"content-type", b"application/json")
_log = logging.getLogger("neupath.service")


class GuardMiddleware:
    """The outermost layer: checks headers, reads the body, limits time and number, counts, and sends errors."""

    def __init__(
        self, app: ASGIApp, limits: Limits, metrics: Metrics, token: str | None, hosts: frozenset[str] | None
    ) -> None:
        self._app, self._limits, self.metrics, self._hosts = app, limits, metrics, hosts
        self._token = None if token is None else token.encode()
        self._last_host: bytes | None = None
        self._bodies = BodyReader(limits)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        began = perf_counter()
        sender = _ResponseSender(send)
        inner = {**scope, "method": "GET"} if scope["method"] == "HEAD" else scope  # the server leaves the body out
        try:
            self.check(inner["path"], inner["headers"])
            body = await self._bodies.read(inner, receive)
            await self._call_app(inner, with_body(body, receive), sender)
        except NeuPathError as error:
            if sender.status:  # a response has begun; the server cuts the connection
                _log.warning("an answer broke off: %s", error)
            else:
                await error_response(error)(inner, receive, sender.send)
        finally:
            route: Any = inner.get("route")  # its pattern, because a label for each path would grow without limit
            pattern = str(getattr(route, "path", None) or "other")
            self.metrics.count(scope["method"], pattern, sender.status, perf_counter() - began)

    async def _call_app(self, scope: Scope, receive: Receive, sender: "_ResponseSender") -> None:
        """Call the application, within the limits on time and on active requests."""
        is_limited = scope["path"].startswith("/api/") and scope["path"] not in _NEVER_BUSY
        if is_limited and self.metrics.active >= self._limits.active:
            message = f"the service is busy with {self._limits.active} requests; try again"
            raise RequestError(503, message, Retry_After="1")
        self.metrics.active += 1
        receiving.set(receive)
        try:
            async with asyncio.timeout(self._limits.seconds + 1) as timer:
                sender.timer = timer
                await self._app(scope, receive, sender.send)
        except TimeoutError:
            sender.timer = None
            raise RequestError(504, f"this takes longer than {self._limits.seconds:g} seconds; ask for less") from None
        except NeuPathError:
            raise
        except Exception as error:
            _log.exception("a request failed by an error of the service")
            if not sender.status:  # the application answers its own errors
                raise RequestError(500, "something went wrong in the service; its log has the details") from error
        finally:
            self.metrics.active -= 1

    def check(self, path: str, headers: Headers) -> None:
        """Raise a RequestError where the host, the origin or the token is wrong."""
        checked: dict[bytes, bytes] = {}
        for name, value in headers:
            if name in _CHECKED:
                if name in checked:
                    raise _refusal(400, f"the header {name.decode()!r} is given twice; give it once")
                checked[name] = value
        host, origin, token = checked.get(b"host", b""), checked.get(b"origin", b""), checked.get(b"authorization", b"")
        if self._hosts is not None and host != self._last_host and not self._is_known(host):
            shown = host.decode("latin-1")[:200]
            raise _refusal(421, f"the host {shown!r} is not this service; use http://127.0.0.1 or localhost")
        if origin and origin.partition(b"//")[2] != host:
            raise _refusal(403, "pages of other sites may not call this service")
        if self._token is not None and path.startswith("/api/") and path not in _WITHOUT_TOKEN:
            if not token:
                message = "this service needs its token, as the header 'Authorization: Bearer TOKEN'"
                raise _refusal(401, message, WWW_Authenticate="Bearer")
            scheme, _, secret = token.partition(b" ")
            if scheme.lower() != b"bearer" or not compare_digest(secret.strip(), self._token):
                raise _refusal(401, "the token is wrong", WWW_Authenticate="Bearer")

    def _is_known(self, host: bytes) -> bool:
        """Whether a Host header names this service, with any port; the last one that did is remembered."""
        text = host.decode("latin-1").lower()
        name = text.partition("]")[0] + "]" if text.startswith("[") else text.partition(":")[0]
        is_known = self._hosts is None or name in self._hosts
        if is_known:
            self._last_host = host
        return is_known


def _refusal(status: int, message: str, **headers: str) -> RequestError:
    """Return the error of a client that is not let in; its connection closes, so that no more of its requests cost."""
    return RequestError(status, message, **headers, Connection="close")


class _ResponseSender:
    """Sends a response with the security headers, and remembers its status."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status = 0
        self.timer: asyncio.Timeout | None = None

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message = {**message, "headers": [*message.get("headers", ()), *SECURITY_HEADERS]}
            if self.timer is not None:
                self.timer.reschedule(None)  # a file or a stream may take longer; the kernel limits slow readers
        await self._send(message)


def allowed_hosts(host: str) -> frozenset[str] | None:
    """Return the Host names that a loopback service answers to; None, for any, at another address.

    A page of another site could otherwise point its own name at the loopback address (DNS rebinding).

    >>> sorted(allowed_hosts("127.0.0.1"))
    ['127.0.0.1', '[::1]', 'localhost']
    """
    return frozenset((*_LOOPBACK, host.lower())) if is_loopback(host) else None


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a host; names other than localhost count as reachable."""
    try:
        return host.lower() == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
