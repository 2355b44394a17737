"""Records of an Avro file.

Files are taken apart by fastavro, which believes their sizes and counts: what a file that lies costs, or breaks, stays
in the sandbox and within its limits.

Source: clauses READ-4 and READ-6 in ``spec/plug-ins/quality.md``.
"""

import datetime as dt
import io
import json
import math
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, BinaryIO

import msgspec
import pyarrow as pa
from fastavro import block_reader, schemaless_reader
from fastavro.read import BLOCK_READERS

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
        blocks = open_blocks(file)
        known = [each["name"] for each in blocks.writer_schema["fields"]]
        if missing := [name for name in self._fields.values() if name not in known]:
            raise BrokenFileError(f"its records have no field '{missing[0]}'; they have {', '.join(known[:50])}")
        number = 0
        try:
            for block in blocks:
                for record in _iter_block(block):
                    number += 1
                    texts = {name: _text_of(record[place]) for name, place in self._fields.items()}
                    yield RawRecord(msgspec.json.encode(texts))
        except (BrokenFileError, MemoryError):
            raise
        except Exception as error:
            # Where the next one begins is not known.
            raise BrokenFileError(f"what follows record {number} cannot be decoded: {error}") from error

    def take_apart(self, raw: bytes) -> Mapping[str, str | None]:
        found: dict[str, str | None] = msgspec.json.decode(raw)
        return found


def open_blocks(file: BinaryIO) -> Any:
    """Read the header of an Avro file.

    Returns:
        The blocks of fastavro, with ``writer_schema``, which is a record.

    Raises:
        BrokenFileError: It is no such file, or its schema is no record.
    """
    file.seek(0)
    try:
        blocks = block_reader(file)
    except MemoryError:
        raise
    except Exception as error:
        raise BrokenFileError(f"its header cannot be read as one of an Avro file: {error}") from error
    schema: Any = blocks.writer_schema
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise BrokenFileError("its schema is no record: rows have columns")
    return blocks


def _iter_block(block: Any) -> Iterator[Any]:
    """Yield the records of a block, which are all that it has.

    Raises:
        BrokenFileError: It says that it has more or fewer. Any error of the library's: they cannot be decoded.
    """
    if block.num_records > len(block.bytes_.getvalue()):
        raise BrokenFileError(f"a block has {block.num_records} records in fewer bytes")
    yield from block
    if block.bytes_.read(1):
        raise BrokenFileError(f"a block has more than the {block.num_records} records that it says")


def _read_snappy(file: BinaryIO) -> io.BytesIO:
    """Read a block packed by snappy, with its checksum behind it."""
    data: Any = schemaless_reader(file, "bytes", None)
    packed, checksum = data[:-4], data[-4:]
    size = 0
    for place, byte in enumerate(packed[:5]):  # of snappy's own beginning: how much it is unpacked
        size |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            break
    found = pa.decompress(packed, size, codec="snappy", asbytes=True)
    if zlib.crc32(found) != int.from_bytes(checksum, "big"):
        raise BrokenFileError("a block has another checksum than it says")
    return io.BytesIO(found)


def _read_zstandard(file: BinaryIO) -> io.BytesIO:
    """Read a block packed by Zstandard."""
    data: Any = schemaless_reader(file, "bytes", None)
    with pa.input_stream(pa.BufferReader(data), compression="zstd") as stream:
        return io.BytesIO(stream.read())


# fastavro needs packages of its own for these two; Arrow has both.
BLOCK_READERS.update(snappy=_read_snappy, zstandard=_read_zstandard)


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
