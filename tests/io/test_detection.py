"""Tables that could be read in two ways: each is read as the one that loses and mixes up nothing."""

from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

import neupath as npth
from tests.tables import shape, write

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
def test_a_relation_of_two_types_is_no_table_of_all_edges(tmp_path: Path, word: str) -> None:
    links = {f"user_item_{word}__csv": "user_id,item_id,type\nu1,i1,view\nu2,i1,buy\n"}
    hin = npth.load(write(tmp_path / "g", users__csv=USERS, items__csv=ITEMS, **links))
    assert shape(hin) == {f"user -{word}-> item": 2}
    beside = {"entities__csv": "entity_id,name\ne,E\n", f"user_entity_{word}__csv": "user_id,entity_id\nu,e\n"}
    assert shape(npth.load(write(tmp_path / "h", **beside))) == {f"user -{word}-> entity": 1}


@pytest.mark.parametrize("label", ["0", "spam"])
def test_a_label_of_nodes_is_a_class_and_not_their_type(tmp_path: Path, label: str) -> None:
    nodes, edges = f"id,name,label\n1,Ann,{label}\n2,Bob,1\n", "source,relation,target\n1,knows,2\n"
    hin = npth.load(write(tmp_path / "g", nodes__csv=nodes, edges__csv=edges))
    assert shape(hin) == {"node -knows-> node": 1}
    assert hin.nodes["node"].attributes.column_names == ["label"]


def test_numbers_are_no_labels_of_a_property_graph(tmp_path: Path) -> None:
    nodes, edges = "id,name,label\n1,Ann,0\n2,Bob,1\n", "start,type,end\n1,knows,2\n"
    hin = npth.load(write(tmp_path / "g", nodes__csv=nodes, relationships__csv=edges))
    assert hin.schema.node_types == ("node",)


def test_a_column_that_graph_toml_calls_the_type_or_the_name(tmp_path: Path) -> None:
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
def test_data_files_beside_tables_are_left_out(tmp_path: Path, name: str, content: bytes) -> None:
    folder = write(tmp_path / "g", movie_actor__csv="movie_id,actor_id\nm1,a1\n")
    (folder / name).write_bytes(content)
    hin = npth.load(folder)
    assert shape(hin) == {"movie -movie_actor-> actor": 1}
    (note,) = hin.notes
    assert note.startswith(f"{name} was left out: a .dat file may be anything")
    (folder / "graph.toml").write_text('ignore = ["*.dat"]')
    assert npth.load(folder).notes == ()


def test_a_data_file_beside_tables_may_be_named(tmp_path: Path) -> None:
    folder = write(tmp_path / "g", users__csv=USERS, user_item__dat="u1\ti1\nu1\ti2\n")
    with pytest.raises(
        npth.NeuPathError, match=r"no file of .* is a relation: user_item.dat was left out: .* names it"
    ):
        npth.load(folder)
    (folder / "graph.toml").write_text(
        '[[edges]]\nname = "has"\nfile = "user_item.dat"\nsource = "user"\ntarget = "item"\n'
    )
    hin = npth.load(folder)
    assert shape(hin) == {"user -has-> item": 2}
    assert hin.notes == ()


def test_a_data_file_beside_a_matlab_file(tmp_path: Path) -> None:
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
    again = npth.load(folder)
    assert shape(again) == shape(hin)
    assert again.notes == (f"{name}: skipped 1 comment line above the table",)


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
def test_ids_that_begin_as_comments_do(tmp_path: Path, tags: list[str]) -> None:
    text = "".join(f"{tag}\tp\n" for tag in tags)
    hin = npth.load(write(tmp_path / "g", tag_post__txt=text))
    assert hin.nodes["tag"].ids.to_pylist() == tags
    assert hin.notes == ()
    header = npth.load(write(tmp_path / "h", tag_post__txt="tag_id\tpost_id\n" + text))
    assert header.nodes["tag"].ids.to_pylist() == tags


def test_comments_that_are_cut_as_the_table_below(tmp_path: Path) -> None:
    folder = write(tmp_path / "g", user_item__csv="# by Ann, 2019\n# of a shop\nuser_id,item_id\nu,i\n")
    assert npth.load(folder).notes == ("user_item.csv: skipped 2 comment lines above the table",)
    numbers = npth.load(write(tmp_path / "h", user_item__txt="# Nodes:\t4\n# Edges:\t2\n1\t7\n2\t7\n"))
    assert numbers.nodes["user"].ids.to_pylist() == [1, 2]
    snap = npth.load(write(tmp_path / "i", user_item__txt="# Nodes: 4\n# FromNodeId\tToNodeId\n1\t7\n2\t7\n"))
    assert shape(snap) == {"user -user_item-> item": 2}
    words = npth.load(write(tmp_path / "j", user_item__txt="# user likes\na b\nb c\n"))
    assert words.nodes["user"].ids.to_pylist() == ["a", "b"]


def test_no_line_is_a_comment_where_graph_toml_speaks_of_the_header(tmp_path: Path) -> None:
    files = {"tag_post__csv": "# a,p\nb,q\n", "graph__toml": "header = false\n"}
    assert npth.load(write(tmp_path / "g", **files)).nodes["tag"].ids.to_pylist() == ["# a", "b"]
    files = {"tag_post__csv": "# of 2019\nb,q\n", "graph__toml": "header = false\n"}
    with pytest.raises(npth.NeuPathError, match="line 2: expected 3 columns .*, got 1"):
        npth.load(write(tmp_path / "h", **files))
