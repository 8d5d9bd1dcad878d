"""Graphs as other people ship them: what a folder's files are is told by their names where their headers do not."""

from pathlib import Path

import neupath as npth
from tests.datasets.test_folder import shape, write


def test_texts_are_cut_at_tabs_though_every_title_has_a_comma(tmp_path: Path) -> None:
    papers = "1\tGraphs, again\n2\tTrees, at last\n"
    hin = npth.load(write(tmp_path / "g", paper__txt=papers, paper_author__txt="1\t7\n2\t7\n"))
    assert npth.PathSim("PAP").fit(hin).top_k("Graphs, again").names == ("Trees, at last",)


def test_dat_files_are_tables(tmp_path: Path) -> None:
    files = {
        "user_artists__dat": "userID\tartistID\tweight\r\n2\t51\t13883\r\n",
        "artists__dat": "id\tname\n51\tDuran Duran\n",
    }
    hin = npth.load(write(tmp_path / "g", **files))
    assert shape(hin) == {"user -user_artists-> artist": 1}
    assert hin.nodes["artist"].name(0) == "Duran Duran"
