"""Names of the system columns.

Source: ODF "DatasetVocabulary", "SetVocab".
"""

from dataclasses import dataclass
from typing import Self

from odf_protocol.events.metadata import SetVocab


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What the four columns that ODF itself fills are called in one dataset."""

    offset: str = "offset"
    op: str = "op"
    system_time: str = "system_time"
    event_time: str = "event_time"

    @classmethod
    def of(cls, event: SetVocab) -> Self:
        """Read the event; what it leaves out has its usual name, whatever an earlier SetVocab said."""
        usual = cls()
        return cls(
            offset=event.offset_column if event.offset_column is not None else usual.offset,
            op=event.operation_type_column if event.operation_type_column is not None else usual.op,
            system_time=event.system_time_column if event.system_time_column is not None else usual.system_time,
            event_time=event.event_time_column if event.event_time_column is not None else usual.event_time,
        )

    @property
    def columns(self) -> tuple[str, str, str, str]:
        """The names in the order in which a slice has them."""
        return self.offset, self.op, self.system_time, self.event_time
