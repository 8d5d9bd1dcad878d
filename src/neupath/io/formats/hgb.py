"""Read node.dat and link.dat, the format of the heterogeneous graph benchmarks HGB and HNE."""

import json
import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neupath.errors import SourceError
from neupath.graph.hin import Edges, check_counts
from neupath.graph.metapath import Relation
from neupath.io.ids import to_weights
from neupath.io.interop import repeats_backwards
from neupath.io.plan import EdgePlan, NodePlan, Plan, ReadOptions, Selection, SharedIds
from neupath.io.table_files import open_table
from neupath.io.tables import ArrowTable, Place
from neupath.io.text_files import Dialect, file_errors, not_utf8, open_lines

NODES, LINKS, MEANINGS = "node.dat", "link.dat", "info.dat"
_COUNTS = "meta.dat"


@dataclass(frozen=True)
class _Meanings:
    """The names that info.dat gives to the numbers of types and relations."""

    types: dict[str, str] = field(default_factory=dict)
    relations: dict[str, str] = field(default_factory=dict)


class _Lines(ArrowTable):
    """The lines of a file that are read; `place` says where each is."""

    def __init__(self, columns: Mapping[str, pa.Array], path: Path, place: Place) -> None:
        super().__init__(pa.table(columns), path.stem, str(path))
        self.label, self._place = path.name, place

    @property
    def selection(self) -> Selection:
        return Selection(self, {name: name for name in self.columns}, all_text=True)

    def place(self, row: int) -> str:
        return self._place(row)


def read_hgb(folder: Path, options: ReadOptions) -> Plan:
    """Read node.dat (id, name, type, features) and link.dat (source, target, relation, weight), without features.

    info.dat names types and relations; without it their numbers are their names. A relation that only repeats another
    one backwards, as is usual in these benchmarks, is left out.
    """
    meanings = _read_meanings(folder / MEANINGS)
    nodes, has_features = _read_nodes(folder / NODES, meanings)
    links, repeats = _read_links(folder / LINKS, meanings)
    others = sorted(path.name for path in folder.glob("*.dat*") if path.name not in (NODES, LINKS, MEANINGS, _COUNTS))
    notes = [f"{name} was left out: the graph is read from {NODES} and {LINKS}" for name in others]
    if has_features:
        notes.append(f"the features in {NODES} were left out")
    relation = Relation("node", "link", "node")
    return Plan(
        [NodePlan("node", nodes.selection)],
        [EdgePlan(relation, links.selection)],
        replace(options, notes=[*repeats, *notes]),
        SharedIds("node"),
    )


def _read_nodes(path: Path, meanings: _Meanings) -> tuple[_Lines, bool]:
    """Return the nodes, and whether there are features; some lines may have none, so node.dat is not a table."""
    numbers, ids, names, types, has_features = array("q"), [], [], [], False
    for number, line in _lines(path):
        cells = line.split("\t", 3)
        if len(cells) < 3:
            raise SourceError(f"{path}, line {number}: expected id, name and type with tabs between them, got {line!r}")
        numbers.append(number)
        ids.append(cells[0])
        names.append(cells[1])
        types.append(meanings.types.get(cells[2], cells[2]))
        has_features |= len(cells) > 3
    columns = {"id": ids, "type": types, "name": names}
    texts = {name: pa.array(values, pa.string()) for name, values in columns.items()}
    return _Lines(texts, path, lambda row: f"{path}, line {numbers[row]}"), has_features


def _read_links(path: Path, meanings: _Meanings) -> tuple[_Lines, list[str]]:
    """Return the links without those that repeat others, and notes on those left out."""
    file = open_table(path, Dialect("\t", "", header=False))
    if len(file.columns) not in (3, 4):
        raise SourceError(
            f"{path}: expected the columns source, target, relation and perhaps weight, with tabs between them, got "
            f"{len(file.columns)}"
        )
    table = file.read(file.columns, dict.fromkeys(file.columns, pa.string()))
    rows, repeats = _without_repeats(table, file.place)
    links = dict(zip(("source", "target", "relation", "weight"), table.take(rows).columns, strict=False))
    names = [meanings.relations.get(code, code) for code in links["relation"].to_pylist()]
    links["relation"] = pa.array(names, pa.string())
    notes = [
        f"relation {meanings.relations.get(code, code)} was left out: it repeats "
        f"{meanings.relations.get(other, other)} backwards"
        for code, other in repeats
    ]
    return _Lines(links, path, lambda row: file.place(rows[row].as_py())), notes


def _without_repeats(table: pa.Table, place: Place) -> tuple[pa.Array, list[tuple[str, str]]]:
    """Return the rows to read, and each relation that is left out with the one it repeats."""
    both = pa.chunked_array([*table["1"].chunks, *table["2"].chunks]).combine_chunks().dictionary_encode().indices
    ends = both.to_numpy(zero_copy_only=False).astype(np.int64)
    sources, targets = ends[: len(table)], ends[len(table) :]
    weights = to_weights(table["4"].combine_chunks(), place) if "4" in table.column_names else None
    codes = np.asarray(table["3"].combine_chunks().dictionary_encode().indices)
    names = pc.unique(table["3"]).to_pylist()
    check_counts(1, len(names))
    edges: dict[str, Edges] = {}
    repeats = []
    for code, name in enumerate(names):
        rows = np.flatnonzero(codes == code)
        edge = Edges(
            Relation("node", name, "node"), sources[rows], targets[rows], None if weights is None else weights[rows]
        )
        other = next((other for other, forward in edges.items() if repeats_backwards(edge, forward)), None)
        if other is None:
            edges[name] = edge
        else:
            repeats.append((name, other))
    left_out = [names.index(name) for name, _ in repeats]
    return pa.array(np.flatnonzero(~np.isin(codes, left_out))), repeats


def _read_meanings(path: Path) -> _Meanings:
    """Read info.dat: JSON, or tables under the headers TYPE and LINK."""
    if not path.is_file():
        return _Meanings()
    text = "\n".join(line for _, line in _lines(path))
    try:
        content = json.loads(text)
        types = {str(code): str(name) for code, name in content["node.dat"]["node type"].items()}
        relations = {str(code): str(link["meaning"]) for code, link in content["link.dat"]["link type"].items()}
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise SourceError(f"{path} does not name the types of {NODES} and {LINKS}; remove it") from error
    except json.JSONDecodeError:
        types, relations = _section(text, "TYPE", 1), _section(text, "LINK", 3)
    return _Meanings(types, {code: _relation_name(meaning) for code, meaning in relations.items()})


def _section(text: str, header: str, column: int) -> dict[str, str]:
    """Map the first column of a table in info.dat to another; the table ends at a line without a number."""
    names: dict[str, str] = {}
    inside = False
    for line in text.splitlines():
        cells = [cell for cell in re.split(r"\s*\t\s*", line.strip()) if cell]
        if cells[:1] == [header]:
            inside = True
        elif inside and len(cells) > column and cells[0].isdigit():
            names[cells[0]] = cells[column]
        else:
            inside = False
    return names


def _relation_name(meaning: str) -> str:
    """Return the words between the types, such as cite in paper-cite-paper, or else both types."""
    words: Sequence[str] = re.split(r"-+>?", meaning)
    return "_".join(words[1:-1]) or "_".join(words)


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the non-blank lines with their numbers."""
    try:
        with file_errors(path), open_lines(path) as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield number, line.rstrip("\n")
    except UnicodeDecodeError as error:
        raise SourceError(f"{path} {not_utf8(error)}") from error
