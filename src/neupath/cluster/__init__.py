"""Cluster: the same joins on many processes or machines, to the last digit, where a graph outgrows one of them."""

from neupath.cluster.engine import Dask

__all__ = ["Dask"]
