"""JSON records, and nodes with edges: types, relations and attributes by rule; what is not recognised is refused."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import neupath as npth
from neupath.errors import NeuPathError, SourceError
from neupath.graph.edge_attributes import edge_kinds
from neupath.io import import_store
from neupath.store import open_store
from tests.tables import shape, write


def lines(records: Sequence[Any]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def load(folder: Path, **files: Any) -> npth.HIN:
    """Write files, lists as lines and other values as documents, and load the folder."""
    texts = {name: _as_text(name, content) for name, content in files.items()}
    return npth.load(write(folder / "g", **texts))


def _as_text(name: str, content: Any) -> str:
    if isinstance(content, str):
        return content
    return lines(content) if "jsonl" in name or "ndjson" in name else json.dumps(content, indent=1)


def work(number: int, authors: Sequence[int], **more: Any) -> dict[str, Any]:
    url = "https://openalex.org/"
    return {
        "id": f"{url}W{number}",
        "display_name": f"Work {number}",
        "authorships": [
            {"position": place, "author": {"id": f"{url}A{author}", "display_name": f"Author {author}"}}
            for place, author in enumerate(authors)
        ],
        **more,
    }


# ---- Nested records ------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["works__jsonl", "works__ndjson__gz", "works__jsonl__gz"])
def test_objects_with_ids_are_nodes_and_those_without_are_passed_through(tmp_path: Path, name: str) -> None:
    records = [work(1, [1, 2], year=2011, open={"is_oa": True}), work(2, [2], year=2012, counts=[{"year": 1}])]
    hin = npth.load(next(iter(write(tmp_path / "g", **{name: lines(records)}).iterdir())))
    assert shape(hin) == {"work -authorships.author-> author": 3}
    assert hin.nodes["author"].names.to_pylist() == ["Author 1", "Author 2"]
    assert hin.nodes["work"].attributes.to_pydict() == {"year": [2011, 2012], "open.is_oa": [True, None]}
    assert any("work.counts.year" in note for note in hin.notes)
    ((_, table),) = hin.edge_tables.items()
    assert list(edge_kinds(hin.edge_tables, table.relation)) == ["position"]
    assert npth.PathSim("work-author-work").fit(hin).top_k("Work 2").names == ("Work 1",)


@pytest.mark.parametrize("layout", ["array", "results", "lines", "several"])
def test_documents_hold_the_same_records(tmp_path: Path, layout: str) -> None:
    records = [work(1, [1, 2]), work(2, [2])]
    content = {
        "array": records,
        "results": {"meta": {"count": 2}, "results": records},
        "lines": lines(records),
        "several": {"works": records, "authors": [{"id": "https://openalex.org/A1", "display_name": "Ann"}]},
    }[layout]
    hin = load(tmp_path, works__json=content)
    assert shape(hin) == {"work -authorships.author-> author": 3}
    assert hin.nodes["author"].names.to_pylist()[0] == ("Ann" if layout == "several" else "Author 1")
    if layout == "results":
        assert "works.json: meta left out, which is not a list of records" in hin.notes


def test_a_list_of_ids_is_a_relation_to_their_type(tmp_path: Path) -> None:
    url = "https://openalex.org/W"
    records = [work(0, [1], referenced_works=[]), work(1, [1]), work(2, [1], referenced_works=[f"{url}1", f"{url}77"])]
    hin = load(tmp_path, works__jsonl=records)
    assert shape(hin)["work -referenced_works-> work"] == 2
    assert len(hin.nodes["work"]) == 4
    assert any("referenced_works of work is a relation" in note and "1 of them" in note for note in hin.notes)
    # none of them is a record, but they are written like the ids of works
    records[2]["referenced_works"] = [f"{url}8", f"{url}9", f"{url}0"]
    assert shape(load(tmp_path, works__jsonl=records))["work -referenced_works-> work"] == 3


def test_a_list_of_texts_is_a_relation_to_nodes_called_so(tmp_path: Path) -> None:
    movies = [
        {"id": 1, "title": "Up", "genres": ["Comedy", "Drama"], "ratings": [3, 4]},
        {"id": 2, "title": "Heat", "genres": ["Drama"], "similar": [1, 7], "movie_ids": [1]},
    ]
    hin = load(tmp_path, movies__jsonl=movies)
    assert shape(hin) == {"movie -genres-> genre": 3, "movie -similar-> movie": 2, "movie -movie_ids-> movie": 1}
    assert hin.nodes["movie"].ids.to_pylist() == [1, 2, 7]
    assert any("movie.ratings" in note for note in hin.notes)


def test_types_that_share_iris_are_one_type(tmp_path: Path) -> None:
    topics = [{"id": f"https://x.org/T{n}", "name": f"T{n}", "field": {"id": "https://x.org/F1"}} for n in range(3)]
    records = [
        {"id": "https://x.org/W1", "primary_topic": topics[0], "topics": topics[:2]},
        {"id": "https://x.org/W2", "primary_topic": topics[2], "topics": topics[1:]},
    ]
    hin = load(tmp_path, works__jsonl=records)
    assert shape(hin) == {
        "work -primary_topic-> topic": 2, "work -topics-> topic": 4, "topic -field-> field": 3,
    }  # fmt: skip
    assert "primary_topic and topic share ids and are one type, topic" in hin.notes
    # facts about a node that is mentioned several times are counted once
    assert hin.matrices[next(r for r in hin.matrices if r.name == "field")].sum() == 3


def test_values_that_differ_between_mentions_are_no_attributes(tmp_path: Path) -> None:
    records = [
        {"id": f"p{n}", "tags": [{"id": "t1", "name": "red", "score": n / 3, "code": 7}]} for n in range(2)
    ]  # fmt: skip
    hin = load(tmp_path, posts__jsonl=records)
    assert hin.nodes["tag"].attributes.to_pydict() == {"code": [7]}
    assert any("tag.score" in note for note in hin.notes)


def test_numbers_that_are_unique_within_one_record_are_refused(tmp_path: Path) -> None:
    records = [{"id": f"q{n}", "answers": [{"id": 1, "title": f"first {n}"}]} for n in range(2)]
    with pytest.raises(SourceError, match="answer 1 is called 'first 0' and 'first 1' in different records"):
        load(tmp_path, questions__jsonl=records)


def test_a_table_by_words_is_left_out(tmp_path: Path) -> None:
    records = [work(n, [1], index={f"word{n}_{k}": [k, f"{k}"][k % 2] for k in range(200)}) for n in range(3)]
    hin = load(tmp_path, works__jsonl=records)
    assert shape(hin) == {"work -authorships.author-> author": 3}
    assert any("work.index" in note for note in hin.notes)
    assert not any("work.index." in note for note in hin.notes)
    assert hin.nodes["work"].attributes.column_names == []


def test_a_record_describes_what_others_mention(tmp_path: Path) -> None:
    authors = [{"id": "https://openalex.org/A1", "display_name": "Ann Ash", "born": 1970}]
    hin = load(tmp_path, authors__jsonl=authors, works__jsonl=[work(1, [1, 2])])
    assert hin.nodes["author"].names.to_pylist() == ["Ann Ash", "Author 2"]
    assert hin.nodes["author"].attributes.to_pydict() == {"born": [1970, None]}


# ---- Foreign keys --------------------------------------------------------------------------------
YELP = {
    "yelp_business__json": lines([
        {"business_id": "b1", "name": "Tea", "stars": 4.5}, {"business_id": "b2", "name": "Cup"},
    ]),
    "yelp_user__json": lines([
        {"user_id": "u1", "name": "Ann", "friends": "u2, u3"}, {"user_id": "u2", "name": "Bob", "friends": "None"},
        {"user_id": "u3", "name": "Cem", "friends": "u1"},
    ]),
    "yelp_review__json": lines([
        {"review_id": "r1", "user_id": "u1", "business_id": "b1", "stars": 4, "text": "good"},
        {"review_id": "r2", "user_id": "u1", "business_id": "b2", "stars": 3, "text": "well, good"},
    ]),
    "yelp_tip__json": lines([{"user_id": "u2", "business_id": "b1", "text": "go", "date": "2018-07-07"}] * 2),
}  # fmt: skip


def test_foreign_keys_are_relations_and_records_without_an_id_are_edges(tmp_path: Path) -> None:
    hin = load(tmp_path, **YELP)
    assert shape(hin) == {
        "review -user_id-> user": 2, "review -business_id-> business": 2, "user -friends-> user": 3,
        "user -yelp_tip-> business": 1,
    }  # fmt: skip
    assert hin.nodes["review"].attributes.to_pydict() == {"stars": [4, 3], "text": ["good", "well, good"]}
    assert sum(matrix.sum() for matrix in hin.matrices.values()) == 9
    assert "yelp_tip.json: its records have no id and are edges between user_id, business_id" in hin.notes
    assert shape(open_store(import_store(tmp_path / "g", tmp_path / "store")).hin()) == shape(hin)


def test_keys_of_objects_in_lists_are_relations(tmp_path: Path) -> None:
    orders = [
        {
            "id": 1,
            "items": [{"product_id": 5, "count": 2}, {"product_id": 6, "count": 1}],
            "links": [{"url": "http://a"}],
        },
        {"id": 2, "items": [{"product_id": 5, "count": 1}], "grants": [{"funder": "https://x.org/F1"}]},
    ]
    hin = load(tmp_path, orders__jsonl=orders, funders__jsonl=[{"id": "https://x.org/F1", "name": "Fund"}])
    assert shape(hin) == {"order -items.product_id-> product": 3, "order -grants.funder-> funder": 1}
    assert any("order.items.count, order.links.url" in note for note in hin.notes)


def test_articles_by_their_numbers(tmp_path: Path) -> None:
    books = [{"asin": f"B0{n}", "title": f"Book {n}", "categories": ["Books"], "also_buy": ["B01"]} for n in range(3)]
    reviews = [{"reviewerID": "A1", "asin": "B02", "reviewerName": "Ann"}]
    hin = load(tmp_path, meta_Books__jsonl=books, reviews_Books__jsonl=reviews)
    assert shape(hin) == {
        "reviewer -reviews_Books-> asin": 1,
        "asin -categories-> category": 3,
        "asin -also_buy-> asin": 3,
    }
    assert hin.nodes["asin"].names.to_pylist() == ["Book 0", "Book 1", "Book 2"]


def test_a_key_that_no_two_records_share_is_an_attribute(tmp_path: Path) -> None:
    records = [{"id": n, "imdb_id": f"tt{n}", "studio_id": n % 2, "parent_id": max(n - 1, 1)} for n in range(1, 5)]
    hin = load(tmp_path, movies__jsonl=records)
    assert shape(hin) == {"movie -studio_id-> studio": 4, "movie -parent_id-> movie": 4}
    assert "imdb_id of movie is an attribute: no two records share a value" in hin.notes


def test_labels_of_nodes_are_names_unless_they_recur(tmp_path: Path) -> None:
    edges = [{"from": 1, "to": 2, "label": "knows"}, {"from": 2, "to": 3, "label": "likes"}]
    people = [{"id": n, "label": name} for n, name in ((1, "Ann"), (2, "Bob"), (3, "Cem"))]
    hin = load(tmp_path, g__json={"nodes": people, "edges": edges})
    assert shape(hin) == {"entity -knows-> entity": 1, "entity -likes-> entity": 1}
    assert hin.nodes["entity"].names.to_pylist() == ["Ann", "Bob", "Cem"]
    kinds = [{"id": n, "label": kind} for n, kind in ((1, "Person"), (2, "Person"), (3, "City"), (4, "City"))]
    assert shape(load(tmp_path, g__json={"nodes": kinds, "edges": edges})) == {
        "Person -knows-> Person": 1, "Person -likes-> City": 1,
    }  # fmt: skip


def test_words_that_end_in_id_are_no_foreign_keys(tmp_path: Path) -> None:
    records = [{"id": n, "valid": "yes", "paid": 1, "venueId": 7.0, "tags": ["x"]} for n in range(3)]
    hin = load(tmp_path, papers__jsonl=records)
    assert shape(hin) == {"paper -tags-> tag": 3, "paper -venueId-> venue": 3}
    assert hin.nodes["venue"].ids.to_pylist() == [7]
    assert hin.nodes["paper"].attributes.column_names == ["valid", "paid"]


def test_one_value_stands_for_a_list_of_one(tmp_path: Path) -> None:
    movies = [{"id": 1, "tags": ["a", "b"]}, {"id": 2, "tags": "b"}]
    assert shape(load(tmp_path, movies__jsonl=movies)) == {"movie -tags-> tag": 3}
    books = [{"id": 1, "author": {"id": "x"}}, {"id": 2, "author": "x"}]
    assert shape(load(tmp_path, movies__jsonl=books)) == {"movie -author-> author": 2}
    books[1]["author"] = "y"
    hin = load(tmp_path, movies__jsonl=books)
    assert "author of movie leads to nodes in some records and is an attribute in others" in hin.notes


def test_an_id_given_twice_is_left_out(tmp_path: Path) -> None:
    records = [work(n, [1], ids={"openalex": f"https://openalex.org/W{n}", "doi": f"10.1/{n}"}) for n in range(2)]
    hin = load(tmp_path, works__jsonl=records)
    assert shape(hin) == {"work -authorships.author-> author": 2}
    assert hin.nodes["work"].attributes.column_names == ["ids.doi"]


# ---- Nodes and edges -----------------------------------------------------------------------------
NODES = [
    {"id": "G1", "category": ["biolink:NamedThing", "biolink:Gene"], "name": "A1BG"},
    {"id": "G2", "category": "biolink:Gene"},
    {"id": "D1", "category": ["biolink:Disease"], "name": "hives"},
]
EDGES: list[dict[str, Any]] = [
    {"id": "e1", "subject": "G1", "predicate": "biolink:causes", "object": "D1", "weight": 2.5, "source": "x"},
    {"id": "e2", "subject": "G2", "predicate": "biolink:causes", "object": "D1"},
]


@pytest.mark.parametrize("as_lines", [True, False])
def test_kgx(tmp_path: Path, as_lines: bool) -> None:
    files = (
        {"kg_nodes__jsonl": NODES, "kg_edges__jsonl": EDGES}
        if as_lines
        else {"kg__json": {"nodes": NODES, "edges": EDGES}}
    )
    hin = load(tmp_path, **files)
    assert shape(hin) == {"Gene -causes-> Disease": 2}
    assert next(iter(hin.matrices.values())).toarray().tolist() == [[2.5], [1.0]]
    assert hin.nodes["Gene"].names.to_pylist() == ["A1BG", None]
    (relation,) = hin.matrices
    assert edge_kinds(hin.edge_tables, relation) == {"source": "text"}
    assert hin.edge_tables[relation].weights.tolist() == [2.5, 1.0]


def test_objects_in_lists_describe_their_edges(tmp_path: Path) -> None:
    works = [
        {"id": f"W{n}", "authorships": [
            {"author_position": "first", "is_corresponding": n == 1, "author": {"id": "A1"}, "raw": ["x"]},
            {"author_position": "last", "author": {"id": f"A{n + 1}"}, "institutions": [{"id": "I1", "country": "DE"}]},
        ], "counts": [{"year": 2020, "cited": n}]}
        for n in (1, 2)
    ]  # fmt: skip
    hin = load(tmp_path, works__json=works)
    tables = {relation.name: table.attributes.to_pydict() for relation, table in hin.edge_tables.items()}
    assert tables == {
        "authorships.author": {
            "author_position": ["first", "last"] * 2, "is_corresponding": [True, None, False, None]
        },
        "authorships.institutions": {"author_position": ["last", "last"]},
    }  # fmt: skip
    assert hin.nodes["institution"].attributes.to_pydict() == {"country": ["DE"]}
    (note,) = (note for note in hin.notes if note.startswith("left out"))
    assert "work.counts.cited, work.counts.year" in note
    assert "author_position" not in note


def test_hetionet(tmp_path: Path) -> None:
    content = {
        "metanode_kinds": ["Gene", "Disease"], "kind_to_abbrev": {"Gene": "G"},
        "nodes": [
            {"kind": kind, "identifier": n, "name": f"{kind} {n}", "data": {"chromosome": n}}
            for kind in ("Gene", "Disease") for n in (1, 2)
        ],
        "edges": [
            {"source_id": ["Gene", 1], "target_id": ["Disease", 2], "kind": "causes", "direction": "forward"},
            {"source_id": ["Gene", 1], "target_id": ["Gene", 2], "kind": "covaries", "direction": "both",
             "data": {"unbiased": True, "pubmed_ids": [1, 2]}},
        ],
    }  # fmt: skip
    hin = load(tmp_path, het__json__gz=json.dumps(content))
    assert shape(hin) == {"Gene -causes-> Disease": 1, "Gene -covaries- Gene": 2}
    assert hin.nodes["Gene"].attributes.to_pydict() == {"chromosome": [1, 2]}
    assert [table.attributes.to_pydict() for table in hin.edge_tables.values()] == [{"unbiased": [True]}]
    assert any("edges.pubmed_ids" in note for note in hin.notes)
    content["edges"].append({"source_id": ["Gene", 9], "target_id": ["Gene", 2], "kind": "x", "direction": "both"})  # type: ignore[attr-defined]
    with pytest.raises(SourceError, match="item 3 of edges: the edge leads to '9', which is not the id of a node"):
        load(tmp_path, het__json__gz=json.dumps(content))


def test_edges_alone_join_nodes_of_one_type(tmp_path: Path) -> None:
    hin = load(tmp_path, follows__jsonl=[{"source": 1, "target": 2}, {"source": 2, "target": 3}])
    assert shape(hin) == {"entity -follows-> entity": 2}


def test_neo4j_export(tmp_path: Path) -> None:
    people = [
        {"type": "node", "id": str(n), "labels": ["Person"], "properties": {"name": f"P{n}", "born": n}} for n in (1, 2)
    ]
    ends = [{"id": str(n), "labels": ["Person"]} for n in (1, 2)]
    knows = {"id": "0", "type": "relationship", "label": "KNOWS", "start": ends[0], "end": ends[1]}
    hin = load(tmp_path, all__json=lines([*people, knows]))
    assert shape(hin) == {"Person -KNOWS-> Person": 1}
    assert hin.nodes["Person"].names.to_pylist() == ["P1", "P2"]
    assert hin.nodes["Person"].attributes.to_pydict() == {"born": [1, 2]}


def test_node_link(tmp_path: Path) -> None:
    nx = pytest.importorskip("networkx")
    graph = nx.MultiDiGraph()
    graph.add_node("Ann", type="person")
    graph.add_node("Bonn", type="city")
    graph.add_edge("Ann", "Bonn", relation="lives_in", weight=2.0)
    content = nx.node_link_data(graph, edges="links")
    assert shape(load(tmp_path, graph__json=content)) == {"person -lives_in-> city": 1}
    content["links"][0]["target"] = "Ulm"
    with pytest.raises(SourceError, match="an edge leads to 'Ulm', which is not the id of a node"):
        load(tmp_path, graph__json=content)


# ---- Refused -------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"a__jsonl": '{"id": 1}\n{"id": 2\n'}, "a.jsonl, line 2: not valid JSON: Expecting"),
        ({"a__json": '[\n{"id": 1},\n{"id": }\n]'}, "a.json, line 3: not valid JSON: Expecting value"),
        ({"a__json": '[{"id": 1}'}, "a.json, line 1: not valid JSON: expected ']'"),
        ({"a__json": '[{"id": 1}] [2]'}, "expected the end of the document"),
        ({"a__json": "7"}, "a.json holds '7'; a graph in JSON is an object"),
        ({"a__json": " "}, "a.json holds nothing"),
        ({"a__json": "[1, 2]"}, "a.json, item 1: expected an object with keys, got '1'"),
        ({"a__jsonl": b'{"id": "\xff"}\n'}, "is not UTF-8 text"),
        ({"a__json": '{"id": 1, "name": "x", "tags": [{"id": 2}]}'}, "holds one record"),
        ({"a__json": '{"a": {"b": 1}, "c": 2}'}, "has no records: its keys are a, c"),
        ({"a__jsonl": lines([{"year": 1}, {"year": 2}])}, "a.jsonl, line 1: the records have no id; they have year"),
        ({"a__jsonl": lines([{"id": 1}, {"id": 2}])}, "no key leads from one record to another"),
        ({"a__jsonl": lines([{"id": 1, "b": ["x"]}, {"id": 1, "b": ["x"]}])}, "line 2: node id '1' is repeated"),
        ({"a__jsonl": lines([{"id": n} for n in range(1499)] + [{"it": 1}])}, "line 1500: every record needs its id"),
        ({"a__jsonl": lines([{"source": 1, "target": 2, "weight": "x"}])}, "line 1: weight 'x' is not allowed"),
        ({"a__jsonl": lines([{"source": 1, "target": 2, "weight": float("nan")}])}, "weight nan is not allowed"),
        ({"a__jsonl": lines([{"source": 1, "target": [2, 3, 4]}])}, "line 1: 'target' is .* the end of an edge is an"),
        ({"a__jsonl": lines([{"from": "a@b.c", "to": ["d@e.f", "g@h.i"]}])}, "line 1: 'to' is .* the end of an edge"),
        ({"a__jsonl": lines([{"source": "x" * 600, "target": "y"}])}, "line 1: 'source' is .* the end of an edge"),
        ({"n_nodes__jsonl": lines([{"id": 1}]), "n_edges__jsonl": lines([{"source": 1, "target": 2}])}, "leads to '2'"),
        ({"a__json": '{"@context": {}, "@graph": [{"@id": "a", "@type": "b"}]}'}, "is JSON-LD, which is RDF; give"),
        ({"a__json": '{"@context": {}, "@id": "http://a.b/c"}'}, "is JSON-LD, which is RDF"),
        ({"a__jsonl": lines([{"@id": "a", "@type": "b", "c": ["d"]}])}, "is JSON-LD, which is RDF"),
        ({"a__json": "[" * 100_000}, "nested too deeply"),
        ({"a__jsonl": '{"a":' * 100_000}, "nested too deeply"),
        ({"a__jsonl": '{"id": ' + "9" * 5000 + "}\n"}, "cannot be read as JSON"),
        ({"a__jsonl": lines([{"id": 1}]), "b__nt": ""}, r"has RDF \(b.nt\) and JSON \(a.jsonl\)"),
    ],
)  # fmt: skip
def test_what_is_not_recognised_is_refused_in_one_sentence(tmp_path: Path, files: dict[str, Any], message: str) -> None:
    with pytest.raises(NeuPathError, match=message) as caught:
        npth.load(write(tmp_path / "g", **files))
    assert "\n" not in str(caught.value)


def test_a_graph_toml_for_other_sources_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "g", movies__jsonl=lines([{"id": 1, "tags": ["a"]}])) / "movies.jsonl"
    for text, words in (('[rdf]\nlanguage = "de"\n', r"\[rdf\]"), ('[triples]\ntype = "x"\n', r"\[triples\]")):
        (tmp_path / "graph.toml").write_text(text)
        with pytest.raises(SourceError, match=f"the graph.toml has .*{words}, which describe"):
            npth.load(path, config=tmp_path / "graph.toml")


def test_values_cut_by_the_end_of_a_block_are_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = [work(n, [n % 7, 123456], note='é\n"\\ x' * (n % 5), n=[10**n, 1.5e-7, True, None]) for n in range(40)]
    folder = write(tmp_path / "g", works__json=json.dumps({"a": 12345, "works": records, "b": "text"}))
    expected = npth.load(folder)
    monkeypatch.setattr("neupath.io.formats.json_values._BLOCK", 7)
    hin = npth.load(folder)
    assert shape(hin) == shape(expected)
    assert hin.nodes["work"].attributes.equals(expected.nodes["work"].attributes)


def test_ids_that_look_empty_are_noted_and_kept_or_changed_in_the_file(tmp_path: Path) -> None:
    records = [{"id": f"f{row}", "actors": [{"id": "N/A" if row % 2 else f"a{row % 3}"}]} for row in range(6)]
    (note,) = [note for note in load(tmp_path, films__jsonl=records).notes if "N/A" in note]
    assert "the id 'N/A' (3 edges) looks like an empty cell; missing_ids = [] in graph.toml keeps it" in note
    write(tmp_path / "g", graph__toml="missing_ids = []")
    assert not [note for note in npth.load(tmp_path / "g").notes if "N/A" in note]
    write(tmp_path / "g", graph__toml='missing_ids = ["N/A"]')
    with pytest.raises(SourceError, match=r"missing_ids = \['N/A'\], which is for ids in tables and databases"):
        npth.load(tmp_path / "g")
