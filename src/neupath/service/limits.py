"""Limits: how much one request, one client and all of them together may ask for."""

from dataclasses import dataclass, field

from neupath._runtime.resources import total_memory
from neupath.errors import QueryError
from neupath.graph.metapath import MetaPath


@dataclass(frozen=True)
class Limits:
    """What the service refuses to go beyond; every refusal is a sentence that names the limit."""

    body: int = 4 << 20
    """Bytes of a request's body."""
    bodies: int = 256 << 20
    """Bytes of all bodies that are being sent at a time."""
    head: int = 64 << 10
    """Bytes of a request's first line and headers."""
    k: int = 1000
    queries: int = 1000
    """Queries a call."""
    hits: int = 100_000
    """Queries times k of a call."""
    pairs: int = 10_000
    """Labelled pairs a call."""
    lines: int = 10_000
    """Nodes and edges of an update."""
    steps: int = 20
    """Steps of a meta-path."""
    text: int = 20_000
    """Characters of an id, a name, a meta-path or a condition."""
    page: int = 200
    """Nodes that one lookup returns."""
    paths: int = 1000
    """Path instances of an explanation, and meta-paths of a list."""
    rows: int = 50_000_000
    """Pairs in the result of a join job."""
    epochs: int = 200
    """Epochs of a training job."""
    width: int = 1024
    """The widest embedding of a training job."""
    seconds: float = 30.0
    """Seconds from a whole request to its answer; jobs are not bound by it."""
    head_seconds: float = 10.0
    """Seconds from the first byte of a request, or from connecting, to the end of its headers."""
    body_seconds: float = 10.0
    """Seconds from a request's headers to the end of its body."""
    idle_seconds: float = 20.0
    """Seconds that a connection is kept open for another request."""
    active: int = 256
    """Requests worked on at a time; one whose body is still to come is not."""
    heavy: int = 32
    """Requests that wait for a thread at a time."""
    streams: int = 64
    """Clients that listen to jobs at a time."""
    waiting_jobs: int = 8
    running_jobs: int = 1
    kept_jobs: int = 100
    """Finished jobs that are kept; the oldest is forgotten first."""
    scorers: int = 64
    """Measures that are kept ready."""
    scorer_bytes: int = field(default_factory=lambda: total_memory() // 4)
    """Bytes of what they hold."""

    def check_k(self, k: int, queries: int = 1) -> None:
        """Refuse more hits than a call may ask for."""
        if k > self.k:
            raise QueryError(f"k is {k}; this service gives at most {self.k:,} hits")
        if queries > self.queries:
            raise QueryError(f"{queries:,} queries are given; this service takes at most {self.queries:,} a call")
        if k * queries > self.hits:
            raise QueryError(
                f"{queries:,} queries for {k:,} hits each are more than the {self.hits:,} hits a call may ask for; "
                f"ask in parts, or start a join job"
            )

    def check_pairs(self, count: int) -> None:
        """Refuse more labelled pairs than a call may bring."""
        if count > self.pairs:
            raise QueryError(f"{count:,} pairs are given; this service takes at most {self.pairs:,} a call")

    def check_lines(self, count: int) -> None:
        """Refuse more nodes and edges than an update may bring."""
        if count > self.lines:
            raise QueryError(
                f"{count:,} nodes and edges are given; this service takes at most {self.lines:,} an update; "
                f"'neupath update' takes any number at once"
            )

    def check_paths(self, limit: int) -> None:
        """Refuse a longer list of paths than a call may ask for."""
        if limit > self.paths:
            raise QueryError(f"limit is {limit}; this service lists at most {self.paths:,} paths")

    def check_text(self, what: str, text: object) -> None:
        """Refuse a text longer than any that makes sense."""
        if isinstance(text, str) and len(text) > self.text:
            raise QueryError(f"{what} has {len(text):,} characters; this service reads at most {self.text:,}")

    def check_metapath(self, metapath: MetaPath) -> MetaPath:
        """Refuse a meta-path that is too long."""
        if len(metapath) > self.steps:
            raise QueryError(f"the meta-path has {len(metapath)} steps; this service walks at most {self.steps}")
        return metapath
