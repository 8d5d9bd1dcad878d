"""Examples: what each endpoint answers, on the toy graph, as the documentation shows it; a test asks for them all."""

import json
from functools import cache
from pathlib import Path
from typing import Any

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
