"""Hostile bytes: every entrance on its kept inputs and some thousand changed ones, in a child process with limits.

``make fuzz`` runs the same targets for minutes, guided by coverage.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fuzz.plain import CORPUS
from fuzz.targets import TARGETS

MUTATIONS = 2_000
PLAIN = Path(__file__).with_name("plain.py")


@pytest.mark.parametrize("name", TARGETS)
def test_hostile_bytes_meet_nothing_but_declared_errors_within_time_and_memory(name: str, tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, PLAIN, name, str(MUTATIONS), "1"],
        capture_output=True,
        timeout=120,
        env={**os.environ, "FUZZ_FINDINGS": str(tmp_path)},
    )
    assert run.returncode == 0, (run.stderr + run.stdout).decode(errors="backslashreplace")[-2_000:]


def test_every_kept_input_belongs_to_a_target() -> None:
    assert {path.parent.name for path in CORPUS.glob("*/*")} <= set(TARGETS)
