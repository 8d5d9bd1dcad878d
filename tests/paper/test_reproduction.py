"""reproduce: from nothing to tables and figures, resumed without repeating, and the audit of the metrics."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat
from scipy.sparse import csr_array

from neupath import NeuPathError
from neupath_paper import protocol, reproduction
from neupath_paper.protocol import QUICK, Column, columns_in, load_graph
from neupath_paper.reports import Cell, make_table, report_ndcg, report_rmse, to_csv
from neupath_paper.reproduction import reproduce
from neupath_paper.runs import (
    CLASSICAL,
    INFERRED,
    LEARNED,
    PARTS,
    Run,
    Study,
    execute,
    plan_comparison,
    plan_paths,
)
from tests.command_line import Run as Shell

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A quick reproduction of all parts and models; every model on one column, under both protocols."""
    out = tmp_path_factory.mktemp("reproduced")
    reports: list[tuple[str, int, int | None]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reproduction, "QUICK_COLUMNS", reproduction.QUICK_COLUMNS[:1])
        done = reproduce(out=out, quick=True, progress=lambda *report: reports.append(report))
    assert reports[0] == ("runs", 0, done.runs)
    assert reports[-1] == ("runs", done.runs, done.runs)
    assert {path.name for path in done.files} == {f"{part}.{s}" for part in PARTS for s in ("md", "csv", "svg")}
    return out


def cells(path: Path, table: str) -> dict[tuple[str, str], float]:
    with path.open(encoding="utf-8") as file:
        return {
            (row["row"], row["column"]): float(row["mean"])
            for row in csv.DictReader(file)
            if row["table"] == table and row["mean"]
        }


@pytest.mark.parametrize("part", PARTS)
def test_every_part_writes_its_tables_and_figure(folder: Path, part: str) -> None:
    assert "|---|" in (folder / f"{part}.md").read_text(encoding="utf-8")
    assert len((folder / f"{part}.csv").read_text(encoding="utf-8").splitlines()) > 3
    drawn = (folder / f"{part}.svg").read_text(encoding="utf-8")
    assert drawn.startswith("<?xml")
    assert any(word in drawn for word in ("RMSE", "nDCG", "seconds", "metric"))


def test_a_model_that_counts_is_exact_and_so_is_what_is_inferred(folder: Path) -> None:
    strict = cells(folder / "ndcg.csv", "strict")
    assert strict["infer", "class-method-class"] == pytest.approx(1.0, abs=1e-6)
    assert strict["countpath", "class-method-class"] > strict["gcn", "class-method-class"]


def test_the_quick_version_has_a_second_column(tmp_path: Path) -> None:
    reproduce(["ndcg"], tmp_path, quick=True, architectures=["infer", "gcn"])
    strict = cells(tmp_path / "ndcg.csv", "strict")
    for path in ("class-method-class", "class-module-class"):
        assert strict["infer", path] == pytest.approx(1.0, abs=1e-6)
        assert strict["infer", path] > strict["gcn", path]


def test_the_audit_tells_knowing_from_guessing(folder: Path) -> None:
    strict, released = (cells(folder / "chance.csv", table) for table in ("ndcg_strict", "ndcg_released"))
    path = "class-method-class"
    assert strict["exact", path] == released["exact", path] == pytest.approx(1.0)
    assert strict["exact + 1e-6 noise", path] > 0.999
    assert released["exact + 1e-6 noise", path] < 0.95, "the released metric punishes noise among zeros"
    assert strict["random", path] < 0.1 < released["random", path]
    assert strict["reversed", path] < 0.01 < released["reversed", path]


def test_nothing_is_repeated(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reproduction, "QUICK_COLUMNS", reproduction.QUICK_COLUMNS[:1])
    monkeypatch.setattr(reproduction, "execute", lambda *_: pytest.fail("this run was done before"))
    again = reproduce(["ndcg"], folder, quick=True, architectures=["gcn", "scan"])
    assert again.resumed == again.runs == 3
    assert set(cells(folder / "rmse.csv", "paper")) >= {(model, "class-method-class") for model in LEARNED}


def test_a_line_that_was_cut_off_is_run_again(tmp_path: Path) -> None:
    first = reproduce(["chance"], tmp_path, quick=True)
    path = tmp_path / "runs.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join(lines)[:-40], encoding="utf-8")
    table = (tmp_path / "chance.csv").read_text(encoding="utf-8")
    again = reproduce(["chance"], tmp_path, quick=True)
    assert again.resumed == first.runs - 1
    assert (tmp_path / "chance.csv").read_text(encoding="utf-8") == table
    assert reproduce(["chance"], tmp_path, quick=True).resumed == first.runs


def test_processes_make_no_difference(folder: Path, tmp_path: Path) -> None:
    reproduce(["rmse"], tmp_path, quick=True, architectures=["gcn"], jobs=2)
    one, two = ((out / "rmse.csv").read_text(encoding="utf-8").splitlines() for out in (folder, tmp_path))
    header = one[0]
    rows = [line for line in two if ",class-method-class," in line]
    assert rows
    assert [header, *rows] == [line for line in one if line == header or ",gcn," in line]


def test_what_is_timed_runs_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reproduction, "ProcessPoolExecutor", lambda *_: pytest.fail("timed beside something else"))
    assert reproduce(["runtime"], tmp_path, quick=True, architectures=["pathsim"], jobs=2).runs == 1


def test_lines_that_are_no_results_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "runs.jsonl").write_bytes(b'[1]\n7\n{"model": "gcn"}\n\xff\n')
    assert reproduce(["runtime"], tmp_path, quick=True, architectures=["pathsim"]).resumed == 0


@pytest.mark.parametrize("model", [*LEARNED, INFERRED, *CLASSICAL])
def test_every_model_is_planned_for_every_column(model: str) -> None:
    columns = (Column("g", "ABA", 2, 2, ()), Column("g", "ABCBA", 4, 3, ()))
    runs = [each for each in plan_comparison(Study(columns, range(3), QUICK)) if each.model == model]
    wanted = 2 * 3 * (1 if model in CLASSICAL else 2)
    assert len({each.key for each in runs}) == len(runs) == wanted


def test_the_usual_number_of_paths_is_not_a_variant() -> None:
    column = Column("g", "APA", 2, 2, ())
    runs = list(plan_paths(Study((column,), range(1), QUICK)))
    assert [each.settings for each in runs] == [(("paths", 1),), ()]


def test_the_printed_tables_are_the_papers() -> None:
    assert protocol.PRINTED_RMSE["hgt", "PCP"] == 0.0003
    assert protocol.PRINTED_NDCG["gtn", "MAM"] == 0.5605
    assert protocol.PRINTED_ABLATION_NDCG["without-edge-types", "APCPA"] == 0.1764
    for table in (protocol.PRINTED_RMSE, protocol.PRINTED_NDCG):
        assert len(table) == 64
    assert len(protocol.PRINTED_ABLATION_RMSE) == len(protocol.PRINTED_ABLATION_NDCG) == 28


def test_cells_are_means_with_deviations_and_the_best_is_bold() -> None:
    results = [{"model": "a", "path": "x", "ndcg": value} for value in (0.1, 0.3)]
    results += [{"model": "b", "path": "x", "ndcg": None}]
    table = make_table("t", results, "ndcg", ["a", "b", "c"], ["x"], printed={("a", "x"): 0.5})
    assert table.cell("a", "x").text(4) == "0.2000 ± 0.1414"
    assert table.cell("a", "x").text(0) == "0"
    assert table.rows == ("a", "b")
    assert table.to_markdown().splitlines()[-2:] == ["| a | **0.2000 ± 0.1414** (0.5000) |", "| b | - |"]
    assert to_csv({"t": table}).splitlines()[1] == "t,a,x,0.2,0.141421,2,0.5"
    assert Cell(()).mean is None


def test_a_share_of_the_queries_is_all_that_is_learned_from() -> None:
    column = Column("stdlib", "class-method-class", 2, 2, ())
    few = execute(Run("countpath", column, "strict", 0, share=0.025), QUICK, None, "cpu")
    assert few["share"] == 0.025
    assert isinstance(few["ndcg@20"], float)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["rsme", "--quick"], "no part 'rsme'.*did you mean 'rmse'"),
        (["rmse", "--quick", "--architectures", "gnc"], "no architecture 'gnc'"),
        (["rmse", "--quick", "--jobs", "0"], "jobs is 0"),
        (["real", "--quick"], "the part real has no --quick; leave it out"),
        (["real", "--jobs", "2"], "the part real has no --jobs; leave it out"),
        (["rmse"], "no data is given; set --data to a folder"),
        (["rmse", "--data", "nowhere"], "nowhere is no folder"),
    ],
)
def test_bad_input(run: Shell, arguments: list[str], sentence: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.delenv("NEUPATH_DATA", raising=False)
    found = run("reproduce", *arguments, "--out", str(tmp_path / "out"))
    assert found.code == 2
    import re

    assert re.search(sentence, found.err), found.err
    assert not (tmp_path / "out").exists()


def test_results_of_another_preset_are_not_mixed_in(tmp_path: Path) -> None:
    (tmp_path / "reproduction.json").write_text("{}", encoding="utf-8")
    with pytest.raises(NeuPathError, match="holds results of another preset"):
        reproduce(["chance"], tmp_path, quick=True)


@pytest.mark.parametrize(
    "asked", [["--architectures", "pathsim, gcn"], ["--architectures", "pathsim", "--architectures", "gcn"]]
)
def test_models_by_name(run: Shell, tmp_path: Path, asked: list[str]) -> None:
    found = run("reproduce", "runtime", "--quick", *asked, "--out", str(tmp_path), "--json")
    assert json.loads(found.out)["runs"] == 2


def test_the_command_tells_what_it_wrote(run: Shell, tmp_path: Path) -> None:
    found = run("reproduce", "chance", "--quick", "--out", str(tmp_path), "--json")
    assert json.loads(found.out)["runs"] == 12
    told = run("reproduce", "chance", "--quick", "--out", str(tmp_path)).out
    assert "12 runs, 12 of them done before" in told


def test_the_papers_columns_on_real_graphs(data: Path) -> None:
    columns = columns_in(data)
    assert [column.metapath for column in columns] == ["APA", "APCPA", "PCP", "PAFAP", "MAM", "MAMAM", "DMD", "DMAMD"]
    sizes = {name: load_graph(name, data) for name in ("imdb", "kg20c")}
    assert sizes["imdb"].num_nodes("movie") == 4780
    for column in columns:
        for candidate in (column.metapath, *column.candidates):
            path = sizes[column.graph].metapath(candidate)
            assert path.is_round_trip
            assert path.source == sizes[column.graph].metapath(column.metapath).source


def test_a_folder_that_lacks_a_graph(tmp_path: Path) -> None:
    (tmp_path / "imdb").mkdir()
    with pytest.raises(NeuPathError, match="lacks kg20c and ACM.mat; it must hold imdb, and kg20c or ACM.mat"):
        columns_in(tmp_path)


@pytest.mark.parametrize("place", ["ACM.mat", "acm/ACM.mat"])
def test_the_papers_own_acm_goes_before_what_stands_in_for_it(tmp_path: Path, place: str) -> None:
    for name in ("imdb", "kg20c", "acm"):
        (tmp_path / name).mkdir()
    assert columns_in(tmp_path)[0].graph == "kg20c"
    blank = csr_array(np.ones((2, 2)))
    savemat(tmp_path / place, dict.fromkeys(("PvsA", "PvsC", "AvsF"), blank))
    assert columns_in(tmp_path)[0].graph == "acm"
    assert load_graph("acm", tmp_path).metapath("PAFAP").is_round_trip


def test_measures_without_labels_stand_in_both_tables(tmp_path: Path) -> None:
    column = Column("g", "ABA", 2, 2, ())
    results = [
        {"model": "ppr", "path": "ABA", "protocol": "strict", "ndcg@20": 0.5, "ndcg_released": 0.4},
        {"model": "gcn", "path": "ABA", "protocol": "paper", "ndcg@20": 0.1, "ndcg_released": 0.2},
    ]
    report_ndcg(results, Study((column,), range(1), QUICK), tmp_path)
    assert cells(tmp_path / "ndcg.csv", "paper") == {("ppr", "ABA"): 0.4, ("gcn", "ABA"): 0.2}


def test_there_is_no_error_over_related_pairs_where_none_is(tmp_path: Path) -> None:
    column = Column("g", "ABA", 2, 2, ())
    shared = {"model": "gcn", "path": "ABA", "protocol": "strict", "rmse_all": 0.2, "rmse_nonzero": 0.0}
    study = Study((column,), range(1), QUICK)
    report_rmse([{**shared, "ranked_queries": 0}], study, tmp_path)
    assert cells(tmp_path / "rmse.csv", "strict_all") == {("gcn", "ABA"): 0.2}
    assert cells(tmp_path / "rmse.csv", "strict_related") == {}
    report_rmse([{**shared, "ranked_queries": 1}], study, tmp_path)
    assert cells(tmp_path / "rmse.csv", "strict_related") == {("gcn", "ABA"): 0.0}
