"""The example package, really installed, adds a measure and a reader; a broken or clashing plug-in is said."""

import doctest
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import neupath as npth
from neupath import HIN, NeuPathError
from neupath._runtime.plugins import Plugins
from neupath.cli.program import COMMANDS
from neupath.errors import PluginError, PluginWarning, SourceError
from neupath.io.registry import READERS
from neupath.learn.inference.features import inferred_measures
from neupath.learn.registry import ARCHITECTURES, Architecture, check_architecture, learning_from
from neupath.measures import GRAPH_MEASURES, MEASURES
from tests.command_line import Run
from tests.io.test_registry import check_bib
from tests.walks import hub_scores

ROOT = Path(__file__).parent.parent
PATH = "author-paper-venue-paper-author"
GDF = """nodedef>name VARCHAR,label VARCHAR,type VARCHAR
m1,'Alien, the film',movie
m2,Aliens,movie
d1,Cameron,director
d2,Scott,director
edgedef>node1 VARCHAR,node2 VARCHAR,relation VARCHAR,weight DOUBLE
m1,d2,directed_by,1
m2,d1,directed_by,2
m2,d2,directed_by,1
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which pip has installed the example package."""
    folder = tmp_path_factory.mktemp("site")
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-build-isolation", "--no-deps", "--no-index",
         "--disable-pip-version-check", "--target", folder, ROOT / "examples" / "plugin"],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return folder


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Registries that have loaded no plug-in yet; afterwards they are as before."""
    for registry in (MEASURES, ARCHITECTURES, READERS, COMMANDS):
        plugins = registry._plugins
        monkeypatch.setattr(plugins, "_is_loaded", False)
        for name in ("_values", "_packages", "_problems"):
            monkeypatch.setattr(plugins, name, {})
    modules = set(sys.modules)
    yield monkeypatch
    for name in set(sys.modules) - modules:
        if name.startswith("neupath_") or name.startswith("plugged"):
            del sys.modules[name]


@pytest.fixture
def installed(site: Path, fresh: pytest.MonkeyPatch) -> Path:
    fresh.syspath_prepend(site)
    return site


@pytest.mark.slow
def test_a_process_of_its_own_knows_the_measure_and_the_reader(site: Path, tmp_path: Path) -> None:
    (tmp_path / "films.gdf").write_text(GDF, encoding="utf-8")
    paths = os.pathsep.join([str(site), str(Path(npth.__file__).parents[1])])
    process = subprocess.run(
        [sys.executable, "-W", "error", "-m", "neupath", "search", "films.gdf", "Aliens", "-p", "movie-director-movie",
         "-m", "hubsim", "--json"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    printed = json.loads(process.stdout)
    assert (printed["measure"], [hit["name"] for hit in printed["hits"]]) == ("hubsim", ["Alien, the film"])


@pytest.mark.slow
@pytest.mark.usefixtures("installed")
def test_search_explain_join_and_infer_know_the_measure(toy: HIN, run: Run, tmp_path: Path) -> None:
    assert doctest.testmod(import_module("neupath_example.hubsim")) == (0, 2)
    expected = hub_scores(toy, PATH)
    ends = toy.row("author", "Mike"), toy.row("author", "Mary")
    found = json.loads(run("search", "toy", "Mike", "-p", PATH, "-m", "HubSim", "--json").out)
    assert {hit["id"]: hit["score"] for hit in found["hits"]}["Mary"] == pytest.approx(expected[ends])
    explained = json.loads(run("explain", "toy", "Mike", "Mary", "-p", PATH, "-m", "hubsim", "--json").out)
    assert explained["score"] == pytest.approx(expected[ends])
    assert sum(group["share"] for group in explained["groups"]) == pytest.approx(1)
    assert run("join", "toy", "-p", PATH, "-m", "hubsim", "--out", str(tmp_path / "top.parquet")).code == 0
    pairs = pq.read_table(tmp_path / "top.parquet").to_pylist()
    assert {(pair["query"], pair["target"]): pair["score"] for pair in pairs}["Mike", "Mary"] == pytest.approx(
        expected[ends]
    )
    authors = toy.nodes["author"].ids.to_pylist()
    labels = tmp_path / "pairs.csv"
    lines = [f"{authors[q]},{authors[t]},{expected[q, t]!r}" for q in range(len(authors)) for t in range(q)]
    labels.write_text("query,target,score\n" + "\n".join(lines).replace("np.float64(", "").replace(")", "") + "\n")
    inferred = json.loads(run("infer", "toy", str(labels), "--max-length", "4", "--json").out)
    assert inferred["measure"] == "hubsim"
    saved = npth.load_scorer(MEASURES["hubsim"](PATH).fit(toy).save(tmp_path / "saved"), toy)
    assert saved.score("Mike", "Mary") == pytest.approx(expected[ends])


@pytest.mark.slow
@pytest.mark.usefixtures("installed")
def test_the_service_lists_and_uses_the_measure(toy: HIN, tmp_path: Path) -> None:
    from tests.service.conftest import start_service

    running = start_service(tmp_path / "state", {"toy": toy})
    try:
        listed = [measure["name"] for measure in running.get("/api/measures").json()]
        assert listed == [*MEASURES, *GRAPH_MEASURES]
        assert "hubsim" in listed
        question = {"query": "Mike", "metapath": PATH, "measure": "hubsim"}
        answer = running.get("/api/graphs/toy/search", params=question).json()
        scores = {hit["id"]: hit["score"] for hit in answer["hits"]}
        assert scores["Mary"] == pytest.approx(
            hub_scores(toy, PATH)[toy.row("author", "Mike"), toy.row("author", "Mary")]
        )
    finally:
        running.stop()


@pytest.mark.usefixtures("installed")
@pytest.mark.slow
def test_a_reader_reads_right_or_says_what_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "films.GDF"
    path.write_text(GDF, encoding="utf-8")
    hin = npth.load(path)
    (relation,) = hin.schema.relations
    assert (relation.source, relation.name, relation.target) == ("movie", "directed_by", "director")
    assert hin.matrix(hin.metapath("movie-director").steps[0].links[0]).toarray()[1].sum() == 3
    for options in ({"duplicates": "drop"}, {"config": tmp_path / "graph.toml"}):
        with pytest.raises(SourceError, match=r"by the package neupath-example 1\.0, without config and duplicates"):
            npth.load(path, **options)
    path.write_text(GDF + "m9,d1,directed_by,1\n", encoding="utf-8")
    with pytest.raises(SourceError, match=r"cannot be read by the package neupath-example 1\.0: .*line 10: no"):
        npth.load(path)


def test_the_page_shows_the_example_package() -> None:
    page = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")
    shown = dict(re.findall(r"^```\w+ (\S+)\n(.*?)^```$", page, flags=re.DOTALL | re.MULTILINE))
    assert len(shown) == 2
    for name, content in shown.items():
        assert (ROOT / "examples" / "plugin" / name).read_text(encoding="utf-8") == content


def test_a_built_in_name_loads_no_plugin(fresh: pytest.MonkeyPatch, toy: HIN) -> None:
    fresh.setattr(Plugins, "load", lambda _: pytest.fail("plug-ins were loaded"))
    npth.explain(toy, "APVPA", "Mike", "Mary", measure="joinsim")
    assert "pathsim" not in GRAPH_MEASURES
    assert "simrank" not in MEASURES
    assert check_architecture("neupath") == "neupath"
    assert "neupath" in ARCHITECTURES.built_in


def install(folder: Path, package: str, code: str, **groups: str) -> None:
    """Write what pip would for a package of one module: the module, and its entry points."""
    (folder / f"plugged_{package}.py").write_text(code, encoding="utf-8")
    info = folder / f"{package}-2.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 2.0\n", encoding="utf-8")
    points = "".join(f"[neupath.{group}]\n{line}\n" for group, line in groups.items())
    (info / "entry_points.txt").write_text(points, encoding="utf-8")


MEASURE = "from neupath.measures import PathMeasure\nclass M(PathMeasure):\n    name = {name!r}\n"


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("import nowhere", "the package gone 2.0 offers 'odd' for neupath.measures, which cannot be used: "
         "ModuleNotFoundError: No module named 'nowhere'; update or uninstall gone"),
        ("M = 3", ".*it is no subclass of PathMeasure or GraphMeasure"),
        (MEASURE.format(name="even"), ".*the attribute name of its class is 'even', and must be the same"),
        ("raise SyntaxError", ".*SyntaxError"),
    ],
)  # fmt: skip
def test_a_broken_plugin_is_named_once_and_the_others_work(
    code: str, sentence: str, fresh: pytest.MonkeyPatch, tmp_path: Path, toy: HIN
) -> None:
    install(tmp_path, "gone", code, measures="odd = plugged_gone:M")
    install(tmp_path, "good", MEASURE.format(name="fine"), measures="fine = plugged_good:M")
    fresh.syspath_prepend(tmp_path)
    with pytest.warns(PluginWarning, match=sentence):
        names = list(MEASURES)
    assert names == [*MEASURES.built_in, "fine"]
    assert "fine" in inferred_measures()
    with pytest.raises(PluginError, match=sentence):
        npth.explain(toy, "APVPA", "Mike", "Mary", measure="odd")
    with pytest.raises(NeuPathError, match=r"no measure 'fin' .*; did you mean 'fine'\?"):
        npth.explain(toy, "APVPA", "Mike", "Mary", measure="fin")


def test_a_taken_name_is_said_and_the_built_in_stays(fresh: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install(tmp_path, "first", MEASURE.format(name="pathsim"), measures="pathsim = plugged_first:M")
    install(tmp_path, "second", MEASURE.format(name="new"), measures="new = plugged_second:M")
    install(tmp_path, "third", MEASURE.format(name="new"), measures="new = plugged_third:M")
    fresh.syspath_prepend(tmp_path)
    with pytest.warns(PluginWarning) as said:
        names = list(MEASURES)
    assert [str(warning.message).partition(" offers ")[0] for warning in said] == [
        "the package first 2.0", "the package third 2.0",
    ]  # fmt: skip
    assert "it is built in, and that one is used" in str(said[0].message)
    assert "the package second 2.0 has it, and that one is used" in str(said[1].message)
    assert names == [*MEASURES.built_in, "new"]
    assert MEASURES["pathsim"] is npth.PathSim
    assert MEASURES["new"] is import_module("plugged_second").M


def test_an_architecture_of_a_plugin_is_known_by_name(fresh: pytest.MonkeyPatch, tmp_path: Path) -> None:
    code = "from neupath.learn.registry import Architecture\nA = Architecture('somewhere:Net', learns_from='metapath')"
    install(tmp_path, "nets", code, architectures="net = plugged_nets:A", readers="csv = plugged_nets:A")
    fresh.syspath_prepend(tmp_path)
    assert check_architecture("net") == "net"
    assert isinstance(ARCHITECTURES["net"], Architecture)
    assert "net" in learning_from("metapath")
    with pytest.warns(PluginWarning, match=r"the package nets 2\.0 offers 'csv' for neupath\.readers.*it is built in"):
        assert "csv" not in list(READERS)


def test_a_command_of_a_plugin_is_listed_and_run(fresh: pytest.MonkeyPatch, tmp_path: Path, run: Run) -> None:
    code = "HELLO = ('plugged_hello:hello', 'Say hello.')\ndef hello(name: str):\n    print('hello', name)"
    install(tmp_path, "hello", code, commands="hello = plugged_hello:HELLO\nsearch = plugged_hello:HELLO")
    install(tmp_path, "wrong", "WRONG = 3", commands="wrong = plugged_wrong:WRONG")
    fresh.syspath_prepend(tmp_path)
    said = run("hello", "you")
    assert (said.code, said.out) == (0, "hello you\n")
    assert "offers 'search' for neupath.commands, a name that is taken: it is built in" in said.err
    assert "a command is a pair of texts" in said.err
    assert "Say hello." in run("--help").out


def test_a_reader_of_a_plugin_may_give_tables_and_a_plan(fresh: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install(tmp_path, "bibs", "from tests.io.test_registry import read_bib", readers="bib = plugged_bibs:read_bib")
    fresh.syspath_prepend(tmp_path)
    check_bib(tmp_path / "papers.bib")
