"""Engines that run the blocks of a join, or of a preparation, on other machines: Dask, Spark and Ray.

Each is one file: how to connect, and how to run independent tasks. What they run is in `joining.py`: a task opens the
prepared index and writes one block of queries, the same to the byte on every engine.

May import measures, engine, graph, _runtime and errors.
"""

from importlib import import_module

from neupath.cluster.joining import Cluster
from neupath.errors import QueryError, listed

_CLASSES = {"dask": "Dask", "ray": "Ray", "spark": "Spark"}
ENGINES = tuple(_CLASSES)


def connect(engine: str, address: str | None = None, workers: int | None = None) -> Cluster:
    """Return an engine by its name; it connects when it has work to do.

    Parameters
    ----------
    engine
        "dask", "ray" or "spark".
    address
        Where its scheduler is, such as tcp://10.0.0.1:8786 for Dask, ray://10.0.0.1:10001 for Ray and
        spark://10.0.0.1:7077 for Spark; without one, workers are started on this machine.
    workers
        How many to start on this machine; one per core by default.

    >>> connect("ray", workers=2)
    Ray(address=None, workers=2)
    """
    if engine not in ENGINES:
        raise QueryError(f"‹engine› is {engine!r}; it can be local, {listed(ENGINES)}", parameter="engine")
    made: Cluster = getattr(import_module(f"neupath.cluster.{engine}"), _CLASSES[engine])(address, workers)
    return made


__all__ = ["ENGINES", "Cluster", "connect"]
