"""serve as a user types it: the address it prints, and one-line errors."""

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import httpx
import pytest

import neupath as npth
from neupath.cli import main
from neupath.store import check, open_store, write_store
from tests.command_line import Run
from tests.graphs import shop_graph
from tests.patience import PATIENCE
from tests.processes import run_process


def refuse(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as stop:
        main(["serve", *arguments])
    assert stop.value.code == 2
    return capsys.readouterr().err.rstrip("\n")


@pytest.mark.slow
def test_a_served_graph_answers_until_it_is_stopped(tmp_path: Path) -> None:
    model = npth.PathSim("APVPA").fit(npth.load("toy")).save(tmp_path / "model")
    (tmp_path / "serve.toml").write_text('port = 99999\n[graph]\ntoy = "toy"\nmine = "toy"\n[limit]\nk = 3\n')
    command = [sys.executable, "-m", "neupath.cli", "serve", "--config", str(tmp_path / "serve.toml"), "--port", "0"]
    command += ["--model", f"saved={model}"]  # what stands on the command line overrides the file
    (temporary := tmp_path / "temporary").mkdir()
    environment = os.environ | {"NEUPATH_TOKEN": "correct-horse", "TMPDIR": str(temporary)}
    with run_process(command, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("serving toy, mine at http://127.0.0.1:")
        url = line.split()[4]
        headers = {"authorization": "Bearer correct-horse"}
        request = urllib.request.Request(f"{url}/api/graphs/mine/search?query=Mike&model=saved&k=3", headers=headers)
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            assert json.load(answer)["hits"][0]["id"] == "Bob"
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
    assert list(temporary.iterdir()) == []


@pytest.mark.slow
def test_a_store_takes_updates_only_with_writable(tmp_path: Path) -> None:
    store = write_store(npth.load("toy"), tmp_path / "library.store")
    body = {"add_edges": [{"relation": "writes", "source": "Mike", "target": "Jim-SIGMOD-1"}]}
    for options, status in (([], 403), (["--writable"], 200)):
        command = [sys.executable, "-m", "neupath.cli", "serve", str(store), "--port", "0", *options]
        with run_process(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith("serving library at http://127.0.0.1:")
            with httpx.Client(base_url=line.split()[3], timeout=PATIENCE) as client:
                assert client.post("/api/graphs/library/updates", json=body).status_code == status
                assert client.get("/api/graphs").json()[0]["version"] == (status == 200)
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE) == 0
    assert open_store(store).version == 1
    assert not check(store).problems


def test_writable_needs_a_store(capsys: pytest.CaptureFixture[str]) -> None:
    error = refuse(capsys, "toy", "--writable", "--port", "0")
    advice = "make one with: neupath import GRAPH --to STORE"
    assert error == f"error: --writable needs a store, but none is served (toy); {advice}"


HANGS = """
import threading
from neupath.cli import main
from neupath.service import handlers
handlers.complete = lambda *_, **__: threading.Event().wait()
main(["serve", "toy", "--port", "0", "--limit", "seconds=0.3"])
"""


@pytest.mark.slow
def test_the_service_stops_despite_work_that_never_ends(tmp_path: Path) -> None:
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    with run_process([sys.executable, "-c", HANGS], stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        url = process.stdout.readline().split()[3]
        with pytest.raises(urllib.error.HTTPError, match="504"):
            urllib.request.urlopen(f"{url}/api/graphs/toy/metapaths?prefix=APA", timeout=PATIENCE)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
    assert list(tmp_path.iterdir()) == []


def test_a_port_in_use(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        error = refuse(capsys, "toy", "--port", port)
    assert error == (f"error: cannot serve at 127.0.0.1 port {port}: address already in use; choose another --port")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["toy", "--host", "0.0.0.0"], "0.0.0.0 can be reached from other machines; set a --token"),
        (["toy", "--token", "short"], "the token is too short or has odd characters"),
        (["toy", "--port", "99999"], "port is 99999; it must lie between 0 and 65535"),
        (["toy", "toy"], "GRAPH has two values named 'toy'; rename one with NAME=VALUE"),
        (["a/b=toy"], "GRAPH 'a/b=toy' cannot be served"),
        (["toy", "--model", "folder"], "--model 'folder' cannot be served"),
        (["toy", "--model", "x=nowhere"], "no saved scorer in nowhere"),
        (["toy", "--limit", "kk=3"], "no limit 'kk'"),
        (["toy", "--limit", "k=many"], "the limit k is 'many'; it must be a whole number above 0"),
        (["toy", "--limit", "job_bytes=4e9"], "the limit job_bytes is '4e9'; it must be a whole number above 0"),
        (["toy", "--limit", "seconds=0"], "the limit seconds is '0'; it must be a number above 0"),
        (["nowhere", "--port", "0"], "no such file or folder: nowhere"),
    ],
)
def test_names_and_limits_that_cannot_be_served(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert message in refuse(capsys, *arguments)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("prot = 8000", "there is no option 'prot'"),
        ("port = ", "is not TOML"),
        ("port = 'many'", "--port"),
        (None, "no such file"),
    ],
)
def test_a_configuration_that_cannot_be_read(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, content: str | None, message: str
) -> None:
    if content is not None:
        (tmp_path / "serve.toml").write_text(content)
    assert message in refuse(capsys, "toy", "--config", str(tmp_path / "serve.toml"))


def test_a_model_that_fits_no_graph(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = npth.PathSim("user-item-user").fit(shop_graph()).save(tmp_path)
    error = refuse(capsys, "toy", "--port", "0", "--model", f"other={path}")
    assert "the model 'other' fits no graph that is served" in error


@pytest.mark.slow
def test_a_missing_extra_is_named(tmp_path: Path) -> None:
    code = (
        "import sys\nsys.modules['fastapi'] = None\nfrom neupath.cli import main\nmain(['serve', 'toy', '--port', '0'])"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert process.returncode == 2
    assert process.stderr.startswith("error: this needs fastapi, which is not installed; run: pip install -e '")
    assert process.stderr.rstrip().endswith("[serve]'")  # of this checkout


def test_a_graph_is_needed_on_the_line_or_in_the_file(run: Run, tmp_path: Path) -> None:
    assert "[required]" not in run("serve", "--help").out
    (tmp_path / "serve.toml").write_text("port = 0\n")
    for options in ((), ("--config", tmp_path / "serve.toml")):
        result = run("serve", *options)
        assert result.code == 2
        assert result.err.startswith("error: no GRAPH is given; name one, such as stdlib")
