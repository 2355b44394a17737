"""Names and places of validators: ours are listed here, those of other packages are entry points.

A name of ours stays ours. Nothing is loaded here.

Source: clause VALID-3 in ``spec/validation.md``.
"""

from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Final

__all__ = ["ENTRY_POINT_GROUP", "installed_plug_ins", "installed_validators", "validator_place"]

ENTRY_POINT_GROUP: Final = "odf_validators"

_BUILT_IN: Final = {
    "Format": ("odf_engines.validation.value_checks", "Format"),
    "Freshness": ("odf_engines.validation.batch_checks", "Freshness"),
    "OneOf": ("odf_engines.validation.value_checks", "OneOf"),
    "Predicate": ("odf_engines.validation.predicate", "Predicate"),
    "Range": ("odf_engines.validation.value_checks", "Range"),
    "Required": ("odf_engines.validation.value_checks", "Required"),
    "RowCount": ("odf_engines.validation.batch_checks", "RowCount"),
    "Unique": ("odf_engines.validation.batch_checks", "Unique"),
}


def installed_validators() -> tuple[str, ...]:
    """Return the names of all validators, sorted."""
    return tuple(sorted({*_BUILT_IN, *_points()}))


def installed_plug_ins() -> tuple[str, ...]:
    """Return the import names of the packages of others that bring validators, sorted."""
    return tuple(sorted({point.module.split(".")[0] for point in _points().values()}))


def validator_place(name: str) -> tuple[str, str] | None:
    """Find module and class of a validator, None if there is none of that name."""
    if name in _BUILT_IN:
        return _BUILT_IN[name]
    point = _points().get(name)
    return None if point is None else (point.module, point.attr)


@cache
def _points() -> Mapping[str, EntryPoint]:
    found = entry_points(group=ENTRY_POINT_GROUP)
    return {point.name: point for point in found if point.name not in _BUILT_IN}
