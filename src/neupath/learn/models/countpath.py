"""CountPath: a model that counts paths, for what max pooling cannot see; its gates read as soft meta-paths."""

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self, cast

import numpy as np
import torch
from scipy.optimize import nnls
from scipy.sparse import csr_array, eye_array
from torch import Tensor, nn

from neupath.engine.products import Factors, Normalisation, symmetric_factors
from neupath.engine.scorer import PathSims, Scorer
from neupath.engine.topk import score_product
from neupath.errors import QueryError
from neupath.graph.hin import HIN, Csr, Floats, freeze
from neupath.graph.metapath import arrow
from neupath.graph.nodes import Rows
from neupath.graph.schema import Link
from neupath.learn.labels import Pairs
from neupath.learn.models.flat_graph import FlatGraph, edge_kinds
from neupath.learn.models.model import QUERIES_A_BATCH, PairModel, check_counts, choose_device, seeded
from neupath.learn.models.training import Epoch, Recipe, Watch, fingerprint_of, train

# ---- Soft paths ----------------------------------------------------------------------------------
_MOST_PATHS = 150


@dataclass(frozen=True)
class HalfPath:
    """A half-path that exists in the schema: its kinds of edges, and the gate entries that spell it.

    `spellings` has shape (n, steps): each row names one gate entry a step, "stay" in different places.
    """

    kinds: tuple[int, ...]
    spellings: tuple[tuple[int, ...], ...]


def whole_matrices(hin: HIN) -> list[Csr]:
    """Return the edges of each kind over all nodes in one numbering; shape (nodes, nodes) each, sparse."""
    graph = FlatGraph.of(hin)
    first = dict(zip(hin.schema.node_types, graph.start[:-1], strict=True))
    size = int(graph.start[-1])
    found = []
    for link in edge_kinds(hin.schema):
        entries = hin.matrix(link).tocoo()
        places = (entries.row + first[link.source], entries.col + first[link.target])
        found.append(csr_array((entries.data, places), shape=(size, size)))
    return found


def half_paths(hin: HIN, node_type: str, steps: int) -> list[HalfPath]:
    """List the half-paths of up to some steps that start at a type, each with its spellings."""
    kinds = edge_kinds(hin.schema)
    stay = len(kinds)
    spelled: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
    frontier: list[tuple[tuple[int, ...], str]] = [((), node_type)]
    for _ in range(steps):
        frontier = [
            ((*spelling, entry), kinds[entry].target if entry < stay else here)
            for spelling, here in frontier
            for entry in range(stay + 1)
            if entry == stay or kinds[entry].source == here
        ]
    for spelling, _ in frontier:
        spelled.setdefault(tuple(entry for entry in spelling if entry < stay), []).append(spelling)
    if len(spelled) > _MOST_PATHS:
        raise QueryError(
            f"there are {len(spelled):,} half-paths of up to {steps} steps from {node_type}, more than the "
            f"{_MOST_PATHS} this model weighs at once; use a smaller layers, or leave out relations"
        )
    return [HalfPath(kinds_used, tuple(spellings)) for kinds_used, spellings in spelled.items()]


def walk(hin: HIN, nodes: Rows, path: HalfPath, node_type: str) -> tuple[str, Csr]:
    """Return where a half-path ends, and W_p of some nodes; shape (nodes, nodes of the end type)."""
    kinds = edge_kinds(hin.schema)
    here, w = node_type, csr_array(eye_array(hin.num_nodes(node_type), format="csr"))[nodes]
    for kind in path.kinds:
        here, w = kinds[kind].target, csr_array(w @ hin.matrix(kinds[kind]))
    return here, w


def gram(rows: list[tuple[str, Csr]], first: Rows, second: Rows) -> Floats:
    """Return ⟨W_p[x], W_q[y]⟩ for every pair (x, y) and half-paths p, q; shape (pairs, P, P)."""
    found = np.zeros((len(first), len(rows), len(rows)))
    for p, (end, w) in enumerate(rows):
        for q, (other_end, v) in enumerate(rows):
            if end == other_end:
                found[:, p, q] = row_dots(w[first], v[second])
    return found


def row_dots(a: Csr, b: Csr) -> Floats:
    """Return ⟨a[i], b[i]⟩ for every row i."""
    return np.asarray(a.multiply(b).sum(axis=1), dtype=np.float64).ravel()


def gated_product(hin: HIN, gate: Floats, node_type: str) -> Csr:
    """Return W of one channel for the nodes of a type; shape (nodes of the type, all nodes)."""
    matrices = whole_matrices(hin)
    graph = FlatGraph.of(hin)
    number = hin.schema.node_types.index(node_type)
    identity = csr_array(eye_array(int(graph.start[-1]), format="csr"))
    w = identity[int(graph.start[number]) : int(graph.start[number + 1])]
    for shares in gate:
        walked = shares[-1] * w
        for share, matrix in zip(shares[:-1], matrices, strict=True):
            if share > 0:
                walked = walked + share * (w @ matrix)
        w = csr_array(walked)
        w.eliminate_zeros()
    return freeze(w)


def round_trip(hin: HIN, node_type: str, links: list[Any]) -> str | None:
    """Write half-path links, walked out and back, as a meta-path; nothing where there are none or they do not join."""
    text, here = node_type, node_type
    for link in (*links, *(link.reversed() for link in reversed(links))):
        if link.source != here:
            return None
        text += f" {arrow((link,))} {link.target}"
        here = link.target
    return str(hin.metapath(text)) if links else None


def spell(hin: HIN, node_type: str, links: list[Any]) -> str:
    """Write half-path links as a meta-path, or else say what they are."""
    nowhere = f"{node_type} {' '.join(arrow((part,)) for part in links)} (leads nowhere)"
    return round_trip(hin, node_type, links) or (nowhere if links else f"{node_type} (itself)")


# ---- CountPath -----------------------------------------------------------------------------------
# Each channel walks half-paths of some steps; a step is a softmax gate over all kinds of edges and over staying:
#     W = Π_steps (Σ_φ gate_φ·A_φ + gate_stay·I)          s(x, y) = Σ_channels mix·2⟨W[x], W[y]⟩ / (‖W[x]‖² + ‖W[y]‖²)
# So every channel is PathSim over a soft meta-path, and some 60 numbers are all there is to learn, none tied to a
# graph. W is a weighted sum over the half-paths that exist, W = Σ_p a_p(gates)·W_p, so ⟨W[x], W[y]⟩ = aᵀ·G·a with
# G[p,q] = ⟨W_p[x], W_q[y]⟩: the graph is walked once, for the labelled pairs alone, and training works on small
# matrices. The nearest published relative is NBFNet (Zhu et al., NeurIPS 2021). After training, each gate is rounded to
# its largest entry where that explains the held-out labels as well: then the channels are meta-paths, and the scores
# exact.
class Gates(nn.Module):
    """The gates of every channel and step, and the mix of the channels."""

    def __init__(self, channels: int, steps: int, num_kinds: int) -> None:
        super().__init__()
        self.steps = nn.Parameter(0.1 * torch.randn(channels, steps, num_kinds + 1))  # the last entry is "stay"
        self.mix = nn.Parameter(torch.zeros(channels))


@dataclass(frozen=True)
class _Grams:
    """What a batch of pairs needs: G of both nodes, of the query and of the target alone; shape (pairs, P, P) each."""

    both: Tensor
    query: Tensor
    target: Tensor
    scores: Tensor  # (pairs,)


class CountPath(PairModel):
    """Learn PathSim's meta-path, softly, from labelled pairs; then score by counting its paths.

    `layers` is the most steps a half-path may have, `channels` how many are tried at once.

    >>> import neupath as npth
    >>> hin = npth.load("toy")
    >>> labels = [("Mike", "Bob", 1.0), ("Mike", "Mary", 0.8), ("Mike", "Ann", 0.0), ("Mary", "Ann", 2 / 7)]
    >>> model = CountPath(layers=2, channels=2, seed=0).fit(hin, labels)
    >>> model.metapaths()[0][0]
    'author-paper-venue-paper-author'
    """

    name = "countpath"
    renamed_params: ClassVar = {"half_length": "layers"}
    _channels: Sequence[Scorer]

    def __init__(
        self,
        layers: int = 2,
        channels: int = 4,
        *,
        epochs: int = 40,
        batch_size: int | None = None,
        learning_rate: float = 0.1,
        seed: int = 0,
        device: str | None = None,
    ) -> None:
        check_counts(layers=layers, channels=channels, batch_size=batch_size)
        self.layers, self.channels, self.epochs = layers, channels, epochs
        self.batch_size, self.learning_rate, self.seed = batch_size, learning_rate, seed
        self.device = choose_device(device)
        self.log_: list[Epoch] = []

    def params(self) -> dict[str, object]:
        names = ("layers", "channels", "epochs", "batch_size", "learning_rate", "seed")
        return {name: getattr(self, name) for name in names}

    def _learn(self, hin: HIN, learn: Pairs, check: Pairs, folder: Path | None, watch: Watch) -> None:
        self.node_type_ = learn.node_type
        self.hin_ = hin
        with seeded(self.seed):
            self.network_ = Gates(self.channels, self.layers, len(edge_kinds(hin.schema))).to(self.device)
        paths = half_paths(hin, learn.node_type, self.layers)
        loss = _loss_over(self.network_, [torch.tensor(p.spellings, device=self.device) for p in paths])
        recipe = Recipe(
            self.epochs, self.learning_rate, weight_decay=0.0, clip=10.0, patience=self.epochs, seed=self.seed
        )
        batches, held_out = self._batches(learn, paths), self._batches(check, paths)
        fingerprint = fingerprint_of(hin, (learn, check), self.params())
        self.log_ = train(self.network_, loss, batches, held_out, recipe, folder, watch, fingerprint=fingerprint)
        self._forget()
        self._set_weights()
        self._round(learn, check)
        self.validation_rmse_ = float(np.sqrt(self._error(check))) if len(check) else None

    @property
    def rounded_(self) -> bool:
        """Whether every gate is one kind of edge, so that the scores follow a formula."""
        return bool(((self.gates_ == 0) | (self.gates_ == 1)).all())

    def _batches(self, pairs: Pairs, paths: list[HalfPath]) -> list[_Grams]:
        """Walk every half-path from the nodes of the pairs, and cut the pairs into batches of some queries each."""
        nodes, where = np.unique(np.concatenate([pairs.queries, pairs.targets]), return_inverse=True)
        rows = [walk(self.hin_, nodes, path, pairs.node_type) for path in paths]
        ends = where[: len(pairs)], where[len(pairs) :]
        both, query, target = (gram(rows, a, b) for a, b in (ends, (ends[0],) * 2, (ends[1],) * 2))
        queries, found = np.unique(pairs.queries), []
        step = self.batch_size or QUERIES_A_BATCH
        for at in range(0, len(queries), step):
            own = np.flatnonzero(np.isin(pairs.queries, queries[at : at + step]))
            columns = (both[own], query[own], target[own], pairs.scores[own])
            found.append(_Grams(*(torch.tensor(column, dtype=torch.float32, device=self.device) for column in columns)))
        return found

    def _set_weights(self) -> None:
        """Read gates and mix off the network; shapes (channels, steps, kinds + 1) and (channels,)."""
        self.gates_: Floats = self.network_.steps.detach().softmax(-1).cpu().double().numpy()
        self.mix_: Floats = self.network_.mix.detach().softmax(-1).cpu().double().numpy()

    def _round(self, learn: Pairs, check: Pairs) -> None:
        """Try each gate's largest entry alone, and keep that where it explains the held-out labels as well."""
        held_out = check if len(check) else learn
        soft_error = self._error(held_out)
        soft = self.gates_, self.mix_
        crisp = np.unique(np.eye(self.gates_.shape[-1])[self.gates_.argmax(-1)], axis=0)
        features = np.stack([self._channel_scores(gate, learn) for gate in crisp], axis=1)
        self.gates_, self.mix_ = crisp, nnls(features, learn.scores)[0]
        if self._error(held_out) <= soft_error:
            used = np.flatnonzero(self.mix_ > 1e-9)
            self.gates_, self.mix_ = crisp[used], self.mix_[used]
        else:
            self.gates_, self.mix_ = soft

    def _error(self, pairs: Pairs) -> float:
        scores = sum(m * self._channel_scores(gate, pairs) for gate, m in zip(self.gates_, self.mix_, strict=True))
        return float(np.mean((scores - pairs.scores) ** 2))

    def _channel_scores(self, gate: Floats, pairs: Pairs) -> Floats:
        """Return one channel's scores of some pairs; shape (pairs,)."""
        w = gated_product(self.hin_, gate, pairs.node_type)
        a, b = w[pairs.queries], w[pairs.targets]
        norms = row_dots(a, a) + row_dots(b, b)
        scores: Floats = np.divide(2 * row_dots(a, b), norms, out=np.zeros(len(pairs)), where=norms > 0)
        return scores

    @property
    def factors_(self) -> list[Factors]:
        """The half-path product of each channel, for the graph it is bound to."""
        if not hasattr(self, "_factors"):
            self._factors = [symmetric_factors(gated_product(self.hin_, gate, self.node_type_)) for gate in self.gates_]
        return self._factors

    def score_rows(self, queries: Rows) -> Floats:
        """Return the score of each query with every target; shape (queries, targets)."""
        self._fitted()
        scores = np.zeros((len(queries), len(self.hin_.nodes[self.node_type_])))
        for scored, mix in zip(self._scored(np.asarray(queries)), self.mix_, strict=True):
            scores += mix * scored
        return scores

    def _scored(self, queries: Rows) -> Iterator[Floats]:
        """Yield the scores of each channel, by its product or by a measure that is known."""
        if hasattr(self, "_channels"):
            return (channel.score_rows(queries) for channel in self._channels)
        return (score_product(factors, Normalisation.DICE, queries) for factors in self.factors_)

    def as_pathsims(self) -> PathSims | None:
        """Return the meta-paths of the channels where all gates are rounded."""
        texts = [round_trip(self.hin_, self.node_type_, links) for links in self._links()]
        if not self.rounded_ or None in texts:
            return None
        return PathSims(tuple(text for text in texts if text), self._over)

    def _over(self, hin: HIN, channels: Sequence[Scorer]) -> Self:
        self.check_graph(self._about(), hin)
        bound = copy.copy(self)
        bound._forget()
        bound.hin_, bound._channels = hin, channels
        return bound

    def _links(self) -> list[list[Link]]:
        """Return the links that each channel's largest gates name; a step that stays is left out."""
        kinds = edge_kinds(self._fitted().schema)
        return [[kinds[kind] for kind in gate.argmax(-1) if kind < len(kinds)] for gate in self.gates_]

    def metapaths(self, least: float = 0.02) -> list[tuple[str, float]]:
        """Spell the channels as meta-paths by their largest gates, with their weight; best first.

        A step that stays is left out; a channel that always stays compares a node with itself alone.
        """
        found: dict[str, float] = {}
        for links, mix in zip(self._links(), self.mix_, strict=True):
            text = spell(self.hin_, self.node_type_, links)
            found[text] = found.get(text, 0.0) + float(mix)
        return sorted(((text, w) for text, w in found.items() if w >= least), key=lambda item: -item[1])

    def _tensors(self) -> dict[str, Tensor]:
        return {"gates": torch.from_numpy(self.gates_.copy()), "mix": torch.from_numpy(self.mix_.copy())}

    def _restore(self, hin: HIN, tensors: dict[str, Tensor]) -> None:
        self.hin_ = hin
        self.gates_, self.mix_ = tensors["gates"].numpy(), tensors["mix"].numpy()
        self._forget()

    def _forget(self) -> None:
        """Drop what was computed of another graph or with other gates."""
        for name in ("_factors", "_channels"):
            self.__dict__.pop(name, None)


def _loss_over(gates: Gates, spellings: list[Tensor]) -> Callable[[object], Tensor]:
    """Return the loss of a batch: the mean of (Σ mix·2·aᵀGa / (…) - label)²."""

    def loss(batch: object) -> Tensor:
        grams = cast(_Grams, batch)
        shares = gates.steps.softmax(-1)  # (channels, steps, kinds + 1)
        steps = torch.arange(shares.shape[1], device=shares.device)
        a = torch.stack([shares[:, steps, s].prod(-1).sum(-1) for s in spellings], dim=1)  # (channels, P)
        grams_of_pair = (grams.both, grams.query, grams.target)
        both, query, target = (torch.einsum("cp,npq,cq->nc", a, gram, a) for gram in grams_of_pair)
        ratio = 2 * both / (query + target).clamp(min=1e-20)
        return (((ratio * gates.mix.softmax(-1)).sum(-1) - grams.scores) ** 2).mean()

    return loss
