"""The result of a command that a test runs with the fixture `run`."""

import json
from collections.abc import Callable
from typing import Any, NamedTuple


class Result(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Result]
