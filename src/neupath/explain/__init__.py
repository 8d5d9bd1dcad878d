"""Why two nodes are similar: groups of paths, meta-paths of a combination, attention of a model, and drawings.

`explanation` has `explain`, which splits the score of a measure over nodes and paths and says why a node is no hit, and
`explain_model`, which does so for a combination or a learned model. `groups` has the split itself. `relate` finds the
meta-paths that join two nodes. `html_report` writes a page, and `drawing`, imported only for a picture, draws one.

May import measures, engine, graph, _runtime and errors.
"""
