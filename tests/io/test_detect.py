"""Detection of types, relations and headers from file and column names, layout by layout."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from scipy.io import savemat

import neupath as npth
from neupath import NeuPathError
from neupath.graph.hin import digest
from neupath.graph.metapath import Relation
from neupath.io import from_triples
from neupath.io.draft import draft_of
from tests.tables import FREEBASE, shape, write


def test_tabs_are_the_delimiter_even_if_titles_have_commas(tmp_path: Path) -> None:
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


def test_column_names_win_over_the_file_name(tmp_path: Path) -> None:
    cast = {"movie_actor__csv": "movie,person\nm,a\n", "movies__csv": "movie_id,title\nm,Heat\n"}
    assert shape(npth.load(write(tmp_path / "g", **cast))) == {"movie -actor-> person": 1}
    facts = {"movie_metadata__csv": "colour,director\nred,x\n", "movie_actor__csv": "movie,actor\nm,a\n"}
    assert len(npth.load(write(tmp_path / "h", **facts)).notes) == 1


def test_row_numbers_of_data_frames_are_not_ids(tmp_path: Path) -> None:
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
    with pytest.raises(npth.NeuPathError, match=r"likes.csv is not recognised: likes.csv has 2 columns .*graph.toml"):
        npth.load(folder / "likes.csv")
    (folder / "likes.toml").write_text('[[edges]]\nname = "likes"\nfile = "likes.csv"\nsource = "u"\ntarget = "i"\n')
    assert list(shape(npth.load(folder / "likes.csv", config=folder / "likes.toml"))) == ["u -likes-> i"]


def test_attributes_that_may_be_the_weight_are_noted(tmp_path: Path) -> None:
    ratings = "userId,movieId,rating,timestamp\n1,10,4.0,0\n"
    folder = write(tmp_path / "g", ratings__csv=ratings, user_item__txt="1\t2\t3\n")
    assert npth.load(folder).notes == (
        "ratings.csv: rating, timestamp are attributes of edges, and each edge weighs 1; "
        'weight = "rating" under [[edges]] in graph.toml would make rating the weight, '
        'and attributes = ["rating", "timestamp"] there keeps it 1',
        "user_item.txt: 3 is an attribute of edges, and each edge weighs 1; "
        'weight = "3" under [[edges]] in graph.toml would make 3 the weight, '
        'and attributes = ["3"] there keeps it 1',
    )
    (folder / "graph.toml").write_text(
        'ignore = ["user*"]\n[[edges]]\nname = "rates"\nfile = "ratings.csv"\nsource = "user"\ntarget = "movie"\n'
        'weight = "rating"\n'
    )
    hin = npth.load(folder)
    assert not hin.notes
    ((relation, table),) = hin.edge_tables.items()
    assert (relation.name, table.weights.tolist()) == ("rates", [4.0])
    assert table.attributes.to_pydict() == {"rating": [4.0], "timestamp": [0]}  # 0 is no plain Unix time


def test_files_of_any_name_may_be_named(tmp_path: Path) -> None:
    folder = write(tmp_path / "g", u__data="1\t2\t3\n", u__item="2|Heat\n")
    with pytest.raises(npth.NeuPathError, match=r"g has no tables \(it has u.data, u.item\); .* in graph.toml"):
        npth.load(folder)
    (folder / "graph.toml").write_text(
        '[[edges]]\nname = "rates"\nfile = "u.data"\nsource = "user"\ntarget = "movie"\nweight = "3"\n'
        '[nodes.movie]\nfile = "u.item"\nid = "1"\n'
    )
    hin = npth.load(folder)
    assert hin.matrices[Relation("user", "rates", "movie")].data.tolist() == [3.0]
    assert hin.nodes["movie"].name(0) == "Heat"


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"a_b__dat": "1::2::5\n1::3::5\n"}, "a_b.dat has '::' between its columns, .* replace it by tabs"),
        ({"a_b__csv": "a_id,b_id\n1,2\n".encode("utf-16")}, "a_b.csv is UTF-16 text; .* iconv -f UTF-16 -t UTF-8"),
        ({"a_b__csv": "a_id;b_id;weight\n1;2;0,5\n"}, "weight '0,5' is not allowed; .*, with a point and no comma"),
    ],
)
def test_notes_on_tables_in_other_layouts(tmp_path: Path, files: dict[str, str | bytes], message: str) -> None:
    with pytest.raises(npth.NeuPathError, match=message):
        npth.load(write(tmp_path / "g", **files))


def test_colons_in_ids_are_not_a_delimiter(tmp_path: Path) -> None:
    triples = "Gene::1\tGiG::x\tGene::2\nGene::2\tGiG::x\tGene::3\n"
    assert shape(npth.load(write(tmp_path / "g", kg__tsv=triples) / "kg.tsv")) == {"Gene -GiG::x-> Gene": 2}


def test_a_weight_may_have_a_plus(tmp_path: Path) -> None:
    hin = npth.load(write(tmp_path / "g", a_b__csv="a_id,b_id,weight\n1,2,+1.5\n"))
    assert hin.matrices[Relation("a", "a_b", "b")].data.tolist() == [1.5]


def test_a_lone_table_of_triples_in_a_folder(tmp_path: Path) -> None:
    folder = write(tmp_path / "g", kg__tsv="head\trelation\ttail\na\tknows\tb\n")
    assert shape(npth.load(folder)) == {"entity -knows-> entity": 1}


def test_foreign_keys_may_have_another_name_in_graph_toml(tmp_path: Path) -> None:
    movies = "id,title,director_id\n1,Heat,7\n2,Ali,7\n"
    folder = write(tmp_path / "g", movies__csv=movies, directors__csv="id,name\n7,Mann\n")
    assert shape(npth.load(folder)) == {"movie -movie_director-> director": 2}
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


def test_a_file_of_triples_without_header(tmp_path: Path) -> None:
    hin = npth.load(write(tmp_path / "g", kg__txt=FREEBASE) / "kg.txt")
    assert shape(hin) == {"entity -/film/actor-> entity": 2, "entity -/film/genre-> entity": 1}
    path = "entity -/film/actor-> entity <-/film/actor- entity"
    assert npth.PathSim(path).fit(hin).top_k("/m/1").ids == ("/m/3",)


def test_train_valid_test_are_one_graph(tmp_path: Path) -> None:
    folder = write(
        tmp_path / "g", train__txt=FREEBASE, valid__txt="/m/9\t/film/actor\t/m/2\n", test__txt="/m/1\tx\t/m/9\n"
    )
    assert shape(npth.load(folder)) == {
        "entity -x-> entity": 1,
        "entity -/film/actor-> entity": 3,
        "entity -/film/genre-> entity": 1,
    }


def test_headers_and_weights(tmp_path: Path) -> None:
    text = "entity1,relation,entity2,weight\na,likes,x,0.5\nb,likes,x,2\n"
    hin = npth.load(write(tmp_path / "g", kg__csv=text) / "kg.csv")
    assert shape(hin) == {"entity -likes-> entity": 2}
    assert next(iter(hin.matrices.values())).data.tolist() == [0.5, 2.0]


def test_columns_are_found_by_their_names(tmp_path: Path) -> None:
    text = "relation,head_id,tail_id\nlikes,a,x\n"
    hin = npth.load(write(tmp_path / "g", kg__csv=text) / "kg.csv")
    assert shape(hin) == {"entity -likes-> entity": 1}
    beside = write(tmp_path / "h", train__txt=FREEBASE, entity2id__txt="/m/1\t0\n")
    assert len(shape(npth.load(beside))) == 2


def test_the_same_file_twice(tmp_path: Path) -> None:
    folder = write(tmp_path / "g", kg__csv="h,r,t\n", graph__toml='[triples]\nfiles = ["kg.csv", "kg.csv"]')
    with pytest.raises(NeuPathError, match="are the same table"):
        npth.load(folder)


def test_a_type_map(tmp_path: Path) -> None:
    folder = write(
        tmp_path / "g",
        kg__tsv="head\trelation\ttail\na\tknows\tb\na\tlikes\tx\n",
        kinds__tsv="entity\ttype\tname\na\tuser\tAnn\nb\tuser\tBob\nx\titem\tPie\n",
        graph__toml='[triples]\nfiles = ["kg.tsv"]\ntypes = "kinds.tsv"\n',
    )
    hin = npth.load(folder)
    assert shape(hin) == {"user -knows-> user": 1, "user -likes-> item": 1}
    assert hin.row("user", "Bob") == 1
    with pytest.raises(
        NeuPathError, match="kg.tsv, line 2: the edge leads to node 'b', which is not in the nodes table"
    ):
        write(folder, kinds__tsv="entity\ttype\na\tuser\nx\titem\n")
        npth.load(folder)


def test_one_type_with_another_name(tmp_path: Path) -> None:
    folder = write(tmp_path / "g", kg__csv="h,r,t\na,r,b\n", graph__toml='[triples]\ntype = "thing"\n')
    assert list(shape(npth.load(folder))) == ["thing -r-> thing"]


def test_in_python() -> None:
    table = pa.table({"h": ["a", "a"], "r": ["likes", "knows"], "t": ["x", "b"]})
    hin = from_triples(table, {"a": "user", "b": "user", "x": "item"})
    assert shape(hin) == {"user -likes-> item": 1, "user -knows-> user": 1}
    assert shape(npth.load(table)) == {"entity -likes-> entity": 1, "entity -knows-> entity": 1}
    with pytest.raises(NeuPathError, match="a table of triples needs three columns, but this one has only h, r"):
        from_triples(table.select(["h", "r"]))


def test_bad_triples(tmp_path: Path) -> None:
    with pytest.raises(NeuPathError, match=r"two.tsv is not recognised: two.tsv has 2 columns"):
        npth.load(write(tmp_path / "g", two__tsv="a\tb\n") / "two.tsv")
    with pytest.raises(NeuPathError, match=r"kg.csv has 2 columns .*, but triples have three: head, relation, tail"):
        npth.load(write(tmp_path / "h", kg__csv="a,b\n", graph__toml="[triples]\n"))
    with pytest.raises(NeuPathError, match="kg.txt, line 3: expected 3 columns .*, got 2"):
        npth.load(write(tmp_path / "g", kg__txt="a\tr\tb\nb\tr\tc\na\tr\n") / "kg.txt")
    with pytest.raises(NeuPathError, match="kg.txt, line 2: the edge has an empty node id"):
        npth.load(write(tmp_path / "g", kg__txt="a\tr\tb\n\tr\tc\nb\tr\ta\n") / "kg.txt")


USERS, ITEMS = "user_id,name\nu1,Ann\nu2,Bob\n", "item_id,name\ni1,Pie\ni2,Jam\n"


@pytest.mark.parametrize(
    ("files", "relations"),
    [
        ({"movie_actor__csv": "source,target,type\nm1,a1,lead\nm2,a1,cameo\n"}, {"movie -movie_actor-> actor": 2}),
        ({"user_item__csv": "from,to,type\nu,i,view\nu,j,buy\n"}, {"user -user_item-> item": 2}),
        ({"kg__csv": "source,target,type\na,b,knows\n"}, {"entity -knows-> entity": 1}),
        ({"my_kg__csv": "source,target,predicate\na,b,knows\n"}, {"entity -knows-> entity": 1}),
        ({"my_edges__csv": "source,target,type\na,b,knows\n"}, {"entity -knows-> entity": 1}),
        ({"edges__csv": "a,relation,b\nx,knows,y\n"}, {"entity -knows-> entity": 1}),
    ],
)
def test_a_lone_relation_whose_edges_have_a_type(
    tmp_path: Path, files: dict[str, str], relations: dict[str, int]
) -> None:
    assert shape(npth.load(write(tmp_path / "g", **files))) == relations


@pytest.mark.parametrize("word", ["link", "relationships"])
def test_a_relation_of_two_types_is_not_a_table_of_all_edges(tmp_path: Path, word: str) -> None:
    links = {f"user_item_{word}__csv": "user_id,item_id,type\nu1,i1,view\nu2,i1,buy\n"}
    hin = npth.load(write(tmp_path / "g", users__csv=USERS, items__csv=ITEMS, **links))
    assert shape(hin) == {f"user -{word}-> item": 2}
    beside = {"entities__csv": "entity_id,name\ne,E\n", f"user_entity_{word}__csv": "user_id,entity_id\nu,e\n"}
    assert shape(npth.load(write(tmp_path / "h", **beside))) == {f"user -{word}-> entity": 1}


@pytest.mark.parametrize("label", ["0", "spam"])
def test_a_label_of_nodes_is_not_their_type(tmp_path: Path, label: str) -> None:
    nodes, edges = f"id,name,label\n1,Ann,{label}\n2,Bob,1\n", "source,relation,target\n1,knows,2\n"
    hin = npth.load(write(tmp_path / "g", nodes__csv=nodes, edges__csv=edges))
    assert shape(hin) == {"node -knows-> node": 1}
    assert hin.nodes["node"].attributes.column_names == ["label"]


def test_numbers_are_not_labels_of_a_property_graph(tmp_path: Path) -> None:
    nodes, edges = "id,name,label\n1,Ann,0\n2,Bob,1\n", "start,type,end\n1,knows,2\n"
    hin = npth.load(write(tmp_path / "g", nodes__csv=nodes, relationships__csv=edges))
    assert hin.schema.node_types == ("node",)


def test_graph_toml_names_the_type_or_name_column(tmp_path: Path) -> None:
    edges = "source,relation,target\n1,in,2\n"
    typed = {"nodes__csv": "id,label\n1,Person\n2,Film\n", "graph__toml": '[pair]\ntype = "label"\n'}
    hin = npth.load(write(tmp_path / "g", edges__csv=edges, **typed))
    assert shape(hin) == {"Person -in-> Film": 1}
    assert hin.nodes["Person"].names is None
    named = {"nodes__csv": "id,kind\n1,Person\n2,Film\n", "graph__toml": '[pair]\nname = "kind"\n'}
    assert shape(npth.load(write(tmp_path / "h", edges__csv=edges, **named))) == {"Person -in-> Film": 1}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("vectors.dat", b"\x00\x01\x02\xff"),
        ("log.dat", b""),
        ("movie_actor.dat", b"m9\ta9\n"),
        ("train.dat", b"a\tr\tb\n"),
        ("movies.dat", b"movie_id\nm7\n"),
    ],
)
def test_data_files_next_to_tables_are_left_out(tmp_path: Path, name: str, content: bytes) -> None:
    folder = write(tmp_path / "g", movie_actor__csv="movie_id,actor_id\nm1,a1\n")
    (folder / name).write_bytes(content)
    hin = npth.load(folder)
    assert shape(hin) == {"movie -movie_actor-> actor": 1}
    (note,) = hin.notes
    assert note.startswith(f"{name} was left out: a .dat file can hold anything")
    (folder / "graph.toml").write_text('ignore = ["*.dat"]')
    assert npth.load(folder).notes == ()


def test_graph_toml_may_name_a_data_file(tmp_path: Path) -> None:
    folder = write(tmp_path / "g", users__csv=USERS, user_item__dat="u1\ti1\nu1\ti2\n")
    with pytest.raises(
        npth.NeuPathError, match=r"no file of .* is a relation: .* user_item.dat was left out: .* names it"
    ):
        npth.load(folder)
    (folder / "graph.toml").write_text(
        '[[edges]]\nname = "has"\nfile = "user_item.dat"\nsource = "user"\ntarget = "item"\n'
    )
    hin = npth.load(folder)
    assert shape(hin) == {"user -has-> item": 2}
    assert hin.notes == ()


def test_a_data_file_next_to_a_matlab_file(tmp_path: Path) -> None:
    savemat(tmp_path / "graph.mat", {"user_item": np.eye(2)})
    (tmp_path / "vectors.dat").write_bytes(b"\0\1")
    assert shape(npth.load(tmp_path)) == {"user -user_item-> item": 2}


@pytest.mark.parametrize(
    ("files", "relations"),
    [
        ({"ml_ratings_ml__csv": "user_id,movie_id\n1,2\n"}, ["user -ml_ratings_ml-> movie"]),
        ({"paper_author_paper__csv": "paper_id,author_id\n1,1\n"}, ["paper -paper-> author"]),
        ({"paper_author_paper__csv": "paper,author\n1,1\n"}, ["paper -paper-> author"]),
        ({"paper_conference__csv": "paper,conf\n1,1\n", "conf__csv": "conf_id\n1\n"}, ["paper -conference-> conf"]),
        (
            {"actor_movie__csv": "film_id,person_id\n1,2\n", "actors__csv": "id\n1\n", "movies__csv": "id\n2\n"},
            ["film -actor_movie-> person"],
        ),
        ({"paper_cites_paper__csv": "citing_id,cited_id\n1,2\n"}, ["paper -cites-> paper"]),
        ({"paper_cites_paper__csv": "citing_paper_id,cited_paper_id\n1,2\n"}, ["paper -cites-> paper"]),
        ({"user_follows_user__csv": "user_id,followee_id\n1,2\n"}, ["user -follows-> user"]),
        ({"user_trusts_user__csv": "trustor_id,trusted_id\n1,2\n"}, ["user -trusts-> user"]),
        ({"user_knows_user__csv": "user1_id,user_b_id\n1,2\n"}, ["user -knows-> user"]),
    ],
)
def test_columns_that_are_ids_of_other_types_decide_against_the_name(
    tmp_path: Path, files: dict[str, str], relations: list[str]
) -> None:
    assert list(shape(npth.load(write(tmp_path / "g", **files)))) == relations


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("movie_actor.csv", "# movie_id,actor_id\nm1,a1\nm2,a2\nm3,a4\n"),
        ("movie_actor.tsv", "# movie\tactor\nm1\ta1\nm2\ta2\nm3\ta4\n"),
        ("movie_actor.txt", "# movie\tactor\nm1\ta1\nm2\ta2\nm3\ta4\n"),
        ("movie_actor.csv", "# movie_id,actor_id,weight\nm1,a1,1\nm2,a2,2\nm3,a4,3\n"),
        ("movie_actor.csv", "# movie_id,actor_id,weight\n1,1,1\n2,2,2\n3,4,3\n"),
        ("ratings.csv", "% movie_id,actor_id\n\nID,a1\nm2,a2\nm3,a4\n"),
    ],
)
def test_a_header_that_is_marked_as_a_comment(tmp_path: Path, name: str, text: str) -> None:
    folder = write(tmp_path / "g", **{name.replace(".", "__"): text})
    hin = npth.load(folder)
    assert shape(hin) == {f"movie -{name[:-4]}-> actor": 3}
    assert (next(iter(hin.matrices.values())).data.sum() == 6) == ("weight" in text)
    assert hin.notes == ()
    write(folder, **{name.replace(".", "__"): "# As of 2019\n" + text})
    reloaded = npth.load(folder)
    assert shape(reloaded) == shape(hin)
    assert reloaded.notes == (f"{name}: skipped 1 comment line above the table",)


def test_a_marked_header_of_nodes_of_triples_and_in_graph_toml(tmp_path: Path) -> None:
    files = {"movies__csv": "# id,title\nm1,Heat\n", "movie_actor__csv": "# movie_id,actor_id,# of roles\nm1,a1,4\n"}
    folder = write(tmp_path / "g", **files)
    assert npth.load(folder).nodes["movie"].name(0) == "Heat"
    (folder / "graph.toml").write_text(
        '[[edges]]\nname = "cast"\nfile = "movie_actor.csv"\nsource = "movie"\ntarget = "actor"\n'
        'weight = "# of roles"\ncolumns = ["# movie_id", "actor_id"]\n'
    )
    assert next(iter(npth.load(folder).matrices.values())).data.tolist() == [4]
    triples = write(tmp_path / "h", kg__tsv="# 2019\n# source\ttarget\trelation\na\tb\tknows\n") / "kg.tsv"
    assert shape(npth.load(triples)) == {"entity -knows-> entity": 1}
    assert npth.load(triples).notes == ("kg.tsv: skipped 1 comment line above the table",)


@pytest.mark.parametrize("tags", [["# 1 fan", "# 2 fan", "fan", "7"], ["# 1 fan", "# 2 fan", "# 3 fan", "# 4 fan"]])
def test_ids_that_start_like_comments_are_kept(tmp_path: Path, tags: list[str]) -> None:
    text = "".join(f"{tag}\tp\n" for tag in tags)
    hin = npth.load(write(tmp_path / "g", tag_post__txt=text))
    assert hin.nodes["tag"].ids.to_pylist() == tags
    assert hin.notes == ()
    header = npth.load(write(tmp_path / "h", tag_post__txt="tag_id\tpost_id\n" + text))
    assert header.nodes["tag"].ids.to_pylist() == tags


def test_comments_with_as_many_cells_as_the_table(tmp_path: Path) -> None:
    folder = write(tmp_path / "g", user_item__csv="# by Ann, 2019\n# of a shop\nuser_id,item_id\nu,i\n")
    assert npth.load(folder).notes == ("user_item.csv: skipped 2 comment lines above the table",)
    numbers = npth.load(write(tmp_path / "h", user_item__txt="# Nodes:\t4\n# Edges:\t2\n1\t7\n2\t7\n"))
    assert numbers.nodes["user"].ids.to_pylist() == [1, 2]
    snap = npth.load(write(tmp_path / "i", user_item__txt="# Nodes: 4\n# FromNodeId\tToNodeId\n1\t7\n2\t7\n"))
    assert shape(snap) == {"user -user_item-> item": 2}
    words = npth.load(write(tmp_path / "j", user_item__txt="# user likes\na x\nb y\n"))
    assert words.nodes["user"].ids.to_pylist() == ["a", "b"]


def test_no_line_is_a_comment_if_graph_toml_sets_header(tmp_path: Path) -> None:
    files = {"tag_post__csv": "# a,p\nb,q\n", "graph__toml": "header = false\n"}
    assert npth.load(write(tmp_path / "g", **files)).nodes["tag"].ids.to_pylist() == ["# a", "b"]
    files = {"tag_post__csv": "# of 2019\nb,q\n", "graph__toml": "header = false\n"}
    with pytest.raises(npth.NeuPathError, match="line 2: expected 3 columns .*, got 1"):
        npth.load(write(tmp_path / "h", **files))


# ---- Spreadsheets --------------------------------------------------------------------------------
TRIPS = "\ufeffdriver;van;place;km\r\nAnn;v1;Hof;56,8\r\nBob;v1;Tor;2,1\r\nAnn;v2;Hof;9\r\nCem;v2;Tor;2,1\r\n"


def test_numbers_with_a_decimal_comma_are_no_nodes(tmp_path: Path) -> None:
    path = tmp_path / "trips.csv"
    path.write_text(TRIPS, encoding="utf-8")
    hin = npth.load(path)
    assert set(hin.nodes) == {"driver", "van", "place"}
    assert any("the column km was left out" in note for note in hin.notes)


def test_numbers_after_a_comma_in_a_column_of_ids_are_lists(tmp_path: Path) -> None:
    rows = "".join(f'{row},x,"{row % 5},{5 + row % 4}"\n' for row in range(20))
    hin = npth.load(write(tmp_path / "g", movies__csv=f"movie_id,title,actor_ids\n{rows}"))
    assert hin.num_nodes("actor") == 9


@pytest.mark.parametrize(
    "text", ["place;A;B;C\nA;;1;2\nB;1;;3\nC;2;3;\n", ";Pen;Mug\nAnn;2,5;\nBob;3;1,5\n"], ids=["square", "pivot"]
)
def test_a_matrix_is_called_one(tmp_path: Path, text: str) -> None:
    path = tmp_path / "distances.csv"
    path.write_text(text)
    with pytest.raises(NeuPathError, match="it looks like a matrix, whose columns are nodes; write a row for each"):
        npth.load(path)


def test_the_graph_toml_of_a_table_of_nodes_reads_all_that_belongs_to_them(tmp_path: Path) -> None:
    text = "name,city,skills,age\nAnn,Graz,sql;law,30\nBob,Graz,,41\nCem,Hof,law,30\nDan,Hof,sql;tax,52\n"
    folder = write(tmp_path / "g", persons__csv=text)
    with pytest.raises(NeuPathError, match="is not recognised|is a relation") as refused:
        npth.load(folder)
    (folder / "graph.toml").write_text(str(refused.value).partition(":\n")[2])
    assert shape(npth.load(folder)) == {"person -person_city-> city": 4, "person -person_skill-> skill": 5}


def test_nodes_by_name_are_of_the_type_that_a_mapping_gives() -> None:
    persons = pa.table({"name": ["Ann", "Bob"], "city": ["Graz", "Graz"], "age": [30, 41]})
    with pytest.raises(
        NeuPathError, match=r"such as load\(\{\(\"person\", \"city\"\): table\[\[\"name\", \"city\"\]\]"
    ):
        npth.load({"person": persons})


ORDERS = "customer,sku,day\nann,tea,2024-01-01\n,cup,2024-01-02\nbob,,2024-01-03\ncem,cup,2024-01-04\n"
BOUGHT = (
    '[[edges]]\nname = "bought"\nfile = "orders.csv"\nsource = "customer"\ntarget = "product"\n'
    'columns = ["customer", "sku"]\noptional = true\n'
)


@pytest.mark.parametrize("attributes", ["", 'attributes = ["day"]\n', "attributes = []\n"])
def test_optional_edges_have_attributes_and_name_the_line_of_an_empty_source(tmp_path: Path, attributes: str) -> None:
    folder = write(tmp_path / "g", orders__csv=ORDERS, graph__toml=BOUGHT + attributes)
    with pytest.raises(NeuPathError, match=r"orders.csv, line 3: the edge has an empty customer id"):
        npth.load(folder)
    (folder / "orders.csv").write_text(ORDERS.replace("\n,cup", "\nann,cup"))
    hin = npth.load(folder)
    assert shape(hin) == {"customer -bought-> product": 3}
    days = [str(day) for table in hin.edge_tables.values() for day in table.attributes["day"].to_pylist()]
    assert days == ([] if "[]" in attributes else ["2024-01-01", "2024-01-02", "2024-01-04"])


def test_each_part_of_labels_that_is_not_read_is_noted_of_its_own_table(tmp_path: Path) -> None:
    folder = write(
        tmp_path / "g",
        people__csv="id:ID,name,:LABEL\n1,Ann,Person;Actor\n2,Bo,Person\n",
        movies__csv="id:ID,name,:LABEL\n7,Heat,Movie\n",
        acted__csv=":START_ID,:END_ID,:TYPE\n1,7,ACTED_IN\n",
    )
    hin = npth.load(folder)
    assert hin.schema.node_types == ("Movie", "Person")
    assert [note.partition(":")[0] for note in hin.notes] == ["people.csv"]


@pytest.mark.parametrize("word", ["file", "list", "data", "table", "part", "graph", "network", "sheet", "test", "copy"])
@pytest.mark.parametrize("columns", ["user_id,{}_id", "user_id,{}_id,added", "user,{}"])
def test_a_column_makes_a_type_of_any_word_in_the_name_of_a_relation(tmp_path: Path, word: str, columns: str) -> None:
    header = columns.format(word)
    rows = ["1,7,1", "1,8,2", "2,8,1"]
    text = "\n".join(row if header.count(",") == 2 else row.rpartition(",")[0] for row in rows)
    folder = tmp_path / "g"
    write(folder, users__csv="user_id,date\n1,2024-01-01\n2,2024-01-02\n")
    (folder / f"user_{word}.csv").write_text(f"{header}\n{text}\n")
    hin = npth.load(folder)
    assert shape(hin) == {f"user -user_{word}-> {word}": 3}
    assert hin.num_nodes("user") == 2
    assert "date" in hin.nodes["user"].attributes.column_names


def test_words_that_say_nothing_still_say_nothing(tmp_path: Path) -> None:
    folder = write(
        tmp_path / "g",
        movies_data__csv="movie_id,title,data\n1,Heat,x\n2,Up,y\n",
        movie_actor_list__csv="movie_id,actor_id\n1,7\n2,7\n",
    )
    hin = npth.load(folder)
    assert shape(hin) == {"movie -movie_actor_list-> actor": 2}
    assert hin.nodes["movie"].attributes.column_names == ["data"]


def test_a_table_of_any_name_holds_the_nodes_of_its_first_id_if_names_are_called_after_them(tmp_path: Path) -> None:
    products = "product_id,product_name,aisle_id\n10,Tea,94\n11,Salt,104\n12,Mint,94\n"
    hin = npth.load(write(tmp_path / "g", data__csv=products, aisles__csv="aisle_id,aisle\n94,tea\n104,spices\n"))
    assert shape(hin) == {"product -product_aisle-> aisle": 3}
    assert hin.nodes["product"].name(0) == "Tea"
    employees = "employee_id,name,manager_id,department_id\n1,Ann,,10\n2,Bob,1,10\n3,Cem,1,20\n"
    files = {"data__csv": employees, "departments__csv": "department_id,name\n10,Search\n20,Graphs\n"}
    hin = npth.load(write(tmp_path / "h", **files))
    assert shape(hin) == {"employee -employee_department-> department": 3, "employee -manager-> employee": 2}


SHOP = {
    "customers__csv": "customer_id,city\n1,Ulm\n2,Bonn\n3,Ulm\n",
    "products__csv": "product_id,title\n7,tea\n8,cup\n9,pen\n",
    "order_lines__csv": "order_id,customer_id,product_id,qty\n5001,1,7,2\n5001,1,8,1\n5002,2,8,1\n5003,3,9,4\n",
}


def test_every_key_of_order_lines_is_a_relation(tmp_path: Path) -> None:
    folder = write(tmp_path / "g", **SHOP)
    hin = npth.load(folder)
    assert {str(each): each.target for each in hin.schema.relations}.keys() == {
        "order -lines-> customer",
        "order -order_product-> product",
    }
    assert shape(hin) == {"order -lines-> customer": 3, "order -order_product-> product": 4}
    assert {each: hin.num_nodes(each) for each in hin.schema.node_types} == {"customer": 3, "product": 3, "order": 3}
    bought = next(table for relation, table in hin.edge_tables.items() if relation.target == "product")
    assert bought.attributes["qty"].to_pylist() == [2, 1, 1, 4]
    assert not any("no relation leads" in note for note in hin.notes)
    assert any("product_id was read as the relation order -order_product-> product" in note for note in hin.notes)
    assert npth.PathSim("product-order-customer-order-product").fit(hin).top_k("tea", k=1).names == ("cup",)


def test_an_empty_key_of_order_lines_is_no_edge(tmp_path: Path) -> None:
    lines = SHOP["order_lines__csv"].replace("5002,2,8", "5002,2,")
    hin = npth.load(write(tmp_path / "g", **SHOP | {"order_lines__csv": lines}))
    assert shape(hin) == {"order -lines-> customer": 3, "order -order_product-> product": 3}


def test_a_key_whose_values_are_not_in_the_node_table_stays_an_attribute_and_is_noted(tmp_path: Path) -> None:
    lines = SHOP["order_lines__csv"].replace("5002,2,8", "5002,2,88")
    hin = npth.load(write(tmp_path / "g", **SHOP | {"order_lines__csv": lines}))
    assert shape(hin) == {"order -lines-> customer": 3}
    note = next(note for note in hin.notes if "product_id" in note and "not as a relation" in note)
    assert "'88' is no id in products.csv" in note
    (table,) = hin.edge_tables.values()
    assert "product_id" in table.attributes.column_names


def test_keys_of_order_lines_are_streamed_alike(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    folder = write(tmp_path / "g", **SHOP)
    store = npth.io.import_store(folder, tmp_path / "store")
    assert shape(npth.load(store)) == shape(npth.load(folder))


def test_a_graph_toml_that_init_writes_reads_order_lines_alike(tmp_path: Path) -> None:
    folder = write(tmp_path / "g", **SHOP)
    (tmp_path / "g.toml").write_text(draft_of(str(folder)).to_toml())
    hin = npth.load(folder, config=tmp_path / "g.toml")
    assert digest(hin) == digest(npth.load(folder))
    assert not any("product_id" in note for note in hin.notes)


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_two_columns_named_after_their_types_are_an_edge_list(tmp_path: Path, delimiter: str) -> None:
    rows = ("customer,product", "ann,tea", "ann,cup", "bob,tea", "cem,cup")
    path = tmp_path / "sp.csv"
    path.write_text("\n".join(rows).replace(",", delimiter))
    hin = npth.load(path)
    assert shape(hin) == {"customer -customer_product-> product": 4}
    assert hin.notes == (
        "sp.csv: product was read as the relation customer -customer_product-> product",
        'sp.csv: edges that several rows repeat were read once; duplicates = "count" counts them',
    )
    path.write_text("\n".join([*rows, "ann,tea"]).replace(",", delimiter))
    assert [npth.load(path, duplicates=how).matrices[hin.schema.relations[0]].sum() for how in (None, "count")] == [
        4,
        5,
    ]
    hin = npth.load(path)
    (tmp_path / "g.toml").write_text(draft_of(str(path)).to_toml())
    assert digest(npth.load(path, config=tmp_path / "g.toml")) == digest(hin)


@pytest.mark.parametrize(
    "text",
    [
        "name,city\nann,ulm\nbob,ulm\ncem,bonn\n",  # a city is perhaps an attribute of a name
        "person,city\nann,ulm\nbob,ulm\ncem,bonn\n",  # each person once
        "child,parent\ncat,mammal\ncat,animal\ndog,mammal\n",
        "word,other\na,b\nb,a\na,c\n",  # ids of one type
        "alpha,value\nx,y\nx,z\nw,y\n",
        "film,kind\nHeat,crime\nHeat,drama\nUp,drama\n",
        "symbol,disease,diseaseName\nA1BG,C01,hives\nA2M,C01,hives\nA2M,C02,ague\n",  # names of diseases are no type
    ],
)
def test_two_columns_that_may_be_something_else_are_refused_with_a_graph_toml(tmp_path: Path, text: str) -> None:
    path = tmp_path / "sp.csv"
    path.write_text(text)
    with pytest.raises(NeuPathError, match="is not recognised") as error:
        npth.load(path)
    (tmp_path / "g.toml").write_text(str(error.value).partition("such as:\n")[2])
    assert npth.load(path, config=tmp_path / "g.toml").schema.relations
