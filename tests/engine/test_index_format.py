"""A reader of a prepared index that knows docs/reference/index-format.md alone."""

import json
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest

import neupath as npth
from neupath import HIN
from neupath.measures import measure_named

MASK = 2**64 - 1


class Reader:
    """Reads the files of an index as its page describes them."""

    def __init__(self, folder: Path) -> None:
        self.manifest = json.loads((folder / "index.json").read_text("utf-8"))
        own = {name: value for name, value in self.manifest.items() if name != "sha256"}
        assert sha256(json.dumps(own, sort_keys=True).encode()).hexdigest() == self.manifest["sha256"]
        self.data = folder / self.manifest["data"]

    def array(self, name: str) -> Any:
        about = self.manifest["arrays"][name]
        content, sums = (self.data / name).read_bytes(), (self.data / f"{name}.crc").read_bytes()
        blocks = [content[at : at + 65536] for at in range(0, len(content), 65536)]
        assert [crc32(block) for block in blocks] == np.frombuffer(sums, "<u4").tolist()
        assert crc32(sums) == about["crc"]
        array = np.frombuffer(content, np.dtype(about["type"]).newbyteorder("<"))
        assert len(array) == about["length"]
        return array

    def row(self, factor: str, row: int) -> dict[int, float]:
        starts = self.array(f"{factor}.indptr")
        own = slice(starts[row], starts[row + 1])
        columns, values = self.array(f"{factor}.indices")[own], self.array(f"{factor}.data")[own]
        return dict(zip(columns.tolist(), values.tolist(), strict=True))

    def texts(self, name: str) -> list[str]:
        starts, text = self.array(f"{name}.starts"), self.array(f"{name}.text").tobytes()
        return [text[first:last].decode() for first, last in pairwise(starts)]

    def find(self, side: str, node_id: str) -> list[int]:
        """Return the rows of ids in the bucket of a text."""
        content = node_id.encode()
        value = mix(len(content) + 0x9E3779B97F4A7C15 & MASK)
        for at in range(0, len(content), 8):
            value = mix(value ^ int.from_bytes(content[at : at + 8].ljust(8, b"\0"), "little"))
        starts, words = self.array(f"{side}.words.starts"), self.array(f"{side}.words")
        bucket = value & len(starts) - 2
        return [code // 2 for code in words[starts[bucket] : starts[bucket + 1]].tolist() if code % 2 == 0]

    def score(self, x: int, y: int) -> float:
        left = self.row("left", x)
        m = sum(value * self.row("right", middle).get(y, 0.0) for middle, value in left.items())
        others = self.array("left_norms" if self.manifest["symmetric"] else "right_norms")
        dx, dy = self.array("left_norms")[x], others[y]
        kind, alpha, beta = self.manifest["formula"]
        below = {
            0: 1.0,
            2: (dx * dy) ** 0.5,
            4: min(dx, dy),
            5: alpha * dx + beta * dy + (1 - alpha - beta) * m,
        }[kind]
        return m / below if m else 0.0


def mix(value: int) -> int:
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & MASK
    value = (value ^ value >> 27) * 0x94D049BB133111EB & MASK
    return value ^ value >> 31


@pytest.mark.parametrize(
    ("measure", "path"),
    [("pathsim", "APVPA"), ("jaccard", "APA"), ("overlap", "APVPA"), ("hetesim", "APV"), ("pathcount", "APVP")],
)
def test_the_page_says_all_that_a_reader_needs(toy: HIN, tmp_path: Path, measure: str, path: str) -> None:
    scorer = measure_named(measure, path).fit(toy)
    reader = Reader(Path(npth.prepare(toy, scorer, tmp_path / "index")))
    ids = toy.nodes[scorer.source_type].ids.to_pylist()
    assert reader.texts("source.ids") == ids
    for x, own in enumerate(ids[:20]):
        assert x in reader.find("source", own)
    for x, y in ((0, 1), (1, 0), (1, 2), (2, 2)):
        assert reader.score(x, y) == pytest.approx(scorer.score_rows(np.array([x]))[0, y], rel=1e-15)
