"""Exact search over sparse rows: half-path product, top-k kernels, hits.

`products` multiplies the steps of a meta-path into `Factors`, `formula` says what a score is, and `topk` ranks the
targets of a query by it, through the numba kernels and, for many queries, an `index`. `Scorer` is the contract of all
measures and models and returns `Hits`; `join` writes the hits of all queries. `cache` keeps the products of a graph.

What takes long to compute of a graph goes through `cache.cached(hin, key, build, form)`. It stays in memory while the
graph is there. With a `FileForm(pack, unpack)`, where `pack` turns the value into `Arrays(arrays by name, facts for
JSON)` and `unpack` back, it also stays on disk beside the store that the graph comes from, for the next process.

May import graph, _runtime and errors.
"""
