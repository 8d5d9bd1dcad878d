from pathlib import Path
from xml.etree import ElementTree as ET

import pyarrow as pa
import pytest

from neupath import HIN, explain
from neupath.errors import QueryError, WriteError
from neupath.evidence.drawing import draw_curve, draw_explanation
from neupath.graph.nodes import Nodes
from tests.graphs import graph_of


def texts_of(path: Path) -> set[str]:
    return {"".join(element.itertext()).strip() for element in ET.parse(path).iter() if element.tag.endswith("text")}


def test_svg_shows_every_node_and_the_formula(toy: HIN, tmp_path: Path) -> None:
    texts = texts_of(draw_explanation(explain(toy, "APVPA", "Mike", "Mary", limit=3), tmp_path / "why.svg"))
    assert {"Mike", "SIGMOD", "Mike-SIGMOD-1", "Mary-SIGMOD-2", "author", "paper", "venue"} <= texts
    assert "Mike and Mary: pathsim = 2 × 4 / (5 + 5) = 0.8000" in texts
    assert any("3 of 4 paths" in text for text in texts)
    bars = {"83 %, 100 paths", "17 %, 20 paths", "VLDB", "Both connect through SIGMOD (83 %) and VLDB (17 %)."}
    assert bars <= texts_of(draw_explanation(explain(toy, "APVPA", "Mike", "Jim"), tmp_path / "why.svg"))


def test_nothing_to_draw_is_drawn(toy: HIN, tmp_path: Path) -> None:
    for why in (explain(toy, "APA", "Mike", "Jim"), explain(toy, "APVPA", "Mike", "Jim", limit=0)):
        assert draw_explanation(why, tmp_path / "why.png").stat().st_size > 1000


@pytest.mark.parametrize(("suffix", "magic"), [(".png", b"\x89PNG"), (".pdf", b"%PDF"), (".svg", b"<?xml")])
def test_formats_and_that_drawings_are_deterministic(toy: HIN, tmp_path: Path, suffix: str, magic: bytes) -> None:
    why = explain(toy, "APVPA", "Mike", "Ann")
    one, two = (draw_explanation(why, tmp_path / f"{n}{suffix}").read_bytes() for n in (1, 2))
    assert one.startswith(magic)
    assert suffix == ".pdf" or one == two  # which holds the time


def test_hostile_names_are_text(tmp_path: Path) -> None:
    names = pa.array(["$x^2$ <b>&", "東京 \u202e\x07 " + "long " * 50])
    hin = graph_of({"a": Nodes("a", pa.array([1, 2]), names), "b": ["m"]}, {"a -r-> b": [(0, 0), (1, 0)]})
    for suffix in ("svg", "png"):
        draw_explanation(explain(hin, "a-b-a", 1, 2), tmp_path / f"why.{suffix}")
    assert "$x^2$ <b>&" in texts_of(tmp_path / "why.svg")


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
