"""The files in deploy/: what can be checked without building an image or starting a daemon."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import neupath as npth
from neupath import HIN
from neupath.cli.program import Program
from neupath.service.limits import Limits
from neupath.service.middleware import Metrics

DEPLOY = Path(__file__).parents[1] / "deploy"
yaml = pytest.importorskip("yaml", reason="PyYAML is not installed; pip install -e '.[dev]'")


def test_the_configuration_names_options_of_serve() -> None:
    content = tomllib.loads((DEPLOY / "serve.toml").read_text(encoding="utf-8"))
    assert set(content) <= {parameter.name for parameter in Program(name="neupath").load("serve").params}
    assert set(content["limit"]) <= set(vars(Limits()))


def test_the_image_runs_as_its_own_user_and_copies_files_that_exist() -> None:
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    assert text.index("USER neupath") < text.index("ENTRYPOINT")
    assert "HEALTHCHECK" in text
    assert not re.search(r"^FROM \S+:latest|^FROM [^:\s]+$|^ADD ", text, flags=re.MULTILINE)
    for line in re.findall(r"^COPY (?!--from)(.+) \S+$", text, flags=re.MULTILINE):
        for source in line.split():
            assert (DEPLOY.parent / source).exists(), source


def test_the_extras_of_the_image_exist() -> None:
    project = tomllib.loads((DEPLOY.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    [extras] = re.findall(r"'\.\[(.+)\]'", (DEPLOY / "Dockerfile").read_text(encoding="utf-8"))
    assert set(extras.split(",")) <= set(project["optional-dependencies"])


def test_compose_needs_a_token_and_drops_privileges() -> None:
    service = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))["services"]["neupath"]
    assert ":?" in service["environment"]["NEUPATH_TOKEN"]
    assert service["cap_drop"] == ["ALL"]
    assert service["read_only"]


def test_only_the_proxy_of_compose_can_be_reached() -> None:
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))["services"]
    assert "ports" not in services["neupath"]
    assert services["proxy"]["volumes"][0].startswith("./nginx.conf:")
    text, limits = (DEPLOY / "nginx.conf").read_text(encoding="utf-8"), Limits()
    port = tomllib.loads((DEPLOY / "serve.toml").read_text(encoding="utf-8"))["port"]
    assert f"server neupath:{port};" in text
    assert f"client_max_body_size {limits.body >> 20}m;" in text
    [reused] = re.findall(r"    keepalive_timeout (\d+)s;  # less", text)
    assert int(reused) < limits.idle_seconds
    [read] = re.findall(r"proxy_read_timeout (\d+)s;", text)
    assert int(read) > limits.seconds


def test_alerts_name_metrics_that_the_service_has() -> None:
    metrics = Metrics()
    metrics.count("GET", "/api/health", 200, 0.001)
    text = "\n".join(metrics.lines()) + " neupath_jobs neupath_busy_workers"
    rules = yaml.safe_load((DEPLOY / "alerts.yaml").read_text(encoding="utf-8"))["groups"][0]["rules"]
    for rule in rules:
        for name in re.findall(r"neupath_\w+", rule["expr"]):
            assert name in text, name


def test_the_unit_starts_the_command() -> None:
    text = (DEPLOY / "neupath.service").read_text(encoding="utf-8")
    assert re.search(r"^ExecStart=\S+/neupath serve --config ", text, flags=re.MULTILINE)
    assert "User=neupath" in text


def test_joins_of_schedulers_name_options_of_join() -> None:
    flags = {flag for parameter in Program(name="neupath").load("join").params for flag in parameter.opts}
    job = yaml.safe_load((DEPLOY / "join-job.yaml").read_text(encoding="utf-8"))["spec"]
    [container] = job["template"]["spec"]["containers"]
    slurm = (DEPLOY / "join.slurm").read_text(encoding="utf-8")
    for text in (container["args"][0], slurm.partition("neupath join")[2]):
        assert set(re.findall(r"(?<!-)--?[a-z][a-z-]*", text)) <= flags
    assert job["completionMode"] == "Indexed"
    assert f"$((JOB_COMPLETION_INDEX + 1))/{job['completions']}" in container["args"][0]


@pytest.mark.slow
def test_an_array_of_slurm_jobs_writes_the_file(tmp_path: Path, toy: HIN) -> None:
    index = npth.prepare(toy, npth.PathSim("APVPA"), tmp_path / "index")
    out = tmp_path / "top.parquet"
    environment = os.environ | {"INDEX": index, "OUT": str(out), "SLURM_ARRAY_TASK_COUNT": "2"}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    for number in ("1", "2"):
        job = environment | {"SLURM_ARRAY_TASK_ID": number}
        subprocess.run(["bash", str(DEPLOY / "join.slurm")], check=True, env=job, capture_output=True)
    assert pq.read_table(out).num_rows == 14
