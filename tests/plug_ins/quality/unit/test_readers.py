"""Readers: files of further formats as records, and what in them is broken (READ)."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odf_engines.errors import InvalidSourceError
from odf_engines.ingest.plug_in_records import make_reader, read_with
from odf_engines.ingest_parts import ReaderCall
from odf_engines.plug_in_names import READERS
from odf_engines.readers.contract import BrokenFileError, BrokenRecordError, ParameterError, RawRecord, Reader
from odf_engines.records.converted_texts import RFC_3339
from odf_engines.records.source_records import SourceRecords
from odf_engines.validation.plug_ins import load_plug_in, parameter_schema
from odf_node.ingest.plug_in_page import write_page

REPOSITORY = Path(__file__).parents[4]
WIDE = {"columns": {"day": "1-10", "place": "12-15", "n": "17-19"}}


def call(kind: str | type, **parameters: object) -> ReaderCall:
    place = READERS.find_place(kind) if isinstance(kind, str) else (__name__, kind.__name__)
    assert place is not None
    name = kind if isinstance(kind, str) else kind.__name__
    return ReaderCall(name=name, module=place[0], attribute=place[1], parameters=json.dumps(parameters))


def read(folder: Path, data: bytes, reader: ReaderCall, *names: str) -> SourceRecords:
    (folder / "file").write_bytes(data)
    target = pa.schema([(name, pa.string()) for name in names])
    return read_with(reader, folder / "file", "the file", target, RFC_3339, folder / "records.parquet")


def taken(records: SourceRecords) -> dict[int, tuple]:
    rows = pq.read_table(records.path).drop_columns(["errors"]).to_pylist()
    return {row.pop("record"): tuple(row.values()) for row in rows}


def broken(records: SourceRecords) -> dict[int, list[str]]:
    return {number: [error.message for error in errors] for number, errors in records.broken.items()}


def test_columns_of_fixed_width_are_taken_out_of_lines(tmp_path: Path) -> None:
    data = "\ufeffa header\n\n2020-01-01 Bern  12\r\n2020-01-02 Züri    \n   \n2020-01-03\n2020-01-04 Chur 1234 more\n"
    found = read(
        tmp_path, data.encode() + b"2020-01-05 \xff     5\n", call("FixedWidth", **WIDE, skip=1), *["day", "place", "n"]
    )
    assert taken(found) == {
        1: ("2020-01-01", "Bern", "12"),
        2: ("2020-01-02", "Züri", None),
        4: ("2020-01-04", "Chur", "123"),
    }
    assert broken(found) == {
        3: ["expected at least 17 characters, found 10"],
        5: ["the record is not valid UTF-8"],
    }
    assert found.record_count == 5
    originals = [(each.record, each.line, each.raw) for each in found.find_originals([3, 5])]
    assert originals == [(3, 6, b"2020-01-03"), (5, 8, b"2020-01-05 \xff     5")]
    (columns,) = found.split([b"2020-01-01 Bern  12"]).to_pylist()
    assert columns == [
        {"name": "day", "value": "2020-01-01"},
        {"name": "place", "value": "Bern"},
        {"name": "n", "value": "12"},
    ]


XML = b"""\xef\xbb\xbf<?xml version="1.0" encoding="iso-8859-1"?>
<!-- <item/> is no row here -->
<shop><head><item>no row either</item></head>
 <list>
  <item id="1" note="a &gt; b"><name>Caf\xc3\xa9 &amp; <b>co</b></name><seller><city>Bern</city></seller></item>
  <item id='x>"y'/>
  <item id="3"><name><![CDATA[<b>]]></name></item >
  <item id="4"><name>a</name><name>b</name></item>
  <other id="5"/>
 </list></shop>
"""


def test_elements_of_a_document_are_rows(tmp_path: Path) -> None:
    places = {"id": "@id", "city": "seller/city"}
    found = read(tmp_path, XML, call("XmlRows", row="shop/list/item", columns=places), "id", "name", "city")
    assert taken(found) == {1: ("1", "Caf\u00e9 &", "Bern"), 2: ('x>"y', None, None), 3: ("3", "<b>", None)}
    assert broken(found) == {4: ["the element name is there twice"]}
    (second, fourth) = found.find_originals([2, 4])
    assert (second.line, second.raw) == (6, b"""<item id='x>"y'/>""")
    assert fourth.raw == b'<item id="4"><name>a</name><name>b</name></item>'


def test_rows_across_subsets_of_a_large_document_are_whole(tmp_path: Path) -> None:
    rows = b"".join(b"<r><n>%d</n><t>%s</t></r>" % (n, b"x" * (n % 700)) for n in range(2000))
    found = read(tmp_path, b"<a>" + rows + b"</a>", call("XmlRows", row="a/r"), "n", "t")
    assert [row[0] for row in taken(found).values()] == [str(n) for n in range(2000)]
    assert len(taken(found)[1400][1]) == 1399 % 700


BOMB = b'<!DOCTYPE a [<!ENTITY b "bb"><!ENTITY c "&b;&b;">]><a><r><n>&c;</n></r></a>'
REJECTED = [
    (BOMB, "document type"),
    (b'<!DOCTYPE a SYSTEM "file:///etc/passwd"><a><r/></a>', "document type"),
    (b"<a><r><n>1</n></r>", "not XML"),
    (b"<a><r><n>\xff</n></r></a>", "needs the encoding of its read step"),
    (b"<a>" * 101 + b"</a>" * 101, "nested deeper than 100"),
    (b"", "not XML"),
]


@pytest.mark.parametrize(("data", "stated"), REJECTED)
def test_document_that_cannot_be_trusted_is_rejected_whole(tmp_path: Path, data: bytes, stated: str) -> None:
    with pytest.raises(InvalidSourceError, match=f"reader XmlRows: .*{stated}"):
        read(tmp_path, data, call("XmlRows", row="a/r"), "n")


class Odd(Reader):
    """Misbehaves as lines tell it."""

    @dataclass(frozen=True, kw_only=True)
    class Parameters:
        pass

    def iter_records(self, file: BinaryIO) -> Iterator[RawRecord]:
        for line in file:
            if line == b"file\n":
                raise BrokenFileError("no file of mine")
            if line == b"crash\n":
                raise ZeroDivisionError
            yield RawRecord(line.strip())

    def take_apart(self, raw: bytes) -> Mapping[str, str | None]:
        match raw:
            case b"broken":
                raise BrokenRecordError("no record of mine")
            case b"raise":
                raise KeyError("k")
            case b"nothing":
                return None  # type: ignore[return-value]
            case b"number":
                return {"a": 1, "b": "unknown"}  # type: ignore[dict-item]
        return {"a": raw.decode()}


def test_what_a_reader_raises_about_a_record_is_that_records_fault(tmp_path: Path) -> None:
    found = read(tmp_path, b"x\nbroken\nraise\nnothing\nnumber\n", call(Odd), "a")
    assert taken(found) == {1: ("x",), 5: ("1",)}
    stated = [messages[0].split(":")[0] for messages in broken(found).values()]
    assert stated == ["no record of mine", "the reader failed", "the reader failed"]
    assert found.record_count == 5


@pytest.mark.parametrize(
    ("word", "stated"), [("file", "reader Odd: no file of mine"), ("crash", "reader Odd failed: Zero")]
)
def test_what_a_reader_raises_about_the_file_rejects_it(tmp_path: Path, word: str, stated: str) -> None:
    with pytest.raises(InvalidSourceError, match=stated):
        read(tmp_path, f"x\n{word}\n".encode(), call(Odd), "a")


WRONG = [
    ("FixedWidth", {"columns": {"b": "1-2"}}, "columns: expected columns of the read step (a)"),
    ("FixedWidth", {"columns": {"a": "2-1"}}, "columns: expected places such as 1-10, found a: 2-1"),
    ("FixedWidth", {"columns": {}}, "columns: expected a place for a"),
    ("FixedWidth", {"columns": {"a": "1-2"}, "skip": -1}, "skip: expected 0 or more"),
    ("XmlRows", {"row": "a//b"}, "row: expected names of elements"),
    ("XmlRows", {"row": "a", "columns": {"b": "c"}}, "columns: expected columns of the read step (a)"),
    ("XmlRows", {}, "row: expected the parameter"),
]


@pytest.mark.parametrize(("kind", "parameters", "stated"), WRONG)
def test_declaration_that_cannot_be_followed_is_rejected(kind: str, parameters: dict, stated: str) -> None:
    with pytest.raises(ParameterError, match="^" + re.escape(stated)):
        make_reader(call(kind, **parameters), ("a",))


def test_spec_names_every_reader_with_its_parameters() -> None:
    spec = (REPOSITORY / "spec" / "plug-ins" / "quality.md").read_text().partition("## Converters")[0]
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", spec, re.MULTILINE))
    assert rows.keys() == set(READERS.installed())
    for name, reported in rows.items():
        schema = parameter_schema(load_plug_in(Reader, name, *(READERS.find_place(name) or ("", ""))))
        assert set(re.findall(r"`(\w+)`", reported)) >= set(schema["properties"]), name


def test_page_about_plug_ins_says_what_they_say_of_themselves() -> None:
    page = (REPOSITORY / "spec" / "guides" / "plug-ins.md").read_text()
    assert page == write_page(), "python -m odf_node.ingest.plug_in_page > spec/guides/plug-ins.md"
