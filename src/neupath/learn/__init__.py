"""Learning what similar means: labels, inference from examples, models, their training and evaluation, and the paper.

`labels` reads and draws labelled pairs, `inference` finds meta-paths that explain them, `models` has the architectures,
`training_run` trains and saves one, `evaluation` compares a scorer with an exact measure, `reproduce` makes the paper's
tables. `registry` names all architectures and turns a request (measure, meta-path, node type, model) into a scorer.

May import explain, measures, io, engine, graph, _runtime and errors.
"""
