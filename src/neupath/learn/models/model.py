"""Model and PairModel, the base classes of all architectures: training, saving, and moving to other graphs."""

import copy
import json
import os
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar, NotRequired, Self, TypedDict, Unpack, cast

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from neupath._runtime.files import write_whole
from neupath.engine.hits import check_whole
from neupath.engine.scorer import LearnedScorer
from neupath.errors import NotEnoughMemoryError, OtherNodesError, QueryError, SchemaError, SourceError, first_line
from neupath.graph.hin import HIN, Floats, check_graph, digest_nodes
from neupath.graph.metapath import Schema
from neupath.graph.nodes import Id, Rows
from neupath.learn.inference.fitting import rest_of
from neupath.learn.labels import LabelOptions, Pairs, check_one_type, collect_labels, draw_pairs, fingerprint
from neupath.learn.models.training import Epoch, EpochCallback, Recipe, RunOptions, ignore_epoch, train

WEIGHTS = "weights.safetensors"


# ---- Model ---------------------------------------------------------------------------------------
class TrainedOn(TypedDict):
    """What the weights file says about the training graph."""

    node_type: str
    schema: dict[str, list[str]]
    target_type: NotRequired[str]  # only where it is not that of the queries
    nodes: NotRequired[str]  # a digest, only where the model is not inductive


class Model(LearnedScorer):
    """Base class of scorers that learn.

    A subclass learns in `fit`, returns what it learned in `_tensors`, and takes it back in `_restore`.
    """

    saved_files = (WEIGHTS,)
    inductive: ClassVar[bool] = True
    """Whether it can score nodes that it was not trained with."""
    param_names: ClassVar[tuple[str, ...]]
    """The constructor's parameters that are saved; each is an attribute."""
    renamed_params: ClassVar[dict[str, str]] = {}
    """Former names of parameters, as older saved models have them."""
    device: torch.device
    node_type_: str
    """The type of the queries."""
    target_type_: str | None = None
    """The type of the targets, if it is another."""

    @property
    def source_type(self) -> str:
        self._fitted()
        return self.node_type_

    @property
    def target_type(self) -> str:
        return self.target_type_ or self.node_type_

    def params(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in self.param_names}

    @cached_property
    def identity(self) -> object:
        """Shared by all copies with the same weights; `fit` replaces it."""
        return object()

    @abstractmethod
    def _tensors(self) -> dict[str, Tensor]:
        """Return everything that was learned."""

    @abstractmethod
    def _restore(self, hin: HIN, tensors: dict[str, Tensor]) -> None:
        """Set what was learned, over a graph that `check_graph` accepts."""

    def bind(self, hin: HIN) -> Self:
        self.check_graph(self._trained_on(), hin)
        bound = copy.copy(self)
        bound._restore(hin, self._tensors())
        return bound

    def save(self, folder: str | Path) -> Path:
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        tensors = {name: tensor.cpu().contiguous() for name, tensor in self._tensors().items()}
        metadata = {"about": json.dumps(self._trained_on())}
        write_whole(target / WEIGHTS, lambda temporary: save_file(tensors, temporary, metadata=metadata))
        return super().save(target)

    @classmethod
    def from_folder(cls, folder: Path, params: dict[str, Any], hin: HIN, device: str | None = None) -> Self:
        """Read a saved model with these parameters and bind it to a graph."""
        path = folder / WEIGHTS
        settings = {cls.renamed_params.get(name, name): value for name, value in params.items()}
        try:
            model: Self = cast(Any, cls)(**settings, device=device)
            trained_on, tensors = _read_weights(path)
        except (SafetensorError, KeyError, ValueError, TypeError, OSError) as error:
            raise SourceError(f"{path} is not a {cls.__name__} model that can be read: {error}") from error
        model.check_graph(trained_on, hin)
        model.node_type_, model.target_type_ = trained_on["node_type"], trained_on.get("target_type")
        try:
            with names_full_gpu():
                model._restore(hin, tensors)
        except (RuntimeError, KeyError, TypeError, ValueError) as error:
            raise SourceError(
                f"{path} does not hold the weights that {folder}/config.json describes "
                f"({first_line(error).rstrip(':')}); train the model again"
            ) from error
        return model

    def fingerprint(self) -> str:
        digest = sha256()
        for name, tensor in sorted(self._tensors().items()):
            digest.update(name.encode() + tensor.detach().cpu().contiguous().numpy().tobytes())
        return digest.hexdigest()

    def _trained_on(self) -> TrainedOn:
        hin = self._fitted()
        trained_on: TrainedOn = {"node_type": self.node_type_, "schema": _summarise(hin.schema)}
        if self.target_type != self.node_type_:
            trained_on["target_type"] = self.target_type
        return trained_on if self.inductive else {**trained_on, "nodes": digest_nodes(hin)}

    def check_graph(self, trained_on: TrainedOn, hin: HIN) -> None:
        """Raise if a graph has another schema, or other nodes and the model is not inductive."""
        schema = _summarise(hin.schema)
        if trained_on["schema"] != schema:
            raise SchemaError(
                f"the graph does not have the schema the model was trained on "
                f"({_schema_difference(trained_on['schema'], schema)})"
            )
        if not self.inductive and trained_on.get("nodes") != digest_nodes(hin):
            raise OtherNodesError(
                f"a {self.name} model knows each node by features of its own, and this graph has other nodes than the "
                f"one it was trained on; train it on this graph"
            )


def _read_weights(path: Path) -> tuple[TrainedOn, dict[str, Tensor]]:
    with safe_open(path, framework="pt") as file:
        trained_on: TrainedOn = json.loads((file.metadata() or {})["about"])
    if not isinstance(trained_on["node_type"], str) or not isinstance(trained_on["schema"], dict):
        raise ValueError("it does not say what it was trained on")
    return trained_on, load_file(path)


def _check_sizes(params: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    """Raise if a size is larger than any that the weights have, before a network of that size is built.

    Each size is a dimension of some tensor, or the number of layers, each of which has tensors of its own.
    """
    most = max([len(tensors), *(length for tensor in tensors.values() for length in tensor.shape)])
    for name in ("dim", "layers", "paths", "channels"):
        value = params.get(name, 0)
        if not isinstance(value, int) or value > most:
            raise ValueError(f"{name} is {value}, and no dimension of the weights is larger than {most}")


def check_shapes(tensors: dict[str, Tensor], **shapes: tuple[int, ...]) -> None:
    """Raise a KeyError or ValueError unless there are tensors of these names and shapes."""
    for name, shape in shapes.items():
        if tuple(tensors[name].shape) != shape:
            raise ValueError(f"{name} has the shape {tuple(tensors[name].shape)} instead of {shape}")


def _summarise(schema: Schema) -> dict[str, list[str]]:
    return {"node_types": list(schema.node_types), "relations": [str(relation) for relation in schema.relations]}


def _schema_difference(trained: dict[str, list[str]], other: dict[str, list[str]]) -> str:
    missing = [part for key in trained for part in trained[key] if part not in other[key]]
    unknown = [part for key in other for part in other[key] if part not in trained[key]]
    parts = {"missing": missing, "unknown": unknown}
    differences = [f"{title}: {', '.join(names)}" for title, names in parts.items() if names]
    return "; ".join(differences) or "another order of types or relations"


# ---- Settings of all models ----------------------------------------------------------------------
def check_counts(least: int = 1, **counts: int | None) -> None:
    """Raise if a number is below the least one allowed; None means that the model chooses."""
    for parameter, value in counts.items():
        if value is not None:
            check_whole(parameter, value, least)


def check_seed(seed: int) -> None:
    """Raise if torch cannot take a seed."""
    if not 0 <= seed < 2**63:
        raise QueryError(f"‹seed› is {seed}; it must lie between 0 and 2^63", parameter="seed")


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Let torch draw from a seed inside the block, and restore its generator afterwards."""
    with torch.random.fork_rng(devices=[]):  # weights are drawn on the CPU
        torch.manual_seed(seed)
        yield


@contextmanager
def reproducible(device: torch.device) -> Iterator[None]:
    """Use deterministic sums on CUDA inside the block; on the CPU they always are."""
    if device.type != "cuda":
        yield  # to set what is set already would load the compiler of torch
        return
    settings: Any = torch.utils.deterministic
    before = torch.are_deterministic_algorithms_enabled(), settings.fill_uninitialized_memory
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True)
    settings.fill_uninitialized_memory = False  # it would write to every new tensor before its use
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before[0])
        settings.fill_uninitialized_memory = before[1]


@contextmanager
def names_full_gpu() -> Iterator[None]:
    """Raise NotEnoughMemoryError, with one sentence, if the GPU has too little free memory for the block."""
    try:
        yield
    except RuntimeError as error:
        reason = first_line(error).partition(" Process ")[0].rstrip(".")  # without the list of all processes
        if "out of memory" not in reason:
            raise
        raise NotEnoughMemoryError(
            f"the GPU is full ({reason}); free some of its memory, or set CUDA_VISIBLE_DEVICES=-1 to use the CPU"
        ) from None


def choose_device(device: str | None) -> torch.device:
    """Return the device with this name; without a name, CUDA if it is available, else the CPU."""
    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
        is_known = chosen.type in ("cpu", "cuda")
    except RuntimeError:
        is_known = False
    if not is_known:
        raise QueryError(f"‹device› is {device!r}; it can be 'cpu' or 'cuda'", parameter="device")
    if chosen.type == "cuda" and not torch.cuda.is_available():
        raise QueryError(f"‹device› is {device!r}, but no CUDA device is available here; use 'cpu'", parameter="device")
    return chosen


# ---- PairModel -----------------------------------------------------------------------------------
TRAINING_PARAMS = ("epochs", "batch_size", "learning_rate", "seed")


class TrainingOptions(TypedDict, total=False):
    """How to train; the constructor of every PairModel takes these."""

    epochs: int
    batch_size: int | None  # queries; all pairs of a query are in one batch
    learning_rate: float
    seed: int
    device: str | None  # "cpu" or "cuda"; by default CUDA if it is available


class PairNetwork(nn.Module):
    """A network over one graph that scores pairs of nodes of one type."""

    @abstractmethod
    def forward(self, queries: Tensor, targets: Tensor) -> Tensor:
        """Return the score of each pair of rows; shape (pairs,)."""

    @abstractmethod
    def score_all(self, queries: Sequence[int]) -> Tensor:
        """Return the score of each query with every target, independent of the other queries; (queries, targets)."""


class PairModel(Model):
    """Base class of models that learn from labelled pairs of one node type, without a meta-path.

    Loss = 1/M Σ w_ct·(y_ct - b_ct)², with b_ct the label of query c and target t, w_ct its weight (1 unless given), and
    y_ct the network's score.

    A subclass makes a `PairNetwork` in `_make_network`. One whose network is not a function of pairs alone overrides
    `_batches` and `_score_rows`, too, and `_loss` if its batches do not end with the labels and their weights.
    """

    supports_two_types: ClassVar[bool] = False
    """Whether queries and targets may be of different types."""
    records_steps: ClassVar[bool] = False
    """Whether its steps can be recorded as CUDA graphs: no value on the device decides what is computed."""
    queries_per_batch: ClassVar[int] = 40
    """The batch size unless `batch_size` is given."""
    network_: nn.Module
    log_: list[Epoch]
    validation_rmse_: float | None = None
    """The best epoch's error on the validation labels; None if there were too few queries to set some apart."""

    def __init__(
        self,
        *,
        epochs: int = 30,
        batch_size: int | None = None,
        learning_rate: float = 1e-3,
        seed: int = 0,
        device: str | None = None,
    ) -> None:
        check_counts(batch_size=batch_size)
        self.epochs, self.batch_size, self.learning_rate, self.seed = epochs, batch_size, learning_rate, seed
        self.device = choose_device(device)
        self.log_ = []

    def fit(
        self,
        hin: HIN,
        pairs: Any = None,
        *,
        validation: Sequence[Id] | None = None,
        folder: str | Path | None = None,
        on_epoch: EpochCallback = ignore_epoch,
        **options: Unpack[LabelOptions],
    ) -> Self:
        """Learn from labelled pairs, or from labels that an exact measure gives to some queries.

        Parameters
        ----------
        hin
            The graph.
        pairs
            A CSV file, a table, or tuples of (query, target, score); `read_pairs` says which labels it takes. Without
            scores, each pair is an example of a similar one, and random pairs are drawn against them.
        validation
            The ids of the teacher's queries that choose the best epoch. By default every fifth query does; with fewer
            than five queries, none does.
        folder
            Where to keep checkpoints. An interrupted run continues from the last one.
        on_epoch
            Called after each epoch, with it and the number of epochs.
        options
            The fields of `LabelOptions`.
        """
        check_graph(hin)
        self.__dict__.pop("identity", None)
        check_seed(self.seed)
        learn = collect_labels(hin, pairs, self.seed, **options)
        if not self.supports_two_types:
            check_one_type(learn, self.name)
        teacher = options.get("teacher")
        if teacher is None or not validation:
            learn, check = split_labels(learn, self.seed)
        else:
            check = draw_pairs(teacher, validation, options.get("protocol", "strict"), seed=self.seed + 1)
        labelled = len(np.unique(learn.queries))
        if self.batch_size is not None and self.batch_size > labelled:
            raise QueryError(
                f"‹batch_size› is {self.batch_size} queries, and the labels to learn from are of {labelled}; "
                f"use at most {labelled}, or leave it out",
                parameter="batch_size",
            )
        self._train(hin, learn, check, None if folder is None else Path(folder), on_epoch)
        return self

    def _train(self, hin: HIN, learn: Pairs, check: Pairs, folder: Path | None, on_epoch: EpochCallback) -> None:
        """Train the network on the labels in `learn`, and keep the epoch that is best on those in `check`."""
        self.node_type_, self.target_type_ = learn.node_type, learn.target_type
        made_by = fingerprint(hin, (learn, check), self.params())
        options = RunOptions(folder, made_by, on_epoch, self.records_steps)
        with names_full_gpu():
            self._set_network(hin)
            batches, validation = self._batches(learn), self._batches(check)
            with reproducible(self.device):
                self.log_ = train(self.network_, self._loss, batches, validation, self._recipe(), options)
        self.validation_rmse_ = min(epoch.validation_rmse for epoch in self.log_) if len(check) else None

    def _set_network(self, hin: HIN) -> None:
        self.hin_ = hin
        with seeded(self.seed):
            self.network_ = self._make_network(hin).to(self.device)

    @abstractmethod
    def _make_network(self, hin: HIN) -> nn.Module:
        """Make the network for a graph, with random weights from torch's generator."""

    def _recipe(self) -> Recipe:
        return Recipe(self.epochs, self.learning_rate, patience=self.epochs, seed=self.seed)

    def _batches(self, pairs: Pairs) -> Sequence[Any]:
        """Cut labelled pairs into batches, each with the queries, targets and labels of all pairs of some queries."""
        batches = []
        for queries in self._query_batches(pairs):
            part = pairs.of_queries(queries)
            sources, targets = (torch.from_numpy(rows.astype(np.int64)) for rows in (part.queries, part.targets))
            labels = torch.tensor(np.stack([part.scores, part.weights]), dtype=torch.float32, device=self.device)
            batches.append((sources.to(self.device), targets.to(self.device), labels))
        return batches

    def _query_batches(self, pairs: Pairs) -> list[Rows]:
        queries, step = np.unique(pairs.queries), self.batch_size or self.queries_per_batch
        return [queries[start : start + step] for start in range(0, len(queries), step)]

    def _loss(self, batch: Any) -> Tensor:
        *inputs, labels = batch
        return weighted_error(self.network_(*inputs), labels)

    def _score_rows(self, queries: Rows) -> Floats:
        network = cast(PairNetwork, self.network_)
        with names_full_gpu(), torch.no_grad(), reproducible(self.device):
            scores: Floats = network.score_all(queries.tolist()).cpu().double().numpy()
        return scores

    def _tensors(self) -> dict[str, Tensor]:
        return self.network_.state_dict()

    def _restore(self, hin: HIN, tensors: dict[str, Tensor]) -> None:
        _check_sizes(self.params(), tensors)
        self._set_network(hin)
        self.network_.load_state_dict(tensors)


def weighted_error(scores: Tensor, labels: Tensor) -> Tensor:
    """Return the mean squared error of some scores; `labels` are the labels and their weights, shape (2, pairs)."""
    return (labels[1] * (scores - labels[0]) ** 2).mean()


def split_labels(labels: Pairs, seed: int) -> tuple[Pairs, Pairs]:
    """Return the labels to learn from, and those of a fifth of the queries, which choose the best epoch.

    A label that was given in both directions is never learned from in one while it chooses in the other.
    """
    distinct = np.random.default_rng(seed).permutation(np.unique(labels.queries))
    held_out = np.flatnonzero(np.isin(labels.queries, distinct[: len(distinct) // 5]))
    rest = rest_of(held_out, labels.queries, labels.partners)
    if not len(rest):  # all are of one node, in both directions
        return labels, labels.take(rest)
    return labels.take(rest), labels.take(held_out)
