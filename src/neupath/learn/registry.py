"""The architectures by name, saved scorers by folder, and the scorer that a request describes."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from importlib import import_module
from inspect import signature
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from neupath._runtime.plugins import Plugins, Registry
from neupath._runtime.progress import Progress, no_progress
from neupath.engine.gpu import check_device
from neupath.engine.prepared import IndexedGraph
from neupath.engine.scorer import Scorer, read_saved
from neupath.errors import NeuPathError, QueryError, SourceError, did_you_mean, listed
from neupath.graph.hin import HIN
from neupath.graph.metapath import MetaPath, Schema, enumerate_metapaths
from neupath.graph.nodes import Id
from neupath.measures import (
    COMBINED,
    GRAPH_MEASURES,
    MEASURES,
    AvgSim,
    Combination,
    GraphMeasure,
    PathMeasure,
    RelSim,
    equal_parts,
    find_measure,
    graph_measure_named,
    is_graph_measure,
    measure_named,
)

if TYPE_CHECKING:
    from neupath.learn.models import Model

DEFAULT_MEASURE = "pathsim"


# ---- Architectures -------------------------------------------------------------------------------
@dataclass(frozen=True)
class Architecture:
    """A kind of model to train: where its class is, and what it learns from."""

    target: str
    """The class as "module:Class". It is imported on first use, because models need torch."""
    learns_from: Literal["labels", "metapath", "node_type"] = "labels"
    """Labelled pairs; or, without labels, random walks along a meta-path or from the nodes of a type."""
    lacks: tuple[str, ...] = ("paths",)
    """Settings of a training job that its class does not take, to be checked without importing it."""
    two_types: bool = False
    """Whether queries and targets may be of different types."""

    def import_class(self) -> "type[Model]":
        module, _, name = self.target.partition(":")
        model: type[Model] = getattr(import_module(module), name)
        return model


_ARCHITECTURES: dict[str, Architecture] = {
    "neupath": Architecture("neupath.learn.models.neupath:NeuPath", lacks=(), two_types=True),
    "pathboost": Architecture(
        "neupath.learn.pathboost:PathBoost", lacks=("layers", "epochs", "dim", "paths"), two_types=True
    ),
    "linear": Architecture(
        "neupath.learn.linear:Linear", lacks=("layers", "epochs", "dim", "paths", "learning_rate"), two_types=True
    ),
    "rgcn": Architecture("neupath.learn.models.rgcn:RGCN"),
    "nbfnet": Architecture("neupath.learn.models.nbfnet:NBFNet", two_types=True),
}
"""A new one is its file and one line here; those that users need not are in the plug-in `neupath_paper`."""


def _check_plugin(_name: str, architecture: Any) -> str | None:
    return None if isinstance(architecture, Architecture) else "it is no Architecture of neupath.learn.registry"


ARCHITECTURES: Registry[Architecture] = Registry(
    _ARCHITECTURES,
    Plugins(
        "neupath.architectures",
        _check_plugin,
        ("auto", *_ARCHITECTURES, *MEASURES.built_in, *GRAPH_MEASURES.built_in, *COMBINED),
    ),
)
"""All architectures by name."""


def learning_from(*sources: str) -> tuple[str, ...]:
    """Return the names of the architectures that learn from "labels", from a "metapath" or from a "node_type".

    Those of plug-ins are among them.

    >>> learning_from("labels")[:5]
    ('neupath', 'pathboost', 'linear', 'rgcn', 'nbfnet')
    """
    return tuple(name for name, architecture in ARCHITECTURES.items() if architecture.learns_from in sources)


def check_architecture(architecture: str, allowed: Collection[str] = ARCHITECTURES) -> str:
    """Return the name of an architecture, or raise an error that lists the allowed ones."""
    if architecture not in allowed:
        raise QueryError(
            f"no architecture {architecture[:100]!r} (there are {listed(allowed, 20)})"
            f"{did_you_mean(architecture[:100], allowed)}",
            parameter="architecture", allowed=allowed,
        )  # fmt: skip
    return architecture


def is_network(name: str) -> bool:
    """Whether a learner passes over all edges in each epoch of its training, on a GPU if there is one."""
    return name in ARCHITECTURES and "epochs" not in ARCHITECTURES[name].lacks


def make_model(architecture: str, **settings: Any) -> Any:
    """Make an untrained model.

    Parameters
    ----------
    architecture
        A name in `ARCHITECTURES`.
    settings
        What its class takes: `dim`, `layers`, `epochs`, `seed`, `device` and the like; `node_type` for node2vec and
        `metapath` for metapath2vec.

    >>> make_model("rgcn", layers=3).params()["layers"]
    3

    """
    entry = ARCHITECTURES[check_architecture(architecture)]
    model_class: Any = entry.import_class()
    required = {} if entry.learns_from == "labels" else {entry.learns_from: ""}
    for name in required:
        if settings.get(name) is None:
            raise QueryError(f"{architecture} learns from random walks, and needs ‹{name}› to know which")
    known = {*model_class(**required).params(), "device"}
    for setting in settings:
        if setting not in known:
            raise QueryError(f"a {architecture} model has no {setting}; it has {listed(sorted(known), 20)}")
    return model_class(**settings)


# ---- Saved scorers -------------------------------------------------------------------------------
def load_scorer(folder: str | Path, hin: HIN, device: str | None = None) -> Scorer:
    """Read a scorer that was saved, whichever kind it is, and make it ready to search a graph.

    Parameters
    ----------
    folder
        Where `Scorer.save` wrote it.
    hin
        The graph to search. A model needs one with the schema that it was trained on.
    device
        "cpu" or "cuda". A model takes CUDA where there is one, unless given; a measure the CPU.

    >>> from tempfile import TemporaryDirectory
    >>> from neupath import PathSim, load
    >>> hin = load("toy")
    >>> with TemporaryDirectory() as folder:
    ...     load_scorer(PathSim("APVPA").fit(hin).save(folder), hin).top_k("Mike", k=1).ids
    ('Bob',)

    """
    name, params = read_saved(folder)
    if name in ARCHITECTURES:
        return ARCHITECTURES[name].import_class().from_folder(Path(folder), params, hin, device)
    if name == "stack":
        from neupath.learn.stack import Stack

        return Stack.from_folder(Path(folder), params, hin, device)
    if name == "pathranker":  # before 0.1.0: a combination, and how it was learned
        name, params = Combination.name, {"parts": params["parts"]}
    combined = {kind.name: kind for kind in (Combination, RelSim, AvgSim)}
    measure: Any = combined.get(name) or find_measure(name)
    if measure is None:
        known = [*MEASURES, *GRAPH_MEASURES, *combined, *ARCHITECTURES]
        raise SourceError(
            f"{folder} holds a scorer named {name!r}, which is not one of {listed(known, 40)}; if it is of a plug-in, "
            f"install that package"
        )
    try:
        scorer: Scorer = measure(**params)
    except QueryError as error:
        raise SourceError(f"{folder} holds a {name} that cannot be used: {error}") from error
    except TypeError as error:
        unknown = [param for param in params if param not in signature(measure).parameters]
        raise SourceError(
            f"{folder} holds {name} with parameters that it does not take: {listed(unknown or params)}; it may be of "
            f"another version: make it again, and save it"
        ) from error
    if isinstance(scorer, PathMeasure):
        scorer.device = check_device(device or "cpu")
    elif device == "cuda":
        raise _on_cpu_alone(name)
    return scorer.fit(hin)


# ---- From a request to a scorer ------------------------------------------------------------------
def make_scorer(
    hin: HIN,
    *,
    metapath: str | MetaPath | Sequence[str | MetaPath] | None = None,
    weights: Sequence[float] | None = None,
    measure: str | None = None,
    node_type: str | None = None,
    model: str | Path | None = None,
    queries: Sequence[Id] = (),
    device: str | None = None,
    progress: Progress = no_progress,
) -> Scorer:
    """Make the scorer that a request describes, fitted to a graph: give a meta-path, a node type, or a model alone.

    Parameters
    ----------
    hin
        The graph to search.
    metapath
        Which paths make two nodes similar, for a measure along a meta-path; several make a `Combination`.
    weights
        The weights of several meta-paths; by default their scores are averaged.
    measure
        A name in `MEASURES` or, for a measure over the whole graph, in `GRAPH_MEASURES`; PathSim unless given.
    node_type
        The type that a measure over the whole graph ranks.
    model
        The folder of a saved measure or model.
    queries
        Ids or names that tell the node type of a measure over the whole graph where `node_type` does not.
    device
        "cpu" or "cuda": where a measure along a meta-path ranks many queries, the CPU unless given, or where a model
        runs, CUDA where there is one unless given.
    progress
        Takes the stages of a measure over the whole graph that prepares for long.

    >>> from neupath import load
    >>> make_scorer(load("toy"), measure="simrank", queries=["Mike"]).source_type
    'author'

    """
    if isinstance(hin, IndexedGraph):
        return hin.answer(metapath=metapath, weights=weights, measure=measure, node_type=node_type, model=model)
    if model is not None:
        check_model_alone(metapath=metapath or None, weights=weights, measure=measure, node_type=node_type)
        return load_scorer(model, hin, device)
    paths = [metapath] if isinstance(metapath, str | MetaPath) else list(metapath or ())
    if weights is not None or len(paths) > 1 or is_combined(measure):
        return _combine(hin, paths, weights, measure, {"node_type": node_type, "device": device})
    metapath = paths[0] if paths else None
    if node_type is None and metapath is None and queries and is_graph_measure(measure):
        node_type = find_node_type(hin, queries)
    if node_type is None and metapath is None and not is_graph_measure(measure):
        required_metapath(hin.schema, None, suggested_type(hin, queries or ()))
    chosen = choose_measure(hin.schema, metapath=metapath, measure=measure, node_type=node_type, device=device)
    return chosen.fit(hin, progress) if isinstance(chosen, GraphMeasure) else chosen.fit(hin)


def _combine(
    hin: HIN, paths: Sequence[str | MetaPath], weights: Sequence[float] | None, measure: str | None,
    others: dict[str, str | None],
) -> Combination:  # fmt: skip
    if not paths:
        required_metapath(hin.schema, None)
    for parameter, value in others.items():
        if value not in (None, "cpu"):
            raise QueryError(
                f"several meta-paths are added up without ‹{parameter}›; leave it out", parameter=parameter
            )
    name = (measure or DEFAULT_MEASURE).lower()
    if name == RelSim.name:
        return RelSim(paths, weights).fit(hin)
    if name == AvgSim.name:
        if len(paths) > 1 or weights is not None:
            raise QueryError("avgsim follows one meta-path there and back; leave out ‹weights› and the others")
        return AvgSim(paths[0]).fit(hin)
    return Combination(equal_parts(paths, weights, name)).fit(hin)


def is_combined(measure: str | None) -> bool:
    """Whether a measure is a sum over several products, and no measure of one."""
    return measure is not None and measure.lower() in (RelSim.name, AvgSim.name)


def choose_measure(
    schema: Schema,
    *,
    metapath: str | MetaPath | None = None,
    measure: str | None = None,
    node_type: str | None = None,
    device: str | None = None,
) -> PathMeasure | GraphMeasure:
    """Make the measure that a request describes, without fitting it: the part of `make_scorer` that needs no edges.

    >>> from neupath import load
    >>> choose_measure(load("toy").schema, metapath="APA", measure="joinsim").name
    'joinsim'
    """
    name = measure or DEFAULT_MEASURE
    if not is_graph_measure(name):
        if node_type is not None:
            raise QueryError(
                f"{name[:100]} takes its node types from ‹metapath›; ‹node_type› is for measures over the whole graph: "
                f"{listed(GRAPH_MEASURES)}",
                parameter="node_type",
            )
        metapath = required_metapath(schema, metapath)
    if metapath is not None:
        return measure_named(name, metapath, device=device or "cpu")
    if device == "cuda":
        raise _on_cpu_alone(name)
    if node_type is None:
        raise QueryError(
            f"{name.lower()} looks at the whole graph; say which type it ranks with ‹node_type›: "
            f"{listed(schema.node_types)}",
            parameter="node_type", allowed=schema.node_types,
        )  # fmt: skip
    return graph_measure_named(name, node_type)


def _on_cpu_alone(name: str) -> QueryError:
    return QueryError(
        f"{name.lower()} runs on the CPU alone, and of the measures only those along a meta-path rank on a GPU: "
        f"{listed(MEASURES)}; leave out ‹device›",
        parameter="device",
    )


def find_node_type(hin: HIN, queries: Sequence[Id]) -> str:
    """Return the one node type that has all queries."""
    return hin.find_type(queries, "the query" if len(queries) == 1 else "the queries")


def suggested_type(hin: HIN, queries: Sequence[Id]) -> str | None:
    """Return the one node type that has all queries, or None where several have them or none does."""
    try:
        return find_node_type(hin, queries) if queries else None
    except NeuPathError:
        return None


def required_metapath(schema: Schema, metapath: str | MetaPath | None, node_type: str | None = None) -> str | MetaPath:
    """Return the meta-path that was given, or raise an error that lists some of the schema, or of a node type."""
    if metapath is not None:
        return metapath
    examples = list(islice(enumerate_metapaths(schema, node_type, 2), 3)) if node_type is not None else []
    if not examples:
        examples = [next(enumerate_metapaths(schema, t, 2)) for t in schema.node_types if schema.neighbours(t)]
    raise QueryError(
        f"no meta-path is given; say what makes two nodes similar with ‹metapath›, such as "
        f"{listed(map(str, examples), 4)}",
        parameter="metapath",
    )


def check_model_alone(**others: object) -> None:
    """Refuse what a saved model would leave unused."""
    for parameter, value in others.items():
        if value is not None:
            raise QueryError(
                f"a saved model knows what similar means; give either ‹model› or ‹{parameter}›", parameter=parameter
            )
