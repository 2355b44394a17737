"""No part of a file is left out without a word: it is a column, is counted, or stands in quarantine (ING-49)."""

import json
import zipfile
from pathlib import Path

import openpyxl
import pytest

from support.command_line import run_command

pytestmark = pytest.mark.usefixtures("light_engines")


def draft_and_ingest(folder: Path, source: Path) -> tuple[dict[str, object], list[dict[str, object]]]:
    home = folder / "home"
    done = run_command(home, "new", "made", "--from", source, "-o", folder / "m.yaml")
    assert done.returncode == 0, done.stderr
    assert run_command(home, "add", folder / "m.yaml").returncode == 0
    words = ("ingest", "made", source)
    done = run_command(home, *words, "-o", "json")
    assert done.returncode == 0, done.stderr
    (report,) = json.loads(done.stdout)
    rows = run_command(home, "tail", "made", "-n", "50", "-o", "ndjson").stdout.splitlines()
    return report, [json.loads(row) for row in rows]


def test_id_of_a_feature_is_a_column(tmp_path: Path) -> None:
    features = [
        {
            "type": "Feature",
            "id": f"q{n}",
            "properties": {"mag": n / 2},
            "geometry": {"type": "Point", "coordinates": [n, n]},
        }
        for n in range(12)
    ]
    source = tmp_path / "quakes.geojson"
    source.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    report, rows = draft_and_ingest(tmp_path, source)
    assert report["addedRows"] == 12
    assert {row["id"] for row in rows} == {f"q{n}" for n in range(12)}


def test_property_called_id_is_not_replaced_by_that_of_its_feature(tmp_path: Path) -> None:
    lines = [{"type": "Feature", "id": f"f{n}", "properties": {"id": f"p{n}"}, "geometry": None} for n in range(12)]
    source = tmp_path / "a.geojson"
    source.write_text(json.dumps({"type": "FeatureCollection", "features": lines}))
    _, rows = draft_and_ingest(tmp_path, source)
    assert {row["id"] for row in rows} == {f"p{n}" for n in range(12)}


def write_csv(path: Path) -> Path:
    lands = "".join(f"land {n},{n * 10}\n" for n in range(12))
    path = path.with_suffix(".csv")
    path.write_text(f"land,cases\n{lands}Total,660\n")
    return path


def write_workbook(path: Path) -> Path:
    book, path = openpyxl.Workbook(), path.with_suffix(".xlsx")
    for row in [("no", "cases"), *((n, n * 10) for n in range(12)), ("Total", 660)]:
        book.active.append(row)
    book.save(path)
    return path


@pytest.mark.parametrize("write", [write_csv, write_workbook], ids=["csv", "excel"])
def test_total_below_a_table_is_counted_and_no_row(tmp_path: Path, write) -> None:
    report, rows = draft_and_ingest(tmp_path, write(tmp_path / "cases"))
    assert (report["addedRows"], report["leftOutRows"], report["quarantinedRows"]) == (12, 1, 0)
    assert 660 not in {row["cases"] for row in rows}


def test_fields_that_no_column_names_are_counted(tmp_path: Path) -> None:
    manifest = (
        "kind: DatasetSnapshot\nversion: 1\ncontent:\n  name: made\n  kind: Root\n  metadata:\n"
        "    - {kind: AddPushSource, sourceName: default, read: {kind: NdJson, ddlSchema: [n BIGINT]}, merge: "
        "{kind: Append}}\n"
    )
    (tmp_path / "m.yaml").write_text(manifest)
    home, source = tmp_path / "home", tmp_path / "a.ndjson"
    assert run_command(home, "add", tmp_path / "m.yaml").returncode == 0
    lines = [{"n": n, "unit": "kg", **({"note": "late"} if n % 2 else {"note": None})} for n in range(20)]
    lines.append({"n": 20, **{f"x{n}": n for n in range(200)}})
    source.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    for words in (["--dry-run"], []):
        done = run_command(home, "ingest", "made", source, *words)
        assert "made: in no column: 'unit' of 20 records, 'note' of 10 records, " in done.stdout
    (report,) = json.loads(run_command(home, "ingest", "made", source, "-o", "json").stdout)
    assert (report["ignoredFields"]["unit"], report["ignoredFields"][""], len(report["ignoredFields"])) == (
        20,
        102,
        101,
    )


PULLED = """kind: DatasetSnapshot
version: 1
content:
  name: made
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch: {{kind: Url, url: "file://{source}"}}
      prepare: [{{kind: Decompress, format: Zip{more}}}]
      read: {{kind: Csv, header: true, ddlSchema: [n BIGINT]}}
      merge: {{kind: Append}}
"""


def pack(path: Path) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("a.csv", "b.csv", "in/notes.txt"):
            archive.writestr(name, "n\n1\n")
    return path


def test_further_files_of_an_archive_are_named_ing_49(tmp_path: Path) -> None:
    source = pack(tmp_path / "a.zip")
    home = tmp_path / "home"
    (tmp_path / "m.yaml").write_text(PULLED.format(source=source, more=""))
    assert run_command(home, "add", tmp_path / "m.yaml").returncode == 0
    reported = "made: not read: 'b.csv', 'in/notes.txt' of the archive; subPath names the file that is read"
    assert reported in run_command(home, "pull", "made", "--dry-run").stdout
    (report,) = json.loads(run_command(home, "pull", "made", "-o", "json").stdout)
    assert (report["addedRows"], report["unreadFiles"]) == (1, ["b.csv", "in/notes.txt"])


def test_file_of_an_archive_that_the_manifest_names_is_all_that_is_meant_ing_49(tmp_path: Path) -> None:
    source = pack(tmp_path / "a.zip")
    home = tmp_path / "home"
    (tmp_path / "m.yaml").write_text(PULLED.format(source=source, more=", subPath: b.csv"))
    assert run_command(home, "add", tmp_path / "m.yaml").returncode == 0
    (report,) = json.loads(run_command(home, "pull", "made", "-o", "json").stdout)
    assert (report["addedRows"], report["unreadFiles"]) == (1, [])


def test_keys_that_are_there_twice_go_to_quarantine_ing_49(tmp_path: Path) -> None:
    source = tmp_path / "a.ndjson"
    good = "".join(f'{{"n": {n}, "unit": "kg", "unit": "kg"}}\n' for n in range(12))
    source.write_text('{"n": 12, "unit": "kg", "unit": "g"}\n' + good + '{"n": 13, "o": {"x": 1, "x": 2}}\n')
    home = tmp_path / "home"
    drafted = run_command(home, "new", "made", "--from", source, "-o", tmp_path / "m.yaml")
    assert drafted.returncode == 0, drafted.stderr
    written = " ".join((tmp_path / "m.yaml").read_text().split())
    assert "2 records cannot be read so" in written
    assert "kind: NdJson" in written
    assert "the key 'unit' is there twice" in written
    assert run_command(home, "add", tmp_path / "m.yaml").returncode == 0
    tried = run_command(home, "ingest", "made", source, "--dry-run")
    assert "the key 'unit' is there twice, with different values" in tried.stdout + tried.stderr
    (report,) = json.loads(run_command(home, "ingest", "made", source, "-o", "json").stdout)
    assert (report["addedRows"], report["quarantinedRows"]) == (12, 2)
