"""How a Shapefile in a zip is to be read: the read step of ODF takes it apart, and its table says its columns.

Source: clauses ING-24 and ING-44 in ``spec/ingest.md``.
"""

import glob
import mmap
import shutil
from collections.abc import Iterator, Sequence
from functools import partial
from typing import IO, Any, BinaryIO, Final

from odf_engines.ingest.json_records import GEOMETRY, parse_feature
from odf_engines.ingest.shapefile_features import open_shapes
from odf_engines.readers.contract import BrokenFileError, BrokenRecordError
from odf_engines.records.json_members import BrokenJsonError
from odf_engines.sampling.plans import ReadPlan, Texts

_WHOLE_DIGITS: Final = 18  # what 64 bits hold
_TYPES: Final = {"D": "Date", "L": "Bool", "F": "Float64", "O": "Float64"}
"""Of fields of dBase; what is left is text, which may mean something."""
_GEOMETRY_TEXT: Final = "geometry"
_SHOWN_CHARACTERS: Final = 300


def plan_shapes(file: BinaryIO) -> ReadPlan:
    """Take the fields of the table, and the geometry.

    Raises:
        BrokenFileError: It is no zip with a Shapefile, or its files do not fit together.
    """
    with open_shapes(file, _choose_first, _keep_in_memory) as shapes:
        fields = [each for each in shapes.reader.fields if each.name != "DeletionFlag"]
        types = {each.name: kind for each in fields if (kind := _type_of(each)) is not None} | {GEOMETRY: "String"}
        names = (*(each.name for each in fields), GEOMETRY)
        parameters, doubts = {}, []
        if shapes.others:
            parameters["subPath"] = glob.escape(shapes.name)
            others = ", ".join(repr(each) for each in shapes.others)[:_SHOWN_CHARACTERS]
            doubts.append(f"the archive has other Shapefiles too: {others}")
        if shapes.projection is not None:
            doubts.append(f"coordinates are those of {shapes.projection!a}, and are not converted")
    return ReadPlan(
        names=names, iter_texts=partial(_iter_texts, names), types=types, parameters=parameters, doubts=tuple(doubts)
    )


def _choose_first(found: Sequence[str]) -> str:
    if not found:
        raise BrokenFileError("there is no .shp in it")
    return min(found)


def _keep_in_memory(part: IO[bytes], size_bytes: int) -> mmap.mmap:
    """Copy to memory, as the sandbox has no place for files."""
    copy = mmap.mmap(-1, size_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    shutil.copyfileobj(part, copy)
    return copy


def _type_of(field: Any) -> str | None:
    kind = str(field.field_type)[-1:]
    if kind == "N":
        return "Float64" if field.decimal else "Int64" if field.size <= _WHOLE_DIGITS else None
    return _TYPES.get(kind)


def _iter_texts(names: Sequence[str], file: BinaryIO) -> Iterator[Texts | BrokenRecordError]:
    """Give the texts of records; geometries tell no rows apart, so they are not read."""
    with open_shapes(file, _choose_first, _keep_in_memory) as shapes:
        for line in shapes.iter_lines():
            try:
                texts = parse_feature(line.encode())
            except BrokenJsonError as error:
                yield BrokenRecordError(str(error))
            else:
                texts[GEOMETRY] = _GEOMETRY_TEXT
                yield [texts.get(name) or None for name in names]
