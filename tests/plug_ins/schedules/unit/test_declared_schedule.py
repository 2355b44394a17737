"""A schedule in a manifest: read, or rejected by ``add`` with its place (SCHED-11)."""

from pathlib import Path

import pytest

from odf_node.configuration.declaration import Schedule
from odf_protocol.manifest.errors import ManifestError
from odf_schedules.declared_schedule import parse_schedule
from support.command_line import list_kept
from support.nodes import RealNode


@pytest.mark.parametrize(
    ("text", "schedule"),
    [
        ("every: 15m", {"every": "15m"}),
        ("{every: 1d, derivatives: false}", {"every": "1d", "derivatives": False}),
        ("{every: 1d, pause: 30s}", {"every": "1d", "pause": "30s"}),
        ("{every: 1d, priority: low}", {"every": "1d", "priority": "low"}),
        ("{cron: 30 4 * * mon-fri, timeZone: Europe/Berlin}",
         {"cron": "30 4 * * mon-fri", "time_zone": "Europe/Berlin"}),
    ],
)  # fmt: skip
def test_schedule_is_read(text: str, schedule: dict) -> None:
    assert parse_schedule(text, "a.b") == Schedule(datasets="a.b", **schedule)


WRONG = [
    ("x", "expected a map with every, cron, timeZone, derivatives, priority, pause"),
    ("{}", "expected either every or cron"),
    ("{every: 1h, cron: 0 4 * * *}", "expected either every or cron, such as"),
    ("every: 0m", "every: expected a number with s, m, h or d"),
    ("every: [1h]", "every: expected a text"),
    ("cron: 0 4 * *", "cron: expected minute, hour"),
    ("cron: 0 0 31 2 *", "cron: expected a cron expression"),
    ("{cron: 0 4 * * *, timeZone: Mars}", "timeZone: expected a zone"),
    ("{every: 1h, timeZone: UTC}", "timeZone: expected none with every"),
    ("{every: 1h, derivatives: no}", "derivatives: expected true or false"),
    ("{every: 1h, priority: urgent}", "priority: expected one of high, normal, low"),
    ("{every: 1h, pause: 1}", "pause: expected a number with s, m, h or d"),
    ("evry: 1h", "evry: expected one of every, cron"),
    ("{every: 1h, datasets: '%'}", "datasets: expected one of every, cron"),
    ("every: 1h\n---\nevery: 2h", "expected a map"),
]


@pytest.mark.parametrize(("text", "message"), WRONG)
def test_schedule_that_cannot_be_followed_is_rejected(text: str, message: str) -> None:
    with pytest.raises(ManifestError) as refused:
        parse_schedule(text, "a")
    assert message in str(refused.value)


MANIFEST = """
kind: DatasetSnapshot
version: 1
content:
  name: large
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs: [{{datasetRef: cities}}]
      transform: {{kind: Sql, engine: spark, query: "SELECT event_time FROM cities"}}
    - kind: SetAttachments
      attachments: {{kind: Embedded, items: [{{path: odf-node/schedule.yaml, content: "{text}"}}]}}
"""


def test_add_rejects_a_mistake_with_its_place_and_makes_nothing(tmp_path: Path) -> None:
    node = RealNode(tmp_path / "home")
    (tmp_path / "large.yaml").write_text(MANIFEST.format(text="evry: 1h"))
    ran = node.run("add", str(tmp_path / "large.yaml"))
    assert ran.code == 7
    assert "expected in line 1, evry: one of every, cron, timeZone, derivatives, priority" in ran.err
    assert "did you mean 'every'?" in ran.err
    assert list_kept(node.home)["datasets"] == ()
