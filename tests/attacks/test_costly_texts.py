"""Texts of 64 kB that are made to cost whoever reads them: outside of a sandbox each is cheap (SANDBOX-18)."""

import subprocess
import sys
from pathlib import Path

import pytest

from fuzz.targets import TARGETS
from support.costly_texts import TEXTS

MEASURE = Path(__file__).parents[1] / "support" / "costly_texts.py"


@pytest.fixture(scope="module")
def costs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[tuple[str, float, float, int]]]:
    """For each entrance: text, processor seconds, MB, and how the process ended."""
    run = subprocess.run([sys.executable, MEASURE], stdout=subprocess.PIPE, text=True, timeout=850, check=True)
    costs: dict[str, list[tuple[str, float, float, int]]] = {}
    for line in run.stdout.splitlines():
        target, text, seconds, megabytes, status = line.split("\t")
        costs.setdefault(target, []).append((text, float(seconds), float(megabytes), int(status)))
    return costs


@pytest.mark.parametrize("name", TARGETS)
def test_text_of_64_kb_takes_at_most_a_second_and_200_mb_sandbox_18(name, costs) -> None:
    assert len(costs[name]) >= len(TEXTS)
    costly = [each for each in costs[name] if each[1] > 1 or each[2] > 200 or each[3] != 0]
    assert costly == []
