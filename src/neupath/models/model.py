"""Model: what all learned scorers share, from the graph they fit to the files they are kept in."""

import copy
import os
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import ClassVar, Self

import torch
from torch import Tensor

from neupath.errors import QueryError, SchemaError
from neupath.following import Learned
from neupath.graph import HIN, digest_nodes
from neupath.models.weights import WEIGHTS, About, schema_difference, schema_summary, write_weights


class Model(Learned):
    """A scorer of pairs of one node type that has learned something it must keep."""

    exact = False
    inductive: ClassVar[bool] = True
    """Whether it can score nodes that it was not trained with."""
    device: torch.device
    node_type_: str

    @property
    def source_type(self) -> str:
        self._fitted()
        return self.node_type_

    @property
    def target_type(self) -> str:
        return self.source_type

    @property
    def metapath_text(self) -> str | None:
        return None

    @abstractmethod
    def _tensors(self) -> dict[str, Tensor]:
        """Return all that was learned."""

    @abstractmethod
    def _restore(self, hin: HIN, tensors: dict[str, Tensor]) -> None:
        """Take back what was learned, over a graph that fits."""

    def bind(self, hin: HIN) -> Self:
        """Return the same model over another graph with the same schema: new nodes, new edges, or all new."""
        self.check_graph(self._about(), hin)
        bound = copy.copy(self)
        bound._restore(hin, self._tensors())
        return bound

    def save(self, folder: str | Path) -> Path:
        """Write config.json, and weights.safetensors with the schema, to a folder."""
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        tensors = {name: tensor.cpu().contiguous() for name, tensor in self._tensors().items()}
        write_weights(target / WEIGHTS, tensors, self._about())
        return super().save(target)

    def fingerprint(self) -> str:
        """Return a text that differs where anything that was learned does."""
        found = sha256()
        for name, tensor in sorted(self._tensors().items()):
            found.update(name.encode() + tensor.detach().cpu().contiguous().numpy().tobytes())
        return found.hexdigest()

    def _about(self) -> About:
        hin = self._fitted()
        about: About = {"node_type": self.node_type_, "schema": schema_summary(hin.schema)}
        return about if self.inductive else {**about, "nodes": digest_nodes(hin)}

    def check_graph(self, trained: About, hin: HIN) -> None:
        """Refuse a graph that the model does not fit."""
        given = schema_summary(hin.schema)
        if trained["schema"] != given:
            raise SchemaError(schema_difference(trained["schema"], given))
        if not self.inductive and trained.get("nodes") != digest_nodes(hin):
            raise QueryError(
                f"a {self.name} model knows each node by features of its own, and this graph has other nodes than the "
                f"one it was trained on; train it on this graph"
            )


def check_counts(least: int = 1, **counts: int | None) -> None:
    """Refuse a number that is too small; None stands for what a model chooses itself."""
    for what, value in counts.items():
        if value is not None and value < least:
            raise QueryError(f"{what} is {value}; it must be at least {least}")


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Let torch draw from a seed for a while, and then from where it was."""
    with torch.random.fork_rng(devices=[]):  # weights are drawn on the CPU
        torch.manual_seed(seed)
        yield


@contextmanager
def reproducible(device: torch.device) -> Iterator[None]:
    """Make sums on CUDA come out the same every time, for a while; on the CPU they do anyway."""
    before = torch.are_deterministic_algorithms_enabled()
    if device.type == "cuda":
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)


def choose_device(device: str | None) -> torch.device:
    """Return the device asked for, or CUDA where there is one, or the CPU."""
    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
    except RuntimeError as error:
        raise QueryError(f"device is {device!r}; it can be 'cpu' or 'cuda'") from error
    if chosen.type not in ("cpu", "cuda"):
        raise QueryError(f"device is {device!r}; it can be 'cpu' or 'cuda'")
    if chosen.type == "cuda" and not torch.cuda.is_available():
        raise QueryError(f"device is {device!r}, but no CUDA device is available here; use 'cpu'")
    return chosen
