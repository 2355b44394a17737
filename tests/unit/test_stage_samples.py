"""The first rows of a rehearsal: of the first lines of a source where these tell as much as all of it (ING-25)."""

from itertools import count
from pathlib import Path

import pytest

from odf_engines.contract import IngestRequest, PreparedRows
from odf_engines.ingest.appending import convert_source
from odf_engines.ingest.result import Folders
from odf_node.ingest import stage_samples
from odf_node.ingest.stage_samples import Stage, StageSample, sample_before_merge
from odf_protocol.events import (
    DataTypeInt64,
    DataTypeString,
    MergeStrategyAppend,
    ReadStep,
    ReadStepCsv,
    ReadStepNdJson,
)
from odf_protocol.timestamp import Timestamp
from odf_protocol.vocabulary import Vocabulary
from support.ingests import FALLBACK, SYSTEM_TIME, schema

SCHEMA = schema(n=DataTypeInt64(), text=DataTypeString())
QUOTED = 'n,text\n1,"a\nb"\nmany,c\n2,"d ""e\n,\n"\n\n3\n4,"\u00fc"\n5,f\n6,"g'


class Converting:
    """Converts in this process, and notes how much there was to read."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.read_bytes, self._numbers = folder, list[int](), count()

    def convert(self, request: IngestRequest) -> PreparedRows:
        self.read_bytes.append(request.source_path.stat().st_size)
        output = self.folder / str(next(self._numbers))
        (output / "scratch").mkdir(parents=True)
        assert convert_source(request, Folders(output / "scratch", output)) is not None
        return PreparedRows(rows=output / "rows.parquet", quarantine=None, records=0)


def sample(engines: Converting, source: Path, read: ReadStep) -> tuple[StageSample, ...]:
    request = IngestRequest(
        dataset_id="did:odf:test",
        read=read,
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
    )
    return sample_before_merge(engines, request)  # type: ignore[arg-type]


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
def test_first_rows_are_the_same_wherever_the_first_lines_are_cut(tmp_path, monkeypatch, ends):
    source, engines = tmp_path / "source.csv", Converting(tmp_path)
    data = QUOTED.replace("\n", ends).encode()
    source.write_bytes(data)
    read = ReadStepCsv(schema=SCHEMA, header=True)
    whole = sample(engines, source, read)
    assert [row["n"] for row in whole[0].rows] == [1, 2, 4]
    for cut in range(1, len(data)):
        monkeypatch.setattr(stage_samples, "HEAD_BYTES", cut)
        assert sample(engines, source, read) == whole
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["source.csv"]


def test_source_of_lines_is_not_read_whole_for_its_first_rows_unless_types_are_guessed(tmp_path):
    source, engines = tmp_path / "source.ndjson", Converting(tmp_path)
    source.write_text("".join(f'{{"n": {n}, "text": "x"}}\n' for n in range(50_000)))
    expected = [{"n": n, "text": "x"} for n in range(3)]
    for read in (ReadStepNdJson(schema=SCHEMA), ReadStepNdJson()):
        (shown,) = sample(engines, source, read)
        assert (shown.stage, list(shown.rows)) == (Stage.READ, expected)
    assert engines.read_bytes[0] <= stage_samples.HEAD_BYTES
    assert engines.read_bytes[1:] == [source.stat().st_size]
