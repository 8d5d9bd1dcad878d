"""The durable graph: a folder with a DuckDB database that takes updates, and a snapshot of it that opens at once."""

from neupath.store.batch import Batch, EdgeLine, NodeLine, read_batch
from neupath.store.checking import Checked, check
from neupath.store.database import VersionFacts
from neupath.store.grouping import Grouped
from neupath.store.layout import is_store
from neupath.store.store import Store, open_store
from neupath.store.updates import Change
from neupath.store.writing import write_store

__all__ = [
    "Batch",
    "Change",
    "Checked",
    "EdgeLine",
    "Grouped",
    "NodeLine",
    "Store",
    "VersionFacts",
    "check",
    "is_store",
    "open_store",
    "read_batch",
    "write_store",
]
