"""The first rows behind each stage of a rehearsal, taken as they go by (ING-25)."""

from pathlib import Path
from typing import Any

import pytest

from odf_engines.contract import IngestRequest
from odf_engines.ingest.appending import convert_source, ingest_source
from odf_engines.ingest.result import Folders, name_samples
from odf_engines.ingest_parts import ConverterCall
from odf_engines.reading.files import read_table
from odf_engines.stage_metrics import MAX_SAMPLE_ROWS, SampledStage
from odf_protocol.events import DataTypeInt64, DataTypeString, MergeStrategyAppend, ReadStepCsv
from odf_protocol.timestamp import Timestamp
from odf_protocol.vocabulary import Vocabulary
from plug_ins.quality.unit.test_converters import call
from support.ingests import FALLBACK, SYSTEM_TIME, schema

READ = ReadStepCsv(schema=schema(n=DataTypeInt64(), text=DataTypeString()), header=True)
ROWS = "n,text\n1,a\nmany,b\n2, c\n3,d\n4,e\n"


def run(folder: Path, work: Any, *converters: ConverterCall, **changes: Any) -> dict[SampledStage, list]:
    source, output = folder / "source.csv", folder / "output"
    source.write_text(ROWS)
    (output / "scratch").mkdir(parents=True)
    request = IngestRequest(
        dataset_id="did:odf:test",
        read=READ,
        preprocess=None,
        merge=MergeStrategyAppend(),
        vocabulary=Vocabulary(),
        source_path=source,
        source_name="the source",
        known_schema=None,
        state_path=None,
        system_time=Timestamp.parse(SYSTEM_TIME),
        fallback_event_time=Timestamp.parse(FALLBACK),
        next_offset=0,
        converters=converters,
        **changes,
    )
    folders = Folders(output / "scratch", output)
    assert work(request, folders) is not None
    named = name_samples(folders)
    return {
        stage: read_table(output / named[f"sample_{stage}"], most=MAX_SAMPLE_ROWS).to_pylist()
        for stage in SampledStage
        if f"sample_{stage}" in named
    }


@pytest.mark.parametrize("work", [ingest_source, convert_source])
def test_rows_are_taken_behind_reading_and_behind_converters_in_one_run(tmp_path: Path, work: Any) -> None:
    calls = (call("Trim", columns=["text"]), call("Rename", columns={"n": "m"}))
    assert run(tmp_path, work, *calls, has_samples=True) == {
        SampledStage.READ: [{"n": 1, "text": "a"}, {"n": 2, "text": " c"}, {"n": 3, "text": "d"}],
        SampledStage.CONVERTED: [{"m": 1, "text": "a"}, {"m": 2, "text": "c"}, {"m": 3, "text": "d"}],
    }


def test_stage_that_gave_no_row_has_an_empty_sample(tmp_path: Path) -> None:
    found = run(tmp_path, ingest_source, call("Cast", column="text", type="BOOLEAN"), has_samples=True)
    assert [each["n"] for each in found[SampledStage.READ]] == [1, 2, 3]
    assert found[SampledStage.CONVERTED] == []


def test_ingest_that_is_no_rehearsal_writes_none(tmp_path: Path) -> None:
    assert run(tmp_path, ingest_source, call("Trim", columns=["text"])) == {}
    assert not [*(tmp_path / "output").glob("sample*")]
