"""The container file of ``examples/daemon``, built and run where podman and a base image are at hand.

``ODF_CONTAINER_BASE`` names an image that podman has, with what the file says of one; nothing is built without it.
"""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILE = ROOT / "examples" / "daemon" / "Containerfile"
BASE = os.environ.get("ODF_CONTAINER_BASE")


def run(*words: str, timeout_s: int = 900) -> str:
    done = subprocess.run(["podman", *words], capture_output=True, text=True, timeout=timeout_s, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_what_the_container_file_copies_is_in_the_checkout() -> None:
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", FILE.read_text(), re.MULTILINE)
    assert copied
    assert [path for line in copied for path in line.split() if not (ROOT / path).exists()] == []


@pytest.mark.skipif(not BASE or shutil.which("podman") is None, reason="no podman, or no image in ODF_CONTAINER_BASE")
def test_container_is_built_and_its_engines_answer() -> None:
    image = run("build", "--quiet", "--build-arg", f"BASE={BASE}", "--file", str(FILE), str(ROOT)).split()[-1]
    # As the file itself says.
    options = re.findall(r"--security-opt ('?)(\S+?)\1(?= |\n)", FILE.read_text())
    words = ["run", "--rm", *(word for _, option in options for word in ("--security-opt", option)), image]
    reported = {row["what"]: row for row in json.loads(run(*words, "odf-node", "doctor", "-o", "json"))}
    assert [what for what, row in reported.items() if not row["ok"]] == []
    assert not reported["home"]["found"].startswith("/root")
    for engine in ("datafusion", "spark"):
        answer = run(*words, "odf-node", "sql", "--engine", engine, "-o", "json", "-c", "SELECT 1 + 1 AS two")
        assert json.loads(answer) == [{"two": 2}]
