"""The soak test in short: ``make soak`` runs it for long, with more nodes."""

import asyncio
from pathlib import Path

from soak.soak import soak


def test_nodes_that_are_cut_off_and_killed_end_with_equal_heads_and_leak_nothing(tmp_path: Path) -> None:
    counts = asyncio.run(soak(tmp_path, seconds=8, nodes=3, seed=20201001))
    assert counts["published"] > 3
    assert counts["pulled"] > 6
    # What makes it a test of faults has happened.
    assert counts["cuts"] > 0
    assert counts["killed"] > 0
    assert counts["verified"] > 0
