"""RDF in every format: types, names, attributes, edges; what is decided by rule is noted; bad files are refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pyoxigraph", reason="needs the extra io")

import neupath as npth
from neupath._runtime.progress import no_progress
from neupath.errors import NeuPathError, SourceError
from neupath.io import import_store
from neupath.io.formats import rdf, rdf_statements
from neupath.store import open_store
from tests.tables import check_read, observed, shape, write

PREFIXES = (
    "@prefix ex: <http://ex.org/> . @prefix foaf: <http://xmlns.com/foaf/0.1/> . @prefix owl: "
    "<http://www.w3.org/2002/07/owl#> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n"
)
FILMS = PREFIXES + (
    'ex:ann a foaf:Person ; foaf:name "Ann" ; ex:born 1970 ; ex:height 1.7 .\n'
    'ex:bob a foaf:Person ; foaf:name "Bob" ; ex:born 1980 ; ex:member true .\n'
    'ex:up a ex:Film ; rdfs:label "Up"@en, "Oben"@de ; ex:actor ex:ann, ex:bob ; ex:tag "old", "a", "bb" .\n'
    'ex:heat a ex:Film ; ex:actor ex:bob ; ex:motto "Hitze"@de .\n'
)
AS_TRIPLES = """\
<http://ex.org/ann> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://xmlns.com/foaf/0.1/Person> .
<http://ex.org/bob> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://xmlns.com/foaf/0.1/Person> .
<http://ex.org/up> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://ex.org/Film> .
<http://ex.org/heat> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://ex.org/Film> .
<http://ex.org/up> <http://ex.org/actor> <http://ex.org/ann> .

# a comment
<http://ex.org/up> <http://ex.org/actor> <http://ex.org/bob> .
<http://ex.org/heat>\t<http://ex.org/actor>   <http://ex.org/bob>.
<http://ex.org/up> <http://www.w3.org/2000/01/rdf-schema#label> "Up"@en .
"""
AS_XML = """<?xml version="1.0"?>
<!DOCTYPE rdf:RDF [<!ENTITY ex "http://ex.org/">]>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:ex="http://ex.org/"
         xmlns:foaf="http://xmlns.com/foaf/0.1/" xmlns:rdfs="http://www.w3.org/2000/01/rdf-schema#">
  <foaf:Person rdf:about="&ex;ann"/><foaf:Person rdf:about="http://ex.org/bob"/>
  <ex:Film rdf:about="http://ex.org/up"><rdfs:label>Up</rdfs:label>
    <ex:actor rdf:resource="http://ex.org/ann"/><ex:actor rdf:resource="http://ex.org/bob"/></ex:Film>
  <ex:Film rdf:about="http://ex.org/heat"><ex:actor rdf:resource="http://ex.org/bob"/></ex:Film>
</rdf:RDF>
"""
AS_JSON = """{"@context": {"ex": "http://ex.org/", "foaf": "http://xmlns.com/foaf/0.1/"}, "@graph": [
  {"@id": "ex:ann", "@type": "foaf:Person"}, {"@id": "ex:bob", "@type": "foaf:Person"},
  {"@id": "ex:up", "@type": "ex:Film", "http://www.w3.org/2000/01/rdf-schema#label": "Up",
   "ex:actor": [{"@id": "ex:ann"}, {"@id": "ex:bob"}]},
  {"@id": "ex:heat", "@type": "ex:Film", "ex:actor": {"@id": "ex:bob"}}]}
"""
DEEP = 400 * "<ex:p><ex:F>" + 400 * "</ex:F></ex:p>"
AS_QUADS = AS_TRIPLES.replace(" .\n", " <http://ex.org/graph> .\n")


def _put(folder: Path, name: str, text: str | bytes) -> Path:
    return write(folder, **{name: text}) / name


def load(folder: Path, text: str, rdf_settings: str = "", **options: Any) -> npth.HIN:
    """Load Turtle that may use the usual prefixes, perhaps with a graph.toml."""
    config = _put(folder, "graph.toml", f"[rdf]\n{rdf_settings}") if rdf_settings else None
    return npth.load(_put(folder, "a.ttl", PREFIXES + text), config=config, **options)


def _ids(hin: npth.HIN, node_type: str) -> list[str]:
    return [str(each).removeprefix("http://ex.org/") for each in hin.nodes[node_type].ids.to_pylist()]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("films.ttl", FILMS), ("films.n3", FILMS), ("films.trig", FILMS), ("films.nt", AS_TRIPLES),
        ("films.nt", AS_TRIPLES.replace("\n", "\r\n")), ("films.nt", AS_TRIPLES.removesuffix("\n")),
        ("films.nt", "\ufeff" + AS_TRIPLES), ("films.ttl", "\ufeff" + FILMS), ("films.rdf", "\ufeff" + AS_XML),
        ("films.nq", AS_TRIPLES), ("films.nq", AS_QUADS), ("films.nq", AS_QUADS.replace("\n", "\r\n")),
        ("films.rdf", AS_XML), ("films.owl", AS_XML),
        ("films.xml", AS_XML), ("films.owl", FILMS), ("films.jsonld", AS_JSON), ("films.nt.gz", AS_TRIPLES),
        ("films.ttl.gz", FILMS), ("films.rdf.gz", AS_XML),
        ("films.trig", PREFIXES + "ex:g {" + FILMS[len(PREFIXES) :] + "}"),
    ],
)  # fmt: skip
def test_all_formats_give_the_same_graph(tmp_path: Path, name: str, text: str) -> None:
    hin = npth.load(_put(tmp_path, name, text))
    assert shape(hin) == {"Film -actor-> Person": 3}
    assert sorted(_ids(hin, "Film")) == ["heat", "up"]
    assert sorted(_ids(hin, "Person")) == ["ann", "bob"]
    assert hin.nodes["Film"].name(hin.row("Film", "http://ex.org/up")) == "Up"
    assert npth.PathSim("Film-Person-Film").fit(hin).top_k("heat").names == ("Up",)
    assert any("named graphs" in note for note in hin.notes) == ("ex.org/graph" in text or "ex:g {" in text)


def test_no_statement_is_lost_where_the_parser_is_read_in_batches(tmp_path: Path) -> None:
    """Every 65,537th statement of a file that is not N-Triples was lost."""
    count = 140_000
    hin = load(tmp_path, "".join(f"ex:n{number} ex:p ex:m .\n" for number in range(count)))
    assert shape(hin) == {"entity -p-> entity": count}


def test_literals_are_names_and_attributes_of_their_types(tmp_path: Path) -> None:
    hin = npth.load(_put(tmp_path, "films.ttl", FILMS))
    person, film = hin.nodes["Person"], hin.nodes["Film"]
    assert person.attributes.to_pydict() == {"born": [1970, 1980], "height": [1.7, None], "member": [None, True]}
    assert film.attributes.to_pydict() == {"tag": ["a", None], "motto": [None, "Hitze"]}
    assert film.names.to_pylist() == ["Up", "heat"]
    assert "names are the values of rdfs:label, foaf:name" in hin.notes
    assert any(note.startswith("2 values of tag left out") for note in hin.notes)
    config = _put(tmp_path, "graph.toml", '[rdf]\nlanguage = "de"\n')
    assert npth.load(tmp_path / "films.ttl", config=config).nodes["Film"].names.to_pylist() == ["Oben", "heat"]


@pytest.mark.parametrize("vocabulary", ["http://purl.org/dc/terms/", "http://purl.org/dc/elements/1.1/"])
def test_titles_are_names_of_what_has_no_other(tmp_path: Path, vocabulary: str) -> None:
    books = 'ex:a dct:title "Heat" ; ex:by ex:p . ex:b dct:title "Up" ; foaf:name "Oben" ; ex:by ex:p .\n'
    hin = load(tmp_path, f"@prefix dct: <{vocabulary}> .\n{books}")
    assert [hin.find(name)[0].id for name in ("Heat", "Oben")] == ["http://ex.org/a", "http://ex.org/b"]


def test_wikidata_types_are_read_from_p31(tmp_path: Path) -> None:
    wd, wdt = "http://www.wikidata.org/entity/", "http://www.wikidata.org/prop/direct/"
    text = (
        f"<{wd}Q1> <{rdf.RDF_TYPE}> <http://wikiba.se/ontology#Item> .\n<{wd}Q1> <{wdt}P31> <{wd}Q5> .\n"
        f"<{wd}Q2> <{wdt}P31> <{wd}Q11424> .\n<{wd}Q2> <{wdt}P161> <{wd}Q1> .\n<{wd}Q5> <{wdt}P279> <{wd}Q9> .\n"
    )
    hin = npth.load(_put(tmp_path, "truthy.nt", text))
    assert shape(hin) == {"Q11424 -P161-> Q5": 1, "entity -P279-> entity": 1}
    assert any(note.startswith(f"types are read from {wdt}P31") for note in hin.notes)
    # with types of its own, P31 is a relation as any other
    hin = npth.load(_put(tmp_path, "typed.nt", text.replace("wikiba.se/ontology#Item", "ex.org/Human")))
    assert shape(hin)["Human -P31-> entity"] == 1


def test_the_type_property_can_be_named(tmp_path: Path) -> None:
    text = 'ex:a ex:kind "dog" ; ex:likes ex:b . ex:b ex:kind ex:Cat ; a ex:Pet .'
    assert shape(load(tmp_path, text, 'type = "http://ex.org/kind"')) == {"dog -likes-> Cat": 1}
    with pytest.raises(SourceError, match="no statement has the type property .*kinds.*did you mean .*kind"):
        load(tmp_path, text, 'type = "http://ex.org/kinds"')


def test_same_as_merges_nodes_only_when_asked(tmp_path: Path) -> None:
    text = (
        "ex:b owl:sameAs ex:a . ex:b owl:sameAs _:x . ex:b ex:knows ex:c . ex:a ex:knows ex:c . _:x ex:age 7 . "
        "ex:c owl:sameAs ex:d ."
    )
    assert shape(load(tmp_path, text)) == {"entity -sameAs-> entity": 3, "entity -knows-> entity": 2}
    hin = load(tmp_path, text, 'same_as = "merge"')
    assert shape(hin) == {"entity -knows-> entity": 1}
    assert _ids(hin, "entity") == ["a", "c"]
    assert hin.nodes["entity"].attributes.to_pydict() == {"age": [7, None]}
    assert "owl:sameAs merged 5 nodes into 2" in hin.notes


def test_a_statement_given_twice_is_one_edge(tmp_path: Path) -> None:
    twice = "ex:a ex:knows ex:b . ex:a ex:knows ex:b ."
    hin = load(tmp_path, twice)
    assert observed(hin)["knows.weights"] == [1]
    assert "1 statement is given more than once, and counted once" in hin.notes
    assert observed(load(tmp_path, twice, duplicates="count"))["knows.weights"] == [2]
    with pytest.raises(NeuPathError, match="more than once"):
        load(tmp_path, twice, duplicates="error")


def test_iris_that_share_a_local_name_are_told_apart(tmp_path: Path) -> None:
    text = (
        '@prefix my: <http://my.org/v#> . ex:a ex:near ex:b ; my:near ex:b ; ex:name "A" . ex:a a ex:T . ex:b a my:T . '
        "<http://q.org/1/near> <http://q.org/1/near> <http://q.org/2/near> ."
    )
    hin = load(tmp_path, text)
    assert shape(hin) == {"ex:T -ex:near-> my:T": 1, "ex:T -my:near-> my:T": 1, "entity -1:near-> entity": 1}
    assert hin.nodes["ex:T"].attributes.to_pydict() == {"ex:name": ["A"]}
    assert "http://ex.org/near is called ex:near, because near has other meanings" in hin.notes


def test_blank_nodes_are_nodes_and_differ_between_files(tmp_path: Path) -> None:
    folder = tmp_path / "g"
    write(folder, a__nt="_:x <http://ex.org/p> _:y .\n", b__nt="_:x <http://ex.org/p> <http://ex.org/o> .\n")
    hin = npth.load(folder)
    assert hin.nodes["entity"].ids.to_pylist() == ["_:a.nt:x", "_:a.nt:y", "_:b.nt:x", "http://ex.org/o"]
    assert hin.nodes["entity"].names.to_pylist() == [None, None, None, "o"]
    made_up = load(tmp_path, "ex:a ex:p [ ex:q [] ] .").nodes["entity"].ids.to_pylist()
    assert {each for each in made_up if each.startswith("_:")} == {"_:[1]", "_:[2]"}


def test_lists_are_relations_to_their_members(tmp_path: Path) -> None:
    text = (
        'ex:p ex:authors ( ex:ann ex:bob ) ; ex:years ( 1 2 ) ; ex:none () ; ex:mixed ( ex:ann "x" ( ex:bob ) ) . '
        "ex:q ex:authors ( ex:bob ) ."
    )
    hin = load(tmp_path, text)
    assert shape(hin) == {"entity -authors-> entity": 3, "entity -mixed-> entity": 2}
    assert sorted(_ids(hin, "entity")) == ["ann", "bob", "p", "q"]
    assert hin.nodes["entity"].attributes.to_pydict()["years"][hin.nodes["entity"].find("p")] == 1
    improper = load(tmp_path, f"{text}@prefix r: <{rdf.RDF}> . _:l r:rest _:m, _:n .")
    assert any("do not make proper lists" in note for note in improper.notes)
    loop = f"@prefix r: <{rdf.RDF}> . _:l r:rest _:l ; r:first _:l . <http://a.b/c> <http://a.b/d> _:l ."
    assert shape(load(tmp_path, loop)) == {}


def test_lists_and_merged_nodes_may_stand_among_many_values(tmp_path: Path) -> None:
    notes = "".join(f'ex:p ex:note "{n}" . ' for n in range(30))
    text = f"ex:p ex:in ( ex:a ex:b ) . ex:p owl:sameAs ex:q . {notes}"
    assert shape(load(tmp_path, text)) == {"entity -in-> entity": 2, "entity -sameAs-> entity": 1}
    assert shape(load(tmp_path, text, 'same_as = "merge"')) == {"entity -in-> entity": 2}


def test_quoted_statements_are_left_out_and_relative_iris_do_not_name_the_folder(tmp_path: Path) -> None:
    text = PREFIXES + "ex:a ex:p ex:b {| ex:sure 0.9 |} . << ex:a ex:q ex:b >> ex:by ex:c . <Ann> <#p> <#Bob> ."
    hin = npth.load(_put(tmp_path, "a b.ttl", text))
    assert shape(hin) == {"entity -ex:p-> entity": 1, "entity -a_b.ttl:p-> entity": 1}
    assert _ids(hin, "entity") == ["a", "b", "file:///Ann", "file:///a_b.ttl#Bob"]
    assert "statements about statements (RDF-star) were left out: 2" in hin.notes


def test_graph_toml_takes_and_ignores(tmp_path: Path) -> None:
    folder = tmp_path / "g"
    write(
        folder, films__ttl=FILMS, old__nt="broken", graph__toml='ignore = ["old*"]\ntake = ["actor"]\n', README__txt="x"
    )
    assert shape(npth.load(folder)) == {"Film -actor-> Person": 3}
    assert shape(open_store(import_store(folder, tmp_path / "store")).hin()) == {"Film -actor-> Person": 3}


def test_beside_tables_rdf_is_left_out_with_a_note(tmp_path: Path) -> None:
    files = {"movie_actor__csv": "movie_id,actor_id\n1,2\n", "films__ttl": FILMS}
    note = "films.ttl was left out: the graph is read from the tables beside it"
    check_read(tmp_path / "g", files, {"movie -movie_actor-> actor": 1}, {"noted": [note]})


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.nt", AS_TRIPLES + "<http://ex.org/a> <b> <http://ex.org/c> .\n", "a.nt, line 11: No scheme found"),
        ("a.nt", AS_TRIPLES + "<http://ex.org/a> <http://ex.org/p>\n", "a.nt, line 12: line jumps are not allowed"),
        ("a.nt", AS_TRIPLES + '<http://ex.org/a> <http://ex.org/p> "x\n', "a.nt, line 11: "),
        ("a.ttl", FILMS + "ex:a ex:p [\n", "a.ttl, line 7: Unexpected end"),
        ("a.nt", b"\xff\xfe", "a.nt, line 1: .*UTF-8"),
        ("a.nt", "", "there are no statements"),
        ("a.ttl", "# nothing\n", "there are no statements"),
        ("a.rdf", AS_XML.replace("</ex:Film>\n</rdf", DEEP + "</ex:Film></rdf"), "nested more than 500 deep"),
        ("a.nt.gz", None, "named .gz but is not gzipped"),
        ("a.rdf", AS_XML.replace("rdf:RDF", "rdf:rdf"), "its root element is <rdf:rdf>, not <rdf:RDF>"),
        ("a.owl", "<Ontology xmlns='http://www.w3.org/2002/07/owl#'/>", "not RDF/XML: its root element is <Ontology>"),
        ("a.rdf", AS_XML.replace("</ex:Film>", ""), "a.rdf, line .*: the XML is not well-formed: mismatched tag"),
        ("a.rdf", AS_XML.replace('"http://ex.org/">', '"&#38;amp;&#38;amp;">'), "declares the entity 'ex'"),
        ("a.rdf", AS_XML.replace('"http://ex.org/">', f'"{"x" * 300}">'), "declares the entity 'ex'"),
        ("a.rdf", AS_XML.replace('"http://ex.org/">', 'SYSTEM "file:///etc/passwd">'), "declares the entity 'ex'"),
        ("a.jsonld", '{"@context": "http://ex.org/context", "name": "x"}', "remote contexts"),
        ("a.nt", "<http://a.b/c> <http://a.b/c> " + 2000 * "<<( <http://a.b/c> <http://a.b/c> ", "quoted statements"),
        ("a.ttl", 2000 * "<<( <http://a.b/c> <http://a.b/c> ", "quoted statements"),
    ],
)  # fmt: skip
def test_bad_files_are_refused_in_one_sentence(
    tmp_path: Path, name: str, text: str | bytes | None, message: str
) -> None:
    (tmp_path / name).write_text(AS_TRIPLES)
    refused = check_read(tmp_path, {} if text is None else {name: text}, message, {"load": name})
    assert "\n" not in refused


@pytest.mark.slow
def test_plain_lines_are_read_as_the_parser_reads_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines of plain IRIs skip the parser: whatever they hold, the graph or the refusal must be the parser's."""
    rng = np.random.default_rng(0)
    pieces = ["http://", "https://", "ex.org", "ex.org:80", "%41", "\\u0041", "..", "urn:x"]
    pieces += "a/#?%:@é[]{'()<>^|\"~-_\\"
    suffixes = ["", "@en", "@de-AT", "@EN", "@x", "@en-", f"^^<{rdf.XSD}int>", "^^<http://a.b/c>", "^^"]

    def read() -> object:
        try:
            statements = rdf_statements.read_statements([path], None, no_progress)
        except SourceError as error:
            return str(error)
        nodes, literals = statements.nodes.to_pylist(), statements.literals.to_pylist()
        return nodes, statements.predicates, literals, statements.tags

    for number in range(200):
        some = [[*rng.choice([*pieces, " ", "\t"], size=rng.integers(0, 5))] for _ in range(3)]
        terms = [f"<{'http://ex.org/' if rng.random() < 0.8 else ''}{''.join(each)}>" for each in some]
        if rng.random() < 0.5:
            text = "".join(rng.choice([*pieces, "a", "\\n", "\\", "\x00", "\r", " "], size=rng.integers(0, 3)))
            terms[2] = f'"{text}"{rng.choice(suffixes)}'
        path = _put(tmp_path, "a.nt", " ".join(terms) + rng.choice([" .", ".", "  .", " . ", ""]) + "\n")
        result = read()
        with monkeypatch.context() as patch:
            patch.setattr(rdf_statements, "_PLAIN", "<no such line>")
            assert read() == result, (number, path.read_text())
