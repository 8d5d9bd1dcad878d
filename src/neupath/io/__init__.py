"""Anything <-> HIN: read graphs from files, folders, names and other libraries, and write them again.

`load` is the way in; `folder` recognises what a folder holds, `detection` does so by the names of its files and
columns, `text_files` handles quotes and headers, `assembly` turns ids into rows, and `out_of_core` streams tables that
do not fit into memory into a store. `interop` converts objects of other libraries, `formats` reads files of other
projects, `datasets` knows graphs by name, and `export` writes a folder that `load` reads back.

May import: store, graph, _runtime, errors.
"""

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
