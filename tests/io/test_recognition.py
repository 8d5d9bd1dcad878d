"""Tables of other projects' layouts: recognised by rule, with notes, or refused with a graph.toml that reads them."""

import pickle
import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import neupath as npth
from neupath import HIN, NeuPathError
from neupath.cli import main
from neupath.errors import SourceWarning
from neupath.graph.metapath import Relation
from neupath.io import import_store
from tests.tables import shape, write

PRIME = (
    "relation,display_relation,x_index,x_id,x_type,x_name,x_source,y_index,y_id,y_type,y_name,y_source\n"
    "drug_protein,target,0,DB01,drug,Aspirin,DrugBank,1,5742,gene/protein,PTGS1,NCBI\n"
    "drug_protein,target,1,5742,gene/protein,PTGS1,NCBI,0,DB01,drug,Aspirin,DrugBank\n"
    "disease_protein,associated with,2,5742,disease,flu,MONDO,1,5742,gene/protein,PTGS1,NCBI\n"
)
RATINGS = "userId,movieId,rating,timestamp\n1,10,4.0,964982703\n2,10,3.5,964982931\n2,20,5,964982400\n"
MOVIES = "movieId,title,genres\n10,Heat,Action|Crime\n20,Up,Animation\n30,Ali,Crime\n"


def names(hin: HIN, node_type: str) -> list[str | None]:
    nodes = hin.nodes[node_type]
    return [nodes.name(row) for row in range(len(nodes))]


# ---- Triples -------------------------------------------------------------------------------------
@pytest.mark.parametrize("as_folder", [False, True])
def test_typed_triples(tmp_path: Path, as_folder: bool) -> None:
    folder = write(tmp_path / "g", kg__csv=PRIME)
    hin = npth.load(folder if as_folder else folder / "kg.csv")
    assert shape(hin) == {
        "drug -drug_protein-> gene/protein": 1,
        "gene/protein -drug_protein-> drug": 1,
        "disease -disease_protein-> gene/protein": 1,
    }
    assert hin.nodes["disease"].ids.to_pylist() == [5742]  # an id that a gene has as well
    assert names(hin, "gene/protein") == ["PTGS1"]
    notes = "\n".join(hin.notes)
    assert "x_id and y_id were read as the ids, not x_index, y_index" in notes
    assert "each edge of drug -drug_protein-> gene/protein is there in both directions" in notes
    assert "x_source, y_source were left out: what describes an end" in notes
    assert all(hin.edge_kinds(relation) == {"display_relation": "text"} for relation in hin.matrices)


@pytest.mark.parametrize(
    "header",
    [
        "head,head_type,relation,tail,tail_type",
        "source_id,source_type,metaedge,target_id,target_type",
        "subject,subject_category,predicate,object,object_category",
        "startId,startType,rel,endId,endType",
    ],
)
def test_headers_of_typed_triples(tmp_path: Path, header: str) -> None:
    rows = "1,user,likes,1,item\n2,user,likes,1,item\n1,user,knows,2,user\n"
    folder = write(tmp_path / "g", kg__csv=f"{header}\n{rows}")
    assert shape(npth.load(folder / "kg.csv")) == {"user -likes-> item": 2, "user -knows-> user": 1}


@pytest.mark.parametrize("dropped", ["x_type", "y_type"])
def test_one_end_without_a_type_is_refused(tmp_path: Path, dropped: str) -> None:
    frame = pd.read_csv(write(tmp_path / "g", kg__csv=PRIME) / "kg.csv", dtype=str)
    with pytest.raises(NeuPathError, match="has the types of one end in ._type, but none for the other"):
        npth.load(frame.drop(columns=dropped))


def test_ids_that_have_two_names_are_refused(tmp_path: Path) -> None:
    frame = pd.read_csv(write(tmp_path / "g", kg__csv=PRIME) / "kg.csv", dtype=str)
    untyped = frame.drop(columns=["x_type", "y_type"])
    assert npth.load(untyped).num_nodes("entity") == 3  # by x_index, which identifies nodes
    with pytest.raises(NeuPathError, match="1 id in x_id and y_id have several names"):
        npth.load(untyped.drop(columns=["x_index", "y_index"]))


def test_an_id_without_a_type_among_ids_with_one_is_refused(tmp_path: Path) -> None:
    rows = "Gene::1\tGiG\tGene::2\nGene::2\tGaD\tDisease::MESH:1\nCompound::DB1\tCtD\tDisease::MESH:1\n"
    path = write(tmp_path / "g", drkg__tsv=rows * 2000 + "7\tGiG\tGene::1\n") / "drkg.tsv"
    with pytest.raises(NeuPathError, match="drkg.tsv, line 6001: the id '7' has no type before '::'"):
        npth.load(path)


@pytest.mark.parametrize(
    "rows",
    [
        "1\t2\t3\n4\t5\t6\n7\t5\t9\n",  # numbers
        "1\tToy Story\tKids\n2\tHeat\tCrime\n3\tUp\tKids\n",  # as many "relations" as rows
        "ann\tfunny\t5\nbob\tfunny\t4\nann\tsad\t3\n",  # a rating
        "heat\tcrime\tmann\nali\tcrime\tmann\nup\tkids\tdocter\n" * 9,  # genre and director of films
    ],
)
def test_three_columns_that_are_no_triples_are_refused(tmp_path: Path, rows: str) -> None:
    path = write(tmp_path / "g", stuff__txt=rows) / "stuff.txt"
    with pytest.raises(
        NeuPathError, match=r"stuff.txt is not recognised: stuff.txt has 3 columns \(no header"
    ) as error:
        npth.load(path)
    paste(path, str(error.value))


def paste(path: Path, message: str) -> HIN:
    """Load a file with the graph.toml of an error message."""
    toml = path.parent / "pasted.toml"
    toml.write_text(message.partition(":\n")[2])
    return npth.load(path, config=toml)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("soc-graph.txt", "1 2\n3 4\n"),
        ("edges.csv", "first,then\na,b\n"),
        ("people.csv", "name,city\nann,rome\nbob,oslo\n"),
        ("my_graph.csv", "p,q,weight\na,b,1\n"),
        ("wide.csv", "when,who,what\n2019,ann,pie\n2020,bob,jam\n"),
        ("movies.csv", "movie_id,title,year\n1,Heat,1995\n2,Up,2009\n"),
    ],
)
def test_what_is_refused_comes_with_a_graph_toml_that_reads_it(tmp_path: Path, name: str, text: str) -> None:
    folder = write(tmp_path / "g", **{name.replace(".", "__"): text})
    with pytest.raises(NeuPathError, match=re.escape(name)) as error:
        npth.load(folder / name)
    assert text.split(maxsplit=1)[0].split(",", maxsplit=1)[0] in str(error.value)
    assert paste(folder / name, str(error.value)).schema.relations


def test_an_edge_of_neo4j_admin_names_its_node_with_the_space_of_ids(tmp_path: Path) -> None:
    people = "personId:ID(Person),name,:LABEL\n1,Ann,Person;Actor\n2,Bo,Person\n"
    folder = write(tmp_path / "g", people__csv=people, knows__csv=":START_ID(Person),:END_ID(Person)\n1,2\n1,9\n")
    with pytest.raises(NeuPathError, match="knows.csv, line 3: the edge leads to node 'Person:9', which is not in the"):
        npth.load(folder)


# ---- Columns that hold edges ---------------------------------------------------------------------
def test_foreign_keys(tmp_path: Path) -> None:
    papers = "paper_id,venue_id,year,doi_id,editor_id\n1,v1,2001,a,\n2,v1,2002,b,e1\n3,v2,2002,c,e1\n"
    hin = npth.load(write(tmp_path / "g", papers__csv=papers, editors__csv="editor_id,name\ne1,Ann\n"))
    assert shape(hin) == {"paper -paper_venue-> venue": 3, "paper -paper_editor-> editor": 2}
    assert hin.nodes["paper"].attributes.column_names == ["year", "doi_id"]
    assert hin.notes == (
        "papers.csv: venue_id was read as the relation paper -paper_venue-> venue",
        "papers.csv: editor_id was read as the relation paper -paper_editor-> editor",
        "papers.csv: doi_id was read as an attribute, not as a relation: it names identifiers of another system",
    )


def test_errors_in_columns_that_hold_edges_name_the_line(tmp_path: Path) -> None:
    papers = "paper_id,venue_id\n1,\n2,v1\n3,v9\n"
    folder = write(tmp_path / "g", papers__csv=papers, venues__csv="venue_id\nv1\n")
    with pytest.raises(NeuPathError, match="papers.csv, line 4: the edge leads to venue 'v9'"):
        npth.load(folder)


@pytest.mark.parametrize(
    ("cells", "genres"),
    [
        (["a|b", "b", "a"], ["a", "b"]),
        (["a;b", "b", "a"], ["a", "b"]),
        (['["a", "b"]', '["b"]', "[]"], ["a", "b"]),
        (["['a', 'b']", "['b']", ""], ["a", "b"]),
        ([["a", "b"], ["b"], None], ["a", "b"]),
        (["a", "b", "a"], None),
    ],
)
def test_lists_in_cells(tmp_path: Path, cells: list, genres: list[str] | None) -> None:
    table = pa.table({"movie_id": [1, 2, 3], "genres": cells, "studio_id": ["s", "s", "t"]})
    (tmp_path / "g").mkdir()
    pq.write_table(table, tmp_path / "g" / "movies.parquet")
    for hin in (npth.load(tmp_path / "g"), npth.load({"movies": table})):
        found = hin.nodes["genre"].ids.to_pylist() if "genre" in hin.nodes else None
        assert found == genres


# ---- Tables in memory ----------------------------------------------------------------------------
def frame(text: str) -> pd.DataFrame:
    from io import StringIO

    return pd.read_csv(StringIO(text))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_mappings_follow_the_rules_of_folders(tmp_path: Path, library: str) -> None:
    convert = getattr(pytest.importorskip(library), "from_pandas", lambda table: table)
    folder = npth.load(write(tmp_path / "g", ratings__csv=RATINGS, movies__csv=MOVIES))
    frames = npth.load({"ratings": convert(frame(RATINGS)), "movies": convert(frame(MOVIES))})
    assert shape(frames) == shape(folder) == {"user -ratings-> movie": 3, "movie -movie_genre-> genre": 4}
    assert names(frames, "movie") == names(folder, "movie")
    assert [n.replace(".csv", "").partition(";")[0] for n in folder.notes] == [
        n.partition(";")[0] for n in frames.notes
    ]


def test_names_and_weights_in_mappings() -> None:
    hin = npth.load({("user", "movie"): (frame(RATINGS), {"weight": "rating"}), "movie": frame(MOVIES)})
    assert names(hin, "movie") == ["Heat", "Up", "Ali"]
    assert hin.matrices[Relation("user", "user_movie", "movie")].data.tolist() == [4.0, 3.5, 5.0]
    assert shape(hin)["movie -movie_genre-> genre"] == 4
    swapped = npth.load({("user", "movie"): frame(RATINGS)[["rating", "movieId", "userId"]]})
    assert swapped.nodes["user"].ids.to_pylist() == [1, 2]
    with pytest.raises(NeuPathError, match="the options: those of .* has no key 'wieght'.* did you mean 'weight'"):
        npth.load({("user", "movie"): (frame(RATINGS), {"wieght": "rating"})})


def test_matrices() -> None:
    from scipy.sparse import csr_array

    weights = np.array([[1.0, 0, 2], [0, 0, 0.5]])
    for matrix in (weights, csr_array(weights), csr_array(weights).tocoo()):
        hin = npth.load({("user", "item"): matrix})
        assert hin.matrices[Relation("user", "user_item", "item")].toarray().tolist() == weights.tolist()
    users = pd.DataFrame({"id": ["ann", "bob"], "name": ["Ann", "Bob"]})
    hin = npth.load({"user": users, ("user", "likes", "item"): weights, ("item", "like", "item"): np.eye(3)})
    assert npth.PathSim("UIU").fit(hin).top_k("Ann").names == ("Bob",)
    with pytest.raises(NeuPathError, match=r"has 2 item nodes, but 3 are given elsewhere"):
        npth.load({("user", "item"): weights, ("item", "item"): np.eye(2)})
    with pytest.raises(NeuPathError, match="it looks like a list of edges"):
        npth.load({("user", "item"): np.array([[0, 1, 2], [5, 4, 3]])})
    with pytest.raises(NeuPathError, match="give a matrix under the types that it joins"):
        npth.load(weights)


def test_lists_of_tuples() -> None:
    assert shape(npth.load([("ann", "likes", "pie"), ("bob", "likes", "pie")])) == {"entity -likes-> entity": 2}
    hin = npth.load({("user", "item"): [("ann", 1), ("bob", 1)], ("user", "user"): [("ann", "bob", 0.5)]})
    assert shape(hin) == {"user -user_item-> item": 2, "user -user_user-> user": 1}
    assert hin.matrices[Relation("user", "user_user", "user")].data.tolist() == [0.5]
    for tuples in ([("ann", "pie")], [("ann", "pie", 0.5)], [(1, 2, 3)], [("a",)], [("a", "b"), ("a",)]):
        with pytest.raises(NeuPathError, match="tuples"):
            npth.load(tuples)


# ---- NetworkX ------------------------------------------------------------------------------------
nx = pytest.importorskip("networkx")


def test_numbered_keys_of_a_multigraph_are_no_relations() -> None:
    graph = nx.MultiDiGraph()
    graph.add_edges_from([("a", "b", "e0"), ("a", "b", "e1")])
    assert shape(npth.load(graph)) == {"node -edge-> node": 1}


def test_labels_that_differ_are_names() -> None:
    graph = nx.Graph()
    graph.add_node(1, label="Ann")
    graph.add_node(2, label="Bob")
    graph.add_edge(1, 2)
    hin = npth.load(graph)
    assert names(hin, "node") == ["Ann", "Bob"]


# ---- How notes are shown -------------------------------------------------------------------------
def test_notes_are_a_warning_of_load(tmp_path: Path) -> None:
    folder = write(tmp_path / "g", ratings__csv=RATINGS)
    with pytest.warns(
        SourceWarning, match=r"how .*g was read:\n  - ratings.csv: rating, timestamp are attributes"
    ) as seen:
        hin = npth.load(folder)
    (warning,) = seen
    assert warning.filename == __file__
    assert isinstance(warning.message, SourceWarning)
    assert warning.message.notes == hin.notes
    assert pickle.loads(pickle.dumps(warning.message)).notes == hin.notes


def test_stores_and_graphs_without_notes_warn_of_nothing(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    folder = write(tmp_path / "g", ratings__csv=RATINGS)
    with pytest.warns(SourceWarning):
        store = import_store(folder, tmp_path / "store")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert npth.load(store).notes
        npth.load(npth.load("toy"))


@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_commands_print_notes_on_standard_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], flags: list[str]
) -> None:
    folder = str(write(tmp_path / "g", ratings__csv=RATINGS))
    run("search", folder, "1", "-p", "user-movie-user", *flags)
    out, err = capsys.readouterr()
    assert "attributes" not in out
    assert err.count("note: ratings.csv: rating, timestamp are attributes of edges") == 1
    run("info", folder, *flags)
    out, err = capsys.readouterr()
    assert "timestamp are attributes of edges" in " ".join(out.split())
    assert not err


def test_a_command_prints_a_graph_toml_line_by_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write(tmp_path / "g", people__csv="name,city\nann,rome\n")
    assert run("info", str(folder / "people.csv")) == 2
    err = capsys.readouterr().err
    assert '\nsource = "name"\n' in err
    assert paste(folder / "people.csv", err).schema.relations


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as end:
        main(arguments)
    return int(end.value.code or 0)


# ---- Out of core ---------------------------------------------------------------------------------
def test_columns_that_hold_edges_are_streamed_alike(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    papers = "paper_id,venue_id,topics\n" + "".join(
        f"{n},{'' if n % 3 else 'v' + str(n % 5)},a|b{n % 4}\n" for n in range(50)
    )
    folder = write(tmp_path / "g", papers__csv=papers)
    hin, streamed = npth.load(folder), npth.load(import_store(folder, tmp_path / "store", memory_limit="200MiB"))
    assert shape(hin) == {"paper -paper_venue-> venue": 17, "paper -paper_topic-> topic": 100}
    for relation, matrix in hin.matrices.items():
        assert (streamed.matrices[relation] != matrix).nnz == 0
    assert streamed.notes == hin.notes
    (folder / "venues.csv").write_text("venue_id\nv0\nv1\nv2\nv3\n")
    for read in (npth.load, lambda folder: import_store(folder, tmp_path / "other")):
        with pytest.raises(NeuPathError, match="papers.csv, line 11: the edge leads to venue 'v4'"):
            read(folder)


# ---- Columns beside an id ------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("movies_only.csv", "movie_id,title,year\n1,Alien,1979\n2,Aliens,1986\n"),
        ("gene_info.csv", "gene_id,symbol\n1,A1BG\n2,A2M\n"),
        ("ratings.csv", "rating,userId,film\n4.0,1,a\n3.5,1,b\n4.0,2,a\n"),
        ("user_age.csv", "user_id,age,zip\n1,20,10001\n2,30,10002\n3,20,10001\n"),
    ],
)
def test_attributes_beside_an_id_are_no_nodes(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    for source in (tmp_path / name, tmp_path):
        with pytest.raises(NeuPathError, match="graph.toml"):
            npth.load(source)


def test_a_name_column_takes_its_type_from_the_name_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "gene_disease.csv").write_text("gene_id,disease_name,score\n1,Asthma,0.5\n2,Asthma,0.7\n")
    assert npth.load(tmp_path / "gene_disease.csv").schema.node_types == ("gene", "disease")


def test_labels_beside_names_are_types_in_networkx() -> None:
    nx = pytest.importorskip("networkx")
    graph = nx.MultiDiGraph()
    for node, label in (("Ann", "person"), ("Heat", "movie"), ("Bob", "person")):
        graph.add_node(node, label=label, name=node)
    graph.add_edge("Ann", "Heat", key="DIRECTED")
    assert shape(npth.load(graph)) == {"person -DIRECTED-> movie": 1}


# ---- Tables without a header ---------------------------------------------------------------------
def test_commas_in_the_texts_of_a_table_with_semicolons(tmp_path: Path) -> None:
    lines = [f"a{n};p{n % 3};seen by reader {n}, twice;{n}\n" for n in range(5)]
    (tmp_path / "author_paper.csv").write_text("author_id;paper_id;comment;n\n" + "".join(lines))
    assert shape(npth.load(tmp_path / "author_paper.csv")) == {"author -author_paper-> paper": 5}
    (tmp_path / "author_paper.csv").write_text("".join(lines))
    with pytest.raises(NeuPathError, match="graph.toml"):
        npth.load(tmp_path / "author_paper.csv")
