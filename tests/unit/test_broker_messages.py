"""Messages of brokers go with the dataset that they wait for, and with no other one (ING-33)."""

from pathlib import Path

from odf_node.broker_messages import name_session, sweep_messages
from odf_protocol.did import DatasetId
from support.nodes import RealNode

MANIFEST = """kind: DatasetSnapshot
version: 1
content: {{name: {name}, kind: Root, metadata: []}}
"""


def wait_for(home: Path, dataset_id: str) -> Path:
    path = home / "messages" / name_session(DatasetId.parse(dataset_id)) / "1.ndjson"
    path.parent.mkdir(parents=True)
    path.write_text('{"who": "somebody"}\n')
    return path


def test_messages_are_deleted_with_their_dataset_and_swept_where_that_was_killed(tmp_path: Path) -> None:
    node = RealNode(tmp_path / "home")
    ids = []
    for name in ("first", "second"):
        (tmp_path / "a.yaml").write_text(MANIFEST.format(name=name))
        ids += [each["id"] for each in node.must("add", str(tmp_path / "a.yaml"), "-o", "json").json()]
    gone, kept = (wait_for(node.home, each) for each in ids)
    node.must("delete", "first", "--dry-run")
    assert gone.exists()
    node.must("delete", "first", "--yes")
    assert not gone.parent.exists()
    assert kept.exists()
    again = wait_for(node.home, ids[0])
    node.must("gc", "--dry-run")
    assert again.exists()
    node.must("gc")
    assert not again.parent.exists()
    assert kept.exists()


def test_home_without_messages_is_not_asked_for_its_datasets(tmp_path: Path) -> None:
    sweep_messages(tmp_path / "messages", lambda: 1 / 0)
