"""Exact measures, one per file: the formula stands in the docstring, and is declared by class attributes.

`PathMeasure` is the base of measures over a meta-path (`PathSim`, `JoinSim`, `HeteSim`, `PathCount`, `PCRW`, `DWPC`,
`DWPCNoRepeats`, `Jaccard`, `Overlap`, `Tversky`), `GraphMeasure` that of measures over the whole graph (`PPR`, `RWR`,
`SimRank`, `SCAN`, `CommuteTime`), and `Combination` is a weighted sum, as are `RelSim` and `AvgSim`. A new measure is a
class that declares its formula, and an entry in `registry`. A measure says how it factorises (`half_legs`,
`meets_at_nodes`); the live graph, the cluster and inference derive the rest.

May import engine, graph, _runtime and errors.
"""

from neupath.measures.avgsim import AvgSim
from neupath.measures.combination import Combination, Part, equal_parts
from neupath.measures.commutetime import CommuteTime
from neupath.measures.dwpc import DWPC, DWPCNoRepeats
from neupath.measures.graph_measure import GraphMeasure
from neupath.measures.hetesim import HeteSim
from neupath.measures.jaccard import Jaccard
from neupath.measures.joinsim import JoinSim
from neupath.measures.overlap import Overlap
from neupath.measures.path_measure import PathMeasure
from neupath.measures.pathcount import PathCount
from neupath.measures.pathsim import PathSim
from neupath.measures.pcrw import PCRW
from neupath.measures.ppr import PPR
from neupath.measures.registry import (
    GRAPH_MEASURES,
    MEASURES,
    WALK_MEASURES,
    graph_measure_named,
    measure_named,
    read_measure,
)
from neupath.measures.relsim import RelSim
from neupath.measures.rwr import RWR
from neupath.measures.scan import SCAN
from neupath.measures.simrank import SimRank
from neupath.measures.tversky import Tversky

__all__ = [
    "DWPC",
    "GRAPH_MEASURES",
    "MEASURES",
    "PCRW",
    "PPR",
    "RWR",
    "SCAN",
    "WALK_MEASURES",
    "AvgSim",
    "Combination",
    "CommuteTime",
    "DWPCNoRepeats",
    "GraphMeasure",
    "HeteSim",
    "Jaccard",
    "JoinSim",
    "Overlap",
    "Part",
    "PathCount",
    "PathMeasure",
    "PathSim",
    "RelSim",
    "SimRank",
    "Tversky",
    "equal_parts",
    "graph_measure_named",
    "measure_named",
    "read_measure",
]
