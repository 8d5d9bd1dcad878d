"""The encoder and decoder of NeuPath (Xiao, Zhao, Zheng, Song, CIKM 2021), over classes of nodes.

For a query c every node starts as x = [0,1,0,…], the query as [1,0,0,…]. Each of L layers, for every node t:

    Extract   p = W_m(W_τ(s)·h_s[i] ‖ e_φ ‖ W_τ(t)·h_t[i])    one candidate for each neighbour s and path slot i
    Compare   q_t[1..T] = the T largest candidates, element by element
    Update    h_t[i] ← W_u(h_t[i] ‖ q_t[i])

and the score of t is W_1·ReLU(W_2·(h_t[1] ‖ … ‖ h_t[T])). A slot that holds no path yet is no candidate, and zeros
elsewhere: a node starts with one path, so that T slots are T different paths and never copies of one.

The message is linear, W_m(a ‖ e ‖ b) = A·a + b_φ + C·b, so all matrix products are over classes of nodes
(`classes.py`), and candidates only add and compare. Which candidates win is found without gradients; gradients flow
through the winners.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from neupath.models.batches import Batch, Stage

Pooling = Literal["tmax", "max", "mean", "sum"]
_MOST_AT_ONCE = 1 << 26
"""Numbers compared at once, to bound memory."""


class Encoder(nn.Module):
    """L layers of Extract, Compare and Update."""

    def __init__(self, dim: int, layers: int, slots: int, num_types: int, num_kinds: int, pooling: Pooling) -> None:
        super().__init__()
        self.dim, self.slots, self.pooling = dim, slots, pooling
        self.layers = nn.ModuleList(EncoderLayer(dim, num_types, num_kinds) for _ in range(layers))

    def forward(self, batch: Batch, record: list["Record"] | None = None) -> Tensor:
        """Return the path embeddings of the batch's classes; shape (classes, T, d).

        Where a list is given, what every layer took is added to it.
        """
        h = torch.zeros(len(batch.queries), self.slots, self.dim, device=batch.queries.device)
        h[:, 0, 0] = batch.queries.to(h.dtype)
        h[:, 0, 1] = 1 - h[:, 0, 0]
        h.requires_grad_(record is not None)
        for layer, stage in zip(self.layers, batch.stages, strict=True):
            h = layer(h, stage, self.pooling, record)
        return h


@dataclass(frozen=True)
class Record:
    """What a layer took: which candidates won (as many as there are: none), their values, and what was before."""

    winners: Tensor  # (K, T, d)
    pooled: Tensor  # (K, T, d)
    own: Tensor  # (K, T, d)


class EncoderLayer(nn.Module):
    """One layer, with matrices of its own."""

    def __init__(self, dim: int, num_types: int, num_kinds: int) -> None:
        super().__init__()
        bound = dim**-0.5
        self.project = nn.Parameter(torch.empty(num_types, dim, dim).uniform_(-bound, bound))  # W_τ
        self.extract_source = nn.Linear(dim, dim, bias=False)  # W_m, the part for s
        self.extract_target = nn.Linear(dim, dim, bias=False)  # W_m, the part for t
        self.edge = nn.Parameter(torch.empty(num_kinds, dim).uniform_(-bound, bound))  # W_m·e_φ
        self.update = nn.Linear(2 * dim, dim, bias=False)  # W_u

    def forward(self, h: Tensor, stage: Stage, pooling: Pooling, record: list["Record"] | None = None) -> Tensor:
        """Return the embeddings after the layer; (J, T, d) to (K, T, d)."""
        projected = torch.zeros_like(h)
        for matrix, rows in zip(self.project, stage.rows_of_type, strict=True):
            projected = projected.index_copy(0, rows, h[rows] @ matrix)
        source = self.extract_source(projected).flatten(0, 1)  # (J·T, d)
        target = self.extract_target(projected).flatten(0, 1)
        own = h[stage.before]  # (K, T, d)
        if pooling in ("tmax", "max"):
            winners = _winners(source, target, self.edge, stage)
            pooled = _values_of(winners, source, target, self.edge, stage)
            if record is not None:
                record.append(Record(winners, pooled, own))
        else:
            pooled = _total(source, target, self.edge, stage, pooling)
        updated: Tensor = self.update(torch.cat([own, pooled], dim=-1))
        return updated * stage.filled.unsqueeze(-1)


def _winners(source: Tensor, target: Tensor, edge: Tensor, stage: Stage) -> Tensor:
    """Find the T largest candidates of each class, element by element; (K, T, d), the number of candidates for none."""
    (size, slots), dim = stage.filled.shape, source.shape[1]
    nobody = len(stage.source)
    winners = torch.full((size, slots, dim), nobody, device=source.device)
    with torch.no_grad():
        for classes, candidates in stage.buckets:
            step = max(1, _MOST_AT_ONCE // (candidates.shape[1] * dim))
            for at in range(0, len(classes), step):
                places = candidates[at : at + step]  # (n, width)
                known = places.clamp(max=nobody - 1)
                values = source[stage.source[known]] + target[stage.target[known]] + edge[stage.kind[known]]
                values.masked_fill_((places == nobody).unsqueeze(-1), -torch.inf)  # (n, width, d)
                winners[classes[at : at + step]] = _argmax_each(values, places, slots, nobody)
    return winners


def _values_of(winners: Tensor, source: Tensor, target: Tensor, edge: Tensor, stage: Stage) -> Tensor:
    """Return the values of the winning candidates; (K, T, d), zeros where there is none."""
    nobody = len(stage.source)
    if not nobody:
        return source.new_zeros(winners.shape)
    chosen = winners.clamp(max=nobody - 1).flatten(0, 1)
    value = source.gather(0, stage.source[chosen]) + target.gather(0, stage.target[chosen])
    value = value + edge.gather(0, stage.kind[chosen])
    return value.view(winners.shape).masked_fill(winners == nobody, 0.0)


def _argmax_each(values: Tensor, places: Tensor, slots: int, nobody: int) -> Tensor:
    """Return, element by element, which candidates have the T largest values; (n, width, d) to (n, T, d)."""
    found = []
    for slot in range(slots):
        best, at = values.max(dim=1, keepdim=True)  # (n, 1, d)
        which = places.gather(1, at.squeeze(1)).masked_fill(best.squeeze(1) == -torch.inf, nobody)
        found.append(which)
        if slot + 1 < slots:
            values.scatter_(1, at, -torch.inf)
    return torch.stack(found, dim=1)


def _total(source: Tensor, target: Tensor, edge: Tensor, stage: Stage, pooling: Pooling) -> Tensor:
    """Add up, or average, the candidates of each class; (K, 1, d)."""
    count = stage.count.to(source.dtype).unsqueeze(-1)
    message = (source[stage.source] + target[stage.target] + edge[stage.kind]) * count
    total = source.new_zeros(len(stage.before), source.shape[1]).index_add(0, stage.to, message)
    if pooling == "mean":
        degree = source.new_zeros(len(total), 1).index_add(0, stage.to, count)
        total = total / degree.clamp(min=1.0)
    return total.unsqueeze(1)


class Decoder(nn.Module):
    """y = W_1·ReLU(W_2·(h[1] ‖ … ‖ h[T]))."""

    def __init__(self, dim: int, slots: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(dim * slots, dim)
        self.score = nn.Linear(dim, 1)

    def forward(self, h: Tensor) -> Tensor:
        """Return a score for each class; shape (classes,)."""
        scores: Tensor = self.score(torch.relu(self.hidden(h.flatten(1)))).squeeze(-1)
        return scores
