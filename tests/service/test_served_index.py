"""A prepared index in place of a graph: over HTTP, through the client, and as tools of MCP."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import neupath as npth
from neupath import HIN
from neupath.client import Client
from neupath.errors import NeuPathError
from neupath.service.app import make_service
from neupath.service.graph_registry import GraphHandle
from tests.service.conftest import Running, Start


@pytest.fixture
def index(toy: HIN, tmp_path: Path) -> HIN:
    """The nodes of an index of the toy graph."""
    return npth.load(npth.prepare(toy, npth.PathSim("APVPA"), tmp_path / "authors"))


@pytest.fixture
def served(start: Start, toy: HIN, index: HIN) -> Running:
    return start(graphs={"authors": index, "toy": toy})


def test_hits_are_those_of_the_graph(served: Running) -> None:
    for options in ({}, {"k": 1}, {"include_query": True, "zeros": True}, {"among": ["Mary", "Ann"]}):
        expected = served.get("/api/graphs/toy/search", params={"query": "Mike", "metapath": "APVPA"} | options)
        assert served.get("/api/graphs/authors/search", params={"query": "Mike"} | options).json() == expected.json()
    several = served.post("/api/graphs/authors/search", {"queries": ["Mike", "Jim"], "k": 1}).json()
    assert [hits["hits"][0]["id"] for hits in several] == ["Bob", "Mike"]


def test_an_explanation_names_the_nodes_in_the_middle(served: Running) -> None:
    explained = served.get("/api/graphs/authors/explain", params={"query": "Mike", "target": "Jim"}).json()
    assert [group["id"] for group in explained["groups"]] == ["SIGMOD", "VLDB"]
    assert sum(group["score"] for group in explained["groups"]) == pytest.approx(explained["score"])


@pytest.mark.parametrize(
    ("path", "params", "message"),
    [
        ("search", {"query": "Mike", "metapath": "APA"}, "answers nothing else; leave out metapath, or ask the graph"),
        ("search", {"query": "Mike", "measure": "joinsim"}, "answers nothing else; leave out measure"),
        ("search", {"query": "Nobody"}, "no author with the id 'Nobody' among 5"),
        ("relate", {"query": "Mike", "target": "Jim"}, "has no edges for anything else; ask the graph"),
        ("similar", {"query": "Mike", "node_type": "author"}, "has no edges for anything else"),
    ],
)
def test_other_questions_are_refused(served: Running, path: str, params: dict[str, Any], message: str) -> None:
    response = served.get(f"/api/graphs/authors/{path}", params=params)
    assert response.status_code in (400, 404, 422), response.text
    assert message in response.json()["error"]


def test_the_client_searches_it(served: Running) -> None:
    with Client(served.url) as client:
        assert client.search("authors", "Mike", k=2).ids == ("Bob", "Mary")
        with pytest.raises(NeuPathError, match="answers nothing else"):
            client.search("authors", "Mike", metapath="APA")


def test_an_assistant_searches_and_explains(index: HIN, tmp_path: Path) -> None:
    from mcp import Client as Assistant

    from neupath.service.mcp_server import make_mcp

    answers: list[dict[str, Any]] = []

    async def converse() -> None:
        async with Assistant(make_mcp(service)) as assistant:
            calls = (("search", {"query": "Mike"}), ("explain", {"query": "Mike", "target": "Jim"}))
            for tool, arguments in calls:
                result = await assistant.call_tool(tool, {"graph": "authors"} | arguments)
                assert not result.is_error, result.content
                answers.append(json.loads(result.content[0].text))

    service = make_service({"authors": GraphHandle("authors", index)}, {}, tmp_path / "state")
    try:
        asyncio.run(converse())
    finally:
        service.close()
    assert "Bob" in json.dumps(answers[0])
    assert "SIGMOD" in json.dumps(answers[1])
