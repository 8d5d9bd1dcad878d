"""Take the screenshots of the explorer for the docs, in Chromium, from a service that the script starts.

python benchmarks/screenshots.py --out docs         # those that the docs show
python benchmarks/screenshots.py --out FOLDER --all # every view, light and dark, desktop and phone
"""

import argparse
import io
import json
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlencode

from explorer import PATIENCE, open_browser, serve

import neupath as npth
from neupath.client import Client

SEARCH = {"g": "stdlib", "p": "class-method-class", "q": "argparse.ArgumentParser", "qt": "class"}
PAIRS = [["optparse.OptionParser", 1], ["optparse.OptionGroup", 1], ["argparse.Action", 0], ["csv.DictReader", 0]]
EXAMPLES = {"type": "class", "pairs": json.dumps([[SEARCH["q"], *pair] for pair in PAIRS])}
VIEWS: dict[str, tuple[dict[str, str], str]] = {
    "landing": ({"g": "stdlib"}, ".starter"),
    "node": ({"g": "stdlib", "q": SEARCH["q"], "qt": "class"}, ".card"),
    "search": (SEARCH, ".hit"),
    "why": (SEARCH | {"t": "optparse.OptionParser", "group": "method:parse_args"}, ".paths .spot"),
    "set": (
        SEARCH
        | {
            "with": '["optparse.OptionParser"]',
            "unless": '["class-module-class"]',
            "t": "urllib.request.OpenerDirector",
        },
        "#why .weights",
    ),
    "filters": (SEARCH | {"t": "optparse.OptionParser"}, "#why .group"),
    "export": (SEARCH, ".hit"),
    "neighbourhood": ({"g": "stdlib", "q": SEARCH["q"], "qt": "class"}, ".card"),
    "saved": (SEARCH, ".hit"),
    "reference": ({}, ".call"),
    "meaning": (SEARCH | {"build": "1"}, ".builder .schema"),
    "compare": (SEARCH | {"vs": "1", "p2": "class-method-class", "m2": "pcrw"}, "#hits-b .hit"),
    "map": (SEARCH | {"show": "map", "k": "20"}, ".hit-map .spot"),
    "marks": (SEARCH | EXAMPLES, "#rerank"),
    "examples": (SEARCH | EXAMPLES | {"v": "examples"}, ".weights"),
    "relate": (
        SEARCH | {"v": "relate", "t": "optparse.OptionParser", "tt": "class"},
        ".related",
    ),
    "jobs": ({"g": "stdlib", "v": "jobs"}, ".job.done >> nth=1"),
}
CLICKS = {
    "filters": [".filters summary"],
    "export": ["#share"],
    "neighbourhood": ["button:text('Draw its neighbourhood')", ".neighbourhood .spot[data-id=parse_args]"],
    "saved": ["#save", ".logo"],
    "reference": [".call summary"],
}
"""What to click in a view before its picture is taken."""
AFTERWARDS = {"neighbourhood": ".neighbourhood [data-id='optparse.OptionParser']", "saved": ".starter"}
"""What to wait for after the clicks."""
JOBS: list[dict[str, Any]] = [
    {"kind": "join", "graph": "stdlib", "metapath": SEARCH["p"], "k": 3},
    {
        "kind": "train", "graph": "stdlib", "node_type": "class",
        "pairs": [{"query": SEARCH["q"], "target": target, "score": score} for target, score in PAIRS],
    },
]  # fmt: skip
SIZES = {"desktop": (1280, 900), "phone": (390, 844)}
Scheme = Literal["light", "dark"]
DOCS: list[tuple[str, str, str, Scheme]] = [
    ("explorer-landing", "landing", "desktop", "light"),
    ("explorer-node", "node", "desktop", "light"),
    ("explorer-desktop-light", "why", "desktop", "light"),
    ("explorer-set", "set", "desktop", "light"),
    ("explorer-desktop-dark", "compare", "desktop", "dark"),
    ("explorer-by-example", "marks", "desktop", "light"),
    ("explorer-phone-light", "search", "phone", "light"),
    ("explorer-phone-dark", "node", "phone", "dark"),
]
SCHEMES: tuple[Scheme, ...] = ("light", "dark")
ALL = [(f"{view}-{size}-{scheme}", view, size, scheme) for view in VIEWS for size in SIZES for scheme in SCHEMES]


def take(url: str, pictures: list[tuple[str, str, str, Scheme]], out: Path) -> None:
    with open_browser() as browser:
        for name, view, size, scheme in pictures:
            words, awaited = VIEWS[view]
            width, height = SIZES[size]
            page = browser.new_page(
                viewport={"width": width, "height": height}, color_scheme=scheme, reduced_motion="reduce"
            )
            page.set_default_timeout(PATIENCE)
            page.goto(f"{url}/{'docs' if view == 'reference' else ''}#{urlencode(words)}")
            page.locator(awaited).first.wait_for()
            for selector in CLICKS.get(view, []):
                page.locator(selector).first.click()
            page.locator(AFTERWARDS.get(view, "h1")).first.wait_for()
            page.wait_for_load_state("networkidle")
            if view not in CLICKS:
                page.evaluate("scrollTo(0, 0)")
            target = out / f"{name}.png"
            save(page.screenshot(), target)
            page.close()
            print(f"{target.name} {target.stat().st_size / 1024:.0f} KiB")


def save(png: bytes, target: Path) -> None:
    """Write a picture with 160 colours, to keep the file small."""
    from PIL import Image

    Image.open(io.BytesIO(png)).convert("RGB").quantize(160).save(target, optimize=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("docs"))
    parser.add_argument("--all", action="store_true")
    arguments = parser.parse_args()
    with serve({"stdlib": npth.load("stdlib")}) as url:
        with Client(url) as client:
            for job in JOBS if arguments.all else []:
                client.start(**job)
        take(url, ALL if arguments.all else DOCS, arguments.out)


if __name__ == "__main__":
    main()
