"""The statements of RDF files: N-Triples, N-Quads, Turtle, TriG, RDF/XML and JSON-LD, plain or gzipped.

The files are parsed one block at a time, and what is kept of a statement are numbers, not Python objects.
"""

import codecs
import io
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any
from xml.parsers import expat

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from neupath._runtime.files import LONGEST_LINE
from neupath._runtime.progress import Progress
from neupath.errors import SourceError, first_line
from neupath.io.text_files import file_errors, open_raw

Codes = NDArray[np.int32]
XSD = "http://www.w3.org/2001/XMLSchema#"
RDF_SUFFIXES = (".nt", ".nq", ".ttl", ".n3", ".trig", ".rdf", ".owl", ".jsonld")


# ---- Recognising ---------------------------------------------------------------------------------
def is_rdf(path: Path) -> bool:
    """Whether a file is RDF by its name; a file named .xml also needs the root element of RDF/XML."""
    if path.name.startswith(".") or not path.is_file():
        return False
    return _suffix(path) in RDF_SUFFIXES or (_suffix(path) == ".xml" and root_element(path) == "RDF")


def _suffix(path: Path) -> str:
    return Path(path.name.lower().removesuffix(".gz")).suffix


def root_element(path: Path) -> str | None:
    """Return the root element of an XML file without its prefix, or None if it does not begin like XML."""
    with file_errors(path), open_raw(path) as stream:
        start = stream.read(1 << 16)
    markup = re.sub(rb"<!--.*?-->|<\?.*?\?>|<!DOCTYPE[^\[>]*(\[.*?\]\s*)?>", b"", start, flags=re.DOTALL)
    root = re.match(rb"[\xef\xbb\xbf\s]*<(?:[^\s<>/:]+:)?([^\s<>/:]+)", markup)
    return root[1].decode("utf-8", "replace") if root else None


# ---- Statements as numbers -----------------------------------------------------------------------
@dataclass(frozen=True)
class Triples:
    """Subject, predicate and object of statements; shape (number of statements,) each."""

    subjects: Codes
    predicates: Codes
    objects: Codes
    """The number of a node, or ~n for the literal n."""

    def where(self, chosen: NDArray[np.bool_]) -> "Triples":
        return Triples(self.subjects[chosen], self.predicates[chosen], self.objects[chosen])

    def append(self, triples: Sequence[tuple[int, int, int]]) -> "Triples":
        new = np.array(triples, dtype=np.int32).reshape(-1, 3).T
        return Triples(*map(_joined, zip((self.subjects, self.predicates, self.objects), new, strict=True)))


@dataclass(frozen=True)
class Statements:
    """All statements of some files, and the texts of their nodes, predicates and literals, by number."""

    triples: Triples
    nodes: pa.Array
    predicates: list[str]
    literals: pa.Array
    tags: list[str]
    """Languages, as `@en`, and the IRIs of datatypes."""
    tag_of_literal: Codes
    prefixes: Mapping[str, str]
    notes: Sequence[str]

    def predicate(self, iri: str) -> int:
        """Return the number of a predicate, or -1 if no statement has it."""
        return self.predicates.index(iri) if iri in self.predicates else -1

    def having(self, predicate: str) -> Triples:
        """Return the statements with a predicate."""
        return self.triples.where(self.triples.predicates == self.predicate(predicate))


class _Numbering:
    """Numbers texts in order of appearance, in Arrow memory: a dictionary of Python texts takes several times as much.

    Batches wait until they have more distinct texts than are known, so that each text is hashed a few times only.
    """

    _FEW = 1 << 20

    def __init__(self) -> None:
        self._batches = [pa.array([], pa.large_string()).dictionary_encode()]
        self._num_known = self._num_waiting = 0
        self.size = 0
        """How many texts were added, with repetitions."""

    def add(self, batch: pa.DictionaryArray) -> None:
        self._batches.append(batch)
        self.size += len(batch)
        self._num_waiting += len(batch.dictionary)
        if self._num_waiting > max(self._FEW, self._num_known):
            self._merge()

    def finish(self) -> tuple[pa.Array, Codes]:
        """Return the distinct texts, and the number of each text that was added."""
        self._merge()
        return self._batches[0].dictionary, self._batches[0].indices.to_numpy(zero_copy_only=False)

    def _merge(self) -> None:
        self._batches = [pa.chunked_array(self._batches).unify_dictionaries().combine_chunks()]
        self._num_known, self._num_waiting = len(self._batches[0].dictionary), 0


class _Collector:
    """Collects statements, which come in batches as lines of canonical N-Quads."""

    def __init__(self, type_property: str | None) -> None:
        self.type_property = type_property
        self.prefixes: dict[str, str] = {}
        self._predicates, self._tags = _counter(), _counter()
        self._nodes = _Numbering()
        self._links: list[tuple[int, Codes]] = []
        self._values: list[tuple[int, Codes]] = []
        """For each batch, where its nodes begin in `_nodes`, and the predicates."""
        self._literals = [pa.array([], pa.large_string())]
        self._tags_of_literals: list[Codes] = []
        self._num_quoted = self._num_in_graphs = 0
        self._quoted: set[str] = set()
        """Nodes that stand for a statement about a statement."""

    def add(self, lines: pa.Array, blank_id: Callable[[str], str]) -> None:
        """Add lines of N-Quads; `blank_id` gives a blank node its id."""
        subjects, predicates, objects = _split(lines, " ", 3)
        codes = _numbers(predicates, self._predicates)
        is_value, is_quoted = pc.starts_with(objects, '"'), pc.starts_with(objects, "<<(")
        quoted = subjects.filter(is_quoted).to_pylist()
        self._num_quoted += len(quoted)
        self._quoted |= {blank_id(node) if node.startswith("_:") else node[1:-1] for node in quoted}
        is_link = pc.invert(pc.or_(is_value, is_quoted))
        ends, graphs = _split(objects.filter(is_link), " ", 2)
        self._num_in_graphs += _count(pc.invert(pc.starts_with(graphs, ".")))
        self._add_links(subjects.filter(is_link), codes[_as_mask(is_link)], ends, blank_id)
        codes, subjects = codes[_as_mask(is_value)], subjects.filter(is_value)
        texts, suffixes = _split(objects.filter(is_value), '"', 2, reverse=True)
        self._num_in_graphs += _count(pc.or_(*(pc.match_substring(suffixes, start) for start in (" <", " _:"))))
        texts = pc.utf8_slice_codeunits(texts, 1)
        texts = change_some(texts, pc.match_substring(texts, "\\"), _unescape)
        is_type = codes == self._predicates.get(self.type_property or "", -1)
        if is_type.any():
            self._add_links(subjects.filter(is_type), codes[is_type], texts.filter(is_type), blank_id)
            subjects, texts, suffixes = (each.filter(~is_type) for each in (subjects, texts, suffixes))
        self._values.append((self._nodes.size, codes[~is_type]))
        self._nodes.add(_encode_nodes(subjects, blank_id))
        self._literals.append(texts)
        self._tags_of_literals.append(_numbers(suffixes, self._tags, _tag))

    def _add_links(
        self, subjects: pa.Array, predicates: Codes, objects: pa.Array, blank_id: Callable[[str], str]
    ) -> None:
        order = np.arange(2 * len(subjects)).reshape(2, -1).T.ravel()  # subject, object, subject, object, …
        ends = pa.concat_arrays([subjects, objects]).take(pa.array(order))
        self._links.append((self._nodes.size, predicates))
        self._nodes.add(_encode_nodes(ends, blank_id))

    def finish(self) -> Statements:
        """Return all statements, those between nodes before those about literals."""
        nodes, codes = self._nodes.finish()
        ends = _joined(codes[start : start + 2 * len(predicates)] for start, predicates in self._links)
        subjects = _joined(codes[start : start + len(predicates)] for start, predicates in self._values)
        triples = Triples(
            _joined([ends[::2], subjects]),
            _joined(predicates for _, predicates in [*self._links, *self._values]),
            _joined([ends[1::2], ~np.arange(len(subjects), dtype=np.int32)]),
        )
        notes = []
        if self._quoted:
            quoted = _as_mask(pc.is_in(nodes, pa.array(self._quoted, pa.large_string())))
            triples = triples.where(~quoted[triples.subjects])
            notes.append(f"statements about statements (RDF-star) were left out: {self._num_quoted:,}")
        if self._num_in_graphs:
            notes.append(f"named graphs were read as one graph ({self._num_in_graphs:,} statements are in some)")
        literals, tags = pa.concat_arrays(self._literals), _joined(self._tags_of_literals)
        return Statements(
            triples, nodes, list(self._predicates), literals, list(self._tags), tags, self.prefixes, notes
        )


def _split(texts: pa.Array, mark: str, count: int, *, reverse: bool = False) -> list[pa.Array]:
    """Split each text into `count` parts; return the first parts, the second, …"""
    parts = pc.list_flatten(pc.split_pattern(texts, mark, max_splits=count - 1, reverse=reverse))
    return [parts.take(pa.array(np.arange(at, len(parts), count))) for at in range(count)]


def _encode_nodes(terms: pa.Array, blank_id: Callable[[str], str]) -> pa.DictionaryArray:
    """Encode nodes by their ids: IRIs without < and >, and what `blank_id` makes of blank nodes."""
    encoded = terms.dictionary_encode()
    ids = pc.ascii_trim(encoded.dictionary, "<>")
    ids = change_some(ids, pc.starts_with(encoded.dictionary, "_:"), lambda nodes: map(blank_id, nodes))
    return pa.DictionaryArray.from_arrays(encoded.indices, ids)


def change_some(texts: pa.Array, chosen: pa.Array, change: Callable[[list[str]], Iterable[str]]) -> pa.Array:
    """Return texts with the chosen ones changed."""
    if not pc.any(chosen).as_py():
        return texts
    return pc.replace_with_mask(texts, chosen, pa.array(list(change(texts.filter(chosen).to_pylist())), texts.type))


def _unescape(texts: list[str]) -> list[str]:
    """Return literals without escapes; those of canonical N-Quads are those of JSON."""
    return [json.loads(f'"{text}"', strict=False) for text in texts]


def _tag(suffix: str) -> str:
    """Return the language or datatype of a literal from what follows it in its line."""
    found = re.match(r"(@[^ ]+)|\^\^<([^>]*)>", suffix)
    if found is None:
        return f"{XSD}string"
    return found[1].partition("--")[0] if found[1] else str(found[2])  # -- begins the direction of a text


def _numbers(texts: pa.Array, numbers: dict[str, int], meaning: Callable[[str], str] = lambda iri: iri[1:-1]) -> Codes:
    """Number texts of which few are distinct, each by its meaning."""
    encoded = texts.dictionary_encode()
    codes = np.array([numbers[meaning(text)] for text in encoded.dictionary.to_pylist()], dtype=np.int32)
    of_texts: Codes = codes[encoded.indices.to_numpy(zero_copy_only=False)]
    return of_texts


def _counter() -> defaultdict[str, int]:
    """Return a dictionary that numbers its keys."""
    numbers: defaultdict[str, int] = defaultdict()
    numbers.default_factory = numbers.__len__
    return numbers


def _joined(arrays: Iterable[Codes]) -> Codes:
    return np.concatenate([np.empty(0, dtype=np.int32), *arrays])


def _count(values: pa.Array) -> int:
    return pc.sum(values).as_py() or 0


def _as_mask(values: pa.Array) -> NDArray[np.bool_]:
    mask: NDArray[np.bool_] = values.to_numpy(zero_copy_only=False)
    return mask


# ---- Reading files -------------------------------------------------------------------------------
_BLOCK, _BATCH = 1 << 22, 1 << 16
"""How many bytes of lines, and how many statements of other formats, are read at once."""
_LINES = (".nt", ".nq")
"""Formats with one statement per line."""
_MADE_UP = re.compile("[0-9a-f]{16,32}")
"""The labels that the parser makes up, at random."""


def read_statements(files: Sequence[Path], type_property: str | None, progress: Progress) -> Statements:
    """Read all statements of some files; a literal of the type property counts as a node, the type."""
    statements = _Collector(type_property)
    done, total = 0, max(1, sum(file.stat().st_size for file in files))
    for file in files:
        with file_errors(file), open_raw(file) as stream:
            if file.name.lower().endswith(".gz") and isinstance(stream.raw, io.FileIO):  # type: ignore[attr-defined]
                raise SourceError(f"{file} is named .gz but is not gzipped; rename it, or compress it with gzip")
            if stream.peek(3)[:3] == codecs.BOM_UTF8:  # type: ignore[attr-defined]
                stream.read(3)
            _read_file(file, stream, statements, f"{file.name}:" if len(files) > 1 else "")
        done += file.stat().st_size
        progress("reading", done, total)
    return statements.finish()


def _read_file(file: Path, stream: Any, statements: _Collector, prefix: str) -> None:
    """Parse a file, whose blank nodes get a prefix."""
    import pyoxigraph as ox

    suffix = _suffix(file)
    kinds = {".nt": "N_TRIPLES", ".nq": "N_QUADS", ".trig": "TRIG", ".jsonld": "JSON_LD"}
    is_xml = suffix in (".rdf", ".owl", ".xml") and stream.peek(1 << 12).lstrip(b" \t\r\n").startswith(b"<")
    kind = getattr(ox.RdfFormat, "RDF_XML" if is_xml else kinds.get(suffix, "TURTLE"))
    numbers = _counter()

    def blank_id(label: str) -> str:
        if suffix not in _LINES and _MADE_UP.fullmatch(label[2:]):
            return f"_:{prefix}[{numbers[label] + 1}]"  # no label in a file has brackets
        return f"_:{prefix}{label[2:]}"

    if suffix in _LINES:
        batches = _parse_lines(file, stream, kind)
    else:
        base = f"file:///{re.sub('[^A-Za-z0-9._-]', '_', file.name)}"  # not the folder, which may change
        checked = io.BufferedReader(
            _CheckedStream(stream, _XmlCheck(file) if is_xml else _nesting_check(file)), 1 << 16
        )
        batches = _parse(file, checked, kind, base=base, prefixes=statements.prefixes)
    for lines in batches:
        statements.add(lines, blank_id)


def _parse(file: Path, source: Any, kind: Any, *, before: int = 0, **options: Any) -> Iterator[pa.Array]:
    """Yield the statements of a text as lines of canonical N-Quads; `before` is the number of lines above the text.

    Arrow splits such lines three times as fast as Python takes the parser's statements one by one.
    """
    import pyoxigraph as ox

    prefixes = options.pop("prefixes", {})
    try:
        quads = ox.parse(source, format=kind, base_iri=options.get("base"))
        while block := ox.serialize(islice(quads, _BATCH), format=ox.RdfFormat.N_QUADS):
            yield _as_lines(block).cast(pa.large_string())
        prefixes |= {namespace: prefix for prefix, namespace in quads.prefixes.items() if prefix}
    except SyntaxError as error:
        reason = re.sub(r"^Parser error (at|between) .*?: ", "", error.msg or "it is not RDF")
        place = f"{file}, line {before + error.lineno}" if error.lineno else f"{file}"
        raise SourceError(f"{place}: {' '.join(reason.split())[:300]}") from error
    except (ValueError, MemoryError) as error:
        if not str(error):  # there is no memory left; the parser, too, calls a token of 16 MiB a MemoryError
            raise
        raise SourceError(f"{file} cannot be read as RDF: {first_line(error)}") from error


_PATH = r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})*"
_IRI = rf"<https?://[A-Za-z0-9.-]+(?::[0-9]+)?(?:/{_PATH})?(?:\?{_PATH})?(?:#{_PATH})?>"
_LITERAL = r'"[^"\\\r\n]*"(?:@[a-z]{2,3}|\^\^<http://www\.w3\.org/2001/XMLSchema#[A-Za-z]+>)?'
_PLAIN = rf"^{_IRI} {_IRI} (?:{_IRI}|{_LITERAL})"
"""How lines begin that are canonical as they are: IRIs of allowed characters, and no escapes."""


def _parse_lines(file: Path, stream: Any, kind: Any) -> Iterator[pa.Array]:
    """Yield N-Triples or N-Quads as canonical lines; most lines of large files need no parser, which takes longer."""
    before, pattern = 0, _PLAIN + (rf"(?: {_IRI})?" if _suffix(file) == ".nq" else "") + r" \.\r?\n?$"
    while block := stream.read(_BLOCK):
        block += stream.readline(LONGEST_LINE)
        if len(block) >= _BLOCK + LONGEST_LINE:
            raise SourceError(f"{file} has a line of more than {LONGEST_LINE:,} characters, the most that is read")
        lines = _as_lines(block)
        is_plain = pc.match_substring_regex(lines, pattern)
        try:
            yield lines.filter(is_plain).cast(pa.large_string())
        except pa.ArrowInvalid:  # the parser names the byte that is not UTF-8
            is_plain = pc.equal(lines, b"")
        if not pc.all(is_plain).as_py():
            # a blank line for each plain one, so that the parser counts all
            others = pc.if_else(is_plain, b"\n", lines)
            _check_nesting(file, pc.max(pc.count_substring(others, "<<(")).as_py())
            yield from _parse(file, others.buffers()[2].to_pybytes(), kind, before=before)
        before += len(lines)


def _as_lines(block: bytes) -> pa.Array:
    """Return the lines of a text, without a copy."""
    ends = np.flatnonzero(np.frombuffer(block, dtype=np.uint8) == ord("\n")) + 1
    if not block.endswith(b"\n"):
        ends = np.append(ends, len(block))
    offsets = pa.py_buffer(np.append(0, ends).astype(np.int64))
    return pa.Array.from_buffers(pa.large_binary(), len(ends), [None, offsets, pa.py_buffer(block)])


# ---- What would crash or mislead the parser ------------------------------------------------------
_MOST_QUOTED, _DEEPEST, _LONGEST_ENTITY = 1000, 500, 256


class _CheckedStream(io.RawIOBase):
    """A stream whose blocks are checked before the parser gets them."""

    def __init__(self, stream: Any, check: Callable[[bytes], None]) -> None:
        self._stream, self._check = stream, check

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        block = self._stream.read(len(buffer))
        self._check(block)
        buffer[: len(block)] = block
        return len(block)


def _check_nesting(file: Path, num_quoted: int) -> None:
    """Raise if so many quoted statements may be nested that the parser's stack overflows."""
    if num_quoted > _MOST_QUOTED:
        raise SourceError(
            f"{file} has more than {_MOST_QUOTED:,} quoted statements, <<( … )>>, which may be nested and are "
            f"not read; leave them out"
        )


def _nesting_check(file: Path) -> Callable[[bytes], None]:
    """Return a check of the blocks of a file."""
    counts: list[int] = []

    def check(block: bytes) -> None:
        counts.append(block.count(b"<<("))
        _check_nesting(file, sum(counts))

    return check


class _XmlCheck:
    """Raises if an XML file is not RDF/XML, is cut short, nests too deeply, or declares entities that fill the memory.

    pyoxigraph accepts the first two, takes quadratic time for the third, and ends the process at the last.
    """

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
        if self._depth > _DEEPEST:
            raise SourceError(f"{self._file}: elements are nested more than {_DEEPEST} deep")

    def _close(self, _name: str) -> None:
        self._depth -= 1

    def _declare(self, name: str, _parameter: bool, value: str | None, *_identifiers: object) -> None:
        if value is None or "&" in value or "%" in value or len(value) > _LONGEST_ENTITY:
            raise SourceError(
                f"{self._file} declares the entity {name!r}, which is external, contains others, or is longer than "
                f"{_LONGEST_ENTITY} characters; such entities are not read"
            )
