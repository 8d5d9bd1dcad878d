"""What all commands share: errors that name flags, help whose examples run, and output for pipes and programs."""

import csv
import errno
import io
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import typer

import neupath
import neupath.store
from neupath.cli import app, main, program
from neupath.cli.program import spell_parameter
from neupath.cli.terminal import OutputConsole
from neupath.graph.metapath import enumerate_metapaths
from neupath.store import write_store
from tests.command_line import Run
from tests.graphs import STEER, steering, steering_graph


def commands(program: Any) -> Iterator[Any]:
    for name in program.list_commands(None):
        command = program.load(name)
        yield command
        yield from getattr(command, "commands", {}).values()


COMMANDS = {command.name: command for command in commands(typer.main.get_command(app))}


@pytest.mark.parametrize("name", program.COMMANDS)
def test_the_summary_of_a_command_is_the_first_sentence_of_its_help(name: str) -> None:
    assert COMMANDS[name].help.split("\n\n")[0].replace("\n", " ") == program.COMMANDS[name][1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "absent"),
    [
        (["--help"], ("numpy", "scipy", "pyarrow", "neupath.cli.search_commands")),
        (["search", "toy", "Mike", "-p", "APVPA"], ("numba", "pyarrow.compute", "pyarrow.parquet", "neupath.store")),
        (["explain", "toy", "Mike", "Mary", "-p", "APVPA"], ("numba", "pyarrow.compute", "pyarrow.parquet")),
    ],
)
def test_a_command_imports_only_what_it_needs(arguments: list[str], absent: tuple[str, ...]) -> None:
    code = (
        "import sys\nfrom neupath.cli import main\n"
        f"try:\n    main({arguments!r})\n"
        f"finally:\n    print('imported:', [name for name in {absent!r} if name in sys.modules])"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout.splitlines()[-1] == "imported: []"


@pytest.mark.parametrize(
    ("command", "parameter", "spelling"),
    [
        ("search", "k", "-k"),
        ("search", "graph", "GRAPH"),
        ("search", "query", "QUERY"),
        ("paths", "node_type", "NODE_TYPE"),
        ("reproduce", "parts", "PART"),
        ("get", "to", "--to"),
        ("info", "metapath", "metapath"),
    ],
)
def test_parameters_are_spelled_as_the_command_takes_them(command: str, parameter: str, spelling: str) -> None:
    assert spell_parameter(COMMANDS[command], parameter) == spelling


def test_no_command_prints_the_help_alone(run: Run) -> None:
    result = run()
    assert (result.code, "error" in result.err) == (2, False)


def test_errors_of_the_library_name_flags(run: Run) -> None:
    assert (
        run("search", "toy", "Mike", "-p", "APA", "-k", 0).err == "error: -k is 0; give a whole number of at least 1\n"
    )


MEMORY = "error: this needs more memory than there is; free some, raise the limit of the process"


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (MemoryError("Unable to allocate 2 GiB for an array"), MEMORY),
        (ImportError("libduckdb.so: failed to map segment from shared object"), MEMORY),
        (RuntimeError("can't start new thread"), MEMORY),
        (OSError(errno.EMFILE, "Too many open files"), "error: this needs more open files than the system allows"),
    ],
)
@pytest.mark.parametrize("is_cause", [False, True])
def test_what_the_machine_lacks_is_one_sentence(
    run: Run, monkeypatch: pytest.MonkeyPatch, error: Exception, sentence: str, is_cause: bool
) -> None:
    def fail(*_: object, **__: object) -> None:
        if is_cause:
            raise RuntimeError("a worker failed to start") from error
        raise error

    monkeypatch.setattr("neupath.cli.search_commands.summarise", fail)
    done = run("info", "toy")
    assert done.code == 2
    assert done.err.startswith(sentence)
    assert done.err.count("\n") == 1


def test_a_library_that_cannot_be_loaded_is_not_called_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "duckdb.py").write_text("raise ImportError('libduckdb.so: failed to map segment from shared object')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "duckdb", raising=False)
    with pytest.raises(ImportError, match="failed to map segment"):
        neupath.store.database.duckdb()


def test_no_room_below_spells_a_flag() -> None:
    root = Path(neupath.__file__).parent
    for source in root.rglob("*.py"):
        if source.parent != root / "cli":
            messages = re.findall(r"(?:Error|_error)\((.*?)\n", source.read_text(encoding="utf-8"))
            assert not [message for message in messages if re.search(r"\s--[a-z]", message)], source


@pytest.mark.parametrize("name", COMMANDS)
def test_help_fits_into_80_columns(name: str) -> None:
    for line in (COMMANDS[name].help or "").splitlines()[1:]:
        assert len(line) <= 78, line


@pytest.mark.parametrize("name", program.COMMANDS)
def test_help_is_not_cut(run: Run, name: str) -> None:
    assert "…" not in run(name, "--help").out


def examples() -> list[str]:
    return [
        line.strip().removeprefix("Example:").strip()
        for command in COMMANDS.values()
        for line in (command.help or "").splitlines()
        if re.match(r"\s*(Example:)?\s*neupath ", line)
    ]


@pytest.mark.parametrize("example", examples())
def test_examples_of_the_help_are_commands(example: str) -> None:
    _, name, *arguments = shlex.split(example)
    if "--config" in arguments:  # a file that is read at once
        arguments = ["toy", *arguments[arguments.index("--config") + 2 :]]
    with COMMANDS[name].make_context(name, arguments) as context:
        assert context.params


_READING = ("info", "paths", "find", "search", "explain", "compare", "relate", "whatif")


@pytest.mark.slow
@pytest.mark.parametrize("command", _READING)
def test_examples_of_the_help_run(run: Run, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    of_command = [shlex.split(text)[1:] for text in examples() if shlex.split(text)[1] == command]
    runnable = [arguments for arguments in of_command if not {"--model", "--significance"} & set(arguments)]
    own = [arguments for arguments in runnable if arguments[1] in ("toy", "stdlib")]
    assert own
    for arguments in own:
        result = run(*arguments)
        assert (result.code, bool(result.out)) == (0, True), (arguments, result.err)


# ---- Output for pipes and programs ---------------------------------------------------------------
LONG = "a class whose name is long, and longer still, so that no terminal of a usual width shows it in one line"
PRINTED = {
    "info": ("info", "toy"),
    "paths": ("paths", "toy", "author"),
    "find": ("find", "toy", "mike"),
    "search": ("search", "toy", "Mike", "Jim", "-p", "APVPA"),
    "explain": ("explain", "toy", "Mike", "Jim", "-p", "APVPA", "-p", "APA"),
    "compare": ("compare", "toy", "Mike", "-p", "APVPA", "-m", "pathsim", "-m", "pathcount"),
    "relate": ("relate", "toy", "Mike", "Jim"),
    "whatif": ("whatif", "toy", "Mike", "Mary", "-p", "APVPA", "-k", "2"),
    "datasets": ("datasets",),
}


@pytest.fixture(scope="session")
def long_names(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("long") / "tables"
    folder.mkdir()
    rows = "".join(f"{LONG} {number},{tag}\n" for number in range(3) for tag in ("x", "y"))
    (folder / "book_tag.csv").write_text(f"book,tag\n{rows.replace(LONG, LONG.replace(',', ';'))}")
    return folder


@pytest.mark.parametrize("name", PRINTED)
@pytest.mark.parametrize(("flag", "delimiter"), [("--csv", ","), ("--tsv", "\t")])
def test_tables_are_printed_for_programs(run: Run, name: str, flag: str, delimiter: str) -> None:
    result = run(*PRINTED[name], flag)
    header, *rows = csv.reader(result.out.splitlines(), delimiter=delimiter)
    assert (result.code, len(set(header)), bool(rows)) == (0, len(header), True)
    assert {len(row) for row in rows} == {len(header)}


def test_tables_have_all_digits_of_the_json(run: Run) -> None:
    table = list(csv.DictReader(run(*PRINTED["search"], "--csv").out.splitlines()))
    lines = [json.loads(line) for line in run(*PRINTED["search"], "--json").out.splitlines()]
    hits = [(answer["query"], hit["id"], hit["score"]) for answer in lines for hit in answer["hits"]]
    assert [(row["query"], row["id"], float(row["score"])) for row in table] == hits


def test_evidence_has_columns(run: Run) -> None:
    found = run("search", "toy", "Mike", "-p", "APVPA", "--significance", "--permutations", "9", "--stability", "--csv")
    assert found.out.splitlines()[0] == "query,rank,id,name,score,p_value,q_value,best_rank,worst_rank"


@pytest.mark.parametrize("name", PRINTED)
def test_one_format_at_a_time(run: Run, name: str) -> None:
    result = run(*PRINTED[name], "--json", "--tsv")
    assert (result.code, result.out) == (2, "")
    assert result.err == "error: --json and --tsv are given, but the result is printed once; give one of them\n"


def test_nothing_is_wrapped_or_cut_in_a_pipe(run: Run, long_names: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)  # pytest-xdist sets it
    ids = [f"{LONG.replace(',', ';')} {number}" for number in range(3)]
    found = run("search", long_names, ids[0], "-p", "book-tag-book").out
    assert [line for line in found.splitlines() if ids[1] in line and "1.0000" in line]
    why = run("explain", long_names, ids[0], ids[1], "-p", "book-tag-book", "--paths", "2").out
    assert [line for line in why.splitlines() if f"{ids[0]} — x — {ids[1]}" in line]
    assert "\x1b" not in found + why


@pytest.mark.parametrize("width", [20, 40, 80, 120, 200])
def test_ids_and_scores_stay_whole_at_any_width(
    run: Run, long_names: Path, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    ids = [f"{LONG.replace(',', ';')} {number}" for number in range(3)]
    lines = run("search", long_names, ids[0], "-p", "book-tag-book").out.splitlines()
    assert all(any(each in line and "1.0000" in line for line in lines) for each in ids[1:])


@pytest.mark.parametrize("name", PRINTED)
def test_a_terminal_without_these_characters_gets_others(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", written)
    with pytest.raises(SystemExit) as stop:
        main(list(PRINTED[name]))
    written.flush()
    text = written.buffer.getvalue().decode("ascii")  # type: ignore[attr-defined]
    assert stop.value.code == 0
    assert "?" not in text
    if name in ("search", "explain"):
        assert "####" in text


def test_data_for_programs_keep_their_characters_in_any_encoding(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "user_tag.csv").write_text("user,tag\nJosé,x\nZoë,x\n", encoding="utf-8")

    def printed(*options: str) -> tuple[Any, bytes]:
        written = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
        monkeypatch.setattr(sys, "stdout", written)
        with pytest.raises(SystemExit) as stop:
            main(["search", str(tmp_path), "José", "-p", "user-tag-user", *options])
        written.flush()
        return stop.value.code, written.buffer.getvalue()  # type: ignore[attr-defined]

    code, text = printed("--json")
    assert (code, json.loads(text)["hits"][0]["id"]) == (0, "Zoë")
    assert printed("--csv") == (2, b"")
    assert "the output is in ascii, which lacks characters of this table" in capsys.readouterr().err


# ---- Ties ----------------------------------------------------------------------------------------
@pytest.fixture(scope="session")
def tied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Users: u0 to u299 have the tag x alone, and v has y as well."""
    folder = tmp_path_factory.mktemp("tied")
    edges = "".join(f"u{number},x\n" for number in range(300))
    (folder / "user_tag.csv").write_text(f"user,tag\nv,x\nv,y\n{edges}w,z\n")
    return folder


def test_ties_beyond_the_last_hit_are_said(run: Run, tied: Path) -> None:
    search = ("search", tied, "-p", "user-tag-user")
    assert run(*search, "u0", "-k", "3").err == (
        "note: u0: 299 user nodes tie at 1.0000; 3 of them are shown, in file order\n"
    )
    assert run(*search, "v", "-k", "3", "--csv").err == (
        "note: v: 300 user nodes tie at 0.6667; 3 of them are shown, in file order\n"
    )
    assert run(*search, "u0", "-k", "299").err == ""


@pytest.mark.parametrize(
    ("options", "ties"),
    [
        (("u0", "-k", "3"), 299),
        (("u0", "-k", "299"), 299),
        (("u0", "-k", "300"), 1),
        (("u0", "-k", "400", "--zeros"), 1),
        (("w", "-k", "2", "--zeros"), 301),
        (("u0", "-k", "1", "--among", "u1", "--among", "u2", "--among", "v"), 2),
        (("u0", "--with", "u1", "-k", "2"), 298),
        (("w",), 0),
    ],
)
def test_ties_are_counted_as_the_search_ranks(run: Run, tied: Path, options: tuple[str, ...], ties: int) -> None:
    assert run("search", tied, "-p", "user-tag-user", *options, "--json").json["ties"] == ties


def test_no_command_prints_what_steers_a_terminal(run: Run, tmp_path: Path) -> None:
    graph = steering_graph(tmp_path)
    film, user = graph.schema.node_types
    path = str(next(iter(enumerate_metapaths(graph.schema, user, 2, symmetric=True))))
    store, source = write_store(graph, tmp_path / "g.store"), tmp_path / "graph.json"
    (tmp_path / "pairs.csv").write_text("query,target,score\nu0,u3,1\nu0,u1,0\nu1,u2,0\nu3,u0,1\n")
    commands: list[list[object]] = [
        ["info", source], ["info", store], ["paths", source], ["paths", source, user],
        ["paths", source, film, "--limit", "1"],
        ["find", source, "film"], ["find", source, "zzzzzzz"], ["search", source, "u0", "-p", path],
        ["search", source, f"user 0{STEER}", "-p", path, "--explain"], ["search", source, "u0", "u1", "-p", path],
        ["search", source, "u0", "-m", "ppr"], ["search", source, "nobody", "-p", path], ["search", source, "u0"],
        ["search", source, "u0", "-p", f"{user}-nothing"], ["search", source, "u0", "-p", path, "--where", "a = 1"],
        ["explain", source, "u0", "u3", "-p", path], ["explain", source, "u0", "u1", "-p", path],
        ["compare", source, "u0", "-p", path, "-m", "pathsim", "-m", "joinsim"], ["relate", source, "u0", "u3"],
        ["relate", source, "u0", f"f0{STEER}"], ["whatif", source, "u0", "u3", "-p", path],
        ["whatif", source, "u0", "u1", "-p", path, "--add", film], ["infer", source, tmp_path / "pairs.csv"],
        ["join", source, "-p", path, "--out", tmp_path / "pairs.parquet"], ["check", store],
        ["init", source, "--yes", "--out", tmp_path / "graph.toml"], ["export", store, "--to", tmp_path / "exported"],
        ["info", tmp_path / "exported"], ["init", tmp_path / "exported", "--yes", "--out", tmp_path / "other.toml"],
        ["import", source, "--to", tmp_path / "again.store"],
    ]  # fmt: skip
    worked = set()
    for command in commands:
        result = run(*command)
        assert not steering(result.out + result.err), command
        assert "Traceback" not in result.err, command
        if result.code == 0:
            worked.add(command[0])
    assert worked == {command[0] for command in commands}


def test_json_escapes_what_steers_a_terminal_and_keeps_its_meaning(run: Run, tmp_path: Path) -> None:
    graph = steering_graph(tmp_path)
    film, user = graph.schema.node_types
    source = tmp_path / "graph.json"
    commands = ["info", source], ["paths", source], ["find", source, "film"], ["search", source, "u0", "-m", "ppr"]
    results = [run(*command, "--json") for command in commands]
    assert not any(steering(result.out) for result in results)
    assert set(results[1].json) == {film, user}
    assert [hit["name"] for hit in results[3].json["hits"]] == [f"user 3{STEER}"]


@pytest.mark.slow
def test_a_terminal_is_told_once_that_kernels_are_compiled(tmp_path: Path) -> None:
    command = "import sys; from neupath.cli import main; main(sys.argv[1:])"
    search = "search", "toy", "Mike", "-m", "commutetime", "--node-type", "author", "--csv"
    variables = os.environ | {
        "NUMBA_CACHE_DIR": str(tmp_path),
        "TTY_COMPATIBLE": "1",
        "NO_COLOR": "1",
    }
    run_again = partial(subprocess.run, [sys.executable, "-c", command, *search], env=variables, check=True)
    first, second = (run_again(capture_output=True, text=True) for _ in range(2))
    assert first.stderr.count("note: compiling graph kernels for the first use on this machine, which takes some") == 1
    assert "compiling" not in second.stderr
    assert first.stdout == second.stdout != ""


def test_styles_reach_a_terminal_and_texts_cannot_add_any(capsys: pytest.CaptureFixture[str]) -> None:
    console = OutputConsole(force_terminal=True, color_system="standard", width=80, legacy_windows=False)
    console.print(f"plain {STEER}", style="bold", markup=False, highlight=False)
    out = capsys.readouterr().out
    assert out.startswith("\x1b[1m")
    assert out.count("\x1b") == 2
    assert not steering(out.replace("\x1b[1m", "").replace("\x1b[0m", ""))
