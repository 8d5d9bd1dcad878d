"""Cluster: the same joins on many processes or machines, to the last digit, where a graph outgrows one of them."""

from neupath.cluster.absence import PATIENCE
from neupath.cluster.engine import Dask
from neupath.cluster.joining import join_folder, join_plan, plan_folder

__all__ = ["PATIENCE", "Dask", "join_folder", "join_plan", "plan_folder"]
