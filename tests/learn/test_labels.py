import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import neupath as npth
from neupath import HIN, NeuPathError
from neupath.errors import SourceWarning
from neupath.learn.labels import Pairs, draw_pairs, read_pairs, too_few, write_pairs
from tests.graphs import graph_of

ROWS = [("Mike", "Bob", 1.0), ("Jim", "Mike", 0.08)]


def test_pairs_come_as_file_table_or_tuples(toy: HIN, tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("query,target,score\nMike,Bob,1\nJim,Mike,0.08\n")
    columns = {"query": ["Mike", "Jim"], "target": ["Bob", "Mike"], "score": [1.0, 0.08]}
    for source in (path, str(path), ROWS, pa.table(columns), pd.DataFrame(columns)):
        pairs = read_pairs(toy, source)
        assert pairs.node_type == "author"
        assert pairs.queries.tolist() == [0, 1]
        assert pairs.targets.tolist() == [3, 0]
        assert pairs.scores.tolist() == [1.0, 0.08]


M, B = "Mike", "Bob"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ([], "there are no pairs to learn from; give at least one query, target and score"),
        (7, "pairs are 7; give a CSV file, a table, or"),
        ([7], "pair 1 is 7; it must be a query, a target and a score"),
        (["Mike-Bob"], "pair 1 is 'Mike-Bob'; it must be a query, a target and a score"),
        ([(M, B)], "it must be a query, a target and a score"),
        ([(M,)], r"pair 1 is \('Mike',\); it must be a query, a target and a score"),
        ([(M, B, 1, 1, 1)], "it must be a query, a target and a score"),
        ([(M, B, 1), (M, "Jim")], "it must be a query, a target and a score"),
        ([(M, "Nobody", 1.0)], "no node type has all targets of the pairs: no author with the id 'Nobody'"),
        ([("Nobody", B, 1.0)], "no node type has all queries of the pairs: no author with the id 'Nobody'"),
        ([(M, B, 1.0), (M, "SIGMOD", 1.0)], "no node type has all targets of the pairs"),
        ([(None, B, 1.0)], "pair 1 has no query; write its id"),
        ([(M, "", 1.0)], "pair 1 has no target; write its id"),
        ([(M, float("nan"), 1.0)], "pair 1 has no target; write its id"),
        ([(M, ["Bob"], 1.0)], r"pair 1 has the target \['Bob'\]; an id is a text or a whole number"),
        ([(M, B, float("nan"))], "has the score nan; scores are finite numbers, or words such as yes and no"),
        ([(M, B, float("inf"))], "has the score inf; scores are finite numbers"),
        ([(M, B, "high")], "the score 'high'; scores are finite numbers, or words such as yes and no"),
        ([(M, B, "4/5")], "the score '4/5'; scores are finite numbers"),
        ([(M, B, None)], r"pair 1 \('Mike', 'Bob'\) has no score; scores are finite numbers"),
        ([(M, B, (1, 2))], r"has the score \(1, 2\); scores are finite numbers"),
        ([(M, B, 5), (M, "Jim", 5)], "all labels are 5, which says nothing of a scale; give labels from 0 to 1"),
        ([(M, B, "yes"), (M, "Jim", 4)], r"has the score 'yes', and pair 2 .* has 4; give words or numbers, not both"),
        (
            [(M, B, 0.3), (M, "Jim", "no")],
            r"pair 2 .* has the score 'no', and pair 1 .* has 0.3; give words or numbers",
        ),
        ([(M, B, 1), (M, B, 0)], r"has the score 1, and pair 2 .* has 0; keep one of the two, or say who gave each"),
        ([(M, B, 1, 0)], r"pair 1 \('Mike', 'Bob'\) has the weight 0; a weight says how much a label counts"),
        ([(M, B, 1, "sure")], "has the weight 'sure'; a weight says how much a label counts, and is more than 0"),
        ([(M, B, 1, None)], "has no weight; a weight says how much a label counts"),
        ({"query": [M], "target": [B], "rank": [0]}, "has the rank 0; ranks are 1 for the most similar target"),
        ({"query": [M], "target": [B], "rank": ["first"]}, "has the rank 'first'; ranks are 1 for the most similar"),
        ({"query": [M], "target": [B], "rank": [1.5]}, "has the rank 1.5; ranks are 1 for the most similar target"),
        ({"query": [M], "target": [B], "rank": [1], "score": [1]}, "either a score or a rank for each, and this has"),
        ({"query": [M] * 2, "target": [B] * 2, "rank": [1, 2]}, "has the rank 1, and pair 2 .* has 2; keep one"),
        (
            {"query": [M] * 2, "target": [B] * 2, "score": [1, 0], "rater": ["x", "x"]},
            r"has the score 1, and pair 2 .* has 0; keep one of the two$",
        ),
        ({"query": [M], "target": [B], "score": [1], "rater": [""]}, "has no rater, and others have one; say who"),
        ({"query": [M] * 2, "target": [B], "score": [1]}, "columns of the pairs are of different lengths: query 2"),
        ({"query": [M], "goal": [B]}, "has the columns query, target, score, and this has query, goal"),
        ({"query": [M], "target": [B], "score": [1], "query_type": ["editor"]}, "'editor'"),
        ("nowhere.csv", "no such file: nowhere.csv"),
    ],
)
def test_bad_pairs(toy: HIN, source, message: str) -> None:
    with pytest.raises(NeuPathError, match=message) as caught:
        read_pairs(toy, source)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("labels", "scores"),
    [
        ({"score": [5, 3, 1]}, [1.0, 0.5, 0.0]),
        ({"score": [-1.0, 0.0, 1.0]}, [0.0, 0.5, 1.0]),
        ({"score": ["Yes", " no", "similar"]}, [1.0, 0.0, 1.0]),
        ({"score": [True, False, True]}, [1.0, 0.0, 1.0]),
        ({"score": ["0.2", "0.4", "0.2"]}, [0.2, 0.4, 0.2]),
        ({"rank": [1, 2, 4]}, [1.0, 0.75, 0.25]),
    ],
)
def test_labels_as_people_give_them(toy: HIN, labels: dict, scores: list[float]) -> None:
    pairs = read_pairs(toy, {"query": ["Mike"] * 3, "target": ["Bob", "Jim", "Ann"]} | labels)
    assert pairs.scores.tolist() == pytest.approx(scores)
    assert pairs.weights.tolist() == [1.0] * 3


def test_columns_that_are_not_used_are_named(toy: HIN, tmp_path: Path) -> None:
    table = {"query": ["Mike"], "target": ["Bob"], "score": [1], "wieght": [2], "date": ["2026-01-01"]}
    with pytest.warns(
        SourceWarning, match="not used in the table of pairs: 'wieght', 'date'; the columns of labels are query"
    ):
        assert read_pairs(toy, table).weights.tolist() == [1.0]
    path = tmp_path / "pairs.csv"
    path.write_text("query,target,mood\nMike,Bob,glad\n")
    with pytest.warns(SourceWarning, match="not used in .*pairs.csv: 'mood'; .* each pair is an example"):
        assert not read_pairs(toy, path, examples=True).scored


def test_raters_are_averaged_by_weight(toy: HIN) -> None:
    columns = {
        "query": ["Mike", "Mike", "Mike"], "target": ["Jim", "Bob", "Bob"],
        "score": [0.0, 1.0, 0.0], "weight": [1.0, 3.0, 1.0], "rater": ["x", "x", "y"],
    }  # fmt: skip
    pairs = read_pairs(toy, columns)
    assert pairs.targets.tolist() == [1, 3]
    assert pairs.scores.tolist() == [0.0, 0.75]
    assert pairs.weights.tolist() == [1.0, 2.0]


def test_too_few_labels_say_what_can_be_done(toy: HIN) -> None:
    few = read_pairs(toy, [("Mike", "Bob", 1.0), ("Mike", "Jim", 0.0)])
    assert (too_few(few) or "").startswith("2 labels of 1 query: too few to train a model on")
    assert "infer finds the paths behind a few labels" in (too_few(few) or "")
    many = Pairs("author", np.arange(60) % 5, np.arange(60) % 4, np.zeros(60))
    assert too_few(many) is None


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pairs.tsv", "query\ttarget\tscore\nMike\tBob\t1\n"),
        ("pairs.csv", "\ufeffquery;target;score\r\nMike;Bob;1\r\n"),
        ("pairs.csv.gz", "score,query,target,remark\n1,Mike,Bob,twins\n"),
    ],
)
def test_files_of_pairs_are_tables_like_others(toy: HIN, tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    pairs = read_pairs(toy, path)
    assert (pairs.queries.tolist(), pairs.targets.tolist(), pairs.scores.tolist()) == ([0], [3], [1.0])


SHARED = graph_of({"user": [1, 2], "item": [1, 2, 3]}, {})


def test_columns_say_the_types_of_shared_ids(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("query,query_type,target,target_type,score\n1,user,2,item,yes\n2,user,1,item,No\n")
    pairs = read_pairs(SHARED, path)
    assert (pairs.node_type, pairs.target_type, pairs.is_across_types) == ("user", "item", True)
    assert (pairs.queries.tolist(), pairs.targets.tolist(), pairs.scores.tolist()) == ([0, 1], [1, 0], [1.0, 0.0])
    columns = {"query": [1, 2], "target": [2, 3], "score": [True, False], "query_type": ["item"] * 2}
    mapped = read_pairs(SHARED, columns, node_type="item")
    assert (mapped.node_type, mapped.target_type, mapped.scores.tolist()) == ("item", "item", [1.0, 0.0])
    assert read_pairs(SHARED, [(1, 3, 0.5)], node_type=("user", "item")).target_type == "item"


def test_types_that_ids_do_not_tell_are_asked_for() -> None:
    table = {"query": [1, 2], "target": [2, 1], "score": [1, 0]}
    for pairs, options, message in (
        ([(1, 2, 0.5)], {}, "the pairs could be of type user or item; say which with node_type, or write"),
        ([(1, 3, 0.5)], {},  # 1 of which type? The types of the target do not tell
         "the queries could be of type user or item, and the targets of type item; say which with node_type, or write "
         "query_type and target_type beside each pair"),
        (table | {"query_type": ["user", "item"]}, {},
         "query_type is 'user', 'item' in these pairs; all of them must be of one"),
        (table | {"query_type": ["user", "user"]}, {"node_type": "item"},
         "query_type of the pairs is user, but item nodes are asked for"),
        (table | {"query_type": ["usr", "usr"]}, {}, "did you mean 'user'"),
    ):  # fmt: skip
        with pytest.raises(NeuPathError, match=message):
            read_pairs(SHARED, pairs, **options)
    assert read_pairs(SHARED, [(1, 2, 0.5)], node_type="item").node_type == "item"


@pytest.mark.parametrize("types", [("user", "item"), ("item", "item"), ("user", "user")])
def test_written_pairs_are_read_back(tmp_path: Path, types: tuple[str, str]) -> None:
    pairs = read_pairs(SHARED, [(1, 2, 1.0), (2, 1, 0.25)], node_type=types)
    path = tmp_path / "pairs.csv"
    path.write_text(write_pairs(SHARED, pairs))
    again = read_pairs(SHARED, path)
    assert (again.node_type, again.target_type) == types
    assert (again.queries.tolist(), again.scores.tolist()) == (pairs.queries.tolist(), pairs.scores.tolist())


def test_drawn_labels_are_the_teachers(toy: HIN) -> None:
    teacher = npth.PathSim("APVPA").fit(toy)
    paper = draw_pairs(teacher, ["Mike"], "paper", per_query=3)
    assert paper.targets.tolist() == [3, 2, 1]
    assert paper.scores.round(4).tolist() == [1.0, 0.8, 0.0826]
    strict = draw_pairs(teacher, ["Mike", "Mary"], "strict", per_query=4, seed=1)
    assert len(strict) == 8
    assert all(strict.queries != strict.targets)
    for query in (0, 2):
        assert len(set(strict.of_queries([query]).targets.tolist())) == 4
    with pytest.raises(NeuPathError, match="protocol is 'loose'; it can be paper or strict"):
        draw_pairs(teacher, ["Mike"], "loose")


def test_hits_and_matches_in_pairs_stand_for_their_ids(toy: HIN) -> None:
    hit, match = npth.PathSim("APVPA").fit(toy).top_k("Mike", 1)[0], toy.find("Mike", 1)[0]
    named, given = (read_pairs(toy, [(a, b, 1.0), ("Jim", a, 0.0)]) for a, b in (("Mike", "Bob"), (match, hit)))
    assert given.queries.tolist() == named.queries.tolist()
    assert given.targets.tolist() == named.targets.tolist()
