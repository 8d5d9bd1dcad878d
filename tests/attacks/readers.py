"""Damaged sources in every format that can be read: each gives a graph or one sentence, in bounded memory and time.

The tries run in a child process, which is started again when it dies. A format without checksums cannot notice a
flipped letter in an id, so a damaged source may read as another graph. It is `wrong` only if a plain check, which knows
nothing of the reader, finds another number of edges.
"""

import csv
import gzip
import io
import json
import re
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Literal

import numpy as np
import scipy.io
from scipy.sparse import csc_matrix

from neupath import HIN, load
from neupath.errors import NeuPathError
from neupath.graph.hin import digest
from neupath.io import import_store, write_folder
from neupath.learn.labels import read_pairs
from neupath.store import read_update
from tests.attacks.mutation import mutate
from tests.io.corpus import SOURCES
from tests.tables import write

MEMORY, SECONDS = 2 << 30, 60
"""What a try may take beyond what the process has: bytes of address space, seconds of processor time."""
_ROOT = Path(__file__).parents[2]


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
        return "<!--" in text or sum(m.nnz for m in hin.matrices.values()) <= len(re.findall(pattern, text))

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


# ---- Attacking -----------------------------------------------------------------------------------
def attack_readers(names: Sequence[str], count: int, seed: int = 0) -> dict[str, dict[str, Any]]:
    """Read `count` damaged sources of each format; return the outcomes of each: read, refused, wrong, failed, crashed.

    `failed` are errors other than a sentence; examples of bad outcomes are listed under `bad`.
    """
    tries = [(name, number) for name in names for number in range(count)]
    outcomes: list[tuple[str, str]] = []
    while len(outcomes) < len(tries):
        command = [sys.executable, "-m", "tests.attacks.readers", str(seed)]
        left = json.dumps(tries[len(outcomes) :])
        child = subprocess.run(command, cwd=_ROOT, input=left, capture_output=True, text=True, check=False)
        outcomes += [tuple(json.loads(line)) for line in child.stdout.splitlines() if line.startswith("[")]
        if len(outcomes) < len(tries):
            assert child.returncode < 0, child.stderr
            outcomes.append(("crashed", signal.Signals(-child.returncode).name))
    figures: dict[str, dict[str, Any]] = {}
    for name in names:
        own = [(number, outcome) for (each, number), outcome in zip(tries, outcomes, strict=True) if each == name]
        bad = [f"{number}: {outcome}: {what}" for number, (outcome, what) in own if what]
        figures[name] = dict(Counter(outcome for _, (outcome, _) in own)) | ({"bad": bad[:20]} if bad else {})
    return figures


def _try_all(tries: Sequence[tuple[str, int]], seed: int) -> Iterator[tuple[str, str]]:
    with TemporaryDirectory() as parent:
        for name in dict.fromkeys(name for name, _ in tries):
            valid = Path(parent) / name
            valid.mkdir()
            FORMATS[name].write(valid)
            FORMATS[name].read(valid)
        _limit_memory()
        for name, number in tries:
            rng = np.random.default_rng([seed, number])
            damaged = Path(parent) / "damaged"
            shutil.copytree(Path(parent) / name, damaged)
            files = sorted(path for path in damaged.rglob("*") if path.is_file())
            file = files[int(rng.integers(len(files)))]
            file.write_bytes(mutate(file.read_bytes(), rng)[1])
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            yield _try_one(FORMATS[name], damaged)
            shutil.rmtree(damaged)


def _limit_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    limit = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _try_one(kind: Format, folder: Path) -> tuple[str, str]:
    """Read a damaged source and look at all of it, as a search may."""
    try:
        hin = kind.read(folder)
        if not isinstance(hin, HIN):
            return "read", ""
        digest(hin)
        for nodes in hin.nodes.values():
            _ = nodes.ids.to_pylist(), nodes.names and nodes.names.to_pylist(), nodes.attributes.to_pylist()
        right = kind.check is None or kind.check(folder, hin)
    except NeuPathError as error:
        return ("refused", "") if _is_sentence(str(error)) else ("failed", repr(str(error)))
    except Exception as error:
        return "failed", f"{type(error).__name__}: {error}"[:300]
    return ("read", "") if right else ("wrong", f"{_edges(hin):g} edges")


def _is_sentence(message: str) -> bool:
    """Whether a message is one line; a graph.toml that it proposes may follow, and must be one."""
    sentence, _, proposed = message.partition("\n")
    if not proposed:
        return bool(sentence)
    try:
        return sentence.endswith("such as:") and bool(tomllib.loads(proposed))
    except tomllib.TOMLDecodeError:
        return False


if __name__ == "__main__":
    for result in _try_all(json.load(sys.stdin), int(sys.argv[1])):
        print(json.dumps(result), flush=True)
