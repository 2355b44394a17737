"""Benchmarks as tests start them: each with a size that takes a moment."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parents[1] / "benchmarks"

Size = tuple[tuple[object, ...], dict[str, object]]
"""The words behind the command, and the constants of the module that say how much is done."""

LIGHT: Final[dict[str, Size]] = {
    "audit": ((), {"ROWS": 100, "READS": 2, "WRITES": 3}),
    "batches": ((2,), {}),
    "changelogs": ((1_000, 4), {"ROUNDS": 1}),
    "chain": ((), {"COUNTS": (50, 100), "CAREFUL_COUNT": 20}),
    "cli_start": ((), {"ROUNDS": 1, "DATASETS": 1}),
    "convergence": ((30,), {}),
    "daemon": ((), {"SMALL_SLICES": 5, "PULLS": 2, "PULL_BYTES": 1_000}),
    "fair_queries": ((2,), {"COSTLY_S": 3.0, "SETTLE_S": 0.1}),
    "fingerprints": ((2_000, 20), {}),
    "ingest": ((2_000, "peer", "plain", "arrow"), {}),
    "locate": (("--rows", 1_000), {}),
    "queries": ((2_000,), {"REPEATS": 1}),
    "logical_hash": ((1,), {"ROUNDS": 1, "MIN_S": 0.0}),
    "long_chains": ((50, 100), {}),
    "manifest": ((), {"EVENTS": 10, "REPEATS": 1}),
    "many_datasets": ((20,), {}),
    "peer": ((), {"BLOCKS": 20, "ROWS": 1_000, "REPEATS": 1}),
    "pull": ((2,), {"ROUNDS": 1}),
    "pull_with_kamu": ((1, 10, 2), {"ROUNDS": 1}),
    "small_slices": ((3,), {"ROWS": 5}),
    "smart": ((20, 1), {}),
    "store": ((50,), {"COMMITS": 2, "OBJECT_BYTES": 1_000}),
}
WITH_ENGINES: Final[dict[str, Size]] = {
    "bounded_steps": ((0.02, 0.01), {"FILE_ROWS": 10_000, "GROUP_ROWS": 5_000, "GROUPS": 10}),
    "datafusion": ((), {"ROWS": 5, "LARGE_ROWS": 1_000, "STEPS": 2, "WARM": 1}),
    "engine_with_kamu": ((1_000,), {"ROUNDS": 1}),
    "fixed_order": ((), {"ROWS": 1_000, "ROUNDS": 1}),
    "idle": ((1,), {"SETTLE_S": 0.1}),
    "large_steps": ((1,), {"MILLION": 2_000, "ROUNDS": 1, "PEOPLE": 50}),
    "large_views": ((1,), {"MILLION": 20_000, "ROUNDS": 1}),
    "map_memory": ((0.01,), {"SLICE_ROWS": 5_000, "GROUP_ROWS": 1_000}),
    "map_transform": ((1_000,), {"ROUNDS": 1}),
    "replay": ((2,), {"ROWS": 5}),
    "rows": ((1,), {}),
    "sandbox_overhead": ((0.1,), {"ROUNDS": 1, "TRIAL_ROWS": 1_000}),
    "transform_start": ((), {"ROWS": 100, "ROUNDS": 1, "WARM_REQUESTS": 1}),
    "spark_tables": ((0.001,), {"RUNS": 1, "GOALS": {"newest": 1e9, "as of": 1e9}}),
    "view_steps": ((1,), {}),
    "window_steps": ((2,), {"STEPS": 1}),
}
NOT_HERE: Final = {"install": "installs from an index of packages"}

_RUN = """
import json, re, sys
path, constants, words = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3:]
source = open(path).read()
for name, value in constants.items():
    value = tuple(value) if isinstance(value, list) else value
    line = rf"(?m)^{name}(: [^=\\n]*)? = [^(\\n]*(\\([^)]*\\))?[^\\n]*$"
    source, found = re.subn(line, f"{name} = {value!r}", source)
    assert found == 1, (name, found)
sys.argv, sys.path[0] = [path, *words], path.rpartition("/")[0]
exec(compile(source, path, "exec"), {"__name__": "__main__", "__file__": path})
"""


def run_small(name: str, size: Size, folder: Path) -> None:
    """Run a benchmark to its end; its goals, which it ends with 1 for, are for its real size."""
    words, constants = size
    ran = subprocess.run(
        [sys.executable, "-c", _RUN, FOLDER / f"bench_{name}.py", json.dumps(constants), *map(str, words)],
        capture_output=True, text=True, timeout=500, check=False, cwd=folder,
    )  # fmt: skip
    assert "Traceback" not in ran.stderr, ran.stderr[-3000:]
    assert ran.returncode in {0, 1}, ran.stderr[-3000:]
    assert (ran.stdout + ran.stderr).strip()
