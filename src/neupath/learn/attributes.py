"""Attributes of nodes as numbers: what two nodes have in common beside their paths, and features of a node.

Numbers stay as they are, dates become seconds, words with few different values are categories, and other texts become
hashed counts of their character 3-grams (no vocabulary, so nodes that come later have vectors, too).
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy.sparse import csr_array

from neupath.graph.hin import Csr, Floats
from neupath.graph.nodes import Nodes, Rows

_TEXT_WIDTH = 4096
_MOST_CATEGORIES = 200
NAME = "name"
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class NodeAttributes:
    """The attributes of the nodes of one type: numbers and category codes, shape (nodes,), and text vectors."""

    numbers: dict[str, Floats]
    """NaN where a node has none."""
    categories: dict[str, Ints]
    """-1 where a node has none."""
    texts: dict[str, Csr]
    """Of length 1 each; shape (nodes, 4096), sparse."""

    @classmethod
    def of(cls, nodes: Nodes) -> "NodeAttributes":
        numbers, categories, texts = {}, {}, {}
        columns: dict[str, Any] = {name: nodes.attributes[name] for name in nodes.attributes.column_names}
        if nodes.names is not None:
            columns[NAME] = nodes.names
        for name, column in columns.items():
            values = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
            if _is_number(values.type):
                numbers[name] = _to_numbers(values)
                continue
            words = values.to_pylist()
            if name != NAME and len({word for word in words if word is not None}) <= _MOST_CATEGORIES:
                categories[name] = _to_codes(words)
            else:
                texts[name] = to_text_vectors(words)
        return cls(numbers, categories, texts)


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_temporal(kind))


def _to_numbers(values: pa.Array) -> Floats:
    if pa.types.is_temporal(values.type):
        values = pc.divide(pc.cast(pc.cast(values, pa.timestamp("s")), pa.int64()), 1)
    numbers: Floats = pc.cast(values, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return np.where(np.isfinite(numbers), numbers, np.nan)


def _to_codes(words: list[Any]) -> Ints:
    numbers = {word: code for code, word in enumerate(sorted({str(word) for word in words if word is not None}))}
    return np.array([-1 if word is None else numbers[str(word)] for word in words], dtype=np.int64)


def to_text_vectors(words: list[Any]) -> Csr:
    """Count the hashed character 3-grams of some texts, each vector scaled to length 1; shape (texts, 4096), sparse.

    >>> vectors = to_text_vectors(["Data mining", "data mining!", None])
    >>> round(float((vectors[[0]] @ vectors[[1]].T).toarray()[0, 0]), 2)
    0.87
    """
    indptr, indices = [0], []
    for word in words:
        text = "" if word is None else f" {str(word).lower()} "
        indices += [crc32(text[i : i + 3].encode()) % _TEXT_WIDTH for i in range(len(text) - 2)]
        indptr.append(len(indices))
    counts = csr_array((np.ones(len(indices)), indices, indptr), shape=(len(words), _TEXT_WIDTH))
    counts.sum_duplicates()
    lengths = np.sqrt(np.asarray(counts.multiply(counts).sum(axis=1)).ravel())
    counts.data /= np.repeat(np.maximum(lengths, 1e-300), np.diff(counts.indptr))
    return counts


# ---- Of single nodes -----------------------------------------------------------------------------
def node_features(nodes: Nodes, dim: int, seed: int = 0) -> NDArray[np.float32]:
    """Project the attributes of the nodes of one type at random to some width; zero without any; shape (nodes, dim).

    Each attribute has random vectors of its own: one for a number in standard deviations from the mean and one for
    having it, one for each category, and one for each 3-gram of a text. They come from the seed, the attribute's name
    and hashed words, so other nodes do not change them.

    >>> import pyarrow as pa
    >>> node_features(Nodes("movie", pa.array([1, 2]), attributes=pa.table({"year": [1999, 2001]})), dim=8).shape
    (2, 8)
    """
    known, total = NodeAttributes.of(nodes), np.zeros((len(nodes), dim))

    def vectors(name: str) -> Floats:
        return np.random.default_rng([seed, crc32(name.encode())]).standard_normal((_TEXT_WIDTH, dim))

    for name, values in known.numbers.items():
        is_known = np.isfinite(values)
        mean, spread = (values[is_known].mean(), values[is_known].std()) if is_known.any() else (0.0, 1.0)
        scaled = np.where(is_known, (values - mean) / (spread or 1.0), 0.0)
        total += np.stack([scaled, is_known], axis=1) @ vectors(name)[:2]
    for name in known.categories:
        words = nodes.attributes[name].to_pylist()
        places = np.array([0 if word is None else crc32(str(word).encode()) % _TEXT_WIDTH for word in words], np.int64)
        has_one = np.array([word is not None for word in words], dtype=np.float64)
        total += has_one[:, None] * vectors(name)[places]
    for name, texts in known.texts.items():
        total += np.asarray(texts @ vectors(name))
    count = len(known.numbers) + len(known.categories) + len(known.texts)
    return np.asarray(total / np.sqrt(max(1, count)), dtype=np.float32)


# ---- Of pairs ------------------------------------------------------------------------------------
class PairAttributes:
    """What the attributes of a query and of targets say of them as a pair."""

    def __init__(self, queries: Nodes, targets: Nodes) -> None:
        self._query = NodeAttributes.of(queries)
        self._target = self._query if targets is queries else NodeAttributes.of(targets)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the features."""
        query, target = self._query, self._target
        return (
            *(f"{name}: difference" for name in query.numbers if name in target.numbers),
            *(f"{name} of the query" for name in query.numbers),
            *(f"{name} of the target" for name in target.numbers),
            *(f"{name}: equal" for name in query.categories if name in target.categories and query is target),
            *(f"{name}: alike" for name in query.texts if name in target.texts),
        )

    def of_pairs(self, queries: Rows, targets: Rows) -> Floats:
        """Return the features of some pairs, NaN where one is not known; shape (pairs, features)."""
        query, target = self._query, self._target
        columns: list[Floats] = [
            np.abs(values[queries] - target.numbers[name][targets])
            for name, values in query.numbers.items()
            if name in target.numbers
        ]
        columns += [values[queries] for values in query.numbers.values()]
        columns += [values[targets] for values in target.numbers.values()]
        for name, codes in query.categories.items():
            if name in target.categories and query is target:
                known = (codes[queries] >= 0) & (codes[targets] >= 0)
                columns.append(np.where(known, (codes[queries] == codes[targets]).astype(np.float64), np.nan))
        for name, vectors in query.texts.items():
            if name in target.texts:
                products = vectors[queries].multiply(target.texts[name][targets])
                columns.append(np.asarray(products.sum(axis=1), dtype=np.float64).ravel())
        return np.stack(columns, axis=1) if columns else np.zeros((len(queries), 0))
