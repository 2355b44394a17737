"""Every record of a source is a row or in quarantine, by its number, whatever the format: none is lost, none twice."""

import io
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odf_engines.contract import IngestRequest
from odf_engines.ingest.appending import ingest_source
from odf_engines.ingest.result import Folders
from odf_engines.ingest_parts import ReaderCall
from odf_protocol.events import (
    DataTypeInt8,
    DataTypeString,
    MergeStrategyAppend,
    ReadStep,
    ReadStepCsv,
    ReadStepGeoJson,
    ReadStepJson,
    ReadStepNdGeoJson,
    ReadStepNdJson,
    ReadStepParquet,
)
from odf_protocol.timestamp import Timestamp
from odf_protocol.vocabulary import Vocabulary
from plug_ins.quality.unit.test_readers import call
from plug_ins.quality.unit.test_workbooks_and_avro import workbook
from support.ingests import FALLBACK, SYSTEM_TIME, schema

SCHEMA = schema(n=DataTypeInt8(), name=DataTypeString())
GOOD, ODD, MISFIT, BROKEN, BLANK = "good", "odd", "misfit", "broken", "blank"
NUMBERS = {GOOD: "7", ODD: "+007", MISFIT: "300"}
"""Texts of the number: plain, in a rarer form, none of the type. The others are broken records, or none."""

FILES = st.lists(st.sampled_from([GOOD, GOOD, ODD, MISFIT, BROKEN, BLANK]), max_size=12)
Format = tuple[ReadStep, ReaderCall | None, Callable[[Sequence[str]], bytes], set[str]]


def values(kind: str, pattern: bytes) -> bytes:
    return pattern % NUMBERS[kind].encode() if kind in NUMBERS else b""


def lines(pattern: bytes, broken: Sequence[bytes]) -> Callable[[Sequence[str]], bytes]:
    def write(kinds: Sequence[str]) -> bytes:
        found = [broken[at % len(broken)] if kind == BROKEN else values(kind, pattern) for at, kind in enumerate(kinds)]
        return b"".join(line + b"\n" for line in found)

    return write


def document(begin: bytes, end: bytes, pattern: bytes, broken: Sequence[bytes], between: bytes = b",") -> Any:
    def write(kinds: Sequence[str]) -> bytes:
        found = [broken[at % len(broken)] if kind == BROKEN else values(kind, pattern) for at, kind in enumerate(kinds)]
        return begin + between.join(each for each in found if each) + end

    return write


def excel(kinds: Sequence[str]) -> bytes:
    rows = ""
    for row, kind in enumerate(kinds, start=2):
        cells = f'<c r="A{row}" t="str"><v>{NUMBERS.get(kind)}</v></c>' if kind in NUMBERS else ""
        rows += f'<row r="{row}">{cells}</row>' if kind != BROKEN else f'<row r="{row}"><c r="A{row}" t="e"/></row>'
    return workbook(rows, header='<row r="1"><c r="A1" t="str"><v>n</v></c><c r="B1" t="str"><v>name</v></c></row>')


def avro(kinds: Sequence[str]) -> bytes:
    file = io.BytesIO()
    fields = [{"name": "n", "type": ["null", "string"]}, {"name": "name", "type": "string"}]
    found = [{"n": NUMBERS[kind], "name": "a"} for kind in kinds]
    fastavro.writer(file, {"type": "record", "name": "r", "fields": fields}, found, sync_interval=30)
    return file.getvalue()


def parquet(kinds: Sequence[str]) -> bytes:
    file = io.BytesIO()
    found = pa.table({"n": pa.array([int(NUMBERS[kind]) for kind in kinds], pa.int64()), "name": ["a"] * len(kinds)})
    pq.write_table(found, file, row_group_size=5)
    return file.getvalue()


OBJECT = b'{"name": "a", "n": "%s"}'
FEATURE = b'{"type": "Feature", "geometry": null, "properties": ' + OBJECT + b"}"
NOT_OBJECTS = [b"5", b"[1]", b'"text"', b"null"]
NOT_JSON = [*NOT_OBJECTS, b'{"n": 1', b"\xff", b'{"n": 1} x']
GEO = schema(n=DataTypeInt8())
XML = document(b"<all>", b"</all>", b"<item><n>%s</n><name>a</name></item>", [b"<item><n>1</n><n>2</n></item>"], b" \n")
FORMATS: dict[str, Format] = {
    "csv": (ReadStepCsv(schema=SCHEMA), None, lines(b"%s,a", [b"1", b'1,"a",c', b"1,\xff"]), set()),
    "ndjson": (ReadStepNdJson(schema=SCHEMA), None, lines(OBJECT, NOT_JSON), set()),
    "json": (ReadStepJson(schema=SCHEMA), None, document(b"[", b"]", OBJECT, NOT_OBJECTS), set()),
    "ndgeojson": (ReadStepNdGeoJson(schema=GEO), None, lines(FEATURE, NOT_JSON), set()),
    "geojson": (
        ReadStepGeoJson(schema=GEO),
        None,
        document(b'{"type": "FeatureCollection", "features": [', b"]}", FEATURE, NOT_OBJECTS),
        set(),
    ),
    "fixed-width": (
        ReadStepNdJson(schema=SCHEMA),
        call("FixedWidth", columns={"n": "3-7", "name": "9-9"}),
        lines(b"  %-5s a", [b"short", b"x\xff       "]),
        set(),
    ),
    "xml": (ReadStepNdJson(schema=SCHEMA), call("XmlRows", row="all/item", columns={}), XML, set()),
    "excel": (ReadStepNdJson(schema=SCHEMA), call("Excel"), excel, set()),
    "avro": (ReadStepNdJson(schema=SCHEMA), call("Avro"), avro, {BROKEN, BLANK}),
    "parquet": (ReadStepParquet(schema=SCHEMA), None, parquet, {BROKEN, BLANK, ODD}),
}


@pytest.mark.parametrize("name", FORMATS)
@settings(derandomize=True, max_examples=40, deadline=None)
@given(kinds=FILES)
def test_records_read_are_rows_and_those_in_quarantine_exactly(name: str, kinds: list[str]) -> None:
    step, reader, write, unknown = FORMATS[name]
    kinds = [kind for kind in kinds if kind not in unknown]
    records = [kind for kind in kinds if kind != BLANK]
    with tempfile.TemporaryDirectory() as folder:
        source, output, scratch = (Path(folder) / each for each in ("source", "output", "scratch"))
        output.mkdir()
        scratch.mkdir()
        source.write_bytes(write(kinds))
        ingested = ingest_source(request(source, step, reader), Folders(scratch, output))
        assert ingested is not None
        rows = pq.read_table(ingested.data_path).to_pylist() if ingested.slice.row_count else []
        bad = pq.read_table(ingested.quarantine_path).to_pylist() if ingested.quarantine.rows else []
    good = [number for number, kind in enumerate(records, start=1) if kind in {GOOD, ODD}]
    assert ingested.record_count == len(records) == ingested.slice.row_count + ingested.quarantine.rows
    assert [row["n"] for row in rows] == [7] * len(good)
    assert [row["record"] for row in bad] == [n for n in range(1, len(records) + 1) if n not in good]
    stages = {MISFIT: "read" if name == "parquet" else "convert", BROKEN: "read"}
    assert [row["stage"] for row in bad] == [stages[kind] for kind in records if kind in stages]


def request(source: Path, step: ReadStep, reader: ReaderCall | None) -> IngestRequest:
    return IngestRequest(
        dataset_id="did:odf:test",
        read=step,
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
        reader=reader,
    )
