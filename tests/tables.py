"""Small tables that tests of readers, of the store and of the command line share."""

import gzip
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from neupath import HIN, NeuPathError, load

Files = Mapping[str, str | bytes | Mapping[str, Any]]
"""Contents by name, `movie_actor__tsv__gz` for movie_actor.tsv.gz; columns are written as Parquet, of any name."""
Case = tuple[Files, dict[str, int] | str] | tuple[Files, dict[str, int] | str, Mapping[str, Any]]
"""Files, and the graph that is expected of them: what `check_read` takes."""


def write(folder: Path, **files: str | bytes | Mapping[str, Any]) -> Path:
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        path = folder / name.replace("__", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, Mapping):
            path = path if path.suffix else path.with_suffix(".parquet")
            # two rows in a group; a column without values has integers
            arrays = {column: pa.array(values, None if values else pa.int64()) for column, values in content.items()}
            pq.write_table(pa.table(arrays), path, row_group_size=2)
            continue
        raw = content.encode() if isinstance(content, str) else content
        path.write_bytes(gzip.compress(raw) if path.suffix.lower() == ".gz" else raw)
    return folder


def edges_toml(name: str, file: str, source: str, target: str, more: str = "") -> str:
    """Return the section of a graph.toml that names the edges of a relation; more lines may follow."""
    return f'[[edges]]\nname = "{name}"\nfile = "{file}"\nsource = "{source}"\ntarget = "{target}"\n{more}\n'


def shape(hin: HIN) -> dict[str, int]:
    """Return how many entries the matrix of each relation has."""
    return {str(relation): int(matrix.nnz) for relation, matrix in hin.matrices.items()}


def observed(hin: HIN) -> dict[str, Any]:
    """Return all of a graph by short names, such as `movie.ids`, `movie.names`, `rates.weights`, `rates.attributes`."""
    seen: dict[str, Any] = {}
    for name, nodes in hin.nodes.items():
        names = None if nodes.names is None else nodes.names.to_pylist()
        seen |= {f"{name}.ids": nodes.ids.to_pylist(), f"{name}.names": names}
        seen[f"{name}.attributes"] = nodes.attributes.to_pydict()
    for relation, matrix in hin.matrices.items():
        table = hin.edge_tables.get(relation)
        seen[f"{relation.name}.weights"] = matrix.data.tolist()
        seen[f"{relation.name}.attributes"] = {} if table is None else table.attributes.to_pydict()
    return seen


def check_read(
    folder: Path, files: Files, expected: dict[str, int] | str, more: Mapping[str, Any] | None = None
) -> HIN | str:
    """Write files, load them, and compare; return the graph, or the sentence of the refusal.

    Parameters
    ----------
    folder
        Where to write.
    files
        Contents by name, as `write` takes them.
    expected
        What `shape` says of the graph, or a pattern that its refusal must match.
    more
        What `observed` says of it. Further keys: `notes` are the beginnings of all notes, `noted` are texts in some
        notes; `load` names the file to load rather than its folder.

    """
    more = dict(more or {})
    source: Path = write(folder, **files) / more.pop("load", "")
    if isinstance(expected, str):
        with pytest.raises(NeuPathError, match=expected) as refused:
            load(source)
        return str(refused.value)
    hin = load(source)
    assert shape(hin) == expected
    if (starts := more.pop("notes", None)) is not None:
        assert len(hin.notes) == len(starts), hin.notes
        assert all(note.startswith(start) for note, start in zip(hin.notes, starts, strict=True)), hin.notes
    assert not [text for text in more.pop("noted", ()) if not any(text in note for note in hin.notes)], hin.notes
    seen = observed(hin)
    assert {key: seen[key] for key in more} == more
    return hin


HOSTILE_TEXTS = (
    "\U0001f600", "\U0001d465", "\x7f", "\x85", "\u2028", "\u202e", "\ufeff", "\x1b[31m", "\x00", "a\nb", "a\tb",
    'say "hi"', "it's", "back\\slash", "a=b", "a.b", "a-b", "[x]", "{x}", "#", "  padded  ", "é", "e\u0301", "id",
    "name", "type", "source", "target", "weight", "../up",
)  # fmt: skip
"""Names that a file, a terminal or a notation might change."""

MOVIES = "movie_id\ttitle\tyear\n1\tAvatar\t2009\n2\tHeat\t\n3\tUp\t2009\n"
CAST = "movie_id\tactor_id\tbilling\n1\t7\t1\n1\t8\t2\n2\t8\t1\n"
FREEBASE = "/m/1\t/film/actor\t/m/2\n/m/3\t/film/actor\t/m/2\n/m/2\t/film/genre\t/m/4\n"
BAD_FOLDERS = {
    "no tables": ({"README__md": "hello"}, "has no tables \\(it has README.md\\); put one file per relation there"),
    "empty file": ({"movie_actor__csv": ""}, "movie_actor.csv is empty; a table has at least a header line"),
    "blank file": ({"movie_actor__csv": "\n\n"}, "movie_actor.csv has only blank lines and comments"),
    "too few columns": (
        {"movie_actor__csv": "movie_id,actor_id\n1,2\n\n3\n4,5\n"},
        r"movie_actor.csv, line 4: expected 2 columns as in the header \(movie_id, actor_id\), got 1",
    ),
    "too many columns": ({"movie_actor__csv": "movie_id,actor_id\n1,2,3\n"}, "line 2: expected 2 columns .*, got 3"),
    "unknown node": (
        {"movies__tsv": MOVIES, "movie_actor__tsv": CAST + "\n9\t7\t1\n"},
        r"movie_actor.tsv, line 6: the edge leads to movie '9', which is not in the node table of movie \(1 such",
    ),
    "unknown node of a pair": (
        {"nodes__csv": "id,type\na,x\n", "edges__csv": "source,relation,target\na,r,a\na,r,b\n"},
        "edges.csv, line 3: the edge leads to node 'b', which is not in the nodes table",
    ),
    "duplicate node": (
        {"movies__tsv": MOVIES + "1\tAgain\t2000\n", "movie_actor__tsv": CAST},
        "movies.tsv, line 5: node id '1' is repeated; node ids must be unique",
    ),
    "node without id": (
        {"movies__tsv": "movie_id\ttitle\n\tNone\n", "movie_actor__tsv": CAST},
        "movies.tsv, line 2: the node has an empty id",
    ),
    "edge without id": ({"a_b__csv": "a_id,b_id\nx,\n"}, "a_b.csv, line 2: the edge has an empty b id"),
    "same file twice": (
        {"movie_actor__tsv": CAST, "movie_actor__tsv__gz": CAST},
        "movie_actor.tsv and .*movie_actor.tsv.gz are the same table",
    ),
    "same content twice": (
        {"movie_actor__tsv": CAST, "movie_actor_copy__tsv": CAST},
        "movie_actor.tsv and movie_actor_copy.tsv have the same content, so their edges would count twice",
    ),
    "two node files": (
        {"movie__csv": "movie_id\n1\n", "movies__csv": "movie_id,x\n1,2\n", "movie_actor__tsv": CAST},
        "movie.csv and movies.csv both hold the nodes of type 'movie'",
    ),
    "binary": ({"movie_actor__csv": b"\x00\x01\x02PK"}, "movie_actor.csv is a binary file, not a text table"),
    "not UTF-8": (
        {"movie_actor__csv": "movie_id,actor_id\n1,J\xf6rg\n".encode("latin-1")},
        r"movie_actor.csv is not UTF-8 text \(byte 0xf6\); convert it, for example with iconv",
    ),
    "not UTF-8, late": (
        {"movie_actor__csv": b"movie_id,actor_id\n" + b"1,2\n" * 90_000 + b"1,J\xf6rg\n"},
        r"movie_actor.csv is not UTF-8 text \(byte 0xf6\)",
    ),
    "NaN weight": ({"a_b__csv": "a_id,b_id,weight\nx,y,1\nx,z,NaN\n"}, "a_b.csv, line 3: weight 'NaN' is not allowed"),
    "negative weight": ({"a_b__csv": "a_id,b_id,weight\nx,y,-1\n"}, "a_b.csv, line 2: weight '-1' is not allowed"),
    "no weight": ({"a_b__csv": "a_id,b_id,weight\nx,y,\n"}, "a_b.csv, line 2: weight '' is not allowed"),
    "twin columns": ({"a_b__csv": "x,x\n1,2\n"}, "a_b.csv has 2 columns named 'x'"),
    "no source column": (
        {"nodes__csv": "id,name\na,b\n", "edges__csv": "a,b\n1,2\n"},
        "edges.csv has no column for the source",
    ),
    "empty type": (
        {"nodes__csv": "id,type\na,\n", "edges__csv": "source,relation,target\n"},
        "nodes.csv, line 2: the type is empty",
    ),
    "not Parquet": ({"a_b__parquet": "hello, I am text"}, "a_b.parquet is named .parquet but is not"),
    "nothing understood": (
        {"stuff__csv": "colour,size\nred,1\n"},
        "no file of .* is a relation: stuff.csv has 2 columns .colour, size, first row: red, 1.*stuff.csv was left out",
    ),
    "broken toml": ({"a_b__csv": "a_id,b_id\n", "graph__toml": "x = ["}, "graph.toml is not valid TOML"),
    "unknown key": (
        {"a_b__csv": "a_id,b_id\n", "graph__toml": 'delimeter = ";"'},
        "the top level has no key 'delimeter' .*; did you mean 'delimiter'",
    ),
    "wrong kind": (
        {"a_b__csv": "a_id,b_id\n", "graph__toml": "take = 3"},
        "take = 3 in the top level must be a list of texts",
    ),
    "lacking key": (
        {"a_b__csv": "a_id,b_id\n", "graph__toml": '[[edges]]\nname = "r"\nfile = "a_b.csv"'},
        r"\[\[edges\]\] number 1 has no source, target",
    ),
    "long delimiter": (
        {"a_b__csv": "a_id,b_id\n", "graph__toml": 'delimiter = ";;"'},
        "delimiter = ';;' must be one char",
    ),
    "no delimiter": ({"a_b__csv": "a_id,b_id\n", "graph__toml": 'delimiter = ""'}, "delimiter = '' must be one char"),
    "unknown name column of a pair": (
        {
            "nodes__csv": "id,type\na,x\n",
            "edges__csv": "source,relation,target\n",
            "graph__toml": '[pair]\nname = "nope"',
        },
        "nodes.csv has no column 'nope' for the name",
    ),
    "unknown column": (
        {"a_b__csv": "a_id,b_id\n", "graph__toml": '[nodes.a]\nfile = "a_b.csv"\nid = "aid"'},
        r"a_b.csv has no column 'aid' for the id \(it has a_id, b_id\); did you mean 'a_id'",
    ),
    "unknown relation": (
        {"a_b__csv": "a_id,b_id\n", "graph__toml": 'take = ["c"]'},
        r"no relation named 'c' .*\(the relations are a_b\)",
    ),
    "file twice in toml": (
        {
            "a_b__csv": "a_id,b_id\n",
            "graph__toml": '[[edges]]\nname="r"\nfile="a_b.csv"\nsource="a"\ntarget="b"\n'
            '[[edges]]\nname="s"\nfile="a_b.csv"\nsource="a"\ntarget="b"',
        },
        "relations 'r' and 's' in graph.toml both use the columns a_id, b_id of a_b.csv; leave one out",
    ),
    "missing file in toml": (
        {"a_b__csv": "a_id,b_id\n", "graph__toml": '[nodes.a]\nfile = "none.csv"'},
        "no such file: .*none.csv",
    ),
    "bad duplicates": ({"a_b__csv": "a_id,b_id\nx,y\n", "graph__toml": 'duplicates = "sum"'}, "duplicates is 'sum'"),
}
"""Files that cannot be read, and the error for each."""
