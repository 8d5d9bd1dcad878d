"""Read node.dat and link.dat, the format of the heterogeneous graph benchmarks HGB and HNE."""

import json
import re
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import takewhile
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
    types, relations = _read_meanings(folder / MEANINGS)
    nodes, has_features = _read_nodes(folder / NODES, types)
    links, repeats = _read_links(folder / LINKS, relations)
    others = sorted(path.name for path in folder.glob("*.dat*") if path.name not in (NODES, LINKS, MEANINGS, _COUNTS))
    notes = [f"{name} was left out: the graph is read from {NODES} and {LINKS}" for name in others]
    if has_features:
        notes.append(f"the features in {NODES} were left out")
    return Plan(
        [NodePlan("node", nodes.selection)],
        [EdgePlan(Relation("node", "link", "node"), links.selection)],
        replace(options, notes=[*repeats, *notes]),
        SharedIds("node"),
    )


def _read_nodes(path: Path, types: Mapping[str, str]) -> tuple[_Lines, bool]:
    """Return the nodes, and whether there are features; some lines may have none, so node.dat is not a table."""
    numbers, rows, has_features = array("q"), [], False
    for number, line in _lines(path):
        cells = line.split("\t", 3)
        if len(cells) < 3:
            raise SourceError(f"{path}, line {number}: expected id, name and type with tabs between them, got {line!r}")
        numbers.append(number)
        rows.append((cells[0], cells[1], types.get(cells[2], cells[2])))
        has_features |= len(cells) > 3
    columns = zip(*rows, strict=True) if rows else [(), (), ()]
    texts = {name: pa.array(values, pa.string()) for name, values in zip(("id", "name", "type"), columns, strict=True)}
    return _Lines(texts, path, lambda row: f"{path}, line {numbers[row]}"), has_features


def _read_links(path: Path, relations: Mapping[str, str]) -> tuple[_Lines, list[str]]:
    """Return the links without those of relations that repeat others, and notes on these."""
    file = open_table(path, Dialect("\t", "", header=False))
    if len(file.columns) not in (3, 4):
        raise SourceError(
            f"{path}: expected the columns source, target, relation and perhaps weight, with tabs between them, got "
            f"{len(file.columns)}"
        )
    table = file.read(file.columns, dict.fromkeys(file.columns, pa.string())).combine_chunks()
    sources, targets, names = (table[name].combine_chunks() for name in ("1", "2", "3"))
    ids = pc.unique(pa.concat_arrays([sources, targets]))
    ends = [pc.index_in(end, value_set=ids).to_numpy().astype(np.int64) for end in (sources, targets)]
    weights = to_weights(table["4"].combine_chunks(), file.place) if "4" in table.column_names else None
    check_counts(1, len(pc.unique(names)))
    forward: dict[str, Edges] = {}
    kept = np.ones(len(table), dtype=np.bool_)
    notes = []
    for code in pc.unique(names).to_pylist():
        rows = np.flatnonzero(pc.equal(names, code))
        own_weights = None if weights is None else weights[rows]
        edge = Edges(Relation("node", code, "node"), ends[0][rows], ends[1][rows], own_weights)
        other = next((other for other, each in forward.items() if repeats_backwards(edge, each)), None)
        if other is None:
            forward[code] = edge
            continue
        kept[rows] = False
        name, repeated = (relations.get(each, each) for each in (code, other))
        notes.append(f"relation {name} was left out: it repeats {repeated} backwards")
    links = dict(zip(("source", "target", "relation", "weight"), table.filter(pa.array(kept)).columns, strict=False))
    links["relation"] = pa.array([relations.get(code, code) for code in links["relation"].to_pylist()], pa.string())
    places = np.flatnonzero(kept)
    return _Lines(links, path, lambda row: file.place(int(places[row]))), notes


def _read_meanings(path: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Return the names of types and relations in info.dat: JSON, or tables under the headers TYPE and LINK."""
    if not path.is_file():
        return {}, {}
    text = "\n".join(line for _, line in _lines(path))
    try:
        content = json.loads(text)
        types = {str(code): str(name) for code, name in content["node.dat"]["node type"].items()}
        relations = {str(code): str(link["meaning"]) for code, link in content["link.dat"]["link type"].items()}
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise SourceError(f"{path} does not name the types of {NODES} and {LINKS}; remove it") from error
    except json.JSONDecodeError:
        types, relations = _section(text, "TYPE", 1), _section(text, "LINK", 3)
    # the words between the types, such as cite in paper-cite-paper, or else both types
    words = {code: re.split(r"-+>?", meaning) for code, meaning in relations.items()}
    return types, {code: "_".join(each[1:-1] or each) for code, each in words.items()}


def _section(text: str, header: str, column: int) -> dict[str, str]:
    """Map the first column of a table in info.dat to another; the table ends at a line without a number."""
    rows = [[cell for cell in re.split(r"\s*\t\s*", line.strip()) if cell] for line in text.splitlines()]
    start = next((at for at, cells in enumerate(rows, 1) if cells[:1] == [header]), len(rows))
    table = takewhile(lambda cells: len(cells) > column and cells[0].isdigit(), rows[start:])
    return {cells[0]: cells[column] for cells in table}


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the non-blank lines with their numbers."""
    try:
        with file_errors(path), open_lines(path) as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield number, line.rstrip("\n")
    except UnicodeDecodeError as error:
        raise SourceError(f"{path} {not_utf8(error)}") from error
