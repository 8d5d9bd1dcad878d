"""The notebooks in examples/ run in a kernel of their own, and are committed without output."""

import json
from pathlib import Path

import pytest

from tests.patience import PATIENCE

NOTEBOOKS = sorted((Path(__file__).parent.parent / "examples").glob("*.ipynb"))
NEED_DATA = {"drug_repurposing.ipynb", "films_like_these.ipynb"}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_committed_without_output(path: Path) -> None:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        assert cell["metadata"] == {}
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None), "".join(cell["source"])
    assert set(notebook["metadata"]) == {"kernelspec", "language_info"}
    assert notebook["metadata"]["language_info"] == {"name": "python"}, "with the version it changes on every machine"


def test_the_site_lists_every_notebook() -> None:
    page = (NOTEBOOKS[0].parents[1] / "docs" / "notebooks.md").read_text(encoding="utf-8")
    assert len(NOTEBOOKS) == 6
    assert [path.name for path in NOTEBOOKS if f"(notebooks/{path.name})" not in page] == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.slow
def test_a_notebook_runs(path: Path, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch) -> None:
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed; run: pip install -e '.[dev]'")
    nbformat = pytest.importorskip("nbformat")
    if path.name in NEED_DATA:
        monkeypatch.setenv("NEUPATH_DATA", str(request.getfixturevalue("data")))
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    nbclient.NotebookClient(
        notebook, timeout=int(PATIENCE), kernel_name="python3", resources={"metadata": {"path": tmp_path}}
    ).execute()
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert any(cell.outputs for cell in code)
