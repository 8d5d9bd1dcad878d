"""Caches: bounded in entries and bytes, a key built once, and one per graph that lives as long as the graph."""

import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from weakref import ref

import numpy as np
import pytest

import neupath as npth
from neupath import NeuPathError
from neupath.engine.cache import LIMIT_VARIABLE, LRU, bytes_of, cached, graph_cache
from neupath.measures import JoinSim
from tests.patience import PATIENCE


def test_bytes_are_bounded() -> None:
    cache: LRU[str, bytes] = LRU(100, 10, len)
    for name, size in (("a", 4), ("b", 4), ("c", 4)):
        cache.get(name, lambda size=size: b"x" * size)  # type: ignore[misc]
    assert (cache.find("a"), cache.find("b"), cache.bytes) == (None, b"xxxx", 8)
    assert cache.get("huge", lambda: b"x" * 11) == b"x" * 11  # returned, but not cached
    assert (cache.find("huge"), len(cache)) == (None, 2)
    cache.clear()
    assert (len(cache), cache.bytes) == (0, 0)


def test_a_key_is_built_once_and_others_do_not_wait() -> None:
    cache: LRU[str, str] = LRU(9, 99, len)
    began, go_on = threading.Event(), threading.Event()
    built: list[str] = []

    def slow() -> str:
        built.append("slow")
        began.set()
        assert go_on.wait(PATIENCE)
        return "slow"

    with ThreadPoolExecutor(2) as pool:
        futures = [pool.submit(cache.get, "slow", slow) for _ in range(2)]
        assert began.wait(PATIENCE)
        assert cache.get("quick", lambda: "quick") == "quick"
        go_on.set()
        assert [future.result(PATIENCE) for future in futures] == ["slow", "slow"]
    assert built == ["slow"]


def test_a_build_that_fails_can_be_tried_again() -> None:
    cache: LRU[str, str] = LRU(9, 99, len)
    with pytest.raises(ZeroDivisionError):
        cache.get("a", lambda: str(1 / 0))
    assert cache.get("a", lambda: "a") == "a"


def test_a_build_may_get_other_keys_and_its_own() -> None:
    cache: LRU[str, str] = LRU(9, 99, len)
    assert cache.get("a", lambda: cache.get("b", lambda: "b") + cache.get("a", lambda: "a")) == "ba"
    assert (cache.find("a"), cache.find("b")) == ("ba", "b")


@pytest.mark.slow
def test_products_are_cached_per_graph_and_go_with_it() -> None:
    hin = npth.load("toy")
    path = hin.metapath("APVPA")
    assert npth.PathSim(path).fit(hin).factors_ is JoinSim(path).fit(hin).factors_
    cache = ref(graph_cache(hin))
    del hin
    gc.collect()
    assert cache() is None


def test_the_cache_of_a_graph_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    hin = npth.load("stdlib")
    paths = ["class-method-class", "class-module-class", "module-class-module"]
    first = npth.PathSim(paths[0]).fit(hin).factors_
    monkeypatch.setenv(LIMIT_VARIABLE, str(bytes_of(first) + 1000))
    assert npth.PathSim(paths[0]).fit(hin).factors_ is first
    for path in paths[1:]:
        npth.PathSim(path).fit(hin)
    assert bytes_of(graph_cache(hin).values()) <= bytes_of(first) + 1000
    again = npth.PathSim(paths[0]).fit(hin).factors_
    assert again is not first
    np.testing.assert_array_equal(again.left.data, first.left.data)


def test_the_limit_must_be_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LIMIT_VARIABLE, "2GB")
    with pytest.raises(NeuPathError, match="NEUPATH_CACHE_BYTES is '2GB'; give a number of bytes"):
        npth.PathSim("APVPA").fit(npth.load("toy"))


def test_a_slow_build_does_not_block_other_keys() -> None:
    """A slow build blocks neither cached values nor the building of other keys."""
    toy, begun, go_on = npth.load("toy"), threading.Event(), threading.Event()
    npth.PathSim("APVPA").fit(toy)

    def slow() -> str:
        begun.set()
        assert go_on.wait(PATIENCE)
        return "built"

    results: list[str] = []
    thread = threading.Thread(target=lambda: results.append(cached(toy, "slow", slow)))
    thread.start()
    assert begun.wait(PATIENCE)
    assert npth.PathSim("APVPA").fit(toy).top_k("Mike", k=1).ids == ("Bob",)
    assert npth.PathSim("APA").fit(npth.load("toy")).factors_ is not None
    go_on.set()
    thread.join(PATIENCE)
    assert results == ["built"]


def test_arrays_that_several_values_hold_count_once() -> None:
    array = np.zeros(100)
    assert bytes_of([array, (array, array)]) == 800
