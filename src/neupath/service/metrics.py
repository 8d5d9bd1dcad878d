"""Metrics: counts and times of requests in the text format of Prometheus.

Written by hand: the format is a dozen lines, and a counter here is one addition on the one thread that serves, while
the client library takes a lock for each.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable

BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
Sample = tuple[dict[str, str], float]


class Metrics:
    """What has been served so far."""

    def __init__(self) -> None:
        self.requests: dict[tuple[str, str, int], int] = defaultdict(int)
        self.times: dict[str, list[float]] = defaultdict(lambda: [0.0] * (len(BOUNDS) + 2))
        self.active = 0

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one answer and its time."""
        self.requests[method, route, status] += 1
        times = self.times[route]
        times[bisect_left(BOUNDS, seconds)] += 1
        times[-1] += seconds

    def lines(self) -> Iterable[str]:
        """Yield the counts of requests."""
        requests: list[Sample] = [
            ({"method": method, "route": route, "status": str(status)}, count)
            for (method, route, status), count in self.requests.items()
        ]
        yield from metric("neupath_requests_total", "counter", "Answers by route and status.", requests)
        yield from metric("neupath_active_requests", "gauge", "Requests worked on now.", [({}, self.active)])
        name = "neupath_request_seconds"
        yield from (f"# HELP {name} Seconds to an answer.", f"# TYPE {name} histogram")
        for route, times in self.times.items():
            total = 0.0
            for bound, count in zip((*map(str, BOUNDS), "+Inf"), times[:-1], strict=True):
                total += count
                yield sample(f"{name}_bucket", {"route": route, "le": bound}, total)
            yield sample(f"{name}_sum", {"route": route}, times[-1])
            yield sample(f"{name}_count", {"route": route}, total)


def metric(name: str, kind: str, about: str, samples: Iterable[Sample]) -> Iterable[str]:
    """Yield one metric with its samples."""
    yield f"# HELP {name} {about}"
    yield f"# TYPE {name} {kind}"
    for labels, value in samples:
        yield sample(name, labels, value)


def sample(name: str, labels: dict[str, str], value: float) -> str:
    r"""Write one sample.

    >>> sample("requests", {"route": 'a"b'}, 2)
    'requests{route="a\\"b"} 2'
    """
    told = ",".join(f'{label}="{_escape(text)}"' for label, text in labels.items())
    number = repr(int(value)) if float(value).is_integer() else repr(float(value))
    return f"{name}{{{told}}} {number}" if told else f"{name} {number}"


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
