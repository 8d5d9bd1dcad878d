"""Excel workbooks: each sheet is a table."""

import re
import sys
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest

from neupath import load
from neupath.errors import MissingExtraError, NeuPathError, SourceError
from neupath.io import import_store
from neupath.io.draft import check_draft, draft_of
from tests.io.workbooks import write_workbook

pytest.importorskip("python_calamine")

EDGES = [["movie_id", "actor_id"], [1, "a"], [1, "b"], [2, "b"]]
MOVIES = [["movie_id", "title", "year"], [1, "Up", 2009], [2, "Heat", 1995]]


def test_cells_have_the_types_that_they_have_in_excel(tmp_path: Path) -> None:
    rows = [
        ["movie_id", "title", "year", "score", "seen", "day", "shown", "mixed", "code"],
        [1, "Up", 2009, 8.5, True, date(2020, 1, 2), datetime(2020, 1, 2, 3, 4), 1, "007"],
        [2, "Heat", None, 7, False, None, datetime(2021, 1, 2), "two", "008"],
    ]
    movies = load(write_workbook(tmp_path / "shop.xlsx", {"movies": rows, "movie_actor": EDGES})).nodes["movie"]
    assert movies.attributes.to_pydict() == {
        "year": [2009, None], "score": [8.5, 7.0], "seen": [True, False], "day": [date(2020, 1, 2), None],
        "shown": [datetime(2020, 1, 2, 3, 4), datetime(2021, 1, 2)], "mixed": ["1", "two"], "code": ["007", "008"],
    }  # fmt: skip


@pytest.mark.parametrize("suffix", [".xlsx", ".XLSX", ".xlsm"])
def test_a_lone_sheet_that_excel_named_has_the_name_of_its_workbook(tmp_path: Path, suffix: str) -> None:
    hin = load(write_workbook(tmp_path / f"movie_actor{suffix}", {"Tabelle1": EDGES}))
    assert [str(relation) for relation in hin.schema.relations] == ["movie -movie_actor-> actor"]


def test_workbooks_in_lists_and_beside_other_tables(tmp_path: Path) -> None:
    book = write_workbook(tmp_path / "movies.xlsx", {"Sheet1": MOVIES})
    (tmp_path / "~$movies.xlsx").write_bytes(b"lock")
    other = tmp_path / "movie_actor.csv"
    other.write_text("movie_id,actor_id\n1,a\n1,b\n2,b\n")
    for hin in (load([book, other]), load(tmp_path), load(import_store(tmp_path, tmp_path / "s.neupath"))):
        assert {kind: hin.num_nodes(kind) for kind in hin.schema.node_types} == {"movie": 2, "actor": 2}
        assert hin.nodes["movie"].names.to_pylist() == ["Up", "Heat"]


def test_sheets_that_are_not_read_are_noted(tmp_path: Path) -> None:
    titled = [["Films and their casts"], [], *EDGES, [3, "#N/A"]]
    book = write_workbook(
        tmp_path / "shop.xlsx",
        {"movies": [*MOVIES, [3, "#REF!", 2000]], "movie_actor": EDGES, "plan": [], "lists": [["x"]]},
        hidden=["lists"],
    )
    notes = ["shop.xlsx#lists was left out: the sheet is hidden", "shop.xlsx#plan was left out: the sheet is empty"]
    error = "shop.xlsx#movies: 1 cell is an error such as #N/A, and read as empty (first B4)"
    assert set(load(book).notes) == {*notes, error}
    with pytest.raises(NeuPathError, match=r"movie_actor.xlsx#Sheet1, row 7: the edge has an empty actor id"):
        load(write_workbook(tmp_path / "movie_actor.xlsx", {"Sheet1": titled}, merged={"Sheet1": "A1:B1"}))


def test_init_writes_a_graph_toml_that_names_sheets(tmp_path: Path) -> None:
    folder = tmp_path / "g"
    folder.mkdir()
    book = write_workbook(folder / "shop.xlsx", {"movies": MOVIES, "movie_actor": EDGES, "empty": []})
    for source in (book, folder):
        draft = draft_of(str(source))
        check_draft(draft)
        assert 'file = "shop.xlsx#movie_actor"' in draft.to_toml()
        config = tmp_path / "graph.toml"
        config.write_text(draft.to_toml())
        assert str(load(source, config=config)) == str(load(book))
    config.write_text('ignore = ["shop.xlsx#movies"]')
    assert load(book, config=config).nodes["movie"].attributes.column_names == []
    config.write_text('[nodes.movie]\nfile = "shop.xlsx"')
    with pytest.raises(SourceError, match="is not one sheet with rows; name one of shop.xlsx#movies, shop.xlsx#mov"):
        load(book, config=config)


FORMULA = "<f>A2+1</f><v>2</v>"


@pytest.mark.parametrize(
    ("sheets", "options", "message"),
    [
        ({"a_b": [["a_id", "b_id"], [1, "<f>A2+1</f><v/>"]]}, {}, "a_b: the formula in B2 has no value"),
        ({"a_b": [["a_id", "b_id"], [1, "<f>A2+1</f>"]]}, {}, "the formula in B2 has no value"),
        ({"a_b": [["a_id", "b_id"], [1, FORMULA]]}, {"workbook": '<calcPr fullCalcOnLoad="1"/>'}, "has no value"),
        ({"a_b": [*EDGES, [3, "c"]]}, {"merged": {"a_b": "A4:A5"}}, "the cells A4:A5 are merged"),
        ({"a_b": [["a_id", "b_id"], [1, 2], [], ["Source: us"]]}, {}, "row 3 is empty, and others follow"),
        ({"a_b": [["a_id", None, "b_id"], [1, None, 2]]}, {}, "has a column without a name in B1"),
        ({"a_b": [["a_id", "a_id"], [1, 2]]}, {}, "has another column called 'a_id' in B1"),
        ({"a_b": [["1"], ["2"], [3, 4], [5, 6]]}, {}, "has 2 rows with one cell or none above its table, and no head"),
        ({"a": []}, {}, "has no visible sheet with rows"),
        ({"a": EDGES}, {"hidden": ["a"]}, "has no visible sheet with rows"),
    ],
)
def test_what_is_no_plain_table_is_refused(tmp_path: Path, sheets: Any, options: Any, message: str) -> None:
    with pytest.raises(SourceError, match=re.escape(message)):
        load(write_workbook(tmp_path / "x.xlsx", sheets, **options))


def test_computed_formulas_and_row_numbers_are_read(tmp_path: Path) -> None:
    rows = [[None, "movie_id", "actor_id"], [0, 1, FORMULA], [1, 2, "<f>1+2</f><v>3</v>"], [2, 2, FORMULA]]
    hin = load(write_workbook(tmp_path / "movie_actor.xlsx", {"Sheet1": rows}))
    assert (hin.nodes["movie"].ids.to_pylist(), hin.nodes["actor"].ids.to_pylist()) == ([1, 2], [2, 3])


@pytest.mark.parametrize(
    "content", [b"PK\x03\x04" + bytes(60), b"", b"a_id,b_id\n1,2\n", b"\xd0\xcf\x11\xe0" + bytes(99)]
)
def test_files_that_are_no_workbooks_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.xlsx").write_bytes(content)
    with pytest.raises(SourceError, match=r"x.xlsx cannot be read as an Excel workbook"):
        load(tmp_path / "x.xlsx")


def test_workbooks_that_would_fill_the_memory_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    far = '<v>1</v></c><c r="XFD1048576"><v>1</v>'
    with pytest.raises(SourceError, match=r"has 2 cells spread over 1,048,576 rows and 16,384 columns"):
        load(write_workbook(tmp_path / "far.xlsx", {"a": [[far]]}))
    monkeypatch.setattr("neupath.io.formats.excel._MOST_BYTES", 1 << 20)
    with pytest.raises(SourceError, match="unpacks to 2 MiB, more than 200 times its size"):
        load(write_workbook(tmp_path / "large.xlsx", {"a": [["x" * (1 << 21)]]}))


def test_without_the_reader_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    with pytest.raises(MissingExtraError, match="python-calamine, which is not installed; run: pip install .*io"):
        load(write_workbook(tmp_path / "movie_actor.xlsx", {"Sheet1": EDGES}))
