"""Read DBLP's XML: papers with their authors, editors, venues, and the papers that they cite or appear in."""

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from html.entities import name2codepoint
from itertools import chain
from pathlib import Path
from xml.parsers import expat

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neupath._runtime.files import LONGEST_LINE
from neupath._runtime.progress import Progress, no_progress
from neupath.errors import SourceError, listed
from neupath.graph.hin import HIN, Edges
from neupath.graph.metapath import Relation
from neupath.graph.nodes import Nodes
from neupath.io.formats.rdf_statements import root_element
from neupath.io.plan import ReadOptions
from neupath.io.text_files import file_errors, open_raw

PAPERS = (
    "article", "inproceedings", "incollection", "proceedings", "book", "phdthesis", "mastersthesis", "data",
)  # fmt: skip
_VENUES = ("journal", "booktitle")
_RELATIONS = {"author": "author", "editor": "author", "venue": "venue", "crossref": "paper", "cite": "paper"}
"""What a paper names -> the type of that."""
_COLUMNS = ("key", "title", "kind", "year")
_BLOCK, _BATCH, _DEEPEST = 1 << 20, 1 << 14, 50


def is_dblp(path: Path) -> bool:
    """Whether a file is DBLP's XML, by its name and its root element."""
    is_xml = path.name.lower().removesuffix(".gz").endswith(".xml") and not path.name.startswith(".")
    return is_xml and path.is_file() and root_element(path) == "dblp"


def read_dblp(path: Path, options: ReadOptions, progress: Progress = no_progress) -> HIN:
    """Read papers, people and venues. A person's name and a venue's title are ids, as in DBLP itself."""
    parser = _Parser(path)
    total = max(1, path.stat().st_size)
    with file_errors(path), open_raw(path) as stream:
        while block := stream.read(_BLOCK):
            parser.feed(block)
            progress("reading", min(total, parser.position), total)
        parser.feed(b"", is_last=True)
    return parser.papers.build(path, options)


# ---- Papers --------------------------------------------------------------------------------------
class _Papers:
    """Papers as they are collected, and what each names: columns go to Arrow memory a batch at a time."""

    def __init__(self) -> None:
        self.left_out: Counter[str] = Counter()
        self._count = 0
        self._texts: dict[str, list[str | None]] = {name: [] for name in (*_COLUMNS, *_RELATIONS)}
        self._rows: dict[str, list[int]] = {name: [] for name in _RELATIONS}
        """The papers that name the texts of a relation."""
        self._batches: list[tuple[dict[str, pa.Array], dict[str, pa.Array]]] = []

    def add(self, kind: str, key: str, fields: list[tuple[str, str]]) -> None:
        """Add one record: its element, its key, and its fields."""
        if kind not in PAPERS:
            self.left_out[f"<{kind}>"] += 1
            return
        values = {"key": key, "kind": kind}
        for name, text in fields:
            relation = "venue" if name in _VENUES else name
            if name in ("title", "year"):
                values.setdefault(name, text)
            elif relation not in _RELATIONS:
                self.left_out[name] += 1
            elif text != "...":  # a citation of something that is not in DBLP
                self._texts[relation].append(text)
                self._rows[relation].append(self._count)
        for name in _COLUMNS:
            self._texts[name].append(values.get(name))
        self._count += 1
        if self._count % _BATCH == 0:
            self._flush()

    def _flush(self) -> None:
        texts = {name: pa.array(values, pa.large_string()) for name, values in self._texts.items()}
        self._batches.append((texts, {name: pa.array(rows, pa.int64()) for name, rows in self._rows.items()}))
        self._texts = {name: [] for name in self._texts}
        self._rows = {name: [] for name in self._rows}

    def build(self, path: Path, options: ReadOptions) -> HIN:
        if not self._count:
            raise SourceError(f"{path} has no papers ({', '.join(PAPERS)})")
        self._flush()
        columns = {name: pa.chunked_array([texts[name] for texts, _ in self._batches]) for name in self._texts}
        texts = [pc.cast(columns[name], pa.string()).combine_chunks() for name in _COLUMNS]
        keys, titles, kinds, years = texts
        with suppress(pa.ArrowInvalid):
            years = pc.cast(years, pa.int64())
        nodes = [Nodes("paper", keys, titles, pa.table({"kind": kinds, "year": years}))]
        ids = {"paper": columns["key"].combine_chunks()}
        for node_type in ("author", "venue"):
            chunks = [columns[name].chunks for name, end in _RELATIONS.items() if end == node_type]
            ids[node_type] = pc.unique(pa.chunked_array(chain(*chunks), pa.large_string()))
            nodes.append(Nodes(node_type, pc.cast(ids[node_type], pa.string()), distinct=True))
        edges, notes = [], list(options.notes)
        for name, node_type in _RELATIONS.items():
            targets = pc.index_in(columns[name], value_set=ids[node_type])
            known = pc.is_valid(targets)
            papers = pa.chunked_array([own[name] for _, own in self._batches])
            rows, ends = (each.filter(known).to_numpy().astype(np.int64) for each in (papers, targets))
            if len(rows):
                edges.append(Edges(Relation("paper", name, node_type), rows, ends))
            if missing := len(targets) - len(rows):
                values = f"{missing:,} values of {name} were" if missing > 1 else f"1 value of {name} was"
                notes.append(f"{values} left out: no paper of the file has that key")
        if self.left_out:
            notes.append(f"left out: {listed(sorted(self.left_out), 8)}")
        options.check_names([edge.relation.name for edge in edges])
        taken = [edge for edge in edges if not options.take or edge.relation.name in options.take]
        used = {"paper", *(edge.relation.target for edge in taken)}
        return HIN.build(
            [each for each in nodes if each.node_type in used],
            taken,
            duplicates=options.duplicates,
            abbreviations=options.abbreviations,
            notes=notes,
        )


# ---- XML -----------------------------------------------------------------------------------------
class _Parser:
    """Parses the file as it comes. The entities of DBLP's DTD, such as &uuml;, are those of HTML; no DTD is opened."""

    def __init__(self, path: Path) -> None:
        self.papers = _Papers()
        self._path, self._depth = path, 0
        self._kind, self._key = "", ""
        self._fields: list[tuple[str, str]] = []
        self._field, self._text, self._length = "", [""], 0
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._open
        self._parser.EndElementHandler = self._close
        self._parser.CharacterDataHandler = self._add_text
        self._parser.SkippedEntityHandler = self._add_entity
        self._parser.EntityDeclHandler = self._refuse_entity

    @property
    def position(self) -> int:
        return self._parser.CurrentByteIndex

    def feed(self, block: bytes, is_last: bool = False) -> None:
        try:
            self._parser.Parse(block, is_last)
        except expat.ExpatError as error:
            reason = expat.ErrorString(error.code)
            raise SourceError(f"{self._path}, line {error.lineno}: the XML is not well-formed: {reason}") from error

    def _open(self, name: str, attributes: Mapping[str, str]) -> None:
        self._depth += 1
        if self._depth == 2:
            self._kind, self._key, self._fields = name, attributes.get("key", ""), []
            if not self._key and name in PAPERS:
                raise self._error(f"the <{name}> has no key")
        elif self._depth == 3:
            self._field, self._text, self._length = name, [], 0
        elif self._depth > _DEEPEST:
            raise self._error(f"elements are nested more than {_DEEPEST} deep")

    def _close(self, _name: str) -> None:
        if self._depth == 3:
            text = " ".join("".join(self._text).split())
            if text:
                self._fields.append((self._field, text))
        elif self._depth == 2:
            self.papers.add(self._kind, self._key, self._fields)
        self._depth -= 1

    def _add_text(self, text: str) -> None:
        if self._depth >= 3:
            self._text.append(text)
            self._length += len(text)
            if self._length > LONGEST_LINE:
                raise self._error(
                    f"a <{self._field}> is longer than {LONGEST_LINE:,} characters, the most that is read"
                )

    def _add_entity(self, name: str, _is_parameter: bool) -> None:
        if name not in name2codepoint:
            raise self._error(f"the entity &{name}; is not known; DBLP has those of HTML")
        self._add_text(chr(name2codepoint[name]))

    def _refuse_entity(self, name: str, *_declaration: object) -> None:
        raise self._error(f"the file declares the entity {name!r} itself, which DBLP does not; such files are not read")

    def _error(self, reason: str) -> SourceError:
        return SourceError(f"{self._path}, line {self._parser.CurrentLineNumber}: {reason}")
