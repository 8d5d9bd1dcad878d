"""The results of a join: the blocks in order as one Parquet or CSV file, or as files for Neo4j."""

import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Self

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from neupath._runtime.files import sync
from neupath.errors import SourceError, WriteError, first_line
from neupath.graph.nodes import Nodes

if TYPE_CHECKING:
    from neupath.engine.join import JoinJob

_NODES_AT_ONCE = 4096


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Say of what cannot be written which file it is."""
    try:
        yield
    except OSError as error:
        raise WriteError(f"cannot write {path}: {error.strerror or error}") from error


class ResultFile:
    """Writes the blocks as row groups of one file in order; it stays in the folder of blocks until it is complete."""

    def __init__(self, job: "JoinJob", tables: Sequence[Path]) -> None:
        self._job, self._out, self._path = job, job.out, job.parts / "together"
        self._tables, self._next, self._pairs = tables, 0, 0
        with writing(self._path):
            self._open()

    def _open(self) -> None:
        self._writer = pq.ParquetWriter(self._path, self._job.schema)

    def _append(self, table: pa.Table) -> None:
        self._writer.write_table(table, row_group_size=max(1, table.num_rows))

    def _close(self) -> None:
        self._writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()
        self._path.unlink(missing_ok=True)

    def append_finished(self) -> None:
        """Write the finished blocks that follow the last one written, up to the first that is missing."""
        with writing(self._path):
            while self._next < len(self._tables) and self._tables[self._next].is_file():
                table = _read_block(self._tables[self._next])
                self._append(table)
                self._pairs += table.num_rows
                self._next += 1

    def finish(self) -> int:
        """Write the remaining blocks, move the file to its name, and return the number of pairs."""
        self.append_finished()
        if self._next < len(self._tables):
            raise WriteError(f"cannot write {self._out}: {self._tables[self._next]} is missing; run the join again")
        with writing(self._out):
            self._close()
            sync(self._path)
            self._path.replace(self._out)
        return self._pairs


class CsvResult(ResultFile):
    """Writes the blocks as lines of a CSV file, after a header."""

    def _open(self) -> None:
        self._writer = pa.csv.CSVWriter(self._path, self._job.schema)

    def _append(self, table: pa.Table) -> None:
        self._writer.write_table(table)


class Neo4jResult(ResultFile):
    """Writes a folder for `neo4j-admin database import`: the pairs as relationships, and the nodes of each type."""

    def _open(self) -> None:
        self._path.mkdir(exist_ok=True)
        self._sides = {side.node_type: side for side in (self._job.sources, self._job.targets)}
        source, target = (_neo4j_name(side.node_type) for side in (self._job.sources, self._job.targets))
        header = f":START_ID({source}),:END_ID({target}),score:double,rank:long,:TYPE\n"
        self._file = (self._path / "relationships.csv").open("wb")
        self._file.write(header.encode())

    def _append(self, table: pa.Table) -> None:
        kind = pa.array(["SIMILAR"] * table.num_rows, pa.string())
        columns = [table["query"], table["target"], table["score"], table["rank"], kind]
        _write_lines(pa.table(columns, names=["query", "target", "score", "rank", "type"]), self._file)

    def _close(self) -> None:
        if self._file.closed:
            return
        self._file.close()
        for side in self._sides.values():
            _write_neo4j_nodes(side, self._path)
        (self._path / "load.cypher").write_text(_load_cypher(self._job.sources, self._job.targets), encoding="utf-8")

    def __exit__(self, *_: object) -> None:
        self._file.close()
        shutil.rmtree(self._path, ignore_errors=True)


RESULTS: dict[str, type[ResultFile]] = {"parquet": ResultFile, "csv": CsvResult, "neo4j": Neo4jResult}


def _load_cypher(sources: Nodes, targets: Nodes) -> str:
    """Return the statement that adds the pairs to the nodes that a database has already, by their property `id`."""

    def match(name: str, column: str, side: Nodes) -> str:
        node_id = f"row[':{column}({_neo4j_name(side.node_type)})']"
        node_id = f"toInteger({node_id})" if pa.types.is_int64(side.id_type) else node_id
        label = side.node_type.replace("`", "``")
        return f"  MATCH ({name}:`{label}` {{id: {node_id}}})\n"

    return (
        "// Put relationships.csv into the folder `import` of the database, and run this in cypher-shell.\n"
        "LOAD CSV WITH HEADERS FROM 'file:///relationships.csv' AS row\n"
        f"CALL (row) {{\n{match('a', 'START_ID', sources)}{match('b', 'END_ID', targets)}"
        "  MERGE (a)-[similar:SIMILAR]->(b)\n"
        "  SET similar.score = toFloat(row['score:double']), similar.rank = toInteger(row['rank:long'])\n"
        "} IN TRANSACTIONS OF 10000 ROWS;\n"
    )


def _write_neo4j_nodes(side: Nodes, folder: Path) -> None:
    name = _neo4j_name(side.node_type)
    with (folder / f"nodes-{name}.csv").open("wb") as file:
        file.write(f"id:ID({name}){',name' if side.has_names else ''},:LABEL\n".encode())
        for start in range(0, len(side), _NODES_AT_ONCE):
            rows = np.arange(start, min(start + _NODES_AT_ONCE, len(side)))
            columns = [side.take_ids(rows), *([side.take_names(rows)] if side.has_names else [])]
            label = pa.array([side.node_type] * len(rows), pa.string())
            _write_lines(pa.table([*columns, label], names=[*map(str, range(len(columns))), "label"]), file)


def _neo4j_name(node_type: str) -> str:
    """Return a node type as Neo4j names groups of ids, and as file names allow it."""
    return re.sub(r"[^\w-]+", "_", node_type)


def _write_lines(table: pa.Table, file: BinaryIO) -> None:
    pa.csv.write_csv(table, file, pa.csv.WriteOptions(include_header=False))


def _read_block(path: Path) -> pa.Table:
    try:
        return pq.ParquetFile(path).read()
    except (pa.ArrowException, OSError) as error:
        raise SourceError(f"{path} was damaged while the join ran ({first_line(error)}); run the join again") from error
