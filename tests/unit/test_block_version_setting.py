"""A chain is written in one version of the block format from its first block to its last."""

from pathlib import Path

import pytest

from odf_node.cli.main import main
from odf_node.datasets.creation import DatasetCreator
from odf_node.datasets.writer import ChainWriter
from odf_protocol.block import LATEST_VERSION, decode_block
from odf_protocol.events import DatasetKind, SetInfo
from odf_protocol.manifest import DatasetSnapshot
from support.chains import NOON
from support.homes import make_home


@pytest.mark.parametrize("version", [2, LATEST_VERSION])
def test_chain_goes_on_in_the_version_it_was_started_in(tmp_path: Path, version: int) -> None:
    home = make_home(tmp_path)
    store, objects, keys = home.store, home.objects, home.keys
    snapshot = DatasetSnapshot(
        name="old.format", kind=DatasetKind.ROOT, metadata=(SetInfo(description="first", keywords=()),)
    )
    record = DatasetCreator(home).create(snapshot, system_time=NOON, block_version=version)
    writer = ChainWriter.continue_chain(store, keys, record.id)
    writer.add(SetInfo(description="second", keywords=()), system_time=NOON)
    writer.add(SetInfo(description="third", keywords=()), system_time=NOON)
    writer.commit(signed_at=NOON, objects=objects, staged={})
    blocks = [decode_block(block.raw, expected_hash=block.hash) for block in store.iter_blocks(record.id)]
    assert [block.version for block in blocks] == [version] * 4
    store.close()


def test_version_is_chosen_when_a_dataset_is_added(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ODF_NODE_HOME", str(tmp_path / "home"))
    manifest = "kind: DatasetSnapshot\nversion: 1\ncontent:\n  name: {}\n  kind: Root\n  metadata: []\n"
    for name, options in (("plain", []), ("old", ["--block-version", "2"])):
        Path(f"{name}.yaml").write_text(manifest.format(name))
        assert main(["add", f"{name}.yaml", *options]) == 0
        assert main(["log", name, "-o", "yaml"]) == 0
        assert f"version: {2 if options else 3}\n" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["add", "plain.yaml", "--block-version", "4"])
