"""Why two nodes are similar, what would change it, and how far to trust it.

`explanation` has `explain`, which splits the score of a measure over the paths between two nodes, and `explain_model`,
which does so for a combination or a learned model. `drawing` draws an explanation with matplotlib, and is imported only
for a picture.

`counterfactuals` has `what_if`: the fewest edges or nodes that decide whether a target is among the best
(`counterfactual_problem` has what may change). `permutation` makes graphs with all degrees kept, and `significance`
p-values from them. `stability` has the intervals of ranks when edges or nodes are missing.

May import measures, engine, graph, _runtime and errors.
"""
