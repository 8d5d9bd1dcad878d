"""Suggesting: what a meta-path typed so far means, what can follow, and which ones there are for a type."""

from itertools import islice

from neupath.errors import MetaPathError, NeuPathError
from neupath.graph import HIN
from neupath.measures import GRAPH_MEASURES, MEASURES, PathMeasure
from neupath.metapath import MetaPath, Step, enumerate_metapaths
from neupath.parsing import arrow
from neupath.schema import Link, Schema
from neupath.scorer import Scorer


def read_prefix(hin: HIN, text: str) -> dict[str, object]:
    """Say whether a text is a meta-path, how it is read, and which steps can follow it.

    >>> from neupath import load
    >>> told = read_prefix(load("toy"), "author-pa")
    >>> told["valid"], [step["metapath"] for step in told["next"]]
    (False, ['author-paper'])
    """
    path, error = _parse(hin, text)
    if path is not None:
        types = [] if "-" in text else _starts(hin.schema, text.strip())  # initials may be a type's first letters
        return _describe(text, path) | {"next": types + _next(hin.schema, path, path.target, "")}
    head, begun = _head(hin, text)
    end = head.target if isinstance(head, MetaPath) else head
    following = _starts(hin.schema, begun) if end is None else _next(hin.schema, head, end, begun)
    return {
        "text": text, "valid": False, "metapath": None, "node_types": [], "symmetric": False, "round_trip": False,
        "measures": [], "error": error, "next": following,
    }  # fmt: skip


def suggest_metapaths(
    schema: Schema, source: str, target: str | None, max_length: int, limit: int
) -> list[dict[str, object]]:
    """List meta-paths from a type, out and back, or to another type; shortest first."""
    start = schema.node_type(source)
    end = start if target is None else schema.node_type(target)
    symmetric = start == end
    if not schema.neighbours(start) or (symmetric and max_length < 2):
        return []
    every = enumerate_metapaths(schema, start, max_length, symmetric=symmetric)
    fitting = (path for path in islice(every, 100 * limit) if path.target == end)
    return [_describe(str(path), path) for path in islice(fitting, limit)]


def describe_measures() -> list[dict[str, object]]:
    """List the measures, and which meta-paths each is defined on; those over the whole graph take none."""
    over_paths = [
        _describe_measure(measure, "symmetric" if measure.check is not PathMeasure.check else "any")
        for measure in MEASURES.values()
    ]
    return over_paths + [_describe_measure(measure, "none") for measure in GRAPH_MEASURES.values()]


def _describe_measure(measure: type[Scorer], metapaths: str) -> dict[str, object]:
    about = (measure.__doc__ or "").strip().splitlines()[0]
    return {"name": measure.name, "about": about, "metapaths": metapaths}


def _parse(hin: HIN, text: str) -> tuple[MetaPath | None, str | None]:
    try:
        return hin.metapath(text), None
    except MetaPathError as error:
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


def _head(hin: HIN, text: str) -> tuple[MetaPath | str | None, str]:
    """Cut a text that is no meta-path into what can be read, a path or a single type, and the word begun after it."""
    types = {node_type.casefold(): node_type for node_type in hin.schema.node_types}
    cut = text.strip()
    begun = ""
    while cut:
        path, _ = _parse(hin, cut)
        if path is not None:
            return path, begun
        if cut.casefold() in types:
            return types[cut.casefold()], begun
        head, dash, word = cut.rpartition("-")
        if not dash:
            break
        begun = begun or word.strip(" <>")
        cut = head.rstrip(" -<>")
    return None, text.strip()


def _starts(schema: Schema, begun: str) -> list[dict[str, object]]:
    return [
        {"node_type": node_type, "link": None, "metapath": node_type}
        for node_type in schema.node_types
        if node_type.casefold().startswith(begun.casefold()) or not begun
    ]


def _next(schema: Schema, head: MetaPath | str | None, end: str, begun: str) -> list[dict[str, object]]:
    """List the steps that can follow: all relations to each type at once, and each alone where there are several."""
    steps: list[tuple[Link, ...]] = []
    for node_type in schema.neighbours(end):
        links = schema.links(end, node_type)
        if len(links) > 1 and end != node_type:
            steps.append(links)
        steps += [(link,) for link in links]
    walked = head.steps if isinstance(head, MetaPath) else ()
    return [
        {
            "node_type": links[0].target,
            "link": arrow(links),
            "metapath": str(MetaPath(schema, (*walked, Step(links)))),
        }
        for links in steps
        if _fits(links, begun)
    ]


def _fits(links: tuple[Link, ...], begun: str) -> bool:
    words = (links[0].target, *(link.relation.name for link in links))
    return not begun or any(word.casefold().startswith(begun.casefold()) for word in words)
