"""Names and places of converters: ours are listed here, those of other packages are entry points.

A name of ours stays ours. Nothing is loaded here.

Source: clause CONV-3 in ``spec/conversion.md``.
"""

from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Final

__all__ = ["ENTRY_POINT_GROUP", "converter_place", "installed_converters", "installed_plug_ins"]

ENTRY_POINT_GROUP: Final = "odf_converters"

_BUILT_IN: Final = {
    "Cast": ("odf_engines.conversion.cast", "Cast"),
    "Deduplicate": ("odf_engines.conversion.deduplicate", "Deduplicate"),
    "Hash": ("odf_engines.conversion.personal_data", "Hash"),
    "Join": ("odf_engines.conversion.column_converters", "Join"),
    "JsonPath": ("odf_engines.conversion.json_path", "JsonPath"),
    "Lookup": ("odf_engines.conversion.lookup", "Lookup"),
    "Mask": ("odf_engines.conversion.personal_data", "Mask"),
    "Rename": ("odf_engines.conversion.column_converters", "Rename"),
    "Replace": ("odf_engines.conversion.value_converters", "Replace"),
    "Split": ("odf_engines.conversion.column_converters", "Split"),
    "Trim": ("odf_engines.conversion.value_converters", "Trim"),
    "Units": ("odf_engines.conversion.units", "Units"),
}


def installed_converters() -> tuple[str, ...]:
    """Return the names of all converters, sorted."""
    return tuple(sorted({*_BUILT_IN, *_points()}))


def installed_plug_ins() -> tuple[str, ...]:
    """Return the import names of the packages of others that bring converters, sorted."""
    return tuple(sorted({point.module.split(".")[0] for point in _points().values()}))


def converter_place(name: str) -> tuple[str, str] | None:
    """Find module and class of a converter, None if there is none of that name."""
    if name in _BUILT_IN:
        return _BUILT_IN[name]
    point = _points().get(name)
    return None if point is None else (point.module, point.attr)


@cache
def _points() -> Mapping[str, EntryPoint]:
    found = entry_points(group=ENTRY_POINT_GROUP)
    return {point.name: point for point in found if point.name not in _BUILT_IN}
