"""``odf-node inspect block`` and ``inspect data``: files, without a home."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odf_node.cli.main import main
from odf_protocol.block import encode_block
from odf_protocol.events import SetInfo
from odf_protocol.multihash import Multihash
from support.chains import NOON
from support.logical_hash import hash_batches, hash_table
from support.manifests import parse_manifest

EVENT = SetInfo(description="ends in line breaks\n\n\n", keywords=())
RAW = encode_block(EVENT, system_time=NOON, prev_block_hash=None, sequence_number=7)


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ODF_NODE_HOME", str(tmp_path / "home"))
    Path("block").write_bytes(RAW)
    Path("broken").write_bytes(RAW[:60])


def test_block_is_shown_as_annotated_bytes_and_as_yaml_that_reads_back(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", "block", "block"]) == 0
    shown = capsys.readouterr().out
    dump, _, text = shown.partition("---\n")
    assert "SetInfo.description: 'ends in line breaks" in dump
    assert parse_manifest(text, source_name="shown.yaml").event == EVENT


def test_broken_block_is_annotated_before_it_is_said_what_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", "block", "broken", "block"]) != 0
    shown = capsys.readouterr()
    assert shown.out.index("root → Manifest") < shown.out.index("# malformed") < shown.out.index("kind: SetInfo")
    assert "malformed" in shown.err


def test_blocks_in_json_carry_hash_content_or_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", "block", "--json", "broken", "block"]) != 0
    broken, whole = map(json.loads, capsys.readouterr().out.splitlines())
    assert "malformed" in broken["error"]
    assert whole["blockHash"] == str(Multihash.of_sha3_256(RAW))
    assert whole["content"]["event"]["kind"] == "SetInfo"


def test_data_file_is_shown_with_schema_rows_and_all_three_hashes(capsys: pytest.CaptureFixture[str]) -> None:
    table = pa.table({"a": [1, 2, None], "b": ["x", "", "y"]})
    pq.write_table(table, "rows.parquet")
    assert main(["inspect", "data", "rows.parquet", "--json"]) == 0
    (report,) = json.loads(capsys.readouterr().out)
    assert report["rows"] == 3
    assert report["columns"] == [{"name": "a", "type": "int64"}, {"name": "b", "type": "string"}]
    assert report["physicalHash"] == str(Multihash.of_sha3_256(Path("rows.parquet").read_bytes()))
    assert report["logicalHash"] == str(hash_batches(table.schema, table.to_batches()))
    assert report["logicalHashV1"] == str(hash_table(table.schema, table.to_batches()).root)
    assert main(["inspect", "data", "rows.parquet"]) == 0
    text = capsys.readouterr().out
    assert all(report[name] in text for name in ("physicalHash", "logicalHash", "logicalHashV1"))


def test_column_that_arrow0_cannot_hash_is_named_and_the_rest_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    pq.write_table(pa.table({"a": pa.array([[(1, 2)]], pa.map_(pa.int8(), pa.int8()))}), "map.parquet")
    assert main(["inspect", "data", "map.parquet", "--json"]) == 0
    (report,) = json.loads(capsys.readouterr().out)
    assert report["logicalHash"].startswith("not defined: ")
    assert "'a'" in report["logicalHash"]
    assert report["logicalHashV1"].startswith("ff19bc001")
