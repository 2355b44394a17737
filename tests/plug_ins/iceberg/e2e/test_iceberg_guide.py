"""The guide to Iceberg tables: its commands run as they stand there, and print what it says (ICEBERG-2)."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

from support.daemons import daemon

ROOT = Path(__file__).parents[4]
GUIDE = (ROOT / "spec" / "guides" / "iceberg.md").read_text()
SHELL, PYTHON = (re.findall(rf"```{kind}\n(.*?)```", GUIDE, re.DOTALL) for kind in ("sh", "python"))
SERVE = "odf-node serve --http-port 8080\n"
RUN_S = 240


def run(command: list[str], text: str, environment: dict[str, str]) -> str:
    done = subprocess.run(
        command, input=text, env=environment, capture_output=True, text=True, check=False, timeout=RUN_S
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_guide_leads_to_rows_in_pyiceberg(tmp_path: Path) -> None:
    home = tmp_path / "home"
    commands = SHELL[0].replace("/tmp/price-node", str(home)).replace("/tmp/shop", str(tmp_path / "shop"))
    assert commands.endswith(SERVE)
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    run(["sh", "-e"], commands.removesuffix(SERVE), environment)
    with daemon(home) as served:
        program = PYTHON[0].replace("http://localhost:8080", served.url)
        current, before, changes = run([sys.executable, "-"], program, environment).splitlines()
        without_times = [re.sub(r"'event_time': .*?\)\), ", "", line) for line in (current, before)]
        without_times = [re.sub(r"Decimal\('([\d.]+)'\)", r"'\1'", line) for line in without_times]
        found = [ast.literal_eval(line) for line in without_times]
        assert sorted(found[0], key=str) == [{"item": "milk", "price": "1.10"}, {"item": "tea", "price": "2.75"}]
        assert found[1] == [{"item": "tea", "price": "2.50"}]
        assert changes == "4"
