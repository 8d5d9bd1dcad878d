"""Rank many queries on a GPU with CuPy: the same rows and scores as on the CPU, to the bit.

`gpu_kernels.cu` adds up, normalises and keeps the best k of each query in shared memory. This module renumbers the
targets by their norm, copies the factors to the GPU once, and sorts queries into light and heavy ones.
"""

import logging
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

import numpy as np

from neupath._runtime.progress import check_cancelled
from neupath.engine.formula import NONE, Formula, formula_of
from neupath.engine.products import Chain, Factors, Product
from neupath.engine.topk import FEW, Ranking, stacked, top_k_of_product
from neupath.errors import MissingExtraError, QueryError
from neupath.graph.hin import Csr
from neupath.graph.nodes import Rows

logger = logging.getLogger("neupath")
DEVICES = ("cpu", "cuda")
_BYTES_PER_ENTRY = 96  # of a factor while it is copied and sorted
_QUERIES = 1 << 18  # that one launch ranks
_LISTS = 1 << 18  # of a row, over all tiles, above which adding them in order is slower than a core
_NULL = np.uint64(0)
_MOST_SHARED_MEMORY = 97  # CUDA's number of the attribute cudaDevAttrMaxSharedMemoryPerBlockOptin
_copying = Lock()


# ---- The device ----------------------------------------------------------------------------------
@dataclass(frozen=True)
class Shape:
    """The constants of the kernels. `tile` is in sums: whole ones have 4 bytes, ordered ones 8."""

    threads: int = 512
    whole_tile: int = 16384
    ordered_tile: int = 8192
    blocks: int = 2  # that share a processor
    slots: int = 1024
    light_warps: int = 14
    most_hits: int = 256  # of a query; at most `threads`

    @property
    def light_work(self) -> int:
        """The most additions of a row whose sums fit into the hash table of a warp."""
        return self.slots // 2

    def options(self, tile: int) -> tuple[str, ...]:
        """Return the constants as options of a compiler."""
        constants = {
            "THREADS": self.threads, "BLOCKS": self.blocks, "TILE": tile, "SLOTS": self.slots,
            "LIGHT_WARPS": self.light_warps, "MOST": self.most_hits,
        }  # fmt: skip
        return tuple(f"-D{name}={value}" for name, value in constants.items())

    def shared_bytes(self, kernel: str) -> int:
        """Return the bytes of shared memory of a block."""
        if kernel == "rank_light":
            return self.light_warps * (self.slots + self.most_hits) * 12
        size, tile = (4, self.whole_tile) if kernel == "rank_whole" else (8, self.ordered_tile)
        return tile * size + (self.most_hits + self.threads) * 12 + self.threads * (12 + size)

    def block(self, kernel: str) -> int:
        """Return the number of threads of a block."""
        return self.light_warps * 32 if kernel == "rank_light" else self.threads


class Device(Protocol):
    """What this module needs of a GPU; the tests run the kernels on the CPU."""

    xp: Any  # CuPy, or NumPy
    shape: Shape

    def free_memory(self) -> int: ...
    def launch(self, kernel: str, count: int, arguments: tuple[Any, ...]) -> None: ...


class CudaDevice:
    """The current CUDA device."""

    def __init__(self, shape: Shape | None = None, options: tuple[str, ...] = ()) -> None:
        import cupy

        self.xp, self.shape, self.options = cupy, shape or Shape(), options
        self._modules: dict[str, Any] = {}
        self._kernels: dict[str, tuple[Any, int]] = {}

    def free_memory(self) -> int:
        pool = self.xp.get_default_memory_pool()
        return int(self.xp.cuda.runtime.memGetInfo()[0] + pool.free_bytes())

    def launch(self, kernel: str, count: int, arguments: tuple[Any, ...]) -> None:
        """Run a kernel on as many blocks as fit on the GPU at a time, or as there are queries."""
        function, most_blocks = self._kernel(kernel)
        per_block = self.shape.light_warps if kernel == "rank_light" else 1
        blocks = min(most_blocks, -(-count // per_block))
        shared = self.shape.shared_bytes(kernel)
        function((blocks,), (self.shape.block(kernel),), arguments, shared_mem=shared)

    def _kernel(self, name: str) -> tuple[Any, int]:
        if name not in self._kernels:
            tile = self.shape.ordered_tile if name == "rank_ordered" else self.shape.whole_tile
            options = ("--std=c++17", "--fmad=false", *self.shape.options(tile), *self.options)
            self._modules[name] = self.xp.RawModule(code=source(), options=options)
            function = self._modules[name].get_function(name)
            shared = self.shape.shared_bytes(name)
            function.max_dynamic_shared_size_bytes = shared
            driver, block = self.xp.cuda.driver, self.shape.block(name)
            per_processor = driver.occupancyMaxActiveBlocksPerMultiprocessor(function.kernel.ptr, block, shared)
            processors = self.xp.cuda.Device().attributes["MultiProcessorCount"]
            self._kernels[name] = function, max(1, per_processor) * processors
        return self._kernels[name]


def source() -> str:
    """Return the source of the kernels."""
    return Path(__file__).with_name("gpu_kernels.cu").read_text(encoding="utf-8")


def check_device(device: str) -> str:
    """Raise unless a device is one of `DEVICES`; return it.

    >>> check_device("cpu")
    'cpu'
    """
    if device not in DEVICES:
        raise QueryError(f"‹device› is {device!r}; it can be 'cpu' or 'cuda'", parameter="device", allowed=DEVICES)
    return device


@cache
def cuda_device() -> Device:
    """Return the CUDA device of this machine; raise if it has none, or CuPy is missing."""
    try:
        import cupy
    except ImportError as error:
        raise MissingExtraError("CuPy", "neupath[gpu]") from error
    try:
        has_one = cupy.cuda.runtime.getDeviceCount() > 0
    except cupy.cuda.runtime.CUDARuntimeError:  # no driver
        has_one = False
    if not has_one:
        raise QueryError("‹device› is 'cuda', but no CUDA device is available here; use 'cpu'", parameter="device")
    device, shape = CudaDevice(), Shape()
    most = cupy.cuda.runtime.deviceGetAttribute(_MOST_SHARED_MEMORY, cupy.cuda.runtime.getDevice())
    wanted = max(map(shape.shared_bytes, ("rank_whole", "rank_ordered")))
    if most < wanted:
        raise QueryError(
            f"‹device› is 'cuda', but a block of this GPU has {most >> 10} KiB of shared memory, and {wanted >> 10} "
            f"are needed; use 'cpu'",
            parameter="device",
        )
    light_warps = min(shape.light_warps, most // (shape.shared_bytes("rank_light") // shape.light_warps))
    return device if light_warps == shape.light_warps else CudaDevice(Shape(light_warps=light_warps))


# ---- Factors on the device -----------------------------------------------------------------------
@dataclass(frozen=True)
class GpuFactors:
    """A product on the device, its targets renumbered as labels by ascending norm."""

    device: Device
    targets: tuple[Any, ...]  # arguments of the kernels: norms, rows, starts, labels, tile_starts, num_tiles
    left: tuple[Any, ...]  # starts, middle nodes, weights, norms
    values: Any  # of the postings
    postings: Any  # of `heavy_kernel`: labels and values in one number each, or the values
    heavy_kernel: str
    tile_norms: Any  # the largest norm of each tile
    work: Any  # additions of each row of left
    is_slow: Any  # whether a row of left is left to the CPU


def to_device(factors: Factors, device: Device) -> GpuFactors:
    """Copy a product to the device."""
    xp = device.xp
    left, right = (_to_arrays(xp, matrix) for matrix in (factors.left, factors.right))
    is_whole = _is_whole(xp, factors, left[2], right[2])
    tile = device.shape.whole_tile if is_whole else device.shape.ordered_tile
    num_targets = factors.right.shape[1]
    num_tiles = -(-num_targets // tile)
    width = num_tiles * tile

    norms = xp.asarray(factors.right_norms)
    rows = xp.argsort(norms).astype(np.int32)
    label_of = xp.empty(num_targets, dtype=np.int32)
    label_of[rows] = xp.arange(num_targets, dtype=np.int32)
    padded = xp.concatenate([norms[rows], xp.full(width - num_targets, float(factors.right_norms.max()))])

    starts, targets, data = right
    middles = xp.searchsorted(starts[1:], xp.arange(len(targets)), side="right")
    keys = middles * width + label_of[targets]
    order = xp.argsort(keys)
    keys, values = keys[order], data[order]
    labels = (keys % width).astype(np.int32)
    postings = values
    if is_whole:
        postings = xp.zeros(len(values) + 8, dtype=np.uint32)  # kernels read four at a time, past the end
        postings[: len(values)] = (labels % tile).astype(np.uint32) | (values.astype(np.uint32) << np.uint32(16))
    done = xp.concatenate([xp.zeros(1, dtype=np.int64), xp.cumsum(xp.diff(starts)[left[1]])])
    work = done[left[0][1:]] - done[left[0][:-1]]
    has_many_lists = (xp.diff(left[0]) * num_tiles > _LISTS) & (work > device.shape.light_work)
    return GpuFactors(
        device=device,
        targets=(padded, rows, starts, labels, _tile_starts(xp, keys, starts, num_tiles, tile), np.int32(num_tiles)),
        left=(*left, xp.asarray(factors.left_norms)),
        values=values,
        postings=postings,
        heavy_kernel="rank_whole" if is_whole else "rank_ordered",
        tile_norms=xp.ascontiguousarray(padded[tile - 1 :: tile]),
        work=work,
        is_slow=has_many_lists & (not is_whole),
    )


def _to_arrays(xp: Any, matrix: Csr) -> tuple[Any, Any, Any]:
    """Return starts, indices and data; starts have 64 bits, since a matrix may have more than 2³¹ entries."""
    starts = xp.asarray(matrix.indptr).astype(np.int64)
    return starts, xp.asarray(matrix.indices).astype(np.int32, copy=False), xp.asarray(matrix.data)


def _is_whole(xp: Any, factors: Factors, left: Any, right: Any) -> bool:
    """Whether sums are whole numbers of 32 bits, and values of postings whole numbers of 16."""
    most = np.sqrt(factors.left_norms.max() * factors.right_norms.max())  # no sum is larger, by Cauchy-Schwarz
    if most >= 2**32 - 1 or float(right.max()) >= 2**16:
        return False
    return all(bool((data == xp.rint(data)).all()) for data in (left, right))


def _tile_starts(xp: Any, keys: Any, starts: Any, num_tiles: int, tile: int) -> Any:
    """Return where the postings of each middle node and tile begin, or null where these would be more than postings."""
    num_middle = len(starts) - 1
    if num_middle * (num_tiles + 1) > max(len(keys), 1 << 16):
        return _NULL
    firsts = xp.arange(num_middle)[:, None] * (num_tiles * tile) + xp.arange(num_tiles + 1)[None, :] * tile
    places = xp.searchsorted(keys, firsts.ravel()).reshape(num_middle, num_tiles + 1)
    return (places - starts[:-1, None]).astype(np.int32)


# ---- Ranking -------------------------------------------------------------------------------------
def rank_on_gpu(
    factors: Product, normalisation: int | Formula, queries: Rows, skipped: Rows, k: int, threads: int | None = None
) -> Ranking | None:
    """Rank the related targets of many queries as `top_k_of_product` does; None where the CPU has to do it.

    A reason that the user can do something about is logged.
    """
    if len(queries) <= FEW:  # a core is done before the GPU has started
        return None
    on_device = _factors_on_device(factors, k)
    if on_device is None:
        return None
    limit = min(k, len(factors.right_norms))
    parts = []
    for start in range(0, len(queries), _QUERIES):
        check_cancelled()
        block = slice(start, start + _QUERIES)
        parts.append(_rank_block(on_device, formula_of(normalisation), queries[block], skipped[block], limit))
    ranking = stacked(parts)
    slow = np.flatnonzero(_to_host(on_device.is_slow[on_device.device.xp.asarray(queries)]))
    if len(slow):
        others = top_k_of_product(factors, normalisation, queries[slow], skipped[slow], k, None, threads)
        width = others.rows.shape[1]
        ranking.rows[slow, :width], ranking.scores[slow, :width] = others.rows, others.scores
        ranking.sizes[slow] = others.sizes
    widest = int(ranking.sizes.max())
    return Ranking(ranking.rows[:, :widest], ranking.scores[:, :widest], ranking.sizes)


def _factors_on_device(factors: Product, k: int) -> GpuFactors | None:
    """Return the product on the device, copying it the first time; None, with the reason logged, where it cannot be."""
    device = cuda_device()
    if isinstance(factors, Chain):
        log_refusal("the half-path matrix does not fit into memory")
        return None
    if k > device.shape.most_hits:
        log_refusal(f"k is {k}, and a GPU keeps at most {device.shape.most_hits} hits of a query")
        return None
    if not factors.left.nnz or not factors.right.nnz:
        return None
    if not factors.bounds_are_safe or max(factors.left.shape + factors.right.shape) >= 2**31:
        log_refusal("the weights along this meta-path are too large or too small to bound, or its nodes too many")
        return None
    with _copying:
        if factors.on_device is None or factors.on_device.device is not device:
            size, free = _BYTES_PER_ENTRY * (factors.left.nnz + factors.right.nnz), device.free_memory()
            if size > free:
                sizes = f"up to {size / 2**30:.1f} GiB of the GPU's memory, and {free / 2**30:.1f} GiB are free"
                log_refusal(f"the half-path matrix takes {sizes}")
                return None
            factors.on_device = to_device(factors, device)
        on_device: GpuFactors = factors.on_device
    return on_device


@cache
def log_refusal(reason: str) -> None:
    """Log, once per reason, why the CPU does what the GPU was asked for."""
    logger.warning("%s: the CPU ranks instead", reason)


def _rank_block(on_device: GpuFactors, formula: Formula, queries: Rows, skipped: Rows, wanted: int) -> Ranking:
    """Rank some queries, those that the CPU has to rank excepted."""
    device, xp = on_device.device, on_device.device.xp
    rows, skipped_rows = (xp.asarray(array.astype(np.int32)) for array in (queries, skipped))
    last_tile = len(on_device.tile_norms) - 1
    kind, alpha, beta = formula
    if kind == NONE or beta == 0:  # the higher a norm, the higher scores may be
        first_tiles = xp.full(len(queries), last_tile, dtype=np.int32)
    else:  # by Tversky, scores may be highest at the norm dx·α/β
        tiles = xp.searchsorted(on_device.tile_norms, on_device.left[3][rows] * (alpha / beta))
        first_tiles = xp.minimum(tiles, last_tile).astype(np.int32)
    shape = len(queries), wanted
    best = xp.full(shape, -1, dtype=np.int32), xp.zeros(shape), xp.zeros(len(queries), dtype=np.int32)
    work = on_device.work[rows]
    is_light = work <= device.shape.light_work
    light, heavy = (xp.flatnonzero(chosen) for chosen in (is_light, ~(is_light | on_device.is_slow[rows])))
    heavy = heavy[xp.argsort(-work[heavy])]  # the heaviest first, so that none is left at the end
    kernels = ("rank_light", on_device.values, light), (on_device.heavy_kernel, on_device.postings, heavy)
    for kernel, postings, chosen in kernels:
        if len(chosen):
            next_one = xp.zeros(1, dtype=np.int32)
            arguments = (
                postings, *on_device.targets, *on_device.left, rows, skipped_rows, first_tiles, chosen.astype(np.int32),
                np.int32(len(chosen)), *best, np.int32(wanted), np.int32(kind), np.float64(alpha), np.float64(beta),
                next_one,
            )  # fmt: skip
            device.launch(kernel, len(chosen), arguments)
    return Ranking(_to_host(best[0].astype(np.int64)), _to_host(best[1]), _to_host(best[2].astype(np.int64)))


def _to_host(array: Any) -> Any:
    return array.get() if hasattr(array, "get") else array
