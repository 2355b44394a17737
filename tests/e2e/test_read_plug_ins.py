"""Readers of further formats, by real commands: taken apart, converted, set aside, fixed, rejected whole (READ)."""

import datetime as dt
from pathlib import Path

import fastavro
import openpyxl
import pytest

from odf_engines.arrow.engine import ArrowEngine
from odf_engines.contract import Limits, ReaderCall
from odf_engines.errors import EngineFailureError, LimitExceededError
from odf_engines.plug_in_names import READERS
from odf_protocol.events import DataTypeString, ReadStepNdJson
from support.command_line import list_kept
from support.ingests import RootDataset, quarantined, rows_of, schema
from support.nodes import RealNode
from support.plug_in_packages import installed_package

pytestmark = pytest.mark.usefixtures("light_engines")

MANIFEST = """
kind: DatasetSnapshot
version: 1
content:
  name: weather
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read: {read}
      merge: {{kind: Append}}
    - kind: SetAttachments
      attachments:
        kind: Embedded
        items:
          - path: odf-node/ingest.yaml
            content: |
              largestBadShare: 0.8
              reader: {reader}
"""
READ = (
    '{kind: NdJson, encoding: iso-8859-1, dateFormat: "%d.%m.%Y",'
    ' ddlSchema: ["event_time DATE", "place STRING", "celsius DOUBLE"]}'
)
FIXED = "{kind: FixedWidth, columns: {event_time: 1-10, place: 12-17, celsius: 19-23}}"
LINES = "01.02.2020 Zürich  1.5\n02.02.2020 Genève   x\n03.02.2020\n04.02.2020 Chur   -12.5\n"
XML = '{kind: XmlRows, row: days/day, columns: {event_time: "@on"}}'
DOCUMENT = """<days><day on="01.02.2020"><place>Zürich</place><celsius>1.5</celsius></day>
<day on="02.02.2020"><place>Genève</place><celsius>x</celsius></day>
<day on="03.02.2020"><place>a</place><place>b</place></day>
<day on="04.02.2020"><place>Chur</place><celsius>-12.5</celsius></day></days>"""


def manifest(folder: Path, reader: str, read: str = READ) -> str:
    path = folder / "weather.yaml"
    path.write_text(MANIFEST.format(reader=reader, read=read))
    return str(path)


@pytest.mark.spark
@pytest.mark.parametrize(("reader", "text"), [(FIXED, LINES), (XML, DOCUMENT)], ids=["fixed-width", "xml"])
def test_file_of_a_further_format_goes_in_with_its_errors_told_and_fixed(
    tmp_path: Path, reader: str, text: str
) -> None:
    node = RealNode(tmp_path / "home", has_engine=True)
    node.must("add", manifest(tmp_path, reader))
    (tmp_path / "file").write_text(text, encoding="iso-8859-1")
    node.must("ingest", "weather", str(tmp_path / "file"))
    rows = node.must("tail", "weather", "-o", "json").json()
    assert [(row["event_time"], row["place"], row["celsius"]) for row in rows] == [
        ("2020-02-01", "Zürich", 1.5),
        ("2020-02-04", "Chur", -12.5),
    ]
    unread, broken = node.must("quarantine", "show", "weather", "-o", "json").json()
    assert (unread["line"], unread["stage"], unread["errors"][0]["column"]) == (2, "convert", "celsius")
    assert unread["columns"] == {"event_time": "02.02.2020", "place": "Genève", "celsius": "x"}
    (error,) = broken["errors"]
    name = reader.removeprefix("{kind: ").partition(",")[0]
    assert (broken["line"], broken["stage"], error["plug_in"], error["code"]) == (3, "read", name, "broken-record")
    assert "03.02.2020" in broken["original"]
    node.must("quarantine", "fix", "weather", unread["row"], "--set", "celsius='2.5'")
    node.must("quarantine", "resend", "weather", unread["row"])
    newest = node.must("tail", "weather", "-n", "1", "-o", "json").json()[0]
    assert (newest["event_time"], newest["place"], newest["celsius"]) == ("2020-02-02", "Genève", 2.5)


def test_document_that_defines_entities_is_rejected_whole_and_changes_nothing(tmp_path: Path) -> None:
    node = RealNode(tmp_path / "home")
    node.must("add", manifest(tmp_path, XML))
    (tmp_path / "file").write_text('<!DOCTYPE days [<!ENTITY a "aaaa">]><days><day on="&a;"/></days>')
    before = list_kept(node.home)
    ran = node.run("ingest", "weather", str(tmp_path / "file"))
    assert (ran.code, "reader XmlRows: it has a document type" in ran.err) == (7, True), ran.err
    assert list_kept(node.home) == before


TYPED = '{kind: NdJson, ddlSchema: ["event_time DATE", "place STRING", "celsius DOUBLE"]}'


@pytest.mark.parametrize("kind", ["Excel", "Avro"])
def test_workbook_and_avro_file_go_in_and_a_hostile_one_changes_nothing(kind: str, tmp_path: Path) -> None:
    """In the sandbox, where the libraries of these readers have to be."""
    node = RealNode(tmp_path / "home", has_engine=True)
    node.must("add", manifest(tmp_path, f"{{kind: {kind}, columns: {{place: Place}}}}", TYPED))
    path = tmp_path / "file"
    day = dt.date(2024, 5, 1)
    if kind == "Excel":
        book = openpyxl.Workbook()
        for row in (["event_time", "Place", "celsius"], [day, "Bern", 1.5], [day, "Chur", "cold"]):
            book.active.append(row)
        book.save(path)
    else:
        types = {"event_time": {"type": "int", "logicalType": "date"}, "Place": "string", "celsius": "string"}
        fields = [{"name": name, "type": each} for name, each in types.items()]
        rows = [{"event_time": day, "Place": "Bern", "celsius": "1.5"},
                {"event_time": day, "Place": "Chur", "celsius": "cold"}]  # fmt: skip
        with path.open("wb") as file:
            fastavro.writer(file, {"type": "record", "name": "Row", "fields": fields}, rows, codec="deflate")
    node.must("ingest", "weather", str(path))
    (row,) = node.must("tail", "weather", "-o", "json").json()
    assert (row["event_time"], row["place"], row["celsius"]) == ("2024-05-01", "Bern", 1.5)
    (bad,) = node.must("quarantine", "show", "weather", "-o", "json").json()
    assert (bad["stage"], bad["columns"]["celsius"]) == ("convert", "cold")
    assert '"Chur"' in bad["original"]
    before = list_kept(node.home)
    path.write_bytes(path.read_bytes()[:-20])
    ran = node.run("ingest", "weather", str(path))
    assert (ran.code, f"reader {kind}: " in ran.err) == (7, True), ran.err
    assert list_kept(node.home) == before


@pytest.mark.parametrize(
    ("reader", "read", "place", "stated"),
    [
        ("{kind: FixedWith, columns: {}}", READ, "reader.kind", "did you mean 'FixedWidth'?"),
        ("{kind: Orc}", READ, "reader.kind", "a reader that is installed here (Avro, Excel, FixedWidth, XmlRows)"),
        ("{kind: FixedWidth, colums: {}}", READ, "reader.colums", "did you mean 'columns'?"),
        ("{kind: FixedWidth, columns: {palce: 1-2}}", READ, "reader.columns", "did you mean 'place'?"),
        (FIXED, "{kind: Csv, header: true}", "reader.kind", "the read step has to be NdJson with a schema"),
        (FIXED, "{kind: NdJson}", "reader.kind", "NdJson without a schema"),
        ("[]", READ, "reader", "a map with the kind of a reader"),
    ],
)
def test_reader_that_cannot_be_followed_is_rejected_by_add(
    tmp_path: Path, reader: str, read: str, place: str, stated: str
) -> None:
    node = RealNode(tmp_path / "home")
    ran = node.run("add", manifest(tmp_path, reader, read))
    assert ran.code == 7, ran.out
    assert place in ran.err
    assert stated in ran.err
    assert list_kept(node.home)["datasets"] == ()


PLUG_INS = """
import os, time
from dataclasses import dataclass
from odf_engines.readers.contract import RawRecord, Reader


class Lines(Reader):
    @dataclass(frozen=True)
    class Parameters:
        pass

    def iter_records(self, file):
        for line in file:
            yield RawRecord(line.strip())

    def take_apart(self, raw):
        if raw == b"look":
            open("/etc/shadow")
        if raw == b"die":
            os._exit(3)
        if raw == b"hang":
            time.sleep(600)
        return {"a": raw.decode()}
"""


def test_reader_of_another_package_runs_in_the_sandbox_and_is_blamed_by_its_name(tmp_path: Path) -> None:
    points = {"Lines": "Lines", "XmlRows": "Lines"}
    with installed_package(tmp_path / "site", "odd_reader", PLUG_INS, "odf_readers", points):
        place = READERS.find_place("Lines")
        assert place is not None
        assert READERS.find_place("XmlRows") == ("odf_quality.readers.xml_rows", "XmlRows")
        call = ReaderCall(name="Lines", module=place[0], attribute=place[1])
        with ArrowEngine().open(tmp_path, Limits(wall_s=6.0)) as arrow:
            dataset = RootDataset(ReadStepNdJson(schema=schema(a=DataTypeString())), session=arrow)
            response = dataset.ingest("x\nlook\ny\n", reader=call)
            assert [row["a"] for row in rows_of(response.data_path)] == ["x", "y"]
            (row,) = quarantined(response)
            assert (row["record"], row["original"], row["errors"][0]["plug_in"]) == (2, "look", "Lines")
            with pytest.raises(EngineFailureError, match="reader Lines"):
                dataset.ingest("die\n", reader=call)
            with pytest.raises(LimitExceededError, match="reader Lines"):
                dataset.ingest("hang\n", reader=call, limits=Limits(wall_s=6.0))
