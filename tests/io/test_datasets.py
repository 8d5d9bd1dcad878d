"""Graphs with a name: the standard library, and public graphs from a local server."""

import gzip
import hashlib
import json
import shutil
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import neupath as npth
from neupath import HIN, NeuPathError
from neupath.io import datasets
from neupath.io.datasets import PUBLIC, PublicDataset, build_imdb, build_stdlib, fetch, find_links, public_dataset
from tests.tables import shape, write


@pytest.fixture(scope="module")
def stdlib() -> HIN:
    return npth.load("stdlib")


@pytest.fixture
def _small_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A standard library that is the package json alone."""
    shutil.copytree(Path(json.__file__).parent, tmp_path / "lib" / "json")
    monkeypatch.setattr(sysconfig, "get_paths", lambda *_: {"stdlib": str(tmp_path / "lib")})


def test_stdlib_has_the_size_of_the_library(stdlib: HIN) -> None:
    assert 400 < stdlib.num_nodes("module") < 900
    assert 1800 < stdlib.num_nodes("class") < 4000
    assert 3500 < stdlib.num_nodes("method") < 8000
    assert 8000 < shape(stdlib)["class -has-> method"] < 20000


def test_stdlib_ranks_related_classes_first(stdlib: HIN) -> None:
    parsers = npth.PathSim("class-method-class").fit(stdlib).top_k("ArgumentParser")
    assert parsers[0].id == "optparse.OptionParser"
    errors = npth.PathSim("class-base-class").fit(stdlib).top_k("json.decoder.JSONDecodeError", k=1000)
    assert "ipaddress.AddressValueError" in errors.ids
    assert "threading.Thread" in stdlib.nodes["base"].ids.to_pylist()


def test_stdlib_is_built_once(stdlib: HIN, monkeypatch) -> None:
    monkeypatch.setattr(datasets, "find_links", lambda *_: pytest.fail("built again"))
    assert shape(npth.load("stdlib")) == shape(stdlib)


@pytest.mark.usefixtures("_small_library")
def test_a_damaged_cache_is_built_again(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("NEUPATH_CACHE", str(tmp_path))
    npth.load("stdlib")
    (cached,) = tmp_path.glob("stdlib-*")
    content = cached.read_bytes()
    cached.write_bytes(b"damaged")
    assert npth.load("stdlib").num_nodes("module") == 5
    assert cached.read_bytes() == content


@pytest.mark.usefixtures("_small_library")
def test_stdlib_answers_without_a_cache(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("NEUPATH_CACHE", str(tmp_path / "file" / "cache"))
    assert npth.load("stdlib").num_nodes("module") == 5


def test_parsing_resolves_bases_and_imports(tmp_path: Path) -> None:
    write(
        tmp_path,
        one__py="import os.path as p, threading\nfrom .two import Base as B\n"
        "class A(B, threading.Thread, dict, metaclass=type):\n  def run(self): ...\n  async def go(self): ...\n"
        "  class Inner(Generic[int]): pass\nclass C(A.Inner, make()): pass\n",
        two__py="class Base: pass\n",
        broken__py="def (",
    )
    hin = build_stdlib(find_links(tmp_path))

    pairs = {
        relation.name: {
            (hin.nodes[relation.source].ids[int(i)].as_py(), hin.nodes[relation.target].ids[int(j)].as_py())
            for i, j in zip(*matrix.nonzero(), strict=True)
        }
        for relation, matrix in hin.matrices.items()
    }
    assert pairs == {
        "extends": {
            ("one.A", "two.Base"), ("one.A", "threading.Thread"), ("one.A", "dict"), ("one.A.Inner", "one.Generic"),
            ("one.C", "one.A.Inner"),
        },
        "has": {("one.A", "run"), ("one.A", "go")},
        "defines": {("one", "one.A"), ("one", "one.A.Inner"), ("one", "one.C"), ("two", "two.Base")},
        "imports": {("one", "os.path"), ("one", "threading"), ("one", "two")},
    }  # fmt: skip


@pytest.mark.slow
def test_parsing_imports_nothing(tmp_path: Path) -> None:
    write(tmp_path / "lib", evil__py="raise SystemExit('was run')\n")
    folder = str(tmp_path / "lib")
    code = f"from pathlib import Path; from neupath.io.datasets import find_links; find_links(Path({folder!r}))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_no_sources(tmp_path: Path) -> None:
    with pytest.raises(NeuPathError, match="this Python comes without its standard library's source files"):
        find_links(tmp_path)


TRIPLES = b"head\trelation\ttail\n" + b"a\tr\tb\n" * 50_000


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None: ...


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    root = write(tmp_path_factory.mktemp("www"), train__txt=TRIPLES)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(root))) as http:
        threading.Thread(target=http.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{http.server_port}"
        http.shutdown()


def dataset(url: str, content: bytes = TRIPLES, prepare=None) -> PublicDataset:
    return PublicDataset("small", "", "", "", {url: hashlib.sha256(content).hexdigest()}, prepare)


def test_fetch_verifies_and_caches(server: str, tmp_path: Path) -> None:
    reports: list[tuple[str, int, int]] = []
    folder = fetch(dataset(f"{server}/train.txt"), tmp_path / "data" / "small", lambda *report: reports.append(report))
    assert npth.load(folder).num_nodes("entity") == 2
    assert reports[-1] == ("train.txt", len(TRIPLES), len(TRIPLES))
    assert len(reports) > 1
    with pytest.raises(NeuPathError, match="exists already; give a new folder to fetch small to"):
        fetch(dataset(f"{server}/train.txt"), folder)


def fail(_folder: Path) -> None:
    raise NeuPathError("cannot prepare")


@pytest.mark.parametrize(
    ("url", "content", "message"),
    [
        ("{server}/train.txt", b"other", r"train.txt has the checksum .*…, expected .*…; .*nothing was saved"),
        ("{server}/gone.txt", TRIPLES, "gone.txt answered 404 .*; nothing was saved"),
        ("http://127.0.0.1:1/x", TRIPLES, r"cannot reach 127.0.0.1: .*; is there a network\? nothing was saved"),
        ("{server}/train.txt", TRIPLES, "cannot prepare"),
    ],
)  # fmt: skip
def test_what_fails_saves_nothing(server: str, tmp_path: Path, url: str, content: bytes, message: str) -> None:
    with pytest.raises(NeuPathError, match=message):
        fetch(dataset(url.format(server=server), content, fail), tmp_path / "data" / "small")
    assert not list((tmp_path / "data").iterdir())


def test_names(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("NEUPATH_CACHE", str(tmp_path))
    monkeypatch.delenv("NEUPATH_DATA", raising=False)
    with pytest.raises(NeuPathError, match="no public graph named 'imbd' .*; did you mean 'imdb'"):
        public_dataset("imbd")
    with pytest.raises(NeuPathError, match="kg20c cannot be fetched, because no checksum of its files is known; clone"):
        fetch(PUBLIC["kg20c"])
    with pytest.raises(NeuPathError, match="the public graph 'acm' is not here yet; run: neupath datasets get acm"):
        npth.load("acm")
    for known in PUBLIC.values():
        assert all(len(checksum) == 64 and url.startswith("https://") for url, checksum in known.files.items())


@pytest.mark.slow
def test_a_fetched_graph_is_found_by_name(server: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("NEUPATH_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("NEUPATH_DATA", raising=False)
    monkeypatch.setitem(datasets.PUBLIC, "small", dataset(f"{server}/train.txt"))
    fetch(datasets.PUBLIC["small"])
    gone = dataset(f"{server}/gone.txt")
    assert fetch(gone) == tmp_path / "cache" / "data" / "small", "what is there already is kept"
    assert npth.load("small").num_nodes("entity") == 2


@pytest.mark.slow
def test_imdb_from_the_raw_table(data: Path, tmp_path: Path) -> None:
    raw = tmp_path / "movie_metadata.csv"
    raw.write_bytes(gzip.decompress((data / "imdb" / "movie_metadata.csv.gz").read_bytes()))
    assert hashlib.sha256(raw.read_bytes()).hexdigest() in PUBLIC["imdb"].files.values()
    built, reference = build_imdb(raw), npth.load(data / "imdb")
    for node_type in ("movie", "actor", "director"):
        assert built.nodes[node_type].ids == reference.nodes[node_type].ids
        assert built.nodes[node_type].names == reference.nodes[node_type].names
    for relation, matrix in reference.matrices.items():
        assert built.matrices[relation].nnz == matrix.nnz
        if relation.target in ("actor", "director"):
            assert (built.matrices[relation] != matrix).nnz == 0
