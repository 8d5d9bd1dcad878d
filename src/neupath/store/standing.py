"""Standing: the newest version in memory, as a writer asks it, so that a batch costs what it changes and no more."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from neupath.nodes import Id
from neupath.store.database import Layout, VersionFacts, read_facts, read_layout, run
from neupath.store.drafts import Draft, Pair
from neupath.store.reading import read_state


class Standing:
    """Keys by id and weights by edge, of the version that was read and of all that is written after it.

    Only the process that holds the store for writing may have one, since it does not see what others write.
    """

    def __init__(self, connection: Any, folder: Path) -> None:
        self.layout: Layout = read_layout(connection)
        self.facts: VersionFacts = read_facts(connection)
        ((self.changes,),) = run(connection, "SELECT count(*) FROM changes")
        self._state = read_state(connection, folder, self.layout, self.facts.version)
        self._keys: dict[int, dict[Id, int]] = {}
        self._sizes = [len(table) for table in self._state.nodes]
        self._new: list[dict[int, tuple[Id, str | None]]] = [{} for _ in self._state.nodes]
        self._weights: list[dict[Pair, float]] = [{} for _ in self._state.matrices]

    def columns(self, number: int) -> pa.Schema:
        """Return the columns of the table of a node type."""
        return self._state.nodes[number].schema

    def has_numbers(self, number: int) -> bool:
        """Whether the ids of a node type are integers."""
        return bool(pa.types.is_int64(self.columns(number).field("id").type))

    def key(self, number: int, id_: Id) -> int | None:
        """Return the key of the node of a type with an id, where it is there."""
        if number not in self._keys:  # a type that no batch names is never hashed
            table = self._state.nodes[number]
            there = table.filter(table["died"].is_null()) if table["died"].null_count < len(table) else table
            self._keys[number] = dict(zip(there["id"].to_pylist(), there["key"].to_pylist(), strict=True))
        return self._keys[number].get(id_)

    def node(self, number: int, key: int) -> tuple[Id, str | None]:
        """Return the id and the name of a node."""
        if key in self._new[number]:
            return self._new[number][key]
        table = self._state.nodes[number]
        return table["id"][key].as_py(), table["name"][key].as_py()

    def next_key(self, number: int) -> int:
        """Return the key of the next node of a type."""
        return self._sizes[number]

    def weight(self, number: int, pair: Pair) -> float:
        """Return the weight of an edge of a relation, 0 where there is none."""
        changed = self._weights[number].get(pair)
        if changed is not None:
            return changed
        matrix, (source, target) = self._state.matrices[number], pair
        if source >= matrix.shape[0]:
            return 0.0
        start, end = int(matrix.indptr[source]), int(matrix.indptr[source + 1])
        place = start + int(np.searchsorted(matrix.indices[start:end], target))
        return float(matrix.data[place]) if place < end and matrix.indices[place] == target else 0.0

    def pairs_at(self, number: int, place: int, keys: Iterable[int]) -> set[Pair]:
        """Return the pairs of a relation with one of some nodes at a place, 0 or 1, that are joined or once were."""
        matrix, wanted = self._state.matrices[number], set(keys)
        if place == 0:
            rows = [key for key in wanted if key < matrix.shape[0]]
            found = {(row, int(c)) for row in rows for c in matrix.indices[matrix.indptr[row] : matrix.indptr[row + 1]]}
        else:
            positions = np.flatnonzero(np.isin(matrix.indices, list(wanted)))
            rows = (np.searchsorted(matrix.indptr, positions, side="right") - 1).tolist()
            found = set(zip(rows, matrix.indices[positions].tolist(), strict=True))
        if not self.layout.schema.relations[number].directed:  # the matrix has it both ways, and all else once
            found = {pair for pair in found if pair[0] <= pair[1]}
        return found | {pair for pair in self._weights[number] if pair[place] in wanted}

    def follow(self, draft: Draft) -> None:
        """Take a draft for written: what is asked next is asked of its version."""
        for number, keys in draft.dead.items():
            for key in keys:
                self._keys[number].pop(self.node(number, key)[0], None)
        for number, table in draft.born.items():
            keys, ids, names = (table[name].to_pylist() for name in ("key", "id", "name"))
            self._keys[number].update(zip(ids, keys, strict=True))
            self._new[number].update(zip(keys, zip(ids, names, strict=True), strict=True))
            self._sizes[number] += len(keys)
        for number, change in draft.edges.items():
            pairs = zip(change.sources.tolist(), change.targets.tolist(), strict=True)
            self._weights[number].update(zip(pairs, change.after.tolist(), strict=True))
            self.changes += len(change.sources)
        self.facts = draft.facts
