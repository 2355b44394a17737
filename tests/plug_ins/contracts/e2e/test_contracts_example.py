"""The example of three nodes, as its page says it (CONTRACT-8 to CONTRACT-10, CONTRACT-13)."""

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[4] / "examples" / "contracts" / "run.sh"


@pytest.mark.spark
def test_example_holds_the_swapped_file_and_heals(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ODF_NODE_")}
    ran = subprocess.run(
        ["bash", SCRIPT],
        env=environment | {"TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=800,
    )
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-3000:]
    story = ran.stdout.split("\n# ")
    held, consumer, healed = (
        next(part for part in story if part.startswith(how)) for how in ("On", "The con", "The next")
    )
    assert "countries.severe: keeps to block 9 of countries.daily: block 10 breaks contract learned" in held
    assert "event times in the future of their publication" in held
    assert "days of the calendar missing" in held
    newest = [part.split('"newest","n"\n')[1].split(",")[0] for part in (story[2], consumer, healed)]
    assert newest == ["2020-09-07", "2020-09-07", "2020-09-09"]
    assert "keeps to" not in healed
    assert list(tmp_path.iterdir()) == []
