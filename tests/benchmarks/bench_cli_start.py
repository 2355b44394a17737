"""How long light commands take, as multiples of a Python that does nothing.

Run: python tests/benchmarks/bench_cli_start.py
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROUNDS = 15
DATASETS = 10
MANIFEST = """kind: DatasetSnapshot
version: 1
content:
  name: data.{number}
  kind: Root
  metadata: []
"""


def best_of(rounds: int, commands: dict[str, list[str]], environment: dict[str, str]) -> dict[str, float]:
    """Run the commands in turn, so that a busy moment hits them all; the shortest time of each, in seconds."""
    shortest = dict.fromkeys(commands, float("inf"))
    for _ in range(rounds):
        for name, command in commands.items():
            started = time.perf_counter()
            subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
            shortest[name] = min(shortest[name], time.perf_counter() - started)
    return shortest


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "ODF_NODE_HOME": str(Path(folder) / "home")}
        manifests = Path(folder) / "manifests.yaml"
        manifests.write_text("---\n".join(MANIFEST.format(number=number) for number in range(DATASETS)))
        node = [sys.executable, "-m", "odf_node"]
        subprocess.run([*node, "add", manifests], env=environment, check=True, stdout=subprocess.DEVNULL)
        commands = {
            "python -c pass": [sys.executable, "-c", "pass"],
            "odf-node --version": [*node, "--version"],
            f"odf-node list ({DATASETS} datasets)": [*node, "list"],
            "odf-node log": [*node, "log", "data.0"],
            "odf-node tail": [*node, "tail", "data.0"],
        }
        times = best_of(ROUNDS, commands, environment)
    nothing = times["python -c pass"]
    for name, seconds in times.items():
        print(f"{name:<30} {seconds * 1000:6.0f} ms  {seconds / nothing:5.1f} x")


if __name__ == "__main__":
    main()
