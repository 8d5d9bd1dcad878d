"""The one training loop of all models: AdamW, cosine annealing, clipping, the best validation epoch, and resuming."""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from time import perf_counter

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from neupath._runtime.files import write_text, write_whole
from neupath.errors import QueryError, SourceError
from neupath.graph.hin import HIN, digest
from neupath.learn.labels import Pairs
from neupath.learn.models.distributed import ALONE, ProcessGroup

CHECKPOINT, LOG = "checkpoint.safetensors", "log.jsonl"

Loss = Callable[[object], Tensor]
"""Takes a batch, returns its mean squared error."""
Watch = Callable[["Epoch", int], None]
"""Hears of each epoch as it ends, and how many there are."""


@dataclass(frozen=True)
class Recipe:
    """How to train."""

    epochs: int = 30
    learning_rate: float = 5e-4
    weight_decay: float = 0.01
    clip: float = 1.0
    patience: int = 10
    """Epochs without a better validation loss after which training stops."""
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("epochs", "learning_rate", "patience"):
            if not 0 < getattr(self, name) < math.inf:
                raise QueryError(f"{name} is {getattr(self, name)}; it must be more than 0, and finite")


@dataclass(frozen=True)
class Epoch:
    """What one epoch came to: root mean squared errors, and the seconds it took."""

    epoch: int
    train_rmse: float
    validation_rmse: float
    seconds: float


@dataclass
class _State:
    """Where a run stands."""

    epoch: int = 0
    step: int = 0
    best: float = math.inf
    best_epoch: int = 0
    log: list[Epoch] = field(default_factory=list)


def train(
    model: nn.Module,
    loss: Loss,
    batches: Sequence[object],
    validation: Sequence[object],
    recipe: Recipe,
    folder: Path | None = None,
    watch: Watch = lambda *_: None,
    *,
    fingerprint: str = "",
    team: ProcessGroup = ALONE,
) -> list[Epoch]:
    """Train a model and leave it with the weights of its best validation epoch; return the log.

    With a folder, every epoch is kept there: a run that was interrupted goes on from its last epoch, with the same
    result as if it had never stopped. The `fingerprint` stands for the graph, labels and settings: a run of others is
    refused. A `team` trains together, each process on its share of every batch.
    """
    optimizer = torch.optim.AdamW(model.parameters(), lr=recipe.learning_rate, weight_decay=recipe.weight_decay)
    best = [parameter.detach().clone() for parameter in model.parameters()]
    state = _State()
    if folder is not None and (folder / CHECKPOINT).is_file():
        state = _resume(folder / CHECKPOINT, model, optimizer, best, _made_by(recipe, fingerprint))
    while state.epoch < recipe.epochs and state.epoch - state.best_epoch < recipe.patience:
        began = perf_counter()
        squared = _run_epoch(model, loss, batches, optimizer, recipe, state, team)
        with torch.no_grad():
            held_out = float(np.mean([_whole(loss(batch), team) for batch in validation])) if validation else squared
        state.epoch += 1
        if held_out < state.best:
            state.best, state.best_epoch = held_out, state.epoch
            for kept, parameter in zip(best, model.parameters(), strict=True):
                kept.copy_(parameter.detach())
        state.log.append(Epoch(state.epoch, math.sqrt(squared), math.sqrt(held_out), perf_counter() - began))
        if folder is not None and team.rank == 0:
            _keep(folder, model, optimizer, best, state, _made_by(recipe, fingerprint))
        watch(state.log[-1], recipe.epochs)
    with torch.no_grad():
        for kept, parameter in zip(best, model.parameters(), strict=True):
            parameter.copy_(kept)
    return state.log


def _made_by(recipe: Recipe, fingerprint: str) -> str:
    return json.dumps(asdict(recipe) | {"fingerprint": fingerprint})


def fingerprint_of(hin: HIN, labels: Sequence[Pairs], params: Mapping[str, object]) -> str:
    """Return a text that differs between runs with different graphs, labels or settings."""
    found = sha256(json.dumps([digest(hin), [pairs.node_type for pairs in labels], dict(params)]).encode())
    for pairs in labels:
        for column in (pairs.queries, pairs.targets, pairs.scores):
            found.update(np.ascontiguousarray(column).tobytes())
    return found.hexdigest()


def _run_epoch(
    model: nn.Module,
    loss: Loss,
    batches: Sequence[object],
    optimizer: torch.optim.Optimizer,
    recipe: Recipe,
    state: _State,
    team: ProcessGroup,
) -> float:
    """Take one step a batch, in an order that the seed and the epoch alone decide; return the mean loss."""
    total = recipe.epochs * len(batches)
    losses = []
    for number in np.random.default_rng([recipe.seed, state.epoch]).permutation(len(batches)):
        for group in optimizer.param_groups:
            group["lr"] = recipe.learning_rate * (1 + math.cos(math.pi * state.step / total)) / 2
        optimizer.zero_grad()
        value = loss(batches[number])
        value.backward()  # type: ignore[no-untyped-call]
        if team.size > 1:
            team.add_up([_gradient(parameter) for parameter in model.parameters()])
        nn.utils.clip_grad_norm_(model.parameters(), recipe.clip)
        optimizer.step()
        state.step += 1
        losses.append(_whole(value.detach(), team))
    return float(np.mean(losses))


def _gradient(parameter: nn.Parameter) -> Tensor:
    if parameter.grad is None:  # nothing of this process's share depends on it
        parameter.grad = torch.zeros_like(parameter)
    return parameter.grad


def _whole(value: Tensor, team: ProcessGroup) -> float:
    """Return the loss of a batch, of which this process has its share."""
    team.add_up([value])
    return float(value)


def _tensors(model: nn.Module, optimizer: torch.optim.Optimizer, best: list[Tensor]) -> Iterator[tuple[str, Tensor]]:
    """Name every tensor of a run: weights, the optimizer's moments, and the best weights so far."""
    for number, (name, parameter) in enumerate(model.named_parameters()):
        moments = optimizer.state[parameter]
        yield f"weight.{name}", parameter.detach()
        yield f"best.{name}", best[number]
        yield f"first.{name}", moments["exp_avg"]
        yield f"second.{name}", moments["exp_avg_sq"]


def _keep(
    folder: Path, model: nn.Module, optimizer: torch.optim.Optimizer, best: list[Tensor], state: _State, made_by: str
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {name: tensor.cpu().contiguous() for name, tensor in _tensors(model, optimizer, best)}
    about = {"state": json.dumps(asdict(state)), "made_by": made_by}
    write_whole(folder / CHECKPOINT, lambda temporary: save_file(tensors, temporary, metadata=about))
    write_text(folder / LOG, "".join(json.dumps(asdict(epoch)) + "\n" for epoch in state.log))


def _resume(path: Path, model: nn.Module, optimizer: torch.optim.Optimizer, best: list[Tensor], made_by: str) -> _State:
    try:
        with safe_open(path, framework="pt") as file:
            about = file.metadata() or {}
            saved = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            state, other = json.loads(about["state"]), about["made_by"]
    except (SafetensorError, KeyError, ValueError, OSError) as error:
        raise SourceError(
            f"{path} is not a checkpoint that can be resumed ({error}); remove it to start anew"
        ) from error
    if made_by != other:
        raise SourceError(f"{path} is of a run with another graph, other labels or settings; remove it to start anew")
    step = torch.tensor(float(state["step"]))
    try:
        with torch.no_grad():
            for number, (name, parameter) in enumerate(model.named_parameters()):
                parameter.copy_(saved[f"weight.{name}"])
                best[number].copy_(saved[f"best.{name}"])
                first, second = (saved[f"{moment}.{name}"].to(parameter.device) for moment in ("first", "second"))
                optimizer.state[parameter] = {"step": step.clone(), "exp_avg": first, "exp_avg_sq": second}
    except (KeyError, RuntimeError) as error:
        raise SourceError(f"{path} is of a model of another shape; remove it to start anew") from error
    return _State(**(state | {"log": [Epoch(**epoch) for epoch in state["log"]]}))
