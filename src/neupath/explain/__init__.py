"""Why two nodes are similar: path instances, meta-paths of a combination, attention of a model, and drawings.

`explanation` has `explain`, which splits the score of a measure over the paths between two nodes, and `explain_model`,
which does so for a combination or a learned model. `drawing` draws an explanation with matplotlib, and is imported only
for a picture.

May import measures, engine, graph, _runtime and errors.
"""
