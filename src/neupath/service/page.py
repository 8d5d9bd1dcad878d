"""Page: the explorer's files, read once; a request names one of them and nothing else."""

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

FOLDER = Path(__file__).parent / "page"
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True)
class File:
    """One file of the page."""

    content: bytes
    media_type: str
    etag: str


def read_page(folder: Path = FOLDER) -> dict[str, File]:
    """Read the files of the page by their path on the site; index.html is the site itself.

    >>> "/" in read_page()
    True
    """
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix in _TYPES:
            content = path.read_bytes()
            file = File(content, _TYPES[path.suffix], f'"{sha256(content).hexdigest()[:32]}"')
            found[f"/{path.relative_to(folder).as_posix()}"] = file
    if "/index.html" in found:
        found["/"] = found["/index.html"]
    return found
