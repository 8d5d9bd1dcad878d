"""NeuPath's forward pass written plainly: every node, every edge, one query, as the paper's equations stand."""

import torch
from torch import Tensor

from neupath import HIN
from neupath.learn.models.flat_graph import FlatGraph
from neupath.learn.models.neupath import Decoder, Encoder


def score_all(encoder: Encoder, decoder: Decoder, graph: FlatGraph, query: int) -> Tensor:
    """Return the score of every node of a graph for one query; shape (nodes,)."""
    count, slots, dim = len(graph.types), encoder.slots, encoder.dim
    h = torch.zeros(count, slots, dim, dtype=next(encoder.parameters()).dtype)
    h[:, 0, 1] = 1
    h[query, 0] = 0
    h[query, 0, 0] = 1
    filled = torch.zeros(count, slots, dtype=torch.bool)
    filled[:, 0] = True
    for layer in encoder.layers:
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
                stacked = torch.stack(candidates)
                if encoder.pooling in ("tmax", "max"):
                    best = stacked.sort(dim=0, descending=True).values[:slots]
                    pooled = torch.cat([best, pooled[len(best) :]])
                else:
                    whole = stacked.sum(dim=0) if encoder.pooling == "sum" else stacked.mean(dim=0)
                    pooled = whole.unsqueeze(0)
            full = filled[t] | (torch.arange(slots) < len(candidates))
            updated = layer.update(torch.cat([h[t], pooled], dim=-1))
            rows.append(updated * full.unsqueeze(-1))
            marks.append(full)
        h, filled = torch.stack(rows), torch.stack(marks)
    return decoder(h)


def network(hin: HIN, dim: int, layers: int, slots: int, pooling: str, seed: int) -> tuple[Encoder, Decoder, FlatGraph]:
    from neupath.learn.models.flat_graph import edge_kinds

    torch.manual_seed(seed)
    kinds = max(1, len(edge_kinds(hin.schema)))
    encoder = Encoder(dim, layers, slots, len(hin.schema.node_types), kinds, pooling)
    return encoder, Decoder(dim, slots), FlatGraph.of(hin)
