"""Names and places of readers, converters, validators and sinks: ours stand here, those of others are entry points.

A name of ours stays ours. Nothing is loaded here.

Source: clauses READ-3, CONV-3, VALID-3 and SINK-1 in ``spec/readers.md``, ``spec/conversion.md``,
``spec/validation.md`` and ``spec/quarantine.md``.
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
        ours: Module and class by name.
    """

    group: str
    ours: Mapping[str, tuple[str, str]]

    def installed(self) -> tuple[str, ...]:
        """Return the names of all plug-ins, sorted."""
        return tuple(sorted({*self.ours, *_points_of(self.group)}))

    def packages(self) -> tuple[str, ...]:
        """Return the import names of the packages of others that bring some, sorted."""
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


READERS: Final = PlugInNames(
    "odf_readers",
    {
        "Avro": ("odf_engines.readers.avro", "Avro"),
        "Excel": ("odf_engines.readers.excel", "Excel"),
        "FixedWidth": ("odf_engines.readers.fixed_width", "FixedWidth"),
        "XmlRows": ("odf_engines.readers.xml_rows", "XmlRows"),
    },
)
READERS_LIBRARIES: Final = ("et_xmlfile", "fastavro", "openpyxl")
"""Import names of the packages that our own readers need in the sandbox, and no engine does."""

CONVERTERS: Final = PlugInNames(
    "odf_converters",
    {
        "Cast": ("odf_engines.conversion.value_converters", "Cast"),
        "Compute": ("odf_engines.datafusion.compute", "Compute"),
        "Deduplicate": ("odf_engines.conversion.deduplicate", "Deduplicate"),
        "Hash": ("odf_engines.conversion.personal_data", "Hash"),
        "Join": ("odf_engines.conversion.column_converters", "Join"),
        "JsonPath": ("odf_engines.conversion.column_converters", "JsonPath"),
        "LeaveOut": ("odf_engines.conversion.leave_out", "LeaveOut"),
        "Lookup": ("odf_engines.conversion.lookup", "Lookup"),
        "Mask": ("odf_engines.conversion.personal_data", "Mask"),
        "Rename": ("odf_engines.conversion.column_converters", "Rename"),
        "Replace": ("odf_engines.conversion.value_converters", "Replace"),
        "Split": ("odf_engines.conversion.column_converters", "Split"),
        "Trim": ("odf_engines.conversion.value_converters", "Trim"),
        "Units": ("odf_engines.conversion.value_converters", "Units"),
    },
)

VALIDATORS: Final = PlugInNames(
    "odf_validators",
    {
        "Format": ("odf_engines.validation.value_checks", "Format"),
        "Freshness": ("odf_engines.validation.batch_checks", "Freshness"),
        "OneOf": ("odf_engines.validation.value_checks", "OneOf"),
        "Predicate": ("odf_engines.datafusion.predicate", "Predicate"),
        "Range": ("odf_engines.validation.value_checks", "Range"),
        "Reference": ("odf_engines.validation.keys", "Reference"),
        "Required": ("odf_engines.validation.value_checks", "Required"),
        "RowCount": ("odf_engines.validation.batch_checks", "RowCount"),
        "Type": ("odf_engines.validation.value_checks", "Type"),
        "Unique": ("odf_engines.validation.batch_checks", "Unique"),
    },
)

SINKS: Final = PlugInNames(
    "odf_sinks",
    {
        "File": ("odf_node.adapters.sinks.local", "File"),
        "Quarantine": ("odf_node.adapters.sinks.local", "Quarantine"),
        "Webhook": ("odf_node.adapters.sinks.webhook", "Webhook"),
    },
)
"""They run in the node's process, and none of them in a sandbox."""
