"""What a network is.

`metapath` has the node types and relations of a graph (`Schema`, `Relation`) and the meta-paths over them (`MetaPath`);
`nodes` the ids, names and attributes of one node type (`Nodes`); `edges` the rows of a relation (`Edges`), over which
its matrix is an index; `hin` the graph itself (`HIN`), which never changes; `exports` a graph for other libraries;
`summary` what `neupath info` shows, `browsing` a node and its neighbours. May import _runtime and errors.
"""
