"""Read MATLAB files with one sparse matrix per relation, such as the ACM network of the NeuPath paper."""

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from neupath.errors import SourceError, listed
from neupath.graph.hin import HIN, Duplicates, Edges
from neupath.graph.metapath import Relation
from neupath.graph.nodes import Nodes
from neupath.io.formats.mat_content import ACM_KEYS, KEY, MatContent, ReadingLimitError
from neupath.io.graph_toml import Config
from neupath.io.text_files import file_errors, refuse_special

ACM_TYPES = {"P": "paper", "A": "author", "C": "conference", "F": "affiliation"}
"""The "field" of the paper's ACM is the author's affiliation."""


def read_mat(path: Path, settings: Config, duplicates: Duplicates | None = None) -> HIN:
    """Read the relations of a .mat file; a key such as PvsA, movie_actor or user2item names the two types.

    A file with the keys PvsA, PvsC and AvsF is `ACM.mat`; only these three are read, as in the paper.
    """
    content = _read(path, settings.take)
    acm = all(key in content.keys for key in ACM_KEYS)
    keys = tuple(settings.take or content.relations)
    for key in keys:
        if key not in content.keys or not KEY.match(key):
            raise SourceError(
                f"{path} has no relation matrix {key!r} to take (it has {listed(content.relations) or 'none'}); "
                f"correct take in graph.toml"
            )
        if key not in content.matrices:
            raise SourceError(f"{path}: {key} is not a 2-D numeric matrix")
    if not keys:
        raise SourceError(
            f"{path} has no relation matrices: it needs keys such as PvsA or movie_actor that hold 2-D numeric "
            f"matrices, but has {listed(content.keys) or 'none'}"
        )
    known: Mapping[str, str] = ACM_TYPES if acm else {}
    matrices = {key: content.matrices[key] for key in keys}
    ends = {key: tuple(known.get(end, end) for end in KEY.findall(key)[0]) for key in keys}
    sizes: dict[str, tuple[int, str]] = {}
    for key, matrix in matrices.items():
        for node_type, size in zip(ends[key], matrix.shape, strict=True):
            other_size, other_key = sizes.setdefault(node_type, (size, key))
            if size != other_size:
                raise SourceError(
                    f"{path}: {key} has {size:,} nodes of type {node_type}, but {other_key} has {other_size:,}"
                )
    letters = {node_type: letter for letter, node_type in known.items()}
    nodes = [
        Nodes(t, pa.array(np.arange(size)), _names(content.names.get(letters.get(t, t)), size))
        for t, (size, _) in sizes.items()
    ]
    edges = [
        Edges(Relation(ends[key][0], key, ends[key][1]), m.row.astype(np.int64), m.col.astype(np.int64), m.data)
        for key, m in matrices.items()
    ]
    used = {*keys, *(letters.get(t, t) for t in sizes)}
    others = [key for key in content.keys if key not in used]
    notes = [f"{path.name}: {listed(others)} {'were' if others[1:] else 'was'} left out"] if others else []
    abbreviations = dict(known) | dict(settings.abbreviations)
    return HIN.build(nodes, edges, duplicates=duplicates or "count", abbreviations=abbreviations, notes=notes)


def _read(path: Path, take: Sequence[str]) -> MatContent:
    refuse_special(path)
    try:
        with file_errors(path), path.open("rb") as stream:
            version, mark = stream.read(126)[124:], stream.read(2)
        if mark in (b"IM", b"MI") and 2 in version:
            raise SourceError(
                f"{path} is a MATLAB 7.3 (HDF5) file; save it in MATLAB with -v7, or convert it, and try again"
            )
        return MatContent.read(path, take)
    except ReadingLimitError as error:
        raise SourceError(f"{path} {error}") from error
    except (ValueError, zipfile.BadZipFile) as error:
        raise SourceError(f"{path} is not a readable .mat file: {error}") from error


def _names(texts: Sequence[str] | None, size: int) -> pa.Array | None:
    """Return the names of nodes, if there are as many as nodes."""
    return None if texts is None or len(texts) != size else pa.array(texts)
