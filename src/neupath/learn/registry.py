"""Saved scorers of any kind, read back and fitted to a graph."""

from pathlib import Path

from neupath.engine.scorer import Scorer, read_saved
from neupath.graph.hin import HIN
from neupath.learn.inference import PathRanker, load_path_ranker
from neupath.measures import GRAPH_MEASURES, MEASURES, Combination, load_measure


def load_scorer(folder: str | Path, hin: HIN) -> Scorer:
    """Read a measure or a model that was saved, and fit or bind it to a graph.

    >>> from tempfile import TemporaryDirectory
    >>> from neupath import PathSim, load
    >>> hin = load("toy")
    >>> with TemporaryDirectory() as folder:
    ...     load_scorer(PathSim("APVPA").fit(hin).save(folder), hin).top_k("Mike", k=1).ids
    ('Bob',)
    """
    name, _ = read_saved(folder)
    if name in MEASURES or name in GRAPH_MEASURES or name == Combination.name:
        return load_measure(folder).fit(hin)
    if name == PathRanker.name:
        return load_path_ranker(folder).fit(hin)
    from neupath.learn.models import load_model

    return load_model(folder, hin)
