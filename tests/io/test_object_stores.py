"""Graphs in object stores, against a real server of moto; without a server, one sentence within seconds."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

import neupath as npth
from neupath._runtime import object_stores
from neupath.errors import NeuPathError, SourceError
from neupath.io import import_store
from neupath.store import open_store
from tests.object_stores import free_port, put, set_s3
from tests.tables import CAST, MOVIES, shape


@pytest.mark.slow
def test_a_folder_of_objects_is_read_as_a_folder_of_files(bucket: Any, tmp_path: Path) -> None:
    put(bucket, "films/movies.tsv", MOVIES)
    put(bucket, "films/movie_actor.tsv", CAST)
    put(bucket, "films/.hidden.tsv", "x")
    pq.write_table(pa.table({"movie_id": [1, 2], "genre_id": ["a", "b"]}), tmp_path / "part.parquet")
    put(bucket, "films/movie_genre/year=2020/part.parquet", (tmp_path / "part.parquet").read_bytes())
    put(bucket, "others/films.csv", "x")
    seen: list[tuple[str, int, int | None]] = []
    hin = npth.load("s3://graphs/films/", progress=lambda *step: seen.append(step))
    assert shape(hin) == {"movie -movie_actor-> actor": 3, "movie -movie_genre-> genre": 2}
    assert hin.nodes["movie"].names.to_pylist() == ["Avatar", "Heat", "Up"]
    downloads = [step for step in seen if step[0] == "downloading"]
    assert downloads[0][1] == 0
    assert downloads[-1][1] == downloads[-1][2]
    assert not any("neupath-" in note for note in hin.notes)
    assert shape(open_store(import_store("s3://graphs/films", tmp_path / "store")).hin()) == shape(hin)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("movie_actor.csv", "movie_id,actor_id\n1,a\n2,a\n"),
        ("kg.nt", "<http://a.b/m> <http://a.b/p> <http://a.b/1> .\n<http://a.b/m> <http://a.b/p> <http://a.b/2> .\n"),
        ("movies.jsonl", '{"id": 1, "actors": ["a", "b"]}\n'),
    ],
)  # fmt: skip
def test_one_object_is_read_as_a_file(bucket: Any, name: str, content: str) -> None:
    import gzip

    put(bucket, f"single/{name}", content)
    put(bucket, f"single/{name}.gz", gzip.compress(content.encode()))
    for source in (f"s3://graphs/single/{name}", f"s3://graphs/single/{name}.gz"):
        assert sum(shape(npth.load(source)).values()) == 2, source


@pytest.mark.slow
def test_errors_name_the_objects(bucket: Any) -> None:
    put(bucket, "bad/movie_actor.csv", "movie_id,actor_id\n1,a,b\n")
    with pytest.raises(NeuPathError, match=r"^s3://graphs/bad/movie_actor.csv, line 2: expected 2 columns"):
        npth.load("s3://graphs/bad")
    with pytest.raises(SourceError, match=r"there are no objects under s3://graphs/nothing"):
        npth.load("s3://graphs/nothing")
    with pytest.raises(SourceError, match=r"cannot read s3://no-such-bucket/x: .*bucket|no objects under"):
        npth.load("s3://no-such-bucket/x")


@pytest.mark.slow
def test_what_does_not_fit_on_the_disk_is_not_copied(bucket: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    put(bucket, "films/movies.tsv", MOVIES)
    monkeypatch.setattr(object_stores.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 7}))
    with pytest.raises(SourceError, match=r"s3://graphs/films has 0 MiB, but .* has 0 MiB left; set TMPDIR"):
        npth.load("s3://graphs/films")


def test_names_that_lead_out_of_the_folder_are_refused() -> None:
    class Store:
        def get_file_info(self, what: Any) -> Any:
            if isinstance(what, str):
                return fs.FileInfo(what, fs.FileType.Directory)
            return [fs.FileInfo("b/x/../../../etc/passwd", fs.FileType.File, size=1)]

    with pytest.raises(SourceError, match="cannot be the name of a file"):
        object_stores._find_objects(Store(), "b/x", "s3://b/x")


@pytest.mark.slow
def test_a_store_that_cannot_be_reached_is_refused_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    set_s3(monkeypatch, f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("CLOUD_STORAGE_EMULATOR_ENDPOINT", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setattr(object_stores, "_GCS_SECONDS", 1)
    for source in ("s3://graphs/films", "gs://graphs/films"):
        with pytest.raises(SourceError, match=f"cannot read {source}: .*; check the name of the bucket, the") as caught:
            npth.load(source)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("source", ["s3://", "s3://key:secret@bucket/x", "s3://bucket/x?region=y", "gs:///x/"])
def test_addresses_hold_no_keys(source: str) -> None:
    with pytest.raises(SourceError, match="give an object store as ..://bucket/folder") as caught:
        npth.load(source if source != "gs:///x/" else "gs:///")
    assert "secret@" not in str(caught.value)
