"""PLAN-22: pulls of one derivative at the same time compute a step once."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.city_datasets import root_manifest
from support.convergence_homes import DERIVATIVE, add, blocks_of, ingest
from support.nodes import RealNode

pytestmark = pytest.mark.usefixtures("light_engines")


def test_two_processes_that_pull_one_derivative_make_one_step(tmp_path: Path) -> None:
    node = RealNode(tmp_path / "home")
    add(node, tmp_path, root_manifest("cities"))
    add(node, tmp_path, DERIVATIVE.format(name="names", source="cities", where=""))
    ingest(node, tmp_path, "Oslo")
    command = [sys.executable, "-m", "odf_node", "pull", "names", "--home", str(node.home)]
    pulls = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ)
        for _ in range(3)
    ]
    ended = [(each.communicate(timeout=300), each.returncode) for each in pulls]
    assert [code for _, code in ended] == [0, 0, 0], ended
    assert sum("1 row derived" in out for (out, _), _ in ended) == 1, ended
    assert blocks_of(node, "names").count("ExecuteTransform") == 1
    assert "no dataset needs" not in node.run("status").out  # the file of their queue is no leftover
