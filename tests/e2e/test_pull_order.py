"""``pull --all`` goes on after a failure, and says whom it concerns (REPO-4; real source file, real engine)."""

from pathlib import Path

import pytest

from support.nodes import make_publisher

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]

SMALL_OF_LARGE = """
kind: DatasetSnapshot
version: 1
content:
  name: few.cities
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs: [{datasetRef: large.cities, alias: c}]
      transform:
        kind: Sql
        engine: spark
        query: SELECT event_time, city FROM c WHERE people < 500000
"""


def test_derivatives_of_an_input_that_failed_say_what_they_did_not_see(tmp_path: Path) -> None:
    publisher = make_publisher(tmp_path, has_engine=True)
    (tmp_path / "few.yaml").write_text(SMALL_OF_LARGE)
    node, source = publisher.node, {"CITIES": publisher.source.as_uri()}
    node.must("add", str(tmp_path / "few.yaml"))
    assert "only what was here before" not in node.must("pull", "--all", environment=source).err
    publisher.source.unlink()

    ran = node.run("pull", "--all", environment=source)

    assert (ran.code, ran.out) == (3, "large.cities: up to date\nfew.cities: up to date\n")
    assert "large.cities: read of cities only what was here before\n" in ran.err
    assert "few.cities: read of large.cities only what was here before\n" in ran.err
