"""Questions: one dataclass each, from which Python, the command line, HTTP, the client and MCP are made.

An option is one field: its name, type and default, one sentence of help, and its limits. In the sentence ‹half_life›
stands for another option, which each interface spells as its users write it, and {path_measures} for names that the
command line looks up. Options that always travel together are a class that questions inherit. Nothing of the library is
imported at first, so that the client and `--help` stay light.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, dataclass_transform

from neupath.errors import QueryError, listed

if TYPE_CHECKING:
    from neupath.graph.hin import HIN
    from neupath.graph.metapath import MetaPath

Id = str | int
MetaPaths = str | Sequence[str] | None
"""One meta-path or, where several are added up or compared, some of them."""
_FROM_0, _FROM_1 = {"ge": 0, "le": 2**31}, {"ge": 1, "le": 2**31}
_SEED = {"ge": 0, "lt": 2**63}
DEFAULT_MEASURE = "pathsim"
TIMES = ("time", "since", "until", "now", "half_life")


# ---- What a field says ---------------------------------------------------------------------------
@dataclass(eq=False, repr=False, match_args=False)
class Option:
    """What interfaces say of a field besides its name, its type and its default."""

    help: str
    flags: tuple[str, ...] = ()
    """Its flags, where they are not just its name."""
    argument: str | None = None
    """What stands for it in usage lines, where it is no flag: "QUERY..."."""
    metavar: str | None = None
    default_text: str | None = None
    """What stands for the default None."""
    limits: Mapping[str, float] = field(default_factory=dict)
    """`ge`, `gt`, `le` and `lt`, as pydantic calls them."""
    http: str | None = None
    """The sentence over HTTP, where something else is given there, as a name in place of a folder."""
    default_from: str | None = None
    """Where the library has the default for which None stands: "module:NAME"."""
    only: Literal["cli", "http"] | None = None
    """The one kind of interface that has it: commands, or the service with its clients."""
    hidden: bool = False
    env: str | None = None


def option(help: str, flags: str = "", *, default: Any = MISSING, **more: Any) -> Any:
    """Declare a field of a question: its sentence, its flags such as "--metapath -p", and more of an `Option`."""
    return field(default=default, metadata={"option": Option(help, tuple(flags.split()), **more)})


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(option,))
class Question:
    """The base of questions: frozen dataclasses, whose fields are given by name.

    One constructor serves them all, because a start would wait for dozens that `dataclass` compiles.
    """

    only_cli: ClassVar[tuple[str, ...]] = ()
    """Which options of its parts commands alone have."""

    def __init_subclass__(cls, *, is_form: bool = False) -> None:
        if not is_form:  # pydantic makes the dataclasses that check what comes over HTTP
            dataclass(init=False, repr=False, eq=False, match_args=False, kw_only=True)(cls)

    def __init__(self, **values: Any) -> None:
        for each in fields(self):  # type: ignore[arg-type]
            value = values.pop(each.name, each.default)
            if value is MISSING:
                raise TypeError(f"{type(self).__name__} needs {each.name}")
            vars(self)[each.name] = value
        if values:
            raise TypeError(f"{type(self).__name__} has no {next(iter(values))}")
        self.__post_init__()

    def __post_init__(self) -> None:
        self.check()

    def __setattr__(self, name: str, value: object) -> None:
        raise FrozenInstanceError(f"a question stays as it is; make another one with dataclasses.replace(…, {name}=…)")

    def __repr__(self) -> str:
        given = (f"{each.name}={getattr(self, each.name)!r}" for each in fields(self)  # type: ignore[arg-type]
                 if getattr(self, each.name) != each.default)  # fmt: skip
        return f"{type(self).__name__}({', '.join(given)})"

    def check(self) -> None:
        """Raise if an option would be ignored, or needs another."""


def options_of(kind: type[Any], interface: Literal["cli", "http"]) -> Iterator[tuple[Field[Any], Option]]:
    """Yield the fields of a question that an interface has, its own first, then those of its parts."""
    known = {each.name: each for each in fields(kind)}
    for part in kind.__mro__:
        for name in vars(part).get("__annotations__", ()):
            each = known.pop(name, None)
            about = None if each is None else each.metadata.get("option")
            hides = interface == "http" and name in kind.only_cli
            if each is not None and about is not None and about.only in (None, interface) and not hides:
                yield each, about


# ---- Options that travel together ----------------------------------------------------------------
class WeightsAndTimes(Question):
    """The options that put weights and a time window into a meta-path."""

    weight: Sequence[str] = option(
        "The weight of a relation's edges, such as 'rates=rating - 2.5'.", default=(), limits={"max_length": 100}
    )
    time: str | None = option("The attribute that holds times, of edges or of nodes on the way.", default=None)
    since: str | None = option("The first time that counts.", default=None)
    until: str | None = option("The last time that counts.", default=None)
    now: str | None = option("Leave out what is later, and count ages from here.", default=None)
    half_life: str | None = option("The age at which edges and nodes count half, such as 365d.", default=None)

    @property
    def refinement(self) -> dict[str, Any]:
        """The weights and times that were given, as the parameters of `HIN.metapath`."""
        options = {name: value for name in TIMES if (value := getattr(self, name)) is not None}
        if not self.weight:
            return options
        from neupath.graph.refinement import parse_weights  # takes a while to import

        return options | {"weights": parse_weights(self.weight)}

    def refine(self, hin: "HIN", metapath: MetaPaths) -> "MetaPath | list[MetaPath] | None":
        """Read one meta-path, or several, with these weights and times."""
        options = self.refinement
        if not metapath:
            if options:
                raise QueryError(f"‹{next(iter(options))}› changes a meta-path; give ‹metapath›, too")
            return None
        if isinstance(metapath, str):
            return hin.metapath(metapath, **options)
        return [hin.metapath(text, **options) for text in metapath]


class AsOf(Question):
    """The version of a store."""

    as_of: int | None = option(
        "An earlier version of a store; by default the last one.", default=None, limits={"ge": 0, "le": 2**62}
    )


class Similarity(WeightsAndTimes):
    """What similar means: a measure along meta-paths or over the whole graph, or a saved model."""

    metapath: MetaPaths = option("The meta-path, such as movie-actor-movie or MAM.", "--metapath -p", default=None)
    weights: Sequence[float] | None = option(
        "A weight for each ‹metapath›, such as 2,1; their scores are added up.",
        default=None,
        default_text="their mean",
        only="cli",
    )
    measure: str | None = option(
        "Along ‹metapath›: {path_measures}, avgsim, relsim; settings follow as in tversky:alpha=1,beta=0. Over the "
        "whole graph: {graph_measures}.",
        "--measure -m", default=None, default_text="pathsim", http="One of GET /api/measures; pathsim by default.",
    )  # fmt: skip
    node_type: str | None = option(
        "The type of the nodes to rank, for a measure over the whole graph.", default=None,
        http="The type of the nodes, for a measure over the whole graph whose query fits several.",
    )  # fmt: skip
    model: str | Path | None = option(
        "A folder with a saved model or measure, instead of ‹metapath›.", default=None,
        http="One of GET /api/models, instead of a measure and a meta-path.",
    )  # fmt: skip

    @property
    def metapaths(self) -> list[str]:
        return [self.metapath] if isinstance(self.metapath, str) else list(self.metapath or ())

    @property
    def one_metapath(self) -> str | None:
        """The first meta-path: the only one where scores are not added up."""
        return next(iter(self.metapaths), None)

    @property
    def chosen_measure(self) -> str:
        return self.measure or DEFAULT_MEASURE


class MeasureOfPath(Question):
    """A measure along one meta-path."""

    metapath: str | None = option("The meta-path, such as movie-actor-movie or MAM.", "--metapath -p", default=None)
    measure: str = option(
        "One of {path_measures}.",
        "--measure -m",
        default="pathsim",
        http="One of GET /api/measures; pathsim by default.",
    )


class Engine(Question):
    """Where long work runs."""

    engine: Literal["local", "dask", "ray", "spark"] = option(
        "Work in this process, or on the workers of Dask, Ray or Spark.", default="local", only="cli"
    )
    address: str | None = option(
        "Where the workers of ‹engine› are: tcp://10.0.0.1:8786 for Dask, ray://10.0.0.1:10001, spark://10.0.0.1:7077.",
        default=None, default_text="on this machine", only="cli",
    )  # fmt: skip
    workers: int | None = option(
        "How many workers to start on this machine.", default=None, default_text="one per core", limits=_FROM_1,
        only="cli",
    )  # fmt: skip

    def check(self) -> None:
        super().check()
        for name in ("address", "workers"):
            if self.engine == "local" and getattr(self, name) is not None:
                raise QueryError(f"‹{name}› is for workers; give ‹engine› dask, ray or spark, too", parameter=name)


class Targets(Question):
    """Which targets are ranked."""

    where: Sequence[str] = option("Keep targets whose attribute fits, such as 'year >= 2000'.", default=())
    unless: Sequence[str] = option("Leave out targets that this meta-path relates to the query.", default=())
    among: Sequence[Id] = option("Rank only this target.", default=(), http="Rank only these targets.")
    among_file: str | None = option(
        "Rank only the targets in this file, one id or name a line; - for stdin.", default=None, only="cli"
    )


class SetOfNodes(Question):
    """What makes a query a set."""

    added: Sequence[str] = option(
        "Search for this node together with the query; B=2 weighs it by 2.", "--with", default=(), only="cli"
    )
    removed: Sequence[str] = option(
        "The same with a negative weight: less like this node.", "--without", default=(), only="cli"
    )


class Permutations(Question):
    """How scores are tested against permuted graphs."""

    significance: bool = option(
        "Show p-values against graphs permuted with all degrees kept.", default=False, only="cli"
    )
    permutations: int | None = option(
        "Permuted graphs for p-values; p is at least 1/(N+1).", default=None, default_text="200", limits=_FROM_1
    )
    seed: int | None = option("The seed of permutations and samples.", default=None, default_text="0", limits=_SEED)

    def check(self) -> None:
        super().check()
        if self.permutations is not None and not self.significance:
            raise QueryError("‹permutations› is for ‹significance›; give it, too")
        if self.seed is not None and not self.significance and not getattr(self, "stability", False):
            raise QueryError("‹seed› is for ‹significance› and ‹stability›, which draw at random; give one, too")


class Evidence(Permutations):
    """How far to trust hits."""

    stability: bool = option("Show where ranks stay when a tenth of the edges is missing.", default=False)
    stability_by: str | None = option(
        "Instead, show where ranks stay when any one node of this type is missing.", default=None
    )

    @property
    def wants_stability(self) -> bool:
        return self.stability or self.stability_by is not None

    def check(self) -> None:
        super().check()
        if self.stability and self.stability_by is not None:
            raise QueryError("give either ‹stability›, for edges, or ‹stability_by›, for nodes, not both")


class Device(Question):
    """Where a model runs."""

    device: str | None = option("cpu or cuda; by default CUDA if there is one.", default=None, only="cli")


class TypesOfPairs(Question):
    """The node types of labelled pairs."""

    node_type: str | None = option("The type of the nodes of ‹pairs›, if their ids fit several.", default=None)
    query_type: str | None = option(
        "The type of the queries of ‹pairs›, if it is not that of the targets.", default=None
    )
    target_type: str | None = option("The type of the targets of ‹pairs›.", default=None)


# ---- Browsing ------------------------------------------------------------------------------------
class Paths(Question):
    """The meta-paths of a graph."""

    node_type: str | None = option("The type to start from; by default every type.", argument="NODE_TYPE", default=None)
    max_length: int = option("The most steps of a meta-path.", default=4)
    asymmetric: bool = option("Also list paths that are not symmetric.", default=False)
    limit: int = option("The most meta-paths to list from each type.", default=1000)


class Find(AsOf):
    """The nodes with a name or an id."""

    text: Sequence[str] = option("A name or an id, or a part of one.", argument="TEXT...")
    node_type: str | None = option("Look among the nodes of this type only.", default=None)
    k: int = option("How many nodes.", "-k", default=10)


# ---- Search --------------------------------------------------------------------------------------
class Search(Similarity, Targets, SetOfNodes, Evidence, AsOf):
    """The nodes most similar to one, to each of many, or to a set."""

    only_cli = ("permutations", "seed", "stability", "stability_by")
    query: Id | Sequence[Id] = option("Ids or names, each searched for in turn.", argument="QUERY...")
    k: int = option("How many hits.", "-k", default=10, limits=_FROM_1)
    diverse: float | None = option(
        "Prefer hits that differ: 1 ranks as ever, and less makes them differ more.", default=None,
        limits={"gt": 0, "le": 1},
    )  # fmt: skip
    include_query: bool = option("Rank the query itself, too.", default=False)
    zeros: bool = option("Fill up with targets of score 0.", default=False)

    @property
    def all_queries(self) -> list[Id]:
        """The queries, also where there is one."""
        return [self.query] if isinstance(self.query, Id) else list(self.query)

    @property
    def wants_evidence(self) -> bool:
        return self.significance or self.wants_stability

    def check(self) -> None:
        """Raise if an option would be ignored, or if the hits are not those that the evidence is about."""
        super().check()
        names = ("among", "among_file", "where", "unless", "diverse", "added", "removed", "include_query", "zeros")
        given = {name: f"‹{name}›" for name in names if getattr(self, name)}
        if given and self.wants_stability:
            which = "‹stability›" if self.stability_by is None else "‹stability_by›"
            raise QueryError(f"{which} ranks all targets with a path; leave out {listed(given.values())}")
        if self.significance and {"added", "removed"} & set(given):
            raise QueryError("‹significance› tests pairs of nodes, not sets; leave out ‹added› and ‹removed›")
        if self.significance and self.include_query:
            raise QueryError("‹significance› has no p-value of a node with itself; leave out ‹include_query›")


class TestedSearch(MeasureOfPath, Evidence):
    """A search with the p-value of every hit."""

    queries: Sequence[Id] = option("Ids or names.", limits={"min_length": 1})
    k: int = option("How many hits.", "-k", default=10, limits=_FROM_1)
    where: Sequence[str] = option("Keep targets whose attribute fits, such as 'year >= 2000'.", default=())
    unless: Sequence[str] = option("Leave out targets that this meta-path relates to the query.", default=())
    significance: bool = option("Always.", default=True, only="cli")


class Compare(SetOfNodes, AsOf):
    """The hits of a query by several meta-paths or measures, side by side."""

    query: str = option("An id, or a name that only one node has.", argument="QUERY")
    metapath: Sequence[str] = option("The meta-path, such as movie-actor-movie or MAM.", "--metapath -p", default=())
    measure: Sequence[str] = option("As for search.", "--measure -m", default=(), default_text="pathsim")
    k: int = option("How many hits of each.", "-k", default=10)
    node_type: str | None = option("The type of QUERY, if all measures look at the whole graph.", default=None)
    plot: Path | None = option("Draw the moves in rank to this .svg, .png or .pdf file.", default=None)


# ---- Two nodes -----------------------------------------------------------------------------------
class Explain(Similarity, SetOfNodes, AsOf):
    """What makes two nodes similar."""

    query: Id = option("An id, or a name that only one node has.", argument="A")
    target: Id = option("An id, or a name that only one node has.", argument="B")
    measure: str | None = option(
        "One of {path_measures}, avgsim or relsim.", "--measure -m", default=None, default_text="pathsim",
        http="One of GET /api/measures; pathsim by default.",
    )  # fmt: skip
    node_type: str | None = option(
        "The type of ‹query› and ‹target›, where several have them.", default=None, only="http"
    )
    by: str | None = option(
        "Group paths by the nodes of this type, or by those after so many steps.", metavar="NODE_TYPE", default=None,
        default_text="the middle",
    )  # fmt: skip
    limit: int = option(
        "How many groups to show.", default=10, limits=_FROM_0,
        http="How many groups and paths to list; the others are summed.",
    )  # fmt: skip
    paths: int | None = option(
        "How many paths to show of each group.",
        default=None,
        default_text="1; in HTML 10",
        limits=_FROM_0,
        http="How many paths to list of each group; 1 by default.",
    )
    k: int = option("Say why ‹target› is not among the k most similar to ‹query›, if it is not.", "-k", default=10,
                    limits=_FROM_1)  # fmt: skip
    draw: Path | None = option(
        "Draw groups and paths to this .html, .svg, .png or .pdf file.", default=None, only="cli"
    )


class Relate(AsOf):
    """Which meta-paths join two nodes."""

    query: str = option("An id, or a name that only one node has.", argument="A")
    target: str = option("An id or a name, also of another type.", argument="B")
    max_steps: int = option("The most steps of a meta-path, 20 at most.", default=4, limits=_FROM_1)
    measure: str | None = option(
        "One of {path_measures}.", "--measure -m", default=None,
        default_text="pathsim, and hetesim along meta-paths that are not symmetric",
        http="A measure along a meta-path; by default pathsim or hetesim.",
    )  # fmt: skip
    query_type: str | None = option("The type of ‹query›, if several have it.", default=None)
    target_type: str | None = option("The type of ‹target›, if several have it.", default=None)
    limit: int = option("How many meta-paths to list; the others are counted.", default=20, limits=_FROM_0)
    budget: int | None = option(
        "How many multiplications to spend, on short meta-paths first.", default=None, only="cli",
        default_from="neupath.evidence.relate:BUDGET",
    )  # fmt: skip


class Counterfactual(MeasureOfPath, AsOf):
    """The fewest edges or nodes that decide whether a target is among the best hits of a query."""

    only_cli = ("as_of",)
    query: Id = option("An id, or a name that only one node has.", argument="A")
    target: Id = option("An id, or a name that only one node has.", argument="B")
    k: int = option("How many hits count as the best.", "-k", default=10, limits=_FROM_1)
    remove: str | None = option("Remove edges, or nodes of this type, to move ‹target› out of the best.", default=None)
    add: str | None = option("Add edges, or nodes of this type, to bring ‹target› into the best.", default=None)
    limit: int = option("How many single changes to show.", default=10, limits=_FROM_0)
    budget: int | None = option(
        "How much work to spend on finding a set and proving it smallest.", default=None,
        default_from="neupath.evidence.counterfactuals:BUDGET", limits={"ge": 1, "le": 2**62},
    )  # fmt: skip


# ---- All nodes -----------------------------------------------------------------------------------
class Join(Similarity, Targets, Permutations, Engine):
    """The most similar targets of every node."""

    only_cli = ("node_type", "permutations", "seed")
    out: Path = option("The .parquet or .csv file to write, or a folder for several.", only="cli")
    k: int | None = option("Hits per query; 10, or all with ‹min_score›.", "-k", default=None, limits=_FROM_1)
    min_score: float = option("Keep only pairs with at least this score.", default=0.0, limits={"ge": 0})
    where_query: Sequence[str] = option("Join only queries that fit, such as 'year >= 2000'.", default=())
    format: Literal["parquet", "csv", "neo4j"] | None = option(
        "neo4j writes a folder for neo4j-admin; else as ‹out› ends.", default=None, only="cli"
    )
    block: int | None = option(
        "Queries that are finished at a time.", default=None, default_from="neupath.engine.join:BLOCK", only="cli"
    )
    threads: int | None = option("Threads; by default one per core.", default=None, only="cli")
    device: str | None = option(
        "cpu or cuda; by default cpu, or for a model CUDA if there is one.", default=None, only="cli"
    )
    part: str | None = option(
        "Do the third of eight parts of the join with 3/8; the process whose part ends last writes ‹out›.",
        default=None, only="cli",
    )  # fmt: skip
    into: str | None = option(
        "Also write the pairs into a database: results.duckdb, or postgresql://host/name.", default=None, only="cli"
    )
    table: str | None = option(
        "The table for ‹into›; it is replaced as a whole.", default=None, default_text="similar_pairs", only="cli"
    )
    estimate: bool = option(
        "Say how many pairs, bytes and seconds it will take, by a sample, and write nothing.", default=False, only="cli"
    )

    @property
    def chosen_k(self) -> int | None:
        """The hits per query: all that reach `min_score`, where that alone is given."""
        return 10 if self.k is None and self.min_score == 0 else self.k


class Prepare(MeasureOfPath, WeightsAndTimes, Engine, AsOf):
    """An index of a measure along a meta-path, which any process opens and searches without the graph."""

    to: str = option("A folder for the index, or an address such as s3://bucket/prefix.", only="cli")
    where: Sequence[str] = option("Rank only targets whose attribute fits, such as 'year >= 2000'.", default=())


# ---- Labelled pairs ------------------------------------------------------------------------------
class Infer(TypesOfPairs):
    """The meta-paths, their weights and the measure behind labelled pairs."""

    pairs: Any = option("A table with the header query,target,score, or of similar pairs.", argument="PAIRS.csv")
    max_length: int = option("The most steps of a meta-path.", default=6, limits={"ge": 2, "le": 20})
    measures: Sequence[str] | None = option(
        "Only this measure.", "--measure -m", default=None, default_text="any", http="Only these measures."
    )
    asymmetric: bool = option("Also try paths that are not symmetric.", default=False)
    conditions: Sequence[str] = option(
        "Also try this condition, such as 'paper: year >= 2020'.", "--condition", default=(), limits={"max_length": 20}
    )
    suggest: int = option("How many pairs to suggest for labelling.", default=3, limits={"ge": 0, "le": 100})
    seed: int = option("Decides folds, resamples and negatives.", default=0, limits=_SEED)
    ask: bool = option("Ask for the labels that tell explanations apart.", default=False, only="cli")
    save_pairs: Path | None = option(
        "With ‹ask›: write all pairs, old and new, to this CSV file.", default=None, only="cli"
    )
    compare: bool = option("Compare with learned models by their error on held-out queries.", default=False, only="cli")
    out: Path | None = option("Save the result, for search --model and explain --model.", default=None, only="cli")
    budget: int | None = option(
        "The most multiplications of the search.",
        default=None,
        default_from="neupath.learn.inference.candidates:BUDGET",
        only="cli",
    )


class Train(MeasureOfPath, TypesOfPairs, Device):
    """A model of labelled pairs, or of labels that a measure along a meta-path gives."""

    out: Path = option("The folder to save the model to.", only="cli")
    pairs: Any = option("A table of labels: query, target, score, and perhaps weight and rater.", default=None)
    node_type: str | None = option(
        "The type of the nodes of ‹pairs›, if their ids fit several, or the type to walk from.", default=None,
        http="The type of the nodes in `pairs`, where their ids fit several.",
    )  # fmt: skip
    architecture: str | None = option(
        "auto (the default with ‹pairs›) tries several. From labels: {from_labels} (neupath is the default with "
        "‹metapath›). From random walks, without labels: {from_node_type} (with ‹node_type›), {from_metapath} (along "
        "‹metapath›).",
        default=None,
        http="auto tries several, and is the default with `pairs`; neupath is the default with `metapath`.",
    )
    budget: float | None = option(
        "Of auto: about how many seconds it may take; 600 by default.", default=None, limits={"gt": 0, "le": 86_400}
    )
    protocol: Literal["strict", "paper"] = option(
        "Labels per query: strict (5 best, 5 random) or paper (the 10 best).", default="strict"
    )
    layers: int | None = option("The longest path that it sees; 2 by default.", default=None, limits={"ge": 1, "le": 8})
    paths: int | None = option(
        "How many path instances NeuPath keeps, T; 3 by default.", default=None, limits={"ge": 1, "le": 16}
    )
    dim: int | None = option(
        "The width of its vectors; by default the architecture's, mostly 256.", default=None, limits=_FROM_1
    )
    epochs: int | None = option(
        "The most epochs; by default the architecture's, mostly 30.", default=None, limits=_FROM_1
    )
    attributes: bool = option(
        "Give attributes of nodes as features to a GNN with node features.", default=False, only="cli"
    )
    learning_rate: float | None = option("The first learning rate.", default=None, limits={"gt": 0})
    seed: int = option("Decides the split, the labels and the weights.", default=0, limits=_SEED)

    @property
    def chosen_architecture(self) -> str:
        """The architecture, by what it learns from unless it is given."""
        return self.architecture or ("neupath" if self.pairs is None else "auto")


class Evaluate(MeasureOfPath):
    """How close a saved model comes to an exact measure, or to labelled pairs."""

    model: Path = option("A folder with a saved model.")
    pairs: Path | None = option("A table of labels to compare with: query,target,score.", default=None)
    protocol: Literal["strict", "paper"] = option(
        "How the model was trained; it only names the result.", default="strict"
    )
    queries: int = option("How many unseen queries to test on.", default=400)
    used_paths: int = option("Also show which meta-paths NeuPath attends to, over so many queries.", default=0)
    seed: int = option("The seed of the split; as in training, to test unseen ones.", default=0)
