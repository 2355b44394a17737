"""Files of strangers: Parquet slices, and the archives that sources are packed in.

A target writes its input to a file of its own, as the node does with what it downloads. Compressed packs of blocks are
among the other targets; archives of other kinds than these are never unpacked.
"""

import gzip
import io
import tempfile
import warnings
import zipfile
from functools import cache
from pathlib import Path

import pyarrow as pa

from fuzz.target import Target
from odf_engines.reading.slices import check_slice, hash_values_of
from odf_node.ports.sources import SourceTooLargeError
from odf_node.sources.archives import decompress
from odf_node.sources.limits import SourceLimits
from odf_protocol.errors import MalformedError, RejectedError, UnsupportedError
from odf_protocol.events import CompressionFormat, DataSchema, DataSlice, OffsetInterval, PrepStepDecompress
from odf_protocol.multihash import ARROW0_SHA3_256, SHA3_256, Multihash
from odf_protocol.schema_arrow import data_schema_of
from odf_protocol.vocabulary import Vocabulary, system_fields
from support.offers import CITIES, CITY_SCHEMA, NOON, parquet_bytes, slice_table

__all__ = ["FILE_TARGETS"]

_NO_HASH = Multihash(ARROW0_SHA3_256, bytes(32))  # of no slice: all rules before the last one are what is tried
_LIMITS = SourceLimits(size_bytes=1 << 20, unpack_free_bytes=1 << 16, unpack_ratio=20)
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)


@cache
def _folder() -> "tempfile.TemporaryDirectory[str]":
    return tempfile.TemporaryDirectory(prefix="odf-fuzz-")  # kept by the cache until the program ends


# Slices


def _wide_slice() -> pa.Table:
    """A column of each kind that readers treat differently, with nulls, below and inside structs and lists."""
    plain = slice_table(CITIES, first_offset=0, at=NOON)
    texts = pa.array(["a", None, "long enough to stand by itself"])
    columns = {
        "text": texts,
        "bytes": pa.array([b"\0", b"", None]),
        "fixed": pa.array([b"abc", b"def", None], pa.binary(3)),
        "small": pa.array([1, None, -3], pa.int8()),
        "number": pa.array([1.5, None, float("nan")]),
        "truth": pa.array([True, None, False]),
        "money": pa.array([1, None, 3]).cast(pa.decimal128(20, 0)),
        "day": pa.array([1, None, 3], pa.int32()).cast(pa.date32()),
        "clock": pa.array([1, None, 3], pa.int64()).cast(pa.time64("us")),
        "items": pa.array([[1, None], None, []], pa.list_(pa.field("item", pa.int32()))),
        "inner": pa.StructArray.from_arrays(
            [texts, pa.array([None, 2, 3])], names=["c", "d"], mask=pa.array([False, False, True])
        ),
    }
    fields = [pa.field(name, column.type) for name, column in columns.items()]
    return pa.table([*plain.columns[:4], *columns.values()], schema=pa.schema([*plain.schema][:4] + fields))


@cache
def _schemas() -> tuple[DataSchema, ...]:
    fields = data_schema_of(_wide_slice().schema).fields[4:]
    return (CITY_SCHEMA, DataSchema(fields=(*system_fields(Vocabulary()), *fields)))


def _check_slice(data: bytes) -> None:
    """The first byte chooses the schema in force; the rest is the file that a block names."""
    if not data:
        return
    path = Path(_folder().name, "slice.parquet")
    path.write_bytes(data[1:])
    claimed = DataSlice(
        logical_hash=_NO_HASH,
        physical_hash=Multihash.of_sha3_256(data[1:]),
        offset_interval=OffsetInterval(start=0, end=len(CITIES) - 1),
        size=len(data) - 1,
    )
    assert claimed.physical_hash.code == SHA3_256
    try:
        check_slice(
            path,
            claimed,
            schema=_schemas()[data[0] % len(_schemas())],
            vocabulary=Vocabulary(),
            system_time=NOON,
            sequence_number=2,
        )
    except MemoryError:
        return  # slices are read by a process of their own, for which this is a rejection
    except RejectedError as error:
        if error.rule != "ROWS-5 logical-hash":
            raise
        hash_values_of(path)  # a slice that passes with another hash in its block would be compared


def _slice_seeds() -> list[bytes]:
    tables = (slice_table(CITIES, first_offset=0, at=NOON), _wide_slice())
    variants = (
        {},
        {"compression": "none", "use_dictionary": False},
        {"compression": "zstd", "data_page_version": "2.0"},
    )
    return [
        # Without the embedded schema, which is text in base64, more changes get past the footer.
        bytes([which]) + parquet_bytes(table, store_schema=store_schema, **options)
        for which, table in enumerate(tables)
        for options in variants
        for store_schema in (True, False)
    ]


# Archives


def _unpack(data: bytes) -> None:
    """The first byte says what the rest is: a gzip, a zip, or names and contents of which a zip is made."""
    if not data:
        return
    kind, rest = data[0] % 4, data[1:]
    name = b""
    if kind == 2:
        name, _, rest = rest.partition(b"\n")
    if kind >= 2:
        rest = _zip_of(rest)
    step = PrepStepDecompress(
        format=CompressionFormat.ZIP if kind else CompressionFormat.GZIP,
        sub_path=name.decode("utf-8", "replace") or None,
    )
    folder = Path(_folder().name, "unpacking")
    folder.mkdir(exist_ok=True)
    path, target = folder / "packed", folder / "unpacked"
    path.write_bytes(rest)
    target.unlink(missing_ok=True)
    try:
        decompress(step, path=path, target=target, name="source", limits=_LIMITS)
    except BaseException:
        assert {entry.name for entry in folder.iterdir()} == {"packed"}
        raise
    assert {entry.name for entry in folder.iterdir()} == {"packed", "unpacked"}
    allowed = max(_LIMITS.unpack_free_bytes, len(rest) * _LIMITS.unpack_ratio)
    assert target.stat().st_size <= min(_LIMITS.size_bytes, allowed)


def _zip_of(text: bytes) -> bytes:
    """Make a zip with an entry for each line: its method, its name up to ``=``, its content."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names that are there twice
        for line in text.split(b"\n")[:50]:
            name, _, content = line[1:].partition(b"=")
            entry = zipfile.ZipInfo("x")
            entry.filename = name.decode("utf-8", "replace")[:1_000]  # as it is, also where it leads elsewhere
            entry.compress_type = _METHODS[line[0] % len(_METHODS)] if line else zipfile.ZIP_STORED
            archive.writestr(entry, content)
    return buffer.getvalue()


def _archive_seeds() -> list[bytes]:
    rows = b"a,b\n" + b"1,2\n" * 500
    entries = b"0rows.csv=a,b\n1folder/more.csv=c,d\n1../../outside=e\n0/etc/outside=f\n0folder/=\n2b=bz2\n3l=lzma"
    zeros = bytes(2 << 20)
    return [
        *(b"\0" + packed for packed in (gzip.compress(rows), gzip.compress(rows) * 2 + bytes(9), gzip.compress(zeros))),
        b"\0" + gzip.compress(gzip.compress(zeros), compresslevel=0),
        *(
            b"\1" + _zip_of(line)
            for line in (b"1a=" + rows.replace(b"\n", b" "), entries, b"1z=" + zeros, b"2b=" + zeros)
        ),
        *(b"\2" + name + b"\n" + entries for name in (b"folder/more.csv", b"../../outside", b"b", b"l", b"none")),
        b"\3" + entries,
    ]


FILE_TARGETS = (
    Target("slice", _check_slice, (MalformedError, UnsupportedError, RejectedError), _slice_seeds),
    Target("archive", _unpack, (MalformedError, UnsupportedError, SourceTooLargeError), _archive_seeds),
)
