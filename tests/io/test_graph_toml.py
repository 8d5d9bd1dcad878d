"""A source is read alike by itself, with the graph.toml that `neupath init` prints for it, and by `import`."""

import io
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neupath as npth
from neupath import HIN
from neupath.errors import NeuPathError
from neupath.graph.hin import digest
from neupath.io import import_store
from neupath.io.draft import check_draft, draft_of
from neupath.io.graph_toml import (
    Config,
    EdgesConfig,
    NodesConfig,
    PairConfig,
    RdfConfig,
    TriplesConfig,
    parse_config,
    read_config,
    toml_sections,
)
from neupath.io.registry import find_tables
from neupath.io.table_files import stem
from tests.attacks.layouts import change_tables
from tests.command_line import Run
from tests.io.corpus import SOURCES, TEXTS
from tests.io.corpus.frame import Sample, mismatches, write_tables
from tests.tables import Case, check_read, shape, write

QUICK = ["primekg", "movielens", "hetionet", "kgx", "papers_with_venue_key", "wide_table"]
"""Sources of six layouts: typed triples, relations with list cells, a pair, categories, foreign keys, a wide table."""
LEFT_TO_RULES = ["neo4j_admin_files", "neo4j_apoc_bulk"]
"""Sources of which graph.toml says nothing: it has no keys for several tables of nodes that edges of one table join."""


def written(source: Path, folder: Path) -> Path:
    """Write the graph.toml of all first choices."""
    draft = draft_of(str(source))
    for question in draft.questions():
        draft = question.apply(draft, 0)
    return write(folder, **{"written.toml": draft.to_toml()}) / "written.toml"


@pytest.mark.filterwarnings("ignore:No key type for id")
@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in SOURCES]
)
def test_load_follows_what_init_prints_and_import_gives_the_same(tmp_path: Path, name: str) -> None:
    for package in SOURCES[name].needs:
        pytest.importorskip(package)
    (tmp_path / "source").mkdir()
    sample = SOURCES[name].write(tmp_path / "source")
    if sample.refused is not None or not isinstance(sample.load, str | Path):
        return
    graph = npth.load(sample.load, **sample.options)
    graphs = [npth.load(import_store(sample.load, tmp_path / "store", **sample.options))]
    if not sample.options and find_tables(sample.load, None, None, None) is not None:
        config = written(Path(sample.load), tmp_path)
        graphs.append(npth.load(sample.load, config=config))
        graphs.append(npth.load(import_store(sample.load, tmp_path / "said.store", config=config)))
        assert [line for line in mismatches(graphs[1], sample) if not line.startswith("no note")] == []
        assert (name in LEFT_TO_RULES) != read_config(config).names_tables
        if sample.tables and all(table.has_header for table in sample.tables):
            check_frames(sample, config)
    assert {digest(each) for each in graphs} == {digest(graph)}
    for each in graphs:
        assert [nodes.names for nodes in each.nodes.values()] == [nodes.names for nodes in graph.nodes.values()]


def check_frames(sample: Sample, config: Path) -> None:
    """Check that frames, too, are read alike with what init prints for the files, and without it."""
    text, frames = config.read_text(), {}
    for table in sorted(sample.tables, key=lambda table: table.file):  # as in a folder
        label = stem(Path(table.file))
        text = text.replace(f'"{table.file}"', f'"{label}"')
        frames[label] = pd.read_csv(io.StringIO(table.text()), sep=table.delimiter)
    config.write_text(text)
    assert digest(npth.load(frames, config=config)) == digest(npth.load(frames))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_changed_tables_are_described_as_they_are_read(tmp_path: Path, seed: int) -> None:
    same = 0
    for number in range(40):
        rng, folder = np.random.default_rng([seed, number]), tmp_path / str(number)
        (folder / "before").mkdir(parents=True)
        sample = list(TEXTS.values())[int(rng.integers(len(TEXTS)))].write(folder / "before")
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


def test_a_column_of_a_wide_table_that_is_left_out_is_no_attribute_either(tmp_path: Path) -> None:
    sample = SOURCES["wide_table"].write(tmp_path)
    draft = draft_of(str(sample.load))
    actor, director, genre = draft.questions()
    chosen = director.apply(actor.apply(draft, 1), 1)
    check_draft(chosen)
    config = tmp_path / "chosen.toml"
    config.write_text(chosen.to_toml())
    hin = npth.load(sample.load, config=config)
    assert [str(relation) for relation in hin.schema.relations] == ["movie -movie_genre-> genre"]
    assert not hin.edge_tables
    with pytest.raises(NeuPathError, match="is not recognised|a graph.toml cannot say these choices"):
        check_draft(genre.apply(chosen, 1))


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
    read_as = [(column, use.partition(" of ")[0]) for column, _, use in draft.columns()["who.csv"]]
    assert read_as == [("alpha", "start"), ("beta", "end"), ("gamma", "attribute")]


@pytest.mark.parametrize(
    ("content", "message"),
    [({"x.xls": b"PK"}, "is a spreadsheet"), ({"x.csv": b""}, "is empty"),
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


PROPOSED = {
    "lines of orders as texts": (r"orders\.csv, line 3: node id '1' is repeated; node ids must be unique",
                                 {"customer": 2, "product": 2}, {"customer -customer_product-> product": 3}),
    "lines of orders with keys": (r"orders\.csv, line 3: node id '5001' is repeated; node ids must be unique",
                                  {"customer": 3, "product": 3}, {"customer -customer_product-> product": 4}),
    "a unique code beside a repeated id": (r"products\.csv, line 3: node id '1' is repeated",
                                           {"product": 4, "maker": 2}, {"product -product_maker-> maker": 4}),
    "ratings without a header": ("is a relation: user_movie.tsv has 4 columns",
                                 {"user": 2, "movie": 3}, {"user -user_movie-> movie": 3}),
}  # fmt: skip
"""The refusal of some of them, and the nodes and edges that its proposal reads."""


def refusal(source: Path) -> str:
    with pytest.raises(NeuPathError) as error:
        npth.load(source)
    return str(error.value)


def load_as_proposed(source: Path, config: Path) -> HIN:
    """Load a source with the graph.toml that its refusal proposes."""
    message, found, toml = refusal(source).partition("such as:\n")
    assert found, message
    assert 'target = "node"' not in toml
    config.write_text(toml)
    return npth.load(source, config=config)


@pytest.mark.parametrize("name", UNREAD)
@pytest.mark.parametrize("alone", [False, True])
def test_what_a_refusal_proposes_reads(tmp_path: Path, name: str, alone: bool) -> None:
    folder = write(tmp_path / "g", **UNREAD[name])
    source = folder / next(iter(UNREAD[name])) if alone and len(UNREAD[name]) == 1 else folder
    hin = load_as_proposed(source, tmp_path / "pasted.toml")
    assert sum(shape(hin).values()) >= 2


@pytest.mark.parametrize("name", PROPOSED)
def test_what_a_refusal_proposes_reads_what_is_meant(tmp_path: Path, name: str) -> None:
    message, nodes, edges = PROPOSED[name]
    folder = write(tmp_path / "g", **UNREAD[name])
    assert re.search(message, refusal(folder))
    hin = load_as_proposed(folder, tmp_path / "pasted.toml")
    assert {each: hin.num_nodes(each) for each in hin.schema.node_types} == nodes
    assert {str(relation): matrix.sum() for relation, matrix in hin.matrices.items()} == edges


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
    write(tmp_path, **UNREAD["lines of orders with keys"])
    with (tmp_path / "orders.csv").open("a") as stream:
        stream.writelines(
            f"{row // 2},{row % 3 + 1},{row % 3 + 7},{'0' * 300}{row}\n" for row in range(10**6, 1_120_000)
        )
    assert list(shape(load_as_proposed(tmp_path, tmp_path / "g.toml"))) == ["customer -customer_product-> product"]
    lines = (tmp_path / "orders.csv").read_text().replace(",7,2", ",,2").replace(",1,8,", ",,8,")
    (tmp_path / "orders.csv").write_text(lines)
    assert load_as_proposed(tmp_path, tmp_path / "g.toml").schema.relations


@pytest.mark.parametrize("name", UNREAD)
def test_init_writes_what_info_reads_or_nothing(tmp_path: Path, name: str, run: Run) -> None:
    write(tmp_path, **UNREAD[name])
    assert run("init", tmp_path, "--yes").code == 0
    assert run("info", tmp_path).code == 0


@pytest.mark.parametrize(
    "files",
    [
        {"papers.csv": "paper_id,venue_id\n1,a\n2,zz\n3,a\n", "venues.csv": "venue_id,name\na,KDD\n"},
        {"papers.csv": "paper_id,venue_id\n" + "".join(f"{row},u{row % 7}\n" for row in [*range(3000), 1])},
        {"movie_actor.csv": "movie_id,actor_id\n1,7\n,8\n"},
    ],
)
def test_init_writes_nothing_that_info_does_not_read(tmp_path: Path, files: dict[str, str], run: Run) -> None:
    write(tmp_path, **files)
    refused = run("init", tmp_path, "--yes")
    assert refused.code == 2
    assert not (tmp_path / "graph.toml").exists()
    assert re.search(r"\.csv, line \d+: ", refused.err)


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
    tmp_path: Path, run: Run, files: dict[str, str], relations: set[tuple[str, str]]
) -> None:
    write(tmp_path, **files)
    with pytest.raises(NeuPathError, match="such as:\n"):
        npth.load(tmp_path)
    assert run("init", tmp_path, "--yes").code == 0
    read = {(each.source, each.target) for each in npth.load(tmp_path).schema.relations}
    assert relations <= read


def test_a_key_of_no_table_beside_two_ends_is_noted(tmp_path: Path) -> None:
    write(tmp_path, **{"order_lines.csv": LINES})
    (note,) = [note for note in npth.load(tmp_path).notes if "product_id was read as an attribute" in note]
    assert "another [[edges]] in graph.toml" in note


OWN_SETTINGS = {
    "ids": (
        {"user_item.csv": "user_id,item_id\nann,NULL\nAnn,tea\nbob,tea\n"},
        'missing_ids = ["NULL"]\nfold_ids = true\n',
    ),
    "how tables are written": (
        {"user_item.csv": "ann;'te;a'\nbob;cup\n"},
        """delimiter = ";"\nquote = "'"\nheader = false\n[abbreviations]\nP = "user"\n""",
    ),
    "some relations of triples": (
        {"kg.csv": "head,relation,tail\nann,likes,bob\nann,knows,cem\nbob,has,cup\n"},
        'take = ["likes", "knows"]\nundirected = ["knows"]\n',
    ),
    "a table of types": (
        {"kg.csv": "ann,likes,bob\nbob,has,cup\n", "kinds.csv": "ann,user\nbob,user\ncup,item\n"},
        'header = false\n[triples]\nfiles = ["kg.csv"]\ntypes = "kinds.csv"\n',
    ),
    "types of attributes": (
        {"nodes.csv": "id,type,price\na,x,007\nb,x,1\n", "edges.csv": "source,relation,target,no\na,r,b,01\n"},
        '[pair]\nattribute_types = {price = "text", no = "text"}\n',
    ),
    "a direction": (
        {"user_user.csv": "user1,user2,n\na,b,1\nb,c,2\n"},
        'undirected = ["user_user"]\nignore = ["*.md"]',
    ),
}
"""Tables with a graph.toml of their own, which says some things and leaves others to the rules."""


@pytest.mark.parametrize("name", OWN_SETTINGS)
def test_init_keeps_what_graph_toml_says(tmp_path: Path, name: str, run: Run) -> None:
    files, toml = OWN_SETTINGS[name]
    write(tmp_path, **files)
    (tmp_path / "graph.toml").write_text(toml)
    before = npth.load(tmp_path)
    assert run("init", tmp_path, "--yes", "--out", tmp_path / "all.toml").code == 0
    (tmp_path / "graph.toml").unlink()
    again = npth.load(tmp_path, config=tmp_path / "all.toml")
    assert (digest(again), again.schema.abbreviations) == (digest(before), before.schema.abbreviations)
    assert read_config(tmp_path / "all.toml").names_tables


WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
LISTS_OF_TEXTS, TABLES_OF_TEXTS = st.lists(WORDS, max_size=3), st.dictionaries(WORDS, WORDS, max_size=3)


def entries(kind: type) -> st.SearchStrategy[Any]:
    """Draw an entry of a graph.toml with any keys."""
    drawn = {str: WORDS, bool: st.booleans(), list[str]: LISTS_OF_TEXTS, Mapping[str, str]: TABLES_OF_TEXTS}
    drawn |= {each: entries(each) for each in (PairConfig, TriplesConfig, RdfConfig) if kind is Config}
    drawn |= {hint | None: strategy | st.none() for hint, strategy in drawn.items()}
    if kind is Config:
        drawn |= {Mapping[str, NodesConfig]: st.dictionaries(WORDS, entries(NodesConfig), max_size=2)}
        drawn |= {list[EdgesConfig]: st.lists(entries(EdgesConfig), max_size=2)}
    return st.builds(kind, **{key: drawn[hint] for key, hint in get_type_hints(kind).items()})


@given(config=entries(Config))
def test_what_is_written_reads_back(config: Config) -> None:
    rdf = config.rdf and replace(config.rdf, same_as="merge")
    config = replace(config, delimiter=";", quote=config.quote and config.quote[:1], rdf=rdf)
    assert parse_config("\n".join(toml_sections(config))) == config


TYPED = 'attribute_types = {day = "%d.%m.%Y"}\n'
REFUSED: dict[str, Case] = {
    "edges without keys": (
        {"user_item.csv": "user_id,item_id,day\nann,tea,1.1.2020\n", "graph.toml": f"[[edges]]\n{TYPED}"},
        "has no name, file, source, target; add what is missing, or, .* `neupath init`",
    ),
    "nodes without a file": (
        {"user_item.csv": "user_id,item_id\nann,tea\n", "graph.toml": f"[nodes.item]\n{TYPED}"},
        r"\[nodes.item\] has no file; add",
    ),
    "years above numbers": (
        {"sales.csv": "product,2019,2020,2021\ntea,1,2,3\ncup,4,5,6\n"}, "looks like a matrix"
    ),
    "a title above the header": (
        {"user_item.csv": "Sales report 2020,,\n,,\nuser_id,item_id,qty\na,x,1\nb,x,2\n"},
        "'Sales report 2020', as a title has; remove the rows above the header",
    ),
    **{f"{end}_{what} alone": (
        {"kg.tsv": "head\trelation\ttail\tword\na\tr\tb\tA\nb\tr\ta\tB\n",
         "graph.toml": f'[triples]\ncolumns = ["head", "relation", "tail"]\n{end}_{what} = "word"\n'},
        f"names the {what}s of one end only; name both head_{what} and",
    ) for end in ("head", "tail") for what in ("type", "name")},
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_in_a_sentence(tmp_path: Path, case: str) -> None:
    check_read(tmp_path, *REFUSED[case])
