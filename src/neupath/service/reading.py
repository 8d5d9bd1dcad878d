"""Reading: query strings as requests, requests as documentation, and what is wrong with them as a sentence."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from pydantic import ValidationError

from neupath.service.refusals import Refusal
from neupath.service.requests import Request
from neupath.service.searching import read_query_string

R = TypeVar("R", bound=Request)
_MOST_SHOWN = 100
_PLACES = ("query", "body")
_CHOICES = ("str", "constrained-str", "int")
"""What pydantic adds to a place where a value may be of several kinds."""


def read(kind: type[R], query_string: bytes) -> R:
    """Read a query string as a request of some kind."""
    try:
        return kind.model_validate(read_query_string(query_string))
    except ValidationError as error:
        raise Refusal(422, sentence_of(error.errors(include_url=False, include_context=False))) from error


def sentence_of(problems: Iterable[Mapping[str, Any]]) -> str:
    """Say in a sentence what is wrong with a request, the first thing first.

    >>> sentence_of([{"loc": ("query", "k"), "msg": "Input should be a valid integer", "input": "x"}])
    "k is 'x': input should be a valid integer"
    """
    first, *others = problems
    told = _tell(first)
    return f"{told} (and {len(others)} more)" if others else told


def _tell(problem: Mapping[str, Any]) -> str:
    kind, place = problem.get("type"), problem["loc"]
    if kind == "json_invalid":
        return f"the body is no JSON: {problem['ctx']['error'].lower()} at character {place[-1]}"
    if isinstance(problem.get("input"), bytes):
        return "the body is not marked as JSON; send the header 'Content-Type: application/json' with it"
    parts = [str(part) for part in place if part not in _CHOICES and (part not in _PLACES or len(place) == 1)]
    where = ".".join(parts)[:_MOST_SHOWN] or "the body"
    if kind == "missing":
        return f"{where} is missing"
    if kind == "extra_forbidden":
        return f"{where} is not a word that this request knows"
    shown = ascii(problem.get("input"))
    shown = shown if len(shown) <= _MOST_SHOWN else f"{shown[:_MOST_SHOWN]}…"
    said = str(problem["msg"])
    return f"{where} is {shown}: {said[:1].lower()}{said[1:]}"


def parameters_of(kind: type[Request]) -> list[dict[str, Any]]:
    """Return the words of a query string as OpenAPI describes parameters."""
    schema = kind.model_json_schema()
    required = schema.get("required", ())
    return [_parameter(name, content, name in required) for name, content in schema["properties"].items()]


def _parameter(name: str, content: dict[str, Any], required: bool) -> dict[str, Any]:
    described = {key: value for key, value in content.items() if key not in ("title", "description", "anyOf")}
    given = [choice for choice in content.get("anyOf", ()) if choice.get("type") != "null"]
    if given and described.get("default", 0) is None:
        del described["default"]
    schema = described | (given[0] if len(given) == 1 else {})
    found = {"name": name, "in": "query", "required": required, "schema": schema}
    return found | ({"description": content["description"]} if "description" in content else {})
