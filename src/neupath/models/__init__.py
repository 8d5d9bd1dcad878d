"""Learned scorers, one file a model; the only place that needs torch."""

from pathlib import Path

from neupath.errors import MissingExtraError, SourceError
from neupath.graph import HIN
from neupath.scorer import Scorer, read_saved

try:
    import safetensors  # noqa: F401
    import torch  # noqa: F401
except ImportError as error:
    raise MissingExtraError("torch and safetensors", "neupath[learn]") from error

from neupath.models.countpath import CountPath, load_countpath
from neupath.models.neupath import NeuPath, load_neupath

MODELS = {NeuPath.name: NeuPath, CountPath.name: CountPath}


def load_model(folder: str | Path, hin: HIN) -> Scorer:
    """Read a saved model and bind it to a graph with the schema it was trained on."""
    name, _ = read_saved(folder)
    if name == NeuPath.name:
        return load_neupath(folder, hin)
    if name == CountPath.name:
        return load_countpath(folder, hin)
    raise SourceError(f"{folder} holds a scorer named {name!r}, which is not one of {', '.join(MODELS)}")


__all__ = ["MODELS", "CountPath", "NeuPath", "load_countpath", "load_model", "load_neupath"]
