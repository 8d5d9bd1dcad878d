"""An unclosed quote is an error that names its line; all other quotes are read."""

import csv
import gzip
import io
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import neupath as npth
from neupath.errors import NeuPathError, SourceError
from neupath.io import import_store
from neupath.io.formats.text import find_unclosed

LINES = [f"m{number},Film {number}" for number in range(60)]


def table(folder: Path, lines: list[str]) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "movie_genre.csv").write_text("movie_id,genre\n" + "\n".join(lines) + "\n")
    return folder


def replaced(*texts: tuple[int, str]) -> list[str]:
    """Return the lines, some of them replaced; line n of the list is line n + 2 of the file."""
    return [dict(texts).get(number, line) for number, line in enumerate(LINES)]


UNCLOSED = {
    "until the end": replaced((10, 'm10,"Film 10')),
    "in the first cell": replaced((10, '"m10,Film 10')),
    "until the next stray one": replaced((10, 'm10,"Film 10'), (40, 'm40,"Film 40')),
    "until the next good one": replaced((10, 'm10,"Film 10'), (40, 'm40,"Film, 40"')),
    "in the last line": replaced((59, 'm59,"Film 59')),
    "behind untidy ones": replaced((3, 'm3,"a "b" c"'), (10, 'm10,"Film 10')),
}


@pytest.mark.parametrize("case", list(UNCLOSED))
def test_an_unclosed_quote_is_refused_where_it_opens(tmp_path: Path, case: str) -> None:
    folder = table(tmp_path / "g", UNCLOSED[case])
    line = 61 if case == "in the last line" else 12
    message = rf"movie_genre.csv, line {line}: a quote \(\"\) is not closed, so its cell swallows the lines below"
    with pytest.raises(SourceError, match=message):
        npth.load(folder)
    with pytest.raises(SourceError, match=message):
        import_store(folder, tmp_path / "store")
    assert not (tmp_path / "store").exists()


def test_an_unclosed_quote_in_a_gzipped_table_of_many_blocks(tmp_path: Path) -> None:
    lines = ["movie_id,genre", *(f'm{number},"Film, {number}"' for number in range(150_000))]
    lines[100_000] = lines[100_000].removesuffix('"')
    (tmp_path / "movie_genre.csv.gz").write_bytes(gzip.compress("\n".join(lines).encode(), 1))
    with pytest.raises(SourceError, match="line 100001: a quote"):
        npth.load(tmp_path)
    with pytest.raises(SourceError, match="line 100001: a quote"):
        import_store(tmp_path, tmp_path / "store")


@pytest.mark.parametrize(
    ("lines", "titles"),
    [
        (['m1,"two\nlines"', "m2,b"], ["two\nlines", "b"]),
        (['m1,"two\r\n""quoted"" lines"', 'm2,"x, y"'], ['two\r\n"quoted" lines', "x, y"]),
        (['m1,a 5" disk', 'm2,a 3" disk', 'm3,7"'], ['a 5" disk', 'a 3" disk', '7"']),
        (['m1,"a\nb"', 'm2,"c\nd"'], ["a\nb", "c\nd"]),
        (['m1,"two\nlines" ', 'm2,"x\ny"\t', '"m\n3" ,b'], ["two\nlines ", "x\ny\t", "b"]),
        (['m1,"two\nlines"', 'm2,"a "b" c"'], ["two\nlines", 'a b" c"']),
    ],
)
def test_other_quotes_are_read(tmp_path: Path, lines: list[str], titles: list[str]) -> None:
    assert npth.load(table(tmp_path / "g", lines)).nodes["genre"].ids.to_pylist() == titles


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
        yield from ("line after line of text, and more of it\n" for _ in range(200_000))
        yield end

    tracemalloc.start()
    try:
        assert find_unclosed(lines('the end"\n'), ",", '"') is None
        assert find_unclosed(lines("the end\n"), ",", '"') == 2
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_quotes_may_be_ordinary_characters(tmp_path: Path) -> None:
    folder = table(tmp_path / "g", UNCLOSED["until the end"])
    (folder / "graph.toml").write_text('quote = ""\n')
    assert npth.load(folder).num_nodes("movie") == 60


def test_joined_files_are_refused(tmp_path: Path) -> None:
    part = "movie_id,actor_id,year\nm1,a1,2009\nm2,a2,2010\n"
    for text, message in (
        ("\ufeff" + part + "\ufeffm3,a1,2011\n", "line 4: a byte-order mark is in the middle of the file"),
        (part + part, "line 4: the header is repeated among the rows"),
    ):
        folder = tmp_path / "g"
        folder.mkdir(exist_ok=True)
        (folder / "movie_actor.csv").write_text(text, encoding="utf-8")
        for read in (npth.load, lambda folder: import_store(folder, tmp_path / "store")):
            with pytest.raises(NeuPathError, match=f"movie_actor.csv, {message}"):
                read(folder)


def test_quotes_around_whole_columns_of_a_table_with_tabs(tmp_path: Path) -> None:
    rows = '"movie_id"\t"actor_id"\t"n"\n"m1"\t"Ann ""A"" Ash"\t1\n"m 2"\t"Bo"\t2\n'
    (tmp_path / "movie_actor.tsv").write_text(rows)
    assert npth.load(tmp_path).nodes["actor"].ids.to_pylist() == ['Ann "A" Ash', "Bo"]
    mixed = 'movie_id\tactor_id\n"m1"\t"Ann" Ash\n"m2"\tBo\n'
    (tmp_path / "movie_actor.tsv").write_text(mixed)
    assert npth.load(tmp_path).nodes["actor"].ids.to_pylist() == ['"Ann" Ash', "Bo"]
