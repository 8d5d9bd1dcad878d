"""DBLP's XML: papers, people, venues; entities of its DTD; files that are not DBLP's are refused."""

import gzip
from pathlib import Path

import pytest

import neupath as npth
from tests.tables import check_read, shape

START = '<?xml version="1.0" encoding="ISO-8859-1"?>\n<!DOCTYPE dblp SYSTEM "dblp.dtd">\n<dblp>\n'
RECORDS = """<article key="journals/x/1" mdate="2020-01-01"><author orcid="0000">J&uuml;rgen Ash</author>
<author>Bo Birch 0001</author><title>On <i>paths</i> &amp; sums<sub>2</sub>.</title><year>2011</year>
<journal>VLDB J.</journal><ee>https://doi.org/1</ee><cite label="1">conf/y/2</cite>
<cite>...</cite><cite>conf/none</cite></article>
<inproceedings key="conf/y/2"><author>Bo Birch 0001</author><title>Rows.</title><year>2012</year>
<booktitle>KDD</booktitle><crossref>conf/y/2012</crossref></inproceedings>
<proceedings key="conf/y/2012"><editor>J&uuml;rgen Ash</editor><title>KDD 2012</title><year>2012</year>
<booktitle>KDD</booktitle></proceedings>
<www key="homepages/a/Ash"><author>J&uuml;rgen Ash</author><title>Home Page</title></www>
"""
DBLP = START + RECORDS + "</dblp>\n"


@pytest.mark.parametrize("name", ["dblp.xml", "dblp-2020.xml.gz"])
def test_papers_people_and_venues(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(DBLP.encode("latin-1")) if name.endswith("gz") else DBLP.encode("latin-1"))
    hin = npth.load(path)
    assert shape(hin) == {
        "paper -author-> author": 3, "paper -editor-> author": 1, "paper -venue-> venue": 3,
        "paper -crossref-> paper": 1, "paper -cite-> paper": 1,
    }  # fmt: skip
    assert hin.nodes["author"].ids.to_pylist() == ["Jürgen Ash", "Bo Birch 0001"]
    assert hin.nodes["venue"].ids.to_pylist() == ["VLDB J.", "KDD"]
    papers = hin.nodes["paper"]
    assert papers.ids.to_pylist() == ["journals/x/1", "conf/y/2", "conf/y/2012"]
    assert papers.names.to_pylist() == ["On paths & sums2.", "Rows.", "KDD 2012"]
    assert papers.attributes.to_pydict() == {
        "kind": ["article", "inproceedings", "proceedings"], "year": [2011, 2012, 2012],
    }  # fmt: skip
    assert hin.notes == (
        "1 value of cite was left out: no paper of the file has that key",
        "left out: <www>, ee",
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (START + "</dblp>", "has no papers"),
        (DBLP.replace("&uuml;", "&nosuch;"), "line 4: the entity &nosuch; is not known"),
        (DBLP.replace('"dblp.dtd">', '"dblp.dtd" [<!ENTITY x "y">]>'), "declares the entity 'x' itself"),
        (DBLP.replace("</author>", "</autor>"), "line 4: the XML is not well-formed: mismatched tag"),
        (DBLP.replace(' key="conf/y/2"', ""), "the <inproceedings> has no key"),
        (DBLP.replace('"conf/y/2012"', '"conf/y/2"'), "conf/y/2' is given 2 times"),
        (DBLP.replace("<i>paths</i>", 60 * "<i>" + 60 * "</i>"), "nested more than 50 deep"),
        (DBLP[:300], "the XML is not well-formed"),
        ("<other/>", "not a graph that neupath can read"),
    ],
)  # fmt: skip
def test_bad_files_are_refused_in_one_sentence(tmp_path: Path, text: str, message: str) -> None:
    assert "\n" not in check_read(tmp_path, {"dblp.xml": text.encode("latin-1")}, message, {"load": "dblp.xml"})
