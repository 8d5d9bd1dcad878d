"""Anything <-> HIN: read graphs from files, folders, names and other libraries, and write them again.

`load` loads a graph; `registry` finds its source, lists the formats of files and folders, and what reads each;
`detect` recognises the layout of a folder of tables and what each table holds.
`text_files` handles delimiters, quotes and headers; `tables` reads a text or Parquet file; `config` reads graph.toml.
`plan` says what the tables of a graph hold; `assemble` builds the graph in memory, `out_of_core` on disk.
`formats` has one file for each other format, which gives named tables and their plan.
`interop` converts objects of other libraries, `datasets` knows graphs by name, `export` writes a folder of tables.
To add a reader, write a module in `formats` and add a line to `registry.FORMATS`.
May import: store, graph, _runtime, errors.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from neupath.graph.exports import to_dgl_dict, to_networkx, to_pyg
from neupath.io.datasets import PUBLIC, fetch, public_dataset
from neupath.io.load import BUILT_IN, load

if TYPE_CHECKING:
    from neupath.io.export import write_folder
    from neupath.io.interop import from_networkx, from_pyg, from_tables, from_triples
    from neupath.io.out_of_core import import_store

_MODULE_OF = {
    "from_networkx": "interop", "from_pyg": "interop", "from_tables": "interop", "from_triples": "interop",
    "import_store": "out_of_core", "write_folder": "export",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import what `load` does not need when it is first used, so that a search starts without it."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'neupath.io' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"neupath.io.{_MODULE_OF[name]}"), name)
    return value


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
    "to_dgl_dict",
    "to_networkx",
    "to_pyg",
    "write_folder",
]
