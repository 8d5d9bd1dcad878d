"""Compare the exact engine with other libraries: top 10 by PathSim, for one query and for many, in one run.

    python benchmarks/engine.py [--data DATA] [--edges 1e5,1e6,1e7] [--out FOLDER] [--rounds 5]

Peers and the engine are timed in interleaved rounds, and the median is reported; a peer that takes more than
--max-seconds has one round, and the JSON says so. All start from the same half-path matrix W, its transpose and
diagonal, computed once and not timed. The engine's index is also built before, and its time is reported separately. A
peer computes W[block]·Wᵀ with its library, in blocks of up to 256 rows; one compiled step, the same for all, normalises
and takes the top 10. DuckDB and Polars do both in one query. `dense` is numpy's product, if W fits. All may use every
core. Before timing, each peer must return the engine's ids and scores. `sparse_dot_topn` can only rank by the raw
product, so its product is ranked by the compiled step, too. Peers that are not installed are left out, with a note;
`pip install 'neupath[bench]'` installs them all.
"""

import argparse
import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numba import njit
from powerlaw import powerlaw
from scipy.sparse import csr_array

import neupath as npth
from neupath import HIN
from neupath.engine.formula import Normalisation, formula_of
from neupath.engine.index import index_of
from neupath.engine.products import Factors
from neupath.engine.topk import borrow_scratch, return_scratch, top_k_of_product

K, BLOCK, MANY, SINGLE = 10, 256, 5000, 40
MAX_PRODUCT = 1 << 25
"""The most entries of a block's product in a peer."""
PEERS = ("scipy", "MKL", "GraphBLAS", "sparse_dot_topn", "torch", "dense", "DuckDB", "Polars")
JOINING = ("DuckDB", "Polars")
"""Peers that join every pair of entries get fewer queries at a time, for their memory; times are per query."""
Answer = tuple[np.ndarray, np.ndarray]
Peer = Callable[[np.ndarray], Answer]


@njit(nogil=True)
def rank_products(indptr, indices, data, queries, norms, k):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Normalise the rows of a sparse product and take each one's top k, ties by row; the same step for all peers."""
    rows, scores = np.full((len(queries), k), -1, dtype=np.int64), np.zeros((len(queries), k))
    for q in range(len(queries)):
        for i in range(indptr[q], indptr[q + 1]):
            y = indices[i]
            if y == queries[q] or data[i] <= 0:
                continue
            score = 2.0 * data[i] / (norms[queries[q]] + norms[y])
            if score < scores[q, k - 1] or (score == scores[q, k - 1] and 0 <= rows[q, k - 1] < y):
                continue
            at = k - 1
            while at > 0 and (score > scores[q, at - 1] or (score == scores[q, at - 1] and y < rows[q, at - 1])):
                scores[q, at], rows[q, at] = scores[q, at - 1], rows[q, at - 1]
                at -= 1
            scores[q, at], rows[q, at] = score, y
    return rows, scores


def _copy_for_c(matrix: csr_array) -> csr_array:
    """Return a writable copy with 32-bit indices, as libraries in C require."""
    parts = (matrix.data.copy(), matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32))
    return csr_array(parts, shape=matrix.shape)


class Case:
    """A graph and a meta-path, ready for every peer."""

    def __init__(self, name: str, hin: HIN, path: str) -> None:
        self.name, self.path = name, path
        factors = npth.PathSim(path).fit(hin).factors_
        if not isinstance(factors, Factors):
            raise MemoryError(f"the half-path matrix of {path} on {name} does not fit into memory")
        self.factors = factors
        self.w, self.wt = _copy_for_c(self.factors.left), _copy_for_c(self.factors.right)
        self.norms = np.array(self.factors.left_norms)
        rng = np.random.default_rng(0)
        count = self.w.shape[0]
        related = np.flatnonzero(np.diff(self.w.indptr) > 0)
        self.many = np.sort(rng.choice(count, min(MANY if count < 500_000 else MANY // 5, count), replace=False))
        self.block = max(1, min(BLOCK, MAX_PRODUCT // count))
        self.single = rng.choice(related, min(SINGLE, len(related)), replace=False)

    @property
    def is_small(self) -> bool:
        """Whether W fits into memory with all its zeros."""
        return self.w.shape[0] * self.w.shape[1] <= 60_000_000

    def by_product(self, product: Callable[[csr_array], Any]) -> Peer:
        """Make a peer of a function that multiplies some rows by Wᵀ."""

        def rank(queries: np.ndarray) -> Answer:
            parts = []
            for start in range(0, len(queries), self.block):
                block = queries[start : start + self.block]
                indptr, indices, data = product(self.w[block])
                parts.append(rank_products(indptr, indices, data, block, self.norms, K))
            return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])

        return rank

    def engine(self, queries: np.ndarray) -> Answer:
        ranking = top_k_of_product(self.factors, 1, queries, queries, K)
        return ranking.rows, ranking.scores


def arrays(product: csr_array) -> tuple[Any, ...]:
    return product.indptr, product.indices, product.data


def peers_of(case: Case) -> Iterator[tuple[str, Peer]]:
    """Yield every peer that is installed."""
    yield "scipy", case.by_product(lambda rows: arrays(rows @ case.wt))
    with contextlib.suppress(ImportError):
        yield "MKL", case.by_product(_mkl(case))
    with contextlib.suppress(ImportError):
        yield "GraphBLAS", case.by_product(_graphblas(case))
    with contextlib.suppress(ImportError):
        yield "sparse_dot_topn", case.by_product(_sparse_dot_topn(case))
    with contextlib.suppress(ImportError):
        yield "torch", case.by_product(_torch(case))
    if case.is_small:
        dense = case.w.toarray()
        yield "dense", case.by_product(lambda rows: arrays(csr_array(rows.toarray() @ dense.T)))
    with contextlib.suppress(ImportError):
        yield "DuckDB", _duckdb(case)
    with contextlib.suppress(ImportError):
        yield "Polars", _polars(case)


def _sparse_dot_topn(case: Case) -> Callable[[csr_array], Any]:
    from scipy.sparse import csr_matrix
    from sparse_dot_topn import sp_matmul

    def narrow(matrix: csr_array) -> Any:
        copy = csr_matrix(matrix)
        copy.indptr, copy.indices = copy.indptr.astype(np.int32), copy.indices.astype(np.int32)
        return copy

    transposed = narrow(case.wt)
    return lambda rows: arrays(sp_matmul(narrow(rows), transposed, n_threads=os.cpu_count()))


def _mkl(case: Case) -> Callable[[csr_array], Any]:
    library = next(iter(sorted((Path(sys.prefix) / "lib").glob("libmkl_rt.so*"))), None)
    if library is not None:
        os.environ.setdefault("MKL_RT", str(library))
    from scipy.sparse import csr_matrix
    from sparse_dot_mkl import dot_product_mkl

    transposed = csr_matrix(case.wt)
    return lambda rows: arrays(dot_product_mkl(csr_matrix(rows), transposed))


def _graphblas(case: Case) -> Callable[[csr_array], Any]:
    import graphblas as gb

    transposed = gb.io.from_scipy_sparse(case.wt)

    def product(rows: csr_array) -> Any:
        result = gb.io.from_scipy_sparse(rows).mxm(transposed, gb.semiring.plus_times).new()
        indptr, indices, data = result.to_csr()
        return indptr.astype(np.int64), indices.astype(np.int64), data

    return product


def _torch(case: Case) -> Callable[[csr_array], Any]:
    import torch

    def tensor(matrix: csr_array) -> Any:
        indptr, indices, data = (torch.from_numpy(np.array(part)) for part in arrays(matrix))
        return torch.sparse_csr_tensor(indptr, indices, data, size=tuple(matrix.shape), check_invariants=False)

    transposed = tensor(case.wt)

    def product(rows: csr_array) -> Any:
        result = tensor(rows) @ transposed
        return result.crow_indices().numpy(), result.col_indices().numpy(), result.values().numpy()

    return product


def _entries(case: Case) -> dict[str, np.ndarray]:
    coo = case.w.tocoo()
    return {"x": coo.row.astype(np.int64), "m": coo.col.astype(np.int64), "w": coo.data}


def _to_arrays(queries: np.ndarray, columns: dict[str, Any]) -> Answer:
    """Turn (x, y, s, r) columns into arrays."""
    place = {int(query): at for at, query in enumerate(queries)}
    rows, scores = np.full((len(queries), K), -1, dtype=np.int64), np.zeros((len(queries), K))
    at = np.array([place[int(x)] for x in columns["x"]], dtype=np.int64)
    rank = columns["r"].astype(np.int64) - 1
    rows[at, rank], scores[at, rank] = columns["y"], columns["s"]
    return rows, scores


def _duckdb(case: Case) -> Peer:
    import duckdb
    import pyarrow as pa

    connection = duckdb.connect(config={"memory_limit": "6GB"})
    w, d = pa.table(_entries(case)), pa.table({"y": np.arange(len(case.norms)), "d": case.norms})
    connection.execute("create table w as select * from w")
    connection.execute("create table d as select * from d")

    def rank(queries: np.ndarray) -> Answer:
        q = pa.table({"x": queries})  # noqa: F841
        columns = connection.execute(
            "with m as (select a.x, b.x as y, sum(a.w * b.w) as m from w a join q using (x) join w b on a.m = b.m"
            " where a.x <> b.x group by all),"
            " s as (select m.x, m.y, 2 * m / (p.d + t.d) as s from m join d p on p.y = m.x join d t on t.y = m.y)"
            " select x, y, s, row_number() over (partition by x order by s desc, y) as r from s"
            " qualify r <= ?",
            [K],
        ).fetchnumpy()
        return _to_arrays(queries, columns)

    del w, d
    return rank


def _polars(case: Case) -> Peer:
    import polars as pl

    w = pl.DataFrame(_entries(case))
    d = pl.DataFrame({"y": np.arange(len(case.norms)), "d": case.norms})

    def rank(queries: np.ndarray) -> Answer:
        table = (
            pl.DataFrame({"x": queries})
            .lazy()
            .join(w.lazy(), on="x")
            .join(w.lazy().rename({"x": "y", "w": "v"}), on="m")
            .filter(pl.col("x") != pl.col("y"))
            .group_by("x", "y")
            .agg((pl.col("w") * pl.col("v")).sum().alias("m"))
            .join(d.lazy(), on="y")
            .join(d.lazy().rename({"y": "x", "d": "e"}), on="x")
            .with_columns((2 * pl.col("m") / (pl.col("d") + pl.col("e"))).alias("s"))
            .sort(["x", "s", "y"], descending=[False, True, False])
            .with_columns((pl.int_range(pl.len()).over("x") + 1).alias("r"))
            .filter(pl.col("r") <= K)
            .collect()
        )
        return _to_arrays(queries, {name: table[name].to_numpy() for name in ("x", "y", "s", "r")})

    return rank


def measure(case: Case, rounds: int, max_seconds: float, peers: list[str] | None) -> dict[str, Any]:
    """Check that all peers agree with the engine, then time them in turn."""
    began = time.perf_counter()
    index = index_of(case.factors)
    index_seconds = time.perf_counter() - began
    installed = dict(peers_of(case))
    if missing := [name for name in PEERS if name not in installed and (name != "dense" or case.is_small)]:
        print(f"left out because not installed: {', '.join(missing)}", file=sys.stderr)
    contenders = {"neupath": case.engine} | {
        name: installed[name] for name in installed if peers is None or name in peers
    }
    join_batch = int(np.clip(2e7 / max(case.factors.work, 1), 10, 200))
    sample = case.many[:join_batch]
    rows, scores = case.engine(sample)
    for name, peer in contenders.items():
        other_rows, other_scores = (part[:, : rows.shape[1]] for part in peer(sample))
        np.testing.assert_allclose(other_scores, scores, rtol=1e-9, err_msg=name)
        differ = (other_rows != rows) & ~_tied(scores)
        if differ.any():
            raise AssertionError(f"{name} returns other ids than the engine on {case.name} {case.path}")
    times: dict[str, dict[str, list[float]]] = {name: {"one": [], "many": []} for name in contenders}
    slow: set[tuple[str, str]] = set()
    for _ in range(rounds):
        for name, peer in contenders.items():
            for what in ("one", "many"):
                if (name, what) not in slow:
                    seconds = _timed(peer, case, what, join_batch if name in JOINING else MANY)
                    times[name][what].append(seconds)
                    if seconds * (SINGLE if what == "one" else len(case.many)) > max_seconds:
                        slow.add((name, what))  # one round of minutes is enough
    result = {name: {what: median(values) for what, values in both.items()} for name, both in times.items()}
    groups = np.unique(index.group_of[case.many])
    return {
        "graph": case.name, "path": case.path, "nodes": case.w.shape[0], "entries": int(case.w.nnz),
        "labels": index.num_labels, "queries": len(case.many), "index_seconds": index_seconds, "seconds": result,
        "rounds": {name: {what: len(values) for what, values in both.items()} for name, both in times.items()},
        "ceiling": _time_kernels(index, groups[groups >= 0], rounds),
    }  # fmt: skip


def _tied(scores: np.ndarray) -> np.ndarray:
    """Mark scores that equal a neighbour's up to rounding: another order of addition may swap them."""
    close = np.abs(np.diff(scores, axis=1)) <= 1e-12
    left, right = np.pad(close, ((0, 0), (1, 0))), np.pad(close, ((0, 0), (0, 1)), constant_values=True)
    tied: np.ndarray = left | right
    return tied


def _timed(peer: Peer, case: Case, what: str, max_queries: int) -> float:
    """Return the seconds per query."""
    sample = case.many[:: max(1, len(case.many) // max_queries)]
    began = time.perf_counter()
    if what == "many":
        peer(sample)
        return (time.perf_counter() - began) / len(sample)
    for query in case.single:
        peer(query[None])
    return (time.perf_counter() - began) / len(case.single)


def _time_kernels(index: Any, groups: np.ndarray, rounds: int) -> dict[str, float]:
    """Time, on one thread, the scatter alone, the kernel without pruning, and with it."""
    from neupath.engine import index_kernels as kernels

    scatter = kernels.scatter

    @njit(nogil=True)
    def scatter_only(left: Any, postings: Any, num_labels: int, groups: Any) -> float:
        indptr, indices, data = left
        starts, labels, values = postings
        sums = np.zeros(num_labels)
        total = 0.0
        for g in groups:
            for i in range(indptr[g], indptr[g + 1]):
                begin, end = starts[indices[i]], starts[indices[i] + 1]
                scatter(labels[begin:end], values[begin:end], data[i], sums)
            total += sums[0]
        return total

    rows, scores = np.full((len(groups), K + 1), -1, dtype=np.int64), np.zeros((len(groups), K + 1))

    targets = index.targets(K + 1)
    buffers = (np.empty(index.widest, dtype=np.int64), np.empty(index.widest, dtype=np.int64))

    def rank(prune: bool) -> None:
        scratch = borrow_scratch(index.num_labels)
        kernels.rank_groups(
            index.left,
            index.left_norms,
            index.postings,
            targets,
            formula_of(Normalisation.DICE),
            prune,
            groups,
            (*scratch[:2], *buffers),
            rows,
            scores,
        )
        return_scratch(scratch)

    steps: dict[str, Callable[[], object]] = {
        "scatter": lambda: scatter_only(index.left, index.postings, index.num_labels, groups),
        "unpruned": lambda: rank(False),
        "pruned": lambda: rank(True),
    }
    times: dict[str, list[float]] = {name: [] for name in steps}
    for number in range(rounds + 1):
        for name, step in steps.items():
            began = time.perf_counter()
            step()
            if number:  # the first round compiles
                times[name].append(time.perf_counter() - began)
    return {name: median(values) for name, values in times.items()}


def cases_of(data: Path | None, edges: list[int]) -> Iterator[Case]:
    """Yield the graphs and meta-paths to measure."""
    yield Case("stdlib", npth.load("stdlib"), "class-method-class")
    if data is not None:
        from neupath_paper.protocol import load_graph

        imdb, kg20c, hetionet = load_graph("imdb", data), load_graph("kg20c", data), npth.load(data / "hetionet")
        yield Case("imdb", imdb, "MAM")
        yield Case("imdb", imdb, "MAMAM")
        yield Case("kg20c", kg20c, "APA")
        yield Case("kg20c", kg20c, "APCPA")
        yield Case("hetionet", hetionet, "Disease-Gene-Disease")
        yield Case("hetionet", hetionet, "Gene-Anatomy-Gene")
    for count in edges:
        hin = powerlaw(count)
        yield Case(f"powerlaw {count:.0e}", hin, "author-paper-author")
        yield Case(f"powerlaw {count:.0e}", hin, "author-paper-venue-paper-author")


def show(results: list[dict[str, Any]]) -> str:
    """Format the tables: each peer's time over the engine's, and the scatter's share of the kernel's time."""
    names = list(dict.fromkeys(name for result in results for name in result["seconds"]))[1:]
    lines = []
    for what, title, unit in (("one", "one query", 1e3), ("many", "many queries, a query", 1e3)):
        lines += ["", f"| {title}: graph, path | neupath, ms | " + " | ".join(f"{n}, times" for n in names) + " |"]
        lines.append("|---|---:|" + "---:|" * len(names))
        for result in results:
            own = result["seconds"]["neupath"][what]
            each = own * unit
            cells = [_cell(result["seconds"].get(name), what, own) for name in names]
            lines.append(f"| {result['graph']}, {result['path']} | {each:.4f} | " + " | ".join(cells) + " |")
    lines += ["", "| graph, path | W entries | unpruned, share of scatter | pruned / unpruned | index, s |"]
    lines.append("|---|---:|---:|---:|---:|")
    for result in results:
        c = result["ceiling"]
        lines.append(
            f"| {result['graph']}, {result['path']} | {result['entries']:,} | {c['scatter'] / c['unpruned']:.2f} | "
            f"{c['pruned'] / c['unpruned']:.2f} | {result['index_seconds']:.3f} |"
        )
    return "\n".join(lines)


def _cell(seconds: dict[str, float] | None, what: str, own: float) -> str:
    return "-" if seconds is None else f"{seconds[what] / own:.1f}"


def draw(results: list[dict[str, Any]], path: Path) -> None:
    """Draw how many times the engine's time each peer takes, one panel for one query and one for many."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(name for result in results for name in result["seconds"]))[1:]
    figure = Figure(figsize=(11, 5.5), layout="constrained")
    FigureCanvasAgg(figure)
    marks = "osD^vPX*"
    for axes, what in zip(figure.subplots(1, 2, sharey=True), ("one", "many"), strict=True):
        for number, name in enumerate(names):
            own = [(r["seconds"][name][what] / r["seconds"]["neupath"][what] if name in r["seconds"] else np.nan)
                   for r in results]  # fmt: skip
            axes.plot(own, range(len(results)), marks[number % len(marks)], label=name, alpha=0.8)
        axes.axvline(1, color="black", linewidth=1)
        axes.set_xscale("log")
        axes.set_xlabel(f"time of a peer / time of neupath, {'one query' if what == 'one' else 'many queries'}")
        axes.grid(axis="x", alpha=0.3)
    axes = figure.axes[0]
    axes.set_yticks(range(len(results)), [f"{r['graph']}\n{r['path']}" for r in results], fontsize=7)
    axes.invert_yaxis()
    figure.axes[1].legend(fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    figure.savefig(path, dpi=140)


def main() -> None:
    """Measure every case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("NEUPATH_DATA"))
    parser.add_argument("--edges", default="1e5,1e6")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--max-seconds", type=float, default=10.0)
    parser.add_argument("--peers", default=None, help="only these, separated by commas")
    parser.add_argument("--out", default=None)
    arguments = parser.parse_args()
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # idle threads must not keep a core busy while others are timed
    edges = [int(float(text)) for text in arguments.edges.split(",") if text]
    peers = arguments.peers.split(",") if arguments.peers else None
    results = []
    for case in cases_of(Path(arguments.data) if arguments.data else None, edges):
        results.append(measure(case, arguments.rounds, arguments.max_seconds, peers))
        print(json.dumps(results[-1]), file=sys.stderr, flush=True)
    print(show(results))
    if arguments.out:
        folder = Path(arguments.out)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "engine.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
        (folder / "engine.md").write_text(show(results) + "\n", encoding="utf-8")
        draw(results, folder / "engine.svg")


if __name__ == "__main__":
    main()
