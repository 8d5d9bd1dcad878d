"""Detection of types, relations and headers from file and column names, layout by layout."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from scipy.io import savemat

import neupath as npth
from neupath import NeuPathError
from neupath.graph.hin import digest
from neupath.io import from_triples
from neupath.io.draft import draft_of
from tests.tables import FREEBASE, Case, check_read, edges_toml, shape, write

USERS, ITEMS = "user_id,name\nu1,Ann\nu2,Bob\n", "item_id,name\ni1,Pie\ni2,Jam\n"
NAMES: list[tuple[dict[str, str], str]] = [
    ({"paper_cites_paper__csv": "citing,cited\n1,2\n"}, "paper -cites-> paper"),
    ({"user_follows_user__csv": "user,followee\na,b\n"}, "user -follows-> user"),
    ({"user_friend_user__csv": "user1,user2\na,b\n"}, "user -friend-> user"),
    ({"paper_cites__csv": "paper_id,cited_paper_id\n1,2\n"}, "paper -cites-> paper"),
    ({"user_item__csv": "u,i\na,x\n"}, "user -user_item-> item"),
    ({"drug_gene__tsv": "#Drug\tGene\nd\tg\n"}, "Drug -drug_gene-> Gene"),
    ({"author_writes_paper__csv": "person,text\na,p\n", "authors__csv": "id\na\n", "papers__csv": "id\np\n"},
     "author -writes-> paper"),
    ({"field_of_study__csv": "id,name\n1,Maths\n", "paper_has_topic_field_of_study__csv": "src,dst\np,1\n"},
     "paper -has_topic-> field_of_study"),
    ({"fields_of_study__csv": "field_of_study_id\n1\n", "paper_field__csv": "paper_id,field_of_study_id\np,1\n"},
     "paper -paper_field-> field_of_study"),
    ({"paper_author__txt": "1\t2\n", "id_author__txt": "2\tAnn\n3\tBob\n", "id_paper__txt": "1\tOn graphs\n"},
     "paper -paper_author-> author"),
    ({"papers_authors__txt": "1\t2\n", "paper__csv": "paper_id\n1\n"}, "paper -papers_authors-> authors"),
    # columns that are ids of other types decide against the name
    ({"ml_ratings_ml__csv": "user_id,movie_id\n1,2\n"}, "user -ml_ratings_ml-> movie"),
    ({"paper_author_paper__csv": "paper_id,author_id\n1,1\n"}, "paper -paper-> author"),
    ({"paper_author_paper__csv": "paper,author\n1,1\n"}, "paper -paper-> author"),
    ({"paper_conference__csv": "paper,conf\n1,1\n", "conf__csv": "conf_id\n1\n"}, "paper -conference-> conf"),
    ({"actor_movie__csv": "film_id,person_id\n1,2\n"}, "film -actor_movie-> person"),
    ({"paper_cites_paper__csv": "citing_id,cited_id\n1,2\n"}, "paper -cites-> paper"),
    ({"paper_cites_paper__csv": "citing_paper_id,cited_paper_id\n1,2\n"}, "paper -cites-> paper"),
    ({"user_follows_user__csv": "user_id,followee_id\n1,2\n"}, "user -follows-> user"),
    ({"user_trusts_user__csv": "trustor_id,trusted_id\n1,2\n"}, "user -trusts-> user"),
    ({"user_knows_user__csv": "user1_id,user_b_id\n1,2\n"}, "user -knows-> user"),
    ({"movie_actor__csv": "movie,person\nm,a\n", "movies__csv": "movie_id,title\nm,Heat\n"}, "movie -actor-> person"),
    # a lone relation whose edges have a type
    ({"movie_actor__csv": "source,target,type\nm1,a1,lead\n"}, "movie -movie_actor-> actor"),
    ({"user_item__csv": "from,to,type\nu,i,view\n"}, "user -user_item-> item"),
    ({"kg__csv": "source,target,type\na,b,knows\n"}, "entity -knows-> entity"),
    ({"my_kg__csv": "source,target,predicate\na,b,knows\n"}, "entity -knows-> entity"),
    ({"my_edges__csv": "source,target,type\na,b,knows\n"}, "entity -knows-> entity"),
    ({"edges__csv": "a,relation,b\nx,knows,y\n"}, "entity -knows-> entity"),
    ({"kg__tsv": "head\trelation\ttail\na\tknows\tb\n"}, "entity -knows-> entity"),
    ({"kg__csv": "relation,head_id,tail_id\nlikes,a,x\n"}, "entity -likes-> entity"),
    # a relation of two types is not a table of all edges
    *[({"users__csv": USERS, "items__csv": ITEMS, f"user_item_{word}__csv": "user_id,item_id,type\nu1,i1,view\n"},
       f"user -{word}-> item") for word in ("link", "relationships")],
    *[({"entities__csv": "entity_id,name\ne,E\n", f"user_entity_{word}__csv": "user_id,entity_id\nu,e\n"},
       f"user -{word}-> entity") for word in ("link", "relationships")],
]  # fmt: skip
"""Files with one edge, and its relation."""


@pytest.mark.parametrize(("files", "relation"), NAMES)
def test_names_say_which_types_a_table_joins(tmp_path: Path, files: dict[str, str], relation: str) -> None:
    check_read(tmp_path / "g", files, {relation: 1})


NODES_AND_EDGES = {"nodes__csv": "id,name,label\n1,Ann,spam\n2,Bob,1\n"}
COMMENTS = '# Directed graph: "users" and items\n#\n\n% 2019\n'
MARKED = {"movies__csv": "# id,title\nm1,Heat\n", "movie_actor__csv": "# movie_id,actor_id,# of roles\nm1,a1,4\n"}
DIRECTED = {"movies__csv": "id,title,director_id\n1,Heat,7\n2,Ali,7\n", "directors__csv": "id,name\n7,Mann\n"}
RATED = {"ratings__csv": "userId,movieId,rating,timestamp\n1,10,4.0,0\n", "user_item__txt": "1\t2\t3\n"}
UNNAMED = {"u__data": "1\t2\t3\n", "u__item": "2|Heat\n"}
LIKES = {"paper_author__txt": "1\t7\n2\t7\n", "likes__csv": "a,b\nann,x\n"}
TYPED = {
    "kg__tsv": "head\trelation\ttail\na\tknows\tb\na\tlikes\tx\n",
    "graph__toml": '[triples]\nfiles = ["kg.tsv"]\ntypes = "kinds.tsv"\n',
}
IN = {"edges__csv": "source,relation,target\n1,in,2\n"}
DATA_FILE = {"users__csv": USERS, "user_item__dat": "u1\ti1\nu1\ti2\n"}
SKIPPED = "user_item.csv: skipped 2 comment lines above the table"
CASES: dict[str, Case] = {
    "tabs are the delimiter even if titles have commas": (
        {"paper__txt": "1\tGraphs, again\n2\tTrees, at last\n", "paper_author__txt": "1\t7\n2\t7\n"},
        {"paper -paper_author-> author": 2}, {"paper.names": ["Graphs, again", "Trees, at last"]},
    ),
    ".dat files are tables": (
        {"user_artists__dat": "userID\tartistID\tweight\r\n2\t51\t13883\r\n", "artists__dat": "id\tname\n51\tDuran\n"},
        {"user -user_artists-> artist": 1}, {"artist.names": ["Duran"], "user_artists.weights": [13883]},
    ),
    "a table that says nothing is left out": (
        {"movie_metadata__csv": "colour,director\nred,x\n", "movie_actor__csv": "movie,actor\nm,a\n"},
        {"movie -movie_actor-> actor": 1}, {"notes": ["movie_metadata.csv was left out"]},
    ),
    "a property graph": (
        {"nodes__csv": "personId:ID(P),name:string,:LABEL\n1,Ann,Person\n2,Heat,Film\n",
         "relationships__csv": ":START_ID(P),:END_ID(P),:TYPE\n1,2,IN\n"},
        {"Person -IN-> Film": 1}, {"Film.ids": [2]},
    ),
    "a property graph in plain words": (
        {"nodes__csv": "id,label,name\n1,Person,Ann\n2,Film,Heat\n", "relationships__csv": "start,end,type\n1,2,IN\n"},
        {"Person -IN-> Film": 1}, {"Film.ids": [2]},
    ),
    "numbers are not labels of a property graph": (
        {"nodes__csv": "id,name,label\n1,Ann,0\n2,Bob,1\n", "relationships__csv": "start,type,end\n1,knows,2\n"},
        {"node -knows-> node": 1},
    ),
    "a label of nodes is not their type": (
        NODES_AND_EDGES | {"edges__csv": "source,relation,target\n1,knows,2\n"}, {"node -knows-> node": 1},
        {"node.attributes": {"label": ["spam", "1"]}},
    ),
    "a number that labels nodes is not their type": (
        {"nodes__csv": "id,name,label\n1,Ann,0\n2,Bob,1\n", "edges__csv": "source,relation,target\n1,knows,2\n"},
        {"node -knows-> node": 1}, {"node.attributes": {"label": [0, 1]}},
    ),
    "graph.toml names the type": (
        IN | {"nodes__csv": "id,label\n1,Person\n2,Film\n", "graph__toml": '[pair]\ntype = "label"\n'},
        {"Person -in-> Film": 1}, {"Person.names": None},
    ),
    "graph.toml names the name": (
        IN | {"nodes__csv": "id,kind\n1,Person\n2,Film\n", "graph__toml": '[pair]\nname = "kind"\n'},
        {"Person -in-> Film": 1}, {"Person.names": ["Person"]},
    ),
    "a file of two columns by its name": (LIKES, {"paper -paper_author-> author": 2}, {"load": "paper_author.txt"}),
    "a file of two columns of no name": (
        LIKES, r"likes.csv is not recognised: likes.csv has 2 columns .*graph.toml", {"load": "likes.csv"}
    ),
    "attributes that may be the weight are noted": (
        RATED, {"user -ratings-> movie": 1, "user -user_item-> item": 1},
        {"notes": [
            "ratings.csv: rating, timestamp are attributes of edges, and each edge weighs 1; "
            'weight = "rating" under [[edges]] in graph.toml would make rating the weight, '
            'and attributes = ["rating", "timestamp"] there keeps it 1',
            "user_item.txt: 3 is an attribute of edges, and each edge weighs 1; "
            'weight = "3" under [[edges]] in graph.toml would make 3 the weight, '
            'and attributes = ["3"] there keeps it 1',
        ]},
    ),
    "a weight of graph.toml": (
        RATED | {"graph__toml": 'ignore = ["user*"]\n' + edges_toml(
            "rates", "ratings.csv", "user", "movie", 'weight = "rating"')},
        {"user -rates-> movie": 1},  # 0 is no plain Unix time
        {"notes": [], "rates.weights": [4.0], "rates.attributes": {"rating": [4.0], "timestamp": [0]}},
    ),
    "files of any name": (UNNAMED, r"g has no tables \(it has u.data, u.item\); .* in graph.toml"),
    "files of any name in graph.toml": (
        UNNAMED | {"graph__toml": edges_toml("rates", "u.data", "user", "movie", 'weight = "3"')
                   + '[nodes.movie]\nfile = "u.item"\nid = "1"\n'},
        {"user -rates-> movie": 1}, {"rates.weights": [3.0], "movie.names": ["Heat"]},
    ),
    "two colons": ({"a_b__dat": "1::2::5\n1::3::5\n"}, "a_b.dat has '::' between its columns, .* replace it by tabs"),
    "UTF-16": (
        {"a_b__csv": "a_id,b_id\n1,2\n".encode("utf-16")}, "a_b.csv is UTF-16 text; .* iconv -f UTF-16 -t UTF-8"
    ),
    "a comma in a weight": (
        {"a_b__csv": "a_id;b_id;weight\n1;2;0,5\n"}, "weight '0,5' is not allowed; .*, with a point and no comma"
    ),
    "a plus before a weight": ({"a_b__csv": "a_id,b_id,weight\n1,2,+1.5\n"}, {"a -a_b-> b": 1}, {"a_b.weights": [1.5]}),
    "colons in ids": (
        {"kg__tsv": "Gene::1\tGiG::x\tGene::2\nGene::2\tGiG::x\tGene::3\n"}, {"Gene -GiG::x-> Gene": 2},
        {"load": "kg.tsv"},
    ),
    "a foreign key": (DIRECTED, {"movie -movie_director-> director": 2}),
    "a foreign key in graph.toml": (
        DIRECTED | {"graph__toml": '[nodes.movie]\nfile = "movies.csv"\n' + edges_toml(
            "directed", "movies.csv", "movie", "director", 'columns = ["id", "director_id"]')},
        {"movie -directed-> director": 2}, {"notes": [], "director.names": ["Mann"], "movie.names": ["Heat", "Ali"]},
    ),
    **{f"comments above a table{more}": case for header, more, line in (
        ("", "", 7), ("user_id\titem_id\tweight\n", " with a header", 8),
    ) for more, case in (
        (more, ({"user_item__txt": COMMENTS + header + "#1\tx\t1\n#2\tx\t1\n"},
                {"user -user_item-> item": 2}, {"user.ids": ["#1", "#2"]})),
        (f"{more} and a bad line", ({"user_item__txt": COMMENTS + header + "#1\tx\t1\n#2\tx\t1\n#3\n"},
                                    f"line {line}: expected 3 columns .*, got 1")),
    )},
    "triples without a header": (
        {"kg__txt": FREEBASE}, {"entity -/film/actor-> entity": 2, "entity -/film/genre-> entity": 1},
        {"load": "kg.txt", "entity.ids": ["/m/1", "/m/3", "/m/2", "/m/4"]},
    ),
    "train, valid and test are one graph": (
        {"train__txt": FREEBASE, "valid__txt": "/m/9\t/film/actor\t/m/2\n", "test__txt": "/m/1\tx\t/m/9\n"},
        {"entity -x-> entity": 1, "entity -/film/actor-> entity": 3, "entity -/film/genre-> entity": 1},
    ),
    "numbers of entities beside triples": (
        {"train__txt": FREEBASE, "entity2id__txt": "/m/1\t0\n"},
        {"entity -/film/actor-> entity": 2, "entity -/film/genre-> entity": 1},
    ),
    "headers and weights of triples": (
        {"kg__csv": "entity1,relation,entity2,weight\na,likes,x,0.5\nb,likes,x,2\n"}, {"entity -likes-> entity": 2},
        {"load": "kg.csv", "likes.weights": [0.5, 2.0]},
    ),
    "the same triples twice": (
        {"kg__csv": "h,r,t\n", "graph__toml": '[triples]\nfiles = ["kg.csv", "kg.csv"]'}, "are the same table"
    ),
    "types of triples": (
        TYPED | {"kinds__tsv": "entity\ttype\tname\na\tuser\tAnn\nb\tuser\tBob\nx\titem\tPie\n"},
        {"user -knows-> user": 1, "user -likes-> item": 1}, {"user.names": ["Ann", "Bob"]},
    ),
    "types of some triples": (
        TYPED | {"kinds__tsv": "entity\ttype\na\tuser\nx\titem\n"},
        "kg.tsv, line 2: the edge leads to node 'b', which is not in the nodes table",
    ),
    "one type with another name": (
        {"kg__csv": "h,r,t\na,q,b\n", "graph__toml": '[triples]\ntype = "thing"\n'}, {"thing -q-> thing": 1}
    ),
    "triples of two columns": (
        {"two__tsv": "a\tb\n"}, r"two.tsv is not recognised: two.tsv has 2 columns", {"load": "two.tsv"}
    ),
    "triples of two columns in graph.toml": (
        {"kg__csv": "a,b\n", "graph__toml": "[triples]\n"},
        r"kg.csv has 2 columns .*, but triples have three: head, relation, tail",
    ),
    "a short triple": (
        {"kg__txt": "a\tr\tb\nb\tr\tc\na\tr\n"}, "kg.txt, line 3: expected 3 columns .*, got 2", {"load": "kg.txt"}
    ),
    "a triple without a head": (
        {"kg__txt": "a\tr\tb\n\tr\tc\nb\tr\ta\n"}, "kg.txt, line 2: the edge has an empty node id", {"load": "kg.txt"}
    ),
    "a data file is left out": (
        DATA_FILE, r"no file of .* is a relation: .* user_item.dat was left out: .* names it"
    ),
    "a data file in graph.toml": (
        DATA_FILE | {"graph__toml": edges_toml("has", "user_item.dat", "user", "item")}, {"user -has-> item": 2},
        {"notes": []},
    ),
    **{f"a data file beside tables: {name}": case for name, content in (
        ("vectors", b"\x00\x01\x02\xff"), ("log", b""), ("movie_actor", b"m9\ta9\n"), ("train", b"a\tr\tb\n"),
        ("movies", b"movie_id\nm7\n"),
    ) for name, case in (
        (name, ({"movie_actor__csv": "movie_id,actor_id\nm1,a1\n", f"{name}__dat": content},
                {"movie -movie_actor-> actor": 1},
                {"notes": [f"{name}.dat was left out: a .dat file can hold anything"]})),
        (f"{name}, ignored", ({"movie_actor__csv": "movie_id,actor_id\nm1,a1\n", f"{name}__dat": content,
                               "graph__toml": 'ignore = ["*.dat"]'}, {"movie -movie_actor-> actor": 1}, {"notes": []})),
    )},
    "a header that is marked as a comment, of nodes": (
        MARKED, {"movie -movie_actor-> actor": 1}, {"movie.names": ["Heat"]}
    ),
    "a header that is marked as a comment, in graph.toml": (
        MARKED | {"graph__toml": edges_toml(
            "cast", "movie_actor.csv", "movie", "actor",
            'weight = "# of roles"\ncolumns = ["# movie_id", "actor_id"]')},
        {"movie -cast-> actor": 1}, {"cast.weights": [4]},
    ),
    "a header that is marked as a comment, of triples": (
        {"kg__tsv": "# 2019\n# source\ttarget\trelation\na\tb\tknows\n"}, {"entity -knows-> entity": 1},
        {"load": "kg.tsv", "notes": ["kg.tsv: skipped 1 comment line above the table"]},
    ),
    **{f"ids that start like comments: {tags}{header}": (
        {"tag_post__txt": header + "".join(f"{tag}\tp\n" for tag in tags)}, {"tag -tag_post-> post": 4},
        {"tag.ids": tags, "notes": []},
    ) for tags in (["# 1 fan", "# 2 fan", "fan", "7"], ["# 1 fan", "# 2 fan", "# 3 fan", "# 4 fan"])
        for header in ("", "tag_id\tpost_id\n")},
    "comments with as many cells as the table": (
        {"user_item__csv": "# by Ann, 2019\n# of a shop\nuser_id,item_id\nu,i\n"}, {"user -user_item-> item": 1},
        {"notes": [SKIPPED]},
    ),
    "comments with numbers": (
        {"user_item__txt": "# Nodes:\t4\n# Edges:\t2\n1\t7\n2\t7\n"}, {"user -user_item-> item": 2},
        {"user.ids": [1, 2]},
    ),
    "comments of SNAP": (
        {"user_item__txt": "# Nodes: 4\n# FromNodeId\tToNodeId\n1\t7\n2\t7\n"}, {"user -user_item-> item": 2}
    ),
    "comments of words": (
        {"user_item__txt": "# user likes\na x\nb y\n"}, {"user -user_item-> item": 2}, {"user.ids": ["a", "b"]}
    ),
    "no line is a comment if graph.toml sets header": (
        {"tag_post__csv": "# a,p\nb,q\n", "graph__toml": "header = false\n"}, {"tag -tag_post-> post": 2},
        {"tag.ids": ["# a", "b"]},
    ),
    "a comment if graph.toml sets header": (
        {"tag_post__csv": "# of 2019\nb,q\n", "graph__toml": "header = false\n"}, "line 2: expected 3 columns .*, got 1"
    ),
    "numbers with a decimal comma are no nodes": (
        {"trips__csv": "\ufeffdriver;van;place;km\r\nAnn;v1;Hof;56,8\r\nBob;v1;Tor;2,1\r\nAnn;v2;Hof;9\r\n"
                       "Cem;v2;Tor;2,1\r\n"},
        {"driver -driver_van-> van": 4, "driver -driver_place-> place": 3},
        {"load": "trips.csv", "noted": ["the column km was left out"]},
    ),
    "numbers after a comma in a column of ids are lists": (
        {"movies__csv": "movie_id,title,actor_ids\n" + "".join(
            f'{row},x,"{row % 5},{5 + row % 4}"\n' for row in range(20))},
        {"movie -movie_actor-> actor": 40},
    ),
    **{f"a matrix is called one: {name}": (
        {"distances__csv": text}, "it looks like a matrix, whose columns are nodes; write a row for each",
        {"load": "distances.csv"},
    ) for name, text in (("square", "place;A;B;C\nA;;1;2\nB;1;;3\nC;2;3;\n"),
                         ("pivot", ";Pen;Mug\nAnn;2,5;\nBob;3;1,5\n"))},
    "labels that are not read are noted of their own table": (
        {"people__csv": "id:ID,name,:LABEL\n1,Ann,Person;Actor\n2,Bo,Person\n",
         "movies__csv": "id:ID,name,:LABEL\n7,Heat,Movie\n", "acted__csv": ":START_ID,:END_ID,:TYPE\n1,7,ACTED_IN\n"},
        {"Person -ACTED_IN-> Movie": 1}, {"notes": ["people.csv: "]},
    ),
    "words that say nothing": (
        {"movies_data__csv": "movie_id,title,data\n1,Heat,x\n2,Up,y\n",
         "movie_actor_list__csv": "movie_id,actor_id\n1,7\n2,7\n"},
        {"movie -movie_actor_list-> actor": 2}, {"movie.attributes": {"data": ["x", "y"]}},
    ),
    "a table of any name holds the nodes of its first id if names are called after them": (
        {"data__csv": "product_id,product_name,aisle_id\n10,Tea,94\n11,Salt,104\n12,Mint,94\n",
         "aisles__csv": "aisle_id,aisle\n94,tea\n104,spices\n"},
        {"product -product_aisle-> aisle": 3}, {"product.names": ["Tea", "Salt", "Mint"]},
    ),
    "a table of any name with a key to itself": (
        {"data__csv": "employee_id,name,manager_id,department_id\n1,Ann,,10\n2,Bob,1,10\n3,Cem,1,20\n",
         "departments__csv": "department_id,name\n10,Search\n20,Graphs\n"},
        {"employee -employee_department-> department": 3, "employee -manager-> employee": 2},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_layouts(tmp_path: Path, case: str) -> None:
    check_read(tmp_path / "g", *CASES[case])


def test_row_numbers_of_data_frames_are_not_ids(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pandas.DataFrame({"movie": ["m1", "m2"], "actor": ["a", "a"]}).to_csv(tmp_path / "movie_actor.csv")
    (tmp_path / "movies.csv").write_text('"","movie_id","name"\n"1","m1","Heat"\n"2","m2","Up"\n')
    genres = pandas.DataFrame({"movie": ["m1", "m2"], "genre": ["war", "war"]}, index=[5, 3])
    genres.to_parquet(tmp_path / "movie_genre.parquet")
    expected = {"movie -movie_actor-> actor": 2, "movie -movie_genre-> genre": 2}
    check_read(tmp_path, {}, expected, {"movie.ids": ["m1", "m2"], "movie.names": ["Heat", "Up"]})
    bad = {"movie_actor__csv": ",movie,actor\n0,m1,a\n1,m2,a,b\n"}
    check_read(tmp_path, bad, r"line 3: expected 3 columns as in the header \(, movie, actor\), got 4")


def test_tables_in_python() -> None:
    table = pa.table({"h": ["a", "a"], "r": ["likes", "knows"], "t": ["x", "b"]})
    hin = from_triples(table, {"a": "user", "b": "user", "x": "item"})
    assert shape(hin) == {"user -likes-> item": 1, "user -knows-> user": 1}
    assert shape(npth.load(table)) == {"entity -likes-> entity": 1, "entity -knows-> entity": 1}
    with pytest.raises(NeuPathError, match="a table of triples needs three columns, but this one has only h, r"):
        from_triples(table.select(["h", "r"]))
    persons = pa.table({"name": ["Ann", "Bob"], "city": ["Graz", "Graz"], "age": [30, 41]})
    advice = r"such as load\(\{\(\"person\", \"city\"\): table\[\[\"name\", \"city\"\]\]"
    with pytest.raises(NeuPathError, match=advice):
        npth.load({"person": persons})


def test_a_data_file_next_to_a_matlab_file(tmp_path: Path) -> None:
    savemat(tmp_path / "graph.mat", {"user_item": np.eye(2)})
    check_read(tmp_path, {"vectors__dat": b"\0\1"}, {"user -user_item-> item": 2})


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
    file, relation, skipped = name.replace(".", "__"), name[:-4], f"{name}: skipped 1 comment line above the table"
    expected, weights = {f"movie -{relation}-> actor": 3}, [1, 2, 3] if "weight" in text else [1, 1, 1]
    check_read(tmp_path / "g", {file: text}, expected, {"notes": [], f"{relation}.weights": weights})
    check_read(tmp_path / "g", {file: "# As of 2019\n" + text}, expected, {"notes": [skipped]})


def test_the_graph_toml_of_a_table_of_nodes_reads_all_that_belongs_to_them(tmp_path: Path) -> None:
    text = "name,city,skills,age\nAnn,Graz,sql;law,30\nBob,Graz,,41\nCem,Hof,law,30\nDan,Hof,sql;tax,52\n"
    refused = check_read(tmp_path / "g", {"persons__csv": text}, "is not recognised|is a relation")
    proposed = {"graph__toml": str(refused).partition(":\n")[2]}
    check_read(tmp_path / "g", proposed, {"person -person_city-> city": 4, "person -person_skill-> skill": 5})


@pytest.mark.parametrize("attributes", ["", 'attributes = ["day"]\n', "attributes = []\n"])
def test_optional_edges_have_attributes_and_name_the_line_of_an_empty_source(tmp_path: Path, attributes: str) -> None:
    orders = "customer,sku,day\nann,tea,2024-01-01\n,cup,2024-01-02\nbob,,2024-01-03\ncem,cup,2024-01-04\n"
    options = f'columns = ["customer", "sku"]\noptional = true\n{attributes}'
    files = {"orders__csv": orders, "graph__toml": edges_toml("bought", "orders.csv", "customer", "product", options)}
    check_read(tmp_path / "g", files, r"orders.csv, line 3: the edge has an empty customer id")
    filled = {"orders__csv": orders.replace("\n,cup", "\nann,cup")}
    hin = check_read(tmp_path / "g", filled, {"customer -bought-> product": 3})
    days = [str(day) for table in hin.edge_tables.values() for day in table.attributes["day"].to_pylist()]
    assert days == ([] if "[]" in attributes else ["2024-01-01", "2024-01-02", "2024-01-04"])


@pytest.mark.parametrize("word", ["file", "list", "data", "table", "part", "graph", "network", "sheet", "test", "copy"])
@pytest.mark.parametrize("columns", ["user_id,{}_id", "user_id,{}_id,added", "user,{}"])
def test_a_column_makes_a_type_of_any_word_in_the_name_of_a_relation(tmp_path: Path, word: str, columns: str) -> None:
    last = ("1", "2", "1") if columns.endswith("added") else ()
    rows = [",".join((*pair, *last[row : row + 1])) for row, pair in enumerate(["17", "18", "28"])]
    files = {
        "users__csv": "user_id,date\n1,2024-01-01\n2,2024-01-02\n",
        f"user_{word}__csv": "\n".join([columns.format(word), *rows]),
    }
    hin = check_read(tmp_path / "g", files, {f"user -user_{word}-> {word}": 3}, {"user.ids": [1, 2]})
    assert "date" in hin.nodes["user"].attributes.column_names


LINES = "order_id,customer_id,product_id,qty\n5001,1,7,2\n5001,1,8,1\n5002,2,8,1\n5003,3,9,4\n"
SHOP = {
    "customers__csv": "customer_id,city\n1,Ulm\n2,Bonn\n3,Ulm\n",
    "products__csv": "product_id,title\n7,tea\n8,cup\n9,pen\n",
    "order_lines__csv": LINES,
}
BOTH_KEYS = {"order -lines-> customer": 3, "order -order_product-> product": 4}


def test_every_key_of_order_lines_is_a_relation(tmp_path: Path) -> None:
    read_as = "product_id was read as the relation order -order_product-> product"
    more = {"order_product.attributes": {"qty": [2, 1, 1, 4]}, "noted": [read_as], "order.ids": [5001, 5002, 5003]}
    hin = check_read(tmp_path / "g", SHOP, BOTH_KEYS, more)
    assert not any("no relation leads" in note for note in hin.notes)
    assert npth.PathSim("product-order-customer-order-product").fit(hin).top_k("tea", k=1).names == ("cup",)
    (tmp_path / "g.toml").write_text(draft_of(str(tmp_path / "g")).to_toml())
    again = npth.load(tmp_path / "g", config=tmp_path / "g.toml")
    assert digest(again) == digest(hin)
    assert not any("product_id" in note for note in again.notes)


def test_a_key_of_order_lines_may_be_empty_but_not_of_another_table(tmp_path: Path) -> None:
    empty = {"order_lines__csv": LINES.replace("5002,2,8", "5002,2,")}
    check_read(tmp_path / "g", SHOP | empty, BOTH_KEYS | {"order -order_product-> product": 3})
    lost = {"order_lines__csv": LINES.replace("5002,2,8", "5002,2,88")}
    hin = check_read(tmp_path / "g", SHOP | lost, {"order -lines-> customer": 3})
    note = next(note for note in hin.notes if "product_id" in note and "not as a relation" in note)
    assert "'88' is no id in products.csv" in note
    (table,) = hin.edge_tables.values()
    assert "product_id" in table.attributes.column_names


def test_keys_of_order_lines_are_streamed_alike(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    store = npth.io.import_store(write(tmp_path / "g", **SHOP), tmp_path / "store")
    assert shape(npth.load(store)) == BOTH_KEYS


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_two_columns_named_after_their_types_are_an_edge_list(tmp_path: Path, delimiter: str) -> None:
    text = "customer,product\nann,tea\nann,cup\nbob,tea\ncem,cup\n".replace(",", delimiter)
    expected, path = {"customer -customer_product-> product": 4}, tmp_path / "g" / "sp.csv"
    notes = [
        "sp.csv: product was read as the relation customer -customer_product-> product",
        'sp.csv: edges that several rows repeat were read once; duplicates = "count" counts them',
    ]
    check_read(tmp_path / "g", {"sp__csv": text}, expected, {"load": "sp.csv", "notes": notes})
    twice = {"sp__csv": f"{text}ann{delimiter}tea\n"}
    hin = check_read(tmp_path / "g", twice, expected, {"load": "sp.csv", "customer_product.weights": [1] * 4})
    assert npth.load(path, duplicates="count").matrices[hin.schema.relations[0]].sum() == 5
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
    refused = check_read(tmp_path, {"sp__csv": text}, "is not recognised", {"load": "sp.csv"})
    (tmp_path / "g.toml").write_text(str(refused).partition("such as:\n")[2])
    assert npth.load(tmp_path / "sp.csv", config=tmp_path / "g.toml").schema.relations
