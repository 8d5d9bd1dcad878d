"""Responses: errors with their HTTP status, JSON, and the examples that OpenAPI shows."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from starlette.responses import Response

from neupath import errors

# ---- Errors --------------------------------------------------------------------------------------
_STATUSES: tuple[tuple[type[errors.NeuPathError], int], ...] = (
    (errors.NodeError, 404),
    (errors.SchemaError, 404),
    (errors.MissingExtraError, 501),
    (errors.WriteError, 507),
    (errors.NeuPathError, 422),
)
_MOST_LETTERS = 6000
"""Letters of a message, which may quote what the client sent."""


class RequestError(errors.NeuPathError):
    """An error with an HTTP status of its own; headers are given as `Retry_After="2"`."""

    def __init__(self, status: int, message: str, **headers: str) -> None:
        super().__init__(message)
        self.status = status
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


def status_of(error: errors.NeuPathError) -> int:
    """Return the HTTP status of an error.

    >>> status_of(errors.NodeError("no such node")), status_of(errors.QueryError("k is 0"))
    (404, 422)
    """
    if isinstance(error, RequestError):
        return error.status
    return next(status for kind, status in _STATUSES if isinstance(error, kind))


def error_response(error: errors.NeuPathError) -> Response:
    """Answer with an error."""
    headers = error.headers if isinstance(error, RequestError) else {}
    return Response(error_body(str(error)), status_of(error), headers, "application/json")


def error_body(message: str) -> bytes:
    """Return a message as the JSON of an error; cut a long one, and escape text that is not valid Unicode."""
    shown = message if len(message) <= _MOST_LETTERS else f"{message[: _MOST_LETTERS - 1]}…"
    return json.dumps({"error": shown}).encode("ascii")


# ---- Answers -------------------------------------------------------------------------------------
def json_response(content: object, status: int = 200) -> Response:
    """Answer with JSON."""
    return Response(json.dumps(content, ensure_ascii=False), status, media_type="application/json")


# ---- Examples ------------------------------------------------------------------------------------
_ERROR = {
    "type": "object",
    "properties": {"error": {"type": "string", "description": "One sentence: what was given, what is allowed."}},
    "required": ["error"],
}
_TEXT = {"type": "string"}
_MEDIA_TYPES = {"metrics": "text/plain", "events": "text/event-stream"}


@cache
def read_examples() -> dict[str, Any]:
    """Read the examples by name: a request, such as "GET /api/graphs", its body if it has one, and the answer."""
    text = Path(__file__).with_name("examples.json").read_text(encoding="utf-8")
    examples: dict[str, Any] = json.loads(text)
    return examples


def example_responses(name: str, status: int = 200) -> dict[int | str, dict[str, Any]]:
    """Describe the answers of an endpoint for OpenAPI, with the example of a name."""
    media_type = _MEDIA_TYPES.get(name, "application/json")
    schema = {} if media_type == "application/json" else _TEXT
    error = {"description": "An error", "content": {"application/json": {"schema": _ERROR}}}
    content: dict[str, Any] = {media_type: {"example": read_examples()[name]["answer"], "schema": schema}}
    if name in ("search", "searches"):
        content |= {"application/vnd.apache.arrow.stream": {}, "text/csv": {"schema": _TEXT}}
    return {status: {"description": "The answer", "content": content}, 422: error, "default": error}
