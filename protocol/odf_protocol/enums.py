"""ODF's enumerations and the numbers they are written as, light: for those who need no events around them.

Source: ODF metadata schema, enums; FlatBuffers "Internals": scalars are little-endian and aligned to their size.
"""

from dataclasses import dataclass
from enum import Enum
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Scalar:
    """A FlatBuffers number: its ``struct`` format, little-endian."""

    name: str
    format: str
    size_bytes: int
    minimum: int
    maximum: int


BOOL = Scalar("bool", "<B", 1, 0, 1)
INT16 = Scalar("int16", "<h", 2, -(1 << 15), (1 << 15) - 1)
INT32 = Scalar("int32", "<i", 4, -(1 << 31), (1 << 31) - 1)
INT64 = Scalar("int64", "<q", 8, -(1 << 63), (1 << 63) - 1)
UINT32 = Scalar("uint32", "<I", 4, 0, (1 << 32) - 1)
UINT64 = Scalar("uint64", "<Q", 8, 0, (1 << 64) - 1)


class WireEnum(Enum):
    """An ODF enumeration: values are those of the wire, ``text`` is the spelling of manifests.

    >>> class Order(WireEnum):
    ...     BY_NAME = 1
    >>> Order.BY_NAME.text
    'ByName'
    """

    scalar: ClassVar[Scalar]

    def __init_subclass__(cls, *, scalar: Scalar = INT32) -> None:
        cls.scalar = scalar

    @property
    def text(self) -> str:
        """The member's name in PascalCase, as YAML and JSON spell it."""
        return "".join(part.capitalize() for part in self.name.split("_"))


class CompressionFormat(WireEnum):
    """How a source is packed."""

    GZIP = 0
    ZIP = 1


class DatasetKind(WireEnum):
    """Whether data comes from outside (root) or from other datasets (derivative)."""

    ROOT = 0
    DERIVATIVE = 1


class MqttQos(WireEnum):
    """Delivery guarantee of MQTT."""

    AT_MOST_ONCE = 0
    AT_LEAST_ONCE = 1
    EXACTLY_ONCE = 2


class SourceOrdering(WireEnum):
    """In which order files are taken."""

    BY_EVENT_TIME = 0
    BY_NAME = 1


class TimeUnit(WireEnum, scalar=INT16):
    """Resolution of a time."""

    SECOND = 0
    MILLISECOND = 1
    MICROSECOND = 2
    NANOSECOND = 3
