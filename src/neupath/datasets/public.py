"""Public graphs that are known by name: where they come from, and how to fetch them with a checksum."""

import http.client
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from neupath.datasets.cache import cache_folder
from neupath.datasets.imdb import build_imdb
from neupath.datasets.writing import write_tables
from neupath.errors import SourceError, WriteError, did_you_mean, listed
from neupath.files import write_whole_folder

_GITHUB = "https://raw.githubusercontent.com"
_GITHUB_LARGE = "https://media.githubusercontent.com/media"
_TIMEOUT = 30
_CHUNK = 1 << 16

Report = Callable[[str, int, int], None]
"""Hears of a download's progress: the file's name, bytes had, bytes in all (0: not known)."""


@dataclass(frozen=True)
class RemoteFile:
    """A file on the network and what its content must hash to."""

    url: str
    sha256: str

    @property
    def name(self) -> str:
        return Path(urllib.parse.urlparse(self.url).path).name


@dataclass(frozen=True)
class PublicDataset:
    """A public graph: what it is, where it comes from, and its files."""

    name: str
    about: str
    origin: str
    licence: str
    files: tuple[RemoteFile, ...] = ()
    prepare: Callable[[Path], object] | None = None
    """Makes tables of the files that were fetched to a folder, in that folder; None keeps the files as they are."""
    by_hand: str = ""
    """How to get it where no checksum of its files is known."""


def _prepare_imdb(folder: Path) -> None:
    raw = folder / "movie_metadata.csv"
    write_tables(build_imdb(raw), folder)
    raw.unlink()


PUBLIC = {
    dataset.name: dataset
    for dataset in (
        PublicDataset(
            "imdb",
            "movies, actors, directors, genres, keywords; the IMDB network of the papers on HAN and NeuPath",
            "github.com/Jhy1993/HAN",
            "none stated",
            (
                RemoteFile(
                    f"{_GITHUB}/Jhy1993/HAN/3aafeef71fac20ae8d3409fdf5c4a19ea4d0ed2b/data/imdb/movie_metadata.csv",
                    "74e4a9af314eea255147a6d48a5678ad7d0be3cb8ba3fdb819ef6edddb36e2ca",
                ),
            ),
            _prepare_imdb,
        ),
        PublicDataset(
            "acm",
            "papers, authors, conferences, affiliations; the ACM network of the NeuPath paper (ACM.mat)",
            "data.dgl.ai/dataset/ACM.mat",
            "none stated",
            (
                RemoteFile(
                    "https://data.dgl.ai/dataset/ACM.mat",
                    "0ccd838e545e8f16e3dc84356da2f51dfd2290c32e37a784e374dd510c76578d",
                ),
            ),
        ),
        PublicDataset(
            "hetionet",
            "genes, diseases, compounds and eight more types; 47,031 nodes, 2.25 million edges",
            "github.com/hetio/hetionet",
            "CC0, parts under their sources' licences",
            (
                RemoteFile(
                    f"{_GITHUB}/hetio/hetionet/38873689199f81b0e6e11554d9803b94f0c4a12c/hetnet/tsv/hetionet-v1.0-nodes.tsv",
                    "f8a88e2bc21c576aa813c096fdef318e4502723ec4b7a97decb7c755c86cbc09",
                ),
                RemoteFile(
                    f"{_GITHUB_LARGE}/hetio/hetionet/38873689199f81b0e6e11554d9803b94f0c4a12c/hetnet/tsv/hetionet-v1.0-edges.sif.gz",
                    "611f0411ac666be4e0270e54bbca67407e14720bfc3099311f0f5eec25c5a947",
                ),
            ),
        ),
        PublicDataset(
            "kg20c",
            "papers, authors, affiliations, conferences, domains of 20 computer science conferences",
            "github.com/tranhungnghiep/KG20C",
            "research use",
            by_hand="clone the repository and load its folder of train, valid and test triples",
        ),
    )
}


def public_dataset(name: str) -> PublicDataset:
    """Return the public graph of this name."""
    if name not in PUBLIC:
        raise SourceError(f"no public graph named {name!r} (there are {listed(PUBLIC)}){did_you_mean(name, PUBLIC)}")
    return PUBLIC[name]


def fetched_folder(name: str) -> Path:
    """Return where a fetched graph is kept."""
    return cache_folder() / "data" / name


def fetch(dataset: PublicDataset, report: Report, folder: Path | None = None) -> Path:
    """Download a graph, check every file, and put it in its folder whole; what is there already is kept."""
    target = folder or fetched_folder(dataset.name)
    if target.exists() and folder is not None:
        raise WriteError(f"{target} exists already; give a new folder to fetch {dataset.name} to")
    if target.exists():
        return target
    if not dataset.files:
        raise SourceError(
            f"{dataset.name} cannot be fetched for you, as no checksum of its files is known; "
            f"{dataset.by_hand} ({dataset.origin})"
        )

    def fill(temporary: Path) -> None:
        for file in dataset.files:
            _download(file, temporary / file.name, report)
        if dataset.prepare is not None:
            dataset.prepare(temporary)

    return write_whole_folder(target, fill)


def _download(file: RemoteFile, path: Path, report: Report) -> None:
    digest = sha256()
    try:
        with urllib.request.urlopen(file.url, timeout=_TIMEOUT) as answer, path.open("wb") as out:  # noqa: S310
            total = int(answer.headers.get("Content-Length") or 0)
            done = 0
            while chunk := answer.read(_CHUNK):
                out.write(chunk)
                digest.update(chunk)
                done += len(chunk)
                report(file.name, done, total)
    except urllib.error.HTTPError as error:
        raise SourceError(f"{file.url} answered {error.code} {error.reason}; nothing was saved") from error
    except (urllib.error.URLError, TimeoutError, ConnectionError, http.client.HTTPException) as error:
        host = urllib.parse.urlparse(file.url).hostname
        reason = getattr(error, "reason", error)
        raise SourceError(f"cannot reach {host}: {reason}; is there a network? nothing was saved") from error
    if digest.hexdigest() != file.sha256:
        raise SourceError(
            f"{file.name} has the checksum {digest.hexdigest()[:12]}… where {file.sha256[:12]}… is expected; "
            f"it has changed or was damaged on its way, so nothing was saved"
        )
