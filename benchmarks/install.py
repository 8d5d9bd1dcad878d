"""What a base install costs: packages, size and time of `pip install`, and the time of an import and of two commands.

Each folder is a checkout of neupath, installed without extras into an environment of its own with the pins of its
constraints.txt. Times of starts are the least user and system time of some interleaved rounds.

    python benchmarks/install.py ../neupath-before . --rounds 9
"""

import argparse
import subprocess
import venv
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from tempfile import TemporaryDirectory

STARTS = {
    "python -c pass": ("python", "-c", "pass"),
    "import neupath": ("python", "-c", "import neupath"),
    "from neupath import PathSim": ("python", "-c", "from neupath import PathSim"),
    "neupath --help": ("neupath", "--help"),
    "neupath search toy Mike -p APVPA": ("neupath", "search", "toy", "Mike", "-p", "APVPA"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    with TemporaryDirectory() as root:
        installed = [_install(folder, Path(root) / str(n)) for n, folder in enumerate(options.folders)]
        least: dict[tuple[int, str], float] = {}
        for _ in range(options.rounds):
            for n, programs in enumerate(installed):
                for name, (program, *arguments) in STARTS.items():
                    seconds = _cpu_seconds([str(programs / program), *arguments], root)
                    least[n, name] = min(seconds, least.get((n, name), seconds))
    for name in STARTS:
        print(f"{name}: " + ", ".join(f"{1000 * least[n, name]:.1f} ms" for n in range(len(installed))))


def _install(folder: Path, environment: Path) -> Path:
    """Install a checkout into a new environment, print what it takes, and return the folder of its programs."""
    venv.create(environment, with_pip=True)
    programs, empty = environment / "bin", _size(environment)
    command = [str(programs / "pip"), "install", "--quiet", "--no-cache-dir", "-c", "constraints.txt", "."]
    seconds = _cpu_seconds(command, str(folder))
    packages = len(list(environment.glob("lib/python*/site-packages/*.dist-info"))) - len(
        ("pip", "setuptools", "neupath")
    )
    size = (_size(environment) - empty) / 2**20
    print(f"{folder}: {packages} packages besides neupath, {size:,.0f} MiB, {seconds:.1f} s of CPU", flush=True)
    return programs


def _cpu_seconds(command: list[str], folder: str) -> float:
    before = getrusage(RUSAGE_CHILDREN)
    subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    after = getrusage(RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _size(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


if __name__ == "__main__":
    main()
