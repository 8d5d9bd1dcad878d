"""MetaPath: a sequence of steps over a Schema, which says what kind of paths make two nodes similar."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from neupath.errors import MetaPathError
from neupath.parsing import arrow, parse_steps
from neupath.schema import Link, Schema


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

    A step between two types follows every relation that joins them; where the types don't decide, name the relation and
    the direction: `paper -cites-> paper <-cites- paper`.

    >>> from neupath.schema import Relation
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
        """Refuse a path that is not H·H⁻¹, and say which one is."""
        if self.is_round_trip:
            return
        there_and_back = MetaPath(self.schema, self.steps + self.reversed().steps)
        reason = "has an odd number of steps" if self.is_symmetric else "is not symmetric"
        raise MetaPathError(
            f"{what} needs a symmetric meta-path of even length, and '{self}' {reason}; "
            f"'{there_and_back}' would do, or a measure for any path: hetesim, pcrw, pathcount, dwpc"
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
    """List the meta-paths from a node type, shortest first, one relation a step.

    Symmetric ones are every half-path of up to `max_length / 2` steps walked out and back.

    >>> from neupath.schema import Relation
    >>> schema = Schema(("author", "paper"), (Relation("author", "writes", "paper"),))
    >>> [str(path) for path in enumerate_metapaths(schema, "author", 4)]
    ['author-paper-author', 'author-paper-author-paper-author']
    """
    if max_length < (2 if symmetric else 1):
        kind = "a symmetric meta-path has at least 2 steps" if symmetric else "a meta-path has at least 1 step"
        raise MetaPathError(f"max_length is {max_length}, but {kind}")
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
