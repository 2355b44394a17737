"""Which engines are installed.

Engines are found by the entry point group ``odf_engines``: each names a function without arguments that returns an
``Engine``. A package on its own can so bring another engine.

Source: clauses ENGINE-2 and ENGINE-14 in ``spec/extensions/engine-contract.md``.
"""

from importlib.metadata import EntryPoint, entry_points

from odf_engines.contract import Engine
from odf_engines.errors import EngineMissingError

__all__ = ["ENTRY_POINT_GROUP", "get_engine", "installed_engines"]

ENTRY_POINT_GROUP = "odf_engines"


def installed_engines() -> tuple[str, ...]:
    """Return the names of the installed engines, sorted; loads none of them."""
    return tuple(sorted({point.name for point in entry_points(group=ENTRY_POINT_GROUP)}))


def get_engine(name: str) -> Engine:
    """Load an engine.

    Args:
        name: As a transform names it; case does not matter (ODF engine ids).

    Raises:
        EngineMissingError: Not installed.
    """
    point = _find_entry_point(name)
    if point is None:
        raise EngineMissingError(name, installed_engines())
    factory = point.load()
    engine: Engine = factory()
    return engine


def _find_entry_point(name: str) -> EntryPoint | None:
    wanted = name.lower()
    return next((point for point in entry_points(group=ENTRY_POINT_GROUP) if point.name.lower() == wanted), None)
