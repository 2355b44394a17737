"""Parquet files that say one thing to one reader and another thing to the next: valid slices, changed in one place.

A file has many claims beside its values: statistics, places and sizes of row groups and pages, indexes, bloom filters,
notes of writers. Readers believe different ones of them. Named lies are those that readers are known to fall for;
``iter_mutants`` makes any number of others, the same for the same seed.

Source: Apache Parquet, "File Format" and ``parquet.thrift``.
"""

import base64
import random
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from support import thrift_compact as thrift
from support.thrift_compact import Field, Items, Struct

MAGIC = b"PAR1"
# FileMetaData
SCHEMA, NUM_ROWS, ROW_GROUPS, KEY_VALUES, CREATED_BY, COLUMN_ORDERS, ENCRYPTION, SIGNING_KEY = range(2, 10)
# RowGroup
COLUMNS, GROUP_BYTE_SIZE, GROUP_ROWS, SORTING, GROUP_OFFSET, GROUP_COMPRESSED, ORDINAL = 1, 2, 3, 4, 5, 6, 7
# ColumnChunk
FILE_PATH, CHUNK_OFFSET, META, OFFSET_INDEX, OFFSET_INDEX_LENGTH, COLUMN_INDEX, COLUMN_INDEX_LENGTH, CRYPTO = range(
    1, 9
)
# ColumnMetaData
TYPE, ENCODINGS, PATH, CODEC, NUM_VALUES, UNCOMPRESSED, COMPRESSED = 1, 2, 3, 4, 5, 6, 7
DATA_PAGE, INDEX_PAGE, DICTIONARY_PAGE, STATISTICS, ENCODING_STATS, BLOOM, BLOOM_LENGTH = 9, 10, 11, 12, 13, 14, 15
SIZE_STATISTICS = 16
# Statistics
OLD_MAX, OLD_MIN, NULLS, DISTINCT, MAX, MIN = 1, 2, 3, 4, 5, 6
# SchemaElement
ELEMENT_TYPE, TYPE_LENGTH, REPETITION, NAME, CHILDREN, CONVERTED, SCALE, PRECISION, FIELD_ID, LOGICAL = range(1, 11)
# PageHeader
PAGE_TYPE, PAGE_UNCOMPRESSED, PAGE_COMPRESSED, PAGE_CRC, PAGE_DATA, _, PAGE_DICTIONARY, PAGE_DATA_V2 = range(1, 9)

WRITERS = (
    "parquet-mr version 1.2.8 (build unknown)",
    "parquet-mr version 1.8.0 (build 0fda28af84b9746396014ad6a415b90592a98b3b)",
    "parquet-mr version 1.10.0 (build unknown)",
    "parquet-cpp version 1.0.0",
    "parquet-cpp-arrow version 2.0.0",
    "impala version 1.4.0",
    "parquet-mr compiled by hand",
    "DuckDB",
    "",
)
"""Writers known for wrong statistics, wrong sort orders, wrong offsets; readers look at who wrote a file."""

NOTES = (
    (b"org.apache.spark.version", b"2.4.8"),
    (b"org.apache.spark.version", b"3.0.0"),
    (b"org.apache.spark.version", b"not a version"),
    (b"org.apache.spark.legacyDateTime", b""),
    (b"org.apache.spark.legacyINT96", b""),
    (b"org.apache.spark.timeZone", b"America/Los_Angeles"),
    (b"org.apache.spark.sql.parquet.row.metadata", b'{"type":"struct","fields":[]}'),
    (b"ARROW:schema", b"rubbish"),
    (b"pandas", b'{"index_columns": ["people"], "column_indexes": [], "columns": []}'),
    (b"writer.time.zone", b"America/Los_Angeles"),
    (b"writer.model.name", b"avro"),
    (b"parquet.avro.schema", b'{"type":"record","name":"a","fields":[]}'),
)

_NAMES = (b"offset", b"\xff\xfe", b"", b"a.b", b"city\0", "e\u0301".encode(), b"element")

_ARROW_TYPES = (
    pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.dictionary(pa.int8(), pa.string()),
    pa.dictionary(pa.int32(), pa.large_string()), pa.dictionary(pa.int32(), pa.int64()), pa.date64(), pa.date32(),
    pa.timestamp("s"), pa.timestamp("ms"), pa.timestamp("us", "UTC"), pa.timestamp("ns", "UTC"),
    pa.timestamp("ms", "America/Los_Angeles"), pa.timestamp("ms", "+05:30"), pa.timestamp("ms", "no such zone"),
    pa.duration("ms"), pa.duration("ns"), pa.time32("ms"), pa.time64("ns"), pa.int8(), pa.int64(), pa.uint8(),
    pa.uint32(), pa.uint64(), pa.float16(), pa.float32(), pa.decimal128(38, 2), pa.decimal256(60, 4),
    pa.decimal32(9, 2), pa.decimal64(9, 2), pa.binary(16), pa.bool_(), pa.null(), pa.large_list(pa.string()),
    pa.list_view(pa.string()), pa.list_(pa.large_string()), pa.list_(pa.string(), 2), pa.map_(pa.string(), pa.string()),
    pa.struct([("x", pa.int64()), ("y", pa.large_string())]), pa.struct([("y", pa.string()), ("x", pa.int64())]),
    pa.run_end_encoded(pa.int32(), pa.string()),
)  # fmt: skip
"""What an embedded schema may say of a column, true or not."""


@dataclass
class ParquetFile:
    """A Parquet file taken apart: what stands before the footer, and the footer."""

    body: bytes
    footer: Struct
    repeated: list[tuple[int, Field]] = field(default_factory=list)
    """Fields that the footer has a second time; Thrift does not say which of two counts."""

    @classmethod
    def parse(cls, raw: bytes) -> "ParquetFile":
        length = int.from_bytes(raw[-8:-4], "little")
        start = len(raw) - 8 - length
        return cls(raw[:start], thrift.Reader(raw, start).struct())

    def build(self) -> bytes:
        footer = thrift.write_struct(self.footer, self.repeated)
        return self.body + footer + struct.pack("<I", len(footer)) + MAGIC

    def groups(self) -> list[Struct]:
        return list(self.footer[ROW_GROUPS].value.values)

    def chunks(self) -> list[Struct]:
        return [chunk for group in self.groups() for chunk in group[COLUMNS].value.values]

    def metas(self, column: str | None = None) -> list[Struct]:
        found = [chunk[META].value for chunk in self.chunks()]
        return [each for each in found if column is None or each[PATH].value.values[0] == column.encode()]

    def element(self, column: str) -> Struct:
        return next(each for each in self.footer[SCHEMA].value.values if each.get_value(NAME) == column.encode())

    def append(self, raw: bytes) -> int:
        """Put bytes before the footer; return where they stand."""
        self.body += raw
        return len(self.body) - len(raw)

    def note(self, key: bytes, value: bytes) -> None:
        """Say something about the file."""
        if KEY_VALUES not in self.footer:
            self.footer.put(KEY_VALUES, thrift.LIST, Items(thrift.STRUCT))
        notes = self.footer[KEY_VALUES].value.values
        notes[:] = [each for each in notes if each.get_value(1) != key]
        notes.append(Struct({1: Field(thrift.BINARY, key), 2: Field(thrift.BINARY, value)}))

    def pages_of(self, meta: Struct) -> list[tuple[Struct, bytes]]:
        """Read the pages of a column chunk: header and content of each."""
        position = min(x for x in (meta.get_value(DICTIONARY_PAGE), meta[DATA_PAGE].value) if x)
        end, pages = position + meta[COMPRESSED].value, []
        while position < end:
            reader = thrift.Reader(self.body, position)
            header = reader.struct()
            content = reader.take(header[PAGE_COMPRESSED].value)
            pages.append((header, content))
            position = reader.position
        return pages

    def put_pages(self, meta: Struct, pages: list[tuple[Struct, bytes]]) -> None:
        """Store changed pages at the end, and point the column chunk there."""
        start = len(self.body)
        for header, content in pages:
            place = self.append(thrift.write_struct(header) + content)
            if PAGE_DICTIONARY in header:
                meta.put(DICTIONARY_PAGE, thrift.I64, place)
            elif meta[DATA_PAGE].value < start:
                meta.put(DATA_PAGE, thrift.I64, place)
        meta.put(COMPRESSED, thrift.I64, len(self.body) - start)


def with_statistics(raw: bytes, column: str, least: bytes, most: bytes) -> bytes:
    """Say in every row group that the values of a column lie between these, as Parquet stores them."""
    file = ParquetFile.parse(raw)
    for meta in file.metas(column):
        statistics = Struct()
        for number, value in ((OLD_MAX, most), (OLD_MIN, least), (MAX, most), (MIN, least)):
            statistics.put(number, thrift.BINARY, value)
        statistics.put(NULLS, thrift.I64, 0)
        meta.put(STATISTICS, thrift.STRUCT, statistics)
    return file.build()


def with_hidden_group(raw: bytes, number: int) -> bytes:
    """Let a row group seem so large that its middle lies behind the end of the file."""
    file = ParquetFile.parse(raw)
    group = file.groups()[number]
    group.put(GROUP_COMPRESSED, thrift.I64, 2**40)
    return file.build()


def with_note(raw: bytes, key: bytes, value: bytes) -> bytes:
    """Add a note to the footer."""
    file = ParquetFile.parse(raw)
    file.note(key, value)
    return file.build()


def with_swapped_pages(raw: bytes, column: str) -> bytes:
    """Let the offset index of a column name its pages in another order."""
    file = ParquetFile.parse(raw)
    for chunk in file.chunks():
        if chunk[META].value[PATH].value.values[0] == column.encode() and OFFSET_INDEX in chunk:
            index = thrift.Reader(file.body, chunk[OFFSET_INDEX].value).struct()
            places = index[1].value.values
            first, last = places[0], places[-1]
            first[1], last[1] = last[1], first[1]
            first[2], last[2] = last[2], first[2]
            _put_index(file, chunk, OFFSET_INDEX, index)
    return file.build()


def _put_index(file: ParquetFile, chunk: Struct, number: int, index: Struct) -> None:
    raw = thrift.write_struct(index)
    chunk.put(number, thrift.I64, file.append(raw))
    chunk.put(number + 1, thrift.I32, len(raw))


# --- any number of lies -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mutant:
    """A changed file and, in words, what was changed."""

    what: str
    raw: bytes


_Mutation = Callable[[ParquetFile, random.Random], str]


def iter_mutants(honest: list[bytes], seed: int, count: int) -> Iterator[Mutant]:
    """Make mutants of these files, each with one to three changes."""
    for number in range(count):
        chance = random.Random(f"{seed}:{number}")
        raw, stated = chance.choice(honest), []
        for _ in range(chance.choice((1, 1, 1, 2, 3))):
            mutation = chance.choices(_MUTATIONS, _WEIGHTS)[0]
            try:
                file = ParquetFile.parse(raw)
                stated.append(mutation(file, chance))
                raw = file.build()
            except (KeyError, IndexError, ValueError, StopIteration, AttributeError, struct.error, OverflowError):
                continue  # an earlier change left nothing there for this one to change
        yield Mutant(f"{seed}:{number} " + "; ".join(stated), raw)


def _other_number(value: int, chance: random.Random, file: ParquetFile) -> int:
    return chance.choice(
        (0, 1, -1, value + 1, value - 1, value * 2, value // 2, value + 8, 2**31 - 1, 2**40, -(2**40), 4,
         len(file.body), len(file.body) + 100, chance.randrange(max(1, len(file.body))))
    )  # fmt: skip


def _other_bytes(value: bytes, chance: random.Random) -> bytes:
    size = len(value)
    return chance.choice(
        (b"", b"\0" * size, b"\xff" * size, b"\x7f" * size, value[::-1], value[:-1], value + b"\0", b"zzzz",
         struct.pack("<q", chance.randrange(-1000, 10**7)), struct.pack("<i", chance.randrange(-5, 9)),
         bytes(chance.randrange(256) for _ in range(size or 3)))
    )  # fmt: skip


def _lie_in_statistics(file: ParquetFile, chance: random.Random) -> str:
    meta = chance.choice(file.metas())
    statistics = meta.get_value(STATISTICS) or Struct()
    old = statistics.get_value(MIN) or b"\0" * 8
    for number in chance.sample((OLD_MAX, OLD_MIN, MAX, MIN), chance.randrange(1, 5)):
        statistics.put(number, thrift.BINARY, _other_bytes(old, chance))
    if chance.random() < 0.4:
        statistics.put(NULLS, thrift.I64, _other_number(meta[NUM_VALUES].value, chance, file))
    if chance.random() < 0.2:
        statistics.put(DISTINCT, thrift.I64, chance.randrange(3))
    meta.put(STATISTICS, thrift.STRUCT, statistics)
    return f"statistics of {meta[PATH].value.values}"


def _lie_about_group(file: ParquetFile, chance: random.Random) -> str:
    group = chance.choice(file.groups())
    number = chance.choice((GROUP_BYTE_SIZE, GROUP_ROWS, GROUP_OFFSET, GROUP_COMPRESSED, ORDINAL))
    kind = thrift.I16 if number == ORDINAL else thrift.I64
    value = _other_number(group.get_value(number) or 0, chance, file)
    group.put(number, kind, value % 2**15 if number == ORDINAL else value)
    return f"row group field {number} = {value}"


def _lie_about_chunk(file: ParquetFile, chance: random.Random) -> str:
    meta = chance.choice(file.metas())
    number = chance.choice((NUM_VALUES, UNCOMPRESSED, COMPRESSED, DATA_PAGE, INDEX_PAGE, DICTIONARY_PAGE))
    other = chance.choice(file.metas())
    value = chance.choice((_other_number(meta.get_value(number) or 0, chance, file), other.get_value(number) or 0))
    if chance.random() < 0.1 and number in meta:
        del meta[number]
        return f"chunk of {meta[PATH].value.values} without field {number}"
    meta.put(number, thrift.I64, value)
    return f"chunk of {meta[PATH].value.values} field {number} = {value}"


def _lie_about_place(file: ParquetFile, chance: random.Random) -> str:
    chunk = chance.choice(file.chunks())
    if chance.random() < 0.2:
        chunk.put(FILE_PATH, thrift.BINARY, b"elsewhere.parquet")
        return "file path of a chunk"
    chunk.put(CHUNK_OFFSET, thrift.I64, _other_number(chunk.get_value(CHUNK_OFFSET) or 0, chance, file))
    return "file offset of a chunk"


def _swap_chunks(file: ParquetFile, chance: random.Random) -> str:
    group = chance.choice(file.groups())
    columns = group[COLUMNS].value.values
    first, last = chance.sample(range(len(columns)), 2)
    columns[first], columns[last] = columns[last], columns[first]
    return f"chunks {first} and {last} swapped"


def _point_to_other_group(file: ParquetFile, chance: random.Random) -> str:
    one, other = chance.choice(file.groups()), chance.choice(file.groups())
    number = chance.randrange(len(one[COLUMNS].value.values))
    one[COLUMNS].value.values[number] = other[COLUMNS].value.values[number]
    return f"chunk {number} of one group is that of another"


def _change_groups(file: ParquetFile, chance: random.Random) -> str:
    groups = file.footer[ROW_GROUPS].value.values
    how = chance.choice(("repeat", "drop", "reverse", "empty"))
    if how == "repeat":
        groups.append(chance.choice(groups))
    elif how == "drop":
        groups.pop(chance.randrange(len(groups)))
    elif how == "reverse":
        groups.reverse()
    else:
        groups.insert(chance.randrange(len(groups) + 1), Struct({
            COLUMNS: Field(thrift.LIST, Items(thrift.STRUCT)), GROUP_BYTE_SIZE: Field(thrift.I64, 0),
            GROUP_ROWS: Field(thrift.I64, 0)}))  # fmt: skip
    if chance.random() < 0.5:
        file.footer.put(NUM_ROWS, thrift.I64, sum(group[GROUP_ROWS].value for group in groups))
    return f"row groups: {how}"


def _change_row_count(file: ParquetFile, chance: random.Random) -> str:
    file.footer.put(NUM_ROWS, thrift.I64, _other_number(file.footer[NUM_ROWS].value, chance, file))
    return "number of rows"


def _add_note(file: ParquetFile, chance: random.Random) -> str:
    for key, value in chance.sample(NOTES, chance.choice((1, 1, 2, 3))):
        file.note(key, value)
    return f"notes {[each.get_value(1) for each in file.footer[KEY_VALUES].value.values]}"


def _drop_notes(file: ParquetFile, _chance: random.Random) -> str:
    file.footer.pop(KEY_VALUES, None)
    return "no notes"


def _change_writer(file: ParquetFile, chance: random.Random) -> str:
    writer = chance.choice(WRITERS)
    file.footer.put(CREATED_BY, thrift.BINARY, writer.encode())
    if chance.random() < 0.3:
        file.footer.pop(COLUMN_ORDERS, None)
    return f"written by {writer!r}"


def _change_schema(file: ParquetFile, chance: random.Random) -> str:
    element = chance.choice(file.footer[SCHEMA].value.values[1:])
    how = chance.choice(("converted", "logical", "no-converted", "no-logical", "repetition", "field-id", "precision",
                         "scale", "length", "utc", "unit", "name", "type"))  # fmt: skip
    if how == "converted":
        element.put(CONVERTED, thrift.I32, chance.randrange(22))
    elif how == "logical":
        number = chance.choice((1, 2, 3, 4, 6, 11, 12, 13, 14, 15))
        element.put(LOGICAL, thrift.STRUCT, Struct({number: Field(thrift.STRUCT, Struct())}))
    elif how == "no-converted":
        element.pop(CONVERTED)
    elif how == "no-logical":
        element.pop(LOGICAL)
    elif how == "repetition":
        element.put(REPETITION, thrift.I32, chance.randrange(3))
    elif how == "field-id":
        element.put(FIELD_ID, thrift.I32, chance.randrange(8))
    elif how in ("precision", "scale", "length"):
        number = {"precision": PRECISION, "scale": SCALE, "length": TYPE_LENGTH}[how]
        element.put(number, thrift.I32, chance.randrange(40))
    elif how in ("utc", "unit"):
        for kind in (7, 8):  # TIME and TIMESTAMP
            stated = element.get_value(LOGICAL, kind)
            if stated is not None and how == "utc":
                stated.put(1, thrift.FALSE if stated.get_value(1) else thrift.TRUE, not stated.get_value(1))
            elif stated is not None:
                unit = Struct({chance.randrange(1, 4): Field(thrift.STRUCT, Struct())})
                stated.put(2, thrift.STRUCT, unit)
    elif how == "name":
        element.put(NAME, thrift.BINARY, chance.choice((*_NAMES, element[NAME].value.upper())))
    else:
        element.put(ELEMENT_TYPE, thrift.I32, chance.randrange(8))
    return f"schema of {element.get_value(NAME)}: {how}"


def _change_encodings(file: ParquetFile, chance: random.Random) -> str:
    meta = chance.choice(file.metas())
    meta[ENCODINGS].value.values[:] = [chance.randrange(10) for _ in range(chance.randrange(4))]
    if chance.random() < 0.5:
        meta.pop(ENCODING_STATS, None)
    elif ENCODING_STATS in meta:
        for each in meta[ENCODING_STATS].value.values:
            each.put(2, thrift.I32, chance.randrange(10))
    return f"encodings of {meta[PATH].value.values}"


def _change_column_fields(file: ParquetFile, chance: random.Random) -> str:
    meta = chance.choice(file.metas())
    how = chance.choice(("codec", "type", "path"))
    if how == "codec":
        meta.put(CODEC, thrift.I32, chance.randrange(8))
    elif how == "type":
        meta.put(TYPE, thrift.I32, chance.randrange(8))
    else:
        meta[PATH].value.values[:] = list(chance.choice(file.metas())[PATH].value.values)
    return f"{how} of a column"


def _lie_in_offset_index(file: ParquetFile, chance: random.Random) -> str:
    chunk = chance.choice([each for each in file.chunks() if OFFSET_INDEX in each])
    index = thrift.Reader(file.body, chunk[OFFSET_INDEX].value).struct()
    places = index[1].value.values
    how = chance.choice(("swap", "drop", "number", "other"))
    if how == "swap" and len(places) > 1:
        first, last = chance.sample(places, 2)
        for number in chance.sample((1, 2, 3), chance.randrange(1, 4)):
            first[number], last[number] = last[number], first[number]
    elif how == "drop":
        places.pop(chance.randrange(len(places)))
    elif how == "number":
        place, number = chance.choice(places), chance.choice((1, 2, 3))
        place[number].value = _other_number(place[number].value, chance, file)
        if number == 2:
            place[number].value %= 2**31
    else:
        other = chance.choice([each for each in file.chunks() if OFFSET_INDEX in each])
        chunk.put(OFFSET_INDEX, thrift.I64, other[OFFSET_INDEX].value)
        chunk.put(OFFSET_INDEX_LENGTH, thrift.I32, other[OFFSET_INDEX_LENGTH].value)
        return "offset index of another column"
    _put_index(file, chunk, OFFSET_INDEX, index)
    return f"offset index: {how}"


def _lie_in_column_index(file: ParquetFile, chance: random.Random) -> str:
    chunk = chance.choice([each for each in file.chunks() if COLUMN_INDEX in each])
    index = thrift.Reader(file.body, chunk[COLUMN_INDEX].value).struct()
    how = chance.choice(("values", "null-pages", "order", "drop"))
    if how == "values":
        for number in (2, 3):
            values = index[number].value.values
            values[:] = [_other_bytes(value, chance) for value in values]
    elif how == "null-pages":
        index[1].value.values[:] = [chance.random() < 0.5 for _ in index[1].value.values]
    elif how == "order":
        index.put(4, thrift.I32, chance.randrange(3))
        index[2].value.values.reverse()
    else:
        index[3].value.values.pop()
    _put_index(file, chunk, COLUMN_INDEX, index)
    return f"column index of {chunk[META].value[PATH].value.values}: {how}"


def _drop_indexes(file: ParquetFile, chance: random.Random) -> str:
    for chunk in file.chunks():
        for number in chance.sample((OFFSET_INDEX, COLUMN_INDEX), chance.randrange(1, 3)):
            chunk.pop(number, None)
            chunk.pop(number + 1, None)
    return "no indexes"


def _add_bloom_filter(file: ParquetFile, chance: random.Random) -> str:
    """A filter that holds nothing: 32 bytes of zeros, which says of every value that it is not there."""
    nothing = Struct()
    header = Struct({1: Field(thrift.I32, 32)})
    for number in (2, 3, 4):
        header.put(number, thrift.STRUCT, Struct({1: Field(thrift.STRUCT, nothing)}))
    raw = thrift.write_struct(header) + bytes(32)
    meta = chance.choice(file.metas())
    meta.put(BLOOM, thrift.I64, file.append(raw))
    meta.put(BLOOM_LENGTH, thrift.I32, len(raw))
    return f"empty bloom filter of {meta[PATH].value.values}"


def _lie_in_page_header(file: ParquetFile, chance: random.Random) -> str:
    meta = chance.choice(file.metas())
    pages = file.pages_of(meta)
    header, _ = chance.choice(pages)
    inner_number = next(number for number in (PAGE_DATA, PAGE_DICTIONARY, PAGE_DATA_V2) if number in header)
    inner = header[inner_number].value
    how = chance.choice(("count", "encoding", "levels", "crc", "size", "statistics", "type", "repeat", "drop", "swap",
                         "packed"))  # fmt: skip
    if how == "count":
        inner.put(1, thrift.I32, _other_number(inner[1].value, chance, file) % 2**31)
    elif how == "encoding":
        number = 4 if inner_number == PAGE_DATA_V2 else 2
        inner.put(number, thrift.I32, chance.randrange(10))
    elif how == "levels":
        inner.put(chance.choice((3, 4, 5, 6)), thrift.I32, chance.randrange(9))
    elif how == "crc":
        header.put(PAGE_CRC, thrift.I32, chance.randrange(2**31))
    elif how == "size":
        header.put(PAGE_UNCOMPRESSED, thrift.I32, _other_number(header[PAGE_UNCOMPRESSED].value, chance, file) % 2**31)
    elif how == "statistics":
        lies = Struct({MAX: Field(thrift.BINARY, b"\0" * 8), MIN: Field(thrift.BINARY, b"\0" * 8)})
        inner.put(8 if inner_number == PAGE_DATA_V2 else 5, thrift.STRUCT, lies)
    elif how == "packed":
        inner.put(7, thrift.FALSE, inner.get_value(7) is False)
    elif how == "type":
        header.put(PAGE_TYPE, thrift.I32, chance.randrange(5))
    elif how == "repeat":
        pages.append(chance.choice(pages))
    elif how == "drop":
        pages.pop(chance.randrange(len(pages)))
    else:
        chance.shuffle(pages)
    file.put_pages(meta, pages)
    return f"page of {meta[PATH].value.values}: {how}"


def _change_page_content(file: ParquetFile, chance: random.Random) -> str:
    meta = chance.choice(file.metas())
    pages = file.pages_of(meta)
    number = chance.randrange(len(pages))
    header, content = pages[number]
    changed = bytearray(content)
    changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    pages[number] = (header, bytes(changed))
    file.put_pages(meta, pages)
    return f"a bit in a page of {meta[PATH].value.values}"


def _change_any_number(file: ParquetFile, chance: random.Random) -> str:
    leaves = [*_iter_numbers(file.footer)]
    leaf = chance.choice(leaves)
    bits = {thrift.I16: 15, thrift.I32: 31, thrift.I64: 63}[leaf.kind]
    old, leaf.value = leaf.value, _other_number(leaf.value, chance, file) % 2**bits
    return f"some number {old} = {leaf.value}"


def _iter_numbers(value: Any) -> Iterator[Field]:
    if isinstance(value, Struct):
        for each in value.values():
            if each.kind in (thrift.I16, thrift.I32, thrift.I64):
                yield each
            yield from _iter_numbers(each.value)
    elif isinstance(value, Items):
        for item in value.values:
            yield from _iter_numbers(item)


def _glue(file: ParquetFile, chance: random.Random) -> str:
    whole = file.build()
    how = chance.choice(("twice", "rubbish before the footer", "footer of another place"))
    if how == "twice":  # the second file's places point into the first one
        file.body = whole + file.body
    elif how == "rubbish before the footer":
        file.body += bytes(chance.randrange(256) for _ in range(100))
    else:
        file.body = MAGIC + file.body
    return f"glued: {how}"


def _lie_in_arrow_schema(file: ParquetFile, chance: random.Random) -> str:
    """The schema that Arrow's writers embed, by which Arrow's readers restore types that Parquet lacks."""
    notes = file.footer[KEY_VALUES].value.values
    written = next(each.get_value(2) for each in notes if each.get_value(1) == b"ARROW:schema")
    schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(written)))
    place = chance.randrange(len(schema))
    stated = schema.field(place)
    how = chance.choice(("type", "type", "type", "nullable", "name", "swap", "drop", "twice", "notes", "extension"))
    if how == "type":
        stated = stated.with_type(chance.choice(_ARROW_TYPES))
    elif how == "nullable":
        stated = stated.with_nullable(not stated.nullable)
    elif how == "name":
        stated = stated.with_name(chance.choice((stated.name.upper(), "offset", "", "é", "e\u0301")))
    elif how == "notes":
        stated = stated.with_metadata({b"PARQUET:field_id": b"1", b"ARROW:something": b"else"})
    elif how == "extension":
        name = chance.choice(
            (b"arrow.uuid", b"arrow.json", b"arrow.bool8", b"arrow.fixed_shape_tensor", b"geoarrow.wkb")
        )
        stated = stated.with_metadata({b"ARROW:extension:name": name, b"ARROW:extension:metadata": b""})
    fields = list(schema)
    if how == "swap":
        other = chance.randrange(len(schema))
        fields[place], fields[other] = fields[other], fields[place]
    elif how == "drop":
        del fields[place]
    elif how == "twice":
        fields.append(stated)
    else:
        fields[place] = stated
    lie = pa.schema(fields, chance.choice((None, {b"pandas": b'{"index_columns": ["people"]}'})))
    file.note(b"ARROW:schema", base64.b64encode(lie.serialize().to_pybytes()))
    return f"Arrow's schema of {stated.name}: {how} {stated.type}"


def _repeat_note(file: ParquetFile, chance: random.Random) -> str:
    """Two notes of one name: readers keep the first or the last."""
    notes = file.footer[KEY_VALUES].value.values
    key = chance.choice([each.get_value(1) for each in notes])
    value = chance.choice(NOTES)[1] if chance.random() < 0.5 else chance.choice(notes).get_value(2)
    notes.insert(chance.choice((0, len(notes))), Struct({1: Field(thrift.BINARY, key), 2: Field(thrift.BINARY, value)}))
    return f"a second note {key!r}"


def _repeat_footer_field(file: ParquetFile, chance: random.Random) -> str:
    """Two row counts, schemas or lists of row groups in one footer."""
    number = chance.choice((SCHEMA, NUM_ROWS, ROW_GROUPS, ROW_GROUPS, KEY_VALUES, 99))
    if number == ROW_GROUPS:
        groups = list(file.footer[ROW_GROUPS].value.values)
        chance.choice((groups.reverse, groups.pop, lambda: groups.append(groups[0])))()
        again = Field(thrift.LIST, Items(thrift.STRUCT, groups))
    elif number == NUM_ROWS:
        again = Field(thrift.I64, _other_number(file.footer[NUM_ROWS].value, chance, file))
    elif number == SCHEMA:
        elements = list(file.footer[SCHEMA].value.values)
        first, last = chance.sample(range(1, len(elements)), 2)
        elements[first], elements[last] = elements[last], elements[first]
        again = Field(thrift.LIST, Items(thrift.STRUCT, elements))
    else:
        again = Field(thrift.LIST, Items(thrift.STRUCT))
    file.repeated.append((number, again))
    return f"footer field {number} twice"


def _claim_order(file: ParquetFile, chance: random.Random) -> str:
    """Row groups that say by which column they are sorted; columns that say how their values compare."""
    if chance.random() < 0.5:
        by = Struct({1: Field(thrift.I32, chance.randrange(-1, 8)), 2: Field(thrift.TRUE, chance.random() < 0.5),
                     3: Field(thrift.TRUE, chance.random() < 0.5)})  # fmt: skip
        chance.choice(file.groups()).put(SORTING, thrift.LIST, Items(thrift.STRUCT, [by]))
        return "a sorting column"
    orders = [Struct({chance.choice((1, 2, 9)): Field(thrift.STRUCT, Struct())}) for _ in range(chance.randrange(20))]
    file.footer.put(COLUMN_ORDERS, thrift.LIST, Items(thrift.STRUCT, orders))
    return f"{len(orders)} column orders"


def _add_size_statistics(file: ParquetFile, chance: random.Random) -> str:
    meta = chance.choice(file.metas())
    levels = Items(thrift.I64, [chance.randrange(500) for _ in range(chance.randrange(4))])
    stated = Struct({1: Field(thrift.I64, _other_number(100, chance, file)), 2: Field(thrift.LIST, levels),
                   3: Field(thrift.LIST, levels)})  # fmt: skip
    meta.put(chance.choice((SIZE_STATISTICS, SIZE_STATISTICS + 1)), thrift.STRUCT, stated)
    return f"sizes of {meta[PATH].value.values}"


def _claim_encryption(file: ParquetFile, chance: random.Random) -> str:
    algorithm = Struct({1: Field(thrift.STRUCT, Struct({2: Field(thrift.BINARY, b"12345678")}))})
    column = Struct({chance.choice((1, 2)): Field(thrift.STRUCT, Struct())})
    how = chance.choice(("footer", "column", "both"))
    if how != "column":
        file.footer.put(ENCRYPTION, thrift.STRUCT, algorithm)
        file.footer.put(SIGNING_KEY, thrift.BINARY, b"key")
    if how != "footer":
        chunk = chance.choice(file.chunks())
        chunk.put(CRYPTO, thrift.STRUCT, column)
        if chance.random() < 0.5:
            chunk.put(CRYPTO + 1, thrift.BINARY, thrift.write_struct(chunk[META].value))
    return f"encryption of {how}"


def _exchange_dictionaries(file: ParquetFile, chance: random.Random) -> str:
    """The dictionary of another chunk, or two of them, or one with fewer values than are pointed to."""
    with_dictionary = [meta for meta in file.metas() if meta.get_value(DICTIONARY_PAGE)]
    meta, other = chance.choice(with_dictionary), chance.choice(with_dictionary)
    pages, others = file.pages_of(meta), file.pages_of(other)
    how = chance.choice(("other", "two", "last", "short", "sorted"))
    if how == "other":
        pages[0] = others[0]
    elif how == "two":
        pages.insert(1, others[0])
    elif how == "last":
        pages.append(pages.pop(0))
    elif how == "short":
        inner = pages[0][0][PAGE_DICTIONARY].value
        inner.put(1, thrift.I32, chance.randrange(inner[1].value + 1))
    else:
        pages[0][0][PAGE_DICTIONARY].value.put(3, thrift.TRUE, True)
    file.put_pages(meta, pages)
    return f"dictionary of {meta[PATH].value.values}: {how}"


def _insert_page(file: ParquetFile, chance: random.Random) -> str:
    """Pages without values, of indexes, or of kinds that nobody knows, among those with values."""
    meta = chance.choice(file.metas())
    pages = file.pages_of(meta)
    header = Struct({
        PAGE_TYPE: Field(thrift.I32, chance.choice((0, 1, 3, 4, 7))), PAGE_UNCOMPRESSED: Field(thrift.I32, 0),
        PAGE_COMPRESSED: Field(thrift.I32, 0)})  # fmt: skip
    if header[PAGE_TYPE].value == 0:
        empty = {1: 0, 2: 0, 3: 3, 4: 3}
        header.put(PAGE_DATA, thrift.STRUCT, Struct({n: Field(thrift.I32, value) for n, value in empty.items()}))
    elif header[PAGE_TYPE].value == 3:
        empty = {1: 0, 2: 0, 3: chance.choice((0, 5)), 4: 0, 5: 0, 6: 0}
        header.put(PAGE_DATA_V2, thrift.STRUCT, Struct({n: Field(thrift.I32, value) for n, value in empty.items()}))
    pages.insert(chance.randrange(len(pages) + 1), (header, b""))
    file.put_pages(meta, pages)
    return f"a page of kind {header[PAGE_TYPE].value} in {meta[PATH].value.values}"


def _shift(file: ParquetFile, _chance: random.Random) -> str:
    """Another file before this one, and everything moved by its length: whole, but not where a writer puts it."""
    whole = file.build()
    for chunk in file.chunks():
        for struct_, numbers in (
            (chunk[META].value, (DATA_PAGE, DICTIONARY_PAGE)),
            (chunk, (OFFSET_INDEX, COLUMN_INDEX)),
        ):
            for number in numbers:
                if struct_.get_value(number):
                    struct_[number].value += len(whole)
    file.body = whole + file.body
    return "glued: moved"


_MUTATIONS: list[_Mutation] = [
    _lie_in_statistics, _lie_about_group, _lie_about_chunk, _lie_about_place, _swap_chunks, _point_to_other_group,
    _change_groups, _change_row_count, _add_note, _drop_notes, _change_writer, _change_schema, _change_encodings,
    _change_column_fields, _lie_in_offset_index, _lie_in_column_index, _drop_indexes, _add_bloom_filter,
    _lie_in_page_header, _change_page_content, _change_any_number, _glue, _lie_in_arrow_schema, _repeat_note,
    _repeat_footer_field, _claim_order, _add_size_statistics, _claim_encryption, _exchange_dictionaries, _insert_page,
    _shift,
]  # fmt: skip
_WEIGHTS = [4, 5, 4, 2, 1, 2, 2, 1, 4, 1, 2, 5, 1, 1, 3, 3, 1, 2, 4, 1, 2, 1, 4, 2, 3, 2, 1, 2, 3, 2, 1]
