"""Measure the largest graphs: import, open, first query, median query and a join of 10,000 queries, with peak memory.

    python benchmarks/scale.py import --edges 1e8 --folder DIR --memory-limit 6GiB    # tables, store, search, join
    python benchmarks/scale.py snapshot --edges 1e9 --folder DIR                      # mapped files, search, join
    python benchmarks/scale.py snapshot --edges 2.25e9 --mean-degree 40 --folder DIR  # more than 2³¹ entries
    python benchmarks/scale.py index --folder DIR --readers 50 [--s3]                 # of the graph that is there

The graph has authors, papers and venues, as that of `powerlaw.py`, but each author draws papers from an own seed, so
that it is generated row by row, in parallel and in little memory. `import` writes Parquet tables with integer ids and
imports them out of core; `snapshot` writes the files of a store's snapshot in place, without a database. Every step
runs in its own process; peak memory is the largest resident size, which counts the pages of mapped files, and `private`
the largest size without these. `exact` compares
the hits of one of the last authors with a scan of all edges. `index` prepares an index of the graph in the folder,
opens it in new processes, one and then many at once, and with --s3 from a server of moto. `share` is how much of the
index's bytes the first query reads; `pss` are the bytes of the readers' memory, shared pages counted once.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numba import njit, prange

from neupath import HIN, PathSim, join, load, open_index, prepare
from neupath.engine.products import Factors
from neupath.graph.edges import index_type
from neupath.graph.hin import Csr
from neupath.graph.metapath import Relation, Schema
from neupath.store import StoreLayout, node_table, snapshots
from neupath.store.database import VersionFacts
from neupath.store.versions import to_hin

SCHEMA = Schema(("author", "paper", "venue"), (Relation("author", "writes", "paper"), Relation("paper", "at", "venue")))
EXPONENT = 0.75
CHUNK = 1 << 16  # authors that are generated at a time
QUERIES, JOINED = 30, 10_000


# ---- The graph -----------------------------------------------------------------------------------
@njit(inline="always", cache=True)
def _mix(value: Any) -> Any:
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@njit(inline="always", cache=True)
def _uniform(seed: Any, number: Any) -> Any:
    bits = _mix(_mix(np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(1)) + np.uint64(number))
    return (float(bits >> np.uint64(11)) + 0.5) / 9007199254740992.0


@njit(cache=True)
def _draw_papers(author: int, count: int, edges: float, factor: int, back: int, papers: Any) -> Any:
    """Write the papers of an author, sorted and distinct; return how many.

    Author and paper numbers are `factor` times their rank, modulo `count`; `back` undoes that.
    """
    rank = float(author * back % count)
    power = 1.0 - EXPONENT
    degree = edges * ((rank + 1.0) ** power - rank**power) / float(count) ** power
    size = min(int(degree + _uniform(author, -1)), len(papers))
    for i in range(size):
        place = int(count * _uniform(author, i) ** (1.0 / (1.0 - EXPONENT / 2)))
        papers[i] = place * factor % count
    papers[:size].sort()
    distinct = 0
    for i in range(size):
        if i == 0 or papers[i] != papers[i - 1]:
            papers[distinct] = papers[i]
            distinct += 1
    return distinct


@njit(parallel=True, nogil=True, cache=True)
def _count_papers(first: int, count: int, edges: float, factor: int, back: int, most: int, sizes: Any) -> None:
    for chunk in prange((len(sizes) + 1023) // 1024):
        papers = np.empty(most, dtype=np.int64)
        for at in range(chunk * 1024, min((chunk + 1) * 1024, len(sizes))):
            sizes[at] = _draw_papers(first + at, count, edges, factor, back, papers)


@njit(parallel=True, nogil=True, cache=True)
def _fill_papers(
    first: int, count: int, edges: float, factor: int, back: int, most: int, starts: Any, out: Any
) -> None:
    for chunk in prange((len(starts) + 1022) // 1024):
        papers = np.empty(most, dtype=np.int64)
        for at in range(chunk * 1024, min((chunk + 1) * 1024, len(starts) - 1)):
            size = _draw_papers(first + at, count, edges, factor, back, papers)
            begin = starts[at]
            for i in range(size):
                out[begin + i] = papers[i]


class Graph:
    """The numbers of a graph: authors and papers, venues, and the papers of a stretch of authors."""

    def __init__(self, edges: float, mean_degree: float) -> None:
        self.edges, self.count = edges, int(edges / mean_degree)
        self.venues = int(self.count**0.5)
        self._factor = next(f for f in range(int(0.618 * self.count), self.count) if np.gcd(f, self.count) == 1)
        self._back = pow(self._factor, -1, self.count)
        self._most = min(self.count, int(edges / self.count ** (1 - EXPONENT)) + 1)

    def count_papers(self, first: int, last: int) -> Any:
        sizes = np.empty(last - first, dtype=np.int64)
        _count_papers(first, self.count, self.edges, self._factor, self._back, self._most, sizes)
        return sizes

    def fill_papers(self, first: int, starts: Any, out: Any) -> None:
        _fill_papers(first, self.count, self.edges, self._factor, self._back, self._most, starts, out)

    def places(self) -> Any:
        """Return the venue of each paper."""
        share = np.random.default_rng(0).random(self.count)
        return np.minimum((self.venues * share ** (1 / (1 - EXPONENT))).astype(np.int64), self.venues - 1)

    def chunks(self) -> Iterator[tuple[int, int]]:
        return ((first, min(first + 16 * CHUNK, self.count)) for first in range(0, self.count, 16 * CHUNK))

    def sizes(self) -> dict[str, int]:
        return {"author": self.count, "paper": self.count, "venue": self.venues}


# ---- As tables, and as the mapped files of a snapshot --------------------------------------------
def write_tables(graph: Graph, folder: Path) -> dict[str, Any]:
    """Write Parquet tables of nodes and edges, edges in the order of authors."""
    for node_type, size in graph.sizes().items():
        (folder / f"{node_type}s").mkdir(parents=True)
        pq.write_table(pa.table({f"{node_type}_id": np.arange(size)}), folder / f"{node_type}s" / "part-0.parquet")
    edges = 0
    schema = pa.schema([("author_id", pa.int64()), ("paper_id", pa.int64())])
    (folder / "author_paper").mkdir()
    with pq.ParquetWriter(folder / "author_paper" / "part-0.parquet", schema) as out:
        for first, last in graph.chunks():
            starts = np.concatenate([[0], np.cumsum(graph.count_papers(first, last))])
            papers = np.empty(starts[-1], dtype=np.int64)
            graph.fill_papers(first, starts, papers)
            authors = np.repeat(np.arange(first, last), np.diff(starts))
            out.write_table(pa.table([authors, papers], schema=schema), row_group_size=1 << 20)
            edges += len(papers)
    (folder / "paper_venue").mkdir()
    table = pa.table({"paper_id": np.arange(graph.count), "venue_id": graph.places()})
    pq.write_table(table, folder / "paper_venue" / "part-0.parquet")
    return {"edges": edges, "nodes": sum(graph.sizes().values())}


def write_files(graph: Graph, folder: Path) -> dict[str, Any]:
    """Write the files of a snapshot in place."""
    target = folder / "snapshot-0"
    target.mkdir(parents=True)
    sizes = graph.sizes()
    starts = np.zeros(graph.count + 1, dtype=np.int64)
    for first, last in graph.chunks():
        starts[first + 1 : last + 1] = graph.count_papers(first, last)
    np.cumsum(starts, out=starts)
    entries = int(starts[-1])
    kind = index_type((graph.count, graph.count), entries)
    arrays = {
        part: np.lib.format.open_memmap(target / f"edges-0-{part}.npy", "w+", dtype, (length,))
        for part, dtype, length in (
            ("indptr", kind, len(starts)), ("indices", kind, entries), ("data", np.dtype(np.float64), entries)
        )
    }  # fmt: skip
    arrays["indptr"][:] = starts
    for first, last in graph.chunks():
        graph.fill_papers(first, starts[first : last + 1], arrays["indices"])
    for begin in range(0, entries, 1 << 26):
        arrays["data"][begin : begin + (1 << 26)] = 1.0
    del arrays
    for part, array in (
        ("indptr", np.arange(graph.count + 1, dtype=np.int32)), ("indices", graph.places().astype(np.int32)),
        ("data", np.ones(graph.count)),
    ):  # fmt: skip
        np.save(target / f"edges-1-{part}.npy", array, allow_pickle=False)
    for number, size in enumerate(sizes.values()):
        batches = range(0, size, 1 << 22)
        tables = (_nodes(first, min(first + (1 << 22), size)) for first in batches)
        with snapshots.writing_table(snapshots.node_file(target, number), _nodes(0, 1).schema) as out:
            for table in tables:
                out.write_table(table)
    facts = VersionFacts(0, sum(sizes.values()), entries + graph.count, 0, 0)
    snapshots.seal(target, facts)
    (folder / "facts.json").write_text(json.dumps(vars(facts)), encoding="utf-8")
    return {"edges": entries, "nodes": facts.nodes, "index": str(kind)}


def _nodes(first: int, last: int) -> pa.Table:
    return node_table(pa.array(np.arange(first, last)), None, pa.table({}), first)


def open_graph(source: Path) -> HIN:
    """Open a store, or the files of `write_files`."""
    if not (source / "facts.json").is_file():
        return load(source)
    facts = VersionFacts(**json.loads((source / "facts.json").read_text(encoding="utf-8")))
    layout = StoreLayout(SCHEMA, (False,) * 3, (pa.schema([]),) * 3)
    return to_hin(layout, snapshots.map_snapshot(source / "snapshot-0", layout, facts, verify=True))


# ---- What a user does with it --------------------------------------------------------------------
def search(source: Path, metapath: str, joined: int) -> dict[str, Any]:
    """Open a graph, fit PathSim, search and join; return the seconds of each."""
    seconds: dict[str, float] = {}
    cpu_seconds: dict[str, float] = {}

    def timed(name: str, run: Any) -> Any:
        began, cpu_began = time.perf_counter(), time.process_time()
        result = run()
        seconds[name] = round(time.perf_counter() - began, 4)
        cpu_seconds[name] = round(time.process_time() - cpu_began, 4)
        print(json.dumps({name: seconds[name], "peak_mib": _peak()}), file=sys.stderr, flush=True)
        return result

    hin = timed("open", lambda: open_graph(source))
    scorer = timed("fit", lambda: PathSim(metapath).fit(hin))
    count = hin.num_nodes("author")
    ids = np.random.default_rng(1).choice(count, QUERIES + joined, replace=False).tolist()
    first = timed("first query", lambda: scorer.top_k(ids[0]))
    times = []
    for query in ids[1:QUERIES]:
        began, cpu_began = time.perf_counter(), time.process_time()
        scorer.top_k(query)
        times.append((time.perf_counter() - began, time.process_time() - cpu_began))
    median, cpu_median = np.median(times, axis=0).round(6).tolist()
    out = source.with_suffix(".parquet")
    result = timed("join", lambda: join(hin, scorer, out, 10, queries=ids[QUERIES:]))
    out.unlink()
    assert isinstance(scorer.factors_, Factors)
    left = scorer.factors_.left
    exact = timed("check", lambda: is_exact(scorer, left)) if metapath == "author-paper-author" else None
    return {
        "metapath": metapath, **seconds, "median query": median, "cpu": cpu_seconds | {"median query": cpu_median},
        "hits": len(first),
        "W entries": int(left.nnz), "index": str(left.indices.dtype), "exact": exact,
        "joined": result.queries, "pairs": result.pairs, "peak_mib": _peak(),
    }  # fmt: skip


def is_exact(scorer: PathSim, matrix: Csr) -> bool:
    """Whether the hits of an author at the end of the matrix are those of a scan of all edges, of weight 1 each."""
    starts, papers = matrix.indptr, matrix.indices
    degrees = np.diff(starts)
    author = int(np.flatnonzero((degrees > 5) & (degrees < 40))[-1])
    is_own = np.zeros(matrix.shape[1], dtype=np.uint8)
    is_own[papers[starts[author] : starts[author + 1]]] = 1
    shared = np.empty(matrix.shape[0], dtype=np.int64)
    for first in range(0, matrix.shape[0], 1 << 20):
        bounds = starts[first : first + (1 << 20) + 1].astype(np.int64)
        sums = np.cumsum(is_own[papers[bounds[0] : bounds[-1]]], dtype=np.int64)
        shared[first : first + len(bounds) - 1] = np.diff(np.concatenate([[0], sums])[bounds - bounds[0]])
    scores = 2.0 * shared / (degrees[author] + degrees)
    scores[author] = 0.0
    related = np.flatnonzero(scores > 0)
    best = related[np.lexsort((related, -scores[related]))][:10]
    hits = scorer.top_k(author)
    return bool(list(hits.ids) == best.tolist() and list(hits.scores) == scores[best].tolist())


# ---- A prepared index ----------------------------------------------------------------------------
def prepare_index(source: Path, metapath: str) -> dict[str, Any]:
    """Prepare an index of a graph; return the seconds of each stage."""
    seconds: dict[str, float] = {}
    began, stage = time.perf_counter(), ["fingerprint of the graph"]

    def progress(name: str, _done: int, _total: int | None) -> None:
        nonlocal began
        if name != stage[0]:
            seconds[stage[0]] = round(seconds.get(stage[0], 0.0) + time.perf_counter() - began, 1)
            began, stage[0] = time.perf_counter(), name

    prepare(open_graph(source), PathSim(metapath), source.with_name("index"), progress=progress)
    progress("", 0, None)
    return {"stages": seconds}


def read_index(url: str, queries: int, waits: bool) -> dict[str, Any]:
    """Open an index and search it; with `waits`, stay until the input ends, to be measured."""
    began = time.perf_counter()
    index = open_index(url)
    opened = time.perf_counter()
    ids = np.random.default_rng(1).choice(len(index.hin_.nodes["author"]), queries, replace=False).tolist()
    at_open = index.files.bytes_read
    index.top_k(ids[0])
    first = time.perf_counter()
    read = index.files.bytes_read
    times = []
    for query in ids[1:]:
        start = time.perf_counter()
        index.top_k(query)
        times.append(time.perf_counter() - start)
    result = {
        "open": round(opened - began, 3), "first query": round(first - opened, 3),
        "median query": round(float(np.median(times)), 6), "share at open": round(at_open / index.files.size, 6),
        "share": round(read / index.files.size, 6), "index_mib": index.files.size >> 20,
    }  # fmt: skip
    if waits:
        print(json.dumps(result), flush=True)
        sys.stdin.read()
    return result


def many_readers(url: str, count: int) -> dict[str, Any]:
    """Open an index by many processes at once; return the slowest, and the memory of all."""
    command = [sys.executable, __file__, "reader", "--folder", url]
    pipe = subprocess.PIPE
    began = time.perf_counter()
    processes = [subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) for _ in range(count)]
    results = [json.loads(process.stdout.readline()) for process in processes if process.stdout is not None]
    seconds = time.perf_counter() - began
    pss = sum(_rollup(process.pid, "Pss") for process in processes)
    rss = sum(_rollup(process.pid, "Rss") for process in processes)
    for process in processes:
        process.communicate()
    slowest = {name: max(own[name] for own in results) for name in ("open", "first query", "median query")}
    return {"readers": count, "seconds": round(seconds, 1), "pss_mib": pss, "rss_mib": rss, "slowest": slowest}


def _rollup(process: int, field: str) -> int:
    lines = Path(f"/proc/{process}/smaps_rollup").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) >> 10 for line in lines if line.startswith(field + ":"))


def read_from_s3(index: Path) -> dict[str, Any]:
    """Copy an index to a server of moto, and search it from there in a new process."""
    import logging

    from moto.server import ThreadedMotoServer
    from pyarrow import fs

    server = ThreadedMotoServer("127.0.0.1", 0)
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server.start()
    host, port = server.get_host_and_port()
    settings = {"AWS_ENDPOINT_URL": f"http://{host}:{port}", "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
    os.environ.update(settings)
    store = fs.S3FileSystem(
        endpoint_override=settings["AWS_ENDPOINT_URL"], region="us-east-1", allow_bucket_creation=True
    )
    store.create_dir("benchmark")
    fs.copy_files(str(index), "benchmark/index", fs.LocalFileSystem(), store)
    try:
        return run_step(__file__, "reader", "--folder", "s3://benchmark/index", "--once")
    finally:
        server.stop()


def _peak() -> int:
    return _status("VmHWM")


def _status(field: str, process: int | str = "self") -> int:
    """Return a field of a process in MiB; 0 where it has ended."""
    try:
        lines = Path(f"/proc/{process}/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) >> 10 for line in lines if line.startswith(field + ":")), 0)


def run_step(*arguments: object) -> dict[str, Any]:
    """Run a process; return what it prints, its wall and CPU seconds, its peak memory and that without files."""
    began = time.perf_counter()
    process = subprocess.Popen([sys.executable, *map(str, arguments)], stdout=subprocess.PIPE, text=True)
    ended, peaks = Event(), {"VmHWM": 0, "RssAnon": 0}

    def watch() -> None:
        while not ended.wait(0.2):
            for field, peak in peaks.items():
                peaks[field] = max(peak, _status(field, process.pid))

    watcher = Thread(target=watch)
    watcher.start()
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    ended.set()
    watcher.join()
    if status:
        raise SystemExit(f"{arguments} failed")
    printed = json.loads(output) if output.startswith("{") else {}
    seconds, cpu_seconds = round(time.perf_counter() - began, 1), round(usage.ru_utime + usage.ru_stime, 1)
    peak_mib = {"peak_mib": peaks["VmHWM"], "private_mib": peaks["RssAnon"]}
    return {"seconds": seconds, "cpu_seconds": cpu_seconds, **peak_mib, **printed}


def _size(path: Path) -> int:
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file()) >> 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "action", choices=["import", "snapshot", "index", "tables", "files", "search", "prepare", "reader"]
    )
    parser.add_argument("--edges", type=float, default=1e8)
    parser.add_argument("--mean-degree", type=float, default=10.0)
    parser.add_argument("--folder", required=True, help="where all files go; they stay there")
    parser.add_argument("--memory-limit", default="4GiB", help="of the database during the import")
    parser.add_argument("--metapaths", default="author-paper-author")
    parser.add_argument("--joined", type=int, default=JOINED)
    parser.add_argument("--readers", type=int, default=50)
    parser.add_argument("--s3", action="store_true")
    parser.add_argument("--once", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.action == "reader":
        result = read_index(options.folder, QUERIES, waits=not options.once)
        print(json.dumps(result) if options.once else "")
        return
    options.folder = Path(options.folder)
    if options.action == "prepare":
        print(json.dumps(prepare_index(options.folder, options.metapaths)))
        return
    if options.action == "index":
        source, index = options.folder / "graph", options.folder / "index"
        step = run_step(__file__, "prepare", "--folder", source, "--metapaths", options.metapaths)
        _show("prepare", step, index)
        _show("open", run_step(__file__, "reader", "--folder", index, "--once"), index)
        _show("readers", many_readers(str(index), options.readers), index)
        if options.s3:
            _show("s3", read_from_s3(index), index)
        return
    graph = Graph(options.edges, options.mean_degree)
    if options.action == "search":
        print(json.dumps(search(options.folder, options.metapaths, options.joined)))
        return
    if options.action in ("tables", "files"):
        print(json.dumps((write_tables if options.action == "tables" else write_files)(graph, options.folder)))
        return
    size = ("--edges", options.edges, "--mean-degree", options.mean_degree)
    tables, source = options.folder / "tables", options.folder / "graph"
    if options.action == "import":
        _show("tables", run_step(__file__, "tables", *size, "--folder", tables), tables)
        limit = ("--memory-limit", options.memory_limit)
        _show("import", run_step("-m", "neupath.cli", "import", tables, "--to", source, *limit), source)
    else:
        _show("files", run_step(__file__, "files", *size, "--folder", source), source)
    for metapath in options.metapaths.split(","):
        chosen = ("--metapaths", metapath, "--joined", options.joined)
        _show("search", run_step(__file__, "search", "--folder", source, *chosen), source)


def _show(step: str, measured: dict[str, Any], path: Path) -> None:
    print(json.dumps({"step": step, **measured, "files_mib": _size(path)}), flush=True)


if __name__ == "__main__":
    main()
