"""Fetching public graphs, from a server on this machine and from none."""

import gzip
import hashlib
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import neupath as npth
from neupath import NeuPathError
from neupath.io import datasets as public
from neupath.io.datasets import PUBLIC, PublicDataset, build_imdb, fetch, public_dataset

TRIPLES = b"head\trelation\ttail\na\tr\tb\n" * 10_000


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    root = tmp_path / "www"
    root.mkdir()
    (root / "train.txt").write_bytes(TRIPLES)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(root))) as http:
        threading.Thread(target=http.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{http.server_port}"
        http.shutdown()


def dataset(url: str, content: bytes = TRIPLES, prepare=None) -> PublicDataset:
    return PublicDataset("small", "", "", "", {url: hashlib.sha256(content).hexdigest()}, prepare)


def test_fetches_checks_and_keeps(server: str, tmp_path: Path) -> None:
    reports: list[tuple[str, int, int]] = []
    folder = fetch(dataset(f"{server}/train.txt"), tmp_path / "data" / "small", lambda *report: reports.append(report))
    assert npth.load(folder).num_nodes("entity") == 4  # the header repeats, and so is data
    assert reports[-1] == ("train.txt", len(TRIPLES), len(TRIPLES))
    assert len(reports) > 1
    with pytest.raises(NeuPathError, match="exists already; give a new folder to fetch small to"):
        fetch(dataset(f"{server}/train.txt"), folder)


def nothing_left(tmp_path: Path) -> bool:
    return not list((tmp_path / "data").iterdir())


def test_a_wrong_checksum_saves_nothing(server: str, tmp_path: Path) -> None:
    with pytest.raises(NeuPathError, match=r"train.txt has the checksum .*…, expected .*…; .*nothing was saved"):
        fetch(dataset(f"{server}/train.txt", b"other"), tmp_path / "data" / "small")
    assert nothing_left(tmp_path)


def test_a_missing_file_saves_nothing(server: str, tmp_path: Path) -> None:
    with pytest.raises(NeuPathError, match="gone.txt answered 404 .*; nothing was saved"):
        fetch(dataset(f"{server}/gone.txt"), tmp_path / "data" / "small")
    assert nothing_left(tmp_path)


def test_no_network_is_said_plainly(tmp_path: Path) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Quiet) as http:
        port = http.server_port
    with pytest.raises(NeuPathError, match="cannot reach 127.0.0.1: .*; is there a network\\? nothing was saved"):
        fetch(dataset(f"http://127.0.0.1:{port}/x"), tmp_path / "data" / "small")
    assert nothing_left(tmp_path)


def test_a_failing_preparation_saves_nothing(server: str, tmp_path: Path) -> None:
    def fail(_folder: Path) -> None:
        raise NeuPathError("cannot")

    with pytest.raises(NeuPathError, match="cannot"):
        fetch(dataset(f"{server}/train.txt", prepare=fail), tmp_path / "data" / "small")
    assert nothing_left(tmp_path)


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


def test_a_fetched_graph_is_found_by_name(server: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("NEUPATH_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("NEUPATH_DATA", raising=False)
    monkeypatch.setitem(public.PUBLIC, "small", dataset(f"{server}/train.txt"))
    fetch(public.PUBLIC["small"])
    gone = dataset(f"{server}/gone.txt")
    assert fetch(gone) == tmp_path / "cache" / "data" / "small", "what is there already is kept"
    assert npth.load("small").num_nodes("entity") == 4


def test_imdb_from_the_raw_table(data: Path, tmp_path: Path) -> None:
    raw = tmp_path / "movie_metadata.csv"
    raw.write_bytes(gzip.decompress((data / "imdb" / "movie_metadata.csv.gz").read_bytes()))
    assert hashlib.sha256(raw.read_bytes()).hexdigest() in PUBLIC["imdb"].files.values()
    built, given = build_imdb(raw), npth.load(data / "imdb")
    for node_type in ("movie", "actor", "director"):
        assert built.nodes[node_type].ids == given.nodes[node_type].ids
        assert built.nodes[node_type].names == given.nodes[node_type].names
    for relation, matrix in given.matrices.items():
        assert built.matrices[relation].nnz == matrix.nnz
        if relation.target in ("actor", "director"):
            assert (built.matrices[relation] != matrix).nnz == 0
