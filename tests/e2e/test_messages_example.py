"""The example of a broker: each pull brings what was published since the one before (ING-33)."""

from pathlib import Path

import pytest

from support.mqtt_broker import PASSWORD, mqtt_broker, publish
from support.nodes import RealNode

EXAMPLE = Path(__file__).parents[2] / "examples" / "messages"


@pytest.mark.spark
def test_messages_are_followed(tmp_path: Path) -> None:
    node, password = RealNode(tmp_path / "home", has_engine=True), {"MQTT_PASSWORD": PASSWORD}
    with mqtt_broker(tmp_path) as port:
        manifest = (EXAMPLE / "readings.yaml").read_text().replace("port: 1883", f"port: {port}")
        (tmp_path / "readings.yaml").write_text(manifest)
        node.must("add", str(tmp_path / "readings.yaml"))
        assert "up to date" in node.must("pull", "sensors.readings", environment=password).out
        reported = '{"event_time": "2026-03-01T12:00:0%dZ", "sensor": "roof", "celsius": 7.5%d}'
        publish(port, reported % (0, 0), reported % (1, 1), reported % (1, 1), topic="sensors/roof/state")
        node.must("pull", "sensors.readings", environment=password)
    rows = node.must("tail", "sensors.readings", "-o", "json").json()
    assert [(row["sensor"], row["celsius"]) for row in rows] == [("roof", "7.50"), ("roof", "7.51")]
    kept = [path.read_bytes() for path in (tmp_path / "home").rglob("*") if path.is_file()]
    assert not any(PASSWORD.encode() in each for each in kept)
