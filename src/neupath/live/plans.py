"""Plans: which half-path matrices a measure multiplies, so that they can follow the edges."""

from dataclasses import dataclass

from neupath.halfpath import Chain
from neupath.live.halves import LiveHalf
from neupath.live.steps import Adjacency, LiveStep, Scaling
from neupath.measures import DWPC, PCRW, HeteSim, JoinSim, PathCount, PathSim
from neupath.measures.path_measure import PathMeasure
from neupath.metapath import MetaPath, Step

Planned = tuple[tuple[Step, Scaling], ...]


@dataclass(frozen=True)
class Plan:
    """The steps from the queries to the middle, and from the targets to it; none where both are the same."""

    left: Planned
    right: Planned | None

    def build(self, measure: PathMeasure, adjacency: Adjacency) -> tuple[LiveHalf, LiveHalf] | None:
        """Return both halves over the factors of a fitted measure; nothing where these don't fit into memory."""
        factors = measure.factors_
        if isinstance(factors, Chain):
            return None
        steps = [LiveStep(adjacency, step, scaling) for step, scaling in self.left]
        if self.right is None:
            half = LiveHalf(steps, factors.left, factors.right, factors.left_norms, adjacency.version)
            return half, half
        others = [LiveStep(adjacency, step, scaling) for step, scaling in self.right]
        left = LiveHalf(steps, factors.left, factors.left.T.tocsr(), factors.left_norms, adjacency.version)
        return left, LiveHalf(others, factors.right.T.tocsr(), factors.right, factors.right_norms, adjacency.version)


def plan_of(measure: PathMeasure, metapath: MetaPath) -> Plan | None:
    """Return the plan of a measure, or nothing for one that has to be fitted anew when the graph changes."""
    steps = metapath.steps
    middle = len(steps) // 2
    if isinstance(measure, PathSim | JoinSim) or (isinstance(measure, PathCount | DWPC) and metapath.is_round_trip):
        return Plan(_planned(steps[:middle], _scaling(measure)), None)
    if isinstance(measure, HeteSim) and len(steps) % 2 == 0:
        left = _planned(steps[:middle], Scaling(rows=-1.0))
        return Plan(left, None if metapath.is_round_trip else _mirrored(steps[middle:], Scaling(columns=-1.0)))
    if isinstance(measure, PathCount | PCRW | DWPC) and middle:
        return Plan(_planned(steps[:middle], _scaling(measure)), _mirrored(steps[middle:], _scaling(measure)))
    return None


def _scaling(measure: PathMeasure) -> Scaling:
    if isinstance(measure, DWPC):
        return Scaling(-measure.damping, -measure.damping)
    return Scaling(rows=-1.0) if isinstance(measure, PCRW) else Scaling()


def _planned(steps: tuple[Step, ...], scaling: Scaling) -> Planned:
    return tuple((step, scaling) for step in steps)


def _mirrored(steps: tuple[Step, ...], scaling: Scaling) -> Planned:
    """Return steps as they are walked from the targets."""
    return tuple((step.reversed(), scaling.reversed()) for step in reversed(steps))
