"""From files, other libraries and built-in graphs to a HIN."""

from neupath.datasets.interop import from_networkx, from_pyg, from_tables, from_triples, to_networkx, to_pyg
from neupath.datasets.public import PUBLIC, fetch, public_dataset
from neupath.datasets.registry import BUILT_IN, load
from neupath.datasets.streaming import import_store
from neupath.datasets.writing import write_folder
from neupath.headway import Progress, silent

__all__ = [
    "BUILT_IN",
    "PUBLIC",
    "Progress",
    "fetch",
    "from_networkx",
    "from_pyg",
    "from_tables",
    "from_triples",
    "import_store",
    "load",
    "public_dataset",
    "silent",
    "to_networkx",
    "to_pyg",
    "write_folder",
]
