"""Cluster: the same joins on many processes or machines, to the last digit, where a graph outgrows one of them."""

from neupath.cluster.dask_engine import Dask, join_folder, join_plan, plan_folder
from neupath.cluster.workers import PATIENCE

__all__ = ["PATIENCE", "Dask", "join_folder", "join_plan", "plan_folder"]
