"""info, paths, search, explain and join as a user types them: their output, and errors for bad input."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import neupath as npth
from neupath.learn.registry import make_model
from neupath.learn.stack import Stack
from neupath.measures import GRAPH_MEASURES, PPR, PathCount, restart_walk
from tests.command_line import Run
from tests.tables import BAD_FOLDERS, CAST, MOVIES, write


@pytest.fixture
def movies(tmp_path: Path) -> Path:
    return write(tmp_path / "movies", movies__tsv=MOVIES, movie_actor__tsv=CAST)


@pytest.mark.parametrize("measure", list(GRAPH_MEASURES))
def test_search_over_the_whole_graph_needs_no_metapath(run: Run, measure: str) -> None:
    answer = run("search", "toy", "Mike", "--measure", measure, "--json").json
    assert (answer["measure"], answer["metapath"], answer["exact"]) == (measure, None, True)
    assert answer == run("search", "toy", "Mike", "--measure", measure, "--node-type", "author", "--json").json
    result = run("search", "toy", "Mike", "Bob", "--measure", measure)
    assert result.code == 0
    if measure == "scan":  # no two authors share a paper
        assert "Mike: nothing found by scan" in result.out
        assert "0 of 4 author nodes are related; the others have score 0" in result.err
    else:
        assert f"author nodes most similar to Mike by {measure}" in result.out


def test_search_states_the_error_of_estimates(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "exact value" not in run("search", "toy", "Mike", "--measure", "ppr").err
    monkeypatch.setattr(restart_walk, "_LIGHT", 0.0)
    result = run("search", "toy", "Mike", "--measure", "ppr")
    assert "note: each score differs by at most 1e-06 from its exact value" in result.err
    assert run("search", "toy", "Mike", "--measure", "ppr", "--json").json["exact"] is False


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--measure", "ppr", "--metapath", "APA"),
            "ppr looks at the whole graph and takes no meta-path; leave it out",
        ),
        (("--measure", "ppr", "--node-type", "venu"), "no node type 'venu'"),
        (
            ("--measure", "ppr", "--node-type", "venue"),
            "'Mike' is a node of type author, and here one of type venue is",
        ),
        (
            ("--node-type", "author", "--metapath", "APA"),
            "pathsim takes its node types from --metapath; --node-type is for measures over the",
        ),
        (("--measure", "pagerank"), "no meta-path is given"),
        (("--model", "m", "--node-type", "author"), "give either --model or --node-type"),
    ],
)
def test_search_with_options_that_do_not_go_together(run: Run, arguments: tuple[str, ...], message: str) -> None:
    result = run("search", "toy", "Mike", *arguments)
    assert result.code == 2
    assert message in result.err


def test_ctrl_c_prints_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("neupath.cli.terminal.load", stop)
    stopped = run("search", "toy", "Mike", "--metapath", "APVPA")
    assert (stopped.code, stopped.out, stopped.err) == (130, "", "error: interrupted\n")


def test_a_query_that_fits_no_type_or_two_types(run: Run, tmp_path: Path) -> None:
    assert "no node type has all nodes of the query" in run("search", "toy", "Nobody", "--measure", "ppr").err
    folder = write(tmp_path / "g", a_b__csv="a,b\nx,x\ny,x\n")
    result = run("search", folder, "x", "--measure", "ppr")
    assert "the query could be of type a or b; say which with --node-type" in result.err
    assert run("search", folder, "x", "--measure", "ppr", "--node-type", "b").code == 0


def test_search_json_is_the_documented_object(run: Run) -> None:
    result = run("search", "toy", "Mike", "--metapath", "author-paper-venue-paper-author", "--json")
    assert result.code == 0
    assert result.json == {
        "query": "Mike",
        "metapath": "author-paper-venue-paper-author",
        "measure": "pathsim",
        "exact": True,
        "hits": [
            {"rank": 1, "id": "Bob", "name": None, "score": 1.0},
            {"rank": 2, "id": "Mary", "name": None, "score": 0.8},
            {"rank": 3, "id": "Jim", "name": None, "score": pytest.approx(0.0826, abs=1e-4)},
        ],
        "ties": 1,
    }
    assert "3 of 4 author nodes are related" in result.err


def test_search_prints_a_ranked_table(run: Run, movies: Path) -> None:
    result = run("search", movies, "Avatar", "-p", "MAM")
    assert result.code == 0
    assert re.search(r"1\s+Heat\s+2\s+0\.6667\s+█", result.out)
    assert "most similar to Avatar (1) by movie-actor-movie, pathsim" in result.out


def test_search_of_several_queries_prints_one_object_per_line(run: Run) -> None:
    lines = run("search", "toy", "Mike", "Jim", "-p", "APVPA", "-k", 1, "--json").out.splitlines()
    assert [json.loads(line)["query"] for line in lines] == ["Mike", "Jim"]


def test_search_options(run: Run, movies: Path) -> None:
    assert run("search", "toy", "Mike", "-p", "APVPA", "--among", "Jim", "--json").json["hits"][0]["id"] == "Jim"
    assert run("search", movies, 1, "-p", "MAM", "--where", "year > 1", "--json").json["hits"] == []
    zeros = run("search", movies, 1, "-p", "MAM", "--zeros", "--include-query", "--json").json["hits"]
    assert [(hit["id"], hit["score"]) for hit in zeros] == [(1, 1.0), (2, pytest.approx(2 / 3)), (3, 0.0)]
    assert run("search", "toy", "Mike", "-p", "AP", "-m", "pcrw", "-k", 1, "--json").json["measure"] == "pcrw"


def test_conditions_weights_and_times(run: Run, movies: Path, tmp_path: Path) -> None:
    text = "author-paper-venue{SIGMOD}-paper-author"
    assert run("search", "toy", "Mike", "-p", text, "-k", 1, "--json").json["metapath"] == text
    assert "Both connect through SIGMOD alone." in run("explain", "toy", "Mike", "Mary", "-p", text).out
    weighted = run("search", "toy", "Mike", "-p", "APA", "--weight", "writes=weight * 2", "--json").json["metapath"]
    assert weighted == "author -writes[weight: weight * 2]-> paper <-writes[weight: weight * 2]- author"
    timed = ("-p", "actor-movie-actor", "--time", "year", "--since", 1995)
    assert run("join", movies, *timed, "--out", tmp_path / "top.csv", "--json").json["queries"] > 0
    half_life = run("search", movies, 1, "-p", "MAM", "--time", "year", "--half-life", 2)
    assert half_life.code == 2
    assert "--time is 'year', an attribute of movie, which stands only at the ends" in half_life.err
    assert "--since needs --time" in run("search", movies, 1, "-p", "MAM", "--since", 3).err
    assert "--weight is 'x'; write the name of a relation" in run("search", movies, 1, "-p", "MAM", "--weight", "x").err
    assert "'--weights'" not in run("search", "toy", "Mike", "--weight", "writes=1").err


def test_search_without_result_says_so(run: Run, movies: Path) -> None:
    result = run("search", movies, "Up", "-p", "MAM")
    assert result.code == 0
    assert "Up: nothing found by movie-actor-movie" in result.out
    assert "0 of 2 movie nodes are related by this path" in result.err


def test_explain_prints_groups_with_their_paths_and_draws(run: Run, tmp_path: Path) -> None:
    picture = tmp_path / "why.svg"
    result = run("explain", "toy", "Mike", "Jim", "-p", "APVPA", "--limit", 1, "--paths", 2, "--draw", picture)
    assert result.code == 0
    assert result.out.splitlines() == [
        "Mike and Jim: pathsim = 2 × 120 / (5 + 2900) = 0.0826, rank 3 of 3",
        "Both connect through SIGMOD (83 %) and VLDB (17 %).",
        "Mike has 5 paths to itself, Jim has 2,900.",
        "120 paths by venue",
        "├── 0.0688   83.3 %  SIGMOD  100 paths  ██████████",
        "│   ├── 0.0007    0.8 %  Mike — Mike-SIGMOD-1 — SIGMOD — Jim-SIGMOD-1 — Jim",
        "│   ├── 0.0007    0.8 %  Mike — Mike-SIGMOD-1 — SIGMOD — Jim-SIGMOD-2 — Jim",
        "│   └── and 98 more paths",
        "└── and 1 more node, together 0.0138 of the score",
    ]
    assert picture.stat().st_size > 1000


def test_a_group_of_one_path_is_that_path(run: Run, movies: Path) -> None:
    result = run("explain", movies, 1, 2, "-p", "MAM")
    assert "└── 0.6667  100.0 %  Avatar — " in result.out


def test_explain_by_another_step(run: Run) -> None:
    options = "explain", "toy", "Mike", "Jim", "-p", "APVPA", "--by"
    assert "120 paths by paper" in run(*options, "paper").out
    assert run(*options, 3, "--json").json["by"] == {"node_type": "paper", "step": 3}
    result = run(*options, "actor")
    assert result.code == 2
    assert "--by is 'actor', but the nodes on author-paper-venue-paper-author are of type author, paper" in result.err


def test_explain_draws_a_page_that_unfolds(run: Run, tmp_path: Path) -> None:
    page = tmp_path / "why.html"
    result = run("explain", "toy", "Mike", "Jim", "-p", "APVPA", "--draw", page)
    assert result.code == 0
    assert page.read_text(encoding="utf-8").count("<li>") == 20  # 10 of each group


def test_dwpc_without_repeats_has_a_name(run: Run, tmp_path: Path) -> None:
    asked = ("-p", "APVPA", "-m", "dwpc-no-repeats")
    hits = run("search", "toy", "Mike", *asked, "--significance", "--permutations", 9, "--json").json
    assert (hits["measure"], hits["hits"][0]["id"]) == ("dwpc-no-repeats", "Jim")
    why = run("explain", "toy", "Mike", "Jim", *asked, "--json").json
    assert sum(group["score"] for group in why["groups"]) == pytest.approx(hits["hits"][0]["score"], rel=1e-12)
    assert run("join", "toy", *asked, "-k", 1, "--out", tmp_path / "top.csv").code == 0
    assert '"Mike",1,"Jim"' in (tmp_path / "top.csv").read_text()
    text = run("explain", "toy", "Mike", "SIGMOD", "-p", "APAPV", "-m", "dwpc-no-repeats").out
    assert text.splitlines()[1:] == [
        "No author-paper-author-paper-venue path joins Mike and SIGMOD.",
        "Not among the 10 best. Every walk that joins them visits a node twice.",
    ]


def test_explain_says_why_a_node_is_no_hit(run: Run) -> None:
    text = " ".join(run("explain", "toy", "Mike", "Jim", "-p", "APA").out.split())
    assert "Not among the 10 best. Mike reaches 3 nodes of type paper and Jim reaches 70, but they share none." in text
    assert "Along author-paper-venue-paper-author, Jim ranks 3 of 3." in text
    text = " ".join(run("explain", "toy", "Mike", "Mary", "-p", "APVPA", "-k", 1).out.split())
    assert (
        "Not the best. Mary ranks 2 of 3 targets of Mike: Mike shares 4 paths with it and 5 with Bob at rank 1." in text
    )
    assert "No meta-path of up to 4 steps, each over one relation, brings it in." in text
    assert run("explain", "toy", "Mike", "Mary", "-p", "APVPA", "--json").json["why_not"] is None


def test_explain_a_combination(run: Run, tmp_path: Path) -> None:
    toy = npth.load("toy")
    parts = [npth.Part("pathsim", "APVPA", 0.75), npth.Part("pathsim", "APA", 0.25)]
    folder = npth.Combination(parts).fit(toy).save(tmp_path / "model")
    result = run("explain", "toy", "Mike", "Jim", "--model", folder, "--draw", tmp_path / "why.html")
    assert result.code == 0
    part = "author-paper-venue-paper-author adds 0.0620, 100.0 % of the score: 0.75 × pathsim"
    assert part in " ".join(result.out.split())
    assert "├── 0.0516   83.3 %  SIGMOD  100 paths  ██████████" in result.out
    assert "100 paths" in (tmp_path / "why.html").read_text(encoding="utf-8")
    refused = run("explain", "toy", "Mike", "Jim", "--model", folder, "--draw", tmp_path / "why.svg")
    assert "--draw draws the paths of one meta-path; with --model, write an .html file" in refused.err


def test_explain_boosted_trees_and_a_stack(run: Run, tmp_path: Path) -> None:
    """All that decided is shown, with its sign: in text, JSON and HTML."""
    pytest.importorskip("lightgbm")
    toy = npth.load("toy")
    names = ["Mike", "Jim", "Mary", "Bob"]
    labels = [(a, b, float({a, b} == {"Mike", "Bob"})) for a in names for b in names if a != b]
    trees = make_model("pathboost", trees=5).fit(toy, labels)
    paths = npth.Combination([npth.Part("pathsim", "APVPA", 1.0)]).fit(toy)
    scales = [{"weight": 0.7, "mean": 0.2, "spread": 0.3}, {"weight": 0.3, "mean": 0.1, "spread": 0.2}]
    folders = trees.save(tmp_path / "trees"), Stack.of([trees, paths], scales).save(tmp_path / "stack")
    for folder in folders:
        hits = run("search", "toy", "Mike", "--model", folder, "--json").json["hits"]
        hits = [hit for hit in hits if hit["score"] != 0 and hit["id"] != "Ann"]  # the trees have no path to Ann
        for hit in hits:
            why = run("explain", "toy", "Mike", hit["id"], "--model", folder, "--json").json
            assert (why["score"], why["rank"]) == (hit["score"], hit["rank"])
            page = tmp_path / "why.html"
            text = run("explain", "toy", "Mike", hit["id"], "--model", folder, "--draw", page).out
            assert f"rank {hit['rank']} of {why['targets']}" in text
            learners = why.get("learners", [])
            own = learners[0]["explanation"] if learners else why
            assert own["contributions"]
            shown = [f"{each['value']:+.2f}" for each in own["contributions"] if abs(each["value"]) >= 0.005]
            shown += [f"{each['name']}, weight {each['weight']:.2f}, adds {each['share']:+.2f}" for each in learners]
            assert shown
            for line in shown:
                assert line in text
                assert line in page.read_text(encoding="utf-8")


def test_relate(run: Run) -> None:
    result = run("relate", "toy", "Mike", "SIGMOD", "--max-steps", 2)
    assert result.code == 0
    text = " ".join(result.out.split())
    assert text == (
        "SIGMOD is the best of 2 targets of Mike along author-paper-venue. 1 author-paper-venue "
        "rank 1 of 2 (percentile 100.0), hetesim 0.1543, 2 paths, 50 % through Mike-SIGMOD-1"
    )
    report = run("relate", "toy", "Mike", "SIGMOD", "--max-steps", 2, "--json").json
    assert report == npth.relate(npth.load("toy"), "Mike", "SIGMOD", max_steps=2).to_dict()
    result = run("relate", "toy", "Mike", "Nobody")
    assert result.code == 2
    assert "no node type has 'Nobody'" in result.err
    for steps in (0, 40_000):
        error = run("relate", "toy", "Mike", "Jim", "--max-steps", steps).err
        assert f"--max-steps is {steps}; give a whole number from 1 to 20" in error
    error = run("relate", "toy", "Mike", "Jim", "-m", "simrank").err
    assert "simrank looks at the whole graph, not along meta-paths; relate takes one of" in " ".join(error.split())


def test_explain_json_sums_to_the_score(run: Run) -> None:
    report = run("explain", "toy", "Mike", "Jim", "-p", "APVPA", "--json", "--limit", 7).json
    assert report["score"] == pytest.approx(sum(i["share"] for i in report["instances"]) + report["more"]["share"])
    assert (report["numerator"], report["denominators"]) == (120, [5, 2900])
    assert report["more"]["instances"] == 113
    assert [node["node_type"] for node in report["instances"][0]["nodes"]] == [
        "author",
        "paper",
        "venue",
        "paper",
        "author",
    ]


def test_explain_of_unrelated_nodes(run: Run) -> None:
    result = run("explain", "toy", "Mike", "Ann", "-p", "APVPA")
    assert result.code == 0
    assert "No author-paper-venue-paper-author path joins Mike and Ann." in result.out


def test_info(run: Run, movies: Path) -> None:
    result = run("info", movies)
    assert result.code == 0
    assert "movie-actor-movie" in result.out
    report = run("info", movies, "--json").json
    assert report["relations"][0]["edges"] == 3
    assert report["node_types"][0] == {
        "node_type": "movie", "nodes": 3, "isolated": 1, "named": True, "attributes": ["year"],
        "attribute_types": {"year": "integer"},
    }  # fmt: skip


def test_paths(run: Run) -> None:
    assert run("paths", "toy", "venue").out.splitlines() == [
        "venue-paper-venue",
        "venue-paper-author-paper-venue",
        "venue-paper-venue-paper-venue",
    ]
    assert run("paths", "toy", "--max-length", 1, "--asymmetric", "--json").json == {
        "author": ["author-paper"],
        "paper": ["paper-author", "paper-venue"],
        "venue": ["venue-paper"],
    }
    limited = run("paths", "toy", "venue", "--limit", 1)
    assert limited.out == "venue-paper-venue\n"
    assert "only the first 1 meta-paths from venue are listed" in limited.err


def test_datasets(run: Run) -> None:
    assert {"toy", "stdlib", "hetionet"} <= set(run("datasets").out.split())
    assert [d["name"] for d in run("datasets", "--json").json["built_in"]] == ["toy", "stdlib"]
    assert run("datasets", "get", "kg20c").code == 2


def test_a_step_over_several_relations_is_noted(run: Run, tmp_path: Path) -> None:
    nodes = "id,type\na,x\nb,x\nm,y\n"
    edges = "source,relation,target\na,r,m\nb,s,m\n"
    result = run("search", write(tmp_path / "g", nodes__csv=nodes, edges__csv=edges), "a", "-p", "x-y-x", "--json")
    assert result.json["hits"][0]["id"] == "b"
    assert "note: x-y follows any of r, s (one alone: 'x -r-> y')" in result.err


def test_a_number_that_is_an_id_and_a_name_is_noted(run: Run, tmp_path: Path) -> None:
    rows = "movie_id,name\n300,End of Days\n412,300\n"
    folder = write(tmp_path / "g", movies__csv=rows, movie_actor__csv="movie_id,actor_id\n300,x\n412,x\n")
    result = run("search", folder, "300", "-p", "MAM")
    assert "most similar to 300 (End of Days) by" in result.out
    assert "note: 300 is read as an id; it is also the name of 412 (300)" in result.err


@pytest.mark.slow
def test_output_that_cannot_be_written() -> None:
    command = [sys.executable, "-m", "neupath.cli", "paths", "toy"]
    if Path("/dev/full").exists():
        with Path("/dev/full").open("w") as full:
            process = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        assert process.returncode == 1
        assert process.stderr == "error: cannot write the output: No space left on device\n"
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "neupath.cli", "explain", "toy", "Mike", "Jim", "-p", "APVPA"]
    assert subprocess.run(command, env=environment, capture_output=True, check=False).returncode == 0


def test_a_search_prints_few_notes_and_info_all(run: Run, tmp_path: Path) -> None:
    records = '{"id": "W1", "authors": ["Ann"], "venues": ["KDD"], "topics": ["x"], "terms": ["t"]}\n'
    path = tmp_path / "papers.jsonl"
    path.write_text(records + records.replace("W1", "W2"))
    notes = run("search", path, "W1", "-p", "paper-author-paper").err.splitlines()
    assert notes[0].startswith("note: authors of paper is a relation")
    assert notes[2:3] == [f"note: and 2 more notes on how {path} was read; neupath info lists them"]
    assert run("info", path).out.count("note: ") == 4


def test_hostile_names_do_not_reach_the_terminal(run: Run, tmp_path: Path) -> None:
    rows = "a_id,name\n1,\x1b[31mred[bold]\n2,\x07bell\n"
    folder = write(tmp_path / "g", a__csv=rows, a_b__csv="a_id,b_id\n1,x\n2,x\n")
    for arguments in (("search", folder, 2, "-p", "aba"), ("explain", folder, 1, 2, "-p", "aba")):
        printed = run(*arguments).out
        assert "\x1b[31m" not in printed
        assert "\x07" not in printed
        assert "[31mred[bold]" in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("search", "toy", "Mike"),
            "no meta-path is given; say what makes two nodes similar with --metapath, such as author-",
        ),
        (("search", "toy", "SIGMOD"), "with --metapath, such as venue-paper-venue"),
        (("explain", "toy", "SIGMOD", "VLDB"), "with --metapath, such as venue-paper-venue"),
        (("whatif", "toy", "SIGMOD", "VLDB"), "with --metapath, such as venue-paper-venue"),
        (("compare", "toy", "SIGMOD"), "with --metapath, such as venue-paper-venue"),
        (("import", "toy"), "Missing option '--to'. (neupath import --help says more)"),
        (("search", "toy", "Mike", "-p", "APVPA", "-k", 0), "k is 0; give a whole number of at least 1"),
        (("search", "toy", "Mike", "-p", "APVPA", "-k", -1), "k is -1; give a whole number of at least 1"),
        (("search", "toy", "Mikey", "-p", "APVPA"), "no author with the id 'Mikey' among 5; did you mean 'Mike'?"),
        (("search", "toy", "Mike", "-p", "author-venue-author"), "step 1: no relation joins author and venue"),
        (("search", "toy", "Mike", "-p", "author-papr-author"), "no node type 'papr'"),
        (("search", "toy", "Mike", "-p", "author -wrote-> paper"), "no relation 'wrote' at author"),
        (("search", "toy", "Mike", "-p", "author-paper"), "PathSim needs a symmetric meta-path of even length"),
        (("search", "toy", "Mike", "-p", "APVPA", "-m", "pathsym"), "no measure 'pathsym'"),
        (("search", "toy", "Mike", "-p", "APVPA", "--where", "age > 3"), "author has no attribute 'age'"),
        (("search", "toy", "Mike", "-p", "APVPA", "--among", "Nobody"), "no author with the id 'Nobody'"),
        (("search", "nowhere", "Mike", "-p", "APVPA"), "no such file or folder: nowhere"),
        (("info", "toy2"), "did you mean 'toy'?"),
        (("info", "toy", "--duplicates", "sum"), "duplicates is 'sum'; it can be 'count', 'drop' or 'error'"),
        (("info", "toy", "--config", "some.toml"), "toy is built in and takes no graph.toml, but some.toml was given"),
        (("paths", "toy", "--limit", 0), "limit is 0; list at least 1 meta-path"),
        (("search", "toy", "Mike", "-p", "APVPA", "-k", "abc"), "Invalid value for '-k'"),
        (("info",), "Missing argument"),
        (("serach",), "No such command 'serach'"),
        (("explain", "toy", "Mike", "Jim", "-p", "APVPA", "--limit", -1), "limit is -1"),
        (("explain", "toy", "Mike", "Jim", "-p", "APVPA", "--draw", "why.txt"), "cannot draw to why.txt"),
        (("explain", "toy", "Mike", "Jim", "-p", "APVPA", "--draw", "none/why.svg"), "cannot write none/why.svg"),
        (("paths", "toy", "film"), "no node type 'film' in this graph (it has author, paper, venue)"),
        (("paths", "toy", "--max-length", 1), "--max-length is 1"),
        (("datasets", "get", "imbd"), "no public graph named 'imbd'"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(run: Run, arguments: tuple[object, ...], message: str) -> None:
    result = run(*arguments)
    assert result.code == 2
    assert result.out == ""
    assert result.err.startswith("error: ")
    assert len(result.err.splitlines()) == 1
    assert message in result.err


@pytest.mark.parametrize("case", list(BAD_FOLDERS))
def test_bad_folders_are_one_line_and_exit_2(run: Run, tmp_path: Path, case: str) -> None:
    files, message = BAD_FOLDERS[case]
    result = run("info", write(tmp_path / "g", **files))
    assert result.code == 2
    assert len(result.err.partition(", such as:\n")[0].splitlines()) == 1
    assert re.search(message, result.err)


@pytest.mark.parametrize("command", ["", "demo", "info", "paths", "search", "explain", "datasets", "datasets get"])
def test_help_teaches(run: Run, command: str) -> None:
    result = run(*command.split(), "--help")
    assert result.code == 0
    assert "Usage: neupath" in result.out
    if command in ("info", "paths", "search", "explain"):
        assert "Example" in result.out


def test_unknown_command_and_version(run: Run) -> None:
    assert run("serach").code == 2
    assert re.fullmatch(r"neupath \d+\.\d+\.\d+\n", run("--version").out)


@pytest.mark.slow
def test_demo_runs_the_main_commands(run: Run) -> None:
    result = run("demo")
    assert result.code == 0
    for part in (
        "$ neupath info stdlib",
        "class-method-class",
        "OptionParser",
        "ArgumentParser — format_help — OptionParser",
    ):
        assert part in result.out


@pytest.mark.slow
def test_no_traceback_from_the_real_command() -> None:
    command = [sys.executable, "-m", "neupath.cli", "search", "toy", "Mikey", "-p", "APVPA"]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode == 2
    assert process.stderr == "error: no author with the id 'Mikey' among 5; did you mean 'Mike'?\n"


def test_join_over_the_whole_graph_needs_a_node_type(run: Run, tmp_path: Path) -> None:
    join = ("join", "toy", "--measure", "ppr", "-k", 1, "--out", tmp_path / "top.parquet")
    assert "say which type it ranks with --node-type" in run(*join).err
    assert run(*join, "--node-type", "author", "--json").json["pairs"] == 5
    assert "give either --model or --measure" in run(*join, "--model", tmp_path).err


def test_find_lists_nodes_of_all_types(run: Run) -> None:
    shown = run("find", "toy", "MIKE", "-k", 2)
    assert shown.code == 0
    assert re.search(r"author\s+Mike", shown.out)
    assert "begins so" in shown.out
    answer = run("find", "toy", "sigmod", "--node-type", "venue", "--json").json
    assert answer == {
        "text": "sigmod",
        "nodes": [{"node_type": "venue", "id": "SIGMOD", "name": None, "match": "exact", "degree": 56}],
    }  # fmt: skip
    assert run("find", "stdlib", "ordered", "dict", "--json").json["text"] == "ordered dict"
    assert run("find", "toy", "zzzzzz").out == "no name or id is like 'zzzzzz' among 90 nodes\n"
    assert "no node type 'venu'" in run("find", "toy", "x", "--node-type", "venu").err
    refused = run("find", "toy", "x", "-k", 0)
    assert (refused.code, refused.err) == (2, "error: -k is 0; find at least 1 node\n")


def test_a_name_in_lower_case_is_enough(run: Run) -> None:
    assert run("search", "toy", "mike", "-p", "APVPA", "--json").json["query"] == "Mike"
    assert run("explain", "toy", "mike", "MARY", "-p", "APVPA", "--json").json["target"]["id"] == "Mary"
    assert run("search", "toy", "mike", "--measure", "ppr", "--json").json["query"] == "Mike"
    refused = run("search", "toy", "Mkie", "-p", "APVPA")
    assert (refused.code, refused.err) == (
        2, "error: no author with the id 'Mkie' among 5; did you mean 'Mike'?\n"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("-p", "APVPA", "--device", "tpu"), "--device is 'tpu'; it can be 'cpu' or 'cuda'"),
        (
            ("--measure", "ppr", "--node-type", "author", "--device", "cuda"),
            "ppr runs on the CPU alone, and of the measures only those along a meta-path rank on a GPU",
        ),
    ],
)
def test_join_refuses_a_device_that_cannot_rank(run: Run, tmp_path: Path, options: tuple[str, ...], message) -> None:
    result = run("join", "toy", *options, "--out", tmp_path / "top.parquet")
    assert result.code == 2
    assert message in result.err


# ---- Sets, exclusions, several meta-paths and comparisons ----------------------------------------
def test_search_for_a_set(run: Run) -> None:
    printed = run("search", "toy", "Mike", "-p", "APVPA", "--with", "Mary", "--without", "Jim=0.01", "--json").json
    expected = npth.PathSim("APVPA").fit(npth.load("toy")).top_k({"Mike": 1, "Mary": 1, "Jim": -0.01})
    assert printed == expected.to_dict() | {"ties": 1}
    mean = run("search", "toy", "Mike", "-p", "APVPA", "--with", "Mary", "--json").json
    assert [member["weight"] for member in mean["query"]] == [0.5, 0.5]


def test_a_name_with_a_weight_at_its_end_is_a_name_first(run: Run, tmp_path: Path) -> None:
    (tmp_path / "g").mkdir()
    (tmp_path / "g" / "node_tag.csv").write_text("node,tag\na,1\na=2,1\na,2\nb,2\n", encoding="utf-8")
    path = ["-p", "node-tag-node", "--json"]
    named = run("search", tmp_path / "g", "b", "--with", "a=2", *path).json
    assert [member["id"] for member in named["query"]] == ["b", "a=2"]
    weighed = run("search", tmp_path / "g", "b", "--with", "a=3", *path).json
    assert weighed["query"] == [{"id": "b", "weight": 1.0}, {"id": "a", "weight": 3.0}]


def test_explain_a_set_and_several_metapaths(run: Run) -> None:
    why = run("explain", "toy", "Mike", "Bob", "-p", "APVPA", "--with", "Mary", "--json").json
    assert sum(member["score"] for member in why["members"]) == pytest.approx(why["score"], abs=1e-12)
    both = ["-p", "APVPA", "-p", "APA", "--weights", "2,1"]
    combined = run("explain", "toy", "Mike", "Bob", *both, "--json").json
    hits = run("search", "toy", "Mike", *both, "--json").json["hits"]
    assert combined["score"] == pytest.approx(next(hit["score"] for hit in hits if hit["id"] == "Bob"), abs=1e-12)
    relsim = run("explain", "toy", "Mike", "Bob", *both, "--measure", "relsim", "--json").json
    assert sum(part["share"] for part in relsim["parts"]) == pytest.approx(relsim["score"], abs=1e-12)


def test_targets_from_a_file(run: Run, tmp_path: Path) -> None:
    (tmp_path / "some.txt").write_text("Bob\n\n  Jim \n", encoding="utf-8")
    hits = run("search", "toy", "Mike", "-p", "APVPA", "--among-file", tmp_path / "some.txt", "--json").json["hits"]
    assert [hit["id"] for hit in hits] == ["Bob", "Jim"]
    filters = ["--among-file", tmp_path / "some.txt", "--unless", "APA", "--where-query", "id = Mary"]
    run("join", "toy", "-p", "APVPA", *filters, "--out", tmp_path / "top.csv")
    lines = (tmp_path / "top.csv").read_text(encoding="utf-8").splitlines()[1:]
    assert [line.split(",")[:3] for line in lines] == [['"Mary"', "1", '"Bob"'], ['"Mary"', "2", '"Jim"']]


def test_compare(run: Run, tmp_path: Path) -> None:
    measures = ["-m", "pathsim", "-m", "pathcount", "-m", "ppr"]
    report = run("compare", "toy", "Mike", "-p", "APVPA", *measures, "-k", 2, "--json").json
    scorers = [npth.PathSim("APVPA"), PathCount("APVPA"), PPR("author")]
    hits = [scorer.fit(npth.load("toy")).top_k("Mike", k=10).ids for scorer in scorers]
    assert {node["id"] for node in report["nodes"]} == {node for ids in hits for node in ids[:2]}
    for node in report["nodes"]:
        ranks = [ids.index(node["id"]) + 1 if node["id"] in ids else None for ids in hits]
        assert node["ranks"] == ranks
        assert node["moves"] == [None if None in (ranks[0], rank) else ranks[0] - rank for rank in ranks]
    pytest.importorskip("matplotlib")
    result = run("compare", "toy", "Mike", "-p", "APVPA", *measures, "--plot", tmp_path / "ranks.svg")
    assert result.code == 0
    assert "<svg" in (tmp_path / "ranks.svg").read_text(encoding="utf-8")
    assert all(len(line) <= 80 for line in result.out.splitlines())


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("search toy Mike Bob -p APVPA --with Jim", "--with and --without add to one QUERY, and 2 are given; give one"),
        ("search toy Mike -p APVPA --with Mike", "'Mike' is named twice; name it once, with its whole weight"),
        ("search toy Mike -p APVPA --with Bob=-1", "'Bob=-1' weighs -1; give a weight above 0"),
        ("search toy Mike -p APVPA --with nobody=2", "no author with the id 'nobody'"),
        ("search toy Mike -m simrank --with Bob", "simrank compares nodes one by one"),
        ("search toy Mike -p APVPA --with Bob --significance", "--significance tests pairs of nodes, not sets"),
        ("search toy Mike -p APVPA --unless AP", "--unless is author-paper, which leads from author to paper"),
        ("search toy Mike -p APVPA --diverse 2", "--diverse is 2.0; give a number above 0"),
        ("search toy Mike -p APVPA --among-file nowhere.txt", "cannot read nowhere.txt: No such file or directory"),
        ("search toy Mike -p APVPA --weights 2,1", "--weights has 2 numbers for 1 meta-path; give one for each"),
        ("search toy Mike -p APVPA --weights two", "--weights is 'two'; give numbers with commas between them"),
        ("search toy Mike -p APVPA -p APVPA", "--metapath names a meta-path twice; name it once"),
        (
            "search toy Mike -p APVPA -p APV -m pathcount",
            "rank different types; combine meta-paths with the same first and last type",
        ),
        ("search toy Mike --weights 1", "no meta-path is given"),
        ("search toy Mike -p APVPA -p APA -m avgsim", "avgsim follows one meta-path there and back"),
        ("search toy Mike -p APVPA -p APA --node-type author", "several meta-paths are added up without --node-type"),
        ("explain toy Mike Bob -p APVPA -p APA --with Mary", "--with and --without are explained along one meta-path"),
        ("explain toy Mike Bob -p APVPA --with Mary --draw a.svg", "--draw draws the paths of one node"),
        ("compare toy Mike -p APVPA", "compare 2 to 8 rankings, by several --metapath or --measure; got 1"),
        ("compare toy Mike -p APVPA -p APV -m pathcount", "rank different types; compare meta-paths with the same"),
        ("compare toy nobody -p APVPA -p APA", "no author with the id 'nobody'"),
        (
            "compare toy Mike -p APVPA -p APA --plot a.txt",
            "cannot draw to a.txt; the name must end in .svg, .png, .pdf",
        ),
        (
            "join toy -p APVPA --unless APV --out a.csv",
            "--unless is author-paper-venue, which leads from author to venue",
        ),
        ("join toy -p APVPA -p APA --engine dask --out a.csv", "--engine dask joins along one meta-path"),
        ("join toy -p APVPA --significance --where id=Bob --out a.csv", "--significance needs an exact measure"),
    ],
)
def test_bad_questions_are_one_sentence(
    command: str, message: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(*command.split())
    assert result.code == 2
    assert message in result.err
    assert len(result.err.strip().splitlines()) == 1


def test_compare_ranks_a_set(run: Run) -> None:
    command = ("compare", "toy", "Mike", "--with", "Jim", "-p", "APVPA", "-m", "pathsim", "-m", "joinsim")
    printed = run(*command, "--json").json
    assert [member["id"] for member in printed["query"]] == ["Mike", "Jim"]
    for at, measure in enumerate(("pathsim", "joinsim")):
        hits = run("search", "toy", "Mike", "--with", "Jim", "-p", "APVPA", "-m", measure, "--json").json["hits"]
        ranks = {node["id"]: (node["ranks"][at], node["scores"][at]) for node in printed["nodes"]}
        assert ranks == {hit["id"]: (hit["rank"], hit["score"]) for hit in hits}
    assert run(*command).out.startswith("hits of Mike + Jim, side by side")


def test_a_part_without_paths_adds_no_negative_zero(run: Run) -> None:
    out = run("explain", "toy", "Mike", "Jim", "-p", "APVPA", "-p", "APA", "--weights", "1,-0.5").out
    assert "author-paper-author adds 0.0000, 0.0 % of the score: -0.5" in out
    assert "-0.0000" not in out


def test_negative_shares_have_bars_of_their_size(run: Run) -> None:
    out = run("explain", "toy", "Mike", "Jim", "-p", "APVPA", "-p", "APA", "--weights", "-1,2").out
    assert max(line.count("█") for line in out.splitlines()) == 10


def test_the_percentile_of_a_tie_goes_by_its_rank(run: Run, tmp_path: Path) -> None:
    (tmp_path / "user_tag.csv").write_text("user,tag\na,x\nb,x\nc,x\n")
    first, second = (run("relate", tmp_path, "a", other, "--json").json["metapaths"][0] for other in "bc")
    assert (first["rank"], first["percentile"]) == (1, 100.0)
    assert (second["rank"], second["percentile"]) == (2, 50.0)
