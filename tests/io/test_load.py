"""Folders of tables: detection, graph.toml, and errors in bad folders."""

import gzip
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import neupath as npth
from neupath import HIN, NeuPathError
from neupath.graph.hin import Edges
from neupath.graph.metapath import Relation
from neupath.graph.nodes import Nodes
from neupath.io import write_folder
from neupath.io.draft import draft_of
from tests.tables import CAST, HOSTILE_TEXTS, MOVIES, shape, write


def test_one_file_per_relation_with_node_files(tmp_path: Path) -> None:
    hin = npth.load(
        write(tmp_path / "g", movies__tsv=MOVIES, movie_actor__tsv__gz=CAST, movie_genre__csv="movie_id,genre\n1,War\n")
    )
    assert shape(hin) == {"movie -movie_actor-> actor": 3, "movie -movie_genre-> genre": 1}
    movies = hin.nodes["movie"]
    assert movies.ids.to_pylist() == [1, 2, 3]
    assert movies.names is not None
    assert movies.names.to_pylist() == ["Avatar", "Heat", "Up"]
    assert movies.attributes.to_pydict() == {"year": [2009, None, 2009]}
    assert npth.PathSim("MAM").fit(hin).top_k("Avatar").ids == (2,)


def test_nodes_and_edges(tmp_path: Path) -> None:
    nodes = "id\tname\tkind\nG::1\tABC\tGene\nG::2\tXYZ\tGene\nD::1\tflu\tDisease\n"
    edges = "source\tmetaedge\ttarget\tscore\nD::1\tDaG\tG::1\t0.5\nG::1\tGiG\tG::2\t1\nD::1\tGiG\tG::2\t1\n"
    folder = write(tmp_path / "g", nodes__tsv=nodes, edges__tsv=edges, metaedges__tsv="x\ty\n1\t2\n")
    hin = npth.load(folder)
    assert shape(hin) == {"Disease -DaG-> Gene": 1, "Disease -GiG-> Gene": 1, "Gene -GiG-> Gene": 1}
    assert hin.notes == (
        "metaedges.tsv was left out: the graph is read from nodes.tsv and edges.tsv",
        'edges.tsv: score is an attribute of edges, and each edge weighs 1; weight = "score" under [pair] in '
        'graph.toml would make score the weight, and attributes = ["score"] there keeps it 1',
    )
    assert hin.edge_tables[Relation("Disease", "DaG", "Gene")].attributes.to_pydict() == {"score": [0.5]}
    (folder / "graph.toml").write_text('undirected = ["GiG"]\n[pair]\nweight = "score"\n')
    reloaded = npth.load(folder)
    assert reloaded.matrices[Relation("Disease", "DaG", "Gene")].data.tolist() == [0.5]
    assert reloaded.edge_tables[Relation("Disease", "DaG", "Gene")].attributes.to_pydict() == {"score": [0.5]}
    assert reloaded.matrices[Relation("Gene", "GiG", "Gene", directed=False)].nnz == 2
    other = tmp_path / "other.toml"
    other.write_text('take = ["DaG"]\n')
    assert shape(npth.load(folder, config=other)) == {"Disease -DaG-> Gene": 1}


LAYOUTS: dict[str, tuple[dict[str, str | bytes], dict[str, int], dict[str, list[object]]]] = {
    "a relation's name in the file's": (
        {"author_writes_paper__csv": "source,target\na,p\n"}, {"author -writes-> paper": 1}, {}
    ),
    "user2item": ({"user2item__csv": "user_id,item_id\na,p\n"}, {"user -user2item-> item": 1}, {}),
    "a list of edges": ({"user_item__txt": "1 2\n1 3\n"}, {"user -user_item-> item": 2}, {}),
    "a hyphen": ({"user-item__tsv": "src\tdst\na\tb\n"}, {"user -user-item-> item": 1}, {}),
    "capitals": ({"User_Item__csv": "UserID;ItemID\n1;2\n"}, {"User -User_Item-> Item": 1}, {}),
    "no headers": (
        {"paper_author__txt": "7\t1\n8\t1\n", "author__txt": "1\tAnn\n2\tBob\n"},
        {"paper -paper_author-> author": 2}, {"author": [1, 2]},
    ),
    "a plural": (
        {"companies__csv": "id,name\nc1,Acme\n", "person_company__csv": "person_id,company_id\np1,c1\n"},
        {"person -person_company-> company": 1}, {"company": ["c1"]},
    ),
    "headers whose words are cells too": (
        {"movies__tsv": "id\tname\tkind\n1\tname\tx\n", "movie_actor__tsv": "movie\tactor\n1\tmovie\n"},
        {"movie -movie_actor-> actor": 1}, {"movie": [1], "actor": ["movie"]},
    ),
    "blank lines above": (
        {"movie_actor__csv": "\r\n  \nmovie_id,actor_id\r\nm1,a1\r\nm2,a1\r\n"},
        {"movie -movie_actor-> actor": 2}, {"movie": ["m1", "m2"]},
    ),
    "two id columns, whatever the file is called": (
        {"ratings__csv": "userId,movieId,rating\n1,10,4.0\n", "movies__csv": "movieId,title\n10,Up\n"},
        {"user -ratings-> movie": 1}, {},
    ),
    "files that are no tables": (
        {"README__txt": "the data the paper", "LICENSE__txt": "", "movie_actor__tsv": CAST},
        {"movie -movie_actor-> actor": 3}, {},
    ),
    "edges alone": ({"edges__csv": "source,relation,target\na,likes,b\n"}, {"entity -likes-> entity": 1}, {}),
    "Gephi": (
        {"nodes__csv": "Id,Label\na,Ann\nb,Bob\n", "edges__csv": "Source,Target,Type\na,b,Undirected\n"},
        {"node -edge- node": 2}, {},
    ),
    "a long cell": ({"a_b__csv": f"a_id,b_id\nx,{'y' * 200_000}\n"}, {"a -a_b-> b": 1}, {}),
    "a byte-order mark and quotes": (
        {"movie_genre__csv": b'\xef\xbb\xbfmovie_id,genre\r\n"1","War, ""Cold"""\r\n\r\n"2","A\nB"\r\n'},
        {"movie -movie_genre-> genre": 2}, {"genre": ['War, "Cold"', "A\nB"]},
    ),
    "quotes between tabs": (
        {"movie_genre__tsv": 'movie_id\tgenre\n1\tsays "hi"\n'},
        {"movie -movie_genre-> genre": 1}, {"genre": ['says "hi"']},
    ),
    "ids that are numbers, and some that are not": (
        {"a_b__csv": "a_id,b_id\n007,12\n8,-3\n"}, {"a -a_b-> b": 2}, {"a": ["007", "8"], "b": [12, -3]}
    ),
    "words that are missing values elsewhere": (
        {"a_b__csv": "a_id,b_id\n1,nan\n2,NULL\n"}, {"a -a_b-> b": 2}, {"b": ["nan", "NULL"]}
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", list(LAYOUTS))
def test_layouts_of_folders(tmp_path: Path, case: str) -> None:
    files, relations, ids = LAYOUTS[case]
    hin = npth.load(write(tmp_path / "g", **files))
    assert shape(hin) == relations
    assert {name: hin.nodes[name].ids.to_pylist() for name in ids} == ids


def test_upper_case_suffixes(tmp_path: Path) -> None:
    folder = write(tmp_path / "g", MOVIES__TSV=MOVIES.replace("movie_id", "MOVIE_ID"), MOVIE_ACTOR__TXT="1\t7\n2\t7\n")
    (folder / "MOVIE_GENRE.CSV.GZ").write_bytes(gzip.compress(b"movie_id,genre\n1,War\n"))
    hin = npth.load(folder)
    assert sorted(shape(hin)) == ["MOVIE -MOVIE_ACTOR-> ACTOR", "MOVIE -MOVIE_GENRE-> genre"]
    assert hin.nodes["MOVIE"].names is not None


def test_odd_parquet_columns(tmp_path: Path) -> None:
    (tmp_path / "g").mkdir()
    table = pa.table({"a_id": pa.array(["x", "y"]).dictionary_encode(), "b_id": pa.array([1, 2], pa.int32())})
    pq.write_table(table, tmp_path / "g" / "a_b.parquet")
    assert npth.load(tmp_path / "g").nodes["b"].ids.to_pylist() == [1, 2]
    pq.write_table(pa.table({"a_id": [["x"]], "b_id": [1]}), tmp_path / "g" / "a_b.parquet")
    with pytest.raises(NeuPathError, match=r"a_b.parquet cannot be read"):
        npth.load(tmp_path / "g")


def test_graph_toml_names_what_cannot_be_detected(tmp_path: Path) -> None:
    folder = write(
        tmp_path / "g",
        cast__csv="minutes;who;what\n10;ann;up\n20;bob;up\n",
        films__csv="title;key;seen\nUp;up;1\n",
        junk_data__csv="a;b\n1;2\n",
        graph__toml="""
            delimiter = ";"
            ignore = ["junk*"]
            [abbreviations]
            F = "movie"
            [nodes.movie]
            file = "films.csv"
            id = "key"
            name = "title"
            attributes = []
            [[edges]]
            name = "acts_in"
            file = "cast.csv"
            source = "actor"
            target = "movie"
            columns = ["who", "what"]
            weight = "minutes"
        """,
    )
    hin = npth.load(folder)
    assert shape(hin) == {"actor -acts_in-> movie": 2}
    assert hin.matrices[Relation("actor", "acts_in", "movie")].data.tolist() == [10, 20]
    assert hin.nodes["movie"].attributes.column_names == []
    assert str(hin.metapath("AFA")) == "actor-movie-actor"


def test_writing_keeps_ids_that_look_like_numbers_and_attributes_that_look_like_names(tmp_path: Path) -> None:
    nodes = Nodes("a", pa.array(["1", "2"]), None, pa.table({"title": ["x", "y"]}))
    edges = Edges(Relation("a", "r", "a"), np.array([0]), np.array([1]))
    reloaded = npth.load(write_folder(HIN.build([nodes], [edges]), str(tmp_path / "out")))
    assert reloaded.nodes["a"].ids.to_pylist() == ["1", "2"]
    assert reloaded.nodes["a"].names is None
    assert reloaded.nodes["a"].attributes.column_names == ["title"]


def test_writing_keeps_names_attributes_and_never_overwrites(tmp_path: Path) -> None:
    hin = npth.load(write(tmp_path / "g", movies__tsv=MOVIES + "4\tÄ\t1\n", movie_actor__tsv=CAST))
    folder = write_folder(hin, tmp_path / "out")
    reloaded = npth.load(folder)
    assert reloaded.nodes["movie"].attributes.equals(hin.nodes["movie"].attributes)
    assert reloaded.nodes["movie"].names == hin.nodes["movie"].names
    with pytest.raises(NeuPathError, match="exists already; give a new folder"):
        write_folder(hin, folder)


@pytest.mark.parametrize("text", HOSTILE_TEXTS)
def test_writing_keeps_names_of_any_characters(tmp_path: Path, text: str) -> None:
    first, second = f"a{text}a", f"b{text}b"
    own = "weigh" if text == "weight" else text  # edges have no attribute of that name
    nodes = [
        Nodes(
            first,
            pa.array([text, "x"]),
            pa.array([f"n{text}", None]),
            pa.table({text: [1, 2], f"{text}2": ["p", text]}),
        ),
        Nodes(second, pa.array([7, 8])),
    ]
    relations = Relation(first, f"q{text}q", second), Relation(first, f"r{text}r", first, directed=False)
    ends = np.array([0, 1]), np.array([1, 0])
    edges = [
        Edges(relations[0], *ends, np.array([2.0, 3.0]), pa.table({own: [5, 6]})),
        Edges(relations[1], *ends),
    ]
    hin = HIN.build(nodes, edges)
    again = npth.load(write_folder(hin, tmp_path / "saved"))
    assert again.schema == hin.schema
    assert again.nodes[first].attributes.to_pydict() == hin.nodes[first].attributes.to_pydict()
    for node_type in (first, second):
        assert again.nodes[node_type].ids.to_pylist() == hin.nodes[node_type].ids.to_pylist()
    assert again.nodes[first].names.to_pylist() == [f"n{text}", None]
    assert again.edge_tables[relations[0]].attributes.to_pydict() == {own: [5, 6]}
    for relation in relations:
        assert (again.matrices[relation] != hin.matrices[relation]).nnz == 0


def test_truncated_and_false_gzip(tmp_path: Path) -> None:
    folder = write(tmp_path / "g", movie_actor__tsv__gz=CAST * 500)
    path = folder / "movie_actor.tsv.gz"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(NeuPathError, match=r"movie_actor.tsv.gz .*(damaged gzip|cut short)"):
        npth.load(folder)
    path.write_bytes(CAST.encode())
    with pytest.raises(NeuPathError, match=r"movie_actor.tsv.gz is named .gz but is not gzipped"):
        npth.load(folder)


def test_missing_things(tmp_path: Path) -> None:
    with pytest.raises(
        NeuPathError, match=r"no such file or folder: .*nowhere \(the built-in graphs are toy, stdlib\)"
    ):
        npth.load(tmp_path / "nowhere")
    with pytest.raises(NeuPathError, match="did you mean 'stdlib'"):
        npth.load("stdlb")
    with pytest.raises(NeuPathError, match="no such file: .*a_b.csv"):
        npth.load([tmp_path / "a_b.csv"])
    folder = write(tmp_path / "g", a_b__csv="a_id,b_id\n1,2\n", notes__doc="x")
    assert shape(npth.load([folder / "a_b.csv"])) == {"a -a_b-> b": 1}
    with pytest.raises(NeuPathError, match="are the same table"):
        npth.load([folder / "a_b.csv", folder / "a_b.csv"])
    with pytest.raises(NeuPathError, match="notes.doc is not a graph that neupath can read"):
        npth.load(folder / "notes.doc")
    with pytest.raises(NeuPathError, match="no such file: .*none.toml"):
        npth.load(folder, config=tmp_path / "none.toml")
    with pytest.raises(NeuPathError, match="cannot load a graph from int"):
        npth.load(3)


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


def parts(folder: Path, *tables: dict[str, list]) -> Path:
    """Write the parts of a table."""
    folder.mkdir(parents=True)
    for number, columns in enumerate(tables):
        pq.write_table(pa.table(columns), folder / f"part-{number:02}.parquet")
    return folder


def test_a_table_may_be_a_folder_of_parts(tmp_path: Path) -> None:
    whole = {"movie_id": [3, 1, 2, 1], "actor_id": ["b", "a", "b", "c"], "weight": [0.5, 2.0, 1.0, 3.0]}
    table = parts(tmp_path / "g" / "movie_actor", *({n: c[a:b] for n, c in whole.items()} for a, b in ((0, 1), (1, 4))))
    (table / "_SUCCESS").write_text("")
    (table / "_metadata.parquet").write_text("not a part")
    parts(
        tmp_path / "g" / "movies.parquet", {"movie_id": [1, 2], "title": ["x", "y"]}, {"movie_id": [3], "title": ["z"]}
    )
    hin = npth.load(tmp_path / "g")
    assert hin.nodes["movie"].ids.to_pylist() == [1, 2, 3]
    assert hin.nodes["actor"].ids.to_pylist() == ["b", "a", "c"]
    (relation,) = hin.schema.relations
    assert (hin.matrices[relation].toarray() == [[0, 2, 3], [1, 0, 0], [0.5, 0, 0]]).all()


def test_parts_may_lie_in_folders_that_are_named_for_a_value(tmp_path: Path) -> None:
    table = tmp_path / "g" / "movie_actor"
    parts(table / "year=2021" / "month=1", {"movie_id": [3], "actor_id": ["c"]})
    parts(
        table / "year=2020" / "month=2",
        {"movie_id": [1, 2], "actor_id": ["a", "b"]},
        {"movie_id": [1], "actor_id": ["d"]},
    )
    parts(table / "year=2020" / "_temporary", {"movie_id": [9], "actor_id": ["x"]})
    hin = npth.load(tmp_path / "g")
    assert hin.nodes["movie"].ids.to_pylist() == [1, 2, 3]
    assert hin.nodes["actor"].ids.to_pylist() == ["a", "b", "d", "c"]
    assert hin.notes == ("movie_actor is partitioned into folders by month, year: folder names are not read",)


def test_an_id_column_cannot_be_a_folder_name(tmp_path: Path) -> None:
    table = tmp_path / "g" / "movie_actor"
    parts(table / "actor_id=7", {"movie_id": [3], "weight": [0.5]})
    with pytest.raises(NeuPathError, match="movie_actor is partitioned into folders by actor_id, and folder names are"):
        npth.load(tmp_path / "g")
    parts(table / "actor_id=8", {"movie_id": [3], "actor_id": [8]})
    (table / "actor_id=7" / "part-00.parquet").unlink()
    assert npth.load(tmp_path / "g").notes == ()


def test_parts_that_lie_too_deep_are_noted(tmp_path: Path) -> None:
    table = parts(tmp_path / "g" / "movie_actor", {"movie_id": [1], "actor_id": ["a"]})
    parts(table / "2020", {"movie_id": [2], "actor_id": ["b"]})
    (table / "docs").mkdir()
    assert npth.load(tmp_path / "g").notes == (
        "movie_actor/2020 was left out: the parts of a table must be in its folder, or in folders such as year=2020",
    )
    (tmp_path / "g" / "graph.toml").write_text('ignore = ["movie_a*"]')
    parts(tmp_path / "g" / "movie_genre", {"movie_id": [1], "genre_id": ["a"]})
    assert npth.load(tmp_path / "g").notes == ()


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ({"movie_id": [9], "actor_id": ["a"]}, "part-01.parquet, row 1: the edge leads to movie 9, which is not in"),
        ({"movie_id": ["1"], "actor_id": ["a"]}, "part-01.parquet has other column types \\(movie_id: string"),
        ({"movie_id": [1], "who": ["a"]}, "part-01.parquet has no column 'actor_id' \\(it has movie_id, who\\)"),
        ({"movie_id": [1], "actor_id": ["a"], "weight": [2.0]}, "has a column 'weight', but part-00.parquet has none"),
        ({"movie_id": [[1]], "actor_id": ["a"]}, "part-01.parquet cannot be read: Unsupported cast from list"),
    ],
)
def test_bad_parts(tmp_path: Path, second: dict[str, list], message: str) -> None:
    parts(tmp_path / "g" / "movie_actor", {"movie_id": [1, 1], "actor_id": ["a", "b"]}, second)
    parts(tmp_path / "g" / "movies", {"movie_id": [1]})
    with pytest.raises(NeuPathError, match=message):
        npth.load(tmp_path / "g")


@pytest.mark.parametrize(
    ("name", "message"),
    [("part-99", "part-99.parquet is named .parquet but is not"), ("a", "a.parquet is named .parquet but is not")],
)
def test_a_part_that_is_not_parquet(tmp_path: Path, name: str, message: str) -> None:
    table = parts(tmp_path / "g" / "movie_actor", {"movie_id": [1, 1], "actor_id": ["a", "b"]})
    (table / f"{name}.parquet").write_text("movie_id,actor_id\n")
    with pytest.raises(NeuPathError, match=message):
        npth.load(tmp_path / "g")


@pytest.mark.parametrize("name", ["backup", "train", "results"])
def test_other_folders_next_to_tables_are_not_tables(tmp_path: Path, name: str) -> None:
    folder = write(tmp_path / "g", movie_actor__tsv=CAST)
    parts(folder / name, {"movie_id": [1], "actor_id": [7], "score": [0.5]}, {"actor_id": [7], "name": ["Ann"]})
    hin = npth.load(folder)
    assert shape(hin) == {"movie -movie_actor-> actor": 3}
    assert hin.notes[0].startswith(f"{name} was left out")


@pytest.mark.parametrize("file", ["movie_actor/", "movie_actor", "movie_actor/part-00.parquet"])
def test_a_table_that_graph_toml_names_is_read_once(tmp_path: Path, file: str) -> None:
    parts(tmp_path / "g" / "movie_actor", {"movie_id": [1, 1], "actor_id": ["a", "b"]})
    write(
        tmp_path / "g",
        graph__toml=f'[[edges]]\nname = "cast"\nfile = "{file}"\nsource = "movie"\ntarget = "actor"\n',
    )
    assert shape(npth.load(tmp_path / "g" / ".." / "g")) == {"movie -cast-> actor": 2}


# ---- Refusals say what works ---------------------------------------------------------------------
@pytest.mark.parametrize(
    ("toml", "hint"),
    [
        ('[node.user]\nfile = "a_b.csv"', r"did you mean \[nodes\.user\]\?"),
        ('[Node.user]\nfile = "a_b.csv"', r"did you mean \[nodes\.user\]\?"),
        ('[edge]\nname = "r"', r"did you mean \[\[edges\]\]\?"),
        ('[[edge]]\nname = "r"', r"did you mean \[\[edges\]\]\?"),
        ('[relation]\nname = "r"', r"can have .*nodes, edges, pair, triples, rdf"),
        ('triple = ["a.csv"]', r"did you mean \[triples\]\?"),
        ('[pairs]\nnodes = "n.csv"', r"did you mean \[pair\]\?"),
    ],
)
def test_a_misspelled_section_of_graph_toml_names_the_right_one(tmp_path: Path, toml: str, hint: str) -> None:
    folder = write(tmp_path / "g", a_b__csv="a_id,b_id\n1,2\n", graph__toml=toml)
    with pytest.raises(NeuPathError, match=f"the top level has no key .*{hint}"):
        npth.load(folder)


@pytest.mark.parametrize(
    ("name", "content", "advice"),
    [
        ("graph.ods", b"PK\x03\x04" + bytes(60), r"is a spreadsheet; .*pandas\.read_excel"),
        ("refs.bib", b"@article{a, title={B}}\n", r"holds BibTeX; .* CSV"),
        ("frame.pkl", b"\x80\x04", r"is a pickle, .*can run code"),
        ("net.net", b"*Vertices 2\n", r"networkx\.read_pajek"),
        ("u.data", b"1\t2\t3\t881250949\n2\t2\t1\t881250949\n", r"rename it to u\.data\.csv"),
        ("list.names", b"a,b,c\n1,2,3\n4,5,6\n", r"rename it to list\.names\.csv"),
        ("pubmed.xml.zip", b"PK", "is packed; unpack it with unzip"),
    ],
)
def test_a_file_of_another_kind_is_refused_with_what_to_do(
    tmp_path: Path, name: str, content: bytes, advice: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(NeuPathError, match=rf"(?s)^\S+{name} .*{advice}") as error:
        npth.load(tmp_path / name)
    assert len(str(error.value)) < 350 + len(str(tmp_path))


def test_a_renamed_text_table_is_read_as_the_refusal_says(tmp_path: Path) -> None:
    table = tmp_path / "user_movie.data"
    table.write_text("user\tmovie\trating\n1\t2\t3\n2\t2\t1\n")
    with pytest.raises(NeuPathError, match=r"rename it to user_movie\.data\.csv"):
        npth.load(table)
    renamed = table.rename(tmp_path / "user_movie.data.csv")
    assert [npth.load(renamed).num_nodes(each) for each in ("user", "movie")] == [2, 1]


def test_a_web_address_is_to_be_downloaded() -> None:
    for address in ("https://example.org/x.csv", "http://example.org/a/b.zip", "HTTPS://example.org/x.csv"):
        with pytest.raises(NeuPathError, match=f"^{address} is a web address, .*curl -LO {address}"):
            npth.load(address)


def test_an_export_of_neo4j_may_be_one_file_or_several(tmp_path: Path) -> None:
    """As of apoc.export.csv; `place` names the line of the file, and `import` reads it as `load` does."""
    header, nodes = '"_id","_labels","name","_start","_end","_type"\n', '"0",":Person","Ann",,,\n"1",,"Heat",,,\n'
    edges = ',,,"0","1","ACTED_IN"\n'
    one = tmp_path / "one" / "export.csv"
    write(one.parent, export__csv=header + nodes + edges)
    several = write(tmp_path / "several", nodes__csv=header + nodes, edges__csv=header + edges, other__csv="a,b\n1,2\n")
    graphs = [npth.load(one), npth.load(one.parent), npth.load(several)]
    graphs.append(npth.load(npth.io.import_store(several, tmp_path / "s.neupath")))
    for hin in graphs:
        assert [str(relation) for relation in hin.schema.relations] == ["Person -ACTED_IN-> node"]
        assert hin.nodes["node"].names.to_pylist() == ["Heat"]
    assert "other.csv was left out: the graph is read from edges.csv" in graphs[2].notes
    one.write_text(header + nodes + edges + ',,,"0","7","ACTED_IN"\n')
    with pytest.raises(NeuPathError, match="export.csv, line 5: the edge leads to node '?7"):
        npth.load(one)


# ---- Folders of Parquet parts --------------------------------------------------------------------
RATED = {"userId": [1, 1, 2], "movieId": [10, 20, 20], "rating": [4.0, 3.5, 5.0]}
SPARK = ("part-00000-a1b2c3d4-c000.snappy.parquet", "part-00001-a1b2c3d4-c000.snappy.parquet")


def spread(folder: Path, names: tuple[str, ...], table: dict[str, list] = RATED) -> Path:
    """Write the rows of a table to parts of these names, in turn."""
    for number, name in enumerate(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({c: v[number :: len(names)] for c, v in table.items()}), folder / name)
    return folder


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
    folder = spread(tmp_path / name, names)
    (folder / "_SUCCESS").write_text("")
    expected = {f"user -{name.removesuffix('.parquet')}-> movie": 3}
    hin = npth.load(folder)
    assert shape(hin) == expected
    assert npth.load(f"{folder}/").notes == hin.notes
    (folder / "graph.toml").write_text(draft_of(str(folder)).to_toml())
    assert shape(npth.load(folder)) == expected
    assert not any(Path(name).name in (folder / "graph.toml").read_text() for name in names)


def test_a_folder_of_parts_that_is_not_recognised_gets_a_graph_toml(tmp_path: Path) -> None:
    folder = spread(tmp_path / "stuff", SPARK, {"alpha": ["x", "y"], "beta": ["z", "z"]})
    with pytest.raises(NeuPathError, match="stuff is not recognised") as error:
        npth.load(folder)
    (tmp_path / "g.toml").write_text(str(error.value).partition("such as:\n")[2])
    assert shape(npth.load(folder, config=tmp_path / "g.toml")) == {"alpha -alpha_beta-> beta": 2}


def test_tables_of_a_folder_are_no_parts(tmp_path: Path) -> None:
    folder = spread(tmp_path / "g", ("movie_actor_1.parquet",), {"movie_id": [1], "actor_id": [7]})
    spread(folder, ("movies.parquet",), {"movie_id": [1], "title": ["Heat"]})
    hin = npth.load(folder)
    assert hin.nodes["movie"].name(0) == "Heat"
    assert len(hin.schema.relations) == 1


# ---- Ids that look empty, and ids that differ only by case or spaces -------------------------------
SOLD = "customer_id,product_id\nann,tea\nbob,NULL\ncem,NULL\nAnn,cup\nann ,(no product given)\n"


def test_ids_that_look_empty_are_noted_with_their_edges_until_graph_toml_says_what_they_are(tmp_path: Path) -> None:
    folder = write(tmp_path / "g", customer_product__csv=SOLD)
    (note,) = [note for note in npth.load(folder).notes if "NULL" in note]
    assert note.startswith("product: the ids 'NULL' (2 edges), '(no product given)' (1 edge) look like empty cells; ")
    listed = '["NULL", "(no product given)"]'
    assert f"missing_ids = {listed} in graph.toml leaves out their rows, and missing_ids = [] keeps them" in note
    write(folder, graph__toml="missing_ids = []")
    assert not [note for note in npth.load(folder).notes if "NULL" in note]
    write(folder, graph__toml=f"missing_ids = {listed}\nfold_ids = false")
    hin = npth.load(folder)
    assert (hin.notes, hin.nodes["customer"].ids.to_pylist(), shape(hin)) == (
        (),
        ["ann", "Ann"],
        {"customer -customer_product-> product": 2},
    )


def test_ids_that_differ_only_by_case_or_spaces_are_noted_once_per_type_and_can_be_made_one(tmp_path: Path) -> None:
    folder = write(tmp_path / "g", customer_product__csv=SOLD, graph__toml="missing_ids = []")
    (note,) = npth.load(folder).notes
    assert note.startswith("customer: 2 ids differ from others only by case or spaces, such as 'ann' and 'Ann'; ")
    assert "fold_ids = true in graph.toml makes them one, and fold_ids = false keeps them apart" in note
    write(folder, graph__toml="missing_ids = []\nfold_ids = false")
    hin = npth.load(folder)
    assert (hin.notes, hin.num_nodes("customer")) == ((), 5)
    write(folder, graph__toml="missing_ids = []\nfold_ids = true")
    hin = npth.load(folder)
    assert (hin.notes, hin.nodes["customer"].ids.to_pylist()) == ((), ["ann", "bob", "cem"])


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


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_pivot_table_beside_the_nodes_of_its_header_is_refused_with_what_reads_it(
    tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pandas = pytest.importorskip("pandas")
    folder = write(tmp_path / "g", items__csv="item_id,price\ntea,2\ncup,3\npen,1\n", users__csv="user_id\nann\nbob\n")
    table = pandas.DataFrame({"u": ["ann", "bob"], "tea": [2, 0], "cup": [1, 0], "pen": [0, 4]})
    getattr(table, f"to_{suffix}")(folder / f"user_item.{suffix}", index=False)
    with pytest.raises(NeuPathError, match=r"its header holds nodes \(tea, cup, pen\), and the cells below") as error:
        npth.load(folder)
    line = str(error.value).partition("with ")[2].partition(", and in graph.toml")[0]
    monkeypatch.chdir(folder)
    eval(line, {"pandas": pandas})
    (folder / f"user_item.{suffix}").unlink()
    assert shape(npth.load(folder)) == {"user -user_item_edges-> item": 3}


def test_a_pivot_table_of_numbers_is_called_a_matrix(tmp_path: Path) -> None:
    folder = write(tmp_path / "g", user_item__csv="u,101,102,205\n1,2,1,0\n2,3,0,0\n3,0,0,1\n")
    for source in (folder, folder / "user_item.csv"):
        with pytest.raises(NeuPathError, match="looks like a matrix, whose columns are nodes"):
            npth.load(source)


def test_attributes_that_are_ids_of_another_type_are_noted_until_graph_toml_says_so(tmp_path: Path) -> None:
    folder = write(
        tmp_path / "g", items__csv="item_id,price\ntea,2\ncup,3\n", users__csv="user_id,tea,cup\nann,2,1\nbob,0,3\n",
        user_item__csv="user_id,item_id\nann,tea\nbob,cup\n",
    )  # fmt: skip
    (note,) = npth.load(folder).notes
    assert note.startswith("users.csv: tea, cup were read as attributes of user, and they are ids of item; ")
    write(folder, graph__toml='[nodes.user]\nfile = "users.csv"\nattributes = ["tea", "cup"]')
    assert npth.load(folder).notes == ()


def test_a_pivot_table_of_marks_is_no_wide_table(tmp_path: Path) -> None:
    folder = write(tmp_path / "g", bought__csv="customer,cup,lamp,tea\nann,x,,x\nbob,,x,x\ncem,x,x,\n")
    with pytest.raises(NeuPathError, match="looks like a matrix, whose columns are nodes"):
        npth.load(folder / "bought.csv")
