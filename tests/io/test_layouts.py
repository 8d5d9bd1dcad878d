"""Graphs as other people ship them: what a folder's files are is told by their names where their headers do not."""

from pathlib import Path

import pytest

import neupath as npth
from tests.tables import shape, write


def test_texts_are_cut_at_tabs_though_every_title_has_a_comma(tmp_path: Path) -> None:
    papers = "1\tGraphs, again\n2\tTrees, at last\n"
    hin = npth.load(write(tmp_path / "g", paper__txt=papers, paper_author__txt="1\t7\n2\t7\n"))
    assert npth.PathSim("PAP").fit(hin).top_k("Graphs, again").names == ("Trees, at last",)


def test_dat_files_are_tables(tmp_path: Path) -> None:
    files = {
        "user_artists__dat": "userID\tartistID\tweight\r\n2\t51\t13883\r\n",
        "artists__dat": "id\tname\n51\tDuran Duran\n",
    }
    hin = npth.load(write(tmp_path / "g", **files))
    assert shape(hin) == {"user -user_artists-> artist": 1}
    assert hin.nodes["artist"].name(0) == "Duran Duran"


@pytest.mark.parametrize(
    ("files", "relations"),
    [
        ({"paper_cites_paper__csv": "citing,cited\n1,2\n"}, {"paper -cites-> paper": 1}),
        ({"user_follows_user__csv": "user,followee\na,b\n"}, {"user -follows-> user": 1}),
        ({"user_friend_user__csv": "user1,user2\na,b\n"}, {"user -friend-> user": 1}),
        ({"paper_cites__csv": "paper_id,cited_paper_id\n1,2\n"}, {"paper -cites-> paper": 1}),
        ({"user_item__csv": "u,i\na,x\n"}, {"user -user_item-> item": 1}),
        ({"drug_gene__tsv": "#Drug\tGene\nd\tg\n"}, {"Drug -drug_gene-> Gene": 1}),
        (
            {"author_writes_paper__csv": "person,text\na,p\n", "authors__csv": "id\na\n", "papers__csv": "id\np\n"},
            {"author -writes-> paper": 1},
        ),
        (
            {"field_of_study__csv": "id,name\n1,Maths\n", "paper_has_topic_field_of_study__csv": "src,dst\np,1\n"},
            {"paper -has_topic-> field_of_study": 1},
        ),
        (
            {"fields_of_study__csv": "field_of_study_id\n1\n", "paper_field__csv": "paper_id,field_of_study_id\np,1\n"},
            {"paper -paper_field-> field_of_study": 1},
        ),
        (
            {"paper_author__txt": "1\t2\n", "id_author__txt": "2\tAnn\n3\tBob\n", "id_paper__txt": "1\tOn graphs\n"},
            {"paper -paper_author-> author": 1},
        ),
        ({"papers_authors__txt": "1\t2\n", "paper__csv": "paper_id\n1\n"}, {"paper -papers_authors-> authors": 1}),
    ],
)
def test_names_say_which_types_a_table_joins(tmp_path: Path, files: dict[str, str], relations: dict[str, int]) -> None:
    hin = npth.load(write(tmp_path / "g", **files))
    assert shape(hin) == relations
    assert not hin.notes


def test_columns_that_say_something_else_are_believed(tmp_path: Path) -> None:
    cast = {"movie_actor__csv": "movie,person\nm,a\n", "movies__csv": "movie_id,title\nm,Heat\n"}
    assert shape(npth.load(write(tmp_path / "g", **cast))) == {"movie -actor-> person": 1}
    facts = {"movie_metadata__csv": "colour,director\nred,x\n", "movie_actor__csv": "movie,actor\nm,a\n"}
    assert len(npth.load(write(tmp_path / "h", **facts)).notes) == 1


def test_the_row_numbers_of_data_frames_are_no_ids(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pandas.DataFrame({"movie": ["m1", "m2"], "actor": ["a", "a"]}).to_csv(tmp_path / "movie_actor.csv")
    (tmp_path / "movies.csv").write_text('"","movie_id","name"\n"1","m1","Heat"\n"2","m2","Up"\n')
    genres = pandas.DataFrame({"movie": ["m1", "m2"], "genre": ["war", "war"]}, index=[5, 3])
    genres.to_parquet(tmp_path / "movie_genre.parquet")
    hin = npth.load(tmp_path)
    assert sorted(shape(hin)) == ["movie -movie_actor-> actor", "movie -movie_genre-> genre"]
    assert npth.PathSim("MAM").fit(hin).top_k("Heat").names == ("Up",)
    (tmp_path / "movie_actor.csv").write_text(",movie,actor\n0,m1,a\n1,m2,a,b\n")
    with pytest.raises(
        npth.NeuPathError, match=r"line 3: expected 3 columns as in the header \(, movie, actor\), got 4"
    ):
        npth.load(tmp_path)


@pytest.mark.parametrize(
    ("nodes", "edges"),
    [
        ("personId:ID(P),name:string,:LABEL\n1,Ann,Person\n2,Heat,Film\n", ":START_ID(P),:END_ID(P),:TYPE\n1,2,IN\n"),
        ("id,label,name\n1,Person,Ann\n2,Film,Heat\n", "start,end,type\n1,2,IN\n"),
    ],
)
def test_tables_of_a_property_graph(tmp_path: Path, nodes: str, edges: str) -> None:
    hin = npth.load(write(tmp_path / "g", nodes__csv=nodes, relationships__csv=edges))
    assert shape(hin) == {"Person -IN-> Film": 1}
    assert hin.nodes["Film"].ids.to_pylist() == [2]


def test_one_file_of_two_columns_is_a_relation_by_its_name_or_by_graph_toml(tmp_path: Path) -> None:
    folder = write(tmp_path / "g", paper_author__txt="1\t7\n2\t7\n", likes__csv="a,b\nann,x\n")
    assert shape(npth.load(folder / "paper_author.txt")) == {"paper -paper_author-> author": 2}
    with pytest.raises(npth.NeuPathError, match=r"likes.csv has 2 columns .*, but triples have three: .* a graph.toml"):
        npth.load(folder / "likes.csv")
    (folder / "likes.toml").write_text('[[edges]]\nname = "likes"\nfile = "likes.csv"\nsource = "u"\ntarget = "i"\n')
    assert list(shape(npth.load(folder / "likes.csv", config=folder / "likes.toml"))) == ["u -likes-> i"]


def test_columns_that_are_not_read_are_noted(tmp_path: Path) -> None:
    ratings = "userId,movieId,rating,timestamp\n1,10,4.0,0\n"
    folder = write(tmp_path / "g", ratings__csv=ratings, user_item__txt="1\t2\t3\n")
    assert npth.load(folder).notes == (
        "ratings.csv: the columns rating, timestamp were left out; if one is the weight, name it in graph.toml",
        "user_item.txt: the column 3 was left out; if one is the weight, name it in graph.toml",
    )
    (folder / "graph.toml").write_text(
        'ignore = ["user*"]\n[[edges]]\nname = "rates"\nfile = "ratings.csv"\nsource = "user"\ntarget = "movie"\n'
        'weight = "rating"\n'
    )
    assert npth.load(folder).notes == ("ratings.csv: the column timestamp was left out",)


def test_files_of_any_name_may_be_named(tmp_path: Path) -> None:
    folder = write(tmp_path / "g", u__data="1\t2\t3\n", u__item="2|Heat\n")
    with pytest.raises(npth.NeuPathError, match=r"g has no tables \(it has u.data, u.item\); .* in graph.toml"):
        npth.load(folder)
    (folder / "graph.toml").write_text(
        '[[edges]]\nname = "rates"\nfile = "u.data"\nsource = "user"\ntarget = "movie"\nweight = "3"\n'
        '[nodes.movie]\nfile = "u.item"\nid = "1"\n'
    )
    hin = npth.load(folder)
    assert hin.matrices[npth.Relation("user", "rates", "movie")].data.tolist() == [3.0]
    assert hin.nodes["movie"].name(0) == "Heat"


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"a_b__dat": "1::2::5\n1::3::5\n"}, "a_b.dat has '::' between its columns, .* replace it by tabs"),
        ({"a_b__csv": "a_id,b_id\n1,2\n".encode("utf-16")}, "a_b.csv is UTF-16 text; .* iconv -f UTF-16 -t UTF-8"),
        ({"a_b__csv": "a_id;b_id;weight\n1;2;0,5\n"}, "weight '0,5' is not allowed; .*, with a point and no comma"),
    ],
)
def test_what_is_said_of_tables_written_otherwise(tmp_path: Path, files: dict[str, str | bytes], message: str) -> None:
    with pytest.raises(npth.NeuPathError, match=message):
        npth.load(write(tmp_path / "g", **files))


def test_colons_in_ids_are_no_delimiter(tmp_path: Path) -> None:
    triples = "Gene::1\tGiG::x\tGene::2\nGene::2\tGiG::x\tGene::3\n"
    assert shape(npth.load(write(tmp_path / "g", kg__tsv=triples) / "kg.tsv")) == {"entity -GiG::x-> entity": 2}


def test_a_weight_may_have_a_plus(tmp_path: Path) -> None:
    hin = npth.load(write(tmp_path / "g", a_b__csv="a_id,b_id,weight\n1,2,+1.5\n"))
    assert hin.matrices[npth.Relation("a", "a_b", "b")].data.tolist() == [1.5]


def test_a_lone_table_of_triples_in_a_folder(tmp_path: Path) -> None:
    folder = write(tmp_path / "g", kg__tsv="head\trelation\ttail\na\tknows\tb\n")
    assert shape(npth.load(folder)) == {"entity -knows-> entity": 1}


def test_foreign_keys_are_relations_where_graph_toml_says_so(tmp_path: Path) -> None:
    movies = "id,title,director_id\n1,Heat,7\n2,Ali,7\n"
    folder = write(tmp_path / "g", movies__csv=movies, directors__csv="id,name\n7,Mann\n")
    with pytest.raises(npth.NeuPathError, match=r"directors.csv, movies.csv hold nodes; .* \[\[edges\]\] in graph"):
        npth.load(folder)
    (folder / "graph.toml").write_text(
        '[nodes.movie]\nfile = "movies.csv"\n[[edges]]\nname = "directed"\nfile = "movies.csv"\nsource = "movie"\n'
        'target = "director"\ncolumns = ["id", "director_id"]\n'
    )
    hin = npth.load(folder)
    assert npth.PathSim("MDM").fit(hin).top_k("Heat").names == ("Ali",)
    assert hin.nodes["director"].name(0) == "Mann"
    assert not hin.notes


@pytest.mark.parametrize("header", ["", "user_id\titem_id\tweight\n"])
def test_comments_above_a_table_are_skipped(tmp_path: Path, header: str) -> None:
    text = '# Directed graph: "users" and items\n#\n\n% 2019\n' + header + "#1\tx\t1\n#2\tx\t1\n"
    folder = write(tmp_path / "g", user_item__txt=text)
    hin = npth.load(folder)
    assert hin.nodes["user"].ids.to_pylist() == ["#1", "#2"]
    (folder / "user_item.txt").write_text(text + "#3\n")
    with pytest.raises(npth.NeuPathError, match=rf"line {7 + bool(header)}: expected 3 columns .*, got 1"):
        npth.load(folder)
