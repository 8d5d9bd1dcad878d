"""The graph on disk: a folder with a DuckDB database that takes updates, and a snapshot of it that opens at once.

`write_store` makes a store and `BulkWriter` fills one in batches; `open_store` opens one as a `Store`. An `Update` of
edges and nodes makes the next version; `Validator` checks it against the `Head` and turns it into a `Change`. `check`
verifies a store. The folder `cache` of a store holds arrays computed of its versions: `HIN.disk_cache` of its graphs.

May import graph, _runtime and errors.
"""

from neupath.store.bulk_writer import BulkWriter, fetch, fetch_entries, new_store, write_store
from neupath.store.checks import CheckReport, check
from neupath.store.database import StoreLayout, is_store, node_table
from neupath.store.snapshots import Triplets
from neupath.store.store import Store, open_store
from neupath.store.update import Edge, Node, Update, read_update
from neupath.store.versions import Change, Head, RowsChange, Validator

__all__ = [
    "BulkWriter",
    "Change",
    "CheckReport",
    "Edge",
    "Head",
    "Node",
    "RowsChange",
    "Store",
    "StoreLayout",
    "Triplets",
    "Update",
    "Validator",
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
