"""First manifests of files that are no plain text: workbooks, XML, Avro, Parquet (ING-24)."""

import asyncio
import datetime as dt
import io
import json
import zipfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from odf_drafts.drafting import Drafting
from odf_drafts.samples import SampleReader
from odf_engines.errors import InvalidSourceError
from odf_engines.readers.contract import BrokenFileError
from odf_engines.sampling.process import _read_answer
from odf_node.errors import UsageError
from odf_protocol.errors import MalformedError, UnsupportedError
from odf_quality.readers.elements import plan_elements
from odf_quality.readers.workbooks import plan_workbook
from unit.test_shapefiles import shape_parts, zipped


def draft(path: Path, content: bytes, encoding: str | None = None) -> dict[str, dict[str, Any]]:
    """Draft from a file; return the events by kind, and what is marked as ``doubts``."""
    path.write_bytes(content)
    text = asyncio.run(Drafting(SampleReader()).draft_from("a.b", str(path), encoding=encoding)).text
    events = {event["kind"]: event for event in yaml.safe_load(text)["content"]["metadata"]}
    return {**events, "doubts": {line.strip("# ?"): {} for line in text.splitlines() if "# ? " in line}}


def types_of(source: dict[str, Any]) -> dict[str, Any]:
    found = {field["name"]: field["type"]["inner"] for field in source["read"]["schema"]["fields"]}
    return {name: kind if isinstance(kind, str) else kind["kind"] for name, kind in found.items()}


def rules_of(events: dict[str, dict[str, Any]]) -> dict[str, Any]:
    (item,) = events["SetAttachments"]["attachments"]["items"]
    rules: dict[str, Any] = yaml.safe_load(item["content"])
    return rules


def workbook(**sheets: list[list[Any]]) -> bytes:
    book = openpyxl.Workbook()
    book.remove(book.active)
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


SALES = [
    ["Sales of January"],
    [],
    ["Day", "Shop", "Item", "Price", "offset", None, "Shop Nr"],
    *([dt.date(2024, 1, day), "Bonn", f"00{day}", 1.25 * day, day, "?" if day == 2 else None, 7] for day in (1, 2, 3)),
]


def test_rows_of_a_workbook_that_cannot_be_read_are_counted_with_the_reason_of_the_first(tmp_path: Path) -> None:
    rows = [[n, f"=A{n}*2"] for n in range(2, 5)]
    found = draft(tmp_path / "a.xlsx", workbook(Sums=[["id", "double"], *rows, [5, 10]]))
    (stated,) = [each for each in found["doubts"] if "3 records cannot be read so" in each]
    assert "the first: the cell of double has a formula" in stated


def test_total_below_a_sheet_leaves_the_types_and_the_key_alone(tmp_path: Path) -> None:
    rows = [[n, dt.date(2026, 1, 1), 1.5] for n in range(1, 6)]
    found = draft(tmp_path / "a.xlsx", workbook(Sums=[["Order no", "day", "amount"], *rows, ["Total", None, 7.5]]))
    assert types_of(found["AddPushSource"])["Order no"] == "String"
    assert rules_of(found)["converters"] == [
        {"kind": "LeaveOut", "column": "Order no", "values": ["Total"]},
        {"kind": "Cast", "column": "Order no", "type": "BIGINT"},
    ]
    assert found["AddPushSource"]["merge"]["primaryKey"] == ["Order no"]
    assert any("begins with 'Total' and is taken for a total" in each for each in found["doubts"])


def test_workbook_is_read_from_the_row_with_names_of_the_first_sheet_with_rows(tmp_path: Path) -> None:
    events = draft(tmp_path / "a.xlsx", workbook(Notes=[["made by hand"]], Data=SALES, More=[["a"], [1]]))
    assert types_of(events["AddPushSource"]) == {
        "Day": "Date", "Shop": "String", "Item": "String", "Price": "Decimal", "offset": "Int64", "Shop Nr": "Int64"
    }  # fmt: skip
    assert events["AddPushSource"]["merge"] == {"kind": "Snapshot", "primaryKey": ["Item"]}
    assert events["SetVocab"]["eventTimeColumn"] == "Day"
    assert rules_of(events)["reader"] == {"kind": "Excel", "sheet": "Data", "header": 3}
    assert rules_of(events)["converters"] == [{"kind": "Rename", "columns": {"offset": "_offset"}}]
    for doubt in ("the workbook has other sheets too: 'Notes', 'More'", "row 3 is taken", "are left out: F"):
        assert any(doubt in each for each in events["doubts"]), events["doubts"]


def test_plain_workbook_is_doubted_in_nothing_but_its_merge(tmp_path: Path) -> None:
    events = draft(
        tmp_path / "a.xlsx", workbook(Data=[["id", "at"], [1, dt.date(2024, 1, 1)], [2, dt.date(2024, 1, 2)]])
    )
    assert rules_of(events) == {"largestRetractedShare": 0.2, "reader": {"kind": "Excel"}}
    assert len(events["doubts"]) == 2  # the strategy, and that other columns would do as a key


def test_names_of_a_sheet_that_are_there_twice_are_left_out() -> None:
    plan = plan_workbook(io.BytesIO(workbook(Data=[["id", "x", "x", 2024.0], [1, 2, 3, 4]])))
    assert plan.names == ("id", "2024")
    assert plan.doubts == ("columns without a name, or with one that is there twice, are left out: B (x), C (x)",)


def test_errors_in_cells_are_counted_as_what_goes_to_quarantine(tmp_path: Path) -> None:
    events = draft(tmp_path / "a.xlsx", workbook(Data=[["id", "x"], [1, "=1/0"], [2, 5], [3, 6]]))
    assert any("1 record cannot be read so, and would go to quarantine" in each for each in events["doubts"])


CATALOG = """<?xml version="1.0" encoding="ISO-8859-1"?>
<c:catalog xmlns:c="x"><by>me</by><items>
<item id="1"><name>Küche</name><seller name="A"/><day>2024-01-01</day><tag>x</tag><tag>y</tag></item>
<item id="2"><name>B</name><seller name="C"/><day>2024-01-02</day></item></items></c:catalog>"""


def test_elements_that_repeat_are_rows_and_what_is_in_them_columns(tmp_path: Path) -> None:
    events = draft(tmp_path / "a.xml", CATALOG.encode("latin-1"))
    assert types_of(events["AddPushSource"]) == {
        "id": "Int64",
        "name": "String",
        "seller_name": "String",
        "day": "Date",
    }
    assert events["AddPushSource"]["read"]["encoding"] == "ISO-8859-1"
    assert rules_of(events)["reader"] == {
        "kind": "XmlRows",
        "row": "c:catalog/items/item",
        "columns": {"id": "@id", "seller_name": "seller/@name"},
    }
    assert any("several times are left out: tag" in each for each in events["doubts"])


def test_document_that_the_sample_cuts_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    rows = "".join(f"<r><id>{number}</id><t>{'x' * 1000}</t></r>" for number in range(5000))
    events = draft(tmp_path / "a.xml", f"<all>{rows}</all>".encode())
    assert types_of(events["AddPushSource"]) == {"id": "Int64", "t": "String"}


def test_fields_of_avro_keep_the_types_that_they_have(tmp_path: Path) -> None:
    fields: list[tuple[str, Any, Any]] = [
        ("code", "string", "17"),
        ("n", ["null", "long"], None),
        ("at", {"type": "long", "logicalType": "timestamp-millis"}, dt.datetime(2024, 1, 1, tzinfo=dt.UTC)),
        ("p", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, Decimal("1.10")),
        ("tags", {"type": "array", "items": "string"}, ["a"]),
    ]
    schema = {"type": "record", "name": "r", "fields": [{"name": name, "type": kind} for name, kind, _ in fields]}
    file = io.BytesIO()
    fastavro.writer(file, fastavro.parse_schema(schema), [{name: value for name, _, value in fields}])
    events = draft(tmp_path / "a.avro", file.getvalue())
    types = {"code": "String", "n": "Int64", "at": "Timestamp", "p": "Decimal", "tags": "String"}
    assert types_of(events["AddPushSource"]) == types
    assert rules_of(events) == {"reader": {"kind": "Avro"}}


def test_parquet_says_its_columns_itself_and_gets_a_key(tmp_path: Path) -> None:
    at = pa.array([0, 1], pa.timestamp("ns", "Europe/Berlin"))
    pq.write_table(pa.table({"l": [[1], [2]], "id": [7, 8], "at": at}), tmp_path / "in.parquet")
    content = (tmp_path / "in.parquet").read_bytes()
    events = draft(tmp_path / "a.bin", content)
    assert events["AddPushSource"]["read"] == {"kind": "Parquet"}
    assert events["AddPushSource"]["merge"]["primaryKey"] == ["id"]
    assert events["SetVocab"]["eventTimeColumn"] == "at"
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("README.txt", "read me")
        archive.writestr("b.parquet", content)
    assert draft(tmp_path / "a.zip", packed.getvalue())["SetPollingSource"]["prepare"] == [
        {"kind": "Decompress", "format": "Zip", "subPath": "b.parquet"}
    ]


def no_workbook() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("[Content_Types].xml", "")
        archive.writestr("xl/worksheets/sheet1.xml", b" ")
    return file.getvalue()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (no_workbook, "no element found"),
        (lambda: workbook(Data=[["id", "x"]]), "no sheet has a row of names with a row of values below it"),
        (lambda: b"Obj\x01\0\0", "is it an avro file"),
        (lambda: b"PAR1" + b"\xff" * 100 + b"PAR1", "not a readable Parquet file"),
        (lambda: b'<!DOCTYPE a [<!ENTITY b "c">]><a><r><x>&b;</x></r><r><x>1</x></r></a>', "document type"),
        (lambda: b"<a>" * 200_000, "nested too deeply"),
        (lambda: b"<a>" + b"".join(b"<e%d/>" % number for number in range(20_000)), "too many kinds"),
        (lambda: b"<a><b>1</b></a>", "no element repeats"),
        (lambda: b"<a><b><c>1</c></b></a", "no element repeats"),
        (lambda: b"<a><b><c>1</c></b></b>", "not XML"),
        (lambda: b"<!DOCTYPE html><html></html>", "a web page"),
    ],
)
def test_file_that_is_hostile_or_no_table_is_rejected_with_the_reason(
    tmp_path: Path, content: Any, message: str
) -> None:
    with pytest.raises(MalformedError, match=message):
        draft(tmp_path / "a", content())
    assert [each.name for each in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize(("entry", "message"), [("content.xml", "OpenDocument"), ("xl/workbook.bin", "binary")])
def test_archive_that_is_no_data_is_called_by_its_name(tmp_path: Path, entry: str, message: str) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(entry, "x")
    with pytest.raises(UnsupportedError, match=message):
        draft(tmp_path / "a.zip", packed.getvalue())


PROJECTED = b'PROJCS["ETRS89 / UTM zone 32N",GEOGCS["ETRS89"'


def test_columns_of_a_shapefile_are_those_of_its_table_and_the_geometry(tmp_path: Path) -> None:
    zipped(tmp_path / "two.zip", {**shape_parts(has_null=False), "prj": PROJECTED})
    source = zipped(tmp_path / "two.zip", shape_parts(), stem="data/[old]")
    events = draft(source, source.read_bytes())
    read = events["AddPushSource"]["read"]
    assert (read["kind"], read["subPath"]) == ("EsriShapefile", "data/[[]old].shp")
    assert types_of(events["AddPushSource"]) == {
        "name": "String", "people": "Int64", "share": "Float64", "since": "Date", "geometry": "String"
    }  # fmt: skip
    assert any("other Shapefiles too: 'data/cities.shp'" in each for each in events["doubts"])
    assert not any("ETRS89" in each for each in events["doubts"])
    assert events["SetVocab"]["eventTimeColumn"] == "since"


def test_coordinates_that_are_no_degrees_are_doubted_and_shapes_alone_are_rejected(tmp_path: Path) -> None:
    source = zipped(tmp_path / "a.zip", {**shape_parts(has_null=False), "prj": PROJECTED})
    events = draft(source, source.read_bytes())
    assert any("'ETRS89 / UTM zone 32N', and are not converted" in each for each in events["doubts"])
    with pytest.raises(UnsupportedError, match=r"a zip of it with the \.dbf"):
        draft(tmp_path / "a.shp", shape_parts()["shp"])
    broken = zipped(tmp_path / "b.zip", {"shp": shape_parts()["shp"]})
    with pytest.raises(MalformedError, match=r"expected a Shapefile, found .*has no \.dbf beside it"):
        draft(broken, broken.read_bytes())


def test_encoding_of_what_is_no_text_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--encoding is of texts"):
        draft(tmp_path / "a.avro", b"Obj\x01", encoding="utf-8")


def test_largest_number_of_repetitions_is_a_row_and_others_are_named() -> None:
    document = b"<a><x i='1'/><x i='2'/><y><z>1</z></y><y><z>2</z></y><y><z>3</z></y></a>"
    plan = plan_elements(io.BytesIO(document))
    assert plan.parameters == {"row": "a/y"}
    assert plan.doubts == ("rows are the elements a/y; these repeat as well: a/x",)
    with pytest.raises(BrokenFileError):
        plan_elements(io.BytesIO(b"<a/>"))


@pytest.mark.parametrize(
    "line",
    [
        b"[]",
        b"{}",
        b"null",
        b'{"names":["a"],"types":{},"parameters":{},"doubts":[],"records":[["1","2"]],"is_whole":true,"broken":0}',
        b'{"names":["a"],"types":{},"parameters":{},"doubts":[],"records":[[1]],"is_whole":true,"broken":0}',
    ],
)
def test_answer_that_makes_no_sense_is_not_believed(line: bytes) -> None:
    with pytest.raises(InvalidSourceError, match="no answer that makes sense"):
        _read_answer(json.loads(line), "a")
