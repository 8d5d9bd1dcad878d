"""Schema: the node types and relations of a graph. MetaPath: a sequence of steps over it, and its notation."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice, pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING

from neupath.errors import MetaPathError, SchemaError, dash_hint, did_you_mean, excerpt, listed

if TYPE_CHECKING:  # conditions are rare, and take a while to import
    from neupath.graph.conditions import Condition, Expression, Filter


# ---- Schema --------------------------------------------------------------------------------------
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

    def pair(self, source: int, target: int) -> tuple[int, int]:
        """Return the two ends of an edge, the smaller first where the relation has no direction.

        >>> Relation("person", "knows", "person", directed=False).pair(7, 3)
        (3, 7)
        """
        return (source, target) if self.directed or source <= target else (target, source)


@dataclass(frozen=True)
class Link:
    """A relation as one step of a path walks it: forward, or reversed; and which of its edges count, and how much.

    The filters of both ends and of the edges make a derived relation, with a matrix of its own (`HIN.matrix`).
    """

    relation: Relation
    reverse: bool = False
    source_filter: "Filter | None" = None
    edge_filter: "Filter | None" = None
    target_filter: "Filter | None" = None

    @property
    def is_filtered(self) -> bool:
        return bool(self.source_filter or self.edge_filter or self.target_filter)

    @property
    def plain(self) -> "Link":
        """The link without its filters."""
        return Link(self.relation, self.reverse) if self.is_filtered else self

    @property
    def source(self) -> str:
        return self.relation.target if self.reverse else self.relation.source

    @property
    def target(self) -> str:
        return self.relation.source if self.reverse else self.relation.target

    def reversed(self) -> "Link":
        """Return the link walked the other way, which for an undirected relation differs in its filters alone."""
        if not self.relation.directed and not self.is_filtered:
            return self
        reverse = not self.reverse if self.relation.directed else self.reverse
        return Link(self.relation, reverse, self.target_filter, self.edge_filter, self.source_filter)


@dataclass(frozen=True)
class Schema:
    """The node types and relations of a graph.

    Parameters
    ----------
    node_types
        The names of the types.
    relations
        The relations between them.
    abbreviations
        Letters with a meaning of their own, such as F for affiliation; any other letter means the types it begins.

    >>> schema = Schema(("author", "paper"), (Relation("author", "writes", "paper"),))
    >>> [str(link.relation) for link in schema.links("paper", "author")]
    ['author -writes-> paper']
    """

    node_types: tuple[str, ...]
    relations: tuple[Relation, ...]
    abbreviations: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _refuse_repeats("node type", self.node_types)
        _refuse_repeats("relation", (str(Relation(r.source, r.name, r.target)) for r in self.relations))
        known = set(self.node_types)
        for relation in self.relations:
            for node_type in (relation.source, relation.target):
                if node_type not in known:
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
            f"no node type {excerpt(word, 0)!r} in this graph (it has {listed(self.node_types)})"
            f"{did_you_mean(word, self.node_types)}"
        )

    def relation(self, text: str) -> Relation:
        """Return the relation with a name that no other has, or with a full spelling.

        >>> schema = Schema(("author", "paper"), (Relation("author", "writes", "paper"),))
        >>> schema.relation("writes") == schema.relation("author -writes-> paper")
        True
        """
        matches = [relation for relation in self.relations if text in (relation.name, str(relation))]
        if len(matches) == 1:
            return matches[0]
        names = [str(relation) for relation in matches or self.relations]
        if matches:
            raise SchemaError(f"relation {excerpt(text, 0)!r} could be {' or '.join(names)}; write it in full")
        raise SchemaError(f"no relation {excerpt(text, 0)!r} in this graph (it has {listed(names)})")

    def types_of_letter(self, letter: str) -> tuple[str, ...]:
        """Return the node types a letter can stand for in a path such as APVPA."""
        if letter.upper() in self.abbreviations:
            return (self.abbreviations[letter.upper()],)
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
        by_source: dict[str, list[Link]] = {}
        for relation in self.relations:
            by_source.setdefault(relation.source, []).append(Link(relation))
            if relation.directed:
                by_source.setdefault(relation.target, []).append(Link(relation, reverse=True))
        return {node_type: tuple(links) for node_type, links in by_source.items()}


def _refuse_repeats(what: str, words: Iterable[str]) -> None:
    seen: set[str] = set()
    for word in words:
        if word in seen:
            raise SchemaError(f"the {what} {word!r} is given twice; give each {what} once")
        seen.add(word)


# ---- The notation of meta-paths ------------------------------------------------------------------
Links = tuple[Link, ...]


def parse_steps(schema: Schema, text: str) -> list[Links]:
    """Read `author-paper-author`, `APA` or `paper -cites-> paper` as the links of each step."""
    stripped = text.strip()
    if not stripped:
        raise MetaPathError("the meta-path is empty; write node types joined by dashes, such as author-paper-author")
    if len(stripped) > _LONG:
        from neupath.graph.conditions import check_length

        check_length("meta-path", stripped)
    reader = _PathReader(schema, stripped)
    outside = without_brackets(stripped).strip()
    try:
        if "-" in outside or outside.casefold() in (t.casefold() for t in schema.node_types):
            return reader.read()
        return reader.read_initials()
    except MetaPathError as error:
        hint = dash_hint(stripped)
        if not hint or str(error).endswith(hint):
            raise
        raise MetaPathError(f"{error}{hint}") from error


_LONG = 1000  # characters from which on the length is checked
_OPENING = re.compile(r"[\[{]")
_BRACKETS = re.compile(r"""\[(?:[^\]"']|"[^"]*"|'[^']*')*\]|\{(?:[^}"']|"[^"]*"|'[^']*')*\}""")
"""What stands in brackets behind a node type or a relation, where quotes may hold brackets."""


def without_brackets(text: str) -> str:
    """Return a meta-path as it is written, without its conditions and pinned nodes.

    >>> without_brackets('author-paper[title ~ "a]b"]-venue{KDD}')
    'author-paper-venue'
    """
    kept, at = "", 0
    while opening := _OPENING.search(text, at):
        group = _BRACKETS.match(text, opening.start())
        if group is None:  # it is not closed; looking for others would take as many steps again
            break
        kept, at = kept + text[at : opening.start()], group.end()
    return kept + text[at:]


def arrow(links: Links) -> str:
    """Write the relations of a step in the notation: `-cites->`, `<-cites-`, or `-likes-` with no direction."""
    names = "|".join(f"{link.relation.name}{link.edge_filter or ''}" for link in links)
    directions = {link.reverse for link in links if link.relation.directed}
    if directions == {False}:
        return f"-{names}->"
    return f"<-{names}-" if directions == {True} else f"-{names}-"


def _read_initials(schema: Schema, text: str) -> tuple[str, ...]:
    """Find the one sequence of types, joined by relations, that the letters can stand for."""
    if len(text.split()) > 1 or len(text) > 64:
        raise MetaPathError(
            f"meta-path {excerpt(text, 0)!r} has no dashes; write node types joined by dashes, such as author-paper"
        )
    choices = [schema.types_of_letter(letter) for letter in text]
    for position, (letter, types) in enumerate(zip(text, choices, strict=True), 1):
        if not types:
            raise MetaPathError(
                f"meta-path {excerpt(text, 0)!r}: letter {position}, {letter!r}, is not the initial of a node type "
                f"(there are {listed(schema.node_types)}); write the types out, joined by dashes"
                f"{did_you_mean(text, schema.node_types)}"
            )
    readings = list(islice(_joined_readings(schema, choices), 4))
    if not readings:
        raise MetaPathError(
            f"meta-path {excerpt(text, 0)!r}: no types with these initials are joined in this order; "
            f"{_possible_steps(schema)}"
        )
    if len(readings) > 1:
        raise MetaPathError(
            f"meta-path {excerpt(text, 0)!r} could be {' or '.join('-'.join(r) for r in readings)}; "
            f"write the one you mean"
        )
    return readings[0]


def _joined_readings(schema: Schema, choices: list[tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    """List the ways to pick one type a position so that neighbours are joined, never entering a dead end."""
    viable = [set(choices[-1])]
    for types in reversed(choices[:-1]):
        viable.append({t for t in types if viable[-1].intersection(schema.neighbours(t))})
    viable.reverse()

    def extend(reading: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        if len(reading) == len(choices):
            yield reading
            return
        for node_type in choices[len(reading)]:
            joined = not reading or node_type in schema.neighbours(reading[-1])
            if joined and node_type in viable[len(reading)]:
                yield from extend((*reading, node_type))

    return extend(())


def _possible_steps(schema: Schema) -> str:
    joined = "; ".join(f"{t} to {listed(schema.neighbours(t))}" for t in schema.node_types if schema.neighbours(t))
    return f"one step leads from {joined}" if joined else "this graph has no relations"


@dataclass(frozen=True)
class _Edge:
    """What stands between two types: relation names, if any, and whether they are walked in reverse (None: unsaid)."""

    names: tuple[str, ...] = ()
    reverse: bool | None = None
    filters: "tuple[Filter | None, ...]" = ()


class _PathReader:
    """A cursor over the text; each method reads one part and moves on."""

    def __init__(self, schema: Schema, text: str) -> None:
        self.schema = schema
        self.text = text
        self.position = 0
        self.step = 0

    @property
    def shown(self) -> str:
        """The beginning of the text, for errors."""
        return excerpt(self.text, 0)

    @property
    def where(self) -> str:
        """The text and the step, for errors."""
        return f"meta-path {self.shown!r}, step {self.step}"

    def read(self) -> list[Links]:
        current = self._read_type(after=None)
        filters = [self._read_filter(is_node=True)]
        steps: list[Links] = []
        while self._rest():
            self.step += 1
            edge = self._read_edge(current)
            target = self._read_type(after=current)
            steps.append(self._choose(current, target, edge))
            filters.append(self._read_filter(is_node=True))
            current = target
        if not steps:
            raise MetaPathError(
                f"meta-path {self.shown!r} is one type; a meta-path needs at least one step, and "
                f"{self._onward(current)}"
            )
        return self._with_filters(steps, filters)

    def read_initials(self) -> list[Links]:
        """Read one letter per type, each with its brackets: `AP[year >= 2020]A`."""
        letters, filters = "", []
        while self._rest():
            letters += self._rest()[0]
            self._take(letters[-1])
            filters.append(self._read_filter(is_node=True))
        if len(letters) == len(self.text):
            letters = self.text  # an error shows it as it was written
        types = _read_initials(self.schema, letters if any(filters) else self.text)
        steps = []
        for self.step, (source, target) in enumerate(pairwise(types), 1):
            steps.append(self._choose(source, target, _Edge()))
        if not steps:
            return _PathReader(self.schema, types[0]).read()  # raises
        return self._with_filters(steps, filters)

    def _with_filters(self, steps: list[Links], filters: "list[Filter | None]") -> list[Links]:
        for end in (filters[0], filters[-1]):
            if end is not None and end.weight is not None:
                raise MetaPathError(
                    f"meta-path {self.shown!r}: the node type at its {'start' if end is filters[0] else 'end'} has the "
                    f"weight {excerpt(str(end.weight), 0)!r}; only nodes between the two ends have weights, and edges"
                )
        if not any(filters):
            return steps
        ends = pairwise(filters)
        return [
            tuple(replace(link, source_filter=source, target_filter=target) for link in links)
            for links, (source, target) in zip(steps, ends, strict=True)
        ]

    def _read_filter(self, *, is_node: bool) -> "Filter | None":
        """Read `{node, node}` and `[condition; weight: expression]` behind a node type or a relation."""
        if not self._rest().startswith(("[", "{")):
            return None
        from neupath.graph.conditions import Filter, Reader, all_of

        reader = Reader("meta-path", self.text, self.position, closings="];", error=MetaPathError)
        conditions: list[Condition] = []
        weight: Expression | None = None
        while is_node and reader.take("{"):
            conditions.append(reader.read_pinned())
        if reader.take("["):
            opened = reader.at - 1
            if not reader.takes_weight():
                conditions.append(reader.read_condition())
                if reader.take(";") and not reader.takes_weight():
                    reader.refuse("expected 'weight:' and an expression after ';'")
            if reader.has_weight:
                weight = reader.read_expression()
            reader.expect("]", opened)
        while is_node and reader.take("{"):
            conditions.insert(0, reader.read_pinned())
        self.position = reader.at if conditions or weight is not None else self.position
        if not conditions and weight is None:
            return None
        return Filter(all_of(conditions), weight)

    def _rest(self) -> str:
        return self.text[self.position :].lstrip()

    def _take(self, token: str) -> bool:
        rest = self._rest()
        if not rest.startswith(token):
            return False
        self.position = len(self.text) - len(rest) + len(token)
        return True

    def _longest(self, words: Iterable[str], closings: tuple[str, ...]) -> str | None:
        """Return the longest of the words that stands here, in any case, before one of the closings."""
        rest = self._rest()
        for exact in (True, False):
            for word in sorted(words, key=len, reverse=True):
                here, after = rest[: len(word)], rest[len(word) :].lstrip()
                same = here == word if exact else here.lower() == word.lower()
                if same and any(after.startswith(c) if c else not after for c in closings):
                    return word
        return None

    def _type_here(self) -> str | None:
        return self._longest(self.schema.node_types, ("-", "<-", "[", "{", ""))

    def _read_type(self, after: str | None) -> str:
        node_type = self._type_here()
        if node_type is not None:
            self.position = len(self.text) - len(self._rest()) + len(node_type)
            return node_type
        where = self.where if after else f"meta-path {self.shown!r}, at its start"
        word = re.split(r"[-<\[{]", self._rest())[0].strip()
        if not word:
            raise MetaPathError(f"{where}: a node type is missing; {self._onward(after)}")
        raise MetaPathError(
            f"{where}: no node type {excerpt(word, 0)!r} in this graph (it has {listed(self.schema.node_types)}); "
            f"{self._onward(after)}{did_you_mean(word, self.schema.node_types)}"
        )

    def _onward(self, after: str | None) -> str:
        if after is None:
            return f"it can start at {listed(self.schema.node_types)}"
        return f"one step from {after} leads to {listed(self.schema.neighbours(after)) or 'nothing'}"

    def _read_edge(self, source: str) -> _Edge:
        if self._take("<-"):
            names, filters = self._read_names(source, "-")
            edge = _Edge(names, True, filters)
        elif self._take("->"):
            edge = _Edge((), False)
        elif not self._take("-"):
            raise MetaPathError(f"{self.where}: expected '-', '->' or '<-' before {excerpt(self._rest(), 0)!r}")
        elif (named := self._read_names(source, "->"))[0]:
            edge = _Edge(named[0], False, named[1])
        else:
            names, filters = ((), ()) if self._type_here() else self._read_names(source, "-")
            edge = _Edge(names, None, filters)
        if not edge.names and not self._type_here():
            self._refuse_bare_condition(source)
            self._refuse_relation(source, edge)
        return edge

    def _read_names(self, source: str, closing: str) -> "tuple[tuple[str, ...], tuple[Filter | None, ...]]":
        """Read `name[condition]|name` and the closing after it; otherwise read nothing."""
        start = self.position
        known = {link.relation.name for link in self.schema.links_from(source)}
        names: list[str] = []
        filters: list[Filter | None] = []
        while (name := self._longest(known, ("|", "[", closing))) is not None:
            self._take(self._rest()[: len(name)])
            names.append(name)
            filters.append(self._read_filter(is_node=False))
            if self._take("|"):
                continue
            if self._rest().startswith(closing) and (not self._rest().startswith("->") or closing == "->"):
                self._take(closing)
                return tuple(names), tuple(filters)
            break
        self.position = start
        return (), ()

    def _refuse_bare_condition(self, source: str) -> None:
        """Raise if a condition stands where the name of a relation should."""
        if self._rest().startswith(("[", "{")):
            name, at = self.schema.links_from(source)[0].relation.name, len(self.text) - len(self._rest()) + 1
            raise MetaPathError(
                f"{self.where}, at character {at}: a condition on edges stands behind "
                f"the name of their relation, as in '-{name}[weight > 1]-'"
            )

    def _refuse_relation(self, source: str, edge: _Edge) -> None:
        """Raise if the text has the shape of a relation; `_read_type` raises for an unknown type."""
        word, dash, after = self._rest().partition("-")
        if not dash or not (edge.reverse or after.startswith(">")):
            return
        links = self.schema.links_from(source)
        ways = listed(f"'{arrow((link,))} {link.target}'" for link in links) or "none"
        raise MetaPathError(
            f"{self.where}: no relation {excerpt(word.strip(), 0)!r} at {source} "
            f"(there are {ways}){did_you_mean(word.strip(), (link.relation.name for link in links))}"
        )

    def _choose(self, source: str, target: str, edge: _Edge) -> Links:
        joined = self.schema.links(source, target)
        if not joined:
            raise MetaPathError(f"{self.where}: no relation joins {source} and {target}; {self._onward(source)}")
        chosen = tuple(
            link
            for link in joined
            if (not edge.names or link.relation.name in edge.names)
            and (edge.reverse is None or not link.relation.directed or link.reverse == edge.reverse)
        )
        if not set(edge.names) <= {link.relation.name for link in chosen} or not chosen:
            requested = "|".join(edge.names) or "a relation"
            raise MetaPathError(
                f"{self.where}: {requested} does not lead that way from {source} to {target}; possible is "
                f"{_spelled(joined)}"
            )
        if edge.reverse is None and source == target and any(link.relation.directed for link in chosen):
            raise MetaPathError(
                f"{self.where}: {source} to {target} can be walked in two directions; say which: {_spelled(joined)}"
            )
        if not any(edge.filters):
            return chosen
        filters = dict(zip(edge.names, edge.filters, strict=True))
        return tuple(replace(link, edge_filter=filters.get(link.relation.name)) for link in chosen)


def _spelled(links: Links) -> str:
    """Write each of some links as a meta-path of its own, for errors."""
    return " or ".join(f"'{link.source} {arrow((link,))} {link.target}'" for link in links)


# ---- MetaPath ------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Step:
    """One step of a meta-path: the links it may follow, all between the same two types."""

    links: tuple[Link, ...]

    @property
    def source(self) -> str:
        return self.links[0].source

    @property
    def target(self) -> str:
        return self.links[0].target

    @property
    def source_filter(self) -> "Filter | None":
        return self.links[0].source_filter

    @property
    def target_filter(self) -> "Filter | None":
        return self.links[0].target_filter

    @property
    def is_filtered(self) -> bool:
        return any(link.is_filtered for link in self.links)

    def reversed(self) -> "Step":
        return Step(tuple(link.reversed() for link in self.links))


@dataclass(frozen=True, repr=False)
class MetaPath:
    """A path over node types, such as author-paper-venue-paper-author.

    A step between two types follows every relation that joins them. If the types don't decide, name the relation and
    the direction: `paper -cites-> paper <-cites- paper`. `MetaPath.parse` and `HIN.metapath` read such a text.

    Parameters
    ----------
    schema
        The schema of the graph.
    steps
        The steps, each from the type at which the one before it ends.

    >>> relations = (Relation("author", "writes", "paper"), Relation("paper", "cites", "paper"))
    >>> schema = Schema(("author", "paper"), relations)
    >>> print(MetaPath.parse(schema, "APA"))
    author-paper-author
    >>> path = MetaPath.parse(schema, "paper-cites->paper")
    >>> print(path, "|", path.reversed(), "|", path.is_symmetric)
    paper -cites-> paper | paper <-cites- paper | False

    Conditions in brackets say which nodes and edges count, and braces name nodes; `graph.conditions` has the grammar.

    >>> path = MetaPath.parse(schema, "A P[year>=2020] A".replace(" ", ""))
    >>> print(path, "|", path.half())
    author-paper[year >= 2020]-author | author-paper[year >= 2020]
    """

    schema: Schema
    steps: tuple[Step, ...]

    def __post_init__(self) -> None:
        if not self.steps:
            raise MetaPathError("a meta-path needs at least one step, such as author-paper")
        for before, after in pairwise(self.steps):
            if before.target != after.source:
                raise MetaPathError(f"a step to {before.target!r} cannot be followed by one from {after.source!r}")
            if before.target_filter != after.source_filter:
                raise MetaPathError(
                    f"a step to '{before.target}{before.target_filter or ''}' cannot be followed by one from "
                    f"'{after.source}{after.source_filter or ''}'; both ends of a position have the same condition"
                )

    @classmethod
    def parse(cls, schema: Schema, text: str) -> "MetaPath":
        """Read a meta-path: type names joined by dashes, initials, or steps with named relations."""
        return cls(schema, tuple(Step(links) for links in parse_steps(schema, text)))

    @property
    def source(self) -> str:
        return self.steps[0].source

    @property
    def target(self) -> str:
        return self.steps[-1].target

    @property
    def node_types(self) -> tuple[str, ...]:
        """The type at each position, one more than there are steps."""
        return (self.source, *(step.target for step in self.steps))

    def __len__(self) -> int:
        return len(self.steps)

    def __repr__(self) -> str:
        return f"MetaPath({str(self)!r})"

    def __str__(self) -> str:
        """Print canonically: what is printed reads back as the same meta-path."""
        return self._text

    @cached_property
    def _text(self) -> str:
        parts = [f"{self.source}{self.steps[0].source_filter or ''}"]
        for step in self.steps:
            parts.append("-" if self._types_decide(step) else f" {arrow(step.links)} ")
            parts.append(f"{step.target}{step.target_filter or ''}")
        return "".join(parts)

    def _types_decide(self, step: Step) -> bool:
        links = {link.plain for link in step.links}
        unfiltered = not any(link.edge_filter for link in step.links)
        follows_all = unfiltered and links == set(self.schema.links(step.source, step.target))
        has_direction = step.source == step.target and any(link.relation.directed for link in step.links)
        clear = not any("-" in node_type for node_type in self.schema.node_types)
        return follows_all and not has_direction and clear

    @property
    def links(self) -> Links:
        """The links of all steps, one after the other."""
        return tuple(link for step in self.steps for link in step.links)

    @property
    def filters(self) -> "tuple[Filter | None, ...]":
        """What is said of the nodes at each position, one more than there are steps."""
        return (self.steps[0].source_filter, *(step.target_filter for step in self.steps))

    @property
    def is_filtered(self) -> bool:
        """Whether the path has conditions or weights of its own."""
        return any(step.is_filtered for step in self.steps)

    def with_links(self, change: Callable[[Link], Link]) -> "MetaPath":
        """Return the path with each of its links changed."""
        return MetaPath(self.schema, tuple(Step(tuple(map(change, step.links))) for step in self.steps))

    def with_filters(self, filters: "Iterable[Filter | None]") -> "MetaPath":
        """Return the path with other filters at its positions; those of its edges stay."""
        steps = (
            Step(tuple(replace(link, source_filter=source, target_filter=target) for link in step.links))
            for step, (source, target) in zip(self.steps, pairwise(filters), strict=True)
        )
        return MetaPath(self.schema, tuple(steps))

    def where(self, node_type: str, condition: "Condition | str") -> "MetaPath":
        """Return the path with one more condition on all of its nodes of a type.

        >>> schema = Schema(("author", "paper"), (Relation("author", "writes", "paper"),))
        >>> print(MetaPath.parse(schema, "APA").where("paper", "year >= 2020"))
        author-paper[year >= 2020]-author
        """
        from neupath.graph.conditions import Filter, narrowed, parse_condition

        known = self.schema.node_type(node_type)
        if known not in self.node_types:
            raise MetaPathError(f"'{self}' has no {known}; it passes {listed(dict.fromkeys(self.node_types))}")
        extra = Filter(parse_condition(condition) if isinstance(condition, str) else condition)
        here = zip(self.node_types, self.filters, strict=True)
        return self.with_filters(narrowed(own, extra) if at == known else own for at, own in here)

    def where_edges(self, relation: str, extra: "Filter") -> "MetaPath":
        """Return the path with one more condition or weight on the edges of a relation, by its name."""
        from neupath.graph.conditions import narrowed

        names = dict.fromkeys(link.relation.name for link in self.links)
        if relation not in names:
            raise MetaPathError(
                f"'{self}' does not follow a relation {relation!r}; it follows {listed(names)}"
                f"{did_you_mean(relation, names)}"
            )

        def narrow(link: Link) -> Link:
            is_meant = link.relation.name == relation
            return replace(link, edge_filter=narrowed(link.edge_filter, extra)) if is_meant else link

        return self.with_links(narrow)

    def reversed(self) -> "MetaPath":
        return MetaPath(self.schema, tuple(step.reversed() for step in reversed(self.steps)))

    def plain(self) -> "MetaPath":
        """Return the path without its conditions and weights."""
        return self.with_links(lambda link: link.plain)

    @property
    def is_symmetric(self) -> bool:
        """Whether the path reads the same from its other end."""
        return self == self.reversed()

    @property
    def is_round_trip(self) -> bool:
        """Whether the path is a half-path walked out and back, P = H·H⁻¹, as PathSim needs it."""
        return len(self) % 2 == 0 and self.is_symmetric

    def half(self) -> "MetaPath":
        """Return H of a symmetric meta-path P = H·H⁻¹."""
        self.require_round_trip("its half")
        return MetaPath(self.schema, self.steps[: len(self) // 2])

    def require_round_trip(self, what: str) -> None:
        """Raise if the path is not H·H⁻¹, and name one that is."""
        if self.is_round_trip:
            return
        there_and_back = MetaPath(self.schema, self.steps + self.reversed().steps)
        reason = "has an odd number of steps" if self.is_symmetric else "is not symmetric"
        if self.is_filtered and self.plain().is_round_trip:
            first = self.steps[: len(self) // 2]
            there_and_back = MetaPath(self.schema, first + tuple(step.reversed() for step in reversed(first)))
            reason = "has conditions that differ between its halves"
        raise MetaPathError(
            f"{what} needs a symmetric meta-path of even length, and '{self}' {reason}; "
            f"use '{there_and_back}', or a measure for any path: hetesim, pcrw, pathcount, dwpc"
        )

    def require_plain_edges(self, what: str, parallel: Collection[Relation] = ()) -> None:
        """Raise if edges have conditions or weights by attributes: changed edges have none but their weight.

        `parallel` are the relations with parallel edges, which are judged one by one, and as their sum once changed.
        """
        for link in self.links:
            if link.edge_filter is not None and link.relation in parallel:
                raise MetaPathError(
                    f"{what} changes edges, which are added up then, and '{self}' has conditions or weights of the "
                    f"single edges of {link.relation.name}, some of which are parallel; use conditions on nodes"
                )
            others = set() if link.edge_filter is None else link.edge_filter.attributes() - {"weight"}
            if others:
                raise MetaPathError(
                    f"{what} changes edges, which then have a weight alone, and '{self}' needs the attribute "
                    f"{min(others)!r} of the edges of {link.relation.name}; use conditions on nodes, or on 'weight'"
                )

    def all_relations_steps(self) -> list[str]:
        """Describe the steps that follow several relations at once, because the types alone don't choose one."""
        several = {
            frozenset((step.source, step.target)): step
            for step in reversed(self.steps)
            if len(step.links) > 1 and self._types_decide(step)
        }
        return [
            f"{step.source}-{step.target} follows any of "
            + ", ".join(sorted(link.relation.name for link in step.links))
            + f" (one alone: '{step.source} {arrow(step.links[:1])} {step.target}')"
            for step in reversed(several.values())
        ]


def count_ends(
    node_type: str, length: int, onward: Callable[[str], Iterable[Link | Step]]
) -> list[dict[str, int]]:  # fmt: skip
    """Count in how many ways each type is reached after 0, 1, … steps from a type; `onward` lists those from a type.

    >>> schema = Schema(("author", "paper"), (Relation("author", "writes", "paper"),))
    >>> count_ends("author", 2, schema.links_from)
    [{'author': 1}, {'paper': 1}, {'author': 1}]
    """
    ends = [{node_type: 1}]
    for _ in range(length):
        longer: dict[str, int] = {}
        for here, number in ends[-1].items():
            for step in onward(here):
                longer[step.target] = longer.get(step.target, 0) + number
        ends.append(longer)
    return ends


def enumerate_metapaths(schema: Schema, source: str, max_length: int, *, symmetric: bool = True) -> Iterator[MetaPath]:
    """List the meta-paths from a node type, shortest first, with one relation per step.

    Parameters
    ----------
    schema
        The schema of the graph.
    source
        The node type to start from.
    max_length
        The most steps.
    symmetric
        Only list half-paths that are walked out and back.

    >>> schema = Schema(("author", "paper"), (Relation("author", "writes", "paper"),))
    >>> [str(path) for path in enumerate_metapaths(schema, "author", 4)]
    ['author-paper-author', 'author-paper-author-paper-author']
    """
    if max_length < (2 if symmetric else 1):
        kind = "a symmetric meta-path has at least 2 steps" if symmetric else "a meta-path has at least 1 step"
        raise MetaPathError(f"‹max_length› is {max_length}, but {kind}", parameter="max_length")
    frontier: list[tuple[Step, ...]] = [()]
    for _ in range(max_length // 2 if symmetric else max_length):
        frontier = [
            (*steps, Step((link,)))
            for steps in frontier
            for link in schema.links_from(steps[-1].target if steps else schema.node_type(source))
        ]
        for steps in frontier:
            back = tuple(step.reversed() for step in reversed(steps)) if symmetric else ()
            yield MetaPath(schema, steps + back)
