"""Engines that the operator added from files, as plug-ins of the group ``odf_node.engine_files`` bring them.

Source: clause PLUG-22 in ``spec/plug-ins.md``; ENGINE-2; FOREIGN-1 in ``spec/plug-ins/foreign.md``.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from odf_engines.plug_in_names import PlugInNames
from odf_node.home_folder import HomeFolder
from odf_node.plug_ins import contained, load_plug_ins
from odf_node.ports.engines import AnyShelved, EngineFiles

GROUP: Final = "odf_node.engine_files"
_BROUGHT_BY: Final = "odf_foreign"


@dataclass(frozen=True, slots=True)
class EngineFilesPlugIn:
    """What an entry point of the group leads to.

    Attributes:
        open: Gives the engines that were added to a home; makes nothing.
    """

    open: Callable[[HomeFolder], EngineFiles]


@dataclass(frozen=True, slots=True)
class AllEngineFiles(EngineFiles):
    """Added engines of all plug-ins; without a plug-in there are none."""

    parts: tuple[EngineFiles, ...]

    def find(self, name: str) -> Sequence[AnyShelved]:
        """See ``EngineFiles``."""
        return [each for part in self.parts for each in part.find(name)]

    def list(self) -> Sequence[AnyShelved]:
        """See ``EngineFiles``."""
        return [each for part in self.parts for each in part.list()]


def find_adding(name: str) -> str:
    """Return what would bring an engine from a file, where the plug-in of ours that does it is not here; else empty."""
    if _BROUGHT_BY in PlugInNames(GROUP, {}).packages():
        return ""
    return f"'odf-node engine add {name} FILE' of the plug-in {_BROUGHT_BY}, which is not installed here,"


def open_engine_files(home: HomeFolder) -> EngineFiles:
    """Return the engines that were added to a home."""
    parts: list[EngineFiles] = []
    for name, plug_in in load_plug_ins(GROUP, EngineFilesPlugIn).items():
        with contained(GROUP, name):
            parts.append(plug_in.open(home))
    return AllEngineFiles(tuple(parts))
