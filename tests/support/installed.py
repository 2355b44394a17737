"""The wheel in an environment of its own, with what it needs and nothing else, in a second and without a network."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

from support.nodes import COMMAND_S, DAEMON_S, RanCommand

REPOSITORY = Path(__file__).parents[2]
BUILD = "import os, sys; from hatchling.build import build_wheel; os.chdir(sys.argv[1]); build_wheel(sys.argv[2])"
WAIT_S = 400


def build_wheel(folder: Path) -> Path:
    """Build the wheel, offline."""
    done = subprocess.run([sys.executable, "-c", BUILD, REPOSITORY, folder], capture_output=True, timeout=WAIT_S)
    assert done.returncode == 0, done.stderr
    (built,) = folder.glob("*.whl")
    return built


def install_alone(wheel: Path, folder: Path) -> Path:
    """Install the wheel and nothing else.

    Returns:
        The interpreter of the environment.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True, timeout=WAIT_S)
    program = folder / "bin" / "python"
    subprocess.run(
        [*_pip(program), "install", "--quiet", "--no-deps", "--no-index", wheel],
        check=True, capture_output=True, timeout=WAIT_S,
    )  # fmt: skip
    return program


def install_base(wheel: Path, folder: Path) -> Path:
    """Install the wheel with what it requires, and with no extra.

    Packages are links to those of this environment, which the lock has the hashes of; that they are enough, and of the
    versions that the wheel wants, is what pip says.

    Returns:
        The interpreter of the environment.
    """
    program = install_alone(wheel, folder)
    (packages,) = folder.glob("lib/python3.*/site-packages")
    for distribution in _required("odf-node"):
        names = {each.parts[0] for each in distribution.files or ()} - {"..", "__pycache__", "bin"}
        for name in names:
            if not (packages / name).exists():
                (packages / name).symlink_to(Path(str(distribution.locate_file(name))).resolve())
    subprocess.run([*_pip(program), "check"], check=True, timeout=WAIT_S)
    return program


def run(*command: str | Path, **environment: str) -> RanCommand:
    """Run a program of an environment, which sees nothing of this one."""
    done = subprocess.run(
        command, env=_clean(environment), cwd="/", capture_output=True, text=True, check=False, timeout=COMMAND_S
    )
    return RanCommand(done.returncode, done.stdout, done.stderr)


@contextmanager
def serving(python: Path, home: Path) -> Iterator[str]:
    """Run the daemon of an environment on a free port; give its address, and end it with SIGTERM."""
    ready = home.with_suffix(".ready")
    words = ["serve", "--http-port", "0", "--ready-file", ready, "--home", home]
    daemon = subprocess.Popen([python.parent / "odf-node", *words], env=_clean({}), cwd="/")
    try:
        deadline = time.monotonic() + DAEMON_S
        while not ready.exists():
            assert daemon.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        yield ready.read_text().strip()
    finally:
        daemon.terminate()
        assert daemon.wait(timeout=DAEMON_S) == 0


def _pip(program: Path) -> list[str | Path]:
    return [sys.executable, "-m", "pip", "--python", program, "--quiet", "--disable-pip-version-check"]


def _clean(environment: dict[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    return kept | environment


def _required(name: str) -> Iterator[metadata.Distribution]:
    """Yield what a distribution requires, all the way down; what is for other systems is not here."""
    seen, waiting = {name}, [name]
    while waiting:
        for requirement in metadata.requires(waiting.pop()) or ():
            required = re.split(r"[^\w.-]", requirement)[0]
            if "extra ==" in requirement or required in seen:
                continue
            seen.add(required)
            try:
                yield metadata.distribution(required)
            except metadata.PackageNotFoundError:
                continue
            waiting.append(required)
