import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))
EXPECTED = {
    "own_tables.py": "because of Alien - space - Aliens",
    "compare_measures.py": "pcrw",
    "retrievers.py": "Bob: Both connect through SIGMOD",
    "side_by_side.py": "| 1 |  | Bob | Jim |",
}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
@pytest.mark.slow
def test_example_runs(path: Path) -> None:
    process = subprocess.run([sys.executable, "-W", "error", path], capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    assert EXPECTED[path.name] in process.stdout
