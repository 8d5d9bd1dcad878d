"""The protocol: presets of sizes and settings, and the columns and printed numbers of the paper's tables."""

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
        "neupath-paper": {"epochs": 40},
        "neupath": {"dim": 64, "epochs": 40},
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


# ---- The numbers printed in the tables of the paper ----------------------------------------------
_ACM, _IMDB = ("APA", "APCPA", "PCP", "PAFAP"), ("MAM", "MAMAM", "DMD", "DMAMD")


def _table(columns: tuple[str, ...], text: str) -> dict[tuple[str, str], float]:
    """Read a table whose rows are the name of a model and one number per column."""
    rows = (line.split() for line in text.strip().splitlines())
    return {(row[0], metapath): float(cell) for row in rows for metapath, cell in zip(columns, row[1:], strict=True)}


PRINTED_RMSE = _table(
    (*_ACM, *_IMDB),
    """
    mlp     0.2835 0.0439 0.0314 0.2408 0.3790 0.3354 0.1708 0.2949
    gat     0.2519 0.0381 0.0963 0.2378 0.4023 0.3567 0.1121 0.2991
    gcn     0.2400 0.0374 0.0818 0.2036 0.3887 0.3320 0.1266 0.3072
    han     0.3301 0.0321 0.0012 0.3091 0.4444 0.4167 0.1236 0.2881
    rgcn    0.2289 0.0319 0.0042 0.3267 0.3844 0.3676 0.1273 0.3065
    hgt     0.3428 0.0311 0.0003 0.3354 0.4561 0.3919 0.1247 0.3018
    gtn     0.2232 0.0329 0.0007 0.3219 0.3236 0.3456 0.1257 0.3321
    neupath-paper 0.1902 0.0210 0.0005 0.1955 0.3001 0.3111 0.1101 0.2506
    """,
)
PRINTED_NDCG = _table(
    (*_ACM, *_IMDB),
    """
    mlp     0.5472 0.1665 0.1657 0.1969 0.5497 0.3462 0.1690 0.5471
    gat     0.4905 0.1700 0.1721 0.2117 0.4133 0.3132 0.1779 0.5335
    gcn     0.5150 0.1725 0.1716 0.2208 0.4546 0.3486 0.1725 0.5321
    rgcn    0.4717 0.1737 0.1699 0.2149 0.4265 0.3287 0.1722 0.5498
    han     0.5777 0.1605 0.1923 0.2232 0.5329 0.3932 0.1770 0.5674
    hgt     0.5632 0.1663 0.1816 0.2151 0.5467 0.3433 0.1791 0.5358
    gtn     0.5812 0.1722 0.2001 0.2341 0.5605 0.4032 0.1801 0.5534
    neupath-paper 0.6115 0.2301 0.2441 0.2405 0.5832 0.4309 0.1821 0.5998
    """,
)
PRINTED_ABLATION_RMSE = _table(
    _ACM,
    """
    mean-pooling                0.2013 0.0274 0.0006 0.2104
    max-pooling                 0.1991 0.0300 0.0005 0.2023
    sum-pooling                 0.1956 0.0288 0.0005 0.2066
    without-node-types          0.2001 0.0212 0.0005 0.2027
    without-edge-types          0.2239 0.0475 0.0007 0.2299
    without-node-or-edge-types  0.2247 0.0490 0.0007 0.2302
    neupath                     0.1902 0.0210 0.0005 0.1955
    """,
)
PRINTED_ABLATION_NDCG = _table(
    _ACM,
    """
    mean-pooling                0.5901 0.2009 0.2089 0.2016
    max-pooling                 0.5888 0.2176 0.2227 0.2224
    sum-pooling                 0.5833 0.2143 0.2199 0.2126
    without-node-types          0.6002 0.2121 0.2339 0.2327
    without-edge-types          0.5306 0.1764 0.1887 0.2249
    without-node-or-edge-types  0.5106 0.1735 0.1701 0.2148
    neupath                     0.6115 0.2301 0.2441 0.2405
    """,
)
