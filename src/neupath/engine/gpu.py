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
from numpy.typing import NDArray

from neupath._runtime.progress import check_cancelled
from neupath.engine.products import Chain, Factors, Normalisation, Product
from neupath.engine.topk import FEW, Ranking, _trimmed, top_k_of_product
from neupath.errors import MissingExtraError, QueryError
from neupath.graph.hin import Csr, Floats
from neupath.graph.nodes import Rows

logger = logging.getLogger("neupath")
Ints = NDArray[np.int32]
DEVICES = ("cpu", "cuda")
_BYTES_PER_ENTRY = 96  # of a factor while it is copied and sorted
_QUERIES = 1 << 16  # that one launch ranks
_LISTS = 1 << 18  # of a row, over all tiles, above which adding them in order is slower than a core
_NULL = np.uint64(0)
_building = Lock()


# ---- The device ----------------------------------------------------------------------------------
@dataclass(frozen=True)
class Shape:
    """The constants of the kernels. `tile` is in sums: whole ones have 4 bytes, ordered ones 8."""

    threads: int = 512
    whole_tile: int = 16384
    ordered_tile: int = 8192
    slots: int = 2048
    light_warps: int = 8
    most_hits: int = 256  # of a query; at most `threads`

    def options(self, tile: int) -> tuple[str, ...]:
        """Return the constants as options of a compiler."""
        constants = {
            "THREADS": self.threads, "TILE": tile, "SLOTS": self.slots, "LIGHT_WARPS": self.light_warps,
            "MOST": self.most_hits,
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
            function = self.xp.RawModule(code=source(), options=options).get_function(name)
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
    """Return the CUDA device of this machine; raise if there is none, or no CuPy."""
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
    most = cupy.cuda.Device().attributes["MaxSharedMemoryPerBlockOptin"]
    wanted = max(map(shape.shared_bytes, ("rank_whole", "rank_ordered")))
    if most < wanted:
        raise QueryError(
            f"‹device› is 'cuda', but a block of this GPU has {most >> 10} KiB of shared memory, and {wanted >> 10} are "
            f"needed; use 'cpu'",
            parameter="device",
        )
    light_warps = min(shape.light_warps, most // (shape.shared_bytes("rank_light") // shape.light_warps))
    return device if light_warps == shape.light_warps else CudaDevice(Shape(light_warps=light_warps))


# ---- Factors on the device -----------------------------------------------------------------------
@dataclass(frozen=True)
class GpuFactors:
    """A product on the device, its targets renumbered as labels by ascending norm."""

    arguments: tuple[Any, ...]  # of a kernel: norms, rows, starts, labels, tile_starts, num_tiles, and the rows of left
    postings: Any  # of `heavy_kernel`: packed labels and values, or values
    values: Any
    heavy_kernel: str
    tile: int
    tile_norms: Floats  # the largest norm of each tile
    work: NDArray[np.int64]  # additions of each row of left
    lengths: NDArray[np.int64]  # entries of each row of left

    @property
    def num_tiles(self) -> int:
        return len(self.tile_norms)


def to_device(factors: Factors, device: Device) -> GpuFactors:
    """Copy a product to the device."""
    xp = device.xp
    left, right = (_to_arrays(xp, matrix) for matrix in (factors.left, factors.right))
    num_middle, num_targets = factors.right.shape
    is_whole = _is_whole(xp, factors, left[2], right[2])
    tile = device.shape.whole_tile if is_whole else device.shape.ordered_tile
    num_tiles = max(1, -(-num_targets // tile))
    width = num_tiles * tile

    norms = xp.asarray(factors.right_norms)
    rows = xp.argsort(norms).astype(np.int32)
    label_of = xp.empty(num_targets, dtype=np.int32)
    label_of[rows] = xp.arange(num_targets, dtype=np.int32)
    padded = xp.zeros(width)
    padded[:num_targets] = norms[rows]
    padded[num_targets:] = padded[max(0, num_targets - 1)]

    starts, targets, data = right
    middles = xp.searchsorted(starts[1:], xp.arange(len(targets)), side="right")
    keys = middles * np.int64(width) + label_of[targets]
    order = xp.argsort(keys)
    keys, values = keys[order], data[order]
    labels = (keys % width).astype(np.int32)
    tile_starts = _tile_starts(xp, keys, starts, num_tiles, tile)
    postings = values
    if is_whole:
        postings = xp.zeros(len(values) + 8, dtype=np.uint32)  # four are read at a time, past the end
        postings[: len(values)] = (labels % tile).astype(np.uint32) | (values.astype(np.uint32) << np.uint32(16))
    done = xp.concatenate([xp.zeros(1, dtype=np.int64), xp.cumsum(xp.diff(starts)[left[1]])])
    return GpuFactors(
        arguments=(padded, rows, starts, labels, tile_starts, np.int32(num_tiles), *left, xp.asarray(factors.left_norms)),
        postings=postings,
        values=values,
        heavy_kernel="rank_whole" if is_whole else "rank_ordered",
        tile=tile,
        tile_norms=_to_host(padded[tile - 1 :: tile]),
        work=_to_host(done[left[0][1:]] - done[left[0][:-1]]),
        lengths=np.diff(factors.left.indptr).astype(np.int64),
    )


def _to_arrays(xp: Any, matrix: Csr) -> tuple[Any, Any, Any]:
    """Return starts, indices and data; starts have 64 bits, since a matrix may have more than 2³¹ entries."""
    starts = xp.asarray(matrix.indptr).astype(np.int64)
    return starts, xp.asarray(matrix.indices).astype(np.int32), xp.asarray(matrix.data)


def _is_whole(xp: Any, factors: Factors, left: Any, right: Any) -> bool:
    """Whether sums are whole numbers of 32 bits, and values of postings whole numbers of 16."""
    most = np.sqrt(factors.left_norms.max(initial=0.0) * factors.right_norms.max(initial=0.0))
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
    return xp.ascontiguousarray(places - starts[:-1, None]).astype(np.int32)


def _to_host(array: Any) -> Any:
    return array.get() if hasattr(array, "get") else np.asarray(array)


# ---- Ranking -------------------------------------------------------------------------------------
def rank_on_gpu(
    factors: Product, normalisation: Normalisation, queries: Rows, skipped: Rows, k: int, threads: int | None = None
) -> Ranking | None:
    """Rank the related targets of many queries as `top_k_of_product` does; None where the CPU has to do it.

    A reason that the user can do something about is logged.
    """
    if len(queries) <= FEW or (isinstance(factors, Factors) and not factors.right.nnz):
        return None  # a core is done before the GPU has started
    on_device = _factors_on_device(factors, k)
    if on_device is None or isinstance(factors, Chain):
        return None
    limit = min(k, factors.right.shape[1])
    best = Ranking(
        np.full((len(queries), limit), -1), np.zeros((len(queries), limit)), np.zeros(len(queries), dtype=np.int64)
    )
    for start in range(0, len(queries), _QUERIES):
        check_cancelled()
        block = slice(start, start + _QUERIES)
        rows, scores, sizes = _rank_block(on_device, normalisation, factors.left_norms, queries[block], skipped[block], limit)
        best.rows[block], best.scores[block], best.sizes[block] = rows, scores, sizes
    slow = np.flatnonzero(_is_slow(on_device, queries))
    if len(slow):
        others = top_k_of_product(factors, normalisation, queries[slow], skipped[slow], k, None, threads)
        best.rows[slow, : others.rows.shape[1]], best.scores[slow, : others.rows.shape[1]] = others.rows, others.scores
        best.sizes[slow] = others.sizes
    return _trimmed(best)


def _factors_on_device(factors: Product, k: int) -> GpuFactors | None:
    """Return the product on the device, copying it the first time; None, with the reason logged, where it cannot be."""
    if isinstance(factors, Chain):
        return _refused("the half-path matrix does not fit into memory")
    device = cuda_device()
    if k > device.shape.most_hits:
        return _refused(f"k is {k}, and the GPU keeps at most {device.shape.most_hits} hits of a query")
    if not factors.bounds_are_safe or max(factors.left.shape + factors.right.shape) >= 2**31:
        return _refused("the numbers of this product need checks that only the CPU makes")
    with _building:
        if factors.on_device is None:
            size, free = _BYTES_PER_ENTRY * (factors.left.nnz + factors.right.nnz), device.free_memory()
            if size > free:
                return _refused(
                    f"the half-path matrix takes {size / 2**30:.1f} GiB on the GPU, and {free / 2**30:.1f} are free"
                )
            factors.on_device = to_device(factors, device)
        on_device: GpuFactors = factors.on_device
    return on_device


def _refused(reason: str) -> None:
    logger.warning("%s: the CPU ranks instead", reason)


def _is_slow(on_device: GpuFactors, queries: Rows) -> NDArray[np.bool_]:
    """Mark the queries whose many short lists the GPU would add one after the other."""
    if on_device.heavy_kernel == "rank_whole":
        return np.zeros(len(queries), dtype=np.bool_)
    is_heavy = on_device.work[queries] > _light_work()
    return is_heavy & (on_device.lengths[queries] * on_device.num_tiles > _LISTS)


def _light_work() -> int:
    return cuda_device().shape.slots // 2


def _rank_block(
    on_device: GpuFactors, normalisation: Normalisation, left_norms: Floats, queries: Rows, skipped: Rows, wanted: int
) -> tuple[Any, Any, Any]:
    """Rank some queries: rows and scores of shape (queries, wanted), and sizes."""
    device = cuda_device()
    xp = device.xp
    tiles = np.searchsorted(on_device.tile_norms, left_norms[queries]).clip(0, on_device.num_tiles - 1)
    if normalisation == Normalisation.NONE:  # the higher a norm, the higher scores may be
        tiles[:] = on_device.num_tiles - 1
    shape = len(queries), wanted
    best = xp.empty(shape, dtype=np.int32), xp.empty(shape), xp.zeros(len(queries), dtype=np.int32)
    per_query = [xp.asarray(array.astype(np.int32)) for array in (queries, skipped, tiles)]
    work = on_device.work[queries]
    is_light, is_slow = work <= _light_work(), _is_slow(on_device, queries)
    kernels = ("rank_light", on_device.values, is_light), (on_device.heavy_kernel, on_device.postings, ~is_light & ~is_slow)
    for kernel, postings, chosen in kernels:
        order = np.flatnonzero(chosen)
        if not len(order):
            continue
        order = xp.asarray(order[np.argsort(-work[order], kind="stable")].astype(np.int32))
        next_one = xp.zeros(4, dtype=np.int32)  # and room to count postings
        arguments = (
            postings, *on_device.arguments, *per_query, order, np.int32(len(order)), *best, np.int32(wanted),
            np.int32(normalisation), next_one,
        )  # fmt: skip
        device.launch(kernel, len(order), arguments)
    return _to_host(best[0]), _to_host(best[1]), _to_host(best[2])
