"""The example of a wrong load: its programs and commands print what its page shows (TABLE-14, AUDIT-12)."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.command_line import PATIENCE_S, environment_of
from support.notebooks import printed_before, run_cells

EXAMPLE = Path(__file__).parents[4] / "examples" / "traceable"
SHOWN = re.compile(r"^\$ ([^\n]+)\n((?:(?!\$ |```).*\n)*)", re.MULTILINE)
HASH = re.compile(r"\b[0-9a-f]{8,64}\b")
OWN = [
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z"), "TIME"),
    (re.compile(rf"{HASH.pattern}\??"), "HASH"),  # "?": git was too slow to tell whether there are changes
    (re.compile(r"whole: \d+ rows"), "whole: ROWS"),  # equal reads of one second are one row
    (re.compile(r"\w[\w.-]*@[\w.-]+"), "USER"),
    (re.compile(r"process \d+, in \S+"), "PROCESS"),
    (re.compile(r"script \S+/"), "script "),
    (re.compile(r" {2,}"), "  "),
    (re.compile(r"-{2,}"), "--"),
    (re.compile(r" +$", re.MULTILINE), ""),
]
"""What differs from home to home, with the widths of columns that follow from it."""


def without_own(text: str) -> str:
    for found, stands_for in OWN:
        text = found.sub(stands_for, text)
    return text


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the example in a repository without changes."""
    shutil.copytree(EXAMPLE, tmp_path / "traceable", ignore=shutil.ignore_patterns("__pycache__"))
    git = ["git", "-c", "user.email=a@b.example", "-c", "user.name=n", "-C", str(tmp_path / "traceable")]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "The example"]):
        subprocess.run([*git, *words], check=True)
    return tmp_path / "traceable"


def test_programs_and_commands_print_what_the_page_shows(folder: Path, tmp_path: Path) -> None:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = environment_of(tmp_path / "home", PATH=path)
    blocks = "".join(re.findall(r"^```console\n(.*?)^```$", (folder / "README.md").read_text(), re.M | re.S))
    commands = SHOWN.findall(blocks)
    assert len(commands) == 19
    own: dict[str, str] = {}  # hash or run of the page: that of this home
    for line, shown in commands:
        words = [own.get(word, word) for word in shlex.split(line)]
        ran = subprocess.run(
            words, cwd=folder, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
        assert (ran.returncode, ran.stderr) == (0, ""), line
        assert without_own(ran.stdout) == without_own(shown), line
        own |= dict(zip(HASH.findall(shown), HASH.findall(ran.stdout), strict=True))


def test_code_of_the_notebook_prints_what_stands_in_it(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ODF_NODE_HOME", str(tmp_path / "home"))
    ran = [(printed_before(cell), printed) for cell, printed in run_cells(folder / "traceable.ipynb")]
    assert [printed for _, printed in ran] == [before for before, _ in ran]
    assert sum(bool(printed) for _, printed in ran) == 5
