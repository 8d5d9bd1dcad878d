"""The toy graph in a store, and what tests do to it."""

from pathlib import Path

import duckdb

from neupath import HIN
from neupath.store import Edge, Store, Update

EDGE = Edge("writes", "Mike", "Mike-SIGMOD-1")
"""An edge that the toy graph has."""
NEW = Edge("writes", "Mike", "Jim-SIGMOD-1")
"""An edge that the toy graph lacks."""
ADD = Update(add_edges=[EDGE])


def weight(hin: HIN, edge: Edge = EDGE) -> float:
    (writes, _) = hin.schema.relations
    return float(hin.matrices[writes][hin.row("author", edge.source), hin.row("paper", edge.target)])


def damage(store: Store, name: str) -> None:
    """Change a byte in the middle of each array of a file of the snapshot."""
    (snapshot,) = store.folder.glob("snapshot-*")
    content = bytearray((snapshot / name).read_bytes())
    for place in range(len(content) // 2, len(content), 64):
        content[place] ^= 0x55
    (snapshot / name).write_bytes(content)


def flip_last_byte(file: Path) -> None:
    content = file.read_bytes()
    file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))


def change_database(folder: Path, statements: str) -> None:
    with duckdb.connect(str(folder / "graph.duckdb")) as connection:
        connection.execute(statements)
