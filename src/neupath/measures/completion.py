"""Completion: how a meta-path typed so far is read, which steps can follow it, and on which measures it is defined."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from neupath.engine.scorer import Scorer
from neupath.errors import NeuPathError
from neupath.graph.hin import HIN
from neupath.graph.metapath import Link, MetaPath, Schema, Step, arrow, enumerate_metapaths
from neupath.measures.path_measure import PathMeasure
from neupath.measures.registry import GRAPH_MEASURES, MEASURES


def read_prefix(hin: HIN, text: str) -> dict[str, object]:
    """Say whether a text is a meta-path, how it is read, and which steps can follow it.

    >>> from neupath import load
    >>> prefix = read_prefix(load("toy"), "author-pa")
    >>> prefix["valid"], [step["metapath"] for step in prefix["next"]]
    (False, ['author-paper'])
    """
    path, error = _parse(hin, text)
    if path is not None:
        types = [] if "-" in text else _starts(hin.schema, text.strip())  # PA may be initials, or begin "paper"
        return _describe(text, path) | {"next": types + _next(hin.schema, path, path.target, "")}
    head, word = _split_prefix(hin, text)
    end = head.target if isinstance(head, MetaPath) else head
    following = _starts(hin.schema, word) if end is None else _next(hin.schema, head, end, word)
    return {
        "text": text, "valid": False, "metapath": None, "node_types": [], "symmetric": False, "round_trip": False,
        "measures": [], "error": error, "next": following,
    }  # fmt: skip


def suggest_metapaths(
    schema: Schema, source: str, target: str | None, max_length: int, limit: int
) -> list[dict[str, object]]:
    """List meta-paths from a node type, out and back or to another type, the shortest first."""
    start = schema.node_type(source)
    end = start if target is None else schema.node_type(target)
    symmetric = start == end
    if not schema.neighbours(start) or (symmetric and max_length < 2):
        return []
    candidates = islice(enumerate_metapaths(schema, start, max_length, symmetric=symmetric), 100 * limit)
    fitting = (path for path in candidates if path.target == end)
    return [_describe(str(path), path) for path in islice(fitting, limit)]


def describe_measures() -> list[dict[str, object]]:
    """List the measures, and the meta-paths that each is defined on; those over the whole graph take none."""
    metapaths: dict[type[Scorer], str] = dict.fromkeys(GRAPH_MEASURES.values(), "none")
    for measure in MEASURES.values():
        metapaths[measure] = "symmetric" if measure.symmetric_only else "any"
    return [
        {
            "name": measure.name,
            "about": (measure.__doc__ or "").strip().splitlines()[0],
            "metapaths": metapaths[measure],
        }
        for measure in (*MEASURES.values(), *GRAPH_MEASURES.values())
    ]


def _parse(hin: HIN, text: str) -> tuple[MetaPath | None, str | None]:
    try:
        return hin.metapath(text), None
    except NeuPathError as error:
        return None, str(error)


def _describe(text: str, path: MetaPath) -> dict[str, object]:
    return {
        "text": text,
        "valid": True,
        "metapath": str(path),
        "node_types": list(path.node_types),
        "symmetric": path.is_symmetric,
        "round_trip": path.is_round_trip,
        "measures": [name for name, measure in MEASURES.items() if _is_defined(measure, path)],
        "error": None,
    }


def _is_defined(measure: type[PathMeasure], path: MetaPath) -> bool:
    try:
        measure(path).check(path)
    except NeuPathError:
        return False
    return True


def _split_prefix(hin: HIN, text: str) -> tuple[MetaPath | str | None, str]:
    """Split an unfinished meta-path into its longest valid head, a meta-path or node type, and the word after it."""
    types = {node_type.casefold(): node_type for node_type in hin.schema.node_types}
    rest = text.strip()
    word = ""
    while rest:
        path, _ = _parse(hin, rest)
        if path is not None:
            return path, word
        if rest.casefold() in types:
            return types[rest.casefold()], word
        head, dash, last = rest.rpartition("-")
        if not dash:
            break
        word = word or last.strip(" <>")
        rest = head.rstrip(" -<>")
    return None, text.strip()


def _starts(schema: Schema, word: str) -> list[dict[str, object]]:
    return [
        {"node_type": node_type, "link": None, "metapath": node_type}
        for node_type in schema.node_types
        if node_type.casefold().startswith(word.casefold())
    ]


def _from_end(taken: Sequence[Step], links: Sequence[Link]) -> tuple[Link, ...]:
    """Return links that go on from where some steps end, with the condition on the nodes there."""
    return tuple(replace(link, source_filter=taken[-1].target_filter if taken else None) for link in links)


def _next(schema: Schema, head: MetaPath | str | None, end: str, word: str) -> list[dict[str, object]]:
    """List the steps that can follow: all relations to a node type together, and each alone where there are several."""
    steps: list[tuple[Link, ...]] = []
    for node_type in schema.neighbours(end):
        links = schema.links(end, node_type)
        if len(links) > 1 and end != node_type:
            steps.append(links)
        steps += [(link,) for link in links]
    taken = head.steps if isinstance(head, MetaPath) else ()
    return [
        {
            "node_type": links[0].target,
            "link": arrow(links),
            "metapath": str(MetaPath(schema, (*taken, Step(_from_end(taken, links))))),
        }
        for links in steps
        if any(
            name.casefold().startswith(word.casefold())
            for name in (links[0].target, *(link.relation.name for link in links))
        )
    ]


def complete(
    hin: HIN, prefix: str | None = None, *, source_type: str | None = None, target_type: str | None = None,
    max_length: int = 4, limit: int = 20,
) -> dict[str, object]:  # fmt: skip
    """Describe a meta-path typed so far, and suggest some from a node type."""
    suggestions = []
    if source_type is not None:
        suggestions = suggest_metapaths(hin.schema, source_type, target_type, max_length, limit)
    return {"prefix": None if prefix is None else read_prefix(hin, prefix), "suggestions": suggestions}
