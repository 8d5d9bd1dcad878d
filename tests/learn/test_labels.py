import gzip
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

import neupath as npth
from neupath import HIN, NeuPathError
from neupath.learn.labels import draw_pairs, read_pairs, write_pairs

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


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ([], "there are no pairs to learn from"),
        ([("Mike", "Nobody", 1.0)], "no node type has all targets of the pairs: no author with the id 'Nobody'"),
        ([("Mike", "Bob", 1.0), ("Mike", "SIGMOD", 1.0)], "no node type has all targets of the pairs"),
        ([("Mike", "Bob", 1.5)], r"pair 1 \('Mike', 'Bob'\) has the score 1.5; scores lie between 0 and 1"),
        ([("Mike", "Bob", float("nan"))], "has the score nan; scores lie between 0 and 1"),
        ([("Mike", "Bob", "high")], "the score 'high'; scores lie between 0 and 1, and may be yes or no"),
        ([("Mike", "Bob", None)], r"pair 1 \('Mike', 'Bob'\) has no score; scores lie between 0 and 1"),
        ([("Mike", "Bob")], "it must be a query, a target and a score"),
        (
            pa.table({"query": ["Mike"], "goal": ["Bob"]}),
            "has the columns query, target, score, and this has query, goal",
        ),
        ("nowhere.csv", "no such file: nowhere.csv"),
    ],
)
def test_bad_pairs(toy: HIN, source, message: str) -> None:
    with pytest.raises(NeuPathError, match=message):
        read_pairs(toy, source)


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


def test_ids_of_several_types_need_a_choice() -> None:
    ids = pa.array([1, 2])
    hin = HIN.build([npth.Nodes("a", ids), npth.Nodes("b", ids)], [])
    with pytest.raises(NeuPathError, match="the pairs could be of type a or b; say which with node_type, or write"):
        read_pairs(hin, [(1, 2, 0.5)])
    assert read_pairs(hin, [(1, 2, 0.5)], node_type="b").node_type == "b"


SHARED = HIN.build([npth.Nodes("user", pa.array([1, 2])), npth.Nodes("item", pa.array([1, 2, 3]))], [])


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
    message = (
        "the queries could be of type user or item, and the targets of type item; say which with node_type, or write "
        "query_type and target_type beside each pair"
    )
    with pytest.raises(NeuPathError, match=message):
        read_pairs(SHARED, [(1, 3, 0.5)])  # 1 of which type? The types of the target do not tell
    table = {"query": [1, 2], "target": [2, 1], "score": [1, 0], "query_type": ["user", "item"]}
    with pytest.raises(NeuPathError, match="query_type is 'user', 'item' in these pairs; all of them must be of one"):
        read_pairs(SHARED, table)
    with pytest.raises(NeuPathError, match="query_type of the pairs is user, but item nodes are asked for"):
        read_pairs(SHARED, table | {"query_type": ["user", "user"]}, node_type="item")
    with pytest.raises(NeuPathError, match="did you mean 'user'"):
        read_pairs(SHARED, table | {"query_type": ["usr", "usr"]})


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
