"""Tables of other projects' layouts: recognised by rule, with notes, or refused with a graph.toml that reads them."""

import io
import pickle
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import neupath as npth
from neupath import NeuPathError
from neupath.errors import SourceWarning
from neupath.io import import_store
from tests.command_line import Run
from tests.tables import Case, check_read, observed, shape, write

PRIME = (
    "relation,display_relation,x_index,x_id,x_type,x_name,x_source,y_index,y_id,y_type,y_name,y_source\n"
    "drug_protein,target,0,DB01,drug,Aspirin,DrugBank,1,5742,gene/protein,PTGS1,NCBI\n"
    "drug_protein,target,1,5742,gene/protein,PTGS1,NCBI,0,DB01,drug,Aspirin,DrugBank\n"
    "disease_protein,associated with,2,5742,disease,flu,MONDO,1,5742,gene/protein,PTGS1,NCBI\n"
)
RATINGS = "userId,movieId,rating,timestamp\n1,10,4.0,964982703\n2,10,3.5,964982931\n2,20,5,964982400\n"
MOVIES = "movieId,title,genres\n10,Heat,Action|Crime\n20,Up,Animation\n30,Ali,Crime\n"
DRKG = "Gene::1\tGiG\tGene::2\nGene::2\tGaD\tDisease::MESH:1\nCompound::DB1\tCtD\tDisease::MESH:1\n"
COMMENTS = "".join(f"a{n};p{n % 3};seen by reader {n}, twice;{n}\n" for n in range(5))
CASES: dict[str, Case] = {
    **{f"triples with types in a {what}": (
        {"kg__csv": PRIME},
        {"drug -drug_protein-> gene/protein": 1, "gene/protein -drug_protein-> drug": 1,
         "disease -disease_protein-> gene/protein": 1},
        {"load": load, "disease.ids": [5742],  # an id that a gene has as well
         "gene/protein.names": ["PTGS1"], "disease_protein.attributes": {"display_relation": ["associated with"]},
         "noted": ["x_id and y_id were read as the ids, not x_index, y_index",
                   "each edge of drug -drug_protein-> gene/protein is there in both directions",
                   "x_source, y_source were left out: what describes an end"]},
    ) for what, load in (("folder", ""), ("file", "kg.csv"))},
    **{f"triples with types: {header}": (
        {"kg__csv": f"{header}\n1,user,likes,1,item\n2,user,likes,1,item\n1,user,knows,2,user\n"},
        {"user -likes-> item": 2, "user -knows-> user": 1}, {"load": "kg.csv"},
    ) for header in (
        "head,head_type,relation,tail,tail_type", "source_id,source_type,metaedge,target_id,target_type",
        "subject,subject_category,predicate,object,object_category", "startId,startType,rel,endId,endType",
    )},
    "an id without a type among ids with one": (
        {"drkg__tsv": DRKG * 2000 + "7\tGiG\tGene::1\n"}, "drkg.tsv, line 6001: the id '7' has no type before '::'",
        {"load": "drkg.tsv"},
    ),
    "an edge of neo4j-admin names its node with the space of ids": (
        {"people__csv": "personId:ID(Person),name,:LABEL\n1,Ann,Person;Actor\n2,Bo,Person\n",
         "knows__csv": ":START_ID(Person),:END_ID(Person)\n1,2\n1,9\n"},
        "knows.csv, line 3: the edge leads to node 'Person:9', which is not in the",
    ),
    "foreign keys": (
        {"papers__csv": "paper_id,venue_id,year,doi_id,editor_id\n1,v1,2001,a,\n2,v1,2002,b,e1\n3,v2,2002,c,e1\n",
         "editors__csv": "editor_id,name\ne1,Ann\n"},
        {"paper -paper_venue-> venue": 3, "paper -paper_editor-> editor": 2},
        {"paper.attributes": {"year": [2001, 2002, 2002], "doi_id": ["a", "b", "c"]}, "notes": [
            "papers.csv: venue_id was read as the relation paper -paper_venue-> venue",
            "papers.csv: editor_id was read as the relation paper -paper_editor-> editor",
            "papers.csv: doi_id was read as an attribute, not as a relation: it names identifiers of another system",
        ]},
    ),
    "errors in columns that hold edges name the line": (
        {"papers__csv": "paper_id,venue_id\n1,\n2,v1\n3,v9\n", "venues__csv": "venue_id\nv1\n"},
        "papers.csv, line 4: the edge leads to venue 'v9'",
    ),
    **{f"attributes beside an id are no nodes: {name}{load}": (
        {name: content}, "graph.toml", {"load": load}
    ) for name, content in (
        ("movies_only.csv", "movie_id,title,year\n1,Alien,1979\n2,Aliens,1986\n"),
        ("gene_info.csv", "gene_id,symbol\n1,A1BG\n2,A2M\n"),
        ("ratings.csv", "rating,userId,film\n4.0,1,a\n3.5,1,b\n4.0,2,a\n"),
        ("user_age.csv", "user_id,age,zip\n1,20,10001\n2,30,10002\n3,20,10001\n"),
    ) for load in ("", name)},
    "a name column takes its type from the name of the file": (
        {"gene_disease__csv": "gene_id,disease_name,score\n1,Asthma,0.5\n2,Asthma,0.7\n"},
        {"gene -gene_disease-> disease": 2}, {"load": "gene_disease.csv"},
    ),
    "commas in the texts of a table with semicolons": (
        {"author_paper__csv": f"author_id;paper_id;comment;n\n{COMMENTS}"}, {"author -author_paper-> paper": 5},
        {"load": "author_paper.csv"},
    ),
    "commas in the texts of a table without a header": (
        {"author_paper__csv": COMMENTS}, "graph.toml", {"load": "author_paper.csv"}
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_layouts(tmp_path: Path, case: str) -> None:
    check_read(tmp_path / "g", *CASES[case])


def frame(text: str, **options: Any) -> pd.DataFrame:
    return pd.read_csv(io.StringIO(text), **options)


def test_triples_with_types_or_names_of_one_end_or_of_one_id_alone_are_refused() -> None:
    typed = frame(PRIME, dtype=str)
    for dropped in ("x_type", "y_type"):
        with pytest.raises(NeuPathError, match="has the types of one end in ._type, but none for the other"):
            npth.load(typed.drop(columns=dropped))
    untyped = typed.drop(columns=["x_type", "y_type"])
    assert npth.load(untyped).num_nodes("entity") == 3  # by x_index, which identifies nodes
    with pytest.raises(NeuPathError, match="1 id in x_id and y_id have several names"):
        npth.load(untyped.drop(columns=["x_index", "y_index"]))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("stuff.txt", "1\t2\t3\n4\t5\t6\n7\t5\t9\n"),  # numbers
        ("stuff.txt", "1\tToy Story\tKids\n2\tHeat\tCrime\n3\tUp\tKids\n"),  # as many "relations" as rows
        ("stuff.txt", "ann\tfunny\t5\nbob\tfunny\t4\nann\tsad\t3\n"),  # a rating
        ("stuff.txt", "heat\tcrime\tmann\nali\tcrime\tmann\nup\tkids\tdocter\n" * 9),  # genre and director of films
        ("soc-graph.txt", "1 2\n3 4\n"),
        ("edges.csv", "first,then\na,b\n"),
        ("people.csv", "name,city\nann,rome\nbob,oslo\n"),
        ("my_graph.csv", "p,q,weight\na,b,1\n"),
        ("wide.csv", "when,who,what\n2019,ann,pie\n2020,bob,jam\n"),
        ("movies.csv", "movie_id,title,year\n1,Heat,1995\n2,Up,2009\n"),
    ],
)
def test_what_is_refused_comes_with_a_graph_toml_that_reads_it(tmp_path: Path, name: str, text: str) -> None:
    known = "stuff.txt is not recognised: stuff.txt has 3 columns (no header"
    message = re.escape(known if name == "stuff.txt" else name)
    refused = str(check_read(tmp_path, {name: text}, message, {"load": name}))
    assert re.split(r"[\s,]", text)[0] in refused
    assert paste(tmp_path / name, refused).schema.relations


def paste(path: Path, message: str) -> npth.HIN:
    """Load a file with the graph.toml of an error message."""
    toml = path.parent / "pasted.toml"
    toml.write_text(message.partition(":\n")[2])
    return npth.load(path, config=toml)


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
    columns = {"movie_id": [1, 2, 3], "genres": cells, "studio_id": ["s", "s", "t"]}
    for hin in (npth.load(write(tmp_path, movies__parquet=columns)), npth.load({"movies": pa.table(columns)})):
        assert observed(hin).get("genre.ids") == genres


# ---- Tables in memory ----------------------------------------------------------------------------
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_mappings_follow_the_rules_of_folders(tmp_path: Path, library: str) -> None:
    convert = getattr(pytest.importorskip(library), "from_pandas", lambda table: table)
    folder = npth.load(write(tmp_path / "g", ratings__csv=RATINGS, movies__csv=MOVIES))
    frames = npth.load({"ratings": convert(frame(RATINGS)), "movies": convert(frame(MOVIES))})
    assert shape(frames) == shape(folder) == {"user -ratings-> movie": 3, "movie -movie_genre-> genre": 4}
    assert observed(frames) == observed(folder)
    notes = [[note.replace(".csv", "").partition(";")[0] for note in hin.notes] for hin in (folder, frames)]
    assert notes[0] == notes[1]


def test_names_and_weights_in_mappings() -> None:
    hin = npth.load({("user", "movie"): (frame(RATINGS), {"weight": "rating"}), "movie": frame(MOVIES)})
    seen = observed(hin)
    assert seen["movie.names"] == ["Heat", "Up", "Ali"]
    assert seen["user_movie.weights"] == [4.0, 3.5, 5.0]
    assert shape(hin)["movie -movie_genre-> genre"] == 4
    swapped = npth.load({("user", "movie"): frame(RATINGS)[["rating", "movieId", "userId"]]})
    assert swapped.nodes["user"].ids.to_pylist() == [1, 2]
    with pytest.raises(NeuPathError, match="the options: those of .* has no key 'wieght'.* did you mean 'weight'"):
        npth.load({("user", "movie"): (frame(RATINGS), {"wieght": "rating"})})


def test_matrices() -> None:
    from scipy.sparse import csr_array

    weights = np.array([[1.0, 0, 2], [0, 0, 0.5]])
    for matrix in (weights, csr_array(weights), csr_array(weights).tocoo()):
        (read,) = npth.load({("user", "item"): matrix}).matrices.values()
        assert read.toarray().tolist() == weights.tolist()
    users = pd.DataFrame({"id": ["ann", "bob"], "name": ["Ann", "Bob"]})
    hin = npth.load({"user": users, ("user", "likes", "item"): weights, ("item", "like", "item"): np.eye(3)})
    assert npth.PathSim("UIU").fit(hin).top_k("Ann").names == ("Bob",)
    for source, message in (
        ({("user", "item"): weights, ("item", "item"): np.eye(2)}, "has 2 item nodes, but 3 are given elsewhere"),
        ({("user", "item"): np.array([[0, 1, 2], [5, 4, 3]])}, "it looks like a list of edges"),
        (weights, "give a matrix under the types that it joins"),
    ):
        with pytest.raises(NeuPathError, match=message):
            npth.load(source)


def test_lists_of_tuples() -> None:
    assert shape(npth.load([("ann", "likes", "pie"), ("bob", "likes", "pie")])) == {"entity -likes-> entity": 2}
    hin = npth.load({("user", "item"): [("ann", 1), ("bob", 1)], ("user", "user"): [("ann", "bob", 0.5)]})
    assert shape(hin) == {"user -user_item-> item": 2, "user -user_user-> user": 1}
    assert observed(hin)["user_user.weights"] == [0.5]
    for tuples in ([("ann", "pie")], [("ann", "pie", 0.5)], [(1, 2, 3)], [("a",)], [("a", "b"), ("a",)]):
        with pytest.raises(NeuPathError, match="tuples"):
            npth.load(tuples)


def test_keys_and_labels_of_networkx() -> None:
    nx = pytest.importorskip("networkx")
    numbered = nx.MultiDiGraph([("a", "b", "e0"), ("a", "b", "e1")])
    assert shape(npth.load(numbered)) == {"node -edge-> node": 1}
    labelled = nx.Graph([(1, 2)])
    nx.set_node_attributes(labelled, {1: "Ann", 2: "Bob"}, "label")
    assert observed(npth.load(labelled))["node.names"] == ["Ann", "Bob"]
    typed = nx.MultiDiGraph()
    for node, label in (("Ann", "person"), ("Heat", "movie"), ("Bob", "person")):
        typed.add_node(node, label=label, name=node)
    typed.add_edge("Ann", "Heat", key="DIRECTED")
    assert shape(npth.load(typed)) == {"person -DIRECTED-> movie": 1}


# ---- How notes are shown -------------------------------------------------------------------------
def test_notes_are_a_warning_of_load(tmp_path: Path) -> None:
    folder = write(tmp_path / "g", ratings__csv=RATINGS)
    message = r"how .*g was read:\n  - ratings.csv: rating, timestamp are attributes"
    with pytest.warns(SourceWarning, match=message) as seen:
        hin = npth.load(folder)
    (warning,) = seen
    assert warning.filename == __file__
    assert isinstance(warning.message, SourceWarning)
    assert warning.message.notes == hin.notes
    assert pickle.loads(pickle.dumps(warning.message)).notes == hin.notes
    pytest.importorskip("duckdb")
    with pytest.warns(SourceWarning):
        store = import_store(folder, tmp_path / "store")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert npth.load(store).notes
        npth.load(npth.load("toy"))


@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_commands_print_notes_on_standard_error(tmp_path: Path, run: Run, flags: list[str]) -> None:
    folder = write(tmp_path / "g", ratings__csv=RATINGS)
    found = run("search", folder, "1", "-p", "user-movie-user", *flags)
    assert "attributes" not in found.out
    assert found.err.count("note: ratings.csv: rating, timestamp are attributes of edges") == 1
    shown = run("info", folder, *flags)
    assert "timestamp are attributes of edges" in " ".join(shown.out.split())
    assert not shown.err


def test_a_command_prints_a_graph_toml_line_by_line(tmp_path: Path, run: Run) -> None:
    path = write(tmp_path / "g", people__csv="name,city\nann,rome\n") / "people.csv"
    refused = run("info", path)
    assert refused.code == 2
    assert '\nsource = "name"\n' in refused.err
    assert paste(path, refused.err).schema.relations


# ---- Out of core ---------------------------------------------------------------------------------
def test_columns_that_hold_edges_are_streamed_alike(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    rows = "".join(f"{n},{'' if n % 3 else 'v' + str(n % 5)},a|b{n % 4}\n" for n in range(50))
    files, expected = {"papers__csv": f"paper_id,venue_id,topics\n{rows}"}, {"paper -paper_venue-> venue": 17}
    hin = check_read(tmp_path / "g", files, expected | {"paper -paper_topic-> topic": 100})
    streamed = npth.load(import_store(tmp_path / "g", tmp_path / "store", memory_limit="200MiB"))
    assert (observed(streamed), streamed.notes) == (observed(hin), hin.notes)
    write(tmp_path / "g", venues__csv="venue_id\nv0\nv1\nv2\nv3\n")
    for read in (npth.load, lambda folder: import_store(folder, tmp_path / "other")):
        with pytest.raises(NeuPathError, match="papers.csv, line 11: the edge leads to venue 'v4'"):
            read(tmp_path / "g")
