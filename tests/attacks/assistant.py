"""Malformed calls of the tools of the MCP server: each is answered or refused in words, and the next one works.

Also a usual conversation on Python's standard library, for the size of each tool's answer.
"""

import asyncio
import json
import random
import tempfile
import time
from pathlib import Path
from typing import Any

from mcp import Client

import neupath as npth
from neupath.service.app import make_service
from neupath.service.graph_registry import GraphHandle
from neupath.service.mcp_server import make_mcp

TOOLS = ("describe", "explain", "find", "infer", "neighbours", "relate", "search")
_NAMES = (
    "query", "target", "metapath", "text", "k", "pairs", "graph", "limit", "node", "by", "where", "measure",
    "node_type", "query_type", "target_type", "max_steps", "no such argument",
)  # fmt: skip
_VALUES: tuple[Any, ...] = (
    None, "", "x" * 5000, "\x00", "\ud800", "Mike", -1, 0, 1, 3, 10**30, 1.5, float("inf"), True, [], [[]], {},
    {"a": 1},
    "APVPA", "APA", "author-paper[year >= 2020]-author", "toy", "author", "pathsim", ["year >= 2000"], ["id = ("],
    [{"query": "Mike", "target": "Bob", "score": 1}], [{"query": "Mike"}], [{"query": 1, "target": [], "score": "x"}],
    "[" * 3000, "é\u202e", "'; drop table", "../../etc/passwd", "A" * 300,
)  # fmt: skip
_CONVERSATION: tuple[tuple[str, dict[str, Any]], ...] = (
    ("describe", {}),
    ("find", {"text": "argument parser"}),
    ("neighbours", {"node": "argparse.ArgumentParser"}),
    ("search", {"query": "argparse.ArgumentParser", "metapath": "class-method-class"}),
    (
        "explain",
        {
            "query": "argparse.ArgumentParser",
            "target": "optparse.OptionParser",
            "metapath": "class-method-class",
        },
    ),
    ("relate", {"query": "argparse.ArgumentParser", "target": "optparse.OptionParser"}),
    ("infer", {"pairs": [{"query": "argparse.ArgumentParser", "target": "optparse.OptionParser"}]}),
)


def attack_tools(count: int, seed: int) -> dict[str, Any]:
    """Make random calls of the tools on the graph toy; return how many were answered, refused and failed."""
    return asyncio.run(_with_client("toy", lambda client: _attack(client, count, random.Random(seed))))


def measure_answers() -> dict[str, int]:
    """Hold a conversation on the standard library; return the number of characters of each tool's answer."""
    return asyncio.run(_with_client("stdlib", _converse))


async def _with_client(graph: str, conversation: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        service = make_service({graph: GraphHandle(graph, npth.load(graph))}, {}, Path(folder))
        try:
            async with Client(make_mcp(service)) as client:
                return await conversation(client)
        finally:
            service.close()


async def _attack(client: Client, count: int, rng: random.Random) -> dict[str, Any]:
    outcomes = dict.fromkeys(("answered", "refused", "cannot be sent", "with a traceback", "failed after"), 0)
    slowest, longest = 0.0, {True: 0, False: 0}
    for _ in range(count):
        arguments = {rng.choice(_NAMES): rng.choice(_VALUES) for _ in range(rng.randrange(6))}
        began = time.perf_counter()
        try:
            result = await client.call_tool(rng.choice([*TOOLS, "", "no such tool"]), arguments)
        except (UnicodeEncodeError, ValueError):  # the client cannot write it as JSON
            outcomes["cannot be sent"] += 1
            continue
        text = getattr(result.content[0], "text", "")
        slowest = max(slowest, time.perf_counter() - began)
        longest[result.is_error] = max(longest[result.is_error], len(text))
        outcomes["refused" if result.is_error else "answered"] += 1
        outcomes["with a traceback"] += "Traceback" in text
    after = await client.call_tool("search", {"query": "Mike", "metapath": "APVPA", "k": 1})
    outcomes["failed after"] += json.loads(after.content[0].text)["hits"][0]["id"] != "Bob"  # type: ignore[union-attr]
    return {"count": count, **outcomes, "slowest_s": round(slowest, 3)} | {
        "longest_answer": longest[False],
        "longest_refusal": longest[True],
    }


async def _converse(client: Client) -> dict[str, int]:
    sizes = {}
    for tool, arguments in _CONVERSATION:
        result = await client.call_tool(tool, arguments)
        assert not result.is_error, result.content
        sizes[tool] = len(result.content[0].text)  # type: ignore[union-attr]
    return sizes
