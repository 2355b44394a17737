"""The four columns that ODF itself fills, at the head of every dataset's schema.

==============  ==========================  ==================================================
column          type                        meaning
==============  ==========================  ==================================================
offset          Int64                       number of the row in the dataset, from 0
op              Int32                       0 append, 1 retract, 2 correct from, 3 correct to
system_time     Timestamp(ms, UTC)          when the row was added
event_time      Timestamp(ms, UTC) or Date  when it happened, by its source
==============  ==========================  ==================================================

All are required, but ``op``, which is optional in a changelog stream whose input has it so (ODF "ChangelogStream"); no
row lacks it. Their names are those of the dataset's vocabulary.
The reference implementation only warns where they are
wrong; therefore foreign schemas are judged with ``find_system_mismatch`` as a warning.

Source: ODF "DatasetVocabulary", "SetVocab", "Common Data Schema"; clause CHAIN-45.
"""

from dataclasses import dataclass
from typing import Final, Self

from odf_protocol.events import (
    DataField,
    DataSchema,
    DataTypeDate,
    DataTypeInt32,
    DataTypeInt64,
    DataTypeOption,
    DataTypeTimestamp,
    TimeUnit,
)
from odf_protocol.events.equality import with_defaults
from odf_protocol.events.metadata import SetVocab
from odf_protocol.schema_compat import describe_type


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


SYSTEM_TIMESTAMP: Final = DataTypeTimestamp(unit=TimeUnit.MILLISECOND, timezone="UTC")


def system_fields(vocabulary: Vocabulary) -> tuple[DataField, ...]:
    """Return the four columns in their order."""
    return (
        DataField(name=vocabulary.offset, type=DataTypeInt64()),
        DataField(name=vocabulary.op, type=DataTypeInt32()),
        DataField(name=vocabulary.system_time, type=SYSTEM_TIMESTAMP),
        DataField(name=vocabulary.event_time, type=SYSTEM_TIMESTAMP),
    )


def find_system_mismatch(schema: DataSchema, vocabulary: Vocabulary) -> str | None:
    """Say what is wrong with the system columns of a schema; None if nothing is."""
    by_name = {field.name: field for field in schema.fields}
    for expected in system_fields(vocabulary):
        field = by_name.get(expected.name)
        if field is None:
            return f"system column {expected.name} is missing"
        allowed = [expected.type]
        if expected.name == vocabulary.event_time:
            allowed.append(DataTypeDate())
        if expected.name == vocabulary.op:
            allowed.append(DataTypeOption(inner=DataTypeInt32()))
        if with_defaults(field.type) not in allowed:
            return f"system column {expected.name} is {describe_type(field.type)}, not {describe_type(expected.type)}"
    return None
