"""Read MATLAB files with one sparse matrix per relation, such as the ACM network of the NeuPath paper."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.io
from scipy.sparse import coo_array, issparse

from neupath.errors import SourceError, listed
from neupath.graph.hin import HIN, Duplicates, Edges
from neupath.graph.metapath import Relation
from neupath.graph.nodes import Nodes
from neupath.io.config import Config

ACM_KEYS = ("PvsA", "PvsC", "AvsF")
ACM_TYPES = {"P": "paper", "A": "author", "C": "conference", "F": "affiliation"}
"""The "field" of the paper's ACM is the author's affiliation."""
_KEY = re.compile(r"^([A-Za-z0-9]+?)(?:_?vs_?|_to_|_2_|2|_)([A-Za-z0-9]+)$")


def read_mat(path: Path, settings: Config, duplicates: Duplicates | None = None) -> HIN:
    """Read the relations of a .mat file; a key such as PvsA, movie_actor or user2item names the two types.

    A file with the keys PvsA, PvsC and AvsF is `ACM.mat`; only these three are read, as in the paper.
    """
    content = _read(path)
    acm = all(key in content for key in ACM_KEYS)
    usual = ACM_KEYS if acm else tuple(key for key, value in content.items() if _KEY.match(key) and _is_relation(value))
    keys = tuple(settings.take) or usual
    for key in keys:
        if key not in content or not _KEY.match(key):
            raise SourceError(
                f"{path} has no relation matrix {key!r} to take (it has {listed(usual) or 'none'}); correct take "
                f"in graph.toml"
            )
    if not keys:
        raise SourceError(
            f"{path} has no relation matrices: it needs keys such as PvsA or movie_actor that hold 2-D numeric "
            f"matrices, but has {listed(content) or 'none'}"
        )
    known: Mapping[str, str] = ACM_TYPES if acm else {}
    matrices = {key: _as_coo(path, key, content[key]) for key in keys}
    ends = {key: tuple(known.get(end, end) for end in _KEY.findall(key)[0]) for key in keys}
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
        Nodes(t, pa.array(np.arange(size)), _names(content.get(letters.get(t, t)), size))
        for t, (size, _) in sizes.items()
    ]
    edges = [
        Edges(Relation(ends[key][0], key, ends[key][1]), m.row.astype(np.int64), m.col.astype(np.int64), m.data)
        for key, m in matrices.items()
    ]
    used = {*keys, *(letters.get(t, t) for t in sizes)}
    others = [key for key in content if key not in used]
    notes = [f"{path.name}: {listed(others)} {'were' if others[1:] else 'was'} left out"] if others else []
    abbreviations = dict(known) | dict(settings.abbreviations)
    return HIN.build(nodes, edges, duplicates=duplicates or "count", abbreviations=abbreviations, notes=notes)


def _read(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as stream:
            content = scipy.io.loadmat(stream)  # type: ignore[arg-type]
    except FileNotFoundError as error:
        raise SourceError(f"no such file: {path}") from error
    except PermissionError as error:
        raise SourceError(f"no permission to read {path}") from error
    except NotImplementedError as error:
        raise SourceError(
            f"{path} is a MATLAB 7.3 (HDF5) file; save it in MATLAB with -v7, or convert it, and try again"
        ) from error
    except Exception as error:
        raise SourceError(f"{path} is not a readable .mat file: {error or type(error).__name__}") from error
    return {key: value for key, value in content.items() if not key.startswith("__")}


def _is_matrix(value: object) -> bool:
    shape = getattr(value, "shape", ())
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    return len(shape) == 2 and kind in "biuf"


def _is_relation(value: object) -> bool:
    """Whether a value is a matrix and not a plain vector, such as a list of indices."""
    return _is_matrix(value) and (issparse(value) or 1 not in getattr(value, "shape", ()))


def _as_coo(path: Path, key: str, value: Any) -> "coo_array[np.float64]":
    if not _is_matrix(value):
        raise SourceError(f"{path}: {key} is not a 2-D numeric matrix")
    matrix = coo_array(value, dtype=np.float64)
    matrix.eliminate_zeros()
    return matrix


def _names(value: object, size: int) -> pa.Array | None:
    """Return the names in a MATLAB cell array of texts of the right length, or None."""
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "OU" or value.size != size:
        return None
    return pa.array([str(np.ravel(cell)[0]) if np.size(cell) else "" for cell in value.ravel()])
