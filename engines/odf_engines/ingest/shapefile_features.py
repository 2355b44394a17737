"""A Shapefile in a zip as GeoJSON features, a line each, which are read as those of any other file.

A library takes records apart. It believes sizes and counts: what a file that lies costs stays within the limits of the
sandbox.

Source: ODF ReadStepEsriShapefile; spec/ingest.md ING-44.
"""

import codecs
import json
import mmap
import re
import shutil
import struct
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import IO, Any, BinaryIO, Final

import shapefile

from odf_engines.errors import InvalidSourceError
from odf_engines.ingest.json_records import GEOMETRY
from odf_engines.readers.contract import BrokenFileError

_SHAPES, _TABLE, _ENCODING, _PROJECTION = ".shp", ".dbf", ".cpg", ".prj"
_SHOWN: Final = 5  # names in a message
_UTF_8: Final = "utf-8"
_PROJECTED: Final = re.compile(r'\s*PROJCS\s*\[\s*"([^"]{1,100})"')
"""Coordinates that are no degrees. Source: OGC 01-009, Well-known Text."""


Keep = Callable[[IO[bytes], int], mmap.mmap]
"""Copies a part of the archive to where it can be read anywhere, given how many bytes it has at most."""


@dataclass(frozen=True, slots=True)
class Shapes:
    """A Shapefile in a zip.

    Attributes:
        name: Of its shapes in the archive.
        others: Other Shapefiles there.
        projection: Of coordinates, as the file beside says, where they are no degrees.
        reader: The library's.
    """

    name: str
    others: tuple[str, ...]
    projection: str | None
    reader: Any

    def iter_lines(self) -> Iterator[str]:
        """Give each record as a feature; one that cannot be taken apart is a line that is none."""
        for number in range(self.reader.numRecords):
            shape = partial(self.reader.shp_reader.shape, number)
            line = _feature_line(shape, partial(self.reader.record, number), number)
            if line is not None:
                yield line


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
    path = target / "features.ndjson"
    try:
        with (
            open_shapes(source, partial(_choose, sub_path=sub_path), partial(_keep_file, target)) as shapes,
            path.open("w", encoding="utf-8") as features,
        ):
            features.writelines(f"{line}\n" for line in shapes.iter_lines())
    except BrokenFileError as error:
        raise InvalidSourceError(source_name, str(error)) from error
    return path


@contextmanager
def open_shapes(source: Path | BinaryIO, choose: Callable[[Sequence[str]], str], keep: Keep) -> Iterator[Shapes]:
    """Open a Shapefile, whose records can be taken apart until this is left.

    Args:
        source: A zip.
        choose: Says which, by the names of all shapes in it.
        keep: For the parts of the archive.

    Raises:
        BrokenFileError: It is no zip with such a Shapefile, unpacks to too much, or its files do not fit together.
    """
    try:
        with ExitStack() as stack:
            found = _unpack(source, choose, keep, stack)
            reader = stack.enter_context(shapefile.Reader(shp=found.shapes, dbf=found.table, encoding=found.encoding))
            _check_table(reader)
            yield Shapes(found.name, found.others, found.projection, reader)
    except (BrokenFileError, zipfile.BadZipFile, NotImplementedError) as error:
        raise BrokenFileError(f"no zip with a Shapefile that can be read: {error}") from error
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
        raise BrokenFileError(f"its Shapefile cannot be read: {reason}") from error


def _choose(found: Sequence[str], sub_path: str | None) -> str:
    wanted = found if sub_path is None else [name for name in found if fnmatchcase(name, sub_path)]
    if len(wanted) != 1:
        shown = ", ".join(ascii(name) for name in found[:_SHOWN]) or "none"
        asked = "" if sub_path is None else f" that {sub_path} names"
        raise BrokenFileError(f"expected one {_SHAPES}{asked}, found {len(wanted)} among {shown}")
    return wanted[0]


def _keep_file(target: Path, part: IO[bytes], _size_bytes: int) -> mmap.mmap:
    """Copy to a file without a name left behind: what is mapped stays there."""
    with tempfile.TemporaryFile(dir=target) as copy:
        shutil.copyfileobj(part, copy)
        copy.flush()
        return mmap.mmap(copy.fileno(), 0, access=mmap.ACCESS_READ)


@dataclass(frozen=True, slots=True)
class _Parts:
    """What belongs to one Shapefile of an archive."""

    name: str
    others: tuple[str, ...]
    projection: str | None
    shapes: mmap.mmap
    table: mmap.mmap
    encoding: str


def _unpack(source: Path | BinaryIO, choose: Callable[[Sequence[str]], str], keep: Keep, stack: ExitStack) -> _Parts:
    with zipfile.ZipFile(source) as archive:
        names = archive.namelist()
        found = [name for name in names if name.lower().endswith(_SHAPES)]
        chosen = choose(found)
        stem = chosen[: -len(_SHAPES)]
        beside = {name.lower(): name for name in names if name[: -len(_TABLE)] == stem}
        if (table := beside.get(f"{stem}{_TABLE}".lower())) is None:
            raise BrokenFileError(f"{chosen} has no {_TABLE} beside it")

        def read_start(ending: str, size_bytes: int) -> str:
            if (named := beside.get(f"{stem}{ending}".lower())) is None:
                return ""
            with archive.open(named) as file:
                return file.read(size_bytes).decode("ascii", "replace").strip()

        encoding = codecs.lookup(read_start(_ENCODING, 40) or _UTF_8).name
        projected = _PROJECTED.match(read_start(_PROJECTION, 200))
        maps = []
        for name in (chosen, table):
            with archive.open(name) as part:
                maps.append(stack.enter_context(keep(part, archive.getinfo(name).file_size)))
    others = tuple(name for name in found if name != chosen)
    return _Parts(chosen, others, projected and projected[1], maps[0], maps[1], encoding)


def _check_table(reader: Any) -> None:
    shapes, records = len(reader.shp_reader.offsets), reader.numRecords
    if shapes != records:
        raise BrokenFileError(f"it has {shapes:,} shapes and {records:,} records")
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
