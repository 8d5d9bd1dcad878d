"""Schema: the node types and relations of a graph. MetaPath: a sequence of steps over it, and its notation."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice, pairwise
from types import MappingProxyType

from neupath.errors import MetaPathError, SchemaError, did_you_mean, listed


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
            f"no node type {word!r} in this graph (it has {listed(self.node_types)})"
            f"{did_you_mean(word, self.node_types)}"
        )

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
    if "-" in stripped or stripped.casefold() in (t.casefold() for t in schema.node_types):
        return _PathReader(schema, stripped).read()
    return _PathReader(schema, "-".join(_read_initials(schema, stripped))).read()


def arrow(links: Links) -> str:
    """Write the relations of a step in the notation: `-cites->`, `<-cites-`, or `-likes-` with no direction."""
    names = "|".join(link.relation.name for link in links)
    directions = {link.reverse for link in links if link.relation.directed}
    if directions == {False}:
        return f"-{names}->"
    return f"<-{names}-" if directions == {True} else f"-{names}-"


def _read_initials(schema: Schema, text: str) -> tuple[str, ...]:
    """Find the one sequence of types, joined by relations, that the letters can stand for."""
    if len(text.split()) > 1 or len(text) > 64:
        raise MetaPathError(
            f"meta-path {text!r} has no dashes; write node types joined by dashes, such as author-paper"
        )
    choices = [schema.types_of_letter(letter) for letter in text]
    for position, (letter, types) in enumerate(zip(text, choices, strict=True), 1):
        if not types:
            raise MetaPathError(
                f"meta-path {text!r}: letter {position}, {letter!r}, is not the initial of a node type "
                f"(there are {listed(schema.node_types)}); write the types out, joined by dashes"
                f"{did_you_mean(text, schema.node_types)}"
            )
    readings = list(islice(_joined_readings(schema, choices), 4))
    if not readings:
        raise MetaPathError(
            f"meta-path {text!r}: no types with these initials are joined in this order; {_possible_steps(schema)}"
        )
    if len(readings) > 1:
        raise MetaPathError(
            f"meta-path {text!r} could be {' or '.join('-'.join(r) for r in readings)}; write the one you mean"
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


class _PathReader:
    """A cursor over the text; each method reads one part and moves on."""

    def __init__(self, schema: Schema, text: str) -> None:
        self.schema = schema
        self.text = text
        self.position = 0
        self.step = 0

    def read(self) -> list[Links]:
        current = self._read_type(after=None)
        steps: list[Links] = []
        while self._rest():
            self.step += 1
            edge = self._read_edge(current)
            target = self._read_type(after=current)
            steps.append(self._choose(current, target, edge))
            current = target
        if not steps:
            raise MetaPathError(
                f"meta-path {self.text!r} is one type; a meta-path needs at least one step, and {self._onward(current)}"
            )
        return steps

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
        return self._longest(self.schema.node_types, ("-", "<-", ""))

    def _read_type(self, after: str | None) -> str:
        node_type = self._type_here()
        if node_type is not None:
            self.position = len(self.text) - len(self._rest()) + len(node_type)
            return node_type
        where = f"meta-path {self.text!r}, step {self.step}" if after else f"meta-path {self.text!r}, at its start"
        word = self._rest().replace("<", "-").split("-")[0].strip()
        if not word:
            raise MetaPathError(f"{where}: a node type is missing; {self._onward(after)}")
        raise MetaPathError(
            f"{where}: no node type {word!r} in this graph (it has {listed(self.schema.node_types)}); "
            f"{self._onward(after)}{did_you_mean(word, self.schema.node_types)}"
        )

    def _onward(self, after: str | None) -> str:
        if after is None:
            return f"it can start at {listed(self.schema.node_types)}"
        return f"one step from {after} leads to {listed(self.schema.neighbours(after)) or 'nothing'}"

    def _read_edge(self, source: str) -> _Edge:
        if self._take("<-"):
            edge = _Edge(self._read_names(source, "-"), True)
        elif self._take("->"):
            edge = _Edge((), False)
        elif not self._take("-"):
            raise MetaPathError(
                f"meta-path {self.text!r}, step {self.step}: expected '-', '->' or '<-' before {self._rest()!r}"
            )
        elif names := self._read_names(source, "->"):
            edge = _Edge(names, False)
        else:
            edge = _Edge(() if self._type_here() else self._read_names(source, "-"))
        if not edge.names and not self._type_here():
            self._refuse_relation(source, edge)
        return edge

    def _read_names(self, source: str, closing: str) -> tuple[str, ...]:
        """Read `name|name` and the closing after it; otherwise read nothing."""
        start = self.position
        known = {link.relation.name for link in self.schema.links_from(source)}
        names: list[str] = []
        while (name := self._longest(known, ("|", closing))) is not None:
            self._take(self._rest()[: len(name)])
            names.append(name)
            if self._take("|"):
                continue
            if not self._rest().startswith("->") or closing == "->":
                self._take(closing)
                return tuple(names)
            break
        self.position = start
        return ()

    def _refuse_relation(self, source: str, edge: _Edge) -> None:
        """Raise if the text has the shape of a relation; `_read_type` raises for an unknown type."""
        word, dash, after = self._rest().partition("-")
        if not dash or not (edge.reverse or after.startswith(">")):
            return
        links = self.schema.links_from(source)
        ways = listed(f"'{arrow((link,))} {link.target}'" for link in links) or "none"
        raise MetaPathError(
            f"meta-path {self.text!r}, step {self.step}: no relation {word.strip()!r} at {source} (there are {ways})"
            f"{did_you_mean(word.strip(), (link.relation.name for link in links))}"
        )

    def _choose(self, source: str, target: str, edge: _Edge) -> Links:
        where = f"meta-path {self.text!r}, step {self.step}"
        joined = self.schema.links(source, target)
        if not joined:
            raise MetaPathError(f"{where}: no relation joins {source} and {target}; {self._onward(source)}")
        ways = " or ".join(f"'{source} {arrow((link,))} {target}'" for link in joined)
        chosen = tuple(
            link
            for link in joined
            if (not edge.names or link.relation.name in edge.names)
            and (edge.reverse is None or not link.relation.directed or link.reverse == edge.reverse)
        )
        if not set(edge.names) <= {link.relation.name for link in chosen} or not chosen:
            requested = "|".join(edge.names) or "a relation"
            raise MetaPathError(
                f"{where}: {requested} does not lead that way from {source} to {target}; possible is {ways}"
            )
        if edge.reverse is None and source == target and any(link.relation.directed for link in chosen):
            raise MetaPathError(f"{where}: {source} to {target} can be walked in two directions; say which: {ways}")
        return chosen


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

    def reversed(self) -> "Step":
        return Step(tuple(link.reversed() for link in self.links))


@dataclass(frozen=True)
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
    """

    schema: Schema
    steps: tuple[Step, ...]

    def __post_init__(self) -> None:
        if not self.steps:
            raise MetaPathError("a meta-path needs at least one step, such as author-paper")
        for before, after in pairwise(self.steps):
            if before.target != after.source:
                raise MetaPathError(f"a step to {before.target!r} cannot be followed by one from {after.source!r}")

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

    def __str__(self) -> str:
        """Print canonically: what is printed reads back as the same meta-path."""
        return self._text

    @cached_property
    def _text(self) -> str:
        parts = [self.source]
        for step in self.steps:
            parts.append("-" if self._types_decide(step) else f" {arrow(step.links)} ")
            parts.append(step.target)
        return "".join(parts)

    def _types_decide(self, step: Step) -> bool:
        follows_all = set(step.links) == set(self.schema.links(step.source, step.target))
        has_direction = step.source == step.target and any(link.relation.directed for link in step.links)
        clear = not any("-" in node_type for node_type in self.schema.node_types)
        return follows_all and not has_direction and clear

    def reversed(self) -> "MetaPath":
        return MetaPath(self.schema, tuple(step.reversed() for step in reversed(self.steps)))

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
        raise MetaPathError(
            f"{what} needs a symmetric meta-path of even length, and '{self}' {reason}; "
            f"use '{there_and_back}', or a measure for any path: hetesim, pcrw, pathcount, dwpc"
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
