"""JSON records, and nodes with edges: types, relations and attributes by rule; what is not recognised is refused.

The corpus has the layouts of real projects, from OpenAlex to Hetionet; here are the rules behind them.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import neupath as npth
from neupath.errors import SourceError
from neupath.io import import_store
from neupath.store import open_store
from tests.tables import check_read, shape, write


def lines(records: Sequence[Any]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def texts(files: Mapping[str, Any]) -> dict[str, str | bytes]:
    """Return files as texts: lists as lines where the name says so, and other values as documents."""
    return {name: _as_text(name, content) for name, content in files.items()}


def load(folder: Path, **files: Any) -> npth.HIN:
    return npth.load(write(folder / "g", **texts(files)))


def _as_text(name: str, content: Any) -> str | bytes:
    if isinstance(content, str | bytes):
        return content
    return lines(content) if "jsonl" in name or "ndjson" in name else json.dumps(content, indent=1)


URL = "https://openalex.org/"


def work(number: int, authors: Sequence[int], **more: Any) -> dict[str, Any]:
    return {
        "id": f"{URL}W{number}",
        "display_name": f"Work {number}",
        "authorships": [
            {"position": place, "author": {"id": f"{URL}A{author}", "display_name": f"Author {author}"}}
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
    assert list(hin.edge_kinds(table.relation)) == ["position"]
    assert npth.PathSim("work-author-work").fit(hin).top_k("Work 2").names == ("Work 1",)


@pytest.mark.parametrize("layout", ["array", "results", "lines", "several"])
def test_documents_hold_the_same_records(tmp_path: Path, layout: str) -> None:
    records = [work(1, [1, 2]), work(2, [2])]
    content = {
        "array": records,
        "results": {"meta": {"count": 2}, "results": records},
        "lines": lines(records),
        "several": {"works": records, "authors": [{"id": f"{URL}A1", "display_name": "Ann"}]},
    }[layout]
    hin = load(tmp_path, works__json=content)
    assert shape(hin) == {"work -authorships.author-> author": 3}
    assert hin.nodes["author"].names.to_pylist()[0] == ("Ann" if layout == "several" else "Author 1")
    assert ("works.json: meta left out, which is not a list of records" in hin.notes) == (layout == "results")


TOPICS = [{"id": f"https://x.org/T{n}", "name": f"T{n}", "field": {"id": "https://x.org/F1"}} for n in range(3)]
PEOPLE = [{"id": n, "label": name} for n, name in ((1, "Ann"), (2, "Bob"), (3, "Cem"))]
KINDS = [{"id": n, "label": kind} for n, kind in ((1, "Person"), (2, "Person"), (3, "City"), (4, "City"))]
LINKS = [{"from": 1, "to": 2, "label": "knows"}, {"from": 2, "to": 3, "label": "likes"}]
RULES: dict[str, tuple[dict[str, Any], dict[str, int], Mapping[str, Any], Sequence[str]]] = {
    "a list of ids is a relation to their type": (
        {"works__jsonl": [
            work(0, [1], cited=[]), work(1, [1]), work(2, [1], cited=[f"{URL}W1", f"{URL}W77"])
        ]},
        {"work -authorships.author-> author": 3, "work -cited-> work": 2},
        {"work.ids": [f"{URL}W{n}" for n in (0, 1, 2, 77)]},
        ["cited of work is a relation: its values are ids of type work; 1 of them"],
    ),
    "ids that no record has are known by how they are written": (
        {"works__jsonl": [work(0, [1]), work(1, [1], cited=[f"{URL}W8", f"{URL}W9"])]},
        {"work -authorships.author-> author": 2, "work -cited-> work": 2}, {}, [],
    ),
    "a list of texts is a relation to nodes called so": (
        {"movies__jsonl": [
            {"id": 1, "title": "Up", "genres": ["Comedy", "Drama"], "ratings": [3, 4]},
            {"id": 2, "title": "Heat", "genres": ["Drama"], "similar": [1, 7], "movie_ids": [1]},
        ]},
        {"movie -genres-> genre": 3, "movie -similar-> movie": 2, "movie -movie_ids-> movie": 1},
        {"movie.ids": [1, 2, 7]}, ["movie.ratings"],
    ),
    "types that share IRIs are one type, and facts of nodes that are mentioned several times count once": (
        {"works__jsonl": [
            {"id": "https://x.org/W1", "primary_topic": TOPICS[0], "topics": TOPICS[:2]},
            {"id": "https://x.org/W2", "primary_topic": TOPICS[2], "topics": TOPICS[1:]},
        ]},
        {"work -primary_topic-> topic": 2, "work -topics-> topic": 4, "topic -field-> field": 3}, {},
        ["primary_topic and topic share ids and are one type, topic"],
    ),
    "values that differ between mentions are no attributes": (
        {"posts__jsonl": [
            {"id": f"p{n}", "tags": [{"id": "t1", "name": "red", "score": n / 3, "code": 7}]} for n in range(2)
        ]},
        {"post -tags-> tag": 2}, {"tag.attributes": {"code": [7]}}, ["tag.score"],
    ),
    "a table by words is left out": (
        {"works__jsonl": [work(n, [1], index={f"word{n}_{k}": [k, "k"][k % 2] for k in range(200)}) for n in range(3)]},
        {"work -authorships.author-> author": 3}, {"work.attributes": {}}, ["nested lists, and values that differ"],
    ),
    "a record describes what others mention": (
        {
            "authors__jsonl": [{"id": f"{URL}A1", "display_name": "Ann Ash", "born": 1970}],
            "works__jsonl": [work(1, [1, 2])],
        },
        {"work -authorships.author-> author": 2},
        {"author.names": ["Ann Ash", "Author 2"], "author.attributes": {"born": [1970, None]}}, [],
    ),
    "keys of objects in lists are relations": (
        {
            "orders__jsonl": [
                {"id": 1, "items": [{"product_id": 5, "count": 2}, {"product_id": 6}], "links": [{"url": "http://a"}]},
                {"id": 2, "items": [{"product_id": 5}], "grants": [{"funder": "https://x.org/F1"}]},
            ],
            "funders__jsonl": [{"id": "https://x.org/F1", "name": "Fund"}],
        },
        {"order -items.product_id-> product": 3, "order -grants.funder-> funder": 1}, {},
        ["order.items.count, order.links.url"],
    ),
    "records without an id are edges between their foreign keys": (
        {
            "yelp_user__json": lines([{"user_id": "u1", "name": "Ann"}, {"user_id": "u2", "name": "Bob"}]),
            "yelp_business__json": lines([{"business_id": "b1", "name": "Tea"}, {"business_id": "b2"}]),
            "yelp_tip__json": lines([{"user_id": "u2", "business_id": "b1", "text": "go", "date": "2018-07-07"}] * 2),
        },
        {"user -yelp_tip-> business": 1}, {"user.names": ["Bob", "Ann"]},
        ["yelp_tip.json: its records have no id and are edges between user_id, business_id"],
    ),
    "articles have their numbers as ids": (
        {
            "meta_Books__jsonl": [
                {"asin": f"B0{n}", "title": f"Book {n}", "categories": ["Books"], "also_buy": ["B01"]} for n in range(3)
            ],
            "reviews_Books__jsonl": [{"reviewerID": "A1", "asin": "B02", "reviewerName": "Ann"}],
        },
        {"reviewer -reviews_Books-> asin": 1, "asin -categories-> category": 3, "asin -also_buy-> asin": 3},
        {"asin.names": ["Book 0", "Book 1", "Book 2"], "reviewer.names": ["Ann"]}, [],
    ),
    "a key that no two records share is an attribute": (
        {"movies__jsonl": [
            {"id": n, "imdb_id": f"tt{n}", "studio_id": n % 2, "parent_id": max(n - 1, 1)} for n in range(1, 5)
        ]},
        {"movie -studio_id-> studio": 4, "movie -parent_id-> movie": 4}, {},
        ["imdb_id of movie is an attribute: no two records share a value"],
    ),
    "labels of nodes are names": (
        {"g__json": {"nodes": PEOPLE, "edges": LINKS}},
        {"entity -knows-> entity": 1, "entity -likes-> entity": 1}, {"entity.names": ["Ann", "Bob", "Cem"]}, [],
    ),
    "labels of nodes that recur are types": (
        {"g__json": {"nodes": KINDS, "edges": LINKS}}, {"Person -knows-> Person": 1, "Person -likes-> City": 1}, {}, [],
    ),
    "words that end in id are no foreign keys": (
        {"papers__jsonl": [{"id": n, "valid": "yes", "paid": 1, "venueId": 7.0, "tags": ["x"]} for n in range(3)]},
        {"paper -tags-> tag": 3, "paper -venueId-> venue": 3},
        {"venue.ids": [7], "paper.attributes": {"valid": ["yes"] * 3, "paid": [1] * 3}}, [],
    ),
    "one value stands for a list of one": (
        {"movies__jsonl": [{"id": 1, "tags": ["a", "b"]}, {"id": 2, "tags": "b"}]}, {"movie -tags-> tag": 3}, {}, [],
    ),
    "an id stands for an object": (
        {"books__jsonl": [{"id": 1, "author": {"id": "x"}}, {"id": 2, "author": "x"}]},
        {"book -author-> author": 2}, {}, [],
    ),
    "other texts than ids stay attributes": (
        {"books__jsonl": [{"id": 1, "author": {"id": "x"}}, {"id": 2, "author": "y"}]},
        {"book -author-> author": 1}, {"book.attributes": {"author": [None, "y"]}},
        ["author of book leads to nodes in some records and is an attribute in others"],
    ),
    "an id given twice is left out": (
        {"works__jsonl": [work(n, [1], ids={"openalex": f"{URL}W{n}", "doi": f"10.1/{n}"}) for n in range(2)]},
        {"work -authorships.author-> author": 2}, {"work.attributes": {"ids.doi": ["10.1/0", "10.1/1"]}}, [],
    ),
    "edges alone join nodes of one type": (
        {"follows__jsonl": [{"source": 1, "target": 2}, {"source": 2, "target": 3}]},
        {"entity -follows-> entity": 2}, {}, [],
    ),
    "edges may name the types of their ends, and have no direction": (
        {"het__json__gz": json.dumps({
            "nodes": [{"kind": kind, "identifier": n, "c": n} for n in (1, 2) for kind in ("Gene", "Disease")],
            "edges": [
                {"source_id": ["Gene", 1], "target_id": ["Disease", 2], "kind": "causes", "direction": "forward"},
                {"source_id": ["Gene", 1], "target_id": ["Gene", 2], "kind": "covaries", "direction": "both",
                 "data": {"unbiased": True, "pubmed_ids": [1, 2]}},
            ],
        })},
        {"Gene -causes-> Disease": 1, "Gene -covaries- Gene": 2},
        {"Gene.attributes": {"c": [1, 2]}, "covaries.attributes": {"unbiased": [True]}}, ["edges.pubmed_ids"],
    ),
}  # fmt: skip
"""A rule -> files, the edges that they hold, what else is to be seen of nodes and edges, and parts of notes."""


@pytest.mark.parametrize("rule", RULES)
def test_rules(tmp_path: Path, rule: str) -> None:
    files, edges, more, notes = RULES[rule]
    check_read(tmp_path / "g", texts(files), edges, {**more, "noted": notes})


def test_json_is_imported(tmp_path: Path) -> None:
    hin = load(tmp_path, works__jsonl=[work(1, [1, 2]), work(2, [2])])
    assert shape(open_store(import_store(tmp_path / "g", tmp_path / "store")).hin()) == shape(hin)


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


def test_weights_and_categories_of_kgx(tmp_path: Path) -> None:
    nodes = [
        {"id": "G1", "category": ["biolink:NamedThing", "biolink:Gene"], "name": "A1BG"},
        {"id": "D1", "category": "biolink:Disease"},
    ]
    edge = {"id": "e", "subject": "G1", "predicate": "biolink:causes", "object": "D1", "weight": 2.5, "source": "x"}
    hin = load(tmp_path, kg__json={"nodes": nodes, "edges": [edge]})
    assert shape(hin) == {"Gene -causes-> Disease": 1}
    (relation,) = hin.matrices
    assert hin.edge_kinds(relation) == {"source": "text"}
    assert hin.edge_tables[relation].weights.tolist() == [2.5]


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
        ({"n_nodes__jsonl": lines([{"id": 1}]), "n_edges__jsonl": lines([{"source": 1, "target": 2}])},
         "n_edges.jsonl, line 1: the edge leads to '2', which is not the id of a node"),
        ({"a__json": {"multigraph": False, "nodes": [{"id": 1}], "links": [{"source": 1, "target": "Ulm"}]}},
         "an edge leads to 'Ulm', which is not the id of a node"),
        ({"a__jsonl": lines([{"id": f"q{n}", "b": [{"id": 1, "title": f"first {n}"}]} for n in range(2)])},
         "b 1 is called 'first 0' and 'first 1' in different records"),
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
    assert "\n" not in check_read(tmp_path, texts(files), message)


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
