"""LearnedScorer: models that learn from labelled pairs."""

import copy
import json
import os
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar, NotRequired, Self, TypedDict, cast

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from neupath._runtime.files import write_whole
from neupath.engine.scorer import Scorer
from neupath.errors import QueryError, SchemaError, SourceError
from neupath.graph.hin import HIN, digest_nodes
from neupath.graph.nodes import Id
from neupath.graph.schema import Schema
from neupath.learn.labels import Pairs, Protocol, draw_pairs, read_pairs
from neupath.learn.models.distributed import ALONE, ProcessGroup, run_together
from neupath.learn.models.training import Epoch, Watch

# ---- The weights of a model as a file, with what it was trained on -------------------------------
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


# ---- Model ---------------------------------------------------------------------------------------
class Model(Scorer):
    """A scorer of pairs of one node type that has learned something it must keep."""

    exact = False
    inductive: ClassVar[bool] = True
    """Whether it can score nodes that it was not trained with."""
    renamed_params: ClassVar[dict[str, str]] = {}
    """Former names of parameters, as they stand in models that were saved with them."""
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

    @cached_property
    def identity(self) -> object:
        """What copies share that have learned the same; training again ends it."""
        return object()

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

    @classmethod
    def from_folder(cls, folder: Path, params: dict[str, Any], hin: HIN, device: str | None = None) -> Self:
        """Make the model that `save` wrote to a folder with these parameters, bound to a graph of its schema."""
        path, make = folder / WEIGHTS, cast(Any, cls)
        settings = {cls.renamed_params.get(name, name): value for name, value in params.items()}
        try:
            model: Self = make(**settings, device=device)
            about, tensors = read_weights(path)
        except (SafetensorError, KeyError, ValueError, TypeError, OSError) as error:
            raise SourceError(f"{path} is not a {cls.__name__} model that can be read: {error}") from error
        model.check_graph(about, hin)
        model.node_type_ = about["node_type"]
        try:
            model._restore(hin, tensors)
        except (RuntimeError, KeyError) as error:
            raise SourceError(f"{path} does not hold the weights that {folder}/config.json describes") from error
        return model

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


# ---- LearnedScorer -------------------------------------------------------------------------------
QUERIES_A_BATCH = 8


class PairModel(Model):
    """A scorer that learns from labelled pairs of one node type, and is never told a meta-path."""

    learns_together: ClassVar[bool] = False
    """Whether several processes can share its batches."""
    team: ProcessGroup = ALONE
    seed: int
    batch_size: int | None
    log_: list[Epoch]
    validation_rmse_: float | None = None
    """The error on the labels kept for choosing the best epoch; nothing where there were too few queries for it."""

    def fit(
        self,
        hin: HIN,
        pairs: Any = None,
        *,
        teacher: Scorer | None = None,
        queries: Sequence[Id] | None = None,
        protocol: Protocol = "strict",
        validation: Sequence[Id] | None = None,
        folder: str | Path | None = None,
        watch: Watch = lambda *_: None,
        processes: int = 1,
    ) -> Self:
        """Learn from labelled pairs, or from labels drawn from an exact measure, the `teacher`, for some queries.

        `pairs` is a CSV file, a table, or tuples of (query, target, score). One query in five is kept for choosing the
        best epoch, unless `validation` names such queries for the teacher; with fewer than five, none is. With a
        `folder`, an interrupted run goes on where it stopped. Several `processes` share the queries of each batch; a
        script that asks for them needs the usual `if __name__ == "__main__":`.
        """
        self.__dict__.pop("identity", None)
        learn, check = split_labels(hin, pairs, teacher, queries, protocol, validation, self.seed)
        labelled = len(np.unique(learn.queries))
        if self.batch_size is not None and self.batch_size > labelled:
            raise QueryError(
                f"batch_size is {self.batch_size} queries, and the labels to learn from are of {labelled}; "
                f"use at most {labelled}, or leave it out"
            )
        kept = None if folder is None else Path(folder)
        if processes == 1:
            self._learn(hin, learn, check, kept, watch)
        else:
            self._learn_together(hin, learn, check, kept, watch, processes)
        return self

    def _learn_together(
        self, hin: HIN, learn: Pairs, check: Pairs, folder: Path | None, watch: Watch, processes: int
    ) -> None:
        """Learn on several processes, of which this is the first."""
        if processes < 1:
            raise QueryError(f"processes is {processes}; use at least 1")
        if not self.learns_together:
            raise QueryError(f"a {self.name} model learns in one process; leave out processes")

        def learn_here(_: Any, team: ProcessGroup, device: torch.device) -> None:
            self.team, before = team, self.device
            self.device = device
            try:
                self._learn(hin, learn, check, folder, watch)
            finally:
                self.team, self.device = ALONE, before

        given = type(self), self.params(), hin, learn, check, folder
        run_together(_learn_there, given, processes, self.device, here=learn_here)

    @abstractmethod
    def _learn(self, hin: HIN, learn: Pairs, check: Pairs, folder: Path | None, watch: Watch) -> None:
        """Learn from some labels, and choose the best epoch by others."""


def _learn_there(given: Any, team: ProcessGroup, device: torch.device) -> None:
    """Learn in a process that is not the first, and whose model is forgotten when it ends."""
    kind, params, hin, learn, check, folder = given
    model: PairModel = kind(**params, device=device.type)
    model.team, model.device = team, device
    model._learn(hin, learn, check, folder, lambda *_: None)


def split_labels(
    hin: HIN,
    pairs: Any,
    teacher: Scorer | None,
    queries: Sequence[Id] | None,
    protocol: Protocol,
    validation: Sequence[Id] | None,
    seed: int,
) -> tuple[Pairs, Pairs]:
    """Return the labels to learn from and those to choose the best epoch by, a fifth of the queries unless given."""
    if not 0 <= seed < 2**63:
        raise QueryError(f"seed is {seed}; it must lie between 0 and 2^63")
    if (pairs is None) == (teacher is None):
        raise QueryError("give either labelled pairs or a teacher to draw labels from")
    if teacher is None:
        every = read_pairs(hin, pairs)
    else:
        if queries is None:
            raise QueryError("a teacher needs the ids of the queries to draw labels for")
        every = draw_pairs(teacher, queries, protocol, seed=seed)
        if validation is not None and len(validation):
            return every, draw_pairs(teacher, validation, protocol, seed=seed + 1)
    distinct = np.random.default_rng(seed).permutation(np.unique(every.queries))
    cut = len(distinct) // 5
    return every.of_queries(distinct[cut:]), every.of_queries(distinct[:cut])
