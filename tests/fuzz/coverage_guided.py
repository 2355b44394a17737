"""Runs targets under atheris, which keeps what reaches new code.

``python coverage_guided.py TARGET [libFuzzer option...]`` runs one, ``python coverage_guided.py all SECONDS`` one after
another. Needs the dependency group ``fuzz``. What is found is written to ``build/fuzz/TARGET`` as ``crash-*``,
``timeout-*`` or ``oom-*``; copy it to ``tests/data/fuzz/TARGET`` under a name that says what broke, where every test
run tries it.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parents[1]))

with atheris.instrument_imports(
    include=[
        *("odf_protocol", "odf_node.exchange", "odf_node.sources", "odf_node.ingest.ingest_rules"),
        *("odf_engines.reading.slices", "odf_engines.records.time_patterns", "odf_fingerprints", "odf_flight.messages"),
        *("odf_foreign.archive", "odf_schedules.declared_schedule"),
    ]
):
    from fuzz.targets import ROOT, TARGETS

FINDINGS = ROOT / "build" / "fuzz"
LIMITS = ("-timeout=2", "-rss_limit_mb=1536", "-max_len=50000")


def run_all(seconds: str) -> int:
    """Run every target in a process of its own; return the number of those that broke."""
    broken = 0
    for name in TARGETS:
        command = [sys.executable, __file__, name, f"-max_total_time={seconds}"]
        run = subprocess.run(command, check=False, capture_output=True, text=True, errors="replace")
        print(f"{name}: {'broke, see ' + str(FINDINGS / name) if run.returncode else run.stderr.splitlines()[-1]}")
        broken += run.returncode != 0
    return broken


def run_one(name: str, options: list[str]) -> None:
    """Run until the options say stop; does not return."""
    target = TARGETS[name]
    kept = ROOT / "tests" / "data" / "fuzz" / name
    findings = FINDINGS / name
    findings.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for number, seed in enumerate(target.seeds()):
            Path(folder, f"seed-{number}").write_bytes(seed)
        corpus = [folder, *([str(kept)] if kept.is_dir() else [])]
        atheris.Setup([sys.argv[0], *LIMITS, f"-artifact_prefix={findings}/", *options, *corpus], target.run)
        atheris.Fuzz()


if __name__ == "__main__":
    if sys.argv[1] == "all":
        sys.exit(run_all(sys.argv[2]))
    run_one(sys.argv[1], sys.argv[2:])
