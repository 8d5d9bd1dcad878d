"""Changed tables give the known graph or one sentence; `benchmarks/attack.py layouts --count 2000` tries more."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from neupath import HIN, load
from neupath.graph.hin import Edges
from tests.attacks.layouts import attack_layouts, judge
from tests.io.corpus import SOURCES


def test_changed_tables_give_the_known_graph_or_one_sentence() -> None:
    figures = attack_layouts(count=60)
    assert figures["wrong"] == figures["crashed"] == 0, figures
    assert figures["right"] >= 20, figures


@pytest.mark.parametrize("change", ["an edge less", "another edge", "turned", "other names", "merged"])
def test_another_graph_is_noticed(change: str, tmp_path: Path) -> None:
    sample = SOURCES["author_writes_paper" if change == "turned" else "movie_actor_folder"].write(tmp_path)
    hin = load(sample.load)
    assert judge(hin, sample.tables, sample.tables) == "right"
    relation = next(r for r in hin.matrices if r.source == r.target or change != "turned")
    rows, columns = hin.matrices[relation].nonzero()
    nodes = dict(hin.nodes)
    if change == "an edge less":
        rows, columns = rows[1:], columns[1:]
    elif change == "another edge":
        rows, columns = np.append(rows, 1), np.append(columns, 0)
    elif change == "turned":
        rows, columns = columns, rows
    elif change == "other names":
        nodes["movie"] = replace(nodes["movie"], names=pa.array(["Up", "Up", "Up"]))
    else:
        relation, nodes = replace(relation, target=relation.source), {"movie": nodes["movie"]}
    edges = [Edges(relation, rows, columns)]
    edges += [Edges(r, *m.nonzero()) for r, m in hin.matrices.items() if r != relation and change != "merged"]
    assert judge(HIN.build(nodes.values(), edges), sample.tables, sample.tables) not in ("right", "noted")
