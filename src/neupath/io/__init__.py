"""From files, other libraries and built-in graphs to a HIN."""

from neupath.io.datasets import PUBLIC, fetch, public_dataset
from neupath.io.export import write_folder
from neupath.io.interop import from_networkx, from_pyg, from_tables, from_triples, to_networkx, to_pyg
from neupath.io.load import BUILT_IN, load
from neupath.io.out_of_core import import_store

__all__ = [
    "BUILT_IN",
    "PUBLIC",
    "fetch",
    "from_networkx",
    "from_pyg",
    "from_tables",
    "from_triples",
    "import_store",
    "load",
    "public_dataset",
    "to_networkx",
    "to_pyg",
    "write_folder",
]
