"""Saved scorers of any kind, read back and fitted to a graph."""

from pathlib import Path

from neupath.errors import SourceError, listed
from neupath.graph import HIN
from neupath.measures import MEASURES, load_measure
from neupath.scorer import Scorer, read_saved

_LEARNED = ("neupath", "countpath")


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
    if name in MEASURES:
        return load_measure(folder).fit(hin)
    if name not in _LEARNED:
        raise SourceError(f"{folder} holds a scorer named {name!r}, which is none of {listed((*MEASURES, *_LEARNED))}")
    from neupath.models import load_model

    return load_model(folder, hin)
