"""The MCP server: its tools by the client of the mcp package, in this process, over standard input and over HTTP."""

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from neupath import HIN
from neupath.graph.hin import Edges
from neupath.graph.metapath import Relation
from neupath.graph.nodes import Nodes
from neupath.service.app import Service, make_service
from neupath.service.graph_registry import GraphHandle
from neupath.service.mcp_server import PATH, describe_node, make_mcp, make_mcp_app
from tests.attacks.assistant import TOOLS, attack_tools, measure_answers
from tests.patience import PATIENCE
from tests.processes import run_process
from tests.service.conftest import hostile_graph

Call = Callable[..., Awaitable[dict[str, Any]]]


@pytest.fixture(scope="module")
def service(toy: HIN, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    graphs = {"toy": GraphHandle("toy", toy), "hostile": GraphHandle("hostile", hostile_graph())}
    made = make_service(graphs, {}, tmp_path_factory.mktemp("state"))
    yield made
    made.close()


def converse(server: Any, conversation: Callable[[Client], Awaitable[None]]) -> None:
    """Connect a client to a server and hold a conversation."""

    async def hold() -> None:
        async with Client(server) as client:
            await conversation(client)

    asyncio.run(hold())


def ask(service: Service, tool: str, **arguments: Any) -> dict[str, Any]:
    """Call one tool of the graph toy; return its answer."""
    answers: list[dict[str, Any]] = []

    async def conversation(client: Client) -> None:
        result = await client.call_tool(tool, {"graph": "toy"} | arguments)
        assert not result.is_error, result.content
        answers.append(json.loads(result.content[0].text))

    converse(make_mcp(service), conversation)
    return answers[0]


def refusal(service: Service, tool: str, **arguments: Any) -> str:
    """Call one tool that must refuse; return its sentence."""
    sentences: list[str] = []

    async def conversation(client: Client) -> None:
        result = await client.call_tool(tool, arguments)
        assert result.is_error
        sentences.append(result.content[0].text)

    converse(make_mcp(service), conversation)
    return sentences[0]


def test_every_tool_has_a_schema_and_says_that_it_only_reads(service: Service) -> None:
    async def conversation(client: Client) -> None:
        tools = (await client.list_tools()).tools
        assert sorted(tool.name for tool in tools) == sorted(TOOLS)
        for tool in tools:
            assert tool.description
            assert tool.input_schema["type"] == "object"
            assert tool.annotations.read_only_hint

    converse(make_mcp(service), conversation)


def test_a_conversation_leads_from_a_name_to_reasons(service: Service) -> None:
    node = ask(service, "find", text="mik")["nodes"][0]
    assert node == {"node_type": "author", "id": "Mike", "match": "prefix", "degree": 3}
    path = ask(service, "describe")["metapaths"][node["node_type"]][-1]
    assert path == "author-paper-venue-paper-author"
    hits = ask(service, "search", query=node["id"], metapath=path)["hits"]
    assert [(hit["id"], hit["evidence"]) for hit in hits][:2] == [
        ("Bob", "Both connect through SIGMOD (80 %) and VLDB (20 %)."),
        ("Mary", "Both connect through SIGMOD alone."),
    ]
    reasons = ask(service, "explain", query=node["id"], target=hits[0]["id"], metapath=path)
    assert sum(group["share"] for group in reasons["groups"]) == pytest.approx(1)
    assert reasons["groups"][0]["path"][0].startswith("Mike -writes-> ")
    related = ask(service, "relate", query="Mike", target="SIGMOD")["metapaths"]
    assert related[0]["metapath"] == "author-paper-venue"


def test_neighbours_are_counted_by_relation(service: Service) -> None:
    answer = ask(service, "neighbours", node="Mike", limit=2)
    assert answer["neighbours"][0]["relation"] == "-writes-> paper"
    assert answer["neighbours"][0]["count"] == 3
    assert len(answer["neighbours"][0]["nodes"]) == 2


def test_examples_give_meta_paths(service: Service) -> None:
    pairs = [("Bob", 1.0), ("Mary", 0.8), ("Ann", 0.0)]
    answer = ask(service, "infer", pairs=[{"query": "Mike", "target": t, "score": s} for t, s in pairs])
    assert answer["metapaths"][0]["metapath"] == "author-paper-venue-paper-author"


def test_the_schema_of_each_graph_is_a_resource(service: Service) -> None:
    async def conversation(client: Client) -> None:
        listed = {resource.name: resource.uri for resource in (await client.list_resources()).resources}
        assert set(listed) == {"toy", "hostile"}
        content = (await client.read_resource(str(listed["toy"]))).contents[0]
        assert json.loads(content.text)["node_types"]["author"]["nodes"] == 5

    converse(make_mcp(service), conversation)


def test_errors_are_the_sentences_of_the_library(service: Service) -> None:
    assert "did you mean 'Mike'" in refusal(service, "search", graph="toy", query="Mikey", metapath="APVPA")
    assert "set graph to one of toy, hostile" in refusal(service, "find", text="mik")
    assert "no graph 'tox'" in refusal(service, "find", text="mik", graph="tox")
    assert "no meta-path is given; say what makes" in refusal(service, "search", graph="toy", query="Mike")
    assert refusal(service, "search", metapath="APA").endswith(": query is missing")
    assert "k is 0: input should be greater" in refusal(service, "search", query="Mike", metapath="APA", k=0)


def test_malformed_calls_are_refused_and_the_next_one_works() -> None:
    outcomes = attack_tools(150, seed=0)
    assert outcomes["answered"] > 0
    assert outcomes["refused"] > 50
    assert (outcomes["with a traceback"], outcomes["failed after"]) == (0, 0)
    assert outcomes["longest_refusal"] < 1000


@pytest.mark.slow
def test_answers_fit_into_a_context_window() -> None:
    sizes = measure_answers()
    assert set(sizes) == set(TOOLS)
    assert max(sizes.values()) < 10_000


@pytest.mark.slow
def test_an_assistant_starts_the_command_and_speaks_over_standard_input() -> None:
    command = StdioServerParameters(
        command=sys.executable, args=["-m", "neupath.cli", "mcp", "toy"], env=dict(os.environ)
    )

    async def conversation(client: Client) -> None:
        result = await client.call_tool("search", {"query": "Mike", "metapath": "APVPA", "k": 1})
        assert json.loads(result.content[0].text)["hits"][0]["id"] == "Bob"

    converse(command, conversation)


@pytest.mark.slow
def test_over_http_it_needs_the_token(tmp_path: Path) -> None:
    import httpx
    from mcp.client.streamable_http import streamable_http_client

    command = [sys.executable, "-m", "neupath.cli", "mcp", "toy", "--port", "0", "--token", "a-long-secret"]
    with run_process(command, stdout=-1, cwd=tmp_path) as process:
        assert process.stdout is not None
        url = process.stdout.readline().split()[-1]
        assert httpx.post(url, json={}, timeout=PATIENCE).status_code == 401

        async def conversation() -> None:
            headers = {"Authorization": "Bearer a-long-secret"}
            async with (
                httpx.AsyncClient(headers=headers, timeout=PATIENCE) as http,
                Client(streamable_http_client(url, http_client=http)) as client,
            ):
                result = await client.call_tool("find", {"text": "mik"})
                assert json.loads(result.content[0].text)["nodes"][0]["id"] == "Mike"

        asyncio.run(conversation())


@pytest.mark.slow
def test_streams_that_would_carry_nothing_are_refused(service: Service) -> None:
    import httpx

    async def conversation() -> None:
        app = make_mcp_app(service, None, None)
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000", timeout=PATIENCE) as http:
            for method in ("GET", "HEAD", "DELETE", "PUT"):
                refused = await http.request(method, PATH, headers={"accept": "text/event-stream"})
                assert (refused.status_code, refused.headers["allow"]) == (405, "POST")
            assert refused.json() == {
                "error": "PUT is not possible at '/api/mcp', which has no sessions and no stream; use POST"
            }

    asyncio.run(conversation())


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["no-such-graph"], "no-such-graph"),
        (["toy", "--host", "0.0.0.0", "--port", "0"], "set a --token"),
        (["toy", "--limit", "secnds=1"], "did you mean"),
        (["toy", "toy"], "two values named 'toy'"),
    ],
)
def test_a_bad_command_is_one_sentence(run: Any, arguments: list[str], sentence: str) -> None:
    result = run("mcp", *arguments)
    assert result.code == 2
    assert sentence in result.err


def test_attributes_keep_their_kinds() -> None:
    facts = {"year": [1986], "rating": [8.5], "open": [True], "born": [date(1949, 4, 22)], "plot": ["x" * 300]}
    nodes = Nodes("film", pa.array(["a"]), attributes=pa.table(facts | {"end": pa.array([None], pa.int64())}))
    like = Edges(Relation("film", "like", "film"), np.array([0]), np.array([0]))
    known = describe_node(HIN.build([nodes], [like]), "a", None, 8)["attributes"]
    assert known == {"year": 1986, "rating": 8.5, "open": True, "born": "1949-04-22", "plot": "x" * 200}
