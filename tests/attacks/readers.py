"""Damaged sources in every format that can be read: each gives a graph or one sentence, in bounded memory and time.

A format without checksums cannot notice a
flipped letter in an id, so a damaged source may read as another graph. It is `wrong` only if a plain check, which knows
nothing of the reader, finds another number of edges.
"""

import csv
import gzip
import io
import re
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Literal

import numpy as np
import scipy.io
from scipy.sparse import csc_matrix

from neupath import HIN, load
from neupath.graph.hin import digest
from neupath.io import import_store, write_folder
from neupath.learn.labels import read_pairs
from neupath.store import read_update
from tests.attacks.damage import Target
from tests.io.corpus import SOURCES
from tests.io.corpus.frame import edges_of
from tests.tables import write

# ---- Sources -------------------------------------------------------------------------------------
Check = Callable[[Path, HIN], bool]


@dataclass(frozen=True)
class Format:
    """A readable format: a source of the corpus or what writes one, how to read it, and a check of the graph."""

    source: str | Callable[[Path], object]
    check: Check | None = None
    read: Callable[[Path], object] = lambda folder: load(_only(folder))

    def write(self, folder: Path) -> None:
        if isinstance(self.source, str):
            SOURCES[self.source].write(folder)
        else:
            self.source(folder)


def _texts(**files: str) -> Callable[[Path], object]:
    return lambda folder: write(folder, **files)


def _write_mat(compressed: bool, version: Literal["4", "5"] = "5") -> Callable[[Path], None]:
    def write_matrices(folder: Path) -> None:
        names = np.empty((3, 1), dtype=object)
        names[:, 0] = ["KDD", "VLDB", "ICML"]
        content: dict[str, Any] = {"P_A": csc_matrix(np.eye(5, 4)), "A_C": np.ones((4, 3))}
        content |= {} if version == "4" else {"C": names, "note": "text", "info": {"year": 2020}}
        scipy.io.savemat(folder / "graph.mat", content, do_compression=compressed, format=version)

    return write_matrices


def _write_zipped_graphml(folder: Path) -> None:
    SOURCES["gephi_graphml"].write(folder)
    (folder / "gephi.graphml.gz").write_bytes(gzip.compress((folder / "gephi.graphml").read_bytes()))
    (folder / "gephi.graphml").unlink()


def _only(folder: Path) -> Path:
    """Return the file or folder in a folder, or the folder itself if it holds several."""
    paths = list(folder.iterdir())
    return paths[0] if len(paths) == 1 else folder


def _import(folder: Path) -> HIN:
    with TemporaryDirectory() as parent:
        return load(import_store(_only(folder), Path(parent) / "store"))


# ---- Plain checks of the number of edges ---------------------------------------------------------
def _edges(hin: HIN) -> float:
    return float(sum(matrix.sum() for matrix in hin.matrices.values()))


def _as_csv(name: str, delimiter: str) -> Check:
    """Count the records of an unweighted table; its header and its comments are no edges."""

    def check(folder: Path, hin: HIN) -> bool:
        raw = (folder / name).read_bytes()
        text = (gzip.decompress(raw) if name.endswith(".gz") else raw).decode("utf-8-sig")
        quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if delimiter == "," else csv.QUOTE_NONE
        rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, quoting=quoting) if row]
        comments = sum(line.startswith(("#", "%")) for line in text.splitlines())
        return len(rows) - 1 - comments <= _edges(hin) <= len(rows)

    return check


def _as_sqlite(folder: Path, hin: HIN) -> bool:
    """Count the rows that have both ends; a damaged name of a column is another column, with no edges."""
    connection = sqlite3.connect(folder / "staff.sqlite")
    both = "select count(*) from works_on where employee_id is not null and project_code is not null"
    try:
        ((count,),) = connection.execute(f"select count(manager_id) + ({both}) from employee").fetchall()
    except sqlite3.OperationalError:  # the names of tables and columns may be damaged
        return True
    finally:
        connection.close()
    return bool(_edges(hin) == count)


def _by_pattern(name: str, pattern: str) -> Check:
    def check(folder: Path, hin: HIN) -> bool:
        text = (folder / name).read_bytes().decode("utf-8", errors="replace")
        count = sum(len(edges_of(hin, relation)) for relation in hin.matrices)  # those without a direction once
        return "<!--" in text or count <= len(re.findall(pattern, text))

    return check


_TOML = (
    'delimiter = ";"\n[nodes.movie]\nfile = "m.csv"\nid = "key"\nname = "label"\nattributes = ["year"]\n'
    '[[edges]]\nname = "acts"\nfile = "cast.csv"\nsource = "actor"\ntarget = "movie"\ncolumns = ["who", "what"]\n'
)
_CONFIGURED = _texts(
    graph__toml=_TOML, m__csv="key;label;year\n1;Up;2009\n2;Heat;1995\n", cast__csv="who;what\na;1\nb;2\nb;1\n"
)
_PAIRS = _texts(pairs__csv="query,target,score\nMike,Jim,0.5\nMike,Mary,1\nBob,Ann,0.25\n")
_UPDATE = _texts(update__csv="relation,source,target,weight\nwrites,Mike,paper 7,1\nwrites,Jim,paper 8,2.5\n")
_HETIONET = "hetionet-v1.0-edges.sif.gz"

FORMATS: Final[dict[str, Format]] = {
    "csv": Format("movie_actor_folder", _as_csv("movie_actor.csv", ",")),
    "tsv.gz": Format("hetionet", _as_csv(_HETIONET, "\t")),
    "tsv": Format("tab"),
    "triples": Format("triples_without_header", _as_csv("graph.tsv", "\t")),
    "neo4j": Format("neo4j_admin", _as_csv("relationships.csv", ",")),
    "graph.toml": Format(_CONFIGURED),
    "parquet": Format("parquet_folder"),
    "parts": Format("parquet_dataset"),
    "exported": Format(lambda folder: write_folder(load("toy"), folder / "exported")),
    "excel": Format("workbook"),
    "graphml": Format("gephi_graphml", _by_pattern("gephi.graphml", "<edge[^A-Za-z0-9]")),
    "graphml.gz": Format(_write_zipped_graphml),
    "gexf": Format("gexf", _by_pattern("graph.gexf", "<edge[^A-Za-z0-9]")),
    "gml": Format("gml", _by_pattern("club.gml", r"edge\s*\[")),
    "hgb": Format("hgb"),
    "mat": Format(_write_mat(compressed=False)),
    "mat compressed": Format(_write_mat(compressed=True)),
    "mat 4": Format(_write_mat(compressed=False, version="4")),
    "nt": Format("dbpedia", _by_pattern("dbpedia.nt", r"(?m)^.")),
    "nt.gz": Format("wikidata_truthy"),
    "nq": Format("nquads"),
    "ttl": Format("turtle", _by_pattern("people.ttl", "[:<]")),
    "rdf xml": Format("rdf_xml", _by_pattern("people.rdf", "<")),
    "jsonl": Format("openalex_works", _by_pattern("works.jsonl", '"')),
    "json": Format("aminer", _by_pattern("papers.json", '"')),
    "json nodes and edges": Format("hetionet_json", _by_pattern("hetionet-v1.0.json", "source_id")),
    "sqlite": Format("sqlite_file", _as_sqlite),
    "duckdb": Format("duckdb_file"),
    "dblp": Format("dblp_xml", _by_pattern("dblp.xml", "<[abij]")),
    "pairs": Format(_PAIRS, read=lambda folder: read_pairs(load("toy"), _only(folder))),
    "update": Format(_UPDATE, read=lambda folder: read_update(add=[_only(folder)])),
    "import csv": Format("movie_actor_folder", _as_csv("movie_actor.csv", ","), _import),
    "import triples": Format("triples_without_header", _as_csv("graph.tsv", "\t"), _import),
    "import parquet": Format("parquet_folder", read=_import),
}


def _target(kind: Format) -> Target:
    """Read a damaged source and look at all of it, as a search may."""

    def use(folder: Path, _number: int) -> str:
        hin = kind.read(folder)
        if isinstance(hin, HIN):
            digest(hin)
            for nodes in hin.nodes.values():
                _ids = nodes.ids.to_pylist(), nodes.names and nodes.names.to_pylist(), nodes.attributes.to_pylist()
            if kind.check is not None and not kind.check(folder, hin):
                return f"wrong: {_edges(hin):g} edges"
        return "read"

    return Target(kind.write, use)


TARGETS = {name: _target(kind) for name, kind in FORMATS.items()}
