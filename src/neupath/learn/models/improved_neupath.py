"""What the improved variant of NeuPath adds to the published one (`neupath.py`): three things.

**The query.** PathSim (1) divides by how many paths the query itself has, so the decoder also sees its embedding h_c.

**Counts of walks.** T slots cannot count beyond T, so the decoder also sees features f_ct of count channels:

    y_ct = W_1·ReLU(W_2·(h_t[1..T] ‖ h_c[1..T] ‖ f_ct)) + w·f_ct                            in the place of (7)

**The start.** The encoder starts near the identity: W_τ and the part of W_m for s near I, the part for t near 0, W_u
near half of each of its two inputs. Otherwise some seeds do not learn.

T-max pooling sees T paths; a count channel counts all of them, along softly chosen relations. Each walks half-paths of
some steps from the query and from the target. A step has a positive gate for each kind of edge φ and for staying, and
multiplies edge weights:

    F[c] = row c of Π_steps (Σ_φ g_φ·A_φ + g_stay·I)          B[t] = the same from the target, with gates of its own
    log1p of ⟨F[c], B[t]⟩, ‖F[c]‖², ‖B[t]‖², |F[c]|₁ and |B[t]|₁, and 2⟨F[c], B[t]⟩ / (‖F[c]‖² + ‖B[t]‖²)

The second line is what a channel tells of a pair; |F[c]|₁ counts the walks to anywhere. Where query and target are of
one type, both ends of the first half of the channels share their gates: then the ratio is PathSim over a gated path. In
training, F is a sum over the half-paths p that the schema has, F = Σ_p a_p(gates)·W_p, so the graph is walked once, for
labelled pairs alone.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array, eye_array
from torch import Tensor, nn

from neupath.graph.hin import HIN, Csr, Floats
from neupath.graph.nodes import Rows
from neupath.learn.labels import Pairs
from neupath.learn.models.class_table import ClassBatch
from neupath.learn.models.flat_graph import Ints, edge_kinds

if TYPE_CHECKING:
    from neupath.learn.models.neupath import Encoder, EncoderLayer

Features = Literal["all", "counts", "ratio"]
FEATURES = ("all", "counts", "ratio")
_COUNTS, _NUMBERS = 5, 6
"""How many numbers a channel tells of a pair: counts first, and the ratio last."""
_NOISE = 0.3
"""How far the encoder's matrices start from the identity, relative to random ones."""
GATE_PACE = 50
"""How much faster gates learn than weights; at the same rate they stay nearly uniform."""
MAX_HALF_PATHS = 150
"""Half-paths of a schema beyond which they are not weighed at once."""
_TARGETS_PER_BLOCK = 1024
_ENDS = ((0, 1), (0, 0), (1, 1))
"""Query and target, the query with itself, the target with itself."""


# ---- The network ---------------------------------------------------------------------------------
class ImprovedNetwork(nn.Module):
    """The encoder, a decoder that sees target, query and counts, and the count channels, if there are any.

    With `features` "ratio" it sees nothing but the ratio of the channels, and there is nothing to encode.
    """

    sees_query = True

    def __init__(self, encoder: "Encoder", channels: int, features: Features) -> None:
        super().__init__()
        self.encoder, self.has_encoder = encoder, features != "ratio"
        for layer in encoder.layers:
            start_near_identity(layer)  # type: ignore[arg-type]
        self.decoder = PairDecoder(encoder.dim, encoder.slots, channels, features)
        self.counts: CountChannels | None = None

    def decode(self, batch: ClassBatch) -> tuple[Tensor, ...]:
        """Return the decoder's parts for each class as a target and as a query; (K, d) twice."""
        shape = len(batch.stages[-1].before), self.encoder.slots, self.encoder.dim
        h = self.encoder(batch) if self.has_encoder else torch.zeros(shape, device=batch.queries.device)
        return self.decoder.target(h.flatten(1)), self.decoder.query(h.flatten(1))

    def score(self, parts: tuple[Tensor, ...], which: Tensor, which_query: Tensor, features: Tensor | None) -> Tensor:
        """Return the scores of pairs, given the classes of their targets and queries, and f; shape (pairs,)."""
        target, query = parts
        scores: Tensor = self.decoder(target[which], query[which_query], features)
        return scores

    def score_target(self, h: Tensor, features: Tensor | None) -> Tensor:
        """Return the score of the first class for the last as its query, as a function of the former; (K, T, d).

        The query's own embedding and the counts stay as they are.
        """
        h = h.flatten(1)
        score: Tensor = self.decoder(self.decoder.target(h[:1]), self.decoder.query(h[-1:].detach()), features).sum()
        return score


@torch.no_grad()
def start_near_identity(layer: "EncoderLayer") -> None:
    """Move W_τ and A near I, C near 0, and W_u near the mean of what a node was and what it gets."""
    identity = torch.eye(len(layer.extract_source.weight))
    layer.project.mul_(_NOISE).add_(identity)
    layer.extract_source.weight.mul_(_NOISE).add_(identity)
    layer.extract_target.weight.mul_(_NOISE)
    layer.update.weight.mul_(_NOISE).add_(torch.cat([identity, identity], dim=1) / 2)


class PairDecoder(nn.Module):
    """y = W_1·ReLU(W_2·(h_t ‖ h_c ‖ f)) + w·f, with W_2 in its three parts; f are some features of the channels.

    For the ratio alone, y = w·f + a constant.
    """

    def __init__(self, dim: int, slots: int, channels: int, features: Features) -> None:
        super().__init__()
        counts = _COUNTS * channels
        self.seen = {"all": slice(None), "counts": slice(counts), "ratio": slice(counts, None)}[features]
        width = len(range(_NUMBERS * channels)[self.seen])
        self.target = nn.Linear(dim * slots, dim)
        self.query = nn.Linear(dim * slots, dim, bias=False)
        self.counts = nn.Linear(width, dim, bias=False) if width and features != "ratio" else None
        self.direct = nn.Linear(width, 1, bias=False) if width else None  # w
        self.score = nn.Linear(dim, 1)  # W_1

    def forward(self, target: Tensor, query: Tensor, counts: Tensor | None) -> Tensor:
        """Return the score of each pair, given W_2's parts for h_t and h_c, and f; (pairs, d) twice to (pairs,)."""
        hidden = target + query
        if counts is None or self.direct is None:
            scores: Tensor = self.score(torch.relu(hidden))
        elif self.counts is None:
            scores = self.direct(counts[..., self.seen]) + self.score.bias
        else:
            counts = counts[..., self.seen]
            scores = self.score(torch.relu(hidden + self.counts(counts))) + self.direct(counts)
        return scores.squeeze(-1)


# ---- Half-paths -----------------------------------------------------------------------------------
Entries = tuple[int, ...]
"""Entries of gates along a half-path: kinds of edges, or the number after them for "stay"."""


def list_half_paths(hin: HIN, node_type: str, steps: int) -> dict[Entries, list[Entries]]:
    """Return the kinds of edges of each half-path from a type, with its spellings by one entry per step."""
    kinds = edge_kinds(hin.schema)
    stay = len(kinds)
    frontier: list[tuple[Entries, str]] = [((), node_type)]
    for _ in range(steps):
        frontier = [
            ((*spelling, entry), kinds[entry].target if entry < stay else here)
            for spelling, here in frontier
            for entry in range(stay + 1)
            if entry == stay or kinds[entry].source == here
        ]
    spellings: dict[Entries, list[Entries]] = {}
    for spelling, _ in frontier:
        spellings.setdefault(tuple(entry for entry in spelling if entry < stay), []).append(spelling)
    return spellings


def walk(hin: HIN, nodes: Rows, kinds: Entries, node_type: str) -> tuple[str, Csr]:
    """Return the type at the end of a half-path, and W_p of some nodes; shape (nodes, nodes of the end type)."""
    links = edge_kinds(hin.schema)
    here, w = node_type, csr_array(eye_array(hin.num_nodes(node_type), format="csr"))[nodes]
    for kind in kinds:
        here, w = links[kind].target, csr_array(w @ hin.matrix(links[kind]))
    return here, w


def row_dots(a: Csr, b: Csr) -> Floats:
    """Return ⟨a[i], b[i]⟩ for every row i."""
    return np.asarray(a.multiply(b).sum(axis=1), dtype=np.float64).ravel()


# ---- In training ---------------------------------------------------------------------------------
@dataclass(frozen=True)
class HalfPaths:
    """The half-paths of some steps from a node type, and how gates spell them: an entry per step."""

    node_type: str
    paths: list[Entries]
    ends: list[str]
    """The type at the end of each path."""
    spellings: Ints  # (S, steps)
    path_of: Ints  # (S,) the path that each spelling spells

    @classmethod
    def of(cls, hin: HIN, node_type: str, steps: int) -> "HalfPaths":
        listed = list_half_paths(hin, node_type, steps)
        kinds = edge_kinds(hin.schema)
        ends = [kinds[path[-1]].target if path else node_type for path in listed]
        path_of = np.repeat(np.arange(len(listed)), [len(spelled) for spelled in listed.values()])
        spellings = np.array([entries for spelled in listed.values() for entries in spelled], dtype=np.int64)
        return cls(node_type, list(listed), ends, spellings, path_of)

    def joints(self, other: "HalfPaths") -> tuple[Ints, Ints]:
        """Return every two half-paths, one of each, that end at the same type."""
        same = np.array([[end == other_end for other_end in other.ends] for end in self.ends])
        first, second = np.nonzero(same)
        return first.astype(np.int64), second.astype(np.int64)


def count_steps(hin: HIN, node_types: tuple[str, str], layers: int) -> int:
    """Return the steps of half-paths for a model of L layers: ⌈L/2⌉, or fewer where the schema has too many."""
    steps = (layers + 1) // 2
    while steps > 1 and max(len(list_half_paths(hin, name, steps)) for name in node_types) > MAX_HALF_PATHS:
        steps -= 1
    return steps


@dataclass(frozen=True)
class CountBatch:
    """How many walks the half-paths of some pairs have: shared ones for every two that meet, and those to anywhere."""

    both: Tensor  # (pairs, joints of the query's and the target's half-paths)
    query: Tensor  # (pairs, joints of two of the query's)
    target: Tensor  # (pairs, joints of two of the target's)
    query_any: Tensor  # (pairs, half-paths of the query)
    target_any: Tensor  # (pairs, half-paths of the target)

    def take(self, places: Rows, device: torch.device) -> "CountBatch":
        return CountBatch(*(part[torch.from_numpy(places)].to(device) for part in vars(self).values()))


class CountChannels(nn.Module):
    """The gates of all channels at both ends."""

    def __init__(self, hin: HIN, node_types: tuple[str, str], channels: int, layers: int) -> None:
        super().__init__()
        self.steps = count_steps(hin, node_types, layers)
        self.shared = (channels + 1) // 2 if node_types[0] == node_types[1] else 0
        gates = torch.randn(channels, 2, self.steps, len(edge_kinds(hin.schema)) + 1)
        self.slow_gates = nn.Parameter(0.5 / GATE_PACE * gates)
        self.half_paths = tuple(HalfPaths.of(hin, name, self.steps) for name in node_types)
        self.joints = [self.half_paths[a].joints(self.half_paths[b]) for a, b in _ENDS]
        for end, half_paths in enumerate(self.half_paths):
            spells = np.eye(len(half_paths.paths), dtype=np.float32)[half_paths.path_of]
            self._keep(f"spells{end}", spells)  # (S, P)
            self._keep(f"entries{end}", half_paths.spellings)  # (S, steps)
        for number, (p, q) in enumerate(self.joints):
            self._keep(f"first{number}", p)
            self._keep(f"second{number}", q)
        self._keep("every_step", np.arange(self.steps))

    def _keep(self, name: str, array: NDArray[Any]) -> None:
        """Let an array be on the device of the weights, without being one."""
        self.register_buffer(name, torch.from_numpy(array), persistent=False)

    def log_gates(self) -> tuple[Tensor, Tensor]:
        """Return the logarithms of the gates from the query and from the target; (channels, steps, entries) each."""
        gates = GATE_PACE * self.slow_gates
        return gates[:, 0], torch.cat([gates[: self.shared, 0], gates[self.shared :, 1]])

    def _weigh(self, end: int, log_gates: Tensor) -> Tensor:
        """Return the weight a_p of each half-path; shape (channels, P)."""
        entries = self.get_buffer(f"entries{end}")
        products = log_gates[:, self.get_buffer("every_step"), entries].sum(-1).exp()  # (channels, S)
        return products @ self.get_buffer(f"spells{end}")

    def forward(self, batch: CountBatch) -> Tensor:
        """Return what the channels tell of some pairs; shape (pairs, 6·channels)."""
        weights = [self._weigh(end, gates) for end, gates in enumerate(self.log_gates())]
        grams = []
        for number, ((a, b), part) in enumerate(zip(_ENDS, (batch.both, batch.query, batch.target), strict=True)):
            p, q = self.get_buffer(f"first{number}"), self.get_buffer(f"second{number}")
            grams.append(part @ (weights[a][:, p] * weights[b][:, q]).T)
        both, query, target = grams
        return tell(both, query, target, batch.query_any @ weights[0].T, batch.target_any @ weights[1].T)

    def count(self, hin: HIN, pairs: Pairs) -> CountBatch:
        """Walk all half-paths of some pairs."""
        rows, where = zip(
            *(np.unique(ends, return_inverse=True) for ends in (pairs.queries, pairs.targets)), strict=True
        )
        walked = [
            [walk(hin, nodes, path, half_paths.node_type)[1] for path in half_paths.paths]
            for nodes, half_paths in zip(rows, self.half_paths, strict=True)
        ]
        grams = []
        for (a, b), (p, q) in zip(_ENDS, self.joints, strict=True):
            if a == b:  # once per node
                dots = [row_dots(walked[a][i], walked[a][j])[where[a]] for i, j in zip(p, q, strict=True)]
            else:
                first, second = ([matrix[where[end]] for matrix in walked[end]] for end in (a, b))
                dots = [row_dots(first[i], second[j]) for i, j in zip(p, q, strict=True)]
            grams.append(np.stack(dots, axis=1))
        totals = (
            np.stack([np.asarray(matrix.sum(axis=1)).ravel() for matrix in part], axis=1)[places]
            for part, places in zip(walked, where, strict=True)
        )
        return CountBatch(*(torch.tensor(part, dtype=torch.float32) for part in (*grams, *totals)))


def tell(both: Tensor, query: Tensor, target: Tensor, query_any: Tensor, target_any: Tensor) -> Tensor:
    """Return log1p of the counts, and PathSim's ratio; shapes (…, channels) to (…, 6·channels)."""
    ratio = 2 * both / (query + target).clamp(min=1e-20)
    counts = (count.expand(ratio.shape) for count in (both, query, target, query_any, target_any))
    return torch.cat([*(count.log1p() for count in counts), ratio], dim=-1)


# ---- Over a whole graph --------------------------------------------------------------------------
class WalkCounter:
    """Counts the walks of channels whose gates are known, between queries and all targets of a graph."""

    def __init__(self, hin: HIN, node_types: tuple[str, str], channels: CountChannels) -> None:
        gates = (end.detach().cpu().double().exp().numpy() for end in channels.log_gates())
        self._gates = list(gates)
        self._edges = _EdgeList.of(hin)
        self._queries, self._targets = (hin.numbering.rows(name) for name in node_types)
        self._target, self._target_any = self._count_targets()

    def _count_targets(self) -> tuple[Floats, Floats]:
        """Return ‖B[t]‖² and |B[t]|₁ of all targets; shape (targets, channels) each."""
        count = self._targets.stop - self._targets.start
        norms, totals = np.zeros((2, count, len(self._gates[1])))
        for channel, gates in enumerate(self._gates[1]):
            steps = [self._edges.step(gate) for gate in gates]
            for start in range(0, count, _TARGETS_PER_BLOCK):
                rows = np.arange(start, min(start + _TARGETS_PER_BLOCK, count))
                w = self._walk(rows + self._targets.start, steps)
                norms[rows, channel] = row_dots(w, w)
                totals[rows, channel] = np.asarray(w.sum(axis=1)).ravel()
        return norms, totals

    def _walk(self, nodes: Rows, steps: list[Csr]) -> Csr:
        size = self._edges.indptr.size - 1
        w: Csr = csr_array((np.ones(len(nodes)), nodes, np.arange(len(nodes) + 1)), shape=(len(nodes), size))
        for step in steps:
            walked: Csr = w @ step
            w = csr_array(walked)
        return w

    def tell(self, queries: Rows) -> Tensor:
        """Return what the channels tell of some queries and every target; shape (queries, targets, 6·channels)."""
        channels = len(self._gates[0])
        both = np.zeros((len(queries), len(self._target), channels))
        norms, totals = np.zeros((2, len(queries), 1, channels))
        for channel, (forward, backward) in enumerate(zip(*self._gates, strict=True)):
            f = self._walk(queries + self._queries.start, [self._edges.step(gate) for gate in forward])
            norms[:, 0, channel], totals[:, 0, channel] = row_dots(f, f), np.asarray(f.sum(axis=1)).ravel()
            for gate in backward[::-1]:
                f = csr_array(f @ self._edges.step_back(gate))
            both[:, :, channel] = f[:, self._targets].toarray()
        counts = (both, norms, self._target, totals, self._target_any)
        return tell(*(torch.from_numpy(part).float() for part in counts))


@dataclass(frozen=True)
class _EdgeList:
    """The edges out of each node of a graph, of all kinds and in both directions, and a loop at each node."""

    indptr: Ints
    indices: Ints
    weights: Floats
    kinds: Ints  # the number after the last kind for a loop
    reversed_kinds: Ints

    @classmethod
    def of(cls, hin: HIN) -> "_EdgeList":
        links = edge_kinds(hin.schema)
        total = hin.numbering.total
        parts: list[tuple[NDArray[Any], ...]] = [
            (np.arange(total), np.arange(total), np.ones(total), np.full(total, len(links)))
        ]
        for kind, link in enumerate(links):
            entries = hin.matrix(link).tocoo()
            first, last = hin.numbering.first(link.source), hin.numbering.first(link.target)
            parts.append((entries.row + first, entries.col + last, entries.data, np.full(entries.nnz, kind)))
        sources, targets, weights, kinds = (np.concatenate(column) for column in zip(*parts, strict=True))
        order = np.lexsort((kinds, targets, sources))
        indptr = np.concatenate([[0], np.cumsum(np.bincount(sources, minlength=total))])
        reverse = np.array([*(links.index(link.reversed()) for link in links), len(links)])
        kinds = kinds[order]
        return cls(indptr, targets[order], weights[order].astype(np.float64), kinds, reverse[kinds])

    def step(self, gate: Floats) -> Csr:
        """Return Σ_φ g_φ·A_φ + g_stay·I; shape (nodes, nodes), sparse."""
        return self._matrix(gate[self.kinds])

    def step_back(self, gate: Floats) -> Csr:
        """Return the same, transposed: an edge that is walked back is one of the reversed kind."""
        return self._matrix(gate[self.reversed_kinds])

    def _matrix(self, gates: Floats) -> Csr:
        size = len(self.indptr) - 1
        return csr_array((gates * self.weights, self.indices, self.indptr), shape=(size, size))
