"""Read MATLAB files with one sparse matrix per relation, such as the ACM network of the NeuPath paper."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa

from neupath.errors import SourceError, listed
from neupath.graph.hin import HIN, Duplicates, Edges
from neupath.graph.metapath import Relation
from neupath.graph.nodes import Nodes
from neupath.io.formats import mat_content
from neupath.io.formats.mat_content import ACM_KEYS, KEY
from neupath.io.graph_toml import Config
from neupath.io.text_files import file_errors, refuse_special

ACM_TYPES = {"P": "paper", "A": "author", "C": "conference", "F": "affiliation"}
"""The "field" of the paper's ACM is the author's affiliation."""
_LEAST_MEMORY, _MEMORY_PER_BYTE = 2 << 30, 64
_LEAST_SECONDS, _BYTES_PER_SECOND = 120, 1 << 20
"""What reading may take: bytes of memory and seconds of processor time, more for larger files."""


def read_mat(path: Path, settings: Config, duplicates: Duplicates | None = None) -> HIN:
    """Read the relations of a .mat file; a key such as PvsA, movie_actor or user2item names the two types.

    A file with the keys PvsA, PvsC and AvsF is `ACM.mat`; only these three are read, as in the paper.
    """
    header, edges = _read(path, settings.take)
    keys = list(settings.take or header["relations"])
    for key in keys:
        if key not in header["keys"] or not KEY.match(key):
            raise SourceError(
                f"{path} has no relation matrix {key!r} to take (it has {listed(header['relations']) or 'none'}); "
                f"correct take in graph.toml"
            )
        if key not in edges:
            raise SourceError(f"{path}: {key} is not a 2-D numeric matrix")
    if not keys:
        raise SourceError(
            f"{path} has no relation matrices: it needs keys such as PvsA or movie_actor that hold 2-D numeric "
            f"matrices, but has {listed(header['keys']) or 'none'}"
        )
    abbreviations = ACM_TYPES if {*ACM_KEYS} <= {*header["keys"]} else {}
    key_of_type: dict[str, str] = {}
    sizes: dict[str, tuple[int, str]] = {}
    relations = []
    for key in keys:
        ends = KEY.findall(key)[0]
        types = [abbreviations.get(end, end) for end in ends]
        key_of_type |= dict(zip(types, ends, strict=True))
        for node_type, size in zip(types, header["shapes"][key], strict=True):
            other_size, other_key = sizes.setdefault(node_type, (size, key))
            if size != other_size:
                raise SourceError(
                    f"{path}: {key} has {size:,} nodes of type {node_type}, but {other_key} has {other_size:,}"
                )
        rows, columns, weights = edges[key]
        relations.append(Edges(Relation(types[0], key, types[1]), rows, columns, weights))
    names = {each: header["names"].get(key_of_type[each], ()) for each in sizes}
    nodes = [
        Nodes(each, pa.array(np.arange(size)), pa.array(names[each]) if len(names[each]) == size else None)
        for each, (size, _) in sizes.items()
    ]
    others = [key for key in header["keys"] if key not in {*keys, *key_of_type.values()}]
    notes = [f"{path.name}: {listed(others)} {'were' if others[1:] else 'was'} left out"] if others else []
    abbreviations = {**abbreviations, **settings.abbreviations}
    return HIN.build(nodes, relations, duplicates=duplicates or "count", abbreviations=abbreviations, notes=notes)


def _read(path: Path, take: Sequence[str]) -> tuple[dict[str, Any], Mapping[str, list[Any]]]:
    """Return what `mat_content` says of a file, and the rows, columns and values of each matrix."""
    refuse_special(path)
    with file_errors(path), path.open("rb") as stream:
        start, size = stream.read(128), path.stat().st_size
    if start[126:] in (b"IM", b"MI") and 2 in start[124:126]:
        raise SourceError(
            f"{path} is a MATLAB 7.3 (HDF5) file; save it in MATLAB with -v7, or convert it, and try again"
        )
    limits = [_LEAST_MEMORY + _MEMORY_PER_BYTE * size, _LEAST_SECONDS + size // _BYTES_PER_SECOND]
    with TemporaryDirectory() as folder:
        command = [sys.executable, "-P", mat_content.__file__, str(path), folder, *map(str, limits), *take]
        child = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if child.returncode:
            raise _failure(path, child, *limits)
        header = json.loads((Path(folder) / "header.json").read_text(encoding="ascii"))
        with np.load(Path(folder) / "matrices.npz", allow_pickle=False) as arrays:
            edges = {key: [arrays[f"{part}-{key}"] for part in ("row", "col", "data")] for key in header["shapes"]}
    return header, {key: [row.astype(np.int64), col.astype(np.int64), data] for key, (row, col, data) in edges.items()}


def _failure(path: Path, child: "subprocess.CompletedProcess[str]", memory: int, seconds: int) -> SourceError:
    """Say why a file could not be read: too large, damaged, or no .mat file."""
    lines = child.stderr.strip().splitlines() or ["its reader crashed, so the file is damaged"]
    words = ("MemoryError", "bad_alloc", "zlib.error: Error -4")  # of Python, C++ and zlib without memory
    is_limit = -child.returncode in (9, 24) or any(word in line for word in words for line in (lines[0], lines[-1]))
    if is_limit:  # SIGKILL, as of a system without memory, or SIGXCPU
        return SourceError(
            f"{path} takes more than {memory / 2**30:,.1f} GiB of memory or {seconds:,} seconds to read, or the system "
            f"has less memory; free some, or convert the file to tables"
        )
    return SourceError(f"{path} is not a readable .mat file: {lines[-1]}")
