"""Source files that say one thing and are taken for another: every record has to be taken as it is, or set aside.

Source: clauses ING-1 to ING-4, ING-19 in ``spec/ingest.md``.
"""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odf_engines.contract import IngestRequest
from odf_engines.ingest.appending import ingest_source
from odf_engines.ingest.csv_grammar import CsvDialect
from odf_engines.ingest.csv_records import read_csv
from odf_engines.ingest.result import Folders
from odf_engines.records.plain_texts import convert_plain
from odf_node.ports.sources import Fetched
from odf_node.sources.reader import LocalSourceReader
from odf_protocol.errors import MalformedError
from odf_protocol.events import (
    DataTypeInt64,
    DataTypeString,
    DataTypeTimestamp,
    EventTimeSourceFromPath,
    FetchStepFilesGlob,
    MergeStrategyAppend,
    ReadStep,
    ReadStepNdJson,
    ReadStepParquet,
    SourceState,
)
from odf_protocol.timestamp import Timestamp
from odf_protocol.vocabulary import Vocabulary
from support.command_line import run_command
from support.ingests import RootDataset, quarantined, schema

NOW = Timestamp.parse("2024-02-01T00:00:00Z")
MIDNIGHT = Timestamp(0)
DIALECT = CsvDialect(b",", b'"', None)
ROWS = [1, 2, 3]


# --- CSV ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", [b"\0end of file", b'"\0end of file"', b"\0end of file,\0end of file"])
def test_csv_that_forges_its_own_end_loses_no_record(tmp_path: Path, end: bytes) -> None:
    source, target = tmp_path / "source.csv", tmp_path / "records.parquet"
    width = 2 + end.count(b",")
    source.write_bytes(b",".join([b"1"] * width) + b"\n" + end + b',"an open quote\n')

    found = read_csv(source, target, DIALECT, tuple(f"c{n}" for n in range(width)), header=False)

    assert pq.read_table(target).num_rows == 1
    assert list(found.broken) == [2]
    assert found.record_count == 2


# --- Parquet ------------------------------------------------------------------------------------------------------


def texts(*values: bytes) -> pa.Array:
    """Texts that need not be UTF-8."""
    return pa.Array.from_buffers(pa.string(), len(values), pa.array(values, pa.binary()).buffers())


def times(*values: int, unit: str = "ms") -> pa.Array:
    return pa.array(values, pa.int64()).cast(pa.timestamp(unit, "UTC"))


def append(tmp_path: Path, source: Path, read: ReadStep) -> tuple[list[dict[str, Any]], list[int]]:
    """Ingest a file without a query; give the values of the rows and the numbers of records in quarantine."""
    folders = Folders(tmp_path / "work", tmp_path / "out")
    for folder in (folders.scratch, folders.output):
        folder.mkdir()
    request = IngestRequest(
        dataset_id="did:odf:test", read=read, preprocess=None, merge=MergeStrategyAppend(), vocabulary=Vocabulary(),
        source_path=source, source_name="the source", known_schema=None, state_path=None, system_time=NOW,
        fallback_event_time=NOW, next_offset=0, prev_watermark=None,
    )  # fmt: skip
    found = ingest_source(request, folders)
    assert found is not None
    bad = pq.read_table(found.quarantine_path).to_pylist() if found.quarantine.rows else []
    rows = pq.read_table(found.data_path).to_pylist() if found.slice.row_count else []
    assert len(rows) + len(bad) == found.record_count
    return rows, [row["record"] for row in bad]


BAD_CELLS = {
    "text-that-is-no-utf8": texts(b"a", b"\xff", b"c"),
    "text-in-a-list": pa.ListArray.from_arrays([0, 1, 2, 3], texts(b"a", b"\xff", b"c")),
    "time-of-day-after-midnight": pa.array([1, 2**31 - 1, 3], pa.int32()).cast(pa.time32("ms")),
    "time-before-the-year-1": times(1, -(2**50), 3),
    "time-after-9999": times(1, 2**62, 3),
    "time-in-a-struct": pa.StructArray.from_arrays([times(1, 2**62, 3)], ["at"]),
    "day-after-9999": pa.array([1, 2**31 - 1, 3], pa.int32()).cast(pa.date32()),
}


@pytest.mark.parametrize("kind", BAD_CELLS)
def test_cell_that_is_no_value_sets_its_row_aside_alone(tmp_path: Path, kind: str) -> None:
    source = tmp_path / "source.parquet"
    pq.write_table(pa.table({"n": ROWS, "cell": BAD_CELLS[kind]}), source)

    rows, quarantined = append(tmp_path, source, ReadStepParquet())

    assert [row["n"] for row in rows] == [1, 3]
    assert quarantined == [2]


def test_event_time_that_no_watermark_can_be_sets_its_row_aside(tmp_path: Path) -> None:
    source = tmp_path / "source.parquet"
    pq.write_table(pa.table({"n": ROWS, "event_time": times(1, 253_402_300_800_000, 3)}), source)

    assert append(tmp_path, source, ReadStepParquet())[1] == [2]


def test_int96_of_other_centuries_keeps_its_day(tmp_path: Path) -> None:
    source = tmp_path / "source.parquet"
    instants = [-30_000_000_000_000, -1, 99_999_999_999_999]
    pq.write_table(pa.table({"at": times(*instants)}), source, use_deprecated_int96_timestamps=True)

    rows, _ = append(tmp_path, source, ReadStepParquet())

    assert [int(row["at"].timestamp() * 1000) for row in rows] == instants


@pytest.mark.parametrize("names", [("city", "City"), ("\u00e9", "e\u0301"), ("a.b", "a"), ("offset\0", "offset ")])
def test_names_that_look_alike_are_two_columns(tmp_path: Path, names: tuple[str, str]) -> None:
    source = tmp_path / "source.parquet"
    pq.write_table(pa.table([pa.array([1]), pa.array([2])], names=list(names)), source)

    rows, _ = append(tmp_path, source, ReadStepParquet())

    assert [rows[0][name] for name in names] == [1, 2]


# --- JSON ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "record",
    [
        b'{"n": 1',
        b'{"n": 1}{"n": 2}',
        b'{"n": 01}',
        b'{"n": NaN}',
        b'{"t": "\\ud800"}',
        b'{"t": "\xff"}',
        b"\xff\xfe{\x00}\x00",
        b'{"t": ' + b"[" * 20_000 + b"]" * 20_000 + b"}",
        b'["n", 1]',
        b"null",
    ],
    ids=["cut", "two", "octal", "nan", "half-a-pair", "latin-1", "utf-16", "deep", "array", "null"],
)
def test_line_that_is_no_json_object_is_set_aside_alone(tmp_path: Path, record: bytes) -> None:
    source = tmp_path / "source.ndjson"
    source.write_bytes(b'\xef\xbb\xbf{"n": 1}\n\n' + record + b'\r\n{"n": 3, "t": "\\u0000"}')
    read = ReadStepNdJson(schema=schema(n=DataTypeInt64(), t=DataTypeString()))

    rows, quarantined = append(tmp_path, source, read)

    assert [(row["n"], row["t"]) for row in rows] == [(1, None), (3, "\0")]
    assert quarantined == [2]


# --- Files --------------------------------------------------------------------------------------------------------


def fetch(folder: Path, pattern: str, **more: Any) -> Fetched:
    step = FetchStepFilesGlob(path=str(folder / pattern), **more)
    found = asyncio.run(LocalSourceReader().fetch(step, state=state_of("0"), now=NOW, folder=folder))
    assert isinstance(found, Fetched)
    return found


def state_of(name: str) -> SourceState:
    return SourceState(source_name="default", kind="odf/etag", value=name)


def test_files_of_one_name_are_rejected_as_one_would_never_be_taken(tmp_path: Path) -> None:
    for year in ("2020", "2021"):
        (tmp_path / year).mkdir()
        (tmp_path / year / "rows.csv").write_text(year)

    with pytest.raises(MalformedError, match="files of different names"):
        fetch(tmp_path, "*/*.csv")
    assert [*tmp_path.glob("taken-*")] == []


def test_file_whose_name_is_no_text_is_told(tmp_path: Path) -> None:
    os.close(os.open(bytes(tmp_path) + b"/\xff.csv", os.O_CREAT | os.O_WRONLY))

    with pytest.raises(MalformedError, match="names in UTF-8"):
        fetch(tmp_path, "*.csv")


def test_pushed_file_whose_name_is_no_text_is_taken(tmp_path: Path) -> None:
    manifest, home = tmp_path / "rows.yaml", tmp_path / "home"
    manifest.write_text(
        "{kind: DatasetSnapshot, version: 1, content: {name: rows, kind: Root, metadata: [{kind: AddPushSource,"
        " sourceName: default, read: {kind: NdJson, schema: {fields: [{name: n, type: Int64}]}}, merge: {kind: Append}"
        "}]}}"
    )
    source = os.fsdecode(bytes(tmp_path) + b"/\xff.ndjson")
    Path(source).write_bytes(b'{"n": 1}\n{"n": 2}\nno row\n')
    assert run_command(home, "add", manifest).returncode == 0

    assert run_command(home, "ingest", "rows", source).returncode == 0

    [row] = json.loads(run_command(home, "quarantine", "show", "rows", "-o", "json").stdout)
    assert (row["original"], row["source"]) == ("no row", f"{tmp_path}/\\xff.ndjson")


def test_pipe_that_matches_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "1.csv")

    with pytest.raises(MalformedError, match="a plain file"):
        fetch(tmp_path, "*.csv")


def test_name_of_a_time_before_1970_means_that_time(tmp_path: Path) -> None:
    (tmp_path / "1969-12-31 23-59-59.5.csv").touch()
    named = EventTimeSourceFromPath(pattern=r"(.*)\.csv", timestamp_format="%Y-%m-%d %H-%M-%S.%f")

    assert str(fetch(tmp_path, "*.csv", event_time=named).event_time) == "1969-12-31T23:59:59.500Z"


# --- Texts --------------------------------------------------------------------------------------------------------


def test_empty_text_is_no_decimal_that_has_only_a_fraction() -> None:
    values, is_plain = convert_plain(pa.array(["", "0.5", None]), pa.decimal128(10, 10))

    assert values.to_pylist() == [None, None, None]
    assert is_plain.to_pylist() == [False, False, True]


@pytest.mark.spark
def test_time_that_its_offset_moves_out_of_all_years_sets_its_row_aside() -> None:
    texts = ["0001-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01", "2020-01-01T00:00:00+00:01", "never"]
    read = ReadStepNdJson(schema=schema(event_time=DataTypeTimestamp()))

    found = RootDataset(read).ingest("".join(f'{{"event_time": "{text}"}}\n' for text in texts))

    assert [row["record"] for row in quarantined(found)] == [1, 2, 4]
    assert found.offset_interval is not None
    assert found.offset_interval.row_count == 1
