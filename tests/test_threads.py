"""Threads: a fitted scorer, a graph and views of a live store give the same answers to many as to one."""

import pickle
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import neupath as npth
from neupath import HIN
from neupath.errors import SourceWarning
from neupath.live import LiveStore
from neupath.measures import DWPC, PCRW, HeteSim
from neupath.store import Edge, Node, Update, write_store
from tests.patience import PATIENCE

THREADS = 8


def together(work: Callable[[int], object]) -> list[object]:
    """Run a function in 8 threads that begin at once, and return what each returns."""
    barrier = threading.Barrier(THREADS, timeout=PATIENCE)

    def begin(number: int) -> object:
        barrier.wait()
        return work(number)

    with ThreadPoolExecutor(THREADS) as threads:
        return list(threads.map(begin, range(THREADS)))


@pytest.fixture(scope="module")
def shop() -> HIN:
    random = np.random.default_rng(0)
    bought = [(f"u{user}", f"i{item}", int(count)) for user, item, count in random.integers(1, 60, (900, 3))]
    tagged = [(f"i{item}", f"t{tag}") for item, tag in random.integers(1, 60, (200, 2))]
    return npth.from_tables({("user", "item"): bought, ("item", "tag"): tagged})


@pytest.mark.parametrize("measure", [npth.PathSim, HeteSim, DWPC, PCRW])
def test_threads_that_share_a_scorer_get_what_one_thread_gets(shop: HIN, measure: type[npth.Scorer]) -> None:
    queries = shop.nodes["user"].ids.to_pylist()
    alone = measure("user-item-tag-item-user").fit(shop)
    expected = [(alone.top_k(query, k=5), alone.top_k(query, k=7, where=[], zeros=True)) for query in queries]
    shared = measure("user-item-tag-item-user").fit(shop)

    def search(number: int) -> bool:
        order = np.roll(np.arange(len(queries)), 7 * number)  # each thread is at another query, with another k
        return all((shared.top_k(queries[q], k=5), shared.top_k(queries[q], k=7, where=[], zeros=True)) == expected[q]
                   for q in order)  # fmt: skip

    assert together(search) == [True] * THREADS


def test_threads_that_fit_and_search_one_new_graph_agree() -> None:
    hin = npth.from_tables({("user", "item"): [(f"u{n % 20}", f"i{n % 7}") for n in range(140)]})
    same = npth.from_tables({("user", "item"): [(f"u{n % 20}", f"i{n % 7}") for n in range(140)]})
    texts = ["user-item-user", "user-item-user-item-user"]
    answers = together(lambda number: npth.PathSim(texts[number % 2]).fit(hin).top_k("u1"))
    assert answers == [npth.PathSim(texts[number % 2]).fit(same).top_k("u1") for number in range(THREADS)]


@pytest.mark.slow
def test_readers_of_a_live_store_see_whole_versions_while_one_thread_writes(toy: HIN, tmp_path: Path) -> None:
    """Version n has n authors who each wrote one paper with Mike, and a reader sees exactly these."""
    measure, last = npth.PathSim("author-paper-author"), 12
    done = threading.Event()

    with LiveStore(write_store(toy, tmp_path / "store")) as live:
        live.attach(measure)

        def write() -> bool:
            try:
                for n in range(1, last + 1):
                    edges = [Edge("writes", f"new {n}", f"paper {n}"), Edge("writes", "Mike", f"paper {n}")]
                    live.update(Update(edges, add_nodes=[Node("author", f"new {n}"), Node("paper", f"paper {n}")]))
            finally:
                done.set()
            return True

        def read() -> bool:
            is_last = False
            while not is_last:
                is_last = done.is_set()
                view = live.view()
                ids = view.scorer(measure).top_k("Mike", k=100).ids
                assert sorted(ids) == sorted(f"new {n}" for n in range(1, view.version + 1))
            return view.version == last

        assert together(lambda number: write() if number == 0 else read()) == [True] * THREADS


def test_warning_is_made_again_from_its_text_alone():
    """A compiler on another thread holds warnings back, and gives them out again as their class and their text."""
    given = SourceWarning("movies.csv", ["year is an attribute"])
    again = SourceWarning(str(given))
    assert str(again) == str(given)
    assert str(pickle.loads(pickle.dumps(again))) == str(given)
