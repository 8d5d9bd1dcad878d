"""A real Chromium at a service of one's own, and the words for what a person does there."""

import csv
import io
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

pytest.importorskip("playwright")
from playwright.sync_api import Browser, Locator, Page, Route, expect, sync_playwright

from tests.patience import PATIENCE

__all__ = ["Browser", "Route", "expect"]

CLIPBOARD = ["clipboard-read", "clipboard-write"]
"""What a browser must permit before a test reads what was copied."""

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
needs_chromium = [
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is on the PATH; apt-get install chromium"),
    pytest.mark.slow,
]
PARSER = {"g": "stdlib", "p": "class-method-class", "q": "argparse.ArgumentParser", "qt": "class"}
"""What is similar to ArgumentParser in that they share method names."""
MIKE = {"g": "toy", "p": "author-paper-venue-paper-author", "q": "Mike", "qt": "author"}

RECORD_ANNOUNCEMENTS = """
window.announcements = [];
document.addEventListener("DOMContentLoaded", () => {
  const live = document.getElementById("live");
  if (!live) return;
  const record = () => announcements.push(live.textContent);
  record();
  new MutationObserver(record).observe(live, { childList: true, characterData: true, subtree: true });
});
"""
"""Keeps what a screen reader is told: on a busy machine the next announcement may follow before a test looks."""


@contextmanager
def open_browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"], timeout=1000 * PATIENCE)
        yield browser
        browser.close()


@cache
def read_axe() -> str:
    """Return the script of axe-core, which checks a page for accessibility."""
    pytest.importorskip("axe_playwright_python", reason="axe-core is missing; pip install axe-playwright-python")
    return files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")


@dataclass
class Explorer:
    """The page in a window; whatever it complains of is remembered, and what a person does is counted."""

    page: Page
    url: str
    complaints: list[str] = field(default_factory=list)
    actions: int = 0

    def __post_init__(self) -> None:
        expect.set_options(timeout=1000 * PATIENCE)
        self.page.set_default_timeout(1000 * PATIENCE)
        self.page.add_init_script(RECORD_ANNOUNCEMENTS)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", lambda line: self.complaints.append(line.text) if line.type == "error" else None)
        self.page.on("dialog", lambda dialog: self.complaints.append(dialog.message))

    def open(self, **words: Any) -> "Explorer":
        self.page.goto("about:blank")  # the address alone would not load the page anew
        self.page.goto(f"{self.url}/#{urlencode(words)}" if words else f"{self.url}/")
        return self

    def at(self, selector: str, **options: Any) -> Locator:
        return self.page.locator(selector, **options)

    def see(self, selector: str, **options: Any) -> Any:
        return expect(self.page.locator(selector, **options))

    def hear(self, text: str, *, is_start: bool = False) -> None:
        """Wait until there was an announcement since the page was opened; announcements may be joined by full stops."""
        heard = "(text) => announcements.some((one) => `. ${one}. `.includes(text))"
        self.page.wait_for_function(heard, arg=f". {text}" if is_start else f". {text}. ")

    def look_up(self, text: str, box: str = "#query") -> None:
        """Type into a box and choose what it finds first: one action."""
        self.at(box).fill(text)
        self.at(box).press("Enter")
        self.actions += 1

    def click(self, selector: str, **options: Any) -> None:
        """Click the first of some elements: one action."""
        self.at(selector, **options).first.click()
        self.actions += 1

    def tab_to(self, selector: str, key: str = "Tab") -> None:
        """Press Tab, or Shift+Tab, until an element has the focus."""
        for _ in range(100):
            self.page.keyboard.press(key)
            if self.page.evaluate("(selector) => document.activeElement.matches(selector)", selector):
                return
        pytest.fail(f"{key} does not reach {selector}")

    def enter(self, selector: str, key: str = "Tab") -> None:
        """Go to an element by the keyboard and press Enter there: one action."""
        self.tab_to(selector, key)
        self.page.keyboard.press("Enter")
        self.actions += 1

    def type_in_box(self, text: str) -> None:
        """Go to the box by its key, type, and choose what is found first: one action."""
        self.page.keyboard.press("/")
        self.page.keyboard.type(text)
        self.page.keyboard.press("Enter")
        self.actions += 1

    def download(self, selector: str, *, by_key: str = "", **options: Any) -> bytes:
        """Save a file by a click, or by the keyboard with the key that leads to the button; return what is in it."""
        with self.page.expect_download() as file:
            if by_key:
                self.enter(selector, by_key)
            else:
                self.click(selector, **options)
        return Path(file.value.path()).read_bytes()

    def table(self, selector: str, **options: Any) -> list[dict[str, str]]:
        """Save a CSV file; return its rows."""
        return list(csv.DictReader(io.StringIO(self.download(selector, **options).decode())))

    def copied(self, what: str) -> str:
        """Copy something from the open panel; return it from the clipboard."""
        self.at(f".copy-code[data-what='{what}']").click()
        self.see("#share-panel > [role=status]").to_have_text(f"Copied {what}.")
        return str(self.page.evaluate("navigator.clipboard.readText()"))

    def hits(self, side: str = "a") -> list[str]:
        """The ids of the hits, in their order, once there are some."""
        expect(self.at(f"#hits-{side} .hit").first).to_be_visible()
        expect(self.at(".columns")).to_have_attribute("aria-busy", "false")
        ids: list[str] = self.at(f"#hits-{side} .hit").evaluate_all("rows => rows.map((row) => row.dataset.id)")
        return ids

    def hit(self, id: str, side: str = "a") -> Locator:
        return self.at(f"#hits-{side} .hit[data-id='{id}']")

    def mark(self, **signs: str) -> None:
        """Mark hits by their ids as similar or not, `yes` or `no`."""
        for id, sign in signs.items():
            self.hit(id).locator(f".{sign}").click()
            expect(self.hit(id).locator(f".{sign}")).to_have_attribute("aria-pressed", "true")

    def option(self) -> Locator:
        """The first of what a box offers."""
        return self.at("li.option").first

    def overflow(self) -> int:
        return int(self.page.evaluate("document.documentElement.scrollWidth - innerWidth"))

    def violations(self, *rules: str) -> list[str]:
        """What axe-core finds wrong with the page as it is, by some rules or by all."""
        if not self.page.evaluate("'axe' in window"):
            self.page.evaluate(read_axe())
        options = {"resultTypes": ["violations"]} | ({"runOnly": list(rules)} if rules else {})
        found = self.page.evaluate("(options) => axe.run(document, options)", options)["violations"]
        return [f"{one['id']}: {one['help']}: {one['nodes'][0]['html'][:200]}" for one in found]


@contextmanager
def explore(browser: Browser, url: str, **options: Any) -> Iterator[Explorer]:
    """Open a window of its own; the page must not have complained when it is closed."""
    context = browser.new_context(reduced_motion=options.pop("reduced_motion", "reduce"), **options)
    explorer = Explorer(context.new_page(), url)
    yield explorer
    context.close()
    assert not explorer.complaints, explorer.complaints
