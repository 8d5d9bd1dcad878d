"""Values written as texts: right where they are declared, noted where they are not, and never compared as texts."""

import itertools
import json
import operator
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import neupath as npth
from neupath import HIN, NeuPathError
from neupath.errors import QueryError
from neupath.graph.nodes import Nodes
from neupath.graph.summary import summarise
from neupath.io import import_store
from neupath.io.export import write_folder
from tests.tables import check_read, edges_toml, write

SIGNS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq, "!=": operator.ne,
}  # fmt: skip
DAYS = [date(2019, 12, 31), date(2019, 11, 30), date(2026, 2, 1), date(2026, 2, 5), date(1999, 1, 2)]
PRICES = [9.99, 40.0, 199.0, 1200.0, 1234567.5]
DATE_FORMATS = ["%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%d-%m-%Y", "%Y/%m/%d", "%d.%m.%y", "%d %b %Y", "%d.%m.%Y %H:%M"]


def with_point(number: float) -> str:
    return f"{number:,.2f}"


def with_comma(number: float) -> str:
    return with_point(number).translate(str.maketrans(",.", ".,"))


NUMBER_FORMATS = {"decimal comma": with_comma, "decimal point": with_point}


def write_items(folder: Path, values: list[str], declared: str | None = None, *, kind: str = "csv") -> Path:
    """Write items with a value each, and one user of all of them, whose edges have the same values."""
    ids = [str(row) for row in range(1, len(values) + 1)]
    tables = {
        "items": {"item_id": ids, "title": [f"t{each}" for each in ids], "value": values},
        "user_item": {"user_id": ["ann"] * len(ids), "item_id": ids, "mark": values},
    }
    files: dict[str, Any] = {f"{name}.parquet": columns for name, columns in tables.items()}
    if kind == "csv":
        rows = {name: [columns, *zip(*columns.values(), strict=True)] for name, columns in tables.items()}
        files = {
            f"{name}.csv": "".join(",".join(f'"{cell}"' for cell in row) + "\n" for row in table)
            for name, table in rows.items()
        }
    if declared is not None:
        word = json.dumps(declared)
        files["graph.toml"] = (
            f'[nodes.item]\nfile = "items.{kind}"\nattribute_types = {{value = {word}}}\n'
            + edges_toml("has", f"user_item.{kind}", "user", "item", f"attribute_types = {{mark = {word}}}")
        )
    return write(folder, **files)


def values_of(hin: HIN) -> list[Any]:
    return hin.nodes["item"].attributes["value"].to_pylist()


def met(hin: HIN, condition: Any) -> list[int]:
    return [int(hin.nodes["item"].id(row)) for row in np.flatnonzero(hin.nodes["item"].where(condition))]


def met_by_edges(hin: HIN, condition: str) -> list[int]:
    (relation,) = hin.schema.relations
    matrix = hin.matrix(hin.metapath(f"user -{relation.name}[{condition}]-> item").steps[0].links[0])
    return sorted(int(hin.nodes["item"].id(column)) for column in matrix.indices)


# ---- Declared: the answer is that of the values --------------------------------------------------
@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("word", [*DATE_FORMATS, *NUMBER_FORMATS])
def test_declared_values_are_compared_as_what_they_are(tmp_path: Path, word: str, kind: str) -> None:
    values: list[Any] = PRICES if word in NUMBER_FORMATS else DAYS
    texts = [NUMBER_FORMATS[word](each) if word in NUMBER_FORMATS else each.strftime(word) for each in values]
    hin = npth.load(write_items(tmp_path / "t", texts, word, kind=kind))
    for sign, bound in itertools.product(SIGNS, values):
        expected = [row for row, value in enumerate(values, 1) if SIGNS[sign](value, bound)]
        assert met(hin, f"value {sign} {bound}") == expected
        assert met_by_edges(hin, f"mark {sign} {bound}") == expected
    assert not any("text" in note for note in hin.notes)


READ: dict[str, dict[str, Any]] = {
    "decimal comma": {"9,99": 9.99, "-1.200,00": -1200.0, "1.234.567": 1234567.0, "1 200,5": 1200.5},
    "decimal point": {"1,234,567.25": 1234567.25, "1'200.50": 1200.5},
    "%d.%m.%Y": {"5.2.2026": date(2026, 2, 5)},
    "%d.%m.%y": {"01.02.69": date(1969, 2, 1), "01.02.68": date(2068, 2, 1)},
    "%B %d, %Y": {"february 29, 2024": date(2024, 2, 29)},
    "%m/%d/%Y %I:%M %p": {"1/2/2026 12:05 AM": datetime(2026, 1, 2, 0, 5)},
    "%d.%m.%Y %H:%M:%S.%f": {"01.02.2026 23:59:59.5": datetime(2026, 2, 1, 23, 59, 59, 500000)},
}
REFUSED = {
    "decimal comma": ["9.99", "1.20,5", "1.2000", "0.123", "1,2,3", "€ 9,99", "9,99 €", "unknown"],
    "decimal point": ["$9.99", "9,99", "1.200,00"],
    "%d.%m.%Y": ["31.02.2026", "01/02/2026", "01.02.26", "01.02.2026 10:00"],
    "%m/%d/%Y": ["13/01/2026"],
    "%B %d, %Y": ["February 29, 2023"],
    "%m/%d/%Y %I:%M %p": ["1/2/2026 13:05 PM"],
    "%d.%m.%Y %H:%M": ["01.02.2026 24:00"],
}
"""What a word declares -> the texts that it reads, and those that it refuses."""
TEXTS = [(word, text, value) for word, known in READ.items() for text, value in known.items()]
TEXTS += [(word, text, None) for word, texts in REFUSED.items() for text in texts]


@pytest.mark.parametrize(("word", "text", "value"), TEXTS)
@pytest.mark.parametrize("in_store", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_declared_value_is_read_right_or_refused_with_its_line(
    tmp_path: Path, word: str, text: str, value: object, in_store: bool
) -> None:
    good = datetime(2026, 2, 1, 3, 4).strftime(word) if "%" in word else "7"
    folder = write_items(tmp_path / "t", [good, text], word)

    def read() -> HIN:
        return npth.load(import_store(folder, tmp_path / "store") if in_store else folder)

    if value is None:
        with pytest.raises(NeuPathError, match=r"\.csv, line 3: (value|mark) is ") as refusal:
            read()
        assert repr(text) in str(refusal.value)
        assert word in str(refusal.value)
        return
    hin = read()
    assert values_of(hin)[1] == value
    (table,) = hin.edge_tables.values()
    assert table.attributes["mark"][1].as_py() == value


def test_words_for_no_value_are_missing_and_counted(tmp_path: Path) -> None:
    folder = write_items(tmp_path / "t", ["9,99", "NULL", "n/a", "-", "N/A", "", "NULL", "40,00"], "decimal comma")
    hin = npth.load(folder)
    assert values_of(hin) == [9.99, *[None] * 6, 40.0]
    said = "5 values were read as missing: 'NULL' (2), 'n/a' (1), '-' (1), 'N/A' (1)"
    assert f"items.csv: value: {said}" in hin.notes
    assert f"user_item.csv: mark: {said}" in hin.notes
    assert npth.load(import_store(folder, tmp_path / "store")).notes == hin.notes


@pytest.mark.parametrize(
    ("word", "problem"),
    {
        "%d.%m": "it has no year", "%d.%m.%Q": "it has %Q", "%d.%m.%Y %d": "it has %d twice",
        "%d.%m.%Y %I:%M": "%I and %p", "decimal coma": "did you mean 'decimal comma'",
        "dd.mm.yyyy": "a format of dates such as '%d.%m.%Y'",
    }.items(),
)  # fmt: skip
def test_a_word_that_says_nothing_is_refused(tmp_path: Path, word: str, problem: str) -> None:
    with pytest.raises(NeuPathError, match=rf"attribute_types in graph\.toml.*{re.escape(problem)}"):
        npth.load(write_items(tmp_path / "t", ["1"], word))


# ---- Not declared: noted, with a line that reads -------------------------------------------------
DAY_TEXTS = [f"{day:02}.01.2026" for day in range(1, 29)]
WRITTEN: dict[str, tuple[list[str], str]] = {
    **{form: ([each.strftime(form) for each in DAYS], form) for form in DATE_FORMATS[:7] if form != "%d/%m/%Y"},
    **{word: (list(map(write, PRICES)), word) for word, write in NUMBER_FORMATS.items()},
}


@pytest.mark.parametrize("case", WRITTEN)
def test_texts_that_are_dates_or_numbers_are_noted_with_a_line_that_types_them(tmp_path: Path, case: str) -> None:
    texts, word = WRITTEN[case]
    hin = npth.load(write_items(tmp_path / "t", texts))
    declared = json.dumps(word)
    (of_nodes,) = [note for note in hin.notes if note.startswith("items.csv: value was read as text; ")]
    (of_edges,) = [note for note in hin.notes if note.startswith("user_item.csv: mark was read as text; ")]
    assert f"attribute_types = {{value = {declared}}} under [nodes.item] in graph.toml" in of_nodes
    assert f"attribute_types = {{mark = {declared}}} under [[edges]] in graph.toml" in of_edges
    typed = npth.load(write_items(tmp_path / "typed", texts, word))
    assert not any("read as text" in note for note in typed.notes)
    store = npth.load(import_store(tmp_path / "t", tmp_path / "store"))
    assert store.notes == hin.notes


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["01/02/2026", "03/04/2026"], '{value = "%d/%m/%Y"} or {value = "%m/%d/%Y"} (both fit: choose)'),
        ([*DAY_TEXTS, "soon", "N/A"], "correct or empty 1 of its 29 values, such as 'soon'; then"),
        ([*map(str, DAYS * 3), "soon"], "such as 'soon'; then its values, such as '2019-12-31', become dates"),
        (["9.99", "-", "40"], 'become numbers with attribute_types = {value = "number"} under [nodes.item] in graph'),
        *((texts, None) for texts in (["a", "b"], ["01234", "A1"], ["2,3 and 4"], ["x 1.1.2020"], ["1"], ["1.5", "2"])),
    ],
)
def test_notes_say_what_texts_are(tmp_path: Path, texts: list[str], said: str | None) -> None:
    notes = [note for note in npth.load(write_items(tmp_path / "t", texts)).notes if "attribute_types" in note]
    assert not notes if said is None else said in notes[0]


@pytest.mark.parametrize(
    ("texts", "word"), [(["\x85", "a"], "text"), (["12:30", "09:15", "23:59"], None), (["5 €", "5 €"], None)]
)
def test_texts_that_are_no_values_stay_as_they_are(tmp_path: Path, texts: list[str], word: str | None) -> None:
    folder = write_items(tmp_path / "t", texts, word)
    for source in (folder, import_store(folder, tmp_path / "store")):
        (edges,) = npth.load(source).edge_tables.values()
        assert edges.attributes["mark"].to_pylist() == texts


def test_points_that_may_stand_before_thousands_are_noted(tmp_path: Path) -> None:
    hin = npth.load(write_items(tmp_path / "t", ["1.200", "15.000", "950"]))
    note = next(note for note in hin.notes if note.startswith("items.csv"))
    assert note == (
        'items.csv: value: 1.200 was read as 1.2, and may mean 1200; decide by attribute_types = {value = "decimal '
        'comma"} or {value = "number"} under [nodes.item] in graph.toml, which `neupath init` writes'
    )
    whole = npth.load(write_items(tmp_path / "whole", ["1.200", "15.000", "950"], "decimal comma"))
    assert values_of(whole) == [1200.0, 15000.0, 950.0]
    for texts, word in ((["1.200", "15.000", "950"], "number"), (["1.200", "15.125", "0.950"], None)):
        hin = npth.load(write_items(tmp_path / texts[1], texts, word))
        assert not any("may mean" in note for note in hin.notes)


def test_texts_that_are_all_iso_dates_are_dates_in_every_source(tmp_path: Path) -> None:
    folder = write_items(tmp_path / "t", [str(day) for day in DAYS], kind="parquet")
    frame = pa.table({"item_id": ["1", "2"], "value": ["2020-01-31", "2021-01-31"]})
    edges = pa.table({"user_id": ["ann", "ann"], "item_id": ["1", "2"]})
    for source in (folder, import_store(folder, tmp_path / "store")):
        hin = npth.load(source)
        assert met(hin, "value > 2019-12-31") == [3, 4]
    hin = npth.load({"item": frame, ("user", "item"): edges})
    assert met(hin, "value > 2020-12-31") == [2]


def test_a_frame_is_declared_beside_its_table() -> None:
    frame = pa.table({"item_id": ["1", "2"], "value": ["9,99", "1.200,00"]})
    edges = {("user", "item"): pa.table({"user_id": ["ann", "ann"], "item_id": ["1", "2"]})}
    (note,) = npth.load({"item": frame, **edges}).notes
    assert 'attribute_types = {value = "decimal comma"} beside its table, as (table, {"attribute_types": …})' in note
    hin = npth.load({"item": (frame, {"attribute_types": {"value": "decimal comma"}}), **edges})
    assert met(hin, "value < 100") == [1]
    assert not hin.notes


def test_databases_take_declarations_of_nodes_and_edges(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "shop.sqlite")) as shop:
        shop.executescript(
            "CREATE TABLE item (id INTEGER PRIMARY KEY, day TEXT); CREATE TABLE user (id INTEGER PRIMARY KEY);"
            "CREATE TABLE buys (user_id INTEGER REFERENCES user(id), item_id INTEGER REFERENCES item(id));"
            "INSERT INTO item VALUES (1, '31.12.2019'), (2, '01.02.2026'); INSERT INTO user VALUES (1);"
            "INSERT INTO buys VALUES (1, 1), (1, 2);"
        )
    hin = npth.load(tmp_path / "shop.sqlite")
    assert any('attribute_types = {day = "%d.%m.%Y"} under [nodes.item] in graph.toml' in note for note in hin.notes)
    config = tmp_path / "graph.toml"
    config.write_text('[nodes.item]\nfile = "item"\nattribute_types = {day = "%d.%m.%Y"}\n')
    typed = npth.load(tmp_path / "shop.sqlite", config=config)
    assert met(typed, "day >= 2026-01-01") == [2]
    assert not typed.notes


def test_declarations_and_kinds_survive_an_export(tmp_path: Path) -> None:
    folder = write_items(tmp_path / "t", ["31.12.2019", "01.02.2026"], "%d.%m.%Y")
    hin = npth.load(folder)
    again = npth.load(write_folder(hin, tmp_path / "again"))
    assert again.nodes["item"].attributes.equals(hin.nodes["item"].attributes)
    (relation,) = hin.schema.relations
    assert again.edge_kinds(relation) == hin.edge_kinds(relation) == {"mark": "date"}
    text = npth.load(write_items(tmp_path / "text", ["2019-12-31", "2026-02-01"], "text"))
    assert met(npth.load(write_folder(text, tmp_path / "kept")), "value = 2019-12-31") == [1]
    for graph in (text, npth.load(tmp_path / "kept")):
        assert summarise(graph).node_types[0].attribute_types["value"] == "text"


# ---- Never compared as texts ---------------------------------------------------------------------
COMMAS, DATES = ["9,99", "40,00"], ["31.12.2019", "01.02.2026"]


@pytest.mark.parametrize(
    ("values", "condition", "declared"),
    [
        (["9,99", "40,00", "199,00", "1.200,00"], "value < 100", "decimal comma"),
        (["1,200.50", "9.99"], "value > 100", "decimal point"),
        (["12/31/2019", "02/01/2026"], "value <= 2020-12-31", "%m/%d/%Y"),
        (["31.12.2019 10:00", "01.02.2026 11:30"], "value > 2020-01-01T12:00", "%d.%m.%Y %H:%M"),
        *((DATES, condition, "%d.%m.%Y") for condition in (
            "value >= 2026-01-01", "value > 01.01.2020", "not (name = x or value > 2020)", "value = 2019-12-31",
            "value not in (2019-12-31)",
        )),
        *((COMMAS, condition, "decimal comma") for condition in (
            "value = 9.99", "value != 9.99", "value in (9.99, 40.00)", "value = 9,990",
        )),
    ],
)  # fmt: skip
def test_texts_are_not_compared_with_numbers_and_dates(
    tmp_path: Path, values: list[str], condition: str, declared: str
) -> None:
    folder = write_items(tmp_path / "t", values)
    hin = npth.load(folder)
    line = f"attribute_types = {{value = {json.dumps(declared)}}} in graph.toml"
    for ask in (
        lambda: met(hin, condition),
        lambda: npth.PathSim("item-user-item").fit(hin).top_k("t1", where=condition),
        lambda: hin.metapath(f"user-item[{condition}]-user"),
    ):
        with pytest.raises(NeuPathError) as refusal:
            ask()
        message = str(refusal.value)
        assert "attribute 'value' holds text" in message
        assert line in message
        assert any(repr(value) in message for value in values)
        assert "\n" not in message
    assert None not in values_of(npth.load(write_items(tmp_path / "typed", values, declared)))
    with pytest.raises(NeuPathError, match="attribute 'mark' holds text"):
        met_by_edges(hin, condition.replace("value", "mark").replace("name = x or", "weight > 3 or"))


@pytest.mark.parametrize(
    "option",
    [{"until": "2020-12-31"}, {"half_life": "365d"}]
    + [{"since": day} for day in ("2026-01-01", "2026", "2026-2-1", "2026/02", "Jan 2026", "today", "12:30")],
)
def test_a_time_that_is_text_is_refused_by_all_options_of_times(tmp_path: Path, option: dict[str, Any]) -> None:
    hin = npth.load(write_items(tmp_path / "t", ["31.12.2019", "01.02.2026"]))
    with pytest.raises(QueryError) as refusal:
        hin.metapath("user-item-user", time="mark", **option)
    assert "attribute 'mark' holds text" in str(refusal.value)
    assert 'attribute_types = {mark = "%d.%m.%Y"} in graph.toml' in str(refusal.value)
    with pytest.raises(QueryError, match=r"attribute 'mark' holds text, which are no numbers; .*%d\.%m\.%Y"):
        hin.metapath("user-item-user", weights={"user_item": "mark * 2"})


def items(values: list[str | None]) -> Nodes:
    return Nodes(
        "item", pa.array(range(1, len(values) + 1)), attributes=pa.table({"value": pa.array(values, pa.string())})
    )


@pytest.mark.parametrize(
    ("values", "condition", "rows"),
    [
        (["01234", "K1A", "1234"], "value = 01234", [1]),
        (["01234", "K1A", "1234"], "value in (01234, 9)", [1]),
        (["01234", "1234", "99"], "value = 1234", [2]),
        (COMMAS, "value = 9,99", [1]),
        (COMMAS, "value = 5,00", []),
        (DATES, "value = 31.12.2019", [1]),
        (DATES, "value != 31.12.2019", [2]),
        (DATES, "value ~ 2019", [1]),
        (["b", "a", "c"], "value < b1", [1, 2]),
        (["b", "a", "c"], "value = 5", []),
        (["$9.99", "x", "y"], "value = 9.99", []),
        ([None], "value > 5", []),
        (["20191231", "20260201"], "id != 2019-12-31", [1, 2]),
    ],
)
def test_exact_texts_and_words_are_still_compared_as_texts(values: list[Any], condition: str, rows: list[int]) -> None:
    nodes = Nodes("item", pa.array(values)) if condition.startswith("id") else items(values)
    assert [int(row) + 1 for row in np.flatnonzero(nodes.where(condition))] == rows


def test_where_no_declaration_reads_the_column_it_is_said(tmp_path: Path) -> None:
    hin = npth.load(write_items(tmp_path / "t", ["$9.99", "$1,200.00"]))
    with pytest.raises(QueryError) as refusal:
        met(hin, "value < 100")
    assert str(refusal.value).endswith(
        "its values, such as '$9.99', are numbers or dates in no way that attribute_types in graph.toml can say; take "
        "currency signs, units and words out of them first, or compare by =, in or ~"
    )
    with pytest.raises(QueryError, match="ids and names are read as texts here"):
        met(hin, "name > 5")


# ---- Random columns ------------------------------------------------------------------------------
NUMBER_SPELLINGS: dict[str, Callable[[float], str]] = {
    "plain": lambda value: f"{value:.2f}",
    **NUMBER_FORMATS,
    "dollar": lambda value: f"${value:,.2f}",
    "euro": lambda value: f"{with_comma(value)} €",
    "whole, dots": lambda value: f"{round(value):,}".replace(",", "."),
    "whole, commas": lambda value: f"{round(value):,}",
}


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(list(NUMBER_SPELLINGS)),
    st.lists(st.integers(1, 10**9).map(lambda cents: cents / 100), min_size=1, max_size=6),
    st.sampled_from(list(SIGNS)),
    st.integers(1, 10**9).map(lambda cents: cents / 100),
)
def test_numbers_of_any_spelling_are_compared_right_or_refused(
    tmp_path_factory: pytest.TempPathFactory, spelling: str, numbers: list[float], sign: str, bound: float
) -> None:
    texts = [NUMBER_SPELLINGS[spelling](number) for number in numbers]
    meant = [float(round(number)) for number in numbers] if spelling.startswith("whole") else numbers
    expected = [row for row, number in enumerate(meant, 1) if SIGNS[sign](number, bound)]
    folder = tmp_path_factory.mktemp("numbers")
    hin = npth.load(write_items(folder / "t", texts))
    noted = any("thousands" in note or "may mean" in note or "read as text" in note for note in hin.notes)
    for ask in (lambda: met(hin, f"value {sign} {bound}"), lambda: met_by_edges(hin, f"mark {sign} {bound}")):
        try:
            assert ask() == expected or noted
        except QueryError as refusal:
            assert "holds text" in str(refusal)
            continue
    if not hin.notes and spelling in ("dollar", "euro") and sign in "<=>=":
        with pytest.raises(QueryError):
            met(hin, f"value {'<' if sign == '=' else sign} {bound}")


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(DATE_FORMATS), st.text("0123456789./- :JanFeb", min_size=1, max_size=17))
def test_formats_read_what_strptime_reads(form: str, text: str) -> None:
    from neupath.graph.notations import read_notation

    (value,) = read_notation(pa.array([text]), form).to_pylist()
    try:
        expected: date | None = datetime.strptime(text, form)
    except ValueError:
        expected = None
    assert value == (expected.date() if isinstance(expected, datetime) and "%H" not in form else expected)


# ---- Comparisons that would be wrong in silence ----------------------------------------------------
@pytest.mark.parametrize(
    ("values", "condition"),
    [
        *((["5", "5.0", "5,00", "-"], condition) for condition in ("value = 5", "value != 5")),
        (["5,00", "5,0", "6,00"], 'value in ("5,00")'),
        (["1.2.2020", "01.02.2020", "3.2.2020"], "value = 1.2.2020"),
        *((["9,99", "40,00", "1.200,00"], condition) for condition in ('value < "$100"', "value < abc")),
        (["$9.99", "$40.00", "$1,200.00"], 'value < "100 EUR"'),
        (["9,99 €", "", "40,00 €", "", ""], "value = 9.99"),
        *((["ja", "nein", "ja"], condition) for condition in ("value = true", "value != false")),
    ],
)
def test_a_value_that_a_column_writes_in_several_ways_is_not_sought_in_one(values: list[Any], condition: str) -> None:
    with pytest.raises(QueryError, match="attribute 'value' holds text, and '.*'"):
        items(values).where(condition)


def test_texts_that_are_not_written_alike_are_shown_side_by_side() -> None:
    with pytest.raises(QueryError, match=r"not all written in one way, such as '31\.12\.2019' and '2020-01-31'"):
        items(["31.12.2019", "2020-01-31", "soon"]).where("value > 2020-01-01")


@pytest.mark.parametrize(
    ("numbers", "advice"),
    [
        (["20191231", "20260201"], 'become dates with attribute_types = {mark = "%Y%m%d"} in graph.toml'),
        (["1577750400", "1769904000"], 'become times with attribute_types = {mark = "unix"} in graph.toml'),
        (["2019", "2026"], "give a whole number, such as 2026"),
    ],
)
def test_whole_numbers_and_a_date_end_with_what_makes_them_dates(
    tmp_path: Path, numbers: list[str], advice: str
) -> None:
    folder = write_items(tmp_path / "t", numbers)
    with pytest.raises(QueryError, match=re.escape(advice)):
        npth.load(folder).metapath("user-item-user", time="mark", since="2020-01-01")
    if "attribute_types" in advice:
        word = advice.split('"')[1]
        hin = npth.load(write_items(tmp_path / "declared", numbers, word))
        hin.metapath("user-item-user", time="mark", since="2020-01-01")


@pytest.mark.parametrize(
    ("texts", "condition", "word"),
    [
        (["20191231", "20260201"], "value = 2019-12-31", "%Y%m%d"),
        (["20191231", "20260201"], "value >= 2020-01-01", "%Y%m%d"),
        (["20191231", "N/A", "20260201"], "value != 2019-12-31", "%Y%m%d"),
        (["1577750400", "1769904000"], "value in (2019-12-31)", "unix"),
        (["31.12.2019", "01.02.2026"], "value = 2019", "%d.%m.%Y"),
    ],
)
def test_a_date_is_not_sought_among_texts_of_numbers_nor_a_number_among_those_of_dates(
    texts: list[str], condition: str, word: str
) -> None:
    """Data frames, databases and workbooks may hold days such as 20191231 as texts."""
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"id": range(len(texts)), "value": texts})
    edges = {("user", "item"): pd.DataFrame({"user": ["u"] * len(texts), "item": range(len(texts))})}
    with pytest.raises(QueryError, match=re.escape(f'attribute_types = {{value = "{word}"}} in graph.toml')):
        npth.load({"item": frame, **edges}).nodes["item"].where(condition)
    declared = npth.load({"item": (frame, {"attribute_types": {"value": word}}), **edges})
    assert pa.types.is_temporal(declared.nodes["item"].attributes["value"].type)


# ---- Ids -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("word", ["NULL", "n/a", "NaN", "-", " none ", "(not given)"])
def test_an_edge_to_a_word_for_nothing_names_the_key_that_leaves_it_out(tmp_path: Path, word: str) -> None:
    edges = f"user_id,item_id\nann,cup\n{word},cup\nbob,cup\n"
    files = {"users__csv": "user_id,age\nann,3\nbob,4\n", "user_item__csv": edges}
    refused = check_read(tmp_path, files, r"missing_ids = \[.*?\] in graph.toml leaves out")
    (key,) = re.findall(r"missing_ids = \[.*?\](?= in graph.toml leaves out)", str(refused))
    check_read(tmp_path, {"graph__toml": key}, {"user -user_item-> item": 2}, {"user.ids": ["ann", "bob"]})


@pytest.mark.parametrize(
    ("ids", "notes"),
    [
        (["AB1", "AC2"], 0), (["missing", "person"], 0), (["ab", "AB"], 1), (["ab", "ab "], 1), (["\xe9a", "\xc9a"], 1),
        (["Na", "NA"], 2), (["a\xa0b", "a b"], 1), (["(no user)", "x"], 1), (["Null", "x"], 1), (["no", "x"], 0),
    ],
)  # fmt: skip
def test_ids_that_look_empty_or_alike_are_noted_and_no_others(tmp_path: Path, ids: list[str], notes: int) -> None:
    rows = "".join(f"{each},cup\n" for each in ids)
    files = {"user_item__csv": f"user_id,item_id\n{rows}"}
    check_read(tmp_path, files, {"user -user_item-> item": len(ids)}, {"notes": [""] * notes})


@pytest.mark.parametrize(
    ("own", "end"), [("007", "7"), ("7", "7.0"), ("1000", "1,000"), ("1,000", "1000"), ("7.0", "7")]
)
def test_an_edge_to_an_id_in_another_spelling_of_its_number_names_the_id(tmp_path: Path, own: str, end: str) -> None:
    edges = f"user_id;item_id\nann;cup\n{end};cup\n"
    files = {"users__csv": f"user_id;age\nann;3\n{own};4\n", "user_item__csv": edges}
    check_read(tmp_path, files, f"did you mean '{own}'. write the id alike in both tables")


def test_weights_whose_points_may_stand_before_thousands_are_noted(tmp_path: Path) -> None:
    note = "user_item.csv: weight 1.500 is read as 1.5; write 1500 if it means that, or else 1.5"
    for weights, notes in ((("1.500", "12.250"), [note]), (("1.5", "12.25"), [])):
        text = "user_id;item_id;weight\nann;cup;{}\nbob;cup;{}\n".format(*weights)
        check_read(tmp_path, {"user_item__csv": text}, {"user -user_item-> item": 2}, {"notes": notes})


def test_ids_that_are_others_with_a_fraction_of_zero_are_noted_by_both_readers(tmp_path: Path) -> None:
    tables = {
        "user_item__csv": "user_id,item_id\n1.0,cup\n2.0,cup\n3.0,tea\n",
        "user_tag__csv": "user_id,tag_id\n1,a\n2,b\n",
    }
    said = "user: 2 ids are others with .0 behind, such as '1.0'; write them alike, or fold_ids = false in graph.toml"
    expected = {"user -user_item-> item": 3, "user -user_tag-> tag": 2}
    hin = check_read(tmp_path / "t", tables, expected, {"noted": [said]})
    assert npth.load(import_store(tmp_path / "t", tmp_path / "store")).notes == hin.notes
    check_read(tmp_path / "t", {"graph__toml": "fold_ids = false\n"}, expected, {"notes": []})
