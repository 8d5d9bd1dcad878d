"""Meta-paths with conditions, some of their characters changed: each is read or refused in one sentence, at once."""

import random
import time
import traceback
from typing import Any

from neupath.errors import NeuPathError
from neupath.measures import PathCount
from tests.graphs import library_graph

WELL_FORMED = (
    "AP[year>=2020]A", "AP[not (year >= 2020 or open = true)]A", "AP[year in (2019, 2022.0)]A",
    "AP[topic = ML and db]A", "AP[name in ('Deep, wide', A and B)]A", 'AP[name = "Say ""hi"""]A',
    "AP[day > 2020-01-31]A", "AP[year is not missing]A",
    "author-paper{p1, 'A and B'}[year>0]-author", "author[age<45]-paper[at > 2020-01-31T12:00]-author",
    "author -writes[role=first; weight: log1p(pages)]-> paper", "paper <-writes[weight: 2*(pages-1)/3]- author",
    "AP[weight: decay(day, 2022-01-01, 365d)]A", "author -writes[weight: clip(pages, 0, max(weight, 2))]-> paper",
)  # fmt: skip
PIECES = (
    "year", "role", "weight", " and ", " or ", "not ", " in ", "(", ")", "[", "]", "{", "}", ",", ";", ">=", "=", "~",
    "2020-01-31", '"', "'", "p1", "A", "paper", "-", "->", "weight:", "log1p(", "decay(", "/", "0", "9" * 400, "(" * 60,
    " not" * 40, "+pages" * 90, "x and " * 400, "[" * 3000, '{"' * 2000, "\x00", "\ud800", "é", "\n", "\t",
)  # fmt: skip


def random_text(rng: random.Random) -> str:
    """Return a meta-path with conditions, some of its characters changed, or pieces of the notation in any order."""
    if rng.random() < 0.2:
        return "".join(rng.choice(PIECES) for _ in range(rng.randint(1, 40)))
    text = list(rng.choice(WELL_FORMED))
    for _ in range(rng.randrange(6)):
        at = rng.randrange(len(text) + 1)
        text[at : at + rng.randrange(3)] = [rng.choice(PIECES)] * rng.randrange(2)
    return "".join(text)


def attack_conditions(count: int, seed: int) -> dict[str, Any]:
    """Read random meta-paths; return how many were read, refused and failed, and the slowest one."""
    hin, rng = library_graph(), random.Random(seed)
    hin.metapath("AP[year in (2019)]A")  # imports what is needed
    outcomes: dict[str, Any] = {"count": count, "read": 0, "refused": 0, "failed": 0, "not one sentence": 0}
    slowest, failures = 0.0, []
    for _ in range(count):
        text = random_text(rng)
        began = time.process_time()
        try:
            path = hin.metapath(text)
            slowest = max(slowest, time.process_time() - began)
            outcomes["read"] += 1
            if hin.metapath(str(path)) != path:
                failures.append(f"{text!r} is printed as {str(path)!r}, which reads otherwise")
            PathCount(path).fit(hin)
        except NeuPathError as error:
            slowest = max(slowest, time.process_time() - began)
            outcomes["refused"] += 1
            outcomes["not one sentence"] += "\n" in str(error) or len(str(error)) > 3000
        except Exception:
            failures.append(f"{text!r}: {traceback.format_exc(limit=-2)}")
    outcomes["failed"] = len(failures)
    return outcomes | {"slowest ms": round(1000 * slowest, 1), "failures": failures[:5]}
