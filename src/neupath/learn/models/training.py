"""The training loop of all models: AdamW, cosine annealing, gradient clipping, early stopping, checkpoints."""

import json
import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from inspect import unwrap
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from neupath._runtime.files import write_text, write_whole
from neupath.errors import QueryError, SourceError

CHECKPOINT, LOG = "checkpoint.safetensors", "log.jsonl"
_REMOVE = "remove it to start again"


@dataclass(frozen=True)
class Recipe:
    """How to train."""

    epochs: int = 30
    learning_rate: float = 5e-4
    weight_decay: float = 0.01
    clip: float = 1.0
    patience: int = 10
    """Training stops after so many epochs without a better validation loss."""
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("epochs", "learning_rate", "patience"):
            value = getattr(self, name)
            if not 0 < value < math.inf:
                raise QueryError(f"‹{name}› is {value}; it must be more than 0, and finite", parameter=name)


@dataclass(frozen=True)
class Epoch:
    """The root mean squared errors of one epoch, and the seconds it took."""

    epoch: int
    train_rmse: float
    validation_rmse: float
    seconds: float


EpochCallback = Callable[[Epoch, int], object]
"""Takes each epoch as it ends, and the number of epochs there are at most; training stops if it returns `STOP`."""
STOP = object()


def ignore_epoch(_epoch: Epoch, _epochs: int) -> None:
    """Do nothing."""


def stop_after(seconds: float) -> EpochCallback:
    """Return a callback that stops training after the first epoch that ends so many seconds from now."""
    began = perf_counter()
    return lambda _epoch, _epochs: STOP if perf_counter() - began > seconds else None


@dataclass(frozen=True)
class RunOptions:
    """Where a run keeps its checkpoints, and who hears of it."""

    folder: Path | None = None
    """Each epoch is saved here; an interrupted run continues with the result it would have had without interruption."""
    fingerprint: str = ""
    """Stands for the graph, the labels and the settings; a checkpoint with another one is refused."""
    on_epoch: EpochCallback = ignore_epoch
    records: bool = False
    """Whether steps can be recorded as CUDA graphs: no value on the device decides what is computed."""


def train(
    network: nn.Module,
    loss: Callable[[Any], Tensor],
    batches: Sequence[Any],
    validation: Sequence[Any],
    recipe: Recipe,
    options: RunOptions,
) -> list[Epoch]:
    """Train a network, leave it with the weights of its best validation epoch, and return the log.

    `loss` returns the mean squared error of a batch.
    """
    run = _Run(network, loss, recipe, options)
    state = run.state
    while state.epoch < recipe.epochs and state.epoch - state.best_epoch < recipe.patience:
        began = perf_counter()
        with run.executor.running():
            train_loss = run.take_steps(batches)
            validation_loss = run.validate(validation) if len(validation) else train_loss
        state.epoch += 1
        if validation_loss < state.best:
            state.best, state.best_epoch = validation_loss, state.epoch
            run.keep_best()
        seconds = perf_counter() - began
        state.log.append(Epoch(state.epoch, math.sqrt(train_loss), math.sqrt(validation_loss), seconds))
        run.save()
        if options.on_epoch(state.log[-1], recipe.epochs) is STOP:
            break
    with torch.no_grad():
        for best, parameter in zip(run.best, network.parameters(), strict=True):
            parameter.copy_(best)
    return state.log


@dataclass
class _TrainingState:
    epoch: int = 0
    step: int = 0
    best: float = math.inf
    best_epoch: int = 0
    log: list[Epoch] = field(default_factory=list)


class _AdamW(torch.optim.AdamW):
    """AdamW that is never compiled: torch's own imports the compiler to say so, longer than many a model trains."""

    step = torch.no_grad()(unwrap(torch.optim.AdamW.step))
    zero_grad = unwrap(torch.optim.AdamW.zero_grad)
    add_param_group = unwrap(torch.optim.AdamW.add_param_group)


class _Run:
    """A network in training: its optimizer, the best weights so far, and the checkpoint."""

    def __init__(self, network: nn.Module, loss: Callable[[Any], Tensor], recipe: Recipe, options: RunOptions) -> None:
        self.network, self.loss, self.recipe, self.options = network, loss, recipe, options
        weights = list(network.parameters())
        is_cuda = any(weight.is_cuda for weight in weights)
        rate = torch.tensor(recipe.learning_rate, device=weights[0].device) if is_cuda else recipe.learning_rate
        self.optimizer = _AdamW(weights, rate, weight_decay=recipe.weight_decay, fused=is_cuda, capturable=is_cuda)
        self.executor = _Recorder() if is_cuda and options.records else _Executor()
        self.best = [weight.detach().clone() for weight in weights]
        self.made_by = json.dumps(asdict(recipe) | {"fingerprint": options.fingerprint})
        self.state = _TrainingState()
        if options.folder is not None and (options.folder / CHECKPOINT).is_file():
            self.state = self._resume(options.folder / CHECKPOINT)

    def take_steps(self, batches: Sequence[Any]) -> float:
        """Take one step per batch, in an order that depends on the seed and the epoch alone; return the mean loss."""
        recipe, state = self.recipe, self.state
        total = recipe.epochs * len(batches)
        losses = []
        for number in np.random.default_rng([recipe.seed, state.epoch]).permutation(len(batches)).tolist():
            self._set_rate(recipe.learning_rate * (1 + math.cos(math.pi * state.step / total)) / 2)
            self.optimizer.zero_grad()
            value = self.executor.run(("step", number), partial(self._step, batches[number]))
            state.step += 1
            losses.append(value)
        return _mean(losses)

    def validate(self, batches: Sequence[Any]) -> float:
        """Return the mean loss of some batches, without learning from them."""
        losses = []
        with torch.no_grad():
            for number, batch in enumerate(batches):
                value = self.executor.run(("validation", number), partial(self.loss, batch))
                losses.append(value)
        return _mean(losses)

    def _set_rate(self, rate: float) -> None:
        for group in self.optimizer.param_groups:
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate

    def _step(self, batch: Any) -> Tensor:
        value = self.loss(batch)
        value.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.network.parameters(), self.recipe.clip)
        self.optimizer.step()
        return value.detach()

    def keep_best(self) -> None:
        for best, parameter in zip(self.best, self.network.parameters(), strict=True):
            best.copy_(parameter.detach())

    def save(self) -> None:
        folder = self.options.folder
        if folder is None:
            return
        folder.mkdir(parents=True, exist_ok=True)
        tensors = {name: tensor.cpu().contiguous() for name, tensor in self._tensors()}
        metadata = {"state": json.dumps(asdict(self.state)), "made_by": self.made_by}
        write_whole(folder / CHECKPOINT, lambda temporary: save_file(tensors, temporary, metadata=metadata))
        write_text(folder / LOG, "".join(json.dumps(asdict(epoch)) + "\n" for epoch in self.state.log))

    def _tensors(self) -> Iterator[tuple[str, Tensor]]:
        """Yield what a checkpoint holds, by name; the tensors can be written to."""
        for number, (name, parameter) in enumerate(self.network.named_parameters()):
            moments = self.optimizer.state[parameter]
            yield f"weight.{name}", parameter.detach()
            yield f"best.{name}", self.best[number]
            yield f"first.{name}", moments["exp_avg"]
            yield f"second.{name}", moments["exp_avg_sq"]

    def _resume(self, path: Path) -> _TrainingState:
        try:
            with safe_open(path, framework="pt") as file:
                metadata = file.metadata() or {}
                saved = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
                state, made_by = json.loads(metadata["state"]), metadata["made_by"]
        except (SafetensorError, KeyError, ValueError, OSError) as error:
            raise SourceError(f"{path} is not a checkpoint that can be resumed ({error}); {_REMOVE}") from error
        if made_by != self.made_by:
            raise SourceError(f"{path} is of a run with another graph, other labels or settings; {_REMOVE}")
        for weight in self.network.parameters():
            moments = {"exp_avg": torch.zeros_like(weight), "exp_avg_sq": torch.zeros_like(weight)}
            where = weight.device if weight.is_cuda else None
            self.optimizer.state[weight] = {"step": torch.tensor(float(state["step"]), device=where), **moments}
        try:
            for name, tensor in self._tensors():
                tensor.copy_(saved[name])
        except (KeyError, RuntimeError) as error:
            raise SourceError(f"{path} is of a model of another shape; {_REMOVE}") from error
        return _TrainingState(**(state | {"log": [Epoch(**epoch) for epoch in state["log"]]}))


def _mean(losses: Sequence[Tensor]) -> float:
    return float(np.mean(torch.stack(list(losses)).tolist()))


# ---- Execution on a device -----------------------------------------------------------------------
class _Executor:
    """Runs what is to be computed for a batch."""

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run what is computed inside the block."""
        yield

    def run(self, key: Hashable, compute: Callable[[], Tensor]) -> Tensor:  # noqa: ARG002
        """Return what `compute` returns; the same key stands for the same computation on the same batch."""
        return compute()


class _Recorder(_Executor):
    """Records what is computed for each batch as a CUDA graph, and replays it.

    A step consists of hundreds of small kernels, which take longer to launch than to run. A computation runs as usual
    when it is first asked for, is recorded the second time, and replayed from then on, with the same result to the bit.
    """

    def __init__(self) -> None:
        self._stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        self._pool = torch.cuda.graph_pool_handle()
        self._graphs: dict[Hashable, tuple[torch.cuda.CUDAGraph, Tensor] | None] = {}

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run what is computed inside the block on a stream of its own, as recording needs."""
        outside = torch.cuda.current_stream()
        self._stream.wait_stream(outside)
        with torch.cuda.stream(self._stream):
            yield
        outside.wait_stream(self._stream)

    def run(self, key: Hashable, compute: Callable[[], Tensor]) -> Tensor:
        if key not in self._graphs:
            self._graphs[key] = None
            return compute()
        recorded = self._graphs[key]
        if recorded is None:
            recorded = self._graphs[key] = self._record(compute)
        graph, value = recorded
        graph.replay()
        return value.clone()  # the next replay overwrites it

    def _record(self, compute: Callable[[], Tensor]) -> tuple[torch.cuda.CUDAGraph, Tensor]:
        graph = torch.cuda.CUDAGraph()
        graph.capture_begin(pool=self._pool)
        try:
            value = compute()
        finally:
            graph.capture_end()
        return graph, value
