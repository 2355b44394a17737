"""Avro files, workbooks and Shapefiles that cost without bound: a limit of the sandbox ends each, by its name.

Their libraries believe sizes and counts, and nothing bounds them before. Source: READ-5 and READ-6 in
``spec/readers.md``, ING-44 in ``spec/ingest.md``.
"""

import struct
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from odf_engines.arrow.engine import ArrowEngine
from odf_engines.contract import Limits, ReaderCall
from odf_engines.errors import EngineFailureError, InvalidSourceError, LimitExceededError
from odf_engines.plug_in_names import READERS
from odf_engines.sampling import process
from odf_engines.sampling.process import look_at_table
from odf_protocol.events import DataTypeString, ReadStep, ReadStepEsriShapefile, ReadStepNdJson
from plug_ins.quality.unit.test_workbooks_and_avro import HIDDEN, LIST, ONE, avro, large, number, record, workbook
from support.ingests import RootDataset, schema
from unit.test_shapefiles import GOOD, changed, zipped

MIB = 1024 * 1024
LIMITS = Limits(memory_bytes=256 * MIB, wall_s=120.0, cpu_s=30, output_bytes=64 * MIB)
DEEP = b"\x02\x02" * 1_000_000
ENDLESS = {**GOOD, "shp": changed(GOOD["shp"], 104, struct.pack(">i", -4))}
FILES: dict[str, tuple[str, Callable[[], bytes | dict[str, bytes]]]] = {
    "avro-that-is-in-itself": ("Avro", lambda: avro(LIST, [(1, DEEP)])),
    "avro-that-is-in-itself-behind-a-namespace": ("Avro", lambda: avro(HIDDEN, [(1, DEEP)])),
    "avro-array-of-no-bytes": ("Avro", lambda: avro(record({"type": "array", "items": "null"}), [(1, number(2**40))])),
    "avro-size-beyond-bounds": ("Avro", lambda: avro(ONE, []) + number(1) + number(2**40)),
    "avro-deflate-bomb": ("Avro", lambda: avro(ONE, [(1, zlib.compress(bytes(400 * MIB), 1)[2:-4])], "deflate")),
    "workbook-of-many-texts": ("Excel", lambda: workbook(more=large("xl/sharedStrings.xml", 320 * MIB))),
    "shape-of-a-size-below-zero": ("EsriShapefile", lambda: ENDLESS),
    "shapes-that-fill-the-disk": ("EsriShapefile", lambda: {**GOOD, "shp": bytes(100 * MIB)}),
}
# Texts of a workbook are read as a stream, to their end where the machine is fast enough: then the column is not there.
ENDED = "File too large|memory_bytes|output_bytes|cpu_s|ended without an answer|'f0' is not in row 1"


def write(path: Path, content: bytes | dict[str, bytes]) -> Path:
    if isinstance(content, bytes):
        path.write_bytes(content)
        return path
    return zipped(path, content)


def declare(kind: str) -> tuple[ReadStep, ReaderCall | None]:
    if kind == "EsriShapefile":
        return ReadStepEsriShapefile(), None
    place = READERS.find_place(kind)
    assert place is not None
    return ReadStepNdJson(schema=schema(f0=DataTypeString())), ReaderCall(
        name=kind, module=place[0], attribute=place[1]
    )


@pytest.mark.parametrize("name", FILES)
def test_ingest_of_a_costly_file_ends_at_a_limit(name: str, tmp_path: Path) -> None:
    kind, make = FILES[name]
    step, reader = declare(kind)
    source = write(tmp_path / "file", make())
    with ArrowEngine().open(tmp_path, LIMITS) as session:
        dataset = RootDataset(step, session=session)
        with pytest.raises((EngineFailureError, InvalidSourceError, LimitExceededError), match=ENDED) as raised:
            dataset.ingest(source, reader=reader, limits=LIMITS)
    assert reader is None or f"reader {kind}" in str(raised.value)


@pytest.mark.parametrize("name", FILES)
def test_look_at_a_costly_file_ends_at_a_limit(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, make = FILES[name]
    monkeypatch.setattr(process, "_LIMITS", replace(LIMITS, output_bytes=0))
    with pytest.raises(InvalidSourceError, match=r"takes more memory|Cannot allocate memory|looking at it was stopped"):
        look_at_table(kind, write(tmp_path / "file", make()), shown_as="the file", is_whole=True)
