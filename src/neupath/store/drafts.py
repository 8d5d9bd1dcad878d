"""Drafts: a batch as the rows that will be written for it, with nothing of it unchecked."""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from neupath.graph import Floats
from neupath.nodes import Rows
from neupath.store.database import VersionFacts

Pair = tuple[int, int]


@dataclass(frozen=True)
class EdgeChange:
    """What became of some edges of one relation: keys of their ends, and weights before and after (0: not there)."""

    sources: Rows
    targets: Rows
    before: Floats
    after: Floats


@dataclass(frozen=True)
class Draft:
    """One version to be: its facts, changed edges by relation, new rows and keys that go by node type."""

    facts: VersionFacts
    edges: Mapping[int, EdgeChange]
    born: Mapping[int, pa.Table]
    dead: Mapping[int, list[int]]
