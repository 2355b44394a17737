"""Arrow reads whole files; the exact grammar reads the rest. Both must see the same records."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odf_engines.ingest import csv_records, plain_lines
from odf_engines.ingest.csv_grammar import CsvDialect, iter_records, iter_spans
from odf_engines.ingest.csv_records import read_csv
from odf_engines.records import ahead, record_writer

WIDTH = 3
DIALECTS = st.sampled_from([CsvDialect(b",", b'"', b"\\"), CsvDialect(b",", b'"', None), CsvDialect(b";", b"'", b"!")])
DIALECT_WITHOUT_QUOTES = CsvDialect(b",", b"\x01", None)  # none of the files below has this quote

# Mostly fields of the right number, with everything in them that can confuse a reader.
_CHUNKS = st.sampled_from(
    [b"a", b"1", b",", b";", b'"', b"'", b"\\", b"!", b" ", b"\xc3\xbc", b"\xff", b"\n", b"\r", b'""', b"\r\n",
     b"\0", b"\xef\xbb\xbf", b"\0end of file"]
)  # fmt: skip
_FIELD = st.lists(_CHUNKS, max_size=4).map(b"".join)
_LINE = st.lists(_FIELD, min_size=WIDTH, max_size=WIDTH).map(b",".join)
_END = st.sampled_from([b"\n", b"\r", b"\r\n", b"\n\r", b"\n\n"])
FILES = st.tuples(st.lists(st.one_of(_LINE, _FIELD), max_size=6), _END).map(lambda found: found[1].join(found[0]))


def expected_rows(data: bytes, dialect: CsvDialect) -> tuple[list[tuple[int, list[str | None]]], set[int], int]:
    good, broken, number = [], set(), 0
    for number, record in enumerate(iter_records(data, dialect), start=1):
        try:
            texts = [field.decode() or None for field in record.fields]
            data[record.start : record.end].decode()
        except UnicodeDecodeError:
            texts = []
        if len(texts) == WIDTH and record.is_closed:
            good.append((number, texts))
        else:
            broken.add(number)
    return good, broken, number


@settings(derandomize=True, max_examples=300, deadline=None)
@given(FILES, DIALECTS)
def test_every_record_is_read_or_broken_and_none_is_lost(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, dialect: CsvDialect
) -> None:
    folder = Path(tmp_path_factory.getbasetemp())
    source, target = folder / "source.csv", folder / "records.parquet"
    source.write_bytes(data)
    records = read_csv(source, target, dialect, ("a", "b", "c"), header=False)
    good, broken, count = expected_rows(data, dialect)
    rows = [(row["record"], [row["v0"], row["v1"], row["v2"]]) for row in pq.read_table(target).to_pylist()]
    assert rows == good
    assert set(records.broken) == broken
    assert records.record_count == count
    spans = list(iter_spans(data, dialect))
    # A record by itself, it would be a mark.
    alone = [each for each in iter_records(data, dialect) if not each.fields[0].startswith(b"\xef\xbb\xbf")]
    texts = [[field.decode("utf-8", "backslashreplace") or None for field in each.fields] for each in alone]
    raws = [data[each.start : each.end] for each in alone]
    # Those without quotes and of the right width are taken apart at once.
    assert [[each["value"] for each in row] for row in records.split(raws).to_pylist()] == texts
    assert [[each["value"] for each in records.split([raw])[0].as_py()] for raw in raws] == texts
    found = [(original.record, original.raw) for original in records.find_originals(range(1, count + 1))]
    assert found == [(number, data[start:end]) for number, (start, end) in enumerate(spans, start=1)]


@settings(derandomize=True, max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from([b"1,2,3", b"1,2,3", b"1,,3", b"1,2", b"a,2,3", b"1,2,3,4"]), max_size=80),
    st.integers(1, 4),
)
def test_records_have_their_numbers_however_blocks_and_threads_share_them(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], threads: int
) -> None:
    """A block is read while those before it are converted, and broken records of it are known before its good ones."""
    folder = Path(tmp_path_factory.getbasetemp())
    source, target = folder / "blocks.csv", folder / "blocks.parquet"
    source.write_bytes(b"\n".join(lines))
    numbers = pa.schema([(name, pa.int64()) for name in "abc"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_records, "MAX_RECORD_BYTES", 64)
        patch.setattr(record_writer, "ROW_GROUP_ROWS", 3)
        patch.setattr(ahead, "cores", lambda: threads)
        records = read_csv(source, target, CsvDialect(b",", b'"', None), ("a", "b", "c"), header=False, target=numbers)
    values = [[int(text) if text.isdigit() else None for text in line.split(b",")] for line in lines]
    good = [(n, values[n - 1]) for n, line in enumerate(lines, 1) if line.count(b",") == 2 and b"a" not in line]
    found = [(row["record"], [row["v0"], row["v1"], row["v2"]]) for row in pq.read_table(target).to_pylist()]
    assert found == good
    assert set(records.broken) == {n for n, line in enumerate(lines, 1) if line.count(b",") != 2}
    bad = [] if records.unconverted is None else pq.read_table(records.unconverted).column("record").to_pylist()
    assert bad == [n for n, line in enumerate(lines, 1) if b"a" in line]
    assert records.record_count == len(lines)


@settings(derandomize=True, max_examples=300, deadline=None)
@given(FILES, st.integers(1, 9), st.booleans(), st.integers(1, 4))
def test_lines_of_a_file_without_quotes_are_its_records(data: bytes, block_bytes: int, header: bool, step: int) -> None:
    dialect = DIALECT_WITHOUT_QUOTES
    first, position = (0, 3) if header and data.startswith(b"\xef\xbb\xbf") else (1, 0)
    spans = list(iter_spans(data[position:], dialect))
    numbers = range(first, first + len(spans), step)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plain_lines, "_BLOCK_BYTES", block_bytes)
        found = list(plain_lines.iter_lines(data, numbers, position=position, first=first))
    expected = []
    for number in numbers:
        start, end = (position + place for place in spans[number - first])
        expected.append((number, 1 + data.count(b"\n", 0, start), data[start:end]))
    assert [(each.record, each.line, each.raw) for each in found] == expected
