"""A graph.toml that is written for a source loads to the graph that the source is read as."""

import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import neupath as npth
from neupath.cli import main
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


# ---- What is proposed has been tried -------------------------------------------------------------
CUSTOMERS, PRODUCTS = "customer_id,city\n1,Ulm\n2,Bonn\n3,Ulm\n", "product_id,title\n7,tea\n8,cup\n9,pen\n"
LINES = "order_id,customer_id,product_id,qty\n5001,1,7,2\n5001,1,8,1\n5002,2,8,1\n5003,3,9,4\n"
UNREAD = {
    "lines of orders as texts": {
        "orders.csv": "order_id,customer,product,qty\n1,ann,tea,1\n1,ann,cup,2\n2,bob,tea,1\n"
    },
    "lines of orders with keys": {"customers.csv": CUSTOMERS, "products.csv": PRODUCTS, "orders.csv": LINES},
    "lines of orders with empty cells": {
        "orders.csv": "order_id,customer,product\n1,ann,tea\n1,,cup\n2,bob,tea\n2,bob,\n3,,cup\n"
    },
    "a unique code beside a repeated id": {
        "products.csv": "product_id,sku,maker\n1,A1,ikea\n1,A2,ikea\n2,B1,muji\n3,C1,muji\n"
    },
    "an empty id": {"people.csv": "name,city,club\nann,ulm,go\n,bonn,go\nbob,ulm,chess\n"},
    "ratings without a header": {"user_movie.tsv": "1\t1193\t5\t978300760\n1\t661\t3\t978302109\n2\t1\t4\t978301968\n"},
    "a wide table with empty cells": {"log.csv": "when,who,what\n2019,ann,\n2020,,jam\n2021,bob,jam\n"},
    "tables that name nothing": {"a.csv": "p,q\nx,y\nx,z\n", "b.csv": "r,s\n,1\n,2\n"},
}
"""Sources of which no rule makes a graph, one way or another."""


def refusal(source: Path) -> str:
    with pytest.raises(NeuPathError) as error:
        npth.load(source)
    return str(error.value)


@pytest.mark.parametrize("name", UNREAD)
@pytest.mark.parametrize("alone", [False, True])
def test_what_a_refusal_proposes_reads(tmp_path: Path, name: str, alone: bool) -> None:
    folder = tmp_path / "g"
    folder.mkdir()
    for file, text in UNREAD[name].items():
        (folder / file).write_text(text)
    source = folder / next(iter(UNREAD[name])) if alone and len(UNREAD[name]) == 1 else folder
    message, found, toml = refusal(source).partition("such as:\n")
    assert found, message
    config = tmp_path / "pasted.toml"
    config.write_text(toml)
    hin = npth.load(source, config=config)
    assert hin.schema.relations
    assert sum(matrix.nnz for matrix in hin.matrices.values()) >= 2
    assert 'target = "node"' not in toml


def test_user_1_and_movie_1_stay_two_nodes(tmp_path: Path) -> None:
    path = tmp_path / "user_movie.tsv"
    path.write_text(UNREAD["ratings without a header"]["user_movie.tsv"])
    toml = refusal(path).partition("such as:\n")[2]
    (tmp_path / "g.toml").write_text(toml)
    hin = npth.load(path, config=tmp_path / "g.toml")
    assert {each: hin.num_nodes(each) for each in hin.schema.node_types} == {"user": 2, "movie": 3}


@pytest.mark.parametrize("as_keys", [False, True])
def test_a_repeated_id_comes_with_the_other_entities_as_ends(tmp_path: Path, as_keys: bool) -> None:
    name = "lines of orders with keys" if as_keys else "lines of orders as texts"
    for file, text in UNREAD[name].items():
        (tmp_path / file).write_text(text)
    message, _, toml = refusal(tmp_path).partition("such as:\n")
    number = "'5001'" if as_keys else "'1'"
    assert f"orders.csv, line 3: node id {number} is repeated; node ids must be unique" in message
    (tmp_path / "graph.toml").write_text(toml)
    hin = npth.load(tmp_path)
    (relation,) = hin.schema.relations
    assert (relation.source, relation.target) == ("customer", "product")
    assert int(hin.matrices[relation].sum()) == (4 if as_keys else 3)
    if as_keys:
        assert [hin.nodes[each].attributes.num_columns for each in ("customer", "product")] == [1, 0]


def test_a_unique_column_is_proposed_as_the_id(tmp_path: Path) -> None:
    path = tmp_path / "products.csv"
    path.write_text(UNREAD["a unique code beside a repeated id"]["products.csv"])
    toml = refusal(path).partition("such as:\n")[2]
    assert 'id = "sku"' in toml
    (tmp_path / "g.toml").write_text(toml)
    hin = npth.load(path, config=tmp_path / "g.toml")
    assert hin.num_nodes("product") == 4
    assert [str(each).rpartition("> ")[2] for each in hin.schema.relations] == ["maker"]


def test_a_refusal_without_a_plan_says_why_none_reads(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("alpha,beta,gamma\n,y,1\nx,,2\nx,z,3\n")
    message = refusal(path)
    assert "such as:" not in message
    assert re.search(r"tried (one|\d+), .*pairs\.csv, line 2: the edge has an empty", message)
    with pytest.raises(NeuPathError, match="not read|none"):
        draft_of(str(path))


def test_a_repeated_id_below_the_first_rows_has_a_remedy(tmp_path: Path) -> None:
    rows = "".join(f"{row},u{row % 7}\n" for row in range(5000))
    (tmp_path / "papers.csv").write_text(f"paper_id,venue_id\n{rows}17,u1\n")
    assert re.search(r"papers\.csv, line 5002: node id '17' is repeated; .*\[\[edges\]\].*", refusal(tmp_path))


@pytest.mark.slow
def test_large_sources_are_tried_too(tmp_path: Path) -> None:
    for file, text in UNREAD["lines of orders with keys"].items():
        (tmp_path / file).write_text(text)
    with (tmp_path / "orders.csv").open("a") as stream:
        stream.writelines(
            f"{row // 2},{row % 3 + 1},{row % 3 + 7},{'0' * 300}{row}\n" for row in range(10**6, 1_120_000)
        )
    (tmp_path / "graph.toml").write_text(refusal(tmp_path).partition("such as:\n")[2])
    hin = npth.load(tmp_path)
    assert [(each.source, each.target) for each in hin.schema.relations] == [("customer", "product")]
    (tmp_path / "graph.toml").unlink()
    lines = (tmp_path / "orders.csv").read_text().replace(",7,2", ",,2").replace(",1,8,", ",,8,")
    (tmp_path / "orders.csv").write_text(lines)
    (tmp_path / "graph.toml").write_text(refusal(tmp_path).partition("such as:\n")[2])
    assert npth.load(tmp_path).schema.relations


@pytest.mark.parametrize("name", UNREAD)
def test_init_writes_what_info_reads_or_nothing(tmp_path: Path, name: str) -> None:
    for file, text in UNREAD[name].items():
        (tmp_path / file).write_text(text)
    assert run("init", tmp_path, "--yes") == 0
    assert run("info", tmp_path) == 0


@pytest.mark.parametrize(
    "files",
    [
        {"papers.csv": "paper_id,venue_id\n1,a\n2,zz\n3,a\n", "venues.csv": "venue_id,name\na,KDD\n"},
        {"papers.csv": "paper_id,venue_id\n" + "".join(f"{row},u{row % 7}\n" for row in [*range(3000), 1])},
        {"movie_actor.csv": "movie_id,actor_id\n1,7\n,8\n"},
    ],
)
def test_init_writes_nothing_that_info_does_not_read(
    tmp_path: Path, files: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    for file, text in files.items():
        (tmp_path / file).write_text(text)
    assert run("init", tmp_path, "--yes") == 2
    assert not (tmp_path / "graph.toml").exists()
    assert re.search(r"\.csv, line \d+: ", capsys.readouterr().err)


def run(*arguments: object) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(map(str, arguments)))
    return int(str(ended.value.code or 0))


LINES = "order_id,customer_id,product_id,qty\n1,ann,tea,2\n1,ann,cup,1\n2,bob,tea,1\n"


@pytest.mark.parametrize(
    ("files", "relations"),
    [
        (
            {"clients.csv": "customer_id,city\nann,ulm\nbob,ulm\n", "sales.csv": LINES,
             "wares.csv": "product_id,p\ntea,1\ncup,2\n"},
            {("customer", "product")},
        ),
        (
            {"Artikel.csv": "Artikelnummer,Preis\nA1,3\nA2,4\n", "Kunden.csv": "Kundennummer,Ort\nK1,Ulm\nK2,Bonn\n",
             "Verkauf.csv": "Belegnummer,Kundennummer,Artikelnummer\n1,K1,A1\n1,K1,A2\n2,K2,A1\n"},
            {("Kundennummer", "Artikelnummer")},
        ),
        ({"sales.csv": LINES}, {("order", "customer"), ("order", "product")}),
    ],
)  # fmt: skip
def test_the_table_that_joins_others_is_proposed_with_all_its_keys(
    tmp_path: Path, files: dict[str, str], relations: set[tuple[str, str]]
) -> None:
    write_files(tmp_path, files)
    with pytest.raises(NeuPathError, match="such as:\n"):
        npth.load(tmp_path)
    main_of(["init", str(tmp_path), "--yes"])
    read = {(each.source, each.target) for each in npth.load(tmp_path).schema.relations}
    assert relations <= read


def test_a_key_of_no_table_beside_two_ends_is_noted(tmp_path: Path) -> None:
    write_files(tmp_path, {"order_lines.csv": LINES})
    (note,) = [note for note in npth.load(tmp_path).notes if "product_id was read as an attribute" in note]
    assert "another [[edges]] in graph.toml" in note


def test_init_keeps_what_graph_toml_says_of_ids(tmp_path: Path) -> None:
    write_files(tmp_path, {"user_item.csv": "user_id,item_id\nann,NULL\nAnn,tea\nbob,tea\n"})
    (tmp_path / "graph.toml").write_text('missing_ids = ["NULL"]\nfold_ids = true\n')
    before = npth.load(tmp_path)
    main_of(["init", str(tmp_path), "--yes", "--out", str(tmp_path / "all.toml")])
    (tmp_path / "graph.toml").unlink()
    again = npth.load(tmp_path, config=tmp_path / "all.toml")
    assert again.nodes["user"].ids.to_pylist() == before.nodes["user"].ids.to_pylist() == ["ann", "bob"]
    assert digest(again) == digest(before)


def test_a_section_with_missing_keys_names_init(tmp_path: Path) -> None:
    write_files(tmp_path, {"user_item.csv": "user_id,item_id,day\nann,tea,1.1.2020\n"})
    (tmp_path / "graph.toml").write_text('[[edges]]\nattribute_types = {day = "%d.%m.%Y"}\n')
    with pytest.raises(
        NeuPathError, match="has no name, file, source, target; add what is missing, or, .* `neupath init`"
    ):
        npth.load(tmp_path)
    (tmp_path / "graph.toml").write_text('[nodes.item]\nattribute_types = {price = "decimal comma"}\n')
    with pytest.raises(NeuPathError, match=r"\[nodes.item\] has no file; add"):
        npth.load(tmp_path)


def test_years_above_numbers_are_a_matrix(tmp_path: Path) -> None:
    write_files(tmp_path, {"sales.csv": "product,2019,2020,2021\ntea,1,2,3\ncup,4,5,6\n"})
    with pytest.raises(NeuPathError, match="looks like a matrix"):
        npth.load(tmp_path)


def main_of(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert not ended.value.code


def test_a_title_above_the_header_is_named(tmp_path: Path) -> None:
    write_files(tmp_path, {"user_item.csv": "Sales report 2020,,\n,,\nuser_id,item_id,qty\na,x,1\nb,x,2\n"})
    with pytest.raises(NeuPathError, match="'Sales report 2020', as a title has; remove the rows above the header"):
        npth.load(tmp_path)


def write_files(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).write_text(text)
