"""Bodies: what a request brings, read whole before anyone works on it, within limits on size and time."""

import asyncio

from starlette.types import Message, Receive, Scope

from neupath.service.limits import Limits
from neupath.service.refusals import Refusal


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
            raise Refusal(408, said, Connection="close") from None

    async def _gather(self, receive: Receive) -> bytes:
        """Put the parts of a body together, counted as they come, whatever its headers say of it."""
        body, is_more = bytearray(), True
        try:
            while is_more:
                message = await receive()
                if message["type"] != "http.request":
                    raise Refusal(400, "the request's body broke off")
                part, is_more = message.get("body", b""), message.get("more_body", False)
                body += part
                self._awaited += len(part)
                if len(body) > self._limits.body:
                    raise self._too_large()
                if self._awaited > self._limits.bodies:
                    raise Refusal(503, "too much is sent to the service at a time; try again soon", Retry_After="2")
        finally:
            self._awaited -= len(body)
        return bytes(body)

    def _too_large(self) -> Refusal:
        most = self._limits.body
        return Refusal(413, f"the request's body is larger than {most:,} bytes, the most this service reads")


def with_body(body: bytes, receive: Receive) -> Receive:
    """Return what gives the application a body that has come already, and then what else comes."""
    left = [body]

    async def give() -> Message:
        return {"type": "http.request", "body": left.pop(), "more_body": False} if left else await receive()

    return give
