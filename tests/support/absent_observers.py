"""Runs told to an address where nobody listens, in a process of their own.

What tries again there goes on for minutes after the work, and draws random numbers: a property test that runs in the
same process at that moment fails.
"""

import json
import subprocess
import sys
from dataclasses import dataclass

PROGRAM = """
import json, logging, sys, time
from odf_node.adapters.observing import get_observer
from odf_node.configuration import Configuration
from odf_node.configuration.declaration import Lineage, Telemetry
from odf_node.ports.observing import DatasetVersion, Run, RunKind

logging.basicConfig(stream=sys.stderr)
logging.raiseExceptions = False
section, field, url, runs = sys.argv[1:]
settings = {"telemetry": Telemetry, "lineage": Lineage}[section](**{field: url})
observer = get_observer(Configuration(**{section: settings}), {})
began_s = time.monotonic()
dataset = DatasetVersion(dataset_id="did:odf:a", name="a", block="f1")
for _ in range(int(runs)):
    with observer.observing(Run(kind=RunKind.STEP, dataset=dataset)):
        pass
ran_s = time.monotonic() - began_s
observer.flush()
print(json.dumps({"counts": observer.counts, "ran_s": ran_s}))
"""


@dataclass(frozen=True)
class Told:
    """How long the runs took, what became of what was to be told of them, and what the log says."""

    ran_s: float
    counts: dict[str, int]
    log: str


def observe_at_nobody(section: str, field: str, url: str, runs: int) -> Told:
    """Let an observer under one setting hear so many runs, and the end of the command."""
    command = [sys.executable, "-c", PROGRAM, section, field, url, str(runs)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    answer = json.loads(done.stdout)
    (counts,) = answer["counts"].values()
    return Told(answer["ran_s"], counts, done.stderr)
