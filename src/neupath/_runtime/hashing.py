"""The one hash mixer: the finaliser of splitmix64 (Steele, Lea, Flood, OOPSLA 2014)."""

from typing import Any

import numpy as np


def mix64(value: Any) -> Any:
    """Scatter the bits of a 64-bit number, or of an array of them; numba can compile it.

    >>> hex(mix64(np.array([1], dtype=np.uint64))[0])
    '0x5692161d100b05e5'
    """
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))
