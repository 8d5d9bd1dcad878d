"""Compare ranking on a GPU with all cores of the same machine, and with a plain cuSPARSE product.

    python benchmarks/gpu.py [--edges 1e6,1e7] [--metapaths APA,APVPA] [--queries N] [--rounds 3] [--out FILE.json]
    python benchmarks/gpu.py --graph hetionet/ --metapaths Gene-Anatomy-Gene
    python benchmarks/gpu.py --threads 256,512 --tiles 8192,16384                 # time other shapes of the kernel, too
    python benchmarks/gpu.py command [--edges 1e6,1e7] [--metapaths APA,APVPA]    # `neupath join`, end to end

PathSim, top 10, the shortest of interleaved rounds. `copy` is the time to copy the product to the GPU and sort it;
`gpu` ranks the queries, from rows to rows in memory, and `kernel` is the part of it on the GPU; `cores` is the same on
all cores, with everything compiled and indexed. `plain` multiplies blocks of rows with cuSPARSE, normalises all
scores and takes `topk` of them, for `of` queries; `gpu of` ranks the same ones. `join gpu` and `join cores` are whole
joins of all queries with their files. `same`: rows and scores equal those of the cores to the bit, and so do the files.
`TB/s` is what the heavy kernel reads of postings, 4 bytes each; `bound` is the time that this takes at the bandwidth
of a large copy in the GPU's memory, as a share of the kernel's time.

`command` writes the graph to a folder and runs `neupath join FOLDER -p METAPATH --out FILE`, in turns with
`--device cpu` and `--device cuda`: whole processes, from start to the written file. It ends with an error where the two
files differ, or the command says that the CPU ranks instead.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from powerlaw import powerlaw

from neupath import HIN, PathSim, join, load
from neupath.engine import gpu
from neupath.engine.topk import Ranking
from neupath.io.export import write_folder

PATHS = {"APA": "author-paper-author", "APVPA": "author-paper-venue-paper-author"}
K = 10
_BLOCK_BYTES = 1 << 30  # of a block of scores of the plain product


class MeasuredDevice(gpu.CudaDevice):
    """Times kernels on the GPU and counts the postings that they add."""

    def __init__(self, shape: gpu.Shape | None = None, *, counts: bool = False) -> None:
        super().__init__(shape, ("-DCOUNT_POSTINGS",) if counts else ())
        self.events: list[tuple[str, Any, Any]] = []

    def launch(self, kernel: str, count: int, arguments: tuple[Any, ...]) -> None:
        begin, end = self.xp.cuda.Event(), self.xp.cuda.Event()
        begin.record()
        super().launch(kernel, count, arguments)
        end.record()
        self.events.append((kernel, begin, end))

    def take_seconds(self) -> dict[str, float]:
        """Return the seconds of each kernel since the last time."""
        self.xp.cuda.Device().synchronize()
        seconds: dict[str, float] = {}
        for kernel, begin, end in self.events:
            seconds[kernel] = seconds.get(kernel, 0.0) + self.xp.cuda.get_elapsed_time(begin, end) / 1000
        self.events.clear()
        return seconds

    def take_postings(self, kernel: str) -> int:
        """Return the postings that a kernel has added since the last time."""
        counter = self.xp.ndarray(1, np.uint64, self._modules[kernel].get_global("num_postings"))
        count = int(counter[0])
        counter[:] = 0
        return count


def measure(hin: HIN, metapath: str, options: argparse.Namespace) -> dict[str, Any]:
    """Rank the same queries in every way."""
    scorer = PathSim(metapath).fit(hin)
    factors: Any = scorer.factors_
    rng, total = np.random.default_rng(0), factors.left.shape[0]
    queries = np.sort(rng.choice(total, min(options.queries, total), replace=False))
    row = {"path": metapath, "queries": len(queries), "entries": int(factors.left.nnz), "additions": factors.work}

    def on_cores(some: Any = queries) -> Ranking:
        return scorer.rank_rows(some, some, K, None, None)

    def on_gpu(some: Any = queries) -> Ranking:
        ranking = gpu.rank_on_gpu(factors, scorer.formula, some, some, K)
        assert ranking is not None
        return ranking

    device = _use(MeasuredDevice())
    row["copy"] = _seconds(lambda: _copy(factors))
    row["copy"] = min(row["copy"], _seconds(lambda: _copy(factors)))
    expected = on_cores()
    on_gpu(), device.take_seconds()
    times: dict[str, list[float]] = {"gpu": [], "kernel": [], "cores": []}
    for _ in range(options.rounds):
        times["gpu"].append(_seconds(on_gpu))
        times["kernel"].append(sum(device.take_seconds().values()))
        times["cores"].append(_seconds(on_cores))
    row |= {name: min(seconds) for name, seconds in times.items()}
    row["times"] = row["cores"] / row["gpu"]
    row["same"] = _is_same(on_gpu(), expected)
    kernels = device.take_seconds()
    row |= kernels
    heavy = factors.on_device.heavy_kernel
    if heavy in kernels:
        counting = _use(MeasuredDevice(counts=True))
        on_gpu()
        postings, seconds = counting.take_postings(heavy), kernels[heavy]
        row |= {"postings": postings, "TB/s": 4 * postings / seconds / 1e12}
        row["bound"] = row["TB/s"] / options.bandwidth
        _use(device)
    if options.plain:
        some = rng.choice(queries, min(options.plain, len(queries)), replace=False)
        plain = _plain_product(factors)
        plain(some[:8])
        row |= {"of": len(some), "plain": min(_seconds(lambda: plain(some)) for _ in range(2))}
        row["gpu of"] = min(_seconds(lambda: on_gpu(some)) for _ in range(options.rounds))
        row["plain same"] = float((plain(some) == on_gpu(some).rows).mean())
    for shape in _shapes(options):
        device = _use(MeasuredDevice(shape))
        _copy(factors)
        same = _is_same(on_gpu(), expected)
        device.take_seconds()
        seconds = min(_seconds(on_gpu) for _ in range(options.rounds))
        text = f"{shape.threads} threads, tiles of {shape.whole_tile} and {shape.ordered_tile}"
        row[text] = seconds, {name: value / options.rounds for name, value in device.take_seconds().items()}, same
    if options.joins:
        factors.on_device = None
        _use(gpu.CudaDevice())
        row |= _joins(hin, metapath, queries)
    return row


def _use(device: Any) -> Any:
    vars(gpu)["cuda_device"] = lambda: device
    return device


def _shapes(options: argparse.Namespace) -> list[gpu.Shape]:
    if not options.threads:
        return []
    tiles = [int(tile) for tile in options.tiles.split(",")]
    return [
        gpu.Shape(threads, tile, tile // 2, max(1, 32768 // tile))
        for threads in map(int, options.threads.split(","))
        for tile in tiles
    ]


def _copy(factors: Any) -> None:
    factors.on_device = None
    factors.on_device = gpu.to_device(factors, gpu.cuda_device())


def _seconds(run: Callable[[], object]) -> float:
    import cupy as cp

    cp.cuda.Device().synchronize()
    began = time.perf_counter()
    run()
    cp.cuda.Device().synchronize()
    return time.perf_counter() - began


def _is_same(ranking: Ranking, expected: Ranking) -> bool:
    parts = ("rows", "scores", "sizes")
    return all(np.array_equal(getattr(ranking, part), getattr(expected, part)) for part in parts)


def _plain_product(factors: Any) -> Callable[[Any], Any]:
    """Return a function that ranks rows by cuSPARSE products of blocks of them, dense where the middle is narrow."""
    import cupy as cp
    import torch
    from cupyx.scipy import sparse

    left, right = sparse.csr_matrix(factors.left), sparse.csr_matrix(factors.right)
    norms = cp.asarray(factors.left_norms)
    count, middle = left.shape
    step = max(1, _BLOCK_BYTES // (8 * count))

    def rank(queries: Any) -> Any:
        best = []
        for start in range(0, len(queries), step):
            block = cp.asarray(queries[start : start + step])
            rows = left[block]
            m = (left @ cp.ascontiguousarray(rows.toarray().T)).T if middle <= 4096 else (rows @ right).toarray()
            scores = 2.0 * m / (norms[block][:, None] + norms[None, :])
            scores[cp.arange(len(block)), block] = -1.0
            best.append(torch.topk(torch.as_tensor(scores, device="cuda"), K).indices.cpu().numpy())
        return np.concatenate(best)

    return rank


def _joins(hin: HIN, metapath: str, queries: Any) -> dict[str, Any]:
    ids = hin.nodes[hin.metapath(metapath).source].ids.take(queries).to_pylist()
    with TemporaryDirectory() as folder:
        files = {name: Path(folder) / f"{name}.parquet" for name in ("gpu", "cores")}
        scorers = {"gpu": PathSim(metapath, device="cuda").fit(hin), "cores": PathSim(metapath).fit(hin)}
        seconds = {}
        for name, file in files.items():
            seconds[f"join {name}"] = _seconds(partial(join, hin, scorers[name], file, K, queries=ids))
        return seconds | {"same files": files["gpu"].read_bytes() == files["cores"].read_bytes()}


def time_commands(hin: HIN, metapath: str, rounds: int) -> dict[str, Any]:
    """Return the shortest seconds of `neupath join` on both devices; exit where the GPU is not used or files differ."""
    seconds: dict[str, list[float]] = {"cpu": [], "cuda": []}
    with TemporaryDirectory() as parent:
        folder = write_folder(hin, Path(parent) / "graph")
        files = {device: Path(parent) / f"{device}.parquet" for device in seconds}
        for number in range(rounds + 1):
            for device, file in files.items():
                file.unlink(missing_ok=True)
                command = ["-m", "neupath.cli", "join", str(folder), "-p", metapath, "-k", str(K), "--out", str(file)]
                began = time.perf_counter()
                process = subprocess.run(
                    [sys.executable, *command, "--device", device], capture_output=True, text=True, check=False
                )
                if process.returncode or "the CPU ranks instead" in process.stderr:
                    sys.exit(f"neupath join --device {device}: {process.stderr}")
                if number:  # the first round compiles the kernels
                    seconds[device].append(time.perf_counter() - began)
            if files["cpu"].read_bytes() != files["cuda"].read_bytes():
                sys.exit(f"the files of {metapath} differ")
        size = files["cpu"].stat().st_size
    best = {device: min(times) for device, times in seconds.items()}
    return {"metapath": metapath, **best, "ratio": best["cpu"] / best["cuda"], "file bytes": size, "same files": True}


def copy_bandwidth() -> float:
    """Return the TB/s of a copy in the GPU's memory, bytes read and written."""
    import cupy as cp

    source, target = cp.ones(1 << 28), cp.empty(1 << 28)
    seconds = min(_seconds(lambda: cp.copyto(target, source)) for _ in range(5))
    return float(2 * source.nbytes / seconds / 1e12)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="?", choices=["ranking", "command"], default="ranking")
    parser.add_argument("--edges", default="1e6,1e7")
    parser.add_argument("--graph", default=None, help="a graph to load instead of the seeded ones")
    parser.add_argument("--metapaths", default="APA,APVPA")
    parser.add_argument("--queries", type=float, default=1e9)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--plain", type=int, default=2048, help="queries of the plain product; 0 leaves it out")
    parser.add_argument("--joins", action="store_true", help="time whole joins, too")
    parser.add_argument("--threads", default=None)
    parser.add_argument("--tiles", default="16384")
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()
    options.queries = int(options.queries)
    if options.part == "ranking":
        options.bandwidth = copy_bandwidth()
        print(f"copies move {options.bandwidth:.2f} TB/s", flush=True)
    results = []
    for edges in [options.graph] if options.graph else options.edges.split(","):
        hin = load(edges) if options.graph else powerlaw(int(float(edges)))
        for name in options.metapaths.split(","):
            path = PATHS.get(name, name)
            is_command = options.part == "command"
            result = time_commands(hin, path, options.rounds) if is_command else measure(hin, path, options)
            results.append({"graph": edges} | result)
            print(json.dumps(results[-1], default=str), flush=True)
            if options.out:
                options.out.write_text(json.dumps(results, indent=1, default=str) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
