"""Sources of tables that do not fit into memory: read in parts, numbered, joined and sorted in a database."""

from neupath.datasets.streaming.importing import import_store

__all__ = ["import_store"]
