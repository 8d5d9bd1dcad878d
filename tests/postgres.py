"""A PostgreSQL server that lives as long as a block of code, in a temporary folder."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.patience import PATIENCE, wait_until
from tests.processes import run_process

MISSING = "PostgreSQL is not installed, or this is root and there is no user postgres; apt-get install postgresql"
"""Why tests are skipped, and how to run them."""
PASSWORD = "pa:ss/w@rd s3cret"


@dataclass(frozen=True)
class Server:
    """A running server: user ann, who needs the password over TCP."""

    port: int
    _numbers: Iterator[int]

    def url(self, database: str = "postgres", password: str = PASSWORD) -> str:
        from urllib.parse import quote

        return f"postgresql://ann:{quote(password, safe='')}@127.0.0.1:{self.port}/{database}"

    def connect(self, database: str = "postgres") -> Any:
        import psycopg

        return psycopg.connect(
            host="127.0.0.1", port=self.port, user="ann", password=PASSWORD, dbname=database, autocommit=True
        )

    def create(self, script: str) -> str:
        """Make a database by a script; return its URL."""
        name = f"made_{next(self._numbers)}"
        with self.connect() as connection:
            connection.execute(f"CREATE DATABASE {name}")
        with self.connect(name) as connection:
            connection.execute(script)
        return self.url(name)


def find_programs() -> Path | None:
    """Return the folder of initdb and postgres, or None where they cannot be run."""
    known = shutil.which("initdb")
    places = [Path(known).resolve().parent] if known else []
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    programs = next((place for place in places if (place / "initdb").exists() and (place / "postgres").exists()), None)
    return programs if programs is not None and (os.getuid() != 0 or _owner() is not None) else None


def _owner() -> str | None:
    """Return the user that runs the server where this one is root, which PostgreSQL refuses."""
    return next((user.pw_name for user in pwd.getpwall() if user.pw_name == "postgres"), None)


@contextmanager
def run_postgres(*settings: str) -> Iterator[Server]:
    """Run a server while the block runs; it keeps nothing safe from a crash, since it is thrown away."""
    programs = find_programs()
    assert programs is not None, MISSING
    user = _owner() if os.getuid() == 0 else None
    options: dict[str, Any] = {} if user is None else {"user": user, "group": user, "extra_groups": []}
    with TemporaryDirectory(prefix="neupath-postgres-") as folder:
        data, secret = Path(folder) / "data", Path(folder) / "password"
        secret.write_text(PASSWORD, encoding="utf-8")
        if user is not None:
            for path in (Path(folder), secret):
                shutil.chown(path, user, user)
        initdb: list[str | Path] = [
            programs / "initdb", "-D", data, "-U", "ann", "-A", "scram-sha-256", "--pwfile", secret, "-E", "UTF8",
            "--no-sync", "--locale=C",
        ]  # fmt: skip
        subprocess.run(initdb, check=True, capture_output=True, cwd=folder, **options)
        port = _free_port()
        chosen = ("fsync=off", "full_page_writes=off", f"unix_socket_directories={folder}", *settings)
        # the server ends with this process, also where that is killed
        tied = ["setpriv", "--pdeathsig", "INT"] if shutil.which("setpriv") else []
        command: list[str | Path] = [*tied, programs / "postgres", "-D", data, "-h", "127.0.0.1", "-p", str(port)]
        command += [part for setting in chosen for part in ("-c", setting)]
        log = (Path(folder) / "log").open("wb")
        with log, run_process(command, stdout=log, stderr=log, cwd=folder, **options) as process:
            server = Server(port, count())
            wait_until(lambda: process.poll() is not None or _answers(server), "PostgreSQL does not answer")
            assert process.poll() is None, (Path(folder) / "log").read_text(encoding="utf-8")
            try:
                yield server
            finally:
                process.send_signal(signal.SIGQUIT)  # at once, without writing down what nobody reads again
                process.wait(PATIENCE)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


def _answers(server: Server) -> bool:
    import psycopg

    try:
        server.connect().close()
    except psycopg.OperationalError:
        return False
    return True
