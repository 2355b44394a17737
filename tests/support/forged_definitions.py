"""Forgeries of what stands beside the steps of a derivative: its query, its schema, its step records."""

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

import msgspec
import pyarrow as pa

from odf_protocol.events import (
    DataField,
    DataTypeInt64,
    DataTypeOption,
    SetDataSchema,
    SetTransform,
    SqlQueryStep,
)
from odf_protocol.multihash import Multihash
from odf_protocol.step_record import StepRecord
from odf_protocol.step_record_codec import decode_step_record, sign_step_record
from odf_protocol.timestamp import Timestamp
from support.honest_derivatives import Published
from support.rebuilt_chains import (
    Forgery,
    events_of,
    rebuilt,
    steps_of,
    table_of,
    with_rows,
)

# Query and schema


def another_query(published: Published, random: Random) -> Forgery | None:
    """The declared query gives no row; the rows are those of the honest one."""
    chain = published.chain
    if with_rows(published, random) is None:
        return None
    number = next(b.sequence_number for b in chain.blocks if isinstance(b.event, SetTransform))
    declared = chain.blocks[number].event
    assert isinstance(declared, SetTransform)
    honest = published.kind.query
    none = "SELECT * FROM honest WHERE event_time > TIMESTAMP '3000-01-01 00:00:00'"
    steps = (SqlQueryStep(query=honest, alias="honest"), SqlQueryStep(query=none))
    forged = replace(declared, transform=replace(declared.transform, queries=steps))
    without = chain.copy(step_records=[None] * len(chain.blocks))
    return Forgery(without.replacing(number, lambda _event: forged), number, "PLAN-7|is not what|PLAN-11|ACCEPT-2")


def another_schema(published: Published, random: Random) -> Forgery | None:
    """A column under another name, one more, one that is said to be never null, or two in each other's place."""
    chain = published.chain
    number = next(b.sequence_number for b in chain.blocks if isinstance(b.event, SetDataSchema))
    event = chain.blocks[number].event
    assert isinstance(event, SetDataSchema)
    assert event.schema is not None
    fields, act = list(event.schema.fields), random.choice(("name", "more", "place"))
    place = random.randrange(4, len(fields))
    if act == "name":
        fields[place] = replace(fields[place], name=fields[place].name + "_2")
    elif act == "more":
        fields.insert(place, DataField(name="more_2", type=DataTypeOption(inner=DataTypeInt64())))
    else:
        fields[place - 1 if place > 4 else place], fields[place] = (
            fields[place],
            fields[place - 1 if place > 4 else place],
        )
        if [f.name for f in fields] == [f.name for f in event.schema.fields]:
            return None
    events = events_of(chain)
    events[number] = (replace(event, schema=replace(event.schema, fields=tuple(fields))), events[number][1])
    tables: dict[int, pa.Table | None] = {}
    for step in steps_of(chain):
        if (table := table_of(chain, step)) is not None:
            if act == "name":
                table = table.rename_columns([f.name for f in fields])
            elif act == "more":
                table = table.add_column(place, pa.field("more_2", pa.int64()), pa.nulls(table.num_rows, pa.int64()))
            else:
                table = table.select([f.name for f in fields])
            tables[step] = table
    return Forgery(rebuilt(chain, events, tables), number, "column|schema")


# Step records


def another_record(published: Published, random: Random) -> Forgery | None:
    """A signed record that says what was not: figures, a watermark, a query, slices of inputs, offsets."""
    chain = published.chain
    number = random.choice(steps_of(chain))
    raw = chain.step_records[number]
    assert raw is not None
    record = decode_step_record(raw).record
    forged = random.choice(list(_forged_records(record, random)))
    records = list(chain.step_records)
    records[number] = sign_step_record(chain.key, forged)
    return Forgery(chain.copy(step_records=records), number, "REPLAY-(6|7|8|14)")


def _forged_records(record: StepRecord, random: Random) -> Iterator[StepRecord]:
    stated = record.statistics
    assert stated is not None
    wrong = Multihash.of_sha3_256(random.randbytes(8))
    for name in ("append", "retract", "correct_from", "correct_to"):
        rows = _changed(stated.rows_out, **{name: getattr(stated.rows_out, name) + 1})
        yield _changed(record, statistics=_changed(stated, rows_out=rows))
    yield _changed(record, statistics=_changed(stated, late_rows=stated.late_rows + 1))
    yield _changed(record, statistics=_changed(stated, rows_read=tuple((n or 0) + 1 for n in stated.rows_read)))
    for name in ("state_before", "state_after"):
        state = getattr(stated, name)
        for part in ("rows", "size_bytes"):
            forged = _changed(state, **{part: getattr(state, part) + 1})
            yield _changed(record, statistics=_changed(stated, **{name: forged}))
    yield _changed(record, prev_watermark=Timestamp.from_unix_ms(1_700_000_000_000))
    yield _changed(record, transform=wrong)
    yield _changed(record, prev_checkpoint=wrong)
    yield _changed(record, next_offset=record.next_offset + 1)
    yield _changed(record, system_time=Timestamp(record.system_time.seconds + 1))
    yield _changed(record, vocabulary=_changed(record.vocabulary, event_time="op_2"))
    yield _changed(record, inputs=tuple(_changed(each, alias=each.alias + "x") for each in record.inputs))
    if record.inputs[0].slices:
        first = _changed(record.inputs[0].slices[0], logical_hash=wrong)
        given = _changed(record.inputs[0], slices=(first, *record.inputs[0].slices[1:]))
        yield _changed(record, inputs=(given, *record.inputs[1:]))


def _changed(value: Any, **changes: Any) -> Any:
    """Change fields of a dataclass, or of what is written as JSON."""
    change = msgspec.structs.replace if isinstance(value, msgspec.Struct) else replace
    return change(value, **changes)
