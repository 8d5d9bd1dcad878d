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
from neupath.models.winners import find_winners

Pooling = Literal["tmax", "max", "mean", "sum"]


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
            winners = find_winners(source, target, self.edge, stage)
            pooled = _values_of(winners, source, target, self.edge, stage)
            if record is not None:
                record.append(Record(winners, pooled, own))
        else:
            pooled = _total(source, target, self.edge, stage, pooling)
        updated: Tensor = self.update(torch.cat([own, pooled], dim=-1))
        return updated * stage.filled.unsqueeze(-1)


def _values_of(winners: Tensor, source: Tensor, target: Tensor, edge: Tensor, stage: Stage) -> Tensor:
    """Return the values of the winning candidates; (K, T, d), zeros where there is none."""
    nobody = len(stage.source)
    if not nobody:
        return source.new_zeros(winners.shape)
    chosen = winners.clamp(max=nobody - 1).flatten(0, 1)
    value = source.gather(0, stage.source[chosen]) + target.gather(0, stage.target[chosen])
    value = value + edge.gather(0, stage.kind[chosen])
    return value.view(winners.shape).masked_fill(winners == nobody, 0.0)


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
