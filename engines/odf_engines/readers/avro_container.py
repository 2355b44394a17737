"""The container of Avro files: header and blocks, taken apart with nothing in it believed.

A library decodes records. What surrounds them is read here, because there every claim is a size or a count: how much a
block unpacks to, how many records it has, and how deep and how large a schema may be.

Source: Apache Avro "Object Container Files"; clause READ-6 in ``spec/readers.md``.
"""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, Final

import msgspec
import pyarrow as pa

from odf_engines.readers.contract import BrokenFileError

_MAGIC: Final = b"Obj\x01"
_SYNC_BYTES: Final = 16
_MOST_HEADER_BYTES: Final = 4 * 1024**2  # guess: a hundred times the largest schema seen
_MOST_BLOCK_BYTES: Final = 256 * 1024**2  # guess: writers make blocks of some ten kilobytes to some megabytes
_MOST_LEVELS: Final = 32  # guess: rows nest three levels
_MOST_PARTS: Final = 10_000  # guess: a table of thousands of columns
_CODECS: Final = ("null", "deflate", "snappy", "zstandard")
_LEAST_BYTES: Final = {
    "null": 0, "boolean": 1, "int": 1, "long": 1, "float": 4, "double": 8, "bytes": 1, "string": 1
}  # fmt: skip
_NAMED: Final = ("record", "error", "array", "map", "fixed", "enum")


@dataclass(frozen=True, slots=True)
class AvroHeader:
    """What stands before the blocks.

    Attributes:
        schema: Of the records, JSON of a bounded form; what it means is to be looked at with ``check_schema``.
        codec: How blocks are packed.
        sync: What ends each block.
    """

    schema: Any
    codec: str
    sync: bytes


def read_header(file: BinaryIO) -> AvroHeader:
    """Read the header, and leave the file at the first block.

    Raises:
        BrokenFileError: It is none, or its schema or codec is not read.
    """
    if file.read(len(_MAGIC)) != _MAGIC:
        raise BrokenFileError("it is no Avro file: it does not begin with Obj and 1")
    entries: dict[bytes, bytes] = {}
    while count := _read_long(file):
        if count < 0:
            count = -count
            _read_long(file)  # size of this part of the map
        for _ in range(count):
            name = _read_bytes(file, _MOST_HEADER_BYTES)
            entries[name] = _read_bytes(file, _MOST_HEADER_BYTES)
            if file.tell() > _MOST_HEADER_BYTES:
                raise BrokenFileError(f"its header is longer than {_MOST_HEADER_BYTES:,} bytes")
    codec = entries.get(b"avro.codec", b"null").decode(errors="replace")
    if codec not in _CODECS:
        raise BrokenFileError(f"its codec is {codec!r}; {', '.join(_CODECS)} are read")
    try:
        schema = msgspec.json.decode(entries[b"avro.schema"])
    except (KeyError, RecursionError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BrokenFileError("it has no schema that is JSON, not too deep, and UTF-8") from error
    _check_form(schema)
    return AvroHeader(schema, codec, _read_exactly(file, _SYNC_BYTES))


def iter_blocks(file: BinaryIO, header: AvroHeader) -> Iterator[tuple[int, bytes]]:
    """Yield the number of records of each block, and their bytes.

    Raises:
        BrokenFileError: A block is not whole, ends elsewhere than it says, or unpacks to too much.
    """
    while first := file.read(1):
        count, size = _read_long(file, first), _read_long(file)
        if count < 0 or not 0 <= size <= _MOST_BLOCK_BYTES:
            raise BrokenFileError(f"a block says that it has {count} records in {size} bytes")
        data = _unpack(header.codec, _read_exactly(file, size))
        if _read_exactly(file, _SYNC_BYTES) != header.sync:
            raise BrokenFileError("a block does not end where it says")
        if count > len(data):
            raise BrokenFileError(f"a block says that it has {count} records in {len(data)} bytes")
        yield count, data


def _unpack(codec: str, data: bytes) -> bytes:
    try:
        match codec:
            case "null":
                return data
            case "deflate":
                unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
                found = unpacker.decompress(data, _MOST_BLOCK_BYTES + 1)
                if not unpacker.eof and len(found) <= _MOST_BLOCK_BYTES:
                    raise BrokenFileError("a block is cut off")
            case "snappy":
                body, checksum = data[:-4], data[-4:]
                size = _snappy_size(body)
                found = pa.decompress(body, size, codec="snappy", asbytes=True)
                if zlib.crc32(found) != int.from_bytes(checksum, "big"):
                    raise BrokenFileError("a block has another checksum than it says")
            case _:
                with pa.input_stream(pa.BufferReader(data), compression="zstd") as stream:
                    found = stream.read(_MOST_BLOCK_BYTES + 1)
    except (zlib.error, OSError, pa.ArrowException) as error:
        raise BrokenFileError(f"a block cannot be unpacked: {error}") from error
    if len(found) > _MOST_BLOCK_BYTES:
        raise BrokenFileError(f"a block unpacks to more than {_MOST_BLOCK_BYTES:,} bytes")
    return found


def _snappy_size(data: bytes) -> int:
    """Read what a text of snappy says it unpacks to."""
    size = 0
    for place, byte in enumerate(data[:5]):
        size |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            break
    if size > _MOST_BLOCK_BYTES:
        raise BrokenFileError(f"a block unpacks to more than {_MOST_BLOCK_BYTES:,} bytes")
    return size


def _check_form(schema: Any) -> None:
    """Bound what the library parses, and let nobody tell it that it was parsed before."""
    parts, level = 0, [schema]
    for _ in range(_MOST_LEVELS):
        parts += len(level)
        children: list[Any] = []
        for each in level:
            if isinstance(each, dict):
                if any(name.startswith("__") for name in each):
                    raise BrokenFileError("its schema has names that begin with two underscores")
                children += each.values()
            elif isinstance(each, list):
                children += each
        level = children
    if level or parts > _MOST_PARTS:
        raise BrokenFileError(f"its schema is nested deeper than {_MOST_LEVELS} levels, or has too many parts")


def check_schema(schema: Any) -> None:
    """Refuse schemas by which few bytes are endless values, or values without end: decoders follow them blindly.

    Args:
        schema: As the library parsed it: every name is a full one.

    Raises:
        BrokenFileError: Records are no records, take no bytes, are recursive, or have more than ``_MOST_PARTS`` values.
    """
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise BrokenFileError("its schema is no record: rows have columns")
    if _least_bytes(schema, {}, (), [0]) == 0:
        raise BrokenFileError("its records take no bytes, so that a block could have any number of them")


def _least_bytes(schema: Any, known: dict[str, Any], within: tuple[str, ...], parts: list[int]) -> int:
    """Say how many bytes a value takes at least; named types are looked into wherever they are used."""
    parts[0] += 1
    if parts[0] > _MOST_PARTS or len(within) > _MOST_LEVELS:
        raise BrokenFileError("its schema has too many parts, if its types are written out wherever they are named")

    def below(part: Any, inside: tuple[str, ...] = within) -> int:
        return _least_bytes(part, known, inside, parts)

    match schema:
        case str() if schema in _LEAST_BYTES:
            return _LEAST_BYTES[schema]
        case str():
            if schema not in known:
                raise BrokenFileError(f"its schema names the type {schema!r}, which it does not define before")
            return below(known[schema])
        case list():
            return 1 + min((below(each) for each in schema), default=0)
        case {"type": "record" | "error", "name": str(name), "fields": list(fields)}:
            if name in within:
                raise BrokenFileError(f"its schema is recursive: {name} is in itself")
            known[name] = schema
            return sum(below(each["type"], (*within, name)) for each in fields)
        case {"type": "array", "items": items}:
            if below(items) == 0:
                raise BrokenFileError("its schema has an array of values that take no bytes")
            return 1
        case {"type": "map", "values": values}:
            below(values)
            return 1
        case {"type": "enum", "name": str(name)}:
            known[name] = schema
            return 1
        case {"type": "fixed", "name": str(name), "size": int(size)} if 0 <= size <= _MOST_BLOCK_BYTES:
            known[name] = schema
            return size
        case {"type": inner} if inner not in _NAMED:
            return below(inner)
    raise BrokenFileError("its schema has a type that is not read")


def _read_long(file: BinaryIO, first: bytes = b"") -> int:
    found, place = 0, 0
    while True:
        byte = (first or _read_exactly(file, 1))[0]
        first = b""
        found |= (byte & 0x7F) << place
        if byte < 0x80:
            return (found >> 1) ^ -(found & 1)
        place += 7
        if place > 63:
            raise BrokenFileError("a number has more than 64 bits")


def _read_bytes(file: BinaryIO, most: int) -> bytes:
    size = _read_long(file)
    if not 0 <= size <= most:
        raise BrokenFileError(f"a text of its header says that it has {size} bytes")
    return _read_exactly(file, size)


def _read_exactly(file: BinaryIO, size: int) -> bytes:
    data = file.read(size)
    if len(data) != size:
        raise BrokenFileError("it is cut off")
    return data
