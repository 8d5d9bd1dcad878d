"""Measure the explorer in Chromium: first paint and first hit on slow lines, bytes and requests, actions, memory.

python benchmarks/explorer.py load                      # the built-in graph, at 0, 100 and 800 ms latency
python benchmarks/explorer.py actions --data DATA       # from the landing page to an explained hit, on four graphs
python benchmarks/explorer.py memory --searches 500     # the heap of the page over many searches
"""

import argparse
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any
from urllib.parse import urlencode

from playwright.sync_api import Browser, Page, sync_playwright

import neupath as npth
from neupath.service.app import make_app, make_service
from neupath.service.graph_registry import GraphHandle
from neupath.service.limits import Limits
from neupath.service.server import address_of, bind, make_server

SEARCH = {"g": "stdlib", "p": "class-method-class", "q": "argparse.ArgumentParser", "qt": "class"}
STORIES = {"stdlib": "ArgumentParser", "imdb": "the dark knight rises", "hetionet": "asthma", "kg20c": "jiawei han"}
PATIENCE = 120_000  # milliseconds


@contextmanager
def serve(graphs: dict[str, npth.HIN]) -> Iterator[str]:
    """Serve graphs on a free port, in a thread."""
    with tempfile.TemporaryDirectory() as state:
        handles = {name: GraphHandle(name, hin) for name, hin in graphs.items()}
        service = make_service(handles, {}, Path(state), Limits())
        bound, started = bind("127.0.0.1", 0), Event()
        server = make_server(make_app(service), service, started.set)
        thread = Thread(target=server.run, args=([bound],))
        thread.start()
        try:
            started.wait(60)
            yield address_of(bound)
        finally:
            server.should_exit = True
            thread.join()


@contextmanager
def open_browser() -> Iterator[Browser]:
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()


def emulate(page: Page, latency: float) -> dict[str, Any]:
    """Delay every request by some milliseconds; return counts of requests and bytes, which fill as the page loads."""
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")
    session.send(
        "Network.emulateNetworkConditions",
        {"offline": False, "latency": latency, "downloadThroughput": -1, "uploadThroughput": -1},
    )
    seen = {"requests": 0, "bytes": 0}

    def count(event: dict[str, Any]) -> None:
        seen["requests"] += 1
        seen["bytes"] += int(event["encodedDataLength"])

    session.on("Network.loadingFinished", count)
    return seen


def load(browser: Browser, url: str, latency: float) -> tuple[float, float, dict[str, Any]]:
    """Open a link to a search with an empty cache; return seconds to first paint and to the first hit, and counts."""
    context = browser.new_context()
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    page.add_init_script(
        "new MutationObserver(() => { if (window.firstHit === undefined && document.querySelector('.hit'))"
        " window.firstHit = performance.now(); }).observe(document, {subtree: true, childList: true});"
    )
    seen = emulate(page, latency)
    page.goto(f"{url}/#{urlencode(SEARCH)}")
    page.locator(".hit").first.wait_for()
    paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? NaN")
    hit = page.evaluate("window.firstHit")
    context.close()
    return paint / 1000, hit / 1000, seen


def measure_load(rounds: int) -> None:
    with serve({"stdlib": npth.load("stdlib")}) as url, open_browser() as browser:
        load(browser, url, 0)
        for latency in (0, 100, 800):
            runs = [load(browser, url, latency) for _ in range(rounds)]
            paint, hit = min(run[0] for run in runs), min(run[1] for run in runs)
            seen = runs[-1][2]
            print(
                f"{latency:4} ms latency: first paint {paint:.2f} s, first hit {hit:.2f} s, "
                f"{seen['requests']} requests, {seen['bytes'] / 1024:.0f} KiB"
            )


def measure_actions(data: Path | None) -> None:
    graphs = {"stdlib": npth.load("stdlib")}
    if data is not None:
        graphs |= {name: npth.load(data / name) for name in ("imdb", "hetionet", "kg20c")}
    with serve(graphs) as url, open_browser() as browser:
        for name in graphs:
            page = browser.new_page()
            page.set_default_timeout(PATIENCE)
            page.goto(f"{url}/#g={name}")
            page.locator("#query").fill(STORIES[name])
            page.locator("#query").press("Enter")
            page.locator(".card .hit-link").first.click()
            page.locator("#why .group").first.wait_for()
            title, why = page.title(), page.locator("#why .summary").inner_text()
            print(f"{name}: 2 actions (words typed, a click): {title}: {why}")
            page.close()


def measure_memory(searches: int) -> None:
    with serve({"stdlib": npth.load("stdlib")}) as url, open_browser() as browser:
        page = browser.new_page()
        page.set_default_timeout(PATIENCE)
        page.goto(f"{url}/#{urlencode(SEARCH)}")
        page.locator(".hit").first.wait_for()
        session = page.context.new_cdp_session(page)
        found = page.evaluate("fetch('/api/graphs/stdlib/nodes?node_type=class&limit=200').then((r) => r.json())")
        ids = [str(node["id"]) for node in found["nodes"]]
        for number in range(searches + 1):
            if number % 100 == 0:
                session.send("HeapProfiler.collectGarbage")
                heap = session.send("Runtime.getHeapUsage")["usedSize"]
                elements = page.evaluate("document.querySelectorAll('*').length")
                print(f"after {number} searches: {heap / 2**20:.1f} MiB, {elements} elements")
            page.evaluate("(hash) => { location.hash = hash; }", urlencode(SEARCH | {"q": ids[number % len(ids)]}))
            page.locator(".columns[aria-busy=false]").wait_for()
        page.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["load", "actions", "memory"])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--searches", type=int, default=500)
    arguments = parser.parse_args()
    if arguments.what == "load":
        measure_load(arguments.rounds)
    elif arguments.what == "actions":
        measure_actions(arguments.data)
    else:
        measure_memory(arguments.searches)


if __name__ == "__main__":
    main()
