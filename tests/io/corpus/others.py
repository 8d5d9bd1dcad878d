"""Sources that are no text tables: Parquet, JSON, RDF, XML, databases, graph files and objects of other libraries."""

import json
import sqlite3
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy.sparse import coo_array, csr_matrix

from tests.io.corpus.frame import Sample, Source, of_files, of_objects, write
from tests.io.workbooks import write_workbook

OTHERS: dict[str, Source] = {}


def source(needs: Sequence[str] = ()) -> Callable[[Callable[[Path], Sample]], Callable[[Path], Sample]]:
    """Add a function that writes a source; its name is the name of the source."""

    def add(function: Callable[[Path], Sample]) -> Callable[[Path], Sample]:
        OTHERS[function.__name__] = Source(function, needs)
        return function

    return add


# ---- Parquet -------------------------------------------------------------------------------------
@source()
def parquet_folder(folder: Path) -> Sample:
    """A folder of Parquet files, one per relation and node type."""
    pq.write_table(pa.table({"movie_id": [1, 2], "title": ["Up", "Heat"]}), folder / "movies.parquet")
    pq.write_table(pa.table({"movie_id": [1, 1, 2], "actor_id": ["a", "b", "b"]}), folder / "movie_actor.parquet")
    return Sample(
        folder,
        nodes={"movie": 2, "actor": 2},
        edges={"movie -movie_actor-> actor": "1>a 1>b 2>b"},
        names={"movie": {"2": "Heat"}},
    )


@source()
def parquet_lists(folder: Path) -> Sample:
    """A Parquet file whose cells are lists of ids."""
    columns = {"paper_id": [1, 2, 3], "title": ["Paths", "Sums", "Rows"], "authors": [["Ann", "Bob"], ["Bob"], []]}
    pq.write_table(pa.table(columns), folder / "papers.parquet")
    return Sample(
        folder / "papers.parquet",
        nodes={"paper": 3, "author": 2},
        edges={"paper -> author": "1>Ann 1>Bob 2>Bob"},
        names={"paper": {"3": "Rows"}},
    )


@source()
def parquet_dataset(folder: Path) -> Sample:
    """A relation in parts, as Spark writes it."""
    for part in range(2):
        place = folder / "user_item"
        place.mkdir(exist_ok=True)
        rows = pa.table({"user_id": [part, part], "item_id": [10, 11 + part], "weight": [1.0, 2.0]})
        pq.write_table(rows, place / f"part-{part:05}.snappy.parquet")
    (folder / "user_item" / "_SUCCESS").touch()
    return Sample(folder, nodes={"user": 2, "item": 3}, edges={"user -user_item-> item": "0>10 0>11*2 1>10 1>12*2"})


# ---- Excel ---------------------------------------------------------------------------------------
@source(needs=["python_calamine"])
def workbook(folder: Path) -> Sample:
    """A workbook as people keep one: a title, dates, an empty sheet, a hidden list."""
    day = date(2020, 5, 4)
    rentals: list[list[Any]] = [["Rentals of our shop"], [], ["customer_id", "movie_id", "weight", "day"]]
    rentals += [["ann", 7, 2, day], ["bo", 7, 1, None], ["ann", 12, 1, day]]
    customers: list[list[Any]] = [
        ["customer_id", "name", "member"],
        ["ann", "Ann Ash", True],
        ["bo", "Bo Birch", False],
    ]
    sheets = {"customers": customers, "rentals": rentals, "Sheet3": [], "lists": [["yes"], ["no"]]}
    return Sample(
        write_workbook(folder / "shop.xlsx", sheets, hidden=["lists"], merged={"rentals": "A1:D1"}),
        nodes={"customer": 2, "movie": 2},
        edges={"customer -> movie": "ann>7*2 bo>7 ann>12"},
        names={"customer": {"bo": "Bo Birch"}},
        attributes={"customer -> movie": {"day": [day, None, day]}},
    )


OTHERS |= {
    # A damaged workbook.
    "excel": of_files({"graph.xlsx": b"PK\x03\x04" + bytes(60)}, refused="graph.xlsx", needs=["python_calamine"])
}

# ---- JSON ----------------------------------------------------------------------------------------


@source()
def openalex_works(folder: Path) -> Sample:
    """OpenAlex' works as JSON lines: authorships with authors and institutions, topics, a source, references."""
    url = "https://openalex.org/"

    def entity(letter: str, number: int, name: str) -> dict[str, Any]:
        return {"id": f"{url}{letter}{number}", "display_name": name}

    ann, bob, cem = (entity("A", *pair) for pair in ((1, "Ann Ash"), (2, "Bo Birch"), (3, "Cy Cedar")))
    bonn, ulm = entity("I", 1, "University of Bonn"), entity("I", 2, "University of Ulm")
    journal, search, graphs = entity("S", 1, "Path Letters"), entity("T", 1, "Search"), entity("T", 2, "Graphs")
    works = [
        (1, "Paths", 2011, [(ann, [bonn]), (bob, [ulm])], journal, [search, graphs], []),
        (2, "Sums", 2012, [(bob, [ulm])], journal, [graphs], [1]),
        (3, "Rows", 2013, [(cem, []), (ann, [bonn])], None, [search], [1, 2]),
    ]
    records = [
        {
            **entity("W", number, title),
            "title": title,
            "publication_year": year,
            "authorships": [
                {"author_position": "first", "author": author, "institutions": institutions}
                for author, institutions in authorships
            ],
            "primary_location": {"is_oa": True, "source": journal_of},
            "topics": [{**topic, "score": 0.9} for topic in topics],
            "referenced_works": [f"{url}W{other}" for other in cited],
        }
        for number, title, year, authorships, journal_of, topics, cited in works
    ]
    return Sample(
        write(folder, {"works.jsonl": "".join(json.dumps(record) + "\n" for record in records)}),
        nodes={"work": 3, "author": 3, "institution": 2, "source": 1, "topic": 2},
        edges={
            "work -> author": [(f"{url}W{w}", f"{url}A{a}") for w, a in ((1, 1), (1, 2), (2, 2), (3, 3), (3, 1))],
            "work -> institution": [(f"{url}W{w}", f"{url}I{i}") for w, i in ((1, 1), (1, 2), (2, 2), (3, 1))],
            "work -> source": [(f"{url}W{w}", f"{url}S1") for w in (1, 2)],
            "work -> topic": [(f"{url}W{w}", f"{url}T{t}") for w, t in ((1, 1), (1, 2), (2, 2), (3, 1))],
            "work -referenced_works-> work": [(f"{url}W{w}", f"{url}W{v}") for w, v in ((2, 1), (3, 1), (3, 2))],
        },
        names={
            "author": {f"{url}A2": "Bo Birch"},
            "work": {f"{url}W1": "Paths"},
            "source": {f"{url}S1": "Path Letters"},
        },
    )


OTHERS |= {
    # Yelp's JSON lines: businesses, users with friends, reviews that join them.
    "yelp": of_files(
        {
            "yelp_academic_dataset_business.json": """{"business_id": "b0", "name": "Tea", "city": "Bonn", "stars": 4.5, "attributes": null, "categories": "Cafes, Tea"}
{"business_id": "b1", "name": "Cup", "city": "Ulm", "stars": 4.5, "attributes": null, "categories": "Cafes"}
""",
            "yelp_academic_dataset_review.json": """{"review_id": "r0", "user_id": "u0", "business_id": "b0", "stars": 4.0, "text": "good", "date": "2018-07-07"}
{"review_id": "r1", "user_id": "u0", "business_id": "b1", "stars": 4.0, "text": "good", "date": "2018-07-07"}
{"review_id": "r2", "user_id": "u1", "business_id": "b0", "stars": 4.0, "text": "good", "date": "2018-07-07"}
{"review_id": "r3", "user_id": "u2", "business_id": "b1", "stars": 4.0, "text": "good", "date": "2018-07-07"}
""",
            "yelp_academic_dataset_user.json": """{"user_id": "u0", "name": "Ann", "friends": "u1, u2", "review_count": 3}
{"user_id": "u1", "name": "Bob", "friends": "u0", "review_count": 3}
{"user_id": "u2", "name": "Cem", "friends": "None", "review_count": 3}
""",
        },
        nodes={"business": 2, "user": 3, "review": 4},
        edges={
            "review -> user": "r0>u0 r1>u0 r2>u1 r3>u2",
            "review -> business": "r0>b0 r1>b1 r2>b0 r3>b1",
            "user -friends-> user": "u0>u1 u0>u2 u1>u0",
        },
        names={"business": {"b1": "Cup"}, "user": {"u0": "Ann"}},
    ),
    # KGX as JSON lines: categories are lists.
    "kgx_jsonl": of_files(
        {
            "kg_edges.jsonl": """{"id": "e1", "subject": "HGNC:1", "predicate": "biolink:causes", "object": "MONDO:1"}
{"id": "e2", "subject": "HGNC:2", "predicate": "biolink:causes", "object": "MONDO:1"}
""",
            "kg_nodes.jsonl": """{"id": "HGNC:1", "category": ["biolink:Gene"], "name": "A1BG"}
{"id": "HGNC:2", "category": ["biolink:Gene"], "name": "A2M"}
{"id": "MONDO:1", "category": ["biolink:Disease"], "name": "hives"}
""",
        },
        nodes={"Gene": 2, "Disease": 1},
        edges={"Gene -causes-> Disease": "HGNC:1>MONDO:1 HGNC:2>MONDO:1"},
        names={"Gene": {"HGNC:1": "A1BG"}, "Disease": {"MONDO:1": "hives"}},
    ),
    # Hetionet's JSON: nodes by kind and identifier, edges by pairs of these.
    "hetionet_json": of_files(
        {
            "hetionet-v1.0.json": """{"metanode_kinds": ["Gene", "Disease"], "metaedge_tuples": [["Disease", "Gene", "associates", "both"], ["Gene", "Gene", "regulates", "forward"]], "kind_to_abbrev": {"Gene": "G", "Disease": "D", "associates": "a", "regulates": "r"}, "nodes": [
 {"kind": "Gene", "identifier": 1, "name": "A1BG", "data": {"source": "made up"}},
 {"kind": "Gene", "identifier": 2, "name": "A2M", "data": {"source": "made up"}},
 {"kind": "Disease", "identifier": "DOID:1", "name": "hives", "data": {"source": "made up"}}
], "edges": [
 {"source_id": ["Disease", "DOID:1"], "target_id": ["Gene", 1], "kind": "associates", "direction": "both", "data": {}},
 {"source_id": ["Disease", "DOID:1"], "target_id": ["Gene", 2], "kind": "associates", "direction": "both", "data": {}},
 {"source_id": ["Gene", 1], "target_id": ["Gene", 2], "kind": "regulates", "direction": "forward", "data": {}}
]}
"""
        },
        nodes={"Gene": 2, "Disease": 1},
        edges={"Disease -associates-> Gene": "DOID:1>1 DOID:1>2", "Gene -regulates-> Gene": "1>2"},
        names={"Gene": {"1": "A1BG"}, "Disease": {"DOID:1": "hives"}},
    ),
    # AMiner's citation network: an array of papers with authors, a venue and the ids of references.
    "aminer": of_files(
        {
            "papers.json": """[
 {"id": 1, "title": "Paths", "authors": [{"id": 51, "name": "Ann Ash", "org": "Bonn"}, {"id": 52, "name": "Bo Birch"}], "venue": {"raw": "VLDB", "id": 91}, "year": 2011, "n_citation": 7, "references": []},
 {"id": 2, "title": "Sums", "authors": [{"id": 52, "name": "Bo Birch"}], "venue": {"raw": "KDD", "id": 92}, "year": 2012, "n_citation": 1, "references": [1]},
 {"id": 3, "title": "Rows", "authors": [{"id": 51, "name": "Ann Ash", "org": "Bonn"}], "venue": {"raw": "VLDB", "id": 91}, "year": 2013, "n_citation": 0, "references": [1, 2]}
]
"""
        },
        nodes={"paper": 3, "author": 2, "venue": 2},
        edges={
            "paper -authors-> author": "1>51 1>52 2>52 3>51",
            "paper -venue-> venue": "1>91 2>92 3>91",
            "paper -references-> paper": "2>1 3>1 3>2",
        },
        names={"author": {"52": "Bo Birch"}, "paper": {"3": "Rows"}},
    ),
    # APOC's export as JSON lines: nodes and relationships in one file.
    "neo4j_apoc_json": of_files(
        {
            "export.json": """{"type": "node", "id": "0", "labels": ["Person"], "properties": {"name": "Ann"}}
{"type": "node", "id": "1", "labels": ["Movie"], "properties": {"title": "Heat"}}
{"type": "node", "id": "2", "labels": ["Movie"], "properties": {"title": "Up"}}
{"type": "relationship", "id": "0", "label": "ACTED_IN", "start": {"id": "0", "labels": ["Person"]}, "end": {"id": "1", "labels": ["Movie"]}}
{"type": "relationship", "id": "1", "label": "DIRECTED", "start": {"id": "0", "labels": ["Person"]}, "end": {"id": "2", "labels": ["Movie"]}}
"""
        },
        nodes={"Person": 1, "Movie": 2},
        edges={"Person -ACTED_IN-> Movie": "0>1", "Person -DIRECTED-> Movie": "0>2"},
        names={"Movie": {"1": "Heat"}},
    ),
    # mongoexport: ids as {"$oid": …}, keys to other documents.
    "mongodb_export": of_files(
        {
            "posts.jsonl": """{"_id": {"$oid": "p0"}, "title": "post 0", "user_id": {"$oid": "u0"}, "likes": [{"$oid": "u0"}]}
{"_id": {"$oid": "p1"}, "title": "post 1", "user_id": {"$oid": "u1"}, "likes": [{"$oid": "u0"}]}
""",
            "users.jsonl": """{"_id": {"$oid": "u0"}, "name": "Ann"}
{"_id": {"$oid": "u1"}, "name": "Bob"}
""",
        },
        nodes={"user": 2, "post": 2},
        edges={"post -user_id-> user": "p0>u0 p1>u1", "post -likes-> user": "p0>u0 p1>u0"},
        names={"user": {"u1": "Bob"}},
    ),
    # Yelp's reviews alone.
    "yelp_reviews": of_files(
        {
            "yelp_academic_dataset_review.json": """{"review_id": "r0", "user_id": "u0", "business_id": "b0", "stars": 4.0, "text": "good"}
{"review_id": "r1", "user_id": "u0", "business_id": "b1", "stars": 4.0, "text": "good"}
{"review_id": "r2", "user_id": "u1", "business_id": "b0", "stars": 4.0, "text": "good"}
{"review_id": "r3", "user_id": "u2", "business_id": "b1", "stars": 4.0, "text": "good"}
"""
        },
        nodes={"review": 4, "user": 3, "business": 2},
        edges={"review -> user": "r0>u0 r1>u0 r2>u1 r3>u2", "review -> business": "r0>b0 r1>b1 r2>b0 r3>b1"},
    ),
    # Amazon's reviews as JSON lines.
    "amazon_reviews": of_files(
        {
            "reviews_Books_5.json": """{"reviewerID": "A1", "asin": "B01", "reviewerName": "Ann", "helpful": [0, 1], "reviewText": "fine", "overall": 5.0}
{"reviewerID": "A1", "asin": "B02", "reviewerName": "Ann", "helpful": [0, 1], "reviewText": "fine", "overall": 5.0}
{"reviewerID": "A2", "asin": "B01", "reviewerName": "Bob", "helpful": [0, 1], "reviewText": "fine", "overall": 5.0}
"""
        },
        nodes={"reviewer": 2, "asin": 2},
        edges={"reviewer -> asin": "A1>B01 A1>B02 A2>B01"},
        names={"reviewer": {"A2": "Bob"}},
        attributes={"reviewer -> asin": {"overall": "number", "reviewText": "text"}},
        notes=["helpful"],
    ),
    # NetworkX' node-link JSON, which D3 draws.
    "node_link_json": of_files(
        {
            "graph.json": """{"directed": true, "multigraph": false, "graph": {}, "nodes": [
 {"id": "Ann", "type": "person"},
 {"id": "Bob", "type": "person"},
 {"id": "Bonn", "type": "city"}
], "links": [
 {"source": "Ann", "target": "Bonn", "relation": "lives_in"},
 {"source": "Bob", "target": "Bonn", "relation": "lives_in", "weight": 2.0}
]}
"""
        },
        nodes={"person": 2, "city": 1},
        edges={"person -lives_in-> city": "Ann>Bonn Bob>Bonn*2"},
    ),
    # arXiv's metadata: authors as one text, and parsed as nested lists; categories as words in one text.
    "arxiv_metadata": of_files(
        {
            "arxiv-metadata.json": """{"id": "0704.0001", "title": "Paths", "authors": "A. Ash, B. Birch", "categories": "hep-ph cs.IR", "authors_parsed": [["Ash", "A.", ""], ["Birch", "B.", ""]]}
{"id": "0704.0002", "title": "Sums", "authors": "B. Birch", "categories": "cs.IR", "authors_parsed": [["Birch", "B.", ""]]}
"""
        },
        refused="arxiv-metadata.json",
    ),
    # JSON lines of records whose lists hold objects with ids.
    "records_with_lists": of_files(
        {
            "movies.jsonl": """{"id": "p0", "name": "Up", "year": 2000, "tags": [{"id": "t1", "name": "red"}, {"id": "t2", "name": "blue"}]}
{"id": "p1", "name": "Heat", "year": 2001, "tags": [{"id": "t1", "name": "red"}]}
{"id": "p2", "name": "Alien", "year": 2002, "tags": []}
"""
        },
        nodes={"movie": 3, "tag": 2},
        edges={"movie -tags-> tag": "p0>t1 p0>t2 p1>t1"},
        names={"movie": {"p2": "Alien"}, "tag": {"t1": "red"}},
    ),
    # Cytoscape's JSON: elements with nodes and edges, each with its data.
    "cytoscape_json": of_files(
        {
            "net.cyjs.json": """{"format_version": "1.0", "data": {"name": "net"}, "elements": {"nodes": [
 {"data": {"id": "1", "name": "Ann", "type": "person"}},
 {"data": {"id": "2", "name": "Bonn", "type": "city"}}
], "edges": [
 {"data": {"id": "e1", "source": "1", "target": "2", "interaction": "lives_in"}}
]}}
"""
        },
        refused="net.cyjs.json",
    ),
    # A playlist dataset: one document with a list of playlists, whose tracks have addresses and no ids.
    "spotify_playlists": of_files(
        {
            "mpd.slice.0-999.json": """{"info": {"slice": "0-999"}, "playlists": [
 {"pid": 0, "name": "calm", "num_tracks": 2, "tracks": [{"pos": 0, "track_uri": "spotify:track:t1", "track_name": "Paths", "artist_uri": "spotify:artist:a", "artist_name": "Ann"}, {"pos": 1, "track_uri": "spotify:track:t2", "track_name": "Sums", "artist_uri": "spotify:artist:a", "artist_name": "Ann"}]},
 {"pid": 1, "name": "loud", "num_tracks": 2, "tracks": [{"pos": 0, "track_uri": "spotify:track:t2", "track_name": "Sums", "artist_uri": "spotify:artist:a", "artist_name": "Ann"}, {"pos": 1, "track_uri": "spotify:track:t3", "track_name": "Rows", "artist_uri": "spotify:artist:a", "artist_name": "Ann"}]}
]}
"""
        },
        refused="mpd.slice",
    ),
    # Lines of Python dictionaries, as old dumps of Steam and Amazon have them, are no JSON.
    "python_dicts": of_files(
        {
            "australian_users.json": "{u'user_id': u'a', 'items': [{'item_id': '10'}]}\n{u'user_id': u'b', 'items': []}\n"
        },
        refused="australian_users.json",
    ),
}

# ---- RDF and XML ---------------------------------------------------------------------------------
_TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
_LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"


@source(needs=["pyoxigraph"])
def dbpedia(folder: Path) -> Sample:
    """DBpedia as N-Triples: types of the ontology and owl:Thing, labels in languages, literals."""
    resource, ontology = "<http://dbpedia.org/resource/{}>", "<http://dbpedia.org/ontology/{}>"
    lines = []
    for name, kind in (("Heat", "Film"), ("Up", "Film"), ("Ann_Ash", "Person"), ("Bo_Birch", "Person")):
        lines += [
            f"{resource.format(name)} {_TYPE} {ontology.format(kind)} .",
            f'{resource.format(name)} {_LABEL} "{name.replace("_", " ")}"@en .',
        ]
    for film, key, person in (
        ("Heat", "starring", "Ann_Ash"),
        ("Up", "starring", "Bo_Birch"),
        ("Heat", "director", "Bo_Birch"),
    ):
        lines.append(f"{resource.format(film)} {ontology.format(key)} {resource.format(person)} .")
    lines.append(
        f'{resource.format("Heat")} {ontology.format("runtime")} "170"^^<http://www.w3.org/2001/XMLSchema#int> .'
    )
    return Sample(
        write(folder, {"dbpedia.nt": "\n".join(lines) + "\n"}),
        nodes={"Film": 2, "Person": 2},
        edges={"Film -starring-> Person": 2, "Film -director-> Person": [
            ("http://dbpedia.org/resource/Heat", "http://dbpedia.org/resource/Bo_Birch")
        ]},
        names={"Person": {"http://dbpedia.org/resource/Ann_Ash": "Ann Ash"}},
    )  # fmt: skip


@source(needs=["pyoxigraph"])
def wikidata_truthy(folder: Path) -> Sample:
    """Wikidata's truthy statements: P31 and no rdf:type, labels, gzipped."""
    entity, direct = "<http://www.wikidata.org/entity/{}>", "<http://www.wikidata.org/prop/direct/{}>"
    statements = (
        ("Q1", "P31", "Q5"),
        ("Q2", "P31", "Q5"),
        ("Q1", "P19", "Q9"),
        ("Q2", "P19", "Q9"),
        ("Q9", "P31", "Q515"),
    )
    lines = [f"{entity.format(s)} {direct.format(p)} {entity.format(o)} ." for s, p, o in statements]
    lines += [
        f'{entity.format(q)} {_LABEL} "{name}"@en .' for q, name in (("Q1", "Ann"), ("Q2", "Bob"), ("Q9", "Bonn"))
    ]
    return Sample(
        write(folder, {"latest-truthy.nt.gz": "\n".join(lines) + "\n"}),
        nodes={"Q5": 2, "Q515": 1},
        edges={"Q5 -P19-> Q515": 2},
        names={"Q515": {"http://www.wikidata.org/entity/Q9": "Bonn"}},
        notes=["P31"],
    )


@source(needs=["pyoxigraph"])
def nquads(folder: Path) -> Sample:
    """N-Quads: statements in named graphs; a statement in two graphs is one edge."""
    ex = "<http://example.org/{}>".format
    statements = [(ex("ann"), ex("knows"), ex("bob"), ex("g1")), (ex("ann"), ex("knows"), ex("bob"), ex("g2")),
                  (ex("bob"), ex("knows"), ex("cem"), ex("g1"))]  # fmt: skip
    text = "".join(" ".join(statement) + " .\n" for statement in statements)
    return Sample(write(folder, {"people.nq": text}), nodes={"entity": 3}, edges={"entity -knows-> entity": 2})


OTHERS |= {
    # Turtle with prefixes, types and names of schema.org.
    "turtle": of_files(
        {
            "people.ttl": """@prefix ex: <http://example.org/> .
@prefix schema: <http://schema.org/> .
ex:ann a schema:Person ; schema:name "Ann Ash" ; schema:knows ex:bob .
ex:bob a schema:Person ; schema:name "Bo Birch" ; schema:worksFor ex:acme .
ex:acme a schema:Organization ; schema:name "Acme" .
"""
        },
        nodes={"Person": 2, "Organization": 1},
        edges={
            "Person -knows-> Person": [("http://example.org/ann", "http://example.org/bob")],
            "Person -worksFor-> Organization": [("http://example.org/bob", "http://example.org/acme")],
        },
        names={"Person": {"http://example.org/ann": "Ann Ash"}, "Organization": {"http://example.org/acme": "Acme"}},
        needs=["pyoxigraph"],
    ),
    # RDF/XML with typed elements.
    "rdf_xml": of_files(
        {
            "people.rdf": """<?xml version="1.0"?>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:foaf="http://xmlns.com/foaf/0.1/">
<foaf:Person rdf:about="http://example.org/ann"><foaf:name>Ann</foaf:name>
<foaf:knows rdf:resource="http://example.org/bob"/></foaf:Person>
<foaf:Person rdf:about="http://example.org/bob"><foaf:name>Bob</foaf:name></foaf:Person>
</rdf:RDF>
"""
        },
        nodes={"Person": 2},
        edges={"Person -knows-> Person": 1},
        needs=["pyoxigraph"],
    ),
    # Resources with several types: owl:Thing says nothing, of others the one with most nodes counts.
    "rdf_several_types": of_files(
        {
            "films.ttl": """@prefix ex: <http://example.org/> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
ex:a a owl:Thing, ex:Film ; ex:stars ex:p .
ex:b a owl:Thing, ex:Film, ex:Classic ; ex:stars ex:p .
ex:p a owl:Thing, ex:Person .
"""
        },
        nodes={"Film": 2, "Person": 1},
        edges={"Film -stars-> Person": 2},
        notes=["type"],
        needs=["pyoxigraph"],
    ),
    # DBLP's XML: records of several kinds with authors and a journal or a book title.
    "dblp_xml": of_files(
        {
            "dblp.xml": (
                '<?xml version="1.0" encoding="ISO-8859-1"?>\n<!DOCTYPE dblp SYSTEM "dblp.dtd">\n<dblp>\n'
                '<article key="journals/x/1"><author>Ann Ash</author><author>Bo Birch</author><title>Paths.</title>'
                "<year>2011</year><journal>VLDB J.</journal></article>\n"
                '<inproceedings key="conf/y/2"><author>Bo Birch</author><title>Sums.</title><year>2012</year>'
                "<booktitle>KDD</booktitle></inproceedings>\n</dblp>\n"
            )
        },
        nodes={"paper": 2, "author": 2, "venue": 2},
        edges={
            "paper -author-> author": [
                ("journals/x/1", "Ann Ash"),
                ("journals/x/1", "Bo Birch"),
                ("conf/y/2", "Bo Birch"),
            ],
            "paper -venue-> venue": [("journals/x/1", "VLDB J."), ("conf/y/2", "KDD")],
        },
        names={"paper": {"conf/y/2": "Sums."}},
    ),
}

# ---- Databases -----------------------------------------------------------------------------------


def _sqlite(path: Path, script: str) -> str:
    with sqlite3.connect(path) as connection:
        connection.executescript(script)
    connection.close()
    return f"sqlite:///{path}"


@source(needs=["sqlalchemy"])
def relbench_sqlite(folder: Path) -> Sample:
    """A relational database as RelBench has them: primary keys, foreign keys, a table of two foreign keys."""
    url = _sqlite(
        folder / "shop.db",
        """
create table customers (customer_id integer primary key, name text);
create table products (product_id integer primary key, name text, price real);
create table orders (order_id integer primary key, customer_id integer references customers, ordered_at text);
create table order_items (
    order_id integer not null references orders, product_id integer not null references products, quantity integer
);
insert into customers values (1, 'Ann'), (2, 'Bob');
insert into products values (10, 'tea', 2.5), (11, 'cup', 8);
insert into orders values (100, 1, '2024-01-02'), (101, 2, '2024-01-03'), (102, 2, null);
insert into order_items values (100, 10, 1), (100, 11, 2), (101, 10, 5), (102, 11, 1);
""",
    )
    return Sample(
        url,
        nodes={"customer": 2, "product": 2, "order": 3},
        edges={"order -> customer": "100>1 101>2 102>2", "order -> product": "100>10 100>11 101>10 102>11"},
        names={"customer": {"1": "Ann"}, "product": {"11": "cup"}},
        notes=["quantity"],
    )


@source()
def sqlite_file(folder: Path) -> Sample:
    """A SQLite file by its path: a key to its own table, and a join table with a key of both columns."""
    _sqlite(
        folder / "staff.sqlite",
        """
create table employee (id integer primary key, name text, manager_id integer references employee);
create table project (code text primary key, title text);
create table works_on (
    employee_id integer references employee, project_code text references project, primary key (employee_id, project_code)
);
insert into employee values (1, 'Ann', null), (2, 'Bob', 1), (3, 'Cem', 1);
insert into project values ('p', 'Paths'), ('s', 'Sums');
insert into works_on values (1, 'p'), (2, 'p'), (3, 's');
""",
    )
    return Sample(
        folder / "staff.sqlite",
        nodes={"employee": 3, "project": 2},
        edges={"employee -> employee": "2>1 3>1", "employee -works_on-> project": "1>p 2>p 3>s"},
        names={"employee": {"2": "Bob"}, "project": {"s": "Sums"}},
    )


@source()
def sqlite_without_keys(folder: Path) -> Sample:
    """A database as pandas writes it: no primary key and no foreign key is declared."""
    _sqlite(
        folder / "frames.db",
        """
create table users (user_id integer, name text);
create table ratings (user_id integer, item_id integer, rating real);
insert into users values (1, 'Ann'), (2, 'Bob');
insert into ratings values (1, 10, 4.0), (1, 11, 3.0), (2, 10, 5.0);
""",
    )
    return Sample(
        folder / "frames.db",
        nodes={"user": 2, "item": 2},
        edges={"user -ratings-> item": "1>10 1>11 2>10"},
        names={"user": {"2": "Bob"}},
    )


@source(needs=["duckdb"])
def duckdb_file(folder: Path) -> Sample:
    """A DuckDB file with keys."""
    import duckdb

    with duckdb.connect(str(folder / "papers.duckdb")) as connection:
        connection.execute("create table venue (id varchar primary key, name varchar)")
        connection.execute(
            "create table paper (id integer primary key, title varchar, venue_id varchar references venue)"
        )
        connection.execute("insert into venue values ('v1', 'VLDB'), ('v2', 'KDD')")
        connection.execute("insert into paper values (1, 'Paths', 'v1'), (2, 'Sums', 'v2'), (3, 'Rows', 'v1')")
    return Sample(
        folder / "papers.duckdb",
        nodes={"paper": 3, "venue": 2},
        edges={"paper -> venue": "1>v1 2>v2 3>v1"},
        names={"paper": {"2": "Sums"}, "venue": {"v1": "VLDB"}},
    )


# ---- Graph files ---------------------------------------------------------------------------------
_GRAPHML = '<?xml version="1.0" encoding="UTF-8"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'


@source(needs=["networkx"])
def gephi_graphml(folder: Path) -> Sample:
    """GraphML as Gephi exports it: labels as names, positions, colours and weights."""
    keys = "".join(
        f'<key id="{key}" attr.name="{name}" for="{of}" attr.type="{kind}"/>\n'
        for key, name, of, kind in (("label", "label", "node", "string"), ("weight", "weight", "edge", "double"),
                                    ("x", "x", "node", "float"), ("edgeid", "Edge Id", "edge", "string"))
    )  # fmt: skip
    nodes = "".join(
        f'<node id="n{n}"><data key="label">{name}</data><data key="x">{n}.5</data></node>\n'
        for n, name in enumerate(("Ann", "Bob", "Cem"))
    )
    edges = "".join(
        f'<edge id="e{n}" source="n{a}" target="n{b}"><data key="edgeid">{n}</data><data key="weight">{w}</data></edge>\n'
        for n, (a, b, w) in enumerate(((0, 1, 1.0), (1, 2, 2.5)))
    )
    text = f'{_GRAPHML}{keys}<graph edgedefault="undirected">\n{nodes}{edges}</graph>\n</graphml>\n'
    return Sample(
        write(folder, {"gephi.graphml": text}),
        nodes={"node": 3},
        edges={"node -- node": "n0>n1 n1>n2*2.5"},
        names={"node": {"n0": "Ann", "n2": "Cem"}},
    )


@source(needs=["networkx"])
def networkx_graphml(folder: Path) -> Sample:
    """GraphML as NetworkX writes it, with types and relations."""
    import networkx as nx

    nx.write_graphml(_typed_graph("type", "relation"), folder / "graph.graphml")
    return Sample(folder / "graph.graphml", **_TYPED)


@source()
def matlab(folder: Path) -> Sample:
    """A .mat file with one matrix per relation."""
    import scipy.io

    scipy.io.savemat(folder / "graph.mat", {"paper_author": csr_matrix(np.eye(3, 2)), "paper_venue": np.eye(3, 2)})
    return Sample(
        folder / "graph.mat",
        nodes={"paper": 3, "author": 2, "venue": 2},
        edges={"paper -paper_author-> author": 2, "paper -paper_venue-> venue": 2},
    )


OTHERS |= {
    # GraphML as APOC exports it: labels with a colon in front, the relationship as label.
    "neo4j_graphml": of_files(
        {
            "export.graphml": (
                f"""{_GRAPHML}<key id="name" for="node" attr.name="name"/><key id="labels" for="node" attr.name="labels"/>
<key id="label" for="edge" attr.name="label"/><graph id="G" edgedefault="directed">
<node id="n0" labels=":Person"><data key="labels">:Person</data><data key="name">Ann</data></node>
<node id="n1" labels=":Movie"><data key="labels">:Movie</data><data key="name">Heat</data></node>
<node id="n2" labels=":Movie"><data key="labels">:Movie</data><data key="name">Up</data></node>
<edge id="e0" source="n0" target="n1" label="ACTED_IN"><data key="label">ACTED_IN</data></edge>
<edge id="e1" source="n0" target="n2" label="DIRECTED"><data key="label">DIRECTED</data></edge>
</graph></graphml>
"""
            )
        },
        nodes={"Person": 1, "Movie": 2},
        edges={"Person -ACTED_IN-> Movie": "n0>n1", "Person -DIRECTED-> Movie": "n0>n2"},
        names={"Movie": {"n1": "Heat"}},
        needs=["networkx"],
    ),
    # GEXF, Gephi's own format, with labels as names.
    "gexf": of_files(
        {
            "graph.gexf": """<?xml version="1.0" encoding="UTF-8"?>
<gexf xmlns="http://www.gexf.net/1.2draft" version="1.2"><graph mode="static" defaultedgetype="undirected">
<nodes><node id="0" label="Ann"/><node id="1" label="Bob"/><node id="2" label="Cem"/></nodes>
<edges><edge id="0" source="0" target="1"/><edge id="1" source="1" target="2" weight="2.0"/></edges>
</graph></gexf>
"""
        },
        nodes={"node": 3},
        edges={"node -- node": "0>1 1>2*2"},
        names={"node": {"0": "Ann", "2": "Cem"}},
        needs=["networkx"],
    ),
    # GML, as the karate club and the football games come.
    "gml": of_files(
        {
            "club.gml": (
                'graph [\n  node [ id 1 label "Ann" ]\n  node [ id 2 label "Bob" ]\n  node [ id 3 label "Cem" ]\n'
                "  edge [ source 1 target 2 ]\n  edge [ source 3 target 1 value 2 ]\n]\n"
            )
        },
        nodes={"node": 3},
        edges={"node -- node": "1>2 1>3"},
        names={"node": {"2": "Bob"}},
        needs=["networkx"],
    ),
    # Pajek's .net.
    "pajek": of_files({"graph.net": '*Vertices 2\n1 "Ann"\n2 "Bob"\n*Edges\n1 2 1\n'}, refused="graph.net"),
}

# ---- Objects of other libraries ------------------------------------------------------------------
_TYPED: dict[str, Any] = {
    "nodes": {"person": 2, "city": 1},
    "edges": {"person -lives_in-> city": "Ann>Bonn Bob>Bonn*2", "person -knows-> person": "Ann>Bob"},
}


def _typed_graph(type_key: str, relation_key: str) -> Any:
    import networkx as nx

    graph: Any = nx.DiGraph()
    for node, kind in (("Ann", "person"), ("Bob", "person"), ("Bonn", "city")):
        graph.add_node(node, **{type_key: kind})
    for start, end, name, weight in (
        ("Ann", "Bonn", "lives_in", 1.0),
        ("Bob", "Bonn", "lives_in", 2.0),
        ("Ann", "Bob", "knows", 1.0),
    ):
        graph.add_edge(start, end, **{relation_key: name, "weight": weight})
    return graph


@source(needs=["torch_geometric"])
def heterodata(folder: Path) -> Sample:
    """A HeteroData with reverse relations, as ToUndirected adds them."""
    import torch
    from torch_geometric.data import HeteroData

    data = HeteroData()
    data["author"].num_nodes, data["paper"].x = 2, torch.zeros(3, 4)
    ends = torch.tensor([[0, 0, 1], [0, 1, 2]])
    data["author", "writes", "paper"].edge_index = ends
    data["paper", "rev_writes", "author"].edge_index = ends.flip(0)
    return Sample(
        data, nodes={"author": 2, "paper": 3}, edges={"author -writes-> paper": "0>0 0>1 1>2"}, notes=["rev_writes"]
    )


def _networkx() -> Any:
    import networkx as nx

    return nx


def _frame(data: Any, **options: Any) -> Any:
    import pandas as pd

    return pd.DataFrame(data, **options)


def _polars(columns: Any) -> Any:
    import polars as pl

    return pl.DataFrame(columns)


def _keyed_graph() -> Any:
    """A MultiDiGraph whose edge keys are the relations and whose `label`s are the types."""
    graph = _networkx().MultiDiGraph()
    for node, label in (("Ann", "Person"), ("Bob", "Person"), ("Heat", "Movie"), ("Up", "Movie")):
        graph.add_node(node, label=label)
    graph.add_edges_from([("Ann", "Heat", "ACTED_IN"), ("Ann", "Heat", "DIRECTED"), ("Bob", "Up", "ACTED_IN")])
    return graph


def _bipartite_graph() -> Any:
    graph = _networkx().Graph([("Ann", "tea"), ("Bob", "tea"), ("cup", "Bob")])
    for node in graph:
        graph.nodes[node]["bipartite"] = int(node in ("tea", "cup"))
    return graph


_RATED = {"userId": [1, 1, 2], "movieId": [31, 32, 31], "rating": [4.0, 3.5, 5.0]}
_USER_MOVIE: dict[str, Any] = {"nodes": {"user": 2, "movie": 2}, "edges": {"user -> movie": "1>31 1>32 2>31"}}
OTHERS |= {
    # A NetworkX graph with type and relation.
    "networkx_types": of_objects(lambda: _typed_graph("type", "relation"), ["networkx"], **_TYPED),
    # A NetworkX graph with kind and predicate.
    "networkx_kind": of_objects(
        lambda: _typed_graph("kind", "predicate"), ["networkx"], **_TYPED, notes=["kind", "predicate"]
    ),
    # A MultiDiGraph whose edge keys are the relations and whose `label`s are the types.
    "networkx_keys": of_objects(
        _keyed_graph,
        ["networkx"],
        nodes={"Person": 2, "Movie": 2},
        edges={"Person -ACTED_IN-> Movie": "Ann>Heat Bob>Up", "Person -DIRECTED-> Movie": "Ann>Heat"},
    ),
    # A bipartite NetworkX graph: `bipartite` is 0 or 1.
    "networkx_bipartite": of_objects(
        _bipartite_graph, ["networkx"], nodes={"0": 2, "1": 2}, edges={"0 -> 1": "Ann>tea Bob>tea Bob>cup"}
    ),
    # A plain NetworkX graph.
    "networkx_plain": of_objects(
        lambda: _networkx().path_graph(4), ["networkx"], nodes={"node": 4}, edges={"node -- node": "0>1 1>2 2>3"}
    ),
    # MovieLens' ratings as a pandas frame.
    "ratings_frame": of_objects(
        lambda: _frame(_RATED | {"timestamp": [7, 8, 9]}), ["pandas"], **_USER_MOVIE, notes=["rating"]
    ),
    # A mapping of frames: a relation by its two types, nodes with title as name and genres to split.
    "frames_in_a_mapping": of_objects(
        lambda: {
            ("user", "movie"): _frame(_RATED),
            "movie": _frame({"movieId": [31, 32], "title": ["Toy Tale", "Heat"], "year": [1995, 1995]}),
        },
        ["pandas"],
        **_USER_MOVIE,
        names={"movie": {"31": "Toy Tale"}},
        notes=["rating"],
    ),
    # A frame of triples.
    "triples_frame": of_objects(
        lambda: _frame(
            [
                ("Ann", "knows", "Bob"),
                ("Bob", "knows", "Cem"),
                ("Ann", "lives_in", "Bonn"),
                ("Cem", "lives_in", "Bonn"),
            ],
            columns=["subject", "predicate", "object"],
        ),
        ["pandas"],
        nodes={"entity": 4},
        edges={"entity -knows-> entity": "Ann>Bob Bob>Cem", "entity -lives_in-> entity": "Ann>Bonn Cem>Bonn"},
    ),
    # A polars frame of a relation.
    "polars_frame": of_objects(
        lambda: {("user", "buys", "item"): _polars({"user_id": [1, 1, 2], "item_id": ["tea", "cup", "tea"]})},
        ["polars"],
        nodes={"user": 2, "item": 2},
        edges={"user -buys-> item": "1>tea 1>cup 2>tea"},
    ),
    # Arrow tables in a mapping, with weights and names.
    "arrow_mapping": of_objects(
        lambda: {
            "user": pa.table({"id": ["ann", "bob"], "name": ["Ann", "Bob"]}),
            ("user", "likes", "item"): pa.table({"user": ["ann", "bob"], "item": [7, 7], "weight": [1.0, 0.5]}),
        },
        nodes={"user": 2, "item": 1},
        edges={"user -likes-> item": "ann>7 bob>7*0.5"},
        names={"user": {"bob": "Bob"}},
    ),
    # Sparse matrices of SciPy by their two types.
    "scipy_matrices": of_objects(
        lambda: {
            ("user", "item"): coo_array((np.array([4.0, 3.0, 5.0]), ([0, 0, 1], [0, 1, 1])), shape=(2, 3)),
            ("item", "genre"): csr_matrix(np.eye(3, 2)),
        },
        nodes={"user": 2, "item": 3, "genre": 2},
        edges={"user -> item": "0>0*4 0>1*3 1>1*5", "item -> genre": "0>0 1>1"},
    ),
    # A dense matrix of numpy.
    "numpy_matrix": of_objects(
        lambda: {("user", "item"): np.array([[1, 0], [2, 1]])},
        nodes={"user": 2, "item": 2},
        edges={"user -> item": "0>0 1>0*2 1>1"},
    ),
    # Edges as a list of tuples by their two types.
    "tuples": of_objects(
        lambda: {("user", "likes", "item"): [("ann", "tea"), ("bob", "tea"), ("bob", "cup")]},
        nodes={"user": 2, "item": 2},
        edges={"user -likes-> item": "ann>tea bob>tea bob>cup"},
    ),
}
