"""Conditions: what they mean, how they print, and that every bad one is refused in one sentence with its position."""

import re
from datetime import date, datetime

import numpy as np
import pyarrow as pa
import pytest

import neupath as npth
from neupath import HIN
from neupath.errors import MetaPathError, NeuPathError, QueryError
from neupath.graph.conditions import (
    MOST_CHARACTERS,
    All,
    AnyOf,
    Comparison,
    Filter,
    Missing,
    Not,
    OneOf,
    Pinned,
    parse_condition,
    parse_expression,
)
from neupath.graph.hin import Edges
from neupath.graph.metapath import Relation, without_brackets
from neupath.graph.nodes import Nodes
from neupath.measures import PathCount
from tests.graphs import library_graph

PAPERS = library_graph().nodes["paper"]


@pytest.fixture(scope="module")
def library() -> HIN:
    return library_graph()


MEANINGS = [
    ("year>=2020", "p2 p4", "year >= 2020"),
    ("year == 2019", "p1", "year = 2019"),
    ("not year >= 2020", "p1", "not year >= 2020"),
    ("year is missing", "p3", "year is missing"),
    ("year IS NOT missing", "p1 p2 p4", "year is not missing"),
    ("not (year >= 2020 or open = true)", "", 'not (year >= 2020 or open = "true")'),
    ("year >= 2020 and open = false", "p2", 'year >= 2020 and open = "false"'),
    ("year = 2019 or year = 2022 and open = false", "p1", 'year = 2019 or year = 2022 and open = "false"'),
    ("(year = 2019 or year = 2022) and open = true", "p1 p4", '(year = 2019 or year = 2022) and open = "true"'),
    ("year in (2019, 2022.0)", "p1 p4", "year in (2019, 2022.0)"),
    ("year not in (2019)", "p2 p4", "not year in (2019)"),
    ("topic ~ ML", "p1 p4", 'topic ~ "ML"'),
    ("topic = ML and db", "p4", 'topic = "ML and db"'),
    ("topic = ML and year > 2020", "", 'topic = "ML" and year > 2020'),
    ("name in ('Deep, wide', A and B)", "p1 p2", 'name in ("Deep, wide", "A and B")'),
    ('name = "Say ""hi"""', "p3", 'name = "Say ""hi"""'),
    ("day > 2020-01-31", "p3 p4", "day > 2020-01-31"),
    ("day > 2020-01-31T12:00", "p3 p4", "day > 2020-01-31T12:00"),
    ("at >= 2020-01-31T12:00", "p1 p3 p4", "at >= 2020-01-31T12:00"),
    ("at < 2020-02-01", "p1", "at < 2020-02-01"),
    ("zoned < 2020-02-01", "p1", "zoned < 2020-02-01"),
    ("zoned < 2020-01-31T13:00+02:00", "", 'zoned < "2020-01-31T13:00+02:00"'),
    ("score < 2", "p1 p3", "score < 2"),
    ("score is missing", "p2 p4", "score is missing"),
    ("page count >= 3", "p3 p4", '"page count" >= 3'),
    ('"page count" in (1, 3)', "p1 p3", '"page count" in (1, 3)'),
    ("id = p1 or id = p2", "p1 p2", 'id = "p1" or id = "p2"'),
    ("year > 2019.5", "p2 p4", "year > 2019.5"),
    ("year<2020", "p1", "year < 2020"),
    ("year != 2020", "p1 p4", "year != 2020"),
    ("name = p1", "p4", 'name = "p1"'),
]


@pytest.mark.parametrize(("text", "marked", "printed"), MEANINGS)
def test_what_conditions_mean_and_how_they_print(text: str, marked: str, printed: str) -> None:
    assert [PAPERS.id(row) for row in np.flatnonzero(PAPERS.where(text))] == marked.split()
    condition = parse_condition(text, PAPERS.column_names())
    assert str(condition) == printed
    assert parse_condition(printed) == condition


def test_conditions_as_objects() -> None:
    recent = Comparison("year", ">=", 2020) | Missing("year")
    assert str(recent & ~OneOf("topic", ("ml", "db"))) == (
        '(year >= 2020 or year is missing) and not topic in ("ml", "db")'
    )
    assert PAPERS.where(recent).tolist() == [False, True, True, True]
    assert Comparison("day", "<", date(2020, 2, 1)) == parse_condition("day < 2020-02-01")
    assert All((All((recent, Missing("a"))), Missing("b"))).parts == (recent, Missing("a"), Missing("b"))
    assert AnyOf((Missing("a"), AnyOf((Missing("b"), Missing("c"))))).parts == tuple(map(Missing, "abc"))
    assert str(Not(Not(Missing("a")))) == "not a is not missing"
    with pytest.raises(QueryError, match="'<>' is no comparison"):
        Comparison("year", "<>", 3)


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("AP[year>=2020]A", "author-paper[year >= 2020]-author"),
        ("A P{p1} A".replace(" ", ""), "author-paper{p1}-author"),
        ("author-paper{p1,'A and B'}[year>0]-author", "author-paper{p1, A and B}[year > 0]-author"),
        ('author-paper{"Deep, wide"}-author', 'author-paper{"Deep, wide"}-author'),
        ("author[age<45]-paper[day > 2020-01-31]-author", "author[age < 45]-paper[day > 2020-01-31]-author"),
        ('author-paper[name = "a]-b"]-author', 'author-paper[name = "a]-b"]-author'),
        ("paper -cites[weight>=1]-> paper", "paper -cites[weight >= 1]-> paper"),
        ("author -writes[role=first]-> paper", 'author -writes[role = "first"]-> paper'),
        ("paper <-writes[weight: 2*pages]- author", "paper <-writes[weight: 2 * pages]- author"),
        (
            "author -writes[role=first; weight: log1p(pages)]-> paper",
            'author -writes[role = "first"; weight: log1p(pages)]-> paper',
        ),
        ("AP[weight: decay(year, 2022, 2)]A", "author-paper[weight: decay(year, 2022, 2)]-author"),
        ("AP[year>2000; weight:year-2000]A", "author-paper[year > 2000; weight: year - 2000]-author"),
    ],
)
def test_conditions_in_meta_paths(library: HIN, text: str, printed: str) -> None:
    path = library.metapath(text)
    assert str(path) == printed
    assert library.metapath(printed) == path
    assert hash(library.metapath(printed)) == hash(path)
    assert path.plain() == library.metapath(without_brackets(text))


def test_conditions_of_a_path_as_objects(library: HIN) -> None:
    path = library.metapath("APA").where("paper", Comparison("year", ">=", 2020))
    assert path == library.metapath("AP[year >= 2020]A")
    first = path.where_edges("writes", Filter(parse_condition("role = first")))
    assert str(first) == 'author -writes[role = "first"]-> paper[year >= 2020] <-writes[role = "first"]- author'
    assert path.where("paper", "open = true").filters[1] == Filter(parse_condition("year >= 2020 and open = true"))
    with pytest.raises(MetaPathError, match="'paper -cites-> paper' has no author; it passes paper"):
        library.metapath("paper -cites-> paper").where("author", "age > 3")
    with pytest.raises(MetaPathError, match="does not follow a relation 'write'; it follows writes; did you mean"):
        path.where_edges("write", Filter())


def test_halves_keep_the_condition_on_both_sides(library: HIN) -> None:
    path = library.metapath("author-paper[year >= 2020]-author")
    assert path.is_round_trip
    assert str(path.half()) == "author-paper[year >= 2020]"
    assert path != library.metapath("APA")
    one_sided = library.metapath("author[age < 45]-paper-author")
    assert not one_sided.is_symmetric
    with pytest.raises(
        MetaPathError, match=r"differ between its halves; use 'author\[age < 45\]-paper-author\[age < 45\]'"
    ):
        npth.PathSim(one_sided).fit(library)


BAD = """
AP[yeer>=2020]A|4|paper has no attribute 'yeer'
AP[year>=soon]A|10|attribute 'year' holds whole numbers, and 'soon' cannot be compared
AP[year>=]A|10|expected a value after '>='
AP[year>=2020|14|expected ']' to close '[' of character 3
AP[year 2020]A|13|expected a comparison after 'year 2020'
AP[year>=2020 and]A|10|'2020 and' cannot be compared
AP[year>=2020 or or]A|10|cannot be compared
AP[>=2020]A|4|expected the name of an attribute
AP[]A|4|expected the name of an attribute
AP[(year>=2020]A|15|expected ')' to close '(' of character 4
AP[year>=2020)]A|14|expected ']' to close '[' of character 3
AP[year in 2020]A|12|expected '(' after 'in'
AP[year in ()]A|13|expected a value after '('
AP[year in (2020,)]A|18|expected a value after ','
AP[year in (2020, x)]A|19|'x' cannot be compared
AP[year in (2020]A|17|expected ')' to close '(' of character 12
AP[year is]A|11|expected 'missing' or 'not missing'
AP[year is not]A|15|expected 'missing' or 'not missing'
AP[year is gone]A|12|expected 'missing' or 'not missing'
AP[not]A|7|expected the name of an attribute
AP[not not]A|11|expected the name of an attribute
AP[year = 'x]A|11|the quote is not closed
AP['year = 3]A|4|the quote is not closed
AP[name ~ "a]A|11|the quote is not closed
AP[year => 3]A|10|'> 3' cannot be compared
AP[year >> 3]A|10|'> 3' cannot be compared
AP[year === 3]A|11|'= 3' cannot be compared
AP[year <> 3]A|10|'> 3' cannot be compared
AP[day > 2020]A|10|holds dates
AP[day > 31.1.2020]A|10|holds dates
AP[day > 2020-13-01]A|10|holds dates
AP[day > 2020-02-30]A|10|holds dates
AP[at > yesterday]A|9|holds times
AP[at > 2020-01-31T25:00]A|9|holds times
AP[at > 2020-01-31T12:00+01:00]A|9|holds times
AP[open = maybe]A|11|holds true or false
AP[year > 99999999999999999999]A|11|cannot be compared
AP[year > nan]A|11|cannot be compared
AP[score > inf]A|12|cannot be compared
AP[score > 1e]A|12|cannot be compared
AP[score > 1,5]A|12|cannot be compared
AP[role = first]A|4|paper has no attribute 'role'
AP[Year > 3]A|4|did you mean 'year'
AP[page count2 > 3]A|4|did you mean 'page count'
AP{p9}A|4|no paper with the id or name 'p9'
AP{}A|4|expected the id or name of a node
AP{p1,}A|7|expected the id or name of a node
AP{p1A|7|expected '}' to close '{' of character 3
AP{p1, 'p2}A|8|the quote is not closed
AP{'p1' p2}A|9|expected '}' to close
AP{p1}{p8}A|8|no paper with the id or name 'p8'
AP[year > 3]{p8}A|14|no paper with the id or name 'p8'
author-paper[yeer > 3]-author|14|paper has no attribute 'yeer'
author -writes[rolle = first]-> paper|16|relation 'writes' has no attribute 'rolle'
author -writes[pages > x]-> paper|24|holds whole numbers
author -writes[pages > 3-> paper|33|expected ']' to close '[' of character 15
author -writes[year > 3]-> paper|16|(it has weight, role, pages)
paper -cites[role = first]-> paper|14|relation 'cites' has no attribute 'role' (it has weight)
author -[pages > 3]-> paper|9|stands behind the name of their relation
author -writes{p1}-> paper|0|
author -writes[weight: ]-> paper|24|expected a number, an attribute or a function
author -writes[weight: 1/0]-> paper|26|this divides by 0
author -writes[weight: pages / 0.0]-> paper|32|this divides by 0
author -writes[weight: foo(pages)]-> paper|24|there is no function 'foo'
author -writes[weight: log2(pages)]-> paper|24|did you mean 'log'
author -writes[weight: log(pages, 2)]-> paper|24|log takes 1 values, got 2
author -writes[weight: clip(pages)]-> paper|24|clip takes 3 values, got 1
author -writes[weight: (pages]-> paper|30|expected ')' to close '(' of character 24
author -writes[weight: pages +]-> paper|31|expected a number, an attribute or a function
author -writes[weight: pages ** 2]-> paper|31|expected a number, an attribute or a function
author -writes[weight: pages 2]-> paper|30|expected ']' to close
author -writes[weight: page]-> paper|24|did you mean 'pages'
author -writes[weight: role * 2]-> paper|24|holds text, which are no numbers
author -writes[weight: 1e999]-> paper|24|more than a float can hold
author -writes[weight: __import__("os")]-> paper|24|there is no function '__import__'
author -writes[weight: pages.real]-> paper|29|expected ']' to close
author -writes[weight: pages; weight: 2]-> paper|29|expected ']' to close
author -writes[role = first; role = last]-> paper|30|expected 'weight:'
author -writes[weight: decay(pages)]-> paper|24|decay takes an attribute, a reference time and a half-life
author -writes[weight: decay(pages, 3, 2d)]-> paper|24|so give a number above 0 in the unit
author -writes[weight: decay(pages, 3, 0)]-> paper|24|so give a number above 0 in the unit
author -writes[weight: decay(pages, x, 3)]-> paper|24|holds whole numbers
author -writes[weight: decay(role, x, 3)]-> paper|0|
AP[weight: decay(day, 2020-01-31, 365)]A|12|with a unit
AP[weight: decay(day, soon, 365d)]A|12|holds dates
AP[weight: day]A|12|use decay(day, 2020-01-31, 365d)
AP[weight: name]A|12|holds text
A[weight: age]PA|0|at its start has the weight
APA[weight: age]|0|at its end has the weight
AP[year > 3]X|0|letter 3, 'X'
AP[year > 3|0|
AP[year > 3]]A|0|letter 3, ']'
AP[[year > 3]]A|4|expected the name of an attribute
AP[{p1}]A|4|expected the name of an attribute
[year > 3]AP|0|
A-P[year > 3]-A|0|
author-paper[year > 3]author|0|expected '-', '->' or '<-'
author-paper[year > 3]-autor|0|did you mean 'author'
author-paper[year > 3|0|
"""


def _lines() -> list[tuple[str, int, str]]:
    return [(text, int(at), what) for text, at, what in (line.rsplit("|", 2) for line in BAD.strip().splitlines())]


@pytest.mark.parametrize(("text", "at", "what"), _lines())
def test_a_bad_condition_is_refused_in_one_sentence_with_its_position(
    library: HIN, text: str, at: int, what: str
) -> None:
    with pytest.raises(NeuPathError) as refusal:
        library.metapath(text)
    message = str(refusal.value)
    assert what in message
    assert "\n" not in message
    assert len(message) < 500
    if at:
        assert f"at character {at}:" in message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("year > 3 " + "and year > 3 " * 1000, f"at most {MOST_CHARACTERS:,} are read: it goes on at character 8,193"),
        ("(" * 100 + "year > 3" + ")" * 100, "at character 33: it is nested more than 32 deep"),
        ("not " * 100 + "year > 3", "at character 129: it is nested more than 32 deep"),
        ("year > " + "9" * 8000, "cannot be compared"),
        ("a" * 8000, "expected a comparison after"),
        ("name = " + "(" * 8000, "expected"),
    ],
)
def test_long_and_deep_conditions(text: str, message: str) -> None:
    if "expected" in message and text.startswith("name"):
        assert not PAPERS.where(text).any()  # brackets belong to a bare text
        return
    with pytest.raises(QueryError, match=re.escape(message)) as refusal:
        PAPERS.where(text)
    assert len(str(refusal.value)) < 400


def test_long_and_deep_expressions() -> None:
    with pytest.raises(QueryError, match="it has more than 100 operators"):
        parse_expression("a" + "+a" * 4000)
    with pytest.raises(QueryError, match="nested more than 32 deep"):
        parse_expression("log(" * 1000 + "a" + ")" * 1000)
    with pytest.raises(QueryError, match="nested more than 32 deep"):
        parse_expression("-" * 1000 + "a")


# ---- Weights and times ---------------------------------------------------------------------------
def test_weights_by_expression(library: HIN) -> None:
    path = library.metapath("author-paper", weights={"writes": "pages - 2"})
    assert str(path) == "author -writes[weight: pages - 2]-> paper"
    matrix = library.matrix(path.steps[0].links[0])
    assert matrix.toarray().tolist() == [[0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 3, 4]]
    bad = library.metapath("author-paper", weights={"writes": "1 / (pages - 2)"})
    with pytest.raises(
        QueryError, match="is inf for the edge 'Ann' to 'p2' of 'author -writes-> paper', the first of 1"
    ):
        library.matrix(bad.steps[0].links[0])
    with pytest.raises(QueryError, match="has a weight of writes in its text already"):
        library.metapath("author -writes[weight: 2]-> paper", weights={"writes": "3"})


def test_times_become_conditions_and_weights(library: HIN) -> None:
    since = library.metapath("APA", time="year", since=2020, until=2021)
    assert str(since) == "author-paper[year >= 2020 and year <= 2021]-author"
    decayed = library.metapath("APA", time="year", half_life=2)
    assert str(decayed) == "author-paper[weight: decay(year, 2022, 2)]-author"
    now = library.metapath("APA", time="paper.day", now=date(2020, 2, 1), half_life="30d")
    assert str(now) == "author-paper[day <= 2020-02-01; weight: decay(day, 2020-02-01, 30d)]-author"
    edges = library.metapath("author-paper", time="pages", since=2, half_life=1.5)
    assert str(edges) == "author -writes[pages >= 2; weight: weight * decay(pages, 6, 1.5)]-> paper"
    own = PathCount(decayed).fit(library)
    ann_bob = 2 * 3 * 2 ** (-(2022 - 2020) / 2)
    assert own.scores("Ann", ["Bob"])[0] == pytest.approx(ann_bob, rel=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"since": 2020}, "since needs time, the attribute that holds the times"),
        ({"time": "year"}, "time needs since, until, now or half_life"),
        ({"time": "yeer", "since": 1}, r"time is 'yeer', .*\(there are .*paper.year.*\); did you mean 'year'"),
        ({"time": "age", "since": 1}, r"stands only at the ends of .* such as 'author\[age >= …\]'"),
        ({"time": "topic", "half_life": "3d"}, "attribute 'topic' holds text, which are no times"),
        ({"time": "year", "since": "soon"}, "attribute 'year' holds whole numbers, and 'soon'"),
        ({"weights": {"write": "1"}}, "does not follow a relation 'write'; it follows writes"),
        ({"weights": {"writes": "1 +"}}, "weight '1 \\+', at character 4: expected a number"),
        ({"wait": 3}, "a meta-path has no option 'wait'"),
    ],
)
def test_bad_weights_and_times(library: HIN, options: dict, message: str) -> None:
    with pytest.raises(NeuPathError, match=message):
        library.metapath("APA", **options)


def test_pinned_nodes_by_id_and_name(library: HIN) -> None:
    by_name = PathCount("author-paper{A and B}-author").fit(library)
    assert by_name.top_k("Ann").ids == ("Bob",)
    assert library.metapath("AP{p1}A").filters[1] == Filter(Pinned(("p1",)))


def _of_dates_and_times() -> HIN:
    day, noon = date(2020, 1, 1), datetime(2020, 1, 1, 12)
    nodes = [
        Nodes("user", pa.array(["u", "v"])),
        Nodes("film", pa.array(["f"]), attributes=pa.table({"at": [day], "score": [1234567.5]})),
    ]
    relation = Relation("user", "rates", "film")
    table = pa.table({"at": [noon, noon, noon]})
    return HIN.build(nodes, [Edges(relation, np.array([0, 0, 1]), np.array([0, 0, 0]), np.array([2.0, 3, 5]), table)])


def test_times_of_different_types_have_no_newest() -> None:
    hin = _of_dates_and_times()
    with pytest.raises(QueryError, match=r"\(date32\[day\], timestamp\[us\]\).* such as 'rates.at', or give now"):
        hin.metapath("UFU", time="at", half_life="1d")
    for options in ({"time": "rates.at"}, {"time": "at", "now": "2020-01-02"}):
        assert npth.PathSim(hin.metapath("UFU", half_life="1d", **options)).fit(hin).top_k("u").ids == ("v",)


@pytest.mark.parametrize(
    ("column", "half_life"),
    [(pa.array([float("nan")] * 2), 3), (pa.nulls(2, pa.float64()), 3), (pa.nulls(2, pa.date32()), "3d")],
)
def test_without_any_time_there_is_no_newest(column: pa.Array, half_life: object) -> None:
    nodes = [
        Nodes("author", pa.array(["x", "y"])),
        Nodes("paper", pa.array(["q", "r"]), None, pa.table({"t": column})),
    ]
    hin = HIN.build(nodes, [Edges(Relation("author", "writes", "paper"), np.array([0, 1]), np.array([0, 0]))])
    with pytest.raises(
        QueryError, match=r"no paper\.t has a value, so there is no newest time .* give now, or another"
    ):
        hin.metapath("author-paper-author", time="t", half_life=half_life)


def test_a_half_life_keeps_all_its_digits() -> None:
    path = _of_dates_and_times().metapath("UFU", time="score", half_life=1234567.89)
    assert str(path) == "user-film[weight: decay(score, 1234567.5, 1234567.89)]-user"
    for endless in ("1e400", float("inf")):
        with pytest.raises(QueryError, match="give a number above 0"):
            _of_dates_and_times().metapath("UFU", time="score", half_life=endless)


def test_weights_are_expressions_by_relation() -> None:
    for weights in ({"rates": 3}, ["rates=3"], "rates=3"):
        with pytest.raises(QueryError, match="give expressions by the name of a relation"):
            _of_dates_and_times().metapath("UFU", weights=weights)  # type: ignore[arg-type]


def test_changed_edges_would_be_judged_as_sums() -> None:
    hin = _of_dates_and_times()
    scorer = npth.PathSim("user -rates[weight >= 4]-> film <-rates[weight >= 4]- user").fit(hin)
    assert scorer.score("u", "v") == 0, "the ratings 2 and 3 are judged one by one"
    for ask in (
        lambda: npth.significance(scorer, [scorer.top_k("v")], permutations=2),
        lambda: npth.what_if(hin, scorer.metapath_, "v", "u"),
        lambda: npth.stability(scorer, scorer.top_k("v"), samples=2),
    ):
        with pytest.raises(MetaPathError, match="single edges of rates, some of which are parallel"):
            ask()


def test_a_time_that_only_some_relations_of_a_step_have() -> None:
    nodes = [Nodes("user", pa.array(["u", "v"])), Nodes("film", pa.array(["f"]))]
    ends = np.array([0, 1]), np.array([0, 0])
    rates = Edges(Relation("user", "rates", "film"), *ends, attributes=pa.table({"day": [1, 2]}))
    hin = HIN.build(nodes, [rates, Edges(Relation("user", "tags", "film"), *ends)])
    with pytest.raises(QueryError, match="which edges of tags do not have, and a step from user to film follows them"):
        hin.metapath("UFU", time="day", since=2)
    assert "rates[day >= 2]" in str(hin.metapath("UFU", time="rates.day", since=2))
    one = hin.metapath("user -rates-> film <-rates- user", time="day", since=2)
    assert PathCount(one).fit(hin).scores("v").tolist() == [0, 1]


def test_relations_of_one_name_all_have_the_time() -> None:
    nodes = [Nodes(t, pa.array([t]), attributes=pa.table({"day": [1]})) for t in ("user", "film", "genre")]
    zero, table = np.array([0]), pa.table({"day": [1]})
    edges = [
        Edges(Relation("user", "has", "film"), zero, zero, attributes=table),
        Edges(Relation("film", "has", "genre"), zero, zero),
    ]
    with pytest.raises(QueryError, match="relation 'has' has no attribute 'day'"):
        HIN.build(nodes, edges).metapath("user-film-genre", time="day", since=2)


# ---- What people paste and try -------------------------------------------------------------------
@pytest.mark.parametrize("text", ["author–paper–author", "APA[year > 3]–X", "author-paper[year – 3]-author", "A–P"])
def test_a_dash_that_is_not_of_the_keyboard_is_named(library: HIN, text: str) -> None:
    with pytest.raises(NeuPathError, match="'–', is an en dash: write a plain -") as refusal:
        library.metapath(text)
    assert str(refusal.value).count("en dash") == 1


def test_a_minus_sign_in_a_value_is_named(library: HIN) -> None:
    with pytest.raises(QueryError, match="character 9, '−', is a minus sign: write a plain -"):
        library.nodes["paper"].where("score > −5")


@pytest.mark.parametrize(
    ("where", "meant"),
    [
        ({"year": 2019}, "write a condition as a text, such as 'year = 2019'"),
        ({"year": 2019, "topic": "ml"}, "such as 'year = 2019 and topic = \"ml\"'"),
        (2019, "such as 'year >= 2000', or several in a list"),
        ([("year", 2019)], "or several in a list"),
    ],
)
def test_conditions_that_are_no_texts_are_refused(library: HIN, where: object, meant: str) -> None:
    scorer = npth.PathSim("paper-author-paper").fit(library)
    with pytest.raises(QueryError, match=r"^where is ") as refusal:
        scorer.top_k("p1", where=where)  # type: ignore[call-overload]
    assert meant in str(refusal.value)


def test_conditions_as_objects_filter_hits(library: HIN) -> None:
    scorer = npth.PathSim("paper-author-paper").fit(library)
    expected = scorer.top_k("p1", where="year >= 2020").ids
    assert expected
    for where in (Comparison("year", ">=", 2020), [Comparison("year", ">=", 2020)]):
        assert scorer.top_k("p1", where=where).ids == expected  # type: ignore[call-overload]
