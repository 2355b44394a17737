"""Names and places of readers, converters, validators and sinks: entry points, but for those of the core.

A name of ours stays ours. Nothing is loaded here.

Source: clauses READ-3, CONV-3, VALID-3 and SINK-1 in ``spec/readers.md``, ``spec/conversion.md``,
``spec/validation.md`` and ``spec/plug-ins/corrections.md``; QUALITY-2 in ``spec/plug-ins/quality.md``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Final

DISTRIBUTION: Final = "odf-node"


@dataclass(frozen=True, slots=True)
class PlugInNames:
    """The plug-ins of one kind.

    Attributes:
        group: Of the entry points.
        ours: Module and class by name, of those that are part of the core.
        brought_by: Import name of the plug-in of this distribution that brings the others of ours; empty: none does.
    """

    group: str
    ours: Mapping[str, tuple[str, str]]
    brought_by: str = ""

    def installed(self) -> tuple[str, ...]:
        """Return the names of all plug-ins, sorted."""
        return tuple(sorted({*self.ours, *_points_of(self.group)}))

    def packages(self) -> tuple[str, ...]:
        """Return the import names of the packages that bring some beside the core, sorted."""
        return tuple(sorted({point.module.split(".")[0] for point in self._theirs().values()}))

    def find_place(self, name: str) -> tuple[str, str] | None:
        """Find module and class of a plug-in, None if there is none of that name."""
        if name in self.ours:
            return self.ours[name]
        point = self._theirs().get(name)
        return None if point is None else (point.module, point.attr)

    def get_point(self, name: str) -> EntryPoint:
        """Return the entry point of a plug-in.

        Raises:
            KeyError: There is none of that name, or it is one that stands in ``ours``.
        """
        return self._theirs()[name]

    def is_ours(self, name: str) -> bool:
        """Tell whether our distribution brings a plug-in that is installed."""
        return name in self.ours or is_of_this_distribution(self._theirs()[name])

    def describe_installed(self) -> str:
        """List the names of all plug-ins, and name that of this distribution which brings more and is not here."""
        names = ", ".join(self.installed()) or "none"
        if not self.brought_by or self.brought_by in self.packages():
            return names
        return f"{names}; those of {DISTRIBUTION} are in its plug-in {self.brought_by}, which is not installed here"

    def _theirs(self) -> Mapping[str, EntryPoint]:
        return {name: point for name, point in _points_of(self.group).items() if name not in self.ours}


def is_of_this_distribution(point: EntryPoint) -> bool:
    """Tell whether our distribution brings an entry point."""
    return point.dist is not None and point.dist.name == DISTRIBUTION


@cache
def _points_of(group: str) -> Mapping[str, EntryPoint]:
    """Return the entry points of a group by name; ours come last, so that a name of ours stays ours."""
    points = sorted(entry_points(group=group), key=is_of_this_distribution)
    return {point.name: point for point in points}


READERS: Final = PlugInNames("odf_readers", {}, "odf_quality")
READERS_LIBRARIES: Final = ("et_xmlfile", "fastavro", "openpyxl")
"""Import names of the packages that readers of ours need in the sandbox, and no engine does."""

PLANS: Final = PlugInNames(
    "odf_read_plans",
    {
        "EsriShapefile": ("odf_engines.sampling.shapes", "plan_shapes"),
        "Parquet": ("odf_engines.sampling.columnar", "plan_parquet"),
    },
    "odf_quality",
)
"""Functions that find how a file of a kind is to be read (``odf_engines.sampling.plans``), for first manifests."""

CONVERTERS: Final = PlugInNames("odf_converters", {}, "odf_quality")
VALIDATORS: Final = PlugInNames("odf_validators", {}, "odf_quality")

DIALECTS: Final = PlugInNames("odf_dialects", {}, "odf_spark")
"""Engines whose SQL is translated (``odf_engines.translation``)."""

SINKS: Final = PlugInNames("odf_sinks", {}, "odf_corrections")
"""They run in the node's process, and none of them in a sandbox."""
