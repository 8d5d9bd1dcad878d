"""The networks of this package by name, for the entry points in pyproject.toml; to list them imports no torch."""

from neupath.learn.registry import Architecture

MLP = Architecture("neupath_paper.message_passing:MLP")
GCN = Architecture("neupath_paper.message_passing:GCN")
GAT = Architecture("neupath_paper.message_passing:GAT")
SAGE = Architecture("neupath_paper.message_passing:SAGE")
GIN = Architecture("neupath_paper.message_passing:GIN")
HGT = Architecture("neupath_paper.message_passing:HGT")
HAN = Architecture("neupath_paper.metapath_gnns:HAN")
GTN = Architecture("neupath_paper.metapath_gnns:GTN")
SIMPLEHGN = Architecture("neupath_paper.simplehgn:SimpleHGN")
LIGHTGCN = Architecture("neupath_paper.lightgcn:LightGCN")
COUNTPATH = Architecture("neupath_paper.countpath:CountPath", lacks=("dim", "paths"))
NODE2VEC = Architecture("neupath_paper.walk_embeddings:Node2Vec", learns_from="node_type")
METAPATH2VEC = Architecture("neupath_paper.walk_embeddings:MetaPath2Vec", learns_from="metapath")
