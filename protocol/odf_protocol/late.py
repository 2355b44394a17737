"""Packages whose modules are loaded when they are first used: what such a package's front has as ``__getattr__``."""

from collections.abc import Callable
from importlib import import_module
from types import ModuleType


def late_modules(package: str) -> Callable[[str], ModuleType]:
    """Make the ``__getattr__`` (PEP 562) of a package whose modules are its attributes.

    ``from odf_node import rows`` loads no module of rows; ``rows.slices.read_slice`` loads that one. The package lists
    under ``TYPE_CHECKING`` which of its modules others use in this way.
    """

    def load(name: str) -> ModuleType:
        full_name = f"{package}.{name}"
        try:
            return import_module(full_name)
        except ModuleNotFoundError as error:
            if error.name != full_name:
                raise
            raise AttributeError(f"module {package!r} has no attribute {name!r}") from None

    return load
