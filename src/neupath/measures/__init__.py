"""Exact measures, one per file: the formula stands in the docstring, and is declared by class attributes.

`PathMeasure` is the base of measures over a meta-path (`PathSim`, `JoinSim`, `HeteSim`, `PathCount`, `PCRW`, `DWPC`,
`DWPCNoRepeats`, `Jaccard`, `Overlap`, `Tversky`), `GraphMeasure` that of measures over the whole graph (`PPR`, `RWR`,
`SimRank`, `SCAN`, `CommuteTime`), and `Combination` is a weighted sum, as are `RelSim` and `AvgSim`. A new measure is a
class that declares its formula, and an entry in `registry`. `completion` reads a meta-path typed so far. A measure says
how it factorises (`half_legs`, `meets_at_nodes`); the live graph, the cluster and inference derive the rest.

May import engine, graph, _runtime and errors.
"""

from neupath.engine.formula import Normalisation
from neupath.measures.avgsim import AvgSim
from neupath.measures.combination import Combination, Part, equal_parts
from neupath.measures.commutetime import CommuteTime
from neupath.measures.dwpc import DWPC, DWPCNoRepeats
from neupath.measures.graph_measure import GraphMeasure
from neupath.measures.hetesim import HeteSim
from neupath.measures.jaccard import Jaccard
from neupath.measures.joinsim import JoinSim
from neupath.measures.overlap import Overlap
from neupath.measures.path_measure import Leg, PathMeasure, reversed_legs
from neupath.measures.pathcount import PathCount
from neupath.measures.pathsim import PathSim
from neupath.measures.pcrw import PCRW
from neupath.measures.ppr import PPR
from neupath.measures.registry import (
    COMBINED,
    GRAPH_MEASURES,
    MEASURES,
    find_measure,
    graph_measure_named,
    is_graph_measure,
    measure_named,
    read_measure,
    walk_measures,
)
from neupath.measures.relsim import RelSim
from neupath.measures.rwr import RWR
from neupath.measures.scan import SCAN
from neupath.measures.simrank import SimRank
from neupath.measures.tversky import Tversky

__all__ = [
    "COMBINED",
    "DWPC",
    "GRAPH_MEASURES",
    "MEASURES",
    "PCRW",
    "PPR",
    "RWR",
    "SCAN",
    "AvgSim",
    "Combination",
    "CommuteTime",
    "DWPCNoRepeats",
    "GraphMeasure",
    "HeteSim",
    "Jaccard",
    "JoinSim",
    "Leg",
    "Normalisation",
    "Overlap",
    "Part",
    "PathCount",
    "PathMeasure",
    "PathSim",
    "RelSim",
    "SimRank",
    "Tversky",
    "equal_parts",
    "find_measure",
    "graph_measure_named",
    "is_graph_measure",
    "measure_named",
    "read_measure",
    "reversed_legs",
    "walk_measures",
]
