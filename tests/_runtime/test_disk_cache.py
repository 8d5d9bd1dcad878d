"""Arrays on disk are read back as written, or not at all."""

import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest

from neupath._runtime.disk_cache import LIMIT_VARIABLE, Arrays, DiskCache
from neupath.errors import QueryError
from tests.processes import run_process

ENTRY = Arrays({"core": np.arange(6.0).reshape(2, 3), "none": np.zeros(0)}, {"error": 0.1, "names": ["é"]})


@pytest.fixture
def cache(tmp_path: Path) -> DiskCache:
    return DiskCache(tmp_path / "cache", "version 3")


def place_of(cache: DiskCache) -> Path:
    (place,) = cache.folder.iterdir()
    return place


def test_arrays_and_facts_survive_and_cannot_be_changed(cache: DiskCache) -> None:
    assert cache.find("key") is None
    cache.put("key", ENTRY)
    found = cache.find("key")
    assert found is not None
    assert found.facts == ENTRY.facts
    for name, array in ENTRY.arrays.items():
        np.testing.assert_array_equal(found.arrays[name], array)
        assert not found.arrays[name].flags.writeable
    assert cache.find("another key") is None
    assert DiskCache(cache.folder, "version 4").find("key") is None


@pytest.mark.parametrize("file", ["core.npy", "none.npy", "manifest.json"])
@pytest.mark.parametrize("damage", ["flipped", "truncated", "empty", "gone"])
def test_a_damaged_entry_is_removed(cache: DiskCache, file: str, damage: str) -> None:
    cache.put("key", ENTRY)
    path = place_of(cache) / file
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    changed = {"flipped": bytes(content), "truncated": bytes(content[:-7]), "empty": b""}
    path.unlink() if damage == "gone" else path.write_bytes(changed[damage])
    assert cache.find("key") is None
    cache.put("key", ENTRY)
    assert cache.find("key") is not None


def test_objects_are_never_unpickled(cache: DiskCache) -> None:
    with pytest.raises(ValueError, match="pickle"):
        cache.put("key", Arrays({"objects": np.array([{}], dtype=object)}))
    assert cache.find("key") is None


def test_the_least_recently_used_entries_go_above_the_limit(cache: DiskCache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LIMIT_VARIABLE, "30000")
    for number in range(3):
        cache.put(f"key {number}", Arrays({"values": np.zeros(1000)}))
        (path,) = (path for path in cache.folder.glob("*/manifest.json") if path.stat().st_mtime > 1e6)
        os.utime(path, (number, number))
    assert cache.find("key 0") is not None  # the most recently used now
    cache.put("key 3", Arrays({"values": np.zeros(1000)}))
    assert [cache.has(f"key {number}") for number in range(4)] == [True, False, True, True]
    cache.put("too large", Arrays({"values": np.zeros(5000)}))
    assert not cache.has("too large")


def test_the_limit_must_be_a_number(cache: DiskCache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LIMIT_VARIABLE, "2 GB")
    with pytest.raises(QueryError, match=r"NEUPATH_DISK_CACHE_BYTES is '2 GB'; give a number"):
        cache.put("key", ENTRY)


def test_other_versions_are_removed_and_what_killed_processes_left(cache: DiskCache) -> None:
    cache.put("key", ENTRY)
    DiskCache(cache.folder, "version 4").put("key", ENTRY)
    cache.remove_other_versions()
    assert cache.has("key")
    left = cache.folder / f".{place_of(cache).name}-0000"
    left.mkdir()
    os.utime(left, (0, 0))
    cache.put("another key", ENTRY)
    assert len(list(cache.folder.iterdir())) == 2


def test_where_nothing_can_be_written_nothing_is_cached(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "no store here" / "cache"):
        DiskCache(folder, "").put("key", ENTRY)
        assert DiskCache(folder, "").find("key") is None
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


WRITER = """
import sys
import numpy as np
from pathlib import Path
from neupath._runtime.disk_cache import Arrays, DiskCache
cache = DiskCache(Path(sys.argv[1]), "version 3")
print(flush=True)
sys.stdin.readline()
for number in range(60):
    key = f"key {number % 3}"
    cache.put(key, Arrays({"values": np.full(20_000, number % 3)}, {"number": number % 3}))
    found = cache.find(key)
    assert found is None or (found.arrays["values"] == found.facts["number"]).all()
    cache.remove(key)
"""


def test_processes_that_write_read_and_remove_at_once_see_whole_entries(cache: DiskCache) -> None:
    command = [sys.executable, "-c", WRITER, cache.folder]
    pipes = {"stdin": -1, "stdout": -1, "stderr": -1}
    with run_process(command, **pipes) as one, run_process(command, **pipes) as two:
        for process in (one, two):
            assert process.stdout is not None
            process.stdout.readline()
        for process in (one, two):
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        for process in (one, two):
            _, errors = process.communicate()
            assert (process.returncode, errors) == (0, "")


def test_the_manifest_is_verified_to_be_of_the_entry(cache: DiskCache) -> None:
    cache.put("key", ENTRY)
    other = cache.folder / cache._place("other").name
    place_of(cache).rename(other)
    assert json.loads((other / "manifest.json").read_text())["content"]["version"] == "version 3"
    assert cache.find("other") is None


def test_nothing_is_written_or_removed_by_a_link(tmp_path: Path) -> None:
    other = tmp_path / "other"
    for name in (".ssh", "0" * 32):
        (other / name).mkdir(parents=True)
        os.utime(other / name, (0, 0))
    (tmp_path / "cache").symlink_to(other)
    linked = DiskCache(tmp_path / "cache", "version 3")
    linked.put("key", ENTRY)
    linked.remove_other_versions()
    assert linked.find("key") is None
    assert sorted(path.name for path in other.iterdir()) == [".ssh", "0" * 32]


def test_hidden_folders_of_others_are_not_removed(cache: DiskCache) -> None:
    (cache.folder / ".config").mkdir(parents=True)
    os.utime(cache.folder / ".config", (0, 0))
    cache.put("key", ENTRY)
    assert (cache.folder / ".config").is_dir()
