"""IMDB as in the papers on HAN and NeuPath, from the table that both start from."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from neupath.datasets.tables import TableFile
from neupath.datasets.textfiles import Dialect
from neupath.graph import HIN, Edges
from neupath.nodes import Nodes
from neupath.schema import Relation

_ACTORS = ("actor_1_name", "actor_2_name", "actor_3_name")
_COMPLETE = (*_ACTORS, "director_name", "plot_keywords", "country")
"""Rows with one of these missing are left out, which gives the papers' 4,780 movies, 5,841 actors, 2,269 directors."""


def build_imdb(path: Path) -> HIN:
    """Read movie_metadata.csv: every complete row is a movie, with its actors, director, genres and plot keywords."""
    file = TableFile(path, Dialect(delimiter=",", quote='"', header=True))
    columns = [*_COMPLETE, "movie_title", "title_year", "imdb_score", "genres"]
    table = file.read(columns, dict.fromkeys(columns, pa.string()))
    for column in _COMPLETE:
        table = table.filter(pc.not_equal(table[column], ""))
    movies = Nodes(
        "movie",
        pa.array(np.arange(len(table))),
        _trimmed(table["movie_title"]),
        pa.table(
            {
                "year": _numbers(table["title_year"], pa.int64()),
                "country": table["country"],
                "imdb_score": _numbers(table["imdb_score"], pa.float64()),
            }
        ),
    )
    cast = [_trimmed(table[column]).to_pylist() for column in _ACTORS]
    people = [name for names in zip(*cast, strict=True) for name in names]
    parts = {
        "actor": (people, np.repeat(np.arange(len(table)), len(_ACTORS))),
        "director": (_trimmed(table["director_name"]).to_pylist(), np.arange(len(table))),
        "genre": _cut(table["genres"]),
        "keyword": _cut(table["plot_keywords"]),
    }
    nodes, edges = [movies], []
    for node_type, (words, rows) in parts.items():
        codes = pa.array(words).dictionary_encode()
        by_number = node_type in ("actor", "director")
        ids = pa.array(np.arange(len(codes.dictionary))) if by_number else codes.dictionary
        nodes.append(Nodes(node_type, ids, codes.dictionary if by_number else None))
        relation = Relation("movie", f"movie_{node_type}", node_type)
        edges.append(Edges(relation, rows.astype(np.int64), codes.indices.to_numpy().astype(np.int64)))
    return HIN.build(nodes, edges)


def _trimmed(column: pa.ChunkedArray) -> pa.Array:
    return pc.utf8_trim_whitespace(column).combine_chunks()


def _numbers(column: pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    return pc.cast(pc.if_else(pc.equal(column, ""), None, column), kind)


def _cut(column: pa.ChunkedArray) -> tuple[list[str], NDArray[np.int64]]:
    """Cut `a|b|c` of each row; return the words, and the row each stands in."""
    lists = [list(dict.fromkeys(word for word in text.split("|") if word)) for text in column.to_pylist()]
    rows = np.repeat(np.arange(len(lists)), [len(words) for words in lists])
    return [word for words in lists for word in words], rows.astype(np.int64)
