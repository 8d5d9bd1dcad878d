"""Columns of the paper's tables: a graph, the meta-path whose PathSim is to be learned, and what models are given."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from neupath.datasets import load
from neupath.errors import SourceError
from neupath.graph import HIN

BUILT_IN = "stdlib"


@dataclass(frozen=True)
class Column:
    """One column: `layers` is the length of its meta-path, `paths` NeuPath's T, `candidates` what HAN chooses from."""

    graph: str
    path: str
    layers: int
    paths: int
    candidates: tuple[str, ...]

    @property
    def title(self) -> str:
        return f"{self.graph} {self.path}"


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
    """Return the paper's eight columns over the graphs that lie in a folder: IMDB, and ACM or else KG20C for it."""
    wanted = "imdb, and kg20c or ACM.mat"
    if data is None:
        raise SourceError(f"no data is named; give --data FOLDER with {wanted}, or --quick for the built-in graph")
    if not data.is_dir():
        raise SourceError(f"{data} is no folder; give --data FOLDER with {wanted}")
    acm = "acm" if _find_acm(data) else "kg20c"
    if not (data / "imdb").is_dir() or not ((data / acm).is_dir() or acm == "acm"):
        raise SourceError(
            f"{data} lacks {'imdb' if not (data / 'imdb').is_dir() else 'kg20c and ACM.mat'}; it must hold {wanted} "
            f"(`neupath datasets` tells where they come from)"
        )
    return (*acm_columns(acm), *IMDB)


def _find_acm(data: Path) -> Path | None:
    """Return the file of the paper's ACM, in a folder itself or where `neupath datasets get acm --to` puts it."""
    return next((file for file in (data / "ACM.mat", data / "acm" / "ACM.mat") if file.is_file()), None)


@lru_cache(maxsize=2)
def load_graph(graph: str, data: Path | None) -> HIN:
    """Read the graph of a column, with the relations that the paper uses."""
    if data is None or graph == BUILT_IN:
        return load(BUILT_IN)
    if graph == "acm" and (file := _find_acm(data)):
        return load(file)
    return load(data / graph, config=Path(__file__).with_name(f"{graph}.toml"))
