"""Each attack, briefly; `python benchmarks/attack.py` runs them at length."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from neupath import HIN, load
from neupath.graph.hin import Edges
from tests.attacks import readers, saved_files, stores
from tests.attacks.conditions import attack_conditions
from tests.attacks.connections import PIPELINED, SLOW_BODY, attack_by_mutated_requests, flood
from tests.attacks.damage import attack
from tests.attacks.dirty_tables import attack_dirty_tables
from tests.attacks.indices import attack_indices
from tests.attacks.layouts import attack_layouts, judge
from tests.attacks.observed import observe_service
from tests.attacks.overload import overload
from tests.io.corpus import SOURCES

STDLIB = "/api/graphs/stdlib"
SEARCH = f"{STDLIB}/search?query=abc.ABC"


def test_random_conditions_are_read_or_refused() -> None:
    outcomes = attack_conditions(500, seed=0)
    assert outcomes["failures"] == []
    assert outcomes["not one sentence"] == 0
    assert min(outcomes["read"], outcomes["refused"]) > 50


# ---- Sources -------------------------------------------------------------------------------------
@pytest.mark.slow
def test_damaged_sources_give_a_graph_or_one_sentence() -> None:
    assert_outcomes(attack("tests.attacks.readers", list(readers.TARGETS), count=2), {"read", "refused"}, count=2)


@pytest.mark.slow
def test_dirty_tables_are_never_wrong_in_silence() -> None:
    figures = attack_dirty_tables(count=40, seed=6)
    assert figures["silent"] == figures["crashed"] == 0, figures
    assert "bad" not in figures, figures
    assert min(figures["noted"], figures["refused"], figures["with the proposed graph.toml"]["right"]) > 0, figures


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


# ---- Files that neupath wrote --------------------------------------------------------------------
@pytest.mark.slow
def test_damaged_stores_are_rebuilt_or_refused() -> None:
    outcomes = attack("tests.attacks.stores", list(stores.TARGETS), count=2, seed=1)
    assert_outcomes(outcomes, {"right", "rebuilt", "refused"}, count=2)


@pytest.mark.slow
def test_damaged_blocks_of_a_join_and_saved_scorers() -> None:
    joins = attack("tests.attacks.saved_files", list(saved_files.JOINS), count=5)
    assert_outcomes(joins, {"right", "rebuilt", "refused"}, count=5)
    models = attack("tests.attacks.saved_files", ["combination/config.json"], count=15)
    assert_outcomes(models, {"right", "refused"}, count=15)


@pytest.mark.slow
def test_damaged_indices_give_the_same_answers_or_one_sentence() -> None:
    outcomes = attack_indices(count=60, seed=1)
    assert all(set(counts) <= {"right", "refused"} for counts in outcomes.values()), outcomes
    assert sum(counts.get("refused", 0) for counts in outcomes.values()) > 40, outcomes


def assert_outcomes(outcomes: dict[str, dict[str, int]], allowed: set[str], count: int) -> None:
    """Check that nothing else came of any kind of file, and that each was damaged so often."""
    assert outcomes
    for kind, counts in outcomes.items():
        assert set(counts) <= allowed, f"{kind}: {counts}"
        assert sum(counts.values()) == count


# ---- Services ------------------------------------------------------------------------------------
@pytest.mark.slow
def test_mutated_requests_leave_the_service_sound() -> None:
    figures = attack_by_mutated_requests(count=150, seed=0)
    assert (figures["wrong"], figures["tracebacks"], figures["log"], figures["store_problems"]) == (0, 0, "", 0)
    assert (figures["alive"], figures["health_after"], figures["health_unanswered"]) == (True, 200, 0)


@pytest.mark.slow
def test_floods_leave_memory_and_health() -> None:
    with observe_service("toy", files=300) as service:
        for request in PIPELINED.values():
            flood(service.address, request * 34_000, connections=20, seconds=1)
        flood(service.address, SLOW_BODY, connections=400, seconds=1)
        assert service.ask_health() == 200
        assert service.most_bytes - service.first_bytes < 100 << 20
        assert (service.unanswered, service.read_log()) == (0, "")


@pytest.mark.slow
def test_heavy_searches_leave_look_ups_and_health() -> None:
    urls = [
        *(f"{SEARCH}&node_type=class&measure={measure}" for measure in ("commutetime", "simrank", "simrank")),
        *(f"{SEARCH}&metapath=class-method-class-method-class-{end}-class" for end in ("method-class-method", "base")),
    ]
    figures = overload("stdlib", urls, f"{STDLIB}/nodes?node_type=class&text=a", "--limit", "seconds=2")
    assert set(figures["statuses"]) <= {200, 422, 504}
    assert set(figures["look_ups"]) <= {200, 504}  # 504 where a busy machine takes 2 seconds for one
    assert (figures["alive"], figures["health_unanswered"], figures["tracebacks"]) == (True, 0, 0)
