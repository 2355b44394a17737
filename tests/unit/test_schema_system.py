"""System columns: our own schemas have them right, foreign ones are told what is wrong."""

import pytest

from odf_protocol.events import (
    DataField,
    DataSchema,
    DataTypeDate,
    DataTypeInt64,
    DataTypeOption,
    DataTypeString,
    DataTypeTimestamp,
    TimeUnit,
)
from odf_protocol.vocabulary import Vocabulary, find_system_mismatch, system_fields

USUAL = Vocabulary()


def with_type(name: str, data_type) -> DataSchema:
    fields = tuple(DataField(name=f.name, type=data_type) if f.name == name else f for f in system_fields(USUAL))
    return DataSchema(fields=fields)


def test_our_own_columns_are_right_under_any_vocabulary():
    vocabulary = Vocabulary(offset="o", op="p", system_time="s", event_time="e")
    schema = DataSchema(fields=(*system_fields(vocabulary), DataField(name="x", type=DataTypeString())))
    assert [field.name for field in schema.fields] == ["o", "p", "s", "e", "x"]
    assert find_system_mismatch(schema, vocabulary) is None
    assert find_system_mismatch(schema, USUAL) == "system column offset is missing"


def test_event_time_may_be_a_date_or_state_its_defaults():
    assert find_system_mismatch(with_type("event_time", DataTypeDate()), USUAL) is None
    assert find_system_mismatch(with_type("event_time", DataTypeTimestamp()), USUAL) is None


@pytest.mark.parametrize(
    ("name", "data_type", "reason"),
    [
        ("op", DataTypeInt64(), "system column op is Int64, not Int32"),
        ("offset", DataTypeOption(inner=DataTypeInt64()), "system column offset is Option<Int64>, not Int64"),
        ("system_time", DataTypeDate(), "system column system_time is Date, not Timestamp(Millisecond, UTC)"),
        ("event_time", DataTypeTimestamp(unit=TimeUnit.SECOND), "is Timestamp(Second, UTC), not"),
    ],
)
def test_wrong_type_is_named(name, data_type, reason):
    assert reason in (find_system_mismatch(with_type(name, data_type), USUAL) or "")
