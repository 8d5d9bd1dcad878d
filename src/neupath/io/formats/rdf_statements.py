"""The statements of RDF files: N-Triples, N-Quads, Turtle, TriG, RDF/XML and JSON-LD, plain or gzipped.

The files are parsed one block at a time, and what is kept of a statement are numbers, not Python objects.
"""

import codecs
import io
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from itertools import islice, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.parsers import expat

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from neupath._runtime.files import LONGEST_LINE
from neupath._runtime.progress import Progress
from neupath.errors import SourceError, first_line
from neupath.io.text_files import file_errors, open_raw

if TYPE_CHECKING:
    import pyoxigraph as ox

Codes = NDArray[np.int32]
RDF_SUFFIXES = (".nt", ".nq", ".ttl", ".n3", ".trig", ".rdf", ".owl", ".jsonld")
_LINES = {".nt": 3, ".nq": 4}
"""Formats with one statement per line, and how many terms a line has."""


# ---- Recognising ---------------------------------------------------------------------------------
def is_rdf(path: Path) -> bool:
    """Whether a file is RDF by its name; a file named .xml also needs the root element of RDF/XML."""
    if path.name.startswith(".") or not path.is_file():
        return False
    suffix = _suffix(path)
    return suffix in RDF_SUFFIXES or (suffix == ".xml" and root_element(path) == "RDF")


def rdf_files(path: Path, ignore: Sequence[str] = ()) -> list[Path]:
    """Return the RDF files that a path holds: the file itself, or those of a folder without the ignored ones."""
    if not path.is_dir():
        return [path] if is_rdf(path) else []
    files = sorted(file for file in path.iterdir() if is_rdf(file))
    return [file for file in files if not any(fnmatch(file.name, pattern) for pattern in ignore)]


def _suffix(path: Path) -> str:
    return Path(path.name.lower().removesuffix(".gz")).suffix


def root_element(path: Path) -> str | None:
    """Return the root element of an XML file without its prefix, or None if it does not begin like XML."""
    with file_errors(path), open_raw(path) as stream:
        start = stream.read(1 << 16)
    markup = re.sub(rb"<!--.*?-->|<\?.*?\?>|<!DOCTYPE[^\[>]*(\[.*?\]\s*)?>", b"", start, flags=re.DOTALL)
    root = re.match(rb"[\xef\xbb\xbf\s]*<(?:[^\s<>/:]+:)?([^\s<>/:]+)", markup)
    return root[1].decode("utf-8", "replace") if root else None


# ---- Numbers for texts ---------------------------------------------------------------------------
class _Numbering:
    """Number texts in order of appearance, in Arrow memory: a dictionary of Python texts takes several times as much.

    Columns wait until they have more texts than are known; then all are hashed together. So each text is hashed about
    twice, however many columns there are.
    """

    _FEW = 1 << 21

    def __init__(self) -> None:
        self._known = pa.array([], pa.large_string())
        self._waiting: list[pa.Array] = []
        self._num_waiting = 0
        self._columns: list[Codes] = []

    def add(self, texts: pa.Array) -> int:
        """Add a column of texts; return the number by which `finish` gives its codes."""
        self._waiting.append(texts)
        self._num_waiting += len(texts)
        number = len(self._columns) + len(self._waiting) - 1
        if self._num_waiting > max(self._FEW, len(self._known)):
            self._merge()
        return number

    def finish(self) -> tuple[pa.Array, list[Codes]]:
        """Return the distinct texts, and the codes of each column."""
        self._merge()
        return self._known, self._columns

    def _merge(self) -> None:
        if self._num_waiting:
            encoded = pa.chunked_array([self._known, *self._waiting]).dictionary_encode()
            codes = _joined([chunk.indices.to_numpy(zero_copy_only=False) for chunk in encoded.chunks])
            starts = np.cumsum([len(self._known), *map(len, self._waiting)])[:-1]
            self._columns += np.split(codes, starts)[1:]  # Arrow leaves empty chunks out
            self._known = encoded.chunk(encoded.num_chunks - 1).dictionary
        else:
            self._columns += [np.empty(0, dtype=np.int32)] * len(self._waiting)
        self._waiting, self._num_waiting = [], 0


def _counter() -> defaultdict[str, int]:
    """Return a dictionary that numbers its keys."""
    numbers: defaultdict[str, int] = defaultdict()
    numbers.default_factory = numbers.__len__
    return numbers


# ---- The statements of some files ----------------------------------------------------------------
@dataclass(frozen=True)
class Links:
    """Statements about two nodes; shape (number of statements,) each."""

    subjects: Codes
    predicates: Codes
    objects: Codes

    @property
    def columns(self) -> tuple[Codes, Codes, Codes]:
        return self.subjects, self.predicates, self.objects

    def append(self, statements: Sequence[tuple[int, int, int]]) -> "Links":
        """Return these and more statements (subject, predicate, object)."""
        new = np.array(statements, dtype=np.int32).reshape(-1, 3).T
        return Links(*(np.concatenate(pair) for pair in zip(self.columns, new, strict=True)))

    def where(self, chosen: NDArray[np.bool_]) -> "Links":
        return Links(self.subjects[chosen], self.predicates[chosen], self.objects[chosen])


@dataclass(frozen=True)
class Values:
    """Statements about a node and a literal; a tag is its language, as `@en`, or the IRI of its datatype."""

    subjects: Codes
    predicates: Codes
    texts: pa.Array
    tags: Codes

    def append(self, statements: Sequence[tuple[int, int, int]], other: "Values") -> "Values":
        """Return these and more statements (subject, predicate, ~position of the literal in `other`)."""
        subjects, predicates, positions = np.array(statements, dtype=np.int64).reshape(-1, 3).T
        return Values(
            _joined([self.subjects, subjects.astype(np.int32)]),
            _joined([self.predicates, predicates.astype(np.int32)]),
            pa.concat_arrays([self.texts, other.texts.take(pa.array(~positions))]),
            _joined([self.tags, other.tags[~positions]]),
        )

    def where(self, chosen: NDArray[np.bool_]) -> "Values":
        texts = self.texts.filter(pa.array(chosen))
        return Values(self.subjects[chosen], self.predicates[chosen], texts, self.tags[chosen])


@dataclass(frozen=True)
class Statements:
    """All statements: nodes, predicates and tags are numbers, whose texts are here."""

    nodes: pa.Array
    predicates: list[str]
    tags: list[str]
    links: Links
    values: Values
    prefixes: Mapping[str, str]
    notes: Sequence[str]


class _Collector:
    """Collects statements file by file."""

    def __init__(self, type_property: str | None) -> None:
        self.type_property = type_property
        self.predicates, self.tags = _counter(), _counter()
        self.prefixes: dict[str, str] = {}
        self.quoted: set[str] = set()
        """Nodes that stand for a statement about a statement."""
        self.num_quoted = self.num_in_graphs = 0
        self._nodes = _Numbering()
        self._links: list[tuple[int, Codes]] = []
        self._values: list[tuple[int, Codes, pa.Array, Codes]] = []

    def add_links(self, ends: pa.Array, predicates: Codes) -> None:
        """Add statements; the ends are subject, object, subject, object, …"""
        self._links.append((self._nodes.add(ends), predicates))

    def add_values(self, subjects: pa.Array, predicates: Codes, texts: pa.Array, tags: Codes) -> None:
        """Add statements about literals."""
        self._values.append((self._nodes.add(subjects), predicates, texts, tags))

    def add_quads(self, quads: "Iterable[ox.Quad]", blank: "_BlankNodes") -> None:
        """Add statements as the parser yields them."""
        import pyoxigraph as ox

        ends: list[str] = []
        predicates: list[int] = []
        subjects: list[str] = []
        rest: tuple[list[int], list[str], list[int]] = ([], [], [])
        for subject, predicate, obj, graph in quads:
            start = subject.value if type(subject) is ox.NamedNode else blank(subject)
            self.num_in_graphs += type(graph) is not ox.DefaultGraph
            if type(obj) is ox.Literal and predicate.value != self.type_property:
                subjects.append(start)
                rest[0].append(self.predicates[predicate.value])
                rest[1].append(obj.value)
                rest[2].append(self.tags[f"@{obj.language.lower()}" if obj.language else obj.datatype.value])
            elif type(obj) is ox.Triple:
                self.num_quoted += 1
                self.quoted.add(start)
            else:
                ends += (start, blank(obj) if type(obj) is ox.BlankNode else obj.value)
                predicates.append(self.predicates[predicate.value])
        if ends:
            self.add_links(pa.array(ends, pa.large_string()), np.array(predicates, dtype=np.int32))
        if subjects:
            codes, tags = (np.array(column, dtype=np.int32) for column in (rest[0], rest[2]))
            self.add_values(pa.array(subjects, pa.large_string()), codes, pa.array(rest[1], pa.large_string()), tags)

    def finish(self) -> Statements:
        nodes, columns = self._nodes.finish()
        ends = _joined([columns[number] for number, _ in self._links])
        links = Links(ends[::2], _joined([predicates for _, predicates in self._links]), ends[1::2])
        values = Values(
            _joined([columns[number] for number, *_ in self._values]),
            _joined([predicates for _, predicates, *_ in self._values]),
            pa.concat_arrays([pa.array([], pa.large_string()), *(texts for _, _, texts, _ in self._values)]),
            _joined([tags for *_, tags in self._values]),
        )
        statements = Statements(
            nodes, list(self.predicates), list(self.tags), links, values, self.prefixes, self._notes()
        )
        return _without_subjects(statements, self.quoted) if self.quoted else statements

    def _notes(self) -> list[str]:
        notes = []
        if self.num_quoted:
            notes.append(f"statements about statements (RDF-star) were left out: {self.num_quoted:,}")
        if self.num_in_graphs:
            notes.append(f"named graphs were read as one graph ({self.num_in_graphs:,} statements are in some)")
        return notes


def _joined(arrays: Sequence[Codes]) -> Codes:
    return np.concatenate([np.empty(0, dtype=np.int32), *arrays])


def _without_subjects(statements: Statements, ids: Iterable[str]) -> Statements:
    """Leave out all statements about some nodes."""
    left_out = pc.is_in(statements.nodes, pa.array(ids, pa.large_string())).to_numpy(zero_copy_only=False)
    links, values = statements.links, statements.values
    kept_links, kept_values = links.where(~left_out[links.subjects]), values.where(~left_out[values.subjects])
    return replace(statements, links=kept_links, values=kept_values)


class _BlankNodes:
    """Ids of the blank nodes of a file; those that the parser made up, at random, are numbered instead."""

    _MADE_UP = re.compile("[0-9a-f]{16,32}")

    def __init__(self, prefix: str, has_made_up: bool) -> None:
        self._prefix = f"_:{prefix}"
        self._numbers = _counter() if has_made_up else None

    def __call__(self, node: Any) -> str:
        label = node.value
        if self._numbers is not None and self._MADE_UP.fullmatch(label):
            return f"{self._prefix}[{self._numbers[label] + 1}]"  # no label in a file has brackets
        return f"{self._prefix}{label}"


# ---- Reading files -------------------------------------------------------------------------------
_BLOCK, _PIECE, _QUADS = 1 << 23, 1 << 16, 1 << 16
"""How much is read at a time: bytes of a file with one statement per line, and at once; statements of other files."""


def read_statements(files: Sequence[Path], type_property: str | None, progress: Progress) -> Statements:
    """Read all statements of some files; a literal of the type property counts as a node, the type."""
    statements = _Collector(type_property)
    done, total = 0, max(1, sum(file.stat().st_size for file in files))
    for file in files:
        blank = _BlankNodes(f"{file.name}:" if len(files) > 1 else "", _suffix(file) not in _LINES)
        with file_errors(file), open_raw(file) as stream:
            if file.name.lower().endswith(".gz") and isinstance(stream.raw, io.FileIO):  # type: ignore[attr-defined]
                raise SourceError(f"{file} is named .gz but is not gzipped; rename it, or compress it with gzip")
            if stream.peek(3)[:3] == codecs.BOM_UTF8:  # type: ignore[attr-defined]
                stream.read(3)
            if _suffix(file) in _LINES:
                _read_lines(file, stream, statements, blank)
            else:
                _read_document(file, stream, statements, blank)
        done += file.stat().st_size
        progress("reading", done, total)
    return statements.finish()


def _read_document(file: Path, stream: Any, statements: _Collector, blank: _BlankNodes) -> None:
    """Read Turtle, TriG, RDF/XML or JSON-LD."""
    import pyoxigraph as ox

    start = stream.peek(1 << 12)
    xml = _suffix(file) in (".rdf", ".owl", ".xml") and start.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<")
    formats = {".trig": ox.RdfFormat.TRIG, ".jsonld": ox.RdfFormat.JSON_LD}
    kind = ox.RdfFormat.RDF_XML if xml else formats.get(_suffix(file), ox.RdfFormat.TURTLE)
    watched = _Watched(stream, _XmlCheck(file) if xml else _NestingCheck(file))
    # relative IRIs must not depend on the folder
    base = f"file:///{re.sub('[^A-Za-z0-9._-]', '_', file.name)}"
    with _syntax_errors(file):
        quads = ox.parse(io.BufferedReader(watched, 1 << 16), format=kind, base_iri=base)
        while batch := list(islice(quads, _QUADS)):
            statements.add_quads(batch, blank)
        statements.prefixes |= {namespace: prefix for prefix, namespace in quads.prefixes.items() if prefix}


@contextmanager
def _syntax_errors(file: Path, line_of: Sequence[int] | None = None) -> Iterator[None]:
    """Turn an error of the parser into a sentence; `line_of` gives the lines of the file that it was given."""
    try:
        yield
    except SyntaxError as error:
        reason = re.sub(r"^Parser error (at|between) .*?: ", "", error.msg or "it is not RDF")
        line = error.lineno if line_of is None or not error.lineno else line_of[min(error.lineno, len(line_of)) - 1]
        place = f"{file}, line {line}" if line else f"{file}"
        raise SourceError(f"{place}: {' '.join(reason.split())[:300]}") from error
    except (ValueError, UnicodeDecodeError) as error:
        raise SourceError(f"{file} cannot be read as RDF: {first_line(error)}") from error


class _Watched(io.RawIOBase):
    """A stream whose blocks are checked before the parser gets them."""

    def __init__(self, stream: Any, check: "_XmlCheck | _NestingCheck") -> None:
        self._stream, self._check = stream, check

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        block = self._stream.read(len(buffer))
        self._check(block)
        buffer[: len(block)] = block
        return len(block)


class _NestingCheck:
    """Raise if a text may nest quoted statements so deeply that the parser would overflow its stack."""

    _MOST = 1000

    def __init__(self, file: Path) -> None:
        self._file, self._count, self._end = file, 0, b""

    def __call__(self, block: bytes) -> None:
        text = self._end + block
        self._count += text.count(b"<<(")
        self._end = text[-2:]
        if self._count > self._MOST:
            raise SourceError(
                f"{self._file} has more than {self._MOST:,} quoted statements, <<( … )>>, which may be nested and are "
                f"not read; leave them out"
            )


class _XmlCheck:
    """Raise if an XML file is not RDF/XML, nests too deeply, or declares entities that could fill the memory."""

    _DEEPEST, _LONGEST = 500, 256

    def __init__(self, file: Path) -> None:
        self._file, self._depth, self._is_over = file, 0, False
        self._parser = expat.ParserCreate()
        self._parser.StartElementHandler = self._open
        self._parser.EndElementHandler = self._close
        self._parser.EntityDeclHandler = self._declare

    def __call__(self, block: bytes) -> None:
        if self._is_over:
            return
        self._is_over = not block
        try:
            self._parser.Parse(block, not block)
        except expat.ExpatError as error:
            reason = expat.ErrorString(error.code)
            raise SourceError(f"{self._file}, line {error.lineno}: the XML is not well-formed: {reason}") from error

    def _open(self, name: str, _attributes: Mapping[str, str]) -> None:
        if self._depth == 0 and name.rpartition(":")[2] != "RDF":
            raise SourceError(
                f"{self._file} is XML, but not RDF/XML: its root element is <{name}>, not <rdf:RDF>; convert it, for "
                f"example with the ROBOT or Jena tools, to Turtle or N-Triples"
            )
        self._depth += 1
        if self._depth > self._DEEPEST:
            raise SourceError(f"{self._file}: elements are nested more than {self._DEEPEST} deep")

    def _close(self, _name: str) -> None:
        self._depth -= 1

    def _declare(self, name: str, _parameter: bool, value: str | None, *_identifiers: object) -> None:
        if value is None or "&" in value or "%" in value or len(value) > self._LONGEST:
            raise SourceError(
                f"{self._file} declares the entity {name!r}, which is external, contains others, or is longer than "
                f"{self._LONGEST} characters; such entities are not read"
            )


# ---- One statement per line ----------------------------------------------------------------------
_PLAIN = r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})*"
_IRI = rf"<https?://[A-Za-z0-9.-]+(?::[0-9]+)?(?:/{_PLAIN})?(?:\?{_PLAIN})?(?:#{_PLAIN})?>"
"""IRIs that need no parser: no escapes, and only characters that are allowed where they are."""


_STRING = "http://www.w3.org/2001/XMLSchema#string"
_LITERAL = r'"[^"\\\r\n]*"(?:@[A-Za-z]{2,3}(?:-[A-Za-z]{2})?|\^\^<http://www\.w3\.org/2001/XMLSchema#[A-Za-z]+>)?'
"""Literals that need no parser: no escapes, a usual language or datatype."""


def _read_lines(file: Path, stream: Any, statements: _Collector, blank: _BlankNodes) -> None:
    """Read N-Triples or N-Quads.

    Most lines of large files are plain IRIs and literals. Those are cut by Arrow and numpy, several times as fast as
    the parser yields them one by one; all others are left to the parser.
    """
    import pyoxigraph as ox

    width = _LINES[_suffix(file)]
    kind = ox.RdfFormat.N_TRIPLES if width == 3 else ox.RdfFormat.N_QUADS
    patterns = [rf"^{_IRI} {_IRI} {end}{rf' {_IRI}' * (width - 3)} ?\.\r?\n$" for end in (_IRI, _LITERAL)]
    first_line_number = 1
    for block in _whole_lines(file, stream):
        data = np.frombuffer(block, dtype=np.uint8)
        lines = _cut(block, np.concatenate([[0], np.flatnonzero(data == ord("\n")) + 1]))
        others = np.arange(len(lines))
        for pattern, add in zip(patterns, (_add_plain, _add_literals), strict=True):
            left = lines.take(pa.array(others)) if len(others) < len(lines) else lines
            plain = pc.match_substring_regex(left, pattern)
            if add(left.filter(plain), width, statements):
                others = others[~plain.to_numpy(zero_copy_only=False)]
        if len(others):
            texts = lines.take(pa.array(others)).to_pylist()
            for text in texts:
                _NestingCheck(file)(text)
            with _syntax_errors(file, (others + first_line_number).tolist()):
                statements.add_quads(ox.parse(b"".join(texts), format=kind), blank)
        first_line_number += len(lines)


def _whole_lines(file: Path, stream: Any) -> Iterator[bytes]:
    """Yield blocks of whole lines; a missing line end at the end of the file is added."""
    rest = b""
    # in pieces, because Arrow does not free the whole block if the gzip file is damaged
    while block := b"".join(takewhile(bool, (stream.read(_PIECE) for _ in range(_BLOCK // _PIECE)))):
        end = block.rfind(b"\n") + 1
        if end:
            yield rest + block[:end]
            rest = b""
        rest += block[end:]
        if len(rest) > LONGEST_LINE:
            raise SourceError(f"{file} has a line of more than {LONGEST_LINE:,} characters, the most that is read")
    if rest:
        yield rest + b"\n"


def _cut(block: bytes | pa.Buffer, offsets: NDArray[np.int64]) -> pa.Array:
    """Return the parts of a text between offsets, without a copy."""
    buffers = [None, pa.py_buffer(offsets.astype(np.int64)), pa.py_buffer(block)]
    return pa.Array.from_buffers(pa.large_binary(), len(offsets) - 1, buffers)


def _add_plain(lines: pa.Array, width: int, statements: _Collector) -> bool:
    """Add lines of plain IRIs, in which < and > stand around each and nowhere else."""
    block, starts = lines.buffers()[2], _offsets(lines)
    marks = _positions(block, starts, "<>")
    marks[::2] += 1
    parts = _cut(block, marks) if len(marks) else lines
    first = np.arange(0, len(marks), 2 * width)
    ends = parts.take(pa.array(np.stack([first, first + 4], axis=1).ravel())).cast(pa.large_string())
    statements.add_links(ends, _numbers(parts.take(pa.array(first + 2)), statements.predicates))
    statements.num_in_graphs += len(lines) if width == 4 else 0
    return True


def _add_literals(lines: pa.Array, width: int, statements: _Collector) -> bool:
    """Add lines of two plain IRIs and a literal, or return False if they are not UTF-8, or may be types."""
    if statements.type_property is not None or not len(lines):
        return False
    block, starts = lines.buffers()[2], _offsets(lines)
    quotes = _positions(block, starts, '"').reshape(-1, 2)
    marks = _positions(block, starts, "<>")
    row = np.searchsorted(starts, marks, side="right") - 1
    iris = marks[marks < quotes[row, 0]].reshape(-1, 4)
    # subject, gap, predicate, gap, text, quote, tag with the end of the line, gap
    columns = (
        starts[:-1] + 1,
        iris[:, 1],
        iris[:, 2] + 1,
        iris[:, 3],
        quotes[:, 0] + 1,
        quotes[:, 1],
        quotes[:, 1] + 1,
    )
    parts = _cut(block, np.stack([*columns, starts[1:]], axis=1).ravel())
    first = 8 * np.arange(len(lines))
    subjects, texts = (parts.take(pa.array(first + at)) for at in (0, 4))
    try:
        texts = texts.cast(pa.large_string())
    except pa.ArrowInvalid:  # the parser names the line
        return False
    tags = _numbers(parts.take(pa.array(first + 6)), statements.tags, _tag)
    predicates = _numbers(parts.take(pa.array(first + 2)), statements.predicates)
    statements.add_values(subjects.cast(pa.large_string()), predicates, texts, tags)
    statements.num_in_graphs += len(lines) if width == 4 else 0
    return True


def _tag(end: str) -> str:
    """Return the language or datatype of a literal from what follows it in its line."""
    found = re.match(r"@([A-Za-z-]+)|\^\^<([^>]*)>", end)
    if found is None:
        return _STRING
    return f"@{found[1].lower()}" if found[1] else str(found[2])


def _offsets(lines: pa.Array) -> NDArray[np.int64]:
    offsets = np.frombuffer(lines.buffers()[1], dtype=np.int64)
    return offsets[lines.offset : lines.offset + len(lines) + 1]


def _positions(block: pa.Buffer, starts: NDArray[np.int64], characters: str) -> NDArray[np.int64]:
    """Return where some characters are in the lines of a block."""
    data = np.frombuffer(block, dtype=np.uint8)[starts[0] : starts[-1]]
    found = data == ord(characters[0])
    for character in characters[1:]:
        found |= data == ord(character)
    positions: NDArray[np.int64] = np.flatnonzero(found) + starts[0]
    return positions


def _numbers(texts: pa.Array, numbers: dict[str, int], meaning: Callable[[str], str] = str) -> Codes:
    """Number texts of which few are distinct, each by its meaning."""
    encoded = texts.cast(pa.large_string()).dictionary_encode()
    codes = np.array([numbers[meaning(text)] for text in encoded.dictionary.to_pylist()], dtype=np.int32)
    of_texts: Codes = codes[encoded.indices.to_numpy(zero_copy_only=False)]
    return of_texts
