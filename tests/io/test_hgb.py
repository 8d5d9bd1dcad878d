"""Folders with node.dat and link.dat: types by number or by name, and errors in bad files."""

import json
from pathlib import Path

import pytest

import neupath as npth
from neupath.io import import_store
from neupath.store import open_store
from tests.tables import check_read, shape, write

NODES = "0\tAnn\t0\t0.5,1\n1\tBob\t0\t1,0\n2\tOn trees\t1\n3\tOn graphs\t1\n"
LINKS = "0\t2\t0\t1.0\n1\t2\t0\t1.0\n1\t3\t0\t2.0\n2\t0\t1\t1.0\n2\t1\t1\t1.0\n3\t1\t1\t2.0\n3\t2\t2\t1.0\n"
AS_JSON = json.dumps(
    {
        "node.dat": {"node type": {"0": "author", "1": "paper"}},
        "link.dat": {
            "link type": {
                "0": {"start": 0, "end": 1, "meaning": "author-paper"},
                "1": {"start": 1, "end": 0, "meaning": "paper->author"},
                "2": {"start": 1, "end": 1, "meaning": "paper-cite-paper"},
            }
        },
    }
)
AS_TEXT = (
    "Targets: Label\n\nnode.dat\nTYPE\tMEANING\n0\t\tauthor\n1\t\tpaper\n\nlink.dat\nLINK\tSTART\tEND\tMEANING\n"
    "0\t0\t\t1\tauthor-paper\n1\t1\t0\tpaper-author\n2\t1\t1\tpaper-cite-paper\n"
)


@pytest.mark.parametrize("meanings", [AS_JSON, AS_TEXT])
def test_info_dat_names_types_and_relations(tmp_path: Path, meanings: str) -> None:
    folder = write(tmp_path / "g", node__dat=NODES, link__dat=LINKS, info__dat=meanings, label__dat="0\tAnn\t0\t1\n")
    hin = npth.load(folder)
    assert shape(hin) == {"author -author_paper-> paper": 3, "paper -cite-> paper": 1}
    assert hin.nodes["paper"].ids.to_pylist() == [2, 3]
    assert hin.notes == (
        "relation paper_author was left out: it repeats author_paper backwards",
        "label.dat was left out: the graph is read from node.dat and link.dat",
        "the features in node.dat were left out",
    )
    # 2 · 1 / (1 + 5)
    assert npth.PathSim("author-paper-author").fit(hin).top_k("Ann").scores == pytest.approx((1 / 3,))


def test_without_info_dat_numbers_are_names(tmp_path: Path) -> None:
    folder = write(tmp_path / "g", node__dat=NODES, link__dat=LINKS, graph__toml='take = ["0"]\n')
    hin = npth.load(folder)
    assert shape(hin) == {"0 -0-> 1": 3}
    assert npth.PathSim("0-1-0").fit(hin).top_k(0).names == ("Bob",)
    assert shape(open_store(import_store(folder, tmp_path / "store")).hin()) == {"0 -0-> 1": 3}


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (
            {"node__dat": NODES + "\n4 Cat 0\n"},
            "node.dat, line 6: expected id, name and type with tabs between them, got '4 Cat 0'",
        ),
        ({"node__dat": NODES + "0\tAgain\t1\n"}, "node.dat, line 5: node id '0' is repeated"),
        ({"node__dat": "0\tJ\xf6rg\t0\n".encode("latin-1")}, "node.dat is not UTF-8 text"),
        ({"link__dat": LINKS + "0\t9\t0\t1.0\n"}, "link.dat, line 8: the edge leads to node '9', which is not in the"),
        (
            {"link__dat": "0\t1\n"},
            "link.dat: expected the columns source, target, relation and perhaps weight, .* got 2",
        ),
        ({"link__dat": "0\t2\t0\t-1\n"}, "link.dat, line 1: weight '-1' is not allowed"),
        ({"info__dat": "{}"}, "info.dat does not name the types of node.dat and link.dat"),
    ],
)
def test_bad_files(tmp_path: Path, files: dict[str, str | bytes], message: str) -> None:
    check_read(tmp_path, {"node__dat": NODES, "link__dat": LINKS} | files, message)
