"""Readers of Excel workbooks and Avro files, and what a hostile file tries with them (READ-4 to READ-6)."""

import datetime as dt
import io
import json
import struct
import zipfile
import zlib
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import fastavro
import openpyxl
import pyarrow as pa
import pytest

from odf_engines.errors import InvalidSourceError
from plug_ins.quality.unit.test_readers import broken, call, read, taken

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
SHEET = "application/vnd.openxmlformats-officedocument.spreadsheetml"
PARTS = {
    "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    f'<Override PartName="/xl/workbook.xml" ContentType="{SHEET}.sheet.main+xml"/>'
    f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{SHEET}.worksheet+xml"/>'
    f'<Override PartName="/xl/sharedStrings.xml" ContentType="{SHEET}.sharedStrings+xml"/></Types>',
    "_rels/.rels": f'<Relationships xmlns="{PACKAGE}/relationships"><Relationship Id="r1" '
    f'Type="{RELATIONS}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
    "xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{RELATIONS}"><sheets>'
    '<sheet name="Data" sheetId="1" r:id="r1"/></sheets></workbook>',
    "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{PACKAGE}/relationships">'
    f'<Relationship Id="r1" Type="{RELATIONS}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>',
    "xl/sharedStrings.xml": f'<sst xmlns="{MAIN}"/>',
}
HEADER = '<row r="1"><c r="A1" t="str"><v>a</v></c><c r="B1" t="str"><v>b</v></c></row>'


def workbook(
    rows: str = "", *, header: str = HEADER, dimension: str = "", more: dict[str, bytes] | None = None
) -> bytes:
    sheet = f'<worksheet xmlns="{MAIN}">{dimension}<sheetData>{header}{rows}</sheetData></worksheet>'
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, content in {**PARTS, "xl/worksheets/sheet1.xml": sheet, **(more or {})}.items():
            archive.writestr(name, content)
    return file.getvalue()


def test_rows_of_a_sheet_are_read_with_the_values_that_people_see(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    book.create_sheet("Notes").append(["nothing"])
    sheet = book.worksheets[0]
    sheet.title = "Data"
    sheet.append(["a title over it"])
    sheet.append(["Day", "Place", None, "n", "is", "at"])
    at = dt.datetime.fromisoformat("2024-05-01T13:30:00")
    sheet.append([dt.date(2024, 5, 1), "Z\u00fcrich", "left out", 3, True, at])
    sheet.append([])
    sheet.append([dt.datetime.fromisoformat("2024-05-02"), None, None, 1.5, False, dt.time(7, 5)])
    sheet.append([None, "", None, 2.0])
    file = io.BytesIO()
    book.save(file)
    names = "day", "Place", "n", "is", "at"
    reader = call("Excel", sheet="Data", header=2, columns={"day": "Day"})
    found = read(tmp_path, file.getvalue(), reader, *names)
    assert taken(found) == {
        1: ("2024-05-01", "Z\u00fcrich", "3", "true", "2024-05-01T13:30:00"),
        2: ("2024-05-02", None, "1.5", "false", "07:05:00"),
        3: (None, None, "2", None, None),
    }
    assert [each.line for each in found.find_originals([1, 3])] == [3, 6]


def test_formulas_are_their_results_and_neither_errors_nor_missing_results_are_nothing(tmp_path: Path) -> None:
    rows = (
        '<row r="2"><c r="A2"><f>1+1</f><v>2</v></c><c r="B2" t="str"><f>WEBSERVICE("http://x/")</f><v>x</v></c></row>'
        '<row r="3"><c r="A3"><f>1+1</f></c><c r="B3"><v>1</v></c></row>'
        '<row r="4"><c r="A4" t="e"><v>#DIV/0!</v></c></row>'
    )
    found = read(tmp_path, workbook(rows), call("Excel"), "a", "b")
    assert taken(found) == {1: ("2", "x")}
    assert broken(found) == {
        2: ["the cell of a has a formula without its result: open the file where it was made, and save it again"],
        3: ["the cell of a has the error #DIV/0!"],
    }


def test_claims_about_dimensions_cost_nothing(tmp_path: Path) -> None:
    rows = '<row r="2"><c r="A2"><v>1</v></c></row><row r="1048576"><c r="XFD1048576"><v>9</v></c></row>'
    data = workbook(rows, dimension='<dimension ref="A1:XFD1048576"/>')
    assert taken(read(tmp_path, data, call("Excel"), "a", "b")) == {1: ("1", None)}
    far = workbook('<row r="4000000000"><c><v>1</v></c></row>')
    with pytest.raises(InvalidSourceError, match="more than 1,048,576 rows"):
        read(tmp_path, far, call("Excel"), "a")


def large(name: str, size: int) -> dict[str, bytes]:
    return {name: b"<a>" + b" " * size + b"</a>"}


LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 12))
BOMB = f'<!DOCTYPE worksheet [<!ENTITY l0 "lol">{LAUGHS}]><worksheet xmlns="{MAIN}"><sheetData>{HEADER}<row r="2">'
BOMB += '<c r="A2" t="str"><v>&l11;</v></c></row></sheetData></worksheet>'
OUTSIDE = f'<!DOCTYPE worksheet [<!ENTITY x SYSTEM "file:///etc/passwd">]><worksheet xmlns="{MAIN}"><sheetData>{HEADER}'
OUTSIDE += '<row r="2"><c r="A2" t="str"><v>&x;</v></c></row></sheetData></worksheet>'
BACK = '<row r="3"><c r="A3"><v>1</v></c></row><row r="2"><c r="A2"><v>2</v></c></row>'
OTHER = '<row r="1"><c r="A1" t="str"><v>c</v></c></row>'
# What takes long to make is made by the test that needs it: every process of a run reads this module.
HOSTILE_BOOKS: dict[str, tuple[bytes | Callable[[], bytes], str]] = {
    "no-zip": (b"PK nothing", "no Excel workbook"),
    "old-format": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "no Excel workbook"),
    "another-zip": (workbook(more={"[Content_Types].xml": b"<Types/>"}), "reader Excel"),
    "entity-bomb": (workbook(more={"xl/worksheets/sheet1.xml": BOMB.encode()}), "amplification factor"),
    "file-of-the-machine": (workbook(more={"xl/worksheets/sheet1.xml": OUTSIDE.encode()}), "undefined entity"),
    "bomb-in-shared-texts": (workbook(more={"xl/sharedStrings.xml": BOMB.encode()}), "amplification factor"),
    "row-that-goes-back": (workbook(BACK), "row 2 stands behind row 3"),
    "row-twice": (workbook(BACK.replace('"3"', '"2"')), "row 2 stands behind row 2"),
    "row-beyond-all-numbers": (workbook(BACK.replace('"3"', '"1e400"')), "no Excel workbook"),
    "no-such-column": (workbook(header=OTHER), "the name 'a' is not in row 1"),
    "column-twice": (workbook(header=HEADER.replace(">b<", ">a<")), "the name 'a' is twice in row 1"),
}  # fmt: skip


@pytest.mark.parametrize(("data", "stated"), HOSTILE_BOOKS.values(), ids=HOSTILE_BOOKS.keys())
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_workbook_that_cannot_be_trusted_is_rejected_whole(
    data: bytes | Callable[[], bytes], stated: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidSourceError, match=stated):
        read(tmp_path, data() if callable(data) else data, call("Excel"), "a")


def test_part_that_is_longer_than_its_directory_says_is_rejected(tmp_path: Path) -> None:
    data = bytearray(workbook('<row r="2"><c r="A2"><v>1</v></c></row>'))
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        size = archive.getinfo("xl/worksheets/sheet1.xml").file_size
    place = data.rindex(struct.pack("<I", size))  # in the directory, behind all parts
    data[place : place + 4] = struct.pack("<I", size // 2)
    with pytest.raises(InvalidSourceError, match="reader Excel"):
        read(tmp_path, bytes(data), call("Excel"), "a")


FIELDS = [
    {"name": "day", "type": {"type": "int", "logicalType": "date"}},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    {"name": "n", "type": ["null", "long"]},
    {"name": "f", "type": "double"},
    {"name": "d", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
    {"name": "b", "type": "boolean"},
    {"name": "k", "type": {"type": "enum", "name": "K", "symbols": ["X", "Y"]}},
    {"name": "again", "type": "K"},
    {"name": "list", "type": {"type": "array", "items": ["null", "string"]}},
    {"name": "raw", "type": "bytes"},
]
RECORD = {"type": "record", "name": "Row", "namespace": "org.example", "fields": FIELDS}


def avro(schema: object, blocks: list[tuple[int, bytes]], codec: str = "null", sync: bytes = b"s" * 16) -> bytes:
    """A file byte by byte, as a liar writes it."""
    text = schema if isinstance(schema, bytes) else json.dumps(schema).encode()
    entries = {"avro.schema": text, "avro.codec": codec.encode()}
    head = b"Obj\x01" + number(len(entries))
    for name, value in entries.items():
        head += number(len(name)) + name.encode() + number(len(value)) + value
    body = b"".join(number(count) + number(len(data)) + data + sync for count, data in blocks)
    return head + number(0) + b"s" * 16 + body


def number(value: int) -> bytes:
    left, found = (value << 1) ^ (value >> 63), bytearray()
    while left > 0x7F:
        found.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*found, left])


@pytest.mark.parametrize("codec", ["null", "deflate", "snappy", "zstandard"])
def test_records_of_an_avro_file_are_rows(codec: str, tmp_path: Path) -> None:
    at = dt.datetime(2024, 5, 1, 13, 30, 0, 5000, tzinfo=dt.UTC)
    row = {"day": dt.date(2024, 5, 1), "at": at, "n": None, "f": float("nan"), "d": Decimal("1.50"), "b": True,
           "k": "X", "again": "Y", "list": ["x", None], "raw": b"\xff"}  # fmt: skip
    rows = [row, {**row, "n": 2**62, "f": 0.1}]
    plain = io.BytesIO()
    fastavro.writer(plain, RECORD, rows, sync_marker=b"s" * 16)
    plain.seek(0)
    (block,) = fastavro.block_reader(plain)
    count, data = block.num_records, block.bytes_.getvalue()
    packed = {
        "null": data,
        "deflate": zlib.compress(data)[2:-4],
        "snappy": pa.compress(data, codec="snappy", asbytes=True) + zlib.crc32(data).to_bytes(4, "big"),
        "zstandard": pa.compress(data, codec="zstd", asbytes=True),
    }[codec]
    names = ["day", "at", "number", "f", "d", "b", "k", "again", "list", "raw"]
    found = read(tmp_path, avro(RECORD, [(count, packed)], codec), call("Avro", columns={"number": "n"}), *names)
    stated = "2024-05-01", "2024-05-01T13:30:00.005000+00:00"
    rest = "1.50", "true", "X", "Y", '["x", null]', "ff"
    assert taken(found) == {1: (*stated, None, "nan", *rest), 2: (*stated, str(2**62), "0.1", *rest)}
    assert broken(found) == {}


def record(*types: object, name: str = "R") -> dict:
    return {"type": "record", "name": name, "fields": [{"name": f"f{n}", "type": each} for n, each in enumerate(types)]}


def doubling(levels: int) -> dict:
    inner: object = record("null", "null", "int", name="T0")
    for level in range(1, levels):
        inner = record(inner, f"T{level - 1}", name=f"T{level}")
    return inner  # type: ignore[return-value]


def nested(levels: int) -> object:
    return "int" if levels == 0 else {"type": "array", "items": nested(levels - 1)}


LIST = record("int", ["null", "R"])
HIDDEN = {"type": "record", "name": "Outer", "fields": [
    {"name": "f0", "type": record("int", name="Node")},
    {"name": "f1", "type": record(["null", "Node"], name="a.Node")},
]}  # fmt: skip
PARSED = {**record("int"), "__fastavro_parsed__": True, "__named_schemas": {}}
ONE = record("int")
BEYOND = b"\xff\xff\xff\xff\x0f" + b"\x00" * 8
SNAPPY = pa.compress(b"\x02", codec="snappy", asbytes=True)
HOSTILE_AVRO: dict[str, tuple[bytes | Callable[[], bytes], str]] = {
    "nothing": (b"", "is it an avro file"),
    "cut-off-header": (avro(ONE, [])[:40], "is it an avro file"),
    "deeper-than-any-parser": (avro(b"[" * 1_000_000, []), "recursion depth"),
    "schema-that-doubles": (avro(doubling(15), [(1, b"\x02")]), "cannot be decoded"),
    "records-of-no-bytes": (avro(record("null"), [(2**40, b"")]), "1099511627776 records in fewer bytes"),
    "more-records-than-bytes": (avro(ONE, [(2**40, b"\x02")]), "1099511627776 records in fewer bytes"),
    "more-records-than-there-are": (avro(record("string"), [(2, b"\x02ab")]), "cannot be decoded|more than"),
    "fewer-records-than-there-are": (avro(ONE, [(1, b"\x02\x04")]), "more than the 1 records"),
    "negative-records": (avro(ONE, [(-1, b"\x02")]), "more than the -1 records"),
    "size-that-is-not-there": (avro(ONE, []) + number(1) + number(2**27), "Expected 134217728 bytes"),
    "other-mark": (avro(ONE, [(1, b"\x02")], sync=b"t" * 16), "sync marker"),
    "text-beyond-its-block": (avro(record("string"), [(1, number(2**40) + b"a")]), "cannot be decoded"),
    "no-text": (avro(record("string"), [(1, b"\x02\xff")]), "record 0 cannot be decoded"),
    "rubbish-packed": (avro(ONE, [(1, b"\xff\xff\xff")], "deflate"), "invalid block type"),
    "snappy-bomb": (avro(ONE, [(1, BEYOND)], "snappy"), "Corrupt snappy"),
    "wrong-checksum": (avro(ONE, [(1, SNAPPY + b"abcd")], "snappy"), "checksum"),
    "no-record": (avro("int", [(1, b"\x02")]), "no record"),
    "no-such-field": (avro({**ONE, "fields": [{"name": "other", "type": "int"}]}, []), "no field 'f0'"),
}  # fmt: skip


@pytest.mark.parametrize(("data", "stated"), HOSTILE_AVRO.values(), ids=HOSTILE_AVRO.keys())
def test_avro_file_that_cannot_be_trusted_is_rejected_whole(
    data: bytes | Callable[[], bytes], stated: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidSourceError, match=f"reader Avro: .*({stated})"):
        read(tmp_path, data() if callable(data) else data, call("Avro"), "f0")
