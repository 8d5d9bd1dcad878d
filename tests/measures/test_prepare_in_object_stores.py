"""Prepared indices in object stores, against a real server: few bytes are read and verified, and failures retried."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import fs

from neupath import HIN, PathSim, load, open_index, prepare
from neupath.engine.files import BLOCK
from neupath.errors import SourceError, WriteError
from neupath.graph.hin import Edges
from neupath.graph.metapath import Relation
from neupath.graph.nodes import Nodes
from neupath.measures import prepare as preparing
from tests.graphs import shop_graph
from tests.object_stores import Proxy, proxy_of, put, set_s3
from tests.patience import PATIENCE
from tests.prepared_index import assert_same_answers

pytestmark = pytest.mark.slow
UITIU = "user-item-tag-item-user"


@pytest.fixture(autouse=True)
def _temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write indices here before they are uploaded."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))


@pytest.fixture
def proxy(endpoint: str, bucket: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:  # noqa: ARG001
    with proxy_of(endpoint) as before:
        set_s3(monkeypatch, before.address)
        yield before


def names(store: Any, place: str) -> list[str]:
    return sorted(each.base_name for each in store.get_file_info(fs.FileSelector(f"graphs/{place}")))


def graph_of(version: int, size: int = 30) -> HIN:
    """Each item is bought by three users on average, and all have long names."""
    rng = np.random.default_rng(version)
    users = pa.array([f"u{i}" for i in range(size)])
    nodes = [
        Nodes("user", users, pa.array([f"User number {i}" for i in range(size)])),
        Nodes("item", pa.array(np.arange(size))),
    ]
    return HIN.build(nodes, [Edges(Relation("user", "buys", "item"), *rng.integers(0, size, (2, 3 * size)))])


def test_an_index_in_a_bucket_answers_as_its_measure(bucket: Any, tmp_path: Path) -> None:
    measure, steps = PathSim(UITIU).fit(shop_graph()), []
    url = prepare(measure.hin_, measure, "s3://graphs/shop/", progress=lambda *step: steps.append(step))
    assert url == "s3://graphs/shop"
    index = open_index(f"{url}/")
    assert_same_answers(index, measure)
    assert index.top_k("User 7") == measure.top_k("u7")
    assert steps[-1] == ("uploading", steps[-1][2], steps[-1][2])
    assert names(bucket, "shop") == sorted(["index.json", index.files.data])
    assert not list((tmp_path / "tmp").iterdir())


def test_a_light_query_reads_few_bytes_by_few_requests(proxy: Proxy) -> None:
    hin = graph_of(1, 100_000)
    measure = PathSim("user-item-user").fit(hin)
    url = prepare(hin, measure, "s3://graphs/large")
    proxy.requests.clear()
    index = open_index(url)
    hits = index.top_k("User number 4711", 5)
    assert hits == measure.top_k("u4711", 5)
    assert index.files.bytes_read < 0.3 * index.files.size
    assert index.files.bytes_read < 100 * BLOCK
    assert len(proxy.requests) < 100
    before = index.files.bytes_read
    assert index.top_k("User number 4711", 5) == hits
    assert index.files.bytes_read == before  # what was read is cached


@pytest.mark.parametrize(("seconds", "statuses"), [(0.05, []), (0.0, [503]), (0.0, [503, 503, 500]), (0.02, [503])])
def test_a_bucket_that_is_slow_or_fails_some_times(proxy: Proxy, seconds: float, statuses: list[int]) -> None:
    measure = PathSim(UITIU).fit(shop_graph())
    url = prepare(measure.hin_, measure, f"s3://graphs/slow{seconds}{len(statuses)}")
    proxy.seconds = seconds
    for _ in range(2):
        proxy.statuses.extend(statuses)
        index = open_index(url)
        proxy.statuses.extend(statuses)
        assert index.top_k("User 7", 5) == measure.top_k("u7", 5)
        proxy.statuses.extend(statuses)
        assert index.top_k([f"u{i}" for i in range(40)] * 2, 5) == measure.top_k([f"u{i}" for i in range(40)] * 2, 5)


def test_a_bucket_that_goes_away_is_one_sentence(proxy: Proxy) -> None:
    url = prepare(shop_graph(), PathSim(UITIU), "s3://graphs/gone")
    index = open_index(url)
    proxy.statuses.extend([403] * 20)
    with pytest.raises(
        SourceError, match=r"cannot read s3://graphs/gone: .*; check the name of the bucket, the net"
    ) as gone:
        index.top_k("u0")
    assert "\n" not in str(gone.value)
    proxy.statuses.clear()
    assert len(index.top_k("u0")) == 10


@pytest.mark.parametrize(
    "array", ["left.indptr", "left.data", "right.indices", "source.words", "left.data.crc", "source.ids.text"]
)
@pytest.mark.parametrize("damage", ["missing", "flipped", "shorter", "longer"])
def test_a_missing_or_damaged_object_is_one_sentence(bucket: Any, array: str, damage: str) -> None:
    measure = PathSim(UITIU).fit(shop_graph())
    url = prepare(measure.hin_, measure, f"s3://graphs/{damage}-{array}")
    path = f"{url.removeprefix('s3://graphs/')}/{open_index(url).files.data}/{array}"
    content = bucket.open_input_stream(f"graphs/{path}").read()
    if damage == "missing":
        bucket.delete_file(f"graphs/{path}")
    else:
        put(
            bucket,
            path,
            {"flipped": content[:-1] + bytes([content[-1] ^ 4]), "shorter": content[:-1]}.get(damage, content + b"x"),
        )
    try:
        assert open_index(url).top_k("u0") == measure.top_k("u0")
        assert damage == "longer"  # of which only what is known is read
    except SourceError as error:
        assert f"s3://graphs/{path} is missing or damaged; prepare the index again, or open it anew" in str(error)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, r"s3://graphs/no-\w+ has no index.json, so it is no prepared index; `neupath prepare` makes one"),
        (b"{}", r"s3://graphs/no-\w+/index.json is no manifest of an index"),
        (b'{"format": "neupath index", "version": 9}', "was prepared by a newer version of neupath, in version 9"),
    ],
)
def test_a_bucket_without_an_index(bucket: Any, content: bytes | None, message: str) -> None:
    place = f"no-{'nothing' if content is None else len(content)}"
    if content is not None:
        put(bucket, f"{place}/index.json", content)
    with pytest.raises(SourceError, match=message):
        open_index(f"s3://graphs/{place}")


@pytest.mark.usefixtures("bucket")
def test_a_public_bucket_is_read_without_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    url = prepare(load("toy"), PathSim("APVPA"), "s3://graphs/public")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    assert open_index(url).top_k("Mike", 1).ids == ("Bob",)


# ---- Versions ------------------------------------------------------------------------------------
def test_readers_go_on_until_the_third_preparation(bucket: Any) -> None:
    readers = []
    for version in range(3):
        measure = PathSim("user-item-user").fit(graph_of(version))
        url = prepare(measure.hin_, measure, "s3://graphs/versions")
        readers.append((open_index(url), measure))
        for index, own in readers[-2:]:
            assert index.top_k("u3") == own.top_k("u3")
            assert index.top_k(f"u{4 + version}") == own.top_k(f"u{4 + version}")
    assert names(bucket, "versions") == sorted(["index.json", *(index.files.data for index, _ in readers[1:])])
    oldest, measure = readers[0]
    oldest.files._cache.clear()
    with pytest.raises(SourceError, match=r"is missing or damaged; prepare the index again, or open it anew if it was"):
        oldest.top_k("u3")


@pytest.mark.usefixtures("bucket")
def test_a_reader_while_a_new_version_is_written() -> None:
    first, second = (PathSim("user-item-user").fit(graph_of(version)) for version in (0, 1))
    url = prepare(first.hin_, first, "s3://graphs/meanwhile")
    index, stages = open_index(url), set()

    def search(stage: str, *_: object) -> None:
        stages.add(stage)
        for own in (index, open_index(url)):
            assert own.top_k("u3") == first.top_k("u3")

    prepare(second.hin_, second, url, progress=search)
    assert "uploading" in stages
    assert open_index(url).top_k("u3") == second.top_k("u3")


@pytest.mark.usefixtures("bucket")
def test_an_interrupted_upload_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(stage: str, done: int, _: int | None) -> None:
        if stage == "uploading" and done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare(graph_of(0), PathSim("user-item-user"), "s3://graphs/upload", progress=stop)
    with pytest.raises(SourceError, match=r"has no index.json"):
        open_index("s3://graphs/upload")
    monkeypatch.setattr(preparing, "_write_arrays", None)  # all is computed already
    prepare(graph_of(0), PathSim("user-item-user"), "s3://graphs/upload")
    assert len(open_index("s3://graphs/upload").top_k("u3", 5)) > 0


def test_what_is_not_of_an_index_is_left_alone(bucket: Any) -> None:
    put(bucket, "mine/data-2020/a.csv", "x")
    with pytest.raises(
        WriteError, match="s3://graphs/mine has files in it and is no index; give the name of a new folder"
    ):
        prepare(load("toy"), PathSim("APVPA"), "s3://graphs/mine")
    put(bucket, "newer/index.json", '{"format": "neupath index", "version": 9}')
    with pytest.raises(SourceError, match="was prepared by a newer version of neupath"):
        prepare(load("toy"), PathSim("APVPA"), "s3://graphs/newer")
    for version in range(3):
        prepare(graph_of(version), PathSim("user-item-user"), "s3://graphs/both")
        put(bucket, "both/data-2020/a.csv", "x")
    assert names(bucket, "mine/data-2020") == names(bucket, "both/data-2020") == ["a.csv"]


@pytest.mark.usefixtures("bucket")
def test_two_preparations_of_one_place_at_once() -> None:
    errors: list[str] = []

    def prepare_too() -> None:
        try:
            prepare(graph_of(0), PathSim("user-item-user"), "s3://graphs/twice")
        except WriteError as error:
            errors.append(str(error))

    def begin(stage: str, done: int, _: int | None) -> None:
        if stage == "uploading" and not done:
            thread = Thread(target=prepare_too)
            thread.start()
            thread.join(PATIENCE)

    prepare(graph_of(0), PathSim("user-item-user"), "s3://graphs/twice", progress=begin)
    assert errors == ["another process prepares s3://graphs/twice; wait until it is done"]
