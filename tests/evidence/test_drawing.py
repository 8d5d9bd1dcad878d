from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pyarrow as pa
import pytest

from neupath import HIN, explain
from neupath.errors import QueryError, WriteError
from neupath.evidence.drawing import draw_curve, draw_explanation
from neupath.graph.hin import Edges
from neupath.graph.metapath import Relation
from neupath.graph.nodes import Nodes


def test_svg_shows_every_node_and_the_formula(toy: HIN, tmp_path: Path) -> None:
    path = draw_explanation(explain(toy, "APVPA", "Mike", "Mary", limit=3), tmp_path / "why.svg")
    texts = {"".join(element.itertext()).strip() for element in ET.parse(path).iter() if element.tag.endswith("text")}
    assert {"Mike", "SIGMOD", "Mike-SIGMOD-1", "Mary-SIGMOD-2", "author", "paper", "venue"} <= texts
    assert "Mike and Mary: pathsim = 2 × 4 / (5 + 5) = 0.8000" in texts
    assert any("3 of 4 paths" in text for text in texts)


def test_groups_are_bars_with_their_shares(toy: HIN, tmp_path: Path) -> None:
    path = draw_explanation(explain(toy, "APVPA", "Mike", "Jim"), tmp_path / "why.svg")
    texts = ["".join(element.itertext()).strip() for element in ET.parse(path).iter() if element.tag.endswith("text")]
    assert {"83 %, 100 paths", "17 %, 20 paths", "VLDB", "Both connect through SIGMOD (83 %) and VLDB (17 %)."} <= set(
        texts
    )


def test_nothing_to_draw_is_drawn(toy: HIN, tmp_path: Path) -> None:
    for why in (explain(toy, "APA", "Mike", "Jim"), explain(toy, "APVPA", "Mike", "Jim", limit=0)):
        assert draw_explanation(why, tmp_path / "why.png").stat().st_size > 1000


def test_drawings_are_deterministic(toy: HIN, tmp_path: Path) -> None:
    why = explain(toy, "APVPA", "Mike", "Mary")
    one, two = (draw_explanation(why, tmp_path / f"{n}.svg").read_bytes() for n in (1, 2))
    assert one == two


@pytest.mark.parametrize(("suffix", "magic"), [(".png", b"\x89PNG"), (".pdf", b"%PDF")])
def test_other_formats(toy: HIN, tmp_path: Path, suffix: str, magic: bytes) -> None:
    path = draw_explanation(explain(toy, "APVPA", "Mike", "Ann"), tmp_path / f"why{suffix}")
    assert path.read_bytes().startswith(magic)


def test_hostile_names_are_text(tmp_path: Path) -> None:
    names = pa.array(["$x^2$ <b>&", "東京 \u202e\x07 " + "long " * 50])
    hin = HIN.build(
        [Nodes("a", pa.array([1, 2]), names), Nodes("b", pa.array(["m"]))],
        [Edges(Relation("a", "r", "b"), np.array([0, 1]), np.array([0, 0]))],
    )
    path = draw_explanation(explain(hin, "a-b-a", 1, 2), tmp_path / "why.svg")
    texts = {"".join(element.itertext()).strip() for element in ET.parse(path).iter() if element.tag.endswith("text")}
    assert "$x^2$ <b>&" in texts
    draw_explanation(explain(hin, "a-b-a", 1, 2), tmp_path / "why.png")


def test_bad_targets(toy: HIN, tmp_path: Path) -> None:
    why = explain(toy, "APVPA", "Mike", "Mary")
    with pytest.raises(QueryError, match=r"the name must end in .svg, .png, .pdf"):
        draw_explanation(why, tmp_path / "why.txt")
    with pytest.raises(WriteError, match="cannot write .*No such file or directory"):
        draw_explanation(why, tmp_path / "nowhere" / "why.svg")
    assert list(tmp_path.iterdir()) == []


def test_a_learning_curve_has_plain_numbers(tmp_path: Path) -> None:
    log = [{"epoch": n, "train_rmse": 0.3 / n, "validation_rmse": 0.4 / n} for n in range(1, 12)]
    for entries in (log, [*log, {"epoch": 12, "train_rmse": 0.0, "validation_rmse": 0.0}]):
        text = draw_curve(entries, tmp_path / "curve.svg").read_text()
        assert "mathdefault" not in text
        assert "validation" in text
