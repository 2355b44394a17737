"""The example of a converter of one's own is built, installed, declared and used (CONV-3)."""

import subprocess
import sys
from pathlib import Path

import pytest

from support.nodes import RealNode

PACKAGE = Path(__file__).parents[2] / "examples" / "converters"
ROWS = """event_time,place,lat,lon
2020-01-01,Bern,46°57'4"N,7°26'51"E
,Quito,0°13'S,78°31'W
,Nowhere,91°N,x
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment in which the package is installed."""
    folder = tmp_path_factory.mktemp("site")
    subprocess.run(
        [
            sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", "--no-deps",
            "--no-build-isolation", "--target", folder, PACKAGE,
        ],
        check=True, capture_output=True, timeout=400,
    )  # fmt: skip
    return {"PYTHONPATH": str(folder)}


def test_converter_of_another_package_is_declared_and_converts(tmp_path: Path, installed: dict[str, str]) -> None:
    node = RealNode(tmp_path / "home", is_apart=True)
    refused = node.run("add", str(PACKAGE / "places.yaml"))
    assert refused.code == 7
    assert "a converter that is installed here (Cast, Compute, Deduplicate, Hash, " in refused.err
    node.must("add", str(PACKAGE / "places.yaml"), environment=installed)
    (tmp_path / "places.csv").write_text(ROWS)
    node.must("ingest", "places", str(tmp_path / "places.csv"), environment=installed)
    rows = node.must("tail", "places", "-o", "json", environment=installed).json()
    found = {row["place"]: (round(row["lat"], 4), round(row["lon"], 4)) for row in rows}
    assert found == {"Bern": (46.9511, 7.4475), "Quito": (-0.2167, -78.5167)}
    (row,) = node.must("quarantine", "show", "places", "-o", "json", environment=installed).json()
    assert [(e["plug_in"], e["code"], e["column"], e["value"]) for e in row["errors"]] == [
        ("Degrees", "degrees", "lat", "91°N"),
        ("Degrees", "degrees", "lon", "x"),
    ]
