"""The HTML of an explanation is well formed, runs nothing and holds hostile names as text."""

from html.parser import HTMLParser
from pathlib import Path

import pytest

from neupath import HIN, Combination, Part, explain
from neupath.errors import QueryError
from neupath.evidence.html_report import render_html, write_html
from neupath.evidence.model_explanation import explain_combination
from tests.graphs import graph_of

ALLOWED = {
    "html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "details", "summary", "span", "bdi", "ol", "li",
}  # fmt: skip


class Page(HTMLParser):
    """The elements and texts of a page; raises if an element is not closed or not allowed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.count: dict[str, int] = {}
        self.texts: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ALLOWED
        assert {name for name, _ in attrs} <= {"class", "style", "lang", "charset", "http-equiv", "content", "name"}
        self.count[tag] = self.count.get(tag, 0) + 1
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_groups_unfold_to_their_paths(toy: HIN, tmp_path: Path) -> None:
    path = write_html(explain(toy, "APVPA", "Mike", "Jim", paths=3), tmp_path / "why.html")
    page = Page(path.read_text(encoding="utf-8"))
    assert (page.count["details"], page.count["summary"], page.count["li"]) == (2, 2, 2 * (3 + 1))
    text = "".join(page.texts)
    assert "Mike and Jim: pathsim = 0.0826" in text
    assert "author-paper-venue-paper-author: pathsim = 2 × 120 / (5 + 2900) = 0.0826, rank 3 of 3" in text
    assert "Both connect through SIGMOD (83 %) and VLDB (17 %)." in text
    assert "and 97 more paths" in text


def test_hostile_names_are_text() -> None:
    names = ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "\u202e\x00&amp;" + "x" * 5000]
    hin = graph_of({"<b>a": names, "b": ["</style><script>"]}, {"<b>a -<i>r-> b": [(0, 0), (1, 0), (2, 0)]})
    for other in names[1:]:
        page = Page(render_html(explain(hin, "<b>a-b-<b>a", names[0], other, paths=2)))
        assert "<script>alert(1)</script>" in "".join(page.texts)


def test_combinations_have_a_section_per_meta_path(toy: HIN) -> None:
    combination = Combination([Part("pathsim", "APVPA", 0.75), Part("pathsim", "APA", 0.25)]).fit(toy)
    page = Page(render_html(explain_combination(combination, "Mike", "Jim")))
    assert page.count["h2"] == 2
    assert "author-paper-venue-paper-author: 100 % of the score" in "".join(page.texts)


def test_no_path_and_bad_names(toy: HIN, tmp_path: Path) -> None:
    why = explain(toy, "APA", "Mike", "Jim")
    assert "Mike reaches 3 nodes of type paper and Jim reaches 70, but they share none." in "".join(
        Page(render_html(why)).texts
    )
    with pytest.raises(QueryError, match="the name must end in .html"):
        write_html(why, tmp_path / "why.txt")
