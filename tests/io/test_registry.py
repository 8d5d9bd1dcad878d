"""A new format is one file and one line of the registry; a plug-in may give tables and their plan as a format does."""

import re
from pathlib import Path

import pyarrow as pa
import pytest

import neupath as npth
from neupath import NeuPathError
from neupath.graph.metapath import Relation
from neupath.io import import_store, registry
from neupath.io.plan import EdgePlan, NodePlan, Plan, ReadOptions, Selection
from neupath.io.registry import FORMATS, Format
from neupath.io.tables import ArrowTable
from tests.tables import shape

BIB = """
@article{sun11, title = {PathSim}, author = {Sun, Yizhou and Han, Jiawei}, year = {2011}}
@article{shi14, title = {HeteSim}, author = {Shi, Chuan and Han, Jiawei}, year = {2014}}
"""


def read_bib(path: Path) -> Plan:
    """Read BibTeX: what a new format takes is tables and a plan that says what they hold."""
    text = path.read_text(encoding="utf-8")
    records = [(key, dict(re.findall(r"(\w+) = {(.*?)}", rest))) for key, rest in re.findall(r"@\w+{(\w+),(.*)}", text)]
    papers = pa.table(
        {
            "key": [key for key, _ in records],
            "title": [fields["title"] for _, fields in records],
            "year": [int(fields["year"]) for _, fields in records],
        }
    )
    pairs = [(key, author) for key, fields in records for author in fields["author"].split(" and ")]
    authors = pa.table({"paper": [key for key, _ in pairs], "author": [author for _, author in pairs]})
    nodes = Selection(ArrowTable(papers, "paper", str(path)), {"id": "key", "name": "title"}, ["year"])
    edges = Selection(ArrowTable(authors, "authors", str(path)), {"source": "paper", "target": "author"})
    wrote = EdgePlan(Relation("paper", "written_by", "author"), edges)
    return Plan([NodePlan("paper", nodes)], [wrote], ReadOptions())


def check_bib(path: Path) -> None:
    path.write_text(BIB, encoding="utf-8")
    hin = npth.load(path)
    assert shape(hin) == {"paper -written_by-> author": 4}
    assert hin.nodes["paper"].attributes.to_pydict() == {"year": [2011, 2014]}
    assert npth.PathSim("paper-author-paper").fit(hin).top_k("PathSim").names == ("HeteSim",)


def test_a_new_format_is_a_file_and_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "papers.bib"
    path.write_text(BIB, encoding="utf-8")
    with pytest.raises(NeuPathError, match="holds BibTeX"):
        npth.load(path)
    bib = Format("BibTeX", lambda request: request.path.suffix == ".bib", lambda request, _: read_bib(request.path))
    monkeypatch.setattr(registry, "FORMATS", (bib, *FORMATS))
    check_bib(path)
    stored = npth.load(import_store(path, tmp_path / "store"))
    assert shape(stored) == shape(npth.load(path))
    with pytest.raises(NeuPathError, match="is not a database"):
        npth.load(path, tables="papers")


def test_names_of_formats_and_their_endings_are_unique() -> None:
    assert len({each.name for each in FORMATS}) == len(FORMATS)
    suffixes = [suffix for each in FORMATS for suffix in each.suffixes]
    assert len(set(suffixes)) == len(suffixes)
