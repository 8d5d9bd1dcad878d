"""Damaged sources in every format that can be read: each gives a graph or one sentence, in bounded memory and time.

The tries run in a child process, which is started again when it dies. A format without checksums cannot notice a
flipped letter in an id, so a damaged source may read as another graph. It is `wrong` only if a plain check, which knows
nothing of the reader, finds another number of edges.
"""

import csv
import gzip
import importlib
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
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.io
from scipy.sparse import csc_matrix

from neupath import HIN, load
from neupath.errors import NeuPathError
from neupath.graph.hin import digest
from neupath.io import import_store, to_networkx, write_folder
from neupath.learn.labels import read_pairs
from neupath.store import read_update
from tests.attacks.mutation import mutate

MEMORY, SECONDS = 2 << 30, 60
"""What a try may take beyond what the process has: bytes of address space, seconds of processor time."""
_ROOT = Path(__file__).parents[2]


# ---- Sources -------------------------------------------------------------------------------------
Check = Callable[[Path, HIN], bool]


@dataclass(frozen=True)
class Format:
    """A readable format: how to write a small valid source, how to read it, and a check of the graph."""

    write: Callable[[Path], None]
    read: Callable[[Path], HIN | None]
    check: Check | None = None


def _texts(**files: str) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        for name, text in files.items():
            path = folder / name.replace("__", ".")
            path.write_bytes(gzip.compress(text.encode(), mtime=0) if path.suffix == ".gz" else text.encode())

    return write


def _tables() -> dict[str, pa.Table]:
    rows = np.arange(40)
    return {
        "movie_actor": pa.table({"movie_id": rows % 9, "actor_id": [f"a{row % 7}" for row in rows]}),
        "movies": pa.table({"movie_id": range(9), "title": [f"film {row}" for row in range(9)], "year": range(9)}),
    }


def _write_parquet(folder: Path) -> None:
    for name, table in _tables().items():
        pq.write_table(table, folder / f"{name}.parquet")


def _write_parts(folder: Path) -> None:
    table = _tables()["movie_actor"]
    pq.write_table(_tables()["movies"], folder / "movies.parquet")
    for year in range(2):
        place = folder / "movie_actor" / f"year={year}"
        place.mkdir(parents=True)
        pq.write_table(table.slice(20 * year, 20), place / "part-0.parquet", compression="zstd")


def _write_exported(folder: Path) -> None:
    write_folder(load("toy"), folder / "exported")


def _write_networkx(suffix: str) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        import networkx as nx

        graph: Any = nx.convert_node_labels_to_integers(to_networkx(load("toy")))
        if suffix == ".gml":
            nx.write_gml(graph, folder / "graph.gml")
        else:
            writer = nx.write_graphml if suffix.startswith(".graphml") else nx.write_gexf
            writer(graph, folder / f"graph{suffix}")

    return write


def _write_mat(compressed: bool, version: Literal["4", "5"] = "5") -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        names = np.empty((3, 1), dtype=object)
        names[:, 0] = ["KDD", "VLDB", "ICML"]
        content: dict[str, Any] = {"P_A": csc_matrix(np.eye(5, 4)), "A_C": np.ones((4, 3))}
        content |= {} if version == "4" else {"C": names, "note": "text", "info": {"year": 2020}}
        scipy.io.savemat(folder / "graph.mat", content, do_compression=compressed, format=version)

    return write


_DATABASE = (
    "create table movies (id integer primary key, title text, year integer);"
    "create table actors (id text primary key);"
    "create table movie_actor (movie_id integer references movies (id), actor_id text references actors (id));"
)


def _write_database(name: str) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        connection: Any
        if name == "graph.db":
            connection = sqlite3.connect(folder / name)
            connection.executescript(_DATABASE)
        else:
            connection = importlib.import_module("duckdb").connect(str(folder / name))
            connection.execute(_DATABASE)
        rows = _tables()["movie_actor"].to_pylist()
        connection.executemany("insert into movies values (?, ?, ?)", [(n, f"film {n}", n) for n in range(9)])
        connection.executemany("insert into actors values (?)", [(f"a{n}",) for n in range(7)])
        connection.executemany("insert into movie_actor values (?, ?)", [tuple(row.values()) for row in rows])
        connection.commit()
        connection.close()

    return write


def _only(folder: Path) -> Path:
    """Return the file or folder in a folder, or the folder itself if it holds several."""
    paths = list(folder.iterdir())
    return paths[0] if len(paths) == 1 else folder


def _load(folder: Path) -> HIN:
    return load(_only(folder))


def _import(folder: Path) -> HIN:
    with TemporaryDirectory() as parent:
        return load(import_store(_only(folder), Path(parent) / "store"))


def _read_pairs(folder: Path) -> None:
    read_pairs(load("toy"), _only(folder))


def _read_update(folder: Path) -> None:
    read_update(add=[_only(folder)])


# ---- Plain checks of the number of edges ---------------------------------------------------------
def _edges(hin: HIN) -> float:
    return float(sum(matrix.sum() for matrix in hin.matrices.values()))


def _as_csv(name: str, delimiter: str) -> Check:
    """Count the records of an unweighted table; its header and its comments are no edges."""

    def check(folder: Path, hin: HIN) -> bool:
        raw = (folder / name).read_bytes()
        raw = gzip.decompress(raw) if name.endswith(".gz") else raw
        text = raw.decode("utf-8-sig")
        quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if delimiter == "," else csv.QUOTE_NONE
        records = [
            row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, quoting=quoting) if row
        ]
        comments = sum(line.startswith(("#", "%")) for line in text.splitlines())
        return len(records) - 1 - comments <= _edges(hin) <= len(records)

    return check


def _as_sqlite(folder: Path, hin: HIN) -> bool:
    """Count the rows that have both ends; a damaged name of a column is another column, with no edges."""
    connection = sqlite3.connect(folder / "graph.db")
    try:
        query = "select count(*) from movie_actor where movie_id is not null and actor_id is not null"
        ((count,),) = connection.execute(query).fetchall()
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


_CAST = "movie_id{0}actor_id\n" + "".join(f"{row % 9}{{0}}a{row % 7}\n" for row in range(30))
_MOVIES = "movie_id,title,year\n" + "".join(f'{row},"film, {row}",{1990 + row}\n' for row in range(9))
_TRIPLES = "".join(f"/m/{row}\t/film/{row % 3}\t/m/{row % 5}\n" for row in range(30))
_NODES = "id\tname\tkind\n" + "".join(f"G::{row}\tN{row}\t{'AB'[row % 2]}\n" for row in range(10))
_EDGES = "source\tmetaedge\ttarget\n" + "".join(f"G::{row % 10}\tx\tG::{row % 7}\n" for row in range(30))
_NEO4J_NODES = "personId:ID(P),name:string,:LABEL\n" + "".join(f"{r},Ann {r},{'PF'[r % 2]}\n" for r in range(10))
_NEO4J_EDGES = ":START_ID(P),:END_ID(P),:TYPE\n" + "".join(f"{row % 10},{row % 7},IN\n" for row in range(30))
_TOML = (
    'delimiter = ";"\n[nodes.movie]\nfile = "m.csv"\nid = "key"\nname = "label"\nattributes = ["year"]\n'
    '[[edges]]\nname = "acts"\nfile = "cast.csv"\nsource = "actor"\ntarget = "movie"\ncolumns = ["who", "what"]\n'
)
_INFO = json.dumps({
    "node.dat": {"node type": {"0": "author", "1": "paper"}},
    "link.dat": {"link type": {"0": {"start": 0, "end": 1, "meaning": "author-writes-paper"}}},
})  # fmt: skip
_HGB_NODES = "".join(f"{row}\tname {row}\t{int(row > 4)}\t0.5,1\n" for row in range(10))
_HGB_LINKS = "".join(f"{row % 5}\t{5 + row % 4}\t0\t1.0\n" for row in range(20))
_FILM = "<http://ex.org/f{0}> <http://ex.org/{1}> {2} .\n"
_N_TRIPLES = "".join(
    _FILM.format(row % 9, "actor", f"<http://ex.org/a{row % 7}>") + _FILM.format(row % 9, "year", f'"{1990 + row}"')
    for row in range(20)
)
_TURTLE = "@prefix ex: <http://ex.org/> .\n" + "".join(
    f'ex:f{row} a ex:Film ; ex:title "film {row}"@en ; ex:actor ex:a{row % 3}, [ a ex:Person ; ex:age {row} ] .\n'
    for row in range(9)
)
_RDF_XML = (
    '<?xml version="1.0"?>\n<!DOCTYPE rdf:RDF [<!ENTITY ex "http://ex.org/">]>\n<rdf:RDF xmlns:ex="http://ex.org/" '
    'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">\n'
    + "".join(
        f'<ex:Film rdf:about="&ex;f{row}"><ex:title>film {row}</ex:title><ex:actor rdf:resource="&ex;a{row % 3}"/>'
        "</ex:Film>\n"
        for row in range(9)
    )
    + "</rdf:RDF>\n"
)
_WORKS = [
    {
        "id": f"https://x.org/W{row}", "title": f"work {row}", "year": 1990 + row, "tags": ["a", "b"][: row % 3],
        "authorships": [{"author": {"id": f"https://x.org/A{row % 4}", "name": f"author {row % 4}"}}],
    }
    for row in range(12)
]  # fmt: skip
_JSON_LINES = "".join(json.dumps(work) + "\n" for work in _WORKS)
_HETIONET = json.dumps({
    "nodes": [{"kind": "AB"[row % 2], "identifier": row, "name": f"node {row}"} for row in range(10)],
    "edges": [
        {"source_id": ["A", row % 5 * 2], "target_id": ["B", 1], "kind": "x", "direction": "both"} for row in range(12)
    ],
})  # fmt: skip
_DBLP = '<?xml version="1.0"?>\n<!DOCTYPE dblp SYSTEM "dblp.dtd">\n<dblp>' + "".join(
    f'<article key="k{row}"><author>J&uuml;rgen {row % 4}</author><title>T{row}</title><journal>V</journal></article>\n'
    for row in range(12)
)
_PAIRS = "query,target,score\nMike,Jim,0.5\nMike,Mary,1\nBob,Ann,0.25\n"
_UPDATE = "relation,source,target,weight\nwrites,Mike,paper 7,1\nwrites,Jim,paper 8,2.5\n"

FORMATS: Final[dict[str, Format]] = {
    "csv": Format(
        _texts(movie_actor__csv=_CAST.format(","), movies__csv=_MOVIES), _load, _as_csv("movie_actor.csv", ",")
    ),
    "tsv": Format(_texts(movie_actor__tsv=_CAST.format("\t")), _load, _as_csv("movie_actor.tsv", "\t")),
    "triples": Format(_texts(kg__txt=_TRIPLES), _load, _as_csv("kg.txt", "\t")),
    "csv.gz": Format(_texts(movie_actor__csv__gz=_CAST.format(",")), _load, _as_csv("movie_actor.csv.gz", ",")),
    "nodes and edges": Format(_texts(nodes__tsv=_NODES, edges__tsv=_EDGES), _load, _as_csv("edges.tsv", "\t")),
    "neo4j": Format(
        _texts(nodes__csv=_NEO4J_NODES, relationships__csv=_NEO4J_EDGES), _load, _as_csv("relationships.csv", ",")
    ),
    "graph.toml": Format(
        _texts(
            graph__toml=_TOML, m__csv="key;label;year\n1;Up;2009\n2;Heat;1995\n", cast__csv="who;what\na;1\nb;2\nb;1\n"
        ),
        _load,
    ),
    "parquet": Format(_write_parquet, _load),
    "hive": Format(_write_parts, _load),
    "exported": Format(_write_exported, _load),
    "graphml": Format(_write_networkx(".graphml"), _load, _by_pattern("graph.graphml", "<edge[^A-Za-z0-9]")),
    "gexf": Format(_write_networkx(".gexf"), _load, _by_pattern("graph.gexf", "<edge[^A-Za-z0-9]")),
    "gml": Format(_write_networkx(".gml"), _load, _by_pattern("graph.gml", r"edge\s*\[")),
    "graphml.gz": Format(_write_networkx(".graphml.gz"), _load),
    "hgb": Format(_texts(node__dat=_HGB_NODES, link__dat=_HGB_LINKS, info__dat=_INFO), _load),
    "mat": Format(_write_mat(compressed=False), _load),
    "mat compressed": Format(_write_mat(compressed=True), _load),
    "mat 4": Format(_write_mat(compressed=False, version="4"), _load),
    "nt": Format(_texts(kg__nt=_N_TRIPLES), _load, _by_pattern("kg.nt", r"(?m)^.")),
    "nt.gz": Format(_texts(kg__nt__gz=_N_TRIPLES), _load),
    "nq": Format(_texts(kg__nq=_N_TRIPLES.replace(" .", " <http://ex.org/g> .")), _load),
    "ttl": Format(_texts(kg__ttl=_TURTLE), _load, _by_pattern("kg.ttl", "[:<]")),
    "rdf xml": Format(_texts(kg__rdf=_RDF_XML), _load, _by_pattern("kg.rdf", "<")),
    "jsonl": Format(_texts(works__jsonl=_JSON_LINES), _load, _by_pattern("works.jsonl", '"')),
    "jsonl.gz": Format(_texts(works__jsonl__gz=_JSON_LINES), _load),
    "json": Format(_texts(works__json=json.dumps({"results": _WORKS})), _load, _by_pattern("works.json", '"')),
    "json nodes and edges": Format(_texts(hetionet__json=_HETIONET), _load, _by_pattern("hetionet.json", "source_id")),
    "sqlite": Format(_write_database("graph.db"), _load, _as_sqlite),
    "duckdb": Format(_write_database("graph.duckdb"), _load),
    "dblp": Format(_texts(dblp__xml=_DBLP + "</dblp>"), _load, _by_pattern("dblp.xml", "<[ac]|<j")),
    "pairs": Format(_texts(pairs__csv=_PAIRS), _read_pairs),
    "update": Format(_texts(update__csv=_UPDATE), _read_update),
    "import csv": Format(
        _texts(movie_actor__csv=_CAST.format(","), movies__csv=_MOVIES), _import, _as_csv("movie_actor.csv", ",")
    ),
    "import triples": Format(_texts(kg__txt=_TRIPLES), _import, _as_csv("kg.txt", "\t")),
    "import parquet": Format(_write_parquet, _import),
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
        if hin is None:
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
