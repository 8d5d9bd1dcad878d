"""Hits that look up their ids and names when these are read equal those that are given them."""

import copy
import pickle
from collections.abc import Sequence
from dataclasses import FrozenInstanceError, replace

import pyarrow as pa
import pytest

import neupath as npth
from neupath.engine.hits import Hits, Search, hits_of_rows
from neupath.graph.nodes import NodeMatch, Nodes

NODES = Nodes("movie", pa.array([7, 8, 9]), pa.array(["Heat", None, "Alien"]))
GIVEN = Hits(7, "MAM", "pathsim", True, (9, 8), ("Alien", None), (0.5, 0.25), "2 of 2 movie nodes are related")


class CountingNodes:
    """Nodes that count how often they are asked for ids and for names."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def ids_at(self, rows: Sequence[int]) -> tuple[npth.graph.nodes.Id, ...]:
        self.asked.append("ids")
        return NODES.ids_at(rows)

    def names_at(self, rows: Sequence[int]) -> tuple[str | None, ...]:
        self.asked.append("names")
        return NODES.names_at(rows)


def looked_up(nodes: Nodes | CountingNodes = NODES, k: int = 2, eligible: int = 2) -> Hits:
    search = Search("MAM", "pathsim", True, nodes, "movie", eligible, k)
    return hits_of_rows(7, search, [2, 1], [0.5, 0.25])


def test_they_equal_given_ones() -> None:
    given = replace(GIVEN, shortfall=None)
    assert looked_up() == given
    assert hash(looked_up()) == hash(given)
    assert repr(looked_up()) == repr(given)
    assert looked_up().to_json() == given.to_json()
    assert looked_up().to_dict() == given.to_dict()
    assert looked_up().to_arrow() == given.to_arrow()
    assert list(looked_up()) == list(given)
    assert replace(looked_up(), query=1) == replace(given, query=1)


def test_they_ask_once_and_only_for_what_is_read() -> None:
    nodes = CountingNodes()
    hits = looked_up(nodes)
    assert (len(hits), hits.query, hits.scores, hits.metapath, hits.measure, hits.exact) == (
        2, 7, (0.5, 0.25), "MAM", "pathsim", True,
    )  # fmt: skip
    assert nodes.asked == []
    assert hits.ids == hits.ids == (9, 8)
    assert nodes.asked == ["ids"]
    assert hits.names == hits.names == ("Alien", None)
    assert nodes.asked == ["ids", "names"]


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda hits: pickle.loads(pickle.dumps(hits))])
def test_copies_hold_what_was_looked_up_and_no_graph(copied) -> None:
    hits = copied(looked_up())
    assert hits == looked_up()
    assert "_search" not in vars(hits)


def test_they_are_frozen_and_have_no_other_attributes() -> None:
    hits = looked_up()
    with pytest.raises(FrozenInstanceError):
        hits.ids = ()  # type: ignore[misc]
    with pytest.raises(AttributeError, match="'Hits' object has no attribute 'labels'"):
        _ = hits.labels  # type: ignore[attr-defined]
    assert GIVEN.shortfall == "2 of 2 movie nodes are related"


def test_the_shortfall_is_said_when_it_is_read() -> None:
    assert looked_up().shortfall is None
    assert (
        looked_up(k=3, eligible=9).shortfall == "2 of 9 movie nodes are related by this path; the others have score 0"
    )


def test_ids_names_hits_and_matches_are_found_in_hits() -> None:
    hits = looked_up()
    assert all(node in hits for node in (9, "9", 8, "Alien", hits[1], NodeMatch("movie", 9, "Alien", "exact", 0)))
    assert not any(node in hits for node in (7, "7", "Heat", None, NodeMatch("movie", 7, "Heat", "exact", 0)))
