"""Permuted graphs: edges swapped at random within each relation, so that every node keeps its degrees.

A swap turns (a, b), (c, d) into (a, d), (c, b) unless one of these exists, as XSwap does (Hanhijärvi, Garriga,
Puolamäki, SDM 2009) and Himmelstein et al., eLife 2017, for networks of several types. In a directed relation two
sources trade all targets that only one of them has at once (Strona et al., Nature Communications 2014): that is many
swaps, and mixes dense relations in which most single swaps are impossible. Both draw with equal probability from the
graphs that swaps reach. These are all graphs of the same degrees, with one exception: where a directed relation links a
type with itself and has no loops, swaps may be unable to turn a cycle of three edges round.

Edges of a node with itself are only swapped where a directed relation has them; in an undirected one they stay.
Parallel edges are one edge with a weight. The weight of an edge stays with its source when its target is swapped, so
sources also keep their weights, and targets only keep their number of edges.

Each permuted graph continues from the one before it. Rounds of swaps lie between them: as many as it takes until twice
as many would leave no fewer of the real edges in place.
"""

import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from neupath._runtime.progress import check_cancelled
from neupath.engine.cache import cached
from neupath.errors import QueryError
from neupath.graph.hin import HIN, Csr, freeze
from neupath.graph.metapath import Relation

_SWAPS_PER_EDGE, _TRADES_PER_SOURCE = 10, 5
"""Attempted swaps and trades in a round."""
_MOST_ROUNDS = 64
_TOLERANCE = 0.01  # of the share of edges
_STUCK = 0.9  # of the edges
_MOST_BYTES = 1 << 30  # of permuted edges that are kept
Ends = NDArray[np.int32]


@dataclass(frozen=True)
class Mixing:
    """How well the swaps of one relation mix."""

    relation: str
    rounds: int
    """Rounds of swaps between two permuted graphs."""
    shared: float
    """The share of real edges that are left after so many rounds."""
    shared_after_twice: float
    """The share that is left after twice as many."""

    @property
    def is_mixed(self) -> bool:
        """Whether more swaps would change no more than a hundredth of the edges."""
        return self.shared - self.shared_after_twice <= _TOLERANCE

    @property
    def note(self) -> str | None:
        """What swaps do not reach, as a sentence, where p-values suffer from it."""
        if not self.is_mixed:
            return f"swaps of {self.relation} mix slowly; its p-values may be too large"
        if self.shared >= _STUCK:
            return f"swaps leave {self.shared:.0%} of the edges of {self.relation} in place; its p-values say little"
        return None

    def to_dict(self) -> dict[str, object]:
        return vars(self) | {"is_mixed": self.is_mixed, "note": self.note}


class _Chain:
    """The permuted edges of one relation, one permutation after the other."""

    def __init__(self, hin: HIN, relation: Relation, seed: int) -> None:
        from neupath.explain import permutation_kernels as kernels

        self._kernels, self.relation = kernels, relation
        matrix = hin.matrices[relation]
        entries = matrix.tocoo()
        once = np.ones(len(entries.row), np.bool_) if relation.directed else entries.row <= entries.col
        self.sources, self.targets = entries.row[once].astype(np.int32), entries.col[once].astype(np.int32)
        self.weights = entries.data[once]
        self._shape, self._width = matrix.shape, matrix.shape[1]
        same_type = relation.source == relation.target
        self._with_loops = not same_type or bool(np.any(self.sources == self.targets))
        self._seeds = np.random.default_rng([seed, *str(relation).encode()])
        self._starts = np.concatenate([[0], np.cumsum(np.bincount(self.sources, minlength=matrix.shape[0]))])
        self._keys: NDArray[np.int64] = kernels.edge_set(self.sources, self.targets, self._width, not relation.directed)
        self._original = self._keys.copy()
        self.mixing = self._mix()

    @property
    def num_bytes(self) -> int:
        return self.targets.nbytes if self.relation.directed else self.targets.nbytes + self.sources.nbytes

    def advance(self, rounds: int | None = None) -> None:
        """Swap edges for some rounds, by default as many as lie between two permuted graphs."""
        for _ in range(self.mixing.rounds if rounds is None else rounds):
            check_cancelled()
            seed = int(self._seeds.integers(2**62))
            if self.relation.directed:
                sources = int(np.count_nonzero(np.diff(self._starts)))
                trades = _TRADES_PER_SOURCE * sources
                self._kernels.trade_edges(self._starts, self.targets, self._width, self._with_loops, trades, seed)
            else:
                attempts = _SWAPS_PER_EDGE * len(self.sources)
                self._kernels.swap_edges(self.sources, self.targets, self._keys, self._width, attempts, seed)

    def _shared(self) -> float:
        """Return the share of edges that the real graph has, too."""
        ends = self.sources, self.targets
        count = self._kernels.count_in(self._original, *ends, self._width, not self.relation.directed)
        return float(count / max(1, len(self.sources)))

    def _mix(self) -> Mixing:
        rounds = 1
        self.advance(1)
        shared = self._shared()
        while True:
            self.advance(rounds)
            mixing = Mixing(str(self.relation), rounds, shared, self._shared())
            if mixing.is_mixed or rounds >= _MOST_ROUNDS:
                return mixing
            rounds, shared = 2 * rounds, mixing.shared_after_twice

    def matrix(self, sources: Ends, targets: Ends) -> Csr:
        """Return the matrix of permuted edges."""
        shape = self._shape
        if self.relation.directed:  # sources never change, and are in the order of the rows
            starts = np.concatenate([[0], np.cumsum(np.bincount(sources, minlength=shape[0]))])
            return freeze(csr_array((self.weights.copy(), targets.copy(), starts), shape=shape))
        other = sources != targets
        rows, columns = np.concatenate([sources, targets[other]]), np.concatenate([targets, sources[other]])
        weights = np.concatenate([self.weights, self.weights[other]])
        return freeze(csr_array((weights, (rows, columns)), shape=shape))


def check_whole(parameter: str, value: int, least: int) -> int:
    """Return the value of a parameter as an int; raise if it is not a whole number of at least `least`."""
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if isinstance(value, bool) or number < least:
        raise QueryError(f"‹{parameter}› is {value!r}; give a whole number of at least {least}", parameter=parameter)
    return number


# ---- Permuted graphs -----------------------------------------------------------------------------
class Permutations:
    """Permuted copies of a graph, made once and kept where they fit; others are made again when they are needed.

    Parameters
    ----------
    hin
        The graph.
    relations
        The relations to permute; the others stay as they are.
    count
        How many permuted graphs.
    seed
        The seed of the swaps.

    >>> from neupath import load
    >>> hin = load("toy")
    >>> permutations = Permutations(hin, hin.schema.relations, count=2, seed=1)
    >>> [graph.num_edges(hin.schema.relations[0]) for graph in permutations]
    [81, 81]
    """

    def __init__(self, hin: HIN, relations: Sequence[Relation], count: int, seed: int = 0) -> None:
        self.hin, self.relations = hin, tuple(relations)
        self.count, self.seed = check_whole("permutations", count, 1), check_whole("seed", seed, 0)
        self._chains = {relation: _Chain(hin, relation, self.seed) for relation in self.relations}
        self.mixing = tuple(chain.mixing for chain in self._chains.values())
        per_graph = sum(chain.num_bytes for chain in self._chains.values())
        self._is_kept = per_graph * self.count <= _MOST_BYTES
        self._kept: list[Mapping[Relation, tuple[Ends, Ends]]] = []

    @property
    def num_bytes(self) -> int:
        """The bytes of the edges that are kept."""
        per_graph = sum(chain.num_bytes for chain in self._chains.values())
        return per_graph * (2 + (self.count if self._is_kept else 0))

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[HIN]:
        if len(self._kept) == self.count:
            yield from map(self._graph, self._kept)
            return
        chains = {relation: _Chain(self.hin, relation, self.seed) for relation in self.relations}
        kept: list[Mapping[Relation, tuple[Ends, Ends]]] = []
        for _ in range(self.count):
            edges = {}
            for relation, chain in chains.items():
                chain.advance()
                sources = chain.sources if relation.directed else chain.sources.copy()
                edges[relation] = sources, chain.targets.copy()
            if self._is_kept:
                kept.append(edges)
            yield self._graph(edges)
        self._kept = kept

    def _graph(self, edges: Mapping[Relation, tuple[Ends, Ends]]) -> HIN:
        return self.hin.with_matrices(
            {relation: self._chains[relation].matrix(*ends) for relation, ends in edges.items()}
        )


def permutations_of(hin: HIN, relations: Sequence[Relation], count: int, seed: int) -> Permutations:
    """Return the cached permuted copies of a graph."""
    key = ("permutations", tuple(relations), count, seed)
    return cached(hin, key, lambda: Permutations(hin, relations, count, seed))
