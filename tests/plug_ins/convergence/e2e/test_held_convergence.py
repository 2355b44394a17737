"""What a contract holds back is shown, judged once for each version, and goes on by itself once it is healed."""

from pathlib import Path

import pytest

from support.city_datasets import root_manifest
from support.convergence_homes import DERIVATIVE, SETTINGS, add, cities_of, ingest, states
from support.daemons import daemon, wait_until
from support.nodes import RealNode

pytestmark = [pytest.mark.usefixtures("light_engines"), pytest.mark.timeout(600)]

CONTRACT = """\
apiVersion: v3.1.0
kind: DataContract
id: few-cities
version: 1.0.0
schema:
  - name: cities
    properties:
      - name: people
        logicalType: integer
        quality:
          - type: sql
            query: SELECT count(*) FROM {object} WHERE {property} = 0
            mustBeLessThan: 1
            description: cities without people
"""


def test_held_input_is_shown_tried_once_and_goes_on_when_it_is_healed(tmp_path: Path) -> None:
    """CONVERGE-4, CONVERGE-11: the rows above it are read, and what rests on it waits."""
    node = RealNode(tmp_path / "home")
    add(node, tmp_path, root_manifest("cities"))
    add(node, tmp_path, DERIVATIVE.format(name="names", source="cities", where=""))
    add(node, tmp_path, DERIVATIVE.format(name="report", source="names", where=""))
    (tmp_path / "few.odcs.yaml").write_text(CONTRACT)
    ingest(node, tmp_path, "Oslo")
    node.must("converge")
    node.must("contract", "add", str(tmp_path / "few.odcs.yaml"))
    node.must("converge")
    ingest(node, tmp_path, "Atlantis", people=0)

    node.must("converge")

    found = states(node)
    assert found["names"][0] == "held"
    assert "cities without people" in str(found["names"][1])
    assert found["report"] == ("waiting", "its input names is held")
    assert cities_of(node, "names") == ["Oslo"]
    again = node.must("converge", "-o", "json").json()
    assert again["actions"] == []
    assert {each["dataset"] for each in again["putOff"]} == {"names", "report"}
    node.must("contract", "remove", "few")
    with daemon(node.home, settings=SETTINGS.format(more="")) as serving:
        wait_until(lambda: cities_of(node, "report") == ["Atlantis", "Oslo"] or None, serving.log_file.read_text)
