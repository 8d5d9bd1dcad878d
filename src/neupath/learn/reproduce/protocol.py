"""The protocol: presets of sizes and settings, and the columns of the paper's tables, each a graph and a meta-path."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from neupath.errors import SourceError
from neupath.graph.hin import HIN
from neupath.io import load


# ---- Presets -------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Preset:
    """The numbers of training, validation and test queries, and the settings of the models."""

    name: str
    queries: tuple[int, int, int]
    settings: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    """Settings by model; under "" those of all learned models."""
    shares: tuple[float, ...] = (0.0125, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)
    most_paths: int = 5
    tested: tuple[int, ...] = (1, 50, 100, 200, 400, 800, 1600)
    """Numbers of test nodes whose scoring is timed."""

    def settings_of(self, model: str) -> dict[str, object]:
        return {**self.settings.get("", {}), **self.settings.get(model, {})}


FULL = Preset(
    "full",
    (400, 100, 400),
    {
        "": {"dim": 256, "epochs": 20},
        "neupath": {"epochs": 40},
        "countpath": {"epochs": 40},
        "nbfnet": {"dim": 32},  # as in its paper: each query passes over the whole graph
        "node2vec": {"dim": 128, "epochs": 2},
        "metapath2vec": {"dim": 128, "epochs": 2},
    },
)
QUICK = Preset(
    "quick",
    (40, 10, 30),
    {
        "": {"dim": 16, "epochs": 3},
        "countpath": {"epochs": 4},
        "nbfnet": {"dim": 4, "epochs": 1},
        "node2vec": {"dim": 16, "epochs": 1, "walks": 2, "length": 10},
        "metapath2vec": {"dim": 16, "epochs": 1, "walks": 2, "length": 10},
    },
    shares=(0.25, 1.0),
    most_paths=2,
    tested=(1, 10, 30),
)


# ---- Columns of the paper's tables ---------------------------------------------------------------
BUILT_IN = "stdlib"


@dataclass(frozen=True)
class Column:
    """A column: `layers` is the length of its meta-path, `paths` is T of NeuPath, HAN chooses among `candidates`."""

    graph: str
    metapath: str
    layers: int
    paths: int
    candidates: tuple[str, ...]

    @property
    def title(self) -> str:
        return f"{self.graph} {self.metapath}"


_MOVIES, _DIRECTORS = ("MDM", "MAM", "MDMDM", "MAMAM"), ("DMD", "DMDMD", "DMAMD")
_AUTHORS, _PAPERS = ("APA", "AFA", "AFAFA", "APCPA", "APAPA"), ("PCP", "PAP", "PCPCP", "PAFAP", "PAPAP")
_CLASSES = ("class-method-class", "class-module-class")

IMDB = (
    Column("imdb", "MAM", 2, 2, _MOVIES),
    Column("imdb", "MAMAM", 4, 3, _MOVIES),
    Column("imdb", "DMD", 2, 2, _DIRECTORS),
    Column("imdb", "DMAMD", 4, 3, _DIRECTORS),
)
QUICK_COLUMNS = (
    Column(BUILT_IN, "class-method-class", 2, 2, _CLASSES),
    Column(BUILT_IN, "class-module-class", 2, 2, _CLASSES),
)


def acm_columns(graph: str) -> tuple[Column, ...]:
    """Return the columns of the paper's ACM over a graph of authors, papers, conferences and fields."""
    return (
        Column(graph, "APA", 2, 2, _AUTHORS),
        Column(graph, "APCPA", 4, 3, _AUTHORS),
        Column(graph, "PCP", 2, 2, _PAPERS),
        Column(graph, "PAFAP", 4, 3, _PAPERS),
    )


def columns_in(data: Path | None) -> tuple[Column, ...]:
    """Return the eight columns of the paper over the graphs in a folder: IMDB, and ACM or, if it is missing, KG20C."""
    wanted = "imdb, and kg20c or ACM.mat"
    if data is None:
        raise SourceError(f"no data is given; set ‹data› to a folder with {wanted}, or ‹quick› for the built-in graph")
    if not data.is_dir():
        raise SourceError(f"{data} is no folder; set ‹data› to a folder with {wanted}")
    acm = "acm" if _find_acm(data) else "kg20c"
    if not (data / "imdb").is_dir() or not ((data / acm).is_dir() or acm == "acm"):
        raise SourceError(
            f"{data} lacks {'imdb' if not (data / 'imdb').is_dir() else 'kg20c and ACM.mat'}; it must hold {wanted} "
            f"(`neupath datasets` tells where they come from)"
        )
    return (*acm_columns(acm), *IMDB)


def _find_acm(data: Path) -> Path | None:
    """Return the paper's ACM file, in the folder itself or where `neupath datasets get acm --to` puts it."""
    return next((file for file in (data / "ACM.mat", data / "acm" / "ACM.mat") if file.is_file()), None)


@lru_cache(maxsize=2)
def load_graph(graph: str, data: Path | None) -> HIN:
    """Read the graph of a column, with the relations that the paper uses."""
    if data is None or graph == BUILT_IN:
        return load(BUILT_IN)
    if graph == "acm" and (file := _find_acm(data)):
        return load(file)
    return load(data / graph, config=Path(__file__).with_name(f"{graph}.toml"))
