"""Which columns a source has, which types they get, and what to say when they are not the ones declared.

Where nothing is declared, types are guessed as ODF's reference implementation does: of texts by patterns; of JSON a
string is text, whatever it looks like, numbers are whole or not, arrays and objects are lists and structs. What has
several types is text, which for anything but a string is its JSON: the reference implementation rejects it.

Source: ODF ReadStep `schema` and `ddlSchema`; spec/ingest.md ING-2, ING-3.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from odf_engines.errors import InvalidSourceError
from odf_engines.records.carriers import TIMESTAMP, slice_field_of
from odf_protocol.events import ReadStep
from odf_protocol.schema_arrow import arrow_schema_of
from odf_protocol.schema_ddl import parse_ddl
from odf_protocol.vocabulary import Vocabulary

# Records looked at when types or names must be guessed.  Source: ODF reference readers
SAMPLE_RECORDS = 1000


def find_declared(step: ReadStep) -> pa.Schema | None:
    """Find the schema that a read step declares, in slice types; None if it declares none."""
    if step.schema is not None:
        declared = arrow_schema_of(step.schema)
    elif step.ddl_schema is not None:
        declared = arrow_schema_of(parse_ddl(list(step.ddl_schema)))
    else:
        return None
    return pa.schema([slice_field_of(field) for field in declared])


def check_columns(found: Sequence[str], declared: pa.Schema, source_name: str) -> None:
    """Reject a source whose columns are not exactly the declared ones, in any order.

    Raises:
        InvalidSourceError: A column is missing, unknown or there twice.
    """
    check_distinct(found, source_name)
    given, wanted = set(found), set(declared.names)
    missing = [name for name in declared.names if name not in given]
    unknown = [name for name in found if name not in wanted]
    if not missing and not unknown:
        return
    faults = [f"missing: {_listed(missing)}"] if missing else []
    faults += [f"not in the schema: {_listed(unknown)}"] if unknown else []
    raise InvalidSourceError(
        source_name,
        f"columns differ from the schema of the source ({'; '.join(faults)}); expected"
        f" {_listed(declared.names)}, found {_listed(found)}. Correct the file, or change the read step's schema",
    )


def check_distinct(found: Sequence[str], source_name: str) -> None:
    """Reject a source that gives two columns one name.

    Raises:
        InvalidSourceError: It does.
    """
    # A header may have millions of names.
    repeated = sorted(name for name, count in Counter(found).items() if count > 1)
    if repeated:
        raise InvalidSourceError(source_name, f"two columns have the same name: {_listed(repeated)}")


def guess_schema(rows: Iterable[Sequence[str | None]], names: Sequence[str]) -> pa.Schema:
    """Guess the types of columns of text from some of their rows; every column may be null."""
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    return pa.schema([pa.field(name, _guess_type(values)) for name, values in zip(names, columns, strict=True)])


def text_schema(names: Sequence[str]) -> pa.Schema:
    """Make every column text that may be null."""
    return pa.schema([pa.field(name, pa.string()) for name in names])


def adapt_undeclared(schema: pa.Schema, vocabulary: Vocabulary) -> pa.Schema:
    """Adapt a schema that nobody declared to a slice: a text event time is read as a time, lists of objects as text.

    The logical hash knows no lists of objects; a query may have made something else of them.

    Source: ODF reference ingest, sources without schema and without preprocess step.
    """
    schema = pa.schema([field.with_type(pa.string()) if _has_objects(field.type) else field for field in schema])
    index = schema.get_field_index(vocabulary.event_time)
    if index < 0 or not pa.types.is_string(schema.field(index).type):
        return schema
    return schema.set(index, schema.field(index).with_type(TIMESTAMP))


def _has_objects(kind: pa.DataType) -> bool:
    """Say whether there is a list of objects, or of lists, in a type."""
    if pa.types.is_list(kind):
        return bool(pa.types.is_nested(kind.value_type))
    return pa.types.is_struct(kind) and any(_has_objects(field.type) for field in kind)


_GUESSES = (
    (re.compile(r"[+-]?[0-9]{1,18}", re.ASCII), pa.int64()),
    (re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,2})?", re.ASCII), pa.float64()),
    (re.compile(r"true|false", re.IGNORECASE), pa.bool_()),
    (re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII), pa.date32()),
    (
        re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9:]{8}(?:\.[0-9]{1,9})?(?:[Zz]|[+-][0-9:]{5})?", re.ASCII),
        TIMESTAMP,
    ),
)


def _guess_type(values: Sequence[str | None]) -> pa.DataType:
    present = [value for value in values if value is not None]
    if not present:
        return pa.string()
    for pattern, guessed in _GUESSES:
        if all(pattern.fullmatch(value) for value in present):
            return guessed
    return pa.string()


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"


_LONG = range(-(2**63), 2**63)
_UNKNOWN = pa.null()
_NUMBERS = {pa.int64(), pa.float64()}
_DEEPEST = 16  # guess: what lies deeper is kept as the JSON text of its outer values


def guess_columns(rows: Iterable[Mapping[str, Any]]) -> pa.Schema:
    """Guess the columns of decoded JSON objects, which may all be null, in order of first appearance."""
    found: dict[str, pa.DataType] = {}
    for row in rows:
        _add_members(found, row, 0)
    return pa.schema([pa.field(name, _known(kind)) for name, kind in found.items()])


def _type_of(value: Any, depth: int) -> pa.DataType:
    """Give the type of one value; nothing is known from a null."""
    match value:
        case None:
            return _UNKNOWN
        case bool():
            return pa.bool_()
        case int():
            return pa.int64() if value in _LONG else pa.float64()
        case float():
            return pa.float64()
        case list() if depth < _DEEPEST:
            item = _UNKNOWN
            for each in value:
                item = _merged(item, _type_of(each, depth + 1))
            return pa.list_(pa.field("item", item))
        case dict() if value and depth < _DEEPEST:
            members: dict[str, pa.DataType] = {}
            _add_members(members, value, depth + 1)
            return pa.struct(list(members.items()))
    return pa.string()


def _add_members(found: dict[str, pa.DataType], row: Mapping[str, Any], depth: int) -> None:
    for name, value in row.items():
        found[name] = _merged(found.get(name, _UNKNOWN), _type_of(value, depth))


def _merged(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """Give the type that holds values of both."""
    if one == other or other == _UNKNOWN:
        return one
    if one == _UNKNOWN:
        return other
    if {one, other} == _NUMBERS:
        return pa.float64()
    if pa.types.is_list(one) and pa.types.is_list(other):
        return pa.list_(pa.field("item", _merged(one.value_type, other.value_type)))
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        fields = {field.name: field.type for field in one}
        for field in other:
            fields[field.name] = _merged(fields.get(field.name, _UNKNOWN), field.type)
        return pa.struct(list(fields.items()))
    return pa.string()


def _known(kind: pa.DataType) -> pa.DataType:
    """Make text of what was never seen."""
    if pa.types.is_list(kind):
        return pa.list_(pa.field("item", _known(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _known(field.type)) for field in kind])
    return pa.string() if kind == _UNKNOWN else kind
