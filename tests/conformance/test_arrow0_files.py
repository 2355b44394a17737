"""Parquet files with the logical hash that the reference implementation computes for them."""

import json
import os
import random
import subprocess
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odf_protocol.hashing.reader_schema import reader_schema
from support.arrow_data import random_schema, random_table
from support.logical_hash import hash_batches

DATA = Path(__file__).parents[1] / "data"


def logical_hash(path: Path, batch_rows: int) -> str:
    with pq.ParquetFile(path) as file:
        metadata = file.metadata
        schema = reader_schema(file.schema_arrow, metadata.metadata)
        groups = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
        return hash_batches(schema, file.iter_batches(batch_rows), row_group_rows=groups).digest.hex()


def recorded(folder: str, index: str) -> list[object]:
    entries = [json.loads(line) for line in (DATA / folder / index).read_text().splitlines()]
    cases = [(DATA / folder / entry["file"], entry["arrow0-sha3-256"]) for entry in entries]
    return [pytest.param(path, digest, id=path.name[-20:]) for path, digest in cases if path.exists()]


CASES = recorded("arrow0", "expected.ndjson") + recorded("kamu", "arrow0.ndjson")


@pytest.mark.parametrize(("path", "digest"), CASES)
def test_file_has_the_hash_of_the_reference_implementation(path: Path, digest: str) -> None:
    assert logical_hash(path, 7_777) == digest


def test_enough_recorded_files_are_here() -> None:
    assert len(CASES) > 60


@pytest.mark.peer
@pytest.mark.skipif("ODF_PEER" not in os.environ, reason="ODF_PEER does not name the folder of a peer's programs")
@pytest.mark.parametrize("seed", range(40))
def test_random_file_has_the_hash_that_the_peer_computes(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    rows = rng.choice([0, 1, 17, 200, 10_001, 25_000])
    table = random_table(seed, random_schema(seed), rows, rng.choice([0.0, 0.001, 0.2, 0.6]))
    path = tmp_path / "slice.parquet"
    groups = rng.choice([None, max(1, rows // 3), 7_000])
    try:
        pq.write_table(table, path, row_group_size=groups, use_dictionary=rng.random() < 0.5)
    except pa.ArrowNotImplementedError:  # text views in several row groups, or nested
        pytest.skip("pyarrow cannot write this table")
    peer = Path(os.environ["ODF_PEER"], "arrow0")
    run = subprocess.run([peer, path], check=True, capture_output=True)
    assert logical_hash(path, rng.choice([999, 10_000, 65_536])) == json.loads(run.stdout)["arrow0"]
