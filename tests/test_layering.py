"""A module imports only modules of lower levels; the numbers stand here."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "neupath"
LEVELS = {
    "errors": 0,
    "files": 1,
    "headway": 1,
    "machine": 0,
    "locks": 1,
    "normalisation": 1,
    "progress": 1,
    "threads": 1,
    "schema": 1,
    "parsing": 2,
    "nodes": 2,
    "metapath": 3,
    "graph": 4,
    "kernels": 5,
    "store": 5,
    "datasets": 6,
    "description": 5,
    "chains": 5,
    "kept": 5,
    "halfpath": 6,
    "index": 7,
    "ranking": 8,
    "thresholds": 8,
    "search": 8,
    "blocks": 9,
    "hit_tables": 9,
    "scorer": 9,
    "following": 10,
    "join": 10,
    "labels": 10,
    "measures": 10,
    "cluster": 11,
    "models": 11,
    "evaluation": 11,
    "explanation": 11,
    "live": 11,
    "inference": 12,
    "saved": 13,
    "drawing": 13,
    "rendering": 13,
    "learning": 14,
    "comparison": 14,
    "experiments": 14,
    "client": 9,
    "service": 15,
    "cli": 16,
}


def room(module: str) -> str:
    return module.removeprefix("neupath.").split(".")[0]


def files() -> list[Path]:
    return [path for path in SOURCE.rglob("*.py") if path != SOURCE / "__init__.py"]


def imported(tree: ast.Module) -> set[str]:
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "neupath":
            found |= {alias.name for alias in node.names if alias.name in LEVELS}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("neupath."):
            found.add(room(str(node.module)))
        elif isinstance(node, ast.Import):
            found |= {room(alias.name) for alias in node.names if alias.name.startswith("neupath.")}
    return found


@pytest.mark.parametrize("path", files(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_down(path: Path) -> None:
    own = path.relative_to(SOURCE).with_suffix("").parts[0]
    for other in imported(ast.parse(path.read_text(encoding="utf-8"))) - {own}:
        assert LEVELS[other] < LEVELS[own], f"{own} (level {LEVELS[own]}) imports {other} (level {LEVELS[other]})"


def test_measures_and_models_do_not_know_each_other() -> None:
    for path in (SOURCE / "models").glob("*.py"):
        assert "measures" not in imported(ast.parse(path.read_text(encoding="utf-8")))


def test_every_module_has_a_level() -> None:
    assert {path.relative_to(SOURCE).with_suffix("").parts[0] for path in files()} == set(LEVELS)


def test_import_is_light() -> None:
    code = "import sys, neupath; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"torch", "torch_geometric", "fastapi", "dask", "distributed", "duckdb", "matplotlib", "numba", "networkx"}
    heavy |= {"pandas", "typer"}
    assert not heavy & set(run.stdout.split())
