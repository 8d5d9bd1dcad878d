"""The files of a prepared index: read in blocks, each verified before its first use, never trusted."""

import json
from collections.abc import Callable
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest

from neupath import PathSim, load, open_index, prepare
from neupath.engine.files import (
    BLOCK,
    ArrayFacts,
    FolderFiles,
    create,
    is_index,
    is_sealed,
    map_array,
    open_files,
    seal,
    stretches,
    write_array,
    write_manifest,
)
from neupath.errors import SourceError

TYPES = ("int32", "int64", "float32", "float64", "uint8", "uint32")


def write_index(folder: Path, **arrays: np.ndarray) -> FolderFiles:
    """Write some arrays as the files of an index, and open them."""
    (folder / "data").mkdir(parents=True)
    facts = {}
    for name, array in arrays.items():
        write_array(folder / "data" / name, array)
        facts[name] = seal(folder / "data" / name, array.dtype.name)
    (folder / "index.json").write_text(write_manifest({}, "data", facts))
    files = open_files(folder)
    assert isinstance(files, FolderFiles)
    return files


def replace_byte(path: Path, place: int) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("length", [0, 1, BLOCK // 8, BLOCK // 8 + 1, 3 * BLOCK + 7])
def test_what_is_written_is_read(kind: str, length: int, tmp_path: Path) -> None:
    array = np.random.default_rng(length).integers(0, 200, length).astype(kind)
    files = write_index(tmp_path / "a", own=array)
    own = files["own"]
    assert (len(own), own.facts.type, files.size) == (length, kind, array.nbytes)
    assert np.array_equal(own.whole(), array)
    assert own.whole().dtype == array.dtype
    places = np.random.default_rng(0).integers(0, max(1, length), 20 if length else 0)
    assert np.array_equal(own.take(places), array[places])
    first = length // 3
    assert np.array_equal(own.stretch(first, length), array[first:])
    starts, stops = np.array([first, 0, first]), np.array([length, 0, first + min(1, length)])
    assert np.array_equal(own.gather(starts, stops), array[stretches(starts, stops)])
    mapped = create(tmp_path / "mapped", kind, length)
    mapped[:] = array
    del mapped
    assert np.array_equal(map_array(tmp_path / "mapped", kind), array)


def test_only_the_blocks_that_are_asked_for_are_read(tmp_path: Path) -> None:
    array = np.arange(BLOCK)  # eight blocks
    files = write_index(tmp_path / "a", own=array)
    first = files.bytes_read
    assert first == 4 * 8
    assert files["own"].take(np.array([5, 9000, 5])).tolist() == [5, 9000, 5]
    assert files.bytes_read == first + 2 * BLOCK
    assert files["own"].stretch(0, 9000).tolist() == list(range(9000))
    assert files.bytes_read == first + 2 * BLOCK
    replace_byte(tmp_path / "a/data/own", 7 * BLOCK)
    assert files["own"].stretch(0, 7 * BLOCK // 8).tolist() == list(range(7 * BLOCK // 8))
    for _ in range(2):
        with pytest.raises(SourceError, match=r"a/data/own is missing or damaged; prepare the index again, or open it"):
            files["own"].take(np.array([BLOCK - 1]))


@pytest.mark.parametrize(
    "damage",
    [
        lambda file: file.unlink(),
        lambda file: file.write_bytes(file.read_bytes()[:-1]),
        lambda file: file.write_bytes(file.read_bytes() + b"\0"),
        lambda file: file.write_bytes(b""),
        lambda file: (file.unlink(), file.mkdir()),
        lambda file: replace_byte(file, 3),
    ],
)
@pytest.mark.parametrize("name", ["own", "own.crc"])
def test_damage_is_one_sentence(damage: Callable[[Path], object], name: str, tmp_path: Path) -> None:
    write_index(tmp_path / "a", own=np.arange(9))
    damage(tmp_path / "a/data" / name)
    with pytest.raises(SourceError, match=rf"a/data/{name} is missing or damaged; prepare the index again"):
        open_files(tmp_path / "a")["own"].whole()
    assert not is_sealed(tmp_path / "a/data/own", ArrayFacts("int64", 9, crc32(b"")))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda _: "", "is no manifest of an index"),
        (lambda text: text[:50], "is no manifest of an index"),
        (lambda _: "[" * 100_000, "is no manifest of an index"),
        (lambda _: "[1]", "is no manifest of an index"),
        (lambda _: '{"format": "x", "version": 1}', r"is no manifest of an index \(its format is 'x'\)"),
        (lambda text: text.replace('"version": 1', '"version": "1"'), "is no manifest of an index"),
        (
            lambda text: text.replace('"version": 1', '"version": 7'),
            "was prepared by a newer version of neupath, in version 7",
        ),
        (
            lambda text: text.replace('"length": 9', '"length": 8'),
            "index.json is damaged: it does not fit its checksum",
        ),
        (lambda text: text.replace("sha256", "sha257"), "is no manifest of an index"),
        (lambda text: "\xff" + text, "is no manifest of an index"),
    ],
)
def test_manifests_that_are_damaged_or_newer(change: Callable[[str], str], message: str, tmp_path: Path) -> None:
    write_index(tmp_path / "a", own=np.arange(9))
    manifest = tmp_path / "a/index.json"
    manifest.write_text(change(manifest.read_text()), "latin-1")
    with pytest.raises(SourceError, match=message) as refused:
        open_files(tmp_path / "a")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "facts",
    [
        {"../own": ("int64", 9)},
        {"own": ("object", 9)},
        {"own": ("int64", -1)},
        {"own": ("int64", "9")},
        {"own": ("int64", 1.5)},
    ],
)
def test_manifests_that_name_other_files_or_types_are_refused(facts: dict, tmp_path: Path) -> None:
    """Such a manifest fits its checksum, as one that an attacker has written."""
    write_index(tmp_path / "a", own=np.arange(9))
    arrays = {name: ArrayFacts(kind, length, 0) for name, (kind, length) in facts.items()}
    (tmp_path / "a/index.json").write_text(write_manifest({}, "data", arrays))
    with pytest.raises(SourceError):
        open_files(tmp_path / "a")
    (tmp_path / "a/index.json").write_text(write_manifest({}, "../a/data", {}))
    with pytest.raises(SourceError, match=r"its data are in '../a/data'"):
        open_files(tmp_path / "a")


def test_folders_without_an_index(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "nothing"):
        assert not is_index(place)
        with pytest.raises(
            SourceError, match=f"^{place} has no index.json, so it is no prepared index; `neupath prepare`"
        ):
            open_index(place)
    (tmp_path / "index.json").mkdir()
    with pytest.raises(SourceError, match="cannot read .*index.json: Is a directory"):
        open_index(tmp_path)
    assert is_index(prepare(load("toy"), PathSim("APVPA"), tmp_path / "index"))


def test_a_manifest_says_what_an_index_is_of(tmp_path: Path) -> None:
    manifest = json.loads(Path(prepare(load("toy"), PathSim("APVPA"), tmp_path / "index"), "index.json").read_text())
    assert (manifest["format"], manifest["version"]) == ("neupath index", 1)
    assert manifest["metapath"] == "author-paper-venue-paper-author"
    assert manifest["sides"] == {"source": "author", "target": "author", "middle": "venue"}
    assert (manifest["measure"], manifest["params"]) == ("pathsim", {"metapath": manifest["metapath"]})
    assert set(manifest["arrays"]["left.data"]) == {"type", "length", "crc"}
