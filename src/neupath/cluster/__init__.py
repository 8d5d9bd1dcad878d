"""The same joins on Dask, to the last digit, where a graph outgrows one machine.

`Dask` is an engine for `neupath.join` over a graph that this process holds. `join_folder` lets the workers read a
folder of Parquet tables, so that no process holds the graph; `plan_folder` and `join_plan` are its two steps.

May import measures, io, engine, graph, _runtime and errors.
"""

from neupath.cluster.dask_engine import Dask, join_folder, join_plan, plan_folder
from neupath.cluster.workers import PATIENCE

__all__ = ["PATIENCE", "Dask", "join_folder", "join_plan", "plan_folder"]
