"""Attributes of NetworkX graphs that hold types and relations, under whatever name another program gave them."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

_TYPE_KEYS = ("node_type", "ntype", "kind", "labels")
_RELATION_KEYS = ("edge_type", "etype", "type", "predicate", "kind")
"""What else than `type` and `relation` they are called; Neo4j writes labels with a colon in front."""
_MOST = 64
_FEW = 8
_SHARE = 10
"""Values that name types and relations are few: 64 at most, and 8 at most or one for each ten that carry them."""
Carriers = Collection[Mapping[str, Any]]


def find_type_key(nodes: Carriers) -> str:
    """Return the attribute that holds the types of nodes: `type` where any has it, or else one that reads like types.

    >>> find_type_key([{"kind": "user"}, {"kind": "item"}]), find_type_key([{"kind": "user"}, {"kind": 1.5}])
    ('kind', 'type')
    """
    return _find_key("type", _TYPE_KEYS, nodes)


def find_relation_key(edges: Carriers, foreign: bool) -> str:
    """Return the attribute that holds the relations of edges: `relation` where any has it, or else one that reads so.

    A `label` is what to draw in most graphs, and may be a relation where types have `foreign` names, too.
    """
    return _find_key("relation", (*_RELATION_KEYS, "label") if foreign else _RELATION_KEYS, edges)


def notes_on_keys(type_key: str | None, relation_key: str | None) -> list[str]:
    """Say which attributes were found that are not called as usual, and how to leave them alone."""
    found = (("type", "node_type", type_key), ("relation", "relation", relation_key))
    return [
        f"{usual}s were read from the attribute {key!r}; from_networkx(graph, {option}={usual!r}) does not"
        for usual, option, key in found
        if key not in (None, usual)
    ]


def _find_key(usual: str, others: Sequence[str], carriers: Carriers) -> str:
    if any(usual in data for data in carriers):
        return usual
    return next((key for key in others if _names_kinds([data.get(key) for data in carriers])), usual)


def _names_kinds(values: Sequence[Any]) -> bool:
    """Whether all values are texts, and few of them differ."""
    if not all(isinstance(value, str) and value.strip() for value in values):
        return False
    return 0 < len(set(values)) <= min(_MOST, max(_FEW, len(values) // _SHARE))
