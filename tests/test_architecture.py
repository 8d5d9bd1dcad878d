"""The pages for contributors name files that exist, and the map shows every room."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src/neupath"
_QUICK_TEST = re.compile(r"(?<!@pytest\.mark\.slow\n)^def test_", re.MULTILINE)
_FILE = re.compile(r"`([\w/.-]+\.(?:py|md|js|toml))`")


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_the_files_named_on_a_page_exist(page: str) -> None:
    names = _FILE.findall((ROOT / page).read_text(encoding="utf-8"))
    assert len(names) > 10
    folders = (ROOT, ROOT / "tests", SOURCE, *(folder for folder in SOURCE.rglob("*") if folder.is_dir()))
    assert [name for name in names if not any((folder / name).exists() for folder in folders)] == []


def test_quick_tests_cover_every_room() -> None:
    """`make quick` leaves out slow tests; some of each room's must be left."""
    modules = [path for path in (ROOT / "tests").rglob("test_*.py") if "\npytestmark" not in path.read_text("utf-8")]
    quick = {
        path.relative_to(ROOT / "tests").parts[0] for path in modules if _QUICK_TEST.search(path.read_text("utf-8"))
    }
    assert {path.parent.name for path in SOURCE.glob("*/__init__.py")} <= quick


def test_the_map_shows_every_room() -> None:
    rooms = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    named = re.findall(r"^\| `(\w+)/` \|", (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(named) == sorted(rooms)
