"""Trace seven walks through the source: the functions that run, the files they are in, and the switches between files.

    python benchmarks/walks.py             print a table of all walks
    python benchmarks/walks.py search      list the files of one walk, in the order in which they are entered

Each walk runs in its own process on a small graph. A function counts once, however often it runs. What runs while a
module is imported does not count. A switch is a call from one file into another.
"""

import argparse
import contextlib
import io
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType
from urllib.request import Request, urlopen

import neupath

ROOT = str(Path(neupath.__file__).parent)


class Trace:
    """Records the functions of this package that run, in every thread that starts after it."""

    def __init__(self) -> None:
        self.functions: set[CodeType] = set()
        self.files: list[str] = []
        self.switches = 0
        self._is_recording = False
        self._file_of_thread: dict[int, str] = {}
        threading.setprofile(self._record)
        sys.setprofile(self._record)

    @contextlib.contextmanager
    def recording(self) -> Iterator[None]:
        self._is_recording = True
        yield
        self._is_recording = False

    def _record(self, frame: FrameType, event: str, _: object) -> None:
        file = frame.f_code.co_filename
        if not self._is_recording or event not in ("call", "return") or not file.startswith(ROOT):
            return
        if _is_importing(frame):
            return
        thread = threading.get_ident()
        if event == "return":
            self._file_of_thread[thread] = _calling_file(frame) or file
            return
        if not frame.f_code.co_name.startswith("<"):  # a lambda or a comprehension is part of its function
            self.functions.add(frame.f_code)
        if file not in self.files:
            self.files.append(file)
        self.switches += self._file_of_thread.get(thread, file) != file
        self._file_of_thread[thread] = file


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_code.co_filename.startswith(ROOT):
            return True
        frame = frame.f_back
    return False


def _calling_file(frame: FrameType) -> str | None:
    caller = frame.f_back
    while caller is not None and not caller.f_code.co_filename.startswith(ROOT):
        caller = caller.f_back
    return None if caller is None else caller.f_code.co_filename


def run_command(trace: Trace, *arguments: object) -> None:
    """Run a command of the command line in this process."""
    from neupath.cli import main

    with trace.recording(), contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as stop:
            if stop.code:
                raise RuntimeError(f"this command failed: {arguments}") from stop


def search(trace: Trace, _: Path) -> None:
    run_command(trace, "search", "toy", "Mike", "-p", "APVPA")


def join(trace: Trace, folder: Path) -> None:
    run_command(trace, "join", "toy", "-p", "APVPA", "--out", folder / "top.parquet")


def update(trace: Trace, folder: Path) -> None:
    """Post an edge to a service that runs, then search."""
    from neupath.engine.topk import load_kernels
    from neupath.live import LiveStore
    from neupath.service.app import make_app, make_service
    from neupath.service.graph_registry import StoreHandle
    from neupath.service.server import address_of, bind, make_server
    from neupath.store import write_store

    load_kernels()
    with LiveStore(write_store(neupath.load("toy"), folder / "store")) as live:
        service = make_service({"toy": StoreHandle("toy", live)}, {}, folder / "state")
        bound, started = bind("127.0.0.1", 0), threading.Event()
        graph_url = f"{address_of(bound)}/api/graphs/toy"
        server = make_server(make_app(service), service, started.set)
        thread = threading.Thread(target=server.run, args=([bound],))
        thread.start()
        started.wait()
        body = b'{"add_edges": [{"relation": "writes", "source": "Mike", "target": "Jim-SIGMOD-1"}]}'
        with trace.recording():
            urlopen(Request(f"{graph_url}/updates", body, {"content-type": "application/json"})).read()  # noqa: S310
            urlopen(f"{graph_url}/search?query=Mike&metapath=APA").read()  # noqa: S310
        server.should_exit = True
        thread.join()


def infer(trace: Trace, folder: Path) -> None:
    pairs = folder / "pairs.csv"
    pairs.write_text("query,target,score\nMike,Bob,1\nMike,Mary,0.8\nMike,Ann,0\nMary,Ann,0.2857142857\n")
    run_command(trace, "infer", "toy", pairs, "--max-length", 4)


def train(trace: Trace, folder: Path) -> None:
    """Train a model, then search with it."""
    run_command(trace, "train", "stdlib", "-p", "class-base-class", "--epochs", 2, "--out", folder / "model")
    run_command(trace, "search", "stdlib", "ArgumentParser", "--model", folder / "model")


def write_films(folder: Path) -> Path:
    source = folder / "films"
    source.mkdir()
    (source / "movie_actor.csv").write_text("movie,actor\nAlien,Weaver\nAliens,Weaver\nHeat,Pacino\n")
    (source / "movies.csv").write_text("id,name,year\nAlien,Alien,1979\nAliens,Aliens,1986\nHeat,Heat,1995\n")
    return source


def load_folder(trace: Trace, folder: Path) -> None:
    source = write_films(folder)
    with trace.recording():
        neupath.load(source)


def import_folder(trace: Trace, folder: Path) -> None:
    run_command(trace, "import", write_films(folder), "--to", folder / "store")


WALKS: dict[str, Callable[[Trace, Path], None]] = {
    "search": search,
    "join": join,
    "update": update,
    "infer": infer,
    "train": train,
    "load": load_folder,
    "import": import_folder,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("walk", nargs="?", choices=WALKS)
    parser.add_argument("--counts", action="store_true", help="print the counts of a walk instead of its files")
    options = parser.parse_args()
    if options.walk is None:
        print(f"{'walk':10}{'functions':>10}{'files':>10}{'switches':>10}", flush=True)
        for name in WALKS:
            subprocess.run([sys.executable, __file__, name, "--counts"], check=True)
        return
    trace = Trace()
    with tempfile.TemporaryDirectory() as folder:
        WALKS[options.walk](trace, Path(folder))
    if options.counts:
        print(f"{options.walk:10}{len(trace.functions):10}{len(trace.files):10}{trace.switches:10}")
    else:
        print("\n".join(str(Path(file).relative_to(ROOT)) for file in trace.files))
    sys.stdout.flush()
    os._exit(0)  # numba's threads may hang in a traced process


if __name__ == "__main__":
    main()
