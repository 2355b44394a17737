"""Hostile bytes: every entrance on its kept inputs and a thousand changed ones, in a child process with limits.

``make fuzz`` runs the same targets for minutes, guided by coverage.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fuzz.plain import CORPUS
from fuzz.targets import TARGETS

MUTATIONS = 1_000
PLAIN = Path(__file__).with_name("plain.py")


@pytest.fixture(scope="module")
def findings(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What is said about all targets; one process loads the program, and a fork of it runs each."""
    run = subprocess.run(
        [sys.executable, PLAIN, "all", str(MUTATIONS), "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=850,
        env={**os.environ, "FUZZ_FINDINGS": str(tmp_path_factory.mktemp("findings"))},
    )
    return run.stdout.decode(errors="backslashreplace")


@pytest.mark.parametrize("name", TARGETS)
def test_hostile_bytes_meet_nothing_but_declared_errors_within_time_and_memory(name: str, findings: str) -> None:
    assert f"\n{name}: ended with 0\n" in f"\n{findings}", findings[-4_000:]


def test_every_kept_input_belongs_to_a_target() -> None:
    assert {path.parent.name for path in CORPUS.glob("*/*")} <= set(TARGETS)
