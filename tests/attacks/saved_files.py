"""Damage to the files of saved scorers and of unfinished joins, at random places.

Each damaged file is loaded and searched, or its join resumed. The outcome is `right` (the same scores or result as
before), `rebuilt` (the same result, after damaged blocks were ranked again), or `wrong`.
"""

import logging
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from neupath import HIN, Combination, PathSim, join, load_scorer
from neupath.learn.registry import ARCHITECTURES, make_model
from neupath.measures.combination import Part
from tests.attacks.damage import Target
from tests.graphs import graph_of

PATH = "user-item-user"
BLOCK = 5
MEASURES = ("pathsim", "combination")


# ---- What is attacked ----------------------------------------------------------------------------
@cache
def graph() -> HIN:
    rng = np.random.default_rng(1)
    buys = np.c_[rng.integers(0, 20, 60), rng.integers(0, 12, 60), rng.random(60)]
    return graph_of({"user": [f"u{i}" for i in range(20)], "item": 12}, {"user -buys-> item": buys})


@cache
def make_scorer(kind: str) -> Any:
    """Return a small scorer of a kind, trained where it learns."""
    hin = graph()
    if kind == "pathsim":
        return PathSim(PATH).fit(hin)
    if kind == "combination":
        return Combination([Part("pathsim", PATH, 0.3), Part("joinsim", PATH, 0.7)]).fit(hin)
    source = ARCHITECTURES[kind].learns_from
    if source != "labels":
        settings = {"metapath": {"metapath": PATH}, "node_type": {"node_type": "user"}}[source]
        return make_model(kind, dim=4, walks=2, epochs=1, device="cpu", **settings).fit(hin)
    labels = [("u1", "u2", 1.0), ("u1", "u3", 0.5), ("u4", "u5", 0.2)]
    size = {"pathboost": {"trees": 3}, "linear": {}, "countpath": {"epochs": 1}}.get(kind, {"epochs": 1, "dim": 4})
    return make_model(kind, device="cpu", **size).fit(hin, labels)


def begin_join(folder: Path, name: str) -> None:
    """Interrupt a join after two of its blocks."""

    def stop(_: str, done: int, __: int | None) -> None:
        if done >= 2 * BLOCK:
            raise KeyboardInterrupt

    hin = graph()
    try:
        join(hin, PathSim(PATH).fit(hin), folder / name, 3, block=BLOCK, progress=stop)
    except KeyboardInterrupt:
        return


def contents(path: Path) -> dict[str, bytes]:
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    return {file.name: file.read_bytes() for file in files}


@cache
def whole_join(name: str) -> dict[str, bytes]:
    with TemporaryDirectory() as folder:
        return contents(join(graph(), PathSim(PATH).fit(graph()), Path(folder) / name, 3, block=BLOCK).path)


# ---- Using it ------------------------------------------------------------------------------------
def _of_model(kind: str, file: str) -> Target:
    def use(folder: Path, _: int) -> str:
        scores = load_scorer(folder, graph(), "cpu").score_rows(np.arange(20))
        expected = make_scorer(kind).score_rows(np.arange(20))
        return "right" if np.array_equal(scores, expected, equal_nan=True) else "wrong"

    return Target(lambda folder: make_scorer(kind).save(folder), use, file)


def _of_join(name: str, file: str) -> Target:
    def use(folder: Path, _: int) -> str:
        logging.disable(logging.WARNING)
        joined = join(graph(), PathSim(PATH).fit(graph()), folder / name, 3, block=BLOCK)
        if contents(joined.path) != whole_join(name):
            return "wrong"
        return "right" if joined.resumed == 2 else "rebuilt"

    return Target(lambda folder: begin_join(folder, name), use, f"{name}.parts/{file}")


_FILES = {"pathboost": ("config.json", "trees.txt")} | dict.fromkeys(("linear", *MEASURES), ("config.json",))
"""The files of a saved scorer, where they are not those of a network."""
MODELS = {
    f"{kind}/{file}": _of_model(kind, file)
    for kind in (*MEASURES, *ARCHITECTURES)
    for file in _FILES.get(kind, ("config.json", "weights.safetensors"))
}
JOINS = {
    f"{'folder' if name == 'top' else 'file'}/{file.replace('000001', 'part')}": _of_join(name, file)
    for name in ("top.parquet", "top")
    for file in ("join.json", "000001.parquet", "000001.sha256")
}
TARGETS = MODELS | JOINS
