"""Shapefiles: records are read as GeoJSON features are, and bytes of strangers lead nowhere (ING-44)."""

import io
import json
import struct
import zipfile
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import shapefile

from odf_engines.errors import InvalidSourceError
from odf_engines.ingest.shapefile_features import write_features


def shape_parts(**changes: Any) -> dict[str, bytes]:
    files = {ending: io.BytesIO() for ending in ("shp", "shx", "dbf")}
    with shapefile.Writer(**files, encoding=changes.get("encoding", "utf-8"), shapeType=shapefile.POLYGON) as writer:
        writer.field("name", "C", 20)
        writer.field("people", "N", 12)
        writer.field("share", "N", 12, 3)
        writer.field("since", "D")
        writer.poly([[[0, 0], [0, 10], [10, 10], [10, 0], [0, 0]], [[2, 2], [4, 2], [4, 4], [2, 4], [2, 2]]])
        writer.record("Zürich", 415, 1.25, date(2020, 1, 2))
        if changes.get("has_null", True):
            writer.null()
            writer.record("", None, None, None)
    return {ending: file.getvalue() for ending, file in files.items()}


def line_parts() -> dict[str, bytes]:
    files = {ending: io.BytesIO() for ending in ("shp", "shx", "dbf")}
    with shapefile.Writer(**files, shapeType=shapefile.POLYLINE) as writer:
        writer.field("name", "C", 20)
        writer.field("people", "N", 12)
        writer.field("share", "N", 12, 3)
        for number, lines in enumerate(([[[0, 0], [1, 2]]], [[[0.5, 0], [1, 2]], [[5, 5], [6, 6.25]]])):
            writer.line(lines)
            writer.record(f"line {number}", number, 0.5)
    return {ending: file.getvalue() for ending, file in files.items()}


def zipped(path: Path, parts: dict[str, bytes], stem: str = "data/cities") -> Path:
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        for ending, content in parts.items():
            archive.writestr(f"{stem}.{ending}", content)
    return path


def features(folder: Path, source: Path, sub_path: str | None = None) -> list[Any]:
    lines = write_features(source, "cities.zip", sub_path, folder).read_text().splitlines()
    return [json.loads(line) if line.startswith("{") else line for line in lines]


def test_records_are_features_with_their_values(tmp_path: Path) -> None:
    first, second = features(tmp_path, zipped(tmp_path / "a.zip", shape_parts()))
    assert first["properties"] == {"name": "Zürich", "people": 415, "share": 1.25, "since": "2020-01-02"}
    ((outer, hole),) = first["geometry"]["coordinates"]
    assert (first["geometry"]["type"], outer[1], len(hole)) == ("MultiPolygon", [0, 10], 5)
    assert (second["geometry"], second["properties"]["people"]) == (None, None)


def test_texts_have_the_encoding_that_stands_beside(tmp_path: Path) -> None:
    parts = {**shape_parts(encoding="latin-1"), "cpg": b"ISO-8859-1\n"}
    assert features(tmp_path, zipped(tmp_path / "a.zip", parts))[0]["properties"]["name"] == "Zürich"
    broken = features(tmp_path, zipped(tmp_path / "b.zip", shape_parts(encoding="latin-1")))
    assert broken[0] == "record 1 cannot be taken apart: dbfFileException"
    assert broken[1]["properties"]["people"] is None  # the others are read


def test_sub_path_says_which_of_several(tmp_path: Path) -> None:
    source = zipped(zipped(tmp_path / "a.zip", shape_parts()), shape_parts(), "data/rivers")
    assert len(features(tmp_path, source, "*/cities.shp")) == 2
    for wrong in (None, "data/*", "lakes.shp"):
        with pytest.raises(InvalidSourceError, match=r"expected one \.shp.*'data/cities.shp', 'data/rivers.shp'"):
            features(tmp_path, source, wrong)


def changed(part: bytes, at: int, value: bytes) -> bytes:
    return part[:at] + value + part[at + len(value) :]


GOOD = shape_parts()
HOSTILE = {
    "no shapes": ({"dbf": GOOD["dbf"]}, "expected one .shp"),
    "table of a few bytes": ({**GOOD, "dbf": b"\3"}, "cannot be read"),
    "no table": ({"shp": GOOD["shp"]}, "no .dbf beside it"),
    "empty shapes": ({**GOOD, "shp": b""}, "cannot be read"),
    "more records than shapes": ({**GOOD, "dbf": changed(GOOD["dbf"], 4, struct.pack("<I", 2**31))}, "records"),
    "shape beyond the end": (
        {**GOOD, "shp": changed(GOOD["shp"], 104, struct.pack(">i", 2**30))},
        "1 shapes and 2 records",
    ),
    "unknown encoding": ({**GOOD, "cpg": b"no-such"}, "cannot be read"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_files_that_do_not_fit_together_are_rejected(tmp_path: Path, name: str) -> None:
    parts, stated = HOSTILE[name]
    with pytest.raises(InvalidSourceError, match=stated):
        features(tmp_path, zipped(tmp_path / "a.zip", parts))


def test_record_that_claims_points_that_are_not_there_is_broken_and_takes_no_memory(tmp_path: Path) -> None:
    # Header 100 bytes, of the record 8; then type, box of 32, number of parts, number of points.
    shp = changed(GOOD["shp"], 100 + 8 + 4 + 32 + 4, struct.pack("<i", 2**30))
    found = features(tmp_path, zipped(tmp_path / "a.zip", {**GOOD, "shp": shp}))
    assert found[0].startswith("record 1 cannot be taken apart")


def test_records_that_are_not_there_are_broken(tmp_path: Path) -> None:
    first, second = features(tmp_path, zipped(tmp_path / "a.zip", {**GOOD, "dbf": GOOD["dbf"][:-40]}))
    assert first["properties"]["name"] == "Zürich"
    assert second.startswith("record 2 cannot be taken apart")


def test_file_that_is_no_zip_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "b.zip").write_bytes(b"PK no zip")
    with pytest.raises(InvalidSourceError, match="no zip"):
        features(tmp_path, tmp_path / "b.zip")
