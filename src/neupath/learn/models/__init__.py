"""The networks that learn, one file per model, and the base classes Model, PairModel and EmbeddingBaseline.

`neupath.py` holds NeuPath as published, `improved_neupath.py` what its default variant adds, `rgcn.py` and `nbfnet.py`
two published networks that users train too; `model.py` and `training.py` hold what all share. A new architecture is one
file here and one line in `learn/registry.py`, or a plug-in, as those of `neupath_paper` are. Of the rooms only this
package imports torch. It may import from `learn.labels`, `engine`, `graph` and `_runtime`.
"""

from neupath.errors import MissingExtraError

try:
    import safetensors  # noqa: F401
    import torch  # noqa: F401
except ModuleNotFoundError as error:
    raise MissingExtraError("torch and safetensors", "neupath[learn]") from error

from neupath.learn.models.embedding_baseline import EmbeddingBaseline
from neupath.learn.models.model import Model, PairModel
from neupath.learn.models.nbfnet import NBFNet
from neupath.learn.models.neupath import NeuPath
from neupath.learn.models.rgcn import RGCN

__all__ = ["RGCN", "EmbeddingBaseline", "Model", "NBFNet", "NeuPath", "PairModel"]
