"""Exact search over sparse rows: half-path product, top-k kernels, hits.

`products` multiplies the steps of a meta-path into `Factors`, `topk` ranks the targets of a query by a normalised
product, through the numba kernels and, for many queries, an `index`. `Scorer` is the contract of all measures and
models and returns `Hits`; `join` writes the hits of all queries. `cache` keeps the products of a graph.

May import graph, _runtime and errors.
"""
