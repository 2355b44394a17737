"""Benchmarks that start Spark come to their end, each with a size that takes a moment."""

from pathlib import Path

import pytest

from support.small_benchmarks import WITH_ENGINES, run_small

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("name", WITH_ENGINES)
def test_benchmark_comes_to_its_end(name: str, tmp_path: Path) -> None:
    run_small(name, WITH_ENGINES[name], tmp_path)
