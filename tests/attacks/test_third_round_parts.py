"""Parts that meet what others chose: frames at the port of Flight, rows of older schemas, texts in files of bad rows.

Source: FLIGHT-14 in ``spec/plug-ins/flight-sql.md``, SCHEMA-5 in ``spec/manifests.md``, SINK-2 in
``spec/quarantine.md``, NOTICE-1 and NOTICE-5 in ``spec/notices.md``.
"""

import csv
import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from odf_corrections.sinks.local import File
from odf_engines.reading.evolved_rows import in_columns
from odf_flight.brought_messages import (
    DATA,
    END_STREAM,
    MAX_STREAMS,
    PADDED,
    PREFACE,
    RST_STREAM,
    BroughtMessages,
)
from odf_node.exchange.notices import NOTES_FILE, read_registry
from odf_node.ports.notices import find_address_problem
from odf_node.ports.sinks import BadRows, SinkContext, Told
from odf_protocol.did import DatasetId

HEADERS, SETTINGS, CONTINUATION, UNKNOWN = 0x1, 0x4, 0x9, 0xAA
PLAIN, PACKED = b"\0\0\0\0\3abc", b"\1\0\0\0\3abc"


def frame(kind: int, content: bytes, *, stream: int = 1, flags: int = 0) -> bytes:
    return len(content).to_bytes(3) + bytes([kind, flags]) + stream.to_bytes(4) + content


def padded(content: bytes, padding: bytes) -> bytes:
    return frame(DATA, bytes([len(padding)]) + content + padding, flags=PADDED)


FRAMES = {
    "no-preface": b"GET / HTTP/1.1\r\n\r\n",
    "preface-that-ends-otherwise": PREFACE[:-1] + b"x",
    "packed-at-once": PREFACE + frame(DATA, PACKED),
    "packed-behind-a-plain-one": PREFACE + frame(DATA, PLAIN + PACKED),
    "packed-behind-an-empty-one": PREFACE + frame(DATA, bytes(5) + PACKED),
    "packed-behind-padding-that-looks-plain": PREFACE + padded(PACKED, PLAIN),
    "packed-behind-full-padding": PREFACE + padded(PLAIN, b"\0" * 255) + frame(DATA, PACKED),
    "packed-in-a-frame-that-is-padded-with-nothing": PREFACE + padded(PACKED, b""),
    "packed-with-its-first-byte-alone": PREFACE + frame(DATA, b"\1"),
    "packed-with-another-flag": PREFACE + frame(DATA, b"\x80\0\0\0\3abc"),
    "packed-on-another-stream-in-between": PREFACE + frame(DATA, PLAIN[:6]) + frame(DATA, PACKED, stream=3),
    "packed-on-a-stream-with-the-reserved-bit": PREFACE + frame(DATA, PLAIN) + frame(DATA, PACKED, stream=2**31 + 1),
    "packed-behind-a-message-in-two-frames": PREFACE + frame(DATA, PLAIN[:6]) + frame(DATA, PLAIN[6:] + PACKED),
    "packed-behind-a-head-in-five-frames": PREFACE
    + b"".join(frame(DATA, bytes([each])) for each in b"\0\0\0\0\1")
    + frame(DATA, b"x" + PACKED),
    "packed-behind-empty-frames": PREFACE + frame(DATA, b"") * 100 + frame(DATA, PACKED),
    "packed-behind-frames-that-nobody-knows": PREFACE + frame(UNKNOWN, PLAIN) + frame(DATA, PACKED),
    "packed-behind-headers-that-look-like-data": PREFACE + frame(HEADERS, frame(DATA, PLAIN)) + frame(DATA, PACKED),
    "packed-behind-settings": PREFACE + frame(SETTINGS, bytes(6), stream=0) + frame(DATA, PACKED),
    "packed-behind-a-continuation": PREFACE + frame(CONTINUATION, PLAIN[:3]) + frame(DATA, PACKED),
    "packed-behind-a-stream-that-ended": PREFACE + frame(DATA, PLAIN, flags=END_STREAM) + frame(DATA, PACKED, stream=3),
    "packed-behind-a-stream-that-was-reset": PREFACE
    + frame(DATA, PLAIN[:6])
    + frame(RST_STREAM, bytes(4))
    + frame(DATA, PACKED, stream=3),
    "more-streams-than-any": PREFACE
    + b"".join(frame(DATA, b"\0", stream=2 * number + 1) for number in range(MAX_STREAMS + 1)),
}


@pytest.mark.parametrize("chunk_bytes", [1, 7, 1 << 20])
@pytest.mark.parametrize("lie", FRAMES)
def test_frames_that_hide_a_packed_message_end_the_connection_however_they_are_cut(lie: str, chunk_bytes: int) -> None:
    """FLIGHT-14"""
    brought, raw = BroughtMessages(), FRAMES[lie]
    found = [brought.find_fault(raw[start : start + chunk_bytes]) for start in range(0, len(raw), chunk_bytes)]
    assert any(found)


@pytest.mark.parametrize("chunk_bytes", [1, 7, 1 << 20])
def test_frames_that_only_look_packed_go_on(chunk_bytes: int) -> None:
    """FLIGHT-14: otherwise anything that ends every connection would pass."""
    raw = PREFACE + frame(HEADERS, PACKED) + frame(UNKNOWN, PACKED) + padded(PLAIN, PACKED) + frame(DATA, PLAIN * 3)
    brought = BroughtMessages()
    found = [brought.find_fault(raw[start : start + chunk_bytes]) for start in range(0, len(raw), chunk_bytes)]
    assert not any(found)


OLD = pa.struct([("a", pa.int64())])
NEW = pa.struct([("b", pa.string()), ("a", pa.int64())])
GHOSTS = pa.StructArray.from_arrays([pa.array([1, 2, 3])], fields=list(OLD), mask=pa.array([False, True, False]))
LISTS = pa.ListArray.from_arrays(pa.array([0, 2, 3, 3]), GHOSTS, mask=pa.array([False, True, False]))
EVOLVED: dict[str, tuple[pa.Array, pa.DataType]] = {
    "values-below-a-null-struct": (GHOSTS, NEW),
    "a-part-of-them": (GHOSTS.slice(1), NEW),
    "values-below-a-null-list": (LISTS, pa.list_(NEW)),
    "a-part-of-the-lists": (LISTS.slice(1), pa.list_(NEW)),
    "no-rows": (LISTS.slice(3), pa.list_(NEW)),
    "all-null": (pa.nulls(3, OLD), NEW),
    "all-null-lists": (pa.nulls(3, pa.list_(OLD)), pa.list_(NEW)),
    "lists-of-lists": (
        pa.array([[[{"a": 1}], None, []], None, []], pa.list_(pa.list_(OLD))).slice(0, 2),
        pa.list_(pa.list_(NEW)),
    ),
}


def with_gaps(value: Any) -> Any:
    """What a value is in the later schema, by itself."""
    if isinstance(value, list):
        return [with_gaps(each) for each in value]
    return {"b": None, "a": value["a"]} if isinstance(value, dict) else value


@pytest.mark.parametrize("case", EVOLVED)
def test_what_nulls_and_parts_hide_in_memory_is_no_value_of_a_later_schema(case: str) -> None:
    """SCHEMA-5"""
    values, kind = EVOLVED[case]
    rows = in_columns(pa.record_batch([values], ["v"]), pa.schema([("new", pa.int64()), ("v", kind)]))
    rows.validate(full=True)
    assert rows.column("v").to_pylist() == [with_gaps(each) for each in values.to_pylist()]
    assert rows.column("new").null_count == len(values)


TEXTS = {
    "formula": "=1+1",
    "plus": "+1+cmd|' /C calc'!A0",
    "minus": "-2+3",
    "at": "@SUM(A1)",
    "tab": "\t=1+1",
    "line-end-and-formula": "\r\n=1+1",
    "quote-and-line-end": '"\n=1+1,"',
    "lone-surrogate": "=\ud800",
    "forged-line": 'x"\nforged,row,of,another,dataset',
    "zero": "a\0b",
}


@pytest.mark.parametrize("lie", TEXTS)
def test_text_of_a_bad_row_is_one_cell_that_no_spreadsheet_computes(tmp_path: Path, lie: str) -> None:
    """SINK-2"""
    row = {"row": "1.1", "original": TEXTS[lie], "errors": [{"value": TEXTS[lie], "column": TEXTS[lie]}]}
    entry = BadRows(
        node="n", dataset="d", dataset_id="i", entry=1, source=TEXTS[lie], set_aside_at="t", row_count=1, why=None,
        iter_rows=lambda: iter([row]),
    )  # fmt: skip
    sink = File(File.Parameters(name="bad", format="csv"), SinkContext(folder=tmp_path / "sinks" / "one"))

    assert sink.deliver(entry)[0] is Told.DONE

    lines = list(csv.reader(io.StringIO((tmp_path / "sinks" / "one" / "bad").read_text())))
    assert len(lines) == 2
    assert len(lines[0]) == len(lines[1])
    assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n")) for cell in lines[1])


ADDRESSES = {
    "file": "file:///etc/passwd",
    "ftp": "ftp://receiver.example/",
    "no-scheme": "receiver.example/hook",
    "no-host": "http:///hook",
    "port-of-nothing": "http://receiver.example:0/",
    "port-beyond-all": "http://receiver.example:99999/",
    "port-that-is-none": "http://receiver.example:x/",
    "user": "http://user@receiver.example/",
    "user-that-is-empty": "http://@receiver.example/",
    "password": "http://user:secret@receiver.example/",
    "fragment": "http://receiver.example/#x",
    "open-bracket": "http://[::1/",
    "nothing": "",
}


@pytest.mark.parametrize("lie", ADDRESSES)
def test_address_that_no_notice_can_go_to_is_rejected_without_being_shown(lie: str) -> None:
    """NOTICE-1"""
    problem = find_address_problem(ADDRESSES[lie])
    assert problem is not None
    assert "secret" not in problem
    assert "receiver" not in problem


def write_notes(folder: Path, number: str) -> None:
    identity = DatasetId(bytes(32))
    heads = f'{{"{identity}": [{number}, "f1620{"00" * 32}"]}}'
    (folder / NOTES_FILE).write_text(f'[{{"url": "http://x/", "datasets": "*", "heads": {heads}}}]')


@pytest.mark.parametrize("number", ["Infinity", "-Infinity", "NaN", "1e999", "9" * 5000, '"x"', "null", "[]"])
def test_notes_of_notices_with_a_number_that_is_none_are_no_notes(tmp_path: Path, number: str) -> None:
    """NOTICE-5: the daemon starts all the same."""
    write_notes(tmp_path, "1")
    assert len(read_registry(tmp_path).places) == 1
    write_notes(tmp_path, number)
    assert read_registry(tmp_path).places == {}
