"""A join on a cluster: each task opens the prepared index, ranks one block of queries and writes its Parquet file."""

import json
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from neupath._runtime.files import write_text
from neupath._runtime.resources import count_cores
from neupath.engine.files import MANIFEST, open_files, read_manifest
from neupath.engine.join import (
    Format,
    JoinEngine,
    JoinFilter,
    JoinJob,
    OnBlock,
    checksum_of,
    discard,
    make_work,
    rank_block,
    write_hits,
)
from neupath.engine.prepared import PreparedIndex
from neupath.engine.scorer import Scorer
from neupath.engine.tasks import Each
from neupath.errors import NeuPathError, QueryError, first_line
from neupath.graph.hin import HIN
from neupath.measures import PathMeasure
from neupath.measures.prepare import prepare

_QUERIES, _CANDIDATES = "queries.npy", "candidates.npy"


@dataclass(frozen=True)
class Cluster(JoinEngine):
    """Base class of the engines that run tasks elsewhere; `each` is what they differ in.

    Its workers need neupath, and must see the folder of the result and the index. A measure of a graph is prepared
    first, beside the result.

    Parameters
    ----------
    address
        Where its scheduler is; without one, workers are started on this machine.
    workers
        How many to start on this machine; one per core by default.
    """

    address: str | None = None
    workers: int | None = None

    def __post_init__(self) -> None:
        if self.workers is None:
            return
        if self.address is not None:
            raise QueryError(f"the workers at {self.address} run already; leave out ‹workers›", parameter="workers")
        if isinstance(self.workers, bool) or not isinstance(self.workers, int) or self.workers < 1:
            hint = "start at least 1, or leave it out for one per core"
            raise QueryError(f"‹workers› is {self.workers!r}; {hint}", parameter="workers")

    @contextmanager
    def each(self) -> Iterator[Each]:
        """Connect, and run tasks while the block runs; what fails there is one sentence."""
        with self._connected() as run:

            def each(
                task: Callable[..., object], arguments: Sequence[tuple[Any, ...]], on_done: Callable[[int], object]
            ) -> None:
                try:
                    run(task, arguments, on_done)
                except NeuPathError:
                    raise
                except Exception as error:  # each engine has errors of its own
                    raise NeuPathError(
                        f"a task on {type(self).__name__} failed ({first_line(error)[:300]}); run it again: it resumes "
                        f"with what is missing"
                    ) from error

            yield each

    @abstractmethod
    def _connected(self) -> AbstractContextManager[Each]:
        """Connect, and run tasks while the block runs."""

    @property
    def num_workers(self) -> int:
        """How many workers are started on this machine."""
        return self.workers or count_cores()

    def prepare(self, hin: HIN, scorer: Scorer) -> Scorer:
        if isinstance(scorer, PreparedIndex):
            return scorer
        if isinstance(scorer, PathMeasure):
            return scorer if getattr(scorer, "hin_", None) is hin else scorer.resolve(hin)
        raise QueryError(
            f"{scorer.name} cannot be joined on a cluster, only an index or a measure along a meta-path can"
        )

    def ranks_here(self, scorer: Scorer) -> bool:
        return isinstance(scorer, PreparedIndex) or hasattr(scorer, "factors_")

    def run(self, scorer: Scorer, job: JoinJob, missing: Sequence[int], on_block: OnBlock) -> None:
        if job.filter.unless:
            raise QueryError(
                "an index has no other paths; leave out ‹unless›, or join in this process", parameter="unless"
            )
        work = make_work(job.parts)  # a folder that all workers see
        try:
            with self.each() as each:
                if isinstance(scorer, PreparedIndex):
                    url = scorer.url if not scorer.files.is_local else str(Path(scorer.url).absolute())
                else:
                    url = prepare(scorer.hin_, scorer, (job.parts / "index").absolute(), each=each)
                spec = BlockSpec.write(url, scorer, work, job)
                each(write_block, [(spec, number) for number in missing], lambda at: on_block(missing[at]))
        finally:
            discard(work)


# ---- Tasks ---------------------------------------------------------------------------------------
@dataclass(frozen=True)
class BlockSpec:
    """What a worker needs to know of a join besides the index; arrays are files in the folder `work`."""

    index: str
    work: Path
    out: Path
    k: int | None
    min_score: float
    block_size: int
    format: Format

    @classmethod
    def write(cls, index: str, scorer: Scorer, work: Path, job: JoinJob) -> "BlockSpec":
        """Write what all blocks of a join need to its working folder, and return the rest.

        The manifest is part of that: the index may be prepared again meanwhile, and all blocks are of one version.
        """
        manifest = scorer.files.manifest if isinstance(scorer, PreparedIndex) else read_manifest(index)
        write_text(work / MANIFEST, json.dumps(manifest))
        np.save(work / _QUERIES, job.queries)
        if job.filter.candidates is not None:
            np.save(work / _CANDIDATES, job.filter.candidates)
        return cls(index, work, job.out.absolute(), job.k, job.min_score, job.block_size, job.format)

    def job(self, index: PreparedIndex) -> JoinJob:
        """Return the join, with the nodes of the index."""
        mask = self.work / _CANDIDATES
        sources, targets = (index.hin_.nodes[node_type] for node_type in (index.source_type, index.target_type))
        return JoinJob(
            self.out, np.load(self.work / _QUERIES, mmap_mode="r"), self.k, self.min_score, self.block_size, sources,
            targets, self.format, JoinFilter(np.load(mask) if mask.is_file() else None),
        )  # fmt: skip


@lru_cache(maxsize=1)
def _opened(url: str, work: Path) -> PreparedIndex:
    """Open the index of a join once for all tasks that a worker runs."""
    return PreparedIndex(open_files(url, json.loads((work / MANIFEST).read_text("utf-8"))))


def write_block(spec: BlockSpec, number: int) -> None:
    """Write the hits of one block of queries; this fails if the join is over, since its folder is gone."""
    if not spec.work.is_dir():
        raise NeuPathError(f"a worker does not see {spec.work}; give an ‹out› in a folder that all machines share")
    index = _opened(spec.index, spec.work)
    job = spec.job(index)
    if job.part(number).is_file():
        return  # a worker that died later had written it
    path = spec.work / job.part(number).name
    write_hits(path, rank_block(index, job, number, threads=1))
    for file in (checksum_of(path), path):
        file.replace(job.parts / file.name)


def apply(task: Callable[..., object], arguments: tuple[Any, ...]) -> None:
    """Run a task, and return nothing that an engine would have to carry back."""
    task(*arguments)
