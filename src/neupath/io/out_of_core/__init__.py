"""Import tables that do not fit into memory: read in batches, numbered, joined and sorted in a database."""

from neupath.io.out_of_core.import_store import import_store

__all__ = ["import_store"]
