"""ODF's enumerations, light: for those who need a word and not the events around it. ``events`` has them too.

Source: ODF metadata schema, enums.
"""

from enum import Enum
from typing import ClassVar

from odf_protocol.scalars import INT16, INT32, Scalar


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
