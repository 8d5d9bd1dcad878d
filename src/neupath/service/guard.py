"""Guard: what every request passes before anything else looks at it: host, origin, token, size, time."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from hmac import compare_digest
from ipaddress import ip_address
from time import perf_counter
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from neupath.errors import NeuPathError
from neupath.service.bodies import Bodies, with_body
from neupath.service.limits import Limits
from neupath.service.metrics import Metrics
from neupath.service.refusals import Refusal, sentence_bytes, status_of

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
            raise Refusal(503, f"the service is busy with {self._limits.active} requests; try again", Retry_After="1")
        self._metrics.active += 1
        try:
            async with asyncio.timeout(self._limits.seconds + 1) as timer:
                answer.timer = timer
                await self._app(scope, receive, answer.send)
        except TimeoutError:
            answer.timer = None
            raise Refusal(504, f"this takes longer than {self._limits.seconds:g} seconds; ask for less") from None
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
                    raise Refusal(400, f"the header {name.decode()!r} is given twice; give it once")
                given[name] = value
        host, origin, token = given.get(b"host", b""), given.get(b"origin", b""), given.get(b"authorization", b"")
        if self._hosts is not None and host != self._last_host and not self._is_ours(host):
            raise Refusal(
                421, f"the host {host.decode('latin-1')[:200]!r} is not this service; use http://127.0.0.1 or localhost"
            )
        if origin and origin.partition(b"//")[2] != host:
            raise Refusal(403, "pages of other sites may not call this service")
        if self._token is not None and path.startswith("/api/") and path not in _OPEN:
            if not token:
                raise Refusal(
                    401, "this service needs its token, as the header 'Authorization: Bearer TOKEN'",
                    WWW_Authenticate="Bearer",
                )  # fmt: skip
            scheme, _, secret = token.partition(b" ")
            if scheme.lower() != b"bearer" or not compare_digest(secret.strip(), self._token):
                raise Refusal(401, "the token is wrong", WWW_Authenticate="Bearer")

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
        headers = error.headers if isinstance(error, Refusal) else {}
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
