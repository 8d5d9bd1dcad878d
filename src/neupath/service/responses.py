"""Examples: what each endpoint answers, on the toy graph, as the documentation shows it; a test asks for them all."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from starlette.responses import Response

from neupath import errors

# ---- Refusals ------------------------------------------------------------------------------------
_STATUSES: tuple[tuple[type[errors.NeuPathError], int], ...] = (
    (errors.NodeError, 404),
    (errors.SchemaError, 404),
    (errors.MissingExtraError, 501),
    (errors.WriteError, 507),
    (errors.NeuPathError, 422),
)
_MOST_LETTERS = 6000
"""Letters of a sentence; what a client sent is not sent back at any length."""


class RequestError(errors.NeuPathError):
    """A request that is refused for what HTTP knows a status of."""

    def __init__(self, status: int, sentence: str, **headers: str) -> None:
        super().__init__(sentence)
        self.status = status
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


def status_of(error: errors.NeuPathError) -> int:
    """Return the status that says whose fault an error is.

    >>> status_of(errors.NodeError("no such node")), status_of(errors.QueryError("k is 0"))
    (404, 422)
    """
    if isinstance(error, RequestError):
        return error.status
    return next(status for kind, status in _STATUSES if isinstance(error, kind))


def error_response(error: errors.NeuPathError) -> Response:
    """Answer with an error's sentence as JSON."""
    headers = error.headers if isinstance(error, RequestError) else {}
    return Response(sentence_bytes(str(error)), status_of(error), headers, "application/json")


def sentence_bytes(sentence: str) -> bytes:
    """Return a sentence as the JSON of an error, a long one cut; text that is not valid is escaped."""
    told = sentence if len(sentence) <= _MOST_LETTERS else f"{sentence[: _MOST_LETTERS - 1]}…"
    return json.dumps({"error": told}).encode("ascii")


# ---- Replies -------------------------------------------------------------------------------------
def to_reply(content: object, status: int = 200) -> Response:
    """Answer with JSON."""
    return Response(json.dumps(content, ensure_ascii=False), status, media_type="application/json")


# ---- Examples ------------------------------------------------------------------------------------
_ERROR = {
    "type": "object",
    "properties": {"error": {"type": "string", "description": "One sentence: what was given, what is allowed."}},
    "required": ["error"],
}
_KINDS = {"metrics": "text/plain", "events": "text/event-stream"}


@cache
def read_examples() -> dict[str, Any]:
    """Read the examples by name: a request, such as "GET /api/graphs", its body if it has one, and the answer."""
    text = Path(__file__).with_name("examples.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def answers(name: str, status: int = 200) -> dict[int | str, dict[str, Any]]:
    """Describe the answers of an endpoint for its documentation."""
    kind = _KINDS.get(name, "application/json")
    shown = read_examples()[name]["answer"]
    error = {"description": "An error", "content": {"application/json": {"schema": _ERROR}}}
    content: dict[str, Any] = {kind: {"example": shown, "schema": {} if kind == "application/json" else _TEXT}}
    if name in ("search", "searches"):
        content |= {"application/vnd.apache.arrow.stream": {}, "text/csv": {"schema": _TEXT}}
    return {status: {"description": "What was asked for", "content": content}, 422: error, "default": error}


_TEXT = {"type": "string"}
