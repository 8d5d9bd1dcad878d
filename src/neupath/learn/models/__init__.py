"""Learned scorers, one file a model; the only place that needs torch."""

from pathlib import Path
from typing import Any, cast

from neupath.engine.scorer import read_saved
from neupath.errors import MissingExtraError, QueryError, SourceError, did_you_mean, listed
from neupath.graph.hin import HIN

try:
    import safetensors
    import torch  # noqa: F401
except ImportError as error:
    raise MissingExtraError("torch and safetensors", "neupath[learn]") from error

from neupath.learn.models.countpath import CountPath
from neupath.learn.models.embedding_baseline import PairBaseline
from neupath.learn.models.message_passing import GAT, GCN, GIN, HGT, MLP, RGCN, SAGE
from neupath.learn.models.metapath_gnns import GTN, HAN
from neupath.learn.models.model import WEIGHTS, Model, PairModel, read_weights
from neupath.learn.models.nbfnet import NBFNet
from neupath.learn.models.neupath import NeuPath
from neupath.learn.models.walk_embeddings import MetaPath2Vec, Node2Vec, WalkEmbedding

BASELINES: dict[str, type[PairBaseline]] = {
    model.name: model for model in (MLP, GCN, GAT, SAGE, GIN, RGCN, HAN, HGT, GTN, NBFNet)
}
MODELS: dict[str, type[PairModel]] = {NeuPath.name: NeuPath, CountPath.name: CountPath, **BASELINES}


EMBEDDINGS: dict[str, type[WalkEmbedding]] = {model.name: model for model in (Node2Vec, MetaPath2Vec)}
"""Those that learn without labels."""


def model_named(name: str, **settings: Any) -> PairModel:
    """Make the model with this name; `layers` says how far it sees, whatever the model itself calls it.

    >>> model_named("countpath", layers=3).params()["half_length"]
    3
    """
    if name not in MODELS:
        raise QueryError(f"no model {name!r} (there are {listed(MODELS, 20)}){did_you_mean(name, MODELS)}")
    made: Any = MODELS[name]
    taken = {"layers" if setting == made.reach else setting for setting in (*made().params(), "device")}
    for setting in settings:
        if setting not in taken:
            raise QueryError(f"a {name} model has no {setting}; it has {listed(sorted(taken), 20)}")
    given = {made.reach if setting == "layers" else setting: value for setting, value in settings.items()}
    model: PairModel = made(**given)
    return model


def load_model(folder: str | Path, hin: HIN, device: str | None = None) -> Model:
    """Read a saved model and bind it to a graph with the schema it was trained on."""
    name, params = read_saved(folder)
    known: dict[str, Any] = {**MODELS, **EMBEDDINGS}
    if name not in known:
        raise SourceError(f"{folder} holds a scorer named {name!r}, which is not one of {listed(known, 20)}")
    path, made, settings = Path(folder) / WEIGHTS, known[name], cast(Any, params)
    try:
        model: Model = made(**settings, device=device)
        about, tensors = read_weights(path)
    except (safetensors.SafetensorError, KeyError, ValueError, TypeError, OSError) as error:
        raise SourceError(f"{path} is not a {made.__name__} model that can be read: {error}") from error
    model.check_graph(about, hin)
    model.node_type_ = about["node_type"]
    try:
        model._restore(hin, tensors)
    except (RuntimeError, KeyError) as error:
        raise SourceError(f"{path} does not hold the weights that {folder}/config.json describes") from error
    return model


__all__ = [
    "BASELINES",
    "EMBEDDINGS",
    "GAT",
    "GCN",
    "GIN",
    "GTN",
    "HAN",
    "HGT",
    "MLP",
    "MODELS",
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
    "load_model",
    "model_named",
]
