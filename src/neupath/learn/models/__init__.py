"""The architectures that learn, one file per model or family, and the base classes Model, PairModel, EmbeddingBaseline.

`neupath.py` holds NeuPath, `countpath.py` CountPath, the other files published baselines; `model.py` and `training.py`
hold what all share. A new architecture is one file here and one line in `learn/registry.py`. Only this package imports
torch. It may import from `learn.labels`, `engine`, `graph` and `_runtime`.
"""

from neupath.errors import MissingExtraError

try:
    import safetensors  # noqa: F401
    import torch  # noqa: F401
except ModuleNotFoundError as error:
    raise MissingExtraError("torch and safetensors", "neupath[learn]") from error

from neupath.learn.models.countpath import CountPath
from neupath.learn.models.embedding_baseline import EmbeddingBaseline
from neupath.learn.models.lightgcn import LightGCN
from neupath.learn.models.message_passing import GAT, GCN, GIN, HGT, MLP, RGCN, SAGE
from neupath.learn.models.metapath_gnns import GTN, HAN
from neupath.learn.models.model import Model, PairModel
from neupath.learn.models.nbfnet import NBFNet
from neupath.learn.models.neupath import NeuPath
from neupath.learn.models.simplehgn import SimpleHGN
from neupath.learn.models.walk_embeddings import MetaPath2Vec, Node2Vec

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
    "EmbeddingBaseline",
    "LightGCN",
    "MetaPath2Vec",
    "Model",
    "NBFNet",
    "NeuPath",
    "Node2Vec",
    "PairModel",
    "SimpleHGN",
]
