"""Every curl line of docs/service.md works as it stands, and so does its Python."""

import re
import shlex
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import neupath as npth
from neupath.live import LiveStore
from neupath.store import write_store
from tests.service.conftest import Running, Start

PAGE = Path(__file__).parents[2] / "docs" / "service.md"
LINES = [
    line
    for block in re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    for line in re.split(r"^(?=curl )", block.replace("\\\n", ""), flags=re.MULTILINE)
    if line.strip()
]
JOB = "5f0c2b7a91de"


def ask(running: Running, line: str) -> int:
    """Do what curl would do, for the options that the page uses."""
    words = iter(shlex.split(line.replace("$B", ""), comments=True)[1:])
    method, url, headers, data, listed = "GET", "", {}, [], False
    for word in words:
        if word == "-H":
            name, _, value = next(words).partition(": ")
            headers[name] = value
        elif word in ("-d", "--data-urlencode"):
            argument = next(words)
            name, equals, value = argument.partition("=")
            data.append(f"{name}={quote(value)}" if word == "--data-urlencode" and equals else argument)
        elif word == "-X":
            method = next(words)
        elif word == "-G":
            listed = True
        elif word == "-o":
            next(words)
        elif word != "-N":
            url = word
    if data and listed:
        url = f"{url}?{'&'.join(data)}"
    elif data:
        return running.client.post(url, content="".join(data).encode(), headers=headers).status_code
    return running.client.request(method, url, headers=headers).status_code


def finish_job(running: Running) -> str:
    job_id = running.post("/api/jobs", {"kind": "join", "graph": "toy", "metapath": "APVPA", "k": 3}).json()["id"]
    running.get(f"/api/jobs/{job_id}/events")
    return str(job_id)


@pytest.fixture(scope="module")
def job(running: Running) -> str:
    return finish_job(running)


@pytest.mark.parametrize("line", LINES, ids=lambda line: line[5:60].strip())
@pytest.mark.slow
def test_curl_lines_work(running: Running, writable: Running, job: str, line: str) -> None:
    own = finish_job(running) if "DELETE" in line else job  # the others' must stay
    assert ask(writable if "graphs/live" in line else running, line.replace(JOB, own)) in (200, 202)


@pytest.mark.slow
def test_the_client_of_the_page_works(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (code,) = re.findall(r"^```py\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    with LiveStore(write_store(npth.load("toy"), tmp_path / "live.store")) as live:
        url = start(graphs={"toy": npth.load("toy"), "live": live}).url
        monkeypatch.chdir(tmp_path)
        names: dict[str, Any] = {}
        exec(compile(code.replace("http://127.0.0.1:8000", url), str(PAGE), "exec"), names)
        names["service"].close()
    assert (names["hits"].ids, len(names["many"]), names["version"]) == (("Bob", "Mary", "Jim"), 2, 1)
    assert (tmp_path / "top.parquet").is_file()
    assert "done" in capsys.readouterr().out


def test_every_endpoint_has_a_curl_line(running: Running) -> None:
    calls = "\n".join(LINES).replace(JOB, "{job}")
    calls = re.sub("graphs/(toy|live)", "graphs/{graph}", calls)
    for path in running.get("/api/openapi.json").json()["paths"]:
        assert f"$B{path}" in calls, path
