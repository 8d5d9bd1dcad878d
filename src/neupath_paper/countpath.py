"""CountPath: PathSim over softly chosen meta-paths. It counts paths, which max pooling cannot.

Each channel walks half-paths of some steps; a step is a softmax gate over all kinds of edges φ and over staying:

    W = Π_steps (Σ_φ gate_φ·A_φ + gate_stay·I)          s(x, y) = Σ_channels mix·2⟨W[x], W[y]⟩ / (‖W[x]‖² + ‖W[y]‖²)

So every channel is PathSim over a gated path, and there are only some 60 numbers to learn, none tied to a graph. W is a
weighted sum over the half-paths that the schema has, W = Σ_p a_p(gates)·W_p, so ⟨W[x], W[y]⟩ = aᵀ·G·a with
G[p,q] = ⟨W_p[x], W_q[y]⟩: the graph is walked once, for the labelled pairs alone, and training works on small matrices.
After training, each gate is rounded to its largest entry if that explains the validation labels as well. Then the
channels are meta-paths and the scores are exact. The nearest published relative is NBFNet (Zhu et al., NeurIPS 2021).
"""

from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Unpack

import numpy as np
import torch
from scipy.optimize import nnls
from scipy.sparse import csr_array, eye_array
from torch import Tensor, nn

from neupath.engine.formula import Normalisation
from neupath.engine.products import Factors, symmetric_factors
from neupath.engine.topk import score_product
from neupath.errors import QueryError
from neupath.graph.hin import HIN, Csr, Floats, freeze
from neupath.graph.metapath import Link, arrow
from neupath.graph.nodes import Rows
from neupath.learn.labels import Pairs
from neupath.learn.models.flat_graph import edge_kinds, over_all_nodes
from neupath.learn.models.improved_neupath import MAX_HALF_PATHS, Entries, list_half_paths, row_dots, walk
from neupath.learn.models.model import TRAINING_PARAMS, PairModel, TrainingOptions, check_counts, check_shapes
from neupath.learn.models.training import EpochCallback, Recipe
from neupath.measures import Combination, Part


# ---- The model -----------------------------------------------------------------------------------
class Gates(nn.Module):
    """The gates of every channel and step, and the mix of the channels.

    It scores pairs by their Gram matrices G: of query and target, of the query with itself, of the target with itself.
    """

    def __init__(self, channels: int, steps: int, num_kinds: int, spellings: list[Tensor]) -> None:
        super().__init__()
        self.spellings = spellings
        self.steps = nn.Parameter(0.1 * torch.randn(channels, steps, num_kinds + 1))  # the last entry is "stay"
        self.mix = nn.Parameter(torch.zeros(channels))

    def forward(self, *grams: Tensor) -> Tensor:
        """Return the scores of some pairs; three times (pairs, P, P) to (pairs,)."""
        shares = self.steps.softmax(-1)  # (channels, steps, kinds + 1)
        steps = torch.arange(shares.shape[1], device=shares.device)
        a = torch.stack([shares[:, steps, s].prod(-1).sum(-1) for s in self.spellings], dim=1)  # (channels, P)
        both, query, target = (torch.einsum("cp,npq,cq->nc", a, gram, a) for gram in grams)
        ratio = 2 * both / (query + target).clamp(min=1e-20)
        return (ratio * self.mix.softmax(-1)).sum(-1)


class CountPath(PairModel):
    """Learn PathSim's meta-path, softly, from labelled pairs; then score by counting its paths.

    Parameters
    ----------
    layers
        The most steps of a half-path.
    channels
        How many gated paths are learned at once.
    training
        The fields of `TrainingOptions`; by default 40 epochs, batches of 8 queries and a learning rate of 0.1.

    >>> import neupath as npth
    >>> hin = npth.load("toy")
    >>> labels = [("Mike", "Bob", 1.0), ("Mike", "Mary", 0.8), ("Mike", "Ann", 0.0), ("Mary", "Ann", 2 / 7)]
    >>> model = CountPath(layers=2, channels=2, seed=0).fit(hin, labels)
    >>> model.metapaths()[0][0]
    'author-paper-venue-paper-author'
    """

    name = "countpath"
    param_names = ("layers", "channels", *TRAINING_PARAMS)
    renamed_params: ClassVar = {"half_length": "layers"}
    queries_per_batch = 8
    network_: Gates
    gates_: Floats  # (channels, steps, kinds + 1)
    mix_: Floats  # (channels,)

    def __init__(self, layers: int = 2, channels: int = 4, **training: Unpack[TrainingOptions]) -> None:
        super().__init__(**(TrainingOptions(epochs=40, learning_rate=0.1) | training))
        check_counts(layers=layers, channels=channels)
        self.layers, self.channels = layers, channels

    def _make_network(self, hin: HIN) -> Gates:
        self._paths = half_paths(hin, self.node_type_, self.layers)
        spellings = [torch.tensor(rows, device=self.device) for rows in self._paths.values()]
        return Gates(self.channels, self.layers, len(edge_kinds(hin.schema)), spellings)

    def _recipe(self) -> Recipe:
        return replace(super()._recipe(), weight_decay=0.0, clip=10.0)

    def _train(self, hin: HIN, learn: Pairs, check: Pairs, folder: Path | None, on_epoch: EpochCallback) -> None:
        super()._train(hin, learn, check, folder, on_epoch)
        self.__dict__.pop("factors_", None)
        self.gates_ = self.network_.steps.detach().softmax(-1).cpu().double().numpy()
        self.mix_ = self.network_.mix.detach().softmax(-1).cpu().double().numpy()
        self._round(learn, check)
        self.validation_rmse_ = float(np.sqrt(self._error(check))) if len(check) else None

    def _batches(self, pairs: Pairs) -> list[tuple[Tensor, ...]]:
        nodes, where = np.unique(np.concatenate([pairs.queries, pairs.targets]), return_inverse=True)
        rows = [walk(self.hin_, nodes, kinds, pairs.node_type) for kinds in self._paths]
        queries, targets = where[: len(pairs)], where[len(pairs) :]
        ends = ((queries, targets), (queries, queries), (targets, targets))
        grams = [gram_matrices(rows, a, b) for a, b in ends]
        batches = []
        for part in self._query_batches(pairs):
            own = np.flatnonzero(np.isin(pairs.queries, part))
            columns = (*(gram[own] for gram in grams), np.stack([pairs.scores[own], pairs.weights[own]]))
            batches.append(tuple(torch.tensor(c, dtype=torch.float32, device=self.device) for c in columns))
        return batches

    # ---- Rounding the gates ----------------------------------------------------------------------
    @property
    def rounded_(self) -> bool:
        """Whether every gate is one kind of edge, so that the scores follow a formula."""
        return bool(((self.gates_ == 0) | (self.gates_ == 1)).all())

    def _round(self, learn: Pairs, check: Pairs) -> None:
        """Keep only the largest entry of each gate if that explains the validation labels as well."""
        validation = check if len(check) else learn
        soft_error, soft = self._error(validation), (self.gates_, self.mix_)
        rounded = np.unique(np.eye(self.gates_.shape[-1])[self.gates_.argmax(-1)], axis=0)
        features = np.stack([self._channel_scores(gate, learn) for gate in rounded], axis=1)
        self.gates_, self.mix_ = rounded, nnls(features, learn.scores)[0]
        if self._error(validation) <= soft_error:
            used = np.flatnonzero(self.mix_ > 1e-9)
            self.gates_, self.mix_ = rounded[used], self.mix_[used]
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

    # ---- Scoring ---------------------------------------------------------------------------------
    @cached_property
    def factors_(self) -> list[Factors]:
        """The half-path product W of each channel, over the graph."""
        return [symmetric_factors(gated_product(self.hin_, gate, self.node_type_)) for gate in self.gates_]

    def _score_rows(self, queries: Rows) -> Floats:
        scores = np.zeros((len(queries), len(self.hin_.nodes[self.node_type_])))
        for mix, factors in zip(self.mix_, self.factors_, strict=True):
            scores += mix * score_product(factors, Normalisation.DICE, queries)
        return scores

    def as_combination(self) -> Combination | None:
        """Return the same scores as a sum of PathSims if all gates are rounded."""
        metapaths = [round_trip(self.hin_, self.node_type_, links) for links in self._links()]
        if not self.rounded_ or None in metapaths or not metapaths:
            return None
        weights = zip(metapaths, self.mix_.tolist(), strict=True)
        return Combination([Part("pathsim", str(metapath), mix) for metapath, mix in weights]).fit(self.hin_)

    def metapaths(self, least: float = 0.02) -> list[tuple[str, float]]:
        """Return the channels as meta-paths, by their largest gates, with their weights; heaviest first.

        A step that stays is left out; a channel that always stays compares a node with itself alone.
        """
        weights: dict[str, float] = {}
        for links, mix in zip(self._links(), self.mix_, strict=True):
            text = round_trip(self.hin_, self.node_type_, links)
            if text is None:
                steps = " ".join(arrow((link,)) for link in links)
                text = f"{self.node_type_} {steps} (leads nowhere)" if links else f"{self.node_type_} (itself)"
            weights[text] = weights.get(text, 0.0) + float(mix)
        return sorted(((text, w) for text, w in weights.items() if w >= least), key=lambda item: -item[1])

    def _links(self) -> list[list[Link]]:
        kinds = edge_kinds(self._fitted().schema)
        return [[kinds[kind] for kind in gate.argmax(-1) if kind < len(kinds)] for gate in self.gates_]

    def _tensors(self) -> dict[str, Tensor]:
        return {"gates": torch.from_numpy(self.gates_.copy()), "mix": torch.from_numpy(self.mix_.copy())}

    def _restore(self, hin: HIN, tensors: dict[str, Tensor]) -> None:
        channels, kinds = len(tensors["mix"]), len(edge_kinds(hin.schema))
        check_shapes(tensors, gates=(channels, self.layers, kinds + 1), mix=(channels,))
        self.hin_ = hin
        self.gates_, self.mix_ = tensors["gates"].numpy(), tensors["mix"].numpy()
        self.__dict__.pop("factors_", None)


# ---- Half-paths and gated paths ------------------------------------------------------------------
def half_paths(hin: HIN, node_type: str, steps: int) -> dict[Entries, list[Entries]]:
    """Return the half-paths from a type as `list_half_paths` does; raise if there are too many."""
    spellings = list_half_paths(hin, node_type, steps)
    if len(spellings) > MAX_HALF_PATHS:
        raise QueryError(
            f"there are {len(spellings):,} half-paths of up to {steps} steps from {node_type}, more than the "
            f"{MAX_HALF_PATHS} this model weighs at once; use fewer ‹layers›, or leave out relations",
            parameter="layers",
        )
    return spellings


def gram_matrices(rows: list[tuple[str, Csr]], first: Rows, second: Rows) -> Floats:
    """Return ⟨W_p[x], W_q[y]⟩ for every pair (x, y) and half-paths p, q; shape (pairs, P, P)."""
    grams = np.zeros((len(first), len(rows), len(rows)))
    for p, (end, w) in enumerate(rows):
        for q, (other_end, v) in enumerate(rows):
            if end == other_end:
                grams[:, p, q] = row_dots(w[first], v[second])
    return grams


def gated_product(hin: HIN, gate: Floats, node_type: str, rows: Rows | None = None) -> Csr:
    """Return W of one channel for the nodes of a type, or some of them; shape (these nodes, all nodes)."""
    kinds = edge_kinds(hin.schema)
    matrices = [over_all_nodes(hin.matrix(link), link.source, link.target, hin.numbering) for link in kinds]
    w = csr_array(eye_array(hin.numbering.total, format="csr"))[hin.numbering.rows(node_type)]
    w = w if rows is None else w[rows]
    for shares in gate:
        walked = shares[-1] * w
        for share, matrix in zip(shares[:-1], matrices, strict=True):
            if share > 0:
                walked = walked + share * (w @ matrix)
        w = csr_array(walked)
        w.eliminate_zeros()
    return freeze(w)


def round_trip(hin: HIN, node_type: str, links: list[Link]) -> str | None:
    """Return the meta-path along half-path links and back; None if there are no links or they do not join."""
    text, here = node_type, node_type
    for link in (*links, *(link.reversed() for link in reversed(links))):
        if link.source != here:
            return None
        text += f" {arrow((link,))} {link.target}"
        here = link.target
    return str(hin.metapath(text)) if links else None
