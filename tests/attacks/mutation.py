"""Damage to bytes, as a broken disk, a cut transfer or an attacker would do it."""

from collections.abc import Callable
from typing import Final

import numpy as np

Mutation = Callable[[bytes, np.random.Generator], bytes]


def flip_bit(content: bytes, rng: np.random.Generator) -> bytes:
    place, bit = int(rng.integers(len(content))), int(rng.integers(8))
    return content[:place] + bytes([content[place] ^ (1 << bit)]) + content[place + 1 :]


def cut_end(content: bytes, rng: np.random.Generator) -> bytes:
    return content[: int(rng.integers(len(content)))]


def cut_middle(content: bytes, rng: np.random.Generator) -> bytes:
    start, stop = _span(content, rng)
    return content[:start] + content[stop:]


def zero_span(content: bytes, rng: np.random.Generator) -> bytes:
    start, stop = _span(content, rng)
    return content[:start] + bytes(stop - start) + content[stop:]


def replace_span(content: bytes, rng: np.random.Generator) -> bytes:
    start, stop = _span(content, rng)
    return content[:start] + rng.bytes(stop - start) + content[stop:]


def repeat_span(content: bytes, rng: np.random.Generator) -> bytes:
    start, stop = _span(content, rng)
    return content[:stop] + content[start:]


def insert_bytes(content: bytes, rng: np.random.Generator) -> bytes:
    place = int(rng.integers(len(content) + 1))
    return content[:place] + rng.bytes(int(rng.integers(1, 9))) + content[place:]


MUTATIONS: Final[dict[str, Mutation]] = {
    mutation.__name__: mutation
    for mutation in (flip_bit, cut_end, cut_middle, zero_span, replace_span, repeat_span, insert_bytes)
}


def mutate(content: bytes, rng: np.random.Generator) -> tuple[str, bytes]:
    """Damage some content in one of the ways; return which, and the damaged content, which differs from the content."""
    while content:
        name = str(rng.choice(list(MUTATIONS)))
        damaged = MUTATIONS[name](content, rng)
        if damaged != content:
            return name, damaged
    return "insert_bytes", rng.bytes(8)


def _span(content: bytes, rng: np.random.Generator) -> tuple[int, int]:
    """Return the start and the end of a short part of some content."""
    start = int(rng.integers(len(content)))
    return start, min(len(content), start + int(rng.integers(1, 65)))
