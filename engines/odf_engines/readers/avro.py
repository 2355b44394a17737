"""Records of an Avro file.

Source: clauses READ-4 and READ-6 in ``spec/readers.md``.
"""

import datetime as dt
import io
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, BinaryIO

import msgspec
from fastavro import parse_schema, schemaless_reader
from fastavro.schema import SchemaParseException, UnknownType

from odf_engines.readers.avro_container import check_schema, iter_blocks, read_header
from odf_engines.readers.contract import BrokenFileError, ParameterError, RawRecord, Reader


class Avro(Reader):
    """Takes the records out of an Avro file (an object container file), columns by the names of fields."""

    @dataclass(frozen=True, kw_only=True)
    class Parameters:
        """``columns``: names of fields by column; a column that is not named there has the name of its field."""

        columns: dict[str, str] = field(default_factory=dict)

    def __init__(self, parameters: Any, names: tuple[str, ...]) -> None:
        super().__init__(parameters, names)
        for name in parameters.columns:
            if name not in names:
                raise ParameterError("columns", expected=f"columns of the read step ({', '.join(names)})", found=name,
                                     known=names)  # fmt: skip
        self._fields = {name: parameters.columns.get(name, name) for name in names}

    def iter_records(self, file: BinaryIO) -> Iterator[RawRecord]:
        file.seek(0)
        header = read_header(file)
        try:
            schema: Any = parse_schema(header.schema)
        except (SchemaParseException, UnknownType, ValueError, KeyError, TypeError, AttributeError) as error:
            raise BrokenFileError(f"its schema is not one of Avro: {error}") from error
        check_schema(schema)
        known = [each["name"] for each in schema["fields"]]
        if missing := [name for name in self._fields.values() if name not in known]:
            raise BrokenFileError(f"its records have no field '{missing[0]}'; they have {', '.join(known[:50])}")
        number = 0
        for count, data in iter_blocks(file, header):
            block = io.BytesIO(data)
            for _ in range(count):
                number += 1
                try:
                    record: Any = schemaless_reader(block, schema, None)
                    texts = {name: _text_of(record[place]) for name, place in self._fields.items()}
                except MemoryError:
                    raise
                except Exception as error:
                    # Where the next one begins, nobody knows.
                    raise BrokenFileError(f"record {number} cannot be decoded: {error}") from error
                yield RawRecord(msgspec.json.encode(texts))
            if block.tell() != len(data):
                raise BrokenFileError(f"a block has more than the {count} records that it says")

    def take_apart(self, raw: bytes) -> Mapping[str, str | None]:
        found: dict[str, str | None] = msgspec.json.decode(raw)
        return found


def _text_of(value: Any) -> str | None:
    """Write a value as ING-4 reads it."""
    match value:
        case None:
            return None
        case str():
            return value
        case bytes():
            return value.hex()
        case list() | dict():
            return json.dumps(_plain(value), ensure_ascii=False)
    plain = _plain(value)
    return plain if isinstance(plain, str) else json.dumps(plain)


def _plain(value: Any) -> Any:
    """Make of a value one that JSON has."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case bytes():
            return value.hex()
        case Decimal():
            return format(value, "f")
        case dt.datetime() | dt.date() | dt.time():
            return value.isoformat()
        case list():
            return [_plain(each) for each in value]
        case dict():
            return {name: _plain(each) for name, each in value.items()}
    return str(value)
