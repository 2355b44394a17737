"""What another implementation was given, ingested again: the same rows, offsets, times and schema must come out."""

import gzip
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from odf_engines.ingest.state import rebuild_state
from odf_protocol.events import AddData, AddPushSource, SetDataSchema, SetPollingSource, SetVocab
from odf_protocol.schema_arrow import data_schema_of
from odf_protocol.schema_compat import is_same
from odf_protocol.vocabulary import Vocabulary
from support.ingests import RootDataset
from support.kamu import KAMU, read_chain
from support.logical_hash import hash_batches

pytestmark = pytest.mark.spark

COVID = Path(__file__).parents[2] / "examples" / "covid" / "data"
INPUTS = {
    "changelog.orders": sorted((KAMU / "input").glob("changelog-*")),
    "countries.daily": sorted(COVID.glob("countries-aggregated-*.csv.gz")),
    "ledger.transactions": sorted((KAMU / "input").glob("ledger-*")),
    "types.all": sorted((KAMU / "input").glob("types-*")),
    "upsert.accounts": sorted((KAMU / "input").glob("upsert-*")),
}

# Slices that are taken as they were recorded, the state rebuilt from them: what they hold, rows and corrections of some
# hundred keys, the slices around them hold as well.
TAKEN_OVER = {"countries.daily": {2, 3}}


def unpacked(path: Path, folder: Path) -> Path:
    if path.suffix != ".gz":
        return path
    target = folder / path.stem
    with gzip.open(path) as packed, target.open("wb") as plain:
        shutil.copyfileobj(packed, plain)
    return target


@pytest.mark.parametrize("name", INPUTS)
def test_recorded_inputs_give_the_recorded_slices(name: str, tmp_path: Path) -> None:
    events = [block.event for block in read_chain(name)]
    source = next(event for event in events if isinstance(event, AddPushSource | SetPollingSource))
    vocab = next((event for event in events if isinstance(event, SetVocab)), None)
    vocabulary = Vocabulary() if vocab is None else Vocabulary.of(vocab)
    dataset = RootDataset(source.read, source.merge, source.preprocess, vocabulary)
    added = [block for block in read_chain(name) if isinstance(block.event, AddData)]
    assert len(added) == len(INPUTS[name])
    for number, (block, path) in enumerate(zip(added, INPUTS[name], strict=True)):
        assert isinstance(block.event, AddData)
        assert block.event.new_data is not None
        if number in TAKEN_OVER.get(name, ()):
            dataset.slices.append(KAMU / "datasets" / name / "data" / str(block.event.new_data.physical_hash))
            dataset.next_offset = block.event.new_data.offset_interval.end + 1
            dataset.watermark, dataset.state = block.event.new_watermark, tmp_path / f"{number}.state"
            rebuild_state(dataset.slices, dataset.merge, vocabulary, dataset.state)
            continue
        response = dataset.ingest(unpacked(path, tmp_path), system_time=str(block.system_time))
        assert response.data_path is not None
        rows = pq.read_table(response.data_path)
        assert hash_batches(rows.schema, rows.to_batches()) == block.event.new_data.logical_hash
        assert response.offset_interval == block.event.new_data.offset_interval
        assert response.watermark == block.event.new_watermark
        assert response.quarantined_rows == 0
    recorded = next(event for event in events if isinstance(event, SetDataSchema)).schema
    assert is_same(recorded, data_schema_of(response.schema))
