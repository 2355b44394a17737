"""A Shapefile in a zip as GeoJSON features, a line each, which are read as those of any other file.

Nothing in it is believed: a library takes records apart, over mapped files in which no count leads beyond their end.

Source: ODF ReadStepEsriShapefile; spec/ingest.md ING-44.
"""

import codecs
import json
import mmap
import shutil
import struct
import zipfile
from collections.abc import Callable
from contextlib import ExitStack
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any, Final

from odf_engines.errors import InvalidSourceError
from odf_engines.ingest.json_records import GEOMETRY
from odf_engines.readers.contract import BrokenFileError
from odf_engines.readers.workbook_parts import check_sizes

_SHAPES, _TABLE, _ENCODING = ".shp", ".dbf", ".cpg"
_SHOWN: Final = 5  # names in a message
_UTF_8: Final = "utf-8"
_HEADER_BYTES: Final = 100  # Source: ESRI Shapefile Technical Description, 1998
_SHAPE_HEADER_BYTES: Final = 8
_LEAST_SHAPE_BYTES: Final = 4  # its type


def write_features(source: Path, source_name: str, sub_path: str | None, target: Path) -> Path:
    """Write each record of a Shapefile as a feature; one that cannot be taken apart is a line that is none.

    Args:
        source: A zip.
        source_name: How messages call it.
        sub_path: Which of its files, a pattern of their names; None: the only one.
        target: Folder for files.

    Returns:
        The file of features.

    Raises:
        InvalidSourceError: It is no zip with one such Shapefile, unpacks to too much, or its files do not fit together.
    """
    import shapefile

    path = target / "features.ndjson"
    try:
        with ExitStack() as stack:
            shapes, table, encoding = _unpack(source, sub_path, target, stack)
            reader = stack.enter_context(shapefile.Reader(shp=shapes, dbf=table, encoding=encoding))
            places = _find_places(shapes)
            _check_table(reader, table, len(places))
            with path.open("w", encoding="utf-8") as features:
                for number, (offset, size_bytes) in enumerate(places):
                    shape = partial(reader.shp_reader.shape, number, offset, size_bytes)
                    line = _feature_line(shape, partial(reader.record, number), number)
                    if line is not None:
                        features.write(f"{line}\n")
    except (BrokenFileError, zipfile.BadZipFile, NotImplementedError) as error:
        raise InvalidSourceError(source_name, f"no zip with a Shapefile that can be read: {error}") from error
    except (
        shapefile.ShapefileException,
        OSError,
        ValueError,
        ArithmeticError,
        LookupError,
        TypeError,
        struct.error,
    ) as error:
        reason = f"{type(error).__name__}: {error}"[:200]
        raise InvalidSourceError(source_name, f"its Shapefile cannot be read: {reason}") from error
    return path


def _unpack(source: Path, sub_path: str | None, target: Path, stack: ExitStack) -> tuple[Any, Any, str]:
    """Give the shapes, the table beside them, and how its texts are written."""
    with zipfile.ZipFile(source) as archive:
        check_sizes(archive.infolist())
        names = archive.namelist()
        found = [name for name in names if name.lower().endswith(_SHAPES)]
        wanted = found if sub_path is None else [name for name in found if fnmatchcase(name, sub_path)]
        if len(wanted) != 1:
            shown = ", ".join(ascii(name) for name in found[:_SHOWN]) or "none"
            asked = "" if sub_path is None else f" that {sub_path} names"
            raise BrokenFileError(f"expected one {_SHAPES}{asked}, found {len(wanted)} among {shown}")
        stem = wanted[0][: -len(_SHAPES)]
        beside = {name.lower(): name for name in names if name[: -len(_TABLE)] == stem}
        if (table := beside.get(f"{stem}{_TABLE}".lower())) is None:
            raise BrokenFileError(f"{wanted[0]} has no {_TABLE} beside it")
        encoding = _UTF_8
        if (named := beside.get(f"{stem}{_ENCODING}".lower())) is not None:
            with archive.open(named) as file:
                encoding = codecs.lookup(file.read(40).decode("ascii", "replace").strip()).name
        maps = []
        for number, name in enumerate((wanted[0], table)):
            with archive.open(name) as part, (target / f"shapefile-{number}").open("w+b") as copy:
                shutil.copyfileobj(part, copy)
                copy.flush()
                maps.append(stack.enter_context(mmap.mmap(copy.fileno(), 0, access=mmap.ACCESS_READ)))
    return maps[0], maps[1], encoding


def _find_places(shapes: mmap.mmap) -> list[tuple[int, int]]:
    """List offset and size of each shape; the library would follow a size below zero back, for ever.

    Raises:
        BrokenFileError: One leads beyond the file.
    """
    found: list[tuple[int, int]] = []
    place, end = _HEADER_BYTES, len(shapes)
    while place < end:
        size_bytes = int.from_bytes(shapes[place + 4 : place + 8], "big", signed=True) * 2
        if size_bytes < _LEAST_SHAPE_BYTES or place + _SHAPE_HEADER_BYTES + size_bytes > end:
            raise BrokenFileError(f"its shape {len(found) + 1} does not end within the file")
        found.append((place, size_bytes))
        place += _SHAPE_HEADER_BYTES + size_bytes
    return found


def _check_table(reader: Any, table: mmap.mmap, shapes: int) -> None:
    count, header_bytes, record_bytes = struct.unpack("<4xLHH", table[:12])
    if count != shapes:
        raise BrokenFileError(f"it has {shapes:,} shapes and {count:,} records")
    if not record_bytes or header_bytes + count * record_bytes > len(table):
        raise BrokenFileError("its records do not end within the file")
    names = [field.name for field in reader.fields]
    if GEOMETRY in names or len({*names}) != len(names):
        raise BrokenFileError(f"a column is called {GEOMETRY}, or two by one name: {', '.join(names)[:200]}")


def _as_several(geometry: dict[str, Any]) -> dict[str, Any]:
    """Give lines and areas as several, whatever a shape has, so that a column is of one kind."""
    if geometry["type"] not in {"LineString", "Polygon"}:
        return geometry
    return {"type": f"Multi{geometry['type']}", "coordinates": [geometry["coordinates"]]}


def _feature_line(shape: Callable[[], Any], record: Callable[[], Any], number: int) -> str | None:
    """Write one feature, None where it was deleted; what is wrong, which is none, where it cannot be taken apart."""
    try:
        if (values := record()) is None:
            return None
        found = shape()
        geometry = None if found is None or not found.shapeType else _as_several(found.__geo_interface__)
        feature = {"type": "Feature", "properties": values.as_dict(), GEOMETRY: geometry}
        return json.dumps(feature, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=str)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - a library's, on bytes of strangers
        return f"record {number + 1} cannot be taken apart: {type(error).__name__}"
