"""A question is the same to Python, the command line, HTTP, the client and MCP: each field, under each name."""

import asyncio
import re
from collections.abc import Iterator
from dataclasses import MISSING, FrozenInstanceError, fields, replace
from functools import cache
from inspect import signature
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import TypeAdapter, ValidationError
from typer.main import get_command

import neupath as npth
from neupath import answers, requests
from neupath.cli.program import app, spell_parameter
from neupath.client import Client
from neupath.errors import QueryError, spell_parameters
from neupath.requests import Question, options_of
from neupath.service import schemas
from neupath.service.app import make_service
from neupath.service.graph_registry import GraphHandle
from neupath.service.mcp_server import make_mcp
from tests.command_line import Run

COMMANDS: dict[str, type[Question]] = {
    "paths": requests.Paths, "find": requests.Find, "search": requests.Search, "compare": requests.Compare,
    "explain": requests.Explain, "relate": requests.Relate, "whatif": requests.Counterfactual, "join": requests.Join,
    "prepare": requests.Prepare,
    "infer": requests.Infer, "train": requests.Train, "evaluate": requests.Evaluate,
}  # fmt: skip
FORMS: dict[type[Question], type[Question]] = {
    schemas.SearchOne: requests.Search, schemas.SearchMany: requests.Search, schemas.ExplainOne: requests.Explain,
    schemas.RelateRequest: requests.Relate, schemas.InferRequest: requests.Infer,
    schemas.InferJobRequest: requests.Infer, schemas.JoinJobRequest: requests.Join,
    schemas.TrainJobRequest: requests.Train, schemas.WhatIfJobRequest: requests.Counterfactual,
    schemas.SignificanceJobRequest: requests.TestedSearch,
}  # fmt: skip
NEEDED: dict[str, Any] = {
    "query": "Mike", "queries": ["Mike"], "target": "Bob", "graph": "toy", "pairs": [{"query": "a", "target": "b"}],
}  # fmt: skip


def every_option(table: dict[Any, type[Question]], interface: Any) -> list[Any]:
    return [
        pytest.param(place, each, about, id=f"{getattr(place, '__name__', place)}-{each.name}")
        for place, kind in table.items()
        for each, about in options_of(kind, interface)
    ]


@cache
def command_of(name: str) -> Any:
    program: Any = get_command(app)
    return program.load(name)


@pytest.mark.parametrize(("name", "each", "about"), every_option(COMMANDS, "cli"))
def test_every_field_is_a_flag_or_an_argument_with_its_sentence(name: str, each: Any, about: Any) -> None:
    command = command_of(name)
    (parameter,) = (own for own in command.params if own.name == each.name)
    spelled = spell_parameters(about.help, lambda other: spell_parameter(command, other))
    known = re.escape(spelled.rstrip(".")).replace(r"\{", "{").replace(r"\}", "}")
    assert re.match(re.sub(r"{\w+}", ".+", known), parameter.help)
    assert not re.search(r"[‹›{}]", parameter.help)
    if about.argument is None:
        assert parameter.opts == [*(about.flags or (f"--{each.name.replace('_', '-')}",))]
    assert parameter.required == (each.default is MISSING)


def bound(about: Any) -> Iterator[tuple[str, float]]:
    """Yield values just outside the limits of a field."""
    for limit, value in about.limits.items():
        if limit in ("ge", "gt"):
            yield limit, value - 1
        elif limit in ("le", "lt"):
            yield limit, value + 1


def read(form: type[Question], **values: Any) -> Any:
    """Read a request that has what it needs, and some values."""
    for each in fields(form):  # type: ignore[arg-type]
        if each.init and each.default is MISSING and each.default_factory is MISSING:
            needed = get_args(each.type)[0] if each.name == "kind" else NEEDED[each.name]
            values.setdefault(each.name, needed)
    return TypeAdapter(form).validate_python(values)


@pytest.mark.parametrize(("form", "each", "about"), every_option(FORMS, "http"))
def test_every_field_arrives_over_http_with_its_limits(form: type[Question], each: Any, about: Any) -> None:
    schema = TypeAdapter(form).json_schema()["properties"]
    if each.name not in schema:
        assert (form, each.name) == (schemas.SearchMany, "query")  # where queries stand
        return
    for _, value in bound(about):
        with pytest.raises(ValidationError, match=each.name):
            read(form, **{each.name: value})
    if each.default is not MISSING:
        expected = [] if each.default == () else each.default
        assert getattr(read(form), each.name) == expected
        assert isinstance(read(form), FORMS[form])
    if not is_own(form, each.name):  # what a form says of a field itself goes first
        assert schema[each.name]["description"].startswith(about.http or spell_parameters(about.help, str))


def is_own(form: type[Question], name: str) -> bool:
    return any(
        name in vars(part).get("__annotations__", ()) for part in form.__mro__[1:4] if part not in FORMS.values()
    )


@pytest.mark.parametrize(("form", "kind"), [*FORMS.items()])
def test_what_commands_alone_have_is_refused_over_http(form: type[Question], kind: type[Question]) -> None:
    everywhere = {each.name for each, _ in options_of(kind, "http")}
    for each, _ in options_of(kind, "cli"):
        if each.name not in everywhere and not is_own(form, each.name):
            with pytest.raises(ValidationError, match=each.name):
                read(form, **{each.name: 1})


METHODS = {
    "search": requests.Search, "search_table": requests.Search, "explain": requests.Explain,
    "relate": requests.Relate, "infer": requests.Infer, "what_if": requests.Counterfactual,
    "significance": requests.TestedSearch,
}  # fmt: skip


@pytest.mark.parametrize(("method", "kind"), [*METHODS.items()])
def test_the_client_shows_every_field(method: str, kind: type[Question]) -> None:
    shown = signature(getattr(Client, method)).parameters
    for each, _ in options_of(kind, "http"):
        assert shown[each.name].default in (each.default, shown[each.name].empty)


def test_the_tools_of_mcp_take_fields_of_questions(tmp_path: Path) -> None:
    service = make_service({"toy": GraphHandle("toy", npth.load("toy"))}, {}, tmp_path)
    tools = {tool.name: tool.input_schema["properties"] for tool in asyncio.run(make_mcp(service).list_tools())}
    service.close()
    for name in ("search", "explain", "relate"):
        assert {*tools[name]} - {"graph"} <= {each.name for each, _ in options_of(COMMANDS[name], "http")}
    assert tools["search"]["k"]["maximum"] == 50


def test_a_question_is_asked_in_python() -> None:
    hin = npth.load("toy")
    asked = requests.Search(query="Mike", metapath="APVPA", k=2, weight=["writes=weight * 3"])
    (hits,) = answers.search(hin, asked).results
    path = hin.metapath("APVPA", weights={"writes": "weight * 3"})
    assert hits == npth.PathSim(path).fit(hin).top_k("Mike", 2)
    assert repr(replace(asked, k=10)) == ("Search(weight=['writes=weight * 3'], metapath='APVPA', query='Mike')")
    with pytest.raises(FrozenInstanceError, match="replace"):
        asked.k = 3  # type: ignore[misc]
    with pytest.raises(TypeError, match="Search has no kk"):
        requests.Search(query="Mike", kk=3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="Search needs query"):
        requests.Search(k=3)  # type: ignore[call-arg]
    with pytest.raises(QueryError, match="^give either stability, for edges, or stability_by, for nodes, not both$"):
        requests.Search(query="Mike", stability=True, stability_by="paper")


def test_an_error_has_the_words_of_each_interface(run: Run) -> None:
    search = ("search", "toy", "Mike", "-p", "APVPA")
    assert run(*search, "--seed", 1).err == (
        "error: --seed is for --significance and --stability, which draw at random; give one, too\n"
    )
    assert run(*search, "--half-life", "3d").err.startswith("error: --half-life needs --time")
    with pytest.raises(QueryError, match="^half_life needs time"):
        requests.Search(query="Mike", half_life="3d").refine(npth.load("toy"), "APVPA")
