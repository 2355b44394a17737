# ruff: noqa: E501 -- dumped lines are compared as they are
"""The annotated dump covers every byte once, names what it is, and survives bytes that are no block."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odf_protocol import annotate
from odf_protocol.annotate import annotate_block
from odf_protocol.block import encode_block
from odf_protocol.events import SetInfo
from odf_protocol.multihash import Multihash
from odf_protocol.timestamp import Timestamp
from support.events import events

BLOCKS = sorted((Path(__file__).parents[1] / "data" / "kamu" / "datasets").glob("*/blocks/*"))
NOON = Timestamp.parse("2050-01-01T12:00:00Z")


def info_block(version: int = 3) -> bytes:
    event = SetInfo(description="foo")
    return encode_block(event, system_time=NOON, prev_block_hash=None, sequence_number=0, version=version)


def test_dump_of_a_small_block_explains_it():
    assert [line.rstrip() for note in annotate_block(info_block()) for line in note.lines()] == [
        "     0  14000000                          root → Manifest at 20",
        "     4  000000000000                      padding",
        "    10  0a0018000c0008000400              vtable of Manifest: 10 bytes, table 24: kind at 12, version at 8, content at 4",
        "    20  0a000000                          Manifest: its vtable is 10 bytes before",
        "    24  14000000                          Manifest.content → bytes at 44",
        "    28  03000000                          Manifest.version: 3",
        "    32  0000400000000000                  Manifest.kind: 0x400000",
        "    40  00000000                          padding",
        "    44  48000000                          Manifest.content: length 72",
        "    48  14000000                          root → MetadataBlock at 68",
        "    52  0000                              padding",
        "    54  0e001e000c00000000000b000400      vtable of MetadataBlock: 14 bytes, table 30: system_time at 12, event type at 11, event at 4",
        "    68  0e000000                          MetadataBlock: its vtable is 14 bytes before",
        "    72  20000000                          MetadataBlock.event → SetInfo at 104",
        "    76  000000                            padding",
        "    79  08                                MetadataBlock.event type 8: SetInfo",
        "    80  0208000001000000c0a8000000000000  MetadataBlock.system_time: year 2050, day 1, 43200 s, 0 ns = 2050-01-01T12:00:00Z",
        "    96  0000                              padding",
        "    98  060008000400                      vtable of SetInfo: 6 bytes, table 8: description at 4",
        "   104  06000000                          SetInfo: its vtable is 6 bytes before",
        "   108  04000000                          SetInfo.description → text at 112",
        "   112  03000000                          SetInfo.description: length 3",
        "   116  666f6f00                          SetInfo.description: 'foo' and a zero",
    ]


def test_version_2_puts_the_time_elsewhere():
    meanings = [note.meaning for note in annotate_block(info_block(version=2))]
    assert "Manifest.version: 2" in meanings
    assert any("table 26: system_time at 10" in meaning for meaning in meanings)


@pytest.mark.parametrize("path", BLOCKS, ids=lambda path: f"{path.parts[-3]}-{path.name[-8:]}")
def test_every_byte_of_a_foreign_block_has_one_meaning(path):
    raw = path.read_bytes()
    notes = annotate_block(raw)
    assert b"".join(note.data for note in notes) == raw
    assert [note.meaning for note in notes if "visited" in note.meaning or "malformed" in note.meaning] == []
    starts = [note.position for note in notes]
    assert starts == sorted(set(starts))


@given(events())
def test_every_byte_of_every_event_has_one_meaning(event):
    raw = encode_block(event, system_time=NOON, prev_block_hash=Multihash.of_sha3_256(b""), sequence_number=1)
    notes = annotate_block(raw)
    assert b"".join(note.data for note in notes) == raw
    assert not any("visited" in note.meaning or "malformed" in note.meaning for note in notes)


def test_fault_is_shown_where_it_is_and_the_rest_is_still_there():
    raw = bytearray(info_block())
    raw[79] = 77
    notes = annotate_block(bytes(raw))
    assert b"".join(note.data for note in notes) == bytes(raw)
    meanings = [(note.position, note.meaning) for note in notes]
    assert (79, "MetadataBlock.event type 77: no such member of MetadataEvent") in meanings
    fault = "malformed MetadataBlock.event at byte 79: expected a member of MetadataEvent from 1 to 13, found 77"
    assert (79, fault) in meanings
    assert (32, "Manifest.kind: 0x400000") in meanings
    assert (96, "not visited") in meanings


@pytest.mark.parametrize("raw", [b"", b"\0", bytes(4), b"\xff" * 64, b"<html>", info_block()[:60]], ids=repr)
def test_bytes_that_are_no_block_are_dumped_with_a_fault(raw):
    notes = annotate_block(raw)
    assert b"".join(note.data for note in notes) == raw
    assert any(note.meaning.startswith("malformed ") for note in notes)


@given(st.data())
def test_any_damage_is_dumped(data):
    raw = bytearray(BLOCKS[data.draw(st.integers(0, len(BLOCKS) - 1))].read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    notes = annotate_block(bytes(raw))
    assert b"".join(note.data for note in notes) == bytes(raw)
    assert all("\n" not in note.meaning for note in notes)


def test_block_over_the_limit_is_cut(monkeypatch):
    monkeypatch.setattr(annotate, "MAX_BLOCK_SIZE_BYTES", 100)
    assert annotate_block(info_block())[-1].meaning == "20 bytes more than a block may have, not shown"


def test_work_is_bounded_where_parts_are_shared(monkeypatch):
    monkeypatch.setattr(annotate, "MAX_NOTES", 10)
    assert any("at most 10 values, found more" in note.meaning for note in annotate_block(info_block()))
    monkeypatch.setattr(annotate, "MAX_TABLES", 1)
    assert any("at most 1 tables, found more" in note.meaning for note in annotate_block(info_block()))
