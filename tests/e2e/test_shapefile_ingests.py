"""Shapefiles in real ingests: both engines take the same rows, and bad ones stand as features (ING-44)."""

import json
from pathlib import Path

import pytest

from odf_engines.arrow.engine import ArrowEngine
from odf_engines.contract import Limits
from odf_engines.errors import InvalidSourceError
from odf_protocol.events import DataTypeInt64, DataTypeString, ReadStepEsriShapefile
from support.ingests import RootDataset, quarantined, rows_of, schema
from unit.test_shapefiles import shape_parts, zipped

READ = ReadStepEsriShapefile(schema=schema(name=DataTypeString(), people=DataTypeInt64(), geometry=DataTypeString()))


def test_shapefile_is_taken_in_without_spark_with_and_without_schema(tmp_path: Path) -> None:
    source = zipped(tmp_path / "cities.zip", shape_parts())
    with ArrowEngine().open(tmp_path, Limits()) as arrow:
        typed = rows_of(RootDataset(READ, session=arrow).ingest(source).data_path)
        assert [(row["name"], row["people"]) for row in typed] == [("Zürich", 415), ("", None)]
        assert [row["geometry"] and json.loads(row["geometry"])["type"] for row in typed] == ["MultiPolygon", None]
        guessed = rows_of(RootDataset(ReadStepEsriShapefile(), session=arrow).ingest(source).data_path)
        assert (guessed[0]["people"], guessed[0]["share"], guessed[0]["since"]) == (415, 1.25, "2020-01-02")
        assert guessed[0]["geometry"] == typed[0]["geometry"]
        (tmp_path / "no.zip").write_bytes(b"no zip")
        with pytest.raises(InvalidSourceError, match="no zip with a Shapefile"):
            RootDataset(READ, session=arrow).ingest(tmp_path / "no.zip")


@pytest.mark.spark
def test_both_engines_read_alike(tmp_path: Path) -> None:
    parts = {**shape_parts(encoding="latin-1")}
    source = zipped(tmp_path / "cities.zip", parts)
    with ArrowEngine().open(tmp_path, Limits()) as arrow:
        ours = RootDataset(READ, session=arrow).ingest(source)
        slice_bytes, set_aside = ours.data_path and ours.data_path.read_bytes(), quarantined(ours)
    theirs = RootDataset(READ).ingest(source)
    assert theirs.data_path is not None
    assert theirs.data_path.read_bytes() == slice_bytes
    assert quarantined(theirs) == set_aside
    (row,) = set_aside
    assert (row["record"], row["original"][:32]) == (1, "record 1 cannot be taken apart: ")
    assert theirs.statistics.rows_in == theirs.statistics.rows_out + theirs.quarantined_rows == 2
