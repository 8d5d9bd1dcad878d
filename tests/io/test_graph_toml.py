"""A graph.toml that is written for a source loads to the graph that the source is read as."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import neupath as npth
from neupath.errors import NeuPathError
from neupath.graph.hin import digest
from neupath.io.graph_toml import draft_of
from neupath.io.recognition import find_tables
from tests.attacks.layouts import change_tables
from tests.io.corpus import SOURCES
from tests.io.corpus.frame import mismatches, write_tables
from tests.tables import write

SIX = ["primekg", "movielens", "hetionet", "kgx", "papers_with_venue_key", "wide_table"]
"""Sources of six layouts: typed triples, relations with list cells, a pair, categories, foreign keys, a wide table."""


TABULAR = [name for name, each in SOURCES.items() if each.write.__module__.endswith(".tabular")]
SAY_THEMSELVES = ("neo4j_admin", "neo4j_admin_files")
"""Sources that graph.toml cannot describe better than their own headers."""


def written(source: Path, folder: Path) -> Path:
    """Write the graph.toml of all first choices."""
    draft = draft_of(str(source))
    for question in draft.questions():
        draft = question.apply(draft, 0)
    config = folder / "written.toml"
    config.write_text(draft.to_toml(), encoding="utf-8")
    return config


def differences(name: str, folder: Path) -> list[str] | None:
    """Return how the graph with the written file differs from the expected one; None if there are no tables."""
    (folder / "source").mkdir(parents=True)
    sample = SOURCES[name].write(folder / "source")
    if sample.refused or sample.options or not isinstance(sample.load, Path):
        return None
    if find_tables(sample.load, None, None, None) is None:
        return None
    config = written(sample.load, folder)
    with_it, without = npth.load(sample.load, config=config), npth.load(sample.load)
    assert digest(with_it) == digest(without)
    assert [each.names for each in with_it.nodes.values()] == [each.names for each in without.nodes.values()]
    says_something = any(line and not line.startswith("#") for line in config.read_text().splitlines())
    assert says_something or name in SAY_THEMSELVES
    return [line for line in mismatches(with_it, sample) if not line.startswith("no note")]


@pytest.mark.parametrize("name", SIX)
def test_six_layouts(tmp_path: Path, name: str) -> None:
    assert differences(name, tmp_path / name) == []


@pytest.mark.slow
def test_all_tables_of_the_corpus(tmp_path: Path) -> None:
    names = [name for name in SOURCES if all(map(find_spec, SOURCES[name].needs))]
    tried = {name: differences(name, tmp_path / name) for name in names}
    assert {name: wrong for name, wrong in tried.items() if wrong} == {}
    assert sum(wrong is not None for wrong in tried.values()) >= 50


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_changed_tables_are_described_as_they_are_read(tmp_path: Path, seed: int) -> None:
    same = 0
    for number in range(40):
        rng, folder = np.random.default_rng([seed, number]), tmp_path / str(number)
        (folder / "before").mkdir(parents=True)
        sample = SOURCES[TABULAR[int(rng.integers(len(TABULAR)))]].write(folder / "before")
        if not sample.tables:
            continue
        (folder / "after").mkdir()
        source = write_tables(folder / "after", change_tables(sample.tables, rng)[1])
        try:
            expected = npth.load(source)
        except NeuPathError:
            continue
        assert digest(npth.load(source, config=written(source, folder))) == digest(expected)
        same += 1
    assert same >= 10


def test_odd_names_are_quoted(tmp_path: Path) -> None:
    column = 'he said "hi"\\ # [x]\ttab'
    text = f'movie_id,name,"{column.replace(chr(34), chr(34) * 2)}",ünï\n1,Up,a,b\n2,Heat,c,d\n'
    folder = write(tmp_path / "odd", movies__csv=text, movie_actor__csv="movie_id,actor_id\n1,7\n2,7\n")
    (folder / "movie_actor.csv").rename(folder / "movie_#actor's [1].csv")
    (folder / "notes [*].csv").write_text("hello\nworld\n")
    config = written(folder, tmp_path)
    hin = npth.load(folder, config=config)
    assert digest(hin) == digest(npth.load(folder))
    assert hin.nodes["movie"].attributes.column_names == [column, "ünï"]
    assert r'ignore = ["notes [[][*]].csv"]' in config.read_text()


def test_choices_change_the_graph(tmp_path: Path) -> None:
    papers = "paper_id,title,venue_id\np1,On Foo,v1\np2,Bar,\np3,Baz,v1\n"
    folder = write(tmp_path / "t", papers__csv=papers, author_paper__csv="author_id,paper_id,rating\na,p1,3\nb,p2,5\n")
    draft = draft_of(str(folder))
    key, weight = draft.questions()
    assert (key.text, weight.text) == (
        "papers.csv: what is venue_id?",
        "author_paper.csv: is rating the weight of the edges?",
    )
    assert key.choices == ("the relation paper -paper_venue-> venue", "an attribute of paper")
    config = tmp_path / "chosen.toml"
    config.write_text(weight.apply(key.apply(draft, 1), 1).to_toml())
    hin = npth.load(folder, config=config)
    assert [str(relation) for relation in hin.schema.relations] == ["author -author_paper-> paper"]
    assert hin.nodes["paper"].attributes.column_names == ["venue_id"]
    assert hin.matrices[hin.schema.relations[0]].data.tolist() == [3.0, 5.0]


def test_a_table_that_no_rule_recognises_gets_the_first_suggestion(tmp_path: Path) -> None:
    path = tmp_path / "who.csv"
    path.write_text("alpha,beta,gamma\nx,y,1\nz,y,2\n")
    with pytest.raises(NeuPathError, match="is not recognised"):
        npth.load(path)
    draft = draft_of(str(path))
    (question,) = draft.questions()
    assert "could hold the edges of a relation" in question.text
    with pytest.raises(NeuPathError, match="is not recognised"):
        question.apply(draft, 1)
    config = tmp_path / "g.toml"
    config.write_text(question.apply(draft, 0).to_toml())
    assert sum(map(len, npth.load(path, config=config).nodes.values())) == 3
    assert [use.column for use in draft.columns()["who.csv"]] == ["alpha", "beta", "gamma"]


@pytest.mark.parametrize(
    ("content", "message"),
    [({"x.xlsx": b"PK"}, "is a spreadsheet"), ({"x.csv": b""}, "is empty"),
     ({"x.nt": b"<a> <b> <c> ."}, "needs no graph.toml, which describes tables in files")],
)  # fmt: skip
def test_sources_without_tables(tmp_path: Path, content: dict[str, bytes], message: str) -> None:
    for name, raw in content.items():
        (tmp_path / name).write_bytes(raw)
        with pytest.raises(NeuPathError, match=message):
            draft_of(str(tmp_path / name))
    for source, reason in (("toy", "toy needs no graph.toml"), ("nowhere", "no such file or folder: nowhere")):
        with pytest.raises(NeuPathError, match=reason):
            draft_of(source)
