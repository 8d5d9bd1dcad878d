"""The pages for contributors name files that exist, and the map shows every room."""

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src/neupath"
_FILE = re.compile(r"`([\w/.-]+\.(?:py|md|js|toml))`")


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_the_files_named_on_a_page_exist(page: str) -> None:
    names = _FILE.findall((ROOT / page).read_text(encoding="utf-8"))
    assert len(names) > 10
    rooms = [folder for folder in (ROOT / "src").rglob("*") if folder.is_dir()]
    folders = (ROOT, ROOT / "tests", *rooms)
    assert [name for name in names if not any((folder / name).exists() for folder in folders)] == []


def test_quick_tests_cover_every_room() -> None:
    """`make quick` leaves out slow tests; some of each room's must be left."""
    counts = Counter({path.parent.name: 0 for path in SOURCE.glob("*/__init__.py")})
    for path in (ROOT / "tests").rglob("test_*.py"):
        counts[path.relative_to(ROOT / "tests").parts[0]] += _count_quick(path.read_text("utf-8"))
    assert {room: count for room, count in counts.items() if count < 3 and (SOURCE / room).is_dir()} == {}


def _count_quick(module: str) -> int:
    """Count the test functions that neither their decorators nor the module's `pytestmark` mark as slow."""
    if "\npytestmark" in module:
        return 0
    functions = [node for node in ast.parse(module).body if isinstance(node, ast.FunctionDef)]
    tests = [node for node in functions if node.name.startswith("test_")]
    return sum(not any(map(_is_slow_mark, node.decorator_list)) for node in tests)


def _is_slow_mark(decorator: ast.expr) -> bool:
    return ast.unparse(decorator) == "pytest.mark.slow"


def test_the_map_shows_every_room() -> None:
    rooms = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    named = re.findall(r"^\| `(\w+)/` \|", (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(named) == sorted(rooms)


LINES = {
    "_runtime": 1600, "cli": 2910, "cluster": 690, "engine": 6140, "evidence": 5500, "graph": 5280, "io": 12830,
    "learn": 8220, "live": 1510, "measures": 3600, "service": 4130, "store": 2890, "paper": 2780,
}  # fmt: skip
"""The most lines of Python that a room has; a commit that raises one says why. `paper` is the package neupath_paper."""


def test_rooms_keep_to_their_budgets_of_lines() -> None:
    rooms = {room: SOURCE / room for room in LINES} | {"paper": SOURCE.parent / "neupath_paper"}
    lines = {room: sum(len(path.read_text("utf-8").splitlines()) for path in folder.rglob("*.py"))
             for room, folder in rooms.items()}  # fmt: skip
    assert {path.parent.name for path in SOURCE.glob("*/__init__.py")} == {*LINES} - {"paper"}
    assert {room: count for room, count in lines.items() if count > LINES[room]} == {}
    assert all(lines.values())
