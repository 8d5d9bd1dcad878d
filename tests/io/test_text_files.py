"""An unclosed quote is an error that names its line; all other quotes are read."""

import csv
import io
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import neupath as npth
from neupath.errors import NeuPathError
from neupath.io import import_store
from neupath.io.formats.text import find_unclosed
from tests.tables import check_read, write

LINES = [f"m{number},Film {number}" for number in range(60)]


def table(lines: list[str], header: str = "movie_id,genre") -> str:
    return "\n".join([header, *lines]) + "\n"


def replaced(*texts: tuple[int, str]) -> str:
    """Return the table with some lines replaced; line n of the list is line n + 2 of the file."""
    return table([dict(texts).get(number, line) for number, line in enumerate(LINES)])


PART = "movie_id,actor_id,year\nm1,a1,2009\nm2,a2,2010\n"
QUOTED = [f'm{number},"Film, {number}"' for number in range(150_000)]
OPEN = r"a quote \(\"\) is not closed, so its cell swallows the lines below"
REFUSED = {
    "a quote until the end": ("movie_genre__csv", replaced((10, 'm10,"Film 10')), f"line 12: {OPEN}"),
    "a quote in the first cell": ("movie_genre__csv", replaced((10, '"m10,Film 10')), f"line 12: {OPEN}"),
    "a quote until the next stray one": (
        "movie_genre__csv", replaced((10, 'm10,"Film 10'), (40, 'm40,"Film 40')), f"line 12: {OPEN}"),
    "a quote until the next good one": (
        "movie_genre__csv", replaced((10, 'm10,"Film 10'), (40, 'm40,"Film, 40"')), f"line 12: {OPEN}"),
    "a quote in the last line": ("movie_genre__csv", replaced((59, 'm59,"Film 59')), f"line 61: {OPEN}"),
    "a quote behind untidy ones": (
        "movie_genre__csv", replaced((3, 'm3,"a "b" c"'), (10, 'm10,"Film 10')), f"line 12: {OPEN}"),
    "a quote in a gzipped table of many blocks": (
        "movie_genre__csv__gz", table([*QUOTED[:99_999], 'm99999,"Film', *QUOTED[100_000:]]), f"line 100001: {OPEN}"),
    "two files with byte-order marks": (
        "movie_actor__csv", f"\ufeff{PART}\ufeffm3,a1,2011\n",
        "line 4: a byte-order mark is in the middle of the file"),
    "two files with headers": ("movie_actor__csv", PART + PART, "line 4: the header is repeated among the rows"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_unclosed_quotes_and_joined_files_are_refused_with_their_line(tmp_path: Path, case: str) -> None:
    name, text, message = REFUSED[case]
    folder = write(tmp_path / "g", **{name: text})
    for read in (npth.load, lambda folder: import_store(folder, tmp_path / "store")):
        with pytest.raises(NeuPathError, match=rf"{name.replace('__', '.')}, {message}"):
            read(folder)
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize(
    ("lines", "titles"),
    [
        (['m1,"two\nlines"', "m2,b"], ["two\nlines", "b"]),
        (['m1,"two\r\n""quoted"" lines"', 'm2,"x, y"'], ['two\r\n"quoted" lines', "x, y"]),
        (['m1,a 5" disk', 'm2,a 3" disk', 'm3,7"'], ['a 5" disk', 'a 3" disk', '7"']),
        (['m1,"a\nb"', 'm2,"c\nd"'], ["a\nb", "c\nd"]),
        (['m1,"two\nlines" ', 'm2,"x\ny"\t', '"m\n3" ,b'], ["two\nlines ", "x\ny\t", "b"]),
        (['m1,"two\nlines"', 'm2,"a "b" c"'], ["two\nlines", 'a b" c"']),
        # around whole columns of a table with tabs, and not
        (['"m1"\t"Ann ""A"" Ash"\t1', '"m 2"\t"Bo"\t2'], ['Ann "A" Ash', "Bo"]),
        (['"m1"\t"Ann" Ash', '"m2"\tBo'], ['"Ann" Ash', "Bo"]),
    ],
)
def test_other_quotes_are_read(tmp_path: Path, lines: list[str], titles: list[str]) -> None:
    if "\t" not in lines[0]:
        name, header = "movie_genre__csv", "movie_id,genre"
    else:
        name, header = "movie_genre__tsv", '"movie_id"\t"genre"\t"n"' if "\t1" in lines[0] else "movie_id\tgenre"
    check_read(
        tmp_path, {name: table(lines, header)}, {"movie -movie_genre-> genre": len(lines)}, {"genre.ids": titles}
    )


def test_quotes_may_be_ordinary_characters(tmp_path: Path) -> None:
    files = {"movie_genre__csv": replaced((10, 'm10,"Film 10')), "graph__toml": 'quote = ""\n'}
    check_read(tmp_path, files, {"movie -movie_genre-> genre": 60})


TEXTS = st.text(st.sampled_from('a" ,\t\n\r'), max_size=30)


@settings(max_examples=300)
@given(TEXTS)
@pytest.mark.slow
def test_only_unclosed_quotes_are_refused(text: str) -> None:
    """What a strict reader takes has all quotes closed; what ends inside a quote for any reader has not."""
    lines = io.StringIO(text, newline="").readlines()
    unclosed = find_unclosed(lines, ",", '"')
    try:
        list(csv.reader(lines, strict=True))
    except csv.Error as error:
        assert unclosed is not None or "end of data" not in str(error)
    else:
        assert unclosed is None


@pytest.mark.slow
def test_a_long_cell_is_not_an_unclosed_quote() -> None:
    def lines(end: str) -> Iterator[str]:
        yield "movie_id,genre\n"
        yield 'm1,"Film\n'
        yield from ("line after line of text, and more of it\n" for _ in range(30_000))
        yield end

    tracemalloc.start()
    try:
        assert find_unclosed(lines('the end"\n'), ",", '"') is None
        assert find_unclosed(lines("the end\n"), ",", '"') == 2
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
