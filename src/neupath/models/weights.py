"""The weights of a model as a file, with what it was trained on."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import NotRequired, TypedDict

from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from neupath.files import write_whole
from neupath.schema import Schema

WEIGHTS = "weights.safetensors"


class About(TypedDict):
    """What a model was trained on: the node type it ranks, the schema, and a digest of the nodes."""

    node_type: str
    schema: dict[str, list[str]]
    nodes: NotRequired[str]


def write_weights(path: Path, tensors: dict[str, Tensor], about: About) -> None:
    """Write the tensors of a model, with what it was trained on."""
    write_whole(path, lambda temporary: save_file(tensors, temporary, metadata={"about": json.dumps(about)}))


def read_weights(path: Path) -> tuple[About, dict[str, Tensor]]:
    """Read what `write_weights` wrote."""
    with safe_open(path, framework="pt") as file:
        about: About = json.loads((file.metadata() or {})["about"])
    if not isinstance(about["node_type"], str) or not isinstance(about["schema"], dict):
        raise ValueError("it does not say what it was trained on")
    return about, load_file(path)


def schema_summary(schema: Schema) -> dict[str, list[str]]:
    """Return what two graphs must share for one model to fit both."""
    return {"node_types": list(schema.node_types), "relations": [str(relation) for relation in schema.relations]}


def schema_difference(trained: dict[str, list[str]], given: dict[str, list[str]]) -> str:
    """Say what a graph lacks, or has too much, for a model."""
    missing = _differences(trained, given)
    extra = _differences(given, trained)
    told = "; ".join(
        f"{what} {', '.join(parts)}" for what, parts in (("missing:", missing), ("unknown:", extra)) if parts
    )
    return (
        f"the graph does not have the schema the model was trained on ({told or 'another order of types or relations'})"
    )


def _differences(one: dict[str, list[str]], other: dict[str, list[str]]) -> Iterable[str]:
    return [part for key in one for part in one[key] if part not in other[key]]
