"""The wheel holds what it needs and works where it is unpacked."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ALONE = """
import sys


class Missing:  # what only the extras install is not there
    def find_spec(self, name, *_):
        extras = {"torch", "torch_geometric", "networkx", "pandas", "hypothesis", "pytest", "build", "fastapi"}
        if name.split(".")[0] in extras:
            raise ModuleNotFoundError(name)


sys.meta_path.insert(0, Missing())
import neupath
from neupath.cli import main

print(neupath.__file__)
main(sys.argv[1:])
"""


def test_the_wheel_works_alone(tmp_path: Path) -> None:
    pytest.importorskip("build", reason="the dev extras are not installed")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", tmp_path / "dist", ROOT]
    subprocess.run(command, check=True, capture_output=True)
    (wheel,) = (tmp_path / "dist").glob("neupath-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        archive.extractall(tmp_path / "site")
    assert {"neupath/py.typed", "neupath/service/examples.json", "neupath/experiments/imdb.toml"} <= set(names)
    page = sorted(path.name for path in (ROOT / "src" / "neupath" / "service" / "page").iterdir())
    assert {f"neupath/service/page/{name}" for name in page} <= set(names)
    assert {"index.html", "style.css", "main.js", "icon.svg"} <= set(page)
    assert not [name for name in names if name.startswith(("tests", "benchmarks", "examples"))]
    (tmp_path / "alone.py").write_text(ALONE)
    arguments = ["search", "toy", "Mike", "--path", "author-paper-venue-paper-author", "--json"]
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "site")}
    done = subprocess.run(
        [sys.executable, tmp_path / "alone.py", *arguments],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert str(tmp_path / "site") in done.stdout
    assert '"id": "Bob"' in done.stdout
