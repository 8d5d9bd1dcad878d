"""Sources in the layouts of real projects give the graph that a person expects or one sentence, never another graph."""

import io
import re
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from neupath.io.detect import RULES, Rule
from neupath.io.draft import draft_of, explain_source
from neupath.io.registry import find_tables
from neupath.io.table_files import stem
from tests.io.corpus import SOURCES, TEXTS
from tests.io.corpus.frame import Sample, outcome, read
from tests.tables import edges_toml, write


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


def _written(parent: Path) -> Iterator[tuple[str, Sample]]:
    """Write all sources of text tables."""
    for name, each in TEXTS.items():
        (parent / name / "source").mkdir(parents=True)
        yield name, each.write(parent / name / "source")


def test_the_corpus_is_large() -> None:
    assert len(SOURCES) >= 140


def readable(name: str) -> bool:
    return all(map(find_spec, SOURCES[name].needs))


@pytest.mark.slow
def test_every_note_says_something_and_goes_with_the_graph_toml_that_settles_it(tmp_path: Path) -> None:
    seen = settled = 0
    for name in filter(readable, SOURCES):
        (tmp_path / name / "source").mkdir(parents=True)
        sample = SOURCES[name].write(tmp_path / name / "source")
        if sample.refused is not None:
            continue
        notes = read(sample).notes
        assert not [note for note in notes if note.rstrip().endswith(":") or " " not in note.strip()], (name, notes)
        assert len(set(notes)) == len(notes), (name, notes)
        seen += len(notes)
        if not isinstance(sample.load, Path) or sample.options or find_tables(sample.load, None, None, None) is None:
            continue
        config = tmp_path / name / "written.toml"
        config.write_text(draft_of(str(sample.load)).to_toml())
        left = read(replace(sample, options={"config": config})).notes
        for note in (note for note in left if "graph.toml" in note):
            text = config.read_text()
            for assignment in re.findall(r"\w+ = (?:\{.*?\}|\[.*?\]|\".*?\")", note):
                assert said(text, assignment, note) != text, (name, note)
                settled_file = tmp_path / name / "settled.toml"
                settled_file.write_text(said(text, assignment, note))
                assert note not in read(replace(sample, options={"config": settled_file})).notes, (name, note)
                settled += 1
    assert seen > 60
    assert settled >= 3


def said(toml: str, assignment: str, note: str) -> str:
    """Return a graph.toml with one more key in the section of the file that a note is about."""
    key, file = assignment.partition(" =")[0], f'file = "{note.partition(": ")[0]}"'
    sections = re.split(r"(?m)^(?=\[)", toml)
    return "".join(
        re.sub(rf"(?m)^{key} = .*\n", "", section).rstrip() + f"\n{assignment}\n\n"
        if file in section and section.startswith("[[edges]]")
        else section
        for section in sections
    )


TOUCHED = "commit_id,file_id,added,deleted\nc1,f1,1,0\nc1,f2,5,2\nc2,f1,0,7\n"
TOUCHES = edges_toml("touches", "commit_file.csv", "commit", "file")


@pytest.mark.parametrize(
    "settled",
    [
        'attributes = ["added", "deleted"]',
        'attributes = ["added"]',
        "attributes = []",
        'weight = "added"',
        'attributes = ["added"]\nattribute_types = {added = "integer"}',
    ],
)
def test_the_note_on_a_likely_weight_is_settled(tmp_path: Path, settled: str) -> None:
    (note,) = read(Sample(write(tmp_path, commit_file__csv=TOUCHED))).notes
    assert "added, deleted are attributes of edges, and each edge weighs 1" in note
    assert read(Sample(write(tmp_path, graph__toml=TOUCHES))).notes == (note,)
    assert read(Sample(write(tmp_path, graph__toml=f"{TOUCHES}{settled}\n"))).notes == ()


@pytest.mark.parametrize(
    ("files", "section"),
    [
        ({"nodes.csv": "id,type\na,x\nb,y\n", "edges.csv": "source,relation,target,n\na,r,b,2\n"}, "[pair]"),
        ({"kg.csv": "head,relation,tail,n\na,r,b,2\n"}, "[triples]"),
        ({"papers.csv": "paper_id,venue_id,x,n\n1,v,a,3\n2,v,b,4\n"}, '[nodes.paper]\nfile = "papers.csv"'),
    ],
)
def test_attributes_that_graph_toml_names_are_not_noted(tmp_path: Path, files: dict[str, str], section: str) -> None:
    edges = edges_toml("at", "papers.csv", "paper", "venue") * ("nodes" in section)
    for attributes in ("[]", '["n"]'):
        write(tmp_path, **files, **{"graph.toml": f"{section}\nattributes = {attributes}\n{edges}"})
        assert read(Sample(tmp_path)).notes == ()


def test_what_is_left_out_beside_tables_can_be_ignored(tmp_path: Path) -> None:
    tables = {"movie_actor__csv": "movie_id,actor_id\n1,7\n", "more__nt": "<http://a> <http://b> <http://c> .\n"}
    assert len(read(Sample(write(tmp_path, **tables, log__dat="x\n"))).notes) == 2
    assert read(Sample(write(tmp_path, graph__toml='ignore = ["*.nt", "log.dat"]\n'))).notes == ()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule.name))
def test_each_rule_of_detection_reads_its_example(tmp_path: Path, rule: Rule) -> None:
    sample = SOURCES[rule.example].write(tmp_path)
    *others, (name, looks_at, outcome) = explain_source(str(sample.load))
    assert (name, looks_at) == (rule.name, rule.looks_at)
    assert outcome == "reads them" if sample.refused is None else outcome.startswith("refuses them")
    assert not any(outcome.startswith("reads") for *_, outcome in others)
