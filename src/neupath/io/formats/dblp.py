"""Read DBLP's XML: papers with their authors, editors, venues, and the papers that they cite or appear in."""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from html.entities import name2codepoint
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
from neupath.graph.nodes import Nodes, Rows
from neupath.io.formats.rdf_statements import root_element
from neupath.io.plan import ReadOptions
from neupath.io.text_files import file_errors, open_raw

PAPERS = (
    "article", "inproceedings", "incollection", "proceedings", "book", "phdthesis", "mastersthesis", "data",
)  # fmt: skip
_PEOPLE, _VENUES, _PAPER_KEYS = ("author", "editor"), ("journal", "booktitle"), ("crossref", "cite")
_BLOCK, _BATCH, _DEEPEST = 1 << 20, 1 << 16, 50


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
    """Papers as they are collected: texts go to Arrow memory a batch at a time."""

    def __init__(self) -> None:
        self.own = _Column()
        self.columns: dict[str, _Column] = {name: _Column() for name in (*_PEOPLE, "venue", *_PAPER_KEYS)}
        self.titles, self.kinds, self.years = _Column(), _Column(), _Column()
        self.left_out: Counter[str] = Counter()
        self.count = 0

    def add(self, kind: str, key: str, fields: list[tuple[str, str]]) -> None:
        """Add one record: its element, its key, and its fields."""
        if kind not in PAPERS:
            self.left_out[f"<{kind}>"] += 1
            return
        row, self.count = self.count, self.count + 1
        self.own.add(key)
        self.kinds.add(kind)
        values: dict[str, str] = {}
        for name, text in fields:
            column = "venue" if name in _VENUES else name
            if column in self.columns:
                if text != "...":  # a citation of something that is not in DBLP
                    self.columns[column].add(text, row)
            elif name in ("title", "year"):
                values.setdefault(name, text)
            else:
                self.left_out[name] += 1
        self.titles.add(values.get("title"))
        self.years.add(values.get("year"))

    def build(self, path: Path, options: ReadOptions) -> HIN:
        if not self.count:
            raise SourceError(f"{path} has no papers ({', '.join(PAPERS)})")
        keys = self.own.texts()
        papers = Nodes(
            "paper", pc.cast(keys, pa.string()), pc.cast(self.titles.texts(), pa.string()), self._attributes()
        )
        people, person_codes = _numbered([self.columns[name] for name in _PEOPLE])
        venues, venue_codes = _numbered([self.columns["venue"]])
        nodes = [papers, Nodes("author", people, distinct=True), Nodes("venue", venues, distinct=True)]
        edges = [
            Edges(Relation("paper", name, "author"), self.columns[name].owners(), codes)
            for name, codes in zip(_PEOPLE, person_codes, strict=True)
        ]
        edges.append(Edges(Relation("paper", "venue", "venue"), self.columns["venue"].owners(), venue_codes[0]))
        notes = list(options.notes)
        for name in _PAPER_KEYS:
            targets = pc.index_in(self.columns[name].texts(), value_set=keys)
            known = pc.is_valid(targets).to_numpy(zero_copy_only=False)
            rows = targets.drop_null().to_numpy(zero_copy_only=False).astype(np.int64)
            edges.append(Edges(Relation("paper", name, "paper"), self.columns[name].owners()[known], rows))
            if not known.all():
                missing = int(np.sum(~known))
                values = f"{missing:,} values of {name} were" if missing > 1 else f"1 value of {name} was"
                notes.append(f"{values} left out: no paper of the file has that key")
        if self.left_out:
            notes.append(f"left out: {listed(sorted(self.left_out), 8)}")
        kept = [edge for edge in edges if len(edge.sources)]
        options.check_names([edge.relation.name for edge in kept])
        taken = [edge for edge in kept if not options.take or edge.relation.name in options.take]
        used = {"paper", *(edge.relation.target for edge in taken)}
        return HIN.build(
            [each for each in nodes if each.node_type in used],
            taken,
            duplicates=options.duplicates,
            abbreviations=options.abbreviations,
            notes=notes,
        )

    def _attributes(self) -> pa.Table:
        years = pc.cast(self.years.texts(), pa.string())
        with suppress(pa.ArrowInvalid):
            years = pc.cast(years, pa.int64())
        return pa.table({"kind": pc.cast(self.kinds.texts(), pa.string()), "year": years})


@dataclass
class _Column:
    """Texts, and perhaps the rows of the papers that they belong to."""

    _texts: list[str | None] = field(default_factory=list)
    _owners: list[int] = field(default_factory=list)
    _batches: list[pa.Array] = field(default_factory=list)
    _owner_batches: list[Rows] = field(default_factory=list)

    def add(self, text: str | None, owner: int | None = None) -> None:
        self._texts.append(text)
        if owner is not None:
            self._owners.append(owner)
        if len(self._texts) >= _BATCH:
            self._flush()

    def texts(self) -> pa.Array:
        self._flush()
        return pa.concat_arrays([pa.array([], pa.large_string()), *self._batches])

    def owners(self) -> Rows:
        self._flush()
        return np.concatenate([np.empty(0, dtype=np.int64), *self._owner_batches])

    def _flush(self) -> None:
        if self._texts:
            self._batches.append(pa.array(self._texts, pa.large_string()))
            self._owner_batches.append(np.array(self._owners, dtype=np.int64))
            self._texts, self._owners = [], []


def _numbered(columns: Sequence[_Column]) -> tuple[pa.Array, list[Rows]]:
    """Return the distinct texts of some columns, and for each column the row of each of its texts."""
    texts = pa.concat_arrays([column.texts() for column in columns]).dictionary_encode()
    codes = texts.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    ends = np.cumsum([len(column.owners()) for column in columns])[:-1]
    return pc.cast(texts.dictionary, pa.string()), np.split(codes, ends)


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
