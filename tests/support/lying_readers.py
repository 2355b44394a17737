"""Every reader of slices that the product has, asked about one changed file: rejected, or all see the same rows.

A program of its own, since a changed file may end whoever reads it: ``python -m support.lying_readers SEED FIRST
COUNT`` prints a line of JSON for each mutant. What kills it counts as rejected, as it does in the product (ROWS-6).
"""

import json
import math
import resource
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from odf_engines.reading.row_writing import rewrite_slice
from odf_engines.reading.slices import (
    check_slice,
    hash_values_of,
    logical_hash_of,
    read_last_rows,
    read_slice,
)
from odf_protocol.errors import OdfError
from odf_protocol.events import (
    DataField,
    DataSchema,
    DataSlice,
    DataType,
    DataTypeBinary,
    DataTypeBool,
    DataTypeDate,
    DataTypeDecimal,
    DataTypeFloat64,
    DataTypeInt16,
    DataTypeInt64,
    DataTypeList,
    DataTypeOption,
    DataTypeString,
    DataTypeStruct,
    DataTypeTimestamp,
    DataTypeUInt32,
    OffsetInterval,
)
from odf_protocol.multihash import Multihash
from odf_protocol.schema_arrow import arrow_schema_of
from odf_protocol.slice_comparison import compare_slices
from odf_protocol.timestamp import Timestamp
from odf_protocol.vocabulary import Vocabulary, system_fields
from support.lying_parquet import Mutant, iter_mutants

AT = Timestamp(1_700_000_000)
ROWS = 400
MEMORY_BYTES = 2 * 1024**3  # as the reader of the product has it


def _optional(kind: DataType) -> DataTypeOption:
    return DataTypeOption(inner=kind)


SCHEMA = DataSchema(
    fields=(
        *system_fields(Vocabulary()),
        DataField(name="city", type=_optional(DataTypeString())),
        DataField(name="people", type=_optional(DataTypeInt64())),
        DataField(name="small", type=DataTypeInt16()),
        DataField(name="unsigned", type=_optional(DataTypeUInt32())),
        DataField(name="share", type=_optional(DataTypeFloat64())),
        DataField(name="price", type=_optional(DataTypeDecimal(precision=9, scale=2))),
        DataField(name="wide", type=_optional(DataTypeDecimal(precision=30, scale=4))),
        DataField(name="day", type=_optional(DataTypeDate())),
        DataField(name="seen", type=_optional(DataTypeTimestamp())),
        DataField(name="raw", type=_optional(DataTypeBinary())),
        DataField(name="is_new", type=_optional(DataTypeBool())),
        DataField(name="tags", type=_optional(DataTypeList(item_type=_optional(DataTypeString())))),
        DataField(
            name="place",
            type=_optional(
                DataTypeStruct(
                    fields=(
                        DataField(name="x", type=_optional(DataTypeInt64())),
                        DataField(name="y", type=_optional(DataTypeString())),
                    )
                )
            ),
        ),
    )
)


def wide_table() -> pa.Table:
    """Rows with a column of most types, nulls and all."""

    def values(make: Callable[[int], Any], every: int = 7) -> list[Any]:
        return [None if n % every == 3 else make(n) for n in range(ROWS)]

    def share(n: int) -> float:
        return (-0.0, math.nan, math.inf)[n % 3] if n % 50 < 3 else n / 7 - 3

    numbers: dict[str, list[Any]] = {
        "offset": list(range(ROWS)), "op": [0] * ROWS, "system_time": [AT.unix_ms] * ROWS,
        "event_time": [-28_500_000_000_000 + 1000 * n for n in range(ROWS)],
        "city": values(lambda n: f"city {n % 11}"), "people": values(lambda n: n * n - 50), "small": [n % 100 for n in
        range(ROWS)], "unsigned": values(lambda n: 2**31 + n), "share": values(share),
        "price": values(lambda n: Decimal(n) / 100), "wide": values(lambda n: Decimal(n) * 10**20),
        "day": values(lambda n: n - 330_000), "seen": values(lambda n: n * 86_400_000 - 10**12),
        "raw": values(lambda n: bytes([n % 256, 0xFF])), "is_new": values(lambda n: n % 2 == 0),
        "tags": values(lambda n: ["a", None, str(n)][: n % 4]),
        "place": values(lambda n: {"x": n, "y": None if n % 5 else "here"}),
    }  # fmt: skip
    schema = arrow_schema_of(SCHEMA)
    arrays = []
    for name, kind in zip(schema.names, schema.types, strict=True):
        if pa.types.is_timestamp(kind):
            arrays.append(pa.array(numbers[name], pa.int64()).cast(kind))
        elif pa.types.is_date32(kind):
            arrays.append(pa.array(numbers[name], pa.int32()).cast(kind))
        else:
            arrays.append(pa.array(numbers[name], kind))
    return pa.table(arrays, schema=schema)


def honest_files() -> list[bytes]:
    """The same rows as different writers store them."""
    forms: list[dict[str, Any]] = [
        {"row_group_size": 150, "write_page_index": True, "data_page_size": 256, "write_batch_size": 32},
        {"row_group_size": 400, "data_page_version": "2.0", "compression": "zstd", "write_page_index": True,
         "data_page_size": 512, "write_batch_size": 32},
        {"row_group_size": 100, "use_dictionary": False, "compression": "none", "store_schema": False},
        {"row_group_size": 200, "store_decimal_as_integer": True, "write_page_checksum": True},
        {"row_group_size": 400, "use_dictionary": False, "compression": "gzip", "data_page_version": "2.0",
         "column_encoding": {"city": "DELTA_BYTE_ARRAY", "share": "BYTE_STREAM_SPLIT", "raw": "DELTA_LENGTH_BYTE_ARRAY",
                             "people": "DELTA_BINARY_PACKED", "is_new": "RLE"}},
    ]  # fmt: skip
    found = []
    for form in forms:
        sink = pa.BufferOutputStream()
        pq.write_table(wide_table(), sink, **form)
        found.append(sink.getvalue().to_pybytes())
    return found


def judge(mutant: Mutant, folder: Path) -> str:
    """Ask every reader; say ``refused``, ``the honest rows``, ``other rows``, or where two readers differ."""
    path, made = folder / "mutant.parquet", folder / "made.parquet"
    path.write_bytes(mutant.raw)
    made.unlink(missing_ok=True)
    try:
        claimed = DataSlice(
            logical_hash=logical_hash_of(path),
            physical_hash=Multihash.of_sha3_256(mutant.raw),
            offset_interval=OffsetInterval(start=0, end=ROWS - 1),
            size=len(mutant.raw),
        )
        claims: dict[str, Any] = {
            "schema": SCHEMA, "vocabulary": Vocabulary(), "system_time": AT, "sequence_number": 2}  # fmt: skip
        batches: list[pa.RecordBatch] = []
        check_slice(path, claimed, **claims, keep=batches.append)
    except (OdfError, Exception) as error:  # noqa: BLE001 - the product rejects whatever ends its reader
        return f"rejected: {getattr(error, 'rule', type(error).__name__)}"
    with made.open("wb") as target:
        rewrite_slice(path, target, claimed, **claims)
    return _compare_readers(path, made, batches)


def _compare_readers(path: Path, made: Path, batches: list[pa.RecordBatch]) -> str:
    """Compare what every reader makes of a slice with the batches that were verified."""
    schema = arrow_schema_of(SCHEMA)
    verified = pa.Table.from_batches([batch.cast(schema) for batch in batches], schema)
    seen = {
        "what engines get": pq.ParquetFile(made).read(),
        "compare": read_slice(path).cast(schema),
        "tail 1": read_last_rows(path, 1).cast(schema),
        "tail 130": read_last_rows(path, 130).cast(schema),
        "tail of all": read_last_rows(path, ROWS + 5).cast(schema),
    }
    for name, table in seen.items():
        count = {"tail 1": 1, "tail 130": 130}.get(name, ROWS)
        if not _is_equal(table, verified.slice(ROWS - count)):
            return f"DIFFERS: {name}"
    # ``arrow0-sha3-256`` looks at types without time zone and at the cut of row groups; this one at values alone.
    is_same_schema = all(batch.schema.equals(schema) for batch in batches)
    if is_same_schema and hash_values_of(made) != hash_values_of(path):
        return "DIFFERS: v1 hash"
    if is_same_schema and compare_slices(read_slice(path), read_slice(made), Vocabulary(), None) is not None:
        return "DIFFERS: value by value"
    return "the honest rows" if _is_equal(verified, wide_table()) else "other rows"


def _is_equal(one: pa.Table, other: pa.Table) -> bool:
    # NaN is what it is, bit by bit.
    names = [f.name for f in one.schema if pa.types.is_floating(f.type)]
    for name in names:
        bits = [t.column(name).combine_chunks().view(pa.int64()) for t in (one, other)]
        if bits[0].to_pylist() != bits[1].to_pylist():
            return False
    return bool(one.drop_columns(names).equals(other.drop_columns(names)))


@dataclass
class Verdicts:
    """What came of many mutants: how often each verdict, and those on which two readers differ."""

    counts: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def add(self, what: str, verdict: str) -> None:
        self.counts[verdict.partition(" '")[0].partition(" (")[0]] += 1
        if not verdict.startswith(("rejected", "the honest rows", "other rows")):
            self.failures.append(f"{what}: {verdict}")


def judge_mutants(seed: int, count: int) -> Verdicts:
    """Judge the first mutants of a seed, in a process that is started again when one of them ends it."""
    found, number = Verdicts(), 0
    while number < count:
        program = [sys.executable, "-m", "support.lying_readers", str(seed), str(number), str(count - number)]
        with subprocess.Popen(program, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[1]) as process:
            assert process.stdout is not None
            what = ""
            for line in process.stdout:
                answer = json.loads(line)
                number = answer["number"]
                if "what" in answer:
                    what = answer["what"]
                    continue
                found.add(what, answer["verdict"])
                what, number = "", number + 1
        if number < count:
            by_signal = process.returncode < 0  # as in the product: whatever a signal ended is a rejection
            found.add(what, f"{'refused' if by_signal else 'DIFFERS'}: the reader ended with {process.returncode}")
            number += 1
    return found


def main(seed: int, first: int, count: int) -> None:
    """Be the program."""
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    honest = honest_files()
    with tempfile.TemporaryDirectory() as folder:
        for number, mutant in enumerate(iter_mutants(honest, seed, first + count)):
            if number >= first:
                print(json.dumps({"number": number, "what": mutant.what}), flush=True)
                print(json.dumps({"number": number, "verdict": judge(mutant, Path(folder))}), flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]))
