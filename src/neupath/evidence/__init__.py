"""Why two nodes are similar, what would change it, and how far to trust it.

`explanation` has `explain`, which splits the score of a measure over nodes and paths and says why a node is no hit,
and `explain_set`, which splits that of a set of nodes. `model_explanation` has `explain_model`, for a combination or a
learned model. `groups` has the split itself. `relate` finds the meta-paths that join two nodes, `promising` those that
tell most of one. `comparison` sets rankings side by side. `html_report` writes a page, and `drawing`, imported only for
a picture, draws one.

`counterfactuals` has `what_if`: the fewest edges or nodes that decide whether a target is among the best
(`counterfactual_problem` has what may change). `permutation` makes graphs with all degrees kept, and `significance`
p-values from them. `stability` has the intervals of ranks when edges or nodes are missing.

May import measures, engine, graph, _runtime and errors.
"""
