"""Schema: the node types and relations of a graph, and the letters that stand for the types."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

from neupath.errors import SchemaError, did_you_mean, listed


@dataclass(frozen=True, order=True)
class Relation:
    """A kind of edge, from one node type to another (possibly the same).

    A relation of a type to itself is read in two directions unless `directed` is false: then every edge counts both
    ways and forward and backward are the same.
    """

    source: str
    name: str
    target: str
    directed: bool = True

    def __post_init__(self) -> None:
        for word in (self.source, self.name, self.target):
            if not word or word != word.strip():
                raise SchemaError(f"{word!r} cannot name a node type or relation: it is empty or has spaces around it")
        if not self.directed and self.source != self.target:
            raise SchemaError(
                f"relation '{self}' joins two different types, so it cannot be undirected; "
                f"only a relation of a type to itself can"
            )

    def __str__(self) -> str:
        arrow = "->" if self.directed else "-"
        return f"{self.source} -{self.name}{arrow} {self.target}"


@dataclass(frozen=True, order=True)
class Link:
    """A relation as one step of a path walks it: forward, or reversed."""

    relation: Relation
    reverse: bool = False

    @property
    def source(self) -> str:
        return self.relation.target if self.reverse else self.relation.source

    @property
    def target(self) -> str:
        return self.relation.source if self.reverse else self.relation.target

    def reversed(self) -> "Link":
        return self if not self.relation.directed else Link(self.relation, not self.reverse)


@dataclass(frozen=True)
class Schema:
    """The node types and relations of a graph.

    >>> schema = Schema(("author", "paper"), (Relation("author", "writes", "paper"),))
    >>> [str(link.relation) for link in schema.links("paper", "author")]
    ['author -writes-> paper']
    """

    node_types: tuple[str, ...]
    relations: tuple[Relation, ...]
    abbreviations: Mapping[str, str] = field(default_factory=dict)
    """Letters with a given meaning, such as F for affiliation; every other letter means the types it begins."""

    def __post_init__(self) -> None:
        _refuse_repeats("node type", self.node_types)
        _refuse_repeats("relation", (str(Relation(r.source, r.name, r.target)) for r in self.relations))
        for relation in self.relations:
            for node_type in (relation.source, relation.target):
                if node_type not in self.node_types:
                    raise SchemaError(
                        f"relation '{relation}' names the node type {node_type!r}, "
                        f"but the graph has {listed(self.node_types)}"
                    )
        for letter, node_type in self.abbreviations.items():
            if len(letter) != 1 or node_type not in self.node_types:
                raise SchemaError(
                    f"abbreviation {letter!r} = {node_type!r} must be one letter "
                    f"for one of the node types {listed(self.node_types)}"
                )
        letters = {letter.upper(): node_type for letter, node_type in self.abbreviations.items()}
        object.__setattr__(self, "abbreviations", MappingProxyType(letters))

    def __reduce__(self) -> tuple[object, ...]:
        return Schema, (self.node_types, self.relations, dict(self.abbreviations))

    def __hash__(self) -> int:
        return hash((self.node_types, self.relations))

    def node_type(self, word: str) -> str:
        """Return the node type the word names, whatever its case where only one fits."""
        if word in self.node_types:
            return word
        folded = [t for t in self.node_types if t.casefold() == word.casefold()]
        if len(folded) == 1:
            return folded[0]
        raise SchemaError(
            f"no node type {word!r} in this graph (it has {listed(self.node_types)})"
            f"{did_you_mean(word, self.node_types)}"
        )

    def types_of_letter(self, letter: str) -> tuple[str, ...]:
        """Return the node types a letter can stand for in a path such as APVPA."""
        given = self.abbreviations.get(letter.upper())
        if given is not None:
            return (given,)
        return tuple(t for t in self.node_types if t[:1].casefold() == letter.casefold())

    def links(self, source: str, target: str) -> tuple[Link, ...]:
        """Return every way to step from one type to another, in schema order."""
        return tuple(link for link in self._links_from.get(source, ()) if link.target == target)

    def links_from(self, source: str) -> tuple[Link, ...]:
        """Return every way to step away from a type, in schema order."""
        return self._links_from.get(source, ())

    def neighbours(self, node_type: str) -> tuple[str, ...]:
        """Return the types one step away, in schema order."""
        reached = {link.target for link in self.links_from(node_type)}
        return tuple(t for t in self.node_types if t in reached)

    @cached_property
    def _links_from(self) -> dict[str, tuple[Link, ...]]:
        found: dict[str, list[Link]] = {}
        for relation in self.relations:
            forward = Link(relation)
            found.setdefault(relation.source, []).append(forward)
            if relation.directed:
                backward = forward.reversed()
                found.setdefault(backward.source, []).append(backward)
        return {node_type: tuple(links) for node_type, links in found.items()}


def _refuse_repeats(what: str, words: Iterable[str]) -> None:
    seen: set[str] = set()
    for word in words:
        if word in seen:
            raise SchemaError(f"the {what} {word!r} is given twice; give each {what} once")
        seen.add(word)
