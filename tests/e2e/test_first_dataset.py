"""The first dataset of the README: its commands, as they stand there, in a shell with two new homes."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.daemons import daemon

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

REPOSITORY = Path(__file__).parents[2]
SERVE = re.compile(r"^odf-node serve .*\n", re.MULTILINE)


@pytest.fixture
def blocks() -> list[str]:
    """The shell blocks of the section, in their order."""
    text = (REPOSITORY / "README.md").read_text()
    found = re.search(r"^## First dataset\n(.*?)^## ", text, re.MULTILINE | re.DOTALL)
    assert found
    return re.findall(r"^```sh\n(.*?)^```", found[1], re.MULTILINE | re.DOTALL)


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ODF_NODE_")}
    return kept | {"HOME": str(tmp_path), "ODF_NODE_SIGNED_MARKS": str(tmp_path / "signed-marks")}


def run(block: str, environment: dict[str, str]) -> str:
    """Run a block in the folder of the clone, with the programs of this environment, until a command fails."""
    block = block.replace("$PWD/.venv/bin", str(Path(sys.executable).parent))
    done = subprocess.run(
        ["bash", "-euc", block],
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_second_node_re_executes_what_the_first_one_serves(
    blocks: list[str], environment: dict[str, str], tmp_path: Path
) -> None:
    first, second = (block.replace("/tmp/", f"{tmp_path}/") for block in blocks)
    commands, serves = SERVE.subn("", first)
    assert serves == 1
    shown = run(commands, environment)
    assert "206932" in shown
    with daemon(tmp_path / "first-node") as served:
        shown = run(second.replace("http://localhost:8080", served.url), environment)
    bases = dict(re.findall(r"^(countries\.\w+) .* (\S+)$", shown, re.MULTILINE))
    assert bases == {"countries.daily": "signed", "countries.severity": "re-executed"}
