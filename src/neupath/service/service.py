"""Service: all parts of the service together, and how a job is checked and started."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from neupath.errors import MissingExtraError, NeuPathError, QueryError, listed
from neupath.labels import read_pairs
from neupath.measures import GRAPH_MEASURES, MEASURES, measure_named
from neupath.service.catalogue import Catalogue
from neupath.service.inferring import labels_of
from neupath.service.job import Job
from neupath.service.jobs import Jobs
from neupath.service.limits import Limits
from neupath.service.metrics import Metrics, Sample, metric
from neupath.service.requests import InferJob, JoinJob, Meaning, TrainJob
from neupath.service.searching import check_alone, required_metapath
from neupath.service.served import Served, ServedStore
from neupath.service.work import MODEL
from neupath.service.workers import Workers

_THREADS = 4
_WRITERS = 16
"""Updates that wait for the disk at a time, apart from those who search; they go there together."""


@dataclass
class Service:
    """What is served, by whom, within which limits."""

    catalogue: Catalogue
    limits: Limits
    workers: Workers
    writers: Workers
    jobs: Jobs
    metrics: Metrics

    @property
    def busy(self) -> int:
        """Heavy requests at work or waiting."""
        return self.workers.busy + self.writers.busy

    def close(self) -> None:
        """Take no more work; what is running ends by itself."""
        self.workers.close()
        self.writers.close()

    def metrics_text(self) -> str:
        """Return all metrics in the text format of Prometheus."""
        states: list[Sample] = [({"state": state}, float(count)) for state, count in self.jobs.count().items()]
        lines = [
            *self.metrics.lines(),
            *metric("neupath_jobs", "gauge", "Jobs by state.", states),
            *metric("neupath_busy_workers", "gauge", "Heavy requests at work or waiting.", [({}, self.busy)]),
            *metric("neupath_ready_scorers", "gauge", "Measures kept ready.", [({}, self.catalogue.known_scorers())]),
            *metric("neupath_ready_bytes", "gauge", "Bytes they hold.", [({}, self.catalogue.known_bytes())]),
        ]
        return "\n".join(lines) + "\n"

    def check_job(self, asked: InferJob | JoinJob | TrainJob) -> tuple[Served, Path | None]:
        """Refuse a job that cannot be done before it waits; return its graph, and the folder of the model it uses."""
        served = self.catalogue.graph(asked.graph)
        if isinstance(asked, InferJob):
            labels_of(served.hin, asked, self.limits)
        elif isinstance(asked, JoinJob):
            return served, self._check_join(served, asked)
        else:
            self._check_training(served, asked)
        return served, None

    def _check_join(self, served: Served, asked: JoinJob) -> Path | None:
        if asked.k is not None:
            self.limits.check_k(asked.k)
        if asked.model is None:
            self._check_measure(served, asked)
            return None
        check_alone(asked)
        self.catalogue.model(served.name, asked.model)
        return self.catalogue.folders[asked.model]

    def _check_training(self, served: Served, asked: TrainJob) -> None:
        if (asked.metapath is None) == (asked.pairs is None):
            raise QueryError("give either metapath, to draw labels from a measure, or pairs, the labels themselves")
        if asked.epochs > self.limits.epochs or asked.dim > self.limits.width:
            raise QueryError(
                f"epochs is {asked.epochs} and dim is {asked.dim}; this service trains for at most "
                f"{self.limits.epochs} epochs, with embeddings of at most {self.limits.width}"
            )
        if find_spec("torch") is None:
            raise MissingExtraError("PyTorch", "neupath[learn]")
        if asked.pairs is None:
            self._check_measure(served, Meaning(metapath=asked.metapath, measure=asked.measure, model=None))
            return
        self.limits.check_pairs(len(asked.pairs))
        read_pairs(served.hin, [(pair.query, pair.target, pair.score) for pair in asked.pairs])

    def _check_measure(self, served: Served, asked: Meaning) -> None:
        if asked.measure.lower() in GRAPH_MEASURES:
            raise QueryError(
                f"{asked.measure.lower()} looks at the whole graph, and jobs go along a meta-path; use one of "
                f"{listed(MEASURES)} with a metapath"
            )
        path = self.limits.check_metapath(served.hin.metapath(required_metapath(self.catalogue, served.name, asked)))
        measure_named(asked.measure, path).check(path)


def make_service(
    graphs: Mapping[str, Served | ServedStore], models: dict[str, Path], state: Path, limits: Limits | None = None
) -> Service:
    """Put a service together; `state` is the folder that jobs keep their results in."""
    bounds = limits or Limits()
    catalogue = Catalogue(graphs, bounds)
    for name, folder in models.items():
        catalogue.add_model(name, folder)

    def serve_model(job: Job) -> None:
        if (job.folder / MODEL).is_dir():
            catalogue.add_model(job.id, job.folder / MODEL, [job.graph])

    jobs = Jobs(state, bounds, serve_model, lambda job: catalogue.drop_model(job.id))
    for job in jobs.jobs.values():
        if job.state == "done" and job.graph in graphs:
            _serve_again(serve_model, job)
    workers = Workers(_THREADS, bounds.heavy, bounds.seconds, catalogue.relieve)
    writers = Workers(_WRITERS, bounds.heavy, bounds.seconds, catalogue.relieve)
    return Service(catalogue, bounds, workers, writers, jobs, Metrics())


def _serve_again(serve_model: Callable[[Job], None], job: Job) -> None:
    """Serve the model of an earlier service's job, unless its graph has changed since."""
    try:
        serve_model(job)
    except NeuPathError as error:
        job.error = str(error)
