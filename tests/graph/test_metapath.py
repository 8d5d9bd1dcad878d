"""Schemas, and meta-paths over them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neupath.errors import MetaPathError, SchemaError
from neupath.graph.metapath import MetaPath, Relation, Schema, enumerate_metapaths
from tests.graphs import RELATIONS

SCHEMA = Schema(
    ("author", "paper", "venue", "Side Effect", "affiliation"),
    (
        Relation("author", "writes", "paper"),
        Relation("author", "reviews", "paper"),
        Relation("paper", "cites", "paper"),
        Relation("paper", "in", "venue"),
        Relation("venue", "near", "venue", directed=False),
        Relation("author", "at", "affiliation"),
        Relation("paper", "venue", "Side Effect"),  # a relation called like a type
    ),
)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("author-paper-venue-paper-author", "author-paper-venue-paper-author"),
        (" Author - PAPER ", "author-paper"),
        ("APVPA", "author-paper-venue-paper-author"),
        ("apa", "author-paper-author"),
        ("paper -cites-> paper <-cites- paper", "paper -cites-> paper <-cites- paper"),
        ("paper-cites->paper<-cites-paper", "paper -cites-> paper <-cites- paper"),
        ("paper -> paper", "paper -cites-> paper"),
        ("paper <- paper", "paper <-cites- paper"),
        ("author -writes- paper", "author -writes-> paper"),
        ("author-writes->paper", "author -writes-> paper"),
        ("author -reviews|writes-> paper", "author-paper"),
        ("paper<-WRITES-author", "paper <-writes- author"),
        ("venue-venue", "venue-venue"),
        ("venue -near- venue", "venue-venue"),
        ("venue -near-> venue", "venue-venue"),
        ("paper-side effect-paper", "paper-Side Effect-paper"),
        ("paper-venue-paper", "paper-venue-paper"),
        ("paper -venue-> Side Effect", "paper-Side Effect"),
    ],
)
def test_reads_and_prints(text: str, canonical: str) -> None:
    path = MetaPath.parse(SCHEMA, text)
    assert str(path) == canonical
    assert MetaPath.parse(SCHEMA, canonical) == path


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the meta-path is empty"),
        (
            "author",
            "is one type; a meta-path needs at least one step, and one step from author leads to paper, affiliation",
        ),
        ("author-paper-", "step 2: a node type is missing; one step from paper leads to author, paper, venue"),
        ("-paper", "at its start: a node type is missing; it can start at author, paper"),
        ("author-paper-venu", "step 2: no node type 'venu' .* from paper leads to .*; did you mean 'venue'"),
        (
            "author-venue",
            "step 1: no relation joins author and venue; one step from author leads to paper, affiliation",
        ),
        ("paper-paper", "step 1: paper to paper can be walked in two directions; say which: 'paper -cites-> paper' or"),
        ("PP", "can be walked in two directions"),
        ("paper -citez-> paper", "step 1: no relation 'citez' at paper .*; did you mean 'cites'"),
        ("paper <-foo- paper", "step 1: no relation 'foo' at paper"),
        ("paper <-in- venue", "step 1: in does not lead that way from paper to venue; possible is 'paper -in-> venue'"),
        ("author -cites-> paper", "no relation 'cites' at author"),
        ("AXA", "letter 2, 'X', is not the initial of a node type"),
        ("VA", "no types with these initials are joined in this order"),
        ("A", "'A' could be author or affiliation; write the one you mean"),
        ("author paper", "has no dashes; write node types joined by dashes"),
        ("A" * 2000, "has no dashes"),
    ],
)
def test_errors_point_at_the_step(text: str, message: str) -> None:
    with pytest.raises(MetaPathError, match=message):
        MetaPath.parse(SCHEMA, text)


def test_initials_are_read_by_what_is_joined() -> None:
    relations = (
        Relation("class", "has", "method"),
        Relation("class", "in", "module"),
        Relation("module", "on", "chart"),
    )
    schema = Schema(("class", "method", "module", "chart"), relations)
    with pytest.raises(
        MetaPathError, match="could be class-method-class or class-module-class or class-module-chart or"
    ):
        MetaPath.parse(schema, "CMC")
    only_one = Schema(("author", "affiliation", "paper"), (Relation("author", "writes", "paper"),))
    assert str(MetaPath.parse(only_one, "APA")) == "author-paper-author"


def test_a_long_ambiguous_path_is_answered_at_once() -> None:
    schema = Schema(
        ("class", "method", "module"), (Relation("class", "has", "method"), Relation("class", "in", "module"))
    )
    with pytest.raises(MetaPathError, match="could be"):
        MetaPath.parse(schema, "CM" * 30)


def test_reverse_half_and_symmetry() -> None:
    path = MetaPath.parse(SCHEMA, "paper -cites-> paper-author")
    assert str(path.reversed()) == "author-paper <-cites- paper"
    assert path.reversed().reversed() == path
    assert not path.is_symmetric
    whole = MetaPath.parse(SCHEMA, "author-paper-author")
    assert str(whole.half()) == "author-paper"
    assert whole.is_round_trip
    assert MetaPath.parse(SCHEMA, "venue-venue").is_symmetric
    assert not MetaPath.parse(SCHEMA, "venue-venue").is_round_trip
    with pytest.raises(MetaPathError, match="its half needs a symmetric meta-path"):
        path.half()


def test_says_which_relations_a_step_follows() -> None:
    notes = MetaPath.parse(SCHEMA, "author-paper-venue-paper-author").all_relations_steps()
    assert notes == ["author-paper follows any of reviews, writes (one alone: 'author -writes-> paper')"]
    assert MetaPath.parse(SCHEMA, "paper-venue-paper").all_relations_steps() == []


def test_enumerates() -> None:
    schema = Schema(("a", "b"), (Relation("a", "r", "b"), Relation("a", "cites", "a")))
    assert [str(p) for p in enumerate_metapaths(schema, "a", 2)] == [
        "a-b-a",
        "a -cites-> a <-cites- a",
        "a <-cites- a -cites-> a",
    ]
    assert [str(p) for p in enumerate_metapaths(schema, "b", 2, symmetric=False)] == [
        "b-a",
        "b-a-b",
        "b-a -cites-> a",
        "b-a <-cites- a",
    ]
    with pytest.raises(MetaPathError, match="max_length is 1, but a symmetric meta-path has at least 2 steps"):
        list(enumerate_metapaths(schema, "a", 1))
    with pytest.raises(SchemaError, match="no node type 'z'"):
        list(enumerate_metapaths(schema, "z", 2))


@given(st.data())
def test_every_enumerated_path_prints_and_reads_back(data: st.DataObject) -> None:
    schema = Schema(("a", "b", "c"), RELATIONS)
    start = data.draw(st.sampled_from("abc"))
    path = data.draw(st.sampled_from(list(enumerate_metapaths(schema, start, 3, symmetric=False))))
    assert MetaPath.parse(schema, str(path)) == path
    assert path.reversed().reversed() == path
    assert len(path.node_types) == len(path) + 1


@given(st.text(alphabet="abcrst-<>|_ cites", max_size=30))
def test_any_text_is_read_or_refused_with_a_sentence(text: str) -> None:
    schema = Schema(("a", "b", "c"), RELATIONS)
    try:
        path = MetaPath.parse(schema, text)
    except MetaPathError as error:
        assert len(str(error)) > 20
    else:
        assert MetaPath.parse(schema, str(path)) == path


def test_types_with_dashes_print_with_relations() -> None:
    schema = Schema(("a", "b", "a-b"), (Relation("a", "r", "b"), Relation("a-b", "s", "a")))
    for path in enumerate_metapaths(schema, "a", 2, symmetric=False):
        assert MetaPath.parse(schema, str(path)) == path


def test_a_step_over_a_directed_and_an_undirected_relation_reads_back() -> None:
    schema = Schema(("u",), (Relation("u", "friend", "u", directed=False), Relation("u", "follows", "u")))
    path = MetaPath.parse(schema, "u -friend|follows-> u")
    assert str(path) == "u -friend|follows-> u"
    assert MetaPath.parse(schema, str(path)) == path
    assert MetaPath.parse(schema, str(path.reversed())) == path.reversed()


def test_steps_must_join() -> None:
    one, other = MetaPath.parse(SCHEMA, "author-paper"), MetaPath.parse(SCHEMA, "venue-venue")
    with pytest.raises(MetaPathError, match="a step to 'paper' cannot be followed by one from 'venue'"):
        MetaPath(SCHEMA, one.steps + other.steps)
    with pytest.raises(MetaPathError, match="at least one step"):
        MetaPath(SCHEMA, ())


# ---- Schema --------------------------------------------------------------------------------------
def test_links_go_both_ways_and_an_undirected_relation_goes_one() -> None:
    schema = Schema(("a", "b"), (Relation("a", "r", "b"), Relation("b", "near", "b", directed=False)))
    assert [(link.relation.name, link.reverse) for link in schema.links_from("b")] == [("r", True), ("near", False)]
    assert schema.neighbours("b") == ("a", "b")
    assert schema.links("a", "a") == ()


def test_types_are_found_in_any_case_where_one_fits() -> None:
    schema = Schema(("Gene", "Side Effect"), ())
    assert schema.node_type("side effect") == "Side Effect"
    with pytest.raises(
        SchemaError, match=r"no node type 'genes' in this graph \(it has Gene, Side Effect\); did you mean 'Gene'"
    ):
        schema.node_type("genes")
    with pytest.raises(SchemaError, match="no node type 'X'"):
        Schema(("Xa", "xb"), ()).node_type("X")


def test_letters() -> None:
    schema = Schema(("author", "affiliation", "paper"), (), {"F": "affiliation"})
    assert schema.types_of_letter("a") == ("author", "affiliation")
    assert schema.types_of_letter("F") == ("affiliation",)
    assert schema.types_of_letter("z") == ()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Schema(("a", "a"), ()), "the node type 'a' is given twice"),
        (
            lambda: Schema(("a",), (Relation("a", "r", "a"), Relation("a", "r", "a", False))),
            "'a -r-> a' is given twice",
        ),
        (lambda: Schema(("a",), (Relation("a", "r", "z"),)), "names the node type 'z', but the graph has a"),
        (lambda: Schema(("a",), (), {"AB": "a"}), "'AB' = 'a' must be one letter for one of the node types a"),
        (lambda: Relation("a", "r", "b", directed=False), "joins two different types, so it cannot be undirected"),
    ],
)
def test_refuses(make, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        make()
