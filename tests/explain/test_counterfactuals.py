"""Counterfactuals: equal to exhaustive search on small graphs, and true when the graph is really changed."""
