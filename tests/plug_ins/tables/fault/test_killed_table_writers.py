"""Processes that write one table and are killed with SIGKILL: nothing is lost, nothing is there twice (TABLE-8)."""

from pathlib import Path

import pytest

from support.table_writers import run


@pytest.mark.timeout(600)
def test_what_a_killed_writer_acknowledged_is_there_once(tmp_path: Path) -> None:
    summary = run(tmp_path, seconds=15, count=3)

    assert " 0 rows acknowledged" not in summary, summary
