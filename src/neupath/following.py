"""Following: what a learned scorer offers to a live graph, which knows neither the models nor torch."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

from neupath.graph import HIN
from neupath.schema import Relation
from neupath.scorer import Scorer

EdgeWeight = tuple[Relation, int, int, float]
"""The weight that an edge of a relation has from now on, by rows; 0 takes it away."""
Binding = Callable[[HIN], Scorer]
"""Returns a scorer over the version of a graph for which it was made."""


class Follower(ABC):
    """What a scorer keeps of a graph that changes, brought up to date where a change reaches."""

    @abstractmethod
    def apply(self, hin: HIN, edges: Sequence[EdgeWeight]) -> None:
        """Follow a change to a graph with these edges changed and perhaps new nodes at the end of their types."""

    @abstractmethod
    def as_it_is(self) -> Binding:
        """Return what makes the scorer of this version, whatever follows."""


@dataclass(frozen=True)
class PathSims:
    """A scorer that asks nothing of a graph but the PathSim of some meta-paths."""

    metapaths: tuple[str, ...]
    over: Callable[[HIN, Sequence[Scorer]], Scorer]
    """Returns the scorer over a graph, given the measure of each meta-path over it."""


class Learned(Scorer):
    """A scorer that has learned something, and can be bound to another graph."""

    @abstractmethod
    def bind(self, hin: HIN) -> Self:
        """Return the same scorer over another graph with the same schema: new nodes, new edges, or all new."""

    @cached_property
    def identity(self) -> object:
        """What copies share that have learned the same; to learn anew ends it."""
        return object()

    def follower(self, hin: HIN) -> Follower | None:  # noqa: ARG002
        """Return what follows a graph's changes for this scorer; nothing where it has to be bound anew."""
        return None

    def as_pathsims(self) -> PathSims | None:
        """Return the PathSims of which this scorer is made; nothing where it is not."""
        return None
