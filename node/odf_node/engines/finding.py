"""Engines of this node by name: those that are installed, then those that the operator added."""

from odf_engines.engine import Engine
from odf_engines.errors import EngineMissingError
from odf_engines.registry import get_engine
from odf_node.ports.engines import EngineShelf

__all__ = ["get_engine_here"]


def get_engine_here(name: str, shelf: EngineShelf | None) -> Engine:
    """Return the engine called ``name``, whatever case that is written in.

    Raises:
        EngineMissingError: There is none; the message names it and those that are there.
        HomeCorruptError: What stands in its place was not added by this program.
    """
    try:
        return get_engine(name)
    except EngineMissingError as error:
        if shelf is None:
            raise
        if (found := shelf.find(name)) is not None:
            return found.engine
        added = tuple(each.engine.name for each in shelf.list())
        raise EngineMissingError(name, (*error.installed, *added)) from None
