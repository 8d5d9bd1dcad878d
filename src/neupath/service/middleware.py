"""Guard: what every request passes before anything else looks at it: host, origin, token, size, time."""

import asyncio
import logging
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from hmac import compare_digest
from ipaddress import ip_address
from time import perf_counter
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from neupath.errors import NeuPathError
from neupath.service.limits import Limits
from neupath.service.responses import RequestError, sentence_bytes, status_of

# ---- Metrics -------------------------------------------------------------------------------------
# Written by hand: the format is a dozen lines, and a counter here is one addition on the one thread that serves, while
# the client library takes a lock for each.
BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
Sample = tuple[dict[str, str], float]


class Metrics:
    """What has been served so far."""

    def __init__(self) -> None:
        self.requests: dict[tuple[str, str, int], int] = defaultdict(int)
        self.times: dict[str, list[float]] = defaultdict(lambda: [0.0] * (len(BOUNDS) + 2))
        self.active = 0

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one answer and its time."""
        self.requests[method, route, status] += 1
        times = self.times[route]
        times[bisect_left(BOUNDS, seconds)] += 1
        times[-1] += seconds

    def lines(self) -> Iterable[str]:
        """Yield the counts of requests."""
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
    """Yield one metric with its samples."""
    yield f"# HELP {name} {about}"
    yield f"# TYPE {name} {kind}"
    for labels, value in samples:
        yield sample(name, labels, value)


def sample(name: str, labels: dict[str, str], value: float) -> str:
    r"""Write one sample.

    >>> sample("requests", {"route": 'a"b'}, 2)
    'requests{route="a\\"b"} 2'
    """
    told = ",".join(f'{label}="{_escape(text)}"' for label, text in labels.items())
    number = repr(int(value)) if float(value).is_integer() else repr(float(value))
    return f"{name}{{{told}}} {number}" if told else f"{name} {number}"


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


# ---- Bodies --------------------------------------------------------------------------------------
class Bodies:
    """Reads bodies; a request counts as worked on only after, so that who sends slowly holds up nobody."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._awaited = 0
        """Bytes that have come so far of bodies whose rest has not."""

    async def read(self, scope: Scope, receive: Receive) -> bytes:
        """Return a request's body once all of it is there."""
        declared = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        if int(declared) > self._limits.body:
            raise self._too_large()
        try:
            async with asyncio.timeout(self._limits.body_seconds):
                return await self._gather(receive)
        except TimeoutError:
            said = f"the request's body did not come within {self._limits.body_seconds:g} seconds"
            raise RequestError(408, said, Connection="close") from None

    async def _gather(self, receive: Receive) -> bytes:
        """Put the parts of a body together, counted as they come, whatever its headers say of it."""
        body, is_more = bytearray(), True
        try:
            while is_more:
                message = await receive()
                if message["type"] != "http.request":
                    raise RequestError(400, "the request's body broke off")
                part, is_more = message.get("body", b""), message.get("more_body", False)
                body += part
                self._awaited += len(part)
                if len(body) > self._limits.body:
                    raise self._too_large()
                if self._awaited > self._limits.bodies:
                    raise RequestError(
                        503, "too much is sent to the service at a time; try again soon", Retry_After="2"
                    )
        finally:
            self._awaited -= len(body)
        return bytes(body)

    def _too_large(self) -> RequestError:
        most = self._limits.body
        return RequestError(413, f"the request's body is larger than {most:,} bytes, the most this service reads")


def with_body(body: bytes, receive: Receive) -> Receive:
    """Return what gives the application a body that has come already, and then what else comes."""
    left = [body]

    async def give() -> Message:
        return {"type": "http.request", "body": left.pop(), "more_body": False} if left else await receive()

    return give


# ---- Guard ---------------------------------------------------------------------------------------
AtOnce = Callable[[bytes], str | None]
"""Takes a query string and answers with a JSON text, or with nothing where that would take long."""

Headers = Iterable[tuple[bytes, bytes]]
SEARCH = "/api/graphs/{graph}/search"
_LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
_ALWAYS = ("/api/health", "/api/metrics")
"""What is answered however busy the service is, as the page's own files are."""
_OPEN = ("/api/health",)
"""What may be asked without the token; the page itself holds no data, and may be, too."""
_HEADERS = [
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
_JSON = (b"content-type", b"application/json")
_HEAD = b"".join([*(b"%s: %s\r\n" % header for header in (_JSON, *_HEADERS)), b"content-length: "])
_log = logging.getLogger("neupath.service")


class Guard:
    """The outermost layer: refuses early, and times everything else.

    `at_once` are paths whose light requests need nothing else: the connection itself may answer them.
    """

    def __init__(
        self, app: ASGIApp, limits: Limits, metrics: Metrics, at_once: Mapping[str, AtOnce], token: str | None,
        hosts: frozenset[str] | None,
    ) -> None:  # fmt: skip
        self._app, self._limits, self._metrics, self._at_once = app, limits, metrics, at_once
        self._token = None if token is None else token.encode()
        self._hosts = hosts
        self._last_host: bytes | None = None
        self._bodies = Bodies(limits)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        began = perf_counter()
        answer = _Answer(send)
        asked = {**scope, "method": "GET"} if scope["method"] == "HEAD" else scope  # the server leaves the body out
        try:
            self._check(asked["path"], asked["headers"])
            body = await self._bodies.read(asked, receive)
            await self._pass_on(asked, with_body(body, receive), answer)
        except NeuPathError as error:
            await answer.refuse(error)
        finally:
            self._metrics.count(scope["method"], _route_of(asked), answer.status, perf_counter() - began)

    def answer_at_once(self, path: str, query_string: bytes, headers: Headers) -> bytes | None:
        """Return the answer to a light request, all but its first line and date; nothing to others, and wrong ones."""
        answer = self._at_once.get(path)
        if answer is None:
            return None
        began = perf_counter()
        try:
            self._check(path, headers)
            text = answer(query_string)
        except NeuPathError:
            return None
        if text is None:
            return None
        body = text.encode()
        self._metrics.count("GET", SEARCH, 200, perf_counter() - began)
        return b"%s%d\r\n\r\n%s" % (_HEAD, len(body), body)

    async def _pass_on(self, scope: Scope, receive: Receive, answer: "_Answer") -> None:
        """Let the application answer, within the limits on time and on how many it answers at once."""
        is_bound = scope["path"].startswith("/api/") and scope["path"] not in _ALWAYS
        if is_bound and self._metrics.active >= self._limits.active:
            raise RequestError(
                503, f"the service is busy with {self._limits.active} requests; try again", Retry_After="1"
            )
        self._metrics.active += 1
        try:
            async with asyncio.timeout(self._limits.seconds + 1) as timer:
                answer.timer = timer
                await self._app(scope, receive, answer.send)
        except TimeoutError:
            answer.timer = None
            raise RequestError(504, f"this takes longer than {self._limits.seconds:g} seconds; ask for less") from None
        except NeuPathError:
            raise
        except Exception:  # the application has answered by now
            _log.exception("an error that is ours")
        finally:
            self._metrics.active -= 1

    def _check(self, path: str, headers: Headers) -> None:
        """Refuse a request by its headers."""
        given: dict[bytes, bytes] = {}
        for name, value in headers:
            if name in _CHECKED:
                if name in given:
                    raise RequestError(400, f"the header {name.decode()!r} is given twice; give it once")
                given[name] = value
        host, origin, token = given.get(b"host", b""), given.get(b"origin", b""), given.get(b"authorization", b"")
        if self._hosts is not None and host != self._last_host and not self._is_ours(host):
            raise RequestError(
                421, f"the host {host.decode('latin-1')[:200]!r} is not this service; use http://127.0.0.1 or localhost"
            )
        if origin and origin.partition(b"//")[2] != host:
            raise RequestError(403, "pages of other sites may not call this service")
        if self._token is not None and path.startswith("/api/") and path not in _OPEN:
            if not token:
                raise RequestError(
                    401, "this service needs its token, as the header 'Authorization: Bearer TOKEN'",
                    WWW_Authenticate="Bearer",
                )  # fmt: skip
            scheme, _, secret = token.partition(b" ")
            if scheme.lower() != b"bearer" or not compare_digest(secret.strip(), self._token):
                raise RequestError(401, "the token is wrong", WWW_Authenticate="Bearer")

    def _is_ours(self, host: bytes) -> bool:
        """Whether a Host header names this service; the last one that did is remembered."""
        ours = self._hosts is None or _name_of(host) in self._hosts
        if ours:
            self._last_host = host
        return ours


def _name_of(host: bytes) -> str:
    """Return the name in a Host header, without its port."""
    text = host.decode("latin-1").lower()
    return text.partition("]")[0] + "]" if text.startswith("[") else text.partition(":")[0]


def _route_of(scope: Scope) -> str:
    """Return the route's pattern, so that what a client asks does not make ever new metrics."""
    route: Any = scope.get("route")
    return str(getattr(route, "path", None) or "other")


class _Answer:
    """Sends an answer with the headers that all have, and remembers its status."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status = 0
        self.timer: asyncio.Timeout | None = None

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message = {**message, "headers": [*message.get("headers", ()), *_HEADERS]}
            if self.timer is not None:
                self.timer.reschedule(None)  # a file or a stream takes its time; who does not read it is cut off
        await self._send(message)

    async def give(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        """Answer with JSON."""
        more = [(name.lower().encode(), value.encode("latin-1")) for name, value in (headers or {}).items()]
        length = (b"content-length", str(len(body)).encode())
        await self.send({"type": "http.response.start", "status": status, "headers": [_JSON, length, *more]})
        await self.send({"type": "http.response.body", "body": body})

    async def refuse(self, error: NeuPathError) -> None:
        """Answer with an error's sentence, unless an answer has begun: then the connection is cut."""
        if self.status:
            _log.warning("an answer broke off: %s", error)
            return
        headers = error.headers if isinstance(error, RequestError) else {}
        await self.give(status_of(error), sentence_bytes(str(error)), headers)


def allowed_hosts(host: str) -> frozenset[str] | None:
    """Return the names a loopback service answers to, against pages that point their own name at it; else any.

    >>> sorted(allowed_hosts("127.0.0.1"))
    ['127.0.0.1', '[::1]', 'localhost']
    """
    return frozenset((*_LOOPBACK, host.lower())) if is_loopback(host) else None


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a host; a name other than localhost may lead anywhere."""
    try:
        return host.lower() == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
