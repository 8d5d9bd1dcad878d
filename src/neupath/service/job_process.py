"""What the process of a job runs: infer, join, train, whatif or significance. It can be killed.

It leaves one core to searches.
"""

import contextlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from time import monotonic
from typing import Any, ClassVar

import pyarrow.parquet as pq

from neupath._runtime.files import write_text
from neupath.answers import find_evidence, given, settings_of
from neupath.engine.join import JoinEngine, JoinJob, LocalEngine, OnBlock, join
from neupath.engine.scorer import Scorer
from neupath.errors import NeuPathError, QueryError, WriteError
from neupath.evidence.counterfactuals import BUDGET, what_if
from neupath.evidence.significance import hits_with
from neupath.graph.hin import HIN
from neupath.learn.labels import join_types, read_pairs
from neupath.learn.registry import ARCHITECTURES, make_scorer, required_metapath
from neupath.measures import Combination
from neupath.service.child_process import begin_child
from neupath.service.limits import Limits
from neupath.service.schemas import (
    JOB_REQUEST,
    InferJobRequest,
    JobRequest,
    JoinJobRequest,
    SignificanceJobRequest,
    TrainJobRequest,
    WhatIfJobRequest,
    label_columns,
    reason_without_path,
)

MODEL, REPORT, TABLE = "model", "result.json", "result.parquet"
_REPORT_SECONDS = 0.1  # seconds between two reports of progress


class Reporter:
    """Sends messages to the service: progress, at most ten times a second, and the result or the error."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._last = 0.0

    def progress(self, done: int, total: int, text: str = "") -> None:
        if monotonic() - self._last < _REPORT_SECONDS and done < total:
            return
        self._last = monotonic()
        self.send(progress={"done": done, "total": total, "text": text})

    def send(self, **message: object) -> None:
        self._connection.send_bytes(json.dumps(message).encode())

    def epoch(self, epoch: Any, total: int) -> None:
        errors = f"RMSE {epoch.train_rmse:.4f}, validation {epoch.validation_rmse:.4f}"
        self.progress(epoch.epoch, total, errors)


@dataclass(frozen=True)
class JobSpec:
    """What the process of a job needs: the graph, the request as JSON, and the folder for its results."""

    hin: HIN
    request: str
    folder: Path
    model: Path | None  # the folder of the model that it uses
    limits: Limits


def run_in_child(connection: Connection, spec: JobSpec, cores: int, memory: int) -> None:
    """Run a job in the process that the service started for it, which may take so many bytes of memory."""
    begin_child(memory)
    _lower_priority(cores)
    run_job(connection, spec)


def run_job(connection: Connection, spec: JobSpec) -> None:
    """Run a job; the last message is its result or its error."""
    reporter = Reporter(connection)
    try:
        reporter.send(done=do_job(spec, reporter))
    except WriteError as error:
        reporter.send(failed=f"the job's result cannot be written: {reason_without_path(error)}")
    except NeuPathError as error:
        reporter.send(failed=str(error))
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError) and "allocate memory" not in str(error):  # as torch says it
            raise
        most = f"{spec.limits.job_bytes / 2**30:.1f} GiB"
        reporter.send(
            failed=f"there is not enough memory for this job, which may take {most} (the limit job_bytes) or half of "
            f"what is free; ask for less"
        )


def do_job(spec: JobSpec, reporter: Reporter) -> dict[str, object]:
    """Do the work of a job in this process, and return its summary."""
    request: JobRequest = JOB_REQUEST.validate_json(spec.request)
    if isinstance(request, InferJobRequest):
        return _infer(spec, request, reporter)
    if isinstance(request, JoinJobRequest):
        return _join(spec, request, reporter)
    if isinstance(request, WhatIfJobRequest):
        return _what_if(spec, request)
    if isinstance(request, SignificanceJobRequest):
        return _significance(spec, request, reporter)
    return _train(spec, request, reporter)


def _infer(spec: JobSpec, request: InferJobRequest, reporter: Reporter) -> dict[str, object]:
    from neupath.service.handlers import infer_from, read_labels  # loads the live graph, which no other job needs

    labels = read_labels(spec.hin, request, spec.limits)
    inferred = infer_from(
        spec.hin, labels, request, progress=lambda _, done, total: reporter.progress(done, total or done)
    )
    inferred.save(spec.folder / MODEL)
    return _write_report(spec, inferred.report(request.suggest, request.skip))


def _join(spec: JobSpec, request: JoinJobRequest, reporter: Reporter) -> dict[str, object]:
    scorer: Scorer
    if request.combination is not None:
        scorer = Combination([part.to_part() for part in request.combination]).fit(spec.hin)
    else:
        metapath = request.refine(spec.hin, request.metapath)
        scorer = make_scorer(spec.hin, model=spec.model, metapath=metapath, measure=request.measure)
    joined = join(
        spec.hin, scorer, spec.folder / TABLE, request.chosen_k,
        **given(request, "min_score", "where_query", "where", "unless"), among=list(request.among) or None,
        engine=BoundedEngine(spec.limits.rows), progress=lambda _, done, total: reporter.progress(done, total or 0),
    )  # fmt: skip
    return {"queries": joined.queries, "pairs": joined.pairs}


@dataclass(frozen=True)
class BoundedEngine(JoinEngine):
    """A local join that fails when it has written too many pairs."""

    filters_targets: ClassVar[bool] = True
    most: int

    def run(self, scorer: Scorer, job: JoinJob, missing: Sequence[int], on_block: OnBlock) -> None:
        written = 0

        def count(number: int) -> None:
            nonlocal written
            written += pq.read_metadata(job.part(number)).num_rows
            if written > self.most:
                raise QueryError(
                    f"this join has more than {self.most:,} pairs, the most that this service writes; ask for a "
                    f"smaller k or a higher min_score, or use 'neupath join'"
                )
            on_block(number)

        LocalEngine().run(scorer, job, missing, count)


def _train(spec: JobSpec, request: TrainJobRequest, reporter: Reporter) -> dict[str, object]:
    architecture, folder = request.chosen_architecture, spec.folder / MODEL
    types = join_types(request.node_type, request.query_type, request.target_type)
    pairs = None if request.pairs is None else label_columns(request.pairs)
    if architecture == "auto":
        from neupath.learn.auto import BUDGET as SECONDS
        from neupath.learn.auto import train_auto

        budget = request.budget or min(SECONDS, 0.8 * spec.limits.job_seconds)
        found = train_auto(
            spec.hin, pairs, folder, node_type=types, budget=budget, seed=request.seed,
            progress=lambda text, done, total: reporter.progress(done, total or done, text),
        )  # fmt: skip
        return _write_report(spec, {name: value for name, value in found.to_dict().items() if name != "folder"})
    from neupath.learn.training_run import DrawnLabels, learn

    drawn = DrawnLabels(str(request.metapath), request.measure, request.protocol)
    labels = drawn if pairs is None else read_pairs(spec.hin, pairs, types, examples=True)
    lacks = ARCHITECTURES[architecture].lacks
    settings = {"layers": 2, "epochs": 30} | settings_of(request)
    settings = {name: value for name, value in settings.items() if name not in lacks}
    trained = learn(spec.hin, architecture, labels, folder, settings | {"seed": request.seed}, reporter.epoch)
    report = trained.to_dict()
    del report["folder"]  # clients need not know where the service keeps it
    return _write_report(spec, report)


def _what_if(spec: JobSpec, request: WhatIfJobRequest) -> dict[str, object]:
    metapath = required_metapath(spec.hin.schema, request.metapath)
    options = {"budget": min(BUDGET, spec.limits.work)} | given(
        request, "measure", "k", "remove", "add", "limit", "budget"
    )
    answer = what_if(spec.hin, metapath, request.query, request.target, **options)
    return _write_report(spec, answer.to_dict())


def _significance(spec: JobSpec, request: SignificanceJobRequest, reporter: Reporter) -> dict[str, object]:
    def progress(_: str, done: int, total: int | None) -> None:
        reporter.progress(done, total or 0)

    scorer = make_scorer(spec.hin, metapath=request.metapath, measure=request.measure)
    unless = [spec.hin.metapath(text) for text in request.unless]
    results = scorer.top_k(list(request.queries), request.k, where=request.where, unless=unless)
    evidence = find_evidence(scorer, results, request, progress)
    content = [hits_with(hits, **known) for hits, known in zip(results, evidence, strict=True)]
    _write_report(spec, {"results": content})
    return {"queries": len(results)}


def _write_report(spec: JobSpec, report: dict[str, object]) -> dict[str, object]:
    write_text(spec.folder / REPORT, json.dumps(report, ensure_ascii=False))
    return report


def _lower_priority(cores: int) -> None:
    """Leave the first core to searches, and run on the others at a lower priority."""
    with contextlib.suppress(AttributeError, OSError):  # Windows has no nice
        os.nice(10)
    if hasattr(os, "sched_setaffinity") and cores > 1:
        allowed = sorted(os.sched_getaffinity(0))
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, allowed[1:] or allowed)
