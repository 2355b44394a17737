"""What ``new`` writes passes ``add``, and takes in its file without a row in quarantine (ING-24)."""

import datetime as dt
import json
from pathlib import Path

import openpyxl
import pytest

from support.command_line import EXAMPLE, run_command

pytestmark = pytest.mark.usefixtures("light_engines")

MESSY = """Datum;Filiale;Artikel-Nr;Menge;Umsatz;Höhe;Bemerkung;Stand
1.2.2024;Köln;00123;12;1.234,50;0,5;;31.01.2024 08:15
2.2.2024;Köln;00124;NA;99,00;1,25;"Lieferung ""spät"";\nohne Schein";1.2.2024 9:00
2.2.2024;München;00123;3;17,25;;zurück;1.2.2024 10:30
14.2.2024;Zürich;00125;;1.100,00;2,0;;13.2.2024 23:59
2024-02-15;Düsseldorf;00123;-8;-5,10;0,75;n/a;14.2.2024 12:00
"""


def draft_and_add(home: Path, source: Path) -> str:
    manifest = home.with_name(f"{home.name}.yaml")
    drafted = run_command(home, "new", "made", "--from", source, "-o", manifest)
    assert drafted.returncode == 0, drafted.stderr
    assert f"next: odf-node add {manifest}" in drafted.stderr
    added = run_command(home, "add", manifest)
    assert added.returncode == 0, added.stderr
    return manifest.read_text()


def take_in(home: Path, *words: str | Path) -> dict[str, object]:
    done = run_command(home, *words, "-o", "json", has_engine=True)
    assert done.returncode == 0, done.stderr
    (report,) = json.loads(done.stdout)
    return report


def tail(home: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in run_command(home, "tail", "made", "-o", "ndjson").stdout.splitlines()]


@pytest.mark.spark
def test_messy_file_is_taken_in_as_it_is(tmp_path: Path) -> None:
    source = tmp_path / "umsatz.csv"
    source.write_bytes(MESSY.encode("latin-1"))
    home = tmp_path / "home"
    draft_and_add(home, source)
    report = take_in(home, "ingest", "made", source)
    assert (report["newRows"], report["quarantinedRows"]) == (5, 0)
    rows = {(row["Datum"], row["Artikel-Nr"]): row for row in tail(home)}
    first = rows["2024-02-01", "00123"]
    assert (first["Filiale"], first["Menge"], first["Umsatz"], first["Höhe"]) == ("Köln", 12, "1234.50", "0.50")
    assert first["Stand"] == "2024-01-31T08:15:00Z"
    second = rows["2024-02-02", "00124"]
    assert (second["Menge"], second["Bemerkung"]) == (None, 'Lieferung "spät";\nohne Schein')
    assert rows["2024-02-02", "00123"]["Höhe"] is None
    assert rows["2024-02-15", "00123"]["Umsatz"] == "-5.10"
    # A later record that does not fit is set aside, and ends nothing.
    source.write_bytes(f"{MESSY}16.2.2024;Köln;00126;2;ca. 7,00;1,0;;15.2.2024 9:00\n".encode("latin-1"))
    report = take_in(home, "ingest", "made", source)
    assert (report["newRows"], report["quarantinedRows"]) == (0, 1)


@pytest.mark.spark
@pytest.mark.parametrize("day", ["2020-10-01", "2020-11-01"])
def test_published_file_is_fetched_and_taken_in(tmp_path: Path, day: str) -> None:
    home = tmp_path / "home"
    text = draft_and_add(home, EXAMPLE / f"data/countries-aggregated-{day}.csv.gz")
    assert "primaryKey: [Date, Country]" in text
    report = take_in(home, "pull", "made")
    assert report["newRows"] > 40_000
    assert report["quarantinedRows"] == 0


def test_file_without_key_is_appended_by_the_engine_without_java(tmp_path: Path) -> None:
    source = tmp_path / "log.csv"
    source.write_text("event_time,host,ms\n2024-01-01T00:00:00Z,a,1.5\n2024-01-01T00:00:00Z,a,2.25\n")
    home = tmp_path / "home"
    text = draft_and_add(home, source)
    assert "merge: {kind: Append}" in text
    done = run_command(home, "ingest", "made", source, "-o", "json")
    assert done.returncode == 0, done.stderr
    (report,) = json.loads(done.stdout)
    assert (report["newRows"], report["quarantinedRows"]) == (2, 0)


def test_workbook_is_taken_in_by_what_was_guessed_of_it(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    for row in (["Sales", None], ["Day", "offset"], *([dt.date(2024, 1, 1), 1.5] for _ in range(2))):
        book.worksheets[0].append(row)
    source = tmp_path / "sales.xlsx"
    book.save(source)
    home = tmp_path / "home"
    assert "reader: {kind: Excel, header: 2}" in draft_and_add(home, source)
    done = run_command(home, "ingest", "made", source, "-o", "json")
    assert done.returncode == 0, done.stderr
    (report,) = json.loads(done.stdout)
    assert (report["newRows"], report["quarantinedRows"]) == (2, 0)
    assert [(row["Day"], row["_offset"]) for row in tail(home)] == [("2024-01-01", "1.5")] * 2


def test_bytes_that_an_encoding_does_not_have_spoil_their_record_alone(tmp_path: Path) -> None:
    """ING-21."""
    manifest = tmp_path / "m.yaml"
    manifest.write_text(
        "kind: DatasetSnapshot\nversion: 1\ncontent:\n  name: made\n  kind: Root\n  metadata:\n"
        "    - kind: AddPushSource\n      sourceName: default\n"
        "      read: {kind: Csv, encoding: Windows-1252, ddlSchema: [event_time TIMESTAMP, city STRING]}\n"
        "      merge: {kind: Append}\n"
    )
    source = tmp_path / "a.csv"
    source.write_bytes(b"2024-01-01T00:00:00Z,Z\xfcrich\n2024-01-02T00:00:00Z,b\x81d\n2024-01-03T00:00:00Z,\x80\n")
    home = tmp_path / "home"
    assert run_command(home, "add", manifest).returncode == 0
    done = run_command(home, "ingest", "made", source, "-o", "json")
    assert done.returncode == 0, done.stderr
    (report,) = json.loads(done.stdout)
    assert (report["newRows"], report["quarantinedRows"]) == (2, 1)
    assert [row["city"] for row in tail(home)] == ["Zürich", "€"]


def test_template_passes_as_it_is(tmp_path: Path) -> None:
    home = tmp_path / "home"
    written = run_command(home, "new", "orders.2024")
    assert written.returncode == 0
    added = run_command(home, "add", "-", given=written.stdout.encode())
    assert added.returncode == 0, added.stderr
    assert added.stdout.startswith("added root dataset orders.2024 ")


def test_nothing_that_is_there_is_overwritten(tmp_path: Path) -> None:
    there = tmp_path / "there.yaml"
    there.write_text("mine")
    done = run_command(tmp_path / "home", "new", "a", "-o", there)
    assert done.returncode == 2
    assert "is there already" in done.stderr
    assert there.read_text() == "mine"
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["a b"], 7, "letters and digits"),
        (["a", "--from", "no.csv"], 3, "no such file"),
        (["a", "--from", "in/*.csv"], 3, "files by a pattern are for 'fetch: {kind: FilesGlob"),
        (["a", "--encoding", "utf8"], 2, "--encoding is of the data that --from names"),
        (["a", "--from", "ftp://x/y"], 8, "URL scheme"),
    ],
)
def test_what_cannot_be_drafted_is_said_in_a_line(tmp_path: Path, words: list[str], code: int, message: str) -> None:
    done = run_command(tmp_path / "home", "new", *words)
    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr
