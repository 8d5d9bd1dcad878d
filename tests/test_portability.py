"""What only POSIX or Linux has is optional, and messages of the library are an application's to show."""

import logging
import subprocess
import sys
from pathlib import Path

import pytest

import neupath as npth
from neupath._runtime.files import locked

WITHOUT_POSIX = """
import asyncio, os, signal, sys  # on POSIX, asyncio itself asks for sysconf
for name in ("fcntl", "resource", "termios", "pwd", "grp"):
    sys.modules[name] = None
for name in ("nice", "posix_fadvise", "pwrite", "sched_getaffinity", "sched_setaffinity", "sysconf", "O_ASYNC"):
    delattr(os, name)
for name in ("SIGXCPU", "SIGKILL"):
    delattr(signal, name)
"""
WORK = """
from pathlib import Path
import numpy, scipy.io, scipy.sparse
import neupath
from neupath.cli import main
from neupath.service.child_process import begin_child
from neupath.service.server import raise_file_limit
from neupath.service.job_process import _lower_priority
from neupath.store import Edge, Update, open_store, write_store

hin = neupath.load("films")
scorer = neupath.PathSim("movie-actor-movie").fit(hin)
assert neupath.load_scorer(scorer.save("saved"), hin).top_k("m1").ids == ("m2",)
assert neupath.join(hin, scorer, "top.parquet", k=1).pairs == 2
with open_store(write_store(hin, Path("store"))) as store:
    store.update(Update([Edge("movie_actor", "m1", "a2")]))
assert neupath.load("store").num_edges(hin.schema.relations[0]) == 4
assert raise_file_limit() > 0
_lower_priority(2)
begin_child(1 << 40)
links = scipy.sparse.csr_array(numpy.eye(2))
scipy.io.savemat("acm.mat", {"PvsA": links, "PvsC": links, "AvsF": links})
assert len(neupath.load("acm.mat").schema.relations) == 3
main(["search", "films", "m1", "-p", "movie-actor-movie"])
"""


@pytest.mark.slow
def test_without_posix_the_library_the_commands_and_stores_work(tmp_path: Path) -> None:
    (tmp_path / "films").mkdir()
    (tmp_path / "films" / "movie_actor.csv").write_text("movie,actor\nm1,a1\nm2,a1\nm2,a2\n", encoding="utf-8")
    process = subprocess.run(
        [sys.executable, "-c", WITHOUT_POSIX + WORK], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr
    assert "m2" in process.stdout


@pytest.mark.slow
@pytest.mark.parametrize("shown", [False, True])
def test_messages_are_shown_by_commands_and_by_applications_that_want_them(shown: bool) -> None:
    command = "from neupath._runtime import log_to_stderr; log_to_stderr()" if shown else "import neupath.engine.join"
    code = f"import logging; {command}; logging.getLogger('neupath.store').warning('the disk is slow')"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stderr == ("the disk is slow\n" if shown else "")


def test_the_logger_has_a_null_handler_and_passes_messages_on(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    assert npth.load
    assert any(isinstance(handler, logging.NullHandler) for handler in logging.getLogger("neupath").handlers)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("neupath._runtime.files.fcntl", None)
        with locked(tmp_path / "lock", "another process writes there"):
            pass
    assert "has no locks; see that nobody else writes there" in caplog.text
