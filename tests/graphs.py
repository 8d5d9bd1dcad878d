"""Small graphs that tests share: random ones with every kind of relation, and a shop."""

import json
import re
import unicodedata
from collections.abc import Mapping
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from neupath import HIN, load
from neupath.graph.hin import Edges
from neupath.graph.metapath import MetaPath, Relation, enumerate_metapaths
from neupath.graph.nodes import Nodes

RELATIONS = (
    Relation("a", "r", "b"),
    Relation("a", "s", "b"),  # a second relation between the same types
    Relation("c", "t", "b"),
    Relation("a", "cites", "a"),  # a type to itself, with a direction
    Relation("b", "near", "b", directed=False),  # and without
)


@st.composite
def hins(draw: st.DrawFn, *, weighted: bool = True) -> HIN:
    """A graph of up to 5 nodes per type, possibly none, with isolated nodes, loops, parallel edges and weights."""
    sizes = {node_type: draw(st.integers(0, 5), label=node_type) for node_type in "abc"}
    edges = []
    for relation in RELATIONS:
        pairs = st.tuples(
            st.integers(0, max(0, sizes[relation.source] - 1)), st.integers(0, max(0, sizes[relation.target] - 1))
        )
        possible = sizes[relation.source] and sizes[relation.target]
        chosen = draw(st.lists(pairs, max_size=8 if possible else 0), label=str(relation))
        number = st.sampled_from([0.0, 0.25, 0.5, 1.0, 2.0, 3.0]) if weighted else st.just(1.0)
        weights = draw(st.lists(number, min_size=len(chosen), max_size=len(chosen)))
        rows = np.array(chosen, dtype=np.int64).reshape(-1, 2)
        edges.append(Edges(relation, rows[:, 0], rows[:, 1], np.array(weights)))
    nodes = [Nodes(t, pa.array([f"{t}{i}" for i in range(n)], pa.string())) for t, n in sizes.items()]
    return HIN.build(nodes, edges)


@st.composite
def hins_with_path(draw: st.DrawFn, *, symmetric: bool, max_length: int = 4) -> tuple[HIN, MetaPath]:
    hin = draw(hins())
    start = draw(st.sampled_from("abc"))
    paths = list(enumerate_metapaths(hin.schema, start, max_length, symmetric=symmetric))
    paths += [hin.metapath(text) for text in ("a-b-a", "a-b-c-b-a") if start == "a"]  # steps over two relations
    return hin, draw(st.sampled_from(paths))


def graph_of(nodes: Mapping[str, Any], edges: Mapping[str, Any], **options: Any) -> HIN:
    """Build a graph from few words.

    Parameters
    ----------
    nodes
        A node type -> how many there are, whose ids are then row numbers, their ids, or `Nodes`.
    edges
        A relation such as `author -writes-> paper`, or `gene -near- gene` without a direction -> the rows of the ends,
        array of shape (edges, 2), or (edges, 3) with weights.
    options
        Of `HIN.build`.

    """
    made = []
    for node_type, each in nodes.items():
        ids = pa.array(np.arange(each) if isinstance(each, int) else each) if not isinstance(each, Nodes) else None
        made.append(each if ids is None else Nodes(node_type, ids))
    joined = []
    for text, rows in edges.items():
        words = re.fullmatch(r"(.+?) -(.+)-(>?) (.+)", text)
        assert words is not None, text
        relation = Relation(words[1], words[2], words[4], directed=bool(words[3]))
        table = np.asarray(rows)
        table = table if table.size else np.zeros((0, 2))
        sources, targets = table[:, 0].astype(np.int64), table[:, 1].astype(np.int64)
        weights = table[:, 2].astype(np.float64) if table.shape[1] == 3 else None
        joined.append(Edges(relation, sources, targets, weights))
    return HIN.build(made, joined, **options)


def shop_graph() -> HIN:
    """Users who buy items that have tags; one user buys nothing."""
    rng = np.random.default_rng(3)
    ids, names = ([f"{word}{i}" for i in range(40)] for word in ("u", "User "))
    users = Nodes("user", pa.array(ids), pa.array(names))  # u39 has no edge
    buys = np.c_[rng.integers(0, 39, 120), rng.integers(0, 30, 120), rng.random(120)]
    has = np.c_[rng.integers(0, 30, 60), rng.integers(0, 8, 60)]
    nodes = {"user": users, "item": 30, "tag": [f"t{i}" for i in range(8)]}
    return graph_of(nodes, {"user -buys-> item": buys, "item -has-> tag": has})


def coauthors() -> HIN:
    """Ann shares two papers with Bob and one with Cid; Dan wrote a paper at the same venue as she."""
    return graph_of(
        {"author": ["Ann", "Cid", "Bob", "Dan"], "paper": ["p1", "p2", "p3", "p4"], "venue": ["V", "W"]},
        {
            "author -writes-> paper": [(0, 0), (2, 0), (0, 1), (2, 1), (0, 2), (1, 2), (3, 3)],
            "paper -at-> venue": [(0, 0), (1, 0), (2, 1), (3, 1)],
        },
    )


def library_graph() -> HIN:
    """Authors, papers and citations with attributes of every kind, some of them missing."""
    papers = Nodes(
        "paper",
        pa.array(["p1", "p2", "p3", "p4"]),
        pa.array(["Deep, wide", "A and B", 'Say "hi"', "p1"]),
        pa.table(
            {
                "year": pa.array([2019, 2020, None, 2022]),
                "score": pa.array([0.5, float("nan"), 1.5, None]),
                "day": pa.array([date(2020, 1, 31), None, date(2020, 2, 1), date(2021, 1, 1)]),
                "at": pa.array([datetime(2020, 1, 31, 12), None, datetime(2020, 2, 1), datetime(2021, 1, 1)]),
                "zoned": pa.array(
                    [datetime(2020, 1, 31, 12), None, datetime(2020, 2, 1), None], pa.timestamp("us", "UTC")
                ),
                "open": pa.array([True, False, None, True]),
                "topic": pa.array(["ml", "db", None, "ML and db"]).dictionary_encode(),
                "page count": pa.array([1, 2, 3, 4]),
            }
        ),
    )
    authors = Nodes("author", pa.array(["Ann", "Bob", "Cy"]), attributes=pa.table({"age": [30, 40, 50]}))
    writes = Edges(
        Relation("author", "writes", "paper"), np.array([0, 0, 1, 1, 2, 2]), np.array([0, 1, 1, 2, 2, 3]),
        np.array([1.0, 2, 3, 4, 5, 6]),
        pa.table({"role": ["first", "last", "first", None, "last", "first"], "pages": [1, 2, 3, None, 5, 6]}),
    )  # fmt: skip
    cites = Edges(Relation("paper", "cites", "paper"), np.array([1, 2]), np.array([0, 0]))
    return HIN.build([authors, papers], [writes, cites])


STEER = "\x1bc\x07\x1bM\x9b31m\x7f\r\u202e\u2028"
"""What clears a terminal, rings its bell, moves its cursor, colours its text and turns its lines around."""


def steering_graph(folder: Path) -> HIN:
    """Films and users in a graph.json whose types, relations, attributes, ids and names could steer a terminal."""
    film, user = f"film{STEER}f", f"user{STEER}u"
    content = {
        "nodes": [
            {"id": f"f{number}{STEER}", "type": film, "name": f"film {number}{STEER}", f"at{STEER}tr": f"v{STEER}"}
            for number in range(3)
        ]
        + [{"id": f"u{number}", "type": user, "name": f"user {number}{STEER}"} for number in range(4)],
        "links": [
            {
                "source": f"u{number}",
                "target": f"f{number % 3}{STEER}",
                "relation": f"likes{STEER}l",
                f"on{STEER}e": "x",
            }
            for number in (0, 1, 2, 3)
        ],
    }
    (folder / "graph.json").write_text(json.dumps(content))
    return load(folder / "graph.json")


def steering(text: str) -> set[str]:
    """The characters of an output that a terminal would act on; a line may end."""
    return {each for each in text if unicodedata.category(each)[0] == "C" or each in "\u2028\u2029"} - {"\n"}
