"""Times of a place: what its clocks show twice or never is told and not taken for another time (CONV-10)."""

import datetime as dt
import json
from pathlib import Path

import openpyxl
import pyarrow as pa
import pytest

from odf_engines.conversion.contract import ConverterContext
from odf_engines.validation.contract import ParameterError
from odf_quality.value_converters import Cast
from support.command_line import run_command

pytestmark = pytest.mark.usefixtures("light_engines")

TWICE, NEVER = "2024-10-27T02:30:00", "2024-03-31T02:30:00"


def cast(texts: list[str], **parameters: str) -> tuple[list[str | None], list[str]]:
    schema = pa.schema([pa.field("at", pa.string())])
    converter = Cast(Cast.Parameters(column="at", type="TIMESTAMP", **parameters), ConverterContext(schema=schema))
    done = converter.convert(pa.record_batch([pa.array(texts)], schema=schema))
    codes = [fault.code for fault in done.faults if len(fault.rows)]
    return [None if each is None else f"{each:%m-%d %H:%M}" for each in done.rows.column(0).to_pylist()], codes


def test_time_that_clocks_show_twice_or_never_is_bad_unless_a_rule_says_what_is_meant() -> None:
    berlin = {"zone": "Europe/Berlin"}
    assert cast([TWICE, NEVER], **berlin) == ([None, None], ["ambiguous-time", "missing-time"])
    assert cast([TWICE, NEVER], **berlin, ambiguous="Earlier", missing="Earlier")[0] == ["10-27 00:30", "03-31 00:30"]
    assert cast([TWICE, NEVER], **berlin, ambiguous="Later", missing="Later")[0] == ["10-27 01:30", "03-31 01:30"]
    # The edges of both hours, a text with an offset of its own, and the other half of the earth.
    edges = ["2024-10-27T01:59:59", "2024-10-27T03:00:00", "2024-03-31T01:59:59", "2024-03-31T03:00:00"]
    assert cast(edges, **berlin)[0] == ["10-26 23:59", "10-27 02:00", "03-31 00:59", "03-31 01:00"]
    assert cast([f"{TWICE}+01:00", f"{TWICE}Z"], **berlin)[0] == ["10-27 01:30", "10-27 02:30"]
    assert cast(["2024-04-07T02:30:00", "2024-10-06T02:30:00"], zone="Australia/Sydney")[0] == [None, None]
    assert cast([TWICE])[0] == ["10-27 02:30"]
    assert cast(["0001-01-01T00:00:00"], zone="Asia/Tokyo") == ([None], ["misfit"])


@pytest.mark.parametrize(
    ("parameters", "stated"),
    [
        ({"zone": "Europe/Berln"}, "zone"),
        ({"zone": "localtime"}, "zone"),
        ({"zone": "../../etc/passwd"}, "zone"),
        ({"zone": "/etc/localtime"}, "zone"),
        ({"zone": "Europe"}, "zone"),
        ({"zone": "right/Europe/Berlin"}, "zone"),
        ({"zone": "Europe/Berlin", "missing": "Latest"}, "missing"),
        ({"ambiguous": "Later"}, "ambiguous"),
    ],
)
def test_what_is_no_zone_or_rule_is_rejected(parameters: dict[str, str], stated: str) -> None:
    with pytest.raises(ParameterError, match=stated):
        cast([TWICE], **parameters)


MANIFEST = """kind: DatasetSnapshot
version: 1
content:
  name: meter
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read: {kind: %s, ddlSchema: [event_time STRING, n BIGINT]}
      merge: {kind: Append}
    - kind: SetAttachments
      attachments:
        kind: Embedded
        items:
          - path: odf-node/ingest.yaml
            content: |
              largestBadShare: 1
              %s
              converters:
                - {kind: Cast, column: event_time, type: TIMESTAMP, zone: Europe/Berlin}
"""
TIMES = ["2024-10-27T01:30:00", TWICE, "2024-10-27T03:30:00", NEVER]


def write_csv(path: Path) -> None:
    path.write_text("".join(f"{at},{n}\n" for n, at in enumerate(TIMES)))


def write_json(path: Path) -> None:
    path.write_text("".join(json.dumps({"event_time": at, "n": n}) + "\n" for n, at in enumerate(TIMES)))


def write_workbook(path: Path) -> None:
    book = openpyxl.Workbook()
    for row in [("event_time", "n"), *((dt.datetime.fromisoformat(at), n) for n, at in enumerate(TIMES))]:
        book.active.append(row)
    book.save(path)


@pytest.mark.parametrize(
    ("kind", "reader", "write"),
    [("Csv", "", write_csv), ("NdJson", "", write_json), ("NdJson", "reader: {kind: Excel}", write_workbook)],
    ids=["csv", "json", "excel"],
)
def test_local_times_of_every_reader_are_taken_alike_in_the_sandbox(tmp_path: Path, kind, reader, write) -> None:
    home = tmp_path / "home"
    (tmp_path / "m.yaml").write_text(MANIFEST % (kind, reader))
    assert run_command(home, "add", tmp_path / "m.yaml").returncode == 0
    write(tmp_path / "data.xlsx")
    done = run_command(home, "ingest", "meter", tmp_path / "data.xlsx")
    assert done.stdout.startswith("meter: 2 rows added, block "), done.stderr
    assert "clocks of Europe/Berlin show this time twice" in done.stdout
    assert "clocks of Europe/Berlin never show this time" in done.stdout
    rows = [json.loads(line) for line in run_command(home, "tail", "meter", "-o", "ndjson").stdout.splitlines()]
    assert [row["event_time"] for row in rows] == ["2024-10-26T23:30:00Z", "2024-10-27T02:30:00Z"]


def test_draft_asks_for_the_zone_by_name(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("at,n\n2024-10-27T02:30:00,1\n2024-10-27T02:31:00,2\n")
    text = run_command(tmp_path / "home", "new", "meter", "--from", tmp_path / "a.csv").stdout
    assert "zone: Europe/Berlin" in " ".join(text.replace("#", "").split())
