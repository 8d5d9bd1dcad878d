"""The durable graph: a folder with a DuckDB database that takes updates, and a snapshot of it that opens at once."""

from neupath.store.batch import Batch, EdgeLine, NodeLine, read_batch
from neupath.store.checking import Checked, check
from neupath.store.database import Layout, VersionFacts
from neupath.store.filling import Filling, fetch, fetch_entries, write_filled
from neupath.store.grouping import Grouped
from neupath.store.layout import is_store
from neupath.store.snapshots import Entries
from neupath.store.store import Store, open_store
from neupath.store.updates import Change
from neupath.store.writing import node_table, write_store

__all__ = [
    "Batch",
    "Change",
    "Checked",
    "EdgeLine",
    "Entries",
    "Filling",
    "Grouped",
    "Layout",
    "NodeLine",
    "Store",
    "VersionFacts",
    "check",
    "fetch",
    "fetch_entries",
    "is_store",
    "node_table",
    "open_store",
    "read_batch",
    "write_filled",
    "write_store",
]
