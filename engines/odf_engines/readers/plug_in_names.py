"""Names and places of readers: ours are listed here, those of other packages are entry points.

A name of ours stays ours. Nothing is loaded here.

Source: clause READ-3 in ``spec/readers.md``.
"""

from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Final

__all__ = ["ENTRY_POINT_GROUP", "LIBRARIES", "installed_plug_ins", "installed_readers", "reader_place"]

ENTRY_POINT_GROUP: Final = "odf_readers"

LIBRARIES: Final = ("et_xmlfile", "fastavro", "openpyxl")
"""Import names of the packages that our own readers need in the sandbox, and no engine does."""

_BUILT_IN: Final = {
    "Avro": ("odf_engines.readers.avro", "Avro"),
    "Excel": ("odf_engines.readers.excel", "Excel"),
    "FixedWidth": ("odf_engines.readers.fixed_width", "FixedWidth"),
    "XmlRows": ("odf_engines.readers.xml_rows", "XmlRows"),
}


def installed_readers() -> tuple[str, ...]:
    """Return the names of all readers, sorted."""
    return tuple(sorted({*_BUILT_IN, *_points()}))


def installed_plug_ins() -> tuple[str, ...]:
    """Return the import names of the packages of others that bring readers, sorted."""
    return tuple(sorted({point.module.split(".")[0] for point in _points().values()}))


def reader_place(name: str) -> tuple[str, str] | None:
    """Find module and class of a reader, None if there is none of that name."""
    if name in _BUILT_IN:
        return _BUILT_IN[name]
    point = _points().get(name)
    return None if point is None else (point.module, point.attr)


@cache
def _points() -> Mapping[str, EntryPoint]:
    found = entry_points(group=ENTRY_POINT_GROUP)
    return {point.name: point for point in found if point.name not in _BUILT_IN}
