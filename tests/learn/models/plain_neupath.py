"""NeuPath's forward pass written plainly: every node, every edge, one query.

It follows the paper's equations but for the start: only the first slot of a node begins with x_t, as in the model.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from neupath import HIN
from neupath.learn.models.class_table import ClassTable, build_batch
from neupath.learn.models.flat_graph import FlatGraph, edge_kinds
from neupath.learn.models.improved_neupath import CountChannels
from neupath.learn.models.neupath import Decoder, Encoder, EncoderLayer, NeuPath

Pool = Callable[[Tensor, Tensor], Tensor]
"""Takes the candidates of a node, (C, d), and zeros for each slot, (T, d), and returns what the slots get, (T, d)."""


def keep_largest(candidates: Tensor, slots: Tensor) -> Tensor:
    best = candidates.sort(dim=0, descending=True).values[: len(slots)]
    return torch.cat([best, slots[len(best) :]])


def score_all(encoder: Encoder, decoder: Decoder, graph: FlatGraph, query: int, pool: Pool = keep_largest) -> Tensor:
    """Return the score of every node of a graph for one query; shape (nodes,)."""
    return decoder(encode_all(encoder, graph, query, pool))


def encode_all(encoder: Encoder, graph: FlatGraph, query: int, pool: Pool = keep_largest) -> Tensor:
    """Return the embeddings of every node of a graph for one query; shape (nodes, T, d)."""
    count, slots, dim = len(graph.types), encoder.slots, encoder.dim
    h = torch.zeros(count, slots, dim, dtype=next(encoder.parameters()).dtype)
    h[:, 0, 1] = 1
    h[query, 0] = 0
    h[query, 0, 0] = 1
    filled = torch.zeros(count, slots, dtype=torch.bool)
    filled[:, 0] = True
    for layer in list(encoder.layers) * encoder.uses:
        projected = torch.stack([h[v] @ layer.project[graph.types[v]] for v in range(count)])  # W_τ h
        rows, marks = [], []
        for t in range(count):
            candidates = []
            for edge in range(graph.first[t], graph.last[t]):
                s, kind = graph.sources[edge], graph.kinds[edge]
                for i in range(slots):
                    if filled[s, i]:
                        from_s = layer.extract_source(projected[s, i])
                        from_t = layer.extract_target(projected[t, i])
                        candidates.append(from_s + layer.edge[kind] + from_t)
            pooled = torch.zeros(slots, dim, dtype=h.dtype)
            if candidates:
                pooled = pool(torch.stack(candidates), pooled)
            full = filled[t] | (torch.arange(slots) < len(candidates))
            updated = layer.update(torch.cat([h[t], pooled], dim=-1))
            rows.append(updated * full.unsqueeze(-1))
            marks.append(full)
        h, filled = torch.stack(rows), torch.stack(marks)
    return h


def count_all(hin: HIN, channels: CountChannels) -> tuple[Tensor, Tensor]:
    """Return F and B of every node by dense products over all edges; shape (channels, nodes, nodes) each."""
    first = hin.numbering.first
    kinds = []
    for link in edge_kinds(hin.schema):
        whole = torch.zeros(hin.numbering.total, hin.numbering.total)
        entries = hin.matrix(link).tocoo()
        for x, y, weight in zip(entries.row.tolist(), entries.col.tolist(), entries.data.tolist(), strict=True):
            whole[first(link.source) + x, first(link.target) + y] += weight
        kinds.append(whole)
    adjacency = torch.stack([*kinds, torch.eye(hin.numbering.total)])
    ends = []
    for log_gates in channels.log_gates():
        gates = log_gates.exp()  # (channels, steps, kinds + 1)
        product = torch.eye(hin.numbering.total).expand(len(gates), -1, -1)
        for step in range(gates.shape[1]):
            product = product @ torch.einsum("ck,kxy->cxy", gates[:, step], adjacency)
        ends.append(product)
    return ends[0], ends[1]


def score_pairs(model: NeuPath, query: int, target: int) -> Tensor:
    """Return the improved variant's score of two rows, from whole passes over the graph."""
    hin, encoder, decoder, counts = model.hin_, model.network_.encoder, model.network_.decoder, model.network_.counts
    c, t = hin.numbering.first(model.node_type_) + query, hin.numbering.first(model.target_type) + target
    h = encode_all(encoder, FlatGraph.of(hin), c)
    hidden = decoder.target(h[t].flatten()) + decoder.query(h[c].flatten())
    if counts is None:
        return decoder.score(hidden.relu())
    forward, backward = count_all(hin, counts)
    f, b = forward[:, c], backward[:, t]  # (channels, nodes)
    both, own, other = (f * b).sum(-1), (f * f).sum(-1), (b * b).sum(-1)
    logs = [(1 + count).log() for count in (both, own, other, f.sum(-1), b.sum(-1))]
    ratio = 2 * both / (own + other).clamp(min=1e-20)
    if model.features == "ratio":
        return decoder.direct(ratio) + decoder.score.bias
    features = torch.cat([*logs, ratio] if model.features == "all" else logs)
    return decoder.score((hidden + decoder.counts(features)).relu()) + decoder.direct(features)


def network(
    hin: HIN, dim: int, layers: int, slots: int, seed: int, layer: type[EncoderLayer] = EncoderLayer
) -> tuple[Encoder, Decoder, FlatGraph]:
    torch.manual_seed(seed)
    kinds = max(1, len(edge_kinds(hin.schema)))
    encoder = Encoder(layer, dim, layers, slots, len(hin.schema.node_types), kinds)
    return encoder, Decoder(dim, slots), FlatGraph.of(hin)


def by_classes(encoder: Encoder, decoder: Decoder, graph: FlatGraph, query: int, cap: int | None = None) -> Tensor:
    """Return the score of every node, each class computed once."""
    table = ClassTable(int(graph.types.max(initial=0)) + 1, len(encoder.layers), encoder.slots if cap is None else cap)
    table.num_types = len(encoder.layers[0].project)
    every = np.arange(len(graph.types))
    classes = table.trace(graph, table.background(graph), query, table.reach(graph, every))[-1]
    distinct, which = np.unique(classes, return_inverse=True)
    batch = build_batch(table, distinct, encoder.slots)
    return decoder(encoder(batch))[torch.from_numpy(which)]


def assert_same_scores_and_gradients(scores: Tensor, expected: Tensor, parameters: list[Tensor]) -> None:
    torch.testing.assert_close(scores, expected, rtol=1e-5, atol=1e-5)
    ours = torch.autograd.grad((scores**2).sum(), parameters, allow_unused=True)
    theirs = torch.autograd.grad((expected**2).sum(), parameters, allow_unused=True)
    for mine, plain, parameter in zip(ours, theirs, parameters, strict=True):
        gradient, other = (torch.zeros_like(parameter) if g is None else g for g in (mine, plain))
        torch.testing.assert_close(gradient, other, rtol=1e-4, atol=1e-4)
