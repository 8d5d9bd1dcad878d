"""Databases give the graph of their keys, the same from SQLite, DuckDB and PostgreSQL, and never the password."""

import signal
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from decimal import Decimal
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

import pyarrow as pa
import pytest

import neupath as npth
from neupath import HIN
from neupath.errors import GraphError, MissingExtraError, NeuPathError, SourceError, hide_password
from neupath.io import import_store
from neupath.io.formats import database_drivers
from tests.command_line import Run
from tests.patience import wait_until
from tests.postgres import MISSING, PASSWORD, Server, find_programs, run_postgres
from tests.tables import edges_toml, observed, write

Make = Callable[[str], str]
KINDS = ["sqlite", "duckdb", "postgresql"]


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    pytest.importorskip("psycopg")
    if find_programs() is None:
        pytest.skip(MISSING)
    with run_postgres() as server:
        yield server


def postgres_of(request: pytest.FixtureRequest) -> Server:
    server: Server = request.getfixturevalue("postgres")
    return server


@pytest.fixture
def make_in(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str, str], str]:
    """What makes a database of a kind by a script, and returns what `load` takes."""

    def make(kind: str, script: str) -> str:
        if kind == "postgresql":
            return postgres_of(request).create(script)
        path = tmp_path / f"made.{kind}"
        connection: Any = sqlite3.connect(path) if kind == "sqlite" else pytest.importorskip("duckdb").connect(path)
        with closing(connection):
            (connection.executescript if kind == "sqlite" else connection.execute)(script)
        return f"{kind}:///{path}"

    return make


@pytest.fixture(params=KINDS)
def make(request: pytest.FixtureRequest, make_in: Callable[[str, str], str]) -> Make:
    return partial(make_in, request.param)


@pytest.fixture
def sqlite(make_in: Callable[[str, str], str]) -> Make:
    return partial(make_in, "sqlite")


@pytest.fixture
def duckdb(make_in: Callable[[str, str], str]) -> Make:
    return partial(make_in, "duckdb")


def edges(hin: HIN) -> dict[str, list[tuple[object, object, float]]]:
    """Return the edges of each relation by the ids of their ends, with weights."""
    lists = {}
    for relation, matrix in hin.matrices.items():
        ends, entries = (hin.nodes[relation.source], hin.nodes[relation.target]), matrix.tocoo()
        rows = zip(entries.row.tolist(), entries.col.tolist(), entries.data.tolist(), strict=True)
        lists[str(relation)] = [(ends[0].id(row), ends[1].id(column), weight) for row, column, weight in rows]
    return lists


def config_of(folder: Path, text: str) -> Path:
    """Write a graph.toml."""
    return write(folder, graph__toml=text) / "graph.toml"


def ids(hin: HIN) -> dict[str, list[object]]:
    return {node_type: nodes.ids.to_pylist() for node_type, nodes in hin.nodes.items()}


# ---- Four schemas, each from three kinds of databases --------------------------------------------
SHOP = """
create table categories (id integer primary key, name varchar(40), parent_id integer references categories (id));
create table products (
  id integer primary key, name varchar(40) not null, price decimal(10, 2),
  category_id integer references categories (id)
);
create table customers (
  customer_id integer primary key, name varchar(40), country varchar(2), since date, active boolean
);
create table addresses (id integer primary key, street text, customer_id integer references customers (customer_id));
create table orders (
  id bigint primary key, customer_id integer not null references customers (customer_id), placed_at timestamp,
  billing_address_id integer references addresses (id), shipping_address_id integer references addresses (id)
);
create table order_items (
  order_id bigint references orders (id), product_id integer references products (id), quantity integer,
  primary key (order_id, product_id)
);
create table logs (message text);
create view cheap as select * from products where price < 20;
insert into categories values (1, 'All', null);
insert into categories values (2, 'Books', 1), (3, 'Games', 1);
insert into products values (3, 'Odd, "quoted"', 1.25, null), (1, 'Chess', 20.5, 3), (2, 'Atlas', 30, 2);
insert into customers values
  (7, 'Ann', 'NL', '2020-02-29', true), (5, '', '', null, false), (6, null, null, null, null);
insert into addresses values (1, 'Main' || chr(10) || 'street', 7), (2, '', 5);
insert into orders values (10, 7, '2024-01-01 10:00:00', 1, 2), (11, 5, null, 2, 2), (12, 7, null, null, null);
insert into order_items values (10, 1, 2), (10, 2, 1), (11, 2, 5);
"""


@pytest.mark.slow
def test_a_shop_has_the_relations_of_its_foreign_keys(make: Make, request: pytest.FixtureRequest) -> None:
    is_sqlite = request.node.callspec.params["make"] == "sqlite"
    hin = npth.load(make(SHOP.replace("chr(", "char(") if is_sqlite else SHOP))
    assert ids(hin) == {
        "address": [1, 2], "category": [1, 2, 3], "customer": [5, 6, 7], "order": [10, 11, 12], "product": [1, 2, 3]
    }  # fmt: skip
    assert edges(hin) == {
        "address -address_customer-> customer": [(1, 7, 1), (2, 5, 1)],
        "category -parent-> category": [(2, 1, 1), (3, 1, 1)],
        "order -order_items-> product": [(10, 1, 1), (10, 2, 1), (11, 2, 1)],
        "order -order_customer-> customer": [(10, 7, 1), (11, 5, 1), (12, 7, 1)],
        "order -billing_address-> address": [(10, 1, 1), (11, 2, 1)],
        "order -shipping_address-> address": [(10, 2, 1), (11, 2, 1)],
        "product -product_category-> category": [(1, 3, 1), (2, 2, 1)],
    }
    assert hin.nodes["product"].names.to_pylist() == ["Chess", "Atlas", 'Odd, "quoted"']
    assert hin.nodes["customer"].names.to_pylist() == ["", None, "Ann"]
    assert hin.nodes["address"].attributes.to_pydict() == {"street": ["Main\nstreet", ""]}
    assert hin.nodes["product"].attributes.to_pydict() == {"price": [20.5, 30.0, 1.25]}
    customers = hin.nodes["customer"].attributes
    assert customers.drop(["since"]).to_pydict() == {"country": ["", None, "NL"], "active": [False, None, True]}
    assert [field.type for field in customers.schema] == [pa.string(), pa.date32(), pa.bool_()]
    assert str(customers["since"][2]) == "2020-02-29"
    assert str(hin.nodes["order"].attributes["placed_at"][0]).startswith("2024-01-01 10:00:00")
    assert [note.partition(":")[0] for note in hin.notes] == [
        "the view cheap was left out", "the table logs was left out", "order_items"
    ]  # fmt: skip


MUSIC = """
create table "Artist" ("ArtistId" integer primary key, "Name" varchar(120));
create table "Track" (
  "TrackId" integer primary key, "Title" varchar(200), "ArtistId" integer references "Artist" ("ArtistId"), "Ms" integer
);
create table "Playlist" ("PlaylistId" integer primary key);
create table "PlaylistTrack" (
  "PlaylistId" integer references "Playlist" ("PlaylistId"), "TrackId" integer references "Track" ("TrackId"),
  primary key ("PlaylistId", "TrackId")
);
create table "Employee" ("EmployeeId" integer primary key, "ReportsTo" integer references "Employee" ("EmployeeId"));
insert into "Artist" values (1, 'AC/DC'), (2, 'Accept');
insert into "Track" values (1, 'One', 1, 5), (2, 'Two', 2, 6), (3, 'Three', null, 7);
insert into "Playlist" values (1);
insert into "PlaylistTrack" values (1, 1), (1, 3);
insert into "Employee" values (1, null);
insert into "Employee" values (2, 1);
"""
UNIVERSITY = """
create table department (code varchar(4) primary key, title varchar(40));
create table course (course_id varchar(8) primary key, title varchar(40), dept varchar(4) references department (code));
create table section (
  course_id varchar(8) references course (course_id), year integer, room text, primary key (course_id, year)
);
create table student (id integer primary key, student_name varchar(40), card varchar(8) unique);
create table takes (
  student_id integer references student (id), course_id varchar(8), year integer, grade varchar(2),
  primary key (student_id, course_id, year), foreign key (course_id, year) references section (course_id, year)
);
create table loan (id integer primary key, card varchar(8) references student (card), book text);
insert into department values ('CS', 'Computing'), ('10', 'Ten');
insert into course values ('db', 'Databases', 'CS'), ('ai', 'Learning', 'CS'), ('12', 'Twelve', '10');
insert into section values ('db', 2023, null), ('db', 2024, 'A'), ('ai', 2024, 'B');
insert into student values (1, 'Ann', 'x1'), (2, 'Bob', 'x2');
insert into takes values (1, 'db', 2023, 'A'), (1, 'ai', 2024, 'B'), (2, 'db', 2024, null);
insert into loan values (100, 'x2', 'SQL'), (101, null, 'Sets');
"""


FORUM = """
create table users (id integer primary key, label varchar(20));
create table posts (
  id integer primary key, owner_user_id integer references users (id), parent_id integer references posts (id)
);
create table votes (
  id integer primary key, user_id integer references users (id), post_id integer references posts (id),
  weight double precision
);
create table comments (
  id integer primary key, user_id integer references users (id), post_id integer references posts (id), body text
);
create table follows (follower_id integer references users (id), followed_id integer references users (id), since date);
create table badges (
  id integer primary key, user_id integer references users (id), users_id integer references users (id)
);
insert into users values (1, 'ann'), (2, 'bob');
insert into posts values (1, 1, null);
insert into posts values (2, 2, 1);
insert into votes values (1, 2, 1, 0.5), (2, 2, 1, 0.25), (3, null, 1, 1), (4, 1, 2, 3);
insert into comments values (1, 1, 1, 'hi'), (2, 2, 1, 'ho');
insert into follows values (1, 2, null), (2, 1, null);
insert into badges values (1, 1, 2);
"""
UNDECLARED = """
create table movies (movie_id integer, title text, director_id integer);
create table people (id integer primary key, name text);
create table movie_cast (movieId integer, people_id real, billing integer);
create table directors (id integer, name text);
create table notes (note text);
insert into movies values (1, 'Up', 5), (2, 'Heat', null);
insert into people values (1, 'Ann'), (2, 'Bob');
insert into movie_cast values (1, 1.0, 1), (1, 2.0, 2), (2, 2.0, 1), (2, null, 3);
insert into directors values (5, 'Zoe');
"""
RELATIONS = {
    MUSIC: {
        "Employee -ReportsTo-> Employee": [(2, 1, 1)],
        "Playlist -PlaylistTrack-> Track": [(1, 1, 1), (1, 3, 1)],
        "Track -Track_Artist-> Artist": [(1, 1, 1), (2, 2, 1)],
    },
    UNIVERSITY: {
        "course -dept-> department": [("12", "10", 1), ("ai", "CS", 1), ("db", "CS", 1)],
        "loan -card-> student": [(100, 2, 1)],
        "section -section_course-> course": [("ai|2024", "ai", 1), ("db|2023", "db", 1), ("db|2024", "db", 1)],
        "student -takes-> section": [(1, "ai|2024", 1), (1, "db|2023", 1), (2, "db|2024", 1)],
    },
    FORUM: {
        "user -badges-> user": [(1, 2, 1)],
        "comment -comment_user-> user": [(1, 1, 1), (2, 2, 1)],
        "comment -comment_post-> post": [(1, 1, 1), (2, 1, 1)],
        "user -follows-> user": [(1, 2, 1), (2, 1, 1)],
        "post -owner_user-> user": [(1, 1, 1), (2, 2, 1)],
        "post -parent-> post": [(2, 1, 1)],
        "user -votes-> post": [(1, 2, 3), (2, 1, 0.75)],
    },
    UNDECLARED: {
        "movie -movie_cast-> people": [(1, 1, 1), (1, 2, 1), (2, 2, 1)],
        "movie -movie_director-> director": [(1, 5, 1)],
    },
}
NOTES = {
    UNDECLARED: ["movies.director_id -> directors.id", "the table notes was left out"],
    FORUM: ["votes is read as a relation, because it links two tables"],
}


@pytest.mark.slow
@pytest.mark.parametrize("script", RELATIONS, ids=["music", "university", "forum", "undeclared"])
def test_keys_are_relations(make: Make, script: str) -> None:
    """Names keep their case, keys may have several columns, and a table that only links two others is a relation."""
    hin = npth.load(make(script))
    assert edges(hin) == RELATIONS[script]
    if script == MUSIC:
        assert hin.nodes["Track"].names.to_pylist() == ["One", "Two", "Three"]
        assert hin.nodes["Track"].attributes.column_names == ["Ms"]
    elif script == UNIVERSITY:
        assert hin.nodes["student"].names.to_pylist() == ["Ann", "Bob"]
        assert ids(hin)["department"] == ["10", "CS"]
    for text in NOTES.get(script, ()):
        assert any(text in note for note in hin.notes)


def test_a_graph_toml_names_tables_weights_and_nodes(make: Make, tmp_path: Path) -> None:
    source = make(FORUM)
    weight = 'columns = ["followed_id", "follower_id"]\nweight = "follower_id"'
    named = '[nodes.vote]\nfile = "votes"\n' + edges_toml("bought", "follows", "user", "user", weight)
    hin = npth.load(source, config=config_of(tmp_path, named), tables=["votes", "users", "posts", "follows"])
    assert edges(hin)["vote -vote_user-> user"] == [(1, 2, 1), (2, 2, 1), (4, 1, 1)]
    assert edges(hin)["user -bought-> user"] == [(1, 2, 2), (2, 1, 1)]
    by_label = npth.load(source, config=config_of(tmp_path, '[nodes.user]\nfile = "users"\nid = "label"\n'))
    assert edges(by_label)["post -owner_user-> user"] == [(1, "ann", 1), (2, "bob", 1)]
    with pytest.raises(SourceError, match="has no table 'voted', which graph.toml names .*; did you mean 'votes'?"):
        npth.load(source, config=config_of(tmp_path, '[nodes.vote]\nfile = "voted"\n'))


def test_tables_that_no_key_joins_are_read_as_files_are(sqlite: Make) -> None:
    source = sqlite(
        "create table ratings (userId bigint, movieId bigint, rating float); create table a (x text);"
        "insert into ratings values (7, 1, 3.5), (8, 1, 4), (8, 2, 5);"
    )
    hin = npth.load(source)
    assert edges(hin) == {"user -ratings-> movie": [(7, 1, 1), (8, 1, 1), (8, 2, 1)]}
    with pytest.raises(SourceError, match="made.sqlite"):
        npth.load(source, tables="a")


@pytest.mark.parametrize(
    ("script", "expected", "attributes", "notes"),
    [
        (
            """create table a (x text, y text, primary key (x, y));
            create table b (id integer primary key, x text, y text, foreign key (x, y) references a);
            insert into a values ('p|q', 'r'), ('p', 'q|r'), ('p\\', 'q');
            insert into b values (1, 'p|q', 'r'), (2, 'p', 'q|r'), (3, 'p', null);""",
            {"b -b_a-> a": [(1, "p\\|q|r", 1), (2, "p|q\\|r", 1)]},
            {"a": [], "b": []},
            [],
        ),
        (
            """create table "my-things " (id integer primary key); insert into "my-things " values (1), (2);
            create table "Odd Tags" (id integer primary key, "ref to" references "my-things ");
            create table "Thing Links" (a references "my-things ", b references "my-things ");
            insert into "Odd Tags" values (7, 1), (8, 1); insert into "Thing Links" values (1, 2);""",
            {"Odd_Tag -ref_to-> my_thing": [(7, 1, 1), (8, 1, 1)], "my_thing -Thing_Links-> my_thing": [(1, 2, 1)]},
            {"Odd_Tag": [], "my_thing": []},
            [],
        ),
        (
            """create table users (id integer primary key); create table rooms (id integer primary key);
            create table posts (id integer primary key, user_id references USERS (ID), room_id integer,
              u references users (rowid), v references gone);
            insert into users values (1); insert into posts values (5, 1, 7, 1, 1);""",
            {"post -post_user-> user": [(5, 1, 1)]},
            {"post": ["room_id", "u", "v"], "room": [], "user": []},
            ["posts.room_id: named after a table, but", "posts.u is no relation: users", "posts.v is no"],
        ),
        (
            """create table users (id integer primary key, small text generated always as (lower(id)) stored,
              large text generated always as (printf('%.*c', 100000000, 'x')) virtual);
            create table posts (id integer primary key, user_id integer references users (id));
            create virtual table words using fts5 (body); insert into words values ('x');
            insert into users (id) values (1); insert into posts values (7, 1);""",
            {"post -post_user-> user": [(7, 1, 1)]},
            {"post": [], "user": ["small"]},
            ["the generated column large of the table users was left out: "],
        ),
    ],
    ids=["keys-of-several-texts", "names-of-several-words", "columns-that-join-nothing", "generated-columns"],
)
def test_what_sqlite_declares(
    sqlite: Make, script: str, expected: dict[str, object], attributes: dict[str, list[str]], notes: list[str]
) -> None:
    hin = npth.load(sqlite(script))
    assert edges(hin) == expected
    assert {node_type: nodes.attributes.column_names for node_type, nodes in hin.nodes.items()} == attributes
    assert len(hin.notes) == len(notes)
    assert all(any(note.startswith(start) for note in hin.notes) for start in notes)
    if "Odd_Tag" in hin.nodes:
        assert npth.PathSim("Odd_Tag-my_thing-Odd_Tag").fit(hin).top_k(7).ids == (8,)


# ---- Bad rows ------------------------------------------------------------------------------------
DECLARED = "create table a (id integer primary key); create table b (id integer primary key, a_id references a);"
PAPERS = "create table venues (id, name); create table papers (id, venue_id); insert into papers values (1, 2);"


REFUSED = {
    f"{DECLARED} insert into b values (7, 99)": "table b, the row with id 7, a_id 99: the edge leads to a 99, which",
    f"{DECLARED} create table c (id text primary key, b_id references b); insert into c values (null, null)":
        "table c, the row with id None: the node has an empty id",
    PAPERS: "table papers, the row with id 1, venue_id 2: the edge leads to venue 2",
    f"{PAPERS} insert into venues values (2, 'x'), (2, 'y')": "the row with id 2: node id 2 is repeated",
    "create table a (id integer primary key, card text unique); insert into a values (1, 'x');"
    "create table b (id integer primary key, card references a (card)); insert into b values (3, 'y')":
        "table b, the row with id 3, card 'y': the edge leads to a 'y', which is not in the node table of a",
    "create table posts (id integer primary key); create table tags (post integer references posts (id));":
        "the table tags was left out: without a primary key it needs two foreign",
    "create table users (id integer primary key, x text); insert into users values (1, printf('%.*c', 2e7, 'x'));"
    "create table posts (id integer primary key, user_id integer references users); insert into posts values (7, 1)":
        r"cannot read .*made\.sqlite: string or blob too big",
}  # fmt: skip


@pytest.mark.parametrize(("script", "reason"), REFUSED.items())
def test_bad_rows_and_tables_are_named(sqlite: Make, script: str, reason: str) -> None:
    with pytest.raises(NeuPathError, match=reason):
        npth.load(sqlite(script))


def test_sqlite_values_of_any_type(sqlite: Make) -> None:
    path = sqlite(
        "create table a (id primary key, mixed, blob, real);"
        "create table b (id integer primary key, a_id references a (id));"
        "insert into a values (1, 1, x'00ff', 1), ('x', 'y', null, 2.5), (x'ab', 2.5, x'', null);"
        "insert into b values (1, 1), (2, 'x'), (3, x'ab');"
    )
    hin = npth.load(path)
    assert ids(hin)["a"] == ["1", "ab", "x"]
    assert edges(hin) == {"b -b_a-> a": [(1, "1", 1), (2, "x", 1), (3, "ab", 1)]}
    attributes = {"mixed": ["1", "2.5", "y"], "blob": ["00ff", "", None], "real": [1.0, None, 2.5]}
    assert hin.nodes["a"].attributes.to_pydict() == attributes


def test_a_refusal_of_tables_without_keys_has_a_graph_toml_that_reads_them(sqlite: Make, tmp_path: Path) -> None:
    source = sqlite("create table taxonomy (child text, parent text); insert into taxonomy values ('cat', 'mammal');")
    advice = r"^no table of .*; declare its foreign keys, .* in graph.toml \(config\), such as:"
    with pytest.raises(SourceError, match=advice) as refused:
        npth.load(source)
    toml = config_of(tmp_path, str(refused.value).partition("such as:\n")[2])
    assert edges(npth.load(source, config=toml)) == {"child -child_parent-> parent": [("cat", "mammal", 1)]}


# ---- Choosing tables -----------------------------------------------------------------------------
@pytest.mark.slow
def test_tables_chooses(make: Make, run: Run) -> None:
    source = make(FORUM)
    hin = npth.load(source, tables="users, posts")
    assert set(edges(hin)) == {"post -owner_user-> user", "post -parent-> post"}
    assert edges(npth.load(source, tables=["users", "posts"])) == edges(hin)
    with pytest.raises(SourceError, match=r"has no table 'user' \(it has badges, .*\); did you mean 'users'"):
        npth.load(source, tables="user")
    with pytest.raises(SourceError, match="are joined: votes of .* refer to posts, users; read these as well"):
        npth.load(source, tables="votes")
    with pytest.raises(SourceError, match="has no schema|has no schemas"):
        npth.load(source, schema="nope")
    shown = run("info", source, "--tables", "users,posts")
    assert shown.code == 0
    assert "post -owner_user-> user" in shown.out
    assert PASSWORD not in shown.out


def test_a_view_is_read_by_its_names_if_it_is_chosen(make: Make) -> None:
    script = FORUM + "create view post_pairs as select user_id, post_id from votes where user_id is not null;"
    hin = npth.load(make(script), tables=["users", "posts", "post_pairs"])
    assert edges(hin)["user -post_pairs-> post"] == [(1, 2, 1), (2, 1, 2)]


def test_tables_and_schema_belong_to_databases(tmp_path: Path, run: Run) -> None:
    for read in (npth.load, lambda source, **options: import_store(source, tmp_path / "store", **options)):
        for options in ({"schema": "x"}, {"tables": "x"}):
            with pytest.raises(SourceError, match="toy is not a database, and schema and tables choose tables of one"):
                read("toy", **options)
    assert "toy is not a database, and --schema and --tables" in run("info", "toy", "--tables", "x").err


@pytest.mark.slow
def test_databases_are_imported(make: Make, tmp_path: Path) -> None:
    source = make(FORUM)
    store = import_store(source, tmp_path / "store")
    assert edges(npth.load(store)) == edges(npth.load(source))
    content = b"".join(path.read_bytes() for path in store.rglob("*") if path.is_file())
    assert PASSWORD.encode() not in content
    assert b"%40rd" not in content


# ---- Files ---------------------------------------------------------------------------------------
def test_database_files_are_known_by_their_content(sqlite: Make, tmp_path: Path) -> None:
    sqlite(FORUM)
    path = tmp_path / "made.sqlite"
    for name in ("x.sqlite", "x.data", "x.csv"):
        path = path.rename(tmp_path / name)
        assert "user -votes-> post" in edges(npth.load(path))
        assert "user -votes-> post" in edges(npth.load(import_store(path, tmp_path / f"{name}.store")))
    (tmp_path / "text.db").write_text("hello")
    (tmp_path / "empty.db").write_text("")
    for source, reason in (
        (tmp_path / "text.db", "is not a SQLite or DuckDB database"),
        (tmp_path / "empty.db", "is empty"),
        (tmp_path / "no.db", "no such file"),
        (f"duckdb:///{path}", "x.csv is not a duckdb database, but a sqlite one"),
        (f"sqlite:///{tmp_path}/no.db", "no such file"),
        (f"sqlite:///{path}?mode=ro", "no parameters behind a question mark"),
        ("sqlite://", "no such file: sqlite://; write sqlite:///shop.db for a file of this folder"),
    ):
        with pytest.raises(SourceError, match=reason):
            npth.load(source)


def test_sqlite_files_are_checked_and_not_written(sqlite: Make, tmp_path: Path) -> None:
    source, path = sqlite("pragma journal_mode = wal;" + FORUM), tmp_path / "made.sqlite"
    before = path.read_bytes()
    path.chmod(0o444)
    npth.load(source)
    assert path.read_bytes() == before
    path.chmod(0o644)
    content = bytearray(before)
    content[4096 + 3] ^= 1  # the number of rows of the first table
    path.write_bytes(content)
    with pytest.raises(SourceError, match=r"made.sqlite is damaged: .*restore it"):
        npth.load(source)


def test_generated_columns_of_duckdb_are_left_out(duckdb: Make) -> None:
    hin = npth.load(
        duckdb("""
            create table users (id integer primary key,
              "user, b""s" varchar generated always as (repeat('x', 500000000)),
              s varchar default 'd GENERATED ALWAYS AS', price decimal(10, 2) generated always as (id / 2), n integer);
            create table posts (id integer primary key, user_id integer references users (id));
            insert into users (id, n) values (1, 3); insert into posts values (7, 1);
        """)
    )
    assert edges(hin) == {"post -post_user-> user": [(7, 1, 1)]}
    assert hin.nodes["user"].attributes.to_pylist() == [{"s": "d GENERATED ALWAYS AS", "n": 3}]
    assert [note.partition(" were")[0] for note in hin.notes] == [
        'the generated columns user, b"s, price of the table users'
    ]


def test_a_duckdb_view_reads_no_other_file(duckdb: Make, tmp_path: Path) -> None:
    (tmp_path / "secret.csv").write_text("user_id,post_id\n1,1\n")
    source = duckdb(f"{FORUM} create view pairs as select * from read_csv('{tmp_path}/secret.csv');")
    with pytest.raises(SourceError, match="made.duckdb: .*(disabled|Permission)"):
        npth.load(source, tables="users,posts,pairs")


LARGE_KEYS = """
    create table accounts (id {0} primary key, balance {2});
    create table payments (id integer primary key, account {1} references accounts (id));
    insert into accounts values (9007199254740992, 1.0), (9007199254740993, 2.0), ({3}, 3.0);
    insert into payments values (1, 9007199254740992), (2, 9007199254740993);
"""
"""Keys that a float cannot tell apart."""
NUMERIC = [("numeric", "numeric"), ("numeric(30,0)", "numeric(30,2)"), ("numeric(30,5)", "bigint")]


@pytest.mark.parametrize(
    ("database", "kinds"),
    [
        *(("duckdb", (kind, kind, "double")) for kind in ("decimal(38,0)", "decimal(25,2)", "hugeint")),
        *((database, (*kinds, kinds[0])) for database in ("postgresql", "row by row") for kinds in NUMERIC),
    ],
)
@pytest.mark.parametrize("more", ["9100000000000000001", "10000000000000000000001"])
def test_decimal_keys_keep_all_digits(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, database: str, kinds: tuple[str, ...], more: str
) -> None:
    if database == "row by row":  # as other servers are read
        monkeypatch.setattr(database_drivers, "_can_copy", lambda _dialect: False)
    make = request.getfixturevalue("duckdb") if database == "duckdb" else postgres_of(request).create
    hin = npth.load(make(LARGE_KEYS.format(*kinds, more)))
    found = ids(hin)["account"]
    balances = zip(map(int, found), hin.nodes["account"].attributes["balance"].to_pylist(), strict=True)
    assert dict(balances) == {9007199254740992: 1.0, 9007199254740993: 2.0, int(more): 3.0}
    first, second = (type(found[0])(key) for key in (9007199254740992, 9007199254740993))
    assert edges(hin)["payment -payment_account-> account"] == [(1, first, 1), (2, second, 1)]


def test_decimal_columns_that_graph_toml_names_keep_all_digits(duckdb: Make, tmp_path: Path) -> None:
    source = duckdb(
        "create table e (s decimal(38,0), t decimal(38,0));"
        "insert into e values (9007199254740992, 1), (9007199254740993, 2)"
    )
    hin = npth.load(source, config=config_of(tmp_path, edges_toml("e", "e", "a", "b", 'columns = ["s", "t"]')))
    assert edges(hin) == {"a -e-> b": [(9007199254740992, 1, 1), (9007199254740993, 2, 1)]}


def test_decimal_fractions_become_the_nearest_floats(duckdb: Make) -> None:
    hin = npth.load(
        duckdb("""
        create table users (id integer primary key, price decimal(10, 2), fine decimal(30, 20));
        create table likes (user_id integer references users (id), friend_id integer references users (id),
                            weight decimal(8, 2));
        insert into users values (1, 847.67, 0.1), (2, 274.09, 2.3), (3, null, null);
        insert into likes values (1, 2, 675.80);
        """)
    )
    attributes = hin.nodes["user"].attributes
    assert attributes.to_pydict() == {"price": [847.67, 274.09, None], "fine": [0.1, 2.3, None]}
    assert hin.nodes["user"].where("price = 847.67").tolist() == [True, False, False]
    assert edges(hin) == {"user -likes-> user": [(1, 2, 675.8)]}


def test_arrow_decimals_become_the_nearest_floats() -> None:
    amounts = pa.array([Decimal("847.67"), Decimal("274.09")])
    likes = pa.table({"user": ["ann", "bob"], "movie": ["up", "up"], "weight": amounts, "paid": amounts})
    hin = npth.load({("user", "movie"): likes, "user": pa.table({"id": ["ann", "bob"], "price": amounts})})
    seen = observed(hin)
    assert seen["user_movie.weights"] == seen["user_movie.attributes"]["paid"] == [847.67, 274.09]
    assert hin.nodes["user"].where("price = 847.67").tolist() == [True, False]


# ---- PostgreSQL ----------------------------------------------------------------------------------
def test_postgresql_types_are_exact(postgres: Server) -> None:
    source = postgres.create("""
        create type mood as enum ('sad', 'happy');
        create table things (
          id uuid primary key, big bigint, exact numeric(18, 0), price numeric(20, 4), ratio double precision,
          data bytea, feeling mood, tags text[], doc jsonb, made timestamptz, day date, span interval,
          fixed char(4), ok boolean, "odd ""name" text
        );
        create table parts (thing uuid references things, name text primary key);
        insert into things values
          ('00000000-0000-0000-0000-000000000002', 9223372036854775807, 123456789012345678, 1.5, 'NaN', '\\x00ff',
           'happy', '{a,"b c"}', '{"a": 1}', '2024-01-01 12:00+02', '2024-02-29', '1 day', 'ab', true,
           E'a,"b"\\n\\\\c\\r\\td'),
          ('00000000-0000-0000-0000-000000000001', null, null, null, 'Infinity', '', null, '{}', null, null, 'infinity',
           null, '', false, ''),
          ('00000000-0000-0000-0000-000000000003', -1, 0, 0, 0.1, null, null, null, null, null, null, null, null, null,
           'NULL');
        insert into parts values ('00000000-0000-0000-0000-000000000002', 'é'), (null, '');
    """)
    with pytest.raises(GraphError, match="table parts, the row with name '': the node has an empty id"):
        npth.load(source)
    with postgres.connect(source.rpartition("/")[2]) as connection:
        connection.execute("update parts set name = 'x' where name = ''")
    hin = npth.load(source)
    attributes = hin.nodes["thing"].attributes.to_pydict()
    assert ids(hin)["thing"][0] == "00000000-0000-0000-0000-000000000001"
    assert attributes["big"] == [None, 9223372036854775807, -1]
    assert attributes["exact"] == [None, 123456789012345678, 0]
    assert attributes["price"] == [None, 1.5, 0]
    assert str(attributes["ratio"]) == "[inf, nan, 0.1]"
    assert attributes["data"] == ["", "00ff", None]
    assert attributes["feeling"] == [None, "happy", None]
    assert attributes["tags"] == ["{}", '{a,"b c"}', None]
    assert str(attributes["made"][1]) == "2024-01-01 10:00:00"
    assert attributes["day"] == ["infinity", "2024-02-29", None]
    assert attributes["fixed"] == ["", "ab", None]
    assert attributes["ok"] == [False, True, None]
    assert attributes['odd "name'] == ["", 'a,"b"\n\\c\r\td', "NULL"]
    assert edges(hin) == {"part -part_thing-> thing": [("é", "00000000-0000-0000-0000-000000000002", 1)]}


def test_postgresql_schemas_partitions_and_inheritance(postgres: Server) -> None:
    source = postgres.create("""
        create schema sales; create schema empty;
        create table sales.users (id integer primary key);
        create table sales.visits (
          id integer, day date, user_id integer references sales.users, note text, primary key (id, day)
        ) partition by range (day);
        create table sales.visits_1 partition of sales.visits for values from ('2020-01-01') to ('2021-01-01');
        create table sales.visits_2 partition of sales.visits for values from ('2021-01-01') to ('2022-01-01');
        create table sales.vips (level integer) inherits (sales.users);
        create table sales.likes (visit integer, day date, user_id integer references sales.users,
          foreign key (visit, day) references sales.visits);
        insert into sales.likes select 1, '2020-05-05', 2 where false;
        create table elsewhere (id integer primary key, user_id integer references sales.users);
        create materialized view sales.copy as select * from sales.users;
        insert into sales.users values (1), (2);
        insert into sales.vips values (3, 1);
        insert into sales.visits values (1, '2020-05-05', 1, 'a'), (2, '2021-05-05', 2, 'b');
    """)
    hin = npth.load(source, schema="sales")
    assert ids(hin) == {"user": [1, 2], "visit": ["1|2020-05-05", "2|2021-05-05"]}
    assert len(edges(hin)["visit -visit_user-> user"]) == 2
    assert edges(hin)["visit -likes-> user"] == []
    assert sorted(note.partition(" was")[0] for note in hin.notes) == ["the table vips", "the view copy"]
    with pytest.raises(SourceError, match=r"has no tables in this schema; choose one of .*sales.* with schema"):
        npth.load(source, schema="empty")
    with pytest.raises(SourceError, match="no two tables .* are joined: elsewhere of .* refer to sales.users; read"):
        npth.load(source)


@pytest.mark.parametrize("script", [SHOP, UNIVERSITY])
@pytest.mark.slow
def test_other_servers_give_the_same_graph_row_by_row(
    postgres: Server, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    source = postgres.create(script)
    copied = npth.load(source)
    monkeypatch.setattr(database_drivers, "_can_copy", lambda _dialect: False)
    streamed = npth.load(source)
    assert (ids(streamed), edges(streamed), streamed.notes) == (ids(copied), edges(copied), copied.notes)
    for node_type, nodes in copied.nodes.items():
        assert streamed.nodes[node_type].names == nodes.names
        assert streamed.nodes[node_type].attributes.to_pydict() == nodes.attributes.to_pydict()


def test_a_view_cannot_write(postgres: Server, tmp_path: Path) -> None:
    config = config_of(tmp_path, '[nodes.pair]\nfile = "pairs"\nid = "user_id"\n')
    source = postgres.create(
        FORUM + "create function spy() returns integer language plpgsql volatile as "
        "$$ begin insert into users values (99, 'x'); return 1; end $$;"
        "create view pairs as select id as user_id, id as post_id, spy() from users;"
    )
    with pytest.raises(SourceError, match="cannot execute INSERT in a read-only transaction"):
        npth.load(source, tables="users,posts,pairs", config=config)


def test_all_tables_are_of_one_moment(postgres: Server) -> None:
    source = postgres.create(FORUM)
    with postgres.connect(source.rpartition("/")[2]) as other:
        done = []

        def write(stage: str, _done: int, _total: int | None) -> None:
            if not done:
                other.execute("insert into users values (50, 'new'); insert into votes values (50, 50, 1, 1)")
            done.append(stage)

        hin = npth.load(source, progress=write)
    assert 50 not in ids(hin)["user"]
    assert "reading users" in done


@pytest.mark.parametrize("password", ["wrong-s3cret", PASSWORD])
@pytest.mark.slow
def test_passwords_are_never_shown(postgres: Server, run: Run, password: str) -> None:
    from urllib.parse import quote

    good = postgres.url(password=password)
    urls = [
        good,
        good.replace(f":{postgres.port}/", ":1/"),
        good.replace("127.0.0.1", "no-such-host.invalid"),
        good.replace("/postgres", "/no_such_database"),
        good.replace("127.0.0.1:", "127.0.0.1:port"),
        f"postgresql://ann:{password}@127.0.0.1:{postgres.port}/postgres",
        f"postgresql://127.0.0.1:{postgres.port}/postgres?user=ann&password={quote(password, safe='')}",
        good.replace("postgresql://", "nosuch://"),
        good.replace("postgresql://", "mysql+no_such_driver://"),
        good.replace("postgresql://", "http://"),
        good + "?no_such_parameter=1",
    ]
    for url in urls:
        with pytest.raises(NeuPathError) as refused:
            npth.load(url)
        shown = [str(refused.value), repr(refused.value.args), repr(refused.value.__cause__)]
        for command in ("info {}", "import {} --to x --memory-limit 1GiB", "search {} a -p x"):
            result = run(*(part.format(url) for part in command.split()))
            assert result.code == 2, (url, result)
            shown += [result.out, result.err]
        for secret in (password, quote(password, safe=""), "s3cret"):
            assert not [text for text in shown if secret in text], url


def test_served_databases_are_called_as_they_are() -> None:
    from neupath.cli.serve_command import _read_names

    url = "postgresql://ann:s3cret@host/shop?sslmode=require"
    assert _read_names("GRAPH", [url, f"other={url}"], own_name=True) == {"shop": url, "other": url}
    with pytest.raises(NeuPathError) as refused:
        _read_names("GRAPH", [f"a/b={url}"], own_name=True)
    assert "s3cret" not in str(refused.value)


def test_missing_drivers_are_named() -> None:
    pytest.importorskip("sqlalchemy")
    with pytest.raises(MissingExtraError, match="this needs MySQLdb, .*pip install 'mysqlclient'"):
        npth.load("mysql://host/shop")


def test_passwords_of_urls_are_hidden() -> None:
    assert hide_password("x://a:b@c:d e/f@g y") == "x://a:***@g y"
    assert hide_password("http://a:b@c/d") == "http://a:***@c/d"
    for harmless in ("x://a@e/f:g", "http://example.org:80/a@b", "http://example.org/a:b@c"):
        assert hide_password(harmless) == harmless


# ---- Interrupting --------------------------------------------------------------------------------
ENDLESS = {
    "sqlite": "with recursive n (user_id) as (select 1 union all select user_id + 0 from n) select user_id from n",
    "duckdb": "select range % 7 as user_id from range(1000000000000000)",
    "postgresql": "select 1 as user_id from generate_series(1, 1000000000) a, generate_series(1, 1000000000) b",
}


@pytest.mark.slow
def test_an_interrupt_ends_a_long_statement(
    make: Make, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = request.node.callspec.params["make"]
    view = f"create view numbers as select count(*) as id, max(user_id) as user_id from ({ENDLESS[kind]}) as n;"
    source = make(FORUM + view)
    main = threading.main_thread().ident
    assert main is not None
    reading: list[float] = []

    def read(*arguments: Any) -> Any:
        reading.append(process_time())
        return read_table(*arguments)

    read_table = database_drivers.Database.read
    monkeypatch.setattr(database_drivers.Database, "read", read)
    signal.siginterrupt(signal.SIGINT, False)  # as Polars does

    def is_running() -> bool:
        if kind != "postgresql":
            return bool(reading) and process_time() - reading[0] > 0.5
        with postgres_of(request).connect() as other:
            query = "select 1 from pg_stat_activity where state = 'active' and query like 'COPY%'"
            return bool(other.execute(query).fetchall())

    def interrupt() -> None:
        wait_until(is_running, "the statement does not run")
        signal.pthread_kill(main, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        npth.load(source, tables="numbers,users")
    thread.join()
    if kind == "postgresql":
        wait_until(lambda: not is_running(), "the server goes on")


def test_ids_that_look_empty_or_differ_only_by_case_are_noted_and_can_be_settled(make: Make, tmp_path: Path) -> None:
    source = make(
        "create table users (id varchar(20) primary key, age integer);"
        "insert into users values ('Ann', 1), ('bo', 2), ('NULL', 3);"
        "create table items (id varchar(20) primary key); insert into items values ('tea'), ('Tea');"
        "create table bought (user_id varchar(20) references users (id), item_id varchar(20) references items (id));"
        "insert into bought values ('Ann', 'tea'), ('bo', 'Tea'), ('NULL', 'Tea'), ('NULL', 'tea');"
    )
    notes = npth.load(source).notes
    assert any("user: the id 'NULL' (2 edges) looks like an empty cell; " in note for note in notes)
    assert any("item: 1 id differs from another only by case or spaces, such as 'Tea' and 'tea'; " in n for n in notes)
    hin = npth.load(source, config=config_of(tmp_path, 'missing_ids = ["NULL"]\nfold_ids = true\n'))
    assert ids(hin) == {"user": ["ann", "bo"], "item": ["tea"]}
    assert sorted(edges(hin)["user -bought-> item"]) == [("ann", "tea", 1), ("bo", "tea", 1)]
    assert hin.notes == ()
