"""Refusals: what went wrong as a status and one sentence, never a traceback."""

import json

from starlette.responses import Response

from neupath import errors

_STATUSES: tuple[tuple[type[errors.NeuPathError], int], ...] = (
    (errors.NodeError, 404),
    (errors.SchemaError, 404),
    (errors.MissingExtraError, 501),
    (errors.WriteError, 507),
    (errors.NeuPathError, 422),
)
_MOST_LETTERS = 6000
"""Letters of a sentence; what a client sent is not sent back at any length."""


class Refusal(errors.NeuPathError):
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
    if isinstance(error, Refusal):
        return error.status
    return next(status for kind, status in _STATUSES if isinstance(error, kind))


def refuse(error: errors.NeuPathError) -> Response:
    """Answer with an error's sentence as JSON."""
    headers = error.headers if isinstance(error, Refusal) else {}
    return Response(sentence_bytes(str(error)), status_of(error), headers, "application/json")


def sentence_bytes(sentence: str) -> bytes:
    """Return a sentence as the JSON of an error, a long one cut; text that is not valid is escaped."""
    told = sentence if len(sentence) <= _MOST_LETTERS else f"{sentence[: _MOST_LETTERS - 1]}…"
    return json.dumps({"error": told}).encode("ascii")
