"""The releases of Python that are declared: told alike everywhere, and their grammar kept to."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
DECLARED = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
COMPILE = """
import pathlib, sys
for folder in sys.argv[1:]:
    for path in pathlib.Path(folder).rglob("*.py"):
        compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
print("%d.%d" % sys.version_info[:2])
"""


def test_releases_are_told_alike_everywhere() -> None:
    assert DECLARED == ["3.11", "3.12", "3.13"]
    assert PROJECT["requires-python"] == f">={DECLARED[0]}"
    assert "Python 3.11, 3.12 or 3.13" in (ROOT / "README.md").read_text()
    assert "Python 3.11, 3.12 and 3.13 are declared" in (ROOT / "CONTRIBUTING.md").read_text()
    makefile = (ROOT / "Makefile").read_text()
    assert f"PYTHONS ?= {' '.join(f'python{each}' for each in DECLARED[1:])}\n" in makefile


def find_python(release: str) -> str | None:
    """Return the first program of that name that is a Python; some names have none behind them."""
    for folder in os.get_exec_path():
        program = shutil.which(f"python{release}", path=folder)
        if program and subprocess.run([program, "--version"], capture_output=True, check=False).returncode == 0:
            return program
    return None


@pytest.mark.parametrize("release", [each for each in DECLARED if each != "{}.{}".format(*sys.version_info)])
def test_every_module_is_compiled_by_each_other_release_without_a_warning(release: str) -> None:
    python = find_python(release)
    if python is None:
        pytest.skip(f"no Python {release} is at hand")
    folders = [str(ROOT / name) for name in ("protocol", "engines", "node", "examples", "tests/unit", "tests/support")]
    words = [python, "-I", "-W", "error", "-c", COMPILE, *folders]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout) == (0, f"{release}\n"), done.stderr
