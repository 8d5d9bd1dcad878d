"""The kernels of `neupath.engine.gpu`, compiled for the CPU and run as one block of fibers."""

import ctypes
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np

from neupath.engine.gpu import Shape, source

COMPILER = shutil.which("g++")
SHAPE = Shape(threads=64, whole_tile=256, ordered_tile=256, blocks=1, slots=64, light_warps=2, most_hits=64)
"""Small, so that small matrices have several tiles and light and heavy rows."""
_LAUNCHERS = """
#define ARGUMENTS norms, rows, starts, labels, tile_starts, num_tiles, left_starts, left_middles, left_weights, \\
    left_norms, query_rows, skipped, first_tiles, order, count, best_rows, best_scores, best_sizes, wanted, \\
    kind, alpha, beta, next
#define LAUNCH(kernel, Posting)                                                           \\
    extern "C" void launch_##kernel(int threads, const Posting* postings, PARAMETERS) {   \\
        run_block(threads, [&] { kernel(postings, ARGUMENTS); });                         \\
    }
LAUNCH(rank_whole, unsigned)
LAUNCH(rank_ordered, double)
LAUNCH(rank_light, double)
"""


class EmulatedDevice:
    """A `neupath.engine.gpu.Device` without a GPU; `folder` takes the compiled kernels."""

    xp = np

    def __init__(self, folder: Path, shape: Shape = SHAPE) -> None:
        assert COMPILER is not None
        self.shape, self.launched = shape, []
        kernels = source().replace("extern __shared__ double2 memory[];", "alignas(16) static double2 memory[1 << 16];")
        header = Path(__file__).with_name("cuda_emulation.h").read_text(encoding="utf-8")
        (folder / "kernels.cpp").write_text(header + kernels + _LAUNCHERS, encoding="utf-8")
        flags = ["-std=c++17", "-O1", "-w", "-shared", "-fPIC", "-ffp-contract=off", *shape.options(shape.whole_tile)]
        flags.append("-U_FORTIFY_SOURCE")  # Ubuntu's compiler sets it; it aborts on a jump from one fiber to another
        subprocess.run([COMPILER, *flags, folder / "kernels.cpp", "-o", folder / "kernels.so"], check=True)
        self._library = ctypes.CDLL(str(folder / "kernels.so"))

    def free_memory(self) -> int:
        return 1 << 30

    def launch(self, kernel: str, count: int, arguments: tuple[Any, ...]) -> None:
        assert count > 0
        self.launched.append(kernel)
        kept = [np.ascontiguousarray(value) if isinstance(value, np.ndarray) else value for value in arguments]
        assert all(a is b for a, b in zip(kept, arguments, strict=True)), "a GPU reads contiguous arrays"
        values = [
            ctypes.c_void_p(value.ctypes.data) if isinstance(value, np.ndarray)
            else ctypes.c_void_p(None) if value.dtype == np.uint64
            else ctypes.c_double(float(value)) if value.dtype == np.float64 else ctypes.c_int(int(value))
            for value in kept
        ]  # fmt: skip
        getattr(self._library, f"launch_{kernel}")(ctypes.c_int(self.shape.block(kernel)), *values)
