"""Each benchmark starts and comes to its end: a figure that nobody can measure is none."""

from pathlib import Path

import pytest

from support.small_benchmarks import FOLDER, LIGHT, NOT_HERE, WITH_ENGINES, run_small


def test_every_benchmark_is_started_by_a_test() -> None:
    assert {path.stem.removeprefix("bench_") for path in FOLDER.glob("bench_*.py")} == {
        *LIGHT, *WITH_ENGINES, *NOT_HERE,
    }  # fmt: skip


@pytest.mark.parametrize("name", LIGHT)
def test_benchmark_comes_to_its_end(name: str, tmp_path: Path) -> None:
    run_small(name, LIGHT[name], tmp_path)
