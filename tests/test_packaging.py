"""The public API is complete and imports nothing heavy, and the wheel works on its own."""

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from importlib import import_module, metadata
from pathlib import Path

import pytest

import neupath

ROOT = Path(__file__).parent.parent
DECLARED = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
ALONE = """
import sys

EXTRAS = set(sys.argv.pop(1).split(","))


class Missing:  # what only the extras install is not there
    def find_spec(self, name, *_):
        if name.split(".")[0] in EXTRAS:
            raise ModuleNotFoundError(name)


sys.meta_path.insert(0, Missing())
import neupath
from neupath.cli import main

print(neupath.__file__)
main(sys.argv[1:])
"""


PUBLIC_API = """
Combination HIN MetaPath NeuPath NeuPathError Part PathSim Scorer __version__ compare evaluate explain from_tables
infer join load load_scorer open_index prepare relate significance stability train_auto what_if
"""
IN_ROOMS = """
AvgSim CommuteTime DWPC DWPCNoRepeats Edges Explanation HeteSim Hit Hits Inferred Jaccard JoinSim Joined Nodes Overlap
PCRW PPR PathCount RWR RankComparison RelSim Related Relation SCAN Schema SetExplanation Significance SimRank
SimilarityFeatures SourceWarning Stability Tversky WhatIf enumerate_metapaths evaluate_pairs explain_set from_networkx
from_pyg from_triples split_queries to_networkx to_pyg write_folder
"""
HEAVY = (
    "torch", "cupy", "torch_geometric", "fastapi", "uvicorn", "starlette", "numba", "pandas", "matplotlib", "dask",
    "sklearn", "sqlalchemy", "psycopg",
)  # fmt: skip


def test_dir_is_the_public_api() -> None:
    assert dir(neupath) == PUBLIC_API.split()
    need_extras = {"NeuPath", "train_auto"}
    assert sorted(neupath.__all__) == sorted(set(PUBLIC_API.split()) - need_extras - {"__version__"})


def test_every_public_name_can_be_imported() -> None:
    pytest.importorskip("torch")
    for name in dir(neupath):
        assert getattr(neupath, name) is not None


@pytest.mark.parametrize("name", IN_ROOMS.split())
def test_a_name_of_a_room_is_found_at_the_root_with_a_warning_that_says_where_it_is(name: str) -> None:
    with pytest.warns(DeprecationWarning, match=rf"neupath\.{name} goes in version 0\.2; write: from ") as said:
        value = getattr(neupath, name)
    assert said[0].filename == __file__
    _, module, _, imported = str(said[0].message).partition("write: ")[2].split()
    assert getattr(import_module(module), imported) is value


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'neupath' has no attribute 'Nothing'"):
        _ = neupath.Nothing


def test_a_name_that_is_gone_says_what_to_use() -> None:
    with pytest.raises(ImportError, match="no CountPath any more; .*: from neupath_paper.countpath import CountPath"):
        from neupath import CountPath  # noqa: F401
    with pytest.raises(ImportError, match=r"no PathRanker any more; .* use infer\(hin, pairs\).scorer"):
        _ = neupath.PathRanker


@pytest.mark.parametrize("module", ["neupath", "neupath.cli"])
@pytest.mark.slow
def test_the_import_loads_nothing_heavy(module: str) -> None:
    code = f"import sys, {module}; print([name for name in {HEAVY!r} if name in sys.modules])"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout.strip() == "[]"


def extras() -> set[str]:
    """What only the extras install, by the names one imports."""
    optional = {
        re.split(r"[^\w-]", line)[0].lower() for lines in DECLARED["optional-dependencies"].values() for line in lines
    }
    found = {
        module
        for module, packages in metadata.packages_distributions().items()
        if optional & {package.lower() for package in packages}
    }
    return {*found, "starlette", "anyio", "dask"} - {"neupath"}  # and their dependencies


@pytest.mark.slow
def test_the_wheel_works_alone(tmp_path: Path) -> None:
    pytest.importorskip("build")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", tmp_path / "dist", ROOT]
    subprocess.run(command, check=True, capture_output=True)
    (wheel,) = (tmp_path / "dist").glob("neupath-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        archive.extractall(tmp_path / "site")
    assert {"neupath/py.typed", "neupath/service/examples.json", "neupath_paper/imdb.toml"} <= set(names)
    page = sorted(path.name for path in (ROOT / "src" / "neupath" / "service" / "page" / "bundle").iterdir())
    assert {f"neupath/service/page/bundle/{name}" for name in page} <= set(names)
    assert {"index.html", "icon.svg", "LICENSES.txt"} <= set(page)
    assert not [name for name in names if "node_modules" in name]
    assert not [name for name in names if name.startswith(("tests", "benchmarks", "examples"))]
    assert {"torch", "fastapi", "uvicorn", "duckdb", "distributed", "safetensors", "pandas"} <= extras()
    (tmp_path / "alone.py").write_text(ALONE)
    arguments = ["search", "toy", "Mike", "--metapath", "author-paper-venue-paper-author", "--json"]
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "site")}
    process = subprocess.run(
        [sys.executable, tmp_path / "alone.py", ",".join(extras()), *arguments],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert str(tmp_path / "site") in process.stdout
    assert '"id": "Bob"' in process.stdout
