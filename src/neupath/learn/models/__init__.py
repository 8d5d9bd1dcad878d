"""Learned scorers, one file a model; the only place that needs torch."""

from neupath.errors import MissingExtraError

try:
    import safetensors  # noqa: F401
    import torch  # noqa: F401
except ImportError as error:
    raise MissingExtraError("torch and safetensors", "neupath[learn]") from error

from neupath.learn.models.countpath import CountPath
from neupath.learn.models.embedding_baseline import PairBaseline
from neupath.learn.models.message_passing import GAT, GCN, GIN, HGT, MLP, RGCN, SAGE
from neupath.learn.models.metapath_gnns import GTN, HAN
from neupath.learn.models.model import Model, PairModel
from neupath.learn.models.nbfnet import NBFNet
from neupath.learn.models.neupath import NeuPath
from neupath.learn.models.walk_embeddings import MetaPath2Vec, Node2Vec, WalkEmbedding

__all__ = [
    "GAT",
    "GCN",
    "GIN",
    "GTN",
    "HAN",
    "HGT",
    "MLP",
    "RGCN",
    "SAGE",
    "CountPath",
    "MetaPath2Vec",
    "Model",
    "NBFNet",
    "NeuPath",
    "Node2Vec",
    "PairBaseline",
    "PairModel",
    "WalkEmbedding",
]
