"""The durable graph: a folder with a DuckDB database that takes updates, and a snapshot of it that opens at once."""

from neupath.store.bulk_writer import BulkWriter, fetch, fetch_entries, new_store, write_store
from neupath.store.checks import Checked, check
from neupath.store.commit import Validator
from neupath.store.database import StoreLayout, VersionFacts, is_store, node_table
from neupath.store.edge_matrices import Triplets
from neupath.store.store import Store, open_store
from neupath.store.update import Edge, Node, Update, read_update
from neupath.store.versions import Change, Head

__all__ = [
    "BulkWriter",
    "Change",
    "Checked",
    "Edge",
    "Head",
    "Node",
    "Store",
    "StoreLayout",
    "Triplets",
    "Update",
    "Validator",
    "VersionFacts",
    "check",
    "fetch",
    "fetch_entries",
    "is_store",
    "new_store",
    "node_table",
    "open_store",
    "read_update",
    "write_store",
]
