"""The paper beside the library: what it compares NeuPath with, and how its tables and figures are made.

A plug-in package of the same wheel, with the extra `paper`: its architectures and the command `reproduce` are found by
the entry points in pyproject.toml, as those of other packages are, and neupath imports none of it.

`protocol` has the presets, and the columns and printed numbers of the tables, `runs` the plan of each part and how
one run is executed, `reproduction` carries out a plan and resumes it, `reports` writes tables and figures, and
`real_labels` withholds relations of real graphs. The networks: `message_passing` (MLP, GCN, GAT, GraphSAGE, GIN, HGT),
`metapath_gnns` (HAN, GTN), `simplehgn`, `lightgcn`, `walk_embeddings` (node2vec, metapath2vec), `countpath`, and
`ablations` (NeuPath with other poolings, or without types).
"""
