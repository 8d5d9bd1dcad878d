"""Calls: one connection to a service, and its answers or errors."""

import json
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from selectors import EVENT_READ, DefaultSelector
from typing import Any
from urllib.parse import SplitResult, urlsplit

import numpy as np

from neupath.errors import NeuPathError, QueryError

JSON = "application/json"


class ServiceError(NeuPathError):
    """What a service refused, in its own words."""

    def __init__(self, status: int, sentence: str, retry_after: float | None = None) -> None:
        super().__init__(sentence)
        self.status = status
        self.retry_after = retry_after
        """Seconds after which to try again, where the service said so."""


class Calls:
    """A connection that is kept open between calls, and opened again where it was closed."""

    def __init__(self, url: str, token: str | None, timeout: float) -> None:
        parts, port = _split(url)
        if token is not None and not (token and token.isascii() and token.isprintable()):
            raise QueryError("the token has characters that no header can hold; give that of the service")
        self._given = url, token, timeout
        self._root = parts.path.rstrip("/")
        self._headers = {} if token is None else {"authorization": f"Bearer {token}"}
        make = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        self._connection = make(str(parts.hostname), port, timeout=timeout)

    def another(self) -> "Calls":
        """Return another connection to the same service."""
        return Calls(*self._given)

    def close(self) -> None:
        """Close the connection; the next call opens it again."""
        self._connection.close()

    def read_object(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        """Return an answer that is a JSON object."""
        found: dict[str, Any] = self._read_json(method, path, body)
        return found

    def read_list(self, method: str, path: str, body: object = None) -> list[dict[str, Any]]:
        """Return an answer that is a list of JSON objects."""
        found: list[dict[str, Any]] = self._read_json(method, path, body)
        return found

    def _read_json(self, method: str, path: str, body: object) -> Any:
        content = self.read_bytes(method, path, body)
        try:
            return json.loads(content)
        except ValueError as error:
            raise ServiceError(
                502, f"what answers at {self._where} is no neupath service; check the address"
            ) from error

    def read_bytes(self, method: str, path: str, body: object = None, accept: str = JSON) -> bytes:
        """Return the bytes of an answer."""
        try:
            return self.open(method, path, body, accept).read()
        except (HTTPException, OSError) as error:
            self.close()
            raise ServiceError(503, f"the answer of {self._where} broke off ({error}); try again") from error

    def open(
        self, method: str, path: str, body: object = None, accept: str = JSON, more: dict[str, str] | None = None
    ) -> HTTPResponse:
        """Call the service and return its answer, still to be read; its refusal is an error."""
        self._close_if_dropped()
        was_open = self._connection.sock is not None
        try:
            return _checked(self._send(method, path, body, {"accept": accept, **(more or {})}))
        except (HTTPException, ConnectionError) as error:
            self.close()
            if not was_open or method == "POST":
                raise self._unreachable(error) from error
        except OSError as error:
            self.close()
            raise self._unreachable(error) from error
        return self.open(method, path, body, accept, more)  # the service had closed the connection meanwhile

    def _close_if_dropped(self) -> None:
        """Close a connection that the service has closed: what is sent over it may not be sent again."""
        if self._connection.sock is None:
            return
        with DefaultSelector() as selector:
            selector.register(self._connection.sock, EVENT_READ)
            if selector.select(0):  # between two answers, nothing is to be read but the end
                self.close()

    def _send(self, method: str, path: str, body: object, headers: dict[str, str]) -> HTTPResponse:
        content = None if body is None else json.dumps(body, default=_to_plain).encode()
        kind: dict[str, str] = {} if content is None else {"content-type": JSON}
        self._connection.request(method, self._root + path, content, self._headers | headers | kind)
        return self._connection.getresponse()

    @property
    def _where(self) -> str:
        return f"{self._connection.host}:{self._connection.port}"

    def _unreachable(self, error: Exception) -> ServiceError:
        return ServiceError(503, f"no service answers at {self._where} ({error}); is neupath serve running there?")


def _split(url: str) -> tuple[SplitResult, int | None]:
    """Return the parts of an address, and its port."""
    try:
        parts = urlsplit(url)
        if parts.scheme in ("http", "https") and parts.hostname:
            return parts, parts.port
    except ValueError:  # a port that is no number, or too large
        pass
    raise QueryError(f"{url!r} is no address of a service; give one such as http://127.0.0.1:8000")


def _to_plain(value: object) -> object:
    """Return a number of NumPy, or an array, as JSON knows it."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise QueryError(f"{value!r} cannot be sent; give texts, numbers, or lists of them")


def _checked(response: HTTPResponse) -> HTTPResponse:
    if response.status < 400:
        return response
    body = response.read()
    try:
        sentence = str(json.loads(body)["error"])
    except (ValueError, KeyError, TypeError):
        sentence = f"the service answered {response.status} {response.reason}"
    wait = response.headers.get("retry-after", "")
    raise ServiceError(response.status, sentence, float(wait) if wait.isdecimal() else None)
