"""Permuted graphs: edges swapped at random within each relation, so that every node keeps its degrees.

A swap turns (a, b), (c, d) into (a, d), (c, b) unless one of these exists, as XSwap does (Hanhijärvi, Garriga,
Puolamäki, SDM 2009) and Himmelstein et al., eLife 2017, for networks of several types. In a directed relation two
sources trade all targets that only one of them has at once (Strona et al., Nature Communications 2014): that is many
swaps, and mixes dense relations in which most single swaps are impossible. Where a directed relation links a type with
itself and has no loops, no swap can turn a cycle of three edges round; such cycles are turned round as well. With that,
all graphs of the same degrees are reached (Rao, Jana, Bandyopadhyay, Sankhya A 1996). Every move is as probable as the
one that undoes it, so all are equally probable in the end.

Edges of a node with itself are only swapped where a directed relation has them; in an undirected one they stay.
Parallel edges are one edge with a weight. The weight of an edge stays with its source when its target is swapped, so
sources also keep their weights, and targets only keep their number of edges.

Each permuted graph continues from the one before it. Rounds of swaps lie between them: as many as it takes until twice
as many would leave no fewer of the real edges in place.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from neupath._runtime.disk_cache import Arrays
from neupath._runtime.progress import Progress, check_cancelled, no_progress
from neupath.engine.cache import FileForm, cached
from neupath.engine.hits import check_whole
from neupath.evidence import permutation_kernels as kernels
from neupath.graph.hin import HIN, Csr, Edges, freeze
from neupath.graph.metapath import Relation

_SWAPS_PER_EDGE, _TRADES_PER_SOURCE = 10, 5
_STEPS = 10  # of a kernel, per edge that it looks at
"""Attempted swaps and trades in a round; cycles of three are tried as often as trades."""
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
        self.relation = relation
        matrix = hin.matrices[relation]
        pairs = hin.pairs(relation)
        self.sources, self.targets = pairs.sources.astype(np.int32), pairs.targets.astype(np.int32)
        self._width = matrix.shape[1]
        same_type = relation.source == relation.target
        self._with_loops = not same_type or bool(np.any(self.sources == self.targets))
        self._seeds = np.random.default_rng([seed, *str(relation).encode()])
        self._starts = np.concatenate([[0], np.cumsum(np.bincount(self.sources, minlength=matrix.shape[0]))])
        self._keys: NDArray[np.int64] = kernels.edge_set.run(
            _STEPS * len(pairs.sources), self.sources, self.targets, self._width, not relation.directed
        )
        self._original = self._keys.copy()
        self.mixing = self._mix()

    def advance(self, rounds: int | None = None) -> None:
        """Swap edges for some rounds, by default as many as lie between two permuted graphs."""
        for _ in range(self.mixing.rounds if rounds is None else rounds):
            check_cancelled()
            seed = int(self._seeds.integers(2**62))
            if self.relation.directed:
                sources = int(np.count_nonzero(np.diff(self._starts)))
                trades = _TRADES_PER_SOURCE * sources
                steps = _STEPS * _TRADES_PER_SOURCE * len(self.targets)
                kernels.trade_edges.run(steps, self._starts, self.targets, self._width, self._with_loops, trades, seed)
                if not self._with_loops:
                    seed = int(self._seeds.integers(2**62))
                    kernels.turn_cycles.run(steps, self._starts, self.sources, self.targets, trades, seed)
            else:
                attempts = _SWAPS_PER_EDGE * len(self.sources)
                kernels.swap_edges.run(
                    _STEPS * attempts, self.sources, self.targets, self._keys, self._width, attempts, seed
                )

    def _shared(self) -> float:
        """Return the share of edges that the real graph has, too."""
        ends = self.sources, self.targets
        count = kernels.count_in.run(
            _STEPS * len(self.sources), self._original, *ends, self._width, not self.relation.directed
        )
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


# ---- Permuted edges ------------------------------------------------------------------------------
@dataclass(frozen=True)
class _PermutedEdges:
    """The ends of a relation's edges in every permuted graph; shape (graphs, edges) each."""

    targets: Ends
    sources: Ends | None
    """None in a directed relation, where every edge keeps its source."""


def _permute(hin: HIN, relation: Relation, count: int, seed: int) -> Iterator[_PermutedEdges]:
    """Yield the edges of one permuted graph after the other."""
    chain = _Chain(hin, relation, seed)
    cached(hin, ("mixing", relation, seed), lambda: chain.mixing, _MIXING)
    for _ in range(count):
        chain.advance()
        yield _PermutedEdges(chain.targets[None].copy(), None if relation.directed else chain.sources[None].copy())


def _pack(edges: _PermutedEdges) -> Arrays:
    return Arrays({"targets": edges.targets} | ({} if edges.sources is None else {"sources": edges.sources}))


def _unpack(entry: Arrays, hin: HIN, relation: Relation, count: int) -> _PermutedEdges:
    ends = [entry.arrays["targets"], *([] if relation.directed else [entry.arrays["sources"]])]
    sizes = hin.num_nodes(relation.target), hin.num_nodes(relation.source)
    for array, size in zip(ends, sizes, strict=False):
        if array.shape != (count, hin.num_edges(relation)) or array.dtype != np.int32:
            raise ValueError(f"edges have shape {array.shape} and type {array.dtype}")
        if array.size and (array.min() < 0 or array.max() >= size):
            raise ValueError("edges end at nodes that there are not")
    return _PermutedEdges(ends[0], None if relation.directed else ends[1])


_MIXING: FileForm[Mixing] = FileForm(lambda mixing: Arrays({}, vars(mixing)), lambda entry: Mixing(**entry.facts))


# ---- Permuted graphs -----------------------------------------------------------------------------
class Permutations:
    """Permuted copies of a graph, made once for each relation where they fit; others are made again when needed.

    They are cached with the graph and, if this is of a store, on disk for the next process.

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
        sizes = [(1 if relation.directed else 2) * hin.num_edges(relation) for relation in self.relations]
        self._is_kept = 4 * self.count * sum(sizes) <= _MOST_BYTES

    @property
    def mixing(self) -> tuple[Mixing, ...]:
        """How well the swaps of each relation mix."""
        return tuple(
            cached(
                self.hin, ("mixing", relation, self.seed), partial(_mixing_of, self.hin, relation, self.seed), _MIXING
            )
            for relation in self.relations
        )

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[HIN]:
        return self.graphs()

    def graphs(self, progress: Progress = no_progress) -> Iterator[HIN]:
        """Yield the permuted graphs.

        Parameters
        ----------
        progress
            Called with the number of permuted relations and how many there are, while they are made.
        """
        steps = iter(range(1, len(self.relations) * self.count + 1))

        def report(edges: Iterator[_PermutedEdges]) -> Iterator[_PermutedEdges]:
            for each in edges:
                progress("permuting", next(steps), len(self.relations) * self.count)
                yield each

        if self._is_kept:
            kept = {relation: self._edges(relation, report) for relation in self.relations}
            for number in range(self.count):
                yield self._graph({relation: _one(edges, number) for relation, edges in kept.items()})
            return
        chains = [_permute(self.hin, relation, self.count, self.seed) for relation in self.relations]
        for edges in zip(*chains, strict=True):
            yield self._graph({relation: _one(each, 0) for relation, each in zip(self.relations, edges, strict=True)})

    def _edges(
        self, relation: Relation, report: Callable[[Iterator[_PermutedEdges]], Iterator[_PermutedEdges]]
    ) -> _PermutedEdges:
        """Return all permuted edges of a relation, from the cache or from disk if they are there."""

        def make() -> _PermutedEdges:
            parts = list(report(_permute(self.hin, relation, self.count, self.seed)))
            sources = [part.sources for part in parts if part.sources is not None]
            return _PermutedEdges(
                np.concatenate([part.targets for part in parts]), np.concatenate(sources) if sources else None
            )

        form = FileForm(_pack, partial(_unpack, hin=self.hin, relation=relation, count=self.count))
        return cached(self.hin, ("permutations", relation, self.count, self.seed), make, form)

    def _graph(self, edges: Mapping[Relation, tuple[Ends, Ends | None]]) -> HIN:
        return self.hin.with_matrices(
            {relation: _matrix(self.hin, relation, *ends) for relation, ends in edges.items()}
        )


def _mixing_of(hin: HIN, relation: Relation, seed: int) -> Mixing:
    return _Chain(hin, relation, seed).mixing


def _one(edges: _PermutedEdges, number: int) -> tuple[Ends, Ends | None]:
    return edges.targets[number], None if edges.sources is None else edges.sources[number]


def _matrix(hin: HIN, relation: Relation, targets: Ends, sources: Ends | None) -> Csr:
    """Return the matrix of permuted edges of a relation."""
    matrix = hin.matrices[relation]
    if sources is None:
        return freeze(csr_array((matrix.data.copy(), targets.copy(), matrix.indptr.copy()), shape=matrix.shape))
    return Edges(relation, sources.astype(np.int64), targets.astype(np.int64), hin.pairs(relation).weights).matrix(
        matrix.shape
    )
