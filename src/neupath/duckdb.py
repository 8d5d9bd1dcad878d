"""Search in SQL: `register` gives a DuckDB connection the table function `neupath_similar` over prepared indexes.

```sql
SELECT * FROM neupath_similar('authors.index', 'Mike', 10);
SELECT people.id, hits.* FROM people, neupath_similar('authors.index', people.id, 10) AS hits;
```
"""

from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from neupath.engine.files import read_manifest
from neupath.engine.prepared import PreparedIndex, open_index
from neupath.errors import MissingExtraError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_HITS = "neupath_hits"
_HIT = pa.struct([("rank", pa.int64()), ("id", pa.string()), ("name", pa.string()), ("score", pa.float64())])
_MACRO = f"""
    CREATE OR REPLACE TEMP MACRO neupath_similar(index, query, k := 10) AS TABLE
    SELECT unnest({_HITS}(index::VARCHAR, query::VARCHAR, k::BIGINT), recursive := true)
"""


def register(connection: "DuckDBPyConnection") -> None:
    """Let a connection search prepared indexes.

    `neupath_similar(index, query, k)` is a table with the columns rank, id, name and score; `k` is 10 unless it is
    given. The query is an id or an unambiguous name, or a column of these beside another table in FROM. Ids are texts.

    >>> import duckdb
    >>> from tempfile import TemporaryDirectory
    >>> from neupath import PathSim, load, prepare
    >>> connection = duckdb.connect()
    >>> register(connection)
    >>> with TemporaryDirectory() as folder:
    ...     index = prepare(load("toy"), PathSim("APVPA"), f"{folder}/index")
    ...     connection.execute("SELECT id, score FROM neupath_similar(?, 'Mike', 2)", [index]).fetchall()
    [('Bob', 1.0), ('Mary', 0.8)]
    """
    try:
        from duckdb import CatalogException, NotImplementedException
    except ModuleNotFoundError as error:
        raise MissingExtraError("DuckDB", "neupath[store]") from error
    with suppress(CatalogException, NotImplementedException):  # it is registered already
        connection.create_function(  # type: ignore[call-overload]
            _HITS, _hits_of, ["VARCHAR", "VARCHAR", "BIGINT"],
            "STRUCT(rank BIGINT, id VARCHAR, name VARCHAR, score DOUBLE)[]", type="arrow", null_handling="special",
        )  # fmt: skip
    connection.execute(_MACRO)


def _current(url: str) -> PreparedIndex:
    """Return the index at an address, opened again where it was prepared again."""
    return _opened(url, read_manifest(url)["sha256"])


@lru_cache(maxsize=8)
def _opened(url: str, _version: str) -> PreparedIndex:
    return open_index(url)


def _hits_of(urls: Any, queries: Any, ks: Any) -> pa.Array:
    """Return the hits of each query, all with the same index and k at once; no query has no hits."""
    asked = list(zip(urls.to_pylist(), queries.to_pylist(), ks.to_pylist(), strict=True))
    hits: list[list[dict[str, object]] | None] = [None] * len(asked)
    for url, k in sorted({(url, k) for url, query, k in asked if None not in (url, query, k)}):
        own = [at for at, (url_of, query, k_of) in enumerate(asked) if (url_of, k_of) == (url, k) and query is not None]
        for at, found in zip(own, _current(url).top_k([asked[at][1] for at in own], k), strict=True):
            rows = zip(found.ids, found.names, found.scores, strict=True)
            hits[at] = [
                {"rank": rank, "id": str(node_id), "name": name, "score": score}
                for rank, (node_id, name, score) in enumerate(rows, 1)
            ]
    return pa.array(hits, pa.list_(_HIT))
