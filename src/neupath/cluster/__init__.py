"""The same joins on Dask, to the last digit, as in one process.

`Dask` is an engine for `neupath.join`. A graph that outgrows memory is imported into a store once
(`neupath.io.import_store`), whose snapshot is mapped into memory, and joined like any other graph.

May import measures, engine, graph, _runtime and errors.
"""

from typing import NoReturn

from neupath.cluster.dask_engine import Dask
from neupath.cluster.workers import PATIENCE
from neupath.errors import QueryError


def join_folder(*_: object, **__: object) -> NoReturn:
    """Raise an error that says what to do instead; for one version, like the two other names of this function."""
    raise QueryError(
        "workers no longer read tables; import the folder into a store once, and join that: "
        "join(load(import_store(folder, store)), measure, out, engine=Dask())"
    )


plan_folder = join_plan = join_folder

__all__ = ["PATIENCE", "Dask"]
