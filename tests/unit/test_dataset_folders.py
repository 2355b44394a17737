"""Messages of brokers and what sinks wrote go with their dataset, and with no other one (ING-33, SINK-2)."""

from pathlib import Path

import pytest

from odf_node.home_folder import HomeFolder, name_session, name_sinks, sweep_dataset_folders
from odf_protocol.did import DatasetId
from support.nodes import RealNode

MANIFEST = """kind: DatasetSnapshot
version: 1
content: {{name: {name}, kind: Root, metadata: []}}
"""


def wait_for(home: Path, kind: str, dataset_id: str) -> Path:
    name = name_session if kind == "messages" else name_sinks
    path = home / kind / name(DatasetId.parse(dataset_id)) / "1.ndjson"
    path.parent.mkdir(parents=True)
    path.write_text('{"who": "somebody"}\n')
    return path


@pytest.mark.parametrize("kind", ["messages", "sinks"])
def test_folder_is_deleted_with_its_dataset_and_swept_where_that_was_killed(tmp_path: Path, kind: str) -> None:
    node = RealNode(tmp_path / "home")
    ids = []
    for name in ("first", "second"):
        (tmp_path / "a.yaml").write_text(MANIFEST.format(name=name))
        ids += [each["id"] for each in node.must("add", str(tmp_path / "a.yaml"), "-o", "json").json()]
    gone, kept = (wait_for(node.home, kind, each) for each in ids)
    node.must("delete", "first", "--dry-run")
    assert gone.exists()
    node.must("delete", "first", "--yes")
    assert not gone.parent.exists()
    assert kept.exists()
    again = wait_for(node.home, kind, ids[0])
    node.must("gc", "--dry-run")
    assert again.exists()
    node.must("gc")
    assert not again.parent.exists()
    assert kept.exists()


def test_home_without_such_folders_is_not_asked_for_its_datasets(tmp_path: Path) -> None:
    sweep_dataset_folders(HomeFolder(tmp_path), lambda: 1 / 0)
