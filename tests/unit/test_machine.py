"""What ``doctor`` says of extras: what each brings, and how to install it where it is not."""

import re
from importlib import metadata
from pathlib import Path

import pytest

from odf_node.machine import examine_extras


def test_installed_extras_are_told_with_their_versions() -> None:
    found = {each.what: each.found for each in examine_extras()}
    assert found["extra grpc"] == f"grpcio {metadata.version('grpcio')}"
    assert f"pyspark {metadata.version('pyspark')}" in found["extra spark"]
    assert found["extra datafusion"] == "part of odf-node"
    assert all("not installed" not in each for each in found.values())
    # The guide says what each is for.
    named = re.findall(r"odf-node\[(\w+)\]", (Path(__file__).parents[2] / "spec/guides/installing.md").read_text())
    assert {f"extra {name}" for name in named} == set(found)


def test_extra_that_is_not_installed_is_no_fault_and_says_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    described = tmp_path / "lean-1.0.dist-info"
    described.mkdir()
    (described / "METADATA").write_text(
        "Metadata-Version: 2.4\nName: lean\nVersion: 1.0\nProvides-Extra: grpc\nProvides-Extra: flight\n"
        "Requires-Dist: no-such-package<2,>=1; extra == 'grpc'\nRequires-Dist: pytest>=1; extra == 'flight'\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    found = {each.what: each for each in examine_extras("lean")}
    assert found["extra grpc"].ok
    assert found["extra grpc"].found == "not installed: pip install 'lean[grpc]'"
    assert found["extra flight"].found.startswith("pytest ")
