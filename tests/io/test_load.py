"""Folders of tables: layouts, graph.toml, parts of tables, what is written and read back, and errors in bad folders."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pytest

import neupath as npth
from neupath import HIN, NeuPathError
from neupath.graph.hin import Edges
from neupath.graph.metapath import Relation
from neupath.graph.nodes import Nodes
from neupath.io import write_folder
from neupath.io.draft import draft_of
from tests.tables import CAST, HOSTILE_TEXTS, MOVIES, Case, check_read, edges_toml, shape, write

MOVIE_ACTOR = {"movie -movie_actor-> actor": 3}
GENES = {
    "nodes__tsv": "id\tname\tkind\nG::1\tABC\tGene\nG::2\tXYZ\tGene\nD::1\tflu\tDisease\n",
    "edges__tsv": "source\tmetaedge\ttarget\tscore\nD::1\tDaG\tG::1\t0.5\nG::1\tGiG\tG::2\t1\nD::1\tGiG\tG::2\t1\n",
    "metaedges__tsv": "x\ty\n1\t2\n",
}
ENDS = {"movie_id": [1, 1], "actor_id": ["a", "b"]}
ONE_PART = {"movie_actor/part-00__parquet": ENDS}
DEEP = {"movie_actor/0__parquet": {"movie_id": [1], "actor_id": ["a"]},
        "movie_actor/2020/0__parquet": {"movie_id": [2], "actor_id": ["b"]}, "movie_actor/docs/note": ""}  # fmt: skip
SOLD = {
    "customer_product__csv": "customer_id,product_id\nann,tea\nbob,NULL\ncem,NULL\nAnn,cup\nann ,(no product given)\n"
}
LISTED = 'missing_ids = ["NULL", "(no product given)"]'
SIMILAR = {
    "items__csv": "item_id,price\ntea,2\ncup,3\n", "users__csv": "user_id,tea,cup\nann,2,1\nbob,0,3\n",
    "user_item__csv": "user_id,item_id\nann,tea\nbob,cup\n",
}  # fmt: skip
PIVOT = {"user_item__csv": "u,101,102,205\n1,2,1,0\n2,3,0,0\n3,0,0,1\n"}
CASES: dict[str, Case] = {
    "a file per relation, and nodes": (
        {"movies__tsv": MOVIES, "movie_actor__tsv__gz": CAST, "movie_genre__csv": "movie_id,genre\n1,War\n"},
        {"movie -movie_actor-> actor": 3, "movie -movie_genre-> genre": 1},
        {"movie.ids": [1, 2, 3], "movie.names": ["Avatar", "Heat", "Up"],
         "movie.attributes": {"year": [2009, None, 2009]}},
    ),
    "nodes and edges": (
        GENES, {"Disease -DaG-> Gene": 1, "Disease -GiG-> Gene": 1, "Gene -GiG-> Gene": 1},
        {"DaG.attributes": {"score": [0.5]}, "notes": [
            "metaedges.tsv was left out: the graph is read from nodes.tsv and edges.tsv",
            'edges.tsv: score is an attribute of edges, and each edge weighs 1; weight = "score" under [pair] in '
            'graph.toml would make score the weight, and attributes = ["score"] there keeps it 1',
        ]},
    ),
    "nodes and edges, with a weight and a relation without direction": (
        GENES | {"graph__toml": 'undirected = ["GiG"]\n[pair]\nweight = "score"\n'},
        {"Disease -DaG-> Gene": 1, "Disease -GiG-> Gene": 1, "Gene -GiG- Gene": 2},
        {"DaG.weights": [0.5], "DaG.attributes": {"score": [0.5]}},
    ),
    "nodes and edges, some of them": (GENES | {"graph__toml": 'take = ["DaG"]\n'}, {"Disease -DaG-> Gene": 1}),
    "a relation's name in the file's": (
        {"author_writes_paper__csv": "source,target\na,p\n"}, {"author -writes-> paper": 1}
    ),
    "user2item": ({"user2item__csv": "user_id,item_id\na,p\n"}, {"user -user2item-> item": 1}),
    "a list of edges": ({"user_item__txt": "1 2\n1 3\n"}, {"user -user_item-> item": 2}),
    "a hyphen": ({"user-item__tsv": "src\tdst\na\tb\n"}, {"user -user-item-> item": 1}),
    "capitals": ({"User_Item__csv": "UserID;ItemID\n1;2\n"}, {"User -User_Item-> Item": 1}),
    "capitals in suffixes": (
        {"MOVIES__TSV": MOVIES.replace("movie_id", "MOVIE_ID"), "MOVIE_ACTOR__TXT": "1\t7\n2\t7\n",
         "MOVIE_GENRE__CSV__GZ": "movie_id,genre\n1,War\n"},
        {"MOVIE -MOVIE_ACTOR-> ACTOR": 2, "MOVIE -MOVIE_GENRE-> genre": 1},
        {"MOVIE.names": ["Avatar", "Heat", "Up"]},
    ),
    "no headers": (
        {"paper_author__txt": "7\t1\n8\t1\n", "author__txt": "1\tAnn\n2\tBob\n"},
        {"paper -paper_author-> author": 2}, {"author.ids": [1, 2]},
    ),
    "a plural": (
        {"companies__csv": "id,name\nc1,Acme\n", "person_company__csv": "person_id,company_id\np1,c1\n"},
        {"person -person_company-> company": 1}, {"company.ids": ["c1"]},
    ),
    "headers whose words are cells too": (
        {"movies__tsv": "id\tname\tkind\n1\tname\tx\n", "movie_actor__tsv": "movie\tactor\n1\tmovie\n"},
        {"movie -movie_actor-> actor": 1}, {"movie.ids": [1], "actor.ids": ["movie"]},
    ),
    "blank lines above": (
        {"movie_actor__csv": "\r\n  \nmovie_id,actor_id\r\nm1,a1\r\nm2,a1\r\n"},
        {"movie -movie_actor-> actor": 2}, {"movie.ids": ["m1", "m2"]},
    ),
    "two id columns, whatever the file is called": (
        {"ratings__csv": "userId,movieId,rating\n1,10,4.0\n", "movies__csv": "movieId,title\n10,Up\n"},
        {"user -ratings-> movie": 1},
    ),
    "files that are no tables": (
        {"README__txt": "the data the paper", "LICENSE__txt": "", "movie_actor__tsv": CAST}, MOVIE_ACTOR
    ),
    "edges alone": ({"edges__csv": "source,relation,target\na,likes,b\n"}, {"entity -likes-> entity": 1}),
    "Gephi": (
        {"nodes__csv": "Id,Label\na,Ann\nb,Bob\n", "edges__csv": "Source,Target,Type\na,b,Undirected\n"},
        {"node -edge- node": 2},
    ),
    "a long cell": ({"a_b__csv": f"a_id,b_id\nx,{'y' * 200_000}\n"}, {"a -a_b-> b": 1}),
    "a byte-order mark and quotes": (
        {"movie_genre__csv": b'\xef\xbb\xbfmovie_id,genre\r\n"1","War, ""Cold"""\r\n\r\n"2","A\nB"\r\n'},
        {"movie -movie_genre-> genre": 2}, {"genre.ids": ['War, "Cold"', "A\nB"]},
    ),
    "quotes between tabs": (
        {"movie_genre__tsv": 'movie_id\tgenre\n1\tsays "hi"\n'},
        {"movie -movie_genre-> genre": 1}, {"genre.ids": ['says "hi"']},
    ),
    "ids that are numbers, and some that are not": (
        {"a_b__csv": "a_id,b_id\n007,12\n8,-3\n"}, {"a -a_b-> b": 2}, {"a.ids": ["007", "8"], "b.ids": [12, -3]}
    ),
    "words that are missing values elsewhere": (
        {"a_b__csv": "a_id,b_id\n1,nan\n2,NULL\n"}, {"a -a_b-> b": 2}, {"b.ids": ["nan", "NULL"]}
    ),
    "dictionaries in Parquet": (
        {"a_b__parquet": {"a_id": pa.array(["x", "y"]).dictionary_encode(), "b_id": pa.array([1, 2], pa.int32())}},
        {"a -a_b-> b": 2}, {"a.ids": ["x", "y"], "b.ids": [1, 2]},
    ),
    "lists as ids in Parquet": ({"a_b__parquet": {"a_id": [["x"]], "b_id": [1]}}, "a_b.parquet cannot be read"),
    "graph.toml names what cannot be detected": (
        {"cast__csv": "minutes;who;what\n10;ann;up\n20;bob;up\n", "films__csv": "title;key;seen\nUp;up;1\n",
         "junk_data__csv": "a;b\n1;2\n",
         "graph__toml": 'delimiter = ";"\nignore = ["junk*"]\n[abbreviations]\nF = "movie"\n[nodes.movie]\n'
            'file = "films.csv"\nid = "key"\nname = "title"\nattributes = []\n' + edges_toml(
             "acts_in", "cast.csv", "actor", "movie", 'columns = ["who", "what"]\nweight = "minutes"')},
        {"actor -acts_in-> movie": 2}, {"acts_in.weights": [10, 20], "movie.attributes": {}, "movie.names": ["Up"]},
    ),
    "a file of a folder": (
        {"a_b__csv": "a_id,b_id\n1,2\n", "notes__doc": "x"}, {"a -a_b-> b": 1}, {"load": "a_b.csv"}
    ),
    "a file that is no table": (
        {"notes__doc": "x"}, "notes.doc is not a graph that neupath can read", {"load": "notes.doc"}
    ),
    # ---- Folders of parts ------------------------------------------------------------------------
    "tables in parts": (
        {"movie_actor/part-00__parquet": {"movie_id": [3], "actor_id": ["b"], "weight": [0.5]},
         "movie_actor/part-01__parquet": {
             "movie_id": [1, 2, 1], "actor_id": ["a", "b", "c"], "weight": [2.0, 1.0, 3.0]},
         "movie_actor/_SUCCESS": "", "movie_actor/_metadata__parquet": "not a part",
         "movies__parquet/part-00__parquet": {"movie_id": [1, 2], "title": ["x", "y"]},
         "movies__parquet/part-01__parquet": {"movie_id": [3], "title": ["z"]}},
        {"movie -movie_actor-> actor": 4},
        {"movie.ids": [1, 2, 3], "actor.ids": ["b", "a", "c"], "movie_actor.weights": [2, 3, 1, 0.5]},
    ),
    "parts in folders that are named for a value": (
        {"movie_actor/year=2021/month=1/0__parquet": {"movie_id": [3], "actor_id": ["c"]},
         "movie_actor/year=2020/month=2/0__parquet": {"movie_id": [1, 2], "actor_id": ["a", "b"]},
         "movie_actor/year=2020/month=2/1__parquet": {"movie_id": [1], "actor_id": ["d"]},
         "movie_actor/year=2020/_temporary/0__parquet": {"movie_id": [9], "actor_id": ["x"]}},
        {"movie -movie_actor-> actor": 4},
        {"movie.ids": [1, 2, 3], "actor.ids": ["a", "b", "d", "c"],
         "notes": ["movie_actor is partitioned into folders by month, year: folder names are not read"]},
    ),
    "an id column that is a folder name": (
        {"movie_actor/actor_id=7/0__parquet": {"movie_id": [3], "weight": [0.5]}},
        "movie_actor is partitioned into folders by actor_id, and folder names are",
    ),
    "an id column that is a folder name, too": (
        {"movie_actor/actor_id=8/0__parquet": {"movie_id": [3], "actor_id": [8]}}, {"movie -movie_actor-> actor": 1},
        {"notes": []},
    ),
    "parts that lie too deep": (
        DEEP, {"movie -movie_actor-> actor": 1}, {"notes": [
            "movie_actor/2020 was left out: the parts of a table must be in its folder, or in folders such as year=2020"
        ]},
    ),
    "parts that lie too deep, ignored": (
        DEEP | {"movie_genre/0__parquet": {"movie_id": [1], "genre_id": ["a"]},
                "graph__toml": 'ignore = ["movie_a*"]'}, {"movie -movie_genre-> genre": 1}, {"notes": []},
    ),
    **{f"a bad part: {message}": (
        ONE_PART | {"movies/part-00__parquet": {"movie_id": [1]}, "movie_actor/part-01__parquet": second}, message
    ) for second, message in (
        ({"movie_id": [9], "actor_id": ["a"]}, "part-01.parquet, row 1: the edge leads to movie 9, which is not in"),
        ({"movie_id": ["1"], "actor_id": ["a"]}, "part-01.parquet has other column types \\(movie_id: string"),
        ({"movie_id": [1], "who": ["a"]}, "part-01.parquet has no column 'actor_id' \\(it has movie_id, who\\)"),
        ({"movie_id": [1], "actor_id": ["a"], "weight": [2.0]}, "has a column 'weight', but part-00.parquet has none"),
        ({"movie_id": [[1]], "actor_id": ["a"]}, "part-01.parquet cannot be read: Unsupported cast from list"),
    )},
    **{f"a part {name} that is not Parquet": (
        ONE_PART | {f"movie_actor/{name}__parquet": "movie_id,actor_id\n"},
        f"{name}.parquet is named .parquet but is not",
    ) for name in ("part-99", "a")},
    **{f"a folder {name} next to tables": (
        {"movie_actor__tsv": CAST, f"{name}/0__parquet": {"movie_id": [1], "actor_id": [7], "score": [0.5]},
         f"{name}/1__parquet": {"actor_id": [7], "name": ["Ann"]}},
        MOVIE_ACTOR, {"noted": [f"{name} was left out"]},
    ) for name in ("backup", "train", "results")},
    **{f"a table of parts in graph.toml as {file}": (
        ONE_PART | {"graph__toml": edges_toml("cast", file, "movie", "actor")}, {"movie -cast-> actor": 2},
        {"load": "../g"},
    ) for file in ("movie_actor/", "movie_actor", "movie_actor/part-00.parquet")},
    "tables of a folder are no parts": (
        {"movie_actor_1__parquet": {"movie_id": [1], "actor_id": [7]},
         "movies__parquet": {"movie_id": [1], "title": ["Heat"]}},
        {"movie -movie_actor_1-> actor": 1}, {"movie.names": ["Heat"]},
    ),
    # ---- Refusals say what works -----------------------------------------------------------------
    **{f"a misspelled section: {toml}": (
        {"a_b__csv": "a_id,b_id\n1,2\n", "graph__toml": toml}, f"the top level has no key .*{hint}"
    ) for toml, hint in (
        ('[node.user]\nfile = "a_b.csv"', r"did you mean \[nodes\.user\]\?"),
        ('[Node.user]\nfile = "a_b.csv"', r"did you mean \[nodes\.user\]\?"),
        ('[nods.user]\nfile = "a_b.csv"', r"did you mean \[nodes\.user\]\?"),
        ('[edge]\nname = "r"', r"did you mean \[\[edges\]\]\?"),
        ('[[edge]]\nname = "r"', r"did you mean \[\[edges\]\]\?"),
        ('[relation]\nname = "r"', r"can have .*nodes, edges, pair, triples, rdf"),
        ('triple = ["a.csv"]', r"did you mean \[triples\]\?"),
        ('[pairs]\nnodes = "n.csv"', r"did you mean \[pair\]\?"),
    )},
    **{f"a file of another kind: {name}": (
        {name: content}, rf"(?s)^\S+{name} .*{advice}", {"load": name}
    ) for name, content, advice in (
        ("graph.ods", b"PK\x03\x04" + bytes(60), r"is a spreadsheet; .*pandas\.read_excel"),
        ("refs.bib", b"@article{a, title={B}}\n", r"holds BibTeX; .* CSV"),
        ("frame.pkl", b"\x80\x04", r"is a pickle, .*can run code"),
        ("net.net", b"*Vertices 2\n", r"networkx\.read_pajek"),
        ("u.data", b"1\t2\t3\t881250949\n2\t2\t1\t881250949\n", r"rename it to u\.data\.csv"),
        ("list.names", b"a,b,c\n1,2,3\n4,5,6\n", r"rename it to list\.names\.csv"),
        ("user_movie.data", b"user\tmovie\trating\n1\t2\t3\n2\t2\t1\n", r"rename it to user_movie\.data\.csv"),
        ("pubmed.xml.zip", b"PK", "is packed; unpack it with unzip"),
    )},
    "a renamed text table": (
        {"user_movie__data__csv": "user\tmovie\trating\n1\t2\t3\n2\t2\t1\n"}, {"user -user_movie.data-> movie": 2},
        {"user.ids": [1, 2], "load": "user_movie.data.csv"},
    ),
    **{f"a pivot table of numbers: {load}": (
        PIVOT, "looks like a matrix, whose columns are nodes", {"load": load}
    ) for load in ("", "user_item.csv")},
    "a pivot table of marks": (
        {"bought__csv": "customer,cup,lamp,tea\nann,x,,x\nbob,,x,x\ncem,x,x,\n"},
        "looks like a matrix, whose columns are nodes", {"load": "bought.csv"},
    ),
    # ---- Ids that look empty, or differ only by case or spaces -----------------------------------
    "ids that look empty are noted with their edges": (
        SOLD | {"graph__toml": "fold_ids = false"}, {"customer -customer_product-> product": 5},
        {"notes": ["product: the ids 'NULL' (2 edges), '(no product given)' (1 edge) look like empty cells; "],
         "noted": [f"{LISTED} in graph.toml leaves out their rows, and missing_ids = [] keeps them"]},
    ),
    "ids that look empty are kept": (
        SOLD | {"graph__toml": "missing_ids = []\nfold_ids = false"}, {"customer -customer_product-> product": 5},
        {"notes": [], "customer.ids": ["ann", "bob", "cem", "Ann", "ann "]},
    ),
    "ids that look empty are left out": (
        SOLD | {"graph__toml": f"{LISTED}\nfold_ids = false"}, {"customer -customer_product-> product": 2},
        {"notes": [], "customer.ids": ["ann", "Ann"]},
    ),
    "ids that differ only by case or spaces are noted": (
        SOLD | {"graph__toml": "missing_ids = []"}, {"customer -customer_product-> product": 5},
        {"notes": ["customer: 2 ids differ from others only by case or spaces, such as 'ann' and 'Ann'; "],
         "noted": ["fold_ids = true in graph.toml makes them one, and fold_ids = false keeps them apart"]},
    ),
    "ids that differ only by case or spaces are made one": (
        SOLD | {"graph__toml": "missing_ids = []\nfold_ids = true"}, {"customer -customer_product-> product": 5},
        {"notes": [], "customer.ids": ["ann", "bob", "cem"]},
    ),
    "attributes that are ids of another type are noted": (
        SIMILAR, {"user -user_item-> item": 2},
        {"notes": ["users.csv: tea, cup were read as attributes of user, and they are ids of item; "]},
    ),
    "attributes that are ids of another type, as graph.toml says": (
        SIMILAR | {"graph__toml": '[nodes.user]\nfile = "users.csv"\nattributes = ["tea", "cup"]'},
        {"user -user_item-> item": 2}, {"notes": []},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_folders(tmp_path: Path, case: str) -> None:
    sentence = check_read(tmp_path / "g", *CASES[case])
    assert not isinstance(sentence, str) or len(sentence) < 350 + len(str(tmp_path)) or not case.startswith("a file of")


def test_nodes_whose_ids_are_made_one_are_the_first_of_them(tmp_path: Path) -> None:
    folder = write(
        tmp_path / "g",
        customers__csv="customer_id,name,age\nAnn  Lee,Ann,31\nann lee,Anna,32\nBo,Bo,\nNULL,None,\n",
        customer_product__csv="customer_id,product_id,day\n ANN LEE,tea,2020-01-01\nbo,NULL,\nbo,tea,2020-01-03\n",
        graph__toml='missing_ids = ["NULL"]\nfold_ids = true',
    )
    hin = npth.load(folder)
    customers = hin.nodes["customer"]
    assert (customers.ids.to_pylist(), customers.names) == (["ann lee", "bo"], pa.array(["Ann", "Bo"]))
    assert customers.attributes["age"].to_pylist() == [31, None]
    (edges,) = hin.edge_tables.values()
    assert [str(day) for day in edges.attributes["day"].to_pylist()] == ["2020-01-01", "2020-01-03"]


def test_queries_by_name_and_abbreviation_of_what_was_read(tmp_path: Path) -> None:
    files = {"movies__tsv": MOVIES, "movie_actor__tsv": CAST, "graph__toml": '[abbreviations]\nF = "movie"\n'}
    hin = npth.load(write(tmp_path / "g", **files))
    assert npth.PathSim("FAF").fit(hin).top_k("Avatar").ids == (2,)


# ---- Written and read back -----------------------------------------------------------------------
def test_writing_keeps_ids_that_look_like_numbers_and_attributes_that_look_like_names(tmp_path: Path) -> None:
    nodes = Nodes("a", pa.array(["1", "2"]), None, pa.table({"title": ["x", "y"]}))
    hin = HIN.build([nodes], [Edges(Relation("a", "r", "a"), np.array([0]), np.array([1]))])
    folder = write_folder(hin, str(tmp_path / "out"))
    more = {"a.ids": ["1", "2"], "a.names": None, "a.attributes": {"title": ["x", "y"]}}
    check_read(folder, {}, {"a -r-> a": 1}, more)
    with pytest.raises(NeuPathError, match="exists already; give a new folder"):
        write_folder(hin, folder)


@pytest.mark.parametrize("text", HOSTILE_TEXTS)
def test_writing_keeps_names_of_any_characters(tmp_path: Path, text: str) -> None:
    first, second = f"a{text}a", f"b{text}b"
    own = "weigh" if text == "weight" else text  # edges have no attribute of that name
    attributes = pa.table({text: [1, None], f"{text}2": ["p", text]})
    nodes = [Nodes(first, pa.array([text, "x"]), pa.array([f"n{text}", None]), attributes)]
    nodes.append(Nodes(second, pa.array([7, 8])))
    relations = Relation(first, f"q{text}q", second), Relation(first, f"r{text}r", first, directed=False)
    ends = np.array([0, 1]), np.array([1, 0])
    edges = [Edges(relations[0], *ends, np.array([2.0, 3.0]), pa.table({own: [5, 6]})), Edges(relations[1], *ends)]
    hin = HIN.build(nodes, edges)
    again = npth.load(write_folder(hin, tmp_path / "saved"))
    assert again.schema == hin.schema
    for node_type, own_nodes in hin.nodes.items():
        read = again.nodes[node_type]
        assert (read.ids, read.names) == (own_nodes.ids, own_nodes.names)
        assert read.attributes.to_pydict() == own_nodes.attributes.to_pydict()
    assert again.edge_tables[relations[0]].attributes.to_pydict() == {own: [5, 6]}
    for relation in relations:
        assert (again.matrices[relation] != hin.matrices[relation]).nnz == 0


# ---- Files that are damaged, missing or closed ---------------------------------------------------
def test_truncated_and_false_gzip(tmp_path: Path) -> None:
    folder = write(tmp_path / "g", movie_actor__tsv__gz=CAST * 500)
    path = folder / "movie_actor.tsv.gz"
    path.write_bytes(path.read_bytes()[:-20])
    check_read(folder, {}, r"movie_actor.tsv.gz .*(damaged gzip|cut short)")
    path.write_bytes(CAST.encode())
    check_read(folder, {}, r"movie_actor.tsv.gz is named .gz but is not gzipped")


def test_missing_things(tmp_path: Path) -> None:
    table = write(tmp_path / "g", a_b__csv="a_id,b_id\n1,2\n") / "a_b.csv"
    assert shape(npth.load([table])) == {"a -a_b-> b": 1}
    for source, options, message in (
        (tmp_path / "nowhere", {}, r"no such file or folder: .*nowhere \(the built-in graphs are toy, stdlib\)"),
        ("stdlb", {}, "did you mean 'stdlib'"),
        ([tmp_path / "a_b.csv"], {}, "no such file: .*a_b.csv"),
        ([table, table], {}, "are the same table"),
        (tmp_path / "g", {"config": tmp_path / "none.toml"}, "no such file: .*none.toml"),
        (3, {}, "cannot load a graph from int"),
        *((address, {}, f"^{address} is a web address, .*curl -LO {address}") for address in (
            "https://example.org/x.csv", "http://example.org/a/b.zip", "HTTPS://example.org/x.csv"
        )),
    ):  # fmt: skip
        with pytest.raises(NeuPathError, match=message):
            npth.load(source, **options)


@contextmanager
def as_nobody() -> Iterator[None]:
    """Be a user without rights, as root may read everything."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.parametrize("closed", ["a_b.csv", "."])
def test_no_read_permission(closed: str) -> None:
    with TemporaryDirectory() as root:
        Path(root).chmod(0o755)
        folder = write(Path(root) / "g", a_b__csv="a_id,b_id\n1,2\n")
        npth.load(folder)  # what is imported on first use is imported now
        (folder / closed).chmod(0)
        with as_nobody(), pytest.raises(NeuPathError, match=f"no permission to read .*g/?{closed.strip('.')}"):
            npth.load(folder)
        (folder / closed).chmod(0o755)


def test_an_export_of_neo4j_may_be_one_file_or_several(tmp_path: Path) -> None:
    """As of apoc.export.csv; `place` names the line of the file, and `import` reads it as `load` does."""
    header, nodes = '"_id","_labels","name","_start","_end","_type"\n', '"0",":Person","Ann",,,\n"1",,"Heat",,,\n'
    edges = ',,,"0","1","ACTED_IN"\n'
    one = write(tmp_path / "one", export__csv=header + nodes + edges) / "export.csv"
    several = write(tmp_path / "several", nodes__csv=header + nodes, edges__csv=header + edges, other__csv="a,b\n1,2\n")
    graphs = [npth.load(one), npth.load(one.parent), npth.load(several)]
    graphs.append(npth.load(npth.io.import_store(several, tmp_path / "s.neupath")))
    for hin in graphs:
        assert [str(relation) for relation in hin.schema.relations] == ["Person -ACTED_IN-> node"]
        assert hin.nodes["node"].names.to_pylist() == ["Heat"]
    assert "other.csv was left out: the graph is read from edges.csv" in graphs[2].notes
    lost = {"export__csv": header + nodes + edges + ',,,"0","7","ACTED_IN"\n'}
    check_read(one.parent, lost, "export.csv, line 5: the edge leads to node '?7")


# ---- Folders of Parquet parts --------------------------------------------------------------------
SPARK = ("part-00000-a1b2c3d4-c000.snappy.parquet", "part-00001-a1b2c3d4-c000.snappy.parquet")


def spread(names: tuple[str, ...], table: dict[str, list]) -> dict[str, dict[str, list]]:
    """Return parts of these names that hold the rows of a table in turn."""
    return {name: {c: v[number :: len(names)] for c, v in table.items()} for number, name in enumerate(names)}


@pytest.mark.parametrize(
    "names",
    [
        SPARK,
        ("part.0.parquet", "part.1.parquet"),
        ("data_0.parquet", "data_1.parquet"),
        ("000000000000.parquet", "000000000001.parquet"),
        ("1c0ffee0-0.parquet",),
        ("year=1998/part-0.parquet", "year=1999/part-0.parquet"),
    ],
)
@pytest.mark.parametrize("name", ["user_movie", "ratings", "ratings.parquet"])
def test_a_folder_of_parts_alone_is_one_table(tmp_path: Path, name: str, names: tuple[str, ...]) -> None:
    rated = {"userId": [1, 1, 2], "movieId": [10, 20, 20], "rating": [4.0, 3.5, 5.0]}
    folder, expected = tmp_path / name, {f"user -{name.removesuffix('.parquet')}-> movie": 3}
    hin = check_read(folder, spread(names, rated) | {"_SUCCESS": ""}, expected)
    assert npth.load(f"{folder}/").notes == hin.notes
    described = draft_of(str(folder)).to_toml()
    check_read(folder, {"graph__toml": described}, expected)
    assert not any(Path(name).name in described for name in names)


def test_a_folder_of_parts_that_is_not_recognised_gets_a_graph_toml(tmp_path: Path) -> None:
    parts = spread(SPARK, {"alpha": ["x", "y"], "beta": ["z", "z"]})
    refused = check_read(tmp_path / "stuff", parts, "stuff is not recognised")
    proposed = {"graph__toml": str(refused).partition("such as:\n")[2]}
    check_read(tmp_path / "stuff", proposed, {"alpha -alpha_beta-> beta": 2})


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_pivot_table_beside_the_nodes_of_its_header_is_refused_with_what_reads_it(
    tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pandas = pytest.importorskip("pandas")
    folder = write(tmp_path / "g", items__csv="item_id,price\ntea,2\ncup,3\npen,1\n", users__csv="user_id\nann\nbob\n")
    table = pandas.DataFrame({"u": ["ann", "bob"], "tea": [2, 0], "cup": [1, 0], "pen": [0, 4]})
    getattr(table, f"to_{suffix}")(folder / f"user_item.{suffix}", index=False)
    refused = check_read(folder, {}, r"its header holds nodes \(tea, cup, pen\), and the cells below")
    line = str(refused).partition("with ")[2].partition(", and in graph.toml")[0]
    monkeypatch.chdir(folder)
    eval(line, {"pandas": pandas})
    (folder / f"user_item.{suffix}").unlink()
    check_read(folder, {}, {"user -user_item_edges-> item": 3})
