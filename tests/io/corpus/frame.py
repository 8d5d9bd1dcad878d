"""What a source of the corpus is: how it is written, and the graph that a person expects of it.

A source writes its files to an empty folder and returns a `Sample`: what is given to `load`, and either the expected
graph or the sentence of the refusal. `python -m tests.io.corpus` lists what comes of each source.
"""

import csv
import gzip
import io
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from neupath import HIN, load
from neupath.errors import NeuPathError, SourceWarning
from neupath.graph.metapath import Relation


# ---- Tables --------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Column:
    """A column of a table: its header, what it holds (`Table` lists the roles), and its cells."""

    header: str
    role: str
    cells: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """A text table whose columns have roles, so that `tests/attacks/layouts.py` can change it and know the graph.

    Roles of edges: `source` and `target`, perhaps with a type after a colon (`source:user`), `source type`, `target
    type`, `source name`, `target name`, `relation`, `weight`. Roles of nodes: `id` (`id:movie`), `type`, `name`,
    `key:TYPE` (the id of another node: an edge), `list:TYPE` (several such ids). `first` and `other` are the columns of a wide
    table, `same` a column that could take the place of an id (`same:source`), and an empty role is anything else.
    """

    file: str
    columns: tuple[Column, ...]
    delimiter: str = ","
    has_header: bool = True

    @property
    def rows(self) -> list[tuple[str, ...]]:
        return list(zip(*(column.cells for column in self.columns), strict=True))

    def text(self) -> str:
        """Return the table as text, with quotes where a cell needs them."""
        stream = io.StringIO(newline="")
        writer = csv.writer(stream, delimiter=self.delimiter, lineterminator="\n")
        if self.has_header:
            writer.writerow([column.header for column in self.columns])
        writer.writerows(self.rows)
        return stream.getvalue()


def table(file: str, columns: Mapping[str, str], rows: str, delimiter: str = ",", *, header: bool = True) -> Table:
    """Make a table: its headers with their roles, and its rows as text with commas between the cells."""
    cells = [tuple(row) for row in csv.reader(rows.strip().splitlines())]
    by_column = zip(*cells, strict=True)
    made = tuple(Column(*pair, column) for pair, column in zip(columns.items(), by_column, strict=True))
    return Table(file, made, delimiter, header)


def write(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write files, gzipped if they are named so; return the folder, or the file if it is alone."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        raw = content.encode() if isinstance(content, str) else content
        path.write_bytes(gzip.compress(raw, mtime=0) if path.suffix == ".gz" else raw)
    return path if len(files) == 1 else folder


def write_tables(folder: Path, tables: Sequence[Table]) -> Path:
    return write(folder, {each.file: each.text() for each in tables})


# ---- Expected graphs -----------------------------------------------------------------------------
Edge = tuple[str, str] | tuple[str, str, float]


@dataclass(frozen=True)
class Sample:
    """A source and what must come of it.

    Parameters
    ----------
    load
        What is given to `load`.
    nodes
        A node type -> how many nodes it has; all types.
    edges
        A relation -> its edges as text (`a>b c>d*2.5`, weight 1 unless said), as tuples, or how many there are; all
        relations. `movie -genre-> genre` must have this name, `movie -> genre` may have any, `gene -- gene` is
        undirected.
    names
        A node type -> the names of some nodes by id, or None if its nodes must have no names.
    attributes
        A relation, as under `edges` -> the attributes of its edges, each with its kind or with its values as text, in
        the order of the source. Relations that are not named may have any.
    notes
        Patterns, each of which one of the notes must match.
    refused
        The pattern of the sentence, if the source must be refused.
    options
        Further arguments of `load`.
    tables
        The tables that were written, for sources that the generator changes.

    """

    load: Any
    nodes: Mapping[str, int] = field(default_factory=dict)
    edges: Mapping[str, str | int | Sequence[Edge]] = field(default_factory=dict)
    names: Mapping[str, Mapping[str, str] | None] = field(default_factory=dict)
    attributes: Mapping[str, Mapping[str, str | Sequence[object]]] = field(default_factory=dict)
    notes: Sequence[str] = ()
    refused: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    tables: Sequence[Table] = ()


@dataclass(frozen=True)
class Source:
    """One source: what writes it, and the packages that it needs."""

    write: Callable[[Path], Sample]
    needs: Sequence[str] = ()


def of_tables(*tables: Table, **expected: Any) -> Source:
    """A source of text tables, which the generator changes, too: their file if there is one, or else their folder."""

    return Source(lambda folder: Sample(write_tables(folder, tables), tables=tables, **expected))


def of_files(files: Mapping[str, str | bytes], needs: Sequence[str] = (), **expected: Any) -> Source:
    """A source of files: the only one, or else their folder."""
    return Source(lambda folder: Sample(write(folder, files), **expected), needs)


def of_objects(make: Callable[[], Any], needs: Sequence[str] = (), **expected: Any) -> Source:
    """A source that is an object of another library."""
    return Source(lambda _: Sample(make(), **expected), needs)


# ---- Comparison ----------------------------------------------------------------------------------
_RELATION = re.compile(r"(?P<source>.+?) (?:-(?P<name>.+)-> |->|--)(?P<target>.+)")


def outcome(sample: Sample) -> tuple[str, list[str]]:
    """Load a sample; return "read" or "refused" with what is not as expected, or with the sentence."""
    try:
        return "read", mismatches(read(sample), sample)
    except NeuPathError as error:
        return "refused", [str(error)]


def read(sample: Sample) -> HIN:
    """Load a sample without warnings of its notes, which are compared instead."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SourceWarning)
        warnings.filterwarnings("ignore", "No key type for id")  # NetworkX on keys of GraphML without a type
        return load(sample.load, **sample.options)


def mismatches(hin: HIN, sample: Sample) -> list[str]:
    """Return how a graph differs from the expected one, one sentence each."""
    counts = {node_type: len(nodes) for node_type, nodes in hin.nodes.items()}
    wrong = [] if counts == dict(sample.nodes) else [f"node types are {counts}, expected {dict(sample.nodes)}"]
    left = list(hin.matrices)
    for text, expected in sample.edges.items():
        relation = next((each for each in left if _is_called(each, text)), None)
        if relation is None:
            wrong.append(f"no relation '{text}', only {', '.join(map(str, left)) or 'others'}")
            continue
        left.remove(relation)
        wrong += _edge_mismatches(hin, relation, text, expected)
        if text in sample.attributes:
            wrong += _attribute_mismatches(hin, relation, sample.attributes[text])
    wrong += [f"relation '{relation}' is not expected" for relation in left]
    wrong += [line for node_type in sample.names for line in _name_mismatches(hin, sample, node_type)]
    wrong += [
        f"no note matches {pattern!r}: {hin.notes}"
        for pattern in sample.notes
        if not any(re.search(pattern, note) for note in hin.notes)
    ]
    return wrong


def _is_called(relation: Relation, text: str) -> bool:
    if str(relation) == text:
        return True
    ends = (relation.source, relation.target, relation.directed)
    for arrow, directed in ((" -> ", True), (" -- ", False)):
        source_type, found, target_type = text.partition(arrow)
        if found and ends == (source_type, target_type, directed):
            return True
    return False


def edges_of(hin: HIN, relation: Relation) -> dict[tuple[str, str], float]:
    """Return the edges of a relation by the ids of their ends, those of an undirected one once."""
    matrix = hin.matrices[relation].tocoo()
    sources, targets = (list(map(str, hin.nodes[end].ids.to_pylist())) for end in (relation.source, relation.target))
    entries = zip(matrix.row.tolist(), matrix.col.tolist(), matrix.data.tolist(), strict=True)
    return {(sources[r], targets[c]): weight for r, c, weight in entries if relation.directed or r <= c}


def _edge_mismatches(hin: HIN, relation: Relation, text: str, expected: str | int | Sequence[Edge]) -> list[str]:
    read = edges_of(hin, relation)
    if isinstance(expected, int):
        return [] if len(read) == expected else [f"'{text}' has {len(read)} edges, expected {expected}"]
    known = expected_edges(expected)
    if not relation.directed:
        known, read = ({(min(ends), max(ends)): weight for ends, weight in each.items()} for each in (known, read))
    return [] if read == known else [f"'{text}' has the edges {read}, expected {known}"]


def _attribute_mismatches(hin: HIN, relation: Relation, expected: Mapping[str, str | Sequence[object]]) -> list[str]:
    kinds = hin.edge_kinds(relation)
    if list(kinds) != list(expected):
        return [f"edges of '{relation}' have the attributes {list(kinds)}, expected {list(expected)}"]
    wrong = []
    for name, content in expected.items():
        if isinstance(content, str):
            wrong += [] if kinds[name] == content else [f"{name} of '{relation}' is a {kinds[name]}, not a {content}"]
        else:
            values = hin.edge_tables[relation].attributes[name].to_pylist()
            wrong += [] if values == list(content) else [f"{name} of '{relation}' is {values}, not {list(content)}"]
    return wrong


def expected_edges(edges: str | Sequence[Edge]) -> dict[tuple[str, str], float]:
    """Return edges by their ends, with the sum of the weights of parallel ones."""
    if isinstance(edges, str):
        parts = [re.fullmatch(r"(.+?)>(.+?)(?:\*([\d.]+))?", edge) for edge in edges.split()]
        edges = [(part[1], part[2], float(part[3] or 1)) for part in parts if part]
    weights: dict[tuple[str, str], float] = {}
    for source_id, target_id, *weight in edges:
        ends = (str(source_id), str(target_id))
        weights[ends] = weights.get(ends, 0) + (weight[0] if weight else 1.0)
    return weights


def _name_mismatches(hin: HIN, sample: Sample, node_type: str) -> list[str]:
    nodes, expected = hin.nodes.get(node_type), sample.names[node_type]
    if nodes is None:
        return [f"no node type {node_type!r} to have names"]
    names = names_of(hin, node_type)
    if expected is None:
        return [f"nodes of {node_type} have names: {names}"] if names else []
    return [
        f"{node_type} {node_id!r} is called {names.get(node_id)!r}, expected {name!r}"
        for node_id, name in expected.items()
        if names.get(node_id) != name
    ]


def names_of(hin: HIN, node_type: str) -> dict[str, str]:
    """Return the names of the nodes that have one, by id."""
    nodes = hin.nodes[node_type]
    if nodes.names is None:
        return {}
    pairs = zip(nodes.ids.to_pylist(), nodes.names.to_pylist(), strict=True)
    return {str(node_id): name for node_id, name in pairs if name is not None}


def with_tables(sample: Sample, folder: Path, tables: Sequence[Table]) -> Sample:
    """Return a sample of other tables, written to a folder; nothing is expected of it."""
    path = write_tables(folder, tables)
    return Sample(path if Path(sample.load).is_file() else folder, tables=tables, options=sample.options)
