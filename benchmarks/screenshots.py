"""Take the screenshots of the explorer for the docs, in Chromium, from a service that the script starts.

python benchmarks/screenshots.py --out docs
"""

import argparse
import io
import json
import shutil
import tempfile
from pathlib import Path
from threading import Event, Thread
from urllib.parse import urlencode

import neupath as npth
from neupath.service.app import make_app, make_service
from neupath.service.graph_registry import GraphHandle
from neupath.service.limits import Limits
from neupath.service.server import address_of, bind, make_server

SEARCH = {"g": "stdlib", "p": "class-method-class", "q": "argparse.ArgumentParser", "qt": "class"}
VIEW = SEARCH | {"t": "optparse.OptionParser"}
COMPARED = VIEW | {"vs": "1", "p2": "class-method-class", "m2": "pcrw"}
EXAMPLES = [
    ("argparse.ArgumentParser", "optparse.OptionParser"),
    ("argparse.ArgumentParser", "argparse.Action"),
    ("argparse.ArgumentParser", "csv.DictReader"),
    ("csv.DictReader", "csv.DictWriter"),
    ("queue.Queue", "queue.LifoQueue"),
    ("queue.Queue", "asyncio.queues.Queue"),
]


def by_example(hin: npth.HIN) -> dict[str, str]:
    """Return the view of a search by example whose pairs are scored by shared methods, to two digits."""
    score = npth.PathSim("class-method-class").fit(hin).score
    pairs = [[query, target, round(score(query, target), 2)] for query, target in EXAMPLES]
    return {"g": "stdlib", "v": "example", "type": "class", "ran": "1", "pairs": json.dumps(pairs)}


DESKTOP, PHONE = (1280, 1180), (390, 1180)
Picture = tuple[str, dict[str, str], tuple[int, int], str, str]


def list_pictures(hin: npth.HIN) -> list[Picture]:
    """List each screenshot: name, view, size, colour scheme, and the element to wait for."""
    example = by_example(hin)
    return [
        ("explorer-desktop-light", VIEW, DESKTOP, "light", ".paths .spot"),
        ("explorer-desktop-dark", COMPARED, DESKTOP, "dark", ".paths .spot"),
        ("explorer-phone-light", VIEW, PHONE, "light", ".paths .spot"),
        ("explorer-phone-dark", example, PHONE, "dark", "#hits-try .hit"),
        ("explorer-by-example", example, DESKTOP, "light", "#hits-try .hit"),
    ]


def take(url: str, pictures: list[Picture], out: Path) -> None:
    from playwright.sync_api import sync_playwright

    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name, view, (width, height), scheme, awaited in pictures:
            page = browser.new_page(
                viewport={"width": width, "height": height},
                color_scheme="dark" if scheme == "dark" else "light",
                reduced_motion="reduce",
            )
            page.goto(f"{url}/#{urlencode(view)}")
            page.locator(awaited).first.wait_for()
            page.wait_for_load_state("networkidle")
            page.evaluate("scrollTo(0, 0)")
            target = out / f"{name}.png"
            save(page.screenshot(), target)
            page.close()
            print(f"{target.name} {target.stat().st_size / 1024:.0f} KiB")
        browser.close()


def save(png: bytes, target: Path) -> None:
    """Write a picture with 160 colours, to keep the file small."""
    from PIL import Image

    Image.open(io.BytesIO(png)).convert("RGB").quantize(160).save(target, optimize=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("docs"))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as state:
        hin = npth.load("stdlib")
        service = make_service({"stdlib": GraphHandle("stdlib", hin)}, {}, Path(state), Limits())
        bound, started = bind("127.0.0.1", 0), Event()
        url = address_of(bound)
        server = make_server(make_app(service), service, started.set)
        thread = Thread(target=server.run, args=([bound],))
        thread.start()
        try:
            started.wait(60)
            take(url, list_pictures(hin), arguments.out)
        finally:
            server.should_exit = True
            thread.join()


if __name__ == "__main__":
    main()
