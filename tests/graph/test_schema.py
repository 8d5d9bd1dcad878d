import pytest

from neupath import Relation, Schema
from neupath.errors import SchemaError


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
