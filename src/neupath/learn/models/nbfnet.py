"""NBFNet (Zhu, Zhang, Xhonneux, Tang, NeurIPS 2021): learned Bellman-Ford iterations from the query to all nodes."""

from collections.abc import Sequence
from typing import Literal, Unpack

import torch
from torch import Tensor, nn

from neupath.errors import QueryError
from neupath.graph.hin import HIN
from neupath.learn.labels import Pairs
from neupath.learn.models.flat_graph import GraphTensors, RowIndex
from neupath.learn.models.model import TRAINING_PARAMS, PairModel, TrainingOptions, check_counts

Aggregation = Literal["logsum", "pna"]
_AGGREGATIONS = ("logsum", "pna")


class NBFNet(PairModel):
    """Send a vector from the query along all paths, changed by each kind of edge, and read the score off the target.

    h⁰_v = [v = q]·b        m_v = {h_u ∘ w_φ : u -φ-> v}        h'_v = h_v + ReLU(W·(h_v ‖ log Σm ‖ mean m ‖ std m))
    s(q, t) = MLP(h_t ‖ h_q)

    Messages and boundary condition are NBFNet's with DistMult. By default the sum takes the place of the degree
    scalers, maximum and minimum of its PNA aggregation: it counts paths, which number thousands through hubs, so it
    enters as its logarithm, ±log(1 + |Σm|). With `aggregation="pna"`, messages are aggregated as in the paper: mean,
    max, min and std, each as it is, times log(degree + 1) / δ and divided by that, δ being its mean over the graph.
    There is no layer norm: with it, 4-step paths through hubs were learned later. There are no node features, so the
    model binds to other graphs.

    Parameters
    ----------
    dim
        The width. Each query passes over the whole graph by itself, so it is 32 by default, as in the paper.
    layers
        The length of the paths it can see.
    aggregation
        "logsum", or "pna" as in the paper.
    training
        The fields of `TrainingOptions`.

    >>> import neupath as npth
    >>> model = NBFNet(dim=8, layers=4, epochs=2).fit(npth.load("toy"), [("Mike", "Bob", 1.0), ("Mike", "Ann", 0.0)])
    >>> len(model.top_k("Jim", k=2))
    2
    """

    name = "nbfnet"
    param_names = ("dim", "layers", "aggregation", *TRAINING_PARAMS)
    supports_two_types = True
    records_steps = True
    queries_per_batch = 16

    def __init__(
        self, dim: int = 32, layers: int = 2, aggregation: Aggregation = "logsum", **training: Unpack[TrainingOptions]
    ) -> None:
        super().__init__(**(TrainingOptions(learning_rate=5e-3) | training))
        check_counts(dim=dim, layers=layers)
        if aggregation not in _AGGREGATIONS:
            raise QueryError(
                f"‹aggregation› is {aggregation!r}; it can be {' or '.join(_AGGREGATIONS)}", parameter="aggregation"
            )
        self.dim, self.layers, self.aggregation = dim, layers, aggregation

    def _make_network(self, hin: HIN) -> nn.Module:
        types = self.node_type_, self.target_type
        return BellmanFord(GraphTensors.of(hin, self.device), types, self.dim, self.layers, self.aggregation)

    def _batches(self, pairs: Pairs) -> list[tuple[Tensor, ...]]:
        """Cut labelled pairs into batches: the distinct queries, which of them each pair has, targets and labels."""
        plain = super()._batches(pairs)
        return [(*torch.unique(queries, return_inverse=True), *rest) for queries, *rest in plain]


class BellmanFord(nn.Module):
    """The query's vector, a vector for each kind of edge and layer, the updates and the decoder."""

    def __init__(
        self, graph: GraphTensors, node_types: tuple[str, str], dim: int, layers: int, aggregation: Aggregation
    ) -> None:
        super().__init__()
        self.graph, self.aggregation = graph, aggregation
        self.queries, self.rows = (graph.numbering.rows(name) for name in node_types)
        degrees = torch.bincount(graph.edges[1], minlength=graph.numbering.total)
        self.offsets = torch.cat([degrees.new_zeros(1), degrees.cumsum(0)])
        self.sources, self.kinds = (
            RowIndex(graph.edges[0], graph.numbering.total),
            RowIndex(graph.kinds, len(graph.blocks)),
        )
        self.degrees = degrees.clamp(min=1).float()[:, None, None]  # (nodes, 1, 1)
        self.boundary = nn.Parameter(torch.ones(dim))  # b
        self.relations = nn.Parameter(1 + 0.3 * torch.randn(layers, len(graph.blocks), dim))  # w_φ of each layer
        parts = 4 if aggregation == "logsum" else 13
        self.updates = nn.ModuleList(nn.Linear(parts * dim, dim) for _ in range(layers))  # W of each layer
        self.decoder = nn.Sequential(nn.Linear(2 * dim, dim), nn.ReLU(), nn.Linear(dim, 1))

    def propagate(self, queries: Tensor) -> Tensor:
        """Return h of every node for each query; shape (nodes, queries, d)."""
        start = self.queries.start + queries
        h = self.boundary.new_zeros(self.graph.numbering.total, len(queries), len(self.boundary))
        h = h.index_put((start, torch.arange(len(queries), device=start.device)), self.boundary)
        aggregate = self._sum_up if self.aggregation == "logsum" else self._pna
        for relations, update in zip(self.relations, self.updates, strict=True):
            h = h + update(torch.cat([h, *aggregate(h, relations)], dim=-1)).relu()
        return h

    def _sum_up(self, h: Tensor, relations: Tensor) -> list[Tensor]:
        total = self.graph.spread(h, relations)
        mean = total / self.degrees
        square = self.graph.spread(h**2, relations**2) / self.degrees
        std = (square - mean**2).clamp(min=1e-6).sqrt()
        return [total.sign() * total.abs().log1p(), mean, std]

    def _pna(self, h: Tensor, relations: Tensor) -> list[Tensor]:
        """Return mean, max, min and std of the messages, each with the three degree scalers."""
        messages = (self.sources.take(h) * self.kinds.take(relations)[:, None]).flatten(1)  # (E, queries·d)
        mean, largest, least = (self._reduce(messages, how, h) for how in ("mean", "max", "min"))
        std = (self._reduce(messages**2, "mean", h) - mean**2).clamp(min=1e-6).sqrt()
        scale = (self.degrees + 1).log()
        scale = scale / scale.mean()
        return [part * scaler for part in (mean, largest, least, std) for scaler in (1.0, scale, 1 / scale)]

    def _reduce(self, messages: Tensor, how: str, h: Tensor) -> Tensor:
        reduced = torch.segment_reduce(messages, how, offsets=self.offsets, axis=0, unsafe=True, initial=None)
        return reduced.nan_to_num(0.0, 0.0, 0.0).view(h.shape)  # a node without edges receives nothing

    def forward(self, distinct: Tensor, which: Tensor, targets: Tensor) -> Tensor:
        """Return the score of each pair, `which` of some distinct queries and a target; shape (pairs,)."""
        h = self.propagate(distinct)
        return self._decode(h[self.rows.start + targets, which], h[self.queries.start + distinct[which], which])

    def score_all(self, queries: Sequence[int]) -> Tensor:
        scores = [self.boundary.new_zeros(0, self.rows.stop - self.rows.start)]
        for query in queries:
            h = self.propagate(torch.tensor([query], device=self.boundary.device))[:, 0]
            of_targets = h[self.rows]
            scores.append(self._decode(of_targets, h[self.queries.start + query].expand_as(of_targets))[None])
        return torch.cat(scores)

    def _decode(self, h_target: Tensor, h_query: Tensor) -> Tensor:
        scores: Tensor = self.decoder(torch.cat([h_target, h_query], dim=-1)).squeeze(-1)
        return scores
