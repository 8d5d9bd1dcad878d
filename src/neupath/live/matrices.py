"""LiveMatrices: the edges of one version as matrices, each made when it is first asked for."""

from collections.abc import Iterator, Mapping, Sequence
from threading import Lock

import numpy as np

from neupath.graph import Csr
from neupath.schema import Relation
from neupath.store.matrices import both_ways, grown, overlaid

Put = tuple[Relation, int, int, float]
"""The weight that an edge of a relation has from then on, by rows."""


class LiveMatrices(Mapping[Relation, Csr]):
    """The matrices of a base with the first changes of a log that only grows."""

    def __init__(self, base: Mapping[Relation, Csr], log: Sequence[Put], length: int, sizes: Mapping[str, int]) -> None:
        self._base, self._log, self._length, self._sizes = base, log, length, sizes
        self._made: dict[Relation, Csr] = {}
        self._lock = Lock()

    @property
    def base(self) -> Mapping[Relation, Csr]:
        """The matrices before the log, which views share."""
        return self._base

    def __getitem__(self, relation: Relation) -> Csr:
        with self._lock:
            if relation not in self._made:
                self._made[relation] = self._make(relation)
            return self._made[relation]

    def __iter__(self) -> Iterator[Relation]:
        return iter(self._base)

    def __len__(self) -> int:
        return len(self._base)

    def _make(self, relation: Relation) -> Csr:
        puts = (put for put in self._log[: self._length] if put[0] == relation)
        last = {
            (row, column) if relation.directed else (min(row, column), max(row, column)): weight
            for _, row, column, weight in puts
        }
        shape = self._sizes[relation.source], self._sizes[relation.target]
        rows, columns = np.array(list(last), dtype=np.int64).reshape(-1, 2).T
        changed = both_ways(rows, columns, np.array(list(last.values()), dtype=np.float64), relation.directed)
        return overlaid(grown(self._base[relation], shape), *changed)
