"""Sources in the layouts of real projects give the graph that a person expects or one sentence, never another graph."""

import io
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from neupath import load
from neupath.graph.hin import digest
from neupath.io import import_store
from neupath.io.tables import stem
from tests.io.corpus import SOURCES, tabular
from tests.io.corpus.frame import Sample, outcome


@pytest.mark.parametrize("name", SOURCES)
def test_source_is_read_right_or_refused(name: str, tmp_path: Path) -> None:
    for package in SOURCES[name].needs:
        pytest.importorskip(package)
    assert problems(SOURCES[name].write(tmp_path)) == []


def problems(sample: Sample) -> list[str]:
    """Return what is not as expected of a sample."""
    kind, lines = outcome(sample)
    if sample.refused is None:
        return lines
    return [] if kind == "refused" and re.search(sample.refused, lines[0]) else [f"{kind}: {lines}"]


@pytest.mark.slow
def test_the_graph_toml_of_a_refusal_can_be_pasted(tmp_path: Path) -> None:
    pasted = 0
    for name, sample in _written(tmp_path):
        kind, lines = outcome(sample)
        _, found, toml = lines[0].partition("such as:\n") if kind == "refused" else ("", "", "")
        if found:
            config = tmp_path / f"{name}.toml"
            config.write_text(toml, encoding="utf-8")
            kind, lines = outcome(replace(sample, options={"config": config}))
            assert kind == "read", (name, lines)
            pasted += 1
    assert pasted > 10


@pytest.mark.slow
def test_frames_are_read_as_the_files_are(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    wrong = {}
    for name, sample in _written(tmp_path):
        if sample.tables and all(table.has_header for table in sample.tables):
            texts = {stem(Path(table.file)): (io.StringIO(table.text()), table.delimiter) for table in sample.tables}
            frames = {key: pd.read_csv(text, sep=delimiter) for key, (text, delimiter) in texts.items()}
            wrong[name] = problems(replace(sample, load=frames, refused=sample.refused and ""))
    assert len(wrong) > 20
    assert {name: lines for name, lines in wrong.items() if lines} == {}


@pytest.mark.slow
def test_imports_give_the_same_graphs(tmp_path: Path) -> None:
    digests = {}
    for name, sample in _written(tmp_path):
        if sample.refused is None and sample.tables:
            store = import_store(sample.load, tmp_path / name / "store", **sample.options)
            digests[name] = digest(load(sample.load, **sample.options)), digest(load(store))
    assert len(digests) > 30
    assert [name for name, (read, imported) in digests.items() if read != imported] == []


def _written(parent: Path) -> Iterator[tuple[str, Sample]]:
    """Write all sources of text tables."""
    for name, each in SOURCES.items():
        if each.write.__module__ == tabular.__name__:
            (parent / name).mkdir()
            (parent / name / "source").mkdir()
            yield name, each.write(parent / name / "source")


def test_the_corpus_is_large() -> None:
    assert len(SOURCES) >= 140
